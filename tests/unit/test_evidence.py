"""Said, believed, embedded: the joint view of a run, its verdicts and its agreement."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.calibrate.evidence_rows import mean_over_pairs
from kgbias.cli import cli
from kgbias.errors import KgbiasError, MissingExtra, UsageError
from kgbias.evidence import (
    BeliefComparison,
    ModelBeliefs,
    ProbeSettings,
    build_evidence,
    jackknife_kendall_tau,
    plan_belief_run,
    price_plans,
    probe_beliefs,
    select_top_rows,
)
from kgbias.evidence.association import compute_associations
from kgbias.evidence.evidence_table import (
    _least_mean,
    count_sentences,
    decide_verdict,
    drop_recut_sentences,
)
from kgbias.evidence.model_agreement import FloorCount, _weighted_spearman
from kgbias.evidence.probe_plan import build_stem, estimate_max_probes
from kgbias.evidence.probe_tables import NameTable
from kgbias.explore import beliefs, statements
from kgbias.graph.selection import Selection
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    BeliefRun,
    BelievedEdge,
    Generation,
    Group,
    Metric,
    NameProbe,
    ProbeRun,
    Run,
    Score,
    Triple,
)
from kgbias.io.progress import SilentProgress
from kgbias.measure import merge
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Convention, ProbeGrid, Scores
from kgbias.probe import probe_run
from kgbias.probe.result import Statement
from kgbias.report import write_multi_run
from kgbias.report.beliefs import belief_comparison_exhibits
from kgbias.report.beliefs import belief_exhibits as beliefs_of
from kgbias.report.evidence import (
    GroupStatement,
    evidence_data,
    evidence_section,
    group_statements,
    lift_difference,
    said_believed_exhibits,
)
from kgbias.report.exhibits import run_exhibits
from kgbias.report.multi_run_data import MultiRunData
from kgbias.report.run_data import RunData
from tests.report_data import shown_rows
from tests.simulation import Simulation
from tests.texts import Texts

FORMS = ("{} people", "people who are {}", "{} folk", "{} persons", "people with {} roots")
GROUPS = tuple(
    Group(name, "peoples", tuple(form.format(root) for form in FORMS))
    for name, root in (("elves", "elven"), ("orcs", "orcish"), ("ents", "entish"))
)
RUN = Run("middle", ModelInfo("believer", "1"), {"seed": 0}, GROUPS)
THINGS = [f"thing{n}" for n in range(90)]


class Believer:
    """A model for which every statement is two tokens, and thing n is 12 nats likelier of group
    n % 3, whatever its name; all is likelier of elves by 1 nat, and every name has a little of its
    own before each statement. With `own` 0 nothing but that is left. `asked` counts probes."""

    info = ModelInfo("believer", "1")
    settings = (("kind", "causal"),)
    convention = Convention("causal", "bos")
    parameters: int | None = None

    def __init__(self, own: float = 12.0) -> None:
        self.own, self.asked, self.stop = own, 0, 10**9

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Any = None
    ) -> ProbeGrid:
        self.asked += len(groups) * len(statements)
        if self.asked > self.stop:
            raise KeyboardInterrupt
        roots = ("el", "orc", "ent")
        places = np.array(
            [next((n for n, r in enumerate(roots) if r in g.lower()), 9) for g in groups]
        )[:, None]
        things = np.array([int(text.rpartition("thing")[2]) % 3 for text in statements])
        values = -25.0 + self.own * (places == things) + (places == 0)
        seeds = [[zlib.crc32(f"{g}{s}".encode()) % 997 / 997 for s in statements] for g in groups]
        values = values + np.array(seeds)
        two = np.full(values.shape, 2)
        alone = Scores(np.full(len(groups), -2.0), np.ones(len(groups), dtype=np.int64))
        return ProbeGrid(Scores(values - 2, two + 1), Scores(values, two), alone)


def believer(own: float = 12.0) -> Any:
    return Believer(own)


@pytest.fixture
def run(store: SQLiteStore) -> StoredRun:
    """Each group says its own things but the last, and elves one of the orcs'; ents, who are
    refused half their answers, say nothing."""
    said = [(n % 3, thing) for n, thing in enumerate(THINGS) if n % 3 != 2 and n < 81]
    said += [(1, THINGS[81]), (0, THINGS[82]), (0, THINGS[83]), (0, THINGS[1])]
    said += [(0, thing) for n, thing in enumerate(THINGS) if n % 3 == 2 and n < 6]
    store.begin_run(RUN)
    generations = [
        Generation(
            RUN.id,
            str(n),
            GROUPS[g].id,
            "none",
            "object",
            0,
            0,
            "ok",
            triple=Triple(GROUPS[g].name, "love", thing),
            count=1 + (n == 0),
        )
        for n, (g, thing) in enumerate(said)
    ]
    refused = Generation(RUN.id, "no", GROUPS[2].id, "none", "object", 0, 0, "refused")
    store.record_round(RUN.id, "none", 0, [*generations, refused])
    for measure, value, label in (("regard", -0.5, "negative"), ("acceptability", 0.9, "")):
        scores = [Score(t.id, value, label) for t in store.triples(RUN.id)]
        store.save_scores(RUN.id, Metric(measure, "rule", "1"), scores)
    store.set_status(RUN.id, "complete")
    return StoredRun(store, RUN)


def of(rows: Sequence[Any], group: str, thing: str) -> Any:
    (row,) = [r for r in rows if (r.group, r.object) == (group, thing)]
    return row


def test_how_many_probes_a_crawl_may_lead_to() -> None:
    """18 names before 30 statements and 18 made-up ones before a fifth of them, 3 carriers each; 3
    groups before 30; and each of these by itself."""
    alone, of_groups = 3 * (18 + 18), 3 * (30 + 1)
    assert (
        estimate_max_probes(GROUPS, 10, ProbeSettings())
        == 3 * (18 * 30 + 18 * 6) + alone + of_groups
    )
    assert estimate_max_probes(GROUPS, 10, ProbeSettings(probes=1000)) == 1000 + alone + of_groups
    given = ProbeSettings(statements={"peoples": ["are small", "are tall"], "others": ["are odd"]})
    assert estimate_max_probes(GROUPS, 1, given) == 3 * (18 * 5 + 18 * 1) + alone + 3 * (3 + 1)


class Counting(Believer):
    """Counts the texts that it scores: groups before statements, and groups by themselves."""

    texts = 0

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Any = None
    ) -> ProbeGrid:
        self.texts += len(groups) * (len(statements) + 1)
        return super().grid(groups, statements, progress)


@pytest.mark.parametrize(
    ("asking", "chunk"),
    [({}, 4096), ({"probes": 1000}, 7), ({"floor": "full", "placebo": True}, 4096)],
)
def test_as_many_texts_are_scored_as_were_promised(
    run: StoredRun, asking: Any, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgbias.probe.run_probes._MAX_CHUNK_PROBES", chunk)
    with kgbias.open(run.store.url) as study:
        own = study.run("middle")
        price = own.evidence(asking=asking, dry_run=True)
        scorer: Any = Counting()
        own.evidence(scorer, asking=asking)
        assert price.texts + price.texts_of_groups == scorer.texts
        assert price.probes < price.texts <= price.probes * 1.25
        assert price.embedded == len({(t.predicate, t.object) for t in run.triples()})
        own.evidence(scorer, asking=asking)  # asks nothing again
    assert price.texts + price.texts_of_groups == scorer.texts


def test_a_run_that_was_not_probed_says_what_fills_the_columns(run: StoredRun) -> None:
    found = build_evidence(run)
    assert {r.verdict for r in found.rows} == {"said, not probed"}
    assert found.agreement == [] and found.probe_run is None
    assert "run.evidence(MODEL)" in found.missing_columns[0]


def test_the_four_verdicts(run: StoredRun) -> None:
    probe_beliefs(run, believer())
    found = build_evidence(run)
    own = of(found.rows, "elves", "thing0")
    assert (own.verdict, own.count, own.lift.n) == ("said and believed", 2, 6)
    # 12 nats, less the share of statements that are likelier of elves, and with the others'.
    kinds = [int(text[5:]) % 3 for text in {t.object for t in run.triples()}]
    elves, orcs, ents = (kinds.count(n) / len(kinds) for n in range(3))
    bits = 12 / np.log(2) * (1 - elves + (orcs + ents) / 2)
    assert own.lift.low < bits < own.lift.high and own.q_value < 0.05
    assert own.min_loo_lift <= own.lift.value and own.rank is None and not own.leaning
    assert of(found.rows, "elves", "thing1").verdict == "only said"
    never = of(found.rows, "orcs", "thing82")
    assert (never.verdict, never.count, never.arms) == ("believed but never said", 0, ())
    assert (never.regard, never.regard_label) == (-0.5, "negative")
    refused = of(found.rows, "ents", "thing83")
    assert refused.verdict == "refused but believed" and refused.refused.value == 1
    assert "`encoder`" in found.missing_columns[0] and np.isnan(own.association.value)
    assert found.note == "" and found.belief_run is not None


def test_what_one_model_refused_says_nothing_of_what_another_believes(run: StoredRun) -> None:
    other = believer()
    other.info = ModelInfo("zealot", "1")
    probe_beliefs(run, other)
    rows = build_evidence(run).rows
    assert of(rows, "ents", "thing83").verdict == "believed but never said"
    assert {row.model for row in rows} == {"zealot"}


def test_the_floor_stands_beside_what_is_found(run: StoredRun) -> None:
    probe_beliefs(run, believer())
    floor = build_evidence(run).floor
    statements = len({(t.predicate, t.object) for t in run.triples()})
    assert floor["pairs"] == 3 * statements and floor["believed"] > 50
    assert floor["tested"] == 3 * -(-statements // 5) and floor["found"] <= 0.05
    assert {part["kind"] for part in floor["parts"]} == {"nonce", "residuals"}


def test_figures_of_groups_are_in_the_record(run: StoredRun) -> None:
    """Scores go by the group that a statement is likelier of."""
    metric = Metric("regard", "rule", "2")
    scores = [
        Score(t.id, -0.5 if int(t.object.removeprefix("thing")) % 3 == 1 else 0.4, "")
        for t in run.triples()
    ]
    run.store.save_scores(run.id, metric, scores)
    probe_beliefs(run, believer())
    rows = {
        (f["group"], f["kind"]): f
        for f in build_evidence(run).group_figures
        if f["score"] == "regard"
    }
    assert rows["orcs", "rho"]["high"] < 0 < rows["elves", "rho"]["low"]
    assert len(rows["orcs", "rho"]["names"]) == 6 and rows["orcs", "shift"]["value"] < 0


def test_the_base_rate_of_a_group_is_no_belief(run: StoredRun, texts: Texts) -> None:
    """Everything is as likely of one group as of the other but for a constant."""
    probe_beliefs(run, believer(own=0.0))
    found = build_evidence(run)
    rows = [r for r in found.rows if r.group == "elves"]
    assert {r.verdict for r in rows} == {"only said"}
    assert all(abs(r.lift.value) < 1 for r in rows)
    texts.check_lines(found.note, "any group:")


def test_what_the_store_holds_is_not_asked_again(run: StoredRun) -> None:
    first = believer()
    first.stop = 2500
    with pytest.raises(KeyboardInterrupt):
        probe_beliefs(run, first)
    assert run.find_all(BeliefRun) == []  # not finished, yet what was asked is kept
    second = believer()
    probe_beliefs(run, second)
    assert 0 < second.asked < first.asked + second.asked - 2500 + 1500
    whole = probes_of(run)
    assert believer_asks(run) == 0 and probes_of(run) == whole
    assert len({r.lift.value for r in build_evidence(run).rows}) > 50


def believer_asks(run: StoredRun) -> int:
    again = believer()
    probe_beliefs(run, again)
    return int(again.asked)


def probes_of(run: StoredRun) -> int:
    return len(run.find_all(NameProbe, asking=run.find_all(BeliefRun)[0]))


def test_more_probes_go_on_from_fewer(run: StoredRun, texts: Texts) -> None:
    probe_beliefs(run, believer(), ProbeSettings(probes=1000))
    texts.check_lines(build_evidence(run).missing_columns[0], "said but")
    left = {r.verdict for r in build_evidence(run).rows}
    assert "said, not probed" in left
    some = probes_of(run)
    probe_beliefs(run, believer())
    assert probes_of(run) > some and not build_evidence(run).by_verdict.get("said, not probed")


def test_a_group_of_few_names_is_not_spoken_of(run: StoredRun) -> None:
    """What is found is a belief of its names, held against names that mean nothing."""
    few = replace(GROUPS[1], variants=("orcish people",))
    record = replace(run.record, groups=(GROUPS[0], few, GROUPS[2]))
    run = StoredRun(run.store, record)
    plans, carriers = plan_belief_run(run)
    assert price_plans(plans, carriers)["categories"][0]["too_few_names"] == ["orcs"]
    probe_beliefs(run, believer(), ProbeSettings(floor="full"))
    found = build_evidence(run)
    row = of(found.rows, "orcs", "thing1")
    assert row.verdict == "said, not probed" and row.names_only and row.lift.n == 2
    assert any("nothing is said of orcs" in line for line in found.missing_columns)
    assert of(found.rows, "elves", "thing0").verdict == "said and believed"


def test_given_statements_are_probed_too(run: StoredRun) -> None:
    asking = ProbeSettings(statements={"": ("love thing300", "love thing0")})
    probe_beliefs(run, believer(), asking)
    found = build_evidence(run)
    row = of(found.rows, "elves", "thing300")
    assert (row.verdict, row.predicate, row.count) == ("believed but never said", "love", 0)
    assert run.store.find_faults() == []  # its words are in the graph
    drawn = evidence_data(RunData(run), {})["points"]  # and in the report, where nobody said them
    assert [] in [p["others"] for p in drawn if p["verdict"] != 0]


def said_too(run: StoredRun, *said: tuple[int, str, str]) -> None:
    """The run said these, too: of a group a predicate and an object."""
    triples = [(GROUPS[g], Triple(GROUPS[g].name, *words)) for g, *words in said]
    generations = [
        Generation(run.id, t.id, group.id, "none", "object", 1, 0, "ok", triple=t)
        for group, t in triples
    ]
    run.store.record_round(run.id, "none", 1, generations)


TWO_CUTS = ((0, "love", "The thing300"), *((g, "love the", "thing300") for g in range(3)))
"""One sentence in two cuts, likelier of elves."""


def test_the_same_words_are_asked_once_wherever_they_are_cut(run: StoredRun) -> None:
    said_too(run, *TWO_CUTS)
    (plan,), _ = plan_belief_run(run)
    words = [s.words for s in plan.statements]
    cuts = {(t.predicate, t.object) for t in run.triples()}
    assert len(words) == len(set(words)) == len(cuts) - 1
    probe_beliefs(run, believer())
    (believing,) = run.find_all(BeliefRun)
    assert (
        len(run.find_all(BelievedEdge, asking=believing))
        == believing.record["categories"][0]["pairs"]
    )
    assert believing.record["categories"][0]["pairs"] == 3 * len(words)
    found = build_evidence(run)
    rows = [r for r in found.rows if r.object.casefold().endswith("thing300")]
    assert len({(r.predicate, r.object) for r in rows}) == 1  # as it was asked
    assert [(r.group, r.verdict) for r in sorted(rows, key=lambda r: r.group)] == [
        *[("elves", "said and believed")] * 2,
        ("ents", "only said"),
        ("orcs", "only said"),
    ]
    assert all(e.said_believed.n == len(words) for e in found.agreement)
    data = RunData(run)
    shown = group_statements(data.arms[0], "peoples")
    assert sum(p.said for p in shown) == sum(t.count for t in run.triples())
    strongest, *_ = beliefs_of(data, "peoples", "01")
    texts = [row[1] for row in shown_rows(strongest.table)]
    assert sum(text.casefold() == "love the thing300" for text in texts) == 1


def test_what_is_given_is_asked_though_the_run_said_it_too(run: StoredRun) -> None:
    """In the run's own cut, before all others."""
    said_too(run, (0, "love the", "thing300"))
    texts = ("love the thing300", "love thing82", "love The thing300", "love thing301")
    asking = ProbeSettings(probes=1000, statements={"": texts})
    (plan,), _ = plan_belief_run(run, asking)
    assert [(s.predicate, s.object) for s in plan.statements[:4]] == [
        ("love the", "thing300"),
        ("love", "thing82"),
        ("love", "thing301"),
        ("love", "thing0"),
    ]
    assert len(plan.given_ids) == 3 and plan.unprobed_count > 0


