"""A study in a file: which models are crawled and how, what is measured, probed, tested and
written. What a paper's repository keeps, so that one command makes its results again."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from kgbias.crawl.configure import CrawlSpending
from kgbias.crawl.price import Price, price
from kgbias.errors import DataError, UsageError
from kgbias.export import chosen_format
from kgbias.names import Names, as_names
from kgbias.parameters import described, fits
from kgbias.reading import read_toml
from kgbias.study.run import Run
from kgbias.study.study import Study

if TYPE_CHECKING:
    from kgbias.progress import Progress
    from kgbias.study.carry import Outcome
    from kgbias.study.rows import Rows

Method = Callable[..., Any]
SAME = "same"  # the model that the run itself asked
_CRAWL: Mapping[str, Any] = {
    "name": str,
    "repeat": int,
    **get_type_hints(CrawlSpending),
}
_TABLES = ("crawl", "measure", "report", "figures")
_LISTS = ("crawls", "imports", "probe", "associate", "export")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    Attributes:
        kind: "crawl", "import", "measure", "probe", "associate", "report", "figures" or "export".
        run: the name of the run that it makes or is about; of a repeated crawl, of the first.
        options: what it takes: the parameters of the method of that name.
        output: the file or folder that it writes, if it writes one.
    """

    kind: str
    run: str
    options: Mapping[str, Any] = field(default_factory=dict)
    output: Path | None = None

    def __str__(self) -> str:
        about = as_names(self.options.get("model") or self.options.get("models") or ())
        of = f" of {', '.join(about)}" if about and self.kind in ("probe", "associate") else ""
        return f"{self.kind} {self.run}{of}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A study that a file declares; `read_plan` reads one.

    Attributes:
        path: the file.
        store: the path or URL of the store.
        steps: what is to be done, in this order.
    """

    path: Path
    store: str
    steps: tuple[Step, ...]

    def carry_out(
        self, *, progress: "Progress | bool | None" = None, keep_going: bool = True
    ) -> "Rows[Outcome]":
        """Do all of it, in order, and say what became of each step. What the store holds already is
        not asked or computed again, so that a study that was stopped goes on where it was; files
        are written again.

        Where a step fails, those that need its run are left and the others go on; without
        `keep_going` its error is raised. Raises Interrupted on Ctrl-C.
        """
        from kgbias.study.carry import carry_out

        return carry_out(self, progress, keep_going)

    def state(self) -> "Rows[Outcome]":
        """What is done and what is left, by what the store and the folders hold. Asks no model."""
        from kgbias.study.carry import state

        return state(self)

    def prices(self) -> dict[str, Price]:
        """What each crawl will ask (`kgbias.price`), by the name of its run. Asks nothing."""
        found = {}
        for step in self.steps:
            if step.kind == "crawl":
                found[step.run] = price(**step.options)
        return found


def read_plan(path: str | Path = "study.toml") -> Plan:
    """The study that a TOML file declares; docs/how-to/study.md describes the file.

    Paths in it are relative to the file. Everything is checked before anything is done.

    Raises:
        DataError: the file cannot be read, or declares what is not there.
    """
    path = Path(path)
    data = read_toml(path)
    known: dict[str, type] = {
        **dict.fromkeys(("store", "output"), str),
        **dict.fromkeys(_TABLES, dict),
        **dict.fromkeys(_LISTS, list),
    }
    for name, value in data.items():
        if name not in known:
            raise DataError(f"{path}: there is no {name!r}, only {', '.join(known)}")
        entries = data[name] if name in _LISTS and isinstance(value, list) else []
        if not isinstance(value, known[name]) or not all(isinstance(e, dict) for e in entries):
            form = "a text"
            if name in (*_TABLES, *_LISTS):
                form = f"tables, [[{name}]]" if name in _LISTS else f"a table, [{name}]"
            raise DataError(f"{path}: {name!r} must be {form}")
    base = path.parent
    store = data.get("store", "kgbias.db")
    store = store if "://" in store else str(base / store)
    output = base / data.get("output", "results")
    runs = [*_crawls(path, data), *_imports(path, data)]
    if not runs:
        raise DataError(f"{path} declares no crawl: [crawl] needs `models`, or add [[crawls]]")
    names = [step.run for step in runs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{path}: two runs are called {twice[0]!r}: give one of them a `name`")
    return Plan(path, store, (*runs, *_about(path, data, runs, output)))


def _crawls(path: Path, data: Mapping[str, Any]) -> Iterator[Step]:
    shared = _here(path, data.get("crawl", {}))
    models = shared.pop("models", [])
    if not isinstance(models, list) or not all(isinstance(model, str) for model in models):
        raise DataError(f"{path}: `models` of [crawl] must be a list of specs")
    _check(path, "[crawl]", shared, _without(_CRAWL, "name"))
    for model in models:
        yield Step("crawl", _plain(model), {"model": model, **shared})
    for entry in data.get("crawls", []):
        own = {**shared, **_here(path, entry)}
        if not isinstance(model := own.pop("model", None), str):
            raise DataError(f"{path}: each of [[crawls]] needs a `model`")
        _check(path, "[[crawls]]", own, _CRAWL)
        yield Step("crawl", str(own.pop("name", _plain(model))), {"model": model, **own})


def _here(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the file of prices that they name beside the plan."""
    file = options.get("prices")
    beside = {"prices": str(path.parent / file)} if isinstance(file, str) else {}
    return {**options, **beside}


