"""A model that answers by a function: for faults and habits that no real model shows on demand."""

from collections.abc import Callable, Generator, Sequence

from kgbias.models.base import Completion, ModelInfo, Request, Settings

Reply = str | Completion


class ScriptedModel:
    """Answers each request by `reply(request)`, a pure function, in batches of `batch` that come
    back in reverse order, and remembers what it was asked."""

    def __init__(
        self, reply: Callable[[Request], Reply], *, name: str = "scripted", batch: int = 7
    ) -> None:
        self.info = ModelInfo(name, "1")
        self.settings: Settings = ()
        self.requests: list[Request] = []
        self._reply = reply
        self._batch = batch

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        for start in range(0, len(requests), self._batch):
            chunk = range(start, min(start + self._batch, len(requests)))
            completions: list[tuple[int, Completion]] = []
            try:
                for index in reversed(chunk):
                    reply = self._reply(requests[index])
                    self.requests.append(requests[index])
                    if isinstance(reply, str):
                        reply = Completion(reply, "stop", 10, len(reply.split()))
                    completions.append((index, reply))
            except KeyboardInterrupt:
                yield completions  # a model hands over what it has before it stops
                raise
            yield completions

    def close(self) -> None: ...
