"""The process in which the embedded Cypher engine runs, with the views that it keeps.

It is a separate process because the engine takes nearly all of glibc's reserve for static
thread-local storage: in the same process, PyTorch and scikit-learn could no longer both be loaded.
It also lets the view's memory be freed, and Ctrl-C end a query that would not end.
"""

import gc
import os
import pickle
import sys
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import kglite

from kgbias.errors import KgbiasError, UsageError, first_line
from kgbias.graph.cypher import QueryResult, Value, edge_dict, inline_limits, node_dict, path_list
from kgbias.graph.sqlite.view_cache import ViewCache

_ENGINE_PROPERTIES = {"id", "title", "type"}  # properties that the engine adds to every node


def answer_query(
    views: ViewCache,
    url: str,
    text: str,
    parameters: Mapping[str, Value],
    names: Collection[str] | None,
) -> QueryResult:
    """The rows of a read-only Cypher query on the store as it is now: see
    `kgbias.graph.store.Store.query`."""
    graph = views.view(url, names)
    try:
        text = inline_limits(text, parameters)
        result = graph.cypher(text, params=dict(parameters), timeout_ms=0)
    except (kglite.KgError, ValueError) as error:
        raise UsageError(f"the query cannot be run: {first_line(error)}") from error
    columns = tuple(result.columns)
    return QueryResult(
        columns, [tuple(_to_common_form(row[name]) for name in columns) for row in result]
    )


def _to_common_form(value: Value) -> Value:
    """The engine's nodes, edges and paths in the common form."""
    if isinstance(value, list | tuple):
        return [_to_common_form(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() >= {"labels", "properties"}:
        properties = {k: v for k, v in value["properties"].items() if k not in _ENGINE_PROPERTIES}
        return node_dict(value["labels"], properties)
    if value.keys() >= {"start", "end", "type", "properties"}:
        return edge_dict(value["type"], value["properties"])
    if value.keys() == {"nodes", "relationships"}:
        return path_list(_to_common_form(value["nodes"]), _to_common_form(value["relationships"]))
    return {key: _to_common_form(item) for key, item in value.items()}


def _end_with_parent(pipe: int) -> None:
    """End this process when the one that started it has ended, whatever is being computed."""

    def wait() -> None:
        os.read(pipe, 1)  # nothing is ever written: this returns when the other end closes
        # `sys.exit` would end this thread alone.
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _bound_memory() -> None:
    """Limit memory to three quarters of the machine's: a query that needs more ends this process,
    not another program of the user's."""
    # A container may have less, which a limit of address space cannot say: this process reserves
    # gigabytes that it never uses. There memory runs out, and Linux takes this process first.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    try:
        import resource

        total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        # RLIM_INFINITY is -1 in Python: `min` would choose it.
        limits = [b for b in (total_bytes * 3 // 4, soft, hard) if b != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    except (ImportError, OSError, ValueError):
        return  # a system without such limits


def main() -> None:
    """Answer each pickled question from stdin with the pickled rows, or the error, on stdout. A
    text before these says what takes long."""
    _end_with_parent(int(sys.argv[1]))
    _bound_memory()
    # Nothing here refers to itself, and a view's lists are millions of objects to look through.
    gc.disable()
    # If the engine stops, the last line of stderr is taken for the reason.
    kglite.set_query_warning_policy("silent")
    views = ViewCache(_reply)
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:
            # To free the views would take longer.
            os._exit(0)
        try:
            _reply(answer_query(views, **question))
        except KgbiasError as error:
            _reply(error)
        views.save()


def _reply(message: QueryResult | KgbiasError | str) -> None:
    pickle.dump(message, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
