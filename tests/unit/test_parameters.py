"""What configurations declare of their parameters, and what follows from it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import click
import pytest

from kgbias.cli.crawl import crawl
from kgbias.cli.evidence import evidence
from kgbias.cli.measure import measure
from kgbias.cli.settings import Setting
from kgbias.crawl.config import CrawlConfig, CrawlParameters
from kgbias.crawl.seeds import choose_seeds
from kgbias.evidence import ProbeSettings
from kgbias.graph.prompting import load_prompts
from kgbias.measure.configure import MeasureConfig, MeasureOptions
from kgbias.methods.choice import ChoiceOptions
from kgbias.methods.choice.command import choice
from kgbias.methods.choice.config import ChoiceConfig
from kgbias.methods.pairs import PairsOptions
from kgbias.methods.pairs import command as pairs_command
from kgbias.methods.pairs.config import PairsConfig, configure_pairs
from kgbias.methods.profiles import ProfileOptions
from kgbias.methods.profiles import command as profiles_command
from kgbias.methods.profiles.config import ProfileConfig, configure_profiles
from kgbias.methods.stories import StoryOptions
from kgbias.methods.stories import command as stories_command
from kgbias.methods.stories.config import StoryConfig, configure_stories
from kgbias.parameters import DeclaredParameter, OutOfRange, Parameter, declared_parameters
from kgbias.study.probing import BeliefOptions

CONFIGS: dict[type, tuple[type, click.Command]] = {
    CrawlConfig: (CrawlParameters, crawl),
    ProbeSettings: (BeliefOptions, evidence),
    MeasureConfig: (MeasureOptions, measure),
    ChoiceConfig: (ChoiceOptions, choice),
    StoryConfig: (StoryOptions, stories_command.run),
    PairsConfig: (PairsOptions, pairs_command.run),
    ProfileConfig: (ProfileOptions, profiles_command.run),
}
CONFIGURE: dict[type, Callable[..., Any]] = {
    StoryConfig: configure_stories,
    PairsConfig: configure_pairs,
    ProfileConfig: configure_profiles,
}
DECLARED = [(kind, p) for kind in CONFIGS for p in declared_parameters(kind).values()]


def build(kind: type, **values: Any) -> Any:
    if kind is CrawlConfig:
        values = {"seeds": tuple(choose_seeds("any", ["gender"], ())), **values}
    if kind is ChoiceConfig:
        template = load_prompts("choice", {"group": {"statement": "", "options": []}})["group"]
        values = {"template": template, "form": "chat", **values}
    if configure := CONFIGURE.get(kind):
        return replace(configure("reference"), **values)
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


@pytest.mark.parametrize("kind", CONFIGURE, ids=lambda kind: kind.__name__)
def test_what_a_kind_of_runs_adds_stands_in_its_record_if_it_is_set(kind: type) -> None:
    """A parameter that no run had before changes the id of none of them."""

    @dataclass(frozen=True, kw_only=True)
    class Longer(kind):  # type: ignore[misc]
        max_words: Annotated[int, Parameter("The most words", at_least=1)] = 5

    config = build(kind)
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    assert Longer(**values).as_dict() == config.as_dict()
    assert Longer(**values, max_words=9).as_dict() == {**config.as_dict(), "max_words": 9}
