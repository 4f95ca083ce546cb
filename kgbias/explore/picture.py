"""The map by group as a picture that stands still, for where no script runs."""

from kgbias.explore.statements import Statements
from kgbias.explore.units import Map
from kgbias.text import html, printable, shortened

MOST = 600  # dots
_WIDE, _INK, _DISC, _LINE = 900.0, "#1c2530", "#eceff2", "#c4ccd5"
_COLOURS = {"positive": "#2f6fb3", "negative": "#cf6a1f"}  # as in page/style.css
_NEITHER = "#98a3af"


def drawn(found: Statements, by_group: Map) -> str:
    """The map by group as SVG: a disc for each group, and in it dots for the objects said most,
    each coloured by the regard of what is said with it most often."""
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
        name = html(printable(shortened(found.groups.texts[int(unit)], 40)))
        parts.append(f'<text x="{x:.1f}" y="{max(14.0, y - radius * scale - 5):.1f}">{name}</text>')
    height = float((high - low)[1]) * scale
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE:.0f} {height:.0f}" '
        f'width="{_WIDE:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="15" '
        f'font-weight="600" text-anchor="middle" fill="{_INK}">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )
