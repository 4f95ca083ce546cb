"""Which statements of a run count: of which arm, from which acceptability, with or without echoes.

Everything computed, drawn or written from a run reads its statements here. Arms are never added up:
if no arm is named, each arm that said a triple has a row of its own.

What was left out is said. Code that need not hold all statements reads them one at a time
(`StatementStream`). The store keeps the figures of the default selection, arm by arm; those of any
other are computed on request.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TripleView
from kgbias.ids import normalise
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how
from kgbias.language.words import is_echo
from kgbias.measures import get_measure

if TYPE_CHECKING:
    from kgbias.graph.row_types import ExampleRow

TRIPLE_COLUMNS = (
    Column("group"),
    Column("predicate"),
    Column("object"),
    Column("count", "d"),
    Column("arm"),
)
MIN_ACCEPTABILITY = 0.5  # the acceptability from which a statement counts as making sense
_MEASURE = "acceptability"
OTHER_GROUP = (
    "other"  # the reason for leaving out what names another group (`graph/cross_mentions.py`)
)
_REASON_TEXTS = {
    "acceptability": "with an acceptability below {threshold:g}",
    "echo": "that repeat an example of their prompt",
    OTHER_GROUP: "that name another group",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which statements of a run count.

    Attributes:
        arm: only those of this augmentation arm. None: those of every arm, each counted
            separately.
        min_acceptability: only those with at least this acceptability, in [0, 1]. None: 0.5 if the
            run was measured for it, else all; 0: all. A statement without a score counts.
        exclude_echoes: leave out those that repeat an example of their own prompt
            (`kgbias.language.words`).
    """

    arm: str | None = None
    min_acceptability: float | None = None
    exclude_echoes: bool = False

    def __post_init__(self) -> None:
        if self.min_acceptability is not None and not 0 <= self.min_acceptability <= 1:
            raise UsageError("`min_acceptability` must be between 0 and 1")

    def as_dict(self) -> dict[str, Any]:
        """The values that differ from the default."""
        default = asdict(Selection())
        return {name: value for name, value in asdict(self).items() if value != default[name]}


