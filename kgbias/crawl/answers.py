"""A model behind the answer log: every answer is kept, raw and durable, before anyone sees it, and
a request that the log can answer is never asked."""

from collections.abc import Sequence
from contextlib import closing

from kgbias.errors import Interrupted
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, canonical_json
from kgbias.models.base import Completer, Request
from kgbias.progress import Progress


class LoggedModel:
    """Asks a model through the answer log of a store.

    `asked` counts the requests that the model answered, `cached` those that the log answered,
    `failed` those that got no answer. A failure is not kept: the next run asks again.
    """

    def __init__(
        self,
        model: Completer,
        store: Store,
        progress: Progress,
        *,
        max_requests: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._model = model
        self._store = store
        self._progress = progress
        self._max_requests = max_requests
        self._max_tokens = max_tokens
        self.asked = self.cached = self.failed = self.tokens = 0

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers, one for each request, in order. Raises Interrupted when a budget is spent;
        what was answered until then is in the log."""
        keys = [request.key(self._model.info) for request in requests]
        found = self._store.answers(keys)
        self.cached += sum(key in found for key in keys)
        self._progress.advance(sum(key in found for key in keys), cached=len(found))
        missing = [(k, r) for k, r in zip(keys, requests, strict=True) if k not in found]
        if missing:
            found |= self._ask_model(missing)
        return [found[key] for key in keys]

    def _ask_model(self, missing: Sequence[tuple[str, Request]]) -> dict[str, Answer]:
        allowed = missing
        if self._max_requests is not None:
            allowed = missing[: max(0, self._max_requests - self.asked)]
        answers: dict[str, Answer] = {}
        if allowed:
            with closing(self._model.complete([request for _, request in allowed])) as completions:
                for index, completion in completions:
                    key = allowed[index][0]
                    details = dict(completion.details)
                    if completion.error:
                        details["error"] = completion.error
                    answers[key] = answer = Answer(
                        key,
                        self._model.info.id,
                        completion.text,
                        completion.finish,
                        completion.prompt_tokens,
                        completion.completion_tokens,
                        completion.seconds,
                        canonical_json(details) if details else "",
                    )
                    if completion.finish == "error":
                        self.failed += 1
                        self._progress.advance(failed=1)
                    else:
                        self._store.keep_answers([answer])
                        self._progress.advance(tokens=completion.completion_tokens)
                    self.asked += 1
                    self.tokens += completion.prompt_tokens + completion.completion_tokens
                    if self._max_tokens is not None and self.tokens >= self._max_tokens:
                        raise Interrupted(f"stopped at the budget of {self._max_tokens} tokens")
        if len(allowed) < len(missing):
            raise Interrupted(f"stopped at the budget of {self._max_requests} requests")
        return answers
