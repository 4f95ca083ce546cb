"""Causal language models that complete prompts in vLLM, in this process."""

from collections.abc import Generator, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, Self

from kgbias.models.base import Abilities, Completion, Notify, Request, Settings
from kgbias.models.generate import answer_without
from kgbias.models.local import prompt_tokens
from kgbias.models.spec import Files, Spec, resolve
from kgbias.models.thoughts import may_think, without_thoughts
from kgbias.models.vllm_engine import engine_settings, open_engine


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

    def __init__(self, files: Files, dtype: str, settings: Settings, notify: Notify) -> None:
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
        yield from without_thoughts(
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
            tokens = prompt_tokens(request, engine.tokenizer, self.info.name)
            if at_once := answer_without(tokens, request, engine.limit):
                yield [(index, at_once)]
            else:
                jobs.append((index, (tokens_input(tokens), sampling(request))))
        began = perf_counter()
        for ended in engine.run(jobs):
            seconds = perf_counter() - began
            yield [(n, completion(requests[n], output, seconds)) for n, output in ended]

    def close(self) -> None:
        """Let go of the engine. It stays open for the next user; `kgbias.models.unload` closes
        it."""


def sampling(request: Request) -> Any:
    """vLLM's `SamplingParams` of a request. Its rules of truncation are those of transformers, but
    min-p comes before the others."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    held: dict[str, Any] = {"stop": list(request.stop)}
    if request.schema:  # JSON has line breaks of its own
        held = {"structured_outputs": StructuredOutputsParams(json=request.schema)}
    return SamplingParams(
        temperature=request.temperature,
        seed=request.seed,
        max_tokens=request.max_tokens,
        output_kind=RequestOutputKind.FINAL_ONLY,
        **request.truncation.as_dict(),
        **held,
    )


def completion(request: Request, output: Any, seconds: float) -> Completion:
    """The completion in a finished `RequestOutput` of vLLM."""
    (said,) = output.outputs
    if said.finish_reason not in ("stop", "length"):
        why = f"vLLM ended the answer: {said.finish_reason}"
        return Completion("", "error", seconds=seconds, error=why)
    return Completion(
        said.text,
        said.finish_reason,
        len(output.prompt_token_ids),
        len(said.token_ids),
        seconds,
        details={"response_format": "json_schema"} if request.schema else {},
    )
