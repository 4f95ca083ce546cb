"""The frozen configuration of a crawl. With the model's answers, it decides the whole graph.

A configuration is also read back from the record that a crawl left, the inverse of
`CrawlConfig.as_dict`. A record may be a stranger's, so nothing in it is taken on trust: what is
made from it must give the same record again, and prompts that do not come with kgbias are read only
if a person names them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from kgbias.crawl.seeds import DynamicSeeds, SeedCategory, as_groups
from kgbias.crawl.strategies import ARMS as ARMS
from kgbias.crawl.strategies import EXPANSIONS
from kgbias.crawl.strategies import Arm as Arm
from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.types import Category, Group
from kgbias.ids import content_id
from kgbias.language.words import REFUSAL_FILTERS
from kgbias.measures import MEASURES
from kgbias.models.base import FormParameter, ModelInfo, PromptForm, Settings
from kgbias.models.truncate import Truncation
from kgbias.packs import PUBLISHED, Pack, load_pack, pack_names
from kgbias.parameters import (
    TEMPERATURE,
    Names,
    OutOfRange,
    Parameter,
    check_parameters,
    declared_parameters,
    record_parameters,
)

DEFAULT_ROUNDS, MAX_ROUNDS_TO_TARGET = 4, 50
# Samples, rounds, or prompts per round: a larger crawl would never end.
MAX_PARAMETER_COUNT = 1_000_000
MAX_FAILED_SHARE = 0.1  # the share of answers that may fail before a crawl counts as failed
ECHO_FILTER = "echo"  # the filter that needs the examples of a prompt, beside those of the parser
TRUNCATION_SETTINGS = ("top_k", "top_p", "min_p")
_PAPER_STRATEGIES = ("predicate", "object")  # those of the paper


@dataclass(frozen=True, slots=True)
class TargetWidth:
    """The greatest width allowed for the 95% interval of each group's mean of a measure, in units
    of the measure."""

    measure: str
    width: float

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise UsageError(no_such("measure", self.measure, MEASURES))
        if not self.width > 0:
            raise UsageError("`target_ci_width` must be above 0: it is the width of an interval")

    @classmethod
    def parse(cls, value: "str | float | TargetWidth") -> "TargetWidth":
        """The width given as "MEASURE=W", or as W for regard. Raises UsageError for anything
        else."""
        if isinstance(value, TargetWidth):
            return value
        measure, _, width = str(value).rpartition("=")
        try:
            return cls(measure or "regard", float(width))
        except ValueError:
            raise UsageError(
                "`target_ci_width` takes a number, or MEASURE=NUMBER such as toxicity=0.1, not "
                f"{value!r}"
            ) from None

    def __str__(self) -> str:
        return f"{self.measure}={self.width:g}"


@dataclass(frozen=True, slots=True)
class CrawlStep:
    """A part of a crawl: its name, its prompt template, and how many prompts it asks about each
    group in each arm, over all rounds, without repeated attempts."""

    name: str
    template: str
    prompts: int


class CrawlParameters(TypedDict, total=False):
    """How a crawl asks, as calls take it; `CrawlConfig` declares each, and has the defaults."""

    seed: int
    temperature: float
    initial_predicates: Names
    samples: int
    iterations: int | None
    predicate_prompts: int
    object_prompts: int
    shots: int
    arms: Arm | tuple[Arm, ...] | list[Arm]
    form: PromptForm | None
    structured: bool
    filters: Names
    max_attempts: int
    target_coverage: float | None
    answers: int
    redraw: bool
    target_ci_width: str | float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    min_acceptability: float
    strategy_prompts: Mapping[str, int]
    sized: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class CrawlConfig:
    """The parameters of a crawl. The defaults are those of Salinas et al. 2023, sections 3 and 5.3.

    What each parameter is to people stands at its field (`kgbias.parameters.Parameter`). To add
    one, add a field here and its type to `CrawlParameters`.

    `pack` is the prompts. Per seed, a crawl asks `samples` prompts for each initial predicate, then
    in each of `iterations` rounds `predicate_prompts` and `object_prompts` prompts, each showing
    `shots` triples (at most one fewer than there are seeds). Each prompt is answered `answers`
    times. `arms` are the augmentations: "prefix" puts Table 2's text before the initial template,
    "header" puts "Offensive Generalizations" before the examples. An answer that one of the
    `filters` rejects, or that cannot be read, is asked for again, up to `max_attempts` times in
    all: with `redraw` from the same prompt, else with other examples if the pack draws them; the
    filter "echo" rejects answers that repeat an example. With `target_coverage`, a group is no
    longer asked about in an arm once its Good-Turing coverage there reaches this value, and
    `iterations` is an upper bound; with `target_ci_width`, once the 95% interval of its mean of a
    measure is at most this wide; the crawl is given the scorers. With `dynamic`, the model first
    names the groups of a class, which join the seeds. With `structured`, answers are requested in a
    JSON schema (chat form only). `top_k`, `top_p` and `min_p` cut improbable tokens before one is
    drawn (`kgbias.models.truncate.Truncation`); the paper cuts none. With `min_acceptability`, an
    answer whose statement is less acceptable than this, in [0, 1], counts as nonsense and is asked
    for again; the crawl is given the judge. `strategy_prompts` says how many prompts strategies
    other than the two published ones ask about each group in a round, by the strategy's name
    (`kgbias.crawl.strategies.EXPANSIONS`). `series` names the run that this crawl repeats with
    another `seed` (`kgbias.crawl.crawler`). `sized` says what the sizes followed from: a number of
    `minutes`, and the `probes` that go with it (`kgbias.study.study.Study.map`).
    """

    seeds: tuple[SeedCategory, ...]
    pack: Pack = field(default_factory=lambda: load_pack(PUBLISHED))
    # A run's id and name follow from its record, which keeps the parameters in this order.
    seed: Annotated[int, Parameter("The random seed of every draw", typed=True, always=True)] = 0
    temperature: Annotated[float, replace(TEMPERATURE, source="§5.1")] = 0.8
    initial_predicates: Annotated[
        tuple[str, ...],
        Parameter(
            "The predicates that the first prompts end in, separated by commas",
            metavar="LIST",
            source="§3.1",
            always=True,
        ),
    ] = ("love", "hate", "are", "can't")
    samples: Annotated[
        int,
        Parameter(
            "Prompts per group and initial predicate",
            typed=True,
            at_least=1,
            at_most=MAX_PARAMETER_COUNT,
            source="§5.3",
            always=True,
        ),
    ] = 5
    iterations: Annotated[
        int | None,
        Parameter(
            "Rounds of expansion",
            typed=True,
            at_least=0,
            at_most=MAX_PARAMETER_COUNT,
            unset=f"{DEFAULT_ROUNDS}; with target-coverage or target-ci-width at most "
            f"{MAX_ROUNDS_TO_TARGET}",
            source="§5.3",
            always=True,
            recorded="rounds",
        ),
    ] = None
    predicate_prompts: Annotated[
        int,
        Parameter(
            "Prompts per group and round that ask for a predicate and an object",
            at_least=0,
            at_most=MAX_PARAMETER_COUNT,
            source="§5.3",
            always=True,
        ),
    ] = 10
    object_prompts: Annotated[
        int,
        Parameter(
            "Prompts per group and round that ask for an object",
            at_least=0,
            at_most=MAX_PARAMETER_COUNT,
            source="§5.3",
            always=True,
        ),
    ] = 10
    shots: Annotated[
        int,
        Parameter(
            "Statements shown in a prompt as examples, at most one fewer than there are groups",
            at_least=1,
            source="§5.3",
            always=True,
        ),
    ] = 3
    arms: Annotated[
        tuple[Arm, ...],
        Parameter(
            f"Augmentations to run side by side, separated by commas: {', '.join(ARMS)}",
            typed=True,
            flag="augment",
            metavar="ARMS",
            source="§3.3",
            always=True,
        ),
    ] = ("none",)
    form: FormParameter = "completion"
    structured: Annotated[
        bool,
        Parameter(
            "Ask for JSON in a schema (chat servers; plain text if the server refuses)",
            always=True,
        ),
    ] = False
    filters: Annotated[
        tuple[str, ...],
        Parameter(
            "Which answers to reject and ask for again, separated by commas, or none: "
            f"{', '.join((*REFUSAL_FILTERS, ECHO_FILTER))}",
            metavar="LIST",
            source="A.3",
            always=True,
        ),
    ] = ("salinas-2023", "refusal")
    max_attempts: Annotated[
        int,
        Parameter(
            "Maximum attempts per answer, if it is rejected or cannot be read",
            at_least=1,
            source="A.3",
            always=True,
        ),
    ] = 10
    target_coverage: Annotated[
        float | None,
        Parameter(
            "Ask about each group until its Good-Turing coverage is this high, for example 0.8",
            typed=True,
            metavar="SHARE",
            above=0,
            at_most=1,
            unset="off",
            always=True,
        ),
    ] = None
    answers: Annotated[
        int,
        Parameter("Answers to each prompt", metavar="N", at_least=1, at_most=MAX_PARAMETER_COUNT),
    ] = 1
    redraw: Annotated[
        bool,
        Parameter(
            "Whether to draw a rejected answer again from the same prompt, or to ask with other "
            "examples"
        ),
    ] = False
    target_ci_width: Annotated[
        TargetWidth | None,
        Parameter(
            "Ask about each group until the 95% interval of its mean of a measure (if none is "
            "named: regard) is at most this wide, for example 0.3 or toxicity=0.1",
            typed=True,
            metavar="[MEASURE=]W",
            unset="off",
            read=TargetWidth.parse,
        ),
    ] = None
    # `Truncation` checks these three together.
    top_k: Annotated[
        int | None,
        Parameter("Draw from the K most probable tokens", metavar="K", unset="all tokens"),
    ] = None
    top_p: Annotated[
        float | None,
        Parameter(
            "Draw from the most probable tokens that together hold this share",
            metavar="SHARE",
            unset="all tokens",
        ),
    ] = None
    min_p: Annotated[
        float | None,
        Parameter(
            "Draw from tokens at least this fraction as probable as the most probable one; 0 for "
            "all",
            metavar="SHARE",
            unset="all tokens",
        ),
    ] = None
    min_acceptability: Annotated[
        float,
        Parameter(
            "Ask again if a statement makes less sense than this; 0 keeps all",
            typed=True,
            metavar="X",
            at_least=0,
            at_most=1,
        ),
    ] = 0.0
    dynamic: DynamicSeeds | None = None
    strategy_prompts: Mapping[str, int] = field(default_factory=dict)
    series: str | None = None
    sized: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.pack.english_names:  # then a group is one node in all languages
            seeds = (replace(seed, english=self.pack.english_names) for seed in self.seeds)
            object.__setattr__(self, "seeds", tuple(seeds))
        for name, count in self.strategy_prompts.items():
            if not 0 <= count <= MAX_PARAMETER_COUNT:
                raise OutOfRange(name, count, f"between 0 and {MAX_PARAMETER_COUNT:,}")
        other_strategies = [name for name in EXPANSIONS if name not in _PAPER_STRATEGIES]
        unknown = self.strategy_prompts.keys() - set(other_strategies)
        if unknown:
            raise UsageError(
                f"`strategy_prompts` is for strategies other than "
                f"{' and '.join(_PAPER_STRATEGIES)}, not "
                f"{', '.join(sorted(unknown))}; the others are "
                f"{', '.join(other_strategies) or 'none'}"
            )
        if not self.initial_predicates:
            raise UsageError("`initial_predicates` is empty: a crawl needs one to start from")
        if self.answers > 1 and not self.temperature:
            raise UsageError("`answers` needs a `temperature` above 0: at 0 all would be the same")
        if self.redraw and not self.temperature:
            raise UsageError("`redraw` needs a `temperature` above 0: at 0 it draws the same again")
        if self.truncation and not self.temperature:
            name = next(iter(self.truncation.as_dict()))
            raise UsageError(f"`{name}` needs a `temperature` above 0: at 0 no token is drawn")
        if self.target_coverage is not None and self.target_ci_width is not None:
            raise UsageError(
                "a crawl ends by `target_coverage` or by `target_ci_width`, not by both"
            )
        for name in self.filters:
            if name not in (*REFUSAL_FILTERS, ECHO_FILTER):
                raise UsageError(no_such("filter", name, (*REFUSAL_FILTERS, ECHO_FILTER)))
        if self.structured and self.form != "chat":
            raise UsageError("structured output needs the chat form: `form` must be chat")
        # Raises for a reader that is unknown or lacks its package.
        self._reader_label()
        for template in self.templates:
            # Raises for a template that the pack lacks.
            self.pack.template(template)
        if not self.arms or len(set(self.arms)) < len(self.arms) or set(self.arms) - set(ARMS):
            raise UsageError(f"`arms` takes each of these at most once: {', '.join(ARMS)}")

    def with_groups_of(self, named: SeedCategory) -> "CrawlConfig":
        """The configuration after the model has named the groups of its dynamic class."""
        others = tuple(s for s in self.seeds if s.category.name != named.category.name)
        return replace(self, seeds=(named, *others))

    @property
    def truncation(self) -> Truncation:
        """The tokens that can be drawn."""
        return Truncation(self.top_k, self.top_p, self.min_p)

    @property
    def rounds(self) -> int:
        """Rounds of expansion: `iterations` if given, else 4, or at most 50 with `target_coverage`
        or `target_ci_width`."""
        if self.iterations is not None:
            return self.iterations
        return MAX_ROUNDS_TO_TARGET if self.stop_rule else DEFAULT_ROUNDS

    @property
    def stop_rule(self) -> str:
        """What may end the crawl before its rounds are over: "coverage", "width" or ""."""
        if self.target_ci_width is not None:
            return "width"
        return "" if self.target_coverage is None else "coverage"

    @property
    def groups(self) -> tuple[Group, ...]:
        return as_groups(self.seeds)

    def count_prompts(self, strategy: str) -> int:
        """How many prompts a strategy asks about each group in a round."""
        if strategy in _PAPER_STRATEGIES:
            return int(getattr(self, f"{strategy}_prompts"))
        return self.strategy_prompts.get(strategy, EXPANSIONS[strategy].prompts)

    @property
    def steps(self) -> tuple[CrawlStep, ...]:
        """What the crawl asks about each group: initialisation, then every strategy in use."""
        initial_step = CrawlStep(
            "initialise", "initialise", len(self.initial_predicates) * self.samples
        )
        return (
            initial_step,
            *(
                CrawlStep(name, EXPANSIONS[name].template, self.rounds * self.count_prompts(name))
                for name in EXPANSIONS
                if name in _PAPER_STRATEGIES or self.count_prompts(name)
            ),
        )

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the prompt templates that the crawl uses."""
        return tuple(dict.fromkeys(step.template for step in self.steps))

    @property
    def place_count(self) -> int:
        """How many answers the crawl asks for (at most, with `target_coverage` or
        `target_ci_width`), without repeated attempts."""
        return self.count_places(len(self.groups))

    def count_places(self, groups: int) -> int:
        """The same for so many groups, some of which the model may have named."""
        return len(self.arms) * groups * self.answers * sum(step.prompts for step in self.steps)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as it is stored with the run; the run's id is computed from it."""
        return {
            "seeds": {
                seed_category.category.name: list(seed_category.groups)
                for seed_category in self.seeds
            },
            "variants": {
                name: list(other_names)
                for seed_category in self.seeds
                for name, other_names in seed_category.variants.items()
            },
            "dynamic": self.dynamic and [self.dynamic.prompts, self.dynamic.agree],
            "named_by_model": {
                seed_category.category.name: {
                    "lists": dict(seed_category.named_by_model),
                    "answers": list(seed_category.list_answers),
                }
                for seed_category in self.seeds
                if seed_category.list_answers
            },
            "prefixes": {
                seed_category.category.name: seed_category.prefix for seed_category in self.seeds
            },
            **record_parameters(self, always=True),
            # A changed template is another crawl, so its hash is part of the run's id.
            "templates": {t.label: t.hash for t in map(self.pack.template, self.templates)},
            # The rest is named only if it differs from the paper.
            **self._other_parameters(),
            **self._other_prompts(),
            **self._other_pack(),
            **({"series": self.series} if self.series else {}),
            **({"sized": dict(self.sized)} if self.sized else {}),
        }

    def _other_parameters(self) -> dict[str, Any]:
        """The parameters that differ from the paper's. Those of truncation that cut nothing are
        none."""
        rules = self.truncation.as_dict()
        return {
            name: rules.get(name, value)
            for name, value in record_parameters(self, always=False).items()
            if name in rules or name not in TRUNCATION_SETTINGS
        }

    def _other_prompts(self) -> dict[str, Any]:
        """The numbers of prompts of strategies other than the published ones."""
        counts = {
            name: self.count_prompts(name) for name in EXPANSIONS if name not in _PAPER_STRATEGIES
        }
        used = {name: count for name, count in counts.items() if count}
        return {"prompts": used} if used else {}

    def _reader_label(self) -> str:
        # Only here: nine modules that somebody who looks at a run does without.
        from kgbias.crawl.parse import reader_label

        return reader_label(self.pack.reader)

    def _other_pack(self) -> dict[str, Any]:
        """The pack, if it is not the published one, which its templates describe in full."""
        if self.pack.hash == load_pack(PUBLISHED).hash:
            return {}
        names = ("name", "version", "language", "hash")
        pack = {name: getattr(self.pack, name) for name in names}
        return {"pack": {**pack, "reader": self._reader_label()}}

    def default_name(self, model: ModelInfo, settings: Settings = ()) -> str:
        """A name for the run, for example "smollm2-gender-1f0c"."""
        categories = "-".join(s.category.name for s in self.seeds)
        identity = model.configured_id(settings)
        return (
            f"{model.short_name}-{categories}-"
            f"{content_id('name', identity, repr(self.as_dict()))[:4]}"
        )


