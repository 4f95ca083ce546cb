"""The tables and figures of a grid of association tests."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.methods.associations.grid import Grid, iter_cells, run_grid
from kgbias.methods.associations.paper_files import base_rows, grid_tables, write_grid
from tests.conftest import require_modules
from tests.methods.associations.integration.test_associate_grid import NAMES, TERMS, gpt2, grid  # noqa: F401

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_tables_and_figures(
    grid: Grid,  # noqa: F811
    store: SQLiteStore,
    tmp_path: Path,
    gpt2: str,  # noqa: F811
) -> None:
    require_modules("matplotlib")
    c1 = replace(
        NAMES,
        name="C1",
        a=replace(NAMES.a, adjectives=("old", "new")),
        b=replace(NAMES.b, adjectives=("rain",)),
    )
    grid = replace(
        grid,
        tests=(c1, *grid.tests),
        cells=tuple(iter_cells([gpt2], [c1, NAMES, TERMS], corpus=True)),
    )
    rows = run_grid(grid, store, cache=False).rows
    of_name = {table.name: table for table in grid_tables(rows)}
    scores = of_name["table-3-scores"]
    assert scores.columns == ("test", "method", gpt2)
    assert [row[:2] for row in scores.rows] == sorted(
        (test, method)
        for test in ("C1", "T")
        for method in ("s-SEAT", "w-SEAT", "CEAT", "LPBS", "CEAT over LPBS")
    )
    full = {(r["cell"]["test"], r["method"]): r["effect_size"] for r in base_rows(rows)}
    assert full["T-name", "w-seat"] == next(r for r in scores.rows if r[:2] == ("T", "w-SEAT"))[2]
    assert of_name["table-11-targets"].columns[2:] == (f"{gpt2} names", f"{gpt2} terms")
    assert of_name["table-12-contexts"].columns[2:] == (f"{gpt2} templates", f"{gpt2} corpus")
    assert len(of_name["table-13-encodings"].columns) == 6
    assert {row[1] for row in of_name["table-14-metrics"].rows} == {"cosine", "probability"}
    assert of_name["significant"].columns[3:] == ("p as published", "permutation p", "BH", "Holm")
    axes = {row[2] for row in of_name["settings"].rows}
    assert axes == {"targets", "contexts", "encoding", "words"}
    lpbs = {
        r["cell"]["words"]: r
        for r in rows
        if (r["cell"]["test"], r["method"], r["cell"]["contexts"]) == ("C1", "lpbs", "templates")
    }
    (nouns,) = of_name["table-6-nouns"].rows
    assert of_name["table-6-nouns"].columns[2:] == (f"{gpt2} nouns", f"{gpt2} adjectives")
    assert nouns[2:] == (lpbs["nouns"]["effect_size"], lpbs["simplified"]["effect_size"])
    assert (lpbs["nouns"]["n"]["a"], lpbs["simplified"]["n"]["b"]) == (2, 1)
    assert "nouns" not in " ".join(of_name["table-4-lpbs-words"].columns)
    seconds = of_name["table-7-runtimes"]
    assert [row[0] for row in seconds.rows] == [
        "s-SEAT",
        "w-SEAT",
        "CEAT",
        "LPBS",
        "CEAT over LPBS",
    ]
    assert all(row[1] >= 0 for row in seconds.rows) and not of_name["table-8-runtimes"].rows
    sizes = {row[0]: row[2:] for row in of_name["figure-2-sizes"].rows}
    assert sizes["T-name"][0] == 10 and math.isnan(sizes["T-name"][1])  # none is one token
    assert not of_name["models"].rows
    twice = [*rows, *({**r, "cell": {**r["cell"], "model": "again"}} for r in rows)]
    beside = {table.name: table for table in grid_tables(twice)}["models"].rows
    assert {row[0] for row in beside} == {row[0] for row in seconds.rows}
    assert all(row[2:6] == (pytest.approx(1), pytest.approx(1), 1, 0) for row in beside)
    names = {path.name for path in write_grid(rows, tmp_path / "out")}
    assert {
        "table-3-scores.tex",
        "table-5-methods.csv",
        "settings.tex",
        "significant.csv",
        "figure-1-targets-and-contexts.svg",
        "figure-3-word-sets.svg",
        "figure-4-windows.svg",
        "figure-5-methods.svg",
    } <= names
    assert r"\toprule" in (tmp_path / "out" / "table-13-encodings.tex").read_text()
