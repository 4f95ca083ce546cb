"""A picture of statements as a scene of texts and lines, which matplotlib draws in a page or a file
and TikZ in a paper.

Two groups stand beside each other: what is said of one alone on the outside, what is said of both
in the middle. A line joins a group and what is said of it; its colour is the regard of the
statement, its width how much likelier the model finds it after the group's names or, if the model
was not asked, how often it was said. One group, or three and more, stand on the left and what is
said on the right."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from kgbias.errors import UsageError
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BelievedEdge, BeliefRun, TripleView, node_id
from kgbias.io.drawing import INK_COLOR, LINE_COLOR, NEGATIVE_COLOR, NEUTRAL_COLOR, POSITIVE_COLOR, SOFT_COLOR, figure_style
from kgbias.io.text import printable, xml_safe
from kgbias.probe.belief import BELIEVED
from kgbias.probe.result import Statement

POINT = 1 / 72  # inches
COLUMN, PAGE = 3.3, 7.0
"""Widths in inches: a column of a two-column paper, and both."""
MOST_EDGES = 60  # more are unreadable on a page
MOST = 8  # of one group alone, of the other, and of both, unless the caller says which
_TONES = {"positive": POSITIVE_COLOR, "negative": NEGATIVE_COLOR}
_WIDEST = 4.0  # bits at which a line is widest
_THIN, _THICK = 0.5, 3.2  # points

Key = tuple[str, str]  # the id of a group, and the words of a statement


Anchor = Literal["start", "middle", "end"]
Style = Literal["", "bold", "italic"]
Dash = Literal["", "dashed", "dotted"]


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text, from its baseline; places and sizes in points, y downwards."""

    x: float
    y: float
    text: str
    size: float
    anchor: Anchor = "start"
    style: Style = ""
    colour: str = INK_COLOR


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line between two points; `curved`: it leaves and arrives horizontally."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    colour: str
    dash: Dash = ""
    curved: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    radius: float
    colour: str


@dataclass
class Scene:
    """What a picture shows; `width` and `height` in points."""

    width: float
    height: float = 0.0
    texts: list[Text] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)


@dataclass(frozen=True)
class Beliefs:
    """What a model believes about the groups of a run, by group and words; `model` is its name.
    Without any, nothing was asked."""

    model: str = ""
    edges: Mapping[Key, BelievedEdge] = field(default_factory=dict)

    @classmethod
    def of(
        cls, run: StoredRun, found: tuple[BeliefRun, Sequence[BelievedEdge]] | None
    ) -> "Beliefs":
        """What was `found` (`kgbias.evidence.joint.read_beliefs`)."""
        if found is None:
            return cls()
        believing, edges = found
        asked = {s.key: s.words for s in (Statement(*w) for w in run.statements(believing.id))}
        return cls(
            believing.model.title,
            {
                (e.group_id, asked[e.predicate_id, e.object_id]): e
                for e in edges
                if (e.predicate_id, e.object_id) in asked
            },
        )

    def about(self, triple: TripleView) -> BelievedEdge | None:
        """What the model believes of a statement; None if it was not asked."""
        return self.edges.get((triple.group_id, Statement(triple.predicate, triple.object).words))

    @property
    def note(self) -> str:
        """What a lift is; "" without any."""
        if not self.model:
            return ""
        return (
            f"Lift: how many bits likelier {self.model} finds a statement after the group's names "
            "than after those of the other groups."
        )

    def held(self, triple: TripleView) -> bool:
        edge = self.about(triple)
        return edge is not None and edge.verdict == BELIEVED


@dataclass(frozen=True, slots=True)
class Thing:
    """An object, with the strongest statement that joins it to each side, if any, and how many more
    there are."""

    text: str
    said: tuple[TripleView | None, TripleView | None]
    more: tuple[int, int]

    @property
    def own(self) -> list[TripleView]:
        return [t for t in self.said if t is not None]


