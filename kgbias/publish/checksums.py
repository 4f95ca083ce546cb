"""Checksums of a folder, as `sha256sum --check` reads them."""

import re
from pathlib import Path, PurePosixPath

from kgbias.errors import DataError
from kgbias.io.files import sha256_of
from kgbias.io.reading import only_files, read_text

NAME = "SHA256SUMS"

_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def write_checksums(folder: Path) -> None:
    """Write the checksum of every file in a folder, sorted by path, to SHA256SUMS in it."""
    found = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path != folder / NAME
    )
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in found]
    (folder / NAME).write_text("".join(lines), encoding="utf-8", newline="")


def altered(folder: Path) -> dict[str, str]:
    """The files of a published folder that are not as they were published, and how: "missing" or
    "changed". Files that were added are not looked at. Raises DataError without checksums."""
    only_files(folder)
    wrong = {}
    for number, line in enumerate(read_text(folder / NAME).splitlines(), 1):
        match = _LINE.fullmatch(line)
        name = PurePosixPath(match[2]) if match else PurePosixPath("..")
        if match is None or name.is_absolute() or ".." in name.parts:
            raise DataError(f"{folder / NAME}, line {number}: no checksum of a file in the folder")
        path = folder / name
        try:
            if not path.is_file():
                wrong[str(name)] = "missing"
            elif sha256_of(path) != match[1]:
                wrong[str(name)] = "changed"
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return wrong
