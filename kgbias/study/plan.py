"""A study in a file: which models to crawl and how, and what to measure, probe, test, compare and
write; its checks; and how it is carried out. Kept in a paper's repository, it lets one command
reproduce the results.

To add a step, write its entry here, which is checked against the annotations of its method, and the
code that carries it out, also here; a method adds its own by an entry point (`kgbias.study.steps`).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from operator import attrgetter
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_type_hints

from kgbias.crawl.configure import BudgetedCrawlOptions
from kgbias.errors import (
    DataError,
    Interrupted,
    KgbiasError,
    RunNotFound,
    UsageError,
    nearest,
    no_such,
)
from kgbias.graph.cypher import QueryResult
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore, ProbeRun
from kgbias.io.columns import Column
from kgbias.io.files import is_visible_within, write_text
from kgbias.io.progress import Progress
from kgbias.io.reading import read_toml
from kgbias.io.rows import Rows
from kgbias.measure.configure import configure_measurement
from kgbias.models.http import withhold_keys
from kgbias.parameters import Names, as_names, describe_annotation, fits_annotation
from kgbias.query import format_result, load_query
from kgbias.stats.estimate import nan_to_none
from kgbias.study.comparison import comparison_records
from kgbias.study.kinds import RUN_KINDS, RunKind
from kgbias.study.run import Run
from kgbias.study.steps import STEPS, StudyStep
from kgbias.study.study import Study, open, price

if TYPE_CHECKING:
    from kgbias.crawl.plans import Price
    from kgbias.graph.generation_run import CostEstimate


Method = Callable[..., Any]

_METHOD_STEPS = ("probe",)
"""The steps that name the models they ask, beside those that make runs and those of `STEPS`."""
_FILE_OPTIONS = (  # always
    "prices",
    "statements",
    "output",
    "people",
    "requests",
)
_FILE_OR_NAME_OPTIONS = (
    "prompts",
    "names",
    "descriptors",
    "identities",
    "indicators",
    "seeds",
)
EXTRA_OPTIONS: Mapping[str, Mapping[str, Any]] = {"evidence": {"path": str}}
_QUERY_OPTIONS = {"name": str, "cypher": str, "parameters": Mapping[str, Any], "path": str}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a study.

    Attributes:
        kind: "crawl", "import", "profiles", "stories", "pairs", "measure", "probe", "evidence",
            "links", "results", "report", "figures", "export", "compare",
            "query" or one of `STEPS`.
        run: the name of the run that it makes or is about (of a repeated crawl, of the first); ""
            for a step about several runs or the whole store.
        options: the parameters of the method of that name.
        output: the file or folder that it writes, if any.
    """

    kind: str
    run: str
    options: Mapping[str, Any] = field(default_factory=dict)
    output: Path | None = None

    def __str__(self) -> str:
        about = as_names(self.options.get("model") or self.options.get("models") or ())
        asks = self.kind in (*_METHOD_STEPS, *STEPS, *RUN_KINDS)
        model_part = f" of {', '.join(about)}" if about and asks else ""
        name = self.run or self.options.get("name") or ", ".join(self.runs)
        return f"{self.kind} {name}{model_part}".replace("  ", " ").rstrip()

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that it makes or needs."""
        if self.run:
            return (self.run,)
        options = self.options.get("parameters", self.options)
        runs = options.get("runs") or options.get("run")
        return as_names(runs) if isinstance(runs, str | list) else ()


def check_entry(
    path: Path, entry_name: str, options: Mapping[str, Any], allowed: Mapping[str, Any]
) -> None:
    """Raise DataError unless every value fits the method's own annotations: a file is checked
    whole, before its first step is carried out."""
    unknown = sorted(options.keys() - allowed.keys())
    if unknown:
        nearest_name = nearest(unknown[0], allowed)
        hint = f" (did you mean {nearest_name}?)" if nearest_name else ""
        raise DataError(
            f"{path}: {entry_name} cannot set {unknown[0]!r}{hint}; it takes "
            f"{', '.join(sorted(allowed))}"
        )
    for name, value in options.items():
        if not fits_annotation(value, allowed[name]):
            raise DataError(
                f"{path}: {name!r} of {entry_name} must be {describe_annotation(allowed[name])}"
            )


def parameters_of(method: Method) -> dict[str, Any]:
    """A method's parameters with their annotations; `kgbias.study.calls` spells out its options."""
    parameters = signature(method).parameters.values()
    return {p.name: p.annotation for p in parameters if p.name != "self"}


