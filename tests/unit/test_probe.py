"""SoFa, APX, and probes of a run's graph: golden values worked out by hand, and the command."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.special import chdtri

from kgbias.cli import cli
from kgbias.errors import DataError, KgbiasError, ModelError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Category, Generation, Group, ProbedEdge, ProbeRun, Run, Triple
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Convention, ProbeGrid, Scores
from kgbias.probe.apx import (
    ApxTable,
    apx_table,
    bias_scores,
    can_flag,
    find_flags,
    read_apx,
    z_scores,
)
from kgbias.probe.result import SaidCount, Statement
from kgbias.probe.run_probes import (
    RankedStatements,
    _iter_chunks,
    compare_said_and_probable,
    count_scored_texts,
    probe_run,
)
from kgbias.probe.set_probes import probe_sets
from kgbias.probe.sets import read_descriptors, read_identities, read_names
from kgbias.probe.sofa import (
    category_bias,
    first_place_credits,
    group_ranks,
    log_perplexities,
    overall_bias,
)
from kgbias.stats.inference import kendall_tau
from tests.conftest import require_modules
from tests.simulation import Simulation
from tests.texts import Texts


class Beliefs:
    """A scorer whose log-likelihoods are a table: statement tokens cost 1 nat each, 0.5 where the
    statement is believed of the group, and each word is a token."""

    parameters: int | None = None

    def __init__(self, believed: set[tuple[str, str]]) -> None:
        self.info = ModelInfo("beliefs", "1")
        self.settings = (("kind", "causal"),)
        self.convention = Convention("causal", "bos")
        self.believed = believed
        self.asked = 0

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Any = None
    ) -> ProbeGrid:
        self.asked += len(groups) * len(statements)
        words = np.array([len(s.split()) for s in statements])
        own = np.array([len(g.split()) for g in groups])
        cost = np.array(
            [[0.5 if (g, s) in self.believed else 1.0 for s in statements] for g in groups]
        )
        alone = Scores(-2.0 * own, own)
        statement = Scores(-cost * words, np.broadcast_to(words, cost.shape).copy())
        whole = Scores(
            statement.log_likelihoods + alone.log_likelihoods[:, None],
            statement.tokens + own[:, None],
        )
        return ProbeGrid(whole, statement, alone)


# SoFa


def test_ppl_star_by_hand() -> None:
    """A group of 1 token at 2 nats, a statement of 3 tokens at 1 nat: the probe's perplexity is
    e^(5/4), the group's e^2, so log10 PPL* = (5/4 - 2) / ln 10."""
    grid = Beliefs(set()).grid(["Men"], ["love the rain"])
    assert log_perplexities(grid)[0, 0] == pytest.approx((1.25 - 2) / math.log(10))
    assert log_perplexities(grid, "conditional")[0, 0] == pytest.approx(1 / math.log(10))
    with pytest.raises(UsageError, match="no measure"):
        log_perplexities(grid, "other")


STAR = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0], [2.0, 4.0, 1.0]])


def test_the_interval_of_a_score_is_over_identities_and_statements() -> None:
    """Identities that differ in their level alone: the score is their variance, of four degrees of
    freedom. With only what is left between statements, it is of many."""
    stats = pytest.importorskip("scipy.stats")
    level = np.array([0.0, 1, 2, 3, 4])
    found = category_bias("c", "abcde", list("stuv"), np.tile(level[:, None], 4)).score
    ends = 4 * 2.5 / stats.chi2.ppf([0.975, 0.025], 4)
    assert (found.low, found.high) == pytest.approx(tuple(ends), rel=0.12)
    rng = np.random.default_rng(0)
    star = rng.normal(0, 1, (5, 400))
    star -= star.mean(axis=1, keepdims=True)
    narrow = category_bias("c", "abcde", [str(n) for n in range(400)], star).score
    assert 0.9 < narrow.low < narrow.value < narrow.high < 1.1


def test_the_score_of_a_population_is_held(simulation: Simulation) -> None:
    """Four identities and 30 statements of very many: the score is 1 + 0.5."""
    held = []
    for seed, rng in enumerate(simulation.worlds(50)):
        star = rng.normal(0, 1, (4, 1)) + rng.normal(0, 0.5**0.5, (4, 30))
        e = category_bias(
            "c", "abcd", [str(n) for n in range(30)], star, draws=400, seed=seed
        ).score
        held.append(e.low <= 1.5 <= e.high)
    simulation.check("held", sum(held), len(held), 0.92, 0.98)


