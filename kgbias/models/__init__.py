"""Language models, by spec. `kgbias.models.spec` has the grammar of specs.

A model completes prompts (`open_model`), scores how probable texts are (`open_scorer`), predicts
words in sentences (`open_predictor`), or gives vectors (`open_encoder`); `kgbias.models.load` gives
the torch model itself. Every function takes every spec; a model that cannot serve a purpose raises
a one-line error. Nothing heavy is imported or loaded before it is needed.
"""

from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Unpack

from kgbias.errors import UsageError, no_such
from kgbias.io.caller_state import restore_state
from kgbias.io.plugins import import_object
from kgbias.models.base import Completer, Notify
from kgbias.models.spec import KINDS, Spec, parse_spec, resolve
from kgbias.parameters import ModelOptions

if TYPE_CHECKING:
    from kgbias.models.embed import Encoder as Encoder
    from kgbias.models.embed import Encoding as Encoding
    from kgbias.models.embed import Span as Span
    from kgbias.models.embed import open_encoder as open_encoder
    from kgbias.models.load import LoadedModel as LoadedModel
    from kgbias.models.load import unload as unload
    from kgbias.models.predict import open_predictor as open_predictor
    from kgbias.models.score.load import open_scorer as open_scorer

# Loaded on first use: their modules import numpy, or are for those alone who load weights.
_LAZY_MODULES = {
    "Encoder": "embed",
    "Encoding": "embed",
    "LoadedModel": "load",
    "Span": "embed",
    "open_encoder": "embed",
    "open_predictor": "predict",
    "open_scorer": "score.load",
    "unload": "load",
}

__all__ = [
    "Completer",
    "Encoder",
    "Encoding",
    "LoadedModel",
    "Span",
    "Spec",
    "open_encoder",
    "open_model",
    "open_predictor",
    "open_scorer",
    "parse_spec",
    "resolve",
    "unload",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_LAZY_MODULES[name]}"), name)
    return value


def list_options(spec: str, as_: Literal["completer", "scorer"]) -> set[str]:
    """The names of the options for opening a model of this spec as a completer of prompts or a
    scorer of texts; none if its kind cannot be that. Raises UsageError for an unknown spec."""
    kind = KINDS[parse_spec(spec).kind]
    if as_ == "completer":
        opener = import_object(kind.completer).open if kind.completer else None
    else:
        opener = import_object(kind.scorer) if kind.scorer else None
    return set(signature(opener).parameters) - {"spec", "revision", "notify"} if opener else set()


@restore_state()
def open_model(
    spec: str,
    *,
    revision: str | None = None,
    notify: Notify | None = None,
    **options: Unpack[ModelOptions],
) -> Completer:
    """The model of a spec, to complete prompts. Loads nothing before the first request.

    Args:
        spec: a model spec.
        revision: require this revision (see `kgbias.models.spec.resolve`); not for a server.
        notify: called with one line for each thing that takes long.
        options: the kind's own; None leaves the default. For a local model `batch_size` (128 rows
            at once), `dtype` ("float32", "bfloat16" or "float16") and `device` ("auto", "cpu",
            "cuda", "mps"); for a server `base_url`, `concurrency` (16 requests at once) and
            `timeout` (120 s an answer).

    Raises:
        UsageError: an unknown spec or option, or a model that cannot complete text.
        ModelError: the model does not exist.
    """
    parsed = parse_spec(spec)
    opener = KINDS.import_part(parsed.kind, KINDS[parsed.kind].completer).open
    options_given = {name: value for name, value in options.items() if value is not None}
    accepted_names = list_options(spec, "completer")
    if unknown_names := sorted(options_given.keys() - accepted_names):
        raise UsageError(
            no_such("option", unknown_names[0], sorted(accepted_names), f" for {spec}")
        )
    completer: Completer = opener(
        parsed, revision=revision, notify=notify or (lambda _: None), **options_given
    )
    return completer
