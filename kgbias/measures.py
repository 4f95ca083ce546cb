"""The measures of statements, as a table: what each one is, how it is scored, and which figures of
a group follow from it.

Code that treats every measure alike reads `MEASURES`. To add a measure, add an entry here and the
scorer that it names; its figures, table columns, tests, exhibits, judges and command-line options
follow. Another package can add one without editing this file (docs/how-to/extend.md).

Regard and toxicity, and the figures made of them, are those of Salinas et al. 2023 (section 6; the
regard of a statement is Sheng et al. 2019's). Warmth and competence are the axes of the Stereotype
Content Model (Fiske et al. 2002). Identity attack sees the group that toxicity hides. Acceptability
says how likely a statement is to mean anything at all, whatever that is.

Each entry has the range, direction and labels of its measure. A scorer is a class with `measure`,
`name`, `version` and `score`, and with `language` if it reads only one; it may be the offline
scorer with other heads. A rubric for judges is a file in `prompts/judges/`, named after its
measure.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from kgbias.io.plugins import PluginTable
from kgbias.io.text import spoken_name

if TYPE_CHECKING:
    from kgbias.stats.inference import Sample

WITHHELD_PREFIX = "withheld: "
"""The start of the method of a figure that has no value; the reason follows."""

CORRECTED_PREFIX = "corrected "
"""The start of the method of a figure that is corrected by labels."""
BY_ALL_LABELS = "of statements about all groups"
"""Part of the method of one corrected by the labels of all groups, not by the group's own."""

Over = Literal["all", "chosen", "standardised"]
"""The statements that a figure covers: all of a group's; those whose predicate the model chose, not
the prompt; or all, with each form of prompt weighted as in the whole category
(`kgbias.stats.poststratification`)."""

Statistic = Literal["total", "mean", "median", "q1", "q3"]
"""How a group's figure summarises the values of its statements; `kgbias.stats.inference.STATISTICS`
computes each one."""


class ScoreLike(Protocol):
    """The parts of a score that a measure reads: a number and a label."""

    @property
    def value(self) -> float: ...
    @property
    def label(self) -> str: ...


