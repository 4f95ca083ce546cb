"""A model that answers by a function: for faults and habits that no real model shows on demand."""

from collections.abc import Callable, Generator, Sequence

from kgbias.models.base import Abilities, Completion, ModelInfo, Request, Settings

Reply = str | Completion


class ScriptedModel:
    """Answers each request by `reply(request)`, a pure function, in batches of `batch` that come
    back in reverse order, and remembers what it was asked, and in how many calls."""

    def __init__(
        self, reply: Callable[[Request], Reply], *, name: str = "scripted", batch: int = 7
    ) -> None:
        self.info = ModelInfo(name, "1")
        self.settings: Settings = ()
        self.requests: list[Request] = []
        self.calls = 0
        self._reply = reply
        self._batch = batch

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        self.calls += 1
        chunk = range(0)
        while chunk.stop < len(requests):  # which may grow meanwhile
            chunk = range(chunk.stop, min(chunk.stop + self._batch, len(requests)))
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


class JoinableModel(ScriptedModel):
    """The same, for a model that lets requests join those that are being answered."""

    abilities = Abilities(joins=True)
