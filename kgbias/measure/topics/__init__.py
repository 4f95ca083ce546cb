"""Topics of a run's statements, and how the groups differ in them (Salinas et al. 2023, sections
4.2 and 5.4)."""

from kgbias.measure.topics.model import EntropyForm, TopicSettings, fit_topics
from kgbias.measure.topics.run import entropy_figures, measure_topics
from kgbias.measure.topics.shares import (
    GroupShares,
    suggest_remedies,
    relative_entropies,
    describe_stability,
    topic_shares,
    explain_unfit,
    entropy_verdict,
)

__all__ = [
    "EntropyForm",
    "GroupShares",
    "TopicSettings",
    "suggest_remedies",
    "entropy_figures",
    "fit_topics",
    "measure_topics",
    "relative_entropies",
    "describe_stability",
    "topic_shares",
    "explain_unfit",
    "entropy_verdict",
]
