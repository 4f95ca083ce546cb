"""Carrying out a study that a file declares, and saying how far it is."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kgbias.errors import Interrupted, KgbiasError, RunNotFound
from kgbias.graph.cypher import QueryResult
from kgbias.graph.stored import StoredRun
from kgbias.io.files import write_text
from kgbias.io.progress import Progress
from kgbias.parameters import as_names
from kgbias.query import write_result
from kgbias.stats.estimate import finite
from kgbias.study.contrasts import comparison_records
from kgbias.study.plan import Plan
from kgbias.study.plan_entries import Step
from kgbias.study.rows import Rows
from kgbias.study.study import Study, open

_MAKES = ("crawl", "import", "profiles")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A step of a plan, and what became of it: "done", "begun" (a crawl that was stopped), "left"
    (not done yet, or its run is not there) or "failed", for which `error` says why."""

    step: Step
    state: Literal["done", "begun", "left", "failed"]
    error: str = ""


def _rows(outcomes: list[Outcome]) -> Rows[Outcome]:
    def record(o: Outcome) -> dict[str, Any]:
        output = "" if o.step.output is None else str(o.step.output)
        return {
            "step": o.step.kind, "run": o.step.run, "state": o.state, "error": o.error,
            "output": output,
        }  # fmt: skip

    return Rows(outcomes, record, ("step", "run", "state", "error", "output"))


def carry_out(plan: Plan, progress: Progress | bool | None, keep_going: bool) -> Rows[Outcome]:
    """See `Plan.carry_out`."""
    outcomes: list[Outcome] = []
    missing: set[str] = set()  # runs that could not be made
    with open(plan.store, progress=progress) as study:
        for number, step in enumerate(plan.steps, 1):
            if missing.intersection(step.runs):
                outcomes.append(Outcome(step, "left"))
                continue
            with study.working() as shown:
                shown.note(f"{number}/{len(plan.steps)}: {step}")
            try:
                _ACTIONS[step.kind](study, step)
            except Interrupted:
                raise
            except KgbiasError as error:
                if not keep_going:
                    raise
                outcomes.append(Outcome(step, "failed", str(error)))
                if step.kind in _MAKES:
                    missing.add(step.run)
            else:
                outcomes.append(Outcome(step, "done"))
    return _rows(outcomes)


def state(plan: Plan) -> Rows[Outcome]:
    """See `Plan.state`."""
    if "://" not in plan.store and not Path(plan.store).exists():
        return _rows([Outcome(step, "left") for step in plan.steps])
    with open(plan.store, progress=False) as study:
        return _rows([Outcome(step, _state(study, step)) for step in plan.steps])


def _crawl(study: Study, step: Step) -> None:
    study.crawl(name=step.run, **{"repeat": 1, **step.options})


def _import(study: Study, step: Step) -> None:
    study.import_file(name=step.run, **step.options)


def _export(study: Study, step: Step) -> None:
    assert step.output is not None
    step.output.parent.mkdir(parents=True, exist_ok=True)
    study.run(step.run).export(step.output, **step.options)


def _report(study: Study, step: Step) -> None:
    assert step.output is not None
    step.output.parent.mkdir(parents=True, exist_ok=True)
    study.run(step.run).report(step.output, **step.options)


def _figures(study: Study, step: Step) -> None:
    assert step.output is not None
    study.run(step.run).figures(step.output, **step.options)


def _evidence(study: Study, step: Step) -> None:
    _write(step, study.run(step.run).evidence(**step.options))


def _compare(study: Study, step: Step) -> None:
    options = dict(step.options)
    runs = as_names(options.pop("runs"))
    of_runs = {k: options.pop(k) for k in ("examples",) if k in options}
    of_models = {k: options.pop(k) for k in ("margin", "correction") if k in options}
    found = study.compare(*runs, **options, **of_runs)
    records = comparison_records(found, study.contrast(*runs, **options, **of_models))
    _put(step, json.dumps(finite(records), ensure_ascii=False, indent=2) + "\n")


def _benchmark(study: Study, step: Step) -> None:
    assert step.output is not None
    step.output.parent.mkdir(parents=True, exist_ok=True)
    study.benchmark(output=step.output, **step.options)


def _query(study: Study, step: Step) -> None:
    given = step.options.get("parameters", {})
    name = step.options.get("name")
    text = step.options.get("cypher", "")
    _write(step, study.query(name, **given) if name else study.cypher(text, **given))


def _write(step: Step, rows: Rows[Any]) -> None:
    """Rows as CSV or JSON, null for NaN."""
    assert step.output is not None
    cells = [tuple(finite(row[name]) for name in rows.columns) for row in rows.records()]
    result = QueryResult(rows.columns, cells)
    _put(step, write_result(result, step.output.suffix.removeprefix(".")))


def _put(step: Step, text: str) -> None:
    assert step.output is not None
    step.output.parent.mkdir(parents=True, exist_ok=True)
    write_text(step.output, text)


_ACTIONS: dict[str, Callable[[Study, Step], object]] = {
    "crawl": _crawl,
    "import": _import,
    "profiles": lambda study, step: study.write_profiles(name=step.run, **step.options),
    "measure": lambda study, step: _each(study, step, lambda run: run.measure(**step.options)),
    "probe": lambda study, step: _each(study, step, lambda run: run.probe(**step.options)),
    "choose": lambda study, step: _each(study, step, lambda run: run.choose(**step.options)),
    "associate": lambda study, step: study.run(step.run).associate(**step.options),
    "evidence": _evidence,
    "compare": _compare,
    "benchmark": _benchmark,
    "query": _query,
    "report": _report,
    "figures": _figures,
    "export": _export,
}


def _each(study: Study, step: Step, action: Callable[[Any], object]) -> None:
    """On every run of a series: those of a crawl that is repeated."""
    for run in study.series(step.run):
        action(run)


def _state(study: Study, step: Step) -> Literal["done", "begun", "left"]:
    if not step.run and step.output is not None:
        return "done" if step.output.exists() else "left"
    try:
        run = study.run(step.run).stored
    except RunNotFound:
        return "left"
    if step.kind in _MAKES:
        runs = [r.stored for r in study.series(step.run)]
        whole = len(runs) >= step.options.get("repeat", 1)
        return "done" if whole and all(r.status == "complete" for r in runs) else "begun"
    if step.output is not None:
        return "done" if step.output.exists() else "left"
    return "done" if _FOUND[step.kind](run, step) else "left"


def _probed(run: StoredRun, step: Step) -> bool:
    return step.options["model"] in [probing.model.name for probing in run.probings()]


def _associated(run: StoredRun, step: Step) -> bool:
    """Whether there is a test of each model (of vectors, any)."""
    found = {a.model.name for a in run.associations()}
    return bool(found) and found >= set(as_names(step.options.get("models", ())))


_FOUND: dict[str, Callable[[StoredRun, Step], bool]] = {
    "measure": lambda run, step: bool(run.group_scores()),
    "probe": _probed,
    "choose": lambda run, step: (
        step.options["model"] in [choosing.model.name for choosing in run.choosings()]
    ),
    "associate": _associated,
}
