"""How far a scorer agrees with labelled statements and who labelled them; and how many of the
statements that it labels "negative", "toxic" or "attack" deserve it.

The labelled statements come from those that the offline scorers were made with
(`training/scorers/labelled.py` draws them), so the agreement informs about other judges: it would
flatter the offline scorers, whose cards have held-out figures. Precision was counted in crawls not
used for training, whose statements the annotator of the shipped labels read one by one
(`training/scorers/precision.py`), over statements that make sense: those that count by default.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from kgbias.graph.types import Metric
from kgbias.io.reading import read_text
from kgbias.io.tables import parse_table
from kgbias.measure.labelled_sets import (
    LabelledSet,
    LabelledStatement,
    describe_shipped_annotator,
    read_shipped_set,
)
from kgbias.measure.scorer_agreement import cohens_kappa, correlation_estimate
from kgbias.measure.scorers import Scorer
from kgbias.measures import Measure, ScoredTriple, ScoreLike
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion, rank_correlation

SAMPLE_SIZE = 60
MIN_GROUP_LABELS = 20
"""The fewest labelled statements about a group for which its agreement is given."""


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """A scorer checked against labelled statements.

    Attributes:
        measure, scorer: which scorer.
        same: the share of labels that agree, in [0, 1].
        kappa: Cohen's kappa, at most 1; 0 is chance.
        unjudged: how many of the statements got no judgement.
        by: who labelled them, in words.
        set: the name of the set.
        group: whom the statements are about; "" for all.
        floor: the share that agrees with whoever always gives the label that is most common; NaN
            without labels.
        rho: Spearman's rank correlation of the values with the ratings that people gave, if the
            labels were made of ratings.
        learnt: whether the scorer learnt from these labels, which flatters it.
    """

    measure: str
    scorer: str
    same: Estimate
    kappa: Estimate
    unjudged: int
    by: str
    set: str = ""
    group: str = ""
    floor: float = math.nan
    rho: Estimate = field(default_factory=Estimate.missing)
    learnt: bool = False

    def __str__(self) -> str:
        if not self.same.n + self.unjudged:
            return (
                f"{self.scorer} judges {self.measure} unchecked: there are no labelled statements "
                "to check it against"
            )
        line = (
            f"{self.scorer} and the labels of {self.same.n + self.unjudged} statements for "
            f"{self.measure}, by {self.by}: kappa {self.kappa.value:.2f} "
            f"({self.kappa.format_interval('.2f')}), {self.same.value:.0%} the same"
        )
        return line + (f"; {self.unjudged} got no judgement" if self.unjudged else "")


def check_shipped_labels(scorer: Scorer, labels: LabelledSet | None = None) -> LabelAgreement:
    """Check a scorer against labelled statements, by default the shipped ones of its measure."""
    labelled_set = (
        labels or read_shipped_set(scorer.measure) or LabelledSet("", scorer.measure, "person")
    )
    return check_by_group(
        scorer.name, labelled_set, scorer.score([one.text for one in labelled_set.statements])
    )[0]


def check_by_group(
    scorer: str, labelled_set: LabelledSet, judgements: Sequence[ScoreLike | None]
) -> list[LabelAgreement]:
    """What a scorer of this name says of the statements of a set, in their order, against the
    labels: over all of them, then about each group with `MIN_GROUP_LABELS` or more, by name."""
    pairs = list(zip(labelled_set.statements, judgements, strict=True))
    groups: dict[str, list[tuple[LabelledStatement, ScoreLike | None]]] = {}
    for statement, score in pairs:
        groups.setdefault(statement.group, []).append((statement, score))
    agreements = [_compare_labels(scorer, labelled_set, "", pairs)]
    return agreements + [
        _compare_labels(scorer, labelled_set, group, group_pairs)
        for group, group_pairs in sorted(groups.items())
        if group and len(group_pairs) >= MIN_GROUP_LABELS
    ]


def _compare_labels(
    scorer: str,
    labelled_set: LabelledSet,
    group: str,
    pairs: Sequence[tuple[LabelledStatement, ScoreLike | None]],
) -> LabelAgreement:
    judged_pairs = [(statement, score) for statement, score in pairs if score is not None]
    given_labels = [statement.label for statement, _ in judged_pairs]
    # A statement without a unit is one of its own; the space keeps its number apart from units.
    units = [statement.unit or f" {n}" for n, (statement, _) in enumerate(judged_pairs)]
    has_shared_units = len(set(units)) < len(units)
    same_share, label_kappa = cohens_kappa(
        [score.label for _, score in judged_pairs], given_labels, units if has_shared_units else ()
    )
    floor = (
        max(map(given_labels.count, set(given_labels))) / len(given_labels)
        if given_labels
        else math.nan
    )
    ratings_and_values = [
        (statement.rating, score.value)
        for statement, score in judged_pairs
        if statement.rating is not None
    ]
    rho = Estimate.missing()
    if len(ratings_and_values) > 1:
        ratings, values = np.array(ratings_and_values).T
        rho = correlation_estimate(rank_correlation(ratings, values), len(ratings_and_values))
    return LabelAgreement(
        labelled_set.measure,
        scorer,
        same_share,
        label_kappa,
        len(pairs) - len(judged_pairs),
        labelled_set.labelled_by,
        labelled_set.name,
        group,
        floor,
        rho,
        scorer in labelled_set.learnt,
    )


PRECISION_FILE = Path(__file__).with_name("scorers") / "precision.tsv"
PRECISION_COLUMNS = ("measure", "scorer", "version", "read", "given", "right", "wanted")


@dataclass(frozen=True, slots=True)
class LabelPrecision:
    """How far the label `Measure.hurtful` from one version of a scorer can be trusted.

    Attributes:
        measure, scorer, version: whose label.
        read_statements: how many statements were read.
        labels_given: how many of them got the label from the scorer.
        labels_right: how many of these got it from a reader too.
        labels_wanted: how many got it from a reader.
    """

    measure: str
    scorer: str
    version: str
    read_statements: int
    labels_given: int
    labels_right: int
    labels_wanted: int

    @property
    def precision(self) -> Estimate:
        """The share of the labels given that are right, in [0, 1], with Wilson's interval."""
        return proportion(self.labels_right, self.labels_given)

    @property
    def recall(self) -> Estimate:
        """The share of those that should get the label that do, in [0, 1], likewise."""
        return proportion(self.labels_right, self.labels_wanted)

    @property
    def share(self) -> str:
        """The precision and its interval, in percent."""
        right = self.precision
        return f"{right.value:.0%} ({100 * right.low:.0f} to {right.high:.0%})"

    def __str__(self) -> str:
        return (
            f"of {self.labels_given} that got this label in crawls whose statements were read one "
            f"by one (by {describe_shipped_annotator()}), {self.share} deserved it"
        )