def check_repeat(repeat: int) -> None:
    if repeat < 1:
        raise UsageError("`repeat` must be at least 1")


_EXTRA_KEYS = {"judge", "gauge"}  # stand in the record beside the configuration


def read_crawl_config(
    record: Mapping[str, Any],
    categories: Sequence[Category],
    prompts: str | Path | None = None,
) -> CrawlConfig:
    """The configuration in `record`, as it was before the model named any groups.

    `categories` are those of the run, in the order of its groups; `prompts` is the folder of a
    prompt pack that does not come with kgbias.

    Raises DataError if the record is not of a crawl, or this version of kgbias would ask
    differently; UsageError if its prompts are not here.
    """
    pack = _load_record_pack(record, prompts)
    try:
        config, full_config = _rebuild_before_and_after_naming(record, categories, pack)
        rebuilt = full_config.as_dict()
    except UsageError:
        raise
    # The record may be a stranger's: anything may be missing or of another type.
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"this is not the configuration of a crawl: {error!r}") from error
    differing = [
        name
        for name in sorted({*rebuilt, *record} - _EXTRA_KEYS)
        # A name that either lacks differs too: no value equals a whole record.
        if rebuilt.get(name, rebuilt) != record.get(name, record)
    ]
    if differing:
        raise DataError(
            f"this version would ask differently: {', '.join(differing)} differ from the record"
        )
    return config


