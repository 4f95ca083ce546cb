"""What an export for Neo4j holds of what a model believes of groups, by their names."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgbias.graph.store import StoredRun
from kgbias.graph.types import BelievedEdge, Believing, GroupName, NameProbe, canonical_json

_Values = Mapping[str, Any]
_Edges = Iterator[tuple[str, str, str, Iterable[tuple[str, str, _Values]]]]
Asked = NameProbe | BelievedEdge


@dataclass(frozen=True, slots=True)
class Beliefs:
    """A believing with its names, its probes and what follows for groups."""

    believing: Believing
    names: Sequence[GroupName]
    probes: Sequence[NameProbe]
    edges: Sequence[BelievedEdge]

    @classmethod
    def of(cls, run: StoredRun) -> "list[Beliefs]":
        return [
            cls(b, run.names(b.id), run.name_probes(b.id), run.beliefs(b.id))
            for b in run.believings()
        ]

    def within(self, groups: Iterable[str], has: Callable[[Asked], bool]) -> "Beliefs":
        """What is about these groups, or of no group, and about statements that an export has."""
        groups = set(groups)
        names = [n for n in self.names if n.nonce or n.group_id in groups]
        ids = {n.id for n in names}
        probes = [p for p in self.probes if p.name_id in ids and has(p)]
        edges = [e for e in self.edges if e.group_id in groups and has(e)]
        return Beliefs(self.believing, names, probes, edges)


def name_nodes(beliefs: Sequence[Beliefs]) -> tuple[str, list[_Values]]:
    names = {n.id: n for b in beliefs for n in b.names}
    return (
        "Name",
        [
            {"uid": id, "text": n.text, "name": n.text, "form": n.form, "root": n.root,
             "nonce": n.nonce}
            for id, n in sorted(names.items())
        ],
    )  # fmt: skip


def belief_edges(run: StoredRun, beliefs: Sequence[Beliefs]) -> _Edges:
    marks = {(n.id, n.group_id): n.mark for b in beliefs for n in b.names if not n.nonce}
    yield "NAME_OF", "Name", "SocialGroup", (
        (name, group, {"mark": mark}) for (name, group), mark in sorted(marks.items())
    )  # fmt: skip
    yield "BELIEVED_BY", "Run", "Model", (
        (
            run.id,
            b.believing.model.id,
            {
                "uid": b.believing.id,
                "settings": canonical_json(b.believing.settings),
                "record": canonical_json(dict(b.believing.record)),
            },
        )
        for b in beliefs
    )  # fmt: skip
    yield "PROBED_BEFORE", "Name", "Statement", (
        (p.name_id, p.statement_id, _of(run, b.believing) | {"bits": p.bits, "mean": p.mean})
        for b in beliefs
        for p in b.probes
    )  # fmt: skip
    yield "BELIEVED", "Statement", "SocialGroup", (
        (e.statement_id, e.group_id, _of(run, b.believing) | e.properties)
        for b in beliefs
        for e in b.edges
    )  # fmt: skip


def _of(run: StoredRun, believing: Believing) -> dict[str, Any]:
    return {"run": run.name, "believing_uid": believing.id, "model": believing.model.name}
