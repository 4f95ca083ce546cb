"""A person's own scorer: a function from a list of texts to a judgement of each, or an object with
such a method `score`."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kgbias.errors import DataError, KgbiasError, UsageError, first_line
from kgbias.io.caller_state import use_caller_random_states
from kgbias.io.text import type_with_article
from kgbias.io.wording import pluralise
from kgbias.measure.scorers._base import Judgement, class_judgement, probability_judgement
from kgbias.measures import Measure, get_measure
from kgbias.models.identity import code_digest

CUSTOM_PREFIX = "own:"  # begins the names of such scorers
CustomScore = Judgement | float | str | Mapping[str, float] | None
ScoreFunction = Callable[[list[str]], Sequence[CustomScore]]
ACCEPTED_FORMS = (
    "a function from a list of texts to as many numbers, labels, mappings of labels to "
    "probabilities, or judgements (kgbias.Judgement), or a pipeline that gives labels; None is no "
    "judgement"
)


class CustomScorer:
    """A scorer that the program holds.

    Of each text it gives a `Judgement`, a number in the range of the measure, a label, the
    probability of each label, or None. A number alone has a label too: for a measure of classes
    that of its sign, for a probability the side of 0.5. It is known by its name and its code, so
    what a changed function says is never taken for what the old one said.
    """

    def __init__(self, measure: str, scorer_or_function: Any) -> None:
        stated_measure = getattr(scorer_or_function, "measure", None)
        if isinstance(stated_measure, str) and stated_measure != measure:
            raise UsageError(f"`scorers` has a scorer of {stated_measure} for {measure}")
        score = getattr(scorer_or_function, "score", scorer_or_function)
        # A class is callable too: the instance was meant.
        if not callable(score) or isinstance(score, type):
            raise UsageError(
                f"a scorer of {measure} is no {type(scorer_or_function).__name__}: give a spec, "
                f"or {ACCEPTED_FORMS}"
            )
        self._score: ScoreFunction = score
        self.measure: str = measure
        stated_name = getattr(scorer_or_function, "name", None) or getattr(
            scorer_or_function, "__name__", type(scorer_or_function).__name__
        )
        self.name = (
            str(stated_name)
            if hasattr(scorer_or_function, "version")
            else f"{CUSTOM_PREFIX}{stated_name}"
        )
        self.version = str(
            getattr(scorer_or_function, "version", None) or code_digest(scorer_or_function)
        )
        self.language: str | None = getattr(scorer_or_function, "language", None)

    def score(self, texts: Sequence[str]) -> list[Judgement | None]:
        try:
            with use_caller_random_states():
                returned: Any = self._score(list(texts))
                is_one = isinstance(returned, str | Mapping) or not isinstance(returned, Iterable)
                values = [] if is_one else list(returned)
        except KgbiasError:
            raise
        except Exception as error:  # anyone's function may raise anything
            raise DataError(f"the scorer {self.name} failed: {first_line(error)}") from error
        if is_one or len(values) != len(texts):
            what = type_with_article(returned) if is_one else f"{len(values)} values"
            raise DataError(
                f"the scorer {self.name} was given "
                f"{pluralise(len(texts), 'text')} and returned {what}: it has "
                f"to be {ACCEPTED_FORMS}"
            )
        measure = get_measure(self.measure)
        return [self._to_judgement(measure, value) for value in values]

    def _to_judgement(self, measure: Measure, value_given: Any) -> Judgement | None:
        if value_given is None:
            return None
        if isinstance(value_given, Judgement):
            if value_given.label and value_given.label not in measure.labels:
                raise self._value_error(measure, value_given.label)
            return value_given
        if isinstance(value_given, str):
            return self._judge_label(measure, value_given)
        if isinstance(value_given, Mapping):
            if value_given.keys() == {"label", "score"}:  # a pipeline's, of the likeliest label
                return self._to_judgement(measure, value_given["label"])
            return self._judge_probabilities(measure, value_given)
        if isinstance(value_given, list) and all(isinstance(one, Mapping) for one in value_given):
            # A pipeline's, of all labels.
            return self._judge_probabilities(
                measure, {one.get("label"): one.get("score") for one in value_given}
            )
        try:
            value = float(value_given)
        except (TypeError, ValueError):
            raise self._value_error(measure, value_given) from None
        if math.isnan(value):
            return None
        low, high = measure.range or (-math.inf, math.inf)
        if not low <= value <= high:
            raise self._value_error(measure, value_given)
        if measure.sides:
            return probability_judgement(measure.name, value)
        signs = {label: measure.signs.get(label, 0.0) for label in measure.labels}
        sign = (value > 0) - (value < 0)
        label = next((label for label, label_sign in signs.items() if label_sign == sign), "")
        return Judgement(value, label if measure.ends else "", {})

    def _judge_label(self, measure: Measure, label: str) -> Judgement:
        label = label.strip().lower()
        if label not in measure.labels:
            raise self._value_error(measure, label)
        value = float(label == measure.sides[0]) if measure.sides else measure.signs.get(label, 0.0)
        return Judgement(value, label, {})

    def _judge_probabilities(
        self, measure: Measure, given_probabilities: Mapping[str, Any]
    ) -> Judgement:
        try:
            probabilities = {str(name).lower(): float(p) for name, p in given_probabilities.items()}
        except (TypeError, ValueError):
            raise self._value_error(measure, given_probabilities) from None
        if measure.ends and set(measure.ends) <= probabilities.keys():
            return class_judgement(measure.name, probabilities)
        if measure.sides and measure.sides[0] in probabilities:
            return probability_judgement(
                measure.name, probabilities[measure.sides[0]], probabilities
            )
        raise self._value_error(measure, given_probabilities)

    def _value_error(self, measure: Measure, given_value: object) -> DataError:
        bounds = "" if measure.range is None else " from {:g} to {:g}".format(*measure.range)
        labels = f", or a label: {', '.join(measure.labels)}" if measure.labels else ""
        return DataError(
            f"the scorer {self.name} gives {measure.name} the value {str(given_value)[:40]!r}: it "
            f"takes a number{bounds}{labels}"
        )
