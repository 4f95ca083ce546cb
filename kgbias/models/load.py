"""Load models through transformers: one function, one cache, one-line errors.

Completers (`local`), vectors (`embed`), predictions (`predict`) and scores of texts (`score`) are
built on `load`. Loaded models are shared, and must not be modified.

Weights that are missing, that are no numbers, or whose size no model has, are refused
(tests/integration/test_generate.py).
"""

import gc
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, Literal, get_args

from kgbias.errors import KgbiasError, MissingExtra, ModelError, UsageError, first_line, no_such
from kgbias.models.base import ModelInfo, Notify
from kgbias.models.identity import sample_state
from kgbias.models.pretrained import create_untrained, load_pretrained, quiet_transformers
from kgbias.models.spec import ModelFiles, describe_refusal, resolve, resolve_weights

QUANTISATION_OPTIONS = {"8bit": {"load_in_8bit": True}, "4bit": {"load_in_4bit": True}}


def check_bits(dtype: str, device: str) -> None:
    """Raise UsageError for a device that cannot compute in this many bits, MissingExtra if the
    package for it is not installed."""
    if not device.startswith("cuda"):
        raise UsageError(f"`dtype` {dtype} needs a CUDA GPU, and the device is {device}")
    if not find_spec("bitsandbytes"):
        raise MissingExtra("bitsandbytes", extra="quantised")


def quantisation_config(dtype: str, device: str) -> dict[str, Any]:
    """The transformers configuration to load weights in this many bits; computation, and the layers
    that stay as they are, use bfloat16."""
    import torch
    from transformers import BitsAndBytesConfig

    config_class: Any = BitsAndBytesConfig  # untyped
    config = config_class(**QUANTISATION_OPTIONS[dtype], bnb_4bit_compute_dtype=torch.bfloat16)
    return {"quantization_config": config, "device_map": {"": device}, "dtype": torch.bfloat16}


ModelRole = Literal["auto", "causal", "masked", "seq2seq", "decoder", "encoder", "classifier"]
"""What to load a model as: with the output layer of a causal or masked language model, of an
encoder-decoder or only its decoder, of a sequence classifier, or as an encoder, without one.
"auto" is what it was trained as."""

DTYPES = ("float32", "bfloat16", "float16", *QUANTISATION_OPTIONS)
_MAX_LOADED = 2  # models kept loaded: a language model for crawl and probe, and an encoder
_CLASSES = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "decoder": "AutoModelForSeq2SeqLM",
    "encoder": "AutoModel",
    "classifier": "AutoModelForSequenceClassification",
}
_KIND_NAMES = {
    "causal": "a causal language model",
    "masked": "a masked language model",
    "seq2seq": "an encoder-decoder",
    "decoder": "the decoder of an encoder-decoder",
    "encoder": "an encoder",
    "classifier": "a classifier",
    "": "not a language model that predicts words",
}
_TRAINED_KINDS = {  # part of an architecture's name -> what its weights were trained as
    "ForSequenceClassification": "classifier",
    "MaskedLM": "masked",
    "ForPreTraining": "masked",
    "CausalLM": "causal",
    "LMHeadModel": "causal",
}


@dataclass(frozen=True, slots=True)
class LoadedModel:
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


_loaded_models: dict[
    tuple[ModelInfo, str, str, str], LoadedModel
] = {}  # the least recently used first


