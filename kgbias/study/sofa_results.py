"""SoFa of several models on the same groups and statements."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from kgbias.errors import DataError, UsageError
from kgbias.graph.sofa import ProbeSet, ProbeStatement
from kgbias.io.reading import read_table
from kgbias.parallel import LOCAL, opened_executor
from kgbias.study.opened import OpenedStore
from kgbias.study.run import Run
from kgbias.study.scorers import ScorerOptions, each_scorer, listed, outputs

if TYPE_CHECKING:
    from kgbias.compare.sofa import SofaComparison
    from kgbias.models.score.base import TextScorer
    from kgbias.probe import SetProbes
    from kgbias.probe.stream import Sets


class SofaSets(OpenedStore):
    """SoFa of several models on the same groups and statements; a part of `Study`."""

    def probe_sets(
        self,
        models: "str | TextScorer | Sequence[str | TextScorer]",
        sets: "Sets",
        *,
        name: str = "probes",
        by: Literal["conditional", "sofa", "whole"] | None = None,
        as_published: bool = False,
        output: str | Path | None = None,
        run: Run | None = None,
        seed: int = 0,
        executor: str = LOCAL,
        processes: int | None = None,
        **opening: Unpack[ScorerOptions],
    ) -> "list[SetProbes]":
        """Probe groups and statements with one model or several, one after another: each is loaded
        once, and forgotten before the next. What each probe costs is kept in the answer log (or in
        `output`), so the same call continues where it was stopped; SoFa of each model is kept with
        the set.

        Args:
            models: specs, or models that `kgbias.open_scorer` opened.
            sets: category to (groups, statements); `kgbias.gather_sets` reads them.
            name: what to call the set.
            by: what ranks the groups (see `Run.probe`).
            as_published: compute as the code of the paper did, slips included; not kept.
            output: write every probe: a .jsonl file or a .parquet folder; of several models, each
                has its own, whose name ends in the model's.
            run: the run whose statements or groups these are.
            seed: the random seed of the intervals.
            executor: where the models read, as for `Run.probe`.
            processes: how many processes of this machine read, as for `Run.probe`.
            opening: how a spec is opened: `begin`, `device`, `dtype`, `base_url`.

        Raises:
            UsageError: a spec that is none, or an output that belongs to other settings.
            ModelError: a model cannot be loaded.
        """
        from kgbias.probe import probe_sets
        from kgbias.probe.result import keep, sofa_result

        named = listed(models)
        files, probe_set = outputs(output, named), ProbeSet.of(name, sets)
        store, found = self._writable(), []
        with (
            self.working() as progress,
            opened_executor(executor, progress, processes) as workers,
        ):
            for n, scorer in each_scorer(named, opening, progress, workers):
                found.append(
                    probed := probe_sets(
                        scorer, sets, measure=by, output=files[n], store=store,
                        as_published=as_published, seed=seed, progress=progress,
                    )
                )  # fmt: skip
                if not as_published:
                    result = sofa_result(
                        probe_set, probed.model, probed.bias, measure=by, seed=seed,
                        took=probed.took,
                    )  # fmt: skip
                    keep(store, None if run is None else run.stored.id, probe_set, result)
        return found

    def describe_probes(
        self,
        probe_set: str | None = None,
        *,
        hate: str | None = "offline",
        embedding: str | None = "minilm",
        min_cluster_size: int | None = None,
        device: str = "auto",
        seed: int = 0,
    ) -> ProbeSet:
        """Say of the statements of a set what they are about, and which are hate speech (appendices
        C.2 and C.3 of the paper); the answers are kept with the set, and `sofa_figures` draws them.

        Args:
            probe_set: as for `sofa`.
            hate: the scorer of toxicity that says it, from 0.5 on: offline, or as in the paper
                hf:facebook/roberta-hate-speech-dynabench-r4-target:hate; None: not asked.
            embedding: what statements are embedded in to be clustered: minilm, or as in the paper
                hf:Alibaba-NLP/gte-base-en-v1.5; None: not asked.
            min_cluster_size: the fewest statements of a cluster (None: 1% of them, at least 5).
            device: where the models run.
            seed: of the clusters.

        Raises:
            UsageError: no set of that name, or neither is asked.
            MissingExtra: a package of the extras `topics` or `scorers` is missing.
        """
        from kgbias.measure.clusters import cluster_texts
        from kgbias.measure.embedding import load_vectors
        from kgbias.measure.scorers import load_scorer

        if hate is None and embedding is None:
            raise UsageError("nothing is asked of the set: name `hate` or `embedding`")
        found = self.sofa(probe_set).probe_set
        texts = list(dict.fromkeys(s.text for part in found.parts for s in part.statements))
        record = dict(found.record)
        scores: dict[str, float | None] = {}
        labels: dict[str, int] = {}
        with self.working() as progress:
            if hate is not None:
                scorer = load_scorer("toxicity", hate, device=device, log=self.store)
                progress.stage("hate", len(texts))
                judged = scorer.score(texts)
                scores = {t: j.value if j else None for t, j in zip(texts, judged, strict=True)}
                progress.advance(len(texts))
                record["hate"] = f"{scorer.name}@{scorer.version}"
            if embedding is not None:
                progress.note(f"clustering {len(texts):,} statements")
                clusters = cluster_texts(
                    texts, load_vectors(embedding, device),
                    min_cluster_size=min_cluster_size, seed=seed,
                )  # fmt: skip
                labels = dict(zip(texts, clusters.labels, strict=True))
                record["clusters"] = clusters.as_dict()

        def known(s: ProbeStatement) -> ProbeStatement:
            return replace(
                s, hate=scores.get(s.text, s.hate), cluster=labels.get(s.text, s.cluster)
            )

        parts = tuple(
            replace(part, statements=tuple(map(known, part.statements))) for part in found.parts
        )
        described = ProbeSet(found.name, parts, record)
        self.store.save_probe_set(described)
        return described

    def sofa_figures(
        self,
        folder: str | Path = "sofa",
        probe_set: str | None = None,
        *,
        beside: str | Path | None = None,
        **options: Any,
    ) -> list[Path]:
        """Write the tables and figures of the paper for one set of probes: SVG, PDF and PNG, LaTeX
        and CSV, and manifest.json. Returns the files.

        Args:
            folder: where to.
            probe_set: as for `sofa`.
            beside: scores of the same models by other benchmarks, which stand beside SoFa in table
                1 with their ranks and Kendall's tau: a CSV file with the column model and a column
                for each benchmark, higher is more biased.
            options: as for `sofa`.
        """
        from kgbias.report.save import save_sofa

        others = None if beside is None else read_benchmarks(Path(beside))
        found = self.sofa(probe_set, **options)
        with self.working() as progress:
            return save_sofa(found, Path(folder), beside=others, progress=progress)

    def sofa(
        self, probe_set: str | None = None, *, run: str | None = None, **options: Any
    ) -> "SofaComparison":
        """Models by SoFa on one set of probes: ranks, paired tests, scores by category.

        Args:
            probe_set: the name of a set or the beginning of its id (None: the set that most models
                were asked about).
            run: only what this run was probed with.
            options: `correction` and `seed` of `kgbias.compare.sofa.compare_sofa`.

        Raises UsageError where no model was probed, or no set has that name.
        """
        from kgbias.compare.sofa import stored_sofa

        id = None if run is None else self.store.find_run(run).id
        return stored_sofa(self.store, self.store.sofa(id), probe_set, **options)


def read_benchmarks(path: Path) -> dict[str, dict[str, float]]:
    """Scores of models by benchmark, from a CSV file with the column model and a column for each
    benchmark; an empty cell is a model that was not scored. Raises DataError."""
    columns, rows = read_table(path, ["model"])
    names = [name for name in columns if name != "model"]
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    for line, row in rows:
        for name in names:
            if cell := row[name].strip():
                try:
                    found[name][row["model"]] = float(cell)
                except ValueError:
                    raise DataError(f"{path}, line {line}: {name} is no number") from None
    if not names:
        raise DataError(f"{path} has no benchmark beside the column model")
    return found
