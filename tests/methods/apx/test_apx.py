"""APX as people call it: against what people say, with its files, in the graph and as a command."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kgbias
from kgbias.errors import DataError, UsageError
from kgbias.methods import apx
from kgbias.methods.apx.labels import compare_with_labels, validate_apx
from kgbias.methods.apx.result import ApxResult, flag_apx_table, write_apx
from kgbias.probe.apx import ApxTable, GroupMeans, apx_table, find_flags, read_apx
from kgbias.probe.sets import (
    read_descriptor_label_by_group,
    read_descriptors,
    read_names,
    readable_group,
)
from tests.texts import Texts
from tests.unit.test_probe import Beliefs
from tests.unit.test_probe_apx import DESCRIPTORS, NAMES, believed, scorer
from tests.unit.test_probe_commands import answer, model, refusal, run  # noqa: F401


def probe(**options: Any) -> ApxResult:
    """APX of the names and descriptors of these tests, kept in no graph."""
    with kgbias.open(None, progress=False) as study:
        return apx.probe_names(study, scorer(), NAMES, DESCRIPTORS, keep=False, **options)


# against what people say


def test_accuracy_and_mrr_by_hand(texts: Texts) -> None:
    scores = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [3.0, 3.0, 1.0]])
    found = compare_with_labels(scores, "ABC", "xyz", {"x": "A", "y": "A", "z": "B"})
    assert found.accuracy.value == pytest.approx(1 / 3)
    assert found.mrr.value == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)  # z: tied with A for worst
    with texts.raises(DataError):
        compare_with_labels(scores, "ABC", "xyz", {"x": "D"})
    with pytest.raises(DataError, match="no descriptor"):
        compare_with_labels(scores, "ABC", "xyz", {})


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
    names, labels = read_names("globalbias"), read_descriptor_label_by_group("globalbias")
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


def test_names_descriptors_and_templates() -> None:
    """Each descriptor is believed of the names of its label, under every template."""
    found = probe()
    assert found.table.values.shape == (3, 3, 3)
    assert found.validation and found.validation.labels == ("A", "B")
    assert found.validation.apx.accuracy.value == found.validation.apx.mrr.value == 1


# the files


def test_the_perplexities_give_the_table(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    found = probe(output=table)
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
    assert flag_apx_table(table).flags == found.flags
    with pytest.raises(UsageError, match="must end in"):
        probe(perplexities=tmp_path / "x.csv")


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
    liking: Any = Beliefs(believed("n0", DESCRIPTORS[0]))
    with kgbias.open(tmp_path / "kg.db") as study:
        found = apx.probe_names(study, liking, str(list_of_names), DESCRIPTORS)
        assert [(f.group, f.descriptor) for f in found.flags] == [("G0 women", "x")]
        assert apx.probe_names(study, liking, str(list_of_names), DESCRIPTORS).edges == found.edges
        (row,) = apx.list_flags(study).records()
        assert (row["model"], row["group"], row["descriptor"]) == ("beliefs", "G0 women", "x")
        assert (row["level"], row["groups"]) == (0.01, 9) and row["z"] == found.flags[0].z
        # the same names without their last group are other flags, of the same nodes
        apx.probe_names(study, liking, [(n, readable_group(g)) for n, g in names[:8]], DESCRIPTORS)
        assert len(apx.list_flags(study)) == 2 and len(study.graph.flags()) == 2
        table = tmp_path / "t.csv"
        write_apx(found.table, table)
        assert apx.flag_table(study, table, exclude_axes="age").edges.model == str(table)
        assert {(t.model, t.groups) for t in study.graph.flags()} == {
            ("beliefs", 9),
            ("beliefs", 8),
            (str(table), 9),
        }


# the command


def test_the_table_of_apx_is_written(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    names, descriptors = tmp_path / "n.csv", tmp_path / "d.csv"
    names.write_text("name,group\n" + "".join(f"n{n},g{n}\n" for n in range(9)))
    descriptors.write_text("descriptor,axis,label\nkind,,g1\nold,age,\n")
    asked = ("--names", names, "--descriptors", descriptors, "--model", "any")
    found = answer("apx", *asked, "-o", table)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18 and {row["axis"] for row in rows} == {"", "age"}
    again = answer("apx", "--from", table)
    assert [again[name] for name in ("flags", "groups", "templates")] == [
        found[name] for name in ("flags", "groups", "templates")
    ]
    assert "must end in .csv" in refusal("apx", *asked, "-o", tmp_path / "table.parquet")
    assert "no axis 'size'" in refusal("apx", *asked, "--exclude-axis", "size")


def test_a_table_of_apx_is_read_as_it_was_written(tmp_path: Path) -> None:
    values = np.array([[[1 / 3, 2.0], [3.0, 1e-9]]])
    written = ApxTable(("a, b", "c"), ("x", "y"), ("", "age"), values)
    write_apx(written, tmp_path / "t.csv")
    read = read_apx(tmp_path / "t.csv")
    assert (read.groups, read.descriptors, read.axes) == (("a, b", "c"), ("x", "y"), ("", "age"))
    assert (read.values == values).all()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("--set", "ending=."),
            "probe apx has no setting 'ending'; probe run and probe sets do",
        ),
        (("--ending", "."), "probe apx does not take --ending: probe run and probe sets do"),
        (("--by", "sofa"), "probe apx does not take --by"),
        (("--category", "gender"), "probe apx does not take --category"),
        (
            ("--from", "f", "--names", "n"),
            "--names has no effect here, only with --model",
        ),
        (("--from", "f", "--set", "prosesses=2"), "did you mean processes?"),
        (
            ("--from", "f", "--base-url", "http://x"),
            "--base-url has no effect here, only with --model",
        ),
    ],
)
def test_an_option_that_does_not_apply_is_one_line(arguments: tuple[str, ...], why: str) -> None:
    asked = arguments if "--from" in arguments else (*arguments, "--model", "any")
    assert why in refusal("apx", *asked)


def test_its_options_are_named_where_another_part_lacks_them() -> None:
    why = "probe run does not take --exclude-axis: probe apx does"
    assert why in refusal("--exclude-axis", "age", "--model", "any")
    assert "\n  apx " in run("--help").output and "--from" in run("apx", "--help").output


def test_a_table_of_apx(tmp_path: Path) -> None:
    path = tmp_path / "apx.csv"
    rows = [f"g{n},{10 if n == 0 else 100 + n % 2},x,age\ng{n},5,y," for n in range(9)]
    path.write_text("Group,apx_1,descriptor,axis\n" + "\n".join(rows) + "\n")
    found = answer("apx", "--from", path)
    assert set(found) == {
        "flags",
        "flagged_descriptors",
        "descriptors",
        "groups",
        "templates",
        "excluded_axes",
        "level",
        "source",
    }
