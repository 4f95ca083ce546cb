"""Token sequences packed into trees, so that what they share is computed once.

A sequence begins with a token that is given, not scored. A node is a token that the model reads, an
edge a token that it predicts: the last token of a sequence is only an edge, unless another sequence
continues from it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ids = tuple[int, ...]


@dataclass(slots=True)
class Tree:
    """Some sequences as one tree; where nothing is shared at the root it is a forest.

    Nodes stand in an order in which parents come first: `tokens`, `parents` (-1 at a root) and
    `depths`, which are the tokens' positions in their sequences. `edges` are (node, token): predict
    this token after this node. `paths` gives each sequence, by its index, its edges in order.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    paths: list[tuple[int, list[int]]] = field(default_factory=list)

    def ancestors(self) -> NDArray[np.bool_]:
        """Who may see whom: [nodes, nodes], true where the column is the row or above it."""
        seen = np.zeros((len(self.tokens), len(self.tokens)), dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                seen[node] = seen[parent]
            seen[node, node] = True
        return seen


def pack(sequences: Sequence[Ids], budget: int) -> Iterator[Tree]:
    """Trees over all sequences (distinct, of at least two tokens), of at most `budget` nodes each
    where no single sequence is longer. A tree that is full makes the next one read the shared
    beginning again."""
    tree = Tree()
    previous: Ids = ()
    nodes: list[int] = []  # of the previous sequence, by depth
    edges: list[int] = []  # the edge into depth d + 1
    for index in sorted(range(len(sequences)), key=sequences.__getitem__):
        ids = sequences[index]
        shared = _shared(previous, ids)
        kept = min(shared, len(nodes))
        if tree.tokens and len(tree.tokens) + len(ids) - 1 - kept > budget:
            yield tree
            tree, shared, kept = Tree(), 0, 0
        del nodes[kept:]
        del edges[max(shared - 1, 0) :]
        for depth in range(kept, len(ids) - 1):
            tree.tokens.append(ids[depth])
            tree.parents.append(nodes[-1] if nodes else -1)
            tree.depths.append(depth)
            nodes.append(len(tree.tokens) - 1)
        for depth in range(len(edges), len(ids) - 1):
            edges.append(len(tree.edges))
            tree.edges.append((nodes[depth], ids[depth + 1]))
        tree.paths.append((index, list(edges)))
        previous = ids
    if tree.tokens:
        yield tree


def _shared(first: Ids, second: Ids) -> int:
    """How many tokens two sequences have in common from the beginning."""
    length = min(len(first), len(second))
    if first[:length] == second[:length]:
        return length
    return next(n for n in range(length) if first[n] != second[n])


def join(trees: Sequence[Tree], budget: int) -> Iterator[Tree]:
    """Small trees side by side in forests of at most `budget` nodes, so that rows of a batch are
    full. First fit, the largest first."""
    open_: list[Tree] = []
    for tree in sorted(trees, key=lambda t: -len(t.tokens)):
        home = next((t for t in open_ if len(t.tokens) + len(tree.tokens) <= budget), None)
        if home is None:
            home = Tree()
            open_.append(home)
        node, edge = len(home.tokens), len(home.edges)
        home.tokens += tree.tokens
        home.parents += [parent + node if parent >= 0 else -1 for parent in tree.parents]
        home.depths += tree.depths
        home.edges += [(at + node, token) for at, token in tree.edges]
        home.paths += [(index, [e + edge for e in path]) for index, path in tree.paths]
    yield from open_
