"""Which options of association tests reach the model."""

from pathlib import Path
from typing import Any

import pytest

from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.methods.associations.family import associate
from kgbias.methods.associations.methods import METHODS, SCORES
from tests import tiny
from tests.conftest import require_modules
from tests.methods.associations.test_associate_graph import FILE, run  # noqa: F401
from tests.methods.associations.test_associate_options import TEST

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> str:
    require_modules("transformers")
    return f"hf:{tiny.save_model(tmp_path_factory.mktemp('gpt2'))}"


@pytest.mark.slow
def test_a_parameter_reaches_the_methods_that_take_it(gpt2: str) -> None:
    found = associate(
        [TEST],
        ["weat", "s-seat", "w-seat", "ceat", "lpbs", "ceat-lpbs"],
        models=[gpt2],
        cache=False,
        encoding="word-first",
        layer=0,
        draws=50,
        pool="sum",
        how="normal",
    )
    settings = {result.method: result.settings for result in found}
    assert list(settings) == [name for name in METHODS if name not in SCORES]
    assert settings["w-seat"]["encoding"] == settings["ceat"]["encoding"] == "word-first"
    assert settings["s-seat"]["encoding"] == "last"  # its own: it cannot take that of a word
    assert [settings[m].get("layer") for m in settings] == [None, 0, 0, 0, None, None]
    assert settings["ceat"]["ceat_draws"] == 50 and settings["lpbs"]["pool"] == "sum"
    assert settings["weat"]["p"] == "normal" and settings["ceat"]["p"] == "auto"


def test_the_corpus_of_contexts_gets_its_size_and_window(gpt2: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("men love rain and food\nwomen hate rain and food\n" * 3)
    (result,) = associate(
        [TEST],
        ["ceat"],
        models=[gpt2],
        cache=False,
        contexts=corpus,
        most=2,
        window=0,
        draws=9,
    )
    told = {name: result.settings[name] for name in ("most_contexts", "window", "contexts_a_word")}
    assert told == {"most_contexts": 2, "window": 0, "contexts_a_word": [2, 2]}


def test_what_is_given_wins_over_what_was_published(gpt2: str) -> None:
    def settings(**given: Any) -> Any:
        (result,) = associate(
            [TEST], ["lpbs"], models=[gpt2], cache=False, as_published=True, **given
        )
        return [result.settings[name] for name in ("tails", "pool", "unit", "comparison")]

    assert settings() == ["two", "sum", "sentence", ">"]
    assert settings(tails="one", pool="mean") == ["one", "mean", "sentence", ">"]


def test_the_precision_of_a_model_is_part_of_its_results(gpt2: str) -> None:
    def settings(**given: Any) -> list[dict[str, Any]]:
        found = associate([TEST], ["w-seat", "lpbs"], models=[gpt2], cache=False, **given)
        return [dict(result.settings) for result in found]

    plain, rounded = settings(device="cpu"), settings(dtype="bfloat16")
    assert rounded == [row | {"dtype": "bfloat16"} for row in plain]
    with pytest.raises(UsageError, match="no device 'nonsense'"):
        settings(device="nonsense")
    with pytest.raises(UsageError, match="no dtype 'int3'"):
        settings(dtype="int3")


def test_every_group_takes_one_model_and_its_encoding(
    gpt2: str,
    store: SQLiteStore,
    run: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    stored = StoredRun(store, run)
    file = tmp_path / "own.toml"
    file.write_text(FILE)
    with pytest.raises(UsageError, match="every_group takes one model"):
        associate(models=[gpt2, gpt2], run=stored, every_group=True)
    effects = [
        [g.effect.value for g in found.groups.groups]
        for given in ({}, {"encoding": "word-first"}, {"layer": 0})
        if (
            found := associate(
                models=[gpt2],
                run=stored,
                every_group=True,
                cache=False,
                indicators=file,
                attributes="manners",
                **given,  # type: ignore[arg-type]
            )
        ).groups
    ]
    assert len(effects) == 3 and effects[0] != effects[1] and effects[0] != effects[2]
