"""Profiles: what an import keeps of them, whether groups can be told apart, and by which words."""

import json
import math
from collections import Counter
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, Interrupted, UsageError
from kgbias.graph.decisions import Decision
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.io.resources import resource_path
from kgbias.methods import profiles
from kgbias.methods.profiles.agreement import ProfileAgreement, profile_agreement_rows
from kgbias.methods.profiles.analysis import analyse_profiles, encode_profiles
from kgbias.methods.profiles.classify import Trials, permute_labels, random_splits, run_trials
from kgbias.methods.profiles.command import _format_estimate
from kgbias.methods.profiles.config import read_given_names, select_names
from kgbias.methods.profiles.pack import ProfileAttribute, describe_fields, load_profile_pack
from kgbias.methods.profiles.words import (
    divergence,
    top_words,
    word_contributions,
    word_shift_records,
    word_shifts,
)
from kgbias.methods.profiles.write import read_profile, read_value
from kgbias.models.base import Request
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import wilson_interval
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

TABLE = """\
Unnamed: 0,name,age,traits,physical,religion,Gender,Ethnicity,run_id
0,Ana,31,"('kind', ""women's rights"")","{'height': 5.6, 'hair': 'brown'}",,F,ARAB,0
1,Bo,,"[""calm"", ""shy""]",nan,none,M,ARAB,0
2,Bo,44,"('it's', 'odd')",{broken,Hindu,M,ARAB,1
"""


def profile(name: str, group: str, number: int = 0, **said: str) -> Profile:
    parts = tuple(ProfilePart(a, f"{name}{number}{a}", value) for a, value in said.items())
    return Profile("r", f"{name}/{number}", name, group, {"group": group}, parts)


def people(told: bool, names: int = 10) -> list[Profile]:
    """Profiles of two groups: of one faith each, or all of the same."""
    return [
        profile(f"{g}{n}", g, k, faith=g if told else "x", pet=("cat", "dog")[(n + k) % 2])
        for g in ("elves", "orcs")
        for n in range(names)
        for k in range(3)
    ]


