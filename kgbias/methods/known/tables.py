"""Stereotypes that people recorded: tables of groups and attributes.

`seegull` ships: the part of SeeGULL (Jha et al. 2023) about the states of the US and of India. Any
other table has a column with groups and one with attributes, or is StereoSet's published file.
"""

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from kgbias.crawl.readers.lexicon import verb_lemma
from kgbias.errors import DataError, UsageError, list_columns
from kgbias.evidence.claims import extract_claims
from kgbias.graph.stereotypes import Stereotype as Stereotype
from kgbias.graph.stereotypes import StereotypeTable
from kgbias.ids import normalise
from kgbias.io.files import sha256_of
from kgbias.io.stereoset_file import is_stereoset, read_examples
from kgbias.io.tables import TableFormat, is_missing, parse_literal, parse_number, read_table
from kgbias.io.unsupported_sets import advise_on_columns
from kgbias.methods.known.kinds import KINDS

SEEGULL = "seegull"
_LICENSE = "CC BY 4.0"  # SeeGULL's
_STEREOSET = "stereoset"
TABLE_FORMAT = TableFormat(
    "recorded stereotypes: `known --table`",
    (("group", "identity"), ("attribute",)),
    ("offensiveness", "category", "statement"),
    "StereoSet, SeeGULL",
)
_GROUP_COLUMNS, _ATTRIBUTE_COLUMNS = TABLE_FORMAT.needed_columns
# SeeGULL Multilingual has these in English, beside those in its own languages.
_ENGLISH_COLUMNS = {"group": "translated_identity", "attribute": "translated_attribute_list"}
# The last two are the names in SeeGULL's file of nations and in SeeGULL Multilingual.
_OFFENSIVENESS_COLUMNS = (
    "offensiveness",
    "offensiveness_score",
    "mean offensiveness_score",
    "mean_offensive_score",
)
_ANNOTATOR_COLUMNS = ("stereotype", "region_stereo")
_RATING_COLUMNS = ("Annotation1", "Annotation2", "Annotation3")  # SeeGULL's own file
_MAX_CELL_CHARACTERS = 200  # characters of a group or an attribute


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which columns of a table hold the groups, the attributes and their offensiveness; None: those
    of SeeGULL (identity, attribute, offensiveness_score), or group, attribute and offensiveness.
    `kind` is the column that says whether an attribute is a trait or a thing, if there is one."""

    group: str | None = None
    attribute: str | None = None
    offensiveness: str | None = None
    kind: str | None = None


def word_stereotype(entry: Stereotype) -> str:
    """A recorded stereotype as a statement about people, to ask a model about: the table's own, or
    "are ATTRIBUTE"; of an attribute that begins with a verb ("loves tea", "they are tall"), that
    verb in the plural."""
    if entry.statement:
        return entry.statement
    pronoun = _PRONOUN.match(entry.attribute)
    phrase = entry.attribute[pronoun.end() :] if pronoun else entry.attribute
    first_word, _, rest = phrase.partition(" ")
    first_word = first_word.lower()
    if rest and first_word in ("are", "is", "am"):
        return f"are {_pluralise(rest)}"
    if pronoun:  # a verb follows, whichever: "he works hard"
        return f"{verb_lemma(first_word) or first_word} {rest}".rstrip()
    verb = next((v for v in _VERBS if first_word in (v, f"{v}s", f"{v}es")), None)
    if rest and verb:
        return f"{verb} {rest}"
    claim = next(iter(extract_claims(phrase)), None)
    stance = {1: "support", -1: "oppose"}.get(claim.stance if claim else 0)
    return f"{stance} {claim.phrase}" if claim and stance else f"are {_pluralise(phrase)}"


_PRONOUN = re.compile(r"(?:they|he|she|we|i)\s+(?=\S)", re.IGNORECASE)
# Verbs that attributes begin with, and that are no nouns before another noun ("dance lover").
_VERBS = ("love", "like", "eat", "drink", "speak", "wear", "talk", "enjoy", "live", "climb", "hate")
_PERSON = re.compile(
    r"(?:addict|coward|drunkard|extrovert|fan|fanatic|goer|introvert|ist|liar|patriot|rebel|snob"
    r"|refugee|warrior)$"
)
_NOT_AGENTS = frozenset("clever eager proper sober tender inferior superior".split())


def _pluralise(phrase: str) -> str:
    """The phrase, in the plural if it ends in a noun for one person ("beer drinker")."""
    word = phrase.rpartition(" ")[2].lower()
    is_agent = (
        word.endswith(("er", "or"))
        and len(word) > 4
        and word not in _NOT_AGENTS
        and verb_lemma(f"{word[:-2]}ing") is not None
    )
    return f"{phrase}s" if is_agent or _PERSON.search(word) else phrase


def describe_table(table: str | Path) -> StereotypeTable:
    """What is kept of the table that `read_stereotypes` reads."""
    shipped = _is_shipped(table)
    with _open_table(table) as path:
        return StereotypeTable(
            SEEGULL if shipped else _table_name(path), _LICENSE if shipped else "", sha256_of(path)
        )


def read_stereotypes(
    table: str | Path,
    columns: TableColumns | None = None,
    *,
    notify: Callable[[str], None] = lambda _: None,
) -> list[Stereotype]:
    """The stereotypes of a table, each once (of repeated rows the first): "seegull", a table
    of any form, or StereoSet's JSON (its intrasentence part: a target, and the word that fills the
    blank in the sentence labelled as a stereotype). `notify` is told of StereoSet's examples that
    are left out.

    Raises DataError, naming the line, for a file that is no such table; UsageError for columns
    that it cannot have.
    """
    columns, path = columns or TableColumns(), Path(table)
    if _is_shipped(table):
        with _open_table(table) as shipped:
            return _drop_repeats(_read_rows(shipped, SEEGULL, TableColumns()))
    if is_stereoset(path):
        if columns != TableColumns():
            raise UsageError(f"{path} is StereoSet's JSON, which has no columns")
        stereotypes = _drop_repeats(_read_stereoset(path, notify))
    else:
        stereotypes = _drop_repeats(_read_rows(path, _table_name(path), columns))
    if not stereotypes:
        raise DataError(f"{path} has no row with a group and an attribute")
    return stereotypes


def read_kinds(table: str | Path, columns: TableColumns) -> dict[str, str]:
    """Whether each attribute, normalised, is a trait or a thing, as the column `columns.kind` says;
    empty without one. Raises DataError for a file without that column, or another word in it."""
    if columns.kind is None:
        return {}
    path = Path(table)
    header, rows = read_table(path, known=TABLE_FORMAT.known_columns)
    kind = _find_column(path, header, columns.kind, (), "kind")
    attribute = _find_column(path, header, columns.attribute, _ATTRIBUTE_COLUMNS, "attribute")
    kinds: dict[str, str] = {}
    for line, row in rows:
        word = row[kind].strip().casefold()
        if word and word not in KINDS:
            raise DataError(f"{path}, line {line}: {row[kind][:40]!r} is no {' or '.join(KINDS)}")
        if word:
            kinds[normalise(_clean_cell(path, line, row[attribute]).replace("_", " "))] = word
    return kinds


def _is_shipped(table: str | Path) -> bool:
    return str(table) == SEEGULL and not Path(table).exists()


def _open_table(table: str | Path) -> AbstractContextManager[Path]:
    if _is_shipped(table):
        return as_file(files("kgbias.methods.known") / "recorded" / "seegull.csv")
    return nullcontext(Path(table))


def _table_name(path: Path) -> str:
    """What a table in a file is called."""
    return _STEREOSET if is_stereoset(path) else path.name.partition(".")[0] or path.stem


def _drop_repeats(stereotypes: Iterator[Stereotype]) -> list[Stereotype]:
    by_id: dict[str, Stereotype] = {}
    for stereotype in stereotypes:
        by_id.setdefault(stereotype.uid(stereotype.source), stereotype)
    return list(by_id.values())


def _read_rows(path: Path, source: str, columns: TableColumns) -> Iterator[Stereotype]:
    header, rows = read_table(
        path, known=(*TABLE_FORMAT.known_columns, *_OFFENSIVENESS_COLUMNS, *_ANNOTATOR_COLUMNS)
    )
    group = _find_column(path, header, columns.group, _GROUP_COLUMNS, "group")
    attribute = _find_column(path, header, columns.attribute, _ATTRIBUTE_COLUMNS, "attribute")
    offensiveness = columns.offensiveness
    if offensiveness is None:
        offensiveness = next((name for name in _OFFENSIVENESS_COLUMNS if name in header), None)
    else:
        _find_column(path, header, offensiveness, (), "offensiveness")
    annotators = next((name for name in _ANNOTATOR_COLUMNS if name in header), None)
    corrected = _corrected_attributes() if attribute == _ENGLISH_COLUMNS["attribute"] else {}
    for line, row in rows:
        if isinstance(parse_literal(row[group]), list):
            raise DataError(f"{path}, line {line}: the group is a list: write one a row")
        group_text = _clean_cell(path, line, row[group])
        ratings = [row[name] for name in _RATING_COLUMNS if name in row]
        # SeeGULL gives a mean of 0 where nobody rated.
        rated = not ratings or any(not is_missing(cell) for cell in ratings)
        attributes = parse_literal(row[attribute])
        for attribute_cell in attributes if isinstance(attributes, list) else [row[attribute]]:
            attribute_text = _clean_cell(path, line, str(attribute_cell))
            if not (normalise(group_text) and normalise(attribute_text)):
                continue
            yield Stereotype(
                source,
                group_text.lstrip(".,"),
                corrected.get(attribute_text.casefold().strip(" .,"), attribute_text).replace(
                    "_", " "
                ),
                row.get("category", "").strip(),
                # A column without a name, such as an index, is none of these.
                _parse_offensiveness(
                    path, line, row[offensiveness] if offensiveness and rated else ""
                ),
                _parse_count(row[annotators] if annotators else ""),
                _clean_cell(path, line, row.get("statement", "")),
            )


@cache
def _corrected_attributes() -> Mapping[str, str]:
    """Attributes that SeeGULL Multilingual's English has as something else ("threon": rich)."""
    file = files("kgbias.methods.known") / "recorded" / "corrected_attributes.csv"
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return {row["attribute"]: row["corrected"] for row in rows}