def load(
    spec: str | ModelFiles,
    role: ModelRole = "auto",
    *,
    dtype: str = "float32",
    device: str = "auto",
    revision: str | None = None,
    use_cache: bool = True,
    notify: Notify | None = None,
) -> LoadedModel:
    """The model of a spec.

    The two models used last stay in memory: a process that crawls, probes and associates with one
    spec loads it once. `unload` frees them. `cached=False` loads a separate copy, which may be
    modified.

    Args:
        spec: a model spec, or the result of `resolve`.
        role: what to load it as (`ModelRole`).
        dtype: "float32", "bfloat16" or "float16", or "8bit" or "4bit" weights, which need a CUDA
            GPU and the extra `quantise`.
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device.
        revision: see `kgbias.models.spec.resolve`.

    Raises:
        UsageError: an unknown spec, dtype or device, or a model on a server or in vLLM.
        MissingExtra: torch, transformers or, for 8 and 4 bits, bitsandbytes is not installed.
        ModelError: the model cannot be loaded, is not what `role` says, or lacks weights, which
            transformers would fill with random numbers.
    """
    if dtype not in DTYPES:
        raise UsageError(no_such("dtype", dtype, DTYPES))
    if role not in get_args(ModelRole):
        raise UsageError(no_such("kind", role, get_args(ModelRole)))
    files = resolve_weights(spec, revision) if isinstance(spec, str) else spec
    device_name = find_device(device)
    if dtype in QUANTISATION_OPTIONS:
        check_bits(dtype, device_name)
    notify_always = notify or (lambda _: None)
    trained_role = ""
    if role == "auto":
        trained_role = read_trained_kind(files, notify_always)
        if not trained_role:
            raise ModelError(f"{files.info.name} is {_KIND_NAMES['']}")
    key = (files.info, trained_role or role, dtype, device_name)
    loaded_model = _loaded_models.pop(key, None) if use_cache else None
    if loaded_model is not None and sample_state(loaded_model.model) != loaded_model.state:
        loaded_model = None  # somebody hooked or changed it since
    if loaded_model is None and use_cache and role == "encoder":
        loaded_model = _find_loaded_body(files.info, dtype, device_name)
    if loaded_model is None:
        loaded_model = _load(files, key[1], dtype, device_name, notify_always)
    if use_cache:
        _loaded_models[key] = loaded_model
        while len(_loaded_models) > _MAX_LOADED:
            # One that is used is put at the end again, so the first is the one unused for longest.
            del _loaded_models[next(iter(_loaded_models))]
    return loaded_model


def _find_loaded_body(info: ModelInfo, dtype: str, device: str) -> LoadedModel | None:
    """The encoder inside a language model already loaded from the same weights."""
    import transformers

    classes: Any = transformers.MODEL_MAPPING
    for role in ("causal", "masked"):
        if loaded_model := _loaded_models.get((info, role, dtype, device)):
            body = loaded_model.model.base_model
            unchanged = sample_state(loaded_model.model) == loaded_model.state
            if unchanged and type(body) is classes.get(type(body.config), None):
                return replace(loaded_model, model=body, state=sample_state(body))
    return None


_unload_hooks: list[Callable[[], None]] = []


def add_unload_hook(close: Callable[[], None]) -> None:
    """Have `unload` call this too, to free models held elsewhere."""
    _unload_hooks.append(close)


def unload() -> None:
    """Drop the loaded models, and free the memory of those that nobody else holds."""
    for close in _unload_hooks:
        close()
    _loaded_models.clear()
    # Modules refer to one another in circles, which only this frees.
    gc.collect()
    torch = sys.modules.get("torch")  # a module never imported holds no memory
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def find_device(device: str = "auto") -> str:
    """The device of that name; "auto" is CUDA if available, else MPS, else the CPU. Raises
    UsageError for a device that this machine lacks."""
    torch = _import_torch()
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        # Which holds the shapes of tensors, and no numbers.
        if torch.device(device).type != "meta":
            torch.empty(1, device=device)
            return device
    except (RuntimeError, AssertionError, NotImplementedError):  # torch without such a backend
        pass
    raise UsageError(f"no device {device!r} on this machine; choose from auto, {_list_devices()}")


def to_float64(tensor: Any) -> Any:
    """The tensor in float64: on its device, or on the CPU if the device (MPS) has no float64."""
    return tensor.cpu().double() if tensor.device.type == "mps" else tensor.double()


def cache_parameter(model: Any) -> str:
    """What a model's parameter for the keys and values that it has read is called: `cache` since
    transformers 5.24, `past_key_values` before, and in the code of many authors still."""
    return "cache" if "cache" in signature(model.forward).parameters else "past_key_values"


def read_cache(output: Any) -> Any:
    """The keys and values that a model has read, from its output."""
    return output.cache if hasattr(output, "cache") else output.past_key_values


def trained_kind(config: Any) -> str:
    """What the weights of a configuration were trained as: "causal", "masked", "seq2seq" or
    "classifier"; "" for anything else."""
    # Which may be missing, null, or an empty list.
    architecture = (getattr(config, "architectures", None) or [""])[0] or ""
    if "ForSequenceClassification" in architecture:
        return "classifier"
    if getattr(config, "is_encoder_decoder", False):
        return "seq2seq"
    if "ForConditionalGeneration" in architecture and _writes_text(config):
        return "causal"  # one that also sees or hears, of which only text is asked
    return next((kind for part, kind in _TRAINED_KINDS.items() if part in architecture), "")


