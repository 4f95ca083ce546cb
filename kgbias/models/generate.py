"""Batched sampling in which a request gets the same answer whatever else is in the batch.

The token at step t of a request is

    argmax over v of  logits[v] / temperature + Gumbel noise(request.seed, t, v),

which is an exact draw from the softmax (the Gumbel-max trick), and the noise depends only on the
request (`kgbias.models.noise`). Truncation (top-k, top-p, min-p) leaves some tokens out of the
argmax, and noise is made only for those that it leaves. What remains is rounding: sums differ
slightly between a batch of 64 and a single row. So if the best two candidates are closer than
`_MAX_TIE_GAP`, far above the rounding error, or the drawn token is that close to where truncation
cuts, a separate forward pass decides the row, without padding or cache: every batching that meets
the near-tie decides it by the same numbers.

Rows that end leave the batch, and waiting requests take their places. A prompt that is asked
several times is read once, and kept for as long as the following calls ask it again, memory
permitting; so is what prompts begin with alike. What the rows have read stays where it is: a row
that leaves has its place taken by the last one, and one that comes is written beside the others.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from kgbias.errors import ModelError
from kgbias.models.answer_tasks import Finished, Task, TaskQueue
from kgbias.models.base import Completion, Request
from kgbias.models.load import cache_parameter, read_cache
from kgbias.models.noise import gumbel_noise, noise_keys
from kgbias.models.products import fast_products
from kgbias.models.truncate import Truncation, min_p_bounds, score_bounds

if TYPE_CHECKING:
    import torch

DEFAULT_ROWS = 128  # computed at once: each step fetches all weights from memory
_MAX_TIE_GAP = 1e-3  # in units of logit / temperature; the rounding error of float32 is below 1e-4
_MAX_PREFIX_BYTES = 1 << 30  # bytes of prompts kept for the next call
_MIN_BEGINNING = 8  # tokens that prompts begin with alike, to be read once
_SPARE_TOKENS = 32  # that a batch has room for before what it has read is moved


@dataclass(eq=False)
class _Row:
    """A request in the batch: its prompt's tokens and the tokens of its answer so far."""

    index: int
    request: Request
    prompt: list[int]
    started: float
    answer: list[int] = field(default_factory=list)
    text: str = ""
    read: int = 0  # how many of these tokens the model has read


@dataclass(frozen=True, slots=True, eq=False)
class _Prefix:
    """A prompt that was read: keys and values of each layer, [1, heads, length, width], and the
    logits of the next token, [vocabulary]."""

    layers: list[tuple[Any, Any]]
    logits: Any

    @property
    def size(self) -> int:
        return sum(int(tensor.nbytes) for tensor in (self.logits, *chain(*self.layers)))


class ModelStep(NamedTuple):
    """What a model says next, and what it has read."""

    logits: Any
    read: Any


