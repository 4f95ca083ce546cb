"""Which statements of a run count: of which arm, from which acceptability, with or without echoes.

Everything computed, drawn or written from a run reads its statements here. Arms are never added up:
if no arm is named, each arm that said a triple has a row of its own.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.said import Shown
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TripleView
from kgbias.ids import normalise
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how
from kgbias.language.words import is_echo

SENSE = 0.5  # the acceptability from which a statement counts as making sense
_MEASURE = "acceptability"
OTHER = "other"  # the reason for leaving out what names another group (`graph/between.py`)
_REASONS = {
    "acceptability": "with an acceptability below {threshold:g}",
    "echo": "that repeat an example of their prompt",
    OTHER: "that name another group",
}


class Leaving(TypedDict, total=False):
    """The parameters that leave out statements, whatever their arm."""

    min_acceptability: float | None
    without_echoes: bool


class Selecting(Leaving, total=False):
    """The parameters that say which statements count; `Selection` explains them."""

    arm: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which statements of a run count.

    Attributes:
        arm: only those of this augmentation arm. None: those of every arm, each counted
            separately.
        min_acceptability: only those with at least this acceptability, in [0, 1]. None: 0.5 if the
            run was measured for it, else all; 0: all. A statement without a score counts.
        without_echoes: leave out those that repeat an example of their own prompt
            (`kgbias.language.words`).
    """

    arm: str | None = None
    min_acceptability: float | None = None
    without_echoes: bool = False

    def __post_init__(self) -> None:
        if self.min_acceptability is not None and not 0 <= self.min_acceptability <= 1:
            raise UsageError("`min_acceptability` must be between 0 and 1")

    def as_dict(self) -> dict[str, Any]:
        """The values that differ from the default."""
        default = asdict(Selection())
        return {name: value for name, value in asdict(self).items() if value != default[name]}


@dataclass(frozen=True, slots=True, repr=False)
class Counted(Result):
    """The statements of a run that count.

    Attributes:
        triples: the statements, arm by arm, in the order of the store; each with the count and name
            of its arm.
        every: these and those left out for their acceptability.
        arms: the selected arms, including those without a statement.
        all_arms: the arms of the run.
        threshold: the acceptability from which they count; 0 if all do.
        said: the number of statements by arm and group (by id) before any was left out, each
            counted as often as it was said.
        out: the number left out, by arm, group and reason: "acceptability", "echo" or "other".
        echoed: the ids of the generations left out as echoes.
        remarks: what else to know about their scores, a line each.
    """

    triples: Sequence[TripleView]
    every: Sequence[TripleView]
    arms: tuple[str, ...]
    all_arms: tuple[str, ...]
    threshold: float
    said: Mapping[tuple[str, str], int]
    out: Mapping[tuple[str, str, str], int]
    echoed: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()

    def of(self, arm: str) -> list[TripleView]:
        """The statements of one arm."""
        return [t for t in self.triples if t.arm == arm]

    def in_arm(self, arm: str) -> "Counted":
        """The part that is about one arm."""
        return replace(
            self,
            triples=self.of(arm),
            every=[t for t in self.every if t.arm == arm],
            arms=(arm,),
            said={key: n for key, n in self.said.items() if key[0] == arm},
            out={key: n for key, n in self.out.items() if key[0] == arm},
        )

    def about(self, group_ids: Collection[str]) -> "Counted":
        """The part that is about these groups, including what was left out."""
        return replace(
            self,
            triples=[t for t in self.triples if t.group_id in group_ids],
            every=[t for t in self.every if t.group_id in group_ids],
            said={key: n for key, n in self.said.items() if key[1] in group_ids},
            out={key: n for key, n in self.out.items() if key[1] in group_ids},
        )

    @property
    def total(self) -> int:
        """The number of statements before any was left out, each as often as it was said."""
        return sum(self.said.values())

    @property
    def left_out(self) -> dict[str, int]:
        """The number of statements left out, by reason."""
        found: Counter[str] = Counter()
        for (_, _, reason), n in self.out.items():
            found[reason] += n
        return dict(found)

    def label(self, arm: str) -> str:
        """The name that a figure of this arm is stored under: the arm; "" in a run of one arm."""
        return arm if len(self.all_arms) > 1 else ""

    @property
    def several(self) -> bool:
        """Whether they are from more than one arm: their counts may then not be added up."""
        return len(self.arms) > 1

    @property
    def note(self) -> str:
        """What was left out and why, in one line; "" if nothing was."""
        reasons = {
            _REASONS[reason].format(threshold=self.threshold): n
            for reason, n in self.left_out.items()
        }
        if not reasons:
            return ""
        said = f"left out {sum(reasons.values())} of {self.total} statements"
        if len(reasons) == 1:
            return f"{said}, those {''.join(reasons)}"
        return f"{said}: {' and '.join(f'{n} {reason}' for reason, n in reasons.items())}"

    def as_dict(self) -> dict[str, Any]:
        """The same for a manifest."""
        return {
            "arms": list(self.arms),
            "min_acceptability": self.threshold,
            "statements": self.total,
            "left_out": self.left_out,
        }

    def as_rows(self) -> Rows[TripleView]:
        """The statements. Columns: group, predicate, object, count, arm, and each measure."""
        measures = sorted({name for t in self.triples for name in t.scores})

        def record(t: TripleView) -> dict[str, Any]:
            found = {name: t.scores[name].value for name in measures if name in t.scores}
            own = {"group": t.group, "predicate": t.predicate, "object": t.object}
            return (
                dict.fromkeys(measures, math.nan) | own | found | {"count": t.count, "arm": t.arm}
            )

        columns = ("group", "predicate", "object", "count", "arm", *measures)
        return Rows(self.triples, record, columns)

    def heading(self) -> str:
        return self.note


