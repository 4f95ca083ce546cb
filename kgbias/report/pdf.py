"""Markdown as PDF, with fpdf2 and the fonts that come with matplotlib."""

from datetime import UTC, datetime
from logging import ERROR, getLogger
from pathlib import Path

from kgbias.errors import MissingExtra
from kgbias.io.files import replace_file
from kgbias.io.progress import Progress
from kgbias.io.text import storable

_FACES = {"": "", "B": "-Bold", "I": "-Oblique", "BI": "-BoldOblique"}
_FONT_SIZE_PT = 9.0  # points of plain text
_CELL_PADDING_MM = 0.7  # without it, the line under a table's heads runs through the first row
_HEADING_SIZES_PT = {"h1": 15.0, "h2": 11.5, "h3": 10.0}


def write_pdf(text: str, path: Path, created: str, progress: Progress) -> None:
    """Write Markdown to `path`, whole or not at all. The file's date is `created`, an ISO date, so
    the same text gives the same file. A line says if the font lacks some of its characters.

    Raises MissingExtra without fpdf2 or matplotlib.
    """
    try:
        from fpdf import FPDF, FontFace, TextStyle
        from matplotlib import get_data_path
    except ModuleNotFoundError as error:
        raise MissingExtra("fpdf2", extra="pdf") from error
    from markdown_it import MarkdownIt  # comes with rich

    text = storable(text)
    getLogger("fpdf").setLevel(ERROR)  # it warns of each missing character: one line below does
    pdf = FPDF()
    pdf.creation_date = _date(created)
    for style, face in _FACES.items():
        pdf.add_font(
            "DejaVu", style, Path(get_data_path(), "fonts", "ttf", f"DejaVuSans{face}.ttf")
        )
    pdf.set_font("DejaVu", size=_FONT_SIZE_PT)
    glyphs = getattr(pdf.current_font, "cmap", {})
    if missing_glyphs := {c for c in text if not c.isspace() and ord(c) not in glyphs}:
        progress.note(
            f"the font of the PDF lacks {len(missing_glyphs)} of the characters; as Markdown "
            f"(.md) the "
            "text is whole"
        )
    pdf.add_page()
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    html = html.replace("<table>", f'<table cellpadding="{_CELL_PADDING_MM}">')
    styles: dict[str, TextStyle | FontFace] = {
        tag: TextStyle(
            font_family="DejaVu", font_style="B", font_size_pt=size, t_margin=3, b_margin=1
        )
        for tag, size in _HEADING_SIZES_PT.items()
    }
    styles["code"] = FontFace(family="DejaVu", color=(70, 70, 70))
    styles["li"] = TextStyle(l_margin=4, t_margin=0.5)
    pdf.write_html(html, font_family="DejaVu", tag_styles=styles)
    with replace_file(path) as part:
        part.write_bytes(bytes(pdf.output()))


def _date(created: str) -> datetime:
    """When the run was made; the epoch if that is not known."""
    try:
        return datetime.fromisoformat(created).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
