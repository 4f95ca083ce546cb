"""Check a notebook's code by mypy, strictly: what its calls take, the types take.

    python scripts/typed_notebook.py notebooks/in_memory.ipynb

It reads mypy's cache, so `make lint` runs it after mypy itself.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat


def main(notebook: str) -> int:
    cells = nbformat.read(notebook, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{Path(notebook).stem}.py"
        file.write_text(code, "utf-8")
        return subprocess.call([sys.executable, "-m", "mypy", str(file)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
