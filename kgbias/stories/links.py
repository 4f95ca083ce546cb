"""Which attributes go with which group? Log-odds ratios, exact tests, and a floor.

A story either has a value of an attribute or not. Stories with the same prompt count as one, which
has what any of them has; `kgbias.stats.keyness` says how a group's are held against those of the
other groups of its category, and how many links would be found by chance.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kgbias.errors import UsageError, no_such
from kgbias.graph.profiles import Profile
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.stats.keyness import SIGNIFICANCE_LEVEL, Feature, Keyness, PromptFeatures, measure_keyness
from kgbias.stories.config import READER

DEALS = 199  # how often the stories are dealt anew
GOES, BOUND = "goes with the group", "bound to a wording"


@dataclass(frozen=True, slots=True)
class Link:
    """A value of an attribute in a group's stories, beside the other groups' of its category.

    Attributes:
        log_odds, low, high: the ratio's natural logarithm, with its 95% interval; above 0, the
            group's stories have the value more often.
        stories, of, others, of_others: how many stories of the group have the value, of how many;
            and how many of the others.
        wordings, of_wordings: under how many of the words for the group (or names) it was told, of
            how many.
        p_value: exact and two-sided, if the groups were dealt over the stories.
        q_value: the same, corrected over all values tested for the group (Benjamini and Hochberg
            1995).
        least: the largest p-value with the stories of one wording, of any group, left out; NaN if
            the group has only one.
        verdict: "goes with the group" if q and `least` are at most 0.05, "bound to a wording" if
            only q is, or the group has only one wording; "" otherwise.
    """

    category: str
    group: str
    attribute: str
    value: str
    log_odds: float
    low: float
    high: float
    stories: int
    of: int
    others: int
    of_others: int
    wordings: int
    of_wordings: int
    p_value: float
    q_value: float
    least: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Floor:
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
class Both:
    """The two directions of one link: what is invented for a group ("Women work as nurse"), and
    whom the model casts when it is given that ("Nurses are cast as women")."""

    invented: Link
    cast: Link


@dataclass(frozen=True, slots=True, repr=False)
class StoryLinks(Result):
    """What goes with whom in a run's stories: `links` by category, group and how much they are the
    group's own (by log-odds with a prior), the `floor` of each category, the links known in `both`
    directions, how many stories were `told` of each group (if a model reads, without those that it
    did not read), and in how many of those each attribute was `read`; `reader` is what read them:
    "rules@1" or a model."""

    links: tuple[Link, ...]
    floor: tuple[Floor, ...]
    both: tuple[Both, ...]
    told: Mapping[str, int]
    read: Mapping[str, Mapping[str, int]]
    reader: str

    @property
    def found(self) -> tuple[Link, ...]:
        """The links with a verdict."""
        return tuple(link for link in self.links if link.verdict)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data for JSON."""
        return {
            "links": [asdict(link) for link in self.links],
            "floor": [asdict(floor) for floor in self.floor],
            "both": [asdict(both) for both in self.both],
            "told": dict(self.told),
            "read": {group: dict(read) for group, read in self.read.items()},
            "reader": self.reader,
        }

    def as_rows(self) -> Rows[Link]:
        """The links; columns: the fields of `Link`."""
        return Rows(self.links, columns=Link.__dataclass_fields__)

    def heading(self) -> str:
        return f"{sum(self.told.values()):,} stories, {len(self.found)} links found"