def test_an_import_keeps_profiles_whole(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(TABLE, encoding="utf-8")
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(tmp_path / "p.csv", format="profiles", group="Ethnicity")
        rows = profiles.list_profiles(run)
        assert [p.values_by_attribute() for p in rows] == [
            {
                "age": ("31",),
                "traits": ("kind", "women's rights"),
                "height": ("5.6",),
                "hair": ("brown",),
            },
            {"traits": ("calm", "shy"), "religion": ("none",)},
            {
                "age": ("44",),
                "traits": ("it's", "odd"),
                "physical": ("{broken",),
                "religion": ("Hindu",),
            },
        ]
        assert rows[0].labels == {"group": "ARAB F", "ethnicity": "ARAB", "gender": "F"}
        assert [r["name"] for r in rows.records()] == ["Ana", "Bo", "Bo"]
        assert {t.predicate for t in run.triples()} >= {"traits", "physical height"}


def test_names_are_looked_up_where_a_file_says_nothing_of_them(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name,faith\nWafa,a\nAdebayo,b\n", encoding="utf-8")
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(tmp_path / "p.csv", format="profiles")
        assert [p.labels["group"] for p in profiles.list_profiles(run)] == ["ARAB F", "AFRICAN M"]


def test_the_names_that_are_shipped(texts: Texts) -> None:
    names = read_given_names("globalbias")
    assert len({n.label for n in names}) == 40
    assert min(Counter(n.label for n in names).values()) == 9  # one name is listed twice
    (first, *_) = select_names(names, ["arab women"])
    assert (first.label, first.group, first.gender) == ("ARAB F", "Arab women", "F")
    assert {n.group for n in read_given_names("reference")} >= {"Velmari people", "Ostrans"}
    with texts.raises(UsageError):
        select_names(names, ["Martians"])


def test_contributions_by_hand() -> None:
    """Shares 3/4, 1/4 and 1/4, 3/4: m is 1/2 each, so the first word contributes half of
    3/4 log2(3/2) + 1/4 log2(1/2), and the second as much the other way."""
    hand = (0.75 * log2(1.5) + 0.25 * log2(0.5)) / 2
    found = word_contributions(np.array([3.0, 1.0]), np.array([1.0, 3.0]))
    assert found == pytest.approx([hand, -hand])
    assert divergence(np.array([3.0, 1.0]), np.array([1.0, 3.0])) == pytest.approx(2 * hand)
    # Nothing in common is 1 bit; the same shares are 0, whatever the counts.
    assert divergence(np.array([5.0, 0.0]), np.array([0.0, 2.0])) == pytest.approx(1.0)
    assert divergence(np.array([1.0, 2.0]), np.array([10.0, 20.0])) == pytest.approx(0.0)
    assert divergence(np.array([0.0, 0.0]), np.array([1.0, 1.0])) == 0


def test_the_words_of_a_group() -> None:
    words = word_shifts(people(True), [p.labels["group"] for p in people(True)], ["faith", "pet"])
    (best, *_) = [w for w in words if w.attribute == "faith" and w.group == "elves"]
    assert (best.word, best.contribution, best.share, best.others) == ("elves", 0.5, 1.0, 0.0)
    # Of 20 names, ten have the word and all ten of the group do: 2 / C(20, 10).
    assert best.p_value == pytest.approx(2 / math.comb(20, 10))
    assert best.low == best.high == 0.5
    assert word_shift_records([best])[0]["low"] is None  # no width, so no interval
    assert all(w.p_adjusted == 1 for w in words if w.attribute == "pet")
    assert [w.group for w in top_words(words)["faith"]] == ["elves", "orcs"]


def test_a_split_by_name_has_no_name_on_both_sides() -> None:
    found = people(True)
    groups, names = [p.labels["group"] for p in found], [p.name for p in found]
    for learnt, tried in random_splits(groups, names, 5, split_by="name", seed=1):
        assert not {names[i] for i in learnt} & {names[i] for i in tried}
        assert Counter(groups[i] for i in tried) == {"elves": 9, "orcs": 9}
    for learnt, tried in random_splits(groups, names, 5, seed=1):
        assert sorted([*learnt, *tried]) == list(range(60))
        assert Counter(groups[i] for i in tried) == {"elves": 9, "orcs": 9}
        assert {names[i] for i in learnt} & {names[i] for i in tried}


def test_what_can_be_told_apart_is_and_what_cannot_is_not() -> None:
    for told in (True, False):
        found = people(told)
        features = encode_profiles(found, ["faith", "pet"]).matrix(["faith", "pet"])
        groups, names = [p.labels["group"] for p in found], [p.name for p in found]
        chosen = list(random_splits(groups, names, 8))
        whole = run_trials(features, groups, chosen)
        dealt, p = permute_labels(features, groups, names, chosen, permutations=19)
        if told:
            assert whole.mean == 1 and p == 0.05 and dealt.value < 0.9
        else:
            assert 0.3 < whole.mean < 0.7 and p > 0.05
        assert set(whole.recall_estimates()) == {"elves", "orcs"}


def test_splits_that_are_all_alike_have_no_range() -> None:
    found = people(True)
    features = encode_profiles(found, ["faith"]).matrix(["faith"])
    groups, names = [p.labels["group"] for p in found], [p.name for p in found]
    shares = run_trials(features, groups, list(random_splits(groups, names, 8))).recall_estimates()
    assert {share.value for share in shares.values()} == {1.0}
    assert not any(share.has_interval for share in shares.values())


def test_the_interval_of_an_accuracy_is_that_of_a_share() -> None:
    """Four splits that learn from 16 and try 4: a variance of (1/4 + 4/16) / 64 = 1 / 128 of a
    share of 15/16 is that of 7.5 cases, with three degrees of freedom of fewer by
    (1.96 / 3.182)^2."""
    found = Trials(np.array([1.0, 1.0, 1.0, 0.75]), 16, 4, {}).estimate()
    cases = 7.5 * (1.96 / 3.182) ** 2
    expected = wilson_interval(15 / 16, cases, 1.96)
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-3)
    assert found.value == 15 / 16 and found.high < 1
    assert not Trials(np.ones(4), 16, 4, {}).estimate().has_interval


def test_an_analysis_as_json() -> None:
    found = [
        replace(p, labels={"group": p.group_id, "gender": "FM"[n % 2]})
        for n, p in enumerate(people(True))
    ]
    result = analyse_profiles(found, repeats=4, permutations=9, draws=50).as_dict()
    json.dumps(result, allow_nan=False)
    assert result["accuracy"]["group"] == 1 and set(result["accuracy"]) == {"group", "gender"}
    assert result["without"]["faith"]["group"] < 0.8 < result["without"]["pet"]["group"]
    assert result["cost"]["pet"]["group"]["value"] == 0
    assert result["alone"]["faith"]["group"] == 1
    assert result["chance"]["group"] == 0.5 and result["p_value"]["group"] == 0.1
    assert set(result["words"][0]) >= {"attribute", "group", "word", "contribution"}
    assert result["intervals"]["group"] == {"value": 1, "low": None, "high": None, "n": 4}
    again = analyse_profiles(found, repeats=4, permutations=9, draws=50).as_dict()
    assert again == result
    part = analyse_profiles(
        found, attributes=["pet"], groups=["elves", "ORCS"], repeats=2, permutations=0
    )
    assert part.attributes == ("pet",) and math.isnan(part.classifications["group"].p_value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attributes": ["colour"]}, "no attribute 'colour'; choose from faith, pet"),
        ({"groups": ["dwarves"]}, "no group 'dwarves' among the profiles; choose from elves, orcs"),
        ({"groups": ["elves"]}, "nothing to tell apart"),
        ({"repeats": 0}, "`repeats` must be at least 1"),
        ({"draws": -1}, "cannot be negative"),
    ],
)
def test_what_cannot_be_analysed(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        analyse_profiles(people(True), **options)  # type: ignore[arg-type]


def test_one_profile_of_each_group_is_too_few(texts: Texts) -> None:
    with texts.raises(UsageError):
        analyse_profiles([profile("a", "elves", pet="cat"), profile("b", "orcs", pet="dog")])


def test_one_name_of_each_group_says_nothing_by_name() -> None:
    found = [profile(g, g, n, faith=g) for g in ("elves", "orcs") for n in range(4)]
    (told,) = analyse_profiles(found, repeats=3, permutations=0, draws=0).classifications.values()
    assert told.accuracy.value == 1 and math.isnan(told.by_name.value)


def test_a_request_is_nothing_that_a_model_said(tmp_path: Path) -> None:
    text = "name,race,sex,prompts,trait\nAna,Elvish,female,Describe Ana.,kind\n"
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(tmp_path / "p.csv", format="profiles")
        assert [t.predicate for t in run.triples()] == ["trait"]


def test_the_command(tmp_path: Path, texts: Texts) -> None:
    table = "name,faith,Group\n" + "".join(
        f"{g}{n},{g},\"('{g}', 'F')\"\n" for g in ("elf", "orc") for n in range(8)
    )
    (tmp_path / "p.csv").write_text(table, encoding="utf-8")
    store = ["--store", str(tmp_path / "k.db")]

    def call(*arguments: str) -> str:
        done = CliRunner().invoke(cli, [*arguments, *store], catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    call("import", str(tmp_path / "p.csv"), "--format", "profiles", "--run", "a")
    few = ["--set", "repeats=3", "--set", "permutations=5", "--set", "draws=20"]
    found = json.loads(call("profiles", "analyse", "a", "--json", *few))
    assert found["accuracy"] == {"group": 1.0, "ethnicity": 1.0}
    said = call("profiles", "analyse", "a", *few)
    texts.check_lines(said, "16 profiles")
    assert "faith, elf F: elf" in said


ANSWER = {
    "name": "Ana",
    "age": 31,
    "personality_traits": ["kind", "calm", "odd"],
    "physical_characteristics": {"height": 5.6, "build": "slim"},
    "religion": "Hindu.",
}
CHOSEN = ("age", "personality_traits", "height", "build", "religion")
FEW = {"names": "globalbias", "group": ("Arab women", "ARAB M"), "limit": 2, "attribute": CHOSEN}


def test_the_published_prompt(texts: Texts) -> None:
    pack = load_profile_pack()
    lines = describe_fields(pack.attributes)
    texts.check("\n".join(lines[:4]))
    texts.check_lines(lines, "hair_colour, eye_colour,")
    prompt = str(pack.templates["profile"].render("chat", name="Wafa", fields=lines)[0][1])
    assert "avoid clichés" in prompt and "characters named: Wafa" in prompt


@pytest.mark.parametrize(
    ("text", "outcome", "reason"),
    [
        (json.dumps(ANSWER), "ok", ""),
        ("```json\n" + json.dumps(ANSWER) + "\n```", "ok", ""),
        ("Here [it] is: [" + json.dumps(ANSWER) + "]", "ok", ""),
        ("I'm sorry, I cannot do that.", "refused", "refusal"),
        ("Ana is kind.", "unparsable", "no JSON"),
        (json.dumps(ANSWER)[:-5], "unparsable", "no JSON"),
        (json.dumps({**ANSWER, "age": "old"}), "unparsable", "age: type"),
        (json.dumps({**ANSWER, "personality_traits": ["a"]}), "unparsable", "personality_traits"),
        (json.dumps({**ANSWER, "more": 1}), "unparsable", "additionalProperties"),
        (json.dumps({**ANSWER, "religion": " "}), "unparsable", "religion is empty"),
        ("[" * 100_000, "unparsable", "no JSON"),
    ],
)
def test_reading_a_profile(text: str, outcome: str, reason: str) -> None:
    found = read_profile(text, load_profile_pack().select_attributes(CHOSEN), is_complete=True)
    assert found.outcome == outcome and reason in found.reason
    if outcome == "ok":
        assert found.values == {
            "age": ["31"],
            "personality_traits": ["kind", "calm", "odd"],
            "height": ["5.6"],
            "build": ["slim"],
            "religion": ["Hindu"],
        }


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (" Loyal, Patient and Kind", "list", ["Loyal", "Patient", "Kind"]),
        (" Art, Art, Music, Sports", "list", ["Art", "Music", "Sports"]),
        (" a teacher. She", "text", ["teacher"]),
        (" 28 years", "integer", ["28"]),
        (" about thirty", "integer", "no number"),
        (" 5.6 feet", "measure", ["5.6 feet"]),
        (" 3", "text", "a number"),
        (" Chess, 7", "list", "a number"),
        ("", "text", "empty"),
        (" one two three four five six seven eight nine", "text", "too long"),
        (" I cannot answer", "text", "refusal"),
    ],
)
def test_reading_a_line(text: str, kind: str, expected: object) -> None:
    found = read_value(text, ProfileAttribute("x", kind, "are", "X"), is_complete=True)  # type: ignore[arg-type]
    assert (found.values or {}).get("x", found.reason) == expected


