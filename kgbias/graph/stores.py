"""How a store is opened, and the kinds of stores beside SQLite files: a backend or another
package adds one by an entry point of the group "kgbias.stores", whose name begins the URLs of its
stores."""

from collections.abc import Callable
from dataclasses import dataclass

from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE, Store
from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of stores.

    Attributes:
        opener: what opens one, as "module:name": it is called with a URL, `create` and `notify` as
            `open_store` is, and returns a `kgbias.graph.store.Store`.
        password_variable: the environment variable that `opener` reads a password from, for which
            the command line asks in a terminal; "" for none.
        index: where the store can compare vectors of statements with a question, what does so, as
            "module:name": it is called with the open store, `kgbias.models.embed.SentenceVectors`
            and their name, and returns a `kgbias.ask.retrieval.CosineIndex`, or None if this store
            cannot.
    """

    opener: str
    password_variable: str = ""
    index: str = ""


STORES: PluginTable[StoreKind] = PluginTable(
    "store", StoreKind, {}, path_fields=("opener", "index")
)
"""The kinds of stores, by what their URLs begin with."""


def find_store_scheme(url: str) -> str:
    """The name in `STORES` of a URL's store; "" for a path. neo4j+s and bolt+ssc are neo4j and
    bolt, encrypted. Raises UsageError for a URL of no store."""
    scheme, separator, _ = url.partition("://")
    name = scheme.partition("+")[0]
    if not separator:
        return ""
    if name not in STORES:
        known_urls = ", ".join(f"{known}://" for known in STORES)
        hint = f", or a URL that begins with {known_urls}" if known_urls else ""
        raise UsageError(f"{scheme}:// is not a store: give a path{hint}")
    return name


def open_store(
    url: str = DEFAULT_STORE, *, create: bool = True, notify: Callable[[str], None] | None = None
) -> Store:
    """Open the store at a path (SQLite) or at a URL, such as neo4j:// (`STORES`). With
    `create=False`, a missing file is an error. `notify` is called with a line of text when a server
    stops answering, when it answers again, and when a file is served or waited for otherwise than
    usual."""
    if "://" in url:
        scheme = find_store_scheme(url)
        open_server = STORES.import_part(scheme, STORES[scheme].opener)
        server: Store = open_server(url, create=create, notify=notify)
        return server
    if not url.strip() or url.startswith((":memory:", "file:")):
        raise UsageError(f"a store needs a file, and {url!r} is not one: it would not be kept")
    from kgbias.graph.sqlite import SQLiteStore

    return SQLiteStore(url, create=create, notify=notify)
