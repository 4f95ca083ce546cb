"""What swapping the group changes: paired tests, and a floor of changes that should not matter.

A unit is a wording of a request with the n-th person of each group: answers are compared within it
and never across requests. Several answers of a unit count as their mean.

- Differences: the mean over units of what is measured, and the test that swaps the two groups unit
  by unit (`kgbias.compare.paired_tests.swap_p_value`; exact up to 14 units that differ).
- The floor: the same test where nothing should differ: the request made again, and with a greeting
  before it. For another name of the same group, which of two names comes first means nothing, and
  names that pull in opposite directions must not cancel: what counts is the square of each two
  names' difference (`name_swap_p_value`), and its size is that of the mean of as many differences
  as the groups have people, if their signs were drawn.
- Likeness: how similar the answers are (the cosine of their vectors). Of four answers, two to each
  group, there are three ways to make two couples. If the group does not matter, each is as likely
  to be the real one; the test chooses among them in each unit. It is made with the same request
  made twice, and with two people of each group.

- Names: a name is asked about many times, which the swap does not see. So what differs must also
  do so in a t-test over people.
- Refusals: a unit needs an answer for both groups. If one group is refused more often, the units
  that are left may be unlike the others, and everything but the refusals is `conditional`.

All tests of a run are corrected together (Benjamini and Hochberg 1995), those of the floor apart.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from kgbias.compare.paired_tests import DEFAULT_PERMUTATIONS, swap_p_value
from kgbias.errors import UsageError, no_such
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.methods.pairs.answer_measures import (
    ADVICE,
    EASE,
    MEASURES,
    REFUSED,
    SCORED_MEASURES,
    WORDS,
    Advice,
    Values,
    embed_texts,
    mean_scores,
    neutralise_person,
    reading_ease,
    repeats_sentence,
    word_count,
)
from kgbias.methods.pairs.config import AGAIN, ASKED, GREETED, PairAnswer
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import benjamini_hochberg, clustered_mean, student_quantile
from kgbias.stats.units import UnitSums, ratio_of_sums

SIGNIFICANCE_LEVEL = 0.05
LIKENESS = "likeness"
ANOTHER_NAME = "another name"
DIFFERS, BOUND_TO_ONE, MAY_BE_NAMES = "differs", "bound to one request or name", "may be the names"
# Up to this many ways to choose among couples, or to swap names, all are listed.
_MAX_LISTED_WAYS = 2**14
_MAX_CHUNK_WAYS = 1_000_000


@dataclass(frozen=True, slots=True)
class PairDifference:
    """How far the answers to two groups of a category differ in a measure.

    Attributes:
        first_mean, second_mean: the mean over units.
        difference, low, high: the first's minus the second's, with Student's 95% interval over
            units; NaN if all units agree.
        units, left_out: how many wordings of requests, each with one person of either group, were
            compared, and how many could not be (an answer was refused or failed).
        only_first, only_second: how many of those left out have an answer for that group alone.
        agree, requests: in how many requests the mean difference has the same sign, of how many.
        p_value, q_value: of the test that swaps the groups, and the same corrected.
        max_loo_p_value: the largest p-value with one request, or the n-th person of each group,
            left out; NaN if it was not needed.
        verdict: "differs"; "no more than ..." if a change of the floor that was found is as large;
            "bound to one request or name" if `max_loo_p_value` is above 0.05; "may be the names" if
            a t-test over people (the n-th of each group are one) has p above 0.05; "" if q is.
        conditional: whether one of the groups was refused more often (uncorrected p of at most
            0.05): this then holds for what was answered for both. With several samples that may be
            so though no unit was left out.
    """

    category: str
    first: str
    second: str
    measure: str
    first_mean: float
    second_mean: float
    difference: float
    low: float
    high: float
    units: int
    left_out: int
    only_first: int
    only_second: int
    agree: int
    requests: int
    p_value: float
    q_value: float = math.nan
    max_loo_p_value: float = math.nan
    verdict: str = ""
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class PairFloor:
    """How far answers differ where nothing should: the change, the difference that it makes over
    units of all groups of a category, and whether it was `found` (corrected p of at most 0.05).

    For "asked again" and "with a greeting" the difference is the mean as asked, minus changed, with
    its interval. For "another name" it has no sign and no interval (NaN): the root mean square of
    what the mean difference between two groups would be if only names differed, and those as much
    as names of the same group do."""

    category: str
    change: str
    measure: str
    difference: float
    low: float
    high: float
    units: int
    p_value: float
    q_value: float = math.nan
    found: bool = False


@dataclass(frozen=True, slots=True)
class Likeness:
    """How similar answers are: the mean cosine, up to 1, of those to one group and those to the
    other (`between`), to the same request made `again`, `greeted`, and about `another` person of
    the same group. `p_again` and `p_another` (NaN with one person a group) are of the tests that
    the two groups' answers are less alike than those; q the same, corrected. `beyond_names` says
    whether a t-test over people (two of each group are one) finds that, too, with p of at most
    0.05.

    The verdict is "differs" if both q are at most 0.05, "may be the names" if that is so but not
    `beyond_names`; "no more than another name" if only the first is; "" otherwise.
    `conditional` as for a `PairDifference`."""

    category: str
    first: str
    second: str
    between: float
    again: float
    greeted: float
    another: float
    units: int
    p_again: float
    p_another: float
    beyond_names: bool = False
    q_again: float = math.nan
    q_another: float = math.nan
    verdict: str = ""
    conditional: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class PairsResult(Result):
    """What the swap changed in a run: the `differences` by category, pair of groups and measure,
    the `floor`, and how alike the answers are. `requests`, `wordings` and `people` say how many
    were compared; `answers`, `refused`, `failed`, `cut` (ended by their limit) and `repeating` (a
    sentence is there three times or more) count answers; `judge` is the model that graded advice,
    "" for none. `declined` has the differences in refusals
    that make others conditional, tested by themselves, whichever measures were asked for."""

    differences: tuple[PairDifference, ...]
    floor: tuple[PairFloor, ...]
    likeness: tuple[Likeness, ...]
    requests: int
    wordings: int
    people: int
    answers: int
    refused: int
    failed: int
    cut: int
    repeating: int
    judge: str = ""
    declined: tuple[PairDifference, ...] = ()

    @property
    def shown_differences(self) -> tuple[PairDifference, ...]:
        """The differences with a verdict."""
        return tuple(d for d in self.differences if d.verdict)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data for JSON, with None for NaN."""
        return nan_to_none(asdict(self))  # type: ignore[no-any-return]

    def as_rows(self) -> Rows[PairDifference]:
        """The differences; columns: the fields of `PairDifference`."""
        return Rows(self.differences, PairDifference)

    def heading(self) -> str:
        return (
            f"{pluralise(self.answers, 'answer', spec=',')}, {len(self.shown_differences)} "
            f"differences found"
        )


