"""The domain types: the input of a crawl, what is written to the graph, and what models were
probed for and believe.

Ids are computed from content (`kgbias.ids`): runs share group, predicate, object and triple nodes,
and writing something twice changes nothing. What differs between runs is kept on generations,
scores and edges. A node shows the first surface form that was written; each generation keeps the
form that it said.

Provenance is data: a generation knows its prompt, template and hash, raw answer, in-context
triples, attempt and outcome. Refusals, unparsable answers and resamples are rows, and are counted.
A request that got no answer at all is recorded, but not kept in the log.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, Literal

from kgbias.graph.edge_records import RUN, AskingRecord, EdgeRecord, declare_asking, declare_edge
from kgbias.graph.node_records import NodeRecord, declare_node
from kgbias.graph.record import HIGH_MEANING, LOW_MEANING, OrNaN, StoredAs
from kgbias.graph.record import canonical_json as canonical_json
from kgbias.ids import content_id, normalise
from kgbias.io.columns import Column, columns_of
from kgbias.io.rows import Result, Rows
from kgbias.io.text import CONTENT_WARNING as CONTENT_WARNING
from kgbias.io.text import SAMPLE_CAVEAT as SAMPLE_CAVEAT
from kgbias.io.text import storable as storable
from kgbias.io.wording import how
from kgbias.language.words import find_full_stop, join_words
from kgbias.models.base import ModelInfo, Settings
from kgbias.stats.estimate import Estimate


@declare_node(
    NodeRecord(
        "BenchmarkItem", "an item of a benchmark, without its texts", "name", table="benchmark_item"
    )
)
@dataclass(frozen=True, slots=True)
class BenchmarkItem:
    """An item of a benchmark: what one comparison of a model's probabilities is about.

    `id` is computed from the scored texts and how they are scored. The texts themselves are not
    kept: they are in the user's copy, under `name`.
    """

    id: str
    benchmark: Annotated[str, "stereoset, bbq ..."]
    name: Annotated[str, "its name in the benchmark's file"]
    category: Annotated[str, "of the people it is about"]


@dataclass(frozen=True, slots=True)
class ItemScore:
    """READ_BY: an item under one model (`kgbias.methods.benchmarks`)."""

    item: BenchmarkItem
    scores: Annotated[tuple[float, ...], "of its candidates, which the benchmark defines"]
    tokens: Annotated[int, "how many were read for it"] = 0
    seconds: Annotated[float, "how long it took"] = 0.0


@dataclass(frozen=True, slots=True)
class Flag:
    """FLAGGED: a group that a descriptor is tied to. `axis` is the descriptor's; "" if it has
    none."""

    group: str
    descriptor: str
    axis: str
    bias_score: Annotated[float, "0 to 1; lower is more strongly tied"]
    z: Annotated[float, "standard deviations from the mean over groups, negative"]


@dataclass(frozen=True, slots=True)
class FlagTable:
    """The flags of one APX table. The id is computed from the model, how it was asked, the names
    and the descriptors."""

    id: Annotated[str, "id of the APX table", StoredAs("apx_uid")]
    model: Annotated[str, "name of the model, or the file that the table came from"]
    revision: Annotated[str, "of its weights; empty for a file"]
    settings: Annotated[Settings, "how the model was asked, as JSON pairs"]
    level: Annotated[float, "of the one-tailed test"]
    groups: Annotated[int, "how many groups were compared"]
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


@declare_asking(AskingRecord("PROBED_WITH", "a probing of the run", "probing", unfinished="{}"))
@dataclass(frozen=True, slots=True)
class ProbeRun:
    """A run's probes under one model with one set of scoring conventions (`settings`: dtype, what
    precedes a text ...); `record` holds the result. The id is computed from model and settings."""

    model: ModelInfo
    settings: Annotated[Settings, "how the model was asked, as JSON pairs"] = ()
    record: Annotated[Mapping[str, Any], "its result, as JSON"] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.model.configured_id(self.settings)


@declare_asking(
    AskingRecord(
        "PUT_TO",
        "a model that had to choose the groups of the run's statements",
        "choosing",
        unfinished="{}",
    )
)
@dataclass(frozen=True, slots=True)
class ChoiceRun(ProbeRun):
    """A run's forced choices by one model. `settings` include those of the questions: the number of
    options and answers, the template, the temperature and the seed."""


@declare_asking(
    AskingRecord(
        "BELIEVED_BY",
        "a model whose probabilities of the run's statements were read after names of groups",
        "believing",
        unfinished=None,
    )
)
@dataclass(frozen=True, slots=True)
class BeliefRun(ProbeRun):
    """A run's probes by names under one model. `settings` include how it was asked: the carriers,
    the number of statements per category and the seed of the nonce names. `record` holds what was
    found: the floor, the figures of groups, and how many statements were said but not probed."""


@declare_edge(
    EdgeRecord(
        "PROBED",
        "how probable a statement is of a group",
        "Statement",
        "SocialGroup",
        ("statement_id", "group_id"),
        asked=ProbeRun,
        own_table="probed",
    )
)
@dataclass(frozen=True, slots=True)
class ProbedEdge(StatementEdge):
    """PROBED: a statement (a predicate and object) after a group, under one model.

    The log-likelihoods are those of the probe "group statement", of the statement's tokens in it,
    and of the group alone. `lift` (`kgbias.probe.run_probes`), `similarity` (-1 to 1) and
    `association` (`kgbias.evidence.association`) are None if they were not computed.
    """

    log_likelihood: Annotated[float, "of group and statement, natural logarithm"]
    tokens: Annotated[int, "of group and statement"]
    statement_log_likelihood: Annotated[float, "of the statement's tokens after the group"]
    statement_tokens: Annotated[int, "of the statement"]
    group_log_likelihood: Annotated[float, "of the group alone"]
    group_tokens: Annotated[int, "of the group"]
    rank: Annotated[int, "of the group among those of its category; 1 is the most probable"]
    pieces: Annotated[tuple[str, ...], "the scored tokens as text"] = ()
    bits: Annotated[tuple[float, ...], "surprisal of each token, -log2 p"] = ()
    lift: Annotated[
        float | None, "in bits, how much likelier of the group than of the others in its category"
    ] = None
    similarity: Annotated[
        float | None, "cosine of the group and the statement in a model's vectors"
    ] = None
    association: Annotated[
        float | None, "the same compared with the other groups, in standard deviations"
    ] = None


CHOSEN_MORE, CHOSEN_OF_NAME = "chosen more", "of this name"


@declare_edge(
    EdgeRecord(
        "CHOSEN",
        "how often a model that had to choose took a group for the one a statement is about",
        "Statement",
        "SocialGroup",
        ("statement_id", "group_id"),
        asked=ChoiceRun,
        whole=True,
        own_table="chosen",
    )
)
@dataclass(frozen=True, slots=True)
class ChosenEdge(StatementEdge):
    """CHOSEN: how often a model took a group for the one that a statement is about.

    If the group was offered under `names` of its own, `lift` is over those names, compared with the
    other groups', and `verdict` is "chosen more", "leaning", "bound to a word" or "". If it was
    offered under one name, the lift is the share over the base rate, and `verdict` is "of this
    name" or "" (`kgbias.methods.choice.result`). A figure that is not defined is None.
    """

    offered: Annotated[int, "questions in which the group was an option"]
    answered: Annotated[int, "how many of those got a readable answer"]
    chosen: Annotated[int, "how many of those answers named the group"]
    share: Annotated[float | None, "chosen divided by answered, 0 to 1"] = None
    low: Annotated[float | None, LOW_MEANING] = None
    high: Annotated[float | None, HIGH_MEANING] = None
    base: Annotated[float | None, "the same share over all statements"] = None
    lift: Annotated[
        float | None, "in bits, the share over the base rate; with several names, over the names"
    ] = None
    lift_low: Annotated[float | None, "lower end of its 95% interval"] = None
    lift_high: Annotated[float | None, "upper end of its 95% interval"] = None
    q_value: Annotated[
        float | None,
        "of a share above that of the other statements or, with several names, of a lift of at "
        "most half a bit; corrected",
    ] = None
    names: Annotated[int, "how many names the group was offered under"] = 1
    verdict: Annotated[
        str, "chosen more, leaning, bound to a word or, with one name, of this name"
    ] = ""
    answers: Annotated[tuple[str, ...], "keys of the answers that named the group"] = ()
    others: Annotated[
        tuple[str, ...], "keys of the other answers to questions in which the group was an option"
    ] = ()

    @property
    def is_chosen_more(self) -> bool:
        """Whether the group, or its one name, was shown to be chosen for this statement more often
        than for others."""
        return self.verdict in (CHOSEN_MORE, CHOSEN_OF_NAME)


def name_id(text: str) -> str:
    return content_id("name", normalise(storable(text)))


@dataclass(frozen=True, slots=True)
class GroupName:
    """A name that people use for a group: a plural noun phrase, such as "Asian Americans".
    `group_id` is "" for a nonce name, which means nothing and belongs to no group."""

    text: Annotated[str, "as first written"]
    group_id: str
    form: Annotated[str, "its pattern with {} for its root, such as people from {}"]
    root: Annotated[str, "the word that carries the meaning, in lower case"]
    mark: Annotated[
        str,
        "why the name is not mixed with the others: narrower, self-description or slur; empty if "
        "it is",
    ] = ""

    @property
    def id(self) -> str:
        return name_id(self.text)

    @property
    def nonce(self) -> Annotated[bool, "whether it means nothing and names no group"]:
        return not self.group_id


@declare_edge(
    EdgeRecord(
        "PROBED_BEFORE",
        "how probable a statement is after a name",
        "Name",
        "Statement",
        ("name_id", "statement_id"),
        asked=BeliefRun,
        order=("statement_id", "name_id"),
        own_table="name_probe",
    )
)
@dataclass(frozen=True, slots=True)
class NameProbe:
    """PROBED_BEFORE: a statement after a name, one number for each carrier of the believing, in
    order."""

    predicate_id: str
    object_id: str
    name_id: str
    bits: Annotated[
        tuple[float, ...], "log2 p(statement), at most 0, after the name in each carrier"
    ]

    @property
    def mean(self) -> Annotated[OrNaN, "mean of the bits"]:
        # `fsum` rounds once: the mean does not depend on the order of the carriers.
        return math.fsum(self.bits) / len(self.bits)

    @property
    def statement_id(self) -> str:
        return statement_id(self.predicate_id, self.object_id)


@declare_edge(
    EdgeRecord(
        "BELIEVED",
        "what a model's probabilities say of a statement and a group, over the group's names",
        "Statement",
        "SocialGroup",
        ("statement_id", "group_id"),
        asked=BeliefRun,
        whole=True,
        own_table="believed",
    )
)
@dataclass(frozen=True, slots=True)
class BelievedEdge(StatementEdge):
    """BELIEVED: what a model's probabilities say of a statement and a group, over the group's
    names. P-values are corrected as by Benjamini and Hochberg (1995)."""

    lift: Annotated[
        OrNaN,
        "in bits, how much likelier after the group's names than after those of the others in its "
        "category, beyond what each name makes likelier anyway",
    ]
    low: Annotated[OrNaN, LOW_MEANING]
    high: Annotated[OrNaN, HIGH_MEANING]
    names: Annotated[int, "how many of the group's names it rests on"]
    p_value: Annotated[OrNaN, "of a lift of at most the margin, one-sided"]
    q_value: Annotated[OrNaN, "the same, corrected over the group's statements"]
    p_zero: Annotated[OrNaN, "of a lift of at most 0"]
    q_zero: Annotated[OrNaN, "the same, corrected"]
    min_loo_lift: Annotated[OrNaN, "the smallest lift with one of the names left out"]
    most_influential_name: Annotated[str, "the name left out to get it"] = ""
    verdict: Annotated[str, "believed, leaning or bound to a word; empty if nothing is shown"] = ""


Outcome = Literal["ok", "refused", "unparsable", "echo", "nonsense", "failed"]
RunStatus = Literal["running", "complete", "stopped"]
RunState = Literal["running", "complete", "stopped", "abandoned"]


@lru_cache(maxsize=65536)
def node_id(kind: str, text: str) -> str:
    """The id of a group, predicate, object, category or topic with this text. It is computed from
    the text as stores keep it: a text read back has the same id."""
    return content_id(kind, normalise(storable(text)))


def triple_id(group_id: str, predicate_id: str, object_id: str) -> str:
    """The id of the triple of these nodes."""
    return content_id("triple", group_id, predicate_id, object_id)


@dataclass(frozen=True, slots=True)
class Category:
    """A class of groups, for example gender identity."""

    name: Annotated[str, "for example gender"]
    singular: Annotated[str, "for one group, in prompts"] = ""
    plural: Annotated[str, "for several, in prompts"] = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of people, as named in a seed.

    It has one node in all languages: `english` is what it is called in English, if `name` is in
    another language and that is known.
    """

    name: str
    category: str
    variants: tuple[str, ...] = ()
    english: str = ""

    @property
    def id(self) -> str:
        return node_id("group", self.node_name)

    @property
    def node_name(self) -> Annotated[str, "its name; in English, if known", StoredAs("name")]:
        return self.english or self.name

    @property
    def node_variants(self) -> Annotated[tuple[str, ...], "its other names", StoredAs("variants")]:
        return () if self.english else self.variants

    @property
    def own_names(self) -> tuple[str, ...]:
        """What a run calls it whose language is another than the node's, its name first; else
        none."""
        return (self.name, *sorted(self.variants)) if self.english else ()

    def goes_by(self, name: str) -> bool:
        """Whether it is called that, in any case."""
        own_ids = (node_id("group", each) for each in (self.name, *self.variants))
        return node_id("group", name) in (self.id, *own_ids)

    @classmethod
    def from_node(
        cls, name: str, category: str, variants: Iterable[str], own_names: Sequence[str]
    ) -> "Group":
        """The group of a node, as a run calls it that has these `own_names`."""
        if own_names:
            return cls(own_names[0], category, tuple(own_names[1:]), name)
        return cls(name, category, tuple(sorted(variants)))


