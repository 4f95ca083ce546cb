"""Retrieval: the statements of a run that a question is about, and why each one was found.

A question names groups, or a topic, or both. Statements about the groups (or about all, where none
is named) are ranked by the topic: by the words that they share with it, and by the cosine of their
embeddings. What is retrieved follows `kgbias.graph.selection`, so that an answer rests on what
counts and on nothing else.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kgbias.ask.names import Question, read_question, topic_words
from kgbias.ask.vectors import Index, said_of
from kgbias.graph.selection import Counted, Selection
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import GroupScore, TripleView
from kgbias.measure.figures import figures_of
from kgbias.statistics import Estimate, proportion
from kgbias.words import stem

TOP = 20
NEAR = 0.37  # the cosine from which a statement is about the topic without sharing a word with it
NEAREST = 5  # statements that are shown where none is about the topic


@dataclass(frozen=True, slots=True)
class Found:
    """A statement that was retrieved.

    Attributes:
        triple: it, with its count and scores, of one arm.
        share: its share of all statements about its group in this arm, in [0, 1].
        similarity: the cosine of its embedding with the question's topic, in [-1, 1]; NaN without.
        words: the words of the question that it holds.
        why: in a few words, why it was retrieved.
    """

    triple: TripleView
    share: Estimate
    similarity: float
    words: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class GroupFound:
    """A group that the retrieved statements are about, in one arm: how many statements there are
    about it, which share of them matches the question, and its figures by measure."""

    group_id: str
    group: str
    arm: str
    statements: int
    matching: Estimate
    figures: Mapping[str, GroupScore] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a question found in a run.

    Attributes:
        question: how it was read.
        statements: the statements, the best first; at most `top` about each group that is named,
            or in all where none is.
        matching: how many there were before that limit.
        groups: the groups that they are about.
        neighbours: of other groups, statements with the same object as one of these.
        method: how they were found.
        nothing: why there are none, as a sentence; "" where there are some.
        nearest: where none is about the topic, the few that come nearest to it; without an index,
            those that were said most often of the groups that are named. They answer nothing.
    """

    question: Question
    statements: tuple[Found, ...]
    matching: int
    groups: tuple[GroupFound, ...]
    neighbours: tuple["Neighbour", ...]
    method: str
    nothing: str = ""
    nearest: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A statement about another group that shares the object of a retrieved one. `of` is the number
    of that one in the answer, from 1."""

    of: int
    triple: TripleView


def retrieve(
    run: StoredRun,
    counted: Counted,
    question: str,
    *,
    index: Index | None,
    top: int = TOP,
    selection: Selection | None = None,
) -> Retrieved:
    """The statements of a run that a question is about, without their neighbours. Without an
    `index`, words alone decide. `counted` is what `selection` keeps of the run."""
    read = read_question(question, run.groups)
    pool = [t for t in counted.triples if not read.groups or t.group_id in read.groups]
    total: Counter[tuple[str, str]] = Counter()
    for t in counted.triples:
        total[t.group_id, t.arm] += t.count
    method = "shared words" + (f" and {index.method}" if index else "")
    if not read.topic:
        if not read.groups:
            return Retrieved(read, (), 0, (), (), method, _unread(run))
        ranked = sorted(pool, key=lambda t: (-t.count, t.group, t.predicate, t.object, t.arm))
        found = [_found(t, total, math.nan, (), f"about {t.group}") for t in ranked]
        method = "the most frequent statements about the groups"
        nearest: list[Found] = []
    else:
        found, nearest = _by_topic(read, pool, total, index)
    kept = _limited(found, top, of_each=bool(read.groups))
    return Retrieved(
        read,
        tuple(kept),
        len(found),
        _groups(run, counted, selection, read, found, total),
        (),
        method,
        "" if found else _none(run, read, pool),
        () if found else tuple(nearest),
    )


def _by_topic(
    read: Question, pool: Sequence[TripleView], total: Mapping[tuple[str, str], int],
    index: Index | None,
) -> tuple[list[Found], list[Found]]:  # fmt: skip
    """The statements that are about the topic, and the few that come nearest of those that are
    not."""
    held = {t.id: {stem(w) for w in topic_words(said_of(t))} for t in pool}
    rare = _rarity(read.topic, list(held.values()))
    near = index.nearest(" ".join(read.topic), pool) if index else {}
    ranked, others = [], []
    for t in pool:
        shared = tuple(w for w in read.topic if stem(w) in held[t.id])
        cosine = near.get(t.id, math.nan)
        known = 0.0 if math.isnan(cosine) else cosine
        score = round(sum(rare[w] for w in shared) + known, 5)  # a server rounds to 32 bits
        row = (-score, -t.count, t.group, t.predicate, t.object, t.arm, t, cosine, shared)
        if shared or cosine >= NEAR:
            ranked.append(row)
        elif t.id in near if index else read.groups:
            others.append(row)
    first = sorted(others, key=lambda row: row[:6])[:NEAREST]
    return (
        [_found(t, total, cosine, shared, _why(shared, cosine))
         for *_, t, cosine, shared in sorted(ranked, key=lambda row: row[:6])],
        [_found(t, total, cosine, (), f"{cosine:.2f} near" if index else f"about {t.group}")
         for *_, t, cosine, _ in first],
    )  # fmt: skip


def _rarity(topic: Sequence[str], held: Sequence[set[str]]) -> dict[str, float]:
    """What each word of the topic weighs: its inverse document frequency as a share of the sum, so
    that a statement that holds all of them has 1."""
    frequency = Counter(word for found in held for word in found)
    weight = {w: math.log(1 + len(held) / (1 + frequency[stem(w)])) for w in topic}
    whole = sum(weight.values()) or 1.0
    return {w: value / whole for w, value in weight.items()}


def _why(shared: Sequence[str], cosine: float) -> str:
    said = [f"says {', '.join(shared)}"] if shared else []
    if cosine >= NEAR:
        said.append(f"similar ({cosine:.2f})")
    return "; ".join(said)


def _found(
    t: TripleView, total: Mapping[tuple[str, str], int], cosine: float, shared: tuple[str, ...],
    why: str,
) -> Found:  # fmt: skip
    return Found(t, proportion(t.count, total[t.group_id, t.arm]), cosine, shared, why)


def _limited(found: Sequence[Found], top: int, *, of_each: bool) -> list[Found]:
    """The first statements, in all or of each group and arm."""
    seen: Counter[tuple[str, str] | None] = Counter()
    kept = []
    for f in found:
        key = (f.triple.group_id, f.triple.arm) if of_each else None
        seen[key] += 1
        if seen[key] <= top:
            kept.append(f)
    return kept


def _groups(
    run: StoredRun, counted: Counted, selection: Selection | None, read: Question,
    found: Sequence[Found], total: Mapping[tuple[str, str], int],
) -> tuple[GroupFound, ...]:  # fmt: skip
    """The groups that the question names, or else those that were found, each in each arm."""
    matching: Counter[tuple[str, str]] = Counter()
    for f in found:
        matching[f.triple.group_id, f.triple.arm] += f.triple.count
    figures: dict[tuple[str, str], dict[str, GroupScore]] = defaultdict(dict)
    for score in figures_of(run, selection, counted):
        figures[score.group_id, score.arm][score.measure] = score
    return tuple(
        GroupFound(
            g.id,
            g.name,
            arm,
            total[g.id, arm],
            proportion(matching[g.id, arm], total[g.id, arm]),
            figures.get((g.id, counted.label(arm)), {}),
        )
        for g in run.groups
        for arm in counted.arms
        if (g.id in read.groups if read.groups else (g.id, arm) in matching)
    )


def _unread(run: StoredRun) -> str:
    return f"The question names no group of run {run.name!r} and no topic. {_there(run)}"


def _none(run: StoredRun, read: Question, pool: Sequence[TripleView]) -> str:
    about = " and ".join(g.name for g in run.groups if g.id in read.groups)
    topic = ", ".join(read.topic)
    if not about:
        return f"Run {run.name!r} holds no statement about: {topic}. {_there(run)}"
    if not pool:
        return f"Run {run.name!r} holds no statement about {about}."
    said = sum(t.count for t in pool)
    return f"None of the {said} statements about {about} in run {run.name!r} is about: {topic}."


def _there(run: StoredRun, most: int = 30) -> str:
    """Which groups a question could name."""
    if not run.groups:
        return "It has no groups."
    more = len(run.groups) - most
    listed = ", ".join(g.name for g in run.groups[:most])
    return f"Its groups are {listed}{f' and {more} more' if more > 0 else ''}."
