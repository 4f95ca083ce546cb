"""Which attributes go with which group? Log-odds ratios, exact tests, and a floor.

A story either has a value of an attribute or not. For a group with y of n stories that have it, and
the other groups of its category with y' of n', the log-odds ratio, with half a story added to each
of the four numbers so that none is 0 (Haldane 1956; Anscombe 1956), is

    log (y + 1/2)/(n - y + 1/2) - log (y' + 1/2)/(n' - y' + 1/2),

Above 0, it is the group's. Its interval holds the log-odds ratios that the score test does not
reject (Cornfield 1956; Miettinen and Nurminen 1985). Where none or all of the stories on one side
have the value, the score test rejects nothing on one side, and that end is by the variance that is
the sum of the inverses of the four terms (Gart and Zweifel 1967). A prior would rank as well, but
its interval would be about the shrunken value and not about the group. Stories with the same prompt
count as one, which has what any of them has.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import UsageError, no_such
from kgbias.graph.profiles import Profile
from kgbias.io.progress import Progress, Silent
from kgbias.io.rows import Result, Rows
from kgbias.stats.inference import benjamini_hochberg
from kgbias.stories.config import READER

_ADDED = 0.5  # stories, to each of the four numbers
FEWEST = 3  # stories with a value, of all groups, for it to be tested
LEVEL = 0.05
DEALS = 199  # how often the stories are dealt anew
_Z = 1.959964
_HALVINGS = 50  # of where an end of an interval may lie
GOES, BOUND = "goes with the group", "bound to a wording"


@dataclass(frozen=True, slots=True)
class Link:
    """A value of an attribute in a group's stories, beside the other groups' of its category.

    Attributes:
        log_odds, low, high: natural logarithm, with its 95% interval; above 0, the group's stories
            have the value more often.
        stories, of, others, of_others: how many stories of the group have the value, of how many;
            and how many of the others.
        wordings, of_wordings: under how many of the words for the group (or names) it was told, of
            how many.
        p_value: twice the probability, if the groups were dealt over the stories, of at least as
            many stories of the group with the value (or at most, below 0): Fisher's exact test.
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
    """What goes with whom in a run's stories: `links` by category, group and log-odds, the `floor`
    of each category, the links known in `both` directions, how many stories were `told` of each
    group (if a model reads, without those that it did not read), and in how many of those each
    attribute was `read`; `reader` is what read them: "rules@1" or a model."""

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


@dataclass(frozen=True)
class _Table:
    """The stories of a category, those with the same prompt as one: their groups (by number) and
    wordings, and which values [stories, values] they have."""

    groups: tuple[str, ...]
    of: NDArray[np.int64]
    wordings: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    having: NDArray[np.float64]


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
    told = progress or Silent()
    chosen = [c for c in there if not categories or c in categories]
    told.stage("links", len(chosen))
    links: list[Link] = []
    floors = []
    for number, category in enumerate(chosen):
        own_profiles = [p for p in profiles if p.labels["category"] == category]
        table = _table(own_profiles, wordings, attributes or known)
        if len(table.groups) > 1 and table.values:
            links += _links(category, table)
            floors.append(_floor(category, table, deals, np.random.default_rng([seed, number])))
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
        for attribute in p.said():
            read[p.labels["group"]][attribute] += 1
    return dict(told), {group: dict(of) for group, of in read.items()}


def _table(profiles: Sequence[Profile], wordings: int, attributes: Sequence[str]) -> _Table:
    prompts: dict[tuple[str, str, int], set[tuple[str, str]]] = {}
    for p in profiles:
        own = prompts.setdefault((p.labels["group"], *p.told_for(wordings)), set())
        own |= {(t.attribute, t.value.casefold()) for t in p.parts if t.attribute in attributes}
    count: dict[tuple[str, str], int] = defaultdict(int)
    for has in prompts.values():
        for value in has:
            count[value] += 1
    values = tuple(sorted(value for value, n in count.items() if n >= FEWEST))
    groups = tuple(dict.fromkeys(group for group, _, _ in prompts))
    having = np.array([[float(v in has) for v in values] for has in prompts.values()])
    return _Table(
        groups,
        np.array([groups.index(group) for group, _, _ in prompts]),
        tuple(name for _, name, _ in prompts),
        values,
        having.reshape(len(prompts), len(values)),
    )


