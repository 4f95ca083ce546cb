"""What models make of a run's statements: probes, compared with what was said."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, overload

from kgbias.errors import DataError, UsageError
from kgbias.graph.selection import Selection, need_statements, run_language
from kgbias.graph.store import StoredRun
from kgbias.io.rows import Rows
from kgbias.io.tables_in_memory import Texts
from kgbias.parallel import LOCAL_EXECUTOR, open_executor
from kgbias.parameters import (
    Names,
    PathLike,
    ScorerOptions,
    SelectionOptions,
    UnusedParameter,
    as_names,
)
from kgbias.study.context import Context, RunPart
from kgbias.study.opening import (
    OPENING_OPTIONS,
    as_models,
    iter_scorers,
    open_spread_scorer,
    output_paths,
)

if TYPE_CHECKING:
    from kgbias.evidence import Evidence, EvidenceTable, ProbeSettings
    from kgbias.evidence.probe_plan import EvidencePrice
    from kgbias.models.score.distributed import AnyScorer
    from kgbias.probe import RunProbes
    from kgbias.study.opening import Model, Models


class BeliefOptions(TypedDict, total=False):
    """How to ask a model what it believes; see `Run.evidence`."""

    probes: int | None
    carriers: Sequence[str] | None
    statements: Texts | None
    floor: Literal["fifth", "full"] | None
    placebo: bool
    marked: Names
    executor: str | None
    processes: int | None


class ProbeOptions(ScorerOptions, total=False):
    """How to probe a run's statements with several models; see `Run.probe`."""

    category: Names
    by: Literal["conditional", "sofa", "whole"] | None
    ending: str
    as_published: bool
    seed: int


