"""The methods and backends that are there, and what each adds by its entry points."""

import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent


def list_rooms() -> list[str]:
    """The methods and backends, as "methods/NAME"."""
    folders = [ROOT / "kgbias" / name for name in ("methods", "backends")]
    paths = [path for folder in folders for path in sorted(folder.iterdir())]
    return [f"{p.parent.name}/{p.name}" for p in paths if (p / "__init__.py").is_file()]


def read_points(room: str) -> dict[str, dict[str, str]]:
    """Its entry points, by group and name, as "module:object"."""
    text = (ROOT / "kgbias" / room / "entry_points.toml").read_text("utf-8")
    package = f"kgbias.{room.replace('/', '.')}"
    return {
        f"kgbias.{group}": {name: f"{package}.{place}" for name, place in points.items()}
        for group, points in tomllib.loads(text).items()
    }


def import_parts(name: str) -> list[ModuleType]:
    """What the tests of methods and backends add to a test of all: `tests/methods/NAME/traces.py`
    and the like, of each that has one."""
    paths = [ROOT / "tests" / room / f"{name}.py" for room in list_rooms()]
    return [
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for path in paths
        if path.is_file()
    ]


def list_readers(kind: str) -> list[Any]:
    """The readers, or checks, of a kind that methods have: in `tests/methods/NAME/doors.py`."""
    return [reader for part in import_parts("doors") for reader in getattr(part, kind, ())]
