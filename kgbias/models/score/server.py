"""Scores from an OpenAI-compatible completions server that returns prompt log-probabilities (vLLM,
llama.cpp): the prompt is echoed with the log-probability of each of its tokens."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np

from kgbias.errors import DataError, ModelError, UsageError
from kgbias.io.progress import Progress, Silent
from kgbias.models.base import Can, ModelInfo, Notify
from kgbias.models.score.base import (
    Array,
    Convention,
    Encoded,
    Grid,
    Scores,
    Surprisals,
    TextScorer,
    sums,
    surprisals,
)
from kgbias.models.spec import Spec
from kgbias.models.wire import (
    Caller,
    number,
    server_url,
    without_password,
)

_BATCH = 32  # prompts of one request
_WORKERS = 4
_RETRIES = 2
_FAR = 1 << 40  # beyond any place of a text
_LOWEST, _ROUNDING = -1e6, 1e-4  # of a log-probability: -inf is none, and 0 may be a little more

Token = tuple[str, int, float | None]  # text, where it begins, log-probability


class ServerScorer(TextScorer):
    """The model of that id at `base_url` (default OPENAI_BASE_URL, else OpenAI's own).

    The server decides whether something comes before a text; if nothing does, the first token has
    no log-probability and is not scored. Tokens are the server's: the statement's are those that
    end after the group.
    """

    logprobs: ClassVar[Can] = "depends"

    def __init__(self, model: str, base_url: str | None = None, timeout: float = 120.0) -> None:
        url = server_url(base_url)
        self._server = Caller(url, timeout, _RETRIES)
        self._model = model
        self.convention = Convention("server", "server", "")
        self.settings = (*self.convention.settings(), ("base_url", without_password(url)))
        self.info = ModelInfo(f"openai:{model}")

    def score(self, texts: Sequence[str], progress: Progress | None = None) -> Scores:
        rows = self._ask(texts, progress)
        return sums([_values(tokens) for tokens in rows])

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
            sums([_values(tokens) for tokens in whole]).reshape(*shape),
            sums([_values(tokens) for tokens in ends]).reshape(*shape),
            sums([_values(tokens) for tokens in alone]),
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
            try:
                for batch, rows in zip(batches, pool.map(self._request, batches), strict=True):
                    found.update(zip(batch, rows, strict=True))
                    told.advance(len(batch))
            except BaseException:  # after one failure the rest is not asked
                pool.shutdown(cancel_futures=True)
                raise
        return [found[text] for text in texts]

    def _request(self, texts: list[str]) -> list[list[Token]]:
        answer = self._server.ask(
            lambda client: client.completions.with_raw_response.create(
                model=self._model, prompt=texts, max_tokens=1, temperature=0, echo=True, logprobs=1
            ),
            self.info.name,
        )
        choices = answer.get("choices")
        if not isinstance(choices, list) or len(choices) != len(texts):
            count = len(choices) if isinstance(choices, list) else "no"
            raise ModelError(f"{self.info.name} gave {count} answers to {len(texts)} prompts")
        by_index = {
            c.get("index"): c for c in choices if isinstance(c, dict) and _whole(c, "index")
        }
        if set(by_index) != set(range(len(texts))):
            raise ModelError(f"{self.info.name} does not say which answer belongs to which prompt")
        return [self._read(text, by_index[n]) for n, text in enumerate(texts)]

    def _read(self, text: str, choice: Mapping[str, Any]) -> list[Token]:
        """The tokens of one text. Raises ModelError if a part is missing or invalid: an invalid
        log-probability would end up in every figure."""
        parts = choice.get("logprobs")
        names = ("tokens", "text_offset", "token_logprobs")
        lists: list[Any] = [parts.get(name) for name in names] if isinstance(parts, dict) else []
        if not lists or not all(isinstance(values, list) and values for values in lists):
            raise ModelError(
                f"{self.info.name} does not return the log-probabilities of a prompt "
                "(echo with logprobs); vLLM does"
            )
        tokens, offsets, logs = lists
        sound = (
            len(tokens) == len(offsets) == len(logs)
            and all(isinstance(token, str) for token in tokens)
            and all(number(at, 0, _FAR) is not None for at in offsets)
            and all(p is None or number(p, _LOWEST, _ROUNDING) is not None for p in logs)
        )
        if not sound:
            raise ModelError(
                f"{self.info.name} answers with invalid log-probabilities: not numbers up to 0, "
                "one for each token, with the token's text and place"
            )
        start = offsets[0]
        rows = [
            (self._server.secrets.clean(token), int(at - start), None if p is None else float(p))
            for token, at, p in zip(tokens, offsets, logs, strict=True)
        ]
        found = [row for row in rows if row[1] < len(text)]
        if not any(p is not None for _, _, p in found):
            raise DataError(f"{self.info.name} scored no token of {text[:60]!r}")
        return found

    def _joined(self, ids: tuple[int, ...], tail: int) -> Encoded:
        raise UsageError("a server does its own tokenising")


def open_server_scorer(
    spec: Spec, *, revision: str | None, notify: Notify, base_url: str | None = None
) -> ServerScorer:
    """The scorer of a model on a server; see `kgbias.models.open_scorer`."""
    if revision:
        raise UsageError(f"{spec} is on a server, which does not say its model's revision")
    return ServerScorer(spec.name, base_url)


def _whole(choice: Mapping[str, Any], name: str) -> bool:
    value = choice.get(name)
    return isinstance(value, int) and not isinstance(value, bool)


def _in_bits(tokens: Sequence[Token]) -> Surprisals:
    return surprisals([t for t, _, p in tokens if p is not None], _values(tokens))


def _values(tokens: Sequence[Token]) -> Array:
    return np.array([p for _, _, p in tokens if p is not None], dtype=np.float64)
