"""The notebooks run from top to bottom, with a copy of the reference model in place of SmolLM2."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgbias.reference import path as reference
from tests.conftest import ROOT, needs

pytestmark = pytest.mark.integration
FOLDER = ROOT / "notebooks"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """One kernel for all of them, because each would load PyTorch and the models anew."""
    needs("nbclient", "nbformat", "ipykernel")
    import nbformat
    from nbclient import NotebookClient

    python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    client = NotebookClient(
        nbformat.v4.new_notebook(), timeout=900, resources={"metadata": {"path": str(FOLDER)}}
    )
    with client.setup_kernel(env=os.environ | {"PYTHONPATH": python_path}):
        yield client


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, client: Any, tmp_path: Path) -> None:
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    if any('"smollm2"' in cell.source for cell in notebook.cells):
        shutil.copytree(reference("causal"), tmp_path / "model")
        for cell in notebook.cells:
            cell.source = cell.source.replace('"smollm2"', f'"hf:{tmp_path / "model"}"')
    # What the notebook before it defined must not help this one.
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    client.nb = notebook
    client.reset_execution_trackers()
    for number, cell in enumerate(notebook.cells):
        client.execute_cell(cell, number)
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