class Sampler:
    """Answers requests with one causal language model of transformers.

    `batch_size` bounds the rows computed at once, and so the memory. `context` is how many tokens
    the model reads.
    """

    def __init__(self, model: Any, tokenizer: Any, batch_size: int = DEFAULT_ROWS) -> None:
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
        # A model that names no limit, such as a recurrent one, reads any length.
        self.context = int(getattr(text_config, "max_position_embeddings", 0) or 1 << 30)
        end_tokens = model.generation_config.eos_token_id
        end_tokens = end_tokens if isinstance(end_tokens, list) else [end_tokens]
        self._end_tokens = {end for end in (*end_tokens, tokenizer.eos_token_id) if end is not None}
        # Any will do: the mask hides it.
        self._padding_token = next(iter(self._end_tokens), 0)
        self._prefixes: dict[tuple[int, ...], _Prefix] = {}
        # What several of the prompts begin with; as in `_Prefix.layers`, once it was read.
        self._beginnings: dict[tuple[int, ...], list[tuple[Any, Any]] | None] = {}
        self._shares_beginnings = True
        self._uses_cache = self._batches_agree()
        if not self._uses_cache:
            self._shares_beginnings = False
            self._uses_cache = self._batches_agree()
        self._prefixes.clear()
        self._batch_size = batch_size if self._uses_cache else 1

    def complete(
        self, requests: Sequence[Request], prompts: Sequence[list[int]]
    ) -> Generator[Finished, None, None]:
        """Answer requests with tokenised prompts; see `Completer.complete`. Both lists may grow
        while they are answered."""
        self.keep_prompts(map(tuple, prompts))
        tasks = TaskQueue(requests, prompts, self.context)
        while True:
            if immediate := tasks.add_new():
                yield immediate
            elif tasks.is_done:
                return
            for finished in self.answer(tasks.take):
                tasks.finish(finished)
                yield finished
                if immediate := tasks.add_new():
                    yield immediate

    def keep_prompts(self, prompts: Iterable[tuple[int, ...]]) -> None:
        """Forget what was read of all other prompts."""
        asked = set(prompts)
        self._prefixes = {p: prefix for p, prefix in self._prefixes.items() if p in asked}
        read_beginnings = {begin: layers for begin, layers in self._beginnings.items() if layers}
        self._beginnings = {}
        for begin in _find_beginnings(asked) if self._shares_beginnings else ():
            same, layers = max(
                ((_count_shared(read, begin), layers) for read, layers in read_beginnings.items()),
                key=itemgetter(0),
                default=(0, []),
            )
            if same < _MIN_BEGINNING:
                self._beginnings[begin] = None
            else:
                self._beginnings[begin[:same]] = [
                    (keys[:, :, :same], values[:, :, :same]) for keys, values in layers
                ]

    def answer(self, take: Callable[[int], list[Task]]) -> Generator[Finished, None, None]:
        """Answer what `take` hands out, which is asked for at most so many tasks as rows become
        free, until it hands out none and all are answered."""
        import torch

        batch = _Batch(self)
        # Taking in one row at a time would read prompts one by one.
        min_free = max(1, self._batch_size // 8)
        while True:
            # Not around the `yield`: the mode is the thread's, and would hold for the caller too.
            with torch.inference_mode():
                free = self._batch_size - len(batch.rows)
                if free >= min_free and (tasks := take(free)):
                    started = perf_counter()
                    batch.add_rows([_Row(t.index, t.request, t.prompt, started) for t in tasks])
                if not batch.rows:
                    return
                finished = self._draw_step(batch)
            if finished:
                yield finished

    def _draw_step(self, batch: "_Batch") -> Finished:
        """Draw a token for each row, remove the rows that ended, and read the tokens."""
        tokens = self._draw_tokens(batch.rows, batch.logits)
        finished: Finished = []
        ended_places: list[int] = []
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
                ended_places.append(place)
        batch.remove_rows(ended_places)
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

        # Greedy rows take the best score, which no division moves.
        temperatures = torch.tensor([row.request.temperature or 1.0 for row in rows])
        scores = logits.float().cpu() / temperatures[:, None]
        best_scores = scores.topk(2).values
        if bool(best_scores.isnan().any()):  # which count as the largest
            raise ModelError(
                "its probabilities are not numbers: its weights are damaged, or overflow in this "
                "dtype (try dtype float32)"
            )
        low, high = _bound_scores(rows, scores, best_scores)
        best = torch.empty(len(rows), 2, dtype=torch.float64)
        tokens = torch.empty(len(rows), dtype=torch.int64)
        if cut_places := torch.nonzero(low > -torch.inf).flatten().tolist():
            best[cut_places], tokens[cut_places] = _choose_tokens(
                [rows[n] for n in cut_places], scores[cut_places], low[cut_places]
            )
        for place in torch.nonzero(low == -torch.inf).flatten().tolist():
            best[place], tokens[place] = _choose_of_all(rows[place], scores[place])
        chosen_scores = scores.gather(1, tokens[:, None])[:, 0]
        is_close = (best[:, 0] - best[:, 1] < _MAX_TIE_GAP) | (chosen_scores < high)
        drawn_tokens: list[int] = tokens.tolist()
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
        return int(_choose_of_all(row, scores[0])[1])

    def _batches_agree(self) -> bool:
        """Whether padding and cached batches change this model's logits by no more than rounding.
        Some architectures (recurrent ones, some with sliding windows) read padding as text; they
        are computed one row at a time, without a cache."""
        import torch

        self._uses_cache = True

        # All that happens in a batch: padding, a token read from the cache, a row that leaves, and
        # some that come later, of which two begin as one that was read.
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        prompts = [
            [token % vocabulary for token in prompt]
            for prompt in ((4, 8, 3, 5, 9, 10, 11), (5, 7), (4, 8, 6, 9), (4, 8, 7), (6, 3))
        ]
        self._beginnings = {tuple(prompts[0][:2]): None} if self._shares_beginnings else {}
        request = Request("", seed=0)
        rows = [_Row(n, request, prompt, 0.0) for n, prompt in enumerate(prompts)]
        with torch.inference_mode():
            try:
                batch = _Batch(self)
                batch.add_rows(rows[:2])
                self._read_trial_token(batch, 11 % vocabulary)
                batch.remove_rows([0])
                batch.add_rows(rows[2:])
                self._read_trial_token(batch, 12 % vocabulary)
                batched_logits = batch.logits.float()
            except (AttributeError, TypeError, ValueError, RuntimeError, IndexError):
                return False
            for row, logits in zip(batch.rows, batched_logits, strict=True):
                ids = torch.tensor([row.prompt + row.answer], device=self._model.device)
                single_logits = self._model(input_ids=ids, use_cache=False).logits[0, -1].float()
                if not torch.allclose(single_logits, logits, atol=_MAX_TIE_GAP / 2, rtol=0):
                    return False
        return True

    def _read_trial_token(self, batch: "_Batch", token: int) -> None:
        """Have each row read this token."""
        for row in batch.rows:
            row.answer.append(token)
        batch.read_tokens([token] * len(batch.rows))

    def run_model(self, ids: Any, mask: Any, cache: Any) -> ModelStep:
        """The logits after the last column of `ids`, [rows, vocabulary], and what was read, with
        what the `cache` has. The mask, over both, has 0 where a row is padded."""
        device = self._model.device
        options = dict(self._last_logit_options)
        if self._takes_positions:
            # Padding, which is not read, is not counted.
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            options["position_ids"] = positions.to(device)
        with fast_products(self._model):
            output = self._model(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                **({self._cache_name: cache} if cache is not None else {}),
                use_cache=self._uses_cache,
                **options,
            )
        return ModelStep(output.logits[:, -1], read_cache(output) if self._uses_cache else None)

    def _keep_prefixes(self, prefixes: Mapping[tuple[int, ...], _Prefix]) -> None:
        """Keep what was read of these prompts, while there is room."""
        free_bytes = _MAX_PREFIX_BYTES - sum(prefix.size for prefix in self._prefixes.values())
        for prompt, prefix in prefixes.items():
            free_bytes -= prefix.size
            if free_bytes < 0:
                return
            self._prefixes[prompt] = prefix

    def find_beginning(self, prompt: tuple[int, ...]) -> tuple[int, ...]:
        """What others of the prompts begin with too; () for a prompt that begins otherwise."""
        beginnings = (b for b in self._beginnings if len(b) < len(prompt))
        return next((b for b in beginnings if prompt[: len(b)] == b), ())

    def read_prompts(self, prompts: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], _Prefix]:
        """Read these prompts, in one pass, and keep them. What others before them began with is not
        read again."""
        import torch
        from transformers import DynamicCache

        found = [self.find_beginning(prompt) for prompt in prompts]
        read_layers = [self._beginnings.get(begin) or [] for begin in found]
        begun = [begin if layers else () for begin, layers in zip(found, read_layers, strict=True)]
        own_tokens = [p[len(begin) :] for p, begin in zip(prompts, begun, strict=True)]
        columns, length = max(map(len, begun)), max(map(len, own_tokens))
        # A row: padding, what its prompt begins with, padding, the rest of it.
        mask = [
            [0] * (columns - len(begin))
            + [1] * len(begin)
            + [0] * (length - len(own))
            + [1] * len(own)
            for begin, own in zip(begun, own_tokens, strict=True)
        ]
        ids = [[self._padding_token] * (length - len(own)) + list(own) for own in own_tokens]
        cache = DynamicCache()
        # Of several beginnings, all have as many layers; those that were not read have none.
        for number, pair in enumerate(next(filter(None, read_layers), [])):
            states = [x.new_zeros(len(prompts), x.shape[1], columns, x.shape[3]) for x in pair]
            for place, layers in enumerate(read_layers):
                for new, read in zip(states, layers[number], strict=True) if layers else ():
                    new[place, :, columns - read.shape[2] :] = read[0]
            cache.update(*states, number)
        logits, cache = self.run_model(torch.tensor(ids), torch.tensor(mask), cache)
        prefixes: dict[tuple[int, ...], _Prefix] = {}
        for place, prompt in enumerate(prompts):
            layers = [
                (layer.keys[place : place + 1], layer.values[place : place + 1])
                for layer in cache.layers
            ]
            at = torch.tensor(mask[place], device=logits.device).nonzero()[:, 0]
            layers = [(k.index_select(2, at), v.index_select(2, at)) for k, v in layers]
            prefixes[prompt] = _Prefix(layers, logits[place].clone())
            if (begin := found[place]) and not self._beginnings[begin]:
                self._beginnings[begin] = [
                    (k[:, :, : len(begin)].clone(), v[:, :, : len(begin)].clone())
                    for k, v in layers
                ]
        self._keep_prefixes(prefixes)
        return prefixes


