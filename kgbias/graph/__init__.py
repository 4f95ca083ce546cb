"""The graph: its types, its stores, and its conversions."""

from kgbias.graph.to_networkx import to_networkx

__all__ = ["to_networkx"]
