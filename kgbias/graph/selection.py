"""Which statements of a run count: of which arm, from which acceptability, with echoes or without.

Everything that is computed, drawn or written of a run reads its statements here. Arms are never
added up: where no arm is named, each arm that said a triple has a row of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict

from kgbias.echoes import repeats
from kgbias.errors import UsageError
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import TripleView

SENSE = 0.5  # the acceptability from which a statement counts as one that makes sense
_MEASURE = "acceptability"
_REASONS = {
    "acceptability": "{n} with an acceptability below {threshold:g}",
    "echo": "{n} that repeat an example of their prompt",
}


class Selecting(TypedDict, total=False):
    """The parameters that say which statements count; `Selection` says what they mean."""

    arm: str | None
    min_acceptability: float | None
    without_echoes: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Which statements of a run count.

    Attributes:
        arm: only those of this augmentation arm. None: of every arm, each counted for itself.
        min_acceptability: only those of at least this acceptability, in [0, 1]. None: 0.5 where
            the run was measured for it, else all; 0: all. A statement that has no score counts.
        without_echoes: leave out those that repeat an example of their own prompt
            (`kgbias.echoes`).
    """

    arm: str | None = None
    min_acceptability: float | None = None
    without_echoes: bool = False

    def __post_init__(self) -> None:
        if self.min_acceptability is not None and not 0 <= self.min_acceptability <= 1:
            raise UsageError("`min_acceptability` must lie between 0 and 1")

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
        arms: the arms that they are of, without any statement too.
        threshold: the acceptability from which they count; 0 where all do.
        total: the statements before any was left out, each as often as it was said.
        left_out: how many were left out, by reason: "acceptability" or "echo".
    """

    triples: Sequence[TripleView]
    arms: tuple[str, ...]
    threshold: float
    total: int
    left_out: Mapping[str, int]

    def of(self, arm: str) -> list[TripleView]:
        """The statements of one arm."""
        return [t for t in self.triples if t.arm == arm]

    @property
    def several(self) -> bool:
        """Whether they are of more than one arm, so that none of their counts may be added up."""
        return len(self.arms) > 1

    @property
    def note(self) -> str:
        """What was left out and why, as one line; "" where nothing was."""
        reasons = [
            _REASONS[reason].format(n=n, threshold=self.threshold)
            for reason, n in self.left_out.items()
            if n
        ]
        if not reasons:
            return ""
        out = sum(self.left_out.values())
        return f"left out {out} of {self.total} statements: {' and '.join(reasons)}"

    def as_dict(self) -> dict[str, Any]:
        """The same for a manifest."""
        return {
            "arms": list(self.arms),
            "min_acceptability": self.threshold,
            "statements": self.total,
            "left_out": dict(self.left_out),
        }


def select(run: StoredRun, selection: Selection | None = None) -> Counted:
    """The statements of a run that count. Raises UsageError for an arm that the run does not have,
    and for a threshold where the run was not measured for acceptability."""
    selection = selection or Selection()
    threshold = _threshold(run, selection)
    triples = run.triples(by_arm=True)
    arms = _arms(run, triples)
    if selection.arm is not None:
        if selection.arm not in arms:
            raise UsageError(
                f"run {run.name!r} has no arm {selection.arm!r}; there is {', '.join(arms)}"
            )
        arms = (selection.arm,)
    by_arm = [t for arm in arms for t in triples if t.arm == arm]
    left_out: Counter[str] = Counter()
    kept = []
    echoed = echoes(run) if selection.without_echoes else Counter()
    for t in by_arm:
        if repeated := echoed[t.arm, t.id]:
            left_out["echo"] += repeated
            t = replace(t, count=t.count - repeated)
        score = t.scores.get(_MEASURE)
        if score is not None and score.value < threshold:
            left_out["acceptability"] += t.count
        elif t.count:
            kept.append(t)
    return Counted(kept, arms, threshold, sum(t.count for t in by_arm), left_out)


def one_arm(run: StoredRun, selection: Selection | None = None) -> Counted:
    """As `select`, for what cannot be said of several arms at once. Raises UsageError, naming the
    arms, where the run has several and none was chosen."""
    counted = select(run, selection)
    if counted.several:
        raise UsageError(
            f"run {run.name!r} has the arms {', '.join(counted.arms)}, which are not to be added "
            "up: choose one with `arm`"
        )
    return counted


def echoes(run: StoredRun) -> Counter[tuple[str, str]]:
    """How many statements of each arm and triple repeat an example of their own prompt."""
    spoken = language(run.config)
    found: Counter[tuple[str, str]] = Counter()
    for s in run.shown():
        if repeats(s.predicate, s.object, s.examples, language=spoken):
            found[s.arm, s.triple_id] += s.count
    return found


def language(config: Mapping[str, Any]) -> str:
    """The language of a run's prompts; a run that does not say is English."""
    return str(config.get("pack", {}).get("language", "en"))


def _threshold(run: StoredRun, selection: Selection) -> float:
    measured = _MEASURE in run.metrics()
    if selection.min_acceptability is None:
        return SENSE if measured else 0.0
    if selection.min_acceptability > 0 and not measured:
        raise UsageError(
            f"run {run.name!r} was not measured for acceptability: measure it, or leave out "
            "`min_acceptability`"
        )
    return selection.min_acceptability


def _arms(run: StoredRun, triples: Sequence[TripleView]) -> tuple[str, ...]:
    """The arms of a run in the order of its configuration, then any others by name."""
    said = {t.arm for t in triples}
    configured = [arm for arm in run.config.get("arms", ()) if isinstance(arm, str)]
    return tuple(dict.fromkeys([*configured, *sorted(said)])) or ("none",)
