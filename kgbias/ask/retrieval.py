"""Retrieval: the statements of a run that a question is about, and why each one was found.

A question names groups, or a topic, or both. Statements about the groups (about all, if none is
named) are ranked by the topic: by the words that they share with it, and by the cosine of their
embeddings. Statements about other groups with the same objects, from the library's query
`same_object`, are their neighbourhood. Retrieval follows `kgbias.graph.selection`, so an answer
rests only on what counts.

A group is known by all its names, declared and stored, and groups that the run lacks are known too.
Only what retrieval finds is given to a model. An index, in memory or of a server that compares
vectors, says how near statements are, and nothing else.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np

from kgbias.evidence.names import groups_with_all_variants, list_shipped_groups_besides
from kgbias.graph.selection import SelectedStatements, Selection, merge_sentences
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, GroupScore, TripleView
from kgbias.graph.vectors import StatementVectors, round_to_half
from kgbias.ids import normalise
from kgbias.language.words import (
    ORDINARY_ADJECTIVES,
    PERSON_WORDS,
    extract_topic_words,
    lemmatise_word,
)
from kgbias.measure.figures import read_figures
from kgbias.measure.semantic_search import MIN_SEARCH_COSINE
from kgbias.models.embed import SentenceVectors
from kgbias.query import load_query
from kgbias.stats.inference import Estimate, proportion


class CosineIndex(Protocol):
    """An index of statements by what they say. `method` describes in one line how it finds them."""

    @property
    def method(self) -> str: ...

    def find_nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        """The cosine, in [-1, 1], of the topic with what statements say about their groups, by
        triple id; an index may leave out distant ones."""
        ...


class MemoryIndex:
    """Every statement compared with the question, in memory: by the vectors `kept` of statements,
    or else read now."""

    def __init__(self, embed: SentenceVectors, kept: StatementVectors) -> None:
        self._embed = embed
        self._vectors_by_id = dict(zip(kept.ids, kept.rows, strict=True))
        self.method = f"cosine of {embed.name} embeddings, in memory"

    def find_nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        texts = {triple.statement_id: statement_text(triple) for triple in triples}
        if not texts:
            return {}
        new = sorted(texts.keys() - self._vectors_by_id.keys(), key=lambda id: (texts[id], id))
        if new:
            vectors_read = round_to_half(self._embed([texts[id] for id in new]))
            self._vectors_by_id |= dict(zip(new, vectors_read, strict=True))
        rows = np.array([self._vectors_by_id[id] for id in texts], dtype=np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)  # half precision took a little
        cosines = dict(zip(texts, (rows @ self._embed([topic])[0]).tolist(), strict=True))
        return {triple.id: cosines[triple.statement_id] for triple in triples}


def statement_text(triple: TripleView) -> str:
    """What a statement says about its group, without the group, as encoders read it: in the words
    of `kgbias.measure.semantic_search.statement_texts`, since their vectors are kept under one
    name."""
    return normalise(f"{triple.predicate} {triple.object}")


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PEOPLE_ENDING = re.compile(r"\s+people$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question as understood: the groups that it names, each with the words that named it; the
    words that say what else it is about, in order; and the groups that it names but the run lacks,
    whose names stay among these words."""

    text: str
    groups: Mapping[str, str]  # group id -> as the question says it
    topic: tuple[str, ...]
    absent_groups: tuple[Group, ...] = ()


class _Mention(NamedTuple):
    """Where a question names a group: from `start` up to `end`."""

    start: int
    end: int
    group_id: str


