"""Pairwise accuracy: how often a judge prefers the better of two, as in Table 1 of Es et al. 2023.

A row is a question with a context, an answer that rests on it, one that does not, and one that is
incomplete; and a second context with irrelevant sentences: the columns of WikiEval. For each aspect
the metric of RAGAS is compared with the two baselines: a score from 0 to 10, and a ranking.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgbias.errors import DataError
from kgbias.faithfulness.judges import ASPECTS, Embed, Judge, LocalJudge, ModelJudge
from kgbias.faithfulness.metrics import (
    Metric,
    Record,
    answer_relevance,
    context_relevance,
    faithfulness,
)
from kgbias.io.tables import TableFormat, read_sheet
from kgbias.stats.inference import Estimate, proportion

CHANCE = 0.5
COLUMNS = (
    "question", "answer", "ungrounded_answer", "poor_answer", "context_v1", "context_v2",
)  # fmt: skip
DOOR = TableFormat("answers to compare: `faithfulness`", tuple((name,) for name in COLUMNS))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of WikiEval: `answer` rests on `context_v1`, `ungrounded_answer` does not,
    `poor_answer` is incomplete, and `context_v2` has irrelevant sentences."""

    question: str
    answer: str
    ungrounded_answer: str
    poor_answer: str
    context_v1: str
    context_v2: str

    def pair(self, aspect: str) -> tuple[Record, Record]:
        """The better and the worse record for an aspect."""
        better = Record(self.question, self.answer, self.context_v1)
        if aspect == "faithfulness":
            return better, Record(self.question, self.ungrounded_answer, self.context_v1)
        if aspect == "answer_relevance":
            return better, Record(self.question, self.poor_answer, self.context_v1)
        return better, Record(self.question, self.answer, self.context_v2)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often the better one was preferred, in [0, 1]; chance is 0.5. `ties` were decided at
    random, as were `unread` answers, without a number or a name."""

    aspect: str
    method: str
    judge: str
    accuracy: Estimate
    ties: int = 0
    unread: int = 0


def read_pairs(path: Path) -> list[Row]:
    """The rows of a copy of WikiEval, in JSON or another table. Raises DataError for others."""
    found = read_sheet(path, COLUMNS).rows
    if not found:
        raise DataError(f"{path} holds no rows")
    rows = []
    for n, (_, row) in enumerate(found, 1):
        missing = [name for name in COLUMNS if not _text(row.get(name))]
        if missing:
            raise DataError(f"{path}, row {n} has no {missing[0]!r}: a row is one of WikiEval")
        rows.append(Row(**{name: _text(row[name]) for name in COLUMNS}))
    return rows


def pairwise(
    rows: Sequence[Row], judge: Judge, embed: Embed, *, repeats: int = 1, seed: int = 0
) -> list[Accuracy]:
    """The accuracy of a judge for each aspect, by the metrics of RAGAS and, if the judge is a
    language model, by the two baselines. Ties are broken at random, as published. An offline judge
    has no answer relevance."""
    found = []
    local = isinstance(judge, LocalJudge)
    for aspect in ASPECTS:
        if local and aspect == "answer_relevance":
            continue
        pairs = [row.pair(aspect) for row in rows]
        records = [record for pair in pairs for record in pair]
        values = _means(_measured(aspect, records, judge, embed, repeats))
        found.append(_preferred(aspect, "ragas", judge.name, values, seed))
    if local:
        return found
    assert isinstance(judge, ModelJudge)
    for aspect in ASPECTS:
        pairs = [row.pair(aspect) for row in rows]
        asked = [(r.question, r.answer, r.context) for pair in pairs for r in pair]
        found.append(_preferred(aspect, "gpt-score", judge.name, judge.scores(aspect, asked), seed))
        found.append(_ranked(aspect, judge, pairs, seed))
    return found


def _measured(
    aspect: str, records: Sequence[Record], judge: Judge, embed: Embed, repeats: int
) -> Metric:
    if aspect == "faithfulness":
        return faithfulness(records, judge, repeats)
    if aspect == "answer_relevance":
        return answer_relevance(records, judge, embed, repeats)
    return context_relevance(records, judge, repeats)


def _means(metric: Metric) -> list[float | None]:
    """Each record's value; None if it could not be judged."""
    found: list[float | None] = []
    for own in metric.records:
        values = [s.value for s in own if s.value == s.value]
        found.append(sum(values) / len(values) if values else None)
    return found


def _preferred(
    aspect: str, method: str, judge: str, values: Sequence[float | None], seed: int
) -> Accuracy:
    """The accuracy from values of the better and the worse in turn. An answer that makes no
    statement, or could not be read, ranks below one with a value."""
    rng = random.Random(f"{seed} {aspect} {method}")
    right = ties = unread = 0
    pairs = list(zip(values[::2], values[1::2], strict=True))
    for better, worse in pairs:
        unread += (better is None) + (worse is None)
        first = -1.0 if better is None else better
        second = -1.0 if worse is None else worse
        if first == second:
            ties += 1
            right += rng.random() < 0.5
        else:
            right += first > second
    return Accuracy(aspect, method, judge, proportion(right, len(pairs)), ties, unread)


def _ranked(
    aspect: str, judge: ModelJudge, pairs: Iterable[tuple[Record, Record]], seed: int
) -> Accuracy:
    """The accuracy by ranking. Which one stands first is random, because judges favour a place."""
    rng = random.Random(f"{seed} {aspect} ranking")
    asked, first_is_better = [], []
    of_context = aspect == "context_relevance"
    for better, worse in pairs:
        swap = rng.random() < 0.5
        one, two = (worse, better) if swap else (better, worse)
        shown = [r.context if of_context else r.answer for r in (one, two)]
        asked.append(
            {
                "question": better.question,
                "context": "" if of_context else better.context,
                "answer": better.answer if of_context else "",
                "first": shown[0],
                "second": shown[1],
            }
        )
        first_is_better.append(not swap)
    right = unread = 0
    for chosen, better_first in zip(judge.rankings(aspect, asked), first_is_better, strict=True):
        if chosen is None:
            unread += 1
            right += rng.random() < 0.5
        else:
            right += (chosen == 1) == better_first
    accuracy = proportion(right, len(asked))
    return Accuracy(aspect, "gpt-ranking", judge.name, accuracy, 0, unread)


def _text(value: object) -> str:
    """A cell as text: contexts may be lists of passages."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value).strip()
    return value.strip() if isinstance(value, str) else ""
