"""The scorers' interface, the replacement of groups, and the Hugging Face path."""

import subprocess
import sys
from pathlib import Path

import pytest

from kgbias.errors import DataError, MissingExtra, ModelError, UsageError
from kgbias.measure.scorers import _minilm, load_scorer
from kgbias.measure.scorers._base import (
    regard_judgement,
    same_length_batches,
    toxicity_judgement,
)
from kgbias.measure.scorers._huggingface import parse_spec
from kgbias.measure.scorers._masking import neutralise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Irish people drink too much.", "They drink too much."),
        ("Quixlanders drink too much.", "They drink too much."),
        ("Wheelchair users are brave.", "They are brave."),
        ("The Dutch people are tall.", "They are tall."),
        ("People with dyslexia are creative.", "They are creative."),
        ("Women can't be held back.", "They can't be held back."),
        ("American people hate Mexicans.", "They hate people."),
        ("Women exist to serve men.", "They exist to serve men."),
        ("I hate women.", "I hate people."),
        ("No Muslim deserves to die.", "No person deserves to die."),
        ("A gay person lives here.", "A person lives here."),
        ("Black lives do not matter.", "Their lives do not matter."),
        ("Emanuela's personality is ambitious.", "This person's personality is ambitious."),
        ("Anna is a nurse", "This person is a nurse"),
        ("They love \n pasta.", "They love pasta."),
        # what must stay
        ("It is raining.", "It is raining."),
        ("It's obvious that this is wrong.", "It's obvious that this is wrong."),
        ("Bitches are all the same.", "Bitches are all the same."),
        ("Italian food is good.", "Italian food is good."),
        ("", ""),
        ("人们爱和平。", "人们爱和平。"),
    ],
)
def test_neutralise(text: str, expected: str) -> None:
    assert neutralise(text) == expected


def test_regard_value_is_positive_minus_negative() -> None:
    judged = regard_judgement({"positive": 0.5, "neutral": 0.3, "negative": 0.2})
    assert judged.value == pytest.approx(0.3)
    assert judged.label == "positive"


@pytest.mark.parametrize(("value", "label"), [(0.5, "toxic"), (0.499, "not toxic")])
def test_toxicity_is_cut_at_a_half(value: float, label: str) -> None:
    assert toxicity_judgement(value, {"toxic": value}).label == label


def test_batches_hold_one_length_each_and_every_text_once() -> None:
    lengths = [3, 5, 3, 3, 900, 5]
    batches = same_length_batches(lengths, tokens=6)
    assert sorted(i for batch in batches for i in batch) == list(range(6))
    assert all(len({lengths[i] for i in batch}) == 1 for batch in batches)
    assert max(len(batch) * lengths[batch[0]] for batch in batches if lengths[batch[0]] < 6) <= 6


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("sasha/regardv3", ("sasha/regardv3", None, None)),
        ("a/b:identity_attack", ("a/b", None, "identity_attack")),
        ("a/b@abc123", ("a/b", "abc123", None)),
        ("a/b@abc123:toxic", ("a/b", "abc123", "toxic")),
    ],
)
def test_parse_spec(spec: str, expected: tuple[str, str | None, str | None]) -> None:
    assert parse_spec(spec) == expected


def test_parse_spec_takes_a_folder_whole(tmp_path: Path) -> None:
    folder = tmp_path / "odd@name:here"
    folder.mkdir()
    assert parse_spec(str(folder)) == (str(folder), None, None)
    assert parse_spec(f"{folder}:toxic") == (str(folder), None, "toxic")


@pytest.mark.parametrize(
    ("measure", "spec"),
    [("kindness", None), ("regard", "openai:x"), ("regard", "hf:"), ("regard", "hf::toxic")],
)
def test_bad_names_are_usage_errors(measure: str, spec: str | None) -> None:
    with pytest.raises(UsageError):
        load_scorer(measure, spec)


def test_regard_takes_no_label() -> None:
    with pytest.raises(UsageError, match="label is for toxicity"):
        load_scorer("regard", "hf:a/b:positive")


def test_missing_weights_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_minilm, "PACKAGE", "no_such_package")
    with pytest.raises(MissingExtra, match=r"kgbias\[scorers\]"):
        _minilm.find_weights.__wrapped__()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"not the genuine weights")
    with pytest.raises(DataError, match="SHA-256"):
        _minilm.check_sha256(file, _minilm.WEIGHTS_SHA256)
    with pytest.raises(DataError, match="cannot be read"):
        _minilm.check_sha256(tmp_path / "absent", _minilm.WEIGHTS_SHA256)


