"""What a model that a program holds does, as a digest.

Of a torch model: its weights, the hooks and replaced methods on its modules, and the
log-probabilities that it gives a fixed text. Of a function: its code, and what it reads from
elsewhere (closure, defaults, globals, the functions that it calls), as far as that can be told.
What a function itself changes, such as a list in which it counts its calls, is no part of it.
"""

import dis
import json
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType, MethodType
from typing import Any

from kgbias.errors import ModelError, first_line

_PROBE_TEXT = "The people who live here are known for what they say of others, and of themselves."
_ROUNDED_DIGITS = 4  # of a log-probability that count: kernels differ in the sixth between machines
_PLAIN_TYPES = (str, bytes, int, float, complex, bool, type(None))
_MAX_ENTRIES = 10_000  # entries of a container that are read
_MAX_DEPTH = 6  # functions that call functions
_CHANGING_METHODS = frozenset(
    "add append appendleft clear extend insert pop popleft put remove setdefault update".split()
)


def fingerprint(model: Any, tokenizer: Any) -> str:
    """A digest of what a transformers model does, as "sha256:..."."""
    parts = (
        rounded_log_probabilities(model, tokenizer),
        changes_digest(model),
        _weights_digest(model),
    )
    return f"sha256:{_digest(*parts)}"


def rounded_log_probabilities(model: Any, tokenizer: Any) -> str:
    """The log-probabilities that a model gives a fixed text, rounded, as JSON. Raises ModelError
    for a model that cannot read it, or whose probabilities are not numbers."""
    import torch

    ids = tokenizer(_PROBE_TEXT, return_tensors="pt")["input_ids"].to(model.device)
    decoder_inputs = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    try:
        with torch.no_grad():
            logits = model(input_ids=ids, **decoder_inputs).logits[0].double().log_softmax(-1).cpu()
    except Exception as error:  # anyone's model may raise anything
        raise ModelError(f"the model cannot read a text: {first_line(error)}") from error
    if not bool(torch.isfinite(logits.amax(dim=-1)).all()):
        raise ModelError("the model's probabilities are not numbers")
    # A few of the most and of the least probable tokens at each place.
    extreme_values = torch.cat([logits.topk(5).values, -(-logits).topk(5).values], dim=-1)
    return json.dumps([[round(x, _ROUNDED_DIGITS) for x in row] for row in extreme_values.tolist()])


def changes_digest(model: Any, seen_ids: set[int] | None = None) -> str:
    """A digest of what was put into a torch model from outside: hooks and replaced methods; "" for
    a model without any. A hook may act on some texts alone, and leave the fixed one as it is.
    `seen_ids` are the ids of what has been read, since a hook may hold the model that it hangs
    on."""
    changes: list[str] = []
    seen_ids = {id(model)} if seen_ids is None else seen_ids
    for name, module in model.named_modules():
        hooks = [
            hook
            for kind in ("_forward_hooks", "_forward_pre_hooks")
            for hook in getattr(module, kind, {}).values()
        ]
        patch_types = (FunctionType, MethodType, partial)
        replaced_methods = [
            value for value in vars(module).values() if isinstance(value, patch_types)
        ]
        changes += [
            f"{name} {_digest(*_digest_parts(change, 0, seen_ids))}"
            for change in (*hooks, *replaced_methods)
        ]
    return _digest(*changes) if changes else ""


