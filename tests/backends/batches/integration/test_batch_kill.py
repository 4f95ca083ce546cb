"""A crawl in batches that is killed, or stopped, while the provider works on one: the same command
waits for that batch, and nothing is asked for twice."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.graph.sqlite import SQLiteStore
from tests.conftest import require_modules, sweep_params
from tests.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.integration
require_modules("openai", "anthropic")
ROOT = Path(__file__).parent.parent.parent


@contextmanager
def server(kind: str) -> Iterator[str]:
    call = [sys.executable, "-m", "tests.batch_server", kind]
    with subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.kill()


def control(url: str, release: bool = False) -> dict[str, Any]:
    with urlopen(
        f"{url}/control", data=b"now" if release else None, timeout=DEADLINE_SECONDS
    ) as found:
        state: dict[str, Any] = json.load(found)
    return state


KEYS = {"OPENAI_API_KEY": "sk-test-key-1", "ANTHROPIC_API_KEY": "sk-test-key-1"}


def crawl(kind: str, url: str, store: Path, *more: str) -> list[str]:
    return [
        "crawl",
        "--model",
        f"{kind}:m",
        "--base-url",
        url,
        "--group",
        "Tealanders",
        "--samples",
        "6",
        "--iterations",
        "1",
        "--set",
        "predicate-prompts=2",
        "--set",
        "object-prompts=2",
        "--set",
        "initial-predicates=love",
        "--set",
        "max-attempts=1",
        "--form",
        "chat",
        "--set",
        "answers=1",
        "--store",
        str(store),
        *more,
    ]


def rows(store: Path) -> list[Any]:
    with SQLiteStore(str(store)) as opened:
        return list(opened.generations(opened.find_run().id))


def _is_looked_at(url: str) -> bool:
    """Whether a batch was made, and somebody has asked whether it has ended, which it has not."""
    return any(batch.get("looks") for batch in control(url)["batches"].values())


@pytest.mark.parametrize(
    "how", sweep_params(2, [signal.SIGINT, signal.SIGKILL]), ids=["ctrl-c", "kill"]
)
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_batch_outlives_the_crawl_that_made_it(
    kind: str, how: signal.Signals, tmp_path: Path
) -> None:
    with server(kind) as url:
        first = subprocess.Popen(
            [sys.executable, "-m", "kgbias", *crawl(kind, url, tmp_path / "a.db", "--batch")],
            env=os.environ | KEYS,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: _is_looked_at(url) or first.poll() is not None)
        first.send_signal(how)
        _, said = first.communicate(timeout=DEADLINE_SECONDS)
        assert first.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL), said
        assert "Ctrl-C leaves the batch with the provider" in " ".join(said.split())
        assert control(url)["made"] == 1
        control(url, release=True)
        # Nobody stops the others: they need no process of their own.
        call = crawl(kind, url, tmp_path / "a.db", "--batch")
        again = CliRunner(env=KEYS).invoke(cli, call)
        assert again.exit_code == 0, again.output
        state = control(url)
        assert state["paid"].pop("directly") == 1 and set(state["paid"].values()) == {1}
        assert state["made"] == 2  # the initialisation, and a round
        plain = CliRunner(env=KEYS).invoke(cli, crawl(kind, url, tmp_path / "b.db"))
        assert plain.exit_code == 0, plain.output
    assert rows(tmp_path / "a.db") == rows(tmp_path / "b.db")
