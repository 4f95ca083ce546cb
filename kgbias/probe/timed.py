"""What scoring takes."""

import math
import time
from dataclasses import dataclass

from kgbias.models.score.base import Grid


@dataclass(frozen=True, slots=True)
class Took:
    """So many `tokens` were read for all probes, in so many `seconds` at the speed of those that
    were computed in this call; NaN where none was."""

    tokens: int
    seconds: float


class Watch:
    """Runs from its making to the last grid that it is shown."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._tokens, self._seconds = 0, 0.0

    def saw(self, grid: Grid) -> None:
        """A grid was computed."""
        self._tokens += int(grid.whole.tokens.sum())
        self._seconds = time.monotonic() - self._began

    def took(self, tokens: int) -> Took:
        """Of so many tokens, those that were known before among them."""
        return Took(tokens, self._seconds * tokens / self._tokens if self._tokens else math.nan)
