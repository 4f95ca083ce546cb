"""What is computed from a run's statements."""

import math
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.errors import ModelError, UsageError
from kgbias.graph.selection import Counted, Leaving, Selecting, Selection, of_one_arm, select
from kgbias.graph.types import NodePlace
from kgbias.measure.configure import MeasureCall, configure
from kgbias.parallel import opened_executor
from kgbias.parameters import Names, as_names
from kgbias.study import records
from kgbias.study.rows import Rows
from kgbias.study.scorers import measuring_scorers
from kgbias.study.topics import Topics

if TYPE_CHECKING:
    from kgbias.compare import Comparison, GroupTest
    from kgbias.crawl.merge import Merged
    from kgbias.measure.figures import FormMean
    from kgbias.measure.price import Scoring
    from kgbias.stats.variance import Components
    from kgbias.study.run import Run


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
            options: the `scorers` by measure, `axes`, `topics` and how they are found, `embedding`
                and `device`, as `kgbias.measure.configure.MeasureConfig` describes them; and which
                statements the topics and the returned figures are of, as in `counted`.
        """
        from kgbias.measure.scorers import require_english
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
                by = " and ".join(f"{m} by {s}" for m, s in config.scorers.items() if s)
                raise ModelError(
                    f"{error}: {preset} scores {by}; fetch them where there is a network, or name "
                    "other scorers beside the preset (`scorers`)"
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
        """Test whether groups differ in the statements that count (`counted`): all groups of a
        category together (`omnibus_p`), then each against the others, or, with `pairs`, every pair.
        Differences are of means at one mix of prompts, tested by permutation of whole prompts, two-
        sided; p-values are corrected ("holm" or "bh") over each family, one measure in one category
        of one arm (docs/methods/statistics.md).

        Args:
            pairs: every pair of groups.
            groups: only these: one is held against the rest of its category, several against each
                other. What is not asked is no part of a family.
            measures: only these.
            correction: "holm" or "bh".
            selection: as for `counted`.
        """
        from kgbias.compare import group_tests
        from kgbias.compare.families import tested
        from kgbias.graph.between import between, too_dear
        from kgbias.graph.draws import Draws

        run, dear = self.stored, too_dear(self.stored.metrics())
        counted = between(run, select(run, Selection(**selection)))
        asked = self._measured(counted, measures) or tested(counted.triples)
        note = f"groups against each other: {counted.note}" if counted.note else ""
        for line in (note, *counted.remarks, *(dear[m] for m in asked if m in dear)):
            self._study._remark(line)
        with self._study.working() as progress:
            found = group_tests(
                self._record,
                counted.triples,
                against="pairs" if pairs else "rest",
                correction=correction,
                measures=[measure for measure in asked if measure not in dear],
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

    def forms(self, *, measures: Names = (), **selection: Unpack[Selecting]) -> Rows["FormMean"]:
        """The means of groups by what their prompts supplied: where the model chose the predicate,
        where the prompt gave this initial one, or another (docs/methods/measure.md).

        Frame columns: measure, category, group, arm, form, n, value, low, high. Empty for an
        import, which does not say how its statements came about.
        """
        from kgbias.measure.figures import means_by_form

        columns = ("measure", "category", "group", "arm", "form", "n", "value", "low", "high")
        found = means_by_form(self.stored, Selection(**selection), as_names(measures))
        return Rows(found, lambda m: {name: getattr(m, name) for name in columns}, columns)

    def variance(self, **selection: Unpack[Selecting]) -> Rows["Components"]:
        """How much of a measure's variance lies between groups, between the wordings of their
        prompts, between the crawls that repeat each other (`Study.series`; those of the store that
        are measured), and between the statements of one group, wording and crawl. What a wording
        or a crawl moves all groups by is told from what it moves one by beyond that. One row for
        each measure, category and arm (`kgbias.stats.variance.Components`), of the statements that
        count.

        Frame columns: measure, category, arm, n; groups, wordings, groups_by_wordings, recrawls,
        groups_by_recrawls (variances, each with its 95% interval in _low and _high; NaN where there
        is one unit); within; and verdict: what is larger, in words, where the interval of the
        difference leaves out 0.
        """
        from kgbias.compare.spread import variance_table

        series = self._study.series(self.name)
        runs = [run.stored for run in series if run.status == "complete" or run.id == self.id]
        parts = ("groups", "wordings", "groups_by_wordings", "recrawls", "groups_by_recrawls")
        ends = [f"{name}{end}" for name in parts for end in ("", "_low", "_high")]
        columns = ("measure", "category", "arm", "n", *ends, "within", "verdict")
        found = variance_table(runs, Selection(**selection))
        return Rows(found, lambda c: c.as_dict(), columns)

    def compare(
        self,
        other: "str | Run",
        *,
        examples: int = 5,
        groups: Names = (),
        measures: Names = (),
        **selection: Unpack[Selecting],
    ) -> "Comparison":
        """Compare with another run of the study, by the statements that count (`counted`): what one
        says and the other does not, and whether they rank the groups alike. How the groups differ
        is tested by `Study.contrast`.

        `examples` is how many statements are named that one run alone has; `groups` and `measures`
        limit the ranks; `arm` chooses in runs of several arms.
        """
        from kgbias.compare import compare_runs

        against = self._study.run(other) if isinstance(other, str) else other
        with self._study.working() as progress:
            (found,) = compare_runs(
                [self.stored, against.stored],
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
        "arm", "measure", "category", "first", "second", "n_first", "n_second", "mean_first",
        "mean_second", "difference", "low", "high", "p", "p_adjusted", "omnibus_p", "chosen", "raw",
        "shrunken", "detectable", "verdict",
    )  # fmt: skip

    def record(t: "GroupTest") -> dict[str, Any]:
        d = t.difference
        forms = [t.forms[name].value if name in t.forms else math.nan for name in ("chosen", "raw")]
        return dict(
            zip(
                columns,
                (
                    t.arm, t.measure, t.category, t.first, t.second, *t.n, *t.means, d.value, d.low,
                    d.high, t.p, t.p_adjusted, t.omnibus_p, *forms, t.shrunken.value, t.detectable,
                    t.verdict,
                ),
                strict=True,
            )
        )  # fmt: skip

    return Rows(tests, record, columns)
