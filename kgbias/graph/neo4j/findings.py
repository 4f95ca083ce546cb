"""What was found in the statements of runs: scores, labels, topics, attributions, association
tests, flags of APX, scores of benchmarks, near-duplicates, recorded stereotypes, and the places of
nodes.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain, groupby

from kgbias.errors import UsageError, no_such
from kgbias.graph import as_graph
from kgbias.graph.as_graph import KINDS, LABELS, values
from kgbias.graph.labels import Label, label_of
from kgbias.graph.neo4j.session import (
    BATCH,
    MODEL,
    SPEC,
    Neo4jSession,
    Statement,
    of_edges,
    of_nodes,
    spread,
    vector_index,
)
from kgbias.graph.record import in_graph, properties, read_settings, record_of
from kgbias.graph.recorded import NEW, Heard, Held, Mark, Stereotype, StereotypeTable
from kgbias.graph.types import (
    About,
    AssociationEdge,
    AssociationNode,
    Attribution,
    Flag,
    Flagged,
    GroupScore,
    Item,
    ItemScore,
    Metric,
    NearDuplicate,
    NodePlace,
    Score,
    Topic,
    TopicModel,
    canonical_json,
    storable,
)
from kgbias.graph.vectors import KEPT, StatementVectors
from kgbias.models.base import ModelInfo, Settings

_METRIC = """
MATCH (run:Run {uid: $run})
MERGE (m:Metric {uid: $metric}) SET m += $properties
WITH run, m
OPTIONAL MATCH (run)-[old:MEASURED_BY {measure: $properties.measure}]->(other)
WHERE other <> m
DELETE old
MERGE (run)-[:MEASURED_BY {measure: $properties.measure}]->(m)"""
_SCORES = """
MATCH (m:Metric {uid: $metric})
UNWIND $rows AS row
MATCH (t:Triple {uid: row.triple})
MERGE (t)-[s:SCORED]->(m)
SET s.value = row.value, s.label = row.label, s.names = row.names, s.parts = row.parts"""

_FORGET_FIGURES = """
MATCH (:Run {uid: $run})-[f:FIGURE]->()
WHERE f.measure IN $replaced
DELETE f"""
_FORGET_TOPICS = (
    "MATCH (run:Run {uid: $run}) MATCH ()-[about:ABOUT {run: run.name}]->() DELETE about",
    "MATCH (:Run {uid: $run})-[:MODELLED_BY]->(m:TopicModel) DETACH DELETE m",
)
_TOPICS = """
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

_READ_MODELS = """
MATCH (:Run {uid: $run})-[:MODELLED_BY]->(m:TopicModel)
OPTIONAL MATCH (m)-[found:FOUND]->(topic:Topic)
WITH m, found, topic ORDER BY found.number
RETURN m.uid AS uid, m.category AS category, m.settings AS settings,
       [t IN collect([properties(topic), properties(found)]) WHERE t[0] IS NOT NULL] AS topics
ORDER BY category"""
_READ_ABOUT = """
MATCH (t:Triple)-[about:ABOUT {run: $name}]->(topic:Topic)
RETURN about.model AS model, t.uid AS triple_id, topic.uid AS topic_id,
       about.probability AS probability, about.assigned AS assigned
UNION ALL
MATCH (:Run {name: $name})-[:MODELLED_BY]->(m:TopicModel)<-[about:OUTLIER]-(t:Triple)
RETURN m.uid AS model, t.uid AS triple_id, null AS topic_id,
       about.probability AS probability, about.assigned AS assigned"""

_LABELLED = """
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

_FORGET_EDGES = """
UNWIND $rows AS uid
MATCH (:AssociationTest {uid: uid})-[old:TARGET|ATTRIBUTE]->()
DELETE old"""
_OF_RUN = """
UNWIND $rows AS uid
MATCH (r:Run {uid: $run}), (t:AssociationTest {uid: uid})
MERGE (r)-[:TESTED]->(t)"""
_READ_TESTS = f"""
MATCH (t:AssociationTest)-[:OF]->(m:Model)
WHERE $run IS NULL OR EXISTS {{ (:Run {{uid: $run}})-[:TESTED]->(t) }}
{SPEC}
OPTIONAL MATCH (t)-[e:TARGET|ATTRIBUTE]->(n)
WITH t, m, x, collect(CASE WHEN e IS NULL THEN null ELSE
    {{side: e.side, labels: labels(n), uid: n.uid}} END) AS ends
