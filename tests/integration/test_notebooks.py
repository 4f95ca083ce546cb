"""The notebooks run from top to bottom."""

import os
from pathlib import Path

import pytest

from kgbias.errors import ModelError
from tests.conftest import ROOT, lacking

pytestmark = pytest.mark.integration
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        import nbformat
        from nbclient import NotebookClient
    except ModuleNotFoundError as error:
        lacking(f"{error.name} is not installed")
    if "smollm2" in path.read_text("utf-8"):
        from kgbias.models.gguf import smollm2_file

        try:
            smollm2_file()
        except ModelError as error:
            lacking(str(error))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=900, resources=resources).execute()
    drawn = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert drawn
    assert not any(
        output.output_type == "error" for c in notebook.cells for output in c.get("outputs", ())
    )
