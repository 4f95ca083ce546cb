"""Predictions of words in sentences by masked and causal models, through transformers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError, no_such
from kgbias.models.base import ModelInfo, Notify, Settings
from kgbias.models.load import (
    LoadedModel,
    ModelRole,
    describe_trained_kind,
    load,
    read_trained_kind,
    to_float64,
)
from kgbias.models.pretrained import is_token
from kgbias.models.spec import KINDS, parse_spec, resolve_weights

_PIECE_SENTENCES = 1024  # sentences read together, wherever they are read: sums depend on the batch
_MAX_BATCH_TOKENS = 2048

TokenIds = tuple[int, ...]
LogProbRows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """A sentence, with the character positions of a target and an attribute in it."""

    text: str
    target: tuple[int, int]
    attribute: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Natural logarithms: `log_joint` of the target's probability given the attribute (masked), or
    of target and attribute together (causal); `log_prior` of the target's without the attribute.
    Their difference is the association of the two, up to a constant of the attribute. `tokens` is
    the number of sub-tokens in target and attribute."""

    log_joint: float
    log_prior: float
    tokens: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _TokenisedSentence:
    ids: TokenIds
    target: tuple[int, ...]
    attribute: tuple[int, ...]


class _Predictor(ABC):
    """What both kinds share: the tokenizer, and where words are among its tokens."""

    kind = ""

    def __init__(self, info: ModelInfo, tokenizer: Any, model: Any) -> None:
        self.info = info
        self.settings: Settings = (("dtype", str(model.dtype).removeprefix("torch.")),)
        self._tokenizer = tokenizer
        self._model = model

    def is_token(self, word: str) -> bool:
        """Whether the word, after a space, is one token of the vocabulary."""
        return is_token(self._tokenizer, word)

    def predict(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]:
        """One prediction per sentence, in order."""
        predictions: dict[FilledTemplate, Prediction] = {}
        for piece in iter_sentence_pieces(sentences):
            predictions |= zip(piece, self.read(piece), strict=True)
        return [predictions[sentence] for sentence in sentences]

    @abstractmethod
    def read(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]:
        """The predictions of a piece, which depend only on the piece."""

    def _tokenise(self, sentence: FilledTemplate) -> _TokenisedSentence:
        tokenised = self._tokenizer(
            sentence.text, return_offsets_mapping=True, return_special_tokens_mask=True
        )
        places: list[tuple[int, ...]] = []
        for begin, end in (sentence.target, sentence.attribute):
            word_places = tuple(
                place
                for place, (start, stop) in enumerate(tokenised["offset_mapping"])
                if not tokenised["special_tokens_mask"][place]
                and start < end
                and stop > begin
                and stop > start
            )
            if not word_places:
                raise DataError(f"{self.info.name} has no token for {sentence.text[begin:end]!r}")
            places.append(word_places)
        return _TokenisedSentence(tuple(tokenised["input_ids"]), places[0], places[1])

    def _log_probabilities(
        self, sequences: Sequence[TokenIds], positions_and_tokens: Sequence[list[tuple[int, int]]]
    ) -> list[LogProbRows]:
        """For each sequence, log p(token | sequence) of each wanted (position, token), float64."""
        import torch

        order = sorted(range(len(sequences)), key=lambda index: len(sequences[index]))
        # Which one it is makes no difference: it stands behind the text, and the mask hides it.
        padding = self._tokenizer.pad_token_id or 0
        rows_by_index: dict[int, LogProbRows] = {}
        while order:
            batch: list[int] = []
            for index in order:
                if batch and (len(batch) + 1) * len(sequences[index]) > _MAX_BATCH_TOKENS:
                    break
                batch.append(index)
            del order[: len(batch)]
            max_length = len(sequences[batch[-1]])
            ids = torch.full((len(batch), max_length), padding)
            mask = torch.zeros((len(batch), max_length), dtype=torch.long)
            for row, index in enumerate(batch):
                ids[row, : len(sequences[index])] = torch.tensor(sequences[index])
                mask[row, : len(sequences[index])] = 1
            device = self._model.device
            with torch.inference_mode():
                logits = self._model(
                    input_ids=ids.to(device), attention_mask=mask.to(device)
                ).logits
                for row, index in enumerate(batch):
                    positions = [place for place, _ in positions_and_tokens[index]]
                    tokens = [token for _, token in positions_and_tokens[index]]
                    chosen_logs = to_float64(logits[row, positions]).log_softmax(-1)
                    rows_by_index[index] = chosen_logs[range(len(tokens)), tokens].cpu().numpy()
        return [rows_by_index[index] for index in range(len(sequences))]


class MaskedPredictor(_Predictor):
    """A masked language model, asked as Kurita et al. (2019) ask BERT.

    `joint` is log p(target) at the target's masks with the attribute in place, `prior` the same
    with the attribute masked too: read at the *target's* masks, wherever they stand. A word of
    several tokens gets one mask per token, all masked at once; its log-probability is their sum.
    """

    kind = "masked"

    def read(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]:
        """As `predict`; each distinct masked sentence is run once."""
        mask = self._tokenizer.mask_token_id
        tokens = [self._tokenise(sentence) for sentence in sentences]
        # The inner dictionary is a set that keeps its order.
        jobs: dict[TokenIds, dict[tuple[int, int], None]] = {}
        queries = []
        for tokenised in tokens:
            target_places = [(place, tokenised.ids[place]) for place in tokenised.target]
            both_places = (*tokenised.target, *tokenised.attribute)
            masked_sequences = [
                _mask_places(tokenised.ids, places, mask)
                for places in (tokenised.target, both_places)
            ]
            for sequence in masked_sequences:
                jobs.setdefault(sequence, {}).update(dict.fromkeys(target_places))
            queries.append((masked_sequences, target_places))
        answers = self._log_probabilities(
            list(jobs), [list(target_places) for target_places in jobs.values()]
        )
        log_probs = {
            sequence: dict(zip(target_places, rows, strict=True))
            for (sequence, target_places), rows in zip(jobs.items(), answers, strict=True)
        }
        predictions = []
        for tokenised, (masked_sequences, target_places) in zip(tokens, queries, strict=True):
            log_joint, log_prior = (
                float(sum(log_probs[sequence][pair] for pair in target_places))
                for sequence in masked_sequences
            )
            predictions.append(
                Prediction(log_joint, log_prior, (len(tokenised.target), len(tokenised.attribute)))
            )
        return predictions