RETURN properties(t) AS t, {MODEL}, ends
ORDER BY t.name, t.method, spec, t.uid"""

_FORGET_FLAGS = """
MATCH (:SocialGroup)-[e:FLAGGED {apx_uid: $apx}]->(:Descriptor)
DELETE e"""
_READ_FLAGS = """
MATCH (g:SocialGroup)-[e:FLAGGED]->(d:Descriptor)
RETURN properties(e) AS e, g.name AS group, d.text AS descriptor, d.axis AS axis
ORDER BY e.model, e.apx_uid, group, e.z, descriptor"""

_READ_ITEMS = """
UNWIND $ids AS id
MATCH (i:BenchmarkItem {uid: id})-[e:READ_BY {asked: $asked}]->(:Model)
RETURN id, properties(i) AS i, properties(e) AS e"""
_SETTINGS = """
MATCH (:BenchmarkItem)-[e:READ_BY]->(:Model {uid: $model})
RETURN DISTINCT e.settings AS settings ORDER BY settings"""

# Vectors are derived: nodes beside the graph. Those of an encoder also have a label of their own,
# since an index holds vectors of one length.
_UNIQUE_VECTORS = """
CREATE CONSTRAINT kgbias_statementvector IF NOT EXISTS FOR (v:StatementVector)
REQUIRE (v.predicate_uid, v.object_uid, v.encoder) IS UNIQUE"""
# Quantized vectors shift a cosine by .01, enough to find what SQLite does not.
_INDEX_VECTORS = """
CREATE VECTOR INDEX {index} IF NOT EXISTS FOR (v:{label}) ON v.values
OPTIONS {{indexConfig: {{`vector.dimensions`: {dimensions},
`vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}}}}"""
_VECTORS = """
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

_LINKED = """
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

_FORGET_HELD = (
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
_READ_HELD = """
MATCH (:Run {uid: $run})-[e:HELD_AGAINST]->(t:StereotypeTable)
RETURN t.uid AS uid, properties(t) AS t, e.record AS record ORDER BY t.name, t.uid"""
_READ_SOUGHT = """
MATCH (:Run {uid: $run})-[e:SOUGHT]->(s:Stereotype)<-[:LISTS]-(:StereotypeTable {uid: $table})
RETURN properties(s) AS s, properties(e) AS e ORDER BY s.uid"""
_READ_MARKS = """
MATCH (run:Run {uid: $run})
MATCH (t:Triple)-[e:RECORDED {run: run.name}]->(s:Stereotype)
WHERE EXISTS { (s)<-[:LISTS]-(:StereotypeTable {uid: $table}) }
RETURN t.uid AS triple_id, s.uid AS stereotype_id, properties(e) AS e
UNION ALL
MATCH (run:Run {uid: $run})
MATCH (t:Triple)-[e:NEW_TO {run: run.name}]->(:StereotypeTable {uid: $table})
RETURN t.uid AS triple_id, null AS stereotype_id, {mark: $new} AS e"""

_FORGET_PLACES = f"""
MATCH (run:Run {{uid: $run}})-[p:PLACED]->(n)
DELETE p
WITH n, run WHERE n.placed_by = run.name
REMOVE n.placed_by, {", ".join(f"n.{p.name}" for p in properties(NodePlace))}"""
_SHOW = """
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


_AT_ONCE = 1_000  # vectors written in one transaction: 8 MB


class Findings(Neo4jSession):
    """See `kgbias.graph.store.Store`."""

    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        rows = [
            {
                "triple": s.triple_id,
                "value": s.value,
                "label": s.label,
                "names": sorted(s.details),
                "parts": [float(s.details[name]) for name in sorted(s.details)],
            }
            for s in scores
        ]
        statement = (
            _METRIC,
            {"run": run_id, "metric": metric.id, "properties": in_graph(metric)},
        )
        self.write(statement, (_SCORES, {"rows": rows[:BATCH], "metric": metric.id}))
        self.write_rows(_SCORES, rows[BATCH:], metric=metric.id)

    def scored(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
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
        return [record_of(Metric, row["m"]) for row in rows]

    def metrics(self, run_id: str) -> dict[str, Metric]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[:MEASURED_BY]->(m:Metric) "
            "RETURN properties(m) AS m ORDER BY m.measure",
            run=run_id,
        )
        return {row["m"]["measure"]: record_of(Metric, row["m"]) for row in rows}

    def save_group_scores(
        self, run_id: str, scores: Sequence[GroupScore], *, replacing: Collection[str] = ()
    ) -> None:
        forget = (_FORGET_FIGURES, {"run": run_id, "replaced": sorted(replacing)})
        self.write(forget, *of_edges(as_graph.figures(run_id, scores)))

    def group_scores(self, run_id: str) -> list[GroupScore]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[f:FIGURE]->(g:SocialGroup) "
            "RETURN g.uid AS group_id, properties(f) AS f ORDER BY f.measure, group_id, f.arm",
            run=run_id,
        )
        return [record_of(GroupScore, spread(row)) for row in rows]

    def save_topics(self, run_id: str, models: Sequence[TopicModel]) -> None:
        statements: list[Statement] = [(query, {"run": run_id}) for query in _FORGET_TOPICS]
        nodes, _ = as_graph.topic_models(run_id, models)
        topics = [
            values("Topic", t, uid=t.id) | {"plain": replace(t, given="").name}
            for model in models
            for t in model.topics
        ]
        statements += [*of_nodes(nodes), (_TOPICS, {"rows": topics})]
        for table in as_graph.of_topic_models(run_id, self.run_name(run_id), models):
            statements += of_edges(table, new=table[0] in ("ABOUT", "OUTLIER"))
        self.write(*statements)

    def topics(self, run_id: str) -> list[TopicModel]:
        if not (name := self.run_name(run_id)):
            return []
        about: dict[str, list[About]] = {}
        for row in self.read(_READ_ABOUT, name=name):
            about.setdefault(row["model"], []).append(record_of(About, row))
        return [
            record_of(
                TopicModel,
                {
                    **row,
                    "topics": tuple(record_of(Topic, {**t, **found}) for t, found in row["topics"]),
                    "about": tuple(sorted(about.get(row["uid"], ()), key=lambda a: a.triple_id)),
                },
            )
            for row in self.read(_READ_MODELS, run=run_id)
        ]

    def name_topic(self, topic_id: str, given: str) -> None:
        self.write((_NAME_TOPIC, {"uid": topic_id, "given": given}))

    def label(self, labels: Sequence[Label]) -> None:
        ids = sorted({x.triple_id for x in labels})
        there = {row["uid"] for row in self.read(_LABELLED, uids=ids)}
        kept = [x for x in labels if x.triple_id in there]
        self.write(*of_nodes(as_graph.raters(kept), kept=True), *of_edges(as_graph.labelled(kept)))

    def labels(self, measure: str | None = None) -> list[Label]:
        return [label_of(spread(row)) for row in self.read(_READ_LABELS, measure=measure)]

    def label_count(self, measure: str) -> int:
        return int(self.read(_COUNT_LABELS, measure=measure)[0]["n"])

    def save_attributions(self, attributions: Sequence[Attribution]) -> None:
        self.write_each(of_edges(as_graph.attributions(attributions)))

    def attributions(self, run_id: str) -> list[Attribution]:
        return [
            record_of(Attribution, spread(row) | {"metric": record_of(Metric, row["m"])})
            for row in self.read(_READ_ATTRIBUTIONS, run=run_id)
        ]

    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        kinds = ("group", "object", "topic")
        if kind not in kinds:
            raise UsageError(no_such("kind of node", kind, kinds))
        rows = self.read(
            f"MATCH (n:{LABELS[kind]}) WHERE n.uid IN $ids RETURN n.uid AS uid", ids=list(ids)
        )
        return {row["uid"] for row in rows}

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        ids = {"rows": [node.id for node in nodes]}
        self.keep_models(node.model for node in nodes)
        self.write(
            *of_nodes(as_graph.tests(nodes)),
            (_FORGET_EDGES, ids),
            *chain.from_iterable(map(of_edges, as_graph.of_tests(nodes))),
            *([(_OF_RUN, ids | {"run": run_id})] if run_id is not None else ()),
        )

    def associations(self, run_id: str | None = None) -> list[AssociationNode]:
        found = []
        for row in self.read(_READ_TESTS, run=run_id):
            edges = [
                AssociationEdge(end["side"], KINDS[end["labels"][0]], end["uid"])
                for end in row["ends"]
            ]
            edges.sort(key=lambda e: (e.side, e.kind, e.node_id))
            own = {"id": row["t"]["uid"], "edges": tuple(edges)}
            found.append(record_of(AssociationNode, spread(row) | own))
        return found

    def save_flags(self, flagged: Flagged) -> None:
        self.write((_FORGET_FLAGS, {"apx": flagged.id}))
        self.write_each(of_nodes(as_graph.groups(f.group for f in flagged.flags), kept=True))
        self.write_each(of_nodes(as_graph.descriptors([flagged]), kept=True))
        self.write_each(of_edges(as_graph.flags([flagged])))

    def flags(self) -> list[Flagged]:
        found = []
        rows = self.read(_READ_FLAGS)
        for _, same in groupby(rows, lambda row: row["e"]["apx_uid"]):
            own = list(same)
            flags = tuple(record_of(Flag, spread(row)) for row in own)
            found.append(record_of(Flagged, {**own[0]["e"], "flags": flags}))
        return found

    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        asked = {"asked": model.configured_id(settings), "settings": canonical_json(settings)}
        edges = [(s.item.id, model.id, values("READ_BY", s, **asked)) for s in scores]
        items = [values("BenchmarkItem", s.item, uid=s.item.id) for s in scores]
        self.keep_models([model])
        self.write_each(of_nodes(("BenchmarkItem", items)))
        self.write_each(of_edges(("READ_BY", "BenchmarkItem", "Model", edges)))

    def item_scores(
        self, model: ModelInfo, settings: Settings, ids: Sequence[str]
    ) -> dict[str, ItemScore]:
        rows = self.read(_READ_ITEMS, ids=list(ids), asked=model.configured_id(settings))
        return {
            row["id"]: record_of(
                ItemScore,
                {**row["e"], "item": record_of(Item, {**row["i"], "id": row["id"]})},
            )
            for row in rows
        }

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        return [read_settings(row["settings"]) for row in self.read(_SETTINGS, model=model.id)]

    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        name = self.run_name(run_id)
        old = [row["uid"] for row in self.read(_LINKED, name=name)]
        self._add_statements([end for x in links for end in x.ends])
        made = of_edges(as_graph.near_duplicates(name, links), new=True)
        self.write((_FORGET_LINKS, {"name": name}), *made, (_FORGET_STATEMENTS, {"uids": old}))

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        return [
            NearDuplicate(
                (row["p"], row["o"]), (row["head_p"], row["head_o"]), row["similarity"],
                row["method"],
            )
            for row in self.read(_READ_LINKS, run=run_id)
        ]  # fmt: skip

    def save_held(self, run_id: str, held: Held) -> None:
        name = self.run_name(run_id)
        of = {"run": run_id, "name": name, "table": storable(held.table.name)}
        statements: list[Statement] = [(query, of) for query in _FORGET_HELD]
        for nodes in as_graph.stereotypes([held]):
            statements += of_nodes(nodes)
        for table in as_graph.of_held(run_id, name, [held]):
            statements += of_edges(table, new=table[0] != "LISTS")
        self.write(*statements, *((query, {}) for query in _FORGET_STEREOTYPES))

    def held(self, run_id: str) -> list[Held]:
        found = []
        for row in self.read(_READ_HELD, run=run_id):
            table = record_of(StereotypeTable, row["t"])
            heard = tuple(
                record_of(
                    Heard,
                    h["e"] | {"entry": record_of(Stereotype, h["s"] | {"source": table.name})},
                )
                for h in self.read(_READ_SOUGHT, run=run_id, table=row["uid"])
            )
            marks = self.records(Mark, _READ_MARKS, run=run_id, table=row["uid"], new=NEW)
            marks.sort(key=lambda m: m.triple_id)
            own = {"table": table, "heard": heard, "marks": tuple(marks)}
            found.append(record_of(Held, {**row, **own}))
        return found

    def save_vectors(self, encoder: str, vectors: StatementVectors) -> None:
        if not vectors.statements:
            return
        label, index = vector_index(encoder)
        self.write((_UNIQUE_VECTORS, {}))
        if self.has_vector_index:
            dimensions = vectors.rows.shape[1]
            text = _INDEX_VECTORS.format(index=index, label=label, dimensions=dimensions)
            self.write((text, {}))
        kept = vectors.rows.astype(KEPT).astype(float).tolist()
        rows = [[*ends, row] for ends, row in zip(vectors.statements, kept, strict=True)]
        for start in range(0, len(rows), _AT_ONCE):
            given = {"rows": rows[start : start + _AT_ONCE], "encoder": encoder}
            self.write((_VECTORS.format(label=label), given))

    def encoders(self) -> list[str]:
        query = "MATCH (v:StatementVector) RETURN DISTINCT v.encoder AS encoder ORDER BY encoder"
        return [str(row["encoder"]) for row in self.read(query)]

    def vectors(self, run_id: str, encoder: str) -> StatementVectors:
        import numpy as np

        found = list(self.stream(_READ_VECTORS, run=run_id, encoder=encoder))
        rows = np.array([row["values"] for row in found], dtype=np.float32)
        ends = [(row["predicate"], row["object"]) for row in found]
        return StatementVectors(ends, rows.reshape(len(found), -1 if found else 0))

    def save_places(self, run_id: str, places: Sequence[NodePlace]) -> None:
        touched = {(p.kind, p.node_id) for p in (*self.places(run_id), *places)}
        self.write((_FORGET_PLACES, {"run": run_id}))
        for table in as_graph.places(run_id, places):
            self.write_each(of_edges(table, new=True))
        for kind in ("group", "object"):
            ids = sorted(id for found, id in touched if found == kind)
            self.write_rows(_SHOW.format(label=LABELS[kind]), ids)

    def places(self, run_id: str) -> list[NodePlace]:
        return self.records(NodePlace, _READ_PLACES, run=run_id)
