"""Which parameters apply to what was asked for, and which values a file may give them.

A function that can do several things has parameters that belong only to some of them. A parameter
that belongs to nothing that was asked for would have no effect, and is an error.

Which parameters apply is declared by the function that takes them and checked here, in one place.
The command line words the error with its flags (`kgbias.cli.command`).

A configuration says once what each of its parameters is, as records say their properties
(`kgbias.graph.record`): a field whose type is `Annotated` with a `Parameter`. The option or setting
of the command line, the range, what a run's record keeps and how it is read back, and the table in
the docs follow from it.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from kgbias.errors import UsageError, no_such
from kgbias.io.text import type_with_article

T = TypeVar("T")
Names = str | Iterable[str]
"""One name or several, as parameters such as `category` and `group` take them."""

PathLike = str | Path
"""A file or folder, as parameters such as `path` and `output` take it."""


def as_names(names_given: Names) -> tuple[str, ...]:
    """The names as a tuple; a single string is one name. Raises UsageError for anything else."""
    if isinstance(names_given, str):
        return (names_given,)
    if not isinstance(names_given, Iterable):
        raise UsageError(f"{names_given!r} is no name: give one as text, or several in a list")
    names = tuple(names_given)
    for name in names:
        if not isinstance(name, str):
            raise UsageError(
                f"{str(name)[:40]} in a list of names is no text, but {type_with_article(name)}"
            )
    return tuple(map(str, names))


def as_choice(parameter: str, names_given: Names) -> tuple[str, ...]:
    """`as_names` of a parameter that means everybody where it is left out (the default is an empty
    tuple). Raises UsageError for another empty list: whoever made it meant to name somebody."""
    names = as_names(names_given)
    if not names and not isinstance(names_given, tuple):
        raise UsageError(f"`{parameter}` is an empty list: name one, or leave it out for all")
    return names


def select_named(
    items: Sequence[T], kind: str, wanted_names: Sequence[str], place: str = ""
) -> tuple[T, ...]:
    """The items whose attribute `kind` is one of the wanted names, in any case; all if none is
    named. Raises UsageError for a name that no item has."""
    known_names = {str(getattr(item, kind)).casefold(): str(getattr(item, kind)) for item in items}
    for name in wanted_names:
        if name.casefold() not in known_names:
            raise UsageError(no_such(kind, name, known_names.values(), place))
    names = {name.casefold() for name in wanted_names}
    return tuple(i for i in items if not names or str(getattr(i, kind)).casefold() in names)


def python_number(value: Any) -> Any:
    """A number of numpy as Python's own; anything else as it is."""
    if type(value).__module__ == "numpy" and hasattr(value, "item") and not value.shape:
        return value.item()
    return value


def expand_home(value: Any) -> Any:
    """A path, or a list of them, with the home folder in the place of a leading "~"."""
    if isinstance(value, list | tuple):
        return type(value)(map(expand_home, value))
    if isinstance(value, str | Path) and str(value).startswith(("~/", "~\\")):
        return type(value)(Path(value).expanduser())
    return value


def check_options(options: Mapping[str, Any], *option_types: type) -> dict[str, Any]:
    """The options, as Python's own numbers where they are numpy's.

    Raises UsageError for one that none of the typed dicts `option_types` has, with the nearest that
    there is, and for a number that is no number, or no whole one where only a whole one has a
    meaning."""
    known_options: dict[str, Any] = {}
    for option_type in option_types:
        known_options |= option_type.__annotations__
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known_options:
            raise UsageError(no_such("option", name, known_options))
        value = python_number(value)
        check_plain_value(name, value, known_options[name])
        checked[name] = value
    return checked


def check_plain_value(name: str, value: Any, annotation: Any) -> None:
    """Raise UsageError for a value that is not the text, number, path or truth value that the
    parameter's annotation asks for; other annotations are not looked at. None stands for the
    default."""
    if value is None or get_origin(annotation) not in (None, Union, UnionType):
        return
    types = set(get_args(annotation) or (annotation,)) - {type(None)}
    if types == {bool} and not isinstance(value, bool):
        raise UsageError(f"`{name}` takes True or False, not {value!r}")
    if not types <= _PLAIN_TYPES.keys() or any(fits_annotation(value, each) for each in types):
        return
    if Path in types and isinstance(value, os.PathLike):
        return
    wanted = "path" if Path in types else _PLAIN_TYPES[max(types, key=str)][0]
    article = "" if wanted == "text" else "a "
    raise UsageError(f"`{name}` takes {article}{wanted}, not {value!r}")


class ParameterError(UsageError):
    """An error about a parameter, which a command line can word with its own name for it."""

    def __init__(self) -> None:
        super().__init__(self.line(str))

    def line(self, name: Callable[[str], str]) -> str:
        """The message, with each parameter called what `name` makes of it (a flag, say)."""
        raise NotImplementedError


