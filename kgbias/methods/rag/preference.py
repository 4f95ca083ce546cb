"""Pairwise accuracy: how often a judge prefers the better of two, as in Table 1 of Es et al. 2023.

A row is a question with a context, an answer that rests on it, one that does not, and one that is
incomplete; and a second context with irrelevant sentences: the columns of WikiEval. For each aspect
the metric of RAGAS is compared with the two baselines: a score from 0 to 10, and a ranking.
"""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kgbias.errors import DataError
from kgbias.io.columns import Column
from kgbias.io.tables import TableFormat, read_sheet
from kgbias.methods.rag.judges import ASPECTS, EmbedSentences, Judge, LocalJudge, ModelJudge
from kgbias.methods.rag.metrics import (
    AnswerRecord,
    RagasMetric,
    answer_relevance,
    context_relevance,
    faithfulness,
)
from kgbias.stats.inference import Estimate, proportion

CHANCE_ACCURACY = 0.5
WIKIEVAL_COLUMNS = (
    "question",
    "answer",
    "ungrounded_answer",
    "poor_answer",
    "context_v1",
    "context_v2",
)
PAIR_TABLE = TableFormat(
    "answers to compare: `faithfulness`", tuple((name,) for name in WIKIEVAL_COLUMNS)
)


class PreferencePair(NamedTuple):
    """The better and the worse record for an aspect."""

    better: AnswerRecord
    worse: AnswerRecord


@dataclass(frozen=True, slots=True)
class WikiEvalRow:
    """A row of WikiEval: `answer` rests on `context_v1`, `ungrounded_answer` does not,
    `poor_answer` is incomplete, and `context_v2` has irrelevant sentences."""

    question: str
    answer: str
    ungrounded_answer: str
    poor_answer: str
    context_v1: str
    context_v2: str

    def make_pair(self, aspect: str) -> PreferencePair:
        """The better and the worse record for an aspect."""
        better = AnswerRecord(self.question, self.answer, self.context_v1)
        if aspect == "faithfulness":
            return PreferencePair(
                better, AnswerRecord(self.question, self.ungrounded_answer, self.context_v1)
            )
        if aspect == "answer_relevance":
            return PreferencePair(
                better, AnswerRecord(self.question, self.poor_answer, self.context_v1)
            )
        return PreferencePair(better, AnswerRecord(self.question, self.answer, self.context_v2))


@dataclass(frozen=True, slots=True)
class JudgeAccuracy:
    """How often the better one was preferred, in [0, 1]; chance is 0.5. `ties` were decided at
    random, as were `unread` answers, without a number or a name."""

    aspect: str
    method: str
    judge: str
    accuracy: Estimate
    ties: int = 0
    unread: int = 0


ACCURACY_COLUMNS = (
    Column("aspect"),
    Column("method"),
    Column("judge"),
    Column("accuracy", ".0%", interval=True, count="n"),
    Column("ties", "d"),
    Column("unread", "d"),
)


def read_wikieval(path: Path) -> list[WikiEvalRow]:
    """The rows of a copy of WikiEval, in JSON or another table. Raises DataError for others."""
    sheet_rows = read_sheet(path, WIKIEVAL_COLUMNS).rows
    if not sheet_rows:
        raise DataError(f"{path} holds no rows")
    rows = []
    for number, (_, row) in enumerate(sheet_rows, 1):
        missing_columns = [name for name in WIKIEVAL_COLUMNS if not _cell_text(row.get(name))]
        if missing_columns:
            raise DataError(
                f"{path}, row {number} has no {missing_columns[0]!r}: a row is one of WikiEval"
            )
        rows.append(WikiEvalRow(**{name: _cell_text(row[name]) for name in WIKIEVAL_COLUMNS}))
    return rows


