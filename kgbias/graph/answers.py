"""A model behind the answer log of a store: every answer is kept, raw and durable, before anyone
sees it, and what the log can answer is never asked again.

Requests may be left with a provider in batches, noted in the store until they are answered. A batch
is noted before it is made, and its id as soon as it is known. Whatever dies in between, the same
call looks for the batch at the provider before it makes another: no request is paid for twice.

A key holds everything that can change an answer (`Request.key`): model and revision, how it is
asked, prompt, temperature, truncation, limits, and a random seed of its own. So resuming has no
code of its own: the same command finds in the log what was answered, and asks for the rest. All
runs of a store share the log: a run with more groups asks only about those.

`BatchedModel` wraps the model that is asked, so the log, budgets and callers know nothing of
batches. A noted batch is no part of the graph, and is removed when its answers are in the log.
"""

import uuid
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from kgbias.errors import Interrupted, ModelError, UsageError
from kgbias.graph.leases import OwnLease, hold_lease
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Batch, Run, canonical_json, storable
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.wording import pluralise
from kgbias.models.base import (
    Completer,
    Completion,
    ModelInfo,
    PromptForm,
    Request,
    Settings,
    find_form,
)
from kgbias.models.budget import Budget, Usage, estimate_tokens

_MAX_ATTEMPTS = 3  # how often a request is left with the provider if it comes back unanswered


