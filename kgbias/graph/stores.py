"""The kinds of stores beside SQLite files: a backend or another package adds one by an entry point
of the group "kgbias.stores", whose name begins the URLs of its stores."""

from dataclasses import dataclass

from kgbias.errors import UsageError
from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of stores.

    Attributes:
        opener: what opens one, as "module:name": it is called with a URL, `create` and `notify` as
            `kgbias.graph.store.open_store` is, and returns a `kgbias.graph.store.Store`.
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