def parse_question(
    text: str, groups: Sequence[Group], absent_candidates: Sequence[Group] = ()
) -> ParsedQuestion:
    """What a question asks about these groups; `absent_candidates` are groups that the run lacks.

    A group is found, in any case, by any of its names, also in the singular and, if its name ends
    in "people", also without that word ("Nigerians", "Nigerian culture"; other groups only before
    a person: "Chinese food" is not about Chinese people). Of names that overlap, the longest
    counts.
    """
    names_found: dict[str, str] = {}
    remaining = text
    mentions = [
        *_find_mentions(text, groups),
        *_find_mentions(text, absent_candidates, of_persons=True),
    ]
    mentions.sort(key=lambda mention: (mention.start - mention.end, mention.start))  # longest first
    spans_taken: list[tuple[int, int]] = []
    for start, end, group_id in mentions:
        overlaps = any(start < stop and begin < end for begin, stop in spans_taken)
        if overlaps and (start, end) not in spans_taken:
            continue
        # Several groups may have the same name: each of them is named.
        if not overlaps:
            spans_taken.append((start, end))
        names_found.setdefault(group_id, text[start:end])
    groups_named = {g.id: names_found[g.id] for g in groups if g.id in names_found}
    run_spans = {(start, end) for start, end, group_id in mentions if group_id in groups_named}
    for start, end in run_spans.intersection(spans_taken):
        remaining = remaining[:start] + " " * (end - start) + remaining[end:]
    absent = tuple(g for g in absent_candidates if g.id in names_found)
    return ParsedQuestion(text, groups_named, tuple(extract_topic_words(remaining)), absent)


def _find_mentions(
    text: str, groups: Iterable[Group], *, of_persons: bool = False
) -> Iterator[_Mention]:
    """Where groups are named. `of_persons`: without "people" only before another word for
    persons."""
    for group in groups:
        for name in (group.name, *group.variants):
            without_people = _PEOPLE_ENDING.sub("", name)
            for form in _number_forms(name) | {without_people}:
                needs_person = of_persons and form == without_people != name
                for match in _name_pattern(form).finditer(text):
                    if _is_group_mention(text, match, needs_person):
                        yield _Mention(match.start(), match.end(), group.id)


def _number_forms(name: str) -> set[str]:
    """A name in the plural and in the singular."""
    forms = {name}
    head, space, last_word = name.rpartition(" ")
    folded = last_word.lower()
    if folded in ("men", "women"):
        forms.add(f"{head}{space}{last_word[:-2]}an")
    elif folded == "people":
        forms |= {f"{head}{space}person", f"{head}s"} if head else set()
    elif folded.endswith("s") and len(last_word) > 3:
        forms.add(name[:-1])
    return forms


def _is_group_mention(text: str, match: re.Match[str], of_persons: bool) -> bool:
    """Whether a name means its group here. A word that also describes things does so only before a
    word for a person, or with a capital letter inside a sentence."""
    if match[0].lower() not in ORDINARY_ADJECTIVES and not of_persons:
        return True
    next_word = _WORD.match(text, match.end() + 1)
    if next_word is not None and next_word[0].lower() in PERSON_WORDS:
        return True
    return not of_persons and match[0][:1].isupper() and bool(text[: match.start()].strip())


@lru_cache(maxsize=10_000)  # more than `re` keeps: all names of all shipped groups
def _name_pattern(form: str) -> re.Pattern[str]:
    spaced = r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", form) if part)
    return re.compile(rf"(?<![\w-]){spaced}(?![\w-])", re.IGNORECASE)


DEFAULT_TOP = 20  # statements about each named group, or in all if none is named
MAX_NEAREST = 5  # statements shown if none is about the topic


@dataclass(frozen=True, slots=True)
class RetrievedStatement:
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
class RetrievedGroup:
    """A group that the retrieved statements are about, in one arm: the number of statements about
    it, the share of them that matches the question, and its figures by measure."""

    group_id: str
    group: str
    arm: str
    statements: int
    matching: Estimate
    figures: Mapping[str, GroupScore] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a question found in a run.

    Attributes:
        question: how it was understood.
        statements: the statements, the best first; at most `top` about each named group, or in
            all if none is named.
        matching: how many there were before that limit.
        groups: the groups that they are about.
        neighbours: statements about other groups with the same object as one of these.
        method: how they were found.
        empty_reason: why there are none, as a sentence; "" if there are some.
        nearest: if none is about the topic, the few that come nearest to it; without an index,
            those said most often about the named groups. They do not answer the question.
        absent_note: which groups the question names that the run lacks, as a sentence; "" if it has
            all. If it has none of them, only statements that name one are found.
    """

    question: ParsedQuestion
    statements: tuple[RetrievedStatement, ...]
    matching: int
    groups: tuple[RetrievedGroup, ...]
    neighbours: tuple["Neighbour", ...]
    method: str
    empty_reason: str = ""
    nearest: tuple[RetrievedStatement, ...] = ()
    absent_note: str = ""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A statement about another group that shares the object of a retrieved one. `statement_number`
    is the latter statement's number in the answer, from 1."""

    statement_number: int
    triple: TripleView


