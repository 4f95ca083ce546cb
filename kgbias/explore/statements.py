"""The statements of runs as columns: what the explorer filters, counts and draws.

A source is an arm of a run. Its statements stand together, and nothing is ever added up across
sources. All statements are included, even those that do not count by default: the page filters them
by the rules of `kgbias.graph.selection`. They are read in narrow rows, so that a million of them
take the memory of their columns and not of their prompts.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import UsageError
from kgbias.explore.columns import Block, Dictionary, quantised
from kgbias.graph.selection import Selection, iter_repetitions, resolve_scope
from kgbias.graph.store import StoredRun
from kgbias.io.progress import Progress
from kgbias.io.text import shorten, storable
from kgbias.measures import Measure, columns

NAME = 500  # characters that the page holds of a group, a predicate or an object
MOST_STRATEGIES = 255
ID = "S10"  # an id of the graph, as bytes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Ids = NDArray[np.bytes_]


@dataclass(frozen=True, slots=True)
class Source:
    """An arm of a run, and where its statements begin and end among all rows."""

    run: StoredRun
    arm: str
    threshold: float
    start: int
    end: int


@dataclass(slots=True)
class _Part:
    """The statements of one source: a row for each, and the answers that said it, row by row."""

    group: Ints
    predicate: Ints
    object: Ints
    topic: Ints
    label: Ints
    triple: Ids
    values: dict[str, Floats]
    answers: Ints  # how many answers said it
    generation: Ids
    said: Ints  # of each answer: strategy, iteration, count


@dataclass(slots=True)
class Placed:
    """Which statement is in which row: the id of its triple, and its source."""

    sources: list[Source] = field(default_factory=list)
    groups: Dictionary[str] = field(default_factory=Dictionary)
    triple: Ids = field(default_factory=lambda: np.zeros(0, ID))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.triple)

    @property
    def runs(self) -> list[StoredRun]:
        """The runs, in the order in which they were given."""
        return list({source.run.id: source.run for source in self.sources}.values())

    def triple_id(self, row: int) -> str:
        """The id of a row's triple."""
        return bytes(self.triple[row]).ljust(10, b"\0").hex()

    def source(self, row: int) -> Source:
        """The source of a row."""
        return next(s for s in self.sources if s.start <= row < s.end)


@dataclass(slots=True)
class Statements(Placed):
    """The statements of several runs, a row for each source and triple.

    Groups, predicates, objects, topics (0: none), labels and strategies are numbers in the
    dictionaries. `said` is [answers, 3]: the strategy, round and count of each answer, grouped by
    row, in the order of the crawl; `answers` says how many a row has. `echo` says whether each
    repeats an example of its prompt; it is None if that was not checked.
    """

    measures: list[Measure] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    predicates: Dictionary[str] = field(default_factory=Dictionary)
    objects: Dictionary[str] = field(default_factory=Dictionary)
    topics: Dictionary[tuple[str, str]] = field(default_factory=Dictionary)
    strategies: Dictionary[str] = field(default_factory=Dictionary)
    labels: Dictionary[str] = field(default_factory=Dictionary)
    group: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    predicate: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    object: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    topic: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    label: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    count: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    values: dict[str, Floats] = field(default_factory=dict)
    answers: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    generation: Ids = field(default_factory=lambda: np.zeros(0, ID))
    said: Ints = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    echo: NDArray[np.bool_] | None = None


def read(runs: Sequence[StoredRun], selection: Selection, progress: Progress) -> Statements:
    """The statements of the runs. Raises UsageError if `selection` names an arm that none of them
    has, or if two runs are the same."""
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("a run is named twice: name each once")
    found = Statements(measures=columns({m: 1 for run in runs for m in run.metrics()}))
    found.labels.add("", "")
    parts: list[_Part] = []
    for run in runs:
        parts += _read(found, run, selection, progress)
    for name in ("group", "predicate", "object", "topic", "label", "triple", "answers"):
        setattr(found, name, np.concatenate([getattr(p, name) for p in parts]))
    found.generation = np.concatenate([p.generation for p in parts])
    found.said = np.concatenate([p.said for p in parts])
    for m in found.measures:
        found.values[m.name] = np.concatenate([p.values[m.name] for p in parts])
    row = np.repeat(np.arange(found.rows), found.answers)
    found.count = np.bincount(row, found.said[:, 2], minlength=found.rows).astype(np.int64)
    return found