def test_sofa_score_by_hand() -> None:
    """Variances over groups (ddof=1): 1, 3, 1; DDS: 2, 3, 2; the second statement is tied."""
    found = category_bias("c", "abc", ["s", "t", "u"], STAR)
    assert found.score.value == pytest.approx(5 / 3)
    assert 0 < found.score.low < 1 and found.score.high > 10  # three identities say little
    assert found.dds.tolist() == [2, 3, 2]
    assert [share.value for share in found.shares.values()] == pytest.approx([0.5, 0.5, 0])
    published = category_bias("c", "abc", ["s", "t", "u"], STAR, as_published=True)
    assert published.score.value == pytest.approx(1) and math.isnan(published.score.low)
    turned = category_bias("c", "abc", ["s", "t", "u"], STAR, -STAR)
    assert turned.score == found.score and turned.shares == found.shares
    assert [share.value for share in turned.likeliest.values()] == pytest.approx([1 / 3, 0, 2 / 3])
    other = category_bias("d", "ab", ["s"], STAR[:2, :1])
    assert overall_bias([found, other]).score.value == pytest.approx((5 / 3 + 0.5) / 2)
    assert math.isnan(other.score.low)
    assert math.isnan(overall_bias([found, other]).score.low)
    assert overall_bias([found]).score == found.score
    # Two alike. Mean squares: the means 1, 2/3 and 7/3 vary by 7/9 (2 degrees of freedom); the rest
    # by 8/9 (at most 4). The degrees of freedom of their sum 5/3 are twice the square over the
    # variances, 2 (7/9)^2 / 2 and 2 (8/9)^2 / 4; of two such sums, twice as many.
    both, one = overall_bias([found, found]).score, found.score
    degrees = 2 * 2 * (5 / 3) ** 2 / ((7 / 9) ** 2 + (8 / 9) ** 2 / 2)
    summed = [5 / 3 * degrees / chdtri(degrees, tail) for tail in (0.025, 0.975)]
    added = [5 / 3 + (end - 5 / 3) / 2**0.5 for end in (one.low, one.high)]
    assert both.low == pytest.approx((summed[0] * added[0]) ** 0.5)
    assert both.high == pytest.approx((summed[1] ** 3 * added[1]) ** 0.25)
    with pytest.raises(DataError, match="a variance needs two"):
        category_bias("c", "a", ["s"], STAR[:1])


def test_ranks_take_the_worse_of_a_tie() -> None:
    assert group_ranks(STAR).tolist() == [[1, 2, 3], [2, 2, 1], [3, 3, 2]]
    assert first_place_credits(STAR)[:, 1].tolist() == [0.5, 0.5, 0]


def test_kendall_tau_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 5, 10), rng.integers(0, 5, 10)
        assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)
    assert math.isnan(kendall_tau([1, 1], [1, 2]))


def test_the_papers_ranking() -> None:
    """Table 1: SoFa and StereoSet agree at tau = -0.022."""
    sofa = [2.325, 0.330, 0.361, 0.350, 0.795, 1.422, 0.072, 0.978, 0.374, 0.387]
    stereoset = [57.92, 61.11, 60.42, 62.91, 52.20, 53.88, 47.82, 51.04, 63.36, 64.81]
    assert kendall_tau(sofa, stereoset) == pytest.approx(-0.022, abs=5e-4)


# APX


def test_apx_divides() -> None:
    """Two groups of two names; group B is twice as perplexing throughout. Means: A 3, B 6, all
    4.5, so A's perplexities are divided by 2/3 and B's by 4/3, and the groups come out even."""
    a, b = [[2.0, 4.0], [2.0, 4.0]], [[4.0, 8.0], [4.0, 8.0]]
    table = apx_table(np.array([[*a, *b]]), ["A", "A", "B", "B"], ["x", "y"])
    assert table.groups == ("A", "B")
    assert table.values[0] == pytest.approx(np.array([[3.0, 6.0], [3.0, 6.0]]))
    published = apx_table(np.array([[*a, *b]]), ["A", "A", "B", "B"], ["x", "y"], as_published=True)
    assert published.values[0] == pytest.approx(np.array([[3.0, 6.0], [3.0, 6.0]]), abs=0.01)
    assert published.values[0, 0, 0] == round(2 / 0.667, 2)
    with pytest.raises(DataError, match="finite"):
        apx_table(np.array([[[math.inf]]]), ["A"], ["x"])


