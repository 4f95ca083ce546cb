"""The settings for pairs: which requests are made, for whom, and what is changed beside that,
frozen so that the same command is the same run.

The stored configuration holds the requests and the people. From it every place of the run follows
again (`stored_places`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.crawl.people import choose_subjects, count_groups_with_people
from kgbias.errors import DataError, UsageError
from kgbias.graph.generation_run import (
    GenerationConfig,
    Person,
    PromptPack,
    pack_entries,
    pack_identity,
    request_settings,
)
from kgbias.graph.types import Group
from kgbias.io.tables import TableFormat, read_required_cells, read_table
from kgbias.io.tables_in_memory import Table, as_table_file
from kgbias.io.templates import PromptTemplate, read_template
from kgbias.models.base import FormParameter, PromptForm
from kgbias.packs import MANIFEST, find_folder, read_manifest
from kgbias.parameters import Names, as_names, select_named
from kgbias.study.kinds import Suggestion

DEFAULT_PACK = "pairs"
SLOT_NAMES = ("name", "group")
ASKED, AGAIN, GREETED = "asked", "asked again", "with a greeting"
ROUNDS = (ASKED, AGAIN, GREETED)
"""How each request is made in turn: as it is, as it is with another random seed, and with a
greeting before it."""
_TEMPLATE_FILE = "request.toml"


@dataclass(frozen=True, slots=True)
class SlotPerson(Person):
    """Who fills a `slot`, "name" ("Emily") or "group" ("a woman"). `number` counts the people of a
    group and slot: those with the same number are compared."""

    slot: str
    number: int


@dataclass(frozen=True, slots=True)
class RequestWording:
    """One wording of a request, with {name} or {group} in it; `number` counts all wordings."""

    request: str
    text: str
    number: int

    @property
    def slot(self) -> str:
        """What it has to be filled with."""
        return next(slot for slot in SLOT_NAMES if f"{{{slot}}}" in self.text)

    def about(self, person: SlotPerson) -> str:
        """The request about this person; the words begin with a capital at the start."""
        words, slot_mark = person.name, f"{{{self.slot}}}"
        capitalised = words[:1].upper() + words[1:]
        text_begun = (
            self.text.replace(slot_mark, capitalised, 1)
            if self.text.startswith(slot_mark)
            else self.text
        )
        return text_begun.replace(slot_mark, words)


@dataclass(frozen=True, slots=True)
class PairPlace:
    """One thing to ask: a request about a person, in one of the rounds."""

    wording: RequestWording
    person: SlotPerson
    round: int

    @property
    def path(self) -> str:
        p = self.person
        return f"{p.category}/{p.group}/{p.name}/{self.wording.number}.{p.number}/{self.round}"

    @property
    def round_name(self) -> str:
        """Which of `ROUNDS` it is."""
        return ROUNDS[self.round % len(ROUNDS)]

    @property
    def sample(self) -> int:
        return self.round // len(ROUNDS)


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """An answer with its place: how it ended, its text, and whether its limit cut it off."""

    place: PairPlace
    outcome: str
    text: str
    truncated: bool = False


@dataclass(frozen=True, kw_only=True)
class PairsPack(PromptPack):
    """How requests are made: the requests and people that come with it, the template "request",
    which has the `text`, and the greeting that should change nothing."""

    greeting: str
    wordings: tuple[RequestWording, ...]
    people: tuple[SlotPerson, ...]
    template: PromptTemplate


@dataclass(frozen=True, kw_only=True)
class PairsConfig(GenerationConfig):
    """The parameters of a run of pairs.

    Each request is made about each of the people that fit its slot, three times in each of
    `samples`: as it is, again, and with a greeting (`ROUNDS`).
    """

    kind = "pairs"
    wordings: tuple[RequestWording, ...]
    people: tuple[SlotPerson, ...]
    pack: PairsPack
    form: FormParameter

    def __post_init__(self) -> None:
        super().__post_init__()
        slots = {w.slot for w in self.wordings}
        if empty_slots := [
            s
            for s in SLOT_NAMES
            if s in slots and not any(person.slot == s for person in self.people)
        ]:
            raise UsageError(f"requests have a {{{empty_slots[0]}}}, and nobody to put there")
        groups: dict[str, set[str]] = {}
        for person in self.people:
            groups.setdefault(person.category, set()).add(person.group)
        for category, category_groups in groups.items():
            if len(category_groups) < 2:
                raise UsageError(
                    f"the category {category!r} needs two groups to compare, and has only "
                    f"{min(category_groups)!r}"
                )

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that are compared."""
        return tuple(dict.fromkeys(Group(p.group, p.category) for p in self.people))

    @property
    def rounds(self) -> int:
        return self.samples * len(ROUNDS)

    def places(self, round: int) -> list[PairPlace]:
        """What is asked in a round."""
        return list(iter_places(self.wordings, self.people, round))

    def record(self) -> dict[str, Any]:
        # `stored_places` reads it back.
        template = self.pack.template
        return {
            "requests": [[w.request, w.text] for w in self.wordings],
            "people": [(p.slot, p.name, p.group, p.category) for p in self.people],
            "greeting": self.pack.greeting,
            "form": self.form,
            "samples": self.samples,
            "temperature": self.temperature,
            **self.truncation.as_dict(),
            "seed": self.seed,
            "templates": {template.label: template.hash},
            "pack": pack_identity(self.pack),
        }


