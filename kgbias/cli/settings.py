"""Settings: what a study or a machine states once, for one command or for all.

They are kept in `kgbias.toml`, beside defaults of options, or given for one call with
`kgbias --set NAME=VALUE COMMAND`. The command line wins, then the environment, then the file, then
the library's default. In the file, a command's settings go in the table of its name ([crawl],
[probe.run]); shared settings may go at the top.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import click
from click.core import ParameterSource

from kgbias.errors import DataError, UsageError, no_such
from kgbias.io.files import is_within
from kgbias.io.reading import read_toml

F = TypeVar("F", bound=Callable[..., Any])
FILE = "kgbias.toml"
VARIABLE = "KGBIAS_CONFIG"
GIVEN = "kgbias.set"
"""The key in a context's `meta` of the values from --set, by name."""
_OPENING = ("device", "dtype", "batch-size", "concurrency", "timeout", "base-url")
_WRITTEN = ("output", "csv", "to", "explorer", "tables", "perplexities", "favourites")
OPTIONS = ("store", "base-url", "seed")
"""Options that may go at the top of the file, as shared settings do."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A shared setting: its line in the help, the form of its value, its type, and the parameter it
    sets (default: its own name)."""

    help: str
    metavar: str
    type: Any = str
    parameter: str = ""


_SHARE = click.FloatRange(0, 1)
SHARED: Mapping[str, Shared] = {
    "device": Shared(
        "Where models run: auto (the default: a GPU if there is one), cpu, cuda, cuda:N or mps.",
        "NAME",
    ),
    "dtype": Shared(
        "For local models: float32 (the default), bfloat16, float16; on a CUDA GPU 8bit or 4bit.",
        "TYPE",
    ),
    "batch-size": Shared("Prompts that a local model reads at once (default: 32).", "N", int),
    "bos": Shared(
        "The token before a scored text: auto (the default), bos, eos or none.",
        "TOKEN",
        click.Choice(["auto", "bos", "eos", "none"]),
        "begin",
    ),
    "instruction": Shared(
        "What the encoder of an encoder-decoder (T5, Flan) reads; the decoder is scored. "
        '"{group}", the default, stands for the group or name in a probe.',
        "TEXT",
    ),
    "whole-words": Shared(
        "Under a masked model, mask the rest of a word with each of its pieces (Kauf and Ivanova "
        "2023; default: false).",
        "BOOL",
        bool,
        "words",
    ),
    "concurrency": Shared("Requests sent to a server at once (default: 16).", "N", int),
    "timeout": Shared("Seconds to wait for a server's answer (default: 120).", "SECONDS", float),
    "max-failed": Shared(
        "Exit with 1 if more than this share of requests failed (default: 0.1).", "SHARE", _SHARE
    ),
    "price-in": Shared("Your price of a million prompt tokens.", "MONEY", float),
    "price-out": Shared("Your price of a million answer tokens.", "MONEY", float),
    "prices": Shared("A TOML file of these prices, by model.", "FILE", click.Path(path_type=Path)),
    "executor": Shared(
        "Where models run: local (the default), ray (a Ray started for this) or ray://ADDRESS, the "
        "cluster that this machine belongs to (auto, or HOST:PORT of its head).",
        "NAME",
    ),
    "processes": Shared(
        "Number of processes, which share the cores; each holds the model (default: one; "
        "offline scorers: one per core).",
        "N",
        click.IntRange(min=1),
    ),
    "min-acceptability": Shared(
        "Only statements at least this acceptable, 0 to 1 (default: 0.5 where it was "
        "measured; 0 keeps all).",
        "X",
        _SHARE,
    ),
    "without-echoes": Shared(
        "Whether to leave out kept statements that repeat an example of their own prompt (default: "
        "false); rejected echoes, which kgbias runs counts, are no statements.",
        "BOOL",
        bool,
    ),
    "correction": Shared(
        "How p-values are corrected over a family: holm (the default) or bh (Benjamini-Hochberg).",
        "NAME",
        click.Choice(["holm", "bh"]),
    ),
    "seed": Shared("The random seed of draws, splits and resampling (default: 0).", "N", int),
}


_VALUES = {"INTEGER": "N", "INTEGER RANGE": "N", "FLOAT": "X", "FLOAT RANGE": "X",
           "BOOLEAN": "true|false"}  # fmt: skip


