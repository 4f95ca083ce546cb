"""Batches of requests, which a provider answers within a day, for less.

A provider is a `Batches` that defines how a batch is made, listed, checked and read. Nothing is
kept here: `kgbias.graph.answers` records each batch before and after it is made.
"""

import asyncio
import io
import json
import random
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from kgbias.errors import ModelError
from kgbias.models.base import Completion, Request
from kgbias.models.server import RETRIED, TRIES, ServerModel
from kgbias.models.wire import Failure, parsed, unforeseen

T = TypeVar("T")
F = TypeVar("F")

_POLLED = (2.0, 60.0)  # seconds between two checks of a batch: at first, and at most
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
_PATIENCE = 20  # failed checks of a batch before giving up: a quarter of an hour without a network
_READS = 3  # of results that are cut off
_SKEW = timedelta(minutes=10)  # by which a provider's clock may be wrong


class State(NamedTuple):
    """The state of a batch. `refused` is why the provider will not work on it; `gone` means that
    the provider no longer has it."""

    done: int = 0
    total: int = 0
    ended: bool = False
    refused: str = ""
    gone: bool = False


class Listed(NamedTuple):
    """A batch in a provider's list: when it was made, how many requests it has, and the name we
    gave it, if the provider keeps names."""

    id: str
    created: datetime
    requests: int
    name: str | None = None


class Gone(ModelError):
    """The provider does not have this, or no longer."""


