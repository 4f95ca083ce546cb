"""Scoring in several processes: the same scores, and nothing lost where a process ends."""

import os
import signal
from itertools import product

import pytest

from kgbias.measure.scorers import load_scorer
from kgbias.measure.scorers._together import judge
from kgbias.measure.workers import judged

pytestmark = pytest.mark.integration
pytest.importorskip("torch")

MEASURES = ("regard", "toxicity", "identity_attack", "acceptability", "warmth", "competence")
TEXTS = [
    f"{group} {said} {thing}."
    for group, said, thing in product(
        ("Women", "Bakers", "Dutch people"), ("love", "are afraid of"), ("rain", "their own dogs")
    )
]


@pytest.mark.parametrize("killed", [False, True])
def test_processes_say_the_same(killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scorers = [load_scorer(measure, device="cpu") for measure in MEASURES]
    pieces = [TEXTS[start : start + 3] for start in range(0, len(TEXTS), 3)]
    alone = dict(judged(scorers, pieces, 1))
    assert alone == {n: judge(scorers, piece) for n, piece in enumerate(pieces)}
    if killed:
        from kgbias.measure import workers

        put = workers._put

        def put_and_die(value: object, pipe: object) -> None:
            put(value, pipe)  # type: ignore[arg-type]
            if value in pieces:
                for helper in helpers:
                    os.kill(helper._process.pid, signal.SIGKILL)

        helpers: list[workers._Helper] = []
        enter = workers._Helper.__enter__
        monkeypatch.setattr(
            workers._Helper, "__enter__", lambda self: helpers.append(self) or enter(self)
        )
        monkeypatch.setattr(workers, "_put", put_and_die)
        # Until the process is ready, this one waits, so that a piece is in hand when it ends.
        monkeypatch.setattr(workers, "judge", lambda s, t: helpers[0].join() or judge(s, t))
        assert dict(judged(scorers, pieces, 2)) == alone
        return
    assert dict(judged(scorers, pieces, 3)) == alone
