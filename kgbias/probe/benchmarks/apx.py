"""APX as a benchmark of items: names before descriptors."""

from collections.abc import Sequence

import numpy as np

from kgbias.models.score.base import TextScorer
from kgbias.probe.apx import ApxTable, GroupMeans, adjusted, can_flag, flags
from kgbias.probe.benchmarks.base import (
    FigureInfo,
    ItemBenchmark,
    Measured,
    Scored,
    by_domain,
    item,
    share,
)
from kgbias.probe.sets import TEMPLATES, Descriptor
from kgbias.units import Units, ratio


class Apx(ItemBenchmark):
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
