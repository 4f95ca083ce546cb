"""The API key never appears: not in what is printed, not in the store, not in an export."""

import json
from pathlib import Path

import pytest

from tests.attack.commands import Commands
from tests.attack.servers import (
    CLIENTS,
    ECHOES,
    KEY,
    attack_client,
    concerns_client,
    find_leaks,
    right_answer,
)
from tests.conftest import sweep_params
from tests.fault_server import FaultServer

pytestmark = pytest.mark.attack
EACH = ("crawl", "probe", "moderation at once")


@pytest.mark.parametrize("client", EACH)
@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_key_is_stripped_as_it_is_read(
    commands: Commands, world: Path, client: str, end: str
) -> None:
    with FaultServer(lambda body, _: ("body", json.dumps(right_answer(body)))) as server:
        env = {"OPENAI_API_KEY": KEY + end, "OPENAI_BASE_URL": server.url}
        ended = commands.run(*CLIENTS[client].argv, env=env, cwd=world)
    assert ended.code == 0, ended
    assert not find_leaks(world, ended.out + ended.err)
    sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert sent["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("client", EACH)
@pytest.mark.parametrize("odd", ["é", "a\nb"])
def test_a_key_that_no_header_can_hold_is_refused_in_one_line(
    commands: Commands, world: Path, client: str, odd: str
) -> None:
    env = {"OPENAI_API_KEY": KEY[:20] + odd + KEY[20:], "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    ended = commands.run(*CLIENTS[client].argv, env=env, cwd=world)
    assert ended.code == 2
    assert not ended.fault, ended
    said = [line for line in ended.err.splitlines() if not line.startswith("opening ")]
    assert len(said) == 1 and "OPENAI_API_KEY" in said[0]
    assert not find_leaks(world, ended.out + ended.err)


@pytest.mark.parametrize(
    ("client", "name"),
    sweep_params(
        4,
        [("crawl", name) for name in ECHOES]
        + [(client, name) for client in EACH[1:] for name in list(ECHOES)[::4]],
    ),
)
def test_a_server_that_says_the_key_back(
    commands: Commands, world: Path, client: str, name: str
) -> None:
    if not concerns_client(client, name):
        pytest.skip("of another client")
    _, faults = attack_client(commands, world, client, ECHOES[name])
    assert not faults


def test_the_password_of_a_url_is_not_kept(commands: Commands, world: Path) -> None:
    with FaultServer(lambda body, _: ("status", (401, {}))) as server:
        url = server.url.replace("http://", f"http://me:{KEY}@")
        ended = commands.run(*CLIENTS["crawl"].argv, "--base-url", url, cwd=world)
    assert ended.code == 2
    assert not find_leaks(world, ended.out + ended.err)
