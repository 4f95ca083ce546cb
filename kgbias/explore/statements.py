"""The statements of runs as columns: what the explorer filters, counts and draws.

A source is an arm of a run. A row has a statement's scores, and how often it was said in each round
by each strategy. The statements of a source stand together, and nothing is ever added up across
sources. All statements are included, even those that do not count by default: the page filters them
by the rules of `kgbias.graph.selection`. They are read in narrow rows, so that a million of them
take the memory of their columns and not of their prompts.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import UsageError
from kgbias.explore.columns import ColumnBlock, KeyNumbers, quantise
from kgbias.graph.selection import Selection, iter_echoes, resolve_scope
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore
from kgbias.io.progress import Progress
from kgbias.io.text import shorten, storable
from kgbias.measures import Measure, column_measures

MAX_NAME_CHARACTERS = 500  # characters that the page holds of a group, a predicate or an object
MAX_STRATEGIES = 255
ID_DTYPE = "S10"  # an id of the graph, as bytes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Ids = NDArray[np.bytes_]


@dataclass(frozen=True, slots=True)
class ArmSource:
    """An arm of a run, and where its statements begin and end among all rows."""

    run: StoredRun
    arm: str
    min_acceptability: float
    start: int
    end: int


@dataclass(slots=True)
class _SourceColumns:
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
    answer_details: Ints  # of each answer: strategy, iteration, count


@dataclass(slots=True)
class RowIndex:
    """Which statement is in which row: the id of its triple, and its source."""

    sources: list[ArmSource] = field(default_factory=list)
    groups: KeyNumbers[str] = field(default_factory=KeyNumbers)
    triple: Ids = field(default_factory=lambda: np.zeros(0, ID_DTYPE))

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

    def source(self, row: int) -> ArmSource:
        """The source of a row."""
        return next(s for s in self.sources if s.start <= row < s.end)


@dataclass(slots=True)
class StatementTable(RowIndex):
    """The statements of several runs, a row for each source and triple.

    Groups, predicates, objects, topics (0: none), labels and strategies are numbers in the
    dictionaries. `answer_details` is [answers, 3]: the strategy, round and count of each answer,
    grouped by row, in the order of the crawl; `answers` says how many a row has. `is_echo` says
    whether each repeats an example of its prompt; it is None if that was not checked.
    """

    measures: list[Measure] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    predicates: KeyNumbers[str] = field(default_factory=KeyNumbers)
    objects: KeyNumbers[str] = field(default_factory=KeyNumbers)
    topics: KeyNumbers[tuple[str, str]] = field(default_factory=KeyNumbers)
    strategies: KeyNumbers[str] = field(default_factory=KeyNumbers)
    labels: KeyNumbers[str] = field(default_factory=KeyNumbers)
    group: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    predicate: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    object: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    topic: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    label: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    count: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    values: dict[str, Floats] = field(default_factory=dict)
    answers: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    generation: Ids = field(default_factory=lambda: np.zeros(0, ID_DTYPE))
    answer_details: Ints = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    is_echo: NDArray[np.bool_] | None = None


def read_statement_table(
    runs: Sequence[StoredRun], selection: Selection, progress: Progress
) -> StatementTable:
    """The statements of the runs. Raises UsageError if `selection` names an arm that none of them
    has, or if two runs are the same."""
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("a run is named twice: name each once")
    table = StatementTable(measures=column_measures({m: 1 for run in runs for m in run.metrics()}))
    table.labels.add("", "")
    run_columns: list[_SourceColumns] = []
    # A group that runs call by names of several languages has that of its node.
    in_languages = len({run.record.language for run in runs}) > 1
    for run in runs:
        run_columns += _read_run(table, run, selection, progress, in_languages=in_languages)
    for name in ("group", "predicate", "object", "topic", "label", "triple", "answers"):
        setattr(table, name, np.concatenate([getattr(p, name) for p in run_columns]))
    table.generation = np.concatenate([p.generation for p in run_columns])
    table.answer_details = np.concatenate([p.answer_details for p in run_columns])
    for m in table.measures:
        table.values[m.name] = np.concatenate([p.values[m.name] for p in run_columns])
    row = np.repeat(np.arange(table.rows), table.answers)
    table.count = np.bincount(row, table.answer_details[:, 2], minlength=table.rows).astype(
        np.int64
    )
    return table


def _read_run(
    table: StatementTable,
    run: StoredRun,
    selection: Selection,
    progress: Progress,
    *,
    in_languages: bool,
) -> Iterable[_SourceColumns]:
    progress.stage(f"statements of {run.name}", 4)
    for seed in run.groups:
        name = seed.node_name if in_languages else seed.name
        if _add_node(table.groups, seed.id, name) == len(table.categories):
            table.categories.append(seed.category)
    ids, nodes = bytearray(), array("i")
    for statement_row in run.iter_statement_rows():
        ids += bytes.fromhex(statement_row.triple_id)
        nodes.append(_add_node(table.groups, statement_row.group_id, statement_row.group))
        nodes.append(
            _add_node(table.predicates, statement_row.predicate_id, statement_row.predicate)
        )
        nodes.append(_add_node(table.objects, statement_row.object_id, statement_row.object))
    table.categories += [""] * (len(table.groups) - len(table.categories))  # groups of no seed
    triple = np.frombuffer(bytes(ids), ID_DTYPE)
    group, predicate, object_numbers = np.array(nodes, np.int64).reshape(-1, 3).T
    progress.advance()

    arms: KeyNumbers[str] = KeyNumbers()
    generations, triple_ids, numbers = bytearray(), bytearray(), array("q")
    for answer_row in run.iter_yield_rows():
        generations += bytes.fromhex(answer_row.generation_id)
        triple_ids += bytes.fromhex(answer_row.triple_id)
        numbers.append(arms.add(answer_row.arm, answer_row.arm))
        numbers.append(_add_strategy(table, answer_row.strategy))
        numbers.append(answer_row.iteration)
        numbers.append(answer_row.times)
    # A crawl may have written since the triples were read: its answers come with the next reading.
    triple_places, is_known = _find_places(triple, np.frombuffer(bytes(triple_ids), ID_DTYPE))
    arm, *answer_columns = np.array(numbers, np.int64).reshape(-1, 4)[is_known].T
    progress.advance()

    values, label = _read_scores(table, run, triple)
    is_measured = not np.isnan(values.get("acceptability", np.zeros(0) + np.nan)).all()
    progress.advance()
    topic = _read_topics(table, run, triple)
    progress.advance()

    order = _store_order(table, run, group, predicate, object_numbers)
    row_position = np.empty(len(order), np.int64)
    row_position[order] = np.arange(len(order))
    names, _, threshold = resolve_scope(run, selection, arms.texts, measured=is_measured)
    ids_of_answers = np.frombuffer(bytes(generations), ID_DTYPE)[is_known]
    for name in names:
        arm_answers = np.flatnonzero(arm == arms.find(name))
        rows, row_of_answer = np.unique(
            row_position[triple_places[arm_answers]], return_inverse=True
        )
        arm_answers, triple_order = (
            arm_answers[np.argsort(row_of_answer, kind="stable")],
            order[rows],
        )
        start = table.sources[-1].end if table.sources else 0
        table.sources.append(ArmSource(run, name, threshold, start, start + len(rows)))
        yield _SourceColumns(
            group[triple_order],
            predicate[triple_order],
            object_numbers[triple_order],
            topic[triple_order],
            label[triple_order],
            triple[triple_order],
            {m: column[triple_order] for m, column in values.items()},
            np.bincount(row_of_answer, minlength=len(rows)),
            ids_of_answers[arm_answers],
            np.stack(answer_columns, axis=1)[arm_answers],
        )


def _store_order(
    table: StatementTable, run: StoredRun, group: Ints, predicate: Ints, object_numbers: Ints
) -> Ints:
    """The order in which stores keep triples (`kgbias.graph.row_types.triple_sort_key`)."""
    seed_places = {g.id: place for place, g in enumerate(run.groups)}
    places = np.full(len(table.groups), len(seed_places))
    for id, number in table.groups.items():
        places[number] = seed_places.get(id, len(seed_places))
    return np.lexsort(
        (
            _text_ranks(table.objects)[object_numbers],
            _text_ranks(table.predicates)[predicate],
            _text_ranks(table.groups)[group],
            places[group],
        )
    )


def _add_node(dictionary: KeyNumbers[str], id: str, text: str) -> int:
    """The number of a node; its text is stored if new."""
    place = dictionary.find(id)
    return place if place >= 0 else dictionary.add(id, storable(shorten(text, MAX_NAME_CHARACTERS)))


def _add_strategy(table: StatementTable, strategy: str) -> int:
    """The number of a strategy; an import may have any number of them."""
    place = table.strategies.add(strategy, strategy)
    if place >= MAX_STRATEGIES:
        raise UsageError(f"a run has more than {MAX_STRATEGIES} strategies")
    return place


class _TripleScores(NamedTuple):
    """The scores of triples by measure, and the labels of their regard."""

    values: dict[str, Floats]
    labels: Ints


def _read_scores(table: StatementTable, run: StoredRun, triple: Ids) -> _TripleScores:
    """The scores of the triples by measure, NaN for none, and the label of their regard."""
    values = {m.name: np.full(len(triple), np.nan) for m in table.measures}
    label = np.zeros(len(triple), np.int64)
    for measure, rows in groupby(run.iter_score_rows(), key=lambda score_row: score_row.measure):
        if measure not in values:
            continue  # measured since this reading began
        ids, scores, labels = bytearray(), array("d"), array("i")
        for score_row in rows:
            ids += bytes.fromhex(score_row.triple_id)
            scores.append(score_row.value)
            labels.append(
                table.labels.add(score_row.label, score_row.label) if measure == "regard" else 0
            )
        places, is_known = _find_places(triple, np.frombuffer(bytes(ids), ID_DTYPE))
        values[measure][places] = np.array(scores)[is_known]
        if measure == "regard":
            label[places] = np.array(labels)[is_known]
    return _TripleScores(values, label)


def _read_topics(table: StatementTable, run: StoredRun, triple: Ids) -> Ints:
    """The topic of each triple, from 1; 0 for none."""
    topic = np.zeros(len(triple), np.int64)
    for model in run.topics():
        name = {t.id: " ".join(t.words[:4]) for t in model.topics}
        topic_rows = [a for a in model.about if a.topic_id in name]
        numbers = [
            table.topics.add((model.category, a.topic_id), name[a.topic_id]) + 1
            for a in topic_rows
            if a.topic_id is not None
        ]
        ids = np.frombuffer(b"".join(bytes.fromhex(a.triple_id) for a in topic_rows), ID_DTYPE)
        places, is_known = _find_places(triple, ids)
        topic[places] = np.array(numbers, np.int64)[is_known]
    return topic


class _FoundPlaces(NamedTuple):
    """The places of ids among sorted ones, and which of them are there."""

    places: Ints
    is_known: NDArray[np.bool_]


def _find_places(sorted_ids: Ids, wanted_ids: Ids) -> _FoundPlaces:
    """The places of the ids among sorted ones, and which of them are there."""
    places = np.searchsorted(sorted_ids, wanted_ids)
    is_known = places < len(sorted_ids)
    is_known[is_known] = sorted_ids[places[is_known]] == wanted_ids[is_known]
    return _FoundPlaces(places[is_known], is_known)


def _text_ranks(dictionary: KeyNumbers[str]) -> Ints:
    """The place of each text in sorted order."""
    texts = dictionary.texts
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks


def find_echoes(table: StatementTable, progress: Progress) -> None:
    """Find the answers that repeat an example of their prompt, as `kgbias.graph.selection` does."""
    progress.stage("echoes", len(table.runs))
    echo = np.zeros(len(table.generation), bool)
    for run in table.runs:
        ids = [bytes.fromhex(answer.generation_id) for answer in iter_echoes(run)]
        echo |= np.isin(table.generation, np.frombuffer(b"".join(ids), ID_DTYPE))
        progress.advance()
    table.is_echo = echo


def build_block(table: StatementTable) -> ColumnBlock:
    """The statements in the page's format."""
    block = ColumnBlock()
    block.add_numbers("row.group", table.group)
    block.add_numbers("row.predicate", table.predicate)
    block.add_numbers("row.object", table.object)
    block.add_numbers("row.topic", table.topic)
    block.add_numbers("row.label", table.label)
    for measure in table.measures:
        block.add_numbers(
            f"row.{measure.name}",
            quantise(table.values[measure.name], find_measure_scale(measure)),
            "i16",
        )
    # How often each was said, round by round: a filter of strategy or round counts again.
    block.add_numbers("row.said", table.answers)
    for column, name in enumerate(("strategy", "iteration", "count")):
        block.add_numbers(f"said.{name}", table.answer_details[:, column])
    if table.is_echo is not None:
        block.add_numbers("said.echo", table.is_echo)
    for name, dictionary in (
        ("group", table.groups),
        ("predicate", table.predicates),
        ("object", table.objects),
        ("topic", table.topics),
        ("label", table.labels),
        ("strategy", table.strategies),
    ):
        block.add_texts(name, [storable(t) for t in dictionary.texts])
    return block


def build_id_block(table: StatementTable) -> ColumnBlock:
    """The id of each row's triple."""
    block = ColumnBlock()
    block.add_bytes("triple", table.triple.tobytes())
    return block


def find_measure_scale(measure: Measure) -> int:
    """The scale of a measure: its values are stored as whole multiples of 1 / scale."""
    return 10_000 if measure.range is not None else 1_000


def describe_source(
    source: ArmSource, groups: KeyNumbers[str], selection: Selection
) -> dict[str, Any]:
    """What the page says about a source. `regard` has the overall regard of groups, by their
    number, as it was measured and as the report has it: value, ends of the 95% interval, and n; it
    is empty if the page's filters start elsewhere."""
    run = source.run
    regard = {}
    if replace(selection, arm=None) == Selection():
        regard = {
            groups.find(s.group_id): [s.value, s.low, s.high, s.n]
            for s in run.find_all(GroupScore)
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
        "language": run.record.language,
        "created": run.record.created,
        "threshold": source.min_acceptability,
        "start": source.start,
        "end": source.end,
        "regard": regard,
    }