class Pair:
    """What stands beside each other, by object: what the first alone has, what both have, and what
    the second alone has. The sides are two groups of one run, or two runs that speak of one group.

    Args:
        names: of the two sides.
        said: the statements to draw from, of one arm, for each side.
        ever: the ids of all objects of each side, so that what the other side has, though filtered
            out, is not called one's alone.
        beliefs: of the model of each side.
        most: how many objects to draw in each of the three columns: those believed first, then
            those said most often; None draws all.
        by: whether the sides are runs, by which things are said, and not groups, of which they are.

    Of several statements that join a side and an object, one is drawn, chosen alike."""

    def __init__(
        self,
        names: Sequence[str],
        said: Sequence[Iterable[TripleView]],
        ever: Sequence[Collection[str]],
        beliefs: Sequence[Beliefs],
        most: int | None = MOST,
        *,
        by: bool = False,
    ) -> None:
        self.names, self._by = list(names), by
        self.beliefs = list(beliefs) if all(b.model for b in beliefs) else [Beliefs(), Beliefs()]
        found: dict[str, tuple[list[TripleView], list[TripleView]]] = defaultdict(lambda: ([], []))
        for side, triples in enumerate(said):
            for t in sorted(triples, key=lambda t: (-t.count, t.predicate, t.object)):
                found[node_id("object", t.object)][side].append(t)
        columns: list[list[Thing]] = [[], [], []]
        for key, (first, second) in found.items():
            one, two = (
                min(own, key=lambda t: self._strength(t, side), default=None)
                for side, own in enumerate((first, second))
            )
            more = (max(0, len(first) - 1), max(0, len(second) - 1))
            thing = Thing((first or second)[0].object, (one, two), more)
            if first and second:
                columns[1].append(thing)
            elif key not in ever[1 if first else 0]:
                columns[0 if first else 2].append(thing)
        self.totals = [len(column) for column in columns]
        self.columns = [sorted(column, key=self._order)[:most] for column in columns]

    @classmethod
    def of_groups(
        cls,
        groups: Sequence[tuple[str, str]],
        triples: Iterable[TripleView],
        ever: Iterable[TripleView],
        beliefs: Beliefs,
        most: int | None = MOST,
    ) -> "Pair":
        """Two groups, each as (id, name), of one run: its statements to draw from, and all of
        them."""
        said: dict[str, list[TripleView]] = {id: [] for id, _ in groups}
        known: dict[str, set[str]] = {id: set() for id, _ in groups}
        for t in triples:
            if t.group_id in said:
                said[t.group_id].append(t)
        for t in ever:
            if t.group_id in known:
                known[t.group_id].add(node_id("object", t.object))
        names = [name for _, name in groups]
        return cls(names, list(said.values()), list(known.values()), [beliefs] * 2, most)

    @classmethod
    def of_runs(
        cls,
        names: Sequence[str],
        said: Sequence[Sequence[TripleView]],
        beliefs: Sequence[Beliefs],
    ) -> "Pair":
        """Two runs, by what each says about one group."""
        ever = [{node_id("object", t.object) for t in own} for own in said]
        return cls(names, said, ever, beliefs, by=True)

    def _strength(self, triple: TripleView, side: int) -> tuple[Any, ...]:
        held = self.beliefs[side].held(triple)
        return not held, -triple.count, triple.predicate, triple.object

    def _order(self, thing: Thing) -> tuple[Any, ...]:
        believed = any(b.held(t) for t, b in zip(thing.said, self.beliefs, strict=True) if t)
        return not believed, -min(t.count for t in thing.own), thing.text

    @cached_property
    def edges(self) -> list[tuple[TripleView, Beliefs]]:
        """The statements that are drawn, each with what its side's model believes."""
        return [
            (t, beliefs)
            for column in self.columns
            for thing in column
            for t, beliefs in zip(thing.said, self.beliefs, strict=True)
            if t is not None
        ]

    @property
    def triples(self) -> list[TripleView]:
        """The statements that are drawn."""
        return [t for t, _ in self.edges]

    @property
    def caption(self) -> str:
        """What is drawn out of how many."""
        (a, b), (first, both, second) = self.names, self.totals
        drawn = sum(map(len, self.columns))
        which = (
            "" if drawn == sum(self.totals)
            else ", believed ones first, then the most often said" if self.beliefs[0].model
            else ", the most often said"
        )  # fmt: skip
        several = (
            f" Of several statements that join a {'run' if self._by else 'group'} and an object, "
            "one is drawn."
            if any(max(thing.more) for column in self.columns for thing in column)
            else ""
        )
        of = "by" if self._by else "of"
        return (
            f"{drawn:,} of {sum(self.totals):,} objects are drawn{which}: {first:,} were said {of} "
            f"{a} only, {both:,} {of} both, {second:,} {of} {b} only.{several}"
        )

    @property
    def note(self) -> str:
        """What a lift is; "" without any."""
        models = {b.model for b in self.beliefs}
        return (
            replace(self.beliefs[0], model="each model").note
            if len(models) > 1
            else (self.beliefs[0].note)
        )


