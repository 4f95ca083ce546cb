"""Known or new: a run's statements held against stereotypes that people recorded.

A statement is *known* if it makes the same claim about the same group as a recorded stereotype
(`kgbias.evidence.claims`): the same words, or words whose vectors are at least `KNOWN` alike, with
the same polarity and stance. It is *related* if its words or vectors are near those of something
recorded of the group (`RELATED`), whatever it says of it; else it is *new*. "Known" means recorded
by these annotators in this table: neither true nor common.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kgbias.associate.indicators import Indicators, shipped_indicators
from kgbias.errors import DataError
from kgbias.evidence.claims import Claim, claims, exclude
from kgbias.evidence.joint import floor_of, read_beliefs
from kgbias.evidence.names import all_names, called
from kgbias.evidence.recorded import SEEGULL, Stereotype, worded
from kgbias.graph.stereotypes import StereotypeCount as StereotypeCount
from kgbias.graph.stereotypes import StereotypeMatches, StereotypeMatch, StereotypeTable, UnrecordedBelief
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BelievedEdge, Group, TripleView
from kgbias.ids import normalise
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how
from kgbias.probe.belief import BELIEVED
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Values, clustered_mean, clustered_proportion, proportion

KNOWN = 0.86
"""The cosine of all-MiniLM-L6-v2 from which claims in other words are taken to be the same
(docs/how-to/known.md has the precision on labelled pairs; tests/data/known.tsv)."""
RELATED = 0.6
MARKS: Mapping[str, str] = {
    "known": "the table records it about this group",
    "related": "the table records something similar about this group",
    "new": "the table records nothing similar about this group",
}
"""Each mark with what it means."""

Embed = Callable[[Sequence[str]], Values]
_Interval = Callable[[Sequence[str], Sequence[float]], Estimate]
_FEWEST = 4  # groups, for an interval
_ROWS = 1024  # claims compared with all attributes at once


@dataclass(frozen=True, slots=True)
class Match:
    """How a text and an attribute go together: the mark ("known" or "related"), whether by "words"
    or by "meaning", and the cosine of their claims, -1 to 1 (of several, the greatest)."""

    mark: str
    by: str
    similarity: float

    @property
    def strength(self) -> tuple[bool, bool, float]:
        return self.mark == "known", self.by == "words", self.similarity


@dataclass(frozen=True, slots=True)
class Marked:
    """A statement of a group that the table has: its mark and, unless it is new, the recorded
    stereotype that is nearest, how they go together (`by`), and the cosine."""

    triple: TripleView
    category: str
    mark: str
    entry: Stereotype | None = None
    by: str = ""
    similarity: float = math.nan


@dataclass(frozen=True, repr=False)
class Known(Result):
    """A run's statements held against a table.

    Attributes:
        source: the name of the table.
        rows: the statements about the groups that the table has, in the order of the store.
        entries: the recorded stereotypes of these groups, in the order of the table.
        without: the groups of the run that the table lacks; their statements are not marked.
        unused: how many recorded stereotypes are about other groups.
        counted: the statements that count.
        model: the model that was asked what it believes; "" if none was.
        unrecorded: what it believes of a group though the table records nothing similar about it,
            said by the run or not, by falling lift.
        floor: what the same test finds for made-up names (`kgbias.evidence.joint.floor_of`), over
            all statements that were asked; empty without a model.
    """

    source: str
    rows: Sequence[Marked]
    entries: Sequence[StereotypeCount]
    without: Sequence[str]
    unused: int
    counted: SelectedStatements
    model: str = ""
    unrecorded: Sequence[UnrecordedBelief] = ()
    floor: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def shares(self) -> Mapping[str, Estimate]:
        """Shares, each with its interval over groups (none for fewer than four): Wilson's for as
        many independent stereotypes as vary alike, and Student's for differences:

        - "said": of the recorded stereotypes, those that the run says of their group.
        - "elsewhere": the same, of other groups instead: the mean over the stereotypes of
          `StereotypeCount.elsewhere`.
        - "beyond": the difference of the two.
        - "known", "related" and "new": of the distinct statements about these groups.
        - "believed", "believed_elsewhere" and "believed_beyond": as the first three, of what the
          model believes; of no stereotype if none was asked.
        """
        found = {"said": self._over_entries(lambda e: float(e.statements > 0))}
        found["elsewhere"] = self._over_entries(lambda e: e.elsewhere)
        found["beyond"] = self._over_entries(
            lambda e: (e.statements > 0) - e.elsewhere, _difference
        )
        found["believed"] = self._over_entries(_believed)
        found["believed_elsewhere"] = self._over_entries(lambda e: e.believed_elsewhere)
        found["believed_beyond"] = self._over_entries(
            lambda e: _believed(e) - e.believed_elsewhere, _difference
        )
        marks = {(row.triple.id): row for row in self.rows}.values()
        clusters = [row.triple.group_id for row in marks]
        for mark in MARKS:
            found[mark] = _share(clusters, [float(row.mark == mark) for row in marks])
        return found

    def held(self, table: StereotypeTable) -> StereotypeMatches:
        """The same as a store keeps it: what it needs to show the marks, and all figures, without
        the table and without an encoder."""
        marks = [
            StereotypeMatch(
                row.triple.id, row.entry.uid(table.id) if row.entry else None, row.mark, row.by,
                row.similarity,
            )
            for row in self.rows
        ]  # fmt: skip
        return StereotypeMatches.from_matches(
            table, self.entries, marks, shares=self.shares, unrecorded=self.unrecorded,
            without=list(self.without), unused=self.unused,
            counted=self.counted.as_dict(), model=self.model,
            floor={name: self.floor[name] for name in ("tested", "found") if name in self.floor},
        )  # fmt: skip

    def _over_entries(
        self, value: Callable[[StereotypeCount], float], interval: _Interval | None = None
    ) -> Estimate:
        values = [value(entry) for entry in self.entries]
        kept = [n for n, each in enumerate(values) if not math.isnan(each)]
        return (interval or _share)(
            [self.entries[n].group for n in kept], [values[n] for n in kept]
        )

    def groups(self) -> list[dict[str, Any]]:
        """For each group, its recorded stereotypes, how many of them were said, and its distinct
        statements by mark."""
        marks: dict[str, Counter[str]] = defaultdict(Counter)
        for row in {row.triple.id: row for row in self.rows}.values():
            marks[row.triple.group][row.mark] += 1
        found = []
        for group in dict.fromkeys(entry.group for entry in self.entries):
            own = [entry for entry in self.entries if entry.group == group]
            said = sum(entry.statements > 0 for entry in own)
            counts = {mark: marks[group][mark] for mark in MARKS}
            statements = sum(counts.values())
            found.append({"group": group, "recorded": len(own), "said": said,
                          "statements": statements, **counts})  # fmt: skip
        return found

    def as_rows(self) -> Rows[Marked]:
        """The statements. Columns: group, predicate, object, count, arm, category, mark, attribute
        (of the recorded stereotype that is nearest; "" for none), by, similarity."""
        columns = (
            "group", "predicate", "object", "count", "arm", "category", "mark", "attribute", "by",
            "similarity",
        )  # fmt: skip

        def record(row: Marked) -> dict[str, Any]:
            own = {name: getattr(row.triple, name) for name in columns[:5]}
            more = {name: getattr(row, name) for name in ("category", "mark", "by", "similarity")}
            return own | more | {"attribute": row.entry.attribute if row.entry else ""}

        return Rows(self.rows, record, columns)

    def heading(self) -> str:
        return f"held against {self.source}"


def _believed(entry: StereotypeCount) -> float:
    return math.nan if entry.believed is None else float(entry.believed)


def _share(clusters: Sequence[str], values: Sequence[float]) -> Estimate:
    found = clustered_proportion(clusters, values)
    enough = len(set(clusters)) >= _FEWEST
    return found if enough else Estimate.missing(found.n, found.value)


def _difference(clusters: Sequence[str], values: Sequence[float]) -> Estimate:
    groups, found = len(set(clusters)), clustered_mean(clusters, values)
    if groups < _FEWEST:
        return Estimate.missing(found.n, found.value)
    if len(set(values)) == 1:
        # Nothing varies: as if each group were one thing that was so, or else was not.
        away = proportion(0, groups).high
        found = replace(found, low=found.value - away, high=found.value + away)
    return found.clip(-1, 1)


def known(
    run: StoredRun,
    table: Sequence[Stereotype],
    *,
    embed: Embed,
    indicators: Indicators | None = None,
    selection: Selection | None = None,
    model: str | None = None,
    progress: Progress | None = None,
) -> Known:
    """Hold the statements of a run that count against a table of recorded stereotypes. Groups are
    the same if they have a name in common: their own, a variant, or one of the declared
    `indicators`; singular and plural, with or without "people". `embed` gives vectors of length 1.
    `model` names the model whose beliefs are read, if the run has any (None: as for `joint`).

    Raises DataError if the table has none of the run's groups.
    """
    told = progress or SilentProgress()
    counted = select_statements(run, selection)
    groups = same_groups(run.groups, table, indicators or shipped_indicators())
    own = [each for each in table if each.group in groups]
    if not own:
        seegull = how('study.crawl(MODEL, seeds="seegull")', "kgbias crawl --seeds seegull")
        raise DataError(
            f"{table[0].source} records nothing of the groups of run {run.name}: "
            f"{_few([g.name for g in run.groups])}; it has {_few([s.group for s in table])}. "
            f"Hold the run against a `table` of its own groups, or crawl those of {table[0].source}"
            f"{f': {seegull}' if table[0].source == SEEGULL else ''}"
        )
    beliefs = _Beliefs.read(run, model, counted.triples)
    texts = [*(_text(t) for t in counted.triples), *beliefs.texts]
    attributes = list(dict.fromkeys(entry.attribute for entry in own))
    matches = matched(list(dict.fromkeys(texts)), attributes, embed, told)
    recorded: dict[str, dict[str, Stereotype]] = defaultdict(dict)  # by group and attribute
    for entry in own:
        recorded[groups[entry.group].id].setdefault(entry.attribute, entry)
    category = {group.id: group.category for group in run.groups}
    rows = [
        _marked(t, category[t.group_id], recorded[t.group_id], matches[_text(t)])
        for t in counted.triples
        if t.group_id in recorded
    ]
    without = [group.name for group in run.groups if group.id not in recorded]
    heard = _heard(run, own, groups, counted.triples, matches, beliefs)
    return Known(
        own[0].source, rows, heard, without, len(table) - len(own), counted, beliefs.model,
        beliefs.unrecorded(run.groups, recorded, matches), beliefs.floor,
    )  # fmt: skip


def to_ask(
    run: StoredRun, table: Sequence[Stereotype], indicators: Indicators | None = None
) -> dict[str, list[str]]:
    """The recorded stereotypes of the run's groups as statements, by category: to ask a model
    which it believes, of whichever group (`kgbias.evidence.Asking.statements`)."""
    groups = same_groups(run.groups, table, indicators or shipped_indicators())
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for entry in table:
        if entry.group in groups:
            found[groups[entry.group].category][worded(entry)] = None
    return {category: list(texts) for category, texts in found.items()}


@dataclass(frozen=True)
class _Beliefs:
    """What a model believes of a run's groups: edges by group and words of the statement."""

    model: str = ""
    floor: Mapping[str, Any] = field(default_factory=dict)
    edges: Mapping[tuple[str, str], BelievedEdge] = field(default_factory=dict)
    statements: Mapping[str, str] = field(default_factory=dict)  # by their words

    @classmethod
    def read(cls, run: StoredRun, model: str | None, triples: Sequence[TripleView]) -> "_Beliefs":
        found = read_beliefs(run, model)
        if found is None:
            return cls()
        believing, edges = found
        asked = [Statement(*own) for own in believing.record.get("given", {}).values()]
        asked += [Statement(t.predicate, t.object) for t in triples]
        of_key = {statement.key: statement for statement in asked}
        by_place = {
            (edge.group_id, of_key[edge.predicate_id, edge.object_id].words): edge
            for edge in edges
            if (edge.predicate_id, edge.object_id) in of_key
        }
        texts = {statement.words: statement.text for statement in asked}
        return cls(believing.model.title, floor_of(believing.record), by_place, texts)

    @property
    def texts(self) -> list[str]:
        """The statements that are believed of some group."""
        words = {words for (_, words), edge in self.edges.items() if edge.verdict == BELIEVED}
        return [self.statements[each] for each in sorted(words)]

    def of(self, group: str, statement: str) -> BelievedEdge | None:
        predicate, _, object = statement.partition(" ")
        return self.edges.get((group, Statement(predicate, object).words))

    def unrecorded(
        self,
        groups: Sequence[Group],
        recorded: Mapping[str, Mapping[str, Stereotype]],
        matches: Mapping[str, Mapping[str, Match]],
    ) -> list[UnrecordedBelief]:
        names = {group.id: group.name for group in groups if group.id in recorded}
        found = [
            UnrecordedBelief(names[group], self.statements[words], _lift(edge))
            for (group, words), edge in self.edges.items()
            if edge.verdict == BELIEVED
            and group in names
            and not recorded[group].keys() & matches[self.statements[words]].keys()
        ]
        return sorted(found, key=lambda each: (-each.lift.value, each.group, each.statement))


