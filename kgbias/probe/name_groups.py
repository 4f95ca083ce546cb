"""Name groups from a table of given names with guessed genders and origins, as GlobalBias made its
own (Siddique et al. 2024, section 3.1): names whose vectors lie together, in clusters in which most
names have the same guess. `scripts/name_groups.py` runs it.

A guess says what a classifier makes of a name, and nothing about a person who bears it.
"""

import csv
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, MissingExtra, UsageError
from kgbias.io.files import write_into_folder, write_json, write_text
from kgbias.io.tables import read_table
from kgbias.io.text import escape_formula
from kgbias.probe.sets import format_people

DEFAULT_PER_GROUP = 10
DEFAULT_PURITY = 0.5
_NAME_LENGTHS = range(2, 15)  # characters of a name
_DEFAULT_CLUSTERS = 120  # in the authors' code; the paper does not say
_COLUMN_NAMES = {
    "name": ("firstname", "first_name", "first", "name"),
    "gender": ("gender", "genni"),
    "origin": ("highest_probf_ethnicity", "origin", "ethnicity", "ethnea"),
    "probability": ("highest_probf_value", "probability", "ethnicity probability"),
}
_GENDER_CODES = {"f": "F", "female": "F", "m": "M", "male": "M"}

Group = tuple[str, str]  # origin and gender


@dataclass(frozen=True, slots=True)
class Guess:
    """A given name with the gender (F or M) and origin that somebody guessed; `probability` of the
    origin, in the table's own unit, NaN if the table has none."""

    name: str
    gender: str
    origin: str
    probability: float = math.nan

    @property
    def group(self) -> Group:
        return self.origin, self.gender


@dataclass(frozen=True, slots=True)
class Guesses:
    """The names of a table, each once, and how many rows were `left_out` for which reason."""

    names: tuple[Guess, ...]
    left_out: Mapping[str, int]
    source: str


