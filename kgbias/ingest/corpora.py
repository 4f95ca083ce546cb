"""From passages to a run: the statements about groups that stand in a corpus, each with the
sentence it was read from, so that what people wrote can be held against what a model says."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kgbias.crawl.parse import read_answer
from kgbias.crawl.seeds import as_groups, published
from kgbias.graph.keeping import Corpus, Passage
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Category, Generation, Group, Run, Triple, storable
from kgbias.ids import content_id
from kgbias.ingest.run import Imported
from kgbias.io.progress import Progress
from kgbias.io.reading import read_bytes
from kgbias.models.base import ModelInfo

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z])|\n{2,}")
_BEFORE = r"(?:^|\b(?:that|because|while|whereas|although|but|and)\s+)"
_LONGEST = 1_000  # characters of a sentence; longer ones are tables or references
READER = "english"


@dataclass(frozen=True, slots=True)
class Found:
    """A statement about a group in a passage, and the sentence that makes it."""

    triple: Triple
    passage: Passage
    sentence: str


def known_groups() -> tuple[Group, ...]:
    """The groups of the published seeds: those whose statements are looked for."""
    return as_groups(list({id(s): s for s in published().values()}.values()))


def statements_in(passages: Sequence[Passage], groups: Sequence[Group]) -> Iterator[Found]:
    """The statements of the sentences whose subject is one of the groups, by its name or another of
    its names. A sentence counts in each passage that holds it; documents that have chunks are left
    to their chunks."""
    patterns = [(group, _subject(group)) for group in groups]
    for passage in passages:
        for sentence in sentences(passage.text or ""):
            clauses = sorted(
                ((m, g) for g, pattern in patterns for m in pattern.finditer(sentence)),
                key=lambda clause: clause[0].start(),
            )
            ends = [*(match.start() for match, _ in clauses[1:]), len(sentence)]
            for (match, group), end in zip(clauses, ends, strict=False):
                reading = read_answer(
                    sentence[match.end() : end].rstrip(" ,;"),
                    "stop",
                    predicate=None,
                    filters=("refusal",),
                    subject=match[1],
                    reader=READER,
                )
                if reading.outcome == "ok":
                    triple = Triple(group.name, reading.predicate, reading.object)
                    yield Found(triple, passage, sentence)


def sentences(text: str) -> list[str]:
    """A text in sentences, each on one line."""
    found = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return [sentence for sentence in found if 0 < len(sentence) <= _LONGEST]


def import_corpus(
    store: Store,
    path: Path,
    corpus: Corpus,
    *,
    digest: str,
    settings: dict[str, object],
    name: str | None = None,
    model: str = "unknown",
) -> Imported:
    """Make a run of a corpus: its passages with their relations, and the statements about known
    groups in them. A corpus without any is a run of passages alone."""
    groups = known_groups()
    parents = {r.source for r in corpus.relations if r.kind == "child"}
    leaves = [p for p in corpus.passages if p.id not in parents]
    found = list(statements_in(leaves, groups))
    there = {f.triple.group_id for f in found}
    own = tuple(g for g in groups if g.id in there)
    config = {"file": path.name, "sha256": digest, "reader": READER, **settings}
    run = store.begin(
        Run(
            name or f"{path.stem}-{content_id('name', model, repr(sorted(config.items())))[:4]}",
            ModelInfo(model),
            config,
            own,
            categories=tuple(Category(c) for c in sorted({g.category for g in own})),
            kind="import",
        )
    )
    keys = {f.sentence: content_id("sentence", run.id, f.sentence) for f in found}
    store.keep_answers(
        [Answer(key, run.model.id, storable(text), "stop") for text, key in keys.items()]
    )
    store.load(run.id, (_generation(run, n, f, keys[f.sentence]) for n, f in enumerate(found)))
    store.save_corpus(run.id, corpus)
    store.set_status(run.id, "complete")
    return Imported(
        store.find_run(run.name),
        len(found),
        len({f.triple.id for f in found}),
        0,
        len(corpus.passages),
        len(corpus.relations),
    )


def import_passages(
    store: Store,
    path: Path,
    format: str,
    *,
    name: str | None = None,
    model: str = "unknown",
    progress: Progress | None = None,
) -> Imported:
    """Make a run of a knowledge graph of RAGAS ("ragas": a file) or of text files ("documents": a
    folder). Raises DataError where nothing can be read."""
    if format == "ragas":
        from kgbias.ingest.ragas import read_graph

        corpus, digest = read_graph(path), sha256(read_bytes(path)).hexdigest()
    else:
        from kgbias.ingest.documents import read_folder
        from kgbias.models.embed import SentenceVectors

        embed = SentenceVectors(notify=progress.note if progress else None)
        corpus, digest = read_folder(path, embed)
    return import_corpus(
        store, path, corpus, digest=digest, settings={"format": format}, name=name, model=model
    )


def _generation(run: Run, number: int, found: Found, key: str) -> Generation:
    return Generation(
        run_id=run.id,
        path=f"none/import/{number:08d}",
        group_id=found.triple.group_id,
        arm="none",
        strategy="import",
        iteration=0,
        attempt=0,
        outcome="ok",
        template=f"passage:{found.passage.id}",
        answer_key=key,
        triple=found.triple,
    )


def _subject(group: Group) -> re.Pattern[str]:
    """The group as the subject of a clause: at its beginning."""
    names = "|".join(sorted(map(re.escape, (group.name, *group.variants)), key=len, reverse=True))
    return re.compile(rf"{_BEFORE}({names})(?=\s)", re.IGNORECASE)
