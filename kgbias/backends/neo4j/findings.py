"""What was found in the statements of runs: scores, labels, topics, attributions, association
tests, flags of APX, scores of benchmarks, near-duplicates, recorded stereotypes, and the
centralities of nodes.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, groupby

from kgbias.backends.neo4j.session import (
    BATCH_ROWS,
    Neo4jSession,
    ParametrisedQuery,
    build_edge_queries,
    build_node_queries,
    flatten_row,
    name_vector_index,
)
from kgbias.errors import UsageError, no_such
from kgbias.graph import graph_tables
from kgbias.graph.composites import CompositeStore
from kgbias.graph.graph_tables import LABEL_BY_KIND, property_values
from kgbias.graph.labels import Label, read_label
from kgbias.graph.record import build_record, properties, read_settings, to_properties
from kgbias.graph.stereotypes import StereotypeMatches
from kgbias.graph.types import (
    AssociationNode,
    BenchmarkItem,
    Flag,
    FlagTable,
    ItemScore,
    Metric,
    NearDuplicate,
    NodeCentrality,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    WordAttribution,
    canonical_json,
    storable,
)
from kgbias.graph.vectors import STORED_DTYPE, StatementVectors
from kgbias.models.base import ModelInfo, Settings

_WRITE_METRIC = """
MATCH (run:Run {uid: $run})
MERGE (m:Metric {uid: $metric}) SET m += $properties
WITH run, m
OPTIONAL MATCH (run)-[old:MEASURED_BY {measure: $properties.measure}]->(other)
WHERE other <> m
DELETE old
MERGE (run)-[:MEASURED_BY {measure: $properties.measure}]->(m)"""
_WRITE_SCORES = """
MATCH (m:Metric {uid: $metric})
UNWIND $rows AS row
MATCH (t:Triple {uid: row.triple})
MERGE (t)-[s:SCORED]->(m)
SET s = row.values"""

_FORGET_TOPICS = (
    "MATCH (run:Run {uid: $run}) MATCH ()-[about:ABOUT {run: run.name}]->() DELETE about",
    "MATCH (:Run {uid: $run})-[:MODELLED_BY]->(m:TopicModel) DETACH DELETE m",
)
_WRITE_TOPICS = """
UNWIND $rows AS row
MERGE (topic:Topic {uid: row.uid})
SET topic.words = row.words, topic.category = row.category,
    topic.given = CASE row.given WHEN '' THEN coalesce(topic.given, '') ELSE row.given END
SET topic.name = CASE topic.given WHEN '' THEN row.plain ELSE topic.given END"""
_NAME_TOPIC = """
MATCH (topic:Topic {uid: $uid})
SET topic.given = $given,
    topic.name = CASE $given
        WHEN '' THEN reduce(name = '', word IN topic.words[..4] |
                            name + CASE name WHEN '' THEN '' ELSE ' ' END + word)
        ELSE $given END"""

_READ_TOPIC_MODELS = """
MATCH (:Run {uid: $run})-[:MODELLED_BY]->(m:TopicModel)
OPTIONAL MATCH (m)-[found:FOUND]->(topic:Topic)
WITH m, found, topic ORDER BY found.number
RETURN m.uid AS uid, m.category AS category, m.settings AS settings,
       [t IN collect([properties(topic), properties(found)]) WHERE t[0] IS NOT NULL] AS topics
ORDER BY category"""
_READ_TOPIC_ASSIGNMENTS = """
MATCH (t:Triple)-[about:ABOUT {run: $name}]->(topic:Topic)
RETURN about.model AS model, t.uid AS triple_id, topic.uid AS topic_id,
       about.probability AS probability, about.assigned AS assigned
