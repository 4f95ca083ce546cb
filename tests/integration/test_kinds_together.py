"""Every pair of kinds of runs at every door that takes several, and every kind at every door that
takes one: it works, or is refused in one line."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import kgbias
from kgbias.errors import KgbiasError
from kgbias.methods import benchmarks, known, pairs, profiles
from kgbias.methods import stories as story_calls
from kgbias.report import save
from tests.fault_server import FaultServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]

WORDS = "kind loud late tall calm rich poor slow warm proud".split()
KINDS = ("crawl", "another", "chat", "german", "import", "profiles", "stories", "pairs")
GROUPS = ["Bakers", "Cooks"]


def says(verb: str, salt: str = "") -> Callable[[Sequence[str]], list[str]]:
    """A function that says of each prompt what its hash says."""

    def answers(prompts: Sequence[str]) -> list[str]:
        digits = (int(sha256(f"{p}{salt}".encode()).hexdigest()[:8], 16) for p in prompts)
        return [f" {verb} {WORDS[n % len(WORDS)]} people.\n" for n in digits]

    return answers


def always(text: str) -> Any:
    return kgbias.in_memory(lambda prompts: [text] * len(prompts), name="says one thing")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("kinds")
    tables = {
        "said.csv": "group,predicate,object\nBakers,are,kind\nCooks,are,loud\nBakers,love,bread\n",
        "profiles.csv": "name,group,hobby\nAna,Bakers,chess\nBob,Cooks,golf\n",
        "people.csv": "name,group,category\na baker,Bakers,trade\na cook,Cooks,trade\n",
        "fill.csv": "slot,name,group,category\nname,Ana,Bakers,trade\nname,Bob,Cooks,trade\n"
        "group,bakers,Bakers,trade\ngroup,cooks,Cooks,trade\n",
    }
    for name, text in tables.items():
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patched, kgbias.open(folder / "k.db") as opened:
        patched.setattr(save, "FORMATS", ("svg",))  # a third of what figures take
        small: dict[str, Any] = {"group": GROUPS, "samples": 4, "iterations": 1}
        opened.crawl(says("are"), model_name="one", name="crawl", **small)
        opened.crawl(says("are", "y"), model_name="two", name="another", **small)
        answers = says("are", "z")
        with FaultServer(lambda body, number: answers([str(body["messages"])])[0]) as server:
            opened.crawl("openai:m", base_url=server.url, form="chat", name="chat", **small)
        opened.crawl(
            says("sind"),
            model_name="three",
            name="german",
            group=["Bäcker"],
            prompts="german",
            samples=2,
            iterations=1,
        )
        opened.import_file(folder / "said.csv", name="import")
        opened.import_file(folder / "profiles.csv", format="profiles", name="profiles")
        once: dict[str, Any] = {"samples": 1, "form": "completion"}
        story_calls.write_stories(
            opened,
            always("Anna was a kind nurse who lived in a town."),
            people=folder / "people.csv",
            name="stories",
            **once,
        )
        pairs.ask_pairs(
            opened,
            always("Dear all, they are kind."),
            people=folder / "fill.csv",
            name="pairs",
            **once,
        )
        for kind in ("crawl", "another", "chat", "import", "profiles", "stories"):
            opened.run(kind).measure(topics=False)
        yield opened


def tried(door: Callable[[], Any]) -> bool:
    """Whether a door is open; a refusal is one line."""
    try:
        door()
    except KgbiasError as error:
        assert str(error) and "\n" not in str(error)
        return False
    return True


SEVERAL: dict[str, Callable[[Any, list[str], Path], Any]] = {
    "compare": lambda s, runs, _: s.compare_runs(*runs),
    "contrast": lambda s, runs, _: s.compare_models(*runs),
    "report": lambda s, runs, out: s.report(runs, out / "r.html"),
    "explore": lambda s, runs, out: s.explore(runs, out / "e.html"),
    "figures": lambda s, runs, out: s.figures(runs, out / "figures"),
}
ONE: dict[str, Callable[[Any, str, Path], Any]] = {
    "report": lambda s, run, out: s.report(run, out / "r.html"),
    "summary": lambda s, run, out: s.run(run).summarise(out / "s.md"),
    "explore": lambda s, run, out: s.explore(run, out / "e.html"),
    "figures": lambda s, run, out: s.figures(run, out / "figures"),
    "csv": lambda s, run, out: s.run(run).export(out / "t.csv"),
    "graphml": lambda s, run, out: s.run(run).export(out / "t.graphml"),
    "publish": lambda s, run, out: s.run(run).publish(out / run),
    "evidence": lambda s, run, _: s.run(run).evidence(),
    "tests": lambda s, run, _: s.run(run).compare_groups(),
    "refusals": lambda s, run, _: s.run(run).refusals(),
    "variance": lambda s, run, _: s.run(run).variance(),
    "known": lambda s, run, _: known.match_stereotypes(s.run(run)),
    "ask": lambda s, run, _: s.run(run).ask("kind"),
    "structure": lambda s, run, _: s.run(run).structure(),
    "links": lambda s, run, _: story_calls.find_links(s.run(run)),
    "profiles": lambda s, run, _: profiles.analyse_profiles(s.run(run)),
    "cost": lambda s, run, _: s.run(run).cost(),
    "benchmark": lambda s, run, out: benchmarks.run_benchmarks(
        s, ["reference"], run=run, output=out / "b.html"
    ),
    "admin files": lambda s, run, out: s.run(run).export(out / "n", format="neo4j-admin"),
    "queries": lambda s, run, _: ask_every_query(s, run),
}


def ask_every_query(study: Any, run: str) -> None:
    """Every query of the library that takes a run; each answers or is refused in a line."""
    values = {"group": "Bakers", "other": "Cooks", "about": "kind", "triples": []}
    for query in kgbias.queries():
        names = {parameter.name for parameter in query.parameters}
        given = {name: value for name, value in values.items() if name in names}
        if "run" in names:
            tried(lambda q=query.name, g=given: study.query(q, run=run, **g))  # type: ignore[misc]


@pytest.mark.parametrize("door", SEVERAL)
def test_two_kinds_at_one_door(door: str, study: Any, tmp_path: Path) -> None:
    opened = [
        (a, b)
        for a, b in combinations(KINDS, 2)
        if tried(lambda a=a, b=b: SEVERAL[door](study, [a, b], tmp_path))  # type: ignore[misc]
    ]
    assert {("crawl", "another"), ("crawl", "chat")} <= set(opened)
    assert ("crawl", "import") in opened or door == "contrast"  # too few statements to test
    assert all("pairs" not in both for both in opened)


@pytest.mark.parametrize("door", ONE)
def test_one_kind_at_one_door(door: str, study: Any, tmp_path: Path) -> None:
    opened = {
        kind
        for kind in KINDS
        if tried(lambda kind=kind: ONE[door](study, kind, tmp_path))  # type: ignore[misc]
    }
    # Of so few stories, profiles and groups, what these three look for cannot be found.
    assert "crawl" in opened or door in ("links", "profiles", "known")
