"""Retrieval: the statements of a run that a question is about, and why each one was found.

A question names groups, or a topic, or both. Statements about the groups (about all, if none is
named) are ranked by the topic: by the words that they share with it, and by the cosine of their
embeddings. Statements about other groups with the same objects, from the library's query
`same_object`, are their neighbourhood. Retrieval follows `kgbias.graph.selection`, so an answer
rests only on what counts.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kgbias.evidence.names import list_other_groups, named_groups
from kgbias.graph.selection import SelectedStatements, Selection, merge_sentences
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, GroupScore, TripleView, node_id
from kgbias.graph.vectors import StatementVectors, round_to_half
from kgbias.ids import normalise
from kgbias.language.words import ORDINARY_ADJECTIVES, PERSON_WORDS, lemmatise_word, topic_words
from kgbias.measure.figures import read_figures
from kgbias.measure.semantic_search import MIN_SEARCH_COSINE
from kgbias.models.embed import SentenceVectors
from kgbias.query import load_query
from kgbias.stats.inference import Estimate, proportion

if TYPE_CHECKING:
    from kgbias.graph.neo4j import Neo4jStore


class Index(Protocol):
    """An index of statements by what they say. `method` describes in one line how it finds them."""

    @property
    def method(self) -> str: ...

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        """The cosine, in [-1, 1], of the topic with what statements say about their groups, by
        triple id; an index may leave out distant ones."""
        ...


class InMemory:
    """Every statement compared with the question, in memory: by the vectors `kept` of statements,
    or else read now."""

    def __init__(self, embed: SentenceVectors, kept: StatementVectors) -> None:
        self._embed = embed
        self._kept = dict(zip(kept.ids, kept.rows, strict=True))
        self.method = f"cosine of {embed.name} embeddings, in memory"

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        texts = {t.statement_id: said_of(t) for t in triples}
        if not texts:
            return {}
        new = sorted(texts.keys() - self._kept.keys(), key=lambda id: (texts[id], id))
        if new:
            read = round_to_half(self._embed([texts[id] for id in new]))
            self._kept |= dict(zip(new, read, strict=True))
        rows = np.array([self._kept[id] for id in texts], dtype=np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)  # half precision took a little
        near = dict(zip(texts, (rows @ self._embed([topic])[0]).tolist(), strict=True))
        return {t.id: near[t.statement_id] for t in triples}


_COSINES = """
UNWIND $statements AS said
MATCH (v:StatementVector {predicate_uid: said[0], object_uid: said[1], encoder: $encoder})
RETURN said[0] AS predicate, said[1] AS object,
       2 * vector.similarity.cosine(v.values, $question) - 1 AS cosine"""
Statement = tuple[str, str]  # the uids of a predicate and an object


class InNeo4j:
    """Every statement compared with the question by the Neo4j server that keeps their vectors under
    the encoder's name; those that are missing are written when a question needs them.

    The server's vector index, there for Cypher of one's own, gives the nearest of all runs, which
    may all be another run's. So a question does not go through it."""

    def __init__(self, store: "Neo4jStore", embed: SentenceVectors, encoder: str) -> None:
        self._store, self._embed, self._encoder = store, embed, encoder
        self.method = f"cosine of {embed.name} embeddings, on the server"

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        if not triples:
            return {}
        own = {
            t.id: (node_id("predicate", t.predicate), node_id("object", t.object)) for t in triples
        }
        texts = {own[t.id]: said_of(t) for t in triples}
        question = self._embed([topic])[0].tolist()
        cosines = self._cosines(question, texts)
        if new := sorted(texts.keys() - cosines):
            rows = self._embed([texts[ends] for ends in new]).astype(np.float32)
            self._store.save_vectors(self._encoder, StatementVectors(new, rows))
            cosines |= self._cosines(question, new)
        return {id: cosines[ends] for id, ends in own.items()}

    def _cosines(
        self, question: list[float], statements: Iterable[Statement]
    ) -> dict[Statement, float]:
        """The cosine with each statement whose vector the server keeps."""
        found = self._store.read(
            _COSINES,
            statements=[list(ends) for ends in statements],
            encoder=self._encoder,
            question=question,
        )
        return {(row["predicate"], row["object"]): row["cosine"] for row in found}


