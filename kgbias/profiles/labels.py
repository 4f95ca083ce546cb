"""What given names stand for: the group, ethnicity and gender that a list of names gives them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile
from kgbias.probe.sets import as_people, pair_of, written_names

NAMES = "globalbias"


@dataclass(frozen=True, slots=True)
class Named:
    """A given name, and what it stands for: `label` as the list says it ("ARAB F"), `group` as
    statements name it ("Arab women")."""

    name: str
    label: str
    group: str
    ethnicity: str = ""
    gender: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """What a profile of this name keeps of it."""
        found = {"group": self.label, "ethnicity": self.ethnicity, "gender": self.gender}
        return {kind: label for kind, label in found.items() if label}


def given_names(source: str) -> list[Named]:
    """The names of a list: "globalbias" (400 names of 40 groups), "reference" (those of the
    reference world's peoples and faiths), or a CSV file with the columns name and group."""
    if source == "reference":
        from kgbias.reference.world import load_truth

        found = [
            Named(name, group.name, group.name)
            for group in load_truth().groups.values()
            for name in group.given_names
        ]
    else:
        found = [_named(name, group) for name, group in written_names(source)]
    return list(dict.fromkeys(found))


def named_groups(names: Iterable[Named], groups: Sequence[str]) -> list[Named]:
    """The names of these groups, by label or group in any case; all where none is named. Raises
    UsageError for a group that the list does not have."""
    names = list(names)
    wanted = {g.casefold() for g in groups}
    there = {text.casefold() for n in names for text in (n.label, n.group)}
    if missing := sorted(wanted - there):
        listed = ", ".join(dict.fromkeys(n.group for n in names))
        raise UsageError(f"the list of names has no group {missing[0]!r}; there is {listed}")
    return [n for n in names if not wanted or wanted & {n.label.casefold(), n.group.casefold()}]


def labelled(profiles: Sequence[Profile], groups: Mapping[str, str]) -> list[Profile]:
    """The profiles with what their names stand for. Where an import does not say, it is looked up
    in GlobalBias's list, if that has every name; otherwise the label is the group of the run, of
    which `groups` has the name by id."""
    lacking = {p.name for p in profiles if not p.labels.get("group")}
    known = {n.name: n.labels for n in given_names(NAMES)} if lacking else {}
    if not lacking <= known.keys():
        known = {}
    found = []
    for p in profiles:
        if not p.labels.get("group"):
            own = {"group": groups.get(p.group_id, ""), **known.get(p.name, {}), **p.labels}
            p = replace(p, labels=own)
        found.append(p)
    return found


def _named(name: str, group: str) -> Named:
    """GlobalBias writes a group as a pair: "('ARAB', 'F')"."""
    pair = pair_of(group)
    if pair is None:
        return Named(name, group, group)
    ethnicity, gender = pair
    people = as_people(ethnicity, gender) or group
    return Named(name, f"{ethnicity} {gender}", people, ethnicity, gender)
