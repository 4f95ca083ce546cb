"""The second, invented language of the reference world: a dictionary, and a pack like any other."""

from pathlib import Path
from string import ascii_letters

import pytest

from kgbias.calibrate.language_rows import SecondLanguageModel
from kgbias.crawl.parse import read_answer
from kgbias.models.base import Request
from kgbias.packs import load_pack
from kgbias.reference.second_language import (
    LANGUAGE_CODE,
    PACK_FOLDER,
    to_english,
    to_second_language,
)
from kgbias.reference.world import INITIAL_PREDICATES, load_truth
from tests.scripted_model import ScriptedModel


def test_a_word_is_translated_and_translated_back() -> None:
    assert sorted(map(to_second_language, ascii_letters)) == sorted(ascii_letters)
    assert not any(to_second_language(letter) == letter for letter in ascii_letters)
    text = "Velmari people can't keep a promise; 3 of 4."
    assert to_english(to_second_language(text)) == text


def test_the_pack_is_what_its_script_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from training.reference import second_language

    monkeypatch.setattr(second_language, "PACK_FOLDER", tmp_path)
    second_language.main()
    written = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text("utf-8") for path in PACK_FOLDER.glob("*.toml")}


def test_every_statement_of_the_world_is_read_in_the_second_language() -> None:
    """Of all statements, after a group and after the predicate, as a crawl meets them."""
    pack, truth = load_pack(str(PACK_FOLDER)), load_truth()
    assert pack.language == LANGUAGE_CODE
    assert pack.crawl["initial_predicates"] == tuple(map(to_second_language, INITIAL_PREDICATES))
    for predicate, object in truth.statements:
        answer = to_second_language(f" {predicate} {object}.")
        read = read_answer(answer, "stop", predicate=None, filters=(), reader=pack.reader)
        words = to_english(read.predicate), to_english(read.object)
        assert truth.find_statement(*words) == (predicate, object), read


def test_the_model_is_asked_in_english() -> None:
    model = SecondLanguageModel(ScriptedModel(lambda request: f" hate {request.prompt}"))
    (batch,) = model.complete([Request(to_second_language("fog"), 0)])
    assert batch[0][1].text == to_second_language(" hate fog")
    assert ("language", LANGUAGE_CODE) in model.settings
