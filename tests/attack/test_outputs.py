"""What is written and printed: whole, with the permissions of the user's own, and only text."""

import os
import pty
import re
import shutil
import stat
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from kgbias.graph.types import CONTENT_WARNING
from kgbias.io.columns import Column
from kgbias.report.tables import COUNT_COLUMN, GROUP_COLUMN, Table, table_latex
from tests.attack.commands import ROOT, Commands
from tests.attack.worlds import ROWS, measure_options
from tests.conftest import skip_or_fail
from tests.hostile import CORPUS
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.attack

EXPORTS = ("jsonl", "csv", "graphml", "gexf", "node-link", "turtle", "dot", "tikz", "svg", "cypher")


@pytest.mark.parametrize("argv", [("report", "r"), ("export", "r", "--format", "csv")])
def test_what_is_no_file_is_written_to_and_stays(
    commands: Commands, world: Path, argv: tuple[str, ...]
) -> None:
    pipe = world / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    thread.start()
    ended = commands.run(*argv, "-o", pipe, cwd=world)
    thread.join(timeout=DEADLINE_SECONDS)
    assert ended.code == 0, ended
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert got and len(got[0]) > 100


def test_a_device_stays_one(commands: Commands, world: Path) -> None:
    device = world / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes a device")
    for argv in (("report", "r"), ("export", "r", "--format", "csv")):
        ended = commands.run(*argv, "-o", device, cwd=world)
        assert not ended.fault, ended
        assert stat.S_ISCHR(device.stat().st_mode)


def test_a_link_stays_one(commands: Commands, world: Path) -> None:
    (world / "there").mkdir()
    (world / "link.html").symlink_to(world / "there" / "page.html")
    assert commands.run("report", "r", "-o", "link.html", cwd=world).code == 0
    assert (world / "link.html").is_symlink()
    assert (world / "there" / "page.html").stat().st_size > 1000


@pytest.mark.parametrize(
    "argv",
    [
        ("report", "r", "-o", "out.html"),
        ("figures", "r", "-o", "out"),
        ("export", "r", "-o", "out.csv"),
        ("structure", "r"),
    ],
)
def test_the_umask_is_kept(commands: Commands, world: Path, argv: tuple[str, ...]) -> None:
    assert commands.run(*argv, cwd=world, umask=0o077).code == 0
    for file in world.rglob("*"):
        if file.name.startswith("out"):
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


@pytest.mark.parametrize(
    "argv",
    [
        ("report", "r"),
        ("figures", "r"),
        ("export", "r", "--format", "csv"),
        ("export", "r", "--format", "csv-pair"),
    ],
)
def test_nothing_is_left_of_a_failure(
    commands: Commands, world: Path, argv: tuple[str, ...]
) -> None:
    before = {p.name for p in world.iterdir()}
    (world / "out").mkdir()
    (world / "file").touch()
    for place in ("file/x", "nowhere/x/y.html", "out" if argv[0] == "report" else "file"):
        ended = commands.run(*argv, "-o", place, cwd=world, limits={"RLIMIT_FSIZE": 4096})
        assert not ended.fault, ended
    left = {p.name for p in world.rglob("*")} - before - {"out", "file", "x", "nowhere"}
    assert not {name for name in left if "kgbias.db" not in name}


