"""The shape of the graph: every label, edge type and property, once.

Neo4j's constraints and indexes, the view of a SQLite store that Cypher reads, the exports for Neo4j
and the shape section of docs/neo4j.md are made from this table or held to it by a test. To add to
the graph, add it here, write it in `graph/neo4j/` and select it in `graph/sqlite/rows.py`; the
contract suite fails until both stores show the same.
"""

from collections.abc import Iterable

from kgbias.graph.shape_nodes import (
    INTERVAL,
    PLACE,
    PROBES,
    RUN,
    Edge,
    Node,
    boolean,
    integer,
    number,
    numbers,
    text,
    texts,
)
from kgbias.graph.shape_nodes import NODES as NODES

_SIDE = text(side="the word set: x or y (targets), a or b (attributes)")
_MEMBERSHIP = (
    *number(probability="strength of membership, 0 to 1"),
    *boolean(assigned="whether it went to the nearest topic because no cluster took it"),
)

OF_NO_RUN = ("BenchmarkItem", "READ_BY")  # they belong to a model, and no export of a run has them
DERIVED = ("regard", "toxicity", "acceptability")  # measures that a STEREOTYPE edge carries
TONES = ("positive", "neutral", "negative")  # labels of regard that have an edge of their own

_STEREOTYPE = (
    *RUN,
    *text(predicate="as first written"),
    *integer(count="how often the arm said it"),
    *number(
        regard="by the run's current metric, -1 to 1; lower is more negative",
        toxicity="by the run's current metric, 0 to 1",
        acceptability="by the run's current metric, 0 to 1; higher makes more sense",
    ),
    *text(triple="uid of the triple", arm="the arm that said it"),
)