def _find_column(
    path: Path,
    header: Sequence[str],
    requested: str | None,
    default_names: Sequence[str],
    meaning: str,
) -> str:
    column = (
        requested
        if requested is not None
        else next(
            (name for name in (_ENGLISH_COLUMNS.get(meaning), *default_names) if name in header),
            None,
        )
    )
    if column is None or column not in header:
        lacks = (
            f"no column {requested!r}"
            if requested is not None
            else f"no column {' or '.join(default_names)}"
        )
        raise DataError(
            f"{path} has {lacks}; its columns are {list_columns(header)}. Name the one with the "
            f"{meaning} as `{meaning}_column`{advise_on_columns(header)}"
        )
    return column


def _clean_cell(path: Path, line: int, cell: str) -> str:
    text = " ".join(cell.split())
    if len(text) > _MAX_CELL_CHARACTERS:
        raise DataError(
            f"{path}, line {line}: a cell of {len(text)} characters is no name of a "
            f"group and no attribute (at most {_MAX_CELL_CHARACTERS})"
        )
    return text


def _parse_offensiveness(path: Path, line: int, cell: str) -> float:
    if is_missing(cell):
        return math.nan
    try:
        number = parse_number(cell)
    except ValueError:
        number = math.inf
    if math.isinf(number):
        raise DataError(f"{path}, line {line}: offensiveness {cell[:40]!r} is not a number")
    return number


