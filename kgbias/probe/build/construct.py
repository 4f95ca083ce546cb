"""SoFa's construction: from stereotypes to probes, one filter after the other."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kgbias.errors import UsageError
from kgbias.io.files import whole_folder, write_json, write_text
from kgbias.io.progress import Progress, Silent
from kgbias.io.text import defused
from kgbias.models.score.base import Array, TextScorer
from kgbias.probe.build.rules import REASONS, Rules
from kgbias.probe.build.source import Stereotypes

Judge = Callable[[Sequence[str]], Sequence[float]]

THRESHOLD = 0.5
CUT = 0.05
BINS = 50
WARNING = (
    "Content warning: this holds stereotypes of groups of people, most of them false, offensive or "
    "hurtful. They are nobody's findings."
)
_AT_ONCE = 1024  # stereotypes, between two reports of progress
_FILES = ("statements.csv", "probes.csv", "data-statement.md", "manifest.json")


@dataclass(frozen=True, slots=True)
class Kept:
    """A statement that passed every filter: its category, its mean perplexity over the models, and
    its acceptability in [0, 1]; None where no model or judge was asked."""

    category: str
    statement: str
    perplexity: float | None = None
    acceptability: float | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """What a filter took: how many statements came and went, and the reasons."""

    name: str
    came: int
    kept: int
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SofaSet:
    """Probes as SoFa has them: every identity of a category before every statement of it.

    Attributes:
        source: what the stereotypes came from.
        identities: category to identities.
        statements: the statements, by category and text.
        filters: what each filter took, in order.
        settings: how it was made.
    """

    source: str
    identities: Mapping[str, tuple[str, ...]]
    statements: tuple[Kept, ...]
    filters: tuple[Filter, ...]
    settings: Mapping[str, Any]

    @property
    def count(self) -> int:
        """The number of probes: identities times statements, category by category."""
        return sum(len(self.identities[kept.category]) for kept in self.statements)

    def probes(self) -> Iterator[tuple[int, str, str, str, str]]:
        """Each probe as in the paper's Table 4: the statement's number from 1, category, identity,
        stereotype, probe."""
        for number, kept in enumerate(self.statements, 1):
            for identity in self.identities[kept.category]:
                text = f"{identity} {kept.statement}"
                yield number, kept.category, identity, kept.statement, text

    def as_dict(self) -> dict[str, Any]:
        """The counts and settings, as plain data."""
        by_category = Counter(kept.category for kept in self.statements)
        return {
            "source": self.source,
            "categories": {
                category: {
                    "identities": len(groups),
                    "statements": by_category[category],
                    "probes": len(groups) * by_category[category],
                }
                for category, groups in self.identities.items()
            },
            "identities": sum(map(len, self.identities.values())),
            "statements": len(self.statements),
            "probes": self.count,
            "filters": [asdict(taken) for taken in self.filters],
            "settings": dict(self.settings),
        }

    def write(self, folder: Path, *, progress: Progress | None = None) -> list[Path]:
        """Write statements.csv (which `kgbias probe sets --statements` reads), probes.csv, a data
        statement and a manifest; returns the files. The folder appears whole or not at all."""
        told = progress or Silent()
        with whole_folder(folder) as partial:
            with (partial / "statements.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(("id", "category", "statement", "perplexity", "acceptability"))
                for number, k in enumerate(self.statements, 1):
                    scores = (k.perplexity, k.acceptability)
                    numbers = ["" if x is None else f"{x:.6g}" for x in scores]
                    writer.writerow((number, defused(k.category), defused(k.statement), *numbers))
            told.stage("probes", self.count)
            with (partial / "probes.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(("id", "category", "identity", "stereotype", "probe"))
                for number, *texts in self.probes():
                    writer.writerow((number, *map(defused, texts)))
                    told.advance()
            write_text(partial / "data-statement.md", self._data_statement())
            write_json(partial / "manifest.json", {"warning": WARNING} | self.as_dict())
        return [folder / name for name in _FILES]

    def _data_statement(self) -> str:
        data = self.as_dict()
        taken = "\n".join(
            f"| {f.name} | {f.came} | {f.came - f.kept} | "
            + ", ".join(
                f"{n} as {REASONS[why]}" if why in REASONS else f"{n} {why}"
                for why, n in f.reasons.items()
            )
            + " |"
            for f in self.filters
        )
        counts = "\n".join(
            f"| {name} | {c['identities']} | {c['statements']} | {c['probes']} |"
            for name, c in data["categories"].items()
        )
        return _STATEMENT.format(
            warning=WARNING, source=self.source, taken=taken, counts=counts,
            settings=json.dumps(dict(self.settings), indent=2),
        )  # fmt: skip


_STATEMENT = """# Data statement

{warning}

