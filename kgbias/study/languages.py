"""What one model believes of the same groups in two languages, as a result."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from kgbias.crawl.seeds import CUSTOM_CATEGORY
from kgbias.errors import UsageError
from kgbias.graph.selection import Selection, run_language, select_statements
from kgbias.graph.store import StoredRun
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.tables_in_memory import Texts
from kgbias.io.text import format_number, format_p_value
from kgbias.io.wording import pluralise
from kgbias.stats.estimate import nan_to_none

if TYPE_CHECKING:
    from kgbias.evidence.language_pairs import LanguageComparison, StatementPair

_COLUMNS = (
    Column("category"),
    Column("group"),
    Column("other_group"),
    Column("statement"),
    Column("other_statement"),
    Column("cosine", ".2f"),
    Column("lift", "+.2f", interval=True),
    Column("other_lift", "+.2f", interval=True),
    Column("shown_in"),
    Column("difference", "+.2f", interval=True),
    Column("q_value", format_p_value),
)


class _PointKind(NamedTuple):
    """Of points that are drawn: the languages in which they are believed, colour and label."""

    shown_in: str
    colour: str
    label: str


@dataclass(frozen=True, repr=False)
class LanguageBeliefs(Result):
    """What one model believes of the same groups in two languages.

    Attributes:
        model: the model.
        runs: the names of the two runs.
        languages: their languages, as codes.
        by_table: whether a table paired the statements; else their meaning did.
        comparisons: one for each category (`kgbias.evidence.language_pairs.LanguageComparison`).
    """

    model: str
    runs: tuple[str, str]
    languages: tuple[str, str]
    by_table: bool
    comparisons: tuple["LanguageComparison", ...]

    @property
    def title(self) -> str:
        """What is compared, in words."""
        first, second = self.languages
        return f"What {self.model} believes in {first} and in {second}"

    def as_rows(self) -> Rows[dict[str, Any]]:
        """Every pair of a group and a statement: those that are believed first, the greatest mean
        lift first; `shown_in` has the languages in which they are believed."""
        return Rows(self._all_rows, _COLUMNS)

    @cached_property
    def _all_rows(self) -> list[dict[str, Any]]:
        return [row for comparison in self.comparisons for row in self._rows_of(comparison)]

    def _rows_of(self, comparison: "LanguageComparison") -> Iterator[dict[str, Any]]:
        from kgbias.evidence.model_agreement import lift_estimate

        strongest = comparison.strongest_pairs
        rest = sorted(
            set(range(len(comparison.pairs))) - set(strongest),
            key=lambda n: -float(comparison.lifts[:, n].mean()),
        )
        first, second = comparison.models
        for place in (*strongest, *rest):
            group, words = key = comparison.pairs[place]
            shown = [
                language
                for language, is_believed in zip(
                    self.languages, comparison.is_believed[:, place], strict=True
                )
                if is_believed
            ]
            difference = comparison.differences[key]
            yield {
                "category": comparison.category,
                "group": first.group_names[group],
                "other_group": comparison.names[group],
                "statement": first.statement_texts[words],
                "other_statement": second.statement_texts[words],
                "cosine": comparison.cosines[words],
                "lift": lift_estimate(first.edges[key]),
                "other_lift": lift_estimate(second.edges[key]),
                "shown_in": ", ".join(shown),
                "difference": difference.difference,
                "q_value": difference.q_value,
            }

    def heading(self) -> str:
        return "\n".join(line for c in self.comparisons for line in self._describe(c))

    def _describe(self, comparison: "LanguageComparison") -> Iterator[str]:
        from kgbias.probe.belief import SIGNIFICANCE_LEVEL

        first, second = self.languages
        agreement = next(comparison.iter_agreements())
        own = comparison.category == CUSTOM_CATEGORY  # groups that were given without one
        of_category = "" if own else f", {comparison.category}"
        paired = "a table pairs" if self.by_table else "mean the same by their vectors"
        yield (
            f"{self.model} in {first} and {second}{of_category}: "
            f"{pluralise(len(comparison.names), 'group')} and {len(comparison.cosines)} "
            f"statements that {paired}"
        )
        alone = agreement.believed_by_one
        yield (
            f"of {agreement.pairs:,} pairs of a group and a statement {agreement.both_believed:,} "
            f"are believed in both, {alone[0]:,} shown in {first} alone, {alone[1]:,} in {second} "
            "alone; the same test of made-up names finds "
            + ", ".join(
                f"{side.floor[0]:.2f} of {side.floor[1]:,} in {side.label}"
                for side in comparison.models
            )
        )
        differing = sum(d.q_value <= SIGNIFICANCE_LEVEL for d in comparison.differences.values())
        yield f"{differing:,} lifts differ between the languages (corrected p at most .05)"
        r, dealt = agreement.correlation, comparison.dealt_correlation
        interval = f" [{r.format_interval('.2f')}]" if r.is_shown else ""
        yield (
            f"the lifts correlate at {format_number(r.value, '.2f')}{interval}; with the groups of "
            f"one language dealt anew at {format_number(dealt.mean, '.2f')} (p "
            f"{format_p_value(dealt.p_value)})"
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        parts = []
        for comparison in self.comparisons:
            agreement = next(comparison.iter_agreements())
            parts.append(
                {
                    "category": comparison.category,
                    "groups": len(comparison.names),
                    "statements": len(comparison.cosines),
                    "pairs": agreement.pairs,
                    "believed": list(agreement.believed_counts),
                    "both": agreement.both_believed,
                    "correlation": agreement.correlation.as_dict(),
                    "rank_correlation": agreement.rank_correlation.as_dict(),
                    "dealt_correlation": nan_to_none(comparison.dealt_correlation.mean),
                    "dealt_p_value": nan_to_none(comparison.dealt_correlation.p_value),
                    "floor": [list(side.floor) for side in comparison.models],
                }
            )
        return {
            "model": self.model,
            "runs": list(self.runs),
            "languages": list(self.languages),
            "paired_by": "table" if self.by_table else "meaning",
            "categories": parts,
            "pairs": self.records(),
        }

    def draw(self, ax: Any = None) -> Any:
        """Draw the lifts of one language against those of the other into axes of matplotlib (None:
        a figure of their own); returns the axes."""
        from kgbias.io.drawing import figure_style, make_subplots

        with figure_style():
            if ax is None:
                _, ax = make_subplots(figsize=(3.4, 3.4))
            for kind in self._point_kinds():
                rows = [row for row in self._all_rows if row["shown_in"] == kind.shown_in]
                lifts = [row["lift"].value for row in rows]
                other_lifts = [row["other_lift"].value for row in rows]
                size = 3.5 if kind.shown_in else 2
                ax.plot(
                    lifts, other_lifts, "o", color=kind.colour, markersize=size, label=kind.label
                )
            ax.axline((0, 0), slope=1, color="0.6", linewidth=0.6, linestyle=(0, (4, 3)))
            ax.axhline(0, color="0.8", linewidth=0.6)
            ax.axvline(0, color="0.8", linewidth=0.6)
            ax.set_xlabel(f"lift in {self.languages[0]} (bits)")
            ax.set_ylabel(f"lift in {self.languages[1]} (bits)")
            ax.legend(frameon=False, fontsize=7)
            return ax

    def _point_kinds(self) -> list[_PointKind]:
        from kgbias.io.drawing import NEGATIVE_COLOR, NEUTRAL_COLOR, POSITIVE_COLOR, TOXIC_COLOR

        first, second = self.languages
        return [
            _PointKind("", NEUTRAL_COLOR, "believed in neither"),
            _PointKind(first, NEGATIVE_COLOR, f"in {first} alone"),
            _PointKind(second, TOXIC_COLOR, f"in {second} alone"),
            _PointKind(f"{first}, {second}", POSITIVE_COLOR, "in both"),
        ]


def are_in_two_languages(first: StoredRun, second: StoredRun) -> bool:
    """Whether two runs were asked in different languages. What was collected elsewhere does not
    say in which."""
    if "pack" not in first.config or "pack" not in second.config:
        return False
    return run_language(first.config) != run_language(second.config)


def compare_stored_languages(
    first: StoredRun,
    second: StoredRun,
    *,
    model: str | None,
    parallel: Texts | None,
    selection: Selection,
) -> LanguageBeliefs:
    """The beliefs of one model about two stored runs; see `Study.compare_languages`."""
    from kgbias.evidence.language_pairs import (
        LanguageSide,
        compare_languages,
        find_shared_belief_runs,
        pair_groups,
        read_parallel,
    )
    from kgbias.evidence.probe_tables import build_name_tables

    languages = run_language(first.config), run_language(second.config)
    if languages[0] == languages[1]:
        raise UsageError(
            f"{first.name} and {second.name} are both in {languages[0]!r}: compare their models"
        )
    asked = find_shared_belief_runs(first, second, model)
    rows = None if parallel is None else read_parallel(parallel, languages)
    sides = []
    for run, belief_run, language in zip((first, second), asked, languages, strict=True):
        triples = select_statements(run, selection).triples
        tables = build_name_tables(run, belief_run, triples)
        sides.append(
            {
                category: LanguageSide(run, language, belief_run, table)
                for category, table in tables.items()
            }
        )
    same = pair_groups(first, second)
    category_of = {
        same[group.id].category: group.category for group in second.groups if group.id in same
    }
    comparisons = []
    for category, side in sides[0].items():
        other = sides[1].get(category_of.get(category, ""))
        if other is None:
            continue
        compared = compare_languages(side, other, _pair_statements(side.texts, other.texts, rows))
        if compared is not None:
            comparisons.append(compared)
    if not comparisons:
        raise UsageError(
            f"{first.name} and {second.name} have too little in common: that takes two groups of "
            "five names or more, and two statements that say the same, all asked about in both "
            "languages; give statements in both as a table (`parallel`, and `statements` of "
            "evidence)"
        )
    return LanguageBeliefs(
        asked[0].model.title,
        (first.name, second.name),
        languages,
        rows is not None,
        tuple(comparisons),
    )


def _pair_statements(
    first: list[str], second: list[str], parallel: list[tuple[str, str]] | None
) -> "list[StatementPair]":
    from kgbias.evidence.language_pairs import pair_by_meaning, pair_by_table

    if parallel is not None:
        return pair_by_table(first, second, parallel)
    from kgbias.measure.scorers._multilingual import encode

    return pair_by_meaning(first, second, encode)
