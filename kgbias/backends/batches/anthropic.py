"""Batches at Anthropic. They keep no name: one whose id was lost is recognised by the ids of its
requests in its results."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kgbias.backends.batches.base import Batches, BatchPage, BatchState, ListedBatch, read_field
from kgbias.models.base import Request
from kgbias.models.http import Failure, as_object, parse_body, token_count

_PATH = "/v1/messages/batches"
# The statuses of errors named in results; all others are temporary.
_STATUS_BY_ERROR = {"invalid_request_error": 400, "not_found_error": 400, "request_too_large": 400}


class AnthropicBatches(Batches):
    """/v1/messages/batches."""

    async def _create(self, client: Any, name: str, requests: Mapping[str, Request]) -> str:
        rows = [
            {"custom_id": key, "params": self._model.batch_body(r)} for key, r in requests.items()
        ]
        raw = await client.messages.batches.with_raw_response.create(requests=rows)
        return read_field(await raw.read(), "id", str)

    async def _list(self, client: Any, cursor: str | None) -> BatchPage:
        options = {"after_id": cursor} if cursor else {}
        raw = await client.messages.batches.with_raw_response.list(limit=100, **options)
        body = await raw.read()
        listed_batches = [
            ListedBatch(
                str(row["id"]),
                datetime.fromisoformat(row["created_at"]).astimezone(UTC),
                sum(_read_counts(row)),
            )
            for row in read_field(body, "data", list)
        ]
        has_more = as_object(parse_body(body)).get("has_more") is True and listed_batches
        return BatchPage(listed_batches, listed_batches[-1].id if has_more else None)

    async def _state(self, client: Any, batch: str) -> BatchState:
        raw = await client.messages.batches.with_raw_response.retrieve(batch)
        body = await raw.read()
        has_ended = read_field(body, "processing_status", str) == "ended"
        waiting, *finished_counts = _read_counts(as_object(parse_body(body)))
        return BatchState(sum(finished_counts), waiting + sum(finished_counts), has_ended)

    async def _results(self, client: Any, batch: str) -> bytes:
        import httpx2

        # By id, not by the address in the server's answer, to which the key must not go.
        raw = await client.get(f"{_PATH}/{batch}/results", cast_to=httpx2.Response)
        return bytes(await raw.aread())

    def _unpack_result(self, result: Any) -> Any:
        outcome = result["result"]
        if outcome["type"] == "succeeded":
            return outcome["message"]
        if outcome["type"] == "errored":
            error = as_object(outcome["error"].get("error")) or outcome["error"]
            return Failure(
                str(error.get("message")), _STATUS_BY_ERROR.get(str(error.get("type")), 500)
            )
        return Failure(str(outcome["type"]), is_dropped=True)  # expired or canceled


def _read_counts(row: Mapping[str, Any]) -> list[int]:
    counts = as_object(row.get("request_counts"))
    names = ("processing", "succeeded", "errored", "canceled", "expired")
    return [token_count(counts.get(name)) for name in names]
