"""Scores of texts under a language model: log-likelihood and perplexity.

The perplexity of a text is exp(-(1/n) sum of log p(token | ...)) over its n scored tokens, natural
logarithms, lower is more likely. For a masked model it is the pseudo-perplexity of Salazar et al.
(2020).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, ModelError, UsageError, no_such
from kgbias.io.progress import Progress, SilentProgress
from kgbias.language.words import join_words, word_gap
from kgbias.models.base import ModelInfo, Notify, Settings, Support

_PROBE_TOKENS = 8  # tokens of the test text
_TOLERANCES = {"float32": 1e-5}  # tolerance of a log-probability, relative above 1 nat
_ROUGH_TOLERANCE = 1e-2  # of coarser types, where another expert may round otherwise


def looks_ahead(
    read_logits: Callable[[Any], Any], vocabulary: int, device: Any, dtype: str
) -> bool:
    """Whether the last token of a text moves the probability of any earlier one.

    Two texts that differ in their last token are read. `read_logits` gives the logits of token ids
    [1, n], [1, n, vocabulary]; those before the last place must be equal up to rounding.
    """
    import torch

    rng = np.random.Generator(np.random.PCG64(0))
    ids = torch.from_numpy(rng.integers(0, vocabulary, (1, _PROBE_TOKENS))).to(device)
    changed_ids = ids.clone()
    # Another token, whichever it was.
    changed_ids[0, -1] = (ids[0, -1] + 1) % vocabulary
    with torch.inference_mode():
        first_logs, second_logs = (
            read_logits(tokens)[0, : _PROBE_TOKENS - 1].float().log_softmax(-1)
            for tokens in (ids, changed_ids)
        )
        gap = float(((first_logs - second_logs).abs() / (1 + first_logs.abs())).max())
    return gap > _TOLERANCES.get(dtype, _ROUGH_TOLERANCE)


Array = NDArray[np.float64]
Counts = NDArray[np.int64]
TokenIds = tuple[int, ...]
Surprisals = list[tuple[str, float]]  # tokens as text, with bits

BEGINNINGS = ("auto", "bos", "eos", "none")
_CHECKED_PAIRS = 256  # pairs on which joining tokens is checked against tokenising the whole text


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
class ProbeGrid:
    """Every group before every statement.

    `probes` are the probes "group statement", `statement` that part of a probe's log-likelihood
    which falls on the statement's tokens (for a causal model log p(statement | group)), each of
    shape [groups, statements]; `group` are the groups alone, of shape [groups]. `surprisals` gives
    the tokens of a probe by its places (see `TextScorer.surprisals`), if available.
    """

    probes: Scores
    statement: Scores
    group: Scores
    surprisals: Callable[[int, int], Surprisals] | None = None

    def check_group_tokens(self, groups: Sequence[str]) -> None:
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


def pair_surprisals(tokens: Sequence[str], log_probabilities: Array) -> Surprisals:
    """Tokens with -log2 of their probabilities."""
    bits = -log_probabilities / np.log(2)
    return list(zip(tokens, bits.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class TokenisedText:
    """A text as the model reads it: `scored` are the positions in `ids` whose tokens count, and
    the last `statement_tokens` of those are the statement's."""

    ids: TokenIds
    scored: tuple[int, ...]
    statement_tokens: int = 0


