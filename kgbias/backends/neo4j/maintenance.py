"""Maintenance of a server's graph: deleting runs, and checking."""

from pathlib import Path
from typing import NoReturn

from kgbias.backends.neo4j.crawls import Neo4jCrawls
from kgbias.backends.neo4j.findings import Neo4jFindings
from kgbias.backends.neo4j.session import BATCH_ROWS, MATCH_SPEC, Row
from kgbias.errors import UsageError
from kgbias.graph import shape
from kgbias.graph.decisions import DECISION_COLUMNS
from kgbias.graph.edge_records import EDGE_RECORDS
from kgbias.graph.integrity import Fault, find_wrong_ids
from kgbias.graph.labels import LABEL_CONTENT
from kgbias.graph.node_records import NodeRecord, checked_nodes, held_nodes
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.wording import how

# When a node stays although the run goes: something else that stays holds it.
_TRIPLE_STAYS = """(NOT t.uid IN $read AND
        NOT EXISTS { (t)<-[:YIELDED|SHOWN]-(:Generation)-[:IN]->(run) }
    OR EXISTS { (t)<-[:YIELDED|SHOWN]-(:Generation)-[:IN]->(o:Run) WHERE o <> run })"""
_TEST_STAYS = """(NOT EXISTS { (x)<-[:TESTED]-(run) }
    OR EXISTS { (x)<-[:TESTED]-(o:Run) WHERE o <> run })"""
_HELD_BY_TRIPLE = f"EXISTS {{ (n)<-[:SUBJECT|PREDICATE|OBJECT]-(t:Triple) WHERE {_TRIPLE_STAYS} }}"
_HELD_BY_TEST = f"EXISTS {{ (n)<-[:TARGET|ATTRIBUTE]-(x:AssociationTest) WHERE {_TEST_STAYS} }}"
_HELD_BY_PROBE_SET = (
    f"""EXISTS {{ (n)<-[:ASKS]-(:ProbeSet)<-[:ON]-(x:SofaResult) WHERE {_TEST_STAYS} }}"""
)


def _list_run_edges(label: str) -> str:
    """The types of edges at nodes of a label that name their run."""
    return "|".join(
        edge.type for edge in shape.run_indexed_edges() if any(label in ends for ends in edge.ends)
    )


_STATEMENT_EDGES = _list_run_edges("Statement")
_RUN_TO_GROUP = "|".join(e.type for e in shape.EDGES if ("Run", "SocialGroup") in e.ends)
_GROUP_EDGES = "|".join(
    e.type
    for e in EDGE_RECORDS.values()
    if "SocialGroup" in (e.start, e.end) and not e.starts_at_run
)


def _statement_stays(variable: str) -> str:
    return f"""({_HELD_BY_PROBE_SET.replace("(n)", f"({variable})")}
    OR EXISTS {{ ({variable})-[p:{_STATEMENT_EDGES}]-() WHERE p.run <> run.name }})"""


# A union for each type, whose edges are indexed by their run.
_STATEMENTS_OF_RUN = "\n       UNION ".join(
    f"MATCH (n:Statement)-[:{edge} {{run: run.name}}]-() RETURN n"
    for edge in _STATEMENT_EDGES.split("|")
)
_MATCH_PROBE_SETS = "MATCH (run)-[:TESTED]->(:SofaResult)-[:ON]->(:ProbeSet)-[:ASKS]->"

_MATCH_RUN_TRIPLES = """
MATCH (run:Run {uid: $run})
CALL (run) { MATCH (run)<-[:IN]-(:Generation)-[:YIELDED|SHOWN]->(t:Triple) RETURN t
       UNION MATCH (t:Triple) WHERE t.uid IN $read RETURN t }
WITH DISTINCT run, t"""


def _build_part_query(label: str, other_holders: str) -> str:
    """The predicates or objects that only this run holds; `other_holders` is what else may hold
    one."""
    edge, uid = label.upper(), f"{label.lower()}_uid"
    return f"""
MATCH (run:Run {{uid: $run}})
CALL (run) {{ MATCH (run)<-[:IN]-(:Generation)-[:YIELDED|SHOWN]->(:Triple)-[:{edge}]->(n)
               RETURN n
       UNION MATCH (t:Triple)-[:{edge}]->(n) WHERE t.uid IN $read RETURN n
       UNION MATCH ()-[:PROBED_BEFORE {{run: run.name}}]->(s)
             WITH DISTINCT s.{uid} AS uid MATCH (n:{label} {{uid: uid}}) RETURN n }}
WITH DISTINCT run, n WHERE NOT ({_HELD_BY_TRIPLE}{other_holders}
    OR EXISTS {{ (s:Statement {{{uid}: n.uid}}) WHERE {_statement_stays("s")} }})"""


