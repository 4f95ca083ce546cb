"""A model behind the answer log of a store: every answer is kept, raw and durable, before anyone
sees it, and what the log can answer is never asked again.

Requests may be left with a provider in batches, noted in the store until they are answered. A batch
is noted before it is made, and its id as soon as it is known. Whatever dies in between, the same
call looks for the batch at the provider before it makes another: no request is paid for twice.
"""

import uuid
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from kgbias.errors import Interrupted, ModelError, UsageError
from kgbias.graph.holding import OwnLease, hold_lease
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Batch, Run, canonical_json, storable
from kgbias.io.progress import Progress, SilentProgress
from kgbias.models.base import (
    Completer,
    Completion,
    PromptForm,
    ModelInfo,
    Request,
    Settings,
    find_form,
)
from kgbias.models.budget import Budget, Usage, estimate_tokens

_TRIES = 3  # how often a request is left with the provider if it comes back unanswered


class BatchedModel:
    """A `Completer` that leaves requests with the provider. Ctrl-C leaves them there: asking them
    again waits for the same batch.

    The very first request is asked directly, to learn in a second, not a day, what the server
    refuses.
    """

    def __init__(self, model: Completer, store: Store, progress: Progress) -> None:
        able = getattr(model, "abilities", None)
        if able is None or able.batch == "no":
            raise UsageError(
                f"`batch` needs a provider that takes batches, and {model.info.name} does not"
            )
        self._model: Any = cast(Any, model)
        self._batches: Any = self._model.batches()
        self._store = store
        self._progress = progress
        self._asked = model.info.configured_id(model.settings)
        self._known = False  # whether what the server refuses is known

    @property
    def info(self) -> ModelInfo:
        info: ModelInfo = self._model.info
        return info

    @property
    def settings(self) -> Settings:
        settings: Settings = self._model.settings
        return settings

    def close(self) -> None:
        self._model.close()

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        places: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            places.setdefault(request.key(self.info, self.settings), []).append(index)
        left = {key: requests[indexes[0]] for key, indexes in places.items()}
        thrown: dict[str, list[Completion]] = {}  # failed answers, to be asked for again
        self._model.check_requests(requests)
        while left:
            batches = self._noted(left)
            if not batches and not self._known:
                key = next(iter(left))
                for answers in self._model.complete([left.pop(key)]):
                    self._known = True
                    yield [(index, answer) for _, answer in answers for index in places[key]]
                continue
            for batch in map(self._located, batches or self._submitted(left)):
                if batch is None or not any(key in left for key in batch.keys):
                    continue
                found = self._collected(batch, left)
                done = []
                for key, answer in found.items():
                    before = thrown.setdefault(key, [])
                    before.append(answer)
                    if answer.finish != "error" or len(before) == _TRIES:
                        done += [(index, _with_all_tokens(before)) for index in places[key]]
                        del left[key]
                if done:
                    yield done
                self._settle(batch, found.keys())

    def _noted(self, left: Mapping[str, Request]) -> list[Batch]:
        """The batches noted in the store that hold any of these requests."""
        found = self._store.batches(self._asked)
        return [batch for batch in found if any(key in left for key in batch.keys)]

    def _submitted(self, left: Mapping[str, Request]) -> list[Batch]:
        """New batches of all these requests, each noted before it is made."""
        made = []
        for form in ("completion", "chat"):  # which go to different addresses
            keys = [key for key, request in left.items() if request.form == form]
            for start in range(0, len(keys), self._batches.batch_size):
                part = {key: left[key] for key in keys[start : start + self._batches.batch_size]}
                batch = Batch(
                    f"kgbias-{uuid.uuid4().hex}",
                    self._asked,
                    tuple(part),
                    self._model.learned,
                    datetime.now(UTC),
                )
                self._store.keep_batch(batch)
                id = self._batches.submit(batch.name, part, batch.created, self._others())
                self._store.keep_batch(batch := replace(batch, id=id))
                self._progress.note(
                    f"{id}: {len(part):,} of the requests; Ctrl-C leaves the batch with the "
                    "provider, and the same command waits for it"
                )
                made.append(batch)
        return made

    def _others(self) -> set[str]:
        """The ids of all noted batches."""
        return {batch.id for batch in self._store.batches(self._asked)}

    def _located(self, batch: Batch) -> Batch | None:
        """A batch with its id; None if the process that noted it died before making it."""
        if batch.id:
            return batch
        id = self._batches.find(batch.name, batch.keys, batch.created, self._others())
        if id is None:
            self._store.drop_batch(batch.name)
            return None
        self._store.keep_batch(batch := replace(batch, id=id))
        return batch

    def _collected(self, batch: Batch, left: Mapping[str, Request]) -> dict[str, Completion]:
        """The batch's answers to those of these requests that it holds; empty if the provider
        rejected it but may accept another, without what it refused."""
        held = {key: left[key] for key in batch.keys if key in left}
        id = batch.id
        self._model.learned = batch.learned
        self._known = True
        with _kept(id):
            for state in self._batches.watch(id):
                self._progress.note(f"{id}: {state.done:,} of {state.total:,} done")
        if state.refusal and not self._batches.learn(state.refusal, next(iter(held.values()))):
            self._store.drop_batch(batch.name)
            raise ModelError(f"the provider refused batch {id}: {state.refusal}")
        if state.refusal:
            return {}
        with _kept(id):
            found = self._batches.results(id, held, state.done)
        nothing = Completion("", "error", error=f"batch {id} has no answer to this request")
        answers = {key: found.get(key, nothing) for key in held}
        return {k: replace(a, details={**a.details, "batch": id}) for k, a in answers.items()}

    def _settle(self, batch: Batch, answered: Collection[str]) -> None:
        """Forget a batch, except for its requests that were not asked for now."""
        others = tuple(key for key in batch.keys if answered and key not in answered)
        if others:
            self._store.keep_batch(replace(batch, keys=others))
        else:
            self._store.drop_batch(batch.name)


