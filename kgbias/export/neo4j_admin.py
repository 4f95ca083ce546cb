"""The CSV layout of `neo4j-admin database import`, for millions of triples. The imported database
is a store like any other: kgbias and the library in `cypher/` run on it. Columns and their types
are those of `kgbias.graph.shape`."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from kgbias.export.content import Content
from kgbias.export.graph_passes import Pass
from kgbias.export.graph_rows import GraphRows
from kgbias.graph import shape
from kgbias.graph.graph_tables import EdgeRow, PropertyValues
from kgbias.graph.record import Property
from kgbias.io.resources import __version__

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
    """Write a folder of CSV files, with headers, and README.txt with the command that imports them.
    The run comes with its seeds, model, generations, answers and everything found about it; only
    generations that yielded a kept triple, or no triple, are included."""
    folder.mkdir(parents=True, exist_ok=True)
    files = _Files(folder)
    graph = GraphRows(content)
    for one in graph.passes():
        files.together(one)
    for label, rows in graph.nodes():
        with files.nodes(label) as write:
            write(rows)
    for kind, start, end, edges in graph.edges():
        with files.edges(kind, start, end) as write_edges:
            write_edges(edges)
    readme = folder / "README.txt"
    readme.write_text(files.readme(content), encoding="utf-8")
    return [*files.paths, readme]


class _Files:
    """The CSV files of one import, and the command that reads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._nodes: dict[str, Path] = {}
        self._edges: dict[tuple[str, str, str], Path] = {}

    @property
    def paths(self) -> list[Path]:
        return [*self._nodes.values(), *self._edges.values()]

    def together(self, one: Pass[Any]) -> None:
        """Write the tables of a pass."""
        with ExitStack() as stack:
            nodes = [
                (stack.enter_context(self.nodes(label)), rows) for label, rows in one.nodes.items()
            ]
            edges = [
                (stack.enter_context(self.edges(*ends)), rows) for ends, rows in one.edges.items()
            ]
            for item in one.items:
                for write, rows in nodes:
                    if found := rows(item):
                        write(found)
                for write_edges, edges_of in edges:
                    if found_edges := edges_of(item):
                        write_edges(found_edges)

    @contextmanager
    def nodes(self, label: str) -> Iterator[Callable[[Iterable[PropertyValues]], None]]:
        """The function that writes nodes of this label."""
        node = shape.get_node(label)
        names = [node.key, *(p.name for p in node.properties if p.name != node.key)]
        header = _header(node.properties)
        header[node.key] = f"{node.key}:ID({label})"
        path = self._nodes[label] = self._folder / f"nodes-{label}.csv"
        with _table(path, [header[name] for name in names]) as file:

            def write(rows: Iterable[PropertyValues]) -> None:
                for values in rows:
                    file.write(_line(_row(values, names)))

            yield write

    @contextmanager
    def edges(self, kind: str, start: str, end: str) -> Iterator[Callable[[Iterable[EdgeRow]], None]]:
        """The function that writes edges of this type between these nodes."""
        edge = shape.get_edge(kind)
        assert (start, end) in edge.ends
        name = f"edges-{kind}.csv" if len(edge.ends) == 1 else f"edges-{kind}-{start}-{end}.csv"
        names = [p.name for p in edge.properties]
        header = [f":START_ID({start})", f":END_ID({end})", *_header(edge.properties).values()]
        path = self._edges[kind, start, end] = self._folder / name
        with _table(path, header) as file:

            def write(rows: Iterable[EdgeRow]) -> None:
                for a, b, values in rows:
                    file.write(_line([a, b, *_row(values, names)]))

            yield write

    def readme(self, content: Content) -> str:
        labels = [n.label for n in shape.NODES]
        ends = [(e.type, *pair) for e in shape.EDGES for pair in e.ends]
        # Since Neo4j 2026.05 a file is named with its folder.
        command = " \\\n    ".join(
            [
                "neo4j-admin database import full neo4j",
                "--multiline-fields=true",
                "--array-delimiter=U+001F",
                *(f"--nodes={n}=./{self._nodes[n].name}" for n in labels if n in self._nodes),
                *(
                    f"--relationships={e[0]}=./{self._edges[e].name}"
                    for e in ends
                    if e in self._edges
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
def _table(path: Path, header: Sequence[str]) -> Iterator[TextIO]:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(header) + "\n")
        yield file


def _line(row: Iterable[Any]) -> str:
    cells = [  # most are ids and plain texts
        f'"{value}"' if type(value) is str and '"' not in value else _cell(value) for value in row
    ]
    return ",".join(cells) + "\n"


def _header(properties: Sequence[Property]) -> dict[str, str]:
    return {p.name: p.name + _TYPES[p.type] for p in properties}


def _row(values: PropertyValues, names: Sequence[str]) -> list[Any]:
    """The values in the order of the columns. Raises ValueError for one that is not in the
    shape."""
    if unknown := values.keys() - names:
        raise ValueError(f"not in the shape of the graph: {', '.join(sorted(unknown))}")
    return [values.get(name) for name in names]


def _cell(value: Any) -> str:
    """A value as a cell, in quotes unless it is missing: an empty text stays a text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        # One item that is empty would be no list at all.
        value = _LIST.join(_item(item) for item in value) or (" " if value else "")
    elif isinstance(value, float):
        value = _number(value)
    return '"' + str(value).replace('"', '""') + '"'


def _item(value: Any) -> str:
    return _number(value) if isinstance(value, float) else str(value).replace(_LIST, " ")


def _number(value: float) -> str:
    """As Java reads it."""
    if math.isnan(value):
        return "NaN"
    return str(value).replace("inf", "Infinity")
