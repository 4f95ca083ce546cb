"""How many of the flags are right: what the training counts."""

from collections.abc import Sequence

import pytest

from kgbias.measure.precision import LabelPrecision
from kgbias.measure.scorers._base import Judgement, probability_judgement
from training.scorers.precision import count

pytestmark = pytest.mark.integration


class Judge:
    name, version = "rule", "1"

    def __init__(self, measure: str, said: dict[str, float]) -> None:
        self.measure, self._said = measure, said

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        return [probability_judgement(self.measure, self._said[text]) for text in texts]


def test_only_what_makes_sense_is_counted() -> None:
    read = [("a", True), ("b", False), ("c", False), ("d", True)]
    toxicity = Judge("toxicity", {"a": 0.5, "b": 0.9, "c": 0.9, "d": 0.1})
    sense = Judge("acceptability", {"a": 0.5, "b": 0.6, "c": 0.4, "d": 1.0})
    assert count(toxicity, sense, read) == LabelPrecision("toxicity", "rule", "1", 3, 2, 1, 2)
