"""Measuring and probing on a real Ray of two CPUs: the same graph, also where a worker is killed or
the command is stopped."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import pytest

import kgbias
from kgbias.backends.ray.cluster import join_ray
from kgbias.errors import Interrupted, ModelError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.io.progress import SilentProgress
from kgbias.methods import apx, associations
from kgbias.methods.associations.distributed_model import DistributedEncoder
from kgbias.parallel import open_executor
from tests.backends.ray.integration.test_parallel import CALLED, WORDS
from tests.conftest import require_modules
from tests.spread import Still, everything
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
require_modules("torch", "ray")

SAID = list(product(("Women", "Men"), ("love", "are afraid of"), ("rain", "their dogs", "music")))


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray that this process has joined, which all tests use."""
    with join_ray("") as ray:
        yield ray


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.measure.scoring.PIECE_STATEMENTS", 2)
    monkeypatch.setattr("kgbias.probe.run_probes._MAX_CHUNK_PROBES", 4)
    monkeypatch.setattr("kgbias.probe.names.NameSentences.chunk", 7)
    monkeypatch.setattr("kgbias.probe.run_probes.ProbeStopwatch", Still)


class Meanwhile(SilentProgress):
    """Does something once, when the first piece is done."""

    def __init__(self, do: Any) -> None:
        self._do = do

    def advance(self, steps: int = 1, **counts: float) -> None:
        if steps and not counts and (do := self._do):
            self._do = None
            do()


def started() -> list[psutil.Process]:
    """What this process started, and what those started."""
    return psutil.Process().children(recursive=True)


def workers() -> list[psutil.Process]:
    found = []
    for process in started():
        with suppress(psutil.NoSuchProcess):  # it ends, or has ended and is a zombie
            found += [process] if "ray::RayWorker" in "".join(process.cmdline()) else []
    return found


def measured(path: Path, executor: str = "ray", progress: Any = False) -> list[str]:
    with kgbias.open(path, progress=progress) as study:
        study.run().measure(
            scorers=dict.fromkeys(("toxicity", "identity_attack", "acceptability")),
            axes=False,
            executor=executor,
        )
    return stored(path)


def stored(path: Path) -> list[str]:
    store = SQLiteStore(str(path))
    rows = everything(store)
    store.close()
    return rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run, to be copied."""
    folder = tmp_path_factory.mktemp("ray")
    table = folder / "said.csv"
    rows = [",".join(("gender", *said)) for said in SAID]
    table.write_text("\n".join(["category,group,predicate,object", *rows]))
    with kgbias.open(folder / "run.db") as study:
        study.import_file(table, name="r")
    return folder / "run.db"


def twins(run: Path, folder: Path) -> tuple[Path, Path]:
    return Path(shutil.copy(run, folder / "a.db")), Path(shutil.copy(run, folder / "b.db"))


@pytest.mark.slow
def test_a_killed_worker_loses_and_doubles_nothing(ray: Any, run: Path, tmp_path: Path) -> None:
    one, other = twins(run, tmp_path)
    killed = []

    def kill() -> None:
        killed.append(workers()[0])
        killed[0].kill()

    assert measured(one, progress=Meanwhile(kill)) == measured(other, "local")
    assert killed


@pytest.mark.slow
def test_what_was_stopped_goes_on(ray: Any, run: Path, tmp_path: Path) -> None:
    one, other = twins(run, tmp_path)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="what was finished is kept"):
        measured(one, progress=Meanwhile(stop))
    assert 0 < sum('INTO "score"' in row for row in stored(one)) < len(SAID)
    wait_until(
        lambda: not workers()
    )  # Ray ends one that was just being started as soon as it is there
    assert measured(one, "local") == measured(other, "local")


def test_probes_are_the_same(ray: Any, run: Path, tmp_path: Path) -> None:
    one, other = twins(run, tmp_path)
    said, tables = [], [tmp_path / "ray.csv", tmp_path / "local.csv"]
    for path, executor, table in ((one, "ray", tables[0]), (other, "local", tables[1])):
        with kgbias.open(path, progress=False) as study:
            said.append(repr(study.run().probe("reference", executor=executor)))
        with kgbias.open(None, progress=False) as study:  # which keeps how long it took
            apx.probe_names(study, "reference", CALLED, WORDS, output=table, executor=executor)
    assert said[0] == said[1]
    assert stored(one) == stored(other)
    for files in (tables, [table.with_suffix(".perplexities.jsonl") for table in tables]):
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.slow
def test_associations_are_the_same_where_a_worker_is_killed(
    ray: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgbias.models.embed._PIECE_TEXTS", 16)
    read, killed = DistributedEncoder._compute, []

    def kill(self: DistributedEncoder, *asked: Any) -> Any:
        for vectors in read(self, *asked):
            if not killed:
                killed.append(workers()[0])
                killed[0].kill()
            yield vectors

    monkeypatch.setattr(DistributedEncoder, "_compute", kill)
    one, other = twins(run, tmp_path)
    for path, executor in ((one, "ray"), (other, "local")):
        with kgbias.open(path, progress=False) as study:
            associations.associate(
                study.run(),
                "reference",
                "weat7",
                ("w-seat", "lpbs"),
                cache=False,
                executor=executor,
            )
    assert killed
    assert stored(one) == stored(other)


def test_pieces_that_fail_or_end_their_workers_do_not_lose_the_others(
    ray: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kgbias.backends.ray.cluster._MAX_WORKER_DEATHS", 0)
    work: Any = partial(eval)
    work.version, work.device, work.threads, work.open = "v", "cpu", 1, partial(str, "v")
    pieces = ["0", "1 / 0", "__import__('os')._exit(1)", "3", "4", "5"]
    found = {}
    with (
        pytest.raises(ModelError, match=r"ZeroDivisionError.*2 of 6 pieces were not done"),
        open_executor("ray") as executor,
    ):
        assert executor
        for number, value in executor.run_pieces(work, pieces):
            found[number] = value
    assert found == {0: 0, 3: 3, 4: 4, 5: 5}
    assert capfd.readouterr() == ("", "")


def test_work_that_no_worker_can_open_is_an_error_of_one_line(ray: Any) -> None:
    work: Any = partial(eval)
    work.version, work.device, work.threads, work.open = "v", "cpu", 1, partial(str, "w")
    with (
        pytest.raises(ModelError, match=r"a worker has kgbias .* w, not kgbias .* v: install"),
        open_executor("ray") as executor,
    ):
        assert executor
        list(executor.run_pieces(work, ["0"]))


def test_a_ray_of_our_own_listens_on_this_machine_only(ray: Any) -> None:
    heard = set()
    for process in started():
        with suppress(psutil.NoSuchProcess):
            connections = process.net_connections("inet")
            heard |= {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
    assert {address.removeprefix("::ffff:") for address in heard} == {"127.0.0.1"}
