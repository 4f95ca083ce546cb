"""Batches at OpenAI and Azure: a file of requests, and files of results. A batch carries its name
in its metadata, by which it is found again."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kgbias.backends.batches.base import Batches, BatchPage, BatchState, ListedBatch, read_field
from kgbias.models.base import Request
from kgbias.models.http import (
    Failure,
    as_object,
    error_message,
    parse_body,
    read_failure,
    token_count,
)

_FINAL_STATUSES = ("completed", "failed", "expired", "cancelled")
_METADATA_KEY = "kgbias"  # the name of our metadata


class OpenAIBatches(Batches):
    """/v1/files and /v1/batches."""

    async def _create(self, client: Any, name: str, requests: Mapping[str, Request]) -> str:
        chat = next(iter(requests.values())).form == "chat"
        endpoint = "/v1/chat/completions" if chat else "/v1/completions"
        lines = (
            {
                "custom_id": key,
                "method": "POST",
                "url": endpoint,
                "body": self._model.batch_body(request),
            }
            for key, request in requests.items()
        )
        text = "".join(json.dumps(line) + "\n" for line in lines)
        file_response = await client.files.with_raw_response.create(
            file=(f"{name}.jsonl", text.encode(), "application/jsonl"), purpose="batch"
        )
        batch_response = await client.batches.with_raw_response.create(
            input_file_id=read_field(file_response.content, "id", str),
            endpoint=endpoint,
            # The only one there is.
            completion_window="24h",
            metadata={_METADATA_KEY: name},
        )
        return read_field(batch_response.content, "id", str)

    async def _list(self, client: Any, cursor: str | None) -> BatchPage:
        options = {"after": cursor} if cursor else {}
        # A page has at most a hundred.
        raw = await client.batches.with_raw_response.list(limit=100, **options)
        rows = [row for row in read_field(raw.content, "data", list) if isinstance(row, dict)]
        listed_batches = [
            ListedBatch(
                str(row["id"]),
                datetime.fromtimestamp(token_count(row.get("created_at")), UTC),
                token_count(as_object(row.get("request_counts")).get("total")),
                str(as_object(row.get("metadata")).get(_METADATA_KEY, "")),
            )
            for row in rows
        ]
        has_more = as_object(parse_body(raw.content)).get("has_more") is True and listed_batches
        return BatchPage(listed_batches, listed_batches[-1].id if has_more else None)

    async def _state(self, client: Any, batch: str) -> BatchState:
        raw = await client.batches.with_raw_response.retrieve(batch)
        data = as_object(parse_body(raw.content))
        counts = as_object(data.get("request_counts"))
        refusal = ""
        if read_field(raw.content, "status", str) == "failed":
            errors = as_object(data.get("errors")).get("data") or [{}]
            refusal = str(as_object(errors[0]).get("message") or "it gives no reason")
        return BatchState(
            token_count(counts.get("completed")) + token_count(counts.get("failed")),
            token_count(counts.get("total")),
            data["status"] in _FINAL_STATUSES,
            refusal,
        )

    async def _results(self, client: Any, batch: str) -> bytes:
        raw = await client.batches.with_raw_response.retrieve(batch)
        data = as_object(parse_body(raw.content))
        files = [data.get(name) for name in ("output_file_id", "error_file_id")]
        parts = [(await client.files.content(file)).content for file in files if file]
        return b"\n".join(parts)

    def _unpack_result(self, result: Any) -> Any:
        if result.get("error"):  # batch_expired, batch_cancelled ...
            reason = error_message(result["error"]) or str(result["error"]["code"])
            return Failure(reason, is_dropped=True)
        response = result["response"]
        if response["status_code"] == 200:
            return response["body"]
        reason = error_message(response["body"]) or "no reason given"
        return read_failure(reason, token_count(response["status_code"]), response["body"])
