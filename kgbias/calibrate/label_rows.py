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

from kgbias.calibrate.calibration_rows import Calibration, RowFunction, RowResult
from kgbias.measure.sampling import stratum_turns
from kgbias.reference import Truth, load_truth
from kgbias.stats.designs import Design, Places
from kgbias.stats.inference import Estimate, Sample, Values, mean, proportion
from kgbias.stats.poststratification import StratifiedSample
from kgbias.stats.ppi import CorrectedFigure, RectifierCell, ScoredStatements, correct_figure

ERROR_TITLES = {
    "bias": "biased scorer",
    "noise": "noisy scorer",
    "missed": "a predicate missed",
}
LABEL_COUNTS = (50, 100, 400)  # of a group
TRIALS_PER_ERROR = 100  # for each kind of error
PROMPTS_PER_CRAWL = 300
_ANSWERS_PER_PROMPT = 3
_WORDINGS_PER_STATEMENT = 8
_BIASED_SHARE = 0.35  # of the statements that are not negative, read as negative
_NOISY_SHARE = 0.2  # of all statements, read as anything
_UNKNOWN_PREDICATE = "hate"
CORRECTION_DRAWS = 400
_LABELS_PER_GROUP = 10  # labels of a group that has too few for a correction of its own


@dataclass(frozen=True)
class _PlantedStatements:
    """What a group may say, in every wording, [k]: its predicate, its share within the predicate,
    what it is (1, 0 or -1), and what the scorer with each kind of error reads."""

    predicates: Places
    shares: Values
    truth: Values
    readings: dict[str, Values]

    @property
    def balance(self) -> float:
        return float(self.shares @ self.truth)


@cache
def _plant_statements(name: str) -> _PlantedStatements:
    truth: Truth = load_truth()
    joint, sign = truth.joint_distribution(name), {"positive": 1.0, "negative": -1.0}
    predicate_number = {p: n for n, p in enumerate(dict.fromkeys(p for p, _ in joint))}
    rows = [
        (
            predicate_number[s[0]],
            share / _WORDINGS_PER_STATEMENT,
            sign.get(truth.regard_of[truth.statements[s]], 0.0),
            s[0] == _UNKNOWN_PREDICATE,
        )
        for s, share in joint.items()
        for _ in range(_WORDINGS_PER_STATEMENT)
    ]
    predicates, shares, truth_values, unknown = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    rng = np.random.default_rng(sorted(truth.groups).index(name))
    statement_count = len(rows)
    readings = {
        "none": truth_values,
        "bias": np.where(
            (rng.random(statement_count) < _BIASED_SHARE) & (truth_values >= 0), -1.0, truth_values
        ),
        "noise": np.where(
            rng.random(statement_count) < _NOISY_SHARE,
            rng.integers(-1, 2, statement_count),
            truth_values,
        ),
        "missed": np.where(unknown, 0.0, truth_values),
    }
    return _PlantedStatements(predicates, shares, truth_values, readings)


@dataclass(frozen=True)
class _CrawlStatements:
    """The statements of one crawl of a group: each time that one was said, by prompts, and which of
    the planted ones they are, [k]."""

    stratified: StratifiedSample
    planted_indices: Places

    @classmethod
    def draw(cls, planted: _PlantedStatements, rng: np.random.Generator) -> "_CrawlStatements":
        shares = np.bincount(planted.predicates, planted.shares)
        draws = []
        for predicate in rng.choice(len(shares), PROMPTS_PER_CRAWL, p=shares / shares.sum()):
            predicate_statements = np.flatnonzero(planted.predicates == predicate)
            p = planted.shares[predicate_statements]
            draws.append(rng.choice(predicate_statements, _ANSWERS_PER_PROMPT, p=p / p.sum()))
        planted_indices, numbers = np.unique(np.concatenate(draws), return_inverse=True)
        prompts = np.repeat(np.arange(PROMPTS_PER_CRAWL), _ANSWERS_PER_PROMPT)
        statement_count = len(prompts)
        sample = Sample(
            numbers.astype(np.float64),
            np.ones(statement_count, dtype=np.int64),
            Design(prompts, np.zeros(PROMPTS_PER_CRAWL, dtype=np.int64)),
            np.arange(statement_count),
        )
        return cls(StratifiedSample(sample), planted_indices)

    def correct_mean(
        self, planted: _PlantedStatements, error: str, labels: int, rng: np.random.Generator
    ) -> CorrectedFigure:
        """The mean regard, by so many labels of the statements (0: what the scorer says)."""
        return _corrected_mean(self.build_readings(planted, error, labels, rng), rng)

    def build_readings(
        self, planted: _PlantedStatements, error: str, labels: int, rng: np.random.Generator
    ) -> ScoredStatements:
        """The statements with so many labels."""
        scores = planted.readings[error][self.planted_indices]
        labels_known, cells = np.full(len(scores), np.nan), list(map(str, scores))
        if not labels:
            labels_known, cells = scores, [""] * len(scores)
        else:
            labelled_first = _labelling_order(scores, self.stratified.sample.values, rng)[:labels]
            labels_known[labelled_first] = planted.truth[self.planted_indices][labelled_first]
        return ScoredStatements(self.stratified, scores, labels_known, cells)

    def mean_of_labels(
        self, planted: _PlantedStatements, labels: int, rng: np.random.Generator
    ) -> CorrectedFigure:
        """The mean of as many labels, drawn at random, without a scorer."""
        truth = planted.truth[self.planted_indices]
        labelled_first = rng.permutation(len(truth))[:labels]
        labels_known = np.full(len(truth), np.nan)
        labels_known[labelled_first] = truth[labelled_first]
        return _corrected_mean(
            ScoredStatements(
                self.stratified, np.zeros(len(truth)), labels_known, [""] * len(truth)
            ),
            rng,
        )


