"""The graph: its types, its stores, and the ways out of it."""

from kgbias.graph.to_networkx import to_networkx

__all__ = ["to_networkx"]
