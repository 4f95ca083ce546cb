"""Models on a server, asked many at a time: what all providers have in common.

A provider is a `ServerModel` that defines how a request is written (`_parameters`, `_body`), sent
and read, and what an error of its client means. What a server honours is checked, never assumed:
stop strings are cut here too, seeds are sent but not trusted, and a parameter that a server refuses
by name is left out from then on. What the server says about itself is kept with each answer.

Requests run on an event loop in a thread, behind a gate that limits how many are under way. The
client stays there for as long as the model is open; answers come back in lists, through a queue.
Ctrl-C hands over what has arrived. While nobody takes answers, as when the store does not answer,
no more than ten for each of `concurrency` are on their way: more cannot be lost.
"""

import asyncio
import json
import os
import queue
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from kgbias.errors import ModelError, UsageError
from kgbias.io.text import format_duration
from kgbias.io.wording import how
from kgbias.models.base import (
    ADDRESS_SETTING,
    Abilities,
    Completion,
    FormChoice,
    ModelInfo,
    Notify,
    PromptForm,
    Request,
    Settings,
)
from kgbias.models.budget import estimate_tokens
from kgbias.models.http import (
    MAX_WAIT_SECONDS,
    Api,
    Failure,
    ServerReply,
    client_errors,
    describe_body,
    describe_proxy,
    find_failure,
    is_key_withheld,
    parse_body,
    read_secrets,
    server_url,
    shown_url,
    unforeseen_failure,
    warn_unencrypted,
    without_password,
)
from kgbias.models.spec import Spec
from kgbias.models.thoughts import estimate_thought_tokens, split_thought
from kgbias.models.threads import UnawaitedThreads

T = TypeVar("T")


