"""Models behind an OpenAI-compatible server, asked at once or in batches. The key comes from
OPENAI_API_KEY and goes nowhere else.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from kgbias.errors import ModelError
from kgbias.models.base import Abilities, Completion, FormChoice, Notify, PromptForm, Request
from kgbias.models.batch_providers import open_batches
from kgbias.models.budget import estimate_tokens
from kgbias.models.http import (
    OPENAI_API,
    EndingKind,
    Failure,
    ServerReply,
    as_object,
    classify_ending,
    client_failure,
    error_message,
    merge_system,
    open_client,
    token_count,
)
from kgbias.models.server import RawResponse, ServerModel
from kgbias.models.thoughts import split_message

# How models are asked for answers without thoughts: those with templates (vLLM, SGLang, llama.cpp),
# OpenAI's and Ollama's, DashScope's, DeepSeek's, Kimi's and GLM's, and Ollama's of old.
_NO_THINKING_PARAMETERS: Mapping[str, Any] = {
    "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
    # The least that the server takes is put in for each request (`_least_effort`).
    "reasoning_effort": "",
    "enable_thinking": False,
    "thinking": {"type": "disabled"},
    "think": False,
}
# Many servers know them, the official client does not.
_EXTRA_PARAMETERS = (
    "top_k",
    "min_p",
    "chat_template_kwargs",
    "enable_thinking",
    "thinking",
    "think",
    "stream",
)
# If a server refuses top_p together with a temperature, the temperature stays.
_OPTIONAL_PARAMETERS = {
    "chat_template_kwargs": r"chat_template_kwargs|chat template",
    "enable_thinking": "enable_thinking",
    "reasoning_effort": r"reasoning[._ ]?effort|think value|reasoning is mandatory"
    r"|(?:n.t|not) support (?:thinking|reasoning)",
    "thinking": r"\bthinking\b",
    "think": r"\bthink\b",
    **{name: rf"\b{name.replace('_', '_?')}\b" for name in ("top_k", "min_p", "top_p")},
    "temperature": r"\btemperature\b",
    "seed": r"\bseed\b",
    "stop": r"\bstop\b",
    "response_format": r"response_format|json_schema|structured",
}
_LOW_EFFORTS = ("none", "minimal", "low")
_NO_SYSTEM_PATTERN = re.compile(
    r"system\W{0,3}(?:role|message|prompt|instruction)s? (?:is |are )?(?:not|un)"
    r"|(?:not|n't|doesn.t) support[^.]{0,40}(?:system|developer)"
    r"|roles? must (?:alternate|be (?:in|one of)[^.]{0,20}user)"
    r"|(?:invalid|unknown|unsupported|unexpected) (?:message )?(?:role|value)[^.]{0,20}system"
    r"|role\W{1,3}system\W{1,3}(?:is )?(?:not|un|invalid)"
    r"|only (?:\W?user\W?(?: and|,) \W?assistant|\W?user\W?)[^.]{0,30}(?:role|allowed|supported)"
    r"|should be \W?user\W? (?:or|and) \W?assistant|valid role\W{1,3}user"
    r"|first message must be (?:from |of )?(?:the )?\W?user|(?:start|begin) with (?:an? )?\W?user"
    r"|input tag \W?system|must not (?:contain|have|include)[^.]{0,20}\bsystem"
    r"|\bsystem\W{1,3}is (?:not|n.t) (?:an? )?(?:valid|supported|allowed|permitted|one of)"
    r"|developer instruction is not",
    re.IGNORECASE,
)
_FORM_INDEPENDENT_CODES = frozenset((401, 402, 429))  # gateways forbid what they do not know
# Texts that stop in the middle of a sentence, and a message: to see what a server does with them.
_TRIAL_TEXTS = (
    "He opened the door and saw that the room was full of",
    "In the morning she drank a cup of tea and then went to the",
    "The old bridge over the river was closed because the",
)
_FORMATTED_PATTERN = re.compile(r"\A\s*(?:```|\{|#{1,6} |<\w+>|\\boxed|\*\*\w)")
_TRIAL_MESSAGE = (("user", "Say hello."),)
_TRIAL_TOKENS = 16
_FULL_STOPS = tuple(".!?…。！？।؟\"'”’)]}`")
_MIN_LIMIT_SHARE = 0.6  # of the tokens allowed, where they are estimated by length
_STREAMS_ONLY_PATTERN = re.compile(
    r"only\b[^.]{0,20}\bstream|\bstream\w*\b[^.]{0,30}\b(?:required|must|only)"
    r"|(?:enable|set|requires?)\b[^.]{0,20}\bstream|non-?stream(?:ing)?\b|\bstream\s?[=:]\s?false",
    re.IGNORECASE,
)
_THINKING_OFF_PATTERN = re.compile(
    r"(?:enable_thinking|enable thinking|thinking)\b[^.]{0,60}"
    r"(?:must be (?:set to )?false|stream)",
    re.IGNORECASE,
)


def is_chat_reply(answer: Completion) -> bool:
    """Whether this is a reply, and not the continuation of a text in the middle of a sentence: it
    was thought about, or begins like a sentence of its own."""
    if answer.details.get("marks") or answer.details.get("as_message"):
        return True
    if _FORMATTED_PATTERN.match(answer.text):
        return True
    unmarked_text = answer.text.lstrip("\"“'*#")
    return unmarked_text[:1].isupper() and len(unmarked_text.split()) > 2


class _TrialAnswers(NamedTuple):
    """The answers to a few requests, or why there are none."""

    answers: list[Completion]
    error: str


class OpenAIModel(ServerModel):
    """A `Completer` over /v1/completions (completion form) and /v1/chat/completions (chat form)."""

    kind = "openai"
    api = OPENAI_API
    abilities = Abilities(
        structured="depends",
        seed="depends",
        batch="depends",
    )
    optional_parameters: ClassVar[Mapping[str, str]] = _OPTIONAL_PARAMETERS
    no_thinking_parameters: ClassVar[Mapping[str, Any]] = _NO_THINKING_PARAMETERS

    def __init__(
        self, model: str, url: str, concurrency: int, timeout: float, notify: Notify
    ) -> None:
        super().__init__(model, url, concurrency, timeout, notify)
        self._refused_efforts: set[str] = set()
        self._takes_system = True
        self._must_stream = False
        self._says_why = False  # gives a reason for the end of an answer

    def find_form(self, preferred_form: PromptForm = "completion") -> FormChoice:
        """The form in which to ask this model, by trial: `preferred_form`, unless only the other is
        answered. Text that is not continued there, but answered through a chat template, as
        Ollama does, is no completion.

        Raises ModelError, with the reasons, if neither form is answered."""
        messages = [Request(_TRIAL_MESSAGE, 0, 0.0, _TRIAL_TOKENS)]
        chat_answers, chat_error = (
            self._try_requests(messages) if preferred_form == "chat" else ([], "")
        )
        if chat_answers:
            return FormChoice("chat", "")
        texts = [Request(text, 0, 0.0, _TRIAL_TOKENS) for text in _TRIAL_TEXTS]
        text_answers, text_error = self._try_requests(texts)
        if not any(answer.text.strip() for answer in text_answers):
            text_answers, text_error = [], text_error or "an answer without text"
        continues_text = (
            bool(text_answers) and sum(map(is_chat_reply, text_answers)) <= len(text_answers) / 2
        )
        if continues_text and preferred_form == "completion":
            return FormChoice("completion", "")
        if preferred_form == "completion":
            chat_answers, chat_error = self._try_requests(messages)
        if chat_answers:
            refusal_text = f" ({text_error.partition('; is ')[0]})"  # without advice on what works
            reason = ", but answered through its chat template" if text_answers else refusal_text
            remark = f"{self.info.title} is asked in messages"
            return FormChoice("chat", f"{remark}: text is not continued there{reason}")
        if continues_text:
            return FormChoice(
                "completion", f"{self.info.title} is asked to continue text: {chat_error}"
            )
        if text_answers:
            return FormChoice("completion", "")
        if text_error == chat_error:
            raise ModelError(text_error)
        raise ModelError(f"neither form is answered: completion: {text_error}; chat: {chat_error}")

    def _try_requests(self, requests: Sequence[Request]) -> _TrialAnswers:
        """The answers, or why there are none. Raises ModelError where no other form would be
        answered either: without a key, a quota or money."""
        answers = []
        try:
            for batch in self.complete(requests):
                for _, answer in batch:
                    if answer.finish == "error":
                        return _TrialAnswers([], answer.error)
                    answers.append(answer)
        except ModelError as error:
            if self._last_code in _FORM_INDEPENDENT_CODES:
                raise
            return _TrialAnswers([], str(error))
        return _TrialAnswers(answers, "")

    def batches(self) -> Any:
        """Batches at the server."""
        return open_batches("openai", self)

    def _open_client(self) -> Any:
        return open_client(self._url, self._timeout, retries=0)

    def _request_parameters(self, request: Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed % (1 << 31),  # some servers take 32 bits only
            self._limit_name if request.form == "chat" else "max_tokens": (
                request.max_tokens + self._thinking_tokens
            ),
            **request.truncation.as_dict(),
        }
        if self._must_stream:
            parameters["stream"] = True
        # A stop string would end a thought: what a model that thinks says is cut off here.
        if request.stop and not self._is_thinking:
            # OpenAI takes no more than four; the others are cut off here.
            parameters["stop"] = list(request.stop[:4])
        if self._is_thinking and request.form == "chat":
            parameters.update(self.no_thinking_parameters, reasoning_effort=self._least_effort)
            if not self._least_effort:
                del parameters["reasoning_effort"]
        if request.schema and "response_format" not in self._refused_parameters:
            parameters.pop("stop", None)  # JSON has line breaks of its own
            schema = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
        return parameters

    def _body(self, request: Request, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(request.prompt, str):
            return {"model": self._model, "prompt": request.prompt, **parameters}
        chat_messages = request.prompt if self._takes_system else merge_system(request)
        messages = [{"role": role, "content": text} for role, text in chat_messages]
        return {"model": self._model, "messages": messages, **parameters}

    async def _send(self, request: Request, parameters: Mapping[str, Any]) -> RawResponse:
        body = self._body(request, parameters)
        if extra := {name: body.pop(name) for name in _EXTRA_PARAMETERS if name in body}:
            body["extra_body"] = extra
        chat = request.form == "chat"
        api = self._client.chat.completions if chat else self._client.completions
        raw = await api.with_raw_response.create(**body)
        return RawResponse(raw.content, raw.headers.get("content-type", ""))

    def failure(self, error: Exception) -> Failure | None:
        import openai

        return client_failure(openai, error)

    @property
    def _least_effort(self) -> str:
        """The least effort in thinking that the server was not heard to refuse."""
        return next((e for e in _LOW_EFFORTS if e not in self._refused_efforts), "")

    def adapt(self, refusal: str, parameters: Mapping[str, Any]) -> bool:
        if self._takes_system and _NO_SYSTEM_PATTERN.search(refusal):
            self._takes_system = False
            self._notify(f"{self._shown_url} takes no system role: the user says it instead")
            return True
        if not self._is_thinking and _THINKING_OFF_PATTERN.search(refusal):
            self._is_thinking = True  # to be asked not to
            return True
        if not self._must_stream and _STREAMS_ONLY_PATTERN.search(refusal):
            self._must_stream = True
            return True
        effort = parameters.get("reasoning_effort")
        if (
            effort
            and re.search(rf"\b{effort}\b", refusal)
            and re.search("reason|think|effort", refusal)
        ):
            self._refused_efforts.add(effort)
            if self._least_effort:
                return True
        new_limit_name = "max_completion_tokens"
        if (
            self._limit_name != new_limit_name
            and new_limit_name in refusal
            and "too large" not in refusal
        ):
            self._limit_name = new_limit_name
            return True
        return super().adapt(refusal, parameters)

    def _parse_reply(self, data: Any, request: Request) -> ServerReply:
        choices = data["choices"]  # one is asked for; a server that gives several may mix them up
        choice = next((c for c in choices if as_object(c).get("index") == 0), choices[0])
        reason, refusal, thoughts, calls_tool = _find_reason(choice), None, "", False
        # Some gateways answer either request in the other's shape.
        reply_message = choice.get("message") or choice.get("delta")
        as_message = isinstance(reply_message, dict) and not isinstance(choice.get("text"), str)
        if not as_message:
            # A filter may leave nothing of an answer but the reason why it ended.
            is_withheld = classify_ending(reason) == "refused"
            text = choice.get("text", "") if is_withheld else choice["text"]
        else:
            refusal = reply_message.get("refusal")
            # Some put the thoughts beside the message, in the choice.
            text, thoughts = split_message({**choice, **reply_message})
            text = text or (refusal if isinstance(refusal, str) else "")
            calls_tool = bool(reply_message.get("tool_calls") or reply_message.get("function_call"))
        usage = as_object(data.get("usage"))
        prompt_tokens = token_count(usage.get("prompt_tokens", usage.get("input_tokens")))
        completion_tokens = token_count(usage.get("completion_tokens", usage.get("output_tokens")))
        detail_names = ("completion_tokens_details", "output_tokens_details")
        token_details = (as_object(usage.get(part)) for part in detail_names)
        reasoning_counts = [t.get("reasoning_tokens") for t in (usage, *token_details)]
        # Gemini counts its thoughts in the total alone.
        total_tokens = token_count(usage.get("total_tokens"))
        uncounted_tokens = max(0, total_tokens - prompt_tokens - completion_tokens)
        if not prompt_tokens:
            uncounted_tokens = 0
        if completion_tokens or not text:
            reasoning_counts.append(uncounted_tokens)
        completion_tokens += uncounted_tokens
        details = {
            "endpoint": "completions" if request.form == "completion" else "chat",
            "served_model": data.get("model"),
            "fingerprint": data.get("system_fingerprint"),
            "finish_reason": reason,
            "as_message": "yes" if as_message and request.form == "completion" else "",
            "error": error_message(choice.get("error")),
        }
        ending = self._classify_ending(reason, text, completion_tokens, request)
        return ServerReply(
            text,
            "refused" if refusal else "error" if details["error"] else ending,
            prompt_tokens,
            completion_tokens,
            # One number, which servers give in different places.
            max(map(token_count, reasoning_counts)),
            details,
            thoughts,
            calls_tool,
        )

    def _classify_ending(
        self, reason: Any, text: str, completion_tokens: int, request: Request
    ) -> EndingKind:
        """How an answer ended, in our words. Where a server does not say, one that is as long as it
        may be was cut off. Where it counts no tokens either, one of about that length that stops in
        the middle of a sentence was; where it said so of other answers, any that stops there."""
        if (known_ending := classify_ending(reason)) is not None:
            self._says_why = True
            return known_ending
        max_tokens = request.max_tokens + self._thinking_tokens
        at_limit = completion_tokens >= max_tokens
        if not text.rstrip().endswith(_FULL_STOPS):
            at_limit |= self._says_why
            if not completion_tokens:
                at_limit |= estimate_tokens(text) >= _MIN_LIMIT_SHARE * max_tokens
        return "length" if at_limit else "stop"


def _find_reason(choice: Mapping[str, Any]) -> Any:
    """The reason why an answer ended. A proxy may keep the one of the model's own provider beside
    it, which counts where the proxy gives none, or where there is no text and it tells more."""
    reason = choice.get("finish_reason")
    details = as_object(choice.get("finish_details"))
    own_reasons = (
        choice.get("native_finish_reason"),
        details.get("type"),
        choice.get("stop_reason"),
    )
    own_reason = next((r for r in own_reasons if isinstance(r, str)), None)
    message = as_object(choice.get("message"))
    is_empty = not (choice.get("text") or message.get("content"))
    tells_more = is_empty and classify_ending(own_reason) in ("refused", "error")
    return own_reason if tells_more or classify_ending(reason) is None else reason
