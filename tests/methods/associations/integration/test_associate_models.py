"""Embeddings and predictions from models: tiny random ones, made on the spot."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.errors import DataError, KgbiasError, ModelError, UsageError
from kgbias.graph.stores import open_store
from kgbias.methods.associations.contexts import GeneratedContexts
from kgbias.methods.associations.family import associate
from kgbias.methods.associations.lpbs import lpbs
from kgbias.methods.associations.sets import AssociationTest, WordSet
from kgbias.models import unload
from kgbias.models.base import Completion, ModelInfo
from kgbias.models.embed import Encoder, Span, open_encoder
from kgbias.models.local import LocalModel
from kgbias.models.predict import FilledTemplate, open_predictor
from tests import tiny
from tests.conftest import require_modules
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.integration

require_modules("transformers")

WORDS = ["she", "he", "ann", "bob", "likes", "is", "the", "rude", "kind", "un", "##kind", "."]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked model to which "unkind" is two tokens."""
    return tiny.save_bert(tmp_path_factory.mktemp("bert"), WORDS)


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_model(tmp_path_factory.mktemp("gpt2"))


def states(folder: Path, text: str, layer: int = -1) -> tuple[Any, Any]:
    """The hidden states of one text, and its tokens, straight from transformers."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    out = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        model = AutoModel.from_pretrained(folder).eval()
        hidden = model(**out, output_hidden_states=True).hidden_states[layer][0].numpy()
    return hidden, tokenizer.convert_ids_to_tokens(out["input_ids"][0])


def test_encodings_are_what_the_model_says(bert: Path) -> None:
    text = "ann is unkind ."
    span = Span(text, 7, 13)
    hidden, tokens = states(bert, text)
    assert tokens == ["[CLS]", "ann", "is", "un", "##kind", ".", "[SEP]"]
    expected = {
        "word-average": hidden[3:5].mean(axis=0),
        "word-first": hidden[3],
        "word-last": hidden[4],
        "cls": hidden[0],
        "last": hidden[5],
        "mean": hidden.mean(axis=0),
    }
    encoder = open_encoder(f"hf:{bert}", cache=False)
    longer = Span("the kind ann likes the rude bob .", 4, 8)
    for encoding, vector in expected.items():
        rows = encoder.embed([longer, span, longer], encoding)  # type: ignore[arg-type]
        assert rows[1] == pytest.approx(vector, abs=1e-5)
        assert (rows[0] == rows[2]).all()
    first = encoder.embed([span], "word-first", layer=1)[0]
    assert first == pytest.approx(states(bert, text, 1)[0][3], abs=1e-5)
    assert encoder.sentence_encoding == "cls"


def test_causal_words_are_found_by_their_characters(gpt2: Path) -> None:
    text = "men love rain"
    encoder = open_encoder(f"hf:{gpt2}", cache=False)
    hidden, tokens = states(gpt2, text)
    assert tokens == ["men", "Ġ", "love", "Ġ", "rain"]
    assert encoder.embed([Span(text, 4, 8)], "word-average")[0] == pytest.approx(
        hidden[2], abs=1e-5
    )
    assert encoder.sentence_encoding == "last"
    with pytest.raises(UsageError, match=r"no \[CLS\] token"):
        encoder.embed([Span(text)], "cls")


def test_each_span_is_embedded_once_and_kept_on_disk(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = [Span("ann is kind .", 0, 3), Span("bob is kind .", 0, 3)]
    computed: list[Span] = []
    compute = Encoder._compute

    def counted(self: Encoder, new: Any, *rest: Any) -> Any:
        computed.extend(new)
        return compute(self, new, *rest)

    monkeypatch.setattr(Encoder, "_compute", counted)
    first = open_encoder(f"hf:{bert}").embed(spans * 3, "cls")
    assert computed == spans
    again = open_encoder(f"hf:{bert}").embed(spans[::-1], "cls")
    assert computed == spans and (again[::-1] == first[:2]).all()
    open_encoder(f"hf:{bert}").embed(spans[:1], "cls", layer=1)
    assert len(computed) == 3


def test_what_cannot_be_embedded(bert: Path, tmp_path: Path) -> None:
    encoder = open_encoder(f"hf:{bert}", cache=False)
    with pytest.raises(DataError, match=r"no token for '\\u200b'"):
        encoder.embed([Span("ann \u200b", 4, 5)], "word-average")
    with pytest.raises(DataError, match="longer than the 24"):
        encoder.embed([Span("ann " * 30, 0, 3)], "cls")
    with pytest.raises(UsageError, match="no layer 7: 0 to 2"):
        encoder.embed([Span("ann", 0, 3)], "cls", layer=7)
    with pytest.raises(UsageError, match="no encoding"):
        encoder.embed([Span("ann", 0, 3)], "sum")  # type: ignore[arg-type]
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="cannot be loaded"):
        open_encoder(f"hf:{tmp_path}").embed([Span("ann", 0, 3)], "cls")


def test_input_embeddings(bert: Path) -> None:
    found = open_encoder(f"hf:{bert}").find(["kind", "unkind", "zebra"])
    assert found.missing == ("zebra",)
    from transformers import AutoModel

    weights = AutoModel.from_pretrained(bert).get_input_embeddings().weight.detach().numpy()
    place = {word: 5 + n for n, word in enumerate(WORDS)}
    assert found.vectors[0] == pytest.approx(weights[place["kind"]])
    assert found.vectors[1] == pytest.approx((weights[place["un"]] + weights[place["##kind"]]) / 2)


def log_probabilities(folder: Path, ids: list[int], masked: bool) -> np.ndarray:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    auto: Any = AutoModelForMaskedLM if masked else AutoModelForCausalLM
    with torch.no_grad():
        logits = auto.from_pretrained(folder).eval()(torch.tensor([ids])).logits[0].double()
    rows: np.ndarray = logits.log_softmax(-1).numpy()
    return rows


@pytest.mark.parametrize("text", ["ann likes the kind .", "the kind ann likes ."])
def test_masked_prior_is_read_at_the_targets_own_mask(bert: Path, text: str) -> None:
    """In the second sentence the attribute stands before the target: the prior's first mask is the
    attribute's, and must not be taken for the target's."""
    ids = {word: 5 + n for n, word in enumerate(WORDS)}
    target, attribute = text.index("ann"), text.index("kind")
    sentence = FilledTemplate(text, (target, target + 3), (attribute, attribute + 4))
    tokens = [2, *(ids[word] for word in text.split()), 3]
    place, other = text.split().index("ann") + 1, text.split().index("kind") + 1
    one = tokens.copy()
    one[place] = 4
    both = one.copy()
    both[other] = 4
    (prediction,) = open_predictor(f"hf:{bert}").predict([sentence])
    joint = log_probabilities(bert, one, True)[place, ids["ann"]]
    prior = log_probabilities(bert, both, True)[place, ids["ann"]]
    assert prediction.log_joint == pytest.approx(joint, abs=1e-5)
    assert prediction.log_prior == pytest.approx(prior, abs=1e-5)
    assert prediction.tokens == (1, 1)


def test_a_word_of_two_tokens_gets_two_masks(bert: Path) -> None:
    text = "unkind is rude ."
    (prediction,) = open_predictor(f"hf:{bert}").predict([FilledTemplate(text, (0, 6), (10, 14))])
    ids = [2, *(5 + WORDS.index(w) for w in ("un", "##kind", "is", "rude", ".")), 3]
    masked = log_probabilities(bert, [2, 4, 4, *ids[3:]], True)
    assert prediction.log_joint == pytest.approx(masked[1, ids[1]] + masked[2, ids[2]], abs=1e-5)
    assert prediction.tokens == (2, 1)


def test_causal_predictions_are_conditional_log_probabilities(gpt2: Path) -> None:
    text = "men are kind."
    (prediction,) = open_predictor(f"hf:{gpt2}").predict([FilledTemplate(text, (0, 3), (8, 12))])
    tokens = [0, *tiny.build_tokenizer()("men are kind")["input_ids"]]
    rows = log_probabilities(gpt2, tokens, False)
    each = [rows[n, token] for n, token in enumerate(tokens[1:])]
    assert prediction.log_joint == pytest.approx(sum(each), abs=1e-5)
    assert prediction.log_prior == pytest.approx(sum(each[:-1]), abs=1e-5)
    with pytest.raises(UsageError, match="left to right"):
        open_predictor(f"hf:{gpt2}").predict([FilledTemplate("kind are men", (9, 12), (0, 4))])


def test_lpbs_on_a_masked_model_is_kuritas_score(bert: Path) -> None:
    """One target a side, written out: log p(t|a) / p(t), X minus Y, over attributes."""
    test = AssociationTest(
        "t",
        WordSet("x", ("he",)),
        WordSet("y", ("she",)),
        WordSet("a", ("kind", "likes")),
        WordSet("b", ("rude", "the")),
        frames=("{t} is {a} .",),
    )
    predictor = open_predictor(f"hf:{bert}")
    ids = {word: 5 + n for n, word in enumerate(WORDS)}
    prior = log_probabilities(bert, [2, 4, ids["is"], 4, ids["."], 3], True)[1]
    bias = {}
    for attribute in ("kind", "likes", "rude", "the"):
        given = log_probabilities(bert, [2, 4, ids["is"], ids[attribute], ids["."], 3], True)[1]
        ratio = given - prior
        bias[attribute] = ratio[ids["he"]] - ratio[ids["she"]]
    values = np.array(list(bias.values()))
    d = (values[:2].mean() - values[2:].mean()) / values.std(ddof=1)
    for pool in ("mean", "sum"):  # with one target a side they agree
        assert lpbs(test, predictor, pool=pool).effect_size == pytest.approx(d, abs=1e-5)  # type: ignore[arg-type]


def test_causal_model_for_a_masked_method_is_one_line(gpt2: Path) -> None:
    for arguments, expected in (
        (["--method", "lpbs", "--set", "kind=masked"], "needs a masked language model"),
        (["--method", "s-seat", "--encoding", "cls"], "no [CLS] token"),
        (["--method", "w-seat", "--layer", "9"], "no layer 9"),
    ):
        result = CliRunner().invoke(
            cli, ["associate", "--model", f"hf:{gpt2}", "--test", "weat9", *arguments]
        )
        assert isinstance(result.exception, KgbiasError) and expected in str(result.exception)
        assert "\n" not in str(result.exception)


CONTEXTS = AssociationTest(
    "t",
    WordSet("x", ("men",)),
    WordSet("y", ("women",)),
    WordSet("a", ("love",)),
    WordSet("b", ("hate",)),
)


def test_generated_contexts_come_from_the_log_the_second_time(
    tmp_path: Path, gpt2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("weights are loaded")

    encoder = open_encoder(f"hf:{gpt2}")
    alone = GeneratedContexts(6, seed=3, max_tokens=8).find_spans(CONTEXTS, encoder.info)
    with open_store(str(tmp_path / "g.db")) as store:
        source = GeneratedContexts(6, seed=3, max_tokens=8, store=store)
        first = source.find_spans(CONTEXTS, encoder.info)
        assert first == alone
        unload()
        monkeypatch.setattr("kgbias.models.load._load", refuse)
        assert source.find_spans(CONTEXTS, encoder.info) == first


def test_generated_contexts_are_of_the_revision_that_is_tested(
    gpt2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | None]] = []
    model = ScriptedModel(lambda request: "men and women love rain")

    def opened(spec: str, *, revision: str | None = None, **_: Any) -> Any:
        asked.append((spec, revision))
        return model

    monkeypatch.setattr("kgbias.methods.associations.contexts.open_model", opened)
    spans = GeneratedContexts(1).find_spans(CONTEXTS, ModelInfo("hf:org/m", "abc"))
    assert asked == [("hf:org/m", "abc")] and len(spans["x"]["men"]) == 1


def test_an_association_asks_the_answer_log_of_its_store(tmp_path: Path, gpt2: Path) -> None:
    words = ("men", "women", "love", "hate", "rain", "food", "kind", "tall")
    pairs = iter(zip(words[::2], words[1::2], strict=True))
    test = AssociationTest("t", *(WordSet(role, next(pairs)) for role in "xyab"))
    spec, answers = f"hf:{gpt2}", []

    def said(requests: Any) -> Any:
        answers.append(len(requests))
        yield [
            (n, Completion(f"so {r.prompt[22:-3]} it is", "stop")) for n, r in enumerate(requests)
        ]

    with open_store(str(tmp_path / "g.db")) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalModel, "complete", lambda _, requests: said(requests))
        for _ in range(2):
            associate([test], ["ceat"], models=[spec], store=store, generate=2)
    assert answers == [16]
