"""Products of a model's states with its weights, by the faster of the two libraries that torch has.

In float32 torch takes MKL. On AMD's processors with AVX-512 oneDNN takes less time
(`benchmarks/products.py`). It adds in another order, so that the last bits differ, as they do
between processors.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@cache
def prefers_onednn() -> bool:
    """Whether oneDNN is the faster one on this processor."""
    import torch

    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    try:
        return b"AuthenticAMD" in Path("/proc/cpuinfo").read_bytes()
    except OSError:
        return False


def gains(weights: "torch.Tensor") -> bool:
    """Whether products with these weights are to be made by `multiply`."""
    import torch

    return prefers_onednn() and weights.dtype == torch.float32 and weights.device.type == "cpu"


def multiply(
    states: "torch.Tensor", weights: "torch.Tensor", bias: "torch.Tensor | None" = None
) -> "torch.Tensor":
    """States [..., width] times weights [outputs, width], in float32 on the CPU, by oneDNN. It has
    no gradient."""
    import torch

    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
        states, weights, bias, "none", [], ""
    )
    return product


def _find_linear_layers(model: Any) -> list[Any]:
    """The layers that `fast_products` takes over. Not one of another class, or whose method
    somebody replaced: it may compute something else."""
    if not prefers_onednn():
        return []
    from torch.nn import Linear

    return [
        layer
        for layer in model.modules()
        if type(layer) is Linear and "forward" not in vars(layer) and gains(layer.weight)
    ]


@contextmanager
def fast_products(model: Any) -> Iterator[None]:
    """Inside this context, which is to be one without gradients, a model's layers multiply by
    oneDNN where that gains. Their hooks are called as ever. The layers are looked up each time,
    since whose model it is may have changed them."""
    layers = _find_linear_layers(model)
    for layer in layers:
        layer.__dict__["forward"] = _Multiplier(layer)
    try:
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


class _Multiplier:
    """What a layer does with the states that it is called with. No function: a model with a
    replaced function counts as changed (`kgbias.models.identity.sample_state`)."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def __call__(self, states: "torch.Tensor") -> "torch.Tensor":
        return multiply(states, self._layer.weight, self._layer.bias)
