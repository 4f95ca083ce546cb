"""What docs/architecture.md promises of the code: imports run one way, and modules are small."""

import ast
import re
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
DOC = (ROOT / "docs" / "architecture.md").read_text("utf-8")
MODULES = sorted((ROOT / "kgbias").rglob("*.py"))
MOST_LINES = 800
MOST = {  # what scripts/house.py counts: a ceiling that comes down
    "files": 423,
    "files of at most 60 lines": 23,
    "longest import chain": 22,
    "circles, TYPE_CHECKING counted": 1,
    "modules at the root": 6,
    "options": 345,  # and the settings, which kgbias.toml and --set give
}


def layers() -> list[list[str]]:
    """The line of docs/architecture.md that says which way imports run, top first."""
    (line,) = re.findall(r"^    (cli > .+)$", DOC, re.MULTILINE)
    return [part.replace(" ", "").split(",") for part in line.split(">")]


def room(module: str) -> str:
    """The folder or top-level module that a module belongs to: kgbias.crawl.seeds is in crawl."""
    return module.split(".")[1] if "." in module else ""


def imports(path: Path, package: str = "kgbias") -> Iterator[str]:
    """The modules of a package that a file imports, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == package:
                names = [f"{package}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] == package)


def test_imports_run_one_way() -> None:
    depth = {name: number for number, layer in enumerate(layers()) for name in layer}
    wrong = []
    for path in MODULES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        here = room(module)
        if here in ("__init__", "__main__"):  # the package's face and its command
            continue
        for name in imports(path):
            there = room(name)
            if there not in depth or there == here:  # a name of the package itself, or its own room
                continue
            if depth[there] <= depth[here]:
                wrong.append(f"{module} imports {name}")
    assert not wrong


def test_every_folder_has_its_place() -> None:
    folders = {
        path.name for path in (ROOT / "kgbias").iterdir() if (path / "__init__.py").is_file()
    }
    modules = {path.stem for path in (ROOT / "kgbias").glob("*.py")} - {"__init__", "__main__"}
    assert folders | modules == {name for layer in layers() for name in layer}
    for name in folders:
        assert f"`{name}/`" in DOC


def test_modules_are_small() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {path: n for path, n in lines.items() if n > MOST_LINES} == {}


def house() -> Any:
    spec = spec_from_file_location("house", ROOT / "scripts" / "house.py")
    assert spec and spec.loader
    spec.loader.exec_module(module := module_from_spec(spec))
    return module


def test_the_house_does_not_grow() -> None:
    found = house().figures()
    assert {name: found[name] for name, most in MOST.items() if found[name] > most} == {}
