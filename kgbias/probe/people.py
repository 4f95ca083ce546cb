"""Groups of people as lists of given names write them, and as statements name them."""

import ast

_PEOPLE = {"F": "women", "M": "men"}


def as_people(ethnicity: str, gender: str) -> str:
    """A group as people: "ARAB" and "F" are "Arab women"; "" where either is unknown."""
    if not (ethnicity and gender):
        return ""
    return f"{ethnicity.capitalize()} {_PEOPLE.get(gender, gender)}"


def pair_of(group: str) -> tuple[str, str] | None:
    """The ethnicity and gender of a group as GlobalBias writes it, "('ARAB', 'F')"; None for a
    group of any other form."""
    try:
        pair = ast.literal_eval(group) if group[:1] == "(" else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(x, str) for x in pair):
        return pair
    return None


def people_of(group: str) -> str:
    """A group as statements name it: "Arab women" for "('ARAB', 'F')" and for "ARAB F", any other
    group as it is."""
    ethnicity, gender = pair_of(group) or group.rpartition(" ")[::2]
    return as_people(ethnicity, gender) if ethnicity and gender in _PEOPLE else group
