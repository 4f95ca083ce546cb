"""What to ask for stories about, where a crawl was declined."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from kgbias.crawl.people import count_groups_with_people
from kgbias.graph.types import Group
from kgbias.io.files import write_text
from kgbias.methods.stories.config import load_story_pack
from kgbias.study.kinds import Suggestion

_PERSON_FORMS = ("one of the {}", "a young person, one of the {}", "an old person, one of the {}")


def suggest_stories(groups: Sequence[Group], folder: Path) -> Iterator[Suggestion]:
    """Stories about people of the pack, in categories of which it knows all groups; and about
    people of the other groups, who get a file in the folder."""
    group_counts = Counter(g.category for g in groups)
    known_counts = count_groups_with_people(groups, load_story_pack().people)
    categories = [c for c, n in known_counts.items() if n == group_counts[c] > 1]
    if categories:
        yield Suggestion({"category": categories})
    other_groups = [group for group in groups if group.category not in categories]
    if not other_groups:
        return
    path = folder / "people.csv"
    if not path.exists():  # or somebody has chosen better words
        rows = [
            (form.format(group.name), group.name, group.category)
            for group in other_groups
            for form in _PERSON_FORMS
        ]
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([("name", "group", "category"), *rows])
        write_text(path, file.getvalue())
    yield Suggestion({"people": str(path)}, f"look first at the words for the people in {path}")
