"""The shape of the graph: every label, edge type and property, once.

A record says itself what it is made of (`kgbias.graph.record`); this module says which label or
edge type it becomes, and what is kept beside it. Neo4j's constraints, indexes and writes, the view
of a SQLite store that Cypher reads, the exports for Neo4j and, when the site is built,
docs/graph-shape.md (`describe_shape`) are made from this table or held to it by a test.

The contract suite writes one of everything to both stores and compares what Cypher sees. To add a
property, annotate a field of its record; for a generation or triple, also extend the code that
writes them in bulk
(`sqlite/crawls.py`). An edge of a run, or a node that runs hold, is added by its record alone
(`kgbias.graph.edge_records`, `kgbias.graph.node_records`). Any other node that is a record is
declared at its class and named here; it also needs its table (`sqlite/schema.py`), as does
an edge that is kept in another way, with its SELECT (`sqlite/selects.py`) and rows
(`graph_tables.py`); and methods of `Store` in both stores, which `push.py` and
`kgbias.export.neo4j_rows` call. The suite fails until both stores agree.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from kgbias.graph.decisions import DECISION_PROPERTIES as DECISION
from kgbias.graph.edge_records import ASKING_RECORDS, EDGE_RECORDS
from kgbias.graph.integrity import Passage, Relation
from kgbias.graph.labels import Label, Rater
from kgbias.graph.node_records import NODE_RECORDS, held_nodes
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.record import Property, properties
from kgbias.graph.sofa import (
    ProbeSet,
    ProbeStatement,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.stereotypes import (
    Stereotype,
    StereotypeCount,
    StereotypeMatch,
    StereotypeMatches,
    StereotypeTable,
)
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    BeliefRun,
    BelievedEdge,
    BenchmarkItem,
    Category,
    ChoiceRun,
    ChosenEdge,
    Flag,
    FlagTable,
    Generation,
    Group,
    GroupName,
    GroupScore,
    ItemScore,
    Metric,
    NameProbe,
    NearDuplicate,
    NodeCentrality,
    ProbedEdge,
    ProbeRun,
    Run,
    Topic,
    TopicAssignment,
    TopicModel,
    WordAttribution,
    WordSetEdge,
)

DERIVED_MEASURES = (
    "regard",
    "toxicity",
    "acceptability",
)  # measures that a STEREOTYPE edge carries
TONES = ("positive", "neutral", "negative")  # labels of regard that have an edge of their own


@dataclass(frozen=True, slots=True)
class Node:
    """A label. `key` is the property that identifies a node, `title` the one people read."""

    label: str
    meaning: str
    key: str
    title: str
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge type, with the pairs of labels that it connects. `keys` are the properties that
    distinguish edges between the same two nodes."""

    type: str
    meaning: str
    ends: tuple[tuple[str, str], ...]
    properties: tuple[Property, ...] = ()
    keys: tuple[str, ...] = ()


def _text_properties(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "text", meaning) for name, meaning in meanings.items())


def _integer_properties(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "integer", meaning) for name, meaning in meanings.items())


def _number_properties(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "number", meaning) for name, meaning in meanings.items())


_UID = _text_properties(uid="id, computed from its content")
_NAME = _text_properties(name="the same, which Neo4j Browser shows on a node without a style")
_WORDS = (*_UID, *_text_properties(text="as first written"), *_NAME)
_PLACE_PROPERTIES = (
    *properties(NodeCentrality),
    *_text_properties(
        placed_by="the run that these numbers are from: the newest that placed the node"
    ),
)
_GENERATION = properties(Generation, moved_last=("group_uid", "iteration", "attempt", "count"))


def _record_node(kind: type) -> Node:
    """The node that the records of a class are."""
    node = NODE_RECORDS[kind]
    uid = _UID if node.key == "uid" else ()
    return Node(
        node.label,
        node.meaning,
        node.key,
        node.title,
        (*uid, *properties(kind, moved_last=node.last)),
    )


