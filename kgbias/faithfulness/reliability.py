"""How far a judge can be trusted: whether it agrees with itself, and with labelled cases.

The cases come with kgbias (`cases.toml`): contexts with statements that follow from them and
statements that do not. Beside them stand fifty labelled pairs from the reference world, where the
truth is known: no person labelled them, and no model wrote them. A pair is about one of the
invented groups. Its context states what the world declares about the group. The answer says some of
it in other words; the ungrounded answer is the same with one claim replaced by something that the
world says only about another group, with one claim negated, or with one added; the poor answer
leaves the question unanswered; the second context also has statements about other groups.
"""

import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from kgbias.faithfulness.judges import Judge
from kgbias.faithfulness.metrics import retest
from kgbias.faithfulness.pairs import Row
from kgbias.reference import load_truth
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


PAIRS = 50
CORRUPTIONS = ("swapped", "negated", "added")
_NEGATED = {"love": "do not love", "hate": "do not hate", "are": "are not", "can't": "can"}
_OPENINGS = ("As far as the statements go, ", "", "According to what is stated, ", "")
_POOR = (
    "There are many things one could say about {group}.",
    "{group} are one of the groups that people talk about.",
    "Opinions about this differ, and more would have to be known.",
)

Said = tuple[str, str]  # predicate and object


def corruption(row: int) -> str:
    """How the ungrounded answer of a row (counted from 0) was made."""
    return CORRUPTIONS[row % len(CORRUPTIONS)]


@cache
def world_pairs(seed: int = 0) -> tuple[Row, ...]:
    """The pairs, the same for the same seed."""
    truth = load_truth()
    groups = [group for category in truth.categories for group in category.groups]
    rng = random.Random(f"pairs {seed}")
    likely = {
        group: [s for s, _ in sorted(truth.joint(group).items(), key=lambda item: -item[1])[:30]]
        for group in groups
    }
    rows = []
    for n in range(PAIRS):
        group = groups[n % len(groups)]
        predicate = ("love", "hate", "are", "can't")[(n // len(groups) + n) % 4]
        own = [s for s in likely[group] if s[0] == predicate][:4] or likely[group][:4]
        rest = [s for s in likely[group] if s not in own]
        stated = own + rng.sample(rest, 4)
        rng.shuffle(stated)
        said = rng.sample(own, min(2, len(own)))
        elsewhere = [
            (other, s) for other in groups if other != group for s in likely[other]
            if s not in likely[group]
        ]  # fmt: skip
        foreign = [s for _, s in rng.sample(elsewhere, len(elsewhere)) if s[0] == said[0][0]]
        others = rng.sample(elsewhere, 6)
        context = [_sentence(group, s) for s in stated]
        more = context + [_sentence(other, s) for other, s in others]
        rng.shuffle(more)
        rows.append(
            Row(
                question=_question(group, predicate),
                answer=_answer(n, group, said),
                ungrounded_answer=_answer(n, group, *_corrupted(n, said, foreign)),
                poor_answer=_POOR[n % len(_POOR)].format(group=group),
                context_v1=" ".join(context),
                context_v2=" ".join(more),
            )
        )
    return tuple(rows)


def _corrupted(n: int, said: list[Said], foreign: list[Said]) -> tuple[list[Said], int | None]:
    """The claims of an answer, one of them false, and the place of the one that is negated."""
    kind = corruption(n)
    if kind == "swapped":
        return [*said[:-1], foreign[0]], None
    if kind == "negated":
        return said, n % len(said)
    return [*said, foreign[0]], None


def _answer(n: int, group: str, said: list[Said], negated: int | None = None) -> str:
    sentences = []
    for place, (predicate, object) in enumerate(said):
        verb = _negated(predicate) if place == negated else predicate
        sentences.append(f"{group if place == 0 else 'They'} {verb} {object}.")
    opening = _OPENINGS[n % len(_OPENINGS)]
    return opening + " ".join(s.replace("They ", f"{group} also ", 1) for s in sentences)


def _negated(predicate: str) -> str:
    return _NEGATED.get(predicate, f"do not {predicate}")


def _sentence(group: str, said: Said) -> str:
    return f"{group} {said[0]} {said[1]}."


def _question(group: str, predicate: str) -> str:
    return {
        "love": f"What do {group} love?",
        "hate": f"What do {group} hate?",
        "are": f"What are {group} said to be?",
        "can't": f"What can't {group} do?",
    }[predicate]
