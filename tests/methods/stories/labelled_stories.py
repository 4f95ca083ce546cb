"""Fifty stories with what they say of their main character, and how much of it a reader reads.

A label is an attribute and words of the story ("a|b": the same, said twice). A value is right if it
was read from words that a label of its attribute has, wherever the story has them; for the gender,
if it is the label's.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgbias.methods.stories.config import StoryConfig
from kgbias.methods.stories.rule_reader import StoryClaim

STORIES_FILE = Path(__file__).with_name("stories.jsonl")


@dataclass(frozen=True)
class LabelledStory:
    """A story: what its prompt called the person, the category, the beginning that the prompt gave,
    the text, and what it says, by attribute."""

    asked: str
    category: str
    opening: str
    text: str
    said: Mapping[str, Sequence[str]]

    def attributes(self, config: StoryConfig) -> list[str]:
        """What is read from it: what the prompt did not say."""
        return [a.name for a in config.pack.attributes if self.category not in a.given_categories]

    def covers(self, attribute: str, words: str, value: StoryClaim) -> bool:
        """Whether a value is what a label says."""
        if attribute != value.attribute or attribute == "gender":
            return attribute == value.attribute and words == value.value
        return any(
            match.start() < value.ends and value.begins < match.end()
            for part in words.split("|")
            for match in re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", self.text, re.IGNORECASE)
        )


def read_labelled() -> list[LabelledStory]:
    """The labelled stories."""
    return [
        LabelledStory(**json.loads(line)) for line in STORIES_FILE.read_text("utf-8").splitlines()
    ]


@dataclass
class ReaderScore:
    """By attribute: how many values were read, how many of them are right, how many labels there
    are, and how many of those were read."""

    read_values: Counter[str]
    right_values: Counter[str]
    labels: Counter[str]
    found_labels: Counter[str]


def score_reader(
    stories: Iterable[LabelledStory], reader: Callable[[LabelledStory], Iterable[StoryClaim]]
) -> tuple[ReaderScore, list[tuple[LabelledStory, StoryClaim]]]:
    """How a reader fares, and each wrong value with its story."""
    score = ReaderScore(Counter(), Counter(), Counter(), Counter())
    wrong = []
    for story in stories:
        values = list(reader(story))
        for value in values:
            is_right = any(
                story.covers(a, w, value) for a, words in story.said.items() for w in words
            )
            score.read_values[value.attribute] += 1
            score.right_values[value.attribute] += is_right
            if not is_right:
                wrong.append((story, value))
        for attribute, words in story.said.items():
            score.labels[attribute] += len(words)
            score.found_labels[attribute] += sum(
                any(story.covers(attribute, w, value) for value in values) for w in words
            )
    return score, wrong
