"""Cypher without a server: a disposable in-memory view of the file, made when a query needs it.

The view has the labels, edges and properties that the Neo4j store writes: the library in `cypher/`
runs unchanged on both. The view is never authoritative, and nothing is written back from it. The
engine runs in a process of its own; `kgbias.graph.sqlite.engine` says why.
"""

import os
import pickle
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping
from importlib.util import find_spec
from typing import NamedTuple

from kgbias.errors import KgbiasError, MissingExtra, StoreError, UsageError
from kgbias.graph.cypher import QueryResult, Value, sanitise_query
from kgbias.io.sandbox import start_python
from kgbias.io.wording import how

_SAVING_SECONDS = 30  # for which a view that is being saved is waited for, when a store is closed


class CypherView:
    """A store's file as the embedded Cypher engine sees it. `notify` is called with a line of text
    while the engine makes a view that takes long."""

    def __init__(self, path: str, notify: Callable[[str], None]) -> None:
        self._path, self._notify = path, notify
        self._engine: subprocess.Popen[bytes] | None = None  # the first query starts it
        self._lifeline: int | None = None  # a pipe that keeps it alive: it closes when we die

    def query(
        self,
        text: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        names: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> QueryResult:
        """The rows of a read-only Cypher query on a view of the file as it is now.

        `names` are the labels and edge types that the query needs, if known, perhaps with the names
        of the properties: see `kgbias.graph.sqlite.view_cache.ViewCache.view`. Raises UsageError
        for a query that cannot be run, MissingExtra if the engine is not installed, StoreError if
        its process died."""
        for package in ("kglite", "pandas"):
            if find_spec(package) is None:
                raise MissingExtra(package, extra="cypher")
        text, values = sanitise_query(text, parameters)
        question = {
            "url": self._path,
            "text": text,
            "parameters": values,
            "names": None if names is None else set(names),
        }
        reply = self._ask_engine(question, timeout)
        if isinstance(reply, KgbiasError):
            raise reply
        return reply

    def _ask_engine(
        self, question: Mapping[str, object], timeout: float | None
    ) -> QueryResult | KgbiasError:
        if self._engine is None:
            self._engine, self._lifeline = _start_engine()
        engine = self._engine
        assert engine.stdin and engine.stdout and engine.stderr
        timed_out = threading.Event()
        timer = None
        if timeout is not None:

            def stop() -> None:
                timed_out.set()
                # The engine does not look at signals while it computes.
                engine.kill()

            timer = threading.Timer(timeout, stop)
            timer.start()
        try:
            pickle.dump(question, engine.stdin)
            engine.stdin.flush()
            # Both ends are our own processes: nothing of a stranger's is unpickled.
            while isinstance(message := pickle.load(engine.stdout), str):
                self._notify(message)
            reply: QueryResult | KgbiasError = message
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            error_output = engine.stderr.read().decode(errors="replace").strip()
            self.close(patience=0)
            if timed_out.is_set():
                raise UsageError(
                    f"the query took longer than {timeout:g} s: ask for less, or give "
                    f"it more time ({how('kgbias.open(..., query_timeout=...)', '--timeout')})"
                ) from error
            if not error_output:
                reason = "the Cypher engine was killed, perhaps for lack of memory"
            elif "memory" in error_output.lower():
                reason = (
                    "the query, with the view that it reads, needed more memory than it may use"
                )
            else:
                raise StoreError(
                    f"the Cypher engine stopped: {error_output.splitlines()[-1][:300]}"
                ) from error
            raise StoreError(
                f"{reason}: ask for less, or push the run to a Neo4j server"
            ) from error
        except BaseException:  # Ctrl-C: its answer is no longer wanted
            self.close(patience=0)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return reply

    def close(self, *, patience: float = _SAVING_SECONDS) -> None:
        """Stop the engine, if it is running. It has so many seconds to end by itself, which is when
        the view is saved."""
        if self._engine and self._lifeline is not None:
            try:
                self._engine.communicate(timeout=patience)
            except BaseException as error:
                self._engine.kill()
                self._engine.communicate()
                if not isinstance(error, subprocess.TimeoutExpired):  # Ctrl-C
                    raise
            finally:
                os.close(self._lifeline)
                self._engine = self._lifeline = None


class _StartedEngine(NamedTuple):
    """The engine's process, and our end of the pipe to it."""

    process: subprocess.Popen[bytes]
    own_end: int


def _start_engine() -> _StartedEngine:
    """Start the engine; returns it with our end of a pipe. However this process ends, the pipe then
    closes and the engine ends too."""
    engine_end, own_end = os.pipe()
    engine = start_python(
        "kgbias.graph.sqlite.engine",
        str(engine_end),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[engine_end],
    )
    # Or the engine's end would stay open in this process, and never close.
    os.close(engine_end)
    return _StartedEngine(engine, own_end)
