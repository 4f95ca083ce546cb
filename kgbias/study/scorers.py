"""Opening what scores: a model that says how probable texts are, and the judge of a crawl."""

from typing import TYPE_CHECKING, TypedDict

from kgbias.errors import UsageError
from kgbias.progress import Progress

if TYPE_CHECKING:
    from kgbias.crawl.judge import Judge
    from kgbias.models.score.base import TextScorer


class ScorerOptions(TypedDict, total=False):
    """How a spec is opened to score texts (see `kgbias.open_scorer`); None is the default."""

    begin: str | None
    device: str | None
    dtype: str | None
    base_url: str | None


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


def judge_of(language: str) -> "Judge":
    """The offline scorer of acceptability, to judge the statements of a crawl in this language. It
    runs on the CPU, so that the same crawl is judged the same everywhere.

    Raises UsageError where it does not read the language."""
    from kgbias.crawl.judge import Judge
    from kgbias.measure.scorers import load_scorer

    scorer = load_scorer("acceptability", device="cpu")
    if scorer.language not in (None, language):
        raise UsageError(
            f"`min_acceptability` is judged by a scorer that reads English only: it does not apply "
            f"to prompts in the language {language!r}"
        )
    return Judge(
        f"{scorer.name}:{scorer.version}",
        lambda sentences: [judgement.value for judgement in scorer.score(sentences)],
    )
