"""Anthropic's models, through its Messages API, at once or in message batches. The key comes from
ANTHROPIC_API_KEY and goes nowhere else.

The API has no seeds and no log-probabilities. Only its version 2023-06-01 has temperature, top_p
and top_k, and only older models take them; so kgbias asks for that version, and leaves out what a
model refuses. Answers should come without thinking, which newer models do unless told not to.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from kgbias.errors import MissingExtra
from kgbias.models.base import Abilities, Request
from kgbias.models.batch_providers import open_batches
from kgbias.models.http import (
    Api,
    Failure,
    ServerReply,
    as_object,
    bounded_client,
    classify_ending,
    client_failure,
    split_messages,
    token_count,
)
from kgbias.models.server import RawResponse, ServerModel

ANTHROPIC_API = Api(("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", "https://api.anthropic.com")
_API_VERSION = "2023-06-01"


class AnthropicModel(ServerModel):
    """A `Completer` over /v1/messages."""

    kind = "anthropic"
    api = ANTHROPIC_API
    abilities = Abilities(
        forms=("chat",),
        structured="depends",
        seed="no",
        batch="yes",
    )
    # If a model refuses top_p together with a temperature, the temperature stays.
    optional_parameters: ClassVar[Mapping[str, str]] = {
        "thinking": "thinking",
        "top_k": "top_k",
        "top_p": "top_p",
        "temperature": "temperature",
        "response_format": "output_config|output_format",
    }
    unsupported_parameters = ("seed", "min_p")
    max_temperature = 1.0
    fixed_settings = (("api_version", _API_VERSION),)

    def batches(self) -> Any:
        """Batches at Anthropic."""
        return open_batches("anthropic", self)

    def _open_client(self) -> Any:
        try:
            import anthropic
        except ModuleNotFoundError as error:
            raise MissingExtra("anthropic", extra="anthropic") from error
        return anthropic.AsyncAnthropic(
            api_key=self._secrets.key or "none",  # without one, it looks elsewhere for credentials
            base_url=self._url,
            timeout=self._timeout,
            max_retries=0,
            default_headers={"anthropic-version": _API_VERSION},
            http_client=bounded_client(
                anthropic.DefaultAsyncHttpxClient, self._timeout, self._url, self.api
            ),
        )

    def _request_parameters(self, request: Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "max_tokens": request.max_tokens + self._thinking_tokens,
            "temperature": request.temperature,
            "thinking": {"type": "disabled"},
            **request.truncation.as_dict(),
        }
        # A stop string of only white space is refused; it is cut off here.
        if stops := [stop for stop in request.stop if stop.strip()]:
            parameters["stop_sequences"] = stops
        if request.schema and "response_format" not in self._refused_parameters:
            parameters.pop("stop_sequences", None)
            schema = {"type": "json_schema", "schema": json.loads(request.schema)}
            parameters["response_format"] = {"format": schema}
        return parameters

    def _body(self, request: Request, parameters: Mapping[str, Any]) -> dict[str, Any]:
        body = {"model": self._model, **parameters}
        if "response_format" in body:
            body["output_config"] = body.pop("response_format")
        system, other_messages = split_messages(request)
        if system:
            body["system"] = system
        body["messages"] = [{"role": role, "content": text} for role, text in other_messages]
        return body

    async def _send(self, request: Request, parameters: Mapping[str, Any]) -> RawResponse:
        body = self._body(request, parameters)
        known_parameters = {name: body.pop(name) for name in ("model", "max_tokens", "messages")}
        # The client no longer knows a temperature: parameters it may not know are sent as they are.
        raw = await self._client.messages.with_raw_response.create(
            **known_parameters, extra_body=body
        )
        return RawResponse(await raw.read(), raw.headers.get("content-type", ""))

    def failure(self, error: Exception) -> Failure | None:
        import anthropic

        return client_failure(anthropic, error)

    def _parse_reply(self, data: Any, request: Request) -> ServerReply:
        reason, content = data.get("stop_reason"), data["content"]
        if isinstance(content, str):  # as proxies write it
            content = [{"type": "text", "text": content}]
        blocks = [block for block in content if block["type"] == "text"]
        usage = as_object(data.get("usage"))
        input_names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        output_tokens = token_count(usage.get("output_tokens"))
        thinks = any(block["type"].endswith("thinking") for block in content)
        thinking_tokens = token_count(
            as_object(usage.get("output_tokens_details")).get("thinking_tokens")
        )
        details = {
            "endpoint": "messages",
            "served_model": data.get("model"),
            "finish_reason": reason,
            "refusal": as_object(data.get("stop_details")).get("category"),
        }
        return ServerReply(
            "".join(block["text"] for block in blocks),
            classify_ending(reason) or "stop",
            sum(token_count(usage.get(name)) for name in input_names),
            output_tokens,
            thinking_tokens or (output_tokens if thinks and not blocks else 0),
            details,
            "\n".join(str(block.get("thinking") or "") for block in content).strip(),
        )
