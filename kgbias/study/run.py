"""A run of a study, and everything that can be done with it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypedDict, Unpack

from kgbias.errors import MissingExtra, UsageError
from kgbias.graph.selection import Selection, need_statements
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import CONTENT_WARNING
from kgbias.io.progress import Progress
from kgbias.io.rows import Rows, file_rows
from kgbias.models.base import Completer, PromptForm
from kgbias.parameters import Names, PathLike, SelectionOptions, as_names
from kgbias.study.context import Context
from kgbias.study.measuring import RunMeasuring
from kgbias.study.probing import RunProbing
from kgbias.study.run_contents import RunContents

if TYPE_CHECKING:
    import networkx as nx

    from kgbias.ask import QuestionAnswer
    from kgbias.ask.retrieval import CosineIndex
    from kgbias.ask.text2cypher import CypherAnswer
    from kgbias.explore import Explorer
    from kgbias.graph.prompting import LoggedPrompter
    from kgbias.io.templates import PromptTemplate
    from kgbias.study.beliefs import RunBeliefs
    from kgbias.study.review import Review

DEFAULT_TOP_STATEMENTS = 20


class AskOptions(TypedDict, total=False):
    """How to ask a model: the `form` of the prompts ("chat" or "completion"), their folder
    (`prompts`), `temperature`, `seed`, and how to open a spec (see `kgbias.open_model`)."""

    form: PromptForm
    prompts: PathLike
    temperature: float
    seed: int
    base_url: str | None
    dtype: str | None


class Run(RunContents, RunMeasuring, RunProbing):
    """A crawl or an import in a study's store.

    Made by the methods of `Study`. Methods that compute write their results to the store and return
    them; methods that only read (`triples`, `groups`, `figure` ...) read the store each time. All
    of it belongs to the model that was asked: statements are what a model says, not evidence of
    what is true of anyone.
    """

    @property
    def beliefs(self) -> "RunBeliefs":
        """What follows from the beliefs that `evidence` found: `beliefs.floor()`, `groups`,
        `models`, `agreement` and `replicate`."""
        from kgbias.study.beliefs import RunBeliefs

        return RunBeliefs(self)

    def review(self, *, by: str | None = None) -> "Review":
        """Begin a review by hand: restore answers that were rejected by mistake, and reject
        statements that should not count (appendix A.3 of Salinas et al. 2023). Decisions are rows
        with their author and time, and can be taken back. `measure` again afterwards.

        Args:
            by: who decides (None: the user's name).
        """
        from kgbias.study.review import Review

        return Review(self.stored, by)

    def ask(
        self,
        question: str,
        *,
        model: str | Completer | None = None,
        top: int = DEFAULT_TOP_STATEMENTS,
        encoder: str | None = "minilm",
        device: str = "auto",
        asking: AskOptions | None = None,
        **selection: Unpack[SelectionOptions],
    ) -> "QuestionAnswer":
        """Answer a question from the statements that count (`counted_statements`), with sources.

        Without a model the answer is extractive: the statements that the question is about, with
        counts and the figures of their groups. With a model, it writes sentences from these
        statements; a sentence that cites none, or a statement that does not exist, is marked. If
        the graph holds nothing about the question, the answer says so, and no model is asked.

        Args:
            question: in English; groups are found by their names and synonyms, in any case.
            model: a spec or an open model that writes the answer; its answers are kept in the log.
            top: the maximum number of statements about each named group, or in all if none is
                named.
            encoder: the model whose sentence embeddings find statements that say the same in other
                words; None or "none": only shared words. Without its package, only words decide
                too, and a remark says so.
            device: where the encoder and a local model run, as for `measure`.
            asking: how to ask the model; see `kgbias.study.run.AskOptions`.
            selection: which statements count, as in `counted_statements`.
        """
        from kgbias.ask import build_extractive_answer, retrieve_statements
        from kgbias.ask.answer import generate_answer
        from kgbias.ask.retrieval import add_neighbours

        _check_question(question, model, asking)
        if top < 1:
            raise UsageError("`top` must be at least 1")
        criteria = Selection(**selection)
        counted = self._select_statements(criteria)
        with self._context.working() as progress:
            index = _sentence_index(self._context, self.stored, encoder, device)
            retrieval = retrieve_statements(
                self.stored, counted, question, index=index, top=top, selection=criteria
            )
            try:
                retrieval = add_neighbours(self.stored, counted, retrieval)
            except MissingExtra as error:
                self._context.remark(f"without the statements around these: {error}")
            if model is None:
                return build_extractive_answer(question, self.name, retrieval)
            with _open_prompter(
                self.stored.store, model, device, asking or {}, progress
            ) as prompting:
                return generate_answer(
                    question, self.name, retrieval, prompting.prompter, prompting.templates
                )

    def ask_in_cypher(
        self,
        question: str,
        model: str | Completer,
        *,
        device: str = "auto",
        asking: AskOptions | None = None,
    ) -> "CypherAnswer":
        """Have a model write a question as a Cypher query against the graph's schema, and run it
        read-only, under the guard of `Study.cypher`. A query that cannot be run is shown to the
        model once more, with the error.

        The rows answer the query, not necessarily what the question meant: read the query. It does
        not follow `counted_statements`. Parameters as in `ask`.

        Args:
            question: the question.
            model: the spec of the model, or an open one.
            device: where it runs: auto, cpu, cuda or mps.
            asking: how to ask the model, as in `ask`.
        """
        from kgbias.ask.text2cypher import ask_in_cypher

        _check_question(question, model, asking)
        with (
            self._context.working() as progress,
            _open_prompter(self.stored.store, model, device, asking or {}, progress) as prompting,
        ):
            return ask_in_cypher(self.stored, question, prompting.prompter, prompting.templates)

    def to_networkx(self, **selection: Unpack[SelectionOptions]) -> "nx.MultiDiGraph[str]":
        """The statements that count (`counted_statements`) as a `networkx.MultiDiGraph` from groups
        to objects, by their names. Nodes have `kind` (group, object), `label`, `id` and, for a
        group, `category`; edges `predicate`, `count`, `arm` and each measure
        (`kgbias.graph.structure.to_networkx`). `graph.graph` has the run, the model and its
        revision, and a warning about the content."""
        from kgbias.graph.structure import key_by_name, to_networkx

        category = {g.id: g.category for g in self._record.groups}
        graph = key_by_name(
            to_networkx(self._select_statements(Selection(**selection)).triples, category)
        )
        graph.graph.update(
            name=self.name,
            run=self.name,
            model=self.model.title,
            revision=self.model.revision,
            content_warning=CONTENT_WARNING,
        )
        return graph

    def report(self, path: PathLike = "report.html", **selection: Unpack[SelectionOptions]) -> Path:
        """Write the report: figures, an interactive graph and every statement that counts
        (`counted_statements`) in one HTML page that works offline. Returns its path.
        `Study.report` shows several runs side by side.

        Args:
            path: the page.
            selection: which statements count, as for `counted_statements`.
        """
        from kgbias.report import write_report

        need_statements(self.stored)
        with self._context.working(whole=True) as progress:
            write_report(
                self.stored, Path(path), selection=Selection(**selection), progress=progress
            )
        return Path(path)

    def summarise(
        self, path: PathLike = "summary.md", **selection: Unpack[SelectionOptions]
    ) -> Path:
        """Write a page that can be handed in: what was asked of which model and how, refusals,
        findings with their tests, what was not shown and how large it could be, the limits, and
        twenty statements drawn at random. It is Markdown, or PDF if the name of the file ends in
        .pdf. The same store gives the same text. A crawl whose prompts were all refused has one,
        too. Returns its path.

        Args:
            path: the page.
            selection: which statements count, as for `counted_statements`.
        """
        from kgbias.report.summary import write_summary

        # A model that declines everything has said something, too.
        if self.kind != "crawl" or not self.stored.store.summary(self.id).refused:
            need_statements(self.stored)
        with self._context.working(whole=True) as progress:
            write_summary(
                self.stored, Path(path), selection=Selection(**selection), progress=progress
            )
        return Path(path)

    def figures(
        self,
        folder: PathLike = "figures",
        *,
        correction: str = "holm",
        **selection: Unpack[SelectionOptions],
    ) -> Rows[Path]:
        """Write every figure as SVG, PDF and PNG, one column wide, each with its numbers as a LaTeX
        table, and manifest.json, for the statements that count (`counted_statements`). Returns the
        files, as paths. `Study.figures` shows several runs side by side.

        Frame columns: file, folder.

        Args:
            folder: the folder.
            correction: the correction of p-values over a family of tests: "holm" or "bh".
            selection: which statements count, as for `counted_statements`.
        """
        from kgbias.report.save import save_figures

        need_statements(self.stored)
        with self._context.working(whole=True) as progress:
            files = save_figures(
                self.stored,
                Path(folder),
                correction=correction,
                selection=Selection(**selection),
                progress=progress,
            )
        return file_rows(files)

    def export(
        self,
        path: PathLike | TextIO,
        *,
        format: str | None = None,
        group: Names = (),
        predicate: str | None = None,
        topic: str | None = None,
        min_count: int = 1,
        limit: int | None = None,
        per_group: int | None = None,
        merged: bool = False,
        width: float = 7.0,
        **selection: Unpack[SelectionOptions],
    ) -> int:
        """Write the statements that count (`counted_statements`) with counts and scores, as a
        table, a graph or a picture; returns how many were written. For a run with several arms,
        tables and graphs have a row or an edge for each arm; a picture shows one arm.

        Args:
            path: the file, or for neo4j-admin the folder; or a text stream (`sys.stdout`).
            format: jsonl, csv, graphml, svg ... (None: by the file's extension, jsonl in a stream).
            group: only these groups.
            predicate: only triples with this predicate.
            topic: only triples about a topic with this text in its name.
            min_count: only statements made at least this often.
            limit: at most this many, the most frequent first; ties are spread evenly over the
                groups.
            per_group: at most this many per group, the most frequent first. Without this and
                `limit`, pictures have as many as are legible.
            merged: count near-duplicates as one.
            width: of a picture, in inches, from 3 to 20: 3.1 is a column of LaTeX's two-column
                article, 6.4 both.
            selection: which statements count, as in `counted_statements`.

        A picture of two groups has what is said of each alone on the outside and of both in the
        middle: up to eight objects in each column, those believed of a group first, then the most
        often said.

        Examples:
            >>> run.export("peoples.csv")
            10
        """
        from kgbias.export import Filters, write_export

        if not 3 <= width <= 20:
            raise UsageError(f"`width` {width:g}: it can be 3 to 20 inches")
        if not isinstance(path, str | os.PathLike) and not hasattr(path, "write"):
            raise UsageError(f"path={path!r}: that is neither a path nor a stream of text")

        filters = Filters(as_names(group), predicate, topic, min_count, limit, merged, per_group)
        output = Path(path) if isinstance(path, str | os.PathLike) else path
        need_statements(self.stored)
        with self._context.working(whole=True) as progress:
            return write_export(
                self.stored,
                output,
                format,
                filters,
                selection=Selection(**selection),
                progress=progress,
                width=width,
            )

    def explore(
        self, path: PathLike | None = None, **selection: Unpack[SelectionOptions]
    ) -> "Explorer":
        """The explorer of this run, which a notebook displays; with a `path`, it is also written to
        that file. `Study.explore` writes one for several runs, and explains `selection`.

        Args:
            path: a file for the page (None: none).
            selection: as for `Study.explore`.
        """
        from kgbias.explore import Explorer, render_page

        need_statements(self.stored)
        with self._context.working() as progress:
            page, picture = render_page(
                [self.stored], selection=Selection(**selection), progress=progress
            )
        explorer = Explorer(page, picture)
        if path is not None:
            explorer.save(path)
        return explorer

    def publish(
        self,
        folder: PathLike = "published",
        *,
        license: str = "",
        author: Names = (),
        figures: bool = False,
        **selection: Unpack[SelectionOptions],
    ) -> Rows[Path]:
        """Write the statements that count (`counted_statements`) as a data set that others can
        load, cite and
        reproduce: Parquet and JSON lines, a dataset card with a data statement, Croissant metadata,
        group figures in the schema of Every Eval Ever, a citation, the configuration and checksums.
        Returns the files, as paths.

        Frame columns: file, folder.

        The folder is written whole or not at all. `kgbias.reproduce` repeats the run from it.

        Args:
            folder: a new or empty folder.
            license: the licence of the model's outputs: an SPDX identifier, an address or words.
                Nothing is assumed: you must know it.
            author: who publishes, as named in the citation; several as a list.
            figures: also write the figures and tables of the run (as `figures` does).
            selection: which statements count, as in `counted_statements`.
        """
        from kgbias.publish import publish

        need_statements(self.stored)
        with self._context.working(whole=True) as progress:
            files = publish(
                self.stored,
                Path(folder),
                license=license,
                authors=as_names(author),
                figures=figures,
                selection=Selection(**selection),
                progress=progress,
            )
        return file_rows(files)


class _Prompting(NamedTuple):
    """A model that answers questions, and the templates of its prompts, by name."""

    prompter: "LoggedPrompter"
    templates: "dict[str, PromptTemplate]"


@contextmanager
def _open_prompter(
    store: Store, model: str | Completer, device: str, asking: AskOptions, progress: Progress
) -> Iterator[_Prompting]:
    from kgbias.ask.answer import PROMPT_PACK, TEMPLATE_VARIABLES
    from kgbias.graph.prompting import LoggedPrompter, load_prompts
    from kgbias.models import open_model

    opening: dict[str, Any] = dict(asking)
    templates = load_prompts(opening.pop("prompts", PROMPT_PACK), TEMPLATE_VARIABLES)
    prompt_options = {n: opening.pop(n) for n in ("form", "temperature", "seed") if n in opening}
    if device != "auto":
        opening["device"] = device
    with ExitStack() as opened:
        if isinstance(model, str):
            model = opened.enter_context(
                closing(open_model(model, notify=progress.note, **opening))
            )
        prompter = LoggedPrompter(model, store, progress=progress, **prompt_options)
        yield _Prompting(prompter, templates)


def _sentence_index(
    context: Context, run: StoredRun, encoder: str | None, device: str
) -> "CosineIndex | None":
    """The index of the store: if it is a server that can compare vectors, the server itself."""
    if encoder is None or encoder == "none":
        return None
    from kgbias.ask.retrieval import CosineIndex, MemoryIndex
    from kgbias.graph.stores import STORES, find_store_scheme
    from kgbias.measure.semantic_search import stored_encoder_name
    from kgbias.models.embed import SentenceVectors

    store = context.graph
    try:
        embed, name = SentenceVectors(encoder, device=device), stored_encoder_name(encoder, device)
        scheme = find_store_scheme(store.url)
        if scheme and STORES[scheme].index:
            open_index = STORES.import_part(scheme, STORES[scheme].index)
            index: CosineIndex | None = open_index(store, embed, name)
            if index is not None:
                return index
        return MemoryIndex(embed, run.vectors(name))
    except MissingExtra as error:
        context.remark(f"found only by shared words: {error}")
        return None


def _check_question(
    question: str, model: str | Completer | None, asking: AskOptions | None
) -> None:
    if not question.strip():
        raise UsageError("the question is empty")
    set_options = [name for name, value in (asking or {}).items() if value is not None]
    if model is None and set_options:
        raise UsageError(f"`{set_options[0]}` needs a model: name one with `model`")
