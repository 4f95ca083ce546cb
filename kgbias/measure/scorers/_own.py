"""A person's own scorer: a function from a list of texts to a judgement of each, or an object with
such a method `score`."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgbias.errors import DataError, KgbiasError, UsageError, first_line
from kgbias.io.traces import use_caller_state
from kgbias.measure.scorers._base import Judgement, class_judgement, probability_judgement
from kgbias.measures import Measure, known
from kgbias.models.identity import code_digest

OWN = "own:"  # begins the names of such scorers
Score = Judgement | float | str | Mapping[str, float] | None
Scores = Callable[[list[str]], Sequence[Score]]
FORMS = (
    "a function from a list of texts to as many numbers, labels, mappings of labels to "
    "probabilities, or judgements (kgbias.Judgement); None is no judgement"
)


class OwnScorer:
    """A scorer that the program holds.

    Of each text it gives a `Judgement`, a number in the range of the measure, a label, the
    probability of each label, or None. A number alone has a label too: for a measure of classes
    that of its sign, for a probability the side of 0.5. It is known by its name and its code, so
    what a changed function says is never taken for what the old one said.
    """

    def __init__(self, measure: str, given: Any) -> None:
        said = getattr(given, "measure", None)
        if isinstance(said, str) and said != measure:
            raise UsageError(f"`scorers` has a scorer of {said} for {measure}")
        score = getattr(given, "score", given)
        if not callable(score) or isinstance(score, type):
            raise UsageError(
                f"a scorer of {measure} is no {type(given).__name__}: give a spec, or {FORMS}"
            )
        self._score: Scores = score
        self.measure: str = measure
        own = getattr(given, "name", None) or getattr(given, "__name__", type(given).__name__)
        self.name = str(own) if hasattr(given, "version") else f"{OWN}{own}"
        self.version = str(getattr(given, "version", None) or code_digest(given))
        self.language: str | None = getattr(given, "language", None)

    def score(self, texts: Sequence[str]) -> list[Judgement | None]:
        try:
            with use_caller_state():
                given = list(self._score(list(texts)))
        except KgbiasError:
            raise
        except Exception as error:  # anyone's function may raise anything
            raise DataError(f"the scorer {self.name} failed: {first_line(error)}") from error
        if len(given) != len(texts):
            raise DataError(
                f"the scorer {self.name} was given {len(texts)} texts and returned {len(given)} "
                f"values: it has to be {FORMS}"
            )
        measure = known(self.measure)
        return [self._judged(measure, value) for value in given]

    def _judged(self, measure: Measure, given: Any) -> Judgement | None:
        if given is None or isinstance(given, Judgement):
            return given
        if isinstance(given, str):
            return self._of_label(measure, given)
        if isinstance(given, Mapping):
            return self._of_probabilities(measure, given)
        try:
            value = float(given)
        except (TypeError, ValueError):
            raise self._wrong(measure, given) from None
        if math.isnan(value):
            return None
        low, high = measure.range or (-math.inf, math.inf)
        if not low <= value <= high:
            raise self._wrong(measure, given)
        if measure.sides:
            return probability_judgement(measure.name, value)
        signs = {label: measure.signs.get(label, 0.0) for label in measure.labels}
        sign = (value > 0) - (value < 0)
        label = next((label for label, own in signs.items() if own == sign), "")
        return Judgement(value, label if measure.ends else "", {})

    def _of_label(self, measure: Measure, label: str) -> Judgement:
        label = label.strip().lower()
        if label not in measure.labels:
            raise self._wrong(measure, label)
        value = float(label == measure.sides[0]) if measure.sides else measure.signs.get(label, 0.0)
        return Judgement(value, label, {})

    def _of_probabilities(self, measure: Measure, given: Mapping[str, Any]) -> Judgement:
        found = {str(label).lower(): float(p) for label, p in given.items()}
        if measure.ends and set(measure.ends) <= found.keys():
            return class_judgement(measure.name, found)
        if measure.sides and measure.sides[0] in found:
            return probability_judgement(measure.name, found[measure.sides[0]], found)
        raise self._wrong(measure, given)

    def _wrong(self, measure: Measure, given: object) -> DataError:
        bounds = "" if measure.range is None else " from {:g} to {:g}".format(*measure.range)
        labels = f", or a label: {', '.join(measure.labels)}" if measure.labels else ""
        return DataError(
            f"the scorer {self.name} gives {measure.name} the value {str(given)[:40]!r}: it takes "
            f"a number{bounds}{labels}"
        )
