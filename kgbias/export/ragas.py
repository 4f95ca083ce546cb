"""A run as a RAGAS knowledge graph: documents and chunks, with the relations that ragas makes
multi-hop questions from.

A run that was read from passages is exported as those passages, unchanged. In any other run, each
group is a document of its statements, in chunks; two chunks of different groups overlap if the same
object was said of both.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

from kgbias.export.content import Content
from kgbias.graph.integrity import Corpus, Passage, Relation, make_relation, content_uuid
from kgbias.graph.types import TripleView, node_id
from kgbias.ingest.ragas import to_ragas

CHUNK = 25  # statements


def write_ragas(content: Content, path: Path) -> None:
    """Write the JSON that `ragas.testset.graph.KnowledgeGraph.load` reads."""
    corpus = content.run.corpus()
    if not corpus.passages:
        corpus = as_corpus(content)
    text = json.dumps(to_ragas(corpus), indent=2, ensure_ascii=False)
    path.write_text(text, encoding="utf-8", newline="")


def as_corpus(content: Content) -> Corpus:
    """The statements of a run as documents, one for each group and arm."""
    said: dict[tuple[str, str], list[TripleView]] = defaultdict(list)
    for t in content.triples:
        said[t.group_id, t.arm].append(t)
    chunks: list[tuple[Passage, str, dict[str, str]]] = []  # with its group, and objects by id
    relations: list[Relation] = []
    passages: list[Passage] = []
    for (group, arm), own in said.items():
        name = own[0].group + (f" [{arm}]" if content.of_arms else "")
        document = _passage("document", content, name, own, {
            "document_metadata": {"source": content.run.name, "group": own[0].group, "arm": arm},
        })  # fmt: skip
        parts = []
        for start in range(0, len(own), CHUNK):
            part = own[start : start + CHUNK]
            objects = {node_id("object", t.object): t.object for t in part}
            entities = [own[0].group, *dict.fromkeys(objects.values())]
            chunk = _passage("chunk", content, f"{name}/{start}", part, {"entities": entities})
            parts.append(chunk)
            chunks.append((chunk, group, objects))
        passages += [document, *parts]
        relations += [make_relation("child", document, chunk) for chunk in parts]
        relations += [make_relation("next", a, b) for a, b in pairwise(parts)]
    for (a, group, objects), (b, other, others) in combinations(chunks, 2):
        shared = [[objects[id], others[id]] for id in objects if id in others]
        if group != other and shared:
            size = len(a.properties["entities"]) * len(b.properties["entities"])
            relations.append(
                make_relation(
                    "entities_overlap",
                    a,
                    b,
                    {"entities_overlap_score": len(shared) / size, "overlapped_items": shared},
                )
            )
    return Corpus(tuple(passages), tuple(relations))


def _passage(
    kind: str,
    content: Content,
    name: str,
    said: Sequence[TripleView],
    properties: dict[str, object],
) -> Passage:
    text = " ".join(t.sentence for t in said)
    return Passage(content_uuid(kind, content.run.id, name), kind, text, properties)
