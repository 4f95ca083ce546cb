"""Tables of stories as a format of `kgbias import`."""

from pathlib import Path

from kgbias.graph.store import Store
from kgbias.ingest.formats import ImportFormat
from kgbias.ingest.import_run import ImportResult
from kgbias.io.progress import Progress


def _import_stories(
    store: Store, path: Path, *, name: str | None, model: str, progress: Progress
) -> ImportResult:
    from kgbias.stories.stereotales import import_table

    return ImportResult(*import_table(store, path, name=name, model=model))


STEREOTALES = ImportFormat(_import_stories, "a table of stories, of the model given")
