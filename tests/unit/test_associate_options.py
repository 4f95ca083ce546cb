"""Which options of association tests apply: one that changes nothing is an error."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.associate import METHODS, AssociationTest, WordSet, associate
from kgbias.associate.compare import agreements
from kgbias.associate.scores import SCORES
from kgbias.cli.associate import associate as command
from kgbias.errors import KgbiasError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stored import StoredRun
from kgbias.models.base import ModelInfo
from kgbias.models.vectors import Found
from kgbias.parameters import DoesNotApply, check_applies
from kgbias.report.associations import to_latex
from tests import tiny
from tests.conftest import needs
from tests.unit.test_associate_graph import FILE, row, run  # noqa: F401

TEST = AssociationTest(
    "t", WordSet("x", ("men", "rain")), WordSet("y", ("women", "food")), WordSet("a", ("love",)),
    WordSet("b", ("hate",)), frames=("{t} are {a}.",),
)  # fmt: skip


class Table:
    info = ModelInfo("table")

    def find(self, words: Any) -> Found:
        words = list(words)
        rows = np.random.default_rng(0).normal(size=(len(words), 3))
        return Found({word: word for word in words}, rows, ())


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> str:
    needs("transformers")
    return f"hf:{tiny.saved(tmp_path_factory.mktemp('gpt2'))}"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--method weat --contexts f.txt", "--contexts has no effect here, only with s-seat"),
        ("--method lpbs --apart 3", "--apart has no effect here, only with contexts of lpbs"),
        ("--method ceat --contexts f.txt --apart 3", "--apart has no effect here"),
        ("--method w-seat --generate 3", "--generate has no effect here, only with ceat"),
        ("--method lpbs --window 3", "--window has no effect here, only with --contexts"),
        ("--method ceat --window 0", "--window has no effect here, only with --contexts"),
        ("--method ceat --most 9", "--most has no effect here, only with --contexts"),
        ("--method s-seat --encoding word-first", "s-seat cannot take --encoding word-first"),
        ("--encoding cls", "w-seat cannot take --encoding cls"),
        ("--encoding sum", "no encoding 'sum'"),
        ("--method lpbs --layer 1", "--layer has no effect here, only with s-seat, w-seat, ceat"),
        ("--method weat --layer 0", "--layer has no effect here"),
        ("--method weat --unit word", "--unit has no effect here, only with s-seat,"),
        ("--method ceat --unit sentence", "--unit has no effect here"),
        ("--method ceat --p normal", "ceat cannot take --p normal"),
        ("--method ceat --spread pooled", "ceat cannot take --spread pooled"),
        ("--p exact --samples 9", "an exact p-value draws no samples"),
        ("--draws 50", "--draws has no effect here, only with ceat or ceat-lpbs"),
        ("--variance cohen", "--variance has no effect here, only with ceat or ceat-lpbs"),
        ("--words full", "--words has no effect here, only with lpbs or ceat-lpbs"),
        ("--pool sum", "--pool has no effect here, only with lpbs"),
        ("--kind causal", "--kind has no effect here, only with lpbs or ceat-lpbs"),
        ("--exact-case", "--exact-case has no effect here, only with --vectors"),
        ("--vector-format glove", "--vector-format has no effect here, only with --vectors"),
        ("--topics a,b", "--topics has no effect here, only with --groups"),
    ],
)  # fmt: skip
def test_an_option_that_does_not_apply_is_one_line(arguments: str, why: str) -> None:
    """Before any work: the model is not even looked for."""
    given = ["--model", "hf:nowhere", "--test", "weat6", *arguments.split()]
    error = CliRunner().invoke(command, given).exception
    assert isinstance(error, KgbiasError) and "\n" not in str(error)
    assert why in str(error)


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"tests": ["weat6"], "layer": 1}, "layer has no effect here"),
        ({"tests": ["weat6"], "device": "cpu"}, "device has no effect here, only with models"),
        ({"tests": ["weat6"], "cache": False}, "cache has no effect here, only with models"),
        ({"tests": ["weat6"], "methods": ["ceat"]}, "ceat needs a language model"),
        ({"every_group": True, "methods": ["weat"]}, "methods has no effect here"),
        ({"every_group": True, "tails": "two"}, "tails has no effect here"),
        ({"groups": ("a", "b"), "arm": "none"}, "arm has no effect here, only with every_group"),
        ({"tests": ["weat6"], "targets": "names"}, "targets has no effect here"),
        ({"tests": ["weat6"], "indicators": "f"}, "indicators has no effect here"),
        ({"every_group": True, "encoding": "cls"}, "encoding has no effect here"),
        ({"groups": ("a", "b")}, "groups and every_group need a run"),
        ({"tests": ["weat6"], "layr": 1}, "no parameter 'layr'; there is apart, arm,"),
        ({}, "name at least one association test"),
    ],
)
def test_parameters_of_static_vectors(parameters: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why.replace("(", r"\(")):
        associate(vectors=Table(), **parameters)


def test_a_parameter_reaches_the_methods_that_take_it(gpt2: str) -> None:
    found = associate(
        [TEST], ["weat", "s-seat", "w-seat", "ceat", "lpbs", "ceat-lpbs"], models=[gpt2],
        cache=False, encoding="word-first", layer=0, draws=50, pool="sum", how="normal",
    )  # fmt: skip
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
        [TEST], ["ceat"], models=[gpt2], cache=False, contexts=corpus, most=2, window=0, draws=9,
    )  # fmt: skip
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
        if (found := associate(
            models=[gpt2], run=stored, every_group=True, cache=False, indicators=file,
            attributes="manners", **given,  # type: ignore[arg-type]
        )).groups
    ]  # fmt: skip
    assert len(effects) == 3 and effects[0] != effects[1] and effects[0] != effects[2]


def test_tests_of_ones_own(gpt2: str, tmp_path: Path) -> None:
    other = AssociationTest("t", TEST.y, TEST.x, TEST.a, TEST.b)
    found = associate([TEST, other, TEST], vectors=Table())
    assert len(found) == 2 and found.records()[0]["family"] == 2
    assert found.as_dict()["results"][0]["test"] == "t"


def test_the_check_names_what_a_parameter_belongs_to() -> None:
    takes = {"one": {"a", "b"}, "two": {"b"}, "three": {"b"}}
    check_applies(["a", "b"], takes, ["one"])
    with pytest.raises(DoesNotApply, match=r"a has no effect here, only with one$") as error:
        check_applies(["a"], takes, ["two"])
    assert error.value.line(str.upper) == "A has no effect here, only with ONE"
    with pytest.raises(DoesNotApply, match="b has no effect here, only with one, two or three"):
        check_applies(["b"], takes, [])
    with pytest.raises(UsageError, match="no parameter 'c'; there is a, b"):
        check_applies(["c"], takes, ["one"])


def test_one_method_with_two_encodings_is_two_methods() -> None:
    rows = []
    for encoding, effects in (("cls", (1, 2, 3)), ("last", (3, 2, 1))):
        for n, d in enumerate(effects):
            settings = {"ddof": 1, "encoding": encoding, "templates": n}
            rows.append(row(f"t{n}", "s-seat", d) | {"settings": settings})
    rows += [row(f"t{n}", "weat", d) for n, d in enumerate((1, 2, 3))]
    found = {a.methods: a.pearson for a in agreements(rows) if not a.significant}
    assert found == {
        ("s-seat encoding=cls", "s-seat encoding=last"): pytest.approx(-1),
        ("s-seat encoding=cls", "weat"): pytest.approx(1),
        ("s-seat encoding=last", "weat"): pytest.approx(-1),
    }
    assert "s-seat encoding=cls & s-seat encoding=last & weat" in to_latex(rows)
