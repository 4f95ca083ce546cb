"""`kgbias review` by keys, in a real terminal."""

import os
import pty
import select
import subprocess
import sys
import termios

import pytest

import kgbias
from tests.unit.test_review import run, said, study  # noqa: F401
from tests.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.integration


def test_keys_in_a_terminal(run: kgbias.Run) -> None:  # noqa: F811
    """A real terminal: restore, edit, back, reject, quit."""
    ours, theirs = pty.openpty()
    arguments = ["review", "mine", "--store", run.stored.store.url, "--by", "Ana"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kgbias", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb"},
    )
    os.close(theirs)
    shown = ""

    def read(text: str) -> str:
        nonlocal shown
        if text not in shown and select.select([ours], [], [], 0.1)[0]:
            shown += os.read(ours, 4096).decode()
        return text if text in shown else ""

    def see(text: str) -> None:
        nonlocal shown
        wait_until(lambda: read(text))
        shown = shown.partition(text)[2]

    def press(keys: str) -> None:
        """Type, once the program waits for a key: what was typed before is thrown away."""
        see("[q] quit")
        wait_until(lambda: not termios.tcgetattr(ours)[3] & termios.ICANON)
        os.write(ours, keys.encode())

    def enter(line: str) -> None:
        os.write(ours, f"{line}\n".encode())

    see("1 of 6")
    see("said   This weather.  (2 times)")
    see("read as  hate | This weather")
    press("?r")
    see("2 of 6")
    press("e")
    see("predicate [hate]")
    enter("fear")
    see("object [This weather]")
    enter("")
    see("3 of 6")
    press("b")
    see("2 of 6")
    press("x")
    press("s")
    see("4 of 6")
    see("no statement found")
    press("rq")  # there is nothing to restore as read
    see("run mine: 2 restored, 2 rejected; kgbias measure mine")
    assert process.wait(DEADLINE_SECONDS) == 0
    os.close(ours)
    assert said(run) == [("Men", "This weather", 2)] and said(run, "fear") == []
    verdicts = [d.verdict for d in run.review().history()]
    assert sorted(verdicts) == ["reject"] * 2 + ["restore"] * 4 + ["undo"] * 2
