"""Scorers of regard and toxicity: a sentence in, a number and a label out.

    >>> scorer = load_scorer("regard")
    >>> scorer.score(["Nurses love caring for people."])[0].label
    'positive'

The default works offline: the genuine all-MiniLM-L6-v2 with small trained heads (MODEL_CARD.md in
this folder says how good they are, and at what they fail). Any Hugging Face text classifier takes
its place through the same interface. Importing this module imports none of the heavy packages.
"""

from typing import cast, get_args

from kgbias.errors import UsageError
from kgbias.measure.scorers._base import Judgement, Measure, Scorer

__all__ = ["Judgement", "Measure", "Scorer", "load_scorer"]


def load_scorer(measure: str, spec: str | None = None) -> Scorer:
    """Load a scorer.

    Args:
        measure: "regard" or "toxicity".
        spec: None or "offline" for the shipped heads, or a Hugging Face text classifier,
            "hf:ID-or-PATH[@REVISION][:LABEL]". For regard its labels must be positive, negative
            and, where it has them, neutral and other, in any case. For toxicity LABEL names the
            label whose probability is the value; without it, identity_attack where the model has
            it, else toxic, toxicity, hate or hateful.

    Raises:
        UsageError: no such measure, specification or label.
        MissingExtra: a package of the extra `scorers` is not installed.
        ModelError: the classifier cannot be loaded.
        DataError: the encoder or the heads are not the ones that belong together.
    """
    if measure not in get_args(Measure):
        raise UsageError(f"no measure {measure!r}: choose regard or toxicity")
    measure = cast(Measure, measure)
    if spec is None or spec == "offline":
        from kgbias.measure.scorers._offline import OfflineScorer

        return OfflineScorer(measure)
    if spec.startswith("hf:") and len(spec) > 3:
        from kgbias.measure.scorers._huggingface import HuggingFaceScorer

        return HuggingFaceScorer(measure, spec.removeprefix("hf:"))
    raise UsageError(f"no {measure} scorer {spec!r}: choose offline or hf:ID-or-PATH[@REV][:LABEL]")
