"""Opening models that are asked, that score texts, and that judge them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kgbias.errors import UsageError
from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.io.text import printable, type_with_article
from kgbias.models.base import Completer, ModelInfo, PromptForm, find_form
from kgbias.models.spec import parse_spec
from kgbias.parallel import Executor
from kgbias.parameters import JudgeOptions, ModelOptions, ScorerOptions

if TYPE_CHECKING:
    from kgbias.crawl.config import CrawlConfig
    from kgbias.crawl.crawler import AcceptabilityJudge
    from kgbias.crawl.stopping import Gauge
    from kgbias.graph.prompting import LoggedPrompter
    from kgbias.models.budget import Prices
    from kgbias.models.score.base import TextScorer
    from kgbias.models.score.distributed import AnyScorer


if TYPE_CHECKING:
    from kgbias.models.in_memory import InMemory, InMemoryModel

    Model = str | TextScorer | InMemoryModel | Completer | InMemory
    Models = Model | Sequence[Model]

OPENING_OPTIONS = tuple(ScorerOptions.__annotations__)


def spec_of(model: str | Completer, opening: Mapping[str, Any]) -> str:
    """The spec of a named or open model. Raises UsageError for opening options with an open
    model."""
    if isinstance(model, str):
        return model
    if opening:
        raise UsageError(f"`{min(opening)}` belongs to opening a model: this one is open")
    return model.info.name


def as_completer(model: Any, name: str | None) -> "str | Completer":
    """A spec or an open model as it is; what a program holds, as a model of that name. Raises
    UsageError for a model without a name, and for what is no model."""
    if isinstance(model, str) or hasattr(model, "complete"):
        completer: str | Completer = model
        return completer
    from kgbias.models.in_memory import check_is_model, in_memory

    if not name:
        check_is_model(model)
        raise UsageError(
            f"{type_with_article(model)} in memory needs a name: model_name='...' (or hand over "
            "kgbias.in_memory(model, tokenizer, name='...'))"
        )
    return in_memory(model, name=name)


def as_text_scorer(model: Any, known_models: Iterable[ModelInfo] = ()) -> Any:
    """A spec or an open model as it is; a model that the program holds, opened under the name that
    one of the `known_models` models has which does the same. Raises UsageError if there is none,
    since a model needs a name, and for what gives no probabilities."""
    if isinstance(model, str) or any(
        hasattr(model, name) for name in ("grid", "scorer", "ask", "complete")
    ):
        return model
    from kgbias.models.in_memory import InMemoryModel, check_is_model, in_memory

    check_is_model(model)
    opened = in_memory(model, name="model")
    if not isinstance(opened, InMemoryModel):
        raise UsageError(
            f"{type_with_article(model)} gives no log-probabilities: name a spec, or hand over a "
            "transformers model with its tokenizer"
        )
    # It has no name, but the same weights have the same revision: the store may know them.
    for info in known_models:
        if info.revision == opened.info.revision:
            opened.info = info
            return opened
    raise UsageError(
        "a model in memory needs a name: hand over kgbias.in_memory(model, tokenizer, name='...')"
    )


def as_models(models: Any) -> tuple[Any, ...]:
    """Specs and open models as a tuple, even if there is only one; a model and its tokenizer are a
    pair, and so one."""
    pair = isinstance(models, tuple | list) and len(models) == 2 and is_model_pair(*models)
    if isinstance(models, str) or pair or not isinstance(models, Iterable):
        return (models,)
    return tuple(models)


def as_text_scorers(models: Any, known_models: Iterable[ModelInfo]) -> list[Any]:
    """Specs, and models in memory as `as_text_scorer` opens them."""
    known_models = list(known_models)
    return [as_text_scorer(model, known_models) for model in as_models(models)]


def is_model_pair(model: Any, tokenizer: Any) -> bool:
    """Whether these are a model and its tokenizer."""
    return hasattr(model, "config") and callable(tokenizer) and not hasattr(tokenizer, "config")


class SplitOptions(NamedTuple):
    """The options that open a model, and the call's own."""

    opening: dict[str, Any]
    others: dict[str, Any]


def split_model_options(options: Mapping[str, Any]) -> SplitOptions:
    """The given options that open the model, and the call's own."""
    names = ModelOptions.__annotations__
    opening = {k: v for k, v in options.items() if k in names and v is not None}
    return SplitOptions(opening, {k: v for k, v in options.items() if k not in names})


class SplitPrices(NamedTuple):
    """The prices of asking a model, and the call's own options."""

    prices: "Prices | None"
    others: dict[str, Any]


