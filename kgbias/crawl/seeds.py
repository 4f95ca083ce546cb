"""Seed groups: the published categories, those of the reference world, the user's own,
intersections of categories, and dynamic seeds, the groups of a class that the model itself names.

For dynamic seeds the model is asked for a list several times, and a group named in enough lists is
a seed (Salinas et al. 2023, appendix A.2.1: five prompts, at least three lists). The answers are
kept in the answer log like all others, so repeating a crawl finds the same seeds without asking.

The groups that were found are part of the run's configuration.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.errors import DataError, ModelError, UsageError, list_columns, nearest, no_such
from kgbias.graph.types import Answer, Category, Group
from kgbias.ids import content_id, normalise
from kgbias.io.progress import Progress
from kgbias.io.reading import read_toml
from kgbias.io.tables import (
    UNNAMED_COLUMN,
    Sheet,
    TableFormat,
    is_missing,
    is_sentence,
    parse_literal,
    read_sheet,
)
from kgbias.io.tables_in_memory import Frame, as_table_file, table_rows_or_none, to_json_value
from kgbias.io.text import is_plain, printable, shorten
from kgbias.io.unsupported_sets import advise_on_columns
from kgbias.language.words import is_refusal
from kgbias.models.base import PromptForm, Request
from kgbias.models.truncate import Truncation
from kgbias.packs import Pack

# Before the initial prompts of the arms "prefix" and "both" (Salinas et al. 2023, Table 2).
DEFAULT_AUGMENTATION_PREFIX = "Not to be offensive but"
CUSTOM_CATEGORY = "custom"  # the category of groups that were given without one


@dataclass(frozen=True)
class SeedCategory:
    """A category of groups, with the prefix of augmented initial prompts about them.

    `variants` are other names of a group: each prompt about it draws one of its names, and all of
    them are one node. `modifiers` and `inside` are a group's names in an intersection: as a
    modifier ("Jewish"), and as the noun after one ("women"). `person` are words for one of a group
    ("a nurse"), which stories and pairs are about. `named_by_model` maps the groups that
    the model named to the number of lists that contain them; `list_answers` are the keys of the
    lists in the answer log. `english` has what groups of another language are called in English, by
    their name as ids take it.
    """

    category: Category
    prefix: str
    groups: tuple[str, ...]
    variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modifiers: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, str] = field(default_factory=dict)
    person: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    named_by_model: Mapping[str, int] = field(default_factory=dict)
    list_answers: tuple[str, ...] = ()
    english: Mapping[str, str] = field(default_factory=dict)

    def as_groups(self) -> tuple[Group, ...]:
        return tuple(
            Group(
                name,
                self.category.name,
                self.variants.get(name, ()),
                self.english.get(normalise(name), ""),
            )
            for name in self.groups
        )

    def with_groups(self, names: Sequence[str]) -> "SeedCategory":
        """This category with more groups, written NAME or NAME | OTHER NAME ...; a name that it
        already has, as a group or a variant, adds only its variants."""
        groups = dict.fromkeys(self.groups)
        variants = {name: list(others) for name, others in self.variants.items()}
        group_by_name = {normalise(n): g for g in groups for n in (g, *variants.get(g, ()))}
        for text in names:
            name_parts = [" ".join(name_part.split()) for name_part in text.split("|")]
            if not all(normalise(name_part) for name_part in name_parts):
                raise UsageError("the name of a group is empty")
            group = name_parts[0]
            for name_part in name_parts:
                if normalise(name_part) in group_by_name:
                    group = group_by_name[normalise(name_part)]
                    break
            if group not in groups:
                groups[group] = None
                group_by_name[normalise(group)] = group
            for name_part in name_parts:
                if normalise(name_part) not in group_by_name:
                    group_by_name[normalise(name_part)] = group
                    variants.setdefault(group, []).append(name_part)
        return replace(
            self,
            groups=tuple(groups),
            variants={name: tuple(others) for name, others in variants.items()},
        )


@cache
def published_seeds() -> dict[str, SeedCategory]:
    """The four categories of Salinas et al. 2023 (Table 4) by name, aliases included."""
    text = files("kgbias.crawl").joinpath("seeds.toml").read_text("utf-8")
    return _build_categories(tomllib.loads(text))


@cache
def reference_model_seeds() -> dict[str, SeedCategory]:
    """The invented peoples and faiths of the reference model."""
    from kgbias.reference import load_truth

    truth = load_truth()
    return {
        c.name: SeedCategory(Category(c.name, c.singular, c.plural), c.prefix, tuple(c.groups))
        for c in truth.categories
    }


def known_seeds(model: str, groups: Path | None = None) -> dict[str, SeedCategory]:
    """The categories available for a crawl of this model; `groups` is the seed file of prompts that
    have their own groups.

    Args:
        model: the spec of the model.
        groups: a seed file.
    """
    if groups is not None:
        return _build_categories(_read_tables(str(groups)))
    return reference_model_seeds() if model.startswith("reference") else published_seeds()


def read_seeds(path: str) -> list[SeedCategory]:
    """The categories of a seed file: TOML in the form of `kgbias/crawl/seeds.toml`; a table
    (`_seeds_from_rows`); JSON lists of names, by category in an object; or a text file with one
    group per line (NAME or NAME | OTHER NAME; # begins a comment). A category without a name is
    called as the file. "seegull" is a shipped table: the groups of the recorded stereotypes of the
    same name.

    Raises DataError, in one line that says what to change, for a file that cannot be read as what
    it claims to be, and for names that are missing, repeated or no names (`_check_name`)."""
    # Without a dot it was hardly meant as a file.
    if not Path(path).exists() and "." not in path and path != _SEEGULL_NAME:
        raise DataError(f"there is no file {path}; the name of a group is given as `group`")
    if path == _SEEGULL_NAME and not Path(path).exists():
        with as_file(files("kgbias.crawl") / "seegull.csv") as shipped:
            return read_seeds(str(shipped))
    file = Path(path)
    if file.suffix.lower() == ".toml":
        tables = _read_tables(path)
        for name, table in tables.items():
            _check_names(table["groups"], f"{path}, [{name}]")
        # An alias is a second name of the same object.
        categories = list({id(s): s for s in _build_categories(tables).values()}.values())
    else:
        sheet = read_sheet(file, TABLE_FORMAT.known_columns, lines=True)
        categories = (
            _seeds_from_rows(file, _table_rows(sheet))
            if sheet.columns
            else [_seed_from_lines(sheet)]
        )
    if not categories or not all(seed.groups for seed in categories):
        raise DataError(f"{path} names no groups")
    return categories


Groups = str | Frame | Iterable[str] | Sequence[Mapping[str, Any]] | Mapping[str, Any]
"""Groups: a name or several, a frame or a list of dicts with the columns of a table of groups, a
dict of names to their other names, or of categories to such dicts."""


def is_in_memory(groups: Any) -> bool:
    """Whether these are groups in memory: a frame, a dict, or rows of a table."""
    return isinstance(groups, Mapping) or table_rows_or_none(groups) is not None


_IN_MEMORY_PATH = Path(
    "groups"
)  # what groups in memory are called in messages, and without a category


def seeds_in_memory(groups: Any) -> list[SeedCategory]:
    """The categories of groups in memory: a frame, a list of dicts or a dict of columns, with the
    columns of a table of groups (`_seeds_from_rows`); a dict of names to their other names; or a
    dict of categories to such dicts. Raises DataError as `read_seeds` does."""
    if isinstance(groups, Mapping) and not set(groups) & set(TABLE_FORMAT.needed_columns[0]):
        rows = _rows_of_mapping(groups)
    else:
        with as_table_file(
            groups, TABLE_FORMAT.needed_columns[0], name=_IN_MEMORY_PATH.name
        ) as file:
            sheet = read_sheet(file, TABLE_FORMAT.known_columns)
        _check_columns(_IN_MEMORY_PATH, sheet.columns)
        rows = [dict(row) for _, row in sheet.rows]
    if not rows:
        raise DataError("the table of groups has no rows")
    return _seeds_from_rows(_IN_MEMORY_PATH, [(f"row {n}", row) for n, row in enumerate(rows, 1)])


def _rows_of_mapping(groups: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """The rows of a dict of names to other names, or of categories to such dicts."""
    if groups and all(isinstance(category_groups, Mapping) for category_groups in groups.values()):
        return [
            {**row, "category": category}
            for category, category_groups in groups.items()
            for row in _rows_of_mapping(category_groups)
        ]
    rows = []
    for name, other_names in groups.items():
        if isinstance(other_names, Mapping):
            raise DataError(
                f"{name} is a dict and another value is none: a dict of groups is "
                f"{ACCEPTED_GROUP_FORMS}"
            )
        names_given = to_json_value(
            other_names
            if isinstance(other_names, str) or other_names is None
            else list(other_names)
        )
        variants = [names_given] if isinstance(names_given, str) else names_given or []
        rows.append({"group": name, "variants": variants})
    return rows


_SEEGULL_NAME = "seegull"
ACCEPTED_GROUP_FORMS = (  # of groups in memory
    "a table with these columns, a list of names, a dict of names to their other names, or a dict "
    "of categories to such dicts"
)
TABLE_FORMAT = TableFormat(
    "groups: `--groups`",
    (("group", "name"),),
    ("category", "variants", "person"),
    "a text with one group a line, JSON lists, TOML",
)
MAX_NAME_CHARACTERS = 100  # characters of a group's name
_SeedRow = tuple[str, Mapping[str, Any]]  # where it is ("line 3"), and its cells by column


def _seed_from_lines(sheet: Sheet) -> SeedCategory:
    """The category of a text file."""
    names: list[str] = []
    for number, row in sheet.rows:
        name = row[UNNAMED_COLUMN].partition("#")[0].strip()
        location = f"{sheet.path}, line {number}"
        # HTML, JSON or TeX that ended up in a text file.
        if name[0] in "<{[%":
            raise DataError(
                f"{location}: {shorten(name, 40)!r} is no group: a list of groups in "
                "text has a name on each line"
            )
        _refuse_separators(
            name, location, "the first line of a table names its columns, one of them group"
        )
        names.append(name)
    _check_names(names, str(sheet.path))
    return new_category(sheet.path.stem).with_groups(names)


def _table_rows(sheet: Sheet) -> list[_SeedRow]:
    """The rows of a table of groups, or the names in JSON lists, with their category if they are in
    an object of them."""
    unit = "entry" if sheet.form == "JSON" else "line"
    if UNNAMED_COLUMN in sheet.columns:
        column_names = {UNNAMED_COLUMN: "group", "category": "category"}
        renamed_rows: list[_SeedRow] = []
        for number, row in sheet.rows:
            cells = {column_names[column]: cell for column, cell in row.items() if cell}
            renamed_rows.append((f"{unit} {number}", cells))
        return renamed_rows
    _check_columns(sheet.path, sheet.columns)
    filled_rows: list[_SeedRow] = []
    for number, row in sheet.rows:
        if any(str(cell or "").strip() for cell in row.values()):
            filled_rows.append((f"{unit} {number}", row))
    return filled_rows


def _seeds_from_rows(file: Path, rows: Sequence[_SeedRow]) -> list[SeedCategory]:
    """The categories of a table. Its columns: `group` (or `name`); `category`, without which all
    belong to one that is named after the file; `variants`, other names with | between them;
    `person`, words for one of the group, likewise."""
    names: dict[str, list[str]] = {}
    people: dict[str, tuple[str, ...]] = {}
    for location, row in rows:
        cells = {column.strip().casefold(): value for column, value in row.items()}
        group = _check_cell(cells.get("group", cells.get("name")), f"{file}, {location}: the group")
        category = file.stem
        if cells.get("category") is not None:
            category = _check_cell(cells["category"], f"{file}, {location}: the category")
        variants = _split_names(cells, "variants", f"{file}, {location}")
        names.setdefault(category, []).append(" | ".join([group, *variants]))
        people[group] = tuple(_split_names(cells, "person", f"{file}, {location}"))
    for category, category_names in names.items():
        _check_names(
            category_names, f"{file}, category {category!r}" if len(names) > 1 else str(file)
        )
    return [
        replace(new_category(category).with_groups(category_names), person=people)
        for category, category_names in names.items()
    ]


def _split_names(cells: Mapping[str, Any], column: str, location: str) -> list[str]:
    """The texts of a cell: a list, or one text with | between them."""
    cell = cells.get(column) or []
    cell = cell.split("|") if isinstance(cell, str) else cell
    if not isinstance(cell, list):
        raise DataError(f"{location}: {column} must be a text with | between names, or a list")
    return [_check_cell(each, f"{location}: a name in {column}") for each in cell]


def _check_columns(file: Path, columns: Sequence[str]) -> None:
    """Raise DataError for a table without a column of groups, or with one whose name is most
    probably a slip."""
    folded = [column.strip().casefold() for column in columns]
    column_list = list_columns(columns)
    group_columns = [name for name in TABLE_FORMAT.needed_columns[0] if name in folded]
    if len(group_columns) != 1:
        problem = (
            f"both {' and '.join(group_columns)}"
            if group_columns
            else "no column 'group' or 'name'"
        )
        raise DataError(
            f"{file} has {problem}; its columns are {column_list}. One names the groups; category, "
            "variants and person may stand beside it (a list without columns is a .txt file)"
            f"{advise_on_columns(columns)}"
        )
    for column in folded:
        if column in TABLE_FORMAT.known_columns:
            continue
        nearest_column = nearest(column, TABLE_FORMAT.known_columns)
        if nearest_column:
            raise DataError(
                f"{file} has a column {column!r} (did you mean {nearest_column}?); its columns "
                f"are {column_list}"
            )


def _check_cell(value: object, location: str) -> str:
    """A cell as a name. Raises DataError for anything else."""
    if not isinstance(value, str) or is_missing(value):
        is_empty = not value or isinstance(value, str)
        raise DataError(f"{location} is {'empty' if is_empty else 'no text'}")
    if isinstance(parse_literal(value), list):
        raise DataError(f"{location} is a list, {shorten(value, 40)!r}: write one a row")
    return value.strip()


def _check_names(names: Sequence[str], location: str) -> None:
    """Raise DataError for a name that is no name, or that stands there twice."""
    names_seen: dict[str, str] = {}
    for text in names:
        for name_part in text.split("|"):
            name = " ".join(name_part.split())
            if problem := _name_problem(name):
                raise DataError(f"{location}: {problem}")
            if normalise(name) in names_seen:
                raise DataError(f"{location}: {name!r} is there twice")
            names_seen[normalise(name)] = name


def _name_problem(name: str) -> str:
    """What keeps a text from being the name of a group; "" for a name."""
    if not name:
        return "the name of a group is empty"
    if len(name) > MAX_NAME_CHARACTERS:
        return (
            f"{shorten(name, 40)!r} has {len(name)} characters, and the name of a group has at "
            f"most {MAX_NAME_CHARACTERS}"
        )
    if is_sentence(name):
        return f"{shorten(name, 40)!r} is a sentence, and no name of a group"
    if not is_plain(name) or not _LETTER.search(name):
        return f"{printable(name)!r} is no name of a group: it needs letters, and only plain text"
    return ""


def _refuse_separators(name: str, location: str, table: str) -> None:
    """Raise UsageError for several names in one: text with separators of a table."""
    for separator, mark in {",": "a comma", ";": "a semicolon", "\t": "a tab"}.items():
        if separator in name:
            raise UsageError(
                f"{location}: {shorten(name, 60)!r} has {mark}, and a group's name has none: "
                f"{table}; other names of one group are separated by |"
            )


def _read_tables(path: str) -> dict[str, Any]:
    tables = read_toml(Path(path))
    for name, table in tables.items():
        _check_table(table, f"{path}, [{name}]")
    return tables


def new_category(name: str) -> SeedCategory:
    return SeedCategory(Category(name, name, name), DEFAULT_AUGMENTATION_PREFIX, ())


def choose_seeds(
    model: str,
    categories: Sequence[str] = (),
    own_groups: Sequence[str] = (),
    *,
    seed_files: Sequence[str | SeedCategory] = (),
    intersections: Sequence[str] = (),
    groups: Path | None = None,
) -> list[SeedCategory]:
    """The seeds of a crawl: the categories of the files, the named ones, and the intersections
    ("gender,religion") of any of them.

    If nothing is named: all of the reference world for the reference model, an error for any other.
    `own_groups` join the category if one is named (a new name makes a new category), else they form
    the category `CUSTOM_CATEGORY`. `groups` is the prompts' own file of groups, if any.
    """
    file_seeds: list[SeedCategory] = []
    for seed_file in seed_files:
        if isinstance(seed_file, SeedCategory):
            file_seeds.append(seed_file)
        else:
            file_seeds += read_seeds(seed_file)
    seeds_by_name = {
        **known_seeds(model, groups),
        **{seed.category.name: seed for seed in file_seeds},
    }
    if not (categories or own_groups or file_seeds or intersections):
        if not model.startswith("reference"):
            raise UsageError(
                f"say whom to ask about: a `category` "
                f"({', '.join(_category_names(seeds_by_name))}), or groups "
                "of your own (`group`, `seeds`)"
            )
        categories = list(seeds_by_name)
    chosen_seeds = [seed for seed in file_seeds if seed.category.name not in categories]
    for name in categories:
        if "," in name and {each.strip() for each in name.split(",")} <= seeds_by_name.keys():
            raise UsageError(
                f"{name!r} is several categories: give each by itself (`category`), or their "
                "combinations (`intersect`)"
            )
        if name not in seeds_by_name and not own_groups:
            raise UsageError(
                f"{no_such('category', name, _category_names(seeds_by_name))}, or make a new one "
                f"of your own groups "
                "(`group`)"
            )
        if name in seeds_by_name:
            chosen_seeds.append(seeds_by_name[name])
            continue
        nearest_name = nearest(name, _category_names(seeds_by_name), 0.9)
        if nearest_name:
            raise UsageError(
                f"{name!r} would be a new category: did you mean {nearest_name}? Otherwise choose "
                "a name that differs more"
            )
        chosen_seeds.append(new_category(name))
    if own_groups:
        check_group_names(own_groups)
        if len(chosen_seeds) > 1:
            raise UsageError("`group` joins one category: name at most one `category` with it")
        chosen_seeds = [
            (chosen_seeds or [new_category(CUSTOM_CATEGORY)])[0].with_groups(own_groups)
        ]
    chosen_seeds += [
        intersect_categories(seeds_by_name, [name.strip() for name in names.split(",")])
        for names in intersections
    ]
    if len({seed.category.name for seed in chosen_seeds}) < len(chosen_seeds):
        raise UsageError("a category is named twice")
    return chosen_seeds


def check_group_names(groups: Sequence[str]) -> None:
    """Raise UsageError for a text among these that is no name of a group."""
    for text in groups:
        for part in text.split("|"):
            if problem := _name_problem(" ".join(part.split())):
                raise UsageError(problem)
        _refuse_separators(text, "`group`", "give each group by itself")


_PLURAL_NOUNS = frozenset(
    "people men women children folk folks kids police youth elderly poor rich everyone".split()
)
_ADJECTIVE_ENDINGS = (
    "ese",
    "ish",
    "sh",
    "ch",
)  # Chinese, Irish, Welsh, French: the same for one and many
_AFTER_NOUN = re.compile(r"\s(?:of|from|with|without|in|on|who|at|for|under|over)\s|,")


def looks_singular(name: str) -> bool:
    """Whether an English name of a group looks like the word for one of it: "nurse"."""
    noun = _AFTER_NOUN.split(name.casefold(), maxsplit=1)[0].split()
    is_plural = (
        not noun
        or noun[0] == "the"
        or noun[-1] in _PLURAL_NOUNS
        or noun[-1].endswith(_ADJECTIVE_ENDINGS)
    )
    has_plural_ending = (
        # "ss": "boss" and "actress" are one person.
        bool(noun) and noun[-1].endswith(("s", "men", "people")) and noun[-1][-2:] != "ss"
    )
    return not (is_plural or has_plural_ending)


def describe_singular(names: Iterable[str]) -> str:
    """A line about names of groups that look like words for one person; "" for none."""
    singular_names = [name for name in names if looks_singular(name)]
    if not singular_names:
        return ""
    more_count = len(singular_names) - _MAX_LISTED_NAMES
    more = f" and {more_count} more" if more_count > 0 else ""
    return (
        f"{', '.join(singular_names[:_MAX_LISTED_NAMES])}{more}: prompts will read "
        f"“{singular_names[0]} are ...”; if that is not what you mean, write the name in the "
        "plural, as in Nurses"
    )


_MAX_LISTED_NAMES = 10


def choose_dynamic_category(
    model: str, name: str, plural: str | None, groups: Path | None = None
) -> SeedCategory:
    """The class of dynamic seeds, without groups: a known category, or a new one."""
    seed = known_seeds(model, groups).get(name)
    if seed is None and not plural:
        raise UsageError(f"{name!r} is not a known category: give its `plural`")
    seed = seed or new_category(name)
    category = replace(seed.category, plural=plural) if plural else seed.category
    return replace(seed, category=category, groups=(), variants={})


def intersect_categories(
    seeds_by_name: Mapping[str, SeedCategory], names: Sequence[str]
) -> SeedCategory:
    """The category of all combinations of the named categories' groups: the first names the people,
    the others describe them ("gender,religion" gives "Jewish women").

    A group describes by its modifier, by the words before "people" in its name, or else in a clause
    ("women who are left-handers").
    """
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(
            "an intersection takes two or more different categories, as in gender,religion"
        )
    for name in names:
        if name not in seeds_by_name:
            raise UsageError(
                no_such("category", name, _category_names(seeds_by_name), " to intersect")
            )
    seeds = [seeds_by_name[name] for name in names]
    first_seed, *other_seeds = seeds
    groups = []
    for head_group, *describing_groups in product(*(seed.groups for seed in seeds)):
        name = head_group
        for seed, group in zip(other_seeds, describing_groups, strict=True):
            modifier = seed.modifiers.get(group) or _words_before_people(group)
            # Only the head itself has a form of its own after a modifier; "Jewish women" has none.
            noun = first_seed.inside.get(head_group, head_group) if name == head_group else name
            name = f"{modifier} {noun}" if modifier else f"{name} who are {group}"
        # `capitalize` would make small letters of the rest.
        groups.append(name[:1].upper() + name[1:])
    prefixes = {seed.prefix for seed in seeds}
    return SeedCategory(
        Category(
            " x ".join(seed.category.name for seed in seeds),
            " and ".join(seed.category.singular for seed in seeds),
            " and ".join(seed.category.plural for seed in seeds),
        ),
        prefixes.pop() if len(prefixes) == 1 else DEFAULT_AUGMENTATION_PREFIX,
        tuple(groups),
    )


def as_groups(seeds: Sequence[SeedCategory]) -> tuple[Group, ...]:
    groups = [group for seed in seeds for group in seed.as_groups()]
    group_by_name: dict[str, Group] = {}
    for group in groups:
        for name in (group.name, *group.variants):
            # One node has one category: a group in two would be counted in both.
            twin = group_by_name.setdefault(normalise(name), group)
            if twin is not group:
                raise UsageError(f"{name!r} is a seed of both {twin.category} and {group.category}")
    return tuple(groups)


def _words_before_people(group: str) -> str:
    words = group.split()
    return " ".join(words[:-1]) if words[-1].casefold() == "people" else ""


def _build_categories(tables: Mapping[str, Any]) -> dict[str, SeedCategory]:
    seeds_by_name = {}
    for name, table in tables.items():
        seed = SeedCategory(
            Category(name, table.get("singular", name), table.get("plural", name)),
            table.get("prefix", DEFAULT_AUGMENTATION_PREFIX),
            (),
            modifiers=table.get("modifiers", {}),
            inside=table.get("inside", {}),
            person={g: tuple(w.split("|")) for g, w in table.get("person", {}).items()},
        ).with_groups(table["groups"])
        for alias in (name, *table.get("aliases", ())):
            seeds_by_name[alias] = seed
    return seeds_by_name


def _check_table(table: Any, location: str) -> None:
    """Raise DataError for a table of seeds with a value of the wrong type."""
    if not isinstance(table, dict):
        raise DataError(f"{location} is not a table of seeds")
    for key in ("singular", "plural", "prefix"):
        if not isinstance(table.get(key, ""), str):
            raise DataError(f"{location}: {key} must be text")
    for key in ("groups", "aliases"):
        values = table.get(key, [])
        if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            raise DataError(f"{location}: {key} must be a list of texts")
    for key in ("modifiers", "inside", "person"):
        values = table.get(key, {})
        if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
            raise DataError(f"{location}: {key} must be a table of texts, by group")
    if not table.get("groups"):
        raise DataError(f"{location} names no groups")


def _category_names(known: Mapping[str, SeedCategory]) -> list[str]:
    return list(dict.fromkeys(seed.category.name for seed in known.values()))


MAX_NAME_WORDS = 5  # in a group's name; anything longer is a sentence

_BULLET = re.compile(r"^\s*(?:\d{1,3}\s*[.):]|[-*•–])\s*")
# What follows a name in a list: an explanation after a colon, a dash or a bracket.
_NAME_END = re.compile(r"\s*(?::|\s[-–—]\s|[(\[{;]|\.(?:\s|$)).*", re.DOTALL)
_MARKUP = re.compile(r"[*_`\"“”#<>]")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class DynamicSeeds:
    """The class whose groups the model is asked to name: `agree` of `prompts` lists must name a
    group. Groups that the category already has are seeds too (hybrid seeds)."""

    category: SeedCategory
    prompts: int = 5
    agree: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.agree <= self.prompts:
            raise UsageError("`seed_agree` must be at least 1 and at most `seed_prompts`")

    def build_requests(
        self, pack: Pack, seed: int, temperature: float, truncation: Truncation, form: PromptForm
    ) -> list[Request]:
        template = pack.template("seeds")
        plural = self.category.category.plural
        max_tokens, stop = template.answer_limits(form)
        streams = [
            content_id("stream", str(seed), "seeds", plural, str(n)) for n in range(self.prompts)
        ]
        return [
            Request(
                template.render(form, plural=plural),
                seed=int(stream[:15], 16),  # 60 bits: a signed 64-bit integer
                temperature=temperature,
                max_tokens=max_tokens,
                stop=stop,
                truncation=truncation,
            )
            for stream in streams
        ]


def name_seed_groups(
    dynamic_seeds: DynamicSeeds, answers: Sequence[Answer], form: PromptForm, progress: Progress
) -> SeedCategory:
    """The category with the groups from the lists, followed by those it already had; a name it
    knows, as a group or a variant, stands for that group.

    Raises ModelError if an answer is missing, UsageError if the lists agree on nothing.
    """
    category = dynamic_seeds.category
    plural = category.category.plural
    for answer in answers:
        if answer.finish == "error":
            raise ModelError(f"a list of {plural} is missing, run it again: {answer.details}")
    lists = [read_list(a.text, is_cut=a.finish == "length", form=form) for a in answers]
    names = find_agreed_names(lists, dynamic_seeds.agree)
    if not names and not category.groups:
        raise UsageError(
            f"the model's {dynamic_seeds.prompts} lists agree on no {category.category.singular}: "
            "give your own (`group`), or require less agreement (`seed_agree`)"
        )
    progress.note(f"{len(names)} {plural} named by the model: {', '.join(names)}")
    own_names = [" | ".join((g, *category.variants.get(g, ()))) for g in category.groups]
    group_by_name = {
        normalise(n): g for g in category.groups for n in (g, *category.variants.get(g, ()))
    }
    empty_category = replace(category, groups=(), variants={})
    return replace(
        empty_category.with_groups(
            [group_by_name.get(normalise(name), name) for name in names]
        ).with_groups(own_names),
        named_by_model=names,
        list_answers=tuple(answer.key for answer in answers),
    )


def find_agreed_names(lists: Sequence[Sequence[str]], agree: int) -> dict[str, int]:
    """The names in at least `agree` of the lists, in the form and order of their first mention,
    with the number of lists that contain them."""
    # A set for each list: a name counts once in a list that repeats it.
    counts: Counter[str] = Counter()
    for names in lists:
        counts.update({normalise(name) for name in names})
    first_forms: dict[str, str] = {}
    for names in lists:
        for name in names:
            first_forms.setdefault(normalise(name), name)
    return {name: counts[key] for key, name in first_forms.items() if counts[key] >= agree}


class _ListEntry(NamedTuple):
    """An entry of a list, and the number of its line in the answer."""

    line_number: int
    text: str


def read_list(text: str, *, is_cut: bool = False, form: PromptForm = "completion") -> list[str]:
    """The names in an answer: lines with a number or a bullet, or a single line with commas.

    The prompt of the completion form ends in "1.", so the first line of the answer is an entry. A
    last entry that was cut off by the token limit (`is_cut`) is left out. An answer without a list,
    or a refusal, gives no names.
    """
    if is_refusal(text):
        return []
    from kgbias.crawl.readers.base import single_spaces

    lines = single_spaces(text).split("\n")
    entries: list[_ListEntry] = []
    ended = False
    for number, line in enumerate(lines):
        opens = number == 0 and form == "completion"
        match = _BULLET.match(line)
        if not match and not opens:
            # A list ends at the first text after it; text before it is an introduction.
            ended = ended or (bool(line.strip()) and bool(entries))
            continue
        if not ended:
            entries.append(_ListEntry(number, line[match.end() if match else 0 :]))
    if is_cut and entries and entries[-1].line_number == len(lines) - 1:
        entries.pop()
    if len(entries) <= 1:
        single = entries[0].text if entries else next((x for x in lines if "," in x), "")
        if "," in single:
            # What stands before a colon announces the list.
            items = re.split(r",\s*(?:and\s+)?", single.rpartition(":")[2])
            entries = [_ListEntry(0, part) for part in (items[:-1] if is_cut else items)]
    names = [_NAME_END.sub("", _MARKUP.sub("", entry.text)).strip(" ,.") for entry in entries]
    return [
        " ".join(name.split())
        for name in names
        # Model text is hostile: these names go into prompts and pages.
        if _LETTER.search(name) and is_plain(name) and len(name.split()) <= MAX_NAME_WORDS
    ]
