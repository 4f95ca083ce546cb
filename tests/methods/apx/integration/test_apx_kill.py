"""APX under SIGKILL: the real command on a real model, killed and run again."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from tests.conftest import require_modules
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
require_modules("torch")


@pytest.mark.slow
def test_killed_in_the_middle_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """A chunk of sentences for each template; the first process is killed when one is kept."""
    names, descriptors = tmp_path / "n.csv", tmp_path / "d.csv"
    names.write_text("name,group\n" + "".join(f"n{n},g{n // 2}\n" for n in range(20)))
    descriptors.write_text("descriptor\n" + "".join(f"kind of {n}\n" for n in range(100)))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir(), killed.mkdir()

    def asked(folder: Path) -> list[str]:
        files = ["--names", names, "--descriptors", descriptors, "-o", folder / "table.csv"]
        return ["probe", "apx", "--model", "reference", *map(str, files)]

    first = subprocess.Popen(
        [sys.executable, "-m", "kgbias", *asked(killed)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    index = killed / "table.perplexities.chunks"
    wait_until(lambda: index.exists() or first.poll() is not None)
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL, "it ended before it was killed"
    assert not (killed / "table.csv").exists()
    for folder in (killed, whole):
        done = CliRunner().invoke(cli, asked(folder), standalone_mode=False)
        assert done.exception is None, done.exception
    there = sorted(path.name for path in whole.iterdir())
    assert there == sorted(path.name for path in killed.iterdir()) and len(there) == 4
    for name in there:
        assert (whole / name).read_bytes() == (killed / name).read_bytes(), name
