"""Batches of requests, which a provider answers within a day, for less.

A provider is a `Batches` that defines how a batch is made, listed, checked and read. Nothing is
kept here: `kgbias.graph.answers` records each batch before and after it is made.

If the client is killed, the provider is away or results are cut off, nothing is paid twice and
nothing lost (tests/backends/batches/integration).
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
from kgbias.models.http import Failure, parse_body, unforeseen_failure
from kgbias.models.server import MAX_ATTEMPTS, RETRIED_CODES, ServerModel

ResultT = TypeVar("ResultT")
FieldT = TypeVar("FieldT")

_POLL_SECONDS = (2.0, 60.0)  # seconds between two checks of a batch: at first, and at most
_UNREADABLE_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
# Failed checks of a batch before giving up: a quarter of an hour without a network.
_MAX_FAILED_CHECKS = 20
_MAX_READS = 3  # of results that are cut off
_MAX_CLOCK_SKEW = timedelta(minutes=10)  # by which a provider's clock may be wrong


class BatchState(NamedTuple):
    """The state of a batch. `refusal` is why the provider will not work on it; `is_gone` means that
    the provider no longer has it."""

    done: int = 0
    total: int = 0
    has_ended: bool = False
    refusal: str = ""
    is_gone: bool = False


class ListedBatch(NamedTuple):
    """A batch in a provider's list: when it was made, how many requests it has, and the name we
    gave it, if the provider keeps names."""

    id: str
    created: datetime
    requests: int
    name: str | None = None


class BatchGone(ModelError):
    """The provider does not have this, or no longer."""


class BatchPage(NamedTuple):
    """A page of a provider's batches, and the cursor of the next page."""

    batches: list[ListedBatch]
    next_cursor: str | None


