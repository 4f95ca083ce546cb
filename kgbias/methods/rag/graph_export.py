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

from kgbias.export import ExportContent, Format
from kgbias.graph.integrity import Corpus, Passage, Relation, content_uuid, make_relation
from kgbias.graph.types import TripleView, node_id
from kgbias.methods.rag.graph_file import to_ragas

CHUNK_STATEMENTS = 25  # statements


def write_ragas(content: ExportContent, path: Path) -> None:
    """Write the JSON that `ragas.testset.graph.KnowledgeGraph.load` reads."""
    corpus = content.run.corpus()
    if not corpus.passages:
        corpus = build_statement_corpus(content)
    text = json.dumps(to_ragas(corpus), indent=2, ensure_ascii=False)
    path.write_text(text, encoding="utf-8", newline="")


EXPORT = Format(write_ragas)


def build_statement_corpus(content: ExportContent) -> Corpus:
    """The statements of a run as documents, one for each group and arm."""
    by_group_and_arm: dict[tuple[str, str], list[TripleView]] = defaultdict(list)
    for triple in content.triples:
        by_group_and_arm[triple.group_id, triple.arm].append(triple)
    chunks: list[tuple[Passage, str, dict[str, str]]] = []  # with its group, and objects by id
    relations: list[Relation] = []
    passages: list[Passage] = []
    for (group, arm), group_triples in by_group_and_arm.items():
        name = group_triples[0].group + (f" [{arm}]" if content.has_several_arms else "")
        document = _build_passage(
            "document",
            content,
            name,
            group_triples,
            {
                "document_metadata": {
                    "source": content.run.name,
                    "group": group_triples[0].group,
                    "arm": arm,
                },
            },
        )
        document_chunks = []
        for start in range(0, len(group_triples), CHUNK_STATEMENTS):
            chunk_triples = group_triples[start : start + CHUNK_STATEMENTS]
            objects = {node_id("object", triple.object): triple.object for triple in chunk_triples}
            entities = [group_triples[0].group, *dict.fromkeys(objects.values())]
            chunk = _build_passage(
                "chunk", content, f"{name}/{start}", chunk_triples, {"entities": entities}
            )
            document_chunks.append(chunk)
            chunks.append((chunk, group, objects))
        passages += [document, *document_chunks]
        relations += [make_relation("child", document, chunk) for chunk in document_chunks]
        relations += [
            make_relation("next", first_chunk, second_chunk)
            for first_chunk, second_chunk in pairwise(document_chunks)
        ]
    for (first_chunk, group, objects), (second_chunk, other_group, other_objects) in combinations(
        chunks, 2
    ):
        shared = [[objects[id], other_objects[id]] for id in objects if id in other_objects]
        if group != other_group and shared:
            size = len(first_chunk.properties["entities"]) * len(
                second_chunk.properties["entities"]
            )
            relations.append(
                make_relation(
                    "entities_overlap",
                    first_chunk,
                    second_chunk,
                    {"entities_overlap_score": len(shared) / size, "overlapped_items": shared},
                )
            )
    return Corpus(tuple(passages), tuple(relations))


def _build_passage(
    kind: str,
    content: ExportContent,
    name: str,
    triples: Sequence[TripleView],
    properties: dict[str, object],
) -> Passage:
    text = " ".join(t.sentence for t in triples)
    return Passage(content_uuid(kind, content.run.id, name), kind, text, properties)
