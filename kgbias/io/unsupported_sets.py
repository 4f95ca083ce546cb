"""Published data sets that hold nothing that a door of kgbias asks for: known by what is in the
file, whatever it is called, so that a refusal can name them and say what to do instead."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnsupportedSet:
    """A set, and how it is known: by columns, by keys of a JSON object (any of them will do), or by
    how its lines begin. `advice` says what to do with it."""

    name: str
    advice: str
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    lines: re.Pattern[str] | None = None


UNSUPPORTED_SETS = (
    UnsupportedSet(
        "HONEST (Nozza et al. 2021)",
        "its column identity is read as `identities`; its templates are for a model to complete: "
        "import what it completes",
        columns=("template_masked", "identity"),
    ),
    UnsupportedSet(
        "BOLD (Dhamala et al. 2021)",
        "its prompts are for a model to complete: import what it completes",
        keys=(
            "American_actors",
            "Asian_Americans",
            "left-wing",
            "metalworking_occupations",
            "judaism",
        ),
    ),
    UnsupportedSet(
        "HolisticBias (Smith et al. 2022)",
        "its script generate_sentences.py writes noun_phrases.csv, whose column plural_noun_phrase "
        "is read as `identities`",
        columns=("descriptor", "bucket"),
        keys=("gender_and_sex", "body_type"),
    ),
    UnsupportedSet(
        "UnQover (Li et al. 2020)",
        "a list of groups has a name on each line: take [subj] and what is in brackets away",
        lines=re.compile(r"\[(subj|[lp]_act)\S*\] "),
    ),
    UnsupportedSet(
        "WinoBias (Zhao et al. 2018)",
        "its sentences mark no answers to choose between: Winogender's are read as `winogender`",
        # Some copies number the sentences.
        lines=re.compile(r".*\[(he|she|him|her|his)\]", re.IGNORECASE),
    ),
    UnsupportedSet(
        "SHADES (Mitchell et al. 2025)",
        "name a column of one language, as text in a table of its own with the column statement",
        columns=("stereotype_valid_langs",),
    ),
    UnsupportedSet(
        "SHADES (Mitchell et al. 2025), as it was collected",
        "name a column of one language, as text in a table of its own with the column statement",
        columns=("Original Language of the Stereotype",),
    ),
    UnsupportedSet(
        "ImplicitBBQ",
        "it does not say which of its answers follows a stereotype; BBQ's own files do",
        columns=("attribute_present_implicitly",),
    ),
)


def advise_on_columns(columns: Collection[str]) -> str:
    """What to add to the refusal of a table with these columns; "" if the set is not known."""
    return _advise(f for f in UNSUPPORTED_SETS if f.columns and set(f.columns) <= set(columns))


def advise_on_keys(keys: Collection[str]) -> str:
    """The same, for a JSON object with these keys."""
    return _advise(f for f in UNSUPPORTED_SETS if not set(f.keys).isdisjoint(keys))


def advise_on_first_line(text: str) -> str:
    """The same, for the first line of a text that is no comment."""
    lines = (line for line in text.splitlines() if line.strip() and line[:1] != "#")
    first_line = next(lines, "")
    return _advise(f for f in UNSUPPORTED_SETS if f.lines and f.lines.match(first_line))


def _advise(matches: Iterator[UnsupportedSet]) -> str:
    published = next(matches, None)
    return f"; this is {published.name}: {published.advice}" if published else ""
