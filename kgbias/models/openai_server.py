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
from kgbias.models.base import Abilities, Completion, PromptForm, Notify, Request
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
    ending,
    error_message,
    open_client,
    parsed,
    read_failure,
    table,
    without_system,
)

# How models are asked for answers without thoughts: those with templates (vLLM, SGLang, llama.cpp),
# OpenAI's and Ollama's, DashScope's, DeepSeek's, Kimi's and GLM's, and Ollama's of old.
_WITHOUT_THOUGHTS: Mapping[str, Any] = {
    "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
    "reasoning_effort": "",
    "enable_thinking": False,
    "thinking": {"type": "disabled"},
    "think": False,
}
# Many servers know them, the official client does not.
_EXTRA = (
    "top_k", "min_p", "chat_template_kwargs", "enable_thinking", "thinking", "think", "stream",
)  # fmt: skip
# If a server refuses top_p together with a temperature, the temperature stays.
_OPTIONAL = {
    "chat_template_kwargs": r"chat_template_kwargs|chat template",
    "enable_thinking": "enable_thinking",
    "reasoning_effort": r"reasoning[._ ]?effort|think value|reasoning is mandatory"
    r"|(?:n.t|not) support (?:thinking|reasoning)",
    "thinking": r"\bthinking\b",
    "think": r"\bthink\b",
    **{name: rf"\b{name}\b" for name in ("top_k", "min_p", "top_p", "temperature", "seed")},
    "stop": r"\bstop\b",
    "response_format": r"response_format|json_schema|structured",
}
_LEAST_EFFORTS = ("none", "minimal", "low")
_NO_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s? (?:is |are )?(?:not|un)"
    r"|(?:not|n't|doesn.t) support[^.]{0,40}(?:system|developer)"
    r"|roles? must (?:alternate|be (?:in|one of)[^.]{0,20}user)"
    r"|(?:invalid|unknown|unsupported|unexpected) (?:message )?role[^.]{0,20}system"
    r"|only (?:\W?user\W? and \W?assistant|\W?user\W?)[^.]{0,30}(?:role|allowed|supported)"
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
_STREAMS_ONLY = re.compile(
    r"only supports?\b[^.]{0,20}\bstream|stream(?:ing)? (?:is required|must|only)"
    r"|(?:enable|set)\b[^.]{0,20}\bstream|non-?stream(?:ing)?\b",
    re.IGNORECASE,
)
_THINKING_OFF = re.compile(
    r"(?:enable_thinking|enable thinking|thinking)\b[^.]{0,60}"
    r"(?:must be (?:set to )?false|stream)",
    re.IGNORECASE,
)


