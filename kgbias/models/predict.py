"""Predictions of words in sentences by masked and causal models, through transformers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError, no_such
from kgbias.models.base import ModelInfo, Notify, Settings
from kgbias.models.load import As, Loaded, called, float64, load, trained_for
from kgbias.models.pretrained import is_token
from kgbias.models.spec import KINDS, parse, weights

_PIECE = 1024  # sentences read together, wherever they are read: sums depend on the batch
_BATCH_TOKENS = 2048

Ids = tuple[int, ...]
Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Filled:
    """A sentence, with the character positions of a target and an attribute in it."""

    text: str
    target: tuple[int, int]
    attribute: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Natural logarithms: `joint` of the target's probability given the attribute (masked), or of
    target and attribute together (causal); `prior` of the target's without the attribute. Their
    difference is the association of the two, up to a constant of the attribute. `tokens` is the
    number of sub-tokens in target and attribute."""

    joint: float
    prior: float
    tokens: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Tokens:
    ids: Ids
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

    def known(self, word: str) -> bool:
        """Whether the word, after a space, is one token of the vocabulary."""
        return is_token(self._tokenizer, word)

    def predict(self, sentences: Sequence[Filled]) -> list[Prediction]:
        """One prediction per sentence, in order."""
        found: dict[Filled, Prediction] = {}
        for piece in sentence_pieces(sentences):
            found |= zip(piece, self.read(piece), strict=True)
        return [found[sentence] for sentence in sentences]

    @abstractmethod
    def read(self, sentences: Sequence[Filled]) -> list[Prediction]:
        """The predictions of a piece, which depend only on the piece."""

    def _tokens(self, sentence: Filled) -> _Tokens:
        out = self._tokenizer(
            sentence.text, return_offsets_mapping=True, return_special_tokens_mask=True
        )
        places: list[tuple[int, ...]] = []
        for begin, end in (sentence.target, sentence.attribute):
            inside = tuple(
                place
                for place, (start, stop) in enumerate(out["offset_mapping"])
                if not out["special_tokens_mask"][place] and start < end and stop > begin
                and stop > start
            )  # fmt: skip
            if not inside:
                raise DataError(f"{self.info.name} has no token for {sentence.text[begin:end]!r}")
            places.append(inside)
        return _Tokens(tuple(out["input_ids"]), places[0], places[1])

    def _log_probabilities(
        self, sequences: Sequence[Ids], wanted: Sequence[list[tuple[int, int]]]
    ) -> list[Rows]:
        """For each sequence, log p(token | sequence) of each wanted (position, token), float64."""
        import torch

        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        padding = self._tokenizer.pad_token_id or 0
        found: dict[int, Rows] = {}
        while order:
            batch: list[int] = []
            for i in order:
                if batch and (len(batch) + 1) * len(sequences[i]) > _BATCH_TOKENS:
                    break
                batch.append(i)
            del order[: len(batch)]
            longest = len(sequences[batch[-1]])
            ids = torch.full((len(batch), longest), padding)
            mask = torch.zeros((len(batch), longest), dtype=torch.long)
            for row, i in enumerate(batch):
                ids[row, : len(sequences[i])] = torch.tensor(sequences[i])
                mask[row, : len(sequences[i])] = 1
            device = self._model.device
            with torch.inference_mode():
                logits = self._model(
                    input_ids=ids.to(device), attention_mask=mask.to(device)
                ).logits
                for row, i in enumerate(batch):
                    positions = [place for place, _ in wanted[i]]
                    tokens = [token for _, token in wanted[i]]
                    chosen = float64(logits[row, positions]).log_softmax(-1)
                    found[i] = chosen[range(len(tokens)), tokens].cpu().numpy()
        return [found[i] for i in range(len(sequences))]


