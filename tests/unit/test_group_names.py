"""The names of groups: shipped ones, one's own, invented ones, and their forms and roots."""

import csv
import gzip
import json
import tomllib
from collections import Counter
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from kgbias.crawl.seeds import choose_seeds, published_seeds
from kgbias.errors import DataError
from kgbias.evidence import names
from kgbias.evidence.indicators import (
    Indicators,
    placebo_indicators,
    read_indicators,
    shipped_indicators,
)
from kgbias.evidence.names import (
    MIN_NAMES,
    group_names,
    list_shipped_groups_besides,
    nonce_names,
    placebo_names,
    root_as_written,
    unique_roots,
)
from kgbias.graph.types import Group, GroupName
from tests.texts import Texts

CATEGORIES = ("gender", "ethnicity", "nationality", "religion")
GROUPS = {c: published_seeds()[c].as_groups() for c in CATEGORIES}
ELVES = Group("Elves", "people")
NONCE = ["Rodrorri people", "Vusvaris", "Tandrevi Americans"]
DOCS = Path(__file__).parents[2] / "docs/methods/evidence.md"


def texts(found: tuple[GroupName, ...]) -> list[str]:
    return [name.text for name in found]


def own(tmp_path: Path, table: str) -> Indicators:
    path = tmp_path / "own.toml"
    path.write_text(
        f"source = 'made up'\n[[group]]\nname = 'Elves'\n[group.paraphrases]\n{table}\n"
    )
    return read_indicators(path)


def test_every_shipped_group_has_eight_names_of_its_own() -> None:
    of = {g.name: group_names(g, shipped_indicators()) for c in CATEGORIES for g in GROUPS[c]}
    assert len(of) == 42
    for group, found in of.items():
        assert len(found) == 8 >= MIN_NAMES and not any(name.mark for name in found)
        assert found[0].text.casefold() == group.casefold()
        assert all(name.form.replace("{}", root_as_written(name)) == name.text for name in found)
    for c in CATEGORIES:  # a name means one group of its category
        said = [name.id for g in GROUPS[c] for name in of[g.name]]
        assert len(set(said)) == len(said)
    for name in "Men", "Women", "Non-binary people", "Black people", "White people", "Muslims":
        assert len(unique_roots(of[name])) >= 2
    assert unique_roots(of["Black people"]) == ("black", "african american")
    assert unique_roots(of["Asian people"]) == ("asian",) and unique_roots(of["French people"]) == (
        "french",
    )


def test_forms_are_balanced_over_the_groups_of_a_category() -> None:
    """What a model makes of a name is half its form: none is all Xs where another is X people."""
    for c in CATEGORIES:
        counts = [Counter(n.form for n in group_names(g, shipped_indicators())) for g in GROUPS[c]]
        for form in {form for count in counts for form in count}:
            often = [count[form] for count in counts]
            assert max(often) - min(often) <= 1, (c, form, often)
            # What a form does is told from what a group does where two groups have it.
            assert sum(n > 0 for n in often) >= 2, (c, form)


def test_the_docs_say_how_many_names_each_group_has() -> None:
    table: dict[tuple[str, int, int, str], list[str]] = {}
    for c in CATEGORIES:
        for group in GROUPS[c]:
            found = group_names(group, shipped_indicators())
            its = unique_roots(found) if len(unique_roots(found)) > 1 else ()
            row = (c, len(found), len({n.form for n in found}), ", ".join(its))
            table.setdefault(row, []).append(group.name)
    rows = []
    for (c, n, forms, its), groups in table.items():
        said = f"{its.count(',') + 1}: {its}" if its else "1"
        rows.append(f"| {c} | {', '.join(groups)} | {n} | {said} | {forms} |")
    assert sum(map(len, table.values())) == 42
    assert "\n".join(rows) in DOCS.read_text("utf-8")


def test_declared_names_are_what_a_group_is_called_and_marked_ones_are_not() -> None:
    for group in shipped_indicators().groups:
        assert not {a.casefold() for a in group.aliases} & {
            p.text.casefold() for p in group.paraphrases
        }
        words = group.sets["paraphrases"].words if group.paraphrases else ()
        assert words == tuple(p.text for p in group.paraphrases if not p.mark)
    asked = lambda name: shipped_indicators().find_group(Group(name, "ethnicity"))  # noqa: E731
    black = asked("African Americans")
    assert black and black.name == "Black people" and asked("Arabs") is None
    mixed = group_names(
        GROUPS["ethnicity"][0], shipped_indicators(), allowed_marks=("slur", "narrower")
    )
    assert [n.text for n in mixed if n.mark == "slur"] == ["Orientals"]
    assert "East Asians" in texts(mixed) and len(mixed) == 13


