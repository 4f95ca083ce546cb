"""The domain types: the input of a crawl, what is written to the graph, and what models were
probed for and believe.

Ids are computed from content (`kgbias.ids`), so that two runs share the same group, predicate,
object and triple nodes, and writing something twice changes nothing. What differs between runs is
kept on generations, scores and edges.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from kgbias.ids import content_id, normalise
from kgbias.io.text import CONTENT_WARNING as CONTENT_WARNING
from kgbias.io.text import SAMPLE_STATEMENT as SAMPLE_STATEMENT
from kgbias.io.text import storable as storable
from kgbias.models.base import ModelInfo, Settings
from kgbias.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a benchmark: what one comparison of a model's probabilities is about.

    `id` is computed from the texts that are scored and how; the texts themselves are not kept: they
    are in the user's copy, where `name` finds them.
    """

    id: str
    benchmark: str
    name: str
    category: str


@dataclass(frozen=True, slots=True)
class ItemScore:
    """READ_BY: an item under one model. What `scores` are is up to the benchmark
    (`kgbias.probe.benchmarks`); `tokens` were read for them, in `seconds`."""

    item: Item
    scores: tuple[float, ...]
    tokens: int = 0
    seconds: float = 0.0


def item_score(row: Any) -> ItemScore:
    """An item's score from a row of either store."""
    scores = json.loads(row["scores"]) if isinstance(row["scores"], str) else row["scores"]
    return ItemScore(
        Item(row["id"], row["benchmark"], row["name"], row["category"]),
        tuple(scores),
        row["tokens"],
        row["seconds"],
    )


@dataclass(frozen=True, slots=True)
class Flag:
    """FLAGGED: a group that a descriptor is tied to. Its bias score, 0 to 1, lies `z` standard
    deviations from the descriptor's mean over groups; more negative is more strongly tied. `axis`
    is the descriptor's, "" for none."""

    group: str
    descriptor: str
    axis: str
    bias_score: float
    z: float


@dataclass(frozen=True, slots=True)
class Flagged:
    """The flags of one table of APX. The id follows from the model, how it was asked, the names and
    the descriptors. `model` is the model's name, or the file of a table from elsewhere, which has
    no revision; `level` is that of the test, `groups` how many were compared."""

    id: str
    model: str
    revision: str
    settings: Settings
    level: float
    groups: int
    flags: tuple[Flag, ...]


def statement_id(predicate_id: str, object_id: str) -> str:
    return content_id("statement", predicate_id, object_id)


@dataclass(frozen=True, slots=True)
class StatementEdge:
    """An edge between a statement (a predicate and object) and a group."""

    predicate_id: str
    object_id: str
    group_id: str

    @property
    def statement_id(self) -> str:
        return statement_id(self.predicate_id, self.object_id)

    @property
    def properties(self) -> dict[str, Any]:
        """What the edge itself holds, by name."""
        return {name: getattr(self, name) for name in properties_of(type(self))}


def properties_of(kind: type[StatementEdge]) -> tuple[str, ...]:
    """The names of what edges of a kind hold themselves."""
    return tuple(kind.__dataclass_fields__)[len(StatementEdge.__dataclass_fields__) :]


@dataclass(frozen=True, slots=True)
class ProbedEdge(StatementEdge):
    """PROBED: a statement (a predicate and object) with a group before it, under one model.

    Log-likelihoods are natural: of the probe "group statement", of the statement's tokens in it,
    and of the group alone, each with its number of tokens. `rank` is the group's among those of its
    category; 1 is the group that the model finds most probable before the statement. `pieces` are
    the scored tokens of the probe as text, `bits` their surprisals, -log2 p(token | ...), >= 0.

    `lift` is in bits how much likelier the statement is of this group than of the others of its
    category, beyond the group's base rate (`kgbias.probe.graph`). `similarity` is the cosine, -1
    to 1, of the group and the statement in a model's vectors, and `association` the same against
    the other groups, in standard deviations (`kgbias.evidence.association`). Each is None where it
    was not computed.
    """

    log_likelihood: float
    tokens: int
    statement_log_likelihood: float
    statement_tokens: int
    group_log_likelihood: float
    group_tokens: int
    rank: int
    pieces: tuple[str, ...] = ()
    bits: tuple[float, ...] = ()
    lift: float | None = None
    similarity: float | None = None
    association: float | None = None


@dataclass(frozen=True, slots=True)
class Probing:
    """A run's probes under one model with one set of scoring conventions (`settings`: dtype, what
    precedes a text ...); `record` holds the result. The id follows from model and settings."""

    model: ModelInfo
    settings: Settings = ()
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.model.asked(self.settings)


