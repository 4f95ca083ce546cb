"""How a command speaks of its options."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from kgbias.errors import UsageError
from kgbias.parameters import ParameterError


@contextmanager
def as_flags() -> Iterator[None]:
    """Let an error about a parameter of the library name the flag that gave it."""
    try:
        yield
    except ParameterError as error:
        options = click.get_current_context().command.params
        flags = {option.name: option.opts[0] for option in options}
        raise UsageError(error.line(lambda name: flags.get(name, name))) from error


def said(**values: Any) -> dict[str, Any]:
    """The options that were given: what is left out has its default in the library."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and value != ()
    }


class Sectioned(click.Command):
    """A command whose help lists its options under headings."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            if record := parameter.get_help_record(context):
                heading = getattr(parameter, "section", "Options")
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class SectionedOption(click.Option):
    """An option that stands under `section` in the help."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section
