"""Settings: what a study or a machine states once, for one command or for all.

They are kept in `kgbias.toml`, beside defaults of options, or given for one call with
`kgbias --set NAME=VALUE COMMAND`. The command line wins, then the environment, then the file, then
the library's default. In the file, a command's settings go in the table of its name ([crawl],
[probe.run]); shared settings may go at the top.

An option exists because someone types it. What is said once is a setting.
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

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
SETTINGS_FILE = "kgbias.toml"
CONFIG_VARIABLE = "KGBIAS_CONFIG"
SET_VALUES_KEY = "kgbias.set"
"""The key in a context's `meta` of the values from --set, by name."""
_OPENING_SETTINGS = ("device", "dtype", "batch-size", "concurrency", "timeout", "base-url")
_OUTPUT_KEYS = ("output", "csv", "to", "explorer", "tables", "perplexities", "favourites")
TOP_LEVEL_OPTIONS = ("store", "base-url", "seed")
"""Options that may go at the top of the file, as shared settings do."""


@dataclass(frozen=True, slots=True)
class SharedSetting:
    """A shared setting: its line in the help, the form of its value, its type, and the parameter it
    sets (default: its own name)."""

    help: str
    metavar: str
    type: Any = str
    parameter: str = ""


_SHARE_TYPE = click.FloatRange(0, 1)
SHARED_SETTINGS: Mapping[str, SharedSetting] = {
    "device": SharedSetting(
        "Where models run: auto (the default: a GPU if there is one), cpu, cuda, cuda:N or mps.",
        "NAME",
    ),
    "dtype": SharedSetting(
        "For local models: float32 (the default), bfloat16, float16; on a CUDA GPU 8bit or 4bit.",
        "TYPE",
    ),
    "batch-size": SharedSetting(
        "Prompts that a local model reads at once (default: 128).", "N", int
    ),
    "bos": SharedSetting(
        "The token before a scored text: auto (the default), bos, eos or none.",
        "TOKEN",
        click.Choice(["auto", "bos", "eos", "none"]),
        "begin",
    ),
    "instruction": SharedSetting(
        "What the encoder of an encoder-decoder (T5, Flan) reads; the decoder is scored. "
        '"{group}", the default, stands for the group or name in a probe.',
        "TEXT",
    ),
    "whole-words": SharedSetting(
        "Under a masked model, mask the rest of a word with each of its pieces (Kauf and Ivanova "
        "2023; default: false).",
        "BOOL",
        bool,
        "words",
    ),
    "concurrency": SharedSetting("Requests sent to a server at once (default: 16).", "N", int),
    "timeout": SharedSetting(
        "Seconds to wait for a server's answer (default: 120).", "SECONDS", float
    ),
    "max-failed": SharedSetting(
        "Exit with 1 if more than this share of requests failed (default: 0.1).",
        "SHARE",
        _SHARE_TYPE,
    ),
    "price-in": SharedSetting("Your price of a million prompt tokens.", "MONEY", float),
    "price-out": SharedSetting("Your price of a million answer tokens.", "MONEY", float),
    "prices": SharedSetting(
        "A TOML file of these prices, by model.", "FILE", click.Path(path_type=Path)
    ),
    "executor": SharedSetting(
        "Where models run: local (the default), ray (a Ray started for this) or ray://ADDRESS, the "
        "cluster that this machine belongs to (auto, or HOST:PORT of its head).",
        "NAME",
    ),
    "processes": SharedSetting(
        "Number of processes, which share the cores; each holds the model (default: one; "
        "offline scorers: one per core).",
        "N",
        click.IntRange(min=1),
    ),
    "min-acceptability": SharedSetting(
        "Only statements at least this acceptable, 0 to 1 (default: 0.5 where it was "
        "measured; 0 keeps all).",
        "X",
        _SHARE_TYPE,
    ),
    "exclude-echoes": SharedSetting(
        "Whether to leave out kept statements that repeat an example of their own prompt (default: "
        "false); rejected echoes, which kgbias runs counts, are no statements.",
        "BOOL",
        bool,
    ),
    "correction": SharedSetting(
        "How p-values are corrected over a family: holm (the default) or bh (Benjamini-Hochberg).",
        "NAME",
        click.Choice(["holm", "bh"]),
    ),
    "seed": SharedSetting(
        "The random seed of draws, splits and resampling (default: 0).", "N", int
    ),
}


