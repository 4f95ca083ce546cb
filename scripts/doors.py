"""The table of docs/how-to/data.md of what is read of a table, from what each reader declares.

python scripts/doors.py            # prints it
python scripts/doors.py --write    # writes it into the page
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from kgbias.crawl import seeds
from kgbias.evidence import recorded
from kgbias.faithfulness import pairs as wikieval
from kgbias.ingest import tables as ingest
from kgbias.io.named_sets import PUBLISHED_FORMS
from kgbias.io.tables import Door
from kgbias.measure import labelled
from kgbias.measure.scorers import _scores_file as scores
from kgbias.pairs import config as pairs
from kgbias.probe import build, sets
from kgbias.probe.benchmarks import bbq, crows, stereoset, winogender
from kgbias.stories import config as stories

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "data.md"
BEGIN, END = "<!-- doors: scripts/doors.py -->\n", "<!-- end of doors -->\n"
WORD_SETS = Door("word sets: `associate --tests-file`", also="TOML, or sent-bias's JSON")
DOORS: tuple[Door, ...] = (
    seeds.DOOR, sets.GROUPS, sets.STATEMENTS, sets.NAMES_DOOR, sets.DESCRIPTORS_DOOR, ingest.DOOR,
    recorded.DOOR, scores.DOOR, labelled.DOOR, stories.PEOPLE, pairs.PEOPLE, pairs.REQUESTS,
    build.DOOR, crows.DOOR, stereoset.DOOR, bbq.DOOR, winogender.DOOR, wikieval.DOOR, WORD_SETS,
)  # fmt: skip


def rows() -> Iterator[str]:
    yield "| what is handed over | columns that it has | that it may have | may also be |"
    yield "|---|---|---|---|"
    for door in DOORS:
        needed = ", ".join(" or ".join(f"`{n}`" for n in names) for names in door.needed)
        beside = ", ".join(f"`{name}`" for name in door.beside)
        yield f"| {door.what} | {needed} | {beside} | {door.also} |".replace("|  |", "| |")
    yield ""
    yield "These published sets are known by what is in the file, and refused by name where they do"
    yield "not go:"
    yield ""
    for form in PUBLISHED_FORMS:
        yield f"- {form.name}: {form.advice}."


def written(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(rows()) + f"\n\n{END}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    else:
        print("\n".join(rows()))
