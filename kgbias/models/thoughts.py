"""What a model thought, and what it answered: told apart in one place, for every kind of model.

Thoughts come in tags (<think>, [THINK], Kimi's, Cohere's, ByteDance's, MedGemma's ...), in the
channels of gpt-oss, with marks or with the marks stripped off, and without the tag that opens them,
because a chat template wrote it. Where a server tells them apart itself, they are in fields of the
message or in parts of its content. An answer may also carry what belongs to the turn and not to the
text: the role on its first line, or the tokens that end a turn.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from kgbias.models.base import Completion, Notify, Request

_THOUGHT_NAMES = (
    r"\w*(?:think|thought|reason|reflect|monologue|scratch_?pad|deliberat|analysis|planning)\w*|cot"
)
# A tag of thoughts may have a namespace and attributes, and its brackets may be escaped.
_BRACKET = r"(?:<|＜|&lt;|\\u003c)"
_NAMESPACE = r"(?:\w{1,20}:)?"
_TAG_END = r"(?:\s[^<>]{0,80})?(?:>|＞|&gt;|\\u003e)"
_DETAILS = r"<details\b[^<>]{0,80}\b(?:reasoning|thinking)\b[^<>]{0,80}>"
_OPENING_PATTERN = re.compile(
    rf"{_BRACKET}{_NAMESPACE}(?:{_THOUGHT_NAMES}){_TAG_END}|\[THINK(?:ING)?\]|◁think▷"
    # Cohere's <|START_THINKING|> among them, but no <|END_THINKING|>.
    r"|<\|(?!\w*end)\w*(?:think|thought)\w*(?<!_end)\|>|<\|inner_prefix\|>"
    r"|<(?:unused|ctrl)94>(?:thought\b)?|<\|channel>thought\b"
    rf"|{_DETAILS}",
    re.IGNORECASE,
)
_CLOSING_PATTERN = re.compile(
    rf"{_BRACKET}/{_NAMESPACE}(?:{_THOUGHT_NAMES}){_TAG_END}|\[/THINK(?:ING)?\]|◁/think▷"
    r"|<\|/\w*(?:think|thought)\w*\|>|<\|(?=\w*end)\w*(?:think|thought)\w*\|>|<\|inner_suffix\|>"
    r"|<(?:unused|ctrl)95>|<channel\|>|^\.\.\.done thinking\.?$",
    re.IGNORECASE | re.MULTILINE,
)
# Gemma may write the mark that ends its thoughts after an answer without any.
_CHANNEL_END = "<channel|>"
# What begins the answer ends the thoughts before it.
_ANSWER_PATTERN = re.compile(
    r"<\|(?:content|begin_of_box|begin_of_solution|START_RESPONSE|START_TEXT)\|>"
    r"|\[BEGIN (?:FINAL )?(?:RESPONSE|ANSWER)\]"
)
# The line "thought" or "Thinking..." before thoughts that no tag opens.
_HEADING_PATTERN = re.compile(
    r"\A\s*\W{0,5}(?:thoughts?|thinking|thinking process|thought process|reasoning(?: steps)?"
    r"|(?:thought|reasoned) for (?:\d{1,4}|a few|several|a couple of) ?\w{1,8}"
    r"|(here (?:is|are) my (?:thinking process|thought process|reasoning(?: steps)?)))"
    r"(?:\.\.\.|…|:)?\W{0,3}?[^\S\n]*\n",
    re.IGNORECASE,
)
_ANSWER_HEADING_PATTERN = re.compile(
    r"^\W{0,4}(?:here (?:is|are) my )?(?:final )?(?:answer|response|reply)\W{0,3}:\W{0,3}?\s"
    r"|^(?:#{1,6} |\*\*)(?:final )?(?:answer|response|reply)\W{0,3}\n",
    re.IGNORECASE | re.MULTILINE,
)
# The same on the line of the thoughts; then only a line that begins the answer ends them.
_LABEL_PATTERN = re.compile(
    r"\A\W{0,4}(?:thoughts?|thinking|reasoning|analysis)\W{0,3}:\W{0,3}?\s", re.IGNORECASE
)
_QUOTED_LINES_PATTERN = re.compile(r"\A(?:\s*>[^\n]*\n?)+")

# The harmony format of gpt-oss: <|channel|>NAME<|message|>TEXT<|end|>; the answer is in "final".
_CHANNEL_PATTERN = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?<\|channel\|>\s*"
    r"(?:(\w{1,20})[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"|(analysis|commentary|final)(?:\b|(?=[A-Z\"'“]))(?!\s*<))"
    r"|\A\s*(analysis|commentary|final)<\|message\|>"  # the first mark was the prompt's
)
_CHANNEL_MARK = re.compile(r"<\|channel\|>")
# The same with the marks stripped off, as decoders that skip special tokens leave it.
_BARE_THOUGHT_PATTERN = re.compile(r"\A\s*(?:assistant)?(?:analysis|commentary)(?=[A-Z\"'“])")
_BARE_OPENING_PATTERN = re.compile(r"\A\s*(?:assistant)?(?:analysis|commentary)")
_BARE_FINAL_PATTERN = re.compile(r"assistant\s*final(?=\S|\s)")
_BARE_ANSWER_PATTERN = re.compile(r"\A\s*assistant\s*final(?=\S|\s)")

# What begins the call of a tool, which no answer is: kgbias offers none.
_CALL_PATTERN = re.compile(
    r"</?\|?tool_(?:call|code)s?\|?>|<\|python_tag\|>|\[TOOL_CALLS\]|<｜tool▁calls?▁begin｜>|<｜DSML｜"
    r"|<function(?:_calls?>|=)|<invoke name=|✿FUNCTION✿|\A\s*(?:assistant\s*)?commentary to="
)
# Tokens of a chat template. Those that stand for nothing are taken off at either end of an answer;
# any other after its beginning ends it.
_EMPTY_TOKEN = (
    r"<(?:unused|ctrl|reserved_|extra_id_)\d+>|\[UNUSED_TOKEN_\d+\]|<(?:pad|unk|sep|mask)>"
    r"|<0x[0-9A-F]{2}>|[\ufeff\u200b]"
)
_TURN_TOKEN = (
    r"<\|/?[\w.:-]{1,40}\|?>|<[\w.:-]{1,40}\|>|<｜[^｜<>\n]{1,40}｜>|<\[[^\[\]<>\n]{1,40}\]>"
    r"|\[\|/?\w{1,40}\|\]|</?(?:\w{1,20}:)?(?:s|eos|bos|eod|eot|end_of_text|end_of_utterance)>"
    r"|<(?:start|end)_of_turn>|(?-i:\[/?(?:INST|ASSISTANT|END|DONE|EOS)\])"
    r"|</?(?:assistant|user|system|tool_call|tool_response)>|<role>\s*\w{1,20}\s*</role>"
    r"|\]~!?b[\[\]]|\[e~\[|(?-i:\[END (?:FINAL )?(?:RESPONSE|ANSWER)\])"
    # The head of another turn, without its tokens, as decoders that skip them leave it.
    r"|(?-i:(?<=[\w.!?…\"”’'\)])assistant\n\n)"
    r"|(?-i:(?<=[.!?…\"”’'\)])(?:assistant|user|system|model)(?=\s*(?:\n|\Z)))"
    r"|(?-i:(?<=[.!?…\"”’'\)])(?:null|undefined)\s*\Z)"
)
_TURN_END_PATTERN = re.compile(rf"{_TURN_TOKEN}|<\|\w{{1,40}}\|?\s*\Z", re.IGNORECASE)
_EMPTY_TAIL_PATTERN = re.compile(rf"(?:{_EMPTY_TOKEN})(?:\s|{_EMPTY_TOKEN})*\Z", re.IGNORECASE)
_TURN_BEGIN_PATTERN = re.compile(
    rf"\A(?:\s*(?:{_TURN_TOKEN}|{_EMPTY_TOKEN})"
    rf"(?:\s*(?:assistant(?![a-z])|(?:model|ai|bot)(?=\s*(?:\n|{_TURN_TOKEN}))))?)+\s*",
    re.IGNORECASE,
)
# The pattern of a tail is tried at each sign, to the end: over a long answer, that is its square.
_MAX_TAIL = 200  # characters
# A role alone on the first line, or before a colon there.
_ROLE_PATTERN = re.compile(
    r"\A\s*\*{0,2}(?:assistant|model|ai|bot)(?:\s*:\*{0,2}[ \t]*|\*{0,2}[ \t]*\n)\s*", re.IGNORECASE
)

# How thoughts begin that nothing marks, if an answer was cut off before the mark that ends them.
_NAMES_TASK = r"(?=[^.?!]*\b(?:list|sentence|prompt|task|user|instructions?|examples?)\b)"
_DELIBERATION_PATTERN = re.compile(
    r"\A\s*(?:(?:Okay|OK|Alright|Hmm|Well|So|First|Right|Good|Now|Wait)\b(?:[,.]|\.\.\.)?\s+"
    r"(?:so\s+|let\b|let's\b|I\b|we\b|this\b|first\b|what\b|the (?:user|list|task|next|last)\b)"
    r"|(?:Hmm|Okay|Alright|Wait)\b[.,]|Let me\b|Let's (?:think|see|break|analy)"
    r"|I (?:need|have|should) to?\b|I(?:'m| am) (?:supposed|asked)\b"
    # A story may begin so, too: what is written must be named.
    rf"|(?:I (?:will|could|might|must)|I'll|I'd|Looking at)\b{_NAMES_TASK}"
    r"|(?:To|In order to) (?:complete|continue|finish|answer) (?:the|this)\b"
    r"|(?:The|This) (?:user|question|prompt|task|request|instruction|list|last line|next line)\b"
    r"|We (?:need|are asked|have|must|should)\b|(?:The )?[Uu]ser (?:wants|asks|is asking)\b"
    r"|Thinking\b|Here's a thinking process\b)",
)


# How thoughts begin that nothing marks, and no answer does.
_USER_PATTERN = re.compile(
    r"\A\W{0,12}(?:think(?:s|ing)\W{1,3})?"
    r"(?:Th(?:e|is)|(?:Okay|OK|Alright|Hmm|Well|So|Right)\b\W{1,4}(?:so,? )?[Tt]h(?:e|is))\s[Uu]ser"
    r"(?:['’]s\b|\s(?:wants|asks|asked|has|gave|provided|says|said|needs|would"
    r"|is (?:asking|looking|requesting)))"
)
_MAX_LAST_LINE = 200  # characters of an answer that may follow such thoughts


class SplitAnswer(NamedTuple):
    """An answer taken apart: what was answered, what was thought, whether the thought has no end,
    so that the answer would come after it, whether it is taken for one by its words alone, and
    whether a tool was called in place of an answer, or after it."""

    text: str
    thought: str = ""
    is_unfinished: bool = False
    is_guessed: bool = False
    calls_tool: bool = False


def split_thought(text: str, *, was_cut: bool = False, guess: bool = True) -> SplitAnswer:
    """Tell thoughts from the answer in a model's output. `was_cut` is whether the output reached
    its token limit: then what deliberates without any mark is taken for a thought whose end is
    missing, unless it is not to `guess`."""
    answer_parts = (
        _split_harmony(text) or _split_tagged(text) or _split_headed(text, was_cut=was_cut)
    )
    if answer_parts is None and _USER_PATTERN.match(text):
        answer_parts = _split_unmarked(text)
    if answer_parts is None:
        if was_cut and guess and _DELIBERATION_PATTERN.match(text):
            return SplitAnswer("", text.strip(), True, True)
        answer_parts = SplitAnswer(text)
    answered, *calls = _CALL_PATTERN.split(answer_parts.text, maxsplit=1)
    return answer_parts._replace(text=strip_turn(answered), calls_tool=bool(calls))


def may_think(tokenizer: Any) -> bool:
    """Whether the chat template of a model on this machine, or its tokens, know a mark of thoughts.
    Without any, what sounds like a thought is an answer."""
    known = [str(tokenizer.chat_template or ""), *tokenizer.get_added_vocab()]
    marks = (_OPENING_PATTERN, _CLOSING_PATTERN, _CHANNEL_MARK)
    return any(mark.search(text) for text in known for mark in marks)


def _split_harmony(text: str) -> SplitAnswer | None:
    marks = list(_CHANNEL_PATTERN.finditer(text))
    if marks:
        part_ends = [*(m.start() for m in marks[1:]), len(text)]
        parts_by_channel = [
            ((m[1] or m[2] or m[3]).lower(), text[m.end() : end])
            for m, end in zip(marks, part_ends, strict=True)
        ]
        final_parts = [part for name, part in parts_by_channel if name == "final"]
        thought = [
            _TURN_END_PATTERN.split(part)[0].strip()
            for name, part in parts_by_channel
            if name != "final"
        ]
        return SplitAnswer(
            final_parts[-1] if final_parts else "", "\n".join(thought), not final_parts
        )
    if answer := _BARE_ANSWER_PATTERN.match(text):
        return SplitAnswer(text[answer.end() :])
    if opening := _BARE_OPENING_PATTERN.match(text):
        ends_at = list(_BARE_FINAL_PATTERN.finditer(text))
        if ends_at:
            return SplitAnswer(
                text[ends_at[-1].end() :], text[opening.end() : ends_at[-1].start()].strip()
            )
    if opening := _BARE_THOUGHT_PATTERN.match(text):
        return SplitAnswer("", text[opening.end() :].strip(), True)
    return None


def _split_headed(text: str, *, was_cut: bool) -> SplitAnswer | None:
    """What follows the line "thought": the answer, where a template closed the thought before it
    began, or a thought without a mark that would end it."""
    heading = _HEADING_PATTERN.match(text)
    if (begin := heading or _LABEL_PATTERN.match(text)) is None:
        return None
    remaining = text[begin.end() :].strip()
    if answers := list(_ANSWER_HEADING_PATTERN.finditer(remaining)):
        answer = answers[-1]
        return SplitAnswer(remaining[answer.end() :], remaining[: answer.start()].strip())
    if heading is None or heading[1]:
        return None  # people begin so, too
    if (quoted := _QUOTED_LINES_PATTERN.match(remaining)) and quoted.end() < len(remaining):
        return SplitAnswer(remaining[quoted.end() :], quoted[0].strip())
    if was_cut:
        return SplitAnswer("", remaining, True)
    first_part, line, last_line = remaining.rpartition("\n")
    if line and first_part.strip():
        return SplitAnswer(last_line, first_part.strip())
    return (
        SplitAnswer("", remaining, True)
        if _DELIBERATION_PATTERN.match(remaining)
        else SplitAnswer(remaining)
    )


def _split_unmarked(text: str) -> SplitAnswer:
    """Thoughts that nothing marks, as decoders that skip special tokens leave them: the answer is
    what an announcement begins, or a last line apart from them; else none came."""
    if answers := list(_ANSWER_HEADING_PATTERN.finditer(text)):
        return SplitAnswer(text[answers[-1].end() :], text[: answers[-1].start()].strip())
    thought, _, last_line = text.rstrip().rpartition("\n\n")
    if thought and "\n" not in last_line and len(last_line) <= _MAX_LAST_LINE:
        return SplitAnswer(last_line, thought.strip())
    return SplitAnswer("", text.strip(), True)


def _split_tagged(text: str) -> SplitAnswer | None:
    if details := re.search(_DETAILS, text, re.IGNORECASE):
        text = text[: details.end()] + text[details.end() :].replace("</details>", "</think>", 1)
    if text.rstrip().endswith(_CHANNEL_END):
        is_thought = _OPENING_PATTERN.search(text) or _DELIBERATION_PATTERN.match(text)
        text = text if is_thought else text.rstrip().removesuffix(_CHANNEL_END)
    closes = [*_CLOSING_PATTERN.finditer(text), *_ANSWER_PATTERN.finditer(text)]
    if closes:
        last_close = max(closes, key=lambda mark: mark.end())
        thought_text = text[: last_close.end()]
        remaining = text[last_close.end() :]
        reopening = _OPENING_PATTERN.search(remaining)
        opening = _OPENING_PATTERN.search(thought_text)
        if not remaining.strip() and opening and thought_text[: opening.start()].strip():
            # The answer came first.
            return SplitAnswer(
                thought_text[: opening.start()], _drop_marks(thought_text[opening.end() :])
            )
        if reopening is None:
            return SplitAnswer(_HEADING_PATTERN.sub("", remaining), _drop_marks(thought_text))
        return SplitAnswer(
            remaining[: reopening.start()],
            f"{_drop_marks(thought_text)}\n{remaining[reopening.end() :]}".strip(),
            True,
        )
    if opening := _OPENING_PATTERN.search(text):
        return SplitAnswer(text[: opening.start()], text[opening.end() :].strip(), True)
    return None


def _drop_marks(thought_text: str) -> str:
    """A thought without the marks and tokens around it."""
    for pattern in (_CLOSING_PATTERN, _OPENING_PATTERN, _ANSWER_PATTERN):
        thought_text = pattern.sub("\n", thought_text)
    return strip_turn(_HEADING_PATTERN.sub("", thought_text)).strip()


def strip_turn(text: str) -> str:
    """The text of a turn, without the role and the tokens that begin it, up to the token that ends
    it."""
    turn_begin = _TURN_BEGIN_PATTERN.match(text)
    turn_text = text[turn_begin.end() :] if turn_begin else text
    turn_end = _TURN_END_PATTERN.search(turn_text)
    turn_text = turn_text[: turn_end.start()] if turn_end else turn_text
    tail = turn_text[-_MAX_TAIL:]
    turn_text = turn_text[: len(turn_text) - len(tail)] + _EMPTY_TAIL_PATTERN.sub("", tail)
    role = _ROLE_PATTERN.match(turn_text)
    return turn_text[role.end() :] if role else turn_text


_THINKING_FIELDS = (
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
    "thoughts",
    "thinking_blocks",
    "thinking_content",
    "reasoning_details",
    "analysis",
)


class MessageTexts(NamedTuple):
    """The text of a message, and what was thought before it."""

    text: str
    thoughts: str


def split_message(message: Mapping[str, Any]) -> MessageTexts:
    """The content of a chat message and the thoughts that the server told apart from it. Raises
    TypeError for content that is neither text, nothing, an object, nor a list of parts."""
    content, thoughts = message.get("content"), []
    for name in _THINKING_FIELDS:
        if thought_text := _flatten_text(message.get(name)):
            thoughts.append(thought_text)
            break  # servers that send two send the same in both
    if content is None:
        content = ""
    elif isinstance(content, Mapping):
        content = _flatten_text(content) or json.dumps(content)  # an answer in a schema
    elif isinstance(content, str):
        content = _read_parts(content) or content
    if isinstance(content, list):
        texts: list[str] = []
        for part in content:
            (thoughts if _is_thought(part) else texts).append(_flatten_text(part))
        content = "".join(texts)
    elif not isinstance(content, str):
        raise TypeError
    thought = "\n".join(filter(None, thoughts))
    if thought and not content.strip():
        # A parser of thoughts may have taken the answer for one, too.
        closes = list(_CLOSING_PATTERN.finditer(thought))
        if closes and thought[closes[-1].end() :].strip():
            return MessageTexts(thought, "")
    return MessageTexts(content, thought)


def _is_thought(part: Any) -> bool:
    """Whether a part of a message's content is a thought, by its kind or its mark."""
    if not isinstance(part, Mapping):
        return False
    kind = str(part.get("type", "text"))
    return part.get("thought") is True or bool(re.search("think|thought|reason|analysis", kind))