@contextmanager
def _kept(id: str) -> Iterator[None]:
    """If a batch cannot be reached now, say in the error that it is not lost."""
    try:
        yield
    except ModelError as error:
        raise ModelError(
            f"{error}; {id} stays with the provider, and the same command waits for it"
        ) from error


def _with_all_tokens(answers: Sequence[Completion]) -> Completion:
    """The last of these answers, with the tokens of them all, which were paid for."""
    return replace(
        answers[-1],
        prompt_tokens=sum(answer.prompt_tokens for answer in answers),
        completion_tokens=sum(answer.completion_tokens for answer in answers),
    )


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
        self._progress = progress or SilentProgress()
        self._budget = budget or Budget()
        batch = self._budget.batch
        self._model: Completer = BatchedModel(model, store, self._progress) if batch else model
        self.spent = Usage(prices=self._budget.usage.prices)
        self.asked = self.cached = self.failed = 0
        self._held: OwnLease | None = None  # the lease of the run that is asked for, while one is
        self._uncounted: set[str] = set()  # requests being put to the model, by key

    @contextmanager
    def alone(self, run: Run) -> Iterator[Run]:
        """Inside this context, no other process asks for this run; it is given as the store has it.
        Raises RunConflict, which says who does, if one is at it, unless the budget is to wait."""
        lease = self._store.lease(run.id)
        with hold_lease(
            lease, run.name, wait=self._budget.wait, note=self._progress.note
        ) as self._held:
            run = self._store.begin(run)  # whoever had it before may have dropped it, or ended it
            if run.status == "stopped":
                self._store.set_status(run.id, "running")
            yield run
        self._held = None

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

    def find_form(self, asked: Mapping[PromptForm, Request], first: PromptForm) -> PromptForm:
        """The form in which the model is asked something, given the request in each form: that in
        which the log has an answer to it, else what a trial finds (`kgbias.models.base.find_form`).
        """
        for form in sorted(asked, key=lambda form: form != first):
            if self.recall([asked[form]])[0].finish != "error":
                return form
        found, why = find_form(self._model, first)
        if why:
            self._progress.note(why)
        return found

    def _ask_model(self, missing: Sequence[tuple[str, Request]]) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        self._uncounted = {key for key, _ in missing}
        try:
            while missing:
                self._check()
                allowed = missing[: self._allowed([request for _, request in missing])]
                with closing(self._model.complete([request for _, request in allowed])) as batches:
                    for batch in batches:
                        answers |= self._keep([(allowed[index][0], c) for index, c in batch])
                        self._check()
                missing = missing[len(allowed) :]
        except KeyboardInterrupt:
            # It may have come between the commit of answers and their count.
            for answer in self._store.answers(list(self._uncounted)).values():
                self._count(answer)
            raise
        return answers

    def _check(self) -> None:
        """Raise an error if no more may be asked."""
        self._budget.check()
        if self._held:
            self._held.check()

    def _allowed(self, requests: Sequence[Request]) -> int:
        """How many of these may be asked now. Raises Interrupted if none may."""
        budget = self._budget
        number = budget.count_allowed(len(requests))
        if not number:
            raise Interrupted(f"stopped at the budget of {budget.max_requests} requests")
        if budget.batch:
            sizes = ((estimate_tokens(r.prompt), r.max_tokens) for r in requests[:number])
            fit = budget.count_affordable(sizes)
            if fit < number * _WORTH_A_BATCH:
                raise Interrupted(
                    f"stopped: the rest of the budget covers only {fit} of {number} requests"
                )
            number = fit
        return number

    def _keep(self, batch: Sequence[tuple[str, Completion]]) -> dict[str, Answer]:
        """Write the new answers in one commit; only then are they counted and shown."""
        completions = dict(batch)
        answers = {key: self._answer(key, completion) for key, completion in batch}
        self._store.keep_answers([a for a in answers.values() if a.finish != "error"])
        for answer in answers.values():
            self._count(answer)
            failed = int(answer.finish == "error")
            if failed and self.failed == 1:
                self._progress.note(f"a request failed: {completions[answer.key].error}")
            counts = {"failed": failed, "tokens": answer.completion_tokens}
            self._progress.advance(1, **counts, **self._money(answer))
        return answers

    def _count(self, answer: Answer) -> None:
        self._uncounted.discard(answer.key)
        self.asked += 1
        self.failed += answer.finish == "error"
        self._budget.count_request(answer.prompt_tokens, answer.completion_tokens)
        self.spent.prompt_tokens += answer.prompt_tokens
        self.spent.completion_tokens += answer.completion_tokens

    def _money(self, answer: Answer) -> dict[str, float]:
        """The cost of an answer, under the name of the currency."""
        if (prices := self.spent.prices) is None:
            return {}
        cost = prices.cost_of(answer.prompt_tokens, answer.completion_tokens)
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