class RunProbing(RunPart):
    """What models make of a run's statements; a part of `Run`."""

    def probe(
        self,
        model: "Model | AnyScorer",
        *,
        category: Names = (),
        by: Literal["conditional", "sofa", "whole"] | None = None,
        ending: str = "",
        as_published: bool = False,
        output: PathLike | None = None,
        seed: int = 0,
        executor: str = LOCAL_EXECUTOR,
        processes: int | None = None,
        **opening: Unpack[ScorerOptions],
    ) -> "RunProbes":
        """Ask a model which group makes each statement most likely, write the answers on the edges
        of the graph, and compare what was said with what is probable. Lower perplexity means more
        likely. Results already in the store are not computed again.

        Args:
            model: a spec, or a model opened by `kgbias.open_scorer`.
            category: only these categories (default: all).
            by: rank groups by the statement's perplexity after the group ("conditional"), SoFa's
                PPL* ("sofa"), or the perplexity of the whole probe ("whole"); None: conditional, or
                whole for a masked model.
            ending: text appended to each probe, for example ".".
            as_published: compute as the code of the papers did, slips included.
            output: also write every probe: a .jsonl file or a .parquet folder.
            seed: the random seed of the intervals and permutations.
            executor: where the model runs: "local", "ray" (a Ray on this machine) or
                "ray://ADDRESS" (a cluster). Each worker opens the model of the spec, with as many
                threads as this process has; the figures are the same on the same kind of device
                (see `kgbias.parallel`).
            processes: the number of processes on this machine, each with its own model (None: only
                this one); they share its threads.
            opening: how to open a spec: `begin`, `device`, `dtype`, `instruction`, `base_url`
                (see `kgbias.open_scorer`).
        """
        from kgbias.probe import probe_run

        with (
            self._context.working() as progress,
            open_executor(executor, progress, processes) as workers,
        ):
            return probe_run(
                self.stored,
                self._context.apply_display_name(
                    open_spread_scorer(model, opening, progress, workers, self._context.models())
                ),
                measure=by,
                ending=ending,
                categories=as_names(category),
                as_published=as_published,
                output=None if output is None else Path(output),
                seed=seed,
                progress=progress,
            )

    def probe_models(
        self,
        models: "Models",
        *,
        output: PathLike | None = None,
        executor: str = LOCAL_EXECUTOR,
        processes: int | None = None,
        **options: Unpack[ProbeOptions],
    ) -> Rows["RunProbes"]:
        """`probe` with several models, one after another: each is loaded once, and unloaded before
        the next. Repeat the call to continue where it stopped. `Study.sofa` compares the models.

        Frame columns: model, revision; sofa, first_share (of the triples, whose own group is first)
        and mrr, each with `_low` and `_high`; expected_mrr (by chance), p_value. Each row converts
        too, to its categories.

        Args:
            models: specs, or models opened by `kgbias.open_scorer`.
            output: also write every probe. With several models, each gets its own file or folder,
                whose name ends in the model's.
            executor: where the models run, as for `probe`.
            processes: the number of processes on this machine, as for `probe`.
            options: those of `probe`.
        """
        from kgbias.probe.result import model_rows_of_run_probes

        specs = list(as_models(models))
        asking: Any = dict(options)
        opening: Any = {name: asking.pop(name) for name in OPENING_OPTIONS if name in options}
        files = output_paths(output, specs)
        with (
            self._context.working() as progress,
            open_executor(executor, progress, processes) as workers,
        ):
            probed = [
                self.probe(scorer, output=files[place], **asking)
                for place, scorer in iter_scorers(
                    specs, opening, progress, workers, self._context.models()
                )
            ]
        return model_rows_of_run_probes(probed)

    @overload
    def evidence(
        self,
        model: "Model | None" = None,
        *,
        encoder: str | None = None,
        indicators: PathLike | None = None,
        device: str | None = None,
        base_url: str | None = None,
        asking: BeliefOptions | None = None,
        dry_run: Literal[False] = False,
        **selection: Unpack[SelectionOptions],
    ) -> Rows["Evidence"]: ...

    @overload
    def evidence(
        self,
        model: "Model | None" = None,
        *,
        encoder: str | None = None,
        indicators: PathLike | None = None,
        device: str | None = None,
        base_url: str | None = None,
        asking: BeliefOptions | None = None,
        dry_run: Literal[True],
        **selection: Unpack[SelectionOptions],
    ) -> "EvidencePrice": ...

    def evidence(
        self,
        model: "Model | None" = None,
        *,
        encoder: str | None = None,
        indicators: PathLike | None = None,
        device: str | None = None,
        base_url: str | None = None,
        asking: BeliefOptions | None = None,
        dry_run: bool = False,
        **selection: Unpack[SelectionOptions],
    ) -> "Rows[Evidence] | EvidencePrice":
        """What was said, what a model finds probable and what its vectors hold, in one row for each
        triple that counts, with a verdict: "said and believed", "only said", "believed but never
        said" or "refused but believed". The last two are for statements made of other groups. If a
        model was made to choose (`kgbias.methods.choice`), its choices have their own columns; so
        has what the crawled model's stories in the store say of the same group
        (`kgbias.evidence.story_evidence`), and what other methods have about each statement
        (`kgbias.evidence.added_columns`), such as whether people recorded it.

        Reads the store. With `model`, the run's statements are first probed with it by the names of
        the groups (docs/methods/evidence.md), and embedded with it; results already in the store
        are not computed again.

        Args:
            model: the spec of the model whose probabilities count, or an open one
                (`kgbias.open_scorer`, `kgbias.in_memory`). None: of those that the run was
                probed with, the one that was crawled, else the first.
            encoder: the spec of the model whose vectors count, or vectors:FILE. None: the `model`.
            indicators: a file of names of groups, and of words that stand for them in vectors, in
                addition to the built-in ones (docs/how-to/groups.md).
            device: where models run: auto, cpu, cuda, cuda:N or mps.
            base_url: the server of a model openai:ID.
            asking: how to ask the model: `probes`, at most (45,000); `carriers`, the text before
                names, three or more; `statements`, a file of more statements; `floor`, whether
                made-up names are probed with a random "fifth" of the statements or with all
                ("full"); `placebo`, whether to probe groups of real words too, about which little
                is believed; `marked`, the marks with which names take part; `executor` and
                `processes`, where the model runs (as for `probe`).
            dry_run: ask nothing, and return what a model would be asked if the store held nothing
                of it yet.
            selection: which statements count, as in `counted_statements`.

        Examples:
            >>> asking = {"probes": 300, "statements": ["wear amber scarves"]}
            >>> for row in run.evidence("reference", asking=asking):
            ...     if row.object == "amber scarves":
            ...         print(row.group, row.verdict)
            Velmari people said and believed
        """
        from kgbias.evidence.evidence_table import evidence_rows

        if dry_run:
            return _price_evidence(self.stored, indicators, asking, selection)
        table = _build_evidence(
            self._context,
            self.stored,
            model,
            encoder=encoder,
            indicators=indicators,
            device=device,
            base_url=base_url,
            asking=asking,
            **selection,
        )
        for line in (*table.missing_columns, table.note):
            self._context.remark(line)
        return evidence_rows(table.rows)


