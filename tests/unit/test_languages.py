"""Languages are data: the shipped packs, and an eleventh one that touches no code."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.crawl.configure import configure
from kgbias.crawl.parse import read_answer, reader_label
from kgbias.crawl.readers.base import AnswerReading
from kgbias.crawl.readers.declared import DeclaredReader
from kgbias.crawl.seeds import known_seeds
from kgbias.errors import DataError
from kgbias.evidence.indicators import read_indicators
from kgbias.evidence.names import (
    MIN_NAMES,
    NonceRoots,
    declared_indicators,
    find_nonce_roots,
    group_names,
    nonce_names,
    unique_roots,
)
from kgbias.evidence.probe_plan import default_carriers
from kgbias.graph.types import node_id, verbalise
from kgbias.ids import normalise
from kgbias.io.columns import Column
from kgbias.io.text import LATEX_SCRIPT, display_width
from kgbias.language.words import join_words
from kgbias.packs import Pack, find_run_pack, load_pack, pack_names
from kgbias.report.tables import Table, table_latex

DECLARED = (
    "spanish",
    "french",
    "italian",
    "portuguese",
    "dutch",
    "polish",
    "arabic",
    "hindi",
    "mandarin",
)
LANGUAGES = ("german", *DECLARED)


def read(
    pack: Pack, text: str, predicate: str | None = None, subject: str = "", finish: str = "stop"
) -> AnswerReading:
    return read_answer(
        text, finish, predicate=predicate, filters=("refusal",), subject=subject, reader=pack.reader
    )


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_has_all_that_is_needed(name: str) -> None:
    """Groups as in English, each of gender, nationality and religion with at least five names of
    the same forms; carriers; made-up names that are none of the real ones."""
    pack = load_pack(name)
    assert pack.groups and pack.names and len(pack.pool.sentences) >= 28
    assert len(pack.words.carriers) == 2
    seeds, declared = known_seeds("m", pack.groups), read_indicators(pack.names)
    counts = {"gender": 3, "ethnicity": 7, "nationality": 20, "religion": 12}
    roots = NonceRoots.from_table(pack.words.nonce, name)
    for category, count in counts.items():
        groups = seeds[category].as_groups()
        assert len(groups) == count
        if category == "ethnicity":
            continue
        names = [group_names(group, declared) for group in groups]
        assert min(map(len, names)) >= MIN_NAMES
        flat = [each for own in names for each in own]
        assert len({normalise(each.text) for each in flat}) == len(flat)
        made_up = nonce_names(flat, 0, roots)
        assert {n.form for n in made_up} == {n.form for n in flat}
        assert not {n.text.casefold() for n in made_up} & {n.text.casefold() for n in flat}
        if category == "nationality":
            assert {len(unique_roots(own)) for own in names} <= {1, 2}


@pytest.mark.parametrize("name", DECLARED)
def test_a_declared_reader_reads_its_own_examples(name: str) -> None:
    """Nothing of a sentence is lost; of a pool that was cut by hand, at most five are cut in
    another place; and with the predicate given, the object is the rest."""
    pack = load_pack(name)
    stop = verbalise("", "", pack.pool.sentences[0].object)[-1]
    cut_otherwise = 0
    for one in pack.pool.sentences:
        rest = join_words(one.predicate, one.object)
        found = read(pack, f" {rest}{stop}", subject=one.group)
        if found.outcome == "ok":
            assert join_words(found.predicate, found.object) == rest
        cut_otherwise += (found.predicate, found.object) != (one.predicate, one.object)
        whole = f"{join_words(one.group, one.predicate, one.object)}{stop}"
        assert read(pack, whole, one.predicate, one.group).object == one.object
    assert cut_otherwise <= 5


@pytest.mark.parametrize("name", DECLARED)
def test_refusals_and_other_languages_are_told(name: str) -> None:
    pack = load_pack(name)
    for refusal in pack.words.refusals:
        assert read(pack, f"{refusal} ...").outcome == "refused"
    english = read(pack, " are not of the opinion that they have their own.")
    assert (english.outcome, english.reason) == ("unparsable", "another language")
    assert read(pack, " ", subject="x").outcome == "unparsable"
    own = pack.pool.sentences[0]
    unfinished = read(pack, join_words(own.predicate, own.object), finish="length")
    assert unfinished.reason == "unfinished"


@pytest.mark.parametrize(
    ("name", "answer", "predicate", "object"),
    [
        ("spanish", " no son muy puntuales. Pero", "no son muy", "puntuales"),
        ("spanish", ' dicen "el amor no se vende".', "dicen", '"el amor no se vende"'),
        ("spanish", " se han ganado el corazón.", "se han ganado", "el corazón"),
        ("french", " n'aiment pas les épinards.", "n'aiment pas", "les épinards"),
        ("italian", " si considerano i migliori.", "si considerano", "i migliori"),
        ("portuguese", " gostam de festas.", "gostam de", "festas"),
        ("dutch", " klagen vaak over het weer.", "klagen vaak over", "het weer"),
        ("polish", " boją się ciemności.", "boją się", "ciemności"),
        ("arabic", " لا يحبون المطر.", "لا يحبون", "المطر"),
        ("arabic", " غالبا ما ينامون في الفطور.", "غالبا ما ينامون في", "الفطور"),
        ("hindi", " अक्सर देर से आते हैं।", "अक्सर", "देर से आते हैं"),
        ("hindi", " हमेशा से ही ठंड को देखते हैं।", "हमेशा से ही", "ठंड को देखते हैं"),
        ("hindi", " अपने-अपने घरों में रहते हैं।", "अपने-अपने घरों में", "रहते हैं"),
        ("mandarin", "总是很忙。", "总是很", "忙"),
        ("mandarin", "需要阳光，\n", "需要", "阳光"),
        ("mandarin", "不喜欢下雨天。他们", "不喜欢", "下雨天"),
    ],
)
def test_where_a_predicate_ends(name: str, answer: str, predicate: str, object: str) -> None:
    found = read(load_pack(name), answer)
    assert (found.predicate, found.object) == (predicate, object), found.reason


def test_what_goes_on_with_the_name_of_a_group_is_of_another() -> None:
    """As Gemma 3 270M did after the Arabic word for Russians: an ending, and then a verb."""
    found = read(load_pack("arabic"), "يون لا يتفقدون أبناءهم.", subject="الروس")
    assert (found.outcome, found.reason) == ("unparsable", "about others")


@pytest.mark.parametrize(("name", "answer"), [("mandarin", "吃什么？"), ("arabic", " الشاي؟")])
def test_a_question_in_another_script_is_told(name: str, answer: str) -> None:
    assert read(load_pack(name), answer, "喜欢").reason == "a question"


def test_a_mark_on_the_last_letter_of_the_prompt_is_no_part_of_the_object() -> None:
    """As Gemma 3 270M went on: the Arabic word for "always", and then its vowel sign."""
    found = read(load_pack("arabic"), "\u064b يفضلون السفر إلى أستراليا.", "دائما", "الإيطاليون")
    assert (found.outcome, found.object) == ("ok", "يفضلون السفر إلى أستراليا")


def test_scripts_without_spaces_are_written_so() -> None:
    assert join_words("德国人", "喜欢", "啤酒") == "德国人喜欢啤酒"
    assert join_words("Germans", "love", "beer") == "Germans love beer"
    assert join_words("德国人", "", "love") == "德国人 love"
    assert verbalise("德国人", "喜欢", "啤酒") == "德国人喜欢啤酒。"
    assert verbalise("जर्मन लोग", "अक्सर", "हँसते हैं") == "जर्मन लोग अक्सर हँसते हैं।"
    assert verbalise("الألمان", "يحبون", "القهوة") == "الألمان يحبون القهوة."


ELEVENTH = {
    "pack.toml": """
