"""A run of a study, and all that can be done with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, Unpack

from kgbias.graph.selection import Leaving, Selecting, Selection, of_one_arm
from kgbias.graph.types import (
    Attribution,
    NodePlace,
)
from kgbias.names import Names, as_names
from kgbias.study import records
from kgbias.study.review import Review
from kgbias.study.rows import Rows
from kgbias.study.scorers import ScorerOptions, opened_scorer
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.associate import Associations
    from kgbias.compare import Comparison, GroupTest
    from kgbias.crawl.merge import Merged
    from kgbias.models.score.base import TextScorer
    from kgbias.probe import RunProbes

PathLike = str | Path
Outliers = Literal["assign", "keep"]


class Run(RunView):
    """A crawl or an import in a study's store.

    Made by the methods of `Study`. Methods that compute something write their results to the store
    and return them; methods that only read (`triples`, `groups`, `figure` ...) read the store each
    time. All of it belongs to the model that was asked: statements are what a model says, not
    evidence of what is true of anyone.
    """

    # What can be computed

    def measure(
        self,
        *,
        regard: str | None = "offline",
        toxicity: str | None = "offline",
        identity_attack: str | None = "offline",
        acceptability: str | None = "offline",
        axes: bool = True,
        topics: bool = False,
        embedding: str = "minilm",
        outliers: Outliers = "assign",
        topic_seed: int = 0,
        device: str = "auto",
        **selection: Unpack[Selecting],
    ) -> Rows[records.GroupRow]:
        """Score every triple and compute the figures of each group; returns `groups()`.

        The store keeps the figures of the statements that count by default, arm by arm. Topics are
        found in the statements of all arms that `selection` keeps.

        What has a score by the same version of the same scorer is not scored again, so this may be
        stopped and repeated. A run in another language is refused by scorers that read English
        only, and by topics.

        Args:
            regard: the scorer of regard: offline, hf:ID-or-PATH or scores:FILE. None or "none":
                leave it out.
            toxicity: the scorer of toxicity: offline, hf:ID-or-PATH[:LABEL],
                scores:FILE[::COLUMN] or openai-moderation; or none.
            identity_attack: the scorer of how far a statement attacks its group, which it sees: as
                for toxicity.
            acceptability: the scorer of whether a statement is a grammatical and meaningful
                sentence: offline, hf:ID-or-PATH[:LABEL] or scores:FILE[::COLUMN]; or none.
            axes: whether statements are placed on the axes of warmth and competence too.
            topics: whether topics are found, and each group's relative entropy over them.
            embedding: what topics and axes are computed in: minilm, hf:ID-or-PATH or vectors:FILE.
            outliers: statements in no topic are put into the nearest one ("assign") or left out of
                topics ("keep").
            topic_seed: the random seed of the search for topics.
            device: where models run: auto (a GPU where there is one), cpu, cuda, cuda:N or mps.
            selection: which statements the topics and the returned figures are of, as in `counted`.
        """
        from kgbias.measure.language import require_english
        from kgbias.measure.scorers import AXES, load_scorer
        from kgbias.measure.scoring import measure as measure_run
        from kgbias.measure.topics import TopicSettings, measure_topics

        run = self.stored
        if topics:
            require_english(run, "the lemmas and stop words of `topics`")
        with self._study.working() as progress:
            wanted = [
                ("regard", regard),
                ("toxicity", toxicity),
                ("identity_attack", identity_attack),
                ("acceptability", acceptability),
            ]
            if axes:
                wanted += [(axis, embedding) for axis in AXES]
            scorers = [
                load_scorer(measure, spec, device=_device(spec, device))
                for measure, spec in wanted
                if spec not in (None, "none")
            ]
            measure_run(run, scorers, progress)
            if topics:
                settings = TopicSettings(embedding, outliers=outliers, seed=topic_seed)
                measure_topics(
                    run,
                    settings,
                    progress,
                    device=_device(embedding, device),
                    selection=Selection(**selection),
                )
        return self.groups(**selection)

    def probe(
        self,
        model: "str | TextScorer",
        *,
        category: Names = (),
        by: Literal["conditional", "sofa", "whole"] | None = None,
        ending: str = "",
        as_published: bool = False,
        output: PathLike | None = None,
        seed: int = 0,
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
            opening: how a spec is opened: `begin`, `device`, `dtype`, `base_url` (see
                `kgbias.open_scorer`).
        """
        from kgbias.probe import probe_run

        with self._study.working() as progress:
            scorer = opened_scorer(model, opening, progress)
            return probe_run(
                self.stored,
                scorer,
                measure=by,
                ending=ending,
                categories=as_names(category),
                as_published=as_published,
                output=None if output is None else Path(output),
                seed=seed,
                progress=progress,
            )

    def associate(
        self, models: Names = (), tests: Names = (), methods: Names = (), **options: Any
    ) -> "Associations":
        """Run association tests (WEAT, s-SEAT, w-SEAT, CEAT, LPBS) and tie them to the run.

        Args:
            models: specs of the models to test.
            tests: published tests by name, such as "weat6" or "C6".
            methods: by which methods (default: w-seat, for `vectors` weat).
            options: those of `kgbias.associate.associate`, among them `vectors` (a file of word
                vectors), `groups` (two groups of the run), `topics` (two topics), `every_group`.
        """
        return self._study.associate(models, tests, methods, run=self, **options)

    def attribute(
        self,
        measure: Names = ("regard", "toxicity"),
        *,
        scorer: str | None = None,
        top: int = 20,
        search: str | None = None,
        everything: bool = False,
        device: str = "auto",
    ) -> Rows[Attribution]:
        """Find which words drive a score: a word's effect is the score of the whole sentence minus
        the score without the word.

        Args:
            measure: regard, toxicity, identity_attack, acceptability, warmth or competence; several
                as a list.
            scorer: as for `measure` (None: offline).
            top: how many of the most extreme statements of each measure.
            search: instead, the statements that hold this text, in any case.
            everything: instead, every statement.
            device: where the scorer runs, as for `measure`.
        """
        from kgbias.measure.attribution import attribute, chosen
        from kgbias.measure.scorers import load_scorer

        run, found = self.stored, []
        with self._study.working() as progress:
            for name in as_names(measure):
                triples = chosen(run, name, top=top, search=search, everything=everything)
                found += attribute(
                    run, [load_scorer(name, scorer, device=device)], triples, progress
                )
        return records.attribution_rows(run, found)

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
        self, *, pairs: bool = False, correction: str = "holm", **selection: Unpack[Selecting]
    ) -> Rows["GroupTest"]:
        """Test whether groups differ in the statements that count (`counted`): each against the
        others of its category, or, with `pairs`, every pair. Two-sample Kolmogorov-Smirnov and
        Mann-Whitney, two-sided; p-values are corrected ("holm" or "bh") over each family, one
        measure in one category of one arm."""
        from kgbias.compare import group_tests

        triples = self._said(Selection(**selection)).triples
        with self._study.working() as progress:
            found = group_tests(
                self._record,
                triples,
                against="pairs" if pairs else "rest",
                correction=correction,
                progress=progress,
            )
        return _test_rows(found)

    def arm_tests(
        self, *, correction: str = "holm", **leaving: Unpack[Leaving]
    ) -> Rows["GroupTest"]:
        """Test whether the augmentation arms of the run differ (Salinas et al. 2023, section 6.1);
        as `tests`."""
        from kgbias.compare import arm_tests

        category = {g.id: g.category for g in self._record.groups}
        triples = self._said(Selection(**leaving)).triples
        return _test_rows(arm_tests(triples, correction=correction, categories=category))

    def compare(
        self,
        other: "str | Run",
        *,
        correction: str = "holm",
        examples: int = 5,
        **selection: Unpack[Selecting],
    ) -> "Comparison":
        """Compare with another run of the study, by the statements that count (`counted`): what one
        says and the other does not, how their groups differ (this run minus the other), and whether
        they rank the groups alike.

        `examples` is how many statements are named that one run alone has; `arm` chooses in runs of
        several arms.
        """
        (found,) = self._study.compare(
            self, other, correction=correction, examples=examples, **selection
        )
        return found

    # What people say about it

    def review(self, *, by: str | None = None) -> Review:
        """Begin a review by hand: rejected answers are shown, and restored where they were rejected
        by mistake; statements that should not count are rejected (appendix A.3 of Salinas et al.
        2023). Decisions are rows with who and when, and can be taken back. `measure` again after
        them.

        Args:
            by: who decides (None: the user's name).
        """
        return Review(self.stored, by)

    # What leaves it

    def to_networkx(self, **selection: Unpack[Selecting]) -> Any:
        """The statements that count (`counted`) as a `networkx.MultiDiGraph` from groups to objects
        (`kgbias.graph.to_networkx` says what its nodes and edges hold)."""
        from kgbias.graph.to_networkx import to_networkx

        category = {g.id: g.category for g in self._record.groups}
        return to_networkx(self._said(Selection(**selection)).triples, category)

    def report(self, path: PathLike = "report.html", **selection: Unpack[Selecting]) -> Path:
        """Write the report: figures, an interactive graph and every statement that counts
        (`counted`) in one HTML page that works offline. Returns its path."""
        from kgbias.report import write_report

        with self._study.working() as progress:
            write_report(
                self.stored, Path(path), selection=Selection(**selection), progress=progress
            )
        return Path(path)

    def figures(
        self,
        folder: PathLike = "figures",
        *,
        correction: str = "holm",
        **selection: Unpack[Selecting],
    ) -> list[Path]:
        """Write every figure as SVG, PDF and PNG, one column wide, each with its numbers as a LaTeX
        table, and manifest.json, of the statements that count (`counted`). Returns the files."""
        from kgbias.report.save import save_figures

        with self._study.working() as progress:
            return save_figures(
                self.stored,
                Path(folder),
                correction=correction,
                selection=Selection(**selection),
                progress=progress,
            )

    def export(
        self,
        path: PathLike | TextIO,
        *,
        format: str | None = None,
        group: Names = (),
        predicate: str | None = None,
        topic: str | None = None,
        min_count: int = 1,
        limit: int | None = None,
        merged: bool = False,
        **selection: Unpack[Selecting],
    ) -> int:
        """Write the statements that count (`counted`) with counts and scores, as a table, a graph
        or a picture; returns how many were written. Of a run of several arms, tables and graphs
        have a row or an edge for each arm; a picture is of one.

        Args:
            path: the file, for neo4j-admin the folder; or a stream of text (`sys.stdout`).
            format: jsonl, csv, graphml, svg ... (None: by the file's extension, jsonl in a stream).
            group: only these groups.
            predicate: only triples with this predicate.
            topic: only triples about a topic with this text in its name.
            min_count: only what was said at least this often.
            limit: only this many, those said most often.
            merged: near-duplicates count as one.
            selection: which statements count, as in `counted`.
        """
        from kgbias.export import Filters, write_export

        filters = Filters(as_names(group), predicate, topic, min_count, limit, merged)
        output = Path(path) if isinstance(path, PathLike) else path
        with self._study.working() as progress:
            return write_export(
                self.stored,
                output,
                format,
                filters,
                selection=Selection(**selection),
                progress=progress,
            )


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