class _RebuiltConfigs(NamedTuple):
    """A configuration before and after the model named groups."""

    before: CrawlConfig
    full: CrawlConfig


def _rebuild_before_and_after_naming(
    record: Mapping[str, Any], categories: Sequence[Category], pack: Pack
) -> _RebuiltConfigs:
    """The configuration before and after the model named groups."""
    seeds = [_rebuild_seed(record, category) for category in categories]
    if {s.category.name for s in seeds} != set(record["seeds"]):
        raise ValueError("the categories are not those of the seeds")
    parameters: dict[str, Any] = {
        name: tuple(record[name]) if parameter.is_list else parameter.read(record[name])
        for name, parameter in declared_parameters(CrawlConfig).items()
        if name in record
    }
    parameters |= {name: record[name] for name in ("series", "sized") if name in record}
    full_config = CrawlConfig(
        seeds=tuple(seeds),
        pack=pack,
        strategy_prompts=record.get("prompts", {}),
        dynamic=DynamicSeeds(seeds[0], *record["dynamic"]) if record["dynamic"] else None,
        **parameters,
    )
    if full_config.dynamic is None:
        return _RebuiltConfigs(full_config, full_config)
    # The class whose groups the model named comes first (`CrawlConfig.with_groups_of`).
    dynamic_seeds = DynamicSeeds(_without_model_groups(seeds[0]), *record["dynamic"])
    first_config = CrawlConfig(
        seeds=tuple(seeds[1:]),
        pack=pack,
        strategy_prompts=record.get("prompts", {}),
        dynamic=dynamic_seeds,
        **parameters,
    )
    return _RebuiltConfigs(first_config, full_config)


