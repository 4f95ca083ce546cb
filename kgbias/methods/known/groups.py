"""The groups that a table of recorded stereotypes is about, with their names, without a crawl.

A table says "Texan", "germans" or "People of Oman,". A group is found by any of its names: the
nations of `recorded/nations.csv`, the seeds of SeeGULL's states, and the published groups. The
names of a nation follow the forms of the published nationalities, so all nations have the same
forms. English columns of SeeGULL Multilingual are translated by machine; `recorded/corrected.csv`
has the identities that came out as something else ("Berliner" as Donut).
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from kgbias.crawl.seeds import published_seeds, read_seeds
from kgbias.evidence.indicators import shipped_indicators
from kgbias.evidence.names import group_names, list_name_texts, normalise_name
from kgbias.graph.stereotypes import Stereotype
from kgbias.graph.types import Group, GroupName

NATIONALITY = "nationality"
_PLACE_PHRASE = re.compile(r"^(?:the )?people (?:of|from) ", re.IGNORECASE)
# As the published nationalities have them (evidence/word_sets/indicators.toml); those that are
# shortest and differ most stand first.
_NATION_FORMS = (
    ("{}s", "noun"),
    ("{} people", "adjective"),
    ("people from {}", "place"),
    ("the people of {}", "place"),
    ("people who are {}", "adjective"),
    ("{} citizens", "adjective"),
    ("citizens of {}", "place"),
    ("{} nationals", "adjective"),
)


def find_recorded_groups(table: Sequence[Stereotype]) -> dict[str, Group]:
    """The group that each identity of a table stands for, in the table's category if that has one
    ("Georgians" of the states of the US); without those of which no names are known."""
    by_name = _groups_by_name()
    found: dict[str, Group] = {}
    for identity, category in {entry.group: entry.category for entry in table}.items():
        name = _PLACE_PHRASE.sub("", identity.strip(" .,،"))
        corrected = _corrections().get(name.casefold(), name)
        keys = [normalise_name(corrected), normalise_name(identity)]
        groups = [group for key in keys for group in by_name.get(key, ())]
        if groups:
            found[identity] = next((g for g in groups if g.category == category), groups[0])
    return found


def recorded_group_names(group: Group) -> tuple[GroupName, ...]:
    """The names of such a group, spelt as in running text."""
    if row := _nations().get(group.name):
        return tuple(_iter_nation_names(group, row))
    return group_names(group, shipped_indicators())


def adjective_name(group: Group) -> str | None:
    """A nation by its adjective ("the German"), None for other groups."""
    row = _nations().get(group.name)
    return f"the {row['adjective']}" if row else None


def _iter_nation_names(group: Group, row: Mapping[str, str]) -> Iterator[GroupName]:
    root = row["adjective"].casefold()
    for form, column in _NATION_FORMS:
        text = form.replace("{}", row[column])
        if column == "noun":  # irregular plurals (Danes), and none at all: "the French"
            text = row["noun"] or f"the {row['adjective']}"
        yield GroupName(text, group.id, form, root)


@cache
def _groups_by_name() -> Mapping[str, Sequence[Group]]:
    by_name: dict[str, list[Group]] = defaultdict(list)
    for name, row in _nations().items():
        group = Group(name, NATIONALITY)
        for text in (name, row["adjective"], row["noun"], row["place"], *row["other"].split("|")):
            by_name[normalise_name(text)].append(group)
    published = {id(seed): seed for seed in published_seeds().values()}  # aliases have the same
    for seed in (*read_seeds("seegull"), *published.values()):
        for group in seed.as_groups():
            if group.name not in _nations():
                for text in (group.name, *list_name_texts(group, shipped_indicators())):
                    by_name[normalise_name(text)].append(group)
    by_name.pop("", None)
    return by_name


@cache
def _nations() -> Mapping[str, Mapping[str, str]]:
    return {row["group"]: row for row in _read_shipped("nations.csv")}


@cache
def _corrections() -> Mapping[str, str]:
    return {row["identity"]: row["group"] for row in _read_shipped("corrected.csv")}


def _read_shipped(name: str) -> list[dict[str, str]]:
    text = (files("kgbias.methods.known") / "recorded" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