def replies(answer: Completion) -> bool:
    """Whether this is a reply, and not the continuation of a text in the middle of a sentence: it
    was thought about, or begins like a sentence of its own."""
    if answer.details.get("marks") or answer.details.get("as_message"):
        return True
    if _DRESSED.match(answer.text):
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
    optional: ClassVar[Mapping[str, str]] = _OPTIONAL
    switches: ClassVar[Mapping[str, Any]] = _WITHOUT_THOUGHTS

    def __init__(
        self, model: str, url: str, concurrency: int, timeout: float, notify: Notify
    ) -> None:
        super().__init__(model, url, concurrency, timeout, notify)
        self._refused_efforts: set[str] = set()
        self._takes_system = True
        self._streams = False
        self._says_why = False  # gives a reason for the end of an answer

    def find_form(self, first: PromptForm = "completion") -> tuple[PromptForm, str]:
        """The form in which to ask this model, by trial: `first`, unless only the other is
        answered. Text that is not continued there, but answered through a chat template, as
        Ollama does, is no completion.

        Raises ModelError, with the reasons, if neither form is answered."""
        messages = [Request(_GREETING, 0, 0.0, _TRIAL_TOKENS)]
        chatted, no_chat = self._tried(messages) if first == "chat" else ([], "")
        if chatted:
            return "chat", ""
        texts = [Request(text, 0, 0.0, _TRIAL_TOKENS) for text in _CUT_OFF]
        completed, no_text = self._tried(texts)
        continued = bool(completed) and sum(map(replies, completed)) <= len(completed) / 2
        if continued and first == "completion":
            return "completion", ""
        if first == "completion":
            chatted, no_chat = self._tried(messages)
        if chatted:
            refused = f" ({no_text.partition('; is ')[0]})"  # without advice on what works
            why = ", but answered through its chat template" if completed else refused
            asked = f"{self.info.title} is asked in messages"
            return "chat", f"{asked}: text is not continued there{why}"
        if continued:
            return "completion", f"{self.info.title} is asked to continue text: {no_chat}"
        if completed:
            return "completion", ""
        if no_text == no_chat:
            raise ModelError(no_text)
        raise ModelError(f"neither form is answered: completion: {no_text}; chat: {no_chat}")

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
            return [], str(error)
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
        if self._streams:
            parameters["stream"] = True
        # A stop string would end a thought: what a model that thinks says is cut off here.
        if request.stop and not self._thinks:
            parameters["stop"] = list(request.stop[:4])
        if self._thinks and request.form == "chat":
            parameters.update(self.switches, reasoning_effort=self._effort)
            if not self._effort:
                del parameters["reasoning_effort"]
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
        if not self._thinks and _THINKING_OFF.search(why):
            self._thinks = True  # to be asked not to
            return True
        if not self._streams and _STREAMS_ONLY.search(why):
            self._streams = True
            return True
        effort = sent.get("reasoning_effort")
        if effort and re.search(rf"\b{effort}\b", why) and re.search("reason|think|effort", why):
            self._refused_efforts.add(effort)
            if self._effort:
                return True
        renamed = "max_completion_tokens"
        if self._limit_name != renamed and renamed in why and "too large" not in why:
            self._limit_name = renamed
            return True
        return super().adapt(why, sent)

    def _said(self, data: Any, request: Request) -> Said:
        choice = data["choices"][0]
        reason, refused, thoughts = choice.get("finish_reason"), None, ""
        # Some gateways answer either request in the other's shape.
        told = choice.get("message") or choice.get("delta")
        as_message = isinstance(told, dict) and not isinstance(choice.get("text"), str)
        if not as_message:
            text = choice["text"]
        else:
            refused = told.get("refusal")
            text, thoughts = message_parts({**choice, **told})
            text = text or (refused if isinstance(refused, str) else "")
        usage = table(data.get("usage"))
        read = count(usage.get("prompt_tokens", usage.get("input_tokens")))
        written = count(usage.get("completion_tokens", usage.get("output_tokens")))
        parts = ("completion_tokens_details", "output_tokens_details")
        counted = (table(usage.get(part)) for part in parts)
        reasoned = [t.get("reasoning_tokens") for t in (usage, *counted)]
        details = {
            "endpoint": "completions" if request.form == "completion" else "chat",
            "served_model": data.get("model"),
            "fingerprint": data.get("system_fingerprint"),
            "finish_reason": reason,
            "as_message": "yes" if as_message and request.form == "completion" else "",
            "error": error_message(choice),
        }
        return Said(
            text,
            "refused" if refused else self._ended(reason, text, written, request),
            read,
            written,
            max(map(count, reasoned)),
            details,
            thoughts,
        )

    def _ended(self, reason: Any, text: str, written: int, request: Request) -> Ended:
        """How an answer ended, in our words. Where a server does not say, one that is as long as it
        may be was cut off. Where it counts no tokens either, one of about that length that stops in
        the middle of a sentence was; where it said so of other answers, any that stops there."""
        if (ended := ending(reason)) is not None:
            self._says_why = True
            return ended
        most = request.max_tokens + self._room
        at_limit = written >= most
        if not text.rstrip().endswith(_FULL_STOPS):
            at_limit |= self._says_why
            if not written:
                at_limit |= about_tokens(text) >= _NEAR_THE_LIMIT * most
        return "length" if at_limit else "stop"


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
            why = error_message(result["error"]) or str(result["error"]["code"])
            return Failure(why, dropped=True)
        response = result["response"]
        if response["status_code"] == 200:
            return response["body"]
        why = error_message(response["body"]) or "no reason given"
        return read_failure(why, count(response["status_code"]), response["body"])
