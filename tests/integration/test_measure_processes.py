"""Scoring in several processes: the same scores, and nothing lost where a process ends."""

import os
import signal
from itertools import product

import pytest

from kgbias.measure.scorers import load_scorer
from kgbias.measure.scorers._together import Judging
from kgbias.parallel import local
from kgbias.parallel.local import Local
from tests.conftest import needs

pytestmark = pytest.mark.integration
needs("torch")

MEASURES = ("regard", "toxicity", "identity_attack", "acceptability", "warmth", "competence")
TEXTS = [
    f"{group} {said} {thing}."
    for group, said, thing in product(
        ("Women", "Bakers", "Dutch people"), ("love", "are afraid of"), ("rain", "their own dogs")
    )
]


@pytest.mark.parametrize("killed", [False, True])
def test_processes_say_the_same(killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Judging([load_scorer(measure, device="cpu") for measure in MEASURES], threads=1)
    pieces = [TEXTS[start : start + 3] for start in range(0, len(TEXTS), 3)]
    alone = dict(Local(1).each(work, pieces))
    assert alone == {n: work(piece) for n, piece in enumerate(pieces)}
    if killed:
        put = local._put

        def put_and_die(value: object, pipe: object) -> None:
            put(value, pipe)  # type: ignore[arg-type]
            if value in pieces:
                for helper in helpers:
                    os.kill(helper._process.pid, signal.SIGKILL)

        helpers: list[local._Helper] = []
        enter = local._Helper.__enter__
        monkeypatch.setattr(
            local._Helper, "__enter__", lambda self: helpers.append(self) or enter(self)
        )
        monkeypatch.setattr(local, "_put", put_and_die)
        # Until the process is ready, this one waits, so that a piece is in hand when it ends.
        judge = Judging.__call__
        monkeypatch.setattr(
            Judging, "__call__", lambda self, texts: helpers[0].join() or judge(self, texts)
        )
        assert dict(Local(2).each(work, pieces)) == alone
        return
    assert dict(Local(3).each(work, pieces)) == alone