def test_bias_scores_are_normalised_over_the_whole_template() -> None:
    values = np.array([[[0.0, 10.0], [5.0, 10.0]], [[2.0, 3.0], [4.0, 4.0]]])
    table = ApxTable(("A", "B"), ("x", "y"), ("", ""), values)
    assert bias_scores(table) == pytest.approx(np.array([[0.0, 0.75], [0.75, 1.0]]))


def far_table(groups: int, axis: str = "") -> ApxTable:
    """The first group lies far below the rest on the first descriptor; the second is constant."""
    values = np.full((1, groups, 2), 100.0)
    values[0, 1:, 0] += np.arange(groups - 1) % 2
    values[0, 0, 0] = 10.0
    return ApxTable(tuple(f"g{n}" for n in range(groups)), ("x", "y"), (axis, ""), values)


def test_flags_are_strict_and_one_tailed(texts: Texts) -> None:
    table = far_table(40, "age")
    (flag,) = find_flags(table)
    column = bias_scores(table)[:, 0]
    assert flag.z == pytest.approx((column[0] - column.mean()) / column.std(ddof=1))
    assert (flag.group, flag.descriptor, flag.bias_score) == ("g0", "x", 0.0)
    assert np.isnan(z_scores(bias_scores(table))[:, 1]).all()
    assert find_flags(table, ["age"]) == []
    with texts.raises(UsageError):
        find_flags(table, ["size"])
    # exactly at the level is not beyond it
    exact = NormalDist().cdf(flag.z)
    assert find_flags(table, level=exact * 0.999) == [] and find_flags(
        table, level=exact * 1.001
    ) == [flag]


def test_few_groups_cannot_be_flagged() -> None:
    assert not can_flag(7) and can_flag(8)
    assert find_flags(far_table(7)) == [] and len(find_flags(far_table(8))) == 1


def test_null_groups_are_flagged_at_the_level() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(100, 5, (3, 40, 400))
    table = ApxTable(tuple(map(str, range(40))), tuple(map(str, range(400))), ("",) * 400, values)
    assert len(find_flags(table)) / (40 * 400) == pytest.approx(0.01, abs=0.003)


APX = """,Group,apx_1,apx_2,descriptor,axis
0,"('A', 'F')",1,10,kind,
1,"('A', 'F')",3,30,kind,
2,"('B', 'M')",5,40,kind,
3,"('A', 'F')",5,50,old,age
4,"('B', 'M')",9,70,old,age
"""


def test_apx_table_of_others(tmp_path: Path) -> None:
    path = tmp_path / "apx.csv"
    path.write_text("\ufeff" + APX, "utf-8")
    table = read_apx(path)
    assert table.groups == ("A women", "B men")
    assert table.descriptors == ("kind", "old") and table.axes == ("", "age")
    assert table.values.tolist() == [[[2, 5], [5, 9]], [[20, 50], [40, 70]]]
    assert bias_scores(table)[1, 0] == pytest.approx((3 / 7 + 20 / 50) / 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Group,apx_1\na,1\n", "no column descriptor"),
        ("Group,descriptor\na,kind\n", "no column apx_1"),
        ("Group,descriptor,apx_1\na,kind,\n", "line 2: '' is not a number"),
        ("Group,descriptor,apx_1\na,kind,inf\n", "line 2: 'inf' is not a number"),
        ("Group,descriptor,apx_1\n,kind,1\n", "line 2: Group or descriptor is missing"),
        ("Group,descriptor,apx_1\n", "has no rows"),
    ],
)
def test_a_bad_table_is_one_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "apx.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=why):
        read_apx(path)