def said_of(triple: TripleView) -> str:
    """What a statement says about its group, without the group, as encoders read it: in the words
    of `kgbias.measure.semantic_search.statement_texts`, since their vectors are kept under one name."""
    return normalise(f"{triple.predicate} {triple.object}")


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PEOPLE = re.compile(r"\s+people$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as understood: the groups that it names, each with the words that named it; the
    words that say what else it is about, in order; and the groups that it names but the run lacks,
    whose names stay among these words."""

    text: str
    groups: Mapping[str, str]  # group id -> as the question says it
    topic: tuple[str, ...]
    absent: tuple[Group, ...] = ()


def read_question(text: str, groups: Sequence[Group], others: Sequence[Group] = ()) -> Question:
    """What a question asks about these groups; `others` are groups that the run lacks.

    A group is found, in any case, by any of its names, also in the singular and, if its name ends
    in "people", also without that word ("Nigerians", "Nigerian culture"; other groups only before
    a person: "Chinese food" is not about Chinese people). Of names that overlap, the longest
    counts.
    """
    found: dict[str, str] = {}
    left = text
    spans = [*_spans(text, groups), *_spans(text, others, of_persons=True)]
    spans.sort(key=lambda s: (s[0] - s[1], s[0]))  # the longest first
    taken: list[tuple[int, int]] = []
    for start, end, group in spans:
        if any(start < stop and begin < end for begin, stop in taken):
            if any((start, end) == span for span in taken):
                found.setdefault(group, text[start:end])
            continue
        taken.append((start, end))
        found.setdefault(group, text[start:end])
    named = {g.id: found[g.id] for g in groups if g.id in found}
    of_run = {(start, end) for start, end, group in spans if group in named}
    for start, end in of_run.intersection(taken):
        left = left[:start] + " " * (end - start) + left[end:]
    absent = tuple(g for g in others if g.id in found)
    return Question(text, named, tuple(topic_words(left)), absent)


def _spans(
    text: str, groups: Iterable[Group], *, of_persons: bool = False
) -> Iterator[tuple[int, int, str]]:
    """Where groups are named: start, end and id. `of_persons`: without "people" only before another
    word for persons."""
    for group in groups:
        for name in (group.name, *group.variants):
            bare = _PEOPLE.sub("", name)
            for form in _forms(name) | {bare}:
                strict = of_persons and form == bare != name
                for match in _pattern(form).finditer(text):
                    if _names_people(text, match, strict):
                        yield match.start(), match.end(), group.id


def _forms(name: str) -> set[str]:
    """A name in the plural and in the singular."""
    forms = {name}
    head, space, last = name.rpartition(" ")
    low = last.lower()
    if low in ("men", "women"):
        forms.add(f"{head}{space}{last[:-2]}an")
    elif low == "people":
        forms |= {f"{head}{space}person", f"{head}s"} if head else set()
    elif low.endswith("s") and len(last) > 3:
        forms.add(name[:-1])
    return forms


def _names_people(text: str, match: re.Match[str], of_persons: bool) -> bool:
    """Whether a name means its group here. A word that also describes things does so only before a
    word for a person, or with a capital letter inside a sentence."""
    if match[0].lower() not in ORDINARY_ADJECTIVES and not of_persons:
        return True
    after = _WORD.match(text, match.end() + 1)
    if after is not None and after[0].lower() in PERSON_WORDS:
        return True
    return not of_persons and match[0][:1].isupper() and bool(text[: match.start()].strip())


@lru_cache(maxsize=10_000)  # more than `re` keeps: all names of all shipped groups
def _pattern(form: str) -> re.Pattern[str]:
    spaced = r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", form) if part)
    return re.compile(rf"(?<![\w-]){spaced}(?![\w-])", re.IGNORECASE)


TOP = 20
NEAREST = 5  # statements shown if none is about the topic


@dataclass(frozen=True, slots=True)
class Found:
    """A statement that was retrieved.

    Attributes:
        triple: the statement, with its count and scores in one arm. A sentence that is stored as
            several triples ("are | taller than" and "are taller | than") is one statement: the
            triple said most often, with the counts of all.
        share: its share of all statements about its group in this arm, in [0, 1].
        similarity: the cosine of its embedding with the question's topic, in [-1, 1]; NaN without
            an index.
        words: the words of the question that it contains.
        why: in a few words, why it was retrieved.
    """

    triple: TripleView
    share: Estimate
    similarity: float
    words: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class GroupFound:
    """A group that the retrieved statements are about, in one arm: the number of statements about
    it, the share of them that matches the question, and its figures by measure."""

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
        question: how it was understood.
        statements: the statements, the best first; at most `top` about each named group, or in
            all if none is named.
        matching: how many there were before that limit.
        groups: the groups that they are about.
        neighbours: statements about other groups with the same object as one of these.
        method: how they were found.
        nothing: why there are none, as a sentence; "" if there are some.
        nearest: if none is about the topic, the few that come nearest to it; without an index,
            those said most often about the named groups. They do not answer the question.
        absent: which groups the question names that the run lacks, as a sentence; "" if it has all.
            If it has none of them, only statements that name one are found.
    """

    question: Question
    statements: tuple[Found, ...]
    matching: int
    groups: tuple[GroupFound, ...]
    neighbours: tuple["Neighbour", ...]
    method: str
    nothing: str = ""
    nearest: tuple[Found, ...] = ()
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A statement about another group that shares the object of a retrieved one. `of` is the latter
    statement's number in the answer, from 1."""

    of: int
    triple: TripleView


def retrieve(
    run: StoredRun,
    counted: SelectedStatements,
    question: str,
    *,
    index: Index | None,
    top: int = TOP,
    selection: Selection | None = None,
) -> Retrieved:
    """The statements of a run that a question is about, without their neighbours. Without an
    `index`, words alone decide. `counted` is what `selection` keeps of the run."""
    groups = named_groups(run)
    read = read_question(question, groups, list_other_groups(groups))
    said = [sentence for sentence, _ in merge_sentences(counted.triples)]
    pool = [t for t in said if not read.groups or t.group_id in read.groups]
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
        if read.absent and not read.groups:
            named = [any(_spans(said_of(f.triple), read.absent, of_persons=True)) for f in found]
            others = [f for f, names in zip(found, named, strict=True) if not names]
            found = [f for f, names in zip(found, named, strict=True) if names]
            nearest = [*others, *nearest][:NEAREST]
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
        _absent(run, read, bool(found)),
    )


