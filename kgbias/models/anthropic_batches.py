"""Anthropic's message batches. They keep no name: one whose id was lost is known by the ids of its
requests, which its results name."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kgbias.models.base import Request
from kgbias.models.batches import Batches, Listed, State, field
from kgbias.models.said import Failure, count, table
from kgbias.models.wire import parsed

_PATH = "/v1/messages/batches"
# What an error that a result names would be as a status: all others pass.
_CODES = {"invalid_request_error": 400, "not_found_error": 400, "request_too_large": 400}


class AnthropicBatches(Batches):
    """/v1/messages/batches."""

    async def _create(self, client: Any, name: str, requests: Mapping[str, Request]) -> str:
        rows = [{"custom_id": key, "params": self._model.body(r)} for key, r in requests.items()]
        raw = await client.messages.batches.with_raw_response.create(requests=rows)
        return field(await raw.read(), "id", str)

    async def _list(self, client: Any, after: str | None) -> tuple[list[Listed], str | None]:
        options = {"after_id": after} if after else {}
        raw = await client.messages.batches.with_raw_response.list(limit=100, **options)
        body = await raw.read()
        found = [
            Listed(
                str(row["id"]),
                datetime.fromisoformat(row["created_at"]).astimezone(UTC),
                sum(_counts(row)),
            )
            for row in field(body, "data", list)
        ]
        more = table(parsed(body)).get("has_more") is True and found
        return found, found[-1].id if more else None

    async def _state(self, client: Any, batch: str) -> State:
        raw = await client.messages.batches.with_raw_response.retrieve(batch)
        body = await raw.read()
        ended = field(body, "processing_status", str) == "ended"
        waiting, *done = _counts(table(parsed(body)))
        return State(sum(done), waiting + sum(done), ended)

    async def _results(self, client: Any, batch: str) -> bytes:
        import httpx2

        # By its id and not by the address in the server's answer, so that the key stays here.
        raw = await client.get(f"{_PATH}/{batch}/results", cast_to=httpx2.Response)
        return bytes(await raw.aread())

    def _answer(self, result: Any) -> Any:
        outcome = result["result"]
        if outcome["type"] == "succeeded":
            return outcome["message"]
        if outcome["type"] == "errored":
            error = table(outcome["error"].get("error")) or outcome["error"]
            return Failure(str(error.get("message")), _CODES.get(str(error.get("type")), 500))
        return Failure(str(outcome["type"]), dropped=True)  # expired or canceled


def _counts(row: Mapping[str, Any]) -> list[int]:
    counts = table(row.get("request_counts"))
    names = ("processing", "succeeded", "errored", "canceled", "expired")
    return [count(counts.get(name)) for name in names]