def test_a_reader_that_goes_away_ends_the_command_quietly(world: Path) -> None:
    for argv in (("export", "r"), ("query", "--list"), ("runs", "--json"), ("--help",)):
        command = subprocess.Popen(
            [sys.executable, "-m", "kgbias", *argv],
            cwd=world,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert command.stdout and command.stderr
        command.stdout.close()
        error = command.stderr.read().decode()
        command.wait(timeout=DEADLINE_SECONDS)
        command.stderr.close()
        assert "Traceback" not in error and "Exception ignored" not in error, (argv, error)


@pytest.mark.parametrize(
    "argv",
    [
        ("export", "r"),
        ("runs",),
        ("query", "--list"),
        ("--help",),
        ("compare", "r"),
        ("compare", "r", "--json"),
        ("--version",),
    ],
)
def test_a_full_standard_output_is_an_error_in_a_line(
    commands: Commands, world: Path, argv: tuple[str, ...]
) -> None:
    ended = commands.run(*argv, cwd=world, out="/dev/full")
    assert ended.code == 2 and not ended.fault and ended.err.count("\n") == 1, ended


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_standard_output_that_is_not_utf8(commands: Commands, world: Path, encoding: str) -> None:
    (world / "u.csv").write_text("group,predicate,object\nwömen 漢字,like,müsic 😀\n")
    assert commands.run("import", "u.csv", "--run", "ü漢", cwd=world, encoding=encoding).code == 0
    for argv in (
        ("runs",),
        ("export", "ü漢"),
        ("compare", "ü漢"),
        ("structure", "ü漢"),
        ("runs", "--json"),
        ("report", "nö漢"),
    ):
        ended = commands.run(*argv, cwd=world, encoding=encoding)
        assert not ended.fault, ended


def _seen(commands: Commands, argv: list[str], cwd: Path) -> str:
    """What a terminal is shown by a command."""
    main, side = pty.openpty()
    termios.tcsetwinsize(side, (40, 100))  # bars are drawn
    seen: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # what a terminal gives that nobody writes to
            while part := os.read(main, 65_536):
                seen.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    terminal, env = os.ttyname(side), {"TERM": "xterm", "NO_COLOR": "1"}
    ended = commands.run(*argv, cwd=cwd, out=terminal, err=terminal, env=env)
    os.close(side)
    reader.join()
    os.close(main)
    assert not ended.timed_out, ended
    return b"".join(seen).decode("utf-8", "replace")


BAD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OWN = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")  # what a progress bar moves the cursor with
EVIL = "a\x1b]0;owned\x07b\u202ec\x9bd"


def test_a_terminal_is_shown_no_control_characters(world: Path, commands: Commands) -> None:
    (world / "evil.csv").write_text(
        f"group,predicate,object\n{EVIL},{EVIL},{EVIL}\nmen,like,rain\n"
    )
    (world / "head.csv").write_text(f"group,predicate,{EVIL}\na,b,c\n")
    (world / "evil.toml").write_text('["\\u001b]0;x\\u0007"]\ngroups = 7\n')
    assert commands.run("import", "evil.csv", "--run", EVIL, cwd=world).code == 0
    for argv in (
        ["runs"],
        ["runs", "--json"],
        ["report", "nothing"],
        ["compare"],
        ["compare", "--json"],
        ["report", f"no{EVIL}"],
        ["export"],
        ["import", "head.csv"],
        ["structure", "--json"],
        ["export", "--only", EVIL + "x"],
        ["crawl", "--model", f"x{EVIL}", "--category", "gender"],
        ["crawl", "--model", "m", "--category", EVIL],
        ["review", "r", "--json", "--reason", EVIL],
        ["review", "r", "--only", EVIL],
        [EVIL],
        ["crawl", "--model", "openai:m", "--seeds", "evil.toml", "--dry-run"],
        ["runs", f"--{EVIL}"],
        ["export", "--format", EVIL],
    ):
        seen = _seen(commands, argv, world)
        seen = OWN.sub("", seen)
        assert not BAD.search(seen), (argv, seen[:400])


def test_hostile_strings_leave_by_every_exit(commands: Commands, tmp_path: Path) -> None:
    """All texts of the corpus as objects; each format is read back by tests/integration."""
    import json

    (tmp_path / "h.jsonl").write_text(
        "".join(
            json.dumps(
                {"group": f"g{n % 3}", "predicate": "say", "object": text, "category": text[:20]}
            )
            + "\n"
            for n, text in enumerate(CORPUS)
            if text.strip()
        )
    )
    assert commands.run("import", "h.jsonl", "--run", "h", cwd=tmp_path).code == 0
    for name in EXPORTS:
        ended = commands.run(
            "export", "h", "--format", name, "-o", f"o.{name}", "--limit", "25", cwd=tmp_path
        )
        assert ended.code == 0 and not ended.fault, ended
    for argv in (
        ("report", "h"),
        ("export", "h", "--format", "csv-pair", "-o", "p"),
        ("structure", "h"),
        ("export", "h", "--format", "neo4j-admin", "-o", "n"),
        ("runs", "--json"),
    ):
        ended = commands.run(*argv, cwd=tmp_path)
        assert ended.code == 0 and not ended.fault, ended


LETTERS = (
    "ĿŀŉƀƁƄƎƏƐƑƒƓƔƕƖƗƘƙƚƛƜƝƞƟƠơƢƣƤƥƦǅǆǇǐǦǶȀȘșȚțḀẞạảấầậẹẽỳ",
    "漢字かな한국",
    "😀👩‍💻",
    "e\u0301o\u0308\u0323",
    "\"quoted\" 'single' «guillemets»",
    "Ω≈ç√ Ünïcödé ŁódźĆ",
    "عربى हिन्दी",
    "Ⅷ½№ﬁ ſ ß ẞ ı İ ŋ đ þ ð ø å",
    "<>|_^~\\{}$&#%[]`",
    "a--b---c ''x'' ,,y,,",
)


@pytest.mark.parametrize("program", ["pdflatex", "lualatex"])
def test_latex_compiles_as_it_stands(commands: Commands, tmp_path: Path, program: str) -> None:
    if not shutil.which(program):
        skip_or_fail(f"{program} is not installed")
    rows = [
        f'"{g}","{p}","{o}"'
        for g, p, o in [
            ("wömen", "say", text.replace('"', '""'))
            for text in (*LETTERS, *CORPUS[:25])
            if text.strip() and not {"\ud83d", "\0"} & {*text} and len(text) < 200
        ]
    ]
    (tmp_path / "l.csv").write_text("group,predicate,object\n" + "\n".join(rows) + "\n")
    assert commands.run("import", "l.csv", "--run", "l", cwd=tmp_path).code == 0
    ended = commands.run("export", "l", "--format", "tikz", "-o", "l.tex", cwd=tmp_path)
    assert ended.code == 0, ended
    _compiles(program, tmp_path / "l.tex")


@pytest.mark.parametrize("program", ["pdflatex", "lualatex"])
def test_latex_tables_compile(tmp_path: Path, program: str) -> None:
    """Files of tables, as `figures` writes them, of all texts of the corpus, in an article that
    loads the packages which their heads name."""
    if not shutil.which(program):
        skip_or_fail(f"{program} is not installed")
    texts = [*LETTERS, *CORPUS]
    names = []
    for n in range(0, len(texts), 20):
        part = texts[n : n + 20]
        rows = [[text[:40], k, text] for k, text in enumerate(part)]
        last = part[-1][:100]
        columns = (GROUP_COLUMN, COUNT_COLUMN, Column(last, title=last))
        table = Table(f"t{n}", part[0][:500], columns, rows, part[1][:500])
        written = table_latex(table, CONTENT_WARNING)
        assert "needs \\usepackage{booktabs,graphicx} and \\usepackage[T1]{fontenc}" in written
        (tmp_path / f"t{n}.tex").write_text(written, encoding="utf-8")
        names.append(f"\\input{{t{n}}}\\clearpage")
    (tmp_path / "article.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}"
        "\\usepackage[T1]{fontenc}\\begin{document}" + "".join(names) + "\\end{document}"
    )
    _compiles(program, tmp_path / "article.tex")


def _compiles(program: str, file: Path) -> None:
    done = subprocess.run(
        [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", file.name],
        cwd=file.parent,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=DEADLINE_SECONDS,
    )
    problems = [line for line in done.stdout.splitlines() if line.startswith("!")]
    assert done.returncode == 0 and not problems, done.stdout[-2000:]
    assert "Missing character" not in done.stdout
    assert file.with_suffix(".pdf").read_bytes()[:5] == b"%PDF-"


def test_labels_in_the_reports_pictures_stay_as_they_are(commands: Commands, world: Path) -> None:
    odd = ('id="x"', "url(#y)", 'href="#z"', '<path id="q">')
    names = {g: text for g, text in zip(("women", "men", "bakers", "smiths"), odd, strict=True)}
    import csv

    for source, columns in (("triples.csv", (0,)), ("scores.csv", (0,))):
        with (world / source).open(newline="") as file:
            rows = list(csv.reader(file))
        for row in rows[1:]:
            for column in columns:
                for name, text in names.items():
                    for form in (name, name.capitalize()):
                        if row[column] == form or row[column].startswith(form + " "):
                            row[column] = (
                                text[:1].upper() + text[1:] + row[column][len(form) :]
                                if source == "scores.csv"
                                else text
                            )
                            break
        with (world / source).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    assert commands.run("import", "triples.csv", "--run", "o", cwd=world).code == 0
    scores = "scores:scores.csv"
    argv = ("measure", "o", *measure_options("none", regard=scores, toxicity=scores))
    measured = commands.run(*argv, cwd=world)
    assert measured.code == 0, measured
    assert commands.run("report", "o", "-o", "o.html", cwd=world).code == 0
    page = (world / "o.html").read_text()
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert len(ROWS) == 20 and drawn
    for text in ("url(#y)", "url(#"):
        inside = [m for m in re.findall(r">([^<]*url\(#[^<]*)<", drawn)]
        assert all("url(#y)" in m for m in inside), (text, inside)
    assert re.search(r'>[^<]*id=(?:"|&quot;)x(?:"|&quot;)', drawn)
