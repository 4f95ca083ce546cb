"""Models on a server, asked many at a time: what all providers have in common.

A provider is a `ServerModel` that defines how a request is written (`_parameters`, `_body`), sent
and read, and what an error of its client means. What a server honours is checked, never assumed:
stop strings are cut here too, seeds are sent but not trusted, and a parameter that a server refuses
by name is left out from then on. What the server says about itself is kept with each answer.

Requests run on an event loop in a thread, behind a gate that limits how many are under way.
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
from typing import Any, ClassVar, Generic, Self, TypeVar
from urllib.parse import urlsplit

from kgbias.errors import ModelError, UsageError
from kgbias.io.text import format_duration
from kgbias.io.wording import how
from kgbias.models.base import (
    Abilities,
    Completion,
    PromptForm,
    ModelInfo,
    Notify,
    Request,
    Settings,
)
from kgbias.models.budget import about_tokens
from kgbias.models.spec import Spec
from kgbias.models.thoughts import split_thought, thought_tokens
from kgbias.models.threads import Unawaited
from kgbias.models.wire import (
    MAX_WAIT,
    Api,
    Failure,
    Said,
    failure_within,
    is_withheld,
    opening,
    parsed,
    read_secrets,
    readable_on_the_way,
    server_url,
    through,
    unforeseen,
    without_password,
)

T = TypeVar("T")


class Background:
    """An event loop in a separate thread, from the first `run` until `close`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Callable[["Stream[T]"], Coroutine[Any, Any, None]]) -> "Stream[T]":
        """Start `work` in the loop; what it puts on its stream can be read here."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(Unawaited())
            threading.Thread(target=self._loop.run_forever, daemon=True).start()
        stream: Stream[T] = Stream()
        stream.task = asyncio.run_coroutine_threadsafe(stream.follow(work), self._loop)
        return stream

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Run `last`, for half a second at most, and stop the loop."""
        if self._loop is None:
            return
        if last is not None:
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(last, self._loop).result(timeout=0.5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop = None


class Stream(Generic[T]):
    """The output of work in the background, in lists of everything since the last list."""

    def __init__(self) -> None:
        self.task: Any = None
        # Not queue.Queue: Ctrl-C at the wrong moment leaves its lock broken.
        self._items: queue.SimpleQueue[T | BaseException | None] = queue.SimpleQueue()
        self._ended = threading.Event()

    def put(self, item: T) -> None:
        self._items.put(item)

    async def follow(self, work: Callable[["Stream[T]"], Coroutine[Any, Any, None]]) -> None:
        try:
            await work(self)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._items.put(_first(error))
        finally:
            self._items.put(None)
            self._ended.set()

    def batches(self) -> Generator[list[T], None, None]:
        """Yield until the work has ended; raise its error. On Ctrl-C, hand over what was done, then
        raise. Closing the generator, like any other ending, cancels what is still under way."""
        taken: list[T | BaseException | None] = []
        interrupt: KeyboardInterrupt | None = None
        try:
            while interrupt is None and None not in taken:
                taken.clear()
                try:
                    self._take(taken)
                except KeyboardInterrupt as stop:
                    interrupt = stop
                    self.stop()
                    self._take(taken, wait=False)
                done = [i for i in taken if i is not None and not isinstance(i, BaseException)]
                if done:
                    yield done
                for item in taken:
                    if isinstance(item, BaseException):
                        raise item
            if interrupt is not None:
                raise interrupt
        finally:
            self.stop()

    def stop(self) -> None:
        """Cancel what is under way, and wait up to a second for it."""
        if not self._ended.is_set():
            self.task.cancel()
            self._ended.wait(timeout=1.0)

    def _take(self, taken: list[T | BaseException | None], *, wait: bool = True) -> None:
        """Take everything available, after waiting for one item if asked."""
        if wait:
            taken.append(self._items.get())
        while True:
            try:
                taken.append(self._items.get_nowait())
            except queue.Empty:
                return


class Gate:
    """A limit on how many are under way: halved when the server is busy, grown as it answers."""

    def __init__(self, most: int, notify: Callable[[str], None]) -> None:
        self._most = most
        self._limit = float(most)
        self._active = 0
        self._changed = asyncio.Condition()
        self._quiet_until = 0.0
        self._notify = notify

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._active < max(1, int(self._limit)))
            self._active += 1

    async def __aexit__(self, *_: object) -> None:
        async with self._changed:
            self._active -= 1
            self._changed.notify_all()

    def grow(self) -> None:
        self._limit = min(self._most, self._limit + 1 / self._limit)

    def shrink(self, wait: float, *, late: bool = False) -> None:
        """Halve, at most once while the busy answers, or those that come too late, last."""
        now = time.monotonic()
        if now >= self._quiet_until:
            self._limit = max(1.0, self._limit / 2)
            self._quiet_until = now + max(1.0, wait)
            why = "answers take too long" if late else "the server is busy"
            self._notify(f"{why}: {int(self._limit)} at a time, waiting {wait:.0f} s")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _without_prompt(text: str, request: Request) -> str:
    """The answer without the prompt, which some servers give back before it."""
    asked = request.prompt if isinstance(request.prompt, str) else request.prompt[-1][1]
    head = asked.rstrip(" .…")
    if len(head) < _MIN_ECHO or not text.lstrip().startswith(head):
        return text
    if isinstance(request.prompt, str):
        return text.lstrip().removeprefix(asked)
    # The last line is the beginning of the sentence, which the answer may go on.
    return text.lstrip()[head.rfind("\n") + 1 :]


