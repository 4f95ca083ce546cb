"""Groups held against each other: by statements about them alone, and scores blind to names."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.compare.variance_components import variance_table
from kgbias.graph.cross_mentions import (
    MentionIndex,
    exclude_cross_mentions,
    is_swapped,
    names_by_category,
    swapped_metric,
)
from kgbias.graph.selection import select_statements
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Generation,
    Group,
    GroupScore,
    Metric,
    Run,
    Score,
    Triple,
    TripleView,
    verbalise,
)
from kgbias.measure.counterfactual import (
    TRIAL_STATEMENTS,
    max_texts_with_names,
    name_effects,
    reads_names,
)
from kgbias.measure.price import price_measurement as prices
from kgbias.measure.scorers import Judgement
from kgbias.measure.scoring import measure_run
from kgbias.models.base import ModelInfo
from kgbias.report import cards
from kgbias.report.exhibits import echo_effect_exhibits
from kgbias.report.run_data import RunData
from kgbias.report.save import save_figures
from tests.conftest import require_modules
from tests.report_data import shown_rows
from tests.texts import Texts

require_modules("matplotlib", "scipy")

GROUPS = (
    Group("Black people", "ethnicity", ("African Americans",)),
    Group("White people", "ethnicity"),
    Group("Asian people", "ethnicity"),
    Group("Black women", "gender"),
    Group("Men", "gender"),
)


# Of overlapping names the longest is meant: of "a black man" not the man.
@pytest.mark.parametrize(
    ("group", "predicate", "object", "named"),
    [
        ("White people", "are", "better than black people", ("Black people",)),
        ("White people", "are better than", "Blacks", ("Black people",)),
        ("White people", "hate", "a black man", ("Black people",)),
        ("White people", "fear", "African-Americans", ("Black people",)),
        ("White people", "marry", "an African american", ("Black people",)),
        ("White people", "are", "as good as white persons", ()),
        ("Black people", "love", "black women", ("Black women",)),
        ("Black women", "are", "not men", ("Men",)),
        ("Black women", "help", "black women and black people", ("Black people",)),
        ("Black people", "wear", "white shirts and eat Asian food", ()),
        ("Black people", "are", "human, manly women of amendments", ()),
    ],
)
def test_what_names_another_group(
    group: str, predicate: str, object: str, named: tuple[str, ...]
) -> None:
    id = Triple(group, predicate, object).group_id
    found = MentionIndex(GROUPS).other_groups(TripleView("t", id, group, predicate, object, 1))
    assert found == named
    assert (
        MentionIndex(GROUPS[:1]).other_groups(TripleView("t", id, group, predicate, object, 1))
        == ()
    )


def run_of(store: SQLiteStore, objects: Sequence[str], groups: Sequence[Group]) -> StoredRun:
    """Every group with the same statements, one a prompt, whose predicate the model chose."""
    run = Run("r", ModelInfo("m"), {}, tuple(groups))
    store.begin_run(run)
    store.load_import(
        run.id,
        [
            Generation(
                run.id,
                f"none/predicate/1/{g.name}/{n:03d}#0",
                g.id,
                "none",
                "predicate",
                1,
                0,
                "ok",
                prompt=f"{g.name} {n}",
                triple=Triple(g.name, "like", o),
            )
            for g in groups
            for n, o in enumerate(objects)
        ],
    )
    return StoredRun(store, store.find_run("r"))


class ByName:
    """Identity attack by the object's length, and .3 more for black people."""

    name, language = "by-name", None

    def __init__(self, measure: str = "identity_attack", more: float = 0.3) -> None:
        self.measure, self.version, self.more = measure, f"{more}", more
        self.asked = 0

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        self.asked += len(texts)
        values = [len(t.split()[-1]) / 40 + self.more * t.startswith("Black people") for t in texts]
        return [Judgement(v, "attack" if v >= 0.5 else "no attack", {}) for v in values]


NUMBER = sum(map(len, TRIAL_STATEMENTS.values()))  # of statements with which a scorer is tried


