"""One name or several, as parameters such as `category` and `group` take them."""

from collections.abc import Iterable

Names = str | Iterable[str]


def as_names(given: Names) -> tuple[str, ...]:
    """The names as a tuple; a single string is one name."""
    return (given,) if isinstance(given, str) else tuple(given)
