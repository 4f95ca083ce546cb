"""How the statements of a run were drawn, for figures and tests to draw them again.

A crawl asks at places. Its configuration fixes part of a place, the same in every crawl: the group,
the arm, and the strategy or, in the first round, the initial predicate. Places that share these
make a stratum. The prompt is drawn at random. Statements of one prompt and round depend on each
other and are resampled together. Here a prompt is one text, however often it was answered; in a
round where prompts name a predicate, it is all texts of a group that ask for the same predicate,
whatever examples they show, because the predicates that a round asks about are chance, and decide
much of what is said. In a stratum of one prompt, the prompt is not chance, and its answers are
independent.

What a prompt supplies is not what the model says. So each place also has a form: the predicate that
its prompt gave ("given hate", for each initial predicate), "another given" for any other, or
"chosen" if the model named the predicate itself; for profiles, the attribute asked for.
"""

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kgbias.graph.said import Drawn
from kgbias.graph.selection import Counted
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TripleView, node_id
from kgbias.measures import known, values_of
from kgbias.stats.designs import Design
from kgbias.stats.inference import Sample
from kgbias.stats.poststratification import CHOSEN_FORM, StratifiedSample, Keys

_INITIAL = "initialise"  # the strategy of the first round, whose prompts give initial predicates
_GIVES_PREDICATE = "object"  # the strategy whose prompts give a predicate that was drawn
_NAMES_PREDICATE = "predicate"  # the strategy whose prompts leave the predicate to the model
ANOTHER = "another given"


@dataclass(slots=True)
class _Places:
    """The places at which a group was asked about in an arm."""

    strata: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    asked: list[Hashable] = field(default_factory=list)
    prompts: list[Hashable] = field(default_factory=list)
    wordings: list[str] = field(default_factory=list)
    said: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def design(self) -> Design:
        keys: list[Hashable] = list(range(len(self.strata)))
        for drawn in (self.prompts, self.asked):  # the wider one wins if a stratum has several
            several: dict[str, set[Hashable]] = defaultdict(set)
            for stratum, one in zip(self.strata, drawn, strict=True):
                several[stratum].add(one)
            keys = [
                (stratum, one) if len(several[stratum]) > 1 else key
                for key, stratum, one in zip(keys, self.strata, drawn, strict=True)
            ]
        clusters = _numbers(keys)
        strata = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.int64)
        strata[clusters] = _numbers(self.strata)
        numbers = {wording: n for n, wording in enumerate(sorted(set(self.wordings)))}
        wordings = np.array([numbers[w] for w in self.wordings], dtype=np.int64)
        return Design(clusters, strata, {"wordings": wordings} if len(numbers) > 1 else {})


