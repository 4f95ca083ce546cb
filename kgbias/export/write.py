"""Writing an export: whole or not at all, with a manifest beside it.

To add a format, write a function in `kgbias.export`, and name it in `FORMATS`.
"""

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from kgbias.errors import UsageError, no_such
from kgbias.evidence.evidence_table import read_beliefs
from kgbias.evidence.picture import (
    DEFAULT_OBJECTS,
    MAX_EDGES,
    PAGE_WIDTH,
    BeliefLookup,
    PicturePair,
    describe_too_many,
)
from kgbias.export.content import ExportContent, Filters
from kgbias.export.cypher_script import write_cypher
from kgbias.export.figures import write_dot, write_figure, write_tikz
from kgbias.export.graphs import write_gexf, write_graphml, write_node_link, write_turtle
from kgbias.export.neo4j_admin import write_neo4j_admin
from kgbias.export.neo4j_passes import count_verdicts_in_effect
from kgbias.export.tables import (
    write_csv,
    write_csv_pair,
    write_jsonl,
    write_parquet,
)
from kgbias.graph.selection import (
    SelectedStatements,
    Selection,
    StatementStream,
    need_one_arm,
    select_statements,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TripleView
from kgbias.io import files
from kgbias.io.files import is_special, replace_file, write_into_folder, write_json
from kgbias.io.plugins import PluginTable
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.resources import __version__
from kgbias.io.text import printable_if_terminal
from kgbias.measure import merge


@dataclass(frozen=True, slots=True)
class Format:
    """An export format.

    Attributes:
        write: its writer.
        extensions: the file extensions that choose it.
        kind: what it writes: a "text" or "binary" file, "several" files side by side, or a
            "folder" of them.
        picture: whether it is a picture: of one arm, and of no more than can be read.
        beside: whether the picture has two groups beside each other (`PicturePair`).
        streams: whether it takes one statement at a time, so that not all need be in memory.
        whole: whether it has everything that was told, and so takes no filters.
        run_kind: the only kind of run that has what it writes; "" for any with statements."""

    write: Callable[[ExportContent, Path], object]
    extensions: tuple[str, ...] = ()
    kind: str = "text"
    picture: bool = False
    beside: bool = False
    streams: bool = False
    whole: bool = False
    run_kind: str = ""


FORMATS: PluginTable[Format] = PluginTable(
    "export",
    Format,
    {
        "jsonl": Format(write_jsonl, ("jsonl", "ndjson")),
        "csv": Format(write_csv, ("csv",)),
        "csv-pair": Format(write_csv_pair, kind="several"),
        "parquet": Format(write_parquet, ("parquet",), "binary"),
        "graphml": Format(write_graphml, ("graphml",)),
        "gexf": Format(write_gexf, ("gexf",)),
        "node-link": Format(write_node_link, ("json",)),
        "turtle": Format(write_turtle, ("ttl",)),
        "dot": Format(write_dot, ("dot", "gv"), picture=True),
        "tikz": Format(write_tikz, ("tex", "tikz"), picture=True, beside=True),
        "svg": Format(write_figure, ("svg",), picture=True, beside=True),
        "pdf": Format(write_figure, ("pdf",), "binary", picture=True, beside=True),
        "png": Format(write_figure, ("png",), "binary", picture=True, beside=True),
        "cypher": Format(write_cypher, ("cypher", "cql")),
        "neo4j-admin": Format(write_neo4j_admin, kind="folder", streams=True),
    },
)
"""Every export format, by name."""


def write_export(
    run: StoredRun,
    output: Path | TextIO,
    format_name: str | None = None,
    filters: Filters | None = None,
    *,
    selection: Selection | None = None,
    progress: Progress | None = None,
    width: float = PAGE_WIDTH,
) -> int:
    """Write a run's triples to a file (csv-pair: to two files; neo4j-admin: to a folder) with a
    manifest at OUTPUT.manifest.json, or to a text stream. Returns the number of triples. Without
    `format_name`, the file's extension chooses the format, and a stream gets jsonl. `selection`
    says which statements count; `progress` is told what was left out and, by neo4j-admin, how far
    the export has come. A picture is `width` inches wide.

    Raises UsageError for a format or group that does not exist, and for a picture of several arms;
    DataError if a file cannot be written."""
    filters = filters or Filters()
    name = choose_format_name(output, format_name)
    export_format = FORMATS[name]
    if export_format.whole and filters != Filters():
        raise UsageError(f"{name} has whole stories, which filters of statements do not choose")
    triples: Collection[TripleView]
    picture_pair = None
    if export_format.streams:
        triples = stream = StatementStream(run, selection)
        statements = stream.selected
    else:
        statements = select_statements(run, selection)
        triples = statements.triples
    if export_format.picture:
        need_one_arm(run, statements)
        picture_pair = (
            _find_picture_pair(run, filters, statements) if export_format.beside else None
        )
        if picture_pair is None:
            filters = _filters_for_picture(run, filters, statements.triples)
        else:
            triples = picture_pair.triples
    if filters != Filters() and picture_pair is None:
        triples = filters.apply(run, triples)
    if filters.groups:
        statements = statements.restrict_to_groups(
            {run.find_group(name).id for name in filters.groups}
        )
    if filters.merged and progress is not None and not run.near_duplicates():
        progress.note(merge.explain_no_links())
    content = ExportContent(
        run, triples, statements, progress or SilentProgress(), width, picture_pair
    )
    if isinstance(output, Path):
        _write_to_path(export_format, content, name, output)
    else:
        _write_to_stream(export_format, content, name, output)
    if progress is not None and statements.note:  # for a stream, known only now
        progress.note(statements.note)
    if isinstance(output, Path) and not is_special(output):
        manifest_path = output.with_name(output.name + ".manifest.json")
        write_json(manifest_path, build_manifest(content, filters, name))
    return len(content.triples)


def _write_to_path(export_format: Format, content: ExportContent, name: str, output: Path) -> None:
    if export_format.kind in ("folder", "several") and is_special(output):
        raise UsageError(f"{name} is several files, which {output} cannot hold: name a file")
    if export_format.kind == "folder":
        with write_into_folder(output) as partial:
            export_format.write(content, partial)
    elif export_format.kind == "several":
        with write_into_folder(output.parent) as partial:
            export_format.write(content, partial / output.name)
    else:
        with replace_file(output, f".{name}") as partial:
            export_format.write(content, partial)


def _filters_for_picture(
    run: StoredRun, filters: Filters, triples: Sequence[TripleView]
) -> Filters:
    """The filters of a picture: unless they set a number, as many statements of each group as one
    picture has room for."""
    if filters.limit is not None or filters.per_group is not None:
        return filters
    named_groups = {run.find_group(name).id for name in filters.groups}
    groups = named_groups or {t.group_id for t in triples}
    return replace(filters, per_group=max(1, MAX_EDGES // max(1, len(groups))))


def _find_picture_pair(
    run: StoredRun, filters: Filters, statements: SelectedStatements
) -> PicturePair | None:
    """What a picture of two groups shows; None for any other number. Unless the filters set a
    number, as many statements as one picture has room for."""
    triples = filters.apply(run, statements.triples) if filters != Filters() else statements.triples
    group_ids = {t.group_id for t in triples}
    groups = [(g.id, g.name) for g in run.groups if g.id in group_ids]
    if len(groups) != 2:
        return None
    named_groups = [run.find_group(name).id for name in filters.groups]
    groups.sort(
        key=lambda g: named_groups.index(g[0]) if g[0] in named_groups else len(named_groups)
    )
    has_limit = filters.limit is not None or filters.per_group is not None
    beliefs = BeliefLookup.from_edges(run, read_beliefs(run))
    pair = PicturePair.of_groups(
        groups, triples, statements.triples, beliefs, None if has_limit else DEFAULT_OBJECTS
    )
    if len(pair.triples) > MAX_EDGES:
        raise UsageError(describe_too_many(len(pair.triples)))
    return pair


def choose_format_name(output: Path | TextIO, name: str | None = None) -> str:
    """The format of an export: `name`, or the one of the file's extension; jsonl for a stream, also
    one with a name.
    Raises UsageError for a format that does not exist."""
    if name is not None:
        if name not in FORMATS:
            raise UsageError(no_such("export format", name, FORMATS))
        return name
    if not isinstance(output, Path) or is_special(output):
        return "jsonl"
    extension = output.suffix.removeprefix(".").lower()
    for formats in (FORMATS.own_entries, FORMATS.usable_entries()):
        for name, export_format in formats.items():
            if extension in export_format.extensions:
                return name
    if not extension:
        raise UsageError(f"{output} has no extension: add one ({output}.csv), or name a `format`")
    raise UsageError(no_such("export format", extension, FORMATS))


def _write_to_stream(
    export_format: Format, content: ExportContent, name: str, stream: TextIO
) -> None:
    if export_format.kind != "text":
        raise UsageError(f"{name} cannot be written to a text stream: name a file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export.{name}"
        export_format.write(content, path)
        with path.open(encoding="utf-8", newline="") as file:
            for line in file:
                stream.write(printable_if_terminal(line, stream))


def build_manifest(content: ExportContent, filters: Filters, name: str) -> dict[str, Any]:
    """The manifest of an export, for whoever finds the file."""
    return files.make_manifest(
        content.run.record,
        config=content.run.config,
        scorers={
            measure: {"scorer": m.scorer, "version": m.version, "verbaliser": m.verbaliser}
            for measure, m in content.metrics.items()
        },
        format=name,
        selection=content.statements.as_dict(),
        filters=filters.as_dict(),
        triples=len(content.triples),
        **({"picture": content.picture_pair.caption} if content.picture_pair is not None else {}),
        reviewed=count_verdicts_in_effect(content.run.decisions()),
        kgbias=__version__,
        exported=datetime.now(UTC).isoformat(timespec="seconds"),
    )