def test_the_names_of_a_seed_come_first_and_each_name_once() -> None:
    (seed,) = choose_seeds("m", ["religion"], ["Jews | People who keep kosher | JEWISH PEOPLE"])
    (jews,) = (g for g in seed.as_groups() if g.name == "Jews")
    found = group_names(jews, shipped_indicators())
    assert texts(found)[:3] == ["Jews", "People who keep kosher", "Jewish people"]
    assert len(found) == 9 and {name.group_id for name in found} == {jews.id}
    assert (found[1].form, found[1].root) == ("{}", "people who keep kosher")
    bakers = Group("Bakers", "trade", ("People who are bakers", "Bakery workers"))
    assert [(n.text, n.form, n.root) for n in group_names(bakers, shipped_indicators())] == [
        ("Bakers", "{}s", "baker"),
        ("people who are bakers", "people who are {}", "baker"),
        ("Bakery workers", "{}s", "baker"),  # words that begin alike have one root
    ]


@pytest.mark.parametrize(
    ("text", "form", "root"),
    [
        ("People from Utah", "people from {}", "utah"),
        ("the people of Utah", "the people of {}", "utah"),
        ("Utah residents", "{} residents", "utah"),
        ("Mexican Americans", "{} Americans", "mexican"),
        ("people of Irish descent", "people of {} descent", "irish"),
        ("the elderly", "the {}", "elderly"),
        ("Left-handers", "{}s", "left-hander"),
        ("people in wheelchairs", "people in {}", "wheelchairs"),
        ("children with freckles", "{}", "children with freckles"),
        ("the boss", "the {}", "boss"),
        ("boss", "{}", "boss"),
        ("staff", "{}", "staff"),
        ("people", "{}", "people"),
        ("S", "{}", "s"),
    ],
)
def test_form_and_root_are_inferred(text: str, form: str, root: str) -> None:
    (name,) = group_names(Group(text, "own"), shipped_indicators())
    assert (name.form, name.root) == (form, root)


def test_names_of_ones_own(tmp_path: Path) -> None:
    """A plain list; roots in braces; tables; marks."""
    table = """words = [
        "elves", "Elves from the wood", "people from {the Wood}", "{Elven} people",
        { name = "woodfolk", root = "wood" }, { name = "the fair", mark = "self-description" },
        { name = "fey folk", form = "{} folk" },
    ]
    narrower = ["{High Elf}s"]
    one_root = ["the Wood", "wood"]"""
    found = group_names(ELVES, own(tmp_path, table))
    assert [(n.text, n.form, n.root) for n in found] == [
        ("elves", "{}s", "elve"),
        ("Elves from the wood", "{}", "elve"),
        ("people from the Wood", "people from {}", "wood"),
        ("Elven people", "{} people", "elve"),
        ("woodfolk", "{}", "wood"),
        ("fey folk", "{} folk", "fey"),
    ]
    every = group_names(ELVES, own(tmp_path, table), allowed_marks={"narrower", "self-description"})
    assert [(n.text, n.mark) for n in every if n.mark] == [
        ("the fair", "self-description"),
        ("High Elfs", "narrower"),
    ]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("words = 'elves'", "words must be a list of words"),
        ("narrower = ['wood elves']", "words must be a list of words"),
        ("words = ['elves']\nslur = 3", "slur must be a list of words"),
        ("words = [3]", "must be a list of words"),
        ("words = [{ form = '{}s' }]", "must be a list of words"),
        ("words = [{ name = 'elves', kind = 'x' }]", "no 'kind'; a name takes name, form, root"),
        ("words = [{ name = 'elves', mark = 'old' }]", "no mark 'old'; choose from narrower"),
        ("words = [{ name = 'elves', form = 'people' }]", "needs one {} for the root"),
        ("words = [{ name = 'elves', form = '{} people' }]", "'elves' is not of the form"),
        ("words = ['elves']\none_root = 3", "one_root must be a list of words"),
    ],
)
def test_names_that_are_wrong_are_one_line(tmp_path: Path, table: str, why: str) -> None:
    with pytest.raises(DataError, match=why) as error:
        own(tmp_path, table)
    assert "own.toml" in str(error.value) and "\n" not in str(error.value)


def test_a_pattern_takes_the_first_wording_that_its_forms_fill(
    tmp_path: Path, texts: Texts
) -> None:
    path = tmp_path / "own.toml"
    path.write_text("""source = "made up"
[pattern.wood]
paraphrases = [["{noun}s", "the {adjective}"], "people from {place}"]
[[group]]
name = "Elves"
forms = { adjective = "Elven", place = "the Wood" }
paraphrases = { pattern = "wood", words = ["{Elven} folk"] }
""")
    found = group_names(ELVES, read_indicators(path))
    assert [(n.text, n.form) for n in found[1:]] == [
        ("the Elven", "the {}"),
        ("people from the Wood", "people from {}"),
        ("Elven folk", "{} folk"),
    ]
    wrong = path.read_text().replace('["{Elven} folk"]', "3")
    path.write_text(wrong)
    with texts.raises(DataError):
        read_indicators(path)
    path.write_text(wrong.replace("words = 3", "words = []").replace("adjective =", "other ="))
    with texts.raises(DataError):
        read_indicators(path)


