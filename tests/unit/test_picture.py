"""The picture of two groups, or of two runs, beside each other: what is drawn, and where."""

import itertools
import re
from pathlib import Path

import pytest

from kgbias.errors import UsageError
from kgbias.evidence.picture import (
    COLUMN_WIDTH,
    DEFAULT_OBJECTS,
    INCHES_PER_POINT,
    PAGE_WIDTH,
    BeliefLookup,
    PicturePair,
    Scene,
    lay_out_fan,
    lay_out_pair,
    text_width,
    wrap_text,
)
from kgbias.export import Filters, write_export
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING, BelievedEdge, Group, Score, TripleView
from kgbias.io.drawing import NEGATIVE_COLOR, NEUTRAL_COLOR, POSITIVE_COLOR
from kgbias.probe.result import Statement
from tests.conftest import require_modules
from tests.hostile import HOSTILE_TEXTS
from tests.report_data import measured_run
from tests.texts import Texts

A, B = Group("Ayes", "people"), Group("Bees", "people")
GROUPS = [(A.id, A.name), (B.id, B.name)]


def said(group: Group, predicate: str, object: str, count: int = 1, label: str = "") -> TripleView:
    scores = {"regard": Score("", 0.5, label)} if label else {}
    return TripleView(
        f"{group.name} {predicate} {object}", group.id, group.name, predicate, object, count, scores
    )


def lift(triple: TripleView, bits: float, verdict: str = "") -> BelievedEdge:
    s = Statement(triple.predicate, triple.object)
    p = (0.01,) * 4
    return BelievedEdge(*s.key, triple.group_id, bits, bits - 1, bits + 1, 8, *p, bits, "", verdict)


SAID = [
    said(A, "love", "rain", 3, "positive"),
    said(B, "hate", "rain", 1, "negative"),
    said(A, "are", "tall"),
    said(B, "are", "short"),
    said(A, "are", "here", 2),
    said(B, "fear", "here", 2),
    said(A, "like", "here", 1),
]


def inside(scene: Scene) -> bool:
    """Whether all texts and lines are within the picture, by the widths that it reckons with."""
    starts = {"start": 0.0, "middle": 0.5, "end": 1.0}
    edges = []
    for t in scene.texts:
        wide = text_width(t.text, t.size)
        left = t.x - starts[t.anchor] * wide
        edges += [(left, t.y - t.size), (left + wide, t.y)]
    edges += [p for s in scene.strokes for p in ((s.x1, s.y1), (s.x2, s.y2))]
    return all(-1 <= x <= scene.width + 1 and -1 <= y <= scene.height + 1 for x, y in edges)


def test_who_has_what(texts: Texts) -> None:
    pair = PicturePair.of_groups(GROUPS, SAID, SAID, BeliefLookup())
    assert [[thing.text for thing in column] for column in pair.columns] == [
        ["tall"],
        ["here", "rain"],
        ["short"],
    ]
    assert pair.totals == [1, 2, 1] and len(pair.triples) == 6  # "like here" is the weaker one
    texts.check_lines(pair.caption, "Ayes only,")
    assert "one is drawn" in pair.caption and pair.note == ""
    # What was filtered out is not called one's alone.
    short = PicturePair.of_groups(
        GROUPS, [t for t in SAID if t.predicate != "hate"], SAID, BeliefLookup()
    )
    assert "rain" not in [thing.text for column in short.columns for thing in column]


def test_what_is_believed_comes_first_and_is_marked() -> None:
    triples = [said(A, "are", f"thing {n}", 20 - n) for n in range(12)] + [said(B, "are", "b")]
    believed, unlikely = lift(triples[-2], 5.0, "believed"), lift(triples[0], -2.0)
    edges = {
        (A.id, Statement("are", "thing 11").words): believed,
        (A.id, Statement("are", "thing 0").words): unlikely,
    }
    pair = PicturePair.of_groups(GROUPS, triples, triples, BeliefLookup("model", edges))
    column = [thing.text for thing in pair.columns[0]]
    assert column == ["thing 11", *(f"thing {n}" for n in range(DEFAULT_OBJECTS - 1))]
    assert "believed ones first" in pair.caption and "model finds" in pair.note
    scene = lay_out_pair(pair, COLUMN_WIDTH)
    drawn = [s for s in scene.strokes if s.y1 == s.y2 and s.width not in (0.9, 1.8)]
    assert max(s.width for s in drawn) == pytest.approx(3.2)
    assert len([d for d in scene.dots]) == 2  # the belief, and the legend's
    words = [t.text for t in scene.texts]
    assert "believed of the group" in words and "not asked" in words


@pytest.mark.parametrize("width", [COLUMN_WIDTH, PAGE_WIDTH])
def test_it_fits_and_can_be_read(width: float) -> None:
    long = "words that go on and on until there is no room left for any of them at all " * 3
    triples = [
        said(g, f"{p} {long}", f"{o} {long if n else ''}", n + 1, label)
        for n, label in enumerate(("positive", "negative", "neutral"))
        for g in (A, B)
        for p in ("are", "love")
        for o in (f"x{n}", f"{g.name}{n}")
    ]
    names = [(A.id, "A group with a very long name indeed"), (B.id, "Bees")]
    scene = lay_out_pair(
        PicturePair.of_groups(names, triples, triples, BeliefLookup()), width, [long]
    )
    assert scene.width == pytest.approx(width / INCHES_PER_POINT)
    assert min(t.size for t in scene.texts) >= 6
    assert inside(scene)
    # The legend and the small print stand below everything else.
    legend = next(t.y for t in scene.texts if t.text == "regard:")
    foot = [t.y for t in scene.texts if t.text.startswith("words that go")]
    bars = max(s.y2 for s in scene.strokes if s.x1 == s.x2)
    assert bars < legend - 6 and max(foot) > legend
    colours = {s.colour for s in scene.strokes}
    assert {POSITIVE_COLOR, NEGATIVE_COLOR, NEUTRAL_COLOR} <= colours
    assert all(s.dash == "dashed" for s in scene.strokes if s.colour == NEGATIVE_COLOR)
    assert inside(lay_out_fan(triples[:12], BeliefLookup(), width, [long]))


