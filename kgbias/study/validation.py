"""How far the method and its scorers can be trusted: the tool where the truth is known."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from kgbias.crawl.config import DEFAULT_ROUNDS, CrawlConfig
from kgbias.crawl.seeds import choose_seeds
from kgbias.errors import MissingExtra, UsageError
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.tables_in_memory import Table, as_table_file
from kgbias.packs import DEFAULT, load_pack
from kgbias.parameters import Names, PathLike, as_names
from kgbias.study.context import StudyPart
from kgbias.study.records import VALUE_COLUMN

if TYPE_CHECKING:
    from kgbias.calibrate import FalsePositives, FigureCoverage, RowResult
    from kgbias.measure.labelled_sets import LabelledSet
    from kgbias.measure.precision import LabelAgreement as CheckedSet
    from kgbias.measure.price import ScorersLike, ScoringPrice
    from kgbias.measure.scorer_reliability import ScorerReliability
    from kgbias.measure.scorers import ScorerLike


@dataclass(frozen=True, slots=True, repr=False)
class CalibrationResult(Result):
    """The result of a calibration.

    Attributes:
        rows: what was found against what was planted, a row for each question.
        world: the version of the reference world.
        seeds: the number of crawls.
        report: the written report, if any.
    """

    rows: Rows["RowResult"]
    world: str
    seeds: int
    report: Path | None = None

    def as_rows(self) -> Rows[Any]:
        """What was found."""
        return self.rows


@dataclass(frozen=True, slots=True, repr=False)
class CoverageResult(Result):
    """The coverage of intervals, and the false positives of tests.

    Attributes:
        rows: how many of each figure's 95% intervals contain its long-run value.
        nulls: how often each test tells apart the groups of a planted null at the 5% level.
        world: the version of the reference world.
        crawls: the number of crawls.
        statements: the mean number of statements about a group in each crawl.
    """

    rows: Rows["FigureCoverage"]
    nulls: "Sequence[FalsePositives]"
    world: str
    crawls: int
    statements: float

    def as_rows(self) -> Rows[Any]:
        """What was found."""
        return self.rows


@dataclass(frozen=True, slots=True, repr=False)
class ScorerComparison(Result):
    """The scorers at hand and the sets of labels that they were read against.

    Attributes:
        rows: the scorers, by measure.
        sets: who labelled each set, when, by what guide, and under what licence.
    """

    rows: "tuple[ScorerReliability, ...]"
    sets: "tuple[LabelledSet, ...]"

    def records(self) -> list[dict[str, Any]]:
        """A row for each scorer, set and group ("" for all), and one for a scorer without labels.
        Columns: measure, scorer, version, license, set, by, group, n, unjudged, same, same_low,
        same_high, floor, kappa, low, high, rho, learnt, name_effect, name."""
        return [
            _agreement_record(row, each) for row in self.rows for each in (row.checked or (None,))
        ]

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The scorers, as `records` has them."""
        return Rows(self.records(), columns=_AGREEMENT_COLUMNS)


