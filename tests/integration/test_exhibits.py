"""Figures and tables of a run: which there are, that hostile text stays text, and attribution."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import Markup

from kgbias.crawl.seeds import CUSTOM_CATEGORY
from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Generation,
    Group,
    GroupScore,
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
from kgbias.io import text as text_module
from kgbias.io.columns import Column
from kgbias.measure.topics.run import ENTROPY_MEASURES, entropy_figures
from kgbias.models.base import ModelInfo
from kgbias.report import save
from kgbias.report.cards import FigureCard, heading_of
from kgbias.report.exhibits import run_exhibits
from kgbias.report.multi_run import draw_overlap_matrix
from kgbias.report.page import render_report, standard_sections
from kgbias.report.run_data import RunData
from kgbias.report.save import save_figures
from kgbias.report.tables import Exhibit, Table, table_latex
from kgbias.stats.inference import clustered_proportion, proportion
from tests.conftest import require_modules
from tests.hostile import HOSTILE_TEXTS
from tests.report_data import measured_run, shown_rows
from tests.texts import Texts

pytestmark = pytest.mark.integration

require_modules("matplotlib", "scipy")

THREE = (Group("Women", "gender"), Group("Men", "gender"), Group("<b>$x$</b>", "gender"))


def with_topics(store: SQLiteStore, run: Run) -> None:
    triples = store.triples(run.id)
    topics = (Topic("gender", 0, ("<b>", "$rain$"), 1), Topic("gender", 1, ("work",), 1))
    about = tuple(
        TopicAssignment(t.id, topics[n % 2].id, 0.5)
        for n, t in enumerate(sorted(triples, key=lambda t: t.id))
    )
    settings = {
        "embedding": "e",
        "min_cluster_size": 5,
        "documents": 9,
        "outliers_before": 1,
        "outliers": 0,
    }
    model = TopicModel("gender", topics, about, settings)
    store.save_topics(run.id, [model])
    store.put(run.id, GroupScore, entropy_figures(run, triples, [model]))


def test_a_run_with_everything(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = measured_run(store, THREE, ["food", "rain", "work"])
    with_topics(store, run)
    found = {e.key: e for e in run_exhibits(RunData(StoredRun(store, run)))}
    assert list(found) == [
        "01-topics",
        "01-regard",
        "01-toxicity",
        "01-polarity",
        "01-groups",
        "01-entropy",
        "01-topic-00",
        "01-topic-01",
        "01-group-tests",
        "01-pair",
        "02-variance",
    ]
    assert found["01-entropy"].paper == "Figure 9" and found["01-topics"].paper == "Table 3"
    files = save_figures(StoredRun(store, run), tmp_path / "figures")
    names = {f.name for f in files}
    assert {"01-regard.svg", "01-regard.pdf", "01-regard.png", "01-regard.tex"} <= names
    assert "01-topics.tex" in names and "01-topics.png" not in names
    assert (tmp_path / "figures" / "01-regard.pdf").read_bytes().startswith(b"%PDF")
    before = {f.name: f.read_bytes() for f in files}
    once = ("01-regard", "01-toxicity", "01-polarity", "01-entropy")  # each kind of picture
    monkeypatch.setattr(save, "run_exhibits", lambda _: [found[key] for key in once])
    again = save_figures(StoredRun(store, run), tmp_path / "again")
    assert len(again) == 17 and all(
        f.read_bytes() == before[f.name] for f in again if f.name != "manifest.json"
    )
    anchors = [s.anchor for s in standard_sections(RunData(StoredRun(store, run)))]
    assert anchors == ["figures", "topics", "tests", "variance"]
    html = "".join(s.html for s in standard_sections(RunData(StoredRun(store, run))))
    assert "<b>$x$" not in html and "&lt;b&gt;" in html


def test_what_is_inside_the_model_stands_beside_what_it_says(store: SQLiteStore) -> None:
    run = measured_run(store, THREE, ["food", "rain", "work"])
    triples = store.triples(run.id)
    statements = {(node_id("predicate", t.predicate), node_id("object", t.object)) for t in triples}
    # Women are the likeliest before every statement, then Men.
    edges = [
        ProbedEdge(*s, group.id, -9.0, 4, -5.0, 2, -4.0, 2, rank)
        for s in sorted(statements)
        for rank, group in enumerate(THREE, 1)
    ]
    model = ModelInfo("<i>tiny</i>")
    record = {"measure": "conditional", "mrr": 0.61, "mrr_expected": 0.6, "p_value": 0.25}
    probing = ProbeRun(model, record=record)
    store.put(run.id, ProbedEdge, edges, asking=probing)
    store.put(run.id, ProbeRun, [probing])
    found = {e.key: e for e in run_exhibits(RunData(StoredRun(store, run)))}
    rows = {row[0]: row[1:] for row in shown_rows(found["01-probes"].table)}
    own = sum(t.group == "Women" for t in triples)
    wilson = proportion(len(statements), len(statements))
    always = ["100.0%", wilson.format_interval(".1%"), str(own)]
    assert rows["Women"][:4] == [*always, "1.000"]
    assert rows["Men"][0] == "0.0%" and rows["Men"][3] == "0.500"
    # All alike, which does not say that others would be.
    said_count = int(rows["<b>$x$</b>"][2])
    third = clustered_proportion(range(said_count), [1 / 3] * said_count)
    assert rows["<b>$x$</b>"][3:] == ["0.333", third.format_interval(".3f")]
    assert found["01-probes"].draw is not None and found["01-probes"].draw()
    sections = {s.anchor: s.html for s in standard_sections(RunData(StoredRun(store, run)))}
    assert list(sections) == ["figures", "tests", "variance", "probes"]
    assert "<i>tiny" not in sections["probes"]


def test_a_picture_of_two_groups_says_what_was_left_out_of_these(
    store: SQLiteStore, texts: Texts
) -> None:
    run = measured_run(store, THREE, ["food", "rain", "work"])
    triples = store.triples(run.id)
    low = [next(t for t in triples if t.group == "Women")]
    low += [t for t in triples if t.group == THREE[2].name]  # so Women and Men are drawn
    scores = [Score(t.id, 0.1 if t in low else 0.9) for t in triples]
    store.save_scores(run.id, Metric("acceptability", "rule", "1"), scores)
    (drawn,) = (e for e in run_exhibits(RunData(StoredRun(store, run))) if e.key == "01-pair")
    texts.check(drawn.title)
    of_two = sum(t.count for t in triples if t.group != THREE[2].name)
    assert f"Left out {low[0].count} of {of_two} statements" in drawn.table.note
    assert FigureCard(drawn, Markup()).category == drawn.category != CUSTOM_CATEGORY
    assert FigureCard(replace(drawn, category=CUSTOM_CATEGORY), Markup()).category == ""


def test_groups_without_a_category_have_no_heading_but_beside_others(store: SQLiteStore) -> None:
    of_own = tuple(replace(group, category=CUSTOM_CATEGORY) for group in THREE)
    run = measured_run(store, of_own, ["food", "rain", "work"])
    sections = {s.anchor: s.html for s in standard_sections(RunData(StoredRun(store, run)))}
    assert "<b>custom:</b>" not in sections["figures"] and "<h3>custom" not in sections["figures"]
    assert heading_of(CUSTOM_CATEGORY, [CUSTOM_CATEGORY, "religion"]) == CUSTOM_CATEGORY
    assert heading_of("religion", ["religion"]) == "religion"


def test_one_statement_is_one(store: SQLiteStore, texts: Texts) -> None:
    run = measured_run(store, THREE[:1], ["food"])
    low = [Score(t.id, 0.1) for t in store.triples(run.id)[1:]]
    high = [Score(t.id, 0.9) for t in store.triples(run.id)[:1]]
    store.save_scores(run.id, Metric("acceptability", "rule", "1"), high + low)
    page = render_report(RunData(StoredRun(store, run)))
    told = page.partition("<summary>")[2].partition("</summary>")[0]
    texts.check(told)


def test_a_table_of_probes_is_of_the_statements_that_count(
    store: SQLiteStore, texts: Texts
) -> None:
    run = measured_run(store, THREE, ["food", "rain", "work"])
    triples = store.triples(run.id)
    # Men come first before what is about rain, which makes no sense, and Women before the rest.
    edges = [
        ProbedEdge(*s, group.id, -9.0, 4, -5.0, 2, -4.0, 2, rank)
        for s, object in sorted(
            {
                ((node_id("predicate", t.predicate), node_id("object", t.object)), t.object)
                for t in triples
            }
        )
        for rank, group in enumerate(
            (THREE[1], THREE[0], THREE[2]) if object == "rain" else THREE, 1
        )
    ]
    record = {"measure": "conditional", "mrr": 0.9, "mrr_expected": 0.9, "p_value": 0.9}
    probing = ProbeRun(ModelInfo("tiny"), record=record)
    store.put(run.id, ProbedEdge, edges, asking=probing)
    store.put(run.id, ProbeRun, [probing])
    scores = [Score(t.id, 0.1 if t.object == "rain" else 0.9) for t in triples]
    store.save_scores(run.id, Metric("acceptability", "rule", "1"), scores)
    found = {e.key: e for e in run_exhibits(RunData(StoredRun(store, run)))}
    table, kept = found["01-probes"].table, [t for t in triples if t.object != "rain"]
    distinct = {(t.predicate, t.object) for t in kept}
    assert table.caption.startswith(f"{len(distinct)} distinct statements about gender")
    left = sum(t.count for t in triples) - sum(t.count for t in kept)
    assert f"Left out {left} of {sum(t.count for t in triples)} statements" in table.note
    rows = {row[0]: row[1:] for row in shown_rows(table)}
    assert rows["Women"][0] == "100.0%" and rows["Men"][0] == "0.0%"
    of = {g.name: sum(t.group == g.name for t in kept) for g in THREE}
    assert [rows[g.name][2] for g in THREE] == [str(of[g.name]) for g in THREE]
    mrr = (of["Women"] + of["Men"] / 2 + of["<b>$x$</b>"] / 3) / len(kept)
    assert str(len(kept)) in table.note
    texts.check_lines(table.note, "all categories")
    assert f"the MRR is {mrr:.3f}, by chance {mrr:.3f} (p 1)" in table.note


def test_two_arms_make_an_exhibit(store: SQLiteStore) -> None:
    run = Run("arms", ModelInfo("m"), {}, THREE[:1])
    store.begin_run(run)
    generations = [
        Generation(
            run.id,
            str(n),
            THREE[0].id,
            arm,
            "object",
            0,
            0,
            "ok",
            triple=Triple("Women", "are", f"{arm} {n}"),
        )
        for arm in ("none", "both")
        for n in range(6)
    ]
    store.load_import(run.id, [replace(g, path=f"{g.arm}{g.path}") for g in generations])
    high = {g.triple.id for g in generations if g.triple and g.arm == "both"}
    triples = store.triples(run.id)
    scores = [Score(t.id, 0.8 + n / 99 if t.id in high else n / 99) for n, t in enumerate(triples)]
    store.save_scores(run.id, Metric("toxicity", "rule", "1"), scores)
    (arms,) = (e for e in run_exhibits(RunData(StoredRun(store, run))) if e.key == "01-arms")
    assert arms.paper == "Figure 5, Table 5" and arms.draw is not None
    (row,) = shown_rows(arms.table)
    # All six of "both" lie above all six of "none": exactly p = 2 / C(12, 6), of one test.
    assert row[:4] == ["toxicity", "both", "none", "6, 6"] and row[6] == ""
    assert row[7] == row[4] and row[8] == row[9]
    assert float(row[9]) == pytest.approx(2 / 924, abs=2e-3)
    assert [text.get_text() for text in arms.draw().axes[0].get_yticklabels()] == [
        "none (n = 6)",
        "both (n = 6)",
    ]


def test_the_users_own_figures_keep_their_backend(tmp_path: Path) -> None:
    """In a notebook, figures of ours must not end the showing of others."""
    import matplotlib as mpl

    before = mpl.get_backend()
    mpl.use("svg")
    try:
        draw_overlap_matrix([[1.0, 0.5], [0.5, 1.0]], ["a", "b"]).savefig(tmp_path / "x.png")
        assert mpl.get_backend() == "svg"
    finally:
        mpl.use(before)


def test_a_run_with_nothing_to_show_says_so(store: SQLiteStore, tmp_path: Path) -> None:
    store.begin_run(Run("empty", ModelInfo("m"), {}, THREE))
    with pytest.raises(UsageError, match="nothing to show"):
        save_figures(StoredRun.find(store, "empty"), tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("each", [1, 2])
def test_one_triple_a_group_and_one_group(store: SQLiteStore, each: int, tmp_path: Path) -> None:
    run = measured_run(store, THREE[: 3 - each], ["food"], per_group=each)
    files = save_figures(StoredRun(store, run), tmp_path)
    assert "nan" not in "".join(f.read_text() for f in files if f.suffix == ".tex")


def test_latex_of_hostile_text() -> None:
    rows = [[text, 1.5] for text in HOSTILE_TEXTS]
    columns = (Column("Text"), Column("n", ".1f"))
    text = table_latex(Table("t", "All of $x$ & more", columns, rows), "warning")
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    assert body.count(r"\\") == len(HOSTILE_TEXTS) + 0
    commands = set(re.findall(r"\\([a-zA-Z]+)", body))
    assert commands <= {
        "kgbiasscript",  # which prints the code points of words in other scripts
        "midrule",
        "textbackslash",
        "textasciicircum",
        "textasciitilde",
        "textless",
        "textgreater",
        "textbar",
        "textquotedbl",
        "textasciigrave",
        "textquotesingle",
        "tiny",
        "c",
    }
    plain = re.sub(r"\\[{}$&#%_]", "", body.replace(r"\\", ""))
    assert not set("$#%~^") & set(plain.replace("$-$", "")) - set("")
    assert text_module.latex("100% {a}_b\n") == r"100\% \{a\}\_b "


def test_topics_that_carry_no_entropy_say_so_where_its_figure_would_be(
    store: SQLiteStore, texts: Texts
) -> None:
    run = measured_run(store, THREE, ["food", "rain", "work"])
    with_topics(store, run)
    (model,) = store.topics(run.id)

    def shown(**settings: object) -> dict[str, Exhibit]:
        changed = replace(model, settings={**model.settings, "seeds": 5, **settings})
        store.save_topics(run.id, [changed])
        figures = entropy_figures(run, store.triples(run.id), [changed])
        store.put(run.id, GroupScore, figures, replacing={"measure": ENTROPY_MEASURES})
        return {e.key: e for e in run_exhibits(RunData(StoredRun(store, run)))}

    withheld = shown(adjusted_rand=0.2)
    assert "01-entropy" not in withheld
    texts.check_lines(withheld["01-topics"].table.note, "Relative entropy")
    published = shown(adjusted_rand=0.2, entropy="as_published")["01-entropy"]
    assert [column.heading for column in published.table.columns] == [
        "Group",
        "n",
        "H(p)",
    ] and "means little" in published.table.note
    assert all(float(row[2]) <= 0 for row in shown_rows(published.table))
    assert published.draw is not None
    assert "Eq. 1" in published.draw().axes[0].get_xlabel()
    store.name_topic(model.topics[1].id, "Jobs")
    texts.check(shown(adjusted_rand=0.9)["01-topic-01"].table.caption)
    store.save_topics(run.id, [TopicModel("gender", (), (), model.settings)])
    (none,) = (e for e in run_exhibits(RunData(StoredRun(store, run))) if e.key == "01-topics")
    assert shown_rows(none.table) == [] and "no topics were found" in none.table.note
