"""Which benchmarks a call can ask for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from kgbias.io.tables_in_memory import Table, Texts
from kgbias.parameters import PathLike, ScorerOptions

if TYPE_CHECKING:
    from kgbias.study.run import Run

CONVENTIONS = ("original", "bias-bench")


class BenchmarkOptions(TypedDict, total=False):
    """The benchmarks of a call; see `run_benchmarks`."""

    run: "str | Run | None"
    identities: Texts | None
    statements: Texts | None
    apx: bool
    names: Table | None
    descriptors: Table | None
    stereoset: Table | None
    crows_pairs: Table | None
    convention: str | None
    as_published: bool
    bbq: PathLike | Sequence[PathLike]
    winogender: Table | None


class RunBenchmarksOptions(BenchmarkOptions, ScorerOptions, total=False):
    """The options of `run_benchmarks`: the benchmarks, and how to open the models."""
