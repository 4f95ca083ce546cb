"""Questions to a run in plain words."""

from typing import TYPE_CHECKING, Unpack

from kgbias.errors import MissingExtra, UsageError
from kgbias.graph.selection import Selecting, Selection
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.ask import Answer
    from kgbias.ask.vectors import Index

TOP = 20


class Asking(RunView):
    """Questions to a run in plain words; a part of `Run`."""

    def ask(
        self,
        question: str,
        *,
        top: int = TOP,
        encoder: str | None = "minilm",
        device: str = "auto",
        **selection: Unpack[Selecting],
    ) -> "Answer":
        """Answer a question from the statements that count (`counted`), with its sources.

        The answer is extractive: the statements that the question is about, with counts and the
        figures of their groups. It never says more than the graph holds; where that holds nothing
        about the question, the answer says so and has no statements.

        Args:
            question: in English; groups are found by their names and synonyms, in any case.
            top: at most so many statements about each group that is named, or in all where none is.
            encoder: the model whose sentence embeddings find statements that say the same in other
                words; None or "none": shared words alone. Without its package, words alone decide
                too, and a line says so.
            device: where the encoder runs, as for `measure`.
            selection: which statements count, as in `counted`.
        """
        from kgbias.ask import extractive, retrieve
        from kgbias.ask.neighbours import with_neighbours

        if not question.strip():
            raise UsageError("a question needs words")
        if top < 1:
            raise UsageError("`top` must be at least 1")
        which = Selection(**selection)
        counted = self._said(which)
        with self._study.working():
            index = self._index(encoder, device)
            found = retrieve(self.stored, counted, question, index=index, top=top, selection=which)
            try:
                found = with_neighbours(self.stored, counted, found)
            except MissingExtra as error:
                self._study._remark(f"without the statements around these: {error}")
        return extractive(question, self.name, found)

    def _index(self, encoder: str | None, device: str) -> "Index | None":
        if encoder is None or encoder == "none":
            return None
        from kgbias.ask.vectors import InMemory
        from kgbias.models.sentences import SentenceVectors

        try:
            return InMemory(SentenceVectors(encoder, device=device))
        except MissingExtra as error:
            self._study._remark(f"found by shared words alone: {error}")
            return None
