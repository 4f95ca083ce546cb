"""Batched sampling in which a request gets the same answer whatever else is in the batch.

The token at step t of a request is

    argmax over v of  logits[v] / temperature + Gumbel noise(request.seed, t, v),

which is an exact draw from the softmax (the Gumbel-max trick), and the noise depends only on the
request. Truncation (top-k, top-p, min-p) leaves some tokens out of the argmax. What remains is
rounding: sums differ slightly between a batch of 32 and a single row. So if the best two candidates
are closer than `_MAX_TIE_GAP`, far above the rounding error, or the drawn token is that close to
where truncation cuts, a separate forward pass decides the row, without padding or cache: every
batching that meets the near-tie decides it by the same numbers.

Rows that end leave the batch, and waiting requests take their places. A prompt that is asked
several times is read once, and kept for as long as the following calls ask it again, memory
permitting.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kgbias.errors import ModelError
from kgbias.models.base import Completion, Request
from kgbias.models.load import cache_parameter, read_cache
from kgbias.models.truncate import score_bounds

if TYPE_CHECKING:
    import torch

_MAX_TIE_GAP = 1e-3  # in units of logit / temperature; the rounding error of float32 is below 1e-4
_MAX_PREFIX_BYTES = 1 << 30  # bytes of prompts kept for the next call


@dataclass(eq=False)
class _Row:
    """A request in the batch: its prompt's tokens and the tokens of its answer so far."""

    index: int
    request: Request
    prompt: list[int]
    started: float
    answer: list[int] = field(default_factory=list)
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Prefix:
    """A prompt that was read: keys and values of each layer, [1, heads, length, width], and the
    logits of the next token, [vocabulary]."""

    layers: list[tuple[Any, Any]]
    logits: Any

    @property
    def size(self) -> int:
        return sum(int(tensor.nbytes) for tensor in (self.logits, *chain(*self.layers)))


