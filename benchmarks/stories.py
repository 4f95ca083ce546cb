"""How often readers of stories are right, and how much they read: 50 labelled stories.

    python benchmarks/stories.py [--reader SPEC] [--form chat] [--store FILE] [--first N] [--wrong]

The stories are Gemma 3 270M's (tests/data/stories.jsonl says how they were told), labelled by a
language model. Without --reader the rules read them; with it, the model of that spec, asked as
`kgbias --set reader=SPEC stories` asks it, through the answer log of --store. Prints precision and
recall by attribute, with 95% Wilson intervals for all; for a model also how its readings ended, and
how many of its values no story has. --wrong prints each wrong value.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from contextlib import closing

import kgbias
from kgbias.graph.answers import LoggedModel
from kgbias.models.base import PromptForm
from kgbias.stats.inference import proportion
from kgbias.stories.model_reader import read_reading, reading_request
from kgbias.stories.config import configure_stories
from kgbias.stories.rule_reader import READERS, StoryClaim, read_story
from tests.labelled_stories import Labelled, labelled, scored


def by_rules(story: Labelled) -> list[StoryClaim]:
    names = story.attributes(configure_stories("reference"))
    return read_story(story.text, story.asked, names, opening=story.opening)


def by_model(
    spec: str, form: PromptForm | None, stories: list[Labelled], store: str | None
) -> dict[str, Iterable[StoryClaim]]:
    """What the model reads from each story, by its text."""
    config = configure_stories(spec, reader="model", form=form)
    names = [story.attributes(config) for story in stories]
    asked = [
        reading_request(config, f"{s.opening} {s.text}".lstrip(), own)
        for s, own in zip(stories, names, strict=True)
    ]
    with kgbias.open(store, progress=True) as study, closing(kgbias.open_model(spec)) as model:
        answers = LoggedModel(model, study._context.writable()).ask(asked)
    readings = [
        read_reading(answer, s.text, s.asked, own, opening=s.opening)
        for answer, s, own in zip(answers, stories, names, strict=True)
    ]
    print("readings:", dict(Counter(f"{r.outcome} {r.reason}".strip() for r in readings)))
    print("values that no story has:", sum(len(r.invented) for r in readings))
    return {s.text: r.claims for s, r in zip(stories, readings, strict=True)}


def share(part: int, of: int) -> str:
    if not of:
        return "0 of 0"
    found = proportion(part, of)
    return f"{part} of {of} ({found.value:.2f} [{found.low:.2f}, {found.high:.2f}])"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reader")
    parser.add_argument("--form", choices=["chat", "completion"])
    parser.add_argument("--store")
    parser.add_argument("--first", type=int, help="only this many stories")
    parser.add_argument("--wrong", action="store_true")
    given = parser.parse_args()
    stories = labelled()[: given.first]
    read = by_model(given.reader, given.form, stories, given.store) if given.reader else {}
    score, wrong = scored(stories, lambda s: read[s.text] if given.reader else by_rules(s))
    for name in READERS:
        print(
            f"{name:<11} right {score.right[name]} of {score.read[name]}; "
            f"found {score.found[name]} of {score.labels[name]}"
        )
    print("all: precision", share(score.right.total(), score.read.total()))
    print("     recall", share(score.found.total(), score.labels.total()))
    for story, value in wrong if given.wrong else ():
        print(f"{value.attribute}: {value.value!r} in {story.text[:60]!r}")


if __name__ == "__main__":
    main()