class MaskedPredictor(_Predictor):
    """A masked language model, asked as Kurita et al. (2019) ask BERT.

    `joint` is log p(target) at the target's masks with the attribute in place, `prior` the same
    with the attribute masked too: read at the *target's* masks, wherever they stand. A word of
    several tokens gets one mask per token, all masked at once; its log-probability is their sum.
    """

    kind = "masked"

    def read(self, sentences: Sequence[Filled]) -> list[Prediction]:
        """As `predict`; each distinct masked sentence is run once."""
        mask = self._tokenizer.mask_token_id
        tokens = [self._tokens(sentence) for sentence in sentences]
        jobs: dict[Ids, dict[tuple[int, int], None]] = {}
        asked = []
        for t in tokens:
            wanted = [(place, t.ids[place]) for place in t.target]
            hidden = [
                tuple(mask if place in places else id for place, id in enumerate(t.ids))
                for places in (t.target, (*t.target, *t.attribute))
            ]
            for sequence in hidden:
                jobs.setdefault(sequence, {}).update(dict.fromkeys(wanted))
            asked.append((hidden, wanted))
        answers = self._log_probabilities(list(jobs), [list(wanted) for wanted in jobs.values()])
        known = {
            sequence: dict(zip(wanted, rows, strict=True))
            for (sequence, wanted), rows in zip(jobs.items(), answers, strict=True)
        }
        predictions = []
        for t, (hidden, wanted) in zip(tokens, asked, strict=True):
            joint, prior = (
                float(sum(known[sequence][pair] for pair in wanted)) for sequence in hidden
            )
            predictions.append(Prediction(joint, prior, (len(t.target), len(t.attribute))))
        return predictions


class CausalPredictor(_Predictor):
    """A causal language model: the probability it gives the attribute after the target.

    log p(attribute | sentence up to it) stands where a masked model's log p(target | attribute) -
    log p(target) does; by Bayes' rule they differ by log p(attribute), which cancels between X and
    Y. `prior` is the log-probability of the sentence before the attribute and `joint` that of the
    sentence up to its end, so that sets of targets may be summed; what follows plays no part.
    """

    kind = "causal"

    def read(self, sentences: Sequence[Filled]) -> list[Prediction]:
        begin = self._tokenizer.bos_token_id
        if begin is None:
            begin = self._tokenizer.eos_token_id
        sequences, wanted, tokens = [], [], []
        for sentence in sentences:
            t = self._tokens(sentence)
            if t.target[-1] >= t.attribute[0]:
                raise UsageError(
                    f"{self.info.name} reads from left to right: a template must have {{t}} before "
                    f"{{a}}, unlike {sentence.text!r}"
                )
            ids = t.ids[: t.attribute[-1] + 1]
            lead = () if begin is None or ids[0] == begin else (begin,)
            full = (*lead, *ids)
            sequences.append(full)
            wanted.append([(place - 1, full[place]) for place in range(1, len(full))])
            tokens.append(t)
        answers = self._log_probabilities(sequences, wanted)
        return [
            Prediction(
                float(rows.sum()),
                float(rows[: -len(t.attribute)].sum()),
                (len(t.target), len(t.attribute)),
            )
            for rows, t in zip(answers, tokens, strict=True)
        ]


def sentence_pieces(sentences: Sequence[Filled]) -> Iterator[list[Filled]]:
    """The distinct sentences in pieces; those that differ only in their target, of which a masked
    model reads one, are kept together."""
    ordered = sorted(set(sentences), key=lambda s: (_without_target(s), astuple(s)))
    for start in range(0, len(ordered), _PIECE):
        yield ordered[start : start + _PIECE]


def _without_target(sentence: Filled) -> str:
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
    parsed = parse(spec)
    files = weights(parsed, revision)
    found = KINDS[parsed.kind].trained_as or trained_for(files, notify)
    check_predicts(files.info, found, kind)
    loaded = load(files, cast(As, found), dtype=dtype, device=device, notify=notify)
    return predictor_of(loaded, found)


def predictor_of(loaded: Loaded, trained: str) -> MaskedPredictor | CausalPredictor:
    """A loaded model that was trained as this, to predict words in sentences."""
    predictor = MaskedPredictor if trained == "masked" else CausalPredictor
    return predictor(loaded.info, loaded.tokenizer, loaded.model)


def check_predicts(info: ModelInfo, trained: str, kind: str) -> None:
    """Raise UsageError unless a model that was trained as this predicts words, as `kind` wants."""
    if kind not in ("auto", "masked", "causal"):
        raise UsageError(no_such("kind", kind, ("auto", "masked", "causal")))
    wanted = ("masked", "causal") if kind == "auto" else (kind,)
    if trained not in wanted:
        raise UsageError(
            f"{info.name} is {called(trained)}: predicting words needs a "
            f"{' or '.join(wanted)} language model"
        )
