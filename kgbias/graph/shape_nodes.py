"""The nodes of the graph, and the edges of what models were asked about statements and groups:
parts of the table of `kgbias.graph.shape`."""

from dataclasses import dataclass
from typing import Literal

Type = Literal["text", "integer", "number", "boolean", "texts", "numbers"]


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a node or an edge. One without a value is absent, never NaN."""

    name: str
    type: Type
    meaning: str


@dataclass(frozen=True, slots=True)
class Node:
    """A label. `key` is the property that identifies a node, `title` the one that people read."""

    label: str
    meaning: str
    key: str
    title: str
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge type, with the pairs of labels that it connects."""

    type: str
    meaning: str
    ends: tuple[tuple[str, str], ...]
    properties: tuple[Property, ...] = ()


def text(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "text", meaning) for name, meaning in meanings.items())


def integer(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "integer", meaning) for name, meaning in meanings.items())


def number(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "number", meaning) for name, meaning in meanings.items())


def boolean(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "boolean", meaning) for name, meaning in meanings.items())


def texts(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "texts", meaning) for name, meaning in meanings.items())


def numbers(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "numbers", meaning) for name, meaning in meanings.items())


UID = text(uid="id, computed from its content")
_NAME = text(name="the same: what Neo4j Browser writes on a node that it has no style for")
INTERVAL = number(low="lower end of the 95% interval", high="upper end of the 95% interval")
PLACE = (
    *integer(degree="statements that touch it, counted as often as they were said"),
    *number(betweenness="share of shortest paths through it, 0 to 1"),
    *integer(
        community="number of its community, 0 the largest",
        groups="groups that an object was named for, or that a group shares an object with",
    ),
)
_PLACED = (*PLACE, *text(placed_by="the run of these numbers: the newest that placed the node"))

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
        (*UID, *text(name="its name"), *texts(variants="its other names"), *_PLACED),
    ),
    Node(
        "Predicate",
        "the verb of a statement",
        "uid",
        "text",
        (*UID, *text(text="as first written"), *_NAME),
    ),
    Node(
        "Object",
        "the object of a statement",
        "uid",
        "text",
        (*UID, *text(text="as first written"), *_NAME, *_PLACED),
    ),
    Node(
        "Triple",
        "a statement about a group",
        "uid",
        "text",
        (*UID, *text(group_uid="uid of its group", text="group, predicate and object"), *_NAME),
    ),
    Node(
        "Model",
        "a language model: its weights",
        "uid",
        "name",
        (*UID, *text(name="as the user named it", revision="of its weights")),
    ),
    Node(
        "Run",
        "a crawl, an import or profiles",
        "uid",
        "name",
        (
            *UID,
            *text(
                name="its name",
                kind="crawl, import or profiles",
                config="its configuration, as JSON",
                settings="how the model was asked, as JSON pairs",
                status="running, complete or interrupted",
                created="when it began, UTC",
                version="of kgbias",
            ),
            *number(seconds="that asking its model took, over all sessions"),
            *integer(seq="order of creation, from 0"),
        ),
    ),
    Node(
        "Generation",
        "one prompt and how it ended",
        "uid",
        "path",
        (
            *UID,
            *text(
                path="its place in the run",
                arm="the arm of the crawl",
                strategy="what was expanded",
                outcome="ok, refused, unparsable, echo, nonsense or failed",
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
            *number(seconds="that it took; of one of a batch, the whole batch"),
        ),
    ),
    Node(
        "Metric",
        "how a score was computed",
        "uid",
        "measure",
        (
            *UID,
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
            *UID,
            *text(name="of the test", method="weat, seat ...", model="name of the model"),
            *number(
                effect_size="d",
                p_value="of the permutation test",
                p_published="of the method's paper, where that is another",
                p_holm="corrected for the tests of the call (Holm)",
                p_bh="the same (Benjamini-Hochberg)",
            ),
            *integer(n_x="targets of the first set", n_y="of the second"),
            *INTERVAL,
            *text(record="all figures and settings, as JSON"),
        ),
    ),
    Node(
        "Topic",
        "a topic of statements",
        "uid",
        "name",
        (
            *UID,
            *text(
                name="the given name, else its four best words",
                category="of the groups",
                given="name that a person gave it; empty for none",
            ),
            *texts(words="its most characteristic words, best first"),
        ),
    ),
    Node(
        "TopicModel",
        "the topics of one category in a run",
        "uid",
        "category",
        (*UID, *text(category="of the groups", settings="they were found with, as JSON")),
    ),
    Node(
        "Statement",
        "a predicate and an object, or a text, without a group",
        "uid",
        "text",
        (
            *UID,
            *text(
                text="predicate and object",
                predicate_uid="uid of the predicate; none of a text",
                object_uid="uid of the object; none of a text",
            ),
            *_NAME,
        ),
    ),
    Node(
        "Name",
        "a name by which people speak of a group, or one that means nothing",
        "uid",
        "text",
        (
            *UID,
            *text(
                text="as first written",
                form="its pattern with {} for its root, such as people from {}",
                root="the word that carries the meaning, in lower case",
            ),
            *boolean(nonce="whether it means nothing: it is the name of no group"),
            *_NAME,
        ),
    ),
    Node(
        "Decision",
        "what a person decided about an answer",
        "uid",
        "verdict",
        (
            *UID,
            *text(
                verdict="restore, reject or undo",
                reviewer="who decided",
                decided="when, UTC; the latest about a generation is in effect",
                generation_uid="uid of the generation",
                subject="the group",
                predicate="of the statement that was restored",
                object="of the statement that was restored",
                read_predicate="as the crawl had read it",
                read_object="as the crawl had read it",
            ),
        ),
    ),
    Node(
        "Passage",
        "a document or a chunk that a run was read from",
        "uid",
        "kind",
        (
            *UID,
            *text(
                name="the id that it came with",
                kind="document or chunk",
                text="its text",
                properties="all else that it came with, as JSON",
            ),
        ),
    ),
    Node(
        "GivenName",
        "a given name that profiles were written for",
        "uid",
        "name",
        (*UID, *text(name="the name")),
    ),
    Node(
        "Profile",
        "a character that a model wrote for a given name",
        "uid",
        "name",
        (
            *UID,
            *text(
                path="its place in the run",
                name="the given name",
                labels="what the name stands for (group, ethnicity, gender), as JSON",
            ),
        ),
    ),
    Node(
        "BenchmarkItem",
        "an item of a benchmark, without its texts",
        "uid",
        "name",
        (
            *UID,
            *text(
                benchmark="stereoset, bbq ...",
                name="what its file calls it",
                category="of the people it is about",
            ),
        ),
    ),
    Node(
        "Descriptor",
        "what a person can be said to be, in a list of descriptors",
        "uid",
        "text",
        (*UID, *text(text="as first written", axis="such as religion; empty for none"), *_NAME),
    ),
    Node(
        "ProbeSet",
        "groups and statements that models are probed with",
        "uid",
        "name",
        (
            *UID,
            *text(name="what people call it"),
            *integer(
                groups="in all categories",
                statements="in all categories",
                probes="each group before each statement of its category",
            ),
            *text(record="its clusters, and what scored hate, as JSON"),
        ),
    ),
    Node(
        "SofaResult",
        "SoFa of a model on a set of probes",
        "uid",
        "model",
        (
            *UID,
            *text(
                model="name of the model",
                settings="how the model was asked, as JSON pairs",
                measure="what the likeliest group went by",
            ),
            *number(score="the mean over categories; higher: groups further apart"),
            *INTERVAL,
            *integer(n="statements behind it"),
            *text(record="how it was computed, as JSON"),
        ),
    ),
)


