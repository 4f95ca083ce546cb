"""Several models on benchmarks: ranks, paired tests, agreement, files, and the command."""

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.compare.families import SIGNIFICANCE_LEVEL, excludes_zero
from kgbias.compare.paired_tests import (
    ClusterSample,
    min_p_value,
    permutation_p_value,
    swap_p_value,
)
from kgbias.errors import KgbiasError, StoreError, UsageError
from kgbias.graph.store import StoredRun
from kgbias.graph.types import ProbedEdge, ProbeRun
from kgbias.methods import apx, benchmarks
from kgbias.methods.benchmarks.base import OVERALL, DomainFigure, FigureInfo
from kgbias.methods.benchmarks.bbq import BBQ
from kgbias.methods.benchmarks.board import (
    BenchmarkOutcome,
    Board,
    CrawledModel,
    build_board,
    short_names,
)
from kgbias.methods.benchmarks.command import _print_board
from kgbias.methods.benchmarks.crows import CrowsPairs
from kgbias.methods.benchmarks.page import benchmark_tables, plain_records, render_benchmark
from kgbias.methods.benchmarks.records import every_eval_record, hub_results, write_tables
from kgbias.methods.benchmarks.sofa import Sofa
from kgbias.methods.benchmarks.stereoset import StereoSet
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import ProbeGrid, Scores
from kgbias.models.spec import resolve
from kgbias.stats.estimate import Estimate
from kgbias.stats.units import UnitSums, ratio_of_sums
from tests.conftest import require_modules
from tests.methods.benchmarks.test_benchmarks import (
    ROWS,
    Liking,
    bbq_file,
    stereo_file,
    winogender_file,
)
from tests.report_data import shown_rows
from tests.texts import Texts
from tests.unit.test_contrasts import subject
from tests.unit.test_publish import EVALUATIONS

require_modules("scipy")

# What https://huggingface.co/docs/hub/eval-results asks of a file in .eval_results.
EVAL_RESULTS: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "additionalProperties": False,
        "required": ["dataset", "value"],
        "properties": {
            "dataset": {
                "additionalProperties": False,
                "required": ["id", "task_id"],
                "properties": {
                    "id": {"type": "string", "pattern": "^[^/]+/[^/]+$"},
                    "task_id": {"type": "string"},
                    "revision": {"type": "string"},
                },
            },
            "value": {"type": "number"},
            "date": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
            "notes": {"type": "string"},
            "source": {"type": "object"},
        },
    },
}


def means(values: list[float]) -> UnitSums:
    names = tuple(f"u{n}" for n in range(len(values)))
    return UnitSums(names, np.column_stack([np.ones(len(values)), values]), ratio_of_sums)


def outcome(model: str, values: list[float], kind: type = CrowsPairs) -> BenchmarkOutcome:
    figure = kind.figures[0].name  # type: ignore[attr-defined]
    units = means(values)
    return BenchmarkOutcome(
        ModelInfo(model, "1"),
        (("dtype", "float32"),),
        1000,
        kind.name,
        kind.title,
        kind.source,  # type: ignore[attr-defined]
        (DomainFigure(OVERALL, figure, units, units.estimate()),),
        kind.figures,
        kind.unit,
        kind.hub,  # type: ignore[attr-defined]
        len(values),
        100,
        0.5,
        {"x": (len(values), 2 * len(values))},
    )


# Tests of units


def test_exchanging_models_is_the_paired_test_of_a_mean() -> None:
    rng = np.random.default_rng(0)
    for n in (6, 40):
        a, b = rng.normal(0.4, 1, n), rng.normal(0, 1, n)
        sides = [ClusterSample(range(n), v, np.ones(n)) for v in (a, b)]
        other = permutation_p_value(*sides)
        assert swap_p_value(means(list(a)), means(list(b))) == pytest.approx(other, abs=0.012)


def test_exchanging_models_by_hand() -> None:
    """Three units, all differing in one way: 2 of the 8 exchanges reach the difference. A ratio of
    sums is exchanged as a whole."""
    a, b = means([3.0, 3, 3, 5]), means([1.0, 1, 1, 5])
    assert swap_p_value(a, b) == 2 / 8
    assert swap_p_value(a, a) == 1
    first = UnitSums(("p", "q"), np.array([[2.0, 2], [8, 0]]), ratio_of_sums)
    second = UnitSums(("p", "q"), np.array([[5.0, 0], [5, 0]]), ratio_of_sums)
    assert swap_p_value(first, second) == 1  # 2/10 against 0; with either exchanged 2/7 against 0
    nothing = UnitSums(("p", "q"), np.zeros((2, 2)), ratio_of_sums)
    assert math.isnan(swap_p_value(nothing, second))


