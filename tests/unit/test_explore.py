"""The explorer's columns, maps and page, as far as they need no browser."""

import base64
import json
import re
import sys
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import kgbias
from kgbias.errors import UsageError
from kgbias.explore import Explorer
from kgbias.explore.columns import ColumnBlock, LineTexts, quantise
from kgbias.explore.origins import read_origin
from kgbias.explore.statements import read_statement_table
from kgbias.explore.unit_maps import lay_out
from kgbias.graph.selection import Selection, count_echoes
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Group
from kgbias.io.progress import SilentProgress
from tests.arms_data import arms_run
from tests.hostile import CORPUS
from tests.report_data import measured_run

GROUPS = (Group("Women", "gender"), Group("Men", "gender"), Group("Sikhs", "religion"))
TYPES = {"u8": "u1", "u16": "<u2", "u32": "<u4", "i16": "<i2", "i32": "<i4"}


def unpacked(block: str, columns: dict[str, list[Any]]) -> dict[str, Any]:
    """What the page's data.js makes of a block."""
    data = zlib.decompress(base64.b64decode(block))
    found: dict[str, Any] = {}
    for name, (kind, offset, length) in columns.items():
        if kind == "text":
            found[name] = data[offset : offset + length].decode("utf-8")
        else:
            found[name] = np.frombuffer(data, TYPES[kind], length, offset).tolist()
    for name, (kind, *_) in columns.items():
        if kind == "text":
            units, at, texts = found[name].encode("utf-16-le"), 0, []
            for length in found[f"{name}/lengths"]:
                texts.append(units[2 * at : 2 * (at + length)].decode("utf-16-le"))
                at += length
            found[name] = texts
    return found


