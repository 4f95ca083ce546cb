"""What every store must do. The suite runs against each store that `stores` names."""

import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kgbias.errors import RunConflict, RunNotFound, StoreError, UsageError
from kgbias.graph.labels import Label
from kgbias.graph.profiles import READING_STRATEGY
from kgbias.graph.row_types import DrawRow, ExampleRow, ScoreRow, StatementRow, YieldRow
from kgbias.graph.store import Store
from kgbias.graph.stores import open_store
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    Batch,
    BeliefRun,
    BelievedEdge,
    Category,
    ChoiceRun,
    ChosenEdge,
    Flag,
    FlagTable,
    Generation,
    Group,
    GroupName,
    GroupScore,
    Metric,
    NameProbe,
    Run,
    Score,
    Triple,
    WordSetEdge,
    node_id,
)
from kgbias.models.base import ModelInfo
from tests.hostile import HOSTILE_TEXTS
from tests.waiting import DEADLINE_SECONDS

MODEL = ModelInfo("test", "r1")
GROUPS = (Group("Women", "gender"), Group("Men", "gender", ("Males", "Guys")))
RUN = Run("first", MODEL, {"seed": 0}, GROUPS, (Category("gender", "gender", "genders"),))


def said(
    path: str, group: str, predicate: str, object: str, run: Run = RUN, **rest: object
) -> Generation:
    triple = Triple(group, predicate, object)
    values: dict[str, object] = {"arm": "none", "strategy": "object", "iteration": 0, "attempt": 0}
    return Generation(
        run_id=run.id,
        path=path,
        group_id=triple.group_id,
        outcome="ok",
        triple=triple,
        **(values | rest),  # type: ignore[arg-type]
    )


ROUND = [
    said("a", "Women", "love", "food"),
    said("b", "Men", "love", "Food."),
    said("c", "Men", "hate", "rain", prompt="Men hate", answer_key="k1", attempt=1),
    said("d", "Men", "love", "food"),
]


def test_a_run_comes_back_as_it_was(store: Store) -> None:
    begun = store.begin_run(RUN)
    assert (begun.id, begun.name, begun.model, begun.config) == (RUN.id, "first", MODEL, RUN.config)
    assert begun.groups == (GROUPS[0], Group("Men", "gender", ("Guys", "Males")))
    assert begun.categories == RUN.categories
    assert begun.created and begun.version
    assert store.begin_run(RUN) == begun
    store.set_status(RUN.id, "complete")
    assert store.find_run("first").status == "complete"


def test_newest_run_and_unknown_runs(store: Store) -> None:
    with pytest.raises(RunNotFound, match="has no runs"):
        store.find_run()
    store.begin_run(RUN)
    second = store.begin_run(Run("second", MODEL, {"seed": 1}, GROUPS))
    assert store.find_run().name == "second"
    store.record_round(second.id, "none", 0, [replace(ROUND[0], run_id=second.id)])
    pairs = store.begin_run(Run("later", MODEL, {"seed": 2}, GROUPS, kind="pairs"))
    answered = replace(ROUND[0], run_id=pairs.id, triple=None)
    store.record_round(pairs.id, "none", 0, [answered])
    assert store.find_run().name == "second"  # the newest that says something of a group
    assert store.find_run(kind="pairs").name == "later"
    with pytest.raises(
        RunNotFound, match=r"has no run of stories: kgbias.methods.stories makes one"
    ):
        store.find_run(kind="stories")
    with pytest.raises(RunNotFound, match="choose from first, second, later"):
        store.find_run("third")


def test_a_name_belongs_to_one_configuration(store: Store) -> None:
    store.begin_run(RUN)
    with pytest.raises(RunConflict):
        store.begin_run(Run("first", MODEL, {"seed": 1}, GROUPS))
    with pytest.raises(RunConflict):
        store.begin_run(Run("other name", MODEL, {"seed": 0}, GROUPS))
    assert [s.run.name for s in store.summaries()] == ["first"]


def test_answers_are_kept_once(store: Store) -> None:
    answer = Answer("k1", MODEL.id, "raw \x00 text ü", "stop", 3, 5, 0.5, '{"a":1}')
    store.keep_answers([answer])
    store.keep_answers([Answer("k1", MODEL.id, "another", "stop")])
    assert store.answers(["k1", "k2"]) == {"k1": answer}
    many = [Answer(f"m{n}", MODEL.id, str(n), "stop") for n in range(1200)]
    store.keep_answers(many)
    assert len(store.answers([a.key for a in many])) == 1200


