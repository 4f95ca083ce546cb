"""Batched sampling in which a request gets the same answer whatever else is in the batch.

The token at step t of a request is

    argmax over v of  logits[v] / temperature + Gumbel noise(request.seed, t, v),

which is an exact draw from the softmax (the Gumbel-max trick), and the noise depends only on the
request. Truncation (top-k, top-p, min-p) leaves some tokens out of the argmax. What remains is
rounding: sums differ slightly between a batch of 32 and a single row. So if the best two candidates
are closer than `_TIE`, far above the rounding error, or the drawn token is that close to where
truncation cuts, a separate forward pass decides the row, without padding or cache: every batching
that meets the near-tie decides it by the same numbers.

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
from kgbias.models.load import cache_in, cache_name
from kgbias.models.truncate import bounds

if TYPE_CHECKING:
    import torch

_TIE = 1e-3  # in units of logit / temperature; the rounding error of float32 is below 1e-4
_KEPT = 1 << 30  # bytes of prompts kept for the next call


@dataclass(eq=False)
class _Row:
    """A request in the batch: its prompt's tokens and the tokens of its answer so far."""

    index: int
    request: Request
    prompt: list[int]
    began: float
    answer: list[int] = field(default_factory=list)
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Prefix:
    """A prompt that was read: keys and values of each layer, [1, heads, length, width], and the
    logits of the next token, [vocabulary]."""

    layers: list[tuple[Any, Any]]
    logits: Any

    @property
    def bytes(self) -> int:
        return sum(int(x.nbytes) for x in (self.logits, *chain(*self.layers)))


