"""The grid of association tests: its cells, that nothing is computed twice, tables and figures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, Run
from kgbias.methods.associations.grid import (
    METHODS,
    TESTS,
    Grid,
    GridCell,
    estimate_grid_cost,
    iter_cells,
    plan_grid,
    run_grid,
)
from kgbias.methods.associations.grid import find_grid_tests as named_tests
from kgbias.methods.associations.sets import AssociationTest, SentenceFrames, WordSet
from kgbias.methods.associations.weat import seat
from kgbias.models.base import ModelInfo
from kgbias.models.embed import Encoder, open_encoder
from kgbias.models.predict import CausalPredictor
from tests import tiny
from tests.conftest import require_modules

pytestmark = pytest.mark.integration

SETS = {
    "x": WordSet("men", ("men", "rain", "old"), "name"),
    "y": WordSet("women", ("women", "food", "new"), "name"),
    "a": WordSet("good", ("love", "songs"), "word"),
    "b": WordSet("bad", ("hate", "smoke"), "word"),
}
FRAMES = ("{t} are {a}.", "{t} love {a}.")
NAMES = AssociationTest(
    "T-name", **SETS, frames=FRAMES, simplified=(SentenceFrames(("men",), ("women",), FRAMES),)
)
TERMS = replace(NAMES, name="T-term", x=WordSet("men", ("men", "old")), simplified=())
GIVEN = {"samples": 99, "draws": 20, "how": "sampled", "seed": 0, "layer": -1, "most": 5}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> str:
    require_modules("transformers")
    return f"hf:{tiny.save_model(tmp_path_factory.mktemp('gpt2'))}"


@pytest.fixture
def grid(gpt2: str, tmp_path: Path) -> Grid:
    corpus = tmp_path / "corpus.txt"
    lines = [
        f"{t} and {a} there."
        for t in ("men", "women", "rain", "food", "old", "new")
        for a in ("love", "songs", "hate", "smoke")
    ]
    corpus.write_text("\n".join(lines))
    tests = (NAMES, TERMS)
    return Grid(tests, tuple(iter_cells([gpt2], tests, corpus=True)), corpus, GIVEN)


def test_the_cells_are_the_valid_settings() -> None:
    found = list(iter_cells(["m"], [NAMES, TERMS], corpus=True))
    assert len(found) == len(set(found))
    # by hand: s-SEAT 1 + w-SEAT 3 + CEAT 4 in two contexts, LPBS and CEAT over LPBS in templates
    # and 3 windows: 2 * 8 + 2 * 4 = 24; full, reduced and simplified sets of names, two of terms
    assert len(found) == 24 * 3 + 24 * 2
    for cell in found:
        assert (cell.encoding == "") == (cell.method in ("lpbs", "ceat-lpbs"))
        assert cell.method != "s-seat" or cell.encoding == "sentence"
        assert cell.method != "w-seat" or cell.encoding.startswith("word")
        assert bool(cell.apart) == (not cell.encoding and cell.contexts == "corpus")
    assert {(c.concept, c.targets) for c in found} == {("T", "names"), ("T", "terms")}
    only = list(
        iter_cells(["m"], [NAMES, TERMS], ["ceat"], encodings=["sentence"], targets=["terms"])
    )
    assert only == [
        GridCell("m", "T-term", "ceat", "templates", "sentence", words)
        for words in ("full", "reduced")
    ]


def test_the_tests_are_those_of_the_paper_or_by_name() -> None:
    assert [test.name for test in named_tests(())] == list(TESTS)
    assert not any(test.has_few_words for test in named_tests(()))
    assert [test.name for test in named_tests(["C3", "weat1", "C6-term"])] == [
        "C3-name",
        "C3-term",
        "weat1",
        "C6-term",
    ]
    assert [test.name for test in named_tests(["C9"])] == ["C9-name"]  # the terms are too few
    with pytest.raises(UsageError, match="fewer than 8 words"):
        named_tests(["weat9"])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"methods": ["weat"]},
            "no method 'weat' in a grid .did you mean w-seat.*choose from s-seat",
        ),
        ({"encoding": "cls"}, "no encoding 'cls' in a grid; choose from word-average"),
        ({"most": 3}, "`most` and `window` have no effect without `contexts`"),
        ({"tests": ["C1"], "methods": ["lpbs"], "encoding": "sentence"}, "`encoding` .* with lpbs"),
        ({"tests": ["C3-name"], "targets": "terms"}, "the grid is empty"),
        ({"models": []}, "a grid needs a model"),
    ],
)
def test_what_a_grid_cannot_be_is_one_line(given: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        plan_grid(**{"models": ["m"]} | given)


def test_a_grid_computes_everything_once_and_resumes(
    grid: Grid, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    said: list[Any] = []
    compute, predict = Encoder._compute, CausalPredictor.predict

    def computing(self: Encoder, spans: Any, places: Any) -> Any:
        texts.extend(dict.fromkeys(span.text for span in spans))
        return compute(self, spans, places)

    def predicting(self: CausalPredictor, sentences: Any) -> Any:
        said.extend(sentences)
        return predict(self, sentences)

    monkeypatch.setattr(Encoder, "_compute", computing)
    monkeypatch.setattr(CausalPredictor, "predict", predicting)
    one_test = replace(
        grid, tests=(NAMES,), cells=tuple(c for c in grid.cells if c.test == "T-name")
    )
    before = estimate_grid_cost(one_test, store)
    assert sum(before.cells.values()) == 72 and not before.done
    first = run_grid(one_test, store, cache=False)
    # the tiny model has none of the words as one token: no reduced sets
    assert first.computed_count == len(first.rows) == 48
    assert len(first.missing) == 24 and all("reduced" in line for line in first.missing)
    assert len(texts) == len(set(texts)) and len(said) == len(set(said))
    (count,) = before.texts.values()
    assert count == len(set(texts))
    again = run_grid(one_test, store, cache=False)
    assert (again.computed_count, again.rows) == (0, first.rows)
    assert sum(estimate_grid_cost(one_test, store).done.values()) == 48
    more = run_grid(grid, store, cache=False)  # the terms are new
    assert more.computed_count == 24 and len(more.rows) == 72
    other = replace(grid, parameters=GIVEN | {"draws": 30})
    assert not estimate_grid_cost(other, store).done


def test_a_cell_is_what_the_method_finds(grid: Grid, store: SQLiteStore, gpt2: str) -> None:
    found = run_grid(grid, store, cache=False)
    rows = {GridCell(**row["cell"]): row for row in found.rows}
    row = rows[GridCell(gpt2, "T-name", "w-seat", "templates", "word-first", "full")]
    alone = seat(NAMES, open_encoder(gpt2, cache=False), "w-seat", encoding="word-first")
    assert row["effect_size"] == pytest.approx(alone.effect_size, abs=1e-6)
    p = np.sort([row["p_test"] for row in found.rows])
    assert row["p_holm"] >= row["p_bh"] >= row["p_test"] and row["family"] == len(found.rows)
    smallest = min(found.rows, key=lambda row: row["p_test"])
    assert smallest["p_holm"] == pytest.approx(min(1, p[0] * len(p)))
    node = next(n for n in store.associations() if n.record["key"] == row["key"])
    assert node.p_holm == row["p_holm"] and node.record["cell"] == row["cell"]
    counts = found.count_significant()
    assert sum(count["tests"] for count in counts) == len(found.rows)
    assert all(count["holm"] <= count["bh"] <= count["uncorrected"] for count in counts)


def test_the_command(gpt2: str, store: SQLiteStore, tmp_path: Path) -> None:
    command = [
        "--grid",
        "--model",
        gpt2,
        "--test",
        "C6-name",
        "--method",
        "w-seat",
        "--set",
        "words=full",
        "--encoding",
        "word-last",
        "--store",
        store.url,
        "--set",
        "cache=false",
    ]
    dry = CliRunner().invoke(cli, ["associate", *command, "--dry-run"], catch_exceptions=False)
    assert "w-seat 1 0" in " ".join(dry.stdout.split()) and "texts to embed" in dry.stdout
    priced = CliRunner().invoke(cli, ["associate", *command, "--dry-run", "--json"])
    assert json.loads(priced.stdout)["cost"]["cells"] == {"w-seat": 1}
    output = ["-o", str(tmp_path / "out")]
    CliRunner().invoke(cli, ["associate", *command, *output], catch_exceptions=False)
    assert "w-SEAT,1," in (tmp_path / "out" / "significant.csv").read_text("utf-8")
    for arguments, why in (
        (["--groups", "a,b"], "--groups has no effect with --grid"),
        (["-o", "t.tex"], "with --grid, -o takes one folder"),
        (["--set", "pool=sum"], "pool has no effect with --grid"),
    ):
        error = CliRunner().invoke(cli, ["associate", *command, *arguments]).exception
        assert why in str(error)
    assert set(METHODS) == {"s-seat", "w-seat", "ceat", "lpbs", "ceat-lpbs"}


def test_a_grid_is_tied_to_a_run(grid: Grid, store: SQLiteStore) -> None:
    """Cells that the store holds already are tied too, and reach groups that came after them."""
    few = replace(grid, cells=grid.cells[:2])
    run_grid(few, store, cache=False)
    run = Run("crawl", ModelInfo("m", "1"), {"seed": 0}, (Group("men", "g"), Group("women", "g")))
    store.begin_run(run)
    assert store.associations(run.id) == []
    again = run_grid(few, store, StoredRun(store, run), cache=False)
    assert again.computed_count == 0
    tied = store.associations(run.id)
    assert len(tied) == len(again.rows) > 0
    for node in tied:
        assert {(e.side, e.node_id) for e in node.edges if e.kind == "group"} == {
            ("x", run.groups[0].id),
            ("y", run.groups[1].id),
        }
