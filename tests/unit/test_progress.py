"""How long work shows how far it is."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kgbias.errors import Interrupted
from kgbias.io.progress import (
    NotebookBars,
    ProgressBars,
    ProgressLines,
    SilentProgress,
    in_notebook,
    show_progress,
)
from tests.conftest import require_modules
from tests.texts import Texts


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(progress: Any) -> None:
    progress.stage("<crawling>", 3)
    progress.advance(cached=1)
    progress.note("the server asks to [wait]")
    progress.advance(2, refused=2)
    progress.grow(2)
    progress.advance(2)


def test_plain_lines(capsys: pytest.CaptureFixture[str], texts: Texts) -> None:
    with show_progress(True) as progress:
        assert isinstance(progress, ProgressLines)
        work(progress)
    out, err = capsys.readouterr()
    texts.check(err)
    assert out == ""


def test_nothing_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    for wanted in (None, False):
        with show_progress(wanted) as progress:
            assert isinstance(progress, SilentProgress)
            work(progress)
    assert capsys.readouterr() == ("", "")


def test_bars_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with show_progress() as progress:
        assert isinstance(progress, ProgressBars)
        work(progress)
    shown = terminal.getvalue()
    assert "<crawling>" in shown and "5/5" in shown and "asks to [wait]" in shown


def test_bars_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    require_modules("IPython")
    import IPython

    shown: list[Any] = []
    handle = SimpleNamespace(update=shown.append)
    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setattr(IPython, "get_ipython", lambda: kernel)
    monkeypatch.setattr(
        "IPython.display.display", lambda drawn, display_id: (shown.append(drawn), handle)[1]
    )
    assert in_notebook()
    with show_progress() as progress:
        assert isinstance(progress, NotebookBars)
        work(progress)
    page, text = shown[-1]._repr_html_(), repr(shown[-1])
    assert "&lt;crawling&gt;" in page and "5/5" in page and "<crawling>" not in page
    assert "5/5" in text and "2 refused" in text and "asks to [wait]" in text


@pytest.mark.parametrize(
    "whole, said", [(False, "continues from there"), (True, "nothing was written")]
)
def test_ctrl_c_is_one_kind_of_error(whole: bool, said: str) -> None:
    with pytest.raises(Interrupted, match=said), show_progress(False, all_or_nothing=whole):
        raise KeyboardInterrupt


def test_progress_of_your_own() -> None:
    mine = SilentProgress()
    with show_progress(mine) as progress:
        assert progress is mine
