"""Statements by what they mean: the vectors that stores keep of them, and what lies near.

The vector of a statement is that of its predicate and object, without its group, by the encoder
that ships (all-MiniLM-L6-v2). A cosine says how far two texts are about the same, and not whether
they agree: "are not lazy" lies near "are lazy".
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kgbias.graph.store import StoredRun
from kgbias.graph.types import node_id, statement_id
from kgbias.graph.vectors import StatementVectors, round_to_half, find_nearest
from kgbias.ids import normalise
from kgbias.io.progress import Progress, SilentProgress
from kgbias.language.words import lemmatise_word, is_negated, topic_words
from kgbias.measure.embedding import MiniLM, TextVectors
from kgbias.measure.scorers._minilm import WEIGHTS_SHA256
from kgbias.models.spec import resolve_weights
from kgbias.parallel import Executor

NEAR = 0.37
"""The least cosine at which a statement is about a topic without sharing its words."""

SIMILAR = 0.65
"""The cosine from which two statements are shown as similar: of 35 pairs of neighbours that reach
it, 31 are about the same topic by the label of a language model (tests/data/similar.tsv)."""

SHIPPED = f"{MiniLM.name} {WEIGHTS_SHA256[:16]}"
"""The name under which stores keep vectors by the encoder that ships."""

Ends = tuple[str, str]  # the uids of a predicate and an object


def encoder_of(vectors: TextVectors) -> str:
    """The name under which stores keep what this encoder gives."""
    return f"{vectors.name} {vectors.version}"


def kept_as(spec: str, device: str = "auto") -> str:
    """The name under which stores keep the sentence vectors of a spec. Raises MissingExtra if a
    package is missing."""
    if spec == "minilm":
        return encoder_of(MiniLM(device))
    info = resolve_weights(spec).info
    return f"{info.name} {info.revision}"


def texts_of(run: StoredRun) -> dict[Ends, str]:
    """What the run's triples say, each once: the words in the form in which two texts count as the
    same (`kgbias.ids.normalise`), so that they follow from the ids."""
    return {
        (node_id("predicate", p), node_id("object", o)): normalise(f"{p} {o}")
        for _, _, p, o in run.distinct_triples()
    }


@dataclass(frozen=True)
class Placing:
    """Reading statements, as work whose pieces are lists of texts (`kgbias.parallel.Work`)."""

    device: str = "auto"
    threads: int = 1

    @cached_property
    def encoder(self) -> MiniLM:
        return MiniLM(self.device)

    @property
    def version(self) -> str:
        return encoder_of(self.encoder)

    def open(self) -> str:
        self.encoder.embed(["."])
        return self.version

    def __call__(self, piece: Sequence[str]) -> NDArray[np.float32]:
        """A vector for each text, [n, d], as stores keep them."""
        self.encoder.forget()  # floating-point sums depend on the batch
        return round_to_half(self.encoder.embed(piece))

    def __reduce__(self) -> tuple[type["Placing"], tuple[str, int]]:
        """Pickles without the model."""
        return Placing, (self.device, self.threads)


def keep_vectors(
    run: StoredRun,
    progress: Progress | None = None,
    *,
    device: str = "auto",
    processes: int | None = None,
    executor: Executor | None = None,
) -> int:
    """Write the vectors that the run's statements lack; returns how many that were. May be
    interrupted and repeated: each piece is kept once it is read. `processes` and `executor` are as
    for `kgbias.measure.scoring.measure`."""
    from kgbias.measure.scoring import PIECE, processes_for
    from kgbias.models.load import find_device
    from kgbias.parallel.local import LocalExecutor

    progress, work, texts = progress or SilentProgress(), Placing(device), texts_of(run)
    there = set(run.vectors(work.version).statements)
    new = sorted(texts.keys() - there, key=lambda ends: (texts[ends], ends))
    progress.stage("vectors", len(texts))
    progress.advance(len(texts) - len(new), cached=len(texts) - len(new))
    if not new:
        return 0
    pieces = [new[start : start + PIECE] for start in range(0, len(new), PIECE)]
    asked = [[texts[ends] for ends in piece] for piece in pieces]
    with ExitStack() as held:
        if executor is None:
            number = processes_for(len(new), processes) if find_device(device) == "cpu" else 1
            executor = held.enter_context(closing(LocalExecutor(number)))
        for place, rows in held.enter_context(closing(executor.run_pieces(work, asked))):
            run.store.save_vectors(work.version, StatementVectors(pieces[place], rows))
            progress.advance(len(pieces[place]))
    return len(new)


def vectors_of(run: StoredRun, device: str = "auto") -> dict[Ends, NDArray[np.float32]]:
    """The vectors of what the run says by the encoder that ships: those that the store keeps; what
    has none there is read now, and not kept. Raises MissingExtra if it has to be read and the
    encoder is not installed."""
    texts, kept = texts_of(run), run.vectors(SHIPPED)
    found = dict(zip(kept.statements, kept.rows, strict=True))
    if new := sorted(texts.keys() - found.keys(), key=lambda ends: (texts[ends], ends)):
        read = Placing(device)([texts[ends] for ends in new])
        found |= dict(zip(new, read, strict=True))
    return found


@dataclass(frozen=True)
class Meanings:
    """The statements of a run by what they mean: the id of each (`TripleView.statement_id`), its
    words, and its vector, [n, d], by the `encoder`."""

    ids: Sequence[str]
    texts: Sequence[str]
    rows: NDArray[np.float32]
    encoder: TextVectors

    @classmethod
    def of(cls, run: StoredRun, device: str = "auto") -> "Meanings":
        """Those of the vectors that the store keeps; what has none there is read now, and not kept.

        Raises MissingExtra if the encoder is not installed."""
        encoder, texts, vectors = MiniLM(device), texts_of(run), vectors_of(run, device)
        order = sorted(texts)
        rows = np.array([vectors[ends] for ends in order], dtype=np.float32)
        ids = [statement_id(*ends) for ends in order]
        width = encoder.embed([]).shape[1]
        rows = rows.reshape(len(order), width)  # also if nothing was said
        return cls(ids, [texts[ends] for ends in order], rows, encoder)

    @classmethod
    def kept(cls, run: StoredRun, encoder: TextVectors) -> "Meanings":
        """Those of the vectors that the store keeps, alone: quick, however much a crawl that is
        still running adds."""
        kept, texts = run.vectors(encoder_of(encoder)), texts_of(run)
        return cls(kept.ids, [texts[ends] for ends in kept.statements], kept.rows, encoder)

    @cached_property
    def _holding(self) -> dict[str, list[int]]:
        """The statements that hold each word, in any form."""
        found: dict[str, list[int]] = {}
        for n, text in enumerate(self.texts):
            for base in {lemmatise_word(word) for word in topic_words(text)}:
                found.setdefault(base, []).append(n)
        return found

    def search(self, text: str, most: int) -> list["Hit"]:
        """What a text finds: at most `most` statements that share one of its words in any form,
        those with more of them first, and then as many of the others that are about the same
        (`NEAR`), the nearest first."""
        shared: dict[int, list[str]] = {}
        for base, word in {lemmatise_word(word): word for word in topic_words(text)}.items():
            for n in self._holding.get(base, ()):
                shared.setdefault(n, []).append(word)
        to = self.encoder.embed([normalise(text)])[0].astype(np.float32)
        own = sorted(shared)
        said = [(own[k], cosine) for k, cosine in find_nearest(self.rows[own], to, len(own))]
        said.sort(key=lambda hit: -len(shared[hit[0]]))
        near = find_nearest(self.rows, to, most + len(own), NEAR)
        about = [hit for hit in near if hit[0] not in shared]
        denies = is_negated(text)
        return [
            Hit(
                self.ids[n], self.texts[n], cosine, tuple(shared.get(n, ())),
                is_negated(self.texts[n]) != denies,
            )
            for n, cosine in (*said[:most], *about[:most])
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hit:
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
