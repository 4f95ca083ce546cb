"""APX on a model: names x descriptors x templates, in chunks that are kept as they are computed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgbias.errors import UsageError
from kgbias.graph.types import canonical_json
from kgbias.ids import content_id
from kgbias.models.score.base import Scores, TextScorer
from kgbias.probe.apx import (
    ApxTable,
    Array,
    GroupMeans,
    adjusted,
    check_axes,
    flags,
    read_apx,
    write_apx,
)
from kgbias.probe.labelled import Validation, validate
from kgbias.probe.result import ApxFlags, ScoredBy
from kgbias.probe.sets import TEMPLATES, Descriptor, read_descriptors, read_labels, read_names
from kgbias.probe.stream import Kept, Row, opened
from kgbias.progress import Progress, Silent

_CHUNK = 4096  # sentences computed at once, and kept as one part of the output

Names = Sequence[tuple[str, str]]
_Part = tuple[int, int, Names]  # template, place of the first name, names


@dataclass(frozen=True, slots=True)
class NamesApx:
    """The table and, where descriptors have labels, how well it recovers the labelled groups.
    `asked` stands for the names, descriptors and templates."""

    table: ApxTable
    validation: Validation | None
    asked: str


def probe_apx(
    scorer: TextScorer,
    names: str | Names = "globalbias",
    descriptors: str | Sequence[Descriptor] = "globalbias",
    *,
    exclude_axes: Sequence[str] = (),
    as_published: bool = False,
    output: Path | None = None,
    perplexities: Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ApxFlags:
    """The descriptors that a model ties to groups of names, by APX.

    A job with an output that was stopped continues from it, and ends with the same bytes.

    Args:
        scorer: a model that scores texts.
        names: pairs of a name and its group, a named set or a file (see `kgbias.probe.sets`).
        descriptors: descriptors, a named set or a file.
        exclude_axes: descriptors of these axes are measured but not tested.
        as_published: round as the paper's code does.
        output: a CSV file for the table of APX, in the form that `flag_apx` reads.
        perplexities: a .jsonl file, or a .parquet folder, for the perplexity of every sentence as
            it is computed (default: beside `output`, TABLE.perplexities.jsonl).
        seed: of the bootstrap.
        progress: is told how far the work is.

    Raises:
        UsageError: an output that cannot be written, or that belongs to other settings.
    """
    labels: Mapping[str, str] | None = None
    if isinstance(names, str):
        labels, names = read_labels(names), read_names(names)
    if isinstance(descriptors, str):
        descriptors = read_descriptors(descriptors)
    check_axes([descriptor.axis for descriptor in descriptors], exclude_axes)
    if output is not None and output.suffix != ".csv":
        raise UsageError(f"{output} must end in .csv")
    if output is not None and perplexities is None:
        perplexities = output.with_suffix(".perplexities.jsonl")
    found = probe_names(
        scorer,
        names,
        descriptors,
        labels=labels,
        as_published=as_published,
        output=perplexities,
        seed=seed,
        progress=progress,
    )
    if output is not None:
        write_apx(found.table, output)
    return ApxFlags(
        found.table,
        tuple(flags(found.table, exclude_axes)),
        tuple(exclude_axes),
        ScoredBy.of(scorer),
        found.validation,
        asked=content_id(found.asked, "rounded" if as_published else ""),
    )


def flag_apx(path: Path, *, exclude_axes: Sequence[str] = ()) -> ApxFlags:
    """The flags of a table of APX from elsewhere (see `kgbias.probe.apx.read_apx`)."""
    table = read_apx(path)
    found = tuple(flags(table, exclude_axes))
    asked = content_id("table", *table.groups, *table.descriptors, table.values.tobytes().hex())
    return ApxFlags(table, found, tuple(exclude_axes), str(path), asked=asked)


def probe_names(
    scorer: TextScorer,
    names: Names,
    descriptors: Sequence[Descriptor],
    *,
    labels: Mapping[str, str] | None = None,
    templates: Sequence[str] = TEMPLATES,
    as_published: bool = False,
    output: Path | None = None,
    chunk: int = _CHUNK,
    seed: int = 0,
    progress: Progress | None = None,
) -> NamesApx:
    """Perplexities of every name and descriptor under every template, and their APX.

    `names` are pairs of a name and its group; `labels` says which label of descriptors a group
    answers to (default: its own name). What is held in memory is a chunk of sentences and one
    figure for each template, group and descriptor; `output` gets every sentence (see `probe_apx`).
    """
    told = progress or Silent()
    groups = [group for _, group in names]
    if labels is None:
        labels = {group: group for group in groups}
    asked = _asked(names, descriptors, templates)
    model = [scorer.info.name, scorer.info.revision, scorer.settings]
    kept = output and opened(output, {"model": model, "chunk": chunk, "asked": asked})
    means = GroupMeans(
        len(templates), groups, [d.text for d in descriptors], [d.axis for d in descriptors]
    )
    told.stage("probe names", len(templates) * len(names) * len(descriptors))
    step = max(1, chunk // len(descriptors))
    for number, part in enumerate(_parts(names, len(templates), step)):
        template, start, some = part
        values = _read(kept, number, (len(some), len(descriptors))) if kept else None
        if values is None:
            scores = _scores(scorer, templates[template], part, descriptors)
            values = scores.perplexities
            if kept:
                kept.write(number, _rows(part, descriptors, scores))
        means.add(template, start, values)
        told.advance(values.size)
    values = adjusted(means.values, means.names, as_published=as_published)
    return NamesApx(
        ApxTable(means.groups, means.descriptors, means.axes, values),
        validate(
            means, [d.label for d in descriptors], labels, as_published=as_published, seed=seed
        ),
        asked,
    )


def _parts(names: Names, templates: int, step: int) -> Iterator[_Part]:
    for template in range(templates):
        for start in range(0, len(names), step):
            yield template, start, names[start : start + step]


def _scores(
    scorer: TextScorer, template: str, part: _Part, descriptors: Sequence[Descriptor]
) -> Scores:
    number, _, names = part
    beginnings = [template.format(name=name) for name, _ in names]
    grid = scorer.grid(beginnings, [d.endings[number] for d in descriptors])
    # Of an encoder-decoder the paper scores what the decoder says (section 4.1).
    return grid.statement if scorer.convention.kind == "seq2seq" else grid.whole


def _rows(part: _Part, descriptors: Sequence[Descriptor], scores: Scores) -> list[Row]:
    """The sentences of a chunk for an output, name by name."""
    template, _, names = part
    perplexities = scores.perplexities
    return [
        {
            "template": template + 1,
            "name": name,
            "group": group,
            "descriptor": descriptor.text,
            "axis": descriptor.axis,
            "perplexity": float(perplexities[n, d]),
            "log_likelihood": float(scores.log_likelihoods[n, d]),
            "tokens": int(scores.tokens[n, d]),
        }
        for n, (name, group) in enumerate(names)
        for d, descriptor in enumerate(descriptors)
    ]


def _read(kept: Kept, number: int, shape: tuple[int, int]) -> Array | None:
    rows = kept.read(number)
    if rows is None:
        return None
    return np.array([row["perplexity"] for row in rows], dtype=np.float64).reshape(shape)


def _asked(names: Names, descriptors: Sequence[Descriptor], templates: Sequence[str]) -> str:
    """The id of everything that determines the sentences."""
    told = [[d.text, d.axis, d.endings] for d in descriptors]
    return content_id("names", canonical_json([list(names), told, templates]))