name = "swedish"
version = 1
language = "sv"
source = "this test"
reader = "declared"
groups = "groups.toml"
words = "language.toml"
names = "names.toml"
[examples]
pool = "pool.toml"
initialise = 2
expand = 1
minimum = 2
[crawl]
filters = ["refusal", "echo"]
initial_predicates = ["är", "har"]
""",
    "language.toml": """
refusals = ["tyvärr kan jag"]
carriers = ["Jag tror att", "Folk säger att"]
[reader]
after_verb = "inte aldrig alltid ofta"
prepositions = "om med av"
auxiliaries = "är har"
others = "jag vi det"
dangling = "och en ett"
own = "och att är inte"
foreign = "the of and are that with their"
[nonce]
onsets = "ve ta lu mi du"
codas = "lm ndr vr zn"
[nonce.endings]
"" = "are er"
"folk från {}" = "ien land"
""",
    "groups.toml": """
[folk]
aliases = ["nationality"]
singular = "nationalitet"
plural = "nationaliteter"
prefix = "Jag är ingen rasist, men"
groups = ["Tyskar", "Norrmän"]
""",
    "names.toml": """
[pattern.folk]
source = "this test"
paraphrases = [
    "{noun}", "{adjective} personer", "folk från {place}", "{adjective} medborgare",
    "invånare i {place}",
]
[[group]]
name = "Tyskar"
aliases = ["German people"]
forms = { noun = "tyskar", adjective = "tyska", place = "Tyskland" }
[group.paraphrases]
pattern = "folk"
[[group]]
name = "Norrmän"
forms = { noun = "norrmän", adjective = "norska", place = "Norge" }
[group.paraphrases]
pattern = "folk"
one_root = ["norrmän", "norska", "norge"]
""",
    "pool.toml": """
