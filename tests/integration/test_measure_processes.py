"""Work in several processes: the same scores, and nothing lost where a process ends."""

import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.measure.scorers import load_scorer
from kgbias.measure.scorers._axes import AxisScorer
from kgbias.measure.scorers._joint_scoring import ScoringTask
from kgbias.methods import associations
from kgbias.parallel import local
from kgbias.parallel.local import LocalExecutor
from tests.conftest import require_modules, sweep_params
from tests.spread import Still, everything

pytestmark = pytest.mark.integration
require_modules("torch")

MEASURES = ("regard", "toxicity", "identity_attack", "acceptability", "warmth", "competence")
SAID = list(
    product(
        ("Women", "Bakers", "Dutch people"), ("love", "are afraid of"), ("rain", "their own dogs")
    )
)
TEXTS = [" ".join(said) + "." for said in SAID]


@pytest.mark.parametrize("killed", sweep_params(2, [False, True]))
def test_processes_say_the_same(killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    work = ScoringTask([load_scorer(measure, device="cpu") for measure in MEASURES], threads=1)
    pieces = [TEXTS[start : start + 3] for start in range(0, len(TEXTS), 3)]
    alone = dict(LocalExecutor(1).run_pieces(work, pieces))
    with local.using_threads(1):  # sums depend on it, and other tests leave it as they like
        assert alone == {n: work(piece) for n, piece in enumerate(pieces)}
    told: list[str] = []
    with closing(LocalExecutor(2 if killed else 3, told.append)) as executor:
        if killed:
            asked = local._HelperProcess._ask

            def killed_in_hand(self: local._HelperProcess, message: tuple[bool, object]) -> Any:
                if message[1] in pieces:
                    os.kill(self._process.pid, signal.SIGKILL)
                return asked(self, message)

            monkeypatch.setattr(local._HelperProcess, "_ask", killed_in_hand)
            # This process waits until the other one has ended, so that a piece is in its hands.
            judge = ScoringTask.__call__

            def later(self: ScoringTask, texts: Sequence[str]) -> Any:
                executor._helpers[0]._process.wait()
                return judge(self, texts)

            monkeypatch.setattr(ScoringTask, "__call__", later)
        assert dict(executor.run_pieces(work, pieces)) == alone
        said = "another process was killed by signal 9: its part is done by this one"
        assert told == [said] * killed
        if not killed:  # those that are there do other work too
            there = [helper._process.pid for helper in executor._helpers]
            other = ScoringTask(work.scorers[:1], threads=1)
            assert dict(executor.run_pieces(other, pieces)) == {n: j[:1] for n, j in alone.items()}
            assert [helper._process.pid for helper in executor._helpers] == there


def test_probes_and_associations_in_processes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgbias.probe.run_probes._MAX_CHUNK_PROBES", 4)
    monkeypatch.setattr("kgbias.probe.run_probes.ProbeStopwatch", Still)
    monkeypatch.setattr("kgbias.models.embed._PIECE_TEXTS", 16)
    table = tmp_path / "said.csv"
    rows = [f"gender,{group},{said},{thing}" for group, said, thing in SAID]
    table.write_text("\n".join(["category,group,predicate,object", *rows]))
    with kgbias.open(tmp_path / "1.db") as study:
        study.import_file(table, name="r")
    shutil.copy(tmp_path / "1.db", tmp_path / "2.db")
    found = []
    for processes in (1, 2):
        with kgbias.open(tmp_path / f"{processes}.db", progress=False) as study:
            run = study.run()
            run.probe("reference", processes=processes)
            associations.associate(
                run, "reference", "weat7", "w-seat", cache=False, processes=processes
            )
            found.append(everything(run.stored.store))
    assert found[0] == found[1]


def test_an_axis_is_the_same_with_any_number_of_threads() -> None:
    """Processes and workers open it themselves, each with its own number."""
    said = set()
    for threads in (1, 2):
        with local.using_threads(threads):
            axis, middle = AxisScorer("competence", device="cpu").axis_and_offset
        said.add((axis.tobytes(), middle))
    assert len(said) == 1
