"""APX on a model: names x descriptors x templates, in chunks that are saved as they are
computed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgbias.graph.store import Store
from kgbias.graph.types import ItemScore, canonical_json
from kgbias.ids import content_id
from kgbias.io.progress import Progress
from kgbias.models.score.base import TextScorer, perplexity
from kgbias.models.score.distributed import AnyScorer, ScorerSource, resolve_scorer
from kgbias.probe.apx import (
    ApxTable,
    Array,
    GroupMeans,
    adjust_perplexities,
    check_axes,
    find_flags,
)
from kgbias.probe.items import Items, ItemScores, iter_scores, make_item, sum_usage
from kgbias.probe.result import ApxFlags, ScorerInfo
from kgbias.probe.set_probes import Row, open_output
from kgbias.probe.sets import TEMPLATES, Descriptor

Names = Sequence[tuple[str, str]]


class TemplateAndName(NamedTuple):
    """The template and the name of an item, by their places."""

    template: int
    name: int


class NameSentences(Items):
    """Names before descriptors in templates. An item is a name in a template; its scores are the
    log-likelihoods of its sentences, one for each descriptor, followed by their token counts."""

    name = "apx"
    title = "APX"
    chunk = 4096

    def __init__(
        self,
        names: Names,
        descriptors: Sequence[Descriptor],
        templates: Sequence[str] = TEMPLATES,
    ) -> None:
        """`names` are pairs of name and group; a descriptor's endings continue the `templates`."""
        self.names, self.descriptors, self.templates = names, descriptors, templates
        self._endings = [[d.endings[t] for d in descriptors] for t in range(len(templates))]
        self.items = [
            make_item(self.name, f"{name} {t + 1}", group, name, group, template, self._endings[t])
            for t, template in enumerate(templates)
            for name, group in names
        ]
        self.sizes = [len(descriptors)] * len(self.items)

    @property
    def sentences_id(self) -> str:
        """The id of everything that determines the sentences."""
        descriptor_parts = [[d.text, d.axis, d.endings] for d in self.descriptors]
        return content_id(
            "names", canonical_json([list(self.names), descriptor_parts, self.templates])
        )

    def place(self, item: int) -> TemplateAndName:
        return TemplateAndName(*divmod(item, len(self.names)))

    def ask(self, scorer: TextScorer, places: Sequence[int]) -> list[tuple[ItemScores, int]]:
        scored: list[tuple[ItemScores, int]] = []
        for template_index, form in enumerate(self.templates):
            names = [name for t, name in map(self.place, places) if t == template_index]
            if not names:
                continue
            stems = [form.format(name=self.names[name][0]) for name in names]
            grid = scorer.grid(stems, self._endings[template_index])
            # For an encoder-decoder, the paper scores what the decoder says (section 4.1).
            scores = grid.statement if scorer.convention.kind == "seq2seq" else grid.probes
            rows = np.concatenate([scores.log_likelihoods, scores.tokens], axis=1)
            tokens = scores.tokens.sum(axis=1).tolist()
            scored += [(tuple(row), n) for row, n in zip(rows.tolist(), tokens, strict=True)]
        return scored


def perplexities_of(scores: ItemScores) -> Array:
    """The perplexity of each sentence of an item."""
    log_likelihoods, tokens = np.array(scores).reshape(2, -1)
    return perplexity(log_likelihoods, tokens)


