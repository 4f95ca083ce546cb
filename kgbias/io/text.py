"""Model text is hostile: what keeps it text in each kind of file. One escape per target.

SQL gets model text as a parameter, and no file is named by it. `kgbias.cli.show` escapes all that
is printed.
"""

import html as _html
import json
import re
from functools import cache
from typing import Any, TextIO
from unicodedata import combining, east_asian_width, normalize

CONTENT_WARNING = (
    "Content warning: this holds statements about groups of people that a language model produced. "
    "Many are false, offensive or hurtful."
)
SAMPLE_CAVEAT = (
    "A crawl is a sample of what a model says when it is asked in certain ways. It is not evidence "
    "of what is true of anyone, and it is not all that the model could say."
)

_CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",
    "]": "{]}",
    "’": "{'}",
    "‘": "{`}",
    "“": "{``}",
    "”": "{''}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}


_LATEX_LETTERS = {
    "ß": "ss",
    "æ": "ae",
    "Æ": "AE",
    "œ": "oe",
    "Œ": "OE",
    "ø": "o",
    "Ø": "O",
    "ł": "l",
    "Ł": "L",
    "đ": "dj",
    "Đ": "DJ",
    "ð": "dh",
    "Ð": "DH",
    "þ": "th",
    "Þ": "TH",
    "ŋ": "ng",
    "Ŋ": "NG",
    "ı": "i",
    "ȷ": "j",
}
_LATEX_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0323": "d",
    "\u0327": "c",
    "\u0328": "k",
}


def format_number(value: float, form: str) -> str:
    """A number for display: a zero has no sign (never "-0.00")."""
    if "z" in form:
        return f"{value:{form}}"
    sign, remainder = (form[0], form[1:]) if form[:1] in ("+", "-", " ") else ("", form)
    # `z` (PEP 682) writes what rounds to -0.0 as 0.0.
    return f"{value:{sign}z{remainder}}"


def format_p_value(p: float) -> str:
    """A p-value for display: "<0.0001", "0.0312", "1"."""
    if p < 1e-4:
        return "<0.0001"
    return f"{p:.4f}" if p < 0.99995 else "1"  # what would be rounded to 1.0000


def spoken_name(name: str) -> str:
    """A name of the code, such as a measure's, in sentences and tables: identity_attack is
    "identity attack"."""
    return name.replace("_", " ")


def type_with_article(value: object) -> str:
    """The type of a value, after "a" or "an"."""
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def storable(text: str) -> str:
    """The text with lone surrogates replaced: a model may say anything, but stores keep UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_JOINERS = "\u200c\u200d"  # between letters in Persian, Hindi and Sinhala, and in emoji


def is_plain(text: str) -> bool:
    """Whether a name is text that can be shown as it is: no control characters, and nothing that
    reverses a line. Joiners are part of how many languages are written."""
    return all(c.isprintable() or c in _JOINERS for c in text)


def printable(text: str) -> str:
    """Text that is safe in a terminal: no control characters, nothing that reverses a line."""
    return "".join(c if is_plain(c) else "�" for c in text)


def printable_if_terminal(text: str, file: TextIO) -> str:
    """The text as it is for a file; with each line made `printable` for a terminal."""
    if not file.isatty():
        return text
    return "\n".join(printable(line) for line in text.split("\n"))


def escape_formula(value: Any) -> Any:
    """A CSV cell that a spreadsheet shows as text: anything it would take for a formula gets an
    apostrophe in front."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return "'" + value
    return value


def unescape_formula(cell: str) -> str:
    """The text of a cell that `escape_formula` wrote."""
    return cell[1:] if cell[:1] == "'" and escape_formula(cell[1:]) == cell else cell


def html(text: str) -> str:
    """Text for HTML, in an element or in a quoted attribute."""
    return _html.escape(text, quote=True)


