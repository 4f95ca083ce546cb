"""A crawl of a real OpenAI-compatible server, `transformers serve`, with the reference model, end
to end, against the same crawl on the local path."""

import json
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.graph.sqlite import SQLiteStore
from kgbias.models import open_model
from kgbias.models.base import Request
from kgbias.models.truncate import Truncation
from kgbias.reference import load_truth, weights_path
from kgbias.reference.world import INITIAL_PREDICATES
from tests.conftest import require_modules, skip_or_fail
from tests.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.integration
require_modules("openai", "torch")

CRAWL = (
    "--samples",
    "3",
    "--set",
    "answers=2",
    "--iterations",
    "1",
    "--set",
    "predicate-prompts=3",
    "--set",
    "object-prompts=3",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URL and the model's name: the folder that is served, with sampling switched on (the
    server takes a temperature only then)."""
    for package in ("fastapi", "uvicorn"):
        try:
            __import__(package)
        except ModuleNotFoundError:
            skip_or_fail(f"{package} is not installed, so transformers cannot serve")
    folder = tmp_path_factory.mktemp("served") / "reference"
    shutil.copytree(weights_path("causal"), folder)
    settings = folder / "generation_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"do_sample": True}))
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder.parent / "log"
    with log.open("w") as file:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "transformers.cli.transformers",
                "serve",
                str(folder),
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--device",
                "cpu",
            ],
            stdout=file,
            stderr=file,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _healthy(url) or server.poll() is not None, every=0.5)
        if server.poll() is not None:
            skip_or_fail(f"transformers serve ended: {log.read_text()[-300:]}")
        yield f"{url}/v1", str(folder)
    finally:
        server.terminate()
        server.wait(timeout=DEADLINE_SECONDS)


def _healthy(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/health", timeout=2).close()
    except OSError:
        return False
    return True


def crawl(store: Path, model: str, *more: str) -> dict[str, object]:
    call = ["crawl", "--model", model, "--store", str(store), *CRAWL, *more, "--json"]
    done = CliRunner().invoke(cli, call)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_end_to_end(served: tuple[str, str], tmp_path: Path) -> None:
    url, name = served
    truth = load_truth()
    groups = next(c for c in truth.categories if c.name == "peoples").groups[:3]
    own = [option for group in groups for option in ("--group", group)]
    # The predicates that its world knows, as `--model reference` has them by itself.
    own += ["--set", f"initial-predicates={','.join(INITIAL_PREDICATES)}"]
    there = crawl(tmp_path / "served.db", f"openai:{name}", "--base-url", url, *own)
    again = crawl(tmp_path / "served.db", f"openai:{name}", "--base-url", url, *own)
    assert again["asked"] == 0 and again["ok"] == there["ok"]
    here = crawl(tmp_path / "local.db", "reference", *own)

    shares = []
    for file, found in (("served.db", there), ("local.db", here)):
        assert found["failed"] == 0 and float(str(found["well_formed"])) > 0.8
        store = SQLiteStore(str(tmp_path / file))
        run = store.find_run()
        views = store.triples(run.id)
        assert {v.group for v in views} == set(groups)
        total = sum(v.count for v in views)
        known = sum(v.count for v in views if truth.find_statement(v.predicate, v.object))
        shares.append(known / total)
        if file == "served.db":
            keys = [g.answer_key for g in store.generations(run.id)]
            details = [json.loads(a.details) for a in store.answers(keys).values()]
            assert all(d["endpoint"] == "completions" for d in details)
            assert any(d.get("stop_in_text") for d in details)  # this server leaves them in
        store.close()
    assert min(shares) > 0.9  # both say what the world holds


@pytest.mark.slow
def test_truncation_that_this_server_lacks_is_said_once(served: tuple[str, str]) -> None:
    """It takes top_p and refuses min_p and top_k, naming both."""
    url, name = served
    notes: list[str] = []
    rule = Truncation(top_k=20, top_p=0.001, min_p=0.1)
    with closing(open_model(f"openai:{name}", base_url=url, notify=notes.append)) as model:
        asked = [Request("Q: Men # love\nA:", n, max_tokens=4, truncation=rule) for n in range(6)]
        answers = [completion for batch in model.complete(asked) for _, completion in batch]
    assert {c.error for c in answers} == {""}
    assert all(c.details["left_out"] == ["min_p", "top_k"] for c in answers)
    assert len(notes) == 2 and all("does not take" in note for note in notes)
    assert len({c.text for c in answers}) == 1  # top_p this small leaves one token
