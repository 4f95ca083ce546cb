"""Rebuild the reference models: `python -m training.reference.train`.

Both learn the same world, from documents drawn afresh (`training.reference.text`). Seeded: the same
seed, thread count and library versions give the same weights. A run's cost and results are written
to training.json beside the weights.
"""

import argparse
import json
import math
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch

from kgbias import reference
from kgbias.reference.world import Truth, load_truth
from training.reference.text import (
    PROMPTS,
    SENTENCES,
    Author,
    build_tokenizer,
    truth_text,
    vocabulary,
)

_QUINTIC = (3.4445, -4.775, 2.0315)
_ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Steps along the orthogonalised momentum of matrices (Jordan et al. 2024), scaled to the root
    mean square of an AdamW step (Liu et al. 2025), so that learning rates of AdamW's size work.

    torch.optim.Muon is the same but iterates in bfloat16, which is twenty times slower than float32
    on a processor without bfloat16 matrix units."""

    def __init__(
        self,
        matrices: Iterable[torch.Tensor],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(matrices, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                average = state.setdefault("momentum", torch.zeros_like(weight))
                average.lerp_(weight.grad, 1 - group["momentum"])
                ahead = weight.grad.lerp(average, group["momentum"])
                scale = 0.2 * max(weight.shape) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(orthogonalised(ahead), alpha=-group["lr"] * scale)


def orthogonalised(matrix: torch.Tensor) -> torch.Tensor:
    """A matrix with the singular vectors of `matrix` and singular values near 1 (between about 0.7
    and 1.2): Newton-Schulz iterations with the quintic of Jordan et al. (2024)."""
    a, b, c = _QUINTIC
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    found: torch.Tensor = x.T if tall else x
    return found


STEPS = {"causal": 5000, "masked": 3000}
MIX = {"causal": PROMPTS, "masked": SENTENCES}
BATCH = {"causal": 64, "masked": 256}  # documents; sentences are short
WIDTH, LAYERS, HEADS, CONTEXT = 192, 3, 6, 256
# For the matrices between the layers, and for everything else. Layers normalised after the sum
# (BERT) tolerate less.
PEAK_RATE = {"causal": (1e-2, 3e-3), "masked": (3e-3, 1e-3)}
MASK_SHARE = 0.25
_POOL = 64  # batches drawn at once and sorted by length, to keep padding low


def batches(author: Author, tokenizer: Any, rng: Random, size: int) -> Iterator[list[list[int]]]:
    """Endless batches of `size` tokenised documents of similar lengths."""
    while True:
        texts = [author.document() for _ in range(size * _POOL)]
        tokenised = sorted(tokenizer(texts)["input_ids"], key=len)
        order = list(range(_POOL))
        rng.shuffle(order)
        for place in order:
            yield tokenised[place * size : (place + 1) * size]


def build(kind: str, tokenizer: Any) -> Any:
    """An untrained model of about 1.5 million parameters."""
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        GPT2Config,
        GPT2LMHeadModel,
    )

    ids = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if kind == "causal":
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=len(tokenizer),
                n_positions=CONTEXT,
                n_embd=WIDTH,
                n_layer=LAYERS,
                n_head=HEADS,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                **ids,
            )
        )
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=4 * WIDTH,
            max_position_embeddings=CONTEXT,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            **ids,
        )
    )


@cache
def name_tokens(tokenizer: Any) -> list[int]:
    """The tokens of the groups' names."""
    names = [name.split()[0] for name in load_truth().groups]
    return [int(n) for n in tokenizer.convert_tokens_to_ids([f"▁{name}" for name in names])]


def loss_of(kind: str, model: Any, rows: list[list[int]], tokenizer: Any, generator: Any) -> Any:
    """Mean cross-entropy in nats per predicted token of one batch."""
    import torch

    length = max(map(len, rows))
    pad = tokenizer.pad_token_id
    if kind == "causal":
        rows = [[*row, tokenizer.eos_token_id] for row in rows]
        length += 1
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    mask = (ids != pad).long()
    labels = ids.masked_fill(ids == pad, -100)
    if kind == "masked":
        special = (ids == pad) | (ids == tokenizer.bos_token_id) | (ids == tokenizer.eos_token_id)
        hidden = (torch.rand(ids.shape, generator=generator) < MASK_SHARE) & ~special
        # At least one token of each document.
        first = torch.rand(ids.shape, generator=generator).masked_fill(special, -1.0).argmax(1)
        hidden[torch.arange(len(rows)), first] = True
        labels = labels.masked_fill(~hidden, -100)
        ids = ids.masked_fill(hidden, tokenizer.mask_token_id)
    else:
        # The next group in a list is random: learning it would drown out what should be learned.
        names = torch.isin(ids, torch.tensor(name_tokens(tokenizer)))
        chance = names & ~(ids == tokenizer.convert_tokens_to_ids("1")).any(1, keepdim=True)
        chance[:, :2] = False  # that a text may begin with any group is worth learning
        labels = labels.masked_fill(chance, -100)
    device = model.device
    out = model(input_ids=ids.to(device), attention_mask=mask.to(device), labels=labels.to(device))
    return out.loss