def json_in_html(value: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever text it holds. Raises
    ValueError for NaN."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # The last two end a line in older JavaScript, but not in JSON.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def replace_non_xml(text: str) -> str:
    """Text that XML 1.0 can hold: other characters are replaced. (The file's writer escapes
    markup.)"""
    return _CONTROL_CHARACTERS.sub("�", text)


def markdown(text: str) -> str:
    """Text for one line of Markdown, including a table cell: it can be neither markup nor HTML."""
    text = _html.escape(" ".join(printable(" ".join(text.split())).split()), quote=False)
    return re.sub(r"([\\`*_{}\[\]#|~<>$])", r"\\\1", text)


def latex(text: str) -> str:
    """Text on one line of LaTeX with T1 fonts, for pdfLaTeX and LuaLaTeX alike: it can neither run
    a command nor end a row, and hyphens stay hyphens. Accented Latin letters become commands; other
    characters outside ASCII are shown by code point, since plain LaTeX has no glyphs for them.
    Words in other scripts stand beside their code points in a macro (`LATEX_SCRIPT`)."""
    # Composed: `_latex_character` looks at one character with its accents.
    text = "".join(" " if c.isspace() else c for c in normalize("NFC", text))
    parts = _other_script().split(text)
    escaped = [
        f"\\kgbiasscript{{{part}}}{{{_latex_characters(part)}}}"
        if n % 2
        else _latex_characters(part)
        for n, part in enumerate(parts)
    ]
    return re.sub("-(?=-)", "-{}", "".join(escaped))


LATEX_SCRIPT = r"\providecommand{\kgbiasscript}[2]{#2}"
"""What a document needs if `latex` wrote words in other scripts: their code points are shown. A
document that has fonts for them shows the words: \\newcommand{\\kgbiasscript}[2]{{\\myfont #1}}."""
# Words of Arabic, Hebrew, Indic and East Asian scripts: letters, their marks, spaces between.
_SCRIPT_LETTER = (
    r"[\u05d0-\u05ea\u0620-\u065f\u066e-\u06d3\u0900-\u0963\u0980-\u0dff\u0e01-\u0e4e"
    r"\u1100-\u11ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
)


@cache
def _other_script() -> re.Pattern[str]:
    """Words of such scripts. Compiled when LaTeX is written: it takes longer than all else here."""
    return re.compile(rf"({_SCRIPT_LETTER}+(?: +{_SCRIPT_LETTER}+)*)")


def display_width(text: str) -> int:
    """How many columns a text takes where each letter has the same width: two for a Chinese,
    Japanese or Korean one, none for a mark."""
    return sum(
        0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in normalize("NFC", text)
    )


def _latex_characters(text: str) -> str:
    return "".join(map(_latex_character, text))


def _latex_character(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    if " " <= character <= "~":
        return character
    if character in _LATEX_LETTERS:
        return f"\\{_LATEX_LETTERS[character]}{{}}"
    letter, *marks = list(normalize("NFD", character))
    if letter.isascii() and letter.isalpha() and len(marks) == 1 and marks[0] in _LATEX_ACCENTS:
        return f"\\{_LATEX_ACCENTS[marks[0]]}{{{letter}}}"
    return f"{{\\tiny U+{ord(character):04X}}}"


def turtle(text: str) -> str:
    """A quoted Turtle string: quotes, backslashes and control characters escaped."""
    return '"' + "".join(map(_turtle_character, text)) + '"'


def _turtle_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    code = ord(character)
    if (
        code < 0x20
        or 0x7F <= code < 0xA0
        or 0x2028 <= code <= 0x202E
        or code in (0xFEFF, 0xFFFE, 0xFFFF)
    ):
        return f"\\u{code:04X}"
    return character


def dot_label(text: str) -> str:
    """A quoted DOT string of at most 80 characters: Graphviz reads backslashes and HTML entities in
    labels."""
    text = replace_non_xml(printable(shorten(text, 80)))
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") + '"'


def format_duration(seconds: float) -> str:
    """A time as text, such as "42 s", "5 min" or "2.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def shorten(text: str, max_characters: int) -> str:
    """The text on one line, at most `max_characters` characters of it."""
    text = " ".join(text.split())
    return text if len(text) <= max_characters else text[: max_characters - 1].rstrip() + "…"