def test_carriers_and_statements_by_their_rules(run: StoredRun, texts: Texts) -> None:
    plans, carriers = plan_belief_run(run)
    assert carriers == ("", "I think that", "People say that")
    (plan,) = plans
    assert plan.statements[0].object == "thing0"  # said twice; then evenly over groups
    assert len(plan.floor_indices) == -(-len(plan.statements) // 5) and plan.unprobed_count == 0
    fewer = plan_belief_run(run, ProbeSettings(probes=1000)).plans[0]
    assert fewer.statements == plan.statements[: len(fewer.statements)]
    assert price_plans([fewer], carriers)["probes"] <= 1000
    name = plan.names_by_group[GROUPS[0].id][1]
    assert [build_stem(c, name) for c in ("", "I think that", "Some say:")] == [
        "Elven people",
        "I think that elven people",
        "Some say:\n\nElven people",
    ]
    with texts.raises(UsageError):
        ProbeSettings(carriers=("", "I think that"))


def test_statements_that_name_a_group_are_marked(run: StoredRun) -> None:
    run.store.record_round(
        RUN.id,
        "none",
        1,
        [
            Generation(
                RUN.id,
                "n1",
                GROUPS[0].id,
                "none",
                "object",
                1,
                0,
                "ok",
                triple=Triple("elves", "hate", "orcish people"),
            ),
        ],
    )
    (plan,), _ = plan_belief_run(run)
    marked = {s.text for s in plan.statements if s.id in plan.naming_ids}
    assert marked == {"hate orcish people"}


def test_verdicts_by_their_rules() -> None:
    assert decide_verdict(is_said=True, is_believed=None, refused=1.0) == "said, not probed"
    assert decide_verdict(is_said=False, is_believed=None, refused=1.0) == ""
    assert decide_verdict(is_said=True, is_believed=True, refused=1.0) == "said and believed"
    assert decide_verdict(is_said=False, is_believed=True, refused=0.1) == "refused but believed"
    assert (
        decide_verdict(is_said=False, is_believed=True, refused=0.09) == "believed but never said"
    )
    assert (
        decide_verdict(is_said=False, is_believed=True, refused=float("nan"))
        == "believed but never said"
    )


def test_the_share_by_hand(run: StoredRun) -> None:
    """Elves said one statement twice and the rest once: with n of them the coverage is
    1 - (n - 2) / n, and the share of the one is 2 / n of that."""
    n = sum(t.count for t in run.triples() if t.group == "elves")
    row = of(build_evidence(run).rows, "elves", "thing0")
    assert row.share.value == pytest.approx((1 - (n - 2) / n) * 2 / n)
    assert row.share.low < row.share.value < row.share.high
    # What is said at all is said once at whatever mean; two are rarer than 1 in 40 below .0504:
    # (1 - (1 + m) exp(-m)) / (1 - exp(-m)) = .025.
    assert _least_mean(1) == 0 and _least_mean(2) == pytest.approx(0.05042, abs=1e-4)


def test_the_association_by_hand() -> None:
    """Of each group the contrasts are 0.75 and -0.75 (groups mirror each other), and their standard
    deviation is 0.75."""
    found = compute_associations(np.array([[1.0, 0.0], [0.5, 1.0]]))
    assert found == pytest.approx(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert compute_associations(np.ones((3, 4))).tolist() == np.zeros((3, 4)).tolist()


def test_vectors_are_kept_on_the_edges(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    class Letters:
        """Vectors by the last digit: a group is near to its own things."""

        asked = 0
        name = "letters r1"

        def __init__(self, spec: str, **_: Any) -> None:
            pass

        def embed(self, texts: Sequence[str]) -> Any:
            type(self).asked += 1
            roots = ("el", "orc", "ent")
            return np.array(
                [
                    np.eye(3)[
                        int(t.split("thing")[1]) % 3
                        if "thing" in t
                        else next(n for n, r in enumerate(roots) if r in t)
                    ]
                    for t in texts
                ]
            )

    monkeypatch.setattr("kgbias.evidence.association.TextEmbedder", Letters)
    from kgbias.evidence import embed_run

    probe_run(run, believer())
    probe_beliefs(run, believer())
    for _ in range(2):
        embed_run(run, run.find_all(ProbeRun)[0], "letters")
    assert Letters.asked == 2  # the groups and the statements, once
    found = build_evidence(run)
    assert found.missing_columns == [] and {r.vectors for r in found.rows} == {"letters r1"}
    own, other = of(found.rows, "elves", "thing0"), of(found.rows, "elves", "thing1")
    assert own.association.value > 1 > 0 > other.association.value
    (elves, *_) = found.agreement
    assert elves.believed_embedded.value > 0.5
    assert elves.said_believed.value > 0 < elves.said_embedded.value
    probe_run(run, believer())  # probing again keeps them
    assert {r.vectors for r in build_evidence(run).rows} == {"letters r1"}


def test_declared_indicators_stand_for_groups(run: StoredRun, monkeypatch: Any) -> None:
    """In one kind for all groups of a category, by their mean; names where one group lacks it.
    Other words are embedded anew."""
    from kgbias.evidence import association, embed_run
    from kgbias.evidence.indicators import GroupIndicators, Indicators, WordSet

    asked: list[str] = []

    class Words:
        """A word or statement lies along the axis of its last digit, modulo 3."""

        name = "words r1"

        def __init__(self, spec: str, **_: Any) -> None:
            pass

        def embed(self, texts: Sequence[str]) -> Any:
            asked.extend(texts)
            return np.array([np.eye(3)[int(t[-1]) % 3 if t[-1].isdigit() else 0] for t in texts])

    def declared(group: Group, place: int, count: int = 8) -> GroupIndicators:
        words = tuple(f"w{n}x{place}" for n in range(count))
        return GroupIndicators(group.name, sets={"terms": WordSet(group.name, words)})

    monkeypatch.setattr("kgbias.evidence.association.TextEmbedder", Words)
    probe_run(run, believer())
    whole = Indicators(tuple(declared(g, n) for n, g in enumerate(GROUPS)))
    kind, words = association.choose_group_terms(GROUPS, whole)
    assert kind == "terms" and [own[0] for own in words] == ["w0x0", "w0x1", "w0x2"]
    embed_run(run, run.find_all(ProbeRun)[0], "words", indicators=whole)
    rows = build_evidence(run).rows
    assert {r.vector_terms for r in rows} == {"terms"} and "w7x2" in asked and "elves" not in asked
    assert of(rows, "elves", "thing0").association.value > 1
    assert of(rows, "elves", "thing1").association.value < 0
    embed_run(run, run.find_all(ProbeRun)[0], "words", indicators=whole)
    assert asked.count("w7x2") == 1
    few = Indicators((*whole.groups[:2], declared(GROUPS[2], 2, 7)))
    embed_run(run, run.find_all(ProbeRun)[0], "words", indicators=few)
    assert {r.vector_terms for r in build_evidence(run).rows} == {
        "group names"
    } and "elves" in asked


def test_the_most_telling_come_first(run: StoredRun) -> None:
    probe_beliefs(run, believer())
    found = build_evidence(run).by_verdict
    believed = select_top_rows(found["said and believed"], 3)
    assert [r.lift.value for r in believed] == sorted(
        (r.lift.value for r in believed), reverse=True
    )
    assert len(believed) == 3 and len(select_top_rows(found["only said"], 99)) == len(
        found["only said"]
    )


@pytest.fixture
def cut(run: StoredRun) -> StoredRun:
    """The run, in which elves also "love to sing thing0": once, and three times as "love to | sing
    thing0". The elves "hate thing90" in two cuts, and nobody is asked about it."""
    said = [
        ("love", "to sing thing0", 1),
        ("love to", "sing thing0", 3),
        ("hate", "all thing90", 1),
        ("hate all", "thing90", 1),
    ]
    run.store.record_round(
        run.id,
        "none",
        1,
        [
            Generation(
                run.id,
                f"cut{n}",
                GROUPS[0].id,
                "none",
                "object",
                1,
                0,
                "ok",
                triple=Triple("elves", predicate, thing),
                count=count,
            )
            for n, (predicate, thing, count) in enumerate(said)
        ],
    )
    return run


def test_a_sentence_cut_in_two_ways_is_one_with_all_its_counts(
    cut: StoredRun, texts: Texts
) -> None:
    """In lists and in the report's picture; its triples keep their own counts."""
    probe_beliefs(cut, believer())
    found = build_evidence(cut)
    both = [r for r in found.rows if r.sentence == "Elves love to sing thing0."]
    assert sorted(r.count for r in both) == [1, 3] and {r.times for r in both} == {4}
    held = found.by_verdict["said and believed"]
    assert count_sentences(held) == len(drop_recut_sentences(held)) == len(held) - 2
    listed = [r for r in select_top_rows(held, len(held)) if r.pair == both[0].pair]
    assert [(r.count, r.times) for r in listed] == [(3, 4)]
    data = RunData(cut)
    places = {(t.arm, t.id): n for n, t in enumerate(data.triples)}
    points = evidence_data(data, places)["points"]
    (point,) = [
        p
        for p in points
        if p["predicate"].startswith("love") and "sing" in p["object"] and p["group"] == 0
    ]
    assert point["count"] == 4 and sorted(data.triples[n].count for n in point["triples"]) == [1, 3]
    page = str(evidence_section(data).html)
    assert str(len(points)) in page
    texts.check_lines(page, "a statement")


def test_what_was_not_probed_is_counted_as_it_is_listed(cut: StoredRun, texts: Texts) -> None:
    probe_beliefs(cut, believer(), ProbeSettings(probes=1000))
    found = build_evidence(cut)
    left = count_sentences(found.by_verdict["said, not probed"])
    assert left < len(found.by_verdict["said, not probed"])  # "hate all thing90" is in two rows
    assert str(left) in found.missing_columns[0]
    texts.check_lines(found.missing_columns[0], "said but")
    shown = CliRunner().invoke(
        cli, ["evidence", "middle", "--store", cut.store.url], standalone_mode=False
    )
    assert f"said, not probed: {left} statements\n" in shown.stdout  # no group has too few names


# Kendall's tau


def test_statements_of_a_predicate_are_left_out_together() -> None:
    """Against tau-b of what is left without each predicate, computed anew."""
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(4)
    of = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4, 4])
    x = rng.integers(1, 4, 12).astype(float)
    y = x + rng.normal(0, 1.5, 12)
    without = np.array([stats.kendalltau(x[of != c], y[of != c]).statistic for c in range(5)])
    tau = stats.kendalltau(x, y).statistic
    error = np.sqrt(4 / 5 * ((without - without.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, 4) * error / (1 - tau**2)
    found = jackknife_kendall_tau(x, y, [f"predicate {c}" for c in of])
    assert found.value == pytest.approx(tau)
    ends = np.tanh(np.arctanh(tau) + np.array([-half, half]))
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=0.002)
    assert not jackknife_kendall_tau(
        x, y, (of > 2).tolist()
    ).has_interval  # two clusters say nothing


def test_pairs_of_groups_are_left_out_by_group() -> None:
    """Three groups' pairs, and one of two groups of another category: by hand over five groups."""
    stats = pytest.importorskip("scipy.stats")
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("d", "e")]
    values = np.array([0.1, 0.2, 0.6, 0.3])
    without = np.array([0.45, 0.25, 0.2, 0.3, 0.3])
    half = stats.t.ppf(0.975, 4) * np.sqrt(4 / 5 * ((without - 0.3) ** 2).sum())
    found = mean_over_pairs(pairs, values)
    assert found.value == pytest.approx(0.3) and found.n == 4
    assert without.mean() == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx((0.3 - half, 0.3 + half))
    assert not mean_over_pairs(pairs[:1], values[:1]).has_interval
    assert np.isnan(mean_over_pairs([], np.array([])).value)


def test_tau_by_hand() -> None:
    """1 2 3 4 against 1 2 4 3: five of six pairs agree, one does not. With a tie in one of two
    pairs: 2 / sqrt(3 * 2)."""
    found = jackknife_kendall_tau(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3]))
    assert found.value == pytest.approx(4 / 6) and found.low < 4 / 6 < found.high
    tied = jackknife_kendall_tau(np.array([1.0, 1, 2]), np.array([1.0, 2, 3]))
    assert tied.value == pytest.approx(2 / np.sqrt(2 * 3)) and not tied.has_interval
    assert np.isnan(jackknife_kendall_tau(np.ones(5), np.arange(5.0)).value)
    assert jackknife_kendall_tau(np.arange(9.0), -np.arange(9.0)).value == -1


