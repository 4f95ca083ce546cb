"""Batches as OpenAI and Azure take them: a file of requests, and files of results. A batch carries
its name in its metadata, so that it is found again."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kgbias.models.base import Request
from kgbias.models.batches import Batches, Listed, State, field
from kgbias.models.said import Failure, count, table
from kgbias.models.wire import parsed

_ENDED = ("completed", "failed", "expired", "cancelled")
_OURS = "kgbias"  # the name of our metadata


class OpenAIBatches(Batches):
    """/v1/files and /v1/batches."""

    async def _create(self, client: Any, name: str, requests: Mapping[str, Request]) -> str:
        chat = next(iter(requests.values())).form == "chat"
        endpoint = "/v1/chat/completions" if chat else "/v1/completions"
        lines = (
            {"custom_id": key, "method": "POST", "url": endpoint, "body": self._model.body(request)}
            for key, request in requests.items()
        )
        text = "".join(json.dumps(line) + "\n" for line in lines)
        sent = await client.files.with_raw_response.create(
            file=(f"{name}.jsonl", text.encode(), "application/jsonl"), purpose="batch"
        )
        made = await client.batches.with_raw_response.create(
            input_file_id=field(sent.content, "id", str),
            endpoint=endpoint,
            completion_window="24h",
            metadata={_OURS: name},
        )
        return field(made.content, "id", str)

    async def _list(self, client: Any, after: str | None) -> tuple[list[Listed], str | None]:
        options = {"after": after} if after else {}
        raw = await client.batches.with_raw_response.list(limit=100, **options)
        rows = [row for row in field(raw.content, "data", list) if isinstance(row, dict)]
        found = [
            Listed(
                str(row["id"]),
                datetime.fromtimestamp(count(row.get("created_at")), UTC),
                count(table(row.get("request_counts")).get("total")),
                str(table(row.get("metadata")).get(_OURS, "")),
            )
            for row in rows
        ]
        more = table(parsed(raw.content)).get("has_more") is True and found
        return found, found[-1].id if more else None

    async def _state(self, client: Any, batch: str) -> State:
        raw = await client.batches.with_raw_response.retrieve(batch)
        data = table(parsed(raw.content))
        counts = table(data.get("request_counts"))
        refused = ""
        if field(raw.content, "status", str) == "failed":
            errors = table(data.get("errors")).get("data") or [{}]
            refused = str(table(errors[0]).get("message") or "it does not say why")
        return State(
            count(counts.get("completed")) + count(counts.get("failed")),
            count(counts.get("total")),
            data["status"] in _ENDED,
            refused,
        )

    async def _results(self, client: Any, batch: str) -> bytes:
        raw = await client.batches.with_raw_response.retrieve(batch)
        data = table(parsed(raw.content))
        files = [data.get(name) for name in ("output_file_id", "error_file_id")]
        parts = [(await client.files.content(file)).content for file in files if file]
        return b"\n".join(parts)

    def _answer(self, result: Any) -> Any:
        if result.get("error"):  # batch_expired, batch_cancelled ...
            why = str(result["error"].get("message") or result["error"]["code"])
            return Failure(why, dropped=True)
        response = result["response"]
        if response["status_code"] == 200:
            return response["body"]
        error = table(table(response["body"]).get("error"))
        return Failure(
            str(error.get("message") or "no reason given"),
            count(response["status_code"]),
            withheld=error.get("code") == "content_filter",
        )
