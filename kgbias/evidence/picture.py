"""A picture of statements as a scene of texts and lines, which matplotlib draws in a page or a file
and TikZ in a paper.

Two groups stand beside each other: what is said of one alone on the outside, what is said of both
in the middle. A line joins a group and what is said of it; its colour is the regard of the
statement, its width how much likelier the model finds it after the group's names or, if the model
was not asked, how often it was said. One group, or three and more, stand on the left and what is
said on the right.

A scene is laid out once, in points. The report, SVG, PDF and PNG draw it by matplotlib;
`kgbias.export.figures` writes it as TikZ. Colours and the style of all figures are in
`kgbias.io.drawing`.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from kgbias.errors import UsageError
from kgbias.evidence.evidence_table import StoredBeliefs
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BelievedEdge, TripleView, node_id
from kgbias.io.drawing import (
    INK_COLOR,
    LINE_COLOR,
    NEGATIVE_COLOR,
    NEUTRAL_COLOR,
    POSITIVE_COLOR,
    SOFT_COLOR,
    figure_style,
)
from kgbias.io.text import printable, replace_non_xml
from kgbias.probe.belief import BELIEVED
from kgbias.probe.result import Statement

INCHES_PER_POINT = 1 / 72  # inches
COLUMN_WIDTH, PAGE_WIDTH = 3.3, 7.0
"""Widths in inches: a column of a two-column paper, and both."""
MAX_EDGES = 60  # more are unreadable on a page
DEFAULT_OBJECTS = 8  # of one group alone, of the other, and of both, unless the caller says which
_TONES = {"positive": POSITIVE_COLOR, "negative": NEGATIVE_COLOR}
_MAX_LIFT_BITS = 4.0  # bits at which a line is widest
_MIN_STROKE_POINTS, _MAX_STROKE_POINTS = 0.5, 3.2  # points

GroupStatement = tuple[str, str]  # the id of a group, and the words of a statement


Anchor = Literal["start", "middle", "end"]
Style = Literal["", "bold", "italic"]
Dash = Literal["", "dashed", "dotted"]


@dataclass(frozen=True, slots=True)
class SceneText:
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
    """A line between two points; `is_curved`: it leaves and arrives horizontally."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    colour: str
    dash: Dash = ""
    is_curved: bool = False


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
    texts: list[SceneText] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)


@dataclass(frozen=True)
class BeliefLookup:
    """What a model believes about the groups of a run, by group and words; `model` is its name.
    Without any, nothing was asked."""

    model: str = ""
    edges: Mapping[GroupStatement, BelievedEdge] = field(default_factory=dict)

    @classmethod
    def from_edges(cls, run: StoredRun, belief_edges: StoredBeliefs | None) -> "BeliefLookup":
        """What was `belief_edges` (`kgbias.evidence.evidence_table.read_beliefs`)."""
        if belief_edges is None:
            return cls()
        belief_run, edges = belief_edges
        statement_words = {
            s.key: s.words for s in (Statement(*w) for w in run.statements(belief_run.id))
        }
        return cls(
            belief_run.model.title,
            {
                (e.group_id, statement_words[e.predicate_id, e.object_id]): e
                for e in edges
                if (e.predicate_id, e.object_id) in statement_words
            },
        )

    def find_edge(self, triple: TripleView) -> BelievedEdge | None:
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

    def is_believed(self, triple: TripleView) -> bool:
        edge = self.find_edge(triple)
        return edge is not None and edge.verdict == BELIEVED


@dataclass(frozen=True, slots=True)
class PictureObject:
    """An object, with the strongest statement that joins it to each side, if any, and how many more
    there are."""

    text: str
    strongest_triples: tuple[TripleView | None, TripleView | None]
    hidden_counts: tuple[int, int]

    @property
    def triples(self) -> list[TripleView]:
        return [t for t in self.strongest_triples if t is not None]


