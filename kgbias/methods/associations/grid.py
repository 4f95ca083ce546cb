"""The parameter study of "Mind Your Bias" (2022) in one run: each model is loaded once, each text
embedded once, each prediction made once, and what a store holds is not computed again.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import groupby, product
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import canonical_json
from kgbias.ids import content_id
from kgbias.io.columns import Column
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.reading import read_error
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.methods.associations.contexts import (
    ContextSource,
    CorpusContexts,
    Spans,
    TemplateContexts,
)
from kgbias.methods.associations.distributed_model import open_language_model
from kgbias.methods.associations.graph import build_edges, save_results
from kgbias.methods.associations.lpbs import Predictor
from kgbias.methods.associations.methods import ModelSource, run_method
from kgbias.methods.associations.result import Association, spread_sizes
from kgbias.methods.associations.sets import AssociationTest, WordSet, find_tests
from kgbias.models.base import ModelInfo
from kgbias.models.embed import LAST_LAYER, Encoder, Encoding, Span, VectorSource, open_encoder
from kgbias.models.predict import FilledTemplate, Prediction
from kgbias.parallel import Executor
from kgbias.stats.inference import benjamini_hochberg, holm

TESTS = (
    "C1",
    "C3-name",
    "C3-term",
    "C6-name",
    "C6-term",
    "C9-name",
    "Dis",
    "Occ-name",
    "Occ-term",
    "I1-name",
    "I1-term",
    "I2-name",
    "I2-term",
)
"""The tests of the paper, without C9-term, which has fewer than 8 words per set."""
METHODS = ("s-seat", "w-seat", "ceat", "lpbs", "ceat-lpbs")
WORD_CHOICES = ("full", "reduced", "simplified", "nouns")
"""Word sets; "nouns" are the simplified ones without adjective forms, of LPBS alone (table 6)."""
SENTENCE_ENCODING = "sentence"
ENCODINGS = ("word-average", "word-first", "word-last", SENTENCE_ENCODING)
WORDS_APART = (6, 12, 18)
"""The largest number of words between target and attribute in a corpus (figure 4)."""

_ENCODINGS_BY_METHOD = {
    "s-seat": (SENTENCE_ENCODING,),
    "w-seat": ENCODINGS[:3],
    "ceat": ENCODINGS,
    "lpbs": ("",),
    "ceat-lpbs": ("",),
}


@dataclass(frozen=True, slots=True)
class GridCell:
    """One test by one method in one setting on one model (a spec). `contexts` is templates or
    corpus; `encoding` "sentence" is the model's own, "" if the method has none; `apart` is the
    number of words between the stimuli of LPBS in a corpus, 0 elsewhere."""

    model: str
    test: str
    method: str
    contexts: str
    encoding: str
    words: str
    apart: int = 0

    @property
    def concept(self) -> str:
        """The test without its kind of targets: C3 for C3-name."""
        return self.test.removesuffix("-name").removesuffix("-term")

    @property
    def targets(self) -> str:
        """ "names" or "terms", "" if the test has only one version."""
        return {"-name": "names", "-term": "terms"}.get(self.test[-5:], "")

    def key(self, rest: Mapping[str, Any]) -> str:
        """The key that the cell is stored under, from everything that can change its result."""
        return content_id("grid cell", canonical_json(asdict(self) | dict(rest)))

    def __str__(self) -> str:
        apart = f"{self.apart} apart" if self.apart else ""
        parts = (self.method, self.contexts, self.encoding, self.words, apart)
        return f"{self.test} on {self.model}: {', '.join(part for part in parts if part)}"


def accepted_encodings(methods: Iterable[str]) -> set[str]:
    """The encodings that these methods accept."""
    return {encoding for method in methods for encoding in _ENCODINGS_BY_METHOD[method] if encoding}


def find_grid_tests(names: Sequence[str]) -> list[AssociationTest]:
    """The tests of a grid: those of the paper, or of these names. C3 is both C3-name and C3-term.
    Raises UsageError for an unknown one."""
    if not names:
        return find_tests(TESTS)
    tests_found: dict[str, AssociationTest] = {}
    for name in names:
        versions = find_tests([name])
        first_name = versions[0].name
        if not name.lower().endswith(("name", "term")) and first_name.endswith("-name"):
            versions += find_tests([first_name.removesuffix("name") + "term"])
        tests_found |= {test.name: test for test in versions if not test.has_few_words}
    if not tests_found:
        raise UsageError("these tests have fewer than 8 words per set")
    return list(tests_found.values())


def iter_cells(
    models: Iterable[str],
    tests: Sequence[AssociationTest],
    methods: Sequence[str] = METHODS,
    *,
    corpus: bool = False,
    encodings: Sequence[str] = ENCODINGS,
    words: Sequence[str] = WORD_CHOICES,
    targets: Sequence[str] = ("names", "terms"),
) -> Iterator[GridCell]:
    """Every valid combination, model by model and test by test: s-SEAT takes sentences, w-SEAT
    words, CEAT both, and LPBS neither; simplified sets are those of Kurita et al. (2019)."""
    for model, test in product(models, tests):
        sets = [
            word_choice
            for word_choice in words
            if test.simplified or word_choice not in ("simplified", "nouns")
        ]
        for method, contexts, word_choice in product(
            methods, ("templates", "corpus") if corpus else ("templates",), sets
        ):
            if word_choice == "nouns" and not (
                method == "lpbs" and contexts == "templates" and test.a.adjectives
            ):
                continue
            for encoding in _ENCODINGS_BY_METHOD[method]:
                cell = GridCell(model, test.name, method, contexts, encoding, word_choice)
                if (cell.targets and cell.targets not in targets) or (
                    encoding and encoding not in encodings
                ):
                    continue
                if encoding or contexts == "templates":
                    yield cell
                else:
                    yield from (replace(cell, apart=apart) for apart in WORDS_APART)


class EmbeddingCache:
    """An encoder that keeps the vectors it was asked for until told to forget them."""

    def __init__(self, encoder: Encoder) -> None:
        self.info = encoder.info
        self._encoder = encoder
        self._vectors: dict[tuple[Span, VectorSource], NDArray[np.float32]] = {}

    @property
    def sentence_encoding(self) -> Encoding:
        return self._encoder.sentence_encoding

    @property
    def sentence_encodings(self) -> tuple[Encoding, ...]:
        return self._encoder.sentence_encodings

    @property
    def layers(self) -> int:
        return self._encoder.layers

    def prepare(self, spans: Sequence[Span], places: Sequence[VectorSource]) -> None:
        """Compute the vectors in all encodings at once."""
        for place, table in self._encoder.embed_many(spans, places).items():
            self._vectors |= {(span, place): row for span, row in zip(spans, table, strict=True)}

    def embed(
        self, spans: Sequence[Span], encoding: Encoding, layer: int = LAST_LAYER
    ) -> NDArray[np.float32]:
        return self.embed_many(spans, [(encoding, layer)])[encoding, layer]

    def embed_many(
        self, spans: Sequence[Span], wanted_places: Iterable[VectorSource]
    ) -> dict[VectorSource, NDArray[np.float32]]:
        """As `Encoder.embed_many`, without computing kept vectors again."""
        places = list(dict.fromkeys(wanted_places))
        new = [
            span
            for span in dict.fromkeys(spans)
            if any((span, place) not in self._vectors for place in places)
        ]
        if new:
            self.prepare(new, places)
        return {place: np.array([self._vectors[s, place] for s in spans]) for place in places}

    def forget(self) -> None:
        """Free the memory."""
        self._vectors.clear()


class PredictionCache:
    """A predictor that makes each prediction once."""

    def __init__(self, predictor: Predictor) -> None:
        self.info, self.kind = predictor.info, predictor.kind
        self._predictor = predictor
        self._predictions: dict[FilledTemplate, Prediction] = {}

    def is_token(self, word: str) -> bool:
        return self._predictor.is_token(word)

    def predict(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]:
        new_sentences = [
            sentence for sentence in dict.fromkeys(sentences) if sentence not in self._predictions
        ]
        self._predictions |= dict(
            zip(new_sentences, self._predictor.predict(new_sentences), strict=True)
        )
        return [self._predictions[sentence] for sentence in sentences]


@dataclass(frozen=True)
class CorpusCache:
    """A corpus that is searched once for each word."""

    corpus: CorpusContexts
    _spans: dict[str, list[Span]] = field(default_factory=dict)

    def find_spans(self, test: AssociationTest, model: ModelInfo) -> Spans:
        words = {word for word_set in test.sets.values() for word in word_set.words}
        if new_words := words - self._spans.keys():
            self._spans.update(self.corpus.search(new_words))
        return {
            role: {word: self._spans[word] for word in word_set.words}
            for role, word_set in test.sets.items()
        }

    def describe(self) -> dict[str, Any]:
        return self.corpus.describe()


MAX_GRID_CONTEXTS = 100
"""Texts per word from a corpus; the paper takes 1,000 and finds that more change nothing."""
DEFAULT_GRID_SAMPLES = 9_999
DEFAULT_GRID_DRAWS = 1_000

GridRow = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """Which cells are wanted, and how each is computed: `parameters` are those of
    `associate` (`samples`, `draws`, `seed`, `layer`, `most`, `window`)."""

    tests: tuple[AssociationTest, ...]
    cells: tuple[GridCell, ...]
    corpus: Path | None
    parameters: Mapping[str, Any]

    @cached_property
    def by_name(self) -> Mapping[str, AssociationTest]:
        return {test.name: test for test in self.tests}

    @cached_property
    def corpus_hash(self) -> str:
        """A hash of the corpus: a different corpus gives different cells."""
        if self.corpus is None:
            return ""
        try:
            return sha256(self.corpus.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise read_error(self.corpus, error) from error

    @cached_property
    def _corpus_contexts(self) -> CorpusCache:
        if self.corpus is None:
            raise UsageError("the grid has no corpus")
        how = {
            name: self.parameters[name]
            for name in ("most", "window", "seed")
            if name in self.parameters
        }
        return CorpusCache(CorpusContexts(self.corpus, **how))

    def context_source(self, contexts: str) -> ContextSource:
        """Where words stand when they are embedded: templates or the corpus."""
        return self._corpus_contexts if contexts == "corpus" else TemplateContexts()

    def key(self, cell: GridCell, info: ModelInfo) -> str:
        """The key that a cell is stored under."""
        corpus = self.corpus_hash if cell.contexts == "corpus" else ""
        test = self.by_name[cell.test].id
        return cell.key(
            {"test_words": test, "weights": info.id, "corpus": corpus, **self.parameters}
        )


@dataclass(frozen=True, slots=True, repr=False)
class GridCost(Result):
    """The cost of a grid: `cells` in all and those already `done`, by method; `texts` to embed and
    `predictions` to make (with full sets), by model."""

    cells: Mapping[str, int]
    done: Mapping[str, int]
    texts: Mapping[str, int]
    predictions: Mapping[str, int]

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The methods. Columns: method, cells, done."""
        rows = [
            {"method": m, "cells": n, "done": self.done.get(m, 0)} for m, n in self.cells.items()
        ]
        return Rows(rows, ("method", Column("cells", "d"), Column("done", "d")))

    def heading(self) -> str:
        texts, predictions = sum(self.texts.values()), sum(self.predictions.values())
        return f"{pluralise(texts, 'text', spec=',')} to embed, {predictions:,} predictions"