def _price_evidence(
    run: StoredRun,
    indicators: PathLike | None,
    asking: BeliefOptions | None,
    selection: SelectionOptions,
) -> "EvidencePrice":
    from kgbias.evidence import plan_belief_run, price_plans
    from kgbias.evidence.probe_plan import EvidencePrice
    from kgbias.probe.run_probes import count_run_texts

    settings = split_belief_options(asking, run_language(run.config)).settings
    plans, carriers = plan_belief_run(
        run,
        settings,
        indicators=_read_indicators(indicators),
        selection=Selection(**selection),
    )
    of_groups, embedded = count_run_texts(run)
    probing = price_plans(plans, carriers)
    return EvidencePrice(**probing, texts_of_groups=of_groups, embedded=embedded)


def _build_evidence(
    context: Context,
    run: StoredRun,
    model: "Model | None" = None,
    *,
    encoder: str | None = None,
    indicators: PathLike | None = None,
    device: str | None = None,
    base_url: str | None = None,
    asking: BeliefOptions | None = None,
    **selection: Unpack[SelectionOptions],
) -> "EvidenceTable":
    from kgbias.evidence import build_evidence, describe_other_models, embed_run, probe_beliefs
    from kgbias.models.spec import loads_weights
    from kgbias.probe import probe_run

    need_statements(run)
    if device and not (model or encoder):
        raise UnusedParameter("device", ("model", "encoder"))
    if indicators and not (model or encoder):
        raise UnusedParameter("indicators", ("model", "encoder"))
    for name, value in {"base_url": base_url, **(asking or {})}.items():
        if value and not model:
            raise UnusedParameter(name, ("model",))
    split = split_belief_options(asking, run_language(run.config))
    settings = split.settings
    declared, criteria = _read_indicators(indicators), Selection(**selection)
    model_name: str | None = None
    with (
        context.working() as progress,
        open_executor(split.executor, progress, split.processes) as workers,
    ):
        if model:
            opening: Any = {"device": device, "base_url": base_url}
            scorer = context.apply_display_name(
                open_spread_scorer(model, opening, progress, workers, context.models())
            )
            model_name = scorer.info.public_name
            probe_beliefs(
                run, scorer, settings, indicators=declared, selection=criteria, progress=progress
            )
            # Probe by the groups' own names too: only these edges hold the association with the
            # vectors, the rank, and each token's surprisal.
            try:
                probe_run(run, scorer, progress=progress)
            except DataError as error:
                if scorer.convention.kind != "server":
                    raise
                context.remark(f"not probed by the groups' own names: {error}")
        table = build_evidence(run, criteria, model=model_name)
        vectors = encoder or (model if isinstance(model, str) and loads_weights(model) else None)
        if vectors:
            if table.probe_run is None:
                raise UsageError(
                    f"run {run.name!r} was not probed: give the `model` to probe it with"
                )
            embed_run(
                run,
                table.probe_run,
                vectors,
                indicators=declared,
                device=device or "auto",
                progress=progress,
            )
            table = build_evidence(run, criteria, model=model_name)
    context.remark(table.statements.note)
    context.remark(describe_other_models(run, table.belief_run))
    return table


def _read_indicators(indicators: PathLike | None) -> Any:
    from kgbias.evidence.indicators import read_indicators

    return read_indicators(Path(indicators)) if indicators else None


class SplitBeliefOptions(NamedTuple):
    """How to ask a model, and where it runs: the executor, and the processes of this machine."""

    settings: "ProbeSettings"
    executor: str
    processes: int | None


def split_belief_options(options: BeliefOptions | None, language: str = "") -> SplitBeliefOptions:
    """How to ask a model, and where it runs. Of statements in several languages, those in
    `language` are asked."""
    from kgbias.evidence import ProbeSettings
    from kgbias.probe.sets import read_statements

    settings: dict[str, Any] = {k: v for k, v in (options or {}).items() if _is_set(v)}
    executor = settings.pop("executor", LOCAL_EXECUTOR)
    processes = settings.pop("processes", None)
    if "statements" in settings:
        settings["statements"] = read_statements(settings["statements"], language)
    if "marked" in settings:
        settings["marked"] = as_names(settings["marked"])
    return SplitBeliefOptions(ProbeSettings(**settings), executor, processes)


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and not (isinstance(value, tuple) and not value)
