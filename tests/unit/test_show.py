"""What commands print: tables that hold all of what they are given, and text that stays text."""

import ast
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kgbias.cli import show
from kgbias.io.columns import Column
from kgbias.io.rows import Rows
from kgbias.probe.precision import Precision
from kgbias.report.findings import small_interval
from kgbias.report.summary import _percent_cells
from kgbias.stats.estimate import Estimate

HEAD = ("name", Column("n", "d"), "words")
ROWS = [
    ("a", 1, "x" * 300),
    ("b \x1b[31m\nc\u202e", 20_000, "[red]d[/red] :smile:"),
    ("漢字", 3, ""),
]


def test_a_table_in_a_pipe_is_whole_and_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show.print_table(HEAD, ROWS)
    head, first, second, third = capsys.readouterr().out.splitlines()
    assert head == "name            n  words"
    assert first == f"a               1  {'x' * 300}"
    assert second == "b �[31m�c�  20000  [red]d[/red] :smile:"
    assert third == "漢字            3"  # each of the two is two columns wide
    show.print_table(("", ""), [("b", 1)], indent=2)
    assert capsys.readouterr().out == "  b  1\n"


def test_a_table_in_a_terminal_folds_texts_and_cuts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show.print_table(HEAD, ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60 and "".join(lines).count("x") == 300
    monkeypatch.setenv("COLUMNS", "10")
    show.print_table((Column("number", "d"),) * 3, [(123_456_789, 123_456_789, 123_456_789)])
    assert capsys.readouterr().out.split()[-3:] == ["123456789"] * 3


def test_a_figure_stands_beside_its_interval(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column("group"), Column("lift", "+.1f", interval=True))
    rows = Rows(
        [
            {"group": "a", "lift": Estimate(1.0, -0.5, 2.5, 9)},
            {"group": "b", "lift": Estimate.missing(1, 3.0)},
            {"group": "c", "lift": None},
        ],
        columns,
    )
    show.print_rows(rows)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["group", "lift", "95%", "interval"],
        ["a", "+1.0", "-0.5", "to", "+2.5"],
        ["b", "+3.0", "-"],
        ["c", "-", "-"],
    ]
    show.print_rows(rows, "group")
    assert capsys.readouterr().out.split() == ["group", "a", "b", "c"]


def test_what_a_command_shows_is_json_or_text(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows([{"a": 1}])
    output = show.Output({"run": "r", "rows": rows}, lambda: show.say("in words"), lambda: 3)
    assert show.print_output(output, as_json=True) == 3
    assert json.loads(capsys.readouterr().out) == {"run": "r", "rows": [{"a": 1}]}
    assert show.print_output(output, as_json=False) == 3
    assert capsys.readouterr().out == "in words\n"


def test_a_line_is_one_line_and_json_has_no_nan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show.say("a\nb\x1b[2J", "c")
    assert capsys.readouterr().out == "a�b�[2J\nc\n"
    show.say("d", err=True)
    assert capsys.readouterr().err == "d\n"
    show.print_json({"x": math.nan, "y": "\u202e"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"x": None, "y": "\u202e"} and "\u202e" in out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show.print_json({"y": "\u202e"})
    assert "\u202e" not in capsys.readouterr().out


def test_commands_print_through_it_alone() -> None:
    """What a model says is made safe in one place: no command prints past it."""
    folder = Path(show.__file__).parent
    for path in folder.glob("*.py"):
        if path.stem == "show":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "click.echo", "click.secho", "printable"), path
                assert not called.endswith("stdout.write"), path


def test_an_interval_without_width_is_printed_nowhere() -> None:
    """Figures over units that all agree: the interval is left out, or a dash stands for it."""
    same = Estimate(0.5, 0.5, 0.5, 12)
    precision = Precision("m", "float16", 0.0, 0.0, Estimate(1.0, 1.0, 1.0, 60), 2.0)
    assert "tau 1.000, kept" in str(precision)
    precision = replace(precision, tau=Estimate(0.98, 0.97, 0.99, 60))
    assert "tau 0.980 (0.970 to 0.990), " in str(precision)
    assert "to" not in _percent_cells(same, ".0f") and not small_interval(same, 1, "+.2f")
