"""The explorer's page: one self-contained HTML file that works offline and fetches nothing; or the
same page from a server, from which it fetches its columns.

`core` and `maps` stand before the script. The other blocks stand after it and are unpacked when
somebody asks. `page/data.js` gets a block from the page or the server, and `page/origins.js` the
origin of a statement; nothing else knows which of the two it is.

One state (`page/state.js`) moves everything: a change selects the rows that pass once, and every
picture and table is drawn from them. sigma draws the discs and at most 1,500 dots: the most said of
those in sight, others with the zoom. The page opens with the run's threshold of acceptability; its
filter of echoes is the rule of `kgbias.graph.selection`.

To add a view, write a function in `page/views.js`, name it there in `PICTURES` and in `VIEWS`
(`page/state.js`), and give it a tab and controls in `page/page.html`.
"""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from kgbias.errors import MissingExtra
from kgbias.explore import beliefs, choices, meaning_map, origins, similar, statements, unit_maps
from kgbias.explore.columns import ColumnBlock
from kgbias.explore.statements import StatementTable
from kgbias.explore.unit_maps import UnitMap
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_CAVEAT
from kgbias.io import pages
from kgbias.io.files import write_text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.text import html, json_in_html, printable, shorten
from kgbias.measure.labelled_sets import describe_shipped_annotator
from kgbias.measure.precision import read_precision
from kgbias.measures import Measure

MAX_DOTS = 600  # dots of the picture, which stands where no script runs
_WIDTH = 900.0  # of the picture, in its own units
_INK_COLOUR = "#1c2530"
_DISC_COLOUR = "#eceff2"
_LINE_COLOUR = "#c4ccd5"
_REGARD_COLOURS = {"positive": "#2f6fb3", "negative": "#cf6a1f"}  # as in io/page/style.css
_NEUTRAL_COLOUR = "#98a3af"


def draw_map_svg(table: StatementTable, by_group: UnitMap) -> str:
    """The map by group as SVG: a disc for each group, with dots for the objects said most often,
    each coloured by the regard of what is most often said with it."""
    layout = by_group.layout
    if not len(layout.units):
        return ""
    lowest = (layout.units - layout.radii[:, None]).min(axis=0) - 4.0
    highest = (layout.units + layout.radii[:, None]).max(axis=0) + 1.0
    scale = _WIDTH / float((highest - lowest)[0])
    counts: dict[int, int] = {}
    top_labels: dict[int, tuple[int, str]] = {}
    for object_index, count, number in zip(
        table.object.tolist(), table.count.tolist(), table.label.tolist(), strict=True
    ):
        counts[object_index] = counts.get(object_index, 0) + count
        top_labels[object_index] = max(
            top_labels.get(object_index, (0, "")), (count, table.labels.texts[number])
        )
    svg_parts = [
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
        f'stroke="{_LINE_COLOUR}"/>'
        for a, b, _ in layout.ties.tolist()
        for start, end in [[(layout.units[int(n)] - lowest) * scale for n in (a, b)]]
    ]
    for (x, y), radius in zip((layout.units - lowest) * scale, layout.radii * scale, strict=True):
        svg_parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{_DISC_COLOUR}"/>'
        )
    for object_index in sorted(counts, key=lambda n: (-counts[n], n))[:MAX_DOTS]:
        x, y = (layout.objects[object_index] - lowest) * scale
        colour = _REGARD_COLOURS.get(top_labels[object_index][1], _NEUTRAL_COLOUR)
        svg_parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.5 * scale:.1f}" fill="{colour}"/>'
        )
    for unit, centre, radius in zip(by_group.units, layout.units, layout.radii, strict=True):
        x, y = (centre - lowest) * scale
        name = html(printable(shorten(table.groups.texts[int(unit)], 40)))
        svg_parts.append(
            f'<text x="{x:.1f}" y="{max(14.0, y - radius * scale - 5):.1f}">{name}</text>'
        )
    height = float((highest - lowest)[1]) * scale
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'width="{_WIDTH:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="15" '
        f'font-weight="600" text-anchor="middle" fill="{_INK_COLOUR}">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(svg_parts)}</svg>'
    )


