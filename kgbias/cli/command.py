"""The command class of kgbias: help shows examples and settings, an unknown option gets a hint, and
the library's messages are worded in the command's options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kgbias.cli.commands import import_part, list_added_parts
from kgbias.cli.settings import (
    Setting,
    check_set_values,
    command_path,
    command_settings,
    describe_takers,
)
from kgbias.errors import KgbiasError, PluginError, UsageError, nearest
from kgbias.io.wording import in_commands
from kgbias.parameters import ParameterError

_PARAMETER = re.compile(r"`(\w+)`")  # as messages of the library write one


class Command(click.Command):
    """A command.

    Attributes:
        examples: working command lines, as typed.
        section: its heading in `kgbias --help`, if it is one of the core's
            (`kgbias.cli.commands`).
    """

    def __init__(
        self, *args: Any, examples: tuple[str, ...] = (), section: str = "", **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.examples, self.section = examples, section

    def format_help_text(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(context, formatter)
        write_examples(formatter, self.examples)

    def _refuse_empty_names(self, context: click.Context, arguments: list[str]) -> None:
        """Raise for a file without a name, as `-o "$UNSET"` gives it: it would be the folder."""
        if "" not in arguments and not any(word.endswith("=") for word in arguments):
            return
        values, _, _ = self.make_parser(context).parse_args(list(arguments))
        for parameter in self.get_params(context):
            value = values.get(parameter.name or "")
            given = value if isinstance(value, list | tuple) else [value]
            if isinstance(parameter.type, click.Path) and "" in given:
                raise click.BadParameter("an empty name is no file", context, parameter)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, then the command's own settings and the names of
        its shared ones."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            if isinstance(parameter, click.Argument):
                continue
            record = parameter.get_help_record(context)
            if record:
                heading = getattr(parameter, "section", "Options")
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)
        command_settings_found = command_settings(self)
        own_records = [
            s.help_record(context) for s in command_settings_found.values() if not s.is_shared
        ]
        shared_names = [name for name, s in command_settings_found.items() if s.is_shared]
        if command_settings_found:
            with formatter.section("Settings (kgbias --set NAME=VALUE, or kgbias.toml)"):
                if own_records:
                    formatter.write_dl(own_records)
                if shared_names:
                    formatter.write_text(f"{', '.join(shared_names)}: see kgbias --help")

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        check_set_values(context)
        given = list(args)
        try:
            left = super().parse_args(context, _name_model(self, args))
        except click.NoSuchOption as error:
            if hint := self._suggest_place(context, error.option_name):
                raise UsageError(hint) from error
            raise
        self._refuse_empty_names(context, given)
        for parameter in self.params:
            name = parameter.name or ""
            if isinstance(parameter.type, click.Path) and context.params.get(name) == Path("-"):
                stream = "stdout" if "-o" in parameter.opts else "stdin"  # as nearly everywhere
                context.params[name] = Path(f"/dev/{stream}")
        return left

    def _suggest_place(self, context: click.Context, option: str) -> str:
        """Where to find an option that the command lacks: among its settings, or on a sibling
        command."""
        name = option.lstrip("-")
        if name in command_settings(self):
            path = command_path(context)
            return (
                f"{name} is a setting: kgbias --set {name}=VALUE {path} ..., or a line in "
                "kgbias.toml"
            )
        place = describe_takers(context, lambda part: _takes_option(part, option))
        return place and f"{command_path(context)} does not take {option}: {place}"

    def invoke(self, context: click.Context) -> Any:
        """Run the command; parameters named in the library's messages become options."""
        try:
            with in_commands():
                return super().invoke(context)
        except ParameterError as error:
            flags = dict(_iter_flags(self))
            raise UsageError(error.line(lambda name: flags.get(name, name))) from error
        except KgbiasError as error:
            error.args = (word_with_options(str(error), self), *error.args[1:])
            raise


def _name_model(command: click.Command, args: list[str]) -> list[str]:
    """The arguments with --model before a model that comes first: `kgbias crawl SPEC ...` is
    `kgbias crawl --model SPEC ...`, wherever a command needs a model and takes no argument."""
    is_named = any(text.partition("=")[0] == "--model" for text in args)
    is_first = bool(args) and not args[0].startswith("-") and not is_named
    return ["--model", *args] if is_first and _needs_model_alone(command) else args


