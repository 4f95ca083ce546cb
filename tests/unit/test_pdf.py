"""Markdown as PDF: on one page where it fits."""

import re
from pathlib import Path

import pytest

from kgbias.io.progress import SilentProgress
from kgbias.report.pdf import write_markdown_pdf
from tests.conftest import require_modules
from tests.texts import Texts

require_modules("fpdf", "matplotlib")


def pages_of(pdf: Path) -> int:
    return len(re.findall(rb"/Type /Page\b", pdf.read_bytes()))


@pytest.mark.parametrize(("lines", "pages"), [(10, 1), (70, 1), (90, 1), (140, 2)])
def test_what_fits_on_one_page_in_readable_type_is_on_one(
    lines: int, pages: int, tmp_path: Path
) -> None:
    text = "# Summary\n\n" + "".join(f"- statement {n}\n" for n in range(lines))
    write_markdown_pdf(text, tmp_path / "s.pdf", "2026-11-27", SilentProgress())
    assert pages_of(tmp_path / "s.pdf") == pages


def test_characters_that_the_font_lacks_are_said(tmp_path: Path, texts: Texts) -> None:
    notes: list[str] = []

    class Notes(SilentProgress):
        def note(self, text: str) -> None:
            notes.append(text)

    write_markdown_pdf("Women and \u4f60", tmp_path / "s.pdf", "2026-11-27", Notes())
    assert notes
    texts.check_lines(notes[0], "the characters")