class Batches:
    """The batches of a model.

    Every awaited call is repeated after temporary faults. ModelError is raised for permanent ones;
    what was submitted goes on at the provider.
    """

    most = 5_000  # requests in a batch, which keeps its results small enough to read at once

    def __init__(self, model: ServerModel) -> None:
        self._model = model

    # What a provider defines; `client` is its own

    async def _create(self, client: Any, name: str, requests: Mapping[str, Request]) -> str:
        """Make a batch of requests, each with its key; returns its id."""
        raise NotImplementedError

    async def _list(self, client: Any, after: str | None) -> tuple[list[Listed], str | None]:
        """A page of the batches, newest first, and the cursor of the next page."""
        raise NotImplementedError

    async def _state(self, client: Any, batch: str) -> State:
        raise NotImplementedError

    async def _results(self, client: Any, batch: str) -> bytes:
        """The results of a finished batch, a line of JSON each."""
        raise NotImplementedError

    def _answer(self, result: Any) -> Any:
        """The value of a response's body in a result, or a `Failure`. Raises LookupError, TypeError
        or AttributeError for anything else."""
        raise NotImplementedError

    # Asking

    def submit(
        self, name: str, requests: Mapping[str, Request], since: datetime, others: Collection[str]
    ) -> str:
        """Send these requests, each with its key, as a batch; returns its id. If a fault leaves it
        unclear whether the batch was made, it is searched for before it is made again."""
        return self._model.call(lambda client: self._submit(client, name, requests, since, others))

    def find(
        self, name: str, keys: Sequence[str], since: datetime, others: Collection[str]
    ) -> str | None:
        """The id of the batch of that name made since then, if there is one; `others` are known not
        to be it. If the provider keeps no names, batches with as many requests are waited for, and
        recognised by their results."""
        return self._model.call(lambda client: self._find(client, name, keys, since, others))

    def watch(self, batch: str) -> Iterator[State]:
        """The state of a batch, each time it changes, until it has ended."""
        last, wait = None, _POLLED[0]
        while True:
            state = self._model.call(lambda client: self._looked(client, batch))
            if state != last:
                yield state
                last, wait = state, _POLLED[0]
            if state.ended:
                return
            self._model.call(lambda _, wait=wait: asyncio.sleep(wait))  # type: ignore[misc]
            wait = min(_POLLED[1], 1.5 * wait)

    def results(
        self, batch: str, requests: Mapping[str, Request], done: int = 0
    ) -> dict[str, Completion]:
        """The results of these requests in a batch in the state `done`, by key; an error for a
        request that was not answered. Requests that the batch does not mention are left out."""
        found = {}
        for line in self._model.call(lambda client: self._lines(client, batch, done)):
            key = line.get("custom_id")
            if isinstance(key, str) and key in requests:
                found[key] = self._read(line, requests[key])
        return found

    def learn(self, why: str, request: Request) -> bool:
        """Whether a refused batch makes sense without what the refusal names."""
        return self._model.adapt(why, self._model.written(request))

    def _read(self, line: Any, request: Request) -> Completion:
        try:
            answer = self._answer(line)
        except (LookupError, TypeError, AttributeError):
            answer = line
        if isinstance(answer, Failure):
            return self._model.failed(answer, request)
        return self._model.completed(answer, json.dumps(answer).encode(), request)

    async def _submit(
        self,
        client: Any,
        name: str,
        requests: Mapping[str, Request],
        since: datetime,
        others: Collection[str],
    ) -> str:
        keys, unsure = list(requests), False

        async def once() -> str:
            nonlocal unsure
            if unsure and (found := await self._find(client, name, keys, since, others)):
                return found
            unsure = True
            return self._checked(await self._create(client, name, requests))

        return await self._patiently(once)

    def _checked(self, id: str) -> str:
        """The id, if it is safe in a path, in the store and on a screen."""
        if not re.fullmatch(r"[\w.:-]{1,200}", id, re.ASCII) or self._model.clean(id) != id:
            raise ModelError(f"the provider calls a batch {self._model.clean(id)[:80]!r}")
        return id

    async def _find(
        self,
        client: Any,
        name: str,
        keys: Sequence[str],
        since: datetime,
        others: Collection[str],
    ) -> str | None:
        after: str | None = None
        while True:
            page, after = await self._patiently(lambda after=after: self._list(client, after))  # type: ignore[misc]
            for listed in page:
                if listed.created < since - _SKEW:
                    return None
                if listed.id in others:
                    continue
                alike = listed.name is None and listed.requests == len(keys)
                id = self._checked(listed.id)
                if listed.name == name or (alike and await self._holds(client, id, keys)):
                    return id
            if after is None:
                return None

    async def _holds(self, client: Any, batch: str, keys: Sequence[str]) -> bool:
        """Whether a batch holds these requests, which shows once it has ended."""
        wait = _POLLED[0]
        while not (await self._looked(client, batch)).ended:
            await asyncio.sleep(wait)
            wait = min(_POLLED[1], 1.5 * wait)
        wanted = set(keys)
        return any(line.get("custom_id") in wanted for line in await self._lines(client, batch))

    async def _looked(self, client: Any, batch: str) -> State:
        try:
            state = await self._patiently(lambda: self._state(client, batch), _PATIENCE)
            return state._replace(refused=self._model.clean(state.refused))
        except Gone:
            await self._patiently(lambda: self._list(client, None))  # else all is gone for a while
            return State(ended=True, gone=True)

    async def _lines(self, client: Any, batch: str, done: int = 0) -> list[dict[str, Any]]:
        """The results of a batch, read again if they are cut off: asking again would cost again."""
        for attempt in range(_READS):
            if attempt:
                await asyncio.sleep(_POLLED[0])
            try:
                body = await self._patiently(lambda: self._results(client, batch))
            except Gone:
                return []
            lines: list[dict[str, Any]] = []
            count, whole = 0, True
            for text in io.BytesIO(body):  # there may be millions, of which few are results
                if text.strip():
                    line = parsed(text)
                    count, whole = count + 1, whole and line is not None
                    if isinstance(line, dict) and "custom_id" in line:
                        lines.append(line)
            if count >= done and whole:
                break
        return lines

    async def _patiently(self, call: Callable[[], Awaitable[T]], tries: int = TRIES) -> T:
        """The result of a call, which is repeated after temporary faults."""
        why, asked_to = "", 0.0
        for attempt in range(tries):
            if attempt:
                wait = min(60.0, 2.0**attempt) * random.uniform(0.5, 1.0)
                await asyncio.sleep(max(wait, asked_to))
            try:
                return await call()
            except Exception as error:
                failure = self._model.failure(error)
                if failure is None and isinstance(error, _UNREADABLE):
                    raise ModelError(
                        "the provider's answer about its batches cannot be read"
                    ) from None
                failure = failure or unforeseen(error)
                why, asked_to = self._model.told(failure), failure.wait
                if failure.code == 404:
                    raise Gone(f"{why}; does this server take batches?") from None
                if failure.code and failure.code not in RETRIED:
                    raise ModelError(f"{why}{self._model.advice(failure.code)}") from None
        raise ModelError(why)


def field(body: bytes, name: str, kind: type[F]) -> F:
    """A field of a response's JSON object. Raises ModelError if it is not an object or lacks it."""
    data = parsed(body)
    found = data.get(name) if isinstance(data, dict) else None
    if not isinstance(found, kind):
        raise ModelError(f"the provider's answer about a batch has no {name}")
    return found