class TextScorer:
    """A model that scores texts. Subclasses define how a text is read (`_encode`, `_frame_tokens`)
    and the log-probabilities of its tokens (`_log_probabilities`). `logprobs` is whether there are
    any."""

    logprobs: ClassVar[Support] = "yes"
    info: ModelInfo
    settings: Settings
    convention: Convention
    limit: int  # tokens that the model can read at once
    parameters: int | None = None  # of a model on this machine

    def __init__(
        self, info: ModelInfo, tokenizer: Any, convention: Convention, limit: int, first: int
    ) -> None:
        self.convention = convention
        self._first_own_token = first  # where a text's own tokens begin
        self.info = info
        self.settings = convention.settings()
        self.limit = limit
        self._tokenizer = tokenizer

    def score(self, texts: Sequence[str], progress: Progress | None = None) -> Scores:
        """One score per text, in order; equal texts are computed once. The score of a text depends
        only on the text (in float32 to a relative 1e-5).

        Raises DataError for a text that is empty, has no token to score, or is too long.
        """
        tokenised = [self._encode(text) for text in texts]
        for text, one in zip(texts, tokenised, strict=True):
            self._check_text(text, one)
        return sum_scores(self._compute_values(tokenised, None, progress))

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Progress | None = None
    ) -> ProbeGrid:
        """Every "group statement", and the groups alone. What the probes share is computed once.

        Groups and statements are tokenised separately and joined, which is far faster, if for a
        sample of probes that gives the same tokens as the whole text; else each probe is tokenised.
        """
        for text in (*groups, *statements):
            _refuse_empty(text)
        group_texts = [self._encode(group) for group in groups]
        for text, one in zip(groups, group_texts, strict=True):
            self._check_text(text, one)
        probes = self._tokenise_probes(groups, statements)
        for n, one in enumerate(probes):
            if len(one.ids) > self.limit:
                self._check_text(statements[n % len(statements)], one)
        stems = [len(group_texts[n // len(statements)].ids) for n in range(len(probes))]
        values = self._compute_values(
            [*group_texts, *probes], [1] * len(group_texts) + stems, progress
        )
        probe_rows = values[len(group_texts) :]
        statement_rows = [
            row[len(row) - one.statement_tokens :]
            for row, one in zip(probe_rows, probes, strict=True)
        ]
        return ProbeGrid(
            probes=sum_scores(probe_rows).reshape(len(groups), len(statements)),
            statement=sum_scores(statement_rows).reshape(len(groups), len(statements)),
            group=sum_scores(values[: len(group_texts)]),
            surprisals=lambda g, s: self._to_surprisals(
                probes[g * len(statements) + s], probe_rows[g * len(statements) + s]
            ),
        )

    def surprisals(self, text: str) -> Surprisals:
        """Each scored token of a text with its surprisal, -log2 p(token | ...), in bits."""
        tokenised = self._encode(text)
        self._check_text(text, tokenised)
        (values,) = self._compute_values([tokenised], None, None)
        return self._to_surprisals(tokenised, values)

    def _to_surprisals(self, tokenised: TokenisedText, values: Array) -> Surprisals:
        tokens = [self._tokenizer.decode([tokenised.ids[place]]) for place in tokenised.scored]
        return pair_surprisals(tokens, values)

    def tokens(self, text: str) -> TokenIds:
        """A text's own tokens, with nothing around them."""
        return self._tokenise(text)

    def token_scores(
        self,
        texts: Sequence[TokenIds],
        places: Sequence[Sequence[int]],
        progress: Progress | None = None,
        *,
        bare: bool = False,
    ) -> list[Array]:
        """log p of the tokens at these places of each text, of those that can be scored. `bare`:
        with nothing before a text, whose first token cannot be scored then (causal models)."""
        tokenised = []
        for ids, wanted_places in zip(texts, places, strict=True):
            whole_text = self._frame_tokens(ids, 0)
            self._check_text(self._tokenizer.decode(ids), whole_text)
            if bare:
                tokenised.append(TokenisedText(ids, tuple(p for p in wanted_places if p)))
                continue
            chosen_places = {place + self._first_own_token for place in wanted_places}
            tokenised.append(
                TokenisedText(
                    whole_text.ids, tuple(p for p in whole_text.scored if p in chosen_places)
                )
            )
        return self._compute_values(tokenised, None, progress)

    def _tokenise_probes(
        self, groups: Sequence[str], statements: Sequence[str]
    ) -> list[TokenisedText]:
        ends, beginnings = {g[-1:] for g in groups}, {s[:1] for s in statements}
        if not all(word_gap(end, beginning) for end in ends for beginning in beginnings):
            return self._tokenise_whole_probes(groups, statements)
        group_tokens = [self._tokenise(group) for group in groups]
        # In the middle of a text a word has a space before it, which many vocabularies count in.
        statement_tokens = [self._tokenise(" " + statement) for statement in statements]
        count = len(group_tokens) * len(statement_tokens)
        rng = np.random.Generator(np.random.PCG64(0))
        sample = range(count) if count <= _CHECKED_PAIRS else rng.integers(0, count, _CHECKED_PAIRS)
        for n in sample:
            group, statement = (
                groups[n // len(statement_tokens)],
                statements[n % len(statement_tokens)],
            )
            whole_tokens = self._tokenise(f"{group} {statement}")
            if (
                whole_tokens
                != group_tokens[n // len(statement_tokens)]
                + statement_tokens[n % len(statement_tokens)]
            ):
                return self._tokenise_whole_probes(groups, statements)
        # A token that reaches over the boundary holds the end of a group and the first word of a
        # statement: all of these are checked.
        first_words = list(dict.fromkeys(statement.split(" ", 1)[0] for statement in statements))
        word_tokens = [self._tokenise(f" {word}") for word in first_words]
        for group, ids in zip(groups, group_tokens, strict=True):
            pairs = self._tokenizer([f"{group} {h}" for h in first_words], add_special_tokens=False)
            whole_pairs = map(tuple, pairs["input_ids"])
            if any(pair != ids + word for pair, word in zip(whole_pairs, word_tokens, strict=True)):
                return self._tokenise_whole_probes(groups, statements)
        return [self._frame_tokens(a + b, len(b)) for a in group_tokens for b in statement_tokens]

    def _tokenise_whole_probes(
        self, groups: Sequence[str], statements: Sequence[str]
    ) -> list[TokenisedText]:
        return [
            self._tokenise_whole_probe(group, statement)
            for group in groups
            for statement in statements
        ]

    def _tokenise_whole_probe(self, group: str, statement: str) -> TokenisedText:
        """A probe tokenised as one text; a token that reaches into the statement belongs to it."""
        tokenised = self._tokenizer(
            join_words(group, statement), add_special_tokens=False, return_offsets_mapping=True
        )
        statement_tokens = sum(end > len(group) for _, end in tokenised["offset_mapping"])
        return self._frame_tokens(tuple(tokenised["input_ids"]), statement_tokens)

    def _tokenise(self, text: str) -> TokenIds:
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _encode(self, text: str) -> TokenisedText:
        _refuse_empty(text)
        return self._frame_tokens(self._tokenise(text), 0)

    def _check_text(self, text: str, tokenised: TokenisedText) -> None:
        excerpt = text if len(text) <= 60 else text[:60] + "..."
        if len(tokenised.ids) > self.limit:
            raise DataError(
                f"a text of {len(tokenised.ids)} tokens is longer than the {self.limit} that "
                f"{self.info.name} reads: {excerpt!r}"
            )
        if not tokenised.scored:
            raise DataError(
                f"{excerpt!r} is a single token, and without one before it nothing can be scored: "
                "set `begin` to bos or eos"
            )

    def _compute_values(
        self,
        tokenised: Sequence[TokenisedText],
        stems: Sequence[int] | None,
        progress: Progress | None,
    ) -> list[Array]:
        progress_bar = progress or SilentProgress()
        values = self._log_probabilities(tokenised, stems, lambda n: progress_bar.advance(n))
        # An impossible token has minus infinity; NaN is no probability, and would pass for 0.
        if any(np.isnan(row).any() or (row == np.inf).any() for row in values):
            raise ModelError(
                f"{self.info.name} gives probabilities that are not numbers: its weights are "
                f"broken, or overflow in {self.convention.dtype} (try dtype float32)"
            )
        return values

    def _frame_tokens(self, ids: TokenIds, statement_tokens: int) -> TokenisedText:
        """Tokens of a text as the model reads them, with what stands around it."""
        raise NotImplementedError

    def _log_probabilities(
        self,
        tokenised: Sequence[TokenisedText],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        """The log-probabilities of each text's scored tokens."""
        raise NotImplementedError


class LogProbEngine(Protocol):
    """Computes log-probabilities from left to right; `tier` is how."""

    tier: str

    def log_probabilities(
        self,
        sequences: Sequence[TokenIds],
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
        engine: LogProbEngine,
        begin: str = "auto",
        *,
        kind: str = "causal",
        dtype: str,
        limit: int,
        other_settings: Settings = (),
        notify: Notify = lambda _: None,
    ) -> None:
        """`other_settings` is what else can change a score, `limit` how many tokens a text may
        have."""
        beginning, self._lead = _find_beginning(info, tokenizer, begin)
        if begin == "auto" and beginning != "bos":
            notify(
                f"{info.name} has no BOS token: texts begin with "
                f"{'its end of text' if beginning == 'eos' else 'nothing'} (begin chooses)"
            )
        self.engine = engine
        convention = Convention(kind, beginning, dtype, engine.tier)
        super().__init__(info, tokenizer, convention, limit, len(self._lead))
        self.settings = tuple({**dict(self.settings), **dict(other_settings)}.items())

    def _frame_tokens(self, ids: TokenIds, statement_tokens: int) -> TokenisedText:
        framed_ids = (*self._lead, *ids)
        return TokenisedText(
            # The first token is given: without a lead that is one of the text's own.
            framed_ids,
            tuple(range(1, len(framed_ids))),
            min(statement_tokens, len(framed_ids) - 1),
        )

    def _log_probabilities(
        self,
        tokenised: Sequence[TokenisedText],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        rows = self.engine.log_probabilities([one.ids for one in tokenised], stems, advance)
        return [
            # The first value is that of the second token.
            row if len(row) == len(one.scored) else row[[place - 1 for place in one.scored]]
            for row, one in zip(rows, tokenised, strict=True)
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
        is_checked: bool = False,
        notify: Notify = lambda _: None,
    ) -> None:
        """`dtype` is what the model was loaded in (default: the type of its weights), `is_checked`
        whether it was seen before that it does not look ahead."""
        from kgbias.models.score.engine import CausalEngine

        weight_dtype = str(model.dtype).removeprefix("torch.")
        vocabulary = int(model.config.get_text_config().vocab_size)
        if not is_checked and looks_ahead(
            lambda ids: model(input_ids=ids, use_cache=False).logits,
            vocabulary,
            model.device,
            weight_dtype,
        ):
            raise ModelError(
                f"{info.name} looks ahead: the last token changes the probability of earlier "
                "ones, so it has no perplexity from left to right"
            )
        super().__init__(
            info,
            tokenizer,
            CausalEngine(model, tier),
            begin,
            kind=kind,
            dtype=dtype or weight_dtype,
            limit=context_length(model, tokenizer),
            notify=notify,
        )


class _Beginning(NamedTuple):
    """What stands before a text that is scored."""

    name: str
    tokens: TokenIds


def _find_beginning(info: ModelInfo, tokenizer: Any, begin: str) -> _Beginning:
    if begin not in BEGINNINGS:
        raise UsageError(no_such("begin", begin, BEGINNINGS))
    beginning_tokens = {"bos": tokenizer.bos_token_id, "eos": tokenizer.eos_token_id}
    if begin == "auto":
        begin = next(
            (name for name, token in beginning_tokens.items() if token is not None), "none"
        )
    if begin == "none":
        return _Beginning(begin, ())
    token = beginning_tokens[begin]
    if token is None:
        other_choices = "eos or none" if beginning_tokens["eos"] is not None else "none"
        raise UsageError(
            f"{info.name} has no {begin.upper()} token: set `begin` to {other_choices}"
        )
    return _Beginning(begin, (int(token),))


def context_length(model: Any, tokenizer: Any) -> int:
    """How many tokens a model reads, if it says so."""
    config = model.config.get_text_config()
    token_limits = (getattr(config, "max_position_embeddings", None), tokenizer.model_max_length)
    return min((int(n) for n in token_limits if n and n > 0), default=1 << 30)


def _refuse_empty(text: str) -> None:
    if not text.strip():
        raise DataError("an empty text cannot be scored: leave out empty groups and statements")


def sum_scores(rows: Sequence[Array]) -> Scores:
    """The scores of texts whose scored tokens have these log-probabilities."""
    return Scores(
        np.array([row.sum() for row in rows], dtype=np.float64),
        np.array([len(row) for row in rows], dtype=np.int64),
    )
