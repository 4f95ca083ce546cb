"""Models behind an OpenAI-compatible server, asked at once or in batches. The key comes from
OPENAI_API_KEY and goes nowhere else.

A batch at OpenAI and Azure is a file of requests, and files of results. It carries its name in its
metadata, by which it is found again.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from kgbias.models.base import Abilities, Request
from kgbias.models.batches import Batches, Listed, State, field
from kgbias.models.server import ServerModel
from kgbias.models.wire import (
    OPENAI,
    Failure,
    Said,
    client_failure,
    count,
    open_client,
    parsed,
    table,
)

_EXTRA = ("top_k", "min_p")  # many servers know them, the official client does not
# In this order: if a server refuses top_p together with a temperature, the temperature stays.
_OPTIONAL = (*_EXTRA, "top_p", "temperature", "seed", "stop", "response_format")


class OpenAIModel(ServerModel):
    """A `Completer` over /v1/completions (completion form) and /v1/chat/completions (chat form)."""

    kind = "openai"
    api = OPENAI
    abilities = Abilities(
        structured="depends",
        seed="depends",
        batch="depends",
    )
    optional: ClassVar[Mapping[str, str]] = {name: name for name in _OPTIONAL}

    def batches(self) -> "OpenAIBatches":
        """Batches at the server."""
        return OpenAIBatches(self)

    def _open(self) -> Any:
        return open_client(self._url, self._timeout, retries=0)

    def _parameters(self, request: Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed % (1 << 31),  # some servers take 32 bits only
            self._limit_name if request.form == "chat" else "max_tokens": (
                request.max_tokens + self._room
            ),
            **request.truncation.as_dict(),
        }
        if request.stop:
            parameters["stop"] = list(request.stop[:4])
        if request.schema and "response_format" not in self._left_out:
            parameters.pop("stop", None)  # JSON has line breaks of its own
            schema = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
        return parameters

    def _body(self, request: Request, sent: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(request.prompt, str):
            return {"model": self._model, "prompt": request.prompt, **sent}
        messages = [{"role": role, "content": text} for role, text in request.prompt]
        return {"model": self._model, "messages": messages, **sent}

    async def _send(self, request: Request, sent: Mapping[str, Any]) -> tuple[bytes, str]:
        body = self._body(request, sent)
        if extra := {name: body.pop(name) for name in _EXTRA if name in body}:
            body["extra_body"] = extra
        chat = request.form == "chat"
        api = self._client.chat.completions if chat else self._client.completions
        raw = await api.with_raw_response.create(**body)
        return raw.content, raw.headers.get("content-type", "")

    def failure(self, error: Exception) -> Failure | None:
        import openai

        failure = client_failure(openai, error)
        if failure and getattr(error, "code", None) == "content_filter":  # as Azure's says it
            return failure._replace(withheld=True)
        return failure

    def adapt(self, why: str, sent: Mapping[str, Any]) -> bool:
        if "max_tokens" in sent and "max_completion_tokens" in why:
            self._limit_name = "max_completion_tokens"
            return True
        return super().adapt(why, sent)

    def _said(self, data: Any, request: Request) -> Said:
        choice = data["choices"][0]
        reason, refused = choice.get("finish_reason"), None
        if request.form == "completion":
            text = choice["text"]
        else:
            refused = choice["message"].get("refusal")
            text = choice["message"].get("content") or refused or ""
        usage = table(data.get("usage"))
        details = {
            "endpoint": "completions" if request.form == "completion" else "chat",
            "served_model": data.get("model"),
            "fingerprint": data.get("system_fingerprint"),
            "finish_reason": reason,
        }
        withheld = reason == "content_filter" or bool(refused)
        return Said(
            text,
            "refused" if withheld else "length" if reason == "length" else "stop",
            count(usage.get("prompt_tokens")),
            count(usage.get("completion_tokens")),
            count(table(usage.get("completion_tokens_details")).get("reasoning_tokens")),
            details,
        )


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
            refused = str(table(errors[0]).get("message") or "it gives no reason")
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