class Setting(click.Parameter):
    """A parameter of a command that is not an option: the file or --set gives its value."""

    param_type_name = "setting"

    def __init__(
        self,
        declared: Sequence[str],
        *,
        help: str,
        shared: bool = False,
        default: Any = None,
        **more: Any,
    ) -> None:
        super().__init__(declared, default=default, **more)
        self.help, self.shared = help, shared

    def _parse_decls(
        self, decls: Sequence[str], expose_value: bool
    ) -> tuple[str, list[str], list[str]]:
        spelled, *parameter = decls
        return (parameter or [spelled.replace("-", "_")])[0], [spelled], []

    def record(self, context: click.Context) -> tuple[str, str]:
        """Its form and its line in the help."""
        value = self.make_metavar(context)
        shown = "true" if self.default is True else self.default
        told = "" if self.default in (None, False) else f" (default: {shown})"
        return f"{self.opts[0]}={_VALUES.get(value, value)}", f"{self.help}{told}"

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Nothing: it is not typed."""


def setting(name: str, parameter: str = "", **more: Any) -> Callable[[F], F]:
    """A setting of one command; other arguments as for an option."""
    declared = (name, parameter) if parameter else (name,)
    return click.option(*declared, cls=cast(Any, Setting), **more)


def settings(*names: str, **defaults: Any) -> Callable[[F], F]:
    """Shared settings, by name; a keyword argument is the setting's default."""

    def decorate(f: F) -> F:
        for name in reversed((*names, *(name.replace("_", "-") for name in defaults))):
            of = SHARED[name]
            default = defaults.get(name.replace("-", "_"), False if of.type is bool else None)
            f = setting(
                name, of.parameter, help=of.help, metavar=of.metavar, type=of.type, shared=True,
                default=default,
            )(f)  # fmt: skip
        return f

    return decorate


def of_command(command: click.Command) -> dict[str, Setting]:
    """The settings of a command, by name."""
    return {p.opts[0]: p for p in command.params if isinstance(p, Setting)}


def without_shared(given: Mapping[str, Any], names: Iterable[str] = SHARED) -> dict[str, Any]:
    """The parameters' values without those of the shared settings in `names`, which nothing would
    read here. The option --base-url goes too, unless it was typed."""
    context = click.get_current_context()
    unused = {
        s.name for name, s in of_command(context.command).items() if s.shared and name in names
    }
    typed = context.get_parameter_source("base_url") is not ParameterSource.DEFAULT_MAP
    if not typed and (names is SHARED or "base-url" in names):
        unused.add("base_url")
    return {name: None if name in unused else value for name, value in given.items()}


def fitting(
    given: Mapping[str, Any], specs: Iterable[str], as_: Literal["completer", "scorer"]
) -> dict[str, Any]:
    """The values without shared settings that these kinds of model do not take: a server's settings
    mean nothing to a local model."""
    from kgbias.models import list_options

    try:
        takes = set[str]().union(*(list_options(spec, as_) for spec in specs))
    except UsageError:
        return dict(given)  # opening the model will say what is wrong with its spec
    unused = [name for name in _OPENING if name.replace("-", "_") not in takes]
    return without_shared(given, unused) if unused else dict(given)


def path_of(context: click.Context) -> str:
    """The command as typed after `kgbias`: "crawl", "probe run"."""
    names = []
    here: click.Context | None = context
    while here is not None and here.parent is not None:
        names.append(here.info_name or "")
        here = here.parent
    return " ".join(reversed(names))


def _has(name: str, command: click.Command) -> bool:
    return name in of_command(command)


def takers(context: click.Context, take: Callable[[click.Command], bool]) -> str:
    """The commands of the same group that take something: "probe run and probe sets do"."""
    group = context.parent.command if context.parent and context.parent.parent else None
    names = [f"{group.name} {n}" for n, c in _below(group).items() if take(c)] if group else []
    *most, last = names or [""]
    return f"{', '.join(most)} and {last} do" if most else last and f"{last} does"


def check_given(context: click.Context) -> None:
    """Raise UsageError for a --set name that is not a setting of the context's command, or that is
    one of its options: what is typed for one call is meant for this command, while a line of the
    file may be meant for others."""
    own = of_command(context.command)
    options = {
        flag for p in context.command.params if isinstance(p, click.Option) for flag in p.opts
    }
    for name in context.meta.get(GIVEN, ()):
        if path_of(context) == "run":
            raise UsageError("kgbias run takes no --set: write the settings into the study's file")
        if f"--{name}" in options:
            raise UsageError(f"{name} is an option of {path_of(context)}: --{name}")
        if name not in own:
            where = takers(context, partial(_has, name))
            hint = where or (f"leave out --set {name}" if name in SHARED else "")
            if hint:
                raise UsageError(f"{path_of(context)} has no setting {name!r}; {hint}")
            raise UsageError(no_such("setting", name, sorted(own), f" of {path_of(context)}"))


def settings_first(arguments: Iterable[str]) -> list[str]:
    """The arguments with every --set and its value moved to the front: it may also be typed after
    the command, but belongs to no command."""
    first, rest = list[str](), list[str]()
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            rest += [argument, *left]
        elif argument == "--set":
            first += [argument, *islice(left, 1)]
        else:
            (first if argument.startswith("--set=") else rest).append(argument)
    return [*first, *rest]


def given_settings(
    context: click.Context, parameter: click.Parameter, pairs: Iterable[tuple[str, str]]
) -> dict[str, list[str]]:
    """The values from --set, all of them for each name; shared settings are checked, whether or not
    the command takes them."""
    found: dict[str, list[str]] = {}
    for spelled, text in pairs:
        name = spelled.replace("_", "-")
        if name in SHARED:
            of = SHARED[name]
            Setting((name,), help=of.help, type=of.type).type_cast_value(context, text)
        found.setdefault(name, []).append(text)
    context.meta[GIVEN] = found
    return found


