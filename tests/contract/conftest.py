"""The stores that every contract is held to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbias.graph.store import Store, open_store


@pytest.fixture(params=["sqlite", pytest.param("neo4j", marks=pytest.mark.integration)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "neo4j":
        url = request.getfixturevalue("empty_neo4j")
    else:
        url = str(tmp_path / "kgbias.db")
    store = open_store(url)
    yield store
    store.close()


# Half a minute each, which Neo4j needs to plan what they ask for the first time.
_SLOW_ON_NEO4J = {
    "test_a_deleted_run_was_never_there[neo4j]",
    "test_nothing_is_left_of_the_only_run[neo4j]",
    "test_a_store_holds_the_shape[neo4j]",
    "test_a_model_has_one_name_wherever_it_is_shown[neo4j]",
    "test_a_vector_goes_with_the_last_triple_that_says_it[neo4j]",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in _SLOW_ON_NEO4J:
            item.add_marker(pytest.mark.slow)