class ScoredTriple(Protocol):
    """A triple with its scores, by measure; `kgbias.graph.types.TripleView` is one."""

    @property
    def count(self) -> int: ...
    @property
    def scores(self) -> Mapping[str, ScoreLike]: ...


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a group.

    Attributes:
        name: what it is stored and looked up under, such as "overall_regard".
        title: its name for readers, as in "overall regard of Women".
        form: how it is printed, as a format specification.
        direction: what a higher value means.
        statistic: how it follows from the values of the group's statements; None for a figure that
            does not come from a measure of statements.
        counts: with "total", count the statements of this value instead of summing the values.
        column: its heading in the table that a terminal shows; "" if it is not shown there.
        heading: its heading in the report's first table of groups, if not `title`.
        interval: whether tables print its interval beside it.
        overview: whether the report's first table of groups has it.
        over: which statements it covers.
        raw: for a figure corrected by labels, the name of the one that is not.
    """

    name: str
    title: str
    form: str
    direction: str
    statistic: Statistic | None = None
    counts: float | None = None
    column: str = ""
    heading: str = ""
    interval: bool = True
    overview: bool = True
    over: Over = "all"
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Heads:
    """The trained heads with which the offline scorer reads a measure.

    Attributes:
        weights: their file in `kgbias/measure/scorers`.
        outputs: the class of each column of its logits; () for the single one of a probability.
        sees_group: whether it reads the group's name; otherwise a neutral word replaces it.
        sees_grammar: whether the verb beside that word stays as it was said: "They loves music."
    """

    weights: str
    outputs: tuple[str, ...] = ()
    sees_group: bool = False
    sees_grammar: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of statements.

    Attributes:
        name: such as "regard"; also the name of its column in exports and frames.
        range: the smallest and the largest value; None if unbounded. From 0 to 1 with two labels
            it is a probability.
        direction: what a higher value means.
        labels: what each label means; for a probability, that of 0.5 and above comes first.
        form: how one statement's value is printed, as a format specification.
        figures: the figures of a group that follow from it. A terminal shows the first one with a
            `column`.
        worst: which end of the range the most hurtful statements are at.
        hurtful: the label of hurtful statements; "" if no label is.
        highlight: the heading of these statements in the report; "" if it does not list them.
        signs: if figures and tests read the label and not the value, what each label counts as; a
            label that is not listed counts as 0.
        always: whether a table of triples has its column even if a run lacks the measure.
        exhibit: whether the generic exhibit (a bar for each group) shows it; False for a measure
            that has an exhibit of its own.
        compares: whether groups are compared by it, and scorers tried on the names of groups.
        scorer: the default scorer, as "module:name" of a class that is opened with the measure's
            name and `device`; "" if one must be named.
        heads: the heads with which the offline scorer reads it.
        in_vectors: whether its scorer places statements in vectors, and is named after them.
        classes: what other people's classifiers call the class whose probability is the value, best
            first.
        columns: other names of its column in tables of scores made elsewhere.
        moderation: the nearest category of OpenAI's moderation endpoint, or "".
        folder: the folder of NAME.toml, the rubric by which language models judge it, and NAME.tsv,
            statements (`text`) with labels (`label`) to check judges by; None: kgbias's own.
    """

    name: str
    range: tuple[float, float] | None
    direction: str
    labels: Mapping[str, str]
    form: str
    figures: tuple[Figure, ...]
    worst: Literal["lowest", "highest"]
    hurtful: str = ""
    highlight: str = ""
    signs: Mapping[str, float] = field(default_factory=dict)
    always: bool = False
    exhibit: bool = True
    compares: bool = True
    scorer: str = ""
    heads: Heads | None = None
    in_vectors: bool = False
    classes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    moderation: str = ""
    folder: Path | None = None

    @property
    def ends(self) -> tuple[str, str] | None:
        """The labels of the highest and lowest sign, whose probabilities make the value."""
        if not self.signs:
            return None
        by_sign = sorted(self.signs, key=lambda label: self.signs[label])
        return by_sign[-1], by_sign[0]

    @property
    def sides(self) -> tuple[str, str] | None:
        """For a probability, the label of 0.5 or more, and that of less."""
        if self.signs or self.range != (0.0, 1.0) or len(self.labels) != 2:
            return None
        above, below = self.labels
        return above, below

    @property
    def ends_of_signs(self) -> tuple[float, float] | None:
        """The least and greatest sign of its labels; None for a measure without classes."""
        return (min(self.signs.values()), max(self.signs.values())) if self.signs else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The range of what figures and tests read, if that is a value and not a class."""
        return None if self.signs else self.range

    @property
    def widest(self) -> float:
        """The largest difference of two means that is possible; infinite without a range."""
        ends = self.ends_of_signs or self.range
        return math.inf if ends is None else ends[1] - ends[0]

    def possible_difference(self, size: float) -> float:
        """The size of a difference of two means, NaN if none can be as large."""
        return size if size <= self.widest else math.nan

    def read(self, score: ScoreLike) -> float:
        """The number that figures and tests read from a score: the sign of its label if the measure
        has `signs`, or else its value."""
        return self.signs.get(score.label, 0.0) if self.signs else score.value

    @property
    def label_column(self) -> str:
        """The column of its labels in exports and frames."""
        return f"{self.name}_label"


def _name_effect_figure(measure: str, form: str) -> Figure:
    """The effect of a group's name alone on a scorer (`kgbias.measure.counterfactual`)."""
    return Figure(
        f"{measure}_name_effect",
        f"effect of the group's name on {spoken_name(measure)}",
        form,
        "0: the scorer is blind to the name",
        overview=False,
    )


class _FormFigures(NamedTuple):
    """The figures of a measure by how its prompts were formed."""

    chosen: Figure
    standard: Figure
    name_effect: Figure


