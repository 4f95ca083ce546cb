"""A kind of node that nothing but this file knows, put in the store at an address and found again,
with an edge at it: run as a process of its own, since kinds are declared before a store is
opened."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kgbias.graph.edge_records import EdgeRecord, declare_edge
from kgbias.graph.node_records import NodeRecord, declare_node
from kgbias.graph.record import OrNaN
from kgbias.graph.types import Group, Run
from kgbias.ids import content_id


@declare_node(
    NodeRecord(
        "Remark",
        "a remark of a reader",
        "reader",
        table="remark",
        checked=("reader", "text"),
        held_by="REMARKED",
    )
)
@dataclass(frozen=True, slots=True)
class Remark:
    reader: Annotated[str, "who read it"]
    text: Annotated[str, "what was remarked"]
    share: Annotated[OrNaN, "of what was read"] = math.nan
    words: Annotated[tuple[str, ...], "which the reader marked"] = ()
    page: Annotated[int | None, "where"] = None

    @property
    def id(self) -> str:
        return content_id("remark", self.reader, self.text)


@declare_edge(
    EdgeRecord("REMARK_ON", "whom it is about", "Remark", "SocialGroup", ("remark_id", "group_id"))
)
@dataclass(frozen=True, slots=True)
class RemarkOn:
    remark_id: str
    group_id: str
    times: Annotated[int, "how often"]


def main(url: str, folder: Path) -> None:
    from kgbias.export import write_export
    from kgbias.graph.push import push_run
    from kgbias.graph.sqlite.engine import answer_query
    from kgbias.graph.sqlite.view_cache import ViewCache
    from kgbias.graph.store import StoredRun
    from kgbias.graph.stores import open_store
    from kgbias.models.base import ModelInfo

    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.contract.test_records import check_records

    elves = Group("Elves", "peoples")
    own, shared = Remark("Ana", "odd", 0.5, ("odd", "new"), 3), Remark("Ben", "trite")
    remarks = sorted((own, shared), key=lambda r: r.id)
    abouts = [RemarkOn(r.id, elves.id, 2) for r in remarks]
    with open_store(url) as store:
        # With what else is declared, whatever they hold; a server takes minutes for it.
        if "://" not in url:
            check_records(store, 2)
        run, other = (
            StoredRun(store, store.begin_run(Run(name, ModelInfo("m"), {"n": name}, (elves,))))
            for name in ("remarked", "other")
        )
        run.put(Remark, [Remark(own.reader, own.text, page=9), shared])
        for _ in range(2):  # one that exists is replaced
            run.put(Remark, remarks[::-1])
            run.put(RemarkOn, abouts)
        other.put(Remark, [shared])
        assert repr(run.find_all(Remark)) == repr(remarks)  # NaN is not itself
        assert repr(other.find_all(Remark)) == repr([shared])
        assert run.find_all(RemarkOn) == abouts
        query = (
            "MATCH (r:Run)-[:REMARKED]->(n:Remark)-[e:REMARK_ON]->(g:SocialGroup) "
            "RETURN r.name, n.reader, n.words, n.page, e.times, g.name ORDER BY r.name, n.reader"
        )
        # Here, since the engine of a store in a file is a process that does not know the kind.
        found = (
            store.query(query) if "://" in url else answer_query(ViewCache(), url, query, {}, None)
        )
        assert found.rows == [
            ("other", "Ben", [], None, 2, "Elves"),
            ("remarked", "Ana", ["odd", "new"], 3, 2, "Elves"),
            ("remarked", "Ben", [], None, 2, "Elves"),
        ]
        write_export(run, folder / "files", "neo4j-admin")
        for name in ("nodes-Remark", "edges-REMARKED", "edges-REMARK_ON"):
            assert (folder / "files" / f"{name}.csv").read_text("utf-8").count("\n") == 3, name
        with open_store(str(folder / "copy.db")) as copy:
            for _ in range(2):
                push_run(run, copy)
            assert repr(copy.find_all(run.id, Remark)) == repr(remarks)
            assert copy.find_all(run.id, RemarkOn) == abouts
            assert not copy.find_faults()
            # Back into the store that it came from, where it changes nothing.
            push_run(StoredRun(copy, copy.find_run("remarked")), store)
        assert repr(run.find_all(Remark)) == repr(remarks)
        assert not store.find_faults()
        # An edge of another run keeps a node that only this one holds.
        other.put(RemarkOn, [RemarkOn(own.id, elves.id, 1)])
        for dry_run in (True, False):
            assert "Remark" not in store.delete(run.id, dry_run=dry_run)
        assert run.find_all(Remark) == []
        assert other.find_all(RemarkOn) == [RemarkOn(own.id, elves.id, 1)]
        assert not store.find_faults()
        for dry_run in (True, False):
            assert store.delete(other.id, dry_run=dry_run)["Remark"] == 2
        assert not store.find_faults()
    # An id that does not match its content is found.
    with open_store(url) as store:
        run = StoredRun(store, store.begin_run(Run("wrong", ModelInfo("m"), {}, (elves,))))
        run.put(Remark, [own])
        if "://" in url:
            store.write(("MATCH (n:Remark) SET n.text = 'even'", {}))  # type: ignore[attr-defined]
        else:
            store._db.execute("UPDATE remark SET text = 'even'")  # type: ignore[attr-defined]
        (fault,) = store.find_faults()
        assert (fault.kind, fault.count, fault.example) == ("id", 1, own.id), fault
        assert store.delete(run.id)["Remark"] == 1
        assert not store.find_faults()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
