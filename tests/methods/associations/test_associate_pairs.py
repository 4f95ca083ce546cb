"""Contexts of a corpus for SEAT and LPBS, and CEAT's distribution over LPBS."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kgbias.errors import DataError, UsageError
from kgbias.methods.associations.ceat import ceat
from kgbias.methods.associations.contexts import CorpusContexts, TemplateContexts, embed_contexts
from kgbias.methods.associations.corpus_pairs import (
    CorpusPairs,
    ceat_lpbs,
    lpbs_in_corpus,
    measure_ratios,
)
from kgbias.methods.associations.lpbs import lpbs
from kgbias.methods.associations.result import Statistics
from kgbias.methods.associations.sets import AssociationTest, WordSet
from kgbias.methods.associations.weat import seat
from kgbias.models.base import ModelInfo
from kgbias.models.embed import Span
from kgbias.models.predict import FilledTemplate, Prediction
from tests.texts import Texts

TEST = AssociationTest(
    "t",
    WordSet("x", ("elf", "fay"), "name"),
    WordSet("y", ("orc", "imp"), "name"),
    WordSet("a", ("kind", "fair"), "quality"),
    WordSet("b", ("rude", "vile"), "quality"),
    frames=("{t} is {a}.", "{t} was {a}."),
)
CORPUS = """\
The elf is so kind.
the Elf was kind, and rude
an orc is rude and vile
fair imp, vile imp
fay and far too many words away from it all there stands one who is fair
fay is fair
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(CORPUS)
    return path


class Model:
    """A model that likes long sentences, and elves that are kind; some names are rarer anyway."""

    info = ModelInfo("stub")
    kind = "masked"
    sentence_encoding = "cls"

    def is_token(self, word: str) -> bool:
        return True

    def predict(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]:
        found = []
        for s in sentences:
            target, attribute = s.text[slice(*s.target)], s.text[slice(*s.attribute)]
            lift = (target.lower() in ("elf", "fay")) == (attribute in ("kind", "fair"))
            prior = -float("ifo e".index(target[0].lower()))
            found.append(Prediction(prior + 0.5 * lift + len(s.text) / 100, prior, (1, 1)))
        return found

    def embed(self, spans: Sequence[Span], encoding: str, layer: int = -1) -> np.ndarray:
        rows = [
            [1 + span.text.count("i"), span.start + 1, len(span.text) - span.end + ord(word[0]) % 7]
            for span in spans
            for word in [span.text[span.start : span.end]]
        ]
        return np.array(rows, dtype=np.float32)


def test_pairs_are_found_at_most_so_many_words_apart(corpus: Path, texts: Texts) -> None:
    targets, attributes = ("elf", "fay", "orc", "imp"), ("kind", "fair", "rude", "vile")
    found = CorpusPairs(corpus).find(targets, attributes)
    said = {key: [f.text for f in row] for key, row in found.items()}
    texts.check("\n".join(said["kind", "elf"]))
    texts.check("\n".join(said["rude", "elf"]))
    assert said["vile", "imp"] == ["fair imp, vile imp"]  # once a text
    assert len(said["fair", "fay"]) == 2
    assert len(CorpusPairs(corpus, apart=3).find(targets, attributes)["fair", "fay"]) == 1
    assert ("fair", "imp") in found
    forwards = CorpusPairs(corpus).find(targets, attributes, forwards=True)
    assert ("fair", "imp") not in forwards and ("vile", "imp") in forwards
    for filled in (f for row in found.values() for f in row):
        assert filled.text[slice(*filled.target)].lower() in targets
        assert filled.text[slice(*filled.attribute)] in attributes
    (cut,) = CorpusPairs(corpus, window=1).find(["elf"], ["rude"])["rude", "elf"]
    assert (cut.text, cut.target, cut.attribute) == ("the Elf was kind, and rude", (4, 7), (22, 26))
    (cut,) = CorpusPairs(corpus, window=0).find(["orc"], ["rude"])["rude", "orc"]
    assert (cut.text, cut.target, cut.attribute) == ("orc is rude", (0, 3), (7, 11))
    assert len(CorpusPairs(corpus, most=1).find(["elf"], ["kind"])["kind", "elf"]) == 1
    with pytest.raises(UsageError, match="must be positive"):
        CorpusPairs(corpus, most=0).find(["elf"], ["kind"])