def _by_topic(
    read: Question, pool: Sequence[TripleView], total: Mapping[tuple[str, str], int],
    index: Index | None,
) -> tuple[list[Found], list[Found]]:  # fmt: skip
    """The statements that are about the topic and, of those that are not, the few nearest to it."""
    held = {t.id: {lemmatise_word(w) for w in topic_words(said_of(t))} for t in pool}
    rare = _rarity(read.topic, list(held.values()))
    near = index.nearest(" ".join(read.topic), pool) if index else {}
    ranked, others = [], []
    for t in pool:
        shared = tuple(w for w in read.topic if lemmatise_word(w) in held[t.id])
        cosine = near.get(t.id, math.nan)
        known = 0.0 if math.isnan(cosine) else cosine
        score = round(sum(rare[w] for w in shared) + known, 5)  # a server rounds to 32 bits
        row = (-score, -t.count, t.group, t.predicate, t.object, t.arm, t, cosine, shared)
        if shared or cosine >= MIN_SEARCH_COSINE:
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
    """The weight of each word of the topic: its inverse document frequency as a share of the sum,
    so a statement with all the words has 1."""
    frequency = Counter(word for found in held for word in found)
    weight = {w: math.log(1 + len(held) / (1 + frequency[lemmatise_word(w)])) for w in topic}
    whole = sum(weight.values()) or 1.0
    return {w: value / whole for w, value in weight.items()}


def _why(shared: Sequence[str], cosine: float) -> str:
    said = [f"says {', '.join(shared)}"] if shared else []
    if cosine >= MIN_SEARCH_COSINE:
        said.append(f"{'similar' if said else 'by meaning'} ({cosine:.2f})")
    return "; ".join(said)


