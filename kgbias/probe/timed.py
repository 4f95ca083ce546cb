"""What scoring takes."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from kgbias.models.score.base import Grid, TextScorer
from kgbias.progress import Progress


@dataclass(frozen=True, slots=True)
class Took:
    """So many `tokens` were read for all probes, in so many `seconds` at the speed of those that
    were computed in this call; NaN where none was."""

    tokens: int
    seconds: float


class Timed:
    """Reads grids, and how long they took."""

    def __init__(self, scorer: TextScorer) -> None:
        self._scorer = scorer
        self._tokens, self._seconds = 0, 0.0

    def grid(self, groups: Sequence[str], statements: Sequence[str], progress: Progress) -> Grid:
        """As `TextScorer.grid`."""
        began = time.monotonic()
        found = self._scorer.grid(groups, statements, progress)
        self._seconds += time.monotonic() - began
        self._tokens += int(found.whole.tokens.sum())
        return found

    def took(self, tokens: int) -> Took:
        """Of so many tokens, those that were known before among them."""
        return Took(tokens, self._seconds * tokens / self._tokens if self._tokens else math.nan)
