"""The stages of `make demo`, with the processor time that all its processes took for each.

    nice python benchmarks/demo.py FOLDER

Runs the command of the Makefile with FOLDER, which must be new, for its store, pages and cache, so
that nothing is found in a cache. A stage ends where the command prints its last line, so what
happens between two stages counts to the second one. Other work on the machine changes the seconds
on the clock, and those of the processor by less.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parent.parent
STAGE_LINE = re.compile(r"(?P<name>[^:]+): (?P<done>\d+)/(?P<total>\d+)[ ,]")


class Clocks(NamedTuple):
    """Seconds on the clock, and of the processor."""

    wall: float
    processor: float


def read_command(folder: Path) -> list[str]:
    """The command of `make demo`, with this folder in the place of its own."""
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    line = next(line for line in makefile.splitlines() if "/kgbias map" in line)
    _, *arguments = shlex.split(line.replace("$(DEMO)", str(folder)))
    return [sys.executable, "-m", "kgbias", *arguments]


def read_clocks(process: psutil.Process, began: float) -> Clocks:
    """What a process and those it started have taken, also those that have ended."""
    processor = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            processor += sum(one.cpu_times()[:4])
        except psutil.NoSuchProcess:  # it ended just now, and counts with the next line
            continue
    return Clocks(time.monotonic() - began, processor)


def time_stages(command: list[str], folder: Path) -> list[tuple[str, Clocks]]:
    """The stages in their order, each with what it took; the last one is what follows them."""
    environment = {**os.environ, "KGBIAS_CACHE": str(folder / "cache")}
    began, last = time.monotonic(), Clocks(0.0, 0.0)
    stages: list[tuple[str, Clocks]] = []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    ) as running:
        process = psutil.Process(running.pid)
        for line in running.stderr or ():
            now = read_clocks(process, began)
            print(f"{now.wall:6.1f} {now.processor:6.1f}  {line}", end="", flush=True)
            found = STAGE_LINE.match(line)
            if not found:
                continue
            spent = Clocks(now.wall - last.wall, now.processor - last.processor)
            if stages and stages[-1][0] == found["name"]:  # a long stage prints several lines
                before = stages.pop()[1]
                spent = Clocks(before.wall + spent.wall, before.processor + spent.processor)
            stages.append((found["name"], spent))
            last = now
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    whole = Clocks(time.monotonic() - began, usage.ru_utime + usage.ru_stime)
    stages.append(("the end", Clocks(whole.wall - last.wall, whole.processor - last.processor)))
    stages.append(("all of it", whole))
    if running.returncode:
        sys.exit(f"exit code {running.returncode}")
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True)
    for name, spent in time_stages(read_command(folder), folder):
        print(f"{name:<60} {spent.wall:6.1f} s {spent.processor:6.1f} s of processor time")


if __name__ == "__main__":
    main()
