"""Markdown as PDF, with fpdf2 and the fonts that come with matplotlib."""

from datetime import UTC, datetime
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

from kgbias.errors import MissingExtra
from kgbias.io.files import replace_file
from kgbias.io.progress import Progress
from kgbias.io.text import storable

_FACES = {"": "", "B": "-Bold", "I": "-Oblique", "BI": "-BoldOblique"}
# Points of plain text: the largest with which all fits on one page; the first if none does.
_FONT_SIZES_PT = (9.0, 8.0, 7.5, 7.0)
_HEADING_SIZES = {"h1": 1.5, "h2": 1.2, "h3": 1.1}  # times the size of plain text
_MARGIN_MM = 12.0
_CELL_PADDING_MM = 0.3  # without it, the line under a table's heads runs through the first row
_GAP_MM = 0.4  # around paragraphs and lists


def write_markdown_pdf(text: str, path: Path, created: str, progress: Progress) -> None:
    """Write Markdown to `path`, whole or not at all, on one page if it fits in type that can be
    read. The file's date is `created`, an ISO date, so the same text gives the same file. A line
    says if the font lacks some of its characters.

    Raises MissingExtra without fpdf2 or matplotlib.
    """
    try:
        import fpdf  # noqa: F401
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra("fpdf2", extra="pdf") from error
    from markdown_it import MarkdownIt  # comes with rich

    text = storable(text)
    getLogger("fpdf").setLevel(ERROR)  # it warns of each missing character: one line below does
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    pdf = _set_type(html, created, _FONT_SIZES_PT[0])
    if pdf.pages_count > 1:
        smaller = (_set_type(html, created, size) for size in _FONT_SIZES_PT[1:])
        pdf = next((one for one in smaller if one.pages_count == 1), pdf)
    glyphs = getattr(pdf.fonts["dejavu"], "cmap", {})
    if missing_glyphs := {c for c in text if not c.isspace() and ord(c) not in glyphs}:
        progress.note(
            f"the font of the PDF lacks {len(missing_glyphs)} of the characters; as Markdown "
            f"(.md) the "
            "text is whole"
        )
    with replace_file(path) as part:
        part.write_bytes(bytes(pdf.output()))


def _set_type(html: str, created: str, size: float) -> Any:
    """The pages of a text whose plain parts are set in this size, in points."""
    from fpdf import FPDF, FontFace, TextStyle
    from matplotlib import get_data_path

    pdf = FPDF()
    pdf.creation_date = _date(created)
    pdf.set_margins(_MARGIN_MM, _MARGIN_MM)
    pdf.set_auto_page_break(True, _MARGIN_MM)
    for style, face in _FACES.items():
        font_file = Path(get_data_path(), "fonts", "ttf", f"DejaVuSans{face}.ttf")
        pdf.add_font("DejaVu", style, font_file)
    pdf.set_font("DejaVu", size=size)
    pdf.add_page()
    gaps = TextStyle(t_margin=_GAP_MM, b_margin=_GAP_MM)
    styles: dict[str, TextStyle | FontFace] = {
        tag: TextStyle(
            font_family="DejaVu",
            font_style="B",
            font_size_pt=times * size,
            t_margin=3 * _GAP_MM,
            b_margin=_GAP_MM,
        )
        for tag, times in _HEADING_SIZES.items()
    }
    styles |= dict.fromkeys(("p", "ul", "blockquote"), gaps)
    styles["code"] = FontFace(family="DejaVu", color=(70, 70, 70))
    styles["li"] = TextStyle(l_margin=4)
    html = html.replace("<table>", f'<table cellpadding="{_CELL_PADDING_MM}">')
    html = html.replace("<p>", '<p line-height="1.0">').replace("<ul>", '<ul line-height="1.0">')
    pdf.write_html(html, font_family="DejaVu", tag_styles=styles)
    return pdf


def _date(created: str) -> datetime:
    """When the run was made; the epoch if that is not known."""
    try:
        return datetime.fromisoformat(created).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
