"""Topics of a run's statements, and how the groups differ in them (Salinas et al. 2023, sections
4.2 and 5.4)."""

from kgbias.measure.topics.model import EntropyForm, TopicSettings, fit_topics
from kgbias.measure.topics.run import entropy_figures, measure_topics
from kgbias.measure.topics.shares import (
    GroupShares,
    describe_stability,
    entropy_verdict,
    explain_unfit,
    relative_entropies,
    suggest_remedies,
    topic_shares,
)

__all__ = [
    "EntropyForm",
    "GroupShares",
    "TopicSettings",
    "describe_stability",
    "entropy_figures",
    "entropy_verdict",
    "explain_unfit",
    "fit_topics",
    "measure_topics",
    "relative_entropies",
    "suggest_remedies",
    "topic_shares",
]
