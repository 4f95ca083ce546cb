"""Runs, and what was asked and answered for them: generations with the triples that they yielded
and were shown, scores, decisions, profiles, passages, the answer log, and batches left with
providers.

Streams hold one narrow row in memory, however many there are.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from itertools import count as numbers
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

from kgbias.errors import RunNotFound, no_such
from kgbias.graph.cache import CacheEntry
from kgbias.graph.decisions import Decision, apply_decisions, latest_decisions, read_decision
from kgbias.graph.integrity import Corpus, Passage, Relation, check_run_unique, passage_uid
from kgbias.graph.profiles import READING_STRATEGY, Profile, ProfilePart
from kgbias.graph.record import property_getters
from kgbias.graph.row_types import (
    DrawRow,
    ExampleRow,
    ScoreRow,
    StatementRow,
    YieldRow,
    triple_sort_key,
)
from kgbias.graph.sqlite.database import Database, Row
from kgbias.graph.sqlite.leases import FileLease
from kgbias.graph.types import (
    Answer,
    Batch,
    Category,
    Generation,
    Group,
    Metric,
    Run,
    RunStatus,
    RunSummary,
    Score,
    Triple,
    TripleView,
    canonical_json,
    node_id,
    storable,
    triple_id,
    what_makes,
)
from kgbias.io.resources import __version__
from kgbias.models.base import ModelInfo

_MAX_BULK_ROWS = 50_000
_TRIPLE_BATCH = 5_000  # triples written together
_STAGING_SCHEMA = "staged"
_MAX_STAGED_PAGES = 65_536  # of 4,096 bytes: 256 MB, some 600,000 narrow rows of each table
_STAGED_KEYS = {  # tables with their keys, each after those that it refers to
    '"group"': "id",
    "predicate": "id",
    "object": "id",
    "triple": "id",
    "generation": "id",
    "shown": "generation_id, position",
}


_MAX_KEPT_BYTES = 1 << 20  # bytes of the counts of all stores
_COUNT_NAMES = [field.name for field in fields(RunSummary) if field.name != "run"]
_SCORE_BATCH = 5_000  # triples whose scores are read together

# A group named twice among the seeds has its last place, as in `triples`.
_TRIPLES_OF_ARM = """
SELECT triple.id, triple.group_id, "group".name, predicate.text, object.text, said.n
FROM (SELECT triple_id, sum(count) AS n FROM generation
      WHERE run_id = :run AND arm = :arm AND triple_id IS NOT NULL GROUP BY triple_id) AS said
JOIN triple ON triple.id = said.triple_id
JOIN "group" ON "group".id = triple.group_id
JOIN predicate ON predicate.id = predicate_id
JOIN object ON object.id = object_id
LEFT JOIN (SELECT group_id, max(position) AS place FROM run_group WHERE run_id = :run
           GROUP BY group_id) AS seed ON seed.group_id = triple.group_id
