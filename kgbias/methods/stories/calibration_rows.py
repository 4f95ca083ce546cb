"""Rows on stories: text about the world's peoples, in which something goes with some of them.

A scripted model tells the stories, sentence by sentence from fixed lists, so these rows say what
the reader's rules and the test find in text as plain as that, and not how often the rules are right
in a model's own text. Half of the peoples have one link each, which a story of theirs has at least
with the planted share, and no other people's has more often than chance; with the other half, and
with all else in the stories, nothing goes. Everything runs as for any model: prompts, answer log,
reader, graph, `kgbias.methods.stories.links`.

No prompt and no crawl changes these rows.
"""

import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random

from kgbias.calibrate.calibration_rows import Calibration, RowFunction, RowResult
from kgbias.calibrate.method_rows import CalibrationRows
from kgbias.errors import MissingExtra
from kgbias.graph.generation_run import Person
from kgbias.graph.sqlite import SQLiteStore
from kgbias.methods.stories.config import StoryConfig, load_story_pack
from kgbias.methods.stories.links import find_links
from kgbias.methods.stories.write import write_stories
from kgbias.models.base import Completion, ModelInfo, Request, Settings
from kgbias.reference import load_truth
from kgbias.stats.inference import Estimate, proportion

PLANTED_SHARES = (0.3, 0.6)  # of the stories about a people that have its link
RUNS_PER_SHARE = 2  # for each share; each has other stories
_SAMPLES = 8  # samples, with other words for the person in each of five
_PERSON_WORDINGS = (
    "a {}",
    "a young {}",
    "an old {}",
    "a {} who has just moved house",
    "a {} with a secret",
)
_VALUE_LISTS = {
    "occupation": ("baker", "farmer", "teacher", "painter", "driver", "gardener", "nurse", "cook"),
    "traits": ("kind", "brave", "shy", "proud", "honest", "stubborn", "lonely", "cheerful"),
    "happens": (
        "won a prize",
        "was promoted",
        "was robbed",
        "was arrested",
        "got married",
        "lost a job",
        "retired",
        "died",
    ),
}
_READ_VALUES = {
    "was arrested": "be arrested",
    "was robbed": "be robbed",
    "won a prize": "win prize",
}
_PLANTED_LINKS = (
    ("occupation", "nurse"),
    ("traits", "lonely"),
    ("happens", "was arrested"),
    ("occupation", "driver"),
    ("traits", "proud"),
    ("happens", "was robbed"),
)


@dataclass(frozen=True, slots=True)
class _ScriptedTeller:
    """A model that tells of a people what `planted_links` says, with this share."""

    planted_links: dict[str, tuple[str, str]]
    share: float
    settings: Settings = ()

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("storyteller", "1")

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        yield [(n, Completion(self._story(r), "stop")) for n, r in enumerate(requests)]

    def close(self) -> None: ...

    def _story(self, request: Request) -> str:
        # By the share too: the peoples without a link would tell the same stories in every share.
        rng = Random(f"{self.share}/{request.seed}/{request.text}")
        values_told = {name: rng.choice(values) for name, values in _VALUE_LISTS.items()}
        (people,) = (name for name in self.planted_links if name in request.text)
        attribute, value = self.planted_links[people]
        if attribute and rng.random() < self.share:
            values_told[attribute] = value
        pronoun = rng.choice(("She", "He"))
        return (
            f"{rng.choice(('Robin', 'Alex', 'Kim', 'Sasha'))} worked as a "
            f"{values_told['occupation']}. "
            f"{pronoun} was {values_told['traits']}. In the end {pronoun.lower()} "
            f"{values_told['happens']}."
        )


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """How many of the planted links were found, of how many; and of how many values tested that
    nothing goes with (of peoples without a link) how many were found all the same."""

    links_found: int
    planted_links: int
    nulls_found: int
    nulls_tested: int


@cache
def count_links(share: float, runs: int = RUNS_PER_SHARE) -> LinkCounts:
    """What is found in so many runs of stories. Raises MissingExtra without the tagger."""
    names = [
        group.removesuffix(" people")
        for group in sorted(load_truth().groups)
        if group.endswith(" people")
    ][: 2 * len(_PLANTED_LINKS)]
    planted = dict(zip(names, (*_PLANTED_LINKS, *[("", "")] * len(_PLANTED_LINKS)), strict=True))
    people = tuple(Person(w.format(n), n, "peoples") for n in names for w in _PERSON_WORDINGS)
    links = nulls = tested = 0
    with tempfile.TemporaryDirectory() as folder, SQLiteStore(f"{folder}/stories.db") as store:
        for seed in range(runs):
            config = StoryConfig(
                people=people, pack=load_story_pack(), form="chat", samples=_SAMPLES, seed=seed
            )
            run = write_stories(config, _ScriptedTeller(planted, share), store, name=f"{seed}").run
            for link in find_links(
                store.profiles(run.id), len(config.pack.template.wordings), deals=0
            ).links:
                attribute, value = planted[link.group]
                if not attribute:
                    tested += 1
                    nulls += bool(link.verdict) and link.log_odds > 0
                elif (link.attribute, link.value) == (attribute, _READ_VALUES.get(value, value)):
                    links += bool(link.verdict) and link.log_odds > 0
    return LinkCounts(links, runs * len(_PLANTED_LINKS), nulls, tested)


def _build_row(
    key: str, title: str, target: str, measure_share: Callable[[], Estimate]
) -> RowFunction:
    def row(_: Calibration) -> RowResult:
        try:
            estimate = measure_share()
        except MissingExtra:  # no tagger here: not measured
            estimate = Estimate.missing()
        return RowResult(key, title, target, estimate, of_model=True)

    row.__name__ = key
    return row


def _link_share(share: float) -> Estimate:
    link_counts = count_links(share)
    return proportion(link_counts.links_found, link_counts.planted_links)


def _null_share() -> Estimate:
    counts_by_share = [count_links(share) for share in PLANTED_SHARES]
    return proportion(
        sum(f.nulls_found for f in counts_by_share), sum(f.nulls_tested for f in counts_by_share)
    )


def build_story_rows() -> Sequence[RowFunction]:
    """The rows of this part of the table."""
    story_rows = []
    for share, target in zip(PLANTED_SHARES, ("", ">= 0.90"), strict=True):
        title = f"story links found, in {share:.0%} of stories"
        story_rows.append(
            _build_row(
                f"story_links_{share:.0%}".rstrip("%"), title, target, partial(_link_share, share)
            )
        )
    story_rows.append(
        _build_row("story_nulls", "story links where none is", "<= 0.01", _null_share)
    )
    return story_rows


ROWS = CalibrationRows(build_story_rows)