_VALUE_FORMS = {
    "INTEGER": "N",
    "INTEGER RANGE": "N",
    "FLOAT": "X",
    "FLOAT RANGE": "X",
    "BOOLEAN": "true|false",
}


class Setting(click.Parameter):
    """A parameter of a command that is not an option: the file or --set gives its value."""

    param_type_name = "setting"

    def __init__(
        self,
        declarations: Sequence[str],
        *,
        help: str,
        shared: bool = False,
        default: Any = None,
        **attributes: Any,
    ) -> None:
        super().__init__(declarations, default=default, **attributes)
        self.help, self.is_shared = help, shared

    def _parse_decls(
        self, decls: Sequence[str], expose_value: bool
    ) -> tuple[str, list[str], list[str]]:
        spelled, *parameter = decls
        return (parameter or [spelled.replace("-", "_")])[0], [spelled], []

    def help_record(self, context: click.Context) -> tuple[str, str]:
        """Its form and its line in the help."""
        value = self.make_metavar(context)
        shown_default = "true" if self.default is True else self.default
        default_note = "" if self.default in (None, False) else f" (default: {shown_default})"
        return f"{self.opts[0]}={_VALUE_FORMS.get(value, value)}", f"{self.help}{default_note}"

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Nothing: it is not typed."""


def setting(name: str, parameter: str = "", **attributes: Any) -> Callable[[FunctionT], FunctionT]:
    """A setting of one command; other arguments as for an option."""
    declared = (name, parameter) if parameter else (name,)
    return click.option(*declared, cls=cast(Any, Setting), **attributes)


def shared_settings(*names: str, **defaults: Any) -> Callable[[FunctionT], FunctionT]:
    """Shared settings, by name; a keyword argument is the setting's default."""

    def decorate(function: FunctionT) -> FunctionT:
        for name in reversed((*names, *(name.replace("_", "-") for name in defaults))):
            shared_setting = SHARED_SETTINGS[name]
            default = defaults.get(
                name.replace("-", "_"), False if shared_setting.type is bool else None
            )
            function = setting(
                name,
                shared_setting.parameter,
                help=shared_setting.help,
                metavar=shared_setting.metavar,
                type=shared_setting.type,
                shared=True,
                default=default,
            )(function)
        return function

    return decorate


def command_settings(command: click.Command) -> dict[str, Setting]:
    """The settings of a command, by name."""
    return {p.opts[0]: p for p in command.params if isinstance(p, Setting)}


def drop_shared(
    values_given: Mapping[str, Any], names: Iterable[str] = SHARED_SETTINGS
) -> dict[str, Any]:
    """The parameters' values without those of the shared settings in `names`, which nothing would
    read here. The option --base-url goes too, unless it was typed."""
    context = click.get_current_context()
    unused = {
        s.name
        for name, s in command_settings(context.command).items()
        if s.is_shared and name in names
    }
    typed = context.get_parameter_source("base_url") is not ParameterSource.DEFAULT_MAP
    if not typed and (names is SHARED_SETTINGS or "base-url" in names):
        unused.add("base_url")
    return {name: None if name in unused else value for name, value in values_given.items()}


def keep_applicable(
    values_given: Mapping[str, Any], specs: Iterable[str], role: Literal["completer", "scorer"]
) -> dict[str, Any]:
    """The values without shared settings that these kinds of model do not take: a server's settings
    mean nothing to a local model."""
    from kgbias.models import list_options

    try:
        options_taken = set[str]().union(*(list_options(spec, role) for spec in specs))
    except UsageError:
        return dict(values_given)  # opening the model will say what is wrong with its spec
    unused = [name for name in _OPENING_SETTINGS if name.replace("-", "_") not in options_taken]
    return drop_shared(values_given, unused) if unused else dict(values_given)


def command_path(context: click.Context) -> str:
    """The command as typed after `kgbias`: "crawl", "probe run"."""
    names = []
    current: click.Context | None = context
    while current is not None and current.parent is not None:
        names.append(current.info_name or "")
        current = current.parent
    return " ".join(reversed(names))


def _has_setting(name: str, command: click.Command) -> bool:
    return name in command_settings(command)


