"""Which words drive the scores of a run's statements."""

from typing import TYPE_CHECKING, Any, Unpack

from kgbias.errors import UsageError
from kgbias.graph.between import is_swapped
from kgbias.graph.selection import Selecting, Selection
from kgbias.graph.types import Attribution, Metric
from kgbias.parameters import Names, as_names
from kgbias.study import records
from kgbias.study.rows import Rows
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.measure.attributed import Deletion, WordEffect

_WORDS = ("measure", "method", "cell", "statements", "word", "n", "effect", "total")
_CURVES = ("measure", "method", "removed", "n", "drop", "low", "high")


class Attributing(RunView):
    """Which words drive the scores of a run's statements; a part of `Run`."""

    def attribute(
        self,
        measure: Names = ("regard", "toxicity"),
        *,
        method: Names = ("occlusion",),
        scorer: str | None = None,
        top: int = 20,
        search: str | None = None,
        everything: bool = False,
        device: str = "auto",
    ) -> Rows[Attribution]:
        """Find which words drive a score.

        Args:
            measure: a name of `kgbias.MEASURES`; several as a list.
            method: how, several as a list. "occlusion", which any scorer can do: the score of the
                whole sentence minus the score without the word. By gradients, which the offline
                heads and Hugging Face classifiers have: "integrated", integrated gradients, in
                units of the score; "gradient", gradient x input, in log-odds; and of the offline
                heads alone "cam", class activation maps, in log-odds. All give effects for the same
                words; above 0, a word raises the score.
            scorer: as for `measure` (None: offline).
            top: how many of the most extreme statements of each measure.
            search: instead, the statements that hold this text, in any case.
            everything: instead, every statement.
            device: where the scorer runs, as for `measure`.
        """
        from kgbias.measure.attribution import attribute, chosen
        from kgbias.measure.scorers import load_scorer

        run, found = self.stored, []
        with self._study.working() as progress:
            for name in as_names(measure):
                triples = chosen(run, name, top=top, search=search, everything=everything)
                loaded = load_scorer(name, scorer, device=device)
                found += attribute(run, [loaded], triples, progress, as_names(method))
        return records.attribution_rows(run, found)

    def attributed_words(
        self,
        measure: Names = (),
        *,
        method: Names = (),
        against: str | None = None,
        top: int = 10,
        **selection: Unpack[Selecting],
    ) -> Rows["WordEffect"]:
        """The words that drive the scores most, with counts, in what `attribute` found so far about
        the statements that count (`counted`): of each group; or, with `against`, of each cell of
        the confusion between two scorers' labels, which shows the words behind what only one of
        them calls negative or toxic.

        Args:
            measure: only these (none: all that were attributed).
            method: only these.
            against: the other scorer, by its name or NAME@VERSION, as `agreement` has it; a
                person's labels are one, read as "scores:FILE". Both must have judged a statement.
            top: how many words of each group or cell.
            selection: as for `counted`.
        """
        from kgbias.measure.attributed import word_effects
        from kgbias.measure.attribution import METHODS, latest

        if unknown := [m for m in as_names(method) if m not in METHODS]:
            raise UsageError(f"no `method` {unknown[0]!r}: there are {', '.join(METHODS)}")
        run = self.stored
        groups = {t.id: t.group for t in self._said(Selection(**selection)).triples}
        found = [
            a
            for a in latest(run.attributions())
            if a.triple_id in groups
            and (not measure or a.metric.measure in as_names(measure))
            and (not method or a.method.partition("@")[0] in as_names(method))
        ]
        if not found:
            raise UsageError(f"run {run.name!r} has no such word effects: attribute it first")
        if against is None:
            return Rows(word_effects(found, groups, top=top), columns=_WORDS)
        rows: list[WordEffect] = []
        for metric in dict.fromkeys(a.metric for a in found):
            own = [a for a in found if a.metric == metric]
            cells = self._confusion(metric, against, [a.triple_id for a in own])
            rows += word_effects(own, cells, top=top)
        return Rows(rows, columns=_WORDS)

    def deletion(
        self,
        measure: Names = ("regard", "toxicity"),
        *,
        method: Names = ("occlusion", "integrated"),
        scorer: str | None = None,
        top: int = 100,
        removed: int = 3,
        seed: int = 0,
        device: str = "auto",
    ) -> Rows["Deletion"]:
        """How far the attributions of `attribute` can be relied on: the mean drop of the score when
        the most effective words of the `top` most extreme statements are removed one by one, by
        each method and in random order (`kgbias.measure.attributed.deletion_curves`).

        Args:
            measure: as for `attribute`; the statements are scored again without the words.
            method: as for `attribute`.
            scorer: as for `attribute`.
            top: as for `attribute`.
            device: as for `attribute`.
            removed: up to how many words; only sentences that have more take part.
            seed: of the random orders.
        """
        from kgbias.measure.attributed import deletion_curves
        from kgbias.measure.attribution import METHODS
        from kgbias.measure.scorers import load_scorer

        if removed < 1:
            raise UsageError("`removed` must be 1 or more")
        found: list[Deletion] = []
        for name in as_names(measure):
            rows = self.attribute(name, method=method, scorer=scorer, top=top, device=device)
            by_method = {
                m: sorted((a for a in rows if a.method == METHODS[m]), key=lambda a: a.triple_id)
                for m in as_names(method)
            }
            words = {
                m: [(list(a.tokens), list(a.effects), a.score) for a in by_method[m]]
                for m in by_method
            }
            loaded = load_scorer(name, scorer, device=device)
            found += deletion_curves(loaded, words, removed=removed, seed=seed)
        return Rows(found, _curve_record, _CURVES)

    def _confusion(self, metric: Metric, against: str, triples: list[str]) -> dict[str, str]:
        """The cell of each triple that both scorers judged."""
        run = self.stored
        scorers = [m for m in run.scorers() if not is_swapped(m)]
        others = [m for m in scorers if m.measure == metric.measure and m != metric]
        named = [m for m in others if against in (m.scorer, f"{m.scorer}@{m.version}")]
        if len(named) != 1:
            there = ", ".join(f"{m.scorer}@{m.version}" for m in others) or "none"
            raise UsageError(
                f"`against` must name one other scorer of {metric.measure}, not {against!r}: "
                f"there is {there}"
            )
        own, other = run.scores(metric, triples), run.scores(named[0], triples)
        return {
            id: f"{own[id].label} / {other[id].label}"
            for id in triples
            if id in own and id in other
        }


def _curve_record(row: "Deletion") -> dict[str, Any]:
    drop = row.drop
    cells = (row.measure, row.method, row.removed, drop.n, drop.value, drop.low, drop.high)
    return dict(zip(_CURVES, cells, strict=True))