_NAMED_NODES: tuple[Node, ...] = (
    Node("Category", "a class of groups", "name", "name", properties(Category)),
    Node(
        "SocialGroup",
        "a group of people",
        "uid",
        "name",
        (*_UID, *properties(Group), *_PLACE_PROPERTIES),
    ),
    Node("Predicate", "the verb of a statement", "uid", "text", _WORDS),
    Node("Object", "the object of a statement", "uid", "text", (*_WORDS, *_PLACE_PROPERTIES)),
    Node(
        "Triple",
        "a statement about a group",
        "uid",
        "text",
        (
            *_UID,
            *_text_properties(group_uid="uid of its group", text="group, predicate and object"),
            *_NAME,
        ),
    ),
    Node(
        "Model",
        "a language model: its weights",
        "uid",
        "name",
        (*_UID, *_text_properties(name="its title, never a path", revision="of its weights")),
    ),
    Node(
        "Run",
        "a crawl, an import, profiles, stories or pairs",
        "uid",
        "name",
        (
            *_UID,
            *properties(Run, moved_first=("name", "kind", "config", "settings")),
            *_number_properties(seconds="how long asking its model took, over all sessions"),
            *_integer_properties(seq="order of creation, from 0"),
        ),
    ),
    Node("Generation", "one prompt and how it ended", "uid", "path", (*_UID, *_GENERATION)),
    _record_node(Answer),
    _record_node(Metric),
    _record_node(AssociationNode),
    Node(
        "Topic",
        "a topic of statements",
        "uid",
        "name",
        (*_UID, *properties(Topic, "name", "category", "given", "words")),
    ),
    Node(
        "TopicModel",
        "the topics of one category in a run",
        "uid",
        "category",
        (*_UID, *properties(TopicModel)),
    ),
    Node(
        "Statement",
        "a predicate and an object, or a text, without a group",
        "uid",
        "text",
        (
            *_UID,
            *_text_properties(
                text="predicate and object",
                predicate_uid="uid of the predicate; absent for a text",
                object_uid="uid of the object; absent for a text",
            ),
            *_NAME,
        ),
    ),
    Node(
        "Name",
        "a name by which people speak of a group, or one that means nothing",
        "uid",
        "text",
        (*_UID, *properties(GroupName, "text", "form", "root", "nonce"), *_NAME),
    ),
    Node("Decision", "what a person decided about an answer", "uid", "verdict", (*_UID, *DECISION)),
    _record_node(Rater),
    Node(
        "Passage",
        "a document or a chunk that a run was read from",
        "uid",
        "kind",
        (*_UID, *properties(Passage)),
    ),
    Node(
        "GivenName",
        "a given name, or words for a person, that profiles or stories were written for",
        "uid",
        "name",
        (*_UID, *_text_properties(name="the name")),
    ),
    _record_node(Profile),
    _record_node(BenchmarkItem),
    Node(
        "Descriptor",
        "what a person can be said to be, in a list of descriptors",
        "uid",
        "text",
        (
            *_UID,
            *_text_properties(text="as first written", axis="such as religion; empty for none"),
            *_NAME,
        ),
    ),
    _record_node(ProbeSet),
    _record_node(SofaResult),
    _record_node(StereotypeTable),
    Node(
        "Stereotype",
        "a stereotype that people recorded in a table, which makes it neither true nor common",
        "uid",
        "name",
        (*_UID, *_text_properties(name="people and attribute"), *properties(Stereotype)),
    ),
)
NODES = (
    *_NAMED_NODES,
    *(_record_node(node.record) for node in held_nodes()),
)

_RUN = _text_properties(run="the run's name")
_STEREOTYPE = (
    *_RUN,
    *_text_properties(predicate="as first written"),
    *_integer_properties(count="how often the arm said it"),
    *_number_properties(
        regard="by the run's current metric, -1 to 1; lower is more negative",
        toxicity="by the run's current metric, 0 to 1",
        acceptability="by the run's current metric, 0 to 1; higher makes more sense",
    ),
    *_text_properties(
        triple="uid of the triple", arm="the arm that said it", language="of the run"
    ),
)


def _asking_edge(kind: type) -> Edge:
    """The edge of how a model was asked about a run."""
    asking = ASKING_RECORDS[kind]
    return Edge(
        asking.type,
        asking.meaning,
        (("Run", "Model"),),
        (*_UID, *properties(kind)),
        ("uid",),
    )


def _record_edge(kind: type) -> Edge:
    """The edge that the records of a class are."""
    edge = EDGE_RECORDS[kind]
    run_properties: tuple[Property, ...] = () if edge.starts_at_run else _RUN
    asking_properties: tuple[Property, ...] = ()
    if edge.asking:
        asking_properties = _text_properties(
            **{
                edge.asking.property: f"uid of the {edge.asking.type} edge",
                "model": "name of the model",
            }
        )
    return Edge(
        edge.type,
        edge.meaning,
        ((edge.start, edge.end),),
        (*run_properties, *asking_properties, *properties(kind, moved_first=edge.first)),
        edge.keys,
    )