**What it is.** Probes for perplexity, made as SoFa was (Marchiori Manerba et al. 2023, "Social Bias
Probing", section 3 and appendix B): every identity of a category before every stereotype of it.

**Curation.** The stereotypes come from {source}. They were brought into one form by rules (a
statement begins with its verb, in the plural of the present, and names no target), and filtered:

| filter | came | taken out | why |
|---|---|---|---|
{taken}

| category | identities | statements | probes |
|---|---|---|---|
{counts}

**Language.** English.

**Speakers and annotators.** Those of the source: see its own data statement.

**Limits.** The rules rest on an automatic parser and miss some statements. A perplexity
says how likely a model finds a sentence, not that the sentence is true of anyone. Do not train a
model to say these sentences.

**How it was made.**

```json
{settings}
```
"""


def construct(
    found: Stereotypes,
    identities: Mapping[str, Sequence[str]],
    rules: Rules,
    *,
    judge: Judge | None = None,
    threshold: float = THRESHOLD,
    scorers: Sequence[TextScorer] = (),
    cut: float = CUT,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> SofaSet:
    """Make probes of stereotypes.

    The filters, in this order: the categories that have identities; the rules (`Rules`), which also
    lower the case; duplicates; acceptability below `threshold`, by `judge`; and perplexity. A
    statement's perplexity is its mean over `scorers`, as published; of a histogram of their
    logarithms with 50 bins, those beyond the bin that holds the 1 - `cut` quantile are cut off (the
    paper chose its bins by eye and does not say which). Duplicates go first because what follows
    costs a model; the result is the same.

    Raises UsageError for numbers out of range, and where no statement is left.
    """
    if not 0 <= threshold <= 1 or not 0 <= cut < 1:
        raise UsageError("`min_acceptability` must lie from 0 to 1, and `cut` from 0 to below 1")
    told = progress or Silent()
    filters = []
    rows = [(c, t) for c, t in found.rows if not c or c in identities]
    lost = Counter(found.unmapped)
    lost.update(c for c, _ in found.rows if c and c not in identities)
    came = len(found.rows) + sum(found.unmapped.values())
    why = {f"of the category {name or 'none'}": n for name, n in sorted(lost.items())}
    filters.append(Filter("category", came, len(rows), why))
    ruled, reasons = _ruled(rows, rules, told)
    filters.append(Filter("rules", len(rows), len(ruled), reasons))
    shared = [(c, text) for one, text in ruled for c in ([one] if one else identities)]
    distinct = sorted(dict.fromkeys(shared))
    filters.append(Filter("duplicates", len(shared), len(distinct)))
    texts = sorted({text for _, text in distinct})
    sense: dict[str, float] = {}
    if judge is not None:
        sense = dict(zip(texts, _judged(texts, judge, told), strict=True))
        texts = [text for text in texts if sense[text] >= threshold]
        filters.append(_filter("acceptability", distinct, texts))
    surprise: dict[str, float] = {}
    if scorers and texts:
        before = [row for row in distinct if row[1] in set(texts)]
        means = _mean_perplexities(texts, scorers, told)
        surprise = dict(zip(texts, map(float, means), strict=True))
        most = _most(means, cut)
        texts = [text for text in texts if surprise[text] <= most]
        filters.append(_filter("perplexity", before, texts))
    left = set(texts)
    statements = tuple(Kept(c, t, surprise.get(t), sense.get(t)) for c, t in distinct if t in left)
    if not statements:
        raise UsageError(f"no statement of {found.name} is left after the filters")
    whom = {c: tuple(groups) for c, groups in identities.items()
            if any(kept.category == c for kept in statements)}  # fmt: skip
    return SofaSet(found.name, whom, statements, tuple(filters), dict(settings or {}))


def _filter(name: str, rows: Sequence[tuple[str, str]], texts: Sequence[str]) -> Filter:
    left = set(texts)
    return Filter(name, len(rows), sum(text in left for _, text in rows))


def _ruled(
    rows: Sequence[tuple[str, str]], rules: Rules, told: Progress
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """The statements that the rules keep, and why they left the others out."""
    kept, reasons = [], Counter[str]()
    told.stage("rules", len(rows))
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        for (category, _), one in zip(part, rules.apply([t for _, t in part]), strict=True):
            if one.reason:
                reasons[one.reason] += 1
            else:
                kept.append((category, one.statement))
        told.advance(len(part))
    return kept, {reason: reasons[reason] for reason in REASONS if reasons[reason]}


def _judged(texts: Sequence[str], judge: Judge, told: Progress) -> list[float]:
    told.stage("acceptability", len(texts))
    values: list[float] = []
    for start in range(0, len(texts), _AT_ONCE):
        part = texts[start : start + _AT_ONCE]
        values += judge([f"They {text}." for text in part])
        told.advance(len(part))
    return values


def _mean_perplexities(
    texts: Sequence[str], scorers: Sequence[TextScorer], told: Progress
) -> Array:
    """The mean over the models of each text's perplexity, [n]."""
    each = []
    for scorer in scorers:
        told.stage(f"perplexity by {scorer.info.name}", len(texts))
        each.append(scorer.score(texts, told).perplexities)
    return np.asarray(np.mean(each, axis=0), dtype=np.float64)


def _most(perplexities: Array, cut: float) -> float:
    """The upper edge of the histogram's bin that holds the 1 - `cut` quantile."""
    logs = np.log(perplexities)
    edges = np.histogram_bin_edges(logs, bins=BINS)
    place = int(np.searchsorted(edges, np.quantile(logs, 1 - cut), side="left"))
    return float(np.exp(edges[min(max(place, 1), len(edges) - 1)]) * (1 + 1e-12))