def test_importing_the_scorers_imports_nothing_heavy() -> None:
    code = (
        "import sys, kgbias.measure.scorers; "
        "print([m for m in ('torch', 'transformers', 'sklearn') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory):
    """Return a function that saves a tiny random BERT classifier with given labels."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")

    def save(labels: list[str], **settings: object) -> str:
        folder = tmp_path_factory.mktemp("model")
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "women", "are", "kind", "bad", "."]
        (folder / "vocab.txt").write_text("\n".join(words))
        transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(words),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=64,
            initializer_range=0.5,
            id2label=dict(enumerate(labels)),
            label2id={label: i for i, label in enumerate(labels)},
            **settings,
        )
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
        return f"hf:{folder}"

    return save


def test_hub_regard_maps_labels_in_any_case(tiny) -> None:
    scorer = load_scorer("regard", tiny(["NEGATIVE", "Neutral", "positive", "other"]))
    judged = scorer.score(["women are kind.", "women are bad.", ""])
    assert [set(j.probabilities) for j in judged] == [
        {"positive", "neutral", "negative", "other"}
    ] * 3
    for j in judged:
        assert sum(j.probabilities.values()) == pytest.approx(1)
        assert j.value == pytest.approx(j.probabilities["positive"] - j.probabilities["negative"])
        assert j.label == max(j.probabilities, key=j.probabilities.__getitem__)
    assert judged[0].value != judged[1].value


def test_hub_regard_columns_follow_the_labels(tiny) -> None:
    one = load_scorer("regard", tiny(["negative", "neutral", "positive"])).score(["women are bad."])
    two = load_scorer("regard", tiny(["positive", "neutral", "negative"])).score(["women are bad."])
    assert one[0].value == pytest.approx(-two[0].value)


def test_hub_regard_refuses_other_labels(tiny) -> None:
    with pytest.raises(UsageError, match="joy, anger"):
        load_scorer("regard", tiny(["joy", "anger"]))


def test_hub_toxicity_prefers_identity_attack_and_takes_a_label(tiny) -> None:
    spec = tiny(
        ["toxicity", "identity_attack", "insult"], problem_type="multi_label_classification"
    )
    default, named = load_scorer("toxicity", spec), load_scorer("toxicity", f"{spec}:INSULT")
    judged, other = default.score(["women are bad."])[0], named.score(["women are bad."])[0]
    assert judged.value == judged.probabilities["identity_attack"]
    assert other.value == other.probabilities["insult"] != judged.value
    assert sum(judged.probabilities.values()) != pytest.approx(1)  # a sigmoid for each label
    assert default.version != named.version


def test_hub_toxicity_lists_the_labels_it_has(tiny) -> None:
    spec = tiny(["LABEL_0", "LABEL_1"])
    with pytest.raises(UsageError, match="LABEL_0, LABEL_1"):
        load_scorer("toxicity", spec)
    with pytest.raises(UsageError, match="no label 'hate'"):
        load_scorer("toxicity", f"{spec}:hate")


def test_hub_version_follows_the_weights(tiny) -> None:
    spec = tiny(["hate", "nothate"])
    first = load_scorer("toxicity", spec)
    assert load_scorer("toxicity", spec).version == first.version
    config = Path(spec.removeprefix("hf:")) / "config.json"
    config.write_text(
        config.read_text().replace('"layer_norm_eps": 1e-12', '"layer_norm_eps": 1e-5')
    )
    assert load_scorer("toxicity", spec).version != first.version


def test_hub_cuts_long_texts_and_ignores_the_batch(tiny) -> None:
    scorer = load_scorer("toxicity", tiny(["hate", "nothate"]))
    texts = ["women are kind.", "bad " * 2500, "women are bad bad bad.", "women are kind."]
    together = [judged.value for judged in scorer.score(texts)]
    alone = [scorer.score([text])[0].value for text in texts]
    assert together == pytest.approx(alone, abs=1e-6)
    assert scorer.score([]) == []


def test_hub_model_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError):
        load_scorer("regard", f"hf:{tmp_path / 'empty'}")