sentences = [
    "Lärare | gillar | långa lov", "Cyklister | hatar | gropar", "Poeter | saknar | pengar",
]
""",
}
TEMPLATE = """
name = "{name}"
version = 1
max_tokens = 20
stop = ["\\n"]
wordings = ["Vad folk säger om varandra:"]
completion = '''
{{{{ header }}}}

{{% for example in examples -%}}
{{{{ example.sentence }}}}
{{% endfor -%}}
{ask}'''
[chat]
user = "{ask} ..."
"""


@pytest.fixture
def eleventh(tmp_path: Path) -> Path:
    folder = tmp_path / "swedish"
    folder.mkdir()
    for name, text in ELEVENTH.items():
        (folder / name).write_text(text, "utf-8")
    asks = {
        "initialise": "{% if prefix %}{{ prefix }} {% endif %}{{ group }} {{ predicate }}",
        "predicate": "{{ group }}",
        "object": "{{ group }} {{ predicate }}",
    }
    for name, ask in asks.items():
        text = TEMPLATE.format(name=name, ask=ask)
        (folder / f"{name}.toml").write_text(text, "utf-8")
    return folder


def answer(prompts: Sequence[str]) -> list[str]:
    """What a model of Swedish says: a statement, one in English, or a refusal."""
    replies = {"är": " punktliga.", "har": " ofta gott kaffe."}
    return [
        replies.get(prompt.split()[-1], " klagar ofta om vädret.")
        if "Tyskar" in prompt.rsplit("\n", 1)[-1]
        else " Tyvärr kan jag inte svara."
        for prompt in prompts
    ]


def test_an_eleventh_language_needs_no_code(eleventh: Path) -> None:
    with kgbias.open(None, progress=False) as study:
        model = kgbias.in_memory(answer, name="svensk")
        run = study.crawl(
            model, prompts=str(eleventh), category=["nationality"], samples=1, iterations=1
        )
        said = {(t.predicate, t.object) for t in run.stored.triples()}
        assert {("är", "punktliga"), ("har", "ofta gott kaffe")} <= said
        named = read(load_pack(eleventh), " klagar ofta om vädret.", subject="Tyskar")
        assert (named.predicate, named.object) == ("klagar ofta om", "vädret")
        outcomes = [g.outcome for g in run.stored.generations()]
        assert "refused" in outcomes
        stored = run.stored
        assert find_run_pack(stored.record.config) == load_pack(str(eleventh))
        assert default_carriers(stored)[2] == "Jag tror att"
        declared = declared_indicators(stored)
        germans = next(group for group in stored.groups if group.name == "Tyskar")
        assert germans.id == node_id("group", "German people")
        names = group_names(germans, declared)
        assert [n.text for n in names] == [
            "tyskar",
            "tyska personer",
            "folk från Tyskland",
            "tyska medborgare",
            "invånare i Tyskland",
        ]
        roots = find_nonce_roots(stored)
        assert roots and nonce_names(names, 1, roots)[2].text.startswith("folk från ")
    label = reader_label(load_pack(str(eleventh)).reader)
    assert label.endswith("swedish@1") and "swedish" not in pack_names()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("language.toml", "after_verb", "after_verbs", "after_verbs"),
        ("language.toml", "[reader]", "[readers]", "readers"),
        ("language.toml", '"tyvärr kan jag"', "3", "must be a list of texts"),
        ("language.toml", 'onsets = "ve ta lu mi du"', "", "onsets"),
        ("language.toml", '"" = "are er"', "", "for all other forms"),
        ("pack.toml", 'words = "language.toml"', "", "needs 'words'"),
        ("pack.toml", 'names = "names.toml"', 'names = "../names.toml"', "beside it"),
    ],
)
def test_a_fault_in_a_language_is_one_line(
    eleventh: Path, file: str, old: str, new: str, message: str
) -> None:
    path = eleventh / file
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(DataError, match=message) as raised:
        pack = load_pack(str(eleventh))
        reader_label(pack.reader)
        NonceRoots.from_table(pack.words.nonce, pack.name)
    assert "\n" not in str(raised.value)


def test_a_reader_without_spaces_needs_verbs() -> None:
    with pytest.raises(DataError, match="needs its 'verbs'"):
        DeclaredReader.from_table({"spaces": False}, "x")
    with pytest.raises(DataError, match="true or false"):
        DeclaredReader.from_table({"spaces": "no"}, "x")


def test_a_group_is_the_same_in_all_languages(eleventh: Path) -> None:
    """It has the id of its English name, and goes by either; the configuration of a run, and so
    its id, does not say so."""
    categories = ["gender", "nationality", "religion", "ethnicity"]
    english = {group.id: group.name for group in configure("m", category=categories).groups}
    for name in LANGUAGES:
        config = configure("m", category=categories, prompts=name)
        assert {group.id for group in config.groups} == english.keys(), name
        assert all(g.goes_by(english[g.id]) and g.goes_by(g.name.upper()) for g in config.groups)
        assert "German people" not in json.dumps(config.as_dict())
    (women, *_) = configure("m", group=["Frauen"], prompts="german").groups
    assert (women.node_name, women.own_names) == ("Women", ("Frauen",))
    (people, *_) = configure("m", group=["Leute"], prompts="german").groups
    assert (people.node_name, people.own_names) == ("Leute", ())


def test_a_model_that_does_not_write_the_language_is_told(
    eleventh: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the answers that it gave, and ten, in another language: one line says so."""

    def english(prompts: Sequence[str]) -> list[str]:
        return [" are of the opinion that they are not the best." for _ in prompts]

    with kgbias.open(None, progress=False) as study:
        asking: Any = {"prompts": str(eleventh), "category": "nationality", "iterations": 0}
        told = study.crawl(kgbias.in_memory(english, name="e"), samples=6, **asking)
        assert "hardly writes it" in told.crawl_result.language_note
        assert "another language" in told.crawl_result.empty_reason
        fine = study.crawl(kgbias.in_memory(answer, name="s"), samples=6, **asking)
        assert fine.crawl_result.language_note == ""


def test_tables_of_other_scripts_have_their_macro_and_width() -> None:
    assert display_width("喜欢啤酒") == 8 and display_width("abc") == 3
    assert display_width("é") == display_width("e\u0301") == 1
    table = Table("x", "T", (Column("group"), Column("said")), [["德国人", "喜欢啤酒"]])
    text = table_latex(table, "Warning")
    assert LATEX_SCRIPT in text and r"\kgbiasscript{德国人}{" in text
    plain = table_latex(
        Table("x", "T", (Column("group"), Column("said")), [["Germans", "beer"]]), "Warning"
    )
    assert "kgbiasscript" not in plain
