"""Scores of texts under a language model: log-likelihood and perplexity.

The perplexity of a text is exp(-(1/n) sum of log p(token | ...)) over its n scored tokens, natural
logarithms, lower is more likely. For a masked model it is the pseudo-perplexity of Salazar et al.
(2020).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, ModelError, UsageError, no_such
from kgbias.io.progress import Progress, SilentProgress
from kgbias.models.base import Can, ModelInfo, Notify, Settings

_LENGTH = 8  # tokens of the test text
_TOLERANCE = {"float32": 1e-5}  # tolerance of a log-probability, relative above 1 nat
_ROUGH = 1e-2  # of coarser types, where another expert may round otherwise


def looks_ahead(read: Callable[[Any], Any], vocabulary: int, device: Any, dtype: str) -> bool:
    """Whether the last token of a text moves the probability of any earlier one.

    Two texts that differ in their last token are read. `read` gives the logits of token ids [1, n],
    [1, n, vocabulary]; those before the last place must be equal up to rounding.
    """
    import torch

    draw = np.random.Generator(np.random.PCG64(0))
    ids = torch.from_numpy(draw.integers(0, vocabulary, (1, _LENGTH))).to(device)
    other = ids.clone()
    other[0, -1] = (ids[0, -1] + 1) % vocabulary
    with torch.inference_mode():
        one, two = (
            read(tokens)[0, : _LENGTH - 1].float().log_softmax(-1) for tokens in (ids, other)
        )
        gap = float(((one - two).abs() / (1 + one.abs())).max())
    return gap > _TOLERANCE.get(dtype, _ROUGH)


Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Ids = tuple[int, ...]
Surprisals = list[tuple[str, float]]  # tokens as text, with bits

BEGINNINGS = ("auto", "bos", "eos", "none")
_SAMPLE = 256  # pairs on which joining tokens is checked against tokenising the whole text


@dataclass(frozen=True, slots=True)
class Convention:
    """How texts were scored; stored with every score.

    `kind` is causal, masked, decoder (an encoder-decoder's decoder, read alone), seq2seq (the
    decoder is scored after the encoder reads the `instruction`) or server. `begin` is what comes
    before a text, given and not scored: bos, eos (for a model without BOS), none (then the text's
    first token is not scored either), special (a masked model's special tokens), start (a decoder's
    start token) or server (whatever the server puts there). `tier` is how it was computed; it
    changes the time taken, not the score. `masked` is what a masked model does not see of a text
    beside the token that it predicts: "" for nothing else, "word" for the rest of its word.
    """

    kind: str
    begin: str
    dtype: str = "float32"
    tier: str = ""
    instruction: str = ""
    masked: str = ""

    def settings(self) -> Settings:
        """The settings that can change a score."""
        return tuple((k, v) for k, v in asdict(self).items() if k != "tier" and v)


@dataclass(frozen=True, slots=True)
class Scores:
    """The texts' natural log-likelihoods and their numbers of tokens, both of shape [n]."""

    log_likelihoods: Array
    tokens: Counts

    @property
    def perplexities(self) -> Array:
        return perplexity(self.log_likelihoods, self.tokens)

    def reshape(self, *shape: int) -> "Scores":
        return Scores(self.log_likelihoods.reshape(shape), self.tokens.reshape(shape))


@dataclass(frozen=True, slots=True)
class Grid:
    """Every group before every statement.

    `whole` are the probes "group statement", `statement` that part of a probe's log-likelihood
    which falls on the statement's tokens (for a causal model log p(statement | group)), each of
    shape [groups, statements]; `group` are the groups alone, of shape [groups]. `surprisals` gives
    the tokens of a probe by its places (see `TextScorer.surprisals`), if available.
    """

    whole: Scores
    statement: Scores
    group: Scores
    surprisals: Callable[[int, int], Surprisals] | None = None

    def check_alone(self, groups: Sequence[str]) -> None:
        """Raise DataError for a group without a token that was scored when it stood alone: a server
        that puts nothing before a text scores no text of a single token."""
        for group, tokens in zip(groups, self.group.tokens, strict=True):
            if not tokens:
                raise DataError(
                    f"no token of {group[:60]!r} has a probability: it is a single token, and the "
                    "server puts none before it"
                )


