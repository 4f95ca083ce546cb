"""Weights of 8 and 4 bits: bitsandbytes on a CUDA GPU."""

from importlib.util import find_spec
from typing import Any

from kgbias.errors import MissingExtra, UsageError

QUANTISED = {"8bit": {"load_in_8bit": True}, "4bit": {"load_in_4bit": True}}


def check_bits(dtype: str, device: str) -> None:
    """Raise UsageError for a device that cannot compute in these bits, MissingExtra where what
    does it is not installed."""
    if not device.startswith("cuda"):
        raise UsageError(f"`dtype` {dtype} needs a CUDA GPU, and the device is {device}")
    if not find_spec("bitsandbytes"):
        raise MissingExtra("bitsandbytes", extra="quantised")


def loading(dtype: str, device: str) -> dict[str, Any]:
    """What transformers is told to load weights in so many bits; what is computed with them, and
    the layers that stay as they are, is bfloat16."""
    import torch
    from transformers import BitsAndBytesConfig

    made: Any = BitsAndBytesConfig  # untyped
    config = made(**QUANTISED[dtype], bnb_4bit_compute_dtype=torch.bfloat16)
    return {"quantization_config": config, "device_map": {"": device}, "dtype": torch.bfloat16}
