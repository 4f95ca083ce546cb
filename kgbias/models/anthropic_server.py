"""Anthropic's models, through its Messages API, at once or in message batches. The key comes from
ANTHROPIC_API_KEY and goes nowhere else.

The API has no seeds and no log-probabilities. Only its version 2023-06-01 has temperature, top_p
and top_k, and only older models take them; so kgbias asks for that version, and leaves out what a
model refuses. Answers should come without thinking, which newer models do unless told not to.
Batches keep no name: one whose id was lost is recognised by the ids of its requests in its results.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from kgbias.errors import MissingExtra
from kgbias.models.base import Abilities, Request
from kgbias.models.batches import Batches, Listed, State, field
from kgbias.models.server import ServerModel
from kgbias.models.wire import (
    Api,
    Failure,
    Said,
    bounded_client,
    client_failure,
    count,
    ending,
    messages,
    parsed,
    table,
)

ANTHROPIC = Api(("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", "https://api.anthropic.com")
_VERSION = "2023-06-01"


class AnthropicModel(ServerModel):
    """A `Completer` over /v1/messages."""

    kind = "anthropic"
    api = ANTHROPIC
    abilities = Abilities(
        forms=("chat",),
        structured="depends",
        seed="no",
        batch="yes",
    )
    # If a model refuses top_p together with a temperature, the temperature stays.
    optional: ClassVar[Mapping[str, str]] = {
        "thinking": "thinking",
        "top_k": "top_k",
        "top_p": "top_p",
        "temperature": "temperature",
        "response_format": "output_config|output_format",
    }
    unknown = ("seed", "min_p")
    hottest = 1.0
    how = (("api_version", _VERSION),)

    def batches(self) -> "AnthropicBatches":
        """Batches at Anthropic."""
        return AnthropicBatches(self)

    def _open(self) -> Any:
        try:
            import anthropic
        except ModuleNotFoundError as error:
            raise MissingExtra("anthropic", extra="anthropic") from error
        return anthropic.AsyncAnthropic(
            api_key=self._secrets.key or "none",  # without one, it looks elsewhere for credentials
            base_url=self._url,
            timeout=self._timeout,
            max_retries=0,
            default_headers={"anthropic-version": _VERSION},
            http_client=bounded_client(
                anthropic.DefaultAsyncHttpxClient, self._timeout, self._url, self.api
            ),
        )

    def _parameters(self, request: Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "max_tokens": request.max_tokens + self._room,
            "temperature": request.temperature,
            "thinking": {"type": "disabled"},
            **request.truncation.as_dict(),
        }
        # A stop string of only white space is refused; it is cut off here.
        if stops := [stop for stop in request.stop if stop.strip()]:
            parameters["stop_sequences"] = stops
        if request.schema and "response_format" not in self._left_out:
            parameters.pop("stop_sequences", None)
            schema = {"type": "json_schema", "schema": json.loads(request.schema)}
            parameters["response_format"] = {"format": schema}
        return parameters

    def _body(self, request: Request, sent: Mapping[str, Any]) -> dict[str, Any]:
        body = {"model": self._model, **sent}
        if "response_format" in body:
            body["output_config"] = body.pop("response_format")
        system, others = messages(request)
        if system:
            body["system"] = system
        body["messages"] = [{"role": role, "content": text} for role, text in others]
        return body

    async def _send(self, request: Request, sent: Mapping[str, Any]) -> tuple[bytes, str]:
        body = self._body(request, sent)
        named = {name: body.pop(name) for name in ("model", "max_tokens", "messages")}
        # The client no longer knows a temperature: parameters it may not know are sent as they are.
        raw = await self._client.messages.with_raw_response.create(**named, extra_body=body)
        return await raw.read(), raw.headers.get("content-type", "")

    def failure(self, error: Exception) -> Failure | None:
        import anthropic

        return client_failure(anthropic, error)

    def _said(self, data: Any, request: Request) -> Said:
        reason = data["stop_reason"]
        blocks = [block for block in data["content"] if block["type"] == "text"]
        usage = table(data.get("usage"))
        read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        written = count(usage.get("output_tokens"))
        thinks = any(block["type"].endswith("thinking") for block in data["content"])
        told = count(table(usage.get("output_tokens_details")).get("thinking_tokens"))
        details = {
            "endpoint": "messages",
            "served_model": data.get("model"),
            "finish_reason": reason,
            "refusal": table(data.get("stop_details")).get("category"),
        }
        return Said(
            "".join(block["text"] for block in blocks),
            ending(reason) or "stop",
            sum(count(usage.get(name)) for name in read),
            written,
            told or (written if thinks and not blocks else 0),
            details,
            "\n".join(str(block.get("thinking") or "") for block in data["content"]).strip(),
        )


_PATH = "/v1/messages/batches"
# The statuses of errors named in results; all others are temporary.
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

        # By id, not by the address in the server's answer, to which the key must not go.
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
