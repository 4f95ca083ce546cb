"""What a model's probabilities and vectors say of a run's statements."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from kgbias.parallel import LOCAL, opened_executor
from kgbias.parameters import Names, as_names
from kgbias.study.context import PathLike
from kgbias.study.scorers import OPENING, ScorerOptions, each_scorer, listed, outputs, spread_scorer
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.associate import Associations
    from kgbias.compare.sofa import SofaComparison
    from kgbias.models.score.base import TextScorer
    from kgbias.models.score.spread import Scoring
    from kgbias.probe import RunProbes


class Probing(RunView):
    """What a model's probabilities and vectors say of a run's statements; a part of `Run`."""

    def probe(
        self,
        model: "str | Scoring",
        *,
        category: Names = (),
        by: Literal["conditional", "sofa", "whole"] | None = None,
        ending: str = "",
        as_published: bool = False,
        output: PathLike | None = None,
        seed: int = 0,
        executor: str = LOCAL,
        processes: int | None = None,
        **opening: Unpack[ScorerOptions],
    ) -> "RunProbes":
        """Ask a model which group makes each statement most likely, and write the answers on the
        edges of the graph; what was said is then compared with what is probable. Lower perplexity
        is more likely. What the store already holds is not computed again.

        Args:
            model: a spec, or a model that `kgbias.open_scorer` opened.
            category: only these categories (default: all).
            by: what ranks the groups: the statement's perplexity after the group ("conditional"),
                SoFa's PPL* ("sofa"), or the perplexity of the whole probe ("whole"); None:
                conditional, for a masked model whole.
            ending: what is appended to each probe, for example ".".
            as_published: compute as the code of the papers did, slips included.
            output: also write every probe: a .jsonl file or a .parquet folder.
            seed: the random seed of the intervals and permutations.
            executor: where the model reads: "local", "ray" (a Ray on this machine) or
                "ray://ADDRESS" (a cluster), whose workers open the model of a spec each, with as
                many threads as this process has; the figures are the same on the same kind of
                device (see `kgbias.parallel`).
            processes: how many processes of this machine read, each with the model (None: this one
                alone); they share its threads.
            opening: how a spec is opened: `begin`, `device`, `dtype`, `instruction`, `base_url`
                (see `kgbias.open_scorer`).
        """
        from kgbias.probe import probe_run

        with (
            self._context.working() as progress,
            opened_executor(executor, progress, processes) as workers,
        ):
            return probe_run(
                self.stored,
                spread_scorer(model, opening, progress, workers),
                measure=by,
                ending=ending,
                categories=as_names(category),
                as_published=as_published,
                output=None if output is None else Path(output),
                seed=seed,
                progress=progress,
            )

    def probe_models(
        self,
        models: "str | TextScorer | Sequence[str | TextScorer]",
        *,
        output: PathLike | None = None,
        executor: str = LOCAL,
        processes: int | None = None,
        **options: Any,
    ) -> "list[RunProbes]":
        """`probe` with several models, one after another: each is loaded once, and forgotten before
        the next. The same call continues where it was stopped. `sofa` holds them against each
        other.

        Args:
            models: specs, or models that `kgbias.open_scorer` opened.
            output: also write every probe. Of several models, each has a file or folder of its own,
                whose name ends in the model's.
            executor: where the models read, as for `probe`.
            processes: how many processes of this machine read, as for `probe`.
            options: those of `probe`.
        """
        named = listed(models)
        opening: Any = {k: options.pop(k) for k in OPENING if k in options}
        files = outputs(output, named)
        with (
            self._context.working() as progress,
            opened_executor(executor, progress, processes) as workers,
        ):
            return [
                self.probe(scorer, output=files[n], **options)
                for n, scorer in each_scorer(named, opening, progress, workers)
            ]

    def sofa(self, probe_set: str | None = None, **options: Any) -> "SofaComparison":
        """The models that `probe` asked, by SoFa: ranks, paired tests, scores by category.

        Args:
            probe_set: the name of a set of probes or the beginning of its id (None: of those that
                the run was probed with, the one that most models were asked about).
            options: `correction` and `seed` of `kgbias.compare.sofa.compare_sofa`.

        Raises UsageError where the run was not probed.
        """
        from kgbias.compare.sofa import stored_sofa

        return stored_sofa(self.stored.store, self.stored.sofa(), probe_set, **options)

    def associate(
        self, models: Names = (), tests: Names = (), methods: Names = (), **options: Any
    ) -> "Associations":
        """Run association tests (WEAT, s-SEAT, w-SEAT, CEAT, LPBS) and tie them to the run.

        Args:
            models: specs of the models to test.
            tests: published tests by name, such as "weat6" or "C6".
            methods: by which methods (default: w-seat, for `vectors` weat).
            options: those of `kgbias.associate.associate`, among them `vectors` (a file of word
                vectors), `groups` (two groups of the run, or "all" pairs), `every_group`,
                `attributes` (what groups are tested against), `topics` (two topics instead),
                `indicators` (a file of words that stand for groups).
        """
        from kgbias.associate import associate

        with self._context.working() as progress:
            return associate(
                as_names(tests),
                as_names(methods),
                models=as_names(models),
                run=self.stored,
                progress=progress,
                **options,
            )