def answers(request: Request) -> str:
    """A refusal of one name, nonsense at first for another, a profile for all else."""
    prompt = str(request.prompt)
    if "Wafa" in prompt:
        return "I'm sorry, I can't."
    if "Mehrangiz" in prompt and request.seed % 2:
        return "no"
    return json.dumps({**ANSWER, "religion": "Muslim" if request.seed % 3 else "none"})


def test_profiles_are_written_into_the_graph(tmp_path: Path) -> None:
    model = ScriptedModel(answers)
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = profiles.write_profiles(study, model, form="json", max_attempts=6, name="a", **FEW)
        assert run.kind == "profiles" and run.status == "complete"
        counts = run.generation_summary.outcomes
        assert counts["Arab women"]["refused"] == 18 and counts["Arab men"]["refused"] == 0
        assert run.generation_summary.profiles == {"Arab men": 6, "Arab women": 3}
        assert run.summary.refused == 18
        assert run.summary.prompt_tokens == 10 * len(model.requests)  # an answer counts once
        found = profiles.list_profiles(run)
        assert Counter(p.name for p in found)["Mehrangiz"] == 3
        assert {p.labels["ethnicity"] for p in found} == {"ARAB"}
        assert found[0].values_of("personality_traits") == ("kind", "calm", "odd")
        said = {(t.group, t.predicate) for t in run.triples()}
        assert ("Arab men", "are") in said and ("Arab women", "have the build") in said
        # The same command asks nothing, and changes nothing.
        again = profiles.write_profiles(study, model, form="json", max_attempts=6, name="a", **FEW)
        assert (
            again.generation_summary.asked_count == 0
            and again.generation_summary.cached_count == len(model.requests)
        )
        assert list(profiles.list_profiles(again)) == list(found)
        # What review rejects is no longer part of the profile.
        review = run.review(by="Ana")
        first = next(e for e in run.stored.generations() if e.triple is not None)
        run.stored.add_decisions(
            [Decision(first.id, "reject", "Ana", "2026-01-01", read=first.triple)]
        )
        assert review and len(profiles.list_profiles(run)[0].parts) == len(found[0].parts) - 1


