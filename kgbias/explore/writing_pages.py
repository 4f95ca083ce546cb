"""Pages beside the explorer's own that its server shows and that write to the store.

A method or another package adds one by an entry point of the group "kgbias.pages".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kgbias.io.plugins import PluginTable

if TYPE_CHECKING:
    from starlette.routing import Route


class WritingPage(Protocol):
    """A page as it is served.

    Attributes:
        path: its address, to which it may send what is to be written (POST).
    """

    path: str

    def build_routes(
        self, read: Callable[[Callable[[], Any]], Any]
    ) -> "tuple[Sequence[Route], str]":
        """Its routes, and its Content-Security-Policy. `read` calls a function that reads or writes
        the store, in a thread that may do so."""
        ...


@dataclass(frozen=True, slots=True)
class WritingPageKind:
    """A kind of page.

    Attributes:
        opener: the function that makes it, as "module:name": of a stored run and the values that
            `Study.serve` was given for it, with `masked`, whether to hide groups' names.
    """

    opener: str


WRITING_PAGES: PluginTable[WritingPageKind] = PluginTable(
    "page", WritingPageKind, {}, path_fields=("opener",)
)
"""The kinds of pages, by the parameter of `Study.serve` that asks for them."""
