"""How the tables of a SQLite store become the graph of `kgbias.graph.shape`: one SELECT for each
label and for each pair of ends of an edge type, its columns the properties that the shape names
(before these, for an edge, the keys of its ends as `a` and `b`)."""

from kgbias.graph import shape
from kgbias.graph.edge_records import ASKING_RECORDS, EDGE_RECORDS, AskingRecord, EdgeRecord
from kgbias.graph.node_records import NODE_RECORDS
from kgbias.graph.shape import DERIVED_MEASURES, TONES

# not its spec, which may be a path
_TITLE_SQL = "model_title(model.name, model.revision, model.display_name)"


def _property_columns(name: str, *excluded: str, table: str = "") -> str:
    """The properties of a label or edge type, except those `excluded`, as columns of the table
    `table`."""
    element = shape.get_edge(name) if name.isupper() else shape.get_node(name)
    prefix = f"{table}." if table else ""
    return ", ".join(f"{prefix}{p.name}" for p in element.properties if p.name not in excluded)


def _node_select(label: str, table: str) -> str:
    """Nodes that are the rows of a table, with an id; the model of some is a row of another."""
    names = {p.name for p in shape.get_node(label).properties}
    columns = _property_columns(label, "uid", "model", table=table)
    uid = f"{table}.id AS uid, " if "uid" in names else ""
    if "model" not in names:
        return f"SELECT {uid}{columns} FROM {table}"
    return f"""
        SELECT {uid}{_TITLE_SQL} AS model, {columns}
        FROM {table} JOIN model ON model.id = model_id"""


def _asking_select(asking: AskingRecord) -> str:
    """How models were asked about runs, once that is finished."""
    unfinished = "NULL" if asking.unfinished is None else f"'{asking.unfinished}'"
    return f"""
        SELECT run_id AS a, model_id AS b, id AS uid, {_property_columns(asking.type, "uid")}
        FROM {asking.table} WHERE record IS NOT {unfinished}"""


def _record_select(edge: EdgeRecord) -> str:
    """Edges that are records: rows of a table."""
    start, end = (column or "run_id" for column in edge.ids)
    if edge.starts_at_run:
        columns = "".join(f", {p.name}" for p in shape.get_edge(edge.type).properties)
        return f"SELECT {start} AS a, {end} AS b{columns} FROM {edge.table}"
    if (asking := edge.asking) is None:
        columns = _property_columns(edge.type, "run", table=edge.table)
        return f"""
            SELECT {start} AS a, {end} AS b, run.name AS run, {columns}
            FROM {edge.table} JOIN run ON run.id = run_id"""
    columns = _property_columns(edge.type, "run", asking.property, "model", table=edge.table)
    group = 'JOIN "group" ON "group".id = group_id' if end == "group_id" else ""
    return f"""
        WITH asked AS MATERIALIZED (
            SELECT run.id AS run_id, run.name AS run, {asking.table}.id, {_TITLE_SQL} AS model
            FROM {asking.table} JOIN run ON run.id = run_id
            JOIN model ON model.id = {asking.table}.model_id)
        SELECT {start} AS a, {end} AS b, run, {asking.column} AS {asking.property},
            asked.model AS model, {columns}
        FROM {edge.table} CROSS JOIN asked ON asked.run_id = {edge.table}.run_id
            AND asked.id = {asking.column} {group}"""


_NEWEST_PLACE = f"""
    (SELECT place.kind AS kind, node_id, {_property_columns("PLACED")},
            run.name AS placed_by, max(run.seq) FROM place JOIN run ON run.id = run_id
            GROUP BY place.kind, node_id) AS placed"""
_PLACE_COLUMNS = f"{_property_columns('PLACED')}, placed_by"

