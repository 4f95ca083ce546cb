"""Views of a SQLite store: its graph in the memory of the embedded Cypher engine, made from the
tables, and kept in this process and on disk until the store changes.

A view holds the labels and edge types that a question names, or all. The first that a process makes
holds only those of their properties that the question names, if it names any. It is kept under the
file, its state and what the view holds, so that it never serves another state or a question that
needs more. The state is the token that every write by kgbias replaces, with the size and time of
the file and its log, which reveal writes by other programs. Large views are saved in the cache
folder (`kgbias.graph.cache`). A damaged one is rebuilt.
"""

import json
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import kglite

from kgbias.graph import shape
from kgbias.graph.cache import CacheEntry
from kgbias.graph.cypher import Value
from kgbias.graph.record import PropertyType
from kgbias.graph.sqlite import selects
from kgbias.graph.sqlite.database import Database, file_stamp

_MAX_VIEWS = 2  # views that a process keeps
_MAX_CACHE_BYTES = 4 << 30  # bytes of all saved views
_MIN_SAVED_SIZE = 20_000  # nodes and edges; a smaller view is made as fast as it is read
_MIN_SLOW_CHARACTERS = 4 << 20  # characters to be read for a view that takes long
_MAX_TABLES_AHEAD = 3  # tables that are read before they are added
_ALL_NAMES = shape.PROPERTY_NAMES | {n.label for n in shape.NODES} | {e.type for e in shape.EDGES}
_ViewKey = tuple[str, str, frozenset[str]]


class ViewCache:
    """The views that this process keeps. `notify` is called with a line before one is made that
    takes long."""

    def __init__(self, notify: Callable[[str], None] = lambda _: None) -> None:
        self._notify = notify
        self._graphs: OrderedDict[_ViewKey, Any] = OrderedDict()
        self._unsaved: list[tuple[Any, _ViewKey]] = []

    def view(self, url: str, names: Collection[str] | None) -> Any:
        """A read-only kglite graph of the store at `url` as it is now, with at least the labels and
        edge types in `names`, and their properties in `names`, or all if there are none in it."""
        wanted_names = _ALL_NAMES
        if names is not None:
            properties = shape.PROPERTY_NAMES.intersection(names)
            wanted_names = shape.with_end_labels(names) | (properties or shape.PROPERTY_NAMES)
        path = os.path.realpath(url)
        with Database(url, create=False) as database:
            database.checkpoint()  # so that closing the file later does not look like a write
            current_stamp = file_stamp(
                path
            )  # before reading: a write in between gives another state
            with database.read_snapshot():
                state = f"{database.token()} {current_stamp}"
                for key in self._graphs:
                    if key[:2] == (path, state) and key[2] >= wanted_names:
                        self._graphs.move_to_end(key)
                        return self._graphs[key]
                if self._graphs:  # a session: what follows shares what is whole
                    wanted_names |= shape.PROPERTY_NAMES
                key = (path, state, wanted_names)
                graph = _load_view(key)
                if graph is None:
                    waiting_line = (
                        f"the query waits for the graph of {url} to be read; it is kept for the "
                        "next ones until the store changes"
                    )
                    graph, size = _build_view(database, key, partial(self._notify, waiting_line))
                    if size >= _MIN_SAVED_SIZE:
                        self._unsaved.append((graph, key))
        for stale_key in [k for k in self._graphs if k[0] == path and k[1] != state]:
            del self._graphs[stale_key]
        self._graphs[key] = graph
        while len(self._graphs) > _MAX_VIEWS:
            self._graphs.popitem(last=False)
        return graph

    def save(self) -> None:
        """Save the views that were made, which no answer has to wait for."""
        while self._unsaved:
            _save_view(*self._unsaved.pop())


class _BuiltView(NamedTuple):
    """A graph, with the number of its nodes and edges."""

    graph: Any
    size: int


def _build_view(
    database: Database, key: _ViewKey, say_it_takes_long: Callable[[], None]
) -> _BuiltView:
    """Tables are read while those before them are added, on two cores. kglite lets other threads of
    Python run for a part of the time alone, which is why a few are read ahead."""
    graph = kglite.KnowledgeGraph()
    size = characters = 0
    added: deque[Future[int]] = deque()
    with ThreadPoolExecutor(1) as adding_thread:
        for table in _list_tables(key[2]):
            columns = database.select_columns(table.query, table.types)
            earlier_characters = characters
            characters += sum(map(len, columns.values()))
            if earlier_characters < _MIN_SLOW_CHARACTERS <= characters:
                say_it_takes_long()
            added.append(adding_thread.submit(_add_table, graph, table, columns))
            if len(added) > _MAX_TABLES_AHEAD:
                size += added.popleft().result()
        size += sum(future.result() for future in added)
    graph.read_only(True)
    return _BuiltView(graph, size)


class _Table(NamedTuple):
    """What makes the nodes of a label, or the edges of a type between two labels: the query for
    them, the types of its columns, and how they are added to a graph, as a frame."""

    query: str
    types: dict[str, PropertyType]
    add: Callable[..., object]


