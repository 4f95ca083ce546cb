"""The graph: its types, its stores, and its conversions."""
