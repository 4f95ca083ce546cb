"""Groups that stories are asked about, from files and by name."""

from pathlib import Path

import pytest

from kgbias.errors import UsageError
from kgbias.methods.stories.config import configure_stories
from tests.texts import Texts
from tests.unit.test_seeds import TRADES


def test_a_file_of_groups_may_name_persons(tmp_path: Path) -> None:
    path = tmp_path / "trades.csv"
    path.write_text(TRADES)
    told = configure_stories("smollm2", seeds=str(path))
    assert [p.name for p in told.people if p.category == "work"] == ["a baker", "a glazier"]
    assert {p.group for p in told.people} == {"Bakers", "Glaziers", "Women"}
    assert "a woman" in {p.name for p in told.people}  # the pack has words for them


def test_a_group_is_added_to_categories(texts: Texts) -> None:
    both = configure_stories("smollm2", category="gender", group="Women")
    assert {g.name for g in both.groups} > {"Women"}
    with texts.raises(UsageError):
        configure_stories("smollm2", group="Woman")
    with pytest.raises(UsageError, match="no category 'sex'"):
        configure_stories("smollm2", category="sex")
    alone = configure_stories("smollm2", category="job", group=["Bakers", "Women"])
    assert {(g.name, g.category) for g in alone.groups} == {("Bakers", "job"), ("Women", "gender")}
