"""What each kind of model allows, according to its own classes."""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Literal, get_type_hints

from kgbias.errors import ModelError, UsageError
from kgbias.io.plugins import import_object
from kgbias.models.base import Abilities, Can, PromptForm
from kgbias.models.load import called
from kgbias.models.server import ServerModel
from kgbias.models.spec import KINDS, Kind, Spec, file_of, forms, on_the_hub, parse


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
    crawl: Can
    structured: Can
    seed: Can
    logprobs: Can
    probe: Can | Literal["choice"]
    association: Can
    batch: Can
    extra: str
    installed: bool
    keys: tuple[str, ...]
    package: str = ""


def kinds_of_models() -> list[ModelKind]:
    """All kinds of models, except unusable ones from other packages (`kgbias.plugins` says why).
    Opens and loads none."""
    return [_row(name, kind) for name, kind in KINDS.usable_entries().items()]


def _row(name: str, kind: Kind) -> ModelKind:
    able = _abilities(kind)
    unsure: Can = "yes" if kind.trained_as or kind.files is None else "depends"
    scored: Can = "no"
    if kind.scores:  # as the class says that the scorer's function opens
        opened = get_type_hints(import_object(kind.scorer)).get("return")
        scored = getattr(opened, "logprobs", "yes")
        scored = "depends" if unsure == "depends" else scored
    model, package = import_object(kind.completer), KINDS.find_package(name)
    return ModelKind(
        name,
        kind.forms,
        unsure if kind.completes else "no",
        able.structured if kind.completes else "no",
        able.seed if kind.completes else "no",
        scored,
        "choice" if scored == "no" and kind.completes else scored,
        "yes" if kind.loads else "no",
        able.batch if kind.completes else "no",
        "" if package else kind.extra,
        bool(package) or _installed(kind.package),
        model.api.keys if issubclass(model, ServerModel) else (),
        package,
    )


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # nor is what it would be a part of
        return False


@cache
def _abilities(kind: Kind) -> Abilities:
    found: Abilities = getattr(import_object(kind.completer), "abilities", Abilities())
    return found


def abilities(spec: str) -> Abilities | None:
    """What the completer of a spec can do; None for a name that is not a spec, as the user's own
    model may have."""
    try:
        name = parse(spec).kind
    except UsageError:
        return None
    KINDS.import_part(name, KINDS[name].completer)
    return _abilities(KINDS[name])


def form_for(model: str, form: PromptForm | None) -> PromptForm | None:
    """The only form that a model takes, if it has only one. Raises UsageError for another."""
    able = abilities(model)
    if able is None or len(able.forms) > 1:
        return form
    (only,) = able.forms
    if form not in (None, only):
        raise UsageError(f"{model} only answers messages: `form` must be {only}")
    return only


def check_batch(model: str) -> None:
    """Raise UsageError for a model that takes no batches of requests."""
    able = abilities(model)
    if able is None or able.batch == "no":
        takers = forms(lambda kind: _abilities(kind).batch != "no")
        raise UsageError(f"`batch` is for providers that take batches: {takers}")


def check_structured(model: str) -> None:
    """Raise UsageError for a model that takes no JSON schema."""
    able = abilities(model)
    if able is None or able.structured == "no":
        takers = forms(lambda kind: _abilities(kind).structured != "no")
        raise UsageError(f"`structured` is for models that take a schema: {takers}")


def check_completes(spec: str | Spec) -> None:
    """Raise what opening a model to complete text would raise, as far as that is known without
    reading or reaching anything: UsageError for an unknown spec, or a model that cannot complete
    text; ModelError for a file or folder that does not exist."""
    parsed = parse(spec) if isinstance(spec, str) else spec
    kind = KINDS[parsed.kind]
    if not kind.completes:
        raise UsageError(
            f"{parsed} is {called(kind.trained_as)} and cannot complete text; "
            f"{forms(lambda other: other.completes)} can"
        )
    if parsed.file:
        file_of(parsed)
    elif parsed.name[:1] in (".", "/", "~") and on_the_hub(parsed):
        raise ModelError(f"there is no folder {parsed.name}")
