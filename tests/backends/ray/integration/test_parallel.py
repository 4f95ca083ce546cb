"""Work that is spread: what a worker does with a piece, and the same graph whoever does it. Real
processes and a real Ray are in test_ray.py and test_measure_processes.py."""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.backends.ray import cluster as ray_cluster
from kgbias.backends.ray.cluster import RayWorker, join_ray, pack_work
from kgbias.cli import cli
from kgbias.errors import DataError, ModelError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.io.progress import SilentProgress
from kgbias.measure.configure import configure_measurement
from kgbias.methods import benchmarks
from kgbias.methods.associations.distributed_model import DistributedModel, LanguageModel
from kgbias.methods.associations.family import associate
from kgbias.methods.associations.sets import AssociationTest, WordSet
from kgbias.models.embed import Span
from kgbias.models.score.distributed import DistributedScorer
from kgbias.parallel import check_executor
from kgbias.probe.items import score_items
from kgbias.probe.names import NameSentences, probe_apx
from kgbias.probe.run_probes import probe_run
from kgbias.probe.set_probes import probe_sets
from kgbias.probe.sets import Descriptor
from tests import tiny
from tests.conftest import require_modules
from tests.methods.benchmarks.test_board import Model, files, models  # noqa: F401
from tests.spread import Still, everything
from tests.unit.test_probe import BELIEVED, RUN, Beliefs, probed_store  # noqa: F401

pytestmark = pytest.mark.integration

require_modules("torch", "ray")


class Halving:
    """Halves even numbers; an odd one is the caller's mistake, and 0 needs a second attempt."""

    version, device, threads = "halving 1", "cpu", 1
    opens = "halving 1"
    attempts = 0

    def open(self) -> str:
        return self.opens

    def __call__(self, piece: int) -> int:
        Halving.attempts += 1
        if piece == 0 and Halving.attempts < 2:
            raise OSError("out of memory\nat line 1")
        if piece < 0:
            raise OSError("out of memory\nat line 1")
        if piece % 2:
            raise DataError(f"{piece} is odd")
        return piece // 2


def outcomes(work: Any, pieces: Sequence[int]) -> list[Any]:
    worker, sent = RayWorker(), pack_work(work)
    return [pickle.loads(worker.do(n, pickle.dumps(piece), sent)) for n, piece in enumerate(pieces)]


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "_RETRY_SECONDS", 0)
    monkeypatch.setattr(Halving, "attempts", 0)


def test_a_failed_piece_does_not_lose_the_others(no_pause: None) -> None:
    (_, zero, none), (_, four, _), (_, _, odd), (_, _, memory) = outcomes(Halving(), [0, 8, 3, -2])
    assert (zero, none, four) == (0, None, 4)
    assert (
        Halving.attempts == 2 + 1 + 1 + ray_cluster.MAX_ATTEMPTS
    )  # what would say the same is asked once
    assert (
        isinstance(odd.as_error(), DataError)
        and str(odd.as_error()) == "3 is odd"
        and not odd.is_final
    )
    assert str(memory.as_error()) == "OSError: out of memory"


def test_a_worker_that_would_say_something_else_says_nothing(
    no_pause: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Halving, "opens", "halving 2")
    ((_, result, failure),) = outcomes(Halving(), [8])
    assert result is None and failure.is_final
    assert "halving 2" in failure.message and "halving 1: install the same" in failure.message
    monkeypatch.setattr(Halving, "open", lambda self: 1 / 0)
    ((_, _, failure),) = outcomes(Halving(), [8])
    assert failure.is_final and isinstance(failure.as_error(), ModelError)


def test_a_worker_without_our_code_says_what_to_install() -> None:
    failure = RayWorker().failure(pack_work(Halving()).replace(b"Halving", b"Doubles"))
    assert failure and failure.is_final and "install the same kgbias" in failure.message


class Backwards:
    """An executor that does the last piece first, each with work that was pickled."""

    def run_pieces(self, work: Any, pieces: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        for number in reversed(range(len(pieces))):
            there = pickle.loads(pickle.dumps(work))
            assert there.open() == work.version
            yield number, pickle.loads(pickle.dumps(there(pieces[number])))

    def dismiss(self) -> None:
        """It has no workers."""


class Known(Beliefs):
    parameters = None


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> DistributedScorer:
    monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda *_, **__: Known(BELIEVED))
    return DistributedScorer(Backwards(), "reference", {}, SilentProgress())  # type: ignore[arg-type]


