"""How far a scorer agrees with labelled statements, and who labelled them.

The statements are those that the offline scorers were made with, so the figure tells of a judge
from elsewhere: of the offline scorers it would flatter, and their cards have held-out figures.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgbias.estimate import Estimate
from kgbias.graph.types import verbalise
from kgbias.measure.agreement import kappa
from kgbias.measure.scorers import Scorer
from kgbias.reading import read_text, table

_FOLDER = Path(__file__).with_name("training")
# The file, the column of its label, and what a label there is called here; "": none.
_FILES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "regard": ("crawled.tsv", "regard", {"none": ""}),
    "toxicity": ("sentences.tsv", "toxic", {"1": "toxic", "0": "not toxic"}),
    "identity_attack": ("attack_crawled.tsv", "attack", {"1": "attack", "0": "no attack"}),
    "acceptability": (
        "acceptability.tsv", "label",
        {"m": "meaningful", "p": "not meaningful", "n": "not meaningful"},
    ),
}  # fmt: skip
SAMPLE = 60
ANNOTATOR = "one annotator, a language model"
"""Who gave the labels that ship with kgbias, and read the crawls of its cards: no second reader, so
that nobody knows how far two would agree. It stands wherever a figure rests on them."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A scorer held against labelled statements: Cohen's kappa, the share of labels that are the
    same, and how many of the statements got no judgement."""

    measure: str
    scorer: str
    same: Estimate
    kappa: Estimate
    unjudged: int

    def __str__(self) -> str:
        line = (
            f"{self.scorer} and the labels of {self.same.n + self.unjudged} statements for "
            f"{self.measure}, by {ANNOTATOR}: kappa {self.kappa.value:.2f} "
            f"({self.kappa.interval('.2f')}), {self.same.value:.0%} the same"
        )
        return line + (f"; {self.unjudged} got no judgement" if self.unjudged else "")


def labelled(measure: str, size: int = SAMPLE) -> list[tuple[str, str]]:
    """Labelled statements of a measure, as (sentence, label): a sample with as many of each label
    as there are to be had, the same at every call."""
    file, column, names = _FILES[measure]
    path = _FOLDER / file
    lines = (line for line in read_text(path).splitlines(keepends=True) if line[:1] != "#")
    by_label: dict[str, list[str]] = {}
    for _, row in table(lines, str(path), (column,), delimiter="\t")[1]:
        if not (label := names.get(row[column], row[column])):
            continue
        text = row.get("text") or verbalise(row["group"], row["predicate"], row["object"])
        by_label.setdefault(label, []).append(text)
    rng = random.Random(f"labelled:{measure}")
    each = size // len(by_label)
    sample = [
        (text, label)
        for label, texts in sorted(by_label.items())
        for text in rng.sample(sorted(set(texts)), min(each, len(set(texts))))
    ]
    rng.shuffle(sample)
    return sample


def check(scorer: Scorer, statements: Sequence[tuple[str, str]] | None = None) -> Checked:
    """Hold a scorer against labelled statements, by default the shipped ones of its measure."""
    statements = labelled(scorer.measure) if statements is None else statements
    judged = scorer.score([text for text, _ in statements])
    pairs = [(j.label, label) for j, (_, label) in zip(judged, statements, strict=True) if j]
    same, found = kappa([a for a, _ in pairs], [b for _, b in pairs])
    return Checked(scorer.measure, scorer.name, same, found, len(statements) - len(pairs))
