"""Groups at one mix of prompts, dealt anew: against listings, planted and absent differences, and
samples that try to make a sentence lie."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from kgbias.compare.families import (
    REST,
    SIGNIFICANCE_LEVEL,
    GroupTest,
    OmnibusTest,
    describe_family_without_pairs,
    differs_only_together,
    excludes_zero,
    run_family,
    shrink_differences,
)
from kgbias.compare.model_contrasts import ModelContrast, ModelSamples, contrast_models
from kgbias.compare.permutation import permute_clusters
from kgbias.graph.types import Group
from kgbias.stats.designs import Design
from kgbias.stats.inference import Estimate, Sample
from kgbias.stats.poststratification import (
    MODEL_CHOSEN_FORM,
    FormResamples,
    StandardWeights,
    StratifiedSample,
    weighted_means,
)
from tests.conftest import require_modules
from tests.simulation import Simulation
from tests.texts import Texts

require_modules("scipy")

FORMS = ("given hate", "given love", MODEL_CHOSEN_FORM)


def asked(values: list[float], clusters: list[int], forms: list[str]) -> StratifiedSample:
    """Values, the cluster of each, and the form of each."""
    n = len(values)
    strata = np.zeros(max(clusters) + 1, dtype=np.int64)
    order = list(dict.fromkeys(forms))
    strata[clusters] = [order.index(f) for f in forms]
    keys = np.empty(n, dtype=object)
    keys[:] = forms
    design = Design(np.array(clusters), strata)
    sample = Sample(np.array(values, float), np.ones(n, dtype=np.int64), design, np.arange(n))
    return StratifiedSample(sample, keys, keys)


def crawl(
    rng: np.random.Generator, shift: float = 0.0, sizes: tuple[int, ...] = (6, 6, 12)
) -> StratifiedSample:
    """Prompts of two values each, which share half of their variance; "hate" lowers what is said by
    1, "love" raises it."""
    values, clusters, forms = [], [], []
    for form, prompts, level in zip(FORMS, sizes, (-1.0, 1.0, 0.0), strict=True):
        for _ in range(prompts):
            own = level + shift + rng.normal(0, 0.5)
            cluster = clusters[-1] + 1 if clusters else 0
            for _ in range(2):
                values.append(own + rng.normal(0, 0.5))
                clusters.append(cluster)
                forms.append(form)
    return asked(values, clusters, forms)


def at_one_mix(sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return weighted_means(sums, sizes, np.array([0.25, 0.25, 0.5]))


def every_other(sides: dict[str, StratifiedSample]) -> OmnibusTest:
    return run_family("warmth", "x", sides, [(name, REST) for name in sides])


def test_a_deal_of_prompts_agrees_with_listing_every_one() -> None:
    """Three groups with two clusters in each of two blocks: 90 x 90 deals, the statistics written
    out."""
    rng = np.random.default_rng(3)
    sides = [
        asked(list(rng.normal(0, 1, 6)), [0, 0, 1, 2, 3, 3], ["a", "a", "a", "b", "b", "b"])
        for _ in range(3)
    ]
    mix = StandardWeights.from_samples(sides)
    assert mix.weights == {"a": 0.5, "b": 0.5} and mix.share == 1

    def clusters(form: str) -> list[tuple[float, int]]:
        found = []
        for s in sides:
            for c in (0, 1) if form == "a" else (2, 3):
                own = s.sample.values[s.sample.design.clusters == c]  # type: ignore[union-attr]
                found.append((float(own.sum()), len(own)))
        return found

    def statistics(deals: tuple[tuple[int, ...], ...]) -> tuple[float, list[float]]:
        means, rest = np.zeros(3), np.zeros(3)
        for form, dealt in zip("ab", deals, strict=True):
            own = clusters(form)
            for g in range(3):
                mine = [own[n] for n in dealt[2 * g : 2 * g + 2]]
                others = [own[n] for n in dealt if n not in dealt[2 * g : 2 * g + 2]]
                means[g] += 0.5 * sum(s for s, _ in mine) / sum(n for _, n in mine)
                rest[g] += 0.5 * sum(s for s, _ in others) / sum(n for _, n in others)
        return float((6 * (means - means.mean()) ** 2).sum()), list(np.abs(means - rest))

    ways = [
        (*a, *b, *sorted(set(range(6)) - set(a) - set(b)))
        for a in itertools.combinations(range(6), 2)
        for b in itertools.combinations(sorted(set(range(6)) - set(a)), 2)
    ]
    between, apart = statistics((tuple(range(6)), tuple(range(6))))
    listed = [statistics(deals) for deals in itertools.product(ways, repeat=2)]
    exact = np.mean([q >= between - 1e-12 for q, _ in listed])
    exact_apart = np.mean(
        [[x >= y - 1e-12 for x, y in zip(d, apart, strict=True)] for _, d in listed], axis=0
    )
    found = permute_clusters(sides, mix)
    assert found.p_value == pytest.approx(exact, abs=0.015)
    assert found.rest_p_values == pytest.approx(exact_apart, abs=0.015)
    assert np.abs(found.means - found.rest_means) == pytest.approx(apart)


def test_prompts_that_write_the_sign_make_no_difference(texts: Texts) -> None:
    """One group was mostly asked about hate, the others about love: as they are they differ, at one
    mix of prompts they do not. A planted difference stays."""
    rng = np.random.default_rng(1)
    sides = {
        "A": crawl(rng, sizes=(20, 3, 12)),
        "B": crawl(rng, sizes=(3, 20, 12)),
        "C": crawl(rng, sizes=(3, 20, 12)),
    }
    found = every_other(sides)
    first = found.tests[0]
    assert first.forms["raw"].high < -0.5
    assert excludes_zero(first.difference) is False and not first.differs
    assert set(first.forms) == {"chosen", "raw"} and first.forms_compared == 3
    texts.check(first.subject)
    planted = {"A": crawl(rng, 1.0, (20, 3, 12)), **{n: crawl(rng) for n in "BCD"}}
    found = every_other(planted)
    shown = found.tests[0]
    assert (
        shown.differs
        and shown.first == "A"
        and shown.difference.value == pytest.approx(1, abs=0.35)
    )
    texts.check(shown.verdict)
    assert found.differs and found.p <= 0.001


def test_false_positives_of_the_family_stay_at_the_level(simulation: Simulation) -> None:
    """Samples without any difference, of four groups asked unevenly: the omnibus test finds one in
    at most 5%, and so is a group named."""
    omnibus, named = [], []
    for seed, rng in enumerate(simulation.worlds(50)):
        sides = [crawl(rng, sizes=(2 + g, 6 - g, 8)) for g in range(4)]
        found = permute_clusters(
            sides, StandardWeights.from_samples(sides), permutations=199, seed=seed
        )
        omnibus.append(found.p_value <= SIGNIFICANCE_LEVEL)
        named.append(
            found.p_value <= SIGNIFICANCE_LEVEL
            and found.rest_p_values.min() * 4 <= SIGNIFICANCE_LEVEL
        )
    simulation.check("omnibus", sum(omnibus), len(omnibus), 0.0, 0.05)
    simulation.check("named", sum(named), len(named), 0.0, 0.05)


def test_intervals_of_standardised_differences_hold(simulation: Simulation) -> None:
    differences, means = [], []
    for rng in simulation.worlds(30):
        sides = [crawl(rng, 0.5), crawl(rng)]
        mix = StandardWeights.from_samples(sides)
        drawn = [
            FormResamples.from_sample(s, FORMS, draws=300, seed=n) for n, s in enumerate(sides)
        ]
        low, high = drawn[0].difference_interval(drawn[1], at_one_mix)
        differences.append(low <= 0.5 <= high)
        alone = mix.estimate(sides[0], draws=300)
        means.append(alone.low <= 0.5 <= alone.high)
    simulation.check("differences", sum(differences), len(differences), 0.91, 0.98)
    simulation.check("means", sum(means), len(means), 0.91, 0.98)


def test_no_end_of_a_difference_is_impossible() -> None:
    """Of a few statements that lie at the ends of the measure, whose interval is wide."""
    widest, forms = 1.0, ["are", "are", "know"]
    top = widest / 2
    ends = {
        "A": asked([top, top, -top], [0, 1, 2], forms),
        "B": asked([-top, -top, top], [0, 1, 2], forms),
        "C": asked([top, -top, -top], [0, 1, 2], forms),
    }
    found = run_family("identity_attack", "x", ends, [(name, REST) for name in ends])
    told = [e for t in found.tests for e in (t.difference, *t.forms.values()) if e.has_interval]
    assert told and max(abs(end) for e in told for end in (e.low, e.high)) == widest


def test_no_difference_is_promised_that_is_impossible() -> None:
    """Few statements at both ends of the measure: only a difference wider than it would be found,
    which is said of none; of many, one is."""
    values = [0.0, 1.0, 0.0, 1.0, 1.0]
    for times, is_possible in ((1, False), (12, True)):
        n = 5 * times
        sides = {name: asked(values * times, list(range(n)), ["are"] * n) for name in "AB"}
        (test,) = run_family("identity_attack", "x", sides, [("A", "B")]).tests
        assert not math.isnan(test.p) and math.isnan(test.detectable) != is_possible
        assert ("too few statements" in test.verdict) != is_possible


def test_what_has_no_prompts_in_common_is_not_compared(texts: Texts) -> None:
    rng = np.random.default_rng(0)
    one = asked(list(rng.normal(0, 1, 8)), list(range(8)), ["a"] * 8)
    other = asked(list(rng.normal(5, 1, 8)), list(range(8)), ["b"] * 8)
    (test,) = run_family("warmth", "x", {"A": one, "B": other}, [("A", "B")]).tests
    assert math.isnan(test.p) and not test.differs
    texts.check(test.verdict)


def test_very_many_statements_are_tested_by_the_normal_approximation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    sides = [crawl(rng, shift, (20, 20, 40)) for shift in (0.0, 0.1, 0.25)]
    mix = StandardWeights.from_samples(sides)
    dealt = permute_clusters(sides, mix)
    monkeypatch.setattr("kgbias.compare.permutation.MAX_PERMUTED_CLUSTERS", 10)
    normal = permute_clusters(sides, mix)
    assert normal.p_value == pytest.approx(dealt.p_value, rel=0.5)
    assert normal.rest_p_values == pytest.approx(dealt.rest_p_values, rel=0.5, abs=0.02)
    assert normal.means == pytest.approx(dealt.means)
    plain = [StratifiedSample(Sample.from_values(rng.normal(m, 1, 60))) for m in (0, 0.3, 0.6)]
    assert permute_clusters(plain, StandardWeights.from_samples(plain)).p_value < 0.05
    same = [StratifiedSample(Sample.from_values(np.ones(20))) for _ in range(3)]
    assert permute_clusters(same, StandardWeights.from_samples(same)).p_value == 1


def test_shrunken_differences_are_nearer_the_truth_and_their_intervals_hold() -> None:
    """Twelve groups whose true differences have a spread of 0.3, measured with errors of 0.2 to
    0.6, 300 times."""
    rng = np.random.default_rng(0)
    raw = better = hits = 0.0
    for _ in range(300):
        truth = rng.normal(0, 0.3, 12)
        errors = rng.uniform(0.2, 0.6, 12)
        x = rng.normal(truth, errors)
        found = shrink_differences(
            [Estimate(a, a - 1.96 * e, a + 1.96 * e, 9) for a, e in zip(x, errors, strict=True)]
        )
        values = np.array([e.value for e in found])
        raw += float(((x - truth) ** 2).sum())
        better += float(((values - truth) ** 2).sum())
        hits += sum(e.low <= t <= e.high for e, t in zip(found, truth, strict=True))
    assert better < 0.6 * raw
    assert 0.93 <= hits / 3600 <= 0.99
    few = shrink_differences([Estimate(1.0, 0.5, 1.5, 3)] * 3)
    assert all(math.isnan(e.value) for e in few)


# What is said in words of a test, and when it may be.


def lies_of(test: GroupTest) -> list[str]:
    """What a sentence says that its own test does not."""
    d, said = test.difference, test.verdict
    wrong = []
    if " above " in said or " below " in said:
        if not d.has_interval or d.low <= 0 <= d.high:
            wrong.append("a direction where the interval holds 0")
        if (" above " in said) != (d.value > 0):
            wrong.append("the other direction")
        if not max(test.p_adjusted, test.omnibus_p) <= SIGNIFICANCE_LEVEL:
            wrong.append("a difference that is not significant")
        if f"{abs(d.value):.2f}" not in said:
            wrong.append("another size")
    elif test.differs:
        wrong.append("nothing where a difference was shown")
    if "no difference was shown" in said and math.isnan(test.p):
        wrong.append("a test where there was none")
    if " in x (" in said and (test.first in said or test.second in said):
        wrong.append("a name without an omnibus test")
    return wrong


def liars(rng: np.random.Generator) -> dict[str, StratifiedSample]:
    """Two to four groups of a kind that is easily told wrong."""
    kind = rng.integers(0, 7)
    sizes = tuple(rng.integers(1, 7, 3))
    if kind == 0:  # the distributions differ, the means do not: only Kolmogorov-Smirnov sees it
        wide = crawl(rng, sizes=(6, 6, 12))
        spread = Sample(
            wide.sample.values * 4, wide.sample.counts, wide.sample.design, wide.sample.places
        )
        return {
            "Aaa": StratifiedSample(spread, wide.forms, wide.blocks),
            "Bbb": crawl(rng),
            "Ccc": crawl(rng),
        }
    if kind == 1:  # one lone value far out: its mean is high, and hardly anything is known
        far = crawl(rng, sizes=sizes)
        far.sample.values[-1] += 40
        return {"Aaa": far, "Bbb": crawl(rng), "Ccc": crawl(rng)}
    if kind == 2:  # opposite signs in the forms
        values = crawl(rng, sizes=(6, 6, 12))
        flipped = Sample(
            -values.sample.values, values.sample.counts, values.sample.design, values.sample.places
        )
        return {"Aaa": values, "Bbb": StratifiedSample(flipped, values.forms, values.blocks)}
    if kind == 3:  # no variance at all
        zero = crawl(rng, sizes=sizes)
        zero.sample.values[:] = float(rng.integers(0, 2))
        other = crawl(rng, sizes=sizes)
        other.sample.values[:] = float(rng.integers(0, 2))
        return {"Aaa": zero, "Bbb": other, "Ccc": zero}
    if kind == 4:  # hardly a form in common
        return {"Aaa": crawl(rng, 1, (1, 0, 3)), "Bbb": crawl(rng, 0, (0, 1, 3)), "Ccc": crawl(rng)}
    shift = rng.normal(0, 0.5)
    return {"Aaa": crawl(rng, shift, sizes), "Bbb": crawl(rng), "Ccc": crawl(rng, -shift / 2)}


def test_no_sentence_of_groups_says_what_was_not_tested() -> None:
    rng = np.random.default_rng(11)
    said = set()
    for _ in range(60):
        sides = liars(rng)
        names = list(sides)
        pairs = [(n, REST) for n in names] if len(names) > 2 else [(names[0], names[1])]
        for test in run_family("warmth", "x", sides, pairs).tests:
            assert not lies_of(test), (test, lies_of(test))
            said.add(test.verdict.partition(":")[2].split(" ")[1])
    assert {"Aaa", "no"} <= said  # both kinds were said


def test_no_sentence_of_models_says_what_was_not_tested() -> None:
    rng = np.random.default_rng(13)
    groups = (Group("Gg", "g"),)
    verdicts = []
    for _ in range(40):
        sides = liars(rng)
        subjects = [
            ModelSamples(
                name,
                groups,
                {("warmth", groups[0].id): a.sample},
                stratified={("warmth", groups[0].id): a},
            )
            for name, a in list(sides.items())[:2]
        ]
        for t in contrast_models(subjects).tests:
            d, said = t.difference, t.verdict
            verdicts.append(said)
            if " above " in said or " below " in said:
                assert t.p_adjusted <= SIGNIFICANCE_LEVEL and excludes_zero(d)
                assert (" above " in said) == (d.value > 0)
            if "the same to within" in said:
                assert -t.margin < d.low and d.high < t.margin and not t.differs
    assert any(" above " in v or " below " in v for v in verdicts)
    assert any("no difference was shown" in v for v in verdicts)


def test_what_is_said_of_all_where_none_is_named(texts: Texts) -> None:
    held = Estimate(0.1, -0.1, 0.3, 18)

    def family(overall: float, low: float) -> list[GroupTest]:
        d = Estimate(0.1, low, 0.3, 18)
        return [
            GroupTest(
                "warmth",
                "x",
                name,
                REST,
                (9, 9),
                (0.1, 0.0),
                e,
                0.001,
                p_adjusted=0.001,
                family=2,
                omnibus_p=overall,
                detectable=0.3,
            )
            for name, e in (("Aaa", d), ("Bbb", held))
        ]

    texts.check(describe_family_without_pairs(family(0.001, -0.1)))
    assert differs_only_together(family(0.001, -0.1))
    assert not differs_only_together(family(0.3, -0.1)) and not differs_only_together(
        family(0.001, 0.05)
    )
    texts.check_lines(describe_family_without_pairs(family(0.3, 0.05)), "difference was")
    assert (
        describe_family_without_pairs(family(0.001, 0.05))
        == ""
        == describe_family_without_pairs(family(0.3, 0.05)[:1])
    )


def test_a_small_p_beside_an_interval_that_holds_0_says_nothing(texts: Texts) -> None:
    """Made up: the decision and the interval disagree, in either direction."""
    held = Estimate(0.1, -0.1, 0.3, 18)
    base = GroupTest(
        "warmth",
        "x",
        "Aaa",
        REST,
        (9, 9),
        (0.1, 0.0),
        held,
        0.001,
        p_adjusted=0.001,
        family=3,
        omnibus_p=0.001,
        detectable=0.3,
    )
    assert not base.differs
    texts.check_lines(base.verdict, "shown between")
    texts.check_lines(base.verdict, "interval contains")
    clear = Estimate(0.1, 0.05, 0.3, 18)
    for p, overall in ((0.2, 0.001), (0.001, 0.2), (math.nan, 0.001)):
        test = GroupTest(
            "warmth",
            "x",
            "Aaa",
            REST,
            (9, 9),
            (0.1, 0.0),
            clear,
            p,
            p_adjusted=p,
            family=3,
            omnibus_p=overall,
            detectable=0.3,
        )
        assert not test.differs and " above " not in test.verdict and not test.near_miss_note
    wrong_side = Estimate(-0.1, 0.05, 0.3, 18)  # a bootstrap that lies on the other side
    assert not excludes_zero(wrong_side)
    texts.check(replace(base, difference=wrong_side).near_miss_note)
    t = ModelContrast(
        "warmth",
        "G",
        "a",
        "b",
        (9, 9),
        (0.1, 0.0),
        held,
        0.001,
        0.5,
        0.05,
        "prompts",
        p_adjusted=0.001,
    )
    assert not t.differs and " above " not in t.verdict
