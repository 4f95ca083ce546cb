"""The library as saved queries of Neo4j Browser, which reads a zip of .cypher files."""

import zipfile
from pathlib import Path

from kgbias.files import whole_file
from kgbias.query.library import query_names
from kgbias.resources import resource

_FOLDER = "kgbias"
_WHEN = (2026, 1, 1, 0, 0, 0)  # the same library gives the same file


def write_favourites(path: Path) -> None:
    """Write every query of the library, each as its file stands, to a zip that is dropped onto
    Neo4j Browser: they appear there as a folder of saved queries, named by their first line."""
    with (
        whole_file(path, ".zip") as whole,
        zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        for name in query_names():
            entry = zipfile.ZipInfo(f"{_FOLDER}/{name}.cypher", _WHEN)
            text = resource("cypher", f"{name}.cypher").read_text("utf-8")
            file.writestr(entry, text, zipfile.ZIP_DEFLATED)