# The board


def test_models_stand_by_their_distance_from_no_bias(texts: Texts) -> None:
    """80, 45 and 100 percent: 45 is nearest to 50."""
    shares = {"a": 80, "b": 45, "c": 100}
    rows = [outcome(m, [100.0] * s + [0.0] * (100 - s)) for m, s in shares.items()]
    found = build_board(rows)
    (s,) = found.standings
    assert s.models == ("b", "a", "c") and s.departures == pytest.approx((5, 30, 50))
    assert s.probabilities[0][0] > 0.99 and s.probabilities[2][2] > 0.99
    assert all(sum(shares) == pytest.approx(1) for shares in s.probabilities)
    assert found.models == ("a", "b", "c") and len(found.tests) == 3
    assert (
        build_board([outcome("x", [50.0] * 9), outcome("y", [50.0] * 9)]).tests[0].p_adjusted == 1
    )
    by_pair = {(t.first, t.second): t for t in found.tests}
    t = by_pair["a", "b"]
    assert t.difference.value == pytest.approx(35) and t.p_adjusted <= 0.001
    assert t.paired == "pairs" and t.family == 3
    texts.check_lines(t.verdict, "metric score")


def test_benchmarks_agree_or_not(texts: Texts) -> None:
    orders = {CrowsPairs: {"a": 50, "b": 60, "c": 70}, Sofa: {"a": 30, "b": 20, "c": 10}}
    rows = [
        outcome(m, [float(v)] * 5, kind)
        for kind, values in orders.items()
        for m, v in values.items()
    ]
    found = build_board(rows)
    (agreement,) = found.agreements
    assert agreement.tau == -1 and agreement.model_count == 3
    assert agreement.min_p_value == pytest.approx(1 / 3)
    page = render_benchmark(found)
    assert all(math.isnan(t.equivalent_p) for t in found.tests)  # nothing varies: nothing is shown
    texts.check_lines(page, "benchmarks agree")
    assert "<script" not in page and "Model" in page


def test_a_model_that_names_no_group_has_no_place() -> None:
    """A figure that is not defined for one model is ranked last, and not tested."""
    rows = []
    for model, named in (("a", 10.0), ("b", 0.0)):
        columns = np.tile([0, 0, 0, 0, 10.0, 5, named, named / 2], (4, 1))
        figures = {
            "bias, disambiguated": lambda s: 100 * (2 * s[..., 7] / s[..., 6] - 1),
        }
        units = [UnitSums(tuple("wxyz"), columns, f) for f in figures.values()]
        found = tuple(
            DomainFigure(OVERALL, name, u, u.estimate())
            for name, u in zip(figures, units, strict=True)
        )
        base = outcome(model, [1.0], BBQ)
        rows.append(
            BenchmarkOutcome(
                base.model,
                base.settings,
                None,
                "bbq",
                "BBQ",
                base.source,
                found,
                BBQ.figures,
                BBQ.unit,
                BBQ.hub,
                4,
                10,
                1.0,
                {"x": (4, 12)},
            )
        )
    result = build_board(rows)
    assert result.standings[0].models == ("a", "b")
    assert math.isnan(result.tests[0].p) and math.isnan(result.tests[0].p_adjusted)
    assert result.as_dict()["standings"][0]["models"][1]["value"] is None
    assert ">nan<" not in render_benchmark(result)


