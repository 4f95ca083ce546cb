"""What to ask to find out what a model believes about groups: which names, with which carriers
before them, and which statements."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from random import Random
from typing import Annotated, Any, TypedDict

from kgbias.errors import DataError, KgbiasError, UsageError
from kgbias.evidence.indicators import NAME_MARKS, Indicators, shipped_indicators
from kgbias.evidence.names import (
    MIN_NAMES,
    NonceRoots,
    find_nonce_roots,
    group_names,
    nonce_names,
    placebo_names,
    root_as_written,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, GroupName, TripleView
from kgbias.ids import content_id
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.language.words import join_words
from kgbias.packs import find_run_pack
from kgbias.parameters import Parameter, check_parameters
from kgbias.probe.result import Statement
from kgbias.probe.run_probes import count_scored_texts

DEFAULT_PROBES = 45_000
MIN_CARRIERS = 3
"""With fewer, there are too many false findings (docs/methods/evidence.md)."""
FLOOR_SHARES = ("fifth", "full")
_STOCK_CARRIERS = ("I think that", "People say that")
_MIN_NONCE_NAMES = 12  # made-up names, for groups that are compared only with these
_HEADING_ENDINGS = (":", ".", "!", "?")

StatementKey = tuple[str, str]  # predicate id, object id


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """How beliefs are asked for. `statements` are asked about besides those of the run, by category
    ("" for every category); `seed` is of the choice of statements and of made-up names."""

    probes: Annotated[
        int,
        Parameter(
            "Maximum number of probes; a documented rule leaves statements out",
            metavar="N",
            at_least=1,
        ),
    ] = DEFAULT_PROBES
    carriers: Annotated[
        Sequence[str] | None,
        Parameter(
            f'The text before names, "" for nothing; give {MIN_CARRIERS} or more; a header ends in '
            "a colon",
            flag="carrier",
            metavar="TEXT",
            repeated=True,
            unset="nothing, the header of the crawl's own prompts, and one of ours",
        ),
    ] = None
    floor: Annotated[
        str,
        Parameter(
            "How many of the statements to probe with made-up names, a random fifth or all",
            choices=FLOOR_SHARES,
        ),
    ] = "fifth"
    placebo: Annotated[
        bool, Parameter("Also probe groups in real words about which little is believed")
    ] = False
    statements: Mapping[str, Sequence[str]] = field(default_factory=dict)
    marked: Annotated[
        Collection[str],
        Parameter(
            "Include names with this mark (repeatable)",
            choices=NAME_MARKS,
            repeated=True,
            unset="none",
        ),
    ] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.carriers is not None and len(set(self.carriers)) < MIN_CARRIERS:
            raise UsageError(
                f"`carriers` must be {MIN_CARRIERS} or more: one name differs too much"
            )


@dataclass(frozen=True)
class ProbePlan:
    """What is asked about the groups of a category.

    Attributes:
        groups: those that are compared with each other, with at least MIN_NAMES names; empty if
            fewer than two have that many.
        small_groups: the others; what is found for them is a belief about their names.
        names_by_group: those of every group, by its id.
        nonce_names: made-up names: one for each name of `groups`, of the same form; and for each of
            the `small_groups` groups.
        statements: the statements that the names are probed with.
        floor_indices: the places of the statements that nonce names are probed with.
        given_ids: the ids of the statements that were asked for besides the run's own.
        unprobed_count: how many statements of the run are not asked about.
        placebo_names: names of groups in real words, by group.
    """

    category: str
    groups: tuple[Group, ...]
    small_groups: tuple[Group, ...]
    names_by_group: Mapping[str, tuple[GroupName, ...]]
    nonce_names: tuple[GroupName, ...]
    statements: tuple[Statement, ...]
    floor_indices: tuple[int, ...]
    given_ids: frozenset[str]
    unprobed_count: int
    placebo_names: Mapping[str, tuple[GroupName, ...]] = field(default_factory=dict)

    @property
    def tested_names(self) -> tuple[GroupName, ...]:
        """The names of `groups`, in their order."""
        return tuple(name for group in self.groups for name in self.names_by_group[group.id])

    def without_nonce(self) -> "ProbePlan":
        """The same without made-up names, and without groups of few names."""
        names = {group.id: self.names_by_group[group.id] for group in self.groups}
        return replace(
            self,
            small_groups=(),
            names_by_group=names,
            nonce_names=(),
            floor_indices=(),
            placebo_names={},
        )

    @property
    def reference_names(self) -> tuple[GroupName, ...]:
        """The names that the `small_groups` are compared with."""
        return self.nonce_names[len(self.tested_names) :]

    @property
    def blocks(self) -> list[tuple[tuple[GroupName, ...], tuple[Statement, ...]]]:
        """Names, each with the statements that they are probed with."""
        all_names = tuple(name for own in self.names_by_group.values() for name in own)
        floor_statements = tuple(self.statements[n] for n in self.floor_indices)
        placebo = tuple(name for own in self.placebo_names.values() for name in own)
        return [
            (all_names, self.statements),
            (self.nonce_names, floor_statements),
            (placebo, self.statements),
        ]

    @cached_property
    def naming_ids(self) -> frozenset[str]:
        """The ids of statements that name a group of the category."""
        words = {
            word.casefold()
            for own in self.names_by_group.values()
            for name in own
            for word in (root_as_written(name), name.root)
            if word
        }
        if not words:
            return frozenset()
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})(?:s|es|n|ns)?\b")
        return frozenset(s.id for s in self.statements if pattern.search(s.text.casefold()))


def default_carriers(run: StoredRun, count: int = MIN_CARRIERS) -> tuple[str, ...]:
    """An empty carrier, the header of the run's own prompts, and one of ours in their language; if
    more are wanted, others of both kinds."""
    pack = find_run_pack(run.record.config)
    headers: Sequence[str] = ()
    if pack is not None:
        # Packs of other methods have no such template.
        with suppress(KgbiasError):
            headers = pack.template("initialise").wordings
    own = pack.words.carriers if pack else ()
    is_english = (run.record.config.get("pack") or {}).get("language", "en") == "en"
    stock = own or (_STOCK_CARRIERS if is_english else ())
    candidates = ["", *headers[:1], *stock, *headers[1:], *_STOCK_CARRIERS]
    return tuple(dict.fromkeys(candidates))[:count]


def build_stem(carrier: str, name: GroupName) -> str:
    """The text before a statement: a header with the name on a line of its own, or a beginning that
    the name continues."""
    if carrier and not carrier.rstrip().endswith(_HEADING_ENDINGS):
        return join_words(carrier, name.text)
    sentence = name.text[:1].upper() + name.text[1:]
    return f"{carrier}\n\n{sentence}" if carrier else sentence


def plan_probes(
    run: StoredRun,
    indicators: Indicators,
    asking: ProbeSettings,
    triples: Sequence[TripleView],
) -> list[ProbePlan]:
    """What is asked in each category of a run, from the statements `triples`: first those that are
    given; then those said more than once, most often first; then others drawn evenly over the
    groups that they were said about; as many in each category as the probes suffice for. Statements
    with the same words are asked once.

    Raises DataError if there is nothing to ask.
    """
    carriers = len(asking.carriers or ()) or MIN_CARRIERS
    drafts = []
    for category in dict.fromkeys(group.category for group in run.groups):
        category_groups = [group for group in run.groups if group.category == category]
        crawled: dict[str, Statement] = {}  # by words, in the cut that comes first
        for statement in _order_statements(category_groups, triples, asking.seed):
            crawled.setdefault(statement.words, statement)
        texts = (*asking.statements.get("", ()), *asking.statements.get(category, ()))
        requested = {s.words: crawled.get(s.words, s) for s in map(_parse_statement, texts)}
        if statements := requested | crawled:
            drafts.append(
                _draft_plan(
                    category,
                    category_groups,
                    requested.values(),
                    statements.values(),
                    indicators,
                    asking,
                    find_nonce_roots(run),
                )
            )
    if not drafts:
        raise DataError(f"run {run.name} has no statements to probe")
    return _fit_budget(drafts, carriers, asking)


def estimate_max_probes(groups: Sequence[Group], per_group: int, asking: ProbeSettings) -> int:
    """The largest number of probes that can follow from a crawl of these groups in which each has
    `per_group` statements, if no two of them are the same: of names and of the groups themselves,
    each also without a statement."""
    carriers, declared = len(asking.carriers or ()) or MIN_CARRIERS, shipped_indicators()
    drafts, group_texts = [], 0
    for category in dict.fromkeys(group.category for group in groups):
        category_groups = [group for group in groups if group.category == category]
        requested = (*asking.statements.get("", ()), *asking.statements.get(category, ()))
        statements = [
            Statement("", str(n)) for n in range(per_group * len(category_groups) + len(requested))
        ]
        drafts.append(
            _draft_plan(
                category,
                category_groups,
                statements[: len(requested)],
                statements,
                declared,
                asking,
            )
        )
        group_texts += count_scored_texts(len(category_groups), per_group * len(category_groups))
    plans = _fit_budget(drafts, carriers, asking)
    name_texts = sum(count_texts(plan, carriers) - count_probes(plan, carriers) for plan in plans)
    is_cut = any(plan.unprobed_count for plan in plans)
    name_probes = asking.probes if is_cut else sum(count_probes(plan, carriers) for plan in plans)
    return name_probes + name_texts + group_texts


def _fit_budget(
    drafts: Sequence[ProbePlan], carriers: int, asking: ProbeSettings
) -> list[ProbePlan]:
    """The drafts, each with as many statements as the probes suffice for."""
    high = max(len(draft.statements) for draft in drafts)
    low = 1
    while low < high:
        # More statements cost more, so the most that the probes suffice for is found by halving.
        middle = (low + high + 1) // 2
        cost = sum(count_probes(_cut_plan(draft, middle, asking), carriers) for draft in drafts)
        low, high = (middle, high) if cost <= asking.probes else (low, middle - 1)
    return [_cut_plan(draft, low, asking) for draft in drafts]


def count_probes(plan: ProbePlan, carriers: int) -> int:
    """The number of probes in a plan."""
    return carriers * sum(len(names) * len(statements) for names, statements in plan.blocks)


def count_texts(plan: ProbePlan, carriers: int) -> int:
    """The number of texts that a model scores for a plan: its probes, and each name by itself."""
    alone = sum(len(names) for names, statements in plan.blocks if statements)
    return count_probes(plan, carriers) + carriers * alone


def _draft_plan(
    category: str,
    groups: Sequence[Group],
    given_statements: Collection[Statement],
    statements: Collection[Statement],
    indicators: Indicators,
    asking: ProbeSettings,
    roots: NonceRoots | None = None,
) -> ProbePlan:
    """Everything that could be asked in a category."""
    names = {g.id: group_names(g, indicators, allowed_marks=asking.marked) for g in groups}
    main_groups = tuple(g for g in groups if len(names[g.id]) >= MIN_NAMES)
    main_groups = main_groups if len(main_groups) > 1 else ()
    small_groups = tuple(g for g in groups if g not in main_groups)
    main_names = [name for group in main_groups for name in names[group.id]]
    small_names = [name for group in small_groups for name in names[group.id]]
    repeats = -(-_MIN_NONCE_NAMES // len(small_names)) if small_names else 0
    made_up = nonce_names([*main_names, *small_names * repeats], asking.seed, roots)
    placebo_sets = placebo_names() if asking.placebo else {}
    return ProbePlan(
        category,
        main_groups,
        small_groups,
        names,
        made_up,
        tuple(statements),
        (),
        frozenset(s.id for s in given_statements),
        0,
        placebo_sets,
    )


def _cut_plan(draft: ProbePlan, count: int, asking: ProbeSettings) -> ProbePlan:
    """A draft with `count` statements; those that were given stay."""
    count = max(count, len(draft.given_ids))
    statements = draft.statements[:count]
    full = asking.floor == "full" or not draft.groups
    floor_count = len(statements) if full else -(-len(statements) // 5)
    # By a hash: which statements are drawn depends on what they say, not on their place, and most
    # stay the same with more probes.
    order = sorted(
        range(len(statements)), key=lambda n: content_id(str(asking.seed), statements[n].id)
    )
    return ProbePlan(
        draft.category,
        draft.groups,
        draft.small_groups,
        draft.names_by_group,
        draft.nonce_names,
        statements,
        tuple(sorted(order[:floor_count])),
        draft.given_ids,
        len(draft.statements) - len(statements),
        draft.placebo_names,
    )


def _order_statements(
    groups: Sequence[Group], triples: Sequence[TripleView], seed: int
) -> list[Statement]:
    """The statements of a category in the order in which they are asked."""
    by_group: dict[str, list[Statement]] = {group.id: [] for group in groups}
    counts: Counter[Statement] = Counter()
    by_key: dict[StatementKey, Statement] = {}
    for triple in triples:
        if triple.group_id not in by_group:
            continue
        statement = by_key.setdefault(
            Statement(triple.predicate, triple.object).key,
            Statement(triple.predicate, triple.object),
        )
        if statement.text.strip():
            counts[statement] += triple.count
            by_group[triple.group_id].append(statement)
    repeated = sorted((s for s in counts if counts[s] > 1), key=lambda s: (-counts[s], s.id))
    single_by_group = []
    for group in groups:
        single = sorted(
            (s for s in dict.fromkeys(by_group[group.id]) if counts[s] == 1), key=lambda s: s.id
        )
        # A stream for each group: another group in the crawl does not change this one's order.
        Random(f"{seed} {group.id}").shuffle(single)
        single_by_group.append(single)
    rounds = max(map(len, single_by_group), default=0)
    interleaved = [
        single[turn] for turn in range(rounds) for single in single_by_group if turn < len(single)
    ]
    return [*repeated, *interleaved]


def _parse_statement(text: str) -> Statement:
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


@dataclass(frozen=True, slots=True, repr=False)
class EvidencePrice(Result):
    """What `Run.evidence` with a model would ask, if the store held nothing of it yet.

    Attributes:
        probes: the number of probes.
        texts: how many texts are scored for them, names by themselves included.
        carriers: the text before names.
        categories: by category the statements, the names of each group, and the groups with too few
            of them.
        texts_of_groups: how many texts are scored for probes of the groups' own names.
        embedded: how many statements are embedded, of a model with vectors.
    """

    probes: int
    texts: int
    carriers: list[str]
    categories: list[CategoryPrice]
    texts_of_groups: int
    embedded: int

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The categories; columns: those of `CategoryPrice`, where `names` is their number."""
        rows = []
        for category in self.categories:
            names = sum(map(len, category["names"].values()))
            too_few = ", ".join(category["too_few_names"])
            rows.append({**category, "names": names, "too_few_names": too_few})
        return Rows(rows, tuple(CategoryPrice.__annotations__))

    def heading(self) -> str:
        return (
            f"{pluralise(self.probes, 'probe', spec=',')}; "
            f"{pluralise(self.texts + self.texts_of_groups, 'text', spec=',')} to score"
        )

    def as_dict(self) -> dict[str, Any]:
        """The price as plain data for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def price_plans(plans: Sequence[ProbePlan], carriers: Sequence[str]) -> ProbesPrice:
    """The cost of asking, and the groups about which nothing can be said: the probes, and all texts
    that are scored for them (`count_texts`)."""
    return {
        "probes": sum(count_probes(plan, len(carriers)) for plan in plans),
        "texts": sum(count_texts(plan, len(carriers)) for plan in plans),
        "carriers": list(carriers),
        "categories": [_price_category(plan) for plan in plans],
    }


def _price_category(plan: ProbePlan) -> CategoryPrice:
    """What is asked about a category."""
    names = {}
    for group in (*plan.groups, *plan.small_groups):
        names[group.name] = [name.text for name in plan.names_by_group[group.id]]
    return {
        "category": plan.category,
        "statements": len(plan.statements),
        "not_probed": plan.unprobed_count,
        "floor_statements": len(plan.floor_indices),
        "nonce_names": len(plan.nonce_names),
        "names": names,
        "too_few_names": [group.name for group in plan.small_groups],
    }
