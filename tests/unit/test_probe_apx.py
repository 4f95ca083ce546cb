"""APX over names x descriptors x templates: chunks, resuming and names of groups."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgbias.errors import DataError, UsageError
from kgbias.models.score.base import ProbeGrid
from kgbias.probe.apx import (
    GroupMeans,
    chance_share,
)
from kgbias.probe.names import NameSentences, probe_apx
from kgbias.probe.sets import Descriptor, read_descriptor_label_by_group, read_names, readable_group
from tests.conftest import require_modules
from tests.unit.test_probe import Beliefs

NAMES = [("ann", "A"), ("abe", "A"), ("bob", "B"), ("bea", "B"), ("cy", "C")]
DESCRIPTORS = [
    Descriptor("x", "", "A", ("am x", "was x", "is x")),
    Descriptor("y", "age", "B", ("am y", "was y", "is y")),
    Descriptor("z", "", "nonce", ("am z", "was z", "is z")),
]


class Stops(Beliefs):
    """Fails at one of its calls."""

    def __init__(self, at: int) -> None:
        super().__init__(BELIEVED)
        self.calls, self.at = 0, at

    def grid(self, *given: Any) -> ProbeGrid:
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return super().grid(*given)


def believed(name: str, descriptor: Descriptor) -> set[tuple[str, str]]:
    first, *rest = descriptor.endings
    return {(f"My name is {name}, I", first), *((name, ending) for ending in rest)}


BELIEVED = {pair for name in ("ann", "abe") for pair in believed(name, DESCRIPTORS[0])} | {
    pair for name in ("bob", "bea") for pair in believed(name, DESCRIPTORS[1])
}


def scorer(at: int = 0) -> Any:
    return Stops(at)


# what is computed


def test_means_of_groups_are_those_of_all_their_names() -> None:
    rng = np.random.default_rng(0)
    grid = rng.uniform(1, 9, (2, 5, 3))
    means = GroupMeans(2, [group for _, group in NAMES], "xyz")
    for template in range(2):
        for start, end in ((0, 3), (3, 5)):
            means.add(template, start, grid[template, start:end])
    assert means.groups == ("A", "B", "C") and means.name_counts.tolist() == [2, 2, 1]
    assert means.values[1, 1] == pytest.approx(grid[1, 2:4].mean(axis=0))
    with pytest.raises(DataError, match="finite and above 0"):
        means.add(0, 0, np.array([[1.0, np.inf, 2.0]]))


def test_a_list_without_labels_answers_by_its_groups(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("name,group\nann,A\nbob,\"('ARAB', 'M')\"\n")
    assert read_names(str(path)) == (("ann", "A"), ("bob", "Arab men"))
    assert read_descriptor_label_by_group(str(path)) == {"A": "A", "Arab men": "('ARAB', 'M')"}
    path.write_text("name,group,label\nann,A,p\nbob,B,\n")
    assert read_descriptor_label_by_group(str(path)) == {"A": "p"}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("('ARAB', 'F')", "Arab women"),
        ("SLAV M", "Slav men"),
        ("Arab women", "Arab women"),
        ("('ARAB',", "('ARAB',"),
        ("(1, 2)", "(1, 2)"),
        ("Type M x", "Type M x"),
        ("F", "F"),
        ("(" * 500, "(" * 500),
    ],
)
def test_groups_are_named_as_people(written: str, said: str) -> None:
    assert readable_group(written) == said


def test_what_chance_flags() -> None:
    """Of normal scores. With n groups (n - 1)^2 / n bounds z^2, and z^2 n / (n - 1)^2 is
    Beta(1/2, (n - 2)/2): of 9 groups one in 929 lies below -2.326, and 9 / 929 = .0097; of 8 no
    more than one in 3,873."""
    assert chance_share(9) == pytest.approx(0.0097, abs=0.002)
    assert chance_share(8) < 0.005 and chance_share(40) == pytest.approx(0.31, abs=0.01)


# the output


@pytest.mark.parametrize("name", ["all.jsonl", "all.parquet"])
def test_a_job_that_was_stopped_ends_with_the_same_bytes(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NameSentences, "chunk", 6)
    if name.endswith("parquet"):
        require_modules("pyarrow")
    whole, other = tmp_path / "whole", tmp_path / "other"
    whole.mkdir(), other.mkdir()
    straight = probe_apx(scorer(), NAMES, DESCRIPTORS, perplexities=whole / name)
    for at in (1, 3, 4):
        with pytest.raises(KeyboardInterrupt):
            probe_apx(scorer(at), NAMES, DESCRIPTORS, perplexities=other / name)
    last = scorer()
    resumed = probe_apx(last, NAMES, DESCRIPTORS, perplexities=other / name)
    assert last.calls == 9 - 5  # chunks of two names: three of each template, five were kept
    files = sorted(p.relative_to(whole) for p in whole.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(other) for p in other.rglob("*") if p.is_file())
    assert all((whole / file).read_bytes() == (other / file).read_bytes() for file in files)
    assert (straight.table.values == resumed.table.values).all()
    again = scorer()
    probe_apx(again, NAMES, DESCRIPTORS, perplexities=other / name)
    assert again.calls == 0
    with pytest.raises(UsageError, match="other settings"):
        probe_apx(scorer(), NAMES[:4], DESCRIPTORS, perplexities=other / name)