_MIN_ECHO = 40  # characters of a prompt; a short answer may well begin as a short prompt does
MAX_TEXT = 65_536  # characters kept of one answer
TRIES = 6
MAX_ALIKE = 8  # first requests that fail for one reason: then the others would too
RETRIED = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_BUSY = {429, 503, 529}
_FATAL = {401, 403, 404}
_REFUSED = {400, 422, 501}
_READ = _REFUSED | {500}  # statuses of errors that may name what is not taken
# What follows are names of parameters that a server does take.
_TAKEN = re.compile(
    r"\bexpected\b|\b(?:supported|allowed|valid|permitted|accepted) "
    r"(?:parameters?|fields?|arguments?|names?|keys?|options?)\b|must be one of",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|too (?:large|long|many tokens)|maximum (?:length|number of)"
    r"|exceeds?\b[^.]{0,60}(?:tokens|limit|maximum|context)",
    re.IGNORECASE,
)
_LEAST_ROOM = 128  # tokens
_ROOM = (2_048, 16_384)  # tokens for a model that thinks before it answers: at first, and at most


class ServerModel:
    """A `Completer` on a server.

    `kind` is the first word of a provider's specs, `api` the source of its key and address, `how`
    whatever else decides how it is asked. `optional` are the parameters that a server may refuse,
    each with a pattern for its name in refusals, in the order in which they are given up;
    `unknown` are those that the provider lacks altogether, `hottest` is the highest temperature
    that it takes, `switches` are the parameters that ask a model that thinks not to.
    """

    kind: ClassVar[str]
    api: ClassVar[Api]
    abilities: ClassVar[Abilities]
    how: ClassVar[Settings] = ()
    optional: ClassVar[Mapping[str, str]]
    unknown: ClassVar[tuple[str, ...]] = ()
    hottest: ClassVar[float] = 10.0
    switches: ClassVar[Mapping[str, Any]] = {}

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
        self._shown_url = without_password(url)
        self.info = ModelInfo(f"{self.kind}:{model}")
        self.settings: Settings = (*self.how, ("base_url", self._shown_url))
        self._model = model
        self._url = url
        self._secrets = read_secrets(url, self.api)
        self._concurrency = concurrency
        self._gate = Gate(concurrency, notify)
        self._background = Background()
        self._client: Any = None
        self._timeout = timeout
        self._notify = notify
        self._left_out: set[str] = set()  # parameters that this server refuses
        self._limit_name = "max_tokens"
        self._room = 0  # tokens for thinking, beyond the limit of an answer
        self._most_room = _ROOM[1]
        self._thinks = False  # seen to think: then it is asked not to
        self._guesses = True  # takes an answer that was cut off for a thought by its words alone
        self._estimates = False  # counts tokens by their length, since the server does not
        self._answered = False
        self._takes_format = False
        self._takes_switches = False
        self._last_code = 0  # of a failure
        self._last_failure = ""
        self._failed_alike = 0
        self._lessons = 0  # from refusals: how often it was learned how to ask

    # What a provider defines

    def _open(self) -> Any:
        """The provider's own client. Raises MissingExtra without its package."""
        raise NotImplementedError

    def _parameters(self, request: Request) -> dict[str, Any]:
        """The parameters of a request besides its prompt, by our names."""
        raise NotImplementedError

    async def _send(self, request: Request, sent: Mapping[str, Any]) -> tuple[bytes, str]:
        """Send the request; the response's body and its content type."""
        raise NotImplementedError

    def _body(self, request: Request, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The full body of a request with these parameters; for providers that take batches."""
        raise NotImplementedError

    def failure(self, error: Exception) -> Failure | None:
        """What an error of the client means; None if it is not the client's."""
        raise NotImplementedError

    def _said(self, data: Any, request: Request) -> Said:
        """The answer in a response's body. Raises LookupError, TypeError or AttributeError if it is
        not an answer."""
        raise NotImplementedError

    # Asking

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        self.check(requests)
        if self._client is None:
            self._client = self._opened()
        yield from self._background.run(lambda done: self._ask_all(requests, done)).batches()

    def _opened(self) -> Any:
        """The client. Raises UsageError without a key for the provider's own address, which
        answers nobody without one."""
        at_home = urlsplit(self._url).hostname == urlsplit(self.api.url).hostname
        if at_home and not self._key_is_set():
            raise UsageError(
                f"no key is set: {' or '.join(self.api.keys)} in the environment; requests go to "
                f"{self._shown_url} (another address: `base_url`)"
            )
        if line := readable_on_the_way(self._url, self._secrets):
            self._notify(line)
        with opening(self._shown_url):
            return self._open()

    def _key_is_set(self) -> bool:
        return bool(self._secrets.key)

    def close(self) -> None:
        self._background.close(self._close() if self._client is not None else None)
        self._client = None

    async def _close(self) -> None:
        await self._client.close()

    def find_form(self, first: PromptForm = "completion") -> tuple[PromptForm, str]:
        """The form in which to ask this model: `first`, unless only the other is answered; and a
        line that says why. May ask; nothing of it is kept."""
        forms = self.abilities.forms
        return first if first in forms else forms[0], ""

    # Batches

    @property
    def learned(self) -> str:
        """What was learned about the server, as text: what it refuses, its name for the limit of an
        answer, and how much room for thinking it needs. Setting it adds what was learned before."""
        known = {
            "left_out": sorted(self._left_out),
            "room": self._room,
            "limit": self._limit_name,
            "thinks": self._thinks,
        }
        return json.dumps(known)

    @learned.setter
    def learned(self, text: str) -> None:
        known = json.loads(text)
        self._left_out.update(known["left_out"])
        self._room = max(self._room, known["room"])
        self._limit_name = known["limit"]
        self._thinks |= known.get("thinks", False)

    def call(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """The result of `work`, which is given the client. Ctrl-C cancels it."""

        async def once(done: Stream[tuple[T]]) -> None:
            done.put((await work(self._client),))

        if self._client is None:
            self._client = self._opened()
        ((found,),) = [item for items in self._background.run(once).batches() for item in items]
        return found

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request as it would be sent now."""
        return self._body(request, self.written(request))

    def completed(self, data: Any, body: bytes, request: Request) -> Completion:
        """The completion in the answer to a request in a batch; an error if there is no answer, or
        only thinking, for which there is more room the next time."""
        found = self._completion(data, body, request, 0.0, self.written(request))
        if found.finish != "error" and self._thought_it_away(found, self._room):
            return replace(found, finish="error", error="the model did not finish thinking")
        return found

    def failed(self, failure: Failure, request: Request) -> Completion:
        """The completion of a request that failed in a batch. Parameters named in the refusal are
        left out the next time."""
        why = self.told(failure)
        if failure.withheld:
            return Completion("", "refused", details={"refusal": why})
        self._learned_from(failure, self.written(request))
        return Completion("", "error", error=why)

    def check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for what the provider cannot be asked; note what it does not know."""
        for request in requests:
            if request.form not in self.abilities.forms:
                raise UsageError(f"{self.info.name} only answers messages: `form` must be chat")
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
        suspected = False  # the last answer was taken for a thought by its words alone
        attempt = 0
        while attempt < TRIES:
            wait = min(30.0, 0.5 * 2**attempt) * random.uniform(0.5, 1.0)
            sent, room, lessons = self.written(request), self._room, self._lessons
            body, kind = b"", ""
            try:
                async with self._gate:
                    body, kind = await self._send(request, sent)
                failure = failure_within(parsed(body))
            except Exception as error:
                failure = self.failure(error) or unforeseen(error)
            if failure is not None:
                why, code = self.told(failure), failure.code
                self._last_code = code
                if failure.withheld:
                    seconds = time.perf_counter() - began
                    return Completion("", "refused", seconds=seconds, details={"refusal": why})
                taught = lessons != self._lessons  # by another request, since this one was sent
                if code in _READ and (taught or self._learned_from(failure, sent, room)):
                    continue  # no attempt: it was asked in a way that is not taken
                if failure.final:
                    raise ModelError(why)
                if failure.wait > MAX_WAIT:
                    raise ModelError(f"{why}; it asks to wait {format_duration(failure.wait)}")
                if code in _FATAL and not self._answered:
                    raise ModelError(why + self.advice(code))
                if not code and not failure.late and not self._answered:
                    if attempt + 1 >= TRIES // 2:
                        raise ModelError(why)
                elif code and code not in RETRIED:
                    break
                if code in _BUSY or failure.late:  # many long answers at once time out together
                    wait = max(wait, failure.wait)
                    self._gate.shrink(wait, late=failure.late)
            else:
                completion = self._read(body, request, time.perf_counter() - began, sent)
                if completion.finish != "error":
                    self._answered = True
                    self._takes_format |= "response_format" in sent
                    self._takes_switches |= bool(self.switches.keys() & sent.keys())
                    self._gate.grow()
                    read += completion.prompt_tokens
                    written += completion.completion_tokens
                    chat = request.form == "chat"
                    if suspected:
                        self._unlearn(completion)
                    suspected = bool(completion.details.get("guessed"))
                    if (
                        chat
                        and attempt + 1 < TRIES
                        and (
                            self._thought_it_away(completion, room)
                            or self._only_thought(completion, sent)
                        )
                    ):
                        attempt += 1
                        continue
                    return replace(completion, prompt_tokens=read, completion_tokens=written)
                why = completion.error
                if "html" in kind and not self._answered:
                    raise ModelError(f"{self._shown_url} is not an API: {why}")
            attempt += 1
            if attempt < TRIES:
                await asyncio.sleep(wait)
        self._end_if_alike(why)
        return Completion("", "error", seconds=time.perf_counter() - began, error=why)

    def _end_if_alike(self, why: str) -> None:
        """Raise ModelError if nothing was ever answered, and one request after another failed for
        the same reason, whatever the numbers in it."""
        alike = re.sub(r"\d+", "0", why)
        self._failed_alike = self._failed_alike + 1 if alike == self._last_failure else 1
        self._last_failure = alike
        if not self._answered and self._failed_alike >= MAX_ALIKE:
            raise ModelError(f"the first {MAX_ALIKE} requests all failed: {why}")

    def written(self, request: Request) -> dict[str, Any]:
        """The parameters of a request, except those that the server does not take."""
        sent = self._parameters(request)
        return {name: value for name, value in sent.items() if name not in self._left_out}

    def told(self, failure: Failure) -> str:
        if failure.within:
            return f"the server answered with an error: {self.clean(failure.message)}"
        if failure.code:
            return f"the server answered {failure.code}: {self.clean(failure.message)}"
        if failure.late:
            return f"no answer within {self._timeout:.0f} s"
        if failure.dropped:
            return f"not answered: {self.clean(failure.message)}"
        way = through(self._url)
        return f"cannot reach {self._shown_url}{way}: {self.clean(failure.message)}"

    def _learned_from(self, failure: Failure, sent: Mapping[str, Any], room: int = 0) -> bool:
        """Learn from a refusal how to ask; whether there was anything to learn."""
        why, code = failure.message[:MAX_TEXT], failure.code
        learned = (
            self._needs_less_room(why, code, room)
            or (code in _READ and self.adapt(why, sent))
            or (code in _REFUSED and self._left_untaken(sent))
        )
        self._lessons += learned
        return learned

    def _needs_less_room(self, why: str, code: int, room: int) -> bool:
        """Whether the room for thoughts does not fit into what the model can read and write; then
        there is half as much."""
        if not room or code not in _REFUSED or not _TOO_LONG.search(why):
            return False
        self._room = self._most_room = room // 2 if room >= 2 * _LEAST_ROOM else 0
        return True

    def adapt(self, why: str, sent: Mapping[str, Any]) -> bool:
        """Learn from a refusal that names a parameter that was sent; whether there was one."""
        about = _TAKEN.split(why)[0]
        named = next(
            (n for n, p in self.optional.items() if n in sent and re.search(p, about, re.I)), None
        )
        if named is None or named in self._left_out:
            return False
        self._leave_out(named)
        return True

    def _left_untaken(self, sent: Mapping[str, Any]) -> bool:
        """Leave out what was sent beside the protocol and was never taken yet, for a refusal in
        other words; whether there was any."""
        extras: list[str] = []
        if not self._takes_switches:
            extras = [name for name in self.switches if name in sent]
        if not extras and "response_format" in sent and not self._takes_format:
            extras = ["response_format"]
        new = [name for name in extras if name not in self._left_out]
        for name in new:
            self._leave_out(name)
        return bool(new)

    def _only_thought(self, completion: Completion, sent: Mapping[str, Any]) -> bool:
        """Whether a model said nothing after its thoughts, and was not asked yet to leave them."""
        silent = completion.finish == "stop" and not completion.text.strip()
        asked = self.switches.keys() & sent.keys()
        can = self.switches.keys() - self._left_out
        return bool(silent and completion.details.get("thought") and can and not asked)

    def _unlearn(self, completion: Completion) -> None:
        """No longer take answers for thoughts by their words, and give no more room for thoughts,
        if what was taken for one shows no mark of a thought where there is room for it."""
        if self._guesses and not self._thinks and not completion.details.get("thought"):
            self._guesses = False
            self._room = 0
            self._notify(f"{self.info.name} does not: answers take no more tokens than before")

    def _thought_it_away(self, completion: Completion, room: int) -> bool:
        """Whether a model spent an answer's whole limit on thinking, and should be asked again with
        more room."""
        said = completion.details
        thought = said.get("thought_tokens") or said.get("thought") or said.get("unfinished")
        if completion.finish != "length" or completion.text.strip() or not thought:
            return False
        first, most = _ROOM[0], self._most_room
        if room == self._room and room < most:  # else another request taught us
            self._room = min(most, max(first, 2 * room))
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
        chat = request.form == "chat"
        cut = said.ended == "length" and chat
        text, thought, unfinished, guessed = split_thought(
            self._secrets.clean(said.text), cut=cut, guess=self._guesses
        )
        thought = self._secrets.clean("\n".join(filter(None, (said.thoughts, thought))))
        # What is only taken for a thought shows by its end, where there is room for one.
        sure = bool(said.thoughts) or not guessed or self._room > 0
        self._thinks |= chat and bool(thought) and sure
        ended = "length" if unfinished and said.ended == "stop" else said.ended
        marks = text.strip() != said.text.strip()
        text = _without_prompt(text, request)
        text = text.lstrip("\n") if thought else text  # what a template puts after a thought
        stops = () if "response_format" in sent else request.stop
        cuts = [text.index(stop) for stop in stops if stop in text]
        # Budgets hold where a server counts no tokens.
        read = said.prompt_tokens or about_tokens(request.prompt)
        written = said.completion_tokens or about_tokens(said.text + said.thoughts)
        estimated = (read, written) != (said.prompt_tokens, said.completion_tokens)
        counted = said.prompt_tokens or said.completion_tokens or said.ended == "error"
        if not counted and not self._estimates:
            self._estimates = True
            self._notify(f"{self._shown_url} does not count tokens: they are estimated by length")
        details: dict[str, Any] = {
            **{name: self._short(value) for name, value in said.details.items()},
            "thought_tokens": said.thought or thought_tokens(thought, text, written),
            "tokens_estimated": estimated,
            "unfinished": unfinished,
            "guessed": guessed,
            "marks": marks,
            "thought": thought[:MAX_TEXT],
            "stop_in_text": bool(cuts),
            "response_format": "json_schema" if "response_format" in sent else "",
            "left_out": sorted(self._left_out),
        }
        if said.ended == "error":
            why = self.clean(said.details.get("error") or details.get("finish_reason") or "")
            why = f"the server broke off the answer: {why}"
            return Completion("", "error", seconds=seconds, error=why)
        if len(text) > MAX_TEXT:
            details["truncated"] = len(text)
        return Completion(
            text[: min([*cuts, MAX_TEXT])],
            "stop" if ended == "length" and cuts else ended,
            read,
            written,
            seconds,
            details={k: v for k, v in details.items() if v not in ("", [], False, 0)},
        )

    def advice(self, code: int) -> str:
        """Advice about a permanent error status, to follow the message."""
        key = f"; set {' or '.join(self.api.keys)}"
        if is_withheld(self._url, os.environ.get(self.api.variable), self.api.url):
            trusts = how("", "--trust, or ")
            key = f"; a file names the address, so it gets no key: {trusts}{self.api.variable}"
        what_to_do = {
            401: key + how("", " (a key that goes into another header: --header)"),
            403: "; this key may not use the model",
            404: f"; is {self._model!r} a model of {self._shown_url}? (spec, base_url)",
        }
        if code == 404 and not re.search(r"/v\d|/openai|/api", urlsplit(self._url).path):
            return "; the address has no /v1, under which most servers answer (base_url)"
        return what_to_do.get(code, "")

    def clean(self, text: str) -> str:
        """An error text without secrets, on one short line."""
        return self._secrets.line(text.replace(self._url, self._shown_url))

    def _short(self, value: Any) -> str:
        return self._secrets.clean(value)[:100] if isinstance(value, str) else ""
