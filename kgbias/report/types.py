"""What parts of a report are made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A part that another command adds to the report. `html` is inserted as it is: whoever makes
    it escapes it."""

    title: str
    html: str
    anchor: str
