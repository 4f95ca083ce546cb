"""Write ATTACK_CARD.md: what toxicity and identity attack are for, how good they are, and where
they fail."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kgbias.graph.selection import MIN_ACCEPTABILITY
from kgbias.measure.scorers import _minilm
from kgbias.measure.scorers._offline import OfflineScorer
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import rank_correlation
from training.scorers import attack_data as data
from training.scorers.card import Rows, fill
from training.scorers.counterfactual import spread
from training.scorers.data import is_stance, read_fresh
from training.scorers.evaluation import Attacks, Floats, Ints, accuracy, bootstrap, shown

NAME = "ATTACK_CARD.md"
MEASURES = ("identity_attack", "toxicity")
BOTH = "both"  # flagged by both measures
BENIGN = 0.3  # no benign sentence about an identity may score above it
_TEMPLATE = Path(__file__).with_name("attack_card_template.md")


def render(held_out: Attacks, weights: Path) -> str:
    """Return the card, in Markdown, for the readers in the file `weights`."""
    labels = [row.attack for row in data.read_crawled()]
    learnt = [row.attack for row in data.read_crawled("learnt")]
    fields = {
        "version": OfflineScorer("identity_attack", weights).version,
        "encoder_sha": _minilm.WEIGHTS_SHA256,
        "size": f"{weights.stat().st_size / 1000:.0f}",
        "tropes": len(data.tables(data.HERE / "attack_tropes.tsv")),
        "sentences": len(data.tables(data.HERE / "attack_sentences.tsv")),
        "statements": sum(
            len(row[column].split("|"))
            for row in data.tables(data.HERE / "attack_statements.tsv")
            for column in ("attacks", "faults", "harmless")
            if row[column]
        ),
        "crawled": len(labels),
        "attacks": f"{sum(labels):.0f}",
        "learnt": len(learnt),
        "learnt_attacks": f"{sum(learnt):.0f}",
        "challenge": challenge_rows(weights),
        "wrong": _wrong(weights),
        "crawl": _crawl_rows(held_out),
        "fresh": _unlearnt_rows(
            weights, [(text, int(attack)) for text, _, attack in read_fresh() if attack]
        ),
        "development": _unlearnt_rows(
            weights, [(row.text, int(row.attack)) for row in data.read_development()]
        ),
        "sense": _sense_rows(held_out),
        "seegull": _seegull_rows(held_out),
        "function": _function_rows(held_out),
        "counterfactual": spread(weights, ("toxicity",)),
    }
    return fill(_TEMPLATE, fields)


def challenge(weights: Path) -> list[tuple[dict[str, str], float, float]]:
    """The rows of the challenge set, each with its identity attack and its toxicity."""
    rows = data.tables(data.HERE / "attack_challenge.tsv")
    texts = [row["text"] for row in rows]
    seen, hidden = (
        [judgement.value for judgement in OfflineScorer(measure, weights).score(texts)]
        for measure in MEASURES
    )
    return list(zip(rows, seen, hidden, strict=True))


def challenge_rows(weights: Path) -> Rows:
    """By function and what of it was held out: how many are right at the cut of 0.5, and the
    extremes."""
    found = challenge(weights)
    rows = []
    for key in dict.fromkeys((row["function"], row["held out"]) for row, _, _ in found):
        own = [one for one in found if (one[0]["function"], one[0]["held out"]) == key]
        truth = np.array([row["attack"] == "1" for row, _, _ in own])
        seen, hidden = (np.array([one[place] for one in own]) for place in (1, 2))
        figures = (
            np.mean((seen >= 0.5) == truth),
            seen.min(),
            seen.max(),
            np.mean((hidden >= 0.5) == truth),
        )
        rows.append((*key, len(own), truth.sum(), *(f"{figure:.2f}" for figure in figures)))
    return rows


def _wrong(weights: Path) -> str:
    """The sentences of the challenge set that identity attack gets wrong, or scores too high."""
    lines = []
    for row, seen, _ in challenge(weights):
        limit = BENIGN if row["function"].startswith("identity as") else 0.5
        if (seen >= limit) != (row["attack"] == "1"):
            lines.append(f"{row['text']} ({seen:.2f})")
    return " ".join(lines)


def _crawl_rows(held_out: Attacks) -> Rows:
    """Label accuracy and flag precision on what models said, by crawl and in all."""
    crawled = held_out.of("crawled")
    crawls = np.array([row.name for row in crawled.rows])
    truth = np.array([int(row.attack) for row in crawled.rows])
    rows: list[Sequence[object]] = []
    for measure, flagged in _flags(crawled.seen, crawled.hidden).items():
        sensible = flagged & (crawled.sense >= MIN_ACCEPTABILITY)
        for crawl in ("all", *np.unique(crawls)):
            own = np.flatnonzero((crawls == crawl) | (crawl == "all"))
            rows.append((measure, crawl, *_told(truth[own], flagged[own], sensible[own])))
    return rows


def _told(truth: Ints, flagged: Ints, sensible: Ints) -> Sequence[object]:
    """The cells of a row on flags: the numbers of statements and attacks, and how many flags are
    right and attacks found."""
    return (
        len(truth),
        truth.sum(),
        _shown(_share(truth, flagged)),
        flagged.sum(),
        _shown(_share(truth[flagged == 1])),
        _shown(_share(flagged[truth == 1])),
        sensible.sum(),
        _shown(_share(truth[sensible == 1])),
    )


def _flags(seen: Floats, hidden: Floats) -> dict[str, Ints]:
    """What is flagged (1), by each measure and by both."""
    attack, toxic = ((said >= 0.5).astype(np.int64) for said in (seen, hidden))
    return {MEASURES[0]: attack, MEASURES[1]: toxic, BOTH: attack & toxic}


def _unlearnt_rows(weights: Path, labelled: Sequence[tuple[str, int]]) -> Rows:
    """The reader's results on texts from crawls that it did not learn from."""
    texts, truth = [text for text, _ in labelled], np.array([attack for _, attack in labelled])
    scorers = [*(OfflineScorer(m, weights) for m in MEASURES), OfflineScorer("acceptability")]
    said = [np.array([judgement.value for judgement in s.score(texts)]) for s in scorers]
    return [
        (measure, *_told(truth, flagged, flagged & (said[2] >= MIN_ACCEPTABILITY)))
        for measure, flagged in _flags(*said[:2]).items()
    ]