def test_the_interval_of_tau_holds_its_level(simulation: Simulation) -> None:
    """The tau of normal pairs of correlation r is 2/pi asin(r)."""
    truth = 2 / np.pi * np.arcsin(0.5)
    held = []
    for rng in simulation.worlds(50):
        x, y = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=80).T
        found = jackknife_kendall_tau(x, y)
        held.append(found.low <= truth <= found.high)
    simulation.check("held", sum(held), len(held), 0.92, 0.98)


# said against believed, as an exhibit


def test_every_pair_that_was_asked_is_in_the_scatter(run: StoredRun) -> None:
    """What was said of a group and what was not, each with its lift; the table has what was said
    or is believed."""
    data = RunData(run)
    assert list(said_believed_exhibits(data.arms[0], "peoples", "01")) == []
    probe_beliefs(run, believer(), ProbeSettings(statements={"": ("love thing300",)}))
    data = RunData(run)
    found = group_statements(data.arms[0], "peoples")
    statements = {(t.predicate, t.object) for t in run.triples()} | {("love", "thing300")}
    assert len(found) == 3 * len(statements)
    assert sum(p.said for p in found) == sum(t.count for t in run.triples())
    (exhibit,) = said_believed_exhibits(data.arms[0], "peoples", "01")
    assert exhibit.key == "01-said-believed" and "believer" in exhibit.title
    rows = {(row[0], row[1]): row for row in shown_rows(exhibit.table)}
    assert rows["elves", "love thing0"][2] == "2" and rows["elves", "love thing0"][5] == "believed"
    assert rows["elves", "love thing300"][2] == "0"  # given, and believed
    assert ("orcs", "love thing300") not in rows
    assert f"has {len(found) - len(rows)} more pairs" in exhibit.table.note
    assert "mean lift" not in exhibit.table.note  # of one predicate: no interval


