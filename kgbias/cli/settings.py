"""`kgbias.toml`: defaults of options, for a folder.

What the command line says wins, then the environment, then this file, then the library's default.
Options of one command stand in its table, under their names ([crawl], [probe.run]); a few that many
commands share may stand at the top.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kgbias.errors import DataError
from kgbias.io.files import within
from kgbias.io.reading import read_toml

FILE = "kgbias.toml"
VARIABLE = "KGBIAS_CONFIG"
_WRITTEN = ("output", "csv", "to")
SHARED = ("store", "device", "dtype", "base-url", "min-acceptability", "correction")


def read_settings() -> tuple[Path, Mapping[str, Any]]:
    """The file that KGBIAS_CONFIG names, else kgbias.toml where the command is run; and what it
    says. Raises DataError where the named one cannot be read, or the file is not TOML."""
    path = Path(os.environ.get(VARIABLE) or FILE)
    if not path.is_file() and not os.environ.get(VARIABLE):
        return path, {}
    return path, read_toml(path)


def addresses(data: Mapping[str, Any], arguments: Sequence[str]) -> Iterator[str]:
    """The addresses in a file's settings that the command line does not name too."""
    for value in data.values():
        if isinstance(value, dict):
            yield from addresses(value, arguments)
        elif isinstance(value, str) and (
            "://" in value and not any(part.endswith(value) for part in arguments)
        ):
            yield value


def refuse_reaching(path: Path, data: Mapping[str, Any]) -> None:
    """Raise DataError for a file, found in the folder and maybe a stranger's, that names a cluster,
    whose nodes could run their code here, or writes outside of the folder."""
    for key, value in data.items():
        if isinstance(value, dict):
            refuse_reaching(path, value)
            continue
        for one in value if isinstance(value, list) else [value]:
            cluster = key == "executor" and "://" in str(one)
            if cluster or (key in _WRITTEN and not within(path.parent, Path(str(one)))):
                raise DataError(
                    f"{path}: {key} = {str(one)!r} reaches out of this folder: name it on the "
                    f"command line, or the file with {VARIABLE}"
                )


def defaults(
    path: Path,
    data: Mapping[str, Any],
    commands: Mapping[str, str],
    name: str,
    command: click.Command,
) -> dict[str, Any]:
    """The defaults that the file gives a command, by the names of its parameters.

    Raises DataError for a command or an option that does not exist."""
    shared = {key: value for key, value in data.items() if not isinstance(value, dict)}
    for key in data:
        if key not in (commands if key not in shared else _spelled(SHARED)):
            there = ", ".join(SHARED if key in shared else commands)
            kind = "option for all commands" if key in shared else "command"
            raise DataError(f"{path}: there is no {kind} {key!r}; there is {there}")
    return _of(path, shared, data.get(name, {}), command, f"[{name}] ")


def _of(
    path: Path,
    shared: Mapping[str, Any],
    own: Mapping[str, Any],
    command: click.Command,
    where: str,
) -> dict[str, Any]:
    """A command's values by parameter: of the shared ones those that it takes, and all of its
    own."""
    options = {
        flag.lstrip("-"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
    }
    below, found = _below(command), dict[str, Any]()
    for name, sub in below.items():
        if not isinstance(inner := own.get(name, {}), dict):
            raise DataError(f"{path}: {where}{name!r} must be a table of options")
        found[name] = _of(path, shared, inner, sub, f"{where}{name}: ")
    for key, value in (*shared.items(), *own.items()):
        option = options.get(key.replace("_", "-"))
        if option is None or option.name is None:
            if key in own and key not in below:
                there = ", ".join(sorted({*options, *below}))
                raise DataError(f"{path}: {where}there is no option {key!r}; there is {there}")
            continue
        if not _plain(value):
            raise DataError(f"{path}: {where}{key!r} must be a value or a list of values")
        found[option.name] = [value] if option.multiple and not isinstance(value, list) else value
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


def _spelled(names: tuple[str, ...]) -> set[str]:
    return {*names, *(name.replace("-", "_") for name in names)}
