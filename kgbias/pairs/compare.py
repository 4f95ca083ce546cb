"""What swapping the group changes: paired tests, and a floor of changes that should not matter.

A unit is a wording of a request with the n-th person of each group: answers are compared within it
and never across requests. Several answers of a unit count as their mean.

- Differences: the mean over units of what is measured, and the test that swaps the two groups unit
  by unit (`kgbias.compare.paired_tests.swap_p_value`; exact up to 14 units that differ).
- The floor: the same test where nothing should differ: the request made again, and with a greeting
  before it. For another name of the same group, which of two names comes first means nothing, and
  names that pull in opposite directions must not cancel: what counts is the square of each two
  names' difference (`names_p`), and its size is that of the mean of as many differences as the
  groups have people, if their signs were drawn.
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
from typing import Any

import numpy as np

from kgbias.compare.paired_tests import DEFAULT_PERMUTATIONS, swap_p_value
from kgbias.errors import UsageError, no_such
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.pairs.config import AGAIN, ASKED, GREETED, Answered
from kgbias.pairs.read import (
    ADVICE,
    EASE,
    MEASURES,
    REFUSED,
    SCORED,
    WORDS,
    Advice,
    Values,
    by_scorer,
    neutral,
    reading_ease,
    repeats,
    vectors,
    word_count,
)
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import benjamini_hochberg, clustered_mean, student_quantile
from kgbias.stats.units import UnitSums, ratio_of_sums

LEVEL = 0.05
LIKENESS = "likeness"
OTHER = "another name"
DIFFERS, BOUND, NAMES = "differs", "bound to one request or name", "may be the names"
_EXACT = 2**14  # up to this many ways to choose among couples or swap names, all are listed
_CHUNK = 1_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the answers to two groups of a category differ in a measure.

    Attributes:
        of_first, of_second: the mean over units.
        difference, low, high: the first's minus the second's, with Student's 95% interval over
            units; NaN if all units agree.
        units, left_out: how many wordings of requests, each with one person of either group, were
            compared, and how many could not be (an answer was refused or failed).
        only_first, only_second: how many of those left out have an answer for that group alone.
        agree, requests: in how many requests the mean difference has the same sign, of how many.
        p_value, q_value: of the test that swaps the groups, and the same corrected.
        least: the largest p-value with one request, or the n-th person of each group, left out; NaN
            if it was not needed.
        verdict: "differs"; "no more than ..." if a change of the floor that was found is as large;
            "bound to one request or name" if `least` is above 0.05; "may be the names" if a t-test
            over people (the n-th of each group are one) has p above 0.05; "" if q is.
        conditional: whether one of the groups was refused more often (uncorrected p of at most
            0.05): this then holds for what was answered for both. With several samples that may be
            so though no unit was left out.
    """

    category: str
    first: str
    second: str
    measure: str
    of_first: float
    of_second: float
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
    least: float = math.nan
    verdict: str = ""
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Floor:
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
    `conditional` as for a `Difference`."""

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

    differences: tuple[Difference, ...]
    floor: tuple[Floor, ...]
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
    declined: tuple[Difference, ...] = ()

    @property
    def found(self) -> tuple[Difference, ...]:
        """The differences with a verdict."""
        return tuple(d for d in self.differences if d.verdict)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data for JSON, with None for NaN."""
        return nan_to_none(asdict(self))  # type: ignore[no-any-return]

    def as_rows(self) -> Rows[Difference]:
        """The differences; columns: the fields of `Difference`."""
        return Rows(self.differences, columns=Difference.__dataclass_fields__)

    def heading(self) -> str:
        return f"{self.answers:,} answers, {len(self.found)} differences found"


Unit = tuple[int, int]  # the number of the wording, and that of the person in each group
_Cells = Mapping[tuple[str, str, str], Mapping[Unit, float]]


