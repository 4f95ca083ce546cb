"""Profiles: characters that a model wrote for given names, or in stories about a person.

A profile is made of statements like any others, each yielded by a generation of its run. The
profile adds which of them belong to one character, under which attribute, and for whom it was
written. The character of a story is a profile too, which keeps where the story says what.

Its values are read from the generations, so review works for profiles too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from kgbias.graph.node_records import NodeRecord, declare_node
from kgbias.graph.types import storable
from kgbias.ids import content_id

READING_STRATEGY = "reading"
"""The strategy of generations that keep what a model was asked that read a story, and how that
ended; the story's own are beside them."""


@dataclass(frozen=True, slots=True)
class ProfilePart:
    """PART_OF: an attribute of a profile, the generation that said it, and the value as said. On
    writing, the value is "": a store reads it from the generation, as review left it. `begins` and
    `ends` are the place in the answer that it was read from; None if it is the whole answer."""

    attribute: Annotated[str, "such as hobbies"]
    generation_id: str
    value: str = ""
    begins: Annotated[int | None, "where a story says it: the first character, from 0"] = None
    ends: Annotated[int | None, "the character after the last"] = None


@declare_node(
    NodeRecord(
        "Profile",
        "a character that a model wrote for a given name, or in a story about a person",
        "name",
        table="profile",
    )
)
@dataclass(frozen=True, slots=True)
class Profile:
    """A character that a model wrote for a given name, or in a story about a person.

    Attributes:
        name: the given name; for a story, what the prompt called the person ("a nurse").
        group_id: the group of the run that the name stands for.
        labels: by kind: "group", "ethnicity", "gender"; for a story "group" and "category".
        parts: its values, in the order they were said.
    """

    run_id: str
    path: Annotated[str, "its place in the run"]
    name: Annotated[str, "the given name, or what a prompt called the person"]
    group_id: str
    labels: Annotated[
        Mapping[str, str], "what the name stands for (group, ethnicity, gender, category), as JSON"
    ] = field(default_factory=dict)
    parts: tuple[ProfilePart, ...] = ()

    @property
    def id(self) -> str:
        return content_id("profile", self.run_id, storable(self.path))

    @property
    def name_id(self) -> str:
        """The id of the given name, shared by runs."""
        return content_id("given name", storable(self.name))

    def prompt_key(self, wordings: int) -> tuple[str, int]:
        """Of a story: what its prompt called the person, and which of the template's wordings it
        had. Stories about a group that share both had the same prompt."""
        return self.name, int(self.path.rpartition("/")[2]) % max(1, wordings)

    def values_of(self, attribute: str) -> tuple[str, ...]:
        """The profile's values for an attribute."""
        return tuple(p.value for p in self.parts if p.attribute == attribute)

    def values_by_attribute(self) -> dict[str, tuple[str, ...]]:
        """The profile's values, by attribute."""
        values_found: dict[str, list[str]] = {}
        for part in self.parts:
            values_found.setdefault(part.attribute, []).append(part.value)
        return {attribute: tuple(values) for attribute, values in values_found.items()}


def describe_reader(config: Mapping[str, Any]) -> str:
    """What read the stories of a run with this stored configuration, in words: "rules@1", or
    "openai:m (model@1)"."""
    reader = config["reader"]
    return f"{config['read_by']['name']} ({reader})" if "read_by" in config else str(reader)


def list_attributes(profiles: Iterable[Profile]) -> tuple[str, ...]:
    """The attributes that any of the profiles has, in order of first mention."""
    return tuple(dict.fromkeys(p.attribute for profile in profiles for p in profile.parts))


def list_profile_labels(profiles: Sequence[Profile], kind: str) -> list[str]:
    """What the name of each profile stands for; "" if that is not known."""
    return [profile.labels.get(kind, "") for profile in profiles]
