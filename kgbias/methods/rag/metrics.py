"""The metrics of RAGAS (Es et al. 2023, section 3) with intervals.

Faithfulness is |V| / |S|: of the statements that an answer makes, the share that follows from the
context. Answer relevance is the mean cosine of the question with questions made from the answer
(Eq. 1). Context relevance is the share of the context's sentences that help to answer the question
(Eq. 2). All lie in [0, 1] except answer relevance, in [-1, 1]; higher is better.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kgbias.errors import DataError
from kgbias.ids import normalise
from kgbias.io.columns import Column
from kgbias.io.reading import parse_json, read_text
from kgbias.io.rows import Result, Rows
from kgbias.methods.rag.judges import EmbedSentences, Judge, split_answer_sentences
from kgbias.stats.inference import (
    Estimate,
    clustered_mean,
    clustered_proportion,
    exact_proportion,
)

# The keys of a record: ours, then those of ragas.
_RECORD_KEYS = (
    ("question", "user_input"),
    ("answer", "response"),
    ("context", "contexts", "retrieved_contexts"),
)


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """An answer to a question, and the context that it should rest on."""

    question: str
    answer: str
    context: str


class JudgedPart(NamedTuple):
    """A statement with its verdict (None if that could not be read), a question with its cosine, or
    a sentence with whether it was extracted."""

    text: str
    judgement: bool | float | None


@dataclass(frozen=True, slots=True)
class RecordScore:
    """A metric of one record, judged once: its value (NaN if nothing could be judged), and the
    parts that it was computed from."""

    value: float
    parts: tuple[JudgedPart, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class RagasMetric(Result):
    """A metric over records: its mean with the interval, and each record's judgements (`scores`),
    one per repeat. `retest` is the share of things judged the same in two repeats."""

    name: str
    judge: str
    estimate: Estimate
    scores: tuple[tuple[RecordScore, ...], ...] = ()
    retest: Estimate = field(default_factory=Estimate.missing)
    unread: int = 0

    def as_rows(self) -> "Rows[RagasMetric]":
        """The metric as a row; columns: name, judge, value, low, high, n, retest with its interval,
        unread."""
        return Rows((self,), METRIC_COLUMNS)


METRIC_COLUMNS = (
    Column("name"),
    Column("judge"),
    Column(
        "value",
        ".2f",
        get=attrgetter("estimate"),
        interval=True,
        ends=("low", "high"),
        count="n",
    ),
    Column("retest", ".0%", interval=True),
    Column("unread", "d"),
)


def faithfulness(records: Sequence[AnswerRecord], judge: Judge, repeats: int = 1) -> RagasMetric:
    """|V| / |S|. A verdict that could not be read is left out of both, and counted as `unread`; an
    answer that makes no statement has no value. Statements are extracted once, so repeats judge the
    same ones."""
    statements = judge.extract_statements([(record.question, record.answer) for record in records])
    queries = [
        (record.context, record_statements)
        for record, record_statements in zip(records, statements, strict=True)
    ]
    rounds = [judge.judge_statements(queries, number) for number in range(repeats)]
    scores = [
        tuple(_supported_share(record_statements, verdicts[position]) for verdicts in rounds)
        for position, record_statements in enumerate(statements)
    ]
    return _make_metric("faithfulness", judge, scores)


def answer_relevance(
    records: Sequence[AnswerRecord], judge: Judge, embed: EmbedSentences, repeats: int = 1
) -> RagasMetric:
    """The mean cosine of the question with the questions that the judge makes from the answer; no
    value from a judge that makes none, such as the offline ones."""
    scores: list[list[RecordScore]] = [[] for _ in records]
    for number in range(repeats):
        questions_made = judge.write_questions(
            [answer_record.answer for answer_record in records], number
        )
        for position, (record, questions) in enumerate(zip(records, questions_made, strict=True)):
            if not questions:
                scores[position].append(RecordScore(math.nan))
                continue
            vectors = embed([record.question, *questions])
            cosines = (vectors[1:] @ vectors[0]).tolist()
            parts = _join_parts(questions, cosines)
            scores[position].append(RecordScore(float(np.mean(cosines)), parts))
    return _make_metric(
        "answer_relevance", judge, [tuple(record_scores) for record_scores in scores]
    )


def context_relevance(
    records: Sequence[AnswerRecord], judge: Judge, repeats: int = 1
) -> RagasMetric:
    """The share of the context's sentences that the judge extracts. Anything it returns that is not
    a sentence of the context does not count."""
    scores: list[list[RecordScore]] = [[] for _ in records]
    queries = [(record.question, record.context) for record in records]
    for number in range(repeats):
        for position, extracted in enumerate(judge.select_sentences(queries, number)):
            sentences = split_answer_sentences(records[position].context)
            extracted_sentences = {
                # A judge may put several sentences into a line.
                normalise(s)
                for text in extracted
                for s in (text, *split_answer_sentences(text))
            }
            is_extracted = [normalise(s) in extracted_sentences for s in sentences]
            value = sum(is_extracted) / len(sentences) if sentences else math.nan
            parts = _join_parts(sentences, is_extracted)
            scores[position].append(RecordScore(value, parts))
    return _make_metric(
        "context_relevance", judge, [tuple(record_scores) for record_scores in scores]
    )


def faithfulness_to_sources(
    text: str, sources: Callable[[str], str], judge: Judge, repeats: int = 1
) -> RagasMetric:
    """The faithfulness of a text in which each statement has its own `sources`: the share of its
    statements that follow from theirs, with the interval over statements."""
    (statements,) = judge.extract_statements([("", text)])
    queries = [(sources(statement), (statement,)) for statement in statements]
    rounds = [judge.judge_statements(queries, number) for number in range(repeats)]
    scores = [
        tuple(_supported_share((statement,), verdicts[position]) for verdicts in rounds)
        for position, statement in enumerate(statements)
    ]
    return _make_metric("faithfulness", judge, scores)


def read_answer_records(path: Path) -> list[AnswerRecord]:
    """Read records from JSON lines with the keys question, answer and context, or user_input,
    response and retrieved_contexts as in ragas; contexts may be lists. Raises DataError for any
    other file."""
    records = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        row = parse_json(line, f"{path}, line {number}")
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number} is not a JSON object")
        cells = []
        for keys in _RECORD_KEYS:
            value = next((row[name] for name in keys if name in row), None)
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                value = " ".join(value)
            if not isinstance(value, str) or not value.strip():
                raise DataError(f"{path}, line {number} has no {keys[0]!r}")
            cells.append(value.strip())
        records.append(AnswerRecord(*cells))
    if not records:
        raise DataError(f"{path} holds no records")
    return records


def mean_over_records(values: Sequence[Sequence[float]]) -> Estimate:
    """The mean over records of each record's mean over repeats, with its interval over records:
    that of a share where all lie between 0 and 1, otherwise Student's; none below three records.
    NaNs are left out; n is the number of records."""
    by_record = [[value for value in row if not math.isnan(value)] for row in values]
    means = [float(np.mean(row)) for row in by_record if row]
    are_shares = all(0 <= value <= 1 for value in means)
    over_records = clustered_proportion if are_shares else clustered_mean
    return over_records(range(len(means)), means)


def retest_agreement(rounds: Sequence[Sequence[bool | None]]) -> Estimate:
    """The share of things that two repeats judged alike, over all pairs of repeats, in [0, 1]; the
    interval is over things, from ten on. Where each was judged twice it is that of Clopper and
    Pearson (1934): nearly all agree, and there Wilson's holds too seldom, the .99 of 15 things in
    .86 of cases. `rounds` has each thing's judgement in each repeat."""
    shares = []
    for judgements in rounds:
        read = [judgement for judgement in judgements if judgement is not None]
        same = [first == second for first, second in combinations(read, 2)]
        if same:
            shares.append(float(np.mean(same)))
    estimate = mean_over_records([[share] for share in shares])
    if estimate.n < _MIN_RETESTS:
        return Estimate.missing(estimate.n, estimate.value)
    if set(shares) <= {0.0, 1.0}:
        return exact_proportion(round(sum(shares)), len(shares))
    return estimate


