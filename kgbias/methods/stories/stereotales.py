"""Stories in the form of StereoTales' tables (Le Jeune et al. 2026, arXiv 2605.10442), out and in.

The form is that of the dataset's `*_stories` tables, as its pipeline writes them and reads them for
associations (Giskard-AI/stereotales-pipeline, step 2): a row for each story, with the attribute
that the prompt gave, and what was extracted as a JSON object with one value for each attribute,
"unknown" if the story does not say. Stories of kgbias may say several things under one attribute:
they stand in one text, separated by "; ". A column of its own says what read them.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.errors import DataError, MissingExtra, UsageError, first_line, no_such
from kgbias.export import ExportContent, Format
from kgbias.export.tables import write_parquet_table
from kgbias.graph.profiles import Profile, ProfilePart, describe_reader
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import (
    Answer,
    Category,
    Generation,
    Group,
    Outcome,
    Run,
    Triple,
    node_id,
    storable,
)
from kgbias.ids import content_id
from kgbias.ingest.formats import ImportFormat
from kgbias.ingest.import_run import ImportResult
from kgbias.io.progress import Progress
from kgbias.io.reading import MAX_FILE_BYTES, parse_json, read_bytes, unpack
from kgbias.io.tables import TableFormat, read_sheet
from kgbias.io.text import CONTENT_WARNING
from kgbias.language.words import is_refusal
from kgbias.methods.stories.config import StoryConfig, load_story_pack
from kgbias.methods.stories.write import ARM, collect_stories
from kgbias.models.base import ModelInfo

FORMAT_NAME = "stereotales"
COLUMNS = (
    "sample_id",
    "output_id",
    "generator_model",
    "language",
    "target_attribute",
    "target_attribute_value",
    "attribute_value_key",
    "scenario",
    "scenario_key",
    "scenario_group",
    "character",
    "prompt_template",
    "user_prompt",
    "story",
    "extraction_score",
    "extracted_attributes_json",
)
READER_COLUMN = "reader"  # the column that is ours
_REQUIRED_COLUMNS = (
    "sample_id",
    "generator_model",
    "language",
    "target_attribute",
    "target_attribute_value",
    "story",
    "extracted_attributes_json",
)
TABLE_FORMAT = TableFormat(
    "stories: `import --format stereotales`",
    tuple((name,) for name in _REQUIRED_COLUMNS),
    tuple(name for name in COLUMNS if name not in _REQUIRED_COLUMNS),
)
_UNKNOWN_VALUES = frozenset({"", "unknown", "other"})
_VALUE_SEPARATOR = "; "
_GENDERS = {"woman": "Women", "man": "Men", "non-binary": "Non-binary people"}
# Theirs, besides gender: a group is called "religion: Hindu", as "good" says nothing alone.
_ATTRIBUTES = frozenset(
    """age gender_alignment sexual_orientation geographic_origin education religion
    political_orientation health_status disability_status literacy_status immigration_status
    urbanicity marital_status parental_status income_level employment_status professional_field
    housing_status""".split()
)


def story_table(run: StoredRun) -> Iterator[dict[str, Any]]:
    """The stories of a run as rows with `COLUMNS` and the reader. `extraction_score` is 1, as in
    StereoTales' tables. Raises UsageError if it is not a run of stories."""
    record = run.record
    if record.kind != StoryConfig.kind:
        raise UsageError(
            f"run {run.name!r} has no stories, and {FORMAT_NAME} is a table of stories"
        )
    reader = describe_reader(record.config)
    language = str(record.config["pack"]["language"])
    scenarios = record.config.get("scenarios")  # of an import
    for profile, generation, text in collect_stories(run):
        category, group = profile.labels["category"], profile.labels["group"]
        value = _stereotales_value(category, group)
        template, scenario = generation.template, generation.template.partition(":")[0]
        if scenarios:
            template = template.removeprefix(f"{FORMAT_NAME}:")
            scenario = scenarios[profile.prompt_key(len(scenarios))[1]]
        values_by_attribute = {
            name: _VALUE_SEPARATOR.join(_stereotales_value(name, v) for v in values)
            for name, values in profile.values_by_attribute().items()
        }
        attributes = [name for name in record.config["attributes"] if name != category]
        extracted = {name: values_by_attribute.get(name, "unknown") for name in attributes}
        yield {
            "sample_id": profile.path,
            "output_id": profile.id,
            "generator_model": record.model.title,
            "language": language,
            "target_attribute": category,
            "target_attribute_value": value,
            "attribute_value_key": value,
            "scenario": scenario,
            "scenario_key": scenario,
            "scenario_group": "",
            "character": profile.name,
            "prompt_template": template,
            "user_prompt": generation.prompt,
            "story": text,
            "extraction_score": 1.0,
            "extracted_attributes_json": json.dumps(extracted, ensure_ascii=False),
            READER_COLUMN: reader,
        }


