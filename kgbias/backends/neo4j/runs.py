"""Runs with their models, categories and groups; review decisions; and STEREOTYPE edges from groups
to objects, which are derived: one for each triple, run and arm makes a picture readable. They are
rebuilt once when a run's status changes or its scores are complete.

A batch left with a provider is a node that is not part of the graph.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import chain

from kgbias.backends.neo4j.leases import NodeLease
from kgbias.backends.neo4j.session import (
    MATCH_SPEC,
    MODEL_COLUMNS,
    Neo4jSession,
    ParametrisedQuery,
    build_edge_queries,
    build_node_queries,
    read_model,
)
from kgbias.errors import RunNotFound, no_such
from kgbias.graph import graph_tables
from kgbias.graph.decisions import Decision, decision_properties, read_decision
from kgbias.graph.integrity import check_run_unique
from kgbias.graph.record import build_record, to_properties
from kgbias.graph.shape import DERIVED_MEASURES, TONES
from kgbias.graph.types import (
    Answer,
    Batch,
    Category,
    ChangeToken,
    Group,
    Run,
    RunStatus,
    RunSummary,
    what_makes,
)
from kgbias.io.resources import __version__

_READ_RUN = f"""
MATCH (run:Run {{name: $name}})-[:OF]->(m:Model)
{MATCH_SPEC}
OPTIONAL MATCH (run)-[seeded:SEEDED]->(group:SocialGroup)
WITH run, m, x, seeded, group ORDER BY seeded.position
RETURN properties(run) AS run, {MODEL_COLUMNS},
       collect({{name: group.name, category: seeded.category, variants: group.variants,
                names: seeded.names}}) AS groups
"""

_CREATE_RUN = """
OPTIONAL MATCH (earlier:Run) WITH coalesce(max(earlier.seq) + 1, 0) AS seq
WITH seq MATCH (m:Model {uid: $model})
MERGE (r:Run {uid: $uid}) ON CREATE SET r += $run, r.seq = seq
MERGE (r)-[:OF]->(m)"""
# Cypher 5 sorts rows, not lists: `variants` are taken apart and collected again.
_CREATE_SEEDS = """
MATCH (r:Run {uid: $uid})
UNWIND $rows AS row
MERGE (g:SocialGroup {uid: row.uid}) ON CREATE SET g.name = row.name
WITH r, row, g, [v IN row.variants WHERE NOT v IN coalesce(g.variants, [])]
    + coalesce(g.variants, []) AS names
CALL (names) { UNWIND names AS n WITH n ORDER BY n RETURN collect(n) AS sorted }
SET g.variants = sorted
MERGE (c:Category {name: row.category})
MERGE (g)-[:IN_CATEGORY]->(c)
MERGE (r)-[s:SEEDED {position: row.position}]->(g)
SET s.category = row.category, s.names = row.names"""

# Goes over the run three times: outcomes are counted together before they are told apart, and
# nothing that an import lacks is looked up.
_READ_SUMMARIES = """
CALL (run) {
    MATCH (g:Generation)-[:IN]->(run)
    WHERE g.strategy <> 'reading'
    WITH g.outcome AS outcome, g.attempt > 0 AS again, count(*) AS times
    RETURN sum(times) AS generations,
           sum(CASE outcome WHEN 'refused' THEN times ELSE 0 END) AS refused,
           sum(CASE outcome WHEN 'unparsable' THEN times ELSE 0 END) AS invalid,
           sum(CASE outcome WHEN 'echo' THEN times ELSE 0 END) AS echoes,
           sum(CASE outcome WHEN 'nonsense' THEN times ELSE 0 END) AS nonsense,
           sum(CASE outcome WHEN 'failed' THEN times ELSE 0 END) AS failed,
           sum(CASE WHEN again THEN times ELSE 0 END) AS resampled
}
CALL (run) {
    MATCH (g:Generation)-[:IN]->(run)
    MATCH (g)-[y:YIELDED]->(t:Triple)
    RETURN count(DISTINCT t) AS triples, sum(y.count) AS statements
}
CALL (run) {
    MATCH (g:Generation)-[:IN]->(run)
    WHERE g.answer_key <> ''
    WITH DISTINCT g.answer_key AS key
    MATCH (a:Answer {key: key})
    RETURN sum(a.prompt_tokens) AS prompt_tokens, sum(a.completion_tokens) AS completion_tokens
}
RETURN run.name AS name, triples, statements, generations, refused, invalid, echoes, nonsense,
       failed, resampled, prompt_tokens, completion_tokens, run.seconds AS seconds
