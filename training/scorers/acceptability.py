"""Train the readers of acceptability, with whole crawls held out, and write their card.

Labelled statements (acceptability.tsv, by acceptability_guide.md) are the ground truth. They are
few, so meaningful sentences (meaningful.tsv, and this folder's sentences.tsv) are added with lower
weight, each as it is and broken (`corruptions`); meaningful.tsv is partly model output that nobody
has read.
"""

import csv
import random
import sys
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from kgbias.ids import normalise
from kgbias.io.files import replace_file, write_text
from kgbias.measure.scorers._masking import neutralise
from kgbias.measure.scorers._reader import LOWER_LAYER_NUMBERS, LayerReader
from training.scorers import acceptability_card as model_card
from training.scorers import data
from training.scorers.corruptions import Body, broken
from training.scorers.fitting import Halves, States, fit, halves, predict

STATEMENTS = Path(__file__).with_name("acceptability.tsv")
HELD_OUT = Path(__file__).with_name("acceptability_held_out.tsv")
MEANINGFUL = Path(__file__).with_name("meaningful.tsv")
SEED = 0
EPOCHS = 6
BATCH = 64
RATE = 1.5e-3
WEIGHT_UNREAD = 0.3
_GROUP = "Groups"  # any plural: it is replaced before a text is read
_LONGEST = 14  # words in an object that may be broken
_TWO_WORDS = frozenset(
    "are not, are seen, are known, want to, believe in, tend to, can be, can't be".split(", ")
)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that was read and labelled.

    Attributes:
        text: the sentence as the scorer reads it, its group replaced.
        label: "m" meaningful, "p" partly, "n" nonsense, by the guide.
        crawl: where it was said.
    """

    text: str
    label: str
    crawl: str

    @property
    def meaningful(self) -> bool:
        return self.label == "m"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Every statement, with the logit of a reader that saw nothing of its crawl."""

    statements: Sequence[Statement]
    logits: Floats

    def calibration(self, without: str = "") -> tuple[float, float]:
        """The slope and the offset that calibrate a logit, fitted to all crawls but one, with equal
        weight for each crawl."""
        crawls = np.array([s.crawl for s in self.statements])
        kept = crawls != without
        weights = np.array([1 / np.sum(crawls == crawl) for crawl in crawls])
        truth = np.array([float(s.meaningful) for s in self.statements])
        return platt(self.logits[kept], truth[kept], weights[kept])


def run(out: Path, logits_to: Path, workers: int) -> None:
    """Train, measure, and write acceptability.safetensors and its card to `out`, the held-out
    logits to the file `logits_to`."""
    out.mkdir(parents=True, exist_ok=True)
    statements = read_statements()
    crawls = tuple(dict.fromkeys(s.crawl for s in statements))
    logits = np.zeros(len(statements))
    weights: dict[str, Tensor] = {}
    prepare()
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        jobs = (*crawls, "")
        for crawl, (trained, said) in zip(jobs, pool.map(_job, jobs), strict=True):
            own = np.array([s.crawl == crawl for s in statements])
            logits[own] = said[own]
            weights = {name: torch.from_numpy(value) for name, value in trained.items()}
            print(f"without {crawl or 'nothing'}", file=sys.stderr, flush=True)
    held_out = HeldOut(statements, logits)
    weights["calibration"] = torch.tensor(held_out.calibration())
    with replace_file(out / "acceptability.safetensors") as partial:
        save_file(weights, partial)
    write_text(logits_to, _table(held_out))
    model_card.write(held_out, read_twice(), out)
    print(f"wrote {out}", file=sys.stderr)


def _job(crawl: str) -> tuple[Halves, Floats]:
    """Train a reader without a crawl; return its weights and its logits on every statement."""
    torch.set_num_threads(1)
    statements = read_statements()
    states = _states()
    reader = train(examples(statements, crawl), states)
    return halves(reader), predict(reader, states, [s.text for s in statements]).numpy()


def prepare() -> None:
    """Compute the states of all texts, before a fork, so that all processes have them."""
    _states(tuple(text for text, *_ in examples(read_statements())))


def of_unseen(crawl: str, texts: Sequence[str]) -> Floats:
    """The acceptability of sentences of a crawl, by a reader that saw nothing of the crawl and none
    of the sentences, and is calibrated by the other crawls."""
    texts = [neutralise(text, agree=False) for text in texts]
    states = _states()
    reader = train(examples(read_statements(), crawl, set(texts)), states)
    slope, offset = read_held_out().calibration(crawl)
    return 1 / (1 + np.exp(-slope * predict(reader, states, texts).numpy() - offset))


@cache
def _known_states() -> States:
    return States(LOWER_LAYER_NUMBERS)


def _states(texts: Sequence[str] = ()) -> States:
    """The process's states, with those of `texts` computed."""
    states = _known_states()
    for start in range(0, len(texts), 512):
        states(texts[start : start + 512])
    return states


def read_statements(path: Path = STATEMENTS) -> list[Statement]:
    """The labelled statements; a statement of two crawls counts once."""
    found: dict[str, Statement] = {}
    for row in _rows(path):
        said = f"{row['group']} {row['predicate']} {row['object']}."
        found.setdefault(
            normalise(said), Statement(neutralise(said, agree=False), row["label"], row["crawl"])
        )
    return list(found.values())


