"""Models behind an OpenAI-compatible server, asked many at a time.

What a server honours is checked, never assumed: stop strings are cut here too, seeds are sent but
not trusted, and a parameter that a server refuses by name is left out from then on. What the server
says about itself is kept with each answer. The key comes from OPENAI_API_KEY and goes nowhere else.
"""

import asyncio
import json
import random
import time
from collections.abc import Collection, Generator, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from kgbias.errors import ModelError, UsageError
from kgbias.models.background import Background, Gate, Stream
from kgbias.models.base import Completion, ModelInfo, Notify, Request, Settings
from kgbias.models.spec import Spec
from kgbias.models.wire import (
    message,
    open_client,
    parsed,
    read_secrets,
    server_url,
    without_password,
)

MAX_TEXT = 65_536  # characters kept of one answer
_TRIES = 6
_LONGEST_WAIT = 120.0
_RETRIED = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_BUSY = {429, 503, 529}
_FATAL = {401, 403, 404}
_EXTRA = ("top_k", "min_p")  # many servers know them, the official client does not
# In this order: where a server refuses top_p beside a temperature, the temperature stays.
_OPTIONAL = (*_EXTRA, "top_p", "temperature", "seed", "stop", "response_format")


def open_openai(
    spec: Spec,
    *,
    revision: str | None = None,
    notify: Notify,
    base_url: str | None = None,
    concurrency: int = 16,
    timeout: float = 120.0,
) -> "OpenAIModel":
    """The model of that id at `base_url` (default OPENAI_BASE_URL, else OpenAI's own)."""
    if revision:
        raise UsageError(f"{spec} is on a server, which does not say its model's revision")
    if concurrency < 1:
        raise UsageError("concurrency must be positive")
    return OpenAIModel(spec.name, server_url(base_url), concurrency, timeout, notify)


