"""Tables that packages can add entries to, by entry points in their metadata:

    [project.entry-points."kgbias.measures"]
    politeness = "kgbias_polite:POLITENESS"

The methods and backends of kgbias (`kgbias/methods/NAME`, `kgbias/backends/NAME`) add theirs in the
same way, in the `entry_points.toml` of their folders. Their entries count as our own. If the folder
of one is missing, its entries are broken ones, and all else works.

Installed packages are looked up when a name that is not ours is asked for, or when all names are
listed. A package is imported when one of its entries is used; from then on its code runs with the
user's rights. A broken package is an error of one line that names it, and only for whoever uses its
entry. docs/how-to/extend.md shows how to make such a package.

A table has our own entries, then those of other packages. All names are known without importing
anything, but reading another package's entry imports that package. So code that goes through a
table reads `own_entries`, or the entries for what is present (`kgbias.measures.order_measures`),
never all of them.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from kgbias.errors import KgbiasError, PluginError, first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

_DISTRIBUTION = "kgbias"


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry that another package adds.

    Attributes:
        adds: what it is: "measure", "model", "export", "pack", "import", "exhibit",
            "command" ...
        name: the entry's name.
        package: the package that adds it, with its version.
        problem: why it cannot be used; "" if it can.
    """

    adds: str
    name: str
    package: str
    problem: str = ""


