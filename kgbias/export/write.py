"""Writing an export: whole or not at all, with a manifest beside it."""

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgbias import __version__
from kgbias.errors import DataError, UsageError
from kgbias.export.cypher_script import write_script
from kgbias.export.figures import write_dot, write_figure, write_tikz
from kgbias.export.graphs import write_gexf, write_graphml, write_node_link, write_turtle
from kgbias.export.neo4j_admin import write_admin
from kgbias.export.selection import Filters, Selection
from kgbias.export.tables import write_csv, write_csv_pair, write_jsonl, write_parquet
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_STATEMENT
from kgbias.text import shown


@dataclass(frozen=True, slots=True)
class Format:
    """An export format: its writer, the extensions that choose it, and what it makes: a file of
    text, a binary file, or several files."""

    write: Callable[[Selection, Path], object]
    extensions: tuple[str, ...] = ()
    kind: str = "text"


FORMATS: dict[str, Format] = {
    "jsonl": Format(write_jsonl, ("jsonl", "ndjson")),
    "csv": Format(write_csv, ("csv",)),
    "csv-pair": Format(write_csv_pair, kind="several"),
    "parquet": Format(write_parquet, ("parquet",), "binary"),
    "graphml": Format(write_graphml, ("graphml",)),
    "gexf": Format(write_gexf, ("gexf",)),
    "node-link": Format(write_node_link, ("json",)),
    "turtle": Format(write_turtle, ("ttl",)),
    "dot": Format(write_dot, ("dot", "gv")),
    "tikz": Format(write_tikz, ("tex", "tikz")),
    "svg": Format(write_figure, ("svg",)),
    "pdf": Format(write_figure, ("pdf",), "binary"),
    "cypher": Format(write_script, ("cypher", "cql")),
    "neo4j-admin": Format(write_admin, kind="several"),
}


def write_export(
    run: StoredRun,
    output: Path | None,
    format_name: str | None = None,
    filters: Filters | None = None,
) -> int:
    """Write a run's triples to a file (or, for csv-pair and neo4j-admin, to files beside or in it)
    and a manifest to OUTPUT.manifest.json; to stdout where no file is named. Returns the number of
    triples. The format follows from the file's extension where none is named."""
    filters = filters or Filters()
    name = format_name or _by_extension(output)
    if name not in FORMATS:
        raise UsageError(f"no export format {name!r}; there is: {', '.join(FORMATS)}")
    form = FORMATS[name]
    selection = Selection(run, filters.apply(run, run.triples()))
    try:
        if output is None:
            _to_stdout(form, selection, name)
        elif form.kind == "several":
            form.write(selection, output)
            _write_manifest(selection, filters, output, name)
        else:
            # The extension stays last, since some writers go by it.
            partial = output.with_name(f".{output.stem}.partial.{name}")
            try:
                form.write(selection, partial)
                partial.replace(output)
            finally:
                partial.unlink(missing_ok=True)
            _write_manifest(selection, filters, output, name)
    except OSError as error:
        raise DataError(f"cannot write {output or 'to stdout'}: {error.strerror}") from error
    return len(selection.triples)


def _by_extension(output: Path | None) -> str:
    if output is None:
        return "jsonl"
    extension = output.suffix.removeprefix(".").lower()
    for name, form in FORMATS.items():
        if extension in form.extensions:
            return name
    raise UsageError(
        f"no export format {extension!r}: name one with --format, of {', '.join(FORMATS)}"
    )


def _to_stdout(form: Format, selection: Selection, name: str) -> None:
    if form.kind != "text":
        raise UsageError(f"{name} cannot go to stdout: name a file with -o")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export.{name}"
        form.write(selection, path)
        with path.open(encoding="utf-8", newline="") as file:
            for line in file:
                sys.stdout.write(shown(line, sys.stdout))


def _write_manifest(selection: Selection, filters: Filters, output: Path, name: str) -> None:
    path = output.with_name(output.name + ".manifest.json")
    path.write_text(json.dumps(manifest(selection, filters, name), indent=2), encoding="utf-8")


def manifest(selection: Selection, filters: Filters, name: str) -> dict[str, Any]:
    """What an export is, for whoever finds the file."""
    run = selection.run
    return {
        "warning": CONTENT_WARNING,
        "statement": SAMPLE_STATEMENT,
        "run": run.name,
        "model": {"name": run.model.name, "revision": run.model.revision},
        "config": dict(run.config),
        "scorers": {
            measure: {"scorer": m.scorer, "version": m.version, "verbaliser": m.verbaliser}
            for measure, m in run.metrics().items()
        },
        "format": name,
        "filters": filters.as_dict(),
        "triples": len(selection.triples),
        "kgbias": __version__,
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
    }
