"""Queries on the graph: the library of named queries, and how results are written out."""

from kgbias.query.library import (
    FORMATS,
    NamedQuery,
    browser_parameters,
    format_result,
    load_query,
    query_names,
    write_favourites,
)
from kgbias.query.vocabulary import explain_unknown_words, find_labels_and_types

__all__ = [
    "FORMATS",
    "NamedQuery",
    "browser_parameters",
    "explain_unknown_words",
    "find_labels_and_types",
    "format_result",
    "load_query",
    "query_names",
    "write_favourites",
]