class UnusedParameter(ParameterError):
    """A parameter was given that changes nothing; `takers` are what it belongs to."""

    def __init__(self, parameter: str, takers: Collection[str]) -> None:
        self.parameter, self.takers = parameter, tuple(takers)
        super().__init__()

    def line(self, name: Callable[[str], str]) -> str:
        *most, last = map(name, self.takers)
        owners = f"{', '.join(most)} or {last}" if most else last
        return f"{name(self.parameter)} has no effect here, only with {owners}"


class NotApplicable(ParameterError):
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


class OutOfRange(ParameterError):
    """A number that is smaller or larger than its parameter can be, or a word that is none of those
    it takes."""

    def __init__(self, parameter: str, value: object, allowed: str) -> None:
        self.parameter, self.value, self.allowed = parameter, value, allowed
        super().__init__()

    def line(self, name: Callable[[str], str]) -> str:
        return f"{name(self.parameter)} must be {self.allowed}, not {self.value}"


# What a configuration says of its parameters.


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a field of a configuration is to people, and how a run's record keeps it.

    Attributes:
        help: its line in the help of the command, and in the docs.
        typed: whether people type it for each call (an option), or say it once (a setting).
        flag: its name on the command line, if it is not the field's.
        metavar: the form of its value.
        choices: the values that it takes, if they are few.
        repeated: whether the command line takes it several times.
        at_least: the smallest number.
        at_most: the largest number.
        above: a number that it must be above.
        unset: in words, what happens without it, where the field's default does not say it.
        source: where the paper has it.
        read: makes the field's value of what people write or a record keeps.
        always: whether every record keeps it. The others stand there only if they differ from the
            default, so that a new parameter changes the id of no run.
        recorded: the attribute that a record keeps in the field's place.
    """

    help: str
    typed: bool = False
    flag: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    repeated: bool = False
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    unset: str = ""
    source: str = ""
    read: Callable[[Any], Any] | None = None
    always: bool = False
    recorded: str = ""

    @property
    def allowed(self) -> str:
        """The range, in words."""
        most = "" if self.at_most is None else f"{self.at_most:,.9g}"
        if self.above is not None:
            return f"above {self.above:g} and at most {most}" if most else f"above {self.above:g}"
        least = f"{self.at_least or 0:g}"
        return f"between {least} and {most}" if most else f"at least {least}"

    def allows(self, number: float) -> bool:
        """Whether a number is in the range."""
        return not (
            (self.at_least is not None and not number >= self.at_least)
            or (self.at_most is not None and not number <= self.at_most)
            or (self.above is not None and not number > self.above)
        )


TEMPERATURE = Parameter(
    "The temperature at which tokens are drawn", typed=True, at_least=0, at_most=10, always=True
)
"""Of all runs that ask a model."""


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """A parameter of a configuration: the field's name, its type without None, its default."""

    name: str
    type: Any
    default: Any
    about: Parameter

    @property
    def option_name(self) -> str:
        """As the command line writes it, without dashes before it."""
        return self.about.flag or self.name.replace("_", "-")

    @property
    def is_list(self) -> bool:
        return get_origin(self.type) is not None and get_origin(self.type) is not Literal

    def read(self, value: Any) -> Any:
        """The field's value, from what people write or a record keeps."""
        if self.about.read is not None:
            return self.about.read(value)
        return as_names(value) if self.is_list else value

    def record(self, config: Any) -> Any:
        """What a record keeps of the configuration's value."""
        value = attrgetter(self.about.recorded or self.name)(config)
        if isinstance(value, tuple):
            return list(value)
        plain = value is None or isinstance(value, int | float | str)
        return value if plain else str(value)


@cache
def declared_parameters(config_class: type) -> Mapping[str, DeclaredParameter]:
    """The parameters that a configuration declares, by name."""
    hints = get_type_hints(config_class, include_extras=True)
    declared = {}
    for field in fields(config_class):
        hint, *markers = get_args(hints[field.name]) or (hints[field.name],)
        about = next((marker for marker in markers if isinstance(marker, Parameter)), None)
        if get_origin(hints[field.name]) is not Annotated or about is None:
            continue
        if get_origin(hint) in (Union, UnionType):
            hint = next(part for part in get_args(hint) if part is not type(None))
        default = None if field.default is MISSING else field.default
        declared[field.name] = DeclaredParameter(field.name, hint, default, about)
    return declared


def check_parameters(config: Any) -> None:
    """Raise OutOfRange for the first value of a configuration that its parameter cannot have."""
    config_class: type = type(config)
    for name, parameter in declared_parameters(config_class).items():
        about, value = parameter.about, getattr(config, name)
        if isinstance(value, int | float) and not about.allows(value):
            raise OutOfRange(name, value, about.allowed)
        if about.choices and isinstance(value, str) and value not in about.choices:
            raise OutOfRange(name, repr(value), " or ".join(about.choices))