def test_predicates_of_what_both_have_are_whole(texts: Texts) -> None:
    triples = [said(A, "should not be married to", "men"), said(B, "are often seen as", "men")]
    pair = PicturePair.of_groups(GROUPS, triples, triples, BeliefLookup())
    scene = lay_out_pair(pair, COLUMN_WIDTH)
    words = " ".join(t.text for t in scene.texts)
    texts.check_lines(words, "often seen")
    # Each line stands beside its own predicate, the first group's above.
    first, second = (s.y1 for s in scene.strokes[2:4])
    ends = [t.y for t in scene.texts if t.anchor == "end" and t.style == "italic"]
    assert first < min(ends[1:]) - 6 < second < max(ends)


def test_texts_are_cut_at_words() -> None:
    assert wrap_text("rain", 100, 6, 2) == ["rain"]
    assert wrap_text("should be treated with respect", 66, 6, 2) == [
        "should be treated",
        "with respect",
    ]
    assert wrap_text("should be treated with respect", 66, 6, 1) == ["should be treated…"]
    (cut,) = wrap_text("incomprehensibilities", 30, 6, 1)
    assert cut.endswith("…") and text_width(cut, 6) <= 30
    broken = wrap_text("some incomprehensibilities", 30, 6, 6)
    assert "".join(broken) == "someincomprehensibilities" and len(broken) > 3
    assert all(text_width(line, 6) <= 30 for line in broken)
    assert wrap_text("", 30, 6, 1) == []
    for text in HOSTILE_TEXTS:
        assert all("\n" not in line for line in wrap_text(text, 80, 6, 3))


def test_two_runs_that_speak_of_one_group(texts: Texts) -> None:
    first = [said(A, "love", "rain"), said(A, "are", "tall")]
    second = [said(A, "hate", "rain"), said(A, "are", "short")]
    held = BeliefLookup(
        "m", {(A.id, Statement("love", "rain").words): lift(first[0], 3.0, "believed")}
    )
    pair = PicturePair.of_runs(
        ["one", "two"], [first, second], [held, BeliefLookup("n", {("", ()): None})]
    )  # type: ignore[dict-item]
    assert [len(column) for column in pair.columns] == [1, 1, 1]
    texts.check_lines(pair.caption, "one only,")
    assert "each model finds" in pair.note
    assert lay_out_pair(pair, COLUMN_WIDTH).dots[0].colour == NEUTRAL_COLOR
    # Beliefs of one model alone are not drawn beside nothing.
    alone = PicturePair.of_runs(["a", "b"], [first, second], [held, BeliefLookup()])
    assert not any(b.model for b in alone.beliefs)


def test_nothing_and_too_much(store: SQLiteStore, tmp_path: Path, texts: Texts) -> None:
    with pytest.raises(UsageError, match="nothing to draw"):
        lay_out_pair(PicturePair.of_groups(GROUPS, [], [], BeliefLookup()), PAGE_WIDTH)
    require_modules("matplotlib")
    run = StoredRun(store, measured_run(store, [A, B], [f"thing {n}" for n in range(80)], 80))
    written = write_export(run, tmp_path / "a.svg", filters=Filters(("Bees", "Ayes")))
    assert 0 < written <= 4 * DEFAULT_OBJECTS
    with texts.raises(UsageError):
        write_export(run, tmp_path / "b.svg", filters=Filters(limit=120))
    sizes = []
    for width in (COLUMN_WIDTH, PAGE_WIDTH):
        write_export(run, tmp_path / "a.png", width=width)
        sizes.append(len((tmp_path / "a.png").read_bytes()))
    assert sizes[0] < sizes[1] and (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    write_export(run, tmp_path / "a.tex")
    text = (tmp_path / "a.tex").read_text()
    assert "\\begin{tikzpicture}" in text and CONTENT_WARNING in text


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_names_of_groups_are_whole_and_apart(
    store: SQLiteStore, tmp_path: Path, groups: int
) -> None:
    long = (
        "Native Hawaiian and other Pacific Islander people of the diaspora",
        "People with intellectual and developmental disabilities",
        "Elderly people who live alone in rural areas without transport",
    )[:groups]
    run = measured_run(store, tuple(Group(name, "many") for name in long), ["tea"])
    write_export(StoredRun(store, run), tmp_path / "p.tex", "tikz")
    text = (tmp_path / "p.tex").read_text()
    found = re.findall(r"bfseries\] at \(([\d.]+),([\d.]+)\) \{(.*)\};", text)
    words = " ".join(text for *_, text in found)
    for name in long:
        assert set(name.split()) <= set(words.split())
    for x in {x for x, *_ in found}:  # names under each other keep their distance
        heights = sorted(float(y) for at, y, _ in found if at == x)
        assert all(b - a > 8 for a, b in itertools.pairwise(heights))
