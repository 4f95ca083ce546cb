"""The metrics of RAGAS (Es et al. 2023, section 3) with intervals.

Faithfulness is |V| / |S|: of the statements that an answer makes, the share that follows from the
context. Answer relevance is the mean cosine of the question with questions made from the answer
(Eq. 1). Context relevance is the share of the context's sentences that help to answer the question
(Eq. 2). All lie in [0, 1] except answer relevance, in [-1, 1]; higher is better.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kgbias.errors import DataError
from kgbias.faithfulness.judges import Embed, Judge, split
from kgbias.ids import normalise
from kgbias.io.reading import parse_json, read_text
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate

# The keys of a record: ours, then those of ragas.
_KEYS = (
    ("question", "user_input"),
    ("answer", "response"),
    ("context", "contexts", "retrieved_contexts"),
)


@dataclass(frozen=True, slots=True)
class Record:
    """An answer to a question, and the context that it should rest on."""

    question: str
    answer: str
    context: str


@dataclass(frozen=True, slots=True)
class Scored:
    """A metric of one record, judged once: its value (NaN if nothing could be judged), and what it
    was computed from: statements with their verdicts, questions with their cosines, or sentences
    with whether they were extracted."""

    value: float
    parts: tuple[tuple[str, bool | float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric over records: its mean with the interval, and each record's judgements, one per
    repeat. `retest` is the share of things judged the same in two repeats."""

    name: str
    judge: str
    estimate: Estimate
    records: tuple[tuple[Scored, ...], ...] = ()
    retest: Estimate = field(default_factory=Estimate.missing)
    unread: int = 0


def faithfulness(records: Sequence[Record], judge: Judge, repeats: int = 1) -> Metric:
    """|V| / |S|. A verdict that could not be read is left out of both, and counted as `unread`; an
    answer that makes no statement has no value. Statements are extracted once, so repeats judge the
    same ones."""
    stated = judge.statements([(r.question, r.answer) for r in records])
    asked = [(r.context, own) for r, own in zip(records, stated, strict=True)]
    rounds = [judge.verdicts(asked, n) for n in range(repeats)]
    scored = [
        tuple(_share(own, verdicts[place]) for verdicts in rounds)
        for place, own in enumerate(stated)
    ]
    return _metric("faithfulness", judge, scored)


def answer_relevance(
    records: Sequence[Record], judge: Judge, embed: Embed, repeats: int = 1
) -> Metric:
    """The mean cosine of the question with the questions that the judge makes from the answer; no
    value from a judge that makes none, such as the offline ones."""
    scored: list[list[Scored]] = [[] for _ in records]
    for n in range(repeats):
        made = judge.questions([r.answer for r in records], n)
        for place, (record, questions) in enumerate(zip(records, made, strict=True)):
            if not questions:
                scored[place].append(Scored(math.nan))
                continue
            rows = embed([record.question, *questions])
            cosines = (rows[1:] @ rows[0]).tolist()
            parts = tuple(zip(questions, cosines, strict=True))
            scored[place].append(Scored(float(np.mean(cosines)), parts))
    return _metric("answer_relevance", judge, [tuple(own) for own in scored])


def context_relevance(records: Sequence[Record], judge: Judge, repeats: int = 1) -> Metric:
    """The share of the context's sentences that the judge extracts. Anything it returns that is not
    a sentence of the context does not count."""
    scored: list[list[Scored]] = [[] for _ in records]
    asked = [(r.question, r.context) for r in records]
    for n in range(repeats):
        for place, extracted in enumerate(judge.sentences(asked, n)):
            own = split(records[place].context)
            chosen = {normalise(s) for text in extracted for s in (text, *split(text))}
            taken = [normalise(s) in chosen for s in own]
            value = sum(taken) / len(own) if own else math.nan
            scored[place].append(Scored(value, tuple(zip(own, taken, strict=True))))
    return _metric("context_relevance", judge, [tuple(own) for own in scored])


def against(text: str, sources: Callable[[str], str], judge: Judge, repeats: int = 1) -> Metric:
    """The faithfulness of a text in which each statement has its own `sources`: the share of its
    statements that follow from theirs, with the interval over statements."""
    (stated,) = judge.statements([("", text)])
    asked = [(sources(statement), (statement,)) for statement in stated]
    rounds = [judge.verdicts(asked, n) for n in range(repeats)]
    scored = [
        tuple(_share((statement,), verdicts[place]) for verdicts in rounds)
        for place, statement in enumerate(stated)
    ]
    return _metric("faithfulness", judge, scored)


def read_records(path: Path) -> list[Record]:
    """Read records from JSON lines with the keys question, answer and context, or user_input,
    response and retrieved_contexts as in ragas; contexts may be lists. Raises DataError for any
    other file."""
    found = []
    for n, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        row = parse_json(line, f"{path}, line {n}")
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {n} is not a JSON object")
        cells = []
        for names in _KEYS:
            value = next((row[name] for name in names if name in row), None)
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                value = " ".join(value)
            if not isinstance(value, str) or not value.strip():
                raise DataError(f"{path}, line {n} has no {names[0]!r}")
            cells.append(value.strip())
        found.append(Record(*cells))
    if not found:
        raise DataError(f"{path} holds no records")
    return found


def over_records(values: Sequence[Sequence[float]], *, seed: int = 0) -> Estimate:
    """The mean over records of each record's mean over repeats, with the percentile interval of a
    bootstrap that draws records, and then the repeats of each. NaNs are left out; n is the number
    of records."""
    own = [[v for v in row if not math.isnan(v)] for row in values]
    own = [row for row in own if row]
    if not own:
        return Estimate.missing()
    mean = float(np.mean([np.mean(row) for row in own]))
    if len(own) < 2:
        return Estimate.missing(len(own), mean)
    rng = np.random.default_rng(seed)
    drawn = np.zeros((DEFAULT_DRAWS, len(own)))
    for n, row in enumerate(own):
        drawn[:, n] = np.array(row)[rng.integers(len(row), size=(DEFAULT_DRAWS, len(row)))].mean(axis=1)
    chosen = rng.integers(len(own), size=(DEFAULT_DRAWS, len(own)))
    means = np.take_along_axis(drawn, chosen, axis=1).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(mean, float(low), float(high), len(own))


def retest(rounds: Sequence[Sequence[bool | None]]) -> Estimate:
    """The share of things that two repeats judged alike, over all pairs of repeats, in [0, 1]; the
    interval is from a bootstrap over things. `rounds` has each thing's judgement in each repeat."""
    alike = [
        [float(a == b) for i, a in enumerate(own) for b in own[i + 1 :] if None not in (a, b)]
        for own in rounds
    ]
    return over_records([[float(np.mean(row))] for row in alike if row])


def _share(statements: Sequence[str], verdicts: Sequence[bool | None]) -> Scored:
    read = [v for v in verdicts if v is not None]
    value = sum(read) / len(read) if read else math.nan
    return Scored(value, tuple(zip(statements, verdicts, strict=True)))


def _metric(name: str, judge: Judge, scored: Sequence[tuple[Scored, ...]]) -> Metric:
    judged = [
        [verdict for _, verdict in part]
        for own in scored
        for part in zip(*(s.parts for s in own), strict=False)
    ]
    same = [row for row in judged if all(v is None or isinstance(v, bool) for v in row)]
    return Metric(
        name,
        judge.name,
        over_records([[s.value for s in own] for own in scored]),
        tuple(scored),
        retest([[v for v in row if v is None or isinstance(v, bool)] for row in same]),
        sum(v is None for row in judged for v in row),
    )
