"""Tables that other packages can add entries to, by entry points in their metadata:

    [project.entry-points."kgbias.measures"]
    politeness = "kgbias_polite:POLITENESS"

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
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from kgbias.errors import KgbiasError, PluginError, first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry that another package adds.

    Attributes:
        adds: what it is: "measure", "model", "export" or "pack".
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
    """Our own entries by name, in their order, then those that other packages add.

    Their names are known without importing anything; reading one of their entries imports it.

    Args:
        entry_kind: what an entry is: "measure", "model", "export" or "pack"; their entry points are
            in the group "kgbias.measures" and so on.
        entry_class: the class of an entry.
        own_entries: our own entries.
        find_fault: tells what is wrong with one of their entries, given its name; "" if it is
            sound.
        path_fields: the attributes of an entry that name what is imported when it is used.
    """

    def __init__(
        self,
        entry_kind: str,
        entry_class: type[T],
        own_entries: Mapping[str, T],
        find_fault: Callable[[str, T], str] = lambda name, entry: "",
        path_fields: Sequence[str] = (),
    ) -> None:
        self.entry_kind, self.own_entries = entry_kind, dict(own_entries)
        self._entry_class, self._find_fault, self._path_fields = (
            entry_class,
            find_fault,
            path_fields,
        )
        self._loaded_entries: dict[str, T] = {}

    @cached_property
    def _entry_points(self) -> dict[str, "list[EntryPoint]"]:
        """The entry points of other packages, by name, including names that are also ours."""
        from importlib.metadata import entry_points

        points_by_name: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=f"kgbias.{self.entry_kind}s"):
            points_by_name.setdefault(point.name, []).append(point)
        return dict(sorted(points_by_name.items()))

    def __getitem__(self, name: str) -> T:
        """The entry of that name. Raises KeyError if there is none, PluginError if it is another
        package's and cannot be used."""
        if name in self.own_entries:
            return self.own_entries[name]
        if name not in self._loaded_entries:
            if name not in self._entry_points:
                raise KeyError(name)
            self._loaded_entries[name] = self._load_entry(name)
        return self._loaded_entries[name]

    def __setitem__(self, name: str, entry: T) -> None:
        self.own_entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self.own_entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own_entries or name in self._entry_points

    def __iter__(self) -> Iterator[str]:
        yield from self.own_entries
        yield from (name for name in self._entry_points if name not in self.own_entries)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find_package(self, name: str) -> str:
        """The package that adds an entry, with its version; "" for one of ours."""
        return "" if name in self.own_entries else _package_of(self._entry_points[name][0])

    def import_part(self, name: str, path: str) -> Any:
        """The object at the path "module:name" from the entry `name`, imported now. Raises
        PluginError if it is another package's and cannot be imported."""
        return (
            import_object(path)
            if name in self.own_entries
            else self._import_guarded(name, lambda: import_object(path))
        )

    def usable_entries(self) -> dict[str, T]:
        """All entries, except those of other packages that cannot be used. Imports them all."""
        entries = dict(self.own_entries)
        for plugin in self.list_plugins():
            if not plugin.problem:
                entries[plugin.name] = self[plugin.name]
        return entries

    def list_plugins(self) -> list[Plugin]:
        """The entries that other packages add, with what is wrong with each. Imports them all."""
        return [
            Plugin(self.entry_kind, name, _package_of(point), self._find_problem(name, points))
            for name, points in self._entry_points.items()
            for point in points
        ]

    def _find_problem(self, name: str, points: "list[EntryPoint]") -> str:
        if name in self.own_entries:
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
            packages = " and ".join(_package_of(point) for point in points)
            raise PluginError(
                f"{packages} both add a {self.entry_kind} {name!r}: uninstall one of them"
            )
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


def _package_of(point: "EntryPoint") -> str:
    """The package of an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