PAGE_FORMAT = 8  # of the data in the page and in a server's cache: raise it when either changes
PAGE_SCRIPTS = (
    "data",
    "state",
    "rows",
    "colour",
    "map",
    "views",
    "timeline",
    "search",
    "runs",
    "tables",
    "facets",
    "origins",
    "similar",
    "choices",
    "beliefs",
    "details",
    "exports",
    "live",
    "app",
)
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
        selection: `arm`: only this arm of the runs. `min_acceptability` and `exclude_echoes` set
            the page's filters when it opens; the page holds all statements.
        seed: of the maps and communities.
        progress: where progress is reported.

    Raises DataError if the file cannot be written, UsageError if the runs hold nothing.
    """
    progress = progress or SilentProgress()
    page, _ = render_page(runs, selection=selection, seed=seed, progress=progress)
    write_text(path, page)


class RenderedPage(NamedTuple):
    """The page as HTML, and a picture of its map as SVG."""

    page: str
    picture: str


def render_page(
    runs: Sequence[StoredRun],
    *,
    selection: Selection | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> RenderedPage:
    """The page as HTML, and a picture of its map by group as SVG; arguments as of
    `write_explorer`."""
    progress = progress or SilentProgress()
    selection = selection or Selection()
    table = statements.read_statement_table(runs, selection, progress)
    statements.find_echoes(table, progress)
    maps = meaning_map.build_all_maps(table, seed=seed, progress=progress)
    origin_block, answers = origins.build_block(table, progress)
    probe_block, models = origins.build_probe_block(table)
    core_block = statements.build_block(table)
    never_said = beliefs.add_verdicts(table, core_block, progress)
    beliefs.add_story_shares(table, core_block)
    beliefs.add_recorded_marks(table, core_block)
    blocks = {
        "core": core_block,
        "maps": unit_maps.build_block(maps),
        "ids": statements.build_id_block(table),
        "origins": origin_block,
        "probes": probe_block,
        "choices": choices.build_block(table),
        "similar": similar.build_block(table, progress),
        "beliefs": beliefs.build_block(table),
    }
    page_info = describe_page(table, selection, maps, blocks) | {
        "answers": answers,
        "probed": models,
        "never": never_said,
        "among": similar.MAX_COMPARED_STATEMENTS,
    }
    page, _ = fill_page(page_info, {name: block.encode() for name, block in blocks.items()})
    return RenderedPage(page, draw_map_svg(table, maps[0]))


class FilledPage(NamedTuple):
    """The page and its Content-Security-Policy."""

    page: str
    policy: str


def fill_page(
    page_info: Mapping[str, Any], blocks: Mapping[str, str] | None, *, label: str = ""
) -> FilledPage:
    """The page and its Content-Security-Policy; without `blocks` it fetches them. `label`: the
    address of the page to label on, if there is one."""
    vendor = Markup(pages.read_asset("kgbias.explore", "vendor", "libraries.min.js"))
    scripts = [_read_asset(f"{name}.js") for name in PAGE_SCRIPTS]
    app = pages.bundle_scripts(*pages.read_shared_scripts(*pages.STATEMENT_SCRIPTS), *scripts)
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        f"form-action 'none'; script-src {pages.script_policy(vendor, app)}"
    ) + ("; connect-src 'self'" if blocks is None else "")
    page = pages.fill_template(
        _read_asset("page.html"),
        title=page_info["title"],
        total=page_info["rows"],
        warning=CONTENT_WARNING,
        statement=SAMPLE_CAVEAT,
        label=label,
        style=pages.page_style(_read_asset("style.css")),
        about=Markup(json_in_html({**page_info, "served": blocks is None})),
        blocks={name: Markup(block) for name, block in (blocks or {}).items()},
        vendor=vendor,
        app=app,
        policy=Markup(policy),
    )
    return FilledPage(page, policy)


def describe_page(
    table: StatementTable,
    selection: Selection,
    maps: Sequence[unit_maps.UnitMap],
    blocks: Mapping[str, ColumnBlock],
) -> dict[str, Any]:
    """The data that the page needs before it reads its columns."""
    models = dict.fromkeys(
        "an unknown model" if run.model.title == "unknown" else shorten(run.model.title, 80)
        for run in table.runs
    )
    return {
        "format": PAGE_FORMAT,
        "title": f"What {' and '.join(models)} {'says' if len(models) == 1 else 'say'}",
        "rows": table.rows,
        "sources": [statements.describe_source(s, table.groups, selection) for s in table.sources],
        "categories": table.categories,
        "measures": [_describe_measure(m, table.runs) for m in table.measures],
        "maps": [m.unit_kind for m in maps],
        "placing": next((m.placing for m in maps if m.placing), ""),
        "exclude_echoes": selection.exclude_echoes,
        "columns": {name: block.columns for name, block in blocks.items()},
        "associations": origins.build_association_records(table),
        "choosers": choices.describe_choice_models(table),
        "believers": [
            {"run": r.name, "model": b.model.title} for r, b in beliefs.iter_belief_runs(table)
        ],
    }


def _describe_measure(measure: Measure, runs: Sequence[StoredRun]) -> dict[str, Any]:
    """How the page reads and prints a measure, and how far its hurtful label can be trusted."""
    metrics = {run.metrics().get(measure.name) for run in runs}
    precision = read_precision(metrics.pop()) if len(metrics) == 1 else None
    digits = "".join(c for c in measure.form.partition(".")[2] if c.isdigit())
    return {
        "name": measure.name,
        "scale": statements.find_measure_scale(measure),
        "signed": measure.form.startswith("+"),
        "digits": int(digits or 2),
        "range": measure.range,
        "direction": measure.direction,
        "believed": precision
        and [
            f'of {precision.labels_given} called "{measure.hurtful}" in other crawls, '
            f"{precision.share} "
            f"deserved it (by {describe_shipped_annotator()})",
            str(precision),
        ],
    }


def _read_asset(name: str) -> str:
    return pages.read_asset("kgbias.explore", "page", name)


_FRAME_HEIGHT = 820  # pixels of the frame
_WIDGET_SCRIPT = """
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
                _esm = _WIDGET_SCRIPT
                page = traitlets.Unicode().tag(sync=True)
                height = traitlets.Int(_FRAME_HEIGHT).tag(sync=True)

            self._widget = Page(page=self.page)
        return self._widget

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.picture.encode("utf-8", "replace")).decode("ascii")
        return (
            f'<img alt="The map of the run, by group" style="max-width: 100%" '
            f'src="data:image/svg+xml;base64,{data}"><p><small>{html(CONTENT_WARNING)}</small></p>'
        )

    def _repr_mimebundle_(self, **_: Any) -> Any:
        static = {"text/plain": repr(self), "text/html": self._repr_html_()}
        try:
            bundle = self.widget._repr_mimebundle_()
        except MissingExtra as error:
            return static | {"text/html": f"{static['text/html']}<p>{html(str(error))}</p>"}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, **static}, metadata

    def __repr__(self) -> str:
        return f"<Explorer, {len(self.page) / 1e6:.1f} MB>"