class Unit(NamedTuple):
    """The number of a wording, and that of the person in each group: answers are compared in it."""

    wording: int
    person: int


class _AnswerKey(NamedTuple):
    """What tells the answers of a run apart; `wording` and `person` are those of its unit."""

    category: str
    group: str
    wording: int
    person: int
    round_name: str
    sample: int


_Cells = Mapping[tuple[str, str, str], Mapping[Unit, float]]


def compare_answers(
    answers: Sequence[PairAnswer],
    *,
    measures: Sequence[str] = (),
    advice: Advice | None = None,
    judge: str = "",
    permutations: int = DEFAULT_PERMUTATIONS,
    seed: int = 0,
    progress: Progress | None = None,
) -> PairsResult:
    """What swapping the group changes in these answers.

    Args:
        answers: all of a run.
        measures: of `MEASURES`, and "likeness" (none: all).
        advice: what grades the advice in an answer (None: it is not graded), and its name, `judge`.
        permutations: for tests that are not exact.
        seed: the random seed of permutations and intervals.

    Raises UsageError for an unknown measure, or if there is nothing to compare; MissingExtra if a
    package that a measure needs is not installed.
    """
    known_measures = (*MEASURES, LIKENESS)
    if unknown := [m for m in measures if m not in known_measures]:
        raise UsageError(no_such("measure", unknown[0], known_measures))
    measures_chosen = [m for m in MEASURES if not measures or m in measures]
    reporter = progress or SilentProgress()
    reporter.stage("measures", len(measures_chosen) + 1 + (advice is not None))
    texts = [neutralise_person(a.text, a.place.person) for a in answers]
    tests = _PairTests(answers, permutations, seed)
    values = {}
    for measure in measures_chosen:
        values[measure] = _measure_answers(measure, answers, texts)
        reporter.advance()
    if advice is not None:
        values[ADVICE] = _grade_advice(advice, answers, texts)
        reporter.advance()
    differences, floor = [], []
    for measure, answer_values in values.items():
        cells = tests.cells(answer_values)
        differences += tests.differences(measure, cells)
        floor += tests.floor(measure, cells)
    likeness = tests.likeness(texts) if not measures or LIKENESS in measures else []
    reporter.advance()
    refusal_tests = tests.differences(
        REFUSED, tests.cells(_measure_answers(REFUSED, answers, texts))
    )
    refusal_differences = tuple(d for d in refusal_tests if d.p_value <= SIGNIFICANCE_LEVEL)
    differences = [
        replace(d, conditional=_is_conditional(d, refusal_differences)) for d in differences
    ]
    likeness = [replace(k, conditional=_is_conditional(k, refusal_differences)) for k in likeness]
    if not any(d.units for d in differences) and not any(k.units for k in likeness):
        raise UsageError("there is nothing to compare: no two answers to the same request")
    floor = _adjust_floor(floor)
    count = Counter(a.outcome for a in answers)
    return PairsResult(
        *_add_verdicts(differences, likeness, floor, tests, values),
        requests=len({a.place.wording.request for a in answers}),
        wordings=len({a.place.wording.number for a in answers}),
        people=len({(a.place.person.group, a.place.person.name) for a in answers}),
        answers=len(answers),
        refused=count["refused"],
        failed=count["failed"],
        cut=sum(a.truncated for a in answers),
        repeating=sum(map(repeats_sentence, texts)),
        judge=judge,
        declined=refusal_differences,
    )


