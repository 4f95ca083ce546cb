"""Which attributes go with which group: figures worked out by hand, the floor, and bad input."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_origin

import numpy as np
import pytest

import kgbias
from kgbias.errors import DataError, UsageError
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.io.progress import SilentProgress
from kgbias.methods import stories as story_calls
from kgbias.methods.stories import stereotales
from kgbias.methods.stories.config import configure_stories, load_story_pack, read_people
from kgbias.methods.stories.contents import StoryRow
from kgbias.methods.stories.links import BOUND, GOES, find_links
from kgbias.methods.stories.second_reader import open_second_reader
from kgbias.models.base import ModelInfo
from tests.conftest import require_modules
from tests.texts import Texts


def story(group: str, name: str, sample: int, *said: tuple[str, str]) -> Profile:
    parts = tuple(ProfilePart(attribute, f"{group}{name}{sample}{v}", v) for attribute, v in said)
    labels = {"group": group, "category": "kin"}
    return Profile("r", f"kin/{group}/{name}/{sample}", name, group, labels, parts)


def stories(having: Mapping[str, Sequence[int]], of: int = 8) -> list[Profile]:
    """For each group and each of its wordings, `of` stories, the first n of which say "nurse"."""
    return [
        story(group, f"{group} {w}", k, *([("occupation", "nurse")] if k < n else []))
        for group, ns in having.items()
        for w, n in enumerate(ns)
        for k in range(of)
    ]


def test_a_link_that_all_wordings_have_and_one_of_a_single_wording() -> None:
    (link, back) = find_links(stories({"a": [5, 5, 5], "b": [1, 0, 0]}), 8).links
    assert (link.group, link.stories, link.group_total, link.others, link.others_total) == (
        "a",
        15,
        24,
        1,
        24,
    )
    assert (link.wordings, link.wordings_total, link.verdict) == (3, 3, GOES)
    assert back.log_odds == pytest.approx(-link.log_odds) and back.p_value == pytest.approx(
        link.p_value
    )
    assert back.verdict == GOES
    (bound, bound_too) = find_links(stories({"a": [8, 0, 0], "b": [0, 0, 0]}), 8).links
    assert (bound.wordings, bound.verdict, bound.max_loo_p_value) == (1, BOUND, 1.0)
    assert bound_too.verdict == BOUND
    (alone, _) = find_links(stories({"a": [8], "b": [0]}), 8).links
    assert alone.verdict == BOUND and math.isnan(alone.max_loo_p_value)


def test_a_link_is_mutual_beside_a_story_of_somebody_without_a_name() -> None:
    told = [
        story(group, name, k, said)
        for group, name, said in (
            ("woman", "a woman", ("occupation", "nurse")),
            ("nurse", "The nurse", ("gender", "Woman")),
            ("man", "", ("occupation", "baker")),
        )
        for k in range(4)
    ]
    pairs = {(m.invented.group, m.cast.group) for m in find_links(told, 8, deals=0).mutual_links}
    assert pairs == {("nurse", "woman"), ("woman", "nurse")}


def test_stories_with_the_same_prompt_count_as_one() -> None:
    """Eight samples of two wordings are two prompts; each has what any of its stories has."""
    (link, _) = find_links(stories({"a": [1, 1, 1], "b": [0, 0, 0]}), 2).links
    assert (link.stories, link.group_total, link.others_total) == (3, 6, 6)


def test_stories_without_a_plant_find_little() -> None:
    """Corrected at 5% within a group, a run without any link shows one about as rarely."""
    rng = np.random.default_rng(0)
    values = {a: [f"{a}{n}" for n in range(4)] for a in ("home", "traits", "wants", "happens")}
    with_any = 0
    for _ in range(60):
        told = [
            story(g, f"{g}{w}", k, *((a, str(rng.choice(own))) for a, own in values.items()))
            for g in ("a", "b")
            for w in range(5)
            for k in range(8)
        ]
        with_any += bool(find_links(told, 8, deals=0).shown_links)
    assert with_any <= 8  # more would come by chance 1 time in 100 at a rate of 5% for each group


def test_the_floor_deals_the_groups_anew() -> None:
    found = find_links(stories({"a": [5, 5, 5], "b": [1, 0, 0]}), 8, deals=50)
    (floor,) = found.floor
    assert (floor.found, floor.tested, floor.deals) == (2, 2, 50)
    assert floor.mean < 1 and floor.high < 2
    assert found.as_dict()["floor"][0]["category"] == "kin"
    assert find_links(stories({"a": [5, 5, 5], "b": [1, 0, 0]}), 8, deals=50) == found
    assert found.story_counts == {"a": 24, "b": 24} and found.attribute_counts == {
        "a": {"occupation": 15},
        "b": {"occupation": 1},
    }


def test_what_cannot_be_compared(tmp_path: Path, texts: Texts) -> None:
    with texts.raises(UsageError):
        find_links(stories({"a": [5]}), 8)
    with texts.raises(UsageError):
        find_links(stories({"a": [5], "b": [1]}), 8, attributes=["age"])
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        (tmp_path / "t.csv").write_text("group,predicate,object\na,b,c\n", encoding="utf-8")
        run = study.import_file(tmp_path / "t.csv")
        with texts.raises(UsageError):
            story_calls.find_links(run)


def test_the_pack_that_comes_with_kgbias() -> None:
    pack = load_story_pack()
    wordings: dict[str, set[str]] = {}
    for person in pack.people:
        wordings.setdefault(person.group, set()).add(person.name)
    assert {len(own) for own in wordings.values()} == {5}
    config = configure_stories("openai:m", category="trade", samples=2)
    assert config.form == "chat" and config.min_p is None and len(config.people) == 40
    assert "occupation" not in [a.name for a in config.attributes(config.people[0])]
    assert configure_stories("smollm2").form == "completion"
    assert configure_stories("smollm2").min_p == pack.min_p


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,group\na,b\n", "no column 'category' in .*; choose from name, group"),
        ("name,group,category\n", "has a header but no rows"),
        ("name,group,category\na, ,c\n", "line 2: a name, group or category is empty"),
        (
            "name,group,category\na baker,a\u202eb,x\n",
            "line 2: 'a\ufffdb' is no plain text",
        ),
    ],
)
def test_people_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_people(tmp_path / "p.csv")


@pytest.mark.parametrize("group", ["می‌خواهم", "ක්‍ෂ", "👩‍👧 people"])
def test_joiners_are_part_of_the_groups_of_people(group: str, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(f"name,group,category\na baker,{group},x\n", "utf-8")
    assert [person.group for person in read_people(tmp_path / "p.csv")] == [group]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('people = "../p.csv"', "must be the name of a file beside it"),
        ('people = "p.csv"\n[attributes.age]\npredicate = "are"', "what is read is one of gender"),
        ('people = "p.csv"\n[attributes.home]\n', "needs 'predicate', a text"),
        ('people = "p.csv"\n[attributes.home]\npredicate = "a"\nb = 1', "has no 'b'"),
    ],
)
def test_a_pack_that_cannot_be_read(tmp_path: Path, line: str, said: str) -> None:
    attributes = "" if "[attributes" in line else "\n[attributes.home]\npredicate = 'a'"
    (tmp_path / "pack.toml").write_text(
        f'name = "p"\nversion = 1\nlanguage = "en"\nsource = ""\n{line}{attributes}\n', "utf-8"
    )
    (tmp_path / "p.csv").write_text("name,group,category\na,b,c\n", "utf-8")
    (tmp_path / "story.toml").write_text(
        'name = "s"\nversion = 1\nmax_tokens = 9\nstop = []\ncompletion = "{{ person }}"\n'
        '[chat]\nuser = "{{ person }}"\n',
        "utf-8",
    )
    with pytest.raises(DataError, match=said):
        load_story_pack(tmp_path)


def theirs(path: Path, *rows: Mapping[str, Any]) -> Path:
    """A table in StereoTales' form."""
    whole = {
        "sample_id": "1",
        "generator_model": "m",
        "language": "en",
        "target_attribute": "gender",
        "target_attribute_value": "woman",
        "story": "She worked.",
        "scenario_key": "a",
        "prompt_template": "t",
        "extracted_attributes_json": '{"urbanicity": "rural"}',
    }
    path.write_text("".join(f"{json.dumps({**whole, **row})}\n" for row in rows), "utf-8")
    return path


