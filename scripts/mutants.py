"""How many small faults the tests find: one statement of the package changed or removed, at random.

    python scripts/mutants.py FOLDER --count 60 --seed 1     # what `make test` runs
    python scripts/mutants.py FOLDER --slow                  # and the slow tests, on what is left

FOLDER gets a copy of the tree in which every mutant stands beside what it replaces, asleep. The
files of tests run in batches, the cheapest first, with all mutants asleep, which notes for each
test the mutants that it meets, in the processes that it starts too. Then, in a fork for each
mutant, the tests of the batch that meet it run with it awake, the quickest first, until one fails.
So every file runs once, whatever the number of mutants, and a mutant costs what could find it.
Where a mutant is met by a fixture, which tests may share, all tests of the file run; where it is
met as a module is imported, or in a cache, all of the batch, in a new process. What fails with all
mutants asleep finds none. A second call goes on where the first stopped; `--most 5` tries the files
alone that take up to 5 s, `--file` those that are named. The mutants that live are printed: a
change that means the same, or a hole in the tests.

Not seen: processes that a test starts without our environment, which import the installed kgbias.
"""

import argparse
import ast
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests import meeting

ROOT = Path(__file__).parent.parent
FOLDERS = ("crawl", "graph", "stats", "evidence", "probe", "export", "methods")
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
BATCH_SECONDS = 30  # of files that run in one process
MAX_SECONDS = 1800  # for the tests of one mutant, which may wait for ever
ENDLESS = "a test that never ends"
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
    """One statement of a file, changed: `before` and `after` are its text."""

    path: str  # below the root
    line: int
    column: int
    before: str
    after: str


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
    line_text = source.splitlines()[lineno - 1]
    if line_text[:column].strip() or line_text[column:].startswith("elif"):
        return None  # what stands behind another statement, or is a part of it
    return Mutant(path.relative_to(ROOT).as_posix(), lineno, column, before, after)


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


class SleepingMutants(ast.NodeTransformer):
    """Puts the mutants of a file beside what they replace: which one runs is asked each time."""

    def __init__(self, mutants: dict[tuple[int, int], list[tuple[int, Mutant]]]) -> None:
        self.mutants = mutants

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        if isinstance(node, ast.stmt) and not isinstance(node, SKIPPED_NODES):
            for number, mutant in self.mutants.get((node.lineno, node.col_offset), ()):
                asked = f"__import__('tests.meeting', fromlist=['meets']).meets({number})"
                place = ast.parse(f"if {asked}:\n    pass").body[0]
                assert isinstance(place, ast.If)
                place.body, place.orelse = ast.parse(mutant.after).body, [node]
                node = place
        return node


def copy_tree(mutants: list[Mutant], tree: Path) -> None:
    for name in COPIED_FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, tree)
    for path in {mutant.path for mutant in mutants}:
        by_place: dict[tuple[int, int], list[tuple[int, Mutant]]] = {}
        for number, mutant in enumerate(mutants, 1):
            if mutant.path == path:
                by_place.setdefault((mutant.line, mutant.column), []).append((number, mutant))
        module = ast.parse((tree / path).read_text("utf-8"))
        changed = ast.fix_missing_locations(SleepingMutants(by_place).visit(module))
        (tree / path).write_text(ast.unparse(changed), "utf-8")


def read_rows(file: Path) -> Iterator[list[str]]:
    if file.exists():
        for line in file.read_text("utf-8").splitlines():
            yield line.split("\t")


def write_row(file: Path, *values: object) -> None:
    with file.open("a", encoding="utf-8") as open_file:
        print(*values, sep="\t", file=open_file)


# What runs in pytest: this module is a plugin too (-p scripts.mutants).
_passed_seconds: dict[str, float] = {}  # of each test that passes with all mutants asleep
_failed: set[str] = set()


def _kind(item: pytest.Item) -> str:
    if item.get_closest_marker("slow"):
        return "slow"
    return "neo4j" if "neo4j_server" in getattr(item, "fixturenames", ()) else "quick"