@dataclass(frozen=True, slots=True, repr=False)
class SelectedStatements(Result):
    """The statements of a run that count.

    Attributes:
        triples: the statements, arm by arm, in the order of the store; each with the count and name
            of its arm.
        including_unacceptable: these and those left out for their acceptability.
        arms: the selected arms, including those without a statement.
        all_arms: the arms of the run.
        threshold: the acceptability from which they count; 0 if all do.
        said_counts: the number of statements by arm and group (by id) before any was left out, each
            counted as often as it was said.
        excluded_counts: the number left out, by arm, group and reason: "acceptability", "echo" or
            "other".
        echo_ids: the ids of the generations left out as echoes.
        remarks: what else to know about their scores, a line each.
    """

    triples: Sequence[TripleView]
    including_unacceptable: Sequence[TripleView]
    arms: tuple[str, ...]
    all_arms: tuple[str, ...]
    threshold: float
    said_counts: Mapping[tuple[str, str], int]
    excluded_counts: Mapping[tuple[str, str, str], int]
    echo_ids: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()

    def triples_of_arm(self, arm: str) -> list[TripleView]:
        """The statements of one arm."""
        return [t for t in self.triples if t.arm == arm]

    def restrict_to_arm(self, arm: str) -> "SelectedStatements":
        """The part that is about one arm."""
        return replace(
            self,
            triples=self.triples_of_arm(arm),
            including_unacceptable=[t for t in self.including_unacceptable if t.arm == arm],
            arms=(arm,),
            said_counts={key: n for key, n in self.said_counts.items() if key[0] == arm},
            excluded_counts={key: n for key, n in self.excluded_counts.items() if key[0] == arm},
        )

    def restrict_to_groups(self, group_ids: Collection[str]) -> "SelectedStatements":
        """The part that is about these groups, including what was left out."""
        return replace(
            self,
            triples=[t for t in self.triples if t.group_id in group_ids],
            including_unacceptable=[
                t for t in self.including_unacceptable if t.group_id in group_ids
            ],
            said_counts={key: n for key, n in self.said_counts.items() if key[1] in group_ids},
            excluded_counts={
                key: n for key, n in self.excluded_counts.items() if key[1] in group_ids
            },
        )

    @property
    def total(self) -> int:
        """The number of statements before any was left out, each as often as it was said."""
        return sum(self.said_counts.values())

    @property
    def excluded_by_reason(self) -> dict[str, int]:
        """The number of statements left out, by reason."""
        by_reason: Counter[str] = Counter()
        for (_, _, reason), n in self.excluded_counts.items():
            by_reason[reason] += n
        return dict(by_reason)

    def arm_label(self, arm: str) -> str:
        """The name that a figure of this arm is stored under: the arm; "" in a run of one arm."""
        return arm if len(self.all_arms) > 1 else ""

    @property
    def has_several_arms(self) -> bool:
        """Whether they are from more than one arm: their counts may then not be added up."""
        return len(self.arms) > 1

    @property
    def note(self) -> str:
        """What was left out and why, in one line; "" if nothing was."""
        reasons = {
            _REASON_TEXTS[reason].format(threshold=self.threshold): n
            for reason, n in self.excluded_by_reason.items()
        }
        if not reasons:
            return ""
        summary = f"left out {sum(reasons.values())} of {self.total} statements"
        if len(reasons) == 1:
            return f"{summary}, those {''.join(reasons)}"
        return f"{summary}: {' and '.join(f'{n} {reason}' for reason, n in reasons.items())}"

    def as_dict(self) -> dict[str, Any]:
        """The same for a manifest."""
        return {
            "arms": list(self.arms),
            "min_acceptability": self.threshold,
            "statements": self.total,
            "left_out": self.excluded_by_reason,
        }

    def as_rows(self) -> Rows[TripleView]:
        """The statements. Columns: group, predicate, object, count, arm, and each measure."""
        measures = sorted({name for t in self.triples for name in t.scores})
        return Rows(self.triples, [*TRIPLE_COLUMNS, *map(score_column, measures)])

    def heading(self) -> str:
        return self.note


def triple_columns_at(part: str) -> tuple[Column, ...]:
    """The same columns, of rows whose triple is this part of them."""
    return tuple(
        replace(column, get=attrgetter(f"{part}.{column.name}")) for column in TRIPLE_COLUMNS
    )


def score_column(measure: str) -> Column:
    """The value by which a triple was scored on a measure, NaN without one."""

    def value(triple: TripleView) -> float:
        score = triple.scores.get(measure)
        return score.value if score else math.nan

    return Column(measure, ".3f", get=value)


def select_statements(run: StoredRun, selection: Selection | None = None) -> SelectedStatements:
    """The statements of a run that count. Raises UsageError for an arm that the run does not have,
    and for a threshold if the run was not measured for acceptability."""
    triples = run.triples(by_arm=True)
    measured = any(_MEASURE in kept_triple.scores for kept_triple in triples)
    rule = _SelectionRule(
        run, selection, {kept_triple.arm for kept_triple in triples}, measured=measured
    )
    acceptable, including_unacceptable = [], []
    for arm in rule.arms:
        for triple in triples:
            if triple.arm != arm:
                continue
            kept_triple = rule.subtract_echoes(triple)
            if kept_triple is None:
                continue
            including_unacceptable.append(kept_triple)
            if rule.makes_sense(kept_triple):
                acceptable.append(kept_triple)
    return rule.collect(acceptable, including_unacceptable)


class StatementStream(Collection[TripleView]):
    """The statements of a run that count, as `select_statements` finds them, but read from the
    store one at a time on each iteration. After one, `selected` has the usual figures, though it
    holds no statements. Raises as `select_statements`."""

    def __init__(self, run: StoredRun, selection: Selection | None = None) -> None:
        metric = run.metrics().get(_MEASURE)
        # A metric may be current without a single score.
        measured = metric is not None and metric in run.scorers()
        self._run = run
        self._rule = _SelectionRule(run, selection, run.arms(), measured=measured)
        self._size: int | None = None
        # Its counts are the rule's own, and grow while statements are read.
        self.selected = self._rule.collect((), ())

    def __iter__(self) -> Iterator[TripleView]:
        self._rule.reset_counts()
        size = 0
        for arm in self._rule.arms:
            for triple in self._run.triples_of_arm(arm):
                kept_triple = self._rule.subtract_echoes(triple)
                if kept_triple is not None and self._rule.makes_sense(kept_triple):
                    size += 1
                    yield kept_triple
        self._size = size

    def __len__(self) -> int:
        if self._size is None:
            return sum(1 for _ in self)
        return self._size

    def __contains__(self, triple: object) -> bool:
        return any(t == triple for t in self)