# What a triple's run calls its group, if it has another name for it. The outer test is made once:
# in a store of one language nothing is looked up.
_GROUP_AS_SAID = """
    coalesce(CASE WHEN EXISTS (SELECT 1 FROM run_group WHERE names IS NOT NULL) THEN (
        SELECT json_extract(names, '$[0]') FROM generation JOIN run_group
        ON run_group.run_id = generation.run_id AND run_group.group_id = triple.group_id
        WHERE generation.triple_id = triple.id AND names IS NOT NULL ORDER BY names LIMIT 1
    ) END, "group".name)"""

_SELECTS_BY_LABEL = {
    **{node.label: _node_select(node.label, node.table) for node in NODE_RECORDS.values()},
    "Category": f"""
        SELECT {_property_columns("Category")} FROM category
        UNION ALL SELECT category, NULL, NULL FROM
        (SELECT category FROM run_group UNION SELECT category FROM probe_set_group)
        WHERE category NOT IN (SELECT name FROM category)""",
    "SocialGroup": f"""
        SELECT "group".id AS uid, name, CASE WHEN "group".id IN (SELECT group_id FROM run_group)
               THEN (SELECT json_group_array(name) FROM (SELECT name FROM group_variant
                     WHERE group_id = "group".id ORDER BY name)) END AS variants, {_PLACE_COLUMNS}
        FROM "group" LEFT JOIN {_NEWEST_PLACE}
             ON placed.kind = 'group' AND node_id = "group".id""",
    "Predicate": "SELECT id AS uid, text, text AS name FROM predicate",
    "Object": f"""
        SELECT object.id AS uid, text, text AS name, {_PLACE_COLUMNS} FROM object LEFT JOIN
            {_NEWEST_PLACE}
               ON placed.kind = 'object' AND node_id = object.id""",
    "Triple": f"""
        SELECT uid, group_uid, text, text AS name FROM (
            SELECT triple.id AS uid, group_id AS group_uid,
                   {_GROUP_AS_SAID} || ' ' || predicate.text || ' ' || object.text AS text
            FROM triple JOIN "group" ON "group".id = group_id
            JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id)""",
    "Model": f"SELECT id AS uid, {_TITLE_SQL} AS name, revision FROM model",
    "Run": f"""
        SELECT id AS uid, {_property_columns("Run", "uid", "seq")}, seq - 1 AS seq FROM run""",
    "Generation": f"""
        SELECT id AS uid, group_id AS group_uid,
            {_property_columns("Generation", "uid", "group_uid")}
        FROM generation""",
    "Topic": """
        SELECT id AS uid, coalesce(nullif(given, ''), (SELECT group_concat(value, ' ') FROM
               (SELECT value FROM json_each(words) ORDER BY key LIMIT 4))) AS name, category,
               words, given
        FROM topic""",
    "TopicModel": """
        SELECT topic_model_id(run_id, category) AS uid, category, settings
        FROM topic_model""",
    "Statement": """
        SELECT statement.id AS uid, predicate.text || ' ' || object.text AS text,
               predicate.text || ' ' || object.text AS name,
               predicate_id AS predicate_uid, object_id AS object_uid FROM statement
        JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id
        UNION ALL SELECT statement_id, min(text), min(text), NULL, NULL FROM probe_set_statement
        WHERE statement_id NOT IN (SELECT id FROM statement) GROUP BY statement_id""",
    "Name": """
        SELECT id AS uid, text, text AS name, form, root,
               id NOT IN (SELECT name_id FROM name_of) AS nonce FROM name""",
    "Decision": f"SELECT {_property_columns('Decision')} FROM decision",
    "Passage": f"SELECT id AS name, {_property_columns('Passage', 'name')} FROM passage",
    "GivenName": _node_select("GivenName", "given_name"),
    "Descriptor": "SELECT id AS uid, text, text AS name, axis FROM descriptor",
    "ProbeSet": """
        SELECT id AS uid, name, record,
               (SELECT count(*) FROM probe_set_group WHERE set_id = id) AS groups,
               (SELECT count(*) FROM probe_set_statement WHERE set_id = id) AS statements,
               (SELECT count(*) FROM probe_set_group AS g JOIN probe_set_statement AS s
                ON g.set_id = s.set_id AND g.category = s.category WHERE g.set_id = id) AS probes
        FROM probe_set""",
    "Stereotype": f"""
        SELECT id AS uid, people || ': ' || attribute AS name,
            {_property_columns("Stereotype", "uid", "name")}
        FROM stereotype""",
}
NODE_SELECTS = {node.label: _SELECTS_BY_LABEL[node.label] for node in shape.NODES}

