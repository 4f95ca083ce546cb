"""Comparisons of runs and of models.

Runs of different kinds are compared rightly, or refused in one line
(tests/integration/test_kinds_together.py).
"""

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack
from urllib.parse import quote

from kgbias.errors import UsageError
from kgbias.graph.selection import Selection, need_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import ProbeRun
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows, file_rows
from kgbias.io.tables_in_memory import Texts
from kgbias.io.text import format_p_value
from kgbias.io.wording import how
from kgbias.parallel import LOCAL_EXECUTOR, open_executor
from kgbias.parameters import Names, PathLike, ScorerOptions, SelectionOptions, as_names
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.study.context import Context, StudyPart
from kgbias.study.opening import as_models, iter_scorers, output_paths
from kgbias.study.records import PAIR_COLUMNS, corrected_columns
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.compare.families import GroupTest
    from kgbias.compare.model_contrasts import ModelContrast, ModelRanking, ModelSamples
    from kgbias.compare.run_pairs import RunComparison
    from kgbias.compare.sofa import SofaComparison
    from kgbias.probe import SetProbes
    from kgbias.probe.set_probes import Sets
    from kgbias.study.languages import LanguageBeliefs
    from kgbias.study.opening import Models

_CONTRAST_COLUMNS = (
    Column("measure"),
    Column("group"),
    *PAIR_COLUMNS,
    Column("p_value", format_p_value, get=attrgetter("p")),
    Column("p_adjusted", format_p_value),
    Column("equivalent_p_value", format_p_value, get=attrgetter("equivalent_p")),
    Column("equivalent_p_adjusted", format_p_value, get=attrgetter("equivalent_adjusted")),
    Column("margin", ".3g"),
    Column("detectable", ".3g"),
    Column("paired"),
    *corrected_columns("corrected"),
    Column("verdict"),
)
_RANKING_COLUMNS = (
    Column("measure"),
    Column("group"),
    Column("model", get=lambda ranking: ranking.models[0]),
    Column("rank", "d", get=lambda ranking: 1),
    Column("mean", ".3g", get=lambda ranking: ranking.means[0]),
    Column(
        "probabilities",
        get=lambda ranking: dict(zip(ranking.models, ranking.probabilities, strict=True)),
    ),
)


@dataclass(frozen=True, slots=True, repr=False)
class Contrasts(Result):
    """Models compared.

    Attributes:
        tests: every pair of models in every group and measure
            (`kgbias.compare.model_contrasts.ModelContrast`).
        ranks: the models in each group and measure, highest mean first, each with the probability
            of each rank (`kgbias.compare.model_contrasts.ModelRanking`).
    """

    tests: Rows["ModelContrast"]
    ranks: Rows["ModelRanking"]

    @classmethod
    def of(
        cls, tests: Sequence["ModelContrast"], rankings: Sequence["ModelRanking"]
    ) -> "Contrasts":
        return cls(
            Rows(tests, _CONTRAST_COLUMNS),
            Rows(rankings, _RANKING_COLUMNS),
        )

    def draw(self, ax: Any = None) -> Any:
        """Draw the differences with their intervals into axes of matplotlib (None: a figure of
        their own); returns the axes."""
        from kgbias.io.drawing import draw_estimates

        estimates = [
            (f"{t.group}: {t.measure}, {t.first} − {t.second}", t.difference) for t in self.tests
        ]
        return draw_estimates(estimates, "difference of means", ax)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "family": self.tests[0].family,
            "correction": self.tests[0].correction,
            "contrasts": self.tests.records(),
            "ranks": [
                {
                    "measure": r.measure,
                    "group": r.group,
                    "models": [
                        {"model": model, "mean": mean, "probabilities": list(shares)}
                        for model, mean, shares in zip(
                            r.models, r.means, r.probabilities, strict=True
                        )
                    ],
                }
                for r in self.ranks
            ],
        }

    def as_rows(self) -> Rows["ModelContrast"]:
        """The tests."""
        return self.tests


