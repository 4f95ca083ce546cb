"""The shape of the package in figures: files, chains and circles of imports, bases, options; its
names; and its style, in 1,000 lines.

    python scripts/house.py               the figures
    python scripts/house.py --list stats  the names behind them, here in kgbias/stats

Prints a table; tests/unit/test_architecture.py holds the figures to their goals.

A *bare participle* is a name of one word that is a past participle and nothing else (`told`,
`Measured`; not `read` or `cost`, which are also a verb or a noun).

An import *runs back up* if it goes against the order of rooms in docs/architecture.md, at the top
of a module or in a function: from one room (a folder, or a module at the root) to a room that does
not stand to its right; or, inside a room, from a module to one that imports it at its top, directly
or through others. A name imported from the package counts as imported from where
`kgbias/__init__.py` gets it; the package as a whole (`import kgbias`) is its front door, `study`.
Imports for types alone never run, and count only in the circles.
"""

import argparse
import ast
import io
import keyword
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kgbias"
MAX_SMALL_LINES = 60  # lines
MIN_SENTENCE_WORDS = 5  # words
IRREGULAR_PARTICIPLES = frozenset(
    "beaten been begun bent blown borne born bought bound bred broken brought built burnt caught"
    " chosen dealt done drawn driven eaten fallen fed felt flown forbidden forgotten found fought"
    " frozen given gone got gotten grown had heard held hidden hung kept known laid lent led left"
    " lost made meant met mistaken outdone overcome paid proven redrawn rewritten risen said seen"
    " sent sewn shaken shot shown shrunk shut sold sought spent spoken spun stolen stood struck"
    " stuck sunk sworn taken taught thought thrown told torn undone understood unheard unknown"
    " unseen unsent untold withdrawn withheld woken won worn woven written".split()
)
NO_PARTICIPLES = frozenset("bed embed exceed feed fred indeed need proceed red seed speed".split())
VAGUE_LIMITS = frozenset("MOST FEWEST LONGEST ENOUGH ROOM FEW LEAST MANY SOME".split())
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a folder by its `__init__`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def parse_file(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported_modules(path: Path, known: Mapping[str, Path], *, with_types: bool) -> set[str]:
    """The modules of the package that a file imports: only at its top level, or (`with_types`) also
    for type checking."""
    names = set()
    for node in _statements(parse_file(path), with_types):
        for name in _imports(node):
            names.add(name if name in known else name.rpartition(".")[0])
    return {name for name in names if name in known}


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


def longest_chain(graph: Mapping[str, set[str]]) -> list[str]:
    """The longest chain of imports."""
    import networkx as nx

    return list(nx.dag_longest_path(nx.DiGraph([(a, b) for a in graph for b in graph[a]])))


def layers() -> list[list[str]]:
    """The layers, top first, from the line of docs/architecture.md that says which way imports
    run."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (line,) = re.findall(r"^    (methods, backends > .+)$", text, re.MULTILINE)
    return [part.replace(" ", "").split(",") for part in line.split(">")]


def room_of(module: str) -> str:
    """The folder or root module that a module belongs to: `kgbias.crawl.seeds` is in crawl. The
    package itself is the front door, `python -m kgbias` the command line."""
    name = module.partition(".")[2].partition(".")[0]
    return {"": "study", "__main__": "cli"}.get(name, name)


def running_imports(path: Path, known: Mapping[str, Path]) -> set[str]:
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
        for node in ast.walk(parse_file(known["kgbias"]))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    names = set()
    for node in statements(parse_file(path)):
        for name in _imports(node):
            module, _, attribute = name.rpartition(".")
            if module == "kgbias" and name not in known:
                module = face.get(attribute, module)
            names.add(name if name in known else module)
    return {name for name in names if name in known}


def backward_imports() -> list[str]:
    """The imports that run back up, as "module imports module" (see above)."""
    import networkx as nx

    known = modules()
    depth = {name: number for number, layer in enumerate(layers()) for name in layer}
    graph = nx.DiGraph(
        [
            (n, target)
            for n, p in known.items()
            for target in imported_modules(p, known, with_types=False) - {n}
        ]
    )
    leads = cache(lambda name: nx.descendants(graph, name) if name in graph else set())
    reversals = []
    for name, path in known.items():
        for target in sorted(running_imports(path, known) - {name}):
            here, there = room_of(name), room_of(target)
            if depth[there] <= depth[here] if here != there else name in leads(target):
                reversals.append(f"{name} imports {target}")
    return reversals


def count_bases() -> dict[str, int]:
    """The number of bases that each class of the package names."""
    found: dict[str, int] = {}
    for path in modules().values():
        for node in ast.walk(parse_file(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name] = max(found.get(node.name, 0), len(node.bases))
    return found


def count_options() -> tuple[int, int]:
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
    option_count = sum(
        isinstance(p, click.Option) and not p.hidden and p.name != "help"
        for command in every
        for p in command.params
    )
    return option_count, len(every)


class Definition(NamedTuple):
    """A module, class, function or constant of the package."""

    path: Path
    line: int
    kind: str  # module, class, function, constant
    name: str
    is_top: bool  # at the top level of its module
    node: ast.AST

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def definitions(path: Path) -> Iterator[Definition]:
    """What a file defines: itself, its classes and functions, and the constants of the module and
    of its classes."""
    tree = parse_file(path)
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    yield Definition(path, 1, "module", stem, False, tree)
    for node in ast.walk(tree):
        is_top = node in tree.body
        if isinstance(node, ast.ClassDef):
            yield Definition(path, node.lineno, "class", node.name, is_top, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Definition(path, node.lineno, "function", node.name, is_top, node)
        if isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                for name in _assigned(statement):
                    if name.isupper():
                        yield Definition(path, statement.lineno, "constant", name, is_top, node)


def _assigned(statement: ast.stmt) -> list[str]:
    """The names that a statement gives a value."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [t.id for t in targets if isinstance(t, ast.Name)]


@cache
def every_definition() -> list[Definition]:
    return [d for path in modules().values() for d in definitions(path)]


def is_bare_participle(name: str) -> bool:
    word = name.strip("_")
    if "_" in word or not word[1:].islower():
        return False
    word = word.lower()
    if word in NO_PARTICIPLES:
        return False
    return word.endswith("ed") or word in IRREGULAR_PARTICIPLES


def is_vague_limit(name: str) -> bool:
    """Whether a constant says that there is a limit, and not which."""
    return not VAGUE_LIMITS.isdisjoint(name.strip("_").split("_"))


def returns_bare_tuple(node: ast.AST) -> bool:
    """Whether a function's result is a tuple of a fixed number of values without names."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    result = node.returns
    if not isinstance(result, ast.Subscript) or ast.unparse(result.value) != "tuple":
        return False
    return isinstance(result.slice, ast.Tuple) and "..." not in ast.unparse(result.slice)


def shared_names(kinds: tuple[str, ...], *, public: bool = False) -> dict[str, list[Definition]]:
    """The top-level names that stand in several modules."""
    by_name = defaultdict(list)
    for definition in every_definition():
        is_wanted = definition.is_top or definition.kind == "constant"
        if public and definition.name.startswith("_"):
            continue
        if is_wanted and definition.kind in kinds:
            by_name[definition.name].append(definition)
    return {name: where for name, where in by_name.items() if len({d.path for d in where}) > 1}


def identifiers(path: Path) -> list[str]:
    """The names in a file, as often as they stand there."""
    with tokenize.open(path) as lines:
        tokens = list(tokenize.generate_tokens(lines.readline))
    words = [token.string for token in tokens if token.type == tokenize.NAME]
    return [word for word in words if not keyword.iskeyword(word)]


def name_figures() -> dict[str, object]:
    """The figures of the package's names."""
    every = every_definition()
    result: dict[str, object] = {}
    for kind, plural in (("module", "modules"), ("class", "classes"), ("function", "functions")):
        of_kind = [d.name for d in every if d.kind == kind]
        bare = sum(map(is_bare_participle, of_kind))
        share = f"{bare} of {len(of_kind)} ({bare / len(of_kind):.1%})"
        result[f"{plural} named by one bare participle"] = share
    classes = shared_names(("class",), public=True)
    limits = [d for d in every if d.kind == "constant" and is_vague_limit(d.name)]
    all_names = [name for path in modules().values() for name in identifiers(path)]
    result["public classes of one name in several modules"] = len(classes)
    result["classes"] = ", ".join(f"{name} {len(where)}" for name, where in sorted(classes.items()))
    result["top-level names in more than one module"] = len(
        shared_names(("class", "function"), public=True)
    )
    result["constants called " + ", ".join(sorted(VAGUE_LIMITS))] = len(limits)
    result["mean length of an identifier"] = round(sum(map(len, all_names)) / len(all_names), 2)
    result["functions that return a bare tuple"] = sum(returns_bare_tuple(d.node) for d in every)
    return result


def asserts_wording(function: ast.AST) -> bool:
    """Whether a test holds a text of five or more words: in an assertion, or by `match`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and _has_sentence(node.test):
            return True
        if isinstance(node, ast.keyword) and node.arg == "match" and _has_sentence(node.value):
            return True
    return False


def _has_sentence(expression: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value.split()) >= MIN_SENTENCE_WORDS
        for node in ast.walk(expression)
    )


def wording_figures() -> dict[str, object]:
    """How many functions of the tests hold words, where they could hold an error's class and
    values, and leave its words to `tests/texts.py`."""
    functions = [
        node
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(parse_file(path))
        if isinstance(node, ast.FunctionDef)
    ]
    key = f"functions of tests that assert {MIN_SENTENCE_WORDS} or more words"
    return {key: sum(map(asserts_wording, functions))}


def style_figures() -> dict[str, object]:
    """How often the package uses what packs several steps into a line, and comments, in 1,000
    lines."""
    lines = 0
    counts: Counter[str] = Counter()
    for path in modules().values():
        text = path.read_text("utf-8")
        lines += len(text.splitlines())
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                counts["comments"] += 1
                counts["# fmt: skip"] += "fmt: skip" in token.string
        for node in ast.walk(parse_file(path)):
            if isinstance(node, COMPREHENSIONS):
                counts["comprehensions"] += 1
                inner = (n for n in ast.walk(node) if n is not node)
                counts["nested comprehensions"] += any(isinstance(n, COMPREHENSIONS) for n in inner)
            counts["ternaries"] += isinstance(node, ast.IfExp)
            counts["walrus"] += isinstance(node, ast.NamedExpr)
    every_thousand = "comprehensions", "nested comprehensions", "ternaries", "walrus", "comments"
    result: dict[str, object] = {
        f"{name} in 1,000 lines": round(1000 * counts[name] / lines, 1) for name in every_thousand
    }
    result["# fmt: skip"] = counts["# fmt: skip"]
    return result


def list_names(folder: str) -> Iterator[str]:
    """A line for each name of a folder (or module at the root) that the figures count."""
    shared = shared_names(("class", "function", "constant"))
    for definition in every_definition():
        path = definition.path.relative_to(PACKAGE)
        if path.with_suffix("").parts[0] != folder:
            continue
        name = definition.name
        remarks = []
        if definition.kind != "constant" and is_bare_participle(name):
            remarks.append("bare participle")
        if definition.kind == "constant" and is_vague_limit(name):
            remarks.append("vague limit")
        if returns_bare_tuple(definition.node):
            remarks.append("returns a bare tuple")
        others = [d.place for d in shared.get(name, []) if d.path != definition.path]
        if others and (definition.is_top or definition.kind == "constant"):
            remarks.append("also in " + ", ".join(others))
        if remarks:
            yield f"{definition.place} {definition.kind} {name}: {'; '.join(remarks)}"


def figures() -> dict[str, object]:
    known = modules()
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in known.items()}
    small = [n for n, p in known.items() if lines[n] <= MAX_SMALL_LINES and p.name != "__init__.py"]
    top = {n: imported_modules(p, known, with_types=False) - {n} for n, p in known.items()}
    whole = {n: imported_modules(p, known, with_types=True) - {n} for n, p in known.items()}
    chain = longest_chain(top)
    circles_found = circles(whole)
    widest = max(count_bases().items(), key=lambda own: own[1])
    option_count, commands = count_options()
    backward = backward_imports()
    return {
        "files": len(known),
        "lines": sum(lines.values()),
        f"files of at most {MAX_SMALL_LINES} lines": len(small),
        "longest import chain": len(chain),
        "chain": " > ".join(name.removeprefix("kgbias.") for name in chain),
        "circles, TYPE_CHECKING counted": len(circles_found),
        "largest circle": len(circles_found[0]) if circles_found else 0,
        "circle": sorted(circles_found[0]) if circles_found else [],
        "imports that run back up": len(backward),
        "back up": backward,
        "bases of a class, at most": widest[1],
        "class of most bases": widest[0],
        "modules at the root": sum(
            n.count(".") == 1 and p.name != "__init__.py" for n, p in known.items()
        ),
        "options": option_count,
        "commands": commands,
        "small": small,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--list", metavar="FOLDER", help="the names of a folder that are counted")
    folder = parser.parse_args().list
    if folder:
        print(*list_names(folder), sep="\n")
        return
    for name, value in (figures() | name_figures() | style_figures() | wording_figures()).items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
