"""Load models through transformers: one function, one cache, one-line errors."""

import gc
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from inspect import signature
from typing import Any, Literal, get_args

from kgbias.errors import KgbiasError, MissingExtra, ModelError, UsageError, first_line, no_such
from kgbias.models.base import ModelInfo, Notify
from kgbias.models.identity import sample_state
from kgbias.models.pretrained import pretrained, quiet, untrained
from kgbias.models.spec import Files, resolve, weights

QUANTISED = {"8bit": {"load_in_8bit": True}, "4bit": {"load_in_4bit": True}}


def check_bits(dtype: str, device: str) -> None:
    """Raise UsageError for a device that cannot compute in this many bits, MissingExtra if the
    package for it is not installed."""
    if not device.startswith("cuda"):
        raise UsageError(f"`dtype` {dtype} needs a CUDA GPU, and the device is {device}")
    if not find_spec("bitsandbytes"):
        raise MissingExtra("bitsandbytes", extra="quantised")


def loading(dtype: str, device: str) -> dict[str, Any]:
    """The transformers configuration to load weights in this many bits; computation, and the layers
    that stay as they are, use bfloat16."""
    import torch
    from transformers import BitsAndBytesConfig

    made: Any = BitsAndBytesConfig  # untyped
    config = made(**QUANTISED[dtype], bnb_4bit_compute_dtype=torch.bfloat16)
    return {"quantization_config": config, "device_map": {"": device}, "dtype": torch.bfloat16}


As = Literal["auto", "causal", "masked", "seq2seq", "decoder", "encoder", "classifier"]
"""What to load a model as: with the output layer of a causal or masked language model, of an
encoder-decoder or only its decoder, of a sequence classifier, or as an encoder, without one.
"auto" is what it was trained as."""