@dataclass(frozen=True, slots=True)
class Triple:
    """A statement about a group, in the words it was said in; `english` is as that of `Group`."""

    group: str
    predicate: str
    object: str
    english: str = ""

    @property
    def subject(self) -> str:
        """The name of the group's node."""
        return self.english or self.group

    @property
    def group_id(self) -> str:
        return node_id("group", self.subject)

    @property
    def predicate_id(self) -> str:
        return node_id("predicate", self.predicate)

    @property
    def object_id(self) -> str:
        return node_id("object", self.object)

    @property
    def id(self) -> str:
        return triple_id(self.group_id, self.predicate_id, self.object_id)


@declare_node(
    NodeRecord(
        "Answer",
        "the raw answer of a model",
        "key",
        table="answer",
        key="key",
        last=("details", "prompt_tokens", "completion_tokens", "seconds"),
    )
)
@dataclass(frozen=True, slots=True)
class Answer:
    """A row of the answer log: what a model said to one request, raw, before any parsing."""

    key: Annotated[str, "computed from the request"]
    model_id: Annotated[str, "uid of the model"]
    text: Annotated[str, "the answer"]
    finish: Annotated[str, "why it ended"]
    prompt_tokens: Annotated[int, "tokens of the prompt"] = 0
    completion_tokens: Annotated[int, "tokens of the answer"] = 0
    seconds: Annotated[float, "how long it took; in a batch, how long the batch took"] = 0.0
    details: Annotated[str, "what else the server returned, as JSON"] = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """One prompt of a run, how it ended, and the triple it yielded, if any.

    `path` places it in its run (arm, strategy, iteration, group, number, attempt) and names its
    random stream. `shown` holds the ids of the in-context triples, in the order of the prompt.
    `count` is 1 in a crawl; an import may say that a triple was seen more often.
    """

    run_id: str
    path: Annotated[str, "its place in the run"]
    group_id: Annotated[str, "uid of the group that was asked about", StoredAs("group_uid")]
    arm: Annotated[str, "the arm of the crawl"]
    strategy: Annotated[str, "what was expanded"]
    iteration: Annotated[int, "the round, from 0"]
    attempt: Annotated[int, "0 for the first"]
    outcome: Annotated[Outcome, "ok, refused, unparsable, echo, nonsense or failed"]
    reason: Annotated[str, "why it was refused or failed"] = ""
    template: Annotated[str, "the template's name and version"] = ""
    template_hash: Annotated[str, "of the template's text"] = ""
    prompt: Annotated[str, "the prompt"] = ""
    answer_key: Annotated[str, "key of its answer"] = ""
    triple: Triple | None = None
    shown: tuple[str, ...] = ()
    count: Annotated[int, "how often it was said; 1 in a crawl"] = 1

    @property
    def reason_text(self) -> str:
        """The reason as a person reads it: of a failed request, what the server said, which is kept
        as JSON."""
        if not self.reason.startswith("{"):
            return self.reason
        try:
            return str(json.loads(self.reason).get("error") or self.reason)
        except ValueError:
            return self.reason

    @property
    def id(self) -> str:
        return content_id("generation", self.run_id, storable(self.path))