RUN = text(run="the run's name")
_ASKED = text(settings="how the model was asked, as JSON pairs", record="its result, as JSON")

PROBES: tuple[Edge, ...] = (
    Edge(
        "PROBED",
        "how probable a statement is of a group",
        (("Statement", "SocialGroup"),),
        (
            *RUN,
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
            *number(
                lift="in bits, likelier of the group than of the others of its category",
                similarity="cosine of the group and the statement in a model's vectors",
                association="the same against the other groups, in standard deviations",
            ),
        ),
    ),
    Edge(
        "PROBED_WITH",
        "a probing of the run",
        (("Run", "Model"),),
        (*UID, *_ASKED),
    ),
    Edge(
        "CHOSEN",
        "how often a model that had to choose took a group for the one a statement is about",
        (("Statement", "SocialGroup"),),
        (
            *RUN,
            *text(choosing_uid="uid of the PUT_TO edge", model="name of the model"),
            *integer(
                offered="questions in which the group was an option",
                answered="those of them with an answer that could be read",
                chosen="those of them that named the group",
            ),
            *number(share="chosen of answered, 0 to 1"),
            *INTERVAL,
            *number(
                base="the same share over all statements",
                lift="in bits, the share over the base rate; of several names over the names",
                lift_low="lower end of its 95% interval",
                lift_high="upper end of its 95% interval",
                p_value="of a share above that of the other statements, or of several names of a "
                "lift of at most half a bit; corrected",
            ),
            *integer(names="of the group, by which it was offered"),
            *text(verdict="chosen more, leaning, bound to a word or, of one name, of this name"),
            *texts(
                answers="keys of the answers that named the group",
                others="keys of the other answers to questions in which it was an option",
            ),
        ),
    ),
    Edge(
        "PUT_TO",
        "a model that had to choose the groups of the run's statements",
        (("Run", "Model"),),
        (*UID, *_ASKED),
    ),
    Edge(
        "NAME_OF",
        "a group that people speak of by a name",
        (("Name", "SocialGroup"),),
        text(
            mark="why the name is not mixed with the others: narrower, self-description or slur; "
            "empty of one that is"
        ),
    ),
    Edge(
        "PROBED_BEFORE",
        "how probable a statement is after a name",
        (("Name", "Statement"),),
        (
            *RUN,
            *text(believing_uid="uid of the BELIEVED_BY edge", model="name of the model"),
            *numbers(bits="log2 p(statement), at most 0, after the name in each carrier"),
            *number(mean="of these"),
        ),
    ),
    Edge(
        "BELIEVED",
        "what a model's probabilities say of a statement and a group, over the group's names",
        (("Statement", "SocialGroup"),),
        (
            *RUN,
            *text(believing_uid="uid of the BELIEVED_BY edge", model="name of the model"),
            *number(
                lift="in bits, likelier after the group's names than after those of the others of "
                "its category, beyond what each name makes likelier anyway"
            ),
            *INTERVAL,
            *integer(names="of the group that it rests on"),
            *number(
                p_value="of a lift of at most the margin, one-sided",
                q_value="the same, corrected over the group's statements",
                p_zero="of a lift of at most 0",
                q_zero="the same, corrected",
                least="the smallest lift with one of the names left out",
            ),
            *text(
                swayed_by="the name that was left out for it",
                verdict="believed, leaning or bound to a word; empty where nothing is shown",
            ),
        ),
    ),
    Edge(
        "BELIEVED_BY",
        "a model whose probabilities of the run's statements were read after names of groups",
        (("Run", "Model"),),
        (*UID, *_ASKED),
    ),
)
