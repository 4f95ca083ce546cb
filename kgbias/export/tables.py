"""Tables: JSON lines, CSV and Parquet with a row for each triple, and CSV of nodes and edges."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, MissingExtra, first_line
from kgbias.export.content import ExportContent, TripleInArm
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_CAVEAT
from kgbias.io.text import escape_formula

_TRIPLE_COLUMNS = (
    "id",
    "category",
    "group",
    "predicate",
    "object",
    "sentence",
    "count",
    "arm",
    "language",
)
_OPTIONAL_COLUMNS = {
    "strategy": "the crawl's strategy that first elicited it",
    "iteration": "the round in which it was first said, from 0",
    "names_other": "other groups of the run that it names: figures and tests leave it out",
    "topic": "the name of its topic",
    "rank": "of its group among those of its category, before the statement; 1 is the likeliest",
    "groups_ranked": "how many groups were ranked",
}
INTEGER_COLUMNS = ("count", "iteration", "rank", "groups_ranked")


def column_names(content: ExportContent) -> list[str]:
    """The columns of a row: the triple, the value and label of each measure and, if the run has
    them, where it came from, its topic and its group's rank."""
    scores = [name for m in content.measures for name in (m.name, m.label_column)]
    return [*_TRIPLE_COLUMNS, *scores, *describe_optional_columns(content)]


def describe_optional_columns(content: ExportContent) -> dict[str, str]:
    """Columns that a table has only if the run has something for them, with what each one holds;
    those of methods last."""
    column_values = {
        "names_other": content.names_other,
        "topic": content.topics,
        "rank": content.ranks,
        "groups_ranked": content.ranks,
    }
    own_columns = {
        name: meaning
        for name, meaning in _OPTIONAL_COLUMNS.items()
        if column_values.get(name, content.origins)
    }
    return {**own_columns, **content.added.columns}


def iter_rows(content: ExportContent) -> Iterator[dict[str, Any]]:
    """The triples as flat rows, one for each arm that said it. `regard` is p(positive) -
    p(negative) in [-1, 1], `toxicity` a probability; both are None if the run was not measured.
    Other measures (`kgbias.measures`) and the columns of `describe_optional_columns` are there if
    the run has them."""
    names = describe_optional_columns(content)
    for triple in content.triples:
        row: dict[str, Any] = {
            "id": triple.id,
            "category": content.category_by_group.get(triple.group_id, ""),
            "group": triple.group,
            "predicate": triple.predicate,
            "object": triple.object,
            "sentence": triple.sentence,
            "count": triple.count,
            "arm": triple.arm,
            "language": content.run.record.language,
        }
        for measure in content.measures:
            score = triple.scores.get(measure.name)
            row[measure.name] = score.value if score else None
            row[measure.label_column] = score.label if score else None
        strategy, iteration = content.origins.get(TripleInArm(triple.id, triple.arm), (None, None))
        rank, groups_ranked = content.ranks.get(triple.id, (None, None))
        optional_cells = {
            "strategy": strategy,
            "iteration": iteration,
            "rank": rank,
            "groups_ranked": groups_ranked,
            "topic": content.topics.get(triple.id),
            "names_other": content.names_other.get(triple.id, ""),
        }
        optional_cells |= content.added.cells.get(triple.id, {})
        yield row | {name: optional_cells.get(name) for name in names}


def write_jsonl(content: ExportContent, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for row in iter_rows(content):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_csv(content: ExportContent, path: Path) -> None:
    _write_csv(path, column_names(content), iter_rows(content))


def write_csv_pair(content: ExportContent, path: Path) -> list[Path]:
    """NAME.nodes.csv and NAME.edges.csv."""
    stem = path.with_suffix("") if path.suffix == ".csv" else path
    nodes, edges = (stem.with_name(f"{stem.name}.{part}.csv") for part in ("nodes", "edges"))
    graph = content.graph
    _write_csv(
        nodes,
        ("id", "kind", "label", "category"),
        ({"id": id, **data} for id, data in graph.nodes(data=True)),
    )
    _write_csv(
        edges,
        (
            "source",
            "target",
            "id",
            "predicate",
            "count",
            "arm",
            "language",
            *(m.name for m in content.measures),
            *content.added.columns,
        ),
        (
            {"source": start, "target": end, "id": key, **edge_data}
            for start, end, key, edge_data in graph.edges(keys=True, data=True)
        ),
    )
    return [nodes, edges]


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        # Line ends as in RFC 4180: with a line feed alone, csv would not quote a carriage return.
        writer = csv.DictWriter(file, columns, lineterminator="\r\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: escape_formula(value) for name, value in row.items()})


def write_parquet(content: ExportContent, path: Path) -> None:
    column_types = dict.fromkeys(INTEGER_COLUMNS, "int64") | {
        m.name: "double" for m in content.measures
    }
    metadata = {
        "warning": CONTENT_WARNING,
        "statement": SAMPLE_CAVEAT,
        "selection": json.dumps(content.statements.as_dict()),
    }
    write_parquet_table(
        path,
        {name: column_types.get(name, "string") for name in column_names(content)},
        iter_rows(content),
        metadata,
    )


def write_parquet_table(
    path: Path,
    column_types: Mapping[str, str],
    rows: Iterable[Mapping[str, Any]],
    metadata: Mapping[str, str],
) -> None:
    """A table with these columns, each with the name of its type in Arrow."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("pyarrow", extra="parquet") from error
    except ImportError as error:  # for lack of memory, for example
        raise DataError(f"pyarrow cannot be loaded: {first_line(error)}") from error
    fields = [(name, pa.type_for_alias(kind)) for name, kind in column_types.items()]
    schema = pa.schema(fields, metadata=dict(metadata))
    try:
        parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    except (pa.ArrowException, RuntimeError, SystemError) as error:  # out of space, or of threads
        raise DataError(f"pyarrow cannot write {path.name}: {first_line(error)}") from error
