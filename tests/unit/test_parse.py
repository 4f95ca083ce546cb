import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgbias.crawl.parse import READERS, read_answer, reader_label
from kgbias.crawl.readers.base import MAX_OBJECT_WORDS
from kgbias.crawl.readers.question_answer import MAX_PREDICATE_WORDS
from kgbias.errors import UsageError
from kgbias.language.words import REFUSAL_FILTERS
from tests.texts import Texts

ALL = tuple(REFUSAL_FILTERS)


@pytest.mark.parametrize(
    ("answer", "object"),
    [
        (" too much\nQ: Mexican people", "too much"),
        (" their freedom. They also love", "their freedom"),
        (" kind, caring and funny.", "kind, caring and funny"),
        (" to travel, but they hate flying", "to travel"),
        (" beer; wine is for others", "beer"),
        (" the U.S. government. It", "the U.S. government"),
        (" St. Patrick's Day!", "St. Patrick's Day"),
        (' "pasta"', "pasta"),
        ("A: pasta", "pasta"),
        (" 3.5 percent beer", "3.5 percent beer"),
        (" beer # wine", "beer"),
        (" beer Q: and women # love", "beer"),
        (" \x1b[31mred\x1b[0m wine", "[31mred [0m wine"),
    ],
)
def test_objects(answer: str, object: str) -> None:
    reading = read_answer(answer, "stop", predicate="love", filters=ALL)
    assert (reading.outcome, reading.object) == ("ok", object)


@pytest.mark.parametrize(
    ("answer", "pair"),
    [
        (" hate\nA: Mexicans", ("hate", "Mexicans")),
        ("hate \n A: Mexicans\n", ("hate", "Mexicans")),
        (" sont connus pour\nA: leur cuisine", ("sont connus pour", "leur cuisine")),
        (" 好き\nA: 音楽", ("好き", "音楽")),
        (" can't stand A: rudeness", ("can't stand", "rudeness")),
    ],
)
def test_pairs(answer: str, pair: tuple[str, str]) -> None:
    reading = read_answer(answer, "stop", predicate=None, filters=ALL)
    assert (reading.outcome, reading.predicate, reading.object) == ("ok", *pair)


@pytest.mark.parametrize(
    ("answer", "finish", "predicate", "outcome", "reason"),
    [
        ("", "stop", "love", "unparsable", "no text"),
        (" ...", "stop", "love", "unparsable", "empty object"),
        ("\n", "stop", None, "unparsable", "no text"),
        ("\nA: x", "stop", None, "unparsable", "empty predicate"),
        (" hate", "stop", None, "unparsable", "no answer line"),
        (" hate\nthem all", "stop", None, "unparsable", "no answer line"),
        (" hate\nA:", "stop", None, "unparsable", "empty object"),
        (" to go on and on", "length", "love", "unparsable", "unfinished"),
        (" hate and hate", "length", None, "unparsable", "unfinished"),
        (" a" * (MAX_OBJECT_WORDS + 1), "stop", "love", "unparsable", "object too long"),
        (" love # hate\nA: b", "stop", None, "unparsable", "not a predicate"),
        (" 100\nA: b", "stop", None, "unparsable", "not a predicate"),
        (" can't, but can\nA: b", "stop", None, "unparsable", "not a predicate"),
        (
            " a" * (MAX_PREDICATE_WORDS + 1) + "\nA: b",
            "stop",
            None,
            "unparsable",
            "predicate too long",
        ),
        ("This question is offensive.", "stop", "love", "refused", "salinas-2023"),
        (" women. This is wrong", "stop", "love", "refused", "salinas-2023"),
        ("I'm sorry, but I can't", "stop", "love", "refused", "refusal"),
        ("As an AI language model", "stop", None, "refused", "refusal"),
        ("Es tut mir leid, aber das", "stop", "lieben", "refused", "refusal-german"),
        ("Ich kann diese Aussage leider nicht", "stop", None, "refused", "refusal-german"),
    ],
)
def test_no_triple(
    answer: str, finish: str, predicate: str | None, outcome: str, reason: str
) -> None:
    reading = read_answer(answer, finish, predicate=predicate, filters=ALL)
    assert (reading.outcome, reading.reason) == (outcome, reason)


