"""The figures and tables of SoFa's paper as files: of models on a set of probes, and of a set that
was built."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from kgbias.compare.sofa import SofaComparison
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_CAVEAT
from kgbias.io.progress import Progress, SilentProgress
from kgbias.methods.sofa.build import SofaSet
from kgbias.methods.sofa.exhibits import (
    BenchmarkScores,
    setup_exhibits,
    sofa_exhibits,
    sofa_set_exhibits,
)
from kgbias.report.save import manifest_rows, save_exhibits


def save_sofa(
    comparison: SofaComparison,
    folder: Path,
    *,
    benchmark_scores: BenchmarkScores | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write what there is to show of models on a set of probes to `folder`: each figure as SVG, PDF
    and PNG, each table as LaTeX and CSV. Returns the files, sorted."""
    progress = progress or SilentProgress()
    exhibit_list = [*sofa_exhibits(comparison, "01", benchmark_scores), *setup_exhibits(comparison)]
    progress.stage("figures", len(exhibit_list))
    about = {
        "warning": CONTENT_WARNING,
        "statement": SAMPLE_CAVEAT,
        "probe_set": {"name": comparison.probe_set.name, "id": comparison.probe_set.id},
        "models": [
            {"name": m.model, "revision": m.result.model.revision, **dict(m.result.settings)}
            for m in comparison.models
        ],
        "exhibits": manifest_rows(exhibit_list),
    }
    return save_exhibits(exhibit_list, folder, comparison.probe_set.name, about, progress, csv=True)


def save_built(sofa_set: SofaSet, folder: Path, *, progress: Progress | None = None) -> list[Path]:
    """The same for a set of probes that was built. Without matplotlib, the tables alone."""
    found = list(sofa_set_exhibits(sofa_set))
    if find_spec("matplotlib") is None:
        (progress or SilentProgress()).note(
            "the figures need matplotlib: pip install 'kgbias[figures]'"
        )
        found = [replace(exhibit, draw=None) for exhibit in found]
    about = {
        "warning": CONTENT_WARNING,
        "source": sofa_set.source,
        "exhibits": manifest_rows(found),
    }
    return save_exhibits(found, folder, sofa_set.source, about, csv=True)
