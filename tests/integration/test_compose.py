"""docker-compose.yml without Docker: its settings are ones that the server knows, its password is
one that the image takes, and its health checks say how real servers are."""

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from kgbias.backends.neo4j import Neo4jSession
from tests.conftest import skip_or_fail
from tests.waiting import DEADLINE_SECONDS

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
# How the image reads its environment (docker-neo4j, 5/coredb/docker-entrypoint.sh).
AUTH = re.compile(r"^([^/]+)/([^/]+)/?(true)?$", re.IGNORECASE)


def filled(text: str, **given: str) -> str:
    """${NAME}, ${NAME:-default} and ${NAME:?message} as compose fills them in."""

    def value(match: re.Match[str]) -> str:
        name, how, word = match[1], match[2], match[3]
        if name in given:
            return given[name]
        assert how == ":-", f"{name} has no default"
        return word

    return re.sub(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}", value, text)


def settings() -> dict[str, str]:
    """The environment of the server's image as names and values of its configuration."""
    own = {k: v for k, v in SERVICES["neo4j"]["environment"].items() if k != "NEO4J_AUTH"}
    return {
        k.removeprefix("NEO4J_").replace("_", ".").replace("..", "_"): filled(v)
        for k, v in own.items()
    }


def healthy(service: str, port: int, published: int) -> bool:
    """Whether the service's health check passes on the server at this port."""
    kind, *command = SERVICES[service]["healthcheck"]["test"]
    assert kind == "CMD"
    if not which(command[0]):
        skip_or_fail(f"{command[0]} is not installed")
    url = f"http://localhost:{published}"
    assert command[-1].startswith(url)
    command[-1] = command[-1].replace(url, f"http://127.0.0.1:{port}")
    return subprocess.run(command, capture_output=True, timeout=DEADLINE_SECONDS).returncode == 0


def test_neo4j_as_composed(neo4j_server: dict[str, str], empty_neo4j: str) -> None:
    http = int(neo4j_server["NEO4J_HTTP"].rpartition(":")[2])
    assert healthy("neo4j", http, 7474)
    assert not healthy("neo4j", 9, 7474)  # nobody listens there
    with Neo4jSession(empty_neo4j) as server:
        known = {row["name"] for row in server.read("SHOW SETTINGS YIELD name")}
    assert settings().keys() <= known
    assert len(settings()) == 3
    auth = SERVICES["neo4j"]["environment"]["NEO4J_AUTH"]
    found = AUTH.match(filled(auth, NEO4J_PASSWORD="a good one"))
    assert found and found[1] == "neo4j" and found[2] == "a good one"
    with pytest.raises(AssertionError, match="NEO4J_PASSWORD has no default"):
        filled(auth)


def test_ports_and_volumes() -> None:
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    (data,) = SERVICES["neo4j"]["volumes"]
    named = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["volumes"]
    assert data.split(":") == [*named, "/data"]  # where the image keeps its databases
    example = (ROOT / ".env.example").read_text()
    for name in re.findall(r"\$\{(\w+):\?", (ROOT / "docker-compose.yml").read_text()):
        assert f"\n{name}=" in f"\n{example}"


class _Loading(BaseHTTPRequestHandler):
    """The health of llama.cpp's server: 503 until the model is loaded."""

    loaded = False

    def do_GET(self) -> None:
        self.send_response(200 if self.loaded and self.path == "/health" else 503)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def listening() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), _Loading) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_the_model_is_healthy_when_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    command = filled(SERVICES["model"]["command"]).split()
    given = dict(zip(command[::2], command[1::2], strict=True))
    assert given["--port"] == "8000" and given["--host"] == "0.0.0.0"  # inside the container
    (folder,) = SERVICES["model"]["volumes"]
    source, inside, mode = filled(folder).rsplit(":", 2)
    assert given["--model"].startswith(f"{inside}/") and mode == "ro" and source
    with listening() as port:
        assert not healthy("model", port, 8000)
        monkeypatch.setattr(_Loading, "loaded", True)
        assert healthy("model", port, 8000)