def read_guesses(path: Path) -> Guesses:
    """A CSV or TSV file with columns for the name, the gender and the origin, under the headings
    that GlobalBias and Ethnea use, and optionally the probability of the origin. As in the paper,
    names of 2 to 14 characters with one of two genders stay; a name with several rows gets the
    guess of most of them. Raises DataError for a file without these columns or names."""
    header, rows = read_table(path)
    lower = {column.strip().lower(): column for column in header}
    columns_found = {
        field_name: next((lower[name] for name in names if name in lower), "")
        for field_name, names in _COLUMN_NAMES.items()
    }
    for field_name in ("name", "gender", "origin"):
        if not columns_found[field_name]:
            known_columns = ", ".join(_COLUMN_NAMES[field_name])
            raise DataError(
                f"{path} has no column of the {field_name}: it may be called {known_columns}"
            )
    guesses_by_name: dict[str, list[Guess]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    for line, row in rows:
        name, origin = row[columns_found["name"]].strip(), row[columns_found["origin"]].strip()
        gender = _GENDER_CODES.get(row[columns_found["gender"]].strip().lower(), "")
        if not gender or not origin:
            left_out["no guess of one gender and an origin"] += 1
        elif len(name) not in _NAME_LENGTHS:
            left_out["fewer than 2 or more than 14 characters"] += 1
        else:
            origin_probability = _parse_probability(
                row.get(columns_found["probability"], ""), f"{path}, line {line}"
            )
            guesses_by_name[name].append(Guess(name, gender, origin, origin_probability))
    if not guesses_by_name:
        raise DataError(f"{path} has no names with a gender and an origin")
    return Guesses(
        tuple(_commonest_guess(name_guesses) for name_guesses in guesses_by_name.values()),
        dict(left_out),
        path.name,
    )


def _parse_probability(text: str, where: str) -> float:
    """The number in a cell, in whatever unit the table has it; NaN for an empty one."""
    try:
        return float(text) if text.strip() else math.nan
    except ValueError as error:
        raise DataError(f"{where}: {text!r} is not a probability") from error


def _commonest_guess(guesses: Sequence[Guess]) -> Guess:
    """The guess that most rows of a name share; of several, the first."""
    (group, _), *_ = Counter(g.group for g in guesses).most_common(1)
    return next(g for g in guesses if g.group == group)


@dataclass(frozen=True, slots=True)
class ClusteredName:
    """A name of a group: its cluster, the share of the cluster's names with the same guess, and
    whether it was taken from there or only for the guess ("cluster" or "probability")."""

    guess: Guess
    cluster: int
    purity: float
    how: str = "cluster"


@dataclass(frozen=True, slots=True)
class NameGroups:
    """Groups of as many names each.

    Attributes:
        members: the names, group by group.
        clusters: how many clusters there were; `pure_clusters` of them passed.
        purity: the mean share of the largest group in a cluster, over names; `shuffled_purity` is
            what the same clusters give when guesses are dealt anew.
        missing: groups without enough names, with how many they had.
        settings: how they were made.
    """

    members: tuple[ClusteredName, ...]
    clusters: int
    pure_clusters: int
    purity: float
    shuffled_purity: float
    missing: Mapping[Group, int]
    settings: Mapping[str, Any]

    @property
    def groups(self) -> list[Group]:
        return list(dict.fromkeys(c.guess.group for c in self.members))

    def write(self, folder: Path) -> list[Path]:
        """Write names.csv, which `--names` takes, a data statement and a manifest, whole or not at
        all; returns the files."""
        with write_into_folder(folder) as partial:
            with (partial / "names.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(("name", "group", "origin", "gender", "cluster", "purity", "how"))
                for member in self.members:
                    guess = member.guess
                    texts = map(
                        escape_formula,
                        (guess.name, format_people(guess.origin, guess.gender), guess.origin),
                    )
                    writer.writerow(
                        (*texts, guess.gender, member.cluster, f"{member.purity:.3f}", member.how)
                    )
            write_json(partial / "manifest.json", self._facts())
            write_text(partial / "data-statement.md", self._statement())
        return [folder / name for name in ("names.csv", "manifest.json", "data-statement.md")]

    def _facts(self) -> dict[str, Any]:
        return {
            "groups": len(self.groups),
            "names": len(self.members),
            "clusters": self.clusters,
            "pure": self.pure_clusters,
            "purity": round(self.purity, 4),
            "shuffled": round(self.shuffled_purity, 4),
            "missing": [[*group, n] for group, n in self.missing.items()],
            "settings": dict(self.settings),
        }

    def _statement(self) -> str:
        balanced = sum(c.how == "probability" for c in self.members)
        return _DATA_STATEMENT.format(
            names=len(self.members),
            groups=len(self.groups),
            clusters=self.clusters,
            pure=self.pure_clusters,
            purity=self.purity,
            shuffled=self.shuffled_purity,
            balanced=balanced,
            missing=len(self.missing),
            settings=json.dumps(dict(self.settings), indent=2),
            least=self.settings["purity"],
        )


_DATA_STATEMENT = """# Data statement

**What it is.** {names} given names in {groups} groups of guessed origin and gender, made as those
of GlobalBias (Siddique et al. 2024, section 3.1).

**Curation.** Names of 2 to 14 characters with a guess of one of two genders. Their vectors were put
into {clusters} clusters (mini-batch k-means). In {pure} of them more than a share of {least} of the
names had the same guess; each group's names were drawn from these at random. For an origin that had
only one gender there, the other gender's names are those with the most probable guess ({balanced}
names). {missing} groups had too few names and are left out.

**What the clusters say.** The largest group of a cluster holds {purity:.1%} of its names on average
over names; {shuffled:.1%} if the guesses are dealt to the names anew. The nearer the two, the less
the vectors know of what was guessed.

**Whose names.** Genders and origins are guesses of a classifier, from names alone; two genders are
all that it guesses. They are not what the people who bear these names say of themselves. A result
on these groups is about names.

**How it was made.**

```json
{settings}
```
"""


def choose_name_groups(
    guesses: Guesses,
    vectors: NDArray[np.float64],
    *,
    per_group: int = DEFAULT_PER_GROUP,
    purity: float = DEFAULT_PURITY,
    clusters: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> NameGroups:
    """Choose `per_group` names for every group that has them.

    Args:
        guesses: the names.
        vectors: one row for each name, [n, d].
        per_group: names of each group.
        purity: a cluster passes if its largest group holds more than this share of its names, and
            it has at least `per_group` names (the authors' code; the paper does not say so).
        clusters: how many (None: 120, as in the authors' code, or fewer, so that a cluster has
            `per_group` names on average).
        seed: the random seed of clusters and draws.
        settings: what else the data statement should say.

    Raises UsageError for numbers out of range, or if no group has enough names; MissingExtra
    without scikit-learn.
    """
    names = guesses.names
    kinds = sorted({g.group for g in names})
    if per_group < 1 or not 0 <= purity < 1 or len(vectors) != len(names) or clusters == 0:
        raise UsageError(
            "`per_group` and `clusters` must be at least 1, `purity` from 0 to below 1, and there "
            "must be a vector for each name"
        )
    count = clusters or max(1, min(_DEFAULT_CLUSTERS, len(names) // per_group))
    labels = _cluster_names(vectors, min(count, len(names)), seed)
    rng = random.Random(f"names:{seed}")
    pure_names, largest_shares = _pure_members(names, labels, purity, per_group)
    shuffled_names = list(names)
    rng.shuffle(shuffled_names)
    chosen_names: dict[Group, list[ClusteredName]] = {
        group: rng.sample(pure_names[group], per_group)
        for group in kinds
        if len(pure_names[group]) >= per_group
    }
    for origin, gender in kinds:
        other_gender = (origin, "M" if gender == "F" else "F")
        if (origin, gender) not in chosen_names and other_gender in chosen_names:
            surest = _surest_names(names, labels, largest_shares, (origin, gender))[:per_group]
            if len(surest) == per_group:
                chosen_names[origin, gender] = surest
    if not chosen_names:
        raise UsageError(
            f"no group has {per_group} names in clusters of one group: try other vectors, more "
            "clusters, or fewer names for each group"
        )
    return NameGroups(
        tuple(c for group in sorted(chosen_names) for c in chosen_names[group]),
        len(largest_shares),
        len({c.cluster for surest in pure_names.values() for c in surest}),
        _cluster_purity(names, labels),
        _cluster_purity(shuffled_names, labels),
        {group: len(pure_names[group]) for group in kinds if group not in chosen_names},
        {
            "source": guesses.source,
            "names": len(names),
            "left out": dict(guesses.left_out),
            "clusters": count,
            "per_group": per_group,
            "purity": purity,
            "seed": seed,
            **(settings or {}),
        },
    )


def _cluster_names(vectors: NDArray[np.float64], count: int, seed: int) -> list[int]:
    try:
        from sklearn.cluster import MiniBatchKMeans
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="profiles") from error
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    clustering = MiniBatchKMeans(count, random_state=seed, n_init=3, batch_size=2048)
    # Of length 1: the distances of k-means then follow the cosine.
    clustering.fit(vectors / np.where(lengths > 0, lengths, 1))
    return [int(label) for label in clustering.labels_]


class _PureNames(NamedTuple):
    """Names in pure clusters, and each cluster's largest share."""

    names: Mapping[Group, list[ClusteredName]]
    shares: dict[int, float]


def _pure_members(
    names: Sequence[Guess], labels: Sequence[int], purity: float, fewest: int
) -> _PureNames:
    """The names of each group in clusters of enough names where it holds more than that share; and
    the share of the largest group of each cluster."""
    members: dict[int, list[Guess]] = defaultdict(list)
    for guess, label in zip(names, labels, strict=True):
        members[label].append(guess)
    pure_names: dict[Group, list[ClusteredName]] = defaultdict(list)
    shares = {}
    for label, cluster_names in sorted(members.items()):
        group, n = Counter(g.group for g in cluster_names).most_common(1)[0]
        shares[label] = n / len(cluster_names)
        if shares[label] > purity and len(cluster_names) >= fewest:
            pure_names[group] += [
                ClusteredName(g, label, shares[label]) for g in cluster_names if g.group == group
            ]
    return _PureNames(pure_names, shares)


def _surest_names(
    names: Sequence[Guess], labels: Sequence[int], shares: Mapping[int, float], group: Group
) -> list[ClusteredName]:
    """The names of a group, the most probable first; names without a probability last."""
    group_names = [
        ClusteredName(g, label, shares[label], "probability")
        for g, label in zip(names, labels, strict=True)
        if g.group == group
    ]
    return sorted(
        group_names, key=lambda c: (-np.nan_to_num(c.guess.probability, nan=-1.0), c.guess.name)
    )


def _cluster_purity(names: Sequence[Guess], labels: Sequence[int]) -> float:
    """The share of names that are of the largest group of their cluster."""
    counts: dict[int, Counter[Group]] = defaultdict(Counter)
    for guess, label in zip(names, labels, strict=True):
        counts[label][guess.group] += 1
    return sum(max(c.values()) for c in counts.values()) / len(names)