def pytest_runtest_setup() -> None:
    meeting.met.clear()


def pytest_runtest_call() -> None:
    meeting.met.clear()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests of a kind; in a new process for one mutant those that were chosen, in order."""
    kept = [item for item in items if _kind(item) == os.environ["KGBIAS_TESTS"]]
    if meeting.awake:
        chosen = (meeting.FOLDER / "chosen").read_text("utf-8").splitlines()
        place = {test: n for n, test in enumerate(chosen)}
        kept = [item for item in kept if item.nodeid in place]
        kept.sort(key=lambda item: place[item.nodeid])
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    taken = sum(float(seconds) for _, seconds in report.user_properties)
    _passed_seconds[report.nodeid] = _passed_seconds.get(report.nodeid, 0) + taken
    if report.outcome != "passed":
        _failed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    result = yield
    if not meeting.awake:
        for number in map(int, os.environ["KGBIAS_ALIVE"].split()):
            items, is_new_process = _choose_tests(number, session.items)
            if not items:
                continue
            seconds = sum(_passed_seconds[item.nodeid] for item in items)
            try_tests = _try_in_new_process if is_new_process else _try_in_fork
            if failing := try_tests(number, items, seconds):
                write_row(meeting.FOLDER / "found.tsv", number, os.environ["KGBIAS_TESTS"], failing)
    return result


def _choose_tests(number: int, items: list[pytest.Item]) -> tuple[list[pytest.Item], bool]:
    """Those that may find a mutant, the quickest first, and whether in a new process."""
    met = set()
    whole_files = set()
    is_shared = False
    for met_number, test, phase, shared in read_rows(meeting.FOLDER / "met.tsv"):
        if int(met_number) == number:
            met.add(test)
            is_shared |= shared == "True" or not test  # or as tests were collected
            if phase == "setup":
                whole_files.add(test.partition("::")[0])
    chosen = []
    for item in items:
        is_met = item.nodeid in met or item.nodeid.partition("::")[0] in whole_files
        if (is_met or is_shared) and item.nodeid not in _failed:
            chosen.append(item)
    return sorted(chosen, key=lambda item: _passed_seconds[item.nodeid]), is_shared


def _try_in_fork(number: int, items: list[pytest.Item], seconds: float) -> str:
    result_file = meeting.FOLDER / "result"
    result_file.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        meeting.awake = number
        os.environ["KGBIAS_MUTANT"] = str(number)
        _limit_processor_seconds(seconds)
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                reports = runtestprotocol(item, log=False, nextitem=following)
                if any(report.failed for report in reports):
                    result_file.write_text(item.nodeid, "utf-8")
                    break
        except BaseException as error:
            result_file.write_text(f"{item.nodeid} ({type(error).__name__})", "utf-8")
        finally:
            os._exit(0)
    deadline = time.monotonic() + MAX_SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.02)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if result_file.exists():
        return result_file.read_text("utf-8")
    return "" if ended[0] and not ended[1] else ENDLESS


def _try_in_new_process(number: int, items: list[pytest.Item], seconds: float) -> str:
    tests = [item.nodeid for item in items]
    (meeting.FOLDER / "chosen").write_text("\n".join(tests), "utf-8")
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    try:
        result = subprocess.run(
            [*PYTEST, "-x", *files],
            env={**os.environ, "KGBIAS_MUTANT": str(number)},
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            preexec_fn=lambda: _limit_processor_seconds(seconds),
        )
    except subprocess.TimeoutExpired:
        return ENDLESS
    if result.returncode == 0:
        return ""
    lines = (result.stdout + result.stderr).splitlines()
    failures = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return ENDLESS if result.returncode < 0 else (failures or lines or ["nothing was said"])[-1]


def _limit_processor_seconds(seconds: float) -> None:
    limit = round(15 + 5 * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "scripts.mutants"]
PYTEST += ["-n", "0", "--continue-on-collection-errors"]


def run_batch(folder: Path, kind: str, files: list[str], alive: list[int]) -> None:
    """Try the tests of these files on the mutants that live."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder / "tree"),
        "OMP_NUM_THREADS": "1",
        "KGBIAS_MUTANT": "0",
        "KGBIAS_MUTANTS": str(folder),
        "KGBIAS_ALIVE": " ".join(map(str, alive)),
        "KGBIAS_TESTS": kind,
    }
    with (folder / "said.txt").open("a", encoding="utf-8") as said:
        command = [*PYTEST, *files]
        done = subprocess.run(command, cwd=folder / "tree", env=environment, stdout=said)
    if done.returncode not in (0, 1, 5):  # 5: no test of this kind
        raise SystemExit(f"pytest ended with {done.returncode}: see {folder / 'said.txt'}")
    for file in files:
        write_row(folder / "tried.tsv", kind, file)


