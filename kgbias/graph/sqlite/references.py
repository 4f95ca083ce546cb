"""What the ids in each table refer to. The check of a store reads it for ids of nothing; what
deletes a run, for all that goes with it and for what nothing refers to then."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that holds ids of another table.

    Attributes:
        table, column: where the ids are.
        to: the table that they are of.
        where: a condition on the rows that are meant, for a column with ids of several tables.
        part: the row is a part of what it refers to, and goes with it. Others keep it in the store.
        loose: an id of nothing is no fault.
    """

    table: str
    column: str
    to: str
    where: str = "TRUE"
    part: bool = False
    loose: bool = False


KEYS = {"category": "name", "answer": "key", "passage": "uid", "decision": "uid"}  # others: id

# The nodes that runs share, each before those that it refers to (names last: one that only a group
# holds goes with it), and the labels of all nodes.
SHARED = (
    "association_test", "sofa", "probe_set", "triple", "statement", "topic", "predicate", "object",
    "group", "category", "metric", "model", "given_name", "descriptor", "name",
)  # fmt: skip
LABELS = {
    "category": "Category",
    "group": "SocialGroup",
    "predicate": "Predicate",
    "object": "Object",
    "triple": "Triple",
    "model": "Model",
    "run": "Run",
    "generation": "Generation",
    "answer": "Answer",
    "metric": "Metric",
    "association_test": "AssociationTest",
    "topic": "Topic",
    "topic_model": "TopicModel",
    "statement": "Statement",
    "decision": "Decision",
    "passage": "Passage",
    "given_name": "GivenName",
    "profile": "Profile",
    "benchmark_item": "BenchmarkItem",
    "descriptor": "Descriptor",
    "probe_set": "ProbeSet",
    "sofa": "SofaResult",
    "name": "Name",
}


def _parts(table: str, to: str, column: str = "") -> Reference:
    return Reference(table, column or f"{to}_id", to, part=True)


def _of_kind(table: str, column: str, kind: str) -> Reference:
    return Reference(table, column, kind, f"kind = '{kind}'")


REFERENCES = (
    # what belongs to a run, and goes with it
    *(
        _parts(table, "run")
        for table in (
            "run_group", "generation", "run_metric", "group_score", "run_association", "probing",
            "probed", "near_duplicate", "topic_model", "run_topic", "about", "place", "decision",
            "passage", "passage_relation", "profile", "run_sofa", "choosing", "chosen",
            "choice_answer", "believing", "name_probe", "believed",
        )
    ),
    _parts("shown", "generation"),
    _parts("profile_part", "profile"),
    # what belongs to a node
    _parts("group_variant", "group"),
    _parts("name_of", "group"),
    _parts("name_of", "name"),
    _parts("score", "triple"),
    _parts("attribution", "triple"),
    _parts("item_score", "benchmark_item", "item_id"),
    _parts("association_edge", "association_test", "test_id"),
    *(_parts(table, "sofa") for table in ("sofa_category", "sofa_group", "sofa_statement")),
    *(_parts(f"probe_set_{kind}", "probe_set", "set_id") for kind in ("group", "statement")),
    # what holds a node
    Reference("run", "model_id", "model"),
    Reference("run_group", "group_id", "group"),
    Reference("run_group", "category", "category", loose=True),
    Reference("generation", "group_id", "group"),
    Reference("generation", "triple_id", "triple"),
    Reference("generation", "answer_key", "answer", "answer_key <> ''", loose=True),
    Reference("shown", "triple_id", "triple"),
    Reference("triple", "group_id", "group"),
    Reference("triple", "predicate_id", "predicate"),
    Reference("triple", "object_id", "object"),
    Reference("run_metric", "metric_id", "metric"),
    Reference("score", "metric_id", "metric"),
    Reference("attribution", "metric_id", "metric"),
    Reference("group_score", "group_id", "group"),
    Reference("association_test", "model_id", "model"),
    Reference("run_association", "test_id", "association_test"),
    *(_of_kind("association_edge", "node_id", kind) for kind in ("group", "object", "topic")),
    Reference("statement", "predicate_id", "predicate"),
    Reference("statement", "object_id", "object"),
    Reference("probing", "model_id", "model"),
    Reference("probed", "probing_id", "probing"),
    Reference("probed", "statement_id", "statement"),
    Reference("probed", "group_id", "group"),
    *(
        _of_kind("near_duplicate", column, kind)
        for column in ("node_id", "head_id")
        for kind in ("object", "predicate")
    ),
    Reference("run_topic", "topic_id", "topic"),
    Reference("about", "triple_id", "triple"),
    Reference("about", "topic_id", "topic"),
    *(_of_kind("place", "node_id", kind) for kind in ("group", "object")),
    # a round that is recorded again may leave out a generation, and bring it back
    Reference("decision", "generation_uid", "generation", loose=True),
    Reference("profile_part", "generation_id", "generation", loose=True),
    Reference("passage_relation", "source_uid", "passage"),
    Reference("passage_relation", "target_uid", "passage"),
    Reference("item_score", "model_id", "model"),
    Reference("profile", "name_id", "given_name"),
    Reference("profile", "group_id", "group"),
    Reference("flagged", "group_id", "group"),
    Reference("run_sofa", "sofa_id", "sofa"),
    Reference("sofa", "set_id", "probe_set"),
    Reference("sofa", "model_id", "model"),
    Reference("sofa_group", "group_id", "group"),
    Reference("probe_set_group", "group_id", "group"),
    Reference("probe_set_group", "category", "category", loose=True),
    Reference("probe_set_statement", "statement_id", "statement", loose=True),  # or a text
    Reference("sofa_statement", "statement_id", "statement", loose=True),
    Reference("flagged", "descriptor_id", "descriptor"),
    Reference("choosing", "model_id", "model"),
    Reference("chosen", "choosing_id", "choosing"),
    Reference("choice_answer", "choosing_id", "choosing"),
    Reference("choice_answer", "answer_key", "answer", loose=True),
    Reference("chosen", "statement_id", "statement"),
    Reference("chosen", "group_id", "group"),
    Reference("believing", "model_id", "model"),
    Reference("name_probe", "believing_id", "believing"),
    Reference("name_probe", "statement_id", "statement"),
    Reference("name_probe", "name_id", "name"),
    Reference("believed", "believing_id", "believing"),
    Reference("believed", "statement_id", "statement"),
    Reference("believed", "group_id", "group"),
)  # fmt: skip


def key(table: str) -> str:
    """The column that other tables name a table's rows by."""
    return KEYS.get(table, "id")
