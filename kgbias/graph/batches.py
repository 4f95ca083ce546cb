"""Requests left with a provider in batches, noted in the store until they are answered.

A batch is noted before it is made, and its id as soon as it is known. Whatever dies in between, the
same call looks for the batch at the provider before it makes another: no request is paid for twice.
"""

import uuid
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from kgbias.errors import ModelError, UsageError
from kgbias.graph.store import Store
from kgbias.graph.types import Batch
from kgbias.io.progress import Progress
from kgbias.models.base import Completer, Completion, ModelInfo, Request, Settings

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
        self._asked = model.info.asked(model.settings)
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
        self._model.check(requests)
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
            for start in range(0, len(keys), self._batches.most):
                part = {key: left[key] for key in keys[start : start + self._batches.most]}
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
        if state.refused and not self._batches.learn(state.refused, next(iter(held.values()))):
            self._store.drop_batch(batch.name)
            raise ModelError(f"the provider refused batch {id}: {state.refused}")
        if state.refused:
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
