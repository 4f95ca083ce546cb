"""The words of a Cypher query that the graph does not have. An engine takes a misspelt label, edge
type or property for one without any nodes, and answers with no rows or with nulls; so a query is
also read against the shape of the graph."""

import re
from collections.abc import Iterable, Sequence

from kgbias.errors import nearest
from kgbias.graph.cypher import Token, tokenise
from kgbias.graph.shape import EDGES, NODES

_LABELS = {n.label: {p.name for p in n.properties} for n in NODES}
_TYPES: dict[str, set[str]] = {}
for _edge in EDGES:
    _TYPES.setdefault(_edge.type, set()).update(p.name for p in _edge.properties)
_PROPERTIES = set().union(*_LABELS.values(), *_TYPES.values())
_OF_TIMES = frozenset("year quarter month week day hour minute second epochMillis x y z".split())
_RENAMED = re.compile(r"\bAS\s+(\w+)", re.IGNORECASE)


def unknown_words(query: str) -> list[str]:
    """A line for each label, edge type and property of a query that no graph of kgbias has, with
    the nearest that there is. A property is looked for on the labels or types of its variable, if
    the query says these in one place. Raises UsageError for a query that cannot be read."""
    found = [t for t in tokenise(query) if t.kind not in ("space", "comment")]
    reader = _Reader(found, set(_RENAMED.findall(query)))
    reader.read()
    return list(dict.fromkeys(reader.lines))


class _Reader:
    """Reads the pieces of a query: first labels and types, then properties."""

    def __init__(self, found: Sequence[Token], renamed: Iterable[str]) -> None:
        self._tokens = found
        self._around = _around(found)
        self._renamed = set(renamed)
        self._kinds: dict[str, set[str]] = {}  # labels and types by variable
        self._keys = {  # keys of maps that the query makes itself
            t.text for n, t in enumerate(found) if self._at(n + 1) == ":" and self._in_map(n + 1)
        }
        self.lines: list[str] = []

    def read(self) -> None:
        colons = [place for place, token in enumerate(self._tokens) if token.text == ":"]
        for place in colons:
            if not self._in_map(place):
                self._kind(place)
        for place in colons:
            if self._in_map(place):
                self._key(place - 1)
        for place, token in enumerate(self._tokens):
            if token.text == "." and self._named(place + 1):
                self._property(place)

    def _kind(self, place: int) -> None:
        """Look at the labels or types after a colon: names with | or & between them."""
        bracket = self._around[place]
        edge = self._at(bracket) == "[" and self._at(bracket - 1) == "-"
        there = _TYPES if edge else _LABELS
        variable = self._at(place - 1) if self._named(place - 1) else ""
        while True:
            place += 1
            while self._at(place) in (":", "!", "("):
                place += 1
            if not self._named(place):
                return
            name = self._name(place)
            if name not in there:
                self._say("edge type" if edge else "label", name, there)
            if variable:
                self._kinds.setdefault(variable, set()).add(name)
            if self._at(place + 1) not in ("|", "&"):
                return
            place += 1

    def _property(self, place: int) -> None:
        """Look at the property after a dot, unless the dot is part of a function's name."""
        end = place + 1
        while self._at(end + 1) == "." and self._named(end + 2):
            end += 2
        if self._at(end + 1) == "(" or self._of_procedure(place):
            return
        name, owner = self._name(place + 1), self._at(place - 1)
        if self._at(place - 2) == "." or not (self._named(place - 1) or owner in (")", "]")):
            return
        self._check(name, owner)

    def _key(self, place: int) -> None:
        """Look at a key of the map in the pattern of a node or an edge."""
        map_ = self._around[place]
        outer = self._around[map_]
        if outer < 0 or any(t.text.upper() == "WHERE" for t in self._tokens[outer:map_]):
            return
        kinds = [
            self._name(n + 1) for n in range(outer, map_)
            if self._at(n) == ":" and self._around[n] == outer
        ]  # fmt: skip
        self._of(self._name(place), [kind for kind in kinds if kind in _LABELS | _TYPES])

    def _check(self, name: str, owner: str) -> None:
        if owner in self._renamed:
            return
        if kinds := self._kinds.get(owner):
            self._of(name, sorted(kinds & (_LABELS | _TYPES).keys()))
        elif name not in _PROPERTIES | self._keys | _OF_TIMES:
            self._say("property", name, _PROPERTIES)

    def _of(self, name: str, kinds: Sequence[str]) -> None:
        """Say so if none of these labels or types has the property."""
        there: set[str] = set().union(*((_LABELS | _TYPES)[kind] for kind in kinds))
        if kinds and name not in there:
            self._say("property", name, there, f" of {' or '.join(kinds)}")

    def _say(self, what: str, name: str, there: Iterable[str], where: str = "") -> None:
        near = nearest(name, sorted(there))
        meant = f" (did you mean {near}?)" if near else ""
        found = "it is null everywhere" if what == "property" else "it matches nothing"
        self.lines.append(f"the graph has no {what} {name!r}{where}{meant}: {found}")

    def _in_map(self, place: int) -> bool:
        """Whether the innermost bracket is that of a map (or of a subquery)."""
        return self._at(self._around[place]) == "{"

    def _of_procedure(self, place: int) -> bool:
        """Whether a dot is part of the name after CALL."""
        while self._at(place) == "." and self._named(place - 1):
            place -= 2
        return self._at(place).upper() == "CALL"

    def _named(self, place: int) -> bool:
        within = 0 <= place < len(self._tokens)
        return within and self._tokens[place].kind in ("word", "quoted")

    def _name(self, place: int) -> str:
        return self._at(place).strip("`")

    def _at(self, place: int) -> str:
        return self._tokens[place].text if 0 <= place < len(self._tokens) else ""


def _around(found: Sequence[Token]) -> list[int]:
    """For each piece the place of the innermost bracket that it stands in, -1 for none."""
    opened, around = [-1], []
    for place, token in enumerate(found):
        if token.text in (")", "]", "}") and len(opened) > 1:
            opened.pop()
        around.append(opened[-1])
        if token.text in ("(", "[", "{"):
            opened.append(place)
    return around
