"""Log-probabilities of token sequences under a causal model, each shared token computed once.

There are four ways to compute the same numbers, fastest first; at load each is checked against one
sequence at a time to find which a model supports (some architectures silently ignore a custom mask,
others use their cache differently):

    tree      sequences packed into token trees, in rows of a batch, under a 4D mask in which a
              token sees its ancestors alone
    cache     the shared beginning of a group is read once, its keys and values serve all that
              follow, in batches of equal length
    buckets   batches of sequences of equal length; nothing is padded
    alone     one sequence at a time, from the logits that the model returns

In a tree, a sequence begins with a token that is given, not scored. A node is a token that the
model reads, an edge a token that it predicts: the last token of a sequence is only an edge, unless
another sequence continues from it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgbias.models.load import cache_in, cache_name, float64

if TYPE_CHECKING:
    import torch


Ids = tuple[int, ...]


@dataclass(slots=True)
class Tree:
    """Some sequences as one tree, or a forest if nothing is shared at the root.

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
        """Who may see whom: [nodes, nodes], true if the column is the row or an ancestor of it."""
        seen = np.zeros((len(self.tokens), len(self.tokens)), dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                seen[node] = seen[parent]
            seen[node, node] = True
        return seen


def pack(sequences: Sequence[Ids], budget: int) -> Iterator[Tree]:
    """Trees over all sequences (distinct, of at least two tokens), of at most `budget` nodes each,
    unless a single sequence is longer. After a full tree the next one reads the shared beginning
    again."""
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
    """Small trees joined into forests of at most `budget` nodes, to fill the rows of a batch. First
    fit, largest first."""
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


# Elements of one tile of logits: about a megabyte, so that it stays in a processor's cache; on a
# GPU large enough to keep it busy.
_CPU_ROWS, _CPU_COLUMNS = 512, 512
_GPU_ROWS, _GPU_COLUMNS = 8192, 16384
_SMALL, _LARGE = 1e-30, 1e35  # between these a sum of exponentials is exact enough in float32


class Head:
    """log p(token | hidden state), with what some architectures do to their logits: a scale
    (Cohere, Granite), a soft cap (Gemma). The engine's self-check finds models that do more than
    this."""

    def __init__(self, model: Any) -> None:
        config = model.config.get_text_config()
        layer = model.get_output_embeddings()
        self._weight = layer.weight
        self._bias = getattr(layer, "bias", None)
        self._scale = float(getattr(config, "logit_scale", None) or 1.0)
        self._scale *= float(getattr(config, "lm_head_multiplier", None) or 1.0)
        self._scale /= float(getattr(config, "logits_scaling", None) or 1.0)
        self._cap = float(getattr(config, "final_logit_softcapping", None) or 0.0)

    def log_probabilities(
        self, hidden: "torch.Tensor", nodes: "torch.Tensor", tokens: "torch.Tensor"
    ) -> "torch.Tensor":
        """log p(tokens[e] | hidden[nodes[e]]) for each e, float64; `hidden` is [n, width]."""
        total = self._normaliser(hidden)
        own = (hidden[nodes].float() * self._weight[tokens].float()).sum(-1)
        if self._bias is not None:
            own += self._bias[tokens].float()
        values: torch.Tensor = float64(self._shaped(own)) - float64(total[nodes])
        return values

    def _normaliser(self, hidden: "torch.Tensor") -> "torch.Tensor":
        """log of the sum over the vocabulary of exp(logit), [n], as `_summed` has it."""
        import torch

        rows = _CPU_ROWS if hidden.device.type == "cpu" else _GPU_ROWS
        totals = []
        for states in hidden.split(rows):  # type: ignore[no-untyped-call]
            total = self._summed(states)
            # Logits beyond +-80 leave the range of float32: once more, with the maximum taken out.
            if not bool(((total > _SMALL) & (total < _LARGE)).all()):
                most = self._most(states)
                total = self._summed(states, most).log() + most
            else:
                total = total.log()
            totals.append(total)
        return torch.cat(totals)

    def _summed(self, states: "torch.Tensor", less: "torch.Tensor | None" = None) -> "torch.Tensor":
        """Sum over the vocabulary of exp(logit - less), by tiles, the running sum in float64
        (float32 on MPS, which has no other)."""
        import torch

        wide = torch.float32 if states.device.type == "mps" else torch.float64
        total = torch.zeros(len(states), dtype=wide, device=states.device)
        for logits in self._tiles(states):
            if less is not None:
                logits = logits.sub_(less[:, None])
            total += logits.exp_().sum(1)
        return total

    def _most(self, states: "torch.Tensor") -> "torch.Tensor":
        """The largest logit of each state."""
        import torch

        return torch.stack([logits.amax(1) for logits in self._tiles(states)]).amax(0)

    def _tiles(self, states: "torch.Tensor") -> "Iterator[torch.Tensor]":
        """Logits of some columns of the vocabulary at a time, float32; each is overwritten by the
        next."""
        import torch

        columns = _CPU_COLUMNS if states.device.type == "cpu" else _GPU_COLUMNS
        tile = states.new_empty(len(states) * columns)
        for start in range(0, len(self._weight), columns):
            weight = self._weight[start : start + columns]
            logits = tile[: len(states) * len(weight)].view(len(states), len(weight))
            torch.mm(states, weight.T, out=logits)
            logits = logits.float()
            if self._bias is not None:
                logits += self._bias[start : start + columns].float()
            yield self._shaped(logits)

    def _shaped(self, logits: "torch.Tensor") -> "torch.Tensor":
        """What the architecture does to its logits, in place."""
        if self._scale != 1.0:
            logits *= self._scale
        if self._cap:
            logits.div_(self._cap).tanh_().mul_(self._cap)
        return logits


TIERS = ("tree", "cache", "buckets", "alone")
_ROW = {"cpu": 128, "other": 512}  # nodes of one row: attention costs their square
_BATCH = {"cpu": 512, "other": 65536}  # tokens of one forward pass
# What rounding may change in the mean log-probability of a text, relative to 1 nat and more.
_TOLERANCE = {"float32": 1e-5}
_ROUGH = 1e-2  # bfloat16 and float16

Advance = Callable[[int], None]
Values = NDArray[np.float64]
Found = Iterator[tuple[int, Any]]


class Engine:
    """Scores sequences with one causal model of transformers. `tier` was chosen by its self-check,
    or given. While it computes, the model's activations are exchanged for faster equivalents, if
    there are any; other users of the model do not notice."""

    def __init__(self, model: Any, tier: str = "auto") -> None:
        self._model = model
        config = model.config.get_text_config()
        self._vocabulary = int(config.vocab_size)
        place = "cpu" if model.device.type == "cpu" else "other"
        self._row, self._batch = _ROW[place], _BATCH[place]
        # Beyond its window a layer hides tokens that a custom mask would show.
        windows = (getattr(config, key, None) for key in ("sliding_window", "attention_chunk_size"))
        self._window = min((int(w) for w in windows if w), default=1 << 30)
        self._ways: dict[str, Callable[[Sequence[Ids], Sequence[int]], Found]] = {
            "tree": self._tree,
            "cache": self._cached,
            "buckets": self._buckets,
            "alone": self._alone,
        }
        self.tier = tier
        if tier == "auto":
            # Rows this small make several of them, with padding, of a few probes.
            row, self._row = self._row, 16
            self.tier = self._chosen()
            self._row = row

    def log_probabilities(
        self,
        sequences: Sequence[Ids],
        stems: Sequence[int] | None = None,
        advance: Advance | None = None,
    ) -> list[Values]:
        """For each sequence log p(token | those before it), natural, of all tokens but the first:
        float64 of shape [len - 1]. Equal sequences are computed once.

        `stems` says how many tokens each shares with others (the tier "cache" reads those once);
        `advance` is told how many of the sequences are done.
        """
        import torch

        numbers: dict[Ids, list[int]] = {}
        for place, ids in enumerate(sequences):
            numbers.setdefault(ids, []).append(place)
        distinct = list(numbers)
        shared = [1 if stems is None else stems[numbers[ids][0]] for ids in distinct]
        found: list[Values] = [np.empty(0)] * len(sequences)
        with torch.inference_mode(), _fused(self._model):
            for index, values in self._found(distinct, shared):
                row = values.cpu().double().numpy()
                for place in numbers[distinct[index]]:
                    found[place] = row
                if advance:
                    advance(len(numbers[distinct[index]]))
        return found

    def _found(self, sequences: Sequence[Ids], stems: Sequence[int]) -> Found:
        short = [n for n, ids in enumerate(sequences) if 1 < len(ids) <= self._window]
        long = [n for n, ids in enumerate(sequences) if len(ids) > self._window]
        rest = "alone" if self.tier == "alone" else "buckets"
        for way, places in ((self.tier, short), (rest, long)):
            if places:
                chosen = [sequences[n] for n in places], [stems[n] for n in places]
                for index, values in self._ways[way](*chosen):
                    yield places[index], values

    # the four ways; each yields (index, log-probabilities)

    def _tree(self, sequences: Sequence[Ids], _: Sequence[int]) -> Found:
        rows = iter(join(list(pack(sequences, self._row)), self._row))
        while batch := list(islice(rows, max(1, self._batch // self._row))):
            yield from self._read_trees(batch)

    def _read_trees(self, trees: Sequence[Tree]) -> Found:
        import torch

        longest = max(len(tree.tokens) for tree in trees)
        ids = np.zeros((len(trees), longest), dtype=np.int64)
        positions = np.zeros_like(ids)
        seen = np.zeros((len(trees), 1, longest, longest), dtype=np.bool_)
        seen[:] = np.eye(longest, dtype=np.bool_)  # padding sees itself: no row without a token
        nodes: list[int] = []
        tokens: list[int] = []
        real: list[int] = []
        paths: list[tuple[int, list[int]]] = []
        for row, tree in enumerate(trees):
            size, first = len(tree.tokens), len(real)
            ids[row, :size], positions[row, :size] = tree.tokens, tree.depths
            seen[row, 0, :size, :size] = tree.ancestors()
            real += range(row * longest, row * longest + size)
            paths += [(index, [e + len(nodes) for e in path]) for index, path in tree.paths]
            nodes += [first + at for at, _ in tree.edges]
            tokens += [token for _, token in tree.edges]
        device, dtype = self._model.device, self._model.dtype
        visible = torch.from_numpy(seen).to(device)
        mask = torch.zeros(seen.shape, dtype=dtype, device=device)
        mask.masked_fill_(~visible, torch.finfo(dtype).min)
        hidden = self._model.base_model(
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=mask,
            position_ids=torch.from_numpy(positions).to(device),
            use_cache=False,
        ).last_hidden_state
        states = hidden.reshape(-1, hidden.shape[-1])[torch.tensor(real, device=device)]
        values = self._edges(states, nodes, tokens)
        for index, path in paths:
            yield index, values[path]

    def _cached(self, sequences: Sequence[Ids], stems: Sequence[int]) -> Found:
        import torch

        device = self._model.device
        # A stem leaves at least one token to read and one to predict.
        stem_of = [
            ids[: max(1, min(stem, len(ids) - 2))]
            for ids, stem in zip(sequences, stems, strict=True)
        ]
        order = sorted(range(len(sequences)), key=lambda n: (stem_of[n], len(sequences[n])))
        for stem, members in groupby(order, key=stem_of.__getitem__):
            out = self._model.base_model(
                input_ids=torch.tensor([stem], device=device), use_cache=True
            )
            after = out.last_hidden_state[0]
            for length, equal in groupby(members, key=lambda n: len(sequences[n])):
                step = max(1, self._batch // length)
                while batch := list(islice(equal, step)):
                    yield from self._continue(batch, sequences, stem, after, cache_in(out))

    def _continue(
        self, batch: list[int], sequences: Sequence[Ids], stem: Ids, after: Any, cache: Any
    ) -> Found:
        """Sequences of one length that go on from a stem that was read."""
        import torch

        begin = len(stem)
        body = torch.tensor([sequences[n][begin:-1] for n in batch], device=self._model.device)
        states = after[None].expand(len(batch), -1, -1)
        if body.shape[1]:
            own = deepcopy(cache)
            own.batch_repeat_interleave(len(batch))
            read = self._model.base_model(
                input_ids=body, use_cache=True, **{cache_name(self._model.base_model): own}
            )
            states = torch.cat([states, read.last_hidden_state], dim=1)
        yield from self._dense(batch, sequences, states)

    def _buckets(self, sequences: Sequence[Ids], _: Sequence[int]) -> Found:
        import torch

        order = sorted(range(len(sequences)), key=lambda n: len(sequences[n]))
        for length, equal in groupby(order, key=lambda n: len(sequences[n])):
            while batch := list(islice(equal, max(1, self._batch // length))):
                ids = torch.tensor([sequences[n][:-1] for n in batch], device=self._model.device)
                states = self._model.base_model(input_ids=ids, use_cache=False).last_hidden_state
                yield from self._dense(batch, sequences, states)

    def _alone(self, sequences: Sequence[Ids], _: Sequence[int]) -> Found:
        import torch

        for index, ids in enumerate(sequences):
            row = torch.tensor([ids], device=self._model.device)
            logits = float64(self._model(input_ids=row, use_cache=False).logits[0, :-1])
            yield index, logits.log_softmax(-1)[range(len(ids) - 1), list(ids[1:])]

    def _dense(self, batch: list[int], sequences: Sequence[Ids], states: "torch.Tensor") -> Found:
        """From states of all positions but the last, [batch, length - 1, width]."""
        width = states.shape[1]
        tokens = [token for n in batch for token in sequences[n][1:]]
        values = self._edges(states.reshape(-1, states.shape[-1]), range(len(tokens)), tokens)
        for row, n in enumerate(batch):
            yield n, values[row * width : (row + 1) * width]

    def _edges(
        self, states: "torch.Tensor", nodes: Sequence[int], tokens: Sequence[int]
    ) -> "torch.Tensor":
        import torch

        at = torch.tensor(nodes, device=states.device)
        which = torch.tensor(tokens, device=states.device)
        return Head(self._model).log_probabilities(states, at, which).cpu()

    def _chosen(self) -> str:
        """The first tier with the same results as one sequence at a time."""
        import torch

        probes, stems = self._probes()
        dtype = str(self._model.dtype).removeprefix("torch.")
        tolerance = _TOLERANCE.get(dtype, _ROUGH)
        with torch.inference_mode(), _fused(self._model):
            truth = [values.cpu().double() for _, values in self._alone(probes, stems)]
            for tier in TIERS[:-1]:
                try:
                    found = {
                        n: values.cpu().double() for n, values in self._ways[tier](probes, stems)
                    }
                except Exception:  # an architecture may refuse a mask or a cache in any way
                    continue
                gaps = [
                    float((found[n] - own).mean().abs() / (1 + own.mean().abs()))
                    for n, own in enumerate(truth)
                ]
                if max(gaps) <= tolerance:
                    return tier
        return TIERS[-1]

    def _probes(self) -> tuple[list[Ids], list[int]]:
        """Sequences that share beginnings, differ in length, and go on from one another."""
        draw = np.random.Generator(np.random.PCG64(0))

        def some(n: int) -> Ids:
            return tuple(int(token) for token in draw.integers(0, self._vocabulary, n))

        stems = [some(3), some(5)]
        ends = [some(2), some(6), some(4)]
        probes = {stem: 1 for stem in stems}
        probes |= {stem + end: len(stem) for stem in stems for end in ends}
        probes[stems[1] + ends[1][:3]] = len(stems[1])
        fitting = {ids: stem for ids, stem in probes.items() if len(ids) <= self._window}
        return list(fitting), list(fitting.values())


@contextmanager
def _fused(model: Any) -> Iterator[None]:
    """Inside this context, the tanh approximation of GELU in one kernel: GPT-2 and similar models
    write it out in eight passes over the largest of their states."""
    from torch.nn import GELU
    from transformers.activations import NewGELUActivation

    plain = [
        (module, name, child)
        for module in model.modules()
        for name, child in module.named_children()
        if type(child) is NewGELUActivation and not child._forward_hooks
    ]
    for module, name, _ in plain:
        setattr(module, name, GELU(approximate="tanh"))
    try:
        yield
    finally:
        for module, name, child in plain:
            setattr(module, name, child)