def test_named_sets(texts: Texts) -> None:
    identities = read_identities("sofa")
    sizes = {category: len(groups) for category, groups in identities.items()}
    assert sizes == {"religion": 14, "gender": 115, "nationality": 223, "disability": 55}
    names, descriptors = read_names("globalbias"), read_descriptors("globalbias")
    assert len(names) == 400 and len({group for _, group in names}) == 40
    assert len(descriptors) == 730
    assert descriptors[0].endings == ("am a stutterer.", "was a stutterer.", "is a stutterer.")
    with texts.raises(UsageError):
        read_identities("nowhere")


# the graph


GROUPS = (Group("women", "gender"), Group("men", "gender"), Group("owls", "birds"))
RUN = Run("r", ModelInfo("m"), {"seed": 0}, GROUPS, (Category("gender"), Category("birds")))
SAID = [
    ("women", "love", "food"),
    ("men", "love", "food"),
    ("men", "hate", "rain"),
    ("women", "are", "kind"),
    ("owls", "are", "wise"),
]
BELIEVED = {("Women", "love food"), ("Men", "hate rain"), ("Men", "are kind")}


@pytest.fixture
def probed_store(store: SQLiteStore) -> SQLiteStore:
    store.begin_run(RUN)
    store.record_round(
        RUN.id,
        "none",
        0,
        [
            Generation(
                RUN.id, str(n), Triple(*t).group_id, "none", "object", 0, 0, "ok", triple=Triple(*t)
            )
            for n, t in enumerate(SAID)
        ],
    )
    return store


def test_a_runs_statements_are_probed_once(probed_store: SQLiteStore, texts: Texts) -> None:
    scorer: Any = Beliefs(BELIEVED)
    found = probe_run(StoredRun(probed_store, RUN), scorer)
    bias, agreement = found.bias, found.agreement
    assert scorer.asked == 6  # the birds have nobody to be compared with
    (gender,) = found.categories
    assert [s.text for s in gender.statements] == ["are kind", "love food", "hate rain"]
    assert gender.ranks.tolist() == [[2, 1, 2], [1, 2, 1]]
    assert sorted((g, s) for g, s, _ in gender.said_counts) == [(0, 0), (0, 1), (1, 1), (1, 2)]
    # women love food: 1st, women are kind: 2nd, men love food: 2nd, men hate rain: 1st
    assert agreement.mrr.value == pytest.approx(0.75)
    assert agreement.first_share.value == pytest.approx(0.5)
    edges = probed_store.find_all(RUN.id, ProbedEdge, asking=ProbeRun(scorer.info, scorer.settings))
    assert len(edges) == 6 and {e.rank for e in edges} == {1, 2}
    women = next(e for e in edges if e.group_id == GROUPS[0].id and e.rank == 1)
    assert women.object_id == Triple("women", "love", "food").object_id
    assert (women.log_likelihood, women.tokens) == (-3.0, 3)
    assert (women.group_log_likelihood, women.group_tokens) == (-2.0, 1)
    (probing,) = probed_store.find_all(RUN.id, ProbeRun)
    assert probing.model == scorer.info and probing.record["mrr"] == pytest.approx(0.75)
    shown = repr(found).splitlines()  # what a notebook shows: a few lines, not every array
    assert len(shown) == 4
    texts.check_lines(shown[-1], "mean reciprocal")
    assert found._repr_html_() == f"<pre>{found!r}</pre>"
    again = probe_run(StoredRun(probed_store, RUN), scorer)
    assert scorer.asked == 6
    assert again.bias.score == bias.score
    assert again.categories[0].ranks.tolist() == gender.ranks.tolist()
    with texts.raises(UsageError):
        probe_run(StoredRun(probed_store, RUN), scorer, categories=["fish"])
    with texts.raises(DataError):
        probe_run(StoredRun(probed_store, RUN), scorer, categories=["birds"])


def agreement_of(rank: Any, said: Sequence[tuple[int, int]], **more: Any) -> Any:
    return compare_said_and_probable(
        [RankedStatements(rank, tuple(SaidCount(g, s, 1) for g, s in said))], **more
    )