def test_a_model_that_guesses_is_said_to(tmp_path: Path, texts: Texts) -> None:
    """Of LMS 100, 50 and 30: the figures beside the last two may be those of guesses."""
    info = StereoSet.figures
    rows = []
    for model, lms in (("can", [100.0] * 9), ("guesses", [0.0, 100.0] * 5), ("worse", [30.0] * 9)):
        units = {"LMS": means(lms), "SS": means([40.0, 60.0] * 5)}
        found = tuple(DomainFigure(OVERALL, name, u, u.estimate()) for name, u in units.items())
        rows.append(replace(outcome(model, [1.0], CrowsPairs), figures=found, figure_info=info))
    result = build_board(rows)
    (s,) = result.standings
    assert set(s.unable) == {"guesses", "worse"}
    assert set(result.as_dict()["standings"][0]["no_better_than_chance"]) == set(s.unable)
    texts.check_lines(render_benchmark(result), "from models")
    assert build_board(rows[:1]).standings == ()
    assert FigureInfo("x", "x", "x").chance is None  # then nothing is said
    assert "that guess" not in render_benchmark(
        build_board([rows[0], replace(rows[0], model=ModelInfo("b"))])
    )


def test_models_have_short_names_where_these_tell_them_apart() -> None:
    specs = (
        "smollm2",
        "hf:google/flan-t5-base",
        "hf:/a/b:c.gguf",
        "hf:x/gpt2",
        "hf:y/gpt2",
        "hf:z/smollm2",
    )
    found = short_names(specs)
    assert list(found.values()) == ["smollm2", "flan-t5-base", "c", *specs[3:]]
    rows = [outcome(m, [100.0] * s + [0.0] * (9 - s)) for m, s in (("hf:a/x", 9), ("hf:a/y", 4))]
    result = build_board(rows)
    page = render_benchmark(result)
    assert result.with_short_names().models == ("x", "y") and result.models == ("hf:a/x", "hf:a/y")
    assert "x is <code>hf:a/x</code>" in page and page.count("hf:a/x") == 1


def test_masked_and_causal_scores_are_said_to_differ(texts: Texts) -> None:
    rows = [
        replace(outcome(name, [0.1, 0.2], Sofa), settings=(("kind", kind),))
        for name, kind in (("a", "causal"), ("b", "masked"))
    ]
    (remark,) = build_board(rows).remarks
    texts.check_lines(remark, "b rests")
    texts.check_lines(render_benchmark(build_board(rows)), "same scale")
    assert (
        build_board(rows[:1]).remarks
        == build_board([rows[1], replace(rows[1], model=ModelInfo("c"))]).remarks
    )


def test_figures_of_fewer_models_are_not_in_the_matrix() -> None:
    """Two models agree or disagree wholly: beside three their crawls are left out."""
    rows = [
        outcome(m, [v] * 5, kind)
        for kind in (CrowsPairs, Sofa)
        for m, v in (("a", 10.0), ("b", 20.0), ("c", 30.0))
    ]
    crawled = [
        CrawledModel(name, "r", subject(name, shift, 30))
        for name, shift in (("a", -0.5), ("b", 0.5))
    ]
    found = build_board(rows, crawled)
    assert {a.model_count for a in found.agreements} >= {3}
    (table,) = [t for t in benchmark_tables(found) if t.label == "agreement"]
    assert [row[0] for row in table.rows] == ["1 CrowS-Pairs: metric score", "2 SoFa: SoFa score"]


# Files


@pytest.fixture(scope="module")
def small() -> Board:
    rows = [outcome(m, [100.0] * s + [0.0] * (9 - s)) for m, s in (("a", 9), ("hf:x/<b>", 4))]
    return build_board(
        [*rows, outcome("a", [0.1, 0.3], Sofa), outcome("hf:x/<b>", [0.1, 0.2], Sofa)]
    )


def test_records_for_others(small: Board) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    now = datetime(2026, 11, 22, tzinfo=UTC)
    own = [o for o in small.outcomes if o.model.name == "a"]
    found = every_eval_record(own, now)
    jsonschema.validate(found, EVALUATIONS)
    (result,) = found["evaluation_results"]  # the SoFa score has no bounds
    assert result["score_details"]["score"] == 100
    assert result["metric_config"]["additional_details"]["value_without_bias"] == "50"
    rows = hub_results(own, now)
    jsonschema.validate(rows, EVAL_RESULTS)
    assert rows[0]["dataset"]["id"] == "nyu-mll/crows_pairs" and rows[0]["date"] == "2026-11-22"


