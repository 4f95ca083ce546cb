"""Requests answered by this process and others of this machine, each with the model.

All take requests as their rows become free, so none waits for another; what a process that ended
had taken is given back. An answer depends on its request alone
(`kgbias.models.generate`), so it does not matter who gives it. The processes are fresh Python
interpreters (`kgbias.parallel.local`); the weights are mapped from one file, so that they are in
memory once.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from kgbias.io.sandbox import start_python
from kgbias.models.answer_tasks import Finished, Task, TaskQueue
from kgbias.models.base import Request
from kgbias.models.generate import Sampler
from kgbias.models.spec import ModelFiles
from kgbias.parallel.local import describe_ending, using_threads


@dataclass(frozen=True, slots=True)
class ModelToOpen:
    """What another process opens: a model, as this one did."""

    files: ModelFiles
    dtype: str
    batch_size: int

    def open_sampler(self) -> Sampler:
        from kgbias.models.load import load

        loaded = load(self.files, "causal", dtype=self.dtype, device="cpu")
        return Sampler(loaded.model, loaded.tokenizer, batch_size=self.batch_size)


class AnswerProcesses:
    """This process, with its sampler, and `others` more. They share this one's threads."""

    def __init__(
        self,
        model: ModelToOpen,
        sampler: Sampler,
        others: int,
        threads: int,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._model, self._sampler = model, sampler
        self._others, self._threads, self._notify = others, threads, notify
        self._helpers: list[_Helper] = []

    def close(self) -> None:
        """End the other processes."""
        for helper in self._helpers:
            helper.stop()
        self._helpers = []

    def complete(
        self, requests: Sequence[Request], prompts: Sequence[list[int]]
    ) -> Generator[Finished, None, None]:
        """See `Sampler.complete`."""
        self._sampler.keep_prompts(map(tuple, prompts))
        tasks = TaskQueue(requests, prompts, self._sampler.context)
        results: queue.SimpleQueue[Finished] = queue.SimpleQueue()  # of the other processes
        self._helpers = [helper for helper in self._helpers if helper.is_alive()]
        while len(self._helpers) < self._others:
            self._helpers.append(_Helper(self._model, self._threads))
        distinct_prompts = set(map(tuple, prompts))
        try:
            for number, helper in enumerate(self._helpers, 1):
                arguments = [number, distinct_prompts, tasks, results]
                threading.Thread(target=helper.answer, args=arguments, daemon=True).start()
            with using_threads(self._threads):
                while (immediate := tasks.add_new()) or not tasks.is_done:
                    if immediate:
                        yield immediate
                    for finished in self._answer_here(tasks, results):
                        tasks.finish(finished)
                        yield finished
                        if immediate := tasks.add_new():
                            yield immediate
        finally:
            tasks.end()
            if not tasks.is_done:  # nobody waits for the others' answers
                self.close()
            for killed in [helper for helper in self._helpers if helper.ending]:
                self._notify(f"{killed.ending}: its part is done by this one")
                self._helpers.remove(killed)

    def _answer_here(
        self, tasks: TaskQueue, results: "queue.SimpleQueue[Finished]"
    ) -> Iterator[Finished]:
        """This process's answers, and those that came of the others meanwhile; if it has nothing
        to do itself, it waits a moment for them."""
        for finished in self._sampler.answer(tasks.take):
            yield finished
            yield from _collect(results)
        if not tasks.is_done:
            yield from _collect(results, seconds=0.2)


def _collect(results: "queue.SimpleQueue[Finished]", seconds: float = 0.0) -> Iterator[Finished]:
    """What is in the queue; waits so long for the first."""
    with suppress(queue.Empty):
        while True:
            yield results.get(block=seconds > 0, timeout=seconds or None)
            seconds = 0.0


class _Helper:
    """Another process. It asks for requests as its rows become free."""

    def __init__(self, model: ModelToOpen, threads: int) -> None:
        self._process = start_python(
            "kgbias.models.answer_processes",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Read once, when torch is imported.
            env={"OMP_NUM_THREADS": str(threads)},
        )
        self._model: ModelToOpen | None = model  # until it has opened it
        self.ending = ""  # how it was ended, if by somebody else
        self._lock = threading.Lock()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.kill()
        with self._lock:  # whoever waits for its answer will see that it ended
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    with suppress(BrokenPipeError):
                        pipe.close()
        self._process.wait()

    def answer(
        self,
        number: int,
        prompts: set[tuple[int, ...]],
        tasks: TaskQueue,
        results: "queue.SimpleQueue[Finished]",
    ) -> None:
        """Have it answer requests, until there are none any more."""
        request_pipe, reply_pipe = self._process.stdin, self._process.stdout
        assert request_pipe and reply_pipe
        taken: dict[int, Task] = {}
        with self._lock:
            try:
                if self._model is not None:
                    _write_pickle(self._model, request_pipe)
                    self._model = None
                _write_pickle(prompts, request_pipe)
                while (message := pickle.load(reply_pipe)) is not None:
                    if isinstance(message, int):
                        # One that has rows under way goes on with those.
                        new = tasks.take(message, number, wait=not taken)
                        taken |= {task.index: task for task in new}
                        _write_pickle(new, request_pipe)
                    else:
                        for index, _ in message:
                            del taken[index]
                        results.put(message)
            except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                self.ending = describe_ending(self._process)
                self._process.kill()
                tasks.give_back(list(taken.values()))


def _write_pickle(value: object, pipe: IO[bytes]) -> None:
    pickle.dump(value, pipe)
    pipe.flush()


def serve_answers() -> None:
    """Open the model that is read from stdin; then, for each set of prompts, ask for requests by
    their number, and write the answers and, at the end, None. If something goes wrong, the process
    ends: its caller answers its requests itself, and says what is wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who ends this process
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers

    def take(count: int) -> list[Task]:
        _write_pickle(count, output)
        tasks: list[Task] = pickle.load(sys.stdin.buffer)
        return tasks

    with using_threads(int(os.environ["OMP_NUM_THREADS"])), suppress(Exception):
        _serve_calls(pickle.load(sys.stdin.buffer).open_sampler(), take, output)


def _serve_calls(sampler: Sampler, take: Callable[[int], list[Task]], output: IO[bytes]) -> Any:
    while True:
        sampler.keep_prompts(pickle.load(sys.stdin.buffer))
        for finished in sampler.answer(take):
            _write_pickle(finished, output)
        _write_pickle(None, output)


if __name__ == "__main__":
    serve_answers()