def _build_held_query(node: NodeRecord) -> str:
    """The nodes of a kind that runs hold which only this one has, and no edge of another."""
    matches = [f"MATCH (run)-[:{node.held_by}]->(n:{node.label}) RETURN n"]
    stays = [f"EXISTS {{ (n)<-[:{node.held_by}]-(o:Run) WHERE o <> run }}"]
    for edge in _list_run_edges(node.label).split("|") if _list_run_edges(node.label) else ():
        matches.append(f"MATCH (n:{node.label})-[:{edge} {{run: run.name}}]-() RETURN n")
        stays.append(f"EXISTS {{ (n)-[e:{edge}]-() WHERE e.run <> run.name }}")
    return f"""
MATCH (run:Run {{uid: $run}})
CALL (run) {{ {" UNION ".join(matches)} }}
WITH DISTINCT run, n WHERE NOT ({" OR ".join(stays)})"""


# What only this run holds, label by label, in order of deletion. A node goes before whatever leads
# to it: the next deletion then finishes one that was interrupted.
_DELETED_FIRST = {
    "StatementVector": f"""{_MATCH_RUN_TRIPLES}
WITH DISTINCT run, t WHERE NOT {_TRIPLE_STAYS}
MATCH (p:Predicate)<-[:PREDICATE]-(t)-[:OBJECT]->(o:Object)
MATCH (n:StatementVector {{predicate_uid: p.uid, object_uid: o.uid}})
WHERE n.encoder IS NOT NULL  // so that their index finds it
WITH DISTINCT run, n, p, o
WHERE NOT EXISTS {{ (p)<-[:PREDICATE]-(t:Triple)-[:OBJECT]->(o) WHERE {_TRIPLE_STAYS} }}
WITH DISTINCT run, n""",
    "Object": _build_part_query(
        "Object",
        f" OR {_HELD_BY_TEST} OR EXISTS {{ (n)<-[:PLACED]-(o:Run) WHERE o <> run }}",
    ),
    "Predicate": _build_part_query("Predicate", ""),
    "Name": """
MATCH (run:Run {uid: $run})
CALL (run) { MATCH (n:Name)-[:PROBED_BEFORE {run: run.name}]->() RETURN n
       UNION MATCH (run)-[:SEEDED]->(g)<-[:NAME_OF]-(n)
                      WHERE NOT EXISTS { (g)<-[:SEEDED]-(o:Run) WHERE o <> run } RETURN n }
WITH DISTINCT run, n
WHERE NOT EXISTS { (n)-[p:PROBED_BEFORE]->() WHERE p.run <> run.name }""",
    "Statement": f"""
MATCH (run:Run {{uid: $run}})
CALL (run) {{ {_STATEMENTS_OF_RUN}
       UNION MATCH (run)<-[:IN]-(:Generation)-[:YIELDED|SHOWN]->(:Triple)-[:STATES]->(n)
                      RETURN n
       UNION MATCH (t:Triple)-[:STATES]->(n) WHERE t.uid IN $read RETURN n
       UNION {_MATCH_PROBE_SETS}(n:Statement) RETURN n }}
WITH DISTINCT run, n WHERE NOT {_statement_stays("n")}""",
    "Topic": f"""
MATCH (run:Run {{uid: $run}})-[:MODELLED_BY]->(:TopicModel)-[:FOUND]->(n:Topic)
WITH DISTINCT run, n WHERE NOT ({_HELD_BY_TEST}
    OR EXISTS {{ (n)<-[:FOUND]-(:TopicModel)<-[:MODELLED_BY]-(o:Run) WHERE o <> run }})""",
    "Category": f"""
MATCH (run:Run {{uid: $run}})
CALL (run) {{ MATCH (run)-[s:SEEDED]->() MATCH (n:Category {{name: s.category}}) RETURN n
       UNION MATCH (run)-[:TESTED]->(:SofaResult)-[:SCORES]->(n:Category) RETURN n }}
WITH DISTINCT run, n
WHERE NOT (EXISTS {{ (n)<-[:SCORES]-(x:SofaResult) WHERE {_TEST_STAYS} }}
    OR EXISTS {{ (o:Run)-[:SEEDED {{category: n.name}}]->() WHERE o <> run }})""",
    "SocialGroup": f"""
MATCH (run:Run {{uid: $run}})
CALL (run) {{ MATCH (run)-[:SEEDED]->(n:SocialGroup) RETURN n
       UNION MATCH (run)<-[:IN]-(:Generation)-[:YIELDED|SHOWN]->(:Triple)
                            -[:SUBJECT]->(n:SocialGroup) RETURN n
       UNION {_MATCH_PROBE_SETS}(n:SocialGroup) RETURN n }}
WITH DISTINCT run, n WHERE NOT ({_HELD_BY_TRIPLE} OR {_HELD_BY_TEST} OR {_HELD_BY_PROBE_SET}
    OR EXISTS {{ (n)-[:FLAGGED]->() }}
    OR EXISTS {{ (n)<-[:{_RUN_TO_GROUP}]-(o:Run) WHERE o <> run }}
    OR EXISTS {{ (n)<-[p:{_GROUP_EDGES}]-() WHERE p.run <> run.name }}
    OR EXISTS {{ (n)<-[:IN]-(:Profile)<-[:WROTE]-(o:Run) WHERE o <> run }})""",
    "Metric": f"""
MATCH (run:Run {{uid: $run}})
MATCH (n:Metric) WHERE NOT EXISTS {{ (n)<-[:MEASURED_BY]-(o:Run) WHERE o <> run }}
OPTIONAL MATCH (n)<-[:SCORED|ATTRIBUTED]-(t:Triple)
WITH run, n, t, CASE WHEN t IS NULL THEN false ELSE {_TRIPLE_STAYS} END AS stays
WITH run, n, count(t) AS scored, sum(CASE WHEN stays THEN 1 ELSE 0 END) AS kept
WHERE kept = 0 AND (scored > 0 OR EXISTS {{ (run)-[:MEASURED_BY]->(n) }})
WITH DISTINCT run, n""",
    "Rater": f"""
MATCH (run:Run {{uid: $run}})
MATCH (n:Rater) WHERE NOT EXISTS {{ (n)-[:LABELLED]->(t:Triple) WHERE {_TRIPLE_STAYS} }}
WITH DISTINCT run, n""",
    "GivenName": """
MATCH (run:Run {uid: $run})-[:WROTE]->(:Profile)-[:GIVEN]->(n:GivenName)
WITH DISTINCT run, n
WHERE NOT EXISTS { (n)<-[:GIVEN]-(:Profile)<-[:WROTE]-(o:Run) WHERE o <> run }""",
    "Stereotype": """
MATCH (run:Run {uid: $run})-[:SOUGHT]->(n:Stereotype)
WITH DISTINCT run, n WHERE NOT EXISTS { (n)<-[:SOUGHT]-(o:Run) WHERE o <> run }""",
    "StereotypeTable": """
MATCH (run:Run {uid: $run})-[:HELD_AGAINST]->(n:StereotypeTable)
WITH DISTINCT run, n WHERE NOT EXISTS { (n)<-[:HELD_AGAINST]-(o:Run) WHERE o <> run }""",
    **{node.label: _build_held_query(node) for node in held_nodes()},
    "Triple": f"""{_MATCH_RUN_TRIPLES}
WITH DISTINCT run, t, t AS n WHERE NOT {_TRIPLE_STAYS}""",
    "TopicModel": "MATCH (:Run {uid: $run})-[:MODELLED_BY]->(n:TopicModel) WITH n",
    "Passage": "MATCH (:Run {uid: $run})-[:HOLDS]->(n:Passage) WITH n",
    "Decision": "MATCH (:Run {uid: $run})-[:REVIEWED]->(n:Decision) WITH n",
    "Profile": "MATCH (:Run {uid: $run})-[:WROTE]->(n:Profile) WITH n",
    "Generation": "MATCH (:Run {uid: $run})<-[:IN]-(n:Generation) WITH n",
    "ProbeSet": f"""
MATCH (run:Run {{uid: $run}})-[:TESTED]->(:SofaResult)-[:ON]->(n:ProbeSet)
WITH DISTINCT run, n
WHERE NOT EXISTS {{ (n)<-[:ON]-(x:SofaResult) WHERE {_TEST_STAYS} }}""",
}
# The last part goes all at once: a run without its model could not be found again.
_DELETED_LAST = {
    "Model": f"""
MATCH (run:Run {{uid: $run}})
CALL (run) {{ MATCH (run)-[:OF|PROBED_WITH|PUT_TO|BELIEVED_BY]->(n:Model) RETURN n
       UNION MATCH (run)-[:TESTED]->()-[:OF]->(n:Model) RETURN n }}
WITH DISTINCT run, n
WHERE NOT (EXISTS {{ (n)<-[:OF|PROBED_WITH|PUT_TO|BELIEVED_BY]-(o:Run) WHERE o <> run }}
    OR EXISTS {{ (n)<-[:READ_BY]-() }}
    OR EXISTS {{ (n)<-[:OF]-(x:AssociationTest|SofaResult) WHERE {_TEST_STAYS} }})""",
    "SofaResult": f"""
MATCH (run:Run {{uid: $run}})-[:TESTED]->(x:SofaResult)
WITH DISTINCT run, x, x AS n WHERE NOT {_TEST_STAYS}""",
    "AssociationTest": f"""
MATCH (run:Run {{uid: $run}})-[:TESTED]->(x:AssociationTest)
WITH DISTINCT run, x, x AS n WHERE NOT {_TEST_STAYS}""",
    "Run": "MATCH (n:Run {uid: $run}) WITH n",
}
_FORGET_SPECS = "MATCH (x:Spec) WHERE NOT EXISTS { MATCH (:Model {uid: x.uid}) } DELETE x"
# Names and the statements probed after them lead to each other, so they go together.
_DELETE_NAMES = f"""
MATCH (run:Run {{uid: $run}})
CALL (run) {{ OPTIONAL MATCH ()-[:PROBED_BEFORE {{run: run.name}}]->(n)
       WITH DISTINCT run, n WHERE n IS NOT NULL AND NOT {_statement_stays("n")}
       RETURN collect(n) AS statements }}
CALL () {{ {_DELETED_FIRST["Name"]} RETURN collect(n) AS names }}
FOREACH (n IN statements + names | DETACH DELETE n)"""
_DELETE_SEED_EDGES = """
MATCH (run:Run {uid: $run})-[s:SEEDED]->(g:SocialGroup)
MATCH (g)-[e:IN_CATEGORY]->(:Category {name: s.category})
WHERE NOT EXISTS { (o:Run)-[:SEEDED {category: s.category}]->(g) WHERE o <> run }
DELETE e"""
_READ_ANSWER_KEYS = """
MATCH (:Run {uid: $run})<-[:IN]-(n:Generation) WHERE n.answer_key <> ''
RETURN DISTINCT n.answer_key AS key ORDER BY key"""
_READ_CHOICE_KEYS = """
MATCH (run:Run) WHERE (run.uid = $run) = $own
MATCH ()-[e:CHOSEN {run: run.name}]->()
UNWIND e.answers + e.others AS key
RETURN DISTINCT key ORDER BY key"""
_READ_OTHER_KEYS = """
MATCH (o:Run) WHERE o.uid <> $run
MATCH (o)<-[:IN]-(n:Generation) WHERE n.answer_key <> ''
RETURN n.answer_key AS key ORDER BY n.uid"""

