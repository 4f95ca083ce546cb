"""Odd values for the options of every command, by what the command line itself says it takes."""

import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import click

from tests.attack.commands import Commands
from tests.attack.disturbing import prepare
from tests.attack.readers import READING_COMMANDS
from tests.attack.worlds import MEASURE, TRIPLES, AttackWorld
from tests.hostile import CORPUS

ODD_VALUES = (
    "",
    " ",
    "-1",
    "0",
    "1",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 30,
    "9" * 5000,
    "x",
    "\u202e",
    "a,b",
    ",",
    "r",
    "women",
    "none",
    "all",
    "\udcff",
    "[" * 2000,
    "../x",
    "/dev/null",
    "/",
    ".",
    "kgbias.db",
    TRIPLES,
    "scores:scores.csv",
    "scores:",
    "hf:",
    "openai:",
    "vectors:v.txt",
    "a=b",
    "=",
    "http://127.0.0.1:9/v1",
    "http://[",
    "bolt://127.0.0.1:9",
    "a" * 5000,
    *CORPUS[:30],
)
# What each command needs to get as far as its options; models that cost seconds are left out.
BASES: dict[str, tuple[str, ...]] = {
    "crawl": ("crawl", "--model", "openai:m", "--category", "gender", "--dry-run"),
    "import": ("import", TRIPLES),
    "compare": ("compare", "r"),
    "structure": ("structure", "r"),
    "report": ("report", "r"),
    "review": ("review", "r", "--csv", "review.csv"),
    "export": ("export", "r", "-o", "out.csv"),
    "push": ("push", "--from", "kgbias.db", "--to", "other.db"),
    "runs": ("runs",),
    "query": ("query", "--list"),
    "associate": ("associate", "--vectors", "v.txt", "--tests-file", "t.toml"),
    "ask": ("ask", "women and music", "--set", "encoder=none"),
    "evidence": ("evidence", "r"),
    "explore": ("explore", "r", "-o", "out.html"),
    "figures": ("figures", "r", "-o", "out"),
    "measure": ("measure", "r", *MEASURE),
    "merge": ("merge", "r", "--undo"),
    "publish": ("publish", "r", "-o", "out"),
    "reproduce": ("reproduce", ".", "--check"),
    "run": ("run", "study.toml", "--dry-run"),
    "topics": ("topics", "r"),
    **{argv[0]: argv for argv in READING_COMMANDS},
}


def fuzz_options(
    commands: Commands, world: AttackWorld, folder: Path, count: int, seed: int | str
) -> tuple[int, Counter[str]]:
    """`count` calls, each with one or two options of odd values; what was wrong with them."""
    from kgbias.cli import cli
    from kgbias.cli.settings import Setting

    rng = random.Random(seed)
    context = click.Context(cli)
    faults: Counter[str] = Counter()
    for number in range(count):
        name, base = rng.choice(list(BASES.items()))
        command = cli.get_command(context, name)
        assert command is not None
        taken = [p for p in command.params if isinstance(p, click.Option | Setting)]
        argv = list(base)
        for option in rng.sample(taken, rng.choice((1, 1, 2))):
            if isinstance(option, Setting):
                argv += ["--set", f"{option.opts[0]}={rng.choice(ODD_VALUES)}"]
                continue
            argv.append(rng.choice(option.opts))
            if not option.is_flag:
                argv += rng.choices(ODD_VALUES, k=option.nargs)
        if number % 50 == 0:
            place = world.copy(Path(tempfile.mkdtemp(dir=folder)) / "world")
            prepare(place)
        ended = commands.run(*argv, cwd=place)
        if ended.fault:
            faults[f"{name}: {ended.fault} of {argv[len(base) :]!r:.200}"] += 1
        if number % 50 == 49:
            shutil.rmtree(place)
    return count, faults
