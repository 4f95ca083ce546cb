"""How far a judge can be trusted: whether it agrees with itself, and with labelled cases.

The cases come with kgbias (`cases.toml`): contexts with statements that follow from them and
statements that do not.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from kgbias.faithfulness.judges import Judge
from kgbias.faithfulness.metrics import retest
from kgbias.stats.inference import Estimate, bootstrap_pairs, proportion


@dataclass(frozen=True, slots=True)
class Case:
    """A labelled case: what it tests, and whether the statement follows from the context."""

    context: str
    statement: str
    supported: bool
    kind: str


@dataclass(frozen=True, slots=True)
class Reliability:
    """How reliable a judge is.

    Attributes:
        judge: its name.
        accuracy: the share of labelled cases that it judges as labelled, in [0, 1].
        kappa: Cohen's kappa of its verdicts with the labels: 0 is chance, 1 is perfect.
        retest: the share of cases that two of its repeats judge alike; without an interval if it
            was asked once.
        by_kind: accuracy for each kind of case.
        unread: verdicts that could not be read; they count as wrong.
    """

    judge: str
    accuracy: Estimate
    kappa: Estimate
    retest: Estimate
    by_kind: Mapping[str, Estimate]
    unread: int


@cache
def cases() -> tuple[Case, ...]:
    """The labelled cases that come with kgbias."""
    data = tomllib.loads(files("kgbias.faithfulness").joinpath("cases.toml").read_text("utf-8"))
    return tuple(
        Case(block["context"], statement, supported, kind)
        for block in data["cases"]
        for kind, supported, statement in block["cases"]
    )


def reliability(judge: Judge, repeats: int = 1) -> Reliability:
    """Put the labelled cases to a judge, each on its own, `repeats` times."""
    labelled = cases()
    asked = [(c.context, (c.statement,)) for c in labelled]
    rounds = [[v for (v,) in judge.verdicts(asked, n)] for n in range(repeats)]
    first = rounds[0]
    right = [verdict is case.supported for verdict, case in zip(first, labelled, strict=True)]
    kinds = list(dict.fromkeys(case.kind for case in labelled))
    said = np.array([float(v is True) for v in first])
    meant = np.array([float(c.supported) for c in labelled])
    return Reliability(
        judge.name,
        proportion(sum(right), len(right)),
        bootstrap_pairs(said, meant, kappa),
        retest(list(zip(*rounds, strict=True))),
        {kind: _of_kind(kind, right, labelled) for kind in kinds},
        sum(v is None for v in first),
    )


def kappa(said: np.ndarray, meant: np.ndarray) -> float:
    """Cohen's kappa of two judgements, 0 or 1 each (Cohen 1960): agreement beyond chance; 1 is
    perfect, NaN if agreement by chance is certain."""
    agree = float(np.mean(said == meant))
    chance = float(said.mean() * meant.mean() + (1 - said.mean()) * (1 - meant.mean()))
    return (agree - chance) / (1 - chance) if chance < 1 else float("nan")


def _of_kind(kind: str, right: Sequence[bool], labelled: Sequence[Case]) -> Estimate:
    own = [ok for ok, case in zip(right, labelled, strict=True) if case.kind == kind]
    return proportion(sum(own), len(own))