class StudyValidation(StudyPart):
    """How far the method and its judges can be trusted; a part of `Study`."""

    def calibrate(
        self,
        *,
        prompts: PathLike = DEFAULT,
        category: Names = (),
        seed: int = CrawlConfig.seed,
        seeds: int = 1,
        iterations: int = DEFAULT_ROUNDS,
        regard: str = "offline",
        toxicity: str = "offline",
        report: PathLike | None = None,
    ) -> CalibrationResult:
        """Crawl and measure the reference model, whose beliefs are known, and compare what was
        found with what was planted in it.

        Args:
            prompts: the prompt pack, of which only the prompts are used; everything else is as in
                the paper, since truncation and echoes would change what there is to find.
            category: peoples or faiths (default: both).
            seed: the random seed of the first crawl.
            seeds: the number of crawls, each with the next seed; their spread is given too.
            iterations: rounds of expansion in each crawl. More than the published 4 show what the
                method finds in more statements.
            regard: the scorer of regard, as for `Run.measure`.
            toxicity: the scorer of toxicity.
            report: a file for the first crawl's report, with a section on the calibration.
        """
        from kgbias.calibrate import calibrate
        from kgbias.measure.scorers import load_scorer
        from kgbias.models import open_model

        config = _reference_config(prompts, as_names(category), seed, iterations)
        scorers = [load_scorer("regard", regard), load_scorer("toxicity", toxicity)]
        with (
            self.working() as progress,
            closing(open_model("reference", notify=progress.note)) as model,
        ):
            store = self._context.writable()
            table, calibrations = calibrate(config, model, scorers, store, progress, seeds=seeds)
        report_path = None if report is None else Path(report)
        if report_path is not None:
            from kgbias.report import write_report
            from kgbias.report.calibration import calibration_section

            # The world decides what is true of its peoples, and so what makes sense.
            all_statements = Selection(min_acceptability=0)
            section = calibration_section(table, calibrations[0])
            run = StoredRun(store, calibrations[0].run)
            write_report(run, report_path, extra_sections=[section], selection=all_statements)
        return CalibrationResult(
            Rows(table, _CALIBRATION_COLUMNS),
            calibrations[0].truth.hash,
            seeds,
            report_path,
        )

    def coverage(
        self,
        crawls: int,
        *,
        prompts: PathLike = DEFAULT,
        category: Names = ("faiths",),
        seed: int = CrawlConfig.seed,
        iterations: int = 2,
        regard: str = "offline",
        toxicity: str = "offline",
    ) -> CoverageResult:
        """Crawl the reference model many times, and count how many of the crawls' 95% intervals
        contain the model's own long-run value, that of all crawls together. The crawls stay in the
        study's store; repeat the call to continue where it stopped.

        Args:
            crawls: the number of crawls, at least 2, each with the next seed; 200 take hours.
            prompts: the prompt pack, as for `calibrate`.
            category: peoples or faiths; both together take four times as long.
            seed: the random seed of the first crawl.
            iterations: rounds of expansion in each crawl.
            regard: the scorer of regard, as for `Run.measure`.
            toxicity: the scorer of toxicity.
        """
        from kgbias.calibrate import measure_coverage
        from kgbias.crawl.plans import price_crawl
        from kgbias.measure.scorers import load_scorer
        from kgbias.models import open_model
        from kgbias.reference import load_truth

        if crawls < 2:
            raise UsageError("`crawls` must be at least 2: the long-run value is their mean")
        config = _reference_config(prompts, as_names(category), seed, iterations)
        scorers = [load_scorer("regard", regard), load_scorer("toxicity", toxicity)]
        with (
            self.working() as progress,
            closing(open_model("reference", notify=progress.note)) as model,
        ):
            store = self._context.writable()
            rows, nulls = measure_coverage(config, model, scorers, store, progress, crawls=crawls)
        requests_per_group = price_crawl(config).requests / len(config.groups)
        return CoverageResult(
            Rows(rows, _COVERAGE_COLUMNS),
            nulls,
            load_truth().hash,
            crawls,
            requests_per_group,
        )

    @overload
    def scorers(
        self,
        *sets: Table,
        scorers: "Mapping[str, ScorersLike | None] | None" = None,
        dry_run: Literal[False] = False,
    ) -> ScorerComparison: ...

    @overload
    def scorers(
        self,
        *sets: Table,
        scorers: "Mapping[str, ScorersLike | None] | None" = None,
        dry_run: Literal[True],
    ) -> Rows["ScoringPrice"]: ...

    def scorers(
        self,
        *sets: Table,
        scorers: "Mapping[str, ScorersLike | None] | None" = None,
        dry_run: bool = False,
    ) -> "ScorerComparison | Rows[ScoringPrice]":
        """Every scorer at hand, with how far it agrees with each set of labels at hand, over all of
        it and by group, and whether it reacts to the name of a group.

        At hand are the labelled statements that ship, the sets in these files, and the labels of
        the store's statements; the scorers that ship, those in the store, whose scores are taken as
        they are, and those named, which read every set of their measure. Others, which would need a
        download, a server or a GPU, are not opened.

        Figures are of the labelled statements as they are, not weighted to what any model says, and
        they take whoever labelled for right. A scorer that learnt from a set is flattered by it
        (`learnt`).

        Args:
            sets: files of labelled statements (`kgbias.measure.labelled_sets`): a table with a
                card, or HateCheck, SeeGULL or the regard of Sheng et al. 2019 as they were
                published.
            scorers: more scorers, by measure, as for `Run.measure`.
            dry_run: open and ask nothing, and return what each scorer would read and ask; columns:
                those of `kgbias.measure.price.ScoringPrice`.

        Raises:
            DataError: a file that is no set of labels; the message says what is wrong, and where.
        """
        if dry_run:
            return _price_scorers(sets, scorers)
        from kgbias.measure.labelled_sets import read_shipped_set
        from kgbias.measure.scorer_reliability import (
            ScorerReliability,
            check_scorer,
            merge_reliabilities,
            read_stored_scores,
            shipped_scorers,
        )
        from kgbias.measure.scorers import load_scorer

        labelled = _read_sets(sets)
        specs_by_measure = _scorer_specs(shipped_scorers(), scorers)
        labelled = [*filter(None, map(read_shipped_set, specs_by_measure)), *labelled]
        store = self._context.existing_store
        with self.working() as progress:
            in_store, stored_results = (
                read_stored_scores(store, "the store", progress) if store else ([], {})
            )
            progress.stage("scorers", sum(map(len, specs_by_measure.values())))
            results = []
            for measure, specs in specs_by_measure.items():
                for spec in specs:
                    try:
                        scorer = load_scorer(measure, spec, log=store)
                        results.append(
                            check_scorer(scorer, _spec_name(spec), labelled, _trial_names())
                        )
                    except MissingExtra as error:
                        results.append(
                            ScorerReliability(
                                measure, _spec_name(spec), "", "", None, why=str(error)
                            )
                        )
                    progress.advance()
        return ScorerComparison(
            tuple(merge_reliabilities(results, stored_results)), (*labelled, *in_store)
        )