def _read(
    found: Statements, run: StoredRun, selection: Selection, progress: Progress
) -> Iterable[_Part]:
    progress.stage(f"statements of {run.name}", 4)
    for seed in run.groups:
        if _number(found.groups, seed.id, seed.name) == len(found.categories):
            found.categories.append(seed.category)
    ids, nodes = bytearray(), array("i")
    for t in run.iter_statement_rows():
        ids += bytes.fromhex(t.triple_id)
        nodes.append(_number(found.groups, t.group_id, t.group))
        nodes.append(_number(found.predicates, t.predicate_id, t.predicate))
        nodes.append(_number(found.objects, t.object_id, t.object))
    found.categories += [""] * (len(found.groups) - len(found.categories))  # groups of no seed
    triple = np.frombuffer(bytes(ids), ID)
    group, predicate, thing = np.array(nodes, np.int64).reshape(-1, 3).T
    progress.advance()

    arms: Dictionary[str] = Dictionary()
    generations, of, numbers = bytearray(), bytearray(), array("q")
    for g in run.iter_yield_rows():
        generations += bytes.fromhex(g.generation_id)
        of += bytes.fromhex(g.triple_id)
        numbers.append(arms.add(g.arm, g.arm))
        numbers.append(_strategy(found, g.strategy))
        numbers.append(g.iteration)
        numbers.append(g.times)
    # A crawl may have written since the triples were read: its answers come with the next reading.
    stated, known = _places(triple, np.frombuffer(bytes(of), ID))
    arm, *said = np.array(numbers, np.int64).reshape(-1, 4)[known].T
    progress.advance()

    values, label = _values(found, run, triple)
    measured = not np.isnan(values.get("acceptability", np.zeros(0) + np.nan)).all()
    progress.advance()
    topic = _topics(found, run, triple)
    progress.advance()

    order = _in_order(found, run, group, predicate, thing)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    names, _, threshold = resolve_scope(run, selection, arms.texts, measured=measured)
    ids_of_answers = np.frombuffer(bytes(generations), ID)[known]
    for name in names:
        own = np.flatnonzero(arm == arms.get(name))
        rows, of_row = np.unique(position[stated[own]], return_inverse=True)
        own, at = own[np.argsort(of_row, kind="stable")], order[rows]
        start = found.sources[-1].end if found.sources else 0
        found.sources.append(Source(run, name, threshold, start, start + len(rows)))
        yield _Part(
            group[at], predicate[at], thing[at], topic[at], label[at], triple[at],
            {m: column[at] for m, column in values.items()},
            np.bincount(of_row, minlength=len(rows)),
            ids_of_answers[own], np.stack(said, axis=1)[own],
        )  # fmt: skip


def _in_order(found: Statements, run: StoredRun, group: Ints, predicate: Ints, thing: Ints) -> Ints:
    """The order in which stores keep triples (`kgbias.graph.row_types.triple_sort_key`)."""
    seeds = {g.id: place for place, g in enumerate(run.groups)}
    places = np.full(len(found.groups), len(seeds))
    for id, number in found.groups.items():
        places[number] = seeds.get(id, len(seeds))
    return np.lexsort(
        (
            _ranks(found.objects)[thing],
            _ranks(found.predicates)[predicate],
            _ranks(found.groups)[group],
            places[group],
        )
    )


def _number(dictionary: Dictionary[str], id: str, text: str) -> int:
    """The number of a node; its text is stored if new."""
    place = dictionary.get(id)
    return place if place >= 0 else dictionary.add(id, storable(shorten(text, NAME)))


def _strategy(found: Statements, strategy: str) -> int:
    """The number of a strategy; an import may have any number of them."""
    place = found.strategies.add(strategy, strategy)
    if place >= MOST_STRATEGIES:
        raise UsageError(f"a run has more than {MOST_STRATEGIES} strategies")
    return place


def _values(found: Statements, run: StoredRun, triple: Ids) -> tuple[dict[str, Floats], Ints]:
    """The scores of the triples by measure, NaN for none, and the label of their regard."""
    values = {m.name: np.full(len(triple), np.nan) for m in found.measures}
    label = np.zeros(len(triple), np.int64)
    for measure, rows in groupby(run.iter_score_rows(), key=lambda v: v.measure):
        if measure not in values:
            continue  # measured since this reading began
        ids, scores, labels = bytearray(), array("d"), array("i")
        for v in rows:
            ids += bytes.fromhex(v.triple_id)
            scores.append(v.value)
            labels.append(found.labels.add(v.label, v.label) if measure == "regard" else 0)
        at, known = _places(triple, np.frombuffer(bytes(ids), ID))
        values[measure][at] = np.array(scores)[known]
        if measure == "regard":
            label[at] = np.array(labels)[known]
    return values, label