def _form_figures(measure: str, form: str, direction: str, column: str = "") -> _FormFigures:
    """The mean of a measure where the model chose the predicate, which a table of groups shows if
    there is one; the mean at one mix of prompts; and the effect of the name alone."""
    mean = f"mean {spoken_name(measure)}"
    return _FormFigures(
        Figure(
            f"{measure}_chosen",
            f"{mean} where the model chose the predicate",
            form,
            direction,
            "mean",
            column=column or measure,
            overview=False,
            over="chosen",
        ),
        Figure(
            f"{measure}_standardised",
            f"{mean} at one mix of prompts",
            form,
            direction,
            "mean",
            overview=False,
            over="standardised",
        ),
        _name_effect_figure(measure, f"+{form.lstrip('+')}"),
    )


def mean_figures(measure: str, form: str, direction: str, column: str = "") -> tuple[Figure, ...]:
    """The figures of a measure that has only means: over all statements of a group, over those
    whose predicate the model chose, and at one mix of prompts; and the effect of a group's name on
    the scorer. `form` is how they are printed, `column` their heading in a terminal's table."""
    return (
        Figure(
            f"{measure}_mean",
            f"mean {spoken_name(measure)}",
            form,
            direction,
            "mean",
            column=column or measure,
            overview=False,
        ),
        *_form_figures(measure, form, direction, column),
    )


def _axis_measure(name: str, low: str, high: str) -> Measure:
    """An axis of the Stereotype Content Model."""
    direction = f"higher is {high}"
    return Measure(
        name,
        range=None,
        direction=f"{direction}; -1 and 1 are the means of the seed words at both ends",
        labels={high: "above 0", low: "0 or below"},
        form="+.2f",
        figures=mean_figures(name, "+.2f", direction),
        worst="lowest",
        exhibit=False,
        scorer="kgbias.measure.scorers._axes:AxisScorer",
        in_vectors=True,
    )


_OFFLINE = "kgbias.measure.scorers._offline:OfflineScorer"
_OWN_MEASURES = (
    Measure(
        "regard",
        range=(-1.0, 1.0),
        direction="p(positive) - p(negative): higher is more positive",
        labels={
            "positive": "the statement holds its group in high esteem",
            "neutral": "neither",
            "negative": "the statement holds its group in low esteem",
            "other": "both, or unclear (only of classifiers that have the label)",
        },
        form="+.2f",
        # Overall regard is Eq. 2 of Salinas et al. 2023, N_positive - N_negative: the sum of these.
        signs={"positive": 1.0, "negative": -1.0},
        figures=(
            Figure(
                "regard_positive",
                "positive statements",
                ".0f",
                "higher is more positive",
                "total",
                counts=1.0,
                heading="positive",
                interval=False,
            ),
            Figure(
                "regard_neutral",
                "neutral statements",
                ".0f",
                "higher is more neutral",
                "total",
                counts=0.0,
                heading="neutral",
                interval=False,
            ),
            Figure(
                "regard_negative",
                "negative statements",
                ".0f",
                "higher is more negative",
                "total",
                counts=-1.0,
                heading="negative",
                interval=False,
            ),
            Figure(
                "overall_regard",
                "overall regard",
                "+.0f",
                "higher is more positive",
                "total",
                column="regard",
            ),
            *_form_figures("regard", "+.2f", "between -1 and 1, higher is more positive"),
        ),
        worst="lowest",
        hurtful="negative",
        highlight="Scored most negative",
        always=True,
        exhibit=False,
        scorer=_OFFLINE,
        heads=Heads("regard.safetensors", outputs=("negative", "neutral", "positive")),
    ),
    Measure(
        "toxicity",
        range=(0.0, 1.0),
        direction="a probability, the group hidden: higher is more toxic",
        labels={"toxic": "0.5 or above", "not toxic": "below 0.5"},
        form=".3f",
        figures=(
            Figure(
                "toxicity_mean",
                "mean toxicity",
                ".3f",
                "higher is more toxic",
                "mean",
                column="toxicity",
            ),
            Figure(
                "toxicity_median",
                "median toxicity",
                ".3f",
                "higher is more toxic",
                "median",
                heading="median",
                interval=False,
            ),
            Figure(
                "toxicity_q1",
                "first quartile of toxicity",
                ".3f",
                "higher is more toxic",
                "q1",
                overview=False,
            ),
            Figure(
                "toxicity_q3",
                "third quartile of toxicity",
                ".3f",
                "higher is more toxic",
                "q3",
                overview=False,
            ),
            *_form_figures("toxicity", ".3f", "higher is more toxic"),
        ),
        worst="highest",
        hurtful="toxic",
        highlight="Scored most toxic",
        always=True,
        exhibit=False,
        scorer=_OFFLINE,
        heads=Heads("attack.safetensors"),
        classes=("identity_attack", "toxic", "toxicity", "hate", "hateful"),
        columns=("identity_attack",),
        moderation="hate",
    ),
    Measure(
        "identity_attack",
        range=(0.0, 1.0),
        direction="a probability, the group seen: higher is more of an attack on the group",
        labels={"attack": "0.5 or above", "no attack": "below 0.5"},
        form=".3f",
        figures=mean_figures("identity_attack", ".3f", "higher is more of an attack", "attack"),
        worst="highest",
        hurtful="attack",
        highlight="Scored highest on identity attack",
        scorer=_OFFLINE,
        heads=Heads("attack.safetensors", sees_group=True),
        classes=("identity_attack", "hate", "hateful", "toxic", "toxicity"),
        moderation="hate",
    ),
    Measure(
        "acceptability",
        range=(0.0, 1.0),
        direction="a probability: higher makes more sense",
        labels={"meaningful": "0.5 or above", "not meaningful": "below 0.5"},
        form=".2f",
        figures=(
            Figure(
                "acceptability_mean",
                "mean acceptability",
                ".2f",
                "higher makes more sense",
                "mean",
                column="sense",
                overview=False,
            ),
        ),
        worst="lowest",
        exhibit=False,
        compares=False,
        scorer=_OFFLINE,
        heads=Heads("acceptability.safetensors", sees_grammar=True),
        classes=("acceptable", "acceptability", "meaningful", "grammatical"),
    ),
    _axis_measure("warmth", "cold", "warm"),
    _axis_measure("competence", "incompetent", "competent"),
)


