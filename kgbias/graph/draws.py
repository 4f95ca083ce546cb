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

from kgbias.graph.row_types import DrawRow
from kgbias.graph.selection import SelectedStatements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TripleView, node_id
from kgbias.measures import get_measure, measure_values
from kgbias.stats.designs import Design
from kgbias.stats.inference import Sample
from kgbias.stats.poststratification import MODEL_CHOSEN_FORM, Keys, StratifiedSample

_INITIAL_STRATEGY = (
    "initialise"  # the strategy of the first round, whose prompts give initial predicates
)
_OBJECT_STRATEGY = "object"  # the strategy whose prompts give a predicate that was drawn
_PREDICATE_STRATEGY = "predicate"  # the strategy whose prompts leave the predicate to the model
OTHER_PREDICATE_FORM = "another given"


@dataclass(slots=True)
class _GroupPlaces:
    """The places at which a group was asked about in an arm."""

    strata: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    questions: list[Hashable] = field(default_factory=list)
    prompts: list[Hashable] = field(default_factory=list)
    wordings: list[str] = field(default_factory=list)
    places_by_triple: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def design(self) -> Design:
        keys: list[Hashable] = list(range(len(self.strata)))
        for unit_keys in (
            self.prompts,
            self.questions,
        ):  # the wider one wins if a stratum has several
            keys_by_stratum: dict[str, set[Hashable]] = defaultdict(set)
            for stratum, unit_key in zip(self.strata, unit_keys, strict=True):
                keys_by_stratum[stratum].add(unit_key)
            keys = [
                (stratum, unit_key) if len(keys_by_stratum[stratum]) > 1 else key
                for key, stratum, unit_key in zip(keys, self.strata, unit_keys, strict=True)
            ]
        clusters = _number_keys(keys)
        strata = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.int64)
        strata[clusters] = _number_keys(self.strata)
        number_by_wording = {wording: n for n, wording in enumerate(sorted(set(self.wordings)))}
        wordings = np.array([number_by_wording[w] for w in self.wordings], dtype=np.int64)
        return Design(
            clusters, strata, {"wordings": wordings} if len(number_by_wording) > 1 else {}
        )