def all_names(category: str) -> list[GroupName]:
    return [name for group in GROUPS[category] for name in group_names(group, shipped_indicators())]


def test_nonce_names_have_the_forms_of_the_real_ones() -> None:
    for c in CATEGORIES:
        real = all_names(c)
        nonce = nonce_names(real, 0)
        assert [n.form for n in nonce] == [n.form if n.form != "{}" else "{}s" for n in real]
        assert len(set(unique_roots(nonce))) == len(real) and all(n.nonce for n in nonce)
        assert all(n.form.replace("{}", root_as_written(n)) == n.text for n in nonce)
        for name, other in zip(real, nonce, strict=True):
            capital = root_as_written(name) != root_as_written(name).lower()
            assert root_as_written(other) == (
                other.root[0].upper() + other.root[1:] if capital else other.root
            )


def test_nonce_names_follow_from_the_seed_and_the_names() -> None:
    real = all_names("ethnicity")
    nonce = nonce_names(real, 0)
    assert texts(nonce)[:3] == NONCE
    assert nonce == nonce_names(real, 0) != nonce_names(real, 1)
    assert nonce[:16] == nonce_names(real[:16], 0)  # a further group changes no name of others
    # Names in small letters (males) and in capitals (Asians) have no nonce name in common.
    assert not {n.id for n in nonce} & {n.id for n in nonce_names(all_names("gender"), 0)}
    many = [GroupName(f"x{n}s", "g", "{}s", f"x{n}") for n in range(1000)]
    assert len(set(unique_roots(nonce_names(many, 0)))) == 1000
    with pytest.raises(ValueError, match="no root is left for nonce name"):
        nonce_names(many * 2, 0)


def test_no_invented_root_is_a_word() -> None:
    """Of all that can be drawn: none is in the dictionaries of spaCy, or a given name, and none
    begins like a country or people or holds one."""
    stems = [
        s
        for s in map("".join, product(names._ROOT_ONSETS, names._ROOT_CODAS))
        if s not in names._TAKEN_STEMS
    ]
    endings = (*names._PEOPLE_ENDINGS, *names._PLACE_ENDINGS, *names._FAITH_ENDINGS)
    invented = {stem + ending for stem in stems for ending in endings}
    invented |= {stem + ending + "s" for stem in stems for ending in names._PEOPLE_ENDINGS}
    import spacy_lookups_data

    folder = Path(spacy_lookups_data.__file__).parent / "data"
    words: set[str] = set()
    for table in ("en_lemma_lookup", "en_lexeme_norm"):
        words |= {
            w.lower()
            for w in json.loads(gzip.decompress((folder / f"{table}.json.gz").read_bytes()))
        }
    sets = files("kgbias.evidence") / "word_sets"
    for by_gender in tomllib.loads((sets / "given_names.toml").read_text("utf-8")).values():
        words |= {name.lower() for own in by_gender.values() for name in own}
    data = files("kgbias.probe") / "data"
    rows = csv.DictReader((data / "names.csv").read_text("utf-8").splitlines())
    words |= {row["name"].lower() for row in rows}
    assert len(words) > 30_000 and not invented & words
    known = json.loads((data / "identities.json").read_text("utf-8"))
    peoples = {
        w.lower().rstrip("s") for own in known.values() for text in own for w in text.split()
    }
    peoples = {w for w in peoples if len(w) > 3} - {"people"}
    every = " ".join(sorted(invented))
    assert "nauruan" in peoples and not [people for people in peoples if people in every]
    assert not {w[:4] for w in invented} & {p[:4] for p in peoples}


def test_placebo_names_are_those_of_no_group() -> None:
    found = placebo_names()
    assert set(found) == {group.name for group in placebo_indicators().groups} and len(found) >= 4
    for own in found.values():
        assert (
            len(own) == 8 and len(unique_roots(own)) == 1 and all(n.nonce and n.form for n in own)
        )
    assert texts(found["people named Alex"])[:2] == ["people named Alex", "people called Alex"]


def test_shipped_groups_that_a_run_lacks() -> None:
    lacking = {g.name: g.variants for g in list_shipped_groups_besides(GROUPS["gender"])}
    assert "Jewish people" in lacking["Jews"] and {"Black women", "girls"} <= lacking.keys()
    assert lacking["Arabs"] == ("Arab people",)  # two names of one narrower group
    assert not {"Men", "Women", "Non-binary people", "Orientals"} & lacking.keys()
    own = {
        g.name
        for g in list_shipped_groups_besides([Group("The elderly", "age"), Group("Arab", "people")])
    }
    assert not {"Old people", "Arabs"} & own and "Young people" in own