_MIN_RETESTS = 10  # things judged again, for an interval


def _join_parts(
    texts: Sequence[str], judgements: Sequence[bool | float | None]
) -> tuple[JudgedPart, ...]:
    return tuple(JudgedPart(*part) for part in zip(texts, judgements, strict=True))


def _supported_share(statements: Sequence[str], verdicts: Sequence[bool | None]) -> RecordScore:
    readable = [verdict for verdict in verdicts if verdict is not None]
    value = sum(readable) / len(readable) if readable else math.nan
    return RecordScore(value, _join_parts(statements, verdicts))


def _make_metric(name: str, judge: Judge, scores: Sequence[tuple[RecordScore, ...]]) -> RagasMetric:
    unread = 0
    verdict_rows: list[list[bool | None]] = []
    for record_scores in scores:
        repeats = [score.parts for score in record_scores]
        for repeated_part in zip(*repeats, strict=False):
            judgements = [part.judgement for part in repeated_part]
            unread += judgements.count(None)
            verdicts = [value for value in judgements if value is None or isinstance(value, bool)]
            # A cosine is no verdict: two are hardly ever the same.
            if len(verdicts) == len(judgements):
                verdict_rows.append(verdicts)
    return RagasMetric(
        name,
        judge.name,
        mean_over_records([[score.value for score in record_scores] for record_scores in scores]),
        tuple(scores),
        retest_agreement(verdict_rows),
        unread,
    )