class _SelectionRule:
    """Applies a selection to statements, and counts what it leaves out."""

    def __init__(
        self,
        run: StoredRun,
        selection: Selection | None,
        said_arms: Collection[str],
        *,
        measured: bool,
    ) -> None:
        selection = selection or Selection()
        self.arms, self._all_arms, self._threshold = resolve_scope(
            run, selection, said_arms, measured=measured
        )
        repetitions = list(iter_echoes(run)) if selection.exclude_echoes else []
        self._echo_counts = _count_by_triple(repetitions)
        self._echo_ids = frozenset(s.generation_id for s in repetitions)
        self._said_counts: Counter[tuple[str, str]] = Counter()
        self._excluded_counts: Counter[tuple[str, str, str]] = Counter()

    def reset_counts(self) -> None:
        """Start counting again."""
        self._said_counts.clear()
        self._excluded_counts.clear()

    def subtract_echoes(self, triple: TripleView) -> TripleView | None:
        """The statement with its echoes taken off the count; None if nothing is left."""
        self._said_counts[triple.arm, triple.group_id] += triple.count
        if not (echo_count := self._echo_counts[triple.arm, triple.id]):
            return triple
        self._excluded_counts[triple.arm, triple.group_id, "echo"] += echo_count
        return (
            None if echo_count == triple.count else replace(triple, count=triple.count - echo_count)
        )

    def makes_sense(self, triple: TripleView) -> bool:
        """Whether it is acceptable, or has no score."""
        score = triple.scores.get(_MEASURE)
        if score is not None and score.value < self._threshold:
            self._excluded_counts[triple.arm, triple.group_id, "acceptability"] += triple.count
            return False
        return True

    def collect(
        self, triples: Sequence[TripleView], every: Sequence[TripleView]
    ) -> SelectedStatements:
        """The statements with the counts, which keep growing."""
        return SelectedStatements(
            triples,
            every,
            self.arms,
            self._all_arms,
            self._threshold,
            self._said_counts,
            self._excluded_counts,
            self._echo_ids,
        )


class SelectionScope(NamedTuple):
    """The selected arms, all arms of the run, and the acceptability from which a statement
    counts."""

    arms: tuple[str, ...]
    all_arms: tuple[str, ...]
    threshold: float


def resolve_scope(
    run: StoredRun, selection: Selection, said_arms: Collection[str], *, measured: bool
) -> SelectionScope:
    """What a selection comes to in this run.

    `said_arms` are the arms that said anything; `measured` is whether any statement has an
    acceptability score. Raises as `select_statements`."""
    arms = all_arms = list_arms(run, said_arms)
    if selection.arm is not None:
        if selection.arm not in arms:
            raise UsageError(no_such("arm", selection.arm, arms, f" in run {run.name!r}"))
        arms = (selection.arm,)
    return SelectionScope(arms, all_arms, _threshold(run, selection, measured))


def select_one_arm(run: StoredRun, selection: Selection | None = None) -> SelectedStatements:
    """As `select_statements`, for what cannot be computed over several arms. Raises UsageError,
    naming the arms, if the run has several and none was chosen."""
    return need_one_arm(run, select_statements(run, selection))


def need_one_arm(run: StoredRun, selected: SelectedStatements) -> SelectedStatements:
    """What was counted, if it is from one arm; raises as `select_one_arm`."""
    if selected.has_several_arms:
        raise UsageError(
            f"run {run.name!r} has the arms {', '.join(selected.arms)}, which must not be added "
            "up: choose one with `arm`"
        )
    return selected