class StudyComparison(StudyPart):
    """Comparisons of runs and of models; a part of `Study`."""

    def compare_runs(
        self,
        *runs: str | Run,
        examples: int = 5,
        groups: Names = (),
        measures: Names = (),
        **selection: Unpack[SelectionOptions],
    ) -> Rows["RunComparison"]:
        """Compare every pair of these runs, by the statements that count
        (`Run.counted_statements`): what one says and the other does not, and whether they rank the
        groups alike. `compare_models` tests how the groups differ.

        Args:
            runs: two or more runs or their names.
            examples: how many of the statements found in only one run to list.
            groups: only these groups in the ranks (default: all).
            measures: only these measures in the ranks (default: all).
            selection: as for `Run.counted_statements`; `arm` selects one in runs with several arms.

        Frame columns: first, second, shared_groups, statements_first, statements_second,
        statements_both, jaccard; for each measure MEASURE_tau (rank agreement of the groups),
        MEASURE_tau_low, MEASURE_tau_high and MEASURE_p_value; and asked_apart, a sentence that says
        in what the runs were not asked alike.

        Examples:
            >>> (both,) = study.compare_runs("peoples", "collected").records()
            >>> print(both["shared_groups"], both["statements_first"], both["statements_both"])
            1 5 1
        """
        from kgbias.compare.run_pairs import compare_runs

        if len(runs) < 2:
            raise UsageError("compare_runs takes two runs or more; of one: Run.compare_groups()")
        stored_runs = [self._context.find(run) for run in runs]
        for stored_run in stored_runs:
            need_statements(stored_run)
        with self.working() as progress:
            comparisons = compare_runs(
                stored_runs,
                examples=examples,
                groups=as_names(groups),
                measures=as_names(measures),
                selection=Selection(**selection),
                progress=progress,
            )
        return comparison_rows(comparisons)

    def compare_models(
        self,
        *runs: str | Run,
        probes: bool = False,
        groups: Names = (),
        measures: Names = (),
        margin: float | None = None,
        correction: str = "holm",
        seed: int = 0,
        **selection: Unpack[SelectionOptions],
    ) -> "Contrasts":
        """Compare two or more models over the same groups: is a group's mean different, or the
        same to within a margin, and how surely does each model rank highest?

        Every pair of models in every group and measure is one family, over which p-values are
        corrected. Crawls are compared by the kinds of prompts that both asked, probes by the
        statements that both were probed with.

        Args:
            runs: the runs, one for each model; with `probes`, the runs whose statements were
                probed (none: the newest).
            probes: compare the models that probed the runs, not those that were crawled.
            groups: only these groups (default: all that two models have).
            measures: only these measures; for probes "affinity", by how many bits a statement is
                likelier after the group than after the average group, and "affinity_to_negative".
            margin: a difference below it counts as none, in units of the measure (None: 0.05 of
                its range, or 0.2 standard deviations if it has no range).
            correction: "holm" or "bh".
            seed: the random seed of resamples and permutations.
            selection: which statements of crawls count, as for `Run.counted_statements`.
        """
        from kgbias.compare.model_contrasts import (
            contrast_models,
            read_crawl_samples,
            read_probe_samples,
        )
        from kgbias.compare.run_pairs import read_single_arm
        from kgbias.compare.run_setup import check_comparable

        stored_runs = [self._context.find(run) for run in runs]
        if probes:
            stored_runs = stored_runs or [self._context.find()]
            subjects = give_distinct_names(
                [(r, read_probe_samples(r, p)) for r in stored_runs for p in r.find_all(ProbeRun)]
            )
            if len(subjects) < 2:
                names = ", ".join(run.name for run in stored_runs)
                problem = (
                    "one model; probe it with another" if subjects else "no model; it needs two"
                )
                probes_it = how(
                    "run.probe(MODEL)", f"kgbias probe run {stored_runs[0].name} --model SPEC"
                )
                raise UsageError(f"{names}: probed by {problem}: {probes_it}")
        else:
            check_comparable(stored_runs, as_names(measures))
            subjects = [
                read_crawl_samples(run, read_single_arm(run, Selection(**selection)))
                for run in stored_runs
            ]
        tests, rankings = contrast_models(
            subjects,
            groups=as_names(groups),
            measures=as_names(measures),
            margin=margin,
            correction=correction,
            seed=seed,
        )
        if not probes:
            tests = _correct_by_labels(stored_runs, tests, Selection(**selection))
        return Contrasts.of(tests, rankings)

    def compare_languages(
        self,
        first: str | Run,
        second: str | Run,
        *,
        model: str | None = None,
        parallel: Texts | None = None,
        **selection: Unpack[SelectionOptions],
    ) -> "LanguageBeliefs":
        """Compare what one model believes of the same groups in two languages, from what
        `Run.evidence` stored of two crawls with packs of these languages
        (docs/how-to/prompts.md).

        Args:
            first: a run or its name.
            second: a run in another language, or its name.
            model: the model that was asked about both (None: that of the first crawl, if it was).
            parallel: a table with a column for each language (`de`, `en`), whose rows say the same.
                None: statements are the same if they are each other's nearest in the vectors of
                multilingual-e5-small (the extra `languages`).
            selection: which statements count, as for `Run.counted_statements`.

        Frame columns: category, group, other_group, statement, other_statement, cosine, lift,
        other_lift, shown_in (the languages in which it is believed), difference (of the lifts) and
        q_value (of the difference, corrected over all pairs); lifts and differences with their
        ends and n.
        """
        from kgbias.study.languages import compare_stored_languages

        runs = [self._context.find(run) for run in (first, second)]
        with self.working():
            return compare_stored_languages(
                *runs, model=model, parallel=parallel, selection=Selection(**selection)
            )

    def report(
        self,
        runs: str | Run | Sequence[str | Run] = (),
        path: PathLike = "report.html",
        *,
        explorer: PathLike | None = None,
        parallel: Texts | None = None,
        **selection: Unpack[SelectionOptions],
    ) -> Path:
        """Write the report of a run, or of two to six side by side, as one HTML page that works
        offline; of two in different languages, what one model believes in each
        (`compare_languages`). Returns its path. `Run.report` writes that of one run; a
        comparison of several belongs to none of them.

        Args:
            runs: runs or their names; none: the newest. One: findings, figures, graph and
                statements. Several: small multiples, ranks, overlap and differences.
            path: the page.
            explorer: a file for the runs' explorer; the report links to its views.
            parallel: of two languages, as for `compare_languages`.
            selection: which statements count, as for `Run.counted_statements`.
        """
        from kgbias.report import write_multi_run, write_report, write_two_languages
        from kgbias.study.languages import are_in_two_languages, compare_stored_languages

        path = Path(path)
        stored_runs = _resolve_runs(self._context, runs)
        criteria = Selection(**selection)
        if len(stored_runs) == 2 and are_in_two_languages(*stored_runs):
            if explorer is not None:
                raise UsageError("`explorer` has no effect here, only with runs in one language")
            with self.working(whole=True):
                both = compare_stored_languages(
                    *stored_runs, model=None, parallel=parallel, selection=criteria
                )
                write_two_languages(both.comparisons, both.title, both.heading(), path)
            return path
        if parallel is not None:
            raise UsageError("`parallel` has no effect here, only with runs in two languages")
        explorer_url = ""
        if explorer is not None:
            if Path(explorer).resolve() == path.resolve():
                raise UsageError("the report and the explorer need two different files")
            self.explore(runs, explorer, **selection)
            # Relative, so that both pages can be moved together.
            relative = os.path.relpath(Path(explorer).resolve(), path.resolve().parent)
            explorer_url = quote(Path(relative).as_posix())
        with self.working(whole=True) as progress:
            if len(stored_runs) == 1:
                write_report(
                    stored_runs[0],
                    path,
                    selection=criteria,
                    progress=progress,
                    explorer=explorer_url,
                )
            else:
                write_multi_run(
                    stored_runs, path, selection=criteria, progress=progress, explorer=explorer_url
                )
        return path

    def figures(
        self,
        runs: str | Run | Sequence[str | Run] = (),
        folder: PathLike = "figures",
        *,
        correction: str = "holm",
        **selection: Unpack[SelectionOptions],
    ) -> Rows[Path]:
        """Write the figures of a run, or of two to six side by side, as SVG, PDF and PNG, each with
        its numbers as a LaTeX table, and manifest.json. Returns the files, as paths.
        `Run.figures` writes those of one run; a comparison of several belongs to none of them.

        Frame columns: file, folder.

        Args:
            runs: as for `report`.
            folder: the folder.
            correction: the correction of p-values over a family of tests: "holm" or "bh".
            selection: which statements count, as for `Run.counted_statements`.
        """
        from kgbias.report.save import save_figures, save_multi_run

        stored_runs, criteria = _resolve_runs(self._context, runs), Selection(**selection)
        with self.working(whole=True) as progress:
            if len(stored_runs) == 1:
                files = save_figures(
                    stored_runs[0],
                    Path(folder),
                    correction=correction,
                    selection=criteria,
                    progress=progress,
                )
            else:
                files = save_multi_run(
                    stored_runs,
                    Path(folder),
                    correction=correction,
                    selection=criteria,
                    progress=progress,
                )
        return file_rows(files)

    def explore(
        self,
        runs: str | Run | Sequence[str | Run] = (),
        path: PathLike = "explorer.html",
        **selection: Unpack[SelectionOptions],
    ) -> Path:
        """Write the explorer: the whole graph of the runs with its provenance, in one HTML page
        that works offline from a file. Returns its path. `Run.explore` instead shows one run in a
        notebook, and writes no file.

        Args:
            runs: runs or their names; none: the newest. With several, the page shows one at a time
                or what one says and another does not.
            path: the page.
            selection: `arm`: only this arm. The page holds all statements; `min_acceptability` and
                `exclude_echoes` set its filters when it is opened, by default as in
                `Run.counted_statements`.
        """
        from kgbias.explore import write_explorer

        stored_runs = _resolve_runs(self._context, runs)
        with self.working(whole=True) as progress:
            write_explorer(
                stored_runs, Path(path), selection=Selection(**selection), progress=progress
            )
        return Path(path)

    def serve(
        self,
        runs: str | Run | Sequence[str | Run] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 8765,
        token: str | None = None,
        label: Names = (),
        masked: bool = False,
        listening: Callable[[str], None] | None = None,
        **selection: Unpack[SelectionOptions],
    ) -> None:
        """Serve the explorer of the runs until Ctrl-C: the page of `explore`, for graphs too large
        for a file, for teams, and for a crawl that is running: new statements appear, with how far
        the crawl is and what it took. It only reads the store, except with `label`.

        Args:
            runs: as in `explore`.
            host: the address to listen on; any but this machine's own needs a token.
            port: the port; 0 for any free one.
            token: a secret of at least 16 characters that a browser must present once
                (`?token=...`). None: that of the environment variable KGBIAS_SERVE_TOKEN; without
                either, only this machine is served.
            label: measures, such as "regard": the path /label then has a page on which several
                raters can label statements of the run (one run only). This writes to the store, and
                always needs a token.
            masked: hide the group's name on that page.
            listening: called with the address as soon as it answers. While the statements are
                being read, it answers that they are.
            selection: as in `explore`. With more than 50,000 statements, echoes are found only
                with `exclude_echoes`, and the page stays as it was read at the start.

        Raises UsageError if it cannot listen, or must not without a token.
        """
        from kgbias.explore.server import ExplorerServer, resolve_token
        from kgbias.explore.writing_pages import WRITING_PAGES

        stored_runs, measures = _resolve_runs(self._context, runs, running=True), as_names(label)
        if measures and len(stored_runs) > 1:
            raise UsageError("statements of one run are labelled at a time: name one run")
        if measures and resolve_token(host, token) is None:
            raise UsageError(
                "a page that writes needs a token: "
                "export KGBIAS_SERVE_TOKEN=$(openssl rand -hex 16)"
            )
        writing = None
        if measures:
            open_page = WRITING_PAGES.import_part("label", WRITING_PAGES["label"].opener)
            writing = open_page(stored_runs[0], measures, masked=masked)
        with (
            ExplorerServer(host=host, port=port, token=token) as server,
            suppress(KeyboardInterrupt),
        ):
            if listening is not None:
                listening(server.url)
            with self.working() as progress:
                criteria = Selection(**selection)
                server.show_runs(
                    stored_runs, selection=criteria, progress=progress, writing=writing
                )
            server.handle_jobs()

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
    ) -> Rows["SetProbes"]:
        """Probe groups and statements with one model or several, one after another: each is loaded
        once, and unloaded before the next. The score of each probe is kept in the answer log (or in
        `output`), so repeat the call to continue where it stopped; each model's SoFa is kept with
        the set.

        Frame columns: model, revision, sofa, sofa_low, sofa_high. Each row converts too, to its
        categories.

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
        from kgbias.graph.sofa import ProbeSet
        from kgbias.probe import probe_sets
        from kgbias.probe.result import (
            build_sofa_result,
            model_rows_of_set_probes,
            save_sofa_result,
        )

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
                probed = probe_sets(
                    scorer,
                    sets,
                    measure=by,
                    output=files[place],
                    store=store,
                    as_published=as_published,
                    seed=seed,
                    progress=progress,
                )
                results.append(probed)
                if not as_published:
                    result = build_sofa_result(
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
        return model_rows_of_set_probes(results)

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


def _resolve_runs(
    context: Context, runs: str | Run | Sequence[str | Run], *, running: bool = False
) -> list[StoredRun]:
    """The runs, or the newest if none is named. Raises DataError for a crawl without statements,
    unless it may still be `running`."""
    names: Sequence[str | Run | None] = [runs] if isinstance(runs, str | Run) else list(runs)
    stored_runs = [context.find(run) for run in names or [None]]
    for run in stored_runs:
        if not (running and run.status == "running"):
            need_statements(run)
    return stored_runs


def give_distinct_names(
    subjects: Sequence[tuple[StoredRun, "ModelSamples"]],
) -> list["ModelSamples"]:
    """The subjects with distinct names: those of the same model also name their run and, if that is
    the same too, a number."""
    name_counts = Counter(s.name for _, s in subjects)
    distinct: list[ModelSamples] = []
    for run, subject in subjects:
        name = subject.name if name_counts[subject.name] == 1 else f"{subject.name} of {run.name}"
        used_names = {s.name for s in distinct}
        candidates = (name, *(f"{name} ({n})" for n in range(2, len(subjects) + 2)))
        free_name = next(candidate for candidate in candidates if candidate not in used_names)
        distinct.append(replace(subject, name=free_name))
    return distinct


def comparison_rows(comparisons: Sequence["RunComparison"]) -> Rows["RunComparison"]:
    """Comparisons of pairs of runs, with their columns."""
    measures = dict.fromkeys(a.measure for c in comparisons for a in c.agreement)
    columns = [
        Column("first", get=attrgetter("first.name")),
        Column("second", get=attrgetter("second.name")),
        Column("shared_groups", "d"),
        Column("statements_first", "d", get=attrgetter("overlap.first")),
        Column("statements_second", "d", get=attrgetter("overlap.second")),
        Column("statements_both", "d", get=attrgetter("overlap.both")),
        Column("jaccard", ".3f", get=attrgetter("overlap.jaccard")),
    ]
    for measure in measures:
        columns += _rank_agreement_columns(measure)
    columns.append(Column("asked_apart", joiner="; ", get=_list_differences))
    return Rows(comparisons, columns)


def _rank_agreement_columns(measure: str) -> list[Column]:
    """How far two runs rank the groups alike by a measure: Kendall's tau-b and its p."""

    def agreement(comparison: "RunComparison") -> Any:
        return next((a for a in comparison.agreement if a.measure == measure), None)

    def tau(comparison: "RunComparison") -> Estimate | None:
        found = agreement(comparison)
        return found.tau if found else None

    def p_value(comparison: "RunComparison") -> float:
        found = agreement(comparison)
        return found.p if found else math.nan

    return [
        Column(f"{measure}_tau", "+.3f", interval=True, get=tau),
        Column(f"{measure}_p_value", format_p_value, get=p_value),
    ]


