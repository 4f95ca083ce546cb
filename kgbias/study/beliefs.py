"""What follows from what a model was found to believe: of groups, of made-up names, beside other
models, and when it is tested again."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.errors import UsageError
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.io.columns import Column, columns_of
from kgbias.io.rows import Result, Rows
from kgbias.io.text import format_p_value
from kgbias.parallel import LOCAL_EXECUTOR, open_executor
from kgbias.parameters import SelectionOptions, UnusedParameter
from kgbias.stats.estimate import nan_to_none
from kgbias.study.calls import PublicCalls
from kgbias.study.context import RunPart
from kgbias.study.opening import open_spread_scorer

if TYPE_CHECKING:
    from kgbias.evidence import GroupAgreement, Replication

_GROUP_COLUMNS = (
    Column("category"),
    Column("group"),
    Column("score"),
    Column("kind"),
    Column("value", "+.2f"),
    Column("low", "+.2f"),
    Column("high", "+.2f"),
    Column("p_value", format_p_value),
    Column("q_value", format_p_value),
    Column("statements", "d"),
    Column("floor", ".2f"),
    Column("floor_statements", "d"),
    Column("names"),
)


_FLOOR_COLUMNS = (
    Column("category"),
    Column("kind"),
    Column("tested", "d"),
    Column("found", ".2f"),
)


_MODEL_COLUMNS = (
    Column("category"),
    Column("first"),
    Column("second"),
    Column("pairs", "d"),
    Column("first_believes", "d"),
    Column("second_believes", "d"),
    Column("both", "d"),
    Column("either", "d"),
    Column("same_sign", "d"),
    Column("correlation", "+.2f", interval=True, ends=("low", "high")),
)


@dataclass(frozen=True, slots=True, repr=False)
class FloorSummary(Result):
    """What the test of beliefs finds with made-up names.

    Attributes:
        tested: pairs of made-up groups and statements.
        found: the mean number of them that is found when names are dealt anew over the groups.
        pairs: pairs of the real groups and statements.
        believed: how many of these are believed.
        p_value: of as many being believed by chance; NaN if no made-up names were asked about.
        parts: the same by category and kind of names, with the number of each deal (`finds`).
    """

    tested: int
    found: float
    pairs: int
    believed: int
    p_value: float
    parts: tuple[dict[str, Any], ...]

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The parts."""
        return Rows(self.parts, _FLOOR_COLUMNS)

    def heading(self) -> str:
        return (
            f"believed: {self.believed:,} of {self.pairs:,} pairs of a group and a statement; of "
            f"made-up names {self.found:.2f} of {self.tested:,} (the mean over deals)"
        )

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class RunBeliefs(PublicCalls):
    """What follows from the beliefs that `Run.evidence` found; `run.beliefs`."""

    def __init__(self, run: RunPart) -> None:
        self._run = run

    def __repr__(self) -> str:
        return f"<Beliefs of run {self._run.name!r}: agreement, floor, groups, models, replicate>"

    def agreement(
        self, model: str | None = None, **selection: Unpack[SelectionOptions]
    ) -> Rows["GroupAgreement"]:
        """How far what is said, believed and embedded put each group's statements in the same
        order: Kendall's tau-b with 95% intervals, from what `Run.evidence`
        stored.

        Frame columns: category, group, arm, said_believed, said_embedded and believed_embedded,
        each with `_low` and `_high`, n.

        Args:
            model: the name of the model that was asked (None: as for `Run.evidence`).
            selection: which statements count, as for `Run.counted_statements`.
        """
        from kgbias.evidence import GroupAgreement, build_evidence

        table = build_evidence(self._run.stored, Selection(**selection), model=model)
        count = Column("n", "d", get=attrgetter("said_believed.n"))
        return Rows(table.agreement, (*columns_of(GroupAgreement), count))

    def groups(self, model: str | None = None) -> Rows[dict[str, Any]]:
        """The groups about which a model believes worse things, from what `Run.evidence` stored: a
        row for each group, score and kind of figure (`kgbias.probe.group_figures.GroupFigure`).
        `names` holds each name's figure, `floor` what made-up names stay below.

        Frame columns: category, group, score, kind, value, low, high, p_value, q_value, statements,
        floor, floor_statements, names.

        Args:
            model: the name of the model that was asked (None: as for `Run.evidence`).
        """
        record = _belief_record(self._run.stored, model)
        rows = nan_to_none(list(record.get("groups", [])))
        return Rows(rows, _GROUP_COLUMNS)

    def floor(self, model: str | None = None) -> FloorSummary:
        """What the test of beliefs finds with made-up names, from what `Run.evidence` stored.

        Frame columns: category, kind, tested, found.

        Args:
            model: the name of the model that was asked (None: as for `Run.evidence`).
        """
        from kgbias.evidence import summarise_floor

        summary = summarise_floor(_belief_record(self._run.stored, model))
        return FloorSummary(**{**summary, "parts": tuple(summary["parts"])})

    def models(self) -> Rows[dict[str, Any]]:
        """How far the models that probed this run by names believe the same: a row for each
        category and two models, with the `pairs` of a group and a statement that both were asked
        about, how many each believes, `both` and `either_believed`, how many of these have lifts of
        the `same_sign`, and the `correlation` of all lifts with its interval over statements
        (`kgbias.evidence.ModelAgreement`). No rows for a single model.

        Frame columns: category, first, second, pairs, first_believes, second_believes, both,
        either, same_sign, correlation, low, high.
        """
        from kgbias.evidence import BeliefComparison

        rows = []
        run = self._run.stored
        for category in dict.fromkeys(group.category for group in run.record.groups):
            comparison = BeliefComparison.from_run(run, category)
            if comparison is None:
                continue
            for pair in comparison.iter_agreements():
                first_believes, second_believes = pair.believed_counts
                rows.append(
                    {
                        "category": category,
                        "first": comparison.models[pair.first].label,
                        "second": comparison.models[pair.second].label,
                        "pairs": pair.pairs,
                        "first_believes": first_believes,
                        "second_believes": second_believes,
                        "both": pair.both_believed,
                        "either": pair.either_believed,
                        "same_sign": pair.same_sign,
                        "correlation": pair.correlation,
                    }
                )
        return Rows(rows, _MODEL_COLUMNS)

    def replicate(
        self,
        model: str | None = None,
        *,
        other_run: str | None = None,
        carriers: Sequence[str] | None = None,
        device: str | None = None,
        base_url: str | None = None,
        executor: str = LOCAL_EXECUTOR,
        processes: int | None = None,
    ) -> "Replication":
        """Test again what `Run.evidence` found to be believed: with each half of a group's names
        held out in turn, and with the names of another root, from the store. The result is kept
        with each finding (`Evidence.replication_rate`).

        Args:
            model: the spec of the model that was asked, to ask it again with other carriers, which
                takes as many probes as the first time. None: ask nothing.
            other_run: the name of another run in the store that the same model was asked about,
                such as a crawl with another seed: findings whose statements it probed are looked up
                    there.
            carriers: the text before names, with `model`: three or more (None: three that were not
                used).
            device: as for `Run.evidence`.
            base_url: as for `Run.evidence`.
            executor: where the model runs, as for `Run.evidence`.
            processes: the number of processes, as for `Run.evidence`.
        """
        from kgbias.evidence import (
            describe_other_models,
            replicate_findings,
            retry_with_carriers,
            save_replication,
        )

        for name, value in {
            "carriers": carriers,
            "device": device,
            "base_url": base_url,
            "processes": processes,
        }.items():
            if value and not model:
                raise UnusedParameter(name, ("model",))
        stored_other_run = self._run.context.find(other_run) if other_run else None
        with (
            self._run.context.working() as progress,
            open_executor(executor, progress, processes) as workers,
        ):
            scorer: Any = None
            if model:
                opening: Any = {"device": device, "base_url": base_url}
                scorer = open_spread_scorer(
                    model, opening, progress, workers, self._run.context.models()
                )
            model_name = scorer.info.public_name if scorer else None
            replication = replicate_findings(
                self._run.stored, model=model_name, other_run=stored_other_run
            )
            if scorer is not None:
                way = retry_with_carriers(
                    self._run.stored, scorer, replication, carriers=carriers, progress=progress
                )
                replication = replace(replication, rates=(*replication.rates, way))
        save_replication(self._run.stored, replication)
        self._run.context.remark(describe_other_models(self._run.stored, replication.belief_run))
        return replication


def _belief_record(run: StoredRun, model: str | None) -> dict[str, Any]:
    from kgbias.evidence import read_beliefs

    beliefs = read_beliefs(run, model)
    if beliefs is None:
        raise UsageError(
            f"run {run.name!r} was not probed by names: call `evidence` with a `model`"
        )
    return dict(beliefs.belief_run.record)
