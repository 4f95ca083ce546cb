"""Views of a SQLite store: its graph in the memory of the embedded Cypher engine, made from the
tables, and kept in this process and on disk until the store changes.

A view holds the labels and edge types that a question names, or all. It is kept under the file, its
state and what the view holds, so that it never serves another state or a question that needs more.
The state is the token that every write by kgbias replaces, with the size and time of the file and
its log, which reveal writes by other programs. Large views are saved in the cache folder
(`kgbias.graph.derived`). A damaged one is rebuilt.
"""

import json
import os
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Any

import kglite

from kgbias.graph import shape
from kgbias.graph.cypher import Value
from kgbias.graph.derived import Place
from kgbias.graph.record import Property, Type
from kgbias.graph.sqlite import rows
from kgbias.graph.sqlite.database import Database, stamp

_IN_MEMORY = 2  # views that a process keeps
_ON_DISK = 4 << 30  # bytes of all saved views
_WORTH_SAVING = 20_000  # nodes and edges; a smaller view is made as fast as it is read
_EVERYTHING = frozenset({n.label for n in shape.NODES} | {e.type for e in shape.EDGES})
_Key = tuple[str, str, frozenset[str]]


class Views:
    """The views that this process keeps."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, Any] = OrderedDict()

    def view(self, url: str, names: Collection[str] | None) -> Any:
        """A read-only kglite graph of the store at `url` as it is now, with at least the labels and
        edge types in `names`."""
        wanted = _EVERYTHING if names is None else shape.closed(names)
        path = os.path.realpath(url)
        with Database(url, create=False) as database:
            database.checkpoint()  # so that closing the file later does not look like a write
            now = stamp(path)  # before reading: a write in between gives another state
            with database.one_moment():
                state = f"{database.token()} {now}"
                for key in self._kept:
                    if key[:2] == (path, state) and key[2] >= wanted:
                        self._kept.move_to_end(key)
                        return self._kept[key]
                key = (path, state, wanted)
                graph = _saved(key) or _built(database, key)
        for old in [k for k in self._kept if k[0] == path and k[1] != state]:
            del self._kept[old]
        self._kept[key] = graph
        while len(self._kept) > _IN_MEMORY:
            self._kept.popitem(last=False)
        return graph


def _built(database: Database, key: _Key) -> Any:
    graph = kglite.KnowledgeGraph()
    size = 0
    for node in shape.NODES:
        if node.label in key[2]:
            frame = _frame(database, rows.NODES[node.label], node.properties)
            size += len(frame)
            if len(frame):
                graph.add_nodes(frame, node.label, node.key, node.title)
    for edge in shape.EDGES:
        if edge.type not in key[2]:
            continue
        for start, end in edge.ends:
            frame = _frame(database, rows.EDGES[edge.type, start, end], edge.properties)
            size += len(frame)
            if len(frame):
                # All edges between two labels at once: a second load merges parallel ones.
                graph.add_relationships(frame, edge.type, start, "a", end, "b")
    if size >= _WORTH_SAVING:
        _save(graph, key)
    graph.read_only(True)
    return graph


def _frame(database: Database, query: str, properties: Sequence[Property]) -> Any:
    """A query's rows as a table with the types of the shape."""
    import pandas

    names, found = database.select(query)
    frame = pandas.DataFrame(found, columns=names)
    for p in properties:
        if p.type in ("texts", "numbers"):
            frame[p.name] = pandas.Series([_list(v, p.type) for v in frame[p.name]], dtype=object)
        elif p.type == "boolean":
            frame[p.name] = frame[p.name].astype("boolean")
        elif p.type == "integer":
            frame[p.name] = frame[p.name].astype("Int64")
        elif p.type == "number":
            frame[p.name] = frame[p.name].astype("float64")
    return frame


def _list(text: object, kind: Type) -> Value:
    """A list stored as JSON; for an object, its keys as texts or its values as numbers. A missing
    value may be None or pandas's NaN."""
    if not isinstance(text, str):
        return None
    value = json.loads(text)
    if isinstance(value, dict):
        value = list(value.values() if kind == "numbers" else value)
    return [float(v) for v in value] if kind == "numbers" else value


def _place(key: _Key) -> Place:
    path, state, kinds = key
    held = f"{kglite.__version__} {json.dumps(sorted(kinds))} {rows.NODES} {rows.EDGES}"
    return Place(("views", "kgl"), path, state, held)


def _saved(key: _Key) -> Any | None:
    """The saved view, or None if there is none that can be read."""
    place = _place(key)
    try:
        graph = kglite.load(str(place.file), verify="eager")
        place.used()
    except (kglite.KgError, OSError, ValueError):
        return None
    graph.read_only(True)
    return graph


def _save(graph: Any, key: _Key) -> None:
    """Save a view and remove those of older states. A cache that cannot be written is not an
    error."""
    place = _place(key)
    path, state, _ = key
    try:
        place.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        graph.save(str(place.file), fsync=False)  # written beside it and renamed
        place.make_room(lambda: state.endswith(f" {stamp(path)}"), _ON_DISK)
    except (kglite.KgError, OSError, ValueError):
        return
