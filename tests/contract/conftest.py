"""The stores that every contract is held to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbias.graph.store import Store
from kgbias.graph.stores import open_store


@pytest.fixture(params=["sqlite", pytest.param("neo4j", marks=pytest.mark.integration)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "neo4j":
        url = request.getfixturevalue("empty_neo4j")
    else:
        url = str(tmp_path / "kgbias.db")
    store = open_store(url)
    yield store
    store.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep what every store promises (test_store.py) for `make test`; Neo4j plans each further
    query for seconds, on more cores than the test that asks."""
    here = Path(__file__).parent
    for item in items:
        on_neo4j = "[neo4j" in item.name or "empty_neo4j" in getattr(item, "fixturenames", ())
        if item.path.parent == here and item.path.name != "test_store.py" and on_neo4j:
            item.add_marker(pytest.mark.slow)