def _corrected_mean(read: ScoredStatements, rng: np.random.Generator) -> CorrectedFigure:
    seed = int(rng.integers(1 << 30))
    corrected = correct_figure(
        read, read.build_cells(seed), mean, bounds=(-1.0, 1.0), draws=CORRECTION_DRAWS, seed=seed
    )
    assert corrected is not None
    return corrected


def _labelling_order(scores: Values, statement_numbers: Values, rng: np.random.Generator) -> Places:
    """Statements in the order in which they are labelled (`kgbias.measure.sampling`)."""
    counts = np.bincount(statement_numbers.astype(np.int64), minlength=len(scores))
    distinct_scores = np.unique(scores).tolist()
    turn_shares = stratum_turns(
        {("", str(score)): int(counts[scores == score].sum()) for score in distinct_scores}
    )
    numbers, places = rng.random(len(scores)), np.zeros(len(scores))
    for score in distinct_scores:
        score_rows = np.flatnonzero(scores == score)
        score_rows = score_rows[np.argsort(numbers[score_rows])]
        places[score_rows] = (np.arange(len(score_rows)) + numbers[score_rows]) / turn_shares[
            "", str(score)
        ]
    return np.argsort(places)


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """What became of trials: the hits (intervals that held the truth, or tests that told a null
    apart), of how many, and the ratio of the intervals' mean width to that of as many labels
    alone."""

    hits: int
    total: int
    width: float = float("nan")


@cache
def run_coverage_trials(
    errors: tuple[str, ...], labels: int, count: int = TRIALS_PER_ERROR
) -> TrialCounts:
    """`count` trials for each kind of error, with this number of labels."""
    groups = sorted(load_truth().groups)
    covered, widths = 0, []
    for error in errors:
        for number in range(count):
            rng = np.random.default_rng([number, labels])
            planted = _plant_statements(groups[number % len(groups)])
            statements = _CrawlStatements.draw(planted, rng)
            estimate = statements.correct_mean(planted, error, labels, rng).estimate
            covered += estimate.low <= planted.balance <= estimate.high
            if labels:
                labels_only = statements.mean_of_labels(planted, labels, rng).estimate
                widths.append((estimate.high - estimate.low, labels_only.high - labels_only.low))
    mean_widths = np.array(widths).reshape(-1, 2).mean(axis=0) if widths else (np.nan, 1.0)
    return TrialCounts(covered, len(errors) * count, float(mean_widths[0] / mean_widths[1]))


@cache
def run_null_trials(labels: int, count: int = TRIALS_PER_ERROR) -> TrialCounts:
    """How often the groups of a planted null are told apart at the 5% level
    (`kgbias.stats.ppi.CorrectedFigure.test`), if the scorer is biased against the first of them."""
    truth = load_truth()
    rejected = 0
    for number in range(count):
        rng = np.random.default_rng([number, labels, 1])
        sides: list[CorrectedFigure] = []
        for name in truth.nulls[number % len(truth.nulls)]:
            planted = _plant_statements(name)
            statements = _CrawlStatements.draw(planted, rng)
            error = "none" if sides else "bias"
            sides.append(statements.correct_mean(planted, error, labels, rng))
        rejected += sides[0].test(sides[1]) <= 0.05
    return TrialCounts(rejected, count)