def _list_differences(comparison: "RunComparison") -> str:
    """How the two runs were asked apart."""
    return "; ".join(comparison.asked_apart)


def comparison_records(
    comparisons: Sequence["RunComparison"], models: Contrasts
) -> list[dict[str, Any]]:
    """The comparisons of pairs of runs as data, each with its models' contrasts."""
    contrasts = models.as_dict()
    records = []
    for comparison in comparisons:
        pair = {comparison.first.name, comparison.second.name}
        record = _comparison_record(comparison)
        record["contrasts"] = [
            t for t in contrasts["contrasts"] if {t["first"], t["second"]} == pair
        ]
        record["ranks"] = contrasts["ranks"]
        record["family"] = contrasts["family"]
        records.append(record)
    return records


def _comparison_record(comparison: "RunComparison") -> dict[str, Any]:
    def sentence_counts(triples: Sequence[Any]) -> list[dict[str, Any]]:
        return [{"sentence": t.sentence, "count": t.count} for t in triples]

    return {
        "first": comparison.first.name,
        "second": comparison.second.name,
        "asked_apart": list(comparison.asked_apart),
        "shared_groups": comparison.shared_groups,
        "statements": {
            "first": comparison.overlap.first,
            "second": comparison.overlap.second,
            "both": comparison.overlap.both,
            "jaccard": comparison.overlap.jaccard,
            "only_first": sentence_counts(comparison.overlap.only_first),
            "only_second": sentence_counts(comparison.overlap.only_second),
        },
        "rank_agreement": [
            {"measure": a.measure, "tau_b": a.tau.as_dict(), "p_value": nan_to_none(a.p)}
            for a in comparison.agreement
        ],
    }