def held(page: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The head of a page and its blocks, unpacked."""
    scripts = dict(re.findall(r'<script type="[a-z/]+" id="([\w-]+)">(.*?)</script>', page))
    about = json.loads(scripts["about"])
    blocks = {
        name: unpacked(scripts[f"block-{name}"], columns)
        for name, columns in about["columns"].items()
    }
    return about, blocks


def test_columns_come_back() -> None:
    block = ColumnBlock()
    block.add_numbers("small", [0, 255])
    block.add_numbers("larger", [0, 70_000, 3])
    block.add_numbers("signed", [-5, 7], "i16")
    texts = [*(t.encode("utf-8", "replace").decode() for t in CORPUS), "", "😀"]
    block.add_texts("text", texts)
    block.add_lists("list", [[1, 2], [], [3]])
    back = unpacked(block.encode(), block.columns)
    assert back["small"] == [0, 255] and block.columns["small"][0] == "u8"
    assert back["larger"] == [0, 70_000, 3] and block.columns["larger"][0] == "u32"
    assert back["signed"] == [-5, 7]
    assert back["text"] == texts
    assert back["list"] == [1, 2, 3] and back["list/lengths"] == [2, 0, 1]


def test_a_line_that_repeats_is_held_once() -> None:
    lines, block = LineTexts(), ColumnBlock()
    assert [lines.add(t) for t in ("a\nb", "b\nc", "a\nb")] == [0, 1, 0]
    lines.write_to(block, "text")
    back = unpacked(block.encode(), block.columns)
    assert back["text/line"] == ["a", "b", "c"]
    assert back["text"] == [0, 1, 1, 2]


def test_values_are_whole_multiples() -> None:
    assert quantise([0.12345, -1, float("nan"), 99], 10_000).tolist() == [
        1234,
        -10_000,
        -32_768,
        32_767,
    ]


def test_a_map_puts_an_object_into_the_unit_that_it_was_said_of_most() -> None:
    # Units 0 and 1 share object 2, said of 1 more often; object 3 is of unit 2 alone; 4 of none.
    unit = np.array([0, 0, 1, 1, 2])
    thing = np.array([0, 2, 1, 2, 3])
    weight = np.array([5, 1, 1, 3, 1])
    layout = lay_out(unit, thing, weight, 3, 5)
    assert layout.home.tolist() == [0, 1, 1, 2, -1]
    assert np.isnan(layout.objects[4]).all()
    away = np.linalg.norm(layout.objects[:4] - layout.units[layout.home[:4]], axis=1)
    assert (away <= layout.radii[layout.home[:4]]).all()
    # The discs do not touch, and the tie is the cosine of (5, 1) and (1, 3) over what they share.
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert np.linalg.norm(layout.units[a] - layout.units[b]) > layout.radii[[a, b]].sum()
    ((a, b, like),) = layout.ties.tolist()
    assert (a, b) == (0, 1)
    assert abs(like - 3 / (26 * 10) ** 0.5) < 1e-12
    again = lay_out(unit, thing, weight, 3, 5)
    assert np.array_equal(layout.objects, again.objects, equal_nan=True)


def test_the_page_holds_every_statement_and_its_origin(store: SQLiteStore, tmp_path: Path) -> None:
    run = measured_run(store, GROUPS, ["food", "rain", "music"])
    with kgbias.open(tmp_path / "kgbias.db") as study:
        path = study.explore(run.name, tmp_path / "explorer.html")
        triples = study.run(run.name).triples()
    about, blocks = held(path.read_text("utf-8"))
    core, origins = blocks["core"], blocks["origins"]
    rows = {
        (core["group"][g], core["predicate"][p], core["object"][o])
        for g, p, o in zip(
            core["row.group"], core["row.predicate"], core["row.object"], strict=True
        )
    }
    assert rows == {(t.group, t.predicate, t.object) for t in triples}
    assert sum(core["said.count"]) == sum(t.count for t in triples) == 60
    assert about["answers"] == {"answers": 60, "left_out": 60 - sum(origins["row.kept"])}
    assert bytes(blocks["ids"]["triple"][:10]).hex() in {t.id for t in triples}
    # The text of the first prompt, of its lines.
    lines = [origins["text/line"][n] for n in origins["text"][: origins["text/lengths"][0]]]
    assert lines[0].startswith("Q: ") and lines[1] == "A:"


def test_a_statement_that_names_another_group_says_so(store: SQLiteStore, tmp_path: Path) -> None:
    """As figures and tests leave it out: in the page, and as a server gives it."""
    run = measured_run(store, GROUPS, ["food", "rain", "the men"])
    with kgbias.open(tmp_path / "kgbias.db") as study:
        path = study.explore(run.name, tmp_path / "explorer.html")
        stored = study.run(run.name).stored
        about, blocks = held(path.read_text("utf-8"))
        placed = read_statement_table([stored], Selection(), SilentProgress())
        served = {n: read_origin(placed, n)["names"] for n in range(placed.rows)}
    core, origins = blocks["core"], blocks["origins"]
    rows = {
        n: (core["group"][core["row.group"][n]], core["object"][core["row.object"][n]])
        for n in range(about["rows"])
    }
    named = dict(zip(origins["names.row"], origins["names.others"], strict=True))
    assert {rows[n] for n in named} == {(g.name, "the men") for g in GROUPS if g.name != "Men"}
    assert set(named.values()) == {"Men"}
    assert {n: names for n, names in served.items() if names} == named


def test_two_arms_are_two_sources(store: SQLiteStore, tmp_path: Path) -> None:
    run = arms_run(store)
    page = tmp_path / "explorer.html"
    with kgbias.open(tmp_path / "kgbias.db") as study:
        study.explore(run.name, page)
        about, blocks = held(page.read_text("utf-8"))
        study.explore([study.run(run.name)], page, arm="prefix", min_acceptability=0.8)
        (one,) = held(page.read_text("utf-8"))[0]["sources"]
        with pytest.raises(UsageError, match="named twice"):
            study.explore([run.name, run.name], page)
    sources = [(s["arm"], s["start"], s["end"], s["threshold"]) for s in about["sources"]]
    assert sources == [("none", 0, 4, 0.5), ("prefix", 4, 7, 0.5)]
    assert (one["arm"], one["start"], one["end"], one["threshold"]) == ("prefix", 0, 3, 0.8)
    core = blocks["core"]
    ends = np.cumsum(core["row.said"])
    counts = [sum(part) for part in np.split(core["said.count"], ends[:-1])]
    objects = [core["object"][n] for n in core["row.object"]]
    assert list(zip(objects, counts, strict=True)) == [
        ("smoke", 1),
        ("songs", 3),
        ("songs", 1),
        ("murderer 4000", 2),
        ("songs", 1),
        ("cruel", 4),
        ("murderer 4000", 1),
    ]
    # The two answers that were shown what they say, as `kgbias.graph.selection` counts them.
    echoed = [
        objects[n]
        for n, end in enumerate(ends)
        for e in core["said.echo"][end - core["row.said"][n] : end]
        if e
    ]
    assert echoed == ["songs", "songs"]
    assert sum(count_echoes(run).values()) == 2


def test_a_notebook_shows_the_page_and_a_picture_of_it(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = (Group("Women", "gender"), Group("<b>&\x00 people", "gender"))
    run = measured_run(store, groups, ["food", "</svg><script>"])
    with kgbias.open(tmp_path / "kgbias.db") as study:
        shown = study.run(run.name).explore()
    assert shown.save(tmp_path / "explorer.html").read_text("utf-8") == shown.page
    picture = ElementTree.fromstring(shown.picture)
    assert [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")] == [
        "Women",
        "<b>&\ufffd people",
    ]
    data, _ = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "data:image/svg+xml;base64," in data["text/html"]
    assert shown.widget.page == shown.page
    monkeypatch.setitem(sys.modules, "anywidget", None)
    without = Explorer(shown.page, shown.picture)._repr_mimebundle_()
    assert "pip install" in without["text/html"] and "image/svg+xml" in without["text/html"]