def test_the_lift_of_what_was_said_has_the_interval_of_its_predicates(
    simulation: Simulation,
) -> None:
    """Pairs of a predicate share their lift, so that the interval of 40 predicates, not of 400
    pairs, holds the truth, which is 1, in 95% of cases."""
    held, short = [], []
    for rng in simulation.worlds(10):
        said = rng.integers(0, 2, (40, 10))
        lifts = rng.normal(0, 1, (40, 2, 1)) * np.stack([said, 1 - said], axis=1)
        lifts = lifts.sum(axis=1) + said + rng.normal(0, 0.1, (40, 10))
        found = [
            GroupStatement(
                "elves", f"p{p}", "x", int(said[p, n]), edge(f"p{p}", float(lifts[p, n]))
            )
            for p in range(40)
            for n in range(10)
        ]
        e = lift_difference(found)
        held.append(e.low <= 1 <= e.high)
        loose = lift_difference(
            [replace(p, edge=edge(f"{n}", p.edge.lift)) for n, p in enumerate(found)]
        )
        short.append(loose.low <= 1 <= loose.high)
    simulation.check("held", sum(held), len(held), 0.9, 0.98)
    simulation.check("held over pairs", sum(short), len(short), 0.0, 0.75)


def edge(predicate: str, lift: float) -> BelievedEdge:
    return BelievedEdge(predicate, "o", "g", lift, lift, lift, 8, 1.0, 1.0, 1.0, 1.0, lift)