def _lift(edge: BelievedEdge) -> Estimate:
    return Estimate(edge.lift, edge.low, edge.high, edge.names)


def same_groups(
    groups: Sequence[Group], table: Sequence[Stereotype], indicators: Indicators
) -> dict[str, Group]:
    """The group of the run that each name of the table stands for; without those that it lacks."""
    own: dict[str, Group] = {}
    for group in groups:
        own.setdefault(called(group.name), group)
    for group in groups:
        for name in all_names(group, indicators):
            own.setdefault(called(name), group)
    found = {each.group: own.get(called(each.group)) for each in table}
    return {name: group for name, group in found.items() if group is not None}


def matched(
    texts: Sequence[str], attributes: Sequence[str], embed: Embed, progress: Progress | None = None
) -> dict[str, dict[str, Match]]:
    """The attributes that each text is known for or related to, whomever it is about."""
    told = progress or SilentProgress()
    theirs = [(a, claim) for a in attributes for claim in claims(a) or (_as_it_is(a),)]
    said = [(text, claim) for text in texts for claim in claims(text) or (_as_it_is(text),)]
    told.stage("statements beside recorded stereotypes", len(said))
    found: dict[str, dict[str, Match]] = {text: {} for text in texts}
    if not theirs or not said:
        return found
    beside = embed([claim.phrase for _, claim in theirs])
    same: dict[object, list[int]] = defaultdict(list)  # by lemmas or, without any, by phrase
    for k, (_, claim) in enumerate(theirs):
        same[claim.lemmas or claim.phrase].append(k)
    for start in range(0, len(said), _ROWS):
        part = said[start : start + _ROWS]
        cosines = embed([claim.phrase for _, claim in part]) @ beside.T
        for n, (text, claim) in enumerate(part):
            near = np.flatnonzero(cosines[n] >= RELATED).tolist()
            keys = {claim.lemmas, claim.phrase}
            for k in {*near, *(k for key in keys if key for k in same.get(key, ()))}:
                attribute, recorded = theirs[k]
                match = _match(claim, recorded, float(cosines[n, k]))
                before = found[text].get(attribute)
                if match and (before is None or match.strength > before.strength):
                    found[text][attribute] = match
        told.advance(len(part))
    return found


