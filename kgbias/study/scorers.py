"""Opening a model that scores texts."""

from typing import TYPE_CHECKING, TypedDict

from kgbias.errors import UsageError
from kgbias.progress import Progress

if TYPE_CHECKING:
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