def _counted(
    table: _Table, of: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many stories of each group have each value [groups, values]; and how many it has."""
    own = np.zeros((len(table.groups), len(table.values)))
    np.add.at(own, of, table.having)
    return own, np.bincount(of, minlength=len(table.groups)).astype(np.float64)


def log_odds(own: Any, of: Any, others: Any, of_others: Any) -> tuple[Any, Any, Any]:
    """The log-odds ratio with its 95% interval (the module says how)."""
    first, second, third, fourth = (
        count + _ADDED for count in (own, of - own, others, of_others - others)
    )
    value = np.log(first / second) - np.log(third / fourth)
    away = _Z * np.sqrt(1 / first + 1 / second + 1 / third + 1 / fourth)
    everyone, n = own + others, of + of_others
    ends = []
    for bound, end in (
        (np.maximum(0, everyone - of_others), value - away),
        (np.minimum(of, everyone), value + away),
    ):
        inside, outside = np.asarray(own, np.float64), np.asarray(bound, np.float64)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            cells = (middle, of - middle, everyone - middle, of_others - everyone + middle)
            with np.errstate(divide="ignore"):
                variance = 1 / sum(1 / cell for cell in cells)
            rejected = (own - middle) ** 2 * (n - 1) / n > _Z**2 * variance
            outside = np.where(rejected, middle, outside)
            inside = np.where(rejected, inside, middle)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(cells[0] / cells[1]) - np.log(cells[2] / cells[3])
        ends.append(np.where(np.equal(own, bound), end, found))
    return value, ends[0], ends[1]


def exact(own: Any, of: Any, everyone: Any, n: int) -> Any:
    """Twice the tail of the hypergeometric distribution on the side of the group's share: the
    p-value of `own` of `of` stories, if `everyone` of all `n` have the value."""
    from scipy.stats import hypergeom

    more = hypergeom.sf(own - 1, n, everyone, of)
    fewer = hypergeom.cdf(own, n, everyone, of)
    return np.minimum(1.0, 2 * np.where(own * n > everyone * of, more, fewer))


def _tested(table: _Table, of: NDArray[np.int64]) -> tuple[Any, Any, Any, Any]:
    """Counts, sizes, p-values and corrected p-values, the correction within each group."""
    own, sizes = _counted(table, of)
    p = exact(own, sizes[:, None], own.sum(0)[None, :], len(of))
    q = np.array([benjamini_hochberg(row.tolist()) for row in p])
    return own, sizes, p, q


def _links(category: str, table: _Table) -> list[Link]:
    own, sizes, p, q = _tested(table, table.of)
    total, n = own.sum(0), len(table.of)
    values, low, high = log_odds(own, sizes[:, None], total - own, n - sizes[:, None])
    found = []
    for g, group in enumerate(table.groups):
        mine = table.of == g
        names = sorted({w for w, m in zip(table.wordings, mine, strict=True) if m})
        under = np.array(table.wordings)
        for v in np.argsort(-values[g], kind="stable"):
            attribute, value = table.values[v]
            having = mine & (table.having[:, v] > 0)
            link = Link(
                category, group, attribute, value,
                float(values[g, v]), float(low[g, v]), float(high[g, v]),
                int(own[g, v]), int(sizes[g]), int(total[v] - own[g, v]), int(n - sizes[g]),
                len(set(under[having])), len(names),
                float(p[g, v]), float(q[g, v]), float("nan"), "",
            )  # fmt: skip
            found.append(_judged(link, table, g, int(v), under))
    return found


def _judged(link: Link, table: _Table, g: int, v: int, under: NDArray[Any]) -> Link:
    """The link with its verdict: is it still there without the stories of any one wording?"""
    if link.q_value > LEVEL:
        return link
    p_values = [1.0]
    if link.of_wordings > 1:
        p_values = [_without(name, link, table, g, v, under) for name in sorted(set(under))]
    least = max(p_values) if link.of_wordings > 1 else float("nan")
    return replace(link, least=least, verdict=GOES if max(p_values) <= LEVEL else BOUND)


def _without(name: str, link: Link, table: _Table, g: int, v: int, under: NDArray[Any]) -> float:
    """The p-value without the stories of a wording; 1 if the link then points the other way."""
    kept = under != name
    mine = kept & (table.of == g)
    own, everyone, n = table.having[mine, v].sum(), table.having[kept, v].sum(), kept.sum()
    if not mine.any() or (own * n > everyone * mine.sum()) != (link.log_odds > 0):
        return 1.0
    return float(exact(own, mine.sum(), everyone, int(n)))


def _floor(category: str, table: _Table, deals: int, rng: np.random.Generator) -> Floor:
    found = int((_tested(table, table.of)[3] <= LEVEL).sum())
    dealt = [
        int((_tested(table, rng.permutation(table.of))[3] <= LEVEL).sum()) for _ in range(deals)
    ]
    tested = len(table.groups) * len(table.values)
    if not dealt:
        return Floor(category, tested, found, float("nan"), float("nan"), 0, 0)
    high = float(np.quantile(dealt, 0.95))
    return Floor(category, tested, found, float(np.mean(dealt)), high, max(dealt), deals)


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
