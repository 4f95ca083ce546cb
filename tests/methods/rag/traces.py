"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import rag
from kgbias.methods.rag.metrics import AnswerRecord
from tests.traces import TraceWorld


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "rag.check_text": lambda: rag.check_text(world.run(), "Velmari people wear amber scarves."),
        "rag.check_run": lambda: rag.check_run(world.run()),
        "rag.judge_records": lambda: rag.judge_records(
            world.study, [AnswerRecord("Who?", "Ann did.", "Ann did it.")]
        ),
        "rag.judge_pairs": lambda: rag.judge_pairs(world.study),
        "rag.check_judge": lambda: rag.check_judge(world.study),
    }
