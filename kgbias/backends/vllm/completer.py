"""Causal language models that complete prompts in vLLM, in this process."""

from collections.abc import Generator, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, Self

from kgbias.backends.vllm.engine import engine_settings, open_engine
from kgbias.models.answer_tasks import answer_without_model
from kgbias.models.base import Abilities, Completion, Notify, Request, Settings
from kgbias.models.local import tokenise_prompt
from kgbias.models.spec import ModelFiles, Spec, resolve
from kgbias.models.thoughts import may_think, separate_thoughts


class VLLMModel:
    """A `Completer` in vLLM, which itself decides what to compute together. The weights are loaded
    when first needed.

    Each request has its own random stream, from its seed. But sums differ a little with what else
    is computed, and a nearly as probable token may be drawn: an answer depends only on its request
    if vLLM is batch invariant (`VLLM_BATCH_INVARIANT=1`), and otherwise on all requests asked
    together.
    """

    abilities = Abilities(structured="yes", seed="depends")

    @classmethod
    def open(
        cls,
        spec: Spec,
        *,
        revision: str | None = None,
        notify: Notify,
        dtype: str = "float32",
    ) -> Self:
        """The completer of a spec in vLLM; see `kgbias.models.open_model`."""
        settings = engine_settings(dtype)
        return cls(resolve(spec, revision), dtype, settings, notify)

    def __init__(self, files: ModelFiles, dtype: str, settings: Settings, notify: Notify) -> None:
        self.info = files.info
        self.settings = settings
        self._files = files
        self._dtype = dtype
        self._notify = notify

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer the requests; see `Completer.complete`. Raises ModelError if vLLM cannot open the
        model, or the model is asked in the chat form and has no chat template."""
        yield from separate_thoughts(
            self._complete, requests, self.info.name, self._notify, lambda: self._may_think
        )

    @cached_property
    def _may_think(self) -> bool:
        return may_think(open_engine(self._files, self._dtype, self._notify).tokenizer)

    def _complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        engine = open_engine(self._files, self._dtype, self._notify)
        from vllm.inputs import tokens_input

        jobs = []
        for index, request in enumerate(requests):
            tokens = tokenise_prompt(request, engine.tokenizer, self.info.name)
            if immediate := answer_without_model(tokens, request, engine.limit):
                yield [(index, immediate)]
            else:
                jobs.append((index, (tokens_input(tokens), sampling_parameters(request))))
        started = perf_counter()
        for finished in engine.run(jobs):
            seconds = perf_counter() - started
            yield [(n, read_completion(requests[n], output, seconds)) for n, output in finished]

    def close(self) -> None:
        """Let go of the engine. It stays open for the next user; `kgbias.models.unload` closes
        it."""


def sampling_parameters(request: Request) -> Any:
    """vLLM's `SamplingParams` of a request. Its rules of truncation are those of transformers, but
    min-p comes before the others."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    other_parameters: dict[str, Any] = {"stop": list(request.stop)}
    if request.schema:  # JSON has line breaks of its own
        other_parameters = {"structured_outputs": StructuredOutputsParams(json=request.schema)}
    return SamplingParams(
        temperature=request.temperature,
        seed=request.seed,
        max_tokens=request.max_tokens,
        output_kind=RequestOutputKind.FINAL_ONLY,
        **request.truncation.as_dict(),
        **other_parameters,
    )


def read_completion(request: Request, output: Any, seconds: float) -> Completion:
    """The completion in a finished `RequestOutput` of vLLM."""
    (answer,) = output.outputs
    if answer.finish_reason not in ("stop", "length"):
        reason = f"vLLM ended the answer: {answer.finish_reason}"
        return Completion("", "error", seconds=seconds, error=reason)
    return Completion(
        answer.text,
        answer.finish_reason,
        len(output.prompt_token_ids),
        len(answer.token_ids),
        seconds,
        details={"response_format": "json_schema"} if request.schema else {},
    )