class BatchedModel:
    """A `Completer` that leaves requests with the provider. Ctrl-C leaves them there: asking them
    again waits for the same batch.

    The very first request is asked directly, to learn in a second, not a day, what the server
    refuses.
    """

    def __init__(self, model: Completer, store: Store, progress: Progress) -> None:
        model_abilities = getattr(model, "abilities", None)
        if model_abilities is None or model_abilities.batch == "no":
            raise UsageError(
                f"`batch` needs a provider that takes batches, and {model.info.name} does not"
            )
        self._model: Any = cast(Any, model)
        self._batches: Any = self._model.batches()
        self._store = store
        self._progress = progress
        self._configured_id = model.info.configured_id(model.settings)
        self._limits_known = False  # whether what the server refuses is known

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
            # Equal requests are left with the provider once.
            places.setdefault(request.key(self.info, self.settings), []).append(index)
        missing = {key: requests[indexes[0]] for key, indexes in places.items()}
        failures: dict[str, list[Completion]] = {}  # failed answers, to be asked for again
        self._model.check_requests(requests)
        while missing:
            batches = self._find_noted(missing)
            if not batches and not self._limits_known:
                key = next(iter(missing))
                for answers in self._model.complete([missing.pop(key)]):
                    self._limits_known = True
                    yield [(index, answer) for _, answer in answers for index in places[key]]
                continue
            for batch in map(self._locate, batches or self._submit_new(missing)):
                if batch is None or not any(key in missing for key in batch.keys):
                    continue
                collected = self._collect(batch, missing)
                finished = []
                for key, answer in collected.items():
                    attempts = failures.setdefault(key, [])
                    attempts.append(answer)
                    if answer.finish != "error" or len(attempts) == _MAX_ATTEMPTS:
                        finished += [(index, _sum_tokens(attempts)) for index in places[key]]
                        del missing[key]
                if finished:
                    yield finished
                self._forget_answered(batch, collected.keys())

    def _find_noted(self, missing: Mapping[str, Request]) -> list[Batch]:
        """The batches noted in the store that hold any of these requests."""
        batches = self._store.batches(self._configured_id)
        return [batch for batch in batches if any(key in missing for key in batch.keys)]

    def _submit_new(self, missing: Mapping[str, Request]) -> list[Batch]:
        """New batches of all these requests, each noted before it is made."""
        submitted = []
        for form in ("completion", "chat"):  # which go to different addresses
            keys = [key for key, request in missing.items() if request.form == form]
            for start in range(0, len(keys), self._batches.batch_size):
                batch_requests = {
                    key: missing[key] for key in keys[start : start + self._batches.batch_size]
                }
                batch = Batch(
                    f"kgbias-{uuid.uuid4().hex}",
                    self._configured_id,
                    tuple(batch_requests),
                    self._model.learned,
                    datetime.now(UTC),
                )
                # Before it is made: a process that dies in between looks for it by its name.
                self._store.keep_batch(batch)
                batch_id = self._batches.submit(
                    batch.name, batch_requests, batch.created, self._noted_ids()
                )
                self._store.keep_batch(batch := replace(batch, id=batch_id))
                self._progress.note(
                    f"{batch_id}: {len(batch_requests):,} of the requests; Ctrl-C leaves the "
                    "batch with the provider, and the same command waits for it"
                )
                submitted.append(batch)
        return submitted

    def _noted_ids(self) -> set[str]:
        """The ids of all noted batches."""
        return {batch.id for batch in self._store.batches(self._configured_id)}

    def _locate(self, batch: Batch) -> Batch | None:
        """A batch with its id; None if the process that noted it died before making it."""
        if batch.id:
            return batch
        batch_id = self._batches.find(batch.name, batch.keys, batch.created, self._noted_ids())
        if batch_id is None:
            self._store.drop_batch(batch.name)
            return None
        self._store.keep_batch(batch := replace(batch, id=batch_id))
        return batch

    def _collect(self, batch: Batch, missing: Mapping[str, Request]) -> dict[str, Completion]:
        """The batch's answers to those of these requests that it holds; empty if the provider
        rejected it but may accept another, without what it refused."""
        batch_requests = {key: missing[key] for key in batch.keys if key in missing}
        batch_id = batch.id
        self._model.learned = batch.learned
        self._limits_known = True
        with _say_batch_stays(batch_id):
            for progress in self._batches.watch(batch_id):
                self._progress.note(f"{batch_id}: {progress.done:,} of {progress.total:,} done")
        if progress.refusal and not self._batches.adapt_to_refusal(
            progress.refusal, next(iter(batch_requests.values()))
        ):
            self._store.drop_batch(batch.name)
            raise ModelError(f"the provider refused batch {batch_id}: {progress.refusal}")
        if progress.refusal:
            return {}
        with _say_batch_stays(batch_id):
            results = self._batches.results(batch_id, batch_requests, progress.done)
        no_answer = Completion("", "error", error=f"batch {batch_id} has no answer to this request")
        answers = {key: results.get(key, no_answer) for key in batch_requests}
        return {k: replace(a, details={**a.details, "batch": batch_id}) for k, a in answers.items()}

    def _forget_answered(self, batch: Batch, answered_keys: Collection[str]) -> None:
        """Forget a batch, except for its requests that were not asked for now."""
        remaining_keys = tuple(
            # Without any answer, the provider rejected the batch as a whole.
            key
            for key in batch.keys
            if answered_keys and key not in answered_keys
        )
        if remaining_keys:
            self._store.keep_batch(replace(batch, keys=remaining_keys))
        else:
            self._store.drop_batch(batch.name)


@contextmanager
def _say_batch_stays(batch_id: str) -> Iterator[None]:
    """If a batch cannot be reached now, say in the error that it is not lost."""
    try:
        yield
    except ModelError as error:
        raise ModelError(
            f"{error}; {batch_id} stays with the provider, and the same command waits for it"
        ) from error


def _sum_tokens(answers: Sequence[Completion]) -> Completion:
    """The last of these answers, with the tokens of them all, which were paid for."""
    return replace(
        answers[-1],
        prompt_tokens=sum(answer.prompt_tokens for answer in answers),
        completion_tokens=sum(answer.completion_tokens for answer in answers),
    )


_MIN_BATCH_SHARE = 0.1  # of the missing requests: fewer are not worth hours of waiting