@pytest.fixture
def run(store: SQLiteStore) -> StoredRun:
    rng = np.random.default_rng(0)
    objects = [f"{'x' * int(n)}{i}" for i, n in enumerate(rng.integers(1, 12, 40))]
    return run_of(store, objects, GROUPS[:3])


def test_the_effect_of_a_name_is_measured() -> None:
    names = [g.name for g in GROUPS[:3]]
    _, found = name_effects(ByName(), names)
    assert [e.value for e in found.values()] == pytest.approx([0.2, -0.1, -0.1])
    assert found[names[0]].n == len(TRIAL_STATEMENTS["neutral"]) and reads_names(
        "identity_attack", found.values()
    )
    assert not reads_names("identity_attack", name_effects(ByName(more=0.0), names)[1].values())
    assert reads_names("regard", name_effects(ByName("regard"), names)[1].values())

    class OfInsults(ByName):
        """Gives neutral statements nothing, whomever they are about."""

        def score(self, texts: Sequence[str]) -> list[Judgement]:
            hostile = {verbalise(n, *said) for n in names for said in TRIAL_STATEMENTS["hostile"]}
            zero = Judgement(0.0, "no attack", {})
            return [
                j if t in hostile else zero
                for t, j in zip(texts, super().score(texts), strict=True)
            ]

    kind, found = name_effects(OfInsults(), names)
    assert kind == "hostile" and reads_names("identity_attack", found.values())


def test_the_same_statements_differ_in_nothing_but_the_scorers_reaction(run: StoredRun) -> None:
    """By their own names black people would be .3 above the others; with every name in turn there
    is no difference at all."""
    scorer = ByName()
    measure_run(run, [scorer])
    metric = Metric("identity_attack", "by-name", "0.3")
    assert run.metrics()["identity_attack"] == metric  # what was said stays the current one
    assert swapped_metric(metric, run.groups) in run.scorers()
    figures = {(s.group_id, s.measure): s for s in run.find_all(GroupScore)}
    black, white, asian = (g.id for g in GROUPS[:3])
    effect = figures[black, "identity_attack_name_effect"]
    assert effect.value == pytest.approx(0.2) and "by by-name@0.3" in effect.method
    means = [figures[id, "identity_attack_mean"].value for id in (black, white, asian)]
    assert means[0] == pytest.approx(means[1]) == pytest.approx(means[2])
    counted = select_statements(run)
    (components,) = variance_table([run])
    assert components.wordings.groups.value == pytest.approx(0)  # raw, groups would differ by .17
    held = exclude_cross_mentions(run, counted)
    raw = [
        t.scores["identity_attack"].value
        for t in counted.triples_of_arm("none")
        if t.group_id == black
    ]
    own = [
        t.scores["identity_attack"].value
        for t in held.triples_of_arm("none")
        if t.group_id == black
    ]
    assert np.array(raw) - np.array(own) == pytest.approx(0.2)
    assert held.remarks == (
        "identity attack by by-name reacts to a group's name: its scores here are means over the "
        "names of the category's groups",
    )
    asked = scorer.asked
    measure_run(run, [scorer])
    assert scorer.asked == asked  # nothing is tried or scored twice
    blind = ByName(more=0.0)
    measure_run(run, [blind])
    assert (
        blind.asked == 120 + 3 * NUMBER and not [m for m in run.scorers() if m.version == "0.0"][1:]
    )


