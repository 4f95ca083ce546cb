"""The first screen of a report: its findings, and that they say what chance could do."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Generation, Group, Metric, Run, Score, Triple
from kgbias.models.base import ModelInfo
from kgbias.report.findings import FEWEST, Finding, extremes, findings
from kgbias.report.run_data import RunData
from tests.conftest import needs
from tests.hostile import HOSTILE

needs("matplotlib", "scipy")

VALUES = {"positive": 0.8, "neutral": 0.0, "negative": -0.8}
Said = Mapping[str, tuple[int, int, int]]


def run_of(store: SQLiteStore, said: Said, arm: str = "none", category: str = "people") -> RunData:
    """A run in which each group said so many positive, neutral and negative things; what is
    negative is toxic."""
    run = Run("r", ModelInfo("m"), {}, tuple(Group(name, category) for name in said))
    store.begin(run)
    generations, regard, toxicity = [], {}, {}
    for group, counts in zip(run.groups, said.values(), strict=True):
        labels = [x for x, n in zip(VALUES, counts, strict=True) for _ in range(n)]
        for n, label in enumerate(labels):
            triple = Triple(group.name, "are", f"{label} {n}")
            generations.append(
                Generation(run.id, f"{arm}/initialise/are/{group.id}/{n:03d}#0", group.id, arm,
                           "initialise", 0, 0, "ok", triple=triple)
            )  # fmt: skip
            regard[triple.id] = Score(triple.id, VALUES[label], label)
            toxicity[triple.id] = Score(triple.id, float(label == "negative"))
    store.load(run.id, generations)
    store.save_scores(run.id, Metric("regard", "rule", "1"), list(regard.values()))
    store.save_scores(run.id, Metric("toxicity", "rule", "1"), list(toxicity.values()))
    return RunData(StoredRun(store, run))


def text(finding: Finding) -> str:
    return " ".join(finding.said.striptags().split())


def test_two_groups_that_differ_are_said_to(store: SQLiteStore) -> None:
    data = run_of(store, {"Ayes": (0, 10, 30), "Bees": (30, 10, 0), "Cees": (20, 10, 10)})
    first, second, *_ = findings(data, "x.html")
    said = text(first)
    assert said.startswith("Of Ayes it says 75 more negative than positive things in 100 [")
    assert "; of Bees 75 more positive than negative things [" in said
    assert first.chance == (
        "The difference is more than chance would make it (p < 0.001, corrected for 3 pairs of "
        "groups)."
    )
    assert first.basis.startswith("40 and 40 statements. Of all groups of a category, the two ")
    assert [address for _, address in first.links] == [
        "#statements?group=Ayes&label=negative", "#statements?group=Bees&label=negative",
        "x.html#view=two&source=r%2Fnone&group=Ayes&with=Bees",
    ]  # fmt: skip
    assert text(second).startswith("A statement about Ayes is toxic with a probability of 75% [")


def test_what_can_be_chance_is_said_to(store: SQLiteStore) -> None:
    data = run_of(store, {"Ayes": (6, 10, 9), "Bees": (8, 10, 7)})
    first = findings(data)[0]
    assert "can be chance (p = " in first.chance and "corrected" not in first.chance
    assert "would have been found in 80% of cases" in first.chance
    assert first.basis == "25 and 25 statements. The only two groups that can be compared."
    assert all(address.startswith("#") for _, address in first.links)


def test_the_family_is_every_pair_that_was_looked_at(store: SQLiteStore) -> None:
    """Groups of identical make: over all of them p is the number of pairs times that of one."""
    many = {f"G{n}": (10 + n, 10, 10) for n in range(6)} | {"Few": (0, 0, FEWEST - 1)}
    found = extremes(run_of(store, many).arms[0], "regard")
    assert found is not None and found.groups == ("G0", "G5")
    assert found.pairs == 15 and found.left_out == 1
    assert found.p_value == min(1.0, 15 * found.p)


def test_a_group_alone_and_groups_with_too_little(store: SQLiteStore, tmp_path: Path) -> None:
    alone = findings(run_of(store, {"Ayes": (5, 5, 20)}))
    assert text(alone[0]).startswith("Of Ayes it says 50 more negative than positive things")
    assert "nothing to compare it with" in alone[0].basis and not alone[0].chance
    with SQLiteStore(tmp_path / "few.db") as other:
        few = findings(run_of(other, {"Ayes": (2, 1, 2), "Bees": (1, 1, 1)}))
    assert [text(f) for f in few] == ["Too little was said to tell anything of a group."]
    assert few[0].basis == "No group has 20 statements; the most are 5, of Ayes."


def test_a_run_without_measures_has_no_findings(store: SQLiteStore) -> None:
    run = Run("r", ModelInfo("m"), {}, (Group("Ayes", "people"),))
    store.begin(run)
    assert findings(RunData(StoredRun(store, run))) == []


def test_names_are_text(store: SQLiteStore) -> None:
    hostile = [name for name in HOSTILE if name.strip()][:2]
    data = run_of(store, {name: (k, 0, 30) for k, name in enumerate(hostile)})
    for finding in findings(data):
        assert "<script" not in finding.said and "<img" not in finding.said
        for _, address in finding.links:
            assert address.startswith("#") and not set(address) & set("<>\"' ")


def test_what_an_arm_changes_comes_before_toxicity(store: SQLiteStore) -> None:
    data = run_of(store, {"Ayes": (20, 10, 0), "Bees": (20, 10, 0)})
    run = data.run
    more = [
        replace(
            g, arm="both", path=f"both{g.path}",
            triple=Triple(g.triple.group, "are", f"worse {g.triple.object}"),
        )
        for g in data.generations
        if g.triple
    ]  # fmt: skip
    store.load(run.id, [*data.generations, *more])
    store.save_scores(
        run.id, Metric("toxicity", "rule", "1"), [Score(g.triple.id, 1.0) for g in more if g.triple]
    )
    told = {f.topic: text(f) for f in findings(RunData(StoredRun(store, run)))}
    assert list(told)[:2] == ["What it says", "What the prompt does"]
    assert told["What the prompt does"].startswith(
        "Asked with the prefixes of arm both, it makes statements about people that are toxic with "
        "a probability of 100%; asked plainly, of 0%: 100 percentage points more"
    )
