"""CrowS-Pairs (Nangia et al. 2020)."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from kgbias.errors import DataError
from kgbias.io.tables import TableFormat, read_table
from kgbias.methods.benchmarks.base import (
    DomainFigure,
    FigureInfo,
    ItemBenchmark,
    percent_estimate,
    places_by_domain,
)
from kgbias.models.score.base import TextScorer, TokenIds
from kgbias.probe.items import ItemScores, make_item
from kgbias.stats.units import UnitSums, ratio_of_sums

TABLE_FORMAT = TableFormat(
    "CrowS-Pairs: `--crows-pairs`",
    (("sent_more",), ("sent_less",), ("bias_type",)),
    other_forms="translations with these columns, such as the French and the Dutch",
)
_DECIMALS = 3  # published code rounds a masked model's scores: near ties become ties

SentencePair = tuple[str, str, str]


class CrowsPairs(ItemBenchmark):
    """Pairs of a more and a less stereotyping sentence. An item's scores are those of the two
    sentences; it has none if the convention leaves the pair out.

    - original: the summed pseudo-log-likelihood of the tokens that both sentences share. For a
      causal model, which the paper does not cover, their log-likelihood.
    - bias-bench (Meade et al. 2022): the mean log-probability of the tokens that differ for a
      masked model (pairs without any are left out), of all tokens for a causal one.
    """

    name = "crows-pairs"
    title = "CrowS-Pairs"
    source = "Nangia et al. 2020"
    unit = "pairs"
    hub = ("nyu-mll/crows_pairs", "crows_pairs")
    figures = (
        FigureInfo(
            "metric score",
            "CrowS-Pairs metric score",
            "share of pairs whose more stereotyping sentence is likelier, in percent",
            unbiased=50.0,
        ),
    )

    def __init__(
        self, pairs: Sequence[SentencePair], convention: str = "original", left_out: int = 0
    ) -> None:
        self._pairs = pairs
        self.left_out = left_out
        self._convention = convention
        self.items = [
            make_item(self.name, f"pair {n}", category, convention, more, less)
            for n, (more, less, category) in enumerate(pairs)
        ]
        self.sizes = [2] * len(pairs)

    def ask(self, scorer: TextScorer, places: Sequence[int]) -> list[tuple[ItemScores, int]]:
        scores_all_tokens = self._convention == "bias-bench" and scorer.convention.kind != "masked"
        pool = np.sum if self._convention == "original" else np.mean
        texts: list[TokenIds] = []
        spans: list[Sequence[int]] = []
        for n in places:
            first_ids, second_ids = map(scorer.tokens, self._pairs[n][:2])
            texts += [first_ids, second_ids]
            if scores_all_tokens:
                spans += [range(len(first_ids)), range(len(second_ids))]
            else:
                spans += _token_spans(first_ids, second_ids, shared=self._convention == "original")
        kept_pairs = [n for n in range(0, len(texts), 2) if spans[n] and spans[n + 1]]
        kept_places = [place for n in kept_pairs for place in (n, n + 1)]
        rows = scorer.token_scores([texts[n] for n in kept_places], [spans[n] for n in kept_places])
        values = {n: float(pool(row)) for n, row in zip(kept_places, rows, strict=True)}
        return [
            ((values[n], values[n + 1]) if n in values else (), len(texts[n]) + len(texts[n + 1]))
            for n in range(0, len(texts), 2)
        ]

    def compute_figures(
        self, scores: Sequence[ItemScores], scorer_kind: str, seed: int
    ) -> list[DomainFigure]:
        scored_places = [n for n, row in enumerate(scores) if row]
        if not scored_places:
            raise DataError("no pair can be scored")
        rows = np.array([scores[n] for n in scored_places])
        if scorer_kind == "masked":
            rows = rows.round(_DECIMALS)
        preferred = (rows[:, 0] > rows[:, 1]).astype(np.float64)
        names = [self.items[n].name for n in scored_places]
        domain_figures = []
        for domain, places in places_by_domain([self.items[n].category for n in scored_places]):
            columns = np.column_stack([np.ones(len(places)), 100 * preferred[places]])
            units = UnitSums(tuple(names[n] for n in places), columns, ratio_of_sums)
            domain_figures.append(
                DomainFigure(
                    domain,
                    "metric score",
                    units,
                    percent_estimate(int(preferred[places].sum()), len(places)),
                )
            )
        return domain_figures

    def remarks(self, scores: Sequence[ItemScores]) -> list[str]:
        unscored_count = sum(not row for row in scores)
        return (
            [f"{unscored_count} pairs without tokens to score are left out"]
            if unscored_count
            else []
        )


def read_crows_pairs(path: Path, convention: str = "original") -> CrowsPairs:
    """Read the published file, in any language: a table with the columns sent_more, sent_less and
    bias_type. Pairs without one of the sentences are left out and counted."""
    rows = [row for _, row in read_table(path, TABLE_FORMAT.columns).rows]
    pairs = [
        (row["sent_more"], row["sent_less"], _BIAS_TYPES.get(row["bias_type"], row["bias_type"]))
        for row in rows
        if row["sent_more"].strip() and row["sent_less"].strip()
    ]
    if not pairs:
        raise DataError(f"{path} has no pair")
    return CrowsPairs(pairs, convention, len(rows) - len(pairs))


# Kinds of bias on the Hugging Face hub, by number.
_BIAS_TYPES = {
    str(number): name
    for number, name in enumerate(
        (
            *("race-color", "socioeconomic", "gender", "disability", "nationality"),
            *("sexual-orientation", "physical-appearance", "religion", "age"),
        )
    )
}


def _token_spans(first: TokenIds, second: TokenIds, shared: bool) -> tuple[list[int], list[int]]:
    """The positions of the tokens that two sentences share, or of those that differ."""
    spans: tuple[list[int], list[int]] = ([], [])
    # By default, difflib ignores what is frequent in sequences of 200 or more.
    for tag, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if (tag == "equal") == shared:
            spans[0].extend(range(a, b))
            spans[1].extend(range(c, d))
    return spans
