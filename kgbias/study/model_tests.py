"""Models tested on material from no run: sets of probes, and names with descriptors."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from kgbias.errors import DataError, UsageError
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.sofa import ProbeSet, ProbeStatement
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Flag, FlagTable
from kgbias.io.columns import Column
from kgbias.io.progress import Progress, show_progress
from kgbias.io.rows import Rows
from kgbias.io.tables import TableFormat, read_table
from kgbias.io.tables_in_memory import Table, Texts, as_table_file
from kgbias.parallel import LOCAL_EXECUTOR, open_executor
from kgbias.parameters import Names, PathLike, SelectionOptions, as_names
from kgbias.study.calls import public_call
from kgbias.study.context import StudyPart
from kgbias.study.opening import (
    ScorerOptions,
    as_models,
    iter_scorers,
    model_name,
    open_spread_scorer,
    open_text_scorer,
    output_paths,
)
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.compare.sofa import SofaComparison
    from kgbias.evidence.recorded_agreement import RecordedAgreement
    from kgbias.models.score.distributed import AnyScorer
    from kgbias.probe import ApxFlags, SetProbes
    from kgbias.probe.build import Judge, SofaSet, Stereotypes
    from kgbias.probe.set_probes import Sets
    from kgbias.probe.sets import Descriptor
    from kgbias.study.opening import Model, Models


BENCHMARKS_DOOR = TableFormat(
    "scores of models on benchmarks: `sofa results --beside`",
    (("model",),),
    other_forms="a column for each benchmark",
)
_FLAG_COLUMNS = (
    Column("model", get=lambda pair: pair[0].model),
    Column("group", get=lambda pair: pair[1].group),
    Column("descriptor", get=lambda pair: pair[1].descriptor),
    Column("axis", get=lambda pair: pair[1].axis),
    Column("bias_score", ".3f", get=lambda pair: pair[1].bias_score),
    Column("z", ".2f", get=lambda pair: pair[1].z),
    Column("level", ".3g", get=lambda pair: pair[0].level),
    Column("groups", "d", get=lambda pair: pair[0].groups),
)


class StudyModelTests(StudyPart):
    """Models tested on material from no run; a part of `Study`."""

    def recorded_agreement(
        self,
        model: "Model",
        table: Table = "seegull",
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
        others (`kgbias.evidence.recorded_agreement`): areas under the curve (.5 is chance) for
        traits and for things, each with intervals and a floor. Asks the names of the table's groups
        before and after each attribute; keeps nothing. English only.

        Args:
            model: the spec of a model that reads from left to right, or an open one.
            table: as for `Run.match_stereotypes`.
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
        from kgbias.evidence.recorded_agreement import measure_recorded_agreement, plan_recorded
        from kgbias.evidence.stereotype_tables import (
            TableColumns,
            describe_table,
            read_kinds,
            read_stereotypes,
        )

        columns = TableColumns(group_column, attribute_column, offensiveness_column, kind_column)
        with (
            self.working() as progress,
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
            scorer = open_spread_scorer(model, opening, progress, workers, self._context.models())
            return measure_recorded_agreement(scorer, plan, source, progress)

    def probe_sets(
        self,
        models: "Models",
        sets: "Sets",
        *,
        name: str = "probes",
        by: Literal["conditional", "sofa", "whole"] | None = None,
        as_published: bool = False,
        output: str | Path | None = None,
        run: Run | None = None,
        seed: int = 0,
        executor: str = LOCAL_EXECUTOR,
        processes: int | None = None,
        **opening: Unpack[ScorerOptions],
    ) -> "list[SetProbes]":
        """Probe groups and statements with one model or several, one after another: each is loaded
        once, and unloaded before the next. The score of each probe is kept in the answer log (or in
        `output`), so repeat the call to continue where it stopped; each model's SoFa is kept with
        the set.

        Args:
            models: specs, or models opened by `kgbias.open_scorer`.
            sets: category to (groups, statements), as read by `kgbias.gather_sets`.
            name: a name for the set.
            by: what ranks the groups (see `Run.probe`).
            as_published: compute as the paper's code did, slips included; not kept.
            output: write every probe: a .jsonl file or a .parquet folder; with several models, one
                each, whose name ends in the model's.
            run: the run whose statements or groups these are.
            seed: the random seed of the intervals.
            executor: where the models run, as for `Run.probe`.
            processes: the number of processes on this machine, as for `Run.probe`.
            opening: how to open a spec: `begin`, `device`, `dtype`, `base_url`.

        Raises:
            UsageError: an invalid spec, or an output that belongs to other settings.
            ModelError: a model cannot be loaded.
        """
        from kgbias.probe import probe_sets
        from kgbias.probe.result import save_sofa_result, sofa_result

        specs = list(as_models(models))
        files, probe_set = output_paths(output, specs), ProbeSet.from_texts(name, sets)
        store, results = self._context.writable(), []
        with (
            self.working() as progress,
            open_executor(executor, progress, processes) as workers,
        ):
            for place, scorer in iter_scorers(
                specs, opening, progress, workers, self._context.models()
            ):
                self._context.apply_display_name(scorer)
                results.append(
                    probed := probe_sets(
                        scorer,
                        sets,
                        measure=by,
                        output=files[place],
                        store=store,
                        as_published=as_published,
                        seed=seed,
                        progress=progress,
                    )
                )
                if not as_published:
                    result = sofa_result(
                        probe_set,
                        probed.model,
                        probed.bias,
                        measure=by,
                        seed=seed,
                        usage=probed.usage,
                    )
                    save_sofa_result(
                        store, None if run is None else run.stored.id, probe_set, result
                    )
        return results

    def describe_probes(
        self,
        probe_set: str | None = None,
        *,
        hate: str | None = "offline",
        embedding: str | None = "minilm",
        min_cluster_size: int | None = None,
        device: str = "auto",
        seed: int = 0,
    ) -> ProbeSet:
        """Find what the statements of a set are about, and which are hate speech (appendices C.2
        and C.3 of the paper). The answers are kept with the set; `sofa_figures` draws them.

        Args:
            probe_set: as for `sofa`.
            hate: the toxicity scorer that decides, from 0.5 on: offline, or as in the paper
                hf:facebook/roberta-hate-speech-dynabench-r4-target:hate; None: skip.
            embedding: the embedding to cluster statements in: minilm, or as in the paper
                hf:Alibaba-NLP/gte-base-en-v1.5; None: skip.
            min_cluster_size: the minimum number of statements in a cluster (None: 1% of them, at
                least 5).
            device: where the models run.
            seed: the random seed of the clusters.

        Raises:
            UsageError: no set of that name, or both are None.
            MissingExtra: a package of the extras `topics` or `scorers` is missing.
        """
        from kgbias.measure.clusters import cluster_texts
        from kgbias.measure.embedding import load_vectors
        from kgbias.measure.scorers import load_scorer

        if hate is None and embedding is None:
            raise UsageError("nothing to describe: give `hate` or `embedding`")
        stored_set = self.sofa(probe_set).probe_set
        texts = list(dict.fromkeys(s.text for part in stored_set.parts for s in part.statements))
        record = dict(stored_set.record)
        scores: dict[str, float | None] = {}
        labels: dict[str, int] = {}
        with self.working() as progress:
            if hate is not None:
                scorer = load_scorer("toxicity", hate, device=device, log=self._context.graph)
                progress.stage("hate", len(texts))
                judgements = scorer.score(texts)
                scores = {t: j.value if j else None for t, j in zip(texts, judgements, strict=True)}
                progress.advance(len(texts))
                record["hate"] = f"{scorer.name}@{scorer.version}"
            if embedding is not None:
                progress.note(f"clustering {len(texts):,} statements")
                clusters = cluster_texts(
                    texts,
                    load_vectors(embedding, device),
                    min_cluster_size=min_cluster_size,
                    seed=seed,
                )
                labels = dict(zip(texts, clusters.labels, strict=True))
                record["clusters"] = clusters.as_dict()

        def annotate(statement: ProbeStatement) -> ProbeStatement:
            return replace(
                statement,
                hate=scores.get(statement.text, statement.hate),
                cluster=labels.get(statement.text, statement.cluster),
            )

        parts = tuple(
            replace(part, statements=tuple(map(annotate, part.statements)))
            for part in stored_set.parts
        )
        described = ProbeSet(stored_set.name, parts, record)
        self._context.graph.save_probe_set(described)
        return described

    def sofa_figures(
        self,
        folder: str | Path = "sofa",
        probe_set: str | None = None,
        *,
        run: str | Run | None = None,
        beside: Table | None = None,
        correction: str = "holm",
        seed: int = 0,
    ) -> list[Path]:
        """Write the paper's tables and figures for one set of probes: SVG, PDF and PNG, LaTeX and
        CSV, and manifest.json. Returns the files.

        Args:
            folder: the folder to write to.
            probe_set: as for `sofa`.
            run: as for `sofa`.
            beside: scores of the same models on other benchmarks, shown beside SoFa in table 1 with
                their ranks and Kendall's tau: a CSV file with the column model and a column for
                each benchmark; higher is more biased.
            correction: as for `sofa`.
            seed: as for `sofa`.
        """
        from kgbias.report.save import save_sofa

        benchmark_scores = None if beside is None else read_benchmarks(beside)
        comparison = self.sofa(probe_set, run=run, correction=correction, seed=seed)
        with self.working() as progress:
            return save_sofa(
                comparison, Path(folder), benchmark_scores=benchmark_scores, progress=progress
            )

    def sofa(
        self,
        probe_set: str | None = None,
        *,
        run: str | Run | None = None,
        correction: str = "holm",
        seed: int = 0,
    ) -> "SofaComparison":
        """Rank models by SoFa on one set of probes: ranks, paired tests, scores by category.

        Args:
            probe_set: the name of a set or the beginning of its id (None: the set that most models
                were asked about).
            run: only the models that `Run.probe` asked about this run.
            correction: the correction of p-values over every pair of models in every category:
                "holm" or "bh".
            seed: the random seed of resamples and permutations.

        Raises UsageError if no model was probed, or no set has that name.
        """
        from kgbias.compare.sofa import compare_stored_sofa

        store = self._context.graph
        stored_results = (
            store.sofa_results() if run is None else self._context.find(run).sofa_results()
        )
        return compare_stored_sofa(
            store, stored_results, probe_set, correction=correction, seed=seed
        )

    def probe_apx(
        self,
        model: "Model | AnyScorer",
        names: "Table | Sequence[tuple[str, str]]" = "globalbias",
        descriptors: "Table | Sequence[Descriptor]" = "globalbias",
        *,
        exclude_axes: Names = (),
        as_published: bool = False,
        output: PathLike | None = None,
        perplexities: PathLike | None = None,
        seed: int = 0,
        executor: str = LOCAL_EXECUTOR,
        processes: int | None = None,
        **opening: Unpack[ScorerOptions],
    ) -> "ApxFlags":
        """Find the descriptors that a model ties to groups of names, by APX, and write them to the
        graph as FLAGGED edges. A group of the same name in a run is the same node. Sentence scores
        are kept, and those in the store, from here or from `benchmark`, are reused.

        Args:
            model: a spec, or a model opened by `kgbias.open_scorer`.
            names: names and groups, as for `kgbias.probe_apx`.
            descriptors: descriptors, as there.
            exclude_axes: descriptors of these axes are measured but not tested.
            as_published: round as the paper's code does.
            output: a CSV file for the APX table.
            perplexities: a .jsonl file or a .parquet folder for every sentence.
            seed: the random seed of the bootstrap.
            executor: where the model runs, as for `Run.probe`.
            processes: the number of processes on this machine, as for `Run.probe`.
            opening: how to open a spec: `begin`, `device`, `dtype`, `instruction`, `base_url`
                (see `kgbias.open_scorer`).
        """
        from kgbias.probe import probe_apx

        with (
            self.working() as progress,
            open_executor(executor, progress, processes) as workers,
        ):
            return probe_apx(
                self._context.apply_display_name(
                    open_spread_scorer(model, opening, progress, workers, self._context.models())
                ),
                names,
                descriptors,
                exclude_axes=as_names(exclude_axes),
                as_published=as_published,
                output=None if output is None else Path(output),
                perplexities=None if perplexities is None else Path(perplexities),
                store=self._context.writable(),
                seed=seed,
                progress=progress,
            )

    def flag_apx(self, path: PathLike, *, exclude_axes: Names = ()) -> "ApxFlags":
        """Write the flags of an existing APX table to the graph (see `kgbias.flag_apx`).

        Args:
            path: the table, a CSV file; the edges are named after it.
            exclude_axes: descriptors of these axes are not tested.
        """
        from kgbias.probe import flag_apx

        apx_flags = flag_apx(Path(path), exclude_axes=as_names(exclude_axes))
        self._context.writable().save_flags(apx_flags.edges)
        return apx_flags

    def flags(self) -> Rows[tuple[FlagTable, Flag]]:
        """The APX flags in the store, by model and group, the most strongly tied first.

        Frame columns: model, group, descriptor, axis, bias_score, z, level, groups.
        """
        return Rows(
            ((table, flag) for table in self._context.graph.flags() for flag in table.flags),
            _FLAG_COLUMNS,
        )


def read_benchmarks(table: Table) -> dict[str, dict[str, float]]:
    """The models' scores by benchmark, from a table with the column model and a column for each
    benchmark; an empty cell means that a model was not scored. Raises DataError."""
    with as_table_file(table, BENCHMARKS_DOOR.columns, name="benchmarks") as path:
        return _parse_benchmarks(path)


def _parse_benchmarks(path: Path) -> dict[str, dict[str, float]]:
    columns, rows = read_table(path, BENCHMARKS_DOOR.columns)
    names = [name for name in columns if name != "model"]
    scores: dict[str, dict[str, float]] = {name: {} for name in names}
    for line, row in rows:
        for name in names:
            if cell := row[name].strip():
                try:
                    scores[name][row["model"]] = float(cell)
                except ValueError:
                    raise DataError(f"{path}, line {line}: {name} is not a number") from None
    if not names:
        raise DataError(f"{path} has no benchmarks: add a column for each beside the column model")
    return scores


@public_call
def build_sofa(
    source: Texts | Run,
    output: PathLike | None = None,
    *,
    identities: Texts | None = "sofa",
    models: "Models" = (),
    acceptability: str | None = "offline",
    min_acceptability: float = 0.5,
    cut: float = 0.05,
    column: str | None = None,
    progress: Progress | bool | None = None,
    selection: SelectionOptions | None = None,
    **opening: Unpack[ScorerOptions],
) -> "SofaSet":
    """Build a data set of probes the way SoFa was built: bring stereotypes into one form, filter
    them, and put each after every identity of its category (Marchiori Manerba et al. 2023, section
    3.1 and appendix B; `kgbias.probe.build` describes each step).

    Args:
        source: your copy of SBIC (CSV), a CSV or TSV file with a column statement and optionally
            category, a text file with a stereotype in each line, or a run: its statements that
            count.
        output: a folder for statements.csv, probes.csv, data-statement.md and manifest.json, and in
            `run_exhibits` for what the filters took and the set's tables (figure 4, tables 3 and
            5);
            None: write nothing.
        identities: "sofa" (the 407 of the paper), a file (see `kgbias.gather_sets`), or None: the
            groups of the run.
        models: specs of the models whose mean perplexity cuts the least likely statements; none:
            skip this filter. The paper uses the models that it tests.
        acceptability: the scorer that judges good English: offline, or as in the paper
            hf:textattack/distilbert-base-uncased-CoLA:LABEL_1; None: skip this filter.
        min_acceptability: the lowest acceptability to keep.
        cut: the share of least likely statements to cut.
        column: a table's column of stereotypes.
        progress: as for `kgbias.open`.
        selection: for a run, which statements count (`arm`, `min_acceptability`, ...).
        opening: how to open the models, as for `kgbias.open_scorer`.

    Raises:
        UsageError: a number out of range, or no statement is left.
        DataError: a file cannot be read.
        MissingExtra: the extra `reader` (spaCy and its English model) is not installed.
    """
    from kgbias.models.english import load_english
    from kgbias.probe.build import StereotypeRules, build_sofa_set, read_stereotypes
    from kgbias.probe.sets import read_identities
    from kgbias.report.save import save_built

    if identities is None and not isinstance(source, Run):
        raise UsageError("`identities` is needed: a file has no groups of its own")
    parser = load_english("tagger", "parser", "attribute_ruler", "lemmatizer")
    groups: Mapping[str, Sequence[str]] = {}
    targets: list[str] = []
    if isinstance(source, Run):
        if column is not None:
            raise UsageError("`column` applies to tables, and the source is a run")
        groups = _groups_by_category(source.stored)
        targets = [name for g in source.stored.groups for name in (g.name, *g.variants)]
        renamed = isinstance(identities, str) and identities == "sofa"
        stereotypes = _run_stereotypes(source.stored, renamed, Selection(**(selection or {})))
    else:
        with as_table_file(source, ("statement", "stereotype", "text")) as file:
            stereotypes = read_stereotypes(file, column)
    if identities is not None:
        groups = read_identities(identities)
    targets += [name for names in groups.values() for name in names]
    settings = {
        "identities": _describe_identities(identities),
        "models": [model_name(m) for m in as_models(models)],
        "acceptability": acceptability,
        "min_acceptability": min_acceptability,
        "cut": cut,
    }
    with show_progress(progress) as reporter, ExitStack() as opened:
        scorers = []
        for spec in as_models(models):
            scorers.append(scorer := open_text_scorer(spec, opening, reporter))
            if isinstance(spec, str) and hasattr(scorer, "close"):
                opened.enter_context(closing(scorer))
        built = build_sofa_set(
            stereotypes,
            groups,
            StereotypeRules(parser, targets),
            judge=_load_judge(acceptability),
            threshold=min_acceptability,
            scorers=scorers,
            cut=cut,
            settings=settings,
            progress=reporter,
        )
        if output is not None:
            built.write(Path(output), progress=reporter)
            save_built(built, Path(output) / "exhibits", progress=reporter)
    return built


def _describe_identities(identities: Texts | None) -> str:
    """Which identities there are, for the settings of a set."""
    if identities is None:
        return "the run's"
    return str(identities) if isinstance(identities, str | Path) else "a table in memory"


def _load_judge(spec: str | None) -> "Judge | None":
    if spec in (None, "none"):
        return None
    from kgbias.measure.scorers import load_scorer

    scorer = load_scorer("acceptability", spec)
    return lambda texts: [j.value if j else 0.0 for j in scorer.score(texts)]


def _groups_by_category(run: StoredRun) -> dict[str, list[str]]:
    """A run's groups by category."""
    groups: dict[str, list[str]] = {}
    for group in run.groups:
        groups.setdefault(group.category, []).append(group.name)
    return groups


def _run_stereotypes(run: StoredRun, renamed: bool, selection: Selection) -> "Stereotypes":
    from kgbias.probe.build import CRAWL_CATEGORIES, map_categories

    category = {group.id: group.category for group in run.groups}
    statements = (
        (category[t.group_id], f"{t.predicate} {t.object}")
        for t in select_statements(run, selection).triples
    )
    return map_categories(
        statements, CRAWL_CATEGORIES if renamed else {}, f"the run {run.name}", keep_others=True
    )
