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
from typing import NamedTuple

import numpy as np

from kgbias.crawl.parse import read_answer
from kgbias.crawl.seeds import as_groups, published_seeds
from kgbias.errors import DataError
from kgbias.graph.integrity import Corpus, Passage, Relation, content_uuid, make_relation
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Category, Generation, Group, Run, Triple, storable
from kgbias.ids import content_id
from kgbias.ingest.import_run import ImportResult
from kgbias.io.progress import Progress
from kgbias.io.reading import read_text
from kgbias.models.base import ModelInfo

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z])|\n{2,}")
_CLAUSE_START = r"(?:^|\b(?:that|because|while|whereas|although|but|and)\s+)"
_MAX_SENTENCE_CHARACTERS = 1_000  # characters of a sentence; longer ones are tables or references
ANSWER_READER = "english"


@dataclass(frozen=True, slots=True)
class CorpusStatement:
    """A statement about a group in a passage, and the sentence that makes it."""

    triple: Triple
    passage: Passage
    sentence: str


def seed_groups() -> tuple[Group, ...]:
    """The groups whose statements are looked for: those of the published seeds."""
    return as_groups(list({id(s): s for s in published_seeds().values()}.values()))


def find_statements(
    passages: Sequence[Passage], groups: Sequence[Group]
) -> Iterator[CorpusStatement]:
    """The statements of sentences whose subject is one of the groups, by any of its names. A
    sentence counts in each passage that contains it; give chunks rather than the documents that
    they are from."""
    patterns = [(group, _subject_pattern(group)) for group in groups]
    for passage in passages:
        for sentence in split_sentences(passage.text or ""):
            clauses = sorted(
                (
                    (match_, group_)
                    for group_, pattern in patterns
                    for match_ in pattern.finditer(sentence)
                ),
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
                    reader=ANSWER_READER,
                )
                if reading.outcome == "ok":
                    triple = Triple(group.name, reading.predicate, reading.object)
                    yield CorpusStatement(triple, passage, sentence)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each on one line."""
    candidates = (" ".join(part.split()) for part in _SENTENCE_END.split(text))
    return [sentence for sentence in candidates if 0 < len(sentence) <= _MAX_SENTENCE_CHARACTERS]


def import_corpus(
    store: Store,
    path: Path,
    corpus: Corpus,
    *,
    digest: str,
    settings: dict[str, object],
    name: str | None = None,
    model: str = "unknown",
) -> ImportResult:
    """Make a run from a corpus: its passages with their relations, and the statements about known
    groups in them. A corpus without such statements is a run of passages alone."""
    groups = seed_groups()
    parents = {relation_.source for relation_ in corpus.relations if relation_.kind == "child"}
    leaves = [passage for passage in corpus.passages if passage.id not in parents]
    statements = list(find_statements(leaves, groups))
    group_ids = {statement.triple.group_id for statement in statements}
    named_groups = tuple(group for group in groups if group.id in group_ids)
    # The settings say how the corpus was read: the run's name and id are computed from them too.
    config = {"file": path.name, "sha256": digest, "reader": ANSWER_READER, **settings}
    run = store.begin_run(
        Run(
            name or f"{path.stem}-{content_id('name', model, repr(sorted(config.items())))[:4]}",
            ModelInfo(model),
            config,
            named_groups,
            categories=tuple(
                Category(name_) for name_ in sorted({group.category for group in named_groups})
            ),
            kind="import",
        )
    )
    keys = {
        statement.sentence: content_id("sentence", run.id, statement.sentence)
        for statement in statements
    }
    store.keep_answers(
        [Answer(key, run.model.id, storable(text), "stop") for text, key in keys.items()]
    )
    store.load_import(
        run.id,
        (
            _make_generation(run, n, statement, keys[statement.sentence])
            for n, statement in enumerate(statements)
        ),
    )
    store.save_corpus(run.id, corpus)
    store.set_status(run.id, "complete")
    return ImportResult(
        store.find_run(run.name),
        len(statements),
        len({statement.triple.id for statement in statements}),
        0,
        len(corpus.passages),
        len(corpus.relations),
    )


def import_folder(
    store: Store,
    path: Path,
    *,
    name: str | None = None,
    model: str = "unknown",
    progress: Progress | None = None,
) -> ImportResult:
    """Make a run from the text files of a folder. Raises DataError if there are none."""
    from kgbias.models.embed import SentenceVectors

    embed = SentenceVectors(notify=progress.note if progress else None)
    corpus, digest = read_folder(path, embed)
    settings: dict[str, object] = {"format": "documents"}
    return import_corpus(
        store, path, corpus, digest=digest, settings=settings, name=name, model=model
    )


def _make_generation(run: Run, number: int, statement: CorpusStatement, key: str) -> Generation:
    return Generation(
        run_id=run.id,
        path=f"none/import/{number:08d}",
        group_id=statement.triple.group_id,
        arm="none",
        strategy="import",
        iteration=0,
        attempt=0,
        outcome="ok",
        template=f"passage:{statement.passage.id}",
        answer_key=key,
        triple=statement.triple,
    )


def _subject_pattern(group: Group) -> re.Pattern[str]:
    """A pattern for the group as the subject of a clause: at its beginning."""
    alternatives = "|".join(
        sorted(map(re.escape, (group.name, *group.variants)), key=len, reverse=True)
    )
    return re.compile(rf"{_CLAUSE_START}({alternatives})(?=\s)", re.IGNORECASE)


DOCUMENT_SUFFIXES = (".txt", ".md", ".rst")
MAX_CHUNK_WORDS = 200  # words in a chunk; a longer sentence is a chunk, since none is cut
MIN_ENTITY_COSINE = 0.9  # the cosine from which two entities are the same
_CAPITALISED_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:of|the|and|for)?\s*[A-Z][\w'’-]*)*")
_SENTENCE_STARTERS = frozenset(
    "a all also although an and another any are as at because both but by can each even every for "
    "from he her here his how however i if in is it its many more most much my no not of on one or "
    "other our she so some such than that the their them then there these they this those to was "
    "we were what when where which while who why with you your".split()
)

EmbedTexts = Callable[[Sequence[str]], np.ndarray]


class FolderCorpus(NamedTuple):
    """The texts of a folder, and a hash of them."""

    corpus: Corpus
    hash: str


def read_folder(folder: Path, embed: EmbedTexts) -> FolderCorpus:
    """The text files in and below a folder, by path, as a corpus; and a hash of them. `embed` gives
    each text a vector of length 1. Raises DataError if there are none."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder of documents")
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in DOCUMENT_SUFFIXES and file.is_file()
    )
    texts = {file.relative_to(folder).as_posix(): read_text(file) for file in files}
    texts = {name: text for name, text in texts.items() if text.strip()}
    if not texts:
        raise DataError(f"{folder} has no text: documents end in {', '.join(DOCUMENT_SUFFIXES)}")
    digest = sha256("\0".join(f"{name}\0{text}" for name, text in texts.items()).encode())
    return FolderCorpus(build_corpus(texts, embed), digest.hexdigest())


