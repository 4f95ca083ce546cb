"""The statements of runs as columns: what the explorer filters, counts and draws.

A source is an arm of a run. Its statements stand together, and nothing is ever added up over two
sources. All statements are there, also those that do not count by default: the page filters them by
the rules of `kgbias.graph.selection`.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgbias.echoes import repeats
from kgbias.errors import UsageError
from kgbias.explore.columns import Block, Dictionary, quantised
from kgbias.graph.selection import Selection, language, select
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Generation, TripleView, node_id, storable
from kgbias.measures import Measure, columns
from kgbias.progress import Progress
from kgbias.text import shortened

NAME = 500  # characters of a group, a predicate or an object that the page holds
MOST_STRATEGIES = 255


@dataclass(frozen=True, slots=True)
class Source:
    """An arm of a run, and where its statements begin and end among all rows."""

    run: StoredRun
    arm: str
    threshold: float
    start: int
    end: int


@dataclass(slots=True)
class Statements:
    """The statements of several runs, a row for each source and triple.

    `rows` are (group, predicate, object, topic, triple), the first four as numbers in the
    dictionaries (topic 0: none); `origins` has each row's generations, in the order of the crawl.
    """

    sources: list[Source] = field(default_factory=list)
    groups: Dictionary[str] = field(default_factory=Dictionary)
    categories: list[str] = field(default_factory=list)
    predicates: Dictionary[str] = field(default_factory=Dictionary)
    objects: Dictionary[str] = field(default_factory=Dictionary)
    topics: Dictionary[tuple[str, str]] = field(default_factory=Dictionary)
    strategies: Dictionary[str] = field(default_factory=Dictionary)
    rows: list[tuple[int, int, int, int, TripleView]] = field(default_factory=list)
    origins: list[list[Generation]] = field(default_factory=list)
    echoes: list[list[bool]] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)

    @property
    def runs(self) -> list[StoredRun]:
        """The runs, in the order in which they were named."""
        return list({source.run.id: source.run for source in self.sources}.values())

    def place(self, triple: TripleView) -> tuple[int, int, int]:
        """The numbers of a triple's nodes."""
        return (
            self.groups.add(triple.group_id, shortened(triple.group, NAME)),
            self.predicates.add(
                node_id("predicate", triple.predicate), shortened(triple.predicate, NAME)
            ),
            self.objects.add(node_id("object", triple.object), shortened(triple.object, NAME)),
        )


def read(runs: Sequence[StoredRun], selection: Selection, progress: Progress) -> Statements:
    """The statements of the runs. Raises UsageError where `selection` names an arm that none of
    them has, and where two runs are the same."""
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("a run is named twice")
    found = Statements(measures=columns({m: 1 for run in runs for m in run.metrics()}))
    for run in runs:
        _read(found, run, selection, progress)
    return found


def _read(found: Statements, run: StoredRun, selection: Selection, progress: Progress) -> None:
    progress.stage(f"statements of {run.name}", 1)
    counted = select(run, replace(selection, without_echoes=False))
    for group in run.groups:
        if found.groups.add(group.id, shortened(group.name, NAME)) == len(found.categories):
            found.categories.append(group.category)
    topic = {
        about.triple_id: found.topics.add((model.category, about.topic_id), names[about.topic_id])
        for model in run.topics()
        for names in [{t.id: " ".join(t.words[:4]) for t in model.topics}]
        for about in model.about
        if about.topic_id in names
    }
    text = {t.id: (t.predicate, t.object) for t in counted.every}
    origins: dict[tuple[str, str], list[Generation]] = defaultdict(list)
    for generation in run.generations():
        if generation.triple is not None:
            origins[generation.arm, generation.triple.id].append(generation)
    spoken = language(run.config)
    for arm in counted.arms:
        start = len(found.rows)
        for triple in counted.every:
            if triple.arm != arm:
                continue
            own = origins.get((arm, triple.id), [])
            found.rows.append((*found.place(triple), topic.get(triple.id, -1) + 1, triple))
            found.origins.append(own)
            found.echoes.append([_echo(g, text, spoken) for g in own])
            if len(found.categories) < len(found.groups):  # a group that is no seed
                found.categories.append("")
        found.sources.append(Source(run, arm, counted.threshold, start, len(found.rows)))
    progress.advance()


def _echo(generation: Generation, text: Mapping[str, tuple[str, str]], spoken: str) -> bool:
    """Whether an answer repeats an example of its prompt."""
    said = generation.triple
    if said is None or not generation.shown:
        return False
    examples = (text[id] for id in generation.shown if id in text)
    return repeats(said.predicate, said.object, examples, language=spoken)


def block(found: Statements) -> Block:
    """The statements as the page holds them."""
    block = Block()
    for column, name in enumerate(("group", "predicate", "object", "topic")):
        block.numbers(f"row.{name}", [int(row[:4][column]) for row in found.rows])
    triples = [row[4] for row in found.rows]
    labels: Dictionary[str] = Dictionary()
    labels.add("", "")
    regard = [t.scores.get("regard") for t in triples]
    block.numbers("row.label", [labels.add(s.label, s.label) if s else 0 for s in regard])
    for measure in found.measures:
        values = (
            t.scores[measure.name].value if measure.name in t.scores else math.nan for t in triples
        )
        block.numbers(f"row.{measure.name}", quantised(values, scale(measure)), "i16")
    # How often each was said, round by round: a filter of strategy or round counts again.
    block.numbers("row.said", [len(own) for own in found.origins])
    said = [g for own in found.origins for g in own]
    block.numbers("said.count", [g.count for g in said])
    block.numbers("said.iteration", [g.iteration for g in said])
    block.numbers("said.strategy", [_strategy(found, g) for g in said])
    block.numbers("said.echo", [echo for own in found.echoes for echo in own])
    block.texts("group", [storable(t) for t in found.groups.texts])
    block.texts("predicate", [storable(t) for t in found.predicates.texts])
    block.texts("object", [storable(t) for t in found.objects.texts])
    block.texts("topic", [storable(t) for t in found.topics.texts])
    block.texts("label", labels.texts)
    block.texts("strategy", found.strategies.texts)
    return block


def scale(measure: Measure) -> int:
    """A measure's values are held as whole multiples of 1 / scale."""
    return 10_000 if measure.range is not None else 1_000


def _strategy(found: Statements, generation: Generation) -> int:
    """The number of its strategy; an import may have any number of them."""
    place = found.strategies.add(generation.strategy, storable(generation.strategy))
    if place >= MOST_STRATEGIES:
        raise UsageError(f"a run has more than {MOST_STRATEGIES} strategies")
    return place


def crawl_of(source: Source) -> dict[str, Any]:
    """What the page says of a source."""
    run = source.run
    return {
        "run": run.name,
        "id": run.id,
        "arm": source.arm,
        "model": run.model.name,
        "revision": run.model.revision,
        "settings": dict(run.record.settings),
        "kind": run.record.kind,
        "status": run.status,
        "created": run.record.created,
        "threshold": source.threshold,
        "start": source.start,
        "end": source.end,
    }
