"""A library query in the real Neo4j Browser: connect, run the file as it stands, see nodes."""

from pathlib import Path
from typing import Any

import pytest

from kgbias.graph.push import push_run
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import Group
from kgbias.query import query_names
from kgbias.query.library import write_favourites
from tests.backends.neo4j.browser import Neo4jBrowser, read_query
from tests.report_data import measured_run

pytestmark = pytest.mark.integration


def test_a_person_sees_a_group_as_a_picture(
    neo4j_server: dict[str, str],
    empty_neo4j: str,
    store: SQLiteStore,
    chromium: Any,
    tmp_path: Path,
) -> None:
    groups = (Group("Women", "gender"), Group("Men", "gender"))
    run = measured_run(store, groups, ["food", "rain", "<b onmouseover=window.pwned=1>x</b>"])
    push_run(StoredRun(store, run), open_store(empty_neo4j))
    browser = Neo4jBrowser(chromium, neo4j_server["NEO4J_HTTP"], neo4j_server["NEO4J_PASSWORD"])
    style = (Path(__file__).parents[4] / "docs" / "kgbias.grass").read_text()
    browser.run(":style " + " ".join(style.split()))
    browser.run(
        f':params {{group: "Women", run: "{run.name}", arm: null, min_acceptability: 0.5, '
        "limit: 20}"
    )
    browser.run(read_query("picture"))
    drawn = browser.nodes(4)  # the group and its three objects
    captions = " ".join(drawn.all_text_contents())
    assert "Women" in captions and "food" in captions and "rain" in captions
    browser.run(read_query("neighbourhood"))
    table = browser.newest_frame.inner_text()
    assert "predicate" in table and "food" in table and "love" in table
    assert browser.page.evaluate("window.pwned") is None
    write_favourites(tmp_path / "queries.zip")
    browser.drop_queries(tmp_path / "queries.zip")
    first, *others = browser.favourites()
    assert len(others) == len(query_names()) and all(len(name) <= 25 for name in others)
    assert "Successfully set your parameters" in browser.run_favourite(first)
    for name in ("Shared", "Lineage", "Groups by effect"):
        said = browser.run_favourite(name)
        assert "Expected parameter" not in said and "ERROR" not in said, name
    browser.page.close()
