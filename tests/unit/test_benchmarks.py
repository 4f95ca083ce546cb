"""The scripts behind the published figures, which no other test runs."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@cache
def list_names(module: Path) -> frozenset[str]:
    """What a module defines or imports, wherever in it that stands."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
    return frozenset(names)


def find_missing(script: Path) -> Iterator[str]:
    """What a script imports of ours that is not there."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        place = Path(*node.module.split("."))
        beginnings = (ROOT / place, script.parent / place)
        modules = [
            file
            for beginning in beginnings
            for file in (beginning.with_suffix(".py"), beginning / "__init__.py")
            if file.is_file()
        ]
        is_package = any(beginning.is_dir() for beginning in beginnings)
        if not modules and not is_package:
            if node.module.partition(".")[0] in ("kgbias", "tests"):
                yield node.module
            continue
        for alias in node.names:
            is_module = any(
                (beginning / f"{alias.name}.py").is_file() or (beginning / alias.name).is_dir()
                for beginning in beginnings
            )
            defined = list_names(modules[0]) if modules else frozenset()
            if not is_module and alias.name not in defined and "__getattr__" not in defined:
                yield f"{node.module}.{alias.name}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_imports_of_ours_is_there(script: Path) -> None:
    assert list(find_missing(script)) == []
