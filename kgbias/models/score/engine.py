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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.models.load import cache_parameter, read_cache, to_float64
from kgbias.models.products import fast_products, gains, multiply

if TYPE_CHECKING:
    import torch


TokenIds = tuple[int, ...]


@dataclass(slots=True)
class TokenTree:
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

    def ancestor_mask(self) -> NDArray[np.bool_]:
        """Who may see whom: [nodes, nodes], true if the column is the row or an ancestor of it."""
        visible = np.zeros((len(self.tokens), len(self.tokens)), dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                # The parent's row is whole: parents come first.
                visible[node] = visible[parent]
            visible[node, node] = True
        return visible


def pack_trees(sequences: Sequence[TokenIds], budget: int) -> Iterator[TokenTree]:
    """Trees over all sequences (distinct, of at least two tokens), of at most `budget` nodes each,
    unless a single sequence is longer. After a full tree the next one reads the shared beginning
    again."""
    tree = TokenTree()
    previous: TokenIds = ()
    nodes: list[int] = []  # of the previous sequence, by depth
    edges: list[int] = []  # the edge into depth d + 1
    # In this order, what a sequence shares with any before it, it shares with the last one.
    for index in sorted(range(len(sequences)), key=sequences.__getitem__):
        ids = sequences[index]
        shared_tokens = _shared_length(previous, ids)
        kept_nodes = min(shared_tokens, len(nodes))
        if tree.tokens and len(tree.tokens) + len(ids) - 1 - kept_nodes > budget:
            yield tree
            tree, shared_tokens, kept_nodes = TokenTree(), 0, 0
        del nodes[kept_nodes:]
        # The first token is no edge: n tokens in common are n - 1 edges.
        del edges[max(shared_tokens - 1, 0) :]
        for depth in range(kept_nodes, len(ids) - 1):
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


def _shared_length(first_ids: TokenIds, second_ids: TokenIds) -> int:
    """How many tokens two sequences have in common from the beginning."""
    length = min(len(first_ids), len(second_ids))
    if first_ids[:length] == second_ids[:length]:
        return length
    return next(n for n in range(length) if first_ids[n] != second_ids[n])


def join_trees(trees: Sequence[TokenTree], budget: int) -> Iterator[TokenTree]:
    """Small trees joined into forests of at most `budget` nodes, to fill the rows of a batch. First
    fit, largest first."""
    open_trees: list[TokenTree] = []
    for tree in sorted(trees, key=lambda t: -len(t.tokens)):
        target_tree = next(
            (t for t in open_trees if len(t.tokens) + len(tree.tokens) <= budget), None
        )
        if target_tree is None:
            target_tree = TokenTree()
            open_trees.append(target_tree)
        node, edge = len(target_tree.tokens), len(target_tree.edges)
        target_tree.tokens += tree.tokens
        target_tree.parents += [parent + node if parent >= 0 else -1 for parent in tree.parents]
        target_tree.depths += tree.depths
        target_tree.edges += [(at + node, token) for at, token in tree.edges]
        target_tree.paths += [(index, [e + edge for e in path]) for index, path in tree.paths]
    yield from open_trees


def iter_tree_batches(
    sequences: Sequence[TokenIds], row_nodes: int, batch_tokens: int
) -> Iterator[list[TokenTree]]:
    """All sequences as trees of at most `row_nodes` nodes, in batches of so many tokens."""
    rows = join_trees(list(pack_trees(sequences, row_nodes)), row_nodes)
    while batch := list(islice(rows, max(1, batch_tokens // row_nodes))):
        yield batch


def read_trees(body: Any, trees: Sequence[TokenTree], **options: Any) -> "tuple[Any, torch.Tensor]":
    """What a causal model without its output layer gives for trees, each a row of a batch, and the
    places of their nodes, in order, in the batch's states [rows x columns]."""
    import torch

    max_nodes = max(len(tree.tokens) for tree in trees)
    ids = np.zeros((len(trees), max_nodes), dtype=np.int64)
    positions = np.zeros_like(ids)
    visible_nodes = np.zeros((len(trees), 1, max_nodes, max_nodes), dtype=np.bool_)
    visible_nodes[:] = np.eye(
        max_nodes, dtype=np.bool_
    )  # padding sees itself: no row without a token
    node_places: list[int] = []
    for row, tree in enumerate(trees):
        node_count = len(tree.tokens)
        ids[row, :node_count], positions[row, :node_count] = tree.tokens, tree.depths
        visible_nodes[row, 0, :node_count, :node_count] = tree.ancestor_mask()
        node_places += range(row * max_nodes, row * max_nodes + node_count)
    device, dtype = body.device, body.dtype
    visible = torch.from_numpy(visible_nodes).to(device)
    mask = torch.zeros(visible_nodes.shape, dtype=dtype, device=device)
    # The number that transformers' own masks have.
    mask.masked_fill_(~visible, torch.finfo(dtype).min)
    output = body(
        input_ids=torch.from_numpy(ids).to(device),
        attention_mask=mask,
        position_ids=torch.from_numpy(positions).to(device),
        use_cache=False,
        **options,
    )
    return output, torch.tensor(node_places, device=device)


# Elements of one tile of logits: about a megabyte, so that it stays in a processor's cache; on a
# GPU large enough to keep it busy.
_CPU_ROWS, _CPU_COLUMNS = 512, 512
_GPU_ROWS, _GPU_COLUMNS = 8192, 16384
_MIN_EXACT_SUM, _MAX_EXACT_SUM = (
    1e-30,
    1e35,
)  # between these a sum of exponentials is exact enough in float32


class OutputLayer:
    """log p(token | hidden state), with what some architectures do to their logits: a scale
    (Cohere, Granite), a soft cap (Gemma). The engine's self-check finds models that do more than
    this."""

    def __init__(self, model: Any) -> None:
        config = model.config.get_text_config()
        layer = model.get_output_embeddings()
        self._weight = layer.weight
        self._bias = getattr(layer, "bias", None)
        self._gains = gains(layer.weight)
        self._scale = float(getattr(config, "logit_scale", None) or 1.0)
        self._scale *= float(getattr(config, "lm_head_multiplier", None) or 1.0)
        self._scale /= float(getattr(config, "logits_scaling", None) or 1.0)
        self._cap = float(getattr(config, "final_logit_softcapping", None) or 0.0)

    def log_probabilities(
        self, hidden_states: "torch.Tensor", nodes: "torch.Tensor", tokens: "torch.Tensor"
    ) -> "torch.Tensor":
        """log p(tokens[e] | hidden[nodes[e]]) for each e, float64; `hidden_states` is [n,
        width]."""
        normalisers = self._log_normaliser(hidden_states)
        token_logits = (hidden_states[nodes].float() * self._weight[tokens].float()).sum(-1)
        if self._bias is not None:
            token_logits += self._bias[tokens].float()
        values: torch.Tensor = to_float64(self._shape_logits(token_logits)) - to_float64(
            normalisers[nodes]
        )
        return values

    def _log_normaliser(self, hidden_states: "torch.Tensor") -> "torch.Tensor":
        """log of the sum over the vocabulary of exp(logit), [n], as `_sum_exponentials` has it."""
        import torch

        rows = _CPU_ROWS if hidden_states.device.type == "cpu" else _GPU_ROWS
        totals = []
        for states in hidden_states.split(rows):  # type: ignore[no-untyped-call]
            tile_sums = self._sum_exponentials(states)
            # Logits beyond +-80 leave the range of float32: once more, with the maximum taken out.
            if not bool(((tile_sums > _MIN_EXACT_SUM) & (tile_sums < _MAX_EXACT_SUM)).all()):
                largest = self._largest_logits(states)
                tile_sums = self._sum_exponentials(states, largest).log() + largest
            else:
                tile_sums = tile_sums.log()
            totals.append(tile_sums)
        return torch.cat(totals)

    def _sum_exponentials(
        self, states: "torch.Tensor", subtracted: "torch.Tensor | None" = None
    ) -> "torch.Tensor":
        """Sum over the vocabulary of exp(logit - less), by tiles, the running sum in float64
        (float32 on MPS, which has no other)."""
        import torch

        sum_dtype = torch.float32 if states.device.type == "mps" else torch.float64
        total = torch.zeros(len(states), dtype=sum_dtype, device=states.device)
        for logits in self._iter_logits(states):
            if subtracted is not None:
                logits = logits.sub_(subtracted[:, None])
            total += logits.exp_().sum(1)
        return total

    def _largest_logits(self, states: "torch.Tensor") -> "torch.Tensor":
        """The largest logit of each state."""
        import torch

        return torch.stack([logits.amax(1) for logits in self._iter_logits(states)]).amax(0)

    def _iter_logits(self, states: "torch.Tensor") -> "Iterator[torch.Tensor]":
        """Logits of some columns of the vocabulary at a time, float32; each is overwritten by the
        next."""
        import torch

        columns = _CPU_COLUMNS if states.device.type == "cpu" else _GPU_COLUMNS
        tile = states.new_empty(len(states) * columns)
        for start in range(0, len(self._weight), columns):
            weight = self._weight[start : start + columns]
            if self._gains:
                logits = multiply(states, weight)
            else:
                logits = tile[: len(states) * len(weight)].view(len(states), len(weight))
                torch.mm(states, weight.T, out=logits)
                logits = logits.float()
            if self._bias is not None:
                logits += self._bias[start : start + columns].float()
            yield self._shape_logits(logits)

    def _shape_logits(self, logits: "torch.Tensor") -> "torch.Tensor":
        """What the architecture does to its logits, in place."""
        if self._scale != 1.0:
            logits *= self._scale
        if self._cap:
            logits.div_(self._cap).tanh_().mul_(self._cap)
        return logits


TIERS = ("tree", "cache", "buckets", "alone")
MAX_ROW_NODES = {"cpu": 128, "other": 512}  # nodes of one row: attention costs their square
MAX_BATCH_TOKENS = {"cpu": 512, "other": 65536}  # tokens of one forward pass
# What rounding may change in the mean log-probability of a text, relative to 1 nat and more.
_TOLERANCES = {"float32": 1e-5}
_ROUGH_TOLERANCE = 1e-2  # bfloat16 and float16

Advance = Callable[[int], None]
Values = NDArray[np.float64]
IndexedValues = Iterator[tuple[int, Any]]


def attention_window(config: Any) -> int:
    """How many tokens back a layer of a model sees: beyond that it hides tokens that a custom mask
    would show."""
    windows = (getattr(config, key, None) for key in ("sliding_window", "attention_chunk_size"))
    return min((int(w) for w in windows if w), default=1 << 30)


class _SharedProbes(NamedTuple):
    """Sequences that go on from one another, and how much of each is its stem."""

    sequences: list[TokenIds]
    stem_lengths: list[int]


class CausalEngine:
    """Scores sequences with one causal model of transformers. `tier` was chosen by its self-check,
    or given. While it computes, the model's activations and products are exchanged for faster
    equivalents, if there are any; other users of the model do not notice."""

    def __init__(self, model: Any, tier: str = "auto") -> None:
        self._model = model
        config = model.config.get_text_config()
        self._vocabulary = int(config.vocab_size)
        device_kind = "cpu" if model.device.type == "cpu" else "other"
        self._row_nodes, self._batch_tokens = (
            MAX_ROW_NODES[device_kind],
            MAX_BATCH_TOKENS[device_kind],
        )
        self._window = attention_window(config)
        self._tier_methods: dict[
            str, Callable[[Sequence[TokenIds], Sequence[int]], IndexedValues]
        ] = {
            "tree": self._compute_trees,
            "cache": self._compute_cached,
            "buckets": self._compute_buckets,
            "alone": self._compute_alone,
        }
        self.tier = tier
        if tier == "auto":
            # Rows this small make several of them, with padding, of a few probes.
            full_row_nodes, self._row_nodes = self._row_nodes, 16
            self.tier = self._choose_tier()
            self._row_nodes = full_row_nodes

    def log_probabilities(
        self,
        sequences: Sequence[TokenIds],
        stems: Sequence[int] | None = None,
        advance: Advance | None = None,
    ) -> list[Values]:
        """For each sequence log p(token | those before it), natural, of all tokens but the first:
        float64 of shape [len - 1]. Equal sequences are computed once.

        `stems` says how many tokens each shares with others (the tier "cache" reads those once);
        `advance` is told how many of the sequences are done.
        """
        import torch

        places_by_sequence: dict[TokenIds, list[int]] = {}
        for place, ids in enumerate(sequences):
            places_by_sequence.setdefault(ids, []).append(place)
        distinct = list(places_by_sequence)
        stem_lengths = [
            1 if stems is None else stems[places_by_sequence[ids][0]] for ids in distinct
        ]
        rows: list[Values] = [np.empty(0)] * len(sequences)
        with torch.inference_mode(), _faster_layers(self._model):
            for index, values in self._compute(distinct, stem_lengths):
                row = values.cpu().double().numpy()
                for place in places_by_sequence[distinct[index]]:
                    rows[place] = row
                if advance:
                    advance(len(places_by_sequence[distinct[index]]))
        return rows

    def _compute(self, sequences: Sequence[TokenIds], stems: Sequence[int]) -> IndexedValues:
        short_places = [n for n, ids in enumerate(sequences) if 1 < len(ids) <= self._window]
        long_places = [n for n, ids in enumerate(sequences) if len(ids) > self._window]
        long_tier = "alone" if self.tier == "alone" else "buckets"
        for way, places in ((self.tier, short_places), (long_tier, long_places)):
            if places:
                chosen_sequences = [sequences[n] for n in places], [stems[n] for n in places]
                for index, values in self._tier_methods[way](*chosen_sequences):
                    yield places[index], values

    # the four ways; each yields (index, log-probabilities)

    def _compute_trees(self, sequences: Sequence[TokenIds], _: Sequence[int]) -> IndexedValues:
        for trees in iter_tree_batches(sequences, self._row_nodes, self._batch_tokens):
            yield from self._read_trees(trees)

    def _read_trees(self, trees: Sequence[TokenTree]) -> IndexedValues:
        nodes: list[int] = []
        tokens: list[int] = []
        paths: list[tuple[int, list[int]]] = []
        first_node = 0
        for tree in trees:
            paths += [(index, [e + len(nodes) for e in path]) for index, path in tree.paths]
            nodes += [first_node + at for at, _ in tree.edges]
            tokens += [token for _, token in tree.edges]
            first_node += len(tree.tokens)
        output, places = read_trees(self._model.base_model, trees)
        hidden_states = output.last_hidden_state
        states = hidden_states.reshape(-1, hidden_states.shape[-1])[places]
        values = self._score_edges(states, nodes, tokens)
        for index, path in paths:
            yield index, values[path]

    def _compute_cached(self, sequences: Sequence[TokenIds], stems: Sequence[int]) -> IndexedValues:
        import torch

        device = self._model.device
        # A stem leaves at least one token to read and one to predict.
        stem_of = [
            ids[: max(1, min(stem, len(ids) - 2))]
            for ids, stem in zip(sequences, stems, strict=True)
        ]
        order = sorted(range(len(sequences)), key=lambda n: (stem_of[n], len(sequences[n])))
        for stem, members in groupby(order, key=stem_of.__getitem__):
            output = self._model.base_model(
                input_ids=torch.tensor([stem], device=device), use_cache=True
            )
            stem_states = output.last_hidden_state[0]
            for length, equal in groupby(members, key=lambda n: len(sequences[n])):
                step = max(1, self._batch_tokens // length)
                while batch := list(islice(equal, step)):
                    yield from self._continue_stem(
                        batch, sequences, stem, stem_states, read_cache(output)
                    )

    def _continue_stem(
        self,
        batch: list[int],
        sequences: Sequence[TokenIds],
        stem: TokenIds,
        stem_states: Any,
        cache: Any,
    ) -> IndexedValues:
        """Sequences of one length that go on from a stem that was read."""
        import torch

        begin = len(stem)
        body_ids = torch.tensor([sequences[n][begin:-1] for n in batch], device=self._model.device)
        states = stem_states[None].expand(len(batch), -1, -1)
        if body_ids.shape[1]:
            # Reading writes into it, and the next batch begins at the same stem.
            cache_copy = deepcopy(cache)
            cache_copy.batch_repeat_interleave(len(batch))
            output = self._model.base_model(
                input_ids=body_ids,
                use_cache=True,
                **{cache_parameter(self._model.base_model): cache_copy},
            )
            states = torch.cat([states, output.last_hidden_state], dim=1)
        yield from self._score_states(batch, sequences, states)

    def _compute_buckets(self, sequences: Sequence[TokenIds], _: Sequence[int]) -> IndexedValues:
        import torch

        order = sorted(range(len(sequences)), key=lambda n: len(sequences[n]))
        for length, equal in groupby(order, key=lambda n: len(sequences[n])):
            while batch := list(islice(equal, max(1, self._batch_tokens // length))):
                ids = torch.tensor([sequences[n][:-1] for n in batch], device=self._model.device)
                states = self._model.base_model(input_ids=ids, use_cache=False).last_hidden_state
                yield from self._score_states(batch, sequences, states)

    def _compute_alone(self, sequences: Sequence[TokenIds], _: Sequence[int]) -> IndexedValues:
        import torch

        for index, ids in enumerate(sequences):
            row = torch.tensor([ids], device=self._model.device)
            logits = to_float64(self._model(input_ids=row, use_cache=False).logits[0, :-1])
            # Of each place, the token after it.
            yield index, logits.log_softmax(-1)[range(len(ids) - 1), list(ids[1:])]

    def _score_states(
        self, batch: list[int], sequences: Sequence[TokenIds], states: "torch.Tensor"
    ) -> IndexedValues:
        """From states of all positions but the last, [batch, length - 1, width]."""
        width = states.shape[1]
        tokens = [token for n in batch for token in sequences[n][1:]]
        values = self._score_edges(states.reshape(-1, states.shape[-1]), range(len(tokens)), tokens)
        for row, n in enumerate(batch):
            yield n, values[row * width : (row + 1) * width]

    def _score_edges(
        self, states: "torch.Tensor", nodes: Sequence[int], tokens: Sequence[int]
    ) -> "torch.Tensor":
        import torch

        node_numbers = torch.tensor(nodes, device=states.device)
        token_ids = torch.tensor(tokens, device=states.device)
        return OutputLayer(self._model).log_probabilities(states, node_numbers, token_ids).cpu()

    def _choose_tier(self) -> str:
        """The first tier with the same results as one sequence at a time."""
        import torch

        probes, stems = self._make_probes()
        dtype = str(self._model.dtype).removeprefix("torch.")
        tolerance = _TOLERANCES.get(dtype, _ROUGH_TOLERANCE)
        with torch.inference_mode(), _faster_layers(self._model):
            exact_values = [
                values.cpu().double() for _, values in self._compute_alone(probes, stems)
            ]
            for tier in TIERS[:-1]:
                try:
                    tier_values = {
                        n: values.cpu().double()
                        for n, values in self._tier_methods[tier](probes, stems)
                    }
                except Exception:  # an architecture may refuse a mask or a cache in any way
                    continue
                gaps = [
                    float((tier_values[n] - exact).mean().abs() / (1 + exact.mean().abs()))
                    for n, exact in enumerate(exact_values)
                ]
                if max(gaps) <= tolerance:
                    return tier
        return TIERS[-1]

    def _make_probes(self) -> _SharedProbes:
        """Sequences that share beginnings, differ in length, and go on from one another."""
        rng = np.random.Generator(np.random.PCG64(0))

        def draw_tokens(count: int) -> TokenIds:
            return tuple(int(token) for token in rng.integers(0, self._vocabulary, count))

        stems = [draw_tokens(3), draw_tokens(5)]
        endings = [draw_tokens(2), draw_tokens(6), draw_tokens(4)]
        probes = {stem: 1 for stem in stems}
        probes |= {stem + end: len(stem) for stem in stems for end in endings}
        probes[stems[1] + endings[1][:3]] = len(stems[1])
        fitting_probes = {ids: stem for ids, stem in probes.items() if len(ids) <= self._window}
        return _SharedProbes(list(fitting_probes), list(fitting_probes.values()))


@contextmanager
def _faster_layers(model: Any) -> Iterator[None]:
    """Inside this context, a model's layers are computed by faster equivalents, where there are
    any."""
    with _fuse_activations(model), fast_products(model):
        yield


@contextmanager
def _fuse_activations(model: Any) -> Iterator[None]:
    """Inside this context, the tanh approximation of GELU in one kernel: GPT-2 and similar models
    write it out in eight passes over the largest of their states."""
    from torch.nn import GELU
    from transformers.activations import NewGELUActivation

    plain_activations = [
        (module, name, child)
        for module in model.modules()
        for name, child in module.named_children()
        # Not a subclass, which may compute something else, and none with a hook, which would not be
        # called.
        if type(child) is NewGELUActivation and not child._forward_hooks
    ]
    for module, name, _ in plain_activations:
        setattr(module, name, GELU(approximate="tanh"))
    try:
        yield
    finally:
        for module, name, child in plain_activations:
            setattr(module, name, child)
