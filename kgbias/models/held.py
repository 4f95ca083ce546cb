"""Models that a program holds: a transformers model with its tokenizer, a pipeline, a function from
prompts to texts, or an OpenAI client.

A model's identity is what it does. Of a transformers model that is a fingerprint of the
log-probabilities of a fixed text, taken once as it is opened: a model that was steered, pruned or
hooked is another one, and no answer passes between them. A function is known by its code.
"""

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from kgbias.errors import ModelError, UsageError, first_line
from kgbias.models.base import (
    IN_MEMORY,
    Abilities,
    Completer,
    Completion,
    Form,
    ModelInfo,
    Notify,
    Request,
    Settings,
)
from kgbias.models.openai_server import OpenAIModel
from kgbias.models.thoughts import without_thoughts
from kgbias.models.wire import Secrets, open_client

if TYPE_CHECKING:
    from kgbias.models.generate import Sampler
    from kgbias.models.score.base import TextScorer

_TEXT = "The people who live here are known for what they say of others, and of themselves."
_DIGITS = 4  # of a log-probability that count: kernels differ in the sixth between machines
_KNOWN = (
    "a transformers model with its tokenizer (a pair), a pipeline, a function from a list of "
    "prompts to a list of texts, or an OpenAI client"
)
Answers = Callable[[list[str]], Sequence[str]]


def in_memory(model: Any, tokenizer: Any = None, *, name: str, batch_size: int = 32) -> Completer:
    """A model that this program holds, to be crawled and, if it gives probabilities, probed.

    Args:
        model: a transformers model, a text-generation pipeline, a function from a list of prompts
            to a list of texts, or an `openai.OpenAI` client (`name` is then the model on its
            server).
        tokenizer: that of a transformers model.
        name: what to call it; runs, pages and exports show it.
        batch_size: how many prompts a transformers model, or a function, reads at once.

    Returns:
        An open model, for `Study.crawl`, `Run.evidence`, `Run.probe` and benchmarks.

    Raises:
        UsageError: something that is none of these, or a transformers model without a tokenizer.
    """
    if not name.strip():
        raise UsageError("a model in memory needs a `name`")
    if tokenizer is None and isinstance(model, tuple | list) and len(model) == 2:
        model, tokenizer = model
    if tokenizer is None and hasattr(model, "model") and hasattr(model, "tokenizer"):
        model, tokenizer = model.model, model.tokenizer  # a pipeline
    if hasattr(model, "generate") and hasattr(model, "config"):
        if tokenizer is None:
            raise UsageError(f"{name} needs its tokenizer: in_memory(model, tokenizer, name=...)")
        return HeldModel(model, tokenizer, name, batch_size)
    if hasattr(model, "base_url") and hasattr(model, "chat"):
        return ClientModel(model, name)
    if callable(model):
        return FunctionModel(model, name, batch_size)
    raise UsageError(f"a {type(model).__name__} is no model that kgbias knows: hand over {_KNOWN}")


class HeldModel:
    """A transformers model and its tokenizer, as they are in memory."""

    abilities = Abilities()

    def __init__(self, model: Any, tokenizer: Any, name: str, batch_size: int = 32) -> None:
        self._model, self._tokenizer, self._batch_size = model, tokenizer, batch_size
        with _answering(model):
            self.info = ModelInfo(f"{IN_MEMORY}{name}", fingerprint(model, tokenizer))
        self.settings: Settings = (("dtype", str(model.dtype).removeprefix("torch.")),)

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer the requests; see `Completer.complete`. Raises ModelError if the model has changed
        since it was opened."""
        self._check_same()
        with _answering(self._model):
            yield from without_thoughts(self._complete, requests, self.info.title, lambda _: None)

    def _complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        from kgbias.models.local import prompt_tokens

        name = self.info.title
        prompts = [prompt_tokens(request, self._tokenizer, name) for request in requests]
        yield from self._sampler.complete(requests, prompts)

    def find_form(self, first: Form) -> tuple[Form, str]:
        """The form in which it is asked: messages only if it has a template for them."""
        from kgbias.models.local import form_with

        return form_with(self._tokenizer) if first == "chat" else first, ""

    def _check_same(self) -> None:
        with _answering(self._model):
            if fingerprint(self._model, self._tokenizer) == self.info.revision:
                return
        raise ModelError(
            f"{self.info.title} no longer does what it did when it was opened, and its answers "
            "would be taken for the old one's: open it again (in_memory)"
        )

    @cached_property
    def _sampler(self) -> "Sampler":
        from kgbias.models.generate import Sampler

        return Sampler(self._model, self._tokenizer, batch_size=self._batch_size)

    def scorer(
        self, *, begin: str = "auto", notify: Notify = lambda _: None, **others: Any
    ) -> "TextScorer":
        """The same model, to score texts. Raises UsageError for options of opening a spec,
        ModelError if the model has changed since it was opened."""
        from kgbias.models.score.base import CausalScorer
        from kgbias.models.score.masked import MaskedScorer

        if given := [option for option, value in others.items() if value is not None]:
            raise UsageError(f"`{given[0]}` belongs to opening a model: this one is open")
        self._check_same()
        self._model.eval()
        if "MaskedLM" in type(self._model).__name__:
            return MaskedScorer(self.info, self._tokenizer, self._model, self.settings[0][1])
        return CausalScorer(self.info, self._tokenizer, self._model, begin, notify=notify)

    def close(self) -> None:
        """Nothing: the model is somebody else's."""


