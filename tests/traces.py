"""What public calls leave behind in the process of their caller.

    python -m tests.traces        each call of a study and a run with what it changed, as JSON lines

All global state that a call could change is looked at before and after each public method of
`Study` and `Run`, on a small store of the reference model's world, in one process.
"""

import decimal
import gc
import json
import locale
import logging
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.rooms import import_parts

if TYPE_CHECKING:
    import kgbias

# Public methods that are not called here, and why.
LEFT_OUT = {
    "Study.calibrate": "a crawl, measured",
    "Study.coverage": "crawls, measured",
    "Study.compare_languages": "needs probed crawls in two languages, and only reads them",
    "Study.serve": "runs until it is stopped",
    "Study.working": "a context, in which others are called",
    "Run.rename_topic": "embeds and clusters: half a minute of imports",
}
REFERENCE = "reference"
PEOPLES = ["Velmari people", "Orunthi people"]


def state() -> dict[str, Any]:
    """What a call could change, by name. What a package brings with it when it is first imported
    is looked at as that package leaves it."""
    found: dict[str, Any] = {
        "random": random.getstate(),
        "environment": dict(os.environ),
        "working folder": str(Path.cwd()),
        "warnings": [str(entry) for entry in warnings.filters],
        "signals": {str(s): str(signal.getsignal(s)) for s in signal.valid_signals()},
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "loggers": _loggers(),
        "path": list(sys.path),
        "hooks": [sys.excepthook, sys.displayhook, threading.excepthook, sys.unraisablehook],
        "streams": [sys.stdin, sys.stdout, sys.stderr],
        "locale": locale.setlocale(locale.LC_ALL),
        "decimals": str(decimal.getcontext()),
        "garbage": gc.get_threshold(),
        "recursion": sys.getrecursionlimit(),
        "timeout": socket.getdefaulttimeout(),
    }
    if numpy := sys.modules.get("numpy"):
        kind, keys, *rest = numpy.random.get_state()
        found["numpy"] = (kind, keys.tolist(), *rest)
        found["numpy errors"] = numpy.geterr()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "random"):
        found["torch"] = torch.random.get_rng_state().tolist()
        found["torch settings"] = (
            torch.get_num_threads(),
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
        )
    if matplotlib := sys.modules.get("matplotlib"):
        found["rcParams"] = {name: str(value) for name, value in dict(matplotlib.rcParams).items()}
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        found["figures"] = pyplot.get_fignums()
    if shown := sys.modules.get("transformers.utils.logging"):
        found["transformers"] = (shown.get_verbosity(), shown.is_progress_bar_enabled())
    if pandas := sys.modules.get("pandas"):
        found["pandas"] = pandas.options.display.max_rows
    return found