def drop_names(annotations: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: kind for name, kind in annotations.items() if name not in names}


def _file_options(kind: str) -> tuple[str, ...]:
    """The options of a step that are always files."""
    return (*_FILE_OPTIONS, *(STEPS[kind].files if kind in STEPS else ()))


def files_of(step: Step) -> Iterator[Path]:
    """The files in a step's options: those it reads, and those it writes in addition to its
    output."""
    written = STEPS[step.kind].written if step.kind in STEPS else ()
    for name in ("path", *written, *_file_options(step.kind), *_FILE_OR_NAME_OPTIONS):
        value = step.options.get(name)
        for file in value if isinstance(value, list) else [value]:
            # pathlib's version raises for impossible file names
            if file and (name not in _FILE_OR_NAME_OPTIONS or exists(str(file))):  # noqa: PTH110
                yield Path(file)


def resolve_paths(path: Path, options: Mapping[str, Any], kind: str = "") -> dict[str, Any]:
    """The options of a step, with their files taken relative to the plan's folder."""
    always_files = _file_options(kind)

    def file(name: str, value: Any) -> Any:
        if isinstance(value, list) and name in always_files:
            return [file(name, part) for part in value]
        if not isinstance(value, str):
            return value
        resolved = path.parent / value
        # pathlib's version raises for impossible file names
        return str(resolved) if name in always_files or exists(resolved) else value  # noqa: PTH110

    files = (*always_files, *_FILE_OR_NAME_OPTIONS)
    return {k: file(k, value) if k in files else value for k, value in options.items()}


def check_table_suffix(path: Path, kind: str, file: Any) -> str:
    """The name of a file for rows, whose extension gives the format."""
    if not isinstance(file, str) or Path(file).suffix not in (".csv", ".json"):
        raise DataError(f"{path}: the `path` of [[{kind}]] must end in .csv or .json")
    return file


def iter_study_steps(
    path: Path, data: Mapping[str, Any], runs: Sequence[str], output: Path
) -> Iterator[Step]:
    """The steps about several runs or the whole store, in the order in which they need each
    other."""
    for entry in data.get("compare", []):
        yield _compare_step(path, entry, runs, output)
    for kind in _usable_steps(data, of_study=True):
        for entry in data.get(kind, []):
            yield _call_step(path, kind, entry, output)
    for entry in data.get("query", []):
        yield _query_step(path, entry, output)


def _compare_step(path: Path, entry: Mapping[str, Any], runs: Sequence[str], output: Path) -> Step:
    allowed = (
        parameters_of(Study.compare_runs)
        | parameters_of(Study.compare_models)
        | {"runs": Names, "path": str}
    )
    check_entry(path, "[[compare]]", entry, drop_names(allowed, "probes", "seed"))
    options = {"runs": list(runs), **entry}
    file = output / str(options.pop("path", "compare.json"))
    if len(as_names(options["runs"])) < 2:
        raise DataError(f"{path}: [[compare]] needs two or more `runs`")
    unknown = [name for name in as_names(options["runs"]) if name not in runs]
    if unknown:
        raise DataError(f"{path}: {no_such('run', unknown[0], runs)}")
    if file.suffix != ".json":
        raise DataError(f"{path}: the `path` of [[compare]] must end in .json")
    return Step("compare", "", options, file)


def _usable_steps(data: Mapping[str, Any], *, of_study: bool) -> dict[str, StudyStep]:
    """The steps of our methods, and those of other packages that a file has, about the study or
    about runs."""
    names = [name for name in STEPS if STEPS.is_own(name) or name in data]
    return {name: STEPS[name] for name in names if STEPS[name].of_study == of_study}


def _parameters_of_step(kind: str) -> dict[str, Any]:
    """What an entry of a method's step may set."""
    step = STEPS[kind]
    parameters = parameters_of(STEPS.import_part(kind, step.call))
    about, *_ = parameters  # the run or the study
    allowed = drop_names(parameters, about, "output", "dry_run")
    return {**allowed, **({"path": str} if step.output else {})}


