"""Fixtures for all tests, their order, and the rule for what a machine lacks."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import pytest

from kgbias.graph.sqlite import SQLiteStore, database
from kgbias.io import stopping
from kgbias.io.caller_state import wait_passively
from tests.chromium import CHROMIUM_OPTIONS
from tests.simulation import Simulation
from tests.texts import Texts
from tests.waiting import DEADLINE_SECONDS

# No test may reach a hub; set before anything reads it.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.pop("KGBIAS_STORE", None)  # whoever runs the tests keeps a store of their own
# Nor may a thread turn idly on a core that other tests need: torch is told before it is imported.
wait_passively()
# Neo4j starts in half the time when it does not optimise what will soon be stopped.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# Half the time of a test with a store is waiting for the disk. No test cuts the power, and other
# processes of kgbias wait in tests as everywhere (integration/test_store_processes.py).
database.SYNCHRONOUS = "OFF"

ROOT = Path(__file__).parent.parent
NEO4J = str(ROOT / "scripts" / "neo4j")
# Each test fills another small graph, for which Neo4j would plan every query anew: more work than
# all that is asked of it.
PLAN_ONCE = "dbms.cypher.min_replan_interval=1d"
# Seconds of processor time that each file of tests takes, with the processes that it starts and
# waits for: the longest come first, so that no process waits long for the others. `make costs`
# renews it.
COSTS_FILE = ROOT / "tests" / "costs.json"
MIN_BYTES_FOR_THREE = 8_000_000_000
SECONDS_KEY = pytest.StashKey[float]()
HAS_FAILED_KEY = pytest.StashKey[bool]()
_case_counts: Counter[str] = Counter()
_seconds: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-costs", action="store_true", help="renew tests/costs.json")
    parser.addoption("--renew-texts", action="store_true", help="renew texts.json (tests/texts.py)")
    parser.addoption("--shuffle", type=int, help="take the files in random order, by this seed")
    parser.addoption(
        "--slow-part", metavar="K/N", help="of the slow tests, part K of N alone; or all"
    )
    parser.addoption("--worlds", type=int, default=1, help="times as many simulated worlds")


def pytest_configure() -> None:
    """Started in the background of a script, we ignore Ctrl-C, and so would the crawls that tests
    start and interrupt. And we collect garbage as commands do (kgbias.cli.main)."""
    # Hypothesis allows an example 200 ms, which is a limit of time.
    hypothesis.settings.register_profile("kgbias", deadline=None)
    hypothesis.settings.load_profile("kgbias")
    gc.set_threshold(10_000)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A process grows to some two gigabytes, and its tests start servers and browsers."""
    return 3 if _count_memory_bytes() >= MIN_BYTES_FOR_THREE else 2


