"""Which statements of a run count: of which arm, from which acceptability, with echoes or without.

Everything that is computed, drawn or written of a run reads its statements here. Arms are never
added up: where no arm is named, each arm that said a triple has a row of its own.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict

from kgbias.errors import UsageError
from kgbias.graph.said import Shown
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TripleView
from kgbias.language.words import repeats

SENSE = 0.5  # the acceptability from which a statement counts as one that makes sense
_MEASURE = "acceptability"
OTHER = "other"  # the reason of what is left out for naming another group (`graph/between.py`)
_REASONS = {
    "acceptability": "with an acceptability below {threshold:g}",
    "echo": "that repeat an example of their prompt",
    OTHER: "that name another group",
}


class Leaving(TypedDict, total=False):
    """The parameters that leave statements out, whatever their arm."""

    min_acceptability: float | None
    without_echoes: bool


class Selecting(Leaving, total=False):
    """The parameters that say which statements count; `Selection` says what they mean."""

    arm: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which statements of a run count.

    Attributes:
        arm: only those of this augmentation arm. None: of every arm, each counted for itself.
        min_acceptability: only those of at least this acceptability, in [0, 1]. None: 0.5 where
            the run was measured for it, else all; 0: all. A statement that has no score counts.
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
        """What differs from the default."""
        default = asdict(Selection())
        return {name: value for name, value in asdict(self).items() if value != default[name]}


@dataclass(frozen=True, slots=True)
class Counted:
    """The statements of a run that count.

    Attributes:
        triples: them, arm by arm, in the order of the store; each with the count and name of its
            arm.
        every: these and those that were left out for their acceptability.
        arms: the arms that they are of, also those without any statement.
        all_arms: the arms of the run.
        threshold: the acceptability from which they count; 0 where all do.
        said: how many statements there were in each arm and of each group (by id) before any was
            left out, each as often as it was said.
        out: how many were left out, by arm, group and reason: "acceptability", "echo" or "other".
        echoed: the ids of the generations that were left out as echoes.
        remarks: what else is to be known of their scores, a line each.
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
        """What counts of one of the arms."""
        return replace(
            self,
            triples=self.of(arm),
            every=[t for t in self.every if t.arm == arm],
            arms=(arm,),
            said={key: n for key, n in self.said.items() if key[0] == arm},
            out={key: n for key, n in self.out.items() if key[0] == arm},
        )

    def about(self, group_ids: Collection[str]) -> "Counted":
        """What counts of these groups, and what was left out of what was said of them."""
        return replace(
            self,
            triples=[t for t in self.triples if t.group_id in group_ids],
            every=[t for t in self.every if t.group_id in group_ids],
            said={key: n for key, n in self.said.items() if key[1] in group_ids},
            out={key: n for key, n in self.out.items() if key[1] in group_ids},
        )

    @property
    def total(self) -> int:
        """The statements before any was left out, each as often as it was said."""
        return sum(self.said.values())

    @property
    def left_out(self) -> dict[str, int]:
        """How many statements were left out, by reason."""
        found: Counter[str] = Counter()
        for (_, _, reason), n in self.out.items():
            found[reason] += n
        return dict(found)

    def label(self, arm: str) -> str:
        """What a figure of this arm is stored under: the arm, "" in a run of one arm."""
        return arm if len(self.all_arms) > 1 else ""

    @property
    def several(self) -> bool:
        """Whether they are of more than one arm, so that none of their counts may be added up."""
        return len(self.arms) > 1

    @property
    def note(self) -> str:
        """What was left out and why, as one line; "" where nothing was."""
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


def select(run: StoredRun, selection: Selection | None = None) -> Counted:
    """The statements of a run that count. Raises UsageError for an arm that the run does not have,
    and for a threshold where the run was not measured for acceptability."""
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
    """The statements of a run that count, as `select` finds them, read anew from the store each
    time they are gone through: for what needs one at a time. `counted` says of them what it says
    elsewhere, once they were gone through, but has none itself. Raises as `select`."""

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
    """What a selection does with a statement; counts what it leaves out."""

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
        """Begin to count anew."""
        self._said.clear()
        self._out.clear()

    def without_echoes(self, t: TripleView) -> TripleView | None:
        """The statement as often as it is no echo, if it counts at all then."""
        self._said[t.arm, t.group_id] += t.count
        if not (repeated := self._echoed[t.arm, t.id]):
            return t
        self._out[t.arm, t.group_id, "echo"] += repeated
        return None if repeated == t.count else replace(t, count=t.count - repeated)

    def makes_sense(self, t: TripleView) -> bool:
        """Whether it is acceptable, or nobody knows."""
        score = t.scores.get(_MEASURE)
        if score is not None and score.value < self._threshold:
            self._out[t.arm, t.group_id, "acceptability"] += t.count
            return False
        return True

    def counted(self, triples: Sequence[TripleView], every: Sequence[TripleView]) -> Counted:
        """The statements with what was counted; its figures go on counting."""
        return Counted(
            triples, every, self.arms, self._all_arms, self._threshold, self._said, self._out,
            self._echoes,
        )  # fmt: skip


def scope(
    run: StoredRun, selection: Selection, said: Collection[str], *, measured: bool
) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """The arms that are selected, all arms of the run, and the acceptability from which a statement
    counts. `said` are the arms that said anything; `measured`: whether any statement has a score of
    acceptability. Raises as `select`."""
    arms = all_arms = _arms(run, said)
    if selection.arm is not None:
        if selection.arm not in arms:
            raise UsageError(
                f"run {run.name!r} has no arm {selection.arm!r}; it has {', '.join(arms)}"
            )
        arms = (selection.arm,)
    return arms, all_arms, _threshold(run, selection, measured)


def one_arm(run: StoredRun, selection: Selection | None = None) -> Counted:
    """As `select`, for what cannot be said of several arms at once. Raises UsageError, naming the
    arms, where the run has several and none was chosen."""
    return of_one_arm(run, select(run, selection))


def of_one_arm(run: StoredRun, counted: Counted) -> Counted:
    """What was counted, where it is of one arm; raises as `one_arm`."""
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
        if repeats(s.predicate, s.object, s.examples, language=spoken):
            yield s


def _by_triple(shown: Iterable[Shown]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for s in shown:
        found[s.arm, s.triple_id] += s.count
    return found


def repeated_at_first(run: StoredRun) -> Counter[str]:
    """By arm, how many first attempts yielded a statement that repeats an example. Answers that the
    crawl itself counted as echoes yielded none, and are not among them."""
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


def _arms(run: StoredRun, said: Collection[str]) -> tuple[str, ...]:
    """The arms of a run in the order of its configuration, then any others by name."""
    configured = [arm for arm in run.config.get("arms", ()) if isinstance(arm, str)]
    return tuple(dict.fromkeys([*configured, *sorted(said)])) or ("none",)