@dataclass(frozen=True, slots=True, repr=False)
class GridResult(Result):
    """The rows of a grid, one per cell: a record of an association test with its `cell`, corrected
    over the grid; and why cells are `missing`. `computed_count` counts those that were not in the
    store before."""

    rows: tuple[GridRow, ...]
    missing: tuple[str, ...]
    computed_count: int

    def count_significant(self, alpha: float = 0.05) -> list[GridRow]:
        """How many tests are significant, by model and method: uncorrected, by Holm over the whole
        grid, and by Benjamini-Hochberg."""
        counts_found = []
        ordered_rows = sorted(self.rows, key=lambda row: (row["cell"]["model"], row["method"]))
        for (model, method), model_rows in groupby(
            ordered_rows, key=lambda row: (row["cell"]["model"], row["method"])
        ):
            rows = list(model_rows)
            significant = {
                name: sum(row[key] <= alpha for row in rows)
                for name, key in (("uncorrected", "p_test"), ("holm", "p_holm"), ("bh", "p_bh"))
            }
            counts_found.append(
                {"model": model, "method": method, "tests": len(rows), **significant}
            )
        return counts_found

    def as_rows(self) -> Rows[GridRow]:
        """The cells, with a column for the size of each word set (n_x, n_y, n_a, n_b)."""
        rows = [spread_sizes(row) for row in self.rows]
        columns = dict.fromkeys(name for row in rows for name in row)
        return Rows([{name: row.get(name) for name in columns} for row in rows], columns)

    def heading(self) -> str:
        return (
            f"{pluralise(len(self.rows), 'cell', spec=',')}, {self.computed_count:,} of them "
            f"computed now"
        )