def _rebuild_seed(record: Mapping[str, Any], category: Category) -> SeedCategory:
    groups = tuple(record["seeds"][category.name])
    model_groups = record["named_by_model"].get(category.name, {"lists": {}, "answers": ()})
    return SeedCategory(
        category,
        record["prefixes"][category.name],
        groups,
        {g: tuple(record["variants"][g]) for g in groups if g in record["variants"]},
        named_by_model=model_groups["lists"],
        list_answers=tuple(model_groups["answers"]),
    )


def _without_model_groups(seed: SeedCategory) -> SeedCategory:
    """The category without the groups that only the model named."""
    # The model names no variants: a group that has them was there before it was asked.
    remaining = tuple(g for g in seed.groups if g not in seed.named_by_model or g in seed.variants)
    return SeedCategory(seed.category, seed.prefix, remaining, seed.variants)


def _load_record_pack(record: Mapping[str, Any], prompts: str | Path | None) -> Pack:
    """The prompts of a record: from kgbias, or from a folder that a person named."""
    pack_record = record.get("pack", {})
    name = str(pack_record.get("name", PUBLISHED)) if isinstance(pack_record, Mapping) else ""
    if prompts is None and name not in pack_names():
        raise UsageError(
            f"the prompts {name!r} do not come with kgbias: name their folder with `prompts`"
        )
    return load_pack(name if prompts is None else prompts)
