"""Output files: each is written whole or not at all, and a manifest says what it is.

A file is written under a temporary name beside its destination and moved into place in one step at
the end. A failure leaves what was there before, and no temporary file.

An output named like a store, or like any SQLite file, is refused; a backup may replace one. `-o -`,
/dev/stdout, a pipe and `>>` get the bytes and no line more, with no file beside them
(tests/unit/test_files.py, tests/integration/test_stdout.py).
"""

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from uuid import uuid4

from kgbias.errors import DataError
from kgbias.io.reading import need_regular_files, read_error, read_text
from kgbias.io.text import CONTENT_WARNING, SAMPLE_CAVEAT


@contextmanager
def replace_file(path: Path, suffix: str | None = None) -> Iterator[Path]:
    """A path to write to instead of `path`; at the end of the block, that file becomes `path`. It
    ends in `suffix`, or as `path` does: some writers go by the extension.

    A new file gets the permissions of the umask, an existing one keeps its own. A symbolic link
    stays a link: the file it points to is replaced. What cannot be replaced (a device such as
    /dev/stdout, a pipe) receives the bytes instead.

    Raises DataError if the file cannot be written, or is a folder.
    """
    suffix = path.suffix if suffix is None else suffix
    with _as_data_error(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise DataError(f"cannot write {path}: it is a folder")
        if is_special(path):
            with tempfile.TemporaryDirectory() as folder:
                partial = Path(folder) / f"output{suffix}"
                yield partial
                number = find_descriptor(path)
                with (
                    partial.open("rb") as source,
                    # A copy of the number: closing it leaves stdout open.
                    path.open("wb") if number is None else os.fdopen(os.dup(number), "wb") as sink,
                ):
                    shutil.copyfileobj(source, sink)
            return
        if target.exists() and not os.access(target, os.W_OK):
            raise DataError(f"cannot write {path}: Permission denied")
        if not target.parent.is_dir():
            missing = target.parent if path.is_symlink() else path.parent
            raise DataError(f"cannot write {path}: there is no folder {missing}")
        if (store := _store_of(target)) is not None:
            raise DataError(f"cannot write {path}: it is a part of {store.name}; name another file")
        # In the same folder: between file systems, a rename would be a copy.
        partial = target.with_name(f"{_temporary_name()}{suffix}")
        try:
            yield partial
            if target.exists():
                if _is_database(target) and not _is_database(partial):
                    raise DataError(
                        f"cannot write {path}: it is a database, as stores are, which no output "
                        "replaces; name another file"
                    )
                partial.chmod(stat.S_IMODE(target.stat().st_mode))
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def write_into_folder(path: Path) -> Iterator[Path]:
    """A folder to write files into instead of `path`. At the end of the block it becomes `path` in
    one step; if a folder `path` exists, the files are moved into it one by one, and other files
    there stay. Folders above it are created.

    Raises DataError if something cannot be written, or a file would replace a folder or a device.
    """
    with _as_data_error(path):
        # The innermost first, which is how they can be removed.
        created_folders = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        is_new = not target.exists()
        partial = (target.parent if is_new else target) / _temporary_name()
        try:
            partial.mkdir()
            yield partial
            if not is_new or not _try_replace(partial, target):
                _move_files(partial, target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            for folder in created_folders:
                with suppress(OSError):
                    folder.rmdir()
            raise
        shutil.rmtree(partial, ignore_errors=True)


def _try_replace(partial: Path, target: Path) -> bool:
    """Whether `partial` has become `target`; False if somebody else made `target` meanwhile."""
    try:
        partial.replace(target)
    except OSError:
        if not target.is_dir():
            raise
        return False
    return True


def _move_files(source: Path, destination: Path) -> None:
    moves = [
        (file, destination / file.relative_to(source))
        for file in sorted(source.rglob("*"))
        if not file.is_dir()
    ]
    for _, target in moves:
        # All are looked at before one is moved: it is all or none.
        if target.is_dir() or is_special(target):
            raise DataError(f"cannot write {target}: it is not a file")
    for file, target in moves:
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text to a file, whole or not at all; line ends stay as they are."""
    with replace_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="")


def write_json(path: Path, value: Any) -> None:
    """Write a value to a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=2))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_special(path: Path) -> bool:
    """Whether `path` exists and is neither a file nor a folder but a device, a pipe or a socket; or
    names a file that is open, such as /dev/stdout."""
    if find_descriptor(path) is not None:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _is_database(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
    return False


_SQLITE = b"SQLite format 3\0"
_SIDE_FILES = ("-wal", "-shm", "-journal")  # where SQLite keeps what is not in the file yet


def _store_of(path: Path) -> Path | None:
    """The database that a file of this name would be a part of; None if there is none."""
    for ending in _SIDE_FILES:
        database = path.with_name(path.name.removesuffix(ending) or path.name)
        if database != path and _is_database(database):
            return database
    return None


def find_descriptor(path: Path) -> int | None:
    """The descriptor of the open file that `path` names, such as /dev/stdout; None for any other
    path. Such a file is written where it stands: it may be one that a shell appends to (`>>`),
    which is not to be replaced."""
    name = str(path)
    if name in _DESCRIPTORS:
        return _DESCRIPTORS[name]
    found = re.fullmatch(r"(?:/dev|/proc/self)/fd/([0-9]{1,9})", name)
    return int(found[1]) if found else None


_DESCRIPTORS = {"/dev/stdout": 1, "/dev/stderr": 2}


class _ModelFacts(Protocol):
    @property
    def public_name(self) -> str: ...
    @property
    def display_name(self) -> str: ...
    @property
    def revision(self) -> str: ...


class RunFacts(Protocol):
    """The parts of a run that a manifest names; `kgbias.graph.types.Run` has them."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> _ModelFacts: ...


def make_manifest(run: RunFacts, **facts: Any) -> dict[str, Any]:
    """The manifest of a file made from a run, for whoever finds it: the warning, the run and its
    model, then these facts. Mappings keep their order."""
    return {
        "warning": CONTENT_WARNING,
        "statement": SAMPLE_CAVEAT,
        "run": run.name,
        "model": {
            "name": run.model.public_name,
            "revision": run.model.revision,
            **({"display_name": run.model.display_name} if run.model.display_name else {}),
        },
        **{k: dict(v) if isinstance(v, Mapping) else v for k, v in facts.items()},
    }


def _temporary_name() -> str:
    return f".kgbias-{uuid4().hex[:12]}"


@contextmanager
def _as_data_error(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # whoever reads has enough, which is no error of ours
        raise
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


def is_visible_within(folder: Path, file: Path) -> bool:
    """Whether a file is in a folder once links are followed, and not hidden there."""
    try:
        inside = file.resolve().relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # elsewhere, or not a possible file name
        return False
    return not any(part.startswith(".") for part in inside.parts)


CHECKSUM_FILE = "SHA256SUMS"

_CHECKSUM_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def write_checksums(folder: Path) -> None:
    """Write the checksum of every file in a folder, sorted by path, to SHA256SUMS in it."""
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path != folder / CHECKSUM_FILE
    )
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in names]
    (folder / CHECKSUM_FILE).write_text("".join(lines), encoding="utf-8", newline="")


def find_altered(folder: Path) -> dict[str, str]:
    """The files of a published folder that are not as published, and how: "missing" or "changed".
    Added files are ignored. Raises DataError if there are no checksums."""
    need_regular_files(folder)
    altered_files = {}
    for number, line in enumerate(read_text(folder / CHECKSUM_FILE).splitlines(), 1):
        match = _CHECKSUM_LINE.fullmatch(line)
        name = PurePosixPath(match[2]) if match else PurePosixPath("..")
        if match is None or name.is_absolute() or ".." in name.parts:
            raise DataError(
                f"{folder / CHECKSUM_FILE}, line {number}: not a checksum of a file beside it"
            )
        path = folder / name
        try:
            if not path.is_file():
                altered_files[str(name)] = "missing"
            elif sha256_of(path) != match[1]:
                altered_files[str(name)] = "changed"
        except OSError as error:
            raise read_error(path, error) from error
    return altered_files
