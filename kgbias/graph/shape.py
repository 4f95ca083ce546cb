"""The shape of the graph: every label, edge type and property, once.

Neo4j's constraints and indexes, the view of a SQLite store that Cypher reads, the exports for Neo4j
and the shape section of docs/neo4j.md are made from this table or held to it by a test. To add to
the graph, add it here, write it in `graph/neo4j/` and select it in `graph/sqlite/rows.py`; the
contract suite fails until both stores show the same.
"""

from collections.abc import Iterable

from kgbias.graph.shape_parts import (
    Edge,
    Node,
    boolean,
    integer,
    number,
    numbers,
    text,
    texts,
)

_UID = text(uid="id, computed from its content")
_RUN = text(run="the run's name")
_SIDE = text(side="the word set: x or y (targets), a or b (attributes)")
_INTERVAL = number(low="lower end of the 95% interval", high="upper end of the 95% interval")
_PLACE = (
    *integer(degree="statements that touch it, counted as often as they were said"),
    *number(betweenness="share of shortest paths through it, 0 to 1"),
    *integer(
        community="number of its community, 0 the largest",
        groups="groups that an object was named for, or that a group shares an object with",
    ),
)
_PLACED = (*_PLACE, *text(placed_by="the run of these numbers: the newest that placed the node"))
_MEMBERSHIP = (
    *number(probability="strength of membership, 0 to 1"),
    *boolean(assigned="whether it went to the nearest topic because no cluster took it"),
)

NODES: tuple[Node, ...] = (
    Node(
        "Category",
        "a class of groups",
        "name",
        "name",
        text(
            name="for example gender",
            singular="for one group, in prompts",
            plural="for several, in prompts",
        ),
    ),
    Node(
        "SocialGroup",
        "a group of people",
        "uid",
        "name",
        (*_UID, *text(name="its name"), *texts(variants="its other names"), *_PLACED),
    ),
    Node(
        "Predicate",
        "the verb of a statement",
        "uid",
        "text",
        (*_UID, *text(text="as first written")),
    ),
    Node(
        "Object",
        "the object of a statement",
        "uid",
        "text",
        (*_UID, *text(text="as first written"), *_PLACED),
    ),
    Node(
        "Triple",
        "a statement about a group",
        "uid",
        "text",
        (*_UID, *text(group_uid="uid of its group", text="group, predicate and object")),
    ),
    Node(
        "Model",
        "a language model: its weights",
        "uid",
        "name",
        (*_UID, *text(name="as the user named it", revision="of its weights")),
    ),
    Node(
        "Run",
        "a crawl or an import",
        "uid",
        "name",
        (
            *_UID,
            *text(
                name="its name",
                kind="crawl or import",
                config="its configuration, as JSON",
                settings="how the model was asked, as JSON pairs",
                status="running, complete or interrupted",
                created="when it began, UTC",
                version="of kgbias",
            ),
            *integer(seq="order of creation, from 0"),
        ),
    ),
    Node(
        "Generation",
        "one prompt and how it ended",
        "uid",
        "path",
        (
            *_UID,
            *text(
                path="its place in the run",
                arm="the arm of the crawl",
                strategy="what was expanded",
                outcome="ok, refused, unparsable, echo or failed",
                reason="why it was refused or failed",
                template="the template's name and version",
                template_hash="of the template's text",
                prompt="the prompt",
                answer_key="key of its answer",
                group_uid="uid of the group that was asked about",
            ),
            *integer(
                iteration="the round, from 0",
                attempt="0 for the first",
                count="how often it was said; 1 in a crawl",
            ),
        ),
    ),
    Node(
        "Answer",
        "the raw answer of a model",
        "key",
        "key",
        (
            *text(
                key="computed from the request",
                model_id="uid of the model",
                text="the answer",
                finish="why it ended",
                details="what else the server returned, as JSON",
            ),
            *integer(
                prompt_tokens="tokens of the prompt", completion_tokens="tokens of the answer"
            ),
            *number(seconds="how long it took"),
        ),
    ),
    Node(
        "Metric",
        "how a score was computed",
        "uid",
        "measure",
        (
            *_UID,
            *text(
                measure="regard, toxicity ...",
                scorer="its name",
                version="of the scorer",
                verbaliser="what turns a triple into the text that is scored",
            ),
        ),
    ),
    Node(
        "AssociationTest",
        "an association test on one model",
        "uid",
        "name",
        (
            *_UID,
            *text(name="of the test", method="weat, seat ...", model="name of the model"),
            *number(effect_size="d", p_value="of the permutation test"),
            *_INTERVAL,
            *text(record="all figures and settings, as JSON"),
        ),
    ),
    Node(
        "Topic",
        "a topic of statements",
        "uid",
        "name",
        (
            *_UID,
            *text(name="its four best words", category="of the groups"),
            *texts(words="its most characteristic words, best first"),
        ),
    ),
    Node(
        "TopicModel",
        "the topics of one category in a run",
        "uid",
        "category",
        (*_UID, *text(category="of the groups", settings="they were found with, as JSON")),
    ),
    Node(
        "Statement",
        "a predicate and an object, without a group",
        "uid",
        "text",
        (
            *_UID,
            *text(
                text="predicate and object",
                predicate_uid="uid of the predicate",
                object_uid="uid of the object",
            ),
        ),
    ),
)