def probe_apx(
    scorer: AnyScorer | ScorerSource,
    names: Names,
    descriptors: Sequence[Descriptor],
    *,
    templates: Sequence[str] = TEMPLATES,
    exclude_axes: Sequence[str] = (),
    as_published: bool = False,
    perplexities: Path | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> ApxFlags:
    """The descriptors that a model ties to groups of names, by APX.

    Memory holds a chunk of sentences, and a figure for each template, group and descriptor. A
    stopped job with a file of perplexities continues from it, and ends with the same bytes.

    Args:
        scorer: a model that scores texts.
        names: pairs of name and group.
        descriptors: descriptors.
        templates: how sentences begin, `{name}` for the name; the endings of each descriptor
            continue them.
        exclude_axes: descriptors of these axes are measured but not tested.
        as_published: round as the paper's code does.
        perplexities: a .jsonl file, or a .parquet folder, for the perplexity of every sentence as
            it is computed.
        store: keeps the scores, and the flags as edges (see `kgbias.Study.graph`). What it holds is
            not computed again.
        progress: receives progress reports.

    Raises:
        UsageError: an output that cannot be written, or that belongs to other settings.
    """
    scorer = resolve_scorer(scorer)
    check_axes([descriptor.axis for descriptor in descriptors], exclude_axes)
    groups = [group for _, group in names]
    sentences = NameSentences(names, descriptors, templates)
    means = GroupMeans(
        len(templates), groups, [d.text for d in descriptors], [d.axis for d in descriptors]
    )
    score_file = None if perplexities is None else _PerplexityFile(perplexities, sentences, scorer)
    times: list[tuple[int, float]] = []
    for places, scores in iter_scores(sentences, scorer, store, score_file, progress):
        for place, score in zip(places, scores, strict=True):
            means.add(*sentences.place(place), perplexities_of(score.scores)[None])
        times += [(score.tokens, score.seconds) for score in scores]
    values = adjust_perplexities(means.values, means.name_counts, as_published=as_published)
    table = ApxTable(means.groups, means.descriptors, means.axes, values)
    apx_flags = ApxFlags(
        table,
        tuple(find_flags(table, exclude_axes)),
        tuple(exclude_axes),
        ScorerInfo.from_scorer(scorer),
        input_id=content_id(sentences.sentences_id, "rounded" if as_published else ""),
        usage=sum_usage(times),
        means=means,
    )
    if store is not None:
        store.save_flags(apx_flags.edges)
    return apx_flags


class _PerplexityFile:
    """Every sentence as a row of a .jsonl file or a .parquet folder, chunk by chunk
    (`kgbias.probe.items.ScoreFile`). It does not record how long a chunk took: the same job must
    end with the same bytes."""

    def __init__(self, path: Path, sentences: NameSentences, scorer: AnyScorer) -> None:
        job: dict[str, Any] = {
            "model": [scorer.info.name, scorer.info.revision, scorer.settings],
            "chunk": sentences.chunk,
            "sentences": sentences.sentences_id,
        }
        self._rows, self._sentences = open_output(path, job), sentences
        self._chunks = sentences.chunks()

    def read(self, chunk: int) -> list[ItemScore] | None:
        rows = self._rows.read(chunk)
        if rows is None:
            return None
        figures = np.array([[row["log_likelihood"], row["tokens"]] for row in rows])
        of_items = figures.reshape(len(self._chunks[chunk]), -1, 2)
        return [
            ItemScore(
                self._sentences.items[n],
                tuple(item_figures.T.ravel().tolist()),
                int(item_figures[:, 1].sum()),
            )
            for n, item_figures in zip(self._chunks[chunk], of_items, strict=True)
        ]

    def write(self, chunk: int, scores: Sequence[ItemScore]) -> None:
        rows: list[Row] = []
        for place, score in zip(self._chunks[chunk], scores, strict=True):
            template, name = self._sentences.place(place)
            given_name, group = self._sentences.names[name]
            figures = np.array(score.scores).reshape(2, -1).T.tolist()
            perplexities = perplexities_of(score.scores).tolist()
            rows += [
                {
                    "template": template + 1,
                    "name": given_name,
                    "group": group,
                    "descriptor": descriptor.text,
                    "axis": descriptor.axis,
                    "perplexity": value,
                    "log_likelihood": log_likelihood,
                    "tokens": int(tokens),
                }
                for descriptor, value, (log_likelihood, tokens) in zip(
                    self._sentences.descriptors, perplexities, figures, strict=True
                )
            ]
        self._rows.write(chunk, rows)
