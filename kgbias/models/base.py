"""What kgbias asks of a language model, and what it gets back.

A model is named by a spec (`kgbias.models.spec`). It completes prompts (`Completer`), scores texts
and words, and gives vectors (see `kgbias.models`). Knowing *which* model answers (`info`) never
needs its weights, so a finished crawl is read back from the answer log at once.
"""

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from kgbias.ids import content_id
from kgbias.io.templates import PromptForm as PromptForm
from kgbias.models.truncate import NO_TRUNCATION, Truncation
from kgbias.parameters import Parameter

FormParameter = Annotated[
    PromptForm,
    Parameter(
        "Whether the model completes a text or answers in a chat",
        typed=True,
        choices=("completion", "chat"),
        unset="found out by a trial for a server, completion for a local model",
        always=True,
    ),
]
"""In which form a model is asked, as a configuration declares it."""

Notify = Callable[[str], None]
"""Called with one line for each thing that takes long or that the user should know."""

_PATH_PATTERN = re.compile(r"[/\\.~]|[A-Za-z]:[/\\]")  # how the path of a file or folder begins

Settings = tuple[tuple[str, str], ...]
"""How a model was asked: everything besides its weights and the question that can change an answer
(dtype, base URL, the token before a text), as (name, value) pairs."""

ADDRESS_SETTING = "address"
"""The setting with the whole address of a server, if a person asked to keep it. No id depends on
it, so that asking for it later asks no model again."""