def _parse_count(cell: str) -> int | None:
    return int(cell) if cell.strip().isdecimal() else None


def _read_stereoset(path: Path, notify: Callable[[str], None]) -> Iterator[Stereotype]:
    examples, left_out = read_examples(path)
    for example in examples:
        if "BLANK" not in example.context:
            continue  # of the part in which whole sentences follow
        word = _find_filler(example.context, example.sentences[0])
        if normalise(word):
            yield Stereotype(_STEREOSET, example.target, word, example.domain)
        else:
            left_out += 1
    if left_out:
        notify(
            f"{path.name}: {left_out} examples are left out: they lack a text, or their sentence "
            "does not repeat the words around the blank"
        )


def _find_filler(context: str, sentence: str) -> str:
    """What stands in the sentence at the blank of the context; "" if they do not go together.

    StereoSet changes capitals, spaces and punctuation around the blank, so words are compared."""
    before, _, after = context.partition("BLANK")
    head, tail = _WORD.findall(before.casefold()), _WORD.findall(after.casefold())
    words = list(_WORD.finditer(sentence))
    folded = [word[0].casefold() for word in words]
    filler = words[len(head) : len(words) - len(tail)]
    if not filler or folded[: len(head)] != head or folded[len(folded) - len(tail) :] != tail:
        return ""
    return sentence[filler[0].start() : filler[-1].end()]


_WORD = re.compile(r"\w+(?:['’-]\w+)*")
