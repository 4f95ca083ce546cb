"""Pictures for papers: groups on the left, what was said on the right, and an edge for each triple,
coloured by regard (orange negative, grey neutral, blue positive: safe for the colour-blind). SVG
and PDF by matplotlib, TikZ that compiles as it is, and DOT for Graphviz to lay out."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgbias.errors import MissingExtra, UsageError
from kgbias.export.content import Content
from kgbias.graph.types import TripleView, node_id
from kgbias.io.text import dot, latex, printable, shortened, xml_safe

MOST_EDGES = 60  # more are unreadable on a page
_OBJECT_LENGTH, _PREDICATE_LENGTH, _GROUP_LENGTH = 44, 28, 28
_NEGATIVE, _NEUTRAL, _POSITIVE = (0.80, 0.40, 0.00), (0.60, 0.60, 0.60), (0.00, 0.35, 0.70)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the picture: a triple, its place from the top, and the place of its object's label,
    if on this line (the label of an object with several triples is in the middle of them)."""

    triple: TripleView
    place: int
    height: float  # of its group
    label: float | None  # of its object, on the first of its lines
    last: int  # the last of its object's lines


def rows(triples: Iterable[TripleView]) -> list[Row]:
    """The lines of the picture from the top: objects are ordered by the mean place of their groups,
    so that few edges cross. Raises UsageError if there are too many to read, or none."""
    triples = list(triples)
    if not triples:
        raise UsageError("nothing to draw: no triple passes the filters")
    if len(triples) > MOST_EDGES:
        raise UsageError(
            f"{len(triples)} triples are too many to read in one picture: `limit` {MOST_EDGES} "
            "keeps the most frequent; `per_group`, `group` and `min_count` narrow it"
        )
    groups = list(dict.fromkeys(t.group_id for t in triples))
    by_object: dict[str, list[TripleView]] = {}
    for t in triples:
        by_object.setdefault(node_id("object", t.object), []).append(t)

    def mean_place(said: list[TripleView]) -> float:
        return sum(groups.index(t.group_id) for t in said) / len(said)

    ordered = sorted(by_object.values(), key=lambda said: (mean_place(said), said[0].object))
    step = len(triples) / len(groups)
    made: list[Row] = []
    for said in ordered:
        first = len(made)
        for n, t in enumerate(sorted(said, key=lambda t: groups.index(t.group_id))):
            height = (groups.index(t.group_id) + 0.5) * step - 0.5
            label = first + (len(said) - 1) / 2 if n == 0 else None
            made.append(Row(t, first + n, height, label, first + len(said) - 1))
    return made


def colour(triple: TripleView) -> tuple[float, float, float]:
    """Red, green and blue in [0, 1] for the label of the triple's regard."""
    score = triple.scores.get("regard")
    if score is None:
        return _NEUTRAL
    return {"positive": _POSITIVE, "negative": _NEGATIVE}.get(score.label, _NEUTRAL)


