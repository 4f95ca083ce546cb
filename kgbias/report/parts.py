"""What methods show of a run, in its report and among its figures and tables: findings of the first
screen (`kgbias.report.findings`), exhibits, and sections.

A method or another package adds a part by an entry point of the group "kgbias.exhibits".
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from kgbias.io.plugins import PluginTable
from kgbias.report.run_data import ArmData, RunData
from kgbias.report.style import Section
from kgbias.report.tables import Exhibit

if TYPE_CHECKING:
    from kgbias.report.multi_run_data import MultiRunData


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of the first screen.

    Attributes:
        topic: what it is about.
        said: the sentence, its figures with their intervals, as HTML.
        tested: how it was tested, among how many, and how the p-value was corrected.
        basis: what it rests on.
        links: where to look, as (text, address).
        category: the category of groups that it is about, if it is about one.
        p_value: its corrected p-value, by which findings are ordered.
        size: breaks ties in p: its size over the width of its interval or, of what is said more,
            its log-odds with an informative prior.
    """

    topic: str
    said: Markup
    tested: str
    basis: str = ""
    links: Sequence[tuple[str, str]] = ()
    p_value: float = math.nan
    size: float = 0.0
    category: str = ""

    @property
    def order(self) -> tuple[float, float]:
        return self.p_value, -self.size


@dataclass(frozen=True, slots=True)
class FindingKind:
    """All findings of one kind.

    Attributes:
        omnibus_p: the p-value of there being nothing at all of this kind.
        findings: what was shown, each after its own correction, strongest first.
        nothing: what was not shown, as part of a sentence, if the kind is not shown.
        rest_not_shown: the same if it is.
        remark: a sentence about all of its findings.
        examined: in what a difference between groups was looked for, as part of a sentence; "" for
            a kind that compares no groups.
    """

    omnibus_p: float
    findings: Sequence[Finding]
    nothing: str
    rest_not_shown: str = ""
    remark: str = ""
    examined: str = ""


@dataclass(frozen=True, slots=True)
class SectionOfExhibits:
    """A section of the report that shows exhibits.

    Attributes:
        anchor: its name in links.
        title: its heading.
        about: what it shows and how to read it, as text.
        key_prefixes: how the keys of its exhibits begin, after the number of their category.
        after: for one that a method adds, the anchor of the section that it follows; at the end if
            there is none of that name.
    """

    anchor: str
    title: str
    about: str
    key_prefixes: tuple[str, ...]
    after: str = ""


@dataclass(frozen=True, slots=True)
class ReportPart:
    """What a method shows of a run; nothing of a run that it was not applied to.

    Attributes:
        of_run: makes the exhibits of the whole run; their keys begin with the place that it is
            given and a hyphen.
        of_category: the same for a category.
        of_arm: the same for a category in one arm.
        sections: the sections of the report that show them.
        make_section: makes one more section, which shows no exhibits; None if there is nothing.
        find_kind: a kind of findings for the first screen, given the explorer's address too; None
            if the run has no data for it.
        of_runs: makes exhibits of several runs side by side, for the page of these.
        sections_of_runs: the sections of that page that show them.
    """

    of_run: Callable[[RunData, str], Iterator[Exhibit]] | None = None
    of_category: Callable[[RunData, str, str], Iterator[Exhibit]] | None = None
    of_arm: Callable[[ArmData, str, str], Iterator[Exhibit]] | None = None
    sections: Sequence[SectionOfExhibits] = ()
    make_section: Callable[[RunData], Section | None] | None = None
    find_kind: Callable[[RunData, str], FindingKind | None] | None = None
    of_runs: Callable[["MultiRunData", str], Iterator[Exhibit]] | None = None
    sections_of_runs: Sequence[SectionOfExhibits] = ()


REPORT_PARTS: PluginTable[ReportPart] = PluginTable("exhibit", ReportPart, {})
"""What each method shows, by its name."""


def place_sections(
    core_sections: Iterable[SectionOfExhibits], added: Iterable[Sequence[SectionOfExhibits]]
) -> list[SectionOfExhibits]:
    """The sections of a page: its own, and those that methods add, where they say."""
    sections = list(core_sections)
    for section in (section for own_sections in added for section in own_sections):
        anchors = [placed.anchor for placed in sections]
        place = anchors.index(section.after) + 1 if section.after in anchors else len(anchors)
        sections.insert(place, section)
    return sections


def report_parts() -> list[ReportPart]:
    """The parts that can be used: what a broken package adds is left out. Imports all of them."""
    return list(REPORT_PARTS.usable_entries().values())
