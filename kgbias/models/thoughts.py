"""What a model thought, and what it answered: told apart in one place, for every kind of model.

Thoughts come in tags (<think>, [THINK], Kimi's, Cohere's, ByteDance's, MedGemma's ...), in the
channels of gpt-oss, with marks or with the marks stripped off, and without the tag that opens them,
because a chat template wrote it. Where a server tells them apart itself, they are in fields of the
message or in parts of its content. An answer may also carry what belongs to the turn and not to the
text: the role on its first line, or the tokens that end a turn.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kgbias.models.base import Completion, Notify, Request

_NAMES = r"(?:seed:)?(?:think|thinking|thoughts?|reason|reasoning|reflection|analysis)"
_OPENS = re.compile(
    rf"<(?:{_NAMES})>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|START_THINKING\|>"
    r"|<unused94>(?:thought\b)?|<\|channel>thought\b|<\|inner_prefix\|>",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>"
    r"|<unused95>|<channel\|>|<\|inner_suffix\|>|^\.\.\.done thinking\.?$",
    re.IGNORECASE | re.MULTILINE,
)
# The line "thought" or "Thinking..." before thoughts that no tag opens.
_HEADING = re.compile(
    r"\A\s*(?:thoughts?|thinking(?: process)?(?:\.\.\.|:)?|reasoning:?)\s*\n", re.I
)

# The harmony format of gpt-oss: <|channel|>NAME<|message|>TEXT<|end|>; the answer is in "final".
_CHANNEL = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?"
    r"<\|channel\|>\s*(\w{1,20})[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
)
_CHANNEL_MARK = re.compile(r"<\|channel\|>")
# The same with the marks stripped off, as decoders that skip special tokens leave it.
_BARE_THOUGHT = re.compile(r"\A\s*(?:assistant)?(?:analysis|commentary)(?=[A-Z\"'“])")
_BARE_FINAL = re.compile(r"assistant\s*final(?=\S|\s)")

_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|return|call|endoftext|end_of_text|end_of_turn|END_RESPONSE"
    r"|END_OF_TURN_TOKEN|end_of_solution|eot|user|observation|im_start|start)\|>"
    r"|</s>|<eos>|<end_of_turn>|<turn\|>|<start_of_turn>|<end_of_utterance>|\[/?INST\]|<｜end▁of▁sentence｜>"
    r"|<｜User｜>|<\|END_RESPONSE\|>|<\|END_TEXT\|>|<\|im_sep\|>|<\|message_end\|>"
)
_TURN_BEGINS = re.compile(
    r"\A\s*(?:<s>|<bos>|<\|begin_of_text\|>)?\s*"
    r"(?:<\|im_start\|>\s*(?:assistant)?|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>"
    r"|<\|start\|>\s*assistant|<start_of_turn>\s*model|<\|turn>\s*model|<\|assistant\|>|<｜Assistant｜>"
    r"|<\|START_RESPONSE\|>|<\|START_TEXT\|>|<\|begin_of_solution\|>)?\s*"
)
# A role alone on the first line, or before a colon there.
_ROLE = re.compile(
    r"\A\s*\*{0,2}(?:assistant|model|ai|bot)(?:\s*:\*{0,2}[ \t]*|\*{0,2}[ \t]*\n)\s*", re.IGNORECASE
)

# How thoughts begin that nothing marks, if an answer was cut off before the mark that ends them.
_NAMES_TASK = r"(?=[^.?!]*\b(?:list|sentence|prompt|task|user|instructions?|examples?)\b)"
_DELIBERATES = re.compile(
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


class Parts(NamedTuple):
    """An answer taken apart: what was answered, what was thought, whether the thought has no end,
    so that the answer would come after it, and whether it is taken for one by its words alone."""

    text: str
    thought: str = ""
    unfinished: bool = False
    guessed: bool = False


def split_thought(text: str, *, cut: bool = False, guess: bool = True) -> Parts:
    """Tell thoughts from the answer in a model's output. `cut` is whether the output reached its
    token limit: then what deliberates without any mark is taken for a thought whose end is
    missing, unless it is not to `guess`."""
    found = _harmony(text) or _tagged(text) or _headed(text, cut=cut)
    if found is None:
        if cut and guess and _DELIBERATES.match(text):
            return Parts("", text.strip(), True, True)
        found = Parts(text)
    return found._replace(text=without_turn(found.text))


def may_think(tokenizer: Any) -> bool:
    """Whether the chat template of a model on this machine, or its tokens, know a mark of thoughts.
    Without any, what sounds like a thought is an answer."""
    known = [str(tokenizer.chat_template or ""), *tokenizer.get_added_vocab()]
    marks = (_OPENS, _CLOSES, _CHANNEL_MARK)
    return any(mark.search(text) for text in known for mark in marks)


def _harmony(text: str) -> Parts | None:
    marks = list(_CHANNEL.finditer(text))
    if marks:
        ends = [*(m.start() for m in marks[1:]), len(text)]
        said = [(m[1].lower(), text[m.end() : end]) for m, end in zip(marks, ends, strict=True)]
        final = [part for name, part in said if name == "final"]
        thought = [_TURN_ENDS.split(part)[0].strip() for name, part in said if name != "final"]
        return Parts(final[-1] if final else "", "\n".join(thought), not final)
    if opening := _BARE_THOUGHT.match(text):
        ends_at = list(_BARE_FINAL.finditer(text))
        if ends_at:
            return Parts(
                text[ends_at[-1].end() :], text[opening.end() : ends_at[-1].start()].strip()
            )
        return Parts("", text[opening.end() :].strip(), True)
    return None


def _headed(text: str, *, cut: bool) -> Parts | None:
    """What follows the line "thought": the answer, where a template closed the thought before it
    began, or a thought without a mark that would end it."""
    if (heading := _HEADING.match(text)) is None:
        return None
    rest = text[heading.end() :].strip()
    if cut:
        return Parts("", rest, True)
    before, line, last = rest.rpartition("\n")
    if line and before.strip():
        return Parts(last, before.strip())
    return Parts("", rest, True) if _DELIBERATES.match(rest) else Parts(rest)


def _tagged(text: str) -> Parts | None:
    closes = list(_CLOSES.finditer(text))
    if closes:
        last = closes[-1]
        thought = _OPENS.sub("\n", _CLOSES.sub("\n", text[: last.end()]))
        rest = text[last.end() :]
        reopened = _OPENS.search(rest)
        if reopened is None:
            return Parts(_HEADING.sub("", rest), _HEADING.sub("", thought).strip())
        return Parts(rest[: reopened.start()], (thought + rest[reopened.end() :]).strip(), True)
    if opening := _OPENS.search(text):
        return Parts(text[: opening.start()], text[opening.end() :].strip(), True)
    return None


def without_turn(text: str) -> str:
    """The text of a turn, without the role and the tokens that begin it, up to the token that ends
    it."""
    begins = _TURN_BEGINS.match(text)
    rest = text[begins.end() :] if begins and begins[0].strip() else text
    ends = _TURN_ENDS.search(rest)
    rest = rest[: ends.start()] if ends else rest
    role = _ROLE.match(rest)
    return rest[role.end() :] if role else rest


_THINKING_FIELDS = (
    "reasoning_content", "reasoning", "thinking", "reasoning_text", "thoughts", "thinking_blocks",
    "thinking_content", "reasoning_details", "analysis",
)  # fmt: skip


def message_parts(message: Mapping[str, Any]) -> tuple[str, str]:
    """The content of a chat message and the thoughts that the server told apart from it. Raises
    TypeError for content that is neither text, nothing, nor a list of parts."""
    content, thoughts = message.get("content"), []
    for name in _THINKING_FIELDS:
        if found := _flat(message.get(name)):
            thoughts.append(found)
            break  # servers that send two send the same in both
    if content is None:
        content = ""
    elif isinstance(content, list):
        texts: list[str] = []
        for part in content:
            kind = part.get("type", "text") if isinstance(part, Mapping) else "text"
            (thoughts if re.search("think|reason", str(kind)) else texts).append(_flat(part))
        content = "".join(texts)
    elif not isinstance(content, str):
        raise TypeError
    return content, "\n".join(filter(None, thoughts))


def _flat(value: Any) -> str:
    """The text in a part of a message, however it is nested."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_flat, value))
    if isinstance(value, Mapping):
        named = (value.get(n) for n in ("text", "thinking", "reasoning", "content", "summary"))
        return next((found for v in named if (found := _flat(v))), "")
    return ""


