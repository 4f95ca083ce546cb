"""Whom stories and pairs are about, said as for a crawl: categories, groups by name, and files of
groups."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from kgbias.crawl.seeds import check_group_names, looks_singular, new_category, read_seeds
from kgbias.errors import UsageError, nearest
from kgbias.graph.generation_run import Person
from kgbias.graph.types import Group
from kgbias.ids import normalise
from kgbias.parameters import Names, as_choice, select_named

PersonT = TypeVar("PersonT", bound=Person)
_MIN_SPELLING_SIMILARITY = 0.8  # the word for one of a group and for all of them


def choose_subjects(
    people: Sequence[PersonT],
    category: Names,
    group: Names,
    seeds: Sequence[str | Path],
    make_person: Callable[[Person], PersonT],
) -> tuple[PersonT, ...]:
    """Whom to ask about: everybody in `people` if nothing is named; else those of the categories,
    of the groups by name, and of the groups in the files `seeds`, together, as in a crawl.

    A group that is told of has its people there. Of any other, `make_person` makes what is asked
    about from a `Person` in the words of the file (`person`), or else in ours. Such a group is of
    the one category that is named, else of "custom".

    Raises UsageError for an unknown category, and for the word for one of a group that is there.
    """
    categories, names = as_choice("category", category), as_choice("group", group)
    seeds_wanted = [seed for path in seeds for seed in read_seeds(str(path))]
    if not (categories or names or seeds_wanted):
        return tuple(people)
    people_by_group: dict[str, list[PersonT]] = {}
    for person in people:
        people_by_group.setdefault(normalise(person.group), []).append(person)
    if names:
        check_group_names(names)
        for name in names:
            nearest_name = (
                nearest(name, [p.group for p in people], _MIN_SPELLING_SIMILARITY)
                if looks_singular(name)
                else ""
            )
            if nearest_name and normalise(name) not in people_by_group:
                raise UsageError(f"{name!r} would be a new group: did you mean {nearest_name}?")
        target_category = categories[0] if len(categories) == 1 else "custom"
        seeds_wanted.append(new_category(target_category).with_groups(names))
    else:
        select_named(people, "category", categories, " among the people")
    chosen = [p for p in people if p.category in categories]
    for seed in seeds_wanted:
        for name in seed.groups:
            words = seed.person.get(name) or (f"someone from the group {name}",)
            default_people = [make_person(Person(text, name, seed.category.name)) for text in words]
            chosen += people_by_group.get(normalise(name), default_people)
    # A category and one of its groups may both be named.
    return tuple(dict.fromkeys(chosen))


def count_groups_with_people(groups: Sequence[Group], people: Sequence[Person]) -> Counter[str]:
    """How many groups of each category have people in a pack."""
    places = {(p.category, p.group) for p in people}
    return Counter(g.category for g in groups if (g.category, g.name) in places)