class _Batch:
    """The rows being computed: what they have read (padded on the left, so that all end together),
    and the logits of their next tokens, of shape [rows, vocabulary].

    The tokens of all rows stand in the columns from `_start` to `_end` of the layers' storage, and
    those of one row from its own start.
    """

    def __init__(self, sampler: Sampler) -> None:
        self.rows: list[_Row] = []
        self.logits: Any = None
        self._sampler = sampler
        self._model = sampler._model
        self._layers: list[tuple[Any, Any]] = []  # each [places, heads, columns, width]
        self._end = 0

    def add_rows(self, rows: Sequence[_Row]) -> None:
        """Let new rows join; their prompts are read, each distinct one once, unless already
        kept."""
        import torch

        if not self._sampler._uses_cache:  # one row
            ids = torch.tensor([row.prompt for row in rows])
            self.logits, _ = self._sampler.run_model(ids, torch.ones_like(ids), None)
            self.rows = list(rows)
            return
        prompts = list(dict.fromkeys(tuple(row.prompt) for row in rows))
        prefixes = {p: prefix for p in prompts if (prefix := self._sampler._prefixes.get(p))}
        if unread_prompts := [prompt for prompt in prompts if prompt not in prefixes]:
            prefixes |= self._sampler.read_prompts(unread_prompts)
        joining_prefixes = [prefixes[tuple(row.prompt)] for row in rows]
        self._make_room(rows, joining_prefixes[0].layers)
        for number, pair in enumerate(self._layers):
            for place, prefix in enumerate(joining_prefixes, len(self.rows)):
                for stored, one in zip(pair, prefix.layers[number], strict=True):
                    stored[place, :, self._end - one.shape[2] : self._end] = one[0]
        joined_logits = torch.stack([prefix.logits for prefix in joining_prefixes])
        self.logits = torch.cat([self.logits, joined_logits]) if self.rows else joined_logits
        self.rows = [*self.rows, *rows]
        for row in rows:
            row.read = len(row.prompt)

    @property
    def _start(self) -> int:
        """The column of the first token that a row has read."""
        return self._end - max((row.read for row in self.rows), default=0)

    def _make_room(self, joining: Sequence[_Row], like: Sequence[tuple[Any, Any]] = ()) -> None:
        """Have storage for these rows to join, with their prompts, and for a token more of each.
        What is stored is moved if there is too little; `like` are tensors of its layers' shapes."""
        used_columns = self._end - self._start
        width = max([used_columns, *(len(row.prompt) for row in joining)])
        places = len(self.rows) + len(joining)
        if self._layers:
            stored_places, _, stored_columns, _ = self._layers[0][0].shape
            if places <= stored_places and width <= self._end < stored_columns:
                return
            if places <= stored_places and width + _SPARE_TOKENS <= stored_columns:
                self._move_columns(width)
                return
            places = max(places, stored_places)
        moved_layers: list[tuple[Any, Any]] = []
        for pair in self._layers or like:
            keys, values = (
                # Not left as it comes: a NaN there would pass the mask, as 0 times NaN is NaN.
                x.new_zeros(places, x.shape[1], width + _SPARE_TOKENS, x.shape[3])
                for x in pair
            )
            if self.rows:
                for new, old in zip((keys, values), pair, strict=True):
                    new[: len(self.rows), :, width - used_columns : width] = old[
                        : len(self.rows), :, self._start : self._end
                    ]
            moved_layers.append((keys, values))
        self._layers, self._end = moved_layers, width

    def _move_columns(self, end: int) -> None:
        """Move what the rows have read to end at this column of the same storage. In new storage
        hundreds of megabytes would be cleared first."""
        read = slice(self._start, self._end)
        moved = slice(end - (self._end - self._start), end)
        for stored in chain(*self._layers):
            stored[: len(self.rows), :, moved] = stored[: len(self.rows), :, read].clone()
        self._end = end

    def remove_rows(self, places: Sequence[int]) -> None:
        """Remove these rows; the last ones take their places."""
        if not places:
            return
        remaining = len(self.rows) - len(places)
        free = [place for place in places if place < remaining]
        removed = set(places)
        last = [place for place in range(remaining, len(self.rows)) if place not in removed]
        if last and self._layers:
            import torch

            device = self.logits.device
            to, origin = torch.tensor(free, device=device), torch.tensor(last, device=device)
            columns = slice(self._start, self._end)
            for stored in chain(*self._layers):
                stored[to, :, columns] = stored[origin, :, columns]
            self.logits[to] = self.logits[origin]
        for place, moved in zip(free, last, strict=True):
            self.rows[place] = self.rows[moved]
        del self.rows[remaining:]
        self.logits = self.logits[:remaining] if remaining else None

    def read_tokens(self, tokens: Sequence[int]) -> None:
        """Read one token for each row; it is the last of the row's answer."""
        import torch

        if not self._sampler._uses_cache:  # one row, read again from its beginning
            (row,) = self.rows
            ids = torch.tensor([row.prompt + row.answer])
            self.logits, _ = self._sampler.run_model(ids, torch.ones_like(ids), None)
            return
        self._make_room([])
        self.logits, _ = self._sampler.run_model(
            torch.tensor([[token] for token in tokens]), self._mask(1), self._cache()
        )
        self._end += 1
        for row in self.rows:
            row.read += 1

    def _mask(self, new_columns: int) -> Any:
        """0 where a row is padded, 1 elsewhere, over what is read and the columns to be read."""
        import torch

        starts = torch.tensor([self._end - row.read for row in self.rows])
        return (torch.arange(self._start, self._end + new_columns) >= starts[:, None]).long()

    def _cache(self) -> Any:
        """What the rows have read, as a model of transformers takes it."""
        from kgbias.models.stored_cache import stored_cache

        return stored_cache(self._layers, len(self.rows), self._start, self._end)


