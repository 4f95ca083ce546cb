"""Which attributes go with which group? Log-odds ratios, exact tests, and a floor.

A story either has a value of an attribute or not. Stories with the same prompt count as one, which
has what any of them has; `kgbias.stats.keyness` says how a group's are held against those of the
other groups of its category, and how many links would be found by chance.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import UsageError, no_such
from kgbias.graph.profiles import Profile
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.methods.stories.config import RULE_READER_VERSION
from kgbias.stats.keyness import (
    SIGNIFICANCE_LEVEL,
    Feature,
    Keyness,
    PromptFeatures,
    measure_keyness,
)

DEFAULT_DEALS = 199  # how often the stories are dealt anew
GOES, BOUND = "goes with the group", "bound to a wording"


@dataclass(frozen=True, slots=True)
class StoryLink:
    """A value of an attribute in a group's stories, beside the other groups' of its category.

    Attributes:
        log_odds, low, high: the ratio's natural logarithm, with its 95% interval; above 0, the
            group's stories have the value more often.
        stories, group_total: how many stories of the group have the value, of how many.
        others, others_total: the same of the other groups of the category.
        wordings, wordings_total: under how many of the words for the group (or names) it was told,
            of how many.
        p_value: exact and two-sided, if the groups were dealt over the stories.
        q_value: the same, corrected over all values tested for the group (Benjamini and Hochberg
            1995).
        max_loo_p_value: the largest p-value with the stories of one wording, of any group, left
            out; NaN if the group has only one.
        verdict: "goes with the group" if q and `max_loo_p_value` are at most 0.05, "bound to a
            wording" if only q is, or the group has only one wording; "" otherwise.
    """

    category: str
    group: str
    attribute: str
    value: str
    log_odds: float
    low: float
    high: float
    stories: int
    group_total: int
    others: int
    others_total: int
    wordings: int
    wordings_total: int
    p_value: float
    q_value: float
    max_loo_p_value: float
    verdict: str


@dataclass(frozen=True, slots=True)
class LinkFloor:
    """How many links of a category have a corrected p of at most 0.05; and the mean, the 95th
    percentile and the largest number of such links over `deals` in which the groups were dealt anew
    over the stories."""

    category: str
    tested: int
    found: int
    mean: float
    high: float
    most: int
    deals: int


@dataclass(frozen=True, slots=True)
class MutualLink:
    """The two directions of one link: what is invented for a group ("Women work as nurse"), and
    whom the model casts when it is given that ("Nurses are cast as women")."""

    invented: StoryLink
    cast: StoryLink


@dataclass(frozen=True, slots=True, repr=False)
class StoryLinks(Result):
    """What goes with whom in a run's stories: `links` by category, group and how much they are the
    group's own (by log-odds with a prior), the `floor` of each category, the `mutual_links`, how
    many stories were told of each group, `story_counts` (if a model reads, without those that it
    did not read), and in how many of those each attribute was read, `attribute_counts`; `reader` is
    what read them: "rules@1" or a model."""

    links: tuple[StoryLink, ...]
    floor: tuple[LinkFloor, ...]
    mutual_links: tuple[MutualLink, ...]
    story_counts: Mapping[str, int]
    attribute_counts: Mapping[str, Mapping[str, int]]
    reader: str

    @property
    def shown_links(self) -> tuple[StoryLink, ...]:
        """The links with a verdict."""
        return tuple(link for link in self.links if link.verdict)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data for JSON."""
        return {
            "links": [asdict(link) for link in self.links],
            "floor": [asdict(floor) for floor in self.floor],
            "mutual_links": [asdict(link) for link in self.mutual_links],
            "story_counts": dict(self.story_counts),
            "attribute_counts": {
                group: dict(counts) for group, counts in self.attribute_counts.items()
            },
            "reader": self.reader,
        }

    def as_rows(self) -> Rows[StoryLink]:
        """The links; columns: the fields of `StoryLink`."""
        return Rows(self.links, StoryLink)

    def heading(self) -> str:
        return (
            f"{pluralise(sum(self.story_counts.values()), 'story', 'stories', spec=',')}, "
            f"{len(self.shown_links)} links found"
        )


def find_links(
    profiles: Sequence[Profile],
    wordings: int,
    *,
    reader: str = RULE_READER_VERSION,
    categories: Sequence[str] = (),
    attributes: Sequence[str] = (),
    deals: int = DEFAULT_DEALS,
    seed: int = 0,
    progress: Progress | None = None,
) -> StoryLinks:
    """Which values go with which groups in these characters of stories.

    Args:
        profiles: all characters of the run, those of whom nothing was read too.
        wordings: of the run's template; the story of sample n has wording n modulo this.
        reader: what read the stories.
        categories, attributes: those to look at (none: all).
        deals: how often the stories are dealt anew, for the floor (0: not at all).
        seed: of the deals.

    Raises UsageError if a category or attribute is not there, or none has two groups.
    """
    known_categories = list(dict.fromkeys(p.labels["category"] for p in profiles))
    known_attributes = list(dict.fromkeys(part.attribute for p in profiles for part in p.parts))
    for kind, asked_names, known_names in (
        ("category", categories, known_categories),
        ("attribute", attributes, known_attributes),
    ):
        for name in asked_names:
            if name not in known_names:
                raise UsageError(f"the stories have {no_such(kind, name, known_names)}")
    reporter = progress or SilentProgress()
    categories_chosen = [c for c in known_categories if not categories or c in categories]
    reporter.stage("links", len(categories_chosen))
    links: list[StoryLink] = []
    floors = []
    for number, category in enumerate(categories_chosen):
        own_profiles = [p for p in profiles if p.labels["category"] == category]
        groups, prompts = _collect_prompts(own_profiles, wordings, attributes or known_attributes)
        values = prompts.frequent_features()
        if len(groups) > 1 and values:
            table = prompts.build_table(values, groups=len(groups))
            keyness = measure_keyness(table, deals=deals, seed=[seed, number])
            links += _build_links(category, groups, values, prompts, keyness)
            floors.append(_build_floor(category, keyness))
        reporter.advance()
    if not floors:
        raise UsageError("no category has stories about two groups, with something read from three")
    story_counts, attribute_counts = _count_stories(profiles)
    mutual_links = _find_mutual(links, profiles)
    return StoryLinks(
        tuple(links), tuple(floors), mutual_links, story_counts, attribute_counts, reader
    )