def test_an_interrupted_swap_goes_on(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.measure.counterfactual._PIECE_TEXTS", 30)

    class Tired(ByName):
        def score(self, texts: Sequence[str]) -> list[Judgement]:
            if self.asked > 120 + 3 * NUMBER:
                raise KeyboardInterrupt
            return super().score(texts)

    with pytest.raises(KeyboardInterrupt):
        measure_run(run, [Tired()])
    rested = ByName()
    measure_run(run, [rested])
    assert 0 < rested.asked < 120
    metric = swapped_metric(Metric("identity_attack", "by-name", "0.3"), run.groups)
    assert len(run.store.scored_triples(metric, [t.id for t in run.triples()])) == 120


def test_a_price_counts_what_is_read_with_other_names(run: StoredRun) -> None:
    """40 statements with each of three names, and those of the trial with each; less as it is
    done, and none once a scorer was found blind."""

    def price(scorer: ByName) -> int:
        metric = Metric(scorer.measure, scorer.name, scorer.version)
        there = [metric] if metric in run.scorers() else []
        return max_texts_with_names(run, scorer.measure, scorer.name, there)

    reads, blind = ByName(), ByName(more=0.0)
    assert price(reads) == 3 * (40 + NUMBER)
    for scorer in (reads, blind):
        asked = 120 + price(scorer)
        measure_run(run, [scorer])
        assert scorer.asked == (asked if scorer is reads else 120 + 3 * NUMBER)
        assert price(scorer) == 0
    assert max_texts_with_names(run, "acceptability", "offline", []) == 0
    assert max_texts_with_names(run, "regard", "llm:openai:x", []) == 0
    (row,) = [r for r in prices(run, {"toxicity": "offline"}) if r.measure == "toxicity"]
    assert row.texts_with_names_at_most == 3 * (40 + NUMBER)


def test_at_most_seven_names_and_only_of_categories_with_several() -> None:
    groups = [*(Group(f"G{n}", "many") for n in range(9)), Group("Alone", "one")]
    assert names_by_category(groups) == {"many": tuple(f"G{n}" for n in range(7))}
    metric = Metric("toxicity", "x", "1")
    assert is_swapped(swapped_metric(metric, groups)) and not is_swapped(metric)
    assert swapped_metric(metric, groups) != swapped_metric(metric, groups[:3])


@pytest.fixture
def study(tmp_path: Path) -> Iterator[kgbias.Study]:
    with kgbias.open(tmp_path / "kgbias.db", progress=False) as study:
        store = study._context.writable()
        objects = [f"thing {n}" for n in range(12)] + ["white people", "black people"]
        run = run_of(store, objects, GROUPS[:3])  # type: ignore[arg-type]
        triples = run.triples()
        scores = [Score(t.id, 0.9 if "people" in t.object else 0.1) for t in triples]
        run.save_scores(Metric("toxicity", "rule", "1"), scores)
        run.save_scores(Metric("identity_attack", "llm:judge", "1"), scores)
        store.set_status(run.id, "complete")
        yield study


def test_statements_that_name_another_group_are_left_out_and_counted(
    study: kgbias.Study, texts: Texts
) -> None:
    run = study.run("r").stored
    held = exclude_cross_mentions(run, select_statements(run))
    texts.check(held.note)
    kept = {(t.group, t.object) for t in held.triples if "people" in t.object}
    assert kept == {("White people", "white people"), ("Black people", "black people")}
    by = {t.first: t.n for t in study.run("r").compare_groups(measures="toxicity")}
    assert by == {"Black people": (13, 25), "White people": (13, 25), "Asian people": (12, 26)}


def test_a_scorer_that_is_too_dear_to_swap_is_left_out_of_tests(study: kgbias.Study) -> None:
    assert {t.measure for t in study.run("r").compare_groups()} == {"toxicity"}
    done = CliRunner().invoke(cli, ["compare", "r", "--store", study.url, "--json"])
    assert {t["measure"] for t in json.loads(done.stdout)["groups"]} == {"toxicity"}
    assert (
        done.stderr.count(
            "identity attack by llm:judge is left out of the tests of groups: it may react to a "
            "group's name, and asking it about every name would cost too much"
        )
        == 1
    )
    assert "that name another group" in done.stderr


def test_what_asking_echoes_anew_does(store: SQLiteStore, texts: Texts) -> None:
    """Twenty places of men: at all but one the first answer repeats an example, which is far more
    toxic than what is said then."""
    groups = GROUPS[3:]
    run = Run("r", ModelInfo("m"), {}, groups)
    store.begin_run(run)
    example = Triple("Black women", "like", "poison")

    def said(g: Group, n: int, attempt: int, o: str | None, shown: Sequence[str]) -> Generation:
        return Generation(
            run.id,
            f"none/object/1/{g.name}/{n:03d}#{attempt}",
            g.id,
            "none",
            "object",
            1,
            attempt,
            "ok" if o else "echo",
            prompt=f"{n}",
            triple=Triple(g.name, "like", o) if o else None,
            shown=tuple(shown),
        )

    made = [said(groups[0], n, 0, "poison", ()) for n in range(5)]
    for n in range(20):
        if n:
            made.append(said(groups[1], n, 0, None, [example.id]))
        made.append(said(groups[1], n, int(n > 0), f"milk {n}", [example.id]))
    store.load_import(run.id, made)
    stored = StoredRun(store, store.find_run("r"))
    scores = [Score(t.id, 0.9 if t.object == "poison" else 0.1) for t in stored.triples()]
    stored.save_scores(Metric("toxicity", "rule", "1"), scores)
    (arm,) = RunData(stored).arms
    assert arm.mean_with_echoes(groups[1], "toxicity") == (pytest.approx((0.1 + 19 * 0.9) / 20), 19)
    assert np.isnan(arm.mean_with_echoes(groups[0], "toxicity")[0])
    (exhibit,) = echo_effect_exhibits(arm, "gender", "01")
    assert shown_rows(exhibit.table) == [["toxicity", "Men", "20", "+0.100", "-", "+0.860", "19"]]
    texts.check(exhibit.table.note)
    texts.check(exhibit.table.caption)


def test_a_table_without_rows_is_a_sentence_and_no_file(
    store: SQLiteStore, tmp_path: Path, texts: Texts
) -> None:
    """Echoes of what is said anyway move no mean."""
    groups = (Group("Women", "gender"), Group("Men", "gender"))
    run = Run("r", ModelInfo("m"), {"seed": 0}, groups)
    store.begin_run(run)
    made = [
        Generation(
            run.id,
            f"none/object/1/{g.name}/{n:03d}#{attempt}",
            g.id,
            "none",
            "object",
            1,
            attempt,
            "ok" if attempt else "echo",
            prompt=f"{n}",
            shown=(Triple(g.name, "like", f"milk {n}").id,),
            triple=Triple(g.name, "like", f"milk {n}") if attempt else None,
        )
        for g in groups
        for n in range(9)
        for attempt in (0, 1)
    ]
    store.load_import(run.id, made)
    stored = StoredRun(store, store.find_run("r"))
    metric, triples = Metric("toxicity", "rule", "1"), stored.triples()
    stored.save_scores(metric, [Score(t.id, 0.1 * (int(t.object[-1]) % 2)) for t in triples])
    data = RunData(stored)
    (exhibit,) = echo_effect_exhibits(data.arms[0], "gender", "01")
    assert exhibit.empty
    texts.check_lines(exhibit.table.note, "means would")
    html = cards.render_groups([cards.build_group("gender", (), [exhibit.table])])
    assert "<table" not in html and "None of 2 means" in html and "1 table" not in html
    assert "01-echoed.tex" not in {file.name for file in save_figures(stored, tmp_path / "figures")}


def test_the_command_shows_means_by_what_prompts_supplied(
    study: kgbias.Study, texts: Texts
) -> None:
    def call(*more: str) -> str:
        command = ["compare", "r", "--store", study.url, "--by-prompt-type", *more]
        return CliRunner().invoke(cli, command, catch_exceptions=False).stdout

    text = call("--measure", "toxicity")
    texts.check_lines(text, "prompts supplied")
    texts.check_lines(" ".join(text.split()), "people chosen")
    assert {row["form"] for row in json.loads(call("--json"))["forms"]} == {"chosen"}
    with texts.raises(kgbias.UsageError):
        call("--probes")
