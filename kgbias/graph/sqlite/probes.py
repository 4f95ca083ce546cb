"""Perplexity probes: PROBED edges between statements and groups, under a model."""

from collections.abc import Sequence

from kgbias.graph.probed import properties_of
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import ProbedEdge, Probing, canonical_json

_UNFINISHED = "{}"  # the record of a probing whose edges are still being written


class ProbeTables(Database):
    def save_probes(self, run_id: str, probing: Probing, edges: Sequence[ProbedEdge]) -> None:
        with self._transaction():
            self._add_model(probing.model)
            self._db.execute(
                "INSERT OR IGNORE INTO probing VALUES (?, ?, ?, ?, ?)",
                (
                    run_id,
                    probing.id,
                    probing.model.id,
                    canonical_json(probing.settings),
                    _UNFINISHED,
                ),
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO statement VALUES (?, ?, ?)",
                {(e.statement_id, e.predicate_id, e.object_id) for e in edges},
            )
            self._db.executemany(
                f"INSERT OR REPLACE INTO probed VALUES ({', '.join('?' * 16)})",
                [
                    (
                        run_id,
                        probing.id,
                        e.statement_id,
                        e.group_id,
                        e.log_likelihood,
                        e.tokens,
                        e.statement_log_likelihood,
                        e.statement_tokens,
                        e.group_log_likelihood,
                        e.group_tokens,
                        e.rank,
                        canonical_json(e.pieces),
                        canonical_json(e.bits),
                        e.lift,
                        e.similarity,
                        e.association,
                    )
                    for e in edges
                ],
            )

    def save_probing(self, run_id: str, probing: Probing) -> None:
        with self._transaction():
            self._add_model(probing.model)
            self._db.execute(
                "INSERT OR REPLACE INTO probing VALUES (?, ?, ?, ?, ?)",
                (
                    run_id,
                    probing.id,
                    probing.model.id,
                    canonical_json(probing.settings),
                    canonical_json(dict(probing.record)),
                ),
            )

    def probes(
        self, run_id: str, probing_id: str, statement_id: str | None = None
    ) -> list[ProbedEdge]:
        asking, columns = ("probing_id", probing_id), ("group_id", *properties_of(ProbedEdge))
        rows = self._of_statements("probed", columns, run_id, asking, statement_id)
        return [
            ProbedEdge(*(*row[:10], *(tuple(self._json(part)) for part in row[10:12]), *row[12:]))
            for row in rows
        ]

    def probings(self, run_id: str) -> list[Probing]:
        return self._askings(Probing, "probing", run_id, "record <> ?", _UNFINISHED)
