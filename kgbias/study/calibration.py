"""The method where the truth is known: planted against found."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.seeds import choose_seeds
from kgbias.graph.store import Store
from kgbias.packs import load_pack
from kgbias.progress import Progress
from kgbias.study.rows import Rows

if TYPE_CHECKING:
    from kgbias.calibrate import RowResult


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What a calibration found.

    Attributes:
        rows: what was planted against what was found, one row for each question.
        world: the version of the reference world.
        seeds: how many crawls it rests on.
        report: the report that was written, if any.
    """

    rows: Rows["RowResult"]
    world: str
    seeds: int
    report: Path | None = None

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.rows.to_frame()

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


def calibrate_reference(
    store: Store,
    *,
    prompts: str | Path,
    category: Sequence[str],
    seed: int,
    seeds: int,
    iterations: int,
    regard: str,
    toxicity: str,
    report: Path | None,
    progress: Progress,
) -> Calibrated:
    """See `Study.calibrate`."""
    from kgbias.calibrate import calibrate
    from kgbias.graph.selection import Selection
    from kgbias.graph.stored import StoredRun
    from kgbias.measure.scorers import load_scorer
    from kgbias.models import open_model

    groups = tuple(choose_seeds("reference", category))
    # Nothing but the prompts differs between packs: what is planted follows at a temperature alone,
    # and an answer that agrees with an example is as good as another, as it was drawn without it.
    pack = load_pack(prompts)
    config = CrawlConfig(seeds=groups, pack=pack, seed=seed, iterations=iterations)
    scorers = [load_scorer("regard", regard), load_scorer("toxicity", toxicity)]
    with closing(open_model("reference", notify=progress.note)) as model:
        table, found = calibrate(config, model, scorers, store, progress, seeds=seeds)
    if report is not None:
        from kgbias.report import write_report
        from kgbias.report.calibration import calibration_section

        section = calibration_section(table, found[0])
        # The world says what is true of its peoples, and so what makes sense.
        every = Selection(min_acceptability=0)
        run = StoredRun(store, found[0].run)
        write_report(run, report, extra_sections=[section], selection=every)
    return Calibrated(Rows(table, _record, _COLUMNS), found[0].truth.hash, seeds, report)


_COLUMNS = ("key", "title", "value", "low", "high", "n", "target")


def _record(row: "RowResult") -> dict[str, Any]:
    e = row.estimate
    return {
        "key": row.key,
        "title": row.title,
        "value": e.value,
        "low": e.low,
        "high": e.high,
        "n": e.n,
        "target": row.target,
    }