_NAMED_EDGES: tuple[Edge, ...] = (
    Edge("IN_CATEGORY", "a group's category", (("SocialGroup", "Category"),)),
    Edge("SUBJECT", "the group of a triple", (("Triple", "SocialGroup"),)),
    Edge("PREDICATE", "its predicate", (("Triple", "Predicate"),)),
    Edge("OBJECT", "its object", (("Triple", "Object"),)),
    Edge(
        "OF",
        "the model that was asked or tested",
        (("Run", "Model"), ("AssociationTest", "Model"), ("SofaResult", "Model")),
    ),
    Edge(
        "SEEDED",
        "a seed of the run",
        (("Run", "SocialGroup"),),
        (
            *_integer_properties(position="from 0"),
            *_text_properties(category="of the group in this run"),
            Property(
                "names",
                "texts",
                "what the run calls the group, if it is in another language than the node's name",
            ),
        ),
        ("position",),
    ),
    Edge(
        "IN",
        "the run of a generation, the group of a profile",
        (("Generation", "Run"), ("Profile", "SocialGroup")),
    ),
    Edge("WROTE", "a profile of the run", (("Run", "Profile"),)),
    Edge("GIVEN", "the name that a profile was written for", (("Profile", "GivenName"),)),
    Edge(
        "PART_OF",
        "what a profile is made of",
        (("Generation", "Profile"),),
        (*properties(ProfilePart), *_integer_properties(position="in the profile, from 0")),
        ("position",),
    ),
    Edge(
        "YIELDED",
        "the triple that a generation said",
        (("Generation", "Triple"),),
        (
            *_integer_properties(count="how often"),
            *_text_properties(predicate="as said here", object="as said here"),
        ),
    ),
    Edge(
        "SHOWN",
        "an example in the prompt",
        (("Generation", "Triple"),),
        _integer_properties(position="in the prompt, from 0"),
        ("position",),
    ),
    Edge(
        "SCORED",
        "a score of a triple",
        (("Triple", "Metric"),),
        (
            *_number_properties(value="the score; regard from -1 to 1, lower is more negative"),
            *_text_properties(label="its class"),
            Property("names", "texts", "classes or details"),
            Property("parts", "numbers", "their values, in the same order"),
        ),
    ),
    Edge(
        "MEASURED_BY",
        "the run's current metric for a measure",
        (("Run", "Metric"),),
        _text_properties(measure="of the metric"),
    ),
    _record_edge(GroupScore),
    Edge("REVIEWED", "a decision about an answer of the run", (("Run", "Decision"),)),
    Edge("DECIDES", "the generation that was decided about", (("Decision", "Generation"),)),
    Edge(
        "LABELLED",
        "what a rater says of a statement",
        (("Rater", "Triple"),),
        properties(Label, moved_first=("uid",)),
        ("uid",),
    ),
    Edge(
        "TESTED",
        "a test of the run, or a result of probing its statements",
        (("Run", "AssociationTest"), ("Run", "SofaResult")),
    ),
    Edge(
        "TARGET",
        "a target of a test",
        (("AssociationTest", "SocialGroup"),),
        properties(WordSetEdge),
        ("side",),
    ),
    Edge(
        "ATTRIBUTE",
        "an attribute of a test",
        (
            ("AssociationTest", "Object"),
            ("AssociationTest", "Topic"),
            ("AssociationTest", "SocialGroup"),
        ),
        properties(WordSetEdge),
        ("side",),
    ),
    Edge(
        "PLACED",
        "a node's place in the run's graph",
        (("Run", "SocialGroup"), ("Run", "Object")),
        properties(NodeCentrality),
    ),
    Edge("MODELLED_BY", "the run's topics", (("Run", "TopicModel"),)),
    Edge(
        "FOUND",
        "a topic of the model",
        (("TopicModel", "Topic"),),
        properties(Topic, excluded=("name", "category", "given", "words")),
    ),
    Edge(
        "ABOUT",
        "the topic of a triple",
        (("Triple", "Topic"),),
        (*_RUN, *_text_properties(model="uid of the topic model"), *properties(TopicAssignment)),
    ),
    Edge(
        "OUTLIER", "a triple of no topic", (("Triple", "TopicModel"),), properties(TopicAssignment)
    ),
    Edge(
        "ATTRIBUTED",
        "what each token does to a score",
        (("Triple", "Metric"),),
        properties(WordAttribution, moved_first=("method",)),
        ("method",),
    ),
    Edge("STATES", "the statement of a triple", (("Triple", "Statement"),)),
    _record_edge(ProbedEdge),
    _asking_edge(ProbeRun),
    _record_edge(ChosenEdge),
    _asking_edge(ChoiceRun),
    Edge(
        "NAME_OF",
        "a group that people speak of by a name",
        (("Name", "SocialGroup"),),
        properties(GroupName, "mark"),
    ),
    _record_edge(NameProbe),
    _record_edge(BelievedEdge),
    _asking_edge(BeliefRun),
    Edge(
        "READ_BY",
        "an item of a benchmark under a model",
        (("BenchmarkItem", "Model"),),
        (
            *_text_properties(
                asked="id of the model as it was asked", settings="how, as JSON pairs"
            ),
            *properties(ItemScore),
        ),
        ("asked",),
    ),
    Edge(
        "FLAGGED",
        "a descriptor that a model ties to the names of a group (APX)",
        (("SocialGroup", "Descriptor"),),
        (
            *properties(FlagTable, "apx_uid", "model", "revision", "settings"),
            *properties(Flag),
            *properties(FlagTable, "level", "groups"),
        ),
        ("apx_uid",),
    ),
    Edge(
        "ASKS",
        "a group or a statement of a set of probes",
        (("ProbeSet", "SocialGroup"), ("ProbeSet", "Statement")),
        (
            *_text_properties(category="the category of the set that it belongs to"),
            *properties(ProbeStatement, "text", "words", "cluster", "hate"),
        ),
        ("category", "text"),
    ),
    Edge("ON", "the set that a model was probed with", (("SofaResult", "ProbeSet"),)),
    Edge("SCORES", "SoFa by category", (("SofaResult", "Category"),), properties(SofaCategory)),
    Edge(
        "PUTS_FIRST",
        "how often a group has the lowest PPL* before a statement",
        (("SofaResult", "SocialGroup"),),
        (*_text_properties(category="of the statements"), *properties(SofaGroup)),
        ("category",),
    ),
    Edge(
        "DISPARITY",
        "what the group before a statement changes",
        (("SofaResult", "Statement"),),
        (*_text_properties(category="of the groups"), *properties(SofaStatement)),
        ("category",),
    ),
    Edge(
        "NEAR",
        "a near-duplicate of a more frequent one",
        (("Statement", "Statement"),),
        (*_RUN, *properties(NearDuplicate)),
        ("run",),
    ),
    Edge("LISTS", "a stereotype of the table", (("StereotypeTable", "Stereotype"),)),
    Edge(
        "HELD_AGAINST",
        "a table that the run was held against (kgbias known)",
        (("Run", "StereotypeTable"),),
        properties(StereotypeMatches),
    ),
    Edge(
        "SOUGHT",
        "a recorded stereotype of one of the run's groups, said or not when kgbias known was run",
        (("Run", "Stereotype"),),
        properties(StereotypeCount),
    ),
    Edge(
        "RECORDED",
        "what is recorded about the triple's group that is nearest to the triple",
        (("Triple", "Stereotype"),),
        (*_RUN, *properties(StereotypeMatch)),
        ("run",),
    ),
    Edge(
        "NEW_TO",
        "a triple to whose group the table records nothing similar",
        (("Triple", "StereotypeTable"),),
        _RUN,
        ("run",),
    ),
    Edge(
        "HOLDS",
        "a passage that the run was read from",
        (("Run", "Passage"),),
        _integer_properties(position="from 0"),
    ),
    Edge(
        "RELATED",
        "a relation of two passages",
        (("Passage", "Passage"),),
        (
            *_RUN,
            *_integer_properties(position="among the relations of the run, from 0"),
            *properties(Relation, moved_last=("bidirectional",)),
        ),
        ("run", "position"),
    ),
    Edge(
        "STEREOTYPE",
        "a triple of a run as one edge for each arm that said it, derived from the rest",
        (("SocialGroup", "Object"),),
        _STEREOTYPE,
        ("run", "triple", "arm"),
    ),
    *(
        Edge(
            tone.upper(),
            f"the STEREOTYPE edge once more, where its regard is {tone}: a style colours by type",
            (("SocialGroup", "Object"),),
            _STEREOTYPE,
            ("run", "triple", "arm"),
        )
        for tone in TONES
    ),
)

