"""The card's tables of regard on what it was not made for in the first place: narrative sentences,
crawled statements, stereotypes that people judged, and identities in the place of the object."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kgbias.errors import DataError
from kgbias.measure.scorers._base import REGARD
from kgbias.measure.scorers._offline import OfflineScorer
from kgbias.measure.training.data import Example, read_crawled, read_narratives
from kgbias.measure.training.evaluation import (
    Floats,
    Ints,
    accuracy,
    auc,
    bootstrap,
    confusion,
    macro_f1,
    vader,
)

HALVES = ("development", "held out")
SURE = -0.7
STATEMENT = "{identity} people are {attribute}."


def narrative_tables(examples: Sequence[Example], logits: Floats) -> tuple[str, str]:
    """On narrative sentences whose whole forms were left out: the scorers, and the classes.

    Sentences that speak well and ill alike have no right label and are left out.
    """
    kept = [i for i, e in enumerate(examples) if e.regard in REGARD and e.source != "identity"]
    told = [examples[i] for i in kept]
    truth = np.array([REGARD.index(e.regard or "") for e in told])
    forms = [e.source for e in told]
    lines = ["| scorer | accuracy | macro F1 |", "| --- | --- | --- |"]
    most = np.full(len(truth), np.bincount(truth).argmax())
    guesses = {
        "majority": most,
        "VADER": vader([e.text for e in told])[0].argmax(1),
        "**heads**": logits[kept, : len(REGARD)].argmax(1),
    }
    for name, guess in guesses.items():
        right = bootstrap(lambda i, g=guess: accuracy(truth[i], g[i]), forms)  # type: ignore[misc]
        f1 = bootstrap(lambda i, g=guess: macro_f1(truth[i], g[i]), forms)  # type: ignore[misc]
        lines.append(
            f"| {name} | {right.value:.3f} [{right.low:.3f}, {right.high:.3f}] "
            f"| {f1.value:.3f} [{f1.low:.3f}, {f1.high:.3f}] |"
        )
    return "\n".join(lines), class_table(truth, guesses["**heads**"])


def class_table(truth: Ints, guess: Ints) -> str:
    """Confusion matrix with each class's precision, recall and F1."""
    table = confusion(truth, guess, len(REGARD))
    lines = [
        f"| truth | {' | '.join(f'said {label}' for label in REGARD)} | precision | recall | F1 |",
        "| --- |" + " --- |" * (len(REGARD) + 3),
    ]
    for k, label in enumerate(REGARD):
        precision = table[k, k] / max(1, table[:, k].sum())
        recall = table[k, k] / max(1, table[k].sum())
        f1 = 2 * table[k, k] / max(1, table[:, k].sum() + table[k].sum())
        counts = " | ".join(map(str, table[k]))
        lines.append(f"| {label} | {counts} | {precision:.3f} | {recall:.3f} | {f1:.3f} |")
    return "\n".join(lines)


def crawled_table(scorer: OfflineScorer) -> str:
    """On crawled statements for testing: accuracy, and how often the negative label is right.
    Nonsense counts as neutral."""
    statements = read_crawled("test")
    judged = scorer.score([e.text for e in statements])
    said = [judgement.label for judgement in judged]
    truth = ["neutral" if e.regard == "none" else e.regard for e in statements]
    lines = [
        "| crawl | pack | n | accuracy | called negative | rightly | its precision | its recall "
        "| precision below -0.7 |",
        "| --- |" + " --- |" * 8,
    ]
    for crawl in [*sorted({e.cluster for e in statements}), "all"]:
        rows = [i for i, e in enumerate(statements) if crawl in (e.cluster, "all")]
        flagged = [i for i in rows if said[i] == "negative"]
        rightly = sum(truth[i] == "negative" for i in flagged)
        negative = sum(truth[i] == "negative" for i in rows)
        sure = [truth[i] == "negative" for i in rows if judged[i].value < SURE]
        right = np.mean([said[i] == truth[i] for i in rows])
        pack = statements[rows[0]].kind if crawl != "all" else ""
        lines.append(
            f"| {crawl} | {pack} | {len(rows)} | {right:.3f} | {len(flagged)} | {rightly} | "
            f"{rightly / max(1, len(flagged)):.3f} | {rightly / max(1, negative):.3f} | "
            f"{sum(sure) / max(1, len(sure)):.3f} ({len(sure)}) |"
        )
    return "\n".join(lines)


def identity_table(scorer: OfflineScorer, examples: Sequence[Example], logits: Floats) -> str:
    """On sentences that say no more than that somebody is gay, a Muslim, deaf ...: regard as
    shipped (trained on them) and where they were left out of training."""
    own = [e for e in read_narratives() if e.source == "identity"]
    left = [i for i, e in enumerate(examples) if e.source == "identity"]
    soft = np.exp(logits[left, : len(REGARD)])
    soft = soft / soft.sum(1, keepdims=True)
    shipped = np.array([judgement.value for judgement in scorer.score([e.text for e in own])])
    lines = ["| sentences | n | lowest | mean | highest | below -0.3 |", "| --- |" + " --- |" * 5]
    for name, values in (("as shipped", shipped), ("left out", soft[:, 2] - soft[:, 0])):
        lines.append(
            f"| {name} | {len(values)} | {values.min():.2f} | {values.mean():.2f} | "
            f"{values.max():.2f} | {int((values < -0.3).sum())} |"
        )
    return "\n".join(lines)


def seegull_table(scorer: OfflineScorer, folder: Path) -> str:
    """Spearman's rho of regard with mean human offensiveness, on two halves of the identities, and
    the AUC of telling what offends (mean above 0) from what does not."""
    rows = read_seegull(folder)
    texts = [STATEMENT.format(identity=who, attribute=what) for who, what, _ in rows]
    offence = np.array([score for _, _, score in rows])
    half = {who: HALVES[k % 2] for k, who in enumerate(sorted({who for who, _, _ in rows}))}
    values = np.array([judgement.value for judgement in scorer.score(texts)])
    unkind = vader(texts)[1]
    lines = [
        "| identities | stereotypes | rho, regard | rho, VADER | AUC, regard | AUC, VADER |",
        "| --- |" + " --- |" * 5,
    ]
    offends = (offence > 0).astype(np.int64)
    for name in (*HALVES, "all"):
        kept = np.array([name in (half[who], "all") for who, _, _ in rows])
        lines.append(
            f"| {name} | {kept.sum()} | {spearman(values[kept], offence[kept]):.2f} | "
            f"{-spearman(unkind[kept], offence[kept]):.2f} | "
            f"{auc(offends[kept], -values[kept]):.2f} | {auc(offends[kept], unkind[kept]):.2f} |"
        )
    return "\n".join(lines)


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation, ties sharing their mean rank."""
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


def read_seegull(folder: Path) -> list[tuple[str, str, float]]:
    """Read SeeGULL's stereotypes of states: identity, attribute, mean human offensiveness."""
    found = []
    for path in sorted(folder.glob("stereotypes_*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if {row[f"Annotation{k}"] for k in (1, 2, 3)} != {"NA"}:  # else the score says 0
                    score = float(row["offensiveness_score"])
                    found.append((row["identity"], row["attribute"], score))
    if not found:
        raise DataError(f"{folder} has no stereotypes_*.csv with offensiveness scores")
    return found
