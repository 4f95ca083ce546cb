"""Association tests: the WEAT family, on word vectors and language models.

from kgbias.methods import associations

associations.associate(run, "smollm2", ["weat6", "weat7"])
associations.associate(study, vectors="glove.txt", tests="all")

Tests are published ones by name, or sets of words: `kgbias.methods.associations.sets` has
`AssociationTest`, `WordSet`, `find_tests` and `read_tests`. The single methods are
`kgbias.methods.associations.weat.weat` and `.weat.seat`, `.ceat.ceat` and `.lpbs.lpbs`.
"""

from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from kgbias.methods.associations.options import AssociationOptions
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.parameters import Names, PathLike, as_names
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.graph.types import AssociationNode
    from kgbias.io.rows import Rows
    from kgbias.methods.associations.family import Associations
    from kgbias.methods.associations.grid import GridCost, GridResult
    from kgbias.methods.associations.sets import Tests
    from kgbias.study.opening import Models
    from kgbias.study.run import Run
    from kgbias.study.study import Study


class GridOptions(TypedDict, total=False):
    """The axes of a grid of association tests, and how each cell is computed; see
    `associate_grid`."""

    contexts: Path | None
    encoding: str | None
    words: str | None
    targets: str | None
    samples: int
    draws: int
    seed: int
    layer: int
    most: int
    window: int


@public_call
def associate(
    source: "Run | Study",
    models: "Models" = (),
    tests: "Tests" = (),
    methods: Names = (),
    **options: Unpack[AssociationOptions],
) -> "Associations":
    """Run association tests (WEAT, s-SEAT, w-SEAT, CEAT, LPBS), and write them to the graph.

    Args:
        source: a run, which the tests are tied to and whose groups and topics they may be about;
            or a study, for tests that belong to no run.
        models: specs of the models to test, or models in memory (`kgbias.in_memory`).
        tests: published tests by name, such as "weat6" or "C6", or your own word sets: an
            `AssociationTest`, or a dict of four lists of words (two of targets, two of
            attributes), by x, y, a and b or by their concepts.
        methods: the methods (default: w-seat, or weat for `vectors`).
        options: those of `kgbias.methods.associations.family.associate`, including `vectors` (a
            file of word vectors, a dict of words to vectors, words and a matrix, or gensim's
            KeyedVectors), and of a run `groups` (two of its groups, or "all" pairs),
            `every_group`, `attributes` (what groups are tested on), `topics` (two topics instead),
            `indicators` (a file of words that stand for groups).
    """
    from kgbias.methods.associations.family import associate as run_tests
    from kgbias.study.opening import as_text_scorers
    from kgbias.study.run import Run

    context = source.context
    run = source.stored if isinstance(source, Run) else None
    with context.working() as progress:
        return run_tests(
            tests,
            as_names(methods),
            models=as_text_scorers(models, context.models()),
            run=run,
            store=context.writable() if run is None else None,
            progress=progress,
            **options,
        )


@public_call
def list_associations(run: "Run") -> "Rows[AssociationNode]":
    """The association tests that belong to a run.

    Frame columns: test, method, model, effect_size, low, high, p_value.

    Args:
        run: the run.
    """
    from kgbias.io.columns import Column
    from kgbias.io.rows import Rows
    from kgbias.io.text import format_p_value

    columns = (
        Column("test"),
        Column("method"),
        Column("model", get=attrgetter("model.title")),
        Column("effect_size", "+.3f"),
        Column("low", "+.3f"),
        Column("high", "+.3f"),
        Column("p_value", format_p_value),
    )
    return Rows(run.stored.associations(), columns)


@public_call
def associate_grid(
    study: "Study",
    models: Names,
    tests: Names = (),
    methods: Names = (),
    *,
    run: "str | Run | None" = None,
    output: PathLike | None = None,
    cache: bool = True,
    device: str = "auto",
    dtype: str = "float32",
    executor: str = LOCAL_EXECUTOR,
    processes: int | None = None,
    **options: Unpack[GridOptions],
) -> "GridResult":
    """Run the parameter study of "Mind Your Bias" (2022): tests by methods, names and terms,
    templates and a corpus, encodings, word sets and models, in every valid combination. Each
    model is loaded once and each text embedded once; results in the store are not computed
    again, so repeating the call resumes an interrupted one.

    Args:
        study: the study, whose store keeps the results.
        models: specs of the models.
        tests: published tests by name (default: those of the paper); C3 is names and terms.
        methods: s-seat, w-seat, ceat, lpbs, ceat-lpbs (default: all).
        run: a run to tie the results to, with edges to its groups and topics.
        output: a folder for the tables and figures of the paper.
        cache: keep embeddings on disk.
        device: "auto", or the name of a torch device.
        dtype: the number type that the models compute in.
        executor: where the models run, as for `Run.probe`.
        processes: the number of processes on this machine, as for `Run.probe`.
        options: `contexts` (a corpus), `encoding`, `words`, `targets` (one value of an axis),
            `samples`, `draws`, `seed`, `layer`, `most`, `window`; see
            `kgbias.methods.associations.grid.plan_grid`.
    """
    from kgbias.methods.associations.grid import plan_grid, run_grid
    from kgbias.parallel import open_executor

    grid = plan_grid(as_names(models), as_names(tests), as_names(methods), **options)
    store = study.context.writable()
    stored_run = None if run is None else study.context.find(run)
    with (
        study.working() as progress,
        open_executor(executor, progress, processes) as workers,
    ):
        result = run_grid(
            grid,
            store,
            stored_run,
            cache=cache,
            device=device,
            dtype=dtype,
            executor=workers,
            progress=progress,
        )
    if output is not None:
        from kgbias.methods.associations.paper_files import write_grid

        write_grid(result.rows, Path(output))
    return result


@public_call
def grid_cost(
    study: "Study",
    models: Names,
    tests: Names = (),
    methods: Names = (),
    **options: Unpack[GridOptions],
) -> "GridCost":
    """The work that `associate_grid` would do with the same arguments, without loading a model:
    cells in all and already in the store, texts to embed, predictions to make.

    Args:
        study: the study.
        models: as for `associate_grid`, and so are the others.
        tests: published tests by name.
        methods: the methods.
        options: what keeps one value of an axis, and how each cell is computed.
    """
    from kgbias.methods.associations.grid import estimate_grid_cost, plan_grid

    grid = plan_grid(as_names(models), as_names(tests), as_names(methods), **options)
    return estimate_grid_cost(grid, study.context.existing_store)
