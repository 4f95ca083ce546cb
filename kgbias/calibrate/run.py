"""Crawl the reference model with the paper's parameters, measure, and compute the table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kgbias.calibrate.belief_rows import build_belief_rows
from kgbias.calibrate.calibration_rows import ROWS, Calibration, RowFunction, RowResult
from kgbias.calibrate.evidence_rows import build_evidence_rows
from kgbias.calibrate.label_rows import build_label_rows
from kgbias.calibrate.language_rows import build_language_rows
from kgbias.calibrate.method_rows import build_method_rows
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.errors import UsageError
from kgbias.graph.store import Store, StoredRun
from kgbias.io.progress import Progress
from kgbias.measure.scorers import Scorer
from kgbias.measure.scoring import measure_run
from kgbias.models.base import Completer
from kgbias.reference import load_truth
from kgbias.stats.inference import Estimate


class CalibrationTable(NamedTuple):
    """The table, and the calibrations behind it."""

    rows: list[RowResult]
    calibrations: list[Calibration]


def calibrate(
    config: CrawlConfig,
    model: Completer,
    scorers: Sequence[Scorer],
    store: Store,
    progress: Progress,
    *,
    seeds: int = 1,
    rows: Sequence[RowFunction] | None = None,
) -> CalibrationTable:
    """The table, and the calibrations behind it, one for each of `seeds` crawls that differ only in
    their seed (config.seed, config.seed + 1, ...). `rows` are those of the table (None: the core's
    and those of the methods)."""
    if rows is None:
        rows = (
            *ROWS,
            *build_evidence_rows(),
            *build_belief_rows(),
            *build_language_rows(),
            *build_label_rows(),
            *build_method_rows(),
        )
    if seeds < 1:
        raise UsageError("`seeds` must be at least 1")
    calibrations = []
    for number in range(seeds):
        result = crawl(replace(config, seed=config.seed + number), model, store, progress=progress)
        run = StoredRun(store, result.run)
        measure_run(run, scorers, progress)
        calibrations.append(Calibration(load_truth(), run))
    table = [[row(calibration) for calibration in calibrations] for row in rows]
    return CalibrationTable([_combine_results(results) for results in table], calibrations)


def _combine_results(results: Sequence[RowResult]) -> RowResult:
    """One row for several crawls: the means of the values and of the intervals, and the smallest
    and largest values."""
    if len(results) == 1 or results[0].of_model:
        return results[0]
    columns = np.array(
        [[result.estimate.value, result.estimate.low, result.estimate.high] for result in results]
    )
    value, low, high = (float(x) for x in np.nanmean(columns, axis=0))
    total = sum(result.estimate.n for result in results)
    spread = float(np.nanmin(columns[:, 0])), float(np.nanmax(columns[:, 0]))
    return replace(results[0], estimate=Estimate(value, low, high, total), spread=spread)
