"""The lease of a run in a node of its own, which is no part of the graph. The server tells the
time."""

from contextlib import suppress
from dataclasses import asdict

from kgbias.errors import StoreError
from kgbias.graph.holding import Holder
from kgbias.graph.neo4j.session import Neo4jSession

_READ = """
MATCH (h:Holder {run: $run})
RETURN properties(h) AS holder, (timestamp() - h.renewed) / 1000.0 AS silent"""
# A node that is merged by its key is locked: whoever comes second sees what the first has written.
_TAKE = """
MERGE (h:Holder {run: $run})
SET h.seen = true REMOVE h.seen
WITH h WHERE coalesce(h.token, '') IN ['', $seen, $mine.token]
SET h += $mine, h.renewed = timestamp()"""
_RENEW = """
MATCH (h:Holder {run: $run, token: $token}) SET h.renewed = timestamp() RETURN h.run AS run"""
_GIVE_UP = "MATCH (h:Holder {run: $run, token: $token}) DELETE h"
_NOT_KEPT = ("renewed", "silent")  # the server tells the time


class NodeLease:
    """See `kgbias.graph.holding.Lease`."""

    def __init__(self, session: Neo4jSession, run_id: str) -> None:
        self._session, self._run = session, run_id

    def holder(self) -> Holder | None:
        for row in self._session.read(_READ, run=self._run):
            kept = {k: v for k, v in row["holder"].items() if k != "run"}
            return Holder(**kept, silent=row["silent"])
        return None

    def take(self, mine: Holder, seen: Holder | None) -> bool:
        row = {k: v for k, v in asdict(mine).items() if k not in _NOT_KEPT}
        query = (_TAKE, {"run": self._run, "mine": row, "seen": seen.token if seen else ""})
        self._session.write(query)
        return self.holder() == mine

    def renew(self, mine: Holder) -> bool:
        return bool(self._session.attempt(_RENEW, run=self._run, token=mine.token))

    def give_up(self, mine: Holder) -> None:
        with suppress(StoreError):  # it is not heard of any more, and so known to be dead
            self._session.attempt(_GIVE_UP, run=self._run, token=mine.token)