def write_stereotales(content: ExportContent, path: Path) -> None:
    """The stories of the run as such a table."""
    column_types = dict.fromkeys((*COLUMNS, READER_COLUMN), "string") | {
        "extraction_score": "double"
    }
    write_parquet_table(path, column_types, story_table(content.run), {"warning": CONTENT_WARNING})


EXPORT = Format(write_stereotales, kind="binary", whole=True, run_kind=StoryConfig.kind)


def _stereotales_value(attribute: str, ours: str) -> str:
    """A group, or a value, as StereoTales has it: "woman" for "Women", "Hindu" for "religion:
    Hindu"."""
    if attribute == "gender":
        theirs = {group.casefold(): value for value, group in _GENDERS.items()}
        return theirs.get(ours.casefold(), ours)
    return ours.removeprefix(f"{_spaced_words(attribute)}: ") if attribute in _ATTRIBUTES else ours


def _kgbias_group(attribute: str, theirs: str, reader: str) -> str:
    """A group as kgbias has it; what kgbias read itself has its own groups already."""
    if attribute == "gender":
        return _GENDERS.get(theirs.lower(), theirs)
    prefixed = reader == FORMAT_NAME and attribute in _ATTRIBUTES
    return f"{_spaced_words(attribute)}: {theirs}" if prefixed else theirs


def _spaced_words(attribute: str) -> str:
    return attribute.replace("_", " ")


def import_table(
    store: Store,
    path: Path,
    *,
    name: str | None = None,
    model: str = "unknown",
    progress: Progress | None = None,
) -> ImportResult:
    """Make a run of stories from a table, a .parquet, .jsonl or .csv file. Each statement is
    something that the table says of a story. If the table has several models, `model` names the
    one to read.

    "unknown" and "other" are not read, as in StereoTales' own associations. A story has no places
    that say what was read. The run's id follows from the file, so importing again changes nothing.

    Raises UsageError for another kind of file, DataError for one that is not such a table, or that
    has several models (without `model`), languages or readers.
    """
    rows = [row for row in _read_rows(path)]
    model_name = _only_value(path, rows, "generator_model", "" if model == "unknown" else model)
    rows = [row for row in rows if row["generator_model"] == model_name]
    language = _only_value(path, rows, "language")
    reader = _only_value(path, rows, READER_COLUMN) or FORMAT_NAME
    complete_rows = [
        r for r in rows if r["target_attribute"] and r["target_attribute_value"] and r["story"]
    ]
    if not complete_rows:
        raise DataError(f"{path}: no row has a target_attribute, its value and a story")
    prompts = list(dict.fromkeys(map(_prompt_key, complete_rows)))
    groups, people = dict[str, Group](), dict[str, dict[str, dict[str, None]]]()
    attributes = dict[str, None]()
    for row in complete_rows:
        group = _kgbias_group(row["target_attribute"], _value_key(row), reader)
        groups.setdefault(node_id("group", group), Group(group, row["target_attribute"]))
        group_people = people.setdefault(row["target_attribute"], {}).setdefault(group, {})
        group_people[_person_name(row)] = None
        attributes |= dict.fromkeys(_extracted_values(path, row))
    predicates = _predicates(attributes)
    config = {
        "file": path.name,
        "sha256": hashlib.sha256(read_bytes(path)).hexdigest(),
        "format": FORMAT_NAME,
        "people": {c: {g: list(names) for g, names in of.items()} for c, of in people.items()},
        "attributes": predicates,
        "reader": reader,
        "wordings": len(prompts),
        "scenarios": [scenario for scenario, _ in prompts],
        "pack": {"name": FORMAT_NAME, "version": 1, "language": language, "hash": ""},
    }
    run = store.begin_run(
        Run(
            name
            or f"{path.stem}-{content_id('name', model_name, repr(sorted(config.items())))[:4]}",
            ModelInfo(model_name),
            config,
            tuple(groups.values()),
            tuple(Category(c) for c in people),
            kind=StoryConfig.kind,
        )
    )
    generations, profiles, answers = _story_records(run, path, complete_rows, prompts, predicates)
    store.keep_answers(answers)
    store.load_import(run.id, generations)
    store.save_profiles(run.id, profiles)
    store.set_status(run.id, "complete")
    statements = [g.triple.id for g in generations if g.triple]
    stored_run = store.find_run(run.name)
    return ImportResult(
        stored_run, len(statements), len(set(statements)), len(rows) - len(complete_rows)
    )