def read_precision(metric: Metric | None) -> LabelPrecision | None:
    """How far a scorer's label can be trusted; None if that was not counted."""
    if metric is None:
        return None
    return _read_precisions().get((metric.measure, metric.scorer, metric.version))


def describe_hurtful_label(
    measure: Measure, metric: Metric | None, triples: Collection[ScoredTriple]
) -> str:
    """How many of the statements have a measure's hurtful label, and how many that get it deserve
    it: what to know before reading a list of them."""
    measure_scores = [t.scores[measure.name] for t in triples if measure.name in t.scores]
    hurtful_count = sum(score.label == measure.hurtful for score in measure_scores)
    if not hurtful_count:
        return (
            f'None of {len(measure_scores):,} is labelled "{measure.hurtful}": these come nearest.'
        )
    verb = "is" if hurtful_count == 1 else "are"
    return (
        f'{hurtful_count:,} of {len(measure_scores):,} {verb} labelled "{measure.hurtful}"; '
        f"{_precision_text(metric)}."
    )


def describe_precision(measure: Measure, metric: Metric | None) -> str:
    """How far a measure's hurtful label can be trusted, as a line beside a list that it sorts; ""
    if the measure was not taken."""
    return f'On the label "{measure.hurtful}": {_precision_text(metric)}' if metric else ""


def _precision_text(metric: Metric | None) -> str:
    counted_precision = read_precision(metric)
    return str(
        counted_precision or "how many that get it deserve it was not counted for this scorer"
    )


@cache
def _read_precisions() -> dict[tuple[str, str, str], LabelPrecision]:
    lines = read_text(PRECISION_FILE).splitlines(keepends=True)
    precisions = {}
    for _, row in parse_table(lines, str(PRECISION_FILE), PRECISION_COLUMNS, delimiter="\t").rows:
        read_count, given_count, right_count, wanted_count = (
            int(row[name]) for name in PRECISION_COLUMNS[3:]
        )
        key = row["measure"], row["scorer"], row["version"]
        precisions[key] = LabelPrecision(*key, read_count, given_count, right_count, wanted_count)
    return precisions