class Sampler:
    """Answers requests with one causal language model of transformers.

    `batch_size` bounds the rows computed at once, and so the memory.
    """

    def __init__(self, model: Any, tokenizer: Any, batch_size: int = 32) -> None:
        from inspect import signature

        self._model = model
        self._tokenizer = tokenizer
        accepted = signature(model.forward).parameters
        self._cache_name = cache_name(model)
        self._positions = "position_ids" in accepted
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        config = model.config.get_text_config()
        self._context = int(getattr(config, "max_position_embeddings", 0) or 1 << 30)
        ends = model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        self._ends = {end for end in (*ends, tokenizer.eos_token_id) if end is not None}
        self._pad = next(iter(self._ends), 0)
        self._prefixes: dict[tuple[int, ...], _Prefix] = {}
        self._cached = self._batches_agree()
        self._prefixes.clear()
        self._batch_size = batch_size if self._cached else 1

    def complete(
        self, requests: Sequence[Request], prompts: Sequence[list[int]]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer requests with tokenised prompts; see `Completer.complete`."""
        import torch

        # Equal prompts are adjacent, to be read once; longest first keeps rows of similar length
        # in one batch.
        order = sorted(range(len(requests)), key=lambda i: (-len(prompts[i]), prompts[i], i))
        again = set(map(tuple, prompts))
        self._prefixes = {p: read for p, read in self._prefixes.items() if p in again}
        waiting: list[int] = []
        for index in reversed(order):
            if at_once := answer_without(prompts[index], requests[index], self._context):
                yield [(index, at_once)]
            else:
                waiting.append(index)
        batch = _Batch(self)
        while waiting or batch.rows:
            with torch.inference_mode():
                free = self._batch_size - len(batch.rows)
                # Taking in one row at a time would read prompts one by one.
                if waiting and free >= max(1, min(self._batch_size // 4, len(waiting))):
                    now = perf_counter()
                    taken = [waiting.pop() for _ in range(min(free, len(waiting)))]
                    batch.add([_Row(i, requests[i], prompts[i], now) for i in taken])
                done = self._step(batch)
            if done:
                yield done

    def _step(self, batch: "_Batch") -> list[tuple[int, Completion]]:
        """Draw a token for each row, remove the rows that ended, and read the tokens."""
        tokens = self._draw(batch.rows, batch.logits)
        done: list[tuple[int, Completion]] = []
        keep: list[int] = []
        for place, (row, token) in enumerate(zip(batch.rows, tokens, strict=True)):
            if finish := self._extend(row, token):
                completion = Completion(
                    row.text,
                    finish,
                    len(row.prompt),
                    len(row.answer),
                    perf_counter() - row.began,
                )
                done.append((row.index, completion))
            else:
                keep.append(place)
        batch.keep(keep)
        if batch.rows:
            batch.read([row.answer[-1] for row in batch.rows])
        return done

    def _extend(self, row: _Row, token: int) -> Literal["stop", "length"] | None:
        """Add a token to a row's answer; how the answer ended, if it did."""
        if token in self._ends:
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

    def _draw(self, rows: Sequence[_Row], logits: "torch.Tensor") -> list[int]:
        """The next token of each row, from logits of shape [rows, vocabulary]."""
        import torch

        scores = logits.float().cpu()
        if bool(scores.isnan().any()):
            raise ModelError(
                "its probabilities are not numbers: its weights are damaged, or overflow in this "
                "dtype (try dtype float32)"
            )
        heat = torch.tensor([row.request.temperature or 1.0 for row in rows])
        scores /= heat[:, None]
        cuts = torch.full((len(rows), 2), -torch.inf)
        for place, row in enumerate(rows):
            if row.request.truncation:
                cuts[place] = torch.tensor(bounds(scores[place], row.request.truncation, _TIE))
        low, high = cuts[:, :1], cuts[:, 1:]
        noised = (scores + self._noise(rows, scores.shape[1])).masked_fill_(
            scores < low, -torch.inf
        )
        best, tokens = noised.topk(2, dim=-1)
        drawn: list[int] = tokens[:, 0].tolist()
        close = (best[:, 0] - best[:, 1] < _TIE) | (scores.gather(1, tokens) < high)[:, 0]
        for place in torch.nonzero(close).flatten().tolist():
            drawn[place] = self._decide_alone(rows[place])
        return drawn

    def _decide_alone(self, row: _Row) -> int:
        import torch

        ids = torch.tensor([row.prompt + row.answer], device=self._model.device)
        logits = self._model(input_ids=ids, use_cache=False, **self._last_only).logits[:, -1]
        scores = logits.float().cpu() / (row.request.temperature or 1.0)
        scores = row.request.truncation.apply(scores)
        return int((scores + self._noise([row], scores.shape[1])).argmax())

    @staticmethod
    def _noise(rows: Sequence[_Row], vocabulary: int) -> "torch.Tensor":
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

        self._cached = True

        longer, shorter = list(range(3, 10)), [5, 7]
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        request = Request("", seed=0)
        rows = [
            _Row(n, request, [token % vocabulary for token in prompt], 0.0)
            for n, prompt in enumerate((longer, shorter))
        ]
        with torch.inference_mode():
            try:
                batch = _Batch(self)
                batch.add(rows[:1])
                batch.read([11 % vocabulary])
                rows[0].answer.append(11 % vocabulary)
                batch.add(rows[1:])
                together = batch.logits.float()
            except (AttributeError, TypeError, ValueError, RuntimeError, IndexError):
                return False
            for row, logits in zip(rows, together, strict=True):
                ids = torch.tensor([row.prompt + row.answer], device=self._model.device)
                alone = self._model(input_ids=ids, use_cache=False).logits[0, -1].float()
                if not torch.allclose(alone, logits, atol=_TIE / 2, rtol=0):
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

    def add(self, rows: Sequence[_Row]) -> None:
        """Let new rows join; their prompts are read, each distinct one once, unless already
        kept."""
        prompts = list(dict.fromkeys(tuple(row.prompt) for row in rows))
        kept = {p: read for p in prompts if (read := self._sampler._prefixes.get(p))}
        for some in (list(kept), [p for p in prompts if p not in kept]):
            joining = [row for row in rows if tuple(row.prompt) in some]
            if joining:
                self._add(joining, some, [kept[p] for p in some if p in kept])

    def _add(
        self, rows: Sequence[_Row], prompts: Sequence[tuple[int, ...]], kept: Sequence[_Prefix]
    ) -> None:
        """Let rows with these prompts join; the prompts are kept, or must be read."""
        import torch

        length = max(map(len, prompts))
        mask = torch.tensor([[0] * (length - len(p)) + [1] * len(p) for p in prompts])
        if kept:
            logits, layers = _stacked(kept, length)
        else:
            pad = self._sampler._pad
            ids = torch.tensor([[pad] * (length - len(p)) + list(p) for p in prompts])
            logits, cache = self._forward(ids, mask, None)
            if len(self.rows) + len(rows) == 1:  # any type of cache may stay as it is
                self._cache, self._mask, self.logits = cache, mask, logits
                self.rows = list(rows)
                return
            layers = _layers(cache)
            self._keep_read(prompts, layers, logits)
        number = {prompt: n for n, prompt in enumerate(prompts)}
        places = [number[tuple(row.prompt)] for row in rows]
        select = torch.tensor(places, device=logits.device)
        self._join([(k[select], v[select]) for k, v in layers], mask[places], logits[select])
        self.rows = [*self.rows, *rows]

    def _keep_read(
        self, prompts: Sequence[tuple[int, ...]], layers: list[tuple[Any, Any]], logits: Any
    ) -> None:
        """Keep what was read of these prompts, while there is room."""
        held = self._sampler._prefixes
        room = _KEPT - sum(prefix.bytes for prefix in held.values())
        for n, prompt in enumerate(prompts):
            own = [tuple(x[n : n + 1, :, -len(prompt) :] for x in pair) for pair in layers]
            room -= _Prefix(own, logits[n]).bytes
            if room < 0:
                return
            held[prompt] = _Prefix([(k.clone(), v.clone()) for k, v in own], logits[n].clone())

    def _join(self, layers: list[tuple[Any, Any]], mask: Any, logits: Any) -> None:
        import torch

        if self.rows:
            width = max(self._mask.shape[1], mask.shape[1])
            layers = [
                (_joined(k, new_k, width), _joined(v, new_v, width))
                for (k, v), (new_k, new_v) in zip(_layers(self._cache), layers, strict=True)
            ]
            mask = torch.cat([_widened(self._mask, width), _widened(mask, width)])
            logits = torch.cat([self.logits, logits])
        self._cache, self._mask, self.logits = _cache_of(layers), mask, logits

    def keep(self, places: Sequence[int]) -> None:
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
        select = torch.tensor(places, device=self.logits.device)
        self.logits = self.logits[select]
        self._cache = _cache_of(
            [(k[select, :, start:], v[select, :, start:]) for k, v in _layers(self._cache)]
        )

    def read(self, tokens: Sequence[int]) -> None:
        """Read one token for each row."""
        import torch

        if not self._sampler._cached:  # one row, read again from its beginning
            (row,) = self.rows
            ids = torch.tensor([row.prompt + row.answer])
            self.logits, _ = self._forward(ids, torch.ones_like(ids), None)
            return
        ones = torch.ones(len(tokens), 1, dtype=self._mask.dtype)
        self._mask = torch.cat([self._mask, ones], dim=1)
        ids = torch.tensor([[token] for token in tokens])
        self.logits, self._cache = self._forward(ids, self._mask, self._cache)

    def _forward(self, ids: Any, mask: Any, cache: Any) -> tuple[Any, Any]:
        device = self._model.device
        options = dict(self._sampler._last_only)
        if self._sampler._positions:
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            options["position_ids"] = positions.to(device)
        out = self._model(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            **({self._sampler._cache_name: cache} if cache is not None else {}),
            use_cache=self._sampler._cached,
            **options,
        )
        return out.logits[:, -1], cache_in(out) if self._sampler._cached else None


def answer_without(tokens: Sequence[int], request: Request, context: int) -> Completion | None:
    """The completion of a request that needs no model, because its prompt leaves no room for an
    answer or no answer is wanted."""
    if len(tokens) + request.max_tokens > context:
        why = f"the prompt is longer than the model's context of {context} tokens"
        return Completion("", "error", error=why)
    if request.max_tokens < 1:
        return Completion("", "length", len(tokens))
    return None


def _layers(cache: Any) -> list[tuple[Any, Any]]:
    """Keys and values of each layer, of shape [rows, heads, length, width]."""
    return [(layer.keys, layer.values) for layer in cache.layers]


def _stacked(read: Sequence[_Prefix], length: int) -> tuple[Any, list[tuple[Any, Any]]]:
    """The logits and the layers of prompts, padded on the left to a length."""
    import torch
    from torch.nn.functional import pad

    def together(layer: int, side: int) -> Any:
        own = [prefix.layers[layer][side] for prefix in read]
        return torch.cat([pad(x, (0, 0, length - x.shape[2], 0)) for x in own])

    layers = [(together(n, 0), together(n, 1)) for n in range(len(read[0].layers))]
    return torch.stack([prefix.logits for prefix in read]), layers


def _cache_of(layers: Sequence[tuple[Any, Any]]) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache()
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache


def _joined(old: Any, new: Any, width: int) -> Any:
    """Two caches of a layer as one, both padded on the left to a length of `width`."""
    import torch
    from torch.nn.functional import pad

    return torch.cat([pad(x, (0, 0, width - x.shape[2], 0)) for x in (old, new)])


def _widened(mask: Any, width: int) -> Any:
    from torch.nn.functional import pad

    return pad(mask, (width - mask.shape[1], 0))