IMPORT = ImportFormat(
    import_table, "a table of stories, of the model given", run_kind=StoryConfig.kind
)


class _StoryRecords(NamedTuple):
    """What an import of stories writes."""

    generations: list[Generation]
    profiles: list[Profile]
    answers: list[Answer]


def _story_records(
    run: Run,
    path: Path,
    rows: Sequence[Mapping[str, str]],
    prompts: Sequence[tuple[str, str]],
    predicates: Mapping[str, str],
) -> _StoryRecords:
    """The generations, characters and texts of the stories. Stories with the same prompt follow
    each other as samples of it."""
    sample_counts: dict[tuple[str, int], int] = {}
    generations, profiles, answers = list[Generation](), list[Profile](), list[Answer]()
    number_of = {prompt: n for n, prompt in enumerate(prompts)}
    for row in rows:
        category, person = row["target_attribute"], _person_name(row)
        group = _kgbias_group(category, _value_key(row), str(run.config["reader"]))
        prompt = number_of[_prompt_key(row)]
        character = f"{category}/{group}/{person}"
        number = sample_counts.get((character, prompt), 0)
        sample_counts[character, prompt] = number + 1
        # From this number, `Profile.prompt_key` finds the prompt again.
        sample = number * len(prompts) + prompt
        place = f"{character}/{sample}"
        text = storable(row["story"])
        answers.append(Answer(content_id("story", run.id, place), run.model.id, text, "stop"))
        declined = is_refusal(text)
        values_read = (
            []
            if declined
            else [
                (a, v)
                for a, values in _extracted_values(path, row).items()
                if a != category
                for v in values
            ]
        )
        template = f"{FORMAT_NAME}:{_cell_text(row, 'prompt_template')}"
        outcome: Outcome = "ok"
        reason = ""
        if declined:
            outcome, reason = "refused", "refusal"
        elif not values_read:
            outcome, reason = "unparsable", "nothing was read"
        first_generation = Generation(
            run_id=run.id,
            path=f"{place}#0",
            group_id=node_id("group", group),
            arm=ARM,
            strategy="story",
            iteration=number,
            attempt=0,
            outcome=outcome,
            reason=reason,
            template=template,
            template_hash=content_id("template", template),
            prompt=storable(_cell_text(row, "user_prompt")),
            answer_key=answers[-1].key,
        )
        labels = {"group": group, "category": category}
        profile = Profile(run.id, place, person, first_generation.group_id, labels)
        value_generations = [
            replace(
                first_generation,
                path=f"{first_generation.path}/{n}",
                triple=Triple(group, predicates[attribute], value),
                strategy=attribute,
            )
            for n, (attribute, value) in enumerate(values_read)
        ]
        generations += value_generations or [first_generation]
        if not declined:
            profile_parts = tuple(ProfilePart(g.strategy, g.id) for g in value_generations)
            profiles.append(replace(profile, parts=profile_parts))
    return _StoryRecords(generations, profiles, answers)


def _predicates(attributes: Iterable[str]) -> dict[str, str]:
    """The predicates of attributes: those of kgbias's own stories, and "have the income level"."""
    known_predicates = {a.name: a.predicate for a in load_story_pack().attributes}
    return {a: known_predicates.get(a, f"have the {_spaced_words(a)}") for a in attributes}