def write_figure(content: Content, path: Path) -> None:
    """SVG or PDF, by the file's suffix."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", extra="figures") from error
    # Text as outlines looks the same with any fonts. No date: the same bytes each time.
    options: Any = {"svg.fonttype": "path", "svg.hashsalt": "kgbias", "pdf.fonttype": 42}
    kind = path.suffix.removeprefix(".").lower()
    about = {"Title": "kgbias", "Date" if kind == "svg" else "CreationDate": None}
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # a matplotlibrc in the current folder could have LaTeX read texts
        matplotlib.rcParams.update(options)
        warnings.simplefilter("ignore")  # characters that the font lacks are drawn as boxes
        _drawn(content).savefig(path, format=kind, metadata=about)


def _drawn(content: Content) -> Any:
    """The figure, a matplotlib `Figure`."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    lines = rows(content.triples)
    last = len(lines) - 1
    figure = Figure(figsize=(7.0, 0.9 + 0.2 * len(lines)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 10)
    axes.set_ylim(last + 2.6, -0.9)
    axes.axis("off")

    def text(x: float, y: float, what: str, **style: Any) -> None:
        axes.text(x, y, xml_safe(printable(what)), va="center", parse_math=False, **style)

    for line in lines:
        t = line.triple
        curve = Curve(
            [(2.6, line.height), (3.4, line.height), (3.4, line.place), (4.2, line.place)],
            [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4],
        )
        width = min(3.0, 0.6 + 0.4 * t.count)
        axes.add_patch(PathPatch(curve, fill=False, edgecolor=colour(t), linewidth=width))
        text(4.25, line.place, shortened(t.predicate, _PREDICATE_LENGTH), size=6.5, style="italic",
             color="0.35")  # fmt: skip
        if line.label is not None:
            ends = [line.place - 0.3, line.last + 0.3]
            axes.plot([6.28, 6.28], ends, color="0.75", linewidth=0.8)
            text(6.35, line.label, shortened(t.object, _OBJECT_LENGTH), size=7.5)
    for height, name in {line.height: line.triple.group for line in lines}.items():
        text(2.5, height, shortened(name, _GROUP_LENGTH), size=8.5, weight="bold", ha="right")
    colours = {"negative": _NEGATIVE, "neutral": _NEUTRAL, "positive regard": _POSITIVE}
    legend = [Line2D([], [], color=shade, label=name) for name, shade in colours.items()]
    axes.legend(
        handles=legend, loc="lower center", ncols=3, frameon=False, fontsize=7, handlelength=1.2
    )
    foot = ["What a model says, not what is true.", content.counted.note]
    text(0.1, last + 2.3, " ".join(filter(None, foot)), size=5.5, color="0.45")
    return figure


_TIKZ = r"""
\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{textcomp,tikz}
\usepackage[paperwidth=19cm,paperheight=%scm,margin=5mm]{geometry}
\pagestyle{empty}
\begin{document}
\noindent
\begin{tikzpicture}[x=1cm,y=-0.45cm,font=\sffamily\small]
"""


def write_tikz(content: Content, path: Path) -> None:
    """A LaTeX document that compiles as it is; its tikzpicture can be copied into another."""
    lines = rows(content.triples)
    paper = f"{0.45 * len(lines) + 2:.2f}"
    out = ["\n".join(f"% {line}" for line in content.heading), _TIKZ.replace("%s", paper)]
    for n, line in enumerate(lines):
        t = line.triple
        r, g, b = colour(t)
        width = min(2.4, 0.4 + 0.4 * t.count)
        out.append(
            f"\\definecolor{{c{n}}}{{rgb}}{{{r:.3f},{g:.3f},{b:.3f}}}\n"
            f"\\draw[c{n},line width={width:.1f}pt] (0,{line.height:.3f}) .. controls "
            f"(1,{line.height:.3f}) and (1,{line.place}) .. (2,{line.place});\n"
            f"\\node[anchor=west,font=\\sffamily\\scriptsize\\itshape,text=black!65] at "
            f"(2,{line.place}) {{{latex(shortened(t.predicate, _PREDICATE_LENGTH))}}};\n"
        )
        if line.label is not None:
            out.append(
                f"\\draw[black!30] (5.6,{line.place - 0.3:.1f}) -- (5.6,{line.last + 0.3:.1f});\n"
                f"\\node[anchor=west] at (5.6,{line.label:.3f}) "
                f"{{{latex(shortened(t.object, _OBJECT_LENGTH))}}};\n"
            )
    for place, name in {line.height: line.triple.group for line in lines}.items():
        out.append(
            f"\\node[anchor=east,font=\\sffamily\\bfseries] at (-0.1,{place:.3f}) "
            f"{{{latex(shortened(name, _GROUP_LENGTH))}}};\n"
        )
    out.append("\\end{tikzpicture}\n\\end{document}\n")
    path.write_text("".join(out), encoding="utf-8")


def write_dot(content: Content, path: Path) -> None:
    """A digraph for Graphviz, for example `dot -Tpdf` or `sfdp -Goverlap=prism -Tsvg`."""
    out = [*(f"// {line}\n" for line in content.heading), "digraph kgbias {\n", "rankdir=LR;\n"]
    out.append(
        'node [shape=plain, fontname="Helvetica"];\nedge [fontname="Helvetica", fontsize=10];\n'
    )
    for id, data in content.graph.nodes(data=True):
        style = ' fontname="Helvetica-Bold"' if data["kind"] == "group" else ""
        out.append(f"n{id} [label={dot(data['label'])}{style}];\n")
    for t in content.triples:
        red, green, blue = (round(255 * part) for part in colour(t))
        out.append(
            f"n{t.group_id} -> n{node_id('object', t.object)} [label={dot(t.predicate)}, "
            f'color="#{red:02x}{green:02x}{blue:02x}", penwidth={min(5, t.count)}];\n'
        )
    out.append("}\n")
    path.write_text("".join(out), encoding="utf-8")
