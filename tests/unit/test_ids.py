import pytest

from kgbias.graph.types import Triple, verbalise
from kgbias.ids import content_id, normalise


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Their   Food. ", "their food"),
        ("can’t", "can't"),
        ('"pasta!"', "pasta"),
        ("ﬁsh", "fish"),
        ("STRASSE", "strasse"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_normalise(text: str, normal: str) -> None:
    assert normalise(text) == normal
    assert normalise(normal) == normal


def test_ids_follow_from_content_and_keep_parts_apart() -> None:
    assert Triple("Men", "love", "Food.").id == Triple("men", "LOVE", "food").id
    assert Triple("Men", "love", "food").id != Triple("Men", "love food", "").id
    assert content_id("a", "b", "c") != content_id("a", "bc")
    assert content_id("a", "\ud800")  # a lone surrogate is text like any other


def test_ids_never_change() -> None:
    # A change here breaks every store that exists: it needs a migration.
    assert Triple("Irish people", "drink", "too much").id == "23b728cdeb8d3607594b"


def test_verbalise() -> None:
    assert verbalise("men", "can't", "cook") == "Men can't cook."
    assert verbalise("Men", "ask", "why?") == "Men ask why?"
    assert verbalise("Men", "laugh", "") == "Men laugh."
