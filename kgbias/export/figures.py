"""Pictures for papers (`kgbias.evidence.picture`): SVG, PDF and PNG by matplotlib, TikZ that
compiles as it is, and DOT for Graphviz to lay out."""

import warnings
from pathlib import Path
from typing import Any

from kgbias.errors import MissingExtra
from kgbias.evidence.evidence_table import read_beliefs
from kgbias.evidence.picture import (
    BeliefLookup,
    Scene,
    SceneText,
    draw_figure,
    lay_out_fan,
    lay_out_pair,
    regard_colour,
)
from kgbias.export.content import ExportContent
from kgbias.graph.types import node_id
from kgbias.io.text import LATEX_SCRIPT, dot_label, latex

_DOTS_PER_INCH = 600


def build_scene(content: ExportContent) -> Scene:
    """The picture of an export: of two groups side by side, of any other number in one fan."""
    note = content.statements.note
    foot = [
        "What a model says, not what is true.",
        f"{note[:1].upper()}{note[1:]}." if note else "",
    ]
    if content.picture_pair is not None:
        foot += [content.picture_pair.caption, content.picture_pair.note]
        return lay_out_pair(content.picture_pair, content.width, foot)
    beliefs = BeliefLookup.from_edges(content.run, read_beliefs(content.run))
    return lay_out_fan(content.triples, beliefs, content.width, [*foot, beliefs.note])


def write_figure(content: ExportContent, path: Path) -> None:
    """SVG, PDF or PNG, by the file's suffix."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", extra="figures") from error
    # Text as outlines looks the same with any fonts. No date: the same bytes each time.
    options: Any = {"svg.fonttype": "path", "svg.hashsalt": "kgbias", "pdf.fonttype": 42}
    kind = path.suffix.removeprefix(".").lower()
    metadata: dict[str, Any] = {"Title": "kgbias"}
    metadata |= {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {"Software": None})
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # a matplotlibrc in the current folder could have LaTeX read texts
        matplotlib.rcParams.update(options)
        figure = draw_figure(build_scene(content))
        warnings.simplefilter("ignore")  # characters that the font lacks are drawn as boxes
        figure.savefig(path, format=kind, metadata=metadata, dpi=_DOTS_PER_INCH)


_TIKZ_PREAMBLE = r"""\documentclass{article}
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
_STYLE_COMMANDS = {"": "", "bold": r"\bfseries", "italic": r"\itshape"}
_DASHES = {"": "", "dashed": ",dash pattern=on 3pt off 1.4pt", "dotted": ",densely dotted"}


def write_tikz(content: ExportContent, path: Path) -> None:
    """A LaTeX document that compiles as it is; its tikzpicture, colours included, can be copied
    into another."""
    scene_found = build_scene(content)
    head = "".join(f"% {line}\n" for line in content.heading)
    picture = _tikzpicture(scene_found)
    macro = f"{LATEX_SCRIPT}\n" if "\\kgbiasscript" in picture else ""
    paper = (f"{scene_found.width + 12:.0f}", f"{scene_found.height + 16:.0f}")
    path.write_text(
        head + _TIKZ_PREAMBLE % paper + macro + picture + "\\end{document}\n",
        encoding="utf-8",
    )


def _tikzpicture(scene_drawn: Scene) -> str:
    colours = dict.fromkeys(
        [
            item.colour
            for items in (scene_drawn.texts, scene_drawn.strokes, scene_drawn.dots)
            for item in items
        ]
    )
    names = {colour: f"kgbias{chr(97 + n)}" for n, colour in enumerate(colours)}
    out = [r"\begin{tikzpicture}[x=1bp,y=-1bp,inner sep=0pt,outer sep=0pt]"]
    out += [f"\\definecolor{{{name}}}{{HTML}}{{{c[1:].upper()}}}" for c, name in names.items()]
    out.append(
        f"\\useasboundingbox (0,0) rectangle ({scene_drawn.width:.1f},{scene_drawn.height:.1f});"
    )
    for stroke in scene_drawn.strokes:
        bend = (stroke.x2 - stroke.x1) / 2
        path = (
            f".. controls ({stroke.x1 + bend:.1f},{stroke.y1:.1f}) and "
            f"({stroke.x2 - bend:.1f},{stroke.y2:.1f}) .."
            if stroke.is_curved
            else "--"
        )
        out.append(
            f"\\draw[{names[stroke.colour]},line width={stroke.width:.2f}bp{_DASHES[stroke.dash]}] "
            f"({stroke.x1:.1f},{stroke.y1:.1f}) {path} ({stroke.x2:.1f},{stroke.y2:.1f});"
        )
    for d in scene_drawn.dots:
        out.append(f"\\fill[{names[d.colour]}] ({d.x:.1f},{d.y:.1f}) circle ({d.radius:.1f}bp);")
    out += [_tikz_node(t, names[t.colour]) for t in scene_drawn.texts]
    out.append("\\end{tikzpicture}\n")
    return "\n".join(out)


def _tikz_node(text: SceneText, colour: str) -> str:
    font = f"\\fontsize{{{text.size:.1f}}}{{{1.2 * text.size:.1f}}}\\selectfont\\sffamily"
    return (
        f"\\node[anchor={_ANCHORS[text.anchor]},text={colour},"
        f"font={font}{_STYLE_COMMANDS[text.style]}] "
        f"at ({text.x:.1f},{text.y:.1f}) {{{latex(text.text)}}};"
    )


def write_dot(content: ExportContent, path: Path) -> None:
    """A digraph for Graphviz, for example `dot -Tpdf` or `sfdp -Goverlap=prism -Tsvg`."""
    out = [*(f"// {line}\n" for line in content.heading), "digraph kgbias {\n", "rankdir=LR;\n"]
    out.append(
        'node [shape=plain, fontname="Helvetica"];\nedge [fontname="Helvetica", fontsize=10];\n'
    )
    for id, data in content.graph.nodes(data=True):
        style = ' fontname="Helvetica-Bold"' if data["kind"] == "group" else ""
        out.append(f"n{id} [label={dot_label(data['label'])}{style}];\n")
    for triple in content.triples:
        out.append(
            f"n{triple.group_id} -> n{node_id('object', triple.object)} "
            f"[label={dot_label(triple.predicate)}, "
            f'color="{regard_colour(triple)}", penwidth={min(5, triple.count)}];\n'
        )
    out.append("}\n")
    path.write_text("".join(out), encoding="utf-8")