class Draws:
    """The places of a run, as far as they are known: an import has none, and its statements are
    treated as independent draws."""

    def __init__(self, places: dict[tuple[str, str], _GroupPlaces]) -> None:
        self._places = places
        self._designs: dict[tuple[str, str], Design] = {}
        self._keys: dict[tuple[str, str], tuple[Keys, Keys]] = {}

    @classmethod
    def from_run(cls, run: StoredRun, selected: SelectedStatements) -> "Draws":
        """The places of the counted arms. A statement that was left out leaves its place empty."""
        if run.record.kind == "import":
            return cls({})
        return cls.from_rows(
            (d for d in run.iter_draw_rows() if d.arm in selected.arms), selected.echo_ids
        )

    @classmethod
    def from_rows(cls, rows: Iterable[DrawRow], echoed: Container[str] = ()) -> "Draws":
        """The places of these draws; those in `echoed` leave their place empty."""
        places: dict[tuple[str, str], _GroupPlaces] = defaultdict(_GroupPlaces)
        by_place = _group_by_place(rows)
        initial_predicates = {
            _initial_predicate(place, attempts[0]) for place, attempts in by_place
        }
        initial_by_id = {node_id("predicate", text): text for text in initial_predicates if text}
        # What a prompt asked for is known from any of its answers.
        predicate_by_prompt = {
            draw.prompt: draw.predicate_id
            for _, attempts in by_place
            for draw in attempts
            if draw.predicate_id
        }
        for place, attempts in by_place:
            last_attempt = attempts[-1]
            # A place that yielded nothing stays in the design, empty.
            for draw in [draw for draw in attempts if draw.triple_id is not None] or [last_attempt]:
                # Not one statement a place, as a crawl asks: the design is not known.
                if draw.triple_id is not None and (not draw.prompt or draw.count != 1):
                    return cls({})
                group_places = places[draw.arm, draw.group_id]
                if draw.triple_id is not None and draw.generation_id not in echoed:
                    group_places.places_by_triple[draw.triple_id].append(len(group_places.strata))
                given_predicate = _initial_predicate(place, draw)
                group_places.strata.append(f"{draw.strategy}/{given_predicate}")
                group_places.forms.append(_place_form(draw, given_predicate, initial_by_id))
                group_places.questions.append(
                    (draw.iteration, _question_of(draw, predicate_by_prompt))
                )
                group_places.prompts.append((draw.iteration, draw.prompt))
                group_places.wordings.append(_wording_number(draw.template))
        return cls(dict(places))

    @property
    def is_known(self) -> bool:
        """Whether it is known how the statements were drawn."""
        return bool(self._places)

    @property
    def unit(self) -> str:
        """What tests deal anew, in words: statements, if it is not known which prompts led to
        them."""
        return "prompts" if self.is_known else "statements"

    def sample(self, triples: Sequence[TripleView], measure: str) -> Sample:
        """As `kgbias.measures.measure_values`, for triples that count, each from one arm; with the
        design by which they were drawn, if it is known."""
        if not self.is_known:
            return measure_values(triples, measure)
        samples = [
            stratified.sample for stratified in self._samples_by_group(triples, measure).values()
        ]
        if not samples:
            return measure_values((), measure)
        return samples[0] if len(samples) == 1 else Sample.join(samples)

    def labelled_sample(
        self, triples: Sequence[TripleView], labels: Mapping[str, int]
    ) -> Sample | None:
        """The labels (by triple id) of the triples of one arm and group, each at every place that
        said the triple. None if none has a label, or if it is not known how they were drawn."""
        labelled_triples = [t for t in triples if t.id in labels]
        if not self.is_known or not labelled_triples:
            return None
        key = labelled_triples[0].arm, labelled_triples[0].group_id
        places_by_triple = self._places[key].places_by_triple
        places = np.array(
            [place for t in labelled_triples for place in places_by_triple[t.id]], dtype=np.int64
        )
        values = np.array(
            [labels[t.id] for t in labelled_triples for _ in places_by_triple[t.id]],
            dtype=np.float64,
        )
        return Sample(values, np.ones(len(values), dtype=np.int64), self._design_of(key), places)

    def numbered_sample(self, triples: Sequence[TripleView]) -> StratifiedSample:
        """The triples of one arm and group, each time that they were said: the values are their
        numbers, from 0 in the order given."""
        if not self.is_known or not triples:
            counts = np.array([t.count for t in triples], dtype=np.int64)
            return StratifiedSample(Sample(np.arange(len(triples), dtype=np.float64), counts))
        key = triples[0].arm, triples[0].group_id
        places_by_triple = self._places[key].places_by_triple
        places = np.array(
            [place for t in triples for place in places_by_triple[t.id]], dtype=np.int64
        )
        values = np.array(
            [n for n, t in enumerate(triples) for _ in places_by_triple[t.id]], dtype=np.float64
        )
        ones = np.ones(len(values), dtype=np.int64)
        forms, blocks = self._forms_and_blocks(key)
        sample = Sample(values, ones, self._design_of(key), places)
        return StratifiedSample(sample, forms[places], blocks[places])

    def stratified_sample(
        self, triples: Sequence[TripleView], measure: str, *, by_group: bool = False
    ) -> StratifiedSample:
        """As `sample`, with what the prompt of each value supplied; `by_group` distinguishes the
        prompts of different groups, for samples of several groups."""
        if not self.is_known:
            return StratifiedSample(measure_values(triples, measure))
        by_arm_and_group = self._samples_by_group(triples, measure)
        if not by_arm_and_group:
            return StratifiedSample(measure_values((), measure))
        if by_group:
            return StratifiedSample.join_named(
                {group: group_sample for (_, group), group_sample in by_arm_and_group.items()}
            )
        return (
            StratifiedSample.pool(list(by_arm_and_group.values()))
            if len(by_arm_and_group) > 1
            else next(iter(by_arm_and_group.values()))
        )

    def _samples_by_group(
        self, triples: Sequence[TripleView], measure: str
    ) -> dict[tuple[str, str], StratifiedSample]:
        """The values of each arm and group that has any."""
        scored: dict[tuple[str, str], list[TripleView]] = defaultdict(list)
        for t in triples:
            if measure in t.scores:
                scored[t.arm, t.group_id].append(t)
        read_value, bounds, samples = get_measure(measure).read, get_measure(measure).bounds, {}
        for key, group_triples in scored.items():
            places_by_triple = self._places[key].places_by_triple
            places = np.array(
                [place for t in group_triples for place in places_by_triple[t.id]], dtype=np.int64
            )
            values = [
                read_value(t.scores[measure]) for t in group_triples for _ in places_by_triple[t.id]
            ]
            sample = Sample(
                np.array(values, dtype=np.float64),
                np.ones(len(values), dtype=np.int64),
                self._design_of(key),
                places,
                bounds,
                get_measure(measure).ends_of_signs,
            )
            forms, blocks = self._forms_and_blocks(key)
            samples[key] = StratifiedSample(sample, forms[places], blocks[places])
        return samples

    def _forms_and_blocks(self, key: tuple[str, str]) -> tuple[Keys, Keys]:
        """The form of each place, and the block of prompts that its own was drawn from: those of
        its strategy and form."""
        if key not in self._keys:
            group_places = self._places[key]
            forms, blocks = (np.empty(len(group_places.forms), dtype=object) for _ in range(2))
            forms[:] = group_places.forms
            blocks[:] = [
                f"{stratum.partition('/')[0]}/{form}"
                for stratum, form in zip(group_places.strata, group_places.forms, strict=True)
            ]
            self._keys[key] = forms, blocks
        return self._keys[key]

    def strata(self, arm: str, group_id: str) -> Sequence[str]:
        """The keys of the strata in a group's design, such as "initialise/love" or "object/": the
        same in crawls that ask alike."""
        group_places = self._places.get((arm, group_id))
        return list(dict.fromkeys(group_places.strata)) if group_places else ()

    def _design_of(self, key: tuple[str, str]) -> Design:
        if key not in self._designs:
            self._designs[key] = self._places[key].design()
        return self._designs[key]


