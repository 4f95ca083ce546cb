"""Calls of the command line, and what is expected of every one of them: it ends in time, and an
error is one of kgbias's own, in a line or two, without a traceback."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.waiting import DEADLINE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
MAX_ERROR_CHARS = 2_500  # characters: a message fits a screen, whatever the input was
# Resident memory that a command may take in these attacks, in MB: twice what it takes undisturbed,
# of which 170 are all modules at once. A query that runs until its time is up builds rows until
# then, up to the bound of its own engine (three quarters of the machine's memory).
COMMAND_MEMORY_MB = {
    "import": 330,
    "measure": 330,
    "structure": 330,
    "compare": 330,
    "associate": 330,
    "report": 400,
    "figures": 400,
    "export": 330,
    "push": 330,
    "runs": 330,
    "query": 4_000,
    "explore": 330,
    "publish": 330,
    "ask": 330,
    "review": 330,
}
MODEL_COMMANDS = (
    "crawl",
    "probe",
    "measure",
    "attribute",
    "merge",
    "calibrate",
    "evidence",
    "profiles",
    "stories",
    "pairs",
    "sofa",
    "run",
)
MODEL_MEMORY_MB = 1_800
LIBRARY_MEMORY_MB = 400  # what the libraries of models take, where they are loaded before
SERVER_MEMORY_MB = 700  # whose answers may be of 8 MB, sixteen at once


def memory_limit_mb(argv: Sequence[str]) -> int:
    """How much memory a command may take, in MB: a model or a server has its own bound."""
    name = argv[0] if argv else ""
    if name not in MODEL_COMMANDS and "reference" not in argv:
        return COMMAND_MEMORY_MB.get(name, 330)
    if any("openai" in word for word in argv):
        return SERVER_MEMORY_MB
    files = any(word.startswith("scores:") for word in argv) and "--axes" not in argv
    return COMMAND_MEMORY_MB["measure"] if files else MODEL_MEMORY_MB


@dataclass(frozen=True)
class CommandResult:
    """How a command ended: after so many `seconds`, of which `cpu_seconds` were its own, with a
    `peak_bytes` of resident memory in bytes."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    timed_out: bool
    was_killed: bool
    was_loaded: bool = False  # before it began, what it may not need

    @property
    def fault(self) -> str:
        """What is wrong with it; "" where nothing is."""
        if self.timed_out:
            return f"did not end within {self.seconds:.0f} s"
        if self.was_killed:
            return ""
        if "Traceback (most recent" in self.err or self.code == 70:
            lines = [line for line in self.err.splitlines() if line.strip()]
            return "traceback: " + " | ".join(lines[-3:])[:400]
        max_mb = memory_limit_mb(self.argv) + LIBRARY_MEMORY_MB * self.was_loaded
        if self.peak_bytes > max_mb << 20:
            return f"took {self.peak_bytes >> 20} MB, more than {max_mb}"
        if self.code < 0:
            return f"died of signal {-self.code}"
        if self.code not in (0, 1, 2, 130):
            return f"exit code {self.code}"
        if self.code == 2 and not self.err.strip():
            return "failed without a word"
        if self.code and len(self.err) > MAX_ERROR_CHARS:
            return f"an error of {len(self.err)} characters"
        return ""

    def __str__(self) -> str:
        return f"kgbias {' '.join(self.argv)[:300]!r}: exit {self.code}, {self.err[-1500:]}"


class RunningCommand:
    """A command under way."""

    def __init__(self, commands: "Commands", argv: Sequence[str], pid: int, base: Path) -> None:
        self.pid = pid
        self._commands, self._argv, self._base = commands, tuple(argv), base

    def wait(self, kill_after: float | None = None) -> CommandResult:
        order = {"pid": self.pid, "timeout": DEADLINE_SECONDS, "kill_after": kill_after}
        reply = self._commands.order(order)
        texts = []
        for suffix in (".out", ".err"):
            file = self._base.with_suffix(suffix)
            file.touch()  # one that was killed at once has said nothing
            texts.append(file.read_text("utf-8", errors="backslashreplace"))
            file.unlink()
        return CommandResult(
            self._argv,
            reply["code"],
            texts[0],
            texts[1],
            reply["seconds"],
            reply["cpu"],
            reply["peak"],
            reply["timed_out"],
            reply["killed"],
            self._commands.loaded,
        )


class Commands:
    """`kgbias` on tap, while it is a context: each call is a process of its own, forked from one
    that has everything loaded. `cwd` is where they run, `site` a folder of packages beside those
    that are installed."""

    def __init__(self, cwd: Path, *preload: str, site: Path | None = None) -> None:
        self.cwd = cwd
        self._paths = [str(path) for path in (ROOT, site) if path]
        self._preload = preload
        self.loaded = bool(preload)
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._outputs = tempfile.TemporaryDirectory()
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.zygote", *self._preload],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(self._paths),
                "OMP_NUM_THREADS": "1",
                "COLUMNS": "100",
                "HF_HUB_OFFLINE": "1",
                "MPLBACKEND": "agg",
                "PYTHONWARNINGS": "ignore",
            },
        )
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        assert self._zygote.stdin and self._zygote.stdout
        self._zygote.stdin.close()
        self._zygote.wait(timeout=DEADLINE_SECONDS)
        self._zygote.stdout.close()
        self._outputs.cleanup()

    def start(
        self,
        *argv: str | Path,
        env: dict[str, str] | None = None,
        limits: dict[str, int] | None = None,
        fast: bool = True,
        uid: int | None = None,
        encoding: str = "utf-8",
        out: str | Path | None = None,
        err: str | Path | None = None,
        umask: int | None = None,
        stdin: str | Path | None = None,
        closed: Sequence[int] = (),
        clock: bool = False,
        cwd: Path | None = None,
    ) -> RunningCommand:
        base = Path(self._outputs.name) / str(next(self._numbers))
        base.with_suffix(".out").touch()
        words = [str(a) for a in argv]
        pid = self.order(
            {
                "argv": words,
                "env": env or {},
                "limits": limits or {},
                "fast": fast,
                "uid": uid,
                "encoding": encoding,
                "cwd": str(cwd or self.cwd),
                "stdin": stdin and str(stdin),
                "closed": list(closed),
                "clock": clock,
                "out": str(out or base.with_suffix(".out")),
                "err": str(err or base.with_suffix(".err")),
                "umask": umask,
            }
        )["pid"]
        return RunningCommand(self, words, pid, base)

    def run(self, *argv: str | Path, kill_after: float | None = None, **how: Any) -> CommandResult:
        return self.start(*argv, **how).wait(kill_after)

    def order(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._zygote.stdin and self._zygote.stdout
        with self._lock:
            self._zygote.stdin.write(json.dumps(order) + "\n")
            self._zygote.stdin.flush()
            reply = self._zygote.stdout.readline()
        if not reply:
            raise RuntimeError("the process that forks the commands is gone")
        found: dict[str, Any] = json.loads(reply)
        return found