def compare_pairs(
    answers: Sequence[Answered],
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
    known = (*MEASURES, LIKENESS)
    if wrong := [m for m in measures if m not in known]:
        raise UsageError(no_such("measure", wrong[0], known))
    chosen = [m for m in MEASURES if not measures or m in measures]
    told = progress or SilentProgress()
    told.stage("measures", len(chosen) + 1 + (advice is not None))
    texts = [neutral(a.text, a.place.person) for a in answers]
    tests = _Tests(answers, permutations, seed)
    values = {}
    for measure in chosen:
        values[measure] = _measured(measure, answers, texts)
        told.advance()
    if advice is not None:
        values[ADVICE] = _advised(advice, answers, texts)
        told.advance()
    differences, floor = [], []
    for measure, found in values.items():
        cells = tests.cells(found)
        differences += tests.differences(measure, cells)
        floor += tests.floor(measure, cells)
    likeness = tests.likeness(texts) if not measures or LIKENESS in measures else []
    told.advance()
    refused = tests.differences(REFUSED, tests.cells(_measured(REFUSED, answers, texts)))
    declined = tuple(d for d in refused if d.p_value <= LEVEL)
    differences = [replace(d, conditional=_conditional(d, declined)) for d in differences]
    likeness = [replace(k, conditional=_conditional(k, declined)) for k in likeness]
    if not any(d.units for d in differences) and not any(k.units for k in likeness):
        raise UsageError("there is nothing to compare: no two answers to the same request")
    floor = _corrected_floor(floor)
    count = Counter(a.outcome for a in answers)
    return PairsResult(
        *_with_verdicts(differences, likeness, floor, tests, values),
        requests=len({a.place.wording.request for a in answers}),
        wordings=len({a.place.wording.number for a in answers}),
        people=len({(a.place.person.group, a.place.person.name) for a in answers}),
        answers=len(answers),
        refused=count["refused"],
        failed=count["failed"],
        cut=sum(a.cut for a in answers),
        repeating=sum(map(repeats, texts)),
        judge=judge,
        declined=declined,
    )


def _conditional(of: Difference | Likeness, declined: Sequence[Difference]) -> bool:
    if isinstance(of, Difference) and of.measure == REFUSED:
        return False
    groups = {(d.category, d.first, d.second) for d in declined}
    return (of.category, of.first, of.second) in groups


def _measured(measure: str, answers: Sequence[Answered], texts: Sequence[str]) -> Values:
    """The value of each answer; NaN where there is none."""
    if measure == REFUSED:
        said = [
            math.nan if a.outcome == "failed" else float(a.outcome == "refused") for a in answers
        ]
        return np.array(said)
    own = [n for n, a in enumerate(answers) if _told(a)]
    told = [texts[n] for n in own]
    found = np.full(len(answers), math.nan)
    if measure == WORDS:
        found[own] = [word_count(text) for text in told]
    elif measure == EASE:
        found[own] = [reading_ease(text) for text in told]
    elif measure in SCORED:
        found[own] = by_scorer(measure, told)
    return found


def _told(answer: Answered) -> bool:
    return answer.outcome in ("ok", "unparsable")


def _advised(advice: Advice, answers: Sequence[Answered], texts: Sequence[str]) -> Values:
    own = [n for n, a in enumerate(answers) if a.outcome == "ok" and a.place.how == ASKED]
    asked = [(neutral(_request(answers[n]), answers[n].place.person), texts[n]) for n in own]
    found = np.full(len(answers), math.nan)
    found[own] = advice(asked)
    return found


def _request(answer: Answered) -> str:
    return answer.place.wording.about(answer.place.person)


class _Tests:
    """The tests of one run: how its answers are paired, and the random streams."""

    def __init__(self, answers: Sequence[Answered], permutations: int, seed: int) -> None:
        self._answers = answers
        self._permutations = permutations
        self._seed = seed
        self._request = {a.place.wording.number: a.place.wording.request for a in answers}
        self._slot = {a.place.wording.number: a.place.wording.slot for a in answers}
        groups: dict[str, dict[str, None]] = {}
        for a in answers:
            groups.setdefault(a.place.person.category, {})[a.place.person.group] = None
        self._groups = {category: tuple(own) for category, own in groups.items()}
        self._asked = {
            (a.place.person.category, a.place.person.group, a.place.wording.number,
             a.place.person.number) for a in answers
        }  # fmt: skip

    def cells(self, values: Values) -> _Cells:
        """The mean value by category, group and how it was asked, and unit."""
        found: dict[tuple[str, str, str], dict[Unit, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for a, value in zip(self._answers, values, strict=True):
            if not math.isnan(value):
                p = a.place
                key = (p.person.category, p.person.group, p.how)
                found[key][p.wording.number, p.person.number].append(float(value))
        return {
            key: {unit: float(np.mean(own)) for unit, own in units.items()}
            for key, units in found.items()
        }

    def differences(self, measure: str, cells: _Cells) -> list[Difference]:
        """Each two groups of each category."""
        found = []
        for category, groups in self._groups.items():
            for one, two in combinations(groups, 2):
                a, b = (cells.get((category, group, ASKED), {}) for group in (one, two))
                units = [unit for unit in a if unit in b]
                first, second = _both(units, a, b)
                asked = sum(
                    (category, one, *unit) in self._asked and (category, two, *unit) in self._asked
                    for unit in {u[2:] for u in self._asked if u[0] == category}
                )
                apart = self._estimate(first - second)
                by = self._by_request(units, first - second)
                found.append(
                    Difference(
                        category, one, two, measure, _mean(first), _mean(second), apart.value,
                        apart.low, apart.high, len(units), asked - len(units),
                        len(a) - len(units), len(b) - len(units),
                        sum(v * apart.value > 0 for v in by.values()), len(by),
                        self._swapped(first, second),
                    )
                )  # fmt: skip
        return found

    def floor(self, measure: str, cells: _Cells) -> list[Floor]:
        """The same where nothing should differ."""
        found = []
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
                apart = self._estimate(first - second)
                found.append(
                    Floor(
                        category, change, measure, apart.value, apart.low, apart.high, len(pairs),
                        self._swapped(first, second),
                    )
                )  # fmt: skip
            found += self._other_names(category, measure, cells)
        return found

    def _other_names(self, category: str, measure: str, cells: _Cells) -> list[Floor]:
        """What another name of the same group changes: of each group, the first two, the next two
        and so on, in each slot."""
        apart = {
            group: self._names_apart(cells.get((category, group, ASKED), {}))
            for group in self._groups[category]
        }
        everything = [own for names in apart.values() for own in names.values()]
        if not everything:
            return []
        squares = []
        for one, two in combinations(self._groups[category], 2):
            a, b = (cells.get((category, group, ASKED), {}) for group in (one, two))
            own = [*apart[one].values(), *apart[two].values()]
            if own and (both := len(a.keys() & b.keys())):
                squares.append(sum(sum(d) ** 2 for d in own) / sum(map(len, own)) / both)
        size = math.sqrt(_mean(np.array(squares))) if squares else math.nan
        p = names_p(everything, permutations=self._permutations, seed=self._seed)
        units = sum(map(len, everything))
        return [Floor(category, OTHER, measure, size, math.nan, math.nan, units, p)]

    def _names_apart(self, own: Mapping[Unit, float]) -> dict[tuple[str, int], list[float]]:
        """The differences between two names, wording by wording, for each two names."""
        found: dict[tuple[str, int], list[float]] = defaultdict(list)
        for (wording, n), value in own.items():
            if not n % 2 and (wording, n + 1) in own:
                found[self._slot[wording], n].append(value - own[wording, n + 1])
        return found

    def least(self, d: Difference, cells: _Cells) -> float:
        """The largest p-value with one request or one person of each group left out; 1 if there is
        only one of either."""
        a, b = (cells[d.category, group, ASKED] for group in (d.first, d.second))
        units = [unit for unit in a if unit in b]
        first, second = _both(units, a, b)
        largest = 0.0
        for of in ([self._request[w] for w, _ in units], [(self._slot[w], n) for w, n in units]):
            for name in dict.fromkeys(of):
                left = np.array([own != name for own in of])
                if not left.any():
                    return 1.0
                largest = max(largest, self._swapped(first[left], second[left]))
        return largest

    def beyond_names(self, d: Difference, cells: _Cells) -> bool:
        """Whether the groups differ by more than the names do: a paired t-test at 5% over the n-th
        people of both, each pair the mean of all that was asked about them (False for fewer than
        three). The swap in units cannot see that all units of a name share what is special about
        it."""
        a, b = (cells[d.category, group, ASKED] for group in (d.first, d.second))
        apart: dict[tuple[str, int], list[float]] = defaultdict(list)
        for wording, n in a.keys() & b.keys():
            apart[self._slot[wording], n].append(a[wording, n] - b[wording, n])
        return _beyond(apart)

    def _by_request(self, units: Sequence[Unit], apart: Values) -> dict[str, float]:
        found: dict[str, list[float]] = defaultdict(list)
        for (wording, _), value in zip(units, apart, strict=True):
            found[self._request[wording]].append(value)
        return {request: float(np.mean(own)) for request, own in found.items()}

    def _swapped(self, first: Values, second: Values) -> float:
        if not len(first):
            return math.nan
        return swap_p_value(
            _units(first), _units(second), permutations=self._permutations, seed=self._seed
        )

    def _estimate(self, apart: Values) -> Estimate:
        """The mean over units, with Student's interval."""
        return clustered_mean(range(len(apart)), apart.tolist())

    def likeness(self, texts: Sequence[str]) -> list[Likeness]:
        """How alike answers are, for each two groups of each category."""
        own = [n for n, a in enumerate(self._answers) if a.outcome == "ok"]
        rows = vectors([texts[n] for n in own])
        place = {}
        for row, n in zip(rows, own, strict=True):
            p = self._answers[n].place
            place[p.person.category, p.person.group, p.wording.number, p.person.number, p.how,
                  p.sample] = row  # fmt: skip
        return [
            self._alike(category, one, two, place)
            for category, groups in self._groups.items()
            for one, two in combinations(groups, 2)
        ]

    def _alike(
        self, category: str, one: str, two: str, place: Mapping[tuple[Any, ...], Values]
    ) -> Likeness:
        again, another, greeted = list[Values](), list[Values](), list[float]()
        whose = list[tuple[str, int]]()  # of `another`
        for (c, group, wording, n, how, sample), row in place.items():
            if c != category or group not in (one, two) or how != ASKED:
                continue
            if (key := (c, group, wording, n, GREETED, sample)) in place:
                greeted.append(float(row @ place[key]))
            if group == two:
                continue
            own = [(c, g, wording, n, h, sample) for g in (one, two) for h in (ASKED, AGAIN)]
            two_names = (n, n + 1) if not n % 2 else ()
            names = [(c, g, wording, m, ASKED, sample) for g in (one, two) for m in two_names]
            for keys, found in ((own, again), (names, another)):
                if keys and all(key in place for key in keys):
                    found.append(np.array([place[key] for key in keys]))
                    whose += [(self._slot[wording], n)] if found is another else []
        twice, named = _couples(again), _couples(another)
        apart: dict[tuple[str, int], list[float]] = defaultdict(list)
        for people, row in zip(whose, named, strict=True):
            apart[people].append(float(row[0] - row[1:].mean()))
        return Likeness(
            category, one, two, _mean(twice[:, 1:].mean(axis=1)), _mean(twice[:, 0]),
            _mean(np.array(greeted)), _mean(named[:, 0]), len(twice),
            self._coupled(twice), self._coupled(named), _beyond(apart),
        )  # fmt: skip

    def _coupled(self, couples: Values) -> float:
        return coupled_p(couples, permutations=self._permutations, seed=self._seed)


def _beyond(values: Mapping[Any, Sequence[float]]) -> bool:
    """Whether the means of these differ from 0 on average: a t-test at 5%; no for fewer than 3."""
    means = np.array([np.mean(own) for own in values.values()])
    if len(means) < 3:
        return False
    error = float(means.std(ddof=1)) / math.sqrt(len(means))
    return abs(float(means.mean())) >= student_quantile(0.975, len(means) - 1) * error


def _both(
    units: Sequence[Unit], a: Mapping[Unit, float], b: Mapping[Unit, float]
) -> tuple[Values, Values]:
    return np.array([a[unit] for unit in units]), np.array([b[unit] for unit in units])


def _units(values: Values) -> UnitSums:
    columns = np.stack([np.ones(len(values)), values], axis=1)
    return UnitSums(tuple(map(str, range(len(values)))), columns, ratio_of_sums)


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else math.nan


def _couples(fours: Sequence[Values]) -> Values:
    """For each four answers, two to each group, [4, d], the mean cosine within the couples of the
    three ways to make them, [fours, 3]; the first is by group."""
    rows = []
    for four in fours:
        s = four @ four.T
        rows.append([(s[0, 1] + s[2, 3]) / 2, (s[0, 2] + s[1, 3]) / 2, (s[0, 3] + s[1, 2]) / 2])
    return np.array(rows).reshape(len(rows), 3)


def coupled_p(couples: Values, *, permutations: int = DEFAULT_PERMUTATIONS, seed: int = 0) -> float:
    """The one-sided p-value of answers to the same group being more alike: the share of ways to
    choose one of the three couplings in each row, [rows, 3], whose sum is at least as large as that
    of the first column; the observed one is among them. Up to 8 rows, all ways are listed. NaN
    without rows."""
    n = len(couples)
    if not n:
        return math.nan

    def figure(ways: Values) -> Values:
        return np.asarray(couples[np.arange(n), ways].sum(axis=1))

    return _reached((0, 1, 2), n, figure, float(couples[:, 0].sum()), permutations, seed)


def names_p(
    apart: Sequence[Sequence[float]], *, permutations: int = DEFAULT_PERMUTATIONS, seed: int = 0
) -> float:
    """The one-sided p-value of names making a difference, from the differences between two names in
    each unit, for each two names: the share of ways to swap the two in each unit in which the
    figure is at least as large, the observed one among them. The figure adds up, over each two
    names, the square of the sum of their differences, over the number of units. Up to 14 units that
    differ, all ways are listed. NaN without units, 1 if none differs."""
    if not any(map(len, apart)):
        return math.nan
    rows = [
        (pair, difference / math.sqrt(len(own)))
        for pair, own in enumerate(apart)
        for difference in own
        if difference
    ]
    if not rows:
        return 1.0
    columns = np.zeros((len(rows), len(apart)))
    for n, (pair, value) in enumerate(rows):
        columns[n, pair] = value

    def figure(ways: Values) -> Values:
        return np.asarray(((ways @ columns) ** 2).sum(axis=1))

    observed = float(figure(np.ones((1, len(columns))))[0])
    return _reached((-1, 1), len(columns), figure, observed, permutations, seed)


def _reached(
    options: Sequence[int],
    n: int,
    figure: Callable[[Any], Values],
    observed: float,
    permutations: int,
    seed: int,
) -> float:
    """The share of ways to choose among the options n times, [ways, n], whose figure reaches the
    observed one."""
    close = observed - 1e-9 * max(1.0, abs(observed))
    if len(options) ** n <= _EXACT:
        return float((figure(np.array(list(product(options, repeat=n)))) >= close).mean())
    rng = np.random.Generator(np.random.PCG64(seed))
    reached, step = 0, max(1, _CHUNK // n)
    for start in range(0, permutations, step):
        ways = rng.integers(0, len(options), size=(min(step, permutations - start), n))
        reached += int((figure(np.array(options)[ways]) >= close).sum())
    return (reached + 1) / (permutations + 1)


def _corrected_floor(floor: Sequence[Floor]) -> list[Floor]:
    q = _corrected([f.p_value for f in floor])
    return [replace(f, q_value=v, found=v <= LEVEL) for f, v in zip(floor, q, strict=True)]


def _corrected(p: Sequence[float]) -> list[float]:
    """The p-values corrected together; NaN stays."""
    known = [n for n, value in enumerate(p) if not math.isnan(value)]
    found = [math.nan] * len(p)
    for n, value in zip(known, benjamini_hochberg([p[n] for n in known]), strict=True):
        found[n] = float(value)
    return found


def _with_verdicts(
    differences: Sequence[Difference],
    likeness: Sequence[Likeness],
    floor: Sequence[Floor],
    tests: _Tests,
    values: Mapping[str, Values],
) -> tuple[tuple[Difference, ...], tuple[Floor, ...], tuple[Likeness, ...]]:
    """The results with their corrected p-values and what follows from them."""
    both = [p for k in likeness for p in (k.p_again, k.p_another)]
    q = _corrected([*(d.p_value for d in differences), *both])
    found = []
    for d, value in zip(differences, q, strict=False):
        d = replace(d, q_value=value)
        if value <= LEVEL:
            cells = tests.cells(values[d.measure])
            least, beyond = tests.least(d, cells), tests.beyond_names(d, cells)
            d = replace(d, least=least, verdict=_verdict(d, least, beyond, floor))
        found.append(d)
    alike = []
    rest = q[len(differences) :]
    for k, own, names in zip(likeness, rest[::2], rest[1::2], strict=True):
        verdict = ""
        if own <= LEVEL:
            group = DIFFERS if k.beyond_names else NAMES
            verdict = group if names <= LEVEL else f"no more than {OTHER}"
        alike.append(replace(k, q_again=own, q_another=names, verdict=verdict))
    return tuple(found), tuple(floor), tuple(alike)


def _verdict(d: Difference, least: float, beyond: bool, floor: Sequence[Floor]) -> str:
    for f in floor:
        same = f.found and (f.category, f.measure) == (d.category, d.measure)
        if same and abs(f.difference) >= abs(d.difference):
            return f"no more than {f.change}"
    if least > LEVEL:
        return BOUND
    return DIFFERS if beyond else NAMES