@dataclass(frozen=True, slots=True)
class Run:
    """A crawl or an import: its frozen configuration and the model that it asked.

    `settings` says how the model was asked. The id is computed from the configuration, the model
    and its settings: the same command is the same run.
    """

    name: Annotated[str, "its name"]
    model: ModelInfo
    config: Annotated[Mapping[str, Any], "its configuration, as JSON"]
    groups: tuple[Group, ...]
    categories: tuple[Category, ...] = ()
    kind: Annotated[str, "crawl, import, profiles, stories or pairs"] = "crawl"
    status: Annotated[RunStatus, "running, complete or stopped"] = "running"
    created: Annotated[str, "when it began, UTC"] = ""
    version: Annotated[str, "of kgbias"] = ""
    settings: Annotated[Settings, "how the model was asked, as JSON pairs"] = ()

    @property
    def id(self) -> str:
        return content_id(
            "run", self.kind, self.model.configured_id(self.settings), canonical_json(self.config)
        )

    @property
    def language(self) -> Annotated[str, "of its prompts; en if it does not say"]:
        return str((self.config.get("pack") or {}).get("language") or "en")


def what_makes(kind: str) -> str:
    """What makes a run of this kind, in words."""
    calls = {"crawl": "study.crawl", "import": "study.import_file"}
    return f"{how(calls.get(kind, f'kgbias.methods.{kind}'), f'kgbias {kind}')} makes one"


