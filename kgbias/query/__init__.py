"""Queries on the graph: the library of named queries, and how results are written out."""

from kgbias.query.library import (
    FORMATS,
    NamedQuery,
    browser_parameters,
    load_query,
    query_names,
    write_favourites,
    write_result,
)
from kgbias.query.vocabulary import find_kinds, unknown_words

__all__ = [
    "FORMATS",
    "NamedQuery",
    "browser_parameters",
    "find_kinds",
    "load_query",
    "query_names",
    "unknown_words",
    "write_favourites",
    "write_result",
]