def record_parameters(config: Any, *, always: bool) -> dict[str, Any]:
    """What a run's record keeps of a configuration: the parameters that `always` stand there, or
    those of the others that differ from their defaults."""
    config_class: type = type(config)
    return {
        name: parameter.record(config)
        for name, parameter in declared_parameters(config_class).items()
        if parameter.about.always is always
        and (always or getattr(config, name) != parameter.default)
    }


def user_name() -> str:
    """The user's name, for the parameter `by`. Raises UsageError if the machine does not say."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:
        raise UsageError("your user name is unknown: set `by`") from error


def check_applies(
    parameters: Iterable[str],
    parameters_of: Mapping[str, Collection[str]],
    chosen_names: Collection[str],
) -> None:
    """Raise UsageError for the first of the parameters `parameters` that none of `chosen_names`
    takes.

    `parameters_of` names the parameters of everything that could be chosen.
    """
    for parameter in parameters:
        takers = [name for name, names in parameters_of.items() if parameter in names]
        if not takers:
            known_parameters = sorted({name for names in parameters_of.values() for name in names})
            raise UsageError(no_such("parameter", parameter, known_parameters))
        if not set(takers) & set(chosen_names):
            raise UnusedParameter(parameter, takers)


_PLAIN_TYPES: Mapping[Any, tuple[str, type | tuple[type, ...]]] = {
    str: ("text", str),
    Path: ("text", str),
    int: ("whole number", int),
    float: ("number", (int, float)),
}


def fits_annotation(value: Any, annotation: Any) -> bool:
    """Whether a value from a TOML or JSON file fits a parameter's annotation. A class that such a
    file cannot express fits no value; an annotation in quotes fits any."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is bool:
        return isinstance(value, bool)
    if annotation in _PLAIN_TYPES:
        return isinstance(value, _PLAIN_TYPES[annotation][1]) and not isinstance(value, bool)
    if origin in (Union, UnionType):
        return any(fits_annotation(value, part) for part in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin is None:
        return annotation is Any or not isinstance(annotation, type)
    if issubclass(origin, Mapping):
        return isinstance(value, dict) and all(
            fits_annotation(part, inner[1]) for part in value.values()
        )
    return isinstance(value, list) and all(fits_annotation(part, inner[0]) for part in value)


def describe_annotation(annotation: Any) -> str:
    """The values that fit an annotation (`fits_annotation`), in words; "" if none do."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is bool:
        return "true or false"
    if annotation in _PLAIN_TYPES:
        return f"a {_PLAIN_TYPES[annotation][0]}"
    if origin in (Union, UnionType):
        parts = (describe_annotation(part) for part in inner)
        return " or ".join(dict.fromkeys(words for words in parts if words))
    if origin is Literal:
        return " or ".join(f'"{value}"' for value in inner)
    if origin is None:
        return ""
    kind = _PLAIN_TYPES.get(inner[-1] if issubclass(origin, Mapping) else inner[0])
    item_words = f" of {kind[0]}s" if kind else ""
    return ("a table" if issubclass(origin, Mapping) else "a list") + item_words


# Options that calls share, each given by its name.


class ExclusionOptions(TypedDict, total=False):
    """The parameters that leave out statements, whatever their arm."""

    min_acceptability: float | None
    exclude_echoes: bool


class SelectionOptions(ExclusionOptions, total=False):
    """The parameters that say which statements count; `Selection` explains them."""

    arm: str | None


class ScorerOptions(TypedDict, total=False):
    """How to open a spec to score texts (see `kgbias.open_scorer`); None is the default."""

    begin: str | None
    device: str | None
    dtype: str | None
    base_url: str | None
    instruction: str | None
    words: bool | None


class ModelOptions(TypedDict, total=False):
    """How to open the model of a spec; None is its kind's default."""

    device: str | None
    dtype: str | None
    batch_size: int | None
    base_url: str | None
    concurrency: int | None
    timeout: float | None


class GenerationOptions(TypedDict, total=False):
    """How stories, pairs and profiles are asked for; their configurations declare each
    (`kgbias.graph.generation_run.GenerationConfig`). None is the pack's default."""

    samples: int | None
    temperature: float | None
    min_p: float | None
    seed: int | None


class BudgetOptions(TypedDict, total=False):
    """What a call may spend."""

    max_requests: int | None
    max_tokens: int | None
    max_cost: float | None
    price_in: float | None
    price_out: float | None
    prices: str | Path | None
    batch: bool | None
    wait: bool | None


class JudgeOptions(TypedDict, total=False):
    """How to ask a judge that is a language model: the `form` of its prompts ("chat" or
    "completion"), the folder of `prompts`, and how to open its spec (see `kgbias.open_model`)."""

    form: Literal["chat", "completion"]
    prompts: PathLike
    temperature: float
    base_url: str | None
    concurrency: int | None
    timeout: float | None
    device: str | None
    dtype: str | None
    batch_size: int | None