def _find_beginnings(prompts: Collection[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """What at least two of the prompts begin with, and no two of these begin alike."""
    beginnings: list[tuple[int, ...]] = []
    beginning: tuple[int, ...] = ()  # of the prompts at hand, which are neighbours by their tokens
    is_shared = False
    for prompt in [*sorted(prompts), ()]:
        same = _count_shared(beginning, prompt[:-1])
        if same >= _MIN_BEGINNING:
            beginning, is_shared = beginning[:same], True
            continue
        if is_shared:
            beginnings.append(beginning)
        beginning, is_shared = prompt[:-1], False
    return beginnings


def _count_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences begin with alike."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _bound_scores(
    rows: Sequence[_Row], scores: "torch.Tensor", best_scores: "torch.Tensor"
) -> "tuple[torch.Tensor, torch.Tensor]":
    """`score_bounds` of each row, from its scores and the best two of them; -inf for rows without
    truncation. Of greedy rows only the best two tokens can be chosen."""
    import torch

    low = torch.full((len(rows),), -torch.inf)
    high = low.clone()
    places_by_rule: dict[Truncation, list[int]] = {}
    for place, row in enumerate(rows):
        if row.request.temperature == 0:
            low[place] = best_scores[place, 1]
        elif row.request.truncation:
            places_by_rule.setdefault(row.request.truncation, []).append(place)
    for truncation, places in places_by_rule.items():
        rules = truncation.as_dict()
        if rules.keys() == {"min_p"}:
            low[places], high[places] = min_p_bounds(
                best_scores[places], rules["min_p"], _MAX_TIE_GAP
            )
            continue
        for place in places:
            bounds = score_bounds(scores[place], truncation, _MAX_TIE_GAP)
            low[place], high[place] = bounds
    return low, high


def _choose_tokens(
    rows: Sequence[_Row], scores: "torch.Tensor", low: "torch.Tensor"
) -> "tuple[torch.Tensor, torch.Tensor]":
    """The best two of each row's scores with noise, [rows, 2], and the token of the best, [rows].
    Only tokens with a score of at least `low` can be chosen. Greedy rows get no noise."""
    import torch

    places, tokens = (scores >= low[:, None]).nonzero(as_tuple=True)
    keys = noise_keys([(row.request.seed, len(row.answer)) for row in rows])
    noise = torch.from_numpy(gumbel_noise(keys[places.numpy()], tokens.numpy()))
    sampled = torch.tensor([row.request.temperature > 0 for row in rows])
    counts = torch.bincount(places, minlength=len(rows))
    # `nonzero` goes row by row: a candidate's column is its number less those of the rows before.
    columns = torch.arange(len(places)) - (counts.cumsum(0) - counts)[places]
    # The best two are taken, also where one can be chosen.
    width = max(2, int(counts.max()))
    noisy_scores = torch.full((len(rows), width), -torch.inf, dtype=torch.float64)
    noisy_scores[places, columns] = scores[places, tokens] + noise * sampled[places]
    candidates = torch.zeros((len(rows), width), dtype=torch.int64)
    candidates[places, columns] = tokens
    best, chosen_columns = noisy_scores.topk(2)
    return best, candidates.gather(1, chosen_columns[:, :1])[:, 0]


def _choose_of_all(row: _Row, scores: "torch.Tensor") -> "tuple[torch.Tensor, torch.Tensor]":
    """The same for one row, from its scores of the whole vocabulary; what is cut has -inf."""
    import torch

    noisy_scores = scores.double()
    if row.request.temperature > 0:
        keys = noise_keys([(row.request.seed, len(row.answer))])
        noisy_scores += torch.from_numpy(gumbel_noise(keys, np.arange(len(scores))))
    best, tokens = noisy_scores.topk(2)
    return best, tokens[0]