def _needed_model(kind: str) -> str:
    """The parameter that names the models of a method's step, if an entry must have it."""
    parameters = signature(STEPS.import_part(kind, STEPS[kind].call)).parameters
    needed = (name for name in ("model", "models") if name in parameters)
    return next((name for name in needed if parameters[name].default is Parameter.empty), "")


class _CallOptions(NamedTuple):
    """The options of a step, and the file that it writes."""

    options: dict[str, Any]
    file: Path | None


def _call_options(kind: str, options: Mapping[str, Any], folder: Path) -> _CallOptions:
    """The options of a method's step, as its function takes them, and the file that it writes."""
    step, options = STEPS[kind], dict(options)
    file = folder / str(options.pop("path", step.output)) if step.output else None
    for name in step.written:
        if name in options:
            options[name] = str(folder / str(options[name]))
    return _CallOptions(options, file)


def _call_step(path: Path, kind: str, entry: Mapping[str, Any], output: Path) -> Step:
    check_entry(path, f"[[{kind}]]", entry, _parameters_of_step(kind))
    needed = _needed_model(kind)
    if needed and not as_names(entry.get(needed, ())):
        raise DataError(f"{path}: each [[{kind}]] needs `{needed}`")
    options, file = _call_options(kind, resolve_paths(path, entry, kind), output)
    return Step(kind, "", options, file)


def _query_step(path: Path, entry: Mapping[str, Any], output: Path) -> Step:
    check_entry(path, "[[query]]", entry, _QUERY_OPTIONS)
    options = dict(entry)
    if ("name" in options) == ("cypher" in options):
        raise DataError(f"{path}: each [[query]] needs a library query's `name`, or `cypher`")
    if name := options.get("name"):
        try:
            parameter_names = {parameter.name for parameter in load_query(name).parameters}
        except UsageError as error:
            raise DataError(f"{path}: {error}") from None
        unknown = sorted(set(options.get("parameters", ())) - parameter_names)
        if unknown:
            raise DataError(
                f"{path}: "
                f"{no_such('parameter', unknown[0], sorted(parameter_names), f' of {name}')}"
            )
    file = check_table_suffix(path, "query", options.pop("path", f"{name or 'query'}.csv"))
    return Step("query", "", options, output / file)


