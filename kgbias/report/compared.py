"""Exhibits of tests: a run's arms beside each other, and its groups against each other."""

from collections.abc import Iterator, Mapping, Sequence

from kgbias.compare import GroupTest, arm_values
from kgbias.report.figures import SHOWN
from kgbias.report.run_data import ArmData, Exhibit, RunData
from kgbias.report.tables import Table, cells, p_text
from kgbias.report.topic_figures import arm_boxes
from kgbias.statistics import STATISTICS, Sample, bootstrap


def arms(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The arms side by side: what they say, and the tests of section 6.1."""
    tests = [t for t in data.arm_tests if t.category == category]
    if not tests:
        return
    of = {g.id: g.category for g in data.run.groups}
    regard, toxic = (
        arm_values(data.triples, measure, of).get(category, {})
        for measure in ("regard", "toxicity")
    )
    rows = []
    for arm in data.counted.arms:
        said = [t for t in data.counted.of(arm) if of.get(t.group_id) == category]
        cells_of = [arm, str(sum(t.count for t in said)), str(len(said)), *_cells(regard, arm)]
        rows.append([*cells_of, *_quartiles(toxic, arm)])
    yield Exhibit(
        f"{place}-arms-beside", category, "The arms side by side", "Section 6.1", None,
        Table(
            f"{place}-arms-beside", f"Statements about {category} in each augmentation arm.",
            ("Arm", "n", "distinct", "mean regard", "95% interval", "median toxicity", "quartiles",
             "mean toxicity", "95% interval"), rows,
            "Regard is -1, 0 or 1. Arms are never added up.",
        ),
    )  # fmt: skip
    yield Exhibit(
        f"{place}-arms", category, "Toxicity under the augmentations", "Figure 5, Table 5",
        (lambda: arm_boxes(toxic)) if len(toxic) > 1 else None,
        _tests_table(f"{place}-arms", f"Augmentation arms of {category} compared.", tests),
    )  # fmt: skip


def _cells(samples: Mapping[str, Sample], arm: str) -> list[str]:
    sample = samples.get(arm)
    return cells(bootstrap(sample, STATISTICS["mean"]), "+.3f") if sample else ["", ""]


def _quartiles(samples: Mapping[str, Sample], arm: str) -> list[str]:
    sample = samples.get(arm)
    if not sample:
        return [""] * 4
    q1, median, q3 = (bootstrap(sample, STATISTICS[n]).value for n in ("q1", "median", "q3"))
    of_mean = cells(bootstrap(sample, STATISTICS["mean"]), ".3f")
    return [f"{median:.3f}", f"{q1:.3f} to {q3:.3f}", *of_mean]


def group_tests(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    tests = [t for t in data.group_tests if t.category == category]
    if len(data.groups(category)) > SHOWN:
        tests.sort(key=lambda t: min(t.u_adjusted, t.ks_adjusted))
        tests = tests[:SHOWN]
    if tests:
        yield Exhibit(
            f"{place}-group-tests", category, "Do the groups differ?", "", None,
            _tests_table(f"{place}-group-tests", f"Groups of {category} compared.", tests),
        )  # fmt: skip


def _tests_table(label: str, caption: str, tests: Sequence[GroupTest]) -> Table:
    rows = [
        [
            t.measure, t.first, t.second, f"{t.result.n[0]}, {t.result.n[1]}",
            *cells(t.result.difference, "+.3f"), f"{t.result.delta:+.2f}", f"{t.result.ks:.2f}",
            p_text(t.u_adjusted), p_text(t.ks_adjusted),
        ]
        for t in tests
    ]  # fmt: skip
    method = "Holm" if tests[0].correction == "holm" else "Benjamini-Hochberg"
    return Table(
        label, caption,
        ("Measure", "First", "Second", "n", "difference", "95% interval",
         "Cliff's delta", "KS D", "p MW", "p KS"),
        rows,
        f"Two-sided Mann-Whitney and two-sample Kolmogorov-Smirnov tests, p corrected by {method} "
        "over the tests of a measure. Differences are of means; delta above 0: the first is "
        "higher.",
    )  # fmt: skip