def split_prices(options: Mapping[str, Any], model: str | Completer) -> SplitPrices:
    """The prices of asking the model with these options, and the call's own options. Raises
    UsageError for a batch if the model takes none, and for a model that cannot be asked
    (`check_completes`)."""
    from kgbias.models.budget import split_budget
    from kgbias.models.kinds import check_batch, check_completes

    if isinstance(model, str):
        check_completes(model)
    spec = spec_of(model, {})
    budget, asking = split_budget(split_model_options(options)[1], spec)
    if budget.batch:
        check_batch(spec)
    return SplitPrices(budget.usage.prices, asking)


@contextmanager
def open_completer(
    model: str | Completer, opening: Mapping[str, Any], progress: Progress
) -> Iterator[Completer]:
    """The model of a spec, closed at the end, or the one that is already open."""
    if not isinstance(model, str):
        yield model
        return
    with suppress(UsageError):  # `open_model` says what is wrong with a spec
        parse_spec(model)
        # The first sign of a command: the imports and weights that follow take seconds.
        progress.note(printable(f"opening {ModelInfo(model).short_name}"))
    from kgbias.models import open_model

    with closing(open_model(model, notify=progress.note, **opening)) as opened:
        yield opened


def settle_form(
    completer: Completer,
    kind: str,
    default_form: PromptForm,
    store: Store | None,
    progress: Progress,
) -> PromptForm | None:
    """The form in which runs of this kind ask a model on a server: that of an earlier one in the
    store, or what a trial finds (`kgbias.models.base.find_form`), which is said. None for other
    models, whose form is known."""
    from kgbias.models.server import ServerModel

    if not isinstance(completer, ServerModel):
        return None
    for run in () if store is None else store.runs():
        if (run.kind, run.model, run.settings) == (kind, completer.info, completer.settings):
            stored_form: str = run.config["form"]
            return _SERVER_FORMS.get(stored_form, "completion")
    form, why = find_form(completer, default_form)
    if why:
        progress.note(why)
    return form


# Profiles as JSON are asked for by messages.
_SERVER_FORMS: Mapping[str, PromptForm] = {"chat": "chat", "json": "chat"}


def open_spread_scorer(
    model: "Model | AnyScorer",
    options: ScorerOptions,
    progress: Progress,
    executor: Executor | None,
    known_models: Iterable[ModelInfo] = (),
) -> "AnyScorer":
    """As `open_text_scorer`; with an executor, the model of the spec as its workers open it."""
    from kgbias.models.score.distributed import DistributedScorer

    if isinstance(model, DistributedScorer):
        return model
    if executor is None:
        return open_text_scorer(model, options, progress, known_models)
    if not isinstance(model, str):
        raise UsageError("`executor` opens models itself: name a spec instead of an open one")
    set_options = {name: value for name, value in options.items() if value is not None}
    return DistributedScorer(executor, model, set_options, progress)


def open_text_scorer(
    model: Any, options: ScorerOptions, progress: Progress, known_models: Iterable[ModelInfo] = ()
) -> "TextScorer":
    """The model of a spec, or the one that is already open, or that the program holds
    (`as_text_scorer`)."""
    model = as_text_scorer(model, known_models)
    set_options = {name: value for name, value in options.items() if value is not None}
    if not isinstance(model, str):
        if (as_scorer := getattr(model, "scorer", None)) is not None:  # held in memory
            scorer: TextScorer = as_scorer(notify=progress.note, **set_options)
            return scorer
        if set_options:
            raise UsageError(f"`{min(set_options)}` belongs to opening a model: this one is open")
        if not hasattr(model, "grid"):
            raise UsageError(
                f"{type_with_article(model)} gives no log-probabilities: name a spec, or hand over "
                "kgbias.in_memory(model, tokenizer, name=...)"
            )
        opened: Any = model
        text_scorer: TextScorer = opened
        return text_scorer
    from kgbias.models.score.load import open_scorer

    return open_scorer(model, notify=progress.note, **set_options)  # type: ignore[arg-type]


def model_name(model: Any) -> str:
    """A spec, or the name of an open model; "model" for one that has none yet."""
    if isinstance(model, str):
        return model
    return str(model.info.name) if hasattr(model, "info") else "model"