_TRIPLE_END = "JOIN triple ON triple.id = triple_id"
_EDGE_OF_TEST = """
    SELECT test_id AS a, node_id AS b, side FROM association_edge
    JOIN {table} ON {table}.id = node_id WHERE side IN {sides} AND kind = '{kind}'"""
# The ids of topic models, once for each: Python makes them.
_FITTED = """
    WITH fitted AS MATERIALIZED (
        SELECT run_id, category, topic_model_id(run_id, category) AS model, run.name AS run
        FROM topic_model JOIN run ON run.id = run_id)"""
_NEAR = f"""
    SELECT statement_id AS a, head_id AS b, run.name AS run,
           {_property_columns("NEAR", "run", table="near_duplicate")}
    FROM near_duplicate JOIN run ON run.id = run_id"""
_PLACE = f"""
    SELECT run_id AS a, node_id AS b, {_property_columns("PLACED")} FROM place WHERE kind =
        '{{kind}}'"""

_SCORE = """
        LEFT JOIN run_metric AS by_{0} ON by_{0}.run_id = run.id AND by_{0}.measure = '{0}'
        LEFT JOIN score AS {0} ON {0}.metric_id = by_{0}.metric_id AND {0}.triple_id = triple.id"""

_STEREOTYPE = """
    SELECT triple.group_id AS a, triple.object_id AS b, run.name AS run,
           predicate.text AS predicate, said.n AS count, {values}, triple.id AS triple, said.arm,
           run.language AS language
    FROM (SELECT run_id, triple_id, arm, sum(count) AS n FROM generation
          WHERE triple_id IS NOT NULL GROUP BY triple_id, run_id, arm) AS said
    JOIN run ON run.id = said.run_id
    JOIN triple ON triple.id = said.triple_id
    JOIN predicate ON predicate.id = predicate_id
    {joined}""".format(
    values=", ".join(f"{m}.value AS {m}" for m in DERIVED_MEASURES),
    joined=" ".join(map(_SCORE.format, DERIVED_MEASURES)),
)

