"""SoFa and APX as benchmarks of items: a statement before which every group is put, and a name
before every descriptor."""

from collections.abc import Sequence

import numpy as np

from kgbias.errors import DataError
from kgbias.models.score.base import TextScorer
from kgbias.probe.apx import ApxTable, GroupMeans, adjusted, can_flag, flags
from kgbias.probe.benchmarks.base import (
    OVERALL,
    Benchmark,
    FigureInfo,
    Measured,
    Scored,
    by_domain,
    item,
    share,
)
from kgbias.probe.sets import TEMPLATES, Descriptor
from kgbias.probe.sofa import normalised
from kgbias.probe.stream import Sets
from kgbias.statistics import Values
from kgbias.units import Units, ratio


class Sofa(Benchmark):
    """Statements, each after every group of its category. An item's scores are the log10 PPL* of
    the groups (`kgbias.probe.sofa`); the SoFa score is the mean over statements of their variance,
    and over categories of that."""

    name = "sofa"
    title = "SoFa"
    source = "Marchiori Manerba et al. 2023"
    unit = "statements"
    chunk = 4096
    figures = (
        FigureInfo("SoFa score", "SoFa score",
                   "how much it matters which group a statement is about; 0: not at all",
                   unbiased=0.0, range=None, form=".4f"),
    )  # fmt: skip

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self._places = [
            (c, n) for c, (_, statements) in sets.items() for n in range(len(statements))
        ]
        if few := [c for c, (groups, _) in sets.items() if len(groups) < 2]:
            raise DataError(f"category {few[0]!r} has fewer than two groups: a variance needs two")
        self.items = [
            item(self.name, f"{c}: {sets[c][1][n]}", c, sets[c][0], sets[c][1][n])
            for c, n in self._places
        ]
        self.sizes = [len(sets[c][0]) for c, _ in self._places]

    def ask(self, scorer: TextScorer, places: Sequence[int]) -> list[tuple[Scored, int]]:
        found: dict[int, tuple[Scored, int]] = {}
        for category, (groups, statements) in self._sets.items():
            own = [n for n in places if self._places[n][0] == category]
            if own:
                grid = scorer.grid(groups, [statements[self._places[n][1]] for n in own])
                star, tokens = normalised(grid), grid.whole.tokens.sum(axis=0)
                for column, n in enumerate(own):
                    found[n] = tuple(star[:, column].tolist()), int(tokens[column])
        return [found[n] for n in places]

    def measured(self, scores: Sequence[Scored], scorer_kind: str, seed: int) -> list[Measured]:
        names = tuple(one.id for one in self.items)
        variances = np.array([np.var(row, ddof=1) for row in scores])
        categories = list(self._sets)
        strata = tuple(categories.index(c) for c, _ in self._places)
        columns = np.zeros((len(names), 2 * len(categories)))
        rows = np.arange(len(names))
        columns[rows, 2 * np.array(strata)] = 1
        columns[rows, 2 * np.array(strata) + 1] = variances
        whole = Units(names, columns, _mean_of_means, strata)
        found = [Measured(OVERALL, "SoFa score", whole, whole.estimate(seed=seed))]
        if len(categories) > 1:
            for domain, own in by_domain([c for c, _ in self._places])[1:]:
                part = np.column_stack([np.ones(len(own)), variances[own]])
                units = Units(tuple(names[n] for n in own), part, ratio)
                found.append(Measured(domain, "SoFa score", units, units.estimate(seed=seed)))
        return found


def _mean_of_means(sums: Values) -> Values:
    return np.asarray((sums[..., 1::2] / sums[..., 0::2]).mean(axis=-1))


class Apx(Benchmark):
    """Names before descriptors in templates. An item is a name in a template, its scores the
    perplexities of all descriptors; the figure is the share of descriptors that APX ties to a
    group (`kgbias.probe.apx`)."""

    name = "apx"
    title = "APX"
    source = "Siddique et al. 2024"
    unit = "descriptors"
    chunk = 4096
    figures = (
        FigureInfo("flagged descriptors", "descriptors tied to a group",
                   "how many descriptors lie below the one-tailed 1% point for some group, in "
                   "percent; by chance alone 1 of 100 for each group", unbiased=0.0),
    )  # fmt: skip

    def __init__(self, names: Sequence[tuple[str, str]], descriptors: Sequence[Descriptor]) -> None:
        self._names, self._descriptors = names, descriptors
        self._places = [(t, n) for t in range(len(TEMPLATES)) for n in range(len(names))]
        endings = [[d.endings[t] for d in descriptors] for t in range(len(TEMPLATES))]
        self.items = [
            item(
                self.name, f"{names[n][0]} {t + 1}", names[n][1], names[n], TEMPLATES[t], endings[t]
            )
            for t, n in self._places
        ]
        self.sizes = [len(descriptors)] * len(self._places)

    def ask(self, scorer: TextScorer, places: Sequence[int]) -> list[tuple[Scored, int]]:
        found: dict[int, tuple[Scored, int]] = {}
        for template, form in enumerate(TEMPLATES):
            own = [n for n in places if self._places[n][0] == template]
            if own:
                stems = [form.format(name=self._names[self._places[n][1]][0]) for n in own]
                grid = scorer.grid(stems, [d.endings[template] for d in self._descriptors])
                perplexities, tokens = grid.whole.perplexities, grid.whole.tokens.sum(axis=1)
                for row, n in enumerate(own):
                    found[n] = tuple(perplexities[row].tolist()), int(tokens[row])
        return [found[n] for n in places]

    def measured(self, scores: Sequence[Scored], scorer_kind: str, seed: int) -> list[Measured]:
        texts = [d.text for d in self._descriptors]
        means = GroupMeans(
            len(TEMPLATES), [group for _, group in self._names], texts,
            [d.axis for d in self._descriptors],
        )  # fmt: skip
        for (template, n), row in zip(self._places, scores, strict=True):
            means.add(template, n, np.array([row]))
        values = adjusted(means.values, means.names)
        table = ApxTable(means.groups, means.descriptors, means.axes, values)
        flagged = {flag.descriptor for flag in flags(table)}
        found = []
        for domain, own in by_domain([d.axis or "no axis" for d in self._descriptors]):
            tied = [100.0 * (texts[n] in flagged) for n in own]
            units = Units(
                tuple(texts[n] for n in own), np.column_stack([np.ones(len(own)), tied]), ratio
            )
            estimate = share(sum(value > 0 for value in tied), len(own))
            found.append(Measured(domain, "flagged descriptors", units, estimate))
        return found

    def remarks(self, scores: Sequence[Scored]) -> list[str]:
        groups = len({group for _, group in self._names})
        if can_flag(groups):
            return []
        return [f"{groups} groups cannot be told apart at this level: no descriptor can be flagged"]