def _imports(path: Path, data: Mapping[str, Any]) -> Iterator[Step]:
    for entry in data.get("imports", []):
        if not isinstance(file := entry.get("path"), str):
            raise DataError(f"{path}: each of [[imports]] needs a `path`")
        _check(path, "[[imports]]", entry, _takes(Study.import_file))
        options = {**entry, "path": path.parent / file}
        yield Step("import", str(options.pop("name", Path(file).stem)), options)


def _about(
    path: Path, data: Mapping[str, Any], runs: Sequence[Step], output: Path
) -> Iterator[Step]:
    """What is done with the runs: measured before they are probed and tested, written last."""
    for run in runs:
        own = str(run.options["model"]) if run.kind == "crawl" else ""
        folder = output / _plain(run.run)
        if "measure" in data:
            _check(path, "[measure]", data["measure"], _takes(Run.measure))
            yield Step("measure", run.run, data["measure"])
        asking: tuple[tuple[str, Method, str], ...] = (
            ("probe", Run.probe, "model"),
            ("associate", Run.associate, "models"),
        )
        for kind, method, parameter in asking:
            for entry in data.get(kind, []):
                options, about = _of(path, kind, entry, run, method)
                if not about:
                    continue
                models = as_names(options.get(parameter, ()))
                if SAME in models and not own:
                    continue  # an import asked no model
                given = tuple(own if model == SAME else model for model in models)
                if given:
                    options[parameter] = given[0] if parameter == "model" else given
                yield Step(kind, run.run, options)
        writing: tuple[tuple[str, Method, str], ...] = (
            ("report", Run.report, "report.html"),
            ("figures", Run.figures, "figures"),
        )
        for kind, method, name in writing:
            if kind in data:
                _check(path, f"[{kind}]", data[kind], _without(_takes(method), "path", "folder"))
                yield Step(kind, run.run, data[kind], folder / name)
        for entry in data.get("export", []):
            options, about = _of(path, "export", entry, run, Run.export)
            if about:
                file = folder / str(options.pop("path", f"triples.{options.get('format', 'csv')}"))
                _format(path, file, options.get("format"))
                yield Step("export", run.run, options, file)


def _of(
    path: Path, kind: str, entry: Mapping[str, Any], run: Step, method: Method
) -> tuple[dict[str, Any], bool]:
    """The options of an entry, and whether it is about this run (`runs` names those)."""
    options = dict(entry)
    runs = options.pop("runs", [run.run])
    if not fits(runs, Names):
        raise DataError(f"{path}: `runs` of [[{kind}]] must be {described(Names)}")
    _check(path, f"[[{kind}]]", options, _takes(method))
    if kind == "probe" and not isinstance(options.get("model"), str):
        raise DataError(f'{path}: each of [[probe]] needs a `model`, such as "{SAME}"')
    return options, run.run in as_names(runs)


def _format(path: Path, file: Path, name: str | None) -> None:
    try:
        chosen_format(file, name)
    except UsageError as error:
        raise DataError(f"{path}: {error}") from None


def _check(path: Path, where: str, given: Mapping[str, Any], takes: Mapping[str, Any]) -> None:
    """Everything is what the method's own annotations say: a file is checked whole, before its
    first step is carried out."""
    if wrong := sorted(given.keys() - takes.keys()):
        raise DataError(
            f"{path}: {where} cannot set {wrong[0]!r}; it takes {', '.join(sorted(takes))}"
        )
    for name, value in given.items():
        if not fits(value, takes[name]):
            raise DataError(f"{path}: {name!r} of {where} must be {described(takes[name])}")


def _takes(method: Method) -> dict[str, Any]:
    """A method's parameters, those of its typed `**options` too, with their annotations."""
    takes: dict[str, Any] = {}
    for parameter in signature(method).parameters.values():
        if parameter.kind is not Parameter.VAR_KEYWORD:
            takes[parameter.name] = parameter.annotation
        elif typed := get_args(parameter.annotation):
            takes |= get_type_hints(typed[0])
        else:  # `Run.associate` hands its options on
            from kgbias.associate import associate

            takes = _without(_takes(associate), "run", "store", "progress") | takes
    return _without(takes, "self")


def _without(takes: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: kind for name, kind in takes.items() if name not in names}


def _plain(text: str) -> str:
    """A model's spec as the name of a run and of a folder."""
    return re.sub(r"[^\w.~-]+", "-", text).strip("-.") or "run"