def describe_takers(context: click.Context, take: Callable[[click.Command], bool]) -> str:
    """The commands of the same group that take something: "probe run and probe sets do"."""
    group = context.parent.command if context.parent and context.parent.parent else None
    names = (
        [f"{group.name} {n}" for n, c in _subcommands(group).items() if take(c)] if group else []
    )
    if not names:
        return ""
    *other_names, last_name = names
    return f"{', '.join(other_names)} and {last_name} do" if other_names else f"{last_name} does"


def check_set_values(context: click.Context) -> None:
    """Raise UsageError for a --set name that is not a setting of the context's command, or that is
    one of its options: what is typed for one call is meant for this command, while a line of the
    file may be meant for others."""
    settings_here = command_settings(context.command)
    options = {
        flag for p in context.command.params if isinstance(p, click.Option) for flag in p.opts
    }
    for name in context.meta.get(SET_VALUES_KEY, ()):
        if command_path(context) == "run":
            raise UsageError("kgbias run takes no --set: write the settings into the study's file")
        if f"--{name}" in options:
            raise UsageError(f"{name} is an option of {command_path(context)}: --{name}")
        if name not in settings_here:
            takers_text = describe_takers(context, partial(_has_setting, name))
            hint = takers_text or (f"leave out --set {name}" if name in SHARED_SETTINGS else "")
            if hint:
                raise UsageError(f"{command_path(context)} has no setting {name!r}; {hint}")
            raise UsageError(
                no_such("setting", name, sorted(settings_here), f" of {command_path(context)}")
            )


def move_settings_first(arguments: Iterable[str]) -> list[str]:
    """The arguments with every --set and its value moved to the front: it may also be typed after
    the command, but belongs to no command."""
    set_arguments, other_arguments = list[str](), list[str]()
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            other_arguments += [argument, *remaining]
        elif argument == "--set":
            set_arguments += [argument, *islice(remaining, 1)]
        else:
            (set_arguments if argument.startswith("--set=") else other_arguments).append(argument)
    return [*set_arguments, *other_arguments]


def parse_set_values(
    context: click.Context, parameter: click.Parameter, pairs: Iterable[tuple[str, str]]
) -> dict[str, list[str]]:
    """The values from --set, all of them for each name; shared settings are checked, whether or not
    the command takes them."""
    values_by_name: dict[str, list[str]] = {}
    for typed_name, text in pairs:
        name = typed_name.replace("_", "-")
        if name in SHARED_SETTINGS:
            shared_setting = SHARED_SETTINGS[name]
            Setting((name,), help=shared_setting.help, type=shared_setting.type).type_cast_value(
                context, text
            )
        values_by_name.setdefault(name, []).append(text)
    context.meta[SET_VALUES_KEY] = values_by_name
    return values_by_name


def read_settings_file() -> tuple[Path, Mapping[str, Any]]:
    """The file named by KGBIAS_CONFIG, else kgbias.toml in the current folder, and its content.
    Raises DataError if it is there, or named, and cannot be read, or if it is not TOML."""
    named = os.environ.get(CONFIG_VARIABLE)
    path = Path(named or SETTINGS_FILE)
    if not named and not os.path.lexists(path):
        return path, {}
    if not named and not path.is_file():  # a pipe would be waited for
        raise DataError(
            f"{path} is not a file: remove it, or name the settings in {CONFIG_VARIABLE}"
        )
    from kgbias.io.reading import read_toml  # not for `kgbias --help`

    return path, read_toml(path)


def file_addresses(data: Mapping[str, Any], arguments: Sequence[str]) -> Iterator[str]:
    """The addresses in a file's settings that are not on the command line as well."""
    for value in data.values():
        if isinstance(value, dict):
            yield from file_addresses(value, arguments)
        elif isinstance(value, str) and (
            "://" in value and not any(part.endswith(value) for part in arguments)
        ):
            yield value


def refuse_outside_paths(path: Path, data: Mapping[str, Any]) -> None:
    """Raise DataError if a file found in the folder, maybe a stranger's, names a cluster, whose
    nodes could run their code here, or writes outside the folder."""
    from kgbias.io.files import is_visible_within

    for key, value in data.items():
        if isinstance(value, dict):
            refuse_outside_paths(path, value)
            continue
        for item in value if isinstance(value, list) else [value]:
            is_cluster = key == "executor" and "://" in str(item)
            if is_cluster or (
                key in _OUTPUT_KEYS and not is_visible_within(path.parent, Path(str(item)))
            ):
                raise DataError(
                    f"{path}: {key} = {str(item)!r} reaches outside this folder: give it on the "
                    f"command line, or name the file in {CONFIG_VARIABLE}"
                )


