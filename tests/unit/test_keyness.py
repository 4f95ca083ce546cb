"""Which features go with which group: exact tests, and what a model says more of one group."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.compare.content_tests import run_content_tests
from kgbias.graph.draws import Draws
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.models.base import ModelInfo
from kgbias.report.findings import build_screen
from kgbias.report.run_data import RunData
from kgbias.report.said_more import said_more_exhibits
from kgbias.stats.keyness import (
    FeatureTable,
    PromptFeatures,
    _adjust_rows,
    _summarize_rows,
    log_odds_ratio,
    measure_keyness,
)
from tests.texts import Texts

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
            assert found.p_values[g, f] == pytest.approx(min(1, 2 * min(tails)), rel=1e-12)


def test_log_odds_by_hand() -> None:
    """6 of 10 prompts and 2 of 10, and half a prompt more in each of the four numbers."""
    value, low, high = log_odds_ratio(6, 10, 2, 10)
    assert value == pytest.approx(math.log(6.5 / 4.5) - math.log(2.5 / 8.5))
    for end in (low, high):  # the score test there, with the margins as they are
        ratio = math.exp(end)
        # the cell x with x (2 + x) / ((10 - x) (8 - x)) = ratio
        a, b, c = 1 - ratio, 2 + 18 * ratio, -80 * ratio
        x = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
        variance = 1 / (1 / x + 1 / (10 - x) + 1 / (8 - x) + 1 / (2 + x))
        assert (6 - x) ** 2 / variance * 19 / 20 == pytest.approx(1.959964**2)
    value, low, high = log_odds_ratio(0, 10, 3, 10)
    assert math.isfinite(low) and low < value < high < 0.5


@pytest.mark.parametrize(
    ("n", "m", "p", "q"),
    [
        (20, 20, 0.3, 0.3),
        (20, 20, 0.6, 0.05),
        (20, 20, 0.2, 0.01),
        (40, 440, 0.2, 0.01),
        (100, 100, 0.2, 0.01),
        (10, 10, 0.9, 0.5),
    ],
)
def test_intervals_of_log_odds_hold_in_all_samples_counted(
    n: int, m: int, p: float, q: float
) -> None:
    """Every pair of counts, as often as it comes: no simulation."""
    stats = pytest.importorskip("scipy.stats")
    own, others = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
    often = stats.binom.pmf(own, n, p) * stats.binom.pmf(others, m, q)
    _, low, high = log_odds_ratio(own, n, others, m)
    truth = math.log(p / (1 - p)) - math.log(q / (1 - q))
    assert 0.93 <= often[(low <= truth) & (truth <= high)].sum() <= 0.971


def test_a_difference_is_at_one_mix_of_blocks() -> None:
    """Group 0 has the feature as often as the others in either block, and was mostly asked in the
    one where all have it; with one block, the interval is Newcombe's (his first example: 56 of 70
    and 48 of 80, 0.0524 to 0.3339)."""
    group = [0] * 16 + [1] * 4 + [0] * 4 + [1] * 16
    having = [[0]] * 20 + [[1]] * 20
    found = measure_keyness(table_of(group, [0] * 20 + [1] * 20, having), deals=0)
    assert found.difference(0, 0).value == pytest.approx(0)
    assert found.difference(0, 0).low < 0 < found.difference(0, 0).high
    published = [[0]] * 56 + [[1]] * 14 + [[0]] * 48 + [[1]] * 32
    found = measure_keyness(table_of([0] * 70 + [1] * 80, [0] * 150, published), deals=0)
    own = found.difference(0, 0)
    assert (round(own.low, 4), own.value, round(own.high, 4)) == (
        0.0524,
        pytest.approx(0.2),
        0.3339,
    )
    apart = measure_keyness(table_of([0] * 20 + [1] * 20, [0] * 20 + [1] * 20, having), deals=0)
    assert math.isnan(apart.difference(0, 0).value)  # never asked alike


def test_what_one_wording_brings_is_not_there_without_it() -> None:
    prompts = PromptFeatures()
    for n in range(40):
        group, wording = n % 2, "ab"[n // 2 % 2]
        said = [("word", "both")] if group == 0 else []
        said += [("word", "one")] if group == 0 and wording == "a" else []
        prompts.add(n, group, wording, said)
    features = prompts.frequent_features()
    keyness = measure_keyness(prompts.build_table(features, groups=2), deals=0)
    least = prompts.leave_one_out_p(features, keyness)
    assert features == [("word", "both"), ("word", "one")]
    assert least[0, 0] <= 0.05 and least[0, 1] == 1.0


def test_prompts_are_dealt_within_their_blocks() -> None:
    """What a block says of everyone is no group's: group 0 was mostly asked in the block in which
    every prompt has the feature."""
    group = [0] * 18 + [1] * 2 + [0] * 2 + [1] * 18
    block = [0] * 20 + [1] * 20
    having = [[0]] * 20 + [[1]] * 20
    assert measure_keyness(table_of(group, block, having), deals=0).p_values.tolist() == [
        [1, 1],
        [1, 1],
    ]
    assert measure_keyness(table_of(group, [0] * 40, having), deals=0).p_values.max() < 0.001


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
    assert (
        np.mean([found.overall_p <= 0.1 for found in null]) <= 0.2
    )  # 0.1 and three standard errors
    assert np.mean([found.p_values <= 0.05 for found in null]) <= 0.05


def crawled(store: SQLiteStore, planted: float, seed: int = 0, wordings: int = 2) -> RunData:
    """A crawl in which a share of the prompts about farmers leads to their land, under the first
    wording only if `wordings` is 1."""
    rng = np.random.default_rng(seed)
    run = Run("r", ModelInfo("m"), {}, tuple(Group(name, "occupations") for name in GROUPS))
    store.begin_run(run)
    made = []
    for group in run.groups:
        for n in range(60):
            wording = n % 2
            about_land = group.name == "Farmers" and wording < wordings and rng.random() < planted
            # Everyone has the names of the groups in mouth, which is no content.
            thing = f"fields {n}" if about_land else f"{rng.choice(COMMON)} {group.name}"
            made.append(
                Generation(
                    run.id,
                    f"none/initialise/{group.id}/love/{n:03d}#0",
                    group.id,
                    "none",
                    "initialise",
                    0,
                    0,
                    "ok",
                    template=f"object@1.{wording}:chat",
                    prompt=f"{group.name} {n}",
                    triple=Triple(group.name, "love", f"{thing}"),
                )
            )
    store.load_import(run.id, made)
    return RunData(StoredRun(store, run))


def test_planted_content_is_on_the_first_screen(store: SQLiteStore, texts: Texts) -> None:
    data = crawled(store, 0.25)
    (test,) = data.arms[0].content
    assert {(one.group, one.kind, one.feature) for one in test.found} == {
        ("Farmers", "word", "fields")
    }
    one = test.found[0]
    assert (one.group_total, one.others, one.others_total) == (60, 0, 180) and one.prompts >= 8
    assert 0 < one.difference.low < one.difference.value < one.difference.high < 1
    (finding,) = build_screen(data).findings
    assert str(one.prompts) in finding.said
    texts.check_lines(finding.said, "answered prompts,")
    assert finding.basis.startswith("“Farmers love fields")
    (exhibit,) = said_more_exhibits(data.arms[0], "occupations", "01")
    (row,) = exhibit.table.rows
    assert row[:5] == ["Farmers", "word", "fields", f"{one.prompts} of 60", "0 of 180"]
    assert row[5:] == [one.difference, one.q] and "in all. Rows may" in exhibit.table.note
    assert "dealing whole prompts anew" in exhibit.table.note
    data.draws = Draws({})  # as of an import
    (exhibit,) = said_more_exhibits(data.arms[0], "occupations", "01")
    assert "dealing whole statements anew" in exhibit.table.note
    texts.check_lines(exhibit.table.caption, "statements that")


def test_what_is_said_more_can_be_taken_out(tmp_path: Path, texts: Texts) -> None:
    url = str(tmp_path / "kgbias.db")
    with SQLiteStore(url) as store:
        (test,) = crawled(store, 0.25).arms[0].content
    with kgbias.open(url) as study:
        rows = study.run("r").said_more()
    assert [*rows] == [*test.found]
    (row,) = rows.records()
    one = test.found[0]
    assert (row["category"], row["group"], row["kind"], row["feature"]) == (
        "occupations",
        "Farmers",
        "word",
        "fields",
    )
    assert (row["prompts"], row["group_total"], row["others"], row["others_total"]) == (
        one.prompts,
        60,
        0,
        180,
    )
    assert row["category_p_value"] == test.p and row["triples"] == [*one.triples]
    assert row["sentence"].startswith("Farmers love fields")
    call = ["compare", "r", "--store", url]
    done = CliRunner().invoke(cli, [*call, "--json"])
    assert json.loads(done.stdout)["said_more"] == [row]
    shown = CliRunner().invoke(cli, call).stdout
    assert str(one.prompts) in " ".join(shown.split())
    texts.check_lines(" ".join(shown.split()), "60 0")
    alone = CliRunner().invoke(cli, [*call, "--only", "Farmers", "--json"])
    assert not json.loads(alone.stdout)["said_more"]


def test_content_that_one_wording_brings_is_not_shown(store: SQLiteStore) -> None:
    (test,) = crawled(store, 0.6, wordings=1).arms[0].content
    assert not test.found and test.p <= 0.05


def test_groups_that_are_alike_say_nothing(tmp_path: object) -> None:
    shown = 0
    for seed in range(20):
        data = crawled(SQLiteStore(":memory:"), 0.0, seed)
        shown += bool(build_screen(data).findings)
    assert shown <= 2


def test_statements_without_prompts_are_tested_by_themselves(store: SQLiteStore) -> None:
    data = crawled(store, 0.25)
    run = StoredRun(store, data.run)
    counted = select_statements(run, Selection())
    by_group = {g.id: [t for t in counted.triples if t.group_id == g.id] for g in data.run.groups}
    (test,) = run_content_tests(data.run.groups, by_group, Draws({}), {}, deals=19)
    assert ("Farmers", "fields") in {(one.group, one.feature) for one in test.found}


def test_deals_are_summarized_as_their_q_values_say() -> None:
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (7, 40), (3, 0), (0, 5)):
        for power in (1, 6):  # nothing to find, and much
            p_values = np.round(rng.random(shape) ** power, 2)  # with ties
            q_values = _adjust_rows(p_values)
            lowest, found = _summarize_rows(p_values)
            assert lowest == q_values.min(initial=1.0)
            assert found == (q_values <= 0.05).sum()
