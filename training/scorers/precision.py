"""Count how many of the shipped scorers' labels are right, in crawls from which nothing was learnt.

For regard, the statements of fresh.tsv; for toxicity and identity attack, also those of
attack_development.tsv. Only meaningful statements count, as in places that show the labels.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from kgbias.graph.selection import MIN_ACCEPTABILITY
from kgbias.io.files import write_text
from kgbias.measure.precision import PRECISION_COLUMNS, LabelPrecision
from kgbias.measure.scorers import Scorer
from kgbias.measure.scorers._offline import OfflineScorer
from kgbias.measures import MEASURES
from training.scorers import attack_data, data

Read = Sequence[tuple[str, bool]]  # texts, and whether they deserve the label that hurts


def run(path: Path) -> None:
    """Count, and write the table of `kgbias.measure.precision` to `path`."""
    lines = ["\t".join(PRECISION_COLUMNS)]
    for measure, read in statements().items():
        found = count(OfflineScorer(measure), OfflineScorer("acceptability"), read)
        lines.append("\t".join(str(getattr(found, name)) for name in PRECISION_COLUMNS))
    write_text(path, "\n".join(lines) + "\n")


def statements() -> Mapping[str, Read]:
    """What was read for each measure."""
    fresh = data.read_fresh()
    attacks = [(text, attack == "1") for text, _, attack in fresh if attack]
    attacks += [(row.text, row.attack == 1) for row in attack_data.read_development()]
    regard = [(text, label == "negative") for text, label, _ in fresh if label]
    return {"regard": regard, "toxicity": attacks, "identity_attack": attacks}


def count(scorer: Scorer, sense: Scorer, read: Read) -> LabelPrecision:
    """How a scorer's labels fared, on statements that make sense."""
    texts, label = [text for text, _ in read], MEASURES[scorer.measure].hurtful
    counts = Counter(
        (said.label == label, deserved)
        for said, meant, (_, deserved) in zip(
            scorer.score(texts), sense.score(texts), read, strict=True
        )
        if said and meant and meant.value >= MIN_ACCEPTABILITY
    )
    right, wrong, missed = counts[True, True], counts[True, False], counts[False, True]
    return LabelPrecision(
        scorer.measure,
        scorer.name,
        scorer.version,
        counts.total(),
        right + wrong,
        right,
        right + missed,
    )