def output_paths(
    output: str | Path | None, models: "Sequence[str | TextScorer]"
) -> list[Path | None]:
    """Where to write each model's probes: for several models, beside `output`, under its name and
    the model's."""
    if output is None or len(models) < 2:
        return [None if output is None else Path(output)] * len(models)
    path, paths = Path(output), list[Path | None]()
    for model in models:
        spec = model_name(model)
        file_stem = re.sub(r"[^\w.-]+", "-", spec).strip("-.") or "model"
        # Specs that differ in marks alone have one stem: the next ones get a number.
        names = (file_stem, *(f"{file_stem}-{n}" for n in range(2, len(models) + 1)))
        candidates = (path.with_name(f"{path.stem}-{name}{path.suffix}") for name in names)
        paths.append(next(candidate for candidate in candidates if candidate not in paths))
    return paths


def iter_scorers(
    models: "Sequence[str | TextScorer]",
    options: ScorerOptions,
    progress: Progress,
    executor: Executor | None = None,
    known_models: Iterable[ModelInfo] = (),
) -> "Iterator[tuple[int, AnyScorer]]":
    """The models one after another, each with its place, opened here or by an executor's workers.
    Each is unloaded before the next is opened, so memory for one model is enough. An invalid spec
    is an error before the first is opened."""
    from kgbias.models.load import unload
    from kgbias.models.spec import parse_spec

    # A wrong spec is found before the models in front of it are loaded.
    for model in models if len(models) > 1 else ():
        if isinstance(model, str):
            parse_spec(model)
    for number, model in enumerate(models):
        if number:
            unload()
        if len(models) > 1:
            progress.note(f"{number + 1}/{len(models)}: {model_name(model)}")
        yield number, open_spread_scorer(model, options, progress, executor, known_models)


def load_judge(language: str) -> "AcceptabilityJudge":
    """The offline scorer of acceptability, to judge the statements of a crawl in this language. It
    runs on the CPU, which makes its judgements the same everywhere.

    Raises UsageError if it does not read the language."""
    from kgbias.crawl.crawler import AcceptabilityJudge
    from kgbias.measure.scorers import load_scorer

    scorer = load_scorer("acceptability", device="cpu")
    if scorer.language not in (None, language):
        raise UsageError(
            f"`min_acceptability` is judged by a scorer that reads English only: it does not apply "
            f"to prompts in the language {language!r}"
        )
    return AcceptabilityJudge(
        f"{scorer.name}:{scorer.version}",
        lambda sentences: [judged.value for judged in scorer.score(sentences) if judged],
    )


def load_gauge(config: "CrawlConfig") -> "Gauge | None":
    """The offline scorers that measure a crawl between its rounds, as for its default figures: the
    measure's scorer, over the statements that make enough sense to count. They run on the CPU, so
    the same crawl ends at the same round everywhere. None if the crawl ends otherwise.

    Raises UsageError if they do not read the crawl's language."""
    if config.target_ci_width is None:
        return None
    from kgbias.crawl.stopping import Gauge
    from kgbias.graph.selection import MIN_ACCEPTABILITY
    from kgbias.graph.types import Score
    from kgbias.measure.scorers import load_scorer

    measures = dict.fromkeys((config.target_ci_width.measure, "acceptability"))
    scorers = [load_scorer(measure, device="cpu") for measure in measures]
    for scorer in scorers:
        if scorer.language not in (None, config.pack.language):
            raise UsageError(
                f"`target_ci_width` looks at {scorer.measure} by a scorer that reads English only: "
                f"it does not apply to prompts in the language {config.pack.language!r}"
            )

    def score(sentences: Sequence[str]) -> list[Score | None]:
        # The last judges acceptability; it is also the first if that is the measure.
        scores, sense = scorers[0].score(sentences), scorers[-1].score(sentences)
        return [
            Score("", own.value, own.label) if own and s and s.value >= MIN_ACCEPTABILITY else None
            for own, s in zip(scores, sense, strict=True)
        ]

    return Gauge(" ".join(f"{s.name}:{s.version}" for s in scorers), score)


@contextmanager
def open_prompter(
    model: "str | Completer", store: Store, progress: Progress, seed: int, judging: JudgeOptions
) -> "Iterator[LoggedPrompter]":
    """A language model to ask with templates, given by a spec or open; its answers go through the
    log of `store`."""
    from kgbias.graph.prompting import LoggedPrompter
    from kgbias.models import open_model

    model_options: dict[str, Any] = {n: value for n, value in judging.items() if n != "prompts"}
    prompt_options = {
        name: model_options.pop(name) for name in ("form", "temperature") if name in model_options
    }
    with ExitStack() as opened:
        if isinstance(model, str):
            model = opened.enter_context(
                closing(open_model(model, notify=progress.note, **model_options))
            )
        yield LoggedPrompter(model, store, seed=seed, progress=progress, **prompt_options)
