"""The settings for writing stories: the pack (whom they are about, in which words they are asked
for, what is read from them), frozen so that the same command is the same run."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError
from kgbias.graph.rounds import Person, RoundsConfig, chosen_people, how_to_ask, identity
from kgbias.graph.types import Group
from kgbias.io.reading import filled_rows
from kgbias.io.templates import Template, read_template
from kgbias.models.base import Form
from kgbias.packs import MANIFEST, folder_of, hash_of, read_manifest
from kgbias.parameters import Names
from kgbias.stories.read import READERS, VERSION

DEFAULT = "stories"
_FILE = "story.toml"
READER = f"rules@{VERSION}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """Something that is read from stories: its name, the predicate of its statements ("Nurses are
    cast as women"), and the categories whose prompts already say it."""

    name: str
    predicate: str
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoryPack:
    """How stories are asked for, and what is read from them. The template "story" names the
    `person`; its wordings are what the stories tell of besides."""

    name: str
    version: int
    language: str
    source: str
    people: tuple[Person, ...]
    attributes: tuple[Attribute, ...]
    template: Template
    temperature: float
    min_p: float | None
    hash: str


@dataclass(frozen=True, kw_only=True)
class StoryConfig(RoundsConfig):
    """The parameters of a run of stories.

    Each of `people` has one story in each of `samples` rounds. A round has one wording of the
    template, and the wordings take turns: up to as many samples as there are wordings, no two
    stories have the same prompt.
    """

    kind = "stories"
    people: tuple[Person, ...]
    pack: StoryPack
    form: Form
    samples: int = 8

    def __post_init__(self) -> None:
        if not self.people:
            raise UsageError("there is nobody to tell stories about")
        super().__post_init__()

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that the stories are about."""
        return tuple(dict.fromkeys(Group(p.group, p.category) for p in self.people))

    def wording(self, sample: int) -> int:
        """The wording of the template in a round."""
        return sample % max(1, len(self.pack.template.wordings))

    def attributes(self, person: Person) -> tuple[Attribute, ...]:
        """What is read from a story about a person: what the prompt did not say."""
        return tuple(a for a in self.pack.attributes if person.category not in a.given)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as stored with the run, whose id follows from it."""
        people: dict[str, dict[str, list[str]]] = {}
        for p in self.people:
            people.setdefault(p.category, {}).setdefault(p.group, []).append(p.name)
        template = self.pack.template
        return {
            "people": people,
            "attributes": {a.name: a.predicate for a in self.pack.attributes},
            "reader": READER,
            "form": self.form,
            "samples": self.samples,
            "wordings": len(self.pack.template.wordings),
            "temperature": self.temperature,
            **self.truncation.as_dict(),
            "seed": self.seed,
            "templates": {template.label: template.hash},
            "pack": identity(self.pack),
        }


def configure_stories(
    model: str,
    *,
    people: str | Path | None = None,
    category: Names = (),
    group: Names = (),
    prompts: str | Path | None = None,
    form: Form | None = None,
    **parameters: Any,
) -> StoryConfig:
    """The configuration for stories by the model with this spec.

    Args:
        model: the spec.
        people: a CSV file with the columns name (the words for a person), group and category
            (None: those of the pack).
        category: only people of these categories (none: all).
        group: only people of these groups (none: all).
        prompts: a pack of stories, by its name or folder.
        form: "chat" or "completion" (None: chat for a server, completion for a local model).
        parameters: `samples`, `temperature`, `min_p` (None: those of the pack) and `seed`.
    """
    pack = load_story_pack(prompts or DEFAULT)
    told = read_people(Path(people)) if people is not None else pack.people
    return StoryConfig(
        people=chosen_people(told, category, group),
        pack=pack,
        **how_to_ask(model, pack, form, parameters),
    )


def read_people(path: Path) -> tuple[Person, ...]:
    """The people in a CSV file with the columns name, group and category. Raises DataError for a
    file without rows, or with an empty cell."""
    rows = filled_rows(path, ("name", "group", "category"))
    return tuple(dict.fromkeys(Person(*cells) for _, cells in rows))


def load_story_pack(name: str | Path = DEFAULT) -> StoryPack:
    """The pack with that name, or in that folder. Raises UsageError for an unknown name, DataError
    for a folder with a faulty file."""
    return _read(folder_of(name, _FILE))


@cache
def _read(folder: Path) -> StoryPack:
    path = folder / MANIFEST
    data = read_manifest(folder, "stories", attributes=dict, people=Path)
    attributes = tuple(_attribute(path, name, entry) for name, entry in data["attributes"].items())
    template = read_template(folder / _FILE, {"person": ""})
    return StoryPack(
        name=data["name"],
        version=data["version"],
        language=data["language"],
        source=data["source"],
        people=read_people(folder / data["people"]),
        attributes=attributes,
        template=template,
        temperature=float(data.get("temperature", 1.0)),
        min_p=data.get("min_p"),
        hash=hash_of(path, folder / _FILE, folder / data["people"]),
    )


def _attribute(path: Path, name: str, entry: Any) -> Attribute:
    if name not in READERS:
        raise DataError(f"{path}: [attributes.{name}]: what is read is one of {', '.join(READERS)}")
    if not isinstance(entry, dict) or not isinstance(entry.get("predicate"), str):
        raise DataError(f"{path}: [attributes.{name}] needs 'predicate', a text")
    given = entry.get("given", [])
    if not isinstance(given, list) or not all(isinstance(c, str) for c in given):
        raise DataError(f"{path}: 'given' of [attributes.{name}] must be a list of texts")
    if wrong := entry.keys() - {"predicate", "given"}:
        raise DataError(f"{path}: [attributes.{name}] has no {min(wrong)!r}")
    return Attribute(name, entry["predicate"], tuple(given))