def test_a_stopped_command_goes_on(tmp_path: Path, texts: Texts) -> None:
    def told(path: str, stop: bool) -> tuple[int, list[Profile]]:
        model = ScriptedModel(answers)
        with kgbias.open(tmp_path / path, progress=False) as study:
            if stop:
                with texts.raises(Interrupted):
                    profiles.write_profiles(
                        study, model, form="json", max_requests=7, name="a", **FEW
                    )
                assert study.run("a").status == "stopped"
            run = profiles.write_profiles(study, model, form="json", name="a", **FEW)
            return len(model.requests), list(profiles.list_profiles(run))

    assert told("whole.db", False) == told("stopped.db", True)


def test_attribute_by_attribute(tmp_path: Path) -> None:
    model = ScriptedModel(lambda r: " Muslim" if "Religion" in str(r.prompt) else "")
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = profiles.write_profiles(study, model, samples=1, max_attempts=2, **FEW)
        assert run.config["form"] == "attributes" and run.config["min_p"] == 0.1
        assert {p.values_of("religion") for p in profiles.list_profiles(run)} == {("Muslim",)}
        assert (
            run.generation_summary.whole_profiles.total() == 0
            and run.generation_summary.profiles.total() == 4
        )
        assert run.generation_summary.outcome_totals == {"ok": 4, "unparsable": 4 * 4 * 2}


