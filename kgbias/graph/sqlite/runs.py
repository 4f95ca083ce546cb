"""Runs, with their models, categories and groups."""

from collections.abc import Sequence
from datetime import UTC, datetime

from kgbias import __version__
from kgbias.errors import RunConflict, RunNotFound
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import (
    Category,
    Group,
    Run,
    RunSummary,
    Status,
    canonical_json,
)
from kgbias.models.base import ModelInfo


class RunTables(Database):
    def begin(self, run: Run) -> Run:
        with self._transaction():
            row = self._db.execute("SELECT id FROM run WHERE name = ?", (run.name,)).fetchone()
            if row and row[0] != run.id:
                raise RunConflict(
                    f"run {run.name!r} exists with other settings: choose another name, or give "
                    "the settings it was started with"
                )
            known = self._db.execute("SELECT name FROM run WHERE id = ?", (run.id,)).fetchone()
            if known and known[0] != run.name:
                raise RunConflict(
                    f"the same crawl is in the store as run {known[0]!r}: leave out the name, or "
                    "give that one"
                )
            if not known:
                self._insert_run(run)
        return self.find_run(run.name)

    def _insert_run(self, run: Run) -> None:
        self._add_model(run.model)
        created = run.created or datetime.now(UTC).isoformat(timespec="seconds")
        self._db.execute(
            "INSERT INTO run (id, name, kind, model_id, config, status, created, "
            "version, settings) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                run.id,
                run.name,
                run.kind,
                run.model.id,
                canonical_json(run.config),
                run.status,
                created,
                run.version or __version__,
                canonical_json(run.settings),
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
        with self._transaction():
            self._db.execute("UPDATE run SET status = ? WHERE id = ?", (status, run_id))

    def add_work(self, run_id: str, seconds: float) -> None:
        with self._transaction():
            self._db.execute(
                "UPDATE run SET seconds = coalesce(seconds, 0) + ? WHERE id = ?", (seconds, run_id)
            )

    def seconds(self, run_id: str) -> float | None:
        rows = self._db.execute("SELECT seconds FROM run WHERE id = ?", (run_id,))
        return next((seconds for (seconds,) in rows), None)

    def find_run(self, name: str | None = None) -> Run:
        query = (
            "SELECT run.id, run.name, kind, config, status, created, version, model.name, "
            "revision, run.settings FROM run JOIN model ON model.id = model_id "
        )
        if name is None:
            row = self._db.execute(query + "ORDER BY seq DESC LIMIT 1").fetchone()
        else:
            row = self._db.execute(query + "WHERE run.name = ?", (name,)).fetchone()
        if row is None:
            names = [n for (n,) in self._db.execute("SELECT name FROM run ORDER BY seq")]
            if not names:
                raise RunNotFound(f"there is no run in {self.url}: crawl or import one first")
            raise RunNotFound(f"no run {name!r} in {self.url}; there is: {', '.join(names)}")
        return Run(
            name=row[1],
            kind=row[2],
            config=self._json(row[3]),
            status=row[4],
            created=row[5],
            version=row[6],
            model=ModelInfo(row[7], row[8]),
            groups=self._groups(row[0]),
            settings=self._settings(row[9]),
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
        return self._summaries("")

    def summary(self, run_id: str) -> RunSummary:
        (summary,) = self._summaries("WHERE run.id = ?", run_id)
        return summary

    def _summaries(self, where: str, *parameters: str) -> list[RunSummary]:
        rows = self._db.execute(
            f"""
            SELECT run.name, count(DISTINCT triple_id),
                   coalesce(sum(CASE WHEN triple_id IS NOT NULL THEN count END), 0),
                   count(generation.id),
                   coalesce(sum(outcome = 'refused'), 0), coalesce(sum(outcome = 'unparsable'), 0),
                   coalesce(sum(outcome = 'echo'), 0),
                   coalesce(sum(outcome = 'nonsense'), 0), coalesce(sum(outcome = 'failed'), 0),
                   coalesce(sum(attempt > 0), 0),
                   (SELECT coalesce(sum(prompt_tokens), 0) FROM answer WHERE key IN
                    (SELECT answer_key FROM generation WHERE run_id = run.id)),
                   (SELECT coalesce(sum(completion_tokens), 0) FROM answer WHERE key IN
                    (SELECT answer_key FROM generation WHERE run_id = run.id)),
                   run.seconds
            FROM run LEFT JOIN generation ON generation.run_id = run.id {where}
            GROUP BY run.seq ORDER BY run.seq""",
            parameters,
        ).fetchall()
        return [RunSummary(self.find_run(name), *counts) for name, *counts in rows]