def plan_grid(
    models: Sequence[str],
    tests: Sequence[str] = (),
    methods: Sequence[str] = (),
    *,
    contexts: Path | None = None,
    encoding: str | None = None,
    words: str | None = None,
    targets: str | None = None,
    **parameters: Any,
) -> Grid:
    """The grid of these models and tests (default: those of the paper) by these methods (default:
    all), in templates and, if `contexts` names a corpus, also in the corpus. `encoding`, `words`
    and `targets` keep one value of an axis. Raises UsageError for a value that an axis does not
    have.
    """
    if not models:
        raise UsageError("a grid needs a model")
    for name, value, allowed in (
        *(("method", method, METHODS) for method in methods),
        ("encoding", encoding, ENCODINGS),
        ("words", words, WORD_CHOICES),
        ("targets", targets, ("names", "terms")),
    ):
        if value is not None and value not in allowed:
            raise UsageError(no_such(name, value, allowed, " in a grid"))
    takes = accepted_encodings(tuple(methods) or METHODS)
    if encoding is not None and encoding not in takes:
        raise UsageError(f"`encoding` {encoding} has no effect with {', '.join(methods)}")
    if contexts is None and parameters.keys() & {"most", "window"}:
        raise UsageError("`most` and `window` have no effect without `contexts`")
    tests_found = find_grid_tests(tests)
    chosen_cells = tuple(
        iter_cells(
            dict.fromkeys(models),
            tests_found,
            tuple(methods) or METHODS,
            corpus=contexts is not None,
            encodings=(encoding,) if encoding else ENCODINGS,
            words=(words,) if words else WORD_CHOICES,
            targets=(targets,) if targets else ("names", "terms"),
        )
    )
    defaults = {
        "samples": DEFAULT_GRID_SAMPLES,
        "draws": DEFAULT_GRID_DRAWS,
        "how": "sampled",
        "seed": 0,
        "layer": LAST_LAYER,
    }
    if contexts is not None:
        defaults |= {"most": MAX_GRID_CONTEXTS}
    if not chosen_cells:
        raise UsageError("the grid is empty: no test fits what was asked for")
    return Grid(tuple(tests_found), chosen_cells, contexts, defaults | parameters)