IN_MEMORY_PREFIX = "memory:"  # begins the names of models that a program holds


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Which model answers: enough to tell two models apart, and to find this one again.

    `name` is the spec the user gave, without secrets; `revision` changes whenever the weights do
    (a package version, a commit, a digest of local files; "" if a server does not say). How the
    model was asked (`Settings`) is not part of it: what a model says and what it finds probable
    belong to one node of the graph, and so does what its vectors hold. `display_name` is a person's
    own name for it, which no id depends on.

    The spec may be a path, so stores keep it beside the graph (in a column, or a node `Spec`).
    Nodes, edges, pages and exports have the `title`.
    """

    name: str
    revision: str = ""
    display_name: str = field(default="", compare=False)

    @property
    def id(self) -> str:
        return content_id("model", self.name, self.revision)

    def opening_text(self, settings: Settings) -> str:
        """The model and how it was opened, which workers must have in common, as a text."""
        settings_text = ", ".join(f"{name} {value}" for name, value in settings)
        return f"{self.name} {self.revision} ({settings_text})"

    @property
    def title(self) -> str:
        """Its name wherever it is shown or written: the one that a person gave it, or
        `public_name`."""
        return self.display_name or self.public_name

    @property
    def public_name(self) -> str:
        """The spec without a path, which says whose machine it was: a file or folder on disk is
        the last part with a few digits of the revision, as two models may have the same file
        name."""
        is_in_memory = self.name.startswith(
            IN_MEMORY_PREFIX
        )  # two of one name may do different things
        if not self.is_local and not is_in_memory:
            return self.name
        digits = self.revision.rpartition(":")[2][:6] or self.id[:6]
        if is_in_memory:
            return f"{self.name.removeprefix(IN_MEMORY_PREFIX)} ({digits})"
        return f"{self._last_part.removesuffix('.gguf')} ({digits})"

    @property
    def is_local(self) -> bool:
        """Whether the spec is the path of a file or folder."""
        kind, _, path = self.name.partition(":")
        is_digested = kind == "hf" and self.revision.startswith("sha256:")
        return is_digested or bool(_PATH_PATTERN.match(path))

    @property
    def _last_part(self) -> str:
        """The last part of a path."""
        path = self.name.partition(":")[2].rstrip("/\\")
        return re.split(r"[/\\:]", path)[-1]

    @property
    def short_name(self) -> str:
        """The beginning of default names of runs: the last part of the spec."""
        if self.is_local:
            return self._last_part
        return self.name.rstrip("/").rsplit("/", 1)[-1].split(":", 1)[-1]

    def goes_by(self, name: str | None) -> bool:
        """Whether it is the model of this spec or title; any model is that of None."""
        return name in (None, self.name, self.title, self.public_name)

    def configured_id(self, settings: Settings) -> str:
        """The id of this model with these settings, from which ids of runs, answers and probings
        follow."""
        identifying_settings = tuple(s for s in settings if s[0] != ADDRESS_SETTING)
        return content_id("model", self.name, self.revision, repr(identifying_settings))


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model, with everything that can change its answer.

    `prompt` is the text to complete, or in the chat form a tuple of (role, content) messages.
    `seed` names the request's own random stream; `max_tokens` bounds the new tokens; the answer
    ends before the first of `stop`. `temperature` 0 is greedy; `truncation` cuts tokens before one
    is drawn.
    """

    prompt: str | tuple[tuple[str, str], ...]
    seed: int
    temperature: float = 0.8
    max_tokens: int = 32
    stop: tuple[str, ...] = ()
    schema: str | None = None  # a flat JSON schema (as text) that the answer should follow
    truncation: Truncation = NO_TRUNCATION

    @property
    def form(self) -> PromptForm:
        return "completion" if isinstance(self.prompt, str) else "chat"

    @property
    def text(self) -> str:
        """The prompt as one text, as generations keep it: each message under its role."""
        if isinstance(self.prompt, str):
            return self.prompt
        return "\n".join(f"[{role}]\n{content}" for role, content in self.prompt)

    def key(self, model: ModelInfo, settings: Settings = ()) -> str:
        """The answer's key in the answer log: everything that can change it, and nothing else."""
        fields = asdict(self)
        del fields["truncation"]
        fields |= self.truncation.as_dict()  # no key without truncation, so older answers are found
        return content_id("answer", model.configured_id(settings), repr(sorted(fields.items())))


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model said, raw.

    `finish` is "stop" (a stop string or the end of text), "length" (ran into `max_tokens`),
    "refused" (the server withheld the answer or the rest of it), or "error" (no answer came; `text`
    is empty and `error` says why in one line).
    """

    text: str
    finish: Literal["stop", "length", "refused", "error"]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str = ""
    details: dict[str, Any] = field(default_factory=dict)  # what a server said about itself


Support = Literal["yes", "no", "depends"]
"""Whether something can be done; it may depend on the server or on the model behind a spec."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a class of completers can do, whatever the model.

    `forms` are the forms of prompt that it takes; `structured` is whether answers can be made to
    follow a JSON schema, `seed` whether a request's own seed fixes its answer, and `batch` whether
    requests can be sent in batches. With `joins`, a list of requests may grow while they are
    answered (`Completer.complete`): those that joined are answered with them.
    """

    forms: tuple[PromptForm, ...] = ("completion", "chat")
    structured: Support = "no"
    seed: Support = "yes"
    batch: Support = "no"
    joins: bool = False


class Completer(Protocol):
    """A model that completes prompts."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def settings(self) -> Settings:
        """How it is asked: its dtype, its server."""
        ...

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Yield lists of (index into `requests`, completion), as they are done and in any order.

        A list holds everything done since the last one, for its reader to make durable in one
        commit. Every request is answered exactly once. The answer to a request depends only on the
        request, never on the others in the call, if the model can keep that promise (all local ones
        do). A request that cannot be answered yields a completion whose finish is "error". Closing
        the generator stops the work. To a model with the ability `joins`, requests may be appended
        to the list between two yields.
        """
        ...

    def close(self) -> None: ...


class FormChoice(NamedTuple):
    """The form in which a model is asked, and why; no reason where there is nothing to say."""

    form: PromptForm
    reason: str


def find_form(model: Completer, preferred_form: PromptForm) -> FormChoice:
    """The form in which a model is asked: `preferred_form`, unless only the other is answered; and
    a line that says why, "" where there is nothing to say. A model on a server is asked for it."""
    find_by_trial: Callable[[PromptForm], FormChoice] | None = getattr(model, "find_form", None)
    return (
        FormChoice(preferred_form, "") if find_by_trial is None else find_by_trial(preferred_form)
    )
