"""The stories of a run, read from the store."""

from dataclasses import dataclass

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile
from kgbias.graph.store import StoredRun
from kgbias.io.rows import Rows
from kgbias.io.wording import how
from kgbias.methods.stories.write import collect_stories


def require_stories(run: StoredRun) -> list[Profile]:
    """The characters of a run's stories. Raises UsageError if it is not a run of stories."""
    if run.record.kind != "stories":
        tells = how("stories.write_stories", "kgbias stories")
        raise UsageError(f"run {run.name!r} has no stories: have some told with {tells}")
    return run.profiles()


@dataclass(frozen=True, slots=True)
class StoryValue:
    """Something that was read from a story: the attribute, its value, and the words of the story
    that say so, with their place in characters from 0, the end excluded."""

    attribute: str
    value: str
    words: str
    begins: int
    ends: int


@dataclass(frozen=True, slots=True)
class StoryRow:
    """A story: whom the prompt asked for (`name`, of a `group` of a `category`), the text, whole,
    and the `attributes` that were read from it, in order."""

    category: str
    group: str
    name: str
    text: str
    attributes: tuple[StoryValue, ...]


def story_rows(run: StoredRun) -> Rows[StoryRow]:
    """The stories of a run, in its order, with what was read from each."""
    require_stories(run)
    rows = []
    for character, _, text in collect_stories(run):
        attributes = tuple(
            StoryValue(t.attribute, t.value, text[begins:ends], begins, ends)
            for t in character.parts
            for begins, ends in [(t.begins or 0, t.ends or 0)]
        )
        rows.append(
            StoryRow(
                character.labels["category"],
                character.labels["group"],
                character.name,
                text,
                attributes,
            )
        )
    return Rows(rows, StoryRow)
