"""The docstrings of public functions: what each parameter is, and which columns rows have."""

import inspect
import re
from collections.abc import Iterator
from pkgutil import resolve_name
from typing import Any

import pytest

import kgbias
from kgbias.methods import iter_calls
from kgbias.study.beliefs import RunBeliefs
from kgbias.study.maintenance import StoreMaintenance
from kgbias.study.series import Series

OBJECTS = (
    kgbias.Study,
    kgbias.Run,
    StoreMaintenance,
    RunBeliefs,
    Series,
    kgbias.Rows,
)


def _public() -> Iterator[tuple[str, Any]]:
    for of in OBJECTS:
        for name, value in inspect.getmembers_static(of, inspect.isfunction):
            if not name.startswith("_") and name not in ("index", "count", "working"):
                yield f"{of.__name__}.{name}", value
    for name in kgbias.__all__:
        if inspect.isfunction(getattr(kgbias, name)):
            yield name, getattr(kgbias, name)
    yield from iter_calls()


FUNCTIONS = dict(_public())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_explained(name: str) -> None:
    """Where there are two or more: options that a typed dict names are one parameter."""
    written = inspect.signature(inspect.unwrap(FUNCTIONS[name]))
    names = [p for p in written.parameters if p != "self"]
    explained = (inspect.getdoc(FUNCTIONS[name]) or "").partition("\nArgs:\n")[2]
    lacking = [p for p in names if f"\n    {p}:" not in f"\n{explained}"]
    assert len(names) < 2 or not lacking


@pytest.mark.parametrize("name", FUNCTIONS)
def test_columns_of_rows_are_named(name: str) -> None:
    returned = str(inspect.signature(FUNCTIONS[name]).return_annotation)
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    assert "Rows[" not in returned or "olumns" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_docstring_refers_to_is_there(name: str) -> None:
    text = " ".join((inspect.getdoc(FUNCTIONS[name]) or "").split())
    for reference in re.findall(r"(?:as (?:for|in|of)|[Ss]ee) `([\w.]+)`", text):
        first, *rest = reference.removeprefix("kgbias.").split(".")
        method = inspect.getmodule(inspect.unwrap(FUNCTIONS[name]))
        places = (kgbias, *OBJECTS, method)
        found = next((getattr(place, first) for place in places if hasattr(place, first)), None)
        if reference.startswith("kgbias."):
            found = resolve_name(reference)
        else:
            for part in rest:
                found = getattr(found, part, None)
        named = found is not None or reference in inspect.signature(FUNCTIONS[name]).parameters
        assert named, reference


def test_options_are_typed() -> None:
    """None is taken by `**` without a type, but for the parameters of queries."""
    untyped = [
        name
        for name, function in FUNCTIONS.items()
        for p in inspect.signature(inspect.unwrap(function)).parameters.values()
        if p.kind is p.VAR_KEYWORD and p.annotation is Any
    ]
    assert untyped == ["Study.cypher", "Study.query"]


def test_a_misspelt_option_is_refused_with_the_nearest() -> None:
    from kgbias.errors import UsageError

    refused: list[str] = []
    for name, function in FUNCTIONS.items():
        parameters = inspect.signature(function).parameters
        known = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
        if "." not in name or not known or name.startswith("Rows."):
            continue
        with pytest.raises(UsageError) as error:
            function(None, **{f"{known[0]}x": None})
        assert f"(did you mean {known[0]}?)" in str(error.value), name
        assert "\n" not in str(error.value)
        refused.append(name)
    assert len(refused) > 60


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("Study.crawl", "max_cost"),
        ("associations.associate", "vectors"),
        ("Run.measure", "scorers"),
    ],
)
def test_help_and_completion_know_every_option(name: str, option: str) -> None:
    shown = inspect.signature(FUNCTIONS[name])
    assert shown.parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
    assert "**" not in str(shown)