def test_batches_are_noted_until_they_are_dropped(store: Store) -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    batch = Batch("b1", "asked", ("k1", "k2"), "{}", noon)
    later = replace(batch, name="b2", created=noon.replace(hour=13), id="batch_2")
    for one in (later, batch, replace(batch, name="b3", asked="otherwise")):
        store.keep_batch(one)
    assert store.batches("asked") == [batch, later] and not store.batches("never")
    store.keep_batch(known := replace(batch, id="batch_1", keys=("k2",)))
    assert store.batches("asked") == [known, later]
    for name in ("b1", "b1", "b3"):
        store.drop_batch(name)
    assert store.batches("asked") == [later] and not store.batches("otherwise")


def test_generations_come_back_as_they_were(store: Store) -> None:
    store.begin_run(RUN)
    shown = (ROUND[0].triple.id, ROUND[1].triple.id)  # type: ignore[union-attr]
    later = said("e", "Women", "fear", "rain", iteration=1, shown=shown, count=3)
    refused = Generation(RUN.id, "f", GROUPS[0].id, "none", "object", 1, 0, "refused", "a filter")
    store.record_round(RUN.id, "none", 0, ROUND)
    store.record_round(RUN.id, "none", 1, [later, refused])
    assert list(store.generations(RUN.id)) == [*ROUND, later, refused]


def test_recording_twice_changes_nothing_and_again_replaces(store: Store) -> None:
    store.begin_run(RUN)
    for _ in range(2):
        store.record_round(RUN.id, "none", 0, ROUND)
    assert len(list(store.generations(RUN.id))) == 4
    store.record_round(RUN.id, "none", 0, ROUND[:1])
    assert list(store.generations(RUN.id)) == ROUND[:1]
    store.record_round(RUN.id, "both", 0, [said("x", "Men", "are", "tall", arm="both")])
    assert len(list(store.generations(RUN.id))) == 2


