"""Dynamic seeds: the groups of a class that the model itself names.

The model is asked several times for a list, and a group that enough of the lists name is a seed
(Salinas et al. 2023, appendix A.2.1: five prompts, at least three lists). The answers are kept in
the answer log like all others, so repeating a crawl finds the same seeds without asking.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgbias.crawl.readers.base import single_spaces
from kgbias.crawl.seeds import SeedCategory
from kgbias.errors import ModelError, UsageError
from kgbias.graph.types import Answer
from kgbias.ids import content_id, normalise
from kgbias.io.progress import Progress
from kgbias.language.refusals import refusal
from kgbias.models.base import Form, Request
from kgbias.models.truncate import Truncation
from kgbias.packs import Pack

MAX_WORDS = 5  # in a group's name; anything longer is a sentence

_BULLET = re.compile(r"^\s*(?:\d{1,3}\s*[.):]|[-*•–])\s*")
# What follows a name in a list: an explanation behind a colon, a dash or a bracket.
_NAME_END = re.compile(r"\s*(?::|\s[-–—]\s|[(\[{;]|\.(?:\s|$)).*", re.DOTALL)
_MARKUP = re.compile(r"[*_`\"“”#<>]")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class DynamicSeeds:
    """The class whose groups the model is asked for: `agree` of `prompts` lists must name a group.
    Groups that the category already has are seeds too (hybrid seeds)."""

    category: SeedCategory
    prompts: int = 5
    agree: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.agree <= self.prompts:
            raise UsageError("`seed_agree` must be at least 1 and at most `seed_prompts`")

    def requests(
        self, pack: Pack, seed: int, temperature: float, truncation: Truncation, form: Form
    ) -> list[Request]:
        template = pack.template("seeds")
        plural = self.category.category.plural
        most, stop = template.limits(form)
        streams = [
            content_id("stream", str(seed), "seeds", plural, str(n)) for n in range(self.prompts)
        ]
        return [
            Request(
                template.render(form, plural=plural),
                seed=int(stream[:15], 16),
                temperature=temperature,
                max_tokens=most,
                stop=stop,
                truncation=truncation,
            )
            for stream in streams
        ]


def name_groups(
    how: DynamicSeeds, answers: Sequence[Answer], form: Form, progress: Progress
) -> SeedCategory:
    """The category with the groups from the lists, followed by those that it already had; a name
    that it knows, as a group or a variant, is that group.

    Raises ModelError if an answer is missing, UsageError if the lists agree on nothing.
    """
    category = how.category
    plural = category.category.plural
    for answer in answers:
        if answer.finish == "error":
            raise ModelError(f"a list of {plural} is missing, run it again: {answer.details}")
    lists = [read_list(a.text, cut=a.finish == "length", form=form) for a in answers]
    names = agreed(lists, how.agree)
    if not names and not category.groups:
        raise UsageError(
            f"the model's {how.prompts} lists agree on no {category.category.singular}: name "
            "your own (`group`), or ask for less agreement (`seed_agree`)"
        )
    progress.note(f"{len(names)} {plural} named by the model: {', '.join(names)}")
    own = [" | ".join((g, *category.variants.get(g, ()))) for g in category.groups]
    known = {normalise(n): g for g in category.groups for n in (g, *category.variants.get(g, ()))}
    bare = replace(category, groups=(), variants={})
    return replace(
        bare.joined([known.get(normalise(name), name) for name in names]).joined(own),
        named_by_model=names,
        list_answers=tuple(answer.key for answer in answers),
    )


def agreed(lists: Sequence[Sequence[str]], agree: int) -> dict[str, int]:
    """The names in at least `agree` of the lists, in the form and order of their first mention,
    with the number of lists that contain them."""
    counts = Counter(name for names in lists for name in {normalise(n) for n in names})
    first: dict[str, str] = {}
    for names in lists:
        for name in names:
            first.setdefault(normalise(name), name)
    return {name: counts[key] for key, name in first.items() if counts[key] >= agree}


def read_list(text: str, *, cut: bool = False, form: Form = "completion") -> list[str]:
    """The names in an answer: lines with a number or a bullet, or a single line with commas.

    The prompt of the completion form ends in "1.", so the first line of the answer is an entry. A
    last entry that was cut off by the token limit (`cut`) is left out. An answer without a list, or
    a refusal, gives no names.
    """
    if refusal(text):
        return []
    lines = single_spaces(text).split("\n")
    entries: list[tuple[int, str]] = []
    ended = False
    for number, line in enumerate(lines):
        opens = number == 0 and form == "completion"
        if not (match := _BULLET.match(line)) and not opens:
            # A list ends at the first text after it; text before it is an introduction.
            ended = ended or (bool(line.strip()) and bool(entries))
            continue
        if not ended:
            entries.append((number, line[match.end() if match else 0 :]))
    if cut and entries and entries[-1][0] == len(lines) - 1:
        entries.pop()
    if len(entries) <= 1:
        single = entries[0][1] if entries else next((x for x in lines if "," in x), "")
        if "," in single:
            parts = re.split(r",\s*(?:and\s+)?", single.rpartition(":")[2])
            entries = [(0, part) for part in (parts[:-1] if cut else parts)]
    names = [_NAME_END.sub("", _MARKUP.sub("", entry)).strip(" ,.") for _, entry in entries]
    return [
        " ".join(name.split())
        for name in names
        if _LETTER.search(name) and name.isprintable() and len(name.split()) <= MAX_WORDS
    ]