def train(
    kind: str,
    truth: Truth,
    *,
    steps: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    log: Any = sys.stderr,
    held_out: int = 64,
) -> tuple[Any, Any, dict[str, Any]]:
    """The trained model, its tokenizer, and the training's cost and results. The loss on fresh text
    is the mean over `held_out` batches that the model has not seen."""
    import torch

    steps = steps or STEPS[kind]
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    rng = Random(f"{kind}/{seed}")
    tokenizer = build_tokenizer(vocabulary(truth), masked=kind == "masked")
    model = build(kind, tokenizer).to(device).train()
    optimisers = _optimisers(kind, model)
    warmup = max(1, steps // 25)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(
            optimiser,
            lambda step: min(
                (step + 1) / warmup, 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))
            ),
        )
        for optimiser in optimisers
    ]
    stream = batches(Author(truth, rng, MIX[kind]), tokenizer, rng, BATCH[kind])
    began = time.monotonic()
    average, curve = None, []
    for step in range(1, steps + 1):
        loss = loss_of(kind, model, next(stream), tokenizer, generator)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser, schedule in zip(optimisers, schedules, strict=True):
            optimiser.step()
            schedule.step()
        value = float(loss.detach())
        average = value if average is None else 0.98 * average + 0.02 * value
        if step % max(1, steps // 20) == 0:
            curve.append([step, round(average, 4)])
            print(
                f"{kind} {step}/{steps} loss {average:.4f} ({time.monotonic() - began:.0f} s)",
                file=log,
                flush=True,
            )
    model.eval()
    with torch.no_grad():
        fresh = [
            float(loss_of(kind, model, next(stream), tokenizer, generator)) for _ in range(held_out)
        ]
    facts = {
        "kind": kind,
        "steps": steps,
        "seed": seed,
        "world": truth.hash,
        "seconds": round(time.monotonic() - began),
        "threads": torch.get_num_threads(),
        "device": device,
        "machine": platform.machine(),
        "torch": torch.__version__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss_curve": curve,
        "fresh_text_loss": round(sum(fresh) / len(fresh), 4),
    }
    return model, tokenizer, facts


def _optimisers(kind: str, model: Any) -> tuple[Any, Any]:
    """Muon for the matrices between the layers, which then learn in a third of the steps; AdamW for
    embeddings and vectors, as usual."""
    import torch

    tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    inner = [w.ndim == 2 and id(w) not in tables for w in model.parameters()]
    matrices = [w for w, is_inner in zip(model.parameters(), inner, strict=True) if is_inner]
    others = [w for w, is_inner in zip(model.parameters(), inner, strict=True) if not is_inner]
    rate, rate_others = PEAK_RATE[kind]
    return Muon(matrices, lr=rate), torch.optim.AdamW(
        others, lr=rate_others, betas=(0.9, 0.98), weight_decay=0.01
    )


def save(folder: Path, model: Any, tokenizer: Any, facts: dict[str, Any]) -> None:
    """Write the folder in the usual format, with weights as float16, which halves their size."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    model.to(torch.float16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "training.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Rebuild the reference models.")
    parser.add_argument("--out", type=Path, default=reference.weights_path("causal").parent)
    parser.add_argument("--only", choices=("causal", "masked"))
    parser.add_argument("--steps", type=int, help="default: 5000 and 3000")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    truth = load_truth()
    for kind in (options.only,) if options.only else ("causal", "masked"):
        model, tokenizer, facts = train(
            kind, truth, steps=options.steps, seed=options.seed, device=options.device
        )
        save(options.out / kind, model, tokenizer, facts)
    (options.out / "truth.json").write_text(truth_text(truth), "utf-8")


if __name__ == "__main__":
    main()