def _price_scorers(
    sets: Sequence[Table], scorers: "Mapping[str, ScorersLike | None] | None"
) -> Rows["ScoringPrice"]:
    from kgbias.measure.labelled_sets import read_shipped_set
    from kgbias.measure.price import ScoringPrice, estimate_scoring
    from kgbias.measure.scorer_reliability import count_trial_texts, shipped_scorers
    from kgbias.measure.scorers import check_spec

    specs_by_measure = _scorer_specs(shipped_scorers(), scorers)
    labelled = [*filter(None, map(read_shipped_set, specs_by_measure))]
    labelled += _read_sets(sets)
    scorings = []
    for measure, specs in specs_by_measure.items():
        texts = sum(len(one.statements) for one in labelled if one.measure == measure)
        for spec in specs:
            if isinstance(spec, str):
                check_spec(measure, spec)
            names_tried = count_trial_texts(measure, _spec_name(spec), _trial_names())
            scorings.append(
                estimate_scoring(measure, _spec_name(spec), texts, name_texts=names_tried)
            )
    return Rows(scorings, ScoringPrice)


DEFAULT_CRAWLS = 200  # of the command line's --coverage


def coverage_store_path() -> Path:
    """The store where the command line keeps the crawls of `Study.coverage` if none is named, which
    lets it be stopped and continued."""
    from kgbias.models.gguf import cache_folder

    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "coverage.db"


