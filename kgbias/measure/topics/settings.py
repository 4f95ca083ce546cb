"""How topics are found, for whoever asks without finding any."""

from dataclasses import dataclass
from typing import Literal

from kgbias.errors import UsageError

Outliers = Literal["assign", "keep"]
ClusterSelection = Literal["leaf", "eom"]
EntropyForm = Literal["divergence", "as_published"]
MIN_CLUSTER_SIZE = 5
STATEMENTS_PER_MIN_SIZE = 40  # Salinas et al. 2023, section 5.4
SEED_COUNT = 5


@dataclass(frozen=True)
class TopicSettings:
    """How topics are found.

    Attributes:
        embedding: what the documents are embedded in (`kgbias.measure.embedding.load_vectors`).
        min_topic_size: HDBSCAN's min_cluster_size, the fewest distinct statements that make a
            topic. None: the number of statements, each as often as it was said, divided by 40 as
            in Salinas et al. 2023, and at least 5.
        outliers: what happens to statements that HDBSCAN puts in no cluster: "keep" leaves them
            without a topic, "assign" gives each to the topic with the nearest centre.
        clusters: which clusters of its tree HDBSCAN takes: "leaf", the smallest ones, or "eom",
            those that persist longest (its default and BERTopic's), which on statements often
            makes one cluster of most of them.
        seed: of UMAP. Four more seeds follow it, to see whether the topics come up again.
        words: how many words describe a topic.
        entropy: the form of relative entropy in tables and figures: "divergence", withheld if the
            topics do not support it, or "as_published", Eq. 1 as printed.
    """

    embedding: str = "minilm"
    min_topic_size: int | None = None
    outliers: Outliers = "keep"
    clusters: ClusterSelection = "leaf"
    seed: int = 0
    words: int = 10
    entropy: EntropyForm = "divergence"

    def __post_init__(self) -> None:
        if self.words < 1:
            raise UsageError("`words` must be at least 1")

    def min_topic_statements(self, statements: int) -> int:
        """The fewest distinct statements that make a topic, among this many statements."""
        return self.min_topic_size or max(MIN_CLUSTER_SIZE, statements // STATEMENTS_PER_MIN_SIZE)
