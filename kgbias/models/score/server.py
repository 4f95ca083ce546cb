"""Scores from an OpenAI-compatible completions server that returns prompt log-probabilities (vLLM,
llama.cpp): the prompt is echoed with the log-probability of each of its tokens."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from kgbias.errors import DataError, MissingExtra, ModelError, UsageError
from kgbias.models.base import ModelInfo, Notify
from kgbias.models.openai_server import server_url, without_password
from kgbias.models.quiet import first_line
from kgbias.models.score.base import (
    Array,
    Convention,
    Encoded,
    Grid,
    Scores,
    Surprisals,
    TextScorer,
    surprisals,
)
from kgbias.models.spec import Spec
from kgbias.progress import Progress, Silent

_BATCH = 32  # prompts of one request
_WORKERS = 4

Token = tuple[str, int, float | None]  # text, where it begins, log-probability


class ServerScorer(TextScorer):
    """The model of that id at `base_url` (default OPENAI_BASE_URL, else OpenAI's own).

    Whether something stands before a text is up to the server; where nothing does, the first token
    has no log-probability and is not scored. Tokens are the server's: the statement's are those
    that end after the group.
    """

    def __init__(self, model: str, base_url: str | None = None, timeout: float = 120.0) -> None:
        try:
            import openai
        except ModuleNotFoundError as error:
            raise MissingExtra("openai", extra="openai") from error
        url = server_url(base_url)
        key = os.environ.get("OPENAI_API_KEY") or "none"
        self._client: Any = openai.OpenAI(base_url=url, api_key=key, timeout=timeout)
        self._error: type[Exception] = openai.OpenAIError
        self._model = model
        self.convention = Convention("server", "server", "")
        self.settings = (*self.convention.settings(), ("base_url", without_password(url)))
        self.info = ModelInfo(f"openai:{model}")

    def score(self, texts: Sequence[str], progress: Progress | None = None) -> Scores:
        rows = self._ask(texts, progress)
        return _sums([_values(tokens) for tokens in rows])

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Progress | None = None
    ) -> Grid:
        probes = [f"{group} {statement}" for group in groups for statement in statements]
        rows = self._ask([*groups, *probes], progress)
        alone, whole = rows[: len(groups)], rows[len(groups) :]
        lengths = [len(group) for group in groups for _ in statements]
        ends = [
            [token for token in tokens if token[1] + len(token[0]) > length]
            for tokens, length in zip(whole, lengths, strict=True)
        ]
        shape = len(groups), len(statements)
        return Grid(
            _sums([_values(tokens) for tokens in whole]).reshape(*shape),
            _sums([_values(tokens) for tokens in ends]).reshape(*shape),
            _sums([_values(tokens) for tokens in alone]),
            lambda g, s: _in_bits(whole[g * len(statements) + s]),
        )

    def surprisals(self, text: str) -> Surprisals:
        (tokens,) = self._ask([text], None)
        return _in_bits(tokens)

    def token_scores(self, *_: Any, **__: Any) -> list[Array]:
        raise UsageError(
            "CrowS-Pairs needs a local model: a server does not say which tokens differ"
        )

    def _ask(self, texts: Sequence[str], progress: Progress | None) -> list[list[Token]]:
        """The tokens of each text; equal texts are asked once."""
        for text in texts:
            if not text.strip():
                raise DataError("an empty text cannot be scored")
        told = progress or Silent()
        distinct = list(dict.fromkeys(texts))
        batches = [distinct[n : n + _BATCH] for n in range(0, len(distinct), _BATCH)]
        found: dict[str, list[Token]] = {}
        with ThreadPoolExecutor(_WORKERS) as pool:
            for batch, rows in zip(batches, pool.map(self._request, batches), strict=True):
                found.update(zip(batch, rows, strict=True))
                told.advance(len(batch))
        return [found[text] for text in texts]

    def _request(self, texts: list[str]) -> list[list[Token]]:
        try:
            answer = self._client.completions.create(
                model=self._model, prompt=texts, max_tokens=1, temperature=0, echo=True, logprobs=1
            )
        except self._error as error:
            raise ModelError(
                f"{self.info.name} did not answer: {first_line(error)[:200]}"
            ) from error
        choices = sorted(answer.choices or [], key=lambda choice: choice.index)
        if len(choices) != len(texts):
            raise ModelError(
                f"{self.info.name} gave {len(choices)} answers to {len(texts)} prompts"
            )
        return [self._read(text, choice) for text, choice in zip(texts, choices, strict=True)]

    def _read(self, text: str, choice: Any) -> list[Token]:
        said = choice.logprobs
        if not (said and said.tokens and said.token_logprobs and said.text_offset is not None):
            raise ModelError(
                f"{self.info.name} does not return the log-probabilities of a prompt "
                "(echo with logprobs); vLLM does"
            )
        start = said.text_offset[0]
        rows = zip(said.tokens, said.text_offset, said.token_logprobs, strict=True)
        tokens = [(t, at - start, p) for t, at, p in rows if at - start < len(text)]
        if not any(p is not None for _, _, p in tokens):
            raise DataError(f"{self.info.name} scored no token of {text[:60]!r}")
        return tokens

    def _joined(self, ids: tuple[int, ...], tail: int) -> Encoded:
        raise UsageError("a server tokenises by itself")


def open_server_scorer(
    spec: Spec, *, revision: str | None, notify: Notify, base_url: str | None = None
) -> ServerScorer:
    """The scorer of a model on a server; see `kgbias.models.open_scorer`."""
    if revision:
        raise UsageError(f"{spec} is on a server, which does not say its model's revision")
    return ServerScorer(spec.name, base_url)


def _in_bits(tokens: Sequence[Token]) -> Surprisals:
    return surprisals([t for t, _, p in tokens if p is not None], _values(tokens))


def _values(tokens: Sequence[Token]) -> Array:
    return np.array([p for _, _, p in tokens if p is not None], dtype=np.float64)


def _sums(rows: Sequence[Array]) -> Scores:
    return Scores(
        np.array([row.sum() for row in rows], dtype=np.float64),
        np.array([len(row) for row in rows], dtype=np.int64),
    )
