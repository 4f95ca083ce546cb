"""The report of several runs: one self-contained HTML page that works offline."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from kgbias import pages
from kgbias.files import write_text
from kgbias.graph.selection import Selection
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_STATEMENT
from kgbias.progress import Progress
from kgbias.report import cards
from kgbias.report.several import Shown, several_exhibits
from kgbias.report.several_data import SeveralData
from kgbias.report.several_findings import several_findings
from kgbias.text import json_in_html

# anchor -> title, what it says, and the exhibits that belong there; none: those of each measure
_SECTIONS = {
    "beside": (
        "What each of them says",
        "The same groups in the same order, on the same scale. How far a mean is from 0 is as much "
        "the prompts' doing as the model's: hold runs against each other, by the tests below.",
        (),
    ),
    "ranks": (
        "The groups in order",
        "A line for each group through its place by mean regard in each run; upright, 95% of "
        "resamples. Places are not tested: groups of nearly equal means change theirs by chance.",
        ("ranks",),
    ),
    "beliefs": (
        "What they believe",
        "Statements that all of their models were asked about, after the same names of the same "
        "groups: those that any of them believes, and how far their lifts agree.",
        ("believed-",),
    ),
    "overlap": (
        "How much they share",
        "Of the distinct statements about groups that at least two runs have.",
        ("overlap",),
    ),
    "differences": (
        "Where they differ",
        "Pairs of runs in each group. One family: every p-value is corrected over all of them.",
        ("differences-",),
    ),
}


def write_several(
    runs: Sequence[StoredRun],
    path: Path,
    *,
    correction: str = "holm",
    selection: Selection | None = None,
    progress: Progress | None = None,
    explorer: str = "",
) -> None:
    """Write the report of two to six runs beside each other to `path`, whole or not at all.
    `explorer` is the address, seen from the page, of an explorer of the same runs.

    Raises UsageError as `SeveralData`, DataError where the file cannot be written."""
    data = SeveralData(runs, correction=correction, selection=selection, progress=progress)
    write_text(path, render(data, explorer))


def render(data: SeveralData, explorer: str = "") -> str:
    """The page as text."""
    found = list(several_exhibits(data))
    measures = tuple(Shown.of(measure).key for measure in data.measures)
    sections = []
    for anchor, (title, about, kinds) in _SECTIONS.items():
        groups = []
        for category in (*data.categories, ""):
            own = [
                e
                for e in found
                if e.category == category and e.key.partition("-")[2].startswith(kinds or measures)
            ]
            if own:
                groups.append(cards.group(category, own, [e.table for e in own], linked=False))
        if groups:
            sections.append((anchor, title, about, cards.render(groups)))
    script = _read("copy.js")
    models = dict.fromkeys(side.run.model.name for side in data.sides)
    return (
        pages.environment()
        .from_string(_read("several.html"))
        .render(
            models=list(models),
            categories=list(data.categories),
            sides=data.sides,
            told=cards.told(several_findings(data, explorer)),
            sections=sections,
            warning=CONTENT_WARNING,
            statement=SAMPLE_STATEMENT,
            style=Markup(pages.style(_read("style.css"))),
            exhibits=Markup(
                json_in_html(cards.copied((e.table for e in found), "-".join(data.names)))
            ),
            script=Markup(script),
            allowed=pages.allowed(script),
            explorer=explorer,
        )
    )


def _read(name: str) -> str:
    return files("kgbias.report").joinpath("templates", name).read_text("utf-8")
