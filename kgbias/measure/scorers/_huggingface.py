"""Any Hugging Face text classifier as a scorer."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.errors import UsageError
from kgbias.measure.scorers._base import (
    Judgement,
    class_judgement,
    probability_judgement,
    same_length_batches,
)
from kgbias.measure.scorers._gradients import (
    GradientReading,
    LogitReadout,
    blank_words,
    probability_readout,
    regard_readout,
    token_owners,
)
from kgbias.measures import Measure, get_measure
from kgbias.models.load import load, to_float64
from kgbias.models.spec import Spec, resolve

_MULTI_LABEL = "multi_label_classification"
_MAX_BATCH_TOKENS = 2048
_MAX_TOKENS = 512


class HuggingFaceScorer:
    """A sequence classifier loaded through transformers (`load_scorer` says what `spec` may be).

    The version holds the revision that was loaded (for a local folder, a hash of its weights and
    configuration) and the label. Texts are cut at 512 tokens, or the model's own limit if lower.
    """

    language = None
    has_states = False  # many classifiers judge only by their first token's state

    def __init__(
        self,
        measure: str,
        spec: str,
        device: str = "auto",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._open_arguments = measure, spec, device, labels
        self.device = device
        model_id, revision, label = parse_classifier_spec(spec)
        entry = get_measure(measure)
        if entry.ends and label is not None:
            raise UsageError(
                f"hf:{spec}: no label is chosen for {measure}, which uses the model's own"
            )
        if not (entry.ends or entry.sides):
            raise UsageError(f"hf:{spec}: {measure} is not a probability: no classifier scores it")
        self.measure: str = measure
        files = resolve(Spec("hf", model_id, revision=revision or ""))
        loaded_model = load(files, "classifier", device=device)
        self._tokenizer, self._model = loaded_model.tokenizer, loaded_model.model
        model_labels = _label_names(self._model.config)
        self._labels = _translate_labels(model_labels, labels or {}, entry, model_id)
        if entry.ends:
            self._positions = _class_positions(entry, entry.ends, self._labels, model_id)
        elif entry.sides:
            self._positions = {entry.sides[0]: _find_position(entry, self._labels, label, model_id)}
        config = self._model.config
        # RoBERTa numbers positions from 2 on (its padding token's id plus 1): 514 hold 512.
        positions = getattr(config, "max_position_embeddings", _MAX_TOKENS + 2)
        self._limit = min(_MAX_TOKENS, self._tokenizer.model_max_length, positions - 2)
        # A softmax over a single label is always 1.
        self._sigmoid = len(self._labels) == 1 or config.problem_type == _MULTI_LABEL
        folder = Path(model_id)
        resolved_revision = _folder_hash(folder) if folder.is_dir() else files.commit or revision
        self.name = f"hf:{files.info.public_name}" if files.info.is_local else f"hf:{model_id}"
        # What the user says labels mean changes the judgements, so it is part of the version.
        used_labels = ",".join(
            model_labels[i]
            if model_labels[i] == self._labels[i]
            else f"{model_labels[i]}={self._labels[i]}"
            for i in self._positions.values()
        )
        self.version = f"{resolved_revision or 'unknown'}:{used_labels}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles so that another process opens it again."""
        return HuggingFaceScorer, self._open_arguments

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge each text; one answer per text, in order. An empty list gives an empty list."""
        import torch

        if not texts:
            return []
        token_ids = self._tokenizer(list(texts), truncation=True, max_length=self._limit)[
            "input_ids"
        ]
        judgements: list[Judgement | None] = [None] * len(texts)
        for batch in same_length_batches([len(ids) for ids in token_ids], _MAX_BATCH_TOKENS):
            with torch.inference_mode():
                ids = torch.tensor([token_ids[i] for i in batch], device=self._model.device)
                logits = to_float64(self._model(input_ids=ids).logits)
                rows = (logits.sigmoid() if self._sigmoid else logits.softmax(dim=1)).tolist()
            for index, row in zip(batch, rows, strict=True):
                judgements[index] = self._judge_row(row)
        # None is left over: every text is in one batch. The check is for the type alone.
        return [judgement for judgement in judgements if judgement is not None]

    def gradient_reading(self, text: str) -> GradientReading:
        """The text open to gradients.

        Raises:
            UsageError: the tokenizer does not say where its tokens are.
        """
        import torch

        if not self._tokenizer.is_fast:
            raise UsageError(
                f"{self.name}: its tokenizer does not say where in a text its tokens are, as "
                "gradients need; use `method` occlusion"
            )
        tokenised = self._tokenizer(
            text, truncation=True, max_length=self._limit, return_offsets_mapping=True
        )
        word_numbers = token_owners(text, tokenised["offset_mapping"])
        embed = self._model.get_input_embeddings()
        ids = torch.tensor([tokenised["input_ids"]], device=self._model.device)
        # GPT-like tokenizers have no padding token.
        filler_ids = (self._tokenizer.pad_token_id, self._tokenizer.unk_token_id, 0)
        blank_ids = blank_words(ids, word_numbers, next(id for id in filler_ids if id is not None))
        return GradientReading(
            words=text.split(),
            owners=word_numbers,
            inputs=embed(ids).detach(),
            blank=embed(blank_ids).detach(),
            logits=self._logits,
            value=self._logit_readout(),
        )

    def _logits(self, inputs: Any) -> Any:
        try:
            return self._model(inputs_embeds=inputs).logits.float()
        except (NotImplementedError, TypeError, ValueError) as error:
            raise UsageError(
                f"{self.name} takes no embeddings, which gradients need; use `method` occlusion"
            ) from error

    def _logit_readout(self) -> LogitReadout:
        positions = self._positions
        if ends := get_measure(self.measure).ends:
            high, low = (positions[label] for label in ends)
            return regard_readout(high, low, len(self._labels), sigmoid=self._sigmoid)
        return probability_readout(*positions.values(), sigmoid=self._sigmoid)

    def _judge_row(self, row: Sequence[float]) -> Judgement:
        if get_measure(self.measure).ends:
            return class_judgement(
                self.measure, {label: row[i] for label, i in self._positions.items()}
            )
        (position,) = self._positions.values()
        probabilities = dict(zip(self._labels, row, strict=True))
        return probability_judgement(self.measure, row[position], probabilities)


class ClassifierSpec(NamedTuple):
    """What a spec names; None: the model's own."""

    model_id: str
    revision: str | None
    label: str | None