EDGES = (
    *_NAMED_EDGES,
    *(
        _record_edge(kind)
        for kind, edge in EDGE_RECORDS.items()
        if edge.type not in {named.type for named in _NAMED_EDGES}
    ),
)


@dataclass(frozen=True, slots=True)
class TriplePart:
    """One of the three nodes of a triple: the field of `Triple`, the label, and the edge to it."""

    field: str
    label: str
    edge: str

    @property
    def variable(self) -> str:
        """What it is called in Cypher."""
        return self.field[0]


TRIPLE_PARTS = (
    TriplePart("group", "SocialGroup", "SUBJECT"),
    TriplePart("predicate", "Predicate", "PREDICATE"),
    TriplePart("object", "Object", "OBJECT"),
)


# They are in small letters, as no label or edge type is.
PROPERTY_NAMES = frozenset(
    p.name
    for properties in (*(n.properties for n in NODES), *(e.properties for e in EDGES))
    for p in properties
)


@cache
def get_node(label: str) -> Node:
    """The node of this label."""
    return next(n for n in NODES if n.label == label)


@cache
def get_edge(kind: str) -> Edge:
    """The edge of this type."""
    return next(e for e in EDGES if e.type == kind)


def with_end_labels(element_names: Iterable[str]) -> frozenset[str]:
    """The labels and edge types among `element_names`, with the labels at the ends of each edge
    type."""
    wanted_names = set(element_names)
    edges = [e for e in EDGES if e.type in wanted_names]
    ends = {label for e in edges for pair in e.ends for label in pair}
    return frozenset(
        {n.label for n in NODES if n.label in wanted_names} | {e.type for e in edges} | ends
    )


