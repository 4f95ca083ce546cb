"""The explorer's page: one self-contained HTML file that works offline and fetches nothing; or the
same page from a server, from which it fetches its columns."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kgbias.errors import MissingExtra
from kgbias.explore import beliefs, choices, meaning, origins, similar, statements, units
from kgbias.explore.columns import Block
from kgbias.explore.statements import Statements
from kgbias.explore.units import Map
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_STATEMENT
from kgbias.io import pages
from kgbias.io.files import write_text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.text import html, json_in_html, printable, shorten
from kgbias.measure.labelled_sets import describe_shipped_annotator
from kgbias.measure.precision import read_precision
from kgbias.measures import Measure

MOST = 600  # dots
_WIDE, _INK, _DISC, _LINE = 900.0, "#1c2530", "#eceff2", "#c4ccd5"
_COLOURS = {"positive": "#2f6fb3", "negative": "#cf6a1f"}  # as in io/page/style.css
_NEITHER = "#98a3af"


def drawn(found: Statements, by_group: Map) -> str:
    """The map by group as SVG: a disc for each group, with dots for the objects said most often,
    each coloured by the regard of what is most often said with it."""
    layout = by_group.layout
    if not len(layout.units):
        return ""
    low = (layout.units - layout.radii[:, None]).min(axis=0) - 4.0
    high = (layout.units + layout.radii[:, None]).max(axis=0) + 1.0
    scale = _WIDE / float((high - low)[0])
    said: dict[int, int] = {}
    label: dict[int, tuple[int, str]] = {}
    for thing, count, number in zip(
        found.object.tolist(), found.count.tolist(), found.label.tolist(), strict=True
    ):
        said[thing] = said.get(thing, 0) + count
        label[thing] = max(label.get(thing, (0, "")), (count, found.labels.texts[number]))
    parts = [
        f'<line x1="{p[0]:.1f}" y1="{p[1]:.1f}" x2="{q[0]:.1f}" y2="{q[1]:.1f}" stroke="{_LINE}"/>'
        for a, b, _ in layout.ties.tolist()
        for p, q in [[(layout.units[int(n)] - low) * scale for n in (a, b)]]
    ]
    for (x, y), radius in zip((layout.units - low) * scale, layout.radii * scale, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{_DISC}"/>')
    for thing in sorted(said, key=lambda n: (-said[n], n))[:MOST]:
        x, y = (layout.objects[thing] - low) * scale
        colour = _COLOURS.get(label[thing][1], _NEITHER)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.5 * scale:.1f}" fill="{colour}"/>')
    for unit, centre, radius in zip(by_group.units, layout.units, layout.radii, strict=True):
        x, y = (centre - low) * scale
        name = html(printable(shorten(found.groups.texts[int(unit)], 40)))
        parts.append(f'<text x="{x:.1f}" y="{max(14.0, y - radius * scale - 5):.1f}">{name}</text>')
    height = float((high - low)[1]) * scale
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE:.0f} {height:.0f}" '
        f'width="{_WIDE:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="15" '
        f'font-weight="600" text-anchor="middle" fill="{_INK}">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )


FORMAT = 8  # of the data in the page and in a server's cache: raise it when either changes
SCRIPTS = (
    "data", "state", "rows", "colour", "map", "views", "timeline", "search", "runs", "tables",
    "facets", "origins", "similar", "choices", "beliefs", "details", "exports", "live", "app",
)  # fmt: skip
"""The page's own scripts, in order; they are joined into one."""


def write_explorer(
    runs: Sequence[StoredRun],
    path: Path,
    *,
    selection: Selection | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> None:
    """Write the explorer of some runs to `path`, whole or not at all.

    Args:
        runs: at least one, in the order in which the page names them.
        path: the file.
        selection: `arm`: only this arm of the runs. `min_acceptability` and `without_echoes` set
            the page's filters when it opens; the page holds all statements.
        seed: of the maps and communities.
        progress: where progress is reported.

    Raises DataError if the file cannot be written, UsageError if the runs hold nothing.
    """
    progress = progress or SilentProgress()
    page, _ = render(runs, selection=selection, seed=seed, progress=progress)
    write_text(path, page)


def render(
    runs: Sequence[StoredRun],
    *,
    selection: Selection | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, str]:
    """The page as HTML, and a picture of its map by group as SVG; arguments as of
    `write_explorer`."""
    progress = progress or SilentProgress()
    selection = selection or Selection()
    found = statements.read(runs, selection, progress)
    statements.find_echoes(found, progress)
    maps = meaning.maps(found, seed=seed, progress=progress)
    kept, answers = origins.block(found, progress)
    probed, models = origins.probes(found)
    core = statements.block(found)
    never = beliefs.add(found, core, progress)
    beliefs.add_told(found, core)
    beliefs.add_recorded(found, core)
    blocks = {
        "core": core,
        "maps": units.block(maps),
        "ids": statements.ids(found),
        "origins": kept,
        "probes": probed,
        "choices": choices.block(found),
        "similar": similar.block(found, progress),
        "beliefs": beliefs.block(found),
    }
    about = about_of(found, selection, maps, blocks) | {
        "answers": answers,
        "probed": models,
        "never": never,
        "among": similar.AMONG,
    }
    page, _ = page_of(about, {name: block.encoded() for name, block in blocks.items()})
    return page, drawn(found, maps[0])


def page_of(
    about: Mapping[str, Any], blocks: Mapping[str, str] | None, *, label: str = ""
) -> tuple[str, str]:
    """The page and its Content-Security-Policy; without `blocks` it fetches them. `label`: the
    address of the page to label on, if there is one."""
    vendor = Markup(pages.read_asset("kgbias.explore", "vendor", "libraries.min.js"))
    own = [_read(f"{name}.js") for name in SCRIPTS]
    app = pages.join_scripts(*pages.shared_scripts(*pages.STATEMENT_SCRIPTS), *own)
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        f"form-action 'none'; script-src {pages.script_policy(vendor, app)}"
    ) + ("; connect-src 'self'" if blocks is None else "")
    page = pages.fill_template(
        _read("page.html"),
        title=about["title"],
        total=about["rows"],
        warning=CONTENT_WARNING,
        statement=SAMPLE_STATEMENT,
        label=label,
        style=pages.page_style(_read("style.css")),
        about=Markup(json_in_html({**about, "served": blocks is None})),
        blocks={name: Markup(block) for name, block in (blocks or {}).items()},
        vendor=vendor,
        app=app,
        policy=Markup(policy),
    )
    return page, policy


