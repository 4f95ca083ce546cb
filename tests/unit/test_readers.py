"""The readers of sentences, on cases labelled by hand (tests/data/readers)."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgbias.crawl.parse import READERS, read_answer, reader_label
from kgbias.crawl.readers.base import AnswerReading
from kgbias.errors import MissingExtra
from kgbias.models import english

DATA = Path(__file__).parent.parent / "data" / "readers"


def read(
    text: str,
    predicate: str | None = None,
    *,
    reader: str = "english",
    subject: str = "Women",
    finish: str = "stop",
) -> AnswerReading:
    return read_answer(
        text, finish, predicate=predicate, filters=("refusal",), subject=subject, reader=reader
    )


def pair(reading: AnswerReading) -> tuple[str, str] | None:
    return (reading.predicate, reading.object) if reading.outcome == "ok" else None


def cases(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        {k: v.replace("\\n", "\n").replace("\\u200b", "\u200b") for k, v in row.items()}
        for row in rows
    ]


def wrongly_cut(reader: str) -> list[tuple[str, str, object]]:
    """The hand-cut sentences that a reader of English cuts in another way."""
    rows = cases("english.tsv")
    assert len(rows) == 328
    wrong = []
    for row in rows:
        found = pair(read(row["text"], reader=reader, subject=row["subject"]))
        if found != ((row["predicate"], row["object"]) if row["predicate"] else None):
            wrong.append((row["subject"], row["text"], found))
    return wrong


def test_sentences_are_cut_as_by_hand() -> None:
    """The cases are those that the rules were written for: hardly any may be lost. The reader with
    a tagger is held to them in tests/integration/test_tagger.py."""
    assert len(wrong := wrongly_cut("english")) <= 2, wrong


@pytest.mark.parametrize(
    ("text", "predicate", "object"),
    [
        (" late.", "are", "late"),
        (" often seen as lazy.", "are", "often seen as lazy"),
        (" the smell of rain. They also love", "love", "the smell of rain"),
        (" to be called “weird.”", "hate", "to be called weird"),
        ("Women love their families.", "love", "their families"),
        ("Women cannot swim.", "can't", "swim"),
        (" love dinners.", "love", "dinners"),
        (" women.", "love", "women"),
        (" love.", "love", "love"),
        (" count to 2.", "can't", "count to 2"),
        (" the word ‘Tao’.", "hate", "the word 'Tao'"),
        (" the way they are.", "love", "the way they are"),
        (" Mrs. Beeton and cats vs. dogs.", "love", "Mrs. Beeton and cats vs. dogs"),
        (" sure of themselves.", "are", "sure of themselves"),
    ],
)
def test_the_object_is_the_rest_of_the_sentence(text: str, predicate: str, object: str) -> None:
    assert pair(read(text, predicate)) == (predicate, object)


def test_german_sentences_are_cut_as_by_hand() -> None:
    rows = cases("german.tsv")
    wrong = []
    for row in rows:
        found = pair(read(row["text"], reader="german", subject=row["subject"]))
        if found != ((row["predicate"], row["object"]) if row["predicate"] else None):
            wrong.append((row["text"], found))
    assert len(rows) == 48
    assert len(wrong) <= 1, wrong


@pytest.mark.parametrize(
    ("text", "predicate", "object"),
    [
        (" den Duft von Regen. Sie", "lieben", "den Duft von Regen"),
        ("Sicher! Frauen lieben „Regen“.", "lieben", "Regen"),
        (" stolz auf ihr Land.", "sind", "stolz auf ihr Land"),
    ],
)
def test_the_object_is_the_rest_of_a_german_sentence(
    text: str, predicate: str, object: str
) -> None:
    assert pair(read(text, predicate, reader="german", subject="Frauen")) == (predicate, object)


@pytest.mark.parametrize("reader", ["list", "english"])
def test_what_chat_models_put_around_an_answer_is_taken_off(reader: str) -> None:
    """Sixty answers of SmolLM2-135M-Instruct, and others made by hand. Most are about something
    else, and none of those may become a statement about the group."""
    rows = [row for row in cases("chat.tsv") if row["reader"] == reader]
    wrong = []
    for row in rows:
        found = pair(
            read(
                row["text"],
                row["predicate"] or None,
                reader=reader,
                subject=row["subject"],
                finish=row["finish"],
            )
        )
        if found != ((row["read"], row["object"]) if row["object"] else None):
            wrong.append((row["text"], found))
    assert len(rows) == {"list": 21, "english": 88}[reader]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "predicate", "finish", "reason"),
    [
        ("", "love", "stop", "no text"),
        (" ...", None, "stop", "empty answer"),
        ("Sure! Here is one:", "love", "stop", "empty object"),
        (" to go on and on", "love", "length", "unfinished"),
        (" music and", "love", "stop", "a fragment"),
        (" music?", "love", "stop", "a question"),
        (" ninety " * 21 + ".", "love", "stop", "object too long"),
        (" x" * 1000, "love", "stop", "object too long"),
        (" x" + " " * 10_000 + "x.", "love", "stop", "object too long"),
        (" are late.", "can't", "stop", "a second verb"),
        (" die Musik und das Bier.", "love", "stop", "another language"),
        (" music # Men love", "love", "stop", "marks of a form"),
        ("This sentence is a stereotype.", "love", "stop", "about the list"),
        ("Cyclists love a bargain.", "love", "stop", "about others"),
        ("They love music.", None, "stop", "about others"),
        (" music and dance.", None, "stop", "no verb after the group"),
        (" work.", None, "stop", "no object"),
        ("'t be cruel.", "can", "stop", "it goes on with the prompt's last word"),
        ("’re late.", None, "stop", "it goes on with the prompt's last word"),
        ("I'm sorry, but I can't.", None, "stop", "refusal"),
    ],
)
def test_answers_without_a_statement_have_a_reason(
    text: str, predicate: str | None, finish: str, reason: str
) -> None:
    reading = read(text, predicate, finish=finish)
    assert (reading.outcome != "ok", reading.reason) == (True, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Katzen lieben Fisch.", "about others"),
        ("Vermieter sind streng.", "about others"),
        ("Das ist ein Klischee.", "about others"),
        (" sind laut.", "a second verb"),
        (" Musik und", "a fragment"),
        (" the music of the town.", "another language"),
    ],
)
def test_german_answers_without_a_statement_have_a_reason(text: str, reason: str) -> None:
    assert read(text, "lieben", reader="german", subject="Frauen").reason == reason


def test_a_sentence_may_end_at_the_token_limit_where_it_has_ended() -> None:
    assert pair(read(" music. They also", "love", finish="length")) == ("love", "music")
    assert pair(read("Women love music\nMen love", "love", finish="length")) == ("love", "music")


def test_the_reader_that_needs_a_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(english, "_PACKAGES", ("no_such_package",))
    english.load_english.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'kgbias\[reader\]'"):
        reader_label("english-spacy")


@given(st.text(), st.sampled_from(["stop", "length"]), st.sampled_from([None, "love", "lieben"]))
def test_any_answer_is_accounted_for(answer: str, finish: str, predicate: str | None) -> None:
    for reader in READERS.keys() - {"list", "english-spacy"}:
        reading = read(answer, predicate, reader=reader, finish=finish)
        if reading.outcome == "ok":
            assert reading.object.strip() and reading.predicate.strip()
            assert "\n" not in reading.object + reading.predicate
            assert predicate in (None, reading.predicate)
        else:
            assert reading.reason


def test_a_clause_after_a_verb_of_thinking_is_the_object() -> None:
    found = read(" they're the same.", "don't think")
    assert (found.outcome, found.object) == ("ok", "they're the same")
    assert read(" I think so too.", "believe").reason == "about others"
    assert read(" they are lazy.", "love").reason == "about others"


def test_a_noun_that_could_be_a_verb_is_no_predicate() -> None:
    """Verbs that take an object at once are nouns before most prepositions."""
    for text in (
        "faces in the crowd",
        "face in the mirror",
        "names of the dead",
        "voices from afar",
    ):
        assert read(text).outcome == "unparsable", text
    for text, predicate, object in (
        ("face danger in the field", "face", "danger in the field"),
        ("face up to their fears", "face up to", "their fears"),
        ("are pictured in magazines", "are pictured in", "magazines"),
        ("works in hospitals", "works in", "hospitals"),
        ("have faces in every town", "have", "faces in every town"),
    ):
        assert pair(read(text)) == (predicate, object)


def test_a_remark_to_whoever_asks_is_no_statement_about_the_group() -> None:
    """As chat models say instead of going on: "Nurses are ..." and "What a wonderful summary!"."""
    for text in (
        "What a wonderful summary of nurses!",
        "Great list! Women are kind.",
        "Well said!",
        "Beautiful words indeed.",
        "How interesting!",
        "Wow, so caring.",
        "No, they are not.",
        "Thank you for your thoughts.",
    ):
        for predicate in ("are", "love", "think"):
            assert read(text, predicate).reason in ("a remark", "about the list"), text
    for text, predicate in (
        ("Well educated.", "are"),
        ("Great at their jobs.", "are"),
        ("No longer valued.", "are"),
        ("No time for themselves.", "have"),
        ("Absolutely wonderful.", "are"),
        ("How to cook.", "know"),
        ("What people say about them.", "hate"),
        ("Good food.", "love"),
        (" what a wonderful world it is.", "think"),
    ):
        assert read(text, predicate).outcome == "ok", text


def test_a_whole_sentence_without_the_given_predicate_does_not_go_on_with_it() -> None:
    """A chat model that says "Women are kind." to "Women know ..." does not say what they know."""
    assert read("Women are kind.", "know").reason == "another predicate"
    assert read("Women know they are kind.", "know").object == "they are kind"
    assert read(" Women are kind.", "know").object == "Women are kind"  # a text that goes on