def test_tables_are_written(small: Board, tmp_path: Path) -> None:
    files = {path.name: path for path in write_tables(small, tmp_path / "t")}
    assert {
        "figures.csv",
        "differences.csv",
        "ranks.csv",
        "agreement.csv",
        "cost.csv",
        "differences.tex",
        "agreement.tex",
        "cost.tex",
        "results-1.json",
        "eval_results-2.yaml",
        "index.json",
    } <= set(files)
    with files["differences.csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["difference"]) == pytest.approx(100 * 5 / 9)
    assert r"\textless{}b\textgreater{}" in files["differences.tex"].read_text()
    page = render_benchmark(small)
    assert "hf:x/<b>" not in page and "hf:x/&lt;b&gt;" in page


def test_what_was_asked_of_which_models() -> None:
    """Tables 5 and 6 of Social Bias Probing, for any benchmark."""
    many = {f"c{n}": (2, 4) for n in range(30)}
    rows = [
        replace(outcome("a", [100.0, 0.0]), counts_by_category={"x": (2, 4), "y": (1, 2)}),
        replace(outcome("a", [100.0, 0.0], BBQ), counts_by_category=many),
        replace(
            outcome("b", [0.0, 0.0]), parameters=None, counts_by_category={"x": (2, 4), "y": (1, 2)}
        ),
    ]
    found = {table.label: shown_rows(table) for table in benchmark_tables(build_board(rows))}
    assert found["asked"] == [
        ["CrowS-Pairs", "x", "2", "4"],
        ["CrowS-Pairs", "y", "1", "2"],
        ["CrowS-Pairs", "all", "3", "6"],
        ["BBQ", "all 30 categories", "60", "120"],
    ]
    assert found["models"] == [
        ["a", "-", "1,000", "float32", "1"],
        ["b", "-", "-", "float32", "1"],
    ]
    assert len(plain_records(build_board(rows))["asked"]) == 32


# The front door


class Model(Liking):
    parameters = 7

    def grid(self, groups: Any, statements: Any, progress: Any = None) -> ProbeGrid:
        self.asked += len(groups) * len(statements)
        liked = [[self._liked.get(f"{g} {s}", 0.0) for s in statements] for g in groups]
        shape = len(groups), len(statements)
        whole = Scores(-6.0 + np.array(liked), np.full(shape, 3))
        return ProbeGrid(whole, whole, Scores(np.full(len(groups), -2.0), np.full(len(groups), 1)))


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, Model]:
    found = {
        "reference": Model({"smith": 0.5, "loud": 0.5, "Men hum": 3.0}, "reference"),
        "reference-masked": Model({"unknowable": 0.5, "mute": 0.5}, "reference-masked"),
    }
    for spec, model in found.items():
        model.info = resolve(spec).info
    monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda spec, **_: found[spec])
    return found


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "s.csv").write_text("category,statement\nsex,hum\nsex,sing\nage,doze\n")
    (tmp_path / "g.csv").write_text("category,group\nsex,Women\nsex,Men\nage,Old\nage,Young\n")
    (tmp_path / "n.csv").write_text("name,group\n" + "".join(f"n{n},g{n}\n" for n in range(9)))
    (tmp_path / "d.csv").write_text("descriptor,axis,label\nkind,,\nold,age,\n")
    return {
        "--stereoset": str(stereo_file(tmp_path / "dev.json")),
        "--bbq": str(bbq_file(tmp_path / "Trade.jsonl", ROWS)),
        "--winogender": str(winogender_file(tmp_path / "all.tsv")),
        "--statements": str(tmp_path / "s.csv"),
        "--identities": str(tmp_path / "g.csv"),
        "--names": str(tmp_path / "n.csv"),
        "--descriptors": str(tmp_path / "d.csv"),
    }


def command(*arguments: object) -> Any:
    return CliRunner().invoke(cli, ["benchmark", *map(str, arguments)], standalone_mode=False)


