"""A model behind the answer log of a store: every answer is kept, raw and durable, before anyone
sees it, and what the log can answer is never asked again."""

from collections.abc import Sequence
from contextlib import closing

from kgbias.errors import Interrupted
from kgbias.graph.batches import BatchedModel
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, canonical_json, storable
from kgbias.io.progress import Progress, Silent
from kgbias.models.base import Completer, Completion, Request
from kgbias.models.budget import Budget, Spent, about_tokens

_WORTH_A_BATCH = 0.1  # of the missing requests: fewer are not worth hours of waiting


class LoggedModel:
    """Asks a model through the answer log of a store.

    `asked` counts the requests put to the model, `failed` those that got no answer, and `cached`
    those that the log answered. A failure is not kept: the next run asks again. `spent` is the
    cost; it counts towards `budget`, which others may share.
    """

    def __init__(
        self,
        model: Completer,
        store: Store,
        progress: Progress | None = None,
        *,
        budget: Budget | None = None,
    ) -> None:
        self._store = store
        self._progress = progress or Silent()
        self._budget = budget or Budget()
        batch = self._budget.batch
        self._model: Completer = BatchedModel(model, store, self._progress) if batch else model
        self.spent = Spent(prices=self._budget.spent.prices)
        self.asked = self.cached = self.failed = 0

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers, one for each request, in order. Raises Interrupted when a budget is spent;
        the answers so far are in the log."""
        keys = [request.key(self._model.info, self._model.settings) for request in requests]
        found = self._store.answers(keys)
        self.cached += sum(key in found for key in keys)
        self._progress.advance(sum(key in found for key in keys), cached=len(found))
        missing = [(k, r) for k, r in zip(keys, requests, strict=True) if k not in found]
        if missing:
            found |= self._ask_model(missing)
        return [found[key] for key in keys]

    def recall(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers in the log, one for each request, in order; an answer that is not in the log
        counts as failed. Nothing is asked and nothing is counted."""
        info = self._model.info
        keys = [request.key(info, self._model.settings) for request in requests]
        found = self._store.answers(keys)
        return [found.get(key) or Answer(key, info.id, "", "error") for key in keys]

    def _ask_model(self, missing: Sequence[tuple[str, Request]]) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        while missing:
            self._budget.check()
            allowed = missing[: self._allowed([request for _, request in missing])]
            with closing(self._model.complete([request for _, request in allowed])) as batches:
                for batch in batches:
                    answers |= self._keep([(allowed[index][0], c) for index, c in batch])
                    self._budget.check()
            missing = missing[len(allowed) :]
        return answers

    def _allowed(self, requests: Sequence[Request]) -> int:
        """How many of these may be asked now. Raises Interrupted if none may."""
        budget = self._budget
        number = budget.allowed(len(requests))
        if not number:
            raise Interrupted(f"stopped at the budget of {budget.max_requests} requests")
        if budget.batch:
            sizes = ((about_tokens(r.prompt), r.max_tokens) for r in requests[:number])
            fit = budget.afforded(sizes)
            if fit < number * _WORTH_A_BATCH:
                raise Interrupted(
                    f"stopped: the rest of the budget covers only {fit} of {number} requests"
                )
            number = fit
        return number

    def _keep(self, batch: Sequence[tuple[str, Completion]]) -> dict[str, Answer]:
        """Write the new answers in one commit; only then are they counted and shown."""
        answers = {key: self._answer(key, completion) for key, completion in batch}
        self._store.keep_answers([a for a in answers.values() if a.finish != "error"])
        for answer in answers.values():
            failed = answer.finish == "error"
            self.asked += 1
            self.failed += failed
            self._budget.spend(answer.prompt_tokens, answer.completion_tokens)
            self.spent.prompt_tokens += answer.prompt_tokens
            self.spent.completion_tokens += answer.completion_tokens
            counts = {"failed": int(failed), "tokens": answer.completion_tokens}
            self._progress.advance(1, **counts, **self._money(answer))
        return answers

    def _money(self, answer: Answer) -> dict[str, float]:
        """The cost of an answer, under the name of the currency."""
        if (prices := self.spent.prices) is None:
            return {}
        cost = prices.of(answer.prompt_tokens, answer.completion_tokens)
        return {prices.currency or "of money": cost}

    def _answer(self, key: str, completion: Completion) -> Answer:
        details = dict(completion.details)
        if completion.error:
            details["error"] = completion.error
        return Answer(
            key,
            self._model.info.id,
            storable(completion.text),  # exactly as the log will return it
            completion.finish,
            completion.prompt_tokens,
            completion.completion_tokens,
            completion.seconds,
            canonical_json(details) if details else "",
        )