def select(run: StoredRun, selection: Selection | None = None) -> Counted:
    """The statements of a run that count. Raises UsageError for an arm that the run does not have,
    and for a threshold if the run was not measured for acceptability."""
    triples = run.triples(by_arm=True)
    measured = any(_MEASURE in t.scores for t in triples)
    rule = _Rule(run, selection, {t.arm for t in triples}, measured=measured)
    kept, every = [], []
    for said in (t for arm in rule.arms for t in triples if t.arm == arm):
        if (t := rule.without_echoes(said)) is not None:
            every.append(t)
            if rule.makes_sense(t):
                kept.append(t)
    return rule.counted(kept, every)


class Stream(Collection[TripleView]):
    """The statements of a run that count, as `select` finds them, but read from the store one at a
    time on each iteration. After one, `counted` has the usual figures, though it holds no
    statements. Raises as `select`."""

    def __init__(self, run: StoredRun, selection: Selection | None = None) -> None:
        metric = run.metrics().get(_MEASURE)
        measured = metric is not None and metric in run.scorers()
        self._run = run
        self._rule = _Rule(run, selection, run.arms(), measured=measured)
        self._size: int | None = None
        self.counted = self._rule.counted((), ())

    def __iter__(self) -> Iterator[TripleView]:
        self._rule.forget()
        size = 0
        for arm in self._rule.arms:
            for t in self._run.of_arm(arm):
                own = self._rule.without_echoes(t)
                if own is not None and self._rule.makes_sense(own):
                    size += 1
                    yield own
        self._size = size

    def __len__(self) -> int:
        if self._size is None:
            return sum(1 for _ in self)
        return self._size

    def __contains__(self, triple: object) -> bool:
        return any(t == triple for t in self)


class _Rule:
    """Applies a selection to statements, and counts what it leaves out."""

    def __init__(
        self, run: StoredRun, selection: Selection | None, said: Collection[str], *, measured: bool
    ) -> None:
        selection = selection or Selection()
        self.arms, self._all_arms, self._threshold = scope(run, selection, said, measured=measured)
        repetitions = list(repetitions_of(run)) if selection.without_echoes else []
        self._echoed = _by_triple(repetitions)
        self._echoes = frozenset(s.generation_id for s in repetitions)
        self._said: Counter[tuple[str, str]] = Counter()
        self._out: Counter[tuple[str, str, str]] = Counter()

    def forget(self) -> None:
        """Start counting again."""
        self._said.clear()
        self._out.clear()

    def without_echoes(self, t: TripleView) -> TripleView | None:
        """The statement with its echoes taken off the count; None if nothing is left."""
        self._said[t.arm, t.group_id] += t.count
        if not (repeated := self._echoed[t.arm, t.id]):
            return t
        self._out[t.arm, t.group_id, "echo"] += repeated
        return None if repeated == t.count else replace(t, count=t.count - repeated)

    def makes_sense(self, t: TripleView) -> bool:
        """Whether it is acceptable, or has no score."""
        score = t.scores.get(_MEASURE)
        if score is not None and score.value < self._threshold:
            self._out[t.arm, t.group_id, "acceptability"] += t.count
            return False
        return True

    def counted(self, triples: Sequence[TripleView], every: Sequence[TripleView]) -> Counted:
        """The statements with the counts, which keep growing."""
        return Counted(
            triples, every, self.arms, self._all_arms, self._threshold, self._said, self._out,
            self._echoes,
        )  # fmt: skip


