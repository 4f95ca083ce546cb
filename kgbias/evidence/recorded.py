"""Stereotypes that people recorded: tables of groups and attributes.

`seegull` ships: the part of SeeGULL (Jha et al. 2023) about the states of the US and of India. Any
other table has a column with groups and one with attributes, or is StereoSet's published file.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from kgbias.errors import DataError, UsageError
from kgbias.evidence.claims import claims
from kgbias.graph.stereotypes import Stereotype as Stereotype
from kgbias.graph.stereotypes import StereotypeTable
from kgbias.ids import normalise
from kgbias.io.files import sha256_of
from kgbias.io.published_sets import identify_columns
from kgbias.io.tables import TableFormat, is_missing, parse_literal, parse_number, read_table
from kgbias.probe.benchmarks.stereoset import is_stereoset, read_examples

SEEGULL = "seegull"
_LICENSE = "CC BY 4.0"  # SeeGULL's
_STEREOSET = "stereoset"
DOOR = TableFormat(
    "recorded stereotypes: `known --table`",
    (("group", "identity"), ("attribute",)),
    ("offensiveness", "category", "statement"),
    "StereoSet, SeeGULL",
)
_GROUP, _ATTRIBUTE = DOOR.needed_columns
# The last two are the names in SeeGULL's file of nations and in SeeGULL Multilingual.
_OFFENSIVENESS = (
    "offensiveness", "offensiveness_score", "mean offensiveness_score", "mean_offensive_score",
)  # fmt: skip
_ANNOTATORS = ("stereotype", "region_stereo")
_RATINGS = ("Annotation1", "Annotation2", "Annotation3")  # SeeGULL's own file
_LONGEST = 200  # characters of a group or an attribute


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table hold the groups, the attributes and their offensiveness; None: those
    of SeeGULL (identity, attribute, offensiveness_score), or group, attribute and offensiveness."""

    group: str | None = None
    attribute: str | None = None
    offensiveness: str | None = None


def worded(entry: Stereotype) -> str:
    """A recorded stereotype as a statement about people, to ask a model about."""
    claim = next(iter(claims(entry.attribute)), None)
    verb = {1: "support", -1: "oppose"}.get(claim.stance if claim else 0)
    told = f"{verb} {claim.phrase}" if claim and verb else f"are {entry.attribute}"
    return entry.statement or told


def table_of(table: str | Path) -> StereotypeTable:
    """What is kept of the table that `read_stereotypes` reads."""
    shipped = _shipped(table)
    with _file(table) as path:
        return StereotypeTable(
            SEEGULL if shipped else _name(path), _LICENSE if shipped else "", sha256_of(path)
        )


