"""Train the readers of regard, evaluate them on unseen data, and write their card.

Attacks on groups are learnt along with regard, as they are and with the group replaced: they are
not scored, but teach what both have in common. Readers from several seeds are shipped, and the mean
of their logits counts, as for attacks.
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from kgbias.io.files import replace_file, write_text
from kgbias.measure.scorers._masking import neutralise
from training.scorers import attack_data, data, regard_card
from training.scorers.data import REGARD
from training.scorers.evaluation import Floats, HeldOut, Predicted
from training.scorers.fitting import (
    LAYERS,
    SEEDS,
    Halves,
    States,
    halves,
    predict,
    together,
)
from training.scorers.learning import COLUMNS, Sources, train

ROUNDS = 2
WEIGHTS = "regard.safetensors"
_HARDSHIP = frozenset("poor homeless unemployed".split())


def run(hatecheck: Path, seegull: Path, out: Path, workers: int) -> None:
    """Train, measure, and write the weights and their card to `out`."""
    start = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    held_out, weights = train_and_predict(hatecheck, seegull, workers)
    with replace_file(out / WEIGHTS) as partial:
        save_file(weights, partial)
    write_text(out / regard_card.NAME, regard_card.render(held_out, out / WEIGHTS))
    print(f"wrote {out} in {time.monotonic() - start:.0f} s", file=sys.stderr)


def train_and_predict(
    hatecheck: Path, seegull: Path, workers: int
) -> tuple[HeldOut, dict[str, Tensor]]:
    """Train the readers of each round and those that ship; return held-out logits and weights."""
    texts = _Texts(hatecheck, seegull)
    logits = np.full((len(texts.examples()), len(REGARD)), np.nan)
    weights: dict[str, Tensor] = {}
    jobs = [(hatecheck, seegull, left_out) for left_out in (None, *range(ROUNDS))]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for (_, _, left_out), (trained, said) in zip(jobs, pool.map(_job, jobs), strict=True):
            if left_out is None:
                weights = together(trained)
            else:
                logits[texts.left_out(left_out)] = said
            print("all" if left_out is None else f"round {left_out + 1}", file=sys.stderr)
    parts = texts.parts()
    ends = np.cumsum([len(part) for part in parts])[:-1]
    predicted = zip(parts, np.split(logits, ends), strict=True)
    return HeldOut(*(_predicted(part, own) for part, own in predicted)), weights


def _predicted(examples: Sequence[data.Example], logits: Floats) -> Predicted:
    """The examples that a round held out."""
    kept: NDArray[np.bool_] = ~np.isnan(logits[:, 0])
    return Predicted([e for e, keep in zip(examples, kept, strict=True) if keep], logits[kept])


class _Texts:
    """All texts to train on, and to predict when they are left out."""

    def __init__(self, hatecheck: Path, seegull: Path) -> None:
        self.sentences = data.read_sentences()
        self.narratives = data.read_narratives()
        self.hatecheck = data.read_hatecheck(hatecheck)
        self.crawled = data.read_crawled()
        self.seegull = [
            data.Example(text, source=identity, held=f"attribute {attribute}", offence=offence)
            for identity, attribute, text, offence in data.read_seegull(seegull)
        ]
        self.attacks = attack_data.read_all(hatecheck, seegull)
        self.learnt = data.read_learnt()
        said = {e.text for e in (*self.crawled, *self.learnt)}
        self.nonsense = [
            data.Example(row.text, regard="none", held=row.held)
            for row in attack_data.read_statements()
            if row.source == "nonsense" and row.text not in said
        ]

    def parts(self) -> tuple[list[data.Example], ...]:
        """The texts that regard is predicted for, in the order of `HeldOut`."""
        return self.sentences, self.narratives, self.hatecheck, self.crawled, self.seegull

    def examples(self) -> list[data.Example]:
        """The same in one list."""
        return [example for part in self.parts() for example in part]

    def rounds(self) -> dict[str, int]:
        """The round in which each unit is held out: folds by number, and crawls, HateCheck's
        functions and SeeGULL's attributes dealt by name."""
        found = {f"fold {fold}": fold for fold in range(ROUNDS)}
        held = {one.held for one in self.examples()} | {row.held for row in self.attacks}
        for kind in ("crawl", "function", "attribute"):
            names = sorted(name for name in held if name.startswith(f"{kind} "))
            found |= {name: number % ROUNDS for number, name in enumerate(names)}
        return found

    def left_out(self, number: int) -> NDArray[np.bool_]:
        """Which examples a round leaves out."""
        rounds = self.rounds()
        return np.array([rounds.get(example.held) == number for example in self.examples()])

    def sources(self) -> Sources:
        """What readers are trained on."""
        return Sources(
            sentences=[
                *self.sentences,
                *self.narratives,
                *self.crawled,
                *self.learnt,
                *self.nonsense,
            ],
            identities=[
                data.Example(row.text, regard="neutral")
                for row in self.attacks
                if row.source == "benign" and not _HARDSHIP & set(row.text.rstrip(".").split())
            ],
            phrases=data.read_phrases(),
            hatecheck=self.hatecheck,
            words=data.read_words(),
            attacks=self.attacks,
        )


def _job(job: tuple[Path, Path, int | None]) -> tuple[Sequence[Halves], Floats]:
    """Train readers without a round's data, or on everything; return their weights, and the mean of
    their logits for what the round left out."""
    hatecheck, seegull, left_out = job
    torch.set_num_threads(1)
    texts, states = _Texts(hatecheck, seegull), States(LAYERS)
    sources, own = texts.sources(), np.zeros(len(texts.examples()), bool)
    if left_out is not None:
        own = texts.left_out(left_out)
        held = {name for name, number in texts.rounds().items() if number == left_out}
        sources = sources.without(held)
    unseen = [neutralise(e.text) for e, left in zip(texts.examples(), own, strict=True) if left]
    readers = [train(sources, states, seed) for seed in SEEDS]
    trained = [halves(reader) for reader in readers]
    for each in trained:  # outputs learnt along with regard do not ship
        each |= {name: each[name][: len(REGARD)] for name in ("out.weight", "out.bias")}
    said = [predict(reader, states, unseen) for reader in readers] if unseen else []
    mean = np.mean([each.numpy() for each in said], axis=0) if said else np.empty((0, COLUMNS))
    return trained, mean[:, : len(REGARD)]