class Sampler:
    """Answers requests with one causal language model of transformers.

    `batch_size` bounds the rows computed at once, and so the memory.
    """

    def __init__(self, model: Any, tokenizer: Any, batch_size: int = 32) -> None:
        from inspect import signature

        self._model = model
        self._tokenizer = tokenizer
        forward_parameters = signature(model.forward).parameters
        self._cache_name = cache_parameter(model)
        self._takes_positions = "position_ids" in forward_parameters
        self._last_logit_options = (
            {"logits_to_keep": 1} if "logits_to_keep" in forward_parameters else {}
        )
        text_config = model.config.get_text_config()
        self._context = int(getattr(text_config, "max_position_embeddings", 0) or 1 << 30)
        end_tokens = model.generation_config.eos_token_id
        end_tokens = end_tokens if isinstance(end_tokens, list) else [end_tokens]
        self._end_tokens = {end for end in (*end_tokens, tokenizer.eos_token_id) if end is not None}
        self._padding_token = next(iter(self._end_tokens), 0)
        self._prefixes: dict[tuple[int, ...], _Prefix] = {}
        self._uses_cache = self._batches_agree()
        self._prefixes.clear()
        self._batch_size = batch_size if self._uses_cache else 1

    def complete(
        self, requests: Sequence[Request], prompts: Sequence[list[int]]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer requests with tokenised prompts; see `Completer.complete`."""
        import torch

        # Equal prompts are adjacent, to be read once; longest first keeps rows of similar length
        # in one batch.
        order = sorted(range(len(requests)), key=lambda i: (-len(prompts[i]), prompts[i], i))
        asked_prompts = set(map(tuple, prompts))
        self._prefixes = {p: read for p, read in self._prefixes.items() if p in asked_prompts}
        waiting: list[int] = []
        for index in reversed(order):
            if immediate := answer_without_model(prompts[index], requests[index], self._context):
                yield [(index, immediate)]
            else:
                waiting.append(index)
        batch = _Batch(self)
        while waiting or batch.rows:
            with torch.inference_mode():
                free = self._batch_size - len(batch.rows)
                # Taking in one row at a time would read prompts one by one.
                if waiting and free >= max(1, min(self._batch_size // 4, len(waiting))):
                    started = perf_counter()
                    taken_indexes = [waiting.pop() for _ in range(min(free, len(waiting)))]
                    batch.add_rows(
                        [_Row(i, requests[i], prompts[i], started) for i in taken_indexes]
                    )
                finished = self._draw_step(batch)
            if finished:
                yield finished

    def _draw_step(self, batch: "_Batch") -> list[tuple[int, Completion]]:
        """Draw a token for each row, remove the rows that ended, and read the tokens."""
        tokens = self._draw_tokens(batch.rows, batch.logits)
        finished: list[tuple[int, Completion]] = []
        kept_places: list[int] = []
        for place, (row, token) in enumerate(zip(batch.rows, tokens, strict=True)):
            if finish := self._extend_answer(row, token):
                completion = Completion(
                    row.text,
                    finish,
                    len(row.prompt),
                    len(row.answer),
                    perf_counter() - row.started,
                )
                finished.append((row.index, completion))
            else:
                kept_places.append(place)
        batch.keep_rows(kept_places)
        if batch.rows:
            batch.read_tokens([row.answer[-1] for row in batch.rows])
        return finished

    def _extend_answer(self, row: _Row, token: int) -> Literal["stop", "length"] | None:
        """Add a token to a row's answer; how the answer ended, if it did."""
        if token in self._end_tokens:
            return "stop"
        row.answer.append(token)
        text = self._tokenizer.decode(row.answer, skip_special_tokens=True)
        cuts = [text.index(stop) for stop in row.request.stop if stop in text]
        if cuts:
            row.text = text[: min(cuts)]
            return "stop"
        # A character of several bytes may be incomplete: it decodes to U+FFFD until it is whole.
        row.text = text.rstrip("\ufffd")
        return "length" if len(row.answer) >= row.request.max_tokens else None

    def _draw_tokens(self, rows: Sequence[_Row], logits: "torch.Tensor") -> list[int]:
        """The next token of each row, from logits of shape [rows, vocabulary]."""
        import torch

        scores = logits.float().cpu()
        if bool(scores.isnan().any()):
            raise ModelError(
                "its probabilities are not numbers: its weights are damaged, or overflow in this "
                "dtype (try dtype float32)"
            )
        temperatures = torch.tensor([row.request.temperature or 1.0 for row in rows])
        scores /= temperatures[:, None]
        cut_bounds = torch.full((len(rows), 2), -torch.inf)
        for place, row in enumerate(rows):
            if row.request.truncation:
                cut_bounds[place] = torch.tensor(
                    score_bounds(scores[place], row.request.truncation, _MAX_TIE_GAP)
                )
        low, high = cut_bounds[:, :1], cut_bounds[:, 1:]
        noisy_scores = (scores + self._gumbel_noise(rows, scores.shape[1])).masked_fill_(
            scores < low, -torch.inf
        )
        best, tokens = noisy_scores.topk(2, dim=-1)
        drawn_tokens: list[int] = tokens[:, 0].tolist()
        is_close = (best[:, 0] - best[:, 1] < _MAX_TIE_GAP) | (scores.gather(1, tokens) < high)[
            :, 0
        ]
        for place in torch.nonzero(is_close).flatten().tolist():
            drawn_tokens[place] = self._decide_alone(rows[place])
        return drawn_tokens

    def _decide_alone(self, row: _Row) -> int:
        import torch

        ids = torch.tensor([row.prompt + row.answer], device=self._model.device)
        logits = self._model(input_ids=ids, use_cache=False, **self._last_logit_options).logits[
            :, -1
        ]
        scores = logits.float().cpu() / (row.request.temperature or 1.0)
        scores = row.request.truncation.apply(scores)
        return int((scores + self._gumbel_noise([row], scores.shape[1])).argmax())

    @staticmethod
    def _gumbel_noise(rows: Sequence[_Row], vocabulary: int) -> "torch.Tensor":
        """Gumbel noise of shape [rows, vocabulary]: minus the log of a standard exponential drawn
        from a Philox stream keyed by the request's seed and the step; 0 for greedy rows."""
        import torch

        exponential = np.ones((len(rows), vocabulary))
        for place, row in enumerate(rows):
            if row.request.temperature > 0:
                stream = np.random.Philox(key=[row.request.seed, len(row.answer)])
                np.random.Generator(stream).standard_exponential(out=exponential[place])
        return -torch.from_numpy(exponential).log_().float()

    def _batches_agree(self) -> bool:
        """Whether padding and cached batches change this model's logits by no more than rounding.
        Some architectures (recurrent ones, some with sliding windows) read padding as text; they
        are computed one row at a time, without a cache."""
        import torch

        self._uses_cache = True

        longer_prompt, shorter_prompt = list(range(3, 10)), [5, 7]
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        request = Request("", seed=0)
        rows = [
            _Row(n, request, [token % vocabulary for token in prompt], 0.0)
            for n, prompt in enumerate((longer_prompt, shorter_prompt))
        ]
        with torch.inference_mode():
            try:
                batch = _Batch(self)
                batch.add_rows(rows[:1])
                batch.read_tokens([11 % vocabulary])
                rows[0].answer.append(11 % vocabulary)
                batch.add_rows(rows[1:])
                batched_logits = batch.logits.float()
            except (AttributeError, TypeError, ValueError, RuntimeError, IndexError):
                return False
            for row, logits in zip(rows, batched_logits, strict=True):
                ids = torch.tensor([row.prompt + row.answer], device=self._model.device)
                single_logits = self._model(input_ids=ids, use_cache=False).logits[0, -1].float()
                if not torch.allclose(single_logits, logits, atol=_MAX_TIE_GAP / 2, rtol=0):
                    return False
        return True


class _Batch:
    """The rows being computed: their cache (left-padded to one length) and the logits of their next
    tokens, of shape [rows, vocabulary]."""

    def __init__(self, sampler: Sampler) -> None:
        self.rows: list[_Row] = []
        self.logits: Any = None
        self._sampler = sampler
        self._model = sampler._model
        self._cache: Any = None
        self._mask: Any = None  # [rows, length], 0 where padded

    def add_rows(self, rows: Sequence[_Row]) -> None:
        """Let new rows join; their prompts are read, each distinct one once, unless already
        kept."""
        prompts = list(dict.fromkeys(tuple(row.prompt) for row in rows))
        kept_prefixes = {p: prefix for p in prompts if (prefix := self._sampler._prefixes.get(p))}
        for prompt_group in (list(kept_prefixes), [p for p in prompts if p not in kept_prefixes]):
            joining_rows = [row for row in rows if tuple(row.prompt) in prompt_group]
            if joining_rows:
                self._add_read(
                    joining_rows,
                    prompt_group,
                    [kept_prefixes[p] for p in prompt_group if p in kept_prefixes],
                )

    def _add_read(
        self,
        rows: Sequence[_Row],
        prompts: Sequence[tuple[int, ...]],
        kept_prefixes: Sequence[_Prefix],
    ) -> None:
        """Let rows with these prompts join; the prompts are kept, or must be read."""
        import torch

        length = max(map(len, prompts))
        mask = torch.tensor([[0] * (length - len(p)) + [1] * len(p) for p in prompts])
        if kept_prefixes:
            logits, layers = _stack_prefixes(kept_prefixes, length)
        else:
            pad = self._sampler._padding_token
            ids = torch.tensor([[pad] * (length - len(p)) + list(p) for p in prompts])
            logits, cache = self._run_model(ids, mask, None)
            if len(self.rows) + len(rows) == 1:  # any type of cache may stay as it is
                self._cache, self._mask, self.logits = cache, mask, logits
                self.rows = list(rows)
                return
            layers = _cache_layers(cache)
            self._keep_prefixes(prompts, layers, logits)
        number_by_prompt = {prompt: n for n, prompt in enumerate(prompts)}
        places = [number_by_prompt[tuple(row.prompt)] for row in rows]
        row_numbers = torch.tensor(places, device=logits.device)
        self._join_layers(
            [(k[row_numbers], v[row_numbers]) for k, v in layers], mask[places], logits[row_numbers]
        )
        self.rows = [*self.rows, *rows]

    def _keep_prefixes(
        self, prompts: Sequence[tuple[int, ...]], layers: list[tuple[Any, Any]], logits: Any
    ) -> None:
        """Keep what was read of these prompts, while there is room."""
        prefixes = self._sampler._prefixes
        free_bytes = _MAX_PREFIX_BYTES - sum(prefix.size for prefix in prefixes.values())
        for n, prompt in enumerate(prompts):
            prompt_layers = [
                tuple(x[n : n + 1, :, -len(prompt) :] for x in pair) for pair in layers
            ]
            free_bytes -= _Prefix(prompt_layers, logits[n]).size
            if free_bytes < 0:
                return
            prefixes[prompt] = _Prefix(
                [(k.clone(), v.clone()) for k, v in prompt_layers], logits[n].clone()
            )

    def _join_layers(self, layers: list[tuple[Any, Any]], mask: Any, logits: Any) -> None:
        import torch

        if self.rows:
            width = max(self._mask.shape[1], mask.shape[1])
            layers = [
                (_join_caches(k, new_k, width), _join_caches(v, new_v, width))
                for (k, v), (new_k, new_v) in zip(_cache_layers(self._cache), layers, strict=True)
            ]
            mask = torch.cat([_widen_mask(self._mask, width), _widen_mask(mask, width)])
            logits = torch.cat([self.logits, logits])
        self._cache, self._mask, self.logits = _build_cache(layers), mask, logits

    def keep_rows(self, places: Sequence[int]) -> None:
        """Keep only these rows; remove padding that only the others needed."""
        if len(places) == len(self.rows):
            return
        self.rows = [self.rows[place] for place in places]
        if not places:
            self._cache = self._mask = self.logits = None
            return
        import torch

        self._mask = self._mask[places]
        start = int(self._mask.any(0).int().argmax())
        self._mask = self._mask[:, start:]
        row_numbers = torch.tensor(places, device=self.logits.device)
        self.logits = self.logits[row_numbers]
        self._cache = _build_cache(
            [
                (k[row_numbers, :, start:], v[row_numbers, :, start:])
                for k, v in _cache_layers(self._cache)
            ]
        )

    def read_tokens(self, tokens: Sequence[int]) -> None:
        """Read one token for each row."""
        import torch

        if not self._sampler._uses_cache:  # one row, read again from its beginning
            (row,) = self.rows
            ids = torch.tensor([row.prompt + row.answer])
            self.logits, _ = self._run_model(ids, torch.ones_like(ids), None)
            return
        ones = torch.ones(len(tokens), 1, dtype=self._mask.dtype)
        self._mask = torch.cat([self._mask, ones], dim=1)
        ids = torch.tensor([[token] for token in tokens])
        self.logits, self._cache = self._run_model(ids, self._mask, self._cache)

    def _run_model(self, ids: Any, mask: Any, cache: Any) -> tuple[Any, Any]:
        device = self._model.device
        options = dict(self._sampler._last_logit_options)
        if self._sampler._takes_positions:
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            options["position_ids"] = positions.to(device)
        output = self._model(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            **({self._sampler._cache_name: cache} if cache is not None else {}),
            use_cache=self._sampler._uses_cache,
            **options,
        )
        return output.logits[:, -1], read_cache(output) if self._sampler._uses_cache else None


def answer_without_model(
    tokens: Sequence[int], request: Request, context: int
) -> Completion | None:
    """The completion of a request that needs no model, because its prompt leaves no room for an
    answer or no answer is wanted."""
    if len(tokens) + request.max_tokens > context:
        reason = f"the prompt is longer than the model's context of {context} tokens"
        return Completion("", "error", error=reason)
    if request.max_tokens < 1:
        return Completion("", "length", len(tokens))
    return None


def _cache_layers(cache: Any) -> list[tuple[Any, Any]]:
    """Keys and values of each layer, of shape [rows, heads, length, width]."""
    return [(layer.keys, layer.values) for layer in cache.layers]


def _stack_prefixes(prefixes: Sequence[_Prefix], length: int) -> tuple[Any, list[tuple[Any, Any]]]:
    """The logits and the layers of prompts, padded on the left to a length."""
    import torch
    from torch.nn.functional import pad

    def stack_layer(layer: int, side: int) -> Any:
        tensors = [prefix.layers[layer][side] for prefix in prefixes]
        return torch.cat([pad(x, (0, 0, length - x.shape[2], 0)) for x in tensors])

    layers = [(stack_layer(n, 0), stack_layer(n, 1)) for n in range(len(prefixes[0].layers))]
    return torch.stack([prefix.logits for prefix in prefixes]), layers


def _build_cache(layers: Sequence[tuple[Any, Any]]) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache()
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache


def _join_caches(old_cache: Any, new_cache: Any, width: int) -> Any:
    """Two caches of a layer as one, both padded on the left to a length of `width`."""
    import torch
    from torch.nn.functional import pad

    return torch.cat([pad(x, (0, 0, width - x.shape[2], 0)) for x in (old_cache, new_cache)])


def _widen_mask(mask: Any, width: int) -> Any:
    from torch.nn.functional import pad

    return pad(mask, (width - mask.shape[1], 0))
