"""Processes beside this one: how they are started, and the one in which strangers' templates are
rendered, within limits of time and memory.

Jinja's sandbox keeps a template from reaching anything, but not from taking hours or gigabytes: a
hundred characters can double a text thirty times. So it is rendered where no more than that can be
lost. The process is started by the first question, stays for the following ones, and ends with the
one that started it.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

from kgbias.errors import KgbiasError, first_line

SECONDS = 10  # for one text
_MEMORY = 1 << 30  # bytes of the process
_LONGEST = 1 << 20  # characters of a text
_LINE = 12 * _LONGEST + 100  # bytes of a reply: JSON writes some characters as twelve


def python(module: str, *arguments: str, **how: Any) -> subprocess.Popen[bytes]:
    """Start a module of this kgbias as another process; `how` is for Popen, and `env` adds to the
    environment. What lies in the current folder, which may be a stranger's, is not imported."""
    ours = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        **{**how, "env": {**os.environ, **ours, **how.get("env", {})}},
    )


class Aside:
    """The process that runs a module, which calls `serve`. It may take `seconds` for a text."""

    def __init__(self, module: str, seconds: int = SECONDS) -> None:
        self._module = module
        self._seconds = seconds
        self._running: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._asking = threading.Lock()

    def __del__(self) -> None:
        if self._owner == os.getpid():
            self._end()

    def rendered(self, question: Mapping[str, Any], error: type[KgbiasError], what: str) -> str:
        """The answer to a question, which is made of JSON's values and dataclasses. Raises `error`,
        in a line that begins with `what`, if the template is faulty or takes more than it may."""
        with self._asking:
            reply = self._asked(json.dumps(question, default=_plain))
        if isinstance(text := reply.get("text"), str):
            return text
        raise error(f"{what} cannot be rendered: {reply.get('error')}")

    def _asked(self, question: str) -> dict[str, Any]:
        if self._owner != os.getpid():  # a process that was forked does not share its parent's
            self._running = None
        if self._running is None:
            self._owner = os.getpid()
            try:
                self._running = self._started()
            except OSError as error:
                return {"error": f"a process for it cannot be started ({error.strerror or error})"}
            if self._said("") is None:
                return {"error": "the process for it ended at once: give it more memory"}
        reply = self._said(question)
        if reply is None:
            return {
                "error": f"it takes more than {self._seconds} s, {_MEMORY >> 30} GB of memory or "
                "a million characters"
            }
        return reply

    def _started(self) -> subprocess.Popen[bytes]:
        return python(
            self._module,
            str(self._seconds),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _said(self, question: str) -> dict[str, Any] | None:
        """The reply to a question, or to none (it is ready); None if the process has ended."""
        running = self._running
        assert running and running.stdin and running.stdout
        try:
            if question:
                running.stdin.write(question.encode() + b"\n")
                running.stdin.flush()
            reply = json.loads(running.stdout.readline(_LINE))
            if isinstance(reply, dict):
                return reply
        except (OSError, ValueError):
            pass
        except BaseException:  # Ctrl-C: its answer is no longer wanted
            self._end()
            raise
        self._end()
        return None

    def _end(self) -> None:
        if self._running is not None:
            self._running.kill()
            for pipe in (self._running.stdin, self._running.stdout):
                if pipe:
                    with suppress(OSError):
                        pipe.close()
            self._running.wait()
            self._running = None


def serve(answer: Callable[[Any], str]) -> None:
    """Be that process: answer each question from stdin, a line of JSON, by a line on stdout with
    the text or the error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's, who ends this process
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the replies
    seconds = int(sys.argv[1])
    _bound_memory()
    _write(out, {})
    for line in sys.stdin.buffer:
        _alarm(seconds)
        _write(out, _reply(answer, line))
        _alarm(0)


def _reply(answer: Callable[[Any], str], line: bytes) -> dict[str, str]:
    try:
        text = answer(json.loads(line))
    except MemoryError:
        os._exit(1)  # what was taken may be in pieces: begin anew
    except Exception as error:  # whatever a template makes Jinja raise
        return {"error": first_line(error)[:300]}
    if len(text) > _LONGEST:
        return {"error": "it makes a text of more than a million characters"}
    return {"text": text}


def _write(out: Any, reply: Mapping[str, str]) -> None:
    out.write(json.dumps(reply).encode() + b"\n")
    out.flush()


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"a template is given a {type(value).__name__}")


def _bound_memory() -> None:
    """From now on, take no more memory than a template may."""
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError, ValueError):
        return  # a system without such limits


def _alarm(seconds: int) -> None:
    """End in so many seconds, even if nobody is left to ask for it; 0 is never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