def _group_by_place(rows: Iterable[DrawRow]) -> list[tuple[str, list[DrawRow]]]:
    """The attempts at each place, in an order that is the same in every store."""
    attempts_by_place: dict[str, list[DrawRow]] = defaultdict(list)
    for draw in sorted(rows, key=lambda draw: (draw.iteration, draw.path)):
        place, _, _ = draw.path.rpartition("#")
        attempts_by_place[place or draw.path].append(draw)
    for attempts in attempts_by_place.values():
        attempts.sort(key=lambda draw: draw.attempt)  # by path, PATH#10 comes before PATH#2
    return list(attempts_by_place.items())


def _initial_predicate(place: str, draw: DrawRow) -> str:
    """The initial predicate that a prompt of the first round gave; "" for any other prompt."""
    return "/".join(place.split("/")[-2:-1]) if draw.strategy == _INITIAL_STRATEGY else ""


def _place_form(draw: DrawRow, given_predicate: str, initial_by_id: dict[str, str]) -> str:
    """The form of a place: what its prompt supplied."""
    if draw.strategy == _PREDICATE_STRATEGY:
        return MODEL_CHOSEN_FORM
    if given_predicate:
        return f"given {given_predicate}"
    if draw.strategy == _OBJECT_STRATEGY:
        predicate = initial_by_id.get(draw.predicate_id or "")
        return f"given {predicate}" if predicate else OTHER_PREDICATE_FORM
    return draw.strategy


def _question_of(draw: DrawRow, predicate_by_prompt: Mapping[str, str]) -> Hashable:
    if draw.strategy in (
        _INITIAL_STRATEGY,
        _PREDICATE_STRATEGY,
    ):  # the stratum names the predicate, or the model
        return draw.prompt
    return draw.predicate_id or predicate_by_prompt.get(draw.prompt, draw.prompt)


def _wording_number(template: str) -> str:
    """The number of a template's wording: "2" for "object@1.2:completion"; "" if there is only one
    wording."""
    version = template.partition(":")[0].partition("@")[2]
    return version.partition(".")[2]


def _number_keys(keys: Sequence[Hashable]) -> np.ndarray:
    """The keys as numbers from 0, in order of first occurrence."""
    numbers = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)
