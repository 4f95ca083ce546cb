"""What configurations declare of their parameters, and what follows from it."""

import math
from collections.abc import Iterator
from typing import Any

import click
import pytest

from kgbias.cli.crawl import crawl
from kgbias.cli.evidence import evidence
from kgbias.cli.settings import Setting
from kgbias.crawl.config import CrawlConfig, CrawlParameters
from kgbias.crawl.seeds import choose_seeds
from kgbias.evidence import ProbeSettings
from kgbias.parameters import DeclaredParameter, OutOfRange, declared_parameters
from kgbias.study.probing import BeliefOptions

CONFIGS = {CrawlConfig: (CrawlParameters, crawl), ProbeSettings: (BeliefOptions, evidence)}
DECLARED = [(kind, p) for kind in CONFIGS for p in declared_parameters(kind).values()]


def build(kind: type, **values: Any) -> Any:
    if kind is CrawlConfig:
        values = {"seeds": tuple(choose_seeds("any", ["gender"], ())), **values}
    return kind(**values)


def outside(parameter: DeclaredParameter) -> Iterator[Any]:
    """Values that the parameter cannot have."""
    about = parameter.about
    if about.at_least is not None:
        yield about.at_least - 1
    if about.at_most is not None:
        yield about.at_most + 1
    if about.above is not None:
        yield about.above
    if {about.at_least, about.at_most, about.above} != {None} and parameter.type is float:
        yield math.nan
    if about.choices and not parameter.is_list:
        yield "none of these"


@pytest.mark.parametrize(("kind", "parameter"), DECLARED, ids=lambda p: getattr(p, "name", ""))
def test_a_declared_parameter_is_an_option_or_a_setting(
    kind: type, parameter: DeclaredParameter
) -> None:
    keywords, command = CONFIGS[kind]
    assert parameter.name in keywords.__annotations__
    (taken,) = [p for p in command.params if p.name == parameter.name]
    assert isinstance(taken, click.Option if parameter.about.typed else Setting)
    assert max(taken.opts, key=len).lstrip("-") == parameter.option_name
    if parameter.about.choices:
        assert isinstance(taken.type, click.Choice)
        assert tuple(taken.type.choices) == parameter.about.choices


@pytest.mark.parametrize(("kind", "parameter"), DECLARED, ids=lambda p: getattr(p, "name", ""))
def test_a_value_out_of_range_is_refused(kind: type, parameter: DeclaredParameter) -> None:
    for value in outside(parameter):
        with pytest.raises(OutOfRange) as caught:
            build(kind, **{parameter.name: value})
        assert caught.value.parameter == parameter.name
        assert str(caught.value.value).strip("'") == str(value)


def test_calls_take_what_is_declared_and_no_more() -> None:
    made_otherwise = {"strategy_prompts", "sized"}  # by `map`, and of strategies that others add
    assert {*declared_parameters(CrawlConfig)} == {
        *CrawlParameters.__annotations__
    } - made_otherwise


def test_a_record_keeps_what_differs_from_the_paper_alone() -> None:
    plain = build(CrawlConfig).as_dict()
    named = {n for n, p in declared_parameters(CrawlConfig).items() if p.about.always}
    assert named == plain.keys() & declared_parameters(CrawlConfig).keys()
    other = build(CrawlConfig, answers=2, min_p=0.0, top_p=1.0).as_dict()
    assert other == {**plain, "answers": 2}