def test_the_command_scores_once_and_writes(
    models: dict[str, Model], files: dict[str, str], tmp_path: Path
) -> None:
    flags = [part for pair in files.items() for part in pair]
    asked = [
        "--model",
        "reference",
        "--model",
        "reference-masked",
        *flags,
        "--store",
        tmp_path / "k.db",
    ]
    found = command(*asked, "--dry-run", "--json")
    assert found.exception is None, found.exception
    costs = json.loads(found.stdout)
    assert len(costs) == 10 and all(c["kept"] == 0 for c in costs)
    assert not any(model.asked for model in models.values())
    page, tables = tmp_path / "page.html", tmp_path / "tables"
    found = command(*asked, "-o", page, "--tables", tables, "--json")
    assert found.exception is None, found.exception
    first = json.loads(found.stdout)
    assert "Standings" in page.read_text() and (tables / "index.json").exists()
    texts = {c["benchmark"]: c["texts"] for c in costs if c["model"] == "reference"}
    assert texts == {"SoFa": 6, "APX": 54, "StereoSet": 12, "BBQ": 18, "Winogender": 12}
    asked_before = {name: model.asked for name, model in models.items()}
    again = command(*asked, "--json")
    assert {name: model.asked for name, model in models.items()} == asked_before
    assert json.loads(again.stdout) == first
    costs = json.loads(command(*asked, "--dry-run", "--json").stdout)
    assert all(c["kept"] == c["items"] and c["seconds"] == 0 for c in costs)
    assert " about " not in command(*asked, "--dry-run").stdout  # nothing takes any time
    figures = {(r["model"], r["benchmark"]): r["figures"] for r in first["results"]}
    sofa = figures["reference", "sofa"]  # of "Men hum" log10 PPL* falls by 1 / ln 10
    variance = (1 / math.log(10)) ** 2 / 2
    assert sofa["sex SoFa score"]["value"] == pytest.approx(variance / 2)
    assert sofa["overall SoFa score"]["value"] == pytest.approx(variance / 4)
    assert figures["reference-masked", "sofa"]["overall SoFa score"]["value"] == 0
    assert figures["reference", "bbq"]["overall accuracy, ambiguous"]["value"] == 0
    shown = command(*asked).stdout
    assert "SoFa: SoFa score" in shown and "corrected together" in shown


def the_same_score(board: Board, compared: Any) -> None:
    """A leaderboard and SoFa's own results say the same, intervals too."""
    for m in compared.models:
        (o,) = [o for o in board.outcomes if o.model == m.result.model]
        found = {row.domain: row.estimate for row in o.figures}
        kept = {OVERALL: m.score()} | {c: m.score(c) for c in compared.categories}
        assert found == {domain: kept[domain] for domain in found} and OVERALL in found
        units = {row.domain: row.units.value for row in o.figures}
        assert units == pytest.approx({domain: e.value for domain, e in found.items()})


def test_sofa_of_a_set_has_one_route(
    models: dict[str, Model], files: dict[str, str], tmp_path: Path
) -> None:
    """Whatever comes first scores; what comes then reads what the store holds."""
    given: Any = {"identities": files["--identities"], "statements": files["--statements"]}
    sets, out = kgbias.gather_sets(**given), tmp_path / "p.jsonl"
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        study.probe_sets("reference", sets, name="s", output=out)
        assert [c.kept for c in benchmarks.estimate_cost(study, list(models), **given)] == [3, 0]
        board = benchmarks.run_benchmarks(study, list(models), **given)
        study.probe_sets("reference-masked", sets, name="s", output=tmp_path / "m.jsonl")
        again = benchmarks.run_benchmarks(study, list(models), **given)
        assert {name: model.asked for name, model in models.items()} == dict.fromkeys(models, 6)
        assert len((tmp_path / "m.jsonl").read_text().splitlines()) == 6
        the_same_score(board, study.sofa("s"))
        assert again.as_dict() == board.as_dict()
        assert all(o.tokens == 18 and o.seconds >= 0 for o in board.outcomes)


def test_sofa_of_a_run_has_one_route(models: dict[str, Model], tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "category,group,predicate,object\ngender,women,love,food\ngender,men,hate,rain\n"
        "gender,men,love,food\nage,old people,are,kind\nage,the young,are,loud\n"
        "birds,owls,fly,far\n"
    )
    models["reference"]._liked = {"Women love food": 2.0, "Old people are kind": 1.0}
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(table, name="r")
        run.probe("reference", by="sofa")
        board = benchmarks.run_benchmarks(study, list(models), run="r")
        run.probe("reference-masked")
        # 2 x 2 of either category; the owls have nobody to be compared with
        assert {name: model.asked for name, model in models.items()} == dict.fromkeys(models, 8)
        the_same_score(board, study.sofa(run=run))
        assert len(run.stored.find_all(ProbeRun)) == 2