class OpenAIModel:
    """A `Completer` over /v1/completions (completion form) and /v1/chat/completions (chat form)."""

    def __init__(
        self, model: str, url: str, concurrency: int, timeout: float, notify: Notify
    ) -> None:
        shown = without_password(url)
        self.info = ModelInfo(f"openai:{model}")
        self.settings: Settings = (("base_url", shown),)
        self._model = model
        self._url = url
        self._shown_url = shown
        self._secrets = read_secrets(url)
        self._concurrency = concurrency
        self._gate = Gate(concurrency, notify)
        self._background = Background()
        self._client: Any = None
        self._timeout = timeout
        self._notify = notify
        self._left_out: set[str] = set()  # parameters that this server refuses
        self._limit_name = "max_tokens"
        self._answered = False
        self._takes_format = False

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        if self._client is None:
            self._client = open_client(self._url, self._timeout, retries=0)
        yield from self._background.run(lambda done: self._ask_all(requests, done)).batches()

    def close(self) -> None:
        self._background.close(self._client.close() if self._client is not None else None)
        self._client = None

    async def _ask_all(
        self, requests: Sequence[Request], done: Stream[tuple[int, Completion]]
    ) -> None:
        pending = iter(range(len(requests)))

        async def work() -> None:
            for index in pending:  # each worker takes the next request that no other has
                done.put((index, await self._ask(requests[index])))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._concurrency, len(requests))):
                group.create_task(work())

    async def _ask(self, request: Request) -> Completion:
        import openai

        began = time.perf_counter()
        why = ""
        for attempt in range(_TRIES):
            wait = min(30.0, 0.5 * 2**attempt) * random.uniform(0.5, 1.0)
            try:
                async with self._gate:
                    sent = self._parameters(request)
                    raw = await self._send(request, sent)
                completion = self._read(raw.content, request, time.perf_counter() - began, sent)
                if completion.finish != "error":
                    self._answered = True
                    self._takes_format |= "response_format" in sent
                    self._gate.grow()
                    return completion
                why = completion.error
                if "html" in raw.headers.get("content-type", "") and not self._answered:
                    raise ModelError(f"{self._shown_url} is not an API: {why}")
            except openai.APIStatusError as error:
                code = error.status_code
                why = f"the server answered {code}: {self._clean(message(error))}"
                if code in (400, 422, 501) and self._adapt(why, sent):
                    continue
                if code in _FATAL and not self._answered:
                    raise self._unusable(code, why) from None
                if code not in _RETRIED:
                    break
                if code in _BUSY:
                    wait = max(wait, _retry_after(error.response.headers))
                    self._gate.shrink(wait)
            except openai.APITimeoutError:
                why = f"no answer within {self._timeout:.0f} s"
            except openai.APIConnectionError as error:
                why = (
                    f"cannot reach {self._shown_url}: {self._clean(str(error.__cause__ or error))}"
                )
                if not self._answered and attempt + 1 == _TRIES // 2:
                    raise ModelError(why) from None
            if attempt + 1 < _TRIES:
                await asyncio.sleep(wait)
        return Completion("", "error", seconds=time.perf_counter() - began, error=why)

    def _parameters(self, request: Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": self._model,
            "temperature": request.temperature,
            "seed": request.seed % (1 << 31),  # some servers take 32 bits only
            self._limit_name if request.form == "chat" else "max_tokens": request.max_tokens,
            **request.truncation.as_dict(),
        }
        if request.stop:
            parameters["stop"] = list(request.stop[:4])
        if request.schema and "response_format" not in self._left_out:
            parameters.pop("stop", None)  # JSON has line breaks of its own
            schema = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {k: v for k, v in parameters.items() if k not in self._left_out}

    async def _send(self, request: Request, sent: dict[str, Any]) -> Any:
        parameters = {name: value for name, value in sent.items() if name not in _EXTRA}
        if extra := {name: sent[name] for name in _EXTRA if name in sent}:
            parameters["extra_body"] = extra
        if isinstance(request.prompt, str):
            return await self._client.completions.with_raw_response.create(
                prompt=request.prompt, **parameters
            )
        messages = [{"role": role, "content": text} for role, text in request.prompt]
        return await self._client.chat.completions.with_raw_response.create(
            messages=messages, **parameters
        )

    def _adapt(self, why: str, sent: dict[str, Any]) -> bool:
        """Learn from a refusal that names a parameter that was sent; whether asking again makes
        sense. A request that was under way when another one taught us this learns nothing new."""
        if "max_tokens" in sent and "max_completion_tokens" in why:
            self._limit_name = "max_completion_tokens"
            return True
        named = next((name for name in _OPTIONAL if name in why and name in sent), None)
        if not named and "response_format" in sent and not self._takes_format:
            named = "response_format"  # refused in other words, before it was ever taken
        if named and named not in self._left_out:
            self._left_out.add(named)
            self._notify(f"{self._shown_url} does not take {named}: asking without it")
        return bool(named)

    def _read(
        self, body: bytes, request: Request, seconds: float, sent: Collection[str] = ()
    ) -> Completion:
        """The completion in a response's body, whatever the body is. `sent` are the parameters
        of the request."""
        data = parsed(body)
        try:
            choice = data["choices"][0]
            if request.form == "completion":
                text = choice["text"]
            else:
                message = choice["message"]
                text = message.get("content") or message.get("refusal") or ""
            if not isinstance(text, str):
                raise TypeError
        except (LookupError, TypeError, AttributeError):
            start = self._secrets.line(body[:4096].decode("utf-8", "replace"), 80)
            why = f"the server's answer is not a completion: {start!r}"
            return Completion("", "error", seconds=seconds, error=why)
        text = self._secrets.clean(text)
        reason = choice.get("finish_reason")
        stops = () if "response_format" in sent else request.stop
        cuts = [text.index(stop) for stop in stops if stop in text]
        usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
        details: dict[str, Any] = {
            "endpoint": "completions" if request.form == "completion" else "chat",
            "served_model": self._short(data.get("model")),
            "fingerprint": self._short(data.get("system_fingerprint")),
            "finish_reason": self._short(reason),
            "stop_in_text": bool(cuts),
            "response_format": "json_schema" if "response_format" in sent else "",
            "left_out": sorted(self._left_out),
        }
        if len(text) > MAX_TEXT:
            details["truncated"] = len(text)
        text = text[: min([*cuts, MAX_TEXT])]
        return Completion(
            text,
            "length" if reason == "length" and not cuts else "stop",
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
            seconds,
            details={k: v for k, v in details.items() if v not in ("", [], False)},
        )

    def _unusable(self, code: int, why: str) -> ModelError:
        what_to_do = {
            401: "set OPENAI_API_KEY",
            403: "this key may not use the model",
            404: f"is {self._model!r} a model of {self._shown_url}? (spec, base_url)",
        }
        return ModelError(f"{why}; {what_to_do[code]}")

    def _clean(self, text: str) -> str:
        """An error text without secrets, on one line, and not longer than a line."""
        return self._secrets.line(text.replace(self._url, self._shown_url))

    def _short(self, value: Any) -> str:
        return self._secrets.clean(value)[:100] if isinstance(value, str) else ""


def _retry_after(headers: Any) -> float:
    """Seconds that a Retry-After header asks for, as a number or a date, within bounds; else 0."""
    value = headers.get("retry-after") or ""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return min(max(0.0, seconds), _LONGEST_WAIT) if seconds == seconds else 0.0


def _count(value: Any) -> int:
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    return int(value) if sound else 0
