"""Models that a program holds: a transformers model with its tokenizer, a pipeline, a function from
prompts to texts, or an OpenAI client.

A model's identity is what it does (`kgbias.models.identity`), taken once as it is opened: a model
that was steered, pruned or hooked is another one, and no answer passes between them.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kgbias.errors import ModelError, UsageError, first_line
from kgbias.io.caller_state import restore_state, use_caller_random_states
from kgbias.io.text import type_with_article
from kgbias.io.wording import pluralise
from kgbias.models.base import (
    IN_MEMORY_PREFIX,
    Abilities,
    Completer,
    Completion,
    FormChoice,
    ModelInfo,
    Notify,
    PromptForm,
    Request,
    Settings,
)
from kgbias.models.http import Secrets, open_client
from kgbias.models.identity import (
    changes_digest,
    code_digest,
    fingerprint,
    rounded_log_probabilities,
)
from kgbias.models.openai_server import OpenAIModel
from kgbias.models.thoughts import may_think, separate_thoughts

if TYPE_CHECKING:
    from kgbias.models.generate import Sampler
    from kgbias.models.predict import CausalPredictor, MaskedPredictor
    from kgbias.models.score.base import TextScorer

ACCEPTED_MODEL_FORMS = (
    "a transformers model with its tokenizer (a pair), a pipeline, a function from a list of "
    "prompts to a list of texts, or an OpenAI client"
)
Answers = Callable[[list[str]], Sequence[str]]


class Client(Protocol):
    """An OpenAI client."""

    @property
    def base_url(self) -> Any: ...
    @property
    def chat(self) -> Any: ...


InMemory = Callable[..., Any] | tuple[Any, Any] | Client
"""A model that a program holds, as `in_memory` takes it."""


@restore_state()
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
    model, tokenizer = _split_pair(model, tokenizer)
    if _is_pretrained(model):
        if tokenizer is None:
            raise UsageError(f"{name} needs its tokenizer: in_memory(model, tokenizer, name=...)")
        return InMemoryModel(model, tokenizer, name, batch_size)
    if _is_client(model):
        return ClientModel(model, name)
    check_is_model(model)
    if tokenizer is not None or hasattr(model, "convert_tokens_to_ids"):
        raise UsageError(
            f"{name}: {type_with_article(model)} is no transformers model: the model comes first, "
            "and then its tokenizer"
        )
    return FunctionModel(model, name, batch_size)


def check_is_model(model: Any) -> None:
    """Raise UsageError, which says what is taken, for what is none of the models of `in_memory`."""
    model, _ = _split_pair(model, None)
    if not (_is_pretrained(model) or _is_client(model) or callable(model)):
        raise UsageError(
            f"{type_with_article(model)} is no model that kgbias knows: hand over "
            f"{ACCEPTED_MODEL_FORMS}"
        )


class _LoadedPair(NamedTuple):
    """A model that is in memory, and its tokenizer."""

    model: Any
    tokenizer: Any


def _split_pair(model: Any, tokenizer: Any) -> _LoadedPair:
    """The model and the tokenizer of a pair, or of a pipeline."""
    if tokenizer is None and isinstance(model, tuple | list) and len(model) == 2:
        return _LoadedPair(*model)
    if hasattr(model, "model") and hasattr(model, "tokenizer") and hasattr(model, "task"):
        return _LoadedPair(model.model, tokenizer or model.tokenizer)
    return _LoadedPair(model, tokenizer)


def _is_pretrained(model: Any) -> bool:
    # By what it has, not by its class: transformers need not be imported for it.
    return hasattr(model, "config") and hasattr(model, "base_model") and hasattr(model, "dtype")


def _is_client(model: Any) -> bool:
    return hasattr(model, "base_url") and hasattr(model, "chat")


class _Behaviour(NamedTuple):
    """What tells whether a model still does what it did."""

    log_probabilities: str
    changes: str


class InMemoryModel:
    """A transformers model and its tokenizer, as they are in memory."""

    abilities = Abilities()

    def __init__(self, model: Any, tokenizer: Any, name: str, batch_size: int = 32) -> None:
        self._model, self._tokenizer, self._batch_size = model, tokenizer, batch_size
        with _evaluation_mode(model):
            self.info = ModelInfo(f"{IN_MEMORY_PREFIX}{name}", fingerprint(model, tokenizer))
            self._behaviour = self._read_behaviour()
        self.settings: Settings = (("dtype", str(model.dtype).removeprefix("torch.")),)

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer the requests; see `Completer.complete`. Raises ModelError if the model has changed
        since it was opened."""
        self._check_unchanged()
        with _evaluation_mode(self._model):
            yield from separate_thoughts(
                self._complete,
                requests,
                self.info.title,
                lambda _: None,
                lambda: self._may_think,
            )

    def _complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        from kgbias.models.local import tokenise_prompt

        name = self.info.title
        prompts = [tokenise_prompt(request, self._tokenizer, name) for request in requests]
        yield from self._sampler.complete(requests, prompts)

    def find_form(self, preferred_form: PromptForm) -> FormChoice:
        """The form in which it is asked: messages only if it has a template for them."""
        from kgbias.models.local import form_of_tokenizer

        if preferred_form != "chat":
            return FormChoice(preferred_form, "")
        return FormChoice(form_of_tokenizer(self._tokenizer), "")

    def _check_unchanged(self) -> None:
        with _evaluation_mode(self._model):
            if self._read_behaviour() == self._behaviour:
                return
        raise ModelError(
            f"{self.info.title} no longer does what it did when it was opened, and its answers "
            "would be taken for the old one's: open it again (in_memory)"
        )

    def _read_behaviour(self) -> _Behaviour:
        """What it does now, without another look at all its weights."""
        return _Behaviour(
            rounded_log_probabilities(self._model, self._tokenizer), changes_digest(self._model)
        )

    @cached_property
    def _may_think(self) -> bool:
        return may_think(self._tokenizer)

    @cached_property
    def _sampler(self) -> "Sampler":
        from kgbias.models.generate import Sampler

        return Sampler(self._model, self._tokenizer, batch_size=self._batch_size)

    def vectors(self, *, cache: bool = True) -> "InMemoryVectors":
        """The same model, to give vectors and predict words. Raises ModelError if it has changed
        since it was opened."""
        self._check_unchanged()
        return InMemoryVectors(self.info, self._model.eval(), self._tokenizer, cache)

    def scorer(
        self, *, begin: str = "auto", notify: Notify = lambda _: None, **other_options: Any
    ) -> "TextScorer":
        """The same model, to score texts. Raises UsageError for options of opening a spec,
        ModelError if the model has changed since it was opened."""
        from kgbias.models.score.base import CausalScorer
        from kgbias.models.score.masked import MaskedScorer

        if options_given := [
            option for option, value in other_options.items() if value is not None
        ]:
            raise UsageError(f"`{options_given[0]}` belongs to opening a model: this one is open")
        self._check_unchanged()
        self._model.eval()
        if _is_masked(self._model):
            return MaskedScorer(self.info, self._tokenizer, self._model, self.settings[0][1])
        # Hooks on the output, or on the last token of a text, only work on one whole text.
        tier = "alone" if changes_digest(self._model) else "auto"
        return CausalScorer(self.info, self._tokenizer, self._model, begin, tier, notify=notify)

    def close(self) -> None:
        """Nothing: the model is somebody else's."""


