"""The report and the figures of several runs."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kgbias
from kgbias.errors import MissingExtra, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Generation,
    Group,
    Metric,
    ProbedEdge,
    ProbeRun,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    Triple,
    node_id,
)
from kgbias.measure import merge
from kgbias.measure.semantic_search import statement_texts
from kgbias.models.base import ModelInfo
from kgbias.report import write_multi_run
from kgbias.report.multi_run import build_multi_run_screen, iter_overlaps, multi_run_exhibits
from kgbias.report.multi_run_data import MultiRunData
from kgbias.report.save import save_multi_run
from tests.conftest import require_modules
from tests.integration.test_report_browser import Window
from tests.report_data import shown_rows
from tests.texts import Texts

pytestmark = pytest.mark.integration

require_modules("matplotlib", "scipy")

VALUES = {"positive": 0.8, "neutral": 0.0, "negative": -0.8}
Said = Mapping[str, tuple[int, int, int]]
HOSTILE = "</title><script>window.pwned=1</script>"


def run_of(store: SQLiteStore, name: str, said: Said, words: str = "thing") -> StoredRun:
    """A run in which each group said so many positive, neutral and negative things."""
    run = Run(
        name, ModelInfo(f"model of {name}"), {"n": name}, tuple(Group(g, "people") for g in said)
    )
    store.begin_run(run)
    generations, regard, toxicity = [], {}, {}
    for group, counts in zip(run.groups, said.values(), strict=True):
        labels = [x for x, n in zip(VALUES, counts, strict=True) for _ in range(n)]
        for n, label in enumerate(labels):
            triple = Triple(
                group.name, "are", f"{words} {label} {'i' * (n + 1)}"
            )  # no numbers: they would tell two apart
            generations.append(
                Generation(
                    run.id,
                    f"none/initialise/are/{group.id}/{n:03d}#0",
                    group.id,
                    "none",
                    "initialise",
                    0,
                    0,
                    "ok",
                    triple=triple,
                )
            )
            regard[triple.id] = Score(triple.id, VALUES[label], label)
            toxicity[triple.id] = Score(triple.id, float(label == "negative"))
    store.load_import(run.id, generations)
    store.save_scores(run.id, Metric("regard", "rule", "1"), list(regard.values()))
    store.save_scores(run.id, Metric("toxicity", "rule", "1"), list(toxicity.values()))
    return StoredRun(store, run)


@pytest.fixture
def two(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> list[StoredRun]:
    def no_model(run: StoredRun, device: str) -> None:
        raise MissingExtra("torch", extra="scorers")

    monkeypatch.setattr(merge, "read_vectors", no_model)
    return [
        run_of(store, "one", {"Ayes": (0, 5, 35), "Bees": (10, 10, 10), HOSTILE: (9, 9, 9)}),
        run_of(store, "two", {"Ayes": (35, 5, 0), "Bees": (10, 10, 10), HOSTILE: (9, 9, 8)}),
    ]


def test_the_page_says_where_two_runs_differ(two: list[StoredRun], tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    write_multi_run(two, path, explorer="x.html")
    page = path.read_text("utf-8")
    words = " ".join(re.sub(r"<[^>]*>", " ", page.partition("<main>")[0]).split())
    assert (
        "The mean regard of what one says about Ayes is 1.75 lower than that of what two" in words
    )
    assert "corrected (Holm) for 6 differences in all measures" in words
    assert "Of 6 differences tested (regard and toxicity; every two runs" in words
    for anchor in ("beside", "ranks", "overlap", "differences"):
        assert f'<section id="{anchor}">' in page
    assert "x.html#view=differences&amp;source=one%2Fnone&amp;other=two%2Fnone" in page
    assert page.count("<script>") == 1 and "<script>window" not in page
    assert "#statements?" not in page  # there are none to lead to
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_ranks_overlap_and_near_duplicates(
    store: SQLiteStore, two: list[StoredRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = MultiRunData(two)
    ranks = data.ranks("people", "regard")
    ayes = Group("Ayes", "people").id
    assert (ranks[0][ayes].value, ranks[1][ayes].value) == (3, 1)
    assert ranks[0][ayes].low == ranks[0][ayes].high == 3  # in every resample
    overlap, _ = iter_overlaps(data)
    # The statements that both said in the same words: the first 10, 10, 10 of Bees ...
    both = data.statement_ids[0] & data.statement_ids[1]
    assert overlap.same_words.value == len(both) / len(data.statement_ids[0])
    assert overlap.near_duplicates is None
    other = run_of(store, "three", {"Ayes": (1, 1, 1), "Bees": (1, 1, 1)}, words="thing, as said,")

    def ones(run: StoredRun, device: str) -> dict[tuple[str, str], np.ndarray]:
        return {ends: np.ones(2) for ends in statement_texts(run)}

    monkeypatch.setattr(merge, "read_vectors", ones)
    overlap, _ = iter_overlaps(MultiRunData([two[0], other]))
    assert overlap.same_words.value == 0
    assert overlap.near_duplicates is not None and overlap.near_duplicates.value == 1


def test_differences_are_one_family(two: list[StoredRun]) -> None:
    data = MultiRunData(two)
    assert {t.family for t in data.differences} == {len(data.differences)} == {6}
    found = build_multi_run_screen(data)
    assert {f.topic for f in found.findings} == {"Where they differ"}
    assert {t.group for t in data.differences if t.differs} == {"Ayes"}
    assert all("says about Ayes is" in f.said.striptags() for f in found.findings)
    counts, shared = found.remarks
    assert counts.startswith("Of 6 differences tested") and "distinct statements" in shared


def test_the_same_as_files(two: list[StoredRun], tmp_path: Path) -> None:
    files = {f.name for f in save_multi_run(two, tmp_path / "f")}
    assert {"01-regard.svg", "01-ranks.pdf", "02-overlap.png", "02-differences-regard.tex"} <= files
    about = json.loads((tmp_path / "f" / "manifest.json").read_text())
    assert [run["run"] for run in about["runs"]] == ["one", "two"]
    assert r"\label{tab:one-two-01-ranks}" in (tmp_path / "f" / "01-ranks.tex").read_text()


def test_every_measure_that_two_runs_have_is_shown(
    store: SQLiteStore, two: list[StoredRun], texts: Texts
) -> None:
    def add(run: StoredRun, measure: str, ayes: float, others: float = 0.0) -> None:
        scores = [Score(t.id, ayes if t.group == "Ayes" else others) for t in run.triples()]
        store.save_scores(run.id, Metric(measure, "rule", "1"), scores)

    for run, high in zip(two, (0.9, 0.1), strict=True):
        add(run, "identity_attack", high)
        add(run, "warmth", -high)
        add(run, "acceptability", 0.9, 0.9)
    add(two[0], "competence", 0.5)  # of one run alone
    data = MultiRunData(two)
    names = ["regard", "toxicity", "identity_attack", "warmth"]
    assert [measure.name for measure in data.measures] == names
    shown = {e.key.partition("-")[2]: e.table for e in multi_run_exhibits(data)}
    keys = [name.replace("_", "-") for name in names]
    more = ["graph-1", "graph-2", "graph-3", "overlap", "statements"]
    assert list(shown) == [*keys, "ranks", *more, *(f"differences-{key}" for key in keys)]
    attack, warmth = shown["differences-identity-attack"], shown["differences-warmth"]
    assert ["Ayes", "one", "two", "40, 40", "+0.800"] in [row[:5] for row in shown_rows(attack)]
    texts.check_lines(attack.note, "all measures")
    assert "of 0.05 or more" in attack.note
    texts.check_lines(warmth.note, "standard deviations")
    how_many = build_multi_run_screen(data).remarks[0]
    texts.check_lines(how_many, "toxicity, identity")
    assert how_many.startswith("Of 12 differences tested ")


def test_how_many_and_which(two: list[StoredRun], texts: Texts) -> None:
    with texts.raises(UsageError):
        MultiRunData(two[:1])
    with pytest.raises(UsageError, match="name each run once"):
        MultiRunData([two[0], two[0]])


def test_the_explorer_stands_beside_the_report(two: list[StoredRun], tmp_path: Path) -> None:
    with kgbias.open(str(two[0].store.url)) as study:
        (tmp_path / "sub").mkdir()
        explorer = tmp_path / "sub" / "all runs.html"
        for runs in (["one"], ["one", "two"]):
            page = study.report(runs, tmp_path / "r.html", explorer=explorer).read_text("utf-8")
            assert 'href="sub/all%20runs.html"' in page and explorer.is_file()
            assert "sub/all%20runs.html#view=" in page
        with pytest.raises(UsageError, match="two different files"):
            study.report("one", tmp_path / "r.html", explorer=tmp_path / "r.html")
        assert "explorer" not in study.report("one", tmp_path / "r.html").read_text("utf-8")[:9000]


def probed(run: StoredRun, first: dict[str, str]) -> None:
    """Statements before which the group of that name is the likeliest."""
    groups = run.record.groups
    edges = [
        ProbedEdge(
            node_id("predicate", text.split()[0]),
            node_id("object", text),
            g.id,
            -9.0,
            2,
            -5.0,
            1,
            -4.0,
            1,
            1 if g.name == name else 2 + n,
            (),
            (),
        )
        for text, name in first.items()
        for n, g in enumerate(groups)
    ]
    probing = ProbeRun(
        run.record.model,
        record={"measure": "conditional", "mrr": 0.5, "mrr_expected": 0.5, "p_value": 0.5},
    )
    run.store.put(run.id, ProbedEdge, edges, asking=probing)
    run.store.put(run.id, ProbeRun, [probing])


def test_what_two_models_find_probable(two: list[StoredRun]) -> None:
    """Of 60 statements by 20 predicates, one model puts Ayes first always, the other for half."""
    texts = [f"p{n % 20} o{n}" for n in range(60)]
    probed(two[0], dict.fromkeys(texts, "Ayes"))
    probed(two[1], {text: "Ayes" if n % 2 else "Bees" for n, text in enumerate(texts)})
    shown = {e.key: e for e in multi_run_exhibits(MultiRunData(two))}
    rows = {row[0]: row[1:] for row in shown_rows(shown["01-probable"].table)}
    assert rows["Ayes"][:2] == ["60", "100.0%"] and rows["Ayes"][3:5] == ["60", "50.0%"]
    assert shown["01-probable"].draw is not None
    tests = {row[0]: row for row in shown_rows(shown["01-probable-tests"].table)}
    assert tests["Ayes"][1:5] == ["one", "two", "60", "+50.0"]
    assert float(tests["Ayes"][6].lstrip("<")) < 0.01
    assert tests[HOSTILE][4] == "+0.0" and tests[HOSTILE][6] == "1"


def test_the_graph_the_statements_and_the_topics_of_two_runs(
    two: list[StoredRun], texts: Texts
) -> None:
    for run, word in zip(two, ("rain", "work"), strict=True):
        topics = (Topic("people", 0, (word,), 9), Topic("people", 1, ("else",), 9))
        about = tuple(
            TopicAssignment(t.id, topics[n % 2].id, 0.5) for n, t in enumerate(run.triples())
        )
        settings = {
            "embedding": "e",
            "min_cluster_size": 5,
            "documents": 9,
            "outliers_before": 1,
            "outliers": 0,
        }
        model = TopicModel("people", topics, about, settings)
        run.store.save_topics(run.id, [model])
    shown = {e.key: e for e in multi_run_exhibits(MultiRunData(two))}
    topic_rows = shown_rows(shown["01-topics"].table)
    assert [row[:2] for row in topic_rows] == [
        ["one", "rain"],
        ["one", "else"],
        ["two", "work"],
        ["two", "else"],
    ]
    assert "each run's own" in shown["01-topics"].table.note
    graph = next(e for e in shown.values() if e.title == "What one, two and both say about Bees")
    texts.check_lines(graph.table.note, "one only,")
    assert graph.draw is not None
    rows = shown_rows(shown["02-statements"].table)
    assert len(rows) == 200 or len(rows) == len(
        MultiRunData(two).statement_ids[0] | MultiRunData(two).statement_ids[1]
    )
    assert rows[0][2:4] == ["1", "1"]  # what both say comes first
    assert rows[-1].count("0") == 1


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_two_runs_in_a_browser(
    chromium: Any, two: list[StoredRun], tmp_path: Path, width: int
) -> None:
    path = tmp_path / "r.html"
    write_multi_run(two, path)
    window = Window(chromium, path, width=width)
    page = window.page
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1280:
        assert page.evaluate("document.documentElement.scrollHeight") <= 8 * 800
    for link in page.locator("#sections a").all():
        assert page.locator(f"[id='{(link.get_attribute('href') or '')[1:]}']").count() == 1
    page.locator("#sections a[href='#statements']").click()
    search = page.locator("#statements input[type=search]")
    search.fill("bees thing positive")
    rows = page.locator("#statements tbody tr:visible")
    assert rows.count() > 0 and all("Bees" in text for text in rows.all_inner_texts())
    window.unfold()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert window.complaints == []
    page.close()
