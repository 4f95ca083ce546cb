"""Kill a crawl with SIGKILL at random moments, run the same command until it ends, and compare.

    python -m tests.kill_rounds [--rounds 100] [--seed 0]

Each round is a crawl of a scripted HTTP server by the real command line, killed one to three times.
What is looked at: the graph is the one of a crawl that nobody killed, row for row (lost: rows that
are missing; duplicated: rows too many); and no request whose answer was in the log when the crawl
was killed reaches the server again (asked twice). Requests that were under way at a kill have no
answer in the log and must be asked again; they are counted apart.
"""

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

from tests.fault_server import Fault, FaultServer
from tests.waiting import DEADLINE_SECONDS

Rows = Counter[tuple[Any, ...]]

# Every table that a crawl writes, without the columns that tell the time.
TABLES = {
    "run": "id, name, kind, model_id, config, status",
    "run_group": "*",
    '"group"': "*",
    "predicate": "*",
    "object": "*",
    "triple": "*",
    "generation": "*",
    "shown": "*",
    "answer": "key, model_id, text, finish",
}
CONCURRENCY = 8
CRAWL_ARGUMENTS = (
    "--category",
    "gender",
    "--samples",
    "3",
    "--set",
    "answers=2",
    "--iterations",
    "3",
    "--set",
    "predicate-prompts=4",
    "--set",
    "object-prompts=4",
    "--set",
    f"concurrency={CONCURRENCY}",
    "--run",
    "killed",
)


def answer(body: dict[str, Any], _: int) -> Fault:
    """A pure function of the request; a third of the answers is refused or malformed. The
    fingerprint names the request, so that the answer log shows which ones it holds."""
    rng = Random(f"{body['seed']}/{body['prompt']}")
    thing = rng.choice(["food", "sport", "rain", "music", "work", "friends"])
    text = f" {thing}."
    if body["prompt"].endswith("#"):
        text = f" {rng.choice(['enjoy', 'fear', 'make', 'are'])}\nA: {thing}"
    text = rng.choice([text, text, text, " ", "This question is offensive."])
    choice = {"index": 0, "text": text, "finish_reason": "stop"}
    return "body", json.dumps({"choices": [choice], "system_fingerprint": fingerprint(body)})


def fingerprint(body: dict[str, Any]) -> str:
    return blake2b(f"{body['seed']}/{body['prompt']}".encode(), digest_size=10).hexdigest()


@dataclass
class KillTally:
    """What happened over all rounds. The last four must stay at zero."""

    rounds: int = 0
    kills: int = 0
    kills_in_crawl: int = 0  # between the first request and the last
    requests: int = 0
    asked_again: int = 0  # asked again because no answer had come when the crawl was killed
    lost_rows: int = 0
    extra_rows: int = 0
    asked_twice: int = 0
    wrong_tables: int = 0

    @property
    def is_sound(self) -> bool:
        return not (self.lost_rows or self.extra_rows or self.asked_twice or self.wrong_tables)


def read_tables(store: Path) -> dict[str, Rows]:
    with closing(sqlite3.connect(store)) as db:
        return {
            table: Counter(db.execute(f"SELECT {columns} FROM {table}").fetchall())
            for table, columns in TABLES.items()
        }


def count_answers(store: Path) -> int:
    """In the log, which may not be there yet."""
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'answer'").fetchone():
            return 0
        return int(db.execute("SELECT count(*) FROM answer").fetchone()[0])


def logged_fingerprints(store: Path) -> set[str]:
    """The fingerprints of the requests that the answer log answers."""
    if not store.exists():
        return set()
    with closing(sqlite3.connect(store)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'answer'").fetchone():
            return set()
        return {json.loads(d)["fingerprint"] for (d,) in db.execute("SELECT details FROM answer")}


def start_crawl(store: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kgbias",
            "crawl",
            "--model",
            "openai:m",
            "--base-url",
            url,
            "--store",
            str(store),
            *CRAWL_ARGUMENTS,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish_crawl(crawl: subprocess.Popen[bytes]) -> None:
    _, error = crawl.communicate(timeout=DEADLINE_SECONDS)
    if crawl.returncode:
        raise RuntimeError(f"the crawl exited with {crawl.returncode}: {error.decode()}")


def run_rounds(rounds: int, seed: int | str, folder: Path, say: Any = lambda _: None) -> KillTally:
    """Kill `rounds` crawls; every moment follows from `seed`, as far as a machine's clock can."""
    rng = Random(seed)
    tally = KillTally()
    with FaultServer(answer, delay=0.01) as server:
        whole_store = folder / "whole.db"
        finish_crawl(start_crawl(whole_store, server.url))
        expected, total = read_tables(whole_store), len(server.bodies)
        for number in range(rounds):
            store = folder / f"{number}.db"
            server.bodies.clear()
            sent_requests: set[str] = set()
            for _ in range(rng.randint(1, 3)):
                logged_requests = logged_fingerprints(store)
                before = len(server.bodies)
                crawl = start_crawl(store, server.url)
                _wait_randomly(crawl, server, rng, total)
                crawl.send_signal(signal.SIGKILL)
                crawl.communicate()
                server.wait_until_idle()
                tally.kills += crawl.returncode == -signal.SIGKILL
                new = [fingerprint(body) for body in server.bodies[before:]]
                tally.kills_in_crawl += crawl.returncode == -signal.SIGKILL and bool(new)
                _count_requests(tally, new, sent_requests, logged_requests)
            logged_requests, before = logged_fingerprints(store), len(server.bodies)
            finish_crawl(start_crawl(store, server.url))
            _count_requests(
                tally,
                [fingerprint(b) for b in server.bodies[before:]],
                sent_requests,
                logged_requests,
            )
            tally.rounds += 1
            tally.requests += len(server.bodies)
            for table, rows in read_tables(store).items():
                tally.lost_rows += (expected[table] - rows).total()
                tally.extra_rows += (rows - expected[table]).total()
                tally.wrong_tables += rows != expected[table]
            say(f"round {number + 1}: {tally}")
    return tally


def _wait_randomly(
    crawl: subprocess.Popen[bytes], server: FaultServer, rng: Random, total: int
) -> None:
    """Until a random moment: mostly a number of requests and some milliseconds after it, which
    spreads over the whole crawl; now and then a time, which hits the start."""
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 1.5))
        return
    target = len(server.bodies) + rng.randrange(total)
    while len(server.bodies) < target and crawl.poll() is None:
        time.sleep(0.001)
    time.sleep(rng.uniform(0, 0.05))


def _count_requests(
    tally: KillTally, new: list[str], sent_requests: set[str], logged_requests: set[str]
) -> None:
    tally.asked_twice += (
        sum(request in logged_requests for request in new) + len(new) - len(set(new))
    )
    tally.asked_again += len((set(new) & sent_requests) - logged_requests)
    sent_requests |= set(new)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally = run_rounds(
            options.rounds, options.seed, Path(folder), lambda text: print(text, file=sys.stderr)
        )
    print(tally)
    sys.exit(not tally.is_sound)


if __name__ == "__main__":
    main()
