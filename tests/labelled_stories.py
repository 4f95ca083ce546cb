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

from kgbias.stories.config import StoryConfig
from kgbias.stories.rule_reader import StoryClaim

FILE = Path(__file__).parent / "data" / "stories.jsonl"


@dataclass(frozen=True)
class Labelled:
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
            found.start() < value.ends and value.begins < found.end()
            for part in words.split("|")
            for found in re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", self.text, re.IGNORECASE)
        )


def labelled() -> list[Labelled]:
    """The labelled stories."""
    return [Labelled(**json.loads(line)) for line in FILE.read_text("utf-8").splitlines()]


@dataclass
class Score:
    """By attribute: how many values were read, how many of them are right, how many labels there
    are, and how many of those were read."""

    read: Counter[str]
    right: Counter[str]
    labels: Counter[str]
    found: Counter[str]


def scored(
    stories: Iterable[Labelled], reader: Callable[[Labelled], Iterable[StoryClaim]]
) -> tuple[Score, list[tuple[Labelled, StoryClaim]]]:
    """How a reader fares, and each wrong value with its story."""
    score = Score(Counter(), Counter(), Counter(), Counter())
    wrong = []
    for story in stories:
        said = list(reader(story))
        for value in said:
            ok = any(story.covers(a, w, value) for a, words in story.said.items() for w in words)
            score.read[value.attribute] += 1
            score.right[value.attribute] += ok
            if not ok:
                wrong.append((story, value))
        for attribute, words in story.said.items():
            score.labels[attribute] += len(words)
            score.found[attribute] += sum(
                any(story.covers(attribute, w, value) for value in said) for w in words
            )
    return score, wrong
