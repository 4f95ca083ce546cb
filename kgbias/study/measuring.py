"""What is computed from a run's statements."""

from typing import TYPE_CHECKING, Any, Unpack

from kgbias.errors import ModelError, UsageError
from kgbias.graph.selection import Counted, Leaving, Selecting, Selection, of_one_arm, select
from kgbias.graph.types import NodePlace
from kgbias.measure.configure import MeasureCall, configure
from kgbias.names import Names, as_names
from kgbias.parallel import opened_executor
from kgbias.study import records
from kgbias.study.rows import Rows
from kgbias.study.scorers import measuring_scorers
from kgbias.study.topics import Topics

if TYPE_CHECKING:
    from kgbias.compare import Comparison, GroupTest
    from kgbias.crawl.merge import Merged
    from kgbias.measure.price import Scoring
    from kgbias.study.run import Run
    from kgbias.variance import Components


class Measuring(Topics):
    """What is computed from a run's statements; a part of `Run`."""

    def measure(
        self, *, preset: str | None = None, **options: Unpack[MeasureCall]
    ) -> Rows[records.GroupRow]:
        """Score every triple and compute the figures of each group; returns `groups()`.

        The store keeps the figures of the statements that count by default, arm by arm. Topics are
        found in the statements of all arms that the selection keeps.

        What has a score by the same version of the same scorer is not scored again, so this may be
        stopped and repeated. A run in another language is refused by scorers that read English
        only, and by topics.

        Args:
            preset: "salinas-2023" sets everything as in that paper; what is given beside it wins.
            options: the scorers (`regard`, `toxicity`, `identity_attack`, `acceptability`), `axes`,
                `topics` and how they are found, `embedding` and `device`, as
                `kgbias.measure.configure.MeasureConfig` describes them; and which statements the
                topics and the returned figures are of, as in `counted`.
        """
        from kgbias.measure.language import require_english
        from kgbias.measure.scoring import measure as measure_run
        from kgbias.measure.topics import measure_topics, unfit, verdict

        run = self.stored
        config, selection, said = configure(preset, **options)
        if config.topics:
            require_english(run, "the lemmas and stop words of `topics`")
        with self._study.working() as progress:
            self._study._remark(said)
            try:
                scorers = measuring_scorers(
                    run, config.wanted, progress, device=config.device, labels=config.labels
                )
            except ModelError as error:
                if preset is None:
                    raise
                raise ModelError(
                    f"{error}: {preset} scores regard by {config.regard} and toxicity by "
                    f"{config.toxicity}; fetch them where there is a network, or name other "
                    "scorers beside the preset (`regard`, `toxicity`)"
                ) from error
            with opened_executor(config.executor, progress) as executor:
                counted = measure_run(
                    run, scorers, progress, processes=config.processes, executor=executor
                )
            if config.topics:
                models = measure_topics(
                    run,
                    config.topic_settings,
                    progress,
                    device=_device(config.embedding, config.device),
                    selection=Selection(**selection),
                )
                for model in models:
                    if unfit(model):
                        progress.note(f"{model.category}: {verdict(model)}")
        return self._groups(selection, counted if Selection(**selection) == Selection() else None)

    def price_measure(
        self, *, preset: str | None = None, **options: Unpack[MeasureCall]
    ) -> Rows["Scoring"]:
        """What `measure` with these parameters would take: the statements that each scorer reads,
        and the requests to models and servers. Opens and asks nothing. Topics have a row: the
        statements that are embedded, those that count by the scores of now."""
        from kgbias.measure.price import Scoring, price

        config, selection, _ = configure(preset, **options)
        found = price(self.stored, config.wanted)
        if config.topics:
            kept = select(self.stored, Selection(**selection)).triples
            found.append(Scoring("topics", config.embedding, len({t.id for t in kept})))
        return Rows(found, columns=Scoring.__dataclass_fields__)

    def structure(self, *, seed: int = 0, **selection: Unpack[Selecting]) -> Rows[NodePlace]:
        """Find central groups and objects, communities, and the objects that bridge groups, in the
        statements of one arm that count (`counted`), and write them to the graph. `seed` is that of
        the search for communities."""
        from kgbias.graph.structure import structure

        counted = of_one_arm(self.stored, self._said(Selection(**selection)))
        with self._study.working() as progress:
            places = structure(counted.triples, seed=seed, progress=progress)
        self.stored.save_places(places)
        return Rows(places, columns=NodePlace.__dataclass_fields__)

    def merge(
        self,
        *,
        threshold: float = 0.9,
        encoder: str = "minilm",
        undo: bool = False,
        device: str = "auto",
    ) -> "Merged":
        """Link objects and predicates that say the same in other words (near-duplicates).

        Nothing is merged: triples stay as they were said. `triples(merged=True)` and
        `export(merged=True)` count linked ones as one, and `undo` removes the links.

        Args:
            threshold: the cosine similarity, above 0 and at most 1, from which texts are linked.
            encoder: the model that embeds the texts.
            undo: remove the links.
            device: where the encoder runs, as for `measure`.
        """
        from kgbias.crawl.merge import merge_run

        return merge_run(
            self.stored, threshold=threshold, encoder=encoder, undo=undo, device=device
        )

    def tests(
        self,
        *,
        pairs: bool = False,
        groups: Names = (),
        measures: Names = (),
        correction: str = "holm",
        **selection: Unpack[Selecting],
    ) -> Rows["GroupTest"]:
        """Test whether groups differ in the statements that count (`counted`): each against the
        others of its category, or, with `pairs`, every pair. Two-sample Kolmogorov-Smirnov and
        Mann-Whitney, two-sided, by the prompts and rounds of a crawl; p-values are corrected
        ("holm" or "bh") over each family, one measure in one category of one arm.

        Args:
            pairs: every pair of groups.
            groups: only these: one is held against the rest of its category, several against each
                other. What is not asked is no part of a family.
            measures: only these.
            correction: "holm" or "bh".
            selection: as for `counted`.
        """
        from kgbias.compare import group_tests
        from kgbias.graph.draws import Draws

        run, counted = self.stored, self._said(Selection(**selection))
        with self._study.working() as progress:
            found = group_tests(
                self._record,
                counted.triples,
                against="pairs" if pairs else "rest",
                correction=correction,
                measures=self._measured(counted, measures),
                groups=[run.group(name).name for name in as_names(groups)] or None,
                draws=Draws.of(run, counted),
                progress=progress,
            )
        return _test_rows(found)

    def _measured(self, counted: Counted, measures: Names) -> list[str] | None:
        """The measures that were named, which the run must have; None for all."""
        from kgbias.compare.families import tested

        there = tested(counted.triples)
        if unknown := [m for m in as_names(measures) if m not in there]:
            known = f"there is {', '.join(there)}" if there else "measure it first"
            raise UsageError(f"run {self.name!r} has no measure {unknown[0]!r}; {known}")
        return list(as_names(measures)) or None

    def arm_tests(
        self, *, measures: Names = (), correction: str = "holm", **leaving: Unpack[Leaving]
    ) -> Rows["GroupTest"]:
        """Test whether the augmentation arms of the run differ (Salinas et al. 2023, section 6.1);
        as `tests`."""
        from kgbias.compare import arm_tests
        from kgbias.graph.draws import Draws

        category = {g.id: g.category for g in self._record.groups}
        counted = self._said(Selection(**leaving))
        return _test_rows(
            arm_tests(
                counted.triples,
                correction=correction,
                measures=self._measured(counted, measures),
                categories=category,
                draws=Draws.of(self.stored, counted),
            )
        )

    def variance(self, **selection: Unpack[Selecting]) -> Rows["Components"]:
        """How much of a measure's variance lies between groups, between the wordings of a group's
        prompts, between the crawls that repeat each other (`Study.series`; those of the store that
        are measured), and between the statements of one group, wording and crawl. One row for each
        measure, category and arm (`kgbias.variance.Components`), of the statements that count.

        Frame columns: measure, category, arm, n, groups, wordings, recrawls, within (variances;
        NaN where there is one unit), and verdict: the same in words.
        """
        from kgbias.compare.spread import variance_table

        series = self._study.series(self.name)
        runs = [run.stored for run in series if run.status == "complete" or run.id == self.id]
        columns = (
            "measure", "category", "arm", "n", "groups", "wordings", "recrawls", "within",
            "verdict",
        )  # fmt: skip
        found = variance_table(runs, Selection(**selection))
        return Rows(found, lambda c: {name: getattr(c, name) for name in columns}, columns)

    def compare(
        self,
        other: "str | Run",
        *,
        correction: str = "holm",
        examples: int = 5,
        groups: Names = (),
        measures: Names = (),
        **selection: Unpack[Selecting],
    ) -> "Comparison":
        """Compare with another run of the study, by the statements that count (`counted`): what one
        says and the other does not, how their groups differ (this run minus the other), and whether
        they rank the groups alike.

        `examples` is how many statements are named that one run alone has; `groups` and `measures`
        limit the tests; `arm` chooses in runs of several arms.
        """
        from kgbias.compare import compare_runs

        against = self._study.run(other) if isinstance(other, str) else other
        with self._study.working() as progress:
            (found,) = compare_runs(
                [self.stored, against.stored],
                correction=correction,
                examples=examples,
                groups=as_names(groups),
                measures=as_names(measures),
                selection=Selection(**selection),
                progress=progress,
            )
        return found


def _device(spec: str, device: str) -> str:
    """Where the model of a spec runs; vectors and scores from files run nowhere."""
    return "auto" if spec.startswith(("vectors:", "scores:")) else device


def _test_rows(tests: "list[GroupTest]") -> Rows["GroupTest"]:
    columns = (
        "arm", "measure", "category", "first", "second", "n_first", "n_second", "difference", "low",
        "high", "delta", "u_p", "u_p_adjusted", "ks", "ks_p", "ks_p_adjusted",
    )  # fmt: skip

    def record(t: "GroupTest") -> dict[str, Any]:
        r = t.result
        return dict(
            zip(
                columns,
                (
                    t.arm, t.measure, t.category, t.first, t.second, *r.n, r.difference.value,
                    r.difference.low, r.difference.high, r.delta, r.u_p, t.u_adjusted, r.ks, r.ks_p,
                    t.ks_adjusted,
                ),
                strict=True,
            )
        )  # fmt: skip

    return Rows(tests, record, columns)