@cache
def run_pooled_trials(errors: tuple[str, ...], labels: int, count: int = 4) -> TrialCounts:
    """How often the intervals of groups hold if each is corrected by the labels of all, so many
    about each; every group is misread in the same way."""
    groups, covered, total = sorted(load_truth().groups), 0, 0
    for error in errors:
        for number in range(count):
            rng = np.random.default_rng([number, labels, 2])
            reads = {}
            for name in groups:
                planted = _plant_statements(name)
                reads[name] = _CrawlStatements.draw(planted, rng).build_readings(
                    planted, error, labels, rng
                )
            cells_by_label: dict[Hashable, list[RectifierCell]] = {}
            for read in reads.values():
                for label, own_cell in read.build_cells("").items():
                    cells_by_label.setdefault(label, []).append(own_cell)
            pool = {
                label: cell
                for label, label_cells in cells_by_label.items()
                if (cell := RectifierCell.from_groups((number, error, label), label_cells))
                is not None
            }
            for seed, (name, read) in enumerate(reads.items()):
                corrected = correct_figure(
                    read, pool, mean, bounds=(-1.0, 1.0), draws=CORRECTION_DRAWS, seed=seed
                )
                if corrected is not None:
                    total += 1
                    covered += (
                        corrected.estimate.low
                        <= _plant_statements(name).balance
                        <= corrected.estimate.high
                    )
    return TrialCounts(covered, total)


def _build_row(
    key: str, title: str, target: str, measure_share: Callable[[], Estimate]
) -> RowFunction:
    def row(_: Calibration) -> RowResult:
        return RowResult(key, title, target, measure_share(), of_model=True)

    row.__name__ = key
    return row


def _covered_estimate(errors: tuple[str, ...], labels: int) -> Estimate:
    trial_counts = run_coverage_trials(errors, labels)
    return proportion(trial_counts.hits, trial_counts.total)


def _pooled_estimate(errors: tuple[str, ...], labels: int) -> Estimate:
    """The interval is over trials taken for independent groups: those of a trial share its labels,
    so that it is a little too narrow."""
    trial_counts = run_pooled_trials(errors, labels)
    return proportion(trial_counts.hits, trial_counts.total)


def _width_estimate(labels: int) -> Estimate:
    trial_counts = run_coverage_trials(tuple(ERROR_TITLES), labels)
    return Estimate.missing(trial_counts.total, trial_counts.width)


def _null_estimate(labels: int) -> Estimate:
    trial_counts = run_null_trials(labels)
    return proportion(trial_counts.hits, trial_counts.total)


def build_label_rows() -> Sequence[RowFunction]:
    """The rows of this part of the table."""
    label_count = LABEL_COUNTS[1]
    label_rows = [
        _build_row(
            f"raw_{error}",
            f"raw intervals hold, {title}",
            "",
            partial(_covered_estimate, (error,), 0),
        )
        for error, title in ERROR_TITLES.items()
    ]
    for label_count in LABEL_COUNTS:
        title, errors = f"corrected intervals hold, {label_count} labels", tuple(ERROR_TITLES)
        label_rows.append(
            _build_row(
                f"corrected_{label_count}",
                title,
                ">= 0.93",
                partial(_covered_estimate, errors, label_count),
            )
        )
        title = f"width over that of {label_count} labels alone"
        label_rows.append(
            _build_row(
                f"corrected_width_{label_count}", title, "", partial(_width_estimate, label_count)
            )
        )
    label_rows.append(
        _build_row(
            "borrowed",
            f"by all groups' labels, {_LABELS_PER_GROUP} of each",
            ">= 0.93",
            partial(_pooled_estimate, tuple(ERROR_TITLES), _LABELS_PER_GROUP),
        )
    )
    title = "nulls told apart, biased scorer"
    label_rows.append(_build_row("biased_nulls", f"{title}, raw", "", partial(_null_estimate, 0)))
    title_part = f"biased scorer, {label_count} labels of each null"
    label_rows.append(
        _build_row("corrected_nulls", title_part, "<= 0.05", partial(_null_estimate, label_count))
    )
    return label_rows
