"""Statements by what they mean: the vectors that stores keep of them, and what lies near.

The vector of a statement is that of its predicate and object, without its group, by the encoder
that ships (all-MiniLM-L6-v2). A cosine says how far two texts are about the same, and not whether
they agree: "are not lazy" lies near "are lazy".

Vectors are kept when a run is measured, and the encoder reads only what has none. A search looks
for words first, then for meaning. Both stores give the same half-precision numbers, and the
comparison is made here, so both find the same (`kgbias ask` on a Neo4j server uses its index).
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kgbias.graph.store import StoredRun
from kgbias.graph.types import node_id, statement_id
from kgbias.graph.vectors import StatementVectors, find_nearest, round_to_half
from kgbias.ids import normalise
from kgbias.io.progress import Progress, SilentProgress
from kgbias.language.words import extract_topic_words, is_negated, lemmatise_word
from kgbias.measure.embedding import MiniLM, TextVectors
from kgbias.measure.scorers._minilm import WEIGHTS_SHA256
from kgbias.models.spec import resolve_weights
from kgbias.parallel import Executor

MIN_SEARCH_COSINE = 0.37
"""The least cosine at which a statement is about a topic without sharing its words."""

MIN_SIMILAR_COSINE = 0.65
"""The cosine from which two statements are shown as similar: of 35 pairs of neighbours that reach
it, 31 are about the same topic by the label of a language model (tests/data/similar.tsv)."""

SHIPPED_ENCODER = f"{MiniLM.name} {WEIGHTS_SHA256[:16]}"
"""The name under which stores keep vectors by the encoder that ships."""

PredicateObject = tuple[str, str]  # the uids of a predicate and an object


def encoder_name(vectors: TextVectors) -> str:
    """The name under which stores keep what this encoder gives."""
    return f"{vectors.name} {vectors.version}"


def stored_encoder_name(spec: str, device: str = "auto") -> str:
    """The name under which stores keep the sentence vectors of a spec. Raises MissingExtra if a
    package is missing."""
    if spec == "minilm":
        return encoder_name(MiniLM(device))
    info = resolve_weights(spec).info
    return f"{info.name} {info.revision}"


def statement_texts(run: StoredRun) -> dict[PredicateObject, str]:
    """What the run's triples say, each once: the words in the form in which two texts count as the
    same (`kgbias.ids.normalise`), so that they follow from the ids."""
    return {
        (node_id("predicate", p), node_id("object", o)): normalise(f"{p} {o}")
        for _, _, p, o in run.distinct_triples()
    }


@dataclass(frozen=True)
class StatementEmbedding:
    """Reading statements, as work whose pieces are lists of texts (`kgbias.parallel.Work`)."""

    device: str = "auto"
    threads: int = 1

    @cached_property
    def encoder(self) -> MiniLM:
        return MiniLM(self.device)

    @property
    def version(self) -> str:
        return encoder_name(self.encoder)

    def open(self) -> str:
        # The first text loads the encoder.
        self.encoder.embed(["."])
        return self.version

    def __call__(self, piece: Sequence[str]) -> NDArray[np.float32]:
        """A vector for each text, [n, d], as stores keep them."""
        self.encoder.forget()  # floating-point sums depend on the batch
        return round_to_half(self.encoder.embed(piece))

    def __reduce__(self) -> tuple[type["StatementEmbedding"], tuple[str, int]]:
        """Pickles without the model."""
        return StatementEmbedding, (self.device, self.threads)


def store_vectors(
    run: StoredRun,
    progress: Progress | None = None,
    *,
    device: str = "auto",
    processes: int | None = None,
    executor: Executor | None = None,
) -> int:
    """Write the vectors that the run's statements lack; returns how many that were. May be
    interrupted and repeated: each piece is kept once it is read. `processes` and `executor` are as
    for `kgbias.measure.scoring.measure_run`."""
    from kgbias.measure.scoring import PIECE_STATEMENTS, choose_processes
    from kgbias.models.load import find_device
    from kgbias.parallel.local import LocalExecutor

    progress, work, texts = (
        progress or SilentProgress(),
        StatementEmbedding(device),
        statement_texts(run),
    )
    stored_ends = set(run.vectors(work.version).statements)
    # Pieces are the same on every run, and so are the rows, which depend on the batch.
    missing_ends = sorted(texts.keys() - stored_ends, key=lambda ends: (texts[ends], ends))
    progress.stage("vectors", len(texts))
    progress.advance(len(texts) - len(missing_ends), cached=len(texts) - len(missing_ends))
    if not missing_ends:
        return 0
    pieces = [
        missing_ends[start : start + PIECE_STATEMENTS]
        for start in range(0, len(missing_ends), PIECE_STATEMENTS)
    ]
    texts_by_piece = [[texts[ends] for ends in piece] for piece in pieces]
    with ExitStack() as resources:
        if executor is None:
            process_count = (
                choose_processes(len(missing_ends), processes)
                if find_device(device) == "cpu"
                else 1
            )
            local = LocalExecutor(process_count, progress.note)
            executor = resources.enter_context(closing(local))
        for piece_number, rows in resources.enter_context(
            closing(executor.run_pieces(work, texts_by_piece))
        ):
            run.store.save_vectors(work.version, StatementVectors(pieces[piece_number], rows))
            progress.advance(len(pieces[piece_number]))
    return len(missing_ends)


def read_vectors(
    run: StoredRun, device: str = "auto"
) -> dict[PredicateObject, NDArray[np.float32]]:
    """The vectors of what the run says by the encoder that ships: those that the store keeps; what
    has none there is read now, and not kept. Raises MissingExtra if it has to be read and the
    encoder is not installed."""
    texts, stored_vectors = statement_texts(run), run.vectors(SHIPPED_ENCODER)
    vectors = dict(zip(stored_vectors.statements, stored_vectors.rows, strict=True))
    if missing_ends := sorted(texts.keys() - vectors.keys(), key=lambda ends: (texts[ends], ends)):
        new_rows = StatementEmbedding(device)([texts[ends] for ends in missing_ends])
        vectors |= dict(zip(missing_ends, new_rows, strict=True))
    return vectors


@dataclass(frozen=True)
class StatementIndex:
    """The statements of a run by what they mean: the id of each (`TripleView.statement_id`), its
    words, and its vector, [n, d], by the `encoder`."""

    ids: Sequence[str]
    texts: Sequence[str]
    rows: NDArray[np.float32]
    encoder: TextVectors

    @classmethod
    def build(cls, run: StoredRun, device: str = "auto") -> "StatementIndex":
        """Those of the vectors that the store keeps; what has none there is read now, and not kept.

        Raises MissingExtra if the encoder is not installed."""
        encoder, texts, vectors = MiniLM(device), statement_texts(run), read_vectors(run, device)
        ordered_ends = sorted(texts)
        rows = np.array([vectors[ends] for ends in ordered_ends], dtype=np.float32)
        ids = [statement_id(*ends) for ends in ordered_ends]
        width = encoder.embed([]).shape[1]
        rows = rows.reshape(len(ordered_ends), width)  # also if nothing was said
        return cls(ids, [texts[ends] for ends in ordered_ends], rows, encoder)

    @classmethod
    def from_stored(cls, run: StoredRun, encoder: TextVectors) -> "StatementIndex":
        """Those of the vectors that the store keeps, alone: quick, however much a crawl that is
        still running adds."""
        stored_vectors, texts = run.vectors(encoder_name(encoder)), statement_texts(run)
        return cls(
            stored_vectors.ids,
            [texts[ends] for ends in stored_vectors.statements],
            stored_vectors.rows,
            encoder,
        )

    @cached_property
    def _places_by_word(self) -> dict[str, list[int]]:
        """The statements that hold each word, in any form."""
        places: dict[str, list[int]] = {}
        for n, text in enumerate(self.texts):
            for base in {lemmatise_word(word) for word in extract_topic_words(text)}:
                places.setdefault(base, []).append(n)
        return places

    def search(self, text: str, limit: int) -> list["SearchHit"]:
        """What a text finds: at most `limit` statements that share one of its words in any form,
        those with more of them first, and then as many of the others that are about the same
        (`MIN_SEARCH_COSINE`), the nearest first."""
        words_by_place: dict[int, list[str]] = {}
        word_by_lemma = {lemmatise_word(word): word for word in extract_topic_words(text)}
        for base, word in word_by_lemma.items():
            for place in self._places_by_word.get(base, ()):
                words_by_place.setdefault(place, []).append(word)
        search_vector = self.encoder.embed([normalise(text)])[0].astype(np.float32)
        matching = sorted(words_by_place)
        word_hits = [
            (matching[k], cosine)
            for k, cosine in find_nearest(self.rows[matching], search_vector, len(matching))
        ]
        # A stable sort: of those that share as many words, the nearest stays first.
        word_hits.sort(key=lambda hit: -len(words_by_place[hit[0]]))
        nearest_hits = find_nearest(
            # As many more as may be word hits, which are left out below.
            self.rows,
            search_vector,
            limit + len(matching),
            MIN_SEARCH_COSINE,
        )
        semantic_hits = [hit for hit in nearest_hits if hit[0] not in words_by_place]
        query_is_negated = is_negated(text)
        return [
            SearchHit(
                self.ids[place],
                self.texts[place],
                cosine,
                tuple(words_by_place.get(place, ())),
                is_negated(self.texts[place]) != query_is_negated,
            )
            for place, cosine in (*word_hits[:limit], *semantic_hits[:limit])
        ]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A statement that was searched for.

    Attributes:
        id: its id, as `TripleView.statement_id`.
        text: its words, without a group.
        cosine: of its vector with that of what was searched for, -1 to 1.
        words: those of the search that it has, in any form; none: it was found by meaning.
        opposed: whether only one of the two is negated.
    """

    id: str
    text: str
    cosine: float
    words: tuple[str, ...]
    opposed: bool
