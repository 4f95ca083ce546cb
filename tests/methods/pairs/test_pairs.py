"""What pairs are made of: files, neutral texts, measures worked out by hand, and the tests."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kgbias.errors import DataError, UsageError
from kgbias.methods.pairs.answer_measures import (
    count_syllables,
    neutralise_person,
    reading_ease,
    repeats_sentence,
    split_sentences,
)
from kgbias.methods.pairs.command import _print_results
from kgbias.methods.pairs.compare import (
    SIGNIFICANCE_LEVEL,
    Likeness,
    PairsResult,
    compare_answers,
    coupling_p_value,
    name_swap_p_value,
)
from kgbias.methods.pairs.config import (
    PairAnswer,
    RequestWording,
    SlotPerson,
    configure_pairs,
    iter_places,
    load_pairs_pack,
    read_requests,
    read_slot_people,
    stored_places,
)
from tests.texts import Texts


def test_the_shipped_pack() -> None:
    pack = load_pairs_pack()
    config = configure_pairs("reference", category="gender", request="pay")
    assert len({w.request for w in pack.wordings}) == 10 and len(pack.wordings) == 30
    assert len(config.wordings) == 3 and len(config.people) == 8  # names alone: pay has {name}
    everything = [place for n in range(config.rounds) for place in config.places(n)]
    assert stored_places(config.as_dict()) == everything and len(everything) == 72
    assert len({place.path for place in everything}) == 72
    assert (
        "\nAnswer:" in pack.template.answer_limits("completion").stop
    )  # a base model answers twice


def test_a_request_about_somebody(texts: Texts) -> None:
    woman = SlotPerson("a woman", "Women", "gender", "group", 0)
    texts.check(RequestWording("x", "{group} asks {group}.", 0).about(woman))
    assert RequestWording("x", "Ask {group} {why}.", 0).about(woman) == "Ask a woman {why}."


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("request,text\n", "no rows"),
        ("request,text\npay,How much?\n", "line 2: the text needs either {name} or {group}"),
        ("request,text\npay,{name} and {group}\n", "line 2: the text needs"),
        ("request,text\n,{name}\n", "line 2: the request or its text is empty"),
    ],
)
def test_requests_that_cannot_be_used(tmp_path: Path, text: str, error: str) -> None:
    (file := tmp_path / "r.csv").write_text(text)
    with pytest.raises(DataError, match=error):
        read_requests(file)


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ("", "no rows"),
        ("title,Ann,W,g\n", "a slot is name or group, not 'title'"),
        ("name,,W,g\n", "line 2: a slot, name, group or category is empty"),
        ("name,Ann,W,g\nname,Eve,W,g\nname,Tom,M,g\n", "equally many people .* W 2, M 1"),
        ("name,Ann,W,g\nname,Tom,M,g\ngroup,a woman,W,g\n", "the slot 'group', .* W 1, M 0"),
        ("name,Ann,W,g\nname,Ann,M,g\n", "line 3: 'Ann' stands for 'W' already"),
        ("name,Ann,W,g\nname,Ann,W,g\n", "line 3: 'Ann' is there twice"),
    ],
)
def test_people_that_cannot_be_used(tmp_path: Path, rows: str, error: str) -> None:
    (file := tmp_path / "p.csv").write_text(f"slot,name,group,category\n{rows}")
    with pytest.raises(DataError, match=error):
        read_slot_people(file)


def test_who_cannot_be_compared(tmp_path: Path, texts: Texts) -> None:
    (file := tmp_path / "p.csv").write_text(
        "slot,name,group,category\nname,Ann,women,g\nname,Eve,Women,g\n"
    )
    with texts.raises(UsageError):
        configure_pairs("reference", people=file, request="pay")
    with texts.raises(UsageError):
        configure_pairs("reference", group="Women")
    with pytest.raises(UsageError, match="no request 'rent'"):
        configure_pairs("reference", request="rent")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Emily Walsh and her sister. Emily's plan is Mrs. Walsh's own.",
            "Greg Baker and his brother. Greg's plan is Mr. Baker's own.",
        ),
        ("She told the woman that the work is hers.", "He told the man that the work is his."),
    ],
)
def test_texts_that_differ_in_nothing_but_the_person_become_the_same(one: str, other: str) -> None:
    first = neutralise_person(one, SlotPerson("Emily Walsh", "W", "g", "name", 0))
    second = neutralise_person(other, SlotPerson("Greg Baker", "M", "g", "name", 0))
    assert first == second
    assert neutralise_person(
        "The elderly woman sat.", SlotPerson("an elderly woman", "W", "g", "group", 0)
    ) == (
        neutralise_person(
            "The elderly man sat.", SlotPerson("an elderly man", "M", "g", "group", 0)
        )
    )
    assert neutralise_person("I will.", SlotPerson("Will", "M", "g", "name", 0)) == "I will."


def test_reading_ease_by_hand() -> None:
    assert [count_syllables(word) for word in ("cat", "table", "made", "happy", "tree")] == [
        1,
        2,
        1,
        2,
        1,
    ]
    assert reading_ease("The cat sat on the mat.") == pytest.approx(206.835 - 1.015 * 6 - 84.6)
    text = "The cat is happy. It sat."  # 6 words, 2 sentences, 7 syllables
    assert reading_ease(text) == pytest.approx(206.835 - 1.015 * 3 - 84.6 * 7 / 6)
    assert split_sentences('He said "no." Then...\n\n* 1\n--\nEnd') == [
        'He said "no.',
        "Then...",
        "* 1",
        "End",
    ]


def test_answers_that_go_round_in_circles() -> None:
    assert repeats_sentence("Dear Ann,\nDear Ann,\nDear Ann,\n") and not repeats_sentence(
        "One. Two. One. Two. "
    )
    assert not repeats_sentence("")


def test_couples_by_hand() -> None:
    """One row whose couple by group is the most alike: one way in three. Two rows: one in nine."""
    assert coupling_p_value(np.array([[0.9, 0.1, 0.2]])) == pytest.approx(1 / 3)
    assert coupling_p_value(np.array([[0.9, 0.1, 0.2]] * 2)) == pytest.approx(1 / 9)
    assert coupling_p_value(np.array([[0.1, 0.1, 0.1]] * 20)) == 1


def test_names_that_differ_by_hand() -> None:
    """Three units of two names, all alike: two of the eight ways to swap. Two names each in one
    unit: any way is as good, whatever their signs."""
    assert name_swap_p_value([[1, 1, 1]]) == pytest.approx(1 / 4)
    assert name_swap_p_value([[3], [-4]]) == 1 and name_swap_p_value([[0, 0]]) == 1
    # (5, 1) and (-2, -2): squares of sums over units are 18 and 8; 26 or more in 4 of 16 ways
    assert name_swap_p_value([[5, 1], [-2, -2]]) == pytest.approx(1 / 4)


PEOPLE = tuple(
    SlotPerson(f"{group}{n}", group, "gender", "name", n)
    for group in ("Ws", "Ms")
    for n in range(4)
)
WORDINGS = tuple(RequestWording(f"r{n // 2}", f"{n} {{name}}?", n) for n in range(8))


def simulated(
    rng: np.random.Generator,
    shorter: int = 0,
    by_name: Sequence[int] = (0, 0, 0, 0),
    declined: float = 0.1,
) -> list[PairAnswer]:
    """Answers whose length depends on the wording and chance; with a plant, those about Ms are
    shorter, or those about some of their names, or they are declined more often."""
    found = []
    for round in range(3):
        for place in iter_places(WORDINGS, PEOPLE, round):
            words = 10 + 3 * place.wording.number + int(rng.integers(0, 10))
            if place.person.group == "Ms":
                words -= shorter + by_name[place.person.number]
            share = declined if place.person.group == "Ms" else 0.1
            outcome = "refused" if rng.random() < share else "ok"
            text = " ".join(["Word word word."] * (words // 3) + ["so"] * (words % 3))
            found.append(PairAnswer(place, outcome, text))
    return found


MEASURES = {"measures": ("words", "refused", "reading ease")}


def test_what_is_found_and_what_is_bound_to_one_name() -> None:
    rng = np.random.default_rng(1)
    found = compare_answers(simulated(rng, shorter=8), **MEASURES)
    words = found.differences[0]
    assert (
        words.verdict == "differs"
        and 6 < words.difference < 10
        and words.max_loo_p_value <= SIGNIFICANCE_LEVEL
    )
    found = compare_answers(simulated(rng, by_name=(30, 0, 0, 0)), **MEASURES)
    words = found.differences[0]
    assert words.q_value <= SIGNIFICANCE_LEVEL and words.verdict not in ("", "differs")


def test_two_names_are_not_the_group() -> None:
    """Two of four names are unlike the others: found without any one of them, and yet t is
    (12, 12, 2, 2), 2.4 with three degrees of freedom."""
    found = compare_answers(simulated(np.random.default_rng(1), by_name=(12, 12, 2, 2)), **MEASURES)
    words = found.differences[0]
    assert words.max_loo_p_value <= SIGNIFICANCE_LEVEL and words.verdict == "may be the names"


def test_names_that_pull_apart_do_not_cancel() -> None:
    """Two of a group's names make answers longer than the name beside them, by 12 words each, once
    as the first of the two and once as the second."""
    found = compare_answers(simulated(np.random.default_rng(4), by_name=(12, 0, 0, 12)), **MEASURES)
    floor = {(f.change, f.measure): f for f in found.floor}
    names = floor["another name", "words"]
    assert names.found and 3 < names.difference < 6  # of 12, 12, 0 and 0: sqrt(2 x 12 x 12) / 4
    assert not floor["asked again", "words"].found and not floor["another name", "refused"].found


def test_what_is_compared_where_one_group_is_refused() -> None:
    """The rest then holds for what both were answered, whichever measures are asked for."""
    rng = np.random.default_rng(5)
    found = compare_answers(simulated(rng, declined=0.6), measures=("words",))
    (words,) = found.differences
    (refused,) = found.declined
    assert words.conditional and not refused.conditional and refused.difference < 0
    assert words.units + words.left_out == 32 and words.only_first > words.only_second
    assert words.only_first + words.only_second <= words.left_out
    json.dumps(found.as_dict(), allow_nan=False)
    found = compare_answers(simulated(rng), measures=("words",))
    assert not found.declined and not found.differences[0].conditional
    assert found.differences[0].left_out


def test_a_group_that_is_refused_in_some_samples() -> None:
    """Each unit still has an answer for both, and yet what is found holds for what was answered."""
    rng = np.random.default_rng(5)
    answers = [replace(a, outcome="ok") for a in simulated(rng)]
    declined = rng.random(len(answers)) < 0.9
    more = [
        replace(
            a,
            place=replace(a.place, round=a.place.round + 3),
            outcome="refused" if no and a.place.person.group == "Ms" else "ok",
        )
        for a, no in zip(answers, declined, strict=True)
    ]
    found = compare_answers([*answers, *more], measures=("words",))
    assert found.declined and not found.differences[0].left_out
    assert found.differences[0].conditional and not found.declined[0].conditional


def test_a_floor_that_is_not_quiet_takes_the_verdict(texts: Texts) -> None:
    """A greeting changes more than the group does: nothing is said of the group."""
    answers = [
        replace(a, text=a.text + " word" * 40) if a.place.round_name == "with a greeting" else a
        for a in simulated(np.random.default_rng(2), shorter=6)
    ]
    words = compare_answers(answers, **MEASURES).differences[0]
    assert words.q_value <= SIGNIFICANCE_LEVEL
    texts.check(words.verdict)


def test_how_often_something_is_found_where_there_is_nothing() -> None:
    rng = np.random.default_rng(3)
    runs = [compare_answers(simulated(rng), **MEASURES, permutations=199) for _ in range(10)]
    assert (
        sum(bool(run.shown_differences) for run in runs) <= 3
    )  # binomial(10, 0.05): 4 or more in 0.1%


@pytest.mark.parametrize(("cut", "repeating", "warned"), [(6, 6, False), (11, 0, True)])
def test_results_without_a_table_print_none(
    capsys: pytest.CaptureFixture[str], cut: int, repeating: int, warned: bool
) -> None:
    alike = Likeness("gender", "Women", "Men", 0.5, 0.6, 0.6, 0.5, 4, 0.1, 0.9)
    _print_results(PairsResult((), (), (alike,), 1, 1, 4, 100, 0, 0, cut, repeating))
    said = capsys.readouterr().out
    assert "how alike answers are" in said
    assert "one only" not in said and "where nothing should differ" not in said
    assert ("go round in circles" in said) == warned
