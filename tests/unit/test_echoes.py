"""The rule by which an answer repeats an example that it was shown."""

import pytest

from kgbias.language.words import repeats

SHOWN = [("love", "a good cup of tea"), ("can't stand", "silence"), ("are", "lazy")]


@pytest.mark.parametrize(
    ("predicate", "object"),
    [
        ("love", "a good cup of tea"),  # predicate and object
        ("hate", "their good cup of tea."),  # the object, whatever the article
        ("are often seen as", "being very lazy"),
        ("can't", "stand silence"),  # the same words, cut elsewhere
        ("CAN’T stand", "Silence!"),
        ("love to drink", "it with the good cup of tea"),  # ends in an object of several words
    ],
)
def test_an_answer_that_repeats_an_example_is_an_echo(predicate: str, object: str) -> None:
    assert repeats(predicate, object, SHOWN)


@pytest.mark.parametrize(
    ("predicate", "object"),
    [
        ("love", "tea"),
        ("can't stand", "noise"),  # the predicate alone is asked for, and no echo
        ("are", "not lazy"),  # ends in an object of one word
        ("love", "a good cup of coffee"),
        ("love", "the"),
    ],
)
def test_an_answer_that_shares_less_is_none(predicate: str, object: str) -> None:
    assert not repeats(predicate, object, SHOWN)


def test_words_that_make_no_difference_still_differ_from_each_other() -> None:
    assert not repeats("are", "the", [("are", "a")])
    assert repeats("are", "The", [("are", "the")])


def test_nothing_shown_is_no_echo() -> None:
    assert not repeats("are", "lazy", [])


def test_articles_are_those_of_the_language() -> None:
    assert repeats("lieben", "ihren Garten", [("hassen", "den Garten")], language="de")
    assert not repeats("lieben", "ihren Garten", [("hassen", "den Garten")])
    assert not repeats("want to", "die", [("hate", "a")], language="en")
