"""The page of a server, and what it must know to answer for a single statement.

What was read is kept in the cache folder while the store stays as it is (`kgbias.graph.derived`):
the next server of the same runs does not read them again. The file is a digest of 32 bytes and what
it is of: a line of JSON, and the blocks of columns as the page gets them.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any
from zlib import decompress

import numpy as np

from kgbias.errors import DataError
from kgbias.explore import beliefs, statements, units
from kgbias.explore.page import FORMAT, about_of, page_of
from kgbias.explore.statements import Placed, Source
from kgbias.graph.derived import Place
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.io.files import whole_file
from kgbias.io.progress import Progress, Silent
from kgbias.io.resources import __version__

AT_ONCE = 50_000  # statements that are still worked on all at once
WORTH_KEEPING = 10_000  # statements; fewer are read as fast
_ON_DISK = 1 << 30  # bytes of all that is kept
_DIGEST = 32


@dataclass(frozen=True, slots=True)
class ServedPage:
    """The page of a server: it holds no data, but fetches `blocks` by name (each a zlib stream),
    and what it says of a single statement, which `placed` knows by its row. `policy` is its
    Content-Security-Policy."""

    page: str
    policy: str
    blocks: Mapping[str, bytes]
    placed: Placed


@dataclass(frozen=True, slots=True)
class _Packed:
    """What was read: what the page must know first, its blocks, and the ids of the groups."""

    about: Mapping[str, Any]
    blocks: Mapping[str, bytes]
    groups: Sequence[str]


def render_served(
    runs: Sequence[StoredRun],
    *,
    selection: Selection | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ServedPage:
    """The explorer's page for a server. Of more than `AT_ONCE` statements it leaves out what would
    take minutes or the memory of all their texts: communities that are not stored, verdicts, and
    echoes unless they are to be left out (`selection`)."""
    selection = selection or Selection()
    place = _place(runs, selection, seed)
    packed = _kept(place) if place else None
    if packed is None:
        packed = _read(runs, selection, seed, progress or Silent())
        if place and packed.about["rows"] >= WORTH_KEEPING:
            _keep(packed, place, runs[0])
    page, policy = page_of(packed.about, None)
    return ServedPage(page, policy, packed.blocks, _placed(packed, runs))


def _read(
    runs: Sequence[StoredRun], selection: Selection, seed: int, progress: Progress
) -> _Packed:
    found = statements.read(runs, selection, progress)
    few = found.rows <= AT_ONCE
    if few or selection.without_echoes:
        statements.find_echoes(found, progress)
    maps = units.maps(found, seed=seed, progress=progress, search=few)
    core = statements.block(found)
    never = beliefs.add(found, core, progress) if few else []
    blocks = {"core": core, "maps": units.block(maps), "ids": statements.ids(found)}
    about = about_of(found, selection, maps, blocks) | {"never": never}
    packed = {name: block.compressed() for name, block in blocks.items()}
    return _Packed(about, packed, [id for id, _ in found.groups.items()])


def _placed(packed: _Packed, runs: Sequence[StoredRun]) -> Placed:
    """Which statement stands in which row."""
    run = {r.id: r for r in runs}
    placed = Placed(
        [
            Source(run[s["id"]], s["arm"], s["threshold"], s["start"], s["end"])
            for s in packed.about["sources"]
        ],
        triple=np.frombuffer(
            decompress(packed.blocks["ids"]), statements.ID, count=packed.about["rows"]
        ),
    )
    for id in packed.groups:
        placed.groups.add(id, "")
    return placed


def _place(runs: Sequence[StoredRun], selection: Selection, seed: int) -> Place | None:
    """Where what is read of the runs is kept, None where their store does not tell its state."""
    store = runs[0].store
    if any(run.store is not store for run in runs) or (state := store.state()) is None:
        return None
    holds = [__version__, FORMAT, [run.id for run in runs], asdict(selection), seed]
    return Place(("explorer", "page"), os.path.realpath(store.url), state, json.dumps(holds))


def _keep(packed: _Packed, place: Place, run: StoredRun) -> None:
    """Keep what was read, unless the store changed meanwhile. Where nothing can be written, it
    simply is not kept."""
    if run.store.state() != place.state:
        return
    sizes = {name: len(block) for name, block in packed.blocks.items()}
    head = json.dumps({"about": packed.about, "groups": packed.groups, "blocks": sizes})
    body = b"".join([head.encode(), b"\n", *packed.blocks.values()])
    try:
        place.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(place.file) as partial:
            partial.write_bytes(_digest(body) + body)
        place.make_room(lambda: run.store.state() == place.state, _ON_DISK)
    except (DataError, OSError):
        return


def _kept(place: Place) -> _Packed | None:
    """What was kept, or None where there is nothing that is whole."""
    try:
        with place.file.open("rb") as file:
            digest, body = file.read(_DIGEST), file.read()
        if digest != _digest(body):
            return None
        place.used()
    except OSError:
        return None
    head, _, rest = body.partition(b"\n")
    told, blocks, start = json.loads(head), {}, 0
    for name, size in told["blocks"].items():
        blocks[name] = rest[start : start + size]
        start += size
    return _Packed(told["about"], blocks, told["groups"])


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST).digest()