def find_batches(folder: Path, kind: str, patterns: list[str], most: float) -> list[list[str]]:
    """The files that were not tried, the cheapest first."""
    costs = json.loads((ROOT / "tests" / "costs.json").read_text("utf-8"))
    tried = {file for tried_kind, file in read_rows(folder / "tried.tsv") if tried_kind == kind}
    tree = folder / "tree"
    files = [path.relative_to(tree).as_posix() for path in (tree / "tests").rglob("test_*.py")]
    files = [file for file in files if "/plugin/" not in file and file not in tried]
    if patterns:
        files = [file for file in files if any(Path(file).match(pattern) for pattern in patterns)]
    batches: list[list[str]] = []
    seconds = 0.0
    for file in sorted(files, key=lambda file: (costs.get(file, 0.5), file)):
        cost = costs.get(file, 0.5)
        if cost > most:
            break
        if not batches or seconds + cost > BATCH_SECONDS:
            batches.append([])
            seconds = 0
        batches[-1].append(file)
        seconds += cost
    return batches


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the copy and what is found; made if need be")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=FOLDERS, help="draw from this folder")
    parser.add_argument("--mutant", type=int, action="append", help="try this one alone")
    parser.add_argument("--most", type=float, default=1e9, help="seconds that a file may take")
    parser.add_argument("--file", action="append", default=[], help="a file of tests, or a pattern")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--neo4j", action="store_true", help="try the tests that need its server")
    kinds.add_argument(
        "--slow", action="store_true", help="try the tests that make test leaves out"
    )
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if not (folder / "mutants.json").exists():
        drawn = draw_mutants(arguments.only or list(FOLDERS), arguments.count, arguments.seed)
        copy_tree(drawn, folder / "tree")
        (folder / "mutants.json").write_text(json.dumps([asdict(m) for m in drawn]), "utf-8")
    mutants = [Mutant(**m) for m in json.loads((folder / "mutants.json").read_text("utf-8"))]
    kind = "neo4j" if arguments.neo4j else "slow" if arguments.slow else "quick"
    for batch in find_batches(folder, kind, arguments.file, arguments.most):
        found = {int(number) for number, *_ in read_rows(folder / "found.tsv")}
        numbers = arguments.mutant or range(1, len(mutants) + 1)
        run_batch(folder, kind, batch, [number for number in numbers if number not in found])
    print_table(mutants, {int(n): said for n, *said in read_rows(folder / "found.tsv")})


def print_table(mutants: list[Mutant], found: dict[int, list[str]]) -> None:
    for number, mutant in enumerate(mutants, 1):
        print(f"{number}\t{mutant.path}:{mutant.line}\t", end="")
        if number in found:
            print(*found[number], sep="\t")
        else:
            print(f"LIVES\n- {mutant.before}\n+ {mutant.after}")
    by_make_test = sum(said[0] != "slow" for said in found.values())
    print(f"of {len(mutants)}, make test found {by_make_test}, with the slow tests {len(found)}")


if __name__ == "__main__":
    main()