def thought_tokens(thought: str, text: str, tokens: int) -> int:
    """How many of the tokens of an output were thoughts, by their share of its characters, where
    nobody says."""
    return round(tokens * len(thought) / (len(thought) + len(text))) if thought else 0


Complete = Callable[[Sequence[Request]], Generator[list[tuple[int, Completion]], None, None]]
ROOM = 2_048  # tokens for a thought, beyond the limit of an answer


def without_thoughts(
    complete: Complete,
    requests: Sequence[Request],
    model: str,
    notify: Notify,
    knows_thoughts: Callable[[], bool],
) -> Generator[list[tuple[int, Completion]], None, None]:
    """What `complete` yields for a model on this machine, with the thoughts beside the answers.
    Where only a thought came, it is asked again with room for one, and without stop strings, which
    would end it; they are cut off here. `knows_thoughts` (see `may_think`) is
    asked once an answer came, when the model is loaded."""
    again: list[int] = []
    for batch in complete(requests):
        done = [(n, _apart(found, requests[n], guess=knows_thoughts())) for n, found in batch]
        again += [n for n, found in done if found.details.get("unfinished")]
        if kept := [(n, found) for n, found in done if not found.details.get("unfinished")]:
            yield kept
    if not again:
        return
    notify(f"{model} thinks before it answers: each answer may take {ROOM} tokens more")
    roomy = [replace(requests[n], max_tokens=requests[n].max_tokens + ROOM, stop=()) for n in again]
    for batch in complete(roomy):
        yield [(again[k], _apart(found, requests[again[k]], guess=True)) for k, found in batch]


def _apart(found: Completion, request: Request, *, guess: bool) -> Completion:
    """A completion with its thought in the details."""
    cut = request.form == "chat" and found.finish == "length"
    text, thought, unfinished, _ = split_thought(found.text, cut=cut, guess=guess)
    if not thought and not unfinished and text == found.text:
        return found
    details = {
        "thought": thought,
        "thought_tokens": thought_tokens(thought, text, found.completion_tokens),
        "unfinished": unfinished,
    }
    told = {name: value for name, value in details.items() if value}
    text = text.lstrip("\n") if thought else text
    cuts = [text.index(stop) for stop in request.stop if stop in text]
    finish = "length" if unfinished else "stop" if cuts else found.finish
    return replace(
        found, text=text[: min([*cuts, len(text)])], finish=finish, details=found.details | told
    )
