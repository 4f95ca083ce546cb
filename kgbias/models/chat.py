"""A model's chat template, rendered in a process of its own.

The template comes with the model, and so from whoever made it: Jinja's sandbox lets it reach
nothing and does not stop it. The process may take so much time for a prompt and so much memory, and
no more, and it ends with the one that started it. What renders there is transformers' own function,
so that a model reads what it would read from there.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from kgbias.errors import ModelError, first_line

_SECONDS = 10  # for a prompt
_MEMORY = 1 << 30  # bytes
_LONGEST = 4 << 20  # bytes of a prompt
_START = 300  # seconds in which transformers is to be imported


def rendered(tokenizer: Any, messages: Sequence[Mapping[str, str]], model: str) -> str:
    """The messages in the chat template of a tokenizer, up to where the answer begins. Raises
    ModelError, which names the model, where the template cannot be rendered within the limits."""
    tokens = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    process = _process(tokenizer.get_chat_template(), json.dumps(tokens))
    reply = process.asked(list(messages))
    if isinstance(text := reply.get("text"), str):
        return text
    raise ModelError(f"the chat template of {model} cannot be rendered: {reply.get('error')}")


@lru_cache(4)
def _process(template: str, tokens: str) -> "_Process":
    return _Process({"template": template, "tokens": json.loads(tokens)})


class _Process:
    """The process that renders one template; started when it is first asked, and again where it was
    ended."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self._about = about
        self._running: subprocess.Popen[bytes] | None = None
        self._asking = threading.Lock()

    def __del__(self) -> None:
        self._end()

    def asked(self, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        with self._asking:
            if self._running is None:
                self._running = _started()
                self._said(self._about, _START)
            return self._said(messages, _SECONDS + 5)  # it ends itself before

    def _said(self, question: object, seconds: float) -> dict[str, Any]:
        """The answer to a question, or why there is none."""
        running = self._running
        assert running and running.stdin and running.stdout
        alarm = threading.Timer(seconds, running.kill)
        alarm.start()
        try:
            running.stdin.write(json.dumps(question).encode() + b"\n")
            running.stdin.flush()
            reply = json.loads(running.stdout.readline(2 * _LONGEST))
            if isinstance(reply, dict):
                return reply
        except (OSError, ValueError, RecursionError):
            pass
        except BaseException:  # Ctrl-C: what it was asked is of no use any more
            self._end()
            raise
        finally:
            alarm.cancel()
        self._end()
        return {
            "error": f"it took more than {_SECONDS} s, {_MEMORY >> 30} GB of memory or "
            f"{_LONGEST >> 20} MB for a prompt"
        }

    def _end(self) -> None:
        if self._running is not None:
            self._running.kill()
            for pipe in (self._running.stdin, self._running.stdout):
                if pipe:
                    with suppress(OSError):
                        pipe.close()
            self._running.wait()
            self._running = None


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "kgbias.models.chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # this kgbias, not another
    )


def _bounded() -> None:
    """From now on take no more memory than a template may."""
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError, ValueError):
        return  # a system without such limits


def _alarm(seconds: int) -> None:
    """End in so many seconds, whoever is left to ask for it."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _text(about: Mapping[str, Any], messages: Sequence[Mapping[str, str]]) -> dict[str, str]:
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        found: Any = render_jinja_template(
            conversations=[[dict(message) for message in messages]],
            chat_template=about["template"],
            add_generation_prompt=True,
            **about["tokens"],
        )
        text = str(found[0][0])
    except Exception as error:  # whatever a template makes Jinja raise
        return {"error": first_line(error)[:300]}
    if len(text) > _LONGEST // 4:
        return {"error": f"it makes a prompt of more than {_LONGEST >> 20} MB"}
    return {"text": text}


def main() -> None:
    """Reads what it is about and then messages from stdin, a line of JSON each, and answers each on
    stdout by a line with the text or the error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's, who ends this process
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    about: dict[str, Any] = {}
    for line in sys.stdin.buffer:
        question = json.loads(line)
        if about:
            _alarm(_SECONDS)
            reply = _text(about, question)
            _alarm(0)
        else:
            about, reply = question, {}
            import transformers.utils.chat_template_utils  # noqa: F401

            _bounded()
        out.write(json.dumps(reply).encode() + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
