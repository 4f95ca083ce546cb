"""What APX finds, with its files: the flags of a table, and how well APX finds what people say."""

import csv
import io
import math
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.graph.types import Flag, FlagTable
from kgbias.ids import content_id
from kgbias.io.columns import Column
from kgbias.io.files import write_text
from kgbias.methods.apx.labels import ApxValidation
from kgbias.probe.apx import ApxTable, find_flags, read_apx
from kgbias.probe.result import ApxFlags
from kgbias.stats.estimate import nan_to_none


class StoredFlag(NamedTuple):
    """A flag in the store, and the table that it is of."""

    table: FlagTable
    flag: Flag


STORED_FLAG_COLUMNS = (
    Column("model", get=attrgetter("table.model")),
    Column("group", get=attrgetter("flag.group")),
    Column("descriptor", get=attrgetter("flag.descriptor")),
    Column("axis", get=attrgetter("flag.axis")),
    Column("bias_score", ".3f", get=attrgetter("flag.bias_score")),
    Column("z", ".2f", get=attrgetter("flag.z")),
    Column("level", ".3g", get=attrgetter("table.level")),
    Column("groups", "d", get=attrgetter("table.groups")),
)


@dataclass(frozen=True, slots=True, repr=False)
class ApxResult(ApxFlags):
    """The descriptors that APX ties to groups. `validation` says how well APX, and perplexity
    without it, find the labelled group of a descriptor; None without labels."""

    validation: ApxValidation | None = None

    @classmethod
    def from_flags(cls, flags: ApxFlags, validation: ApxValidation | None = None) -> "ApxResult":
        values = {field.name: getattr(flags, field.name) for field in fields(flags)}
        return cls(**values, validation=validation)

    def as_dict(self) -> dict[str, Any]:
        found = ApxFlags.as_dict(self)
        if self.validation:
            found |= self.validation.as_dict()
        return nan_to_none(found)  # type: ignore[no-any-return]


def flag_apx_table(path: Path, exclude_axes: tuple[str, ...] = ()) -> ApxResult:
    """The flags of a table of APX from elsewhere (see `kgbias.probe.apx.read_apx`)."""
    table = read_apx(path)
    flags = tuple(find_flags(table, exclude_axes))
    input_id = content_id("table", *table.groups, *table.descriptors, table.values.tobytes().hex())
    return ApxResult(table, flags, exclude_axes, str(path), input_id=input_id)


def write_apx(table: ApxTable, path: Path) -> None:
    """Write a table that `read_apx` can read: a row for each group and descriptor. A cell that was
    not measured has no row. Raises DataError if the file cannot be written."""
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(
        ["Group", "descriptor", "axis", *(f"apx_{n}" for n in range(1, len(table.values) + 1))]
    )
    for g, group in enumerate(table.groups):
        for d, (descriptor, axis) in enumerate(zip(table.descriptors, table.axes, strict=True)):
            values = table.values[:, g, d].tolist()
            if all(map(math.isfinite, values)):
                rows.writerow([group, descriptor, axis, *values])
    write_text(path, file.getvalue())
