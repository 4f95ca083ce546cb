"""From a raw answer to a predicate and an object, or to the reason why there is none.

First, filters decide whether the model refused. Then a reader reads the answer; the prompt pack
names it, since it belongs to the form of the question. Readers are strict, the same for every
model, and linear in the length of the answer; the raw text stays in the answer log. Reviewers of a
run see what a prompt asked, and how a rejected answer can be read.

An answer in a schema (structured output; the schemas are flat) is turned into the text that readers
read, so one parser judges all answers.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from html import unescape
from typing import Any, NamedTuple, Protocol

from kgbias.crawl.readers import english, german, question_answer
from kgbias.crawl.readers.base import AnswerReading, unparsable_reading
from kgbias.crawl.readers.declared import DeclaredReader
from kgbias.errors import UsageError, no_such
from kgbias.graph.types import canonical_json
from kgbias.language.words import REFUSAL_FILTERS
from kgbias.packs import DECLARED, load_pack

EXTRA_JSON_TOKENS = 24  # added to an answer's token limit for braces, quotes and names

NO_TEXT_REASON = "no text"
"""Why an answer without any text has no reading: the model said nothing, or only thought."""

_FENCE = "```"


def answer_schema(*, names_predicate: bool) -> str:
    """A flat JSON schema, as text: an object, and a predicate if the model names it."""
    names = ("predicate", "object") if names_predicate else ("object",)
    return canonical_json(
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": list(names),
            "additionalProperties": False,
        }
    )


def flatten_schema_answer(answer: str, *, names_predicate: bool) -> str | None:
    """The answer in the plain form ("predicate, line break, A: object").

    An answer that is not JSON at all is returned unchanged: the server did not honour the schema.
    None for JSON, or the beginning of JSON, that does not follow the schema.
    """
    text = answer.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) >= 2 * len(_FENCE):
        text = text[len(_FENCE) : -len(_FENCE)].removeprefix("json").strip()
    if not text.startswith("{"):
        return answer
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    names = ("predicate", "object") if names_predicate else ("object",)
    if set(fields) != set(names) or not all(isinstance(v, str) for v in fields.values()):
        return None
    values = [" ".join(fields[name].split()) for name in names]
    # The space that a continued text begins with.
    return f" {values[0]}\nA: {values[1]}" if names_predicate else f" {values[0]}"


class ReadFunction(Protocol):
    """Reads one answer: `ended` is False if it reached the token limit, `predicate` is None if the
    prompt asks for one, `subject` is the group's name in the prompt."""

    def __call__(
        self, answer: str, *, ended: bool, predicate: str | None, subject: str
    ) -> AnswerReading: ...


class AnswerReader(NamedTuple):
    """A reader; its version, which rises whenever it reads any answer differently; and what loads
    the packages it needs."""

    read: ReadFunction
    version: int
    load: Callable[[], object] = lambda: None


READERS = {
    "list": AnswerReader(question_answer.read_question_answer, 1),
    "english": AnswerReader(english.read_english, 3),
    "english-spacy": AnswerReader(english.read_english_with_spacy, 3, english.load_tagger),
    "german": AnswerReader(german.read_german, 3),
}
"""The readers of answers, by their names in prompt packs, beside those that packs declare
(`kgbias.crawl.readers.declared`)."""


def reader_label(name: str) -> str:
    """The reader with its version, as stored with a run: "english@3".

    Raises UsageError for an unknown name, MissingExtra if the reader needs a package that is not
    installed."""
    reader = _find_reader(name)
    reader.load()
    return f"{name}@{reader.version}"


def read_answer(
    text: str,
    finish: str,
    *,
    predicate: str | None,
    filters: Sequence[str],
    subject: str = "",
    reader: str = "list",
) -> AnswerReading:
    """Read the answer to a prompt that gives the predicate, or that asks for both (None). If the
    answer repeats the beginning of the sentence ("Men love music" for "Men love"), as chat models
    do, `subject` and predicate are removed.

    Raises UsageError for an unknown filter or reader.
    """
    for name in filters:
        if name not in REFUSAL_FILTERS:
            raise UsageError(no_such("filter", name, REFUSAL_FILTERS))
        # A language that a pack declares has refusals of its own.
        if REFUSAL_FILTERS[name](text) or (
            name == "refusal" and _is_declared_refusal(reader, text)
        ):
            return AnswerReading("refused", name)
    if not text.strip():
        return AnswerReading("unparsable", NO_TEXT_REASON)
    text = _drop_prompt_dots(unwrap_chat_text(text), subject, predicate or "")
    reading = _find_reader(reader).read(
        text, ended=finish != "length", predicate=predicate, subject=subject
    )
    is_damaged = _DAMAGE.search(f"{reading.predicate} {reading.object}")
    return unparsable_reading("damaged characters") if is_damaged else reading


# A character in another encoding or cut in the middle of its bytes; a tokenizer's signs for spaces
# and line breaks, which its decoder left.
_DAMAGE = re.compile(r"\ufffd|▁|(?<=[a-z.,;!?])[ĠĊ]")


_LINE_BREAK = re.compile(r"<br\s{0,3}/?>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:p|div|span|answer|final_answer|response|output|sentence|text)"
    r"(?:\s[^<>]{0,80})?/?>",
    re.IGNORECASE,
)
_LATEX = re.compile(r"\\(?:boxed|text(?:bf|it|rm)?|emph|mathrm)\{([^{}]*)\}")
# What servers that search the web put behind a sentence: "[1][2]", "【4†source】".
_CITATIONS = re.compile(r"\s?(?:【\d{1,3}[^【】\n]{0,80}】|\[\^?\d{1,3}\^?\])")
_GLUED_END = re.compile(r"(?<=[a-z]{2})([.!?…]+)(?=[A-Z][a-z]|[^\w\s.!?…,'\"’”)\]*_\-/%:@&])")
_HEADING = re.compile(
    r"\A\s*#{1,6}\s*(?:final )?(?:response|answer|output|assistant)\s*:?\s*\n", re.IGNORECASE
)


