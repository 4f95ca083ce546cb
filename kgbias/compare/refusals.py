"""How often a model declines to answer about each group, and whether it does so more of one.

The unit is the prompt, by its first attempt: a prompt that was refused is asked again, and a model
that declines it will do so again, so that counting attempts counts the same refusal many times. A
prompt that was asked several times counts once, as the share of its answers that were refused. A
group is held against the others of its category at one mix of strategies and templates
(`kgbias.stats.keyness.mantel_haenszel_difference`), and that difference is tested by dealing whole
prompts of the same strategy and template anew.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kgbias.graph.profiles import READING_STRATEGY
from kgbias.graph.types import Generation, Group
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import clustered_proportion, proportion
from kgbias.stats.keyness import Floats, Ints, mantel_haenszel_difference

_MIN_PROMPTS = 3  # prompts of a group; of fewer there is no interval
_MIN_NOTABLE_SHARE = 0.05  # of all prompts refused: below, refusals are not what a model does
_MIN_DEALS = 999  # at any cost
_MAX_DEALT_PROMPTS = 50_000_000  # prompts dealt in total; beyond this, there are fewer deals
_CHUNK_PROMPTS = 4_000_000  # prompts dealt at once
_ROUNDING = 1e-9  # the same deal, summed in another order, may round to just below


@dataclass(frozen=True, slots=True)
class GroupRefusals:
    """How often prompts about a group were refused.

    Attributes:
        group: its name.
        share: of its prompts that were refused at the first attempt, [0, 1], with its 95% interval
            over prompts; `n` are the prompts.
        difference: less the share of the other groups' of its category, with its 95% interval.
        p: of that difference, two-sided, by dealing prompts anew; `q`: corrected over the groups by
            the same deals (`_deal_anew`).
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
        p: of no group differing from the others, the least of the corrected ones; NaN if there is
            nothing to test.
    """

    category: str
    groups: tuple[GroupRefusals, ...]
    share: Estimate
    p: float

    @property
    def is_notable(self) -> bool:
        """Whether the model declines often enough to say so."""
        return self.share.value >= _MIN_NOTABLE_SHARE


@dataclass(frozen=True, slots=True)
class PromptRefusal:
    """A prompt about a group: what could have been dealt in its place, and how often it was
    refused."""

    group: str
    block: tuple[str, ...]
    share: float


def list_prompt_refusals(
    generations: Iterable[Generation], arms: Collection[str] | None = None
) -> list[PromptRefusal]:
    """The prompts of a run in these arms (None: all), each once, with the share of their first
    attempts that were refused; of failed requests nothing is known."""
    answers: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for generation in generations:
        is_counted = arms is None or generation.arm in arms
        if (
            is_counted
            and not generation.attempt
            and generation.strategy != READING_STRATEGY
            and generation.outcome != "failed"
        ):
            place = generation.prompt or generation.path  # an import may not say
            block = (generation.arm, generation.strategy, generation.template_hash)
            answers[generation.group_id, *block, place].append(generation.outcome == "refused")
    return [
        PromptRefusal(group, tuple(block), sum(prompt_refusals) / len(prompt_refusals))
        for (group, *block, _), prompt_refusals in answers.items()
    ]


def list_retries(generations: Iterable[Generation]) -> list[Generation]:
    """The attempts that asked a prompt again because it was refused, in the given order."""
    attempts = list(generations)
    refused = {
        (generation.run_id, _attempt_place(generation), generation.attempt)
        for generation in attempts
        if generation.outcome == "refused"
    }
    return [
        generation
        for generation in attempts
        if (generation.run_id, _attempt_place(generation), generation.attempt - 1) in refused
    ]


def _attempt_place(g: Generation) -> str:
    """The place of an attempt, without its number."""
    return g.path.rpartition("#")[0]


def measure_refusals(
    groups: Sequence[Group],
    generations: Iterable[Generation],
    arms: Collection[str] | None = None,
    *,
    deals: int = 9_999,
) -> list[CategoryRefusals]:
    """The refusals of every category that was asked about."""
    prompts = list_prompt_refusals(generations, arms)
    categories = []
    for category in dict.fromkeys(group.category for group in groups):
        category_groups = [g for g in groups if g.category == category]
        group_places = {g.id: n for n, g in enumerate(category_groups)}
        category_prompts = [prompt for prompt in prompts if prompt.group in group_places]
        if category_prompts:
            categories.append(
                _measure_category(category, category_groups, category_prompts, group_places, deals)
            )
    return categories


def _measure_category(
    category: str,
    groups: Sequence[Group],
    prompts: Sequence[PromptRefusal],
    group_places: dict[str, int],
    deals: int,
) -> CategoryRefusals:
    blocks = {
        block: number
        for number, block in enumerate(dict.fromkeys(prompt.block for prompt in prompts))
    }
    prompt_shares = np.array([prompt.share for prompt in prompts])
    group = np.array([group_places[prompt.group] for prompt in prompts], dtype=np.int64)
    block = np.array([blocks[prompt.block] for prompt in prompts], dtype=np.int64)
    test = None
    if len(groups) > 1 and np.ptp(prompt_shares) > 0:
        test = _deal_anew(group, block, prompt_shares, len(groups), deals)
    rows = [
        GroupRefusals(
            group_record.name,
            estimate_refusal_share(prompt_shares[in_group].tolist()),
            mantel_haenszel_difference(in_group, block, prompt_shares)
            if test
            else Estimate.missing(),
            float(test.p_values[place]) if test else float("nan"),
            float(test.corrected[place]) if test else float("nan"),
        )
        for place, group_record in enumerate(groups)
        if (in_group := group == place).any()
    ]
    return CategoryRefusals(
        category,
        tuple(rows),
        estimate_refusal_share(prompt_shares.tolist()),
        float(test.corrected.min()) if test else float("nan"),
    )


class _DealtTest(NamedTuple):
    """The two-sided p-value of each group's difference, and the same corrected, [g]."""

    p_values: Floats
    corrected: Floats


