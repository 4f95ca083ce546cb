"""How far a scorer agrees with labelled statements, and who labelled them.

The statements come from those that the offline scorers were made with
(`training/scorers/labelled.py` draws them), so the figure informs about other judges: it would
flatter the offline scorers, whose cards have held-out figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgbias.io.reading import read_text, table
from kgbias.measure.agreement import kappa
from kgbias.measure.scorers import Scorer
from kgbias.measures import known
from kgbias.stats.estimate import Estimate

LABELLED = Path(__file__).with_name("scorers") / "labelled.tsv"
COLUMNS = ("measure", "label", "text")
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
    wanted = COLUMNS[folder is not None :]  # a package's file is of one measure
    rows = (row for _, row in table(lines, str(path), wanted, delimiter="\t")[1])
    return [(row["text"], row["label"]) for row in rows if row.get("measure", measure) == measure]


def check(scorer: Scorer, statements: Sequence[tuple[str, str]] | None = None) -> Checked:
    """Check a scorer against labelled statements, by default the shipped ones of its measure."""
    statements = labelled(scorer.measure) if statements is None else statements
    judged = scorer.score([text for text, _ in statements])
    pairs = [(j.label, label) for j, (_, label) in zip(judged, statements, strict=True) if j]
    same, found = kappa([a for a, _ in pairs], [b for _, b in pairs])
    return Checked(scorer.measure, scorer.name, same, found, len(statements) - len(pairs))