def test_triples_meet_by_content_and_count_what_was_said(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    views = store.triples(RUN.id)
    assert [(v.group, v.predicate, v.object, v.count) for v in views] == [
        ("Women", "love", "food", 1),  # groups in the order of the seeds
        ("Men", "hate", "rain", 1),
        ("Men", "love", "food", 2),  # "Food." is the same object, shown as first said
    ]


def test_runs_share_nodes_but_not_counts(store: Store) -> None:
    other = Run("second", MODEL, {"seed": 1}, GROUPS)
    for run in (RUN, other):
        store.begin_run(run)
        store.record_round(run.id, "none", 0, [said("a", "Men", "love", "food", run)])
    first, second = store.triples(RUN.id), store.triples(other.id)
    assert first == second
    assert first[0].count == 1


def test_summaries_count(store: Store) -> None:
    store.begin_run(RUN)
    store.keep_answers([Answer("k1", MODEL.id, "x", "stop", 7, 2)])
    bad = [
        Generation(RUN.id, f"z{n}", GROUPS[0].id, "none", "object", 0, n, outcome)  # type: ignore[arg-type]
        for n, outcome in enumerate(
            ["refused", "unparsable", "unparsable", "echo", "failed", "nonsense"]
        )
    ]
    read = Generation(
        RUN.id, "r", GROUPS[0].id, "none", READING_STRATEGY, 0, 1, "refused"
    )  # of a story
    store.record_round(RUN.id, "none", 0, [*ROUND, *bad, read])
    other = replace(RUN, name="other", config={"seed": 2})
    store.begin_run(other)
    summary, empty = store.summaries()
    assert [store.summary(RUN.id), store.summary(other.id)] == [summary, empty]
    assert store.runs() == [summary.run, empty.run]
    assert (empty.triples, empty.statements, empty.generations) == (0, 0, 0)
    assert (summary.triples, summary.statements, summary.generations) == (3, 4, 10)
    assert (summary.refused, summary.invalid, summary.echoes, summary.failed) == (1, 2, 1, 1)
    assert (summary.nonsense, summary.resampled) == (1, 6)
    assert (summary.prompt_tokens, summary.completion_tokens) == (7, 2)


def test_scores_and_the_metric_that_speaks_for_a_run(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    ids = [v.id for v in store.triples(RUN.id)]
    old, new = Metric("regard", "a", "1"), Metric("regard", "a", "2")
    store.save_scores(RUN.id, old, [Score(id, 0.5, "positive", {"positive": 0.7}) for id in ids])
    assert store.scored_triples(old, ids) == set(ids)
    assert store.scored_triples(new, ids) == set()
    assert {v.scores["regard"].value for v in store.triples(RUN.id)} == {0.5}
    store.save_scores(RUN.id, new, [Score(ids[0], -1.0, "negative")])
    views = store.triples(RUN.id)
    assert views[0].scores["regard"] == Score(ids[0], -1.0, "negative")
    assert views[1].scores == {}
    assert store.metrics(RUN.id) == {"regard": new}
    assert store.scorers(RUN.id) == sorted([old, new], key=lambda metric: metric.id)
    found = store.scores(old, [*ids, "elsewhere"])
    assert found == {id: Score(id, 0.5, "positive", {"positive": 0.7}) for id in ids}
    assert set(store.scores(new, ids)) == {ids[0]}
    assert store.scores(Metric("regard", "a", "3"), ids) == {}


def test_group_scores(store: Store) -> None:
    store.begin_run(RUN)
    scores = [
        GroupScore(3.0, 1.0, 5.0, 20, GROUPS[0].id, "overall_regard", "bootstrap"),
        GroupScore(-1.0, math.nan, math.nan, 1, GROUPS[1].id, "overall_regard"),
    ]
    store.put(RUN.id, GroupScore, scores)
    store.put(RUN.id, GroupScore, scores)
    found = {s.group_id: s for s in store.find_all(RUN.id, GroupScore)}
    assert found[GROUPS[0].id] == scores[0]
    assert math.isnan(found[GROUPS[1].id].low) and found[GROUPS[1].id].n == 1
    assert len(found) == 2


def test_figures_of_arms_stand_beside_each_other_and_are_replaced_by_name(store: Store) -> None:
    store.begin_run(RUN)
    women = GROUPS[0].id
    figures = [
        GroupScore(3.0, 1.0, 5.0, 20, women, "overall_regard", "bootstrap", arm)
        for arm in ("none", "prefix")
    ]
    other = GroupScore(0.5, 0.4, 0.6, 9, women, "toxicity_mean", "bootstrap")
    store.put(RUN.id, GroupScore, [*figures, other])
    assert store.find_all(RUN.id, GroupScore) == [*figures, other]
    store.put(RUN.id, GroupScore, figures[:1], replacing={"measure": ["overall_regard"]})
    assert store.find_all(RUN.id, GroupScore) == [figures[0], other]
    store.put(RUN.id, GroupScore, [], replacing={"measure": ["toxicity_mean"]})
    assert store.find_all(RUN.id, GroupScore) == figures[:1]


def test_triples_by_arm_have_the_counts_of_their_arm(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    said_again = [
        said("x", "Men", "love", "food", arm="prefix", count=5),
        said("y", "Women", "are", "tall", arm="prefix"),
    ]
    store.record_round(RUN.id, "prefix", 0, said_again)
    metric = Metric("regard", "rule", "1")
    score = Score(said_again[0].triple.id, 0.5, "positive")  # type: ignore[union-attr]
    store.save_scores(RUN.id, metric, [score])
    views = store.triples(RUN.id, by_arm=True)
    assert [(v.arm, v.group, v.predicate, v.object, v.count) for v in views] == [
        ("prefix", "Women", "are", "tall", 1),
        ("none", "Women", "love", "food", 1),
        ("none", "Men", "hate", "rain", 1),
        ("none", "Men", "love", "food", 2),
        ("prefix", "Men", "love", "food", 5),
    ]
    assert [v.scores.get("regard") for v in views] == [None, None, None, score, score]
    assert {v.arm for v in store.triples(RUN.id)} == {""}
    assert {(v.object, v.count) for v in store.triples(RUN.id) if v.group == "Men"} == {
        ("food", 7),
        ("rain", 1),
    }


def test_what_was_shown_comes_with_its_words(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    shown = (ROUND[0].triple.id, ROUND[2].triple.id)  # type: ignore[union-attr]
    later = said("e", "Women", "fear", "Rain!", iteration=1, attempt=2, shown=shown, count=3)
    refused = Generation(
        RUN.id, "f", GROUPS[0].id, "none", "object", 1, 0, "refused", "a filter", shown=shown
    )
    store.record_round(RUN.id, "none", 1, [later, refused])
    assert list(store.iter_example_rows(RUN.id)) == [
        ExampleRow(
            later.id,
            later.triple.id,
            "none",
            2,
            3,
            "fear",
            "Rain!",  # type: ignore[union-attr]
            (("love", "food"), ("hate", "rain")),
        )
    ]


def test_draws_are_read_with_what_they_asked_and_yielded(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    refused = Generation(
        RUN.id,
        "f",
        GROUPS[0].id,
        "none",
        "object",
        1,
        0,
        "refused",
        "a filter",
        template="object@1.2:completion",
        prompt="Some \x00 words",
    )
    store.record_round(RUN.id, "none", 1, [refused])
    found = {d.generation_id: d for d in store.iter_draw_rows(RUN.id)}
    assert set(found) == {g.id for g in (*ROUND, refused)}
    for g in store.generations(RUN.id):
        t = g.triple
        assert found[g.id] == DrawRow(
            g.id,
            g.path,
            g.group_id,
            g.arm,
            g.strategy,
            g.iteration,
            g.attempt,
            g.template,
            g.prompt,
            t and t.id,
            t and t.predicate_id,
            g.count,
        )


def test_the_state_changes_with_every_write(store: Store) -> None:
    store.begin_run(RUN)
    first = store.content_version()
    if first is None:  # a server has none
        return
    store.triples(RUN.id)
    assert store.content_version() == first
    store.record_round(RUN.id, "none", 0, ROUND)
    assert store.content_version() != first


def test_the_pulse_tells_of_answers_and_of_statements(store: Store) -> None:
    store.begin_run(RUN)
    before = store.change_token()
    assert store.change_token() == before
    store.keep_answers([Answer("k1", RUN.model.id, "food", "stop")])
    answered = store.change_token()
    assert answered.token != before.token and answered.answers == before.answers + 1
    store.record_round(RUN.id, "none", 0, ROUND)
    said = store.change_token()
    assert said.token != answered.token and said.answers == answered.answers
    state = store.content_version()
    (triple, *_) = store.triples(RUN.id)
    store.add_labels(
        [Label(triple.id, "regard", "negative", "ann", "person", "", "2026", False, "")]
    )
    assert len(store.labels()) == 1 and store.change_token() == said, "a label is not of a run"
    assert state is None or store.content_version() != state


def test_a_run_is_read_in_narrow_rows(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    again = said("y", "Women", "love", "food", arm="prefix", iteration=1, count=4)
    refused = Generation(RUN.id, "f", GROUPS[0].id, "none", "object", 1, 0, "refused", "a filter")
    store.record_round(RUN.id, "prefix", 1, [again, refused])
    triples = {g.triple.id: g.triple for g in ROUND if g.triple}
    assert list(store.iter_statement_rows(RUN.id)) == [
        StatementRow(id, t.group_id, t.predicate_id, t.object_id, t.group, t.predicate, t.object)
        for id, t in sorted(triples.items())
    ]
    assert list(store.iter_yield_rows(RUN.id)) == [
        YieldRow(g.id, g.triple.id, g.arm, g.strategy, g.iteration, g.count)
        for g in store.generations(RUN.id)
        if g.triple
    ]
    first, second = sorted(triples)[:2]
    store.save_scores(RUN.id, Metric("toxicity", "rule", "1"), [Score(first, 0.25)])
    regard = [Score(second, -0.5, "negative", {"negative": 0.5}), Score(first, 0.5, "positive")]
    store.save_scores(RUN.id, Metric("regard", "rule", "0"), [Score(first, 1.0)])
    store.save_scores(RUN.id, Metric("regard", "rule", "1"), regard)
    assert list(store.iter_score_rows(RUN.id)) == [
        ScoreRow("regard", first, 0.5, "positive"),
        ScoreRow("regard", second, -0.5, "negative"),
        ScoreRow("toxicity", first, 0.25, ""),
    ]


def test_a_run_has_statements_once_an_answer_yielded_one(store: Store) -> None:
    store.begin_run(RUN)
    assert not store.has_statements(RUN.id)
    refused = Generation(RUN.id, "f", GROUPS[0].id, "none", "object", 0, 0, "refused", "a filter")
    store.record_round(RUN.id, "none", 0, [refused])
    assert not store.has_statements(RUN.id)
    store.record_round(RUN.id, "none", 1, [said("y", "Women", "love", "food", iteration=1)])
    assert store.has_statements(RUN.id) and not store.has_statements("another")


def test_the_statements_of_an_arm_are_read_one_at_a_time(store: Store) -> None:
    """In the order of `triples`: by the place of the group, those of no seed last, then by text."""
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    more = [
        said(f"p/{n}", *words, arm="prefix", iteration=1, count=n)
        for n, words in enumerate(
            [
                ("Women", "love", "\U0001f600"),
                ("Women", "love", "\uff01 food"),  # before it as text, after it as UTF-16
                ("Orcs", "love", "food"),
                ("Elves", "love", "food"),
                ("Men", "love", "food"),
                ("Men", "hate", "rain"),
            ],
            1,
        )
    ]
    refused = Generation(RUN.id, "f", GROUPS[0].id, "shown", "object", 1, 0, "refused", "a filter")
    store.record_round(RUN.id, "prefix", 1, more)
    store.record_round(RUN.id, "shown", 1, [refused])
    ids = [t.id for t in store.triples(RUN.id)]
    store.save_scores(RUN.id, Metric("toxicity", "rule", "1"), [Score(ids[0], 0.25, "x")])
    regard = [Score(id, -0.5, "negative", {"negative": 0.1 + 0.2}) for id in ids[1:4]]
    store.save_scores(RUN.id, Metric("regard", "rule", "0"), [Score(ids[-1], 1.0)])
    store.save_scores(RUN.id, Metric("regard", "rule", "1"), regard)
    assert store.arms(RUN.id) == ["none", "prefix"]
    triples = store.triples(RUN.id, by_arm=True)
    for arm, count in (("none", 3), ("prefix", 6), ("shown", 0)):
        found = list(store.triples_of_arm(RUN.id, arm))
        assert found == [t for t in triples if t.arm == arm] and len(found) == count


def test_the_answers_of_one_statement_are_read_some_at_a_time(store: Store) -> None:
    store.begin_run(RUN)
    own = [said(f"{n}", "Men", "love", "food", iteration=1, prompt=f"prompt {n}") for n in range(3)]
    elsewhere = said("z", "Men", "love", "food", arm="prefix", iteration=1)
    store.record_round(RUN.id, "none", 0, ROUND)
    later = [replace(g, shown=(ROUND[0].triple.id,)) for g in own]  # type: ignore[union-attr]
    store.record_round(RUN.id, "none", 1, later)
    store.record_round(RUN.id, "prefix", 1, [elsewhere])
    id = elsewhere.triple.id  # type: ignore[union-attr]
    every = [g for g in store.generations(RUN.id) if g.triple and g.triple.id == id]
    in_arm = [g for g in every if g.arm == "none"]
    assert len(in_arm) > 3
    assert store.generations_of_triple(RUN.id, id, "none", offset=0, limit=99) == in_arm
    assert store.generations_of_triple(RUN.id, id, "none", offset=1, limit=2) == in_arm[1:3]
    assert store.generations_of_triple(RUN.id, id, "prefix", offset=0, limit=9) == [elsewhere]
    assert store.generations_of_triple(RUN.id, id, "none", offset=99, limit=9) == []


def test_bulk_load_is_idempotent(store: Store) -> None:
    store.begin_run(RUN)
    many = [said(f"i/{n}", "Men", f"p{n % 7}", f"o{n}", count=2) for n in range(3000)]
    assert store.load_import(RUN.id, iter(many)) == 3000
    before = store.triples(RUN.id)
    assert len(before) == 3000 and {v.count for v in before} == {2}
    store.load_import(RUN.id, iter(many))
    assert store.triples(RUN.id) == before


def test_hostile_text_comes_back_or_is_mended(store: Store) -> None:
    store.begin_run(RUN)
    texts = ["'; DROP TABLE triple; --", "\x00nul", "a\u202eb", "😀" * 50, "x" * 10_000, "{{7*7}}"]
    batch = [said(f"h{n}", "Men", "say", text) for n, text in enumerate(texts)]
    store.record_round(RUN.id, "none", 0, [*batch, said("lone", "Men", "say", "half \ud83d")])
    objects = {v.object for v in store.triples(RUN.id)}
    assert objects == {*texts, "half ?"}


def test_a_failed_write_leaves_nothing_behind(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    broken = said("y", "Men", "love", "rain", count="many " * 3, iteration=0)
    object.__setattr__(broken, "count", object())
    with pytest.raises(Exception):  # noqa: B017  # each store has its own type for it
        store.record_round(RUN.id, "none", 0, [broken])
    assert list(store.generations(RUN.id)) == ROUND


def test_unknown_schemes_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mysql"):
        open_store("mysql://localhost")
    with pytest.raises(StoreError, match="no store at"):
        open_store(str(tmp_path / "none.db"), create=False)
    (tmp_path / "text.db").write_text("this is no database, and long enough to be sure of it" * 50)
    with pytest.raises(StoreError, match="cannot open"):
        open_store(str(tmp_path / "text.db"))


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    import sqlite3

    path = str(tmp_path / "kgbias.db")
    open_store(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="upgrade kgbias"):
        open_store(path)


def test_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from kgbias.graph.stores import open_store; "
        "print(len(open_store(sys.argv[1]).summaries()))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "new.db")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=DEADLINE_SECONDS)[0] for process in running] == ["0\n"] * 4


def test_readers_see_a_crawl_while_it_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "kgbias.db")
    writer, reader = open_store(path), open_store(path)
    writer.begin_run(RUN)
    writer.record_round(RUN.id, "none", 0, ROUND)
    assert len(reader.triples(RUN.id)) == 3
    writer.record_round(RUN.id, "none", 1, [said("n", "Men", "fear", "mice", iteration=1)])
    assert len(reader.triples(RUN.id)) == 4


def association(name: str, edges: tuple[WordSetEdge, ...] = (), p: float = 0.01) -> AssociationNode:
    return AssociationNode(
        f"id-{name}",
        name,
        "weat",
        MODEL,
        1.25,
        p,
        0.5,
        2.0,
        {"n": {"x": 2}, "é": None},
        edges,
        p_published=0.001,
        p_holm=p,
        p_bh=0.02,
        n_x=8,
        n_y=9,
    )


def test_time_is_added_up(store: Store) -> None:
    store.begin_run(RUN)
    assert [s.seconds for s in store.summaries()] == [None]
    for seconds in (1.5, 0.25):
        store.add_work(RUN.id, seconds)
    store.begin_run(RUN)
    assert [s.seconds for s in store.summaries()] == [1.75]
    assert (store.run_seconds(RUN.id), store.run_seconds("of no run")) == (1.75, None)


def test_forced_choices(store: Store) -> None:
    """A choosing is written as a whole, in place of what it was; another's stays."""
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    first, second = sorted({t.group_id for t in store.triples(RUN.id)})[:2]
    ends = (ROUND[0].triple.predicate_id, ROUND[0].triple.object_id)  # type: ignore[union-attr]
    figures = (0.75, 0.3, 0.9, 0.5, 0.5, -0.25, 1.0, 0.25)
    edges = [
        ChosenEdge(*ends, first, 4, 4, 3, *figures, 6, "leaning", ("a", "b", "c"), ("d",)),
        ChosenEdge(*ends, second, 4, 0, 0),
    ]
    asked = ChoiceRun(MODEL, (("options", "2"),), {"categories": {"n": 1}})
    other = ChoiceRun(MODEL, (("options", "3"),), {"categories": {}})
    for _ in range(2):
        store.put(RUN.id, ChosenEdge, edges, asking=asked)
        store.put(RUN.id, ChoiceRun, [asked])
        store.put(RUN.id, ChosenEdge, edges[:1], asking=other)
        store.put(RUN.id, ChoiceRun, [other])
    assert {c.id: c for c in store.find_all(RUN.id, ChoiceRun)} == {
        asked.id: asked,
        other.id: other,
    }
    assert store.find_all(RUN.id, ChosenEdge, asking=asked) == edges
    own = [e for e in edges if e.statement_id == edges[0].statement_id]
    assert (
        store.find_all(RUN.id, ChosenEdge, asking=asked, statement_id=edges[0].statement_id) == own
    )
    assert store.find_all(RUN.id, ChosenEdge, asking=asked, statement_id="none") == []
    later = replace(asked, record={"categories": {"n": 2}})
    store.put(RUN.id, ChosenEdge, edges[1:], asking=later)
    store.put(RUN.id, ChoiceRun, [later])
    assert store.find_all(RUN.id, ChosenEdge, asking=asked) == edges[1:]
    assert store.find_all(RUN.id, ChosenEdge, asking=other) == edges[:1]
    assert later in store.find_all(RUN.id, ChoiceRun)
    assert store.find_all(RUN.id, ChosenEdge, asking=ChoiceRun(ModelInfo("none"))) == []


def test_beliefs(store: Store) -> None:
    """Names are of several groups or none; probes come bit by bit, and beliefs as a whole."""
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    first, second = sorted({t.group_id for t in store.triples(RUN.id)})[:2]
    names = [
        GroupName("Eldar", first, "{}", "eldar"),
        GroupName("Eldar", second, "{}", "eldar", "narrower"),
        GroupName("Velmari folk", "", "{} folk", "velmari"),
    ]
    store.save_names([*names, GroupName("Unasked", "", "{}", "unasked")])
    store.save_names([replace(names[0], text="eldar", form="{}!"), names[2]])
    names[:2] = [replace(name, form="{}!") for name in names[:2]]
    assert [n.text for n in store.names()] == ["Eldar", "Eldar", "Unasked", "Velmari folk"]

    of = {(t.predicate_id, t.object_id) for t in (g.triple for g in ROUND) if t}
    probes = [NameProbe(*ends, n.id, (-1.5, -0.1)) for ends in of for n in names[1:]]
    probes.sort(key=lambda p: (p.statement_id, p.name_id))
    asked = BeliefRun(MODEL, (("carriers", "2"),), {"floor": {"found": 0.5}})
    other = BeliefRun(MODEL, (("carriers", "3"),))
    store.put(RUN.id, NameProbe, [replace(p, bits=(-9.0,)) for p in probes[1:]], asking=asked)
    assert store.find_all(RUN.id, NameProbe, asking=asked) == [
        replace(p, bits=(-9.0,)) for p in probes[1:]
    ]
    assert store.find_all(RUN.id, BeliefRun) == []  # it is not finished
    for _ in range(2):
        store.put(RUN.id, NameProbe, probes, asking=asked)
        store.put(RUN.id, NameProbe, probes[:1], asking=other)
    assert store.find_all(RUN.id, NameProbe, asking=asked) == probes
    assert store.find_all(RUN.id, NameProbe, asking=other) == probes[:1]
    one = probes[0].statement_id
    assert store.find_all(RUN.id, NameProbe, asking=asked, statement_id=one) == [
        p for p in probes if p.statement_id == one
    ]
    assert store.find_all(RUN.id, NameProbe, asking=asked, statement_id="none") == []
    own = {g.id for g in RUN.groups}
    assert store.names(RUN.id, asked.id) == [n for n in names if n.nonce or n.group_id in own]
    assert store.names(RUN.id, "none") == []

    ends = min(of)
    figures = (2.5, 1.25, 3.75, 8, 0.01, 0.02, 0.001, 0.002, 1.5, "Eldar", "believed")
    edges = [BelievedEdge(*ends, first, *figures), BelievedEdge(*ends, second, 0.5, *figures[1:])]
    for _ in range(2):
        store.put(RUN.id, BelievedEdge, edges, asking=asked)
        store.put(RUN.id, BelievedEdge, edges[:1], asking=other)
        store.put(RUN.id, BeliefRun, [asked])
    assert store.find_all(RUN.id, BelievedEdge, asking=asked) == edges
    assert (
        store.find_all(RUN.id, BelievedEdge, asking=asked, statement_id=edges[0].statement_id)
        == edges
    )
    assert store.find_all(RUN.id, BelievedEdge, asking=asked, statement_id="none") == []
    store.put(RUN.id, BelievedEdge, edges[1:], asking=asked)
    assert store.find_all(RUN.id, BelievedEdge, asking=asked) == edges[1:]
    assert store.find_all(RUN.id, BelievedEdge, asking=other) == edges[:1]
    assert store.find_all(RUN.id, BeliefRun) == [asked]
    assert store.statements(RUN.id, asked.id) == [("hate", "rain"), ("love", "food")]
    store.keep_statements([("own", "no cats"), ("love", "no cats")])  # that nobody said
    unsaid = Triple("", "own", "no cats")
    store.put(
        RUN.id,
        NameProbe,
        [NameProbe(unsaid.predicate_id, unsaid.object_id, names[0].id, (-2.0,))],
        asking=other,
    )
    assert ("own", "no cats") in store.statements(RUN.id, other.id)
    later = replace(asked, record={"floor": {}})
    store.put(RUN.id, BeliefRun, [later])
    assert store.find_all(RUN.id, BeliefRun) == [later]
    assert store.find_faults() == []


def test_flags_of_apx(store: Store) -> None:
    """Flags need no run; a group that a run has is the same node. Writing again replaces."""
    tall = Flag("Women", "tall", "body", 0.25, -2.5)
    flags = (Flag("Thai men", HOSTILE_TEXTS[0], "", 0.0, -3.0), tall)
    first = FlagTable("a", "m", "r", (("dtype", "float32"),), 0.01, 40, flags)
    other = FlagTable("b", "l.csv", "", (), 0.05, 9, (tall,))
    for _ in range(2):
        store.save_flags(first)
        store.save_flags(other)
    store.begin_run(RUN)
    assert store.flags() == [other, first]
    rows = store.query(
        "MATCH (g:SocialGroup)-[:FLAGGED]->(d:Descriptor {text: 'tall'}) "
        "RETURN DISTINCT g.uid AS uid"
    ).rows
    assert rows == [(node_id("group", "women"),)]
    fewer = replace(first, flags=(tall,))
    store.save_flags(fewer)
    assert store.flags() == [other, fewer]
    store.save_flags(replace(first, flags=()))
    assert store.flags() == [other]


def test_association_tests_and_their_edges(store: Store) -> None:
    run = store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    women, men, food = GROUPS[0].id, GROUPS[1].id, node_id("object", "food")
    assert store.known_nodes("group", [women, "none"]) == {women}
    assert store.known_nodes("object", [food, women]) == {food}
    with pytest.raises(UsageError, match="no kind of node"):
        store.known_nodes("spoon", [])
    edges = (
        WordSetEdge("a", "group", men),
        WordSetEdge("a", "object", food),
        WordSetEdge("x", "group", women),
        WordSetEdge("y", "group", men),
    )
    first, second = association("b", edges), association("a", p=math.nan)
    for _ in range(2):
        store.save_associations(run.id, [first])
        store.save_associations(None, [second])
    assert store.associations(run.id) == [first]
    found = store.associations()
    assert [n.test for n in found] == ["a", "b"]
    assert math.isnan(found[0].p_value) and found[0].low == 0.5
    assert (found[0].p_published, found[0].p_bh, found[0].n_x, found[0].n_y) == (0.001, 0.02, 8, 9)
    changed = association("b", edges[:1])
    store.save_associations(run.id, [changed])
    assert store.associations(run.id) == [changed]


STEREOTYPES = """
MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object)
RETURN g.name AS group, s.predicate AS predicate, o.text AS object, s.count AS count,
       s.regard AS regard, s.toxicity AS toxicity
ORDER BY group, predicate, object"""


def test_stereotype_edges_follow_the_run(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    store.set_status(RUN.id, "complete")
    rows = [
        ("Men", "hate", "rain", 1, None, None),
        ("Men", "love", "food", 2, None, None),
        ("Women", "love", "food", 1, None, None),
    ]
    assert store.query(STEREOTYPES, {"run": "first"}).rows == rows
    men = store.triples(RUN.id)[1:]
    store.save_scores(RUN.id, Metric("regard", "a", "1"), [Score(t.id, -0.5) for t in men])
    store.derive_edges(RUN.id)
    rows[:2] = [("Men", "hate", "rain", 1, -0.5, None), ("Men", "love", "food", 2, -0.5, None)]
    assert store.query(STEREOTYPES, {"run": "first"}).rows == rows
    store.record_round(RUN.id, "none", 0, ROUND[:1])
    store.set_status(RUN.id, "complete")
    assert store.query(STEREOTYPES, {"run": "first"}).rows == rows[2:]


def test_queries_give_plain_values_and_cannot_write(store: Store) -> None:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND[:1])
    store.set_status(RUN.id, "complete")
    text = (
        "MATCH p = (g:SocialGroup {name: $g})-[s:STEREOTYPE]->(o:Object) RETURN o, s, p, [1] AS l"
    )
    result = store.query(text, {"g": "Women"})
    women, food = GROUPS[0].id, node_id("object", "food")
    group = {":label": "SocialGroup", "name": "Women", "uid": women}
    object = {":label": "Object", "name": "food", "text": "food", "uid": food}
    ((o, s, path, number),) = result.rows
    assert result.columns == ("o", "s", "p", "l")
    assert (o, number) == (object, [1])
    assert (s[":type"], s["predicate"], s["count"]) == ("STEREOTYPE", "love", 1)
    assert [path[0]["name"], path[1], path[2]] == ["Women", s, object]
    assert {k: path[0][k] for k in group} == group
    for broken in (
        "CREATE (n:Object {uid: 'x'})",
        "MATCH (n) DETACH DELETE n",
        "no query",
        "RETURN $x",
    ):
        with pytest.raises(UsageError, match="the query cannot be run"):
            store.query(broken)
    assert store.query("MATCH (t:Triple) RETURN t.text AS text").rows == [("Women love food",)]
