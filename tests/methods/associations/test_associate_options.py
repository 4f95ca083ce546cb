"""Which options of association tests apply: one that changes nothing is an error."""

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.errors import KgbiasError, UsageError
from kgbias.methods.associations.family import associate
from kgbias.methods.associations.method_agreement import measure_agreements
from kgbias.methods.associations.paper_files import to_latex
from kgbias.methods.associations.sets import AssociationTest, WordSet
from kgbias.models.base import ModelInfo
from kgbias.models.vectors import VectorLookup
from kgbias.parameters import UnusedParameter, check_applies
from tests.methods.associations.test_associate_graph import FILE, row, run  # noqa: F401
from tests.texts import Texts

TEST = AssociationTest(
    "t",
    WordSet("x", ("men", "rain")),
    WordSet("y", ("women", "food")),
    WordSet("a", ("love",)),
    WordSet("b", ("hate",)),
    frames=("{t} are {a}.",),
)


class Table:
    info = ModelInfo("table")

    def find(self, words: Any) -> VectorLookup:
        words = list(words)
        rows = np.random.default_rng(0).normal(size=(len(words), 3))
        return VectorLookup({word: word for word in words}, rows, ())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--method weat --contexts f.txt", "--contexts has no effect here, only with s-seat"),
        ("--method lpbs --set apart=3", "apart has no effect here, only with contexts of lpbs"),
        ("--method ceat --contexts f.txt --set apart=3", "apart has no effect here"),
        ("--method w-seat --generate 3", "--generate has no effect here, only with ceat"),
        ("--method lpbs --set window=3", "window has no effect here, only with --contexts"),
        ("--method ceat --set window=0", "window has no effect here, only with --contexts"),
        ("--method ceat --set most=9", "most has no effect here, only with --contexts"),
        ("--method s-seat --encoding word-first", "s-seat cannot take --encoding word-first"),
        ("--encoding cls", "w-seat cannot take --encoding cls"),
        ("--encoding sum", "no encoding 'sum'"),
        ("--method lpbs --layer 1", "--layer has no effect here, only with s-seat, w-seat, ceat"),
        ("--method weat --layer 0", "--layer has no effect here"),
        ("--method weat --set unit=word", "unit has no effect here, only with s-seat,"),
        ("--method ceat --set unit=sentence", "unit has no effect here"),
        ("--method ceat --set p=normal", "ceat cannot take p normal"),
        ("--method ceat --set spread=pooled", "ceat cannot take spread pooled"),
        ("--set p=exact --set samples=9", "an exact p-value draws no samples"),
        ("--set draws=50", "draws has no effect here, only with ceat or ceat-lpbs"),
        ("--set variance=cohen", "variance has no effect here, only with ceat or ceat-lpbs"),
        ("--set words=full", "words has no effect here, only with lpbs or ceat-lpbs"),
        ("--set pool=sum", "pool has no effect here, only with lpbs"),
        ("--set kind=causal", "kind has no effect here, only with lpbs or ceat-lpbs"),
        ("--set exact-case=true", "exact-case has no effect here, only with --vectors"),
        ("--set vector-format=glove", "vector-format has no effect here, only with --vectors"),
        ("--topics a,b", "--topics has no effect here, only with --groups"),
    ],
)
def test_an_option_that_does_not_apply_is_one_line(arguments: str, why: str) -> None:
    """Before any work: the model is not even looked for."""
    given = ["associate", "--model", "hf:nowhere", "--test", "weat6", *arguments.split()]
    error = CliRunner().invoke(cli, given).exception
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
        ({"every_group": True, "seed": 1}, "seed has no effect here"),  # its interval is exact
        ({"groups": ("a", "b"), "arm": "none"}, "arm has no effect here, only with every_group"),
        ({"tests": ["weat6"], "targets": "names"}, "targets has no effect here"),
        ({"tests": ["weat6"], "indicators": "f"}, "indicators has no effect here"),
        ({"every_group": True, "encoding": "cls"}, "encoding has no effect here"),
        ({"groups": ("a", "b")}, "groups and every_group need a run"),
        ({"tests": ["weat6"], "layr": 1}, "no parameter 'layr' .did you mean layer"),
        ({}, "name at least one association test"),
    ],
)
def test_parameters_of_static_vectors(parameters: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why.replace("(", r"\(")):
        associate(vectors=Table(), **parameters)


def test_tests_of_ones_own() -> None:
    other = AssociationTest("t", TEST.y, TEST.x, TEST.a, TEST.b)
    found = associate([TEST, other, TEST], vectors=Table())
    assert len(found) == 2 and found.records()[0]["family"] == 2
    assert found.as_dict()["results"][0]["test"] == "t"


def test_the_check_names_what_a_parameter_belongs_to(texts: Texts) -> None:
    takes = {"one": {"a", "b"}, "two": {"b"}, "three": {"b"}}
    check_applies(["a", "b"], takes, ["one"])
    with texts.raises(UnusedParameter) as error:
        check_applies(["a"], takes, ["two"])
    texts.check(error.value.line(str.upper))
    with texts.raises(UnusedParameter):
        check_applies(["b"], takes, [])
    with texts.raises(UsageError):
        check_applies(["c"], takes, ["one"])


def test_one_method_with_two_encodings_is_two_methods(texts: Texts) -> None:
    rows = []
    for encoding, effects in (("cls", (1, 2, 3)), ("last", (3, 2, 1))):
        for n, d in enumerate(effects):
            settings = {"ddof": 1, "encoding": encoding, "templates": n}
            rows.append(row(f"t{n}", "s-seat", d) | {"settings": settings})
    rows += [row(f"t{n}", "weat", d) for n, d in enumerate((1, 2, 3))]
    found = {a.methods: a.pearson for a in measure_agreements(rows) if not a.significant}
    assert found == {
        ("s-seat encoding=cls", "s-seat encoding=last"): pytest.approx(-1),
        ("s-seat encoding=cls", "weat"): pytest.approx(1),
        ("s-seat encoding=last", "weat"): pytest.approx(-1),
    }
    texts.check_lines(to_latex(rows), "s-seat encoding=cls")
