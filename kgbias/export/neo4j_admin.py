"""The CSV layout of `neo4j-admin database import`, for millions of triples. What it imports is a
store like any other: kgbias and the library in `cypher/` run on it. Columns and their types are
those of `kgbias.graph.shape`."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kgbias import __version__
from kgbias.export.content import Content
from kgbias.export.graph_findings import Ends, Values
from kgbias.export.graph_rows import GraphRows
from kgbias.graph import shape
from kgbias.graph.shape_parts import Property

_LIST = "\x1f"  # between the items of a list in a cell; in an item it becomes a space
_TYPES = {
    "text": "",
    "integer": ":long",
    "number": ":double",
    "boolean": ":boolean",
    "texts": ":string[]",
    "numbers": ":double[]",
}


def write_admin(content: Content, folder: Path) -> list[Path]:
    """A folder of CSV files, their headers in them, and README.txt with the command that imports
    them. The run comes with its seeds, model, generations, answers and everything found about it;
    of the generations those that yielded a kept triple, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    files = _Files(folder)
    graph = GraphRows(content)
    for label, rows in graph.nodes():
        files.nodes(label, rows)
    for kind, start, end, edges in graph.edges():
        files.edges(kind, start, end, edges)
    readme = folder / "README.txt"
    readme.write_text(files.readme(content), encoding="utf-8")
    return [*files.paths, readme]


class _Files:
    """The CSV files of one import, and the command that reads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arguments: list[str] = []
        self.paths: list[Path] = []

    def nodes(self, label: str, rows: Iterable[Values]) -> None:
        node = shape.node(label)
        names = [node.key, *(p.name for p in node.properties if p.name != node.key)]
        header = _header(node.properties)
        header[node.key] = f"{node.key}:ID({label})"
        self._write(
            f"nodes-{label}.csv", [header[name] for name in names], (_row(r, names) for r in rows)
        )
        self._arguments.append(f"--nodes={label}=nodes-{label}.csv")

    def edges(self, kind: str, start: str, end: str, rows: Iterable[Ends]) -> None:
        edge = shape.edge(kind)
        assert (start, end) in edge.ends
        name = f"edges-{kind}.csv" if len(edge.ends) == 1 else f"edges-{kind}-{start}-{end}.csv"
        names = [p.name for p in edge.properties]
        header = [f":START_ID({start})", f":END_ID({end})", *_header(edge.properties).values()]
        self._write(name, header, ([a, b, *_row(values, names)] for a, b, values in rows))
        self._arguments.append(f"--relationships={kind}={name}")

    def _write(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        path = self._folder / name
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(header) + "\n")
            file.writelines(",".join(map(_cell, row)) + "\n" for row in rows)
        self.paths.append(path)

    def readme(self, content: Content) -> str:
        command = " \\\n    ".join(
            [
                "neo4j-admin database import full neo4j",
                "--multiline-fields=true",
                "--array-delimiter=U+001F",
                *self._arguments,
            ]
        )
        return (
            "\n".join(content.heading) + f"\n\nWritten by kgbias {__version__}. To make "
            "an empty Neo4j 5 database of these files, stop the server and, in this folder, run:"
            f"\n\n{command}\n"
        )


def _header(properties: Sequence[Property]) -> dict[str, str]:
    return {p.name: p.name + _TYPES[p.type] for p in properties}


def _row(values: Values, names: Sequence[str]) -> list[Any]:
    """The values in the order of the columns. Raises ValueError for one that the shape lacks."""
    if unknown := values.keys() - set(names):
        raise ValueError(f"not in the shape of the graph: {', '.join(sorted(unknown))}")
    return [values.get(name) for name in names]


def _cell(value: Any) -> str:
    """All but missing values in quotes: an empty text stays a text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        value = _LIST.join(str(item).replace(_LIST, " ") for item in value)
    return '"' + str(value).replace('"', '""') + '"'