class FunctionModel:
    """A function from a list of prompts to a list of texts, one for each. It is asked to continue
    texts, and decides itself how it samples."""

    abilities = Abilities(forms=("completion",), seed="no")

    def __init__(self, answers: Answers, name: str, batch_size: int = 32) -> None:
        self._answers, self._batch_size = answers, batch_size
        self.info = ModelInfo(f"{IN_MEMORY}{name}", f"code:{_code(answers)}")
        self.settings: Settings = ()

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer the requests; see `Completer.complete`. Raises ModelError for a function that
        fails, or does not give a text for each prompt."""
        for start in range(0, len(requests), self._batch_size):
            own = requests[start : start + self._batch_size]
            prompts = [_as_text(request) for request in own]
            try:
                texts = list(self._answers(prompts))
            except Exception as error:  # anyone's function may raise anything
                raise ModelError(f"{self.info.title} failed: {first_line(error)}") from error
            if len(texts) != len(own) or not all(isinstance(text, str) for text in texts):
                raise ModelError(
                    f"{self.info.title} was given {len(own)} prompts, and has to return as many "
                    f"texts; it returned {len(texts)} values"
                )
            yield [
                (start + n, _cut(text, request))
                for n, (text, request) in enumerate(zip(texts, own, strict=True))
            ]

    def close(self) -> None:
        """Nothing."""


class ClientModel(OpenAIModel):
    """A model on the server of an OpenAI client, with the client's own address and key."""

    def __init__(self, client: Any, name: str) -> None:
        super().__init__(name, str(client.base_url), 16, 120.0, lambda _: None)
        self._key = str(client.api_key)
        self._secrets = Secrets(self._key, hidden=self._secrets.hidden)

    def _open(self) -> Any:
        return open_client(self._url, self._timeout, retries=0).with_options(api_key=self._key)


def fingerprint(model: Any, tokenizer: Any) -> str:
    """A digest of a model's weights and of the log-probabilities that it gives a fixed text, as
    "sha256:...": whatever changes what it does changes it."""
    import torch

    ids = tokenizer(_TEXT, return_tensors="pt")["input_ids"].to(model.device)
    try:
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0].double().log_softmax(-1).cpu()
    except Exception as error:  # anyone's model may raise anything
        raise ModelError(f"the model cannot read a text: {first_line(error)}") from error
    if not bool(torch.isfinite(logits.amax(dim=-1)).all()):
        raise ModelError("the model's probabilities are not numbers")
    # A few of the most and of the least probable tokens at each place.
    told = torch.cat([logits.topk(5).values, -(-logits).topk(5).values], dim=-1)
    rounded = [[round(x, _DIGITS) for x in row] for row in told.tolist()]
    return f"sha256:{sha256(json.dumps(rounded).encode()).hexdigest()[:16]}"


@contextmanager
def _answering(model: Any) -> Iterator[None]:
    """Inside this context, a model does not drop out; then it is as it was."""
    trained = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(trained)


def _code(function: Any) -> str:
    """A digest of what a function does, as far as its code says."""
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return sha256(repr(type(function)).encode()).hexdigest()[:16]
    cells = getattr(function, "__closure__", None) or ()
    plain = (str, int, float, bool, bytes, tuple, type(None))
    held = [repr(c.cell_contents) for c in cells if isinstance(c.cell_contents, plain)]
    parts = (code.co_code, _constants(code), code.co_names, held, function.__class__.__name__)
    return sha256(repr(parts).encode()).hexdigest()[:16]


def _constants(code: Any) -> list[str]:
    """The constants of a function; of functions inside it, theirs."""
    return [
        repr((const.co_code, _constants(const))) if hasattr(const, "co_code") else repr(const)
        for const in code.co_consts
    ]


def _as_text(request: Request) -> str:
    if isinstance(request.prompt, str):
        return request.prompt
    return "\n\n".join(text for _, text in request.prompt)


def _cut(text: str, request: Request) -> Completion:
    """An answer up to the first stop string."""
    places = [text.index(stop) for stop in request.stop if stop in text]
    kept = text[: min([*places, len(text)])]
    return Completion(kept, "stop", completion_tokens=len(kept) // 4 + 1)