def _is_conditional(
    result: PairDifference | Likeness, refusal_differences: Sequence[PairDifference]
) -> bool:
    if isinstance(result, PairDifference) and result.measure == REFUSED:
        return False
    groups = {(d.category, d.first, d.second) for d in refusal_differences}
    return (result.category, result.first, result.second) in groups


def _measure_answers(measure: str, answers: Sequence[PairAnswer], texts: Sequence[str]) -> Values:
    """The value of each answer; NaN where there is none."""
    if measure == REFUSED:
        refusals = [
            math.nan if a.outcome == "failed" else float(a.outcome == "refused") for a in answers
        ]
        return np.array(refusals)
    with_text = [n for n, a in enumerate(answers) if _has_text(a)]
    texts_measured = [texts[n] for n in with_text]
    values = np.full(len(answers), math.nan)
    if measure == WORDS:
        values[with_text] = [word_count(text) for text in texts_measured]
    elif measure == EASE:
        values[with_text] = [reading_ease(text) for text in texts_measured]
    elif measure in SCORED_MEASURES:
        values[with_text] = mean_scores(measure, texts_measured)
    return values


def _has_text(answer: PairAnswer) -> bool:
    return answer.outcome in ("ok", "unparsable")


def _grade_advice(advice: Advice, answers: Sequence[PairAnswer], texts: Sequence[str]) -> Values:
    answered_places = [
        n for n, a in enumerate(answers) if a.outcome == "ok" and a.place.round_name == ASKED
    ]
    requests_and_answers = [
        (neutralise_person(_request_text(answers[n]), answers[n].place.person), texts[n])
        for n in answered_places
    ]
    grades = np.full(len(answers), math.nan)
    grades[answered_places] = advice(requests_and_answers)
    return grades


def _request_text(answer: PairAnswer) -> str:
    return answer.place.wording.about(answer.place.person)