MORE, OF_NAME = "chosen more", "of this name"


@dataclass(frozen=True, slots=True)
class ChosenEdge(StatementEdge):
    """CHOSEN: how often a model took a group for the one that a statement is about.

    Of `offered` questions in which the group was an option, `answered` had an answer that could be
    read, and `chosen` of these named the group: `share` is chosen / answered, `low` and `high` its
    95% interval, and `base` the same share over all statements of the choosing.

    Where the group was offered by `names` of its own, the `lift` is over those names, in bits and
    held against the other groups', and `p_value` that of a lift of at most half a bit, corrected
    over the group's statements; `verdict` is "chosen more", "leaning", "bound to a word" or "".
    Where it was offered by one name, the lift is the share over the base rate and `p_value` that of
    a share above that of the other statements, corrected over all; `verdict` is "of this name" or
    "" (`kgbias.probe.choice.result`).

    Each figure is None where it is not defined. `answers` are the keys of the answers that named
    the group, `others` of those that did not.
    """

    offered: int
    answered: int
    chosen: int
    share: float | None = None
    low: float | None = None
    high: float | None = None
    base: float | None = None
    lift: float | None = None
    lift_low: float | None = None
    lift_high: float | None = None
    p_value: float | None = None
    names: int = 1
    verdict: str = ""
    answers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def more(self) -> bool:
        """Whether the group, or the one name of it, was shown to be chosen for this statement more
        often than for others."""
        return self.verdict in (MORE, OF_NAME)


CHOSEN_PROPERTIES = properties_of(ChosenEdge)


@dataclass(frozen=True, slots=True)
class Choosing(Probing):
    """A run's forced choices by one model. `settings` are also those of the questions: how many
    options and answers, by which template, at which temperature, drawn by which seed."""


def name_id(text: str) -> str:
    return content_id("name", normalise(storable(text)))


@dataclass(frozen=True, slots=True)
class GroupName:
    """A name by which people speak of a group: a plural noun phrase, such as "Asian Americans".

    Attributes:
        text: the name.
        group_id: of the group; "" of a nonce name, which means nothing and belongs to no group.
        form: the pattern of the name with {} for its root, such as "{}s", "{} Americans" or
            "people from {}".
        root: the word that carries the meaning, in lower case ("asian", of "people from Asia" too).
        mark: why the name is not one of those that are mixed by default: "narrower" (than the
            group), "self-description" or "slur"; "" of one that is.
    """

    text: str
    group_id: str
    form: str
    root: str
    mark: str = ""

    @property
    def id(self) -> str:
        return name_id(self.text)

    @property
    def nonce(self) -> bool:
        """Whether it is a name that means nothing."""
        return not self.group_id


@dataclass(frozen=True, slots=True)
class NameProbe:
    """PROBED, from a name: `bits` is log2 p(statement | carrier, name), one for each carrier of the
    believing, in their order; at most 0."""

    predicate_id: str
    object_id: str
    name_id: str
    bits: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the carriers."""
        return math.fsum(self.bits) / len(self.bits)

    @property
    def statement_id(self) -> str:
        return statement_id(self.predicate_id, self.object_id)


@dataclass(frozen=True, slots=True)
class BelievedEdge(StatementEdge):
    """BELIEVED: what a model's probabilities say of a statement and a group, over its names.

    Attributes:
        lift: in bits, how much likelier the statement is after the group's names than after those
            of the other groups of its category, beyond what each name makes likelier anyway; `low`
            and `high` are the ends of its 95% interval over names.
        names: how many names of the group it rests on.
        p_value: one-sided, of a lift of at most the margin; `q_value` the same corrected over the
            group's statements (Benjamini and Hochberg 1995); `p_zero` and `q_zero` of a lift of at
            most 0.
        least: the smallest lift with one of the names left out, and `swayed_by` the name that was.
        verdict: "believed", "leaning", "bound to a word", or "" where nothing is shown.
    """

    lift: float
    low: float
    high: float
    names: int
    p_value: float
    q_value: float
    p_zero: float
    q_zero: float
    least: float
    swayed_by: str = ""
    verdict: str = ""


BELIEVED_PROPERTIES = properties_of(BelievedEdge)


@dataclass(frozen=True, slots=True)
class Believing(Probing):
    """A run's probes by names under one model. `settings` are also those of the asking: carriers,
    how many statements a category, the seed of nonce names; `record` holds what was found: the
    floor, the figures of groups, how many statements were said and not probed."""


Outcome = Literal["ok", "refused", "unparsable", "echo", "nonsense", "failed"]
Status = Literal["running", "complete", "interrupted"]


@lru_cache(maxsize=65536)
def node_id(kind: str, text: str) -> str:
    """The id of a group, predicate, object, category or topic with this text. It is computed from
    the text as stores keep it, so that a text read back has the same id."""
    return content_id(kind, normalise(storable(text)))


def triple_id(group_id: str, predicate_id: str, object_id: str) -> str:
    """The id of the triple of these nodes."""
    return content_id("triple", group_id, predicate_id, object_id)


@dataclass(frozen=True, slots=True)
class Category:
    """A class of groups, for example gender identity."""

    name: str
    singular: str = ""
    plural: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of people, as a seed names it. `variants` are other names of the same group."""

    name: str
    category: str
    variants: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return node_id("group", self.name)


