"""Vectors of words and sentences from language models, through transformers.

A word is embedded where it stands in a text (a `Span`); each (text, span) is computed once, in
batches, and kept on disk.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, ModelError, UsageError, first_line, no_such
from kgbias.ids import content_id
from kgbias.io.reading import read_json
from kgbias.models.base import Notify, Settings
from kgbias.models.gguf import cache_folder
from kgbias.models.load import DTYPES, LoadedModel, load
from kgbias.models.pretrained import is_token
from kgbias.models.spec import ModelFiles, resolve_weights
from kgbias.models.vectors import VectorLookup


class VectorCache:
    """Vectors by key, float32, on disk; only in memory without a file."""

    def __init__(self, database: sqlite3.Connection | None) -> None:
        self._database = database

    def read(self, keys: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        if self._database is None:
            return {}
        vectors: dict[str, NDArray[np.float32]] = {}
        for key in keys:
            row = self._database.execute("SELECT data FROM vector WHERE key = ?", (key,)).fetchone()
            if row:
                # The order of bytes is the file's, whatever the machine's is.
                vectors[key] = np.frombuffer(row[0], dtype="<f4")
        return vectors

    def write(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        if self._database is not None:
            # Another process may have written the same meanwhile.
            rows = [(key, row.astype("<f4").tobytes()) for key, row in vectors.items()]
            self._database.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", rows)
            self._database.commit()


@contextmanager
def open_vector_cache(enabled: bool = True) -> Iterator[VectorCache]:
    """The embeddings in the user's cache folder; none are read or kept if `enabled` is false.
    Raises ModelError if the folder cannot be used."""
    if not enabled:
        yield VectorCache(None)
        return
    path = cache_folder() / "embeddings.db"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=10)
        with closing(database):
            # So that one process may read while another writes.
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = OFF")  # a cache: losing it costs only time
            database.execute(
                "CREATE TABLE IF NOT EXISTS vector (key TEXT PRIMARY KEY, data BLOB NOT NULL)"
            )
            yield VectorCache(database)
    except (OSError, sqlite3.Error) as error:
        raise ModelError(
            f"cannot use the cache {path}: {error}; set KGBIAS_CACHE to another folder"
        ) from error


Encoding = Literal["word-average", "word-first", "word-last", "cls", "last", "mean"]
"""How a text becomes one vector. Of the word: the mean of its sub-tokens, the first or the last
one. Of the whole text: the [CLS] token, the last token that is text, or the mean over all tokens
(with the special ones, as sentence-transformers pools)."""

VectorSource = tuple[Encoding, int]
"""The source of a vector: an encoding, and a hidden layer."""

LAST_LAYER = -1
_PIECE_TEXTS = 256  # texts read together, wherever they are read: sums depend on the batch
_MAX_BATCH_TOKENS = 4096
_TREE_TOLERANCE = 1e-4  # of the largest state: what reading in a tree may change by rounding
LayerStates = dict[int, NDArray[np.float32]]
"""The states of a text's tokens by layer, each [tokens, d]."""


@dataclass(frozen=True, slots=True)
class Span:
    """A word in a text, by character positions. An empty span (start == end) means no word."""

    text: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class _TokenisedText:
    """A text as tokens: ids, the positions of the word, and those of all tokens of the text."""

    ids: list[int]
    word: list[int]
    text: list[int]


