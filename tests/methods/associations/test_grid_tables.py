"""Tables of a grid of association tests, from rows by hand."""

from typing import Any

import pytest

from kgbias.methods.associations.paper_files import grid_tables

pytest.importorskip("scipy")


def record_row(model: str, encoding: str, concept: str, effect: float) -> dict[str, Any]:
    cell = {
        "model": model,
        "test": f"{concept}-name",
        "contexts": "templates",
        "words": "full",
        "encoding": encoding,
        "apart": 0,
    }
    return {
        "cell": cell,
        "method": "w-seat",
        "effect_size": effect,
        "seconds": 1.0,
        "p_value": 0.5,
        "p_test": 0.5,
        "p_holm": 0.5,
        "p_bh": 0.5,
        "exact": True,
        "n": {"x": 4, "y": 4},
    }


def test_settings_agree_within_a_model() -> None:
    """Two encodings over three concepts, in which one model's effects shift by 0.1 and the other's
    turn round."""
    effects = {"C1": 0.2, "C6": 0.4, "C9": 0.9}
    rows = [
        record_row(model, encoding, concept, change(effect))
        for model, changes in (
            ("same", {"sentence": lambda e: e, "word-average": lambda e: e + 0.1}),
            ("turned", {"sentence": lambda e: e, "word-average": lambda e: -e}),
        )
        for encoding, change in changes.items()
        for concept, effect in effects.items()
    ]
    (settings,) = [table for table in grid_tables(rows) if table.name == "settings"]
    assert [row[:4] for row in settings.rows] == [
        ("same", "w-SEAT", "encoding", "sentence | word-average"),
        ("turned", "w-SEAT", "encoding", "sentence | word-average"),
    ]
    figures = [pytest.approx((1, 1, 1, 0.1, 3)), pytest.approx((-1, -1, 0, 1, 3))]
    assert [row[4:] for row in settings.rows] == figures