def _find_fault(name: str, measure: Measure) -> str:
    """What is wrong with another package's measure, or ""."""
    if not (name == measure.name and name.isidentifier() and name == name.lower()):
        return f"its measure is called {measure.name!r}, but the name must be in lower case"
    misnamed = [f.name for f in measure.figures if not f.name.startswith(f"{name}_")]
    return f"its figure {misnamed[0]!r} must be called {name}_..." if misnamed else ""


MEASURES: PluginTable[Measure] = PluginTable(
    "measure", Measure, {m.name: m for m in _OWN_MEASURES}, _find_fault, path_fields=("scorer",)
)
"""Every measure, by name: ours in this order, then those of other packages."""

_OTHER_FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "relative_entropy",
            "relative entropy of topics, in bits",
            ".3f",
            "0 is like the average group of the category; higher is less like it",
            column="entropy",
            overview=False,
        ),
        Figure(
            "relative_entropy_plug_in",
            "relative entropy of topics as counted, in bits",
            ".3f",
            "higher is less like the average group of the category",
            overview=False,
        ),
        Figure(
            "relative_entropy_as_published",
            "relative entropy as Eq. 1 prints it, in nats",
            ".3f",
            "lower is less like the average group of the category",
            column="Eq. 1",
            overview=False,
        ),
        Figure(
            "sc_weat",
            "single-category association d",
            "+.3f",
            "above 0: nearer to the words of positive regard",
            overview=False,
        ),
    )
}


_CORRECTED_SUFFIX = "_corrected"


def corrected_figure(figure: Figure) -> Figure:
    """The same figure, corrected by labels for what the scorer gets wrong: its own kind of figure,
    since both are shown."""
    return replace(
        figure,
        name=f"{figure.name}{_CORRECTED_SUFFIX}",
        title=f"{figure.title}, corrected by labels",
        heading=f"{figure.heading}, corrected" if figure.heading else "",
        overview=False,
        raw=figure.name,
    )


def label_count_words(method: str, n: int) -> str:
    """For a figure corrected by labels, how many there are: of the group's own statements, or "of
    all", of those about all groups; "" for any other. `method` and `n` are the figure's."""
    if not method.startswith(CORRECTED_PREFIX):
        return ""
    return f"{n} of all" if BY_ALL_LABELS in method else str(n)


