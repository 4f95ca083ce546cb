"""Causal language models that complete prompts on this machine, through transformers."""

from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from kgbias.errors import KgbiasError, ModelError, UsageError, first_line, no_such
from kgbias.io.sandbox import TemplateSandbox, serve
from kgbias.models.base import (
    Abilities,
    Completion,
    FormChoice,
    Notify,
    PromptForm,
    Request,
    Settings,
)
from kgbias.models.generate import DEFAULT_ROWS
from kgbias.models.kinds import check_completes
from kgbias.models.load import DTYPES, LoadedModel, load
from kgbias.models.spec import ModelFiles, Spec, resolve
from kgbias.models.thoughts import may_think, separate_thoughts
from kgbias.parallel.local import count_cores, count_torch_threads

if TYPE_CHECKING:
    from kgbias.models.answer_processes import AnswerProcesses
    from kgbias.models.generate import Sampler

# A second process takes some six seconds to start: what follows must be worth it.
_MIN_SECONDS_EACH = 15.0
_OPERATIONS_PER_SECOND = 4e10  # of a core, in these products
_MAX_SHARED_PARAMETERS = 1_000_000_000  # of a model that several processes open

_template_sandbox = TemplateSandbox("kgbias.models.local")


class LocalModel:
    """A `Completer` on this machine. The weights are loaded when they are first needed.

    In float32 an answer depends only on its request. The shorter types round more coarsely than
    `kgbias.models.generate` guards against, so with them a batch can change an answer.
    """

    abilities = Abilities(joins=True)

    @classmethod
    def open(
        cls,
        spec: Spec,
        *,
        revision: str | None = None,
        notify: Notify,
        batch_size: int = DEFAULT_ROWS,
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
        batch_size: int = DEFAULT_ROWS,
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
        self._processes: AnswerProcesses | None = None  # once there is enough to do for several
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
        prompts: list[list[int]] = []

        def tokenise_new() -> None:
            for request in requests[len(prompts) :]:
                prompts.append(tokenise_prompt(request, tokenizer, name))

        tokenise_new()
        others = self._count_other_processes(requests, prompts)
        if others and self._processes is None:
            self._processes = self._open_processes(others)
        answering = self._sampler if self._processes is None else self._processes
        for finished in answering.complete(requests, prompts):
            yield finished
            tokenise_new()  # of requests that have joined meanwhile

    def _count_other_processes(
        self, requests: Sequence[Request], prompts: Sequence[list[int]]
    ) -> int:
        """How many other processes are worth their start, for requests like these: one for each
        further core that this one may use, if it is a small model on the CPU."""
        model = self.loaded_model.model
        parameters = sum(weights.numel() for weights in model.parameters())
        if str(model.device) != "cpu" or parameters > _MAX_SHARED_PARAMETERS:
            return 0
        read = sum(map(len, set(map(tuple, prompts))))
        # Most answers end before their limit: half of it is a guess.
        tokens = read + sum(request.max_tokens for request in requests) / 2
        # For each token, each parameter is multiplied and added once.
        seconds = 2 * parameters * tokens / _OPERATIONS_PER_SECOND
        cores = min(count_cores(), count_torch_threads())
        return max(0, min(cores, int(seconds / _MIN_SECONDS_EACH)) - 1)

    def _open_processes(self, others: int) -> "AnswerProcesses":
        from kgbias.models.answer_processes import AnswerProcesses, ModelToOpen

        self._notify(f"{others + 1} processes answer, one for each core")
        model = ModelToOpen(self._files, self._dtype, self._batch_size)
        threads = max(1, count_torch_threads() // (others + 1))
        return AnswerProcesses(model, self._sampler, others, threads, self._notify)

    def find_form(self, preferred_form: PromptForm) -> FormChoice:
        """The form in which it is asked: messages only if it has a template for them."""
        if preferred_form != "chat":
            return FormChoice(preferred_form, "")
        return FormChoice(form_of_tokenizer(self.loaded_model.tokenizer), "")

    def close(self) -> None:
        """End other processes, and let go of the weights. They stay loaded for the next user;
        `kgbias.models.unload` frees them."""
        if self._processes is not None:
            self._processes.close()
            self._processes = None
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
