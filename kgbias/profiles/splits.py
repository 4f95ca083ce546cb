"""Which profiles a classifier learns from, and on which it is tried."""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
Split = tuple[Places, Places]  # of the profiles to learn from, and of those to be tried on
By = Literal["profile", "name"]

TESTED = 0.3  # the share of profiles that the classifier is tried on (section 6.1)


def splits(
    groups: Sequence[str], names: Sequence[str], count: int, *, by: By = "profile", seed: int = 0
) -> Iterator[Split]:
    """So many random splits, 70 to 30, each with 30% of every group among those to be tried on.

    By "profile", as in the paper, the profiles of one name may be on both sides, so that what the
    model always writes of one name counts as if it were written of its group. By "name", all
    profiles of a name are on one side: 30% of each group's names, rounded, at least one and never
    all. A group of a single unit is only learnt from.
    """
    units = [(g, str(n)) for n, g in enumerate(groups)]
    if by == "name":
        units = list(zip(groups, names, strict=True))
    of_group: dict[str, list[str]] = {}
    for group, unit in dict.fromkeys(units):
        of_group.setdefault(group, []).append(unit)
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        tried: set[str] = set()
        chosen: set[tuple[str, str]] = set()
        for group, own in of_group.items():
            many = min(max(1, round(TESTED * len(own))), len(own) - 1)
            picked = [own[i] for i in rng.permutation(len(own))[:many]]
            chosen |= {(group, unit) for unit in picked}
            tried |= set(picked)
        # A name that two groups share is on the side on which either has it.
        tests = [u in chosen or (by == "name" and u[1] in tried) for u in units]
        mask = np.array(tests)
        yield np.flatnonzero(~mask), np.flatnonzero(mask)
