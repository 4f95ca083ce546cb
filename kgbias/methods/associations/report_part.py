"""What the report shows of association tests: each group's association beside its regard, the tests
of the run, and the findings among them."""

import math
from collections.abc import Iterator

from markupsafe import Markup

from kgbias.compare.families import SIGNIFICANCE_LEVEL
from kgbias.io.columns import Column
from kgbias.io.text import format_p_value
from kgbias.report.findings import (
    bold_figure,
    correction_words,
    p_value_words,
    small_interval,
)
from kgbias.report.parts import Finding, FindingKind, ReportPart, SectionOfExhibits
from kgbias.report.run_data import ArmData, RunData
from kgbias.report.tables import GROUP_COLUMN, Exhibit, Table
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import holm


def regard_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """SC-WEAT of each group beside its overall regard."""
    rows = []
    for group in data.groups(category):
        if association := data.scores.get((group.id, "sc_weat")):
            regard = data.scores.get((group.id, "overall_regard"))
            rows.append([group.name, association, regard])
            method = association.method
    if rows:
        key = f"{place}-sc-weat"
        yield Exhibit(
            key,
            category,
            "Association of each group, beside its regard",
            "",
            None,
            Table(
                key,
                f"Single-category association and overall regard of {category}.",
                (
                    GROUP_COLUMN,
                    Column("SC-WEAT d", "+.3f", interval=True),
                    Column("overall regard", "+.0f", interval=True),
                ),
                rows,
                f"{method}. Above 0: nearer to the words of positive regard; where an interval "
                "contains 0, neither direction is shown.",
            ),
        )


def association_test_exhibits(data: RunData, place: str) -> Iterator[Exhibit]:
    """The association tests of the run, which belong to no category."""
    rows = []
    for node in data.associations:
        effect = Estimate(node.effect_size, node.low, node.high, 0)
        if not math.isnan(node.effect_size):
            words = "+".join(str(node.record["n"][role]) for role in "xyab")
            figures = [effect, node.p_value, node.record["p_holm"]]
            rows.append([node.test, node.method, node.model.title, words, *figures])
    if rows:
        key = f"{place}-association-tests"
        yield Exhibit(
            key,
            "",
            "Association tests",
            "",
            None,
            Table(
                key,
                "Association tests of the run.",
                (
                    Column("Test"),
                    Column("method"),
                    Column("model"),
                    Column("words"),
                    Column("d", "+.3f", interval=True),
                    Column("p", format_p_value),
                    Column("p Holm", format_p_value),
                ),
                rows,
                "Above 0: the first targets go with the first attributes. Words: the sizes of X, "
                "Y, A and B; a set of fewer than 8 represents its concept poorly. Holm corrects "
                "for the tests of one call.",
            ),
        )


def find_associations(data: RunData, explorer: str) -> FindingKind | None:
    """Association tests of the run."""
    nodes = [a for a in data.associations if not math.isnan(a.p_value)]
    if not nodes:
        return None
    family_p = holm([a.p_value for a in nodes])
    findings = [
        Finding(
            "What its vectors hold",
            Markup("{}, by {} in {}: effect size {} {}.").format(
                a.test,
                a.method,
                a.model.title,
                bold_figure(a.effect_size, "+.2f"),
                small_interval(Estimate(a.effect_size, a.low, a.high, 0), 1, "+.2f"),
            ),
            f"Permutation of the target words, {p_value_words(float(p))}, "
            f"{correction_words(len(nodes), 'test')}. Above 0: the first targets go with the first "
            "attributes.",
            f"{a.n_x} and {a.n_y} target words.",
            [("All tests", "#associations")],
            float(p),
            abs(a.effect_size),
        )
        for a, p in zip(nodes, family_p, strict=True)
        if p <= SIGNIFICANCE_LEVEL
    ]
    none = "an association in its vectors"
    return FindingKind(
        float(min(family_p)), findings, none, examined="what its vectors associate with them"
    )


REPORT_PART = ReportPart(
    of_run=association_test_exhibits,
    of_arm=regard_exhibits,
    sections=(
        SectionOfExhibits(
            "associations",
            "Association tests",
            "How much nearer the vectors of one group's words are to one set of words than to "
            "another, as an effect size with its interval. One near 0 does not show that there is "
            "no association.",
            ("sc-weat", "association-tests"),
        ),
    ),
    find_kind=find_associations,
)