def test_lpbs_on_a_corpus_by_hand(corpus: Path, tmp_path: Path) -> None:
    result = lpbs_in_corpus(TEST, Model(), CorpusPairs(corpus))
    # fair stands with fay and imp, rude with elf and orc; kind and vile with one side alone
    assert result.sets["a"].known == ("fair",) and result.sets["a"].missing == ("kind",)
    assert result.sets["b"].known == ("rude",) and result.sets["b"].missing == ("vile",)
    far = len("fay and far too many words away from it all there stands one who is fair")
    fair = 0.5 + (far + len("fay is fair")) / 200 - len("fair imp, vile imp") / 100
    rude = len("the Elf was kind, and rude") / 100 - (0.5 + len("an orc is rude and vile") / 100)
    assert result.statistic == pytest.approx(fair - rude)
    assert result.settings["contexts_from"] == "corpus:corpus.txt"
    assert result.settings["apart"] == 18
    empty = tmp_path / "empty.txt"
    empty.write_text("nothing\n")
    with pytest.raises(DataError, match="knows none"):
        lpbs_in_corpus(TEST, Model(), CorpusPairs(empty))


def test_ratios_of_templates_are_those_of_lpbs() -> None:
    ratios = measure_ratios(TEST, Model())
    assert {len(row) for row in ratios.cells.values()} == {2}
    bias = ratios.expected_biases()
    plain = lpbs(TEST, Model())
    assert bias[:2].mean() - bias[2:].mean() == pytest.approx(plain.statistic)


def test_ceat_over_lpbs(corpus: Path) -> None:
    result = ceat_lpbs(TEST, measure_ratios(TEST, Model()), Model.info, draws=400)
    assert result.method == "ceat-lpbs" and result.p_value.method == "random-effects"
    assert result.permutation_p_value is not None and result.permutation_p_value.method == "exact"
    shape = result.details["quantiles"]
    assert len(shape) == 41 and shape == sorted(shape)
    assert shape[1] == result.effect.low and shape[-2] == result.effect.high
    assert result.effect.value > 0
    again = ceat_lpbs(TEST, measure_ratios(TEST, Model()), Model.info, draws=400)
    assert again.effect == result.effect
    with pytest.raises(UsageError, match="at least 2 draws"):
        ceat_lpbs(TEST, measure_ratios(TEST, Model()), Model.info, draws=1)


def test_seat_in_contexts_is_seat_where_they_are_templates(corpus: Path) -> None:
    model, two = Model(), Statistics(tails="two")

    def in_templates(encoding: str, layer: int) -> object:
        return embed_contexts(TEST, model, TemplateContexts(), encoding, layer)  # type: ignore[arg-type]

    for unit in ("word", "sentence"):
        how = Statistics(unit=unit)
        plain, same = (
            seat(TEST, model, "w-seat", how, in_contexts=source)  # type: ignore[arg-type]
            for source in (None, in_templates)
        )
        assert same.effect_size == pytest.approx(plain.effect_size)
        assert same.p_value.value == plain.p_value.value
        assert same.settings["contexts_from"] == "templates"

    def of_corpus(encoding: str, layer: int) -> object:
        source = CorpusContexts(corpus)
        return embed_contexts(TEST, model, source, encoding, layer)  # type: ignore[arg-type]

    found = seat(TEST, model, "w-seat", two, in_contexts=of_corpus)  # type: ignore[arg-type]
    contexts, _ = of_corpus("word-average", -1)  # type: ignore[misc]
    assert found.statistic == pytest.approx(ceat(TEST, contexts, model.info, draws=2).statistic)
    assert not math.isnan(found.p_value.value)
