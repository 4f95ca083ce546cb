"""Model text is hostile: how it stays text in each kind of file."""

import re
from typing import Any, TextIO

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "-": "{-}", "’": "{'}", "‘": "{`}",
    "“": "{``}", "”": "{''}", "–": r"\textendash{}", "—": r"\textemdash{}", "…": r"\ldots{}",
}  # fmt: skip


def printable(text: str) -> str:
    """Text that a terminal may be shown: no control characters, nothing that reverses a line."""
    return "".join(c if c.isprintable() else "�" for c in text)


def shown(text: str, file: TextIO) -> str:
    """Text for a file as it is; for a terminal, line by line, what a terminal may be shown."""
    if not file.isatty():
        return text
    return "\n".join(printable(line) for line in text.split("\n"))


def defused(value: Any) -> Any:
    """A cell that a spreadsheet shows as text: what would be a formula gets an apostrophe."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return "'" + value
    return value


def xml_safe(text: str) -> str:
    """Text that XML 1.0 can hold: the characters that it cannot are replaced. (The writer of the
    file escapes the markup.)"""
    return _CONTROL.sub("�", text)


def latex(text: str, longest: int = 80) -> str:
    """Text as pdfLaTeX prints it with UTF-8 input and T1 fonts; a character outside Latin script is
    shown by its code point, since plain LaTeX has no glyph for it."""
    return "".join(_latex_character(c) for c in shortened(text, longest))


def _latex_character(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    code = ord(character)
    if 0x20 <= code < 0x7F or (0xC0 <= code <= 0x17E and character.isalpha()):
        return character
    return f"{{\\tiny U+{code:04X}}}"


def shortened(text: str, longest: int) -> str:
    """The text on one line, at most so many characters of it."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