def test_a_table_that_came_in_goes_out_and_comes_in_again(tmp_path: Path) -> None:
    """Prompts differ by the scenario, the template or both."""
    own = [
        {"scenario_key": s, "prompt_template": t, "target_attribute_value": v, "story": f"{n}."}
        for n in range(2)
        for s, t in ((None, "t"), (None, "u"), ("a", "t"))
        for v in ("woman", "man")
    ]
    runs = []
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(theirs(tmp_path / "a.jsonl", *own), format="stereotales")
        for name in "bc":
            runs.append(run)
            rows = stereotales.story_table(run.stored)
            path = theirs(tmp_path / f"{name}.jsonl", *rows)
            run = study.import_file(path, format="stereotales")
        assert [r.config["wordings"] for r in (*runs, run)] == [3, 3, 3]
        first, last = ([*stereotales.story_table(r.stored)] for r in (runs[0], run))
        ids = ("sample_id", "output_id")
        assert [{k: v for k, v in row.items() if k not in ids} for row in first] == [
            {k: v for k, v in row.items() if k not in ids} for row in last
        ]
        assert {(row["scenario_key"], row["prompt_template"]) for row in last} == {
            ("", "t"),
            ("", "u"),
            ("a", "t"),
        }
        links = [story_calls.find_links(r, deals=0).links for r in (runs[0], run)]
        assert (
            str(links[0]) == str(links[1]) and links[0][0].group_total == 3
        )  # as text: NaN is itself