def _loggers() -> dict[str, tuple[int, int, bool, bool]]:
    named = {"root": logging.getLogger(), **logging.root.manager.loggerDict}
    return {
        name: (own.level, len(own.handlers), own.propagate, own.disabled)
        for name, own in named.items()
        if isinstance(own, logging.Logger)
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of what differs. A logger or a package that is new is as its package made it, but
    for transformers, whose verbosity people know."""
    found = []
    for name, value in after.items():
        if name == "loggers":
            value = {own: value[own] for own in before[name] if own in value}
        if name == "transformers" and name not in before:
            before = {**before, name: (logging.WARNING, True)}
        if name in before and before[name] != value:
            found.append(f"{name}: {_told(before[name], value)}")
    return found


def _told(before: Any, after: Any) -> str:
    if isinstance(before, dict):
        names = [n for n in {**before, **after} if before.get(n) != after.get(n)]
        return str({n: (before.get(n), after.get(n)) for n in names})
    if isinstance(before, list) and len(str(before)) < 10_000:
        gone = [each for each in before if each not in after]
        return f"new {[each for each in after if each not in before]}, gone {gone}"
    return f"{str(before)[:80]} to {str(after)[:80]}"


@dataclass(frozen=True)
class TraceWorld:
    """What the calls of a method are made on: a study with the measured run "said", and a folder
    for files."""

    study: "kgbias.Study"
    folder: Path

    def run(self) -> "kgbias.Run":
        return self.study.run("said")


def open_writer(text: str) -> Any:
    """A model that always answers this."""
    import kgbias

    def answer(prompts: list[str]) -> list[str]:
        return [text for _ in prompts]

    return kgbias.in_memory(answer, name=text[:5])


def find_left_out() -> dict[str, str]:
    """The public calls that are not made here, those of methods too, and why."""
    found = dict(LEFT_OUT)
    for part in import_parts("traces"):
        found |= getattr(part, "LEFT_OUT", {})
    return found


def calls_of_methods(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    """Those of each method that is there: `calls` in `tests/methods/NAME/traces.py`."""
    return {
        name: call for part in import_parts("traces") for name, call in part.calls(world).items()
    }


def calls(study: "kgbias.Study", folder: Path) -> dict[str, Callable[[], Any]]:
    """Each public method, with arguments that let it do its work, in an order in which each finds
    what it needs."""
    asked: Any = {"samples": 2, "iterations": 0, "initial_predicates": ["wear", "love"]}
    probes: Any = {"probes": 300, "statements": ["wear amber scarves"]}

    import kgbias

    def run() -> kgbias.Run:
        return study.run("said")

    def later() -> kgbias.Run:
        return study.run("later")

    def drawn() -> Any:
        from matplotlib.figure import Figure

        return run().draw("overall_regard", ax=Figure().subplots())

    def crawl(name: str) -> Any:
        return study.crawl(REFERENCE, group=PEOPLES, name=name, **asked)

    said = [
        {"group": people, "predicate": "love", "object": what, "count": 3}
        for people in PEOPLES
        for what in ("cruelty", "rain", "helping strangers", "wasting time", "folk tales", "hats")
    ]
    return {
        # The rest of it are calls that stand here.
        "Study.map": lambda: study.map(REFERENCE, group=PEOPLES, dry_run=True),
        "Study.crawl": lambda: (
            study.crawl(REFERENCE, group=PEOPLES, dry_run=True, **asked),
            crawl("said"),
            study.crawl(REFERENCE, group=PEOPLES, seed=1, name="later", **asked),
        ),
        "Study.runs": lambda: study.runs().to_frame(),
        "Study.run": lambda: repr(study.run()),
        "Study.series": lambda: study.series("said"),
        "Study.import_file": lambda: study.import_file(said, name="imported"),
        "Run.measure": lambda: (
            run().measure(dry_run=True),
            run().measure(),
            later().measure(axes=False),
        ),
        "Run.counted_statements": lambda: repr(run().counted_statements()),
        "Run.triples": lambda: run().triples().to_frame(),
        "Run.groups": lambda: run().groups().to_frame(),
        "Run.figure": lambda: run().figure(PEOPLES[0], "overall_regard")._repr_html_(),
        "Run.compare_groups": lambda: run().compare_groups().to_frame(),
        "Run.arm_tests": lambda: run().arm_tests(),
        "Run.variance": lambda: run().variance(),
        "Run.agreement": lambda: run().agreement(),
        "Run.refusals": lambda: run().refusals(),
        "Run.said_more": lambda: run().said_more(),
        "Run.questions": lambda: run().questions(),
        "Run.generations": lambda: run().generations(),
        "Run.means_by_prompt_type": lambda: run().means_by_prompt_type(),
        "Run.cost": lambda: run().cost(),
        "Run.structure": lambda: run().structure(),
        "Run.topic_models": lambda: run().topic_models(),
        "Run.topics": lambda: run().topics(),
        "Run.to_networkx": lambda: run().to_networkx(),
        "Run.draw": drawn,
        "Run.merge": lambda: run().merge(),
        "Run.review": lambda: run().review(),
        "Run.ask": lambda: run().ask("What is said of Velmari people?"),
        "Run.ask_in_cypher": lambda: run().ask_in_cypher(
            "How many?", open_writer("MATCH (n) RETURN 1")
        ),
        "Run.probe": lambda: run().probe(REFERENCE),
        "Run.probe_models": lambda: run().probe_models([REFERENCE]),
        "Run.probes": lambda: run().probes(),
        "Run.evidence": lambda: (
            run().evidence(asking=probes, dry_run=True),
            run().evidence(REFERENCE, asking=probes),
        ),
        "RunBeliefs.agreement": lambda: run().beliefs.agreement(),
        "RunBeliefs.floor": lambda: run().beliefs.floor(),
        "RunBeliefs.groups": lambda: run().beliefs.groups(),
        "RunBeliefs.models": lambda: run().beliefs.models(),
        "RunBeliefs.replicate": lambda: run().beliefs.replicate(),
        "Study.probe_sets": lambda: study.probe_sets(
            REFERENCE, {"peoples": (PEOPLES, ["wear amber scarves", "love rain"])}
        ),
        "Study.sofa": lambda: study.sofa(),
        "Study.scorers": lambda: (study.scorers(dry_run=True), study.scorers()),
        "Study.compare_runs": lambda: study.compare_runs("said", "later").to_frame(),
        "Study.compare_models": lambda: study.compare_models("said", "later"),
        "Study.query": lambda: study.query("most_repeated", run="said"),
        "Study.cypher": lambda: study.cypher("MATCH (g:Group) RETURN g.name LIMIT 1"),
        **calls_of_methods(TraceWorld(study, folder)),
        "Run.report": lambda: run().report(folder / "report.html"),
        "Run.summarise": lambda: run().summarise(folder / "summary.md"),
        "Run.figures": lambda: run().figures(folder / "figures"),
        "Run.explore": lambda: run().explore(folder / "explorer.html"),
        "Run.export": lambda: run().export(folder / "said.csv"),
        "Run.publish": lambda: run().publish(folder / "published"),
        "Study.report": lambda: study.report(["said", "later"], folder / "both.html"),
        "Study.figures": lambda: study.figures(["said", "later"], folder / "both"),
        "Study.explore": lambda: study.explore(["said", "later"], folder / "all.html"),
        "StoreMaintenance.verify": lambda: study.store.verify(),
        "StoreMaintenance.rename_model": lambda: study.store.rename_model(REFERENCE, "mine"),
        "StoreMaintenance.backup": lambda: study.store.backup(folder / "copy.db"),
        "StoreMaintenance.push": lambda: study.store.push(folder / "other.db", run="said"),
        "StoreMaintenance.delete": lambda: study.store.delete("imported"),
        "StoreMaintenance.compact": lambda: study.store.compact(),
        **module_calls(folder),
    }


def module_calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """The functions of kgbias itself."""
    import kgbias

    def answer(prompts: list[str]) -> list[str]:
        return ["wear hats." for _ in prompts]

    def scorer() -> Any:
        return kgbias.open_scorer(REFERENCE)

    plan = folder / "study.toml"
    plan.write_text(f'[[crawls]]\nmodel = "{REFERENCE}"\n')
    return {
        "kgbias.known_seeds": lambda: kgbias.known_seeds(REFERENCE),
        "kgbias.price": lambda: kgbias.price(REFERENCE, group=PEOPLES),
        "kgbias.in_memory": lambda: kgbias.in_memory(answer, name="mine"),
        "kgbias.open_model": lambda: kgbias.open_model(REFERENCE),
        "kgbias.open_scorer": scorer,
        "kgbias.surprisals": lambda: kgbias.surprisals(scorer(), ["love rain"]),
        "kgbias.load_scorer": lambda: kgbias.load_scorer("regard"),
        "kgbias.gather_sets": lambda: kgbias.gather_sets(
            identities=PEOPLES, statements=["love rain"]
        ),
        "kgbias.probe_sets": lambda: kgbias.probe_sets(
            scorer(), {"peoples": (tuple(PEOPLES), ("love rain",))}
        ),
        "kgbias.model_kinds": kgbias.model_kinds,
        "kgbias.plugins": kgbias.plugins,
        "kgbias.queries": kgbias.queries,
        "kgbias.read_plan": lambda: kgbias.read_plan(plan),
        "kgbias.reproduce": lambda: kgbias.reproduce(folder / "published"),
    }


def main() -> None:
    """Print what each call changed, and the message of those that were refused."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        import numpy  # noqa: F401  # adds filters of warnings when it is imported

        before = state()
        import kgbias

        study = kgbias.open(folder / "kgbias.db", progress=False)
        _print("open", before)
        for called, call in calls(study, folder).items():
            before, refused = state(), ""
            try:
                call()
            except Exception as error:  # what a call changes before it fails counts too
                refused = f"{type(error).__name__}: {error}"
            _print(called, before, refused)
        before = state()
        study.close()
        _print("Study.close", before)


def _print(call: str, before: dict[str, Any], refused: str = "") -> None:
    found = changes(before, state())
    print(json.dumps({"call": call, "changes": found, "refused": refused}), flush=True)


if __name__ == "__main__":
    main()