DTYPES = ("float32", "bfloat16", "float16", *QUANTISED)
_KEPT = 2  # models kept loaded: a language model for crawl and probe, and an encoder
_CLASSES = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "decoder": "AutoModelForSeq2SeqLM",
    "encoder": "AutoModel",
    "classifier": "AutoModelForSequenceClassification",
}
_CALLED = {
    "causal": "a causal language model",
    "masked": "a masked language model",
    "seq2seq": "an encoder-decoder",
    "decoder": "the decoder of an encoder-decoder",
    "encoder": "an encoder",
    "classifier": "a classifier",
    "": "not a language model that predicts words",
}
_TRAINED = {  # part of an architecture's name -> what its weights were trained as
    "ForSequenceClassification": "classifier",
    "MaskedLM": "masked",
    "ForPreTraining": "masked",
    "CausalLM": "causal",
    "LMHeadModel": "causal",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model on its device, in evaluation mode, with its tokenizer.

    The objects are shared with other users and must not be modified: one that was is not handed
    out again (`state` is how it was loaded). `location` is the folder or hub id that it was loaded
    from, "" for a model that somebody else loaded.
    """

    info: ModelInfo
    tokenizer: Any
    model: Any
    trained_as: str
    location: str
    state: tuple[Any, ...] = ()


_cache: dict[tuple[ModelInfo, str, str, str], Loaded] = {}  # the least recently used first


def load(
    spec: str | Files,
    as_: As = "auto",
    *,
    dtype: str = "float32",
    device: str = "auto",
    revision: str | None = None,
    cached: bool = True,
    notify: Notify | None = None,
) -> Loaded:
    """The model of a spec.

    The two models used last stay in memory: a process that crawls, probes and associates with one
    spec loads it once. `unload` frees them. `cached=False` loads a separate copy, which may be
    modified.

    Args:
        spec: a model spec, or the result of `resolve`.
        as_: what to load it as (`As`).
        dtype: "float32", "bfloat16" or "float16", or "8bit" or "4bit" weights, which need a CUDA
            GPU and the extra `quantised`.
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device.
        revision: see `kgbias.models.spec.resolve`.

    Raises:
        UsageError: an unknown spec, dtype or device, or a model on a server or in vLLM.
        MissingExtra: torch, transformers or, for 8 and 4 bits, bitsandbytes is not installed.
        ModelError: the model cannot be loaded, is not what `as_` says, or lacks weights, which
            transformers would fill with random numbers.
    """
    if dtype not in DTYPES:
        raise UsageError(no_such("dtype", dtype, DTYPES))
    if as_ not in get_args(As):
        raise UsageError(no_such("kind", as_, get_args(As)))
    files = weights(spec, revision) if isinstance(spec, str) else spec
    place = find_device(device)
    if dtype in QUANTISED:
        check_bits(dtype, place)
    tell = notify or (lambda _: None)
    trained = ""
    if as_ == "auto":
        trained = trained_for(files, tell)
        if not trained:
            raise ModelError(f"{files.info.name} is {_CALLED['']}")
    key = (files.info, trained or as_, dtype, place)
    loaded = _cache.pop(key, None) if cached else None
    if loaded is not None and sample_state(loaded.model) != loaded.state:
        loaded = None  # somebody hooked or changed it since
    if loaded is None and cached and as_ == "encoder":
        loaded = _body(files.info, dtype, place)
    if loaded is None:
        loaded = _load(files, key[1], dtype, place, tell)
    if cached:
        _cache[key] = loaded
        while len(_cache) > _KEPT:
            del _cache[next(iter(_cache))]
    return loaded


def _body(info: ModelInfo, dtype: str, device: str) -> Loaded | None:
    """The encoder inside a language model already loaded from the same weights."""
    import transformers

    classes: Any = transformers.MODEL_MAPPING
    for as_ in ("causal", "masked"):
        if whole := _cache.get((info, as_, dtype, device)):
            body = whole.model.base_model
            unchanged = sample_state(whole.model) == whole.state
            if unchanged and type(body) is classes.get(type(body.config), None):
                return replace(whole, model=body, state=sample_state(body))
    return None


_elsewhere: list[Callable[[], None]] = []


def unloaded_by(close: Callable[[], None]) -> None:
    """Have `unload` call this too, to free models held elsewhere."""
    _elsewhere.append(close)


def unload() -> None:
    """Drop the loaded models, and free the memory of those that nobody else holds."""
    for close in _elsewhere:
        close()
    _cache.clear()
    gc.collect()
    torch = sys.modules.get("torch")  # a module never imported holds no memory
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def find_device(device: str = "auto") -> str:
    """The device of that name; "auto" is CUDA if available, else MPS, else the CPU. Raises
    UsageError for a device that this machine lacks."""
    torch = _torch()
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        if torch.device(device).type != "meta":
            torch.empty(1, device=device)
            return device
    except (RuntimeError, AssertionError, NotImplementedError):  # torch without such a backend
        pass
    raise UsageError(f"no device {device!r} on this machine; choose from auto, {_devices()}")


def float64(tensor: Any) -> Any:
    """The tensor in float64: on its device, or on the CPU if the device (MPS) has no float64."""
    return tensor.cpu().double() if tensor.device.type == "mps" else tensor.double()


def cache_name(model: Any) -> str:
    """What a model's parameter for the keys and values that it has read is called: `cache` since
    transformers 5.24, `past_key_values` before, and in the code of many authors still."""
    return "cache" if "cache" in signature(model.forward).parameters else "past_key_values"


def cache_in(output: Any) -> Any:
    """The keys and values that a model has read, from its output."""
    return output.cache if hasattr(output, "cache") else output.past_key_values


def trained_as(config: Any) -> str:
    """What the weights of a configuration were trained as: "causal", "masked", "seq2seq" or
    "classifier"; "" for anything else."""
    architecture = (getattr(config, "architectures", None) or [""])[0] or ""
    if "ForSequenceClassification" in architecture:
        return "classifier"
    if getattr(config, "is_encoder_decoder", False):
        return "seq2seq"
    if "ForConditionalGeneration" in architecture and _writes_text(config):
        return "causal"  # one that also sees or hears, of which only text is asked
    return next((kind for part, kind in _TRAINED.items() if part in architecture), "")


def _writes_text(config: Any) -> bool:
    """Whether transformers loads a model of this configuration as one that continues text."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    return type(config) in MODEL_FOR_CAUSAL_LM_MAPPING


def trained_for(spec: str | Files, notify: Notify | None = None) -> str:
    """`trained_as` of a spec's model; reads only its configuration."""
    _torch()
    files = resolve(spec) if isinstance(spec, str) else spec
    location = files.location(notify or (lambda _: None))
    with one_line(files.info, "a model of transformers"):
        return trained_as(pretrained("AutoConfig", location, revision=files.commit))


def decodes_alone(files: Files, notify: Notify | None = None) -> bool:
    """Whether the decoder of an encoder-decoder can be read as a causal model (BART's can, T5's
    cannot); reads its configuration alone."""
    _torch()
    location = files.location(notify or (lambda _: None))
    with one_line(files.info, "an encoder-decoder"):
        return _writes_text(pretrained("AutoConfig", location, revision=files.commit))


def called(trained: str) -> str:
    """What `trained_as` gives, in words: "a masked language model"."""
    return _CALLED[trained]


def _load(files: Files, as_: str, dtype: str, device: str, notify: Notify) -> Loaded:
    torch = _torch()
    info, location = files.info, files.location(notify)
    with one_line(info, _CALLED[as_]), quiet():
        config = pretrained("AutoConfig", location, revision=files.commit)
        _check_size(info, config)
        trained = trained_as(config)
        if as_ in ("causal", "masked") and trained not in ("", as_):
            raise ModelError(f"{info.name} is {_CALLED[trained]}, not {_CALLED[as_]}")
        tokenizer = pretrained("AutoTokenizer", location, revision=files.commit)
        bits = dtype in QUANTISED
        kept = loading(dtype, device) if bits else {"dtype": getattr(torch, dtype)}
        model, found = pretrained(
            _CLASSES[as_], location, revision=files.commit, output_loading_info=True,
            ignore_mismatched_sizes=True, **kept,
        )  # fmt: skip
        if other := sorted(key for key, *_ in found["mismatched_keys"]):
            raise ModelError(
                f"{info.name} is no model: by its config.json, {other[0]} has another size than in "
                "the file of its weights"
            )
        # What a checkpoint lacks, transformers fills with random numbers and goes on; no figure of
        # such a model would mean anything. (The pooler of an encoder is never read.)
        lost = {key for key in found["missing_keys"] if as_ != "encoder" or "pooler" not in key}
        if lost:
            what = _CALLED["seq2seq" if as_ == "decoder" else as_]
            raise ModelError(f"{info.name} lacks weights of {what}: {min(lost)}")
        if unused := _unused_layers(model, found["unexpected_keys"]):
            notify(
                f"{info.name} has weights of layers that its config.json does not count, which are "
                f"not used: {', '.join(unused)}"
            )
        if as_ == "decoder":
            model = _decoder_of(model)
        if as_ == "causal" and not model.can_generate():
            raise ModelError(f"{info.name} is not {_CALLED[as_]}")
        if not bits:  # which are where they belong
            try:
                model = model.to(device)
            except torch.OutOfMemoryError:
                unload()
                model = model.to(device)
        state = sample_state(model)
        if not any(total for *_, total in state[1]):  # as a file is that a crash cut off
            raise ModelError(f"{info.name} is no model: all its weights are zero")
    return Loaded(info, tokenizer, model.eval(), trained, location, state)


_MAX_LAYERS, _MAX_WIDTH, _MAX_VOCABULARY = 1_000, 200_000, 10_000_000


_LAYER = re.compile(r"(.*?\.)(\d+)\.")


def _unused_layers(model: Any, unexpected: Iterable[str]) -> list[str]:
    """The layers, by name, that a checkpoint has beyond those of the model."""
    there = {found[1] for key in model.state_dict() if (found := _LAYER.match(key))}
    beyond = {found[0] for key in unexpected if (found := _LAYER.match(key)) and found[1] in there}
    return sorted(layer.rstrip(".") for layer in beyond)[:3]


def _check_size(info: ModelInfo, config: Any) -> None:
    """Raise ModelError for a configuration of a size that no model has: transformers would allocate
    it before it reads the weights, or make a model without layers of it."""
    of_text = config.get_text_config()
    for name, most in (
        ("num_hidden_layers", _MAX_LAYERS),
        ("hidden_size", _MAX_WIDTH),
        ("vocab_size", _MAX_VOCABULARY),
    ):
        size = getattr(of_text, name, None)
        if isinstance(size, int) and not 1 <= size <= most:
            raise ModelError(f"{info.name} is no model: its config.json says {name} {size:,}")


def _decoder_of(model: Any) -> Any:
    """The decoder of an encoder-decoder as a causal model, with the weights that it has there.

    Loading the checkpoint as a causal model would leave out the embeddings that both halves share.
    """
    alone = untrained("AutoModelForCausalLM", model.config, dtype=model.dtype)
    alone.set_decoder(model.get_decoder())
    alone.set_output_embeddings(model.get_output_embeddings())
    return alone


def _torch() -> Any:
    try:
        import torch
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "torch", extra="local") from error
    return torch


def _devices() -> str:
    """The devices of this machine."""
    torch = _torch()
    cuda = [f"cuda:{n}" for n in range(torch.cuda.device_count())]
    return ", ".join(["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])])


@contextmanager
def one_line(info: ModelInfo, what: str) -> Iterator[None]:
    """Turn whatever transformers raises over a broken file into one line."""
    try:
        yield
    except KgbiasError:
        raise
    except Exception as error:
        raise ModelError(f"{info.name} cannot be loaded as {what}: {first_line(error)}") from error
