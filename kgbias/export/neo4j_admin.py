"""The CSV layout of `neo4j-admin database import`, for millions of triples. The imported database
is a store like any other: kgbias and the library in `cypher/` run on it. Columns and their types
are those of `kgbias.graph.shape`."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from kgbias.export.content import ExportContent
from kgbias.export.neo4j_passes import TablesPass
from kgbias.export.neo4j_rows import Neo4jRows
from kgbias.graph import shape
from kgbias.graph.graph_tables import EdgeRow, PropertyValues
from kgbias.graph.record import Property
from kgbias.io.resources import __version__

_LIST_SEPARATOR = "\x1f"  # between the items of a list in a cell; in an item it becomes a space
_COLUMN_TYPES = {
    "text": "",
    "integer": ":long",
    "number": ":double",
    "boolean": ":boolean",
    "texts": ":string[]",
    "numbers": ":double[]",
}


def write_neo4j_admin(content: ExportContent, folder: Path) -> list[Path]:
    """Write a folder of CSV files, with headers, and README.txt with the command that imports them.
    The run comes with its seeds, model, generations, answers and everything found about it; only
    generations that yielded a kept triple, or no triple, are included."""
    folder.mkdir(parents=True, exist_ok=True)
    files = _ImportFiles(folder)
    graph = Neo4jRows(content)
    for table_pass in graph.iter_passes():
        files.write_pass(table_pass)
    for label, rows in graph.iter_nodes():
        with files.open_nodes(label) as write:
            write(rows)
    for kind, start, end, edges in graph.iter_edges():
        with files.open_edges(kind, start, end) as write_edges:
            write_edges(edges)
    readme = folder / "README.txt"
    readme.write_text(files.build_readme(content), encoding="utf-8")
    return [*files.paths, readme]


class _ImportFiles:
    """The CSV files of one import, and the command that reads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._nodes: dict[str, Path] = {}
        self._edges: dict[tuple[str, str, str], Path] = {}

    @property
    def paths(self) -> list[Path]:
        return [*self._nodes.values(), *self._edges.values()]

    def write_pass(self, table_pass: TablesPass[Any]) -> None:
        """Write the tables of a pass."""
        with ExitStack() as stack:
            nodes = [
                (stack.enter_context(self.open_nodes(label)), rows)
                for label, rows in table_pass.nodes.items()
            ]
            edges = [
                (stack.enter_context(self.open_edges(*ends)), rows)
                for ends, rows in table_pass.edges.items()
            ]
            for item in table_pass.items:
                for write, rows in nodes:
                    if found_nodes := rows(item):
                        write(found_nodes)
                for write_edges, edges_of in edges:
                    if found_edges := edges_of(item):
                        write_edges(found_edges)

    @contextmanager
    def open_nodes(self, label: str) -> Iterator[Callable[[Iterable[PropertyValues]], None]]:
        """The function that writes nodes of this label."""
        node = shape.get_node(label)
        names = [node.key, *(p.name for p in node.properties if p.name != node.key)]
        header = _column_headers(node.properties)
        header[node.key] = f"{node.key}:ID({label})"
        path = self._nodes[label] = self._folder / f"nodes-{label}.csv"
        with _open_table(path, [header[name] for name in names]) as file:

            def write(rows: Iterable[PropertyValues]) -> None:
                for values in rows:
                    file.write(_format_line(_order_values(values, names)))

            yield write

    @contextmanager
    def open_edges(
        self, kind: str, start: str, end: str
    ) -> Iterator[Callable[[Iterable[EdgeRow]], None]]:
        """The function that writes edges of this type between these nodes."""
        edge = shape.get_edge(kind)
        assert (start, end) in edge.ends
        name = f"edges-{kind}.csv" if len(edge.ends) == 1 else f"edges-{kind}-{start}-{end}.csv"
        names = [p.name for p in edge.properties]
        header = [
            f":START_ID({start})",
            f":END_ID({end})",
            *_column_headers(edge.properties).values(),
        ]
        path = self._edges[kind, start, end] = self._folder / name
        with _open_table(path, header) as file:

            def write(rows: Iterable[EdgeRow]) -> None:
                for start_id, end_id, values in rows:
                    file.write(_format_line([start_id, end_id, *_order_values(values, names)]))

            yield write

    def build_readme(self, content: ExportContent) -> str:
        labels = [node.label for node in shape.NODES]
        ends = [(edge.type, *pair) for edge in shape.EDGES for pair in edge.ends]
        # Since Neo4j 2026.05 a file is named with its folder.
        command = " \\\n    ".join(
            [
                "neo4j-admin database import full neo4j",
                "--multiline-fields=true",
                "--array-delimiter=U+001F",
                *(
                    f"--nodes={label}=./{self._nodes[label].name}"
                    for label in labels
                    if label in self._nodes
                ),
                *(
                    f"--relationships={edge_ends[0]}=./{self._edges[edge_ends].name}"
                    for edge_ends in ends
                    if edge_ends in self._edges
                ),
            ]
        )
        return (
            "\n".join(content.heading) + f"\n\nWritten by kgbias {__version__}. To load these "
            "files into an empty database of Neo4j 5.26 or later, stop the server and, in this "
            "folder, run:"
            f"\n\n{command}\n"
        )


@contextmanager
def _open_table(path: Path, header: Sequence[str]) -> Iterator[TextIO]:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(header) + "\n")
        yield file


def _format_line(row: Iterable[Any]) -> str:
    cells = [  # most are ids and plain texts
        f'"{value}"' if type(value) is str and '"' not in value else _format_cell(value)
        for value in row
    ]
    return ",".join(cells) + "\n"


def _column_headers(properties: Sequence[Property]) -> dict[str, str]:
    return {p.name: p.name + _COLUMN_TYPES[p.type] for p in properties}


def _order_values(values: PropertyValues, names: Sequence[str]) -> list[Any]:
    """The values in the order of the columns. Raises ValueError for one that is not in the
    shape."""
    if unknown := values.keys() - names:
        raise ValueError(f"not in the shape of the graph: {', '.join(sorted(unknown))}")
    return [values.get(name) for name in names]


def _format_cell(value: Any) -> str:
    """A value as a cell, in quotes unless it is missing: an empty text stays a text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        # One item that is empty would be no list at all.
        value = _LIST_SEPARATOR.join(_format_item(item) for item in value) or (" " if value else "")
    elif isinstance(value, float):
        value = _format_number(value)
    return '"' + str(value).replace('"', '""') + '"'


def _format_item(value: Any) -> str:
    return (
        _format_number(value)
        if isinstance(value, float)
        else str(value).replace(_LIST_SEPARATOR, " ")
    )


def _format_number(value: float) -> str:
    """As Java reads it."""
    if math.isnan(value):
        return "NaN"
    return str(value).replace("inf", "Infinity")
