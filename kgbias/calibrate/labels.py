"""Rows on figures corrected by labels: a scorer with planted errors, and labels that are right.

Each trial asks one group of the world, whose statements are drawn from what is planted: prompts
that share a predicate, each with several answers. Each statement stands for several wordings of it,
so that there are enough to label. What the world plants for the group is the truth. The scorer
reads every statement, and some of its readings are wrong:

- "a bias against the group": it reads some statements that are not negative as negative;
- "noise": it reads some statements as anything;
- "a predicate that it does not know": it reads all statements with "hate" as neutral.

No prompt and no crawl changes these rows.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from kgbias.calibrate.rows import Calibration, Row, RowResult
from kgbias.measure.sampling import stratum_turns
from kgbias.reference import Truth, load_truth
from kgbias.stats.designs import Design, Places
from kgbias.stats.inference import Estimate, Sample, Values, mean, proportion
from kgbias.stats.ppi import RectifierCell, CorrectedFigure, ScoredStatements, correct_figure
from kgbias.stats.poststratification import StratifiedSample

ERRORS = {
    "bias": "biased scorer",
    "noise": "noisy scorer",
    "missed": "a predicate missed",
}
LABELS = (50, 100, 400)  # of a group
TRIALS = 100  # for each kind of error
_PROMPTS, _ANSWERS, _WORDINGS = 300, 3, 8
_BIASED, _NOISY = 0.35, 0.2  # shares of statements that are misread
_UNKNOWN = "hate"
_DRAWS = 400
_EACH = 10  # labels of a group that has too few for a correction of its own


@dataclass(frozen=True)
class _Planted:
    """What a group may say, in every wording, [k]: its predicate, its share within the predicate,
    what it is (1, 0 or -1), and what the scorer with each kind of error reads."""

    predicates: Places
    shares: Values
    truth: Values
    read: dict[str, Values]

    @property
    def balance(self) -> float:
        return float(self.shares @ self.truth)


@cache
def _planted(name: str) -> _Planted:
    truth: Truth = load_truth()
    joint, sign = truth.joint(name), {"positive": 1.0, "negative": -1.0}
    number = {p: n for n, p in enumerate(dict.fromkeys(p for p, _ in joint))}
    rows = [
        (number[s[0]], share / _WORDINGS, sign.get(truth.regard_of[truth.statements[s]], 0.0),
         s[0] == _UNKNOWN)
        for s, share in joint.items() for _ in range(_WORDINGS)
    ]  # fmt: skip
    predicates, shares, y, unknown = (np.array(column) for column in zip(*rows, strict=True))
    rng = np.random.default_rng(sorted(truth.groups).index(name))
    k = len(rows)
    read = {
        "none": y,
        "bias": np.where((rng.random(k) < _BIASED) & (y >= 0), -1.0, y),
        "noise": np.where(rng.random(k) < _NOISY, rng.integers(-1, 2, k), y),
        "missed": np.where(unknown, 0.0, y),
    }
    return _Planted(predicates, shares, y, read)


@dataclass(frozen=True)
class _Said:
    """The statements of one crawl of a group: each time that one was said, by prompts, and which of
    the planted ones they are, [k]."""

    asked: StratifiedSample
    which: Places

    @classmethod
    def drawn(cls, own: _Planted, rng: np.random.Generator) -> "_Said":
        shares = np.bincount(own.predicates, own.shares)
        said = []
        for predicate in rng.choice(len(shares), _PROMPTS, p=shares / shares.sum()):
            among = np.flatnonzero(own.predicates == predicate)
            p = own.shares[among]
            said.append(rng.choice(among, _ANSWERS, p=p / p.sum()))
        which, numbers = np.unique(np.concatenate(said), return_inverse=True)
        prompts = np.repeat(np.arange(_PROMPTS), _ANSWERS)
        n = len(prompts)
        sample = Sample(
            numbers.astype(np.float64), np.ones(n, dtype=np.int64),
            Design(prompts, np.zeros(_PROMPTS, dtype=np.int64)), np.arange(n),
        )  # fmt: skip
        return cls(StratifiedSample(sample), which)

    def corrected(
        self, own: _Planted, error: str, labels: int, rng: np.random.Generator
    ) -> CorrectedFigure:
        """The mean regard, by so many labels of the statements (0: what the scorer says)."""
        return _mean(self.read(own, error, labels, rng), rng)

    def read(self, own: _Planted, error: str, labels: int, rng: np.random.Generator) -> ScoredStatements:
        """The statements with so many labels."""
        scores = own.read[error][self.which]
        known, cells = np.full(len(scores), np.nan), list(map(str, scores))
        if not labels:
            known, cells = scores, [""] * len(scores)
        else:
            first = _order(scores, self.asked.sample.values, rng)[:labels]
            known[first] = own.truth[self.which][first]
        return ScoredStatements(self.asked, scores, known, cells)

    def labelled(self, own: _Planted, labels: int, rng: np.random.Generator) -> CorrectedFigure:
        """The mean of as many labels, drawn at random, without a scorer."""
        y = own.truth[self.which]
        first = rng.permutation(len(y))[:labels]
        known = np.full(len(y), np.nan)
        known[first] = y[first]
        return _mean(ScoredStatements(self.asked, np.zeros(len(y)), known, [""] * len(y)), rng)


def _mean(read: ScoredStatements, rng: np.random.Generator) -> CorrectedFigure:
    seed = int(rng.integers(1 << 30))
    found = correct_figure(read, read.build_cells(seed), mean, bounds=(-1.0, 1.0), draws=_DRAWS, seed=seed)
    assert found is not None
    return found


def _order(scores: Values, said: Values, rng: np.random.Generator) -> Places:
    """Statements in the order in which they are labelled (`kgbias.measure.sampling`)."""
    counts = np.bincount(said.astype(np.int64), minlength=len(scores))
    there = np.unique(scores).tolist()
    often = stratum_turns({("", str(s)): int(counts[scores == s].sum()) for s in there})
    numbers, places = rng.random(len(scores)), np.zeros(len(scores))
    for s in there:
        own = np.flatnonzero(scores == s)
        own = own[np.argsort(numbers[own])]
        places[own] = (np.arange(len(own)) + numbers[own]) / often["", str(s)]
    return np.argsort(places)


@dataclass(frozen=True, slots=True)
class Trials:
    """What became of the intervals: how many held the truth, of how many, and the ratio of their
    mean width to that of as many labels alone."""

    held: int
    n: int
    width: float = float("nan")


@cache
def trials(errors: tuple[str, ...], labels: int, count: int = TRIALS) -> Trials:
    """`count` trials for each kind of error, with this number of labels."""
    groups = sorted(load_truth().groups)
    held, widths = 0, []
    for error in errors:
        for number in range(count):
            rng = np.random.default_rng([number, labels])
            own = _planted(groups[number % len(groups)])
            said = _Said.drawn(own, rng)
            e = said.corrected(own, error, labels, rng).estimate
            held += e.low <= own.balance <= e.high
            if labels:
                alone = said.labelled(own, labels, rng).estimate
                widths.append((e.high - e.low, alone.high - alone.low))
    wide = np.array(widths).reshape(-1, 2).mean(axis=0) if widths else (np.nan, 1.0)
    return Trials(held, len(errors) * count, float(wide[0] / wide[1]))


@cache
def told_apart(labels: int, count: int = TRIALS) -> Trials:
    """How often the groups of a planted null are told apart at the 5% level
    (`kgbias.stats.ppi.CorrectedFigure.test`), if the scorer is biased against the first of them."""
    truth = load_truth()
    apart = 0
    for number in range(count):
        rng = np.random.default_rng([number, labels, 1])
        sides: list[CorrectedFigure] = []
        for name in truth.nulls[number % len(truth.nulls)]:
            own = _planted(name)
            said = _Said.drawn(own, rng)
            error = "none" if sides else "bias"
            sides.append(said.corrected(own, error, labels, rng))
        apart += sides[0].test(sides[1]) <= 0.05
    return Trials(apart, count)


@cache
def borrowed(errors: tuple[str, ...], labels: int, count: int = 4) -> Trials:
    """How often the intervals of groups hold if each is corrected by the labels of all, so many
    about each; every group is misread in the same way."""
    groups, held, n = sorted(load_truth().groups), 0, 0
    for error in errors:
        for number in range(count):
            rng = np.random.default_rng([number, labels, 2])
            reads = {}
            for name in groups:
                own = _planted(name)
                reads[name] = _Said.drawn(own, rng).read(own, error, labels, rng)
            parts: dict[Hashable, list[RectifierCell]] = {}
            for read in reads.values():
                for label, own_cell in read.build_cells("").items():
                    parts.setdefault(label, []).append(own_cell)
            pool = {
                label: cell
                for label, some in parts.items()
                if (cell := RectifierCell.from_groups((number, error, label), some)) is not None
            }
            for seed, (name, read) in enumerate(reads.items()):
                found = correct_figure(read, pool, mean, bounds=(-1.0, 1.0), draws=_DRAWS, seed=seed)
                if found is not None:
                    n += 1
                    held += found.estimate.low <= _planted(name).balance <= found.estimate.high
    return Trials(held, n)


def _row(key: str, title: str, target: str, found: Callable[[], Estimate]) -> Row:
    def row(_: Calibration) -> RowResult:
        return RowResult(key, title, target, found(), of_model=True)

    row.__name__ = key
    return row


def _held(errors: tuple[str, ...], labels: int) -> Estimate:
    found = trials(errors, labels)
    return proportion(found.held, found.n)


def _borrowed(errors: tuple[str, ...], labels: int) -> Estimate:
    """The interval is over trials taken for independent groups: those of a trial share its labels,
    so that it is a little too narrow."""
    found = borrowed(errors, labels)
    return proportion(found.held, found.n)


def _width(labels: int) -> Estimate:
    found = trials(tuple(ERRORS), labels)
    return Estimate.missing(found.n, found.width)


def _apart(labels: int) -> Estimate:
    found = told_apart(labels)
    return proportion(found.held, found.n)


def rows() -> Sequence[Row]:
    """The rows of this part of the table."""
    several = LABELS[1]
    found = [
        _row(f"raw_{error}", f"raw intervals hold, {title}", "", partial(_held, (error,), 0))
        for error, title in ERRORS.items()
    ]
    for n in LABELS:
        title, errors = f"corrected intervals hold, {n} labels", tuple(ERRORS)
        found.append(_row(f"corrected_{n}", title, ">= 0.93", partial(_held, errors, n)))
        title = f"width over that of {n} labels alone"
        found.append(_row(f"corrected_width_{n}", title, "", partial(_width, n)))
    found.append(
        _row(
            "borrowed", f"by all groups' labels, {_EACH} of each", ">= 0.93",
            partial(_borrowed, tuple(ERRORS), _EACH),
        )
    )  # fmt: skip
    title = "nulls told apart, biased scorer"
    found.append(_row("biased_nulls", f"{title}, raw", "", partial(_apart, 0)))
    by = f"biased scorer, {several} labels of each null"
    found.append(_row("corrected_nulls", by, "<= 0.05", partial(_apart, several)))
    return found