def iter_places(
    wordings: Sequence[RequestWording], people: Sequence[SlotPerson], round: int
) -> Iterator[PairPlace]:
    """Each request about each of the people that fit its slot."""
    return (PairPlace(w, p, round) for w in wordings for p in people if p.slot == w.slot)


def stored_places(config: Mapping[str, Any]) -> list[PairPlace]:
    """Everything that a run with this stored configuration asks, in order."""
    wordings = _number_wordings(config["requests"])
    people = _number_people(config["people"])
    rounds = range(int(config["samples"]) * len(ROUNDS))
    return [place for n in rounds for place in iter_places(wordings, people, n)]


def configure_pairs(
    model: str,
    *,
    requests: Table | None = None,
    people: Table | None = None,
    request: Names = (),
    category: Names = (),
    group: Names = (),
    seeds: Names = (),
    prompts: str | Path | None = None,
    form: PromptForm | None = None,
    **parameters: Any,
) -> PairsConfig:
    """The configuration for pairs asked of the model with this spec.

    Args:
        model: the spec.
        requests: a CSV file with the columns request (its name) and text, one row for each wording,
            with {name} or {group} in it (None: those of the pack).
        people: a CSV file with the columns slot (name or group), name (the words), group and
            category (None: those of the pack).
        request: only these (none: all).
        category, group, seeds: whom to ask about, as for a crawl: people of these categories, of
            these groups by name, and of the groups in these files (none: everybody). A group that
            `people` lack fills {group} in the words of the file's column `person` ("a nurse");
            requests that nobody can fill are then left out.
        prompts: a pack of pairs, by its name or folder.
        form: "chat" or "completion" (None: chat for a server, completion for a local model).
        parameters: `samples`, `temperature`, `min_p` (None: those of the pack) and `seed`.
    """
    pack = load_pairs_pack(prompts or DEFAULT_PACK)
    wordings = pack.wordings if requests is None else read_requests(requests)
    people_known = pack.people if people is None else read_slot_people(people)
    wordings = select_named(wordings, "request", as_names(request))
    people_chosen = choose_subjects(
        people_known, category, group, as_names(seeds), _person_of_group
    )
    if seeds or not {p.group for p in people_chosen} <= {p.group for p in people_known}:
        slots_filled = {p.slot for p in people_chosen}
        wordings = tuple(w for w in wordings if w.slot in slots_filled) or wordings
    slots = {w.slot for w in wordings}
    people_asked = [p for p in people_chosen if p.slot in slots]
    _check_numbers(people_asked, "")
    return PairsConfig(
        wordings=_number_wordings([(w.request, w.text) for w in wordings]),
        people=_number_people([(p.slot, p.name, p.group, p.category) for p in people_asked]),
        pack=pack,
        **request_settings(model, pack, form, parameters),
    )


REQUESTS_FORMAT = TableFormat("requests: `pairs --requests`", (("request",), ("text",)))
PEOPLE_FORMAT = TableFormat(
    "people: `pairs --people`", (("slot",), ("name",), ("group",), ("category",))
)


def read_requests(source: Table) -> tuple[RequestWording, ...]:
    """The requests in a table with the columns request and text. Raises DataError for a text
    that has not exactly one kind of slot, an empty cell, or a file without rows."""
    with as_table_file(source, ("request", "text"), name="requests") as path:
        return _number_wordings(list(dict.fromkeys(_parse_requests(path))))