def import_object(path: str) -> Any:
    """The object at a path "module:name", imported now."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class PluginTable(MutableMapping[str, T]):
    """Our own entries by name, in their order, those of our methods last; then those that other
    packages add.

    The names of all are known without importing anything; reading an entry of a method or of
    another package imports it.

    Args:
        entry_kind: what an entry is, such as "measure"; entry points are in the group
            "kgbias.measures".
        entry_class: the class of an entry.
        core_entries: the entries that no method adds.
        find_fault: tells what is wrong with one of their entries, given its name; "" if it is
            sound.
        path_fields: the attributes of an entry that name what is imported when it is used.
    """

    def __init__(
        self,
        entry_kind: str,
        entry_class: type[T],
        core_entries: Mapping[str, T],
        find_fault: Callable[[str, T], str] = lambda name, entry: "",
        path_fields: Sequence[str] = (),
    ) -> None:
        self.entry_kind, self._core_entries = entry_kind, dict(core_entries)
        self._entry_class, self._find_fault, self._path_fields = (
            entry_class,
            find_fault,
            path_fields,
        )
        self._loaded_entries: dict[str, T] = {}

    @cached_property
    def _method_points(self) -> dict[str, "EntryPoint"]:
        """The entry points of our methods and backends, by name."""
        group = f"kgbias.{self.entry_kind}s"
        points = {p.name: p for p in _own_entry_points() if p.group == group and _is_present(p)}
        return dict(sorted(points.items()))

    @cached_property
    def _entry_points(self) -> dict[str, "list[EntryPoint]"]:
        """All other entry points, by name, including names that are also ours: those of other
        packages, and those of our own whose folder is missing."""
        points_by_name: dict[str, list[EntryPoint]] = {}
        for point in _read_entry_points(f"kgbias.{self.entry_kind}s"):
            if not (_is_own(point) and _is_present(point)):
                points_by_name.setdefault(point.name, []).append(point)
        return dict(sorted(points_by_name.items()))

    @property
    def own_names(self) -> list[str]:
        """The names of our own entries, of which none is imported."""
        return [
            *self._core_entries,
            *(n for n in self._method_points if n not in self._core_entries),
        ]

    @property
    def own_entries(self) -> dict[str, T]:
        """Our own entries by name. Imports those of our methods."""
        return {name: self[name] for name in self.own_names}

    def __getitem__(self, name: str) -> T:
        """The entry of that name. Raises KeyError if there is none, PluginError if it is another
        package's and cannot be used."""
        if name in self._core_entries:
            return self._core_entries[name]
        if name not in self._loaded_entries:
            if name in self._method_points:
                self._loaded_entries[name] = self._method_points[name].load()
            elif name in self._entry_points:
                self._loaded_entries[name] = self._load_entry(name)
            else:
                raise KeyError(name)
        return self._loaded_entries[name]

    def __setitem__(self, name: str, entry: T) -> None:
        self._core_entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._core_entries[name]

    def is_own(self, name: str) -> bool:
        """Whether an entry is our own."""
        return name in self._core_entries or name in self._method_points

    def __contains__(self, name: object) -> bool:
        return (
            name in self._core_entries or name in self._method_points or name in self._entry_points
        )

    def __iter__(self) -> Iterator[str]:
        yield from self.own_names
        yield from (name for name in self._entry_points if not self.is_own(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find_package(self, name: str) -> str:
        """The package that adds an entry, with its version; "" for one of ours."""
        return "" if self.is_own(name) else _distribution_of(self._entry_points[name][0])

    def import_part(self, name: str, path: str) -> Any:
        """The object at the path "module:name" from the entry `name`, imported now. Raises
        PluginError if it is another package's and cannot be imported."""
        return (
            import_object(path)
            if self.is_own(name)
            else self._import_guarded(name, lambda: import_object(path))
        )

    def usable_entries(self) -> dict[str, T]:
        """All entries, except those of other packages that cannot be used. Imports them all."""
        entries = self.own_entries
        for plugin in self.list_plugins():
            if not plugin.problem:
                entries[plugin.name] = self[plugin.name]
        return entries

    def list_plugins(self) -> list[Plugin]:
        """The entries that other packages add, with what is wrong with each. Imports them all."""
        return [
            Plugin(self.entry_kind, name, _distribution_of(point), self._find_problem(name, points))
            for name, points in self._entry_points.items()
            for point in points
        ]

    def _find_problem(self, name: str, points: "list[EntryPoint]") -> str:
        if self.is_own(name):
            return f"kgbias has its own {self.entry_kind} {name!r}, which is used instead"
        try:
            for path in filter(None, (getattr(self[name], field) for field in self._path_fields)):
                self.import_part(name, path)
            self[name]
        except KgbiasError as error:
            return str(error)
        return ""

    def _load_entry(self, name: str) -> T:
        points = self._entry_points[name]
        if len(points) > 1:
            packages = " and ".join(_distribution_of(point) for point in points)
            raise PluginError(
                f"{packages} both add a {self.entry_kind} {name!r}: uninstall one of them"
            )
        if _is_own(points[0]):
            missing = _module_of_part(points[0]).replace(".", "/")
            raise PluginError(self._problem_line(name, f"the folder {missing} is missing"))
        entry = self._import_guarded(name, points[0].load)
        if not isinstance(entry, self._entry_class):
            wrong = f"{points[0].value} is not a {self._entry_class.__name__}"
            raise PluginError(self._problem_line(name, wrong))
        if wrong := self._find_fault(name, entry):
            raise PluginError(self._problem_line(name, wrong))
        return entry

    def _import_guarded(self, name: str, load: Callable[[], Any]) -> Any:
        """The result of importing a stranger's code, which may raise anything."""
        try:
            return load()
        except KgbiasError:
            raise
        # A module may call `sys.exit` when it is imported.
        except (Exception, SystemExit) as error:
            error_type = type(error).__name__
            message = first_line(error)
            raise PluginError(
                self._problem_line(
                    name, message if message == error_type else f"{error_type}: {message}"
                )
            ) from error

    def _problem_line(self, name: str, wrong: str) -> str:
        return (
            f"the {self.entry_kind} {name!r} of the package {self.find_package(name)} cannot "
            f"be used: {wrong}"
        )


def _read_entry_points(group: str) -> "Sequence[EntryPoint]":
    """The entry points of a group, of all installed packages."""
    from importlib.metadata import distributions, entry_points

    # Nearly always one package has any: ours. Parsing those of all others takes a tenth of the time
    # of `kgbias --help`.
    named = [d for d in distributions() if group in (d.read_text("entry_points.txt") or "")]
    if len(named) > 1:  # perhaps two copies of one, of which the nearer counts
        return tuple(entry_points(group=group))
    return [point for d in named for point in d.entry_points if point.group == group]


@cache
def _own_entry_points() -> "tuple[EntryPoint, ...]":
    """The entry points of our methods and backends; none in a copy that is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return tuple(distribution(_DISTRIBUTION).entry_points)
    except PackageNotFoundError:
        return ()


def _is_own(point: "EntryPoint") -> bool:
    return point.dist is not None and point.dist.name == _DISTRIBUTION


@cache
def _is_module_present(module: str) -> bool:
    return find_spec(module) is not None


def _is_present(point: "EntryPoint") -> bool:
    return _is_module_present(_module_of_part(point))


def _module_of_part(point: "EntryPoint") -> str:
    """The method or backend that an entry point of ours belongs to, such as
    `kgbias.methods.NAME`."""
    return ".".join(point.module.split(".")[:3])


def _distribution_of(point: "EntryPoint") -> str:
    """The package of an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
