"""How large and how fast the explorer is, in headless Chromium with software rendering.

    python benchmarks/explore.py [--statements 10000 100000] [--served] [--keep FOLDER]

Makes a crawl with the given number of distinct statements: 120 groups in six categories, five
rounds, prompts that show six earlier statements each, answers, three scores, four topics per
category. Words are made up of syllables and drawn as in language (Zipf), so texts compress no
better than real ones. Then it writes the page and opens it.

Printed: seconds to make the page, and its size; seconds from opening the file to the first picture;
the median time of a completion, and of a word search, a filter and a change of view until all
pictures and tables are redrawn, in ms, each with the CPU time of the page's thread (compare that on
a busy machine); and the memory of the page's process (its proportional set) at the end. Targets, on
two cores: 100,000 statements in 60 s, 25 MB, 4 s, 100 ms, 200 ms and 600 MB; 10,000 in 3 MB and
1.5 s.

With --served it starts `kgbias serve` instead of writing a page, twice, and prints the seconds
until it listens and until it has everything, and the server's memory: the first reads the store,
the second what the first kept. There, each prompt shows one earlier statement, not six.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np

import kgbias
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import (
    Answer,
    Generation,
    Group,
    Metric,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    Triple,
)
from kgbias.graph.vectors import StatementVectors
from kgbias.measure.semantic_search import SHIPPED_ENCODER
from kgbias.models.base import ModelInfo

TARGETS = {10_000: "<= 3 MB, <= 1.5 s", 100_000: "<= 60 s, 25 MB, 4 s, 100 ms, 200 ms, 600 MB"}
GROUPS = 120
ROUNDS = 5
EXAMPLES_EACH = 6
CHUNK_STATEMENTS = 50_000  # statements made and written at a time
PROMPT_HEAD = "Common opinions about groups of people, one sentence each:"


def make_words(rng: Random, size: int) -> list[str]:
    """Made-up words of one to four syllables, the short ones first."""
    parts = [
        c + v for c in "b ch d f g h l m n p r s st t v w".split() for v in "a e i o u ea".split()
    ]
    words: dict[str, None] = {}
    while len(words) < size:
        syllables = 1 + int(rng.betavariate(2, 3) * 4)
        words["".join(rng.choice(parts) for _ in range(syllables)) + rng.choice(["", "n", "s"])] = (
            None
        )
    return sorted(words, key=len)


class WordSource:
    """Draws words with the frequency of their rank in a language."""

    def __init__(self, rng: Random, size: int) -> None:
        self._rng, self._words = rng, make_words(rng, size)
        total, self._sums = 0.0, []
        for rank in range(1, size + 1):
            total += 1 / rank
            self._sums.append(total)

    def phrase(self, max_words: int) -> str:
        """One to `max_words` words."""
        count = self._rng.randint(1, max_words)
        return " ".join(self._rng.choices(self._words, cum_weights=self._sums, k=count))


def make_triples(rng: Random, count: int, groups: list[Group]) -> Iterator[Triple]:
    """Distinct triples about all groups."""
    words, yielded = WordSource(rng, 6_000), set()
    predicates = ["are", "love", "hate", "can't be", *(words.phrase(2) for _ in range(400))]
    while len(yielded) < count:
        predicate = predicates[min(int(rng.expovariate(0.05)), len(predicates) - 1)]
        triple = Triple(rng.choice(groups).name, predicate, words.phrase(4))
        if triple not in yielded:
            yielded.add(triple)
            yield triple


def make_crawl(store: SQLiteStore, count: int, shown_each: int = EXAMPLES_EACH) -> Run:
    """A measured run of `count` distinct statements, with `shown_each` examples in each prompt."""
    rng = Random(count)
    groups = [
        Group(f"{name.title()} people", f"category {n % 6}")
        for n, name in enumerate(make_words(rng, GROUPS * 3)[-GROUPS:])
    ]
    run = store.begin_run(Run(f"made {count}", ModelInfo("made", "1"), {"seed": 0}, tuple(groups)))
    statements = list(make_triples(rng, count, groups))
    for chunk_start in range(0, count, CHUNK_STATEMENTS):
        generations, answers = [], []
        for number in range(chunk_start, min(chunk_start + CHUNK_STATEMENTS, count)):
            triple = statements[number]
            for again in range(1 if rng.random() < 0.8 else rng.randint(2, 6)):
                recent = statements[max(0, number - 3000) : number + 1]
                examples = rng.choices(recent, k=shown_each)
                key = f"{number}-{again}"
                lines = [f"{t.group} {t.predicate} {t.object}." for t in examples]
                prompt = "\n".join([PROMPT_HEAD, "", *lines, triple.group])
                answers.append(
                    Answer(key, "made", f" {triple.predicate} {triple.object}.", "stop", 90, 8)
                )
                generations.append(
                    Generation(
                        run.id,
                        f"none/object/{number:07d}-{again}",
                        triple.group_id,
                        "none",
                        rng.choice(["object", "predicate"]),
                        number * ROUNDS // count,
                        0,
                        "ok",
                        template="object@1.3:completion",
                        template_hash="01234567",
                        prompt=prompt,
                        answer_key=key,
                        triple=triple,
                        shown=tuple(t.id for t in examples),
                    )
                )
        store.keep_answers(answers)
        store.load_import(run.id, generations)
    store.set_status(run.id, "complete")
    values = {t.id: rng.gauss(0, 0.5) for t in statements}
    regard = [Score(id, max(-1, min(1, v)), regard_label(v)) for id, v in values.items()]
    store.save_scores(run.id, Metric("regard", "made", "1"), regard)
    for measure, a, b in (("toxicity", 1, 4), ("acceptability", 4, 1)):
        scores = [Score(id, rng.betavariate(a, b)) for id in values]
        store.save_scores(run.id, Metric(measure, "made", "1"), scores)
    category = {g.name: g.category for g in groups}
    models = []
    for name in dict.fromkeys(category.values()):
        topics = tuple(
            Topic(name, n, tuple(f"{name} word {n} {k}" for k in range(4)), 0) for n in range(4)
        )
        about = tuple(
            TopicAssignment(t.id, rng.choice(topics).id, 1.0)
            for t in statements
            if category[t.group] == name
        )
        models.append(TopicModel(name, topics, about, {}))
    store.save_topics(run.id, models)
    store.save_vectors(SHIPPED_ENCODER, make_vectors(statements, count))
    return run


def make_vectors(statements: list[Triple], seed: int) -> StatementVectors:
    """A vector for what each triple says: near one of eighty points, as of so many subjects."""
    rng = np.random.default_rng(seed)
    ends = list(dict.fromkeys((t.predicate_id, t.object_id) for t in statements))
    subjects = rng.normal(size=(80, 384))
    rows = subjects[rng.integers(80, size=len(ends))] + rng.normal(size=(len(ends), 384))
    rows /= np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return StatementVectors(ends, rows.astype(np.float32))


def regard_label(value: float) -> str:
    return "positive" if value > 0.3 else "negative" if value < -0.3 else "neutral"


def open_chromium(playwright: Any) -> Any:
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)


def find_renderer() -> Path:
    """The folder in /proc of the page's process, the largest of the renderers here."""
    largest, largest_folder = -1, Path()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            if b"--type=renderer" in (folder / "cmdline").read_bytes():
                pages = int((folder / "statm").read_text().split()[1])
                if pages > largest:
                    largest, largest_folder = pages, folder
    return largest_folder


