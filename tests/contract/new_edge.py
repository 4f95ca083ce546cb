"""A kind of edge that nothing but this file knows, put in the store at an address and found again:
run as a process of its own, since kinds are declared before a store is opened."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kgbias.graph.edge_records import EdgeRecord, declare_edge
from kgbias.graph.record import OrNaN
from kgbias.graph.types import Generation, Group, Run, StatementEdge, Triple


@declare_edge(
    EdgeRecord(
        "MARKED",
        "what a reader marked in a statement about a group",
        "Statement",
        "SocialGroup",
        ("statement_id", "group_id"),
        keys=("reader",),
    )
)
@dataclass(frozen=True, slots=True)
class MarkedEdge(StatementEdge):
    reader: Annotated[str, "who read it"]
    times: Annotated[int, "how often"]
    share: Annotated[OrNaN, "of what was read"]
    words: Annotated[tuple[str, ...], "which the reader marked"] = ()


def main(url: str, folder: Path) -> None:
    from kgbias.export import write_export
    from kgbias.graph.push import push_run
    from kgbias.graph.sqlite.engine import answer_query
    from kgbias.graph.sqlite.view_cache import ViewCache
    from kgbias.graph.store import StoredRun
    from kgbias.graph.stores import open_store
    from kgbias.models.base import ModelInfo

    elves = Group("Elves", "peoples")
    songs = Triple("Elves", "love", "songs")
    ends = (songs.predicate_id, songs.object_id, elves.id)
    marks = [MarkedEdge(*ends, "Ana", 2, 0.5, ("love",)), MarkedEdge(*ends, "Ben", 1, math.nan)]
    with open_store(url) as store:
        run = StoredRun(store, store.begin_run(Run("marked", ModelInfo("m"), {}, (elves,))))
        said = Generation(run.id, "0", elves.id, "none", "object", 0, 0, "ok", triple=songs)
        store.record_round(run.id, "none", 0, [said])
        for _ in range(2):
            run.put(MarkedEdge, marks)
        assert repr(run.find_all(MarkedEdge)) == repr(marks)  # NaN is not itself
        query = (
            "MATCH (s:Statement)-[e:MARKED]->(g:SocialGroup) "
            "RETURN s.text, e.reader, e.times, e.words, e.run, g.name ORDER BY e.reader"
        )
        # Here, since the engine of a store in a file is a process that does not know the kind.
        found = (
            store.query(query) if "://" in url else answer_query(ViewCache(), url, query, {}, None)
        )
        assert found.rows == [
            ("love songs", "Ana", 2, ["love"], "marked", "Elves"),
            ("love songs", "Ben", 1, [], "marked", "Elves"),
        ]
        write_export(run, folder / "files", "neo4j-admin")
        assert (folder / "files" / "edges-MARKED.csv").read_text("utf-8").count("\n") == 3
        with open_store(str(folder / "copy.db")) as copy:
            push_run(run, copy)
            assert repr(copy.find_all(run.id, MarkedEdge)) == repr(marks)
        assert not store.find_faults()
        store.delete(run.id)
        assert run.find_all(MarkedEdge) == []


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
