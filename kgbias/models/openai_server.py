"""Models behind an OpenAI-compatible server, asked at once or in batches. The key comes from
OPENAI_API_KEY and goes nowhere else.

A batch at OpenAI and Azure is a file of requests, and files of results. It carries its name in its
metadata, by which it is found again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from kgbias.errors import ModelError
from kgbias.models.base import Abilities, Completion, Form, Notify, Request
from kgbias.models.batches import Batches, Listed, State, field
from kgbias.models.budget import about_tokens
from kgbias.models.server import ServerModel
from kgbias.models.thoughts import message_parts
from kgbias.models.wire import (
    OPENAI,
    Ended,
    Failure,
    Said,
    client_failure,
    count,
    error_message,
    open_client,
    parsed,
    table,
    without_system,
)

# Many servers know them, the official client does not.
_EXTRA = ("top_k", "min_p", "chat_template_kwargs")
_OPTIONAL = (
    "chat_template_kwargs", "reasoning_effort", "top_k", "min_p",
    # If a server refuses top_p together with a temperature, the temperature stays.
    "top_p", "temperature", "seed", "stop", "response_format",
)  # fmt: skip
# How servers that have templates (vLLM, SGLang, llama.cpp) and those that do not (OpenAI, Ollama)
# are asked for answers without thoughts.
_WITHOUT_THOUGHTS = {"enable_thinking": False, "thinking": False}
_LEAST_EFFORTS = ("none", "minimal", "low")
# Reasons for which an answer ends, by what they mean, in lower case; any other is a full stop.
_CUT = frozenset(
    "length max_tokens max_output_tokens max_completion_tokens model_length token_limit"
    " model_context_window_exceeded context_length_exceeded".split()
)
_WITHHELD = frozenset(
    "content_filter content_filtered safety refusal recitation blocklist prohibited_content"
    " guardrail_intervened".split()
)
_NO_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s? (?:is |are )?(?:not|un)"
    r"|(?:not|n't|doesn.t) support[^.]{0,40}(?:system|developer)"
    r"|roles? must alternate|(?:invalid|unknown|unsupported) role[^.]{0,20}system"
    r"|developer instruction is not",
    re.IGNORECASE,
)
_NO_FORM_HELPS = frozenset((401, 402, 403, 429))
# Texts that stop in the middle of a sentence, and a message: to see what a server does with them.
_CUT_OFF = (
    "He opened the door and saw that the room was full of",
    "In the morning she drank a cup of tea and then went to the",
    "The old bridge over the river was closed because the",
)
_DRESSED = re.compile(r"\A\s*(?:```|\{|#{1,6} |<\w+>|\\boxed|\*\*\w)")
_GREETING = (("user", "Say hello."),)
_TRIAL_TOKENS = 16
_FULL_STOPS = tuple(".!?…。！？।؟\"'”’)]}`")
_NEAR_THE_LIMIT = 0.6  # of the tokens allowed, where they are estimated by length
_BROKEN_OFF = frozenset("error failed abort aborted network_error cancelled canceled".split())


def replies(answer: Completion) -> bool:
    """Whether this is a reply, and not the continuation of a text in the middle of a sentence: it
    was thought about, or begins like a sentence of its own."""
    if answer.details.get("marks") or _DRESSED.match(answer.text):
        return True
    bare = answer.text.lstrip("\"“'*#")
    return bare[:1].isupper() and len(bare.split()) > 2


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

    def __init__(
        self, model: str, url: str, concurrency: int, timeout: float, notify: Notify
    ) -> None:
        super().__init__(model, url, concurrency, timeout, notify)
        self._refused_efforts: set[str] = set()
        self._takes_system = True

    def find_form(self) -> tuple[Form, str]:
        """The form in which to ask this model, by trial: completion if text is continued, chat if
        there is no such endpoint, or if it answers through a chat template, as Ollama's does.

        Raises ModelError, with the reasons, if neither form is answered."""
        texts = [Request(text, 0, 0.0, _TRIAL_TOKENS) for text in _CUT_OFF]
        completed, refused = self._tried(texts)
        if completed and sum(map(replies, completed)) <= len(completed) / 2:
            return "completion", ""
        why = (
            "text is not continued there, but answered through its chat template"
            if completed
            else f"text is not continued there ({refused})"
        )
        chatted, refused_too = self._tried([Request(_GREETING, 0, 0.0, _TRIAL_TOKENS)])
        if chatted:
            return "chat", f"{self.info.title} is asked in messages: {why}"
        if completed:
            return "completion", ""
        if refused == refused_too:
            raise ModelError(refused)
        raise ModelError(f"neither form is answered: completion: {refused}; chat: {refused_too}")

    def _tried(self, requests: Sequence[Request]) -> tuple[list[Completion], str]:
        """The answers, or why there are none. Raises ModelError where no other form would be
        answered either: without a key, a quota or money."""
        found = []
        try:
            for batch in self.complete(requests):
                for _, answer in batch:
                    if answer.finish == "error":
                        return [], answer.error
                    found.append(answer)
        except ModelError as error:
            if self._last_code in _NO_FORM_HELPS:
                raise
            return [], str(error).partition("; is ")[0]
        return found, ""

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
        # A stop string would end a thought: what a model that thinks says is cut off here.
        if request.stop and not self._thinks:
            parameters["stop"] = list(request.stop[:4])
        if self._thinks and request.form == "chat":
            parameters["chat_template_kwargs"] = _WITHOUT_THOUGHTS
            parameters["reasoning_effort"] = self._effort
        if request.schema and "response_format" not in self._left_out:
            parameters.pop("stop", None)  # JSON has line breaks of its own
            schema = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
        return parameters

    def _body(self, request: Request, sent: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(request.prompt, str):
            return {"model": self._model, "prompt": request.prompt, **sent}
        said = request.prompt if self._takes_system else without_system(request)
        messages = [{"role": role, "content": text} for role, text in said]
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

        return client_failure(openai, error)

    @property
    def _effort(self) -> str:
        """The least effort in thinking that the server was not heard to refuse."""
        return next((e for e in _LEAST_EFFORTS if e not in self._refused_efforts), "")

    def adapt(self, why: str, sent: Mapping[str, Any]) -> bool:
        if self._takes_system and _NO_SYSTEM.search(why):
            self._takes_system = False
            self._notify(f"{self._shown_url} takes no system role: the user says it instead")
            return True
        effort = sent.get("reasoning_effort")
        if effort and effort in why and "reasoning" in why:
            self._refused_efforts.add(effort)
            if self._effort:
                return True
        if "max_tokens" in sent and "max_completion_tokens" in why:
            self._limit_name = "max_completion_tokens"
            return True
        return super().adapt(why, sent)

    def _said(self, data: Any, request: Request) -> Said:
        choice = data["choices"][0]
        reason, refused, thoughts = choice.get("finish_reason"), None, ""
        if request.form == "completion":
            text = choice["text"]
        else:
            refused = choice["message"].get("refusal")
            text, thoughts = message_parts(choice["message"])
            text = text or refused or ""
        usage = table(data.get("usage"))
        written = count(usage.get("completion_tokens"))
        details = {
            "endpoint": "completions" if request.form == "completion" else "chat",
            "served_model": data.get("model"),
            "fingerprint": data.get("system_fingerprint"),
            "finish_reason": reason,
            "error": error_message(choice),
        }
        return Said(
            text,
            "refused" if refused else self._ended(reason, text, written, request),
            count(usage.get("prompt_tokens")),
            written,
            count(table(usage.get("completion_tokens_details")).get("reasoning_tokens")),
            details,
            thoughts,
        )

    def _ended(self, reason: Any, text: str, written: int, request: Request) -> Ended:
        """How an answer ended, in our words. Where a server does not say, one that is as long as it
        may be was cut off; where it counts no tokens either, one of about that length that stops in
        the middle of a sentence."""
        why = str(reason or "").lower()
        if why in _WITHHELD:
            return "refused"
        if why in _BROKEN_OFF:
            return "error"
        most = request.max_tokens + self._room
        at_limit = written >= most
        if not written and not text.rstrip().endswith(_FULL_STOPS):
            at_limit = about_tokens(text) >= _NEAR_THE_LIMIT * most
        at_limit = at_limit and not why
        return "length" if why in _CUT or at_limit else "stop"


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
