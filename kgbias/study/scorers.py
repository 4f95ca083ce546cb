"""Opening what scores: a model that says how probable texts are, and the judge of a crawl."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from kgbias.errors import UsageError
from kgbias.graph.store import StoredRun
from kgbias.io.progress import Progress
from kgbias.models.base import Completer
from kgbias.parallel import Executor
from kgbias.parameters import Names

if TYPE_CHECKING:
    from kgbias.crawl.config import CrawlConfig
    from kgbias.crawl.configure import Judge
    from kgbias.crawl.width import Gauge
    from kgbias.measure.scorers import Scorer
    from kgbias.models.score.base import TextScorer
    from kgbias.models.score.spread import Scoring


class ScorerOptions(TypedDict, total=False):
    """How a spec is opened to score texts (see `kgbias.open_scorer`); None is the default."""

    begin: str | None
    device: str | None
    dtype: str | None
    base_url: str | None
    instruction: str | None


OPENING = tuple(ScorerOptions.__annotations__)


def spec_of(model: str | Completer, opening: Mapping[str, Any]) -> str:
    """The spec of a model that is named or open. Raises UsageError for options that would open one
    that is open."""
    if isinstance(model, str):
        return model
    if opening:
        raise UsageError(f"`{min(opening)}` belongs to opening a model: this one is open")
    return model.info.name


@contextmanager
def opened_completer(
    model: str | Completer, opening: Mapping[str, Any], progress: Progress
) -> Iterator[Completer]:
    """The model of a spec, closed at the end, or the one that is already open."""
    if not isinstance(model, str):
        yield model
        return
    from kgbias.models import open_model

    with closing(open_model(model, notify=progress.note, **opening)) as opened:
        yield opened


def spread_scorer(
    model: "str | Scoring",
    options: ScorerOptions,
    progress: Progress,
    executor: Executor | None,
) -> "Scoring":
    """As `opened_scorer`; with an executor, the model of the spec as its workers open it."""
    from kgbias.models.score.spread import SpreadScorer

    if isinstance(model, SpreadScorer):
        return model
    if executor is None:
        return opened_scorer(model, options, progress)
    if not isinstance(model, str):
        raise UsageError("`executor` opens models itself: name a spec instead of an open one")
    given = {name: value for name, value in options.items() if value is not None}
    return SpreadScorer(executor, model, given, progress)


def opened_scorer(
    model: "str | TextScorer", options: ScorerOptions, progress: Progress
) -> "TextScorer":
    """The model of a spec, or the one that is already open."""
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(model, str):
        if given:
            raise UsageError(f"`{min(given)}` belongs to opening a model: this one is open")
        return model
    from kgbias.models.score.load import open_scorer

    return open_scorer(model, notify=progress.note, **given)  # type: ignore[arg-type]


def listed(models: "str | TextScorer | Sequence[str | TextScorer]") -> "list[str | TextScorer]":
    """The models, where there may be one alone."""
    return (
        list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    )


def outputs(output: str | Path | None, models: "Sequence[str | TextScorer]") -> list[Path | None]:
    """Where the probes of each model are written: for several, beside `output`, under its name and
    the model's."""
    if output is None or len(models) < 2:
        return [None if output is None else Path(output)] * len(models)
    path, found = Path(output), list[Path | None]()
    for model in models:
        spec = model if isinstance(model, str) else model.info.name
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
) -> "Iterator[tuple[int, Scoring]]":
    """The models one after another, each with its place, opened here or by an executor's workers.
    What a spec was opened for is forgotten before the next one is, so that the memory of one model
    is enough. A spec that is none is an error before the first is opened."""
    from kgbias.models.load import unload
    from kgbias.models.spec import parse

    for model in models if len(models) > 1 else ():
        if isinstance(model, str):
            parse(model)
    for number, model in enumerate(models):
        if number:
            unload()
        if len(models) > 1:
            name = model if isinstance(model, str) else model.info.name
            progress.note(f"{number + 1}/{len(models)}: {name}")
        yield number, spread_scorer(model, options, progress, executor)


def judge_of(language: str) -> "Judge":
    """The offline scorer of acceptability, to judge the statements of a crawl in this language. It
    runs on the CPU, so that the same crawl is judged the same everywhere.

    Raises UsageError where it does not read the language."""
    from kgbias.crawl.configure import Judge
    from kgbias.measure.scorers import load_scorer

    scorer = load_scorer("acceptability", device="cpu")
    if scorer.language not in (None, language):
        raise UsageError(
            f"`min_acceptability` is judged by a scorer that reads English only: it does not apply "
            f"to prompts in the language {language!r}"
        )
    return Judge(
        f"{scorer.name}:{scorer.version}",
        lambda sentences: [judged.value for judged in scorer.score(sentences) if judged],
    )


def gauge_of(config: "CrawlConfig") -> "Gauge | None":
    """The offline scorers of what a crawl is measured by between its rounds, as its figures are by
    default: those of the measure, of the statements that make enough sense to count. They run on
    the CPU, so that the same crawl ends at the same round everywhere. None where it ends
    otherwise.

    Raises UsageError where they do not read the language of the crawl."""
    if config.until_width is None:
        return None
    from kgbias.crawl.width import Gauge
    from kgbias.graph.selection import SENSE
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
            Score("", own.value, own.label) if own and s and s.value >= SENSE else None
            for own, s in zip(found, sense, strict=True)
        ]

    return Gauge(" ".join(f"{s.name}:{s.version}" for s in scorers), score)


def measuring_scorers(
    run: StoredRun,
    wanted: Mapping[str, Names | None],
    progress: Progress,
    *,
    device: str = "auto",
    labels: Mapping[str, str] | None = None,
) -> "list[Scorer]":
    """The scorers of each measure, by their specs; the first spec of a measure comes last, since
    what scores last counts. A language model is held against labelled statements before its
    judgements are used, and the agreement is shown.

    Raises UsageError for a spec that is not there, and for one given twice."""
    from kgbias.measure.labelled import check
    from kgbias.measure.price import specs_of
    from kgbias.measure.scorers import load_scorer, no_labels, takes_labels

    scorers, labelled = [], False
    for measure, specs in specs_of(wanted).items():
        for spec in reversed(specs):
            fixed = spec.startswith(("vectors:", "scores:"))  # runs nowhere
            told = takes_labels(measure, spec)
            labelled |= told
            scorers.append(
                scorer := load_scorer(
                    measure,
                    spec,
                    device="auto" if fixed else device,
                    labels=labels if told else None,
                    log=run.store,
                )
            )
            if spec.startswith("llm:"):
                progress.note(str(check(scorer)))
    if labels and not labelled:
        raise no_labels()
    return scorers
