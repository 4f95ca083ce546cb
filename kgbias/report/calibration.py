"""The calibration's section of the report: the table, and pictures of planted against found."""

from collections.abc import Sequence
from typing import Any

import jinja2

from kgbias.calibrate import Calibration, RowResult
from kgbias.io.drawing import (
    COLUMN_INCHES,
    INK_COLOR,
    NEUTRAL_COLOR,
    POSITIVE_COLOR,
    figure_style,
    make_subplots,
)
from kgbias.report.style import Section, inline_svg

_TEMPLATE = """
<p>This run crawled the reference model, whose beliefs are declared in a file: invented peoples with
invented stereotypes. What was found can therefore be compared with what was planted.</p>
<div class="scroll"><table class="numbers"><thead><tr><th scope="col">Planted against found</th>
<th scope="col">value</th><th scope="col">95%</th><th scope="col">n</th><th scope="col">target</th>
</tr></thead><tbody>
{% for row in table %}<tr><th scope="row">{{ row.title }}</th>
<td>{{ "%.3f" | format(row.estimate.value) }}</td>
<td>{% if row.estimate.is_shown %}{{ "%.3f" | format(row.estimate.low) }} to
{{ "%.3f" | format(row.estimate.high) }}{% else %}–{% endif %}</td>
<td>{{ row.estimate.n }}</td><td>{{ row.target }}</td></tr>{% endfor %}
</tbody></table></div>
<div class="cards">{% for caption, svg in figures %}<figure>{{ svg | safe }}
<figcaption>{{ caption }}</figcaption></figure>{% endfor %}</div>
"""


def calibration_section(table: Sequence[RowResult], calibration: Calibration) -> Section:
    """The section of a report on the calibration: its table, and two figures of one crawl."""
    balances = list(calibration.regard_balances.values())
    shares = [
        (float(planted), float(found))
        for pair in calibration.topic_shares.values()
        for planted, found in zip(*pair, strict=True)
    ]
    figures = [
        (
            "Regard balance of each group: planted, and as measured",
            inline_svg(
                draw_planted_against_found(balances, "planted regard balance", "measured"),
                "cal0",
                "Planted and measured regard balance",
                "One point for each group; the line is where both are equal.",
            ),
        ),
        (
            "Share of each topic in each group: as planted for these prompts, and as found",
            inline_svg(
                draw_planted_against_found(shares, "planted topic share", "found"),
                "cal1",
                "Planted and found topic shares",
                "One point for each topic of each group; the line is where both are equal.",
            ),
        ),
    ]
    environment = jinja2.Environment(autoescape=True)
    html = environment.from_string(_TEMPLATE).render(table=table, figures=figures)
    return Section("Calibration", html, "calibration")


def draw_planted_against_found(
    points: Sequence[tuple[float, float]], x_label: str, y_label: str
) -> Any:
    """A scatter of (planted, found) with the line of agreement."""
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 2.8))
        axes.grid(True)
        axes.set_axisbelow(True)
        if points:
            ends = (min(min(p) for p in points), max(max(p) for p in points))
            axes.plot(ends, ends, color=NEUTRAL_COLOR, linewidth=0.9)
            axes.scatter(
                *zip(*points, strict=True),
                s=14,
                color=POSITIVE_COLOR,
                edgecolors=INK_COLOR,
                linewidths=0.3,
                zorder=3,
            )
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        return figure