def retrieve_statements(
    run: StoredRun,
    counted: SelectedStatements,
    question: str,
    *,
    index: CosineIndex | None,
    top: int = DEFAULT_TOP,
    selection: Selection | None = None,
) -> Retrieval:
    """The statements of a run that a question is about, without their neighbours. Without an
    `index`, words alone decide. `counted` is what `selection` keeps of the run."""
    groups = groups_with_all_variants(run)
    parsed = parse_question(question, groups, list_shipped_groups_besides(groups))
    sentences_said = [sentence for sentence, _ in merge_sentences(counted.triples)]
    pool = [
        triple for triple in sentences_said if not parsed.groups or triple.group_id in parsed.groups
    ]
    totals: Counter[tuple[str, str]] = Counter()
    for triple in counted.triples:
        totals[triple.group_id, triple.arm] += triple.count
    method = "shared words" + (f" and {index.method}" if index else "")
    if not parsed.topic:
        if not parsed.groups:
            return Retrieval(parsed, (), 0, (), (), method, _explain_unread(run))
        ranked = sorted(
            pool,
            key=lambda triple: (
                -triple.count,
                triple.group,
                triple.predicate,
                triple.object,
                triple.arm,
            ),
        )
        results = [
            _build_result(triple, totals, math.nan, (), f"about {triple.group}")
            for triple in ranked
        ]
        method = "the most frequent statements about the groups"
        nearest: list[RetrievedStatement] = []
    else:
        results, nearest = _rank_by_topic(parsed, pool, totals, index)
        if parsed.absent_groups and not parsed.groups:
            names_absent = [
                any(
                    _find_mentions(
                        statement_text(result.triple), parsed.absent_groups, of_persons=True
                    )
                )
                for result in results
            ]
            other_results = [
                result for result, names in zip(results, names_absent, strict=True) if not names
            ]
            results = [result for result, names in zip(results, names_absent, strict=True) if names]
            nearest = [*other_results, *nearest][:MAX_NEAREST]
    limited = _limit_results(results, top, of_each=bool(parsed.groups))
    return Retrieval(
        parsed,
        tuple(limited),
        len(results),
        _count_groups(run, counted, selection, parsed, results, totals),
        (),
        method,
        "" if results else _explain_no_match(run, parsed, pool),
        () if results else tuple(nearest),
        _explain_absent_groups(run, parsed, bool(results)),
    )


class _RankedTriple(NamedTuple):
    """A triple with its rank by a topic (the lowest comes first), its cosine with it, and the words
    of the topic that it contains."""

    rank: tuple[float, int, str, str, str, str]
    triple: TripleView
    cosine: float
    words: tuple[str, ...]


class _RankedStatements(NamedTuple):
    """Statements about a topic, and the nearest that are not."""

    matching: list[RetrievedStatement]
    nearest: list[RetrievedStatement]


