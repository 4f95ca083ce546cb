"""The one door for tables that a person hands over. What a file holds decides how it is read, and
not its name: cells between commas, semicolons or tabs, JSON (a list, or one object a line),
Parquet, an Excel workbook, or a text with one value a line; each of them also packed by gzip.
"""

import ast
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.errors import DataError, MissingExtra, first_line, list_columns, no_such
from kgbias.io.reading import MAX_FILE_BYTES, decode_text, parse_json, read_bytes, unpack
from kgbias.io.text import is_plain, printable, unescape_formula
from kgbias.io.unsupported_sets import advise_on_columns, advise_on_first_line, advise_on_keys

MAX_CELL_CHARACTERS = (
    16 << 20
)  # characters of one cell of a table; the csv module alone stops at 128 kB
UNNAMED_COLUMN = "\0"  # the column of a file without columns: one value a line, or a list of texts
_DELIMITERS = {",": "comma-separated", "\t": "tab-separated", ";": "semicolon-separated"}
# A bar also stands between the names of one group, and a space between words, so only names of
# columns tell of them, and how many of these must be known.
_RARE_DELIMITERS = {"|": 1, " ": 2}
PARQUET_MAGIC, _ZIP_MAGIC = b"PAR1", b"PK\x03\x04"
_OTHER_FORMATS = {  # how files that hold no table begin
    b"%PDF": "a PDF",
    b"{\\rtf": "an RTF document",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xff\xff\xff": "an Arrow file",
    b"ARROW1": "an Arrow file",
    b"Obj\x01": "an Avro file",
    b"@relation": "an ARFF file",
    b"@RELATION": "an ARFF file",
    b"RDX2\n": "an R workspace",
    b"RDX3\n": "an R workspace",
    b"X\n\x00\x00": "an object of R",
    **{magic: "an SPSS file" for magic in (b"$FL2", b"$FL3", b"ASCII SPSS PORT FILE")},
    # Before version 117, a Stata file begins with its version and its order of bytes.
    **{bytes([version, order]): "a Stata file" for version in (113, 114, 115) for order in (1, 2)},
    b"<stata_dta>": "a Stata file",
    b"HEADER RECORD*******": "a SAS file",
    bytes(12) + b"\xc2\xea\x81\x60": "a SAS file",
    b"<?xml": "an XML file",
    b"SQLite format 3\0": "a SQLite file",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file",
    b"\x93NUMPY": "a NumPy array",
    **{b"\x80" + bytes([version]): "a Python pickle" for version in range(2, 6)},
    b"<!DOCTYPE": "an HTML page",
    b"<!doctype": "an HTML page",
    b"<html": "an HTML page",
    b"version https://git-lfs": "a pointer of Git LFS, and not the file itself",
}
_NUMBER = re.compile(r"[+-]?\d[\d.,]*%?")
_CHECKED_LINES = 20  # lines by which a text is told from a table
_MAX_LIST_DEPTH = 3  # of lists within a JSON object