def _needs_model_alone(command: click.Command) -> bool:
    has_argument = any(isinstance(p, click.Argument) for p in command.params)
    return not has_argument and any(p.required and "--model" in p.opts for p in command.params)


class CommandGroup(click.Group):
    """A command with several parts, in the order of their definition, and then those that methods
    and other packages add (`kgbias.cli.commands.COMMAND_PARTS`). `run` is the default part, called
    when the line begins with an option, or with an argument that `run` takes."""

    command_class = Command

    def __init__(
        self, *args: Any, examples: tuple[str, ...] = (), section: str = "", **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.examples, self.section = examples, section

    def list_commands(self, context: click.Context) -> list[str]:
        """The parts that can be used."""
        added = [name for name in self._added_parts() if self._find_added(name) is not None]
        return [*self.commands, *added]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in self.commands or name not in self._added_parts():
            return super().get_command(context, name)
        command: click.Command = import_part(self.name or "", name)
        return command

    def _added_parts(self) -> list[str]:
        return [name for name in list_added_parts(self.name or "") if name not in self.commands]

    def _find_added(self, name: str) -> click.Command | None:
        """An added part; None for one that cannot be used."""
        try:
            return import_part(self.name or "", name)  # type: ignore[no-any-return]
        except PluginError:
            return None

    def format_help_text(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(context, formatter)
        write_examples(formatter, self.examples)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the parts, then the options of the default one, which may be left unnamed."""
        super().format_options(context, formatter)
        if (run_command := self.commands.get("run")) is not None:
            with click.Context(run_command, info_name="run", parent=context) as run_context:
                run_command.format_options(run_context, formatter)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        run_command = self.commands.get("run")
        first_word = args[0] if args else ""
        parts = [*self.commands, *self._added_parts()]
        if (
            run_command is not None
            and first_word not in (*parts, *context.help_option_names)
            and (
                first_word.startswith("-")
                or (args and _needs_model_alone(run_command))
                or any(isinstance(p, click.Argument) for p in run_command.params)
            )
        ):
            self._check_part(context, first_word, parts)
            args = ["run", *args]
        return super().parse_args(context, args)

    def _check_part(self, context: click.Context, first_word: str, parts: list[str]) -> None:
        """Raise UsageError for the name of a run that is most probably a misspelt part."""
        if nearest_part := nearest(first_word, parts, 0.8):
            thing = "model" if _needs_model_alone(self.commands["run"]) else "run"
            raise UsageError(
                f"no part {first_word!r} of {context.command_path} (did you mean "
                f"{nearest_part}?); a {thing} of that name is {context.command_path} run "
                f"{first_word}"
            )


def write_examples(formatter: click.HelpFormatter, lines: tuple[str, ...]) -> None:
    """Write the section of example command lines."""
    if lines:
        with formatter.section("Example" if len(lines) == 1 else "Examples"):
            for line in lines:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def word_with_options(message: str, command: click.Command | None) -> str:
    """The message with the library's parameters as the command's options: `target_coverage` becomes
    --target-coverage. Parameters that the command lacks stay as they are."""
    flags = dict(_iter_flags(command)) if command else {}
    return _PARAMETER.sub(lambda m: flags.get(m[1], m[1]), message)


def _iter_flags(command: click.Command) -> Iterator[tuple[str, str]]:
    """The command's options and settings: each parameter, and how it is typed."""
    for parameter in command.params:
        if isinstance(parameter, click.Option | Setting) and parameter.name:
            yield parameter.name, max(parameter.opts, key=len)


def _takes_option(part: click.Command, option: str) -> bool:
    return option.lstrip("-") in command_settings(part) or any(
        option in (*p.opts, *p.secondary_opts) for p in part.params
    )


class SectionOption(click.Option):
    """An option listed under the heading `section` in the help."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class _CommaList(click.ParamType[Any]):
    """A comma-separated list, as a tuple."""

    name = "list"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, ...]:
        if not isinstance(value, str):
            return tuple(value)
        return tuple(part.strip() for part in value.split(",") if part.strip())


COMMA_LIST = _CommaList()


class _NameValue(click.ParamType[Any]):
    """NAME=VALUE, as a pair."""

    name = "pair"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, str]:
        name, equals, text = value.partition("=")
        if not (name and equals) and parameter is not None:
            raise UsageError(f"{parameter.opts[0]} takes {parameter.metavar}, not {value!r}")
        return name.lstrip("$"), text


NAME_VALUE = _NameValue()
