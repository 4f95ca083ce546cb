"""A strategy is one class in the registry: its prompts are asked, its template is in the id of the
run and in the price."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from kgbias.cli.crawl import crawl as crawl_command
from kgbias.crawl import strategies
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.plans import plan_expansion
from kgbias.crawl.seeds import SeedCategory, choose_seeds
from kgbias.crawl.strategies import EXPANSIONS, ExampleDraw, TriplePool
from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Category, Group, Triple
from kgbias.io.resources import resource_path
from kgbias.packs import Pack, load_pack
from tests.scripted_model import ScriptedModel
from tests.texts import Texts
from tests.unit.test_crawl import talkative

GENDER = tuple(choose_seeds("any", ["gender"]))


class Repeat:
    """Shows one triple of another group and asks for its predicate."""

    name, template, prompts = "repeat", "repeat", 0

    def draw(
        self,
        pool: TriplePool,
        group: Group,
        shots: int,
        rng: Random,
        asked_predicate: str | None = None,
    ) -> ExampleDraw | None:
        examples = pool.examples_for(group)
        shown = rng.sample(examples, min(1, len(examples)))
        return (shown[0].predicate, shown) if shown else None


@pytest.fixture
def repeat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pack:
    """The published prompts with those of a third strategy."""
    folder = tmp_path / "prompts"
    shutil.copytree(resource_path("prompts", "salinas-2023"), folder)
    text = (folder / "object.toml").read_text("utf-8")
    (folder / "repeat.toml").write_text(text.replace('name = "object"', 'name = "repeat"'))
    monkeypatch.setitem(EXPANSIONS, "repeat", Repeat())
    return load_pack(folder)


def small(**more: object) -> CrawlConfig:
    return CrawlConfig(
        seeds=GENDER,
        samples=2,
        iterations=2,
        predicate_prompts=1,
        object_prompts=1,
        **more,  # type: ignore[arg-type]
    )


def test_a_third_strategy_crawls(store: SQLiteStore, repeat: Pack) -> None:
    config = small(pack=repeat, strategy_prompts={"repeat": 2})
    result = crawl(config, ScriptedModel(talkative), store)
    said = [g for g in store.generations(result.run.id) if g.strategy == "repeat"]
    assert len(said) == 3 * 2 * 2 and config.place_count == 3 * (4 * 2 + 2 * (1 + 1 + 2))
    assert {g.template for g in said} == {"repeat@1:completion"}
    assert all(len(g.shown) == 1 for g in said)
    assert result.run.config["prompts"] == {"repeat": 2}
    assert "repeat@1" in result.run.config["templates"]


def test_its_template_and_prompts_are_in_the_id(
    monkeypatch: pytest.MonkeyPatch, repeat: Pack
) -> None:
    without, two, three = (
        small(pack=repeat, strategy_prompts=p).as_dict() for p in ({}, {"repeat": 2}, {"repeat": 3})
    )
    assert len({json.dumps(d, sort_keys=True) for d in (without, two, three)}) == 3
    assert list(without["templates"]) == ["initialise@1", "predicate@1", "object@1"]
    monkeypatch.delitem(EXPANSIONS, "repeat")
    assert small(pack=repeat).as_dict() == without  # a strategy that is not used changes no id


def test_its_prompts_are_in_the_price(
    monkeypatch: pytest.MonkeyPatch, repeat: Pack, tmp_path: Path
) -> None:
    monkeypatch.setattr(Repeat, "prompts", 5)
    asked = CliRunner().invoke(
        crawl_command,
        [
            *("--model", "reference", "--category", "peoples", "--dry-run", "--json"),
            *("--prompts", str(tmp_path / "prompts")),
        ],
        catch_exceptions=False,
    )
    price = json.loads(asked.stdout)
    rows = {row["stage"]: row["requests"] for row in price["stages"]}
    assert rows["repeat"] == price["groups"] * 4 * 5 and rows["repeat"] * 2 == rows["object"]


def test_prompts_of_no_strategy(texts: Texts) -> None:
    for name in ("nothing", "object"):
        with texts.raises(UsageError):
            small(strategy_prompts={name: 3})


def pool_of(groups: int) -> TriplePool:
    """A pool in which each group has eight statements, some with predicates of their own."""
    category = SeedCategory(Category("people"), "", tuple(f"People {n}" for n in range(groups)))
    said = [
        Triple(f"People {n}", predicate, f"food {n}")
        for n in range(groups)
        for predicate in ("are", "are", "like", "like", "fear", "make", "eat", f"know {n % 7}")
    ]
    return TriplePool("none", category, said)


def test_examples_by_trial_are_drawn_as_from_a_shuffle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large pool: the same chances, of predicates and of groups, for one tenth of the work."""
    pool, seen = pool_of(12), {}
    for most in (0, strategies.MAX_SHUFFLED_TRIPLES):
        monkeypatch.setattr(strategies, "MAX_SHUFFLED_TRIPLES", most)
        for strategy in EXPANSIONS.values():
            found: Counter[tuple[str, str]] = Counter()
            for number in range(1_000):
                drawn = strategy.draw(pool, pool.groups[3], 3, Random(number))
                assert drawn and len({t.group for t in drawn[1]}) == len(drawn[1])
                assert "People 3" not in {t.group for t in drawn[1]}
                found.update((t.group, t.predicate) for t in drawn[1])
            seen[most, strategy.name] = found
    for name in EXPANSIONS:
        one, other = seen[0, name], seen[10_000, name]
        both = set(one) | set(other)
        shares = [(one[x] / one.total(), other[x] / other.total()) for x in both]
        assert (
            sum(abs(a - b) for a, b in shares) / 2 < 0.12
        )  # as two samples from one source differ
    monkeypatch.setattr(strategies, "MAX_SHUFFLED_TRIPLES", 0)
    few = pool_of(5)  # of which only the group asked about has this predicate
    assert EXPANSIONS["object"].draw(few, few.groups[3], 3, Random(0), "know 3") is None
    assert EXPANSIONS["object"].draw(few, few.groups[2], 3, Random(0), "know 3") is not None


class Counted(list[Triple]):
    """Triples that count how many of them were looked at."""

    looks = 0

    def __iter__(self) -> Iterator[Triple]:
        self.looks += len(self)
        return super().__iter__()

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)


def test_a_round_of_more_groups_takes_no_more_work_a_prompt() -> None:
    """Rounds of a large pool are planned in a time that grows as the number of groups does."""
    looked = []
    for groups in (1_300, 2_600):
        pool = pool_of(groups)
        pool.triples = count = Counted(pool.triples)
        config = CrawlConfig(seeds=(pool.category,), predicate_prompts=1, object_prompts=1)
        plans = list(plan_expansion(config, pool, 1))
        looked.append(count.looks / len(plans))
    assert looked[1] < 1.2 * looked[0]
