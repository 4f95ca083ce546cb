"""Google's Gemini models, through generateContent. The key comes from GOOGLE_API_KEY or
GEMINI_API_KEY and goes nowhere else.

The API scores no given text. Answers should come without thinking, if a model can do without.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from kgbias.errors import MissingExtra
from kgbias.models.base import Abilities, Request
from kgbias.models.http import (
    Api,
    Failure,
    ServerReply,
    as_object,
    bound_wait,
    bounded_client,
    broken_connection,
    classify_ending,
    read_failure,
    retry_after,
    split_messages,
    token_count,
)
from kgbias.models.server import RawResponse, ServerModel

GOOGLE_API = Api(
    ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "GOOGLE_GEMINI_BASE_URL",
    "https://generativelanguage.googleapis.com",
)
_MAX_STOP_SEQUENCES = 5  # stop sequences allowed by the API


class GoogleModel(ServerModel):
    """A `Completer` over models/ID:generateContent."""

    kind = "google"
    api = GOOGLE_API
    abilities = Abilities(
        forms=("chat",),
        structured="yes",
        seed="depends",
    )
    optional_parameters: ClassVar[Mapping[str, str]] = {
        "thinking": "thinking|budget",
        "top_k": "top_?k",
        "top_p": "top_?p",
        "temperature": "temperature",
        "seed": "seed",
        "response_format": "json.?schema|response.?schema|mime.?type|json mode",
    }
    unsupported_parameters = ("min_p",)
    max_temperature = 2.0

    def _request_parameters(self, request: Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "max_output_tokens": request.max_tokens + self._thinking_tokens,
            "temperature": request.temperature,
            "seed": request.seed % (1 << 31),
            "thinking": {"thinking_budget": 0},
            **request.truncation.as_dict(),
        }
        if request.stop:
            parameters["stop_sequences"] = list(request.stop[:_MAX_STOP_SEQUENCES])
        if request.schema and "response_format" not in self._refused_parameters:
            parameters.pop("stop_sequences", None)
            parameters["response_format"] = json.loads(request.schema)
        return parameters

    def _open_client(self) -> Any:
        try:
            from google import genai
        except ModuleNotFoundError as error:
            raise MissingExtra("google-genai", extra="google") from error
        import httpx2

        self._http = bounded_client(httpx2.AsyncClient, self._timeout, self._url, self.api)
        return genai.Client(
            vertexai=False,
            # Without one, the client looks for credentials elsewhere.
            api_key=self._secrets.key or "none",
            http_options=genai.types.HttpOptions(
                base_url=self._url,
                httpx_async_client=self._http,
                # In milliseconds, unlike everywhere else.
                timeout=round(1000 * self._timeout),
            ),
        )

    async def _close_client(self) -> None:
        self._client.close()
        await self._http.aclose()  # the client leaves this to us

    def _request_config(self, request: Request, parameters: Mapping[str, Any]) -> dict[str, Any]:
        config = dict(parameters)
        if "thinking" in config:
            config["thinking_config"] = config.pop("thinking")
        if "response_format" in config:
            config["response_json_schema"] = config.pop("response_format")
            config["response_mime_type"] = "application/json"
        if system := split_messages(request)[0]:
            config["system_instruction"] = system
        return config

    async def _send(self, request: Request, parameters: Mapping[str, Any]) -> RawResponse:
        # What Gemini calls it.
        roles = {"assistant": "model"}
        raw = await self._client.aio.models.generate_content(
            model=self._model,
            contents=[
                {"role": roles.get(role, role), "parts": [{"text": text}]}
                for role, text in split_messages(request)[1]
            ],
            config={
                **self._request_config(request, parameters),
                "should_return_http_response": True,
            },
        )
        response = raw.sdk_http_response
        body, headers = response.body or "", response.headers or {}
        # The client has decoded it, and half a surrogate pair in it could not be encoded otherwise.
        return RawResponse(body.encode("utf-8", "surrogatepass"), headers.get("content-type", ""))

    def failure(self, error: Exception) -> Failure | None:
        import httpx2
        from google.genai.errors import APIError

        if isinstance(error, APIError):
            text, status = json.dumps(error.details, default=str), error.code
            if "API_KEY_INVALID" in text:  # which the API calls a bad request
                status = 401
            retry_delay = re.search(r'"retryDelay": "([0-9.]+)s"', text)
            wait = (
                bound_wait(float(retry_delay[1]))
                if retry_delay
                else retry_after(error.response.headers)
            )
            return read_failure(str(error.message or text), status, error.details, wait)
        if isinstance(error, httpx2.TimeoutException):
            return Failure("", is_late=True)
        if isinstance(error, httpx2.RequestError):
            return broken_connection(error.__cause__ or error)
        if isinstance(error, UnicodeError | RecursionError):
            return Failure("its answer cannot be read", is_reached=True)
        return None

    def _parse_reply(self, data: Any, request: Request) -> ServerReply:
        feedback = as_object(data.get("promptFeedback"))
        block_reason = feedback.get("blockReason")
        candidate = {} if block_reason else data["candidates"][0]
        reason = block_reason or candidate.get("finishReason")
        text_parts = [
            p for p in as_object(candidate.get("content")).get("parts", []) if "text" in p
        ]
        text = "".join(part["text"] for part in text_parts if not part.get("thought"))
        usage = as_object(data.get("usageMetadata"))
        thought_tokens = token_count(usage.get("thoughtsTokenCount"))
        details = {
            "endpoint": "generateContent",
            "served_model": data.get("modelVersion"),
            "finish_reason": reason,
            "refusal": "prompt" if block_reason else "",
        }
        ending_kind = (
            "refused" if block_reason else classify_ending(reason) or ("stop" if text else "error")
        )
        return ServerReply(
            text,
            ending_kind,
            token_count(usage.get("promptTokenCount")),
            token_count(usage.get("candidatesTokenCount")) + thought_tokens,
            thought_tokens,
            details,
            "\n".join(part["text"] for part in text_parts if part.get("thought")),
        )