def _topics(found: Statements, run: StoredRun, triple: Ids) -> Ints:
    """The topic of each triple, from 1; 0 for none."""
    topic = np.zeros(len(triple), np.int64)
    for model in run.topics():
        name = {t.id: " ".join(t.words[:4]) for t in model.topics}
        about = [a for a in model.about if a.topic_id in name]
        numbers = [
            found.topics.add((model.category, a.topic_id), name[a.topic_id]) + 1
            for a in about
            if a.topic_id is not None
        ]
        ids = np.frombuffer(b"".join(bytes.fromhex(a.triple_id) for a in about), ID)
        at, known = _places(triple, ids)
        topic[at] = np.array(numbers, np.int64)[known]
    return topic


def _places(sorted_ids: Ids, wanted: Ids) -> tuple[Ints, NDArray[np.bool_]]:
    """The places of the ids among sorted ones, and which of them are there."""
    at = np.searchsorted(sorted_ids, wanted)
    known = at < len(sorted_ids)
    known[known] = sorted_ids[at[known]] == wanted[known]
    return at[known], known


def _ranks(dictionary: Dictionary[str]) -> Ints:
    """The place of each text in sorted order."""
    texts = dictionary.texts
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks


def find_echoes(found: Statements, progress: Progress) -> None:
    """Find the answers that repeat an example of their prompt, as `kgbias.graph.selection` does."""
    progress.stage("echoes", len(found.runs))
    echo = np.zeros(len(found.generation), bool)
    for run in found.runs:
        ids = [bytes.fromhex(answer.generation_id) for answer in iter_repetitions(run)]
        echo |= np.isin(found.generation, np.frombuffer(b"".join(ids), ID))
        progress.advance()
    found.echo = echo


def block(found: Statements) -> Block:
    """The statements in the page's format."""
    block = Block()
    block.numbers("row.group", found.group)
    block.numbers("row.predicate", found.predicate)
    block.numbers("row.object", found.object)
    block.numbers("row.topic", found.topic)
    block.numbers("row.label", found.label)
    for measure in found.measures:
        block.numbers(
            f"row.{measure.name}", quantised(found.values[measure.name], scale(measure)), "i16"
        )
    # How often each was said, round by round: a filter of strategy or round counts again.
    block.numbers("row.said", found.answers)
    for column, name in enumerate(("strategy", "iteration", "count")):
        block.numbers(f"said.{name}", found.said[:, column])
    if found.echo is not None:
        block.numbers("said.echo", found.echo)
    for name, dictionary in (
        ("group", found.groups),
        ("predicate", found.predicates),
        ("object", found.objects),
        ("topic", found.topics),
        ("label", found.labels),
        ("strategy", found.strategies),
    ):
        block.texts(name, [storable(t) for t in dictionary.texts])
    return block


def ids(found: Statements) -> Block:
    """The id of each row's triple."""
    block = Block()
    block.raw("triple", found.triple.tobytes())
    return block


def scale(measure: Measure) -> int:
    """The scale of a measure: its values are stored as whole multiples of 1 / scale."""
    return 10_000 if measure.range is not None else 1_000


def crawl_of(source: Source, groups: Dictionary[str], selection: Selection) -> dict[str, Any]:
    """What the page says about a source. `regard` has the overall regard of groups, by their
    number, as it was measured and as the report has it: value, ends of the 95% interval, and n; it
    is empty if the page's filters start elsewhere."""
    run = source.run
    regard = {}
    if replace(selection, arm=None) == Selection():
        regard = {
            groups.get(s.group_id): [s.value, s.low, s.high, s.n]
            for s in run.group_scores()
            if s.measure == "overall_regard" and s.arm in ("", source.arm) and s.has_interval
        }
    return {
        "run": run.name,
        "id": run.id,
        "arm": source.arm,
        "model": run.model.title,
        "revision": run.model.revision,
        "settings": dict(run.record.settings),
        "kind": run.record.kind,
        "created": run.record.created,
        "threshold": source.threshold,
        "start": source.start,
        "end": source.end,
        "regard": regard,
    }