def _deal_anew(
    group: Ints, block: Ints, shares: Floats, groups: int, deals: int, seed: int = 0
) -> _DealtTest | None:
    """Test the difference of each group from the others by dealing the prompts of each block anew:
    the observed deal is one of them, so p is never 0 (Phipson and Smyth 2010).

    A group's `mantel_haenszel_difference` is, but for a factor that no deal changes, how far the
    shares of its prompts exceed the mean of their block, summed. p is corrected by how often the
    largest standardised sum of any group is as large in a deal, step by step (Westfall and Young
    1993, algorithm 4.1): of two groups, whose differences are one, that corrects nothing. None if
    no deal changes anything: no block in which shares differ has prompts about two groups."""
    sizes = np.bincount(block)
    exceedances = shares - (np.bincount(block, shares) / sizes)[block]
    in_block = np.zeros((groups, len(sizes)))
    np.add.at(in_block, (group, block), 1)
    variances = np.bincount(block, exceedances**2) / np.maximum(1, sizes * (sizes - 1))
    errors = np.sqrt((in_block * (sizes - in_block)) @ variances)
    errors[errors <= _ROUNDING] = np.inf  # whatever is dealt, nothing changes
    if not np.isfinite(errors).any():
        return None
    observed = np.abs(np.bincount(group, exceedances, groups)) / errors
    largest_first = np.argsort(-observed)
    deals = min(deals, max(_MIN_DEALS, _MAX_DEALT_PROMPTS // len(shares)))
    rng = np.random.Generator(np.random.PCG64(seed))
    reached, reached_by_largest = np.ones(groups), np.ones(groups)
    step = max(1, _CHUNK_PROMPTS // len(shares))
    for start in range(0, deals, step):
        sums = np.zeros((min(step, deals - start), groups))
        for number in range(len(sizes)):
            prompts = np.flatnonzero(block == number)
            # Group by group: after shuffling, the first places stand for the first group.
            prompts = prompts[np.argsort(group[prompts], kind="stable")]
            numbers, starts = np.unique(group[prompts], return_index=True)
            if len(numbers) > 1:
                dealt = rng.permuted(exceedances[prompts][None].repeat(len(sums), axis=0), axis=1)
                sums[:, numbers] += np.add.reduceat(dealt, starts, axis=1)
        dealt_statistics = np.abs(sums) / errors
        reached += (dealt_statistics >= observed - _ROUNDING).sum(axis=0)
        # The largest of this group and all whose observed sum is smaller.
        ordered = dealt_statistics[:, largest_first]
        largest = np.maximum.accumulate(ordered[:, ::-1], axis=1)[:, ::-1]
        reached_by_largest += (largest >= observed[largest_first] - _ROUNDING).sum(axis=0)
    corrected = np.empty(groups)
    corrected[largest_first] = np.maximum.accumulate(reached_by_largest)
    return _DealtTest(reached / (deals + 1), corrected / (deals + 1))


def estimate_refusal_share(shares: Sequence[float]) -> Estimate:
    """The share of refused prompts, with Wilson's interval over prompts."""
    if len(shares) < _MIN_PROMPTS:
        return Estimate.missing(len(shares), float(np.mean(shares)) if shares else float("nan"))
    if set(shares) <= {0.0, 1.0}:
        return proportion(sum(shares), len(shares))
    return clustered_proportion(range(len(shares)), shares)
