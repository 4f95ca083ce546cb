"""The settings for writing stories: the pack (whom they are about, in which words they are asked
for, what is read from them), frozen so that the same command is the same run."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from kgbias.crawl.people import choose_subjects
from kgbias.errors import DataError, UsageError
from kgbias.graph.generation_run import (
    GenerationConfig,
    Person,
    PromptPack,
    choose_form,
    pack_entries,
    pack_identity,
    request_settings,
    takes_schema,
)
from kgbias.graph.types import Group
from kgbias.io.tables import TableFormat, read_required_cells
from kgbias.io.tables_in_memory import Table, as_table_file
from kgbias.io.templates import PromptTemplate, read_template
from kgbias.methods.stories.rule_reader import READERS, VERSION
from kgbias.models.base import FormParameter, PromptForm
from kgbias.models.kinds import check_completes
from kgbias.packs import MANIFEST, find_folder, read_manifest
from kgbias.parameters import Names, Parameter, as_names

DEFAULT_PACK = "stories"
_STORY_FILE = "story.toml"
_READING_FILE = "read.toml"
RULES, MODEL = "rules", "model"
RULE_READER_VERSION = f"{RULES}@{VERSION}"
MODEL_READER_VERSION = f"{MODEL}@1"  # raised whenever `model_reader` reads any answer differently


@dataclass(frozen=True, slots=True)
class StoryAttribute:
    """Something that is read from stories: its name, the predicate of its statements ("Nurses are
    cast as women"), and the categories whose prompts already say it."""

    name: str
    predicate: str
    given_categories: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoryPack(PromptPack):
    """How stories are asked for, and what is read from them. The template "story" names the
    `person`; its wordings are what the stories tell of besides. `reading` asks a model what a story
    (`text`) says under these `attributes`; None for a pack that only rules can read."""

    people: tuple[Person, ...]
    attributes: tuple[StoryAttribute, ...]
    template: PromptTemplate
    reading: PromptTemplate | None = None


@dataclass(frozen=True, kw_only=True)
class StoryConfig(GenerationConfig):
    """The parameters of a run of stories.

    Each of `people` has one story in each of `samples` rounds. A round has one wording of the
    template, and the wordings take turns: up to as many samples as there are wordings, no two
    stories have the same prompt. `reader` is "rules", "model" (the one that tells, in a second
    request) or the spec of another model, which is asked in `reading_form` and, with
    `reading_schema`, for answers in a schema; `read_by` is the model that reads: its name, and the
    id of it as it is asked.
    """

    kind = "stories"
    people: tuple[Person, ...]
    pack: StoryPack
    form: FormParameter
    samples: Annotated[
        int, Parameter("Stories about each person", typed=True, at_least=1, always=True)
    ] = 8
    reader: Annotated[
        str,
        Parameter(
            "What reads the stories: rules, model (the same, in a second request for each) or the "
            "spec of another model. A model's values count only if the story has them",
            metavar="rules|model|SPEC",
            always=True,
        ),
    ] = RULES
    reading_form: PromptForm = "chat"
    reading_schema: bool = False
    read_by: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not self.people:
            raise UsageError("there is nobody to tell stories about")
        if self.reader != RULES and self.pack.reading is None:
            raise UsageError(
                f"the pack {self.pack.name!r} has no {_READING_FILE}: only rules read it"
            )
        super().__post_init__()

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that the stories are about."""
        return tuple(dict.fromkeys(Group(p.group, p.category) for p in self.people))

    def wording(self, sample: int) -> int:
        """The wording of the template in a round."""
        return sample % max(1, len(self.pack.template.wordings))

    def attributes(self, person: Person) -> tuple[StoryAttribute, ...]:
        """What is read from a story about a person: what the prompt did not say."""
        return tuple(a for a in self.pack.attributes if person.category not in a.given_categories)

    def record(self) -> dict[str, Any]:
        people: dict[str, dict[str, list[str]]] = {}
        for person in self.people:
            people.setdefault(person.category, {}).setdefault(person.group, []).append(person.name)
        template, reading = self.pack.template, {}
        templates = {template.label: template.hash}
        if self.reader != RULES and self.pack.reading:
            templates[self.pack.reading.label] = self.pack.reading.hash
            reading = {
                "reader": MODEL_READER_VERSION,
                "reading": {"form": self.reading_form, "schema": self.reading_schema},
                "read_by": dict(zip(("name", "asked"), self.read_by or (), strict=False)),
            }
        return {
            "people": people,
            "attributes": {a.name: a.predicate for a in self.pack.attributes},
            "reader": RULE_READER_VERSION,
            "form": self.form,
            "samples": self.samples,
            "wordings": len(self.pack.template.wordings),
            "temperature": self.temperature,
            **self.truncation.as_dict(),
            "seed": self.seed,
            "templates": templates,
            "pack": pack_identity(self.pack),
            **reading,
        }


def configure_stories(
    model: str,
    *,
    people: Table | None = None,
    category: Names = (),
    group: Names = (),
    seeds: Names = (),
    prompts: str | Path | None = None,
    form: PromptForm | None = None,
    reader: str | None = None,
    **parameters: Any,
) -> StoryConfig:
    """The configuration for stories by the model with this spec.

    Args:
        model: the spec.
        people: a CSV file with the columns name (the words for a person), group and category
            (None: those of the pack).
        category, group, seeds: whom to ask about, as for a crawl: people of these categories, of
            these groups by name, and of the groups in these files (none: everybody). A group that
            `people` lack is asked about in the words of the file's column `person` ("a nurse").
        prompts: a pack of stories, by its name or folder.
        form: "chat" or "completion" (None: chat for a server, completion for a local model), also
            for the same model as a reader.
        reader: what reads the stories: "rules" (None), "model" (the same), or another's spec.
        parameters: `samples`, `temperature`, `min_p` (None: those of the pack) and `seed`.
    """
    pack = load_story_pack(prompts or DEFAULT_PACK)
    people_known = read_people(people) if people is not None else pack.people
    reader_spec = model if reader == MODEL else reader or RULES
    reading: dict[str, Any] = {}
    if reader_spec != RULES:
        if reader_spec != model:
            check_completes(reader_spec)
        reader_form = form if reader_spec == model else None
        reading = {
            "reading_form": choose_form(reader_spec, reader_form),
            "reading_schema": takes_schema(reader_spec),
        }
    return StoryConfig(
        people=choose_subjects(
            people_known, category, group, as_names(seeds), lambda person: person
        ),
        pack=pack,
        reader=reader or RULES,
        **request_settings(model, pack, form, parameters),
        **reading,
    )


PEOPLE_FORMAT = TableFormat("people: `stories --people`", (("name",), ("group",), ("category",)))


def read_people(source: Table) -> tuple[Person, ...]:
    """The people in a table with the columns name, group and category. Raises DataError for one
    without rows, or with an empty cell."""
    with as_table_file(source, PEOPLE_FORMAT.columns, name="people") as path:
        rows = read_required_cells(path, PEOPLE_FORMAT.columns)
        return tuple(dict.fromkeys(Person(*cells) for _, cells in rows))


def load_story_pack(name: str | Path = DEFAULT_PACK) -> StoryPack:
    """The pack with that name, or in that folder. Raises UsageError for an unknown name, DataError
    for a folder with a faulty file."""
    return _load_pack(find_folder(name, _STORY_FILE))


@cache
def _load_pack(folder: Path) -> StoryPack:
    path = folder / MANIFEST
    data = read_manifest(folder, "stories", attributes=dict, people=Path)
    attributes = tuple(
        _read_attribute(path, name, entry) for name, entry in data["attributes"].items()
    )
    template = read_template(folder / _STORY_FILE, {"person": ""})
    return StoryPack(
        **pack_entries(data, path, folder / _STORY_FILE, folder / data["people"]),
        people=read_people(folder / data["people"]),
        attributes=attributes,
        template=template,
        reading=_read_reading_template(folder / _READING_FILE, list(data["attributes"])),
    )


def _read_reading_template(path: Path, attributes: list[str]) -> PromptTemplate | None:
    return read_template(path, {"text": "", "attributes": attributes}) if path.is_file() else None


def _read_attribute(path: Path, name: str, entry: Any) -> StoryAttribute:
    if name not in READERS:
        raise DataError(f"{path}: [attributes.{name}]: what is read is one of {', '.join(READERS)}")
    if not isinstance(entry, dict) or not isinstance(entry.get("predicate"), str):
        raise DataError(f"{path}: [attributes.{name}] needs 'predicate', a text")
    given_categories = entry.get("given", [])
    if not isinstance(given_categories, list) or not all(
        isinstance(c, str) for c in given_categories
    ):
        raise DataError(f"{path}: 'given' of [attributes.{name}] must be a list of texts")
    if unknown_keys := entry.keys() - {"predicate", "given"}:
        raise DataError(f"{path}: [attributes.{name}] has no {min(unknown_keys)!r}")
    return StoryAttribute(name, entry["predicate"], tuple(given_categories))
