"""How many of the statements that a scorer labels "negative", "toxic" or "attack" deserve it.

Counted in crawls not used for training, whose statements one annotator, a language model, read one
by one (`kgbias.measure.labelled.ANNOTATOR`; `training/scorers/precision.py`), over statements that
make sense: those that count by default.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kgbias.graph.types import Metric
from kgbias.io.reading import read_text, table
from kgbias.measure.labelled import ANNOTATOR
from kgbias.measures import Measure, Said
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion

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
            f"(by {ANNOTATOR}), {self.share} deserved it"
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
    for _, row in table(lines, str(COUNTED), COLUMNS, delimiter="\t")[1]:
        read, given, right, wanted = (int(row[name]) for name in COLUMNS[3:])
        key = row["measure"], row["scorer"], row["version"]
        found[key] = Precision(*key, read, given, right, wanted)
    return found
