"""The answer log: one durable row a request."""

from collections.abc import Sequence

from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import Answer, storable


class AnswerLog(Database):
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