# several models beside each other


def two_sides(run: StoredRun, second: Any) -> BeliefComparison:
    probe_beliefs(run, believer())
    probe_beliefs(run, second)
    found = RunData(run).compare_beliefs("peoples")
    assert found is not None
    return found


def test_models_beside_each_other_on_what_both_were_asked(run: StoredRun) -> None:
    """A model that knows the same with less force, and one that knows nothing."""
    other = believer(own=4.0)
    other.info = ModelInfo("hf:/models/weak:weaker.gguf", "1")
    found = two_sides(run, other)
    assert [side.label for side in found.models] == ["believer", "weaker (1)"]
    pairs = 3 * len({(t.predicate, t.object) for t in run.triples()})
    (two,) = found.iter_agreements()
    assert two.pairs == pairs == found.lifts.shape[1]
    assert two.both_believed == (found.is_believed[0] & found.is_believed[1]).sum() > 50
    assert (
        two.either_believed
        == len(found.strongest_pairs)
        >= max(two.believed_counts)
        >= two.both_believed
    )
    assert two.same_sign == two.either_believed
    expected = np.corrcoef(found.lifts)[0, 1]
    assert two.correlation.value == pytest.approx(expected) and expected > 0.99
    assert not two.correlation.has_interval  # all statements are of one predicate
    assert found.models[0].floor.tested > 0
    strongest, agreement = belief_comparison_exhibits(found, "peoples", "01")
    group, text, *_ = shown_rows(strongest.table)[0]
    assert (int(text.removeprefix("love thing")) % 3) == [g.name for g in GROUPS].index(group)
    assert shown_rows(strongest.table)[0][4] == shown_rows(strongest.table)[0][7] == "believed"
    marked = replace(
        found.models[0], naming_ids=frozenset({found.models[0].edges[found.pairs[0]].statement_id})
    )
    of_marked = BeliefComparison([marked, found.models[1]])
    rows = next(belief_comparison_exhibits(of_marked, "peoples", "01")).table.rows
    assert [row[1].endswith("(names a group)") for row in rows].count(True) == 1
    assert shown_rows(agreement.table)[0][:2] == ["believer", "weaker (1)"]
    assert shown_rows(agreement.table)[0][5] == str(two.both_believed)
    assert "believer: 0.0" in agreement.table.note
    keys = [e.key for e in run_exhibits(RunData(run))]
    assert {"01-believed-beside", "01-believed-agreement"} <= set(keys)