def read_twice(path: Path = STATEMENTS) -> tuple[list[str], list[str]]:
    """The first and the second reader's labels for the statements that two have read."""
    rows = [row for row in _rows(path) if row["second"]]
    return [row["label"] for row in rows], [row["second"] for row in rows]


def read_meaningful() -> dict[str, list[Body]]:
    """Predicates and objects of sentences that mean something, by source: the crawls and "written"
    of meaningful.tsv, and "sentences", those of sentences.tsv that begin with their group."""
    found: dict[str, dict[Body, None]] = {}
    for row in _rows(MEANINGFUL):
        found.setdefault(row["source"], {})[row["predicate"], row["object"]] = None
    own = found.setdefault("sentences", {})
    for example in data.read_sentences():
        if example.group and example.text.startswith(example.group):
            words = example.text[len(example.group) :].strip().rstrip(".").split()
            cut = 2 if " ".join(words[:2]) in _TWO_WORDS else 1
            if len(words) > cut:
                own[" ".join(words[:cut]), " ".join(words[cut:])] = None
    return {
        source: [body for body in bodies if len(body[1].split()) <= _LONGEST]
        for source, bodies in found.items()
    }


Example = tuple[str, float, float]  # text, whether it is meaningful (0 or 1), weight


def examples(
    statements: Sequence[Statement], without: str = "", unseen: Collection[str] = ()
) -> list[Example]:
    """The training examples of a reader, with nothing from one crawl, and none of the texts
    `unseen`. Each source is broken separately, so leaving one out does not change the others."""
    hidden = {*unseen, *(s.text for s in statements if s.crawl == without)}
    found = [(s.text, float(s.meaningful), 1.0) for s in statements]
    for source, bodies in read_meaningful().items():
        if source == without:
            continue
        rng = random.Random(source)
        words = sorted({word.strip(".,") for _, said in bodies for word in said.split()} - {""})
        for body in bodies:
            for text, good in ((" ".join(body), 1.0), (broken(body, bodies, words, rng), 0.0)):
                found.append((neutralise(f"{_GROUP} {text}.", agree=False), good, WEIGHT_UNREAD))
    return [example for example in found if example[0] not in hidden]


def train(known: Sequence[Example], states: States, seed: int = SEED) -> LayerReader:
    """Train one reader and return it in evaluation mode. The same seed gives the same weights."""
    rng = random.Random(seed)
    batches = [batch for _ in range(EPOCHS) for batch in _epoch(known, rng)]
    return fit(1, batches, lambda reader, batch: _loss(reader, batch, states), RATE, seed)


def _loss(reader: LayerReader, batch: Sequence[Example], states: States) -> Tensor:
    texts, good, weights = zip(*batch, strict=True)
    return functional.binary_cross_entropy_with_logits(
        reader(*states(texts)), torch.tensor(good), weight=torch.tensor(weights)
    )


def _epoch(known: Sequence[Example], rng: random.Random) -> Iterator[list[Example]]:
    """An epoch's batches, texts of similar length together."""
    order = rng.sample(known, len(known))
    for start in range(0, len(order), 8 * BATCH):
        chunk = sorted(order[start : start + 8 * BATCH], key=lambda example: len(example[0]))
        batches = [chunk[i : i + BATCH] for i in range(0, len(chunk), BATCH)]
        rng.shuffle(batches)
        yield from batches


def platt(logits: Floats, truth: Floats, weights: Floats) -> tuple[float, float]:
    """The slope and offset of the logistic regression of truth on logits, by Newton's method."""
    design = np.stack([logits, np.ones_like(logits)], axis=1)
    weights = weights / weights.sum()

    def loss(line: Floats) -> float:
        return float(weights @ (np.logaddexp(0, design @ line) - truth * (design @ line)))

    line = np.zeros(2)
    for _ in range(100):
        said = 1 / (1 + np.exp(-design @ line))
        gradient = design.T @ (weights * (said - truth))
        curvature = (design * (weights * said * (1 - said))[:, None]).T @ design
        step = np.linalg.solve(curvature + 1e-9 * np.eye(2), gradient)
        while loss(line - step) > loss(line) and np.abs(step).max() > 1e-9:
            step /= 2
        line = line - step
        if np.abs(step).max() <= 1e-9:
            break
    return float(line[0]), float(line[1])


def read_held_out(path: Path = HELD_OUT) -> HeldOut:
    """The held-out logits that `run` wrote."""
    rows = _rows(path)
    return HeldOut(
        [Statement(row["text"], row["label"], row["crawl"]) for row in rows],
        np.array([float(row["logit"]) for row in rows]),
    )


def _table(held_out: HeldOut) -> str:
    lines = ["crawl\tlabel\tlogit\ttext"]
    for s, logit in zip(held_out.statements, held_out.logits, strict=True):
        lines.append(f"{s.crawl}\t{s.label}\t{logit:.4f}\t{s.text}")
    return "\n".join(lines) + "\n"


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
