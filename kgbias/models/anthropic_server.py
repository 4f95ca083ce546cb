"""Anthropic's models, through its Messages API. The key comes from ANTHROPIC_API_KEY and goes
nowhere else.

The API has no seeds and no log-probabilities. A temperature, top_p and top_k are part of its
version 2023-06-01 alone, and only older models take them; so that version is asked for, and where a
model refuses one of them it is left out. Answers are wanted without thinking, which newer models
begin with unless they are told not to.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kgbias.errors import MissingExtra
from kgbias.models.base import Abilities, Request
from kgbias.models.said import Failure, Said, client_failure, count, messages, table
from kgbias.models.server import ServerModel
from kgbias.models.wire import Api, bounded_client

if TYPE_CHECKING:
    from kgbias.models.anthropic_batches import AnthropicBatches

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
    # Where a model refuses top_p beside a temperature, the temperature stays.
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
        """Requests left with Anthropic."""
        from kgbias.models.anthropic_batches import AnthropicBatches

        return AnthropicBatches(self)

    def _open(self) -> Any:
        try:
            import anthropic
        except ModuleNotFoundError as error:
            raise MissingExtra("anthropic", extra="anthropic") from error
        return anthropic.AsyncAnthropic(
            api_key=self._secrets.key or "none",  # without one, it looks for credentials elsewhere
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
        # One of white space alone is refused; it is cut off here.
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
        # The client knows no temperature any more: what it may not know goes as it is.
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
        cut = reason in ("max_tokens", "model_context_window_exceeded")
        return Said(
            "".join(block["text"] for block in blocks),
            "refused" if reason == "refusal" else "length" if cut else "stop",
            sum(count(usage.get(name)) for name in read),
            written,
            told or (written if thinks and not blocks else 0),
            details,
        )