def test_the_permutation_deals_statements_anew() -> None:
    """Two groups, two statements, each said of one group and likeliest of it. Dealt anew the
    pairing is right (MRR 1) or wrong (MRR 1/2), half the time each."""
    found = agreement_of(np.array([[1, 2], [2, 1]]), [(0, 0), (1, 1)], permutations=4000)
    assert found.mrr.value == 1
    assert found.p_value == pytest.approx(0.5, abs=0.03)
    assert found.expected == pytest.approx(0.75, abs=0.02)


def test_a_group_that_is_always_likeliest_is_no_evidence() -> None:
    rank = np.array([[1] * 20, [2] * 20])
    found = agreement_of(rank, [(0, n) for n in range(20)], permutations=99)
    assert found.mrr.value == 1 and found.expected == 1 and found.p_value == 1


def test_what_is_said_and_believed_is_found() -> None:
    rng = np.random.default_rng(0)
    rank = np.argsort(rng.random((5, 60)), axis=0) + 1
    said = [(int(rank[:, s].argmin()), s) for s in range(60)]
    found = agreement_of(rank, said, permutations=999)
    assert found.mrr.value == 1 and found.p_value == 0.001
    assert found.expected == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5, abs=0.05)


# a server


def echo(body: Any, _: int) -> Any:
    """Words are tokens of -1 nat each, the first has none; a token that was generated follows."""
    choices = []
    for index, prompt in enumerate(body["prompt"]):
        words = [w if n == 0 else " " + w for n, w in enumerate(prompt.split(" "))] + [" more"]
        offsets = [len("".join(words[:n])) for n in range(len(words))]
        values = [None, *[-1.0] * (len(words) - 1)]
        logprobs = {"tokens": words, "text_offset": offsets, "token_logprobs": values}
        choices.append(
            {"index": index, "text": "", "finish_reason": "length", "logprobs": logprobs}
        )
    return "body", json.dumps({"id": "1", "object": "text_completion", "choices": choices[::-1]})


def test_a_server_that_echoes_log_probabilities(texts: Texts) -> None:
    require_modules("openai")
    from kgbias.models.score.load import open_scorer
    from tests.fault_server import FaultServer

    with FaultServer(echo) as server:
        scorer = open_scorer("openai:m", base_url=server.url)
        grid = scorer.grid(["tall men"], ["love food", "are kind to owls"])
        assert grid.probes.log_likelihoods.tolist() == [[-3, -5]]
        assert grid.statement.tokens.tolist() == [[2, 4]] and grid.group.tokens.tolist() == [1]
        assert scorer.score(["a b c"]).perplexities[0] == pytest.approx(math.e)
        assert scorer.surprisals("a b") == [(" b", pytest.approx(1 / math.log(2)))]
        assert grid.surprisals is not None
        read = grid.surprisals(0, 1)
        assert sum(bits for _, bits in read) * math.log(2) == pytest.approx(
            -grid.probes.log_likelihoods[0, 1]
        )
        assert "".join(token for token, _ in read) == " men are kind to owls"
        with texts.raises(DataError):
            scorer.score(["men"])
    with FaultServer(lambda *_: "just text") as server:
        scorer = open_scorer("openai:m", base_url=server.url)
        with pytest.raises(KgbiasError, match=r"m (does not return|gave)"):
            scorer.score(["men love food"])


@pytest.mark.parametrize(
    ("tokens", "places"),
    [
        (["old", " men", " sing", " more"], [(0, 0), (1, 3), (2, 7)]),
        (["<s>", "old", " men", " sing"], [(1, 0), (2, 3), (3, 7)]),
        (["<|begin_of_text|>", "old", " men", " sing", "x"], [(1, 0), (2, 3), (3, 7)]),
        (["", "\u2581old", "\u2581men", "\u2581sing"], [(1, 0), (2, 3), (3, 7)]),
        (["old", "men", "sing"], [(0, 0), (1, 4), (2, 8)]),  # spaces are left out
        ([" the"], None),  # echo is ignored
        (["old", " men", " sang"], None),
        (["old", " men"], None),
        (["old", "Ġmen", "Ġsing"], [(0, 0), (1, 3), (2, 7)]),  # byte-level BPE, as it is stored
        (["\u2581", "old", "\u2581men", "\u2581sing"], [(0, 0), (1, 0), (2, 3), (3, 7)]),
        (["[gMASK]", "<sop>", "old", " men", " sing"], [(2, 0), (3, 3), (4, 7)]),
    ],
)
def test_echoed_tokens_are_placed_by_what_they_spell(
    tokens: list[str], places: list[tuple[int, int]] | None
) -> None:
    from kgbias.models.score.server import _place_spelled_tokens

    found = _place_spelled_tokens("old men sing", tokens)
    assert (found and [(n, at) for n, at, _ in found]) == places