def test_a_report_of_two_runs_holds_their_beliefs_beside_each_other(
    run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(merge, "read_vectors", no_model)
    other = StoredRun(run.store, replace(run.record, name="again", model=ModelInfo("weaker", "1")))
    run.store.begin_run(other.record)
    run.store.record_round(
        other.id, "none", 0, [replace(g, run_id=other.id) for g in run.generations()]
    )
    run.store.set_status(other.id, "complete")
    assert MultiRunData([run, other]).beliefs("peoples") is None
    weaker = believer(own=4.0)
    weaker.info = other.record.model
    probe_beliefs(run, believer())
    probe_beliefs(other, weaker)
    path = tmp_path / "several.html"
    write_multi_run([run, other], path)
    page = path.read_text("utf-8")
    assert '<section id="beliefs">' in page and "How far beliefs about peoples agree." in page
    found = MultiRunData([run, other]).beliefs("peoples")
    assert found is not None
    (two,) = found.iter_agreements()
    told = (
        f"middle believes {two.believed_counts[0]}, again {two.believed_counts[1]}, both "
        f"{two.both_believed}; their"
    )
    assert told in " ".join(page.split())


def test_who_believes_what_alone_and_by_how_much_they_differ(run: StoredRun, texts: Texts) -> None:
    """A model that knows of groups what another does not; and one that is the other again."""
    nothing = believer(own=0.0)
    nothing.info = ModelInfo("blank", "1")
    found = two_sides(run, nothing)
    (two,) = found.iter_agreements()
    assert (
        two.both_believed == 0
        and two.believed_by_one[0] == two.believed_counts[0] > 50
        and two.believed_by_one[1] == 0
    )
    apart = found.compare_lifts(0, 1)
    assert set(apart) == set(found.pairs)
    alone = [apart[found.pairs[n]] for n in found.strongest_pairs]
    assert all(other.q_value < 0.05 and other.difference.low > 0 for other in alone)
    lifts = {key: found.lifts[0, n] - found.lifts[1, n] for n, key in enumerate(found.pairs)}
    for key, other in apart.items():
        assert other.difference.value == pytest.approx(lifts[key], abs=0.2)
    table = next(belief_comparison_exhibits(found, "peoples", "01")).table
    place = [column.name for column in table.columns].index("shown for")
    assert {row[place] for row in table.rows} == {"believer alone"}
    assert str(two.believed_by_one[0]) in table.note
    texts.check_lines(table.note, "believer alone,")
    texts.check_lines(table.note, "other lacks")
    # The other way round, every sign turns.
    turned = BeliefComparison(found.models[::-1]).compare_lifts(0, 1)
    for key, other in apart.items():
        assert turned[key].difference.value == pytest.approx(-other.difference.value)
        assert turned[key].q_value == pytest.approx(other.q_value)
    same = BeliefComparison([found.models[0], replace(found.models[0], label="again")])
    assert all(other.difference.value == 0 for other in same.compare_lifts(0, 1).values())
    # Other names, or none kept: nothing is paired.
    assert (
        BeliefComparison(
            [found.models[0], replace(found.models[1], name_table=None)]
        ).compare_lifts(0, 1)
        == {}
    )


def test_models_that_differ_by_chance_are_seldom_told_apart(simulation: Simulation) -> None:
    """Names of two models before 40 statements, all noise: at most one screen in twenty or so has
    any difference (the family is corrected by Benjamini and Hochberg)."""
    names = [(g, tuple(f"{g}{n}" for n in range(8))) for g in ("a", "b", "c")]
    words = [("are", f"thing{n}") for n in range(40)]
    some = []
    for rng in simulation.worlds(30):
        sides = []
        for label in ("one", "two"):
            own = rng.normal(0, 1, (24, 1)) + rng.normal(0, 1, (24, 40))
            each = own + rng.normal(0, 0.3, (3, 24, 40))
            table = NameTable("c", names, words, ("", "x", "y"), each, each, ["{}"] * 24)
            edges = {(g, Statement(*w).words): edge(w[1], 0.0) for g, _ in names for w in words}
            sides.append(
                ModelBeliefs(
                    label, edges, {g: g for g, _ in names}, {}, FloorCount(0.0, 0), name_table=table
                )
            )
        some.append(
            any(
                other.q_value <= 0.05
                for other in BeliefComparison(sides).compare_lifts(0, 1).values()
            )
        )
    simulation.check("told apart", sum(some), len(some), 0.0, 0.06)


def test_ranks_are_correlated_anew_in_each_draw() -> None:
    x = np.array([1.0, 2.0, 2.0, 5.0, 9.0])
    y = np.array([2.0, 1.0, 3.0, 3.0, 50.0])
    weights = np.array([[1.0, 1, 1, 1, 1], [0, 2, 0, 1, 2]])
    scipy = pytest.importorskip("scipy.stats")
    found = _weighted_spearman(x, y, weights)
    assert found[0] == pytest.approx(scipy.spearmanr(x, y).statistic)
    drawn = np.repeat(np.arange(5), weights[1].astype(int))
    assert found[1] == pytest.approx(scipy.spearmanr(x[drawn], y[drawn]).statistic)


def test_models_are_held_against_each_other_by_words(run: StoredRun) -> None:
    """Two crawls that cut one sentence in two places."""
    other = StoredRun(run.store, replace(run.record, name="again", config={"seed": 1}))
    run.store.begin_run(other.record)
    run.store.record_round(
        other.id, "none", 0, [replace(g, run_id=other.id) for g in run.generations()]
    )
    run.store.set_status(other.id, "complete")
    said_too(run, (0, "love the", "thing300"))
    said_too(other, (1, "love", "the thing300"))
    sides = []
    for each in (run, other):
        believing = probe_beliefs(each, believer())
        sides.append(
            ModelBeliefs.from_run(
                each.name,
                each,
                believing,
                each.find_all(BelievedEdge, asking=believing),
                "peoples",
            )
        )
    found = BeliefComparison.from_models(sides)
    assert found is not None
    assert len(found.pairs) == len(sides[0].edges) == len(sides[1].edges)
    assert ("elves", "love the thing300") in [found.pair_text(key) for key in found.pairs]


def no_model(run: StoredRun, device: str) -> None:
    raise MissingExtra("torch", extra="scorers")


def test_models_of_other_groups_are_not_held_against_each_other(run: StoredRun) -> None:
    """A lift is against the other groups; nor is one model alone beside anything."""
    probe_beliefs(run, believer())
    assert RunData(run).compare_beliefs("peoples") is None
    (believing,) = run.find_all(BeliefRun)
    edges = run.find_all(BelievedEdge, asking=believing)
    one = ModelBeliefs.from_run("one", run, believing, edges, "peoples")
    fewer = [e for e in edges if e.group_id != GROUPS[0].id]
    assert BeliefComparison.from_models([one, one]) is not None
    assert (
        BeliefComparison.from_models(
            [one, ModelBeliefs.from_run("two", run, believing, fewer, "peoples")]
        )
        is None
    )


def test_the_interval_of_the_correlation_holds_its_level(simulation: Simulation) -> None:
    """Lifts of two models that share a part by predicate: r is 0.5, over 40 predicates of 5."""
    held = []
    for rng in simulation.worlds(12):
        shared, *own = rng.normal(0, 1, (3, 40, 5)) + rng.normal(0, 1, (3, 40, 1))
        sides = [
            ModelBeliefs(
                str(m),
                {
                    ("g", f"p{p} o{n}"): edge(f"p{p}", float(lifts[p, n]))
                    for p in range(40)
                    for n in range(5)
                },
                {},
                {},
                FloorCount(0.0, 0),
            )
            for m, lifts in enumerate(shared + x for x in own)
        ]
        found = BeliefComparison.from_models(sides)
        assert found is not None
        (two,) = found.iter_agreements()
        held.append(two.correlation.low <= 0.5 <= two.correlation.high)
    simulation.check("held", sum(held), len(held), 0.9, 0.98)


# the explorer


def test_the_explorer_says_what_is_believed_of_a_statement(run: StoredRun) -> None:
    """A server in the same words as the page, the likeliest group first."""
    found = statements.read_statement_table([run], Selection(), SilentProgress())
    asked_of = Triple("orcs", "love", "thing1")
    assert beliefs.read_statement_beliefs(found, run, asked_of) == []
    probe_beliefs(run, believer())
    (told,) = beliefs.read_statement_beliefs(found, run, asked_of)
    best, *rest = told["rows"]
    assert told["model"] == "believer" and len(rest) == 2
    assert (best["group"], best["verdict"]) == (found.groups.find(GROUPS[1].id), "believed")
    assert (best["names"], best["low"] < best["lift"] < best["high"]) == (6, True)
    block = beliefs.build_block(found)
    every = {(t.predicate_id, t.object_id) for t in (g.triple for g in run.generations()) if t}
    assert block.columns["belief0.predicate"][-1] == len(every)
    assert b'"lift": ' + str(best["lift"]).encode() in b"".join(block._parts)


# the front door


@pytest.fixture
def opened(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda *_, **__: believer())
    return str(run.store.url)  # type: ignore[attr-defined]


def asked(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["evidence", *arguments], standalone_mode=False)


def test_the_command(opened: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = asked("middle", "--store", opened)
    assert "was not probed" in before.stderr and "said, not probed" in before.stdout
    priced = json.loads(asked("--store", opened, "--dry-run", "--json").stdout)
    assert priced["probes"] > 1000 and len(priced["carriers"]) == 3
    assert "made-up names before" in asked("--store", opened, "--dry-run").stdout
    found = json.loads(asked("--model", "openai:x", "--store", opened, "--json").stdout)
    row = next(r for r in found["evidence"] if (r["group"], r["object"]) == ("elves", "thing0"))
    assert row["verdict"] == "said and believed" and row["association"] is None
    assert row["low"] < row["lift"] < row["high"] and row["names"] == 6 and row["said"] == 2
    assert {"leaning", "bound_to_word", "share", "arms", "q_value", "model"} <= row.keys()
    assert len(found["agreement"]) == 3 and {f["score"] for f in found["groups"]} <= {"regard"}
    assert found["floor"]["tested"] > 0 and found["floor"]["found"] < 1
    shown = asked("--store", opened).stdout
    assert "said and believed: " in shown and "Elves love thing0." in shown
    assert "refused but believed: " in shown and "Kendall tau-b" in shown
    assert "of made-up names 0.0" in shown and shown.startswith("beliefs of believer\n")
    order = "; those with a lift of 0 or less first, the most often said first\n"
    assert order not in shown  # all are listed
    monkeypatch.setattr("kgbias.cli.evidence._MAX_SHOWN", 1)
    assert order in asked("--store", opened).stdout


def test_what_is_believed_is_found_again_with_names_held_out(opened: str, texts: Texts) -> None:
    """All names of a group believe the same: every half finds it, whatever the carriers; another
    run that was not probed by names is refused."""

    def again(*arguments: str) -> Any:
        return CliRunner().invoke(
            cli, ["replicate", *arguments, "--store", opened], standalone_mode=False
        )

    texts.check_lines(str(again().exception), "not probed")
    asked("--model", "openai:x", "--store", opened)
    done = again("--model", "openai:x", "--json")
    assert done.exception is None
    found = json.loads(done.stdout)
    ways = {way["by"]: way for way in found["ways"]}
    assert set(ways) == {"names", "roots", "carriers"}
    assert ways["roots"]["tried"] == 0  # elves and elven are one root
    for way in (ways["names"], ways["carriers"]):
        assert way["tried"] > 50 and way["same_sign"]["value"] == 1.0 and way["missed"] == []
        assert way["replication_rate"]["value"] > 0.95
    assert {f["replication_rate"] for f in found["findings"]} == {1.0}
    with kgbias.open(opened) as study:
        rows = study.run("middle").evidence()
        assert of(rows, "elves", "thing0").replication_rate == 1.0
        assert len(study.run("middle").stored.find_all(BeliefRun)) == 1
        with pytest.raises(UsageError, match="processes has no effect"):
            study.run("middle").beliefs.replicate(processes=2)
    shown = again("--other-run", "middle").stdout
    texts.check(shown)
    texts.check_lines(shown, "other half:")
    assert "in the other run" in shown


def test_other_models_that_were_asked_are_named(
    opened: str, caplog: pytest.LogCaptureFixture
) -> None:
    with kgbias.open(opened) as study:
        run = study.run("middle")
        run.evidence("openai:x")
        assert "the store also has those" not in caplog.text
        (first,) = run.stored.find_all(BeliefRun)
        run.stored.put(BeliefRun, [replace(first, model=ModelInfo("zealot", "1"))])
        run.evidence()
        run.beliefs.replicate()
    line = "the beliefs are those of believer; the store also has those of zealot: run.ev"
    assert caplog.text.count(line) == 1  # a remark is made once
    assert "beside each other run.beliefs.models()" in caplog.text


def test_the_front_door(opened: str, texts: Texts) -> None:
    with kgbias.open(opened) as study:
        run = study.run("middle")
        with texts.raises(UsageError):
            run.beliefs.floor()
        rows = run.evidence("openai:x", asking={"probes": 20_000})
        frame = rows.to_frame()
        assert set(frame["verdict"]) == set(kgbias_verdicts())
        assert len(frame) == len(rows) and frame["lift"].notna().all()
        assert run.beliefs.agreement()[0].said_believed.value > 0
        assert run.beliefs.floor().believed > 50 and len(run.beliefs.groups()) == 0
        with pytest.raises(UsageError, match="device has no effect"):
            run.evidence(device="cpu")
        with pytest.raises(UsageError, match="indicators has no effect"):
            run.evidence(indicators="words.toml")
        with pytest.raises(UsageError, match="probes has no effect"):
            run.evidence(asking={"probes": 10})


def test_two_models_of_one_run_in_python(opened: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weaker = believer(own=4.0)
    weaker.info = ModelInfo("weaker", "1")
    with kgbias.open(opened) as study:
        run = study.run("middle")
        run.evidence("openai:x")
        assert len(run.beliefs.models()) == 0
        monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda *_, **__: weaker)
        run.evidence("openai:y")
        (row,) = run.beliefs.models().records()
    assert (row["category"], row["first"], row["second"]) == ("peoples", "believer", "weaker")
    assert row["either"] == row["first_believes"] + row["second_believes"] - row["both"] > 50
    assert row["same_sign"] <= row["either"] < row["pairs"] and row["correlation"] > 0.99


def test_all_that_the_command_shows_is_of_the_model_that_was_named(
    opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, floor and agreement, where the run's own model was asked as well."""

    def shown(spec: str) -> Any:
        return json.loads(asked("--model", spec, "--store", opened, "--json").stdout)

    first = shown("openai:x")
    blind = believer(own=0.0)
    blind.info = ModelInfo("blind", "1")
    monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda *_, **__: blind)
    other = shown("openai:y")
    assert first["floor"]["believed"] > 50 and other["floor"]["believed"] == 0
    assert {row["model"] for row in other["evidence"]} == {"blind"}
    assert first["agreement"] != other["agreement"]


def kgbias_verdicts() -> list[str]:
    from kgbias.evidence import VERDICTS

    return list(VERDICTS)


def test_vectors_need_probes(run: StoredRun) -> None:
    error = asked("--encoder", "minilm", "--store", str(run.store.url)).exception  # type: ignore[attr-defined]
    assert isinstance(error, KgbiasError) and "--model" in str(error)