# what is wrong -> the nodes that have this fault
_REFERENCE_CHECKS = {
    "Triple without its group": "MATCH (n:Triple) WHERE NOT EXISTS { (n)-[:SUBJECT]->() }",
    "Triple without its predicate": "MATCH (n:Triple) WHERE NOT EXISTS { (n)-[:PREDICATE]->() }",
    "Triple without its object": "MATCH (n:Triple) WHERE NOT EXISTS { (n)-[:OBJECT]->() }",
    "Generation without its run": "MATCH (n:Generation) WHERE NOT EXISTS { (n)-[:IN]->(:Run) }",
    "Generation whose group is missing": "MATCH (n:Generation) "
    "WHERE NOT EXISTS { MATCH (:SocialGroup {uid: n.group_uid}) }",
    "Run without its model": "MATCH (n:Run) WHERE NOT EXISTS { (n)-[:OF]->(:Model) }",
    "AssociationTest without its model": "MATCH (n:AssociationTest) "
    "WHERE NOT EXISTS { (n)-[:OF]->(:Model) }",
    "Topic without a topic model": "MATCH (n:Topic) "
    "WHERE NOT EXISTS { (n)<-[:FOUND|ATTRIBUTE]-() }",
    "Statement whose predicate is missing": "MATCH (n:Statement) "
    "WHERE n.predicate_uid IS NOT NULL "
    "AND NOT EXISTS { MATCH (:Predicate {uid: n.predicate_uid}) }",
    "Statement whose object is missing": "MATCH (n:Statement) "
    "WHERE n.object_uid IS NOT NULL AND NOT EXISTS { MATCH (:Object {uid: n.object_uid}) }",
    "Passage without a run": "MATCH (n:Passage) WHERE NOT EXISTS { (n)<-[:HOLDS]-(:Run) }",
    "Stereotype without its table": "MATCH (n:Stereotype) "
    "WHERE NOT EXISTS { (n)<-[:LISTS]-(:StereotypeTable) }",
    "Profile without its name": "MATCH (n:Profile) WHERE NOT EXISTS { (n)-[:GIVEN]->() }",
}
_SPEC_COLUMNS = "coalesce(x.spec, m.name), m.revision"
# label -> a match of its nodes, and what their ids are computed from
# (kgbias.graph.integrity.ID_BUILDERS)
_ID_QUERIES = {
    "SocialGroup": ("(n:SocialGroup)", "n.name"),
    "Predicate": ("(n:Predicate)", "n.text"),
    "Object": ("(n:Object)", "n.text"),
    "Triple": (
        "(p:Predicate)<-[:PREDICATE]-(n:Triple)-[:OBJECT]->(o:Object)",
        "n.group_uid, p.uid, o.uid",
    ),
    "Statement": (
        "(n:Statement) WHERE n.predicate_uid IS NOT NULL",
        "n.predicate_uid, n.object_uid",
    ),
    "Model": (f"(n:Model) WITH n, n AS m {MATCH_SPEC}", _SPEC_COLUMNS),
    "Run": (
        f"(n:Run)-[:OF]->(m:Model) {MATCH_SPEC}",
        f"n.kind, n.config, n.settings, {_SPEC_COLUMNS}",
    ),
    "Generation": ("(n:Generation)-[:IN]->(run:Run)", "run.uid, n.path"),
    "Topic": ("(n:Topic)", "n.category, n.words"),
    "TopicModel": ("(n:TopicModel)<-[:MODELLED_BY]-(run:Run)", "run.uid, n.category"),
    "Passage": ("(n:Passage)<-[:HOLDS]-(run:Run)", "run.uid, n.name"),
    "GivenName": ("(n:GivenName)", "n.name"),
    "Descriptor": ("(n:Descriptor)", "n.text"),
    "Name": ("(n:Name)", "n.text"),
    "Profile": ("(n:Profile)<-[:WROTE]-(run:Run)", "run.uid, n.path"),
    "Label": (
        "(r:Rater)-[n:LABELLED]->(t:Triple)",
        f"t.uid, r.uid, {', '.join(f'n.{name}' for name in LABEL_CONTENT)}",
    ),
    "Stereotype": (
        "(n:Stereotype)<-[:LISTS]-(table:StereotypeTable)",
        "table.uid, n.people, n.attribute",
    ),
    "Decision": ("(n:Decision)", ", ".join(f"n.{name}" for name in DECISION_COLUMNS)),
    **{
        node.label: (f"(n:{node.label})", ", ".join(f"n.{name}" for name in node.checked))
        for node in checked_nodes()
    },
}