def test_echoed_tokens_may_be_parts_of_characters() -> None:
    from kgbias.models.score.server import _place_spelled_tokens

    parts = ["mag", " \ufffd", "\ufffd", "\ufffd", "\ufffd", " so", "."]
    found = _place_spelled_tokens("mag 自転 so", parts)
    assert found is not None and [n for n, _, _ in found] == [0, 1, 2, 3, 4, 5]
    assert _place_spelled_tokens("mag 自転", [*parts[:5], ","]) == found[:5]


@pytest.mark.parametrize(
    "tokens",
    [
        ["C", "af", "Ã©", "Ġmen", "Ġsing"],
        ["\u2581C", "af", "<0xC3>", "<0xA9>", "\u2581men", "\u2581sing"],
        ["C", "af", "\\xc3\\xa9", " men", " sing"],
        ["C", "af", "bytes:\\xC3", "bytes:\\xA9", " men", " sing"],
        [" Café", " men", " sing"],
    ],
)
def test_the_statements_tokens_are_those_after_the_group_however_they_are_shown(
    tokens: list[str],
) -> None:
    from kgbias.models.score.server import _place_spelled_tokens, _tokens_after_group

    found = _place_spelled_tokens("Café men sing", tokens)
    assert found is not None and [n for n, _, _ in found] == list(range(len(tokens)))
    rows = [(text, at, -1.0) for _, at, text in found]
    assert [text for text, _, _ in _tokens_after_group([], len("Café"), rows)] == [" men", " sing"]


def test_a_server_that_answers_one_of_several_prompts_is_asked_one_by_one() -> None:
    require_modules("openai")
    from kgbias.models.score.load import open_scorer
    from tests.fault_server import FaultServer

    def one(body: Any, n: int) -> Any:
        prompt = body["prompt"]
        return echo(body | {"prompt": [prompt] if isinstance(prompt, str) else prompt[:1]}, n)

    with FaultServer(one) as server:
        grid = open_scorer("openai:m", base_url=server.url).grid(["tall men"], ["love food"])
    assert grid.probes.log_likelihoods.tolist() == [[-3]]


def test_tokens_that_are_shown_by_their_numbers() -> None:
    """vLLM's --return-tokens-as-token-ids: the statement's follow what both prompts begin with."""
    require_modules("openai")
    from kgbias.models.score.load import open_scorer
    from tests.fault_server import FaultServer

    def by_number(body: Any, n: int) -> Any:
        _, text = echo(body, n)
        answer = json.loads(text)
        for choice in answer["choices"]:
            words = choice["logprobs"]["tokens"]
            choice["logprobs"]["tokens"] = [f"token_id:{len(w) * 100 + ord(w[-1])}" for w in words]
        return "body", json.dumps(answer)

    with FaultServer(by_number) as server:
        grid = open_scorer("openai:m", base_url=server.url).grid(["tall men"], ["love food"])
    assert grid.probes.log_likelihoods.tolist() == [[-3]]
    assert grid.statement.tokens.tolist() == [[2]] and grid.group.tokens.tolist() == [1]


def _changed(change: Callable[[Any, Any], None]) -> Callable[[Any, int], Any]:
    """The server of `echo`, with its answer changed, given the request too."""

    def answered(body: Any, n: int) -> Any:
        answer = json.loads(echo(body, n)[1])
        change(answer, body)
        return "body", json.dumps(answer)

    return answered


def _in_the_shape_of_chats(answer: Any, _: Any) -> None:
    for choice in answer["choices"]:
        parts = choice["logprobs"]
        pairs = zip(parts["tokens"], parts["token_logprobs"], strict=True)
        choice["logprobs"] = {"content": [{"token": t, "logprob": p} for t, p in pairs]}