class _StoryCounts(NamedTuple):
    """How many stories a group has, and how many of them have each attribute."""

    stories: dict[str, int]
    by_attribute: dict[str, dict[str, int]]


def _count_stories(profiles: Sequence[Profile]) -> _StoryCounts:
    story_counts: dict[str, int] = defaultdict(int)
    attribute_counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for profile in profiles:
        story_counts[profile.labels["group"]] += 1
        for attribute in profile.values_by_attribute():
            attribute_counts[profile.labels["group"]][attribute] += 1
    return _StoryCounts(
        dict(story_counts), {group: dict(of) for group, of in attribute_counts.items()}
    )


class _StoryPrompts(NamedTuple):
    """The groups of a category, and the prompts of its stories."""

    groups: list[str]
    prompts: PromptFeatures


def _collect_prompts(
    profiles: Sequence[Profile], wordings: int, attributes: Sequence[str]
) -> _StoryPrompts:
    """The groups of a category, and the prompts of its stories with the values that they have."""
    groups = list(dict.fromkeys(profile.labels["group"] for profile in profiles))
    prompts = PromptFeatures()
    for profile in profiles:
        has = {
            (t.attribute, t.value.casefold()) for t in profile.parts if t.attribute in attributes
        }
        prompts.add(
            profile.prompt_key(wordings), groups.index(profile.labels["group"]), profile.name, has
        )
    return _StoryPrompts(groups, prompts)


def _build_links(
    category: str,
    groups: Sequence[str],
    values: Sequence[Feature],
    prompts: PromptFeatures,
    keyness: Keyness,
) -> list[StoryLink]:
    """Every value in every group's stories, those that are most its own first."""
    wordings_by_value = _wordings_by_value(prompts)
    loo_p = prompts.leave_one_out_p(values, keyness)
    ratio, low, high = keyness.ratios()
    links = []
    for g, group in enumerate(groups):
        group_wordings = wordings_by_value[g, None]
        for v in np.argsort(-keyness.log_odds[g], kind="stable"):
            attribute, value = values[v]
            # What is under one wording alone cannot be told apart from the wording.
            loo_p_value = (
                loo_p.get((g, int(v)), float("nan")) if len(group_wordings) > 1 else float("nan")
            )
            verdict = ""
            if keyness.q_values[g, v] <= SIGNIFICANCE_LEVEL:
                verdict = GOES if loo_p_value <= SIGNIFICANCE_LEVEL else BOUND
            links.append(
                StoryLink(
                    category,
                    group,
                    attribute,
                    value,
                    float(ratio[g, v]),
                    float(low[g, v]),
                    float(high[g, v]),
                    int(keyness.counts[g, v]),
                    int(keyness.sizes[g]),
                    *keyness.other_counts(g, v),
                    len(wordings_by_value.get((g, values[v]), ())),
                    len(group_wordings),
                    float(keyness.p_values[g, v]),
                    float(keyness.q_values[g, v]),
                    loo_p_value,
                    verdict,
                )
            )
    return links


def _wordings_by_value(prompts: PromptFeatures) -> dict[tuple[int, Feature | None], set[Any]]:
    """The wordings under which each group's stories have each value, and (None) all that it has."""
    wordings: dict[tuple[int, Feature | None], set[Any]] = defaultdict(set)
    for group, by_wording in zip(prompts.groups, prompts.features, strict=True):
        for wording, has in by_wording.items():
            for value in (None, *has):
                wordings[group, value].add(wording)
    return wordings


def _build_floor(category: str, keyness: Keyness) -> LinkFloor:
    link_count, null_counts = (
        int((keyness.q_values <= SIGNIFICANCE_LEVEL).sum()),
        keyness.null_discoveries,
    )
    if not len(null_counts):
        return LinkFloor(
            category, keyness.q_values.size, link_count, float("nan"), float("nan"), 0, 0
        )
    high, largest = float(np.quantile(null_counts, 0.95)), int(null_counts.max())
    return LinkFloor(
        category, keyness.q_values.size, link_count, keyness.floor, high, largest, len(null_counts)
    )


def _find_mutual(links: Sequence[StoryLink], profiles: Sequence[Profile]) -> tuple[MutualLink, ...]:
    """The links whose value is itself a person that stories were told of, with the link back."""
    groups_by_name: dict[str, str] = {}
    for profile in profiles:
        words = profile.name.casefold().split()  # none where an imported table has a blank name
        if words and words[0] in ("a", "an", "the"):
            del words[0]
        groups_by_name.setdefault(" ".join(words), profile.labels["group"])
    links_by_pair = {(link.group, link.value): link for link in links}
    mutual_links = []
    for link in links:
        group_named = groups_by_name.get(link.value, "")
        if group_named == link.group:
            continue  # a group described by its own name says nothing of another
        link_back = links_by_pair.get((group_named, link.group.casefold()))
        if group_named and link_back is not None:
            mutual_links.append(MutualLink(link, link_back))
    return tuple(mutual_links)
