"""Seeds: files, names of one group, intersections, and the lists that a model gives."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.seeds import (
    DynamicSeeds,
    as_groups,
    choose_dynamic_category,
    choose_seeds,
    describe_singular,
    find_agreed_names,
    intersect_categories,
    looks_singular,
    published_seeds,
    read_list,
    read_seeds,
    reference_model_seeds,
)
from kgbias.errors import DataError, Interrupted, ModelError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.models.base import Completion, Request
from kgbias.models.budget import Budget
from tests.hostile import HOSTILE_TEXTS
from tests.scripted_model import ScriptedModel


def small(**changes: object) -> CrawlConfig:
    seeds = tuple(choose_seeds("any", ["gender"]))
    config = CrawlConfig(
        seeds=seeds, samples=2, iterations=1, predicate_prompts=2, object_prompts=2
    )
    return replace(config, **changes)  # type: ignore[arg-type]


def test_a_text_file_and_a_toml_file(tmp_path: Path) -> None:
    text = tmp_path / "zodiac.txt"
    text.write_text("# signs\nLeos\nVirgos | People born in September  # two names\n\n", "utf-8")
    (zodiac,) = read_seeds(str(text))
    assert zodiac.category.name == "zodiac" and zodiac.groups == ("Leos", "Virgos")
    assert zodiac.variants == {"Virgos": ("People born in September",)}
    toml = tmp_path / "mine.toml"
    toml.write_text('[job]\nplural = "jobs"\ngroups = ["Bakers"]\n[age]\ngroups = ["Teens"]\n')
    job, age = read_seeds(str(toml))
    assert (job.category.plural, job.prefix) == ("jobs", "Not to be offensive but")
    assert age.category.singular == "age"
    chosen = choose_seeds("any", ["gender"], seed_files=[str(text)])
    assert [s.category.name for s in chosen] == ["zodiac", "gender"]
    both = choose_seeds("any", seed_files=[str(toml)], intersections=["age,job"])
    assert both[-1].groups == ("Teens who are Bakers",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("no.txt", None),
        ("a.txt", b"# nothing\n"),
        ("b.toml", b"[x"),
        ("c.toml", b"[x]\ny = 1"),
        ("d.toml", b"x = 1"),
        ("e.txt", b"\xff\xfe\x00"),
        ("f.toml", b"[x]\ngroups = 5"),
        ("g.toml", b"[x]\ngroups = []"),
        ("h.toml", b""),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as stop:
        read_seeds(str(tmp_path / name))
    assert len(str(stop.value).splitlines()) == 1


def test_names_of_one_group() -> None:
    (nationality,) = choose_seeds("any", ["nationality"], ["Americans | American people", "Finns"])
    assert len(nationality.groups) == 21 and nationality.groups[-1] == "Finns"
    assert nationality.variants == {"American people": ("Americans",)}
    with pytest.raises(UsageError, match="a seed of both"):
        as_groups([*choose_seeds("any", ["religion"]), *choose_seeds("any", (), ["X | Jews"])])


def test_a_prompt_draws_one_of_the_names(store: SQLiteStore) -> None:
    seeds = tuple(choose_seeds("any", (), ["Americans | American people", "Finns"]))
    crawl(small(seeds=seeds, samples=20), ScriptedModel(lambda _: " tea."), store)
    run = store.find_run()
    assert [g.name for g in run.groups] == ["Americans", "Finns"]
    assert run.groups[0].variants == ("American people",)
    first = [g for g in store.generations(run.id) if g.strategy == "initialise"]
    about = [g.prompt for g in first if g.group_id == run.groups[0].id]
    people = sum(p.startswith("American people ") for p in about)
    assert 20 < people < 60 and people + sum(p.startswith("Americans ") for p in about) == 80
    assert {t.group for t in store.triples(run.id)} == {"Americans", "Finns"}


def test_intersections() -> None:
    known = published_seeds()
    women = intersect_categories(known, ["gender", "religion"])
    assert women.category.name == "gender x religion" and len(women.groups) == 36
    assert {"Jewish women", "Muslim men", "Sikh non-binary people"} <= set(women.groups)
    assert women.prefix == "Not to be offensive but"
    assert "Female Jews" in intersect_categories(known, ["religion", "gender"]).groups
    three = intersect_categories(known, ["gender", "ethnicity", "religion"])
    assert len(three.groups) == 252 and "Muslim Black women" in three.groups
    assert intersect_categories(known, ["ethnicity", "nationality"]).prefix == "I'm not racist but"
    for bad in (["gender"], ["gender", "gender"], ["gender", "zodiac"]):
        with pytest.raises(UsageError):
            intersect_categories(known, bad)


@pytest.mark.parametrize(
    ("text", "form", "names"),
    [
        (" Christians\n2. Jews\n3) Sikhs\n", "completion", ["Christians", "Jews", "Sikhs"]),
        (
            "Here is a list:\n\n1. **Christians**: those who\n2. Jews (an old faith)\n\nNote that "
            "1.",
            "chat",
            ["Christians", "Jews"],
        ),
        ("- Leos\n- Virgos - the sixth\n* Aries.", "chat", ["Leos", "Virgos", "Aries"]),
        ("Sure: Leos, Virgos, and Aries.", "chat", ["Leos", "Virgos", "Aries"]),
        ("I'm sorry, but I cannot do that.", "completion", []),
        ("There are many of them", "chat", []),
        ("", "completion", []),
        (" a very long entry that is a sentence\n2. Leos", "completion", ["Leos"]),
        ("1. Leos\n\nI hope this helps!\n- Not a group", "chat", ["Leos"]),
    ],
)
def test_lists(text: str, form: str, names: list[str]) -> None:
    assert read_list(text, form=form) == names  # type: ignore[arg-type]


def test_a_cut_list_loses_its_last_entry() -> None:
    assert read_list(" Leos\n2. Virgos\n3. Ari", is_cut=True) == ["Leos", "Virgos"]
    assert read_list(" Leos\n2. Virgos\n3. Aries\n", is_cut=True) == ["Leos", "Virgos", "Aries"]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_lists(text: str) -> None:
    for form in ("completion", "chat"):
        for name in read_list(f"1. {text}\n2. {text}", form=form):  # type: ignore[arg-type]
            assert name.strip() == name and name.isprintable() and len(name.split()) <= 5


def test_agreed() -> None:
    lists = [["Jews", "Sikhs", "jews"], ["JEWS", "Leos"], ["Sikhs", "Jews."], ["Leos"], []]
    assert find_agreed_names(lists, 3) == {"Jews": 3}
    assert find_agreed_names(lists, 2) == {"Jews": 3, "Sikhs": 2, "Leos": 2}


def lister(request: Request) -> str:
    """Lists four groups in any order, and now and then a fifth."""
    assert isinstance(request.prompt, str)
    if not request.prompt.startswith("Provide a list of common"):
        return " make\nA: tea" if request.prompt.endswith("#") else " tea."
    rng = Random(request.seed)
    names = ["Leos", "Virgos", "Aries", "Americans"]
    rng.shuffle(names)
    if rng.random() < 0.2:
        names.insert(1, f"Others {rng.random()}")
    return " " + "\n".join(f"{n}. {name}" for n, name in enumerate(names, 1))[3:]


def test_dynamic_and_hybrid_seeds(store: SQLiteStore) -> None:
    category = choose_dynamic_category("any", "sign", "signs").with_groups(
        ["Pisces", "American people|Americans"]
    )
    config = small(seeds=(), dynamic=DynamicSeeds(category))
    model = ScriptedModel(lister)
    result = crawl(config, model, store)
    run = store.find_run()
    # Named ones first; "Americans" is the group that has that name already.
    assert [g.name for g in run.groups][-1] == "Pisces"
    assert {g.name for g in run.groups} == {"Leos", "Virgos", "Aries", "Pisces", "American people"}
    assert sum("signs" in str(r.prompt) for r in model.requests) == 5
    named = run.config["named_by_model"]["sign"]
    assert named["lists"]["Leos"] == 5 and len(named["answers"]) == 5
    assert set(store.answers(named["answers"])) == set(named["answers"])
    again = crawl(config, model, store)
    assert again.asked_count == 0 and again.run.id == result.run.id


def test_dynamic_seeds_go_on_after_a_stop(store: SQLiteStore) -> None:
    config = small(dynamic=DynamicSeeds(choose_dynamic_category("any", "sign", "signs")))
    model = ScriptedModel(lister)
    with pytest.raises(Interrupted, match="running this again continues"):
        crawl(config, model, store, budget=Budget(max_requests=3))
    crawl(config, model, store)
    assert len({r.seed for r in model.requests}) == len(model.requests)
    assert len(store.find_run().groups) == 3 + 4


def test_dynamic_seeds_that_fail(store: SQLiteStore) -> None:
    config = small(seeds=(), dynamic=DynamicSeeds(choose_dynamic_category("any", "religion", None)))
    with pytest.raises(UsageError, match="agree on no religion"):
        crawl(config, ScriptedModel(lambda _: "I cannot do that."), store)
    broken = ScriptedModel(lambda _: Completion("", "error", error="no route"), name="broken")
    with pytest.raises(ModelError, match="run it again"):
        crawl(config, broken, store)
    with pytest.raises(UsageError, match="`plural`"):
        choose_dynamic_category("any", "zodiac", None)
    with pytest.raises(UsageError, match="`seed_agree` must be"):
        DynamicSeeds(choose_dynamic_category("any", "religion", None), prompts=2, agree=3)


def seeds_of(tmp_path: Path, name: str, content: str) -> list[tuple[str, tuple[str, ...]]]:
    (tmp_path / name).write_text(content, "utf-8")
    return [(s.category.name, s.groups) for s in read_seeds(str(tmp_path / name))]


def test_tables_of_groups(tmp_path: Path) -> None:
    table = "Group,category,variants,notes\nBakers,trade,Baking staff | Bread makers,x\n"
    table += "Teens,age,,\n"
    assert seeds_of(tmp_path, "a.csv", table) == [("trade", ("Bakers",)), ("age", ("Teens",))]
    (trade, _) = read_seeds(str(tmp_path / "a.csv"))
    assert trade.variants == {"Bakers": ("Baking staff", "Bread makers")}
    trades = [("trades", ("Bakers", "Nurses"))]
    assert seeds_of(tmp_path, "trades.csv", "name\nBakers\nNurses\n") == trades
    assert seeds_of(tmp_path, "trades.tsv", "n\tname\n1\tBakers\n2\tNurses\n") == trades
    assert seeds_of(tmp_path, "trades.json", '["Bakers", {"name": "Nurses"}]') == trades
    assert seeds_of(tmp_path, "trades.jsonl", '"Bakers"\n\n{"group": "Nurses"}\n') == trades
    rows = '[{"group": "Nurses", "category": "job", "variants": ["Nursing staff"]}]'
    assert seeds_of(tmp_path, "b.json", rows) == [("job", ("Nurses",))]
    assert read_seeds(str(tmp_path / "b.json"))[0].variants == {"Nurses": ("Nursing staff",)}


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", "profession,n\nBakers,3\n", "no column 'group' or 'name'.* 'profession', 'n'"),
        ("a.csv", "group,categroy\nBakers,trade\n", "'categroy' .did you mean category"),
        ("a.csv", "group,name\nBakers,x\n", "both group and name"),
        ("a.csv", "group\n", "names no groups"),
        ("a.csv", "", "names no groups"),
        ("a.csv", "group,category\nBakers,\n", "line 2: the category is empty"),
        ("a.csv", "group,category\n,trade\n", "line 2: the group is empty"),
        ("a.csv", "group\nBakers\nbakers\n", "'bakers' is there twice"),
        ("a.csv", "group,variants\nBakers,Nurses\nNurses,\n", "'Nurses' is there twice"),
        ("a.json", '{"trade": "Bakers"}', "must hold lists of texts"),
        ("a.json", '{"trade": [["baker", "bakers"]]}', "trade, entry 1: .* is no text"),
        ("a.json", "[1]", "entry 1: 1 is no text"),
        ("a.json", '[{"trade": "Bakers"}]', "its columns are 'trade'"),
        ("a.json", '[{"group": 3}]', "entry 1: the group is no text"),
        ("a.json", "[", "is not JSON"),
        ("a.txt", "Bakers,trade\n", "has a comma"),
        ("a.txt", "Bakers\ttrade\n", "tab-separated, and has no column 'group'"),
        ("a.txt", "BAKER   3.3   3.3   1\nCOOK   2.1   5.4   2\n", "columns of a fixed width"),
        ("a.txt", "['woman', 'women']\n", "no text of one value a line"),
        ("a.txt", "[subj] Christian\n", "this is UnQover"),
        ("a.txt", "<html>\n<body>\n", "is an HTML page"),
        ("a.txt", "<i>Bakers</i>\n", "is no text of one value"),
        ("a.txt", "%PDF-1.4\n", "is a PDF"),
        ("a.txt", "Bakers\nNurses\nBakers\n", "'Bakers' is there twice"),
        ("a.txt", "A" * 500, "has 500 characters"),
        ("a.txt", "\x00\x01", "the byte 0x00"),
        ("a.txt", "12\n", "has no letter"),
        ("a.toml", '[x]\ngroups = ["Bakers", "bakers"]', "'bakers' is there twice"),
        ("a.zip", "PK\x03\x04", "a damaged archive"),
    ],
)
def test_what_is_no_list_of_groups_is_refused(
    tmp_path: Path, name: str, content: str, why: str
) -> None:
    with pytest.raises(DataError, match=why) as stop:
        try:
            seeds_of(tmp_path, name, content)
        except UsageError as error:  # as for `group`
            raise DataError(str(error)) from error
    assert len(str(stop.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("categories", "groups", "why"),
    [
        (["Gender"], [], "no category 'Gender' .did you mean gender"),
        (["genders"], ["Trans women"], "would be a new category: did you mean gender"),
        (["gender,religion"], [], "several categories: give each by itself"),
        ([], ["Women, Men"], "has a comma"),
        ([], ["W" * 101], "has 101 characters"),
        ([], ["7"], "needs letters"),
    ],
)
def test_slips_in_whom_to_ask_about(categories: list[str], groups: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        choose_seeds("any", categories, groups)


def test_a_name_of_one_person_is_asked_about_with_a_remark() -> None:
    """No group that ships looks like one person; "nurse" does, and a dry run says so."""
    shipped = [*published_seeds().values(), *reference_model_seeds().values()]
    assert not [name for seed in shipped for name in seed.groups if looks_singular(name)]
    for name in ("nurse", "Muslim", "a police officer", "Person from France", "actress"):
        assert looks_singular(name), name
    for name in ("Nurses", "the deaf", "Women who code", "Chinese", "Police", "Teachers, retired"):
        assert not looks_singular(name), name
    given = ["crawl", "--model", "smollm2", "--group", "nurse", "--group", "Pilots", "--dry-run"]
    found = CliRunner().invoke(cli, given)
    assert found.exit_code == 0 and "“nurse are ...”" in found.stderr
    assert "plural" not in CliRunner().invoke(cli, [*given, "--prompts", "german"]).stderr


TRADES = (
    "group,category,variants,person\n"
    "Bakers,work,Bread makers,a baker\nGlaziers,work,,a glazier\nWomen,gender,,\n"
)


def test_a_file_of_groups_may_have_a_column_of_persons(tmp_path: Path) -> None:
    """Which stories and pairs read."""
    path = tmp_path / "trades.csv"
    path.write_text(TRADES)
    crawled = kgbias.price("smollm2", seeds=str(path)).groups_by_category
    assert crawled == {"work": ("Bakers", "Glaziers"), "gender": ("Women",)}


def test_of_many_singular_names_the_first_are_listed() -> None:
    line = describe_singular(f"Folk{n}" for n in range(4_275))
    assert line.startswith("Folk0, Folk1,") and "Folk9 and 4265 more: prompts" in line
