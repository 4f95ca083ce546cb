"""Which tests of a run's groups are asked for: two groups, or every pair of a category."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Literal

from kgbias.associate.from_graph import find_group, groups_test, regard_sets, topic_sets
from kgbias.associate.indicators import (
    PLEASANT,
    Indicators,
    Pair,
    need_attributes,
    read_indicators,
)
from kgbias.associate.sets import AssociationTest
from kgbias.errors import UsageError
from kgbias.graph.selection import Counted, Selection, one_arm
from kgbias.graph.stored import StoredRun

Groups = tuple[str, str] | Literal["all"]
REGARD = "regard"


@dataclass(frozen=True)
class Asked:
    """What stands for the groups of a run, and what they are tested against."""

    run: StoredRun
    attributes: str | None = None
    topics: tuple[str, str] | None = None
    targets: str | None = None
    file: Path | None = None
    arm: str | None = None

    @cached_property
    def indicators(self) -> Indicators:
        return read_indicators(self.file)

    @cached_property
    def counted(self) -> Counted:
        """The statements of the run that count, of one arm."""
        return one_arm(self.run, Selection(self.arm))

    @cached_property
    def pair(self) -> Pair:
        """The attribute sets: two topics, the run's own words of regard, or a pair of the
        literature (pleasant and unpleasant where none is named)."""
        if self.topics is not None:
            pair = topic_sets(self.run.record, self.run.topics(), *self.topics)
            where = "measure more topic words, or name another topic"
        elif self.attributes == REGARD:
            pair = regard_sets(self.counted.triples)
            where = "crawl more, or take other `attributes`"
        else:
            pair = self.indicators.pair(self.attributes or PLEASANT)
            where = f"declare more in {self.indicators.where}"
        need_attributes(pair, where)
        return pair

    def tests(self, groups: Groups) -> tuple[list[AssociationTest], list[str]]:
        """The tests, and why pairs were left out: of `groups` "all", every pair within a category
        of which both have indicators. Raises UsageError for two groups that cannot be tested, and
        where no pair can."""
        if groups != "all":
            x, y = (find_group(self.run.record, name) for name in groups)
            return [groups_test(*self.indicators.targets(x, y, self.targets), *self.pair)], []
        found: list[AssociationTest] = []
        left_out: dict[str, None] = {}
        for x, y in combinations(self.run.record.groups, 2):
            if x.category != y.category:
                continue
            try:
                sets = self.indicators.targets(x, y, self.targets)
            except UsageError as error:
                left_out[str(error)] = None
            else:
                found.append(groups_test(*sets, *self.pair))
        if not found:
            raise UsageError(next(iter(left_out), "the run has no two groups of one category"))
        return found, list(left_out)