def _of_the_next_token(answer: Any, _: Any) -> None:
    for choice in answer["choices"]:
        tokens = choice["logprobs"]["tokens"]
        choice["logprobs"]["token_logprobs"] = [-float(len(t)) for t in tokens[1:]] + [-0.1]


def _zeros(answer: Any, _: Any) -> None:
    for choice in answer["choices"]:
        choice["logprobs"]["token_logprobs"] = [0.0] * len(choice["logprobs"]["tokens"])


def test_echoes_in_the_shape_of_chats_are_read(texts: Texts) -> None:
    require_modules("openai")
    from kgbias.models.score.load import open_scorer
    from tests.fault_server import FaultServer

    with FaultServer(_changed(_in_the_shape_of_chats)) as server:
        scorer = open_scorer("openai:m", base_url=server.url)
        grid = scorer.grid(["tall men", "men"], ["love food"])
    assert grid.probes.log_likelihoods.tolist() == [[-3], [-2]]
    assert grid.statement.tokens.tolist() == [[2], [2]] and grid.group.tokens.tolist() == [1, 0]
    with texts.raises(DataError):
        grid.check_group_tokens(["tall men", "men"])


@pytest.mark.parametrize("change", [_of_the_next_token, _zeros])
def test_echoes_that_are_not_of_their_tokens_are_refused(change: Any, texts: Texts) -> None:
    require_modules("openai")
    from kgbias.models.score.load import open_scorer
    from tests.fault_server import FaultServer

    with FaultServer(_changed(change)) as server:
        scorer = open_scorer("openai:m", base_url=server.url)
        with texts.raises(ModelError):
            scorer.score(["tall men love food"])


@pytest.mark.parametrize(
    ("refuses", "why"),
    [
        (lambda body: isinstance(body["prompt"], list), "prompt must be a string"),
        (lambda body: body["max_tokens"] > 0, "echo with logprobs: set max_tokens=0"),
    ],
)
def test_a_server_is_asked_for_what_it_takes(refuses: Any, why: str) -> None:
    require_modules("openai")
    from kgbias.models.score.load import open_scorer
    from tests.fault_server import FaultServer

    def answered(body: Any, n: int) -> Any:
        if refuses(body):
            return "refuse", why
        prompts = [body["prompt"]] if isinstance(body["prompt"], str) else body["prompt"]
        return echo({**body, "prompt": prompts}, n)

    with FaultServer(answered) as server:
        scorer = open_scorer("openai:m", base_url=server.url)
        assert scorer.grid(["tall men"], ["love food"]).probes.log_likelihoods.tolist() == [[-3]]
        asked = len(server.bodies)
        scorer.score(["tall men love tea"])
        assert len(server.bodies) == asked + 1  # what is not taken is not tried again


# large jobs


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_a_large_job_goes_on_where_it_stopped(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        require_modules("pyarrow")
    sets = {"c": (("Men", "Women"), tuple(f"are s{n}" for n in range(10)))}
    scorer: Any = Beliefs({("Men", "are s3")})
    expected = probe_sets(scorer, sets, chunk=6).bias
    output = tmp_path / name

    class Stops(Beliefs):
        def grid(self, groups: Any, statements: Any, progress: Any = None) -> ProbeGrid:
            if "are s6" in statements:
                raise KeyboardInterrupt
            return super().grid(groups, statements, progress)

    with pytest.raises(KeyboardInterrupt):
        probe_sets(Stops(scorer.believed), sets, output=output, chunk=6)  # type: ignore[arg-type]
    if name.endswith("jsonl"):
        with output.open("a") as file:
            file.write('{"half a row')
    second: Any = Beliefs(scorer.believed)
    found = probe_sets(second, sets, output=output, chunk=6).bias
    assert second.asked == 8  # of 20: two chunks of six were there
    assert found.score == expected.score
    third: Any = Beliefs(scorer.believed)
    again = probe_sets(third, sets, output=output, chunk=6).bias
    assert again.score == expected.score
    assert third.asked == 0
    if name.endswith("jsonl"):
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    else:
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(output).to_pylist()
    assert len(rows) == 20 == len({(r["group"], r["statement"]) for r in rows})
    men = next(r for r in rows if (r["group"], r["statement"]) == ("Men", "are s3"))
    assert men["perplexity"] == pytest.approx(math.exp(3 / 3))
    assert men["group_perplexity"] == pytest.approx(math.exp(2))
    with pytest.raises(UsageError, match="other settings"):
        probe_sets(third, {"c": (("Men", "Owls"), ("are s1",))}, output=output, chunk=6)


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, texts: Texts) -> None:
    output = tmp_path / "mine.jsonl"
    output.write_text("{}\n")
    scorer: Any = Beliefs(set())
    with pytest.raises(UsageError, match="exists: name another"):
        probe_sets(scorer, {"c": (("A", "B"), ("s",))}, output=output)
    with texts.raises(UsageError):
        probe_sets(scorer, {"c": (("A", "B"), ("s",))}, output=tmp_path / "x.csv")
    assert output.read_text() == "{}\n"