def _parse_requests(path: Path) -> list[tuple[str, str]]:
    requests = []
    for line, row in read_table(path, REQUESTS_FORMAT.columns).rows:
        request, text = " ".join(row["request"].split()), row["text"].strip()
        if not request or not text:
            raise DataError(f"{path}, line {line}: the request or its text is empty")
        if sum(f"{{{slot}}}" in text for slot in SLOT_NAMES) != 1:
            raise DataError(
                f"{path}, line {line}: the text needs either {{name}} or {{group}}, not both"
            )
        requests.append((request, text))
    if not requests:
        raise DataError(f"{path} has a header but no rows")
    return requests


def _number_wordings(rows: Sequence[Sequence[str]]) -> tuple[RequestWording, ...]:
    return tuple(RequestWording(request, text, n) for n, (request, text) in enumerate(rows))


def read_slot_people(source: Table) -> tuple[SlotPerson, ...]:
    """The people in a table with the columns slot, name, group and category. Raises DataError
    for an empty cell, an unknown slot, a file without rows, words that are there twice in a slot of
    a category, or groups of a category with different numbers of people in a slot."""
    with as_table_file(source, ("slot", "name", "group", "category"), name="people") as path:
        return _parse_people(path)


def _parse_people(path: Path) -> tuple[SlotPerson, ...]:
    rows: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for line, cells in read_required_cells(path, PEOPLE_FORMAT.columns):
        slot, name, _, category = cells
        if slot not in SLOT_NAMES:
            raise DataError(f"{path}, line {line}: a slot is name or group, not {slot!r}")
        if earlier := rows.get((slot, name, category)):
            raise DataError(
                f"{path}, line {line}: {name!r} is there twice"
                if earlier == cells
                else f"{path}, line {line}: {name!r} stands for {earlier[2]!r} already: within a "
                "category, everybody needs a name of their own"
            )
        rows[slot, name, category] = cells
    people = _number_people(list(rows.values()))
    _check_numbers(people, f"{path}: ")
    return people


def _check_numbers(people: Sequence[SlotPerson], location: str) -> None:
    """Raise DataError for groups of a category with different numbers of people in a slot."""
    for category in dict.fromkeys(p.category for p in people):
        category_people = [p for p in people if p.category == category]
        for slot in dict.fromkeys(p.slot for p in category_people):
            counts = Counter({p.group: 0 for p in category_people})
            counts.update(p.group for p in category_people if p.slot == slot)
            if len(set(counts.values())) > 1:
                raise DataError(
                    f"{location}the groups of {category!r} need equally many people with the slot "
                    f"{slot!r}, because the n-th of one is compared with the n-th of another: "
                    + ", ".join(f"{group} {n}" for group, n in counts.items())
                )


def _person_of_group(person: Person) -> SlotPerson:
    """Somebody who stands for a group of one's own; the number is given with all others."""
    return SlotPerson(person.name, person.group, person.category, "group", 0)


def _number_people(rows: Sequence[Sequence[str]]) -> tuple[SlotPerson, ...]:
    count: dict[tuple[str, ...], int] = {}
    people = []
    for slot, name, group, category in rows:
        number = count.get(key := (slot, group, category), 0)
        count[key] = number + 1
        people.append(SlotPerson(name, group, category, slot, number))
    return tuple(people)


def load_pairs_pack(name: str | Path = DEFAULT_PACK) -> PairsPack:
    """The pack with that name, or in that folder. Raises UsageError for an unknown name, DataError
    for a folder with a faulty file."""
    return _load_pack(find_folder(name, _TEMPLATE_FILE))


@cache
def _load_pack(folder: Path) -> PairsPack:
    path = folder / MANIFEST
    data = read_manifest(folder, "pairs", greeting=str, requests=Path, people=Path)
    files = (path, folder / _TEMPLATE_FILE, folder / data["requests"], folder / data["people"])
    return PairsPack(
        **pack_entries(data, *files),
        greeting=data["greeting"],
        wordings=read_requests(folder / data["requests"]),
        people=read_slot_people(folder / data["people"]),
        template=read_template(folder / _TEMPLATE_FILE),
    )


def suggest_pairs(groups: Sequence[Group], folder: Path) -> Iterator[Suggestion]:
    """Requests about people of the pack, in categories of which it knows two groups or more."""
    counts = count_groups_with_people(groups, load_pairs_pack().people)
    if categories := [category for category, n in counts.items() if n > 1]:
        yield Suggestion({"category": categories})