@dataclass(frozen=True, slots=True, repr=False)
class RunSummary(Result):
    """A run in one line, with its counts.

    `statements` are what its generations yielded, each counted as often as it was said; `triples`
    are the distinct ones. `invalid` answers could not be parsed, `echoes` repeated an example, and
    `nonsense` made less sense than the crawl asked for; what a model answered that read stories
    counts in none of these. `resampled` counts generations beyond the first attempt at their
    place. `seconds` is how long asking the model took, over all calls; None if that is not known
    (an import)."""

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

    def as_rows(self) -> "Rows[RunSummary]":
        """Itself. Columns: run (its name), model, and the counts."""
        _, *counts = columns_of(RunSummary)
        columns = (
            Column("run", get=attrgetter("run.name")),
            Column("model", get=attrgetter("run.model.title")),
            *counts,
        )
        return Rows([self], columns)

    def __str__(self) -> str:
        (cells,) = self.records()
        shown = (f"{name} {value}" for name, value in cells.items() if value and name != "run")
        return f"run {self.run.name}: {', '.join(shown)}"


@dataclass(frozen=True, slots=True)
class ChangeToken:
    """What tells cheaply that a store is being written: `token` differs after every write that adds
    something to runs (raters' labels do not), and `answers` is how many answers the log has
    taken."""

    token: str
    answers: int