def _rank_by_topic(
    parsed: ParsedQuestion,
    pool: Sequence[TripleView],
    total: Mapping[tuple[str, str], int],
    index: CosineIndex | None,
) -> _RankedStatements:
    """The statements that are about the topic and, of those that are not, the few nearest to it."""
    lemmas_by_triple = {
        triple.id: {lemmatise_word(w) for w in extract_topic_words(statement_text(triple))}
        for triple in pool
    }
    word_weights = _word_weights(parsed.topic, list(lemmas_by_triple.values()))
    cosines = index.find_nearest(" ".join(parsed.topic), pool) if index else {}
    matching: list[_RankedTriple] = []
    others: list[_RankedTriple] = []
    for triple in pool:
        shared = tuple(w for w in parsed.topic if lemmatise_word(w) in lemmas_by_triple[triple.id])
        cosine = cosines.get(triple.id, math.nan)
        cosine_or_zero = 0.0 if math.isnan(cosine) else cosine
        # Rounded, since a server has its cosines in 32 bits: the order is the same on both stores.
        score = round(sum(word_weights[w] for w in shared) + cosine_or_zero, 5)
        rank = (
            -score,
            -triple.count,
            triple.group,
            triple.predicate,
            triple.object,
            triple.arm,
        )
        ranked = _RankedTriple(rank, triple, cosine, shared)
        # Without an index nothing says what is near, so only what is about a named group is shown.
        may_be_nearest = triple.id in cosines if index else bool(parsed.groups)
        if shared or cosine >= MIN_SEARCH_COSINE:
            matching.append(ranked)
        elif may_be_nearest:
            others.append(ranked)
    matching.sort(key=attrgetter("rank"))
    others.sort(key=attrgetter("rank"))
    return _RankedStatements(
        [
            _build_result(
                ranked.triple,
                total,
                ranked.cosine,
                ranked.words,
                _describe_match(ranked.words, ranked.cosine),
            )
            for ranked in matching
        ],
        [
            _build_result(
                ranked.triple,
                total,
                ranked.cosine,
                (),
                f"{ranked.cosine:.2f} near" if index else f"about {ranked.triple.group}",
            )
            for ranked in others[:MAX_NEAREST]
        ],
    )


def _word_weights(topic: Sequence[str], lemma_sets: Sequence[set[str]]) -> dict[str, float]:
    """The weight of each word of the topic: its inverse document frequency as a share of the sum,
    so a statement with all the words has 1."""
    frequency = Counter(word for lemmas in lemma_sets for word in lemmas)
    weight = {w: math.log(1 + len(lemma_sets) / (1 + frequency[lemmatise_word(w)])) for w in topic}
    total_weight = sum(weight.values()) or 1.0
    return {w: value / total_weight for w, value in weight.items()}


def _describe_match(shared: Sequence[str], cosine: float) -> str:
    reasons = [f"says {', '.join(shared)}"] if shared else []
    if cosine >= MIN_SEARCH_COSINE:
        reasons.append(f"{'similar' if reasons else 'by meaning'} ({cosine:.2f})")
    return "; ".join(reasons)


def _build_result(
    triple: TripleView,
    total: Mapping[tuple[str, str], int],
    cosine: float,
    shared: tuple[str, ...],
    why: str,
) -> RetrievedStatement:
    return RetrievedStatement(
        triple, proportion(triple.count, total[triple.group_id, triple.arm]), cosine, shared, why
    )


def _limit_results(
    results: Sequence[RetrievedStatement], top: int, *, of_each: bool
) -> list[RetrievedStatement]:
    """The first statements, overall or for each group and arm."""
    counts: Counter[tuple[str, str] | None] = Counter()
    limited = []
    for result in results:
        key = (result.triple.group_id, result.triple.arm) if of_each else None
        counts[key] += 1
        if counts[key] <= top:
            limited.append(result)
    return limited


def _count_groups(
    run: StoredRun,
    statements: SelectedStatements,
    selection: Selection | None,
    parsed: ParsedQuestion,
    results: Sequence[RetrievedStatement],
    total: Mapping[tuple[str, str], int],
) -> tuple[RetrievedGroup, ...]:
    """The groups that the question names, or else those that were found, each in each arm."""
    matching: Counter[tuple[str, str]] = Counter()
    for result in results:
        matching[result.triple.group_id, result.triple.arm] += result.triple.count
    figures: dict[tuple[str, str], dict[str, GroupScore]] = defaultdict(dict)
    for score in read_figures(run, selection, statements):
        figures[score.group_id, score.arm][score.measure] = score
    return tuple(
        RetrievedGroup(
            group.id,
            group.name,
            arm,
            total[group.id, arm],
            proportion(matching[group.id, arm], total[group.id, arm]),
            figures.get((group.id, statements.arm_label(arm)), {}),
        )
        for group in run.groups
        for arm in statements.arms
        if (group.id in parsed.groups if parsed.groups else (group.id, arm) in matching)
    )


def _explain_unread(run: StoredRun) -> str:
    return f"The question names no group of run {run.name!r} and no topic. {_list_groups(run)}"


