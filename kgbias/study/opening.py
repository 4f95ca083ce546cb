"""Opening models that are asked, that score texts, and that judge them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from kgbias.errors import UsageError
from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.io.text import printable
from kgbias.models.base import Completer, PromptForm, ModelInfo, ModelOptions, find_form
from kgbias.models.budget import Prices, split_budget
from kgbias.models.kinds import check_batch, check_completes
from kgbias.models.server import ServerModel
from kgbias.models.spec import KINDS, parse_spec
from kgbias.parallel import Executor
from kgbias.parameters import PathLike

if TYPE_CHECKING:
    from kgbias.crawl.config import CrawlConfig
    from kgbias.crawl.crawler import AcceptabilityJudge
    from kgbias.crawl.stopping import Gauge
    from kgbias.faithfulness import Judge as TextJudge
    from kgbias.graph.prompting import LoggedPrompter
    from kgbias.models.score.base import TextScorer
    from kgbias.models.score.distributed import AnyScorer


class ScorerOptions(TypedDict, total=False):
    """How to open a spec to score texts (see `kgbias.open_scorer`); None is the default."""

    begin: str | None
    device: str | None
    dtype: str | None
    base_url: str | None
    instruction: str | None
    words: bool | None


if TYPE_CHECKING:
    from kgbias.models.in_memory import InMemoryModel, InMemory

    Model = str | TextScorer | InMemoryModel | Completer | InMemory
    Models = Model | Sequence[Model]

OPENING = tuple(ScorerOptions.__annotations__)
_OWN_READERS = ("rules", "model")  # of stories: no second model


def spec_of(model: str | Completer, opening: Mapping[str, Any]) -> str:
    """The spec of a named or open model. Raises UsageError for opening options with an open
    model."""
    if isinstance(model, str):
        return model
    if opening:
        raise UsageError(f"`{min(opening)}` belongs to opening a model: this one is open")
    return model.info.name


def as_completer(model: Any, called: str | None) -> "str | Completer":
    """A spec or an open model as it is; what a program holds, as a model of that name. Raises
    UsageError for a model without a name, and for what is no model."""
    if isinstance(model, str) or hasattr(model, "complete"):
        found: str | Completer = model
        return found
    from kgbias.models.in_memory import check_is_model, in_memory

    if not called:
        check_is_model(model)
        raise UsageError(
            f"a {type(model).__name__} in memory needs a name: called='...' (or hand over "
            "kgbias.in_memory(model, tokenizer, name='...'))"
        )
    return in_memory(model, name=called)


def as_scored(model: Any, known: Iterable[ModelInfo] = ()) -> Any:
    """A spec or an open model as it is; a model that the program holds, opened under the name that
    one of the `known` models has which does the same. Raises UsageError if there is none, since a
    model needs a name, and for what gives no probabilities."""
    if isinstance(model, str) or any(
        hasattr(model, name) for name in ("grid", "scorer", "ask", "complete")
    ):
        return model
    from kgbias.models.in_memory import InMemoryModel, check_is_model, in_memory

    check_is_model(model)
    held = in_memory(model, name="model")
    if not isinstance(held, InMemoryModel):
        raise UsageError(
            f"a {type(model).__name__} gives no log-probabilities: name a spec, or hand over a "
            "transformers model with its tokenizer"
        )
    for info in known:
        if info.revision == held.info.revision:
            held.info = info
            return held
    raise UsageError(
        "a model in memory needs a name: hand over kgbias.in_memory(model, tokenizer, name='...')"
    )


def as_models(models: Any) -> tuple[Any, ...]:
    """Specs and open models as a tuple, even if there is only one; a model and its tokenizer are a
    pair, and so one."""
    pair = isinstance(models, tuple | list) and len(models) == 2 and is_pair(*models)
    if isinstance(models, str) or pair or not isinstance(models, Iterable):
        return (models,)
    return tuple(models)


def held_models(models: Any, known: Iterable[ModelInfo]) -> list[Any]:
    """Specs, and models in memory as `as_scored` opens them."""
    known = list(known)
    return [as_scored(model, known) for model in as_models(models)]


def is_pair(model: Any, tokenizer: Any) -> bool:
    """Whether these are a model and its tokenizer."""
    return hasattr(model, "config") and callable(tokenizer) and not hasattr(tokenizer, "config")


def parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The given options that open the model, and the call's own."""
    names = ModelOptions.__annotations__
    opening = {k: v for k, v in options.items() if k in names and v is not None}
    return opening, {k: v for k, v in options.items() if k not in names}


def priced(options: Mapping[str, Any], model: str) -> tuple[Prices | None, dict[str, Any]]:
    """The prices of asking a model of this spec with these options, and the call's own options.
    Raises UsageError for a batch if the model takes none, and for a model that cannot be asked
    (`check_completes`)."""
    check_completes(model)
    budget, asking = split_budget(parted(options)[1], model)
    if budget.batch:
        check_batch(model)
    return budget.usage.prices, asking


