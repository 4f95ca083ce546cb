"""The rule by which an answer repeats an example that it was shown."""

import pytest

from kgbias.language.words import is_echo

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
    assert is_echo(predicate, object, SHOWN)


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
    assert not is_echo(predicate, object, SHOWN)


def test_words_that_make_no_difference_still_differ_from_each_other() -> None:
    assert not is_echo("are", "the", [("are", "a")])
    assert is_echo("are", "The", [("are", "the")])


def test_nothing_shown_is_no_echo() -> None:
    assert not is_echo("are", "lazy", [])


def test_articles_are_those_of_the_language() -> None:
    assert is_echo("lieben", "ihren Garten", [("hassen", "den Garten")], language="de")
    assert not is_echo("lieben", "ihren Garten", [("hassen", "den Garten")])
    assert not is_echo("want to", "die", [("hate", "a")], language="en")
