"""Runs in several languages meet in one node for a group."""

from dataclasses import replace
from pathlib import Path

from kgbias.graph.push import push_run
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import Group, Run, Triple
from tests.contract.test_store import GROUPS, MODEL, RUN, said


def test_a_group_is_one_node_in_all_languages(store: Store, tmp_path: Path) -> None:
    """The German run, written first, has its own names; the node has the English one. A copy is the
    same, and deleting one run leaves the other's."""
    frauen = Group("Frauen", "gender", ("Damen", "Weiber"), "Women")
    config = {"seed": 0, "pack": {"language": "de"}}
    german = Run("german", MODEL, config, (frauen,))
    assert (frauen.id, german.language, RUN.language) == (GROUPS[0].id, "de", "en")
    triple = Triple("Frauen", "lesen", "gern", "Women")
    for run, said_triple in ((german, triple), (RUN, Triple("Women", "like", "to read"))):
        store.begin_run(run)
        store.record_round(
            run.id, "none", 0, [replace(said("none/0", "Women", "", "", run), triple=said_triple)]
        )
        store.set_status(run.id, "complete")
    graph = (
        "MATCH (r:Run)-[seeded:SEEDED]->(g:SocialGroup {name: 'Women'}) "
        "MATCH (g)-[s:STEREOTYPE]->() WHERE s.run = r.name "
        "MATCH (t:Triple)-[:SUBJECT]->(g) WHERE t.uid = s.triple "
        "RETURN r.language, s.language, g.uid, seeded.names, t.text ORDER BY r.name"
    )
    rows = [
        ("en", "en", GROUPS[0].id, None, "Women like to read"),
        ("de", "de", GROUPS[0].id, list(frauen.own_names), "Frauen lesen gern"),
    ]
    copy = open_store(str(tmp_path / "copy.db"))
    push_run(StoredRun.find(store, "german"), copy)
    for each, expected in ((store, rows), (copy, rows[1:])):
        assert each.query(graph).rows == expected
        run = StoredRun.find(each, "german")
        assert run.groups == (frauen,) and run.find_group("women") == run.find_group("DAMEN")
        assert [t.sentence for t in run.triples()] == ["Frauen lesen gern."]
        assert [t.group for t in run.triples_of_arm("none")] == ["Frauen"]
        assert [row.group for row in run.iter_statement_rows()] == ["Frauen"]
        assert run.distinct_triples() == [(triple.id, "Frauen", "lesen", "gern")]
        (generation,) = run.generations()
        assert generation.triple == triple
        assert run.generations_of_triple(triple.id, "none", offset=0, limit=1) == [generation]
        assert each.find_faults() == []
    copy.close()
    assert [t.group for t in StoredRun.find(store, RUN.name).triples()] == ["Women"]
    store.delete(RUN.id)
    assert StoredRun.find(store, "german").groups == (frauen,)