@dataclass(frozen=True, slots=True)
class Triple:
    """A statement about a group, in the words in which it was said."""

    group: str
    predicate: str
    object: str

    @property
    def group_id(self) -> str:
        return node_id("group", self.group)

    @property
    def predicate_id(self) -> str:
        return node_id("predicate", self.predicate)

    @property
    def object_id(self) -> str:
        return node_id("object", self.object)

    @property
    def id(self) -> str:
        return triple_id(self.group_id, self.predicate_id, self.object_id)


@dataclass(frozen=True, slots=True)
class Answer:
    """A row of the answer log: what a model said to one request, raw, before any parsing."""

    key: str
    model_id: str
    text: str
    finish: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    details: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """One prompt of a run, how it ended, and the triple it yielded if it did.

    `path` places it in its run (arm, strategy, iteration, group, number, attempt) and names its
    random stream. `shown` are the ids of the in-context triples, in the order of the prompt.
    `count` is 1 for a crawl; an import may say that a triple was seen more often.
    """

    run_id: str
    path: str
    group_id: str
    arm: str
    strategy: str
    iteration: int
    attempt: int
    outcome: Outcome
    reason: str = ""
    template: str = ""
    template_hash: str = ""
    prompt: str = ""
    answer_key: str = ""
    triple: Triple | None = None
    shown: tuple[str, ...] = ()
    count: int = 1

    @property
    def id(self) -> str:
        return content_id("generation", self.run_id, storable(self.path))


@dataclass(frozen=True, slots=True)
class Run:
    """A crawl or an import: its frozen configuration and the model that it asked.

    `settings` says how the model was asked. The id follows from the configuration, the model and
    its settings: the same command is the same run.
    """

    name: str
    model: ModelInfo
    config: Mapping[str, Any]
    groups: tuple[Group, ...]
    categories: tuple[Category, ...] = ()
    kind: str = "crawl"
    status: Status = "running"
    created: str = ""
    version: str = ""
    settings: Settings = ()

    @property
    def id(self) -> str:
        return content_id(
            "run", self.kind, self.model.asked(self.settings), canonical_json(self.config)
        )


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line, with its counts: `statements` are what its generations yielded, each as
    often as it was said, and `triples` the distinct ones; `invalid` are unparsable answers,
    `echoes` those that repeated an example, `nonsense` those that made less sense than the crawl
    asked for; `resampled` are the generations beyond the first
    attempt at their place; `seconds` is how long its model was asked, over all calls, None where
    that is not known (an import)."""

    run: Run
    triples: int = 0
    statements: int = 0
    generations: int = 0
    refused: int = 0
    invalid: int = 0
    echoes: int = 0
    nonsense: int = 0
    failed: int = 0
    resampled: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """How a score was computed: the measure, the scorer and its version, and the verbaliser that
    turned the triple into text."""

    measure: str
    scorer: str
    version: str
    verbaliser: str = "sentence@1"

    @property
    def id(self) -> str:
        return content_id("metric", self.measure, self.scorer, self.version, self.verbaliser)


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value for one triple. For regard, `value` is p(positive) - p(negative) and `label`
    the most probable class; for toxicity, `value` is a probability."""

    triple_id: str
    value: float
    label: str = ""
    details: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TripleView:
    """A triple as one run sees it: how often it was said, and the scores of the run's metrics.
    `arm` is the arm whose count this is; "" where the arms are counted together."""

    id: str
    group_id: str
    group: str
    predicate: str
    object: str
    count: int
    scores: Mapping[str, Score] = field(default_factory=dict)
    arm: str = ""

    @property
    def sentence(self) -> str:
        return verbalise(self.group, self.predicate, self.object)