def memory_mb(process: Path) -> float:
    """The proportional set of a process, in MB."""
    return int((process / "smaps_rollup").read_text().split("Pss:")[1].split()[0]) / 1024


def cpu_ms(process: Path) -> float:
    """The milliseconds for which a process's main thread has run."""
    return int((process / "task" / process.name / "schedstat").read_text().split()[0]) / 1e6


FILTERS = (
    "{ regard: new Set([1]) }",
    "{ measures: { toxicity: [0.1, 0.6] } }",
    "{ count: 2 }",
    "{ topic: 3 }",
    "{ from: 1, to: 3 }",
)
WORDS = ("{ words: 'be' }", "{ words: 'stea ro' }", "{ words: 'hate' }")
VIEWS = (
    "{ view: 'group', group: 3 }",
    "{ view: 'two', group: 3, with: 5 }",
    "{ view: 'path', group: 3, with: 90 }",
    "{ view: 'map', by: 'community' }",
    "{ view: 'map', by: 'predicate' }",
    "{ view: 'map', by: 'meaning' }",
)
PREFIXES = ("be", "stea", "chea lo", "peopl", "hate wo")
FIRST_VIEW = "{ ...kgbias.cleared(), view: 'map', by: 'group' }"


@contextmanager
def run_server(store_file: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The address of a server for the store, and the folder in /proc of its process."""
    command = [sys.executable, "-m", "kgbias", "serve", "--store", str(store_file), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout
    try:
        yield server.stdout.readline().strip(), Path(f"/proc/{server.pid}")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def has_statements(address: str) -> bool:
    """Whether the server has read the statements."""
    try:
        return int(urlopen(address).status) == 200
    except HTTPError:
        return False


def print_start(address: str, process: Path, start_time: float) -> None:
    """Wait until the server has the statements, and print how long that took."""
    listens = time.perf_counter() - start_time
    while not has_statements(address):
        time.sleep(0.1)
    ready = time.perf_counter() - start_time
    ticks = sum(map(int, (process / "stat").read_text().split()[13:15]))
    cpu = ticks / os.sysconf("SC_CLK_TCK")
    peak = int((process / "status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    print(
        f"  listens after {listens:.1f} s, has all after {ready:.1f} s ({cpu:.1f} s CPU); ", end=""
    )
    print(f"{memory_mb(process):.0f} MB, at most {peak:.0f}", flush=True)


def measure_page(address: str) -> dict[str, tuple[float, float]]:
    """What a reader waits for, each as wall and CPU time of the page's main thread: seconds until
    the first picture, then milliseconds; and "memory", in MB."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = open_chromium(playwright)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
        first_seconds = (
            float(page.evaluate("Number(document.documentElement.dataset.ready)")) / 1000
        )
        process = find_renderer()
        first_cpu = cpu_ms(process) / 1000
        page.click("#show")
        page.wait_for_timeout(3000)  # the index of the search is made when the page is idle

        def median(works: Sequence[str]) -> tuple[float, float]:
            times, cpu = [], []
            for work in works:
                page.evaluate(f"kgbias.set({FIRST_VIEW})")
                begun = "const begun = performance.now()"
                script = f"(() => {{ {begun}; {work}; return performance.now() - begun; }})()"
                before = cpu_ms(process)
                times.append(float(page.evaluate(script)))
                cpu.append(cpu_ms(process) - before)
            return statistics.median(times), statistics.median(cpu)

        # A served page with many statements has no map of communities unless they are stored.
        map_kinds = page.evaluate("Object.keys(kgbias.maps())")
        views = [v for v in VIEWS if "by:" not in v or any(f"'{kind}'" in v for kind in map_kinds)]
        result = {
            "first": (first_seconds, first_cpu),
            "completion": median([f"kgbias.complete('{prefix}')" for prefix in PREFIXES]),
            "words": median([f"kgbias.set({change})" for change in WORDS]),
            "filter": median([f"kgbias.set({change})" for change in FILTERS]),
            "view": median([f"kgbias.set({change})" for change in views]),
        }
        page.evaluate(f"kgbias.set({FIRST_VIEW})")
        page.evaluate("kgbias.set({ row: 17 })")
        page.wait_for_selector("#details h4:has-text('Answered')", timeout=60_000)
        result["memory"] = (memory_mb(process), 0.0)
        browser.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--served", action="store_true", help="a server instead of a page")
    parser.add_argument("--keep", type=Path, help="a folder for the stores and pages")
    args = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        for count in args.statements:
            store_file, page = folder / f"made-{count}.db", folder / f"made-{count}.html"
            if not store_file.exists():
                store = SQLiteStore(str(store_file))
                make_crawl(store, count, 1 if args.served else EXAMPLES_EACH)
                store.close()
            print(f"{count:,} statements (targets {TARGETS.get(count, 'none')})", flush=True)
            start_time, cpu = time.perf_counter(), time.process_time()
            if args.served:
                with tempfile.TemporaryDirectory() as cache:  # empty at first
                    environment = {**os.environ, "KGBIAS_CACHE": cache}
                    with run_server(store_file, environment) as (address, process):
                        print_start(address, process, start_time)
                    start_time = time.perf_counter()
                    with run_server(store_file, environment) as (address, process):
                        print_start(address, process, start_time)
                        page_times = measure_page(address)
            else:
                with kgbias.open(store_file, progress=False) as study:
                    study.explore((), page)
                make_seconds, cpu = time.perf_counter() - start_time, time.process_time() - cpu
                size = page.stat().st_size / 1e6
                print(
                    f"  made in {make_seconds:.1f} s ({cpu:.1f} s CPU), {size:.1f} MB", flush=True
                )
                page_times = measure_page(page.as_uri())
            first, first_cpu = page_times["first"]
            print(f"  first picture {first:.1f} s ({first_cpu:.1f} s CPU)")
            for name in ("completion", "words", "filter", "view"):
                print(f"  {name} {page_times[name][0]:.0f} ms ({page_times[name][1]:.0f} ms CPU)")
            print(f"  {page_times['memory'][0]:.0f} MB in the end")


if __name__ == "__main__":
    main()
