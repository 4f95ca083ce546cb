"""What one model believes of the same groups in two languages, side by side.

Groups are the same if the names that are declared for them have one in common: a pack's names give
the English name of each group. Statements are the same if a table gives them in parallel, or if
each is the nearest to the other in the vectors of multilingual-e5-small (docs/methods/evidence.md
has the precision of that, on pairs that SeeGULL Multilingual gives).

A model is asked by other names and other words in each language, so nothing is paired by name: the
names of either language are a sample of their own. What is paired are the groups and statements.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError
from kgbias.evidence.model_agreement import (
    BeliefComparison,
    GroupStatement,
    LiftDifference,
    ModelBeliefs,
    PairText,
)
from kgbias.evidence.names import MIN_NAMES, declared_indicators
from kgbias.evidence.probe_tables import NameTable
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BeliefRun, BelievedEdge, Group, node_id
from kgbias.ids import normalise
from kgbias.io.tables import TableFormat, as_text, is_missing, read_sheet
from kgbias.io.tables_in_memory import Texts, as_table_file
from kgbias.io.wording import how
from kgbias.language.words import join_words
from kgbias.probe.belief import BeliefTest, NameDesign, carrier_phrase_variance, upper_tail
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Values, benjamini_hochberg, student_quantile

PARALLEL_FORMAT = TableFormat(
    "the same statements in several languages, a column for each (`de`, `en` ...): `--parallel`, "
    "`--statements`"
)
MIN_COSINE = 0.91
"""Statements of two languages are the same from this cosine on (docs/methods/evidence.md)."""
MIN_STATEMENTS = 2
_DEALS = 1_999  # of the groups of one language, for the floor of the correlation

Encode = Callable[[Sequence[str]], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Two places that say the same, and the cosine of their vectors; NaN if a table says so."""

    first: int
    second: int
    cosine: float


def pair_by_meaning(
    first: Sequence[str], second: Sequence[str], encode: Encode, *, min_cosine: float = MIN_COSINE
) -> list[StatementPair]:
    """The texts of which each is the other's nearest, with a cosine of `min_cosine` or more; the
    nearest first. No text is in two pairs."""
    if not first or not second:
        return []
    cosines = (_unit_rows(encode(first)) @ _unit_rows(encode(second)).T).round(6)
    nearest, back = cosines.argmax(axis=1), cosines.argmax(axis=0)
    pairs = [
        StatementPair(n, int(m), float(cosines[n, m]))
        for n, m in enumerate(nearest)
        if back[m] == n and cosines[n, m] >= min_cosine
    ]
    return sorted(pairs, key=lambda pair: -pair.cosine)


def _unit_rows(vectors: NDArray[Any]) -> Values:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


def pair_by_table(
    first: Sequence[str], second: Sequence[str], parallel: Sequence[tuple[str, str]]
) -> list[StatementPair]:
    """The texts that a table gives as the same, whatever their capitals."""
    places = [{normalise(text): n for n, text in enumerate(texts)} for texts in (first, second)]
    pairs = [(places[0].get(normalise(a)), places[1].get(normalise(b))) for a, b in parallel]
    found = dict.fromkeys((n, m) for n, m in pairs if n is not None and m is not None)
    for side in (0, 1):
        if len({pair[side] for pair in found}) < len(found):
            raise DataError("a statement stands in two rows of the parallel statements")
    return [StatementPair(n, m, np.nan) for n, m in found]


