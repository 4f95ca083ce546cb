"""Which features go with which group: exact tests, and what a model says more of one group."""

import numpy as np
import pytest

from kgbias.compare.said_more import content_tests
from kgbias.graph.draws import Draws
from kgbias.graph.selection import Selection, select
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.models.base import ModelInfo
from kgbias.report.findings import findings
from kgbias.report.run_data import RunData
from kgbias.stats.keyness import FeatureTable, measure_keyness

GROUPS = ("Bakers", "Farmers", "Nurses", "Sailors")
COMMON = ("work", "music", "money", "friends", "food", "sports")


def table_of(group: list[int], block: list[int], having: list[list[int]]) -> FeatureTable:
    """A table in which each prompt has these features."""
    pairs = [(n, f) for n, own in enumerate(having) for f in own]
    rows, columns = (np.array([p[k] for p in pairs], dtype=np.int64) for k in (0, 1))
    features = max(f for own in having for f in own) + 1
    ints = lambda values: np.array(values, dtype=np.int64)  # noqa: E731
    return FeatureTable(max(group) + 1, ints(group), ints(block), features, rows, columns)


def test_one_block_is_fishers_exact_test() -> None:
    hypergeom = pytest.importorskip("scipy.stats").hypergeom
    group = [0] * 5 + [1] * 9 + [2] * 7
    table = table_of(group, [0] * 21, [[0]] * 4 + [[1]] * 3 + [[0, 1]] * 2 + [[2]] * 12)
    found = measure_keyness(table, deals=0)
    for g, of in enumerate((5, 9, 7)):
        for f, having in enumerate((6, 5, 12)):
            k = int(found.counts[g, f])
            tails = hypergeom.sf(k - 1, 21, having, of), hypergeom.cdf(k, 21, having, of)
            assert found.p[g, f] == pytest.approx(min(1, 2 * min(tails)), rel=1e-12)


def test_prompts_are_dealt_within_their_blocks() -> None:
    """What a block says of everyone is no group's: group 0 was mostly asked in the block in which
    every prompt has the feature."""
    group = [0] * 18 + [1] * 2 + [0] * 2 + [1] * 18
    block = [0] * 20 + [1] * 20
    having = [[0]] * 20 + [[1]] * 20
    assert measure_keyness(table_of(group, block, having), deals=0).p.tolist() == [[1, 1], [1, 1]]
    assert measure_keyness(table_of(group, [0] * 40, having), deals=0).p.max() < 0.001


def test_dealing_anew_gives_the_exact_distribution() -> None:
    """The share of deals that reach a p-value is at most it, up to chance."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 4, 300).tolist()
    block = rng.integers(0, 3, 300).tolist()
    having = [[int(f) for f in rng.integers(0, 20, 2)] for _ in range(300)]
    null = [
        measure_keyness(table_of(rng.permutation(group).tolist(), block, having), deals=199, seed=n)
        for n in range(100)
    ]
    assert np.mean([found.any <= 0.1 for found in null]) <= 0.2  # 0.1 and three standard errors
    assert np.mean([found.p <= 0.05 for found in null]) <= 0.05


def crawled(store: SQLiteStore, planted: float, seed: int = 0, wordings: int = 2) -> RunData:
    """A crawl in which a share of the prompts about farmers leads to their land, under the first
    wording only if `wordings` is 1."""
    rng = np.random.default_rng(seed)
    run = Run("r", ModelInfo("m"), {}, tuple(Group(name, "occupations") for name in GROUPS))
    store.begin(run)
    made = []
    for group in run.groups:
        for n in range(60):
            wording = n % 2
            about_land = group.name == "Farmers" and wording < wordings and rng.random() < planted
            # Everyone has the names of the groups in mouth, which is no content.
            thing = f"fields {n}" if about_land else f"{rng.choice(COMMON)} {group.name}"
            made.append(
                Generation(
                    run.id, f"none/initialise/{group.id}/love/{n:03d}#0", group.id, "none",
                    "initialise", 0, 0, "ok", template=f"object@1.{wording}:chat",
                    prompt=f"{group.name} {n}", triple=Triple(group.name, "love", f"{thing}"),
                )
            )  # fmt: skip
    store.load(run.id, made)
    return RunData(StoredRun(store, run))


def test_planted_content_is_on_the_first_screen(store: SQLiteStore) -> None:
    data = crawled(store, 0.25)
    (test,) = data.arms[0].content
    assert {(one.group, one.feature) for one in test.found} == {("Farmers", "fields")}
    one = test.found[0]
    assert (one.of, one.others, one.of_others) == (60, 0, 180) and one.prompts >= 8
    assert 0 < one.difference.low < one.difference.value < one.difference.high < 1
    (finding,) = findings(data).findings
    assert "<b>Farmers</b> it speaks more of “fields”" in finding.said
    assert f"in {one.prompts} of 60 prompts, of the others in 0 of 180" in finding.said
    assert finding.basis.startswith("“Farmers love fields")


def test_content_that_one_wording_brings_is_not_shown(store: SQLiteStore) -> None:
    (test,) = crawled(store, 0.6, wordings=1).arms[0].content
    assert not test.found and test.p <= 0.05


def test_groups_that_are_alike_say_nothing(tmp_path: object) -> None:
    shown = 0
    for seed in range(20):
        data = crawled(SQLiteStore(":memory:"), 0.0, seed)
        shown += bool(findings(data).findings)
    assert shown <= 2


def test_statements_without_prompts_are_tested_by_themselves(store: SQLiteStore) -> None:
    data = crawled(store, 0.25)
    run = StoredRun(store, data.run)
    counted = select(run, Selection())
    by_group = {g.id: [t for t in counted.triples if t.group_id == g.id] for g in data.run.groups}
    (test,) = content_tests(data.run.groups, by_group, Draws({}), {}, deals=19)
    assert ("Farmers", "fields") in {(one.group, one.feature) for one in test.found}
