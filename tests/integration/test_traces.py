"""No public call leaves a trace in the process of its caller but its result: random states,
environment, matplotlib's settings, loggers, filters of warnings, signals, threads and the working
folder are as they were."""

import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kgbias
from tests.conftest import needs

pytestmark = [pytest.mark.integration, pytest.mark.slow]
# What these set as they are imported is theirs, and stays; the docs list it.
needs("torch", "transformers", "matplotlib", "pandas", "networkx", "scipy")

ROWS = [
    {"group": group, "predicate": predicate, "object": object, "category": "gender"}
    for group, predicate, object in (
        ("Men", "love", "rain"),
        ("Men", "are", "lazy"),
        ("Men", "hate", "music"),
        ("Women", "love", "music"),
        ("Women", "are", "kind"),
        ("Women", "are", "lazy"),
    )
]
SETS: Any = {"identities": {"": ["Men", "Women"]}, "statements": ["are lazy", "love rain"]}
WORDS: Any = {role: [f"{role}{n}" for n in range(3)] for role in "xyab"}
VECTORS = {
    w: [float(n), 1.0 + n % 3, n * n % 5.0]
    for n, w in enumerate(w for r in WORDS.values() for w in r)
}
CRAWL: Any = {"group": ["Velmari people", "Orunthi people"], "samples": 1, "iterations": 0}


def state() -> dict[str, Any]:
    """All global state that a call might leave changed."""
    import matplotlib
    import numpy as np
    import torch
    from transformers.utils import logging as verbosity

    return {
        "random": random.getstate(),
        "numpy": str(np.random.get_state()),
        "torch": torch.random.get_rng_state().tolist(),
        "torch's modes": (
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
        ),
        "environment": dict(os.environ),
        "rcParams": dict(matplotlib.rcParams),
        "loggers": {
            name: (own.level, list(own.handlers), own.propagate, own.disabled)
            for name in ("", "kgbias", "transformers", "matplotlib", "urllib3", "py.warnings")
            for own in [logging.getLogger(name)]
        },
        "verbosity": (verbosity.get_verbosity(), verbosity.is_progress_bar_enabled()),
        "filters": list(warnings.filters),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
        "threads": {t.name for t in threading.enumerate() if "kgbias" in t.name.lower()},
        "folder": Path.cwd(),
        "hooks": (sys.excepthook, sys.displayhook, sys.path[:]),
    }


def test_no_call_leaves_a_trace(tmp_path: Path) -> None:
    left: dict[str, list[str]] = {}

    def tried(name: str, call: Callable[[], Any]) -> Any:
        before = state()
        found = call()
        after = state()
        if changed := [what for what in before if before[what] != after[what]]:
            left[name] = changed
        return found

    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = tried("import_file", lambda: study.import_file(ROWS, name="own"))
        crawl = tried("crawl", lambda: study.crawl("reference", name="crawl", **CRAWL))
        other = study.crawl("reference", name="other", seed=1, **CRAWL)
        of_run: dict[str, Callable[[], Any]] = {
            "measure": lambda: [run.measure(), crawl.measure(), other.measure()],
            "tests": lambda: run.tests(),
            "structure": lambda: run.structure(),
            "merge": lambda: run.merge(),
            "evidence": lambda: run.evidence("reference"),
            "probe": lambda: run.probe("reference"),
            "explore": lambda: run.explore(tmp_path / "explorer.html"),
            "report": lambda: run.report(tmp_path / "report.html"),
            "figures": lambda: run.figures(tmp_path / "figures"),
            "export": lambda: run.export(tmp_path / "graph.svg"),
            "publish": lambda: run.publish(tmp_path / "published"),
            "summarise": lambda: run.summarise(tmp_path / "summary.md"),
            "ask": lambda: run.ask("What of men?"),
            "attribute": lambda: run.attribute("regard", top=1),
            "draw": lambda: run.draw("regard_chosen"),
            "to_networkx": lambda: run.to_networkx(),
            "refusals": lambda: crawl.refusals(),
            "triples": lambda: run.triples().to_frame(),
            "groups": lambda: run.groups().to_frame(),
            "faithfulness": lambda: crawl.faithfulness(),
        }
        of_study: dict[str, Callable[[], Any]] = {
            "compare": lambda: study.compare("crawl", "other"),
            "contrast": lambda: study.contrast("crawl", "other"),
            "benchmark": lambda: study.benchmark("reference", **SETS),
            "probe_sets": lambda: study.probe_sets("reference", kgbias.gather_sets(**SETS)),
            "associate": lambda: study.associate(tests=WORDS, vectors=VECTORS),
            "associate a model": lambda: study.associate("reference", tests=WORDS),
            "price": lambda: study.price("reference"),
            "scorers": lambda: study.price_scorers(),
            "report": lambda: study.report(["crawl", "other"], tmp_path / "several.html"),
        }
        of_all: dict[str, Callable[[], Any]] = {
            "open": lambda: kgbias.open(None).close(),
            "open_model": lambda: kgbias.open_model("reference"),
            "open_scorer": lambda: kgbias.open_scorer("reference"),
            "load_scorer": lambda: kgbias.load_scorer("toxicity"),
            "in_memory": lambda: kgbias.in_memory(lambda prompts: prompts, name="own"),
        }
        for calls in (of_run, of_study, of_all):
            for name, call in calls.items():
                tried(name, call)
    assert left == {}


def test_a_caller_s_function_keeps_its_own_random_state(tmp_path: Path) -> None:
    """What a function draws goes on from where it was, though nothing else moves the state."""
    drawn: list[float] = []

    def model(prompts: list[str]) -> list[str]:
        drawn.extend(random.random() for _ in prompts)
        return [" are kind." for _ in prompts]

    random.seed(3)
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        study.crawl(model, called="one", **CRAWL)
        study.crawl(model, called="two", **CRAWL)
    random.seed(3)
    assert drawn == [random.random() for _ in drawn]
    assert len(set(drawn)) == len(drawn)
