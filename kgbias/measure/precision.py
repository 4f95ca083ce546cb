"""How far a scorer agrees with labelled statements and who labelled them; and how many of the
statements that it labels "negative", "toxic" or "attack" deserve it.

The labelled statements come from those that the offline scorers were made with
(`training/scorers/labelled.py` draws them), so the agreement informs about other judges: it would
flatter the offline scorers, whose cards have held-out figures. Precision was counted in crawls not
used for training, whose statements one annotator, a language model, read one by one (`ANNOTATOR`;
`training/scorers/precision.py`), over statements that make sense: those that count by default.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kgbias.graph.types import Metric
from kgbias.io.reading import read_text, table
from kgbias.measure.agreement import kappa
from kgbias.measure.scorers import Scorer
from kgbias.measures import Measure, Said, known
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion

LABELLED = Path(__file__).with_name("scorers") / "labelled.tsv"
LABELLED_COLUMNS = ("measure", "label", "text")
SAMPLE = 60
ANNOTATOR = "one annotator, a language model"
"""Who gave the labels that ship with kgbias, and read the crawls for its cards. There was no second
reader, so nobody knows how far two would agree. Shown wherever a figure rests on these labels."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A scorer checked against labelled statements: Cohen's kappa, the share of labels that agree,
    and how many of the statements got no judgement."""

    measure: str
    scorer: str
    same: Estimate
    kappa: Estimate
    unjudged: int

    @property
    def annotator(self) -> str:
        """Who labelled the statements."""
        return "whoever made the measure" if known(self.measure).folder else ANNOTATOR

    def __str__(self) -> str:
        if not self.same.n + self.unjudged:
            return (
                f"{self.scorer} judges {self.measure} unchecked: there are no labelled statements "
                "to check it against"
            )
        line = (
            f"{self.scorer} and the labels of {self.same.n + self.unjudged} statements for "
            f"{self.measure}, by {self.annotator}: kappa {self.kappa.value:.2f} "
            f"({self.kappa.interval('.2f')}), {self.same.value:.0%} the same"
        )
        return line + (f"; {self.unjudged} got no judgement" if self.unjudged else "")


def labelled(measure: str) -> list[tuple[str, str]]:
    """Labelled statements of a measure, as (sentence, label): a sample with as many of each label
    as available; for another package's measure, those that the package has, if any."""
    folder = known(measure).folder
    path = folder / f"{measure}.tsv" if folder else LABELLED
    if not path.is_file():
        return []
    lines = (line for line in read_text(path).splitlines(keepends=True) if line[:1] != "#")
    wanted = LABELLED_COLUMNS[folder is not None :]  # a package's file is of one measure
    rows = (row for _, row in table(lines, str(path), wanted, delimiter="\t")[1])
    return [(row["text"], row["label"]) for row in rows if row.get("measure", measure) == measure]


def check(scorer: Scorer, statements: Sequence[tuple[str, str]] | None = None) -> Checked:
    """Check a scorer against labelled statements, by default the shipped ones of its measure."""
    statements = labelled(scorer.measure) if statements is None else statements
    judged = scorer.score([text for text, _ in statements])
    pairs = [(j.label, label) for j, (_, label) in zip(judged, statements, strict=True) if j]
    same, found = kappa([a for a, _ in pairs], [b for _, b in pairs])
    return Checked(scorer.measure, scorer.name, same, found, len(statements) - len(pairs))


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