class InMemoryVectors:
    """The vectors of a model in memory, and its predictions of words."""

    def __init__(self, info: ModelInfo, model: Any, tokenizer: Any, cache: bool) -> None:
        from kgbias.models.embed import Encoder
        from kgbias.models.load import LoadedModel

        trained_kind = "masked" if _is_masked(model) else "causal"
        if model.config.is_encoder_decoder:
            trained_kind = "seq2seq"
        self._loaded_model = LoadedModel(info, tokenizer, model, trained_kind, "")
        body = LoadedModel(info, tokenizer, model.base_model, trained_kind, "")
        dtype = str(model.dtype).removeprefix("torch.")
        self.encoder = Encoder(info.name, body, cache=cache, dtype=dtype)

    def predictor(self, kind: str = "auto") -> "MaskedPredictor | CausalPredictor":
        """See `kgbias.models.predict.open_predictor`."""
        from kgbias.models.predict import check_predictor_kind, make_predictor

        check_predictor_kind(self._loaded_model.info, self._loaded_model.trained_as, kind)
        return make_predictor(self._loaded_model, self._loaded_model.trained_as)


class FunctionModel:
    """A function from a list of prompts to a list of texts, one for each. It is asked to continue
    texts, and decides itself how it samples."""

    abilities = Abilities(forms=("completion",), seed="no")

    def __init__(self, answers: Answers, name: str, batch_size: int = 32) -> None:
        self._answers, self._batch_size = answers, batch_size
        self.info = ModelInfo(f"{IN_MEMORY_PREFIX}{name}", f"code:{code_digest(answers)}")
        self.settings: Settings = ()

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer the requests; see `Completer.complete`. Raises ModelError for a function that
        fails, or does not give a text for each prompt."""
        for start in range(0, len(requests), self._batch_size):
            batch = requests[start : start + self._batch_size]
            prompts = [_prompt_text(request) for request in batch]
            try:
                with use_caller_random_states():
                    returned: Any = self._answers(prompts)
                    is_one = isinstance(returned, str) or not isinstance(returned, Iterable)
                    texts = [] if is_one else list(returned)
            except Exception as error:  # anyone's function may raise anything
                raise ModelError(f"{self.info.title} failed: {first_line(error)}") from error
            odd_ones = [text for text in texts if not isinstance(text, str)]
            if is_one or odd_ones or len(texts) != len(batch):
                what = pluralise(len(texts), "text")
                if is_one:
                    what = type_with_article(returned)
                elif odd_ones:
                    what = f"a list with {type_with_article(odd_ones[0])} in it"
                raise ModelError(
                    f"{self.info.title} was given "
                    f"{pluralise(len(batch), 'prompt')}, and has to return a list "
                    f"of as many texts; it returned {what}"
                )
            yield [
                (start + n, _cut_at_stop(text, request))
                for n, (text, request) in enumerate(zip(texts, batch, strict=True))
            ]

    def close(self) -> None:
        """Nothing."""


class ClientModel(OpenAIModel):
    """A model on the server of an OpenAI client, with the client's own address and key."""

    def __init__(self, client: Any, name: str) -> None:
        super().__init__(name, str(client.base_url), 16, 120.0, lambda _: None)
        self._key = str(client.api_key)
        self._secrets = Secrets(self._key, hidden=self._secrets.hidden)

    def _open_client(self) -> Any:
        return open_client(self._url, self._timeout, retries=0).with_options(api_key=self._key)


def _is_masked(model: Any) -> bool:
    return "MaskedLM" in type(model).__name__ or "ForPreTraining" in type(model).__name__


@contextmanager
def _evaluation_mode(model: Any) -> Iterator[None]:
    """Inside this context, a model does not drop out; then it is as it was."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def _prompt_text(request: Request) -> str:
    if isinstance(request.prompt, str):
        return request.prompt
    return "\n\n".join(text for _, text in request.prompt)


def _cut_at_stop(text: str, request: Request) -> Completion:
    """An answer up to the first stop string."""
    places = [text.index(stop) for stop in request.stop if stop in text]
    answer_text = text[: min([*places, len(text)])]
    # A function counts no tokens: budgets take four characters for one.
    return Completion(answer_text, "stop", completion_tokens=len(answer_text) // 4 + 1)