def test_what_profiles_cost(texts: Texts) -> None:
    with kgbias.open(None, progress=False) as study:
        price = profiles.write_profiles(study, "openai:x", dry_run=True)
        assert (price.names, price.groups, price.form) == (399, 40, "json")
        assert (price.requests, price.requests_at_most) == (1197, 5985)
        price = profiles.write_profiles(
            study, "smollm2", attribute="religion", limit=1, dry_run=True
        )
        assert price.requests == 120
        with texts.raises(UsageError):
            profiles.write_profiles(study, "smollm2", attribute="x", dry_run=True)
        with texts.raises(UsageError):
            profiles.write_profiles(study, "smollm2", structured=True, form="json", dry_run=True)


def test_a_faulty_pack_says_what_is_wrong(tmp_path: Path, texts: Texts) -> None:
    (tmp_path / "attribute.toml").write_text(
        (resource_path("prompts", "profiles") / "attribute.toml").read_text()
    )
    manifest = 'name = "x"\nversion = 1\nlanguage = "en"\nsource = ""\n[attributes.a]\n'
    for text, message in {
        manifest: "needs 'kind'",
        manifest
        + 'kind = "x"\npredicate = "are"\nline = "A"\n': "the kind of a must be one of text",
        manifest + 'kind = "text"\npredicate = "are"\nline = "{{ x }}"\n': "cannot be rendered",
        manifest + "kind = 1\n": "must be a table of texts",
    }.items():
        (tmp_path / "pack.toml").write_text(text)
        with pytest.raises(DataError, match=message):
            load_profile_pack(tmp_path)
    with texts.raises(UsageError):
        load_profile_pack("sentences")


def test_a_word_that_one_name_repeats_is_not_the_groups() -> None:
    """Opposite signs: one elf says "x" in a hundred profiles, of the orcs every name does once."""
    people = [profile("e0", "elves", k, faith="x") for k in range(100)]
    people += [profile(f"e{n}", "elves", k, faith="y") for n in range(1, 20) for k in range(2)]
    people += [profile(f"o{n}", "orcs", 0, faith="x") for n in range(20)]
    people += [profile(f"o{n}", "orcs", k, faith="y") for n in range(20) for k in (1, 2, 3)]
    words = word_shifts(people, [p.labels["group"] for p in people], ["faith"])
    mine = {(w.group, w.word): w for w in words}
    elf = mine["elves", "x"]
    assert elf.share > elf.others and elf.contribution > 0  # by mentions it is the elves' word
    assert not elf.is_shown and elf.p_value == 1.0  # by names it is not


def test_words_are_told_of_a_group_only_if_more_of_its_names_have_them() -> None:
    rng, told = np.random.default_rng(2), 0
    for _ in range(12):
        likely = {g: rng.dirichlet(np.full(4, 0.5)) for g in ("elves", "orcs", "trolls")}
        people = [
            profile(f"{g}{n}", g, k, faith=str(rng.choice(list("abcd"), p=p)))
            for g, p in likely.items()
            for n in range(12)
            for k in range(int(rng.integers(1, 5)))
        ]
        having = {
            (g, w): np.mean(
                [
                    any(p.name == f"{g}{n}" and w in p.values_of("faith") for p in people)
                    for n in range(12)
                ]
            )
            for g in likely
            for w in "abcd"
        }
        for w in word_shifts(people, [p.labels["group"] for p in people], ["faith"], draws=200):
            if w.is_shown:
                told += 1
                others = np.mean([having[g, w.word] for g in likely if g != w.group])
                assert having[w.group, w.word] > others and w.low > 0 and w.p_adjusted <= 0.05
    assert told > 3


def test_an_interval_without_width_is_not_printed() -> None:
    assert _format_estimate(Estimate(0.5, 0.5, 0.5, 12)) == "0.500"
    assert _format_estimate(Estimate.missing()) == "-"  # nor a figure that is not there


def test_the_words_of_profiles_beside_other_views_are_rows() -> None:
    found = profile_agreement_rows(
        [ProfileAgreement("apx", 4, (), Estimate(0.5, 0.4, 0.6, 9), 0.3, 0.01)]
    )
    (row,) = found.records()
    assert (row["source"], row["words"], row["mrr"], row["mrr_high"]) == ("apx", 0, 0.5, 0.6)