class Batches:
    """The batches of a model.

    Every awaited call is repeated after temporary faults. ModelError is raised for permanent ones;
    what was submitted goes on at the provider.
    """

    batch_size = 5_000  # requests in a batch, which keeps its results small enough to read at once

    def __init__(self, model: ServerModel) -> None:
        self._model = model

    # What a provider defines; `client` is that of its own library

    async def _create(self, client: Any, name: str, requests: Mapping[str, Request]) -> str:
        """Make a batch of requests, each with its key; returns its id."""
        raise NotImplementedError

    async def _list(self, client: Any, cursor: str | None) -> BatchPage:
        """A page of the batches, newest first, and the cursor of the next page."""
        raise NotImplementedError

    async def _state(self, client: Any, batch: str) -> BatchState:
        raise NotImplementedError

    async def _results(self, client: Any, batch: str) -> bytes:
        """The results of a finished batch, a line of JSON each."""
        raise NotImplementedError

    def _unpack_result(self, result: Any) -> Any:
        """The value of a response's body in a result, or a `Failure`. Raises LookupError, TypeError
        or AttributeError for anything else."""
        raise NotImplementedError

    # Asking

    def submit(
        self,
        name: str,
        requests: Mapping[str, Request],
        since: datetime,
        known_ids: Collection[str],
    ) -> str:
        """Send these requests, each with its key, as a batch; returns its id. If a fault leaves it
        unclear whether the batch was made, it is searched for before it is made again."""
        return self._model.run_call(
            lambda client: self._submit(client, name, requests, since, known_ids)
        )

    def find(
        self, name: str, keys: Sequence[str], since: datetime, known_ids: Collection[str]
    ) -> str | None:
        """The id of the batch of that name made since then, if there is one; `known_ids` are known
        not to be it. If the provider keeps no names, batches with as many requests are waited for,
        and recognised by their results."""
        return self._model.run_call(lambda client: self._find(client, name, keys, since, known_ids))

    def watch(self, batch: str) -> Iterator[BatchState]:
        """The state of a batch, each time it changes, until it has ended."""
        last_state, wait = None, _POLL_SECONDS[0]
        while True:
            state = self._model.run_call(lambda client: self._check_state(client, batch))
            if state != last_state:
                yield state
                last_state, wait = state, _POLL_SECONDS[0]
            if state.has_ended:
                return
            # On the loop, where Ctrl-C ends it at once.
            self._model.run_call(lambda _, wait=wait: asyncio.sleep(wait))  # type: ignore[misc]
            wait = min(_POLL_SECONDS[1], 1.5 * wait)

    def results(
        self, batch: str, requests: Mapping[str, Request], done_count: int = 0
    ) -> dict[str, Completion]:
        """The results of these requests in a batch in the state `done_count`, by key; an error for
        a request that was not answered. Requests that the batch does not mention are left out."""
        completions: dict[str, Completion] = {}
        for line in self._model.run_call(lambda client: self._lines(client, batch, done_count)):
            key = line.get("custom_id")
            if not isinstance(key, str) or key not in requests:
                continue
            # Of one that is mentioned twice, the first answer counts: it was paid for.
            if key not in completions or completions[key].finish == "error":
                completions[key] = self._read_line(line, requests[key])
        return completions

    def adapt_to_refusal(self, reason: str, request: Request) -> bool:
        """Leave out what a refusal of a batch names; whether the batch makes sense without it."""
        return self._model.adapt(reason, self._model.sent_parameters(request))

    def _read_line(self, line: Any, request: Request) -> Completion:
        try:
            answer = self._unpack_result(line)
        except (LookupError, TypeError, AttributeError):
            answer = line
        if isinstance(answer, Failure):
            return self._model.read_batch_failure(answer, request)
        return self._model.read_batch_answer(answer, json.dumps(answer).encode(), request)

    async def _submit(
        self,
        client: Any,
        name: str,
        requests: Mapping[str, Request],
        since: datetime,
        known_ids: Collection[str],
    ) -> str:
        keys, may_exist = list(requests), False

        async def create_once() -> str:
            nonlocal may_exist
            if may_exist:
                existing_id = await self._find(client, name, keys, since, known_ids)
                if existing_id:
                    return existing_id
            may_exist = True
            return self._check_id(await self._create(client, name, requests))

        return await self._retry(create_once)

    def _check_id(self, batch_id: str) -> str:
        """The id, if it is safe in a path, in the store and on a screen."""
        if (
            not re.fullmatch(r"[\w.:-]{1,200}", batch_id, re.ASCII)
            or self._model.clean(batch_id) != batch_id
        ):
            raise ModelError(f"the provider calls a batch {self._model.clean(batch_id)[:80]!r}")
        return batch_id

    async def _find(
        self,
        client: Any,
        name: str,
        keys: Sequence[str],
        since: datetime,
        known_ids: Collection[str],
    ) -> str | None:
        cursor: str | None = None
        while True:
            page, cursor = await self._retry(lambda cursor=cursor: self._list(client, cursor))  # type: ignore[misc]
            for candidate in page:
                if candidate.created < since - _MAX_CLOCK_SKEW:
                    return None
                if candidate.id in known_ids:
                    continue
                may_be_it = candidate.name is None and candidate.requests == len(keys)
                batch_id = self._check_id(candidate.id)
                if candidate.name == name or (
                    may_be_it and await self._contains_any(client, batch_id, keys)
                ):
                    return batch_id
            if cursor is None:
                return None

    async def _contains_any(self, client: Any, batch: str, keys: Sequence[str]) -> bool:
        """Whether a batch holds these requests, which shows once it has ended."""
        wait = _POLL_SECONDS[0]
        while not (await self._check_state(client, batch)).has_ended:
            await asyncio.sleep(wait)
            wait = min(_POLL_SECONDS[1], 1.5 * wait)
        key_set = set(keys)
        return any(line.get("custom_id") in key_set for line in await self._lines(client, batch))

    async def _check_state(self, client: Any, batch: str) -> BatchState:
        try:
            state = await self._retry(lambda: self._state(client, batch), _MAX_FAILED_CHECKS)
            return state._replace(refusal=self._model.clean(state.refusal))
        except BatchGone:
            await self._retry(lambda: self._list(client, None))  # else all is gone for a while
            return BatchState(has_ended=True, is_gone=True)

    async def _lines(self, client: Any, batch: str, done_count: int = 0) -> list[dict[str, Any]]:
        """The results of a batch, read again if they are cut off or missing: asking anew would cost
        again."""
        lines: list[dict[str, Any]] = []
        for attempt in range(_MAX_READS):
            if attempt:
                await asyncio.sleep(_POLL_SECONDS[0])
            try:
                body = await self._retry(lambda: self._results(client, batch))
            except BatchGone:  # or not there yet
                continue
            lines, count, is_whole = [], 0, True
            for text in io.BytesIO(body):  # there may be millions, of which few are results
                if text.strip():
                    line = parse_body(text)
                    count, is_whole = count + 1, is_whole and line is not None
                    if isinstance(line, dict) and "custom_id" in line:
                        lines.append(line)
            if count >= done_count and is_whole:
                break
        return lines

    async def _retry(
        self, call: Callable[[], Awaitable[ResultT]], tries: int = MAX_ATTEMPTS
    ) -> ResultT:
        """The result of a call, which is repeated after temporary faults."""
        reason, requested_wait = "", 0.0
        for attempt in range(tries):
            if attempt:
                # By chance, or those who were sent away together would come back together.
                wait = min(60.0, 2.0**attempt) * random.uniform(0.5, 1.0)
                await asyncio.sleep(max(wait, requested_wait))
            try:
                return await call()
            except Exception as error:
                failure = self._model.failure(error)
                if failure is None and isinstance(error, _UNREADABLE_ERRORS):
                    raise ModelError(
                        "the provider's answer about its batches cannot be read"
                    ) from None
                failure = failure or unforeseen_failure(error)
                reason, requested_wait = self._model.describe_failure(failure), failure.wait
                if failure.code == 404:
                    raise BatchGone(f"{reason}; does this server take batches?") from None
                if failure.code and failure.code not in RETRIED_CODES:
                    raise ModelError(
                        f"{reason}{self._model.advice(failure.code, is_page=failure.is_page)}"
                    ) from None
        raise ModelError(reason)


def read_field(body: bytes, name: str, kind: type[FieldT]) -> FieldT:
    """A field of a response's JSON object. Raises ModelError if it is not an object or lacks it."""
    data = parse_body(body)
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, kind):
        raise ModelError(f"the provider's answer about a batch has no {name}")
    return value