class PicturePair:
    """What stands beside each other, by object: what the first alone has, what both have, and what
    the second alone has. The sides are two groups of one run, or two runs that speak of one group.

    Args:
        names: of the two sides.
        triples_by_side: the statements to draw from, of one arm, for each side.
        all_objects: the ids of all objects of each side, so that what the other side has, though
            filtered out, is not called one's alone.
        beliefs: of the model of each side.
        max_objects: how many objects to draw in each of the three columns: those believed first,
            then those said most often; None draws all.
        between_runs: whether the sides are runs, by which things are said, and not groups, of which
            they are.

    Of several statements that join a side and an object, one is drawn, chosen alike."""

    def __init__(
        self,
        names: Sequence[str],
        triples_by_side: Sequence[Iterable[TripleView]],
        all_objects: Sequence[Collection[str]],
        beliefs: Sequence[BeliefLookup],
        max_objects: int | None = DEFAULT_OBJECTS,
        *,
        between_runs: bool = False,
    ) -> None:
        self.names, self._between_runs = list(names), between_runs
        self.beliefs = (
            list(beliefs) if all(b.model for b in beliefs) else [BeliefLookup(), BeliefLookup()]
        )
        by_object: dict[str, tuple[list[TripleView], list[TripleView]]] = defaultdict(
            lambda: ([], [])
        )
        for side, triples in enumerate(triples_by_side):
            for triple in sorted(
                triples, key=lambda triple: (-triple.count, triple.predicate, triple.object)
            ):
                by_object[node_id("object", triple.object)][side].append(triple)
        columns: list[list[PictureObject]] = [[], [], []]
        for key, (first_triples, second_triples) in by_object.items():
            first_strongest, second_strongest = (
                min(side_triples, key=lambda triple: self._strength(triple, side), default=None)
                for side, side_triples in enumerate((first_triples, second_triples))
            )
            hidden_counts = (max(0, len(first_triples) - 1), max(0, len(second_triples) - 1))
            picture_object = PictureObject(
                (first_triples or second_triples)[0].object,
                (first_strongest, second_strongest),
                hidden_counts,
            )
            if first_triples and second_triples:
                columns[1].append(picture_object)
            elif key not in all_objects[1 if first_triples else 0]:
                columns[0 if first_triples else 2].append(picture_object)
        self.totals = [len(column) for column in columns]
        self.columns = [sorted(column, key=self._order)[:max_objects] for column in columns]

    @classmethod
    def of_groups(
        cls,
        groups: Sequence[tuple[str, str]],
        triples: Iterable[TripleView],
        all_triples: Iterable[TripleView],
        beliefs: BeliefLookup,
        max_objects: int | None = DEFAULT_OBJECTS,
    ) -> "PicturePair":
        """Two groups, each as (id, name), of one run: its statements to draw from, and all of
        them."""
        by_group: dict[str, list[TripleView]] = {id: [] for id, _ in groups}
        objects_by_group: dict[str, set[str]] = {id: set() for id, _ in groups}
        for triple in triples:
            if triple.group_id in by_group:
                by_group[triple.group_id].append(triple)
        for triple in all_triples:
            if triple.group_id in objects_by_group:
                objects_by_group[triple.group_id].add(node_id("object", triple.object))
        names = [name for _, name in groups]
        return cls(
            names,
            list(by_group.values()),
            list(objects_by_group.values()),
            [beliefs] * 2,
            max_objects,
        )

    @classmethod
    def of_runs(
        cls,
        names: Sequence[str],
        triples_by_run: Sequence[Sequence[TripleView]],
        beliefs: Sequence[BeliefLookup],
    ) -> "PicturePair":
        """Two runs, by what each says about one group."""
        all_objects = [
            {node_id("object", t.object) for t in run_triples} for run_triples in triples_by_run
        ]
        return cls(names, triples_by_run, all_objects, beliefs, between_runs=True)

    def _strength(self, triple: TripleView, side: int) -> tuple[Any, ...]:
        held = self.beliefs[side].is_believed(triple)
        return not held, -triple.count, triple.predicate, triple.object

    def _order(self, picture_object: PictureObject) -> tuple[Any, ...]:
        believed = any(
            b.is_believed(t)
            for t, b in zip(picture_object.strongest_triples, self.beliefs, strict=True)
            if t
        )
        return not believed, -min(t.count for t in picture_object.triples), picture_object.text

    @cached_property
    def edges(self) -> list[tuple[TripleView, BeliefLookup]]:
        """The statements that are drawn, each with what its side's model believes."""
        return [
            (t, beliefs)
            for column in self.columns
            for picture_object in column
            for t, beliefs in zip(picture_object.strongest_triples, self.beliefs, strict=True)
            if t is not None
        ]

    @property
    def triples(self) -> list[TripleView]:
        """The statements that are drawn."""
        return [t for t, _ in self.edges]

    @property
    def caption(self) -> str:
        """What is drawn out of how many."""
        (first_name, second_name), (first_total, shared_total, second_total) = (
            self.names,
            self.totals,
        )
        drawn_count = sum(map(len, self.columns))
        order_note = ""
        if drawn_count < sum(self.totals):
            believed_first = "believed ones first, then " if self.beliefs[0].model else ""
            order_note = f", {believed_first}the most often said"
        hidden_note = (
            f" Of several statements that join a {'run' if self._between_runs else 'group'} and "
            f"an object, "
            "one is drawn."
            if any(
                max(picture_object.hidden_counts)
                for column in self.columns
                for picture_object in column
            )
            else ""
        )
        preposition = "by" if self._between_runs else "of"
        return (
            f"{drawn_count:,} of {sum(self.totals):,} objects are drawn{order_note}: "
            f"{first_total:,} were said {preposition} "
            f"{first_name} only, {shared_total:,} {preposition} both, {second_total:,} "
            f"{preposition} {second_name} only.{hidden_note}"
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


def describe_too_many(count: int) -> str:
    """What to do about more statements than can be read."""
    return (
        f"{count} triples are too many to read in one picture: `limit` {MAX_EDGES} keeps the most "
        "frequent; `per_group`, `group` and `min_count` narrow it"
    )


def regard_colour(triple: TripleView) -> str:
    """The colour of a statement's regard; grey if it is neutral or was not measured."""
    score = triple.scores.get("regard")
    return _TONES.get(score.label, NEUTRAL_COLOR) if score is not None else NEUTRAL_COLOR


# ---- text of a known width ----
_BOLD_FACTOR = 1.15  # how much wider bold is
_NARROW_LETTERS, _WIDE_LETTERS = frozenset("fijlrtI.,:;'|!()[] -/"), frozenset("mwMW@%&—…")


def text_width(text: str, size: float) -> float:
    """About how wide a text is in points, on the safe side for a sans-serif face."""
    ems = 0.0
    for letter in text:
        if letter in _NARROW_LETTERS:
            ems += 0.40
        elif letter in _WIDE_LETTERS:
            ems += 0.95
        else:
            ems += 0.62 if letter.islower() else 0.7
        # From here on, letters are mostly as wide as they are high: Chinese, Japanese, Korean.
        ems += 0.35 if ord(letter) > 0x2E80 else 0.0
    return ems * size


_MAX_NAME_LINES = 6  # of a group's name, which is whole if it is not very long


def wrap_text(text: str, width: float, size: float, max_lines: int) -> list[str]:
    """A text in at most `max_lines` lines of this width, a word that is wider in several; what has
    no room is cut at a word, if a word fits, and marked with an ellipsis."""
    words = replace_non_xml(printable(" ".join(text.split()))).split()
    lines: list[str] = []
    while words and len(lines) < max_lines:
        head = _cut_line(words[0], width, size)
        if 0 < len(head) < len(words[0]) and len(lines) + 1 < max_lines:
            lines.append(head)
            words[0] = words[0][len(head) :]
            continue
        line = words[0]
        word_count = 1
        while word_count < len(words) and text_width(f"{line} {words[word_count]}", size) <= width:
            line = f"{line} {words[word_count]}"
            word_count += 1
        words = words[word_count:]
        is_last = len(lines) + 1 == max_lines
        if text_width(line, size) > width or (is_last and words):
            line = _cut_line(line, width - text_width("…", size), size) + "…"
        lines.append(line)
    return lines


def _cut_line(line: str, width: float, size: float) -> str:
    """As many of its words as fit; of a first word that does not fit, as many letters."""
    fits = 0
    used_width = 0.0
    for letter in line:
        used_width += text_width(letter, size)
        if used_width > width:
            break
        fits += 1
    if fits == len(line):
        return line
    # What ends where a word ends needs no cut inside a word.
    head = line[: fits + 1].rpartition(" ")[0]
    return head or line[:fits]


# ---- two groups ----
def lay_out_pair(pair: PicturePair, width: float, foot: Sequence[str] = ()) -> Scene:
    """Two groups beside each other, `width` inches wide, over a legend and the lines of `foot`.
    Raises UsageError if nothing is left to draw."""
    if not pair.triples:
        raise UsageError("nothing to draw: no triple passes the filters")
    scene = Scene(width / INCHES_PER_POINT)
    size = 6 if width < 5 else 8
    gap = scene.width * (0.13 if width < 5 else 0.12)
    column_width = (scene.width - 2 * gap) / 3
    bars = (column_width + gap / 2, scene.width - column_width - gap / 2)
    top = _add_heads(scene, pair, bars, gap + column_width * 0.9, size)
    line = 1.18 * size
    blocks = [
        [_object_lines(picture_object, column_width, size) for picture_object in column]
        for column in pair.columns
    ]
    heights = [sum(len(b) * line + 0.6 * line for b in column) for column in blocks]
    bottom = top + max(heights)
    for bar in bars:
        scene.strokes.append(Stroke(bar, top - 0.3 * line, bar, bottom, 2.2, INK_COLOR))
    places: Sequence[tuple[float, Anchor]] = (
        (column_width, "end"),
        (scene.width / 2, "middle"),
        (scene.width - column_width, "start"),
    )
    for column, column_lines, height, (x, anchor) in zip(
        pair.columns, blocks, heights, places, strict=True
    ):
        y = top + (max(heights) - height) / 2
        for picture_object, rows in zip(column, column_lines, strict=True):
            _add_object(scene, pair, picture_object, rows, x, y, anchor, column_width, bars, size)
            y += (len(rows) + 0.6) * line
    scene.height = _add_legend(scene, pair.edges, bottom + line, size)
    _add_footnotes(scene, foot)
    return scene


def _add_heads(
    scene: Scene, pair: PicturePair, bars: Sequence[float], width: float, size: float
) -> float:
    """The names of the groups over their bars, and what the columns are; the place below them."""
    font_size = 8 if size < 8 else 9  # sizes at which LaTeX has its fonts
    line = 1.2 * font_size
    names = [
        wrap_text(name, width / _BOLD_FACTOR, font_size, _MAX_NAME_LINES) for name in pair.names
    ]
    max_lines = max(map(len, names))
    for x, name_lines in zip(bars, names, strict=True):
        for n, text in enumerate(name_lines):
            y = (n + 1 + max_lines - len(name_lines)) * line
            scene.texts.append(SceneText(x, y, text, font_size, "middle", "bold"))
    y = max_lines * line + 1.35 * size
    edge = scene.width - bars[1]
    columns: Sequence[tuple[float, str, Anchor]] = (
        (bars[0] - 6, "only", "end"),
        (scene.width / 2, "both", "middle"),
        (scene.width - edge + 6, "only", "start"),
    )
    for x, text, anchor in columns:
        scene.texts.append(SceneText(x, y, text, size, anchor, "italic", SOFT_COLOR))
    return y + size


LineSide = Literal["", "first", "second"]
LineRow = Sequence[tuple[str, LineSide | None]]


def _object_lines(picture_object: PictureObject, width: float, size: float) -> list[LineRow]:
    """The lines of an object: predicates, then itself (None). A predicate that only one of two
    groups has stands on the side of that group."""
    predicates = list(dict.fromkeys(t.predicate for t in picture_object.triples))
    rows: list[LineRow]
    if len(predicates) > 1:
        first, second = (wrap_text(lead, width, size, 2) for lead in predicates)
        if text_width("".join(first + second), size) + 2 * size <= width:
            rows = [[("".join(first), "first"), ("".join(second), "second")]]
        else:
            rows = [[(text, "first")] for text in first]
            rows += [[(text, "second")] for text in second]
    else:
        rows = [[(text, "")] for text in wrap_text(predicates[0], width, size, 2)]
    return rows + [[(text, None)] for text in wrap_text(picture_object.text, width, size, 2)]


def _add_object(
    scene: Scene,
    pair: PicturePair,
    picture_object: PictureObject,
    rows: Sequence[LineRow],
    x: float,
    y: float,
    anchor: Anchor,
    column_width: float,
    bars: Sequence[float],
    size: float,
) -> None:
    """An object with its predicates from the place (x, y), and the lines that join it to the
    bars."""
    line = 1.18 * size
    text_extent = min(column_width, max(text_width(text, size) for row in rows for text, _ in row))
    heights = []
    for own_side in ("first", "second"):
        own = [n for n, row in enumerate(rows) if any(side == own_side for _, side in row)]
        heights.append(y + ((own[0] + own[-1] + 1) / 2 if own else len(rows) / 2) * line)
    for index, text, side in ((index, *part) for index, row in enumerate(rows) for part in row):
        text_x, text_anchor = x, anchor
        if side in ("first", "second"):
            text_anchor, text_extent = ("start" if side == "first" else "end"), column_width
            text_x = x - column_width / 2 if side == "first" else x + column_width / 2
        style: Style = "" if side is None else "italic"
        colour = INK_COLOR if side is None else SOFT_COLOR
        scene.texts.append(
            SceneText(text_x, y + (index + 0.78) * line, text, size, text_anchor, style, colour)
        )
    ends = {
        "end": (x + 4, x + 4),
        "start": (x - 4, x - 4),
        "middle": (x - text_extent / 2 - 4, x + text_extent / 2 + 4),
    }[anchor]
    for index, triple in enumerate(picture_object.strongest_triples):
        if triple is not None:
            _add_edge(scene, bars[index], ends[index], heights[index], triple, pair.beliefs[index])


def _add_edge(
    scene: Scene, x1: float, x2: float, y: float, triple: TripleView, beliefs: BeliefLookup
) -> None:
    """The line of one statement, with a dot at its end if it is believed."""
    stroke_width, dash = _stroke_shape(triple, beliefs)
    scene.strokes.append(Stroke(x1, y, x2, y, stroke_width, regard_colour(triple), dash))
    if beliefs.is_believed(triple):
        scene.dots.append(Dot(x2, y, 2.0, regard_colour(triple)))


def _stroke_shape(triple: TripleView, beliefs: BeliefLookup) -> tuple[float, Dash]:
    """A line's width and dashes."""
    dashed: Dash = "dashed" if regard_colour(triple) == NEGATIVE_COLOR else ""
    if not beliefs.model:
        return _width_by_count(triple.count), dashed
    edge = beliefs.find_edge(triple)
    if edge is None or math.isnan(edge.lift):
        return 0.9, "dotted"
    return _width_by_lift(edge.lift), dashed


def _width_by_lift(bits: float) -> float:
    return _MIN_STROKE_POINTS + (_MAX_STROKE_POINTS - _MIN_STROKE_POINTS) * min(
        1.0, max(0.0, bits) / _MAX_LIFT_BITS
    )


def _width_by_count(count: int) -> float:
    return min(_MAX_STROKE_POINTS, 0.7 + 0.5 * math.log2(max(1, count)))


# ---- legend and foot ----
def _add_legend(
    scene: Scene, edges: Sequence[tuple[TripleView, BeliefLookup]], y: float, size: float
) -> float:
    """What colours, widths and dots mean, in as many rows as the width needs; the place below."""
    tones = {regard_colour(t) for t, _ in edges}
    rows: list[list[tuple[str, Stroke | Dot | None]]] = [
        [
            ("regard:", None),
            *(
                (
                    name,
                    Stroke(0, 0, 13, 0, 1.8, colour, "dashed" if colour == NEGATIVE_COLOR else ""),
                )
                for name, colour in (
                    ("negative", NEGATIVE_COLOR),
                    ("neutral", NEUTRAL_COLOR),
                    ("positive", POSITIVE_COLOR),
                )
                if colour in tones
            ),
        ]
    ]
    if any(beliefs.model for _, beliefs in edges):
        rows.append(
            [
                ("lift in bits:", None),
                *(
                    (name, Stroke(0, 0, 13, 0, _width_by_lift(bits), SOFT_COLOR))
                    for name, bits in (("0 or less", 0), ("2", 2), ("4 or more", 4))
                ),
            ]
        )
        belief_row: list[tuple[str, Stroke | Dot | None]] = []
        if any(beliefs.is_believed(t) for t, beliefs in edges):
            belief_row.append(("believed of the group", Dot(0, 0, 2.0, SOFT_COLOR)))
        if any(_stroke_shape(t, beliefs)[1] == "dotted" for t, beliefs in edges):
            belief_row.append(("not asked", Stroke(0, 0, 13, 0, 0.9, SOFT_COLOR, "dotted")))
        rows.append(belief_row)
    else:
        counts = sorted({1, *(t.count for t, _ in edges)})
        shown_counts = dict.fromkeys((counts[0], counts[len(counts) // 2], counts[-1]))
        rows.append(
            [
                ("said:", None),
                *(
                    (f"{count}×", Stroke(0, 0, 13, 0, _width_by_count(count), SOFT_COLOR))
                    for count in shown_counts
                ),
            ]
        )
    x = 2.0
    for row in filter(None, rows):
        row_width = sum(text_width(text, size) + (20 if mark else 8) for text, mark in row)
        if x > 2.0 and x + row_width > scene.width:
            x, y = 2.0, y + 1.45 * size
        for text, mark in row:
            if isinstance(mark, Stroke):
                scene.strokes.append(Stroke(x, y, x + 13, y, mark.width, mark.colour, mark.dash))
                x += 16
            elif isinstance(mark, Dot):
                scene.dots.append(Dot(x + 3, y, mark.radius, mark.colour))
                x += 8
            scene.texts.append(SceneText(x, y + 0.36 * size, text, size, colour=SOFT_COLOR))
            x += text_width(text, size) + 6
        x += 8
    return y + 1.5 * size


def _add_footnotes(scene: Scene, lines: Sequence[str]) -> None:
    """Small print below everything."""
    font_size = 6
    y = scene.height + font_size
    for line in filter(None, lines):
        for text in wrap_text(line, scene.width - 4, font_size, 8):
            scene.texts.append(SceneText(2, y, text, font_size, colour=SOFT_COLOR))
            y += 1.25 * font_size
    scene.height = y


# ---- one group, or three and more ----
def lay_out_fan(
    triples: Collection[TripleView], beliefs: BeliefLookup, width: float, foot: Sequence[str] = ()
) -> Scene:
    """Groups on the left, objects on the right, in the order that lets few lines cross. Raises
    UsageError if there are too many statements to read, or none."""
    rows = _list_fan_rows(triples)
    scene = Scene(width / INCHES_PER_POINT)
    size = 6 if width < 5 else 8
    step, top = 1.5 * size, 1.2 * size
    left, middle, right = (scene.width * share for share in (0.26, 0.40, 0.66))
    font_size = 8 if size < 8 else 9
    names = {
        row.triple.group: (
            top + row.group_height * step,
            wrap_text(row.triple.group, (left - 6) / _BOLD_FACTOR, font_size, _MAX_NAME_LINES),
        )
        for row in rows
    }
    heads: dict[str, float] = {}  # where a group's lines begin
    lowest = 0.0
    for name, (y, name_lines) in sorted(names.items(), key=lambda named: named[1][0]):
        half_height = len(name_lines) * 0.6 * font_size
        heads[name] = max(y, lowest + half_height)
        lowest = heads[name] + half_height + 0.3 * font_size
        for n, text in enumerate(name_lines):
            text_y = heads[name] + (n - (len(name_lines) - 1) / 2) * 1.2 * font_size + 0.36 * size
            scene.texts.append(SceneText(left - 4, text_y, text, font_size, "end", "bold"))
    for place, row in enumerate(rows):
        triple = row.triple
        y = top + place * step
        stroke_width, dash = _stroke_shape(triple, beliefs)
        scene.strokes.append(
            Stroke(
                left,
                heads[triple.group],
                middle,
                y,
                stroke_width,
                regard_colour(triple),
                dash,
                True,
            )
        )
        if beliefs.is_believed(triple):
            scene.dots.append(Dot(middle, y, 2.0, regard_colour(triple)))
        words = wrap_text(triple.predicate, right - middle - 10, size, 1)
        scene.texts += [
            SceneText(middle + 5, y + 0.36 * size, w, size, "start", "italic", SOFT_COLOR)
            for w in words
        ]
        if row.label_height is not None:
            ends = (top + (place - 0.3) * step, top + (row.last_row_of_object + 0.3) * step)
            scene.strokes.append(Stroke(right - 3, ends[0], right - 3, ends[1], 0.8, LINE_COLOR))
            text_y = top + row.label_height * step + 0.36 * size
            for text in wrap_text(triple.object, scene.width - right - 2, size, 1):
                scene.texts.append(SceneText(right, text_y, text, size))
    legend_top = max(top + len(rows) * step, lowest) + 0.5 * size
    scene.height = _add_legend(scene, [(triple, beliefs) for triple in triples], legend_top, size)
    _add_footnotes(scene, foot)
    return scene


class _FanRow(NamedTuple):
    """A line of a fan, counted from the top. The label of an object stands in the middle of its
    lines, and is drawn with the first of them."""

    triple: TripleView
    group_height: float
    label_height: float | None
    last_row_of_object: int


def _list_fan_rows(triples: Collection[TripleView]) -> list[_FanRow]:
    triples = list(triples)
    if not triples:
        raise UsageError("nothing to draw: no triple passes the filters")
    if len(triples) > MAX_EDGES:
        raise UsageError(describe_too_many(len(triples)))
    groups = list(dict.fromkeys(triple.group_id for triple in triples))
    by_object: dict[str, list[TripleView]] = {}
    for triple in triples:
        by_object.setdefault(node_id("object", triple.object), []).append(triple)

    def mean_place(said: list[TripleView]) -> float:
        return sum(groups.index(t.group_id) for t in said) / len(said)

    ordered_objects = sorted(
        by_object.values(),
        key=lambda object_triples: (mean_place(object_triples), object_triples[0].object),
    )
    step = len(triples) / len(groups)
    rows: list[_FanRow] = []
    for object_triples in ordered_objects:
        first_row = len(rows)
        for n, triple in enumerate(
            sorted(object_triples, key=lambda triple: groups.index(triple.group_id))
        ):
            height = (groups.index(triple.group_id) + 0.5) * step - 0.5
            label = first_row + (len(object_triples) - 1) / 2 if n == 0 else None
            rows.append(_FanRow(triple, height, label, first_row + len(object_triples) - 1))
    return rows


# ---- drawn by matplotlib ----
def draw_figure(scene: Scene) -> Any:
    """The scene as a matplotlib figure."""
    with figure_style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Circle, PathPatch
        from matplotlib.path import Path as Curve

        figure = Figure(figsize=(scene.width * INCHES_PER_POINT, scene.height * INCHES_PER_POINT))
        # Not by pyplot, which keeps every figure, and is not safe between threads.
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, scene.width)
        axes.set_ylim(scene.height, 0)
        axes.axis("off")
        dashes: dict[str, Any] = {"": "-", "dashed": (0, (2.2, 1.0)), "dotted": (0, (0.8, 1.6))}
        for stroke in scene.strokes:
            bend = (stroke.x2 - stroke.x1) / 2 if stroke.is_curved else 0.0
            curve = Curve(
                [
                    (stroke.x1, stroke.y1),
                    (stroke.x1 + bend, stroke.y1),
                    (stroke.x2 - bend, stroke.y2),
                    (stroke.x2, stroke.y2),
                ],
                [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4],
            )
            axes.add_patch(
                PathPatch(
                    curve,
                    fill=False,
                    edgecolor=stroke.colour,
                    linewidth=stroke.width,
                    linestyle=dashes[stroke.dash],
                    capstyle="butt",
                )
            )
        for dot in scene.dots:
            axes.add_patch(Circle((dot.x, dot.y), dot.radius, facecolor=dot.colour, linewidth=0))
        side = {"start": "left", "middle": "center", "end": "right"}
        for text in scene.texts:
            axes.text(
                text.x,
                text.y,
                text.text,
                size=text.size,
                color=text.colour,
                ha=side[text.anchor],
                va="baseline",
                weight="bold" if text.style == "bold" else "normal",
                style="italic" if text.style == "italic" else "normal",
                # A dollar sign of a model's would begin a formula.
                parse_math=False,
            )
        return figure
