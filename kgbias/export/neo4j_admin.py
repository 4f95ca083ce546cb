"""The CSV layout of `neo4j-admin database import`, for millions of triples. What it imports is a
store like any other: kgbias and the library in `cypher/` run on it."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kgbias import __version__
from kgbias.export.selection import Selection
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_STATEMENT, canonical_json, node_id

_LIST = "\x1f"  # between the items of a list in a cell; in an item it becomes a space


def write_admin(selection: Selection, folder: Path) -> list[Path]:
    """A folder of CSV files, their headers in them, and README.txt with the command that imports
    them. The run comes with its seeds, model, generations, answers, metrics and figures; of the
    generations those that yielded a kept triple, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    files = _Files(folder)
    run = selection.run
    kept = {t.id for t in selection.triples}
    metrics = run.metrics()
    files.nodes(
        "Category",
        "name",
        ["singular", "plural"],
        [(c.name, c.singular, c.plural) for c in run.categories],
    )
    groups = {g.id: (g.id, g.name, _joined(g.variants)) for g in run.groups}
    groups |= {
        t.group_id: (t.group_id, t.group, "") for t in selection.triples if t.group_id not in groups
    }
    files.nodes("SocialGroup", "uid", ["name", "variants:string[]"], groups.values())
    predicates = {node_id("predicate", t.predicate): t.predicate for t in selection.triples}
    objects = {node_id("object", t.object): t.object for t in selection.triples}
    files.nodes("Predicate", "uid", ["text"], predicates.items())
    files.nodes("Object", "uid", ["text"], objects.items())
    files.nodes(
        "Triple",
        "uid",
        ["group_uid", "text"],
        ((t.id, t.group_id, f"{t.group} {t.predicate} {t.object}") for t in selection.triples),
    )
    model = run.model
    files.nodes(
        "Model",
        "uid",
        ["name", "revision"],
        [(model.id, model.name, model.revision)],
    )
    files.nodes(
        "Run",
        "uid",
        ["name", "kind", "config", "settings", "status", "created", "version", "seq:long"],
        [
            (
                run.id,
                run.name,
                run.record.kind,
                canonical_json(run.config),
                canonical_json(run.record.settings),
                run.status,
                run.record.created,
                run.record.version,
                0,
            )
        ],
    )
    files.nodes(
        "Metric",
        "uid",
        ["measure", "scorer", "version", "verbaliser"],
        [(m.id, m.measure, m.scorer, m.version, m.verbaliser) for m in metrics.values()],
    )
    known = {c.name for c in run.categories}
    files.edges(
        "IN_CATEGORY",
        "SocialGroup",
        "Category",
        [],
        [(g.id, g.category) for g in run.groups if g.category in known],
    )
    files.edges("OF", "Run", "Model", [], [(run.id, model.id)])
    files.edges(
        "SEEDED",
        "Run",
        "SocialGroup",
        ["position:long", "category"],
        [(run.id, g.id, n, g.category) for n, g in enumerate(run.groups)],
    )
    files.edges(
        "MEASURED_BY",
        "Run",
        "Metric",
        ["measure"],
        [(run.id, m.id, m.measure) for m in metrics.values()],
    )
    files.edges(
        "SUBJECT", "Triple", "SocialGroup", [], ((t.id, t.group_id) for t in selection.triples)
    )
    files.edges(
        "PREDICATE",
        "Triple",
        "Predicate",
        [],
        ((t.id, node_id("predicate", t.predicate)) for t in selection.triples),
    )
    files.edges(
        "OBJECT",
        "Triple",
        "Object",
        [],
        ((t.id, node_id("object", t.object)) for t in selection.triples),
    )
    files.edges(
        "SCORED",
        "Triple",
        "Metric",
        ["value:double", "label", "names:string[]", "parts:double[]"],
        (
            (
                t.id,
                metrics[m].id,
                s.value,
                s.label,
                _joined(s.details),
                _joined(str(v) for v in s.details.values()),
            )
            for t in selection.triples
            for m, s in t.scores.items()
        ),
    )
    files.edges(
        "FIGURE",
        "Run",
        "SocialGroup",
        ["measure", "value:double", "low:double", "high:double", "n:long", "method"],
        [
            (run.id, s.group_id, s.measure, s.value, s.low, s.high, s.n, s.method)
            for s in run.group_scores()
            if s.group_id in groups
        ],
    )
    files.edges(
        "STEREOTYPE",
        "SocialGroup",
        "Object",
        ["run", "predicate", "count:long", "regard:double", "toxicity:double", "triple"],
        (
            (
                t.group_id,
                node_id("object", t.object),
                run.name,
                t.predicate,
                t.count,
                *(t.scores[m].value if m in t.scores else None for m in ("regard", "toxicity")),
                t.id,
            )
            for t in selection.triples
        ),
    )
    _provenance(files, selection, kept)
    readme = folder / "README.txt"
    readme.write_text(files.readme(run.name), encoding="utf-8")
    return [*files.paths, readme]


