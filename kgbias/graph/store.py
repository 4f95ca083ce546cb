"""The store interface: what every graph store can do, and a run together with the store that holds
it (`StoredRun`).

All stores keep these rules: what `keep_answers` and `keep_batch` are given is durable when they
return; repeating a write changes nothing; reads are in an order that depends on content alone, so
two stores with the same runs give the same rows.

What both stores write and read follows from the records (`kgbias.graph.record`) or is held to them
by a test. Edges that are records, and nodes that runs hold, are put and found by two methods,
whatever their kind (`kgbias.graph.edge_records`, `kgbias.graph.node_records`). What is several
nodes and edges at once is read in one place for both (`kgbias.graph.composites`), but for what
comes by the hundred thousand. That, and what writes generations and triples by the million, is
written by hand in each, and `tests/contract` holds each method to `Store`.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    NamedTuple,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
)

from kgbias.errors import UsageError, no_such
from kgbias.graph.edge_records import ASKING_RECORDS, EDGE_RECORDS, AskingRecord, EdgeRecord
from kgbias.graph.node_records import NODE_RECORDS, NodeRecord
from kgbias.graph.record import Record
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    Batch,
    Category,
    ChangeToken,
    FlagTable,
    Generation,
    Group,
    GroupName,
    ItemScore,
    Metric,
    NearDuplicate,
    NodeCentrality,
    ProbeRun,
    Run,
    RunState,
    RunStatus,
    RunSummary,
    Score,
    TopicModel,
    Triple,
    TripleView,
    WordAttribution,
    node_id,
)
from kgbias.io.progress import Progress
from kgbias.models.base import ModelInfo, Settings

if TYPE_CHECKING:
    from kgbias.graph.cypher import QueryResult
    from kgbias.graph.decisions import Decision
    from kgbias.graph.integrity import Corpus, Fault
    from kgbias.graph.labels import Label
    from kgbias.graph.leases import Lease
    from kgbias.graph.profiles import Profile
    from kgbias.graph.row_types import (
        CompactedSizes,
        DrawRow,
        ExampleRow,
        ScoreRow,
        StatementRow,
        YieldRow,
    )
    from kgbias.graph.sofa import ProbeSet, SofaResult
    from kgbias.graph.stereotypes import StereotypeMatches
    from kgbias.graph.vectors import StatementVectors

DEFAULT_STORE = "kgbias.db"


class EdgeScope(NamedTuple):
    """Whose edges are put or found: of which kind and run, and from which asking."""

    edge: EdgeRecord
    run_id: str
    asking: ProbeRun | None


class EdgeStore(Protocol):
    """Records that are edges (`kgbias.graph.edge_records`) or nodes that runs hold
    (`kgbias.graph.node_records`), whatever their kind. Which of them are nodes, or say how a model
    was asked, is decided here; a store writes and reads the rows."""

    def put(
        self,
        run_id: str,
        kind: type[Record],
        records: Sequence[Record],
        *,
        asking: ProbeRun | None = None,
        replacing: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Write records of a run that are edges (`kgbias.graph.edge_records`) or nodes that runs
        hold (`kgbias.graph.node_records`), in one transaction on SQLite; one that exists is
        replaced. The nodes of edges exist, but for statements of known words, which are written
        too.

        Where edges come from an `asking`, it is given. It is finished once it is put itself.
        `replacing` names a property, and values of it: the run's records with one of them are
        removed first. A kind that is replaced as a whole needs none of that."""
        record_class: type = kind
        if (asking_kind := ASKING_RECORDS.get(record_class)) is not None:
            self._write_askings(asking_kind, run_id, records)
            return
        if (node := NODE_RECORDS.get(record_class)) is not None:
            assert asking is None and not replacing
            self._write_nodes(node, run_id, records)
            return
        edge = EDGE_RECORDS[record_class]
        assert (edge.asking is None) == (asking is None)
        self._write_edges(EdgeScope(edge, run_id, asking), records, replacing or {})

    def find_all(
        self, run_id: str, /, kind: type[Record], *, asking: ProbeRun | None = None, **ids: str
    ) -> list[Record]:
        """The run's records of a kind, in the order that it declares: those of an asking, and those
        with these ends (`statement_id=...`). Askings are by the model's name; only the finished
        ones. Nodes are by their ids."""
        record_class: type = kind
        if (asking_kind := ASKING_RECORDS.get(record_class)) is not None:
            return self._read_askings(asking_kind, run_id)
        if (node := NODE_RECORDS.get(record_class)) is not None:
            return self._read_nodes(node, run_id)
        return self._read_edges(EdgeScope(EDGE_RECORDS[record_class], run_id, asking), ids)

    def _write_askings(self, asking: AskingRecord, run_id: str, records: Sequence[Any]) -> None: ...

    def _read_askings(self, asking: AskingRecord, run_id: str) -> list[Any]: ...

    def _write_nodes(self, node: NodeRecord, run_id: str, records: Sequence[Any]) -> None: ...

    def _read_nodes(self, node: NodeRecord, run_id: str) -> list[Any]: ...

    def _write_edges(
        self, scope: EdgeScope, records: Sequence[Any], replacing: Mapping[str, Collection[str]]
    ) -> None: ...

    def _read_edges(self, scope: EdgeScope, ids: Mapping[str, str]) -> list[Any]: ...


