"""Cypher without a server: a disposable in-memory view of the file, made when a query wants it.

The view has the labels, edges and properties that the Neo4j store writes, so that the library in
`cypher/` runs unchanged on both. It is never the truth and nothing is written back. The engine has
a process of its own: `kgbias.graph.sqlite.engine` says why.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Collection, Mapping
from importlib.util import find_spec

from kgbias.errors import KgbiasError, MissingExtra, StoreError
from kgbias.graph.cypher import QueryResult, Value
from kgbias.graph.sqlite.database import Database


class CypherView(Database):
    """The file as the embedded Cypher engine sees it."""

    _engine: subprocess.Popen[bytes] | None = None  # started by the first query, kept for the next

    def query(
        self,
        text: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        names: Collection[str] | None = None,
    ) -> QueryResult:
        """The rows of a read-only Cypher query on a view of the file as it is now.

        `names` are the labels and edge types that the query needs, where that is known: the view
        then holds only these. Raises UsageError for a query that cannot be run, MissingExtra
        without the engine, StoreError if its process died."""
        for package in ("kglite", "pandas"):
            if find_spec(package) is None:
                raise MissingExtra(package, extra="cypher")
        question = {
            "url": self.url,
            "text": text,
            "parameters": dict(parameters or {}),
            "names": None if names is None else set(names),
        }
        reply = self._asked(question)
        if isinstance(reply, KgbiasError):
            raise reply
        return reply

    def close(self) -> None:
        self._stop_engine()
        super().close()

    def _asked(self, question: Mapping[str, object]) -> QueryResult | KgbiasError:
        engine = self._engine = self._engine or _started()
        assert engine.stdin and engine.stdout and engine.stderr
        try:
            pickle.dump(question, engine.stdin)
            engine.stdin.flush()
            reply: QueryResult | KgbiasError = pickle.load(engine.stdout)
        except (EOFError, BrokenPipeError) as error:
            last = engine.stderr.read().decode(errors="replace").strip().splitlines()[-1:]
            self._stop_engine()
            raise StoreError(f"the Cypher engine stopped: {' '.join(last)}") from error
        except BaseException:  # Ctrl-C: what it was asked is of no use any more
            self._stop_engine()
            raise
        return reply

    def _stop_engine(self) -> None:
        if self._engine:
            self._engine.kill()
            self._engine.communicate()
            self._engine = None


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "kgbias.graph.sqlite.engine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # this kgbias, not another
    )