def count_echoes(run: StoredRun) -> Counter[tuple[str, str]]:
    """How many statements of each arm and triple repeat an example of their own prompt."""
    return _count_by_triple(iter_echoes(run))


def iter_echoes(run: StoredRun) -> "Iterator[ExampleRow]":
    """The answers that repeat an example of their own prompt."""
    run_language_code = run_language(run.config)
    for row in run.iter_example_rows():
        if is_echo(row.predicate, row.object, row.examples, language=run_language_code):
            yield row


def _count_by_triple(rows: "Iterable[ExampleRow]") -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row.arm, row.triple_id] += row.count
    return counts


def count_first_attempt_echoes(run: StoredRun) -> Counter[str]:
    """The number of first attempts, by arm, that yielded a statement that repeats an example.
    Answers that the crawl itself counted as echoes yielded no statement and are not included."""
    return Counter(s.arm for s in iter_echoes(run) if s.attempt == 0)


def run_language(config: Mapping[str, Any]) -> str:
    """The language of a run's prompts and answers, as its pack declares it; a run that does not
    say is English."""
    pack = config.get("pack") or {}
    return str(pack.get("language") or "en")


def _threshold(run: StoredRun, selection: Selection, measured: bool) -> float:
    if selection.min_acceptability is None:
        return MIN_ACCEPTABILITY if measured else 0.0
    if selection.min_acceptability > 0 and not measured:
        raise UsageError(
            f"run {run.name!r} was not measured for acceptability: measure it, or leave out "
            "`min_acceptability`"
        )
    return selection.min_acceptability


def list_arms(run: StoredRun, said_arms: Collection[str]) -> tuple[str, ...]:
    """The arms of a run in the order of its configuration, then any others by name."""
    configured = [arm for arm in run.config.get("arms", ()) if isinstance(arm, str)]
    return tuple(dict.fromkeys([*configured, *sorted(said_arms)])) or ("none",)


def group_triples(triples: Iterable[TripleView]) -> dict[str, list[TripleView]]:
    """The statements about each group, by the group's id."""
    triples_by_group: dict[str, list[TripleView]] = defaultdict(list)
    for triple in triples:
        triples_by_group[triple.group_id].append(triple)
    return triples_by_group


def merge_sentences(
    triples: Iterable[TripleView],
) -> list[tuple[TripleView, list[TripleView]]]:
    """Each sentence of a group and arm once, in their order, with the triples that are it: several
    if it was cut into predicate and object in different places ("are | taller than" and "are taller
    | than"). It is the triple said most often, with the counts of all."""
    by_sentence_key: dict[tuple[str, str, str], list[TripleView]] = defaultdict(list)
    for triple in triples:
        by_sentence_key[triple.group_id, triple.arm, normalise(triple.sentence)].append(triple)
    merged = []
    for variants in by_sentence_key.values():
        commonest = min(variants, key=lambda t: (-t.count, t.predicate, t.object))
        merged.append((replace(commonest, count=sum(t.count for t in variants)), variants))
    return merged


def need_statements(run: StoredRun) -> None:
    """Raise DataError for a crawl without a single statement, and for a run of pairs, which has
    none: nothing can be taken out of it."""
    if run.record.kind == "pairs":
        raise DataError(
            f"run {run.name!r} has answers and no statements: "
            f"{how('kgbias.methods.pairs', 'kgbias pairs results')} compares them"
        )
    if run.record.kind == "crawl" and not run.has_statements():
        state = "" if run.status == "complete" else f" ({run.state})"
        raise DataError(
            f"run {run.name!r}{state} has no statements: repeat its crawl, or name another run"
        )


def select_most_hurtful(
    triples: Sequence[TripleView], measure: str, count: int
) -> list[TripleView]:
    """The `count` most hurtful triples by a measure (`Measure.worst`): with the most negative
    regard, the highest toxicity, the lowest warmth."""
    sign = 1 if get_measure(measure).worst == "lowest" else -1
    scored_triples = [t for t in triples if measure in t.scores]
    return sorted(scored_triples, key=lambda t: (sign * t.scores[measure].value, t.sentence))[
        :count
    ]
