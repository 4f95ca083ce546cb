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
