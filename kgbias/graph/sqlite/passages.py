"""The passages that a run was read from, and their relations."""

from kgbias.graph.keeping import Corpus, Passage, Relation, as_json, passage_uid
from kgbias.graph.sqlite.database import Database

_RELATIONS = """
SELECT relation.id, relation.kind, source.id, target.id, bidirectional, relation.properties
FROM passage_relation AS relation
JOIN passage AS source ON source.run_id = relation.run_id AND source.uid = source_uid
JOIN passage AS target ON target.run_id = relation.run_id AND target.uid = target_uid
WHERE relation.run_id = ? ORDER BY relation.position"""


class PassageTables(Database):
    def save_corpus(self, run_id: str, corpus: Corpus) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM passage WHERE run_id = ?", (run_id,))
            self._db.execute("DELETE FROM passage_relation WHERE run_id = ?", (run_id,))
            self._db.executemany(
                "INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (run_id, p.uid(run_id), n, p.id, p.kind, p.text, as_json(p.properties))
                    for n, p in enumerate(corpus.passages)
                ],
            )
            self._db.executemany(
                "INSERT INTO passage_relation VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        run_id,
                        n,
                        r.id,
                        r.kind,
                        passage_uid(run_id, r.source),
                        passage_uid(run_id, r.target),
                        r.bidirectional,
                        as_json(r.properties),
                    )
                    for n, r in enumerate(corpus.relations)
                ],
            )

    def corpus(self, run_id: str) -> Corpus:
        passages = self._db.execute(
            "SELECT id, kind, text, properties FROM passage WHERE run_id = ? ORDER BY position",
            (run_id,),
        )
        relations = self._db.execute(_RELATIONS, (run_id,))
        return Corpus(
            tuple(Passage(id, kind, text, self._json(found)) for id, kind, text, found in passages),
            tuple(
                Relation(id, kind, source, target, bool(both), self._json(found))
                for id, kind, source, target, both, found in relations
            ),
        )