def pairwise_accuracy(
    rows: Sequence[WikiEvalRow],
    judge: Judge,
    embed: EmbedSentences,
    *,
    repeats: int = 1,
    seed: int = 0,
) -> list[JudgeAccuracy]:
    """The accuracy of a judge for each aspect, by the metrics of RAGAS and, if the judge is a
    language model, by the two baselines. Ties are broken at random, as published. An offline judge
    has no answer relevance."""
    accuracies = []
    is_local = isinstance(judge, LocalJudge)
    for aspect in ASPECTS:
        if is_local and aspect == "answer_relevance":
            continue
        pairs = [row.make_pair(aspect) for row in rows]
        records = [record for pair in pairs for record in pair]
        values = _record_means(_compute_metric(aspect, records, judge, embed, repeats))
        accuracies.append(_accuracy_of_values(aspect, "ragas", judge.name, values, seed))
    if is_local:
        return accuracies
    assert isinstance(judge, ModelJudge)
    for aspect in ASPECTS:
        pairs = [row.make_pair(aspect) for row in rows]
        queries = [
            (record_.question, record_.answer, record_.context)
            for pair in pairs
            for record_ in pair
        ]
        accuracies.append(
            _accuracy_of_values(
                aspect, "gpt-score", judge.name, judge.score_answers(aspect, queries), seed
            )
        )
        accuracies.append(_accuracy_of_rankings(aspect, judge, pairs, seed))
    return accuracies


def _compute_metric(
    aspect: str, records: Sequence[AnswerRecord], judge: Judge, embed: EmbedSentences, repeats: int
) -> RagasMetric:
    if aspect == "faithfulness":
        return faithfulness(records, judge, repeats)
    if aspect == "answer_relevance":
        return answer_relevance(records, judge, embed, repeats)
    return context_relevance(records, judge, repeats)


def _record_means(metric: RagasMetric) -> list[float | None]:
    """Each record's value; None if it could not be judged."""
    means: list[float | None] = []
    for record_scores in metric.scores:
        values = [score.value for score in record_scores if not math.isnan(score.value)]
        means.append(sum(values) / len(values) if values else None)
    return means


def _accuracy_of_values(
    aspect: str, method: str, judge: str, values: Sequence[float | None], seed: int
) -> JudgeAccuracy:
    """The accuracy from values of the better and the worse in turn. An answer that makes no
    statement, or could not be read, ranks below one with a value."""
    rng = random.Random(f"{seed} {aspect} {method}")
    right_count = ties = unread = 0
    pairs = list(zip(values[::2], values[1::2], strict=True))
    for better, worse in pairs:
        unread += (better is None) + (worse is None)
        better_value = -1.0 if better is None else better
        worse_value = -1.0 if worse is None else worse
        if better_value == worse_value:
            ties += 1
            right_count += rng.random() < 0.5
        else:
            right_count += better_value > worse_value
    return JudgeAccuracy(aspect, method, judge, proportion(right_count, len(pairs)), ties, unread)


def _accuracy_of_rankings(
    aspect: str, judge: ModelJudge, pairs: Iterable[tuple[AnswerRecord, AnswerRecord]], seed: int
) -> JudgeAccuracy:
    """The accuracy by ranking. Which one stands first is random, because judges favour a place."""
    rng = random.Random(f"{seed} {aspect} ranking")
    queries, first_is_better = [], []
    of_context = aspect == "context_relevance"
    for better, worse in pairs:
        swap = rng.random() < 0.5
        first, second = (worse, better) if swap else (better, worse)
        options = [record.context if of_context else record.answer for record in (first, second)]
        queries.append(
            {
                "question": better.question,
                "context": "" if of_context else better.context,
                "answer": better.answer if of_context else "",
                "first": options[0],
                "second": options[1],
            }
        )
        first_is_better.append(not swap)
    right_count = unread = 0
    for ranking, better_first in zip(
        judge.rank_pairs(aspect, queries), first_is_better, strict=True
    ):
        if ranking is None:
            unread += 1
            right_count += rng.random() < 0.5
        else:
            right_count += (ranking == 1) == better_first
    accuracy = proportion(right_count, len(queries))
    return JudgeAccuracy(aspect, "gpt-ranking", judge.name, accuracy, 0, unread)


def _cell_text(value: object) -> str:
    """A cell as text: contexts may be lists of passages."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value).strip()
    return value.strip() if isinstance(value, str) else ""