def order_by_shape(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts of nodes in the order of the shape, without zeros."""
    return {n.label: counts[n.label] for n in NODES if counts.get(n.label)}


def run_indexed_edges() -> tuple[Edge, ...]:
    """The edge types that are looked up by run."""
    return tuple(e for e in EDGES if any(p.name == "run" for p in e.properties))


def constraint_name(node: Node) -> str:
    """What the server calls it. A name that the index of an edge has already would be taken to be
    there, and nothing be made: Stereotype beside STEREOTYPE."""
    name = f"kgbias_{node.label.lower()}"
    return f"{name}_node" if any(e.type == node.label.upper() for e in EDGES) else name


def constraint_query(node: Node) -> str:
    """The Cypher that makes a label's key unique, and thereby indexed."""
    return (
        f"CREATE CONSTRAINT {constraint_name(node)} IF NOT EXISTS "
        f"FOR (n:{node.label}) REQUIRE n.{node.key} IS UNIQUE"
    )


def merge_text(variable: str, label: str, uid: str, text: str) -> str:
    """The Cypher that makes a node that is a text, with the words that it had first."""
    title = get_node(label).title
    return (
        f"MERGE ({variable}:{label} {{uid: {uid}}}) "
        f"ON CREATE SET {variable}.{title} = {text}, {variable}.name = {text}"
    )


def write_triple_edges(verb: str) -> str:
    """The Cypher that makes the edges from a triple `t` to its nodes, by MERGE or CREATE."""
    return " ".join(f"{verb} (t)-[:{p.edge}]->({p.variable})" for p in TRIPLE_PARTS)


def describe_shape() -> str:
    """The shape as Markdown, as the site shows it: a section for each label and type.

    Edges with the properties of an earlier type refer to it."""
    lines = ["## Nodes"]
    for node in NODES:
        lines += ["", f"### {node.label}", "", _sentence(node.meaning), ""]
        lines += _listed(node.properties)
    lines += ["", "## Edges"]
    with_these: dict[tuple[Property, ...], str] = {}
    for edge in EDGES:
        ends = ", ".join(f"`{start}` to `{end}`" for start, end in edge.ends)
        lines += ["", f"### {edge.type}", "", f"{_sentence(edge.meaning)} {ends}."]
        if edge.properties in with_these:
            lines += ["", f"Properties as those of {with_these[edge.properties]}."]
        elif edge.properties:
            lines += ["", *_listed(edge.properties)]
            with_these[edge.properties] = edge.type
    return "\n".join(lines)


def _sentence(meaning: str) -> str:
    return f"{meaning[0].upper()}{meaning[1:]}."


def _listed(properties: tuple[Property, ...]) -> list[str]:
    return [f"- `{p.name}`: {p.meaning}" for p in properties]
