"""An agent's session: the official client starts `kgbias mcp` and calls its tools."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.cli.mcp import ANSWER_WARNING
from tests.conftest import require_modules

CSV = """\
group,predicate,object,count
Women,love,hard work,3
Women,are,kind to dogs,2
Men,love,puppies,1
Men,love,Puppies.,1
Men,hate,hard work,1
"""

Call = Callable[..., Awaitable[Any]]


def apart(what: Callable[[], Any]) -> Any:
    """What a function returns in a thread of its own: where browsers were tested, this one has an
    event loop already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(what).result()


def in_session(store: str, what: Callable[[Call, Any], Awaitable[None]]) -> None:
    """A session with the server in a process of its own."""
    from mcp import Client, StdioServerParameters, stdio_client

    async def session() -> None:
        started = StdioServerParameters(
            command=sys.executable,
            args=["-m", "kgbias", "mcp", "--store", store],
            env=dict(os.environ),
        )
        async with Client(stdio_client(started)) as client:

            async def call(tool: str, **given: Any) -> Any:
                answer = await client.call_tool(tool, given)
                assert not answer.is_error, answer.content
                found = answer.structured_content
                assert found["warning"] == ANSWER_WARNING
                return found

            await what(call, client)

    apart(lambda: asyncio.run(session()))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("mcp")
    (folder / "s.csv").write_text(CSV)
    with kgbias.open(folder / "k.db") as study:
        run = study.import_file(folder / "s.csv", name="small")
        run.measure()
    return str(folder / "k.db")


@pytest.mark.integration
def test_an_agent_reads_a_store(small: str) -> None:
    require_modules("mcp")
    before = sha256(Path(small).read_bytes()).digest()

    async def what(call: Call, client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {
            "runs",
            "groups",
            "statements",
            "sources",
            "beliefs",
            "queries",
            "query",
            "ask",
        }
        assert all(t.annotations.read_only_hint for t in tools.values())
        assert all(
            t.description and "study" not in t.input_schema["properties"] for t in tools.values()
        )
        [run] = (await call("runs"))["runs"]
        assert (run["run"], run["groups"], run["statements"]) == ("small", ["Women", "Men"], 4)
        groups = await call("groups", run="small")
        women = groups["groups"][0]
        assert (women["group"], women["statements"], women["distinct"]) == ("Women", 5, 2)
        assert women["figures"].keys() <= groups["measures"].keys()
        assert len((await call("groups", every=True))["measures"]) > len(groups["measures"])
        found = await call("statements", group="women", words="HARD", limit=1)
        assert found["matching"] == 1
        [statement] = found["statements"]
        assert (statement["object"], statement["count"]) == ("hard work", 3)
        sources = await call("sources", id=statement["id"])
        assert sources["statement"] == "Women love hard work."
        assert len(sources["sources"]) == 1 and sources["answers"] == 3  # one row, said three times
        other = (await call("statements", words="puppies"))["statements"][0]
        sources = await call("sources", id=other["id"])  # in either spelling
        assert len(sources["sources"]) == 2 and sources["answers"] == other["count"] == 2
        named = {q["name"]: q for q in (await call("queries"))["queries"]}
        assert {p["name"] for p in named["shared"]["parameters"]} >= {"group", "other"}
        rows = await call("query", name="most_repeated", parameters={"limit": 2})
        assert rows["rows_found"] == 2 and rows["rows"][0]["object"] == "hard work"
        answer = await call("ask", question="What do women love?")
        assert [s["object"] for s in answer["statements"]] == ["hard work"]

    in_session(small, what)
    assert sha256(Path(small).read_bytes()).digest() == before


@pytest.mark.integration
@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("groups", {"run": "smal"}, "small"),
        ("statements", {"group": "Womn"}, "Women"),
        ("statements", {"limit": 0}, "1 to 200"),
        ("sources", {"id": "nothing"}, "no statement"),
        ("beliefs", {}, "was not probed by names"),
        ("query", {"name": "mst_negative"}, "most_negative"),
        ("query", {"name": "shared", "parameters": {"nothing": 1}}, "nothing"),
        ("ask", {"question": " "}, "empty"),
        ("statements", {"groups": ["Women"]}, "no argument 'groups' of statements .*group"),
        ("statements", {"contains": "kind"}, "choose from run, group, words, limit"),
        ("query", {"name": "most_negative", "params": {"run": "small"}}, "parameters"),
        ("beliefs", {"group": "Womn"}, "Women"),
    ],
)
def test_a_mistake_is_said(small: str, tool: str, given: dict[str, Any], said: str) -> None:
    """Called in this process, as the server's thread calls it."""
    require_modules("mcp")
    from mcp.server.mcpserver.exceptions import ToolError

    from kgbias.cli.mcp import build_server

    def called() -> None:
        with kgbias.open(small) as study:
            asyncio.run(build_server(study).call_tool(tool, given))

    with pytest.raises(ToolError, match=said):
        apart(called)


@pytest.mark.integration
@pytest.mark.slow  # see tests/contract/conftest.py
def test_a_neo4j_store_tells_an_agent_the_same(small: str, empty_neo4j: str) -> None:
    require_modules("mcp", "neo4j")
    from kgbias.cli.mcp import build_server

    def told(url: str) -> list[Any]:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("runs", {}),
            ("groups", {"every": True}),
            ("statements", {}),
            ("query", {"name": "most_negative"}),
        ]
        with kgbias.open(url) as study:
            made = build_server(study)
            return [asyncio.run(made.call_tool(*each)).structured_content for each in asked]

    with kgbias.open(small) as study:
        study.store.push(empty_neo4j)
    assert apart(lambda: told(small)) == apart(lambda: told(empty_neo4j))
