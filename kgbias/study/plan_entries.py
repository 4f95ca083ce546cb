"""The entries of a study in a file: what they may say, and those that are about several runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from os.path import exists
from pathlib import Path
from typing import Any, get_args, get_type_hints

from kgbias.errors import DataError, UsageError
from kgbias.parameters import Names, as_names, described, fits
from kgbias.query import load_query
from kgbias.study.scorers import OPENING, ScorerOptions
from kgbias.study.study import Study

Method = Callable[..., Any]

ASKING = ("profiles", "probe", "choose", "associate", "benchmark")  # they name the models they ask
_FILES = (  # always
    "prices", "statements", "stereoset", "crows_pairs", "bbq", "winogender", "vectors",
    "tests_file", "output",
)  # fmt: skip
_FILES_OR_NAMES = (
    "prompts", "names", "descriptors", "identities", "indicators", "contexts", "seeds",
)  # fmt: skip
EXTRA: Mapping[str, Mapping[str, Any]] = {"evidence": {"path": str}}
_QUERY = {"name": str, "cypher": str, "parameters": Mapping[str, Any], "path": str}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    Attributes:
        kind: "crawl", "import", "profiles", "measure", "probe", "choose", "associate", "evidence",
            "report", "figures", "export", "compare", "benchmark" or "query".
        run: the name of the run that it makes or is about; of a repeated crawl, of the first; "" of
            a step that is about several, or about the whole store.
        options: what it takes: the parameters of the method of that name.
        output: the file or folder that it writes, if it writes one.
    """

    kind: str
    run: str
    options: Mapping[str, Any] = field(default_factory=dict)
    output: Path | None = None

    def __str__(self) -> str:
        about = as_names(self.options.get("model") or self.options.get("models") or ())
        of = f" of {', '.join(about)}" if about and self.kind in ASKING else ""
        name = self.run or self.options.get("name") or ", ".join(self.runs)
        return f"{self.kind} {name}{of}".replace("  ", " ").rstrip()

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that it makes or that must be there."""
        if self.run:
            return (self.run,)
        named = self.options.get("parameters", self.options)
        runs = named.get("runs") or named.get("run")
        return as_names(runs) if isinstance(runs, str | list) else ()


def check(path: Path, where: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Everything is what the method's own annotations say: a file is checked whole, before its
    first step is carried out."""
    if wrong := sorted(given.keys() - known.keys()):
        raise DataError(
            f"{path}: {where} cannot set {wrong[0]!r}; it takes {', '.join(sorted(known))}"
        )
    for name, value in given.items():
        if not fits(value, known[name]):
            raise DataError(f"{path}: {name!r} of {where} must be {described(known[name])}")


def takes(method: Method) -> dict[str, Any]:
    """A method's parameters, those of its typed `**options` too, with their annotations."""
    found: dict[str, Any] = {}
    for parameter in signature(method).parameters.values():
        if parameter.kind is not Parameter.VAR_KEYWORD:
            found[parameter.name] = parameter.annotation
        elif typed := get_args(parameter.annotation):
            found |= get_type_hints(typed[0])
        else:  # `Run.associate` hands its options on
            from kgbias.associate import associate

            found = without(takes(associate), "run", "store", "progress") | found
    return without(found, "self")


def without(known: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: kind for name, kind in known.items() if name not in names}


def files_of(options: Mapping[str, Any]) -> Iterator[Path]:
    """The files that a step's options name: those that it reads, and what it writes beside its
    output."""
    for name in ("path", "tables", *_FILES, *_FILES_OR_NAMES):
        value = options.get(name)
        for file in value if isinstance(value, list) else [value]:
            # pathlib's fails for what no file can be called
            if file and (name not in _FILES_OR_NAMES or exists(str(file))):  # noqa: PTH110
                yield Path(file)


def beside(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the files that they name beside the plan."""

    def file(name: str, value: Any) -> Any:
        if isinstance(value, list) and name in _FILES:
            return [file(name, part) for part in value]
        if not isinstance(value, str):
            return value
        other = path.parent / value
        # pathlib's fails for what no file can be called
        return str(other) if name in _FILES or exists(other) else value  # noqa: PTH110

    files = (*_FILES, *_FILES_OR_NAMES)
    return {k: file(k, value) if k in files else value for k, value in options.items()}


def table(path: Path, kind: str, file: Any) -> str:
    """The name of a file for rows, which says how they are written."""
    if not isinstance(file, str) or Path(file).suffix not in (".csv", ".json"):
        raise DataError(f"{path}: the `path` of [[{kind}]] must end in .csv or .json")
    return file


def across(
    path: Path, data: Mapping[str, Any], runs: Sequence[str], output: Path
) -> Iterator[Step]:
    """What is about several runs, or about the whole store: in the order in which it needs each
    other."""
    for entry in data.get("compare", []):
        yield _compare(path, entry, runs, output)
    for entry in data.get("benchmark", []):
        yield _benchmark(path, entry, output)
    for entry in data.get("query", []):
        yield _query(path, entry, output)


def _compare(path: Path, entry: Mapping[str, Any], runs: Sequence[str], output: Path) -> Step:
    known = takes(Study.compare) | takes(Study.contrast) | {"runs": Names, "path": str}
    check(path, "[[compare]]", entry, without(known, "probes", "seed"))
    options = {"runs": list(runs), **entry}
    file = output / str(options.pop("path", "compare.json"))
    if len(as_names(options["runs"])) < 2:
        raise DataError(f"{path}: [[compare]] needs two runs, `runs`")
    if unknown := [name for name in as_names(options["runs"]) if name not in runs]:
        raise DataError(f"{path}: there is no run {unknown[0]!r}, only {', '.join(runs)}")
    if file.suffix != ".json":
        raise DataError(f"{path}: the `path` of [[compare]] must end in .json")
    return Step("compare", "", options, file)


def _benchmark(path: Path, entry: Mapping[str, Any], output: Path) -> Step:
    known = without(takes(Study.benchmark), "output", "opening")
    check(path, "[[benchmark]]", entry, known | get_type_hints(ScorerOptions) | {"path": str})
    options = beside(path, entry)
    if not as_names(options.get("models", ())):
        raise DataError(f"{path}: each of [[benchmark]] needs `models`")
    opening = {name: options.pop(name) for name in OPENING if name in options}
    file = output / str(options.pop("path", "benchmark.html"))
    if "tables" in options:
        options["tables"] = str(output / str(options["tables"]))
    return Step("benchmark", "", options | ({"opening": opening} if opening else {}), file)


def _query(path: Path, entry: Mapping[str, Any], output: Path) -> Step:
    check(path, "[[query]]", entry, _QUERY)
    options = dict(entry)
    if ("name" in options) == ("cypher" in options):
        raise DataError(f"{path}: each of [[query]] needs a `name` of the library, or `cypher`")
    if name := options.get("name"):
        try:
            there = {parameter.name for parameter in load_query(name).parameters}
        except UsageError as error:
            raise DataError(f"{path}: {error}") from None
        if unknown := sorted(set(options.get("parameters", ())) - there):
            raise DataError(
                f"{path}: {name} has no parameter {unknown[0]!r}; it has {', '.join(sorted(there))}"
            )
    file = table(path, "query", options.pop("path", f"{name or 'query'}.csv"))
    return Step("query", "", options, output / file)