def _extracted_values(path: Path, row: Mapping[str, str]) -> dict[str, list[str]]:
    """What a row says of its story's character, by attribute."""
    location = f"{path}, extracted_attributes_json of {row['sample_id']!r}"
    extracted = parse_json(row["extracted_attributes_json"] or "{}", location)
    if not isinstance(extracted, dict):
        raise DataError(f"{location} is not a JSON object")
    values_by_attribute = {}
    for attribute, value in extracted.items():
        if value is not None and not isinstance(value, str):
            raise DataError(f"{location}: {attribute!r} is not a text")
        texts = (" ".join(v.split()) for v in (value or "").split(_VALUE_SEPARATOR))
        known_values = [v for v in dict.fromkeys(texts) if v.lower() not in _UNKNOWN_VALUES]
        if attribute == "gender":
            known_values = [_GENDERS.get(v.lower(), v).lower() for v in known_values]
        values_by_attribute[attribute] = list(dict.fromkeys(known_values))
    return values_by_attribute


def _only_value(
    path: Path, rows: Sequence[Mapping[str, str]], column: str, wanted_value: str = ""
) -> str:
    """The only value of a column, or the wanted one, if the table has it."""
    column_values = list(dict.fromkeys(_cell_text(row, column) for row in rows))
    if wanted_value and wanted_value not in column_values:
        raise DataError(f"{path} has {no_such(column, wanted_value, column_values)}")
    if not wanted_value and len(column_values) > 1:
        advice = "name one as `model`" if column == "generator_model" else "make a table of each"
        values_listed = ", ".join(column_values[:5]) + (" ..." if len(column_values) > 5 else "")
        raise DataError(f"{path} has several values of {column} ({values_listed}): {advice}")
    return wanted_value or column_values[0]


def _person_name(row: Mapping[str, str]) -> str:
    """What the prompt called the person."""
    return " ".join((_cell_text(row, "character") or row["target_attribute_value"]).split())


def _value_key(row: Mapping[str, str]) -> str:
    """The value of the attribute that the prompt gave, in English if the table has that."""
    return " ".join(
        (_cell_text(row, "attribute_value_key") or row["target_attribute_value"]).split()
    )


class _PromptKey(NamedTuple):
    """What tells a prompt from others about the same person."""

    scenario: str
    template: str


def _prompt_key(row: Mapping[str, str]) -> _PromptKey:
    """What tells its prompt from others about the same person: some of their tables name no
    scenario, and some one template for all."""
    return _PromptKey(_cell_text(row, "scenario_key"), _cell_text(row, "prompt_template"))


def _cell_text(row: Mapping[str, str], column: str) -> str:
    return row.get(column) or ""


def _read_rows(path: Path) -> list[dict[str, str]]:
    """The rows, every cell a text. Raises DataError if a column is missing or there are none."""
    if unpack(read_bytes(path), path).startswith(b"PAR1"):
        rows: Iterator[Any] = _iter_parquet(path)
    else:
        rows = (row for _, row in read_sheet(path, TABLE_FORMAT.columns).rows)
    text_rows, size = [], 0
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}, row {number} is not a JSON object")
        if missing := [name for name in TABLE_FORMAT.columns if name not in row]:
            raise DataError(f"{path} has {no_such('column', missing[0], row)}")
        text_rows.append({k: _as_text(v) for k, v in row.items() if k in (*COLUMNS, READER_COLUMN)})
        size += sum(map(len, text_rows[-1].values()))
        if size > MAX_FILE_BYTES:  # a small file may hold the same text many times
            raise DataError(f"{path} holds more than {MAX_FILE_BYTES >> 30} GB of text")
    if not text_rows:
        raise DataError(f"{path} has no rows")
    return text_rows


def _as_text(value: Any) -> str:
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=str)
    elif isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # an age
    elif isinstance(value, float) and math.isfinite(value):
        value = f"{value:g}"
    return storable(value) if isinstance(value, str) else ""


def _iter_parquet(path: Path) -> Iterator[Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("pyarrow", extra="parquet") from error
    try:
        kinds = {
            c.name: c.type for c in parquet.read_schema(path) if c.name in (*COLUMNS, READER_COLUMN)
        }
        columns_read = list(kinds)
        texts = [name for name, kind in kinds.items() if kind in (pa.string(), pa.large_string())]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(batch_size=1024, columns=columns_read):
                for n in range(batch.num_rows):  # a row at a time: few bytes may be much text
                    yield {name: batch.column(name)[n].as_py() for name in columns_read}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {first_line(error)}") from error
