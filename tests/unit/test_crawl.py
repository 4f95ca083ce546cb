"""The crawl as a pure function: against a scripted model, so that every answer is known."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kgbias.crawl import crawler
from kgbias.crawl.config import CrawlConfig, TargetWidth, read_crawl_config
from kgbias.crawl.configure import configure
from kgbias.crawl.crawler import crawl, read_crawl_result, time_answers
from kgbias.crawl.seeds import SeedCategory, choose_seeds
from kgbias.crawl.stopping import MIN_INTERVAL_PROMPTS, Gauge
from kgbias.crawl.strategies import ObjectDiversity, PredicateDiversity, TriplePool
from kgbias.errors import Interrupted, RunConflict, UsageError
from kgbias.graph.draws import Draws
from kgbias.graph.selection import select_statements
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Category, Generation, Group, Metric, Score, Triple
from kgbias.io.progress import SilentProgress
from kgbias.models.base import Completion, Request
from kgbias.models.budget import Budget
from kgbias.models.truncate import Truncation
from kgbias.stats.inference import STATISTICS, bootstrap
from tests.scripted_model import JoinableModel, ScriptedModel
from tests.texts import Texts

GENDER = tuple(choose_seeds("any", ["gender"]))
SMALL = CrawlConfig(seeds=GENDER, samples=2, iterations=2, predicate_prompts=3, object_prompts=3)


def talkative(request: Request) -> str:
    """A model with a small vocabulary that depends on the request's stream alone."""
    rng = Random(request.seed)
    assert isinstance(request.prompt, str)
    object = rng.choice(["food", "sport", "rain", "music", "work", "friends"])
    if request.prompt.endswith("#"):
        return f" {rng.choice(['enjoy', 'fear', 'make', 'are'])}\nA: {object}"
    return f" {object}."


def sloppy(request: Request) -> str:
    """Every third answer is refused or malformed."""
    return [" ", "This question is offensive.", talkative(request)][request.seed % 3]


def picture(store: SQLiteStore) -> list[Generation]:
    return list(store.generations(store.find_run().id))


def test_counts_of_the_published_method(store: SQLiteStore) -> None:
    config = CrawlConfig(seeds=GENDER)
    result = crawl(config, ScriptedModel(talkative), store)
    generations = picture(store)
    assert len(generations) == config.place_count == 300  # 100 a seed (section 5.3)
    by_strategy = Counter((g.strategy, g.iteration) for g in generations)
    assert by_strategy["initialise", 0] == 3 * 20
    for iteration in range(1, 5):
        assert by_strategy["predicate", iteration] == by_strategy["object", iteration] == 30
    assert sum(t.count for t in store.triples(result.run.id)) == 300
    assert result.run.status == store.find_run().status == "complete"
    # Three seeds: two in-context triples, as the paper does for gender.
    assert {len(g.shown) for g in generations if g.strategy == "predicate"} == {2}