class Neo4jMaintenance(Neo4jCrawls, Neo4jFindings):
    def delete(self, run_id: str, *, dry_run: bool = False) -> dict[str, int]:
        read_ids = [d.read.id for d in self.decisions(run_id) if d.read]
        parameters = {"run": run_id, "read": read_ids}
        answers = self._find_own_answers(run_id)
        deleted_counts = {"Answer": len(answers)}
        for label, match in (_DELETED_FIRST | _DELETED_LAST).items():
            (row,) = self.read(f"{match} RETURN count(n) AS n", **parameters)
            deleted_counts[label] = row["n"]
        if not dry_run:
            self._delete(run_id, parameters, answers)
        return shape.order_by_shape(deleted_counts)

    def _delete(self, run_id: str, parameters: Row, answers: list[str]) -> None:
        self.save_centralities(run_id, ())
        self.write_rows("UNWIND $rows AS key MATCH (n:Answer {key: key}) DETACH DELETE n", answers)
        for label, match in _DELETED_FIRST.items():
            # Their edges to categories are found by the run's seeds, which go with them.
            if label == "SocialGroup":
                self.write((_DELETE_SEED_EDGES, parameters))
            # The queries above find nodes by the edges that name the run; those below do not.
            if label == "TopicModel":
                self._delete_edges(run_id)
            if label == "Name":
                self.write((_DELETE_NAMES, parameters))
                continue
            self.write_alone(
                f"{match} CALL (n) {{ DETACH DELETE n }} IN TRANSACTIONS OF {BATCH_ROWS} ROWS",
                **parameters,
            )
        last_queries = [
            (f"{match} DETACH DELETE n", parameters) for match in _DELETED_LAST.values()
        ]
        self.write(*last_queries, (_FORGET_SPECS, {}))

    def _delete_edges(self, run_id: str) -> None:
        """The edges that name their run."""
        for row in self.read("MATCH (r:Run {uid: $run}) RETURN r.name AS name", run=run_id):
            for edge in shape.run_indexed_edges():
                self.write_alone(
                    f"MATCH ()-[e:{edge.type} {{run: $name}}]->() "
                    f"CALL (e) {{ DELETE e }} IN TRANSACTIONS OF {BATCH_ROWS} ROWS",
                    name=row["name"],
                )

    def _find_own_answers(self, run_id: str) -> list[str]:
        """The keys of the answers that no other run read. Those that others read are streamed: keys
        are not indexed on generations."""
        keys = {row["key"] for row in self.stream(_READ_ANSWER_KEYS, run=run_id)}
        keys |= {row["key"] for row in self.stream(_READ_CHOICE_KEYS, run=run_id, own=True)}
        if keys:
            for row in self.stream(_READ_CHOICE_KEYS, run=run_id, own=False):
                keys.discard(row["key"])
            for row in self.stream(_READ_OTHER_KEYS, run=run_id):
                keys.discard(row["key"])
        existing_keys: list[str] = []
        sorted_keys = sorted(keys)
        for start in range(0, len(sorted_keys), BATCH_ROWS):
            existing_keys += self.answers(sorted_keys[start : start + BATCH_ROWS])
        return existing_keys

    def find_faults(self, progress: Progress | None = None) -> list[Fault]:
        progress = progress or SilentProgress()
        constraint_names = {row["name"] for row in self.read("SHOW CONSTRAINTS YIELD name")}
        faults = [
            Fault("reference", f"{n.label} may have two nodes of one {n.key}: open the store again")
            for n in shape.NODES
            if shape.constraint_name(n) not in constraint_names
        ]
        progress.stage("references", len(_REFERENCE_CHECKS))
        for fault_text, match in _REFERENCE_CHECKS.items():
            (row,) = self.read(f"{match} RETURN count(n) AS count, min(n.uid) AS example")
            if row["count"]:
                faults.append(Fault("reference", fault_text, row["count"], row["example"]))
            progress.advance()
        progress.stage("ids", len(_ID_QUERIES))
        for label, (match, parts) in _ID_QUERIES.items():
            rows = self.stream(f"MATCH {match} RETURN [n.uid, {parts}] AS row ORDER BY n.uid")
            faults += find_wrong_ids(label, (tuple(row["row"]) for row in rows))
            progress.advance()
        return faults

    def compact(self, progress: Progress | None = None) -> NoReturn:
        raise UsageError(
            f"{self.url} is a server, which reuses freed space by itself; once it is stopped, "
            "`neo4j-admin database copy` writes a smaller copy"
        )

    def backup(self, path: Path, progress: Progress | None = None) -> NoReturn:
        raise UsageError(
            f"{self.url} is a server: stop it and run `neo4j-admin database dump neo4j "
            "--to-path=FOLDER`, or copy its runs to a file with "
            f"{how('study.store.push(FILE)', f'`kgbias push --from {self.url} --to FILE`')}"
        )
