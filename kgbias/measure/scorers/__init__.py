"""Scorers of statements: a sentence in, a number and a label out.

    >>> scorer = load_scorer("regard")
    >>> scorer.score(["Nurses love caring for people."])[0].label
    'positive'

The default works offline: the genuine all-MiniLM-L6-v2 with small trained heads (MODEL_CARD.md,
ATTACK_CARD.md and ACCEPTABILITY_CARD.md in this folder say how good they are, and at what they
fail). Any Hugging Face text classifier takes its place through the same interface. Importing this
module imports none of the heavy packages.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kgbias.errors import UsageError
from kgbias.measure.scorers._base import Judgement, Scorer
from kgbias.measures import MEASURES

if TYPE_CHECKING:
    from kgbias.graph.store import Store

AXES = ("warmth", "competence")
_KINDS = ("hf", "llm", "scores", "openai-moderation")

__all__ = ["AXES", "Judgement", "Scorer", "load_scorer"]


def load_scorer(
    measure: str,
    spec: str | None = None,
    *,
    device: str = "auto",
    labels: Mapping[str, str] | None = None,
    log: "Store | None" = None,
) -> Scorer:
    """Load a scorer.

    Args:
        measure: "regard", "toxicity", "identity_attack", "acceptability", or an axis: "warmth" or
            "competence".
        spec: None or "offline" for the shipped heads; "scores:FILE[::COLUMN]" for scores made
            elsewhere; "openai-moderation[:CATEGORY]" for toxicity or identity attack from OpenAI's
            endpoint; "llm:SPEC" for any language model, asked by the rubric in `prompts/judges` (of
            an axis there is none); for an axis, the vectors it lies in (None: all-MiniLM-L6-v2); or
            a Hugging Face classifier, `hf:ID-or-PATH[@REVISION][:LABEL]`. For regard its labels
            must be positive, negative and, where it has them, neutral and other, in any case. For
            toxicity LABEL names the label whose probability is the value; without it,
            identity_attack where the model has it, else toxic, toxicity, hate or hateful. For
            identity attack and acceptability likewise; without it, identity_attack, hate, hateful,
            toxic or toxicity, and acceptable, acceptability, meaningful or grammatical.
        labels: what the labels of a regard classifier mean, for one that calls them LABEL_0,
            LABEL_1 ...: a mapping to positive, neutral, negative and other.
        log: the store whose answer log keeps what an "llm:" scorer asks (None: a temporary one).
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device; what has no
            model here (scores:FILE, openai-moderation) takes none.

    Raises:
        UsageError: no such measure, specification or label.
        MissingExtra: a package of the extra `scorers` is not installed.
        ModelError: the classifier cannot be loaded.
        DataError: the encoder or the heads are not the ones that belong together.
    """
    if measure not in MEASURES:
        raise UsageError(f"no measure {measure!r}: there are {', '.join(MEASURES)}")
    if labels and (measure != "regard" or not (spec or "").startswith("hf:")):
        raise UsageError("`labels` are for a regard classifier (hf:ID-or-PATH)")
    if measure in AXES:
        from kgbias.measure.scorers._axes import AxisScorer

        return AxisScorer(measure, "minilm" if spec in (None, "offline") else str(spec), device)
    if spec is None or spec == "offline":
        from kgbias.measure.scorers._offline import OfflineScorer

        return OfflineScorer(measure, device=device)
    if spec.startswith("hf:") and len(spec) > 3:
        from kgbias.measure.scorers._huggingface import HuggingFaceScorer

        return HuggingFaceScorer(measure, spec.removeprefix("hf:"), device, labels)
    if spec.startswith("llm:") and len(spec) > 4:
        from kgbias.measure.scorers._llm import LlmScorer

        return LlmScorer(measure, spec.removeprefix("llm:"), log, device)
    if device != "auto":
        raise UsageError(f"device does not apply to {spec}")
    if spec.startswith("scores:"):
        from kgbias.measure.scorers._scores_file import FileScorer

        return FileScorer(measure, spec.removeprefix("scores:"))
    if spec.partition(":")[0] == "openai-moderation":
        from kgbias.measure.scorers._moderation import DEFAULT_CATEGORY, ModerationScorer

        return ModerationScorer(measure, spec.partition(":")[2] or DEFAULT_CATEGORY)
    raise _unknown(measure, spec)


def check_spec(measure: str, spec: str) -> None:
    """Raise UsageError unless there is such a kind of scorer; whether it can be loaded is not
    tried."""
    kind, _, rest = spec.partition(":")
    if spec not in ("offline", "openai-moderation") and not (kind in _KINDS and rest):
        raise _unknown(measure, spec)


def _unknown(measure: str, spec: str) -> UsageError:
    return UsageError(
        f"no {measure} scorer {spec!r}: choose offline, hf:ID-or-PATH[@REV][:LABEL], "
        "llm:SPEC, scores:FILE[::COLUMN] or openai-moderation[:CATEGORY]"
    )