def scope(
    run: StoredRun, selection: Selection, said: Collection[str], *, measured: bool
) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """The selected arms, all arms of the run, and the acceptability from which a statement counts.
    `said` are the arms that said anything; `measured` is whether any statement has an acceptability
    score. Raises as `select`."""
    arms = all_arms = arms_of(run, said)
    if selection.arm is not None:
        if selection.arm not in arms:
            raise UsageError(no_such("arm", selection.arm, arms, f" in run {run.name!r}"))
        arms = (selection.arm,)
    return arms, all_arms, _threshold(run, selection, measured)


def one_arm(run: StoredRun, selection: Selection | None = None) -> Counted:
    """As `select`, for what cannot be computed over several arms. Raises UsageError, naming the
    arms, if the run has several and none was chosen."""
    return of_one_arm(run, select(run, selection))


def of_one_arm(run: StoredRun, counted: Counted) -> Counted:
    """What was counted, if it is from one arm; raises as `one_arm`."""
    if counted.several:
        raise UsageError(
            f"run {run.name!r} has the arms {', '.join(counted.arms)}, which must not be added "
            "up: choose one with `arm`"
        )
    return counted


def echoes(run: StoredRun) -> Counter[tuple[str, str]]:
    """How many statements of each arm and triple repeat an example of their own prompt."""
    return _by_triple(repetitions_of(run))


def repetitions_of(run: StoredRun) -> Iterator[Shown]:
    """The answers that repeat an example of their own prompt."""
    spoken = language(run.config)
    for s in run.shown():
        if is_echo(s.predicate, s.object, s.examples, language=spoken):
            yield s


def _by_triple(shown: Iterable[Shown]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for s in shown:
        found[s.arm, s.triple_id] += s.count
    return found


def repeated_at_first(run: StoredRun) -> Counter[str]:
    """The number of first attempts, by arm, that yielded a statement that repeats an example.
    Answers that the crawl itself counted as echoes yielded no statement and are not included."""
    return Counter(s.arm for s in repetitions_of(run) if s.attempt == 0)


def language(config: Mapping[str, Any]) -> str:
    """The language of a run's prompts; a run that does not say is English."""
    return str(config.get("pack", {}).get("language", "en"))


def _threshold(run: StoredRun, selection: Selection, measured: bool) -> float:
    if selection.min_acceptability is None:
        return SENSE if measured else 0.0
    if selection.min_acceptability > 0 and not measured:
        raise UsageError(
            f"run {run.name!r} was not measured for acceptability: measure it, or leave out "
            "`min_acceptability`"
        )
    return selection.min_acceptability


def arms_of(run: StoredRun, said: Collection[str]) -> tuple[str, ...]:
    """The arms of a run in the order of its configuration, then any others by name."""
    configured = [arm for arm in run.config.get("arms", ()) if isinstance(arm, str)]
    return tuple(dict.fromkeys([*configured, *sorted(said)])) or ("none",)


def by_group(triples: Iterable[TripleView]) -> dict[str, list[TripleView]]:
    """The statements about each group, by the group's id."""
    found: dict[str, list[TripleView]] = defaultdict(list)
    for triple in triples:
        found[triple.group_id].append(triple)
    return found


def by_sentence(
    triples: Iterable[TripleView],
) -> list[tuple[TripleView, list[TripleView]]]:
    """Each sentence of a group and arm once, in their order, with the triples that are it: several
    if it was cut into predicate and object in different places ("are | taller than" and "are taller
    | than"). It is the triple said most often, with the counts of all."""
    same: dict[tuple[str, str, str], list[TripleView]] = defaultdict(list)
    for t in triples:
        same[t.group_id, t.arm, normalise(t.sentence)].append(t)
    return [
        (
            replace(
                min(own, key=lambda t: (-t.count, t.predicate, t.object)),
                count=sum(t.count for t in own),
            ),
            own,
        )
        for own in same.values()
    ]


def need_statements(run: StoredRun) -> None:
    """Raise DataError for a crawl without a single statement, and for a run of pairs, which has
    none: nothing can be taken out of it."""
    if run.record.kind == "pairs":
        raise DataError(
            f"run {run.name!r} has answers and no statements: "
            f"{how('run.pairs()', 'kgbias pairs results')} compares them"
        )
    if run.record.kind == "crawl" and not run.has_statements():
        state = "" if run.status == "complete" else f" ({run.state})"
        raise DataError(
            f"run {run.name!r}{state} has no statements: repeat its crawl, or name another run"
        )