def parse_classifier_spec(spec: str) -> ClassifierSpec:
    """Split "ID-or-PATH[@REVISION][:LABEL]" into id, revision and label.

    An existing folder is taken whole, so its path may contain "@" and ":".
    """
    if Path(spec).is_dir():
        return ClassifierSpec(spec, None, None)
    # From the right: a folder's path may hold a colon, a label does not.
    model_id, colon, label = spec.rpartition(":")
    if not colon:
        model_id, label = spec, ""
    elif Path(model_id).is_dir():
        return ClassifierSpec(model_id, None, label or None)
    model_id, _, revision = model_id.partition("@")
    if not model_id:
        raise UsageError(f"hf:{spec} names no model")
    return ClassifierSpec(model_id, revision or None, label or None)


def _label_names(config: Any) -> list[str]:
    return [str(config.id2label[index]) for index in range(config.num_labels)]


def _translate_labels(
    model_labels: Sequence[str], labels: Mapping[str, str], measure: Measure, model_id: str
) -> list[str]:
    """The labels, translated to what the user says they mean."""
    meaning = {name.lower(): translated.lower() for name, translated in labels.items()}
    if unknown := sorted(meaning.keys() - {name.lower() for name in model_labels}):
        raise UsageError(
            f"`labels`: hf:{model_id} has no label {unknown[0]!r}; it has {', '.join(model_labels)}"
        )
    if unknown_meanings := sorted(set(meaning.values()) - set(measure.labels)):
        raise UsageError(
            f"`labels` cannot mean {unknown_meanings[0]!r}, only {', '.join(measure.labels)}"
        )
    translated = [meaning.get(name.lower(), name) for name in model_labels]
    if len(set(translated)) < len(translated):
        raise UsageError(f"`labels`: two labels of hf:{model_id} mean the same")
    return translated


def _class_positions(
    measure: Measure, ends: tuple[str, str], labels: Sequence[str], model_id: str
) -> dict[str, int]:
    """Map the classes of a measure (positive, neutral, negative and other of regard) to the model's
    outputs."""
    lower_labels = [label.lower() for label in labels]
    positions = {
        label: lower_labels.index(label) for label in measure.labels if label in lower_labels
    }
    if not set(ends) <= positions.keys() or len(positions) < len(labels):
        other_labels = " and ".join(label for label in measure.labels if label not in ends)
        raise UsageError(
            f"hf:{model_id} is not a {measure.name} classifier: its labels are "
            f"{', '.join(labels)}; it needs {', '.join(ends)} and at most {other_labels}; `labels` "
            f"says what others mean, such as LABEL_0={ends[1]}"
        )
    return positions


def _find_position(
    measure: Measure, labels: Sequence[str], wanted_label: str | None, model_id: str
) -> int:
    """The place in the model's outputs of the probability that is the value."""
    lower_labels = [label.lower() for label in labels]
    for candidate in (wanted_label.lower(),) if wanted_label else measure.classes:
        if candidate in lower_labels:
            return lower_labels.index(candidate)
    problem = (
        f"has no label {wanted_label!r}"
        if wanted_label
        else f"has no {measure.name} label by a known name"
    )
    raise UsageError(
        f"hf:{model_id} {problem}: choose one of its labels as hf:{model_id}:LABEL: "
        + ", ".join(labels)
    )


def _folder_hash(folder: Path) -> str:
    """Hash a local model: its configuration, tokenizer and weights."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        # All that changes an answer; a README or a Git folder does not.
        if path.suffix in {".json", ".txt", ".model", ".safetensors", ".bin"}:
            with path.open("rb") as file:
                digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
