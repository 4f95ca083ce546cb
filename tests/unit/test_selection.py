"""Which statements of a run count, and what is said of those that do not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbias.errors import UsageError
from kgbias.graph.selection import SelectedStatements, Selection, select_one_arm, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.stores import open_store
from tests.arms_data import arms_run
from tests.texts import Texts


@pytest.fixture
def run(tmp_path: Path) -> Iterator[StoredRun]:
    with open_store(str(tmp_path / "arms.db")) as store:
        yield arms_run(store)


def rows(counted: SelectedStatements) -> list[tuple[str, str, str, int]]:
    return [(t.arm, t.group, f"{t.predicate} {t.object}", t.count) for t in counted.triples]


def test_each_arm_is_counted_for_itself_and_nonsense_is_left_out(
    run: StoredRun, texts: Texts
) -> None:
    counted = select_statements(run)
    assert rows(counted) == [
        ("none", "Elves", "hate smoke", 1),
        ("none", "Elves", "love songs", 3),
        ("none", "Orcs", "love songs", 1),
        ("prefix", "Elves", "love songs", 1),
        ("prefix", "Orcs", "are cruel", 4),
    ]
    assert counted.arms == ("none", "prefix") and counted.has_several_arms
    assert (counted.threshold, counted.total) == (0.5, 13)
    assert counted.excluded_by_reason == {"acceptability": 3}
    texts.check(counted.note)
    assert [t.arm for t in counted.triples_of_arm("prefix")] == ["prefix", "prefix"]


def test_one_arm_has_its_own_counts_and_total(run: StoredRun, texts: Texts) -> None:
    counted = select_statements(run, Selection(arm="prefix"))
    assert rows(counted) == [
        ("prefix", "Elves", "love songs", 1),
        ("prefix", "Orcs", "are cruel", 4),
    ]
    assert (counted.arms, counted.total, counted.excluded_by_reason) == (
        ("prefix",),
        6,
        {"acceptability": 1},
    )
    with texts.raises(UsageError):
        select_statements(run, Selection(arm="both"))


def test_zero_keeps_all_and_another_threshold_is_its_own(run: StoredRun) -> None:
    everything = select_statements(run, Selection(min_acceptability=0))
    assert sum(t.count for t in everything.triples) == everything.total == 13
    assert everything.note == ""
    strict = select_statements(run, Selection(arm="none", min_acceptability=0.85))
    assert rows(strict) == [("none", "Elves", "love songs", 3), ("none", "Orcs", "love songs", 1)]
    with pytest.raises(UsageError, match="between 0 and 1"):
        Selection(min_acceptability=1.5)


def test_echoes_are_told_from_what_was_shown(run: StoredRun, texts: Texts) -> None:
    """Orcs love songs repeats an example, and one of three "Elves love songs" does too."""
    counted = select_statements(run, Selection(arm="none", exclude_echoes=True))
    assert rows(counted) == [("none", "Elves", "hate smoke", 1), ("none", "Elves", "love songs", 2)]
    assert counted.excluded_by_reason == {"echo": 2, "acceptability": 2}
    texts.check(counted.note)


def test_what_cannot_be_said_of_several_arms_names_them(run: StoredRun, texts: Texts) -> None:
    with texts.raises(UsageError):
        select_one_arm(run)
    assert select_one_arm(run, Selection(arm="none")).arms == ("none",)


def test_a_run_without_the_measure_counts_all(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "plain.db")) as store:
        run = arms_run(store, acceptability=False)
        counted = select_statements(run)
        assert (counted.threshold, counted.excluded_by_reason, counted.note) == (0.0, {}, "")
        assert select_statements(run, Selection(min_acceptability=0)).triples == counted.triples
        with pytest.raises(UsageError, match="not measured for acceptability"):
            select_statements(run, Selection(min_acceptability=0.5))


def test_the_default_says_nothing_of_itself() -> None:
    assert Selection().as_dict() == {}
    assert Selection("none", 0.0, True).as_dict() == {
        "arm": "none",
        "min_acceptability": 0.0,
        "exclude_echoes": True,
    }