@pytest.mark.parametrize(("seconds", "asked"), [(0.1, 60), (2.0, 8 + 16), (60.0, 8 + 8)])
def test_a_trial_is_as_long_as_its_time_allows(
    seconds: float, asked: int, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(talkative)
    monkeypatch.setattr(crawler, "monotonic", lambda: seconds * len(model.requests))
    config = CrawlConfig(seeds=GENDER)
    assert time_answers(config, model, store, SilentProgress(), 32.0) == pytest.approx(seconds)
    assert len(model.requests) == asked


def test_prompts_are_the_published_ones(store: SQLiteStore) -> None:
    crawl(SMALL, ScriptedModel(talkative), store)
    prompts = {g.strategy: g.prompt for g in picture(store)}
    assert prompts["initialise"].startswith(("Men ", "Women ", "Non-binary people "))
    lines = prompts["predicate"].split("\n")
    assert [line[:3] for line in lines] == ["Q: ", "A: ", "Q: ", "A: ", "Q: "]
    assert lines[-1].endswith(" #")
    lines = prompts["object"].split("\n")
    assert lines[-1] == "A:"
    predicates = {line.split(" # ")[1] for line in lines if line.startswith("Q: ")}
    assert len(predicates) == 1


def test_examples_are_of_other_subjects_and_earlier_rounds(store: SQLiteStore) -> None:
    crawl(SMALL, ScriptedModel(talkative), store)
    generations = picture(store)
    born: dict[str, int] = {}
    for g in generations:
        if g.triple is not None:
            born.setdefault(g.triple.id, g.iteration)
    subjects = {g.triple.id: g.triple.group_id for g in generations if g.triple}
    for g in generations:
        shown = [subjects[id] for id in g.shown]
        assert g.group_id not in shown
        assert len(set(shown)) == len(shown)
        assert all(born[id] < g.iteration for id in g.shown)


def test_again_asks_nothing_and_changes_nothing(store: SQLiteStore) -> None:
    model = ScriptedModel(sloppy)
    first = crawl(SMALL, model, store)
    before, asked = picture(store), len(model.requests)
    second = crawl(SMALL, model, store)
    assert (second.asked_count, second.cached_count, len(model.requests)) == (0, asked, asked)
    assert picture(store) == before
    assert first.outcomes == second.outcomes


def test_batches_and_order_of_answers_change_nothing(tmp_path: Path) -> None:
    pictures = []
    for batch in (1, 32):
        store = SQLiteStore(str(tmp_path / f"{batch}.db"))
        crawl(SMALL, ScriptedModel(sloppy, batch=batch), store)
        pictures.append(picture(store))
    assert pictures[0] == pictures[1]


def test_what_is_asked_again_joins_what_is_asked(tmp_path: Path) -> None:
    """Rejected answers are asked for again in the same call, with the same result; refused ones
    wait, until a few have shown whether that is of use."""
    runs = []
    for number, kind in enumerate((ScriptedModel, JoinableModel)):
        store, model = SQLiteStore(str(tmp_path / f"{number}.db")), kind(sloppy, batch=5)
        result = crawl(SMALL, model, store)
        runs.append((picture(store), result.outcomes, result.retry_count, model.calls))
        crawl(SMALL, model, store)  # from the log, through both ways
        assert picture(store) == runs[-1][0] and len(model.requests) == result.asked_count
    apart, joined = runs
    assert apart[:3] == joined[:3]
    assert joined[3] < apart[3]
    rounds = 1 + SMALL.rounds
    never_refused = JoinableModel(lambda r: [" ", talkative(r)][r.seed % 2], batch=5)
    crawl(SMALL, never_refused, SQLiteStore(str(tmp_path / "c.db")))
    assert never_refused.calls == rounds


def test_another_seed_is_another_crawl(store: SQLiteStore) -> None:
    crawl(SMALL, ScriptedModel(talkative), store)
    first = {t.id for t in store.triples(store.find_run().id)}
    crawl(replace(SMALL, seed=1), ScriptedModel(talkative), store)
    assert {t.id for t in store.triples(store.find_run().id)} != first


def test_more_groups_keep_what_was_answered(store: SQLiteStore) -> None:
    model = ScriptedModel(talkative)
    crawl(replace(SMALL, iterations=0), model, store)
    more = replace(SMALL, iterations=0, seeds=(*GENDER, *choose_seeds("any", ["religion"])))
    result = crawl(more, model, store)
    assert (result.cached_count, result.asked_count) == (3 * 8, 12 * 8)


def test_invalid_answers_are_resampled_and_counted(store: SQLiteStore) -> None:
    result = crawl(SMALL, ScriptedModel(sloppy), store)
    generations = picture(store)
    assert result.outcomes["refused"] and result.outcomes["unparsable"]
    assert result.outcomes == Counter(g.outcome for g in generations)
    assert result.outcomes["ok"] + result.unfilled_count == SMALL.place_count
    (summary,) = store.summaries()
    assert summary.refused == result.outcomes["refused"]
    assert summary.invalid == result.outcomes["unparsable"]
    assert summary.resampled == summary.generations - SMALL.place_count
    retried = [g for g in generations if g.attempt]
    assert retried and {g.answer_key for g in retried}.isdisjoint(
        g.answer_key for g in generations if not g.attempt
    )


def test_a_model_that_never_answers_well_ends(store: SQLiteStore) -> None:
    config = replace(SMALL, max_attempts=3)
    refusing, progress = ScriptedModel(lambda _: "This question is offensive."), Notes()
    result = crawl(config, refusing, store, progress=progress)
    # Without any triple there is nothing to show: only the initialisation asks.
    # And once twenty were refused again, nothing that was refused is asked again.
    assert result.outcomes == {"refused": 3 * 8 + 20} and result.retry_count == 20
    assert result.unfilled_count == 3 * 8
    stored = read_crawl_result(StoredRun.find(store))
    assert (stored.retry_count, stored.unfilled_count) == (20, 3 * 8)
    assert store.triples(result.run.id) == []
    assert sum(note.startswith("20 refused prompts were asked") for note in progress.notes) == 1


def test_a_place_that_is_filled_at_the_eleventh_attempt_is_filled(store: SQLiteStore) -> None:
    asked: Counter[str] = Counter()

    def late(request: Request) -> str:
        asked[str(request.prompt)] += 1
        return talkative(request) if asked[str(request.prompt)] > 10 else " "

    config = replace(SMALL, samples=1, iterations=0, max_attempts=12)
    result = crawl(config, ScriptedModel(late), store)
    assert result.outcomes == {"ok": 12, "unparsable": 120} and result.unfilled_count == 0
    assert read_crawl_result(StoredRun.find(store)).unfilled_count == 0


def test_failures_are_recorded_not_cached(store: SQLiteStore) -> None:
    broken = ScriptedModel(lambda _: Completion("", "error", error="no route"))
    result = crawl(replace(SMALL, iterations=0), broken, store)
    assert result.outcomes == {"failed": 24}
    assert "no route" in picture(store)[0].reason
    mended = crawl(replace(SMALL, iterations=0), ScriptedModel(talkative), store)
    assert mended.outcomes == {"ok": 24}
    assert {g.outcome for g in picture(store)} == {"ok"}


@pytest.mark.parametrize("stop_at", [1, 20, 60])
def test_ctrl_c_and_go_on(tmp_path: Path, stop_at: int) -> None:
    whole = SQLiteStore(str(tmp_path / "whole.db"))
    crawl(SMALL, ScriptedModel(sloppy), whole)

    answered = []

    def impatient(request: Request) -> str:
        if len(answered) == stop_at:
            answered.append(None)
            raise KeyboardInterrupt
        answered.append(request.seed)
        return sloppy(request)

    store = SQLiteStore(str(tmp_path / "stopped.db"))
    model = ScriptedModel(impatient)
    with pytest.raises(Interrupted, match="running this again continues"):
        crawl(SMALL, model, store)
    assert store.find_run().status == "stopped"
    crawl(SMALL, model, store)
    assert picture(store) == picture(whole)
    seeds = [seed for seed in answered if seed is not None]
    assert len(seeds) == len(set(seeds))  # nothing was asked twice
    assert store.find_run().status == "complete"


def test_budgets_stop_cleanly(store: SQLiteStore) -> None:
    model = ScriptedModel(talkative)
    with pytest.raises(Interrupted, match="10 requests"):
        crawl(SMALL, model, store, budget=Budget(max_requests=10))
    assert len(model.requests) == 10
    with pytest.raises(Interrupted, match="tokens"):
        crawl(SMALL, model, store, budget=Budget(max_tokens=50))
    crawl(SMALL, model, store)
    assert len(model.requests) == SMALL.place_count


def test_arms_put_their_text_where_the_paper_does(store: SQLiteStore) -> None:
    crawl(
        replace(SMALL, arms=("none", "prefix", "header", "both")), ScriptedModel(talkative), store
    )
    generations = picture(store)
    for g in generations:
        prefixed = g.prompt.startswith("I'm not sexist but ")
        headed = g.prompt.startswith("Offensive Generalizations\n\nQ: ")
        first = g.strategy == "initialise"
        assert prefixed == (first and g.arm in ("prefix", "both"))
        assert headed == (not first and g.arm in ("header", "both"))
    assert Counter(g.arm for g in generations) == dict.fromkeys(
        ("none", "prefix", "header", "both"), SMALL.place_count
    )


def test_target_coverage(tmp_path: Path) -> None:
    config = replace(SMALL, iterations=30, target_coverage=0.7, arms=("none", "both"))
    whole = SQLiteStore(str(tmp_path / "whole.db"))
    result = crawl(config, ScriptedModel(sloppy), whole)
    assert 1 < result.iterations < 30
    per_round = config.predicate_prompts + config.object_prompts
    rounds: dict[tuple[str, str], set[int]] = {}
    for g in picture(whole):
        rounds.setdefault((g.arm, g.group_id), set()).add(g.iteration)
    assert len({len(r) for r in rounds.values()}) > 1  # each group stops for itself
    for group in result.groups:
        assert group.coverage >= 0.7
        assert group.statements >= per_round
    counted = Counter(t.count for t in whole.triples(result.run.id))
    assert sum(g.statements for g in result.groups) == sum(n * c for n, c in counted.items())

    # It decides from the answers alone: the same in parts, in any order of answers.
    store = SQLiteStore(str(tmp_path / "parts.db"))
    model = ScriptedModel(sloppy, batch=3)
    for _ in range(100):
        try:
            crawl(config, model, store, budget=Budget(max_requests=150))
            break
        except Interrupted:
            continue
    assert picture(store) == picture(whole)
    assert len(model.requests) == len({r.seed for r in model.requests}) == result.asked_count


def test_several_answers_to_a_prompt(tmp_path: Path) -> None:
    config = replace(SMALL, answers=3)
    whole = SQLiteStore(str(tmp_path / "whole.db"))
    result = crawl(config, ScriptedModel(sloppy), whole)
    found = picture(whole)
    assert (
        result.outcomes["ok"] + result.unfilled_count == config.place_count == 3 * SMALL.place_count
    )
    first = {g.path: g.prompt for g in found if not g.attempt}
    assert len(first) == config.place_count and len(set(first.values())) <= SMALL.place_count
    places = {path.rpartition(".")[0] for path in first}
    assert len(places) == SMALL.place_count
    for place in places:
        assert len({first[f"{place}.{n}#0"] for n in range(3)}) == 1
    assert len({g.answer_key for g in found}) == len(found) == result.asked_count

    # The first answer is that of a crawl with one: it is not asked for again.
    alone = crawl(replace(SMALL, iterations=0), ScriptedModel(sloppy), whole)
    assert alone.cached_count >= 3 * 8

    store = SQLiteStore(str(tmp_path / "parts.db"))
    for _ in range(100):
        try:
            crawl(config, ScriptedModel(sloppy, batch=3), store, budget=Budget(max_requests=50))
            break
        except Interrupted:
            continue
    assert picture(store) == found


def test_one_answer_is_the_configuration_that_it_was() -> None:
    assert replace(SMALL, answers=1, redraw=False).as_dict() == SMALL.as_dict()
    assert not {"answers", "redraw"} & SMALL.as_dict().keys()
    several = replace(SMALL, answers=2, redraw=True)
    assert several.as_dict() == SMALL.as_dict() | {"answers": 2, "redraw": True}
    categories = [seed.category for seed in GENDER]
    assert read_crawl_config(several.as_dict(), categories).as_dict() == several.as_dict()


@pytest.mark.parametrize("changed", [{"answers": 2}, {"redraw": True}])
def test_nothing_is_drawn_again_where_nothing_is_drawn(
    changed: dict[str, Any], texts: Texts
) -> None:
    with texts.raises(UsageError):
        replace(SMALL, temperature=0.0, **changed)


def regarded(sentences: Sequence[str]) -> list[Score | None]:
    """What is said of women differs in regard, what is said of others hardly does, and nonsense
    does not count."""
    found: list[Score | None] = []
    for sentence in sentences:
        number = sum(map(ord, sentence)) % 11
        label = "negative" if number < (5 if "Women" in sentence else 1) else "positive"
        found.append(None if "rain" in sentence else Score("", 1.0, label))
    return found


def test_target_ci_width(tmp_path: Path) -> None:
    width = TargetWidth.parse("regard=0.5")
    config = replace(SMALL, answers=2, iterations=30, target_ci_width=width)
    gauge = Gauge("regarded:1", regarded)
    whole = SQLiteStore(str(tmp_path / "whole.db"))
    result = crawl(config, ScriptedModel(talkative), whole, gauge=gauge)
    assert result.run.config["target_ci_width"] == "regard=0.5"
    assert result.run.config["gauge"] == "regarded:1"
    assert read_crawl_config(result.run.config, result.run.categories).as_dict() == config.as_dict()
    rounds = {group: 0 for group in GENDER[0].groups}
    for g in picture(whole):
        name = next(own.name for own in config.groups if own.id == g.group_id)
        rounds[name] = max(rounds[name], g.iteration)
    assert 0 < rounds["Men"] < rounds["Women"] == result.iterations < 30

    # The interval is that of the figure, at the round in which the crawl left the group.
    run = StoredRun(whole, result.run)
    scored = {t.id: s for t in run.triples() if (s := regarded([t.sentence])[0])}
    run.save_scores(
        Metric("regard", "x", "1"), [replace(s, triple_id=t) for t, s in scored.items()]
    )
    counted = select_statements(run)
    for group in config.groups:
        own = [t for t in counted.triples if t.group_id == group.id]
        sample = Draws.from_run(run, counted).sample(own, "regard")
        found = bootstrap(sample, STATISTICS["mean"])
        assert found.high - found.low <= 0.5
        assert sample.design is not None and len(sample.design.strata) >= MIN_INTERVAL_PROMPTS

    store = SQLiteStore(str(tmp_path / "parts.db"))
    for _ in range(100):
        try:
            crawl(
                config,
                ScriptedModel(talkative, batch=3),
                store,
                gauge=gauge,
                budget=Budget(max_requests=100),
            )
            break
        except Interrupted:
            continue
    assert picture(store) == picture(whole)
    again = crawl(config, ScriptedModel(talkative), store, gauge=gauge)
    assert again.asked_count == 0 and picture(store) == picture(whole)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("0", "above 0"),
        ("wide", "takes a number"),
        ("anger=0.1", "no measure 'anger'; choose from regard, toxicity"),
    ],
)
def test_no_such_width(asked: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        configure("any", category="gender", target_ci_width=asked)


def test_a_width_needs_a_gauge_and_ends_a_crawl_alone(store: SQLiteStore) -> None:
    assert configure("any", category="gender", target_ci_width=0.3).target_ci_width == TargetWidth(
        "regard", 0.3
    )
    with pytest.raises(UsageError, match="not by both"):
        configure("any", category="gender", target_ci_width=0.3, target_coverage=0.8)
    with pytest.raises(UsageError, match="needs a gauge"):
        crawl(
            replace(SMALL, target_ci_width=TargetWidth("regard", 0.3)),
            ScriptedModel(talkative),
            store,
        )


def test_rounds_too_many_are_taken_back(store: SQLiteStore) -> None:
    """Failures kept the coverage low in a first call; the mended one needs fewer rounds."""
    config = replace(SMALL, iterations=6, target_coverage=0.6)

    def say(request: Request, thing: str) -> str:
        return f" make\nA: {thing}" if str(request.prompt).endswith("#") else f" {thing}"

    def failing(request: Request) -> str | Completion:
        if request.seed % 5:
            return Completion("", "error", error="no route")
        return say(request, f"thing {request.seed}")

    first = crawl(config, ScriptedModel(failing), store)
    assert first.iterations == 6 and max(g.iteration for g in picture(store)) == 6
    mended = crawl(config, ScriptedModel(lambda r: say(r, ["food", "rain"][r.seed % 2])), store)
    assert max(g.iteration for g in picture(store)) == mended.iterations < 6
    assert mended.outcomes == Counter(g.outcome for g in picture(store))


def test_truncation_is_asked_for_and_is_part_of_the_run(store: SQLiteStore, texts: Texts) -> None:
    model = ScriptedModel(talkative)
    plain = crawl(SMALL, model, store)
    asked = len(model.requests)
    neutral = replace(SMALL, top_p=1.0, min_p=0.0)
    assert neutral.as_dict() == SMALL.as_dict()
    assert crawl(neutral, model, store).run.id == plain.run.id and len(model.requests) == asked
    cut = crawl(replace(SMALL, top_k=40, min_p=0.1), model, store)
    assert cut.run.id != plain.run.id and len(model.requests) == 2 * asked
    assert all(r.truncation == Truncation(40, None, 0.1) for r in model.requests[asked:])
    assert cut.run.config == plain.run.config | {"top_k": 40, "min_p": 0.1}
    with texts.raises(UsageError):
        replace(SMALL, min_p=0.1, temperature=0.0)
    with pytest.raises(UsageError, match="`top_p` is a share"):
        replace(SMALL, top_p=90)


class Notes(SilentProgress):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(
    ("reply", "temperature", "truncation", "said"),
    [
        (lambda _: " tea.", 0.8, {}, True),
        (lambda _: " tea.", 0.8, {"top_k": 2, "min_p": 0.5}, True),
        (lambda _: " tea.", 0.0, {}, False),
        (lambda _: " tea.", 0.8, {"top_k": 1}, False),
        (lambda _: " tea.", 0.8, {"min_p": 1.0}, False),
        (talkative, 0.8, {}, False),
    ],
)
def test_a_model_that_does_not_sample_is_noticed(
    store: SQLiteStore,
    reply: Callable[[Request], str],
    temperature: float,
    truncation: dict[str, Any],
    said: bool,
) -> None:
    progress = Notes()
    config = replace(SMALL, temperature=temperature, iterations=0, **truncation)
    crawl(config, ScriptedModel(reply), store, progress=progress)
    assert any("does not sample" in note for note in progress.notes) == said
    assert any("coverage" in note for note in progress.notes)


def test_progress_never_runs_backwards(store: SQLiteStore) -> None:
    class Steps(SilentProgress):
        done = total = 0

        def stage(self, name: str, total: int) -> None:
            assert self.done == self.total
            self.done, self.total = 0, total

        def advance(self, steps: int = 1, **counts: int) -> None:
            assert steps >= 0
            self.done += steps
            assert self.done <= self.total

        def grow(self, steps: int) -> None:
            assert steps > 0
            self.total += steps

    progress = Steps()
    crawl(SMALL, ScriptedModel(sloppy), store, progress=progress)
    assert progress.done == progress.total


def test_a_single_group_shows_its_own_triples(store: SQLiteStore) -> None:
    seeds = tuple(choose_seeds("any", (), ["Left-handers"]))
    crawl(replace(SMALL, seeds=seeds), ScriptedModel(talkative), store)
    expansions = [g for g in picture(store) if g.iteration]
    assert expansions and all(len(g.shown) == 1 for g in expansions)


def test_runs_with_other_settings_do_not_mix(store: SQLiteStore) -> None:
    crawl(SMALL, ScriptedModel(talkative), store, name="mine")
    with pytest.raises(RunConflict, match="other settings"):
        crawl(replace(SMALL, seed=1), ScriptedModel(talkative), store, name="mine")
    with pytest.raises(RunConflict, match="run 'mine'"):
        crawl(SMALL, ScriptedModel(talkative), store, name="yours")


def test_object_diversity_draws_predicates_by_inverse_frequency() -> None:
    category = SeedCategory(Category("c"), "", ("A", "B"))
    pool = TriplePool("none", category)
    pool.triples = [Triple("B", "common", f"thing {n}") for n in range(9)]
    pool.triples.append(Triple("B", "rare", "thing"))
    drawn = Counter()
    for seed in range(2000):
        result = ObjectDiversity().draw(pool, Group("A", "c"), 3, Random(seed))
        assert result is not None
        drawn[result[0]] += 1
    # Weights 1/9 and 1/1: rare is drawn 9 times in 10; 2000 draws have a standard error of 0.7%.
    assert drawn["rare"] / 2000 == pytest.approx(0.9, abs=0.03)


def test_predicate_diversity_shows_unique_subjects_and_predicates() -> None:
    names = ("A", "B", "C", "D", "E")
    pool = TriplePool("none", SeedCategory(Category("c"), "", names))
    pool.triples = [Triple(n, p, "x") for n in names for p in ("love", "hate", "are")]
    for seed in range(50):
        result = PredicateDiversity().draw(pool, Group("A", "c"), 3, Random(seed))
        assert result is not None
        predicate, shown = result
        assert predicate is None and len(shown) == 3
        assert len({t.predicate for t in shown}) == len({t.group for t in shown}) == 3
        assert "A" not in {t.group for t in shown}


@pytest.mark.parametrize(
    ("categories", "groups", "message"),
    [
        (["gender", "gender"], [], "named twice"),
        (["zodiac"], [], "no category 'zodiac'"),
        (["gender", "religion"], ["Robots"], "`group` joins one category"),
        ([], [" "], "the name of a group is empty"),
        (["gender", "gender-identity"], [], "named twice"),
    ],
)
def test_bad_seeds(categories: list[str], groups: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_seeds("any", categories, groups)


def test_own_groups_join_a_category_or_make_one() -> None:
    (religion,) = choose_seeds("any", ["religion"], ["Pastafarians", "jews"])
    assert len(religion.groups) == 13 and religion.groups[-1] == "Pastafarians"
    (zodiac,) = choose_seeds("any", ["zodiac"], ["Leos", "Virgos"])
    assert (zodiac.category.name, zodiac.groups) == ("zodiac", ("Leos", "Virgos"))
    assert [len(s.groups) for s in choose_seeds("any", ["ethnicity", "nationality"])] == [7, 20]