def too_many(count: int) -> str:
    """What to do about more statements than can be read."""
    return (
        f"{count} triples are too many to read in one picture: `limit` {MOST_EDGES} keeps the most "
        "frequent; `per_group`, `group` and `min_count` narrow it"
    )


def tone(triple: TripleView) -> str:
    """The colour of a statement's regard; grey if it is neutral or was not measured."""
    score = triple.scores.get("regard")
    return _TONES.get(score.label, NEUTRAL_COLOR) if score is not None else NEUTRAL_COLOR


# ---- text of a known width ----
_BOLD = 1.15  # how much wider bold is
_NARROW, _WIDE = frozenset("fijlrtI.,:;'|!()[] -/"), frozenset("mwMW@%&—…")


def width_of(text: str, size: float) -> float:
    """About how wide a text is in points, on the safe side for a sans-serif face."""
    ems = 0.0
    for c in text:
        ems += 0.40 if c in _NARROW else 0.95 if c in _WIDE else 0.62 if c.islower() else 0.7
        ems += 0.35 if ord(c) > 0x2E80 else 0.0
    return ems * size


_NAME_LINES = 6  # of a group's name, which is whole if it is not very long


def wrapped(text: str, width: float, size: float, most: int) -> list[str]:
    """A text in at most `most` lines of this width; what has no room is cut at a word, if a word
    fits, and marked with an ellipsis."""
    words = xml_safe(printable(" ".join(text.split()))).split()
    lines: list[str] = []
    while words and len(lines) < most:
        line = words[0]
        taken = 1
        while taken < len(words) and width_of(f"{line} {words[taken]}", size) <= width:
            line = f"{line} {words[taken]}"
            taken += 1
        words = words[taken:]
        last = len(lines) + 1 == most
        if width_of(line, size) > width or (last and words):
            line = _cut(line, width - width_of("…", size), size) + "…"
        lines.append(line)
    return lines


def _cut(line: str, width: float, size: float) -> str:
    """As many of its words as fit; of a first word that does not fit, as many letters."""
    fits = 0
    wide = 0.0
    for letter in line:
        wide += width_of(letter, size)
        if wide > width:
            break
        fits += 1
    if fits == len(line):
        return line
    # What ends where a word ends needs no cut inside a word.
    head = line[: fits + 1].rpartition(" ")[0]
    return head or line[:fits]


# ---- two groups ----
def two_groups(pair: Pair, width: float, foot: Sequence[str] = ()) -> Scene:
    """Two groups beside each other, `width` inches wide, over a legend and the lines of `foot`.
    Raises UsageError if nothing is left to draw."""
    if not pair.triples:
        raise UsageError("nothing to draw: no triple passes the filters")
    scene = Scene(width / POINT)
    size = 6 if width < 5 else 8
    gap = scene.width * (0.13 if width < 5 else 0.12)
    room = (scene.width - 2 * gap) / 3
    bars = (room + gap / 2, scene.width - room - gap / 2)
    top = _heads(scene, pair, bars, gap + room * 0.9, size)
    line = 1.18 * size
    blocks = [[_lines(thing, room, size) for thing in column] for column in pair.columns]
    heights = [sum(len(b) * line + 0.6 * line for b in column) for column in blocks]
    bottom = top + max(heights)
    for x in bars:
        scene.strokes.append(Stroke(x, top - 0.3 * line, x, bottom, 2.2, INK_COLOR))
    places: Sequence[tuple[float, Anchor]] = (
        (room, "end"), (scene.width / 2, "middle"), (scene.width - room, "start")
    )  # fmt: skip
    for column, own, height, (x, anchor) in zip(pair.columns, blocks, heights, places, strict=True):
        y = top + (max(heights) - height) / 2
        for thing, rows in zip(column, own, strict=True):
            _object(scene, pair, thing, rows, x, y, anchor, room, bars, size)
            y += (len(rows) + 0.6) * line
    scene.height = _legend(scene, pair.edges, bottom + line, size)
    _foot(scene, foot)
    return scene


