"""Which parameters apply to what was asked for, and which values a file may give them.

A function that can do several things has parameters that belong only to some of them. A parameter
that belongs to nothing that was asked for would have no effect, and is an error.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from kgbias.errors import UsageError, no_such
from kgbias.io.text import type_with_article

T = TypeVar("T")
Names = str | Iterable[str]
"""One name or several, as parameters such as `category` and `group` take them."""

PathLike = str | Path
"""A file or folder, as parameters such as `path` and `output` take it."""


def as_names(given: Names) -> tuple[str, ...]:
    """The names as a tuple; a single string is one name. Raises UsageError for anything else."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise UsageError(f"{given!r} is no name: give one as text, or several in a list")
    names = tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise UsageError(
                f"{str(name)[:40]} in a list of names is no text, but {type_with_article(name)}"
            )
    return tuple(map(str, names))


def among(items: Sequence[T], kind: str, wanted: Sequence[str], where: str = "") -> tuple[T, ...]:
    """The items whose attribute `kind` is one of the wanted names, in any case; all if none is
    named. Raises UsageError for a name that no item has."""
    there = {str(getattr(item, kind)).casefold(): str(getattr(item, kind)) for item in items}
    for name in wanted:
        if name.casefold() not in there:
            raise UsageError(no_such(kind, name, there.values(), where))
    names = {name.casefold() for name in wanted}
    return tuple(i for i in items if not names or str(getattr(i, kind)).casefold() in names)


def python_number(value: Any) -> Any:
    """A number of numpy as Python's own; anything else as it is."""
    if type(value).__module__ == "numpy" and hasattr(value, "item") and not value.shape:
        return value.item()
    return value


def check_options(given: Mapping[str, Any], *known: type) -> dict[str, Any]:
    """The options, as Python's own numbers where they are numpy's.

    Raises UsageError for one that none of the typed dicts `known` has, with the nearest that there
    is, and for a number that is no number, or no whole one where only a whole one has a meaning."""
    there: dict[str, Any] = {}
    for each in known:
        there |= each.__annotations__
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in there:
            raise UsageError(no_such("option", name, there))
        value = python_number(value)
        inner = set(get_args(there[name]) or (there[name],)) - {type(None)}
        if value is not None and inner <= {int, float} and not any(fits(value, i) for i in inner):
            raise UsageError(f"`{name}` takes a {_PLAIN[max(inner, key=str)][0]}, not {value!r}")
        found[name] = value
    return found


class ParameterError(UsageError):
    """An error about a parameter, which a command line can word with its own name for it."""

    def __init__(self) -> None:
        super().__init__(self.line(str))

    def line(self, name: Callable[[str], str]) -> str:
        """The message, with each parameter called what `name` makes of it (a flag, say)."""
        raise NotImplementedError


class DoesNotApply(ParameterError):
    """A parameter was given that changes nothing; `takers` are what it belongs to."""

    def __init__(self, parameter: str, takers: Collection[str]) -> None:
        self.parameter, self.takers = parameter, tuple(takers)
        super().__init__()

    def line(self, name: Callable[[str], str]) -> str:
        *most, last = map(name, self.takers)
        owners = f"{', '.join(most)} or {last}" if most else last
        return f"{name(self.parameter)} has no effect here, only with {owners}"


class NotFor(ParameterError):
    """A parameter was given to something it does not apply to."""

    def __init__(self, parameter: str, what: str) -> None:
        self.parameter, self.what = parameter, what
        super().__init__()

    def line(self, name: Callable[[str], str]) -> str:
        return f"{name(self.parameter)} does not apply to {self.what}"


class WrongValue(ParameterError):
    """A method takes a parameter, but not with this value."""

    def __init__(self, method: str, parameter: str, value: object) -> None:
        self.method, self.parameter, self.value = method, parameter, value
        super().__init__()

    def line(self, name: Callable[[str], str]) -> str:
        return f"{self.method} cannot take {name(self.parameter)} {self.value}"


def user_name() -> str:
    """The user's name, for the parameter `by`. Raises UsageError if the machine does not say."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:
        raise UsageError("your user name is unknown: set `by`") from error


def check_applies(
    given: Iterable[str], takes: Mapping[str, Collection[str]], chosen: Collection[str]
) -> None:
    """Raise UsageError for the first of the parameters `given` that none of `chosen` takes.

    `takes` names the parameters of everything that could be chosen.
    """
    for parameter in given:
        takers = [name for name, names in takes.items() if parameter in names]
        if not takers:
            there = sorted({name for names in takes.values() for name in names})
            raise UsageError(no_such("parameter", parameter, there))
        if not set(takers) & set(chosen):
            raise DoesNotApply(parameter, takers)


_PLAIN: Mapping[Any, tuple[str, type | tuple[type, ...]]] = {
    str: ("text", str),
    Path: ("text", str),
    int: ("whole number", int),
    float: ("number", (int, float)),
}


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value from a TOML or JSON file fits a parameter's annotation. A class that such a
    file cannot express fits no value; an annotation in quotes fits any."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is bool:
        return isinstance(value, bool)
    if annotation in _PLAIN:
        return isinstance(value, _PLAIN[annotation][1]) and not isinstance(value, bool)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin is None:
        return annotation is Any or not isinstance(annotation, type)
    if issubclass(origin, Mapping):
        return isinstance(value, dict) and all(fits(part, inner[1]) for part in value.values())
    return isinstance(value, list) and all(fits(part, inner[0]) for part in value)


def described(annotation: Any) -> str:
    """The values that fit an annotation (`fits`), in words; "" if none do."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is bool:
        return "true or false"
    if annotation in _PLAIN:
        return f"a {_PLAIN[annotation][0]}"
    if origin in (Union, UnionType):
        found = (described(part) for part in inner)
        return " or ".join(dict.fromkeys(words for words in found if words))
    if origin is Literal:
        return " or ".join(f'"{value}"' for value in inner)
    if origin is None:
        return ""
    kind = _PLAIN.get(inner[-1] if issubclass(origin, Mapping) else inner[0])
    of = f" of {kind[0]}s" if kind else ""
    return ("a table" if issubclass(origin, Mapping) else "a list") + of
