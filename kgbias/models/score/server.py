"""Scores from an OpenAI-compatible completions server that returns prompt log-probabilities (vLLM,
llama-cpp-python): the prompt is echoed with the log-probability of each of its tokens.

What a server echoes is not believed but checked: the tokens must spell the text, and before
anything is scored, a known text must get the same log-probabilities alone and as the beginning of a
longer one. That is so for every causal model, whatever it believes, and for no server that scores
other tokens than it shows.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from kgbias.errors import DataError, ModelError, UsageError
from kgbias.io.progress import Progress, SilentProgress
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
from kgbias.models.threads import Unawaited
from kgbias.models.wire import (
    Caller,
    number,
    server_url,
    without_password,
)

_BATCH = 32  # prompts of one request
_WORKERS = 4
_RETRIES = 2
_LOWEST, _ROUNDING = -1e6, 1e-4  # of a log-probability: -inf is none, and 0 may be a little more
_NO_TOKENS = (
    "this needs a local model: it compares texts token by token, and a server does not say what "
    "its tokens are"
)

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
        self._written = 1  # tokens to write after a prompt
        self._one_by_one = False  # whether the server takes one prompt a request
        self._checked = False
        self.convention = Convention("server", "server", "")
        self.settings = (*self.convention.settings(), ("base_url", without_password(url)))
        self.info = ModelInfo(f"openai:{model}")

    def score(self, texts: Sequence[str], progress: Progress | None = None) -> Scores:
        rows = self._ask(texts, progress)
        for text, tokens in zip(texts, rows, strict=True):
            self._need_scored(text, tokens)
        return sums([_values(tokens) for tokens in rows])

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Progress | None = None
    ) -> Grid:
        probes = [f"{group} {statement}" for group in groups for statement in statements]
        rows = self._ask([*groups, *probes], progress)
        alone, whole = rows[: len(groups)], rows[len(groups) :]
        for probe, tokens in zip(probes, whole, strict=True):
            self._need_scored(probe, tokens)
        ends = [
            _after(own, len(group), whole[g * len(statements) + s])
            for g, (group, own) in enumerate(zip(groups, alone, strict=True))
            for s in range(len(statements))
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
        self._need_scored(text, tokens)
        return _in_bits(tokens)

    def tokens(self, text: str) -> tuple[int, ...]:
        raise UsageError(_NO_TOKENS)

    def token_scores(self, *_: Any, **__: Any) -> list[Array]:
        raise UsageError(_NO_TOKENS)

    def _ask(self, texts: Sequence[str], progress: Progress | None) -> list[list[Token]]:
        """The tokens of each text; equal texts are asked once."""
        for text in texts:
            if not text.strip():
                raise DataError("an empty text cannot be scored")
        if not self._checked:
            self._check_itself()
            self._checked = True
        told = progress or SilentProgress()
        distinct = list(dict.fromkeys(texts))
        batches = [distinct[n : n + _BATCH] for n in range(0, len(distinct), _BATCH)]
        found: dict[str, list[Token]] = {}
        pool = Unawaited(_WORKERS)
        try:
            for batch, rows in zip(batches, pool.map(self._request, batches), strict=True):
                found.update(zip(batch, rows, strict=True))
                told.advance(len(batch))
        finally:  # after one failure the rest is neither asked nor waited for
            pool.shutdown(wait=False, cancel_futures=True)
        return [found[text] for text in texts]

    def _need_scored(self, text: str, tokens: Sequence[Token]) -> None:
        if not any(p is not None for _, _, p in tokens):
            raise DataError(
                f"{self.info.name} scored no token of {text[:60]!r}: it is a single token, and the "
                "server puts none before it"
            )

    def _check_itself(self) -> None:
        """Raise ModelError if a known text gets other log-probabilities as the beginning of a
        longer text, or nothing but zeros."""
        alone, longer = self._request([_KNOWN, _KNOWN + _CONTINUED])
        there = {(token, at): p for token, at, p in longer}
        both = [(p, there[token, at]) for token, at, p in alone if (token, at) in there]
        pairs = [(p, q) for p, q in both if p is not None and q is not None]
        same = bool(pairs) and all(abs(p - q) < _TOLERANCE for p, q in pairs)
        if not same or not any(p for _, _, p in longer):
            raise ModelError(
                f"{self.info.name} echoes log-probabilities that are not those of the tokens: a "
                "text has others alone than as the beginning of a longer one, or all are 0"
            )

    def _request(self, texts: list[str]) -> list[list[Token]]:
        """The tokens of each text. What a server cannot be asked, in several prompts at once or for
        a token more, it is not asked again."""
        if self._one_by_one and len(texts) > 1:
            return [row for text in texts for row in self._request([text])]
        try:
            return self._answered(texts)
        except ModelError as error:
            if self._written and _NOTHING_WRITTEN.search(str(error)):
                self._written = 0
            elif not self._one_by_one and _ONE_PROMPT.search(str(error)):
                self._one_by_one = True
            else:
                raise
        return self._request(texts)

    def _answered(self, texts: list[str]) -> list[list[Token]]:
        prompt: Any = texts[0] if self._one_by_one else texts
        answer = self._server.ask(
            lambda client: client.completions.with_raw_response.create(
                model=self._model,
                prompt=prompt,
                max_tokens=self._written,
                temperature=0,
                echo=True,
                logprobs=1,
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
        lists = _lists(choice.get("logprobs"))
        if not lists or not all(isinstance(values, list) and values for values in lists):
            raise ModelError(
                f"{self.info.name} does not return the log-probabilities of a prompt "
                "(echo with logprobs); vLLM does"
            )
        tokens, logs = lists
        sound = (
            len(tokens) == len(logs)
            and all(isinstance(token, str) for token in tokens)
            and all(p is None or number(p, _LOWEST, _ROUNDING) is not None for p in logs)
        )
        if not sound:
            raise ModelError(
                f"{self.info.name} answers with invalid log-probabilities: not numbers up to 0, "
                "one for each token, with the token's text"
            )
        written = choice.get("text")
        if isinstance(written, str) and written.startswith(text) and len(written) > len(text):
            places = _spelled(text, tokens[:-1])  # without the one token that was written
        else:
            places = _spelled(text, tokens)
        if (numbered := _numbered(tokens, self._written)) is not None:
            places = numbered
        if places is None:
            raise ModelError(
                f"{self.info.name} does not give back the text that it was sent (echo with "
                f"logprobs; vLLM does): of {text[:60]!r} it gives {' '.join(tokens[:4])[:60]!r}"
            )
        found = [
            (
                self._server.secrets.clean(tokens[n]),
                at,
                None if (p := logs[n]) is None else float(p),
            )
            for n, at in places
        ]
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


_ID = re.compile(r"token_id:\d+\Z")
_SPECIAL = re.compile(r"\A(?:<[^<>\s]{1,40}>|\[[A-Z]{2,8}\]|<｜[^｜]{1,40}｜>|)\Z")
_BYTES = re.compile(r"\Abytes:((?:\\x[0-9a-f]{2})+)\Z")
_MAX_UNSEEN = 4  # tokens of which one character may consist
_KNOWN = "The children went to the market and bought a basket of"
_CONTINUED = " seventeen purple engines"
_TOLERANCE = 1.0  # of a log-probability: kernels of low precision differ with what follows
_NOTHING_WRITTEN = re.compile(r"max_tokens\W*(?:=|to|must be|of)?\W*0\b", re.IGNORECASE)
_ONE_PROMPT = re.compile(
    r"prompt\b[^.]{0,40}\b(?:string|list|array|single)|expected (?:a )?string"
    r"|(?:list|array|batch|multiple|several|single)\b[^.]{0,40}prompt",
    re.IGNORECASE,
)


def _lists(parts: Any) -> list[Any]:
    """The tokens of an echoed prompt and their log-probabilities, in the shape of completions or in
    that of chats; an empty list if there are none."""
    if not isinstance(parts, dict):
        return []
    content = parts.get("content")
    if isinstance(content, list) and all(isinstance(one, dict) for one in content):
        return [[one.get(name) for one in content] for name in ("token", "logprob")]
    return [parts.get(name) for name in ("tokens", "token_logprobs")]


def _numbered(tokens: Sequence[str], written: int) -> list[tuple[int, int]] | None:
    """Tokens that are shown by their numbers (vLLM's --return-tokens-as-token-ids): all but those
    that were written, each at its own place in the list. None if they are shown as text."""
    if not all(map(_ID.match, tokens)):
        return None
    return [(n, n) for n in range(len(tokens) - written)]


def _spelled(text: str, tokens: Sequence[str]) -> list[tuple[int, int]] | None:
    """Which tokens spell the text, and where each begins; None if they do not.

    What the server says of their places is not relied on: one that puts a token before a text
    counts its name in. A special token at the beginning spells nothing; a token that is a part of a
    character is shown as one that is none, or by its bytes.
    """
    found: list[tuple[int, int]] = []
    at, unseen = 0, 0
    for n, shown in enumerate(tokens):
        token = shown.replace("\u2581", " ")
        if at >= len(text):
            break
        if "\ufffd" in token or _BYTES.match(token):
            unseen += 1
            found.append((n, at))
            continue
        if not found and _SPECIAL.match(token) and not text.startswith(token or "\0"):
            continue
        if unseen:
            ahead = text.find(token, at, at + unseen * _MAX_UNSEEN + len(token))
            if ahead < 0:
                break  # the token that was written, if what is left could be the unseen ones
            at, unseen = ahead, 0
        elif text.startswith(" ", at) and not text.startswith(token, at):
            at += 1  # decoders of single tokens leave out the space before a word
        elif not found and token.startswith(" ") and text.startswith(token[1:]):
            token = token[1:]  # put before a text by some tokenizers
        if not token or not text.startswith(token, at):
            return None
        found.append((n, at))
        at += len(token)
    rest = len(text) - at
    return found if rest <= 0 or rest <= unseen * _MAX_UNSEEN else None


def _after(group: Sequence[Token], length: int, probe: Sequence[Token]) -> Sequence[Token]:
    """The tokens of a probe that fall on its statement: those that end after the group's text or,
    if they are shown by their numbers, those after what the probe shares with the group alone."""
    if probe and _ID.match(probe[0][0]):
        same = 0
        while same < min(len(group), len(probe)) and group[same][0] == probe[same][0]:
            same += 1
        return probe[same:]
    return [token for token in probe if token[1] + len(token[0]) > length]


def _whole(choice: Mapping[str, Any], name: str) -> bool:
    value = choice.get(name)
    return isinstance(value, int) and not isinstance(value, bool)


def _in_bits(tokens: Sequence[Token]) -> Surprisals:
    return surprisals([t for t, _, p in tokens if p is not None], _values(tokens))


def _values(tokens: Sequence[Token]) -> Array:
    return np.array([p for _, _, p in tokens if p is not None], dtype=np.float64)
