"""APX in a store: which descriptors a model ties to the names of groups."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.graph.types import Flag, Flagged
from kgbias.parallel import LOCAL, opened_executor
from kgbias.parameters import Names, as_names
from kgbias.study.context import OfStudy
from kgbias.study.rows import Rows
from kgbias.study.scorers import ScorerOptions, spread_scorer

if TYPE_CHECKING:
    from kgbias.models.score.spread import Scoring
    from kgbias.probe import ApxFlags
    from kgbias.probe.sets import Descriptor

PathLike = str | Path
COLUMNS = ("model", "group", "descriptor", "axis", "bias_score", "z", "level", "groups")


class Flagging(OfStudy):
    """Flags of APX; a part of `Study`."""

    def probe_apx(
        self,
        model: "str | Scoring",
        names: "str | Sequence[tuple[str, str]]" = "globalbias",
        descriptors: "str | Sequence[Descriptor]" = "globalbias",
        *,
        exclude_axes: Names = (),
        as_published: bool = False,
        output: PathLike | None = None,
        perplexities: PathLike | None = None,
        seed: int = 0,
        executor: str = LOCAL,
        processes: int | None = None,
        **opening: Unpack[ScorerOptions],
    ) -> "ApxFlags":
        """Find the descriptors that a model ties to groups of names, by APX, and write them to the
        graph as FLAGGED edges. A group that a run has by the same name is the same node. The
        scores of the sentences are kept: those that the store holds, from here or from `benchmark`,
        are not computed again.

        Args:
            model: a spec, or a model that `kgbias.open_scorer` opened.
            names: names and groups, as for `kgbias.probe_apx`.
            descriptors: descriptors, as there.
            exclude_axes: descriptors of these axes are measured but not tested.
            as_published: round as the paper's code does.
            output: a CSV file for the table of APX.
            perplexities: a .jsonl file or a .parquet folder for every sentence.
            seed: of the bootstrap.
            executor: where the model reads, as for `Run.probe`.
            processes: how many processes of this machine read, as for `Run.probe`.
            opening: how a spec is opened: `begin`, `device`, `dtype`, `instruction`, `base_url`
                (see `kgbias.open_scorer`).
        """
        from kgbias.probe import probe_apx

        with (
            self.working() as progress,
            opened_executor(executor, progress, processes) as workers,
        ):
            return probe_apx(
                spread_scorer(model, opening, progress, workers),
                names,
                descriptors,
                exclude_axes=as_names(exclude_axes),
                as_published=as_published,
                output=None if output is None else Path(output),
                perplexities=None if perplexities is None else Path(perplexities),
                store=self._context.writable(),
                seed=seed,
                progress=progress,
            )

    def flag_apx(self, path: PathLike, *, exclude_axes: Names = ()) -> "ApxFlags":
        """Write the flags of a table of APX from elsewhere to the graph (see `kgbias.flag_apx`).

        Args:
            path: the table, a CSV file; its edges are named by it.
            exclude_axes: descriptors of these axes are not tested.
        """
        from kgbias.probe import flag_apx

        found = flag_apx(Path(path), exclude_axes=as_names(exclude_axes))
        self._context.writable().save_flags(found.edges)
        return found

    def flags(self) -> Rows[tuple[Flagged, Flag]]:
        """The flags of APX in the store, by model and group, the most strongly tied first."""
        return Rows(
            ((table, flag) for table in self._context.graph.flags() for flag in table.flags),
            _row,
            COLUMNS,
        )


def _row(pair: tuple[Flagged, Flag]) -> Mapping[str, Any]:
    table, flag = pair
    return {
        "model": table.model,
        "group": flag.group,
        "descriptor": flag.descriptor,
        "axis": flag.axis,
        "bias_score": flag.bias_score,
        "z": flag.z,
        "level": table.level,
        "groups": table.groups,
    }