def _writes_text(config: Any) -> bool:
    """Whether transformers loads a model of this configuration as one that continues text."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    return type(config) in MODEL_FOR_CAUSAL_LM_MAPPING


def read_trained_kind(spec: str | ModelFiles, notify: Notify | None = None) -> str:
    """`trained_kind` of a spec's model; reads only its configuration."""
    _import_torch()
    files = resolve(spec) if isinstance(spec, str) else spec
    location = files.location(notify or (lambda _: None))
    with one_line_errors(files.info, "a model of transformers"):
        return trained_kind(load_pretrained("AutoConfig", location, revision=files.commit))


def has_causal_decoder(files: ModelFiles, notify: Notify | None = None) -> bool:
    """Whether the decoder of an encoder-decoder can be read as a causal model (BART's can, T5's
    cannot); reads its configuration alone."""
    _import_torch()
    location = files.location(notify or (lambda _: None))
    with one_line_errors(files.info, "an encoder-decoder"):
        return _writes_text(load_pretrained("AutoConfig", location, revision=files.commit))


def describe_trained_kind(trained: str) -> str:
    """What `trained_kind` gives, in words: "a masked language model"."""
    return _KIND_NAMES[trained]


def _load(files: ModelFiles, role: str, dtype: str, device: str, notify: Notify) -> LoadedModel:
    torch = _import_torch()
    info, location = files.info, files.location(notify)
    with one_line_errors(info, _KIND_NAMES[role]), quiet_transformers():
        config = load_pretrained("AutoConfig", location, revision=files.commit)
        _check_size(info, config, Path(location))
        trained_role = trained_kind(config)
        if role in ("causal", "masked") and trained_role not in ("", role):
            raise ModelError(f"{info.name} is {_KIND_NAMES[trained_role]}, not {_KIND_NAMES[role]}")
        tokenizer = load_pretrained("AutoTokenizer", location, revision=files.commit)
        # Without its files, transformers makes one without a vocabulary.
        if not tokenizer(_A_TEXT)["input_ids"]:
            raise ModelError(
                f"{info.name} has no tokenizer: its files lack tokenizer.json or others"
            )
        is_quantised = dtype in QUANTISATION_OPTIONS
        load_options = (
            quantisation_config(dtype, device) if is_quantised else {"dtype": getattr(torch, dtype)}
        )
        model, loading_info = load_pretrained(
            _CLASSES[role],
            location,
            revision=files.commit,
            output_loading_info=True,
            # It then says what does not fit, in place of an error of many lines.
            ignore_mismatched_sizes=True,
            **load_options,
        )
        if other := sorted(key for key, *_ in loading_info["mismatched_keys"]):
            raise ModelError(
                f"{info.name} is no model: by its config.json, {other[0]} has another size than in "
                "the file of its weights"
            )
        # What a checkpoint lacks, transformers fills with random numbers and goes on; no figure of
        # such a model would mean anything. (The pooler of an encoder is never read.)
        missing_weights = {
            key for key in loading_info["missing_keys"] if role != "encoder" or "pooler" not in key
        }
        if missing_weights:
            kind_name = _KIND_NAMES["seq2seq" if role == "decoder" else role]
            raise ModelError(f"{info.name} lacks weights of {kind_name}: {min(missing_weights)}")
        if unused := _unused_layers(model, loading_info["unexpected_keys"]):
            notify(
                f"{info.name} has weights of layers that its config.json does not count, which are "
                f"not used: {', '.join(unused)}"
            )
        if role == "decoder":
            model = _extract_decoder(model)
        if role == "causal" and not model.can_generate():
            raise ModelError(f"{info.name} is not {_KIND_NAMES[role]}")
        if not is_quantised:  # which are where they belong
            try:
                model = model.to(device)
            except torch.OutOfMemoryError:  # the models kept loaded may be what fills it
                unload()
                model = model.to(device)
        state = sample_state(model)
        if not any(total for *_, total in state[1]):  # as a file is that a crash cut off
            raise ModelError(f"{info.name} is no model: all its weights are zero")
        _check_computes(info, model.eval(), tokenizer, role, dtype)
    return LoadedModel(info, tokenizer, model.eval(), trained_role, location, state)