def read_stereotypes(
    table: str | Path,
    columns: Columns | None = None,
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
    columns, path = columns or Columns(), Path(table)
    if _shipped(table):
        with _file(table) as shipped:
            return _unique(_rows(shipped, SEEGULL, Columns()))
    if is_stereoset(path):
        if columns != Columns():
            raise UsageError(f"{path} is StereoSet's JSON, which has no columns")
        found = _unique(_stereoset(path, notify))
    else:
        found = _unique(_rows(path, _name(path), columns))
    if not found:
        raise DataError(f"{path} has no row with a group and an attribute")
    return found


def _shipped(table: str | Path) -> bool:
    return str(table) == SEEGULL and not Path(table).exists()


def _file(table: str | Path) -> AbstractContextManager[Path]:
    if _shipped(table):
        return as_file(files("kgbias.evidence") / "recorded" / "seegull.csv")
    return nullcontext(Path(table))


def _name(path: Path) -> str:
    """What a table in a file is called."""
    return _STEREOSET if is_stereoset(path) else path.name.partition(".")[0] or path.stem


def _unique(found: Iterator[Stereotype]) -> list[Stereotype]:
    by_id: dict[str, Stereotype] = {}
    for each in found:
        by_id.setdefault(each.uid(each.source), each)
    return list(by_id.values())


def _rows(path: Path, source: str, columns: Columns) -> Iterator[Stereotype]:
    header, rows = read_table(path, known=(*DOOR.known_columns, *_OFFENSIVENESS, *_ANNOTATORS))
    group = _column(path, header, columns.group, _GROUP, "group")
    attribute = _column(path, header, columns.attribute, _ATTRIBUTE, "attribute")
    offensiveness = columns.offensiveness
    if offensiveness is None:
        offensiveness = next((name for name in _OFFENSIVENESS if name in header), None)
    else:
        _column(path, header, offensiveness, (), "offensiveness")
    annotators = next((name for name in _ANNOTATORS if name in header), None)
    for line, row in rows:
        who = _text(path, line, row[group])
        ratings = [row[name] for name in _RATINGS if name in row]
        # SeeGULL gives a mean of 0 where nobody rated.
        rated = not ratings or any(not is_missing(cell) for cell in ratings)
        said = parse_literal(row[attribute])
        for one in said if isinstance(said, list) else [row[attribute]]:
            what = _text(path, line, str(one))
            if not (normalise(who) and normalise(what)):
                continue
            yield Stereotype(
                source,
                who.lstrip(".,"),
                what.replace("_", " "),
                row.get("category", "").strip(),
                _number(path, line, row.get(offensiveness or "", "") if rated else ""),
                _count(row.get(annotators or "", "")),
                _text(path, line, row.get("statement", "")),
            )


def _column(
    path: Path, header: Sequence[str], given: str | None, usual: Sequence[str], what: str
) -> str:
    found = given if given is not None else next((name for name in usual if name in header), None)
    if found is None or found not in header:
        listed = ", ".join(name or "(no name)" for name in header) or "none"
        lacks = f"no column {given!r}" if given is not None else f"no column {' or '.join(usual)}"
        raise DataError(
            f"{path} has {lacks}; its columns are: {listed}. Name the one with the {what} as "
            f"`{what}_column`{identify_columns(header)}"
        )
    return found


def _text(path: Path, line: int, cell: str) -> str:
    text = " ".join(cell.split())
    if len(text) > _LONGEST:
        raise DataError(f"{path}, line {line}: a cell of {len(text)} characters is no name of a "
                        f"group and no attribute (at most {_LONGEST})")  # fmt: skip
    return text


def _number(path: Path, line: int, cell: str) -> float:
    if is_missing(cell):
        return math.nan
    try:
        number = parse_number(cell)
    except ValueError:
        number = math.inf
    if math.isinf(number):
        raise DataError(f"{path}, line {line}: offensiveness {cell[:40]!r} is not a number")
    return number


def _count(cell: str) -> int | None:
    return int(cell) if cell.strip().isdecimal() else None


def _stereoset(path: Path, notify: Callable[[str], None]) -> Iterator[Stereotype]:
    examples, left_out = read_examples(path)
    for example in examples:
        if "BLANK" not in example.context:
            continue  # of the part in which whole sentences follow
        word = _filled(example.context, example.sentences[0])
        if normalise(word):
            yield Stereotype(_STEREOSET, example.target, word, example.domain)
        else:
            left_out += 1
    if left_out:
        notify(
            f"{path.name}: {left_out} examples are left out: they lack a text, or their sentence "
            "does not repeat the words around the blank"
        )


def _filled(context: str, sentence: str) -> str:
    """What stands in the sentence at the blank of the context; "" if they do not go together.

    StereoSet changes capitals, spaces and punctuation around the blank, so words are compared."""
    before, _, after = context.partition("BLANK")
    head, tail = _WORD.findall(before.casefold()), _WORD.findall(after.casefold())
    words = list(_WORD.finditer(sentence))
    said = [word[0].casefold() for word in words]
    inside = words[len(head) : len(words) - len(tail)]
    if not inside or said[: len(head)] != head or said[len(said) - len(tail) :] != tail:
        return ""
    return sentence[inside[0].start() : inside[-1].end()]


_WORD = re.compile(r"\w+(?:['’-]\w+)*")