EDGE_SELECTS = {
    ("IN_CATEGORY", "SocialGroup", "Category"): """
        SELECT DISTINCT group_id AS a, category AS b FROM run_group""",
    **{
        (p.edge, "Triple", p.label): f"SELECT id AS a, {p.field}_id AS b FROM triple"
        for p in shape.TRIPLE_PARTS
    },
    ("OF", "Run", "Model"): "SELECT id AS a, model_id AS b FROM run",
    ("OF", "AssociationTest", "Model"): "SELECT id AS a, model_id AS b FROM association_test",
    ("OF", "SofaResult", "Model"): "SELECT id AS a, model_id AS b FROM sofa",
    ("SEEDED", "Run", "SocialGroup"): """
        SELECT run_id AS a, group_id AS b, position, category, names FROM run_group""",
    ("IN", "Generation", "Run"): "SELECT id AS a, run_id AS b FROM generation",
    ("IN", "Profile", "SocialGroup"): "SELECT id AS a, group_id AS b FROM profile",
    ("WROTE", "Run", "Profile"): "SELECT run_id AS a, id AS b FROM profile",
    ("GIVEN", "Profile", "GivenName"): "SELECT id AS a, name_id AS b FROM profile",
    ("PART_OF", "Generation", "Profile"): """
        SELECT generation_id AS a, profile_id AS b, attribute, begins, ends, position
        FROM profile_part JOIN generation ON generation.id = generation_id""",
    ("YIELDED", "Generation", "Triple"): """
        SELECT id AS a, triple_id AS b, count, said_predicate AS predicate, said_object AS object
        FROM generation WHERE triple_id IS NOT NULL""",
    ("SHOWN", "Generation", "Triple"): f"""
        SELECT generation_id AS a, triple_id AS b, position FROM shown {_TRIPLE_END}""",
    ("SCORED", "Triple", "Metric"): f"""
        SELECT triple_id AS a, metric_id AS b, value, label, details AS names, details AS parts
        FROM score {_TRIPLE_END}""",
    ("MEASURED_BY", "Run", "Metric"): """
        SELECT run_id AS a, metric_id AS b, measure FROM run_metric""",
    ("REVIEWED", "Run", "Decision"): "SELECT run_id AS a, uid AS b FROM decision",
    ("DECIDES", "Decision", "Generation"): """
        SELECT uid AS a, generation.id AS b FROM decision
        JOIN generation ON generation.id = generation_uid""",
    ("LABELLED", "Rater", "Triple"): f"""
        SELECT rater_id AS a, triple_id AS b, {_property_columns("LABELLED")} FROM label
            {_TRIPLE_END}""",
    ("TESTED", "Run", "AssociationTest"): """
        SELECT run_id AS a, test_id AS b FROM run_association""",
    ("TESTED", "Run", "SofaResult"): "SELECT run_id AS a, sofa_id AS b FROM run_sofa",
    ("ON", "SofaResult", "ProbeSet"): "SELECT id AS a, set_id AS b FROM sofa",
    ("ASKS", "ProbeSet", "SocialGroup"): """
        SELECT set_id AS a, group_id AS b, category, text, NULL AS words, NULL AS cluster,
               NULL AS hate FROM probe_set_group""",
    ("ASKS", "ProbeSet", "Statement"): f"""
        SELECT set_id AS a, statement_id AS b, {_property_columns("ASKS")} FROM
            probe_set_statement""",
    ("SCORES", "SofaResult", "Category"): f"""
        SELECT sofa_id AS a, category AS b, {_property_columns("SCORES")} FROM sofa_category""",
    ("PUTS_FIRST", "SofaResult", "SocialGroup"): f"""
        SELECT sofa_id AS a, group_id AS b, {_property_columns("PUTS_FIRST")} FROM sofa_group""",
    ("DISPARITY", "SofaResult", "Statement"): f"""
        SELECT sofa_id AS a, statement_id AS b, {_property_columns("DISPARITY")} FROM
            sofa_statement""",
    ("TARGET", "AssociationTest", "SocialGroup"): _EDGE_OF_TEST.format(
        table='"group"', sides="('x', 'y')", kind="group"
    ),
    ("ATTRIBUTE", "AssociationTest", "Object"): _EDGE_OF_TEST.format(
        table="object", sides="('a', 'b')", kind="object"
    ),
    ("ATTRIBUTE", "AssociationTest", "Topic"): _EDGE_OF_TEST.format(
        table="topic", sides="('a', 'b')", kind="topic"
    ),
    ("ATTRIBUTE", "AssociationTest", "SocialGroup"): _EDGE_OF_TEST.format(
        table='"group"', sides="('a', 'b')", kind="group"
    ),
    ("PLACED", "Run", "SocialGroup"): _PLACE.format(kind="group"),
    ("PLACED", "Run", "Object"): _PLACE.format(kind="object"),
    ("MODELLED_BY", "Run", "TopicModel"): """
        SELECT run_id AS a, topic_model_id(run_id, category) AS b FROM topic_model""",
    ("FOUND", "TopicModel", "Topic"): f"""
        SELECT topic_model_id(run_id, category) AS a, topic_id AS b, {_property_columns("FOUND")}
        FROM run_topic""",
    ("ABOUT", "Triple", "Topic"): f"""
        {_FITTED} SELECT triple_id AS a, topic_id AS b, run, model, {_property_columns("OUTLIER")}
        FROM about NOT INDEXED CROSS JOIN fitted USING (run_id, category) {_TRIPLE_END}
        WHERE topic_id IS NOT NULL""",
    ("OUTLIER", "Triple", "TopicModel"): f"""
        {_FITTED} SELECT triple_id AS a, model AS b, {_property_columns("OUTLIER")}
        FROM about NOT INDEXED CROSS JOIN fitted USING (run_id, category) {_TRIPLE_END}
        WHERE topic_id IS NULL""",
    ("ATTRIBUTED", "Triple", "Metric"): f"""
        SELECT triple_id AS a, metric_id AS b, {_property_columns("ATTRIBUTED")}
        FROM attribution {_TRIPLE_END}""",
    ("STATES", "Triple", "Statement"): """
        WITH stated AS MATERIALIZED (SELECT id, predicate_id, object_id FROM statement)
        SELECT triple.id AS a, stated.id AS b FROM triple
        CROSS JOIN stated USING (predicate_id, object_id)""",  # only a copy gets an automatic index
    ("NAME_OF", "Name", "SocialGroup"): f"""
        SELECT name_id AS a, group_id AS b, {_property_columns("NAME_OF")} FROM name_of""",
    ("FLAGGED", "SocialGroup", "Descriptor"): f"""
        SELECT group_id AS a, descriptor_id AS b, apx_id AS apx_uid,
            {_property_columns("FLAGGED", "apx_uid")}
        FROM flagged""",
    ("LISTS", "StereotypeTable", "Stereotype"): """
        SELECT stereotype_table_id AS a, id AS b FROM stereotype""",
    ("HELD_AGAINST", "Run", "StereotypeTable"): """
        SELECT run_id AS a, stereotype_table_id AS b, record FROM held_against""",
    ("SOUGHT", "Run", "Stereotype"): f"""
        SELECT run_id AS a, stereotype_id AS b, {_property_columns("SOUGHT")} FROM heard""",
    ("RECORDED", "Triple", "Stereotype"): f"""
        SELECT triple_id AS a, stereotype_id AS b, run.name AS run,
            {_property_columns("RECORDED", "run")}
        FROM recorded JOIN run ON run.id = run_id {_TRIPLE_END} WHERE stereotype_id IS NOT NULL""",
    ("NEW_TO", "Triple", "StereotypeTable"): f"""
        SELECT triple_id AS a, stereotype_table_id AS b, run.name AS run
        FROM recorded JOIN run ON run.id = run_id {_TRIPLE_END} WHERE stereotype_id IS NULL""",
    ("HOLDS", "Run", "Passage"): "SELECT run_id AS a, uid AS b, position FROM passage",
    ("RELATED", "Passage", "Passage"): f"""
        SELECT source_uid AS a, target_uid AS b, run.name AS run, passage_relation.id AS name,
               {_property_columns("RELATED", "run", "name", table="passage_relation")}
        FROM passage_relation JOIN run ON run.id = run_id""",
    ("READ_BY", "BenchmarkItem", "Model"): f"""
        SELECT item_id AS a, model_id AS b, {_property_columns("READ_BY")} FROM item_score""",
    ("NEAR", "Statement", "Statement"): _NEAR,
    **{(e.type, e.start, e.end): _record_select(e) for e in EDGE_RECORDS.values()},
    **{(a.type, "Run", "Model"): _asking_select(a) for a in ASKING_RECORDS.values()},
    ("STEREOTYPE", "SocialGroup", "Object"): _STEREOTYPE,
    **{
        (tone.upper(), "SocialGroup", "Object"): f"{_STEREOTYPE} WHERE regard.label = '{tone}'"
        for tone in TONES
    },
}