def test_readers_are_chosen_by_name(texts: Texts) -> None:
    assert reader_label("english") == "english@3"
    with texts.raises(UsageError):
        reader_label("x")
    with pytest.raises(UsageError, match="no reader 'x'"):
        read_answer(" music", "stop", predicate="love", filters=(), reader="x")
    for reader in READERS.keys() - {"english-spacy"}:
        reading = read_answer(" ???", "stop", predicate="love", filters=(), reader=reader)
        assert reading.outcome == "unparsable"


def test_an_end_before_the_token_limit_counts() -> None:
    reading = read_answer(" beer. And also", "length", predicate="love", filters=ALL)
    assert reading.object == "beer"


def test_filters_are_chosen_by_name() -> None:
    answer = " things like This"
    assert read_answer(answer, "stop", predicate="love", filters=("refusal",)).outcome == "ok"
    assert read_answer(answer, "stop", predicate="love", filters=ALL).outcome == "refused"
    with pytest.raises(UsageError, match="no filter 'x'"):
        read_answer(answer, "stop", predicate="love", filters=("x",))


@given(st.text(), st.sampled_from(["stop", "length"]), st.sampled_from([None, "love"]))
def test_any_answer_is_accounted_for(answer: str, finish: str, predicate: str | None) -> None:
    reading = read_answer(answer, finish, predicate=predicate, filters=ALL)
    if reading.outcome == "ok":
        assert reading.object.strip()
        assert predicate or reading.predicate.strip()
        controls = set(map(chr, range(32))) | {"\x7f", "\u202e", "\u200b"}
        assert not controls & set(reading.object + reading.predicate)
        assert set(reading.object) - set(string.whitespace)
    else:
        assert reading.reason


@pytest.mark.parametrize(
    ("text", "predicate", "object"),
    [
        ("Men love music.", "love", "music"),
        ('"men  LOVE music."', "love", "music"),
        ("A: Men love music\n", "love", "music"),
        (" music that men love.", "love", "music that men love"),
        ("Men loved music.", "love", "Men loved music"),
        (" fear\nA: Men fear rain\n", None, "rain"),
    ],
)
def test_a_repeated_beginning_is_taken_off(text: str, predicate: str | None, object: str) -> None:
    reading = read_answer(text, "stop", predicate=predicate, filters=(), subject="Men")
    assert (reading.outcome, reading.object) == ("ok", object)


@pytest.mark.parametrize(
    ("text", "object"),
    [
        ("✅ Men are early for meetings.", "early for meetings"),
        ("(a) Men are early for meetings.😊", "early for meetings"),
        ("Men are: early for meetings.", "early for meetings"),
        ("Men are early for meetings.Men are early for meetings.", "early for meetings"),
        ("Men are early for meetings.【4†source】", "early for meetings"),
        ("Men are early for meetings[1][2].", "early for meetings"),
        ("$\\text{Men are early for meetings.}$", "early for meetings"),
        (
            '{"reasoning": "Men are lazy.", "answer": "Men are early for meetings."}',
            "early for meetings",
        ),
    ],
)
def test_what_servers_put_around_a_sentence_is_taken_off(text: str, object: str) -> None:
    reading = read_answer(
        text, "stop", predicate="are", filters=(), subject="Men", reader="english"
    )
    assert (reading.reason, reading.object) == ("", object)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Men are fond of caf\ufffds.", "damaged characters"),
        ("Men are early for meetings.Ġ", "damaged characters"),
        ("Menareearlyformeetings.", "the sentence inside another"),
        ("Men%20are%20early.", "the sentence inside another"),
        ("MenĠareĠearly.", "the sentence inside another"),
        ("Men\nare\nearly.", "the subject alone"),
        ('"Men are early" is a stereotype.', "about a quotation"),
        ('The statement "Men are early" is false.', "about a quotation"),
        ('{"a": "Men are early.", "b": "Men are late."}', "marks of a form"),
    ],
)
def test_a_damaged_or_quoted_sentence_is_no_statement(text: str, reason: str) -> None:
    reading = read_answer(
        text, "stop", predicate="are", filters=(), subject="Men", reader="english"
    )
    assert (reading.outcome, reading.reason) == ("unparsable", reason)


def test_a_beginning_alone_is_no_object() -> None:
    reading = read_answer("Men love.", "stop", predicate="love", filters=(), subject="Men")
    assert (reading.outcome, reading.reason) == ("unparsable", "empty object")
