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
from kgbias.measure.scorers._reading import (
    Reading,
    Value,
    aligned,
    blanked,
    of_probability,
    of_regard,
    owners,
)
from kgbias.measures import Heads, known
from kgbias.models.load import find_device

_RECIPE = "1"  # raise it when the way from text to answer changes outside _masking.py and the heads
Head = tuple[Path, bool]  # the weights, and whether the texts' groups are replaced
_BATCH_TOKENS = 1024
_REMEMBERED = 20_000  # texts; the measures read the same ones
_LAYERS = 6  # of the encoder
_asked: defaultdict[str, set[Head]] = defaultdict(set)  # heads that scorers were made for
neutralised = lru_cache(maxsize=4096)(_masking.neutralise)  # each measure reads the same texts


def shipped(measure: str) -> Path:
    """The weights that come with kgbias for a measure."""
    return Path(__file__).with_name(_heads(measure).weights)


def _heads(measure: str) -> Heads:
    if (heads := known(measure).heads) is None:
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
        self._own = _heads(measure)
        own = not self._own.sees_group
        self._mask = own if mask is None else mask
        self._heads = heads or shipped(measure), self._mask
        self.device = device
        _minilm.check_there(device)
        if heads:  # not ours, and perhaps not heads at all
            self.network.open(self._heads)
        _asked[device].add(self._heads)
        self.version = _version(self._heads[0])
        if self._mask != own:
            self.version += "-masked" if self._mask else "-unmasked"

    def open(self) -> None:
        """Load the network, along with those of the other scorers made for this device, which read
        together. Otherwise the first text does it; a scorer with nothing to read takes no time."""
        for heads in _asked[self.device]:
            self.network.open(heads)

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge each text; one answer per text, in order. An empty list gives an empty list."""
        texts = [self._masked(text) for text in texts]
        self.open()
        return [self._judge(row) for row in self.network.logits(self._heads, texts)]

    @property
    def head(self) -> Head:
        """The head that reads texts for this scorer."""
        return self._heads

    def form(self, text: str) -> str:
        """The text as it is read."""
        return self._masked(text)

    @cached_property
    def network(self) -> "Network":
        """The encoder that it shares with others on the same device."""
        return _network(find_device(self.device))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles so that another process opens it again."""
        opened = partial(OfflineScorer, mask=self._mask, device=self.device)
        return opened, (self.measure, self._heads[0])

    def words(self, text: str) -> list[str]:
        """The words of a text; a mention that is replaced is one of them."""
        return [word for word, _ in aligned(text, self._masked(text))]

    def reading(self, text: str) -> Reading:
        """The text open to gradients, its tokens those of the form that is scored."""
        masked = self._masked(text)
        words = aligned(text, masked)
        owner = {place: n for n, (_, places) in enumerate(words) for place in places}
        self.open()
        read = self.network.reading(self._heads, masked, self._value())
        return replace(
            read,
            words=[word for word, _ in words],
            owners=[None if place is None else owner.get(place) for place in read.owners],
        )

    def _value(self) -> Value:
        ends, classes = known(self.measure).ends, self._own.outputs
        if ends is None:
            return of_probability(0, sigmoid=True)
        high, low = map(classes.index, ends)
        return of_regard(high, low, len(classes))

    def _masked(self, text: str) -> str:
        if not self._mask:
            return text
        return neutralised(text, agree=not self._own.sees_grammar)

    def _judge(self, row: Sequence[float]) -> Judgement:
        if not self._own.outputs:
            probability = round(1 / (1 + math.exp(-row[0])), 6)
            return probability_judgement(self.measure, probability)
        powers = [math.exp(logit - max(row)) for logit in row]
        return class_judgement(
            self.measure,
            {
                label: round(power / sum(powers), 6)
                for label, power in zip(self._own.outputs, powers, strict=True)
            },
        )