def sample_state(model: Any) -> tuple[Any, ...]:
    """A cheap look at a torch model: whether it is still the one that was loaded, by its hooks,
    replaced methods and a sample of its weights."""
    samples = []
    for name, weight in model.named_parameters():
        flat_weight = weight.detach().reshape(-1)
        sampled_weights = flat_weight[:: max(1, flat_weight.numel() // 64)].float()
        # Torch counts a version up whenever a weight is changed in place; one that was exchanged is
        # at another address.
        samples.append((name, weight._version, weight.data_ptr(), float(sampled_weights.sum())))
    return changes_digest(model), tuple(samples)


def _weights_digest(model: Any) -> str:
    """A digest of a torch model's weights, in whole-number arithmetic, which is the same on every
    device."""
    import torch

    integer_types = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    weight_lines: list[str] = []
    for name, weight in sorted(model.state_dict().items()):
        if not isinstance(weight, torch.Tensor) or weight.is_complex():
            continue
        # The sums wrap around at 64 bits, everywhere alike; the squares tell changes that cancel
        # out in the first sum.
        bits = weight.detach().contiguous().view(integer_types[weight.element_size()]).long()
        weight_lines.append(
            f"{name} {tuple(weight.shape)} {int(bits.sum())} {int((bits * bits).sum())}"
        )
    return _digest(*weight_lines)


def code_digest(function: Any) -> str:
    """A digest of what a function or another callable does, as far as it can be told."""
    return _digest(*_digest_parts(function, 0, set()))


def _digest(*parts: str) -> str:
    hasher = sha256()
    for part in parts:
        hasher.update(part.encode("utf-8", "backslashreplace") + b"\0")
    return hasher.hexdigest()[:16]


def _digest_parts(value: Any, depth: int, seen_ids: set[int]) -> Iterator[str]:
    """What a value adds to the digest of a function that reads it."""
    if isinstance(value, _PLAIN_TYPES):
        yield repr(value)
        return
    if id(value) in seen_ids or depth > _MAX_DEPTH:
        return
    seen_ids.add(id(value))
    if isinstance(value, FunctionType):
        yield from _function_parts(value, depth, seen_ids)
    elif isinstance(value, MethodType):
        yield from _digest_parts(value.__func__, depth, seen_ids)
        yield from _digest_parts(value.__self__, depth + 1, seen_ids)
    elif isinstance(value, partial):
        for piece in (value.func, value.args, value.keywords):
            yield from _digest_parts(piece, depth + 1, seen_ids)
    elif isinstance(value, Mapping):
        for key in list(value)[:_MAX_ENTRIES]:
            yield from _digest_parts(key, depth + 1, seen_ids)
            yield from _digest_parts(value[key], depth + 1, seen_ids)
    elif isinstance(value, list | tuple):
        for piece in value[:_MAX_ENTRIES]:
            yield from _digest_parts(piece, depth + 1, seen_ids)
    elif isinstance(value, set | frozenset):
        yield from sorted(repr(piece) for piece in value if isinstance(piece, _PLAIN_TYPES))
    elif hasattr(value, "named_modules") and hasattr(value, "state_dict"):  # a torch model
        yield from (
            type(value).__qualname__,
            changes_digest(value, seen_ids),
            _weights_digest(value),
        )
    elif hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor
        yield from _array_parts(value.detach().cpu().float().numpy())
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):  # an array
        yield from _array_parts(value)
    else:
        yield from _object_parts(value, depth, seen_ids)


def _array_parts(value: Any) -> Iterator[str]:
    yield f"{value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"


def _function_parts(function: FunctionType, depth: int, seen_ids: set[int]) -> Iterator[str]:
    codes = list(_iter_codes(function.__code__))
    for code in codes:
        yield repr((code.co_code, code.co_names, code.co_varnames))
        # Of others, such as the code of functions inside, the text has an address in it, which is
        # another one each time.
        yield repr([c for c in code.co_consts if isinstance(c, _PLAIN_TYPES)])
    names_read = _names_read(codes)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    for name in names_read:
        if name not in values and name in function.__globals__:
            values[name] = function.__globals__[name]
    for part in (function.__defaults__, function.__kwdefaults__):
        yield from _digest_parts(part, depth + 1, seen_ids)
    for name in sorted(values.keys() & names_read):
        yield name
        yield from _digest_parts(values[name], depth + 1, seen_ids)


def _object_parts(value: Any, depth: int, seen_ids: set[int]) -> Iterator[str]:
    """A thing that is called, or that a function reads: its class, the code of a class that is not
    a library's, and its attributes but those that its methods change."""
    class_of_value = value if isinstance(value, type) else type(value)
    yield f"{class_of_value.__module__}.{class_of_value.__qualname__}"
    if (
        "site-packages" in str(getattr(_module_of(class_of_value), "__file__", ""))
        or class_of_value.__module__ in _LIBRARY_MODULES
    ):
        return
    methods = [part for part in vars(class_of_value).values() if isinstance(part, FunctionType)]
    for method in methods:
        yield from _digest_parts(method, depth + 1, seen_ids)
    codes = [c for m in methods if m.__name__ != "__init__" for c in _iter_codes(m.__code__)]
    stored_names = {
        i.argval for code in codes for i in dis.get_instructions(code) if i.opname == "STORE_ATTR"
    }
    changed_names = _names_changed(codes)
    attributes = {} if isinstance(value, type) else getattr(value, "__dict__", {})
    for name in sorted(attributes):
        part = attributes[name]
        if name not in stored_names and not (
            name in changed_names and isinstance(part, list | dict | set)
        ):
            yield name
            yield from _digest_parts(part, depth + 1, seen_ids)


_LIBRARY_MODULES = ("builtins", "collections", "threading", "_thread", "random", "logging", "queue")


def _module_of(kind: type) -> Any:
    import sys

    return sys.modules.get(kind.__module__)


def _iter_codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of the functions inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _iter_codes(const)


def _names_read(codes: list[CodeType]) -> set[str]:
    """The names from outside that code reads and does not change."""
    read_names, stored_names = set(), set()
    for code in codes:
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_NAME"):
                read_names.add(str(step.argval))
            elif step.opname in ("STORE_GLOBAL", "STORE_DEREF", "STORE_NAME"):
                stored_names.add(str(step.argval))
    cell_names = {name for code in codes for name in code.co_cellvars}
    return read_names - (stored_names - cell_names) - _names_changed(codes)


def _names_changed(codes: list[CodeType]) -> set[str]:
    """The names of containers that code changes: what a method such as `append` is called of, and
    all that is read near a place where an item is set."""
    changed_names: set[str] = set()
    for code in codes:
        recent_names: list[str] = []
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
                recent_names = [*recent_names[-3:], str(step.argval)]
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                if str(step.argval) in _CHANGING_METHODS and recent_names:
                    changed_names.add(recent_names[-1])
                recent_names = [*recent_names[-3:], str(step.argval)]
            elif step.opname in ("STORE_SUBSCR", "DELETE_SUBSCR"):
                changed_names |= set(recent_names)
    return changed_names


def _is_filled(cell: Any) -> bool:
    try:
        # Reading an empty one raises: a name that its function has not bound yet.
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
