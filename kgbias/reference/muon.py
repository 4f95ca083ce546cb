"""The Muon optimiser in the precision of its weights.

torch.optim.Muon is the same but iterates in bfloat16, which a processor without bfloat16 matrix
units does twenty times slower than float32.
"""

from collections.abc import Iterable
from typing import Any

import torch

_QUINTIC = (3.4445, -4.775, 2.0315)
_ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Steps along the orthogonalised momentum of matrices (Jordan et al. 2024), scaled to the root
    mean square of an AdamW step (Liu et al. 2025), so that a rate of AdamW's order fits."""

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
