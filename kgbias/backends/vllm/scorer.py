"""Scores from vLLM in this process: the log-probabilities of a prompt's tokens."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from kgbias.backends.vllm.engine import VLLMEngine, engine_settings, open_engine
from kgbias.errors import ModelError
from kgbias.models.base import Notify
from kgbias.models.score.base import Array, LeftToRight, TokenIds
from kgbias.models.spec import Spec, resolve


class _VLLMReader:
    """Log-probabilities from vLLM. To give a prompt's log-probabilities it reads the prompt from
    the beginning, whatever it has read before, so what texts share is read again for each; equal
    texts are asked for once."""

    tier = "vllm"

    def __init__(self, engine: Callable[[], VLLMEngine]) -> None:
        self._engine = engine  # reopened if another has taken its place

    def log_probabilities(
        self,
        sequences: Sequence[TokenIds],
        stems: Sequence[int] | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> list[Array]:
        """See `kgbias.models.score.base.LogProbEngine`."""
        from vllm import SamplingParams
        from vllm.inputs import tokens_input
        from vllm.sampling_params import RequestOutputKind

        sampling_parameters = SamplingParams(
            temperature=0,
            max_tokens=1,  # it draws at least one
            prompt_logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        places: dict[TokenIds, list[int]] = {}
        for place, ids in enumerate(sequences):
            places.setdefault(ids, []).append(place)
        distinct = list(places)
        rows: list[Array] = [np.empty(0)] * len(sequences)
        jobs = (
            (n, (tokens_input(list(ids)), sampling_parameters)) for n, ids in enumerate(distinct)
        )
        for finished_jobs in self._engine().run(jobs):
            for n, output in finished_jobs:
                row = log_probabilities(output)
                for place in places[distinct[n]]:
                    rows[place] = row
                if advance:
                    advance(len(places[distinct[n]]))
        return rows


def log_probabilities(output: Any) -> Array:
    """log p of each token of a prompt after the first, of shape [tokens - 1], from a finished
    `RequestOutput` of vLLM. Raises ModelError if it lacks any."""
    ids, rows = output.prompt_token_ids, output.prompt_logprobs
    try:
        token_logs = [rows[n][ids[n]].logprob for n in range(1, len(ids))]
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ModelError("vLLM does not return the log-probabilities of a prompt") from error
    return np.array(token_logs, dtype=np.float64)


def open_vllm_scorer(
    spec: Spec, *, revision: str | None, notify: Notify, begin: str, dtype: str
) -> LeftToRight:
    """The scorer of a model in vLLM; see `kgbias.models.open_scorer`. Texts are tokenised as for
    the same model without vLLM."""
    settings = engine_settings(dtype)
    open_this_engine = partial(open_engine, resolve(spec, revision), dtype, notify)
    engine = open_this_engine()
    if not engine.tokenizer.is_fast:
        raise ModelError(f"{engine.info.name} has no fast tokenizer")
    return LeftToRight(
        engine.info,
        engine.tokenizer,
        _VLLMReader(open_this_engine),
        begin,
        dtype=dtype,
        limit=engine.limit - 1,
        other_settings=settings,
        notify=notify,
    )
