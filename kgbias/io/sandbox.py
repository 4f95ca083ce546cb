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

MAX_RENDER_SECONDS = 10  # for one text
_MAX_MEMORY_BYTES = 1 << 30  # bytes of the process
_MAX_TEXT_CHARACTERS = 1 << 20  # characters of a text
_MAX_REPLY_BYTES = (
    12 * _MAX_TEXT_CHARACTERS + 100
)  # bytes of a reply: JSON writes some characters as twelve


def start_python(module: str, *arguments: str, **popen_options: Any) -> subprocess.Popen[bytes]:
    """Start a module of this kgbias as another process; `popen_options` is for Popen, and `env`
    adds to the environment. What lies in the current folder, which may be a stranger's, is not
    imported."""
    ours = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        **{**popen_options, "env": {**os.environ, **ours, **popen_options.get("env", {})}},
    )


class TemplateSandbox:
    """The process that runs a module, which calls `serve`. It may take `seconds` for a text."""

    def __init__(self, module: str, seconds: int = MAX_RENDER_SECONDS) -> None:
        self._module = module
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._owner_pid = 0
        self._lock = threading.Lock()

    def __del__(self) -> None:
        # A forked child has the object too; the process is its parent's.
        if self._owner_pid == os.getpid():
            self._stop()

    def render(self, question: Mapping[str, Any], error: type[KgbiasError], subject: str) -> str:
        """The answer to a question, which is made of JSON's values and dataclasses. Raises `error`,
        in a line that begins with `subject`, if the template is faulty or takes more than it
        may."""
        with self._lock:
            reply = self._ask(json.dumps(question, default=_dataclass_to_dict))
        if isinstance(text := reply.get("text"), str):
            return text
        raise error(f"{subject} cannot be rendered: {reply.get('error')}")

    def _ask(self, question: str) -> dict[str, Any]:
        if self._owner_pid != os.getpid():  # a process that was forked does not share its parent's
            self._process = None
        if self._process is None:
            self._owner_pid = os.getpid()
            try:
                self._process = self._start_process()
            except OSError as error:
                return {"error": f"a process for it cannot be started ({error.strerror or error})"}
            # What starting takes does not count as rendering: it says when it is ready.
            if self._exchange("") is None:
                return {"error": f"the process for it ended at once: {self._explain_end()}"}
        reply = self._exchange(question)
        if reply is None:
            return {
                "error": f"it takes more than {self._seconds} s, {_MAX_MEMORY_BYTES >> 30} GB of "
                "memory or a million characters"
            }
        return reply

    def _start_process(
        self, stdin: int = subprocess.PIPE, stderr: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        return start_python(
            self._module, str(self._seconds), stdin=stdin, stdout=subprocess.PIPE, stderr=stderr
        )

    def _explain_end(self) -> str:
        """Why the process ends as it starts: what it says when it is started once more."""
        done = self._start_process(stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, said = done.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            done.kill()
            done.communicate()
            return "it does not start"
        lines = said.decode("utf-8", "replace").split("\n")
        last_line = next((line for line in reversed(lines) if line.strip()), "")
        if done.returncode < 0 or "memory" in last_line.lower():
            return f"give it more memory ({last_line or f'signal {-done.returncode}'})"
        return last_line or f"exit code {done.returncode}"

    def _exchange(self, question: str) -> dict[str, Any] | None:
        """The reply to a question, or to none (it is ready); None if the process has ended."""
        process = self._process
        assert process and process.stdin and process.stdout
        try:
            if question:
                process.stdin.write(question.encode() + b"\n")
                process.stdin.flush()
            reply = json.loads(process.stdout.readline(_MAX_REPLY_BYTES))
            if isinstance(reply, dict):
                return reply
        except (OSError, ValueError):
            pass
        except BaseException:  # Ctrl-C: its answer is no longer wanted
            self._stop()
            raise
        self._stop()
        return None

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    with suppress(OSError):
                        pipe.close()
            self._process.wait()
            self._process = None


def serve(answer: Callable[[Any], str]) -> None:
    """Be that process: answer each question from stdin, a line of JSON, by a line on stdout with
    the text or the error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's, who ends this process
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the replies
    seconds = int(sys.argv[1])
    _limit_memory()
    _write_reply(output, {})
    for line in sys.stdin.buffer:
        _set_alarm(seconds)
        _write_reply(output, _make_reply(answer, line))
        _set_alarm(0)


def _make_reply(answer: Callable[[Any], str], line: bytes) -> dict[str, str]:
    try:
        text = answer(json.loads(line))
    except MemoryError:
        os._exit(1)  # what was taken may be in pieces: begin anew
    except Exception as error:  # whatever a template makes Jinja raise
        return {"error": first_line(error)[:300]}
    if len(text) > _MAX_TEXT_CHARACTERS:
        return {"error": "it makes a text of more than a million characters"}
    return {"text": text}


def _write_reply(output: Any, reply: Mapping[str, str]) -> None:
    output.write(json.dumps(reply).encode() + b"\n")
    output.flush()


def _dataclass_to_dict(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"a template is given a {type(value).__name__}")


def _limit_memory() -> None:
    """From now on, take no more memory than a template may."""
    try:
        import resource

        _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
        limit = (
            _MAX_MEMORY_BYTES
            if hard_limit == resource.RLIM_INFINITY
            else min(_MAX_MEMORY_BYTES, hard_limit)
        )
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard_limit))
    except (ImportError, OSError, ValueError):
        return  # a system without such limits


def _set_alarm(seconds: int) -> None:
    """End in so many seconds, even if nobody is left to ask for it; 0 is never."""
    if hasattr(signal, "setitimer"):
        # Nobody handles SIGALRM here: it ends the process, whatever Jinja is doing.
        signal.setitimer(signal.ITIMER_REAL, seconds)
