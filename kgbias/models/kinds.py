"""What each kind of model allows, according to its own classes.

What a provider can do is in its `Abilities`. `kgbias models`, the checks of parameters and the
defaults read it here.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_type_hints

from kgbias.errors import ModelError, UsageError
from kgbias.io.plugins import import_object
from kgbias.models.base import Abilities, PromptForm, Support
from kgbias.models.spec import KINDS, Kind, Spec, find_gguf_file, is_on_hub, list_forms, parse_spec


@dataclass(frozen=True, slots=True)
class ModelKind:
    """What a kind of model allows; "depends" means on the model or on the server behind the spec.

    Attributes:
        kind: the first word of its specs.
        specs: the forms of its specs.
        crawl: whether it writes text: crawls, profiles, judges, answers to questions.
        structured: whether its answers can be made to follow a JSON schema.
        seed: whether a random seed fixes an answer.
        logprobs: whether it gives the probability of a text, which benchmarks need.
        probe: whether it can be probed: by its probabilities or, if it gives none, only by forced
            "choice".
        association: whether it gives the vectors or words that association tests need.
        batch: whether requests can be sent in batches at a lower price (`--batch`).
        extra: the extra of kgbias that it needs.
        installed: whether the extra is installed.
        keys: environment variables for its key; the first that is set counts.
        package: the package that adds it, with its version; "" for kgbias's own.
    """

    kind: str
    specs: tuple[str, ...]
    crawl: Support
    structured: Support
    seed: Support
    logprobs: Support
    probe: Support | Literal["choice"]
    association: Support
    batch: Support
    extra: str
    installed: bool
    keys: tuple[str, ...]
    package: str = ""


def list_model_kinds() -> list[ModelKind]:
    """All kinds of models, except unusable ones from other packages (`kgbias.plugins` says why).
    Opens and loads none."""
    return [_describe_kind(name, kind) for name, kind in KINDS.usable_entries().items()]


def _describe_kind(name: str, kind: Kind) -> ModelKind:
    from kgbias.models.server import ServerModel

    kind_abilities = _read_abilities(kind)
    writes_text: Support = "yes" if kind.trained_as or kind.files is None else "depends"
    gives_logprobs: Support = "no"
    if kind.scores:  # as the class says that the scorer's function opens
        opened_class = get_type_hints(import_object(kind.scorer)).get("return")
        gives_logprobs = getattr(opened_class, "logprobs", "yes")
        gives_logprobs = "depends" if writes_text == "depends" else gives_logprobs
    model, package = import_object(kind.completer), KINDS.find_package(name)
    return ModelKind(
        name,
        kind.forms,
        writes_text if kind.completes else "no",
        kind_abilities.structured if kind.completes else "no",
        kind_abilities.seed if kind.completes else "no",
        gives_logprobs,
        "choice" if gives_logprobs == "no" and kind.completes else gives_logprobs,
        "yes" if kind.loads else "no",
        kind_abilities.batch if kind.completes else "no",
        "" if package else kind.extra,
        bool(package) or _is_installed(kind.package),
        model.api.keys if issubclass(model, ServerModel) else (),
        package,
    )


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # nor is what it would be a part of
        return False


@cache
def _read_abilities(kind: Kind) -> Abilities:
    kind_abilities: Abilities = getattr(import_object(kind.completer), "abilities", Abilities())
    return kind_abilities


def abilities_of(spec: str) -> Abilities | None:
    """What the completer of a spec can do; None for a name that is not a spec, as the user's own
    model may have."""
    try:
        name = parse_spec(spec).kind
    except UsageError:
        return None
    KINDS.import_part(name, KINDS[name].completer)
    return _read_abilities(KINDS[name])


def form_for(model: str, form: PromptForm | None) -> PromptForm | None:
    """The only form that a model takes, if it has only one. Raises UsageError for another."""
    model_abilities = abilities_of(model)
    if model_abilities is None or len(model_abilities.forms) > 1:
        return form
    (only_form,) = model_abilities.forms
    if form not in (None, only_form):
        raise UsageError(f"{model} only answers messages: `form` must be {only_form}")
    return only_form


def check_batch(model: str) -> None:
    """Raise UsageError for a model that takes no batches of requests."""
    model_abilities = abilities_of(model)
    if model_abilities is None or model_abilities.batch == "no":
        takers = list_forms(lambda kind: _read_abilities(kind).batch != "no")
        raise UsageError(f"`batch` is for providers that take batches: {takers}")


def check_structured(model: str) -> None:
    """Raise UsageError for a model that takes no JSON schema."""
    model_abilities = abilities_of(model)
    if model_abilities is None or model_abilities.structured == "no":
        takers = list_forms(lambda kind: _read_abilities(kind).structured != "no")
        raise UsageError(f"`structured` is for models that take a schema: {takers}")


def check_completes(spec: str | Spec) -> None:
    """Raise what opening a model to complete text would raise, as far as that is known without
    reading or reaching anything: UsageError for an unknown spec, or a model that cannot complete
    text; ModelError for a file or folder that does not exist."""
    parsed_spec = parse_spec(spec) if isinstance(spec, str) else spec
    kind = KINDS[parsed_spec.kind]
    if not kind.completes:
        from kgbias.models.load import describe_trained_kind

        raise UsageError(
            f"{parsed_spec} is {describe_trained_kind(kind.trained_as)} and cannot complete text; "
            f"{list_forms(lambda other: other.completes)} can"
        )
    if parsed_spec.file:
        find_gguf_file(parsed_spec)
    elif parsed_spec.name[:1] in (".", "/", "~") and is_on_hub(parsed_spec):
        path = Path(parsed_spec.name).expanduser()
        if path.is_file():
            raise ModelError(
                f"{parsed_spec.name} is a file: name its folder, and of a GGUF file both, as "
                f"hf:{path.parent}:{path.name}"
            )
        raise ModelError(f"there is no folder {parsed_spec.name}")
