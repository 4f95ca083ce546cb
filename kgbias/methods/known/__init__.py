"""Known or new: a run, or a model, held against stereotypes that people recorded.

- `tables`, `kinds`, `groups`: what is recorded, whether these are traits or things, and of whom.
- `matching`: the marks of a run's statements, and what of a table is said and believed.
- `agreement`: whether a model ranks groups as the people did who made a table.

    from kgbias.methods import known

    known.match_stereotypes(run, "mine.csv", model="smollm2")
    known.recorded_agreement(study, "hf:gpt2", "mine.csv")
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.parameters import PathLike, ScorerOptions, SelectionOptions
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kgbias.evidence.indicators import Indicators
    from kgbias.graph.selection import Selection
    from kgbias.graph.store import StoredRun
    from kgbias.io.progress import Progress
    from kgbias.io.tables_in_memory import Table
    from kgbias.methods.known.agreement import RecordedAgreement
    from kgbias.methods.known.matching import StereotypeComparison
    from kgbias.methods.known.tables import Stereotype
    from kgbias.models.score.distributed import AnyScorer
    from kgbias.study.opening import Model
    from kgbias.study.run import Run
    from kgbias.study.study import Study


@public_call
def recorded_agreement(
    study: "Study",
    model: "Model",
    table: "Table" = "seegull",
    *,
    group_column: str | None = None,
    attribute_column: str | None = None,
    offensiveness_column: str | None = None,
    kind_column: str | None = None,
    probes: int | None = None,
    seed: int = 0,
    executor: str = LOCAL_EXECUTOR,
    processes: int | None = None,
    **opening: Unpack[ScorerOptions],
) -> "RecordedAgreement":
    """Whether a model's lifts rank the groups of which people recorded a stereotype above the
    others (`kgbias.methods.known.agreement`): areas under the curve (.5 is chance) for
    traits and for things, each with intervals and a floor. Asks the names of the table's groups
    before and after each attribute; keeps nothing. English only.

    Args:
        study: the study.
        model: the spec of a model that reads from left to right, or an open one.
        table: as for `match_stereotypes`.
        group_column: the column of the groups (None: group or identity).
        attribute_column: that of the attributes (None: attribute).
        offensiveness_column: that of how offensive they are (None: the usual ones).
        kind_column: that of whether they are a "trait" or a "thing" (None: by a rule for
            English).
        probes: the largest number of probes (None: 45,000): as many attributes as they suffice
            for, first those that are recorded of the most groups.
        seed: the choice among attributes recorded of equally many groups.
        executor: where the model runs, as for `Run.probe`.
        processes: the number of processes on this machine, as for `Run.probe`.
        opening: how to open a spec: `begin`, `device`, `dtype`, `base_url`.

    Raises:
        DataError: a file that is no such table, or too few groups whose names are known.
        UsageError: a model that gives no log-probabilities from left to right.
    """
    from kgbias.evidence.probe_plan import DEFAULT_PROBES
    from kgbias.io.tables_in_memory import as_table_file
    from kgbias.methods.known.agreement import measure_recorded_agreement, plan_recorded
    from kgbias.methods.known.tables import (
        TableColumns,
        describe_table,
        read_kinds,
        read_stereotypes,
    )
    from kgbias.parallel import open_executor
    from kgbias.study.opening import open_spread_scorer

    columns = TableColumns(group_column, attribute_column, offensiveness_column, kind_column)
    with (
        study.working() as progress,
        open_executor(executor, progress, processes) as workers,
    ):
        with as_table_file(table, ("group", "identity", "attribute")) as file:
            plan = plan_recorded(
                read_stereotypes(file, columns, notify=progress.note),
                kinds=read_kinds(file, columns),
                probes=probes or DEFAULT_PROBES,
                seed=seed,
            )
            source = describe_table(file).name
        scorer = open_spread_scorer(model, opening, progress, workers, study.context.models())
        return measure_recorded_agreement(scorer, plan, source, progress)


@public_call
def match_stereotypes(
    run: "Run",
    table: "Table" = "seegull",
    *,
    model: str | None = None,
    group_column: str | None = None,
    attribute_column: str | None = None,
    offensiveness_column: str | None = None,
    kind_column: str | None = None,
    indicators: PathLike | None = None,
    device: str | None = None,
    base_url: str | None = None,
    probes: int | None = None,
    **selection: Unpack[SelectionOptions],
) -> "StereotypeComparison":
    """Hold what the run says against stereotypes that people recorded: each statement about a
    group of the table is known, related or new (`kgbias.methods.known.matching`), and
    each recorded stereotype was said or not, and is believed or not if a model was asked.
    "Known" means recorded by these annotators in this table: neither true nor common. English
    only.

    The store keeps the marks and what was found, in place of what was found with a table of
    this name: reports, the explorer, exports and queries have them from then on. If it cannot
    be written, that is remarked.

    Args:
        run: the run.
        table: "seegull", the shipped part of SeeGULL about the states of the US and of India;
            a table, in a file or in memory; or StereoSet's JSON.
        model: the spec of a model to ask, as `Run.evidence` does, about the recorded stereotypes of
            the run's groups too, whichever group they are recorded of. None: what the store
            holds of the run's own model, else the first.
        group_column: the column of the groups (None: group or identity).
        attribute_column: that of the attributes (None: attribute).
        offensiveness_column: that of how offensive they are (None: offensiveness or
            offensiveness_score, if there is one).
        kind_column: that of whether they are a "trait" or a "thing" (None: by a rule for
            English).
        indicators: a file of names of groups, in addition to the built-in ones.
        device: where models run, the encoder all-MiniLM-L6-v2 too.
        base_url: the server of a model openai:ID.
        probes: of the run's own statements, at most (45,000); the recorded ones come on top.
        selection: which statements count, as in `Run.counted_statements`.

    Raises DataError for a file that is no such table, or that has none of the run's groups.
    """
    from kgbias.errors import StoreError
    from kgbias.evidence.indicators import read_indicators
    from kgbias.graph.selection import Selection, need_statements
    from kgbias.io.tables_in_memory import as_table_file
    from kgbias.measure.scorers import require_english
    from kgbias.methods.known import matching
    from kgbias.methods.known.tables import (
        TableColumns,
        describe_table,
        read_kinds,
        read_stereotypes,
    )
    from kgbias.models.embed import SentenceVectors
    from kgbias.parameters import UnusedParameter
    from kgbias.study.opening import open_spread_scorer

    need_statements(run.stored)
    require_english(run.stored, "the rules for what a statement claims")
    for name, value in {"base_url": base_url, "probes": probes}.items():
        if value and not model:
            raise UnusedParameter(name, ("model",))
    columns = TableColumns(group_column, attribute_column, offensiveness_column, kind_column)
    declared = read_indicators(Path(indicators)) if indicators else None
    counts = Selection(**selection)
    with run.context.working() as progress:
        with as_table_file(table, ("group", "identity", "attribute")) as file:
            source = describe_table(file)
            recorded = read_stereotypes(file, columns, notify=progress.note)
            kinds = read_kinds(file, columns)
        model_name = None
        if model:
            opening: Any = {"device": device, "base_url": base_url}
            scorer = open_spread_scorer(model, opening, progress, None, run.context.models())
            model_name = scorer.info.public_name
            _probe_recorded(run.stored, scorer, recorded, declared, counts, probes, progress)
        matches = matching.match_stereotypes(
            run.stored,
            recorded,
            embed=SentenceVectors(device=device or "auto", notify=progress.note),
            indicators=declared,
            selection=counts,
            model=model_name,
            kinds=kinds,
            progress=progress,
        )
    try:
        run.stored.save_stereotype_matches(matches.to_matches(source))
    except StoreError as error:  # such as of a file that is only to be read
        run.context.remark(f"the marks are not kept: {error}")
    run.context.remark(matches.statements.note)
    return matches


def _probe_recorded(
    run: "StoredRun",
    scorer: "AnyScorer",
    recorded: "Sequence[Stereotype]",
    indicators: "Indicators | None",
    selection: "Selection",
    probes: int | None,
    progress: "Progress",
) -> None:
    """Probe recorded stereotypes besides the run's own statements."""
    from kgbias.evidence import ProbeSettings, plan_belief_run, price_plans, probe_beliefs
    from kgbias.evidence.probe_plan import DEFAULT_PROBES
    from kgbias.methods.known.matching import list_recorded_statements

    statements = list_recorded_statements(run, recorded, indicators)
    # Statements that were given are probed however few the probes: one leaves the run's own out.
    recorded_only = ProbeSettings(probes=1, statements=statements)
    plans, carriers = plan_belief_run(
        run, recorded_only, indicators=indicators, selection=selection
    )
    recorded_probes = price_plans(plans, carriers)["probes"]
    asking = ProbeSettings(
        probes=recorded_probes + (probes or DEFAULT_PROBES), statements=statements
    )
    probe_beliefs(
        run, scorer, asking, indicators=indicators, selection=selection, progress=progress
    )
