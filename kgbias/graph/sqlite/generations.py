"""Generations, and the triples that they yielded and were shown."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from operator import itemgetter

from kgbias.graph.decisions import Decision, applied, in_effect
from kgbias.graph.said import Drawn, Shown, in_order
from kgbias.graph.sqlite.database import Row
from kgbias.graph.sqlite.decisions import DecisionTables
from kgbias.graph.types import (
    Generation,
    Score,
    Triple,
    TripleView,
    node_id,
    storable,
    triple_id,
)

_BULK_ROWS = 50_000
_KEPT = 5_000  # triples written at a time
_STAGED = "staged"
_STAGED_PAGES = 65_536  # of 4,096 bytes: 256 MB, some 600,000 narrow rows of each table
_LOADED = {  # in the order in which they refer to each other, with their keys
    '"group"': "id",
    "predicate": "id",
    "object": "id",
    "triple": "id",
    "generation": "id",
    "shown": "generation_id, position",
}


class GenerationTables(DecisionTables):
    def record(self, run_id: str, arm: str, iteration: int, batch: Sequence[Generation]) -> None:
        with self._transaction():
            stale = "SELECT id FROM generation WHERE run_id = ? AND arm = ? AND iteration = ?"
            where = (run_id, arm, iteration)
            self._db.execute(f"DELETE FROM shown WHERE generation_id IN ({stale})", where)
            self._db.execute(f"DELETE FROM generation WHERE id IN ({stale})", where)
            self._insert_generations(applied(batch, in_effect(self.decisions(run_id))))

    def load(self, run_id: str, generations: Iterable[Generation]) -> int:
        stream = iter(generations)

        def insert_next(into: str = "") -> int:
            batch = list(islice(stream, _BULK_ROWS))
            if batch:
                with self._transaction():
                    rows = applied(batch, in_effect(self.decisions(run_id)))
                    self._insert_generations(rows, into)
            return len(batch)

        total = insert_next()
        if total < _BULK_ROWS:
            return total
        with self._staged() as move:
            while count := insert_next(f"{_STAGED}."):
                total += count
                if self._staged_pages() > _STAGED_PAGES:
                    move()
            move()
        return total

    @contextmanager
    def _staged(self) -> Iterator[Callable[[], None]]:
        """Tables in memory, under the same names, and what moves their rows into the file.

        Keys are hashes. Once a tree outgrows the cache, rows that come as they were said read and
        write a page each; many at a time, in the order of their keys, share these pages."""
        self._db.execute(f"ATTACH ':memory:' AS {_STAGED}")
        try:
            for table in _LOADED:
                self._db.execute(f"CREATE TABLE {_STAGED}.{table} AS SELECT * FROM {table} LIMIT 0")

            def move() -> None:
                for table, key in _LOADED.items():
                    with self._transaction():
                        # In the order of arrival within a key: the first form that was said stays.
                        self._db.execute(
                            f"INSERT OR IGNORE INTO {table} "
                            f"SELECT * FROM {_STAGED}.{table} ORDER BY {key}, rowid"
                        )
                        self._db.execute(f"DELETE FROM {_STAGED}.{table}")

            yield move
        finally:
            self._db.execute(f"DETACH {_STAGED}")

    def _staged_pages(self) -> int:
        count, free = (
            self._db.execute(f"PRAGMA {_STAGED}.{of}").fetchone()[0]
            for of in ("page_count", "freelist_count")
        )
        return int(count - free)

    def keep_triples(self, triples: Iterable[Triple]) -> None:
        stream = iter(triples)
        while batch := list(islice(stream, _KEPT)):
            with self._transaction():
                self._insert_triples(batch)

    def known_generations(self, ids: Sequence[str]) -> set[str]:
        found = self._select_in("SELECT id FROM generation WHERE id IN ({})", ids)
        return {id for (id,) in found}

    def decide(self, run_id: str, decisions: Sequence[Decision]) -> None:
        with self._transaction():
            self._insert_decisions(run_id, decisions)
            now = in_effect(self.decisions(run_id))
            ids = sorted({d.generation_id for d in decisions})
            triples = [now[id].triple for id in ids]
            self._db.executemany(
                "UPDATE generation SET triple_id = ?, said_predicate = ?, said_object = ? "
                "WHERE id = ?",
                [
                    (triple_id, t and storable(t.predicate), t and storable(t.object), id)
                    for id, t, triple_id in zip(
                        ids, triples, self._insert_triples(triples), strict=True
                    )
                ],
            )

    def _insert_triples(self, triples: Iterable[Triple | None], into: str = "") -> list[str | None]:
        """Write triples and their nodes; returns their ids, None for None."""
        groups: dict[str, str] = {}
        predicates: dict[str, str] = {}
        objects: dict[str, str] = {}
        rows: dict[str, Row] = {}
        ids: list[str | None] = []
        for t in triples:
            if t is None:
                ids.append(None)
                continue
            group, predicate, object = t.group, t.predicate, t.object
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
        # Sorted keys fill the pages of each tree in order, which is what makes bulk loads fast.
        for table, texts in (('"group"', groups), ("predicate", predicates), ("object", objects)):
            insert(f"INSERT OR IGNORE INTO {into}{table} VALUES (?, ?)", sorted(texts.items()))
        insert(f"INSERT OR IGNORE INTO {into}triple VALUES (?, ?, ?, ?)", sorted(rows.values()))
        return ids

    def _insert_generations(self, batch: Sequence[Generation], into: str = "") -> None:
        triple_ids = self._insert_triples((g.triple for g in batch), into)
        generations: list[Row] = []
        shown: list[Row] = []
        for g, yielded in zip(batch, triple_ids, strict=True):
            generation_id = g.id
            t = g.triple
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
                    storable(g.reason),
                    g.template,
                    g.template_hash,
                    storable(g.prompt),
                    g.answer_key,
                    yielded,
                    t and storable(t.predicate),
                    t and storable(t.object),
                    g.count,
                )
            )
            if g.shown:
                shown += [(generation_id, position, id) for position, id in enumerate(g.shown)]
        marks = ", ".join("?" * 18)
        insert = self._db.executemany
        insert(f"INSERT OR IGNORE INTO {into}generation VALUES ({marks})", sorted(generations))
        insert(f"INSERT OR IGNORE INTO {into}shown VALUES (?, ?, ?)", shown)

    def generations(self, run_id: str) -> Iterator[Generation]:
        return self._generations("WHERE run_id = ? ORDER BY iteration, arm, path", (run_id,))

    def _generations(self, which: str, values: Row) -> Iterator[Generation]:
        rows = self._sorted(
            'SELECT generation.run_id, path, group_id, "group".name, arm, strategy, iteration, '
            "attempt, outcome, reason, template, template_hash, prompt, answer_key, "
            "said_predicate, said_object, count, (SELECT json_group_array(triple_id) FROM "
            "(SELECT shown.triple_id FROM shown WHERE generation_id = generation.id "
            f'ORDER BY position)) FROM generation JOIN "group" ON "group".id = group_id {which}',
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
                shown=() if row[17] == "[]" else tuple(self._json(row[17])),
                count=row[16],
            )

    def said(self, run_id: str) -> list[tuple[str, str, str, str]]:
        return self._db.execute(
            """
            SELECT triple.id, "group".name, predicate.text, object.text FROM triple
            JOIN "group" ON "group".id = triple.group_id
            JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id
            WHERE triple.id IN (SELECT triple_id FROM generation WHERE run_id = ?)
            ORDER BY triple.id""",
            (run_id,),
        ).fetchall()

    def shown(self, run_id: str) -> Iterator[Shown]:
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
        for _, same in groupby(rows, key=itemgetter(0)):
            found = list(same)
            examples = tuple((row[7], row[8]) for row in found)
            uid, id, arm, attempt, count, predicate, object = found[0][:7]
            yield Shown(uid, id, arm, attempt, count, predicate, object, examples)

    def drawn(self, run_id: str) -> Iterator[Drawn]:
        rows = self._db.execute(
            """
            SELECT generation.id, path, generation.group_id, arm, strategy, iteration, template,
                   prompt, triple_id, predicate_id, count
            FROM generation LEFT JOIN triple ON triple.id = triple_id
            WHERE run_id = ? ORDER BY iteration, arm, path""",
            (run_id,),
        )
        for row in rows:
            yield Drawn(*row)

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
        views.sort(key=in_order(order))
        return views
