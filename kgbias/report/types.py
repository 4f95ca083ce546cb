"""What a section of a report is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report. `html` is inserted unescaped: whoever builds it escapes the text in
    it."""

    title: str
    html: str
    anchor: str
