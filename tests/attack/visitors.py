"""Visitors of `kgbias serve`: many that hold connections, and honest ones that must not notice."""

import os
import random
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from tests.attack.commands import Commands
from tests.waiting import DEADLINE_SECONDS, wait_until

TOKEN = "a token of the attacks"
HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
# What somebody sends who wants to stay: nothing, a head without an end, a request without a reader.
IDLE_HEADS = (
    b"",
    HEAD,
    HEAD + b"X: " + b"x" * 30_000,
    HEAD + b"\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 9\r\n",
)
HONEST_VISITORS = 200  # at once


def visitors(
    commands: Commands, folder: Path, rng: random.Random, n: int
) -> Iterator[tuple[str, str]]:
    """While up to 600 connections are held that ask nothing, 200 honest visitors are answered."""
    port, token = _free_port(), n % 2
    crowd = rng.choice((100, 450, 600))
    env = {"KGBIAS_SERVE_TOKEN": TOKEN} if token else {}
    what = f"serve, {'with a token, ' * token}and {crowd} who stay"
    started = commands.start("serve", "r", "--port", str(port), cwd=folder, env=env)
    with ExitStack() as held:
        try:
            if (status := _wait_status(port, token)) != 200:
                yield what, f"did not begin: {status}"
                return
            staying = [held.enter_context(_connect(port)) for _ in range(crowd)]
            for one in staying:
                with suppress(OSError):
                    one.sendall(rng.choice(IDLE_HEADS))
            held.callback(_drip_heads(staying).set)
            with ThreadPoolExecutor(HONEST_VISITORS) as pool:
                found = list(pool.map(lambda _: _ask_status(port, token), range(HONEST_VISITORS)))
            wrong = [answer for answer in found if answer != "200"]
            yield what, f"{len(wrong)} of {HONEST_VISITORS}: {wrong[0]}" if wrong else ""
        finally:
            os.kill(started.pid, signal.SIGINT)
            done = started.wait()
    yield f"{what}, at its end", done.fault


def _free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS)


def _drip_heads(connections: Sequence[socket.socket]) -> threading.Event:
    """Send a byte of a head now and then on some of the connections, until the event is set."""
    is_over = threading.Event()

    def drip() -> None:
        while not is_over.wait(0.3):
            for one in connections[::3]:
                with suppress(OSError):
                    one.send(b"x")

    threading.Thread(target=drip, daemon=True).start()
    return is_over


def _ask_status(port: int, token: int) -> str:
    """The status of an answer, read whole, or what happened instead."""
    client = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
    try:
        client.request(
            "GET", "/data/core", headers={"Authorization": f"Bearer {TOKEN}"} if token else {}
        )
        answer = client.getresponse()
        answer.read()
    except (OSError, HTTPException) as error:
        return repr(error)
    finally:
        client.close()
    return str(answer.status)


def _wait_status(port: int, token: int) -> int:
    """The status once there is something to show, or after a while."""
    status = "nothing"

    def has_answered() -> bool:
        nonlocal status
        status = _ask_status(port, token)
        return status == "200"

    with suppress(TimeoutError):
        wait_until(has_answered, every=0.1)
    return int(status) if status.isdigit() else 0