SAME_MODEL = "same"  # the model that the run asked
_CRAWL_OPTIONS: Mapping[str, Any] = {
    "name": str,
    "repeat": int,
    **get_type_hints(BudgetedCrawlOptions),
}
_TABLES = ("crawl", "measure", "report", "figures")
_LISTS = (
    "crawls",
    "imports",
    "probe",
    "evidence",
    "compare",
    "query",
    "export",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A study declared in a file, as read by `read_plan`.

    Attributes:
        path: the file.
        store: the path or URL of the store.
        steps: the steps, in order.
        addresses: of servers, a store or a cluster named in it.
        outside: files that it would read or write outside its folder, or hidden in it.
    """

    path: Path
    store: str
    steps: tuple[Step, ...]
    addresses: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()

    def carry_out(
        self,
        *,
        progress: Progress | bool | None = None,
        keep_going: bool = True,
        trust: bool = False,
    ) -> "Rows[StepOutcome]":
        """Carry out all steps, in order, and return what became of each. Results already in the
        store are not asked for or computed again, so a stopped study continues where it was; files
        are written again.

        If a step fails, the steps that need its run are skipped and the others go on; without
        `keep_going` its error is raised. Raises Interrupted on Ctrl-C.

        A plan may be a stranger's. Without `trust` it reads and writes no file outside its folder
        and joins no cluster (UsageError), and no address in it gets a key or password from the
        environment, unless the environment names the address too.
        """
        with self._guard_secrets(trust):
            return carry_out(self, progress, keep_going)

    def state(self, *, trust: bool = False) -> "Rows[StepOutcome]":
        """What is done and what is left, judged by the store and the folders. Asks no model.
        `trust` as in `carry_out`."""
        with self._guard_secrets(trust):
            return plan_state(self)

    @contextmanager
    def _guard_secrets(self, trust: bool) -> Iterator[None]:
        if trust:
            yield
            return
        if self.outside:
            raise UsageError(
                f"{self.path} would read or write outside its folder, or a hidden file: "
                f"{', '.join(self.outside)}: `trust` allows it"
            )
        clusters = [a for a in self.addresses if a.startswith("ray")]
        if clusters:
            raise UsageError(
                f"{self.path} would join the cluster {clusters[0]}, whose nodes could run their "
                "code here: `trust` allows it"
            )
        with withhold_keys(self.addresses):
            yield

    def prices(self) -> "dict[str, Price | CostEstimate]":
        """What each crawl (`kgbias.price`), and each set of profiles, stories or pairs will ask, by
        the run's name. Asks nothing."""
        prices: dict[str, Price | CostEstimate] = {}
        for step in self.steps:
            if step.kind == "crawl":
                prices[step.run] = price(**step.options)
            elif step.kind in RUN_KINDS:
                price_run = RUN_KINDS.import_part(step.kind, RUN_KINDS[step.kind].price)
                prices[step.run] = price_run(**step.options)
        return prices


def read_plan(path: str | Path = "study.toml") -> Plan:
    """The study declared in a TOML file; docs/how-to/study.md describes the file.

    Paths in it are relative to the file. Everything is checked before anything is done.

    Raises:
        DataError: the file cannot be read, or names something that does not exist.
    """
    path = Path(path)
    data = read_toml(path)
    kinds = _usable_kinds(data)
    tables = (*_TABLES, *(kind.findings for kind in kinds.values() if kind.findings))
    steps_added = [
        *_usable_steps(data, of_study=False),
        *_usable_steps(data, of_study=True),
    ]
    lists = (*_LISTS, *steps_added, *kinds)
    entry_types: dict[str, type] = {
        **dict.fromkeys(("store", "output"), str),
        **dict.fromkeys(tables, dict),
        **dict.fromkeys(lists, list),
    }
    for name, value in data.items():
        if name not in entry_types:
            raise DataError(f"{path}: {no_such('entry', name, entry_types)}")
        entries = data[name] if name in lists and isinstance(value, list) else []
        if not isinstance(value, entry_types[name]) or not all(
            isinstance(e, dict) for e in entries
        ):
            form = "a text"
            if name in (*tables, *lists):
                form = f"tables, [[{name}]]" if name in lists else f"a table, [{name}]"
            raise DataError(f"{path}: {name!r} must be {form}")
    base = path.parent
    store = data.get("store", "kgbias.db")
    store = store if "://" in store else str(base / store)
    output = base / data.get("output", "results")
    runs = [*_crawl_steps(path, data), *_import_steps(path, data), *_writing_steps(path, data)]
    if not runs:
        raise DataError(f"{path} declares no crawl: [crawl] needs `models`, or add [[crawls]]")
    names = [step.run for step in runs]
    repeated_names = [name for name in names if names.count(name) > 1]
    if repeated_names:
        raise DataError(
            f"{path}: two runs are called {repeated_names[0]!r}: give one another `name`"
        )
    statement_runs = [step.run for step in runs if _has_statements(step)]
    steps = (
        *runs,
        *_run_steps(path, data, runs, output),
        *iter_study_steps(path, data, statement_runs, output),
    )
    output_files = [step.output for step in steps if step.output is not None]
    repeated_files = [file for file in output_files if output_files.count(file) > 1]
    if repeated_files:
        raise DataError(
            f"{path}: two steps write {repeated_files[0].name!r}: give one of them another `path`"
        )
    addresses = _addresses(steps)
    if "://" in store:
        addresses = (store, *addresses)
    return Plan(
        path, store, steps, tuple(dict.fromkeys(addresses)), _files_outside(path, store, steps)
    )


def _usable_kinds(data: Mapping[str, Any]) -> dict[str, RunKind]:
    """Our methods' kinds of runs, and those of other packages that a file has."""
    return {name: RUN_KINDS[name] for name in RUN_KINDS if RUN_KINDS.is_own(name) or name in data}


def _has_statements(run: Step) -> bool:
    """Whether the run that a step makes has statements, and not answers alone."""
    return run.kind not in RUN_KINDS or RUN_KINDS[run.kind].has_statements


def _addresses(steps: Sequence[Step]) -> tuple[str, ...]:
    """The addresses in the steps' options, including executors'."""
    addresses = []
    for step in steps:
        addresses += [str(step.options["base_url"])] if step.options.get("base_url") else []
        if "://" in str(step.options.get("executor", "")):
            addresses.append(str(step.options["executor"]))
    return tuple(addresses)


def _files_outside(path: Path, store: str, steps: Sequence[Step]) -> tuple[str, ...]:
    """The files that are outside the plan's folder, after following links, or hidden."""
    files = [] if "://" in store else [Path(store)]
    for step in steps:
        files += [*([step.output] if step.output else []), *files_of(step)]
    return tuple(dict.fromkeys(str(f) for f in files if not is_visible_within(path.parent, f)))


def _crawl_steps(path: Path, data: Mapping[str, Any]) -> Iterator[Step]:
    shared = resolve_paths(path, data.get("crawl", {}))
    models = shared.pop("models", [])
    if not isinstance(models, list) or not all(isinstance(model, str) for model in models):
        raise DataError(f"{path}: `models` of [crawl] must be a list of specs")
    check_entry(path, "[crawl]", shared, drop_names(_CRAWL_OPTIONS, "name"))
    for model in models:
        yield Step("crawl", _plain_name(model), {"model": model, **shared})
    for entry in data.get("crawls", []):
        options = {**shared, **resolve_paths(path, entry)}
        model = options.pop("model", None)
        if not isinstance(model, str):
            raise DataError(f"{path}: each [[crawls]] needs a `model`")
        check_entry(path, "[[crawls]]", options, _CRAWL_OPTIONS)
        yield Step(
            "crawl", str(options.pop("name", _plain_name(model))), {"model": model, **options}
        )


def _writing_steps(path: Path, data: Mapping[str, Any]) -> Iterator[Step]:
    for kind, run_kind in _usable_kinds(data).items():
        for entry in data.get(kind, []):
            options = resolve_paths(path, entry)
            model = options.pop("model", None)
            if not isinstance(model, str):
                raise DataError(f"{path}: each [[{kind}]] needs a `model`")
            write = RUN_KINDS.import_part(kind, run_kind.write)
            check_entry(path, f"[[{kind}]]", options, drop_names(parameters_of(write), "study"))
            name = str(options.pop("name", f"{_plain_name(model)}-{kind}"))
            yield Step(kind, name, {"model": model, **options})


def _import_steps(path: Path, data: Mapping[str, Any]) -> Iterator[Step]:
    for entry in data.get("imports", []):
        file = entry.get("path")
        if not isinstance(file, str):
            raise DataError(f"{path}: each [[imports]] needs a `path`")
        check_entry(path, "[[imports]]", entry, parameters_of(Study.import_file))
        options = {**entry, "path": path.parent / file}
        yield Step("import", str(options.pop("name", Path(file).stem)), options)


def _run_kind(run: Step) -> str:
    """The kind of run that a step makes: a format of an import may say of which."""
    from kgbias.ingest import IMPORT_FORMATS

    format = str(run.options.get("format", "")) if run.kind == "import" else ""
    return IMPORT_FORMATS[format].run_kind if format in IMPORT_FORMATS else run.kind


def _kind_of_export(options: Mapping[str, Any]) -> str:
    """The only kind of run that has what an export writes; "" for any with statements."""
    from kgbias.export import FORMATS

    format = str(options.get("format", ""))
    return FORMATS[format].run_kind if format in FORMATS else ""


def _run_steps(
    path: Path, data: Mapping[str, Any], runs: Sequence[Step], output: Path
) -> Iterator[Step]:
    """The steps on each run: measuring comes before probing and testing, writing last."""
    kinds = _usable_kinds(data)
    # Steps that no run of the file fits are refused before anything is asked.
    for name, run_kind in kinds.items():
        findings = run_kind.findings
        if findings in data:
            find = RUN_KINDS.import_part(name, run_kind.find)
            allowed = drop_names(parameters_of(find), "run")
            check_entry(path, f"[{findings}]", data[findings], allowed)
            if not any(_run_kind(run) == name for run in runs):
                raise DataError(f"{path}: [{findings}] is about [[{name}]], and there are none")
    if runs and not any(_has_statements(run) for run in runs):
        for step in ("measure", *_steps_of_listed_runs(data), "report", "figures"):
            if step in data:
                raise DataError(
                    f"{path}: {step!r} needs statements, and [[{runs[0].kind}]] have none"
                )
    for run in runs:
        run_model = str(run.options["model"]) if run.kind != "import" else ""
        folder = output / _plain_name(run.run)
        # What only runs of a method have.
        made_by = kinds.get(_run_kind(run))
        if made_by is not None and made_by.findings in data:
            options = resolve_paths(path, data[made_by.findings])
            yield Step(made_by.findings, run.run, options, folder / f"{made_by.findings}.json")
        if not _has_statements(run):
            _refuse_without_statements(path, data, run)
            continue
        if "measure" in data:
            check_entry(path, "[measure]", data["measure"], parameters_of(Run.measure))
            _check_measure(path, data["measure"])
            yield Step("measure", run.run, data["measure"])
        # What is asked about a run's statements.
        asking: dict[str, Callable[[], dict[str, Any]]] = {
            "probe": partial(parameters_of, Run.probe),
            **{k: partial(_parameters_of_step, k) for k in _usable_steps(data, of_study=False)},
        }
        for kind, find_allowed in asking.items():
            for entry in data.get(kind, []):
                may_set = find_allowed()
                options, applies = _entry_options(path, kind, entry, run, may_set)
                if not applies:
                    continue
                parameter = "model" if "model" in may_set else "models"
                models = as_names(options.get(parameter, ()))
                if SAME_MODEL in models and not run_model:
                    continue  # an import asked no model
                named_models = tuple(
                    run_model if model == SAME_MODEL else model for model in models
                )
                if named_models:
                    options[parameter] = named_models[0] if parameter == "model" else named_models
                file = None
                if kind in STEPS:
                    options, file = _call_options(kind, options, folder)
                yield Step(kind, run.run, options, file)
        for entry in data.get("evidence", []):
            options, applies = _entry_options(
                path, "evidence", entry, run, parameters_of(Run.evidence)
            )
            if applies and not (options.get("model") == SAME_MODEL and not run_model):
                if options.get("model") == SAME_MODEL:
                    options["model"] = run_model
                file = folder / check_table_suffix(
                    path, "evidence", options.pop("path", "evidence.csv")
                )
                yield Step("evidence", run.run, options, file)
        # What is written about it.
        writing: tuple[tuple[str, Method, str], ...] = (
            ("report", Run.report, "report.html"),
            ("figures", Run.figures, "figures"),
        )
        for kind, method, name in writing:
            if kind in data:
                check_entry(
                    path,
                    f"[{kind}]",
                    data[kind],
                    drop_names(parameters_of(method), "path", "folder"),
                )
                yield Step(kind, run.run, data[kind], folder / name)
        for entry in data.get("export", []):
            options, applies = _entry_options(path, "export", entry, run, parameters_of(Run.export))
            of_kind = _kind_of_export(options)
            if applies and of_kind not in ("", _run_kind(run)):
                if "runs" in entry or not any(_run_kind(other) == of_kind for other in runs):
                    raise DataError(
                        f"{path}: {options['format']} is of {of_kind}: {run.run!r} has none"
                    )
                continue  # it is about the study's runs of that kind
            if applies:
                file = folder / str(options.pop("path", f"triples.{options.get('format', 'csv')}"))
                _check_format(path, file, options.get("format"))
                yield Step("export", run.run, options, file)


# Steps about the runs that they name.
_STEPS_OF_LISTED_RUNS = ("probe", "evidence", "export")


def _steps_of_listed_runs(data: Mapping[str, Any]) -> tuple[str, ...]:
    return (*_STEPS_OF_LISTED_RUNS, *_usable_steps(data, of_study=False))


def _refuse_without_statements(path: Path, data: Mapping[str, Any], run: Step) -> None:
    """Raise DataError if a step that needs statements names a run that has none."""
    for kind in _steps_of_listed_runs(data):
        for entry in data.get(kind, []):
            if run.run in as_names(entry.get("runs", ())):
                raise DataError(
                    f"{path}: [[{kind}]] needs statements: {run.run!r} is a run of {run.kind}"
                )


class _EntryOptions(NamedTuple):
    """The options of an entry, and whether it is about the run."""

    options: dict[str, Any]
    is_about_run: bool


def _entry_options(
    path: Path, kind: str, entry: Mapping[str, Any], run: Step, allowed: Mapping[str, Any]
) -> _EntryOptions:
    """The options of an entry, and whether it is about this run (listed in `runs`)."""
    options = dict(entry)
    runs = options.pop("runs", [run.run])
    if not fits_annotation(runs, Names):
        raise DataError(f"{path}: `runs` of [[{kind}]] must be {describe_annotation(Names)}")
    check_entry(path, f"[[{kind}]]", options, {**EXTRA_OPTIONS.get(kind, {}), **allowed})
    needs_model = kind == "probe" or (kind in STEPS and _needed_model(kind))
    if needs_model and not as_names(options.get("model") or options.get("models") or ()):
        raise DataError(f'{path}: each [[{kind}]] needs a `model`, such as "{SAME_MODEL}"')
    return _EntryOptions(resolve_paths(path, options, kind), run.run in as_names(runs))


def _check_measure(path: Path, options: Mapping[str, Any]) -> None:
    try:
        configure_measurement(**options)
    except UsageError as error:
        raise DataError(f"{path}: {error}") from None


def _check_format(path: Path, file: Path, name: str | None) -> None:
    from kgbias.export import choose_format_name

    try:
        choose_format_name(file, name)
    except UsageError as error:
        raise DataError(f"{path}: {error}") from None


def _plain_name(text: str) -> str:
    """A model's spec as a name for a run and a folder."""
    return re.sub(r"[^\w.~-]+", "-", text).strip("-.") or "run"


def _makes_run(step: Step) -> bool:
    return step.kind in ("crawl", "import") or step.kind in RUN_KINDS


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A step of a plan, and what became of it: "done", "begun" (a crawl that was stopped), "left"
    (not done yet, or its run does not exist) or "failed", with the `error`."""

    step: Step
    state: Literal["done", "begun", "left", "failed"]
    error: str = ""


def _outcome_rows(outcomes: list[StepOutcome]) -> Rows[StepOutcome]:
    columns = (
        Column("step", get=attrgetter("step.kind")),
        Column("run", get=attrgetter("step.run")),
        Column("state"),
        Column("error"),
        Column("output", get=lambda outcome: str(outcome.step.output or "")),
    )
    return Rows(outcomes, columns)


def carry_out(plan: Plan, progress: Progress | bool | None, keep_going: bool) -> Rows[StepOutcome]:
    """See `Plan.carry_out`."""
    outcomes: list[StepOutcome] = []
    failed_runs: set[str] = set()  # runs that could not be made
    with open(plan.store, progress=progress) as study:
        for number, step in enumerate(plan.steps, 1):
            if failed_runs.intersection(step.runs):
                outcomes.append(StepOutcome(step, "left"))
                continue
            with study.working() as display:
                display.note(f"{number}/{len(plan.steps)}: {step}")
            try:
                _action_of(step)(study, step)
            # A KgbiasError too, but it ends the plan and not the step.
            except Interrupted:
                raise
            except KgbiasError as error:
                if not keep_going:
                    raise
                outcomes.append(StepOutcome(step, "failed", str(error)))
                if _makes_run(step):
                    failed_runs.add(step.run)
            else:
                outcomes.append(StepOutcome(step, "done"))
    return _outcome_rows(outcomes)


def plan_state(plan: Plan) -> Rows[StepOutcome]:
    """See `Plan.state`."""
    if "://" not in plan.store and not Path(plan.store).exists():
        return _outcome_rows([StepOutcome(step, "left") for step in plan.steps])
    with open(plan.store, progress=False) as study:
        return _outcome_rows([StepOutcome(step, _step_state(study, step)) for step in plan.steps])


def _crawl(study: Study, step: Step) -> None:
    study.crawl(name=step.run, **{"repeat": 1, **step.options})


def _import(study: Study, step: Step) -> None:
    study.import_file(name=step.run, **step.options)


def _write_run(study: Study, step: Step) -> None:
    write = RUN_KINDS.import_part(step.kind, RUN_KINDS[step.kind].write)
    write(study, name=step.run, **step.options)


def _write_findings(study: Study, step: Step) -> None:
    kinds = RUN_KINDS.usable_entries().items()
    name, kind = next((name, kind) for name, kind in kinds if kind.findings == step.kind)
    result = RUN_KINDS.import_part(name, kind.find)(study.run(step.run), **step.options)
    _write_file(
        step, json.dumps(nan_to_none(result.as_dict()), ensure_ascii=False, indent=2) + "\n"
    )


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
    _write_rows(step, study.run(step.run).evidence(**step.options))


def _run_compare(study: Study, step: Step) -> None:
    options = dict(step.options)
    runs = as_names(options.pop("runs"))
    run_options = {k: options.pop(k) for k in ("examples",) if k in options}
    model_options = {k: options.pop(k) for k in ("margin", "correction") if k in options}
    comparisons = study.compare_runs(*runs, **options, **run_options)
    records = comparison_records(
        comparisons, study.compare_models(*runs, **options, **model_options)
    )
    _write_file(step, json.dumps(nan_to_none(records), ensure_ascii=False, indent=2) + "\n")


def _call(study: Study, step: Step) -> None:
    """Carry out a method's step."""
    entry = STEPS[step.kind]
    call, written = STEPS.import_part(step.kind, entry.call), {}
    if step.output is not None:
        step.output.parent.mkdir(parents=True, exist_ok=True)
        written = {"output": step.output}
    if entry.of_study:
        call(study, **written, **step.options)
    else:
        _for_each_run(study, step, lambda run: call(run, **written, **step.options))


def _run_query(study: Study, step: Step) -> None:
    parameters = step.options.get("parameters", {})
    name = step.options.get("name")
    text = step.options.get("cypher", "")
    _write_rows(step, study.query(name, **parameters) if name else study.cypher(text, **parameters))


def _write_rows(step: Step, rows: Rows[Any]) -> None:
    """Write rows as CSV or JSON, with null for NaN."""
    assert step.output is not None
    cells = [tuple(nan_to_none(row[name]) for name in rows.columns) for row in rows.records()]
    result = QueryResult(rows.columns, cells)
    _write_file(step, format_result(result, step.output.suffix.removeprefix(".")))


def _write_file(step: Step, text: str) -> None:
    assert step.output is not None
    step.output.parent.mkdir(parents=True, exist_ok=True)
    write_text(step.output, text)


_ACTIONS: dict[str, Callable[[Study, Step], object]] = {
    "crawl": _crawl,
    "import": _import,
    "measure": lambda study, step: _for_each_run(
        study, step, lambda run: run.measure(**step.options)
    ),
    "probe": lambda study, step: _for_each_run(study, step, lambda run: run.probe(**step.options)),
    "evidence": _evidence,
    "compare": _run_compare,
    "query": _run_query,
    "report": _report,
    "figures": _figures,
    "export": _export,
}


def _action_of(step: Step) -> Callable[[Study, Step], object]:
    """What carries a step out."""
    if step.kind in _ACTIONS:
        return _ACTIONS[step.kind]
    if step.kind in STEPS:
        return _call
    return _write_run if step.kind in RUN_KINDS else _write_findings


def _for_each_run(study: Study, step: Step, action: Callable[[Any], object]) -> None:
    """Act on every run of a series, which a repeated crawl makes."""
    for run in study.series(step.run):
        action(run)


def _step_state(study: Study, step: Step) -> Literal["done", "begun", "left"]:
    if not step.run and step.output is not None:
        return "done" if step.output.exists() else "left"
    try:
        run = study.run(step.run).stored
    except RunNotFound:
        return "left"
    if _makes_run(step):
        runs = [r.stored for r in study.series(step.run)]
        has_all_runs = len(runs) >= step.options.get("repeat", 1)
        return "done" if has_all_runs and all(r.status == "complete" for r in runs) else "begun"
    if step.output is not None:
        return "done" if step.output.exists() else "left"
    if step.kind in STEPS:
        is_done = STEPS.import_part(step.kind, STEPS[step.kind].is_done)
        return "done" if is_done(run, step.options) else "left"
    return "done" if _DONE_CHECKS[step.kind](run, step) else "left"


def _has_probes(run: StoredRun, step: Step) -> bool:
    return step.options["model"] in [probing.model.name for probing in run.find_all(ProbeRun)]


_DONE_CHECKS: dict[str, Callable[[StoredRun, Step], bool]] = {
    "measure": lambda run, step: bool(run.find_all(GroupScore)),
    "probe": _has_probes,
}
