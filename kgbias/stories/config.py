"""The settings for writing stories: the pack (whom they are about, in which words they are asked
for, what is read from them), frozen so that the same command is the same run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError
from kgbias.graph.types import Category, Group
from kgbias.ids import content_id
from kgbias.io.reading import read_table, read_text, read_toml
from kgbias.io.templates import Template, read_template
from kgbias.models.base import Form, ModelInfo, Settings
from kgbias.models.kinds import abilities, check_completes, form_for
from kgbias.models.truncate import Truncation
from kgbias.packs import MANIFEST, folder_of
from kgbias.parameters import Names, among, as_names
from kgbias.stories.read import READERS, VERSION

DEFAULT = "stories"
_FILE = "story.toml"
_READING = "read.toml"
RULES, MODEL = "rules", "model"
READER = f"{RULES}@{VERSION}"
BY_MODEL = f"{MODEL}@1"  # raised whenever `by_model` reads any answer differently


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a story is about: the words for the person in the prompt ("a middle-aged nurse"), and
    the group and category that they stand for."""

    name: str
    group: str
    category: str


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
    `person`; its wordings are what the stories tell of besides. `reading` asks a model what a story
    (`text`) says under these `attributes`; None for a pack that only rules can read."""

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
    reading: Template | None = None


@dataclass(frozen=True, kw_only=True)
class StoryConfig:
    """The parameters of a run of stories.

    Each of `people` has one story in each of `samples` rounds. A round has one wording of the
    template, and the wordings take turns: up to as many samples as there are wordings, no two
    stories have the same prompt. `min_p` cuts off tokens that are improbable beside the most
    probable one (`kgbias.models.truncate.Truncation`). `reader` is "rules", "model" (the one that
    tells, in a second request) or the spec of another model, which is asked in `reading_form` and,
    with `reading_schema`, for answers in a schema.
    """

    people: tuple[Person, ...]
    pack: StoryPack
    form: Form
    samples: int = 8
    temperature: float = 1.0
    min_p: float | None = None
    seed: int = 0
    reader: str = RULES
    reading_form: Form = "chat"
    reading_schema: bool = False

    def __post_init__(self) -> None:
        if not self.people:
            raise UsageError("there is nobody to tell stories about")
        if self.reader != RULES and self.pack.reading is None:
            raise UsageError(f"the pack {self.pack.name!r} has no {_READING}: only rules read it")
        if self.samples < 1:
            raise UsageError("`samples` must be at least 1")
        if not 0 <= self.temperature <= 10:
            raise UsageError("`temperature` must be between 0 and 10")
        if self.truncation and not self.temperature:
            raise UsageError("`min_p` needs a `temperature` above 0: at 0 no token is drawn")

    @property
    def truncation(self) -> Truncation:
        """Which tokens can be drawn."""
        return Truncation(None, None, self.min_p)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that the stories are about."""
        return tuple(dict.fromkeys(Group(p.group, p.category) for p in self.people))

    @property
    def categories(self) -> tuple[Category, ...]:
        return tuple(Category(name) for name in dict.fromkeys(p.category for p in self.people))

    def wording(self, sample: int) -> int:
        """The wording of the template in a round."""
        return sample % max(1, len(self.pack.template.wordings))

    def attributes(self, person: Person) -> tuple[Attribute, ...]:
        """What is read from a story about a person: what the prompt did not say."""
        return tuple(a for a in self.pack.attributes if person.category not in a.given)

    def as_dict(self, read_by: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The configuration as stored with the run, whose id follows from it. `read_by` is the
        model that reads: its `name`, and the id of it as it is `asked`."""
        people: dict[str, dict[str, list[str]]] = {}
        for p in self.people:
            people.setdefault(p.category, {}).setdefault(p.group, []).append(p.name)
        template, reading = self.pack.template, {}
        templates = {template.label: template.hash}
        if self.reader != RULES and self.pack.reading:
            templates[self.pack.reading.label] = self.pack.reading.hash
            reading = {
                "reader": BY_MODEL,
                "reading": {"form": self.reading_form, "schema": self.reading_schema},
                "read_by": dict(read_by or {}),
            }
        pack = {name: getattr(self.pack, name) for name in ("name", "version", "language", "hash")}
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
            "templates": templates,
            "pack": pack,
            **reading,
        }

    def default_name(
        self, model: ModelInfo, settings: Settings = (), read_by: Mapping[str, str] | None = None
    ) -> str:
        """A name for the run, for example "smollm2-stories-1f0c"."""
        asked = model.asked(settings)
        return f"{model.short}-stories-{content_id('name', asked, repr(self.as_dict(read_by)))[:4]}"


def configure_stories(
    model: str,
    *,
    people: str | Path | None = None,
    category: Names = (),
    group: Names = (),
    prompts: str | Path | None = None,
    form: Form | None = None,
    reader: str | None = None,
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
        reader: what reads the stories: "rules" (None), "model" (the same), or another's spec.
        parameters: `samples`, `temperature`, `min_p` (None: those of the pack) and `seed`.
    """
    pack = load_story_pack(prompts or DEFAULT)
    told = read_people(Path(people)) if people is not None else pack.people
    chosen = among(told, "category", as_names(category), " among the people")
    chosen = among(chosen, "group", as_names(group), " among the people")
    given = {name: value for name, value in parameters.items() if value is not None}
    able = abilities(model)
    own: dict[str, Any] = {"temperature": pack.temperature}
    if given.get("temperature") != 0:
        own["min_p"] = pack.min_p if able is None or able.structured == "no" else None
    read = {} if reader in (None, RULES) else _reading(model if reader == MODEL else reader, form)
    if reader not in (None, RULES, MODEL):
        check_completes(reader)
    return StoryConfig(
        people=chosen,
        pack=pack,
        form=_form(model, form),
        reader=reader or RULES,
        **{**own, **given, **read},
    )


def _form(model: str, form: Form | None) -> Form:
    able = abilities(model)
    return form_for(model, form) or ("chat" if able and able.structured != "no" else "completion")


def _reading(model: str, form: Form | None) -> dict[str, Any]:
    """How a model is asked to read: in answers that follow a schema, if it can be."""
    able = abilities(model)
    schema = able is not None and able.structured != "no"
    return {"reading_form": _form(model, form), "reading_schema": schema}


def read_people(path: Path) -> tuple[Person, ...]:
    """The people in a CSV file with the columns name, group and category. Raises DataError for a
    file without rows, or with an empty cell."""
    found = []
    for line, row in read_table(path, ("name", "group", "category"))[1]:
        texts = [" ".join(row[column].split()) for column in ("name", "group", "category")]
        if not all(texts):
            raise DataError(f"{path}, line {line}: a name, group or category is empty")
        found.append(Person(*texts))
    if not found:
        raise DataError(f"{path} has a header but no rows")
    return tuple(dict.fromkeys(found))


def load_story_pack(name: str | Path = DEFAULT) -> StoryPack:
    """The pack with that name, or in that folder. Raises UsageError for an unknown name, DataError
    for a folder with a faulty file."""
    return _read(folder_of(name, _FILE))


@cache
def _read(folder: Path) -> StoryPack:
    path = folder / MANIFEST
    data = read_toml(path)
    kinds: Mapping[str, Any] = {
        "name": str, "version": int, "language": str, "source": str, "attributes": dict,
        "people": str,
    }  # fmt: skip
    for key, kind in kinds.items():
        if not isinstance(data.get(key), kind):
            raise DataError(f"{path}: a pack of stories needs {key!r}")
    if data["people"] != Path(data["people"]).name:
        raise DataError(f"{path}: 'people' must be the name of a file beside it")
    for key in ("temperature", "min_p"):
        if isinstance(data.get(key, 1.0), bool) or not isinstance(data.get(key, 1.0), int | float):
            raise DataError(f"{path}: {key!r} must be a number")
    attributes = tuple(_attribute(path, name, entry) for name, entry in data["attributes"].items())
    files = [path, folder / _FILE, folder / data["people"]]
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
        hash=content_id("pack", *(text for f in files for text in (f.name, read_text(f)))),
        reading=read_template(
            folder / _READING, {"text": "", "attributes": list(data["attributes"])}
        )
        if (folder / _READING).is_file()
        else None,
    )


def _template_for_reading(path: Path, attributes: list[str]) -> Template | None:
    return read_template(path, {"text": "", "attributes": attributes}) if path.is_file() else None


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
