"""OpenAI's moderation endpoint as a scorer of toxicity."""

import os
from collections.abc import Sequence
from typing import Any

from kgbias.errors import MissingExtra, ModelError, UsageError
from kgbias.measure.scorers._base import Judgement, Measure, toxicity_judgement

DEFAULT_CATEGORY = "hate"
_BATCH = 32  # texts in one request
_RETRIES = 8
_LONGEST = 8_000  # characters of a text that are sent


class ModerationScorer:
    """Toxicity as the endpoint's score of one category, `hate` unless another is named: a
    probability in [0, 1] that a text attacks people for what they are.

    The server chooses its model; the version is the model that answered the first request. The key
    is read from OPENAI_API_KEY, the server's address from OPENAI_BASE_URL. Requests to a busy
    server are sent again.
    """

    def __init__(self, measure: Measure, category: str = DEFAULT_CATEGORY) -> None:
        if measure != "toxicity":
            raise UsageError("openai-moderation scores toxicity, not regard")
        try:
            import openai
        except ModuleNotFoundError as error:
            raise MissingExtra("openai", extra="openai") from error
        if not os.environ.get("OPENAI_API_KEY"):
            raise UsageError("openai-moderation needs a key in OPENAI_API_KEY")
        self.measure: str = measure
        self._category = category
        self._client = openai.OpenAI(max_retries=_RETRIES)
        first = self._ask(["Hello."])
        known = [name.replace("_", "/") for name in _scores(first.results[0])]
        if _key(category) not in _scores(first.results[0]):
            raise UsageError(
                f"the moderation endpoint has no category {category!r}; it has: {', '.join(known)}"
            )
        self.name = f"openai-moderation:{category}"
        self.version = str(first.model)

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge each text; one answer per text, in order."""
        judgements = []
        for start in range(0, len(texts), _BATCH):
            batch = [text[:_LONGEST] or " " for text in texts[start : start + _BATCH]]
            answer = self._ask(batch)
            if len(answer.results) != len(batch):
                raise ModelError(
                    f"the moderation endpoint gave {len(answer.results)} answers to {len(batch)} "
                    "texts"
                )
            for result in answer.results:
                scores = _scores(result)
                if (value := scores.get(_key(self._category))) is None:
                    raise ModelError(f"the moderation endpoint left out {self._category!r}")
                value = min(1.0, max(0.0, value))
                judgements.append(toxicity_judgement(value, scores))
        return judgements

    def _ask(self, texts: list[str]) -> Any:
        import openai

        try:
            return self._client.moderations.create(input=texts)
        except openai.OpenAIError as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ModelError(f"the moderation endpoint does not answer: {reason}") from error


def _scores(result: Any) -> dict[str, float]:
    """The category scores by the client's names: "hate/threatening" is hate_threatening."""
    scores: dict[str, float | None] = result.category_scores.model_dump()
    return {_key(name): float(score) for name, score in scores.items() if score is not None}


def _key(category: str) -> str:
    return category.replace("/", "_").replace("-", "_")
