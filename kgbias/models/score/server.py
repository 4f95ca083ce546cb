"""Scores from an OpenAI-compatible completions server that returns prompt log-probabilities (vLLM,
llama-cpp-python): the prompt is echoed with the log-probability of each of its tokens.

What a server echoes is not believed but checked: the tokens must spell the text, and before
anything is scored, a known text must get the same log-probabilities alone and as the beginning of a
longer one. That is so for every causal model, whatever it believes, and for no server that scores
other tokens than it shows.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from kgbias.errors import DataError, ModelError, UsageError
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.wording import pluralise
from kgbias.language.words import join_words
from kgbias.models.base import ModelInfo, Notify, Support
from kgbias.models.http import (
    BlockingClient,
    number_between,
    server_url,
    without_password,
)
from kgbias.models.score.base import (
    Array,
    Convention,
    ProbeGrid,
    Scores,
    Surprisals,
    TextScorer,
    TokenisedText,
    pair_surprisals,
    sum_scores,
)
from kgbias.models.spec import Spec
from kgbias.models.threads import UnawaitedThreads

_BATCH_PROMPTS = 32  # prompts of one request
_MAX_WORKERS = 4
_MAX_RETRIES = 2
_MIN_LOG_PROB, _MAX_LOG_PROB = (
    -1e6,
    1e-4,
)  # of a log-probability: -inf is none, and 0 may be a little more
_NO_TOKENS_MESSAGE = (
    "this needs a local model: it compares texts token by token, and a server does not say what "
    "its tokens are"
)

Token = tuple[str, int, float | None]  # text, where it begins, log-probability
PlacedToken = tuple[int, int, str]  # which it is, where it begins, what of the text it is


class ServerScorer(TextScorer):
    """The model of that id at `base_url` (default OPENAI_BASE_URL, else OpenAI's own).

    The server decides whether something comes before a text; if nothing does, the first token has
    no log-probability and is not scored. Tokens are the server's: the statement's are those that
    end after the group.
    """

    logprobs: ClassVar[Support] = "depends"

    def __init__(self, model: str, base_url: str | None = None, timeout: float = 120.0) -> None:
        url = server_url(base_url)
        self._server = BlockingClient(url, timeout, _MAX_RETRIES)
        self._model = model
        self._answer_tokens = 1  # tokens to write after a prompt
        self._one_by_one = False  # whether the server takes one prompt a request
        self._is_checked = False
        self.convention = Convention("server", "server", "")
        self.settings = (*self.convention.settings(), ("base_url", without_password(url)))
        self.info = ModelInfo(f"openai:{model}")

    def score(self, texts: Sequence[str], progress: Progress | None = None) -> Scores:
        rows = self._ask(texts, progress)
        for text, tokens in zip(texts, rows, strict=True):
            self._need_scored(text, tokens)
        return sum_scores([_log_probabilities(tokens) for tokens in rows])

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Progress | None = None
    ) -> ProbeGrid:
        probes = [join_words(group, statement) for group in groups for statement in statements]
        rows = self._ask([*groups, *probes], progress)
        group_rows, probe_rows = rows[: len(groups)], rows[len(groups) :]
        for probe, tokens in zip(probes, probe_rows, strict=True):
            self._need_scored(probe, tokens)
        statement_rows = [
            _tokens_after_group(
                group_row, len(group), probe_rows[group_number * len(statements) + statement_number]
            )
            for group_number, (group, group_row) in enumerate(zip(groups, group_rows, strict=True))
            for statement_number in range(len(statements))
        ]
        shape = len(groups), len(statements)
        return ProbeGrid(
            sum_scores([_log_probabilities(tokens) for tokens in probe_rows]).reshape(*shape),
            sum_scores([_log_probabilities(tokens) for tokens in statement_rows]).reshape(*shape),
            sum_scores([_log_probabilities(tokens) for tokens in group_rows]),
            lambda group_number, statement_number: _to_surprisals(
                probe_rows[group_number * len(statements) + statement_number]
            ),
        )

    def surprisals(self, text: str) -> Surprisals:
        (tokens,) = self._ask([text], None)
        self._need_scored(text, tokens)
        return _to_surprisals(tokens)

    def tokens(self, text: str) -> tuple[int, ...]:
        raise UsageError(_NO_TOKENS_MESSAGE)

    def token_scores(self, *_: Any, **__: Any) -> list[Array]:
        raise UsageError(_NO_TOKENS_MESSAGE)

    def _ask(self, texts: Sequence[str], progress: Progress | None) -> list[list[Token]]:
        """The tokens of each text; equal texts are asked once."""
        for text in texts:
            if not text.strip():
                raise DataError("an empty text cannot be scored")
        if not self._is_checked:
            self._check_server()
            self._is_checked = True
        progress_bar = progress or SilentProgress()
        distinct = list(dict.fromkeys(texts))
        batches = [
            distinct[n : n + _BATCH_PROMPTS] for n in range(0, len(distinct), _BATCH_PROMPTS)
        ]
        tokens_by_text: dict[str, list[Token]] = {}
        workers = UnawaitedThreads(_MAX_WORKERS)
        try:
            for batch, rows in zip(
                batches, workers.map(self._request_tokens, batches), strict=True
            ):
                tokens_by_text.update(zip(batch, rows, strict=True))
                progress_bar.advance(len(batch))
        finally:  # after one failure the rest is neither asked nor waited for
            workers.shutdown(wait=False, cancel_futures=True)
        return [tokens_by_text[text] for text in texts]

    def _need_scored(self, text: str, tokens: Sequence[Token]) -> None:
        if not any(p is not None for _, _, p in tokens):
            raise DataError(
                f"{self.info.name} scored no token of {text[:60]!r}: it is a single token, and the "
                "server puts none before it"
            )

    def _check_server(self) -> None:
        """Raise ModelError if a known text gets other log-probabilities as the beginning of a
        longer text, or nothing but zeros."""
        alone_tokens, longer_tokens = self._request_tokens(
            [_CHECK_TEXT, _CHECK_TEXT + _CHECK_CONTINUATION]
        )
        longer_log_probs = {(token, at): p for token, at, p in longer_tokens}
        matching_log_probs = [
            (p, longer_log_probs[token, at])
            for token, at, p in alone_tokens
            if (token, at) in longer_log_probs
        ]
        known_pairs = [(p, q) for p, q in matching_log_probs if p is not None and q is not None]
        is_same = bool(known_pairs) and all(abs(p - q) < _MAX_LOG_PROB_GAP for p, q in known_pairs)
        if not is_same or not any(p for _, _, p in longer_tokens):
            raise ModelError(
                f"{self.info.name} echoes log-probabilities that are not those of the tokens: a "
                "text has others alone than as the beginning of a longer one, or all are 0"
            )

    def _request_tokens(self, texts: list[str]) -> list[list[Token]]:
        """The tokens of each text. What a server cannot be asked, in several prompts at once or for
        a token more, it is not asked again."""
        if self._one_by_one and len(texts) > 1:
            return [row for text in texts for row in self._request_tokens([text])]
        try:
            return self._send_request(texts)
        except ModelError as error:
            if self._answer_tokens and _ZERO_TOKENS_PATTERN.search(str(error)):
                # It echoes a prompt only if nothing is written after it.
                self._answer_tokens = 0
            elif not self._one_by_one and _ONE_PROMPT_PATTERN.search(str(error)):
                self._one_by_one = True
            else:
                raise
        return self._request_tokens(texts)

    def _send_request(self, texts: list[str]) -> list[list[Token]]:
        prompt: Any = texts[0] if self._one_by_one else texts
        answer = self._server.ask(
            lambda client: client.completions.with_raw_response.create(
                model=self._model,
                prompt=prompt,
                max_tokens=self._answer_tokens,
                temperature=0,
                echo=True,
                logprobs=1,
            ),
            self.info.name,
        )
        choices = answer.get("choices")
        if not isinstance(choices, list) or len(choices) != len(texts):
            if isinstance(choices, list) and len(texts) > 1 and not self._one_by_one:
                self._one_by_one = True  # it answers one of several prompts
                return self._request_tokens(texts)
            count = len(choices) if isinstance(choices, list) else "no"
            raise ModelError(
                f"{self.info.name} gave {count} answers to {pluralise(len(texts), 'prompt')}"
            )
        by_index = {
            c.get("index"): c
            for c in choices
            if isinstance(c, dict) and _is_whole_number(c, "index")
        }
        if set(by_index) != set(range(len(texts))):
            raise ModelError(f"{self.info.name} does not say which answer belongs to which prompt")
        return [self._read_choice(text, by_index[n]) for n, text in enumerate(texts)]

    def _read_choice(self, text: str, choice: Mapping[str, Any]) -> list[Token]:
        """The tokens of one text. Raises ModelError if a part is missing or invalid: an invalid
        log-probability would end up in every figure."""
        lists = _token_lists(choice.get("logprobs"))
        if not lists or not all(isinstance(values, list) and values for values in lists):
            raise ModelError(
                f"{self.info.name} does not return the log-probabilities of a prompt "
                "(echo with logprobs); vLLM does"
            )
        tokens, log_probs = lists
        is_sound = (
            len(tokens) == len(log_probs)
            and all(isinstance(token, str) for token in tokens)
            and all(
                p is None or number_between(p, _MIN_LOG_PROB, _MAX_LOG_PROB) is not None
                for p in log_probs
            )
        )
        if not is_sound:
            raise ModelError(
                f"{self.info.name} answers with invalid log-probabilities: not numbers up to 0, "
                "one for each token, with the token's text"
            )
        returned_text = choice.get("text")
        if (
            isinstance(returned_text, str)
            and returned_text.startswith(text)
            and len(returned_text) > len(text)
        ):
            places = _place_spelled_tokens(
                text, tokens[:-1]
            )  # without the one token that was written
        else:
            places = _place_spelled_tokens(text, tokens)
        if (numbered_places := _place_numbered_tokens(tokens, self._answer_tokens)) is not None:
            places = numbered_places
        if places is None:
            raise ModelError(
                f"{self.info.name} does not give back the text that it was sent (echo with "
                f"logprobs; vLLM does): of {text[:60]!r} it gives {' '.join(tokens[:4])[:60]!r}"
            )
        placed_tokens = [
            (
                self._server.secrets.clean(spelled),
                at,
                None if (p := log_probs[n]) is None else float(p),
            )
            for n, at, spelled in places
        ]
        return placed_tokens

    def _frame_tokens(self, ids: tuple[int, ...], statement_tokens: int) -> TokenisedText:
        raise UsageError("a server does its own tokenising")


def open_server_scorer(
    spec: Spec, *, revision: str | None, notify: Notify, base_url: str | None = None
) -> ServerScorer:
    """The scorer of a model on a server; see `kgbias.models.open_scorer`."""
    if revision:
        raise UsageError(f"{spec} is on a server, which does not say its model's revision")
    return ServerScorer(spec.name, base_url)


_TOKEN_ID_PATTERN = re.compile(r"token_id:\d+\Z")
_SPECIAL_TOKEN_PATTERN = re.compile(
    r"\A(?:<[^<>\s]{1,40}>|\[[A-Za-z]{2,12}\]|<｜[^｜]{1,40}｜>|)\Z"
)
# Bytes of a character: "bytes:\xc3", "\xc3" or "<0xC3>".
_BYTES_PATTERN = re.compile(r"\A(?:(?:bytes:)?(?:\\x[0-9a-f]{2})+|<0x[0-9a-f]{2}>)\Z", re.I)
_MAX_TOKENS_PER_CHARACTER = 4  # tokens of which one character may consist
_CHECK_TEXT = "The children went to the market and bought a basket of"
_CHECK_CONTINUATION = " seventeen purple engines"
_MAX_LOG_PROB_GAP = 1.0  # of a log-probability: kernels of low precision differ with what follows
_ZERO_TOKENS_PATTERN = re.compile(r"max_tokens\W*(?:=|to|must be|of)?\W*0\b", re.IGNORECASE)
_ONE_PROMPT_PATTERN = re.compile(
    r"prompt\b[^.]{0,40}\b(?:string|list|array|single)|expected (?:a )?string"
    r"|(?:list|array|batch|multiple|several|single)\b[^.]{0,40}prompt",
    re.IGNORECASE,
)


def _token_lists(logprobs: Any) -> list[Any]:
    """The tokens of an echoed prompt and their log-probabilities, in the shape of completions or in
    that of chats; an empty list if there are none."""
    if not isinstance(logprobs, dict):
        return []
    content = logprobs.get("content")
    if isinstance(content, list) and all(isinstance(one, dict) for one in content):
        return [[one.get(name) for one in content] for name in ("token", "logprob")]
    return [logprobs.get(name) for name in ("tokens", "token_logprobs")]


def _place_numbered_tokens(tokens: Sequence[str], answer_tokens: int) -> list[PlacedToken] | None:
    """Tokens that are shown by their numbers (vLLM's --return-tokens-as-token-ids): all but those
    that were written, each at its own place in the list. None if they are shown as text."""
    if not all(map(_TOKEN_ID_PATTERN.match, tokens)):
        return None
    return [(n, n, tokens[n]) for n in range(len(tokens) - answer_tokens)]


def _place_spelled_tokens(text: str, tokens: Sequence[str]) -> list[PlacedToken] | None:
    """Which tokens spell the text, where each begins, and what of the text it is (U+FFFD for a part
    of a character); None if they do not spell it.

    What the server says of their places is not relied on: one that puts a token before a text
    counts its name in. A special token at the beginning spells nothing; a token that is a part of a
    character is shown as one that is none, or by its bytes.
    """
    placed_tokens: list[PlacedToken] = []
    offset, unseen_tokens = 0, 0
    # How byte-level BPE shows a space, as U+2581 is how SentencePiece does.
    is_byte_level = any(token.startswith("Ġ") for token in tokens) and "Ġ" not in text
    for n, shown_token in enumerate(tokens):
        token = _decode_bytes(shown_token) if is_byte_level else shown_token.replace("\u2581", " ")
        if offset >= len(text):
            break
        if "\ufffd" in token or _BYTES_PATTERN.match(token):
            unseen_tokens += 1
            placed_tokens.append((n, offset, "\ufffd"))
            continue
        if (
            not placed_tokens
            and _SPECIAL_TOKEN_PATTERN.match(token)
            # Every text begins with an empty token, and none with a zero.
            and not text.startswith(token or "\0")
        ):
            continue
        if unseen_tokens:
            found_offset = text.find(
                token, offset, offset + unseen_tokens * _MAX_TOKENS_PER_CHARACTER + len(token)
            )
            if found_offset < 0:
                break  # the token that was written, if what is left could be the unseen ones
            offset, unseen_tokens = found_offset, 0
        elif text.startswith(" ", offset) and not text.startswith(token, offset):
            offset += 1  # decoders of single tokens leave out the space before a word
        elif not placed_tokens and token.startswith(" ") and text.startswith(token[1:]):
            token = token[1:]  # put before a text by some tokenizers
            if not token:
                placed_tokens.append((n, offset, ""))
                continue
        if not token or not text.startswith(token, offset):
            return None
        placed_tokens.append((n, offset, token))
        offset += len(token)
    remaining = len(text) - offset
    return (
        placed_tokens
        if remaining <= 0 or remaining <= unseen_tokens * _MAX_TOKENS_PER_CHARACTER
        else None
    )


@cache
def _byte_of_sign() -> Mapping[str, int]:
    """The byte that each sign stands for in vocabularies of byte-level BPE, as GPT-2 began them:
    printable bytes are themselves, the others follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }


def _decode_bytes(token: str) -> str:
    """The text of a token of byte-level BPE that is shown by its signs: "Ġare" is " are". A part of
    a character is U+FFFD."""
    byte_of_sign = _byte_of_sign()
    if not all(sign in byte_of_sign for sign in token):
        return token
    return bytes(byte_of_sign[sign] for sign in token).decode("utf-8", "replace")


def _tokens_after_group(
    group: Sequence[Token], length: int, probe: Sequence[Token]
) -> Sequence[Token]:
    """The tokens of a probe that fall on its statement: those that end after the group's text or,
    if they are shown by their numbers, those after what the probe shares with the group alone."""
    if probe and _TOKEN_ID_PATTERN.match(probe[0][0]):
        shared_tokens = 0
        while (
            shared_tokens < min(len(group), len(probe))
            and group[shared_tokens][0] == probe[shared_tokens][0]
        ):
            shared_tokens += 1
        return probe[shared_tokens:]
    return [token for token in probe if token[1] + len(token[0]) > length]


def _is_whole_number(choice: Mapping[str, Any], name: str) -> bool:
    value = choice.get(name)
    return isinstance(value, int) and not isinstance(value, bool)


def _to_surprisals(tokens: Sequence[Token]) -> Surprisals:
    return pair_surprisals([t for t, _, p in tokens if p is not None], _log_probabilities(tokens))


def _log_probabilities(tokens: Sequence[Token]) -> Array:
    return np.array([p for _, _, p in tokens if p is not None], dtype=np.float64)