class Draws:
    """The places of a run, as far as they are known: an import has none, and its statements are
    treated as independent draws."""

    def __init__(self, places: dict[tuple[str, str], _Places]) -> None:
        self._places = places
        self._designs: dict[tuple[str, str], Design] = {}
        self._keys: dict[tuple[str, str], tuple[Keys, Keys]] = {}

    @classmethod
    def of(cls, run: StoredRun, counted: Counted) -> "Draws":
        """The places of the counted arms. A statement that was left out leaves its place empty."""
        if run.record.kind == "import":
            return cls({})
        return cls.among((d for d in run.drawn() if d.arm in counted.arms), counted.echoed)

    @classmethod
    def among(cls, drawn: Iterable[Drawn], echoed: Container[str] = ()) -> "Draws":
        """The places of these draws; those in `echoed` leave their place empty."""
        places: dict[tuple[str, str], _Places] = defaultdict(_Places)
        by_place = _by_place(drawn)
        first = {_initial(place, attempts[0]) for place, attempts in by_place}
        initial = {node_id("predicate", text): text for text in first if text}
        # What a prompt asked for is known from any of its answers.
        asks = {d.prompt: d.predicate_id for _, own in by_place for d in own if d.predicate_id}
        for place, attempts in by_place:
            last = attempts[-1]
            for d in [d for d in attempts if d.triple_id is not None] or [last]:
                if d.triple_id is not None and (not d.prompt or d.count != 1):
                    return cls({})
                own = places[d.arm, d.group_id]
                if d.triple_id is not None and d.generation_id not in echoed:
                    own.said[d.triple_id].append(len(own.strata))
                given = _initial(place, d)
                own.strata.append(f"{d.strategy}/{given}")
                own.forms.append(_form(d, given, initial))
                own.asked.append((d.iteration, _asked(d, asks)))
                own.prompts.append((d.iteration, d.prompt))
                own.wordings.append(_wording(d.template))
        return cls(dict(places))

    @property
    def known(self) -> bool:
        """Whether it is known how the statements were drawn."""
        return bool(self._places)

    def sample(self, triples: Sequence[TripleView], measure: str) -> Sample:
        """As `kgbias.measures.values_of`, for triples that count, each from one arm; with the
        design by which they were drawn, if it is known."""
        if not self.known:
            return values_of(triples, measure)
        samples = [asked.sample for asked in self._asked(triples, measure).values()]
        if not samples:
            return values_of((), measure)
        return samples[0] if len(samples) == 1 else Sample.join(samples)

    def labelled(self, triples: Sequence[TripleView], labels: Mapping[str, int]) -> Sample | None:
        """The labels (by triple id) of the triples of one arm and group, each at every place that
        said the triple. None if none has a label, or if it is not known how they were drawn."""
        own = [t for t in triples if t.id in labels]
        if not self.known or not own:
            return None
        key = own[0].arm, own[0].group_id
        said = self._places[key].said
        places = np.array([place for t in own for place in said[t.id]], dtype=np.int64)
        values = np.array([labels[t.id] for t in own for _ in said[t.id]], dtype=np.float64)
        return Sample(values, np.ones(len(values), dtype=np.int64), self._design(key), places)

    def numbered(self, triples: Sequence[TripleView]) -> StratifiedSample:
        """The triples of one arm and group, each time that they were said: the values are their
        numbers, from 0 in the order given."""
        if not self.known or not triples:
            counts = np.array([t.count for t in triples], dtype=np.int64)
            return StratifiedSample(Sample(np.arange(len(triples), dtype=np.float64), counts))
        key = triples[0].arm, triples[0].group_id
        said = self._places[key].said
        places = np.array([place for t in triples for place in said[t.id]], dtype=np.int64)
        values = np.array([n for n, t in enumerate(triples) for _ in said[t.id]], dtype=np.float64)
        ones = np.ones(len(values), dtype=np.int64)
        forms, blocks = self._forms(key)
        sample = Sample(values, ones, self._design(key), places)
        return StratifiedSample(sample, forms[places], blocks[places])

    def asked(
        self, triples: Sequence[TripleView], measure: str, *, by_group: bool = False
    ) -> StratifiedSample:
        """As `sample`, with what the prompt of each value supplied; `by_group` distinguishes the
        prompts of different groups, for samples of several groups."""
        if not self.known:
            return StratifiedSample(values_of(triples, measure))
        found = self._asked(triples, measure)
        if not found:
            return StratifiedSample(values_of((), measure))
        if by_group:
            return StratifiedSample.join_named({group: own for (_, group), own in found.items()})
        return StratifiedSample.pool(list(found.values())) if len(found) > 1 else next(iter(found.values()))

    def _asked(self, triples: Sequence[TripleView], measure: str) -> dict[tuple[str, str], StratifiedSample]:
        """The values of each arm and group that has any."""
        scored: dict[tuple[str, str], list[TripleView]] = defaultdict(list)
        for t in triples:
            if measure in t.scores:
                scored[t.arm, t.group_id].append(t)
        read, bounds, found = known(measure).read, known(measure).bounds, {}
        for key, own in scored.items():
            said = self._places[key].said
            places = np.array([place for t in own for place in said[t.id]], dtype=np.int64)
            values = [read(t.scores[measure]) for t in own for _ in said[t.id]]
            sample = Sample(
                np.array(values, dtype=np.float64),
                np.ones(len(values), dtype=np.int64),
                self._design(key),
                places,
                bounds,
                known(measure).ends_of_signs,
            )
            forms, blocks = self._forms(key)
            found[key] = StratifiedSample(sample, forms[places], blocks[places])
        return found

    def _forms(self, key: tuple[str, str]) -> tuple[Keys, Keys]:
        """The form of each place, and the block of prompts that its own was drawn from: those of
        its strategy and form."""
        if key not in self._keys:
            own = self._places[key]
            forms, blocks = (np.empty(len(own.forms), dtype=object) for _ in range(2))
            forms[:] = own.forms
            blocks[:] = [
                f"{stratum.partition('/')[0]}/{form}"
                for stratum, form in zip(own.strata, own.forms, strict=True)
            ]
            self._keys[key] = forms, blocks
        return self._keys[key]

    def strata(self, arm: str, group_id: str) -> Sequence[str]:
        """The keys of the strata in a group's design, such as "initialise/love" or "object/": the
        same in crawls that ask alike."""
        own = self._places.get((arm, group_id))
        return list(dict.fromkeys(own.strata)) if own else ()

    def _design(self, key: tuple[str, str]) -> Design:
        if key not in self._designs:
            self._designs[key] = self._places[key].design()
        return self._designs[key]


def _by_place(drawn: Iterable[Drawn]) -> list[tuple[str, list[Drawn]]]:
    """The attempts at each place, in an order that is the same in every store."""
    found: dict[str, list[Drawn]] = defaultdict(list)
    for d in sorted(drawn, key=lambda d: (d.iteration, d.path)):
        place, _, _ = d.path.rpartition("#")
        found[place or d.path].append(d)
    return list(found.items())


def _initial(place: str, d: Drawn) -> str:
    """The initial predicate that a prompt of the first round gave; "" for any other prompt."""
    return "/".join(place.split("/")[-2:-1]) if d.strategy == _INITIAL else ""


def _form(d: Drawn, given: str, initial: dict[str, str]) -> str:
    """The form of a place: what its prompt supplied."""
    if d.strategy == _NAMES_PREDICATE:
        return CHOSEN_FORM
    if given:
        return f"given {given}"
    if d.strategy == _GIVES_PREDICATE:
        own = initial.get(d.predicate_id or "")
        return f"given {own}" if own else ANOTHER
    return d.strategy


def _asked(d: Drawn, asks: Mapping[str, str]) -> Hashable:
    if d.strategy in (_INITIAL, _NAMES_PREDICATE):  # the stratum names the predicate, or the model
        return d.prompt
    return d.predicate_id or asks.get(d.prompt, d.prompt)


def _wording(template: str) -> str:
    """The number of a template's wording: "2" for "object@1.2:completion"; "" if there is only one
    wording."""
    version = template.partition(":")[0].partition("@")[2]
    return version.partition(".")[2]


def _numbers(keys: Sequence[Hashable]) -> np.ndarray:
    """The keys as numbers from 0, in order of first occurrence."""
    numbers = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)