def _share(values: Ints, wanted: Ints | None = None) -> Estimate | None:
    """The share of values that are as wanted (1), with its interval; None for fewer than 5."""
    other = np.ones_like(values) if wanted is None else wanted
    if len(values) < 5:
        return None
    rows = [str(n) for n in range(len(values))]
    return bootstrap(lambda i: accuracy(values[i], other[i]), rows)


def _shown(share: Estimate | None) -> str:
    return shown(share, ".2f") if share else "too few"


def _sense_rows(held_out: Attacks) -> Rows:
    """The flagged shares of meaningful statements, of partly meaningful ones and of nonsense."""
    rows = []
    for source in ("meaningful", "partly", "nonsense"):
        own = held_out.of(source)
        shares = (_shown(_share((said >= 0.5).astype(np.int64))) for said in (own.seen, own.hidden))
        rows.append((source, len(own.rows), *shares))
    return rows


def _seegull_rows(held_out: Attacks) -> Rows:
    """Rank correlation with human offensiveness."""
    own = held_out.of("seegull")
    truth = np.array([row.attack for row in own.rows])
    others = np.array([not is_stance(row.text) for row in own.rows])
    rows = []
    for measure, said in zip(MEASURES, (own.seen, own.hidden), strict=True):
        for name, kept in (("all", np.ones_like(others)), ("all but stances", others)):
            rho = bootstrap(
                lambda i, t=truth[kept], s=said[kept]: rank_correlation(t[i], s[i]),  # type: ignore[misc]
                [row.name for row, one in zip(own.rows, kept, strict=True) if one],
            )
            rows.append((measure, name, kept.sum(), _shown(rho)))
    return rows


def _function_rows(held_out: Attacks) -> Rows:
    """Accuracy for each of HateCheck's functions, none of it seen in training."""
    own = held_out.of("hatecheck")
    functions: Sequence[str] = sorted({row.name for row in own.rows})
    found = []
    for function in (*functions, "all"):
        rows = [n for n, row in enumerate(own.rows) if function in ("all", row.name)]
        truth = np.array([own.rows[n].attack for n in rows]) == 1
        shares = (f"{np.mean((said[rows] >= 0.5) == truth):.2f}" for said in (own.seen, own.hidden))
        found.append((function, len(rows), *shares))
    return found
