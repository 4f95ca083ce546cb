"""The lease of a run in a node of its own, which is no part of the graph. The server tells the
time."""

from contextlib import suppress
from dataclasses import asdict

from kgbias.backends.neo4j.session import Neo4jSession
from kgbias.errors import StoreError
from kgbias.graph.leases import Holder

_READ_HOLDER = """
MATCH (h:Holder {run: $run})
RETURN properties(h) AS holder, (timestamp() - h.renewed) / 1000.0 AS silent"""
# A node that is merged by its key is locked: whoever comes second sees what the first has written.
_TAKE_LEASE = """
MERGE (h:Holder {run: $run})
SET h.seen = true REMOVE h.seen
WITH h WHERE coalesce(h.token, '') IN ['', $seen, $mine.token]
SET h += $mine, h.renewed = timestamp()"""
_RENEW_LEASE = """
MATCH (h:Holder {run: $run, token: $token}) SET h.renewed = timestamp() RETURN h.run AS run"""
_DROP_LEASE = "MATCH (h:Holder {run: $run, token: $token}) DELETE h"
_SERVER_FIELDS = ("renewed", "silent")  # the server tells the time


class NodeLease:
    """See `kgbias.graph.leases.Lease`."""

    def __init__(self, session: Neo4jSession, run_id: str) -> None:
        self._session, self._run = session, run_id

    def holder(self) -> Holder | None:
        for row in self._session.read(_READ_HOLDER, run=self._run):
            holder_fields = {k: v for k, v in row["holder"].items() if k != "run"}
            return Holder(**holder_fields, silent=row["silent"])
        return None

    def take(self, mine: Holder, expected: Holder | None) -> bool:
        row = {k: v for k, v in asdict(mine).items() if k not in _SERVER_FIELDS}
        query = (
            _TAKE_LEASE,
            {"run": self._run, "mine": row, "seen": expected.token if expected else ""},
        )
        self._session.write(query)
        return self.holder() == mine

    def renew(self, mine: Holder) -> bool:
        return bool(self._session.attempt(_RENEW_LEASE, run=self._run, token=mine.token))

    def give_up(self, mine: Holder) -> None:
        with suppress(StoreError):  # it is not heard of any more, and so known to be dead
            self._session.attempt(_DROP_LEASE, run=self._run, token=mine.token)
