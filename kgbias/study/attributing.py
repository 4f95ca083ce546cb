"""Which words drive the scores of a run's statements."""

from kgbias.graph.types import Attribution
from kgbias.names import Names, as_names
from kgbias.study import records
from kgbias.study.rows import Rows
from kgbias.study.view import RunView


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
            measure: regard, toxicity, identity_attack, acceptability, warmth or competence; several
                as a list.
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
