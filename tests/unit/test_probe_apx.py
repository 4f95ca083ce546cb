"""APX over names x descriptors x templates: chunks, resuming, labels and names of groups."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kgbias
from kgbias.errors import DataError, UsageError
from kgbias.models.score.base import ProbeGrid
from kgbias.probe.apx import (
    GroupMeans,
    apx_table,
    chance_share,
    find_flags,
    read_apx,
    validate_apx,
    write_apx,
)
from kgbias.probe.names import NameSentences, flag_apx, probe_apx
from kgbias.probe.sets import Descriptor, name_people, read_descriptors, read_labels, read_names
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
    assert means.groups == ("A", "B", "C") and means.names.tolist() == [2, 2, 1]
    assert means.values[1, 1] == pytest.approx(grid[1, 2:4].mean(axis=0))
    with pytest.raises(DataError, match="finite and above 0"):
        means.add(0, 0, np.array([[1.0, np.inf, 2.0]]))


def test_labels_by_hand() -> None:
    """Two groups answer to p, one to q, one to nothing. Descriptor x is labelled p, y is q, n is
    nonsense. Means of the labelled part: A (1, 4), B (4, 16), C (2, 1).

    Plain: p has (2.5, 10), q (2, 1), so x is found second and y first. Adjusted, with each group's
    mean (2.5, 10, 1.5) over 14 / 3: A and B become (1.87, 7.47), C (6.22, 3.11): both are found.
    """
    means = GroupMeans(1, ["A", "B", "C", "D"], ("x", "y", "n"))
    means.add(0, 0, np.array([[1, 4, 50], [4, 16, 60], [2, 1, 70], [9, 9, 9.0]]))
    found = validate_apx(means, ["p", "q", "nonce"], {"A": "p", "B": "p", "C": "q"})
    assert found is not None and found.labels == ("p", "q")
    assert found.perplexity.accuracy.value == 0.5 and found.perplexity.mrr.value == 0.75
    assert found.apx.accuracy.value == 1 and found.apx.mrr.value == 1
    assert found.gain.value == 0.25 and found.gain.n == 2
    assert found.chance_scores == {"accuracy": 0.5, "mrr": 0.75}
    # nothing to choose from
    assert validate_apx(means, ["p", "p", ""], {"A": "p"}) is None
    assert validate_apx(means, ["p", "", ""], {"A": "p", "C": "q"}) is None


def test_labels_weigh_groups_by_their_names() -> None:
    means = GroupMeans(1, ["A", "A", "A", "B", "C"], ("x", "y"))
    means.add(0, 0, np.array([[1, 1], [1, 1], [1, 1], [9, 1], [2.9, 5.0]]))
    found = validate_apx(means, ["p", "q"], {"A": "p", "B": "p", "C": "q"})
    # p: x (3 * 1 + 9) / 4 = 3, above C's 2.9; y 1 is below C's 5
    assert found is not None and found.perplexity.reciprocal_ranks == (0.5, 0.5)


def test_the_shipped_names_answer_to_the_shipped_labels() -> None:
    """The paper's subset (section 4.4): 280 names, 44 descriptors, 3 templates."""
    names, labels = read_names("globalbias"), read_labels("globalbias")
    descriptors = read_descriptors("globalbias")
    used = [group for _, group in names if group in labels]
    ethnicities = {group.rpartition(" ")[0] for group in used}
    assert len(used) == 280 and len(set(used)) == 28 and len(ethnicities) == 14
    assert set(labels.values()) == {"arab", "asian", "hispanic", "white"}
    assert sum(d.label in labels.values() for d in descriptors) == 44
    means = GroupMeans(
        3, [g for _, g in names], [d.text for d in descriptors], [d.axis for d in descriptors]
    )
    rng = np.random.default_rng(0)
    for template in range(3):
        means.add(template, 0, rng.uniform(1, 2, (400, 730)))
    found = validate_apx(means, [d.label for d in descriptors], labels)
    assert found is not None and found.gain.n == 44
    assert found.chance_scores["accuracy"] == 0.25 and found.chance_scores["mrr"] == pytest.approx(
        25 / 48
    )


