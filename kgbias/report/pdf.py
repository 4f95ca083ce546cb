"""Markdown as PDF, with fpdf2 and the fonts that come with matplotlib."""

from datetime import UTC, datetime
from logging import ERROR, getLogger
from pathlib import Path

from kgbias.errors import MissingExtra
from kgbias.io.files import replace_file
from kgbias.io.progress import Progress
from kgbias.io.text import storable

_FACES = {"": "", "B": "-Bold", "I": "-Oblique", "BI": "-BoldOblique"}
_FONT_SIZES_PT = (9.0, 8.0, 7.0)  # points of plain text: the first that makes one page, if any does
_HEADING_SIZES = {"h1": 1.65, "h2": 1.3, "h3": 1.1}  # of the size of plain text
_MARGIN_MM = 12


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
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)

    def lay_out(size_pt: float) -> FPDF:
        pdf = FPDF()
        pdf.set_margin(_MARGIN_MM)
        pdf.set_auto_page_break(True, _MARGIN_MM)
        pdf.creation_date = _date(created)
        for style, face in _FACES.items():
            pdf.add_font(
                "DejaVu", style, Path(get_data_path(), "fonts", "ttf", f"DejaVuSans{face}.ttf")
            )
        pdf.set_font("DejaVu", size=size_pt)
        pdf.add_page()
        styles: dict[str, TextStyle | FontFace] = {
            tag: TextStyle(
                font_family="DejaVu",
                font_style="B",
                font_size_pt=size_pt * size,
                t_margin=size_pt / 3,
                b_margin=1,
            )
            for tag, size in _HEADING_SIZES.items()
        }
        styles["code"] = FontFace(family="DejaVu", color=(70, 70, 70))
        styles["li"] = TextStyle(l_margin=4, t_margin=size_pt / 18)
        pdf.write_html(html, font_family="DejaVu", tag_styles=styles)
        return pdf

    laid_out = [lay_out(_FONT_SIZES_PT[0])]
    for size_pt in _FONT_SIZES_PT[1:]:
        if laid_out[-1].page_no() > 1:
            laid_out.append(lay_out(size_pt))
    pdf = laid_out[-1] if laid_out[-1].page_no() == 1 else laid_out[0]
    glyphs = getattr(pdf.current_font, "cmap", {})
    if missing_glyphs := {c for c in text if not c.isspace() and ord(c) not in glyphs}:
        progress.note(
            f"the font of the PDF lacks {len(missing_glyphs)} of the characters; as Markdown "
            f"(.md) the text is whole"
        )
    with replace_file(path) as part:
        part.write_bytes(bytes(pdf.output()))


def _date(created: str) -> datetime:
    """When the run was made; the epoch if that is not known."""
    try:
        return datetime.fromisoformat(created).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