@declare_node(
    NodeRecord(
        "Metric",
        "how a score was computed",
        "measure",
        table="metric",
        checked=("measure", "scorer", "version", "verbaliser"),
    )
)
@dataclass(frozen=True, slots=True)
class Metric:
    """How a score was computed: the measure, the scorer and its version, and the verbaliser that
    turned the triple into text."""

    measure: Annotated[str, "regard, toxicity ..."]
    scorer: Annotated[str, "its name"]
    version: Annotated[str, "of the scorer"]
    verbaliser: Annotated[str, "what turns a triple into the text that is scored"] = "sentence@1"

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
    """A triple in one run: how often it was said, and its scores by the run's metrics. `arm` is the
    arm that the count is for; "" if the arms are counted together."""

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

    @property
    def statement_id(self) -> str:
        """The id of what it says, whichever group it is about."""
        return statement_id(node_id("predicate", self.predicate), node_id("object", self.object))


@declare_edge(
    EdgeRecord(
        "FIGURE",
        "a figure of a group in a run",
        "Run",
        "SocialGroup",
        (RUN, "group_id"),
        keys=("measure", "arm"),
        order=("measure", "group_id", "arm"),
        first=("measure",),
        own_table="group_score",
    )
)
@dataclass(frozen=True, slots=True)
class GroupScore(Estimate):
    """FIGURE: a figure of one group in one run (`kgbias.measures.figures_by_name`)."""

    value: Annotated[OrNaN, "the figure"]
    low: Annotated[OrNaN, LOW_MEANING]
    high: Annotated[OrNaN, HIGH_MEANING]
    n: Annotated[int, "triples behind it"]
    group_id: str
    measure: Annotated[str, "for example overall_regard"]
    method: Annotated[str, "of the interval"] = ""
    arm: Annotated[str, "the arm it describes; empty in a run of one arm"] = ""

    @classmethod
    def from_estimate(
        cls, group_id: str, measure: str, estimate: Estimate, method: str = "", arm: str = ""
    ) -> "GroupScore":
        """The estimate as a figure of a group."""
        return cls(
            estimate.value, estimate.low, estimate.high, estimate.n, group_id, measure, method, arm
        )