class Encoder:
    """A model that gives vectors, loaded when they are first asked for.

    `spec` is the spec it was opened by, `files` where it is, or the model itself. Vectors are
    float32, computed in `dtype`.
    """

    def __init__(
        self,
        spec: str,
        files: ModelFiles | LoadedModel,
        *,
        cache: bool = True,
        dtype: str = "float32",
        device: str = "auto",
        notify: Notify | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise UsageError(no_such("dtype", dtype, DTYPES))
        self.spec = spec
        self.info = files.info
        self.settings: Settings = (("dtype", dtype),)
        self._dtype = dtype
        self._files = files
        self._cache = cache
        self._device = device
        self._notify = notify

    def embed(
        self, spans: Sequence[Span], encoding: Encoding, layer: int = LAST_LAYER
    ) -> NDArray[np.float32]:
        """One row per span, [n, d]: `encoding` of hidden layer `layer` (0 is the input embeddings,
        -1 the last, as the model returns it).

        Raises DataError if a word has no token or lies beyond what the model can read, UsageError
        for an encoding or layer that the model lacks.
        """
        return self.embed_many(spans, [(encoding, layer)])[encoding, layer]

    def embed_many(
        self, spans: Sequence[Span], wanted_places: Iterable[VectorSource]
    ) -> dict[VectorSource, NDArray[np.float32]]:
        """`embed` for several encodings and layers at once: one table [n, d] for each (encoding,
        layer). A text is computed once, however many words, encodings and layers are read from it.
        """
        distinct_sources = list(dict.fromkeys(wanted_places))
        for encoding, _ in distinct_sources:
            if encoding not in get_args(Encoding):
                raise UsageError(no_such("encoding", encoding, get_args(Encoding)))
        # Nothing for the usual one: what older versions have kept is still found.
        dtype_key = () if self._dtype == "float32" else (self._dtype,)
        keys = {
            (span, source): content_id(
                "embedding",
                self.info.id,
                source[0],
                str(source[1]),
                repr((span.start, span.end)),
                span.text,
                *dtype_key,
            )
            for span in dict.fromkeys(spans)
            for source in distinct_sources
        }
        with open_vector_cache(self._cache) as vector_cache:
            vectors = vector_cache.read(keys.values())
            missing_spans = [
                span
                for span in dict.fromkeys(spans)
                if any(keys[span, source] not in vectors for source in distinct_sources)
            ]
            for rows in self._compute(missing_spans, distinct_sources):
                new_vectors = {keys[span_and_source]: row for span_and_source, row in rows.items()}
                vector_cache.write(new_vectors)
                vectors |= new_vectors
        return {
            source: np.array([vectors[keys[span, source]] for span in spans], dtype=np.float32)
            for source in distinct_sources
        }

    def find(self, words: Iterable[str]) -> VectorLookup:
        """The words' input embeddings, a model's static vectors: the mean over the sub-tokens of
        the word after a space. A word with an unknown token is missing."""
        table = self._model.get_input_embeddings().weight.detach().float().cpu().numpy()
        unknown_token = self._tokenizer.unk_token_id
        forms, word_rows, missing_words = {}, [], []
        for word in dict.fromkeys(words):
            # In the middle of a text a word has a space before it, which many vocabularies count
            # in.
            ids = self._tokenizer(" " + word, add_special_tokens=False)["input_ids"]
            if ids and unknown_token not in ids:
                forms[word] = word
                word_rows.append(table[ids].mean(axis=0))
            else:
                missing_words.append(word)
        # Without any row, numpy would not know how long one is.
        vectors = np.array(word_rows, dtype=np.float64).reshape(len(word_rows), table.shape[1])
        return VectorLookup(forms, vectors, tuple(missing_words))

    @property
    def sentence_encoding(self) -> Encoding:
        """The usual vector of a whole text: as a sentence-transformers folder says, else the last
        token of a causal model or [CLS] of any other."""
        pooling = Path(self._loaded.location) / "1_Pooling" / "config.json"
        if self._loaded.location and pooling.is_file():
            mode = read_json(pooling)
            if not isinstance(mode, dict):
                raise ModelError(f"{pooling} does not define the pooling")
            return "mean" if mode.get("pooling_mode_mean_tokens") else "cls"
        return "last" if self._loaded.trained_as == "causal" else "cls"

    @property
    def sentence_encodings(self) -> tuple[Encoding, ...]:
        """The encodings of a whole text that the model has."""
        of_text: tuple[Encoding, ...] = ("last", "mean")
        return of_text if self._tokenizer.cls_token_id is None else ("cls", *of_text)

    @property
    def layers(self) -> int:
        """How many hidden layers there are after the input embeddings."""
        return int(self._model.config.num_hidden_layers)

    def is_token(self, word: str) -> bool:
        """Whether the word, after a space, is one token of the vocabulary."""
        return is_token(self._tokenizer, word)

    @property
    def _tokenizer(self) -> Any:
        return self._loaded.tokenizer

    @property
    def _model(self) -> Any:
        return self._loaded.model

    @cached_property
    def _loaded(self) -> LoadedModel:
        if isinstance(self._files, LoadedModel):
            loaded_model = self._files
        else:
            loaded_model = load(
                self._files, "encoder", dtype=self._dtype, device=self._device, notify=self._notify
            )
        if not loaded_model.tokenizer.is_fast:
            raise ModelError(
                f"{self.info.name} has no fast tokenizer, needed to find words in texts"
            )
        return loaded_model

    def _tokenise(self, span: Span) -> _TokenisedText:
        tokenised = self._tokenizer(
            span.text, return_offsets_mapping=True, return_special_tokens_mask=True
        )
        is_special = tokenised["special_tokens_mask"]
        text_positions, word_positions = [], []
        for place, (start, end) in enumerate(tokenised["offset_mapping"]):
            if is_special[place] or end <= start:
                continue
            text_positions.append(place)
            if start < span.end and end > span.start:
                word_positions.append(place)
        ids: list[int] = tokenised["input_ids"]
        max_tokens = getattr(self._model.config, "max_position_embeddings", None) or len(ids)
        if len(ids) > max_tokens:
            raise DataError(
                f"a text of {len(ids)} tokens is longer than the {max_tokens} that "
                f"{self.info.name} reads: {span.text[:60]!r}..."
            )
        return _TokenisedText(ids, word_positions, text_positions)

    def _compute(
        self, spans: Sequence[Span], places: Sequence[VectorSource]
    ) -> Iterator[dict[tuple[Span, VectorSource], NDArray[np.float32]]]:
        """The vectors, piece by piece."""
        for piece in iter_text_pieces(spans):
            yield self.read(piece, places)

    def read(
        self, spans: Sequence[Span], places: Sequence[VectorSource]
    ) -> dict[tuple[Span, VectorSource], NDArray[np.float32]]:
        """The vectors of a piece; each text is computed once, and by a causal model what texts
        begin with alike. They depend only on the piece."""
        layers = {layer for _, layer in places}
        encodings = {encoding for encoding, _ in places}
        if "cls" in encodings and self._tokenizer.cls_token_id is None:
            raise UsageError(f"{self.info.name} has no [CLS] token: use the encoding last or mean")
        tokens = {span: self._tokenise(span) for span in spans}
        spans_by_text: dict[str, list[Span]] = {}
        for span, tokenised in tokens.items():
            of_word = any(encoding.startswith("word") for encoding in encodings)
            if not (tokenised.word if of_word else tokenised.text):
                word = span.text[span.start : span.end] or span.text
                raise DataError(f"{self.info.name} has no token for {word!r}")
            spans_by_text.setdefault(span.text, []).append(span)
        # The first span of a text stands for it: all have the same tokens.
        first_spans = [of[0] for of in spans_by_text.values()]
        vectors: dict[tuple[Span, VectorSource], NDArray[np.float32]] = {}
        reading = self._read_trees if self._fits_trees(tokens.values()) else self._read_batches
        try:
            for first, states in reading(first_spans, tokens, layers):
                vectors |= {
                    (span, (encoding, layer)): _pool_states(states[layer], tokens[span], encoding)
                    for span in spans_by_text[first.text]
                    for encoding, layer in places
                }
        except ValueError as error:  # T5 and similar models also want a text for their decoder
            raise ModelError(
                f"{self.info.name} gives no vectors for a text by itself: {first_line(error)}"
            ) from error
        return vectors

    def _read_batches(
        self, spans: Sequence[Span], tokens: dict[Span, _TokenisedText], layers: set[int]
    ) -> Iterator[tuple[Span, LayerStates]]:
        """The states of each text, in batches of texts of similar length."""
        import torch

        order = sorted(spans, key=lambda span: len(tokens[span].ids))
        # Which one it is makes no difference: it stands behind the text, and the mask hides it.
        padding = self._tokenizer.pad_token_id or 0
        while order:
            batch = _next_batch(order, tokens)
            del order[: len(batch)]
            max_length = len(tokens[batch[-1]].ids)
            ids = np.full((len(batch), max_length), padding)
            for row, span in zip(ids, batch, strict=True):
                row[: len(tokens[span].ids)] = tokens[span].ids
            lengths = np.array([len(tokens[span].ids) for span in batch])
            mask = np.arange(max_length) < lengths[:, None]
            device = self._model.device
            with torch.inference_mode():
                output = self._model(
                    input_ids=torch.tensor(ids, device=device),
                    attention_mask=torch.tensor(mask, dtype=torch.long, device=device),
                    output_hidden_states=layers != {LAST_LAYER},
                )
            states = {
                layer: self._layer_states(output, layer).float().cpu().numpy() for layer in layers
            }
            for place, span in enumerate(batch):
                yield span, {layer: of_layer[place] for layer, of_layer in states.items()}

    def _fits_trees(self, tokenised: Iterable[_TokenisedText]) -> bool:
        """Whether what texts begin with alike can be read once."""
        longest = max((len(text.ids) for text in tokenised), default=0)
        return longest <= self._tree_window

    @cached_property
    def _tree_window(self) -> int:
        """How many tokens a text may have to be read in a tree; 0 for a model that reads trees
        otherwise than texts, or not at all."""
        from kgbias.models.score.engine import attention_window

        if self._loaded.trained_as != "causal" or self._dtype != "float32":
            return 0
        rng = np.random.Generator(np.random.PCG64(0))
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        stem = rng.integers(0, vocabulary, 4).tolist()
        texts = [[*stem[:length], *rng.integers(0, vocabulary, 3).tolist()] for length in (4, 2, 4)]
        tokens = {
            Span(str(n)): _TokenisedText(ids, [], list(range(len(ids))))
            for n, ids in enumerate(texts)
        }
        try:
            in_trees = dict(self._read_trees(list(tokens), tokens, {LAST_LAYER}))
        except Exception:  # an architecture may refuse a mask in any way
            return 0
        for span, states in self._read_batches(list(tokens), tokens, {LAST_LAYER}):
            alone = states[LAST_LAYER][: len(tokens[span].ids)]
            gap = np.abs(in_trees[span][LAST_LAYER] - alone).max()
            if not gap <= _TREE_TOLERANCE * np.abs(alone).max():
                return 0
        return attention_window(self._model.config.get_text_config())

    def _read_trees(
        self, spans: Sequence[Span], tokens: dict[Span, _TokenisedText], layers: set[int]
    ) -> Iterator[tuple[Span, LayerStates]]:
        """The states of each text; what texts begin with alike is read once."""
        import torch

        from kgbias.models.score.engine import (
            MAX_BATCH_TOKENS,
            MAX_ROW_NODES,
            iter_tree_batches,
            read_trees,
        )

        device_kind = "cpu" if self._model.device.type == "cpu" else "other"
        # The last token of a sequence is not read, only predicted: here it is none.
        sequences = [(*tokens[span].ids, -1) for span in spans]
        for trees in iter_tree_batches(
            sequences, MAX_ROW_NODES[device_kind], MAX_BATCH_TOKENS[device_kind]
        ):
            with torch.inference_mode():
                output, places = read_trees(
                    self._model, trees, output_hidden_states=layers != {LAST_LAYER}
                )
            states = {}
            for layer in layers:
                of_layer = self._layer_states(output, layer)
                nodes_read = of_layer.reshape(-1, of_layer.shape[-1])[places]
                states[layer] = nodes_read.float().cpu().numpy()
            first_node = 0
            for tree in trees:
                for index, path in tree.paths:
                    nodes = [first_node + tree.edges[edge][0] for edge in path]
                    yield spans[index], {layer: states[layer][nodes] for layer in layers}
                first_node += len(tree.tokens)

    def _layer_states(self, output: Any, layer: int) -> Any:
        """The states of one layer, [texts, tokens, d]."""
        if layer == LAST_LAYER:
            return output.last_hidden_state
        if -len(output.hidden_states) <= layer < len(output.hidden_states):
            return output.hidden_states[layer]
        raise UsageError(
            f"{self.info.name} has no layer {layer}: 0 to {len(output.hidden_states) - 1}"
        )


def iter_text_pieces(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """The spans in pieces of this many texts, in alphabetical order: what texts begin with alike is
    read once in a piece (`Encoder.read`)."""
    spans_by_text: dict[str, list[Span]] = {}
    for span in spans:
        spans_by_text.setdefault(span.text, []).append(span)
    texts = sorted(spans_by_text)
    for start in range(0, len(texts), _PIECE_TEXTS):
        yield [span for text in texts[start : start + _PIECE_TEXTS] for span in spans_by_text[text]]


def _next_batch(order: Sequence[Span], tokens: dict[Span, _TokenisedText]) -> list[Span]:
    """As many of the next spans as fit in `_MAX_BATCH_TOKENS`; the last is the longest."""
    batch: list[Span] = []
    for span in order:
        if batch and (len(batch) + 1) * len(tokens[span].ids) > _MAX_BATCH_TOKENS:
            break
        batch.append(span)
    return batch


def _pool_states(
    states: NDArray[np.float32], tokens: _TokenisedText, encoding: Encoding
) -> NDArray[np.float32]:
    if encoding == "word-average":
        pooled: NDArray[np.float32] = states[tokens.word].mean(axis=0)
        return pooled
    if encoding == "mean":
        pooled = states[: len(tokens.ids)].mean(axis=0)
        return pooled
    place = {
        "word-first": tokens.word[:1],
        "word-last": tokens.word[-1:],
        "cls": [0],
        "last": tokens.text[-1:],
    }[encoding]
    row: NDArray[np.float32] = states[place[0]]
    return row


def open_encoder(
    spec: str,
    *,
    cache: bool = True,
    dtype: str = "float32",
    device: str = "auto",
    revision: str | None = None,
    notify: Notify | None = None,
) -> Encoder:
    """The model of a spec, to give vectors. Loads nothing before they are asked for.

    Args:
        spec: a model spec, of any model not on a server.
        cache: keep vectors on disk, in the user's cache folder.
        dtype: the number type to load the model in (see `kgbias.models.load.load`).
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device.
        revision: require this revision (see `kgbias.models.spec.resolve`).
        notify: called with one line for each thing that takes long.

    Raises:
        UsageError: an unknown spec, or a model on a server.
        ModelError: the model does not exist.
    """
    files = resolve_weights(spec, revision)
    return Encoder(spec, files, cache=cache, dtype=dtype, device=device, notify=notify)


DEFAULT_ENCODER = "minilm"
_MAX_CHARACTERS = 1_000  # characters of a text to read, far below the token limits of encoders


class SentenceVectors:
    """The usual sentence vectors of an encoder, normalised to length 1. `name` is its spec."""

    def __init__(
        self, spec: str = DEFAULT_ENCODER, *, device: str = "auto", notify: Notify | None = None
    ) -> None:
        self._encoder: Encoder = open_encoder(spec, device=device, notify=notify)
        self.name = self._encoder.info.name

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """One row of length 1 for each text, [n, d]; the dot product of two rows is their
        cosine."""
        # An empty text has no token, and no vector.
        spans = [Span(text[:_MAX_CHARACTERS] or ".") for text in texts]
        rows = self._encoder.embed(spans, self._encoder.sentence_encoding).astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float64)
