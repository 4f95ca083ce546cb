"""The topics of a run: what they are, and what people call them."""

from kgbias.errors import UsageError
from kgbias.graph.types import Topic, TopicModel
from kgbias.io.text import printable
from kgbias.study import records
from kgbias.study.rows import Rows
from kgbias.study.view import RunView

_LONGEST = 80


class Topics(RunView):
    """The topics of a run; a part of `Run`."""

    def topics(self) -> Rows[records.TopicRow]:
        """The topics that `measure(topics=True)` found, by category and number."""
        return records.topic_rows(self.topic_models())

    def topic_models(self) -> list[TopicModel]:
        """The topics of each category with the statements about them (`about`), how they were found
        and how far they can be trusted (`settings`)."""
        return self.stored.topics()

    def rename_topic(self, topic: str, name: str) -> Topic:
        """Give a topic a name, which then stands wherever the topic does; returns the topic.

        A topic is what its words are: it keeps the name when topics are found again with the same
        words, and has it in every run of the store that has these words in this category.

        Args:
            topic: its category and number ("gender:0"), its number where that is unambiguous, its
                name, or a word that only it has.
            name: one line of at most 80 characters; "" takes the name back, so that its words name
                it again.
        """
        from kgbias.associate.graph import find_topic

        given = name.strip()
        if given != printable(given) or len(given) > _LONGEST:
            raise UsageError(f"the name of a topic is one line of at most {_LONGEST} characters")
        models = self.topic_models()
        if not any(model.topics for model in models):
            raise UsageError(f"run {self.name!r} has no topics: measure it with `topics`")
        found = find_topic(models, topic)
        self.stored.name_topic(found.id, given)
        return find_topic(self.topic_models(), f"{found.category}:{found.number}")
