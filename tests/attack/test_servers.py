"""A hostile server: whatever it answers, a command ends in time with what it has, and says why."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbias.errors import ModelError
from kgbias.measure.scorers import _moderation, load_scorer
from kgbias.models.score import server
from tests.attack.commands import Commands
from tests.attack.servers import (
    CLIENTS,
    ECHOES,
    FOLLOW_UPS,
    KEY,
    REPORT_COMMAND,
    SCENARIOS,
    attack_client,
    concerns_client,
    right_answer,
)
from tests.conftest import sweep_params
from tests.fault_server import Fault, FaultServer, Plan

pytestmark = pytest.mark.attack
ALL = [(c, s) for c in CLIENTS for s in SCENARIOS if s not in ECHOES and concerns_client(c, s)]
# What an attack found once, for one client each, and some of the rest; scripts/attack runs all.
ONCE = (
    "charset",
    "half a pair",
    "logs",
    "one log",
    "html",
    "null",
    "text of",
    "gzip bomb",
    "tokens too few",
    "scores a string",
    "results of strings",
    "a string",
    "a list",
)
MAIN = ("crawl", "probe", "moderation")
CHOSEN = [
    (client, name)
    for n, (client, name) in enumerate(ALL)
    if n % 29 == 0 or (client in MAIN and any(w in name for w in ONCE) and n % 3 == 0)
]


@pytest.mark.parametrize(("client", "name"), sweep_params(4, CHOSEN))
def test_a_server_that_answers(commands: Commands, world: Path, client: str, name: str) -> None:
    ended, faults = attack_client(commands, world, client, SCENARIOS[name], follow_ups=FOLLOW_UPS)
    assert not faults, ended


@pytest.mark.parametrize(
    ("client", "names"),
    [
        ("probe", ("logs NaN", "logs -Infinity", "one log -Infinity", "logs positive")),
        ("moderation", ("logs NaN", "scores negative", "scores above 1")),
    ],
)
def test_no_such_number_is_stored(
    commands: Commands, world: Path, client: str, names: tuple[str, ...]
) -> None:
    for name in names:
        after = (*FOLLOW_UPS, REPORT_COMMAND) if name == names[-1] else ()
        ended, faults = attack_client(commands, world, client, SCENARIOS[name], follow_ups=after)
        assert ended.code == 2 and not faults, ended


def _saying(name: str) -> Plan:
    return lambda *_: SCENARIOS[name]({}, {})


def test_long_answers_take_little(commands: Commands, world: Path) -> None:
    """Sixteen requests of a crawl are under way at once, and four of a probe."""
    for client, name in (("crawl", "a long body"), ("probe", "a body of objects")):
        if client == "probe":
            rows = "".join(f"people {n},like,thing {n}\n" for n in range(150))
            (world / "more.csv").write_text(f"group,predicate,object\n{rows}")
            assert commands.run("import", "more.csv", "--run", "r2", cwd=world).code == 0
        argv = [word if word != "r" else "r2" for word in CLIENTS[client].argv]
        with FaultServer(_saying(name)) as hostile:
            env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": hostile.url}
            ended = commands.run(*argv, env=env, cwd=world)
        assert ended.code == 2 and not ended.fault, ended


def test_what_was_answered_is_kept_when_one_answer_is_odd(commands: Commands, world: Path) -> None:
    """One answer's metadata cannot be written as UTF-8; the others stay."""
    odd = SCENARIOS["fingerprint with half a pair"]
    seen = 0

    def plan(body: dict[str, object], _: int) -> Fault:
        nonlocal seen
        seen += 1
        return (
            odd(right_answer(body), body)
            if seen % 3 == 0
            else ("body", json.dumps(right_answer(body)))
        )

    with FaultServer(plan) as hostile:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": hostile.url}
        first = commands.run(*CLIENTS["crawl"].argv, env=env, cwd=world)
        asked = len(hostile.bodies)
        again = commands.run(*CLIENTS["crawl"].argv, env=env, cwd=world)
    assert first.code == again.code == 0, first
    assert len(hostile.bodies) == asked, "what was answered is asked again"


def test_a_server_of_html_is_not_asked_six_times(commands: Commands, world: Path) -> None:
    with FaultServer(
        lambda *_: ("raw", (200, {"content-type": "text/html"}, b"<html>"))
    ) as hostile:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": hostile.url}
        ended = commands.run(*CLIENTS["crawl"].argv, "--set", "concurrency=1", env=env, cwd=world)
    assert ended.code == 2, ended
    assert len(hostile.bodies) <= 3


@pytest.fixture(params=["drip", "drip headers"])
def dripping(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server that sends a byte now and then, of its answer or already of a header, and
    never ends."""
    body = json.dumps(right_answer({"prompt": "x", "seed": 1})).encode()
    fault = (request.param, (body, 0.2) if request.param == "drip" else 0.2)
    with FaultServer(lambda *_: fault) as hostile:
        yield hostile.url


def test_a_crawl_waits_no_longer_than_its_time_limit(
    commands: Commands, world: Path, dripping: str
) -> None:
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": dripping}
    ended = commands.run(*CLIENTS["crawl"].argv, "--set", "timeout=1", env=env, cwd=world)
    assert ended.code == 2 and not ended.fault, ended  # it ends, and says what failed
    assert "within 1 s" in ended.err, ended


def test_a_probe_and_moderation_have_such_a_limit_too(
    dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", dripping)
    for module in (server, _moderation):
        monkeypatch.setattr(module, "_MAX_RETRIES", 1)
    monkeypatch.setattr(_moderation, "_TIMEOUT_SECONDS", 0.5)
    scorer = server.ServerScorer("m", timeout=0.5)
    for ask in (
        lambda: scorer.surprisals("women like music"),
        lambda: load_scorer("toxicity", "openai-moderation"),
    ):
        with pytest.raises(ModelError, match="does not answer: the answer took too long"):
            ask()
