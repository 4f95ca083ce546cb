"""What reproducing a data set takes: `run.json`, and the statements to compare the result with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgbias.errors import DataError
from kgbias.graph.decisions import Decision, latest_decisions
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Category, Metric, Triple
from kgbias.io.files import make_manifest
from kgbias.io.reading import parse_json, read_json, read_text
from kgbias.io.resources import __version__
from kgbias.models.base import ModelInfo, Settings

RECIPE_FILE = "run.json"
STATEMENTS_FILE = "data/statements.jsonl"

# All that a folder may say about how a model is opened; never a server's address.
_OPENING_SETTINGS = {"dtype"}


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a published run.

    Attributes:
        name, id, kind: of the run; only a run of kind "crawl" can be made again.
        model: the model that was asked; `settings` says how.
        config: the configuration of the run; `categories` are in the order of its groups.
        metrics: what scored each measure.
        selection: which statements counted.
        decisions: the review decisions in effect, without who made them.
    """

    name: str
    id: str
    kind: str
    model: ModelInfo
    settings: Settings
    config: Mapping[str, Any]
    categories: tuple[Category, ...]
    metrics: tuple[Metric, ...]
    selection: Selection
    decisions: tuple[Decision, ...] = field(default=())

    @classmethod
    def from_run(cls, run: StoredRun, selection: Selection) -> "Recipe":
        """The recipe of a run in a store."""
        record = run.record
        known_categories = {category.name: category for category in record.categories}
        names = dict.fromkeys(group.category for group in record.groups)
        return cls(
            record.name,
            record.id,
            record.kind,
            record.model,
            record.settings,
            record.config,
            tuple(known_categories.get(name) or Category(name) for name in names),
            tuple(run.metrics().values()),
            selection,
            tuple(d for d in latest_decisions(run.decisions()).values() if d.verdict != "undo"),
        )

    def as_dict(self, run: StoredRun, created: str) -> dict[str, Any]:
        """The content of run.json."""
        return {
            **make_manifest(run.record),
            "run": self.name,
            "id": self.id,
            "kind": self.kind,
            "settings": [list(pair) for pair in self.settings],
            "config": dict(self.config),
            "categories": [
                {"name": c.name, "singular": c.singular, "plural": c.plural}
                for c in self.categories
            ],
            "scorers": {
                m.measure: {"scorer": m.scorer, "version": m.version, "verbaliser": m.verbaliser}
                for m in self.metrics
            },
            "selection": self.selection.as_dict(),
            "decisions": [
                {
                    "generation": d.generation_id,
                    "verdict": d.verdict,
                    "decided": d.decided,
                    **({"statement": _triple_words(d.statement)} if d.statement else {}),
                }
                for d in self.decisions
            ],
            "kgbias": __version__,
            "published": created,
        }

    @property
    def opening(self) -> dict[str, str]:
        """How the model is opened. A server's address is never taken from a folder: that server
        would receive the API key of whoever reproduces the run."""
        return {name: value for name, value in self.settings if name in _OPENING_SETTINGS}


def _triple_words(triple: Triple) -> list[str]:
    return [triple.subject, triple.predicate, triple.object]


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a published folder. Raises DataError if it cannot be read."""
    value = read_json(folder / RECIPE_FILE)
    try:
        return Recipe(
            _check_text(value["run"]),
            _check_text(value["id"]),
            _check_text(value["kind"]),
            ModelInfo(
                _check_text(value["model"]["name"]),
                _check_text(value["model"]["revision"]),
                _check_text(value["model"].get("display_name", "")),
            ),
            tuple((_check_text(name), _check_text(setting)) for name, setting in value["settings"]),
            dict(value["config"]),
            tuple(
                Category(
                    _check_text(c["name"]), _check_text(c["singular"]), _check_text(c["plural"])
                )
                for c in value["categories"]
            ),
            tuple(
                Metric(
                    measure, *(_check_text(m[key]) for key in ("scorer", "version", "verbaliser"))
                )
                for measure, m in value["scorers"].items()
            ),
            Selection(**value["selection"]),
            tuple(_read_decision(d) for d in value["decisions"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{folder / RECIPE_FILE} is not what kgbias publishes: {error!r}"
        ) from error


def _read_decision(value: Mapping[str, Any]) -> Decision:
    if value["verdict"] not in ("restore", "reject"):
        raise ValueError(f"no verdict {value['verdict']!r}")
    statement_words = value.get("statement")
    return Decision(
        _check_text(value["generation"]),
        value["verdict"],
        "as published",
        _check_text(value["decided"]),
        Triple(*map(_check_text, statement_words)) if statement_words else None,
    )


def read_published_statements(folder: Path) -> list[dict[str, Any]]:
    """The published statements, one row for each arm that made one."""
    path = folder / STATEMENTS_FILE
    lines = read_text(path).split("\n")
    statements = [parse_json(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line]
    for number, row in enumerate(statements, 1):
        if not isinstance(row, dict) or not all(
            isinstance(row.get(name), kind)
            for name, kind in (("id", str), ("arm", str), ("count", int))
        ):
            raise DataError(f"{path}, line {number} is not a statement: it needs id, arm and count")
    return statements


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
