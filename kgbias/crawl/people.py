"""Whom stories and pairs are about, said as for a crawl: categories, groups by name, and files of
groups."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from kgbias.crawl.seeds import check_own, looks_singular, own_category, read_seeds
from kgbias.errors import UsageError, nearest
from kgbias.graph.generation_run import Person
from kgbias.ids import normalise
from kgbias.parameters import Names, among, as_names

P = TypeVar("P", bound=Person)
_ALIKE = 0.8  # the word for one of a group and for all of them


def chosen_people(
    told: Sequence[P],
    category: Names,
    group: Names,
    seeds: Sequence[str | Path],
    own: Callable[[Person], P],
) -> tuple[P, ...]:
    """Whom to ask about: everybody in `told` if nothing is named; else those of the categories, of
    the groups by name, and of the groups in the files `seeds`, together, as in a crawl.

    A group that is told of has its people there. Of any other, `own` makes what is asked about from
    a `Person` in the words of the file (`person`), or else in ours. Such a group is of the one
    category that is named, else of "custom".

    Raises UsageError for an unknown category, and for the word for one of a group that is there.
    """
    categories, names = as_names(category), as_names(group)
    wanted = [seed for path in seeds for seed in read_seeds(str(path))]
    if not (categories or names or wanted):
        return tuple(told)
    there: dict[str, list[P]] = {}
    for person in told:
        there.setdefault(normalise(person.group), []).append(person)
    if names:
        check_own(names)
        for name in names:
            meant = nearest(name, [p.group for p in told], _ALIKE) if looks_singular(name) else ""
            if meant and normalise(name) not in there:
                raise UsageError(f"{name!r} would be a new group: did you mean {meant}?")
        into = categories[0] if len(categories) == 1 else "custom"
        wanted.append(own_category(into).joined(names))
    else:
        among(told, "category", categories, " among the people")
    found = [p for p in told if p.category in categories]
    for seed in wanted:
        for name in seed.groups:
            words = seed.person.get(name) or (f"someone from the group {name}",)
            made = [own(Person(text, name, seed.category.name)) for text in words]
            found += there.get(normalise(name), made)
    return tuple(dict.fromkeys(found))