class Network:
    """The encoder, and the readers opened on top of it. All readers of texts in the same form, with
    the group replaced or not, read a text at once; their answers are remembered."""

    def __init__(self, device: str) -> None:
        from kgbias.measure.scorers._reader import split

        self._device = device
        self._tokenizer = _minilm.load_tokenizer()
        lower, self._upper = split(_minilm.load_encoder())
        self._lower = lower.to(device)
        self._heads: dict[Head, Any] = {}
        self._known: dict[Head, dict[str, list[float]]] = {}

    def open(self, heads: Head) -> None:
        """Load heads from a file, unless they are open."""
        if heads in self._heads:
            return
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from kgbias.measure.scorers._reader import Calibrated

        try:
            loaded = Calibrated(load_file(heads[0]), self._upper)
        except (OSError, KeyError, RuntimeError, SafetensorError) as error:
            raise DataError(
                f"{heads[0]} holds no heads for this version of kgbias: {error}"
            ) from error
        self._heads[heads], self._known[heads] = loaded.to(self._device), {}

    def logits(self, heads: Head, texts: Sequence[str]) -> list[list[float]]:
        """The logits that opened heads give each text."""
        known = self._known[heads]
        if len(known) > _REMEMBERED and any(text not in known for text in texts):
            self.forget()
        new = [text for text in dict.fromkeys(texts) if text not in known]
        self.read(new, {h for h in self._heads if h[1] == heads[1]})
        return [known[text] for text in texts]

    def forget(self) -> None:
        """Forget the remembered answers."""
        for said in self._known.values():
            said.clear()

    def read(
        self, texts: Sequence[str], heads: Collection[Head], vectors: bool = False
    ) -> list[tuple[str, Any]]:
        """Read distinct texts once, for all of these heads, and remember their answers. With
        `vectors`, return the mean of the last layer's states over the tokens, [384], for each."""
        import torch

        from kgbias.measure.scorers._reader import above

        if not texts:
            return []
        limit = _minilm.MAX_TOKENS
        encoded = self._tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
        depth = [self._heads[head].highest for head in heads]
        highest = max([*depth, _LAYERS if vectors else 0])
        found: list[tuple[str, Any]] = []
        for batch in same_length_batches([len(ids) for ids in encoded], _BATCH_TOKENS):
            own = [texts[index] for index in batch]
            with torch.inference_mode():
                ids = torch.tensor([encoded[index] for index in batch], device=self._device)
                mask = torch.ones_like(ids)
                lower = self._lower(input_ids=ids, attention_mask=mask, output_hidden_states=True)
                states = tuple(lower.hidden_states)
                states += tuple(above(self._upper, states, highest))
                for head in heads:
                    rows = self._heads[head](states).tolist()
                    self._known[head].update(zip(own, rows, strict=True))
                if vectors:
                    means = states[_LAYERS].mean(dim=1).cpu().double().numpy()
                    found += zip(own, means, strict=True)
        return found

    def reading(self, heads: Head, text: str, value: Value) -> Reading:
        """A text open to gradients, under opened heads."""
        import torch

        encoded = self._tokenizer(
            text, truncation=True, max_length=_minilm.MAX_TOKENS, return_offsets_mapping=True
        )
        network, embed = self._heads[heads], self._lower.get_input_embeddings()
        owner = owners(text, encoded["offset_mapping"])
        ids = torch.tensor([encoded["input_ids"]], device=self._device)
        blank = blanked(ids, owner, self._tokenizer.pad_token_id)

        def states(inputs: Any) -> Any:
            mask = torch.ones(inputs.shape[:2], dtype=torch.long, device=inputs.device)
            read = self._lower(inputs_embeds=inputs, attention_mask=mask, output_hidden_states=True)
            return network.states(read.hidden_states)

        return Reading(
            words=text.split(),
            owners=owner,
            inputs=embed(ids).detach(),
            blank=embed(blank).detach(),
            logits=lambda inputs: network.judge(states(inputs)),
            value=value,
            halves=(states, network.judge),
        )


@cache
def _network(device: str) -> "Network":
    return Network(device)


def offline_metric(measure: str) -> Metric:
    """The metric of the shipped scorer of a measure; nothing is loaded."""
    return Metric(measure, OfflineScorer.name, _version(shipped(measure)))


@cache
def _version(heads: Path) -> str:
    digest = hashlib.sha256(f"{_RECIPE} {_minilm.WEIGHTS_SHA256}".encode())
    for path in (heads, Path(_masking.__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