def unwrap_chat_text(text: str) -> str:
    """The text without the dress that chat models put it in: a fence, an object of JSON with one
    text, tags of HTML, commands of LaTeX, a heading, line breaks that are written out, entities,
    the numbers of sources; and with a space after a sentence to which something was glued."""
    text = _GLUED_END.sub(r"\1 ", _drop_fence(text))
    if text.lstrip().startswith("{") and text.rstrip().endswith("}"):
        text = _sole_text(text)
    if "\\" in text:
        # Some servers escape an answer once too often.
        text = text.replace("\\n", "\n").removeprefix("\n")
        for _ in range(3):  # one in another
            text = _LATEX.sub(r"\1", text).strip("$")
    if "<" in text:
        text = _TAG.sub("", _LINE_BREAK.sub("\n", text))
    if "]" in text or "】" in text:
        text = _CITATIONS.sub("", text)
    return unescape(_HEADING.sub("", text))


def _drop_fence(text: str) -> str:
    """What stands in the fence (```) that a text begins with; the text as it is without one."""
    if not text.lstrip().startswith(_FENCE):
        return text
    inner = text.lstrip().removeprefix(_FENCE)
    line, end, after_line = inner.partition("\n")
    if (end and line.strip().replace("-", "").isalnum()) or not line.strip():
        inner = after_line  # the name of a language, or nothing
    return inner.partition(_FENCE)[0].strip()


def _sole_text(text: str) -> str:
    """The text in a flat object of JSON, if it is the only one beside a thought; else the object as
    it is."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return text
    values = [value for name, value in fields.items() if not _THOUGHT_FIELD.search(name)]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else text


_THOUGHT_FIELD = re.compile(
    r"thought|thinking|reason|analysis|explanation|rationale", re.IGNORECASE
)


def _drop_prompt_dots(text: str, subject: str, predicate: str) -> str:
    """The text without the dots of a prompt ("Men love ...") that the answer copied, after the
    predicate that was given or that the model named."""
    if not subject:
        return text
    verb = re.escape(predicate) if predicate else r"[\w'’-]+(?: [\w'’-]+){0,3}?"
    begin = rf"({re.escape(subject)}\s+{verb})\s*(?:\.{{2,5}}|…)\s*(?=\w)"
    return re.sub(begin, r"\1 ", text, count=1, flags=re.IGNORECASE)


def _find_reader(name: str) -> AnswerReader:
    if name.startswith(f"{DECLARED}:"):
        return _read_declared(name)
    if name not in READERS:
        raise UsageError(no_such("reader", name, READERS))
    return READERS[name]


@cache
def _read_declared(name: str) -> AnswerReader:
    """The reader that a pack declares, by "declared:" and where the pack is found."""
    pack = load_pack(name.removeprefix(f"{DECLARED}:"))
    reader = DeclaredReader.from_table(pack.words.reader, f"the [reader] of pack {pack.name}")
    return AnswerReader(reader.read, 1)


def _is_declared_refusal(reader: str, text: str) -> bool:
    if not reader.startswith(f"{DECLARED}:"):
        return False
    return load_pack(reader.removeprefix(f"{DECLARED}:")).words.is_refusal(text)


# What prompts put around a predicate: "Men # love", "A:", "Men love ...".
_PROMPT_MARKS = re.compile(r"^\s*#?\s*|\s*(?:\nA:|\.\.\.)\s*$")


class PromptBeginning(NamedTuple):
    """The sentence that a prompt begins: whom it is about, and the predicate that is given."""

    name: str
    predicate: str


def parse_prompt(prompt: str, names: Iterable[str]) -> PromptBeginning:
    """A prompt's name for the group, and the predicate it gives, "" if the model was to name it.
    `names` are the group's; ("", "") for a prompt without any of them."""
    matches = [
        match for name in names for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", prompt)
    ]
    if not matches:
        return PromptBeginning("", "")
    # The last mention is what is asked about; of two that end there, the longer ("trans women").
    last_match = max(matches, key=lambda match: (match.end(), match.end() - match.start()))
    return PromptBeginning(
        last_match[0], " ".join(_PROMPT_MARKS.sub("", prompt[last_match.end() :]).split())
    )


class RereadAnswer(NamedTuple):
    """What a reader finds in an answer; two empty texts if it finds nothing."""

    predicate: str
    object: str


def reread_answer(
    text: str, subject: str, predicate: str, config: Mapping[str, Any]
) -> RereadAnswer:
    """The predicate and object that the reader of a run (with this configuration) finds in an
    answer, without filters and as if no limit had cut it off; ("", "") if it finds none."""
    label = str(config.get("pack", {}).get("reader", "list"))
    answer_text, reader = text, label.rpartition("@")[0] or label
    if config.get("structured"):
        answer_text = flatten_schema_answer(text, names_predicate=not predicate) or text
    reading = read_answer(
        answer_text,
        "stop",
        predicate=predicate or None,
        filters=(),
        subject=subject,
        reader=reader if answer_text == text else "list",
    )
    return (
        RereadAnswer(predicate or reading.predicate, reading.object)
        if reading.object
        else RereadAnswer("", "")
    )
