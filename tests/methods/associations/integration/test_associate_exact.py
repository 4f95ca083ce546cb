"""Exact p-values over more than 10^13 partitions, which take seconds."""

from pathlib import Path

import pytest

from tests.conftest import require_modules
from tests.methods.associations.test_associate import LONG, check_against_golden, word2vec  # noqa: F401

pytestmark = [pytest.mark.integration, pytest.mark.slow]
require_modules("gensim")


@pytest.mark.parametrize("name", LONG)
def test_classic_tests_on_word2vec(word2vec: Path, name: str) -> None:  # noqa: F811
    check_against_golden(word2vec, name)
