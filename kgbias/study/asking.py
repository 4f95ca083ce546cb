"""Questions to a run in plain words."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from kgbias.errors import MissingExtra, UsageError
from kgbias.graph.selection import Selecting, Selection
from kgbias.io.progress import Progress
from kgbias.models.base import Completer, Form
from kgbias.study.context import PathLike
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.ask import Answer
    from kgbias.ask.retrieve import Index
    from kgbias.ask.text2cypher import CypherAnswer
    from kgbias.graph.prompted import Prompted
    from kgbias.io.templates import Template

TOP = 20


class Asked(TypedDict, total=False):
    """How a model is asked: the `form` of the prompts ("chat" or "completion"), their folder
    (`prompts`), `temperature`, `seed`, and how a spec is opened (see `kgbias.open_model`)."""

    form: Form
    prompts: PathLike
    temperature: float
    seed: int
    base_url: str | None
    dtype: str | None


class Asking(RunView):
    """Questions to a run in plain words; a part of `Run`."""

    def ask(
        self,
        question: str,
        *,
        model: str | Completer | None = None,
        top: int = TOP,
        encoder: str | None = "minilm",
        device: str = "auto",
        asked: Asked | None = None,
        **selection: Unpack[Selecting],
    ) -> "Answer":
        """Answer a question from the statements that count (`counted`), with its sources.

        Without a model the answer is extractive: the statements that the question is about, with
        counts and the figures of their groups. With one, the model writes sentences from these
        statements; a sentence that cites none of them, or one that there is not, is marked. Where
        the graph holds nothing about the question, the answer says so, and no model is asked.

        Args:
            question: in English; groups are found by their names and synonyms, in any case.
            model: a spec or an open model that writes the answer; its answers are kept in the log.
            top: at most so many statements about each group that is named, or in all where none is.
            encoder: the model whose sentence embeddings find statements that say the same in other
                words; None or "none": shared words alone. Without its package, words alone decide
                too, and a line says so.
            device: where the encoder and a local model run, as for `measure`.
            asked: how the model is asked; see `Asked`.
            selection: which statements count, as in `counted`.
        """
        from kgbias.ask import extractive, retrieve
        from kgbias.ask.generate import generated
        from kgbias.ask.retrieve import with_neighbours

        _check(question, model, asked)
        if top < 1:
            raise UsageError("`top` must be at least 1")
        which = Selection(**selection)
        counted = self._said(which)
        with self._context.working() as progress:
            index = self._index(encoder, device)
            found = retrieve(self.stored, counted, question, index=index, top=top, selection=which)
            try:
                found = with_neighbours(self.stored, counted, found)
            except MissingExtra as error:
                self._context.remark(f"without the statements around these: {error}")
            if model is None:
                return extractive(question, self.name, found)
            with self._prompted(model, device, asked or {}, progress) as (opened, prompts):
                return generated(question, self.name, found, opened, prompts)

    def ask_in_cypher(
        self,
        question: str,
        model: str | Completer,
        *,
        device: str = "auto",
        asked: Asked | None = None,
    ) -> "CypherAnswer":
        """Let a model write a question as a Cypher query against the shape of the graph, and run it
        read-only, under the guard of `Study.cypher`. A query that cannot be run is shown to the
        model once, with the error.

        The rows are what the query says, not what the question meant: read the query. It does not
        follow `counted`. The parameters are those of `ask`.
        """
        from kgbias.ask.text2cypher import ask_in_cypher

        _check(question, model, asked)
        with (
            self._context.working() as progress,
            self._prompted(model, device, asked or {}, progress) as (opened, prompts),
        ):
            return ask_in_cypher(self.stored, question, opened, prompts)

    @contextmanager
    def _prompted(
        self, model: str | Completer, device: str, asked: Asked, progress: Progress
    ) -> "Iterator[tuple[Prompted, dict[str, Template]]]":
        from kgbias.ask.generate import PROMPTS, TEMPLATES
        from kgbias.graph.prompted import Prompted, load_prompts
        from kgbias.models import open_model

        opening: dict[str, Any] = dict(asked)
        prompts = load_prompts(opening.pop("prompts", PROMPTS), TEMPLATES)
        how = {n: opening.pop(n) for n in ("form", "temperature", "seed") if n in opening}
        if device != "auto":
            opening["device"] = device
        with ExitStack() as opened:
            if isinstance(model, str):
                model = opened.enter_context(
                    closing(open_model(model, notify=progress.note, **opening))
                )
            yield Prompted(model, self.stored.store, progress=progress, **how), prompts

    def _index(self, encoder: str | None, device: str) -> "Index | None":
        """The index of the store: on a Neo4j server its own, where neo4j-graphrag is installed."""
        if encoder is None or encoder == "none":
            return None
        from kgbias.ask.retrieve import InMemory
        from kgbias.models.embed import SentenceVectors

        store = self.stored.store
        try:
            embed = SentenceVectors(encoder, device=device)
            if store.url.partition("://")[1]:
                from kgbias.ask.neo4j_index import InNeo4j
                from kgbias.graph.neo4j import Neo4jStore

                if isinstance(store, Neo4jStore):
                    try:
                        return InNeo4j(store, embed)
                    except MissingExtra as error:
                        self._context.remark(f"compared here and not on the server: {error}")
            return InMemory(embed)
        except MissingExtra as error:
            self._context.remark(f"found by shared words alone: {error}")
            return None


def _check(question: str, model: str | Completer | None, asked: Asked | None) -> None:
    if not question.strip():
        raise UsageError("a question needs words")
    given = [name for name, value in (asked or {}).items() if value is not None]
    if model is None and given:
        raise UsageError(f"`{given[0]}` belongs to a model: name one with `model`")
