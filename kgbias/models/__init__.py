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
from kgbias.io.plugins import import_object
from kgbias.io.traces import restore_state
from kgbias.models.base import Completer, ModelOptions, Notify
from kgbias.models.load import Loaded, unload
from kgbias.models.spec import KINDS, Spec, parse, resolve

if TYPE_CHECKING:
    from kgbias.models.embed import Encoder as Encoder
    from kgbias.models.embed import Encoding as Encoding
    from kgbias.models.embed import Span as Span
    from kgbias.models.embed import open_encoder as open_encoder
    from kgbias.models.predict import open_predictor as open_predictor
    from kgbias.models.score.load import open_scorer as open_scorer

# Loaded on first use, because their modules import numpy.
_LATER = {
    "Encoder": "embed",
    "Encoding": "embed",
    "Span": "embed",
    "open_encoder": "embed",
    "open_predictor": "predict",
    "open_scorer": "score.load",
}

__all__ = [
    "Completer",
    "Encoder",
    "Encoding",
    "Loaded",
    "Span",
    "Spec",
    "open_encoder",
    "open_model",
    "open_predictor",
    "open_scorer",
    "parse",
    "resolve",
    "unload",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    return value


def options_of(spec: str, as_: Literal["completer", "scorer"]) -> set[str]:
    """The names of the options for opening a model of this spec as a completer of prompts or a
    scorer of texts; none if its kind cannot be that. Raises UsageError for an unknown spec."""
    kind = KINDS[parse(spec).kind]
    if as_ == "completer":
        opened = import_object(kind.completer).open if kind.completer else None
    else:
        opened = import_object(kind.scorer) if kind.scorer else None
    return set(signature(opened).parameters) - {"spec", "revision", "notify"} if opened else set()


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
        options: the kind's own; None leaves the default. For a local model `batch_size` (32 rows at
            once), `dtype` ("float32", "bfloat16" or "float16") and `device` ("auto", "cpu", "cuda",
            "mps"); for a server `base_url`, `concurrency` (16 requests at once) and `timeout` (120
            s an answer).

    Raises:
        UsageError: an unknown spec or option, or a model that cannot complete text.
        ModelError: the model does not exist.
    """
    parsed = parse(spec)
    opened = KINDS.import_part(parsed.kind, KINDS[parsed.kind].completer).open
    given = {name: value for name, value in options.items() if value is not None}
    takes = options_of(spec, "completer")
    if wrong := sorted(given.keys() - takes):
        raise UsageError(no_such("option", wrong[0], sorted(takes), f" for {spec}"))
    completer: Completer = opened(
        parsed, revision=revision, notify=notify or (lambda _: None), **given
    )
    return completer