def read_parallel(source: Texts, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """The rows of a table that has a column for each of two languages, named by its code; rows that
    lack one of the two are left out."""
    with as_table_file(source, languages, name="parallel") as path:
        sheet = read_sheet(path, languages)
        columns = [sheet.find_column((language,)) for language in languages]
        rows = [[" ".join(as_text(row.get(c)).split()) for c in columns] for _, row in sheet.rows]
    pairs = [(first, second) for first, second in rows if not is_missing(first)]
    pairs = [pair for pair in pairs if not is_missing(pair[1])]
    if not pairs:
        raise DataError(f"{path}: no row has a statement in both {' and '.join(languages)}")
    return pairs


def pair_groups(first: StoredRun, second: StoredRun) -> dict[str, Group]:
    """By the id of each group of the second run that the first has too: the first's."""
    by_name: dict[str, Group] = {}
    for group, names in _name_ids(first):
        for name in names:
            by_name.setdefault(name, group)
    pairs: dict[str, Group] = {}
    for group, names in _name_ids(second):
        same = next((by_name[name] for name in names if name in by_name), None)
        if same is not None and same not in pairs.values():
            pairs[group.id] = same
    return pairs


def _name_ids(run: StoredRun) -> Iterator[tuple[Group, list[str]]]:
    """What each group is called itself, its own name first: not the paraphrases of it."""
    indicators = declared_indicators(run)
    for group in run.groups:
        declared = indicators.find_group(group)
        others = (declared.name, *declared.aliases) if declared else ()
        yield group, [node_id("group", name) for name in (group.name, *group.variants, *others)]


def find_shared_belief_runs(
    first: StoredRun, second: StoredRun, model: str | None = None
) -> tuple[BeliefRun, BeliefRun]:
    """How one model was asked about each of two runs: the named one, or that of the first run if
    there is a choice. Raises UsageError, with what to do, unless both were."""
    asked = [
        {belief_run.model.name: belief_run for belief_run in reversed(run.find_all(BeliefRun))}
        for run in (first, second)
    ]
    shared = [name for name in asked[0] if name in asked[1]]
    if model is not None:
        shared = [name for name in shared if asked[0][name].model.goes_by(model)]
    own = [name for name in shared if asked[0][name].model.goes_by(first.model.title)]
    if not shared:
        asks = " and ".join(
            how("run.evidence(MODEL)", f"kgbias evidence {run.name} --model SPEC")
            for run in (first, second)
        )
        raise UsageError(
            f"{first.name} and {second.name} are in two languages, in which beliefs alone are "
            f"compared, and no one model was asked for these in both: {asks}"
        )
    name = (own or shared)[0]
    return asked[0][name], asked[1][name]


@dataclass(frozen=True)
class LanguageSide:
    """What was asked in one language about the groups of a category."""

    run: StoredRun
    language: str
    belief_run: BeliefRun
    table: NameTable

    @cached_property
    def texts(self) -> list[str]:
        """The statements as text, in the order of the table."""
        return [join_words(*words) for words in self.table.statements]

    def test(self, groups: Sequence[str], statements: Sequence[int]) -> BeliefTest:
        """The test of lifts over these groups and statements alone, so that both sides are compared
        with the same others."""
        order = [name for name, _ in self.table.groups]
        names = np.array(self.table.group_indices)
        kept = np.concatenate([np.flatnonzero(names == order.index(g)) for g in groups])
        counts = [int((names == order.index(g)).sum()) for g in groups]
        places = np.repeat(np.arange(len(groups)), counts)
        bits = self.table.log_probs[:, kept][:, :, list(statements)]
        design = NameDesign(places.tolist(), forms=[self.table.forms[n] for n in kept])
        return design.test(
            bits.mean(axis=0), shared=carrier_phrase_variance(design, bits), margin=0.0
        )

    def beliefs(
        self,
        test: BeliefTest,
        groups: Sequence[Group],
        statements: Sequence[int],
        keys: Sequence[Sequence[GroupStatement]],
    ) -> ModelBeliefs:
        """The side as `BeliefComparison` takes it, by the keys of the first side: whether a
        statement is believed is what the store has, the lifts are those of the test."""
        category = self.table.category
        stored = self.run.find_all(BelievedEdge, asking=self.belief_run)
        own = ModelBeliefs.from_run(
            self.language, self.run, self.belief_run, stored, category, None
        )
        words = [Statement(*self.table.statements[place]).words for place in statements]
        edges, texts = {}, {}
        for g, group in enumerate(groups):
            for s, text in enumerate(words):
                edge = own.edges.get((group.id, text))
                if edge is not None and edge.names >= MIN_NAMES:
                    low, high = float(test.low[g, s]), float(test.high[g, s])
                    edges[keys[g][s]] = replace(
                        edge, lift=float(test.lift[g, s]), low=low, high=high
                    )
                texts[keys[g][s][1]] = self.texts[statements[s]]
        return replace(own, edges=edges, statement_texts=texts)


class DealtCorrelation(NamedTuple):
    """The correlation of lifts where the groups of the second language are dealt anew: its mean,
    and the share of the deals, from 0 to 1, that reach the correlation found."""

    mean: float
    p_value: float


_NOT_DEALT = DealtCorrelation(np.nan, np.nan)


@dataclass(frozen=True)
class LanguageComparison(BeliefComparison):
    """One model in two languages, on the pairs of a group and a statement that both have.

    Attributes:
        category: that of the first run.
        names: the name of each group in the second language, by the id that it has in the first.
        cosines: of each statement, by its words in the first language; NaN if a table paired it.
        differences: by how many bits the lifts differ.
        dealt_correlation: the lifts' correlation where the groups of one language are dealt anew.
    """

    category: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    differences: Mapping[GroupStatement, LiftDifference] = field(default_factory=dict)
    dealt_correlation: DealtCorrelation = _NOT_DEALT

    sides: ClassVar[str] = "languages"
    difference_note: ClassVar[str] = (
        "Difference: how many bits more the statement is tied to the group in the first language "
        "than in the second, with its interval over the names of either (Welch); q two-sided, "
        "corrected over all pairs (Benjamini and Hochberg). The lifts are over the groups and "
        "statements that both languages have."
    )

    def compare_lifts(
        self, first_model: int, second_model: int
    ) -> Mapping[GroupStatement, LiftDifference]:
        return self.differences

    def pair_text(self, key: GroupStatement) -> PairText:
        group, words = key
        first, second = self.models
        return PairText(
            f"{first.group_names[group]} = {self.names[group]}",
            f"{first.statement_texts[words]} = {second.statement_texts[words]}",
        )


def compare_languages(
    first: LanguageSide,
    second: LanguageSide,
    statements: Sequence[StatementPair],
) -> LanguageComparison | None:
    """Two languages on the statements that say the same, and the groups that both have names for;
    None without two of each."""
    same = pair_groups(first.run, second.run)
    in_first = {name for name, _ in first.table.groups}
    in_second = {name for name, _ in second.table.groups}
    pairs = [
        (same[group.id], group)
        for group in second.run.groups
        if group.id in same and same[group.id].name in in_first and group.name in in_second
    ]
    if len(pairs) < 2 or len(statements) < MIN_STATEMENTS:
        return None
    words = [Statement(*first.table.statements[pair.first]).words for pair in statements]
    keys = [[(group.id, text) for text in words] for group, _ in pairs]
    tests, sides = [], []
    for place, side in enumerate((first, second)):
        groups = [pair[place] for pair in pairs]
        chosen = [(pair.first, pair.second)[place] for pair in statements]
        tests.append(side.test([group.name for group in groups], chosen))
        sides.append(side.beliefs(tests[-1], groups, chosen, keys))
    return LanguageComparison(
        sides,
        first.table.category,
        {group.id: other.name for group, other in pairs},
        {text: pair.cosine for text, pair in zip(words, statements, strict=True)},
        welch_differences(*tests).by_key(keys),
        _deal_groups(tests[0].lift, tests[1].lift),
    )


@dataclass(frozen=True)
class LiftDifferences:
    """The differences of two tables of lifts, [groups, statements]: in bits, with half the width of
    the 95% interval, and two-sided p-values corrected over all of them."""

    bits: Values
    half_widths: Values
    q_values: Values

    def by_key(
        self, keys: Sequence[Sequence[GroupStatement]]
    ) -> dict[GroupStatement, LiftDifference]:
        """Each difference with its interval over names, by the key of its place."""
        found = {}
        for g, row in enumerate(keys):
            for s, key in enumerate(row):
                value, half = float(self.bits[g, s]), float(self.half_widths[g, s])
                estimate = Estimate(value, value - half, value + half, len(keys))
                found[key] = LiftDifference(estimate, float(self.q_values[g, s]))
        return found


def welch_differences(first: BeliefTest, second: BeliefTest) -> LiftDifferences:
    """Welch's test of each difference of two lifts: the names of two languages are two samples."""
    variances = []
    for test in (first, second):
        errors = (test.high - test.lift) / student_quantile(0.975, test.degrees)
        variances.append(np.maximum(errors**2, 1e-24))
    total = variances[0] + variances[1]
    # Welch and Satterthwaite's degrees of freedom.
    freedom = total**2 / (variances[0] ** 2 / first.degrees + variances[1] ** 2 / second.degrees)
    bits, errors = first.lift - second.lift, np.sqrt(total)
    p_values, half_widths = np.empty(bits.shape), np.empty(bits.shape)
    for place in np.ndindex(bits.shape):
        degrees, error = float(freedom[place]), float(errors[place])
        p_values[place] = 2 * float(upper_tail(abs(bits[place]) / error, degrees))
        half_widths[place] = student_quantile(0.975, degrees) * error
    q_values = benjamini_hochberg(p_values.ravel().tolist()).reshape(bits.shape)
    return LiftDifferences(bits, half_widths, q_values)


def _deal_groups(first: Values, second: Values) -> DealtCorrelation:
    """Whether the model believes the same of the *same* group, from lifts [groups, statements]."""
    found = _correlate(first, second)
    rng = np.random.Generator(np.random.PCG64(0))
    dealt = [_correlate(first, second[rng.permutation(len(second))]) for _ in range(_DEALS)]
    reached = sum(value >= found - 1e-12 for value in dealt)
    return DealtCorrelation(float(np.mean(dealt)), (1 + reached) / (1 + _DEALS))


def _correlate(first: Values, second: Values) -> float:
    x, y = first.ravel() - first.mean(), second.ravel() - second.mean()
    norm = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float(x @ y) / norm if norm else 0.0
