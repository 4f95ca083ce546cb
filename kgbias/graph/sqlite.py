"""The default store: the whole graph and the answer log in one SQLite file.

Write-ahead logging lets others read while a crawl writes; `synchronous=FULL` makes a committed
answer survive a power cut. One writer at a time: a second one waits.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from kgbias import __version__
from kgbias.errors import RunConflict, RunNotFound, StoreError
from kgbias.graph.schema import migrate
from kgbias.graph.types import (
    Answer,
    Category,
    Generation,
    Group,
    GroupScore,
    Metric,
    Run,
    RunSummary,
    Score,
    Status,
    Triple,
    TripleView,
    canonical_json,
    node_id,
)
from kgbias.models.base import ModelInfo

_BUSY_SECONDS = 60
_BULK_ROWS = 50_000
_MAX_VARIABLES = 500  # ids in one IN (...) list; SQLite allows more, this keeps plans cached
_Row = tuple[Any, ...]


class SQLiteStore:
    """See `kgbias.graph.store.Store`."""

    def __init__(self, path: str, *, create: bool = True) -> None:
        self.url = path
        if not create and not Path(path).is_file():
            raise StoreError(f"no store at {path}: name one with --store, or crawl first")
        try:
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA cache_size = -262144")  # 256 MB: random keys in bulk loads
            self._db.execute("PRAGMA temp_store = MEMORY")
            migrate(self._db)
        except sqlite3.Error as error:
            raise StoreError(f"cannot open {path} as a kgbias store: {error}") from error

    def close(self) -> None:
        self._db.close()

    # -- runs ------------------------------------------------------------------------------------

    def begin(self, run: Run) -> Run:
        with self._transaction():
            row = self._db.execute("SELECT id FROM run WHERE name = ?", (run.name,)).fetchone()
            if row and row[0] != run.id:
                raise RunConflict(
                    f"run {run.name!r} exists with other settings: choose another --run, or give "
                    "the settings that it was started with"
                )
            known = self._db.execute("SELECT name FROM run WHERE id = ?", (run.id,)).fetchone()
            if known and known[0] != run.name:
                raise RunConflict(
                    f"the same crawl is in the store as run {known[0]!r}: leave out --run, or name "
                    "that one"
                )
            if not known:
                self._insert_run(run)
        return self.find_run(run.name)

    def _insert_run(self, run: Run) -> None:
        model = run.model
        self._db.execute(
            "INSERT OR IGNORE INTO model VALUES (?, ?, ?, ?)",
            (model.id, model.name, model.revision, canonical_json(model.settings)),
        )
        created = run.created or datetime.now(UTC).isoformat(timespec="seconds")
        self._db.execute(
            "INSERT INTO run (id, name, kind, model_id, config, status, created, version) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                run.id,
                run.name,
                run.kind,
                model.id,
                canonical_json(run.config),
                run.status,
                created,
                run.version or __version__,
            ),
        )
        self._db.executemany(
            "INSERT INTO category VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
            "singular = excluded.singular, plural = excluded.plural",
            [(c.name, c.singular, c.plural) for c in run.categories],
        )
        self._add_groups(run.id, run.groups)

    def _add_groups(self, run_id: str, groups: Sequence[Group]) -> None:
        self._db.executemany(
            'INSERT OR IGNORE INTO "group" VALUES (?, ?)', [(g.id, g.name) for g in groups]
        )
        self._db.executemany(
            "INSERT OR IGNORE INTO group_variant VALUES (?, ?)",
            [(g.id, name) for g in groups for name in g.variants],
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO run_group VALUES (?, ?, ?, ?)",
            [(run_id, position, g.id, g.category) for position, g in enumerate(groups)],
        )

    def set_status(self, run_id: str, status: Status) -> None:
        self._db.execute("UPDATE run SET status = ? WHERE id = ?", (status, run_id))

    def find_run(self, name: str | None = None) -> Run:
        query = (
            "SELECT run.id, run.name, kind, config, status, created, version, model.name, "
            "revision, settings FROM run JOIN model ON model.id = model_id "
        )
        if name is None:
            row = self._db.execute(query + "ORDER BY seq DESC LIMIT 1").fetchone()
        else:
            row = self._db.execute(query + "WHERE run.name = ?", (name,)).fetchone()
        if row is None:
            names = [n for (n,) in self._db.execute("SELECT name FROM run ORDER BY seq")]
            if not names:
                raise RunNotFound(f"there is no run in {self.url}: start one with kgbias crawl")
            raise RunNotFound(f"no run {name!r} in {self.url}; there is: {', '.join(names)}")
        settings = tuple((key, value) for key, value in json.loads(row[9]))
        return Run(
            name=row[1],
            kind=row[2],
            config=json.loads(row[3]),
            status=row[4],
            created=row[5],
            version=row[6],
            model=ModelInfo(row[7], row[8], settings),
            groups=self._groups(row[0]),
            categories=self._categories(row[0]),
        )

    def _groups(self, run_id: str) -> tuple[Group, ...]:
        rows = self._db.execute(
            'SELECT "group".id, name, category FROM run_group '
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
            Group(name, category, tuple(variants.get(group_id, ())))
            for group_id, name, category in rows
        )

    def _categories(self, run_id: str) -> tuple[Category, ...]:
        rows = self._db.execute(
            "SELECT name, singular, plural FROM category WHERE name IN "
            "(SELECT category FROM run_group WHERE run_id = ?) ORDER BY name",
            (run_id,),
        )
        return tuple(Category(*row) for row in rows)

    def summaries(self) -> list[RunSummary]:
        rows = self._db.execute(
            """
            SELECT run.name, count(DISTINCT triple_id), count(generation.id),
                   coalesce(sum(outcome = 'refused'), 0), coalesce(sum(outcome = 'unparsable'), 0),
                   coalesce(sum(outcome = 'failed'), 0), coalesce(sum(attempt > 0), 0),
                   coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)
            FROM run LEFT JOIN generation ON generation.run_id = run.id
            LEFT JOIN answer ON answer.key = answer_key
            GROUP BY run.seq ORDER BY run.seq"""
        ).fetchall()
        return [RunSummary(self.find_run(name), *counts) for name, *counts in rows]

    # -- the answer log --------------------------------------------------------------------------

    def answers(self, keys: Sequence[str]) -> dict[str, Answer]:
        found = self._select_in(
            "SELECT key, model_id, text, finish, prompt_tokens, completion_tokens, seconds, "
            "details FROM answer WHERE key IN ({})",
            keys,
        )
        return {row[0]: Answer(*row) for row in found}

    def keep_answers(self, answers: Sequence[Answer]) -> None:
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        a.key,
                        a.model_id,
                        storable(a.text),
                        a.finish,
                        a.prompt_tokens,
                        a.completion_tokens,
                        a.seconds,
                        a.details,
                    )
                    for a in answers
                ],
            )

    # -- generations and triples -----------------------------------------------------------------

    def record(self, run_id: str, arm: str, iteration: int, batch: Sequence[Generation]) -> None:
        with self._transaction():
            stale = "SELECT id FROM generation WHERE run_id = ? AND arm = ? AND iteration = ?"
            where = (run_id, arm, iteration)
            self._db.execute(f"DELETE FROM shown WHERE generation_id IN ({stale})", where)
            self._db.execute(f"DELETE FROM generation WHERE id IN ({stale})", where)
            self._insert_generations(batch)

    def load(self, run_id: str, generations: Iterable[Generation]) -> int:
        total = 0
        stream = iter(generations)
        while batch := list(islice(stream, _BULK_ROWS)):
            with self._transaction():
                self._insert_generations(batch)
            total += len(batch)
        return total

    def _insert_generations(self, batch: Sequence[Generation]) -> None:
        nodes: tuple[list[_Row], ...] = ([], [], [])
        triples: list[_Row] = []
        generations: list[_Row] = []
        shown: list[_Row] = []
        for g in batch:
            generation_id = g.id
            triple_id = said_predicate = said_object = None
            if (triple := g.triple) is not None:
                predicate, object = storable(triple.predicate), storable(triple.object)
                ids = (triple.group_id, triple.predicate_id, triple.object_id)
                for rows, id, text in zip(
                    nodes, ids, (storable(triple.group), predicate, object), strict=True
                ):
                    rows.append((id, text))
                triple_id, said_predicate, said_object = triple.id, predicate, object
                triples.append((triple_id, *ids))
            generations.append(
                (
                    generation_id,
                    g.run_id,
                    storable(g.path),
                    g.group_id,
                    g.arm,
                    g.strategy,
                    g.iteration,
                    g.attempt,
                    g.outcome,
                    g.reason,
                    g.template,
                    g.template_hash,
                    storable(g.prompt),
                    g.answer_key,
                    triple_id,
                    said_predicate,
                    said_object,
                    g.count,
                )
            )
            shown.extend((generation_id, position, id) for position, id in enumerate(g.shown))
        insert = self._db.executemany
        # Sorted keys fill the pages of each tree in order, which is what makes bulk loads fast.
        for table, rows in zip(('"group"', "predicate", "object"), nodes, strict=True):
            insert(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", _first_of_each(rows))
        insert("INSERT OR IGNORE INTO triple VALUES (?, ?, ?, ?)", _first_of_each(triples))
        marks = ", ".join("?" * 18)
        insert(f"INSERT OR IGNORE INTO generation VALUES ({marks})", sorted(generations))
        insert("INSERT OR IGNORE INTO shown VALUES (?, ?, ?)", shown)

    def generations(self, run_id: str) -> Iterator[Generation]:
        shown: dict[str, list[str]] = {}
        for generation_id, triple_id in self._db.execute(
            "SELECT generation_id, shown.triple_id FROM shown JOIN generation ON "
            "generation.id = generation_id WHERE run_id = ? ORDER BY generation_id, position",
            (run_id,),
        ):
            shown.setdefault(generation_id, []).append(triple_id)
        rows = self._db.execute(
            'SELECT generation.id, path, group_id, "group".name, arm, strategy, iteration, '
            "attempt, outcome, reason, template, template_hash, prompt, answer_key, "
            "said_predicate, said_object, count FROM generation "
            'JOIN "group" ON "group".id = group_id WHERE run_id = ? ORDER BY iteration, path',
            (run_id,),
        )
        for row in rows:
            predicate, object = row[14:16]
            yield Generation(
                run_id=run_id,
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
                shown=tuple(shown.get(row[0], ())),
                count=row[16],
            )

    def triples(self, run_id: str) -> list[TripleView]:
        scores: dict[str, dict[str, Score]] = {}
        for measure, triple_id, value, label, details in self._db.execute(
            "SELECT measure, score.triple_id, value, label, details FROM run_metric "
            "JOIN score USING (metric_id) WHERE run_id = ? AND score.triple_id IN "
            "(SELECT triple_id FROM generation WHERE generation.run_id = run_metric.run_id) "
            "ORDER BY measure",
            (run_id,),
        ):
            score = Score(triple_id, value, label, json.loads(details))
            scores.setdefault(triple_id, {})[measure] = score
        order = {group.id: place for place, group in enumerate(self._groups(run_id))}
        rows = self._db.execute(
            """
            SELECT triple.id, triple.group_id, "group".name, predicate.text, object.text, said.n
            FROM (SELECT triple_id, sum(count) AS n FROM generation
                  WHERE run_id = ? AND triple_id IS NOT NULL GROUP BY triple_id) AS said
            JOIN triple ON triple.id = said.triple_id
            JOIN "group" ON "group".id = triple.group_id
            JOIN predicate ON predicate.id = predicate_id
            JOIN object ON object.id = object_id""",
            (run_id,),
        )
        views = [
            TripleView(id, group_id, group, predicate, object, count, scores.get(id, {}))
            for id, group_id, group, predicate, object, count in rows
        ]
        last = len(order)
        views.sort(
            key=lambda v: (order.get(v.group_id, last), v.group, v.predicate, v.object, v.id)
        )
        return views

    # -- scores ----------------------------------------------------------------------------------

    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        with self._transaction():
            self._db.execute(
                "INSERT OR IGNORE INTO metric VALUES (?, ?, ?, ?, ?)",
                (metric.id, metric.measure, metric.scorer, metric.version, metric.verbaliser),
            )
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

    def scored(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
        found = self._select_in(
            "SELECT triple_id FROM score WHERE metric_id = ? AND triple_id IN ({})",
            triple_ids,
            metric.id,
        )
        return {id for (id,) in found}

    def metrics(self, run_id: str) -> dict[str, Metric]:
        rows = self._db.execute(
            "SELECT metric.measure, scorer, version, verbaliser FROM run_metric "
            "JOIN metric ON metric.id = metric_id WHERE run_id = ? ORDER BY metric.measure",
            (run_id,),
        )
        return {row[0]: Metric(*row) for row in rows}

    def save_group_scores(self, run_id: str, scores: Sequence[GroupScore]) -> None:
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO group_score VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (run_id, s.group_id, s.measure, s.value, s.low, s.high, s.n, s.method)
                    for s in scores
                ],
            )

    def group_scores(self, run_id: str) -> list[GroupScore]:
        rows = self._db.execute(
            "SELECT group_id, measure, value, low, high, n, method FROM group_score "
            "WHERE run_id = ? ORDER BY measure, group_id",
            (run_id,),
        )
        # SQLite keeps NaN as NULL.
        return [
            GroupScore(row[0], row[1], _number(row[2]), _number(row[3]), _number(row[4]), *row[5:])
            for row in rows
        ]

    # -- helpers ---------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot write to {self.url}: {error}") from error
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _select_in(self, query: str, ids: Sequence[str], *before: str) -> Iterator[_Row]:
        for start in range(0, len(ids), _MAX_VARIABLES):
            chunk = ids[start : start + _MAX_VARIABLES]
            yield from self._db.execute(
                query.format(", ".join("?" * len(chunk))), (*before, *chunk)
            )


def storable(text: str) -> str:
    """The text with lone surrogates replaced: a model may say anything, SQLite stores UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _first_of_each(rows: Iterable[_Row]) -> list[_Row]:
    """One row for each key, the first one, sorted by key."""
    first: dict[str, _Row] = {}
    for row in rows:
        first.setdefault(row[0], row)
    return [first[key] for key in sorted(first)]


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def group_named(name: str, groups: Sequence[Group]) -> Group | None:
    """The group that goes by this name, in any spelling that normalises the same."""
    wanted = node_id("group", name)
    for group in groups:
        if group.id == wanted or wanted in (node_id("group", v) for v in group.variants):
            return group
    return None