class LoggedModel:
    """Asks a model through the answer log of a store.

    `asked_count` counts the requests put to the model, `failed_count` those that got no answer, and
    `cached_count` those that the log answered. A failure is not kept: the next run asks again.
    `usage` is the cost; it counts towards `budget`, which others may share.
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
        self.usage = Usage(prices=self._budget.usage.prices)
        self.asked_count = self.cached_count = self.failed_count = 0
        self._lease: OwnLease | None = None  # the lease of the run that is asked for, while one is
        self._pending_keys: set[str] = set()  # requests being put to the model, by key

    @contextmanager
    def lease_run(self, run: Run) -> Iterator[Run]:
        """Inside this context, no other process asks for this run; it is given as the store has it.
        Raises RunConflict, which says who does, if one is at it, unless the budget is to wait."""
        lease = self._store.lease(run.id)
        with hold_lease(
            lease, run.name, wait=self._budget.wait, note=self._progress.note
        ) as self._lease:
            run = self._store.begin_run(
                run
            )  # whoever had it before may have dropped it, or ended it
            if run.status == "stopped":
                self._store.set_status(run.id, "running")
            yield run
        self._lease = None

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers, one for each request, in order. Raises Interrupted when a budget is spent;
        the answers so far are in the log."""
        keys = [request.key(self._model.info, self._model.settings) for request in requests]
        answers = self._store.answers(keys)
        self._count_cached(sum(key in answers for key in keys))
        missing = [(k, r) for k, r in zip(keys, requests, strict=True) if k not in answers]
        if missing:
            answers |= self._ask_model(missing)
        return [answers[key] for key in keys]

    def ask_on(
        self, requests: Sequence[Request], follow: Callable[[int, Answer], Request | None]
    ) -> None:
        """Ask requests, and at the place of each what `follow` makes of the answer there, until it
        makes nothing of any. A model that lets requests join is asked at once, any other once all
        before are answered; so `follow` must not depend on the order of answers. Raises as `ask`.
        """
        abilities = getattr(self._model, "abilities", None)
        if abilities is None or not abilities.joins or self._budget.max_requests is not None:
            _ask_in_passes(self.ask, requests, follow)
            return
        missing: list[tuple[str, Request]] = []
        places: list[int] = []  # of the missing ones

        def add(place: int, request: Request | None) -> None:
            while request is not None:
                key = request.key(self._model.info, self._model.settings)
                answer = self._store.answers([key]).get(key)
                if answer is None:
                    missing.append((key, request))
                    places.append(place)
                    self._pending_keys.add(key)
                    return
                self._count_cached(1)
                request = follow(place, answer)

        keys = [request.key(self._model.info, self._model.settings) for request in requests]
        known_answers = self._store.answers(keys)
        for place, (key, request) in enumerate(zip(keys, requests, strict=True)):
            if answer := known_answers.get(key):
                self._count_cached(1)
                add(place, follow(place, answer))
            else:
                missing.append((key, request))
                places.append(place)
        if missing:
            self._ask_model(missing, lambda n, answer: add(places[n], follow(places[n], answer)))

    def recall_on(
        self, requests: Sequence[Request], follow: Callable[[int, Answer], Request | None]
    ) -> None:
        """As `ask_on`, from the log alone (`recall`)."""
        _ask_in_passes(self.recall, requests, follow)

    def recall(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers in the log, one for each request, in order; an answer that is not in the log
        counts as failed. Nothing is asked and nothing is counted."""
        info = self._model.info
        keys = [request.key(info, self._model.settings) for request in requests]
        answers = self._store.answers(keys)
        return [answers.get(key) or Answer(key, info.id, "", "error") for key in keys]

    def find_form(
        self, requests: Mapping[PromptForm, Request], preferred_form: PromptForm
    ) -> PromptForm:
        """The form in which the model is asked something, given the request in each form: that in
        which the log has an answer to it, else what a trial finds (`kgbias.models.base.find_form`).
        """
        for form in sorted(requests, key=lambda form: form != preferred_form):
            if self.recall([requests[form]])[0].finish != "error":
                return form
        chosen_form, remark = find_form(self._model, preferred_form)
        if remark:
            self._progress.note(remark)
        return chosen_form

    def _count_cached(self, count: int) -> None:
        self.cached_count += count
        self._progress.advance(count, cached=count)

    def _ask_model(
        self,
        missing: Sequence[tuple[str, Request]],
        then: Callable[[int, Answer], None] | None = None,
    ) -> dict[str, Answer]:
        """The answers by their keys. `then` is told each, with the place of its request in
        `missing`, which may grow by that."""
        answers: dict[str, Answer] = {}
        self._pending_keys = {key for key, _ in missing}
        try:
            while missing:
                self._check_limits()
                requests = [request for _, request in missing]
                del requests[self._count_allowed(requests) :]
                # Closed on every way out: it may have threads and connections.
                with closing(self._model.complete(requests)) as batches:
                    for batch in batches:
                        new_answers = self._log_answers([(missing[n][0], c) for n, c in batch])
                        answers |= new_answers
                        if then is not None:
                            for index, _ in batch:
                                then(index, new_answers[missing[index][0]])
                            # What `then` added to `missing` joins what is being asked.
                            requests += [request for _, request in missing[len(requests) :]]
                        self._check_limits()
                missing = missing[len(requests) :]
        except KeyboardInterrupt:
            # It may have come between the commit of answers and their count.
            for answer in self._store.answers(list(self._pending_keys)).values():
                self._count_answer(answer)
            raise
        return answers

    def _check_limits(self) -> None:
        """Raise an error if no more may be asked."""
        self._budget.check()
        if self._lease:
            self._lease.check()

    def _count_allowed(self, requests: Sequence[Request]) -> int:
        """How many of these may be asked now. Raises Interrupted if none may."""
        budget = self._budget
        allowed = budget.count_allowed(len(requests))
        if not allowed:
            raise Interrupted(
                f"stopped at the budget of {pluralise(budget.max_requests or 0, 'request')}"
            )
        if budget.batch:
            sizes = ((estimate_tokens(r.prompt), r.max_tokens) for r in requests[:allowed])
            affordable = budget.count_affordable(sizes)
            if affordable < allowed * _MIN_BATCH_SHARE:
                raise Interrupted(
                    f"stopped: the rest of the budget covers only {affordable} of {allowed} "
                    f"requests"
                )
            allowed = affordable
        return allowed

    def _log_answers(self, batch: Sequence[tuple[str, Completion]]) -> dict[str, Answer]:
        """Write the new answers in one commit; only then are they counted and shown."""
        completions = dict(batch)
        answers = {key: self._build_answer(key, completion) for key, completion in batch}
        self._store.keep_answers([a for a in answers.values() if a.finish != "error"])
        for answer in answers.values():
            self._count_answer(answer)
            is_failure = int(answer.finish == "error")
            if is_failure and self.failed_count == 1:
                self._progress.note(f"a request failed: {completions[answer.key].error}")
            counts = {"failed": is_failure, "tokens": answer.completion_tokens}
            self._progress.advance(1, **counts, **self._cost_by_currency(answer))
        return answers

    def _count_answer(self, answer: Answer) -> None:
        self._pending_keys.discard(answer.key)
        self.asked_count += 1
        self.failed_count += answer.finish == "error"
        self._budget.count_request(answer.prompt_tokens, answer.completion_tokens)
        self.usage.prompt_tokens += answer.prompt_tokens
        self.usage.completion_tokens += answer.completion_tokens

    def _cost_by_currency(self, answer: Answer) -> dict[str, float]:
        """The cost of an answer, under the name of the currency."""
        if (prices := self.usage.prices) is None:
            return {}
        cost = prices.cost_of(answer.prompt_tokens, answer.completion_tokens)
        return {prices.currency or "of money": cost}

    def _build_answer(self, key: str, completion: Completion) -> Answer:
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


def _ask_in_passes(
    ask: Callable[[Sequence[Request]], list[Answer]],
    requests: Sequence[Request],
    follow: Callable[[int, Answer], Request | None],
) -> None:
    """Ask requests, then what follows at their places, and so on."""
    pending = list(enumerate(requests))
    while pending:
        answers = ask([request for _, request in pending])
        followed = [
            (place, follow(place, answer))
            for (place, _), answer in zip(pending, answers, strict=True)
        ]
        pending = [(place, request) for place, request in followed if request is not None]