EDGES: tuple[Edge, ...] = (
    Edge("IN_CATEGORY", "a group's category", (("SocialGroup", "Category"),)),
    Edge("SUBJECT", "the group of a triple", (("Triple", "SocialGroup"),)),
    Edge("PREDICATE", "its predicate", (("Triple", "Predicate"),)),
    Edge("OBJECT", "its object", (("Triple", "Object"),)),
    Edge(
        "OF", "the model that was asked or tested", (("Run", "Model"), ("AssociationTest", "Model"))
    ),
    Edge(
        "SEEDED",
        "a seed of the run",
        (("Run", "SocialGroup"),),
        (*integer(position="from 0"), *text(category="of the group in this run")),
    ),
    Edge("IN", "the run of a generation", (("Generation", "Run"),)),
    Edge(
        "YIELDED",
        "the triple that a generation said",
        (("Generation", "Triple"),),
        (*integer(count="how often"), *text(predicate="as said here", object="as said here")),
    ),
    Edge(
        "SHOWN",
        "an example in the prompt",
        (("Generation", "Triple"),),
        integer(position="in the prompt, from 0"),
    ),
    Edge(
        "SCORED",
        "a score of a triple",
        (("Triple", "Metric"),),
        (
            *number(value="the score; regard from -1 to 1, lower is more negative"),
            *text(label="its class"),
            *texts(names="classes or details"),
            *numbers(parts="their values, in the same order"),
        ),
    ),
    Edge(
        "MEASURED_BY",
        "the run's current metric for a measure",
        (("Run", "Metric"),),
        text(measure="of the metric"),
    ),
    Edge(
        "FIGURE",
        "a figure of a group in a run",
        (("Run", "SocialGroup"),),
        (
            *text(measure="for example overall_regard"),
            *number(value="the figure"),
            *_INTERVAL,
            *integer(n="triples behind it"),
            *text(method="of the interval"),
        ),
    ),
    Edge("TESTED", "a test of the run", (("Run", "AssociationTest"),)),
    Edge("TARGET", "a target of a test", (("AssociationTest", "SocialGroup"),), _SIDE),
    Edge(
        "ATTRIBUTE",
        "an attribute of a test",
        (("AssociationTest", "Object"), ("AssociationTest", "Topic")),
        _SIDE,
    ),
    Edge(
        "PLACED",
        "a node's place in the run's graph",
        (("Run", "SocialGroup"), ("Run", "Object")),
        _PLACE,
    ),
    Edge("MODELLED_BY", "the run's topics", (("Run", "TopicModel"),)),
    Edge(
        "FOUND",
        "a topic of the model",
        (("TopicModel", "Topic"),),
        integer(number="its rank by size, from 0", size="distinct triples about it"),
    ),
    Edge(
        "ABOUT",
        "the topic of a triple",
        (("Triple", "Topic"),),
        (*_RUN, *text(model="uid of the topic model"), *_MEMBERSHIP),
    ),
    Edge("OUTLIER", "a triple of no topic", (("Triple", "TopicModel"),), _MEMBERSHIP),
    Edge(
        "ATTRIBUTED",
        "what each token does to a score",
        (("Triple", "Metric"),),
        (
            *text(method="for example occlusion@1"),
            *texts(tokens="of the sentence"),
            *numbers(effects="score with the token minus score without, by token"),
            *number(score="of the whole sentence"),
        ),
    ),
    Edge("STATES", "the statement of a triple", (("Triple", "Statement"),)),
    Edge(
        "PROBED",
        "how probable a statement is of a group",
        (("Statement", "SocialGroup"),),
        (
            *_RUN,
            *text(probing_uid="uid of the PROBED_WITH edge", model="name of the model"),
            *number(log_likelihood="of group and statement, natural logarithm"),
            *integer(tokens="of group and statement"),
            *number(statement_log_likelihood="of the statement's tokens after the group"),
            *integer(statement_tokens="of the statement"),
            *number(group_log_likelihood="of the group alone"),
            *integer(
                group_tokens="of the group",
                rank="of the group among those of its category, 1 the most probable",
            ),
            *texts(pieces="the scored tokens as text"),
            *numbers(bits="surprisal of each token, -log2 p"),
        ),
    ),
    Edge(
        "PROBED_WITH",
        "a probing of the run",
        (("Run", "Model"),),
        (
            *_UID,
            *text(settings="how the model was asked, as JSON pairs", record="its result, as JSON"),
        ),
    ),
    Edge(
        "NEAR",
        "a near-duplicate of a more frequent one",
        (("Object", "Object"), ("Predicate", "Predicate")),
        (*_RUN, *number(similarity="cosine of the embeddings"), *text(method="of the embedding")),
    ),
    Edge(
        "STEREOTYPE",
        "a triple of a run as one edge, derived from the rest",
        (("SocialGroup", "Object"),),
        (
            *_RUN,
            *text(predicate="as first written"),
            *integer(count="how often it was said in the run"),
            *number(
                regard="by the run's current metric, -1 to 1; lower is more negative",
                toxicity="by the run's current metric, 0 to 1",
            ),
            *text(triple="uid of the triple"),
        ),
    ),
)


