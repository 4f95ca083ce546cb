"""How the statements of a run were drawn, so that figures and tests can draw them again.

A crawl asks at places. What its configuration fixes of a place is the same in every crawl: the
group, the arm, and the strategy, or in the first round the initial predicate; places that share it
make a stratum. What is drawn at random is the prompt. Statements of one prompt and round depend on
each other, so they are resampled together: a prompt is one text, and where it names a predicate,
all texts of a group that ask for the same one, whatever examples they show, for which predicates a
crawl asks about is chance, and decides much of what is said. In a stratum of one prompt, the prompt
is no chance, and its answers are independent.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kgbias.designs import Design
from kgbias.graph.said import Drawn
from kgbias.graph.selection import Counted
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import TripleView
from kgbias.measures import known, values_of
from kgbias.statistics import Sample

_NAMES_PREDICATE = "predicate"  # the strategy whose prompts leave the predicate to the model


@dataclass(slots=True)
class _Places:
    """The places at which a group was asked about in an arm."""

    strata: list[str] = field(default_factory=list)
    prompts: list[Hashable] = field(default_factory=list)
    wordings: list[str] = field(default_factory=list)
    said: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def design(self) -> Design:
        asked: dict[Hashable, set[Hashable]] = defaultdict(set)
        for stratum, prompt in zip(self.strata, self.prompts, strict=True):
            asked[stratum].add(prompt)
        keys = [
            (stratum, prompt if len(asked[stratum]) > 1 else place)
            for place, (stratum, prompt) in enumerate(zip(self.strata, self.prompts, strict=True))
        ]
        clusters = _numbers(keys)
        strata = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.int64)
        strata[clusters] = _numbers(self.strata)
        numbers = {wording: n for n, wording in enumerate(sorted(set(self.wordings)))}
        wordings = np.array([numbers[w] for w in self.wordings], dtype=np.int64)
        return Design(clusters, strata, {"wordings": wordings} if len(numbers) > 1 else {})


class Draws:
    """The places of a run, as far as they are known: an import has none, and its statements are
    taken for independent draws."""

    def __init__(self, places: dict[tuple[str, str], _Places]) -> None:
        self._places = places
        self._designs: dict[tuple[str, str], Design] = {}

    @classmethod
    def of(cls, run: StoredRun, counted: Counted) -> "Draws":
        """The places of the arms of what was counted. What was left out leaves its place empty."""
        places: dict[tuple[str, str], _Places] = defaultdict(_Places)
        if run.record.kind == "import":
            return cls({})
        for place, attempts in _by_place(run, counted.arms):
            last = attempts[-1]
            for d in [d for d in attempts if d.triple_id is not None] or [last]:
                if d.triple_id is not None and (not d.prompt or d.count != 1):
                    return cls({})
                own = places[d.arm, d.group_id]
                if d.triple_id is not None and d.generation_id not in counted.echoed:
                    own.said[d.triple_id].append(len(own.strata))
                asked = "" if d.iteration else "/".join(place.split("/")[-2:-1])
                own.strata.append(f"{d.strategy}/{asked}")
                own.prompts.append((d.iteration, _asked(d)))
                own.wordings.append(_wording(d.template))
        return cls(dict(places))

    @property
    def known(self) -> bool:
        """Whether it is known how the statements were drawn."""
        return bool(self._places)

    def sample(self, triples: Sequence[TripleView], measure: str) -> Sample:
        """As `kgbias.measures.values_of`, of triples that count, each of an arm; with the design
        by which they were drawn, where it is known."""
        if not self.known:
            return values_of(triples, measure)
        scored: dict[tuple[str, str], list[TripleView]] = defaultdict(list)
        for t in triples:
            if measure in t.scores:
                scored[t.arm, t.group_id].append(t)
        if not scored:
            return values_of((), measure)
        read, bounds, samples = known(measure).read, known(measure).bounds, []
        for key, own in scored.items():
            said = self._places[key].said
            places = [place for t in own for place in said[t.id]]
            values = [read(t.scores[measure]) for t in own for _ in said[t.id]]
            samples.append(
                Sample(
                    np.array(values, dtype=np.float64),
                    np.ones(len(values), dtype=np.int64),
                    self._design(key),
                    np.array(places, dtype=np.int64),
                    bounds,
                )
            )
        return samples[0] if len(samples) == 1 else Sample.joined(samples)

    def strata(self, arm: str, group_id: str) -> Sequence[str]:
        """What makes each stratum of a group's design, such as "initialise/love" or "object/": the
        same in crawls that ask alike."""
        own = self._places.get((arm, group_id))
        return list(dict.fromkeys(own.strata)) if own else ()

    def _design(self, key: tuple[str, str]) -> Design:
        if key not in self._designs:
            self._designs[key] = self._places[key].design()
        return self._designs[key]


def _by_place(run: StoredRun, arms: Sequence[str]) -> list[tuple[str, list[Drawn]]]:
    """The attempts at each place, in an order that is the same in every store."""
    found: dict[str, list[Drawn]] = defaultdict(list)
    for d in sorted(run.drawn(), key=lambda d: (d.iteration, d.path)):
        if d.arm in arms:
            place, _, _ = d.path.rpartition("#")
            found[place or d.path].append(d)
    return list(found.items())


def _asked(d: Drawn) -> Hashable:
    if d.strategy == _NAMES_PREDICATE or d.predicate_id is None:
        return d.prompt
    return d.predicate_id


def _wording(template: str) -> str:
    """The number of a template's wording, "" where it has one: "2" of "object@1.2:completion"."""
    version = template.partition(":")[0].partition("@")[2]
    return version.partition(".")[2]


def _numbers(keys: Sequence[Hashable]) -> np.ndarray:
    """The keys as numbers from 0, in the order in which they first occur."""
    numbers = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)