@pytest.fixture
def twin(probed_store: SQLiteStore, tmp_path: Path) -> Iterator[SQLiteStore]:  # noqa: F811
    """Another store with the same run."""
    path = str(tmp_path / "twin.db")
    probed_store._db.execute("VACUUM INTO ?", (path,))
    store = SQLiteStore(path)
    yield store
    store.close()


def test_the_graph_is_the_same_in_any_order(
    probed_store: SQLiteStore,  # noqa: F811
    twin: SQLiteStore,
    spread: DistributedScorer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kgbias.probe.run_probes._MAX_CHUNK_PROBES", 2)  # a statement
    monkeypatch.setattr("kgbias.probe.run_probes.ProbeStopwatch", Still)
    here: Any = Known(BELIEVED)
    there = probe_run(StoredRun(probed_store, RUN), spread)
    assert repr(probe_run(StoredRun(twin, RUN), here)) == repr(there)
    assert everything(probed_store) == everything(twin)


SETS = {
    "gender": (("Women", "Men"), ("love food", "hate rain", "are kind")),
    "birds": (("Owls", "Hens"), ("are wise",)),
}


@pytest.mark.parametrize("name", ["probes.jsonl", "probes.parquet", None])
def test_sets_are_the_same_in_any_order(
    store: SQLiteStore, tmp_path: Path, spread: DistributedScorer, name: str | None
) -> None:
    here: Any = Known(BELIEVED)
    kept = {scorer: tmp_path / str(n) for n, scorer in enumerate((here, spread))}
    found = {}
    for scorer, folder in kept.items():
        folder.mkdir()
        for _ in range(2):  # the second time it reads what was kept
            found[scorer] = probe_sets(
                scorer, SETS, chunk=2, output=name and folder / name, store=store
            )
    assert repr(found[here]) == repr(found[spread])
    assert here.asked == 8  # once; without an output, what is kept in the answer log is for both
    files = [sorted(p for p in folder.rglob("*") if p.is_file()) for folder in kept.values()]  # noqa: F811
    for one, other in zip(*files, strict=True):
        assert one.name == other.name and one.read_bytes() == other.read_bytes()


WORDS = [Descriptor(w, "", "", (f"am {w}", f"was {w}", f"is {w}")) for w in ("kind", "shy", "old")]
CALLED = [("n " * n + "n", f"g{n % 2}") for n in range(10)]  # no two are as likely


@pytest.mark.parametrize("name", ["apx.jsonl", "apx.parquet"])
def test_apx_is_the_same_in_any_order(
    store: SQLiteStore,
    tmp_path: Path,
    spread: DistributedScorer,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chunks of two names; what is summed up of a group is summed in the order of its names, also
    where a chunk in the middle was there before."""
    monkeypatch.setattr(NameSentences, "chunk", 7)
    here: Any = Known(BELIEVED)
    found = {}
    for scorer, kept in ((here, None), (spread, None), (spread, store)):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        if kept is not None:  # as a command that was stopped leaves it
            some = score_items(NameSentences(CALLED, WORDS), here)[4:9]
            store.save_item_scores(here.info, here.settings, some)
        table = probe_apx(scorer, CALLED, WORDS, perplexities=folder / name, store=kept)
        rows = [p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()]
        found[len(found)] = (table.table.values.tobytes(), rows)
    assert found[0] == found[1] == found[2]


TEST = AssociationTest(
    "t",
    WordSet("men", ("men", "rain", "old"), "name"),
    WordSet("women", ("women", "food", "new"), "name"),
    WordSet("good", ("love", "songs"), "word"),
    WordSet("bad", ("hate", "smoke"), "word"),
    frames=("{t} are {a}.", "{t} love {a}."),
)


def test_associations_are_the_same_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgbias.models.embed._PIECE_TEXTS", 2)
    monkeypatch.setattr("kgbias.models.predict._PIECE_SENTENCES", 3)
    model = f"hf:{tiny.save_model(tmp_path_factory.mktemp('gpt2'))}"
    methods = ("weat", "s-seat", "w-seat", "ceat", "lpbs")

    @contextmanager
    def opened(spec: str, *_: object) -> Iterator[Any]:
        yield Backwards() if spec == "ray" else None

    monkeypatch.setattr("kgbias.methods.associations.family.open_executor", opened)
    found = {}
    given: Any = {"models": [model], "cache": False, "draws": 20}
    for executor in ("local", "ray"):
        store = SQLiteStore(str(tmp_path / f"{executor}.db"))
        rows = associate([TEST], methods, store=store, executor=executor, **given).records()
        found[executor] = rows, everything(store)
        store.close()
    assert found["local"] == found["ray"]
    assert len(found["ray"][0]) == len(methods)
    spread = DistributedModel(Backwards(), model, cache=False)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="is longer than the"):
        spread.encoder.embed([Span("men " * 900, 0, 3), Span("rain", 0, 4)], "word-average")
    here = LanguageModel(model, cache=False)
    for asked in ("layers", "sentence_encodings", "sentence_encoding"):
        assert getattr(spread.encoder, asked) == getattr(here.encoder, asked)
    assert spread.predictor().is_token("men") == here.predictor().is_token("men")


def test_what_workers_cannot_open_is_refused(spread: DistributedScorer) -> None:
    with pytest.raises(UsageError, match="is on a server"):
        DistributedScorer(Backwards(), "openai:gpt", {}, SilentProgress())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="executor has no effect here, only with models"):
        associate(["weat6"], vectors=Path("none.vec"), executor="ray")


@pytest.mark.parametrize("spec", ["ray://", "dask", "ray:10001", "local://"])
def test_no_such_executor(spec: str) -> None:
    with pytest.raises(UsageError, match=r"choose from local, ray .* and ray://ADDRESS"):
        check_executor(spec)


def test_no_cluster_there_is_one_line() -> None:
    with pytest.raises(ModelError, match=r"no Ray cluster at 127\.0\.0\.1:1 \(.*give auto"):
        join_ray("127.0.0.1:1").__enter__()
    with pytest.raises(ModelError, match="no Ray cluster at nowhere"):
        join_ray("nowhere").__enter__()


def test_processes_are_of_this_machine() -> None:
    with pytest.raises(UsageError, match="`processes` applies to this machine"):
        configure_measurement(processes=2, executor="ray")
    assert configure_measurement(executor="ray://auto")[0].executor == "ray://auto"


def refusal(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)
    assert isinstance(result.exception, UsageError), result.exception
    return str(result.exception)


def test_a_command_says_where_an_executor_would_not_help(
    probed_store: SQLiteStore,  # noqa: F811
    tmp_path: Path,
) -> None:
    there = ["--store", tmp_path / "kgbias.db", "--set", "executor=ray"]
    none = [
        f"--scorer={m}=none" for m in ("regard", "toxicity", "identity_attack", "acceptability")
    ]
    assert "nothing to do" in refusal("measure", RUN.name, *none, "--no-axes", "--topics", *there)
    for command in (["measure"], ["probe", "--model", "reference"]):
        said = refusal(command[0], RUN.name, *command[1:], "--set", "processes=2", *there)
        assert "applies to this machine" in said
    assert "is on a server" in refusal("probe", RUN.name, "--model", "openai:gpt", *there)
    assert "is on a server" in refusal(
        "probe", "apx", "--model", "openai:gpt", "--set", "executor=ray"
    )
    takers = "probe run, probe sets, probe apx and probe pairs do"
    assert takers in refusal("probe", "surprisal", "x", "--set", "executor=ray")


def test_workers_score_the_same(
    models: dict[str, Model],  # noqa: F811
    files: dict[str, str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Items in small pieces, the last one first, all that workers need pickled."""
    monkeypatch.setattr("kgbias.methods.benchmarks.base.ItemBenchmark.chunk", 4)

    @contextmanager
    def backwards(spec: str, *_: Any) -> Iterator[Any]:
        yield None if spec == "local" else Backwards()

    monkeypatch.setattr("kgbias.parallel.open_executor", backwards)
    asked: Any = {name.lstrip("-"): path for name, path in files.items()}
    found = []
    for executor in ("local", "ray"):
        with kgbias.open(None) as study:
            board = benchmarks.run_benchmarks(
                study, ["reference", "reference-masked"], executor=executor, **asked
            )
        found.append(
            [
                (
                    o.title,
                    o.model,
                    o.items,
                    o.tokens,
                    o.remarks,
                    m.domain,
                    m.figure,
                    repr(m.estimate),
                )
                for o in board.outcomes
                for m in o.figures
            ]
        )
    assert found[0] == found[1] and len({title for title, *_ in found[0]}) == 5