def estimate_grid_cost(grid: Grid, store: Store | None = None, **opening: Any) -> GridCost:
    """The cost of the grid, without loading a model."""
    stored_keys = _stored_keys(store)
    by_method: dict[str, int] = {}
    done_by_method: dict[str, int] = {}
    texts: dict[str, set[str]] = {}
    predictions: dict[str, set[tuple[str, str, str]]] = {}
    for model, of_model in groupby(grid.cells, key=lambda cell: cell.model):
        info = open_encoder(model, **opening).info
        for cell in of_model:
            by_method[cell.method] = by_method.get(cell.method, 0) + 1
            if grid.key(cell, info) in stored_keys:
                done_by_method[cell.method] = done_by_method.get(cell.method, 0) + 1
                continue
            test = grid.by_name[cell.test]
            if cell.encoding:
                spans = grid.context_source(cell.contexts).find_spans(test, info).values()
                texts.setdefault(model, set()).update(
                    span.text for by_word in spans for row in by_word.values() for span in row
                )
            elif cell.contexts == "templates":
                predictions.setdefault(model, set()).update(
                    (frame, target, attribute)
                    for frame in test.frames
                    for target in (*test.x.words, *test.y.words)
                    for attribute in (*test.a.words, *test.b.words)
                )
    return GridCost(
        by_method,
        done_by_method,
        {model: len(items) for model, items in texts.items()},
        {model: len(items) for model, items in predictions.items()},
    )


