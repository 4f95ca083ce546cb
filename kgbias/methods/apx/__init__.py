"""APX: the descriptors that a model ties to groups of names (Siddique et al. 2024).

    from kgbias.methods import apx

    apx.probe_names(study, "smollm2", exclude_axes="age")
    apx.list_flags(study)

The table of APX and its flags are `kgbias.probe.apx`'s, since benchmarks and profiles read them
too. Here is what is done with them alone: calls and the command, files, and the check against what
people say.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.errors import UsageError
from kgbias.io.rows import Rows
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.parameters import Names, PathLike, ScorerOptions, as_names
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.io.tables_in_memory import Table
    from kgbias.methods.apx.result import ApxResult, StoredFlag
    from kgbias.models.score.distributed import AnyScorer
    from kgbias.probe.sets import Descriptor
    from kgbias.study.opening import Model
    from kgbias.study.study import Study


@public_call
def probe_names(
    study: "Study",
    model: "Model | AnyScorer",
    names: "Table | Sequence[tuple[str, str]]" = "globalbias",
    descriptors: "Table | Sequence[Descriptor]" = "globalbias",
    *,
    exclude_axes: Names = (),
    as_published: bool = False,
    keep: bool = True,
    output: PathLike | None = None,
    perplexities: PathLike | None = None,
    seed: int = 0,
    executor: str = LOCAL_EXECUTOR,
    processes: int | None = None,
    **opening: Unpack[ScorerOptions],
) -> "ApxResult":
    """Find the descriptors that a model ties to groups of names, and write them to the graph as
    FLAGGED edges. A group of the same name in a run is the same node. Sentence scores are kept, and
    those in the store, from here or from `benchmarks`, are reused.

    Memory holds a chunk of sentences, and a figure for each template, group and descriptor. A
    stopped job continues from its files, and ends with the same bytes.

    Args:
        study: the study.
        model: a spec, or a model opened by `kgbias.open_scorer`.
        names: names and their groups: pairs, the set "globalbias", or a table with the columns name
            and group.
        descriptors: descriptors: the set "globalbias", or a table with the column descriptor.
        exclude_axes: descriptors of these axes are measured but not tested.
        as_published: round as the paper's code does.
        keep: whether scores and flags go into the graph.
        output: a CSV file for the table of APX, in the form that `flag_table` reads.
        perplexities: a .jsonl file or a .parquet folder for every sentence (None: beside `output`,
            TABLE.perplexities.jsonl).
        seed: the random seed of the bootstrap.
        executor: where the model runs, as for `Run.probe`.
        processes: the number of processes on this machine, as for `Run.probe`.
        opening: how to open a spec: `begin`, `device`, `dtype`, `instruction`, `base_url`
            (see `kgbias.open_scorer`).

    Raises:
        UsageError: an output that cannot be written, or that belongs to other settings.
    """
    from kgbias.methods.apx.labels import validate_apx
    from kgbias.methods.apx.result import ApxResult, write_apx
    from kgbias.parallel import open_executor
    from kgbias.probe.names import probe_apx
    from kgbias.probe.sets import read_descriptor_label_by_group, read_descriptors, read_names
    from kgbias.study.opening import open_spread_scorer

    labels: Mapping[str, str] | None = None
    name_pairs: Any = names
    if not _is_list(names):
        labels, name_pairs = read_descriptor_label_by_group(name_pairs), read_names(name_pairs)
    descriptor_list: Any = descriptors
    if not _is_list(descriptors):
        descriptor_list = read_descriptors(descriptor_list)
    table_path = None if output is None else Path(output)
    sentence_path = None if perplexities is None else Path(perplexities)
    if table_path is not None and table_path.suffix != ".csv":
        raise UsageError(f"{table_path} must end in .csv")
    if table_path is not None and sentence_path is None:
        sentence_path = table_path.with_suffix(".perplexities.jsonl")
    context = study.context
    with study.working() as progress, open_executor(executor, progress, processes) as workers:
        scorer = open_spread_scorer(model, opening, progress, workers, context.models())
        flags = probe_apx(
            context.apply_display_name(scorer),
            name_pairs,
            descriptor_list,
            exclude_axes=as_names(exclude_axes),
            as_published=as_published,
            perplexities=sentence_path,
            store=context.writable() if keep else None,
            progress=progress,
        )
    if table_path is not None:
        write_apx(flags.table, table_path)
    assert flags.means is not None
    validation = validate_apx(
        flags.means,
        [descriptor.label for descriptor in descriptor_list],
        {group: group for _, group in name_pairs} if labels is None else labels,
        as_published=as_published,
        seed=seed,
    )
    return ApxResult.from_flags(flags, validation)


def _is_list(value: Any) -> bool:
    """Whether these are names or descriptors themselves, and no table of them."""
    return isinstance(value, list | tuple) and not (value and isinstance(value[0], Mapping))


@public_call
def flag_table(
    study: "Study", path: PathLike, *, exclude_axes: Names = (), keep: bool = True
) -> "ApxResult":
    """Find the flags of a table of APX that was made before or elsewhere, and write them to the
    graph.

    Args:
        study: the study.
        path: the table, a CSV file; the edges are named after it.
        exclude_axes: descriptors of these axes are not tested.
        keep: whether the flags go into the graph.
    """
    from kgbias.methods.apx.result import flag_apx_table

    flags = flag_apx_table(Path(path), as_names(exclude_axes))
    if keep:
        study.context.writable().save_flags(flags.edges)
    return flags


@public_call
def list_flags(study: "Study") -> Rows["StoredFlag"]:
    """The flags in the store, by model and group, the most strongly tied first.

    Frame columns: model, group, descriptor, axis, bias_score, z, level, groups.
    """
    from kgbias.methods.apx.result import STORED_FLAG_COLUMNS, StoredFlag

    tables = study.context.graph.flags()
    stored_flags = [StoredFlag(table, flag) for table in tables for flag in table.flags]
    return Rows(stored_flags, STORED_FLAG_COLUMNS)