def about_of(
    found: Statements, selection: Selection, maps: Sequence[units.Map], blocks: Mapping[str, Block]
) -> dict[str, Any]:
    """The data that the page needs before it reads its columns."""
    models = dict.fromkeys(shorten(run.model.title, 80) for run in found.runs)
    return {
        "format": FORMAT,
        "title": f"What {' and '.join(models)} {'says' if len(models) == 1 else 'say'}",
        "rows": found.rows,
        "sources": [statements.crawl_of(s, found.groups, selection) for s in found.sources],
        "categories": found.categories,
        "measures": [_measure(m, found.runs) for m in found.measures],
        "maps": [m.by for m in maps],
        "placing": next((m.how for m in maps if m.how), ""),
        "without_echoes": selection.without_echoes,
        "columns": {name: block.columns for name, block in blocks.items()},
        "associations": origins.associations(found),
        "choosers": choices.choosers(found),
        "believers": [
            {"run": r.name, "model": b.model.title} for r, b in beliefs.believings(found)
        ],
    }


def _measure(measure: Measure, runs: Sequence[StoredRun]) -> dict[str, Any]:
    """How the page reads and prints a measure, and how far its hurtful label can be trusted."""
    metrics = {run.metrics().get(measure.name) for run in runs}
    believed = read_precision(metrics.pop()) if len(metrics) == 1 else None
    digits = "".join(c for c in measure.form.partition(".")[2] if c.isdigit())
    return {
        "name": measure.name,
        "scale": statements.scale(measure),
        "signed": measure.form.startswith("+"),
        "digits": int(digits or 2),
        "range": measure.range,
        "direction": measure.direction,
        "believed": believed
        and [
            f'of {believed.labels_given} called "{measure.hurtful}" in other crawls, {believed.share} '
            f"deserved it (by {describe_shipped_annotator()})",
            str(believed),
        ],
    }


def _read(name: str) -> str:
    return pages.read_asset("kgbias.explore", "page", name)


_HEIGHT = 820  # pixels of the frame
_SHOW = """
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.title = "kgbias explorer";
    frame.style = `width: 100%; height: ${model.get("height")}px; border: 1px solid #8884`;
    frame.srcdoc = model.get("page");
    el.append(frame);
  },
};
"""


class Explorer:
    """The result of `Run.explore`: in a notebook, the explorer itself (an anywidget; the page runs
    in a frame of its own, which can reach neither the notebook nor a network), and a picture of its
    map where scripts do not run.

    Attributes:
        page: the page as HTML.
        picture: its map by group as SVG.
    """

    def __init__(self, page: str, picture: str) -> None:
        self.page, self.picture = page, picture
        self._widget: Any = None

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, whole or not at all; return its path."""
        write_text(Path(path), self.page)
        return Path(path)

    @property
    def widget(self) -> Any:
        """The anywidget. Raises MissingExtra if anywidget is not installed."""
        if self._widget is None:
            try:
                import anywidget
                import traitlets
            except ImportError as error:
                raise MissingExtra("anywidget", "notebook") from error

            class Page(anywidget.AnyWidget):
                _esm = _SHOW
                page = traitlets.Unicode().tag(sync=True)
                height = traitlets.Int(_HEIGHT).tag(sync=True)

            self._widget = Page(page=self.page)
        return self._widget

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.picture.encode("utf-8", "replace")).decode("ascii")
        return (
            f'<img alt="The map of the run, by group" style="max-width: 100%" '
            f'src="data:image/svg+xml;base64,{data}"><p><small>{html(CONTENT_WARNING)}</small></p>'
        )

    def _repr_mimebundle_(self, **_: Any) -> Any:
        still = {"text/plain": repr(self), "text/html": self._repr_html_()}
        try:
            shown = self.widget._repr_mimebundle_()
        except MissingExtra as error:
            return still | {"text/html": f"{still['text/html']}<p>{html(str(error))}</p>"}
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        return {**data, **still}, metadata

    def __repr__(self) -> str:
        return f"<Explorer, {len(self.page) / 1e6:.1f} MB>"
