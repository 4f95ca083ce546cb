"""The shape of the package in figures: files, chains and circles of imports, bases, options.

    python scripts/house.py

Prints a table; tests/unit/test_architecture.py holds the figures to their goals.
"""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kgbias"
SMALL = 60  # lines


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a folder by that of its `__init__`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: Mapping[str, Path], *, whole: bool) -> set[str]:
    """The modules of the package that a file imports: at its top level alone, or (`whole`) where
    types are checked too."""
    found = set()
    for node in _statements(ast.parse(path.read_text("utf-8")), whole):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name in known}


def _statements(tree: ast.Module, whole: bool) -> Iterable[ast.stmt]:
    for node in tree.body:
        yield node
        if isinstance(node, ast.If) and (whole or "TYPE_CHECKING" not in ast.unparse(node.test)):
            yield from node.body


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one module (Tarjan 1972)."""
    import networkx as nx

    found = nx.strongly_connected_components(nx.DiGraph([(a, b) for a in graph for b in graph[a]]))
    return sorted((part for part in found if len(part) > 1), key=len, reverse=True)


def longest(graph: Mapping[str, set[str]]) -> list[str]:
    """The longest chain of imports."""
    import networkx as nx

    return list(nx.dag_longest_path(nx.DiGraph([(a, b) for a in graph for b in graph[a]])))


def bases() -> dict[str, int]:
    """Of each class of the package how many bases it names."""
    found = {}
    for path in modules().values():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name] = max(found.get(node.name, 0), len(node.bases))
    return found


def options() -> tuple[int, int]:
    """How many options the command line has, every command's counted, and how many commands."""
    import click

    from kgbias.cli import cli

    def commands(group: click.Command, context: click.Context) -> Iterable[click.Command]:
        if isinstance(group, click.Group):
            for name in group.list_commands(context):
                command = group.get_command(context, name)
                if command is not None and not command.hidden:
                    yield from commands(command, click.Context(command, parent=context))
        else:
            yield group

    every = list(commands(cli, click.Context(cli)))
    counted = sum(
        isinstance(p, click.Option) and not p.hidden and p.name != "help"
        for command in every
        for p in command.params
    )
    return counted, len(every)


def figures() -> dict[str, object]:
    known = modules()
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in known.items()}
    small = [n for n, p in known.items() if lines[n] <= SMALL and p.name != "__init__.py"]
    top = {n: imported(p, known, whole=False) - {n} for n, p in known.items()}
    whole = {n: imported(p, known, whole=True) - {n} for n, p in known.items()}
    chain = longest(top)
    round_ = circles(whole)
    most = max(bases().items(), key=lambda own: own[1])
    counted, commands = options()
    return {
        "files": len(known),
        "lines": sum(lines.values()),
        f"files of at most {SMALL} lines": len(small),
        "longest import chain": len(chain),
        "chain": " > ".join(name.removeprefix("kgbias.") for name in chain),
        "circles, TYPE_CHECKING counted": len(round_),
        "largest circle": len(round_[0]) if round_ else 0,
        "circle": sorted(round_[0]) if round_ else [],
        "bases of a class, at most": most[1],
        "class of most bases": most[0],
        "modules at the root": sum(
            n.count(".") == 1 and p.name != "__init__.py" for n, p in known.items()
        ),
        "options": counted,
        "commands": commands,
        "small": small,
    }


if __name__ == "__main__":
    for name, value in figures().items():
        print(f"{name}: {value}")
