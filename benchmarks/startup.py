"""How much processor time a small command takes, from its start to its end.

    python benchmarks/startup.py STORE [--before FOLDER] [--times 20] [--instructions]

The help, the completion of a command's name, and the list of the runs in STORE. With --before, a
folder that has an earlier state of the code, both are run in turn. Prints the least and the median;
the least is what other work on the machine changes least. --instructions counts the instructions
instead, which other work does not change at all, by Valgrind, which must be installed.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parents[1]
COMPLETION = {"_KGBIAS_COMPLETE": "bash_complete", "COMP_WORDS": "kgbias ru", "COMP_CWORD": "1"}
# Completion goes by the name of the program.
START = "import sys; sys.argv[0] = 'kgbias'; from kgbias.__main__ import main; main()"
COUNTER = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def time_command(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Seconds of processor time of a command, and of what it starts."""
    output = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    pid = os.posix_spawn(command[0], command, environment, file_actions=[output])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime


def count_instructions(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Millions of instructions of a command."""
    done = subprocess.run(
        [*COUNTER, *command], env=environment, capture_output=True, text=True, check=True
    )
    match = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert match is not None, done.stderr
    return int(match[1].replace(",", "")) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    kgbias = [sys.executable, "-P", "-m", "kgbias"]
    commands: dict[str, tuple[list[str], dict[str, str]]] = {
        "help": ([*kgbias, "--help"], {}),
        "completion": ([sys.executable, "-P", "-c", START], COMPLETION),
        "runs": ([*kgbias, "runs", "--store", str(options.store.resolve())], {}),
    }
    trees = {"before": options.before.resolve()} if options.before else {}
    trees["now"] = HERE
    for name, (command, variables) in commands.items():
        results: dict[str, list[float]] = {tree: [] for tree in trees}
        for _ in range(1 if options.instructions else options.times):
            for tree, folder in trees.items():
                environment = {**os.environ, **variables, "PYTHONPATH": str(folder)}
                measure = count_instructions if options.instructions else time_command
                results[tree].append(measure(command, environment))
        for tree, values in results.items():
            if options.instructions:
                print(f"{name:<12}{tree:<8}{values[0]:8.0f} million instructions", flush=True)
            else:
                print(
                    f"{name:<12}{tree:<8}least {min(values):.3f} s, median "
                    f"{statistics.median(values):.3f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
