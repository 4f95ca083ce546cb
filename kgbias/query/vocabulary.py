"""The words of a Cypher query: those that the graph does not have, and the labels and edge types
that it can read. An engine takes a misspelt label, edge type or property for one without any nodes,
and answers with no rows or with nulls; so a query is also read against the shape of the graph."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from kgbias.errors import nearest
from kgbias.graph.cypher import KEYWORDS, Token, tokenise
from kgbias.graph.shape import EDGES, NODES

_LABELS = {n.label: {p.name for p in n.properties} for n in NODES}
_TYPES: dict[str, set[str]] = {}
for _edge in EDGES:
    _TYPES.setdefault(_edge.type, set()).update(p.name for p in _edge.properties)
_PROPERTIES = set().union(*_LABELS.values(), *_TYPES.values())
_TEMPORAL_PROPERTIES = frozenset(
    "year quarter month week day hour minute second epochMillis x y z".split()
)
_ALIAS = re.compile(r"\bAS\s+(\w+)", re.IGNORECASE)
_FUNCTION_KEYWORDS = frozenset(("COUNT", "COLLECT", "EXISTS"))  # keywords that are functions too


def explain_unknown_words(query: str) -> list[str]:
    """A line for each label, edge type and property of a query that no graph of kgbias has, with
    the nearest that there is. A property is looked for on the labels or types of its variable, if
    the query says these in one place. Raises UsageError for a query that cannot be read."""
    query_tokens = [t for t in tokenise(query) if t.kind not in ("space", "comment")]
    vocabulary_check = _VocabularyCheck(query_tokens, set(_ALIAS.findall(query)))
    vocabulary_check.check()
    return list(dict.fromkeys(vocabulary_check.lines))


def find_labels_and_types(query: str) -> frozenset[str] | None:
    """All labels and edge types that a query can read: those that it names, and all labels if a
    node of it has none and stands alone; None if it does not say, as `-->` does not. Raises
    UsageError for a query that cannot be read."""
    tokens = [t for t in tokenise(query) if t.kind not in ("space", "comment")]
    words = {t.text.upper() for t in tokens}
    # These match labels and types that they do not name.
    has_wildcard = bool(words & {"!", "%"})
    reads_anything = "CALL" in words or _has_kind_parameter(tokens) or _has_any_edge(tokens)
    if reads_anything or (has_wildcard and "-" in words):
        return None
    kinds = frozenset(t.text.strip("`") for t in tokens) & (_LABELS.keys() | _TYPES.keys())
    return kinds | _LABELS.keys() if has_wildcard or _has_any_node(tokens) else kinds


def _has_kind_parameter(tokens: Sequence[Token]) -> bool:
    """Whether a label or a type may be a parameter, as in `(n:$label)`. In a map one is a value."""
    texts = [*(t.text for t in tokens), ""]  # the last one stands for no bracket
    enclosing = _enclosing_brackets(tokens)
    return any(
        token.kind == "parameter"
        and texts[place - 1] in (":", "|", "&")
        and texts[enclosing[place]] != "{"
        for place, token in enumerate(tokens)
    )


def _has_any_edge(tokens: Sequence[Token]) -> bool:
    """Whether an edge may be of any type."""
    texts = [*(t.text for t in tokens), ""]
    enclosing = _enclosing_brackets(tokens)
    for place, text in enumerate(texts[:-1]):
        before = texts[place - 1] if place else ""
        if text == "-" and texts[place + 1] == "-":
            return True
        if text == "[" and before == "-":
            inside = (t for t, bracket in zip(texts, enclosing, strict=False) if bracket == place)
            if ":" not in inside:
                return True
    return False


def _has_any_node(tokens: Sequence[Token]) -> bool:
    """Whether a node may have any label."""
    texts = [*(t.text for t in tokens), "", ""]
    # A path without edges, as in `-[:OBJECT*0..]-`, is a node.
    if any(text == "*" and least[:1] in ("0", "$") for text, least in pairwise(texts)):
        return True
    enclosing = _enclosing_brackets(tokens)
    for place, text in enumerate(texts[:-2]):
        before = texts[place - 1] if place else ""
        if text == "(" and _is_any_node(tokens, texts, place) and before not in ("-", ">"):
            ends = (
                n
                for n in range(place + 1, len(tokens))
                if texts[n] == ")" and enclosing[n] == enclosing[place]
            )
            # Beside an edge, whose type says what is at its ends.
            if texts[next(ends, -2) + 1] not in ("-", "<"):
                return True
    return False


def _is_any_node(tokens: Sequence[Token], texts: Sequence[str], place: int) -> bool:
    """Whether a node without a label may begin here, and not the arguments of a function."""
    before = tokens[place - 1] if place else Token("", "")
    word = before.text.upper() if before.kind in ("word", "quoted") else ""
    if word and (word not in KEYWORDS or word in _FUNCTION_KEYWORDS):
        return False
    has_variable = tokens[place + 1 : place + 2] and tokens[place + 1].kind in ("word", "quoted")
    following = texts[place + 2] if has_variable else texts[place + 1]
    return following in (")", "{") or following.upper() == "WHERE"


class _VocabularyCheck:
    """Looks for the words of a query in the graph's shape: first labels and types, then properties.
    `lines` says which the graph does not have."""

    def __init__(self, query_tokens: Sequence[Token], aliases: Iterable[str]) -> None:
        self._tokens = query_tokens
        self._enclosing = _enclosing_brackets(query_tokens)
        self._aliases = set(aliases)
        self._kinds_by_variable: dict[str, set[str]] = {}  # labels and types by variable
        self._map_keys = {  # keys of maps that the query makes itself
            t.text
            for n, t in enumerate(query_tokens)
            if self._text_at(n + 1) == ":" and self._is_in_map(n + 1)
        }
        self.lines: list[str] = []

    def check(self) -> None:
        colons = [place for place, token in enumerate(self._tokens) if token.text == ":"]
        for place in colons:
            if not self._is_in_map(place):
                self._check_kinds(place)
        for place in colons:
            if self._is_in_map(place):
                self._check_key(place - 1)
        for place, token in enumerate(self._tokens):
            if token.text == "." and self._is_name(place + 1):
                self._check_property(place)

    def _check_kinds(self, place: int) -> None:
        """Look at the labels or types after a colon: names with | or & between them."""
        bracket = self._enclosing[place]
        edge = self._text_at(bracket) == "[" and self._text_at(bracket - 1) == "-"
        known_kinds = _TYPES if edge else _LABELS
        variable = self._text_at(place - 1) if self._is_name(place - 1) else ""
        while True:
            place += 1
            while self._text_at(place) in (":", "!", "("):
                place += 1
            if not self._is_name(place):
                return
            name = self._plain_name(place)
            if name not in known_kinds:
                self._add_line("edge type" if edge else "label", name, known_kinds)
            if variable:
                self._kinds_by_variable.setdefault(variable, set()).add(name)
            if self._text_at(place + 1) not in ("|", "&"):
                return
            place += 1

    def _check_property(self, place: int) -> None:
        """Look at the property after a dot, unless the dot is part of a function's name."""
        end = place + 1
        while self._text_at(end + 1) == "." and self._is_name(end + 2):
            end += 2
        if self._text_at(end + 1) == "(" or self._is_procedure(place):
            return
        name, owner = self._plain_name(place + 1), self._text_at(place - 1)
        if self._text_at(place - 2) == "." or not (self._is_name(place - 1) or owner in (")", "]")):
            return
        self._check_name(name, owner)

    def _check_key(self, place: int) -> None:
        """Look at a key of the map in the pattern of a node or an edge."""
        map_ = self._enclosing[place]
        outer = self._enclosing[map_]
        if outer < 0 or any(t.text.upper() == "WHERE" for t in self._tokens[outer:map_]):
            return
        kinds = [
            self._plain_name(n + 1)
            for n in range(outer, map_)
            if self._text_at(n) == ":" and self._enclosing[n] == outer
        ]
        self._check_owner(
            self._plain_name(place), [kind for kind in kinds if kind in _LABELS | _TYPES]
        )

    def _check_name(self, name: str, owner: str) -> None:
        if owner in self._aliases:
            return
        if kinds := self._kinds_by_variable.get(owner):
            self._check_owner(name, sorted(kinds & (_LABELS | _TYPES).keys()))
        elif name not in _PROPERTIES | self._map_keys | _TEMPORAL_PROPERTIES:
            self._add_line("property", name, _PROPERTIES)

    def _check_owner(self, name: str, kinds: Sequence[str]) -> None:
        """Say so if none of these labels or types has the property."""
        known_properties: set[str] = set().union(*((_LABELS | _TYPES)[kind] for kind in kinds))
        if kinds and name not in known_properties:
            self._add_line("property", name, known_properties, f" of {' or '.join(kinds)}")

    def _add_line(
        self, what: str, name: str, known_names: Iterable[str], owner_words: str = ""
    ) -> None:
        nearest_name = nearest(name, sorted(known_names))
        hint = f" (did you mean {nearest_name}?)" if nearest_name else ""
        effect = "it is null everywhere" if what == "property" else "it matches nothing"
        self.lines.append(f"the graph has no {what} {name!r}{owner_words}{hint}: {effect}")

    def _is_in_map(self, place: int) -> bool:
        """Whether the innermost bracket is that of a map (or of a subquery)."""
        return self._text_at(self._enclosing[place]) == "{"

    def _is_procedure(self, place: int) -> bool:
        """Whether a dot is part of the name after CALL."""
        while self._text_at(place) == "." and self._is_name(place - 1):
            place -= 2
        return self._text_at(place).upper() == "CALL"

    def _is_name(self, place: int) -> bool:
        is_inside = 0 <= place < len(self._tokens)
        return is_inside and self._tokens[place].kind in ("word", "quoted")

    def _plain_name(self, place: int) -> str:
        return self._text_at(place).strip("`")

    def _text_at(self, place: int) -> str:
        return self._tokens[place].text if 0 <= place < len(self._tokens) else ""


def _enclosing_brackets(query_tokens: Sequence[Token]) -> list[int]:
    """For each piece the place of the innermost bracket that it stands in, -1 for none."""
    open_places, enclosing = [-1], []
    for place, token in enumerate(query_tokens):
        if token.text in (")", "]", "}") and len(open_places) > 1:
            open_places.pop()
        enclosing.append(open_places[-1])
        if token.text in ("(", "[", "{"):
            open_places.append(place)
    return enclosing
