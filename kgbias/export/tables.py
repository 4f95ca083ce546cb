"""JSON lines and CSV: one row a triple."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from kgbias import __version__
from kgbias.crawl import merge
from kgbias.errors import DataError, UsageError
from kgbias.export.text import defused
from kgbias.graph.store import Store
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_STATEMENT, Run

Row = Mapping[str, Any]
COLUMNS = (
    "id", "category", "group", "predicate", "object", "sentence", "count",
    "regard", "regard_label", "toxicity", "toxicity_label",
)  # fmt: skip


def rows(store: Store, run: Run, *, merged: bool = False) -> Iterable[Row]:
    """The triples of a run as flat rows. `regard` is p(positive) - p(negative) in [-1, 1],
    `toxicity` a probability; both are None where the run was not measured. With `merged`,
    near-duplicates count as one (`kgbias.crawl.merge`)."""
    category = {group.id: group.category for group in run.groups}
    triples = store.triples(run.id)
    if merged:
        triples = merge.merged(triples, merge.link_store(store).near_duplicates(run.id))
    for triple in triples:
        row: dict[str, Any] = {
            "id": triple.id,
            "category": category.get(triple.group_id, ""),
            "group": triple.group,
            "predicate": triple.predicate,
            "object": triple.object,
            "sentence": triple.sentence,
            "count": triple.count,
        }
        for measure in ("regard", "toxicity"):
            score = triple.scores.get(measure)
            row[measure] = score.value if score else None
            row[f"{measure}_label"] = score.label if score else None
        yield row


def _write_jsonl(rows: Iterable[Row], file: TextIO) -> None:
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_csv(rows: Iterable[Row], file: TextIO) -> None:
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: defused(value) for name, value in row.items()})


FORMATS: dict[str, Callable[[Iterable[Row], TextIO], None]] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
}


def write_export(
    store: Store,
    run: Run,
    output: Path | None,
    format_name: str | None = None,
    *,
    merged: bool = False,
) -> None:
    """Write a run to a file, whole or not at all, and its manifest to FILE.manifest.json; or to
    stdout where no file is named."""
    if format_name is None:
        format_name = output.suffix.removeprefix(".").lower() if output else "jsonl"
    if format_name not in FORMATS:
        raise UsageError(f"no export format {format_name!r}; there is: {', '.join(FORMATS)}")
    write = FORMATS[format_name]
    if output is None:
        write(rows(store, run, merged=merged), sys.stdout)
        return
    partial = output.with_name(output.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8", newline="") as file:
            write(rows(store, run, merged=merged), file)
        partial.replace(output)
        manifest = output.with_name(output.name + ".manifest.json")
        manifest.write_text(json.dumps(_manifest(store, run, merged), indent=2), encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {output}: {error.strerror}") from error


def _manifest(store: Store, run: Run, merged: bool) -> dict[str, Any]:
    return {
        "warning": CONTENT_WARNING,
        "statement": SAMPLE_STATEMENT,
        "run": run.name,
        "model": {"name": run.model.name, "revision": run.model.revision},
        "config": dict(run.config),
        "merged": merged,
        "scorers": {
            measure: {"scorer": m.scorer, "version": m.version, "verbaliser": m.verbaliser}
            for measure, m in store.metrics(run.id).items()
        },
        "kgbias": __version__,
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
    }