def find_links(
    profiles: Sequence[Profile],
    wordings: int,
    *,
    reader: str = READER,
    categories: Sequence[str] = (),
    attributes: Sequence[str] = (),
    deals: int = DEALS,
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
    there = list(dict.fromkeys(p.labels["category"] for p in profiles))
    known = list(dict.fromkeys(part.attribute for p in profiles for part in p.parts))
    for kind, wanted, own in (("category", categories, there), ("attribute", attributes, known)):
        for name in wanted:
            if name not in own:
                raise UsageError(f"the stories have {no_such(kind, name, own)}")
    told = progress or SilentProgress()
    chosen = [c for c in there if not categories or c in categories]
    told.stage("links", len(chosen))
    links: list[Link] = []
    floors = []
    for number, category in enumerate(chosen):
        own_profiles = [p for p in profiles if p.labels["category"] == category]
        groups, prompts = _prompts(own_profiles, wordings, attributes or known)
        values = prompts.frequent_features()
        if len(groups) > 1 and values:
            table = prompts.build_table(values, groups=len(groups))
            keyness = measure_keyness(table, deals=deals, seed=[seed, number])
            links += _links(category, groups, values, prompts, keyness)
            floors.append(_floor(category, keyness))
        told.advance()
    if not floors:
        raise UsageError("no category has stories about two groups, with something read from three")
    told_of, read = _counts(profiles)
    both = _both(links, profiles)
    return StoryLinks(tuple(links), tuple(floors), both, told_of, read, reader)


def _counts(profiles: Sequence[Profile]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    told: dict[str, int] = defaultdict(int)
    read: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for p in profiles:
        told[p.labels["group"]] += 1
        for attribute in p.values_by_attribute():
            read[p.labels["group"]][attribute] += 1
    return dict(told), {group: dict(of) for group, of in read.items()}


def _prompts(
    profiles: Sequence[Profile], wordings: int, attributes: Sequence[str]
) -> tuple[list[str], PromptFeatures]:
    """The groups of a category, and the prompts of its stories with the values that they have."""
    groups = list(dict.fromkeys(p.labels["group"] for p in profiles))
    prompts = PromptFeatures()
    for p in profiles:
        has = {(t.attribute, t.value.casefold()) for t in p.parts if t.attribute in attributes}
        prompts.add(p.prompt_key(wordings), groups.index(p.labels["group"]), p.name, has)
    return groups, prompts


def _links(
    category: str,
    groups: Sequence[str],
    values: Sequence[Feature],
    prompts: PromptFeatures,
    keyness: Keyness,
) -> list[Link]:
    """Every value in every group's stories, those that are most its own first."""
    under = _under(prompts)
    least = prompts.leave_one_out_p(values, keyness)
    ratio, low, high = keyness.ratios()
    found = []
    for g, group in enumerate(groups):
        own = under[g, None]
        for v in np.argsort(-keyness.log_odds[g], kind="stable"):
            attribute, value = values[v]
            # What is under one wording alone cannot be told apart from the wording.
            without = least.get((g, int(v)), float("nan")) if len(own) > 1 else float("nan")
            verdict = ""
            if keyness.q_values[g, v] <= SIGNIFICANCE_LEVEL:
                verdict = GOES if without <= SIGNIFICANCE_LEVEL else BOUND
            found.append(
                Link(
                    category, group, attribute, value,
                    float(ratio[g, v]), float(low[g, v]), float(high[g, v]),
                    int(keyness.counts[g, v]), int(keyness.sizes[g]), *keyness.other_counts(g, v),
                    len(under.get((g, values[v]), ())), len(own),
                    float(keyness.p_values[g, v]), float(keyness.q_values[g, v]), without, verdict,
                )
            )  # fmt: skip
    return found


def _under(prompts: PromptFeatures) -> dict[tuple[int, Feature | None], set[Any]]:
    """The wordings under which each group's stories have each value, and (None) all that it has."""
    found: dict[tuple[int, Feature | None], set[Any]] = defaultdict(set)
    for group, by_wording in zip(prompts.groups, prompts.features, strict=True):
        for wording, has in by_wording.items():
            for value in (None, *has):
                found[group, value].add(wording)
    return found


def _floor(category: str, keyness: Keyness) -> Floor:
    found, dealt = int((keyness.q_values <= SIGNIFICANCE_LEVEL).sum()), keyness.null_discoveries
    if not len(dealt):
        return Floor(category, keyness.q_values.size, found, float("nan"), float("nan"), 0, 0)
    high, most = float(np.quantile(dealt, 0.95)), int(dealt.max())
    return Floor(category, keyness.q_values.size, found, keyness.floor, high, most, len(dealt))


def _both(links: Sequence[Link], profiles: Sequence[Profile]) -> tuple[Both, ...]:
    """The links whose value is itself a person that stories were told of, with the link back."""
    called: dict[str, str] = {}
    for p in profiles:
        words = p.name.casefold().split()
        called.setdefault(" ".join(words[1:] if words[0] in ("a", "an", "the") else words),
                          p.labels["group"])  # fmt: skip
    back = {(link.group, link.value): link for link in links}
    return tuple(
        Both(link, back[given, link.group.casefold()])
        for link in links
        if (given := called.get(link.value)) and (given, link.group.casefold()) in back
    )
