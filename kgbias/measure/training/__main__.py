"""Train the offline heads, measure them on what they have not seen, and write their card.

    python -m kgbias.measure.training regard --hatecheck test_suite_cases.csv --seegull FOLDER
    python -m kgbias.measure.training acceptability
    python -m kgbias.measure.training attack --hatecheck test_suite_cases.csv --seegull FOLDER

This module has the first, `acceptability.py` the second, and `attack.py` the third: toxicity and
identity attack.
Seeded and deterministic on one machine, whatever the number of workers. Up to five rounds: in each,
a fifth of our sentences (whole clusters of near-paraphrases, and whole forms of the narrative
ones), a fifth of HateCheck's template families and a fifth of its functions are left out, and
predicted. Then the heads that ship are trained on everything.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from kgbias.errors import KgbiasError
from kgbias.files import whole_file, write_text
from kgbias.measure.scorers._masking import neutralise
from kgbias.measure.training import acceptability, data
from kgbias.measure.training import card as model_card
from kgbias.measure.training.evaluation import HeldOut

SCORERS = Path(__file__).parent.parent / "scorers"
ROUNDS = 5
MEMBERS = 2
LOGITS = 5
Array = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, measure, and write weights and model card; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kgbias.measure.training")
    heads = parser.add_subparsers(dest="heads", required=True)
    regard = heads.add_parser("regard", help="how a statement makes its group look")
    sense = heads.add_parser("acceptability", help="whether a statement makes sense")
    attack = heads.add_parser("attack", help="toxicity and identity attack")
    for each in (regard, attack):
        each.add_argument(
            "--hatecheck", type=Path, required=True, help="HateCheck's test_suite_cases.csv"
        )
    for each in (regard, attack):
        each.add_argument(
            "--seegull", type=Path, required=True, help="the folder of SeeGULL's stereotypes_*.csv"
        )
    regard.add_argument(
        "--rounds", type=int, default=ROUNDS, choices=range(1, ROUNDS + 1), help="how many to hold"
    )
    for each in (regard, sense, attack):
        each.add_argument("--out", type=Path, default=SCORERS, help="the folder to write to")
        each.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    options = parser.parse_args(arguments)
    try:
        if options.heads == "regard":
            run(options.hatecheck, options.seegull, options.out, options.rounds, options.workers)
        elif options.heads == "attack":
            from kgbias.measure.training import attack as attacks

            attacks.run(options.hatecheck, options.seegull, options.out, options.workers)
        else:
            acceptability.run(options.out, options.workers)
    except KgbiasError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def run(hatecheck: Path, seegull: Path, out: Path, rounds: int, workers: int) -> None:
    """Do what the command does."""
    start = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    results, weights = train_and_predict(hatecheck, rounds, workers)
    with whole_file(out / "heads.safetensors") as partial:
        save_file(weights, partial)
    minutes = (time.monotonic() - start) / 60
    heads, taken = out / "heads.safetensors", f"{minutes:.0f} min, {workers} workers"
    card = model_card.render(results, heads, hatecheck, seegull, rounds, taken)
    write_text(out / "MODEL_CARD.md", card)
    print(f"wrote {out} in {time.monotonic() - start:.0f} s", file=sys.stderr)


def train_and_predict(
    hatecheck: Path, rounds: int, workers: int
) -> tuple[HeldOut, dict[str, torch.Tensor]]:
    """Train the members of each round and those that ship; return held-out logits and weights."""
    start = time.monotonic()
    texts = _Texts.read(hatecheck)
    own, stories, families, functions = (
        np.full((len(examples), LOGITS), np.nan)
        for examples in (texts.sentences, texts.narratives, texts.hatecheck, texts.hatecheck)
    )
    weights: dict[str, torch.Tensor] = {}
    jobs = [(hatecheck, k, seed) for k in (*range(rounds), None) for seed in range(MEMBERS)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for (_, left_out, seed), result in zip(jobs, pool.map(_job, jobs), strict=True):
            trained, on_own, on_stories, on_hatecheck = result
            if left_out is None:
                weights |= {f"{seed}.{name}": torch.from_numpy(w) for name, w in trained.items()}
            else:
                for logits, said, fold_of in (
                    (own, on_own, [e.family for e in texts.sentences]),
                    (stories, on_stories, [e.family for e in texts.narratives]),
                    (families, on_hatecheck, [e.family for e in texts.hatecheck]),
                    (functions, on_hatecheck, [texts.groups[e.source] for e in texts.hatecheck]),
                ):
                    rows = np.array(fold_of) == left_out
                    logits[rows] = np.nan_to_num(logits[rows]) + said[rows] / MEMBERS
            done = "the heads that ship" if left_out is None else f"round {left_out + 1}/{rounds}"
            print(
                f"{done}, member {seed + 1}/{MEMBERS}: {time.monotonic() - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return (
        HeldOut(
            *_predicted(texts.sentences, own),
            *_predicted(texts.narratives, stories),
            *_predicted(texts.hatecheck, families),
            *_predicted(texts.hatecheck, functions),
        ),
        weights,
    )


def _predicted(
    examples: Sequence[data.Example], logits: Array
) -> tuple[Sequence[data.Example], Array]:
    """The examples that were held out in a round, and their logits."""
    kept: NDArray[np.bool_] = ~np.isnan(logits[:, 0])
    return [e for e, keep in zip(examples, kept, strict=True) if keep], logits[kept]


@dataclass(frozen=True)
class _Texts:
    """What is held out, and which of HateCheck's functions go together in a round."""

    sentences: Sequence[data.Example]
    narratives: Sequence[data.Example]
    hatecheck: Sequence[data.Example]
    groups: Mapping[str, int]

    @staticmethod
    def read(path: Path) -> "_Texts":
        hatecheck = data.read_hatecheck(path, ROUNDS)
        return _Texts(
            data.read_sentences(), data.read_narratives(), hatecheck, _function_groups(hatecheck)
        )


def _function_groups(hatecheck: Sequence[data.Example]) -> dict[str, int]:
    """Deal HateCheck's functions, in order of name, into as many groups as there are rounds."""
    names = sorted({example.source for example in hatecheck})
    return {name: index % ROUNDS for index, name in enumerate(names)}


def _job(job: tuple[Path, int | None, int]) -> tuple[dict[str, Array], Array, Array, Array]:
    """Train one member without a round's data; return its weights and its logits on everything."""
    path, left_out, seed = job
    torch.set_num_threads(1)
    states, texts, sources = _states(), _Texts.read(path), data.read_sources(path, ROUNDS)
    if left_out is not None:
        functions = {name for name, group in texts.groups.items() if group == left_out}
        sources = sources.without(left_out, functions)
    member = data.train(sources, states, seed)
    return (
        {name: tensor.numpy() for name, tensor in member.trained().items()},
        _predict(member, states, [neutralise(example.text) for example in texts.sentences]),
        _predict(member, states, [neutralise(example.text) for example in texts.narratives]),
        _predict(member, states, [example.text for example in texts.hatecheck]),
    )


@cache
def _states() -> data.States:
    return data.States()


def _predict(member: torch.nn.Module, states: data.States, texts: list[str]) -> Array:
    with torch.no_grad():
        rows = [member(*states(texts[i : i + 64])) for i in range(0, len(texts), 64)]
    return torch.cat(rows).double().numpy()


if __name__ == "__main__":
    raise SystemExit(main())
