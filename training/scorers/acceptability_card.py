"""Write ACCEPTABILITY_CARD.md: what acceptability is for, how good it is, and where it fails."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kgbias.io.files import replace_file, write_text
from kgbias.measure.scorers import _minilm
from kgbias.measure.scorers._offline import OfflineScorer
from kgbias.stats.estimate import Estimate
from training.scorers.card import Rows, fill
from training.scorers.counterfactual import spread
from training.scorers.evaluation import Floats, Ints, accuracy, auc, bootstrap, shown

if TYPE_CHECKING:
    from training.scorers.acceptability import HeldOut

NAME = "ACCEPTABILITY_CARD.md"
PLOT = "acceptability_reliability.svg"
_TEMPLATE = Path(__file__).with_name("acceptability_card_template.md")
_BINS = np.linspace(0, 1, 11)


def write(held_out: "HeldOut", second: tuple[list[str], list[str]], out: Path) -> None:
    """Write the card and its plot to `out`, where the weights are; `second` has the first and the
    second reader's labels of the statements that two have read."""
    weights = out / "acceptability.safetensors"
    said = probabilities(held_out)
    counts = Counter(s.label for s in held_out.statements)
    fields = {
        "version": OfflineScorer("acceptability", weights).version,
        "encoder_sha": _minilm.WEIGHTS_SHA256,
        "size": f"{weights.stat().st_size / 1000:.0f}",
        "statements": len(held_out.statements),
        "meaningful": counts["m"],
        "partly": counts["p"],
        "nonsense": counts["n"],
        "crawl": crawl_rows(held_out),
        "share": _share_rows(held_out, said),
        "reliability": [(n, f"{a:.2f}", f"{b:.2f}") for n, a, b in _reliability(held_out, said)],
        "twice": len(second[0]),
        "three": _agreement(*second),
        "two": _agreement(*([label == "m" for label in labels] for labels in second)),
        "plot": PLOT,
        "counterfactual": spread(weights, ("acceptability",)),
    }
    write_text(out / NAME, fill(_TEMPLATE, fields))
    _plot(held_out, said, out / PLOT)


def probabilities(held_out: "HeldOut") -> Floats:
    """The acceptability of each statement if neither readers nor calibration saw its crawl."""
    crawls = np.array([s.crawl for s in held_out.statements])
    said = np.zeros(len(crawls))
    for crawl in np.unique(crawls):
        slope, offset = held_out.calibration(str(crawl))
        own = crawls == crawl
        said[own] = 1 / (1 + np.exp(-slope * held_out.logits[own] - offset))
    return said


def crawl_rows(held_out: "HeldOut") -> Rows:
    """The area under the curve for each crawl: of meaningful statements against the others, and
    against nonsense alone."""
    found = []
    for crawl, rows in _by_crawl(held_out):
        labels = np.array([held_out.statements[n].label for n in rows])
        cells = []
        for kept in (np.ones(len(rows), bool), labels != "p"):
            truth, logits = (labels[kept] == "m").astype(np.int64), held_out.logits[rows][kept]
            few = min(truth.sum(), len(truth) - truth.sum())
            cells.append("too few" if few < 10 else shown(_auc(truth, logits), ".3f"))
        counts = ", ".join(str(np.sum(labels == label)) for label in "mpn")
        found.append((crawl, counts, *cells))
    return found


def _auc(truth: Ints, logits: Floats) -> Estimate:
    """The area under the curve, with its interval over statements."""
    return bootstrap(lambda i: auc(truth[i], logits[i]), [str(n) for n in range(len(truth))])


def _by_crawl(held_out: "HeldOut") -> list[tuple[str, Ints]]:
    crawls = np.array([s.crawl for s in held_out.statements])
    return [(str(c), np.flatnonzero(crawls == c)) for c in dict.fromkeys(crawls.tolist())]


def _share_rows(held_out: "HeldOut", said: Floats) -> Rows:
    """The share of meaningful statements as read, as mean acceptability, and as share above
    0.5."""
    found = []
    for crawl, rows in _by_crawl(held_out):
        truth = np.array([int(held_out.statements[n].meaningful) for n in rows])
        own = said[rows]
        passed = (own >= 0.5).astype(np.int64)
        cells = (truth.mean(), own.mean(), passed.mean(), accuracy(truth, passed))
        found.append((crawl, len(rows), *(f"{cell:.0%}" for cell in cells)))
    return found


def _reliability(held_out: "HeldOut", said: Floats) -> list[tuple[int, float, float]]:
    """For each tenth: how many statements, their mean acceptability, and the share meaningful."""
    truth = np.array([float(s.meaningful) for s in held_out.statements])
    found = []
    for low, high in pairwise(_BINS):
        own = (said >= low) & ((said < high) | (high == 1))
        if own.any():
            found.append((int(own.sum()), float(said[own].mean()), float(truth[own].mean())))
    return found


def _agreement(one: Sequence[object], other: Sequence[object]) -> tuple[str, str]:
    """The agreement of two readings: the share that is alike, and Cohen's kappa."""
    alike = np.mean([a == b for a, b in zip(one, other, strict=True)])
    by_chance = sum(
        np.mean([a == k for a in one]) * np.mean([b == k for b in other]) for k in set(one)
    )
    return f"{alike:.0%}", f"{(alike - by_chance) / (1 - by_chance):.2f}"


def _plot(held_out: "HeldOut", said: Floats, path: Path) -> None:
    """The reliability plot, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = _reliability(held_out, said)
    with matplotlib.rc_context({"svg.hashsalt": "kgbias", "svg.fonttype": "none"}):
        figure, axes = pyplot.subplots(figsize=(3.4, 3.4), layout="constrained")
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        axes.plot([x for _, x, _ in found], [y for *_, y in found], color="0.3", linewidth=1)
        axes.scatter([x for _, x, _ in found], [y for *_, y in found], [n / 3 for n, *_ in found])
        axes.set(
            xlim=(0, 1),
            ylim=(0, 1),
            xlabel="acceptability, crawl held out",
            ylabel="share read as meaningful",
        )
        with replace_file(path) as partial:
            figure.savefig(partial, format="svg", metadata={"Date": None})
        pyplot.close(figure)
