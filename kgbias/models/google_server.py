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
from kgbias.models.server import ServerModel
from kgbias.models.wire import (
    Api,
    Failure,
    Said,
    bounded_client,
    bounded_wait,
    count,
    ending,
    messages,
    read_failure,
    reason,
    retry_after,
    table,
)

GOOGLE = Api(
    ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "GOOGLE_GEMINI_BASE_URL",
    "https://generativelanguage.googleapis.com",
)
_STOPS = 5  # stop sequences allowed by the API


class GoogleModel(ServerModel):
    """A `Completer` over models/ID:generateContent."""

    kind = "google"
    api = GOOGLE
    abilities = Abilities(
        forms=("chat",),
        structured="yes",
        seed="depends",
    )
    optional: ClassVar[Mapping[str, str]] = {
        "thinking": "thinking|budget",
        "top_k": "top_?k",
        "top_p": "top_?p",
        "temperature": "temperature",
        "seed": "seed",
        "response_format": "json.?schema|response.?schema|mime.?type|json mode",
    }
    unknown = ("min_p",)
    hottest = 2.0

    def _parameters(self, request: Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "max_output_tokens": request.max_tokens + self._room,
            "temperature": request.temperature,
            "seed": request.seed % (1 << 31),
            "thinking": {"thinking_budget": 0},
            **request.truncation.as_dict(),
        }
        if request.stop:
            parameters["stop_sequences"] = list(request.stop[:_STOPS])
        if request.schema and "response_format" not in self._left_out:
            parameters.pop("stop_sequences", None)
            parameters["response_format"] = json.loads(request.schema)
        return parameters

    def _open(self) -> Any:
        try:
            from google import genai
        except ModuleNotFoundError as error:
            raise MissingExtra("google-genai", extra="google") from error
        import httpx2

        self._http = bounded_client(httpx2.AsyncClient, self._timeout, self._url, self.api)
        return genai.Client(
            vertexai=False,
            api_key=self._secrets.key or "none",
            http_options=genai.types.HttpOptions(
                base_url=self._url,
                httpx_async_client=self._http,
                timeout=round(1000 * self._timeout),
            ),
        )

    async def _close(self) -> None:
        self._client.close()
        await self._http.aclose()  # the client leaves this to us

    def _config(self, request: Request, sent: Mapping[str, Any]) -> dict[str, Any]:
        config = dict(sent)
        if "thinking" in config:
            config["thinking_config"] = config.pop("thinking")
        if "response_format" in config:
            config["response_json_schema"] = config.pop("response_format")
            config["response_mime_type"] = "application/json"
        if system := messages(request)[0]:
            config["system_instruction"] = system
        return config

    async def _send(self, request: Request, sent: Mapping[str, Any]) -> tuple[bytes, str]:
        roles = {"assistant": "model"}
        raw = await self._client.aio.models.generate_content(
            model=self._model,
            contents=[
                {"role": roles.get(role, role), "parts": [{"text": text}]}
                for role, text in messages(request)[1]
            ],
            config={**self._config(request, sent), "should_return_http_response": True},
        )
        response = raw.sdk_http_response
        body, headers = response.body or "", response.headers or {}
        return body.encode("utf-8", "surrogatepass"), headers.get("content-type", "")

    def failure(self, error: Exception) -> Failure | None:
        import httpx2
        from google.genai.errors import APIError

        if isinstance(error, APIError):
            text, status = json.dumps(error.details, default=str), error.code
            if "API_KEY_INVALID" in text:  # which the API calls a bad request
                status = 401
            found = re.search(r'"retryDelay": "([0-9.]+)s"', text)
            wait = bounded_wait(float(found[1])) if found else retry_after(error.response.headers)
            return read_failure(str(error.message or text), status, error.details, wait)
        if isinstance(error, httpx2.TimeoutException):
            return Failure("", late=True)
        if isinstance(error, httpx2.RequestError):
            return Failure(reason(error.__cause__ or error))
        if isinstance(error, UnicodeError | RecursionError):
            return Failure("its answer cannot be read")
        return None

    def _said(self, data: Any, request: Request) -> Said:
        feedback = table(data.get("promptFeedback"))
        blocked = feedback.get("blockReason")
        candidate = {} if blocked else data["candidates"][0]
        reason = blocked or candidate["finishReason"]
        parts = [p for p in table(candidate.get("content")).get("parts", []) if "text" in p]
        text = "".join(part["text"] for part in parts if not part.get("thought"))
        usage = table(data.get("usageMetadata"))
        thought = count(usage.get("thoughtsTokenCount"))
        details = {
            "endpoint": "generateContent",
            "served_model": data.get("modelVersion"),
            "finish_reason": reason,
            "refusal": "prompt" if blocked else "",
        }
        ended = "refused" if blocked else ending(reason) or ("stop" if text else "error")
        return Said(
            text,
            ended,
            count(usage.get("promptTokenCount")),
            count(usage.get("candidatesTokenCount")) + thought,
            thought,
            details,
            "\n".join(part["text"] for part in parts if part.get("thought")),
        )
