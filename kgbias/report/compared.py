"""Exhibits of tests: a run's arms beside each other, and its groups against each other."""

from collections.abc import Iterator, Mapping, Sequence

from kgbias.compare import GroupTest, arm_values
from kgbias.compare.families import tested
from kgbias.graph.between import too_dear
from kgbias.io.text import p_value
from kgbias.measures import known
from kgbias.report.figures import SHOWN
from kgbias.report.run_data import ArmData, Exhibit, RunData
from kgbias.report.tables import Table, cells
from kgbias.report.topic_figures import arm_boxes
from kgbias.stats.inference import STATISTICS, Sample, bootstrap

FORMS = ("chosen", "raw")  # of a difference, beside the standardised one


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
        tests.sort(key=lambda t: (t.omnibus_p, t.p_adjusted))
        tests = tests[:SHOWN]
    if tests:
        yield Exhibit(
            f"{place}-group-tests", category, "Do the groups differ?", "", None,
            _tests_table(
                f"{place}-group-tests", f"Groups of {category} compared.", tests, remarks(data)
            ),
        )  # fmt: skip


def echoed(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """What asking echoes anew does to the means of groups: those that would lie outside of their
    intervals."""
    rows, asked, compared = [], 0, 0
    for measure in tested(data.held.triples):
        for group in data.groups(category):
            value, echoes = data.with_echoes(group, measure)
            if not echoes:
                continue
            found, form = data.mean(group, measure), f"+{known(measure).form.lstrip('+')}"
            asked, compared = max(asked, echoes), compared + 1
            if found.has_interval and not found.low <= value <= found.high:
                rows.append([measure, group.name, str(found.n), *cells(found, form),
                             f"{value:{form}}", str(echoes)])  # fmt: skip
    if not compared:
        return
    said = (
        f"Of {compared} means, these would lie outside of their intervals."
        if rows
        else f"None of {compared} means would lie outside of its interval."
    )
    yield Exhibit(
        f"{place}-echoed", category, "What asking echoes anew does", "", None,
        Table(
            f"{place}-echoed", f"Means of statements about {category}, had echoes counted.",
            ("Measure", "Group", "n", "mean", "95% interval", "with echoes", "echoes"), rows,
            "An answer that repeats an example of its prompt is asked anew, so figures are of what "
            "the model says when it does not repeat. With echoes: had the first answer of each "
            "place counted, an echo as the mean of the examples that its prompt showed. " + said,
        ),
    )  # fmt: skip


def remarks(data: ArmData) -> str:
    """What is to be known of the scores by which groups are held against each other."""
    lines = (*data.held.remarks, *too_dear(data.whole.metrics).values())
    return " ".join(f"{line[:1].upper()}{line[1:]}." for line in lines)


def _tests_table(label: str, caption: str, tests: Sequence[GroupTest], note: str = "") -> Table:
    rows = [
        [
            t.measure, t.first, t.second, f"{t.n[0]}, {t.n[1]}", *cells(t.difference, "+.3f"),
            *(f"{t.forms[form].value:+.3f}" if form in t.forms else "" for form in FORMS),
            p_value(t.omnibus_p), p_value(t.p_adjusted),
        ]
        for t in tests
    ]  # fmt: skip
    method = "Holm" if tests[0].correction == "holm" else "Benjamini-Hochberg"
    return Table(
        label, caption,
        ("Measure", "First", "Second", "n", "difference", "95% interval", "predicate chosen",
         "all as they are", "p of all", "p"),
        rows,
        "Differences are of means, at one mix of the predicates that prompts give; beside them "
        "those of statements whose predicate the model chose, and of all as they are. Tests "
        "permute whole prompts: first of all together (p of all), then of each, two-sided, "
        f"corrected by {method} over the tests of a measure. None is named where p of all is above "
        f"0.05. {note}".strip(),
    )  # fmt: skip