def _found(
    t: TripleView, total: Mapping[tuple[str, str], int], cosine: float, shared: tuple[str, ...],
    why: str,
) -> Found:  # fmt: skip
    return Found(t, proportion(t.count, total[t.group_id, t.arm]), cosine, shared, why)


def _limited(found: Sequence[Found], top: int, *, of_each: bool) -> list[Found]:
    """The first statements, overall or for each group and arm."""
    seen: Counter[tuple[str, str] | None] = Counter()
    kept = []
    for f in found:
        key = (f.triple.group_id, f.triple.arm) if of_each else None
        seen[key] += 1
        if seen[key] <= top:
            kept.append(f)
    return kept


def _groups(
    run: StoredRun, counted: SelectedStatements, selection: Selection | None, read: Question,
    found: Sequence[Found], total: Mapping[tuple[str, str], int],
) -> tuple[GroupFound, ...]:  # fmt: skip
    """The groups that the question names, or else those that were found, each in each arm."""
    matching: Counter[tuple[str, str]] = Counter()
    for f in found:
        matching[f.triple.group_id, f.triple.arm] += f.triple.count
    figures: dict[tuple[str, str], dict[str, GroupScore]] = defaultdict(dict)
    for score in read_figures(run, selection, counted):
        figures[score.group_id, score.arm][score.measure] = score
    return tuple(
        GroupFound(
            g.id,
            g.name,
            arm,
            total[g.id, arm],
            proportion(matching[g.id, arm], total[g.id, arm]),
            figures.get((g.id, counted.arm_label(arm)), {}),
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
    if not about and read.absent:
        return f"{_absent(run, read, False)} {_there(run)}"
    if not about:
        return f"Run {run.name!r} holds no statement about: {topic}. {_there(run)}"
    if not pool:
        return f"Run {run.name!r} holds no statement about {about}."
    said = sum(t.count for t in pool)
    return f"None of the {said} statements about {about} in run {run.name!r} is about: {topic}."


def _absent(run: StoredRun, read: Question, found: bool) -> str:
    if not read.absent:
        return ""
    lacking = f"Run {run.name!r} has no group {' or '.join(g.name for g in read.absent)}"
    if found and not read.groups:
        them = "it" if len(read.absent) == 1 else "one of them"
        return f"{lacking}. These statements about other groups name {them}."
    return f"{lacking}."


def _there(run: StoredRun, most: int = 30) -> str:
    """A sentence on which groups a question could name."""
    if not run.groups:
        return "It has no groups."
    more = len(run.groups) - most
    listed = ", ".join(g.name for g in run.groups[:most])
    return f"Its groups are {listed}{f' and {more} more' if more > 0 else ''}."


MOST = 10  # neighbours in one answer
_ROWS = 1_000  # rows read from the graph before those that do not count are left out


def with_neighbours(run: StoredRun, counted: SelectedStatements, found: Retrieved) -> Retrieved:
    """The same with its neighbours among the statements that count. Raises MissingExtra if a SQLite
    store cannot be queried in Cypher."""
    counts = {(t.id, t.arm): said for said, own in merge_sentences(counted.triples) for t in own}
    first = {(f.triple.id, f.triple.arm): n for n, f in enumerate(found.statements, 1)}
    number = {key: first[t.id, t.arm] for key, t in counts.items() if (t.id, t.arm) in first}
    if not number:
        return found
    ids = sorted({id for id, _ in number})
    query = load_query("same_object")
    given = {"triples": ",".join(ids), "run": run.name, "min_acceptability": 0.0, "limit": _ROWS}
    rows = query.run(run.store, given).records()
    return replace(found, neighbours=_first(rows, number, counts))


def _first(
    rows: Sequence[dict[str, object]],
    number: dict[tuple[str, str], int],
    counts: dict[tuple[str, str], TripleView],
) -> tuple[Neighbour, ...]:
    neighbours: dict[tuple[int, str, str], Neighbour] = {}
    for row in rows:
        of = number.get((str(row["triple"]), str(row["arm"])))
        key = (str(row["neighbour"]), str(row["arm"]))
        if of is not None and key in counts and key not in number:
            near = counts[key]
            neighbours.setdefault((of, near.id, near.arm), Neighbour(of, near))
    return tuple(sorted(neighbours.values(), key=lambda n: n.of)[:MOST])