def test_a_run_whose_probing_was_cut_off_is_probed_to_its_end(
    models: dict[str, Model], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A leaderboard takes a score that is kept for the sign that all else is, too."""
    table = tmp_path / "t.csv"
    table.write_text("category,group,predicate,object\ng,women,love,food\ng,men,hate,rain\n")

    put = StoredRun.put

    def cut_off(run: StoredRun, kind: type, *records: Any, **asked: Any) -> None:
        if kind is ProbeRun:
            raise StoreError("the disk is full")
        put(run, kind, *records, **asked)

    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(table, name="r")
        with monkeypatch.context() as patch:
            patch.setattr(StoredRun, "put", cut_off)
            with pytest.raises(StoreError):
                benchmarks.run_benchmarks(study, ["reference"], run="r")
        benchmarks.run_benchmarks(study, ["reference"], run="r")
        (probing,) = run.stored.find_all(ProbeRun)
        assert probing.record["triples"] == 2
        edges = run.stored.find_all(ProbedEdge, asking=probing)
        assert len(edges) == 4 and all(e.rank >= 1 and e.lift is not None for e in edges)


def test_apx_has_one_route(models: dict[str, Model], files: dict[str, str], tmp_path: Path) -> None:
    """Whatever comes first scores, whether it was kept in a file or in the store; the leaderboard
    and the probe say the same, and leave the same flags."""
    given: Any = {"names": files["--names"], "descriptors": files["--descriptors"]}
    models["reference"]._liked = {"My name is n0, I am kind.": 5.0, "n0 is kind.": 5.0}
    out = {name: tmp_path / f"{name}.jsonl" for name in ("before", "after", "masked")}
    with kgbias.open(None, progress=False) as study:
        apx.probe_names(study, models["reference"], **given, keep=False, perplexities=out["before"])  # type: ignore[arg-type]
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        probed = apx.probe_names(study, "reference", **given, perplexities=out["before"])
        assert [c.kept for c in benchmarks.estimate_cost(study, list(models), **given)] == [27, 0]
        board = benchmarks.run_benchmarks(study, list(models), **given)
        flagged = apx.list_flags(study).records()
        again = apx.probe_names(study, "reference", **given, perplexities=out["after"])
        apx.probe_names(study, "reference-masked", **given, perplexities=out["masked"])
        assert {name: model.asked for name, model in models.items()} == dict.fromkeys(models, 54)
        assert out["before"].read_bytes() == out["after"].read_bytes()
        assert len(out["masked"].read_text().splitlines()) == 54
        assert benchmarks.run_benchmarks(study, list(models), **given).as_dict() == board.as_dict()
        assert apx.list_flags(study).records() == flagged
    assert again.as_dict() == probed.as_dict()
    one, other = board.outcomes
    e = one.overall("flagged descriptors").estimate  # type: ignore[union-attr]
    assert (e.value, e.low) == pytest.approx((100 * probed.share.value, 100 * probed.share.low))
    assert probed.share.value == 0.5 and [f.group for f in probed.flags] == ["g0"]
    assert [(row["model"], row["descriptor"]) for row in flagged] == [("reference", "kind")]
    assert math.isnan(one.seconds) and other.seconds > 0  # how long the file took nobody knows
    assert one.tokens == other.tokens == 54 * 3


def test_what_cannot_be_scored_is_left_out_and_said(
    models: dict[str, Model], files: dict[str, str], tmp_path: Path, texts: Texts
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise UsageError("a server does not say")

    models["reference"].token_scores = refuse  # type: ignore[method-assign]
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        found = benchmarks.run_benchmarks(
            study,
            ["reference", "reference-masked"],
            bbq=files["--bbq"],
            statements=files["--statements"],
            identities=files["--identities"],
        )
        assert found.left_out == ("BBQ of reference: a server does not say",)
        texts.check_lines(render_benchmark(found), "server does")
        assert {(o.model.name, o.benchmark) for o in found.outcomes} == {
            ("reference", "sofa"),
            ("reference-masked", "sofa"),
            ("reference-masked", "bbq"),
        }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--model", "reference"), "choose a benchmark"),
        (("--model", "reference", "--model", "reference", "--apx"), "is named twice"),
        (("--model", "reference", "--identities", "sofa"), "needs `statements`|needs --statements"),
        (
            ("--model", "reference", "--set", "convention=original"),
            "needs --crows-pairs|crows_pairs",
        ),
        (("--model", "reference", "--run", "r", "--statements", "s"), "of its own"),
        (("--model", "reference", "--bbq", "missing.jsonl"), "cannot read"),
    ],
)
def test_a_call_that_cannot_be(
    models: dict[str, Model], tmp_path: Path, given: tuple[str, ...], why: str
) -> None:
    error = command(*given, "--store", tmp_path / "k.db").exception
    assert isinstance(error, KgbiasError) and "\n" not in str(error)
    with pytest.raises(KgbiasError, match=why):
        raise error


def test_crawls_are_compared(texts: Texts) -> None:
    """Statements of all groups that both asked about; a lower regard is worse."""
    crawled = [
        CrawledModel(name, f"run {name}", subject(name, shift, n))
        for n, (name, shift) in enumerate((("low", -2.0), ("high", 2.0)))
    ]
    found = build_board([], crawled)
    (s,) = found.standings
    assert s.name == "crawl: regard" and s.models == ("high", "low")
    assert s.probabilities[0][0] > 0.99 and s.departures[0] < s.departures[1]
    assert found.crawls == (("low", "run low"), ("high", "run high"))
    (t,) = found.tests
    assert t.paired == "prompts" and t.p_adjusted < 0.01
    assert found.as_dict()["contrasts"][0]["benchmark"] == "crawl"
    assert all(e.has_interval for e in s.values) and ">all groups<" not in render_benchmark(found)
    texts.check_lines(render_benchmark(found), "run run")


def boards() -> Iterator[Board]:
    """Two or three models over few units or many, that differ or do not; then with decisions that
    contradict each other."""
    rng = np.random.default_rng(3)
    for n, share in ((3, 1.0), (9, 0.9), (40, 0.5), (200, 0.8)):
        values = [rng.choice([0.0, 100.0], n) for _ in range(int(rng.integers(1, 3)))]
        values.append(np.where(rng.random(n) < share, 100.0, 0.0))
        found = build_board([outcome(m, list(v)) for m, v in zip("xyz", values, strict=False)])
        yield found
        held = Estimate(10.0, -5.0, 25.0, n)
        wrong = Estimate(-10.0, 5.0, 25.0, n)
        clear = Estimate(10.0, 5.0, 25.0, n)
        for difference, p in ((held, 0.001), (wrong, 0.001), (clear, math.nan), (clear, 0.001)):
            tests = [replace(t, difference=difference, p_adjusted=p) for t in found.tests]
            yield replace(found, tests=tuple(tests))


def test_a_benchmark_says_no_difference_that_was_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kgbias.methods.benchmarks.page._standing_svg", lambda s, number: "")
    monkeypatch.setattr("kgbias.methods.benchmarks.page._size_plots", lambda board: [])
    shown = 0
    for found in boards():
        with redirect_stdout(io.StringIO()) as out:
            _print_board(found)
        page = re.sub(r"\s+", " ", render_benchmark(found))
        told = [
            t
            for t in found.tests
            if t.p_adjusted <= SIGNIFICANCE_LEVEL and excludes_zero(t.difference)
        ]
        shown += len(told)
        printed = out.getvalue()
        assert f"{len(told)} of {len(found.tests)} differences" in printed
        for text in (printed, page):
            assert len(re.findall(r": [xyz] (?:above|below) [xyz] by", text)) == len(told)
        assert ("were shown, corrected together" in printed) and "mean metric" not in page
        assert ("differences was shown." in page) == (not told)
    assert shown > 5


def test_what_few_units_cannot_show_is_not_promised(texts: Texts) -> None:
    """With three units no permutation gives a p of 0.05: no difference would have been found."""
    low, high = [0.0] * 3, [90.0, 95.0, 100.0]
    (test,) = build_board([outcome("x", low), outcome("y", high)]).tests
    assert test.p == min_p_value(3) == 0.25 and math.isnan(test.detectable)
    texts.check(test.verdict)
    (many,) = build_board([outcome("x", low * 9), outcome("y", [50.0, 0, 40] * 9)]).tests
    assert not math.isnan(many.detectable)
    rng = np.random.default_rng(0)
    for n in (1, 4, 14, 15):  # the least p is that of the test itself
        sides = [ClusterSample(range(n), x, np.ones(n)) for x in (rng.random(n), 5 + rng.random(n))]
        assert permutation_p_value(sides[0], sides[1]) == pytest.approx(min_p_value(n), rel=0.6)