def _count_memory_bytes() -> int:
    """The memory of this machine, or of the container if that has less (control groups 1 and 2)."""
    import psutil

    limits = [psutil.virtual_memory().total]
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("ascii").splitlines():
            group = line.split(":", 2)[2].strip("/")
            for file in (f"{group}/memory.max", f"memory/{group}/memory.limit_in_bytes"):
                with suppress(OSError, ValueError):  # no such file, or "max"
                    limits.append(int((Path("/sys/fs/cgroup") / file).read_text("ascii")))
    return min(limits)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile` the tests of a file run in one process, as they share servers and
    models; here all that need a Neo4j server run in one, as it starts for longer than they last."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "neo4j" if _needs_neo4j(nodeid) else str(super()._split_scope(nodeid))

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What one process has to do alone comes first, then the files that take longest; or the files
    in the order that `--shuffle` draws, for what one file leaves behind for the next."""
    files_with_smoke = set()
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "simulation" in fixtures:
            item.add_marker(pytest.mark.level)
        if "chromium" in fixtures:
            # A browser takes as much as the test that drives it: one of each file for `make test`.
            if item.path in files_with_smoke:
                item.add_marker(pytest.mark.slow)
            files_with_smoke.add(item.path)
        if "neo4j_server" in getattr(item, "fixturenames", ()) and not _needs_neo4j(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid} would start a second server: say neo4j in it")
    seed = config.getoption("shuffle")
    if seed is not None:
        files = sorted({_test_file(item.nodeid) for item in items})
        place = {file: n for n, file in enumerate(Random(seed).sample(files, len(files)))}
        items.sort(key=lambda item: place[_test_file(item.nodeid)])
        return
    costs = json.loads(COSTS_FILE.read_text("utf-8"))
    part = config.getoption("slow_part")
    if part not in (None, "all"):
        _take_part_of_the_slow(config, items, costs, *map(int, part.split("/")))
    items.sort(
        key=lambda item: (not _needs_neo4j(item.nodeid), -costs.get(_test_file(item.nodeid), 0))
    )


def _take_part_of_the_slow(
    config: pytest.Config,
    items: list[pytest.Item],
    costs: dict[str, float],
    part: int,
    part_count: int,
) -> None:
    """Leave out the slow tests of other parts. A file belongs to one part, since its tests share
    what is made for them, and parts cost about the same."""
    if not 1 <= part <= part_count:
        raise pytest.UsageError(f"--slow-part {part}/{part_count}: there is no such part")
    slow_items = [item for item in items if item.get_closest_marker("slow")]
    part_costs = [0.0] * part_count
    part_of = {}
    files = {_test_file(item.nodeid) for item in slow_items}
    for file in sorted(files, key=lambda file: (-costs.get(file, 0), file)):
        part_of[file] = part_costs.index(min(part_costs))
        part_costs[part_of[file]] += costs.get(file, 1)
    left_out = {item for item in slow_items if part_of[_test_file(item.nodeid)] != part - 1}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _processor_seconds(config: pytest.Config) -> float:
    """Of this process and of those that it started; as costs are recorded, of those that live too:
    a browser would else be put down to the last test, as it ends."""
    living = _living_seconds(os.getpid()) if config.getoption("record_costs") else 0.0
    return sum(os.times()[:4]) + living


def _living_seconds(process: int) -> float:
    """Of what a process started, and of what that started (Linux)."""
    seconds = 0.0
    with suppress(OSError):  # it has just ended
        for file in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, file.read_text().split()):
                ticks = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:15]
                seconds += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") + _living_seconds(child)
    return seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[SECONDS_KEY] = _processor_seconds(item.config)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Each phase of a test says what it took; with xdist, another process adds it up."""
    report = yield
    item.stash[HAS_FAILED_KEY] = report.failed
    now = _processor_seconds(item.config)
    report.user_properties = [("processor seconds", now - item.stash[SECONDS_KEY])]  # type: ignore[attr-defined]
    item.stash[SECONDS_KEY] = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    file = _test_file(report.nodeid)
    _case_counts[file] += report.when == "call"
    _seconds[file] += sum(taken for _, taken in report.user_properties)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not config.getoption("record_costs"):
        return
    costs = {file: round(taken) for file, taken in sorted(_seconds.items()) if taken >= 1}
    COSTS_FILE.write_text(json.dumps(costs, indent=0) + "\n", "utf-8")
    kinds = sorted({file.split("/")[1] for file in _case_counts})
    for kind in kinds:
        files = [file for file in _case_counts if file.split("/")[1] == kind]
        cases, seconds = sum(_case_counts[f] for f in files), sum(_seconds[f] for f in files)
        terminalreporter.line(f"{kind}: {cases} cases, {seconds:.0f} s of processor time")


def _test_file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _needs_neo4j(nodeid: str) -> bool:
    return nodeid.startswith("tests/contract/") or "neo4j" in nodeid


def pytest_collection_finish() -> None:
    """Spare the collector what was imported to read the tests, most of which stays: a tenth of the
    processor time that tests take."""
    gc.freeze()


def sweep_params(every: int, values: Iterable[Any]) -> list[Any]:
    """The parameters of a sweep: `make test` takes one in so many, `make test-all` each."""
    return [
        value if n % every == 0 else _slow_param(*(value if isinstance(value, tuple) else (value,)))
        for n, value in enumerate(values)
    ]


def _slow_param(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


def skip_or_fail(what: str) -> None:
    """Skip with a line that says what is missing; in CI a missing part is a failure."""
    if os.environ.get("KGBIAS_CI"):
        pytest.fail(f"{what}, which CI must have")
    pytest.skip(what, allow_module_level=True)


def require_modules(*modules: str) -> None:
    """Do without the test, or the file at whose top this stands, where a module is not installed.

    Unlike `pytest.importorskip` it imports none of them: every process of `make test` reads every
    file, and the packages of all files take it half a minute of processor time.
    """
    for module in modules:
        try:
            spec = find_spec(module)
        except ModuleNotFoundError:  # the package around it
            spec = None
        if not spec:
            skip_or_fail(f"{module} is not installed")


@pytest.fixture(autouse=True)
def undo_main(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command that a test runs in this process takes over its Ctrl-C and its errors, and notes
    that it is being stopped: the next test finds the process as it was."""
    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(stopping, "_is_stopping", False)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def simulation(request: pytest.FixtureRequest) -> Simulation:
    return Simulation(request.node.nodeid, request.config.getoption("--worlds"))


@pytest.fixture
def texts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Texts]:
    """The words of errors and of what is printed (`tests.texts`)."""
    is_renewed = request.config.getoption("--renew-texts")
    texts = Texts(request.node.nodeid, is_renewed=is_renewed, folders=(tmp_path,))
    yield texts
    if not request.node.stash.get(HAS_FAILED_KEY, False):
        texts.finish()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(str(tmp_path / "kgbias.db"))
    yield store
    store.close()


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A real Neo4j server: NEO4J_URI, NEO4J_HTTP and NEO4J_PASSWORD, and HOME, its folder. A test
    may stop it, and need not start it again for the next, which has it by `empty_neo4j`."""
    if not (shutil.which("java") and shutil.which("mvn")):
        skip_or_fail("Java 17 or Maven is not installed, so there is no Neo4j server")
    home = str(tmp_path_factory.mktemp("neo4j"))
    yield start_neo4j(home) | {"HOME": home}
    subprocess.run([NEO4J, "stop", home], check=False)


def start_neo4j(home: str) -> dict[str, str]:
    """Start the server of this folder; its address and password."""
    result = subprocess.run([NEO4J, "start", home, PLAN_ONCE], capture_output=True, text=True)
    if result.returncode:
        skip_or_fail(f"Neo4j did not start: {result.stderr.strip()}")
    return dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)


@pytest.fixture
def empty_neo4j(neo4j_server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the server with nothing in it; the password is in the environment."""
    import neo4j

    if not Path(neo4j_server["HOME"], "pid").exists():
        start_neo4j(neo4j_server["HOME"])
    monkeypatch.setenv("NEO4J_PASSWORD", neo4j_server["NEO4J_PASSWORD"])
    auth = ("neo4j", neo4j_server["NEO4J_PASSWORD"])
    with neo4j.GraphDatabase.driver(neo4j_server["NEO4J_URI"], auth=auth) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n")
    return neo4j_server["NEO4J_URI"]


def _with_deadline(open_page: Callable[..., Any]) -> Callable[..., Any]:
    """What it opens waits for as long as any test does, not for Playwright's 30 seconds."""

    def patient(*values: Any, **named: Any) -> Any:
        page = open_page(*values, **named)
        page.set_default_timeout(DEADLINE_SECONDS * 1000)
        return page

    return patient


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    """A real headless Chromium, driven by playwright."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if not executable:
        skip_or_fail("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_OPTIONS)
        for name in ("new_page", "new_context"):
            setattr(browser, name, _with_deadline(getattr(browser, name)))
        yield browser
        browser.close()