def _read_parts(content: str) -> list[Any] | None:
    """The parts of a content that a proxy wrote as a text of JSON; None if it is none."""
    if not content.startswith("[{") or not content.rstrip().endswith("}]"):
        return None
    with suppress(ValueError, RecursionError):
        parts = json.loads(content)
        if all(isinstance(part, Mapping) and "type" in part for part in parts):
            return list(parts)
    return None


def _flatten_text(value: Any) -> str:
    """The text in a part of a message, however it is nested."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_flatten_text, value))
    if isinstance(value, Mapping):
        values = (value.get(name) for name in _TEXT_FIELDS)
        return next((found for v in values if (found := _flatten_text(v))), "")
    return ""


_TEXT_FIELDS = ("text", "thinking", "reasoning", "reasoning_content", "content", "summary", "value")


def estimate_thought_tokens(thought: str, text: str, tokens: int) -> int:
    """How many of the tokens of an output were thoughts, by their share of its characters, where
    nobody says."""
    return round(tokens * len(thought) / (len(thought) + len(text))) if thought else 0


Complete = Callable[[Sequence[Request]], Generator[list[tuple[int, Completion]], None, None]]
THOUGHT_TOKENS = 2_048  # tokens for a thought, beyond the limit of an answer


def separate_thoughts(
    complete: Complete,
    requests: Sequence[Request],
    model: str,
    notify: Notify,
    knows_thoughts: Callable[[], bool],
) -> Generator[list[tuple[int, Completion]], None, None]:
    """What `complete` yields for a model on this machine, with the thoughts beside the answers.
    Where only a thought came, or one that left too little for the answer, it is asked again with
    room for one, and without stop strings, which would end it; they are cut off here.
    `knows_thoughts` (see `may_think`) is asked once an answer came, when the model is loaded."""
    unfinished_indexes: list[int] = []
    for batch in complete(requests):
        split_completions = [
            (n, _split_completion(found, requests[n], guess=knows_thoughts())) for n, found in batch
        ]
        unfinished_indexes += [n for n, found in split_completions if _lacks_room(found)]
        if finished := [(n, found) for n, found in split_completions if not _lacks_room(found)]:
            yield finished
    if not unfinished_indexes:
        return
    notify(f"{model} thinks before it answers: each answer may take {THOUGHT_TOKENS} tokens more")
    roomy_requests = [
        replace(requests[n], max_tokens=requests[n].max_tokens + THOUGHT_TOKENS, stop=())
        for n in unfinished_indexes
    ]
    for batch in complete(roomy_requests):
        yield [
            (
                unfinished_indexes[k],
                _split_completion(found, requests[unfinished_indexes[k]], guess=True),
            )
            for k, found in batch
        ]


def _lacks_room(completion: Completion) -> bool:
    """Whether a thought took what its answer would have needed."""
    was_cut = completion.finish == "length" and bool(completion.details.get("thought"))
    return was_cut or bool(completion.details.get("unfinished"))


def _split_completion(completion: Completion, request: Request, *, guess: bool) -> Completion:
    """A completion with its thought in the details."""
    cut = request.form == "chat" and completion.finish == "length"
    parts = split_thought(completion.text, was_cut=cut, guess=guess)
    text, thought, unfinished = parts.text, parts.thought, parts.is_unfinished
    if not thought and not unfinished and text == completion.text:
        return completion
    details = {
        "thought": thought,
        "thought_tokens": estimate_thought_tokens(thought, text, completion.completion_tokens),
        "unfinished": unfinished,
    }
    new_details = {name: value for name, value in details.items() if value}
    text = text.lstrip("\n") if thought else text
    stop_places = [text.index(stop) for stop in request.stop if stop in text]
    finish = "length" if unfinished else "stop" if stop_places else completion.finish
    return replace(
        completion,
        text=text[: min([*stop_places, len(text)])],
        finish=finish,
        details=completion.details | new_details,
    )
