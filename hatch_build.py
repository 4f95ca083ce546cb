"""What hatchling asks as it builds or installs kgbias: the entry points of methods and backends.
Each has its own in the `entry_points.toml` of its folder, as places in the folder."""

import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class EntryPointsHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        found: dict[str, dict[str, str]] = {}
        for path in sorted(root.glob("kgbias/*/*/entry_points.toml")):
            package = ".".join(path.parent.relative_to(root).parts)
            for group, points in tomllib.loads(path.read_text("utf-8")).items():
                for name, place in points.items():
                    found.setdefault(f"kgbias.{group}", {})[name] = f"{package}.{place}"
        metadata["entry-points"] = found
