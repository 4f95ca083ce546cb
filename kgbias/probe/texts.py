"""The surprisal of each token of a text."""

from collections.abc import Sequence

from kgbias.models.score.base import TextScorer
from kgbias.probe.result import ScoredBy, TextSurprisals


def surprisals(scorer: TextScorer, texts: Sequence[str]) -> TextSurprisals:
    """The surprisal of each token of each text, -log2 p(token | the tokens before it), in bits;
    for a masked model, given all other tokens. Raises DataError for a text that cannot be
    scored."""
    found = tuple((text, scorer.surprisals(text)) for text in texts)
    return TextSurprisals(ScoredBy.of(scorer), found)