def _reference_config(
    prompts: PathLike, category: Sequence[str], seed: int, iterations: int
) -> CrawlConfig:
    """The configuration of a crawl, in which packs differ only in their prompts: what is planted
    comes out under plain temperature sampling, and an answer that agrees with an example is as
    good as any, since it was drawn without the example."""
    from kgbias.reference.world import INITIAL_PREDICATES

    groups = tuple(choose_seeds("reference", category))
    return CrawlConfig(
        seeds=groups,
        pack=load_pack(prompts),
        seed=seed,
        initial_predicates=INITIAL_PREDICATES,
        iterations=iterations,
    )


def _scorer_specs(
    built_in: Mapping[str, list[str]], more: "Mapping[str, ScorersLike | None] | None"
) -> "dict[str, list[ScorerLike]]":
    """Our own scorers and those named, by measure. Raises UsageError for an unknown measure."""
    from kgbias.measure.price import list_specs
    from kgbias.measure.scorers import check_measure

    specs_by_measure: dict[str, list[ScorerLike]] = {
        m: list(specs) for m, specs in built_in.items()
    }
    for measure, specs in list_specs(more or {}).items():
        check_measure(measure)
        known_specs = specs_by_measure.setdefault(measure, [])
        known_specs += [spec for spec in specs if spec not in known_specs]
    return specs_by_measure


def _read_sets(sets: Sequence[Table]) -> "list[LabelledSet]":
    """The labelled sets of tables."""
    from kgbias.measure.labelled_sets import read_sets

    found: list[LabelledSet] = []
    for table in sets:
        with as_table_file(table, ("text", "label")) as path:
            found += read_sets(path)
    return found


def _spec_name(scorer: "ScorerLike") -> str:
    """A scorer's spec; of a person's own, its name."""
    return scorer if isinstance(scorer, str) else str(getattr(scorer, "name", "own"))


def _trial_names() -> dict[str, tuple[str, ...]]:
    """The names on which scorers are tried: of each published category, at most seven."""
    from kgbias.crawl.seeds import published_seeds
    from kgbias.graph.cross_mentions import names_by_category

    groups = dict.fromkeys(g for seed in published_seeds().values() for g in seed.as_groups())
    return names_by_category(tuple(groups))


_AGREEMENT_COLUMNS = (
    "measure",
    "scorer",
    "version",
    "license",
    "set",
    "by",
    "group",
    "n",
    "unjudged",
    "same",
    "same_low",
    "same_high",
    "floor",
    "kappa",
    "low",
    "high",
    "rho",
    "learnt",
    "name_effect",
    "name",
)


def _agreement_record(row: "ScorerReliability", checked_set: "CheckedSet | None") -> dict[str, Any]:
    cells: dict[str, Any] = dict.fromkeys(_AGREEMENT_COLUMNS)
    cells |= {name: getattr(row, name) for name in ("measure", "scorer", "version", "license")}
    if row.named is not None:
        cells |= {"name_effect": row.named.effect.value, "name": row.named.name}
    if checked_set is None:
        return cells
    names = ("set", "by", "group", "unjudged", "floor", "learnt")
    cells |= {name: getattr(checked_set, name) for name in names}
    same, kappa = checked_set.same, checked_set.kappa
    cells |= {"n": same.n, "same": same.value, "same_low": same.low, "same_high": same.high}
    cells |= {"kappa": kappa.value, "low": kappa.low, "high": kappa.high}
    return cells | {"rho": checked_set.rho.value}


_COVERAGE_COLUMNS = (
    Column("figure"),
    Column("title"),
    Column("covers", get=lambda coverage: list(coverage.covers)),
    Column("share", ".1%", interval=True, ends=("low", "high"), count="n"),
    Column("independent", ".1%", get=attrgetter("independent.value")),
    Column("width", ".3g"),
)
_CALIBRATION_COLUMNS = (
    Column("key"),
    Column("title"),
    replace(VALUE_COLUMN, get=attrgetter("estimate")),
    Column("target"),
)
