"""Train the readers of attacks, evaluate them on unseen data, and write their card.

A network learns from texts as they are and from texts with the group replaced. On the former it
scores identity attack, on the latter toxicity. Besides which texts attack, it learns which of two
stereotypes people found more offensive. Readers from several seeds are shipped, and the mean of
their logits counts, because readers that differ only by chance differ in what they flag.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from kgbias.io.files import replace_file, write_text
from kgbias.measure.scorers._masking import neutralise
from kgbias.measure.scorers._reader import LayerReader
from training.scorers import acceptability
from training.scorers import attack_card as model_card
from training.scorers import attack_data as data
from training.scorers.data import Row
from training.scorers.evaluation import Attacks, Floats
from training.scorers.fitting import (
    LAYERS,
    SEEDS,
    Halves,
    States,
    fit,
    halves,
    predict,
    together,
)
from training.scorers.learning import hide

ROUNDS = 2
EPOCHS = 10
BATCH = 128
RATE = 2.5e-3
RANKED = 24  # of SeeGULL's stereotypes to rank beside each batch
RANK = 2.0  # weight of their ranking
APART = 0.1  # stereotypes rated nearer than this are not ranked
RATED = ("seegull", "said otherwise")
NOT_LEARNT = ("meaningful", "partly", "development")
Example = tuple[str, float, float]  # text, how much it attacks, weight


def run(hatecheck: Path, seegull: Path, out: Path, workers: int) -> None:
    """Train, measure and write attack.safetensors and its card to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    _prepare(hatecheck, seegull)
    rows, rounds = _rows(hatecheck, seegull)
    held_out = Attacks(rows, *(np.full(len(rows), np.nan) for _ in range(3)))
    crawls = sorted({row.name for row in data.read_crawled()})
    weights: dict[str, Tensor] = {}
    parts = (*range(ROUNDS), None)
    jobs = [(hatecheck, seegull, left_out, seed) for left_out in parts for seed in SEEDS]
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        done = pool.map(_job, jobs)
        for left_out in parts:
            trained, *said = zip(*islice(done, len(SEEDS)), strict=True)
            if left_out is None:
                weights = together(trained)
            else:
                own = np.array([rounds.get(row.held) == left_out for row in rows])
                seen, hidden = (1 / (1 + np.exp(-np.mean(logits, axis=0))) for logits in said)
                held_out.seen[own], held_out.hidden[own] = seen[own], hidden[own]
            print("all" if left_out is None else f"round {left_out + 1}", file=sys.stderr)
        for crawl, sense in zip(crawls, pool.map(_sense, crawls), strict=True):
            held_out.sense[[n for n, row in enumerate(rows) if _is_of(row, crawl)]] = sense
            print(f"acceptability without {crawl}", file=sys.stderr)
    with replace_file(out / "attack.safetensors") as partial:
        save_file(weights, partial)
    card = model_card.render(held_out, out / "attack.safetensors")
    write_text(out / model_card.NAME, card)
    print(f"wrote {out}", file=sys.stderr)


def _job(job: tuple[Path, Path, int | None, int]) -> tuple[Halves, Floats, Floats]:
    """Train a reader without a round's rows, by a seed; return its weights, and its logits of all
    rows as they are and with their groups replaced."""
    hatecheck, seegull, left_out, seed = job
    torch.set_num_threads(1)
    states = _states()
    rows, rounds = _rows(hatecheck, seegull)
    unseen = [] if left_out is None else [r for r in rows if rounds.get(r.held) == left_out]
    if unseen:
        unseen += [row for row in rows if row.source == "development"]
    texts = {neutralise(row.text) for row in unseen}  # whichever the group
    known = [
        row for row in rows if row.source not in NOT_LEARNT and neutralise(row.text) not in texts
    ]
    reader = train(known, states, seed)
    seen = predict(reader, states, [row.text for row in rows])
    hidden = predict(reader, states, [neutralise(row.text) for row in rows])
    return halves(reader), seen.numpy(), hidden.numpy()


def _sense(crawl: str) -> Floats:
    """The acceptability of what a crawl said, by a reader that saw nothing of the crawl."""
    torch.set_num_threads(1)
    own = [row.text for row in data.read_crawled() if _is_of(row, crawl)]
    return acceptability.of_unseen(crawl, own)


def _is_of(row: Row, crawl: str) -> bool:
    return row.source == "crawled" and row.name == crawl


def _rows(hatecheck: Path, seegull: Path) -> tuple[list[Row], dict[str, int]]:
    """All rows, and the round in which each unit of held-out data is left out."""
    rows = data.read_all(hatecheck, seegull)
    rows += [row for row in data.read_statements() if row.source in NOT_LEARNT]
    rows += data.read_development()
    return rows, _rounds(rows)


def _prepare(hatecheck: Path, seegull: Path) -> None:
    """Compute the states of all texts, before the fork, so that all processes have them."""
    texts = [row.text for row in _rows(hatecheck, seegull)[0]]
    texts = sorted({*texts, *map(neutralise, texts)}, key=len)
    for start in range(0, len(texts), 256):
        _states()(texts[start : start + 256])
    acceptability.prepare()


@cache
def _states() -> States:
    return States(LAYERS)


def _rounds(rows: Sequence[Row]) -> dict[str, int]:
    """Deal crawls, HateCheck's functions and SeeGULL's attributes to the rounds, by name."""
    found: dict[str, int] = {}
    for kind in ("crawl", "function", "attribute"):
        names = sorted({row.held for row in rows if row.held.startswith(f"{kind} ")})
        found |= {name: number % ROUNDS for number, name in enumerate(names)}
    return found


def train(rows: Sequence[Row], states: States, seed: int) -> LayerReader:
    """Train a reader and return it in evaluation mode. The same rows and seed give the same
    weights."""
    rng = random.Random(seed)
    batches = [batch for _ in range(EPOCHS) for batch in _epoch(rows, rng)]
    rated = [row for row in rows if row.source in RATED]

    def loss(reader: LayerReader, batch: list[Example]) -> Tensor:
        texts, attack, weights = zip(*batch, strict=True)
        drawn = [_read(row, rng) for row in rng.sample(rated, RANKED)]
        ranked, degrees, _ = zip(*drawn, strict=True)
        logits = reader(*states((*texts, *ranked)))
        wrong = functional.binary_cross_entropy_with_logits(
            logits[: len(batch)], torch.tensor(attack), weight=torch.tensor(weights)
        )
        return wrong + RANK * disorder(logits[len(batch) :], torch.tensor(degrees))

    return fit(1, batches, loss, RATE, seed)


def disorder(logits: Tensor, degrees: Tensor) -> Tensor:
    """How far logits are from the order of the degrees: the mean logistic loss over pairs whose
    degrees are APART (Burges et al. 2005), weighted by how far."""
    further = degrees[:, None] - degrees
    weights = further * (further > APART)
    losses = functional.softplus(logits - logits[:, None])
    return (losses * weights).sum() / weights.sum().clamp(min=APART)


def _epoch(rows: Sequence[Row], rng: random.Random) -> Iterator[list[Example]]:
    """An epoch's batches, texts of similar length together."""
    order = [_read(row, rng) for row in rows]
    rng.shuffle(order)
    for start in range(0, len(order), 8 * BATCH):
        chunk = sorted(order[start : start + 8 * BATCH], key=lambda example: len(example[0]))
        batches = [chunk[i : i + BATCH] for i in range(0, len(chunk), BATCH)]
        rng.shuffle(batches)
        yield from batches


def _read(row: Row, rng: random.Random) -> Example:
    row = hide(row, rng)
    return row.text, row.attack, row.weight