# the command


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["probe", *arguments], standalone_mode=False)


def test_the_command_on_a_run(probed_store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda *_, **__: Beliefs(BELIEVED))
    url = probed_store.url
    found = json.loads(run("r", "--model", "any", "--store", url, "--json").stdout)
    assert found["mrr"]["value"] == pytest.approx(0.75) and len(found["triples"]) == 4
    assert found["categories"]["gender"]["top_1"]["men"]["value"] == pytest.approx(2 / 3)
    shown = run("--model", "any", "--store", url).stdout
    assert "mean reciprocal rank 0.750" in shown and "SoFa score" in shown


def test_the_command_on_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda *_, **__: Beliefs(BELIEVED))
    (tmp_path / "g.json").write_text('{"gender": ["Women", "Men"]}')
    (tmp_path / "s.txt").write_text("love food\nhate rain\n\nare kind\n")
    common = ("sets", "--model", "any", "--identities", str(tmp_path / "g.json"))
    result = run(*common, "--statements", str(tmp_path / "s.txt"), "--json")
    found = json.loads(result.stdout)
    assert found["categories"]["gender"]["statements"] == 3
    assert found["categories"]["gender"]["top_1"]["Men"]["value"] == pytest.approx(2 / 3)
    (tmp_path / "empty.txt").write_text("\n")
    error = run(*common, "--statements", str(tmp_path / "empty.txt")).exception
    assert isinstance(error, KgbiasError) and "empty" in str(error)


def test_the_command_on_a_table_of_apx(tmp_path: Path) -> None:
    path = tmp_path / "apx.csv"
    rows = [f"g{n},{10 if n == 0 else 100 + n % 2},x,age\ng{n},5,y," for n in range(9)]
    path.write_text("Group,apx_1,descriptor,axis\n" + "\n".join(rows) + "\n")
    found = json.loads(run("apx", "--from", str(path), "--json").stdout)
    (flag,) = found["flags"]
    assert set(flag) == {"group", "descriptor", "bias_score", "z"}
    assert (flag["group"], flag["descriptor"]) == ("g0", "x") and flag["z"] < -2.33
    without = json.loads(run("apx", "--from", str(path), "--exclude-axis", "age", "--json").stdout)
    assert without["flags"] == [] and without["descriptors"] == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "name the model"),
        (("--stereoset", "x", "--model", "m"), "probe run does not take --stereoset: probe pairs"),
        (("apx", "--from", "nowhere.csv"), "cannot read nowhere.csv"),
        (("surprisal", "x", "--model", "nonsense:"), "no model 'nonsense:'"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], why: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, KgbiasError) and why in str(error) and "\n" not in str(error)


def test_statements_are_probed_in_chunks_that_end_together_and_begin_alike() -> None:
    statements = [Statement(f"are {word}", str(n)) for n in range(700) for word in ("kind", "odd")]
    few, many = ([Group(f"g{n}", "c") for n in range(count)] for count in (7, 300))
    chunks = list(_iter_chunks(few, statements))
    assert [s.text for chunk in chunks for s in chunk] == sorted(s.text for s in statements)
    assert max(len(few) * len(chunk) for chunk in chunks) <= 1024
    assert count_scored_texts(len(few), len(statements)) == len(few) * (1400 + len(chunks))
    # Of many groups, each of which is scored once more in each chunk, chunks are larger.
    assert max(len(many) * len(chunk) for chunk in _iter_chunks(many, statements)) > 3000