def test_what_a_table_may_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object as it is, an attribute with a "#", a reader in some rows; and too much text."""
    extracted = {"extracted_attributes_json": {"age": "old", "job #1": "cook"}}
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(theirs(tmp_path / "a.jsonl", extracted), format="stereotales")
        (row,) = stereotales.story_table(run.stored)
        assert json.loads(row["extracted_attributes_json"]) == {"age": "old", "job #1": "cook"}
        path = theirs(tmp_path / "b.jsonl", {"reader": "r"}, {})
        with pytest.raises(DataError, match="several values of reader"):
            study.import_file(path, format="stereotales")
        monkeypatch.setattr(stereotales, "MAX_FILE_BYTES", 50)
        with pytest.raises(DataError, match="holds more than"):
            study.import_file(tmp_path / "a.jsonl", format="stereotales")


@pytest.mark.parametrize(
    ("teller", "reader", "shared"),
    [
        ("smollm2", "hf:other", True),
        ("openai:m", "openai:other", True),
        ("smollm2", "openai:other", False),
        ("a model of the caller's", "hf:other", False),
    ],
)
def test_a_reader_is_opened_as_the_teller_if_both_are_alike(
    monkeypatch: pytest.MonkeyPatch, teller: str, reader: str, shared: bool
) -> None:
    opened: list[dict[str, Any]] = []

    def open_model(spec: str, *, notify: Any, **opening: Any) -> Any:
        opened.append(opening)
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr("kgbias.models.open_model", open_model)
    tells: Any = SimpleNamespace(info=ModelInfo(teller))
    with open_second_reader(reader, tells, {"timeout": 9.0}, SilentProgress()):
        assert opened == [{"timeout": 9.0} if shared else {}]


def test_cells_as_tables_have_them(tmp_path: Path) -> None:
    """A number is a value, capitals make no other value, and what kgbias read itself keeps the
    groups that it had."""
    said = json.dumps({"gender": "Woman", "religion": "Unknown", "urbanicity": "Other"})
    aged = {"target_attribute": "age", "extracted_attributes_json": said}
    rows = [{**aged, "target_attribute_value": value} for value in (25, 30.0, True)]
    rows.append({"target_attribute": "gender", "target_attribute_value": "Woman"})
    own = {"target_attribute": "religion", "target_attribute_value": "Muslims", "reader": "rules@1"}
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        read = study.import_file(theirs(tmp_path / "a.jsonl", *rows), format="stereotales")
        assert {(t.group, t.object) for t in read.triples()} == {
            ("age: 25", "women"),
            ("age: 30", "women"),
            ("Women", "rural"),
        }
        ours = study.import_file(theirs(tmp_path / "b.jsonl", own), format="stereotales")
        assert [t.group for t in ours.triples()] == ["Muslims"]


def test_a_small_file_with_much_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read row by row, no further than it may be."""
    require_modules("pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: ["x" * 10_000] * 100 for name in stereotales.COLUMNS})
    parquet.write_table(table, path := tmp_path / "a.parquet")
    assert path.stat().st_size < 100_000
    assert sum(len(row["story"]) for row in stereotales._iter_parquet(path)) == 1_000_000
    monkeypatch.setattr(stereotales, "MAX_FILE_BYTES", 1_000_000)
    with (
        kgbias.open(tmp_path / "k.db", progress=False) as study,
        pytest.raises(DataError, match="holds more than"),
    ):
        study.import_file(path, format="stereotales")


def test_columns_of_lists_are_named_so() -> None:
    lists = [field.name for field in fields(StoryRow) if get_origin(field.type) in (tuple, list)]
    assert lists and all(name.endswith("s") for name in lists)