def build_corpus(
    texts: dict[str, str], embed: EmbedTexts, groups: Sequence[Group] | None = None
) -> Corpus:
    """A corpus from documents by name. Ids are computed from names and texts."""
    groups = seed_groups() if groups is None else groups
    passages: list[Passage] = []
    relations: list[Relation] = []
    all_chunks: list[Passage] = []
    for name, text in texts.items():
        document = Passage(
            content_uuid("document", name, text),
            "document",
            text,
            {"document_metadata": {"source": name}},
        )
        document_chunks = [
            Passage(
                content_uuid("chunk", document.id, str(number)),
                "chunk",
                chunk,
                {"entities": find_entities(chunk, groups)},
            )
            for number, chunk in enumerate(split_chunks(text))
        ]
        passages += [document, *document_chunks]
        all_chunks += document_chunks
        relations += [make_relation("child", document, chunk) for chunk in document_chunks]
        relations += [
            make_relation("next", first, second) for first, second in pairwise(document_chunks)
        ]
    return Corpus(tuple(passages), (*relations, *relate_overlapping_chunks(all_chunks, embed)))


def split_chunks(text: str, max_words: int = MAX_CHUNK_WORDS) -> list[str]:
    """A text in chunks of whole sentences, with at most `max_words` words unless a sentence is
    longer."""
    chunk_sentences: list[list[str]] = []
    chunk_words = max_words
    for sentence in split_sentences(text):
        word_count = len(sentence.split())
        if chunk_words + word_count > max_words:
            chunk_sentences.append([])
            chunk_words = 0
        chunk_sentences[-1].append(sentence)
        chunk_words += word_count
    return [" ".join(chunk) for chunk in chunk_sentences]


def find_entities(text: str, groups: Sequence[Group]) -> list[str]:
    """The groups that a text names, and its capitalised names, most frequent first."""
    counts: Counter[str] = Counter()
    for group in groups:
        for name in (group.name, *group.variants):
            count = len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE))
            if count:
                counts[group.name] += count
    for sentence in split_sentences(text):
        for match in _CAPITALISED_NAME.finditer(sentence):
            name = " ".join(match[0].split())
            while name and name.split()[0].lower() in _SENTENCE_STARTERS:
                name = name.partition(" ")[2]
            # The first word of a sentence is capitalised anyway.
            if name and (match.start() > 0 or " " in name or not name[1:].islower()):
                counts[name] += 1
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def relate_overlapping_chunks(chunks: Sequence[Passage], embed: EmbedTexts) -> Iterator[Relation]:
    """Relations between chunks that share entities: two entities are the same if the cosine of
    their embeddings is at least 0.9. The score is the share of all pairs of the chunks' entities
    that are the same, as in ragas."""
    names = sorted({name for chunk in chunks for name in chunk.properties["entities"]})
    if not names:
        return
    row_of_name = {name: number for number, name in enumerate(names)}
    vectors = embed(names)
    for first, second in combinations(chunks, 2):
        first_entities, second_entities = (
            first.properties["entities"],
            second.properties["entities"],
        )
        if not first_entities or not second_entities:
            continue
        is_same = (
            vectors[[row_of_name[x] for x in first_entities]]
            @ vectors[[row_of_name[y] for y in second_entities]].T
            >= MIN_ENTITY_COSINE
        )
        same_entities = [[first_entities[i], second_entities[j]] for i, j in np.argwhere(is_same)]
        if same_entities:
            score = len(same_entities) / (len(first_entities) * len(second_entities))
            yield make_relation(
                "entities_overlap",
                first,
                second,
                {"entities_overlap_score": score, "overlapped_items": same_entities},
            )