EDGES: tuple[Edge, ...] = (
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
        (*integer(position="from 0"), *text(category="of the group in this run")),
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
        (*text(attribute="such as hobbies"), *integer(position="in the profile, from 0")),
    ),
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
            *INTERVAL,
            *integer(n="triples behind it"),
            *text(method="of the interval", arm="that it is of; empty in a run of one arm"),
        ),
    ),
    Edge("REVIEWED", "a decision about an answer of the run", (("Run", "Decision"),)),
    Edge("DECIDES", "the generation that was decided about", (("Decision", "Generation"),)),
    Edge(
        "TESTED",
        "a test of the run, or a result of probing its statements",
        (("Run", "AssociationTest"), ("Run", "SofaResult")),
    ),
    Edge("TARGET", "a target of a test", (("AssociationTest", "SocialGroup"),), _SIDE),
    Edge(
        "ATTRIBUTE",
        "an attribute of a test",
        (
            ("AssociationTest", "Object"),
            ("AssociationTest", "Topic"),
            ("AssociationTest", "SocialGroup"),
        ),
        _SIDE,
    ),
    Edge(
        "PLACED",
        "a node's place in the run's graph",
        (("Run", "SocialGroup"), ("Run", "Object")),
        PLACE,
    ),
    Edge("MODELLED_BY", "the run's topics", (("Run", "TopicModel"),)),
    Edge(
        "FOUND",
        "a topic of the model",
        (("TopicModel", "Topic"),),
        (
            *integer(number="its rank by size, from 0", size="distinct triples about it"),
            *number(
                coherence="mean NPMI of its words, -1 to 1",
                stability="overlap with the nearest topics of other seeds, 0 to 1",
            ),
        ),
    ),
    Edge(
        "ABOUT",
        "the topic of a triple",
        (("Triple", "Topic"),),
        (*RUN, *text(model="uid of the topic model"), *_MEMBERSHIP),
    ),
    Edge("OUTLIER", "a triple of no topic", (("Triple", "TopicModel"),), _MEMBERSHIP),
    Edge(
        "ATTRIBUTED",
        "what each token does to a score",
        (("Triple", "Metric"),),
        (
            *text(method="for example occlusion@2"),
            *texts(tokens="of the sentence"),
            *numbers(effects="of each token on the score, by the method"),
            *number(score="of the whole sentence"),
        ),
    ),
    Edge("STATES", "the statement of a triple", (("Triple", "Statement"),)),
    *PROBES,
    Edge(
        "READ_BY",
        "an item of a benchmark under a model",
        (("BenchmarkItem", "Model"),),
        (
            *text(asked="id of the model as it was asked", settings="how, as JSON pairs"),
            *numbers(scores="of its candidates: what they are is up to the benchmark"),
            *integer(tokens="read for it"),
            *number(seconds="that took"),
        ),
    ),
    Edge(
        "FLAGGED",
        "a descriptor that a model ties to the names of a group (APX)",
        (("SocialGroup", "Descriptor"),),
        (
            *text(
                apx_uid="id of the table of APX",
                model="name of the model, or the file that the table came from",
                revision="of its weights; empty of a file",
                settings="how the model was asked, as JSON pairs",
            ),
            *number(
                bias_score="from 0 to 1, lower is more strongly tied",
                z="standard deviations from the mean over groups, negative",
                level="of the one-tailed test",
            ),
            *integer(groups="groups that were compared"),
        ),
    ),
    Edge(
        "ASKS",
        "a group or a statement of a set of probes",
        (("ProbeSet", "SocialGroup"), ("ProbeSet", "Statement")),
        (
            *text(category="of the set that it belongs to", text="as it stands in a probe"),
            *integer(
                words="of the statement",
                cluster="of the statement, from 0; -1 for none",
            ),
            *number(hate="of the statement, 0 to 1"),
        ),
    ),
    Edge("ON", "the set that a model was probed with", (("SofaResult", "ProbeSet"),)),
    Edge(
        "SCORES",
        "SoFa by category",
        (("SofaResult", "Category"),),
        (
            *number(score="mean variance of PPL* over groups; higher: groups further apart"),
            *INTERVAL,
            *integer(n="statements behind it"),
            *numbers(quantiles="of PPL* over the probes, at 0, 1 ... 100 percent"),
        ),
    ),
    Edge(
        "PUTS_FIRST",
        "how often a group has the lowest PPL* before a statement",
        (("SofaResult", "SocialGroup"),),
        (
            *text(category="of the statements"),
            *number(first="share of the statements with the lowest PPL* for the group"),
            *INTERVAL,
            *integer(n="statements behind it"),
            *number(
                likeliest="the same share by the result's own measure",
                likeliest_low="lower end of its 95% interval",
                likeliest_high="upper end of its 95% interval",
            ),
        ),
    ),
    Edge(
        "DISPARITY",
        "what the group before a statement changes",
        (("SofaResult", "Statement"),),
        (
            *text(category="of the groups"),
            *number(
                dds="Delta Disparity Score: highest minus lowest PPL* over groups",
                variance="of PPL* over groups",
                mean="of PPL* over groups",
            ),
            *texts(first="the groups of the lowest PPL*"),
        ),
    ),
    Edge(
        "NEAR",
        "a near-duplicate of a more frequent one",
        (("Object", "Object"), ("Predicate", "Predicate")),
        (*RUN, *number(similarity="cosine of the embeddings"), *text(method="of the embedding")),
    ),
    Edge(
        "HOLDS",
        "a passage that the run was read from",
        (("Run", "Passage"),),
        integer(position="from 0"),
    ),
    Edge(
        "RELATED",
        "a relation of two passages",
        (("Passage", "Passage"),),
        (
            *RUN,
            *integer(position="among the relations of the run, from 0"),
            *text(
                name="the id that it came with",
                kind="child, next or entities_overlap",
                properties="what it came with, as JSON",
            ),
            *boolean(bidirectional="whether it holds both ways"),
        ),
    ),
    Edge(
        "STEREOTYPE",
        "a triple of a run as one edge for each arm that said it, derived from the rest",
        (("SocialGroup", "Object"),),
        _STEREOTYPE,
    ),
    *(
        Edge(
            tone.upper(),
            f"the STEREOTYPE edge once more, where its regard is {tone}: a style colours by type",
            (("SocialGroup", "Object"),),
            _STEREOTYPE,
        )
        for tone in TONES
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
