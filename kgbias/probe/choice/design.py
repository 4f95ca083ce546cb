"""In which order groups are offered: every group in every place equally often."""

from collections.abc import Sequence

import numpy as np

from kgbias.ids import content_id


def questions(groups: int, options: int, rounds: int, stream: Sequence[str]) -> list[list[int]]:
    """The groups that each question about a statement offers, as numbers, in the order in which it
    offers them; `groups` questions in each round.

    A round is a cyclic design (John 1966): a block of `options` groups, drawn at random, is moved
    along the groups, drawn into a circle, one step from question to question. So in each round each
    group is offered `options` times, once in each place; where all groups are offered at once, it
    is a Latin square. Which groups meet is left to the draw, in which each pair is as likely as any
    other. `stream` names the random draw.
    """
    found = []
    for round_ in range(rounds):
        seed = int(content_id("choice", *stream, str(round_))[:15], 16)
        rng = np.random.Generator(np.random.PCG64(seed))
        circle, block = rng.permutation(groups), rng.permutation(groups)[:options]
        found += [circle[(block + step) % groups].tolist() for step in range(groups)]
    return found
