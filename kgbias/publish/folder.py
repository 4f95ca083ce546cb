"""The folder of a published run, whole or not at all."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kgbias.errors import UsageError
from kgbias.export.content import Content
from kgbias.export.tables import write_jsonl, write_parquet
from kgbias.files import whole_folder
from kgbias.graph.selection import Selection, select
from kgbias.graph.stored import StoredRun
from kgbias.measure.figures import figures_of
from kgbias.progress import Progress
from kgbias.publish.card import PARQUET, card
from kgbias.publish.checksums import write_checksums
from kgbias.publish.citation import citation
from kgbias.publish.croissant import croissant
from kgbias.publish.evaluations import evaluations
from kgbias.publish.recipe import NAME, STATEMENTS, Recipe
from kgbias.publish.statement import Source


def publish(
    run: StoredRun,
    folder: Path,
    *,
    license: str = "",
    authors: Sequence[str] = (),
    figures: bool = False,
    selection: Selection | None = None,
    progress: Progress,
) -> list[Path]:
    """Write the statements of a run that count, and all that others need to load, judge, cite and
    make them again, to a new or empty folder. Returns the files, sorted.

    Raises UsageError where the folder holds something, the run is not finished, or nothing counts;
    DataError where a file cannot be written."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: publish to a new folder")
    if run.status != "complete":
        raise UsageError(f"run {run.name!r} is not finished: crawl it to its end first")
    selection = selection or Selection()
    counted = select(run, selection)
    if counted.note:
        progress.note(counted.note)
    if not counted.triples:
        raise UsageError(f"run {run.name!r} holds no statement that counts")
    source = Source(
        Content(run, list(counted.triples), counted),
        Recipe.of(run, selection),
        tuple(figures_of(run, selection, counted)),
        " ".join(license.split()),
        tuple(" ".join(name.split()) for name in authors if name.strip()),
        datetime.now(UTC).isoformat(timespec="seconds"),
        selection,
    )
    with whole_folder(folder) as partial:
        _write(source, partial)
        if figures:
            from kgbias.report.save import save_figures

            save_figures(run, partial / "figures", selection=selection, progress=progress)
        write_checksums(partial)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _write(source: Source, folder: Path) -> None:
    (folder / PARQUET).parent.mkdir()
    write_parquet(source.content, folder / PARQUET)
    write_jsonl(source.content, folder / STATEMENTS)
    record = source.recipe.as_dict(source.content.run, source.created)
    for name, value in (
        (NAME, record),
        ("croissant.json", croissant(source, folder)),
        ("results.json", evaluations(source)),
    ):
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        (folder / name).write_text(text + "\n", encoding="utf-8", newline="")
    for name, text in (("README.md", card(source)), ("CITATION.cff", citation(source))):
        (folder / name).write_text(text, encoding="utf-8", newline="")
