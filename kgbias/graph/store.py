"""The store interface: what every graph store can do, how one is opened, and a run together with
the store that holds it (`StoredRun`).

All stores keep these rules: what `keep_answers` and `keep_batch` are given is durable when they
return; repeating a write changes nothing; reads are in an order that depends on content alone, so
two stores with the same runs give the same rows.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from kgbias.errors import UsageError, no_such
from kgbias.graph.cypher import QueryResult
from kgbias.graph.decisions import Decision
from kgbias.graph.holding import Lease, is_held
from kgbias.graph.keeping import Corpus, Fault
from kgbias.graph.labels import Label
from kgbias.graph.profiles import Profile
from kgbias.graph.recorded import Held
from kgbias.graph.said import Drawn, Shown, Stated, Told, Valued
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    Attribution,
    Batch,
    BelievedEdge,
    Believing,
    Category,
    Choosing,
    ChosenEdge,
    Flagged,
    Generation,
    Group,
    GroupName,
    GroupScore,
    ItemScore,
    Metric,
    NameProbe,
    NearDuplicate,
    NodePlace,
    ProbedEdge,
    Probing,
    Pulse,
    Run,
    RunSummary,
    Score,
    State,
    Status,
    TopicModel,
    Triple,
    TripleView,
    node_id,
)
from kgbias.graph.vectors import StatementVectors
from kgbias.io.progress import Progress
from kgbias.models.base import ModelInfo, Settings

DEFAULT_STORE = "kgbias.db"


class Store(Protocol):
    """A graph store. Runs are addressed by id; `find_run` resolves names."""

    url: str  # the path or URL that it was opened with
    query_timeout: float | None  # seconds that a query may take; None: no limit

    def begin(self, run: Run) -> Run:
        """Create the run with its model, categories and groups, or return it if it exists.

        Raises RunConflict if a run of that name has a different configuration or model."""
        ...

    def models(self) -> list[ModelInfo]:
        """Every model of the store."""
        ...

    def call(self, model: ModelInfo) -> None:
        """Keep a person's own name for a model (`called`; "" takes it away), known or new. Raises
        UsageError if another model goes by it. Where else a model is written, one that is known
        keeps the name that it has."""
        ...

    def lease(self, run_id: str) -> Lease:
        """Who works on a run: for `kgbias.graph.holding.hold_lease`."""
        ...

    def set_status(self, run_id: str, status: Status) -> None: ...

    def add_work(self, run_id: str, seconds: float) -> None:
        """Add to the seconds spent asking the run's model."""
        ...

    def seconds(self, run_id: str) -> float | None: ...  # as in `summary`, without the counts

    def find_run(self, name: str | None = None, kind: str | None = None) -> Run:
        """The run of that name. Without one, the newest that has statements, else the newest that
        has answers, else the newest; with a `kind`, the newest of it. Raises RunNotFound, listing
        the store's runs."""
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

    def batches(self, asked: str) -> list[Batch]:
        """The batches left with a provider for a model asked in one way, oldest first."""
        ...

    def keep_batch(self, batch: Batch) -> None:
        """Write or overwrite a batch. It is durable when this returns."""
        ...

    def drop_batch(self, name: str) -> None:
        """Forget a batch, whose answers are in the log."""
        ...

    def record(self, run_id: str, arm: str, iteration: int, batch: Sequence[Generation]) -> None:
        """Make `batch` the run's generations of one round, with the triples they yielded and were
        shown, in one transaction. A round recorded before is replaced; decisions about its
        generations (`decide`) stay in effect."""
        ...

    def load(self, run_id: str, generations: Iterable[Generation]) -> int:
        """Write the generations of an import in bounded memory; returns their number."""
        ...

    def decide(self, run_id: str, decisions: Sequence[Decision]) -> None:
        """Add decisions to those of the run and put them into effect, in one transaction: each
        generation yields what the latest decision about it says. A decision that exists changes
        nothing. Call `derive` after the last one."""
        ...

    def decisions(self, run_id: str) -> list[Decision]:
        """All decisions about the run's generations, oldest first."""
        ...

    def label(self, labels: Sequence[Label]) -> None:
        """Add labels, with their raters, in one transaction. They are durable when this returns. A
        label that exists changes nothing; one of a triple that the store lacks is left out."""
        ...

    def labels(self, measure: str | None = None) -> list[Label]:
        """All labels, or those of a measure, oldest first, including those no longer in effect
        (`kgbias.graph.labels.in_effect`)."""
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

    def of_arm(self, run_id: str, arm: str) -> Iterator[TripleView]:
        """The rows that `triples` has for one arm; a few at a time if the store sorts on disk."""
        ...

    def said(self, run_id: str) -> list[tuple[str, str, str, str]]:
        """The distinct triples of a run, by id: id, group, predicate and object, as on nodes."""
        ...

    def shown(self, run_id: str) -> Iterator[Shown]:
        """The generations of a run that yielded a triple and had examples, by id."""
        ...

    def drawn(self, run_id: str) -> Iterator[Drawn]:
        """Every generation of a run as a draw, in the order of `generations`."""
        ...

    def stated(self, run_id: str) -> Iterator[Stated]:
        """The distinct triples of a run with their texts, by id."""
        ...

    def told(self, run_id: str) -> Iterator[Told]:
        """The generations that yielded a triple, without texts, in the order of `generations`."""
        ...

    def valued(self, run_id: str) -> Iterator[Valued]:
        """The scores by the run's current metrics, by measure and triple: of every triple that has
        one, including those that only other runs said."""
        ...

    def state(self) -> str | None:
        """A text that changes whenever the store's content does; None for a server."""
        ...

    def pulse(self) -> Pulse:
        """Whether anything but labels was written since the last pulse, and how many answers the
        log holds: read at little cost, however large the store, while others write."""
        ...

    def answered(
        self, run_id: str, triple_id: str, arm: str, *, first: int, most: int
    ) -> list[Generation]:
        """The generations of an arm that yielded this triple, in the order of `generations`: at
        most `most` of them, from number `first` on."""
        ...

    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        """Write scores, and make this metric the run's current one for its measure. Nothing is
        derived from them: call `derive` after the last ones."""
        ...

    def derive(self, run_id: str) -> None:
        """Update what is derived from a run's generations and scores: its STEREOTYPE edges. Call it
        once, after the last write; `set_status` calls it when a run ends. A store that derives
        them on every read does nothing here."""
        ...

    def scored(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
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

    def save_group_scores(
        self, run_id: str, scores: Sequence[GroupScore], *, replacing: Collection[str] = ()
    ) -> None:
        """Write figures of groups, in one transaction. The run's figures named in `replacing` are
        removed first."""
        ...

    def group_scores(self, run_id: str) -> list[GroupScore]: ...

    def save_places(self, run_id: str, places: Sequence[NodePlace]) -> None:
        """Make these the places of the run's nodes."""
        ...

    def places(self, run_id: str) -> list[NodePlace]:
        """The places of the run's nodes, by kind and id; empty until they are saved."""
        ...

    def save_vectors(self, encoder: str, vectors: StatementVectors) -> None:
        """Write vectors of statements, whose predicates and objects must exist, by an encoder (its
        name and version); those that exist are replaced."""
        ...

    def encoders(self) -> list[str]:
        """The encoders that the store has vectors by."""
        ...

    def vectors(self, run_id: str, encoder: str) -> StatementVectors:
        """The vectors by this encoder of what the run's triples say, by predicate and object; of
        those that have one. They are in half precision, the same in every store."""
        ...

    def save_corpus(self, run_id: str, corpus: Corpus) -> None:
        """Make these the passages, with their relations, that the run was read from."""
        ...

    def corpus(self, run_id: str) -> Corpus:
        """The passages that the run was read from, in order; empty for a crawl."""
        ...

    def query(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        names: Collection[str] | None = None,
    ) -> QueryResult:
        """The rows of a read-only Cypher query. `names`, if given, are all the labels and edge
        types that it needs: an embedded store reads only these. Raises UsageError for a query that
        cannot be run or would write."""
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

    def save_probes(self, run_id: str, probing: Probing, edges: Sequence[ProbedEdge]) -> None:
        """Write PROBED edges of a probing. An edge that exists is replaced."""
        ...

    def save_probing(self, run_id: str, probing: Probing) -> None:
        """Write how a run was probed and with what result, replacing an earlier record."""
        ...

    def probes(
        self, run_id: str, probing_id: str, statement_id: str | None = None
    ) -> list[ProbedEdge]:
        """The edges of a probing of the run, or those of one statement, by statement and group."""
        ...

    def probings(self, run_id: str) -> list[Probing]:
        """The run's finished probings, by the model's name."""
        ...

    def save_choices(self, run_id: str, choosing: Choosing, edges: Sequence[ChosenEdge]) -> None:
        """Replace the CHOSEN edges of a choosing of the run with these."""
        ...

    def choices(
        self, run_id: str, choosing_id: str, statement_id: str | None = None
    ) -> list[ChosenEdge]:
        """The edges of a choosing of the run, or those of one statement, by statement and group."""
        ...

    def choosings(self, run_id: str) -> list[Choosing]:
        """The run's choosings, by the model's name."""
        ...

    def save_names(self, names: Sequence[GroupName]) -> None:
        """Write names, with NAME_OF edges to their groups, which must exist. A name that exists
        keeps its text and its other groups; its form, root and mark for this group are
        replaced."""
        ...

    def names(self, run_id: str | None = None, believing_id: str | None = None) -> list[GroupName]:
        """All names, or those that a believing of the run probed, by text and group: one for each
        group that has the name and, with a believing, belongs to the run."""
        ...

    def keep_statements(self, statements: Sequence[tuple[str, str]]) -> None:
        """Write the statements (predicate, object) that do not exist yet, with their nodes: those
        that no run said must exist before they are probed."""
        ...

    def statements(self, run_id: str, believing_id: str) -> list[tuple[str, str]]:
        """The statements (predicate, object) that a believing of the run probed, by text."""
        ...

    def save_believing(self, run_id: str, believing: Believing) -> None:
        """Write how a run was probed by names and with what result, replacing an earlier record.
        This finishes a believing."""
        ...

    def believings(self, run_id: str) -> list[Believing]:
        """The run's finished believings, by the model's name."""
        ...

    def save_name_probes(
        self, run_id: str, believing: Believing, probes: Sequence[NameProbe]
    ) -> None:
        """Write probes of a believing, whose names and words must exist. A probe that exists is
        replaced."""
        ...

    def name_probes(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[NameProbe]:
        """The probes of a believing, finished or not, or those of one statement, by statement and
        name."""
        ...

    def save_beliefs(
        self, run_id: str, believing: Believing, edges: Sequence[BelievedEdge]
    ) -> None:
        """Replace the BELIEVED edges of a believing of the run with these."""
        ...

    def beliefs(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[BelievedEdge]:
        """The edges of a believing, or those of one statement, by statement and group."""
        ...

    def save_flags(self, flagged: Flagged) -> None:
        """Write FLAGGED edges, with groups and descriptors, replacing those of this id."""
        ...

    def flags(self) -> list[Flagged]:
        """All flags, table by table, by the model's name; within a table by group and z. Tables
        without a flag are left out."""
        ...

    def save_probe_set(self, probe_set: ProbeSet) -> None:
        """Write a set of probes with its groups and statements. If it exists, what is known about
        it is replaced."""
        ...

    def probe_sets(self) -> list[ProbeSet]:
        """All sets of probes, by name and id; categories by name, groups and statements by id."""
        ...

    def save_sofa(self, run_id: str | None, results: Sequence[SofaResult]) -> None:
        """Write SoFa results on sets of the store, replacing older ones; tie them to the run, if
        any."""
        ...

    def sofa(self, run_id: str | None = None) -> list[SofaResult]:
        """The SoFa results of a run, or all, by the model's name; categories by name, groups and
        statements by id."""
        ...

    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        """Replace the run's links with these. An empty list removes them."""
        ...

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        """The run's links, by kind, head and text."""
        ...

    def save_held(self, run_id: str, held: Held) -> None:
        """Replace what the run was held against under this table's name, with its marks, in one
        transaction; tables and stereotypes that no run was held against any more are removed."""
        ...

    def held(self, run_id: str) -> list[Held]:
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

    def save_attributions(self, attributions: Sequence[Attribution]) -> None:
        """Write attributions, replacing those of the same metric, triple and method."""
        ...

    def attributions(self, run_id: str) -> list[Attribution]:
        """The attributions of the run's triples by its current metrics, by measure and triple."""
        ...

    def save_profiles(self, run_id: str, profiles: Sequence[Profile]) -> None:
        """Replace the run's profiles with these. Write their generations first."""
        ...

    def profiles(self, run_id: str) -> list[Profile]:
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

    def faults(self, progress: Progress | None = None) -> list[Fault]:
        """Everything wrong with the store: damage, ids that refer to nothing, ids that do not match
        their content, a changed backup. Reads the whole store."""
        ...

    def compact(self, progress: Progress | None = None) -> tuple[int, int]:
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


def open_store(
    url: str = DEFAULT_STORE, *, create: bool = True, notify: Callable[[str], None] | None = None
) -> Store:
    """Open the store at a path (SQLite) or at a neo4j://, neo4j+s:// or bolt:// URL. With
    `create=False`, a missing file is an error. `notify` is called with a line of text when a server
    stops answering, when it answers again, and when a file is served or waited for otherwise than
    usual."""
    scheme, separator, _ = url.partition("://")
    if separator and scheme.split("+")[0] in ("neo4j", "bolt"):
        from kgbias.graph.neo4j import Neo4jStore

        return Neo4jStore(url, create=create, notify=notify)
    if separator:
        raise UsageError(f"{scheme}:// is not a store: give a path, or a neo4j:// or bolt:// URL")
    if not url.strip() or url.startswith((":memory:", "file:")):
        raise UsageError(f"a store needs a file, and {url!r} is not one: it would not be kept")
    from kgbias.graph.sqlite import SQLiteStore

    return SQLiteStore(url, create=create, notify=notify)


class Watch:
    """Records how long a model was asked for a run. `note` adds the time since the last note, which
    is all that a killed process loses. Time in which nothing was asked is left out: reading a
    finished run back from the answer log adds nothing. The clock is monotonic: resetting the
    computer's clock does not affect it."""

    def __init__(self) -> None:
        self._noted, self._asked = time.monotonic(), 0

    def note(self, store: Store, run_id: str, asked: int) -> None:
        """Add the time since the last note, if more requests have been `asked` by now than then."""
        now = time.monotonic()
        if asked > self._asked:
            store.add_work(run_id, now - self._noted)
        self._noted, self._asked = now, asked


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _of_run(
    method: Callable[Concatenate[Any, str, _P], _R],
) -> Callable[Concatenate["StoredRun", _P], _R]:
    """A store's method that takes a run's id, as a method of the run."""
    name = method.__name__

    def bound(run: "StoredRun", /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        found: _R = getattr(run.store, name)(run.id, *args, **kwargs)
        return found

    bound.__name__, bound.__doc__ = name, method.__doc__
    return bound


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
    def state(self) -> State:
        """Its status; "abandoned" if it is said to be running, and nobody works on it."""
        if self.status == "running" and not is_held(self.store.lease(self.id)):
            return "abandoned"
        return self.status

    def failures(self) -> Counter[str]:
        """How many of the run's requests failed, by reason."""
        return Counter(g.why for g in self.generations() if g.outcome == "failed")

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
    def status(self) -> Status:
        return self.record.status

    def group(self, name: str) -> Group:
        """The group with that name or variant, in any case. Raises UsageError, listing the run's
        groups."""
        wanted = node_id("group", name)
        for group in self.groups:
            if wanted in (group.id, *(node_id("group", other) for other in group.variants)):
                return group
        there = (group.name for group in self.groups)
        raise UsageError(no_such("group", name, there, f" in run {self.name!r}"))

    # What was said

    summary = _of_run(Store.summary)
    generations = _of_run(Store.generations)
    triples = _of_run(Store.triples)
    arms = _of_run(Store.arms)
    of_arm = _of_run(Store.of_arm)
    said = _of_run(Store.said)
    shown = _of_run(Store.shown)
    drawn = _of_run(Store.drawn)
    stated = _of_run(Store.stated)
    told = _of_run(Store.told)
    valued = _of_run(Store.valued)
    answered = _of_run(Store.answered)
    has_statements = _of_run(Store.has_statements)
    decide = _of_run(Store.decide)
    decisions = _of_run(Store.decisions)
    corpus = _of_run(Store.corpus)
    save_corpus = _of_run(Store.save_corpus)
    profiles = _of_run(Store.profiles)
    save_profiles = _of_run(Store.save_profiles)

    # What was measured

    metrics = _of_run(Store.metrics)
    scorers = _of_run(Store.scorers)
    save_scores = _of_run(Store.save_scores)
    derive = _of_run(Store.derive)
    group_scores = _of_run(Store.group_scores)
    save_group_scores = _of_run(Store.save_group_scores)
    topics = _of_run(Store.topics)
    save_topics = _of_run(Store.save_topics)
    attributions = _of_run(Store.attributions)
    near_duplicates = _of_run(Store.near_duplicates)
    save_near_duplicates = _of_run(Store.save_near_duplicates)
    held = _of_run(Store.held)
    save_held = _of_run(Store.save_held)
    places = _of_run(Store.places)
    save_places = _of_run(Store.save_places)
    vectors = _of_run(Store.vectors)

    # What was found by asking models

    probings = _of_run(Store.probings)
    save_probing = _of_run(Store.save_probing)
    probes = _of_run(Store.probes)
    save_probes = _of_run(Store.save_probes)
    choosings = _of_run(Store.choosings)
    choices = _of_run(Store.choices)
    save_choices = _of_run(Store.save_choices)
    believings = _of_run(Store.believings)
    save_believing = _of_run(Store.save_believing)
    names = _of_run(Store.names)
    statements = _of_run(Store.statements)
    name_probes = _of_run(Store.name_probes)
    save_name_probes = _of_run(Store.save_name_probes)
    beliefs = _of_run(Store.beliefs)
    save_beliefs = _of_run(Store.save_beliefs)
    sofa = _of_run(Store.sofa)
    save_sofa = _of_run(Store.save_sofa)
    associations = _of_run(Store.associations)
    save_associations = _of_run(Store.save_associations)
