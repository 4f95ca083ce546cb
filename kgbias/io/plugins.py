"""Tables that other packages can add entries to, by entry points in their metadata:

    [project.entry-points."kgbias.measures"]
    politeness = "kgbias_polite:POLITENESS"

Installed packages are looked up when a name that is not ours is asked for, or when all names are
listed. A package is imported when one of its entries is used; from then on its code runs with the
user's rights. A broken package is an error of one line that names it, and only for whoever uses its
entry. docs/how-to/extend.md shows how to make such a package.
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


def named(path: str) -> Any:
    """The object at a path "module:name", imported now."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class Table(MutableMapping[str, T]):
    """Our own entries by name, in their order, then those that other packages add.

    Their names are known without importing anything; reading one of their entries imports it.

    Args:
        what: what an entry is: "measure", "model", "export" or "pack"; their entry points are in
            the group "kgbias.measures" and so on.
        kind: the class of an entry.
        own: our own entries.
        fault: tells what is wrong with one of their entries, given its name; "" if it is sound.
        paths: the attributes of an entry that name what is imported when it is used.
    """

    def __init__(
        self,
        what: str,
        kind: type[T],
        own: Mapping[str, T],
        fault: Callable[[str, T], str] = lambda name, entry: "",
        paths: Sequence[str] = (),
    ) -> None:
        self.what, self.own = what, dict(own)
        self._kind, self._fault, self._paths = kind, fault, paths
        self._loaded: dict[str, T] = {}

    @cached_property
    def _others(self) -> dict[str, "list[EntryPoint]"]:
        """The entry points of other packages, by name, including names that are also ours."""
        from importlib.metadata import entry_points

        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=f"kgbias.{self.what}s"):
            found.setdefault(point.name, []).append(point)
        return dict(sorted(found.items()))

    def __getitem__(self, name: str) -> T:
        """The entry of that name. Raises KeyError if there is none, PluginError if it is another
        package's and cannot be used."""
        if name in self.own:
            return self.own[name]
        if name not in self._loaded:
            if name not in self._others:
                raise KeyError(name)
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, entry: T) -> None:
        self.own[name] = entry

    def __delitem__(self, name: str) -> None:
        del self.own[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._others

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (name for name in self._others if name not in self.own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def package(self, name: str) -> str:
        """The package that adds an entry, with its version; "" for one of ours."""
        return "" if name in self.own else _package(self._others[name][0])

    def named(self, name: str, path: str) -> Any:
        """The object at the path "module:name" from the entry `name`, imported now. Raises
        PluginError if it is another package's and cannot be imported."""
        return named(path) if name in self.own else self._imported(name, lambda: named(path))

    def sound(self) -> dict[str, T]:
        """All entries, except those of other packages that cannot be used. Imports them all."""
        found = dict(self.own)
        for plugin in self.plugins():
            if not plugin.problem:
                found[plugin.name] = self[plugin.name]
        return found

    def plugins(self) -> list[Plugin]:
        """The entries that other packages add, with what is wrong with each. Imports them all."""
        return [
            Plugin(self.what, name, _package(point), self._problem(name, points))
            for name, points in self._others.items()
            for point in points
        ]

    def _problem(self, name: str, points: "list[EntryPoint]") -> str:
        if name in self.own:
            return f"kgbias has its own {self.what} {name!r}, which is used instead"
        try:
            for path in filter(None, (getattr(self[name], part) for part in self._paths)):
                self.named(name, path)
            self[name]
        except KgbiasError as error:
            return str(error)
        return ""

    def _load(self, name: str) -> T:
        points = self._others[name]
        if len(points) > 1:
            packages = " and ".join(_package(point) for point in points)
            raise PluginError(f"{packages} both add a {self.what} {name!r}: uninstall one of them")
        entry = self._imported(name, points[0].load)
        if not isinstance(entry, self._kind):
            wrong = f"{points[0].value} is not a {self._kind.__name__}"
            raise PluginError(self._line(name, wrong))
        if wrong := self._fault(name, entry):
            raise PluginError(self._line(name, wrong))
        return entry

    def _imported(self, name: str, load: Callable[[], Any]) -> Any:
        """The result of importing a stranger's code, which may raise anything."""
        try:
            return load()
        except KgbiasError:
            raise
        except (Exception, SystemExit) as error:
            kind = type(error).__name__
            said = first_line(error)
            raise PluginError(
                self._line(name, said if said == kind else f"{kind}: {said}")
            ) from error

    def _line(self, name: str, wrong: str) -> str:
        return (
            f"the {self.what} {name!r} of the package {self.package(name)} cannot be used: {wrong}"
        )


def _package(point: "EntryPoint") -> str:
    """The package of an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