def test_a_list_without_labels_answers_by_its_groups(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("name,group\nann,A\nbob,\"('ARAB', 'M')\"\n")
    assert read_names(str(path)) == (("ann", "A"), ("bob", "Arab men"))
    assert read_labels(str(path)) == {"A": "A", "Arab men": "('ARAB', 'M')"}
    path.write_text("name,group,label\nann,A,p\nbob,B,\n")
    assert read_labels(str(path)) == {"A": "p"}


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
    assert name_people(written) == said


def test_names_descriptors_and_templates() -> None:
    """Each descriptor is believed of the names of its label, under every template."""
    found = probe_apx(scorer(), NAMES, DESCRIPTORS)
    assert found.table.values.shape == (3, 3, 3)
    assert found.validation and found.validation.labels == ("A", "B")
    assert found.validation.apx.accuracy.value == found.validation.apx.mrr.value == 1


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
    assert straight.validation == resumed.validation
    again = scorer()
    probe_apx(again, NAMES, DESCRIPTORS, perplexities=other / name)
    assert again.calls == 0
    with pytest.raises(UsageError, match="other settings"):
        probe_apx(scorer(), NAMES[:4], DESCRIPTORS, perplexities=other / name)


def test_the_perplexities_give_the_table(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    found = probe_apx(scorer(), NAMES, DESCRIPTORS, output=table)
    rows = [json.loads(line) for line in (tmp_path / "t.perplexities.jsonl").open()]
    assert len(rows) == 3 * 5 * 3 and set(rows[0]) == {
        "template",
        "name",
        "group",
        "descriptor",
        "axis",
        "perplexity",
        "log_likelihood",
        "tokens",
    }
    grid = np.array([row["perplexity"] for row in rows]).reshape(3, 5, 3)
    by_hand = apx_table(grid, [g for _, g in NAMES], "xyz", ("", "age", ""))
    assert found.table.values == pytest.approx(by_hand.values)
    with table.open() as file:
        assert next(csv.reader(file)) == ["Group", "descriptor", "axis", "apx_1", "apx_2", "apx_3"]
    read = read_apx(table)
    assert read.groups == ("A", "B", "C") and (read.values == found.table.values).all()
    assert flag_apx(table).flags == found.flags
    with pytest.raises(UsageError, match="must end in"):
        probe_apx(scorer(), NAMES, DESCRIPTORS, perplexities=tmp_path / "x.csv")


def test_the_table_has_one_form_for_groups(tmp_path: Path) -> None:
    """The authors' tables write pairs, ours people: both read as the same groups."""
    path = tmp_path / "theirs.csv"
    rows = [f"\"('G{n}', 'F')\",x,{10 if n == 0 else 100 + n % 2}\n" for n in range(9)]
    path.write_text("Group,descriptor,apx_1\n" + "".join(rows))
    table = read_apx(path)
    write_apx(table, tmp_path / "ours.csv")
    assert read_apx(tmp_path / "ours.csv").groups == table.groups
    assert [flag.group for flag in find_flags(table)] == ["G0 women"]


# the graph


def test_flags_become_edges(tmp_path: Path) -> None:
    """Nine groups, of which the first alone is believed to be x: one edge, found by its group."""
    names = [(f"n{n}", f"('G{n}', 'F')") for n in range(9)]
    list_of_names = tmp_path / "n.csv"
    with list_of_names.open("w") as file:
        csv.writer(file).writerows([("name", "group"), *names])
    model: Any = Beliefs(believed("n0", DESCRIPTORS[0]))
    with kgbias.open(tmp_path / "kg.db") as study:
        found = study.probe_apx(model, str(list_of_names), DESCRIPTORS)
        assert [(f.group, f.descriptor) for f in found.flags] == [("G0 women", "x")]
        assert study.probe_apx(model, str(list_of_names), DESCRIPTORS).edges == found.edges
        (row,) = study.flags().records()
        assert (row["model"], row["group"], row["descriptor"]) == ("beliefs", "G0 women", "x")
        assert (row["level"], row["groups"]) == (0.01, 9) and row["z"] == found.flags[0].z
        # the same names without their last group are other flags, of the same nodes
        study.probe_apx(model, [(n, name_people(g)) for n, g in names[:8]], DESCRIPTORS)
        assert len(study.flags()) == 2 and len(study.graph.flags()) == 2
        table = tmp_path / "t.csv"
        write_apx(found.table, table)
        assert study.flag_apx(table, exclude_axes="age").edges.model == str(table)
        assert {(t.model, t.groups) for t in study.graph.flags()} == {
            ("beliefs", 9),
            ("beliefs", 8),
            (str(table), 9),
        }