def perplexity(log_likelihoods: Array, tokens: Counts) -> Array:
    """exp(-log-likelihood / tokens); inf for an impossible text."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-log_likelihoods / tokens), dtype=np.float64)


def surprisals(tokens: Sequence[str], log_probabilities: Array) -> Surprisals:
    """Tokens with -log2 of their probabilities."""
    bits = -log_probabilities / np.log(2)
    return list(zip(tokens, bits.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as the model reads it: `scored` are the positions in `ids` whose tokens count, and
    the last `tail` of those are the statement's."""

    ids: Ids
    scored: tuple[int, ...]
    tail: int = 0


class TextScorer:
    """A model that scores texts. Subclasses define how a text is read (`_encode`, `_joined`) and
    the log-probabilities of its tokens (`_values`). `logprobs` is whether there are any."""

    logprobs: ClassVar[Can] = "yes"
    info: ModelInfo
    settings: Settings
    convention: Convention
    limit: int  # tokens that the model can read at once
    parameters: int | None = None  # of a model on this machine

    def __init__(
        self, info: ModelInfo, tokenizer: Any, convention: Convention, limit: int, first: int
    ) -> None:
        self.convention = convention
        self._first = first  # where a text's own tokens begin
        self.info = info
        self.settings = convention.settings()
        self.limit = limit
        self._tokenizer = tokenizer

    def score(self, texts: Sequence[str], progress: Progress | None = None) -> Scores:
        """One score per text, in order; equal texts are computed once. The score of a text depends
        only on the text (in float32 to a relative 1e-5).

        Raises DataError for a text that is empty, has no token to score, or is too long.
        """
        encoded = [self._encode(text) for text in texts]
        for text, one in zip(texts, encoded, strict=True):
            self._check(text, one)
        return sums(self._run(encoded, None, progress))

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Progress | None = None
    ) -> Grid:
        """Every "group statement", and the groups alone. What the probes share is computed once.

        Groups and statements are tokenised separately and joined, which is far faster, if for a
        sample of probes that gives the same tokens as the whole text; else each probe is tokenised.
        """
        for text in (*groups, *statements):
            _refuse_empty(text)
        alone = [self._encode(group) for group in groups]
        for text, one in zip(groups, alone, strict=True):
            self._check(text, one)
        probes = self._probes(groups, statements)
        for n, one in enumerate(probes):
            if len(one.ids) > self.limit:
                self._check(statements[n % len(statements)], one)
        stems = [len(alone[n // len(statements)].ids) for n in range(len(probes))]
        values = self._run([*alone, *probes], [1] * len(alone) + stems, progress)
        rows = values[len(alone) :]
        ends = [row[len(row) - one.tail :] for row, one in zip(rows, probes, strict=True)]
        return Grid(
            whole=sums(rows).reshape(len(groups), len(statements)),
            statement=sums(ends).reshape(len(groups), len(statements)),
            group=sums(values[: len(alone)]),
            surprisals=lambda g, s: self._in_bits(
                probes[g * len(statements) + s], rows[g * len(statements) + s]
            ),
        )

    def surprisals(self, text: str) -> Surprisals:
        """Each scored token of a text with its surprisal, -log2 p(token | ...), in bits."""
        encoded = self._encode(text)
        self._check(text, encoded)
        (values,) = self._run([encoded], None, None)
        return self._in_bits(encoded, values)

    def _in_bits(self, encoded: Encoded, values: Array) -> Surprisals:
        tokens = [self._tokenizer.decode([encoded.ids[place]]) for place in encoded.scored]
        return surprisals(tokens, values)

    def tokens(self, text: str) -> Ids:
        """A text's own tokens, with nothing around them."""
        return self._plain(text)

    def token_scores(
        self,
        texts: Sequence[Ids],
        places: Sequence[Sequence[int]],
        progress: Progress | None = None,
        *,
        bare: bool = False,
    ) -> list[Array]:
        """log p of the tokens at these places of each text, of those that can be scored. `bare`:
        with nothing before a text, whose first token cannot be scored then (causal models)."""
        encoded = []
        for ids, wanted in zip(texts, places, strict=True):
            whole = self._joined(ids, 0)
            self._check(self._tokenizer.decode(ids), whole)
            if bare:
                encoded.append(Encoded(ids, tuple(p for p in wanted if p)))
                continue
            chosen = {place + self._first for place in wanted}
            encoded.append(Encoded(whole.ids, tuple(p for p in whole.scored if p in chosen)))
        return self._run(encoded, None, progress)

    def _probes(self, groups: Sequence[str], statements: Sequence[str]) -> list[Encoded]:
        first = [self._plain(group) for group in groups]
        second = [self._plain(" " + statement) for statement in statements]
        count = len(first) * len(second)
        rng = np.random.Generator(np.random.PCG64(0))
        sample = range(count) if count <= _SAMPLE else rng.integers(0, count, _SAMPLE)
        for n in sample:
            group, statement = groups[n // len(second)], statements[n % len(second)]
            whole = self._plain(f"{group} {statement}")
            if whole != first[n // len(second)] + second[n % len(second)]:
                return self._wholes(groups, statements)
        # A token that reaches over the boundary holds the end of a group and the first word of a
        # statement: all of these are checked.
        heads = list(dict.fromkeys(statement.split(" ", 1)[0] for statement in statements))
        words = [self._plain(f" {head}") for head in heads]
        for group, ids in zip(groups, first, strict=True):
            pairs = self._tokenizer([f"{group} {h}" for h in heads], add_special_tokens=False)
            whole_pairs = map(tuple, pairs["input_ids"])
            if any(pair != ids + word for pair, word in zip(whole_pairs, words, strict=True)):
                return self._wholes(groups, statements)
        return [self._joined(a + b, len(b)) for a in first for b in second]

    def _wholes(self, groups: Sequence[str], statements: Sequence[str]) -> list[Encoded]:
        return [self._whole(group, statement) for group in groups for statement in statements]

    def _whole(self, group: str, statement: str) -> Encoded:
        """A probe tokenised as one text; a token that reaches into the statement belongs to it."""
        out = self._tokenizer(
            f"{group} {statement}", add_special_tokens=False, return_offsets_mapping=True
        )
        tail = sum(end > len(group) for _, end in out["offset_mapping"])
        return self._joined(tuple(out["input_ids"]), tail)

    def _plain(self, text: str) -> Ids:
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _encode(self, text: str) -> Encoded:
        _refuse_empty(text)
        return self._joined(self._plain(text), 0)

    def _check(self, text: str, encoded: Encoded) -> None:
        shown = text if len(text) <= 60 else text[:60] + "..."
        if len(encoded.ids) > self.limit:
            raise DataError(
                f"a text of {len(encoded.ids)} tokens is longer than the {self.limit} that "
                f"{self.info.name} reads: {shown!r}"
            )
        if not encoded.scored:
            raise DataError(
                f"{shown!r} is a single token, and without one before it nothing can be scored: "
                "set `begin` to bos or eos"
            )

    def _run(
        self, encoded: Sequence[Encoded], stems: Sequence[int] | None, progress: Progress | None
    ) -> list[Array]:
        told = progress or SilentProgress()
        values = self._values(encoded, stems, lambda n: told.advance(n))
        # An impossible token has minus infinity; NaN is no probability, and would pass for 0.
        if any(np.isnan(row).any() or (row == np.inf).any() for row in values):
            raise ModelError(
                f"{self.info.name} gives probabilities that are not numbers: its weights are "
                f"broken, or overflow in {self.convention.dtype} (try dtype float32)"
            )
        return values

    def _joined(self, ids: Ids, tail: int) -> Encoded:
        """Tokens of a text as the model reads them, with what stands around it."""
        raise NotImplementedError

    def _values(
        self,
        encoded: Sequence[Encoded],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        """The log-probabilities of each text's scored tokens."""
        raise NotImplementedError


class Reads(Protocol):
    """Computes log-probabilities from left to right; `tier` is how."""

    tier: str

    def log_probabilities(
        self,
        sequences: Sequence[Ids],
        stems: Sequence[int] | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> list[Array]:
        """For each sequence, log p(token | those before it) of all tokens but the first. `stems`
        is how many tokens each shares with others; `advance` is told how many are done."""
        ...


class LeftToRight(TextScorer):
    """A model that reads from left to right; `engine` computes its log-probabilities. `begin` auto
    is BOS or, with a note, the end of text for a model without BOS."""

    def __init__(
        self,
        info: ModelInfo,
        tokenizer: Any,
        engine: Reads,
        begin: str = "auto",
        *,
        kind: str = "causal",
        dtype: str,
        limit: int,
        how: Settings = (),
        notify: Notify = lambda _: None,
    ) -> None:
        """`how` is what else can change a score, `limit` how many tokens a text may have."""
        found, self._lead = _beginning(info, tokenizer, begin)
        if begin == "auto" and found != "bos":
            notify(
                f"{info.name} has no BOS token: texts begin with "
                f"{'its end of text' if found == 'eos' else 'nothing'} (begin chooses)"
            )
        self.engine = engine
        convention = Convention(kind, found, dtype, engine.tier)
        super().__init__(info, tokenizer, convention, limit, len(self._lead))
        self.settings = tuple({**dict(self.settings), **dict(how)}.items())

    def _joined(self, ids: Ids, tail: int) -> Encoded:
        whole = (*self._lead, *ids)
        return Encoded(whole, tuple(range(1, len(whole))), min(tail, len(whole) - 1))

    def _values(
        self,
        encoded: Sequence[Encoded],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        found = self.engine.log_probabilities([one.ids for one in encoded], stems, advance)
        return [
            row if len(row) == len(one.scored) else row[[place - 1 for place in one.scored]]
            for row, one in zip(found, encoded, strict=True)
        ]


class CausalScorer(LeftToRight):
    """A causal language model of transformers."""

    def __init__(
        self,
        info: ModelInfo,
        tokenizer: Any,
        model: Any,
        begin: str = "auto",
        tier: str = "auto",
        *,
        kind: str = "causal",
        dtype: str = "",
        notify: Notify = lambda _: None,
    ) -> None:
        """`dtype` is what the model was loaded in (default: the type of its weights)."""
        from kgbias.models.score.engine import Engine

        own = str(model.dtype).removeprefix("torch.")
        vocabulary = int(model.config.get_text_config().vocab_size)
        if looks_ahead(
            lambda ids: model(input_ids=ids, use_cache=False).logits,
            vocabulary, model.device, own,
        ):  # fmt: skip
            raise ModelError(
                f"{info.name} looks ahead: the last token changes the probability of earlier "
                "ones, so it has no perplexity from left to right"
            )
        super().__init__(
            info, tokenizer, Engine(model, tier), begin,
            kind=kind, dtype=dtype or own, limit=context(model, tokenizer), notify=notify,
        )  # fmt: skip


def _beginning(info: ModelInfo, tokenizer: Any, begin: str) -> tuple[str, Ids]:
    if begin not in BEGINNINGS:
        raise UsageError(no_such("begin", begin, BEGINNINGS))
    has = {"bos": tokenizer.bos_token_id, "eos": tokenizer.eos_token_id}
    if begin == "auto":
        begin = next((name for name, token in has.items() if token is not None), "none")
    if begin == "none":
        return begin, ()
    token = has[begin]
    if token is None:
        other = "eos or none" if has["eos"] is not None else "none"
        raise UsageError(f"{info.name} has no {begin.upper()} token: set `begin` to {other}")
    return begin, (int(token),)


def context(model: Any, tokenizer: Any) -> int:
    """How many tokens a model reads, if it says so."""
    config = model.config.get_text_config()
    limits = (getattr(config, "max_position_embeddings", None), tokenizer.model_max_length)
    return min((int(n) for n in limits if n and n > 0), default=1 << 30)


def _refuse_empty(text: str) -> None:
    if not text.strip():
        raise DataError("an empty text cannot be scored: leave out empty groups and statements")


def sums(rows: Sequence[Array]) -> Scores:
    """The scores of texts whose scored tokens have these log-probabilities."""
    return Scores(
        np.array([row.sum() for row in rows], dtype=np.float64),
        np.array([len(row) for row in rows], dtype=np.int64),
    )
