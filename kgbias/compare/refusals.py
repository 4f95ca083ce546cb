"""How often a model declines to answer about each group, and whether it does so more of one.

The unit is the prompt, by its first attempt: a prompt that was refused is asked again, and a model
that declines it will do so again, so that counting attempts counts the same refusal many times. A
prompt that was asked several times counts once, as the share of its answers that were refused. A
group is held against the others of its category by dealing whole prompts of the same strategy and
template anew (`kgbias.stats.keyness`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.graph.profiles import READING_STRATEGY
from kgbias.graph.types import Generation, Group
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import clustered_proportion, holm, proportion
from kgbias.stats.keyness import FeatureTable, measure_keyness

_FEWEST = 3  # prompts of a group; of fewer there is no interval
_WORTH_SAYING = 0.05  # of all prompts refused: below, refusals are not what a model does


@dataclass(frozen=True, slots=True)
class GroupRefusals:
    """How often prompts about a group were refused.

    Attributes:
        group: its name.
        share: of its prompts that were refused at the first attempt, [0, 1], with its 95% interval
            over prompts; `n` are the prompts.
        difference: less the share of the other groups' of its category, with its 95% interval.
        p: of dealing prompts anew, two-sided; `q`: corrected over the groups (Holm).
    """

    group: str
    share: Estimate
    difference: Estimate
    p: float
    q: float


@dataclass(frozen=True, slots=True)
class CategoryRefusals:
    """The refusals about the groups of a category.

    Attributes:
        category: of the groups.
        groups: in the order of the run.
        share: of all prompts.
        p: of no group differing from the others; NaN if there is nothing to test.
    """

    category: str
    groups: tuple[GroupRefusals, ...]
    share: Estimate
    p: float

    @property
    def told(self) -> bool:
        """Whether the model declines often enough to say so."""
        return self.share.value >= _WORTH_SAYING


@dataclass(frozen=True, slots=True)
class AskedPrompt:
    """A prompt about a group: what could have been dealt in its place, and how often it was
    refused."""

    group: str
    block: tuple[str, ...]
    share: float


def refused_prompts(
    generations: Iterable[Generation], arms: Collection[str] | None = None
) -> list[AskedPrompt]:
    """The prompts of a run in these arms (None: all), each once, with the share of their first
    attempts that were refused; of failed requests nothing is known."""
    answers: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for g in generations:
        counts = arms is None or g.arm in arms
        if counts and not g.attempt and g.strategy != READING_STRATEGY and g.outcome != "failed":
            place = g.prompt or g.path  # an import may not say
            block = (g.arm, g.strategy, g.template_hash)
            answers[g.group_id, *block, place].append(g.outcome == "refused")
    return [
        AskedPrompt(group, tuple(block), sum(own) / len(own))
        for (group, *block, _), own in answers.items()
    ]


def asked_again(generations: Iterable[Generation]) -> list[Generation]:
    """The attempts that asked a prompt again because it was refused, in the given order."""
    every = list(generations)
    refused = {(g.run_id, _place(g), g.attempt) for g in every if g.outcome == "refused"}
    return [g for g in every if (g.run_id, _place(g), g.attempt - 1) in refused]


def _place(g: Generation) -> str:
    """The place of an attempt, without its number."""
    return g.path.rpartition("#")[0]


def refusals(
    groups: Sequence[Group],
    generations: Iterable[Generation],
    arms: Collection[str] | None = None,
    *,
    deals: int = 999,
) -> list[CategoryRefusals]:
    """The refusals of every category that was asked about."""
    prompts = refused_prompts(generations, arms)
    found = []
    for category in dict.fromkeys(group.category for group in groups):
        own = [g for g in groups if g.category == category]
        there = {g.id: n for n, g in enumerate(own)}
        asked = [prompt for prompt in prompts if prompt.group in there]
        if asked:
            found.append(_of_category(category, own, asked, there, deals))
    return found


def _of_category(
    category: str,
    groups: Sequence[Group],
    prompts: Sequence[AskedPrompt],
    there: dict[str, int],
    deals: int,
) -> CategoryRefusals:
    blocks = {block: n for n, block in enumerate(dict.fromkeys(p.block for p in prompts))}
    refused = np.flatnonzero([p.share >= 0.5 for p in prompts])
    table = FeatureTable(
        len(groups),
        np.array([there[p.group] for p in prompts], dtype=np.int64),
        np.array([blocks[p.block] for p in prompts], dtype=np.int64),
        1,
        refused.astype(np.int64),
        np.zeros(len(refused), dtype=np.int64),
    )
    testable = 0 < len(refused) < len(prompts) and len(groups) > 1
    keyness = measure_keyness(table, deals=deals) if testable else None
    p = [float(row[0]) for row in keyness.p_values] if keyness else [float("nan")] * len(groups)
    q = [float(x) for x in holm(p)] if keyness else p
    shares = {g.id: [x.share for x in prompts if x.group == g.id] for g in groups}
    rows = [
        GroupRefusals(
            group.name,
            share_of(shares[group.id]),
            keyness.difference(n, 0) if keyness else Estimate.missing(),
            p[n],
            q[n],
        )
        for n, group in enumerate(groups)
        if shares[group.id]
    ]
    every = share_of([x.share for x in prompts])
    return CategoryRefusals(category, tuple(rows), every, keyness.overall_p if keyness else float("nan"))


def share_of(shares: Sequence[float]) -> Estimate:
    """The share of refused prompts, with Wilson's interval over prompts."""
    if len(shares) < _FEWEST:
        return Estimate.missing(len(shares), float(np.mean(shares)) if shares else float("nan"))
    if set(shares) <= {0.0, 1.0}:
        return proportion(sum(shares), len(shares))
    return clustered_proportion(range(len(shares)), shares)
