"""Groups that pairs are asked about, from files and by name."""

from pathlib import Path

import pytest

from kgbias.errors import UsageError
from kgbias.methods.pairs.config import configure_pairs
from tests.texts import Texts


def test_a_file_of_groups_may_name_persons(tmp_path: Path) -> None:
    path = tmp_path / "trades.csv"
    path.write_text("group,person\nBakers,a baker\nGlaziers,\n")
    asked = configure_pairs("smollm2", seeds=str(path))
    assert [(p.slot, p.name, p.category) for p in asked.people] == [
        ("group", "a baker", "trades"),
        ("group", "someone from the group Glaziers", "trades"),
    ]
    assert {w.slot for w in asked.wordings} == {"group"}


def test_a_group_is_added_to_categories(texts: Texts) -> None:
    both = configure_pairs("smollm2", category="gender", group="Women")
    assert {g.name for g in both.groups} > {"Women"}
    with texts.raises(UsageError):
        configure_pairs("smollm2", group="Woman")
    with pytest.raises(UsageError, match="no category 'sex'"):
        configure_pairs("smollm2", category="sex")
