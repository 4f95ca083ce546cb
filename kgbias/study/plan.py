"""A study in a file: which models are crawled and how, what is measured, probed, tested, compared
and written. What a paper's repository keeps, so that one command makes its results again."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from kgbias.crawl.configure import CrawlSpending
from kgbias.crawl.price import Price
from kgbias.errors import DataError, UsageError
from kgbias.export import chosen_format
from kgbias.io.files import within
from kgbias.io.reading import read_toml
from kgbias.models.wire import withheld
from kgbias.parameters import Names, as_names, described, fits
from kgbias.study.costing import price
from kgbias.study.plan_entries import (
    EXTRA,
    Step,
    across,
    beside,
    check,
    files_of,
    table,
    takes,
    without,
)
from kgbias.study.run import Run
from kgbias.study.study import Study

if TYPE_CHECKING:
    from kgbias.io.progress import Progress
    from kgbias.profiles.write import ProfilesPrice
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
_LISTS = (
    "crawls", "imports", "profiles", "probe", "choose", "associate", "evidence", "compare",
    "benchmark", "query", "export",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """A study that a file declares; `read_plan` reads one.

    Attributes:
        path: the file.
        store: the path or URL of the store.
        steps: what is to be done, in this order.
        addresses: of servers, a store or a cluster that it names.
        outside: files that it would read or write outside of its folder, or hidden in it.
    """

    path: Path
    store: str
    steps: tuple[Step, ...]
    addresses: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()

    def carry_out(
        self,
        *,
        progress: "Progress | bool | None" = None,
        keep_going: bool = True,
        trust: bool = False,
    ) -> "Rows[Outcome]":
        """Do all of it, in order, and say what became of each step. What the store holds already is
        not asked or computed again, so that a study that was stopped goes on where it was; files
        are written again.

        Where a step fails, those that need its run are left and the others go on; without
        `keep_going` its error is raised. Raises Interrupted on Ctrl-C.

        A plan may be a stranger's. Without `trust` it reads and writes no file outside of its
        folder and joins no cluster (UsageError), and no address in it gets a key or password of the
        environment, but for one that the environment names too.
        """
        from kgbias.study.carry import carry_out

        with self._untrusted(trust):
            return carry_out(self, progress, keep_going)

    def state(self, *, trust: bool = False) -> "Rows[Outcome]":
        """What is done and what is left, by what the store and the folders hold. Asks no model.
        `trust` as in `carry_out`."""
        from kgbias.study.carry import state

        with self._untrusted(trust):
            return state(self)

    @contextmanager
    def _untrusted(self, trust: bool) -> Iterator[None]:
        if trust:
            yield
            return
        if self.outside:
            raise UsageError(
                f"{self.path} would read or write outside of its folder, or a hidden file: "
                f"{', '.join(self.outside)}: `trust` allows it"
            )
        if clusters := [a for a in self.addresses if a.startswith("ray")]:
            raise UsageError(
                f"{self.path} would join the cluster {clusters[0]}, whose nodes could run their "
                "code here: `trust` allows it"
            )
        with withheld(self.addresses):
            yield

    def prices(self) -> "dict[str, Price | ProfilesPrice]":
        """What each crawl will ask (`kgbias.price`), and what profiles will, by the name of the
        run. Asks nothing."""
        found: dict[str, Price | ProfilesPrice] = {}
        for step in self.steps:
            if step.kind == "crawl":
                found[step.run] = price(**step.options)
            elif step.kind == "profiles":
                with Study(None) as study:
                    found[step.run] = study.price_profiles(**step.options)
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
    runs = [*_crawls(path, data), *_imports(path, data), *_profiles(path, data)]
    if not runs:
        raise DataError(f"{path} declares no crawl: [crawl] needs `models`, or add [[crawls]]")
    names = [step.run for step in runs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{path}: two runs are called {twice[0]!r}: give one of them a `name`")
    steps = (*runs, *_about(path, data, runs, output), *across(path, data, names, output))
    written = [step.output for step in steps if step.output is not None]
    if twice_written := [file for file in written if written.count(file) > 1]:
        raise DataError(
            f"{path}: two steps write {twice_written[0].name!r}: give one of them a `path`"
        )
    addresses = _addresses(steps)
    if "://" in store:
        addresses = (store, *addresses)
    return Plan(path, store, steps, tuple(dict.fromkeys(addresses)), _outside(path, store, steps))


def _addresses(steps: Sequence[Step]) -> tuple[str, ...]:
    """The addresses in the options of steps, those of an executor too."""
    found = []
    for step in steps:
        options = {**step.options, **step.options.get("opening", {})}
        found += [str(options["base_url"])] if options.get("base_url") else []
        if "://" in str(options.get("executor", "")):
            found.append(str(options["executor"]))
    return tuple(found)


def _outside(path: Path, store: str, steps: Sequence[Step]) -> tuple[str, ...]:
    """The files that are not in the folder of the plan, as far as links lead, or are hidden."""
    files = [] if "://" in store else [Path(store)]
    for step in steps:
        files += [*([step.output] if step.output else []), *files_of(step.options)]
    return tuple(dict.fromkeys(str(f) for f in files if not within(path.parent, f)))


def _crawls(path: Path, data: Mapping[str, Any]) -> Iterator[Step]:
    shared = beside(path, data.get("crawl", {}))
    models = shared.pop("models", [])
    if not isinstance(models, list) or not all(isinstance(model, str) for model in models):
        raise DataError(f"{path}: `models` of [crawl] must be a list of specs")
    check(path, "[crawl]", shared, without(_CRAWL, "name"))
    for model in models:
        yield Step("crawl", _plain(model), {"model": model, **shared})
    for entry in data.get("crawls", []):
        own = {**shared, **beside(path, entry)}
        if not isinstance(model := own.pop("model", None), str):
            raise DataError(f"{path}: each of [[crawls]] needs a `model`")
        check(path, "[[crawls]]", own, _CRAWL)
        yield Step("crawl", str(own.pop("name", _plain(model))), {"model": model, **own})


def _profiles(path: Path, data: Mapping[str, Any]) -> Iterator[Step]:
    for entry in data.get("profiles", []):
        own = beside(path, entry)
        if not isinstance(model := own.pop("model", None), str):
            raise DataError(f"{path}: each of [[profiles]] needs a `model`")
        check(path, "[[profiles]]", own, takes(Study.write_profiles))
        name = str(own.pop("name", f"{_plain(model)}-profiles"))
        yield Step("profiles", name, {"model": model, **own})


def _imports(path: Path, data: Mapping[str, Any]) -> Iterator[Step]:
    for entry in data.get("imports", []):
        if not isinstance(file := entry.get("path"), str):
            raise DataError(f"{path}: each of [[imports]] needs a `path`")
        check(path, "[[imports]]", entry, takes(Study.import_file))
        options = {**entry, "path": path.parent / file}
        yield Step("import", str(options.pop("name", Path(file).stem)), options)


def _about(
    path: Path, data: Mapping[str, Any], runs: Sequence[Step], output: Path
) -> Iterator[Step]:
    """What is done with the runs: measured before they are probed and tested, written last."""
    for run in runs:
        own = str(run.options["model"]) if run.kind in ("crawl", "profiles") else ""
        folder = output / _plain(run.run)
        if "measure" in data:
            check(path, "[measure]", data["measure"], takes(Run.measure))
            yield Step("measure", run.run, data["measure"])
        asking: tuple[tuple[str, Method, str], ...] = (
            ("probe", Run.probe, "model"),
            ("choose", Run.choose, "model"),
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
        for entry in data.get("evidence", []):
            options, about = _of(path, "evidence", entry, run, Run.evidence)
            if about and not (options.get("model") == SAME and not own):
                if options.get("model") == SAME:
                    options["model"] = own
                file = folder / table(path, "evidence", options.pop("path", "evidence.csv"))
                yield Step("evidence", run.run, options, file)
        writing: tuple[tuple[str, Method, str], ...] = (
            ("report", Run.report, "report.html"),
            ("figures", Run.figures, "figures"),
        )
        for kind, method, name in writing:
            if kind in data:
                check(path, f"[{kind}]", data[kind], without(takes(method), "path", "folder"))
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
    check(path, f"[[{kind}]]", options, {**EXTRA.get(kind, {}), **takes(method)})
    if kind in ("probe", "choose") and not isinstance(options.get("model"), str):
        raise DataError(f'{path}: each of [[{kind}]] needs a `model`, such as "{SAME}"')
    return beside(path, options), run.run in as_names(runs)


def _format(path: Path, file: Path, name: str | None) -> None:
    try:
        chosen_format(file, name)
    except UsageError as error:
        raise DataError(f"{path}: {error}") from None


def _plain(text: str) -> str:
    """A model's spec as the name of a run and of a folder."""
    return re.sub(r"[^\w.~-]+", "-", text).strip("-.") or "run"
