"""Words of a query that no graph has, and the line for a name that is not there."""

import pytest

from kgbias.errors import nearest, no_such
from kgbias.graph.shape import NODES, with_end_labels
from kgbias.query import explain_unknown_words, find_labels_and_types, load_query, query_names
from tests.texts import Texts

LABELS = {n.label for n in NODES}


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("MATCH (n:Group) RETURN n.name", ["label 'Group' (did you mean SocialGroup?)"]),
        ("MATCH (n:`Group`) RETURN n", ["label 'Group'"]),
        ("MATCH (n) WHERE n:SocialGroups RETURN n", ["label 'SocialGroups'"]),
        ("MATCH (a:Run|Modle) RETURN a", ["label 'Modle' (did you mean Model?)"]),
        ("MATCH (:Triple)-[:OBJECT|SUBJET]->(x) RETURN x", ["edge type 'SUBJET'"]),
        ("MATCH (a:Run) WHERE EXISTS { (a)<-[:IN]-(:Generaton) } RETURN a", ["label 'Generaton'"]),
        (
            "MATCH (g:SocialGroup {nam: 'Women'})-[s:STEREOTYPE {runn: 'x'}]->(o) RETURN o.txt",
            [
                "property 'nam' of SocialGroup (did you mean name?)",
                "property 'runn' of STEREOTYPE (did you mean run?)",
                "property 'txt' (did you mean text?)",
            ],
        ),
        # known on some node, but not on this one
        ("MATCH (g:SocialGroup) RETURN g.prompt", ["property 'prompt' of SocialGroup"]),
        ("MATCH (g:SocialGroup) RETURN g.name AS group, count(*)", []),
        ("MATCH (t:Triple) WITH t AS x RETURN x.foo", []),  # x may be anything
        ("UNWIND $rows AS row RETURN row.thing", []),
        ("WITH {a: 1} AS m RETURN m.a, date.truncate('day', date()).year", []),
        ("CALL db.index.fulltext.queryNodes('i', 'x') YIELD node RETURN node.text", []),
        ("RETURN 'MATCH (n:Group)' // (n:Group)", []),
        ("RETURN [x IN ['a'] WHERE x = 'a' | x]", []),
    ],
)
def test_words_that_no_graph_has(query: str, lines: list[str]) -> None:
    found = explain_unknown_words(query)
    assert len(found) == len(lines)
    for line, part in zip(found, lines, strict=True):
        assert f"the graph has no {part}" in line


def test_the_library_uses_only_words_that_graphs_have() -> None:
    assert {name: explain_unknown_words(load_query(name).text) for name in query_names()} == {
        name: [] for name in query_names()
    }


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("MATCH (g:SocialGroup) RETURN count(g)", {"SocialGroup"}),
        ("MATCH (g:`SocialGroup` {name: toLower('x')}) RETURN g", {"SocialGroup"}),
        ("MATCH (g:SocialGroup {name: $name}) RETURN {of: $name}, g.degree", {"SocialGroup"}),
        ("MATCH (g)<-[e:SUBJECT]-({text: 'x'}) RETURN g, COUNT(e)", {"SUBJECT"}),
        ("MATCH p = shortestPath((a:Object)-[:OBJECT*..4]-(b)) RETURN p", {"Object", "OBJECT"}),
        ("MATCH (r:Run) WHERE EXISTS { (r)<-[:IN]-() } RETURN r", {"Run", "IN"}),
        ("MATCH (o:Object) RETURN [(o)<-[:OBJECT]-(t) | t.id]", {"Object", "OBJECT"}),
        ("MATCH (n:Nothing) RETURN n", set()),
        ("RETURN 1", set()),
        # Any node, and no edge but those that are named.
        ("MATCH (n) RETURN count(n)", LABELS),
        ("MATCH (n) WHERE n:Run RETURN n", LABELS),
        ("MATCH (n WHERE n:Run) RETURN n", LABELS),
        ("MATCH (r:Run), (n {name: 'x'}) RETURN n", LABELS),
        ("MATCH (r:Run {seconds: abs(2) - 1}), ({name: r.name}) RETURN r", LABELS),
        ("MATCH (n {name: abs(2) - 1}) RETURN n:Run", LABELS),
        ("MATCH (r:Run) WITH count(r) AS n MATCH (r) RETURN r", LABELS),
        ("MATCH (r:Run) RETURN r UNION MATCH (r) RETURN r", LABELS),
        ("MATCH (n), ()-[e:SUBJECT]->() RETURN n", LABELS | {"SUBJECT"}),
        ("MATCH (a)-[:OBJECT*0..1]->(b) RETURN b", LABELS | {"OBJECT"}),
        ("MATCH p = shortestPath((a)-[:OBJECT * 0..]-(b)) RETURN p", LABELS | {"OBJECT"}),
        ("MATCH (n:!Run) RETURN n", LABELS),
        ("MATCH (n:%) RETURN n:Run", LABELS),
        # What follows may match any edge.
        ("MATCH (r:Run)-->(n) RETURN n", None),
        ("MATCH (r:Run)<--(n) RETURN n", None),
        ("MATCH (n) WHERE COUNT { (n)--() } > 1 RETURN n", None),
        ("MATCH (r:Run)-[e]->(n) RETURN n", None),
        ("MATCH (r:Run)-[*..2]-(n) RETURN n", None),
        ("MATCH (r:Run)-[:!OF]->(n) RETURN n", None),
        ("MATCH (r:Run)-[:%]->(n) RETURN n", None),
        ("MATCH (n:$label) RETURN n", None),
        ("MATCH (n:Triple|$label) RETURN n", None),
        ("MATCH (t:Triple)-[:SUBJECT|$type]->(b) RETURN b", None),
        ("CALL db.labels() YIELD label MATCH (r:Run) RETURN label", None),
    ],
)
def test_what_a_query_can_read(query: str, kinds: set[str] | None) -> None:
    assert find_labels_and_types(query) == kinds


def test_all_that_the_library_reads_is_found() -> None:
    for name in query_names():
        query = load_query(name)
        kinds = find_labels_and_types(query.text)
        assert kinds is None or with_end_labels(kinds) >= with_end_labels(query.kinds), name


def test_the_line_for_a_name_that_is_not_there(texts: Texts) -> None:
    texts.check(no_such("run", "demoo", ["demo", "other"], " in x.db"))
    texts.check(no_such("run", "zzz", ["demo"]))
    texts.check(no_such("run", "x", []))
    many = [f"name{n}" for n in range(50)]
    assert no_such("name", "zzz", many).endswith("name39 and 10 more")
    assert no_such("name", "name77", many).endswith("?)")
    assert "…" in no_such("run", "x" * 5000, ["demo"])
    assert nearest("WOMAN", ["Men", "Women"]) == "Women" and nearest("qqq", ["Men"]) == ""
