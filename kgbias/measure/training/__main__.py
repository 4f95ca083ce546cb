"""Train the offline heads, measure them on what they have not seen, and write their card.

    python -m kgbias.measure.training regard --hatecheck test_suite_cases.csv [--out DIR]
    python -m kgbias.measure.training acceptability [--out DIR]

The first trains regard and toxicity, which share their heads; `acceptability.py` has the second.
Seeded and deterministic on one machine, whatever the number of workers. Five rounds: in each, a
fifth of our sentences (whole clusters of near-paraphrases), a fifth of HateCheck's template
families and a fifth of its functions are left out, and predicted. Then the heads that ship are
trained on everything.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
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
    regard = heads.add_parser("regard", help="regard and toxicity, which share their heads")
    regard.add_argument(
        "--hatecheck", type=Path, required=True, help="HateCheck's test_suite_cases.csv"
    )
    for each in (regard, heads.add_parser("acceptability", help="whether a statement makes sense")):
        each.add_argument("--out", type=Path, default=SCORERS, help="the folder to write to")
        each.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    options = parser.parse_args(arguments)
    try:
        if options.heads == "regard":
            run(options.hatecheck, options.out, options.workers)
        else:
            acceptability.run(options.out, options.workers)
    except KgbiasError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def run(hatecheck: Path, out: Path, workers: int) -> None:
    """Do what the command does."""
    start = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    results, weights = train_and_predict(hatecheck, workers)
    with whole_file(out / "heads.safetensors") as partial:
        save_file(weights, partial)
    minutes = (time.monotonic() - start) / 60
    card = model_card.render(
        results, out / "heads.safetensors", f"{minutes:.0f} min, {workers} workers"
    )
    write_text(out / "MODEL_CARD.md", card)
    print(f"wrote {out} in {time.monotonic() - start:.0f} s", file=sys.stderr)


def train_and_predict(
    hatecheck_path: Path, workers: int
) -> tuple[HeldOut, dict[str, torch.Tensor]]:
    """Train every round's members and the shipped ones; return held-out logits and the weights."""
    start = time.monotonic()
    sentences = data.read_sentences()
    hatecheck = data.read_hatecheck(hatecheck_path, ROUNDS)
    groups = _function_groups(hatecheck)
    own, families, functions = (
        np.zeros((len(examples), LOGITS)) for examples in (sentences, hatecheck, hatecheck)
    )
    weights: dict[str, torch.Tensor] = {}
    jobs = [(hatecheck_path, k, seed) for k in (*range(ROUNDS), None) for seed in range(MEMBERS)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for (_, left_out, seed), result in zip(jobs, pool.map(_job, jobs), strict=True):
            trained, on_sentences, on_hatecheck = result
            if left_out is None:
                weights |= {f"{seed}.{name}": torch.from_numpy(w) for name, w in trained.items()}
            else:
                rows = np.array([example.family == left_out for example in sentences])
                own[rows] += on_sentences[rows] / MEMBERS
                rows = np.array([example.family == left_out for example in hatecheck])
                families[rows] += on_hatecheck[rows] / MEMBERS
                rows = np.array([groups[example.source] == left_out for example in hatecheck])
                functions[rows] += on_hatecheck[rows] / MEMBERS
            done = "the heads that ship" if left_out is None else f"round {left_out + 1}/{ROUNDS}"
            print(
                f"{done}, member {seed + 1}/{MEMBERS}: {time.monotonic() - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return HeldOut(sentences, hatecheck, own, families, functions), weights


def _function_groups(hatecheck: Sequence[data.Example]) -> dict[str, int]:
    """Deal HateCheck's functions, in order of name, into as many groups as there are rounds."""
    names = sorted({example.source for example in hatecheck})
    return {name: index % ROUNDS for index, name in enumerate(names)}


def _job(job: tuple[Path, int | None, int]) -> tuple[dict[str, Array], Array, Array]:
    """Train one member without a round's data; return its weights and its logits on everything."""
    path, left_out, seed = job
    torch.set_num_threads(1)
    states = _states()
    sentences = data.read_sentences()
    hatecheck = data.read_hatecheck(path, ROUNDS)
    groups = _function_groups(hatecheck)
    member = data.train(
        [example for example in sentences if example.family != left_out],
        [e for e in hatecheck if left_out not in (e.family, groups[e.source])],
        data.read_words(),
        states,
        seed,
    )
    return (
        {name: tensor.numpy() for name, tensor in member.trained().items()},
        _predict(member, states, [neutralise(example.text) for example in sentences]),
        _predict(member, states, [example.text for example in hatecheck]),
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