def _list_tables(names: Collection[str]) -> Iterator[_Table]:
    """The tables of the labels and edge types in `names`, with their properties in it."""
    for node in shape.NODES:
        if node.label in names:
            yield _Table(
                selects.NODE_SELECTS[node.label],
                {p.name: p.type for p in node.properties if p.name in names or p.name == node.key},
                partial(
                    kglite.KnowledgeGraph.add_nodes,
                    node_type=node.label,
                    unique_id_field=node.key,
                    node_title_field=node.title if node.title in names else None,
                ),
            )
    for edge in shape.EDGES:
        starts_added: set[str] = set()
        # The last ends of PLACED and ASKS have the most edges.
        for start, end in reversed(edge.ends) if edge.type in names else ():
            yield _Table(
                selects.EDGE_SELECTS[edge.type, start, end],
                {
                    "a": "text",
                    "b": "text",
                    **{p.name: p.type for p in edge.properties if p.name in names},
                },
                partial(
                    _create_edges
                    if start in starts_added
                    else kglite.KnowledgeGraph.add_relationships,
                    connection_type=edge.type,
                    source_type=start,
                    source_id_field="a",
                    target_type=end,
                    target_id_field="b",
                ),
            )
            starts_added.add(start)


def _create_edges(
    graph: Any,
    frame: Any,
    *,
    connection_type: str,
    source_type: str,
    source_id_field: str,
    target_type: str,
    target_id_field: str,
    column_types: Mapping[str, str],
) -> None:
    """Add edges to a graph that has some of their type from nodes of their first label. There
    `add_relationships`, which is faster, would merge those between the same two nodes, and look for
    them through all edges of a node. Values keep the types of the frame, without `column_types`."""
    ends = (source_id_field, target_id_field)
    properties = ", ".join(f"{name}: row.{name}" for name in frame.columns if name not in ends)
    start_key, end_key = shape.get_node(source_type).key, shape.get_node(target_type).key
    graph.cypher(
        f"UNWIND $rows AS row MATCH (a:{source_type} {{{start_key}: row.{source_id_field}}}) "
        f"MATCH (b:{target_type} {{{end_key}: row.{target_id_field}}}) "
        f"CREATE (a)-[:{connection_type} {{{properties}}}]->(b)",
        params={"rows": frame.astype(object).where(frame.notna(), None).to_dict("records")},
        timeout_ms=0,
    )


def _add_table(graph: Any, table: _Table, columns: Mapping[str, str]) -> int:
    """Add rows to a graph, from columns as JSON; returns their number."""
    if all(text == "[]" for text in columns.values()):
        return 0
    import pandas  # only where there are rows: it takes .3 s

    # Columns that are alike, such as empty ones, are read once.
    arrays = {text: json.loads(text) for text in set(columns.values())}
    frame = pandas.DataFrame(
        {name: pandas.Series(arrays[text], dtype=object) for name, text in columns.items()}
    )
    for name, kind in table.types.items():
        if kind in ("texts", "numbers"):
            lists = _parse_lists(arrays[columns[name]], kind)
            frame[name] = pandas.Series(lists, index=frame.index, dtype=object)
        elif kind == "boolean":
            frame[name] = frame[name].astype("boolean")
        elif kind == "integer":
            # With a capital: pandas' integers that may be missing.
            frame[name] = frame[name].astype("Int64")
        elif kind == "number":
            frame[name] = frame[name].astype("float64")
    # Or kglite would look at each text, for what else it may be.
    texts = {name: "string" for name, kind in table.types.items() if kind == "text"}
    table.add(graph, frame, column_types=texts)
    return len(frame)


def _parse_lists(texts: Sequence[str | None], kind: PropertyType) -> list[Value]:
    """Lists stored as JSON; for an object, its keys as texts or its values as numbers."""
    # At once: for each by itself, to call Python's JSON takes longer than to parse it.
    parts = ("null" if text is None else text for text in texts)
    values = json.loads(f"[{','.join(parts)}]")
    if kind == "texts":
        return [None if value is None else list(value) for value in values]
    lists = (value.values() if isinstance(value, dict) else value for value in values)
    return [None if numbers is None else list(map(float, numbers)) for numbers in lists]


def _cache_entry(key: _ViewKey) -> CacheEntry:
    path, state, kinds = key
    contents = (
        f"{kglite.__version__} {json.dumps(sorted(kinds))} {selects.NODE_SELECTS} "
        f"{selects.EDGE_SELECTS}"
    )
    return CacheEntry(("views", "kgl"), path, state, contents)


def _load_view(key: _ViewKey) -> Any | None:
    """The saved view, or None if there is none that can be read."""
    place = _cache_entry(key)
    try:
        graph = kglite.load(str(place.file), verify="eager")
        place.touch()
    except (kglite.KgError, OSError, ValueError):
        return None
    graph.read_only(True)
    return graph


def _save_view(graph: Any, key: _ViewKey) -> None:
    """Save a view and remove those of older states. A cache that cannot be written is not an
    error."""
    place = _cache_entry(key)
    path, state, _ = key
    try:
        place.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        graph.save(str(place.file), fsync=False, layout="compact")  # written beside it and renamed
        place.make_room(lambda: state.endswith(f" {file_stamp(path)}"), _MAX_CACHE_BYTES)
    except (kglite.KgError, OSError, ValueError):
        return
