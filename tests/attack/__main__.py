"""All attacks, with counts: `scripts/attack [--full] [--seed N] [--only KIND[/PART]]`."""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.attack.commands import Commands
from tests.attack.disturbing import (
    HEAVY_MODULES,
    LONG_WRITERS,
    MODEL_WRITERS,
    WRITERS,
    AttackTally,
    Disturber,
    damage_stores,
)
from tests.attack.inputs import fuzz
from tests.attack.options import fuzz_options
from tests.attack.servers import CLIENTS, SCENARIOS, attack_client, concerns_client
from tests.attack.strangers import STRANGER_KINDS, attack_kind
from tests.attack.worlds import AttackWorld, write_many
from tests.kill_rounds import run_rounds

Counts = tuple[str, int, Counter[str]]  # what was tried, how often, and what was wrong


@dataclass
class Attacker:
    """What an attack is made with: commands on tap, a world to copy, a folder, and how much."""

    commands: Commands
    world: AttackWorld
    folder: Path
    full: bool
    seed: int
    _opened: ExitStack

    @cached_property
    def loaded_commands(self) -> Commands:
        """Commands that have what loads a model: it would take most of their time."""
        return self._opened.enter_context(Commands(self.folder, *HEAVY_MODULES))


def servers(attacker: Attacker, client: str) -> Iterator[Counts]:
    """A client against each answer of a hostile server."""
    faults: Counter[str] = Counter()
    names = [name for name in SCENARIOS if concerns_client(client, name)][
        :: 1 if attacker.full else 5
    ]
    for name in names:
        place = attacker.world.copy(attacker.folder / "server")
        _ended, server_faults = attack_client(attacker.commands, place, client, SCENARIOS[name])
        faults.update(f"{client}, {name}: {fault}" for fault in server_faults)
        shutil.rmtree(place)
    yield f"servers: {client}", len(names), faults


def disturbances(mode: str, rounds: int) -> Callable[[Attacker, str], Iterator[Counts]]:
    """A command that writes, disturbed in one way; by whole attacks, the slow ones too."""

    def run(attacker: Attacker, name: str) -> Iterator[Counts]:
        argv = {**WRITERS, **LONG_WRITERS, **MODEL_WRITERS}[name]
        if name not in WRITERS and not attacker.full:
            return
        round_count = rounds if attacker.full else 1
        commands = attacker.loaded_commands if name in MODEL_WRITERS else attacker.commands
        if name in LONG_WRITERS:
            write_many(attacker.folder)
            round_count //= 5
        seed = f"{attacker.seed} {name}"  # a part alone does what it does among all
        disturber = Disturber(commands, attacker.world, attacker.folder, seed)
        tally: AttackTally = getattr(disturber, mode)(name, argv, round_count)
        yield f"{mode}: {name} ({tally.kills} kills)", tally.rounds, tally.faults

    return run


def crawl_kills(attacker: Attacker, part: str) -> Iterator[Counts]:
    """Crawls of a server, killed and continued."""
    folder = attacker.folder / f"crawls{part}"
    folder.mkdir()
    tally = run_rounds(20 if attacker.full else 1, f"{attacker.seed} {part}", folder)
    yield (
        f"kill: crawl ({tally.kills} kills)",
        tally.rounds,
        (Counter() if tally.is_sound else Counter([str(tally)])),
    )


def stores(attacker: Attacker, part: str) -> Iterator[Counts]:
    """Damaged stores."""
    count, seed = 100 if attacker.full else 2, f"{attacker.seed} {part}"
    tally = damage_stores(attacker.commands, attacker.world, attacker.folder, count, seed)
    yield f"damaged stores ({tally.refused_count} refusals)", tally.rounds, tally.faults


def files(attacker: Attacker, part: str) -> Iterator[Counts]:
    """Mutated files for every reader."""
    count, seed = 9_000 if attacker.full else 200, f"{attacker.seed} {part}"
    found = fuzz(count, seed, attacker.folder)
    yield (
        f"files ({found.read_count} read, {found.refused_count} refused)",
        found.total,
        found.faults,
    )


def options(attacker: Attacker, part: str) -> Iterator[Counts]:
    """Odd values for every option of every command; half of the commands may load a model."""
    count, seed = 500 if attacker.full else 3, f"{attacker.seed} {part}"
    tried, faults = fuzz_options(
        attacker.loaded_commands, attacker.world, attacker.folder, count, seed
    )
    yield "options", tried, faults


def strangers(attacker: Attacker, kind: str) -> Iterator[Counts]:
    """What strangers hand over: stores, studies, packs, vectors, queries, surroundings."""
    count = STRANGER_KINDS[kind][1] if attacker.full else 3
    commands = attacker.loaded_commands if kind == "models" else attacker.commands
    tally = attack_kind(commands, attacker.world, attacker.folder, attacker.seed, kind, count)
    yield f"strangers: {kind}", tally.rounds, tally.faults


def _part_names(parts: int) -> list[str]:
    return [str(n) for n in range(1, parts + 1)]


_COMMANDS = [*WRITERS, *LONG_WRITERS, *MODEL_WRITERS]
ATTACKS: dict[str, tuple[Callable[[Attacker, str], Iterator[Counts]], list[str]]] = {
    "servers": (servers, list(CLIENTS)),
    "files": (files, _part_names(10)),
    "options": (options, _part_names(20)),
    "stores": (stores, _part_names(5)),
    "strangers": (strangers, list(STRANGER_KINDS)),
    "power": (disturbances("power", 20), _COMMANDS),
    "full": (disturbances("full", 20), _COMMANDS),
    "twice": (disturbances("twice", 10), _COMMANDS),
    "kill": (disturbances("kill", 100), _COMMANDS),
    "crawl": (crawl_kills, _part_names(5)),
}  # by kind; its parts can be tried one by one, in any order


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="as often as a release needs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", metavar="KIND[/PART]", default="", help="one kind of attack, or a part of it"
    )
    given = parser.parse_args()
    only, _, part = given.only.partition("/")
    if only and (only not in ATTACKS or (part and part not in ATTACKS[only][1])):
        parser.error(
            f"--only is one of {', '.join(ATTACKS[only][1] if only in ATTACKS else ATTACKS)}"
        )
    total, faults = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        folder = Path(name)
        commands = opened.enter_context(Commands(folder))
        world = AttackWorld(commands, folder / "world")
        attacker = Attacker(commands, world, folder, given.full, given.seed, opened)
        for kind in [only] if only else ATTACKS:
            run, parts = ATTACKS[kind]
            began = time.monotonic()
            for each in [part] if part else parts:
                for what, tried, found in run(attacker, each):
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