def _provenance(files: "_Files", selection: Selection, kept: set[str]) -> None:
    run = selection.run
    texts = (
        "path",
        "arm",
        "strategy",
        "outcome",
        "reason",
        "template",
        "template_hash",
        "prompt",
        "answer_key",
        "group_id",
    )
    generations = [g for g in run.generations() if g.triple is None or g.triple.id in kept]
    files.nodes(
        "Generation",
        "uid",
        [
            *("group_uid" if name == "group_id" else name for name in texts),
            "iteration:long",
            "attempt:long",
            "count:long",
        ],
        (
            (g.id, *(getattr(g, name) for name in texts), g.iteration, g.attempt, g.count)
            for g in generations
        ),
    )
    keys = sorted({g.answer_key for g in generations if g.answer_key})
    answers = run.answers(keys)
    files.nodes(
        "Answer",
        "key",
        [
            "model_id",
            "text",
            "finish",
            "prompt_tokens:long",
            "completion_tokens:long",
            "seconds:double",
            "details",
        ],
        (
            (
                a.key,
                a.model_id,
                a.text,
                a.finish,
                a.prompt_tokens,
                a.completion_tokens,
                a.seconds,
                a.details,
            )
            for a in answers.values()
        ),
    )
    files.edges("IN", "Generation", "Run", [], ((g.id, run.id) for g in generations))
    files.edges(
        "YIELDED",
        "Generation",
        "Triple",
        ["count:long", "predicate", "object"],
        (
            (g.id, g.triple.id, g.count, g.triple.predicate, g.triple.object)
            for g in generations
            if g.triple is not None
        ),
    )
    files.edges(
        "SHOWN",
        "Generation",
        "Triple",
        ["position:long"],
        ((g.id, id, n) for g in generations for n, id in enumerate(g.shown) if id in kept),
    )


class _Files:
    """The CSV files of one import, and the command that reads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arguments: list[str] = []
        self.paths: list[Path] = []

    def nodes(
        self, label: str, key: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        name = f"nodes-{label}.csv"
        self._write(name, [f"{key}:ID({label})", *columns], rows)
        self._arguments.append(f"--nodes={label}={name}")

    def edges(
        self, kind: str, start: str, end: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        name = f"edges-{kind}.csv"
        self._write(name, [f":START_ID({start})", f":END_ID({end})", *columns], rows)
        self._arguments.append(f"--relationships={kind}={name}")

    def _write(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        path = self._folder / name
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(header) + "\n")
            file.writelines(",".join(map(_cell, row)) + "\n" for row in rows)
        self.paths.append(path)

    def readme(self, run: str) -> str:
        command = " \\\n    ".join(
            [
                "neo4j-admin database import full neo4j",
                "--multiline-fields=true",
                "--array-delimiter=U+001F",
                *self._arguments,
            ]
        )
        return (
            f"{CONTENT_WARNING}\n{SAMPLE_STATEMENT}\n\nWritten by kgbias {__version__}. To make "
            "an empty Neo4j 5 database of these files, stop the server and, in this folder, run:"
            f"\n\n{command}\n"
        )


def _joined(items: Iterable[str]) -> str:
    return _LIST.join(item.replace(_LIST, " ") for item in items)


def _cell(value: Any) -> str:
    """All but missing values in quotes: an empty text stays a text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return '"' + str(value).replace('"', '""') + '"'