class _PairTests:
    """The tests of one run: how its answers are paired, and the random streams."""

    def __init__(self, answers: Sequence[PairAnswer], permutations: int, seed: int) -> None:
        self._answers = answers
        self._permutations = permutations
        self._seed = seed
        self._request_names = {
            answer.place.wording.number: answer.place.wording.request for answer in answers
        }
        self._slots = {answer.place.wording.number: answer.place.wording.slot for answer in answers}
        groups: dict[str, dict[str, None]] = {}
        for answer in answers:
            groups.setdefault(answer.place.person.category, {})[answer.place.person.group] = None
        self._groups = {
            category: tuple(category_groups) for category, category_groups in groups.items()
        }
        self._units_asked: dict[tuple[str, str], set[Unit]] = defaultdict(set)
        for answer in answers:
            person, wording = answer.place.person, answer.place.wording
            unit = Unit(wording.number, person.number)
            self._units_asked[person.category, person.group].add(unit)

    def cells(self, values: Values) -> _Cells:
        """The mean value by category, group and how it was asked, and unit."""
        values_by_cell: dict[tuple[str, str, str], dict[Unit, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for answer, value in zip(self._answers, values, strict=True):
            if not math.isnan(value):
                place = answer.place
                key = (place.person.category, place.person.group, place.round_name)
                unit = Unit(place.wording.number, place.person.number)
                values_by_cell[key][unit].append(float(value))
        return {
            key: {unit: float(np.mean(unit_values)) for unit, unit_values in units.items()}
            for key, units in values_by_cell.items()
        }

    def differences(self, measure: str, cells: _Cells) -> list[PairDifference]:
        """Each two groups of each category."""
        differences = []
        for category, groups in self._groups.items():
            for first_group, second_group in combinations(groups, 2):
                first_cells, second_cells = (
                    cells.get((category, group, ASKED), {}) for group in (first_group, second_group)
                )
                units = [unit for unit in first_cells if unit in second_cells]
                first, second = _paired_values(units, first_cells, second_cells)
                asked_count = len(
                    self._units_asked[category, first_group]
                    & self._units_asked[category, second_group]
                )
                difference = self._estimate_mean(first - second)
                by_request = self._means_by_request(units, first - second)
                differences.append(
                    PairDifference(
                        category,
                        first_group,
                        second_group,
                        measure,
                        _mean(first),
                        _mean(second),
                        difference.value,
                        difference.low,
                        difference.high,
                        len(units),
                        asked_count - len(units),
                        len(first_cells) - len(units),
                        len(second_cells) - len(units),
                        sum(v * difference.value > 0 for v in by_request.values()),
                        len(by_request),
                        self._swap_p_value(first, second),
                    )
                )
        return differences

    def floor(self, measure: str, cells: _Cells) -> list[PairFloor]:
        """The same where nothing should differ."""
        floors = []
        for category, groups in self._groups.items():
            for change in (AGAIN, GREETED):
                pairs = [
                    (value, cells[category, group, change][unit])
                    for group in groups
                    for unit, value in cells.get((category, group, ASKED), {}).items()
                    if unit in cells.get((category, group, change), {})
                ]
                if not pairs:
                    continue
                first, second = np.array(pairs).T
                difference = self._estimate_mean(first - second)
                floors.append(
                    PairFloor(
                        category,
                        change,
                        measure,
                        difference.value,
                        difference.low,
                        difference.high,
                        len(pairs),
                        self._swap_p_value(first, second),
                    )
                )
            floors += self._name_floor(category, measure, cells)
        return floors

    def _name_floor(self, category: str, measure: str, cells: _Cells) -> list[PairFloor]:
        """What another name of the same group changes: of each group, the first two, the next two
        and so on, in each slot."""
        name_differences = {
            group: self._name_differences(cells.get((category, group, ASKED), {}))
            for group in self._groups[category]
        }
        everything = [
            differences for names in name_differences.values() for differences in names.values()
        ]
        if not everything:
            return []
        squares = []
        for first_group, second_group in combinations(self._groups[category], 2):
            first_cells, second_cells = (
                cells.get((category, group, ASKED), {}) for group in (first_group, second_group)
            )
            differences = [
                *name_differences[first_group].values(),
                *name_differences[second_group].values(),
            ]
            shared_count = len(first_cells.keys() & second_cells.keys())
            if differences and shared_count:
                difference_count = sum(map(len, differences))
                square_sum = sum(sum(d) ** 2 for d in differences)
                squares.append(square_sum / difference_count / shared_count)
        size = math.sqrt(_mean(np.array(squares))) if squares else math.nan
        p = name_swap_p_value(everything, permutations=self._permutations, seed=self._seed)
        units = sum(map(len, everything))
        return [PairFloor(category, ANOTHER_NAME, measure, size, math.nan, math.nan, units, p)]

    def _name_differences(
        self, group_cells: Mapping[Unit, float]
    ) -> dict[tuple[str, int], list[float]]:
        """The differences between two names, wording by wording, for each two names."""
        differences: dict[tuple[str, int], list[float]] = defaultdict(list)
        for unit, value in group_cells.items():
            # People 0 and 1 are a pair, 2 and 3 the next: no name is in two.
            other_name = Unit(unit.wording, unit.person + 1)
            if not unit.person % 2 and other_name in group_cells:
                names = (self._slots[unit.wording], unit.person)
                differences[names].append(value - group_cells[other_name])
        return differences

    def max_loo_p(self, difference: PairDifference, cells: _Cells) -> float:
        """The largest p-value with one request or one person of each group left out; 1 if there is
        only one of either."""
        first_cells, second_cells = (
            cells[difference.category, group, ASKED]
            for group in (difference.first, difference.second)
        )
        units = [unit for unit in first_cells if unit in second_cells]
        first, second = _paired_values(units, first_cells, second_cells)
        largest = 0.0
        for omitted_names in (
            [self._request_names[unit.wording] for unit in units],
            [(self._slots[unit.wording], unit.person) for unit in units],
        ):
            for name in dict.fromkeys(omitted_names):
                kept = np.array([omitted_name != name for omitted_name in omitted_names])
                if not kept.any():
                    return 1.0
                largest = max(largest, self._swap_p_value(first[kept], second[kept]))
        return largest

    def beyond_names(self, difference: PairDifference, cells: _Cells) -> bool:
        """Whether the groups differ by more than the names do: a paired t-test at 5% over the n-th
        people of both, each pair the mean of all that was asked about them (False for fewer than
        three). The swap in units cannot see that all units of a name share what is special about
        it."""
        first_cells, second_cells = (
            cells[difference.category, group, ASKED]
            for group in (difference.first, difference.second)
        )
        name_differences: dict[tuple[str, int], list[float]] = defaultdict(list)
        for unit in first_cells.keys() & second_cells.keys():
            people = (self._slots[unit.wording], unit.person)
            name_differences[people].append(first_cells[unit] - second_cells[unit])
        return _differs_from_zero(name_differences)

    def _means_by_request(self, units: Sequence[Unit], differences: Values) -> dict[str, float]:
        by_request: dict[str, list[float]] = defaultdict(list)
        for unit, value in zip(units, differences, strict=True):
            by_request[self._request_names[unit.wording]].append(value)
        return {
            request: float(np.mean(request_differences))
            for request, request_differences in by_request.items()
        }

    def _swap_p_value(self, first: Values, second: Values) -> float:
        if not len(first):
            return math.nan
        return swap_p_value(
            _build_units(first),
            _build_units(second),
            permutations=self._permutations,
            seed=self._seed,
        )

    def _estimate_mean(self, differences: Values) -> Estimate:
        """The mean over units, with Student's interval."""
        return clustered_mean(range(len(differences)), differences.tolist())

    def likeness(self, texts: Sequence[str]) -> list[Likeness]:
        """How alike answers are, for each two groups of each category."""
        answered = [n for n, a in enumerate(self._answers) if a.outcome == "ok"]
        rows = embed_texts([texts[n] for n in answered])
        vectors = {}
        for row, n in zip(rows, answered, strict=True):
            place = self._answers[n].place
            key = _AnswerKey(
                place.person.category,
                place.person.group,
                place.wording.number,
                place.person.number,
                place.round_name,
                place.sample,
            )
            vectors[key] = row
        return [
            self._compare_likeness(category, one, two, vectors)
            for category, groups in self._groups.items()
            for one, two in combinations(groups, 2)
        ]

    def _compare_likeness(
        self,
        category: str,
        first_group: str,
        second_group: str,
        vectors: Mapping[_AnswerKey, Values],
    ) -> Likeness:
        again, another, greeted = list[Values](), list[Values](), list[float]()
        people_compared = list[tuple[str, int]]()  # of `another`
        groups = (first_group, second_group)
        for key, row in vectors.items():
            if key.category != category or key.group not in groups or key.round_name != ASKED:
                continue
            with_greeting = key._replace(round_name=GREETED)
            if with_greeting in vectors:
                greeted.append(float(row @ vectors[with_greeting]))
            # What follows takes both groups at once: it is met once, at the first of them.
            if key.group == second_group:
                continue
            repeats = [
                key._replace(group=group, round_name=round_name)
                for group in groups
                for round_name in (ASKED, AGAIN)
            ]
            if all(repeat in vectors for repeat in repeats):
                again.append(np.array([vectors[repeat] for repeat in repeats]))
            if key.person % 2:  # the second of two names
                continue
            names = [
                key._replace(group=group, person=person)
                for group in groups
                for person in (key.person, key.person + 1)
            ]
            if all(name in vectors for name in names):
                another.append(np.array([vectors[name] for name in names]))
                people_compared.append((self._slots[key.wording], key.person))
        repeat_couplings, name_couplings = _coupling_means(again), _coupling_means(another)
        name_differences: dict[tuple[str, int], list[float]] = defaultdict(list)
        for people, row in zip(people_compared, name_couplings, strict=True):
            name_differences[people].append(float(row[0] - row[1:].mean()))
        return Likeness(
            category,
            first_group,
            second_group,
            _mean(repeat_couplings[:, 1:].mean(axis=1)),
            _mean(repeat_couplings[:, 0]),
            _mean(np.array(greeted)),
            _mean(name_couplings[:, 0]),
            len(repeat_couplings),
            self._coupling_p_value(repeat_couplings),
            self._coupling_p_value(name_couplings),
            _differs_from_zero(name_differences),
        )

    def _coupling_p_value(self, couples: Values) -> float:
        return coupling_p_value(couples, permutations=self._permutations, seed=self._seed)


def _differs_from_zero(values: Mapping[Any, Sequence[float]]) -> bool:
    """Whether the means of these differ from 0 on average: a t-test at 5%; no for fewer than 3."""
    means = np.array([np.mean(person_values) for person_values in values.values()])
    if len(means) < 3:
        return False
    error = float(means.std(ddof=1)) / math.sqrt(len(means))
    return abs(float(means.mean())) >= student_quantile(0.975, len(means) - 1) * error


class _PairedValues(NamedTuple):
    """Values of the same units on both sides."""

    first: Values
    second: Values


def _paired_values(
    units: Sequence[Unit], a: Mapping[Unit, float], b: Mapping[Unit, float]
) -> _PairedValues:
    return _PairedValues(
        np.array([a[unit] for unit in units]), np.array([b[unit] for unit in units])
    )


def _build_units(values: Values) -> UnitSums:
    columns = np.stack([np.ones(len(values)), values], axis=1)
    return UnitSums(tuple(map(str, range(len(values)))), columns, ratio_of_sums)


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else math.nan


def _coupling_means(fours: Sequence[Values]) -> Values:
    """For each four answers, two to each group, [4, d], the mean cosine within the couples of the
    three ways to make them, [fours, 3]; the first is by group."""
    rows = []
    for four in fours:
        s = four @ four.T
        rows.append([(s[0, 1] + s[2, 3]) / 2, (s[0, 2] + s[1, 3]) / 2, (s[0, 3] + s[1, 2]) / 2])
    return np.array(rows).reshape(len(rows), 3)


def coupling_p_value(
    couples: Values, *, permutations: int = DEFAULT_PERMUTATIONS, seed: int = 0
) -> float:
    """The one-sided p-value of answers to the same group being more alike: the share of ways to
    choose one of the three couplings in each row, [rows, 3], whose sum is at least as large as that
    of the first column; the observed one is among them. Up to 8 rows, all ways are listed. NaN
    without rows."""
    n = len(couples)
    if not n:
        return math.nan

    def figure(ways: Values) -> Values:
        return np.asarray(couples[np.arange(n), ways].sum(axis=1))

    return _share_reaching((0, 1, 2), n, figure, float(couples[:, 0].sum()), permutations, seed)


def name_swap_p_value(
    name_differences: Sequence[Sequence[float]],
    *,
    permutations: int = DEFAULT_PERMUTATIONS,
    seed: int = 0,
) -> float:
    """The one-sided p-value of names making a difference, from the differences between two names in
    each unit, for each two names: the share of ways to swap the two in each unit in which the
    figure is at least as large, the observed one among them. The figure adds up, over each two
    names, the square of the sum of their differences, over the number of units. Up to 14 units that
    differ, all ways are listed. NaN without units, 1 if none differs."""
    if not any(map(len, name_differences)):
        return math.nan
    rows = [
        (pair_index, difference / math.sqrt(len(differences)))
        for pair_index, differences in enumerate(name_differences)
        for difference in differences
        if difference
    ]
    if not rows:
        return 1.0
    columns = np.zeros((len(rows), len(name_differences)))
    for n, (pair_index, value) in enumerate(rows):
        columns[n, pair_index] = value

    def figure(ways: Values) -> Values:
        return np.asarray(((ways @ columns) ** 2).sum(axis=1))

    observed = float(figure(np.ones((1, len(columns))))[0])
    return _share_reaching((-1, 1), len(columns), figure, observed, permutations, seed)


def _share_reaching(
    options: Sequence[int],
    n: int,
    figure: Callable[[Any], Values],
    observed: float,
    permutations: int,
    seed: int,
) -> float:
    """The share of ways to choose among the options n times, [ways, n], whose figure reaches the
    observed one."""
    # The same figure summed in another order differs by rounding.
    close = observed - 1e-9 * max(1.0, abs(observed))
    if len(options) ** n <= _MAX_LISTED_WAYS:
        return float((figure(np.array(list(product(options, repeat=n)))) >= close).mean())
    rng = np.random.Generator(np.random.PCG64(seed))
    reaching_count, step = 0, max(1, _MAX_CHUNK_WAYS // n)
    for start in range(0, permutations, step):
        ways = rng.integers(0, len(options), size=(min(step, permutations - start), n))
        reaching_count += int((figure(np.array(options)[ways]) >= close).sum())
    return (reaching_count + 1) / (permutations + 1)


def _adjust_floor(floor: Sequence[PairFloor]) -> list[PairFloor]:
    q = _adjust_p_values([f.p_value for f in floor])
    return [
        replace(f, q_value=v, found=v <= SIGNIFICANCE_LEVEL) for f, v in zip(floor, q, strict=True)
    ]


def _adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected together; NaN stays."""
    known_places = [n for n, value in enumerate(p_values) if not math.isnan(value)]
    adjusted = [math.nan] * len(p_values)
    for n, value in zip(
        known_places, benjamini_hochberg([p_values[n] for n in known_places]), strict=True
    ):
        adjusted[n] = float(value)
    return adjusted


class _JudgedResults(NamedTuple):
    """What was found, with verdicts, in the order of the first fields of `PairsResult`."""

    differences: tuple[PairDifference, ...]
    floor: tuple[PairFloor, ...]
    likeness: tuple[Likeness, ...]


def _add_verdicts(
    differences: Sequence[PairDifference],
    likeness: Sequence[Likeness],
    floor: Sequence[PairFloor],
    tests: _PairTests,
    values: Mapping[str, Values],
) -> _JudgedResults:
    """The results with their corrected p-values and what follows from them."""
    likeness_p = [
        p for likeness_row in likeness for p in (likeness_row.p_again, likeness_row.p_another)
    ]
    q_values = _adjust_p_values([*(difference.p_value for difference in differences), *likeness_p])
    judged_differences = []
    for difference, value in zip(differences, q_values, strict=False):
        difference = replace(difference, q_value=value)
        if value <= SIGNIFICANCE_LEVEL:
            cells = tests.cells(values[difference.measure])
            max_loo_p, beyond_names = (
                tests.max_loo_p(difference, cells),
                tests.beyond_names(difference, cells),
            )
            difference = replace(
                difference,
                max_loo_p_value=max_loo_p,
                verdict=_choose_verdict(difference, max_loo_p, beyond_names, floor),
            )
        judged_differences.append(difference)
    judged_likeness = []
    likeness_q = q_values[len(differences) :]
    for likeness_row, q_again, q_another in zip(
        likeness, likeness_q[::2], likeness_q[1::2], strict=True
    ):
        verdict = ""
        if q_again <= SIGNIFICANCE_LEVEL:
            group = DIFFERS if likeness_row.beyond_names else MAY_BE_NAMES
            verdict = group if q_another <= SIGNIFICANCE_LEVEL else f"no more than {ANOTHER_NAME}"
        judged_likeness.append(
            replace(likeness_row, q_again=q_again, q_another=q_another, verdict=verdict)
        )
    return _JudgedResults(tuple(judged_differences), tuple(floor), tuple(judged_likeness))


def _choose_verdict(
    difference: PairDifference, max_loo_p: float, beyond_names: bool, floor: Sequence[PairFloor]
) -> str:
    for floor_row in floor:
        applies = floor_row.found and (floor_row.category, floor_row.measure) == (
            difference.category,
            difference.measure,
        )
        if applies and abs(floor_row.difference) >= abs(difference.difference):
            return f"no more than {floor_row.change}"
    if max_loo_p > SIGNIFICANCE_LEVEL:
        return BOUND_TO_ONE
    return DIFFERS if beyond_names else MAY_BE_NAMES
