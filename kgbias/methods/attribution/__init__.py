"""Attribution: which words of a statement drive its score.

from kgbias.methods import attribution

attribution.attribute(run, "toxicity")
attribution.rank_words(run)
"""

from typing import TYPE_CHECKING, Unpack

from kgbias.errors import UsageError, no_such
from kgbias.parameters import Names, SelectionOptions, as_names
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.graph.types import WordAttribution
    from kgbias.io.rows import Rows
    from kgbias.measure.scorers import ScorerLike
    from kgbias.methods.attribution.word_effects import Deletion, WordEffect
    from kgbias.study.run import Run


@public_call
def attribute(
    run: "Run",
    measure: Names = ("regard", "toxicity"),
    *,
    method: Names = ("occlusion",),
    scorer: "ScorerLike | None" = None,
    top: int = 20,
    search: str | None = None,
    everything: bool = False,
    device: str = "auto",
) -> "Rows[WordAttribution]":
    """Find which words drive a score.

    Frame columns: sentence, measure, score, tokens, effects (one for each token), scorer,
    version, method, id (of the triple).

    Args:
        run: the run.
        measure: a name of `kgbias.MEASURES`; several as a list.
        method: how; several as a list. "occlusion", for any scorer: the score of the whole
            sentence minus the score without the word. By gradients, for the offline heads and
            Hugging Face classifiers: "integrated", integrated gradients, in units of the score;
            and only for the offline heads "cam", class activation maps, in log-odds. All give
            effects for the same words; above 0, a word raises the score.
        scorer: as for `Run.measure` (None: offline).
        top: how many of each measure's most extreme statements.
        search: instead, the statements that contain this text, in any case.
        everything: instead, every statement.
        device: where the scorer runs, as for `Run.measure`.
    """
    from kgbias.measure.scorers import load_scorer
    from kgbias.methods.attribution.word_effects import (
        attribute_triples,
        attribution_rows,
        choose_triples,
    )

    stored, attributions = run.stored, []
    with run.context.working() as progress:
        for name in as_names(measure):
            triples = choose_triples(stored, name, top=top, search=search, all_triples=everything)
            loaded = load_scorer(name, scorer, device=device)
            attributions += attribute_triples(stored, [loaded], triples, progress, as_names(method))
    return attribution_rows(stored, attributions)


@public_call
def list_attributions(run: "Run") -> "Rows[WordAttribution]":
    """The results of `attribute` so far, for the run's current scorers.

    Frame columns: as of `attribute`.

    Args:
        run: the run.
    """
    from kgbias.methods.attribution.word_effects import attribution_rows

    return attribution_rows(run.stored, run.stored.attributions())


@public_call
def rank_words(
    run: "Run",
    measure: Names = (),
    *,
    method: Names = (),
    against: str | None = None,
    top: int = 10,
    **selection: Unpack[SelectionOptions],
) -> "Rows[WordEffect]":
    """The words that drive the scores most, with counts, in the results of `attribute` so far
    for the statements that count (`Run.counted_statements`): for each group; or, with `against`,
    for each cell of the confusion matrix of two scorers' labels, which shows the words behind what
    only one of them calls negative or toxic.

    Frame columns: measure, method, cell (the group, or the labels of both scorers), statements,
    word, n, effect, total.

    Args:
        run: the run.
        measure: only these (none: all that were attributed).
        method: only these.
        against: the other scorer, by its name or NAME@VERSION, as in `Run.agreement`; a person's
            labels count as a scorer, read as "scores:FILE". Both must have judged a statement.
        top: how many words per group or cell.
        selection: which statements count, as for `Run.counted_statements`.
    """
    from kgbias.io.rows import Rows
    from kgbias.methods.attribution.word_effects import (
        METHOD_VERSIONS,
        WORD_COLUMNS,
        confusion_cells,
        latest_attributions,
        rank_word_effects,
    )

    if unknown := [m for m in as_names(method) if m not in METHOD_VERSIONS]:
        raise UsageError(no_such("`method`", unknown[0], METHOD_VERSIONS))
    stored = run.stored
    counted = run.counted_statements(**selection)
    run.context.remark(counted.note)
    groups = {t.id: t.group for t in counted.triples}
    attributions = [
        a
        for a in latest_attributions(stored.attributions())
        if a.triple_id in groups
        and (not measure or a.metric.measure in as_names(measure))
        and (not method or a.method.partition("@")[0] in as_names(method))
    ]
    if not attributions:
        raise UsageError(f"run {run.name!r} has no such word effects: attribute it first")
    if against is None:
        return Rows(rank_word_effects(attributions, groups, top=top), WORD_COLUMNS)
    rows: list[WordEffect] = []
    for metric in dict.fromkeys(a.metric for a in attributions):
        of_metric = [a for a in attributions if a.metric == metric]
        cells = confusion_cells(stored, metric, against, [a.triple_id for a in of_metric])
        rows += rank_word_effects(of_metric, cells, top=top)
    return Rows(rows, WORD_COLUMNS)


@public_call
def measure_deletion(
    run: "Run",
    measure: Names = ("regard", "toxicity"),
    *,
    method: Names = ("occlusion", "integrated"),
    scorer: "ScorerLike | None" = None,
    top: int = 100,
    removed: int = 3,
    seed: int = 0,
    device: str = "auto",
) -> "Rows[Deletion]":
    """How reliable the attributions of `attribute` are: the mean drop of the score when the
    most effective words of the `top` most extreme statements are removed one by one, by each
    method and in random order (`kgbias.methods.attribution.word_effects.deletion_curves`).

    Frame columns: measure, method, removed, n, drop, low, high.

    Args:
        run: the run.
        measure: as for `attribute`; the statements are scored again without the words.
        method: as for `attribute`.
        scorer: as for `attribute`.
        top: as for `attribute`.
        device: as for `attribute`.
        removed: remove up to this many words; only sentences with more words take part.
        seed: the random seed of the random orders.
    """
    from kgbias.io.rows import Rows
    from kgbias.measure.scorers import load_scorer
    from kgbias.methods.attribution.word_effects import (
        DELETION_COLUMNS,
        METHOD_VERSIONS,
        SentenceEffects,
        deletion_curves,
    )

    if removed < 1:
        raise UsageError("`removed` must be 1 or more")
    curves: list[Deletion] = []
    for name in as_names(measure):
        rows = attribute(run, name, method=method, scorer=scorer, top=top, device=device)
        by_method = {}
        for method_name in as_names(method):
            own_rows = [a for a in rows if a.method == METHOD_VERSIONS[method_name]]
            # In an order of their own: random orders are drawn sentence by sentence, from one seed.
            own_rows.sort(key=lambda a: a.triple_id)
            by_method[method_name] = [
                SentenceEffects(list(a.tokens), list(a.effects), a.score) for a in own_rows
            ]
        opened_scorer = load_scorer(name, scorer, device=device)
        curves += deletion_curves(opened_scorer, by_method, max_removed=removed, seed=seed)
    return Rows(curves, DELETION_COLUMNS)