ORDER BY seed.place IS NULL, seed.place, "group".name, predicate.text, object.text, triple.id"""


_ANSWER_COLUMNS = ", ".join(
    property_getters(Answer)
)  # in the order of its fields, all of which are columns

_PROFILES = """
SELECT * FROM profile WHERE run_id = ? ORDER BY path"""
_PROFILE_PARTS = """
SELECT part.*, said_object AS value FROM profile
JOIN profile_part AS part ON part.profile_id = profile.id
JOIN generation ON generation.id = generation_id AND generation.triple_id IS NOT NULL
WHERE profile.run_id = ? ORDER BY part.profile_id, position"""


_RELATIONS = """
SELECT relation.*, relation.id AS name, source.id AS source, target.id AS target
FROM passage_relation AS relation
JOIN passage AS source ON source.run_id = relation.run_id AND source.uid = source_uid
JOIN passage AS target ON target.run_id = relation.run_id AND target.uid = target_uid
WHERE relation.run_id = ? ORDER BY relation.position"""


class SQLiteCrawls(Database):
    """See `kgbias.graph.store.Store`."""

    def begin_run(self, run: Run) -> Run:
        with self._transaction():
            known_runs = self._db.execute(
                "SELECT name, id FROM run WHERE name = ? OR id = ?", (run.name, run.id)
            ).fetchall()
            check_run_unique(run, known_runs)
            if not known_runs:
                self._insert_run(run)
        return self.find_run(run.name)

    def _insert_run(self, run: Run) -> None:
        self._add_model(run.model)
        self._write_records(
            "run",
            [run],
            "INSERT",
            seq=None,  # the next
            model_id=run.model.id,
            created=run.created or datetime.now(UTC).isoformat(timespec="seconds"),
            version=run.version or __version__,
            seconds=None,
        )
        on_conflict = "singular = excluded.singular, plural = excluded.plural"
        self._write_records(
            "category", run.categories, "INSERT", f"ON CONFLICT (name) DO UPDATE SET {on_conflict}"
        )
        self._add_groups(run.id, run.groups)

    def _add_groups(self, run_id: str, groups: Sequence[Group]) -> None:
        self._db.executemany(
            'INSERT OR IGNORE INTO "group" VALUES (?, ?)', [(g.id, g.node_name) for g in groups]
        )
        self._db.executemany(
            "INSERT OR IGNORE INTO group_variant VALUES (?, ?)",
            [(g.id, name) for g in groups for name in g.node_variants],
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO run_group VALUES (?, ?, ?, ?, ?)",
            [
                (
                    run_id,
                    position,
                    g.id,
                    g.category,
                    canonical_json(g.own_names) if g.own_names else None,
                )
                for position, g in enumerate(groups)
            ],
        )

    def lease(self, run_id: str) -> FileLease:
        # By its real path: a link to the store is the same store.
        return FileLease(Path(f"{os.path.realpath(self.url)}-run-{run_id[:16]}"))

    def set_status(self, run_id: str, status: RunStatus) -> None:
        with self._transaction():
            self._db.execute("UPDATE run SET status = ? WHERE id = ?", (status, run_id))

    def add_work(self, run_id: str, seconds: float) -> None:
        with self._transaction():
            self._db.execute(
                "UPDATE run SET seconds = coalesce(seconds, 0) + ? WHERE id = ?", (seconds, run_id)
            )

    def run_seconds(self, run_id: str) -> float | None:
        rows = self._db.execute("SELECT seconds FROM run WHERE id = ?", (run_id,))
        return next((seconds for (seconds,) in rows), None)

    def find_run(self, name: str | None = None, kind: str | None = None) -> Run:
        if name is None:
            # EXISTS stops at the first row, where a count would read all.
            has_generations = "EXISTS (SELECT 1 FROM generation WHERE run_id = run.id{})"
            order = (
                f"{has_generations.format(' AND triple_id IS NOT NULL')} DESC, "
                f"{has_generations.format('')}"
            )
            of_kind = "WHERE run.kind = ? " if kind else ""
            found = self._read_runs(
                f"{of_kind}ORDER BY {order} DESC, seq DESC LIMIT 1", *((kind,) if kind else ())
            )
        else:
            found = self._read_runs("WHERE run.name = ?", name)
        if not found:
            names = [n for (n,) in self._db.execute("SELECT name FROM run ORDER BY seq")]
            if not names:
                raise RunNotFound(f"{self.url} has no runs: crawl or import one first")
            if name is None:
                raise RunNotFound(f"{self.url} has no run of {kind}: {what_makes(str(kind))}")
            raise RunNotFound(no_such("run", name, names, f" in {self.url}"))
        return found[0]

    def runs(self) -> list[Run]:
        return self._read_runs("ORDER BY seq")

    def _read_runs(self, clause: str, *parameters: str) -> list[Run]:
        rows = self._rows(
            "SELECT run.*, model.name AS spec, revision, display_name "
            f"FROM run JOIN model ON model.id = model_id {clause}",
            parameters,
        )
        return [
            self._record(
                Run,
                row
                | {
                    "model": ModelInfo(row["spec"], row["revision"], row["display_name"]),
                    "groups": self._groups(row["id"]),
                    "categories": self._categories(row["id"]),
                },
            )
            for row in rows
        ]

    def _groups(self, run_id: str) -> tuple[Group, ...]:
        rows = self._db.execute(
            'SELECT "group".id, name, category, names FROM run_group '
            'JOIN "group" ON "group".id = group_id WHERE run_id = ? ORDER BY position',
            (run_id,),
        ).fetchall()
        variants: dict[str, list[str]] = {}
        for group_id, name in self._db.execute(
            "SELECT group_id, name FROM group_variant "
            "WHERE group_id IN (SELECT group_id FROM run_group WHERE run_id = ?) ORDER BY name",
            (run_id,),
        ):
            variants.setdefault(group_id, []).append(name)
        return tuple(
            Group.from_node(
                name, category, variants.get(group_id, ()), self._json(names) if names else ()
            )
            for group_id, name, category, names in rows
        )

    def _categories(self, run_id: str) -> tuple[Category, ...]:
        query = (
            "SELECT * FROM category WHERE name IN "
            "(SELECT category FROM run_group WHERE run_id = ?) ORDER BY name"
        )
        return tuple(self._records(Category, query, (run_id,)))

    def summaries(self) -> list[RunSummary]:
        if not self.is_large:
            return self._read_summaries()
        path, version = os.path.realpath(self.url), self.content_version()
        kept = CacheEntry(("counts", "json"), path, version, f"{__version__} {_COUNT_NAMES}")
        body = kept.read()
        if body is not None:
            counts = json.loads(body)  # whole: `read` checks its digest
            runs = self.runs()
            if all(run.id in counts for run in runs):  # none was begun meanwhile
                return [RunSummary(run, *counts[run.id]) for run in runs]
        summaries = self._read_summaries()
        counts = {s.run.id: [getattr(s, name) for name in _COUNT_NAMES] for s in summaries}
        kept.write(
            json.dumps(counts).encode(), lambda: self.content_version() == version, _MAX_KEPT_BYTES
        )
        return summaries

    def _read_summaries(self) -> list[RunSummary]:
        with self.read_snapshot():
            return self._summaries("")

    def summary(self, run_id: str) -> RunSummary:
        with self.read_snapshot():
            (summary,) = self._summaries("WHERE run.id = ?", run_id)
        return summary

    def _summaries(self, where: str, *parameters: str) -> list[RunSummary]:
        rows = self._db.execute(
            f"""
            SELECT run.id, run.name, run.seconds,
                   coalesce(sum(CASE WHEN triple_id IS NOT NULL THEN count END), 0),
                   count(generation.id),
                   coalesce(sum(outcome = 'refused'), 0), coalesce(sum(outcome = 'unparsable'), 0),
                   coalesce(sum(outcome = 'echo'), 0),
                   coalesce(sum(outcome = 'nonsense'), 0), coalesce(sum(outcome = 'failed'), 0),
                   coalesce(sum(attempt > 0), 0)
            FROM run LEFT JOIN generation ON generation.run_id = run.id
                AND strategy <> '{READING_STRATEGY}' {where}
            GROUP BY run.seq ORDER BY run.seq""",
            parameters,
        ).fetchall()
        summaries = []
        for run_id, name, seconds, *counts in rows:
            tokens = self._count_tokens(run_id)
            values = [self._count_triples(run_id), *counts, *tokens, seconds]
            summaries.append(RunSummary(self.find_run(name), *values))
        return summaries

    def _count_triples(self, run_id: str) -> int:
        # Keys are hashes: SQLite's count(DISTINCT) takes more than twice as long as a set.
        rows = self._db.execute(
            "SELECT triple_id FROM generation "
            "WHERE run_id = ? AND strategy <> ? AND triple_id IS NOT NULL",
            (run_id, READING_STRATEGY),
        )
        return len({id for (id,) in rows})

    def _count_tokens(self, run_id: str) -> tuple[int, int]:
        """Of prompts and of completions; an answer that several generations share counts once."""
        rows = self._db.execute(
            "SELECT coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0) "
            "FROM answer WHERE key IN (SELECT answer_key FROM generation WHERE run_id = ?)",
            (run_id,),
        )
        prompt_tokens, completion_tokens = rows.fetchone()
        return prompt_tokens, completion_tokens

    def decisions(self, run_id: str) -> list[Decision]:
        query = "SELECT * FROM decision WHERE run_id = ? ORDER BY decided, uid"
        return [read_decision(row) for row in self._rows(query, (run_id,))]

    def _insert_decisions(self, run_id: str, decisions: Sequence[Decision]) -> None:
        self._write_records(
            "decision", decisions, "INSERT OR IGNORE", run_id=run_id, uid=lambda d: d.id
        )

    def record_round(
        self, run_id: str, arm: str, iteration: int, batch: Sequence[Generation]
    ) -> None:
        with self._transaction():
            # A round that is recorded again may have fewer attempts: what it no longer has must go.
            stale_ids = "SELECT id FROM generation WHERE run_id = ? AND arm = ? AND iteration = ?"
            round_key = (run_id, arm, iteration)
            self._db.execute(f"DELETE FROM shown WHERE generation_id IN ({stale_ids})", round_key)
            self._db.execute(f"DELETE FROM generation WHERE id IN ({stale_ids})", round_key)
            self._insert_generations(
                apply_decisions(batch, latest_decisions(self.decisions(run_id)))
            )

    def load_import(self, run_id: str, generations: Iterable[Generation]) -> int:
        stream = iter(generations)

        def insert_next(schema: str = "") -> int:
            batch = list(islice(stream, _MAX_BULK_ROWS))
            if batch:
                with self._transaction():
                    rows = apply_decisions(batch, latest_decisions(self.decisions(run_id)))
                    self._insert_generations(rows, schema)
            return len(batch)

        total = insert_next()
        # A small import is done: staging would only copy it twice.
        if total < _MAX_BULK_ROWS:
            return total
        with self._stage_tables() as move:
            while count := insert_next(f"{_STAGING_SCHEMA}."):
                total += count
                if self._count_staged_pages() > _MAX_STAGED_PAGES:
                    move()
            move()
        return total

    @contextmanager
    def _stage_tables(self) -> Iterator[Callable[[], None]]:
        """Tables in memory, under the same names, and a function that moves their rows to the file.

        Keys are hashes. Once a tree outgrows the cache, each row written in the order of arrival
        reads and writes a page of its own; many rows written in the order of their keys share
        pages."""
        self._db.execute(f"ATTACH ':memory:' AS {_STAGING_SCHEMA}")
        try:
            for table in _STAGED_KEYS:
                self._db.execute(
                    # Without keys and indexes: rows are only appended here.
                    f"CREATE TABLE {_STAGING_SCHEMA}.{table} AS SELECT * FROM {table} LIMIT 0"
                )

            def move_rows() -> None:
                for table, key in _STAGED_KEYS.items():
                    with self._transaction():
                        # In order of arrival within a key: the first form that was said stays.
                        self._db.execute(
                            f"INSERT OR IGNORE INTO {table} "
                            f"SELECT * FROM {_STAGING_SCHEMA}.{table} ORDER BY {key}, rowid"
                        )
                        self._db.execute(f"DELETE FROM {_STAGING_SCHEMA}.{table}")

            yield move_rows
        finally:
            self._db.execute(f"DETACH {_STAGING_SCHEMA}")

    def _count_staged_pages(self) -> int:
        count, free = (
            self._db.execute(f"PRAGMA {_STAGING_SCHEMA}.{pragma}").fetchone()[0]
            for pragma in ("page_count", "freelist_count")
        )
        # Rows that were moved leave free pages, which the next ones fill.
        return int(count - free)

    def keep_triples(self, triples: Iterable[Triple]) -> None:
        stream = iter(triples)
        while batch := list(islice(stream, _TRIPLE_BATCH)):
            with self._transaction():
                self._insert_triples(batch)

    def known_generations(self, ids: Sequence[str]) -> set[str]:
        rows = self._select_in("SELECT id FROM generation WHERE id IN ({})", ids)
        return {id for (id,) in rows}

    def add_decisions(self, run_id: str, decisions: Sequence[Decision]) -> None:
        with self._transaction():
            self._insert_decisions(run_id, decisions)
            effective = latest_decisions(self.decisions(run_id))
            ids = sorted({d.generation_id for d in decisions})
            triples = [effective[id].triple for id in ids]
            self._db.executemany(
                "UPDATE generation SET triple_id = ?, said_predicate = ?, said_object = ? "
                "WHERE id = ?",
                [
                    (
                        triple_id,
                        triple and storable(triple.predicate),
                        triple and storable(triple.object),
                        id,
                    )
                    for id, triple, triple_id in zip(
                        ids, triples, self._insert_triples(triples), strict=True
                    )
                ],
            )

    def _insert_triples(
        self, triples: Iterable[Triple | None], schema: str = ""
    ) -> list[str | None]:
        """Write triples and their nodes; returns their ids, None for None."""
        groups: dict[str, str] = {}
        predicates: dict[str, str] = {}
        objects: dict[str, str] = {}
        rows: dict[str, Row] = {}
        ids: list[str | None] = []
        for triple in triples:
            if triple is None:
                ids.append(None)
                continue
            group, predicate, object = triple.subject, triple.predicate, triple.object
            group_id = node_id("group", group)
            predicate_id = node_id("predicate", predicate)
            object_id = node_id("object", object)
            id = triple_id(group_id, predicate_id, object_id)
            ids.append(id)
            if id not in rows:
                rows[id] = (id, group_id, predicate_id, object_id)
            # A node shows the first form that was said.
            if group_id not in groups:
                groups[group_id] = storable(group)
            if predicate_id not in predicates:
                predicates[predicate_id] = storable(predicate)
            if object_id not in objects:
                objects[object_id] = storable(object)
        insert = self._db.executemany
        # Sorted keys fill the pages of each tree in order, which makes bulk loads fast.
        for table, texts in (('"group"', groups), ("predicate", predicates), ("object", objects)):
            insert(f"INSERT OR IGNORE INTO {schema}{table} VALUES (?, ?)", sorted(texts.items()))
        insert(f"INSERT OR IGNORE INTO {schema}triple VALUES (?, ?, ?, ?)", sorted(rows.values()))
        return ids

    def _insert_generations(self, batch: Sequence[Generation], schema: str = "") -> None:
        triple_ids = self._insert_triples((generation.triple for generation in batch), schema)
        generations: list[Row] = []
        example_rows: list[Row] = []
        for generation, yielded_id in zip(batch, triple_ids, strict=True):
            generation_id = generation.id
            triple = generation.triple
            generations.append(
                (
                    generation_id,
                    generation.run_id,
                    storable(generation.path),
                    generation.group_id,
                    generation.arm,
                    generation.strategy,
                    generation.iteration,
                    generation.attempt,
                    generation.outcome,
                    storable(generation.reason),
                    generation.template,
                    generation.template_hash,
                    storable(generation.prompt),
                    generation.answer_key,
                    yielded_id,
                    triple and storable(triple.predicate),
                    triple and storable(triple.object),
                    generation.count,
                )
            )
            if generation.shown:
                example_rows += [
                    (generation_id, position, id) for position, id in enumerate(generation.shown)
                ]
        placeholders = ", ".join("?" * 18)
        insert = self._db.executemany
        insert(
            f"INSERT OR IGNORE INTO {schema}generation VALUES ({placeholders})", sorted(generations)
        )
        insert(f"INSERT OR IGNORE INTO {schema}shown VALUES (?, ?, ?)", example_rows)

    def generations(self, run_id: str) -> Iterator[Generation]:
        return self._select_generations("WHERE run_id = ? ORDER BY iteration, arm, path", (run_id,))

    def _select_generations(self, condition: str, values: Row) -> Iterator[Generation]:
        rows = self._select_sorted(
            'SELECT generation.run_id, path, group_id, "group".name, arm, strategy, iteration, '
            "attempt, outcome, reason, template, template_hash, prompt, answer_key, "
            "said_predicate, said_object, count, (SELECT json_group_array(triple_id) FROM "
            "(SELECT shown.triple_id FROM shown WHERE generation_id = generation.id "
            f'ORDER BY position)) FROM generation JOIN "group" ON "group".id = group_id '
            f"{condition}",
            values,
        )
        for row in rows:
            predicate, object = row[14:16]
            yield Generation(
                run_id=row[0],
                path=row[1],
                group_id=row[2],
                arm=row[4],
                strategy=row[5],
                iteration=row[6],
                attempt=row[7],
                outcome=row[8],
                reason=row[9],
                template=row[10],
                template_hash=row[11],
                prompt=row[12],
                answer_key=row[13],
                triple=None if predicate is None else Triple(row[3], predicate, object),
                # mostly none: nothing to parse
                shown=() if row[17] == "[]" else tuple(self._json(row[17])),
                count=row[16],
            )

    def distinct_triples(self, run_id: str) -> list[tuple[str, str, str, str]]:
        return self._db.execute(
            """
            SELECT triple.id, "group".name, predicate.text, object.text FROM triple
            JOIN "group" ON "group".id = triple.group_id
            JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id
            WHERE triple.id IN (SELECT triple_id FROM generation WHERE run_id = ?)
            ORDER BY triple.id""",
            (run_id,),
        ).fetchall()

    def iter_example_rows(self, run_id: str) -> Iterator[ExampleRow]:
        rows = self._db.execute(
            """
            SELECT generation.id, generation.triple_id, arm, attempt, count, said_predicate,
                   said_object, predicate.text, object.text
            FROM generation JOIN shown ON generation_id = generation.id
            JOIN triple ON triple.id = shown.triple_id
            JOIN predicate ON predicate.id = predicate_id
            JOIN object ON object.id = object_id
            WHERE run_id = ? AND generation.triple_id IS NOT NULL
            ORDER BY generation.id, position""",
            (run_id,),
        )
        for _, generation_rows in groupby(rows, key=itemgetter(0)):
            example_rows = list(generation_rows)
            examples = tuple((row[7], row[8]) for row in example_rows)
            uid, id, arm, attempt, count, predicate, object = example_rows[0][:7]
            yield ExampleRow(uid, id, arm, attempt, count, predicate, object, examples)

    def iter_draw_rows(self, run_id: str) -> Iterator[DrawRow]:
        rows = self._db.execute(
            """
            SELECT generation.id, path, generation.group_id, arm, strategy, iteration, attempt,
                   template, prompt, triple_id, predicate_id, count
            FROM generation LEFT JOIN triple ON triple.id = triple_id
            WHERE run_id = ? ORDER BY iteration, arm, path""",
            (run_id,),
        )
        for row in rows:
            yield DrawRow(*row)

    def triples(self, run_id: str, *, by_arm: bool = False) -> list[TripleView]:
        scores: dict[str, dict[str, Score]] = {}
        for measure, id, value, label, details in self._db.execute(
            "SELECT measure, score.triple_id, value, label, details FROM run_metric "
            "JOIN score USING (metric_id) WHERE run_id = ? AND score.triple_id IN "
            "(SELECT triple_id FROM generation WHERE generation.run_id = run_metric.run_id) "
            "ORDER BY measure",
            (run_id,),
        ):
            score = Score(id, value, label, self._json(details))
            scores.setdefault(id, {})[measure] = score
        order = {group.id: place for place, group in enumerate(self._groups(run_id))}
        rows = self._db.execute(
            f"""
            SELECT triple.id, triple.group_id, "group".name, predicate.text, object.text, said.n,
                   said.arm
            FROM (SELECT triple_id, sum(count) AS n, {"arm" if by_arm else "''"} AS arm
                  FROM generation WHERE run_id = ? AND triple_id IS NOT NULL
                  GROUP BY triple_id{", arm" if by_arm else ""}) AS said
            JOIN triple ON triple.id = said.triple_id
            JOIN "group" ON "group".id = triple.group_id
            JOIN predicate ON predicate.id = predicate_id
            JOIN object ON object.id = object_id""",
            (run_id,),
        )
        views = [
            TripleView(id, group_id, group, predicate, object, count, scores.get(id, {}), arm)
            for id, group_id, group, predicate, object, count, arm in rows
        ]
        views.sort(key=triple_sort_key(order))
        return views

    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        with self._transaction():
            self._write_records("metric", [metric], "INSERT OR IGNORE")
            self._db.execute(
                "INSERT OR REPLACE INTO run_metric VALUES (?, ?, ?)",
                (run_id, metric.measure, metric.id),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO score VALUES (?, ?, ?, ?, ?)",
                [
                    (metric.id, s.triple_id, s.value, s.label, canonical_json(dict(s.details)))
                    for s in scores
                ],
            )

    def derive_edges(self, run_id: str) -> None:
        """Do nothing: the view of the file derives STEREOTYPE edges from the tables."""

    def scored_triples(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
        rows = self._select_in(
            "SELECT triple_id FROM score WHERE metric_id = ? AND triple_id IN ({})",
            triple_ids,
            metric.id,
        )
        return {id for (id,) in rows}

    def scores(self, metric: Metric, triple_ids: Sequence[str]) -> dict[str, Score]:
        rows = self._select_in(
            "SELECT triple_id, value, label, details FROM score "
            "WHERE metric_id = ? AND triple_id IN ({})",
            triple_ids,
            metric.id,
        )
        return {id: Score(id, value, label, self._json(text)) for id, value, label, text in rows}

    def scorers(self, run_id: str) -> list[Metric]:
        return self._records(
            Metric,
            "SELECT * FROM metric WHERE EXISTS ("
            "SELECT 1 FROM generation JOIN score ON score.triple_id = generation.triple_id "
            "AND score.metric_id = metric.id WHERE generation.run_id = ?) ORDER BY id",
            (run_id,),
        )

    def metrics(self, run_id: str) -> dict[str, Metric]:
        current_metrics = self._records(
            Metric,
            "SELECT metric.* FROM run_metric "
            "JOIN metric ON metric.id = metric_id WHERE run_id = ? ORDER BY metric.measure",
            (run_id,),
        )
        return {metric.measure: metric for metric in current_metrics}

    def has_statements(self, run_id: str) -> bool:
        query = "SELECT 1 FROM generation WHERE run_id = ? AND triple_id IS NOT NULL LIMIT 1"
        return self._db.execute(query, (run_id,)).fetchone() is not None

    def arms(self, run_id: str) -> list[str]:
        rows = self._db.execute(
            "SELECT DISTINCT arm FROM generation WHERE run_id = ? AND triple_id IS NOT NULL "
            "ORDER BY arm",
            (run_id,),
        )
        return [arm for (arm,) in rows]

    def triples_of_arm(self, run_id: str, arm: str) -> Iterator[TripleView]:
        metrics = self.metrics(run_id)
        rows = iter(self._select_sorted(_TRIPLES_OF_ARM, {"run": run_id, "arm": arm}))
        while chunk := list(islice(rows, _SCORE_BATCH)):
            ids = [row[0] for row in chunk]
            scores = {measure: self.scores(metric, ids) for measure, metric in metrics.items()}
            for id, group_id, group, predicate, object, count in chunk:
                triple_scores = {m: values[id] for m, values in scores.items() if id in values}
                yield TripleView(id, group_id, group, predicate, object, count, triple_scores, arm)

    def iter_statement_rows(self, run_id: str) -> Iterator[StatementRow]:
        rows = self._db.execute(
            """
            SELECT triple.id, group_id, predicate_id, object_id, "group".name, predicate.text,
                   object.text
            FROM triple
            JOIN "group" ON "group".id = group_id
            JOIN predicate ON predicate.id = predicate_id
            JOIN object ON object.id = object_id
            WHERE triple.id IN (SELECT triple_id FROM generation WHERE run_id = ?)
            ORDER BY triple.id""",
            (run_id,),
        )
        return map(StatementRow._make, rows)

    def iter_yield_rows(self, run_id: str) -> Iterator[YieldRow]:
        rows = self._db.execute(
            "SELECT id, triple_id, arm, strategy, iteration, count FROM generation "
            "WHERE run_id = ? AND triple_id IS NOT NULL ORDER BY iteration, arm, path",
            (run_id,),
        )
        return map(YieldRow._make, rows)

    def iter_score_rows(self, run_id: str) -> Iterator[ScoreRow]:
        rows = self._db.execute(
            "SELECT measure, triple_id, value, label FROM run_metric "
            "JOIN score USING (metric_id) WHERE run_id = ? ORDER BY measure, triple_id",
            (run_id,),
        )
        return map(ScoreRow._make, rows)

    def generations_of_triple(
        self, run_id: str, triple_id: str, arm: str, *, offset: int, limit: int
    ) -> list[Generation]:
        rows = self._select_generations(
            "WHERE generation.triple_id = ? AND run_id = ? AND arm = ? "
            "ORDER BY iteration, path LIMIT ? OFFSET ?",
            (triple_id, run_id, arm, limit, offset),
        )
        return list(rows)

    def answers(self, keys: Sequence[str]) -> dict[str, Answer]:
        # Doubled braces: `_select_in` fills in the question marks.
        rows = self._select_in(f"SELECT {_ANSWER_COLUMNS} FROM answer WHERE key IN ({{}})", keys)
        return {row[0]: Answer(*row) for row in rows}

    def keep_answers(self, answers: Sequence[Answer]) -> None:
        with self._transaction():
            # An answer that is there stays: what was read from it may be in the graph.
            self._write_records("answer", answers, "INSERT OR IGNORE")

    def batches(self, configured_id: str) -> list[Batch]:
        rows = self._db.execute(
            "SELECT name, asked, keys, learned, created, called FROM batch WHERE asked = ? "
            "ORDER BY created, name",
            (configured_id,),
        )
        return [
            Batch(
                name,
                batch_model,
                tuple(self._json(keys)),
                learned,
                datetime.fromisoformat(created),
                id,
            )
            for name, batch_model, keys, learned, created, id in rows
        ]

    def keep_batch(self, batch: Batch) -> None:
        row = (
            batch.name,
            batch.asked,
            canonical_json(batch.keys),
            batch.learned,
            batch.created.isoformat(),
            batch.id,
        )
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO batch VALUES (?, ?, ?, ?, ?, ?)", row)

    def drop_batch(self, name: str) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM batch WHERE name = ?", (name,))

    def save_profiles(self, run_id: str, profiles: Sequence[Profile]) -> None:
        with self._transaction():
            # Parts are found by their profiles, so they go first.
            profile_ids = "SELECT id FROM profile WHERE run_id = ?"
            self._db.execute(
                f"DELETE FROM profile_part WHERE profile_id IN ({profile_ids})", (run_id,)
            )
            self._db.execute("DELETE FROM profile WHERE run_id = ?", (run_id,))
            self._db.executemany(
                "INSERT OR IGNORE INTO given_name VALUES (?, ?)",
                sorted({p.name_id: storable(p.name) for p in profiles}.items()),
            )
            self._write_records("profile", profiles, "INSERT")
            self._db.executemany(
                "INSERT INTO profile_part VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (
                        p.id,
                        position,
                        storable(part.attribute),
                        part.generation_id,
                        part.begins,
                        part.ends,
                    )
                    for p in profiles
                    for position, part in enumerate(p.parts)
                ],
            )

    def profiles(self, run_id: str) -> list[Profile]:
        parts = {
            id: tuple(self._record(ProfilePart, row) for row in part_rows)
            for id, part_rows in groupby(
                self._rows(_PROFILE_PARTS, (run_id,)), itemgetter("profile_id")
            )
        }
        return [
            self._record(Profile, row | {"parts": parts.get(row["id"], ())})
            for row in self._rows(_PROFILES, (run_id,))
        ]

    def save_corpus(self, run_id: str, corpus: Corpus) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM passage WHERE run_id = ?", (run_id,))
            self._db.execute("DELETE FROM passage_relation WHERE run_id = ?", (run_id,))
            place, order = numbers(), numbers()
            self._write_records(
                "passage",
                corpus.passages,
                "INSERT",
                run_id=run_id,
                uid=lambda p: p.uid(run_id),
                position=lambda _: next(place),
            )
            self._write_records(
                "passage_relation",
                corpus.relations,
                "INSERT",
                run_id=run_id,
                position=lambda _: next(order),
                source_uid=lambda r: passage_uid(run_id, r.source),
                target_uid=lambda r: passage_uid(run_id, r.target),
            )

    def corpus(self, run_id: str) -> Corpus:
        passages = "SELECT *, id AS name FROM passage WHERE run_id = ? ORDER BY position"
        return Corpus(
            tuple(self._records(Passage, passages, (run_id,))),
            tuple(self._records(Relation, _RELATIONS, (run_id,))),
        )
