"""Fixtures for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbias.graph.sqlite import SQLiteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(str(tmp_path / "kgbias.db"))
    yield store
    store.close()