@dataclass(frozen=True, slots=True)
class GroupScore(Estimate):
    """A figure of one group in one run: an estimate whose `n` is the number of statements behind
    it. `measure` is the name of the figure, such as "overall_regard" (`kgbias.measures.figures`);
    `method` says how its interval was computed; `arm` is the arm that it is of, "" in a run of one
    arm."""

    group_id: str
    measure: str
    method: str = ""
    arm: str = ""

    @classmethod
    def of(
        cls, group_id: str, measure: str, e: Estimate, method: str = "", arm: str = ""
    ) -> "GroupScore":
        """The estimate as a figure of a group."""
        return cls(e.value, e.low, e.high, e.n, group_id, measure, method, arm)


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where a group or object stands in the shape of a run's graph; `kgbias.graph.structure` says
    what the numbers are."""

    kind: str
    node_id: str
    label: str
    degree: int
    betweenness: float
    community: int
    groups: int


def topic_model_id(run_id: str, category: str) -> str:
    """The id of the topics of a category in a run."""
    return content_id("topic model", run_id, category)


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """A link from an object or predicate to one with nearly the same meaning that was said more
    often in the run. `similarity` is the cosine of their embeddings, `method` names the model."""

    kind: str
    node_id: str
    head_id: str
    text: str
    head_text: str
    similarity: float
    method: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a category: its rank by size, from 0, its most characteristic words, how many
    distinct triples it has, its coherence and stability (None: not measured), its given name."""

    category: str
    number: int
    words: tuple[str, ...]
    size: int
    coherence: float | None = None
    stability: float | None = None
    given: str = ""

    @property
    def id(self) -> str:
        return node_id("topic", f"{self.category}: {' '.join(self.words)}")

    @property
    def name(self) -> str:
        return self.given or " ".join(self.words[:4])


@dataclass(frozen=True, slots=True)
class About:
    """An ABOUT edge, from a triple to a topic or to none (an outlier), with the strength of its
    membership, in [0, 1]; 0 in no cluster, when it may be `assigned` to the nearest topic."""

    triple_id: str
    topic_id: str | None
    probability: float
    assigned: bool = False


@dataclass(frozen=True, slots=True)
class TopicModel:
    """The topics of one category in one run, the edges to them, and the settings used."""

    category: str
    topics: tuple[Topic, ...]
    about: tuple[About, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Attribution:
    """What each word of a triple's sentence does to a metric's score, by a method with its version.
    Above 0: the word raises the score. Effects are in units of the score, or, by gradient and cam,
    in log-odds (`kgbias.measure.gradients`)."""

    triple_id: str
    metric: Metric
    tokens: tuple[str, ...]
    effects: tuple[float, ...]
    score: float
    method: str = "occlusion@1"


@dataclass(frozen=True, slots=True)
class AssociationEdge:
    """What a set of an association test is about: TARGET (X, Y) or ATTRIBUTE (A, B) to a node that
    is in the graph. `side` is x, y, a or b; `kind` is group, object or topic."""

    side: str
    kind: str
    node_id: str

    @property
    def name(self) -> str:
        return "TARGET" if self.side in ("x", "y") else "ATTRIBUTE"


@dataclass(frozen=True, slots=True)
class AssociationNode:
    """An association test with its outcome on one model. The id follows from the words, the method,
    the model and the settings; `record` is everything that the outcome rests on.

    `p_value` is that of the permutation test; `p_holm` and `p_bh` are corrected for the tests of
    the same call; `p_published` is the p of the method's paper where that is another one (CEAT).
    `n_x` and `n_y` count the targets that the model knew. What was not computed is NaN.
    """

    id: str
    test: str
    method: str
    model: ModelInfo
    effect_size: float
    p_value: float
    low: float
    high: float
    record: Mapping[str, Any]
    edges: tuple[AssociationEdge, ...] = ()
    p_published: float = math.nan
    p_holm: float = math.nan
    p_bh: float = math.nan
    n_x: int = 0
    n_y: int = 0


def verbalise(group: str, predicate: str, object: str) -> str:
    """The triple as the sentence that scorers read (verbaliser `sentence@1`): the three parts
    joined by spaces, the first letter capital, and a full stop."""
    text = " ".join(part for part in (group, predicate, object) if part)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_settings(text: str) -> Settings:
    """How a model was asked, from the JSON that stores keep."""
    return tuple((name, value) for name, value in json.loads(text))


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that were left with a provider together, until their answers are in the log.

    Attributes:
        name: what we call it, also at a provider that keeps names.
        asked: the id of the model as it is asked (`ModelInfo.asked`).
        keys: the requests' places in the answer log.
        learned: what the model's server had refused until then (`ServerModel.learned`).
        created: when it was noted, in UTC.
        id: the provider's id, "" until it is known.
    """

    name: str
    asked: str
    keys: tuple[str, ...]
    learned: str
    created: datetime
    id: str = ""
