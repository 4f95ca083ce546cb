"""How often readers of stories are right, and how much they read: 50 labelled stories.

    python benchmarks/stories.py [--reader SPEC] [--form chat] [--store FILE] [--first N] [--wrong]

The stories are Gemma 3 270M's (tests/data/README.md says how they were told), labelled by a
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
from kgbias.methods.stories.config import configure_stories
from kgbias.methods.stories.model_reader import read_reading, reading_request
from kgbias.methods.stories.rule_reader import READERS, StoryClaim, read_story
from kgbias.models.base import PromptForm
from kgbias.stats.inference import proportion
from tests.methods.stories.labelled_stories import LabelledStory, read_labelled, score_reader


def read_by_rules(story: LabelledStory) -> list[StoryClaim]:
    names = story.attributes(configure_stories("reference"))
    return read_story(story.text, story.asked, names, opening=story.opening)


def read_by_model(
    spec: str, form: PromptForm | None, stories: list[LabelledStory], store: str | None
) -> dict[str, Iterable[StoryClaim]]:
    """What the model reads from each story, by its text."""
    config = configure_stories(spec, reader="model", form=form)
    names = [story.attributes(config) for story in stories]
    requests = [
        reading_request(config, f"{s.opening} {s.text}".lstrip(), attributes)
        for s, attributes in zip(stories, names, strict=True)
    ]
    with kgbias.open(store, progress=True) as study, closing(kgbias.open_model(spec)) as model:
        answers = LoggedModel(model, study._context.writable()).ask(requests)
    readings = [
        read_reading(answer, s.text, s.asked, attributes, opening=s.opening)
        for answer, s, attributes in zip(answers, stories, names, strict=True)
    ]
    print("readings:", dict(Counter(f"{r.outcome} {r.reason}".strip() for r in readings)))
    print("values that no story has:", sum(len(r.invented) for r in readings))
    return {s.text: r.claims for s, r in zip(stories, readings, strict=True)}


def format_share(part: int, total: int) -> str:
    if not total:
        return "0 of 0"
    estimate = proportion(part, total)
    return f"{part} of {total} ({estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}])"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reader")
    parser.add_argument("--form", choices=["chat", "completion"])
    parser.add_argument("--store")
    parser.add_argument("--first", type=int, help="only this many stories")
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    stories = read_labelled()[: arguments.first]
    readings = (
        read_by_model(arguments.reader, arguments.form, stories, arguments.store)
        if arguments.reader
        else {}
    )
    score, wrong = score_reader(
        stories, lambda s: readings[s.text] if arguments.reader else read_by_rules(s)
    )
    for name in READERS:
        print(
            f"{name:<11} right {score.right_values[name]} of {score.read_values[name]}; "
            f"found {score.found_labels[name]} of {score.labels[name]}"
        )
    print("all: precision", format_share(score.right_values.total(), score.read_values.total()))
    print("     recall", format_share(score.found_labels.total(), score.labels.total()))
    for story, value in wrong if arguments.wrong else ():
        print(f"{value.attribute}: {value.value!r} in {story.text[:60]!r}")


if __name__ == "__main__":
    main()
