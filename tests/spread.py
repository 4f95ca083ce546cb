"""For tests of work that is spread over workers: what must be the same, whoever did it."""

from kgbias.graph.sqlite import SQLiteStore
from kgbias.probe.result import ProbeStopwatch, ProbeUsage


class Still(ProbeStopwatch):
    """No two calls take as long."""

    def usage(self, tokens: int) -> ProbeUsage:
        return ProbeUsage(tokens, 0.0)


def everything(store: SQLiteStore) -> list[str]:
    """All rows of a store, in whichever order they were written, but for the token that changes
    with each write."""
    return sorted(row for row in store._db.iterdump() if not row.startswith('INSERT INTO "state"'))
