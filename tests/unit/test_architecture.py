"""What docs/architecture.md promises of the code: imports run one way, and in layers."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import distribution
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.rooms import list_rooms, read_points

ROOT = Path(__file__).parent.parent.parent
DOC = (ROOT / "docs" / "architecture.md").read_text("utf-8")
MODULES = sorted((ROOT / "kgbias").rglob("*.py"))
RULES = {  # of what scripts/house.py counts, what a reader relies on
    "imports that run back up": 0,
    "circles, TYPE_CHECKING counted": 0,
    "bases of a class, at most": 3,
}


def house() -> Any:
    spec = spec_from_file_location("house", ROOT / "scripts" / "house.py")
    assert spec and spec.loader
    spec.loader.exec_module(module := module_from_spec(spec))
    return module


HOUSE = house()


def imports(path: Path, package: str = "kgbias") -> Iterator[str]:
    """The modules of a package that a file imports, those inside functions too."""
    for node in ast.walk(HOUSE.parse_file(path)):
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
    depth = {name: number for number, layer in enumerate(HOUSE.layers()) for name in layer}
    wrong = []
    for path in MODULES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if path.stem in ("__init__", "__main__") and path.parent.name == "kgbias":
            continue  # the package's face and its command
        here = HOUSE.room_of(module)
        for name in imports(path):
            there = HOUSE.room_of(name)
            if there not in depth or there == here:  # a name of the package itself, or its own room
                continue
            if depth[there] <= depth[here]:
                wrong.append(f"{module} imports {name}")
    assert not wrong


# Imports of one method by another that stand for now, each with its reason; the list only shrinks.
BETWEEN_METHODS: dict[str, str] = {}


def test_a_method_imports_no_other() -> None:
    found = set()
    for folder in ("methods", "backends"):
        for path in sorted((ROOT / "kgbias" / folder).rglob("*.py")):
            own = path.relative_to(ROOT / "kgbias").parts[:2]
            for name in imports(path):
                there = tuple(name.split(".")[1:3])
                if len(there) == 2 and there[0] in ("methods", "backends") and there != own:
                    found.add(f"{own[1]} imports {there[1]}")
    assert found == BETWEEN_METHODS.keys()


def test_what_is_installed_has_the_entry_points_of_the_project() -> None:
    """Entry points are read from the metadata of what is installed, not from the folders."""
    declared = {
        (group, name, value)
        for room in list_rooms()
        for group, points in read_points(room).items()
        for name, value in points.items()
    }
    installed = {
        (point.group, point.name, point.value)
        for point in distribution("kgbias").entry_points
        if point.group.startswith("kgbias.")
    }
    assert installed == declared, "run uv pip install -e . again"
    for _, _, value in sorted(declared):
        module, _, name = value.partition(":")
        assert hasattr(import_module(module), name), value


def test_every_folder_has_its_place() -> None:
    folders = {
        path.name for path in (ROOT / "kgbias").iterdir() if (path / "__init__.py").is_file()
    }
    modules = {path.stem for path in (ROOT / "kgbias").glob("*.py")} - {"__init__", "__main__"}
    assert folders | modules == {name for layer in HOUSE.layers() for name in layer}
    (tree,) = re.findall(r"^    kgbias/\n(?:    .+\n)+", DOC, re.MULTILINE)
    for name in folders:
        assert f" {name}/" in tree


def test_the_rules_of_the_house_hold() -> None:
    """Layers can be read in order, without circles; a class says by itself what it does."""
    found = HOUSE.figures()
    assert {name: found[name] for name, most in RULES.items() if found[name] > most} == {}


def test_imports_that_run_back_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a house of two rooms: over the face, from a function, and inside a room."""
    files = {
        "docs/architecture.md": "    methods, backends > cli > study > graph\n",
        "kgbias/__init__.py": "if TYPE_CHECKING:\n    from kgbias.study import open, keep\n",
        "kgbias/study/__init__.py": "from kgbias.study.first import open\n",
        "kgbias/study/first.py": "from kgbias.study.last import keep\nimport kgbias.graph.low\n",
        "kgbias/study/last.py": "def later():\n    from kgbias.study.first import open\n",
        "kgbias/graph/__init__.py": "",
        "kgbias/graph/low.py": "def later():\n    from kgbias import keep\n",
        "kgbias/graph/typed.py": "if TYPE_CHECKING:\n    from kgbias.study import open\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    own = house()
    monkeypatch.setattr(own, "ROOT", tmp_path)
    monkeypatch.setattr(own, "PACKAGE", tmp_path / "kgbias")
    assert own.backward_imports() == [
        "kgbias.graph.low imports kgbias.study",
        "kgbias.study.last imports kgbias.study.first",
    ]


def test_a_bare_participle_is_one_word_that_nothing_else_can_be() -> None:
    bare = ("told", "_Asked", "Measured", "withheld")
    named = ("told_by", "ToldStories", "read", "cost", "seed", "Store", "ASKED")
    assert [name for name in bare + named if HOUSE.is_bare_participle(name)] == list(bare)


def test_a_tuple_of_any_length_is_not_counted_as_bare() -> None:
    tree = ast.parse("def a() -> tuple[int, str]: ...\ndef b() -> tuple[int, ...]: ...")
    assert [HOUSE.returns_bare_tuple(node) for node in tree.body] == [True, False]