def read_settings() -> tuple[Path, Mapping[str, Any]]:
    """The file named by KGBIAS_CONFIG, else kgbias.toml in the current folder, and its content.
    Raises DataError if the named file cannot be read, or the file is not TOML."""
    path = Path(os.environ.get(VARIABLE) or FILE)
    if not path.is_file() and not os.environ.get(VARIABLE):
        return path, {}
    return path, read_toml(path)


def addresses(data: Mapping[str, Any], arguments: Sequence[str]) -> Iterator[str]:
    """The addresses in a file's settings that are not on the command line as well."""
    for value in data.values():
        if isinstance(value, dict):
            yield from addresses(value, arguments)
        elif isinstance(value, str) and (
            "://" in value and not any(part.endswith(value) for part in arguments)
        ):
            yield value


def refuse_reaching(path: Path, data: Mapping[str, Any]) -> None:
    """Raise DataError if a file found in the folder, maybe a stranger's, names a cluster, whose
    nodes could run their code here, or writes outside the folder."""
    for key, value in data.items():
        if isinstance(value, dict):
            refuse_reaching(path, value)
            continue
        for one in value if isinstance(value, list) else [value]:
            cluster = key == "executor" and "://" in str(one)
            if cluster or (key in _WRITTEN and not is_within(path.parent, Path(str(one)))):
                raise DataError(
                    f"{path}: {key} = {str(one)!r} reaches outside this folder: give it on the "
                    f"command line, or name the file in {VARIABLE}"
                )


def defaults(
    path: Path,
    data: Mapping[str, Any],
    commands: Iterable[str],
    name: str,
    command: click.Command,
) -> dict[str, Any]:
    """The file's defaults for a command, by parameter name.

    Raises DataError for an unknown command, setting or option."""
    shared = {_spelled(key): value for key, value in data.items() if not isinstance(value, dict)}
    for key, value in data.items():
        table = isinstance(value, dict)
        there = list(commands) if table else [*SHARED, *OPTIONS]
        if (key if table else _spelled(key)) not in there:
            kind = "command" if table else "setting for all commands"
            raise DataError(f"{path}: {no_such(kind, key, sorted(there))}")
    return _of(path, shared, data.get(name, {}), command, f"[{name}] ")


def _of(
    path: Path,
    shared: Mapping[str, Any],
    own: Mapping[str, Any],
    command: click.Command,
    where: str,
) -> dict[str, Any]:
    """A command's values by parameter: the shared ones that it takes, and all of its own."""
    parameters = {
        flag.lstrip("-"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option | Setting)
        for flag in parameter.opts
    }
    below, found = _below(command), dict[str, Any]()
    for name, sub in below.items():
        if not isinstance(inner := own.get(name, {}), dict):
            raise DataError(f"{path}: {where}{name!r} must be a table of options")
        found[name] = _of(path, shared, inner, sub, f"{where}{name}: ")
    for key, value in shared.items():
        parameter = parameters.get(key)
        if key in OPTIONS or (isinstance(parameter, Setting) and parameter.shared):
            found |= _valued(path, where, key, parameter, value)
    for key, value in own.items():
        if key in below:
            continue
        if (parameter := parameters.get(_spelled(key))) is None:
            there = sorted([*parameters, *below])
            raise DataError(f"{path}: {where}{no_such('option or setting', key, there)}")
        found |= _valued(path, where, key, parameter, value)
    return found


def _valued(
    path: Path, where: str, key: str, parameter: click.Parameter | None, value: Any
) -> dict[str, Any]:
    """The value of one parameter; empty if the command lacks it."""
    if parameter is None:
        return {}
    if not _plain(value):
        raise DataError(f"{path}: {where}{key!r} must be a value or a list of values")
    several = parameter.multiple and not isinstance(value, list)
    return {parameter.name: [value] if several else value}


def for_one_call(given: Mapping[str, list[str]], command: click.Command) -> dict[str, Any]:
    """The values from --set for a command and its subcommands, by parameter name."""
    own = of_command(command)
    found: dict[str, Any] = {
        own[name].name: values if own[name].multiple else values[-1]
        for name, values in given.items()
        if name in own
    }
    return found | {name: for_one_call(given, sub) for name, sub in _below(command).items()}


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two trees of values as one; where both have a value, the second's."""
    found = dict(under)
    for key, value in over.items():
        inner = found.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            value = merged(inner, value)
        found[key] = value
    return found


def _below(command: click.Command) -> dict[str, click.Command]:
    """The commands of a group, by name."""
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: sub for name, sub in found.items() if sub is not None}


def _plain(value: Any) -> bool:
    simple = (str, int, float, bool)
    return isinstance(value, simple) or (
        isinstance(value, list) and all(isinstance(part, simple) for part in value)
    )


def _spelled(name: str) -> str:
    return name.replace("_", "-")
