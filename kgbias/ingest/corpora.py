"""From passages to a run: the statements about groups in a corpus, each with the sentence it was
read from, to compare what people wrote with what a model says.

A folder of documents becomes such a corpus: chunks, their entities, and which chunks share
entities. The relations are those of a RAGAS knowledge graph: "child" from a document to its chunks,
"next" from a chunk to the one after it, and "entities_overlap" between two chunks if at least one
entity of one means the same as one of the other.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from kgbias.crawl.parse import read_answer
from kgbias.crawl.seeds import as_groups, published_seeds
from kgbias.errors import DataError
from kgbias.graph.integrity import Corpus, Passage, Relation, make_relation, content_uuid
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Category, Generation, Group, Run, Triple, storable
from kgbias.ids import content_id
from kgbias.ingest.run import Imported
from kgbias.io.progress import Progress
from kgbias.io.reading import read_bytes, read_text
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
    """The groups whose statements are looked for: those of the published seeds."""
    return as_groups(list({id(s): s for s in published_seeds().values()}.values()))


def statements_in(passages: Sequence[Passage], groups: Sequence[Group]) -> Iterator[Found]:
    """The statements of sentences whose subject is one of the groups, by any of its names. A
    sentence counts in each passage that contains it; give chunks rather than the documents that
    they are from."""
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
    """The sentences of a text, each on one line."""
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
    """Make a run from a corpus: its passages with their relations, and the statements about known
    groups in them. A corpus without such statements is a run of passages alone."""
    groups = known_groups()
    parents = {r.source for r in corpus.relations if r.kind == "child"}
    leaves = [p for p in corpus.passages if p.id not in parents]
    found = list(statements_in(leaves, groups))
    there = {f.triple.group_id for f in found}
    own = tuple(g for g in groups if g.id in there)
    config = {"file": path.name, "sha256": digest, "reader": READER, **settings}
    run = store.begin_run(
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
    store.load_import(run.id, (_generation(run, n, f, keys[f.sentence]) for n, f in enumerate(found)))
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
    """Make a run from a RAGAS knowledge graph ("ragas": a file) or from text files ("documents": a
    folder). Raises DataError if nothing can be read."""
    if format == "ragas":
        from kgbias.ingest.ragas import read_graph

        corpus, digest = read_graph(path), sha256(read_bytes(path)).hexdigest()
    else:
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
    """A pattern for the group as the subject of a clause: at its beginning."""
    names = "|".join(sorted(map(re.escape, (group.name, *group.variants)), key=len, reverse=True))
    return re.compile(rf"{_BEFORE}({names})(?=\s)", re.IGNORECASE)


SUFFIXES = (".txt", ".md", ".rst")
CHUNK = 200  # words in a chunk, at most; a sentence is never cut
SAME = 0.9  # the cosine from which two entities are the same
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:of|the|and|for)?\s*[A-Z][\w'’-]*)*")
_FIRST = frozenset(
    "a all also although an and another any are as at because both but by can each even every for "
    "from he her here his how however i if in is it its many more most much my no not of on one or "
    "other our she so some such than that the their them then there these they this those to was "
    "we were what when where which while who why with you your".split()
)

Embed = Callable[[Sequence[str]], np.ndarray]


def read_folder(folder: Path, embed: Embed) -> tuple[Corpus, str]:
    """The text files in and below a folder, by path, as a corpus; and a hash of them. `embed` gives
    each text a vector of length 1. Raises DataError if there are none."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder of documents")
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    texts = {p.relative_to(folder).as_posix(): read_text(p) for p in files}
    texts = {name: text for name, text in texts.items() if text.strip()}
    if not texts:
        raise DataError(f"{folder} has no text: documents end in {', '.join(SUFFIXES)}")
    digest = sha256("\0".join(f"{name}\0{text}" for name, text in texts.items()).encode())
    return build(texts, embed), digest.hexdigest()


def build(texts: dict[str, str], embed: Embed, groups: Sequence[Group] | None = None) -> Corpus:
    """A corpus from documents by name. Ids are computed from names and texts."""
    groups = known_groups() if groups is None else groups
    passages: list[Passage] = []
    relations: list[Relation] = []
    found: list[Passage] = []
    for name, text in texts.items():
        document = Passage(content_uuid("document", name, text), "document", text,
                           {"document_metadata": {"source": name}})  # fmt: skip
        own = [
            Passage(content_uuid("chunk", document.id, str(n)), "chunk", chunk,
                    {"entities": entities(chunk, groups)})
            for n, chunk in enumerate(chunks(text))
        ]  # fmt: skip
        passages += [document, *own]
        found += own
        relations += [make_relation("child", document, chunk) for chunk in own]
        relations += [make_relation("next", a, b) for a, b in pairwise(own)]
    return Corpus(tuple(passages), (*relations, *overlaps(found, embed)))


def chunks(text: str, most: int = CHUNK) -> list[str]:
    """A text in chunks of whole sentences, with at most `most` words unless a sentence is
    longer."""
    found: list[list[str]] = []
    size = most
    for sentence in sentences(text):
        words = len(sentence.split())
        if size + words > most:
            found.append([])
            size = 0
        found[-1].append(sentence)
        size += words
    return [" ".join(chunk) for chunk in found]


def entities(text: str, groups: Sequence[Group]) -> list[str]:
    """The groups that a text names, and its capitalised names, most frequent first."""
    counts: Counter[str] = Counter()
    for group in groups:
        for name in (group.name, *group.variants):
            n = len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE))
            if n:
                counts[group.name] += n
    for sentence in sentences(text):
        for match in _NAME.finditer(sentence):
            name = " ".join(match[0].split())
            while name and name.split()[0].lower() in _FIRST:
                name = name.partition(" ")[2]
            # The first word of a sentence is capitalised anyway.
            if name and (match.start() > 0 or " " in name or not name[1:].islower()):
                counts[name] += 1
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def overlaps(chunks: Sequence[Passage], embed: Embed) -> Iterator[Relation]:
    """Relations between chunks that share entities: two entities are the same if the cosine of
    their embeddings is at least 0.9. The score is the share of all pairs of the chunks' entities
    that are the same, as in ragas."""
    names = sorted({name for chunk in chunks for name in chunk.properties["entities"]})
    if not names:
        return
    place = {name: n for n, name in enumerate(names)}
    rows = embed(names)
    for a, b in combinations(chunks, 2):
        one, other = a.properties["entities"], b.properties["entities"]
        if not one or not other:
            continue
        near = rows[[place[x] for x in one]] @ rows[[place[y] for y in other]].T >= SAME
        shared = [[one[i], other[j]] for i, j in np.argwhere(near)]
        if shared:
            score = len(shared) / (len(one) * len(other))
            yield make_relation(
                "entities_overlap",
                a,
                b,
                {"entities_overlap_score": score, "overlapped_items": shared},
            )