def _mask_places(ids: TokenIds, places: Sequence[int], mask: int) -> TokenIds:
    """The tokens, with the mask at these places."""
    return tuple(mask if place in places else token for place, token in enumerate(ids))


class CausalPredictor(_Predictor):
    """A causal language model: the probability it gives the attribute after the target.

    log p(attribute | sentence up to it) stands where a masked model's log p(target | attribute) -
    log p(target) does; by Bayes' rule they differ by log p(attribute), which cancels between X and
    Y. `prior` is the log-probability of the sentence before the attribute and `joint` that of the
    sentence up to its end, so that sets of targets may be summed; what follows plays no part.
    """

    kind = "causal"

    def read(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]:
        begin = self._tokenizer.bos_token_id
        if begin is None:
            begin = self._tokenizer.eos_token_id
        sequences, positions_and_tokens, tokens = [], [], []
        for sentence in sentences:
            tokenised = self._tokenise(sentence)
            if tokenised.target[-1] >= tokenised.attribute[0]:
                raise UsageError(
                    f"{self.info.name} reads from left to right: a template must have {{t}} before "
                    f"{{a}}, unlike {sentence.text!r}"
                )
            ids = tokenised.ids[: tokenised.attribute[-1] + 1]
            # The first token of a text has a probability only after another one.
            lead = () if begin is None or ids[0] == begin else (begin,)
            full_sequence = (*lead, *ids)
            sequences.append(full_sequence)
            positions_and_tokens.append(
                [(place - 1, full_sequence[place]) for place in range(1, len(full_sequence))]
            )
            tokens.append(tokenised)
        answers = self._log_probabilities(sequences, positions_and_tokens)
        return [
            Prediction(
                float(rows.sum()),
                float(rows[: -len(tokenised.attribute)].sum()),
                (len(tokenised.target), len(tokenised.attribute)),
            )
            for rows, tokenised in zip(answers, tokens, strict=True)
        ]


def iter_sentence_pieces(sentences: Sequence[FilledTemplate]) -> Iterator[list[FilledTemplate]]:
    """The distinct sentences in pieces; those that differ only in their target, of which a masked
    model reads one, are kept together."""
    ordered_sentences = sorted(set(sentences), key=lambda s: (_without_target(s), astuple(s)))
    for start in range(0, len(ordered_sentences), _PIECE_SENTENCES):
        yield ordered_sentences[start : start + _PIECE_SENTENCES]


def _without_target(sentence: FilledTemplate) -> str:
    return sentence.text[: sentence.target[0]] + sentence.text[sentence.target[1] :]


def open_predictor(
    spec: str,
    *,
    kind: str = "auto",
    dtype: str = "float32",
    device: str = "auto",
    revision: str | None = None,
    notify: Notify | None = None,
) -> MaskedPredictor | CausalPredictor:
    """The model of a spec, to predict words in sentences.

    Args:
        spec: a model spec.
        kind: "masked" or "causal" requires such a model; "auto" is what it was trained as.
        dtype: "float32", "bfloat16" or "float16", for the model's computations.
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device.
        revision: require this revision (see `kgbias.models.spec.resolve`).
        notify: called with one line for each thing that takes long.

    Raises:
        UsageError: an unknown spec, or not a language model of that kind.
        ModelError: the model cannot be loaded.
    """
    parsed = parse_spec(spec)
    files = resolve_weights(parsed, revision)
    trained_role = KINDS[parsed.kind].trained_as or read_trained_kind(files, notify)
    check_predictor_kind(files.info, trained_role, kind)
    loaded_model = load(
        files, cast(ModelRole, trained_role), dtype=dtype, device=device, notify=notify
    )
    return make_predictor(loaded_model, trained_role)


def make_predictor(
    loaded_model: LoadedModel, trained_role: str
) -> MaskedPredictor | CausalPredictor:
    """A loaded model that was trained as this, to predict words in sentences."""
    predictor = MaskedPredictor if trained_role == "masked" else CausalPredictor
    return predictor(loaded_model.info, loaded_model.tokenizer, loaded_model.model)


def check_predictor_kind(info: ModelInfo, trained_role: str, kind: str) -> None:
    """Raise UsageError unless a model that was trained as this predicts words, as `kind` wants."""
    if kind not in ("auto", "masked", "causal"):
        raise UsageError(no_such("kind", kind, ("auto", "masked", "causal")))
    wanted_roles = ("masked", "causal") if kind == "auto" else (kind,)
    if trained_role not in wanted_roles:
        raise UsageError(
            f"{info.name} is {describe_trained_kind(trained_role)}: predicting words needs a "
            f"{' or '.join(wanted_roles)} language model"
        )
