"""Said, believed, embedded: the joint view of a run's statements."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.errors import UsageError
from kgbias.estimate import Estimate
from kgbias.graph.selection import Selecting, Selection
from kgbias.parameters import DoesNotApply
from kgbias.study.rows import Rows
from kgbias.study.scorers import opened_scorer
from kgbias.study.view import PathLike, RunView

if TYPE_CHECKING:
    from kgbias.evidence import Evidence, GroupAgreement, Joint

_ESTIMATES = ("share", "lift", "association", "refused", "chosen", "chosen_lift")


class Evidencing(RunView):
    """The joint view of a run's statements; a part of `Run`."""

    def evidence(
        self,
        model: str | None = None,
        *,
        encoder: str | None = None,
        indicators: PathLike | None = None,
        rank: int = 1,
        margin: float = 1.0,
        level: float = 0.05,
        device: str | None = None,
        base_url: str | None = None,
        **selection: Unpack[Selecting],
    ) -> Rows["Evidence"]:
        """What was said, what a model finds probable and what its vectors hold, in one row for each
        triple that counts, with a verdict: "said and believed", "only said", "believed but never
        said" or "refused but believed". Statements of the last two are those of other groups. Where
        a model was made to choose (`choose`), its choices are columns of their own.

        Reads what the store holds. With `model`, the run is first probed with it, and put into its
        vectors; what the store holds already is not computed again.

        Args:
            model: the spec of the model whose probabilities count. None: of those that the run was
                probed with, the one that it was crawled from, or else the first.
            encoder: the spec of the model whose vectors count, or vectors:FILE. None: the `model`.
            indicators: a file of words that stand for groups in the vectors, on top of those that
                are shipped (docs/how-to/word-sets.md).
            rank: a group's rank among all groups for a statement to be believed of it, at most.
            margin: by how many bits a statement must be likelier of the group than of the others.
            level: its corrected p-value, at most.
            device: where models run: auto, cpu, cuda, cuda:N or mps.
            base_url: the server of a model openai:ID.
            selection: which statements count, as in `counted`.
        """
        found = self._joint(
            model, encoder=encoder, indicators=indicators, rank=rank, margin=margin, level=level,
            device=device, base_url=base_url, **selection,
        )  # fmt: skip
        for line in (*found.missing, found.note):
            self._study._remark(line)
        return Rows(found.rows, _evidence_record, _EVIDENCE)

    def evidence_agreement(self, **selection: Unpack[Selecting]) -> Rows["GroupAgreement"]:
        """For each group, how far what is said, believed and embedded put the statements in the
        same order: Kendall's tau-b with 95% intervals, from what `evidence` stored."""
        from kgbias.evidence import joint

        found = joint(self.stored, Selection(**selection))
        return Rows(found.agreement, _agreement_record, _AGREEMENT)

    def _joint(
        self,
        model: str | None = None,
        *,
        encoder: str | None = None,
        indicators: PathLike | None = None,
        rank: int = 1,
        margin: float = 1.0,
        level: float = 0.05,
        device: str | None = None,
        base_url: str | None = None,
        **selection: Unpack[Selecting],
    ) -> "Joint":
        from kgbias.associate.indicators import read_indicators
        from kgbias.evidence import embed_run, joint
        from kgbias.models.spec import loads
        from kgbias.probe import probe_run

        run = self.stored
        if device and not (model or encoder):
            raise DoesNotApply("device", ("model", "encoder"))
        if indicators and not (model or encoder):
            raise DoesNotApply("indicators", ("model", "encoder"))
        if base_url and not model:
            raise DoesNotApply("base_url", ("model",))
        if rank < 1:
            raise UsageError("`rank` must be at least 1")
        if not (math.isfinite(margin) and margin >= 0):
            raise UsageError("`margin` must be a number of bits, at least 0")
        if not 0 < level <= 1:
            raise UsageError("`level` must lie between 0 and 1")
        declared = read_indicators(Path(indicators)) if indicators else None
        name = None
        with self._study.working() as progress:
            if model:
                scorer = opened_scorer(model, {"device": device, "base_url": base_url}, progress)
                name = scorer.info.name
                probe_run(run, scorer, progress=progress)
            counts = Selection(**selection)
            found = joint(run, counts, model=name, rank=rank, margin=margin, level=level)
            vectors = encoder or (model if model and loads(model) else None)
            if vectors:
                if found.probing is None:
                    raise UsageError(
                        f"run {self.name!r} was not probed: name the `model` to probe it with"
                    )
                embed_run(
                    run, found.probing, vectors, indicators=declared, device=device or "auto",
                    progress=progress,
                )  # fmt: skip
                found = joint(run, counts, model=name, rank=rank, margin=margin, level=level)
        self._study._remark(found.counted.note)
        return found


_EVIDENCE = (
    "group", "predicate", "object", "verdict", "count", "share", "share_low", "share_high", "arm",
    "arms", "acceptability", "regard", "regard_label", "toxicity", "rank", "of", "surprisal",
    "lift", "lift_low", "lift_high", "p_value", "association", "association_low",
    "association_high", "association_p", "refused", "refused_low", "refused_high", "chosen",
    "chosen_low", "chosen_high", "chosen_lift", "chosen_lift_low", "chosen_lift_high", "chosen_p",
    "category", "model", "vectors", "stands", "chooser", "id",
)  # fmt: skip
_TAUS = ("said_believed", "said_embedded", "believed_embedded")
_AGREEMENT = (
    "category", "group", "arm", *(f"{t}{end}" for t in _TAUS for end in ("", "_low", "_high")), "n"
)  # fmt: skip


def _evidence_record(row: "Evidence") -> dict[str, Any]:
    cells = {name: getattr(row, name) for name in row.__dataclass_fields__}
    for name in _ESTIMATES:
        cells |= _spread(name, cells[name])
    return cells


def _agreement_record(row: "GroupAgreement") -> dict[str, Any]:
    cells: dict[str, Any] = {name: getattr(row, name) for name in ("category", "group", "arm")}
    for name in _TAUS:
        cells |= _spread(name, getattr(row, name))
    return cells | {"n": row.said_believed.n}


def _spread(name: str, e: Estimate) -> dict[str, float]:
    return {name: e.value, f"{name}_low": e.low, f"{name}_high": e.high}