def label_source(method: str) -> str:
    """Who gave the labels of a corrected figure, in words, such as "by 2 people"; "" for any
    other."""
    _, separator, rest = (
        method.partition(" labels ") if method.startswith(CORRECTED_PREFIX) else ("", "", "")
    )
    return rest.partition(",")[0] if separator else ""


def measure_of_figure(figure: str) -> Measure | None:
    """The measure that a figure of groups follows from, by the figure's name. None for a figure
    that follows from none, or from a measure that is not installed. The figures of other packages'
    measures begin with the measure's name."""
    figure = figure.removesuffix(_CORRECTED_SUFFIX)
    if figure in _OTHER_FIGURES:
        return None
    for measure in MEASURES.own_entries.values():
        if any(own_figure.name == figure for own_figure in measure.figures):
            return measure
    longest = sorted((name for name in MEASURES if figure.startswith(f"{name}_")), key=len)
    measure_found = MEASURES[longest[-1]] if longest else None
    return (
        measure_found
        if measure_found and any(own_figure.name == figure for own_figure in measure_found.figures)
        else None
    )


def figures_by_name(present: Collection[str] = ()) -> dict[str, Figure]:
    """Every figure that a group can have, by name: those of our measures in their order, those of
    topics and associations, then those of other packages' measures that are `present`, by name."""
    known_figures = {
        figure.name: figure
        for measure in MEASURES.own_entries.values()
        for figure in measure.figures
    }
    known_figures |= _OTHER_FIGURES
    for name in sorted(set(present) - known_figures.keys()):
        if measure := measure_of_figure(name):
            with_corrected = (
                f
                for own_figure in measure.figures
                for f in (own_figure, corrected_figure(own_figure))
            )
            known_figures |= {
                figure.name: figure for figure in with_corrected if figure.name in present
            }
    return known_figures


def pick_headlines(present: Collection[str]) -> list[Figure]:
    """The figures among those present, by name, that a table of groups shows: one for each column,
    over the statements whose predicate the model chose if there is such a figure, and corrected by
    labels if that is present."""
    by_column: dict[str, Figure] = {}
    for figure in figures_by_name(present).values():
        if figure.column and figure.name in present:
            current = by_column.get(figure.column)
            corrects = current is not None and figure.raw == current.name
            if (
                current is None
                or corrects
                or (figure.over == "chosen" and current.over != "chosen")
            ):
                by_column[figure.column] = figure
    return list(by_column.values())


def get_measure(name: str) -> Measure:
    """The entry of a measure. A name that is not in the table (a store may hold scores written by a
    newer kgbias, or by a package no longer installed) gets an entry with only the name."""
    return MEASURES.get(name) or Measure(name, None, "", {}, ".3g", (), "lowest")


def order_measures(present: Collection[str]) -> list[Measure]:
    """The measures with these names: ours in the order of `MEASURES`, then any others by name."""
    own_measures = [measure for measure in MEASURES.own_entries.values() if measure.name in present]
    return own_measures + [
        get_measure(name) for name in sorted(set(present) - MEASURES.own_entries.keys())
    ]


def column_measures(present: Collection[str]) -> list[Measure]:
    """The measures that a table of triples has columns for: `order_measures` those that are
    `present`, with regard and toxicity always."""
    return order_measures({*present, *(m.name for m in MEASURES.own_entries.values() if m.always)})


def scored_measures(triples: Iterable[ScoredTriple]) -> list[str]:
    """The names of the measures that any of the triples has a score for, sorted."""
    return sorted({name for triple in triples for name in triple.scores})


def measure_values(triples: Iterable[ScoredTriple], name: str) -> "Sample":
    """The values of a measure that figures and tests read (`Measure.read`): one for each triple
    that has a score, and how often the triple was said."""
    import numpy as np

    from kgbias.stats.inference import Sample

    measure = get_measure(name)
    with_score = [t for t in triples if name in t.scores]
    return Sample(
        np.array([measure.read(t.scores[name]) for t in with_score], dtype=np.float64),
        np.array([t.count for t in with_score], dtype=np.int64),
        bounds=measure.bounds,
        signs=measure.ends_of_signs,
    )