def _check_computes(info: ModelInfo, model: Any, tokenizer: Any, role: str, dtype: str) -> None:
    """Raise ModelError for a model that gives anything but numbers for a text; whatever
    transformers raises over one that cannot read it."""
    import torch

    ids = tokenizer(_A_TEXT, return_tensors="pt")["input_ids"].to(model.device)
    if role == "encoder" and model.config.is_encoder_decoder:
        model = model.get_encoder()
    inputs = {"decoder_input_ids": ids} if role == "seq2seq" else {}
    with torch.inference_mode():
        output = model(input_ids=ids, attention_mask=torch.ones_like(ids), **inputs)
    values = output.last_hidden_state if role == "encoder" else output.logits
    # The largest are numbers even where a vocabulary's unused places are minus infinity.
    if not bool(torch.isfinite(values.amax(dim=-1)).all()):
        raise ModelError(
            f"{info.name} is no model: what it computes is no number: its weights are damaged, or "
            f"overflow in {dtype} (try dtype float32)"
        )


_MAX_LAYERS, _MAX_WIDTH, _MAX_VOCABULARY = 1_000, 200_000, 10_000_000
_MATRIX_SIZES = (
    "vocab_size",
    "intermediate_size",
    "n_inner",
    "ffn_dim",
    "head_dim",
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
)
_A_TEXT = "They are kind."


_LAYER = re.compile(r"(.*?\.)(\d+)\.")


def _unused_layers(model: Any, unexpected: Iterable[str]) -> list[str]:
    """The layers, by name, that a checkpoint has beyond those of the model."""
    stacks = {match[1] for match in map(_LAYER.match, model.state_dict()) if match}
    matches = [match for match in map(_LAYER.match, unexpected) if match]
    # A layer of a stack that the model has; what else is too much are other parts, such as heads.
    layers = {match[0].rstrip(".") for match in matches if match[1] in stacks}
    return sorted(layers)[:3]


def _check_size(info: ModelInfo, config: Any, folder: Path) -> None:
    """Raise ModelError for a configuration of a size that no model has, or the weights in this
    folder do not: transformers would allocate it before it reads them, or make a model without
    layers of it."""
    text_config = config.get_text_config()
    for name, max_size in (
        ("num_hidden_layers", _MAX_LAYERS),
        ("hidden_size", _MAX_WIDTH),
        ("vocab_size", _MAX_VOCABULARY),
    ):
        size = getattr(text_config, name, None)
        if isinstance(size, int) and not 1 <= size <= max_size:
            raise ModelError(f"{info.name} is no model: its config.json says {name} {size:,}")
    bytes_there = sum(
        file.stat().st_size
        for file in folder.glob("*")  # none of a model of the hub, whose files are not yet here
        if file.suffix in (".safetensors", ".bin")
    )
    width = getattr(text_config, "hidden_size", None) or 1
    for name in _MATRIX_SIZES if bytes_there else ():
        size = getattr(text_config, name, None)
        # A matrix of the model's width for each; a weight takes two bits at the least.
        if isinstance(size, int) and size * width > 4 * bytes_there:
            raise ModelError(
                f"{info.name} is no model: its config.json says {name} {size:,}, more than the "
                "files of its weights can hold"
            )


def _extract_decoder(model: Any) -> Any:
    """The decoder of an encoder-decoder as a causal model, with the weights that it has there.

    Loading the checkpoint as a causal model would leave out the embeddings that both halves share.
    """
    decoder = create_untrained("AutoModelForCausalLM", model.config, dtype=model.dtype)
    decoder.set_decoder(model.get_decoder())
    decoder.set_output_embeddings(model.get_output_embeddings())
    return decoder


def _import_torch() -> Any:
    try:
        import torch
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "torch", extra="local") from error
    return torch


def _list_devices() -> str:
    """The devices of this machine."""
    torch = _import_torch()
    cuda = [f"cuda:{n}" for n in range(torch.cuda.device_count())]
    return ", ".join(["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])])


@contextmanager
def one_line_errors(info: ModelInfo, role_name: str) -> Iterator[None]:
    """Turn whatever transformers raises over a broken file into one line."""
    try:
        yield
    except KgbiasError:
        raise
    except Exception as error:
        reason = describe_refusal(error) or first_line(error)
        raise ModelError(f"{info.name} cannot be loaded as {role_name}: {reason}") from error