_ARCHIVES = (b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!")
_TAR_MAGIC, _TAR_MAGIC_PLACE = b"ustar", 257
_HEAD_BYTES = 1 << 12

NumberedRow = tuple[int, Mapping[str, Any]]
"""The line of a file, or the number of an entry, and its cells by column."""


@dataclass(frozen=True, slots=True)
class TableFormat:
    """What is read of a table that a person hands over; docs/how-to/data.md lists all doors.

    Attributes:
        subject: what is handed over, and where.
        needed_columns: the columns that a table must have, each by any of its names.
        optional_columns: columns that may stand beside them.
        other_forms: what else is read there, in words.
    """

    subject: str
    needed_columns: tuple[tuple[str, ...], ...] = ()
    optional_columns: tuple[str, ...] = ()
    other_forms: str = ""

    @property
    def known_columns(self) -> tuple[str, ...]:
        """All names that columns may have."""
        return (*(name for names in self.needed_columns for name in names), *self.optional_columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The needed columns, if each has one name."""
        return tuple(names[0] for names in self.needed_columns)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of a file.

    `form` says how they are written. Without `columns`, each row has one cell, called
    UNNAMED_COLUMN. Cells are text, except in JSON and Parquet, where they are whatever stands
    there.
    """

    path: Path
    form: str
    columns: tuple[str, ...]
    rows: Sequence[NumberedRow]

    def find_column(self, names: Sequence[str]) -> str:
        """The column that is called one of these, whatever its capitals; UNNAMED_COLUMN in a file
        without columns. Raises DataError, which lists the columns there are."""
        if not self.columns or self.columns == (UNNAMED_COLUMN,):
            return UNNAMED_COLUMN
        columns_by_key = {name.strip().casefold(): name for name in self.columns}
        if column := next((columns_by_key[name] for name in names if name in columns_by_key), None):
            return column
        if UNNAMED_COLUMN in self.columns:
            return UNNAMED_COLUMN
        raise DataError(
            f"{self.path} is {self.form} and has no column {' or '.join(map(repr, names))}; its "
            f"columns are {list_columns(self.columns)} (a table begins with a line of their names)"
            f"{advise_on_columns(self.columns)}"
        )


def read_sheet(path: Path, known: Sequence[str] = (), *, lines: bool = False) -> Sheet:
    """The rows of a file, by what it holds.

    Args:
        path: the file.
        known: names that columns may have here, by which a header is told from a row.
        lines: whether the file may also be a text with one value a line (# begins a comment), or
            JSON lists of texts, by category if they are in an object.

    Raises:
        DataError: in one line that says what to do, for a file that cannot be read, or is no table.
        MissingExtra: for Parquet and Excel without the package that reads them.
    """
    data = unpack(read_bytes(path), path)
    refuse_other_formats(path, data)
    if data.startswith(PARQUET_MAGIC):
        return _parse_parquet(path, data, known)
    if data.startswith(_ZIP_MAGIC):
        return _parse_workbook(path, data, known)
    text = decode_text(data, path)
    if text.lstrip()[:1] in ("[", "{", '"'):
        sheet = _parse_json(path, text, known, lines)
        if sheet is not None:
            return sheet
    _refuse_other_texts(path, text)
    return _parse_text(path, text, known, lines)


def refuse_other_formats(path: Path, data: bytes) -> None:
    """Raise DataError for what begins as no text and no table does."""
    start = data[:_HEAD_BYTES].lstrip()
    for magic, format_name in _OTHER_FORMATS.items():
        # Markup may begin after white space.
        if data.startswith(magic) or (magic[:1] == b"<" and start.startswith(magic)):
            raise DataError(f"{path} is {format_name}, and no table: save the table as CSV or JSON")
    if data.startswith(_ARCHIVES) or data.startswith(_TAR_MAGIC, _TAR_MAGIC_PLACE):
        raise DataError(f"{path} is an archive: unpack it, and hand over the file inside")


def _refuse_other_texts(path: Path, text: str) -> None:
    table = _skip_comments(text)[0]
    if table.startswith("|") or MARKDOWN_RULE.match(table):
        raise DataError(f"{path} is a table in Markdown: save it as CSV")
    if advice := advise_on_first_line(text):
        raise DataError(f"{path} is no table{advice}")


MARKDOWN_RULE = re.compile(r".*\|.*\n[ |:]*-[ |:-]*\|[ |:-]*\n")


class TableOfTexts(NamedTuple):
    """The columns of a table, and its rows, each with the line it ends on."""

    columns: list[str]
    rows: Iterator[tuple[int, dict[str, str]]]


def read_table(path: Path, needed: Sequence[str] = (), known: Sequence[str] = ()) -> TableOfTexts:
    """The columns of a table and its rows, each with the line it ends on, all cells as text; a
    short row is filled with empty cells. Capitals do not matter in the names of columns that are
    needed or known. Raises DataError for a missing or repeated column and, while reading, for a row
    that is too long."""
    known = (*needed, *known)
    data = unpack(read_bytes(path), path)
    refuse_other_formats(path, data)
    text = "" if data.startswith((PARQUET_MAGIC, _ZIP_MAGIC)) else decode_text(data, path)
    if data and (not text or text.lstrip()[:1] in ("[", "{")):
        sheet = read_sheet(path, known)
        _need_columns(sheet.columns, needed, str(path))
        for line, row in sheet.rows:
            if nested := next((name for name in needed if isinstance(row.get(name), list)), None):
                raise DataError(f"{path}, row {line}: {nested} is a list: write one a row")
        rows_as_texts = ((line, _row_as_texts(sheet, row)) for line, row in sheet.rows)
        return TableOfTexts(list(sheet.columns), rows_as_texts)
    _refuse_other_texts(path, text)
    text, skipped_lines = _skip_comments(text)
    # With line ends as they are: a cell may hold some.
    lines = io.StringIO(text, newline="")
    table = parse_table(lines, str(path), needed, find_delimiter(text, known), known)
    return TableOfTexts(table.columns, ((line + skipped_lines, row) for line, row in table.rows))


# How lines above a table begin, which name no column: comments, and the delimiter for Excel.
COMMENT_STARTS = ("# ", "##", "#\n", "#\r", "sep=")


class _TableBody(NamedTuple):
    """A table without what stands above it, and how many lines that is."""

    text: str
    lines_above: int


def _skip_comments(text: str) -> _TableBody:
    """A table without the comments and empty lines above it, and how many lines these are."""
    lines = 0
    while text.startswith((*COMMENT_STARTS, "\n", "\r\n")):
        text, lines = text.partition("\n")[2], lines + 1
    return _TableBody(text, lines)


def read_required_cells(
    path: Path, columns: Sequence[str]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The cells of these columns of a table, row by row with the line, white space made one space.
    Raises DataError, while reading, for an empty cell, one that is no plain text, as the names of
    groups are everywhere (`kgbias.crawl.seeds`), or a file without rows."""
    line = 0
    for line, row in read_table(path, columns).rows:
        cells = tuple(" ".join(row[column].split()) for column in columns)
        if not all(cells):
            *first_columns, last_column = columns
            raise DataError(
                f"{path}, line {line}: a {', '.join(first_columns)} or {last_column} is empty"
            )
        if odd := next((cell for cell in cells if not is_plain(cell)), ""):
            raise DataError(f"{path}, line {line}: {printable(odd)!r} is no plain text")
        yield line, cells
    if not line:
        raise DataError(f"{path} has a header but no rows")


def find_delimiter(text: str, known: Sequence[str] = ()) -> str:
    """What separates the cells of a table, by its header: that which brings out these columns, else
    what parts it into the most cells."""
    header = text.lstrip("\r\n").partition("\n")[0]
    if _QUOTED_NAMES.fullmatch(header.strip()):
        return " "

    def rank(delimiter: str) -> tuple[int, int]:
        cells = _split_cells(header, delimiter)
        return len(_known_names_in(cells, known)), len(cells)

    best_delimiter = max(_DELIMITERS, key=rank)
    for delimiter, least in _RARE_DELIMITERS.items():
        if rank(delimiter)[0] > max(least - 1, rank(best_delimiter)[0]) and rank(delimiter)[1] > 1:
            return delimiter
    return best_delimiter


_QUOTED_NAMES = re.compile(r'"[^"]*"( "[^"]*")+')  # of columns, as R writes them


def _known_names_in(cells: Iterable[str], known: Iterable[str]) -> set[str]:
    """The known names among the cells of a line, whatever their capitals."""
    return {name.casefold() for name in known} & {cell.strip().casefold() for cell in cells}


def canonical_names(header: Sequence[str], known: Iterable[str]) -> list[str]:
    """The names of columns, without white space around them, those that are known as they are known
    (Group is group), unless that would name two alike."""
    stripped_names = [cell.strip(_HEADER_WHITESPACE) for cell in header]
    known_by_key = {name.casefold(): name for name in known}
    wanted_names = [known_by_key.get(name.casefold(), name) for name in stripped_names]
    name_counts = Counter(wanted_names)
    return [
        wanted if name_counts[wanted] == 1 else stripped
        for wanted, stripped in zip(wanted_names, stripped_names, strict=True)
    ]


_HEADER_WHITESPACE = "\ufeff \t\r\n\u00a0\u200b"  # around the name of a column


def _split_cells(line: str, delimiter: str) -> list[str]:
    try:
        reader = csv.reader([line.rstrip("\r\n")], delimiter=delimiter, skipinitialspace=True)
        return next(reader, [])
    except csv.Error:
        return [line]


def parse_table(
    lines: Iterable[str],
    source: str,
    needed: Sequence[str] = (),
    delimiter: str = ",",
    known: Sequence[str] = (),
) -> TableOfTexts:
    """As `read_table`, for lines in memory."""
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    # People write "Women, Men" with a space, which a quotation mark may follow.
    counted_lines = _QuoteCountingLines(lines)
    reader = csv.reader(counted_lines, delimiter=delimiter, skipinitialspace=True)
    try:
        header = canonical_names(next(reader, []), (*needed, *known))
        first_rows = [_NumberedCells(reader.line_num, row) for row in islice(reader, _CHECKED_ROWS)]
    except csv.Error as error:
        raise DataError(f"cannot read {source}: {error}") from error
    first_cells = [row.cells for row in first_rows]
    place = find_misplaced_header(header, first_cells, (*needed, *known))
    if place:
        raise DataError(
            f"{source}, line {first_rows[place - 1].line} names the columns: delete what is above "
            "it"
        )
    first_rows = first_rows[count_explaining_rows(first_cells) :]
    if first_rows and has_row_names(header, first_rows[0].cells):
        header = ["", *header]
    refuse_repeated_columns(header, source)
    _need_columns(header, needed, source)
    rows = chain(first_rows, (_NumberedCells(reader.line_num, cells) for cells in reader))
    return TableOfTexts(header, _parse_rows(rows, header, source, delimiter, counted_lines))


_CHECKED_ROWS = 5  # rows by which the header of a table is checked


class _NumberedCells(NamedTuple):
    """The cells of a row, and the line that it ends on."""

    line: int
    cells: list[str]


class _QuoteCountingLines:
    """The lines of a text, whose quotation marks are counted."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.quote_count = 0

    def __iter__(self) -> "_QuoteCountingLines":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.quote_count += line.count('"')
        return line


def find_misplaced_header(
    header: Sequence[str], first_rows: Sequence[Sequence[Any]], known: Iterable[str]
) -> int:
    """The number, from 1, of a later row that is the real header: it names more known columns than
    the first row, and nothing else, and a title or a name for several columns stands above it. 0 if
    the first row is the header."""
    known_names = list(known)
    found_count = len(_known_names_in(header, known_names))
    for number, row in enumerate(first_rows, 1):
        names = [str(cell) for cell in row if cell is not None and str(cell).strip()]
        if len(names) > found_count and len(_known_names_in(names, known_names)) == len(names):
            return number
    return 0


def count_explaining_rows(first_rows: Sequence[Sequence[Any]]) -> int:
    """How many rows below the header explain the columns, as in Qualtrics' exports: the question,
    and its id as JSON."""
    if len(first_rows) < 2:
        return 0
    return 2 * any(str(cell).startswith('{"ImportId"') for cell in first_rows[1])


def has_row_names(header: Sequence[str], first_row: Sequence[str]) -> bool:
    """Whether the rows begin with their number, which the header lacks, as R writes them."""
    return len(first_row) == len(header) + 1 and first_row[0] == "1"


def repeats_header(cells: Sequence[str], header: Sequence[str]) -> bool:
    """Whether a row holds the names of the columns again, as in files that were put together."""
    return len(cells) == len(header) and all(
        cell.strip(_HEADER_WHITESPACE).casefold() == name.casefold()
        for cell, name in zip(cells, header, strict=True)
    )


def is_comment(cells: Sequence[str], header: Sequence[str]) -> bool:
    """Whether a row of a table of several columns is a comment."""
    return len(cells) == 1 < len(header) and cells[0].startswith("# ")


def fit_row(cells: Sequence[str], header: Sequence[str]) -> list[str]:
    """The cells of a row as they were written, as many as the header has: without empty ones after
    the last delimiter, and with empty ones for those that are not there. Raises ValueError for a
    row that is too long."""
    while len(cells) > len(header) and not cells[-1].strip():
        cells = cells[:-1]
    if len(cells) > len(header) == 1:
        raise ValueError(
            f"a row has {len(cells)} cells, but the first line is not the names of columns, which "
            "a table begins with"
        )
    if len(cells) > len(header):
        raise ValueError(f"a row has {len(cells)} cells, but the header has {len(header)}")
    # Our own tables guard what a spreadsheet would take for a formula.
    return [*map(unescape_formula, cells), *[""] * (len(header) - len(cells))]


def _need_columns(header: Sequence[str], needed: Sequence[str], source: str) -> None:
    if missing_columns := [name for name in needed if name not in header]:
        refusal = no_such("column", missing_columns[0], filter(None, header), f" in {source}")
        raise DataError(
            f"{refusal} (a table begins with a line of their names){advise_on_columns(header)}"
        )


def is_missing(cell: str) -> bool:
    """Whether a cell stands for no value, as pandas, R and databases write it."""
    return cell.strip().upper() in ("", "NA", "NAN", "N/A", "NULL", "<NA>", "#N/A")


def parse_number(cell: Any) -> float:
    """The number in a cell, with a point or a comma before its decimals. Raises ValueError for what
    is none."""
    text = str(cell).strip()
    if _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    return float(text)


_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")


def refuse_repeated_columns(header: Sequence[str], source: str) -> None:
    """Raise DataError if two columns have the same name: one of them would be lost."""
    seen_names: set[str] = set()
    for name in header:
        if name and name in seen_names:
            raise DataError(f"{source} has the column {name!r} twice")
        seen_names.add(name)


def _parse_rows(
    rows: Iterable[_NumberedCells],
    header: Sequence[str],
    source: str,
    delimiter: str,
    lines: _QuoteCountingLines,
) -> Iterator[tuple[int, dict[str, str]]]:
    line, cells = 1, list[str]()
    try:
        for line, cells in rows:
            # Between tabs, a cell that holds both is rows that a quotation mark made one.
            is_swallowed = delimiter == "\t" and any("\t" in c and "\n" in c for c in cells)
            if is_swallowed or (cells and len(cells) < len(header) and "\n" in cells[-1]):
                raise ValueError(_OPEN_QUOTE)
            if any(map(str.strip, cells)) and not (
                repeats_header(cells, header) or is_comment(cells, header)
            ):
                yield line, dict(zip(header, fit_row(cells, header), strict=True))
        if cells and "\n" in cells[-1] and lines.quote_count % 2:
            raise ValueError(_OPEN_QUOTE)
    except csv.Error as error:
        raise DataError(f"{source}, after line {line}: {error}") from error
    except ValueError as error:
        raise DataError(f"{source}, line {line}: {error}") from error


_OPEN_QUOTE = "a quotation mark is opened and not closed in the row that ends here"


# Text


def _parse_text(path: Path, text: str, known: Sequence[str], lines: bool) -> Sheet:
    """A table with a header or, where that is allowed, a list with one value a line."""
    body, skipped_lines = _skip_comments(text)
    delimiter = find_delimiter(body, known)
    has_names = delimiter == " " or _known_names_in(
        _split_cells(_first_line(body), delimiter), known
    )
    if has_names or not lines:
        stream = io.StringIO(body, newline="")
        columns, rows = parse_table(stream, str(path), (), delimiter, known)
        form = _DELIMITERS.get(delimiter, "a table")
        if len(columns) == 1:
            form = "a list with a header"
        return Sheet(
            path, form, tuple(columns), [(line + skipped_lines, row) for line, row in rows]
        )
    numbered_lines = [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if all(_BULLET.match(line) for _, line in numbered_lines):
        numbered_lines = [(number, _BULLET.sub("", line)) for number, line in numbered_lines]
    if all(line[0] + line[-1] == "“”" for _, line in numbered_lines):
        numbered_lines = [(number, line[1:-1].strip()) for number, line in numbered_lines]
    _check_list(path, body, [line for _, line in numbered_lines], known)
    return Sheet(
        path,
        "a list, one a line",
        (),
        [(line_number, {UNNAMED_COLUMN: line}) for line_number, line in numbered_lines],
    )


_BULLET = re.compile(r"(?:[-*•]|\d+[.)])\s+")


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _check_list(path: Path, body: str, values: Sequence[str], known: Sequence[str]) -> None:
    """Raise DataError for a table, whose columns are others or have no names, and for what another
    program printed: neither is a list with one value a line."""
    checked_values = values[:_CHECKED_LINES]
    for pattern, form in _OTHER_LINE_FORMS.items():
        if line := next((value for value in checked_values if re.fullmatch(pattern, value)), ""):
            raise DataError(f"{path} is {form} ({line[:60]!r}), and no text with one value a line")
    for value in checked_values[1:]:
        for delimiter in _DELIMITERS:
            cells = _split_cells(value, delimiter)
            if len(cells) > 1 and len(_known_names_in(cells, known)) == len(cells):
                raise DataError(
                    f"{path}: {value[:60]!r} names the columns of a table: delete what is above it"
                )
    for delimiter, form in _DELIMITERS.items():
        if columns := _table_columns(body, delimiter):
            raise DataError(
                f"{path} is {form}, and has no column {' or '.join(map(repr, known))}; its columns "
                f"are {list_columns(columns)} (a table begins with a line of their names)"
                f"{advise_on_columns(columns)}"
            )
    if name := _name_of_only_column(checked_values):
        raise DataError(
            f"{path} begins with {name!r}, which seems to name the column: write {known[0]!r} "
            "there, or delete the line"
        )
    fixed_rows = [re.split(r"\s{2,}", value) for value in checked_values]
    # The last line stands for all others in word vectors, whose first line counts them.
    words = checked_values[-1].split() if checked_values else []
    is_vector = len(words) > _MAX_WORDS_OF_TEXT and all(
        map(_NUMBER_BETWEEN_SPACES.fullmatch, words[1:])
    )
    if is_vector or (
        fixed_rows and all(len(cells) > 1 and _NUMBER.fullmatch(cells[-1]) for cells in fixed_rows)
    ):
        raise DataError(
            f"{path} is a table in columns of a fixed width: save it as CSV, with a first line "
            f"that names the columns, one of them {' or '.join(known)}"
        )
    if dashed := next((value for value in checked_values if value.startswith("- ")), ""):
        raise DataError(
            f"{path}: {dashed[:60]!r} stands below another line, as in YAML: write one "
            "value a line, or JSON"
        )
    if len(checked_values) > 1 and all(map(_YAML_LINE.match, checked_values)):
        raise DataError(
            f"{path}: {checked_values[0][:60]!r} is written as in YAML: write one value a line, or "
            "JSON"
        )
    if checked_values and all(map(_ADDRESS.match, checked_values)):
        raise DataError(f"{path}: {checked_values[0][:60]!r} is an address, and no text")
    if _is_broken_prose(checked_values):
        raise DataError(f"{path} is prose whose lines are broken: write one value a line")
    if no_text := next((value for value in values if not _LETTER.search(value)), ""):
        raise DataError(f"{path}: {no_text[:60]!r} has no letter: delete the line")
    if no_value := next(filter(is_missing, values), ""):
        raise DataError(f"{path}: {no_value!r} stands for no value: delete the line")
    for pattern, form in _OTHER_TEXT_FORMS.items():
        if re.match(pattern, body.lstrip(), re.MULTILINE):
            raise DataError(f"{path} is {form}, and no text with one value a line")
    if checked_values and all(value.endswith(_LATEX_ROW_END) for value in checked_values):
        raise DataError(f"{path} is a table in LaTeX: save it as CSV")
    if checked_values and all(_PARALLEL_CORPUS_DELIMITER in value for value in checked_values):
        raise DataError(
            f"{path}: {checked_values[0][:60]!r} holds two texts, with "
            f"{_PARALLEL_CORPUS_DELIMITER} between them: write one text a line"
        )
    if program_output := next((value for value in checked_values if value[0] in "[{(|<"), ""):
        raise DataError(
            f"{path}: {program_output[:60]!r} is no text of one value a line; write the value "
            "itself, or JSON"
        )


def _table_columns(body: str, delimiter: str) -> list[str]:
    """The first row of a text whose rows are those of a table, which have equally many cells; none
    for a list of texts. Sentences, too, have commas, so a table between commas also has numbers or
    begins with names in one word, or with one that columns of texts have."""
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter, skipinitialspace=True)
    plain_reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter)
    try:
        rows = list(islice((row for row in reader if any(row)), _CHECKED_LINES))
        plain_rows = list(islice(plain_reader, _CHECKED_LINES))
    except csv.Error:
        return []
    header = [cell.strip() for cell in rows[0]] if rows else []
    alike_share = sum(len(row) == len(header) for row in rows) / max(1, len(rows))
    if len(header) < 2 or alike_share < (0.75 if len(header) > 2 else 1):
        return []
    if delimiter != ",":
        return header
    has_names = len(header) > 2 and all(map(_NAME_OF_COLUMN.fullmatch, header))
    has_names = has_names or all(map(_is_header_word, header))
    # No space after any comma: these are cells, and no sentences.
    is_tight = all(cell[:1] != " " for row in plain_rows for cell in row[1:])
    has_names = has_names or (is_tight and len(rows) > 1 and alike_share == 1)
    if len(rows) == 1:
        has_names = has_names and all(map(_is_header_word, header))
    elif len(header) > 3 and alike_share == 1:
        has_names = has_names or any(map(_is_header_word, header))
    has_numbers = any(_NUMBER.fullmatch(cell.strip()) for row in rows for cell in row)
    return header if has_names or (has_numbers and alike_share == 1) else []


_NAME_OF_COLUMN = re.compile(r"\S{0,60}")
_YAML_LINE = re.compile(r"[\w.-]+ *:(\s|$)")
_LETTER = re.compile(r"[^\W\d_]")
_ADDRESS = re.compile(r"(https?|ftp)://\S+$")
_OTHER_TEXT_FORMS = {  # how texts begin that other programs write or read
    r"\\(begin|documentclass)\{": "a text in LaTeX",
    r"(diff -{2}git|-{3} \S+\n\+{3} \S)": "a difference of two files",
    r"(From|To|Subject|Date|Message-ID): ": "a mail",
    r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d": "a log",
    r"(import \w+$|from [\w.]+ import |#!/|/\*|//)": "a program",
    r"(-DOCSTART-|(\S+ )+([BIES]-\w+|O)\n(\S+ )+([BIES]-\w+|O)\n)": "a text in CoNLL's form",
    r"[TRE]\d+\t\w+ \d+ \d+": "brat's annotations",
}
_OTHER_LINE_FORMS = {  # lines that other programs write or read, below whatever comes first
    # A version has a point: "aged >=65" is a group.
    r"[\w.-]+(\[[\w,-]+\])? ?(==|~=|>=|<=) ?\d+\.\d\S*( *;.*)?": "a list of requirements",
    r"[-dlbcps]([r-][w-][xsStT-]){3}[.+@]? +\d.*": "the output of ls",
}
_PARALLEL_CORPUS_DELIMITER = "|||"
_LATEX_ROW_END = "\\\\"
_NUMBER_BETWEEN_SPACES = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
_MAX_WORDS_OF_TEXT = 20  # words of a line that is no vector


def _name_of_only_column(values: Sequence[str]) -> str:
    """The first line of a list, if it seems to name what follows: it is a word for it, or written
    as no other line is; "" if it does not."""
    if len(values) < 2:
        return ""
    first_text = values[0].strip("\"'")
    if not first_text[:1].isalnum():
        return ""
    words = re.split(r"[\W_]+", first_text.casefold())
    is_identifier = "_" in first_text and not any(" " in first_text or "_" in v for v in values[1:])
    is_header = all(map(_is_header_word, filter(None, words)))
    return first_text if is_identifier or is_header else ""


def _is_broken_prose(lines: Sequence[str]) -> bool:
    """Whether lines go on in the next one: it begins in small letters, and its first word had no
    room in the one above, which ends no sentence."""
    if not lines or not any(line[0].isupper() for line in lines):
        return False
    width = max(map(len, lines))
    full_count = 0
    for line, following in pairwise(lines):
        goes_on = line[-1] not in ".!?:;" and following[0].islower()
        full_count += (
            goes_on and len(line) + 1 + len(following.split()[0]) > _FULL_LINE_SHARE * width
        )
    return width >= _MIN_PROSE_WIDTH and full_count > 1


_MIN_PROSE_WIDTH = 50  # characters
_FULL_LINE_SHARE = 0.95  # of the longest line


def is_sentence(name: str) -> bool:
    """Whether what should be a name is a sentence."""
    return name.endswith(".") and len(name.split()) > _MAX_NAME_WORDS


_MAX_NAME_WORDS = 4  # of a name that ends in a full stop: "people of the U.S."


def _is_header_word(word: str) -> bool:
    return word.casefold().removesuffix("s") in _HEADER_WORDS


_HEADER_WORDS = {  # in the singular
    *("group", "identity", "identitie", "term", "name", "demographic", "category", "id", "index"),
    *("statement", "sentence", "text", "prompt", "stereotype", "attribute", "word", "label"),
    *("descriptor", "target", "subject", "predicate", "object", "count", "arm", "score"),
}


# JSON


def _parse_json(path: Path, text: str, known: Sequence[str], lists: bool) -> Sheet | None:
    """The rows of JSON, as a whole or line by line; None for a text that only begins so."""
    try:
        value = parse_json(text, str(path))
    except DataError as error:
        if isinstance(error.__cause__, json.JSONDecodeError):
            return _parse_json_lines(path, text, known, error.__cause__)
        raise
    if isinstance(value, str):
        return None
    if isinstance(value, dict) and not {"@context", "licenses", "resources"}.isdisjoint(value):
        raise DataError(
            f"{path} describes a data set (Croissant, Data Package ...): hand over the table itself"
        )
    if lists and isinstance(value, list):
        value = _as_objects(value, known)
    is_object = isinstance(value, dict)
    rows = _find_rows(value, known)
    if rows is None and value == []:
        rows = []
    if rows is not None:
        return _make_sheet(path, "JSON", rows, known)
    tables = (
        [name for name, item in value.items() if _is_list_of_objects(item)] if is_object else []
    )
    if len(tables) > 1:
        names = list_columns(map(str, tables))
        raise DataError(f"{path} holds several tables, {names}: hand over one of them")
    if not lists:
        advice = advise_on_keys(value) if is_object else ""
        raise DataError(f"{path} is JSON, but no list of objects, one for each row{advice}")
    texts = list(_iter_text_rows(path, value, ""))
    columns = (UNNAMED_COLUMN, "category") if is_object else (UNNAMED_COLUMN,)
    return Sheet(path, "JSON", columns, list(enumerate(texts, 1)))


def _parse_json_lines(
    path: Path, text: str, known: Sequence[str], error: json.JSONDecodeError
) -> Sheet | None:
    """The rows of JSON lines; None for a text whose first line is no JSON and need not be any."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    first_text = lines[0][1].strip()
    try:
        if str(json.loads(first_text)).casefold() in known:
            return None  # the header of a table with one column, in quotation marks
    except ValueError:
        is_python = first_text.startswith(PYTHON_OBJECT_START)
        if is_python and isinstance(parse_literal(first_text), dict):
            pass
        elif first_text == "[" or first_text.startswith(('["', "[{", "{")):
            raise DataError(f"{path} is not JSON: {error}") from error
        else:
            return None
    values = [_parse_json_line(line, f"{path}, line {number}") for number, line in lines]
    values = _as_objects(values, known) if known else values
    rows = list(zip((number for number, _ in lines), values, strict=True))
    if wrong_number := next((number for number, row in rows if not isinstance(row, dict)), None):
        raise DataError(f"{path}, line {wrong_number} is not a JSON object")
    return _make_sheet(path, "JSON lines", rows, known)


def _parse_json_line(text: str, source: str) -> Any:
    """The value of a line, which may be written as Python prints it."""
    value = parse_literal(text) if text.lstrip().startswith(PYTHON_OBJECT_START) else None
    return value if isinstance(value, dict) else parse_json(text, source)


PYTHON_OBJECT_START = "{'"


def _as_objects(values: list[Any], known: Sequence[str]) -> list[Any]:
    """The values of a list in which texts stand beside objects: a text is the column that the
    objects name first of the known ones."""
    objects = [value for value in values if isinstance(value, dict)]
    if not objects or len(objects) == len(values):
        return values
    column = next((name for name in known if name in objects[0]), known[0])
    return [{column: value} if isinstance(value, str) else value for value in values]


def _find_rows(value: Any, known: Sequence[str]) -> list[NumberedRow] | None:
    """The rows of a list of objects, of an object that holds one, of a frame's columns, or of lists
    of cells below one of names; an object with a text in a known column is a row itself."""
    if isinstance(value, dict):
        values = list(value.values())
        if any(isinstance(value.get(name), str | int) for name in known):
            return [(1, value)]
        tables = [item for item in values if _is_list_of_objects(item)]
        if isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
            value = [value["columns"], *value["data"]]  # as pandas splits a frame
        elif isinstance(value.get("rows"), list) and _is_list_of_objects(value["rows"]):
            value = [row.get("row", row) for row in value["rows"]]  # as the hub answers
        elif len(tables) == 1 and not any(
            isinstance(other, list) and other is not tables[0] for other in values
        ):
            value = tables[0]
        elif _known_names_in(value, known) and all(isinstance(other, list) for other in values):
            if len({len(item) for item in values}) > 1:
                return None
            value = [dict(zip(value, cells, strict=True)) for cells in zip(*values, strict=True)]
        elif (
            not _known_names_in(value, known)
            and _is_list_of_objects(values)
            and all(_known_names_in(other, known) for other in values)
        ):
            value = values  # rows by their ids
        elif values and all(
            isinstance(other, dict) and list(other) == list(values[0]) for other in values
        ):
            if any(isinstance(cell, dict | list) for item in values for cell in item.values()):
                return None
            value = [{name: item[key] for name, item in value.items()} for key in values[0]]
    if _is_grid(value) and (not known or _known_names_in(value[0], known)):
        value = [dict(zip(value[0], cells, strict=False)) for cells in value[1:]]
    return list(enumerate(value, 1)) if _is_list_of_objects(value) else None


def _is_grid(value: Any) -> bool:
    """Whether a value is lists of cells, the first of which may be names of columns."""
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(row, list) for row in value)
        and all(isinstance(name, str) for name in value[0])
    )


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _make_sheet(path: Path, form: str, rows: Sequence[NumberedRow], known: Sequence[str]) -> Sheet:
    """Rows with the columns of all of them, since not all need to have each."""
    written_names = list(dict.fromkeys(str(name) for _, row in rows for name in row))
    columns = canonical_names(written_names, known)
    if columns != written_names:
        canonical_by_name = dict(zip(written_names, columns, strict=True))
        rows = [
            (number, {canonical_by_name[str(name)]: cell for name, cell in row.items()})
            for number, row in rows
        ]
    return Sheet(path, form, tuple(columns), rows)


def _iter_text_rows(
    path: Path, value: Any, category: str, depth: int = 0
) -> Iterator[dict[str, Any]]:
    """The texts in nested lists, each with the category that its object names."""
    if isinstance(value, dict) and depth < _MAX_LIST_DEPTH:
        if advice := advise_on_keys(value):
            raise DataError(f"{path} holds no texts by category{advice}")
        for name, item in value.items():
            yield from _iter_text_rows(path, item, f"{category} {name}".strip(), depth + 1)
        return
    if not isinstance(value, list):
        raise DataError(
            f"{path} must hold lists of texts, or an object of them by category; there is "
            f"{json.dumps(value)[:60]}"
        )
    for number, text in enumerate(value, 1):
        if not isinstance(text, str):
            position = f"{category}, entry {number}" if category else f"entry {number}"
            raise DataError(
                f"{path}, {position}: {json.dumps(text, ensure_ascii=False)[:60]} is no text; "
                "write one text for each entry"
            )
        yield {UNNAMED_COLUMN: text, "category": category}


# Parquet and Excel


def _parse_parquet(path: Path, data: bytes, known: Sequence[str]) -> Sheet:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("pyarrow", extra="parquet") from error
    rows: list[Any] = []
    size = 0
    try:
        with pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data)) as file:
            for batch in file.iter_batches(batch_size=1024):
                size += batch.nbytes  # a small file may hold the same text many times
                if size > MAX_FILE_BYTES:
                    raise DataError(
                        f"{path} is larger than {MAX_FILE_BYTES >> 30} GB when unpacked"
                    )
                rows += batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {first_line(error)}") from error
    return _make_sheet(path, "Parquet", list(enumerate(rows, 1)), known)


def _parse_workbook(path: Path, data: bytes, known: Sequence[str]) -> Sheet:
    """The sheet of an Excel workbook. Its formulas are not computed."""
    try:
        entries = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} is a damaged archive") from error
    # Before anything is unpacked: a small archive may hold terabytes.
    if sum(entry.file_size for entry in entries) > MAX_FILE_BYTES:
        raise DataError(f"{path} is larger than {MAX_FILE_BYTES >> 30} GB when unpacked")
    if "xl/workbook.xml" not in [entry.filename for entry in entries]:
        raise DataError(f"{path} is an archive: unpack it, and hand over the file inside")
    try:
        import openpyxl
    except ModuleNotFoundError as error:
        raise MissingExtra("openpyxl", extra="excel") from error
    try:
        # `data_only`: what the formulas gave when the workbook was saved.
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        tables = {
            sheet.title: [list(line) for line in sheet.iter_rows(values_only=True)]
            for sheet in book.worksheets
        }
    except Exception as error:  # a damaged workbook may raise anything
        raise DataError(f"{path} cannot be read as a workbook: {first_line(error)}") from error
    lines = _choose_sheet(path, tables, known)
    header = canonical_names(_first_row_cells(lines), known)
    refuse_repeated_columns(header, str(path))
    first_rows = lines[1 : 1 + _CHECKED_ROWS]
    if place := find_misplaced_header(header, first_rows, known):
        raise DataError(f"{path}, row {place + 1} names the columns: delete what is above it")
    skipped = count_explaining_rows(first_rows)
    rows = [
        (number, dict(zip(header, line, strict=False)))
        for number, line in enumerate(lines[1 + skipped :], 2 + skipped)
        if any(cell is not None for cell in line)
    ]
    return Sheet(path, "an Excel workbook", tuple(filter(None, header)), rows)


def _first_row_cells(lines: Sequence[Sequence[Any]]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in (lines[0] if lines else [])]


def _choose_sheet(
    path: Path, tables: Mapping[str, list[list[Any]]], known: Sequence[str]
) -> list[list[Any]]:
    """The one sheet that has known columns; the first if none has. Raises DataError if several
    have: their rows may belong together or not."""
    with_columns = {
        title: lines
        for title, lines in tables.items()
        if _known_names_in(_first_row_cells(lines), known)
    }
    if len(with_columns) > 1:
        raise DataError(
            f"{path} has such a table on several sheets, {list_columns(with_columns)}: save the "
            "one that you mean as CSV, or all in one"
        )
    return next(iter((with_columns or tables).values()), [])


def parse_literal(cell: Any) -> Any:
    """The list or object that a cell holds as text, as Python or JSON write it; any other cell as
    it is."""
    if not isinstance(cell, str) or cell.lstrip()[:1] not in ("[", "(", "{"):
        return cell
    if len(cell) > _MAX_LITERAL_CHARACTERS:
        return cell
    # Python first: a list in single quotes is no JSON.
    for parse in (ast.literal_eval, json.loads):
        try:
            return parse(cell.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return cell


_MAX_LITERAL_CHARACTERS = 20_000  # characters


def as_text(cell: Any) -> str:
    """A cell as it would stand in CSV."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool | list | dict):
        return json.dumps(cell, ensure_ascii=False)
    return str(cell)


def _row_as_texts(sheet: Sheet, row: Mapping[str, Any]) -> dict[str, str]:
    return {name: as_text(row.get(name)) for name in sheet.columns}
