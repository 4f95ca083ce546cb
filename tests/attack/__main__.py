"""All attacks, with counts: `scripts/attack [--full] [--seed N] [--only NAME]`."""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attack.commands import Commands
from tests.attack.disturbed import HEAVY, LOADED, LONG, WRITERS, Disturber, Tally, Writers, damaged
from tests.attack.inputs import fuzz
from tests.attack.options import fuzz_options
from tests.attack.servers import CLIENTS, SCENARIOS, attack, concerns
from tests.attack.strangers import KINDS, strange
from tests.attack.worlds import World, write_many
from tests.kill_rounds import run_rounds

Counts = tuple[str, int, Counter[str]]  # what was tried, how often, and what was wrong


def servers(commands: Commands, world: World, folder: Path, full: bool, _: int) -> Iterator[Counts]:
    """Each client against each answer of a hostile server."""
    for client in CLIENTS:
        faults: Counter[str] = Counter()
        names = [name for name in SCENARIOS if concerns(client, name)]
        for name in names if full else names[::5]:
            place = world.copy(folder / "server")
            _ended, found = attack(commands, place, client, SCENARIOS[name], timeout=90)
            faults.update(f"{client}, {name}: {fault}" for fault in found)
            shutil.rmtree(place)
        yield f"servers: {client}", len(names if full else names[::5]), faults


def disturbances(mode: str, rounds: int) -> Callable[..., Iterator[Counts]]:
    """Each command that writes, disturbed in one way."""

    def run(
        commands: Commands, world: World, folder: Path, full: bool, seed: int
    ) -> Iterator[Counts]:
        def each(
            writers: Writers, commands: Commands, rounds: int = rounds if full else 1
        ) -> Iterator[Counts]:
            disturber = Disturber(commands, world, folder, seed)
            for name, argv in writers.items():
                tally: Tally = getattr(disturber, mode)(name, argv, rounds)
                yield f"{mode}: {name} ({tally.kills} kills)", tally.rounds, tally.faults

        yield from each(WRITERS, commands)
        if full:
            write_many(folder)
            yield from each(LONG, commands, rounds // 5)
            with Commands(folder, *LOADED) as loaded:
                yield from each(HEAVY, loaded)

    return run


def crawl_kills(_: Commands, __: World, folder: Path, full: bool, seed: int) -> Iterator[Counts]:
    """Crawls of a server, killed and continued."""
    (folder / "crawls").mkdir()
    tally = run_rounds(100 if full else 1, seed, folder / "crawls")
    yield "kill: crawl", tally.rounds, Counter() if tally.sound else Counter([str(tally)])


def stores(
    commands: Commands, world: World, folder: Path, full: bool, seed: int
) -> Iterator[Counts]:
    """Damaged stores."""
    tally = damaged(commands, world, folder, 500 if full else 10, seed)
    yield f"damaged stores ({tally.refused} refusals)", tally.rounds, tally.faults


def files(_: Commands, __: World, folder: Path, full: bool, seed: int) -> Iterator[Counts]:
    """Mutated files for every reader."""
    found = fuzz(90_000 if full else 2_000, seed, folder)
    yield f"files ({found.read} read, {found.refused} refused)", found.tried, found.faults


def options(_: Commands, world: World, folder: Path, full: bool, seed: int) -> Iterator[Counts]:
    """Odd values for every option of every command."""
    with Commands(folder, *LOADED) as loaded:  # half of the commands may load a model
        tried, faults = fuzz_options(loaded, world, folder, 10_000 if full else 50, seed)
    yield "options", tried, faults


def strangers(
    commands: Commands, world: World, folder: Path, full: bool, seed: int
) -> Iterator[Counts]:
    """What strangers hand over: stores, studies, packs, vectors, queries, surroundings."""
    for kind, (_, count) in KINDS.items():
        tally = strange(commands, world, folder, seed, kind, count if full else 3)
        yield f"strangers: {kind}", tally.rounds, tally.faults


ATTACKS: dict[str, Callable[..., Iterator[Counts]]] = {
    "servers": servers,
    "files": files,
    "options": options,
    "stores": stores,
    "strangers": strangers,
    "power": disturbances("power", 20),
    "full": disturbances("full", 20),
    "twice": disturbances("twice", 10),
    "kill": disturbances("kill", 100),
    "crawl": crawl_kills,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="as often as a release needs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(ATTACKS), help="one kind of attack")
    given = parser.parse_args()
    total, faults = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as name, Commands(Path(name)) as commands:
        folder = Path(name)
        world = World(commands, folder / "world")
        for kind, run in ATTACKS.items():
            if given.only in (None, kind):
                began = time.monotonic()
                for what, tried, found in run(commands, world, folder, given.full, given.seed):
                    seconds = time.monotonic() - began
                    print(f"{what:<50}{tried:>8}  {found.total():>4} faults  {seconds:7.0f} s")
                    for fault in found:  # now: a run that is cut off has told what it found
                        print(f"    {fault}")
                    sys.stdout.flush()
                    total, faults = total + tried, faults + found
    for fault, count in faults.most_common():
        print(f"{count:>6}  {fault}")
    print(f"{total} attacks with seed {given.seed}, {faults.total()} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
