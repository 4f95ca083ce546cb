"""The genuine all-MiniLM-L6-v2, found on this machine, checked, and loaded without network."""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, MissingExtra
from kgbias.models.load import LoadedModel, find_device, load
from kgbias.models.pretrained import load_pretrained
from kgbias.models.spec import ModelFiles, resolve

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 128


@cache
def find_weights() -> ModelFiles:
    """Find the packaged model; its weights are checked once in a process.

    Raises:
        MissingExtra: the package that carries the weights is not installed.
        DataError: the weights are not the genuine ones.
    """
    files = resolve("minilm")
    check_sha256(Path(files.name) / "model.safetensors", WEIGHTS_SHA256)
    return files


def check_available(device: str) -> None:
    """Raise unless the packages, the weights and the device are available. For "auto" and "cpu",
    nothing heavy is imported.

    Raises:
        MissingExtra: a package of the extra `scorers` is not installed.
        DataError: the weights are not the genuine ones.
        UsageError: this machine has no such device.
    """
    for package in ("torch", "transformers", "safetensors"):
        if find_spec(package) is None:
            raise MissingExtra(package, extra="scorers")
    find_weights()
    if device not in ("auto", "cpu"):
        find_device(device)


def check_sha256(path: Path, expected_digest: str) -> None:
    """Raise DataError unless the file's SHA-256 is `expected_digest`."""
    try:
        with path.open("rb") as file:
            file_digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if file_digest != expected_digest:
        raise DataError(
            f"{path} has SHA-256 {file_digest[:12]}..., expected {expected_digest[:12]}..."
        )


def load_minilm(device: str = "auto") -> LoadedModel:
    """The model and its tokenizer, float32, shared with other users."""
    return load(find_weights(), "encoder", device=device)


def load_encoder() -> Any:
    """A separate BertModel in evaluation mode, float32, on the CPU, without a pooling layer."""
    encoder = load(find_weights(), "encoder", device="cpu", use_cache=False).model
    encoder.pooler = None
    return encoder


def load_tokenizer() -> Any:
    """The model's fast tokenizer."""
    return load_pretrained("AutoTokenizer", find_weights().name, local_files_only=True)
