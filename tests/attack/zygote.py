"""A process that has kgbias loaded and forks a child for each command line it is given, so that a
command starts in milliseconds and can be killed, limited and measured. Driven by
`tests.attack.commands`: a JSON object a line on stdin, one back on stdout."""

import json
import os
import re
import resource
import signal
import sys
import time
import traceback
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

MODULES = (
    "encodings.utf_8_sig",
    "jinja2",
    "matplotlib.pyplot",
    "networkx",
    "openai.resources.chat.completions",
    "openai.resources.completions",
    "openai.resources.moderations",
    "rich.progress",
    "scipy.stats",
)

LOADS_A_LIBRARY = re.compile(r"^(import|from) (torch|transformers|kglite)\b", re.MULTILINE)


def child(order: dict[str, Any]) -> None:
    """Become `kgbias ARGV`; never returns."""
    os.setsid()
    if order["umask"] is not None:
        os.umask(order["umask"])
    sys.path.insert(0, str(Path.cwd()))  # before the working folder changes
    for number, name in ((1, order["out"]), (2, order["err"])):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.dup2(os.open(order.get("stdin") or os.devnull, os.O_RDONLY), 0)
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=order["encoding"])  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    for number in order["closed"]:  # as `>&-` leaves it
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
        with suppress(OSError):  # whoever held it last has closed it
            os.close(number)
    if order["clock"]:
        _the_clock_jumps()
    if order["fast"]:
        _waits_are_short()
    # Python keeps half of a compiled module where files may not be longer, for all who come after.
    sys.dont_write_bytecode = bool(order["limits"])
    for name, value in order["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if order["uid"] is not None:
        os.setuid(order["uid"])
    sys.argv = ["kgbias", *order["argv"]]
    code: Any = 0
    try:
        from kgbias.cli import main

        main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
        code = 70
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        code = 70 if code == 0 else code
        os.write(2, b"Traceback: the output was not flushed by the command itself\n")
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _waits_are_short() -> None:
    """Retries wait a hundredth of their time."""
    import asyncio

    wait, pause = asyncio.sleep, time.sleep

    async def sleep(delay: float, result: Any = None) -> Any:
        return await wait(delay / 100, result)

    asyncio.sleep = sleep  # type: ignore[assignment]
    time.sleep = lambda seconds: pause(seconds / 100)


def _the_clock_jumps() -> None:
    """Each look at the clock may be a day before or after the last."""
    import random
    from datetime import datetime, timedelta, tzinfo

    clock, rng = time.time, random.Random(0)
    time.time = lambda: clock() + rng.choice((-86_400, 0, 86_400))

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Jumping":
            return super().now(tz) + timedelta(days=rng.choice((-1, 0, 1)))

    for name, module in list(sys.modules.items()):
        if name.startswith("kgbias") and getattr(module, "datetime", None) is datetime:
            vars(module)["datetime"] = Jumping


def finish(pid: int, timeout: float, kill_after: float | None) -> dict[str, Any]:
    """Wait for a child, killing it after `kill_after` seconds, as planned, or after `timeout`."""
    began = time.monotonic()
    planned = timed_out = False
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            break
        passed = time.monotonic() - began
        if kill_after is not None and passed >= kill_after and not planned:
            planned = True
            os.kill(pid, signal.SIGKILL)
        if passed >= timeout:
            timed_out = True
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.001 if passed < 2 else 0.01)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "seconds": time.monotonic() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss * 1024,
        "timed_out": timed_out,
        "killed": planned,
    }


def _own_modules() -> list[str]:
    """The modules of kgbias that do not load PyTorch, transformers or an engine as they are
    imported."""
    import kgbias

    names = []
    for module in walk_packages(kgbias.__path__, "kgbias."):
        spec = find_spec(module.name)
        text = Path(spec.origin).read_text("utf-8") if spec and spec.origin else ""
        is_light = not LOADS_A_LIBRARY.search(text)
        if is_light and module.name != "kgbias.__main__":  # which runs the command
            names.append(module.name)
    return names


def main() -> None:
    for name in (*MODULES, *_own_modules(), *sys.argv[1:]):
        try:
            import_module(name)
        except ImportError:
            print(f"not loaded: {name}", file=sys.stderr)
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        order = json.loads(line)
        if "argv" in order:
            pid = os.fork()
            if pid == 0:
                child(order)
            print(json.dumps({"pid": pid}), file=replies)
        else:
            print(json.dumps(finish(**order)), file=replies)


if __name__ == "__main__":
    main()
