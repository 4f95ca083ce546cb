"""Topics of a run's statements, and how the groups differ in them (Salinas et al. 2023, sections
4.2 and 5.4)."""

from collections.abc import Sequence

from kgbias.errors import UsageError
from kgbias.graph.types import Topic, TopicModel


def find_topic(models: Sequence[TopicModel], name: str) -> Topic:
    """A topic by its category and number (`gender:0`), by its number alone if that is
    unambiguous, by its name, or by a word that only one topic has. Raises UsageError for a name
    that fits no topic, or several."""
    topics = [topic for model in models for topic in model.topics]
    matching_topics = [
        topic
        for topic in topics
        if name in (f"{topic.category}:{topic.number}", str(topic.number), topic.name)
        or name in topic.words
    ]
    if len(matching_topics) == 1:
        return matching_topics[0]
    choices = "; ".join(
        f"{t.category}:{t.number} {', '.join(t.words[:3])}" for t in matching_topics or topics
    )
    raise UsageError(
        f"{name!r} is {'more than one topic' if matching_topics else 'no topic of the run'}; "
        f"choose from {choices}"
    )
