"""How many small faults the tests find: one line of the package changed or removed, at random.

    python scripts/mutants.py --count 60 --seed 1 [--folder crawl ...] [--slow]

Each mutant is tried in a copy of the tree. The files of tests run in order of their distance from
the changed module (those that import it, those that import what imports it, ...), until one fails,
which kills the mutant. Those that live through all of them are printed as a diff: a change that
means the same, or a hole in the tests. `--slow` runs the slow tests too.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("crawl", "graph", "stats", "evidence", "probe", "export")
COPIED_FOLDERS = (
    "kgbias",
    "tests",
    "prompts",
    "cypher",
    "docs",
    "scripts",
    "notebooks",
    "benchmarks",
)
MAX_SECONDS = 1200  # for one process of tests: a mutant may run for ever
SKIPPED_NODES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
COMPARISON_SWAPS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATOR_SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """A file with one statement changed: `before` and `after` are that statement's text."""

    path: Path  # below the root
    line: int
    before: str
    after: str
    source: str  # of the whole file, changed


class MutantTransformer(ast.NodeTransformer):
    """Changes the n-th place of a statement that can be changed."""

    def __init__(self, place: int) -> None:
        self.remaining = place

    def _is_here(self) -> bool:
        self.remaining -= 1
        return self.remaining == -1

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if type(node.ops[0]) in COMPARISON_SWAPS and self._is_here():
            node.ops[0] = COMPARISON_SWAPS[type(node.ops[0])]()
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if type(node.op) in OPERATOR_SWAPS and self._is_here():
            node.op = OPERATOR_SWAPS[type(node.op)]()
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self._is_here():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not | ast.USub) and self._is_here():
            return node.operand
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool | int | float) and self._is_here():
            value = node.value
            return ast.Constant(not value if isinstance(value, bool) else value + 1)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if self._is_here():
            node.body, node.orelse = node.orelse, node.body
        return self.generic_visit(node)


def find_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """What stands in functions and does something."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if isinstance(node, ast.stmt) and not isinstance(node, SKIPPED_NODES) and not is_text:
                yield node


def mutate(path: Path, rng: random.Random) -> Mutant | None:
    """One statement of this file changed, or, where there is nothing to change, removed."""
    source = path.read_text("utf-8")
    spans = sorted(
        {(s.lineno, s.end_lineno, s.col_offset) for s in find_statements(ast.parse(source))}
    )
    if not spans:
        return None
    lineno, _, column = rng.choice(spans)
    tree = ast.parse(source)
    node = next(s for s in find_statements(tree) if (s.lineno, s.col_offset) == (lineno, column))
    before = ast.unparse(node)
    head = node
    if isinstance(node, ast.If | ast.While):
        head = ast.Expr(node.test)
    elif isinstance(node, ast.For | ast.With | ast.Try):
        head = ast.Pass()
    counter = MutantTransformer(-1)
    counter.visit(head)
    places = -1 - counter.remaining
    if places and rng.random() < 0.75:
        changed_head = MutantTransformer(rng.randrange(places)).visit(head)
        if isinstance(node, ast.If | ast.While):
            node.test = changed_head.value
        new = node
    elif isinstance(node, ast.Return) and node.value is not None:
        new = ast.Return(ast.Constant(None))
    else:
        new = ast.Pass()
    after = ast.unparse(new)
    if after == before:
        return None
    lines = source.splitlines(keepends=True)
    start, end = node.lineno - 1, node.end_lineno or node.lineno
    if lines[start][:column].strip():  # what stands behind another statement on its line
        return None
    indented = "".join(f"{' ' * column}{line}\n" for line in after.splitlines())
    changed_source = "".join([*lines[:start], indented, *lines[end:]])
    return Mutant(path.relative_to(ROOT), lineno, before, after, changed_source)


def draw_mutants(folders: list[str], count: int, seed: int) -> list[Mutant]:
    """So many mutants, a module as often as it has lines."""
    rng = random.Random(seed)
    paths = [p for name in folders for p in sorted((ROOT / "kgbias" / name).rglob("*.py"))]
    sizes = [len(p.read_text("utf-8").splitlines()) for p in paths]
    mutants: list[Mutant] = []
    while len(mutants) < count:
        mutant = mutate(rng.choices(paths, sizes)[0], rng)
        if mutant and mutant not in mutants:
            mutants.append(mutant)
    return mutants


def imported_names(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def tests_by_distance(changed_file: Path) -> list[str]:
    """Every file of tests: first those that import the module, then those of what imports it."""
    modules = {}
    for path in [*(ROOT / "kgbias").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    importing = {name: imported_names(path) for name, path in modules.items()}
    name = next(name for name, path in modules.items() if path == ROOT / changed_file)
    distance = {name: 0}
    ring = {name}
    while ring:
        ring = {n for n, used in importing.items() if used & ring and n not in distance}
        distance |= {n: max(distance.values()) + 1 for n in ring}
    costs = json.loads((ROOT / "tests" / "costs.json").read_text("utf-8"))
    files = [p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py")]
    files = [file for file in files if "/plugin/" not in file]

    def order(file: str) -> tuple[bool, int, int]:
        module = file.removesuffix(".py").replace("/", ".")
        return (costs.get(file, 0) > 15, distance.get(module, 99), costs.get(file, 0))

    return sorted(files, key=order)


def failing_test(mutant: Mutant, copy: Path, arguments: list[str], workers: int) -> str:
    """The test that fails, or nothing."""
    file = copy / mutant.path
    original = file.read_text("utf-8")
    file.write_text(mutant.source, "utf-8")
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    try:
        files = tests_by_distance(mutant.path)
        for part in (files[:25], files[25:]):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
            command += ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]
            try:
                result = subprocess.run(
                    [*command, *arguments, *part],
                    cwd=copy,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=MAX_SECONDS,
                )
            except subprocess.TimeoutExpired:
                return "a test that never ends"
            if result.returncode:
                failures = [
                    x for x in result.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))
                ]
                return failures[0] if failures else result.stdout.strip().splitlines()[-1]
    finally:
        file.write_text(original, "utf-8")
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", action="append", choices=FOLDERS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slow", action="store_true", help="run the slow tests too")
    arguments = parser.parse_args()
    mutants = draw_mutants(arguments.folder or list(FOLDERS), arguments.count, arguments.seed)
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED_FOLDERS:
            shutil.copytree(ROOT / name, copy / name, dirs_exist_ok=True)
        for file in ROOT.iterdir():
            if file.is_file():
                shutil.copy(file, copy)
        for n, mutant in enumerate(mutants, 1):
            begun = time.monotonic()
            failure = failing_test(
                mutant, copy, [] if arguments.slow else ["-m", "not slow"], arguments.workers
            )
            killed += bool(failure)
            print(f"{n}\t{mutant.path}:{mutant.line}\t{time.monotonic() - begun:.0f} s\t", end="")
            print(failure or f"LIVES\n- {mutant.before}\n+ {mutant.after}", flush=True)
    print(f"{killed} of {len(mutants)} killed")


if __name__ == "__main__":
    main()