def _heads(scene: Scene, pair: Pair, bars: Sequence[float], width: float, size: float) -> float:
    """The names of the groups over their bars, and what the columns are; the place below them."""
    big = 8 if size < 8 else 9  # sizes at which LaTeX has its fonts
    line = 1.2 * big
    names = [wrapped(name, width / _BOLD, big, _NAME_LINES) for name in pair.names]
    most = max(map(len, names))
    for x, own in zip(bars, names, strict=True):
        for n, text in enumerate(own):
            y = (n + 1 + most - len(own)) * line
            scene.texts.append(Text(x, y, text, big, "middle", "bold"))
    y = most * line + 1.35 * size
    edge = scene.width - bars[1]
    columns: Sequence[tuple[float, str, Anchor]] = (
        (bars[0] - 6, "only", "end"), (scene.width / 2, "both", "middle"),
        (scene.width - edge + 6, "only", "start"),
    )  # fmt: skip
    for x, text, anchor in columns:
        scene.texts.append(Text(x, y, text, size, anchor, "italic", SOFT_COLOR))
    return y + size


Side = Literal["", "first", "second"]
Row = Sequence[tuple[str, Side | None]]


def _lines(thing: Thing, width: float, size: float) -> list[Row]:
    """The lines of an object: predicates, then itself (None). A predicate that only one of two
    groups has stands on the side of that group."""
    own = list(dict.fromkeys(t.predicate for t in thing.own))
    rows: list[Row]
    if len(own) > 1:
        leads = ["".join(wrapped(lead, width, size, 1)) for lead in own]
        sides: Row = [(leads[0], "first"), (leads[1], "second")]
        fits = sum(width_of(lead, size) for lead in leads) + 2 * size <= width
        rows = [sides] if fits else [[side] for side in sides]
    else:
        rows = [[(text, "")] for text in wrapped(own[0], width, size, 2)]
    return rows + [[(text, None)] for text in wrapped(thing.text, width, size, 2)]


def _object(
    scene: Scene,
    pair: Pair,
    thing: Thing,
    rows: Sequence[Row],
    x: float,
    y: float,
    anchor: Anchor,
    room: float,
    bars: Sequence[float],
    size: float,
) -> None:
    """An object with its predicates from the place (x, y), and the lines that join it to the
    bars."""
    line = 1.18 * size
    wide = min(room, max(width_of(text, size) for row in rows for text, _ in row))
    heights = [y + len(rows) * line / 2] * 2
    for n, text, side in ((n, *part) for n, row in enumerate(rows) for part in row):
        at, where = x, anchor
        if side in ("first", "second"):
            where, wide = ("start" if side == "first" else "end"), room
            at = x - room / 2 if side == "first" else x + room / 2
            heights[side == "second"] = y + (n + 0.5) * line
        style: Style = "" if side is None else "italic"
        colour = INK_COLOR if side is None else SOFT_COLOR
        scene.texts.append(Text(at, y + (n + 0.78) * line, text, size, where, style, colour))
    ends = {"end": (x + 4, x + 4), "start": (x - 4, x - 4),
            "middle": (x - wide / 2 - 4, x + wide / 2 + 4)}[anchor]  # fmt: skip
    for n, triple in enumerate(thing.said):
        if triple is not None:
            _edge(scene, bars[n], ends[n], heights[n], triple, pair.beliefs[n])


def _edge(
    scene: Scene, x1: float, x2: float, y: float, triple: TripleView, beliefs: Beliefs
) -> None:
    """The line of one statement, with a dot at its end if it is believed."""
    wide, dash = _shape(triple, beliefs)
    scene.strokes.append(Stroke(x1, y, x2, y, wide, tone(triple), dash))
    if beliefs.held(triple):
        scene.dots.append(Dot(x2, y, 2.0, tone(triple)))


def _shape(triple: TripleView, beliefs: Beliefs) -> tuple[float, Dash]:
    """A line's width and dashes."""
    dashed: Dash = "dashed" if tone(triple) == NEGATIVE_COLOR else ""
    if not beliefs.model:
        return _by_count(triple.count), dashed
    edge = beliefs.about(triple)
    if edge is None or math.isnan(edge.lift):
        return 0.9, "dotted"
    return _by_lift(edge.lift), dashed


