"""The model cards of the offline scorers are what their templates make."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from training.scorers.card import fill

# Of the weights that ship alone: readers trained again will know the tropes.
OF_THESE = " (before 138 tropes were added to its tables: training\n  again gives other weights)"


@pytest.mark.parametrize(
    ("template", "card"),
    [("regard", "MODEL"), ("attack", "ATTACK"), ("acceptability", "ACCEPTABILITY")],
)
def test_a_card_is_its_template_with_figures(template: str, card: str) -> None:
    text = (ROOT / f"training/scorers/{template}_card_template.md").read_text("utf-8")
    shipped = (ROOT / f"kgbias/measure/scorers/{card}_CARD.md").read_text("utf-8")
    parts = re.split(r"\{\{.*?\}\}", text)
    assert re.fullmatch("(?s:.+?)".join(map(re.escape, parts)), shipped.replace(OF_THESE, ""))


def test_figures_take_their_places(tmp_path: Path) -> None:
    template = tmp_path / "card.md"
    template.write_text("Of {{ n }}:\n\n| a | b |\n| --- | --- |\n{{ found | rows }}\n", "utf-8")
    assert fill(template, {"n": 2, "found": [("x", 1), ("{{ n }}", "0.5")]}) == (
        "Of 2:\n\n| a | b |\n| --- | --- |\n| x | 1 |\n| {{ n }} | 0.5 |\n"
    )
