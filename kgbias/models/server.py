"""Models on a server, asked many at a time: what all providers have in common.

A provider is a `ServerModel` that says how a request is written (`_parameters`, `_body`), sent and
read, and what an error of its client means. What a server honours is checked, never assumed: stop
strings are cut here too, seeds are sent but not trusted, and a parameter that a server refuses by
name is left out from then on. What the server says about itself is kept with each answer.
"""

import asyncio
import random
import re
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Literal, NamedTuple

from kgbias.errors import ModelError, UsageError
from kgbias.models.background import Background, Gate, Stream
from kgbias.models.base import Abilities, Completion, ModelInfo, Notify, Request, Settings
from kgbias.models.wire import Secrets, message, parsed, without_password

MAX_TEXT = 65_536  # characters kept of one answer
_TRIES = 6
_LONGEST_WAIT = 120.0
_RETRIED = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_BUSY = {429, 503, 529}
_FATAL = {401, 403, 404}
_REFUSED = {400, 422, 501}
_ROOM = (2_048, 16_384)  # tokens for a model that thinks before it answers: at first, and at most


class Failure(NamedTuple):
    """Why a server gave no answer: its own message with the status, and the seconds that it wants
    us to wait; without a status it was `late`, or out of reach. It may have `withheld` the answer
    because of what was asked."""

    message: str
    code: int = 0
    wait: float = 0.0
    late: bool = False
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What a server's answer holds, as it came. `ended` is as in `Completion.finish`; an "error" is
    an answer that is none, and `details` says why. `thought` are the tokens that the model spent on
    thinking, which count among those of the completion."""

    text: str
    ended: Literal["stop", "length", "refused", "error"]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


class ServerModel:
    """A `Completer` on a server.

    `optional` are the parameters that a server may refuse, each with a pattern of how its refusals
    call it, in the order in which they are given up; `unknown` those that the provider does not
    have at all.
    """

    abilities: ClassVar[Abilities]
    optional: ClassVar[Mapping[str, str]]
    unknown: ClassVar[tuple[str, ...]] = ()
    hottest: ClassVar[float] = 10.0

    def __init__(
        self,
        spec: str,
        url: str,
        secrets: Secrets,
        concurrency: int,
        timeout: float,
        notify: Notify,
    ) -> None:
        if concurrency < 1:
            raise UsageError("`concurrency` must be positive")
        self._shown_url = without_password(url)
        self.info = ModelInfo(spec)
        self.settings: Settings = (("base_url", self._shown_url),)
        self._model = spec.partition(":")[2]
        self._url = url
        self._secrets = secrets
        self._concurrency = concurrency
        self._gate = Gate(concurrency, notify)
        self._background = Background()
        self._client: Any = None
        self._timeout = timeout
        self._notify = notify
        self._left_out: set[str] = set()  # parameters that this server refuses
        self._room = 0  # tokens beyond the limit of an answer, for thinking
        self._answered = False
        self._takes_format = False

    # What a provider says

    def _open(self) -> Any:
        """The provider's own client. Raises MissingExtra without its package."""
        raise NotImplementedError

    def _parameters(self, request: Request) -> dict[str, Any]:
        """What a request asks for besides its prompt, by our names for it."""
        raise NotImplementedError

    async def _send(self, request: Request, sent: Mapping[str, Any]) -> tuple[bytes, str]:
        """Send it; the body of the response and its content type."""
        raise NotImplementedError

    def _failure(self, error: Exception) -> Failure | None:
        """What an error of the client means; None where it is none of the client's."""
        raise NotImplementedError

    def _said(self, data: Any, request: Request) -> Said:
        """What the value of a response's body says. Raises LookupError, TypeError or AttributeError
        for a value that is no answer."""
        raise NotImplementedError

    # Asking

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        self._check(requests)
        if self._client is None:
            self._client = self._open()
        yield from self._background.run(lambda done: self._ask_all(requests, done)).batches()

    def close(self) -> None:
        self._background.close(self._close() if self._client is not None else None)
        self._client = None

    async def _close(self) -> None:
        await self._client.close()

    def _check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for what the provider cannot be asked; say what it does not know."""
        for request in requests:
            if request.form not in self.abilities.forms:
                raise UsageError(f"{self.info.name} answers messages: `form` must be chat")
            if request.temperature > self.hottest:
                raise UsageError(
                    f"{self.info.name} takes a `temperature` of at most {self.hottest:g}"
                )
        wanted = {"seed"}.union(*(request.truncation.as_dict() for request in requests))
        for name in self.unknown:
            if name in wanted and name not in self._left_out:
                self._leave_out(name)

    def _leave_out(self, name: str) -> None:
        self._left_out.add(name)
        self._notify(f"{self._shown_url} does not take {name}: asking without it")

    async def _ask_all(
        self, requests: Sequence[Request], done: Stream[tuple[int, Completion]]
    ) -> None:
        pending = iter(range(len(requests)))

        async def work() -> None:
            for index in pending:  # each worker takes the next request that no other has
                done.put((index, await self._ask(requests[index])))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._concurrency, len(requests))):
                group.create_task(work())

    async def _ask(self, request: Request) -> Completion:
        began = time.perf_counter()
        why, read, written = "", 0, 0
        for attempt in range(_TRIES):
            wait = min(30.0, 0.5 * 2**attempt) * random.uniform(0.5, 1.0)
            sent, room = self._written(request), self._room
            try:
                async with self._gate:
                    body, kind = await self._send(request, sent)
            except Exception as error:
                failure = self._failure(error)
                if failure is None:
                    raise
                why, code = self._told(failure), failure.code
                if failure.withheld:
                    seconds = time.perf_counter() - began
                    return Completion("", "refused", seconds=seconds, details={"refusal": why})
                if code in _REFUSED and self._adapt(why, sent):
                    continue
                if code in _FATAL and not self._answered:
                    raise self._unusable(code, why) from None
                if not code and not failure.late and not self._answered:
                    if attempt + 1 == _TRIES // 2:
                        raise ModelError(why) from None
                elif code and code not in _RETRIED:
                    break
                if code in _BUSY:
                    wait = max(wait, failure.wait)
                    self._gate.shrink(wait)
            else:
                completion = self._read(body, request, time.perf_counter() - began, sent)
                if completion.finish != "error":
                    self._answered = True
                    self._takes_format |= "response_format" in sent
                    self._gate.grow()
                    read += completion.prompt_tokens
                    written += completion.completion_tokens
                    if attempt + 1 < _TRIES and self._thought_it_away(completion, room):
                        continue
                    return replace(completion, prompt_tokens=read, completion_tokens=written)
                why = completion.error
                if "html" in kind and not self._answered:
                    raise ModelError(f"{self._shown_url} is not an API: {why}")
            if attempt + 1 < _TRIES:
                await asyncio.sleep(wait)
        return Completion("", "error", seconds=time.perf_counter() - began, error=why)

    def _written(self, request: Request) -> dict[str, Any]:
        """The parameters of a request, without those that the server does not take."""
        sent = self._parameters(request)
        return {name: value for name, value in sent.items() if name not in self._left_out}

    def _told(self, failure: Failure) -> str:
        if failure.code:
            return f"the server answered {failure.code}: {self._clean(failure.message)}"
        if failure.late:
            return f"no answer within {self._timeout:.0f} s"
        return f"cannot reach {self._shown_url}: {self._clean(failure.message)}"

    def _adapt(self, why: str, sent: Mapping[str, Any]) -> bool:
        """Learn from a refusal that names a parameter that was sent; whether asking again makes
        sense. A request that was under way when another one taught us this learns nothing new."""
        named = next(
            (n for n, p in self.optional.items() if n in sent and re.search(p, why, re.I)), None
        )
        if not named and "response_format" in sent and not self._takes_format:
            named = "response_format"  # refused in other words, before it was ever taken
        if named and named not in self._left_out:
            self._leave_out(named)
        return bool(named)

    def _thought_it_away(self, completion: Completion, room: int) -> bool:
        """Whether a model spent the whole limit of an answer on thinking, and is to be asked again
        with more room for it."""
        spent = completion.details.get("thought_tokens", 0)
        if completion.finish != "length" or completion.text.strip() or not spent:
            return False
        first, most = _ROOM
        if room == self._room and room < most:  # else another request taught us
            self._room = max(first, 2 * room)
            self._notify(
                f"{self.info.name} thinks before it answers: each answer may take {self._room} "
                "tokens more"
            )
        return room < self._room

    def _read(
        self, body: bytes, request: Request, seconds: float, sent: Collection[str] = ()
    ) -> Completion:
        """The completion in a response's body, whatever the body is. `sent` are the parameters
        of the request."""
        return self._completion(parsed(body), body, request, seconds, sent)

    def _completion(
        self, data: Any, body: bytes, request: Request, seconds: float, sent: Collection[str]
    ) -> Completion:
        try:
            said = self._said(data, request)
            if not isinstance(said.text, str):
                raise TypeError
        except (LookupError, TypeError, AttributeError):
            start = self._secrets.line(body[:4096].decode("utf-8", "replace"), 80)
            why = f"the server's answer is not a completion: {start!r}"
            return Completion("", "error", seconds=seconds, error=why)
        text = self._secrets.clean(said.text)
        stops = () if "response_format" in sent else request.stop
        cuts = [text.index(stop) for stop in stops if stop in text]
        details: dict[str, Any] = {
            **{name: self._short(value) for name, value in said.details.items()},
            "thought_tokens": said.thought,
            "stop_in_text": bool(cuts),
            "response_format": "json_schema" if "response_format" in sent else "",
            "left_out": sorted(self._left_out),
        }
        if said.ended == "error":
            why = f"the server ended the answer: {details.get('finish_reason')}"
            return Completion("", "error", seconds=seconds, error=why)
        if len(text) > MAX_TEXT:
            details["truncated"] = len(text)
        return Completion(
            text[: min([*cuts, MAX_TEXT])],
            "stop" if said.ended == "length" and cuts else said.ended,
            said.prompt_tokens,
            said.completion_tokens,
            seconds,
            details={k: v for k, v in details.items() if v not in ("", [], False, 0)},
        )

    def _unusable(self, code: int, why: str) -> ModelError:
        what_to_do = {
            401: f"set {' or '.join(self.abilities.keys)}",
            403: "this key may not use the model",
            404: f"is {self._model!r} a model of {self._shown_url}? (spec, base_url)",
        }
        return ModelError(f"{why}; {what_to_do[code]}")

    def _clean(self, text: str) -> str:
        """An error text without secrets, on one line, and not longer than a line."""
        return self._secrets.line(text.replace(self._url, self._shown_url))

    def _short(self, value: Any) -> str:
        return self._secrets.clean(value)[:100] if isinstance(value, str) else ""


def messages(request: Request) -> tuple[str, list[tuple[str, str]]]:
    """The instruction of a request in the chat form, and the other messages, each with its role."""
    said = [] if isinstance(request.prompt, str) else request.prompt
    system = "\n\n".join(text for role, text in said if role == "system")
    return system, [(role, text) for role, text in said if role != "system"]


def client_failure(client: Any, error: Exception) -> Failure | None:
    """What an error means of a client that is made as OpenAI's and Anthropic's are: `client` is its
    module."""
    if isinstance(error, client.APIStatusError):
        status: Any = error
        return Failure(message(error), status.status_code, retry_after(status.response.headers))
    if isinstance(error, client.APITimeoutError):
        return Failure("", late=True)
    if isinstance(error, client.APIConnectionError):
        return Failure(str(error.__cause__ or error))
    return None


def retry_after(headers: Any) -> float:
    """Seconds that a Retry-After header asks for, as a number or a date, within bounds; else 0."""
    value = headers.get("retry-after") or ""
    try:
        return bounded_wait(float(value))
    except ValueError:
        try:
            return bounded_wait(parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            return 0.0


def bounded_wait(seconds: float) -> float:
    return min(max(0.0, seconds), _LONGEST_WAIT) if seconds == seconds else 0.0


def count(value: Any) -> int:
    """A number of tokens as a server gives it; 0 for anything else."""
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    return int(value) if sound else 0


def table(value: Any) -> Mapping[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
