"""Pictures for papers (`kgbias.evidence.picture`): SVG, PDF and PNG by matplotlib, TikZ that
compiles as it is, and DOT for Graphviz to lay out."""

import warnings
from pathlib import Path
from typing import Any

from kgbias.errors import MissingExtra
from kgbias.evidence.evidence_table import read_beliefs
from kgbias.evidence.picture import BeliefLookup, Scene, SceneText, draw_figure, lay_out_fan, regard_colour, lay_out_pair
from kgbias.export.content import Content
from kgbias.graph.types import node_id
from kgbias.io.text import dot, latex

_DPI = 600


def scene(content: Content) -> Scene:
    """The picture of an export: of two groups side by side, of any other number in one fan."""
    note = content.counted.note
    foot = [
        "What a model says, not what is true.",
        f"{note[:1].upper()}{note[1:]}." if note else "",
    ]
    if content.pair is not None:
        foot += [content.pair.caption, content.pair.note]
        return lay_out_pair(content.pair, content.width, foot)
    beliefs = BeliefLookup.from_edges(content.run, read_beliefs(content.run))
    return lay_out_fan(content.triples, beliefs, content.width, [*foot, beliefs.note])


def write_figure(content: Content, path: Path) -> None:
    """SVG, PDF or PNG, by the file's suffix."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", extra="figures") from error
    # Text as outlines looks the same with any fonts. No date: the same bytes each time.
    options: Any = {"svg.fonttype": "path", "svg.hashsalt": "kgbias", "pdf.fonttype": 42}
    kind = path.suffix.removeprefix(".").lower()
    about: dict[str, Any] = {"Title": "kgbias"}
    about |= {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {"Software": None})
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # a matplotlibrc in the current folder could have LaTeX read texts
        matplotlib.rcParams.update(options)
        figure = draw_figure(scene(content))
        warnings.simplefilter("ignore")  # characters that the font lacks are drawn as boxes
        figure.savefig(path, format=kind, metadata=about, dpi=_DPI)


_TIKZ = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage{textcomp,tikz}
\usepackage[paperwidth=%spt,paperheight=%spt,margin=4pt]{geometry}
\pagestyle{empty}
\begin{document}
\noindent
"""
_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}
_FONTS = {"": "", "bold": r"\bfseries", "italic": r"\itshape"}
_DASHES = {"": "", "dashed": ",dash pattern=on 3pt off 1.4pt", "dotted": ",densely dotted"}


def write_tikz(content: Content, path: Path) -> None:
    """A LaTeX document that compiles as it is; its tikzpicture, colours included, can be copied
    into another."""
    found = scene(content)
    head = "".join(f"% {line}\n" for line in content.heading)
    paper = (f"{found.width + 12:.0f}", f"{found.height + 16:.0f}")
    path.write_text(
        head + _TIKZ % paper + _tikzpicture(found) + "\\end{document}\n", encoding="utf-8"
    )


def _tikzpicture(found: Scene) -> str:
    colours = dict.fromkeys(
        [part.colour for parts in (found.texts, found.strokes, found.dots) for part in parts]
    )
    names = {colour: f"kgbias{chr(97 + n)}" for n, colour in enumerate(colours)}
    out = [r"\begin{tikzpicture}[x=1bp,y=-1bp,inner sep=0pt,outer sep=0pt]"]
    out += [f"\\definecolor{{{name}}}{{HTML}}{{{c[1:].upper()}}}" for c, name in names.items()]
    out.append(f"\\useasboundingbox (0,0) rectangle ({found.width:.1f},{found.height:.1f});")
    for s in found.strokes:
        bend = (s.x2 - s.x1) / 2
        way = (
            f".. controls ({s.x1 + bend:.1f},{s.y1:.1f}) and ({s.x2 - bend:.1f},{s.y2:.1f}) .."
            if s.is_curved
            else "--"
        )
        out.append(
            f"\\draw[{names[s.colour]},line width={s.width:.2f}bp{_DASHES[s.dash]}] "
            f"({s.x1:.1f},{s.y1:.1f}) {way} ({s.x2:.1f},{s.y2:.1f});"
        )
    for d in found.dots:
        out.append(f"\\fill[{names[d.colour]}] ({d.x:.1f},{d.y:.1f}) circle ({d.radius:.1f}bp);")
    out += [_node(t, names[t.colour]) for t in found.texts]
    out.append("\\end{tikzpicture}\n")
    return "\n".join(out)


def _node(t: SceneText, colour: str) -> str:
    font = f"\\fontsize{{{t.size:.1f}}}{{{1.2 * t.size:.1f}}}\\selectfont\\sffamily"
    return (
        f"\\node[anchor={_ANCHORS[t.anchor]},text={colour},font={font}{_FONTS[t.style]}] "
        f"at ({t.x:.1f},{t.y:.1f}) {{{latex(t.text)}}};"
    )


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
        out.append(
            f"n{t.group_id} -> n{node_id('object', t.object)} [label={dot(t.predicate)}, "
            f'color="{regard_colour(t)}", penwidth={min(5, t.count)}];\n'
        )
    out.append("}\n")
    path.write_text("".join(out), encoding="utf-8")
