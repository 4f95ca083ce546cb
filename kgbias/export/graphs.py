"""Graph files: GraphML, GEXF and node-link JSON by networkx, and RDF Turtle."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import SubElement

from kgbias.export.content import ExportContent
from kgbias.graph.types import TripleView, node_id
from kgbias.io.text import replace_non_xml, turtle


def write_graphml(content: ExportContent, path: Path) -> None:
    import networkx as nx

    nx.write_graphml_xml(_xml_safe_graph(content), path, edge_id_from_attribute="id")


def write_gexf(content: ExportContent, path: Path) -> None:
    """Write GEXF 1.3, with the predicate as each edge's label and kind: Gephi merges edges between
    the same nodes that have no kind. The weight is the number of times it was said."""
    from networkx.readwrite.gexf import GEXFWriter

    graph = _xml_safe_graph(content)
    kinds = {}
    for _, _, data in graph.edges(data=True):
        data["label"] = data["predicate"]
        arm_suffix = f" {data['arm']}" if content.has_several_arms else ""
        kinds[data["id"]] = data["predicate"] + arm_suffix
        data["weight"] = data["count"]
    writer = GEXFWriter(version="1.3")
    writer.add_graph(graph)
    meta = writer.xml.find("meta")
    SubElement(meta, "description").text = graph.graph["warning"]
    for edge in writer.xml.iter("edge"):  # networkx has no place for it
        edge.set("kind", kinds[edge.get("id")])
    with path.open("wb") as file:
        writer.write(file)


def _xml_safe_graph(content: ExportContent) -> Any:
    """The graph, with text that XML can hold and the content warning."""
    graph = content.graph.copy()
    graph.graph["warning"] = replace_non_xml(" ".join(content.heading))
    for _, data in graph.nodes(data=True):
        data.update({k: replace_non_xml(v) for k, v in data.items()})
    for _, _, key, data in graph.edges(keys=True, data=True):
        data.update({k: replace_non_xml(v) for k, v in data.items() if isinstance(v, str)})
        data["id"] = key
    return graph


def write_node_link(content: ExportContent, path: Path) -> None:
    import networkx as nx

    graph = content.graph.copy()
    graph.graph["warning"] = " ".join(content.heading)
    data = nx.node_link_data(graph, edges="edges")
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


_PREFIXES = """\
@prefix kg: <urn:kgbias:schema:> .
@prefix group: <urn:kgbias:group:> .
@prefix predicate: <urn:kgbias:predicate:> .
@prefix object: <urn:kgbias:object:> .
@prefix triple: <urn:kgbias:triple:> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def write_turtle(content: ExportContent, path: Path) -> None:
    """Write each triple as a reified RDF statement (said by a model, not asserted), with its count
    and scores; for several arms, with a node for each arm and its count."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in content.heading:
            file.write(f"# {line}\n")
        file.write(_PREFIXES)
        file.writelines(_turtle_lines(content))


def _turtle_lines(content: ExportContent) -> Iterator[str]:
    nodes_named: set[str] = set()
    for triple in content.triples:
        ends = {
            f"group:{triple.group_id}": ("kg:Group", triple.group),
            f"predicate:{node_id('predicate', triple.predicate)}": (
                "rdf:Property",
                triple.predicate,
            ),
            f"object:{node_id('object', triple.object)}": ("kg:Object", triple.object),
        }
        for name, (kind, text) in ends.items():
            if name not in nodes_named:
                nodes_named.add(name)
                yield f"{name} a {kind} ; rdfs:label {turtle(text)} .\n"
        subject, predicate, object = ends
        yield (
            f"triple:{triple.id} a rdf:Statement ; rdf:subject {subject} ; rdf:predicate "
            f"{predicate} ; "
            f"rdf:object {object} ; kg:saidBy {turtle(content.run.model.title)} ; "
            f"kg:run {turtle(content.run.name)} ; "
            f"kg:language {turtle(content.run.record.language)} ; "
            f"{_count_turtle(triple, content.has_several_arms)}"
        )
        for measure in content.measures:
            if score := triple.scores.get(measure.name):
                yield f' ; kg:{measure.name} "{score.value!r}"^^xsd:double'
        for column, text in content.added.cells.get(triple.id, {}).items():
            if text:
                yield f" ; kg:{column} {turtle(text)}"
        yield " .\n"


def _count_turtle(t: TripleView, of_arms: bool) -> str:
    count = f"kg:count {t.count}"
    return f"kg:said [ kg:arm {turtle(t.arm)} ; {count} ]" if of_arms else count
