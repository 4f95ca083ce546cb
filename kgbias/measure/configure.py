"""Turns what a user names into what is measured, by which scorer, and how."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict, Unpack, get_args

from kgbias.errors import UsageError, no_such
from kgbias.measure.topics.settings import (
    MIN_CLUSTER_SIZE,
    SEED_COUNT,
    STATEMENTS_PER_MIN_SIZE,
    ClusterSelection,
    EntropyForm,
    Outliers,
    TopicSettings,
)
from kgbias.measures import MEASURES
from kgbias.packs import PUBLISHED
from kgbias.parallel import LOCAL_EXECUTOR, check_executor
from kgbias.parameters import Parameter, SelectionOptions, check_options, check_parameters

if TYPE_CHECKING:
    from kgbias.measure.price import ScorersLike
else:
    ScorersLike = str | Iterable[str]  # what a study in a file can say


class MeasureOptions(TypedDict, total=False):
    """The options of a measurement; `MeasureConfig` says what each one means, and has the
    defaults."""

    scorers: Mapping[str, "ScorersLike | None"]
    labels: Mapping[str, str] | None
    axes: bool
    topics: bool
    embedding: str
    min_topic_size: int | None
    outliers: Outliers
    topic_clusters: ClusterSelection
    topic_seed: int
    entropy: EntropyForm
    device: str
    processes: int | None
    executor: str


class MeasureCall(MeasureOptions, SelectionOptions, total=False):
    """Everything that decides a measurement: its options, and which statements count."""


@dataclass(frozen=True)
class MeasureConfig:
    """What to measure in a run.

    Attributes:
        scorers: the scorer of a measure, by the measure's name: offline, hf:ID-or-PATH[:LABEL],
            llm:SPEC, scores:FILE[::COLUMN] or openai-moderation, as
            `kgbias.measure.scorers.load_scorer` describes them. None or "none": leave the measure
            out. Your own: a function from a list of texts to as many numbers, labels or judgements,
            or a `kgbias.Scorer`. Several as a list: the first one counts, and `Run.agreement` says
            how far the others agree with it. Unless named, regard, toxicity, identity attack and
            acceptability are scored by "offline"; a measure of another package is scored only if
            named.
        labels: what the labels of a regard classifier mean, if it calls them LABEL_0, LABEL_1 ...,
            such as {"LABEL_0": "negative"}.
        axes, topics, embedding: what else to find, and in which vectors; described where they are
            declared.
        min_topic_size, outliers, topic_clusters, topic_seed, entropy: how topics are found and
            relative entropy is shown; `TopicSettings` describes them (as `min_topic_size`,
            `outliers`, `clusters`, `seed` and `entropy`).
        device: where models run: auto (a GPU if there is one), cpu, cuda, cuda:N or mps.
        processes: how many processes the offline scorers and the axes use on a CPU (None: one per
            core if there are enough statements). The scores are the same with any number.
        executor: where the offline scorers, the axes in minilm and hf: classifiers run: local,
            ray (a Ray on this machine) or ray://ADDRESS (a cluster); see `kgbias.parallel`. The
            scores are the same on the same kind of device.
    """

    scorers: Mapping[str, "ScorersLike | None"] = field(default_factory=dict)
    labels: Mapping[str, str] | None = None
    axes: Annotated[
        bool,
        Parameter(
            "Whether to place statements on the axes of warmth and competence",
            typed=True,
            unset="axes",
        ),
    ] = True
    topics: Annotated[
        bool,
        Parameter(
            "Whether to find topics, and each group's relative entropy",
            typed=True,
            unset="no topics",
        ),
    ] = False
    embedding: Annotated[
        str,
        Parameter(
            "The embedding for topics and axes: hf:ID-or-PATH of any sentence-transformers model, "
            "or vectors:FILE (GloVe, word2vec, fastText)",
            metavar="VECTORS",
        ),
    ] = TopicSettings.embedding
    min_topic_size: Annotated[
        int | None,
        Parameter(
            "The minimum number of distinct statements in a topic",
            at_least=2,
            unset=f"statements / {STATEMENTS_PER_MIN_SIZE}, at least {MIN_CLUSTER_SIZE}",
        ),
    ] = TopicSettings.min_topic_size
    outliers: Annotated[
        Outliers,
        Parameter(
            "Statements in no topic: keep them out, or assign them to the nearest",
            choices=get_args(Outliers),
        ),
    ] = TopicSettings.outliers
    topic_clusters: Annotated[
        ClusterSelection,
        Parameter(
            "Which clusters become topics: the smallest (leaf), or those that persist longest "
            "(eom)",
            choices=get_args(ClusterSelection),
        ),
    ] = TopicSettings.clusters
    topic_seed: Annotated[
        int,
        Parameter(
            "The first of the five random seeds used to find topics",
            at_least=0,
            at_most=2**32 - SEED_COUNT,
        ),
    ] = TopicSettings.seed
    entropy: Annotated[
        EntropyForm,
        Parameter(
            "The relative entropy to show: corrected and in bits, or Eq. 1 as printed in the paper",
            choices=get_args(EntropyForm),
        ),
    ] = TopicSettings.entropy
    device: str = "auto"
    processes: int | None = None
    executor: str = LOCAL_EXECUTOR

    def __post_init__(self) -> None:
        from kgbias.measure.scorers import check_measure

        check_parameters(self)
        check_executor(self.executor, self.processes)
        if not isinstance(self.scorers, Mapping):
            raise UsageError('`scorers` names the scorer of each measure: {"regard": "offline"}')
        for measure in self.scorers:
            check_measure(measure)

    @property
    def scorer_specs(self) -> "dict[str, ScorersLike | None]":
        """The scorers of each measure, by their specs; those that are named win."""
        from kgbias.measure.scorers import OFFLINE_SPEC

        axes = self.embedding if self.axes else None
        default_specs = {
            m.name: axes if m.in_vectors else OFFLINE_SPEC for m in MEASURES.own_entries.values()
        }
        return {**default_specs, **self.scorers}

    @property
    def topic_settings(self) -> TopicSettings:
        return TopicSettings(
            self.embedding,
            self.min_topic_size,
            self.outliers,
            self.topic_clusters,
            self.topic_seed,
            entropy=self.entropy,
        )


# What a preset sets. Salinas et al. 2023: regard by Sheng et al.'s BERT, toxicity by Perspective's
# identity attack (section 5.4; here by the public models nearest to both, since Sheng et al.'s
# checkpoint is not on a hub and Perspective ends with 2026), topics by BERTopic's defaults, and
# Eq. 1. All statements count, and nothing else is measured.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    PUBLISHED: {
        "scorers": {
            **{
                measure.name: None
                for measure in MEASURES.own_entries.values()
                if not measure.in_vectors
            },
            "regard": "hf:sasha/regardv3",
            "toxicity": "hf:unitary/unbiased-toxic-roberta:identity_attack",
        },
        "axes": False,
        "topics": True,
        "outliers": "keep",
        "topic_clusters": "eom",
        "entropy": "as_published",
        "min_acceptability": 0.0,
    }
}


class ConfiguredMeasurement(NamedTuple):
    """What is measured, which statements count, and, for a preset, a line that says what it
    sets."""

    config: MeasureConfig
    selection: SelectionOptions
    preset_line: str


def configure_measurement(
    preset: str | None = None, **given_options: Unpack[MeasureCall]
) -> ConfiguredMeasurement:
    """The measurement that these options describe.

    A preset sets everything as in a paper; explicit options override it, scorer by scorer. Raises
    UsageError for an unknown preset or parameter."""
    if preset is not None and preset not in PRESETS:
        raise UsageError(no_such("preset", preset, PRESETS))
    config_names = {option.name for option in fields(MeasureConfig)}
    # mypy knows no way from a checked dict back to its `TypedDict`.
    checked_options: Any = check_options(given_options, MeasureCall)
    given_options = checked_options
    preset_options = PRESETS[preset] if preset else {}
    options: dict[str, Any] = {**preset_options, **given_options}
    if preset_options and "scorers" in given_options:
        options["scorers"] = {**preset_options["scorers"], **given_options["scorers"]}
    config = MeasureConfig(**{n: v for n, v in options.items() if n in config_names})
    selection: Any = {n: v for n, v in options.items() if n not in config_names}
    preset_line = _describe_preset(preset, preset_options, given_options) if preset else ""
    return ConfiguredMeasurement(config, selection, preset_line)


class LanguageOptions(NamedTuple):
    """The options for a run in a language, and a line that says what was chosen."""

    options: MeasureCall
    remark: str


def options_for_language(language: str, given: MeasureCall) -> LanguageOptions:
    """The options for a run in a language, and a line that says what was chosen. In another
    language than English, measures of which no scorer is named are scored by what was tested in it,
    and left out without that. What scores a language untested has to be named."""
    from kgbias.measure.scorers import ENGLISH
    from kgbias.measure.scorers._multilingual import LANGUAGES, SPEC, TRANSFER_LANGUAGES

    if language == ENGLISH:
        return LanguageOptions(given, "")
    spec, named = f"{SPEC}:{language}", given.get("scorers") or {}
    able = [measure for measure, languages in LANGUAGES.items() if language in languages]
    scorers: dict[str, Any] = {
        measure.name: None for measure in MEASURES.own_entries.values() if not measure.in_vectors
    }
    if language not in TRANSFER_LANGUAGES:
        scorers.update(dict.fromkeys(able, spec))
    scored = [name for name, scorer in scorers.items() if scorer and name not in named]
    left_out = [name for name, scorer in scorers.items() if not scorer and name not in named]
    parts = []
    if scored:
        parts.append(f"{spec} scores {', '.join(scored)}")
    elif not named:
        parts.append("no scorer was tested in it, so nothing is scored")
        other = f"{spec} scores {', '.join(able)} untested" if able else "llm:SPEC may judge it"
        parts.append(f"{other}, if you name it")
    if left_out and (scored or named):
        parts.append(f"left out: {', '.join(left_out)}")
    if language in TRANSFER_LANGUAGES and any(_is_among(spec, specs) for specs in named.values()):
        parts.append(f"{spec} is untested: no labels in this language were at hand")
    line = f"the run is in the language {language!r}: {'; '.join(parts)}" if parts else ""
    chosen: MeasureCall = {
        **given,
        "scorers": {**scorers, **named},
        "axes": given.get("axes", False),
    }
    return LanguageOptions(chosen, line)


def _is_among(spec: str, specs: "ScorersLike | None") -> bool:
    return spec == specs or (isinstance(specs, list | tuple) and spec in specs)


def _describe_preset(
    preset: str, preset_options: Mapping[str, Any], given_options: Mapping[str, Any]
) -> str:
    """What the preset sets, and what was given instead."""

    def list_values(values: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {_option_word(value)}" for name, value in values.items())

    preset_options, given_options = (
        _flatten_options(preset_options),
        _flatten_options(given_options),
    )
    line = (
        f"{preset} sets "
        f"{list_values({n: v for n, v in preset_options.items() if n not in given_options})}"
    )
    if overrides := {
        # The preset leaves the embedding open: the paper's GloVe is a file of one's own.
        n: given_options[n]
        for n in given_options
        if n in preset_options or n == "embedding"
    }:
        line += f"; given instead: {list_values(overrides)}"
    if "embedding" not in given_options:
        line += "; topics use minilm: give embedding vectors:FILE to use GloVe as the paper did"
    return line


def _flatten_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the scorer of each measure under the measure's name."""
    return {**options.get("scorers", {}), **{n: v for n, v in options.items() if n != "scorers"}}


def _option_word(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list | tuple):
        return " and ".join(map(_option_word, value))
    if not isinstance(value, str | float | int):
        return str(getattr(value, "name", None) or getattr(value, "__name__", type(value).__name__))
    return f"{value:g}" if isinstance(value, float) else str(value)