def _by_lift(bits: float) -> float:
    return _THIN + (_THICK - _THIN) * min(1.0, max(0.0, bits) / _WIDEST)


def _by_count(count: int) -> float:
    return min(_THICK, 0.7 + 0.5 * math.log2(max(1, count)))


# ---- legend and foot ----
def _legend(
    scene: Scene, edges: Sequence[tuple[TripleView, Beliefs]], y: float, size: float
) -> float:
    """What colours, widths and dots mean, in as many rows as the width needs; the place below."""
    tones = {tone(t) for t, _ in edges}
    rows: list[list[tuple[str, Stroke | Dot | None]]] = [
        [("regard:", None), *(
            (name, Stroke(0, 0, 13, 0, 1.8, colour, "dashed" if colour == NEGATIVE_COLOR else ""))
            for name, colour in (
                ("negative", NEGATIVE_COLOR), ("neutral", NEUTRAL_COLOR), ("positive", POSITIVE_COLOR),
            )
            if colour in tones
        )]
    ]  # fmt: skip
    if any(beliefs.model for _, beliefs in edges):
        rows.append([("lift in bits:", None), *(
            (name, Stroke(0, 0, 13, 0, _by_lift(bits), SOFT_COLOR))
            for name, bits in (("0 or less", 0), ("2", 2), ("4 or more", 4))
        )])  # fmt: skip
        last: list[tuple[str, Stroke | Dot | None]] = []
        if any(beliefs.held(t) for t, beliefs in edges):
            last.append(("believed of the group", Dot(0, 0, 2.0, SOFT_COLOR)))
        if any(_shape(t, beliefs)[1] == "dotted" for t, beliefs in edges):
            last.append(("not asked", Stroke(0, 0, 13, 0, 0.9, SOFT_COLOR, "dotted")))
        rows.append(last)
    else:
        counts = sorted({1, *(t.count for t, _ in edges)})
        shown = dict.fromkeys((counts[0], counts[len(counts) // 2], counts[-1]))
        rows.append([("said:", None), *(
            (f"{count}×", Stroke(0, 0, 13, 0, _by_count(count), SOFT_COLOR)) for count in shown
        )])  # fmt: skip
    x = 2.0
    for row in filter(None, rows):
        wide = sum(width_of(text, size) + (20 if mark else 8) for text, mark in row)
        if x > 2.0 and x + wide > scene.width:
            x, y = 2.0, y + 1.45 * size
        for text, mark in row:
            if isinstance(mark, Stroke):
                scene.strokes.append(Stroke(x, y, x + 13, y, mark.width, mark.colour, mark.dash))
                x += 16
            elif isinstance(mark, Dot):
                scene.dots.append(Dot(x + 3, y, mark.radius, mark.colour))
                x += 8
            scene.texts.append(Text(x, y + 0.36 * size, text, size, colour=SOFT_COLOR))
            x += width_of(text, size) + 6
        x += 8
    return y + 1.5 * size


def _foot(scene: Scene, lines: Sequence[str]) -> None:
    """Small print below everything."""
    small = 6
    y = scene.height + small
    for line in filter(None, lines):
        for text in wrapped(line, scene.width - 4, small, 8):
            scene.texts.append(Text(2, y, text, small, colour=SOFT_COLOR))
            y += 1.25 * small
    scene.height = y


# ---- one group, or three and more ----
def fan(
    triples: Collection[TripleView], beliefs: Beliefs, width: float, foot: Sequence[str] = ()
) -> Scene:
    """Groups on the left, objects on the right, in the order that lets few lines cross. Raises
    UsageError if there are too many statements to read, or none."""
    rows = _rows(triples)
    scene = Scene(width / POINT)
    size = 6 if width < 5 else 8
    step, top = 1.5 * size, 1.2 * size
    left, middle, right = (scene.width * share for share in (0.26, 0.40, 0.66))
    big = 8 if size < 8 else 9
    names = {
        t.group: (top + height * step, wrapped(t.group, (left - 6) / _BOLD, big, _NAME_LINES))
        for t, height, *_ in rows
    }
    heads: dict[str, float] = {}  # where a group's lines begin
    low = 0.0
    for name, (y, own) in sorted(names.items(), key=lambda named: named[1][0]):
        half = len(own) * 0.6 * big
        heads[name] = max(y, low + half)
        low = heads[name] + half + 0.3 * big
        for n, text in enumerate(own):
            at = heads[name] + (n - (len(own) - 1) / 2) * 1.2 * big + 0.36 * size
            scene.texts.append(Text(left - 4, at, text, big, "end", "bold"))
    for place, (t, _, label, last) in enumerate(rows):
        y = top + place * step
        wide, dash = _shape(t, beliefs)
        scene.strokes.append(Stroke(left, heads[t.group], middle, y, wide, tone(t), dash, True))
        if beliefs.held(t):
            scene.dots.append(Dot(middle, y, 2.0, tone(t)))
        words = wrapped(t.predicate, right - middle - 10, size, 1)
        scene.texts += [Text(middle + 5, y + 0.36 * size, w, size, "start", "italic", SOFT_COLOR)
                        for w in words]  # fmt: skip
        if label is not None:
            ends = (top + (place - 0.3) * step, top + (last + 0.3) * step)
            scene.strokes.append(Stroke(right - 3, ends[0], right - 3, ends[1], 0.8, LINE_COLOR))
            at = top + label * step + 0.36 * size
            for text in wrapped(t.object, scene.width - right - 2, size, 1):
                scene.texts.append(Text(right, at, text, size))
    below = max(top + len(rows) * step, low) + 0.5 * size
    scene.height = _legend(scene, [(t, beliefs) for t in triples], below, size)
    _foot(scene, foot)
    return scene


def _rows(
    triples: Collection[TripleView],
) -> list[tuple[TripleView, float, float | None, int]]:
    """The lines of a fan from the top: a triple, the place of its group, that of its object's label
    if on this line (in the middle of the object's lines), and the last of these lines."""
    triples = list(triples)
    if not triples:
        raise UsageError("nothing to draw: no triple passes the filters")
    if len(triples) > MOST_EDGES:
        raise UsageError(too_many(len(triples)))
    groups = list(dict.fromkeys(t.group_id for t in triples))
    by_object: dict[str, list[TripleView]] = {}
    for t in triples:
        by_object.setdefault(node_id("object", t.object), []).append(t)

    def mean_place(said: list[TripleView]) -> float:
        return sum(groups.index(t.group_id) for t in said) / len(said)

    ordered = sorted(by_object.values(), key=lambda said: (mean_place(said), said[0].object))
    step = len(triples) / len(groups)
    made: list[tuple[TripleView, float, float | None, int]] = []
    for said in ordered:
        first = len(made)
        for n, t in enumerate(sorted(said, key=lambda t: groups.index(t.group_id))):
            height = (groups.index(t.group_id) + 0.5) * step - 0.5
            label = first + (len(said) - 1) / 2 if n == 0 else None
            made.append((t, height, label, first + len(said) - 1))
    return made


# ---- drawn by matplotlib ----
def drawn(scene: Scene) -> Any:
    """The scene as a matplotlib figure."""
    with figure_style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Circle, PathPatch
        from matplotlib.path import Path as Curve

        figure = Figure(figsize=(scene.width * POINT, scene.height * POINT))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, scene.width)
        axes.set_ylim(scene.height, 0)
        axes.axis("off")
        dashes: dict[str, Any] = {"": "-", "dashed": (0, (2.2, 1.0)), "dotted": (0, (0.8, 1.6))}
        for s in scene.strokes:
            bend = (s.x2 - s.x1) / 2 if s.curved else 0.0
            curve = Curve(
                [(s.x1, s.y1), (s.x1 + bend, s.y1), (s.x2 - bend, s.y2), (s.x2, s.y2)],
                [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4],
            )
            axes.add_patch(
                PathPatch(curve, fill=False, edgecolor=s.colour, linewidth=s.width,
                          linestyle=dashes[s.dash], capstyle="butt")
            )  # fmt: skip
        for d in scene.dots:
            axes.add_patch(Circle((d.x, d.y), d.radius, facecolor=d.colour, linewidth=0))
        side = {"start": "left", "middle": "center", "end": "right"}
        for t in scene.texts:
            axes.text(
                t.x, t.y, t.text, size=t.size, color=t.colour, ha=side[t.anchor], va="baseline",
                weight="bold" if t.style == "bold" else "normal",
                style="italic" if t.style == "italic" else "normal", parse_math=False,
            )  # fmt: skip
        return figure
