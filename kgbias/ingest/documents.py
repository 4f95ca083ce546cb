"""A folder of documents as a corpus: chunks, their entities, and which chunks share entities.

The relations are those of a RAGAS knowledge graph: a document has its chunks as "child", a chunk
the one after it as "next", and two chunks "entities_overlap" where at least one entity of one means
the same as one of the other.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import combinations, pairwise
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from kgbias.errors import DataError
from kgbias.graph.keeping import Corpus, Passage, Relation
from kgbias.graph.types import Group
from kgbias.ingest.corpora import known_groups, sentences
from kgbias.io.reading import read_text

SUFFIXES = (".txt", ".md", ".rst")
CHUNK = 200  # words of a chunk, at most; a sentence is never cut
SAME = 0.9  # the cosine from which two entities are one
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:of|the|and|for)?\s*[A-Z][\w'’-]*)*")
_FIRST = frozenset(
    "a all also although an and another any are as at because both but by can each even every for "
    "from he her here his how however i if in is it its many more most much my no not of on one or "
    "other our she so some such than that the their them then there these they this those to was "
    "we were what when where which while who why with you your".split()
)

Embed = Callable[[Sequence[str]], np.ndarray]


def read_folder(folder: Path, embed: Embed) -> tuple[Corpus, str]:
    """The text files of a folder and those below it, by path, as a corpus; and a hash of them.
    `embed` gives each text a vector of length 1. Raises DataError where there is no such file."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder of documents")
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    texts = {p.relative_to(folder).as_posix(): read_text(p) for p in files}
    texts = {name: text for name, text in texts.items() if text.strip()}
    if not texts:
        raise DataError(f"{folder} holds no text: documents end in {', '.join(SUFFIXES)}")
    digest = sha256("\0".join(f"{name}\0{text}" for name, text in texts.items()).encode())
    return build(texts, embed), digest.hexdigest()


def build(texts: dict[str, str], embed: Embed, groups: Sequence[Group] | None = None) -> Corpus:
    """Documents, by name, as a corpus. Ids follow from names and texts."""
    groups = known_groups() if groups is None else groups
    passages: list[Passage] = []
    relations: list[Relation] = []
    found: list[Passage] = []
    for name, text in texts.items():
        document = Passage(_id("document", name, text), "document", text,
                           {"document_metadata": {"source": name}})  # fmt: skip
        own = [
            Passage(_id("chunk", document.id, str(n)), "chunk", chunk,
                    {"entities": entities(chunk, groups)})
            for n, chunk in enumerate(chunks(text))
        ]  # fmt: skip
        passages += [document, *own]
        found += own
        relations += [_relation("child", document, chunk) for chunk in own]
        relations += [_relation("next", a, b) for a, b in pairwise(own)]
    return Corpus(tuple(passages), (*relations, *overlaps(found, embed)))


def chunks(text: str, most: int = CHUNK) -> list[str]:
    """A text in chunks of whole sentences, of `most` words where the sentences allow."""
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
    """The groups that a text names, and its names in capitals, the most frequent first."""
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
            # The first word of a sentence has its capital from its place.
            if name and (match.start() > 0 or " " in name or not name[1:].islower()):
                counts[name] += 1
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def overlaps(chunks: Sequence[Passage], embed: Embed) -> Iterator[Relation]:
    """The chunks that share entities: those whose embeddings have a cosine of at least 0.9. The
    score is the share of all pairs of their entities that are the same, as ragas has it."""
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
            yield _relation(
                "entities_overlap",
                a,
                b,
                {"entities_overlap_score": score, "overlapped_items": shared},
            )


def _relation(
    kind: str, source: Passage, target: Passage, properties: dict[str, object] | None = None
) -> Relation:
    id = _id(kind, source.id, target.id)
    return Relation(id, kind, source.id, target.id, False, properties or {})


def _id(kind: str, *parts: str) -> str:
    """A UUID, as ragas wants one, that follows from content."""
    return str(uuid5(NAMESPACE_URL, "\0".join(("kgbias", kind, *parts))))
