"""The requests of one call to a model on this machine: who answers takes them from here as rows
become free. Requests may join while others are answered."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from kgbias.models.base import Completion, Request

Finished = list[tuple[int, Completion]]


@dataclass(frozen=True, slots=True)
class Task:
    """A request to answer, by its place in the call, with the tokens of its prompt."""

    index: int
    request: Request
    prompt: list[int]


class TaskQueue:
    """What is left to do of the requests, whose tokenised prompts stand beside them; both lists may
    grow. `context` is how many tokens the model reads.

    Several may take from it at the same time. One of them, who owns the lists, says what is done.
    """

    def __init__(
        self, requests: Sequence[Request], prompts: Sequence[list[int]], context: int
    ) -> None:
        self._requests, self._prompts, self._context = requests, prompts, context
        self._seen = 0  # how many of them were taken in
        self._waiting: list[Task] = []  # the next one last
        self._unanswered: dict[int, Task] = {}
        self._readers: dict[tuple[int, ...], int] = {}  # who has read a prompt
        self._changed = threading.Condition()
        self._is_over = False

    def add_new(self) -> Finished:
        """Take in the requests that have joined; returns the answers to those that need no model.
        Equal prompts are adjacent, to be read once, and longest first keeps rows of similar length
        in one batch."""
        new_indexes = range(self._seen, len(self._prompts))
        self._seen = len(self._prompts)
        prompts, immediate, tasks = self._prompts, Finished(), list[Task]()
        for index in sorted(new_indexes, key=lambda i: (-len(prompts[i]), prompts[i], i)):
            request = self._requests[index]
            if completion := answer_without_model(prompts[index], request, self._context):
                immediate.append((index, completion))
            else:
                tasks.append(Task(index, request, prompts[index]))
        with self._changed:
            self._waiting += reversed(tasks)
            self._unanswered |= {task.index: task for task in tasks}
            self._changed.notify_all()
        return immediate

    @property
    def is_done(self) -> bool:
        """Whether all requests so far are answered."""
        return not self._unanswered

    def take(self, count: int, who: int = 0, *, wait: bool = False) -> list[Task]:
        """Up to so many requests; first those whose prompts nobody else has read. With `wait`, none
        only if there will be none any more."""
        with self._changed:
            while wait and not self._waiting and not self._is_over:
                self._changed.wait()
            taken: list[Task] = []
            passed: list[Task] = []
            while self._waiting and len(taken) < count:
                task = self._waiting.pop()
                is_elsewhere = self._readers.get(tuple(task.prompt), who) != who
                (passed if is_elsewhere else taken).append(task)
            while passed and len(taken) < count:
                taken.append(passed.pop(0))
            self._waiting += reversed(passed)
            self._readers |= {tuple(task.prompt): who for task in taken}
            return taken

    def give_back(self, tasks: Sequence[Task]) -> None:
        """Let others do what one took who is gone."""
        with self._changed:
            self._waiting += tasks
            self._changed.notify_all()

    def finish(self, finished: Finished) -> None:
        """Note what is answered."""
        for index, _ in finished:
            del self._unanswered[index]

    def end(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


def answer_without_model(
    tokens: Sequence[int], request: Request, context: int
) -> Completion | None:
    """The completion of a request that needs no model, because its prompt leaves no room for an
    answer or no answer is wanted."""
    if len(tokens) + request.max_tokens > context:
        reason = f"the prompt is longer than the model's context of {context} tokens"
        return Completion("", "error", error=reason)
    if request.max_tokens < 1:
        return Completion("", "length", len(tokens))
    return None
