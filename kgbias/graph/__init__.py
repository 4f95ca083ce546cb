"""The graph: its types, its stores, and its conversions."""

from kgbias.graph.structure import to_networkx

__all__ = ["to_networkx"]
