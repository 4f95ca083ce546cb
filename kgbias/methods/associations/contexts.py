"""The contexts of words: from a corpus file, from templates, or written by a model."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from kgbias.errors import DataError, UsageError
from kgbias.graph.answers import LoggedModel
from kgbias.graph.store import Store
from kgbias.ids import content_id
from kgbias.io.reading import parse_json, read_error
from kgbias.methods.associations.result import ContextVectors
from kgbias.methods.associations.sets import ROLES, AssociationTest
from kgbias.methods.associations.weat import Embedder, fill_slot_templates
from kgbias.models import open_model
from kgbias.models.base import ModelInfo, Request
from kgbias.models.embed import Encoding, Span

MAX_CONTEXTS = 1000
"""Contexts kept per word. "Mind Your Bias" finds 1,000 sufficient (appendix B.5)."""

Spans = Mapping[str, Mapping[str, Sequence[Span]]]


class ContextSource(Protocol):
    """Where contexts come from."""

    def find_spans(self, test: AssociationTest, model: ModelInfo) -> Spans:
        """For each role and word of a test, where the word stands in texts; a word without contexts
        has an empty list. `model` is the model under test."""
        ...

    def describe(self) -> dict[str, Any]:
        """The settings to name with a result."""
        ...


@dataclass(frozen=True, slots=True)
class TemplateContexts:
    """The bleached sentences of each set's slot."""

    def find_spans(self, test: AssociationTest, model: ModelInfo) -> Spans:
        return {
            role: dict(zip(words.words, fill_slot_templates(words), strict=True))
            for role, words in test.sets.items()
        }

    def describe(self) -> dict[str, Any]:
        return {"contexts_from": "templates"}


@dataclass(frozen=True, slots=True)
class CorpusContexts:
    """Sentences of a corpus that contain the word: a text file with one text per line, or JSON
    lines with a "text" each.

    A word with a capital is matched as it is written, others in any case, always as whole words and
    the longest first. At most `most` texts per word are kept, a uniform sample drawn with `seed`; a
    text counts once for a word. `window` keeps that many words on either side (as Guo and Caliskan
    2021 cut their Reddit comments); None keeps whole lines.
    """

    path: Path
    most: int = MAX_CONTEXTS
    window: int | None = None
    seed: int = 0

    def find_spans(self, test: AssociationTest, model: ModelInfo) -> Spans:
        words = {word for word_set in test.sets.values() for word in word_set.words}
        spans_by_word = self.search(words)
        return {
            role: {word: spans_by_word[word] for word in word_set.words}
            for role, word_set in test.sets.items()
        }

    def describe(self) -> dict[str, Any]:
        return {
            "contexts_from": f"corpus:{self.path.name}",
            "most_contexts": self.most,
            "window": self.window,
        }

    def search(self, words: Iterable[str]) -> dict[str, list[Span]]:
        """The contexts of each word; an empty list if it has none."""
        if self.most < 1 or (self.window is not None and self.window < 0):
            raise UsageError("`most` must be positive, and `window` at least 0")
        by_text: dict[str, list[str]] = {}
        for word in words:
            by_text.setdefault(word.lower(), []).append(word)
        alternatives = "|".join(
            re.escape(text) for text in sorted(by_text, key=lambda t: (-len(t), t))
        )
        # Not \b, which asks for a letter on its other side: a word may end in a mark (C++).
        pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)
        spans_by_word: dict[str, list[Span]] = {
            word: [] for forms in by_text.values() for word in forms
        }
        counts = dict.fromkeys(spans_by_word, 0)
        # One stream per word, so the texts kept for it do not depend on the other words.
        streams = {word: random.Random(f"{self.seed}:{word}") for word in spans_by_word}
        for text in iter_corpus_texts(self.path):
            words_met = set()
            for match in pattern.finditer(text):
                for word in by_text.get(match[0].lower(), []):
                    if word in words_met or (word != word.lower() and match[0] != word):
                        continue
                    words_met.add(word)
                    counts[word] += 1
                    span = _cut_window(text, match.start(), match.end(), self.window)
                    if len(spans_by_word[word]) < self.most:
                        spans_by_word[word].append(span)
                    # Reservoir sampling (Vitter 1985, algorithm R): each text so far has the same
                    # chance of being among those kept, however many there will be.
                    elif (place := streams[word].randrange(counts[word])) < self.most:
                        spans_by_word[word][place] = span
        return spans_by_word


