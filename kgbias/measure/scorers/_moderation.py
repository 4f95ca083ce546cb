"""OpenAI's moderation endpoint as a scorer of toxicity and identity attack."""

import os
from collections.abc import Sequence
from typing import Any

from kgbias.errors import ModelError, UsageError
from kgbias.io.wording import pluralise
from kgbias.measure.scorers._base import Judgement, probability_judgement
from kgbias.measures import MEASURES, get_measure
from kgbias.models.http import BlockingClient, number_between, server_url

BATCH_TEXTS = 32  # texts in one request
_MAX_RETRIES = 8
_TIMEOUT_SECONDS = 120.0  # seconds for one answer
_ROUNDING = 1e-6  # how far a score may lie outside [0, 1]
_MAX_CHARACTERS = 8_000  # characters of a text that are sent


class ModerationScorer:
    """A measure as the endpoint's score of one category, that of its entry (`hate` for toxicity and
    identity attack) unless another is named: a probability in [0, 1].

    The server chooses its model; the version is the model that answered the first request. The key
    is read from OPENAI_API_KEY, the server's address from OPENAI_BASE_URL. Requests to a busy
    server are sent again.
    """

    language = None

    def __init__(self, measure: str, category: str = "") -> None:
        category = category or get_measure(measure).moderation
        if not get_measure(measure).moderation:
            measure_names = " and ".join(
                m.name for m in MEASURES.own_entries.values() if m.moderation
            )
            raise UsageError(f"openai-moderation scores {measure_names}, not {measure}")
        if not os.environ.get("OPENAI_API_KEY"):
            raise UsageError("openai-moderation needs a key in OPENAI_API_KEY")
        self.measure: str = measure
        self._category = category
        url = server_url()
        self._server = BlockingClient(url, _TIMEOUT_SECONDS, _MAX_RETRIES)
        # Which model answers, and which categories it has, only an answer says.
        (first_scores,), version = self._request_scores(["Hello."])
        if _category_key(category) not in first_scores:
            category_names = ", ".join(name.replace("_", "/") for name in first_scores)
            raise UsageError(
                f"the moderation endpoint has no category {category!r}; it has: "
                f"{category_names[:500]}"
            )
        self.name = f"openai-moderation:{category}"
        self.version = version

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge each text; one answer per text, in order."""
        judgements = []
        for start in range(0, len(texts), BATCH_TEXTS):
            batch = [text[:_MAX_CHARACTERS] or " " for text in texts[start : start + BATCH_TEXTS]]
            for scores in self._request_scores(batch)[0]:
                if (value := scores.get(_category_key(self._category))) is None:
                    raise ModelError(f"the moderation endpoint left out {self._category!r}")
                judgements.append(probability_judgement(self.measure, value, scores))
        return judgements

    def _request_scores(self, texts: list[str]) -> tuple[list[dict[str, float]], str]:
        """The scores of each text, and the model that gave them."""
        answer = self._server.ask(
            lambda client: client.moderations.with_raw_response.create(input=texts),
            "the moderation endpoint",
        )
        results, model = answer.get("results"), answer.get("model")
        if not isinstance(results, list) or len(results) != len(texts):
            count = len(results) if isinstance(results, list) else "no"
            raise ModelError(
                f"the moderation endpoint gave {count} answers to {pluralise(len(texts), 'text')}"
            )
        version = self._server.secrets.clean_line(model, 100) if isinstance(model, str) else ""
        return [self._category_scores(result) for result in results], version

    def _category_scores(self, result: Any) -> dict[str, float]:
        """The category scores by one form of their names: "hate/threatening" is hate_threatening.
        Raises ModelError for a score that is not a number from 0 to 1."""
        scores = result.get("category_scores") if isinstance(result, dict) else None
        if not isinstance(scores, dict):
            raise ModelError("the moderation endpoint gives no category scores")
        scores_by_key = {}
        for name, score in scores.items():
            if score is None:
                continue
            value = number_between(score, -_ROUNDING, 1 + _ROUNDING)
            if value is None:
                raise ModelError("the moderation endpoint gives a score that is not from 0 to 1")
            scores_by_key[self._server.secrets.clean(_category_key(str(name)))] = min(
                1.0, max(0.0, value)
            )
        return scores_by_key


def _category_key(category: str) -> str:
    return category.replace("/", "_").replace("-", "_")