class EventLoopThread:
    """An event loop in a separate thread, from the first `start` until `close`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(
        self, work: Callable[["WorkStream[T]"], Coroutine[Any, Any, None]]
    ) -> "WorkStream[T]":
        """Start `work` in the loop; what it puts on its stream can be read here."""
        if self._loop is None:
            loop = asyncio.new_event_loop()
            # The names of servers are looked up there.
            loop.set_default_executor(UnawaitedThreads())
            try:
                threading.Thread(target=loop.run_forever, daemon=True).start()
            except RuntimeError:  # the system allows no more threads
                loop.close()
                raise
            self._loop = loop
        stream: WorkStream[T] = WorkStream()
        stream.task = asyncio.run_coroutine_threadsafe(stream.run_work(work), self._loop)
        return stream

    def close(self, last_work: Coroutine[Any, Any, None] | None = None) -> None:
        """Run `last_work`, for half a second at most, and stop the loop."""
        if self._loop is None:
            if last_work is not None:
                # Python warns of a coroutine that nobody awaits.
                last_work.close()
            return
        if last_work is not None:
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(last_work, self._loop).result(timeout=0.5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop = None


class WorkStream(Generic[T]):
    """The output of work in the background, in lists of everything since the last list."""

    def __init__(self) -> None:
        self.task: Any = None
        # Not queue.Queue: Ctrl-C at the wrong moment leaves its lock broken.
        self._items: queue.SimpleQueue[T | BaseException | None] = queue.SimpleQueue()
        self._end_event = threading.Event()

    def put(self, item: T) -> None:
        self._items.put(item)

    async def wait_for_room(self, size: int) -> None:
        """Wait until fewer than `size` items are there to be taken."""
        while self._items.qsize() >= size:
            await asyncio.sleep(0.01)

    async def run_work(self, work: Callable[["WorkStream[T]"], Coroutine[Any, Any, None]]) -> None:
        try:
            await work(self)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._items.put(_first_exception(error))
        finally:
            self._items.put(None)
            self._end_event.set()

    def batches(self) -> Generator[list[T], None, None]:
        """Yield until the work has ended; raise its error. On Ctrl-C, hand over what was done, then
        raise. Closing the generator, like any other ending, cancels what is still under way."""
        taken_items: list[T | BaseException | None] = []
        interrupt: KeyboardInterrupt | None = None
        try:
            while interrupt is None and None not in taken_items:
                # Filled in place: what was taken before Ctrl-C is still there after it.
                taken_items.clear()
                try:
                    self._take_items(taken_items)
                except KeyboardInterrupt as interruption:
                    interrupt = interruption
                    self.stop()
                    self._take_items(taken_items, wait=False)
                finished = [
                    i for i in taken_items if i is not None and not isinstance(i, BaseException)
                ]
                if finished:
                    yield finished
                for item in taken_items:
                    if isinstance(item, BaseException):
                        raise item
            if interrupt is not None:
                raise interrupt
        finally:
            self.stop()

    def stop(self) -> None:
        """Cancel what is under way, and wait up to a second for it."""
        if not self._end_event.is_set():
            self.task.cancel()
            self._end_event.wait(timeout=1.0)

    def _take_items(
        self, taken_items: list[T | BaseException | None], *, wait: bool = True
    ) -> None:
        """Take everything available, after waiting for one item if asked."""
        if wait:
            taken_items.append(self._items.get())
        while True:
            try:
                taken_items.append(self._items.get_nowait())
            except queue.Empty:
                return


class ConcurrencyGate:
    """A limit on how many are under way: halved when the server is busy, grown as it answers."""

    def __init__(self, max_active: int, notify: Callable[[str], None]) -> None:
        self._max_active = max_active
        self._limit = float(max_active)
        self._active = 0
        self._condition = asyncio.Condition()
        self._quiet_until = 0.0
        self._notify = notify

    async def __aenter__(self) -> None:
        async with self._condition:
            await self._condition.wait_for(lambda: self._active < max(1, int(self._limit)))
            self._active += 1

    async def __aexit__(self, *_: object) -> None:
        async with self._condition:
            self._active -= 1
            self._condition.notify_all()

    @property
    def is_single(self) -> bool:
        """Whether it lets through one at a time."""
        return self._limit < 2

    def grow(self) -> None:
        # By one for each round of answers, as TCP finds out how much a network carries.
        self._limit = min(self._max_active, self._limit + 1 / self._limit)

    def shrink(self, wait: float, *, late: bool = False) -> None:
        """Halve, at most once while the busy answers, or those that come too late, last."""
        current_time = time.monotonic()
        if current_time >= self._quiet_until:
            self._limit = max(1.0, self._limit / 2)
            self._quiet_until = current_time + max(1.0, wait)
            reason = "answers take too long" if late else "the server is busy"
            self._notify(f"{reason}: {int(self._limit)} at a time, waiting {wait:.0f} s")


def _first_exception(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _strip_prompt(text: str, request: Request) -> str:
    """The answer without the prompt, which some servers give back before it."""
    prompt_text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1][1]
    prompt_head = prompt_text.rstrip(" .…")
    if len(prompt_head) < _MIN_ECHO_CHARACTERS or not text.lstrip().startswith(prompt_head):
        return text
    if isinstance(request.prompt, str):
        return text.lstrip().removeprefix(prompt_text)
    # The last line is the beginning of the sentence, which the answer may go on.
    return text.lstrip()[prompt_head.rfind("\n") + 1 :]


_MIN_ECHO_CHARACTERS = (
    40  # characters of a prompt; a short answer may well begin as a short prompt does
)
_CALLED_TOOL = "the model called a tool, of which it was offered none, and answered nothing"
MAX_TEXT_CHARACTERS = 65_536  # characters kept of one answer
MAX_ATTEMPTS = 6
_UNTAKEN_PER_REQUEST = 4  # answers that wait to be kept, for each request that is asked at once
MAX_ALIKE_FAILURES = 8  # first requests that fail for one reason: then the others would too
# Passing faults, with those of proxies (520 to 530, 598, 599), a capacity that ran out (498), and a
# model behind it that broke off (424: TGI).
RETRIED_CODES = {408, 409, 424, 425, 429, 498, 499, 500, 502, 503, 504, *range(520, 531), 598, 599}
_BUSY_CODES = {429, 503, 529}
_FATAL_CODES = {401, 403, 404}
_BAD_REQUEST_CODES = {400, 413, 416, 422, 501}
_READABLE_CODES = _BAD_REQUEST_CODES | {500}  # statuses of errors that may name what is not taken
# What follows are names of parameters that a server does take.
_ACCEPTED_NAMES_PATTERN = re.compile(
    r"\bexpected\b|\b(?:supported|allowed|valid|permitted|accepted) "
    r"(?:parameters?|fields?|arguments?|names?|keys?|options?)\b|must be one of",
    re.IGNORECASE,
)
_TOO_LONG_PATTERN = re.compile(
    r"context (?:length|window|size)|too (?:large|long|many tokens)|maximum (?:length|number of)"
    r"|max_\w*tokens\b[^.]{0,80}(?:range|<=|less than|at most|no more than|maximum|limited)"
    r"|\brange\b[^.]{0,40}max_\w*tokens"
    r"|exceeds?\b[^.]{0,60}(?:tokens|limit|maximum|context)",
    re.IGNORECASE,
)
_MIN_THINKING_TOKENS = 128  # tokens
_THINKING_TOKEN_LIMITS = (
    2_048,
    16_384,
)  # tokens for a model that thinks before it answers: at first, and at most


# So many whole thoughts show how much room they need: twice that of the longest, or this.
_MAX_SIZED_THOUGHTS = 16
_MIN_THINKING_ROOM = 256  # tokens


class RawResponse(NamedTuple):
    """A response as it came."""

    body: bytes
    content_type: str


class ServerModel:
    """A `Completer` on a server.

    `kind` is the first word of a provider's specs, `api` the source of its key and address,
    `fixed_settings` whatever else decides how it is asked. `optional_parameters` are the parameters
    that a server may refuse, each with a pattern for its name in refusals, in the order in which
    they are given up; `unsupported_parameters` are those that the provider lacks altogether,
    `max_temperature` is the highest temperature that it takes, `no_thinking_parameters` are the
    parameters that ask a model that thinks not to.
    """

    kind: ClassVar[str]
    api: ClassVar[Api]
    abilities: ClassVar[Abilities]
    fixed_settings: ClassVar[Settings] = ()
    optional_parameters: ClassVar[Mapping[str, str]]
    unsupported_parameters: ClassVar[tuple[str, ...]] = ()
    max_temperature: ClassVar[float] = 10.0
    no_thinking_parameters: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def open(
        cls,
        spec: Spec,
        *,
        revision: str | None = None,
        notify: Notify,
        base_url: str | None = None,
        concurrency: int = 16,
        timeout: float = 120.0,
    ) -> Self:
        """The model of that id at `base_url` (default: from the environment, else the provider's
        own)."""
        if revision:
            raise UsageError(f"{spec} is on a server, which does not say its model's revision")
        return cls(spec.name, server_url(base_url, cls.api), concurrency, timeout, notify)

    def __init__(
        self, model: str, url: str, concurrency: int, timeout: float, notify: Notify
    ) -> None:
        if concurrency < 1:
            raise UsageError("`concurrency` must be positive")
        self._shown_url = shown_url(url)
        self.info = ModelInfo(f"{self.kind}:{model}")
        stored_url = without_password(url)
        self.settings: Settings = (*self.fixed_settings, ("base_url", stored_url))
        if self._shown_url != stored_url:  # it was asked for
            self.settings = (*self.settings, (ADDRESS_SETTING, self._shown_url))
        self._model = model
        self._url = url
        self._secrets = read_secrets(url, self.api)
        self._concurrency = concurrency
        self._gate = ConcurrencyGate(concurrency, notify)
        self._background = EventLoopThread()
        self._client: Any = None
        self._timeout = timeout
        self._notify = notify
        self._refused_parameters: set[str] = set()  # parameters that this server refuses
        self._limit_name = "max_tokens"
        self._thinking_tokens = 0  # tokens for thinking, beyond the limit of an answer
        self._max_thinking_tokens = _THINKING_TOKEN_LIMITS[1]
        self._thought_sizes: list[int] = []  # in tokens, of the first whole thoughts
        self._is_thinking = False  # seen to think: then it is asked not to
        self._guesses = True  # takes an answer that was cut off for a thought by its words alone
        self._estimates_tokens = False  # counts tokens by their length, since the server does not
        self._has_answered = False
        self._takes_format = False
        self._takes_switches = False
        self._answers_switched = False  # gave an answer when it was asked not to think
        self._last_code = 0  # of a failure
        self._last_failure = ""
        self._alike_failures = 0
        self._late_alone = 0
        self._lesson_count = 0  # from refusals: how often it was learned how to ask

    # What a provider defines

    def _open_client(self) -> Any:
        """The provider's own client. Raises MissingExtra without its package."""
        raise NotImplementedError

    def _request_parameters(self, request: Request) -> dict[str, Any]:
        """The parameters of a request besides its prompt, by our names."""
        raise NotImplementedError

    async def _send(self, request: Request, parameters: Mapping[str, Any]) -> RawResponse:
        """Send the request; the response's body and its content type."""
        raise NotImplementedError

    def _body(self, request: Request, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The full body of a request with these parameters; for providers that take batches."""
        raise NotImplementedError

    def failure(self, error: Exception) -> Failure | None:
        """What an error of the client means; None if it is not the client's."""
        raise NotImplementedError

    def _parse_reply(self, data: Any, request: Request) -> ServerReply:
        """The answer in a response's body. Raises LookupError, TypeError or AttributeError if it is
        not an answer."""
        raise NotImplementedError

    # Asking

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        self.check_requests(requests)
        if self._client is None:
            self._client = self._open_checked_client()
        yield from self._background.start(lambda done: self._ask_all(requests, done)).batches()

    def _open_checked_client(self) -> Any:
        """The client. Raises UsageError without a key for the provider's own address, which
        answers nobody without one."""
        is_own_address = urlsplit(self._url).hostname == urlsplit(self.api.url).hostname
        if is_own_address and not self._key_is_set():
            raise UsageError(
                f"no key is set: {' or '.join(self.api.keys)} in the environment; requests go to "
                f"{self._shown_url} (another address: `base_url`)"
            )
        if warning := warn_unencrypted(self._url, self._secrets):
            self._notify(warning)
        with client_errors(self._shown_url):
            return self._open_client()

    def _key_is_set(self) -> bool:
        return bool(self._secrets.key)

    def close(self) -> None:
        self._background.close(self._close_client() if self._client is not None else None)
        self._client = None

    async def _close_client(self) -> None:
        await self._client.close()

    def find_form(self, preferred_form: PromptForm = "completion") -> FormChoice:
        """The form in which to ask this model: `preferred_form`, unless only the other is answered;
        and a line that says why. May ask; nothing of it is kept."""
        forms = self.abilities.forms
        return FormChoice(preferred_form if preferred_form in forms else forms[0], "")

    # Batches

    @property
    def learned(self) -> str:
        """What was learned about the server, as text: what it refuses, its name for the limit of an
        answer, and how much room for thinking it needs. Setting it adds what was learned before."""
        lessons = {
            "left_out": sorted(self._refused_parameters),
            "room": self._thinking_tokens,
            "limit": self._limit_name,
            "thinks": self._is_thinking,
        }
        return json.dumps(lessons)

    @learned.setter
    def learned(self, text: str) -> None:
        lessons = json.loads(text)
        self._refused_parameters.update(lessons["left_out"])
        self._thinking_tokens = max(self._thinking_tokens, lessons["room"])
        self._limit_name = lessons["limit"]
        self._is_thinking |= lessons.get("thinks", False)

    def run_call(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """The result of `work`, which is given the client. Ctrl-C cancels it."""

        async def call_once(done: WorkStream[tuple[T]]) -> None:
            # In a tuple, since a None alone ends the stream.
            done.put((await work(self._client),))

        if self._client is None:
            self._client = self._open_checked_client()
        ((result,),) = [
            item for items in self._background.start(call_once).batches() for item in items
        ]
        return result

    def batch_body(self, request: Request) -> dict[str, Any]:
        """The body of a request as it would be sent now."""
        return self._body(request, self.sent_parameters(request))

    def read_batch_answer(self, data: Any, body: bytes, request: Request) -> Completion:
        """The completion in the answer to a request in a batch; an error if there is no answer, or
        only thinking, for which there is more room the next time."""
        answer = self._build_completion(data, body, request, 0.0, self.sent_parameters(request))
        if answer.finish != "error" and self._needs_more_room(
            answer, request, self._thinking_tokens
        ):
            return replace(answer, finish="error", error="the model did not finish thinking")
        return answer

    def read_batch_failure(self, failure: Failure, request: Request) -> Completion:
        """The completion of a request that failed in a batch. Parameters named in the refusal are
        left out the next time."""
        reason = self.describe_failure(failure)
        if failure.is_withheld:
            return Completion("", "refused", details={"refusal": reason})
        self._learn_from(failure, self.sent_parameters(request))
        return Completion("", "error", error=reason)

    def check_requests(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for what the provider cannot be asked; note what it does not know."""
        for request in requests:
            if request.form not in self.abilities.forms:
                raise UsageError(f"{self.info.name} only answers messages: `form` must be chat")
            if request.temperature > self.max_temperature:
                raise UsageError(
                    f"{self.info.name} takes a `temperature` of at most {self.max_temperature:g}"
                )
        sent_names = {"seed"}.union(*(request.truncation.as_dict() for request in requests))
        for name in self.unsupported_parameters:
            if name in sent_names and name not in self._refused_parameters:
                self._omit_parameter(name)

    def _omit_parameter(self, name: str) -> None:
        self._refused_parameters.add(name)
        self._notify(f"{self._shown_url} does not take {name}: asking without it")

    async def _ask_all(
        self, requests: Sequence[Request], results: WorkStream[tuple[int, Completion]]
    ) -> None:
        pending = iter(range(len(requests)))

        async def work() -> None:
            for index in pending:  # each worker takes the next request that no other has
                # What a store that does not answer cannot keep is not asked for.
                await results.wait_for_room(_UNTAKEN_PER_REQUEST * self._concurrency)
                results.put((index, await self._ask(requests[index])))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._concurrency, len(requests))):
                group.create_task(work())

    async def _ask(self, request: Request) -> Completion:
        started = time.perf_counter()
        reason, prompt_tokens, completion_tokens = "", 0, 0
        suspected = False  # the last answer was taken for a thought by its words alone
        attempt = 0
        while attempt < MAX_ATTEMPTS:
            # By chance, or those who were sent away together would come back together.
            wait = min(30.0, 0.5 * 2**attempt) * random.uniform(0.5, 1.0)
            parameters, thinking_tokens, lessons_before = (
                self.sent_parameters(request),
                self._thinking_tokens,
                self._lesson_count,
            )
            body, content_type = b"", ""
            try:
                async with self._gate:
                    body, content_type = await self._send(request, parameters)
                failure = find_failure(parse_body(body))
            except Exception as error:
                failure = self.failure(error) or unforeseen_failure(error)
            if failure is not None:
                reason, code = self.describe_failure(failure), failure.code
                self._last_code = code
                if failure.is_withheld:
                    seconds = time.perf_counter() - started
                    return Completion("", "refused", seconds=seconds, details={"refusal": reason})
                was_taught = (
                    lessons_before != self._lesson_count
                )  # by another request, since this one was sent
                if code in _READABLE_CODES and (
                    was_taught or self._learn_from(failure, parameters, thinking_tokens)
                ):
                    continue  # no attempt: it was asked in a way that is not taken
                if failure.is_final:
                    raise ModelError(reason)
                if failure.wait > MAX_WAIT_SECONDS:
                    raise ModelError(f"{reason}; it asks to wait {format_duration(failure.wait)}")
                if code in _FATAL_CODES and not self._has_answered:
                    raise ModelError(reason + self.advice(code, is_page=failure.is_page))
                if failure.is_late and not self._has_answered:
                    self._stop_if_silent(reason)
                elif not code and not self._has_answered:
                    # Nothing was ever reached there: more likely a wrong address than a passing
                    # fault.
                    if attempt + 1 >= MAX_ATTEMPTS // 2:
                        raise ModelError(reason)
                elif code and code not in RETRIED_CODES:
                    break
                if (
                    code in _BUSY_CODES or failure.is_late
                ):  # many long answers at once time out together
                    wait = max(wait, failure.wait)
                    self._gate.shrink(wait, late=failure.is_late)
            else:
                completion = self._read_body(
                    body, request, time.perf_counter() - started, parameters
                )
                if completion.finish != "error":
                    self._has_answered = True
                    self._takes_format |= "response_format" in parameters
                    self._takes_switches |= bool(
                        self.no_thinking_parameters.keys() & parameters.keys()
                    )
                    self._gate.grow()
                    prompt_tokens += completion.prompt_tokens
                    completion_tokens += completion.completion_tokens
                    chat = request.form == "chat"
                    self._fit_thinking_room(completion)
                    if suspected:
                        self._unlearn(completion)
                    suspected = bool(completion.details.get("guessed"))
                    if (
                        chat
                        and attempt + 1 < MAX_ATTEMPTS
                        and (
                            self._needs_more_room(completion, request, thinking_tokens)
                            or self._has_only_thought(completion, parameters)
                        )
                    ):
                        attempt += 1
                        continue
                    return replace(
                        completion, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens
                    )
                reason = completion.error
                if "html" in content_type and not self._has_answered:
                    raise ModelError(f"{self._shown_url} is not an API: {reason}")
            attempt += 1
            if attempt < MAX_ATTEMPTS:
                await asyncio.sleep(wait)
        self._stop_if_alike(reason)
        return Completion("", "error", seconds=time.perf_counter() - started, error=reason)

    def _stop_if_alike(self, reason: str) -> None:
        """Raise ModelError if nothing was ever answered, and one request after another failed for
        the same reason, whatever the numbers in it."""
        # As of a time to wait, or of a request.
        reason_pattern = re.sub(r"\d+", "0", reason)
        self._alike_failures = (
            self._alike_failures + 1 if reason_pattern == self._last_failure else 1
        )
        self._last_failure = reason_pattern
        if not self._has_answered and self._alike_failures >= MAX_ALIKE_FAILURES:
            raise ModelError(f"the first {MAX_ALIKE_FAILURES} requests all failed: {reason}")

    def _stop_if_silent(self, reason: str) -> None:
        """Raise ModelError if nothing was ever answered in time, asked for again and again alone:
        each request would wait as long."""
        self._late_alone += self._gate.is_single
        if self._late_alone >= MAX_ATTEMPTS:
            raise ModelError(
                f"{reason} from {self._shown_url}{describe_proxy(self._url)}, asked {MAX_ATTEMPTS} "
                "times, one request at a time"
            )

    def sent_parameters(self, request: Request) -> dict[str, Any]:
        """The parameters of a request, except those that the server does not take."""
        parameters = self._request_parameters(request)
        return {
            name: value
            for name, value in parameters.items()
            if name not in self._refused_parameters
        }

    def describe_failure(self, failure: Failure) -> str:
        if failure.is_within_answer:
            return f"the server answered with an error: {self.clean(failure.message)}"
        if failure.code:
            is_of_proxy = failure.code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
            proxy = describe_proxy(self._url) if is_of_proxy else ""
            return f"the server answered {failure.code}{proxy}: {self.clean(failure.message)}"
        if failure.is_late:
            return f"no answer within {self._timeout:.0f} s"
        if failure.is_dropped:
            return f"not answered: {self.clean(failure.message)}"
        server = f"{self._shown_url}{describe_proxy(self._url)}"
        if failure.is_reached:
            return f"no answer from {server}: {self.clean(failure.message)}"
        if failure.is_unforeseen:
            return (
                f"an error that was not foreseen in asking {server}: {self.clean(failure.message)}"
            )
        return f"cannot reach {server}: {self.clean(failure.message)}"

    def _learn_from(
        self, failure: Failure, parameters: Mapping[str, Any], thinking_tokens: int = 0
    ) -> bool:
        """Learn from a refusal how to ask; whether there was anything to learn."""
        refusal, code = failure.message[:MAX_TEXT_CHARACTERS], failure.code
        has_learned = (
            self._reduce_thinking_room(refusal, code, thinking_tokens)
            or (code in _READABLE_CODES and self.adapt(refusal, parameters))
            or (code in _BAD_REQUEST_CODES and self._omit_untaken(parameters))
        )
        self._lesson_count += has_learned
        return has_learned

    def _reduce_thinking_room(self, refusal: str, code: int, thinking_tokens: int) -> bool:
        """Whether the room for thoughts does not fit into what the model can read and write; then
        there is half as much."""
        if (
            not thinking_tokens
            or code not in _BAD_REQUEST_CODES
            or not _TOO_LONG_PATTERN.search(refusal)
        ):
            return False
        self._thinking_tokens = self._max_thinking_tokens = (
            thinking_tokens // 2 if thinking_tokens >= 2 * _MIN_THINKING_TOKENS else 0
        )
        return True

    def adapt(self, refusal: str, parameters: Mapping[str, Any]) -> bool:
        """Learn from a refusal that names a parameter that was sent; whether there was one."""
        relevant_part = _ACCEPTED_NAMES_PATTERN.split(refusal)[0]
        refused_name = next(
            (
                n
                for n, p in self.optional_parameters.items()
                if n in parameters and re.search(p, relevant_part, re.I)
            ),
            None,
        )
        if refused_name is None or refused_name in self._refused_parameters:
            return False
        self._omit_parameter(refused_name)
        return True

    def _omit_untaken(self, parameters: Mapping[str, Any]) -> bool:
        """Leave out what was sent beside the protocol and was never taken yet, for a refusal in
        other words; whether there was any."""
        extras: list[str] = []
        if not self._takes_switches:
            extras = [name for name in self.no_thinking_parameters if name in parameters]
        if not extras and "response_format" in parameters and not self._takes_format:
            extras = ["response_format"]
        new_extras = [name for name in extras if name not in self._refused_parameters]
        for name in new_extras:
            self._omit_parameter(name)
        return bool(new_extras)

    def _has_only_thought(self, completion: Completion, parameters: Mapping[str, Any]) -> bool:
        """Whether a model said nothing after its thoughts, and should be asked once more: to leave
        them or, if it was asked to and never answered so, without asking it. There are servers that
        then take the answer for a thought."""
        is_silent = completion.finish == "stop" and not completion.text.strip()
        sent_switches = self.no_thinking_parameters.keys() & parameters.keys()
        if not is_silent or not completion.details.get("thought"):
            self._answers_switched |= bool(sent_switches and completion.text.strip())
            return False
        usable_switches = self.no_thinking_parameters.keys() - self._refused_parameters
        if not sent_switches or self._answers_switched:
            return bool(usable_switches and not sent_switches)
        self._refused_parameters |= sent_switches
        self._notify(f"{self.info.name} says nothing if it is asked not to think: it may think")
        return True

    def _unlearn(self, completion: Completion) -> None:
        """No longer take answers for thoughts by their words, and give no more room for thoughts,
        if what was taken for one shows no mark of a thought where there is room for it."""
        if self._guesses and not self._is_thinking and not completion.details.get("thought"):
            self._guesses = False
            self._thinking_tokens = 0
            self._notify(f"{self.info.name} does not: answers take no more tokens than before")

    def _fit_thinking_room(self, completion: Completion) -> None:
        """Give thoughts no more room than they were seen to need: an answer that does not end takes
        all that is left of it. If that is too little for one, there is more again."""
        tokens = completion.details.get("thought_tokens")
        is_known = len(self._thought_sizes) >= _MAX_SIZED_THOUGHTS
        if not tokens or completion.finish != "stop" or is_known:
            return
        self._thought_sizes.append(tokens)
        if len(self._thought_sizes) == _MAX_SIZED_THOUGHTS:
            needed = max(_MIN_THINKING_ROOM, 2 * max(self._thought_sizes))
            self._thinking_tokens = min(self._thinking_tokens, needed)

    def _needs_more_room(
        self, completion: Completion, request: Request, thinking_tokens: int
    ) -> bool:
        """Whether a model spent an answer's limit on thinking, or so much of it that the answer was
        cut short, and should be asked again with more room."""
        details = completion.details
        used_tokens = completion.completion_tokens
        answer_tokens = used_tokens - details.get("thought_tokens", 0)
        was_used = 2 * used_tokens >= request.max_tokens + thinking_tokens  # some only say so
        has_thought = (
            details.get("thought_tokens") or details.get("thought") or details.get("unfinished")
        )
        # Where nothing at all was said up to the limit, it was spent on what is not shown.
        is_hidden = not completion.text
        if completion.finish != "length":
            return False
        is_short = has_thought and was_used and answer_tokens < request.max_tokens
        if completion.text.strip() and not is_short:
            return False
        if not has_thought and not is_hidden:
            return False
        self._is_thinking |= not details.get("guessed")
        first_limit, max_limit = _THINKING_TOKEN_LIMITS[0], self._max_thinking_tokens
        if (
            thinking_tokens == self._thinking_tokens and thinking_tokens < max_limit
        ):  # else another request taught us
            self._thinking_tokens = min(max_limit, max(first_limit, 2 * thinking_tokens))
            self._notify(
                f"{self.info.name} thinks before it answers: each answer may take "
                f"{self._thinking_tokens} "
                "tokens more"
            )
        return thinking_tokens < self._thinking_tokens

    def _read_body(
        self, body: bytes, request: Request, seconds: float, parameters: Collection[str] = ()
    ) -> Completion:
        """The completion in a response's body, whatever the body is. `parameters` are the
        parameters of the request."""
        return self._build_completion(parse_body(body), body, request, seconds, parameters)

    def _build_completion(
        self, data: Any, body: bytes, request: Request, seconds: float, parameters: Collection[str]
    ) -> Completion:
        try:
            reply = self._parse_reply(data, request)
            if not isinstance(reply.text, str):
                raise TypeError
        except (LookupError, TypeError, AttributeError):
            what = describe_body(body, self._secrets)
            reason = f"the server's answer is not a completion: {what}"
            return Completion("", "error", seconds=seconds, error=reason)
        chat = request.form == "chat"
        was_cut = reply.ending == "length" and chat
        parts = split_thought(self._secrets.clean(reply.text), was_cut=was_cut, guess=self._guesses)
        text = parts.text
        thought = self._secrets.clean("\n".join(filter(None, (reply.thoughts, parts.thought))))
        # What is only taken for a thought shows by its end, where there is room for one.
        sure = bool(reply.thoughts) or not parts.is_guessed or self._thinking_tokens > 0
        self._is_thinking |= chat and bool(thought) and sure
        ending_kind = "length" if parts.is_unfinished and reply.ending == "stop" else reply.ending
        has_marks = text.strip() != reply.text.strip()
        text = _strip_prompt(text, request)
        text = text.lstrip("\n") if thought else text  # what a template puts after a thought
        stops = () if "response_format" in parameters else request.stop
        stop_places = [text.index(stop) for stop in stops if stop in text]
        # Budgets hold where a server counts no tokens.
        prompt_tokens = reply.prompt_tokens or estimate_tokens(request.prompt)
        completion_tokens = reply.completion_tokens or estimate_tokens(reply.text + reply.thoughts)
        is_estimated = (prompt_tokens, completion_tokens) != (
            reply.prompt_tokens,
            reply.completion_tokens,
        )
        has_counts = reply.prompt_tokens or reply.completion_tokens or reply.ending == "error"
        if not has_counts and not self._estimates_tokens:
            self._estimates_tokens = True
            self._notify(f"{self._shown_url} does not count tokens: they are estimated by length")
        details: dict[str, Any] = {
            **{name: self._shorten(value) for name, value in reply.details.items()},
            "thought_tokens": reply.thought_tokens
            or estimate_thought_tokens(thought, text, completion_tokens),
            "tokens_estimated": is_estimated,
            "unfinished": parts.is_unfinished,
            "guessed": parts.is_guessed,
            "marks": has_marks,
            "thought": thought[:MAX_TEXT_CHARACTERS],
            "stop_in_text": bool(stop_places),
            "response_format": "json_schema" if "response_format" in parameters else "",
            "left_out": sorted(self._refused_parameters),
        }
        if (parts.calls_tool or reply.calls_tool) and not text.strip():
            return Completion("", "error", seconds=seconds, error=_CALLED_TOOL)
        if reply.ending == "error":
            reason = self.clean(reply.details.get("error") or details.get("finish_reason") or "")
            reason = f"the server broke off the answer: {reason}"
            return Completion("", "error", seconds=seconds, error=reason)
        if len(text) > MAX_TEXT_CHARACTERS:
            details["truncated"] = len(text)
        return Completion(
            text[: min([*stop_places, MAX_TEXT_CHARACTERS])],
            "stop" if ending_kind == "length" and stop_places else ending_kind,
            prompt_tokens,
            completion_tokens,
            seconds,
            details={k: v for k, v in details.items() if v not in ("", [], False, 0)},
        )

    def advice(self, code: int, *, is_page: bool = False) -> str:
        """Advice about a permanent error status, to follow the message; `is_page` if it came with a
        web page, which no API sends."""
        if is_page:
            return "; what answers there is no API, or a proxy or firewall before it (base_url)"
        key_advice = f"; set {' or '.join(self.api.keys)}"
        if is_key_withheld(self._url, os.environ.get(self.api.variable), self.api.url):
            trusts = how("", "--trust, or ")
            key_advice = (
                f"; a file names the address, so it gets no key: {trusts}{self.api.variable}"
            )
        advice_by_code = {
            401: key_advice + how("", " (a key that goes into another header: --header)"),
            403: "; may this key use the model?",
            404: f"; is {self._model!r} a model of {self._shown_url}? (spec, base_url)",
        }
        if code == 404 and not re.search(r"/v\d|/openai|/api", urlsplit(self._url).path):
            return "; the address has no /v1, under which most servers answer (base_url)"
        return advice_by_code.get(code, "")

    def clean(self, text: str) -> str:
        """An error text without secrets, on one short line."""
        return self._secrets.clean_line(text.replace(self._url, self._shown_url))

    def _shorten(self, value: Any) -> str:
        return self._secrets.clean(value)[:100] if isinstance(value, str) else ""
