"""The commands of `kgbias`, by name: those of the core, and those that methods and other packages
add by an entry point in the group "kgbias.commands"; and parts that they add to a command of
several parts, in the group "kgbias.parts".
"""

from dataclasses import dataclass
from keyword import iskeyword
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


_MAIN_WAY, _METHODS, _STRANGERS = "The main way", "Methods", "Of other packages"
MAX_DESCRIBED = 25  # commands with a line on the first page; of the others it has the names
# the core's commands: heading -> name -> its line, in the order of the work
_SECTIONS = {
    _MAIN_WAY: {
        "map": "Crawl, measure, find beliefs, and write both pages.",
        "crawl": "Ask a model for stereotypes and keep them as a graph.",
        "measure": "Score a run's triples and compute group figures.",
        "evidence": "Join what was said, believed and embedded.",
        "compare": "Test differences between groups, or between runs.",
        "report": "Write a run's report as an HTML page.",
        "explore": "Write runs as a page to explore.",
        "export": "Write a run's triples for other tools.",
        "figures": "Write a run's figures and tables for a paper.",
        "runs": "List the runs in a store.",
    },
    _METHODS: {
        "probe": "Ask which group a model finds likeliest (SoFa, APX).",
        "topics": "Show a run's topics, and name them by hand.",
    },
    "Ask and look": {
        "query": "Query the graph in Cypher.",
        "ask": "Ask a run a question in plain words; answers have sources.",
        "serve": "Serve runs for a browser or a team to explore.",
        "mcp": "Let agents read a store (Model Context Protocol).",
        "structure": "Find central nodes, communities and bridging objects.",
    },
    "Get statements": {
        "import": "Make a run from a file of triples or profiles.",
        "run": "Carry out a study that a file declares.",
    },
    "Check": {
        "calibrate": "Try the method on a model whose beliefs are known.",
        "replicate": "Test again, with other names, what a model believes.",
        "scorers": "List scorers, and how far each agrees with labels.",
        "review": "Restore or reject a run's answers by hand.",
        "merge": "Link a run's near-duplicates; this can be undone.",
    },
    "Publish": {
        "publish": "Write a run as a data set for others.",
        "reproduce": "Repeat a published run, and say what differs.",
    },
    "Maintain": {
        "models": "List the kinds of models, and what each allows.",
        "plugins": "List what installed packages add to kgbias.",
        "cost": "Show what a run cost, by group.",
        "rename-model": "Give a model in a store a name of your own.",
        "push": "Copy runs between stores.",
        "delete": "Delete a run and everything that only it holds.",
        "verify": "Check that a store is sound.",
        "backup": "Copy a store to a file, even while it is in use.",
        "compact": "Shrink a store's file to the size of its content.",
    },
}

# Commands that share a module; every other command has a module of its own name.
_MODULE_OF_COMMAND = {
    "models": "crawl",
    "plugins": "crawl",
    "topics": "measure",
    "replicate": "evidence",
    "figures": "outputs",
    "report": "outputs",
    "export": "outputs",
    "publish": "outputs",
    "reproduce": "outputs",
    "explore": "inspect",
    "serve": "inspect",
    "cost": "inspect",
    "structure": "inspect",
    "push": "store",
    "runs": "store",
    "rename-model": "store",
    "delete": "store",
    "verify": "store",
    "backup": "store",
    "compact": "store",
}


def _find_function(name: str) -> str:
    """Where a command of the core is; a name that is a Python keyword gets an underscore."""
    identifier = name.replace("-", "_")
    python_name = f"{identifier}_" if iskeyword(identifier) else identifier
    return f"kgbias.cli.{_MODULE_OF_COMMAND.get(name, python_name)}:{python_name}"


COMMANDS: PluginTable[CommandEntry] = PluginTable(
    "command",
    CommandEntry,
    {
        name: CommandEntry(line, _find_function(name), section)
        for section, lines in _SECTIONS.items()
        for name, line in lines.items()
    },
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


def find_parts(command: str) -> list[str]:
    """The names of the parts that are added to a command."""
    return [
        part
        for name in COMMAND_PARTS
        for of, _, part in [name.partition(".")]
        if of == command and part
    ]


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
    described = {_MAIN_WAY: _lines_of(_MAIN_WAY), _METHODS: sorted(_lines_of(_METHODS))}
    strangers = [name for name in COMMANDS if not COMMANDS.is_own(name)]
    if strangers:
        described[_STRANGERS] = [(n, f"Added by {COMMANDS.find_package(n)}.") for n in strangers]
    return described


def list_further() -> list[tuple[str, str]]:
    """All other commands: their heading, and their names."""
    headings = dict.fromkeys(entry.section for entry in COMMANDS.own_entries.values())
    return [
        (heading, ", ".join(name for name, _ in _lines_of(heading)))
        for heading in headings
        if heading not in (_MAIN_WAY, _METHODS)
    ]


def _lines_of(section: str) -> list[tuple[str, str]]:
    entries = COMMANDS.own_entries.items()
    return [(name, entry.help) for name, entry in entries if entry.section == section]
