"""The commands of `kgbias`, by name: those of the core, and those that methods and other packages
add by an entry point in the group "kgbias.commands"; and parts that they add to a command of
several parts, in the group "kgbias.parts".

A command of the core is declared where it is written, in a module of this folder:

    @click.command(cls=Command, section="Check", short_help="Check that a store is sound.", ...)

To import all of them for `kgbias --help` would take a second. So these lines are read from the
text of the modules, and a test holds what is read to what is imported.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command that is imported when it is called.

    Attributes:
        help: its line in `kgbias --help`; the command's own help says more.
        function: where the click command is, as "module:name". Made with
            `kgbias.cli.command.Command` or `CommandGroup`, it has examples and settings.
        section: its heading in `kgbias --help`.
    """

    help: str
    function: str
    section: str = "Methods"


_MAIN_WAY, _METHODS, _OTHER_PACKAGES = "Main workflow", "Methods", "Of other packages"
MAX_DESCRIBED = 25  # commands with a line on the first page; of the others it has the names
_SECTIONS = (_MAIN_WAY, _METHODS, "Ask and look", "Get statements", "Check", "Publish", "Maintain")
# In the order of the work; other sections are by name.
_MAIN_WAY_ORDER = "map crawl measure evidence compare report explore export figures runs".split()
_DECLARATION = re.compile(
    r'\n@click\.(?:command|group)\(\s*(?:"([^"]+)",\s*)?cls=\w+,'
    r'\s*section="([^"]+)",\s*short_help="([^"]+)"'
)


def _read_declarations() -> Iterator[tuple[str, CommandEntry]]:
    """The commands of this folder, by name."""
    for path in Path(__file__).parent.glob("*.py"):
        text = path.read_text("utf-8")
        for declared in _DECLARATION.finditer(text):
            given_name, section, line = declared.groups()
            start = text.index("\ndef ", declared.end()) + len("\ndef ")
            function = text[start : text.index("(", start)]
            name = given_name or function.replace("_", "-")
            yield name, CommandEntry(line, f"kgbias.cli.{path.stem}:{function}", section)


def _sort_key(command: tuple[str, CommandEntry]) -> tuple[int, int, str]:
    name, entry = command
    is_main = name in _MAIN_WAY_ORDER
    place = _MAIN_WAY_ORDER.index(name) if is_main else len(_MAIN_WAY_ORDER)
    return _SECTIONS.index(entry.section), place, name


COMMANDS: PluginTable[CommandEntry] = PluginTable(
    "command",
    CommandEntry,
    dict(sorted(_read_declarations(), key=_sort_key)),
    path_fields=("function",),
)
"""Every command, by name."""


@dataclass(frozen=True, slots=True)
class CommandPart:
    """A part of a command of the core, such as `probe`, that is imported when it is called.

    Attributes:
        function: where the click command is, as "module:name".
    """

    function: str


COMMAND_PARTS: PluginTable[CommandPart] = PluginTable(
    "part", CommandPart, {}, path_fields=("function",)
)
"""The parts that methods and other packages add, by the command's name and their own:
"probe.NAME"."""


def list_added_parts(command: str) -> list[str]:
    """The names of the parts that are added to a command."""
    parts = []
    for name in COMMAND_PARTS:
        whole_command, _, part = name.partition(".")
        if whole_command == command and part:
            parts.append(part)
    return parts


def import_part(command: str, part: str) -> Any:
    """The click command of an added part, imported now. Raises PluginError if it cannot be used."""
    name = f"{command}.{part}"
    return COMMAND_PARTS.import_part(name, COMMAND_PARTS[name].function)


def import_command(name: str) -> Any:
    """The click command of that name, imported now. Raises PluginError if it is another package's
    and cannot be used."""
    return COMMANDS.import_part(name, COMMANDS[name].function)


def list_sections() -> dict[str, list[tuple[str, str]]]:
    """The commands that the first page of the help describes, by heading: the main way, the
    methods, and those of other packages. The latter are not imported, so that their line says only
    whose they are."""
    described = {
        _MAIN_WAY: _list_help_lines(_MAIN_WAY),
        _METHODS: sorted(_list_help_lines(_METHODS)),
    }
    added = [name for name in COMMANDS if not COMMANDS.is_own(name)]
    if added:
        described[_OTHER_PACKAGES] = [(n, f"Added by {COMMANDS.find_package(n)}.") for n in added]
    return described


def list_other_commands() -> list[tuple[str, str]]:
    """All other commands: their heading, and their names."""
    headings = dict.fromkeys(entry.section for entry in COMMANDS.own_entries.values())
    return [
        (heading, ", ".join(name for name, _ in _list_help_lines(heading)))
        for heading in headings
        if heading not in (_MAIN_WAY, _METHODS)
    ]


def _list_help_lines(section: str) -> list[tuple[str, str]]:
    entries = COMMANDS.own_entries.items()
    return [(name, entry.help) for name, entry in entries if entry.section == section]