@contextmanager
def opened_completer(
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


def found_form(
    asked: Completer, kind: str, first: PromptForm, store: Store | None, progress: Progress
) -> PromptForm | None:
    """The form in which runs of this kind ask a model on a server: that of an earlier one in the
    store, or what a trial finds (`kgbias.models.base.find_form`), which is said. None for other
    models, whose form is known."""
    if not isinstance(asked, ServerModel):
        return None
    for summary in () if store is None else store.summaries():
        run = summary.run
        if (run.kind, run.model, run.settings) == (kind, asked.info, asked.settings):
            kept: str = run.config["form"]
            return _FORMS.get(kept, "completion")
    form, why = find_form(asked, first)
    if why:
        progress.note(why)
    return form


_FORMS: Mapping[str, PromptForm] = {"chat": "chat", "json": "chat"}  # profiles as JSON are messages


def check_reader(reader: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for prices, if a second model reads stories: its own are not known."""
    money = [n for n in ("max_cost", "price_in", "price_out", "prices") if options.get(n)]
    if reader not in _OWN_READERS and money:
        raise UsageError(
            f"`{money[0]}` counts one model's prices, and {reader} would read the stories of "
            "another: limit `max_requests` or `max_tokens` instead"
        )


@contextmanager
def opened_reader(
    reader: str, teller: Completer, options: Mapping[str, Any], progress: Progress
) -> Iterator[Completer | None]:
    """The second model that reads another's stories, opened with the same options if both are on
    this machine or behind the same kind of server; None if rules or the teller itself read them.
    Raises UsageError as `check_reader`."""
    check_reader(reader, options)
    if reader in _OWN_READERS:
        yield None
        return
    told_by = teller.info.name.partition(":")[0]
    same = told_by in KINDS and KINDS[told_by].completer == KINDS[parse_spec(reader).kind].completer
    with opened_completer(reader, parted(options)[0] if same else {}, progress) as opened:
        yield opened


def spread_scorer(
    model: "Model | AnyScorer",
    options: ScorerOptions,
    progress: Progress,
    executor: Executor | None,
    known: Iterable[ModelInfo] = (),
) -> "AnyScorer":
    """As `opened_scorer`; with an executor, the model of the spec as its workers open it."""
    from kgbias.models.score.distributed import DistributedScorer

    if isinstance(model, DistributedScorer):
        return model
    if executor is None:
        return opened_scorer(model, options, progress, known)
    if not isinstance(model, str):
        raise UsageError("`executor` opens models itself: name a spec instead of an open one")
    given = {name: value for name, value in options.items() if value is not None}
    return DistributedScorer(executor, model, given, progress)


def opened_scorer(
    model: Any, options: ScorerOptions, progress: Progress, known: Iterable[ModelInfo] = ()
) -> "TextScorer":
    """The model of a spec, or the one that is already open, or that the program holds
    (`as_scored`)."""
    model = as_scored(model, known)
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(model, str):
        if (as_scorer := getattr(model, "scorer", None)) is not None:  # held in memory
            scorer: TextScorer = as_scorer(notify=progress.note, **given)
            return scorer
        if given:
            raise UsageError(f"`{min(given)}` belongs to opening a model: this one is open")
        if not hasattr(model, "grid"):
            raise UsageError(
                f"a {type(model).__name__} gives no log-probabilities: name a spec, or hand over "
                "kgbias.in_memory(model, tokenizer, name=...)"
            )
        opened: Any = model
        found: TextScorer = opened
        return found
    from kgbias.models.score.load import open_scorer

    return open_scorer(model, notify=progress.note, **given)  # type: ignore[arg-type]


def named_as(model: Any) -> str:
    """A spec, or the name of an open model; "model" for one that has none yet."""
    if isinstance(model, str):
        return model
    return str(model.info.name) if hasattr(model, "info") else "model"


def outputs(output: str | Path | None, models: "Sequence[str | TextScorer]") -> list[Path | None]:
    """Where to write each model's probes: for several models, beside `output`, under its name and
    the model's."""
    if output is None or len(models) < 2:
        return [None if output is None else Path(output)] * len(models)
    path, found = Path(output), list[Path | None]()
    for model in models:
        spec = named_as(model)
        own = re.sub(r"[^\w.-]+", "-", spec).strip("-.") or "model"
        names = (own, *(f"{own}-{n}" for n in range(2, len(models) + 1)))
        found.append(
            next(p for n in names if (p := path.with_name(f"{path.stem}-{n}{path.suffix}"))
                 not in found)
        )  # fmt: skip
    return found


def each_scorer(
    models: "Sequence[str | TextScorer]",
    options: ScorerOptions,
    progress: Progress,
    executor: Executor | None = None,
    known: Iterable[ModelInfo] = (),
) -> "Iterator[tuple[int, AnyScorer]]":
    """The models one after another, each with its place, opened here or by an executor's workers.
    Each is unloaded before the next is opened, so memory for one model is enough. An invalid spec
    is an error before the first is opened."""
    from kgbias.models.load import unload
    from kgbias.models.spec import parse_spec

    for model in models if len(models) > 1 else ():
        if isinstance(model, str):
            parse_spec(model)
    for number, model in enumerate(models):
        if number:
            unload()
        if len(models) > 1:
            progress.note(f"{number + 1}/{len(models)}: {named_as(model)}")
        yield number, spread_scorer(model, options, progress, executor, known)


def judge_of(language: str) -> "AcceptabilityJudge":
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


def gauge_of(config: "CrawlConfig") -> "Gauge | None":
    """The offline scorers that measure a crawl between its rounds, as for its default figures: the
    measure's scorer, over the statements that make enough sense to count. They run on the CPU, so
    the same crawl ends at the same round everywhere. None if the crawl ends otherwise.

    Raises UsageError if they do not read the crawl's language."""
    if config.until_width is None:
        return None
    from kgbias.crawl.stopping import Gauge
    from kgbias.graph.selection import MIN_ACCEPTABILITY
    from kgbias.graph.types import Score
    from kgbias.measure.scorers import load_scorer

    measures = dict.fromkeys((config.until_width.measure, "acceptability"))
    scorers = [load_scorer(measure, device="cpu") for measure in measures]
    for scorer in scorers:
        if scorer.language not in (None, config.pack.language):
            raise UsageError(
                f"`until_width` looks at {scorer.measure} by a scorer that reads English only: it "
                f"does not apply to prompts in the language {config.pack.language!r}"
            )

    def score(sentences: Sequence[str]) -> list[Score | None]:
        found, sense = scorers[0].score(sentences), scorers[-1].score(sentences)
        return [
            Score("", own.value, own.label) if own and s and s.value >= MIN_ACCEPTABILITY else None
            for own, s in zip(found, sense, strict=True)
        ]

    return Gauge(" ".join(f"{s.name}:{s.version}" for s in scorers), score)


_PROMPTS = "ragas-2023"


class Judging(TypedDict, total=False):
    """How to ask a judge that is a language model: the `form` of its prompts ("chat" or
    "completion"), the folder of `prompts`, and how to open its spec (see `kgbias.open_model`)."""

    form: PromptForm
    prompts: PathLike
    temperature: float
    base_url: str | None
    concurrency: int | None
    timeout: float | None
    device: str | None
    dtype: str | None
    batch_size: int | None


@contextmanager
def opened_judge(
    judge: "str | Completer", store: Store | None, progress: Progress, seed: int, judging: Judging
) -> "Iterator[TextJudge]":
    """The judge given by a name, a spec or an open model; its answers go through the log of
    `store`."""
    from kgbias.faithfulness.judges import LOCAL_JUDGES, TEMPLATE_VALUES, ModelJudge, make_local_judge
    from kgbias.graph.prompting import load_prompts

    if isinstance(judge, str) and judge in LOCAL_JUDGES:
        yield make_local_judge(judge, lambda: embedder(progress))
        return
    assert store is not None
    prompts = load_prompts(judging.get("prompts", _PROMPTS), TEMPLATE_VALUES)
    with opened_prompted(judge, store, progress, seed, judging) as prompted:
        yield ModelJudge(prompted, prompts)


@contextmanager
def opened_prompted(
    model: "str | Completer", store: Store, progress: Progress, seed: int, judging: Judging
) -> "Iterator[LoggedPrompter]":
    """A language model to ask with templates, given by a spec or open; its answers go through the
    log of `store`."""
    from kgbias.graph.prompting import LoggedPrompter
    from kgbias.models import open_model

    asked: dict[str, Any] = {n: value for n, value in judging.items() if n != "prompts"}
    how = {name: asked.pop(name) for name in ("form", "temperature") if name in asked}
    with ExitStack() as opened:
        if isinstance(model, str):
            model = opened.enter_context(closing(open_model(model, notify=progress.note, **asked)))
        yield LoggedPrompter(model, store, seed=seed, progress=progress, **how)


def check_judging(repeats: int, judge: object, judging: Judging) -> None:
    from kgbias.faithfulness import LOCAL_JUDGES

    if repeats < 1:
        raise UsageError("`repeats` must be at least 1")
    given = [name for name, value in judging.items() if value is not None]
    if given and (judge is None or judge in LOCAL_JUDGES):
        raise UsageError(f"`{given[0]}` needs a judge that is a language model")


def embedder(progress: Progress) -> "Callable[[Sequence[str]], Any]":
    """The offline sentence embeddings, loaded when the first text is embedded."""

    @cache
    def vectors() -> "Callable[[Sequence[str]], Any]":
        from kgbias.models.embed import SentenceVectors

        return SentenceVectors(notify=progress.note)

    return lambda texts: vectors()(texts)
