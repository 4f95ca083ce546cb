"""Causal language models that complete prompts on this machine, through transformers."""

from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from kgbias.errors import KgbiasError, ModelError, UsageError, first_line, no_such
from kgbias.io.sandbox import TemplateSandbox, serve
from kgbias.models.base import Abilities, Completion, Notify, PromptForm, Request, Settings
from kgbias.models.kinds import check_completes
from kgbias.models.load import DTYPES, LoadedModel, load
from kgbias.models.spec import ModelFiles, Spec, resolve
from kgbias.models.thoughts import may_think, separate_thoughts

if TYPE_CHECKING:
    from kgbias.models.generate import Sampler

_template_sandbox = TemplateSandbox("kgbias.models.local")


class LocalModel:
    """A `Completer` on this machine. The weights are loaded when they are first needed.

    In float32 an answer depends only on its request. The shorter types round more coarsely than
    `kgbias.models.generate` guards against, so with them a batch can change an answer.
    """

    abilities = Abilities()

    @classmethod
    def open(
        cls,
        spec: Spec,
        *,
        revision: str | None = None,
        notify: Notify,
        batch_size: int = 32,
        dtype: str = "float32",
        device: str = "auto",
    ) -> Self:
        """The completer of a local spec; see `kgbias.models.open_model`."""
        check_completes(spec)
        files = resolve(spec, revision)
        return cls(files, batch_size=batch_size, dtype=dtype, device=device, notify=notify)

    def __init__(
        self,
        files: ModelFiles,
        *,
        batch_size: int = 32,
        dtype: str = "float32",
        device: str = "auto",
        notify: Notify = lambda _: None,
    ) -> None:
        if dtype not in DTYPES:
            raise UsageError(no_such("dtype", dtype, DTYPES))
        if batch_size < 1:
            raise UsageError("batch_size must be positive")
        self.info = files.info
        self.settings: Settings = (("dtype", dtype),)
        self._files = files
        self._batch_size = batch_size
        self._dtype = dtype
        self._device = device
        self._notify = notify

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer the requests; see `Completer.complete`. Raises ModelError if the model cannot be
        loaded, or is asked in the chat form and has no chat template."""
        name = self.info.name
        try:
            yield from separate_thoughts(
                self._complete, requests, name, self._notify, lambda: self._may_think
            )
        except KgbiasError:
            raise
        except Exception as error:  # anyone's model may raise anything
            raise ModelError(f"{name} cannot complete the prompts: {first_line(error)}") from error

    def _complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        tokenizer, name = self.loaded_model.tokenizer, self.info.name
        prompts = [tokenise_prompt(request, tokenizer, name) for request in requests]
        yield from self._sampler.complete(requests, prompts)

    def find_form(self, preferred_form: PromptForm) -> tuple[PromptForm, str]:
        """The form in which it is asked: messages only if it has a template for them."""
        return form_of_tokenizer(
            self.loaded_model.tokenizer
        ) if preferred_form == "chat" else preferred_form, ""

    def close(self) -> None:
        """Let go of the weights. They stay loaded for the next user; `kgbias.models.unload` frees
        them."""
        self.__dict__.pop("_sampler", None)
        self.__dict__.pop("loaded_model", None)

    @cached_property
    def loaded_model(self) -> LoadedModel:
        """The model and its tokenizer, loaded on first use."""
        return load(
            self._files, "causal", dtype=self._dtype, device=self._device, notify=self._notify
        )

    @cached_property
    def _may_think(self) -> bool:
        return may_think(self.loaded_model.tokenizer)

    @cached_property
    def _sampler(self) -> "Sampler":
        from kgbias.models.generate import Sampler

        return Sampler(
            self.loaded_model.model, self.loaded_model.tokenizer, batch_size=self._batch_size
        )


def form_of_tokenizer(tokenizer: Any) -> PromptForm:
    """The form that a model with this tokenizer is made for."""
    return "chat" if tokenizer.chat_template else "completion"


def tokenise_prompt(request: Request, tokenizer: Any, model: str) -> list[int]:
    """The tokens of a request as read by a model on this machine: the text with what the tokenizer
    puts before it, or the messages in the model's own template. Raises ModelError if it has no
    template."""
    if isinstance(request.prompt, str):
        ids: list[int] = tokenizer(request.prompt)["input_ids"]
        # Some tokenizers end every text, after which a model would begin another one.
        return ids[:-1] if len(ids) > 1 and ids[-1] == tokenizer.eos_token_id else ids
    if not tokenizer.chat_template:
        raise ModelError(f"{model} has no chat template: ask it in the completion form")
    question = {
        "template": tokenizer.get_chat_template(),
        "tokens": {name: str(token) for name, token in tokenizer.special_tokens_map.items()},
        "messages": [{"role": role, "content": text} for role, text in request.prompt],
    }
    text = _template_sandbox.render(question, ModelError, f"the chat template of {model}")
    chat: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    if not chat:
        raise ModelError(f"the chat template of {model} makes an empty text of a prompt")
    return chat


def _render_chat(question: Mapping[str, Any]) -> str:
    """The messages in a chat template, up to where the answer begins, as transformers renders it:
    a model reads what it would read from there. A template that can ask for an answer without
    thoughts, by one of the names for it, does."""
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered: Any = render_jinja_template(
        conversations=[question["messages"]],
        chat_template=question["template"],
        add_generation_prompt=True,
        enable_thinking=False,
        thinking=False,
        reasoning_effort="low",
        **question["tokens"],
    )
    return str(rendered[0][0])


if __name__ == "__main__":
    import transformers.utils.chat_template_utils  # noqa: F401  # before memory is limited

    serve(_render_chat)