def _explain_no_match(run: StoredRun, parsed: ParsedQuestion, pool: Sequence[TripleView]) -> str:
    group_names = " and ".join(g.name for g in run.groups if g.id in parsed.groups)
    topic = ", ".join(parsed.topic)
    if not group_names and parsed.absent_groups:
        return f"{_explain_absent_groups(run, parsed, False)} {_list_groups(run)}"
    if not group_names:
        return f"Run {run.name!r} holds no statement about: {topic}. {_list_groups(run)}"
    if not pool:
        return f"Run {run.name!r} holds no statement about {group_names}."
    statement_count = sum(t.count for t in pool)
    return (
        f"None of the {statement_count} statements about {group_names} in run {run.name!r} is "
        f"about: {topic}."
    )


def _explain_absent_groups(run: StoredRun, parsed: ParsedQuestion, has_results: bool) -> str:
    if not parsed.absent_groups:
        return ""
    lacking_text = (
        f"Run {run.name!r} has no group {' or '.join(g.name for g in parsed.absent_groups)}"
    )
    if has_results and not parsed.groups:
        pronoun = "it" if len(parsed.absent_groups) == 1 else "one of them"
        return f"{lacking_text}. These statements about other groups name {pronoun}."
    return f"{lacking_text}."


def _list_groups(run: StoredRun, max_groups: int = 30) -> str:
    """A sentence on which groups a question could name."""
    if not run.groups:
        return "It has no groups."
    remaining = len(run.groups) - max_groups
    group_names = ", ".join(g.name for g in run.groups[:max_groups])
    return f"Its groups are {group_names}{f' and {remaining} more' if remaining > 0 else ''}."


MAX_NEIGHBOURS = 10  # neighbours in one answer
TripleKey = tuple[str, str]  # the id of a triple, and an arm
_MAX_QUERY_ROWS = 1_000  # rows read from the graph before those that do not count are left out


def add_neighbours(
    run: StoredRun, statements: SelectedStatements, retrieval: Retrieval
) -> Retrieval:
    """The same with its neighbours among the statements that count. Raises MissingExtra if a SQLite
    store cannot be queried in Cypher."""
    # A sentence may be stored as several triples: each leads to the one that stands for it.
    sentence_by_key: dict[TripleKey, TripleView] = {}
    for sentence_triple, same_sentence in merge_sentences(statements.triples):
        for triple in same_sentence:
            sentence_by_key[triple.id, triple.arm] = sentence_triple
    number_by_sentence = {
        (found.triple.id, found.triple.arm): number
        for number, found in enumerate(retrieval.statements, 1)
    }
    number_by_key = {
        key: number_by_sentence[sentence.id, sentence.arm]
        for key, sentence in sentence_by_key.items()
        if (sentence.id, sentence.arm) in number_by_sentence
    }
    if not number_by_key:
        return retrieval
    ids = sorted({id for id, _ in number_by_key})
    query = load_query("same_object")
    query_parameters = {
        "triples": ",".join(ids),
        "run": run.name,
        "min_acceptability": 0.0,
        "limit": _MAX_QUERY_ROWS,
    }
    rows = query.run(run.store, query_parameters).records()
    return replace(retrieval, neighbours=_select_neighbours(rows, number_by_key, sentence_by_key))


def _select_neighbours(
    rows: Sequence[dict[str, object]],
    number_by_key: Mapping[TripleKey, int],
    sentence_by_key: Mapping[TripleKey, TripleView],
) -> tuple[Neighbour, ...]:
    """The neighbours that count, in the order of the statements that they belong to."""
    neighbours: dict[tuple[int, str, str], Neighbour] = {}
    for row in rows:
        number = number_by_key.get((str(row["triple"]), str(row["arm"])))
        key = (str(row["neighbour"]), str(row["arm"]))
        if number is not None and key in sentence_by_key and key not in number_by_key:
            sentence = sentence_by_key[key]
            neighbours.setdefault((number, sentence.id, sentence.arm), Neighbour(number, sentence))
    return tuple(sorted(neighbours.values(), key=lambda n: n.statement_number)[:MAX_NEIGHBOURS])
