"""The page of one model in two languages: what it believes of the same groups in both, in one alone
and in the other."""

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from kgbias.graph.types import CONTENT_WARNING, SAMPLE_CAVEAT
from kgbias.io import pages
from kgbias.io.files import write_text
from kgbias.io.text import json_in_html
from kgbias.report import cards
from kgbias.report.beliefs import belief_comparison_exhibits
from kgbias.report.style import page_head, read_template_file

if TYPE_CHECKING:
    from kgbias.evidence.language_pairs import LanguageComparison


def write_two_languages(
    comparisons: "tuple[LanguageComparison, ...]", title: str, introduction: str, path: Path
) -> None:
    """Write the page to `path`, whole or not at all; lines of `introduction` stand above
    it."""
    groups, exhibits = [], []
    for n, comparison in enumerate(comparisons, 1):
        category = comparison.category
        found = list(belief_comparison_exhibits(comparison, category, f"{n:02d}"))
        exhibits += found
        heading = cards.heading_of(category, [c.category for c in comparisons])
        groups.append(cards.build_group(heading, found, [e.table for e in found], linked=False))
    script = pages.bundle_scripts(
        *pages.read_shared_scripts("draw"),
        read_template_file("copy.js"),
        read_template_file("folds.js"),
    )
    page = pages.fill_template(
        read_template_file("languages.html"),
        head=page_head(title, script),
        title=title,
        told=introduction.splitlines(),
        body=cards.render_groups(groups, folded=True),
        warning=CONTENT_WARNING,
        statement=SAMPLE_CAVEAT,
        exhibits=Markup(json_in_html(cards.copy_texts((e.table for e in exhibits), "languages"))),
        script=script,
    )
    write_text(path, page)