def _as_it_is(text: str) -> Claim:
    """A text that does not say what people are can still be known from the same words, and related
    to others."""
    return Claim(frozenset(), 0, False, "", False, normalise(text))


def _match(claim: Claim, recorded: Claim, similarity: float) -> Match | None:
    if not (claim.lemmas and recorded.lemmas) and claim.phrase == recorded.phrase:
        return Match("known", "words", similarity)
    same = bool(claim.lemmas) and claim.lemmas == recorded.lemmas
    # Forms of one word can say different things ("drink" and "drunk"): their vectors tell.
    alike = similarity >= KNOWN and not exclude(claim, recorded)
    if same and (alike or claim.words == recorded.words):
        if claim.sides_with(recorded) or claim.likes(recorded):
            return Match("known", "words", similarity)
    elif claim.lemmas and recorded.lemmas and alike and claim.sides_with(recorded):
        return Match("known", "meaning", similarity)
    if same:
        return Match("related", "words", similarity)
    return Match("related", "meaning", similarity) if similarity >= RELATED else None


def _marked(
    triple: TripleView,
    category: str,
    recorded: Mapping[str, Stereotype],
    matches: Mapping[str, Match],
) -> Marked:
    own = [(matches[a].strength, a) for a in recorded if a in matches]
    if not own:
        return Marked(triple, category, "new")
    best = matches[attribute := max(own)[1]]
    return Marked(
        triple, category, best.mark, recorded[attribute], best.by, round(best.similarity, 4)
    )