class Store(EdgeStore, Protocol):
    """A graph store. Runs are addressed by id; `find_run` resolves names."""

    url: str  # the path or URL that it was opened with
    query_timeout: float | None  # seconds that a query may take; None: no limit

    def begin_run(self, run: Run) -> Run:
        """Create the run with its model, categories and groups, or return it if it exists.

        Raises RunConflict if a run of that name has a different configuration or model."""
        ...

    def models(self) -> list[ModelInfo]:
        """Every model of the store."""
        ...

    def set_display_name(self, model: ModelInfo) -> None:
        """Keep a person's own name for a model (`called`; "" takes it away), known or new. Raises
        UsageError if another model goes by it. Where else a model is written, one that is known
        keeps the name that it has."""
        ...

    def lease(self, run_id: str) -> "Lease":
        """Who works on a run: for `kgbias.graph.leases.hold_lease`."""
        ...

    def set_status(self, run_id: str, status: RunStatus) -> None: ...

    def add_work(self, run_id: str, seconds: float) -> None:
        """Add to the seconds spent asking the run's model: a session at a time. They follow from no
        answer, and nothing else in the graph depends on them."""
        ...

    def run_seconds(self, run_id: str) -> float | None: ...  # as in `summary`, without the counts

    def find_run(self, name: str | None = None, kind: str | None = None) -> Run:
        """The run of that name. Without one, the newest that has statements, else the newest that
        has answers, else the newest; with a `kind`, the newest of it. Raises RunNotFound, listing
        the store's runs."""
        ...

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        ...

    def summaries(self) -> list[RunSummary]:
        """All runs with their counts, oldest first."""
        ...

    def summary(self, run_id: str) -> RunSummary:
        """One run with its counts."""
        ...

    def answers(self, keys: Sequence[str]) -> dict[str, Answer]:
        """The answers that the log holds for these keys."""
        ...

    def keep_answers(self, answers: Sequence[Answer]) -> None:
        """Write answers to the log. They are durable when this returns."""
        ...

    def batches(self, configured_id: str) -> list[Batch]:
        """The batches left with a provider for a model asked in one way, oldest first."""
        ...

    def keep_batch(self, batch: Batch) -> None:
        """Write or overwrite a batch. It is durable when this returns."""
        ...

    def drop_batch(self, name: str) -> None:
        """Forget a batch, whose answers are in the log."""
        ...

    def record_round(
        self, run_id: str, arm: str, iteration: int, batch: Sequence[Generation]
    ) -> None:
        """Make `batch` the run's generations of one round, with the triples they yielded and were
        shown, in one transaction. A round recorded before is replaced; decisions about its
        generations (`add_decisions`) stay in effect."""
        ...

    def load_import(self, run_id: str, generations: Iterable[Generation]) -> int:
        """Write the generations of an import in bounded memory; returns their number."""
        ...

    def add_decisions(self, run_id: str, decisions: "Sequence[Decision]") -> None:
        """Add decisions to those of the run and put them into effect, in one transaction: each
        generation yields what the latest decision about it says. A decision that exists changes
        nothing. Call `derive_edges` after the last one."""
        ...

    def decisions(self, run_id: str) -> "list[Decision]":
        """All decisions about the run's generations, oldest first."""
        ...

    def add_labels(self, labels: "Sequence[Label]") -> None:
        """Add labels, with their raters, in one transaction. They are durable when this returns. A
        label that exists changes nothing; one of a triple that the store lacks is left out."""
        ...

    def labels(self, measure: str | None = None) -> "list[Label]":
        """All labels, or those of a measure, oldest first, including those no longer in effect
        (`kgbias.graph.labels.labels_in_effect`)."""
        ...

    def label_count(self, measure: str) -> int:
        """How many labels of a measure there are. Labels do not change, and go only with their
        statements: so while there are as many, they are the same."""
        ...

    def keep_triples(self, triples: Iterable[Triple]) -> None:
        """Write the triples and nodes that do not exist yet; the nodes show these words."""
        ...

    def known_generations(self, ids: Sequence[str]) -> set[str]:
        """The ids among these of generations in the store."""
        ...

    def generations(self, run_id: str) -> Iterator[Generation]:
        """The generations of a run by round (iteration, then arm) and path, a few at a time, each
        with the triple that it counts as: as the crawl read it, or as a person decided."""
        ...

    def triples(self, run_id: str, *, by_arm: bool = False) -> list[TripleView]:
        """The triples of a run with counts and scores by its current metrics, by group (in the
        order of the run's seeds), then predicate and object. With `by_arm`, one row for each arm
        that said a triple, with that arm's count."""
        ...

    def has_statements(self, run_id: str) -> bool:
        """Whether a run has any triple; reads one row at most."""
        ...

    def arms(self, run_id: str) -> list[str]:
        """The arms that said at least one triple, by name."""
        ...

    def triples_of_arm(self, run_id: str, arm: str) -> Iterator[TripleView]:
        """The rows that `triples` has for one arm; a few at a time if the store sorts on disk."""
        ...

    def distinct_triples(self, run_id: str) -> list[tuple[str, str, str, str]]:
        """The distinct triples of a run, by id: id, group, predicate and object, as on nodes."""
        ...

    def iter_example_rows(self, run_id: str) -> "Iterator[ExampleRow]":
        """The generations of a run that yielded a triple and had examples, by id."""
        ...

    def iter_draw_rows(self, run_id: str) -> "Iterator[DrawRow]":
        """Every generation of a run as a draw, in the order of `generations`."""
        ...

    def iter_statement_rows(self, run_id: str) -> "Iterator[StatementRow]":
        """The distinct triples of a run with their texts, by id."""
        ...

    def iter_yield_rows(self, run_id: str) -> "Iterator[YieldRow]":
        """The generations that yielded a triple, without texts, in the order of `generations`."""
        ...

    def iter_score_rows(self, run_id: str) -> "Iterator[ScoreRow]":
        """The scores by the run's current metrics, by measure and triple: of every triple that has
        one, including those that only other runs said."""
        ...

    def content_version(self) -> str | None:
        """A text that changes whenever the store's content does; None for a server."""
        ...

    def change_token(self) -> ChangeToken:
        """Whether anything but labels was written since the last pulse, and how many answers the
        log holds: read at little cost, however large the store, while others write."""
        ...

    def generations_of_triple(
        self, run_id: str, triple_id: str, arm: str, *, offset: int, limit: int
    ) -> list[Generation]:
        """The generations of an arm that yielded this triple, in the order of `generations`: at
        most `limit` of them, from number `offset` on."""
        ...

    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        """Write scores, and make this metric the run's current one for its measure. Nothing is
        derived from them: call `derive_edges` after the last ones."""
        ...

    def derive_edges(self, run_id: str) -> None:
        """Update what is derived from a run's generations and scores: its STEREOTYPE edges. Call it
        once, after the last write; `set_status` calls it when a run ends. A store that derives
        them on every read does nothing here."""
        ...

    def scored_triples(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
        """The ids among these of triples that have a score by this metric."""
        ...

    def scores(self, metric: Metric, triple_ids: Sequence[str]) -> dict[str, Score]:
        """The scores of these triples by this metric, by triple id; those without one are left
        out."""
        ...

    def metrics(self, run_id: str) -> dict[str, Metric]:
        """The run's current metric for each measure."""
        ...

    def scorers(self, run_id: str) -> list[Metric]:
        """Every metric by which a triple of the run has a score, current or not, by id."""
        ...

    def save_centralities(self, run_id: str, centralities: Sequence[NodeCentrality]) -> None:
        """Make these the centralities of the run's nodes."""
        ...

    def centralities(self, run_id: str) -> list[NodeCentrality]:
        """The centralities of the run's nodes, by kind and id; empty until they are saved."""
        ...

    def save_vectors(self, encoder: str, vectors: "StatementVectors") -> None:
        """Write vectors of statements, whose predicates and objects must exist, by an encoder (its
        name and version); those that exist are replaced."""
        ...

    def encoders(self) -> list[str]:
        """The encoders that the store has vectors by."""
        ...

    def vectors(self, run_id: str, encoder: str) -> "StatementVectors":
        """The vectors by this encoder of what the run's triples say, by predicate and object; of
        those that have one. They are in half precision, the same in every store."""
        ...

    def save_corpus(self, run_id: str, corpus: "Corpus") -> None:
        """Make these the passages, with their relations, that the run was read from."""
        ...

    def corpus(self, run_id: str) -> "Corpus":
        """The passages that the run was read from, in order; empty for a crawl."""
        ...

    def query(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        names: Collection[str] | None = None,
    ) -> "QueryResult":
        """The rows of a read-only Cypher query. `names`, if given, are all the labels and edge
        types that it needs, perhaps with the names of the properties: an embedded store need read
        only these. Raises UsageError for a query that cannot be run or would write."""
        ...

    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        """The ids among these of nodes of this kind (group, object or topic)."""
        ...

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        """Write tests with their edges, replacing older ones; tie them to the run, if any."""
        ...

    def associations(self, run_id: str | None = None) -> list[AssociationNode]:
        """The tests of a run, or all tests, by name, method, model and id."""
        ...

    def save_names(self, names: Sequence[GroupName]) -> None:
        """Write names, with NAME_OF edges to their groups, which must exist. A name that exists
        keeps its text and its other groups; its form, root and mark for this group are
        replaced."""
        ...

    def names(self, run_id: str | None = None, belief_run_id: str | None = None) -> list[GroupName]:
        """All names, or those that a believing of the run probed, by text and group: one for each
        group that has the name and, with a believing, belongs to the run."""
        ...

    def keep_statements(self, statements: Sequence[tuple[str, str]]) -> None:
        """Write the statements (predicate, object) that do not exist yet, with their nodes: those
        that no run said must exist before they are probed."""
        ...

    def statements(self, run_id: str, belief_run_id: str) -> list[tuple[str, str]]:
        """The statements (predicate, object) that a believing of the run probed, by text."""
        ...

    def save_flags(self, flag_table: FlagTable) -> None:
        """Write FLAGGED edges, with groups and descriptors, replacing those of this id."""
        ...

    def flags(self) -> list[FlagTable]:
        """All flags, table by table, by the model's name; within a table by group and z. Tables
        without a flag are left out."""
        ...

    def save_probe_set(self, probe_set: "ProbeSet") -> None:
        """Write a set of probes with its groups and statements. If it exists, what is known about
        it is replaced."""
        ...

    def probe_sets(self) -> "list[ProbeSet]":
        """All sets of probes, by name and id; categories by name, groups and statements by id."""
        ...

    def save_sofa_results(self, run_id: str | None, results: "Sequence[SofaResult]") -> None:
        """Write SoFa results on sets of the store, replacing older ones; tie them to the run, if
        any."""
        ...

    def sofa_results(self, run_id: str | None = None) -> "list[SofaResult]":
        """The SoFa results of a run, or all, by the model's name; categories by name, groups and
        statements by id."""
        ...

    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        """Replace the run's links with these. An empty list removes them."""
        ...

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        """The run's links, by kind, head and text."""
        ...

    def save_stereotype_matches(self, run_id: str, matches: "StereotypeMatches") -> None:
        """Replace what the run was held against under this table's name, with its marks, in one
        transaction; tables and stereotypes that no run was held against any more are removed."""
        ...

    def stereotype_matches(self, run_id: str) -> "list[StereotypeMatches]":
        """What the run was held against, by the table's name; what was heard and the marks by
        id."""
        ...

    def save_topics(self, run_id: str, models: Sequence[TopicModel]) -> None:
        """Replace the run's topics with these, in one transaction."""
        ...

    def name_topic(self, topic_id: str, given: str) -> None:
        """Give a topic this name; "" takes the name away, so that its words name it again."""
        ...

    def topics(self, run_id: str) -> list[TopicModel]:
        """The run's topic models by category, topics by number and edges by triple."""
        ...

    def save_attributions(self, attributions: Sequence[WordAttribution]) -> None:
        """Write attributions, replacing those of the same metric, triple and method."""
        ...

    def attributions(self, run_id: str) -> list[WordAttribution]:
        """The attributions of the run's triples by its current metrics, by measure and triple."""
        ...

    def save_profiles(self, run_id: str, profiles: "Sequence[Profile]") -> None:
        """Replace the run's profiles with these. Write their generations first."""
        ...

    def profiles(self, run_id: str) -> "list[Profile]":
        """The run's profiles by path, each with the values that count: those rejected in review are
        left out."""
        ...

    def delete(self, run_id: str, *, dry_run: bool = False) -> dict[str, int]:
        """Delete a run and what only it holds: its generations, answers that no other run read,
        triples that no other run said or was shown, their scores, and so on to groups and models.
        Returns the number of nodes of each label; with `dry_run` nothing is deleted. The rest is
        the graph of a store that never had the run. An interrupted deletion is finished by the
        next."""
        ...

    def find_faults(self, progress: Progress | None = None) -> "list[Fault]":
        """Everything wrong with the store: damage, ids that refer to nothing, ids that do not match
        their content, a changed backup. Reads the whole store."""
        ...

    def compact(self, progress: Progress | None = None) -> "CompactedSizes":
        """Remove nodes that nothing refers to any more and return free space to the disk; returns
        the sizes before and after, in bytes. Raises UsageError for a server, which does so
        itself."""
        ...

    def backup(self, path: Path, progress: Progress | None = None) -> None:
        """Copy the store to a file as of one moment, whatever others write meanwhile, and write its
        SHA-256 to a file beside it. Raises UsageError for a server."""
        ...

    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        """Write benchmark items with their scores under a model asked in this way. They are durable
        when this returns; a score that exists is replaced."""
        ...

    def item_scores(
        self, model: ModelInfo, settings: Settings, ids: Sequence[str]
    ) -> dict[str, ItemScore]:
        """The scores of these items under a model asked in this way, by item."""
        ...

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        """Every way in which the model was asked benchmark items."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...


class AskTimer:
    """Records how long a model was asked for a run. `note` adds the time since the last note, which
    is all that a killed process loses. Time in which nothing was asked is left out: reading a
    finished run back from the answer log adds nothing. The clock is monotonic: resetting the
    computer's clock does not affect it."""

    def __init__(self) -> None:
        self._noted_at, self._asked_count = time.monotonic(), 0
        self.asked_seconds = 0.0  # in all, so far

    def note(self, store: Store, run_id: str, asked_count: int) -> None:
        """Add the time since the last note, if more requests have been `asked_count` by now than
        then."""
        now = time.monotonic()
        if asked_count > self._asked_count:
            store.add_work(run_id, now - self._noted_at)
            self.asked_seconds += now - self._noted_at
        self._noted_at, self._asked_count = now, asked_count

    def restart(self) -> None:
        """Leave out the time since the last note."""
        self._noted_at = time.monotonic()


_P = ParamSpec("_P")
_R = TypeVar("_R")


_Groups = Mapping[str, Group]


def _run_method(
    method: Callable[Concatenate[Any, str, _P], _R],
    rename: Callable[[Any, _Groups], Any] | None = None,
) -> Callable[Concatenate["StoredRun", _P], _R]:
    """A store's method that takes a run's id, as a method of the run. `rename` gives a row the
    name that the run has for its group, if the group's node has another."""
    name = method.__name__

    def run_method(run: "StoredRun", /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        result: Any = getattr(run.store, name)(run.id, *args, **kwargs)
        groups = {group.id: group for group in run.groups if group.english} if rename else {}
        if groups and rename:
            renamed = (rename(row, groups) for row in result)
            result = list(renamed) if isinstance(result, list) else renamed
        return cast(_R, result)

    run_method.__name__, run_method.__doc__ = name, method.__doc__
    return run_method


def _rename_generation(generation: Generation, groups: _Groups) -> Generation:
    triple = generation.triple
    if triple is None or (group := groups.get(triple.group_id)) is None:
        return generation
    said = Triple(group.name, triple.predicate, triple.object, group.english)
    return replace(generation, triple=said)


def _rename_view(view: TripleView, groups: _Groups) -> TripleView:
    group = groups.get(view.group_id)
    return replace(view, group=group.name) if group else view


def _rename_statement(row: "StatementRow", groups: _Groups) -> "StatementRow":
    group = groups.get(row.group_id)
    return row._replace(group=group.name) if group else row


def _rename_texts(row: tuple[str, str, str, str], groups: _Groups) -> tuple[str, str, str, str]:
    id, node_name, predicate, object = row
    group = groups.get(node_id("group", node_name))
    return id, group.name if group else node_name, predicate, object


def _rename_centrality(node: NodeCentrality, groups: _Groups) -> NodeCentrality:
    group = groups.get(node.node_id) if node.kind == "group" else None
    return replace(node, label=group.name) if group else node


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run (`record`) in its `store`. Nothing is cached: each method reads or writes the store.
    The methods are those of `Store`, with the run's id filled in."""

    store: Store
    record: Run

    @classmethod
    def find(cls, store: Store, name: str | None = None) -> "StoredRun":
        """The run of that name, or the newest with statements (`Store.find_run`)."""
        return cls(store, store.find_run(name))

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def state(self) -> RunState:
        """Its status; "abandoned" if it is said to be running, and nobody works on it."""
        from kgbias.graph.leases import is_leased

        if self.status == "running" and not is_leased(self.store.lease(self.id)):
            return "abandoned"
        return self.status

    def failures(self) -> Counter[str]:
        """How many of the run's requests failed, by reason."""
        return Counter(g.reason_text for g in self.generations() if g.outcome == "failed")

    @property
    def model(self) -> ModelInfo:
        return self.record.model

    @property
    def config(self) -> Mapping[str, Any]:
        return self.record.config

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.record.groups

    @property
    def categories(self) -> tuple[Category, ...]:
        return self.record.categories

    @property
    def status(self) -> RunStatus:
        return self.record.status

    def find_group(self, name: str) -> Group:
        """The group with that name or variant, in any case. Raises UsageError, listing the run's
        groups."""
        for group in self.groups:
            if group.goes_by(name):
                return group
        group_names = (group.name for group in self.groups)
        raise UsageError(no_such("group", name, group_names, f" in run {self.name!r}"))

    # What was said

    summary = _run_method(Store.summary)
    generations = _run_method(Store.generations, _rename_generation)
    triples = _run_method(Store.triples, _rename_view)
    arms = _run_method(Store.arms)
    triples_of_arm = _run_method(Store.triples_of_arm, _rename_view)
    distinct_triples = _run_method(Store.distinct_triples, _rename_texts)
    iter_example_rows = _run_method(Store.iter_example_rows)
    iter_draw_rows = _run_method(Store.iter_draw_rows)
    iter_statement_rows = _run_method(Store.iter_statement_rows, _rename_statement)
    iter_yield_rows = _run_method(Store.iter_yield_rows)
    iter_score_rows = _run_method(Store.iter_score_rows)
    generations_of_triple = _run_method(Store.generations_of_triple, _rename_generation)
    has_statements = _run_method(Store.has_statements)
    add_decisions = _run_method(Store.add_decisions)
    decisions = _run_method(Store.decisions)
    corpus = _run_method(Store.corpus)
    save_corpus = _run_method(Store.save_corpus)
    profiles = _run_method(Store.profiles)
    save_profiles = _run_method(Store.save_profiles)

    # What was measured

    put = _run_method(Store.put)
    find_all = _run_method(Store.find_all)
    metrics = _run_method(Store.metrics)
    scorers = _run_method(Store.scorers)
    save_scores = _run_method(Store.save_scores)
    derive_edges = _run_method(Store.derive_edges)
    topics = _run_method(Store.topics)
    save_topics = _run_method(Store.save_topics)
    attributions = _run_method(Store.attributions)
    near_duplicates = _run_method(Store.near_duplicates)
    save_near_duplicates = _run_method(Store.save_near_duplicates)
    stereotype_matches = _run_method(Store.stereotype_matches)
    save_stereotype_matches = _run_method(Store.save_stereotype_matches)
    centralities = _run_method(Store.centralities, _rename_centrality)
    save_centralities = _run_method(Store.save_centralities)
    vectors = _run_method(Store.vectors)

    # What was found by asking models

    names = _run_method(Store.names)
    statements = _run_method(Store.statements)
    sofa_results = _run_method(Store.sofa_results)
    save_sofa_results = _run_method(Store.save_sofa_results)
    associations = _run_method(Store.associations)
    save_associations = _run_method(Store.save_associations)
