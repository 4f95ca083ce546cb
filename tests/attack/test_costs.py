"""Time and memory follow what is there: an answer's length, a table's rows, not its counts."""

import csv
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kgbias.crawl import parse
from kgbias.models.thoughts import split_thought
from tests.attack.commands import Commands
from tests.attack.worlds import MEASURE, ROWS, measure_options
from tests.waiting import end_hangs

pytestmark = pytest.mark.attack
LONG = 100_000  # characters

SHAPES: dict[str, Callable[[int], str]] = {
    "spaces": lambda n: " " * n,
    "spaces and a word": lambda n: " " * n + "x",
    "a word and spaces": lambda n: "x" + " " * n,
    "a word, spaces, a word": lambda n: "love" + " " * n + "music",
    "tabs": lambda n: "x" + "\t" * n + "x",
    "a fence and spaces": lambda n: "```" + " " * n,
    "a fence and lines": lambda n: "```json" + "\n" * n + "x",
    "fences": lambda n: "```" * (n // 3),
    "commas": lambda n: ", " * (n // 2),
    "commas and spaces": lambda n: "a," + " " * n + "b",
    "a comma, words that open": lambda n: ", and" * (n // 5),
    "dashes": lambda n: "x " + "-" * n,
    "dashes and spaces": lambda n: " -" * (n // 2),
    "stops": lambda n: "x" + "." * n + "x",
    "stops and marks": lambda n: ".!?" * (n // 3),
    "A:": lambda n: "love\n" + "A:" * (n // 2),
    "Q:": lambda n: " Q:" * (n // 3),
    "one word": lambda n: "x" * n,
    "words": lambda n: "word " * (n // 5),
    "sorry": lambda n: "." * n + "I'm sorr",
    "not letters": lambda n: "#" * n + "i am",
    "braces": lambda n: "{" * n,
    "JSON that is deep": lambda n: '{"a":' * (n // 5),
    "a long string": lambda n: '{"object": "' + " " * n + '"}',
    "quotes": lambda n: '"' * n,
    "initials": lambda n: "J. " * (n // 3),
    "controls": lambda n: "\u200b" * n,
    "lines": lambda n: "x\n" * (n // 2),
    "preambles": lambda n: "Sure! " * (n // 6),
    "announcements": lambda n: "Here is one:\n" * (n // 13),
    "notes": lambda n: "a (note " * (n // 8),
    "bullets": lambda n: "1. " * (n // 3),
    "adverbs": lambda n: "never " * (n // 6),
    "auxiliaries": lambda n: "can't be " * (n // 9),
    "hyphens": lambda n: "a-" * (n // 2),
    "repetitions": lambda n: "Women love " * (n // 11),
    "one line of A:": lambda n: "x" + " A:" * (n // 3),
}


def _read(text: str) -> None:
    for predicate in ("love", None):
        for finish in ("stop", "length"):
            for reader in ("list", "english", "german"):
                parse.read_answer(
                    text,
                    finish,
                    predicate=predicate,
                    filters=("refusal", "salinas-2023"),
                    subject="Women",
                    reader=reader,
                )
    for names_predicate in (True, False):
        parse.flatten_schema_answer(text, names_predicate=names_predicate)


@pytest.mark.parametrize("name", SHAPES)
def test_parsing_is_linear(name: str) -> None:
    """A moment's work, which would be hours' if it grew with the square of the length."""
    with end_hangs():
        _read(SHAPES[name](LONG))


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>" + "a" * LONG,
        "<|channel|>a" * (LONG // 12),
        "<think>" * (LONG // 7),
        "</think>" * (LONG // 8),
        " " * LONG,
        "assistant " * (LONG // 10),
        "thought\n" + "a\n" * (LONG // 2),
        "analysis" + "assistant" * (LONG // 9),
    ],
    ids=lambda text: text[:12],
)
def test_thoughts_are_told_apart_in_linear_time(text: str) -> None:
    with end_hangs():
        split_thought(text, was_cut=True)


def test_parsing_of_mixtures_is_linear() -> None:
    rng = random.Random(16)
    parts = ["  ", "\t", "\n", "```", "{", '"', ", and", " - ", ".", "A:", "Q:", "x", "—", ";", "#"]
    for _ in range(60):
        some = rng.choices(parts, k=rng.randint(1, 4))
        text = "".join(rng.choice(some) for _ in range(20_000))
        with end_hangs():
            _read(text)


def _import(folder: Path, counts: list[int]) -> None:
    with (folder / "c.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("group", "predicate", "object", "category", "count"))
        out.writerows(
            (g, p, o, c, counts[n % len(counts)]) for n, (g, p, o, c, _) in enumerate(ROWS)
        )


EACH = (
    ("measure", "c", *MEASURE),
    ("compare", "c"),
    ("report", "c", "-o", "c.html"),
    ("export", "c", "--format", "csv", "-o", "c.csv"),
    ("figures", "c", "-o", "f"),
    ("structure", "c"),
    ("export", "c", "--format", "csv-pair", "-o", "pairs"),
)


@pytest.mark.parametrize("counts", [[2**53 - 1], [2**53 - 1, 1, 10**9, 3]])
def test_counts_cost_nothing(commands: Commands, world: Path, counts: list[int]) -> None:
    _import(world, counts)
    assert commands.run("import", "c.csv", "--run", "c", cwd=world).code == 0
    for argv in EACH:
        ended = commands.run(*argv, cwd=world)
        assert ended.code == 0 and not ended.fault, ended
        assert ended.peak_bytes < 1 << 30, f"{argv[0]} took {ended.peak_bytes >> 20} MB"


def test_a_count_that_no_store_can_hold_is_refused(commands: Commands, world: Path) -> None:
    _import(world, [2**53])
    ended = commands.run("import", "c.csv", "--run", "c", cwd=world)
    assert ended.code == 2 and not ended.fault, ended


def test_a_figure_of_counts_is_the_figure_of_repeated_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The value is that of the expanded list exactly; the interval that of the same bootstrap."""
    from kgbias.stats import inference as statistics

    values = np.array([0.1, 0.9, 0.4, -1.0, 0.0])
    counts = np.array([3, 1, 7, 2, 40])
    monkeypatch.setattr(statistics, "_MAX_LISTED_VALUES", 10)  # from here on by counts
    for statistic in statistics.STATISTICS.values():
        plain = statistics.bootstrap(np.repeat(values, counts), statistic, draws=4000)
        counted = statistics.bootstrap(statistics.Sample(values, counts), statistic, draws=4000)
        assert math.isclose(plain.value, counted.value, abs_tol=1e-12)
        assert plain.n == counted.n
        scale = plain.high - plain.low
        assert abs(plain.low - counted.low) <= 0.15 * scale + 1e-12
        assert abs(plain.high - counted.high) <= 0.15 * scale + 1e-12


def test_tests_of_counts_are_those_of_scipy() -> None:
    from scipy.stats import ks_2samp, mannwhitneyu

    from kgbias.compare.two_sample import compare_samples
    from kgbias.stats.inference import Sample

    rng = np.random.default_rng(16)
    for size in (25, 60, 400):
        samples = [
            Sample(rng.integers(0, 9, size).astype(float), rng.integers(1, 7, size))
            for _ in range(2)
        ]
        a, b = (np.repeat(s.values, s.counts) for s in samples)
        found = compare_samples(*samples, draws=50)
        ks, mw = ks_2samp(a, b, method="asymp"), mannwhitneyu(a, b, method="asymptotic")
        assert math.isclose(found.ks, ks.statistic, rel_tol=1e-9)
        assert math.isclose(found.ks_p, ks.pvalue, rel_tol=1e-9)
        assert found.u == mw.statistic
        assert math.isclose(found.u_p, mw.pvalue, rel_tol=1e-9)


@pytest.mark.slow
def test_many_groups(commands: Commands, world: Path) -> None:
    """300 groups and 6,000 rows: whatever is drawn of them is drawn in little time."""
    with (world / "many.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("group", "predicate", "object"))
        out.writerows(
            (f"group {n % 300}", f"verb {n % 7}", f"thing {n % 501}") for n in range(6_000)
        )
    with (world / "many-scores.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("sentence", "label", "toxicity"))
        out.writerows(
            (
                f"Group {n % 300} verb {n % 7} thing {n % 501}.",
                ("positive", "negative")[n % 2],
                n % 10 / 10,
            )
            for n in range(6_000)
        )
    many = "scores:many-scores.csv"
    for argv in (
        ("import", "many.csv", "--run", "m"),
        ("measure", "m", *measure_options("none", regard=many, toxicity=many)),
        ("compare", "m"),
        ("figures", "m", "-o", "f"),
        ("report", "m", "-o", "m.html"),
    ):
        ended = commands.run(*argv, cwd=world)
        assert ended.code == 0 and not ended.fault, ended
