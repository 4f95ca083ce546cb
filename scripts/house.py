"""The shape of the package in figures: files, chains and circles of imports, bases, options.

    python scripts/house.py

Prints a table; tests/unit/test_architecture.py holds the figures to their goals.

An import *runs back up* if it goes against the order of rooms in docs/architecture.md, at the top
of a module or in a function: from one room (a folder, or a module at the root) to a room that does
not stand to its right; or, inside a room, from a module to one that imports it at its top, directly
or through others. A name imported from the package counts as imported from where
`kgbias/__init__.py` gets it; the package as a whole (`import kgbias`) is its front door, `study`.
Imports for types alone never run, and count only in the circles.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kgbias"
SMALL = 60  # lines


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a folder by its `__init__`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported(path: Path, known: Mapping[str, Path], *, whole: bool) -> set[str]:
    """The modules of the package that a file imports: only at its top level, or (`whole`) also for
    type checking."""
    found = set()
    for node in _statements(parsed(path), whole):
        for name in _imports(node):
            found.add(name if name in known else name.rpartition(".")[0])
    return {name for name in found if name in known}


def _imports(node: ast.stmt) -> Iterable[str]:
    """What a statement imports, each name with its module."""
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


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


def layers() -> list[list[str]]:
    """The layers, top first, from the line of docs/architecture.md that says which way imports
    run."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (line,) = re.findall(r"^    (cli > .+)$", text, re.MULTILINE)
    return [part.replace(" ", "").split(",") for part in line.split(">")]


def room(module: str) -> str:
    """The folder or root module that a module belongs to: `kgbias.crawl.seeds` is in crawl. The
    package itself is the front door, `python -m kgbias` the command line."""
    name = module.partition(".")[2].partition(".")[0]
    return {"": "study", "__main__": "cli"}.get(name, name)


def run(path: Path, known: Mapping[str, Path]) -> set[str]:
    """The modules of the package that a file imports when it runs, including in functions."""

    def statements(node: ast.AST) -> Iterator[ast.stmt]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):  # has no statement in it
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)

    face = {
        alias.asname or alias.name: node.module or ""
        for node in ast.walk(parsed(known["kgbias"]))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found = set()
    for node in statements(parsed(path)):
        for name in _imports(node):
            module, _, own = name.rpartition(".")
            if module == "kgbias" and name not in known:
                module = face.get(own, module)
            found.add(name if name in known else module)
    return {name for name in found if name in known}


def backwards() -> list[str]:
    """The imports that run back up, as "module imports module" (see above)."""
    import networkx as nx

    known = modules()
    depth = {name: number for number, layer in enumerate(layers()) for name in layer}
    graph = nx.DiGraph(
        [(n, to) for n, p in known.items() for to in imported(p, known, whole=False) - {n}]
    )
    leads = cache(lambda name: nx.descendants(graph, name) if name in graph else set())
    found = []
    for name, path in known.items():
        for to in sorted(run(path, known) - {name}):
            here, there = room(name), room(to)
            if depth[there] <= depth[here] if here != there else name in leads(to):
                found.append(f"{name} imports {to}")
    return found


def bases() -> dict[str, int]:
    """The number of bases that each class of the package names."""
    found = {}
    for path in modules().values():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name] = max(found.get(node.name, 0), len(node.bases))
    return found


def options() -> tuple[int, int]:
    """The number of options of the command line, over all commands, and the number of commands."""
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
    back = backwards()
    return {
        "files": len(known),
        "lines": sum(lines.values()),
        f"files of at most {SMALL} lines": len(small),
        "longest import chain": len(chain),
        "chain": " > ".join(name.removeprefix("kgbias.") for name in chain),
        "circles, TYPE_CHECKING counted": len(round_),
        "largest circle": len(round_[0]) if round_ else 0,
        "circle": sorted(round_[0]) if round_ else [],
        "imports that run back up": len(back),
        "back up": back,
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
