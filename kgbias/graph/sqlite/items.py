"""Items of benchmarks and their scores under models."""

from collections.abc import Sequence

from kgbias.graph.probed import ItemScore, item_score
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import canonical_json, storable
from kgbias.models.base import ModelInfo, Settings

_READ = """
SELECT id, benchmark, name, category, scores, tokens, seconds FROM item_score
JOIN benchmark_item ON id = item_id WHERE asked = ? AND item_id IN ({})"""
_COLUMNS = ("id", "benchmark", "name", "category", "scores", "tokens", "seconds")


class ItemTables(Database):
    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        with self._transaction():
            self._add_model(model)
            self._db.executemany(
                "INSERT OR REPLACE INTO benchmark_item VALUES (?, ?, ?, ?)",
                [
                    (s.item.id, s.item.benchmark, storable(s.item.name), storable(s.item.category))
                    for s in scores
                ],
            )
            asked, how = model.asked(settings), canonical_json(settings)
            self._db.executemany(
                "INSERT OR REPLACE INTO item_score VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (s.item.id, asked, model.id, how, canonical_json(s.scores), s.tokens, s.seconds)
                    for s in scores
                ],
            )

    def item_scores(
        self, model: ModelInfo, settings: Settings, ids: Sequence[str]
    ) -> dict[str, ItemScore]:
        rows = self._select_in(_READ, list(ids), model.asked(settings))
        return {row[0]: item_score(dict(zip(_COLUMNS, row, strict=True))) for row in rows}

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        rows = self._db.execute(
            "SELECT DISTINCT settings FROM item_score WHERE model_id = ? ORDER BY settings",
            (model.id,),
        )
        return [self._settings(settings) for (settings,) in rows]
