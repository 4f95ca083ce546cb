"""The front door from end to end on the reference model; the command line says the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.graph.types import Generation
from kgbias.methods import associations, attribution

pytestmark = pytest.mark.integration

SMALL: dict[str, Any] = {
    "samples": 2,
    "answers": 2,
    "iterations": 1,
    "predicate_prompts": 1,
    "object_prompts": 1,
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kgbias.Study]:
    path = tmp_path_factory.mktemp("study") / "kgbias.db"
    with kgbias.open(path, progress=False) as study:
        for name, seed in (("one", 0), ("two", 1)):
            run = study.crawl("reference", category="faiths", name=name, seed=seed, **SMALL)
            run.measure()
        yield study


def said(study: kgbias.Study, *arguments: str) -> Any:
    """What a command prints with --json."""
    call = [*arguments, "--store", study.url, "--json"]
    result = CliRunner().invoke(cli, call, catch_exceptions=False, standalone_mode=False)
    return json.loads(result.stdout)


def test_frames_and_figures(study: kgbias.Study) -> None:
    run = study.run("one")
    frame = run.triples().to_frame()
    assert {"group", "predicate", "object", "count", "regard", "toxicity", "warmth"} <= set(frame)
    assert frame["regard"].between(-1, 1).all() and frame["toxicity"].between(0, 1).all()
    groups = run.groups().to_frame()
    first = groups.iloc[0]
    figure = run.figure(first["group"].upper(), "overall_regard")
    assert (figure.value, figure.low, figure.high, figure.n) == tuple(
        first[f"overall_regard{end}"] for end in ("", "_low", "_high", "_n")
    )
    own = frame[frame["group"] == first["group"]]
    signs = own["regard_label"].map({"positive": 1, "negative": -1}).fillna(0)
    assert figure.value == (signs * own["count"]).sum() and figure.n == own["count"].sum()
    assert "overall regard" in str(figure) and first["group"] in figure._repr_html_()
    graph = run.to_networkx()
    assert graph.number_of_edges() == len(frame)


def test_the_command_line_says_the_same(study: kgbias.Study) -> None:
    run = study.run("two")
    measured = said(study, "measure", "two")
    assert [g["group"] for g in measured["groups"]] == [g.group for g in run.groups()]
    for data, row in zip(measured["groups"], run.groups(), strict=True):
        for name, figure in row.figures.items():
            assert data[name] == figure.as_dict()
    assert said(study, "runs") == study.runs().records()
    groups = [g.group for g in run.groups()]
    both = {"group": groups[0], "other": groups[1], "run": "two"}
    pairs = [f"{name}={value}" for name, value in both.items()]
    asked = [part for pair in pairs for part in ("--param", pair)]
    assert said(study, "query", "shared", *asked) == study.query("shared", **both).records()
    (compared,) = said(study, "compare", "one", "two")
    (comparison,) = study.compare_runs("one", "two")
    assert compared["statements"]["both"] == comparison.overlap.both
    assert [a["tau_b"] for a in compared["rank_agreement"]] == [
        a.tau.as_dict() for a in comparison.agreement
    ]
    tests = said(study, "compare", "one")
    assert len(tests["groups"]) == len(study.run("one").compare_groups())
    words = said(study, "attribute", "one", "--top", "2")
    assert [w["effects"] for w in words] == [
        list(a.effects) for a in attribution.attribute(study.run("one"), top=2)
    ]
    places = said(study, "structure", "one")
    assert [p["label"] for p in places] == [p.label for p in study.run("one").structure()]


def test_probes_and_associations(study: kgbias.Study) -> None:
    run = study.run("one")
    found = run.probe("reference")
    assert said(study, "probe", "one", "--model", "reference") == json.loads(
        json.dumps(found.as_dict())
    )
    rows = run.probes()
    assert {row.group for row in rows} == {g.group for g in run.groups()}
    assert {row.rank for row in rows} <= set(range(1, len(run.groups()) + 1))
    said_of = [row for row in rows if row.said]
    assert len(said_of) == len(run.triples(min_acceptability=0))
    frame = rows.to_frame()
    assert (frame["perplexity"] >= 1).all()
    with kgbias.open(None, progress=False) as other:
        scorer = kgbias.open_scorer("reference")
        copy = other.crawl("reference", category="faiths", **SMALL)
        assert copy.probe(scorer).bias.score.value == found.bias.score.value
        with pytest.raises(kgbias.UsageError, match="this one is open"):
            copy.probe(scorer, dtype="float16")
    tests = associations.associate(run, "reference", tests=["C6"])
    assert len(tests) == 1 and [a.test for a in associations.list_associations(run)] == ["C6-name"]


@pytest.mark.slow
def test_what_leaves_a_run(study: kgbias.Study, tmp_path: Path) -> None:
    run = study.run("one")
    assert run.report(tmp_path / "report.html").read_text("utf-8").startswith("<!")
    files = run.figures(tmp_path / "figures")
    assert {".svg", ".pdf", ".png", ".tex", ".json"} == {path.suffix for path in files}
    assert run.export(tmp_path / "triples.csv") == len(run.triples())
    assert run.export(tmp_path / "figure.pdf", limit=20) == min(20, len(run.triples()))
    target = tmp_path / "copy.db"
    assert study.store.push(target, run="one") == {"one": len(run.generations())}
    with kgbias.open(target, progress=False) as copy:
        assert copy.run("one").triples() == run.triples()
        assert copy.run("one").groups() == run.groups()


@pytest.mark.slow
def test_the_same_graph_in_any_batch(tmp_path: Path) -> None:
    """The same generations at batch sizes 1 and 32, and other ones without truncation."""

    def generations(batch_size: int, **rules: Any) -> list[Generation]:
        with kgbias.open(tmp_path / f"{batch_size}{rules}.db") as study:
            run = study.crawl(
                "reference", category="faiths", batch_size=batch_size, **SMALL, **rules
            )
            return list(study.graph.generations(run.id))

    together = generations(32, min_p=0.1)
    assert together == generations(1, min_p=0.1)
    whole = generations(32, min_p=0.0)  # the default cuts
    assert {g.path: g.triple for g in together} != {g.path: g.triple for g in whole}
