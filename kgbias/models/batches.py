"""Requests left with a provider together, which answers them within a day, for less.

A provider is a `Batches` that says how a batch is made, listed, looked at and read. Nothing is kept
here: `kgbias.graph.batched` notes each batch before and after it is made.
"""

import asyncio
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

_POLLED = (2.0, 60.0)  # seconds between two looks at a batch: at first, and at most
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
_PATIENCE = 20  # times that a batch is looked at in vain: a quarter of an hour without a network
_READS = 3  # of results that are cut off
_SKEW = timedelta(minutes=10)  # that a provider's clock may be wrong


class State(NamedTuple):
    """How far a batch is. `refused` is why the provider will not work on it; `gone` is one that it
    no longer has."""

    done: int = 0
    total: int = 0
    ended: bool = False
    refused: str = ""
    gone: bool = False


class Listed(NamedTuple):
    """A batch in a provider's list: when it was made, how many requests it has, and the name that
    we gave it, where the provider keeps one."""

    id: str
    created: datetime
    requests: int
    name: str | None = None


class Gone(ModelError):
    """The provider has no such thing, or no longer."""


class Batches:
    """The batches of a model.

    All that is awaited is repeated after faults that pass. ModelError is raised for those that do
    not; what was submitted goes on at the provider.
    """

    most = 5_000  # requests in a batch, so that its results are read in one piece

    def __init__(self, model: ServerModel) -> None:
        self._model = model

    # What a provider says; `client` is its own

    async def _create(self, client: Any, name: str, requests: Mapping[str, Request]) -> str:
        """Make a batch of requests, each with its key; its id."""
        raise NotImplementedError

    async def _list(self, client: Any, after: str | None) -> tuple[list[Listed], str | None]:
        """A page of the batches, the newest first, and what the next page comes after."""
        raise NotImplementedError

    async def _state(self, client: Any, batch: str) -> State:
        raise NotImplementedError

    async def _results(self, client: Any, batch: str) -> bytes:
        """The results of a batch that has ended, a line of JSON each."""
        raise NotImplementedError

    def _answer(self, result: Any) -> Any:
        """The value of a response's body in a result, or a `Failure`. Raises LookupError, TypeError
        or AttributeError for what is neither."""
        raise NotImplementedError

    # Asking

    def submit(
        self, name: str, requests: Mapping[str, Request], since: datetime, others: Collection[str]
    ) -> str:
        """Leave these requests, each with its key, with the provider; the id of the batch. Where a
        fault leaves open whether it was made, it is looked for before it is made again."""
        return self._model.call(lambda client: self._submit(client, name, requests, since, others))

    def find(
        self, name: str, keys: Sequence[str], since: datetime, others: Collection[str]
    ) -> str | None:
        """The id of the batch of that name that was made since then, if there is one; `others` are
        known not to be it. Where the provider keeps no names, the batches of as many requests are
        waited for, and known by their results."""
        return self._model.call(lambda client: self._find(client, name, keys, since, others))

    def watch(self, batch: str) -> Iterator[State]:
        """How far a batch is, each time that changes, until it has ended."""
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
        """What a batch, so much of which is `done`, says of each of these requests, by key; an
        error where it was not answered. Those that it does not speak of are left out."""
        found = {}
        for line in self._model.call(lambda client: self._lines(client, batch, done)):
            key = line.get("custom_id")
            if isinstance(key, str) and key in requests:
                found[key] = self._read(line, requests[key])
        return found

    def learn(self, why: str, request: Request) -> bool:
        """Whether a batch that was refused makes sense without what the refusal names."""
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
        """The id, where it may stand in a path, in the store and on a screen."""
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
        """Whether a batch is that of these requests, which is seen once it has ended."""
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
        """The results of a batch, read again where they are cut off: what is asked again is paid
        again."""
        for attempt in range(_READS):
            if attempt:
                await asyncio.sleep(_POLLED[0])
            try:
                body = await self._patiently(lambda: self._results(client, batch))
            except Gone:
                return []
            lines = [parsed(line) for line in body.split(b"\n") if line.strip()]
            if len(lines) >= done and None not in lines:
                break
        return [line for line in lines if isinstance(line, dict)]

    async def _patiently(self, call: Callable[[], Awaitable[T]], tries: int = TRIES) -> T:
        """What a call gives; it is repeated after faults that pass."""
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
                        "what the provider says of its batches is not readable"
                    ) from None
                failure = failure or unforeseen(error)
                why, asked_to = self._model.told(failure), failure.wait
                if failure.code == 404:
                    raise Gone(f"{why}; does this server take batches?") from None
                if failure.code and failure.code not in RETRIED:
                    raise ModelError(f"{why}{self._model.advice(failure.code)}") from None
        raise ModelError(why)


def field(body: bytes, name: str, kind: type[F]) -> F:
    """A field of a response's JSON object. Raises ModelError for what is none or lacks it."""
    data = parsed(body)
    found = data.get(name) if isinstance(data, dict) else None
    if not isinstance(found, kind):
        raise ModelError(f"the provider's answer about a batch has no {name}")
    return found