ORDER BY run.seq
"""


_FORGET_STEREOTYPE_EDGES = f"""
MATCH ()-[s:STEREOTYPE|{"|".join(TONES).upper()} {{run: $name}}]->()
CALL (s) {{ DELETE s }} IN TRANSACTIONS OF 10000 ROWS"""

# POSITIVE, NEUTRAL and NEGATIVE edges stand beside those, since Neo4j Browser colours edges by type
# alone.
# FOREACH over a list of one or none is Cypher's `if`.
_CREATE_TONE_EDGES = "WITH g, o, s, regard.label AS tone\n" + "\n".join(
    f"FOREACH (_ IN CASE WHEN tone = '{tone}' THEN [1] ELSE [] END | "
    f"CREATE (g)-[e:{tone.upper()}]->(o) SET e = properties(s))"
    for tone in TONES
)
_MATCH_SCORE = "OPTIONAL MATCH (t)-[{measure}:SCORED]->(:Metric {{uid: ${measure}}})"
_DERIVE_EDGES = """
MATCH (run:Run {{uid: $run}})<-[:IN]-(n:Generation)-[y:YIELDED]->(t:Triple)
WITH run, t, n.arm AS arm, sum(y.count) AS count
CALL (run, t, arm, count) {{
    MATCH (t)-[:SUBJECT]->(g:SocialGroup)
    MATCH (t)-[:PREDICATE]->(p:Predicate)
    MATCH (t)-[:OBJECT]->(o:Object)
    {scores}
    CREATE (g)-[s:STEREOTYPE {{run: run.name, predicate: p.text, count: count, {values}
        triple: t.uid, arm: arm, language: run.language}}]->(o)
    {toned}
}} IN TRANSACTIONS OF 10000 ROWS"""


def _build_derive_query(measures: Collection[str]) -> str:
    """The query that makes the edges of a run with metrics for these measures: what was not
    measured is not looked for at each triple."""
    return _DERIVE_EDGES.format(
        scores="\n    ".join(_MATCH_SCORE.format(measure=m) for m in measures),
        values="".join(f"{m}: {m}.value, " for m in measures),
        toned=_CREATE_TONE_EDGES if "regard" in measures else "",
    )


# Recording a round again may bring back a generation that was gone.
_TIE_DECISIONS = """
MATCH (:Run {uid: $run})-[:REVIEWED]->(d:Decision)
MATCH (n:Generation {uid: d.generation_uid})
MERGE (d)-[:DECIDES]->(n)"""


def build_decision_queries(run_id: str, decisions: Sequence[Decision]) -> list[ParametrisedQuery]:
    """The writes of these decisions, without their effects on generations."""
    return [
        *build_node_queries(("Decision", map(decision_properties, decisions)), keep_existing=True),
        *chain.from_iterable(
            map(build_edge_queries, graph_tables.decision_edges(run_id, decisions))
        ),
    ]


def build_decision_tie(run_id: str) -> ParametrisedQuery:
    """The write that ties a run's decisions to the generations that exist."""
    return _TIE_DECISIONS, {"run": run_id}


