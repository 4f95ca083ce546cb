"""Models behind an OpenAI-compatible server. The key comes from OPENAI_API_KEY and goes nowhere
else."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kgbias.models.base import Abilities, Request
from kgbias.models.said import Failure, Said, client_failure, count, table
from kgbias.models.server import ServerModel
from kgbias.models.wire import OPENAI, open_client

if TYPE_CHECKING:
    from kgbias.models.openai_batches import OpenAIBatches

_EXTRA = ("top_k", "min_p")  # many servers know them, the official client does not
# In this order: where a server refuses top_p beside a temperature, the temperature stays.
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
        """Requests left with the server."""
        from kgbias.models.openai_batches import OpenAIBatches

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