UNION ALL
MATCH (:Run {name: $name})-[:MODELLED_BY]->(m:TopicModel)<-[about:OUTLIER]-(t:Triple)
RETURN m.uid AS model, t.uid AS triple_id, null AS topic_id,
       about.probability AS probability, about.assigned AS assigned"""

_FIND_TRIPLES = """
UNWIND $uids AS uid MATCH (t:Triple {uid: uid}) RETURN uid"""
_READ_LABELS = """
MATCH (r:Rater)-[e:LABELLED]->(t:Triple) WHERE $measure IS NULL OR e.measure = $measure
RETURN t.uid AS triple_id, r.name AS rater, r.kind AS kind, properties(e) AS e
ORDER BY e.labelled, e.uid"""

_COUNT_LABELS = """
MATCH (:Rater)-[e:LABELLED {measure: $measure}]->(:Triple) RETURN count(e) AS n"""

_READ_ATTRIBUTIONS = """
MATCH (run:Run {uid: $run})-[:MEASURED_BY]->(m:Metric)<-[a:ATTRIBUTED]-(t:Triple)
WHERE EXISTS { MATCH (t)<-[:YIELDED]-(:Generation)-[:IN]->(run) }
RETURN t.uid AS triple_id, properties(m) AS m, properties(a) AS a
ORDER BY m.measure, triple_id, a.method"""

_FORGET_TEST_EDGES = """
UNWIND $rows AS uid
MATCH (:AssociationTest {uid: uid})-[old:TARGET|ATTRIBUTE]->()
DELETE old"""
_TIE_TESTS = """
UNWIND $rows AS uid
MATCH (r:Run {uid: $run}), (t:AssociationTest {uid: uid})
MERGE (r)-[:TESTED]->(t)"""

_FORGET_FLAGS = """
MATCH (:SocialGroup)-[e:FLAGGED {apx_uid: $apx}]->(:Descriptor)
DELETE e"""
_READ_FLAGS = """
MATCH (g:SocialGroup)-[e:FLAGGED]->(d:Descriptor)
RETURN properties(e) AS e, g.name AS group, d.text AS descriptor, d.axis AS axis
ORDER BY e.model, e.apx_uid, group, e.z, descriptor"""

_READ_ITEM_SETTINGS = """
MATCH (:BenchmarkItem)-[e:READ_BY]->(:Model {uid: $model})
RETURN DISTINCT e.settings AS settings ORDER BY settings"""

# Vectors are derived: nodes beside the graph. Those of an encoder also have a label of their own,
# since an index holds vectors of one length.
_CREATE_VECTOR_CONSTRAINT = """
CREATE CONSTRAINT kgbias_statementvector IF NOT EXISTS FOR (v:StatementVector)
REQUIRE (v.predicate_uid, v.object_uid, v.encoder) IS UNIQUE"""
# Quantized vectors shift a cosine by .01, enough to find what SQLite does not.
_CREATE_VECTOR_INDEX = """
CREATE VECTOR INDEX {index} IF NOT EXISTS FOR (v:{label}) ON v.values
OPTIONS {{indexConfig: {{`vector.dimensions`: {dimensions},
`vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}}}}"""
_WRITE_VECTORS = """
UNWIND $rows AS row
MERGE (v:StatementVector {{predicate_uid: row[0], object_uid: row[1], encoder: $encoder}})
SET v:{label}, v.values = row[2]"""
_READ_VECTORS = """
MATCH (:Run {uid: $run})<-[:IN]-(:Generation)-[:YIELDED]->(t:Triple)
WITH DISTINCT t
MATCH (p:Predicate)<-[:PREDICATE]-(t)-[:OBJECT]->(o:Object)
WITH DISTINCT p.uid AS predicate, o.uid AS object
MATCH (v:StatementVector {predicate_uid: predicate, object_uid: object, encoder: $encoder})
RETURN predicate, object, v.values AS values ORDER BY predicate, object"""

_READ_LINKED_STATEMENTS = """
MATCH (said:Statement)-[:NEAR {run: $name}]->(head:Statement)
UNWIND [said.uid, head.uid] AS uid
RETURN DISTINCT uid"""
_FORGET_LINKS = "MATCH ()-[near:NEAR {run: $name}]->() DELETE near"
_FORGET_STATEMENTS = """
MATCH (n:Statement) WHERE n.uid IN $uids AND NOT EXISTS { (n)-[e]-() WHERE type(e) <> 'STATES' }
DETACH DELETE n"""
_READ_LINKS = """
MATCH (run:Run {uid: $run})
MATCH (said:Statement)-[near:NEAR {run: run.name}]->(head:Statement)
MATCH (p:Predicate {uid: said.predicate_uid}), (o:Object {uid: said.object_uid})
MATCH (hp:Predicate {uid: head.predicate_uid}), (ho:Object {uid: head.object_uid})
RETURN p.text AS p, o.text AS o, hp.text AS head_p, ho.text AS head_o,
       near.similarity AS similarity, near.method AS method
ORDER BY head_p, head_o, head.uid, p, o, said.uid"""

_FORGET_MATCHES = (
    "MATCH (:Run {uid: $run})-[:HELD_AGAINST]->(table:StereotypeTable {name: $table}) "
    "MATCH ()-[e:RECORDED {run: $name}]->(:Stereotype)<-[:LISTS]-(table) DELETE e",
    "MATCH (:Run {uid: $run})-[:HELD_AGAINST]->(table:StereotypeTable {name: $table}) "
    "MATCH ()-[e:NEW_TO {run: $name}]->(table) DELETE e",
    "MATCH (:Run {uid: $run})-[e:SOUGHT]->(:Stereotype)"
    "<-[:LISTS]-(:StereotypeTable {name: $table}) DELETE e",
    "MATCH (:Run {uid: $run})-[e:HELD_AGAINST]->(:StereotypeTable {name: $table}) DELETE e",
)
_FORGET_STEREOTYPES = (
    "MATCH (n:Stereotype) WHERE NOT EXISTS { (n)<-[:SOUGHT]-() } DETACH DELETE n",
    "MATCH (n:StereotypeTable) WHERE NOT EXISTS { (n)<-[:HELD_AGAINST]-() } DETACH DELETE n",
)
_FORGET_PLACES = f"""
MATCH (run:Run {{uid: $run}})-[p:PLACED]->(n)
DELETE p
WITH n, run WHERE n.placed_by = run.name
REMOVE n.placed_by, {", ".join(f"n.{p.name}" for p in properties(NodeCentrality))}"""
_SHOW_PLACES = """
UNWIND $rows AS uid
MATCH (n:{label} {{uid: uid}})<-[placed:PLACED]-(run:Run)
WITH n, placed, run ORDER BY run.seq DESC
WITH n, collect({{place: properties(placed), run: run.name}})[0] AS newest
SET n += newest.place, n.placed_by = newest.run"""
_READ_PLACES = """
MATCH (:Run {uid: $run})-[p:PLACED]->(n)
RETURN CASE WHEN n:SocialGroup THEN 'group' ELSE 'object' END AS kind, n.uid AS node_id,
       n.name AS label, properties(p) AS p
ORDER BY kind, node_id"""


_VECTORS_PER_BATCH = 1_000  # vectors written in one transaction: 8 MB


class Neo4jFindings(Neo4jSession, CompositeStore):
    """See `kgbias.graph.store.Store`."""

    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        rows = [{"triple": s.triple_id, "values": graph_tables.score_values(s)} for s in scores]
        statement = (
            _WRITE_METRIC,
            {"run": run_id, "metric": metric.id, "properties": to_properties(metric)},
        )
        # The metric becomes current together with its first scores.
        self.write(statement, (_WRITE_SCORES, {"rows": rows[:BATCH_ROWS], "metric": metric.id}))
        self.write_rows(_WRITE_SCORES, rows[BATCH_ROWS:], metric=metric.id)

    def scored_triples(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
        rows = self.read(
            # Start from the triples: the metric may have millions of others.
            "UNWIND $uids AS uid MATCH (t:Triple {uid: uid}) "
            "WHERE EXISTS { (t)-[:SCORED]->(:Metric {uid: $metric}) } RETURN uid",
            metric=metric.id,
            uids=list(triple_ids),
        )
        return {row["uid"] for row in rows}

    def scores(self, metric: Metric, triple_ids: Sequence[str]) -> dict[str, Score]:
        rows = self.read(
            "UNWIND $uids AS uid MATCH (t:Triple {uid: uid})-[s:SCORED]->(:Metric {uid: $metric}) "
            "RETURN uid, s.value AS value, s.label AS label, s.names AS names, s.parts AS parts",
            metric=metric.id,
            uids=list(triple_ids),
        )
        return {
            r["uid"]: Score(
                r["uid"], r["value"], r["label"], dict(zip(r["names"], r["parts"], strict=True))
            )
            for r in rows
        }

    def scorers(self, run_id: str) -> list[Metric]:
        rows = self.read(
            "MATCH (m:Metric) WHERE EXISTS { (m)<-[:SCORED]-(:Triple)<-[:YIELDED]-(:Generation)"
            "-[:IN]->(:Run {uid: $run}) } RETURN properties(m) AS m ORDER BY m.uid",
            run=run_id,
        )
        return [build_record(Metric, row["m"]) for row in rows]

    def metrics(self, run_id: str) -> dict[str, Metric]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[:MEASURED_BY]->(m:Metric) "
            "RETURN properties(m) AS m ORDER BY m.measure",
            run=run_id,
        )
        return {row["m"]["measure"]: build_record(Metric, row["m"]) for row in rows}

    def save_topics(self, run_id: str, models: Sequence[TopicModel]) -> None:
        queries: list[ParametrisedQuery] = [(query, {"run": run_id}) for query in _FORGET_TOPICS]
        nodes, _ = graph_tables.topic_model_nodes(run_id, models)
        topics = [
            property_values("Topic", t, uid=t.id) | {"plain": replace(t, given="").name}
            for model in models
            for t in model.topics
        ]
        queries += [*build_node_queries(nodes), (_WRITE_TOPICS, {"rows": topics})]
        for table in graph_tables.topic_model_edges(run_id, self.run_name(run_id), models):
            # The run's own were removed above, so these need not be looked for.
            queries += build_edge_queries(table, create=table[0] in ("ABOUT", "OUTLIER"))
        self.write(*queries)

    def topics(self, run_id: str) -> list[TopicModel]:
        if not (name := self.run_name(run_id)):
            return []
        about: dict[str, list[TopicAssignment]] = {}
        for row in self.read(_READ_TOPIC_ASSIGNMENTS, name=name):
            about.setdefault(row["model"], []).append(build_record(TopicAssignment, row))
        return [
            build_record(
                TopicModel,
                {
                    **row,
                    "topics": tuple(
                        build_record(Topic, {**t, **topic_found})
                        for t, topic_found in row["topics"]
                    ),
                    "about": tuple(sorted(about.get(row["uid"], ()), key=lambda a: a.triple_id)),
                },
            )
            for row in self.read(_READ_TOPIC_MODELS, run=run_id)
        ]

    def name_topic(self, topic_id: str, given: str) -> None:
        self.write((_NAME_TOPIC, {"uid": topic_id, "given": given}))

    def add_labels(self, labels: Sequence[Label]) -> None:
        ids = sorted({x.triple_id for x in labels})
        existing_ids = {row["uid"] for row in self.read(_FIND_TRIPLES, uids=ids)}
        known_labels = [x for x in labels if x.triple_id in existing_ids]
        self.write(
            *build_node_queries(graph_tables.rater_nodes(known_labels), keep_existing=True),
            *build_edge_queries(graph_tables.label_edges(known_labels)),
        )

    def labels(self, measure: str | None = None) -> list[Label]:
        return [read_label(flatten_row(row)) for row in self.read(_READ_LABELS, measure=measure)]

    def label_count(self, measure: str) -> int:
        return int(self.read(_COUNT_LABELS, measure=measure)[0]["n"])

    def save_attributions(self, attributions: Sequence[WordAttribution]) -> None:
        self.write_each(build_edge_queries(graph_tables.attribution_edges(attributions)))

    def attributions(self, run_id: str) -> list[WordAttribution]:
        return [
            build_record(
                WordAttribution, flatten_row(row) | {"metric": build_record(Metric, row["m"])}
            )
            for row in self.read(_READ_ATTRIBUTIONS, run=run_id)
        ]

    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        kinds = ("group", "object", "topic")
        if kind not in kinds:
            raise UsageError(no_such("kind of node", kind, kinds))
        rows = self.read(
            f"MATCH (n:{LABEL_BY_KIND[kind]}) WHERE n.uid IN $ids RETURN n.uid AS uid",
            ids=list(ids),
        )
        return {row["uid"] for row in rows}

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        ids = {"rows": [node.id for node in nodes]}
        self.keep_models(node.model for node in nodes)
        self.write(
            *build_node_queries(graph_tables.record_nodes(AssociationNode, nodes)),
            (_FORGET_TEST_EDGES, ids),
            *chain.from_iterable(map(build_edge_queries, graph_tables.test_edges(nodes))),
            *([(_TIE_TESTS, ids | {"run": run_id})] if run_id is not None else ()),
        )

    def save_flags(self, flag_table: FlagTable) -> None:
        self.write((_FORGET_FLAGS, {"apx": flag_table.id}))
        self.write_each(
            build_node_queries(
                graph_tables.group_nodes(f.group for f in flag_table.flags), keep_existing=True
            )
        )
        self.write_each(
            build_node_queries(graph_tables.descriptor_nodes([flag_table]), keep_existing=True)
        )
        self.write_each(build_edge_queries(graph_tables.flag_edges([flag_table])))

    def flags(self) -> list[FlagTable]:
        tables = []
        rows = self.read(_READ_FLAGS)
        for _, table_rows in groupby(rows, lambda row: row["e"]["apx_uid"]):
            edge_rows = list(table_rows)
            flags = tuple(build_record(Flag, flatten_row(row)) for row in edge_rows)
            tables.append(build_record(FlagTable, {**edge_rows[0]["e"], "flags": flags}))
        return tables

    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        probe_properties = {
            "asked": model.configured_id(settings),
            "settings": canonical_json(settings),
        }
        edges = [
            (s.item.id, model.id, property_values("READ_BY", s, **probe_properties)) for s in scores
        ]
        items = graph_tables.record_nodes(BenchmarkItem, [s.item for s in scores])
        self.keep_models([model])
        self.write_each(build_node_queries(items))
        self.write_each(build_edge_queries(("READ_BY", "BenchmarkItem", "Model", edges)))

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        return [
            read_settings(row["settings"]) for row in self.read(_READ_ITEM_SETTINGS, model=model.id)
        ]

    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        name = self.run_name(run_id)
        # Statements that only the old links held go with them.
        old_ids = [row["uid"] for row in self.read(_READ_LINKED_STATEMENTS, name=name)]
        self._add_statements([end for x in links for end in x.ends])
        edge_writes = build_edge_queries(
            graph_tables.near_duplicate_edges(name, links), create=True
        )
        self.write(
            (_FORGET_LINKS, {"name": name}), *edge_writes, (_FORGET_STATEMENTS, {"uids": old_ids})
        )

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        return [
            NearDuplicate(
                (row["p"], row["o"]),
                (row["head_p"], row["head_o"]),
                row["similarity"],
                row["method"],
            )
            for row in self.read(_READ_LINKS, run=run_id)
        ]

    def save_stereotype_matches(self, run_id: str, matches: StereotypeMatches) -> None:
        name = self.run_name(run_id)
        parameters = {"run": run_id, "name": name, "table": storable(matches.table.name)}
        queries: list[ParametrisedQuery] = [(query, parameters) for query in _FORGET_MATCHES]
        for nodes in graph_tables.stereotype_nodes([matches]):
            queries += build_node_queries(nodes)
        for table in graph_tables.stereotype_edges(run_id, name, [matches]):
            queries += build_edge_queries(table, create=table[0] != "LISTS")
        self.write(*queries, *((query, {}) for query in _FORGET_STEREOTYPES))

    def save_vectors(self, encoder: str, vectors: StatementVectors) -> None:
        if not vectors.statements:
            return
        label, index = name_vector_index(encoder)
        self.write((_CREATE_VECTOR_CONSTRAINT, {}))
        if self.has_vector_index:
            dimensions = vectors.rows.shape[1]
            text = _CREATE_VECTOR_INDEX.format(index=index, label=label, dimensions=dimensions)
            self.write((text, {}))
        # Rounded to half precision, as SQLite keeps them: both stores give the same numbers.
        stored_rows = vectors.rows.astype(STORED_DTYPE).astype(float).tolist()
        rows = [[*ends, row] for ends, row in zip(vectors.statements, stored_rows, strict=True)]
        for start in range(0, len(rows), _VECTORS_PER_BATCH):
            parameters = {"rows": rows[start : start + _VECTORS_PER_BATCH], "encoder": encoder}
            self.write((_WRITE_VECTORS.format(label=label), parameters))

    def encoders(self) -> list[str]:
        query = "MATCH (v:StatementVector) RETURN DISTINCT v.encoder AS encoder ORDER BY encoder"
        return [str(row["encoder"]) for row in self.read(query)]

    def vectors(self, run_id: str, encoder: str) -> StatementVectors:
        import numpy as np

        vector_rows = list(self.stream(_READ_VECTORS, run=run_id, encoder=encoder))
        rows = np.array([row["values"] for row in vector_rows], dtype=np.float32)
        ends = [(row["predicate"], row["object"]) for row in vector_rows]
        # NumPy cannot find the width of no rows.
        return StatementVectors(ends, rows.reshape(len(vector_rows), -1 if vector_rows else 0))

    def save_centralities(self, run_id: str, centralities: Sequence[NodeCentrality]) -> None:
        # The old ones too: another run's place shows on them from now on.
        touched_nodes = {(p.kind, p.node_id) for p in (*self.centralities(run_id), *centralities)}
        self.write((_FORGET_PLACES, {"run": run_id}))
        for table in graph_tables.centrality_edges(run_id, centralities):
            self.write_each(build_edge_queries(table, create=True))
        for kind in ("group", "object"):
            ids = sorted(id for place_kind, id in touched_nodes if place_kind == kind)
            self.write_rows(_SHOW_PLACES.format(label=LABEL_BY_KIND[kind]), ids)

    def centralities(self, run_id: str) -> list[NodeCentrality]:
        return self.records(NodeCentrality, _READ_PLACES, run=run_id)
