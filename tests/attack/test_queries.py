"""A query reads the graph and nothing else, and ends: by itself, by a limit, or with its parent."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.attack.commands import Commands
from tests.waiting import wait_until

pytestmark = pytest.mark.attack
OUTSIDE = {
    "LOAD CSV": "LOAD CSV FROM '{file}' AS row RETURN row",
    "in another case": "load CSV\n\tfrom 'file://{file}' AS row RETURN row",
    "after a comment": "// a comment 'so\nLOAD // so\n CSV FROM '{file}' AS row RETURN row",
    "after a block": "/* x */ LOAD /* y */ CSV WITH HEADERS FROM '{file}' AS row RETURN row",
    "in a subquery": "CALL {{ LOAD CSV FROM '{file}' AS row RETURN row }} RETURN row",
    "after a quote": "WITH 'it\\'s' AS x LOAD CSV FROM '{file}' AS row RETURN row",
    "after backticks": "WITH 1 AS `a'b` LOAD CSV FROM '{file}' AS row RETURN row",
    "by APOC": "CALL apoc.load.json('file://{file}') YIELD value RETURN value",
    "by APOC in backticks": "CALL `apoc`.`load`.csv('{file}') YIELD list RETURN list",
}
# One list for all: the engine refuses the millions of items that a list for each row would have.
ENDLESS = "WITH range(1, 100000) AS many UNWIND many AS a UNWIND many AS b RETURN count(a * b)"
GREEDY = "UNWIND range(1, 2000000000) AS a RETURN collect(toString(a) + 'xxxxxxxxxxxxxxxxxxx')"


@pytest.mark.parametrize("name", OUTSIDE)
def test_files_and_servers_are_out_of_reach(commands: Commands, world: Path, name: str) -> None:
    secret = world / "secret.txt"
    secret.write_text("do,not,tell\n")
    ended = commands.run("query", "--cypher", OUTSIDE[name].format(file=secret), cwd=world)
    assert ended.code == 2 and not ended.fault, ended
    assert "tell" not in ended.out + ended.err


def test_text_that_only_looks_like_it_may_be_asked(commands: Commands, world: Path) -> None:
    for text in ("RETURN 'LOAD CSV FROM x' AS a", "// LOAD CSV\nRETURN 1 AS `LOAD CSV`"):
        ended = commands.run("query", "--cypher", text, cwd=world)
        assert ended.code == 0, ended


def _engines(session: int) -> list[int]:
    """The processes that are alive in a session, or were started from it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_engine_dies_with_the_command(commands: Commands, world: Path, how: int) -> None:
    started = commands.start("query", "--cypher", ENDLESS, cwd=world)
    try:
        wait_until(lambda: len(_engines(started.pid)) >= 2)  # the command and its engine
        time.sleep(1)
        os.kill(started.pid, how)
        started.wait()
        wait_until(lambda: not _engines(started.pid))
    finally:
        for pid in _engines(started.pid):
            os.kill(pid, signal.SIGKILL)


def test_a_query_ends_at_its_time_limit(commands: Commands, world: Path) -> None:
    ended = commands.run("query", "--cypher", ENDLESS, "--timeout", "2", cwd=world)
    assert ended.code == 2 and "--timeout" in ended.err and not ended.fault, ended
    for odd in ("nan", "-1", "0", "inf", "x", "1e400"):
        ended = commands.run("query", "--cypher", "RETURN 1", "--timeout", odd, cwd=world)
        assert not ended.fault, ended


def test_a_query_that_wants_all_memory_is_stopped(commands: Commands, world: Path) -> None:
    ended = commands.run("query", "--cypher", GREEDY, "--timeout", "60", cwd=world)
    assert ended.code == 2 and not ended.fault, ended


def test_a_query_that_does_not_fit_says_what_to_do(commands: Commands, world: Path) -> None:
    many = "UNWIND range(1, 4000) AS a UNWIND range(1, 4000) AS b RETURN collect(toString(a * b))"
    limits = {"RLIMIT_AS": 3 << 29}  # in place of the machine's memory
    ended = commands.run("query", "--cypher", many, cwd=world, limits=limits)
    assert ended.code == 2 and not ended.fault, ended
    assert (
        "needed more memory than it may use: ask for less, or push the run to a Neo4j server"
        in ended.err
    ), ended