@dataclass(frozen=True, slots=True)
class GeneratedContexts:
    """Sentences that the tested model writes itself: it is asked `count` times for a sentence with
    the word, and those that contain it are kept. They are as biased as the model is.

    The model is asked at the revision under test. With a `store`, what its answer log holds is not
    asked again. `dtype` and `device` are those of `kgbias.models.open_model`.
    """

    count: int
    seed: int = 0
    temperature: float = 1.0
    max_tokens: int = 40
    store: Store | None = field(default=None, compare=False)
    dtype: str = "float32"
    device: str = "auto"

    def find_spans(self, test: AssociationTest, model: ModelInfo) -> Spans:
        words = list(dict.fromkeys(w for word_set in test.sets.values() for w in word_set.words))
        requests = [
            Request(
                f'A sentence with the word "{word}": ',
                seed=int(content_id("context", word, str(number), str(self.seed)), 16) % 2**31,
                temperature=self.temperature,
                max_tokens=self.max_tokens,
                stop=("\n",),
            )
            for word in words
            for number in range(self.count)
        ]
        answers = self._answers(requests, model)
        spans_by_word: dict[str, dict[Span, None]] = {word: {} for word in words}
        for place, answer in enumerate(answers):
            word = words[place // self.count]
            sentence = " ".join(answer.split())
            if match := re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sentence, re.IGNORECASE):
                spans_by_word[word][Span(sentence, match.start(), match.end())] = None
        return {
            role: {word: list(spans_by_word[word]) for word in word_set.words}
            for role, word_set in test.sets.items()
        }

    def _answers(self, requests: Sequence[Request], model: ModelInfo) -> list[str]:
        """The model's answer to each request; "" if there was none."""
        writer = open_model(
            model.name, revision=model.revision, dtype=self.dtype, device=self.device
        )
        with closing(writer):
            if self.store is not None:
                return [answer.text for answer in LoggedModel(writer, self.store).ask(requests)]
            texts = dict.fromkeys(range(len(requests)), "")
            for batch in writer.complete(requests):
                texts |= {place: completion.text for place, completion in batch}
            return list(texts.values())

    def describe(self) -> dict[str, Any]:
        return {
            "contexts_from": "generated",
            "asked_a_word": self.count,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }


class EmbeddedContexts(NamedTuple):
    """The vectors of words in their contexts, and the settings to name with the result."""

    by_role: dict[str, ContextVectors]
    settings: dict[str, Any]


def embed_contexts(
    test: AssociationTest,
    model: Embedder,
    source: ContextSource,
    encoding: Encoding,
    layer: int,
) -> EmbeddedContexts:
    """The vectors of a test's words in their contexts by role, and the settings to name with the
    result. Each (word, context) is embedded once. Raises DataError if there is no context."""
    spans = source.find_spans(test, model.info)
    flat = list(
        dict.fromkeys(span for role in ROLES for row in spans[role].values() for span in row)
    )
    if not flat:
        raise DataError(f"{test.name}: none of its words occurs in any context")
    table = np.asarray(model.embed(flat, encoding, layer), dtype=np.float64)
    place = {span: number for number, span in enumerate(flat)}
    contexts = {}
    for role in ROLES:
        present = {word: row for word, row in spans[role].items() if row}
        contexts[role] = ContextVectors(
            tuple(present),
            tuple(table[[place[span] for span in row]] for row in present.values()),
            tuple(word for word in spans[role] if word not in present),
        )
    counts = [len(row) for role in ROLES for row in spans[role].values() if row]
    return EmbeddedContexts(
        contexts,
        source.describe()
        | {
            "encoding": encoding,
            "layer": layer,
            "contexts_a_word": [min(counts), max(counts)],
        },
    )


def _cut_window(text: str, start: int, end: int, window: int | None) -> Span:
    """The span with `window` words on either side of it."""
    if window is None:
        return Span(text, start, end)
    # One piece more than words: the one that touches the word, often nothing.
    text_before = " ".join(text[:start].split(" ")[-window - 1 :])
    text_after = " ".join(text[end:].split(" ")[: window + 1])
    return Span(
        text_before + text[start:end] + text_after, len(text_before), len(text_before) + end - start
    )


def iter_corpus_texts(path: Path) -> Iterator[str]:
    """The texts of a corpus file: one per line, or the "text" of JSON lines."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                text = line.strip()
                if path.suffix in (".jsonl", ".ndjson") and text:
                    text = _parse_json_text(text, path, number)
                if text:
                    yield text
    except OSError as error:
        raise read_error(path, error) from error


def _parse_json_text(line: str, path: Path, number: int) -> str:
    value = parse_json(line, f"{path}, line {number}")
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise DataError(f'{path}, line {number}: need JSON with a "text"')
    return " ".join(text.split())
