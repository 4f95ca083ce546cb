"""The offline scorer: MiniLM from its package, its readers from this folder."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError
from kgbias.graph.types import Metric
from kgbias.measure.scorers import _masking, _minilm
from kgbias.measure.scorers._base import (
    Judgement,
    class_judgement,
    probability_judgement,
    same_length_batches,
)
from kgbias.measure.scorers._gradients import (
    GradientReading,
    LogitReadout,
    align_words,
    blank_words,
    probability_readout,
    regard_readout,
    token_owners,
)
from kgbias.measures import Heads, get_measure
from kgbias.models.load import find_device

_RECIPE_VERSION = (
    "1"  # raise it when the way from text to answer changes outside _masking.py and the heads
)
HeadKey = tuple[Path, bool]  # the weights, and whether the texts' groups are replaced
_MAX_BATCH_TOKENS = 1024
_MAX_KEPT_TEXTS = 20_000  # texts; the measures read the same ones
_ENCODER_LAYERS = 6  # of the encoder
_requested_heads: defaultdict[str, set[HeadKey]] = defaultdict(
    set
)  # heads that scorers were made for
neutralise_text = lru_cache(maxsize=4096)(_masking.neutralise)  # each measure reads the same texts


def shipped_weights(measure: str) -> Path:
    """The weights that come with kgbias for a measure."""
    return Path(__file__).with_name(_heads_of(measure).weights)


def _heads_of(measure: str) -> Heads:
    if (heads := get_measure(measure).heads) is None:
        raise UsageError(f"the offline scorer has no heads for {measure}")
    return heads


class OfflineScorer:
    """Regard, toxicity, identity attack and acceptability from all-MiniLM-L6-v2 with small trained
    heads (`kgbias.measures.Heads`), without network.

    The group's mention is replaced by a neutral word before scoring (`_masking.neutralise`), so
    the same statement about two groups gets the same score if the rules find the mention; only
    identity attack sees the group. Texts are cut at 128 tokens. English only: in other languages
    the answers are meaningless, near neutral or not. Answers are rounded to six decimals. The
    scorers that are open in a process share one pass through the encoder, except identity attack,
    which reads other texts.

    Args:
        measure: one that has `heads`, such as "regard".
        heads: the trained weights, a safetensors file as training/scorers writes it; None:
            the shipped ones.
        mask: whether the group's mention is replaced; None: as the measure sets it. Choose
            otherwise only to measure the effect of masking.
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device.
    """

    name = "minilm-heads"
    language = "en"
    has_states = True

    def __init__(
        self,
        measure: str,
        heads: Path | None = None,
        *,
        mask: bool | None = None,
        device: str = "auto",
    ) -> None:
        self.measure: str = measure
        self._heads_entry = _heads_of(measure)
        masks_by_default = not self._heads_entry.sees_group
        self._masks_group = masks_by_default if mask is None else mask
        self._head_key = heads or shipped_weights(measure), self._masks_group
        self.device = device
        _minilm.check_available(device)
        if heads:  # not ours, and perhaps not heads at all
            self.network.load_head(self._head_key)
        _requested_heads[device].add(self._head_key)
        self.version = _heads_version(self._head_key[0])
        if self._masks_group != masks_by_default:
            self.version += "-masked" if self._masks_group else "-unmasked"

    def open(self) -> None:
        """Load the network, along with those of the other scorers made for this device, which read
        together. Otherwise the first text does it; a scorer with nothing to read takes no time."""
        for heads in _requested_heads[self.device]:
            self.network.load_head(heads)

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge each text; one answer per text, in order. An empty list gives an empty list."""
        texts = [self._mask_text(text) for text in texts]
        self.open()
        return [self._judge_row(row) for row in self.network.logits(self._head_key, texts)]

    @property
    def head(self) -> HeadKey:
        """The head that reads texts for this scorer."""
        return self._head_key

    def masked_form(self, text: str) -> str:
        """The text as it is read."""
        return self._mask_text(text)

    @cached_property
    def network(self) -> "OfflineNetwork":
        """The encoder that it shares with others on the same device."""
        return _network_on(find_device(self.device))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles so that another process opens it again."""
        open_scorer = partial(OfflineScorer, mask=self._masks_group, device=self.device)
        return open_scorer, (self.measure, self._head_key[0])

    def words(self, text: str) -> list[str]:
        """The words of a text; a mention that is replaced is one of them."""
        return [word for word, _ in align_words(text, self._mask_text(text))]

    def gradient_reading(self, text: str) -> GradientReading:
        """The text open to gradients, its tokens those of the form that is scored."""
        masked_text = self._mask_text(text)
        words = align_words(text, masked_text)
        owner_by_place = {place: n for n, (_, places) in enumerate(words) for place in places}
        self.open()
        network_reading = self.network.gradient_reading(
            self._head_key, masked_text, self._logit_readout()
        )
        return replace(
            network_reading,
            words=[word for word, _ in words],
            owners=[
                None if place is None else owner_by_place.get(place)
                for place in network_reading.owners
            ],
        )

    def _logit_readout(self) -> LogitReadout:
        ends, classes = get_measure(self.measure).ends, self._heads_entry.outputs
        if ends is None:
            return probability_readout(0, sigmoid=True)
        high, low = map(classes.index, ends)
        return regard_readout(high, low, len(classes))

    def _mask_text(self, text: str) -> str:
        if not self._masks_group:
            return text
        return neutralise_text(text, agree=not self._heads_entry.sees_grammar)

    def _judge_row(self, row: Sequence[float]) -> Judgement:
        if not self._heads_entry.outputs:
            probability = round(1 / (1 + math.exp(-row[0])), 6)
            return probability_judgement(self.measure, probability)
        # less the largest: exp cannot overflow
        powers = [math.exp(logit - max(row)) for logit in row]
        return class_judgement(
            self.measure,
            {
                label: round(power / sum(powers), 6)
                for label, power in zip(self._heads_entry.outputs, powers, strict=True)
            },
        )


class OfflineNetwork:
    """The encoder, and the readers opened on top of it. All readers of texts in the same form, with
    the group replaced or not, read a text at once; their answers are remembered."""

    def __init__(self, device: str) -> None:
        from kgbias.measure.scorers._reader import split_encoder

        self._device = device
        self._tokenizer = _minilm.load_tokenizer()
        lower, self._upper = split_encoder(_minilm.load_encoder())
        self._lower = lower.to(device)
        self._heads: dict[HeadKey, Any] = {}
        self._kept_logits: dict[HeadKey, dict[str, list[float]]] = {}

    def load_head(self, heads: HeadKey) -> None:
        """Load heads from a file, unless they are open."""
        if heads in self._heads:
            return
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from kgbias.measure.scorers._reader import CalibratedReader

        try:
            reader = CalibratedReader(load_file(heads[0]), self._upper)
        except OSError as error:
            raise DataError(f"cannot read {heads[0]}: {error.strerror or error}") from error
        except (KeyError, RuntimeError, SafetensorError) as error:
            raise DataError(
                f"{heads[0]} holds no heads for this version of kgbias: {error}"
            ) from error
        self._heads[heads], self._kept_logits[heads] = reader.to(self._device), {}

    def logits(self, heads: HeadKey, texts: Sequence[str]) -> list[list[float]]:
        """The logits that opened heads give each text."""
        kept_logits = self._kept_logits[heads]
        if len(kept_logits) > _MAX_KEPT_TEXTS and any(text not in kept_logits for text in texts):
            # All heads at once: they are read together, and would fill again one by one.
            self.forget_answers()
        new_texts = [text for text in dict.fromkeys(texts) if text not in kept_logits]
        self.read_texts(new_texts, {h for h in self._heads if h[1] == heads[1]})
        return [kept_logits[text] for text in texts]

    def forget_answers(self) -> None:
        """Forget the remembered answers."""
        for kept_logits in self._kept_logits.values():
            kept_logits.clear()

    def read_texts(
        self, texts: Sequence[str], heads: Collection[HeadKey], vectors: bool = False
    ) -> list[tuple[str, Any]]:
        """Read distinct texts once, for all of these heads, and remember their answers. With
        `vectors`, return the mean of the last layer's states over the tokens, [384], for each."""
        import torch

        from kgbias.measure.scorers._reader import read_upper_layers

        if not texts:
            return []
        limit = _minilm.MAX_TOKENS
        token_ids = self._tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
        depth = [self._heads[head].highest for head in heads]
        highest = max([*depth, _ENCODER_LAYERS if vectors else 0])
        texts_and_means: list[tuple[str, Any]] = []
        for batch in same_length_batches([len(ids) for ids in token_ids], _MAX_BATCH_TOKENS):
            batch_texts = [texts[index] for index in batch]
            with torch.inference_mode():
                ids = torch.tensor([token_ids[index] for index in batch], device=self._device)
                mask = torch.ones_like(ids)
                lower = self._lower(input_ids=ids, attention_mask=mask, output_hidden_states=True)
                states = tuple(lower.hidden_states)
                # The encoder's upper layers run once, and only as far as a head reads.
                states += tuple(read_upper_layers(self._upper, states, highest))
                for head in heads:
                    rows = self._heads[head](states).tolist()
                    self._kept_logits[head].update(zip(batch_texts, rows, strict=True))
                if vectors:
                    # No padding to leave out: texts of a batch have one length.
                    means = states[_ENCODER_LAYERS].mean(dim=1).cpu().double().numpy()
                    texts_and_means += zip(batch_texts, means, strict=True)
        return texts_and_means

    def gradient_reading(self, heads: HeadKey, text: str, value: LogitReadout) -> GradientReading:
        """A text open to gradients, under opened heads."""
        import torch

        tokenised = self._tokenizer(
            text, truncation=True, max_length=_minilm.MAX_TOKENS, return_offsets_mapping=True
        )
        network, embed = self._heads[heads], self._lower.get_input_embeddings()
        word_numbers = token_owners(text, tokenised["offset_mapping"])
        ids = torch.tensor([tokenised["input_ids"]], device=self._device)
        # The padding token is what the model was trained to take for nothing.
        blank_ids = blank_words(ids, word_numbers, self._tokenizer.pad_token_id)

        def states(inputs: Any) -> Any:
            mask = torch.ones(inputs.shape[:2], dtype=torch.long, device=inputs.device)
            lower_states = self._lower(
                inputs_embeds=inputs, attention_mask=mask, output_hidden_states=True
            )
            return network.states(lower_states.hidden_states)

        return GradientReading(
            words=text.split(),
            owners=word_numbers,
            inputs=embed(ids).detach(),
            blank=embed(blank_ids).detach(),
            logits=lambda inputs: network.calibrated_logits(states(inputs)),
            value=value,
            halves=(states, network.calibrated_logits),
        )


@cache
def _network_on(device: str) -> "OfflineNetwork":
    return OfflineNetwork(device)


def offline_metric(measure: str) -> Metric:
    """The metric of the shipped scorer of a measure; nothing is loaded."""
    return Metric(measure, OfflineScorer.name, _heads_version(shipped_weights(measure)))


@cache
def _heads_version(heads: Path) -> str:
    digest = hashlib.sha256(f"{_RECIPE_VERSION} {_minilm.WEIGHTS_SHA256}".encode())
    # A changed rule of masking changes what is read: a new version of the scorer. So even a comment
    # there makes every score and `precision.tsv` out of date.
    for path in (heads, Path(_masking.__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
