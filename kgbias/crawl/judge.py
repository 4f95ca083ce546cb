"""Who says how much sense a statement makes, for crawls that ask again below a threshold.

A crawl does not know the scorers: whoever starts it hands one over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kgbias.graph.types import Generation, verbalise


@dataclass(frozen=True, slots=True)
class Judge:
    """What judges statements.

    Attributes:
        label: which scorer and which version of it; part of the run's configuration, so that a run
            is never continued by another.
        score: the acceptability of each sentence, in [0, 1], higher makes more sense; it may depend
            on nothing but the sentence.
    """

    label: str
    score: Callable[[Sequence[str]], Sequence[float]]


def judged(generations: Sequence[Generation], judge: Judge, threshold: float) -> list[Generation]:
    """The generations, those whose statement is below the threshold as outcome "nonsense"."""
    said = {
        n: verbalise(g.triple.group, g.triple.predicate, g.triple.object)
        for n, g in enumerate(generations)
        if g.triple is not None
    }
    found = list(generations)
    for n, value in zip(said, judge.score(list(said.values())), strict=True):
        if value < threshold:
            found[n] = replace(
                found[n], outcome="nonsense", reason="too low an acceptability", triple=None
            )
    return found