def run_grid(
    grid: Grid,
    store: Store,
    run: StoredRun | None = None,
    *,
    cache: bool = True,
    device: str = "auto",
    dtype: str = "float32",
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> GridResult:
    """Compute the cells that the store lacks, writing each when it is done, then correct all
    p-values over the grid. If interrupted, the same call continues where it stopped. With an
    `executor`, its workers run the models, and the cells are the same."""
    progress = progress or SilentProgress()
    stored_keys = _stored_keys(store)
    missing: list[str] = []
    keys: list[str] = []
    computed = 0
    progress.stage("grid", len(grid.cells))
    # Cells come model by model and test by test (`iter_cells`): each model is loaded once, and only
    # one test's vectors are kept.
    for spec, of_model in groupby(grid.cells, key=lambda cell: cell.model):
        opening = {"device": device, "dtype": dtype, "notify": progress.note}
        model = _GridModel(grid, spec, cache, opening, executor)
        for _, of_test in groupby(of_model, key=lambda cell: cell.test):
            by_key = {grid.key(cell, model.encoder.info): cell for cell in of_test}
            cells_to_run = {key: cell for key, cell in by_key.items() if key not in stored_keys}
            progress.advance(len(by_key) - len(cells_to_run))
            keys += [key for key in by_key if key in stored_keys]
            try:
                model.embed(list(cells_to_run.values()))
            except DataError as error:  # a text that is too long, a word without a token
                missing += [f"{cell}: {error}" for cell in cells_to_run.values() if cell.encoding]
                cells_to_run = {
                    key: cell for key, cell in cells_to_run.items() if not cell.encoding
                }
            for key, cell in cells_to_run.items():
                started = time.perf_counter()
                try:
                    result = model.run_cell(cell)
                except (DataError, UsageError) as error:
                    missing.append(f"{cell}: {error}")
                else:
                    row = _build_row(result, cell, key, time.perf_counter() - started)
                    save_results(store, run.record if run else None, [result], [row])
                    keys.append(key)
                    computed += 1
                progress.advance()
            model.texts.forget()
    rows = _correct_rows(grid, store, run, keys)
    return GridResult(tuple(rows), tuple(missing), computed)


class _GridModel:
    """A model of the grid, with everything that is computed only once for it."""

    def __init__(
        self,
        grid: Grid,
        spec: str,
        cache: bool,
        opening: Mapping[str, Any],
        executor: Executor | None,
    ) -> None:
        self._grid = grid
        self._model = open_language_model(spec, executor, cache=cache, **opening)
        self.encoder = self._model.encoder
        self.texts = EmbeddingCache(self.encoder)

    @cached_property
    def predictor(self) -> PredictionCache:
        return PredictionCache(self._model.predictor())

    def embed(self, cells: Sequence[GridCell]) -> None:
        """Embed the texts of one test's cells, in one pass for each kind of contexts."""
        for contexts in dict.fromkeys(cell.contexts for cell in cells if cell.encoding):
            context_cells = [cell for cell in cells if cell.encoding and cell.contexts == contexts]
            places = dict.fromkeys((self._encoding(cell), self._layer) for cell in context_cells)
            spans_by_role = self._grid.context_source(contexts).find_spans(
                self._grid.by_name[context_cells[0].test], self.encoder.info
            )
            spans = [
                span
                for by_word in spans_by_role.values()
                for row in by_word.values()
                for span in row
            ]
            self.texts.prepare(spans, list(places))

    def run_cell(self, cell: GridCell) -> Association:
        """The result of a cell. Raises DataError or UsageError if it has none."""
        test, parameters = self._grid.by_name[cell.test], dict(self._grid.parameters)
        if cell.encoding:
            test = _restrict_words(test, cell.words, self.encoder)
            parameters["encoding"] = self._encoding(cell)
            parameters["contexts"] = self._grid.context_source(cell.contexts)
        else:
            parameters["words"] = cell.words
            if cell.contexts == "corpus":
                parameters |= {"contexts": self._grid.corpus, "apart": cell.apart}
        if cell.encoding or cell.contexts == "templates":
            parameters = {k: v for k, v in parameters.items() if k not in ("most", "window")}
        source = ModelSource(self.encoder, self.texts, lambda kind: self.predictor)
        result = run_method(test, cell.method, source, parameters)
        # C6-name and C6-term have the same simplified targets but need a graph node each
        return replace(result, settings={**result.settings, "grid": f"{cell.words} {cell.test}"})

    @property
    def _layer(self) -> int:
        return int(self._grid.parameters["layer"])

    def _encoding(self, cell: GridCell) -> Encoding:
        if cell.encoding == SENTENCE_ENCODING:
            return self.encoder.sentence_encoding
        return cast(Encoding, cell.encoding)


def _restrict_words(test: AssociationTest, words: str, model: Encoder) -> AssociationTest:
    """The test with full, reduced (one token of the model) or simplified targets, for vectors."""
    if words == "full":
        return test
    if words == "simplified":
        x = tuple(dict.fromkeys(word for frames in test.simplified for word in frames.x))
        y = tuple(dict.fromkeys(word for frames in test.simplified for word in frames.y))
        return replace(test, x=replace(test.x, words=x), y=replace(test.y, words=y))
    word_sets: list[WordSet] = []
    for word_set in test.sets.values():
        known_words = tuple(word for word in word_set.words if model.is_token(word))
        if not known_words:
            raise DataError(f"no word of {word_set.concept} is one token of {model.info.name}")
        word_sets.append(replace(word_set, words=known_words))
    return replace(test, x=word_sets[0], y=word_sets[1], a=word_sets[2], b=word_sets[3])


def _build_row(result: Association, cell: GridCell, key: str, seconds: float) -> GridRow:
    """`seconds`: what the cell took once its texts were embedded. Predictions count, unless an
    earlier cell of the call had made them."""
    p_values = {"p_test": result.test_p_value.value, "p_holm": float("nan"), "p_bh": float("nan")}
    timing = {"seconds": round(seconds, 3)}
    return result.record() | p_values | {"cell": asdict(cell), "key": key} | timing


def _stored_keys(store: Store | None) -> dict[str, str]:
    """The keys of the cells in a store, with the ids of their nodes."""
    if store is None:
        return {}
    return {node.record["key"]: node.id for node in store.associations() if "key" in node.record}


def _correct_rows(
    grid: Grid, store: Store, run: StoredRun | None, keys: Sequence[str]
) -> list[GridRow]:
    """The rows of these cells, with p-values corrected over all of them. They are written back,
    with edges to groups added to the graph since a cell was computed."""
    record = run.record if run else None
    groups = {}
    for name, test in grid.by_name.items():
        groups[name] = {e for e in build_edges(store, record, test) if e.kind != "object"}
    wanted_keys = set(keys)
    by_key = {
        n.record["key"]: n for n in store.associations() if n.record.get("key") in wanted_keys
    }
    nodes = [by_key[key] for key in keys]
    p_values = [float(node.record["p_test"]) for node in nodes]
    rows, updated = [], []
    for node, holm_p, bh_p in zip(nodes, holm(p_values), benjamini_hochberg(p_values), strict=True):
        row = dict(node.record) | {
            "p_holm": float(holm_p),
            "p_bh": float(bh_p),
            "family": len(nodes),
        }
        rows.append(row)
        edges_now = tuple(
            # A set has no order: sorted, so that the same grid writes the same edges.
            dict.fromkeys((*node.edges, *sorted(groups[row["cell"]["test"]], key=repr)))
        )
        updated.append(
            replace(node, record=row, p_holm=float(holm_p), p_bh=float(bh_p), edges=edges_now)
        )
    store.save_associations(run.id if run else None, updated)
    return rows
