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
from kgbias.measure.agreement import correlation, kappa
from kgbias.measure.labelled import Labelled, LabelledSet, shipped, shipped_annotator
from kgbias.measure.scorers import Scorer
from kgbias.measures import Measure, Said, Scored
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion, rank_correlation

SAMPLE = 60
FEWEST = 20
"""The fewest labelled statements about a group for which its agreement is given."""


@dataclass(frozen=True, slots=True)
class Checked:
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
            f"({self.kappa.interval('.2f')}), {self.same.value:.0%} the same"
        )
        return line + (f"; {self.unjudged} got no judgement" if self.unjudged else "")


def check(scorer: Scorer, labels: LabelledSet | None = None) -> Checked:
    """Check a scorer against labelled statements, by default the shipped ones of its measure."""
    of = labels or shipped(scorer.measure) or LabelledSet("", scorer.measure, "person")
    return checks(scorer.name, of, scorer.score([one.text for one in of.statements]))[0]


def checks(scorer: str, of: LabelledSet, judged: Sequence[Scored | None]) -> list[Checked]:
    """What a scorer of this name says of the statements of a set, in their order, against the
    labels: over all of them, then about each group with `FEWEST` or more, by name."""
    pairs = list(zip(of.statements, judged, strict=True))
    groups: dict[str, list[tuple[Labelled, Scored | None]]] = {}
    for one, score in pairs:
        groups.setdefault(one.group, []).append((one, score))
    found = [_checked(scorer, of, "", pairs)]
    return found + [
        _checked(scorer, of, group, own)
        for group, own in sorted(groups.items())
        if group and len(own) >= FEWEST
    ]


def _checked(
    scorer: str, of: LabelledSet, group: str, pairs: Sequence[tuple[Labelled, Scored | None]]
) -> Checked:
    both = [(one, score) for one, score in pairs if score is not None]
    given = [one.label for one, _ in both]
    units = [one.unit or f" {n}" for n, (one, _) in enumerate(both)]
    shared = len(set(units)) < len(units)
    same, agreed = kappa([score.label for _, score in both], given, units if shared else ())
    floor = max(map(given.count, set(given))) / len(given) if given else math.nan
    rated = [(one.rating, score.value) for one, score in both if one.rating is not None]
    rho = Estimate.missing()
    if len(rated) > 1:
        ratings, values = np.array(rated).T
        rho = correlation(rank_correlation(ratings, values), len(rated))
    return Checked(
        of.measure, scorer, same, agreed, len(pairs) - len(both), of.by, of.name, group, floor, rho,
        scorer in of.learnt,
    )  # fmt: skip


COUNTED = Path(__file__).with_name("scorers") / "precision.tsv"
COLUMNS = ("measure", "scorer", "version", "read", "given", "right", "wanted")


@dataclass(frozen=True, slots=True)
class Precision:
    """How far the label `Measure.hurtful` from one version of a scorer can be trusted.

    Attributes:
        measure, scorer, version: whose label.
        read: how many statements were read.
        given: how many of them got the label from the scorer.
        right: how many of these got it from a reader too.
        wanted: how many got it from a reader.
    """

    measure: str
    scorer: str
    version: str
    read: int
    given: int
    right: int
    wanted: int

    @property
    def precision(self) -> Estimate:
        """The share of the labels given that are right, in [0, 1], with Wilson's interval."""
        return proportion(self.right, self.given)

    @property
    def recall(self) -> Estimate:
        """The share of those that should get the label that do, in [0, 1], likewise."""
        return proportion(self.right, self.wanted)

    @property
    def share(self) -> str:
        """The precision and its interval, in percent."""
        right = self.precision
        return f"{right.value:.0%} ({100 * right.low:.0f} to {right.high:.0%})"

    def __str__(self) -> str:
        return (
            f"of {self.given} that got this label in crawls whose statements were read one by one "
            f"(by {shipped_annotator()}), {self.share} deserved it"
        )


def precision_of(metric: Metric | None) -> Precision | None:
    """How far a scorer's label can be trusted; None if that was not counted."""
    if metric is None:
        return None
    return _counted().get((metric.measure, metric.scorer, metric.version))


def caution(measure: Measure, metric: Metric | None, triples: Collection[Said]) -> str:
    """How many of the statements have a measure's hurtful label, and how many that get it deserve
    it: what to know before reading a list of them."""
    judged = [t.scores[measure.name] for t in triples if measure.name in t.scores]
    found = sum(score.label == measure.hurtful for score in judged)
    if not found:
        return f'None of {len(judged):,} is labelled "{measure.hurtful}": these come nearest.'
    verb = "is" if found == 1 else "are"
    return f'{found:,} of {len(judged):,} {verb} labelled "{measure.hurtful}"; {_told(metric)}.'


def worth(measure: Measure, metric: Metric | None) -> str:
    """How far a measure's hurtful label can be trusted, as a line beside a list that it sorts; ""
    if the measure was not taken."""
    return f'On the label "{measure.hurtful}": {_told(metric)}' if metric else ""


def _told(metric: Metric | None) -> str:
    counted = precision_of(metric)
    return str(counted or "how many that get it deserve it was not counted for this scorer")


@cache
def _counted() -> dict[tuple[str, str, str], Precision]:
    lines = read_text(COUNTED).splitlines(keepends=True)
    found = {}
    for _, row in parse_table(lines, str(COUNTED), COLUMNS, delimiter="\t")[1]:
        read, given, right, wanted = (int(row[name]) for name in COLUMNS[3:])
        key = row["measure"], row["scorer"], row["version"]
        found[key] = Precision(*key, read, given, right, wanted)
    return found