def _correct_by_labels(
    runs: Sequence[StoredRun], tests: "list[ModelContrast]", selection: Selection
) -> "list[ModelContrast]":
    """The contrasts of crawls with the differences that labels correct."""
    from kgbias.compare.model_contrasts import attach_label_contrasts
    from kgbias.compare.run_pairs import read_single_arm
    from kgbias.measure.ppi_figures import CorrectedRunDifferences

    if not any(run.store.labels() for run in runs):
        return tests
    sides = [(run, read_single_arm(run, selection)) for run in runs]
    return attach_label_contrasts(tests, CorrectedRunDifferences(sides, selection).difference)


def group_test_record(test: "GroupTest") -> dict[str, Any]:
    """A test as data; differences are of means, first minus second."""
    return {
        "arm": test.arm,
        "measure": test.measure,
        "category": test.category,
        "first": test.first,
        "second": test.second,
        "n": list(test.n),
        "means": [nan_to_none(mean) for mean in test.means],
        "difference": test.difference.as_dict(),
        "forms": {name: e.as_dict() for name, e in test.forms.items()},
        "shrunken": test.shrunken.as_dict(),
        "p_value": nan_to_none(test.p),
        "p_adjusted": nan_to_none(test.p_adjusted),
        "omnibus_p_value": nan_to_none(test.omnibus_p),
        "correction": test.correction,
        "family": test.family,
        "detectable": nan_to_none(test.detectable),
        "differs": test.differs,
        "verdict": test.verdict,
    }