class Neo4jRuns(Neo4jSession):
    """See `kgbias.graph.store.Store`."""

    def begin_run(self, run: Run) -> Run:
        known_runs = self.read(
            "MATCH (r:Run) WHERE r.name = $name OR r.uid = $uid "
            "RETURN r.name AS name, r.uid AS uid",
            name=run.name,
            uid=run.id,
        )
        check_run_unique(run, ((row["name"], row["uid"]) for row in known_runs))
        if not known_runs:
            self._create_run(run)
        return self.find_run(run.name)

    def _create_run(self, run: Run) -> None:
        created_fields = {
            "created": run.created or datetime.now(UTC).isoformat(timespec="seconds"),
            "version": run.version or __version__,
        }
        groups = [
            to_properties(group)
            | {"uid": group.id, "category": group.category, "position": position}
            | {"names": list(group.own_names) or None}
            for position, group in enumerate(run.groups)
        ]
        run_parameters = {"uid": run.id, "run": to_properties(run) | created_fields}
        self.keep_models([run.model])
        self.write(
            (_CREATE_RUN, run_parameters | {"model": run.model.id}),
            *build_node_queries(("Category", map(to_properties, run.categories))),
            (_CREATE_SEEDS, {"uid": run.id, "rows": groups}),
        )

    def lease(self, run_id: str) -> NodeLease:
        return NodeLease(self, run_id)

    def set_status(self, run_id: str, status: RunStatus) -> None:
        self.write(
            ("MATCH (r:Run {uid: $uid}) SET r.status = $status", {"uid": run_id, "status": status})
        )
        if status != "running":
            self.derive_edges(run_id)

    def add_work(self, run_id: str, seconds: float) -> None:
        self.write(
            (
                "MATCH (r:Run {uid: $uid}) SET r.seconds = coalesce(r.seconds, 0.0) + $seconds",
                {"uid": run_id, "seconds": seconds},
            )
        )

    def run_seconds(self, run_id: str) -> float | None:
        rows = self.read("MATCH (r:Run {uid: $uid}) RETURN r.seconds AS seconds", uid=run_id)
        return next((row["seconds"] for row in rows), None)

    def find_run(self, name: str | None = None, kind: str | None = None) -> Run:
        run_rows = self.read(
            "MATCH (r:Run) RETURN r.name AS name, r.kind AS kind, "
            "EXISTS {(r)<-[:IN]-(:Generation)} AS answered, "
            "EXISTS {(r)<-[:IN]-(:Generation)-[:YIELDED]->()} AS said ORDER BY r.seq"
        )
        names = [row["name"] for row in run_rows]
        if not names:
            raise RunNotFound(f"{self.url} has no runs: crawl or import one first")
        if name is not None and name not in names:
            raise RunNotFound(no_such("run", name, names, f" in {self.url}"))
        if name is None and kind is not None:
            run_rows = [row for row in run_rows if row["kind"] == kind]
            if not run_rows:
                raise RunNotFound(f"{self.url} has no run of {kind}: {what_makes(kind)}")
        ranked = sorted(run_rows, key=lambda row: (row["said"], row["answered"]))  # stable: by age
        newest = [row["name"] for row in ranked]
        return self._read_run(newest[-1] if name is None else name)

    def runs(self) -> list[Run]:
        rows = self.read("MATCH (r:Run) RETURN r.name AS name ORDER BY r.seq")
        return [self._read_run(row["name"]) for row in rows]

    def _read_run(self, name: str) -> Run:
        (row,) = self.read(_READ_RUN, name=name)
        groups = tuple(
            Group.from_node(g["name"], g["category"], g["variants"] or (), g["names"] or ())
            for g in row["groups"]
            if g["name"] is not None
        )
        other_fields = {
            "model": read_model(row),
            "groups": groups,
            "categories": self._categories(groups),
        }
        return build_record(Run, row["run"] | other_fields)

    def _categories(self, groups: Sequence[Group]) -> tuple[Category, ...]:
        # A category that only a set of probes names has no `singular`.
        run_categories = self.records(
            Category,
            "MATCH (c:Category) WHERE c.name IN $names AND c.singular IS NOT NULL "
            "RETURN properties(c) AS c ORDER BY c.name",
            names=[group.category for group in groups],
        )
        return tuple(run_categories)

    def summaries(self) -> list[RunSummary]:
        return self._summaries("MATCH (run:Run)")

    def summary(self, run_id: str) -> RunSummary:
        (summary,) = self._summaries("MATCH (run:Run {uid: $run})", run=run_id)
        return summary

    def _summaries(self, match: str, **parameters: str) -> list[RunSummary]:
        return [
            RunSummary(self._read_run(row["name"]), **{k: v for k, v in row.items() if k != "name"})
            for row in self.read(match + _READ_SUMMARIES, **parameters)
        ]

    def answers(self, keys: Sequence[str]) -> dict[str, Answer]:
        query = "MATCH (a:Answer) WHERE a.key IN $keys RETURN properties(a) AS a"
        return {a.key: a for a in self.records(Answer, query, keys=list(keys))}

    def keep_answers(self, answers: Sequence[Answer]) -> None:
        nodes = graph_tables.record_nodes(Answer, answers)
        self.write_each(build_node_queries(nodes, keep_existing=True))

    def change_token(self) -> ChangeToken:
        # Each of these is a number that the server keeps at hand, however large the graph.
        nodes, edges, answers, raters, labels = (
            self.read(query)[0]["n"]
            for query in (
                "MATCH (x) RETURN count(x) AS n",
                "MATCH ()-[x]->() RETURN count(x) AS n",
                "MATCH (x:Answer) RETURN count(x) AS n",
                "MATCH (x:Rater) RETURN count(x) AS n",
                "MATCH ()-[x:LABELLED]->() RETURN count(x) AS n",
            )
        )
        return ChangeToken(f"{nodes - raters} {edges - labels}", answers)

    def derive_edges(self, run_id: str) -> None:
        """See `kgbias.graph.store.Store.derive_edges`."""
        rows = self.read(
            "MATCH (r:Run {uid: $run}) OPTIONAL MATCH (r)-[:MEASURED_BY]->(m:Metric) "
            "RETURN r.name AS name, m.measure AS measure, m.uid AS uid",
            run=run_id,
        )
        metric = {row["measure"]: row["uid"] for row in rows}
        # One row a metric, all with the run's name; none if the run is gone.
        for row in rows[:1]:
            self.write_alone(_FORGET_STEREOTYPE_EDGES, name=row["name"])
            uids = {m: metric[m] for m in DERIVED_MEASURES if m in metric}
            self.write_alone(_build_derive_query(uids), run=run_id, **uids)

    def decisions(self, run_id: str) -> list[Decision]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[:REVIEWED]->(d:Decision) RETURN properties(d) AS d "
            "ORDER BY d.decided, d.uid",
            run=run_id,
        )
        return [read_decision(row["d"]) for row in rows]

    def batches(self, configured_id: str) -> list[Batch]:
        rows = self.read(
            "MATCH (b:Batch {asked: $asked}) RETURN b.name AS name, b.keys AS keys, "
            "b.learned AS learned, b.created AS created, b.id AS id ORDER BY created, name",
            asked=configured_id,
        )
        return [
            Batch(
                row["name"],
                configured_id,
                tuple(row["keys"]),
                row["learned"],
                datetime.fromisoformat(row["created"]),
                row["id"],
            )
            for row in rows
        ]

    def keep_batch(self, batch: Batch) -> None:
        self.write(
            (
                "MERGE (b:Batch {name: $name}) SET b = $row",
                {
                    "name": batch.name,
                    "row": {
                        "name": batch.name,
                        "asked": batch.asked,
                        "keys": list(batch.keys),
                        "learned": batch.learned,
                        "created": batch.created.isoformat(),
                        "id": batch.id,
                    },
                },
            )
        )

    def drop_batch(self, name: str) -> None:
        self.write(("MATCH (b:Batch {name: $name}) DELETE b", {"name": name}))
