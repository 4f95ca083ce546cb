"""Words of messages (`kgbias.io.wording`)."""

import pytest

from kgbias.io.wording import pluralise


@pytest.mark.parametrize(
    "number, said",
    [(0, "0 answers"), (1, "1 answer"), (2, "2 answers"), (1.5, "1.5 answers")],
)
def test_a_noun_follows_its_number(number: float, said: str) -> None:
    assert pluralise(number, "answer") == said


def test_irregular_plurals_and_large_numbers() -> None:
    assert pluralise(1, "story", "stories", spec=",") == "1 story"
    assert pluralise(2_000, "story", "stories", spec=",") == "2,000 stories"