@dataclass(frozen=True, slots=True)
class NodeCentrality:
    """The place of a group or object in the structure of a run's graph; `kgbias.graph.structure`
    defines the numbers."""

    kind: str
    node_id: str
    label: str
    degree: Annotated[int, "statements that touch it, counted as often as they were said"]
    betweenness: Annotated[float, "share of shortest paths through it, 0 to 1"]
    community: Annotated[int, "number of its community; 0 is the largest"]
    groups: Annotated[
        int, "how many groups an object was named for, or a group shares an object with"
    ]


def topic_model_id(run_id: str, category: str) -> str:
    """The id of the topic model of a category in a run."""
    return content_id("topic model", run_id, category)


MIN_SAME_COSINE = 0.95
"""The cosine of all-MiniLM-L6-v2 from which two statements are taken to say the same: of 54 pairs
in other words that reach it, 52 do by the label of a language model (`kgbias.measure.merge`;
tests/data/same.tsv)."""


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """NEAR: a link from a statement, a predicate and an object of whichever group, to one with
    nearly the same meaning (`head`) that was said more often in the run."""

    said: tuple[str, str]
    head: tuple[str, str]
    similarity: Annotated[float, "cosine of the embeddings"]
    method: Annotated[str, "of the embedding"] = ""

    @property
    def ends(self) -> list[StatementEdge]:
        """The two statements by their ids, this one first; of no group."""
        triples = (Triple("", *words) for words in (self.said, self.head))
        return [StatementEdge(t.predicate_id, t.object_id, "") for t in triples]

    @property
    def statement_id(self) -> str:
        return self.ends[0].statement_id

    @property
    def head_id(self) -> str:
        return self.ends[1].statement_id


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a category, FOUND by a topic model; what was not measured is None."""

    category: Annotated[str, "of the groups"]
    number: Annotated[int, "its rank by size, from 0"]
    words: Annotated[tuple[str, ...], "its most characteristic words, best first"]
    size: Annotated[int, "distinct triples about it"]
    coherence: Annotated[float | None, "mean NPMI of its words, -1 to 1"] = None
    stability: Annotated[float | None, "overlap with the nearest topics of other seeds, 0 to 1"] = (
        None
    )
    kept: Annotated[float | None, "share of its pairs kept without a fifth of all, 0 to 1"] = None
    given: Annotated[str, "name given by a person; empty for none"] = ""

    @property
    def id(self) -> str:
        return node_id("topic", f"{self.category}: {' '.join(self.words)}")

    @property
    def name(self) -> Annotated[str, "the given name, else its four best words"]:
        return self.given or " ".join(self.words[:4])


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """ABOUT: an edge from a triple to a topic, or to none (an outlier). A triple in no cluster has
    probability 0."""

    triple_id: str
    topic_id: str | None
    probability: Annotated[float, "strength of membership, 0 to 1"]
    assigned: Annotated[bool, "whether it went to the nearest topic because no cluster took it"] = (
        False
    )


@dataclass(frozen=True, slots=True)
class TopicModel:
    """The topics of one category in one run, the edges to them, and the settings used."""

    category: Annotated[str, "of the groups"]
    topics: tuple[Topic, ...]
    about: tuple[TopicAssignment, ...]
    settings: Annotated[Mapping[str, Any], "how the topics were found, as JSON"]


@dataclass(frozen=True, slots=True)
class WordAttribution:
    """What each word of a triple's sentence does to a metric's score, by a method and its version.
    An effect above 0 raises the score. Effects are in units of the score or, for cam, in
    log-odds (`kgbias.methods.attribution`)."""

    triple_id: str
    metric: Metric
    tokens: Annotated[tuple[str, ...], "of the sentence"]
    effects: Annotated[tuple[float, ...], "of each token on the score, by the method"]
    score: Annotated[float, "of the whole sentence"]
    method: Annotated[str, "for example occlusion@2"] = "occlusion@1"


@dataclass(frozen=True, slots=True)
class WordSetEdge:
    """What a set of an association test is about: TARGET (X, Y) or ATTRIBUTE (A, B) to a node in
    the graph. `side` is x, y, a or b; `kind` is group, object or topic."""

    side: Annotated[str, "the word set: x or y (targets), a or b (attributes)"]
    kind: str
    node_id: str

    @property
    def name(self) -> str:
        return "TARGET" if self.side in ("x", "y") else "ATTRIBUTE"


@declare_node(
    NodeRecord(
        "AssociationTest",
        "an association test on one model",
        "name",
        table="association_test",
        last=("low", "high", "record"),
    )
)
@dataclass(frozen=True, slots=True)
class AssociationNode:
    """An association test and its outcome on one model. The id is computed from the words, the
    method, the model and the settings. `n_x` and `n_y` count the targets that the model knew. What
    was not computed is NaN; only CEAT's paper computes p differently (`p_published`)."""

    id: str
    test: Annotated[str, "of the test", StoredAs("name")]
    method: Annotated[str, "weat, seat ..."]
    model: Annotated[ModelInfo, "name of the model"]
    effect_size: Annotated[OrNaN, "d"]
    p_value: Annotated[OrNaN, "of the permutation test"]
    low: Annotated[OrNaN, LOW_MEANING]
    high: Annotated[OrNaN, HIGH_MEANING]
    record: Annotated[Mapping[str, Any], "all figures and settings, as JSON"]
    edges: tuple[WordSetEdge, ...] = ()
    p_published: Annotated[OrNaN, "as in the method's paper, where that differs"] = math.nan
    p_holm: Annotated[OrNaN, "corrected for the tests of the call (Holm)"] = math.nan
    p_bh: Annotated[OrNaN, "the same (Benjamini-Hochberg)"] = math.nan
    n_x: Annotated[int, "targets of the first set"] = 0
    n_y: Annotated[int, "of the second"] = 0


def verbalise(group: str, predicate: str, object: str) -> str:
    """The triple as the sentence that scorers read (verbaliser `sentence@1`): the three parts
    joined by spaces (where the script has them), with a capital first letter and a full stop."""
    text = join_words(group, predicate, object)
    has_end = text.endswith((".", "!", "?", "。", "।", "؟"))
    return text[:1].upper() + text[1:] + ("" if has_end else find_full_stop(text))


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that were left with a provider together, until their answers are in the log.

    Attributes:
        name: our name for it, also used with providers that keep names.
        asked: the id of the model as it is asked (`ModelInfo.configured_id`).
        keys: the requests' places in the answer log.
        learned: what the model's server had refused by then (`ServerModel.learned`).
        created: when it was noted, in UTC.
        id: the provider's id, "" until it is known.
    """

    name: str
    asked: str
    keys: tuple[str, ...]
    learned: str
    created: datetime
    id: str = ""