def file_defaults(
    path: Path,
    data: Mapping[str, Any],
    commands: Iterable[str],
    name: str,
    command: click.Command,
) -> dict[str, Any]:
    """The file's defaults for a command, by parameter name.

    Raises DataError for an unknown command, setting or option."""
    shared = {_spell_name(key): value for key, value in data.items() if not isinstance(value, dict)}
    for key, value in data.items():
        is_table = isinstance(value, dict)
        known_keys = list(commands) if is_table else [*SHARED_SETTINGS, *TOP_LEVEL_OPTIONS]
        if (key if is_table else _spell_name(key)) not in known_keys:
            kind = "command" if is_table else "setting for all commands"
            raise DataError(f"{path}: {no_such(kind, key, sorted(known_keys))}")
    return _command_values(path, shared, data.get(name, {}), command, f"[{name}] ")


def _command_values(
    path: Path,
    shared: Mapping[str, Any],
    own_values: Mapping[str, Any],
    command: click.Command,
    location: str,
) -> dict[str, Any]:
    """A command's values by parameter: the shared ones that it takes, and all of its own."""
    parameters = {
        flag.lstrip("-"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option | Setting)
        for flag in parameter.opts
    }
    subcommands, values_found = _subcommands(command), dict[str, Any]()
    for name, subcommand in subcommands.items():
        inner_values = own_values.get(name, {})
        if not isinstance(inner_values, dict):
            raise DataError(f"{path}: {location}{name!r} must be a table of options")
        values_found[name] = _command_values(
            path, shared, inner_values, subcommand, f"{location}{name}: "
        )
    for key, value in shared.items():
        parameter = parameters.get(key)
        if key in TOP_LEVEL_OPTIONS or (isinstance(parameter, Setting) and parameter.is_shared):
            values_found |= _parameter_value(path, location, key, parameter, value)
    for key, value in own_values.items():
        if key in subcommands:
            continue
        parameter = parameters.get(_spell_name(key))
        if parameter is None:
            known_keys = sorted([*parameters, *subcommands])
            raise DataError(f"{path}: {location}{no_such('option or setting', key, known_keys)}")
        values_found |= _parameter_value(path, location, key, parameter, value)
    return values_found


def _parameter_value(
    path: Path, location: str, key: str, parameter: click.Parameter | None, value: Any
) -> dict[str, Any]:
    """The value of one parameter; empty if the command lacks it."""
    if parameter is None:
        return {}
    if not _is_plain(value):
        raise DataError(f"{path}: {location}{key!r} must be a value or a list of values")
    needs_list = parameter.multiple and not isinstance(value, list)
    return {parameter.name: [value] if needs_list else value}


def values_for_call(set_values: Mapping[str, list[str]], command: click.Command) -> dict[str, Any]:
    """The values from --set for a command and its subcommands, by parameter name."""
    settings_here = command_settings(command)
    values_found: dict[str, Any] = {
        settings_here[name].name: values if settings_here[name].multiple else values[-1]
        for name, values in set_values.items()
        if name in settings_here
    }
    return values_found | {
        name: values_for_call(set_values, sub) for name, sub in _subcommands(command).items()
    }


def merge_values(base: Mapping[str, Any], overriding: Mapping[str, Any]) -> dict[str, Any]:
    """Two trees of values as one; where both have a value, the second's."""
    combined = dict(base)
    for key, value in overriding.items():
        inner = combined.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            value = merge_values(inner, value)
        combined[key] = value
    return combined


def _subcommands(command: click.Command) -> dict[str, click.Command]:
    """The commands of a group, by name."""
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    commands = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: sub for name, sub in commands.items() if sub is not None}


def _is_plain(value: Any) -> bool:
    simple = (str, int, float, bool)
    return isinstance(value, simple) or (
        isinstance(value, list) and all(isinstance(part, simple) for part in value)
    )


def _spell_name(name: str) -> str:
    """A name as options are spelt: "base_url" as "base-url"."""
    return name.replace("_", "-")
