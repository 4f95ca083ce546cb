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
from kgbias.stats.keyness import FeatureTable, difference_at_one_mix, measure_keyness

_MIN_PROMPTS = 3  # prompts of a group; of fewer there is no interval
_MIN_NOTABLE_SHARE = 0.05  # of all prompts refused: below, refusals are not what a model does


@dataclass(frozen=True, slots=True)
class GroupRefusals:
    """How often prompts about a group were refused.

    Attributes:
        group: its name.
        share: of its prompts that were refused at the first attempt, [0, 1], with its 95% interval
            over prompts; `n` are the prompts.
        difference: less the share of the other groups' of its category, with its 95% interval.
        p: of dealing prompts anew, two-sided, which counts a prompt as refused if at least half of
            its answers were; `q`: corrected over the groups (Holm).
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
    deals: int = 999,
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
    # What is dealt, a prompt either has or not: asked several times, it is refused if half of its
    # answers are.
    refused = np.flatnonzero(prompt_shares >= 0.5)
    table = FeatureTable(
        len(groups),
        np.array([group_places[prompt.group] for prompt in prompts], dtype=np.int64),
        np.array([blocks[prompt.block] for prompt in prompts], dtype=np.int64),
        1,
        refused.astype(np.int64),
        np.zeros(len(refused), dtype=np.int64),
    )
    testable = 0 < len(refused) < len(prompts) and len(groups) > 1
    keyness = measure_keyness(table, deals=deals) if testable else None
    p_values = (
        [float(row[0]) for row in keyness.p_values] if keyness else [float("nan")] * len(groups)
    )
    q_values = [float(q_value) for q_value in holm(p_values)] if keyness else p_values
    shares = {g.id: [prompt.share for prompt in prompts if prompt.group == g.id] for g in groups}
    rows = [
        GroupRefusals(
            group.name,
            estimate_refusal_share(shares[group.id]),
            difference_at_one_mix(table, group_index, prompt_shares)
            if keyness
            else Estimate.missing(),
            p_values[group_index],
            q_values[group_index],
        )
        for group_index, group in enumerate(groups)
        if shares[group.id]
    ]
    overall_share = estimate_refusal_share([prompt.share for prompt in prompts])
    return CategoryRefusals(
        category, tuple(rows), overall_share, keyness.overall_p if keyness else float("nan")
    )


def estimate_refusal_share(shares: Sequence[float]) -> Estimate:
    """The share of refused prompts, with Wilson's interval over prompts."""
    if len(shares) < _MIN_PROMPTS:
        return Estimate.missing(len(shares), float(np.mean(shares)) if shares else float("nan"))
    if set(shares) <= {0.0, 1.0}:
        return proportion(sum(shares), len(shares))
    return clustered_proportion(range(len(shares)), shares)
