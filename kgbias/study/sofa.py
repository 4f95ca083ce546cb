"""Building SoFa's probes from a file or a run."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kgbias.errors import UsageError
from kgbias.graph.selection import Selecting, Selection, select
from kgbias.graph.store import StoredRun
from kgbias.io.progress import Progress, working
from kgbias.parameters import Names, as_names
from kgbias.study.run import Run
from kgbias.study.scorers import ScorerOptions, opened_scorer
from kgbias.study.view import PathLike

if TYPE_CHECKING:
    from kgbias.probe.build import Judge, SofaSet, Stereotypes


def build_sofa(
    source: PathLike | Run,
    output: PathLike | None = None,
    *,
    identities: str | None = "sofa",
    models: Names = (),
    acceptability: str | None = "offline",
    min_acceptability: float = 0.5,
    cut: float = 0.05,
    column: str | None = None,
    progress: Progress | bool | None = None,
    selection: Selecting | None = None,
    **opening: Unpack[ScorerOptions],
) -> "SofaSet":
    """Make a data set of probes as SoFa was made: stereotypes brought into one form and filtered,
    each after every identity of its category (Marchiori Manerba et al. 2023, section 3.1 and
    appendix B; `kgbias.probe.build` says how each step is done).

    Args:
        source: your copy of SBIC (CSV), a CSV or TSV with a column statement and optionally
            category, a text file with a stereotype in each line, or a run: its statements that
            count.
        output: a folder for statements.csv, probes.csv, data-statement.md and manifest.json; None:
            nothing is written.
        identities: "sofa" (the 407 of the paper), a file (see `kgbias.gather_sets`), or None: the
            groups of the run.
        models: specs of the models whose mean perplexity cuts off the least likely statements;
            without one this filter is left out. The paper takes the models that it tests.
        acceptability: the scorer that says whether a statement is good English: offline, or as in
            the paper hf:textattack/distilbert-base-uncased-CoLA:LABEL_1; None: leave it out.
        min_acceptability: from which value a statement is kept.
        cut: the share of the least likely statements that is cut off.
        column: the column of a table that holds the stereotypes.
        progress: as for `kgbias.open`.
        selection: of a run, which statements count (`arm`, `min_acceptability`, ...).
        opening: how the models are opened, as for `kgbias.open_scorer`.

    Raises:
        UsageError: a number out of range, or no statement is left.
        DataError: a file that cannot be read.
        MissingExtra: the extra `reader` (spaCy and its English model) is not installed.
    """
    from kgbias.models.english import load
    from kgbias.probe.build import Rules, construct, read_stereotypes
    from kgbias.probe.sets import read_identities

    if identities is None and not isinstance(source, Run):
        raise UsageError("`identities` are needed: a file has no groups of its own")
    parser = load("tagger", "parser", "attribute_ruler", "lemmatizer")
    groups: Mapping[str, Sequence[str]] = {}
    targets: list[str] = []
    if isinstance(source, Run):
        if column is not None:
            raise UsageError("`column` is of a table, not of a run")
        groups = _groups(source.stored)
        targets = [name for g in source.stored.groups for name in (g.name, *g.variants)]
        found = _of_run(source.stored, identities == "sofa", Selection(**(selection or {})))
    else:
        found = read_stereotypes(Path(source), column)
    if identities is not None:
        groups = read_identities(identities)
    targets += [name for names in groups.values() for name in names]
    settings = {
        "identities": identities or "the run's", "models": list(as_names(models)),
        "acceptability": acceptability, "min_acceptability": min_acceptability, "cut": cut,
    }  # fmt: skip
    with working(progress) as told, ExitStack() as opened:
        scorers = []
        for spec in as_names(models):
            scorers.append(scorer := opened_scorer(spec, opening, told))
            if hasattr(scorer, "close"):
                opened.enter_context(closing(scorer))
        built = construct(
            found,
            groups,
            Rules(parser, targets),
            judge=_judge(acceptability),
            threshold=min_acceptability,
            scorers=scorers,
            cut=cut,
            settings=settings,
            progress=told,
        )
        if output is not None:
            built.write(Path(output), progress=told)
    return built


def _judge(spec: str | None) -> "Judge | None":
    if spec in (None, "none"):
        return None
    from kgbias.measure.scorers import load_scorer

    scorer = load_scorer("acceptability", spec)
    return lambda texts: [j.value if j else 0.0 for j in scorer.score(texts)]


def _groups(run: StoredRun) -> dict[str, list[str]]:
    """The groups of a run by category."""
    found: dict[str, list[str]] = {}
    for group in run.groups:
        found.setdefault(group.category, []).append(group.name)
    return found


def _of_run(run: StoredRun, renamed: bool, selection: Selection) -> "Stereotypes":
    from kgbias.probe.build import CRAWLED, mapped

    category = {group.id: group.category for group in run.groups}
    said = (
        (category[t.group_id], f"{t.predicate} {t.object}") for t in select(run, selection).triples
    )
    return mapped(said, CRAWLED if renamed else {}, f"the run {run.name}", others=True)
