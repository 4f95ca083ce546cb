"""The notebooks run from top to bottom, on a twelfth of the published data and with few
probes, and write figures as PNG alone. The crawl is of the reference model in place of SmolLM2,
whose beliefs another notebook draws."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgbias.errors import ModelError
from kgbias.models.gguf import smollm2_file
from kgbias.reference import weights_path as reference
from tests.conftest import ROOT, require_modules, skip_or_fail
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.integration
FOLDER = ROOT / "notebooks"
PNG_ALONE = 'from kgbias.report import save\nsave.FORMATS = ("png",)'


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One kernel for all of them, because each would load PyTorch and the models anew."""
    require_modules("nbclient", "nbformat", "ipykernel")
    import nbformat
    from nbclient import NotebookClient

    folder = tmp_path_factory.mktemp("notebooks")
    (folder / "data").mkdir()
    for table in (FOLDER / "data").glob("*.csv"):
        header, *rows = table.read_text("utf-8").splitlines(keepends=True)
        (folder / "data" / table.name).write_text("".join([header, *rows[::12]]), "utf-8")
    python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    client = NotebookClient(
        nbformat.v4.new_notebook(),
        timeout=DEADLINE_SECONDS,
        resources={"metadata": {"path": str(folder)}},
    )
    with client.setup_kernel(env=os.environ | {"PYTHONPATH": python_path}):
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, client: Any, tmp_path: Path) -> None:
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    if path.stem == "crawl_to_figure":
        shutil.copytree(reference("causal"), tmp_path / "model")
        for cell in notebook.cells:
            cell.source = cell.source.replace('"smollm2"', f'"hf:{tmp_path / "model"}"')
    elif "smollm2" in path.read_text("utf-8"):
        try:
            smollm2_file()
        except ModelError as error:
            skip_or_fail(str(error))
    for cell in notebook.cells:
        cell.source = cell.source.replace('"probes": 1800', '"probes": 600')
    # What the notebook before it defined must not help this one.
    notebook.cells.insert(0, nbformat.v4.new_code_cell(f"%reset -f\n{PNG_ALONE}"))
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
    if path.stem == "in_memory":  # a planted belief is found in one model, and not in the other
        shown = [
            o["data"]["text/html"]
            for c in notebook.cells
            for o in c.get("outputs", ())
            if "verdict" in o.get("data", {}).get("text/html", "")
        ]
        rows = re.findall(r"<td>(said and believed|neither)</td>", shown[0])
        assert rows == ["said and believed", "neither", "said and believed", "said and believed"]
    assert not any(
        output.output_type == "error" for c in notebook.cells for output in c.get("outputs", ())
    )