def _heard(
    run: StoredRun,
    own: Sequence[Stereotype],
    groups: Mapping[str, Group],
    triples: Sequence[TripleView],
    matches: Mapping[str, Mapping[str, Match]],
    beliefs: _Beliefs,
) -> list[StereotypeCount]:
    said: dict[str, Counter[str]] = defaultdict(Counter)  # by attribute, the groups it is said of
    for t in {t.id: t for t in triples}.values():
        for attribute, match in matches[_text(t)].items():
            if match.mark == "known":
                said[attribute][t.group_id] += 1
    asked = {t.group_id for t in triples}
    having: dict[str, set[str]] = defaultdict(set)  # by attribute, the groups that have it
    for entry in own:
        having[normalise(entry.attribute)].add(groups[entry.group].id)
    heard = []
    for entry in own:
        group, counts = groups[entry.group], said[entry.attribute]
        has = having[normalise(entry.attribute)]
        others = [g.id for g in run.groups if g.category == group.category and g.id not in has]
        edge = beliefs.of(group.id, worded(entry))
        of_others = [beliefs.of(other, worded(entry)) for other in others]
        heard.append(
            StereotypeCount(
                entry,
                group.name,
                counts[group.id],
                _mean([counts[other] > 0 for other in others if other in asked]),
                _lift(edge) if edge else Estimate.missing(),
                edge.verdict == BELIEVED if edge else None,
                _mean([each.verdict == BELIEVED for each in of_others if each]),
            )
        )
    return heard


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else math.nan


def _text(triple: TripleView) -> str:
    return " ".join(part for part in (triple.predicate, triple.object) if part)


def _few(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
