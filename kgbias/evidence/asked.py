"""What to ask to find out what a model believes about groups: which names, with which carriers
before them, and which statements."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import TypedDict

from kgbias.associate.indicators import Indicators, shipped_indicators
from kgbias.errors import DataError, KgbiasError, UsageError
from kgbias.evidence.names import FEWEST, group_names, nonce_names, placebo_names, surface
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, GroupName, TripleView
from kgbias.ids import content_id
from kgbias.packs import load_pack
from kgbias.probe.graph import texts_of_groups
from kgbias.probe.result import Statement

PROBES = 45_000
CARRIERS = 3
"""With fewer, there are too many false findings (docs/methods/evidence.md)."""
FLOORS = ("fifth", "full")
_OURS: Mapping[str, tuple[str, ...]] = {
    "en": ("I think that", "People say that"),
    "de": ("Manche sagen:", "So ist das:"),
}
_FEWEST_NONCE = 12  # made-up names, for groups that are compared only with these
_HEADING = (":", ".", "!", "?")

Key = tuple[str, str]  # predicate id, object id


@dataclass(frozen=True, slots=True)
class Asking:
    """How beliefs are asked for.

    Attributes:
        probes: the largest number of probes.
        carriers: what stands before names, with one probe for each; "" is nothing. None: three
            (`default_carriers`).
        floor: whether made-up names are probed with a random "fifth" of the statements, or with
            all ("full").
        placebo: whether to probe groups in real words about which little should be believed.
        statements: statements besides those of the run, by category ("" for every category).
        marked: names with these marks take part ("narrower", "self-description", "slur").
        seed: of the choice of statements and of made-up names.
    """

    probes: int = PROBES
    carriers: Sequence[str] | None = None
    floor: str = "fifth"
    placebo: bool = False
    statements: Mapping[str, Sequence[str]] = field(default_factory=dict)
    marked: Collection[str] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.floor not in FLOORS:
            raise UsageError(f"`floor` must be {' or '.join(FLOORS)}")
        if self.probes < 1:
            raise UsageError("`probes` must be at least 1")
        if self.carriers is not None and len(set(self.carriers)) < CARRIERS:
            raise UsageError(f"`carriers` must be {CARRIERS} or more: one name differs too much")


@dataclass(frozen=True)
class Asked:
    """What is asked about the groups of a category.

    Attributes:
        groups: those that are compared with each other, with at least FEWEST names; empty if fewer
            than two have that many.
        few: the others; what is found for them is a belief about their names.
        names: those of every group, by its id.
        nonce: made-up names: one for each name of `groups`, of the same form; and for each of
            the `few` groups.
        statements: the statements that the names are probed with.
        floor: the places of the statements that nonce names are probed with.
        given: the ids of the statements that were asked for besides the run's own.
        left: how many statements of the run are not asked about.
        placebo: names of groups in real words, by group.
    """

    category: str
    groups: tuple[Group, ...]
    few: tuple[Group, ...]
    names: Mapping[str, tuple[GroupName, ...]]
    nonce: tuple[GroupName, ...]
    statements: tuple[Statement, ...]
    floor: tuple[int, ...]
    given: frozenset[str]
    left: int
    placebo: Mapping[str, tuple[GroupName, ...]] = field(default_factory=dict)

    @property
    def tested(self) -> tuple[GroupName, ...]:
        """The names of `groups`, in their order."""
        return tuple(name for group in self.groups for name in self.names[group.id])

    def without_nonce(self) -> "Asked":
        """The same without made-up names, and without groups of few names."""
        names = {group.id: self.names[group.id] for group in self.groups}
        return replace(self, few=(), names=names, nonce=(), floor=(), placebo={})

    @property
    def against(self) -> tuple[GroupName, ...]:
        """The names that the `few` are compared with."""
        return self.nonce[len(self.tested) :]

    @property
    def blocks(self) -> list[tuple[tuple[GroupName, ...], tuple[Statement, ...]]]:
        """Names, each with the statements that they are probed with."""
        every = tuple(name for own in self.names.values() for name in own)
        some = tuple(self.statements[n] for n in self.floor)
        placebo = tuple(name for own in self.placebo.values() for name in own)
        return [(every, self.statements), (self.nonce, some), (placebo, self.statements)]

    @cached_property
    def naming(self) -> frozenset[str]:
        """The ids of statements that name a group of the category."""
        words = {
            word.casefold()
            for own in self.names.values()
            for name in own
            for word in (surface(name), name.root)
            if word
        }
        if not words:
            return frozenset()
        found = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})(?:s|es|n|ns)?\b")
        return frozenset(s.id for s in self.statements if found.search(s.text.casefold()))


def default_carriers(run: StoredRun, count: int = CARRIERS) -> tuple[str, ...]:
    """An empty carrier, the header of the run's own prompts, and one of ours in their language; if
    more are wanted, others of both kinds."""
    pack = run.record.config.get("pack") or {}
    headers: Sequence[str] = ()
    with suppress(KeyError, KgbiasError):  # an import, or a folder that is gone
        headers = load_pack(pack["name"]).template("initialise").wordings
    ours = _OURS.get(str(pack.get("language", "en")), ())
    mixed = ["", *headers[:1], *ours, *headers[1:], *_OURS["en"]]
    return tuple(dict.fromkeys(mixed))[:count]


def stem(carrier: str, name: GroupName) -> str:
    """The text before a statement: a header with the name on a line of its own, or a beginning that
    the name continues."""
    if carrier and not carrier.rstrip().endswith(_HEADING):
        return f"{carrier} {name.text}"
    text = name.text[:1].upper() + name.text[1:]
    return f"{carrier}\n\n{text}" if carrier else text


def asked(
    run: StoredRun,
    indicators: Indicators,
    asking: Asking,
    triples: Sequence[TripleView],
) -> list[Asked]:
    """What is asked in each category of a run, from the statements `triples`: first those that are
    given; then those said more than once, most often first; then others drawn evenly over the
    groups that they were said about; as many in each category as the probes suffice for. Statements
    with the same words are asked once.

    Raises DataError if there is nothing to ask.
    """
    carriers = len(asking.carriers or ()) or CARRIERS
    drafts = []
    for category in dict.fromkeys(group.category for group in run.groups):
        own = [group for group in run.groups if group.category == category]
        said: dict[str, Statement] = {}  # by words, in the cut that comes first
        for statement in _ordered(own, triples, asking.seed):
            said.setdefault(statement.words, statement)
        texts = (*asking.statements.get("", ()), *asking.statements.get(category, ()))
        given = {s.words: said.get(s.words, s) for s in map(_statement, texts)}
        if every := given | said:
            drafts.append(_draft(category, own, given.values(), every.values(), indicators, asking))
    if not drafts:
        raise DataError(f"run {run.name} has no statements to probe")
    return _fitted(drafts, carriers, asking)


def most_probes(groups: Sequence[Group], said: int, asking: Asking) -> int:
    """The largest number of probes that can follow from a crawl of these groups in which each has
    `said` statements, if no two of them are the same: of names and of the groups themselves, each
    also without a statement."""
    carriers, declared = len(asking.carriers or ()) or CARRIERS, shipped_indicators()
    drafts, of_groups = [], 0
    for category in dict.fromkeys(group.category for group in groups):
        own = [group for group in groups if group.category == category]
        given = (*asking.statements.get("", ()), *asking.statements.get(category, ()))
        any_ = [Statement("", str(n)) for n in range(said * len(own) + len(given))]
        drafts.append(_draft(category, own, any_[: len(given)], any_, declared, asking))
        of_groups += texts_of_groups(len(own), said * len(own))
    plans = _fitted(drafts, carriers, asking)
    alone = sum(texts(plan, carriers) - probes(plan, carriers) for plan in plans)
    some = any(plan.left for plan in plans)
    of_names = asking.probes if some else sum(probes(plan, carriers) for plan in plans)
    return of_names + alone + of_groups


def _fitted(drafts: Sequence[Asked], carriers: int, asking: Asking) -> list[Asked]:
    """The drafts, each with as many statements as the probes suffice for."""
    most = max(len(draft.statements) for draft in drafts)
    low = 1
    while low < most:
        middle = (low + most + 1) // 2
        cost = sum(probes(_cut(draft, middle, asking), carriers) for draft in drafts)
        low, most = (middle, most) if cost <= asking.probes else (low, middle - 1)
    return [_cut(draft, low, asking) for draft in drafts]


def probes(plan: Asked, carriers: int) -> int:
    """The number of probes in a plan."""
    return carriers * sum(len(names) * len(statements) for names, statements in plan.blocks)


def texts(plan: Asked, carriers: int) -> int:
    """The number of texts that a model scores for a plan: its probes, and each name by itself."""
    alone = sum(len(names) for names, statements in plan.blocks if statements)
    return probes(plan, carriers) + carriers * alone


def _draft(
    category: str,
    groups: Sequence[Group],
    given: Collection[Statement],
    statements: Collection[Statement],
    indicators: Indicators,
    asking: Asking,
) -> Asked:
    """Everything that could be asked in a category."""
    names = {g.id: group_names(g, indicators, marked=asking.marked) for g in groups}
    large = tuple(g for g in groups if len(names[g.id]) >= FEWEST)
    large = large if len(large) > 1 else ()
    few = tuple(g for g in groups if g not in large)
    models = [name for group in large for name in names[group.id]]
    rest = [name for group in few for name in names[group.id]]
    times = -(-_FEWEST_NONCE // len(rest)) if rest else 0
    nonce = nonce_names([*models, *rest * times], asking.seed)
    placebo = placebo_names() if asking.placebo else {}
    return Asked(
        category, large, few, names, nonce, tuple(statements), (),
        frozenset(s.id for s in given), 0, placebo,
    )  # fmt: skip


def _cut(draft: Asked, count: int, asking: Asking) -> Asked:
    """A draft with `count` statements; those that were given stay."""
    count = max(count, len(draft.given))
    kept = draft.statements[:count]
    full = asking.floor == "full" or not draft.groups
    wanted = len(kept) if full else -(-len(kept) // 5)
    order = sorted(range(len(kept)), key=lambda n: content_id(str(asking.seed), kept[n].id))
    return Asked(
        draft.category, draft.groups, draft.few, draft.names, draft.nonce, kept,
        tuple(sorted(order[:wanted])), draft.given, len(draft.statements) - len(kept),
        draft.placebo,
    )  # fmt: skip


def _ordered(groups: Sequence[Group], triples: Sequence[TripleView], seed: int) -> list[Statement]:
    """The statements of a category in the order in which they are asked."""
    ids = {group.id: [] for group in groups}  # type: dict[str, list[Statement]]
    times: Counter[Statement] = Counter()
    first: dict[Key, Statement] = {}
    for t in triples:
        if t.group_id not in ids:
            continue
        statement = first.setdefault(
            Statement(t.predicate, t.object).key, Statement(t.predicate, t.object)
        )
        if statement.text.strip():
            times[statement] += t.count
            ids[t.group_id].append(statement)
    often = sorted((s for s in times if times[s] > 1), key=lambda s: (-times[s], s.id))
    rest = []
    for group in groups:
        own = sorted((s for s in dict.fromkeys(ids[group.id]) if times[s] == 1), key=lambda s: s.id)
        Random(f"{seed} {group.id}").shuffle(own)
        rest.append(own)
    turns = max(map(len, rest), default=0)
    evenly = [own[turn] for turn in range(turns) for own in rest if turn < len(own)]
    return [*often, *evenly]


def _statement(text: str) -> Statement:
    """A statement from a file: its first word is the predicate."""
    predicate, _, object = " ".join(text.split()).partition(" ")
    return Statement(predicate, object)


class CategoryPrice(TypedDict):
    """What would be asked about the groups of one category."""

    category: str
    statements: int
    not_probed: int
    floor_statements: int
    nonce_names: int
    names: dict[str, list[str]]
    too_few_names: list[str]


class ProbesPrice(TypedDict):
    """How much probing by names would ask."""

    probes: int
    texts: int
    carriers: list[str]
    categories: list[CategoryPrice]


class EvidencePrice(ProbesPrice):
    """The same, with what is scored and embedded beside; see `Run.evidence_price`."""

    texts_of_groups: int
    embedded: int


def price(plans: Sequence[Asked], carriers: Sequence[str]) -> ProbesPrice:
    """The cost of asking, and the groups about which nothing can be said: the probes, and all texts
    that are scored for them (`texts`)."""
    return {
        "probes": sum(probes(plan, len(carriers)) for plan in plans),
        "texts": sum(texts(plan, len(carriers)) for plan in plans),
        "carriers": list(carriers),
        "categories": [
            {
                "category": plan.category,
                "statements": len(plan.statements),
                "not_probed": plan.left,
                "floor_statements": len(plan.floor),
                "nonce_names": len(plan.nonce),
                "names": {
                    g.name: [name.text for name in plan.names[g.id]]
                    for g in (*plan.groups, *plan.few)
                },
                "too_few_names": [g.name for g in plan.few],
            }
            for plan in plans
        ],
    }