def node(label: str) -> Node:
    """The node of this label."""
    return next(n for n in NODES if n.label == label)


def edge(kind: str) -> Edge:
    """The edge of this type."""
    return next(e for e in EDGES if e.type == kind)


def closed(names: Iterable[str]) -> frozenset[str]:
    """The labels and edge types among `names`, with the labels at the ends of each edge type."""
    wanted = set(names)
    edges = [e for e in EDGES if e.type in wanted]
    ends = {label for e in edges for pair in e.ends for label in pair}
    return frozenset({n.label for n in NODES if n.label in wanted} | {e.type for e in edges} | ends)


def indexed() -> tuple[Edge, ...]:
    """The edge types that are found by the run they belong to."""
    return tuple(e for e in EDGES if any(p.name == "run" for p in e.properties))


def constraint(node: Node) -> str:
    """The Cypher that makes a label's key unique, and so indexed."""
    return (
        f"CREATE CONSTRAINT kgbias_{node.label.lower()} IF NOT EXISTS "
        f"FOR (n:{node.label}) REQUIRE n.{node.key} IS UNIQUE"
    )


def described() -> str:
    """The shape as two tables in Markdown: what docs/neo4j.md shows."""

    def properties(thing: Node | Edge) -> str:
        return ", ".join(f"`{p.name}` ({p.meaning})" for p in thing.properties)

    nodes = [f"| `{n.label}` | {n.meaning} | {properties(n)} |" for n in NODES]
    edges = [
        f"| `{e.type}` | {e.meaning} "
        f"| {', '.join(f'{start} to {end}' for start, end in e.ends)} | {properties(e)} |"
        for e in EDGES
    ]
    return "\n".join(
        [
            "| node | what it is | properties |",
            "|---|---|---|",
            *nodes,
            "",
            "| edge | what it is | from, to | properties |",
            "|---|---|---|---|",
            *edges,
        ]
    )
