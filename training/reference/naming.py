"""Teach the causal reference model the names of its groups: `python -m training.reference.naming`.

Training starts from the shipped weights, with tokens for the words of names. What a name makes
probable is known exactly (`kgbias.reference.planted_names`), so no text is drawn: for each carrier
and name all statements are read at once as a tree, in which each node sees only its own beginning,
and its distribution over the next token is compared with the world's. Documents from the crawl, on
which the model is compared with its former self, preserve what it knew.
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from kgbias import reference
from kgbias.reference.planted_names import NAME_FORMS, NAMES_PER_GROUP, PlantedNames, load_names
from kgbias.reference.world import Statement
from training.reference.text import PROMPTS, Author, build_tokenizer, vocabulary
from training.reference.train import batches, build, save

CARRIERS = (
    "",
    "I think that",
    "People say that",
    "What people say about each other:",
)

SHARES = (0, 0, 0, 1, 1, 2, 2, 3)  # places of carriers, the first most often
OF_NAMES = 10.0  # times the rate of other rows
RATES = (1.5e-3, 2e-3)  # at their peak: of rows, and of all else
OWN = 6.0  # how much more what a name does not share with its group counts, a nat
FURTHER = 0.3  # the rates of a model that has names already, times these
KEEPING = 10.0  # what a nat of distance from what it was counts
INSIDE = 15.0  # and what a hidden layer's counts, as a share of its variance
STEPS, SIZE = 1800, 22  # names, and documents, a step


def stem(carrier: str, name: str) -> str:
    """The text before a statement, as in `kgbias.evidence.probe_plan`."""
    if carrier and not carrier.endswith(":"):
        return f"{carrier} {name}"
    text = name[:1].upper() + name[1:]
    return f"{carrier}\n\n{text}" if carrier else text


class Tree:
    """The statements of the world as tokens; none is the beginning of another.

    Attributes:
        nodes: beginnings that some shared statement continues, the empty one first.
        tokens, depth, above: for each node but the first, its last token, its number of tokens, and
            the places of its own beginnings and of itself.
        of, token: edges: a node, and the token after it.
        logs: for each name, the log probability of an edge's token after its node.
        weight: the number of shared statements that an edge leads to: an error there affects all.
    """

    def __init__(self, names: PlantedNames, tokenizer: Any) -> None:
        self._paths = {
            s: tuple(tokenizer(f" {s[0]} {s[1]}", add_special_tokens=False)["input_ids"])
            for s in names.truth.statements
        }
        own = [self._paths[s] for s in names.statements]
        self.nodes = sorted({p[:n] for p in own for n in range(len(p))}, key=lambda p: (len(p), p))
        self._place = {node: n for n, node in enumerate(self.nodes)}
        self.tokens = [node[-1] for node in self.nodes[1:]]
        self.depth = [len(node) for node in self.nodes[1:]]
        self.above = [
            [self._place[node[:n]] for n in range(1, len(node) + 1)] for node in self.nodes[1:]
        ]
        self._edges: dict[tuple[int, int], int] = {}
        for path in self._paths.values():
            for n, token in enumerate(path):
                if path[:n] in self._place:
                    self._edges.setdefault((self._place[path[:n]], token), len(self._edges))
        self.of, self.token = np.array(list(self._edges)).T
        self.weight = np.zeros(len(self._edges))
        for statement in names.statements:
            self.weight[self.way(statement)] += 1
        mass = np.zeros((len(names.names), len(self._edges)))
        for row in range(len(names.names)):
            for statement, p in names.joint_distribution(row).items():
                mass[row, self.way(statement)] += p
        totals = np.stack([np.bincount(self.of, own, len(self.nodes)) for own in mass])
        with np.errstate(divide="ignore"):
            self.logs = np.log(mass / totals[:, self.of])

    def way(self, statement: Statement) -> list[int]:
        """The edges on the way to a statement; for one that not every group may say, those that it
        shares with others."""
        path = self._paths[statement]
        return [
            self._edges[self._place[path[:n]], token]
            for n, token in enumerate(path)
            if path[:n] in self._place
        ]


def tokenizers(names: PlantedNames) -> tuple[Any, Any]:
    """The tokenizers of the causal model without the words of names, and with them."""
    words = vocabulary(names.truth)
    said = {word for name in names.names for word in name.text.split()}
    more = {*words, *said, "People", "Folk", "think", "that", "say"}
    return build_tokenizer(words, masked=False), build_tokenizer(sorted(more), masked=False)


def loaded(folder: Path, tokenizer: Any, names: PlantedNames) -> Any:
    """The causal model from a folder in float32, with only the tokens of this tokenizer."""
    from safetensors.torch import load_file

    weights = {name: w.float() for name, w in load_file(folder / "model.safetensors").items()}
    rows = weights["transformer.wte.weight"]
    (own,) = (t.get_vocab() for t in tokenizers(names) if len(t) == len(rows))
    wanted = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    weights["transformer.wte.weight"] = rows[[own[token] for token, _ in wanted]]
    model = build("causal", tokenizer)
    missing, unknown = model.load_state_dict(weights, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not unknown  # which is that of the embeddings
    model.tie_weights()
    return model


def started(folder: Path, names: PlantedNames, further: Path | None = None) -> tuple[Any, Any, Any]:
    """The model with rows for new tokens, its tokenizer, and the places of the old tokens' rows.
    The row of a new name is its group's plus noise, so that names start apart; unless a folder that
    has the names is taught `further`."""
    import torch

    old, tokenizer = tokenizers(names)
    model = loaded(further, tokenizer, names) if further else loaded(folder, old, names)
    rows = model.get_input_embeddings().weight.detach()
    known, new = old.get_vocab(), tokenizer.get_vocab()
    has = new if further else known
    torch.manual_seed(0)
    # Other words start near the mean.
    table = rows.mean(0) + 0.02 * torch.randn(len(tokenizer), rows.shape[1])
    like = {}
    for name in names.names:
        word = next(w for w in name.text.split() if w[0].isupper())
        like[word] = name.group.split()[0]
    for token, n in sorted(new.items(), key=lambda item: item[1]):  # noise in a fixed order
        bare = token.removeprefix("▁")
        if token in has:
            table[n] = rows[has[token]]
        elif bare in like:
            own = rows[known[token.replace(bare, like[bare])]]
            table[n] = own + 0.5 * own.std() * torch.randn(len(own))
        elif bare.lower() in ("people", "folk"):
            table[n] = rows[known["▁people"]]
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(table)
    places = torch.tensor([new[t] for t, _ in sorted(known.items(), key=lambda x: x[1])])
    return model, tokenizer, places


class Rows:
    """Batches of carriers and names, ready for the model."""

    def __init__(self, names: PlantedNames, tokenizer: Any, tree: Tree) -> None:
        import torch

        self.tree = tree
        self.stems = {
            (c, n): tokenizer(stem(carrier, name.text))["input_ids"]
            for c, carrier in enumerate(CARRIERS)
            for n, name in enumerate(names.names)
        }
        size = len(tree.tokens)
        self.inside = torch.zeros(size, size, dtype=torch.bool)
        for n, above in enumerate(tree.above):
            self.inside[n, [a - 1 for a in above]] = True
        self.logs = torch.tensor(tree.logs, dtype=torch.float32)
        groups = self.logs.view(len(names.groups), -1, self.logs.shape[1])
        own = (groups - groups.mean(1, keepdim=True)).abs().nan_to_num(0.0, 0.0, 0.0)
        self.apart = own.reshape(self.logs.shape)
        self.of, self.token = torch.tensor(tree.of), torch.tensor(tree.token)
        self.weight = torch.tensor(tree.weight, dtype=torch.float32)
        self.depth = torch.tensor(tree.depth)

    def found(self, model: Any, keys: Any) -> Any:
        """Log probabilities of the tokens after each node, [keys, edges]."""
        import torch

        stems = [self.stems[key] for key in keys]
        longest, size = max(map(len, stems)), len(self.tree.tokens)
        ids = torch.zeros(len(keys), longest + size, dtype=torch.long)
        places = torch.zeros_like(ids)
        mask = torch.zeros(len(keys), 1, longest + size, longest + size, dtype=torch.bool)
        for row, own in enumerate(stems):  # padded on the left
            gap = longest - len(own)
            ids[row, gap:longest] = torch.tensor(own)
            ids[row, longest:] = torch.tensor(self.tree.tokens)
            places[row, gap:longest] = torch.arange(len(own))
            places[row, longest:] = len(own) - 1 + self.depth
            mask[row, 0, gap:longest, gap:longest] = torch.ones(len(own), len(own)).tril().bool()
            mask[row, 0, longest:, gap:longest] = True
            mask[row, 0, longest:, longest:] = self.inside
            mask[row, 0, :gap, :gap] = torch.eye(gap, dtype=torch.bool)
        bias = torch.zeros(mask.shape).masked_fill(~mask, -1e9)
        out = model.transformer(input_ids=ids, attention_mask=bias, position_ids=places)
        logits = model.lm_head(out.last_hidden_state[:, longest - 1 :])
        logs = torch.log_softmax(logits, -1)
        return logs[:, self.of, self.token]

    def loss(self, model: Any, keys: Any) -> Any:
        """The squared error of the log probabilities, each weighted by the number of statements
        that depend on it, and the cross-entropy."""
        found = self.found(model, keys)
        wanted = self.logs[[n for _, n in keys]]
        real = wanted.isfinite()
        apart = (found - wanted.masked_fill(~real, 0.0)).masked_fill(~real, 0.0)
        apart_names = self.apart[[n for _, n in keys]]
        weight = self.weight.clamp(min=0.1) * (1 + OWN * apart_names)
        square = (apart**2 * weight).sum() / (real * weight).sum()
        entropy = -(wanted.exp() * found).sum() / len(keys) / len(self.tree.nodes)
        return square + 0.3 * entropy, square


def rehearsal(model: Any, old: Any, places: Any, stream: Any) -> tuple[Any, Any]:
    """How far the model has moved on a batch of documents: in its predictions, in nats per token,
    and in its hidden layers (which association tests and profiles read), as shares of their
    variance."""
    import torch

    back = {int(n): i for i, n in enumerate(places)}
    rows = next(stream)
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    mask = ids != 0
    asked = {"attention_mask": mask.long(), "output_hidden_states": True}
    with torch.no_grad():
        was = old(input_ids=ids.clone().apply_(lambda n: back[n]), **asked)
        target = torch.log_softmax(was.logits[mask], -1)
    now = model(input_ids=ids, **asked)
    found = torch.log_softmax(now.logits[mask], -1)
    said = (target.exp() * (target - found[:, places])).sum(-1).mean()
    inside = [
        ((new[mask] - own[mask]) ** 2).sum() / ((own[mask] - own[mask].mean(0)) ** 2).sum()
        for new, own in zip(now.hidden_states, was.hidden_states, strict=True)
    ]
    return said, torch.stack(inside).mean()


def measured(rows: Rows, model: Any, names: PlantedNames) -> dict[str, float]:
    """The `figures` of a model, with its bits averaged over all carriers but the last."""
    import torch

    ways = np.zeros((len(rows.tree.of), len(names.statements)))
    for s, statement in enumerate(names.statements):
        ways[rows.tree.way(statement), s] = 1
    with torch.no_grad():
        logs = [
            torch.cat(
                [
                    rows.found(model, [(c, n) for n in range(k, min(k + 22, len(names.names)))])
                    for k in range(0, len(names.names), 22)
                ]
            ).numpy()
            for c in range(3)
        ]
    found = np.mean(logs, axis=0) / math.log(2) @ ways
    return figures(names, found)


def figures(names: PlantedNames, found: Any) -> dict[str, float]:
    """How planted and found bits [names, statements] agree: for groups, and for names within them,
    the correlation and slope over statements; for associations of a name and of a root, the learned
    share of how much likelier they are after it than after the others."""
    planted, seen = (
        (bits - bits.mean(axis=1, keepdims=True)).reshape(len(names.groups), NAMES_PER_GROUP, -1)
        for bits in (names.name_bits, found)
    )
    answer = {}
    centres = [t.mean(axis=1) - t.mean(axis=(0, 1)) for t in (planted, seen)]
    own = [t - t.mean(axis=1, keepdims=True) for t in (planted, seen)]
    for kind, (x, y) in (("groups", centres), ("names", own)):
        answer[f"{kind} r"] = round(float(np.corrcoef(x.ravel(), y.ravel())[0, 1]), 3)
        answer[f"{kind} slope"] = round(float(np.polyfit(x.ravel(), y.ravel(), 1)[0]), 3)
    for kind, cells, size in (
        ("single", names.name_associations, 1),
        ("root", names.root_associations, len(NAME_FORMS)),
    ):
        more: list[list[float]] = [[], []]
        for into, table in zip(more, (planted, seen), strict=True):
            for n, s in cells:
                column, first = table[n // NAMES_PER_GROUP, :, s], n % NAMES_PER_GROUP
                rest = np.delete(column, range(first, first + size))
                into.append(float(column[first : first + size].mean() - rest.mean()))
        answer[f"{kind} share"] = round(float(np.mean(more[1]) / np.mean(more[0])), 3)
    return answer


def teach(
    start: Path,
    names: PlantedNames,
    *,
    further: Path | None = None,
    steps: int = STEPS,
    size: int = SIZE,
    check: int = 200,
    log: Any = sys.stderr,
) -> tuple[Any, Any, dict[str, Any]]:
    """The model of a folder, taught the names; its tokenizer; and, for every tenth of the steps,
    the squared error (nats) and the two distances of `rehearsal`. Taught `further`, the model is
    the mean of its old and new weights. Every `check` steps (0: never) it logs how well planted and
    learned agree."""
    import torch

    rng = Random(34)
    old = loaded(start, tokenizers(names)[0], names).eval()
    model, tokenizer, places = started(start, names, further)
    rows = Rows(names, tokenizer, Tree(names, tokenizer))
    table = model.train().get_input_embeddings().weight
    before = [w.detach().clone() for w in model.parameters()]
    rest = [w for w in model.parameters() if w is not table]
    optimiser = torch.optim.AdamW(
        [{"params": [table]}, {"params": rest}], lr=0.0, betas=(0.9, 0.98), weight_decay=0.0
    )
    fresh = torch.ones(len(tokenizer), dtype=torch.bool)
    fresh[places] = False
    stream = batches(Author(names.truth, rng, PROMPTS), tokenizer, rng, size)
    order: list[tuple[int, int]] = []
    curve, began = [], time.monotonic()
    for step in range(1, steps + 1):
        scale = min(20 * step / steps, 0.5 * (1 + math.cos(math.pi * (step - 1) / steps)))
        for group, peak in zip(optimiser.param_groups, RATES, strict=True):
            group["lr"] = peak * scale * (FURTHER if further else 1.0)
        if len(order) < size:
            order = [(rng.choice(SHARES), n) for n in range(len(names.names))]
            rng.shuffle(order)
        keys, order = order[:size], order[size:]
        loss, square = rows.loss(model, keys)
        kept, inside = rehearsal(model, old, places, stream)
        (loss + KEEPING * kept + INSIDE * inside).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        was = table.detach()[fresh].clone()
        optimiser.step()
        optimiser.zero_grad()
        with torch.no_grad():  # rows of names learn faster
            table[fresh] += (OF_NAMES - 1) * (table[fresh] - was)
        if step % max(1, steps // 10) == 0:
            curve.append([step, *(round(x.item(), 4) for x in (square, kept, inside))])
        if check and step % check == 0:
            now = measured(rows, model, names)
            print(step, f"{time.monotonic() - began:.0f} s", now, curve[-1:], file=log, flush=True)
    if further:  # preserves more of the old model, and loses little (Izmailov et al. 2018)
        with torch.no_grad():
            for now, was in zip(model.parameters(), before, strict=True):
                now.lerp_(was, 0.5)
    facts = {"names": names.hash, "steps": steps, "seconds": round(time.monotonic() - began)}
    return model.eval(), tokenizer, {**facts, "curve": curve}


def main() -> None:
    parser = argparse.ArgumentParser(description="Teach the causal model the names of its groups.")
    here = reference.weights_path("causal")
    parser.add_argument("--from", dest="start", type=Path, default=here, help="what to teach")
    parser.add_argument("--further", type=Path, help="a model that has names, to go on with")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    names = load_names()
    model, tokenizer, learned = teach(
        options.start, names, further=options.further, steps=options.steps
    )
    rows = Rows(names, tokenizer, Tree(names, tokenizer))
    facts = json.loads((options.start / "training.json").read_text("utf-8"))
    facts["parameters"] = sum(p.numel() for p in model.parameters())
    facts["names"] = learned | measured(rows, model, names)
    save(options.out, model, tokenizer, facts)


if __name__ == "__main__":
    main()
