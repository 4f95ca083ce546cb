"""The command line, in process, with a scripted model behind `--model`."""

import csv
import errno
import gc
import json
import os
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from random import Random

import click
import pytest
from click.testing import CliRunner, Result

import kgbias
from kgbias.cli import cli, main
from kgbias.cli.command import Command, CommandGroup, word_with_options
from kgbias.cli.commands import (
    COMMANDS,
    MAX_DESCRIBED,
    CommandEntry,
    list_other_commands,
    list_sections,
)
from kgbias.cli.show import prepare_streams
from kgbias.crawl.configure import configure
from kgbias.errors import UsageError
from kgbias.models.base import Completion, Request
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

GENDER = ("--category", "gender")


def reply(request: Request) -> str:
    rng = Random(request.seed)
    if rng.random() < 0.1:
        return "This question is offensive."
    if str(request.prompt).endswith("#"):
        return f" {rng.choice(['fear', 'make'])}\nA: {rng.choice(['=1+1', 'rain', '<b>tea</b>'])}"
    return f" {rng.choice(['food', 'sport', 'work'])}."


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    scripted = ScriptedModel(reply)
    monkeypatch.setattr("kgbias.models.open_model", lambda spec, **options: scripted)
    return scripted


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "kgbias.db")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)


def test_names_of_commands_are_completed_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing a command takes ten times as long as a shell's user should wait."""
    monkeypatch.setattr("kgbias.cli.import_command", lambda name: pytest.fail(f"imports {name}"))
    items = cli.shell_complete(click.Context(cli), "re")
    assert [item.value for item in items] == [name for name in COMMANDS if name.startswith("re")]
    assert [item.help for item in items] == [COMMANDS[str(item.value)].help for item in items]
    assert "--set" in [item.value for item in cli.shell_complete(click.Context(cli), "--")]


def crawl(db: str, *more: str) -> dict[str, object]:
    small = ("--samples", "2", "--iterations", "1", "--set", "predicate-prompts=2")
    small += ("--prompts", "salinas-2023")  # `reply` answers lists
    who = () if {"--group", "--category"} & set(more) else ("--category", "gender")
    result = run("crawl", "--model", "any", "--store", db, *small, *who, "--json", *more)
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_crawl_runs_export(model: ScriptedModel, db: str, tmp_path: Path) -> None:
    first = crawl(db, "--category", "gender", "--run", "mine")
    assert first["run"] == "mine" and first["asked"] == len(model.requests)
    again = crawl(db, "--category", "gender", "--run", "mine")
    assert again["asked"] == 0 and again["ok"] == first["ok"]

    (listed,) = json.loads(run("runs", "--store", db, "--json").stdout)
    assert listed["name"] == "mine" and listed["model"] == "scripted"
    assert listed["groups"] == ["Men", "Non-binary people", "Women"]
    assert listed["refused"] == first["refused"] > 0  # type: ignore[operator]
    assert listed["generations"] == len(model.requests)
    assert {"triples", "invalid"} <= set(listed)
    assert "mine" in run("runs", "--store", db).stdout

    lines = run("export", "mine", "--store", db, "--format", "jsonl").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == listed["triples"]
    assert sum(row["count"] for row in rows) == first["ok"]
    assert {"group", "predicate", "object", "count", "regard", "toxicity"} <= set(rows[0])

    table = tmp_path / "out.csv"
    run("export", "mine", "--store", db, "-o", str(table))
    with table.open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == len(rows)
    assert {"'=1+1", "<b>tea</b>"} <= {cell["object"] for cell in cells}
    manifest = json.loads((tmp_path / "out.csv.manifest.json").read_text("utf-8"))
    assert manifest["run"] == "mine" and "offensive" in manifest["warning"]
    assert "not evidence" in manifest["statement"]


def test_own_groups_and_arms(model: ScriptedModel, db: str) -> None:
    crawl(db, "--group", "Left-handers", "--group", "Right-handers", "--augment", "none,both")
    (listed,) = json.loads(run("runs", "--store", db, "--json").stdout)
    assert listed["groups"] == ["Left-handers", "Right-handers"]
    assert listed["categories"] == ["custom"]
    assert any(str(r.prompt).startswith("Not to be offensive but") for r in model.requests)


def test_dry_run_prices_and_asks_nothing(model: ScriptedModel, db: str) -> None:
    base = (
        "crawl",
        "--model",
        "smollm2",
        "--category",
        "gender",
        "--store",
        db,
        "--dry-run",
        "--json",
    )
    priced = json.loads(run(*base).stdout)
    config = configure("smollm2", category="gender")
    assert sum(stage["requests"] for stage in priced["stages"]) == config.place_count
    most = config.max_attempts
    assert all(s["requests_at_most"] == most * s["requests"] for s in priced["stages"])
    published = json.loads(run(*base, "--prompts", "salinas-2023", "--set", "answers=2").stdout)
    assert sum(stage["requests"] for stage in published["stages"]) == 600
    assert model.requests == [] and not Path(db).exists()


def test_own_predicates_and_no_filters(model: ScriptedModel, db: str) -> None:
    found = crawl(db, "--set", "initial-predicates=fear, like", "--set", "filters=none")
    assert found["refused"] == 0
    first = {str(r.prompt) for r in model.requests if str(r.prompt).startswith("Men ")}
    assert first == {"Men fear", "Men like"}


def test_too_many_failures_show_in_the_exit_code(model: ScriptedModel, db: str) -> None:
    def failing(request: Request) -> str | Completion:
        return Completion("", "error", error="no route") if request.seed % 3 == 0 else " tea."

    model._reply = failing
    base = ("crawl", "--model", "any", *GENDER, "--store", db, "--iterations", "0")
    assert run(*base).return_value == 1
    assert run(*base, "--set", "max-failed=0.9").return_value == 0


def test_dry_run_with_dynamic_seeds_and_arms(model: ScriptedModel, db: str, texts: Texts) -> None:
    base = (
        "crawl",
        "--model",
        "smollm2",
        "--store",
        db,
        "--dry-run",
        "--dynamic",
        "religion",
        "--prompts",
        "salinas-2023",
    )
    alone = json.loads(run(*base, "--json").stdout)
    assert alone["more_groups_named_by_model"] and alone["groups"] == 0
    assert [s["requests"] for s in alone["stages"]] == [5, 20, 40, 40]
    both = json.loads(run(*base, "--category", "gender", "--augment", "none,both", "--json").stdout)
    assert [s["requests"] for s in both["stages"]] == [5, 120, 240, 240]
    texts.check_lines(run(*base).stdout, "model names")
    until = run(
        "crawl", "--model", "smollm2", *GENDER, "--target-coverage", "0.8", "--dry-run"
    ).stdout
    texts.check_lines(until, "until coverage")


def test_groups_are_reported(model: ScriptedModel, db: str) -> None:
    found = crawl(db, "--target-coverage", "0.5", "--iterations", "9")
    groups = found["groups"]
    assert isinstance(groups, list) and [g["group"] for g in groups] == [
        "Men",
        "Non-binary people",
        "Women",
    ]
    assert sum(g["refused"] for g in groups) == found["refused"]
    assert all(g["coverage"] >= 0.5 and g["richness"] >= g["distinct"] for g in groups)
    table = run("crawl", "--model", "any", *GENDER, "--store", db, "--samples", "2").stdout
    assert "coverage" in table and "Non-binary people" in table


def bad(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a bad call prints on stderr; its exit code must be 2 and its stdout empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kgbias", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == "" and "Traceback" not in captured.err
    return captured.err.strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["crawl", "--model", "gpt", *GENDER, "--store", "DB"], "no model 'gpt'"),
        (["crawl", "--model", "hf:", *GENDER, "--store", "DB"], "no model 'hf:'"),
        (["crawl", "--model", "smollm2:x", *GENDER, "--store", "DB"], "no model 'smollm2:x'"),
        (
            ["crawl", "--model", "smollm2", "--samples", "2"],
            "a --category (gender, ethnicity, nationality, religion), or groups of your own",
        ),
        (["crawl", "--model", "smollm2", "--category", "zodiac"], "no category 'zodiac'"),
        (
            ["crawl", "--model", "smollm2", *GENDER, "--augment", "all"],
            "--augment takes each of these",
        ),
        (["crawl", "--model", "smollm2", *GENDER, "--set", "shots=0"], "at least 1"),
        (["crawl", "--model", "smollm2", *GENDER, "--samples", "9" * 30], "and 1,000,000, not"),
        (["crawl", "--model", "smollm2", *GENDER, "--temperature", "-1"], "temperature"),
        (["crawl", "--model", "smollm2", *GENDER, "--set", "top-p=90"], "top-p is a share"),
        (
            ["crawl", "--model", "smollm2", *GENDER, "--set", "top-k=0", "--dry-run"],
            "top-k must be a whole",
        ),
        (["crawl", "--model", "smollm2", *GENDER, "--set", "filters=x"], "no filter 'x'"),
        (
            ["crawl", "--model", "smollm2", *GENDER, "--set", "initial-predicates=,"],
            "initial-predicates is empty",
        ),
        (
            ["crawl", "--model", "smollm2", *GENDER, "--target-coverage", "80"],
            "--target-coverage must be above 0",
        ),
        (["crawl", "--model", "smollm2", *GENDER, "--dynamic", "zodiac"], "--plural"),
        (["crawl", "--model", "smollm2", "--seeds", "DB"], "cannot read"),
        (["crawl", "--model", "smollm2", "--intersect", "gender"], "two or more"),
        (["import", "x" * 5000], "the file name is too long: x"),
        (["report", "-o", "\0nul"], "a file name cannot contain a NUL character"),
        (["runs", "--store", "DB"], "no store at"),
        (["report", "--store", "DB"], "no store at"),
        (["measure", "--store", "TEXT"], "cannot open"),
        (["export", "--store", "mysql://x"], "mysql:// is not a store"),
        (["runs", "--store", "bolt://127.0.0.1:1"], "cannot reach bolt://127.0.0.1:1"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("no database")
    places = {"DB": str(tmp_path / "none.db"), "TEXT": str(tmp_path / "text")}
    error = bad([places.get(a, a) for a in arguments], capsys)
    assert message in error and len(error.splitlines()) == 1


def test_unknown_run_and_format(
    model: ScriptedModel, db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], texts: Texts
) -> None:
    crawl(db, "--run", "mine")
    assert "choose from mine" in bad(["export", "other", "--store", db], capsys)
    odd = str(tmp_path / "out.xlsx")
    assert "no export format 'xlsx'" in bad(["export", "--store", db, "-o", odd], capsys)
    bare = str(tmp_path / "folder")
    texts.check(bad(["export", "--store", db, "-o", bare], capsys))
    nowhere = str(tmp_path / "none" / "out.csv")
    assert "cannot write" in bad(["export", "--store", db, "-o", nowhere], capsys)
    assert "other settings" in bad(
        ["crawl", "--model", "any", *GENDER, "--store", db, "--run", "mine", "--seed", "9"],
        capsys,
    )


def test_what_is_read_of_commands_is_what_they_are() -> None:
    """The first page of the help reads their declarations without importing them."""
    declared = {}
    for path in (Path(kgbias.__file__).parent / "cli").glob("[!_]*.py"):
        module = import_module(f"kgbias.cli.{path.stem}")
        for name, value in vars(module).items():
            if isinstance(value, Command | CommandGroup) and value.section:
                place = f"kgbias.cli.{path.stem}:{name}"
                declared[value.name] = CommandEntry(value.short_help or "", place, value.section)
    core = {n: e for n, e in COMMANDS.own_entries.items() if e.function.startswith("kgbias.cli.")}
    assert core == declared and len(core) > 30
    assert list(core)[:3] == ["map", "crawl", "measure"]  # the main way, in the order of the work


def test_every_command_has_help() -> None:
    for name in COMMANDS:
        result = run(name, "--help")
        assert "Usage:" in result.output
    listing = run("--help").output
    sections = list_sections()
    lines = dict(pair for section in sections.values() for pair in section)
    assert all(name in listing and line in listing for name, line in lines.items())
    further = [name for _, names in list_other_commands() for name in names.split(", ")]
    assert sorted([*lines, *further]) == sorted(COMMANDS)  # each stands in one place
    assert len(lines) <= MAX_DESCRIBED and " ".join(further[:3]) in listing.replace(",", "")
    places = [listing.index(f"\n{title}:\n") for title in sections]
    assert places == sorted(places)


@pytest.mark.parametrize("command", ["map", "crawl", "stories", "pairs"])
def test_a_command_takes_its_model_first_or_by_its_option(command: str) -> None:
    asked = ["--category", "gender", "--dry-run"]
    first, named, both = (
        CliRunner().invoke(cli, [command, *model, *asked])
        for model in (["smollm2"], ["--model", "smollm2"], ["smollm2", "--model", "smollm2"])
    )
    assert first.exit_code == named.exit_code == 0 and first.output == named.output
    assert both.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["mesure"], "no command 'mesure' (did you mean measure?); kgbias --help"),
        (["explorer"], "did you mean explore?"),
        (["probe", "surprisall"], "did you mean surprisal?); a run of that name is"),
        (["profiles", "analyze"], "did you mean analyse?); a model of that name is"),
        (["crawl", "--modle", "smollm2"], "--model"),
        (["compare", "--pair"], "--pairwise"),
    ],
)
def test_what_is_mistyped_gets_the_nearest_name(
    arguments: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert near in bad(arguments, capsys)


def test_ctrl_c_says_how_to_go_on(
    model: ScriptedModel, db: str, capsys: pytest.CaptureFixture[str], texts: Texts
) -> None:
    def interrupted(request: Request) -> str:
        if len(model.requests) == 5:
            raise KeyboardInterrupt
        return " food."

    model._reply = interrupted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kgbias", "crawl", "--model", "any", *GENDER, "--store", db])
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 130
    error = capsys.readouterr().err.strip().splitlines()[-1]
    texts.check(error)


def test_messages_of_the_library_name_options(capsys: pytest.CaptureFixture[str]) -> None:
    error = bad(["crawl", "--model", "smollm2", "--dynamic", "zodiac"], capsys)
    assert "--plural" in error and "`" not in error
    assert (
        word_with_options("use `target_coverage` or `nothing`", None)
        == "use target_coverage or nothing"
    )


def test_no_command_has_a_default_of_its_own() -> None:
    """What --help shows is what the library does."""
    crawling = {p.name: p for p in _command("crawl").params}
    for name in ("seed", "min_acceptability"):
        assert crawling[name].default is None  # the call's own, CrawlConfig's
    decided = (
        "temperature min_p filters initial_predicates arms max_attempts form samples answers shots "
        "predicate_prompts object_prompts redraw"
    )
    for name in decided.split():  # by the pack, and the form by the model
        assert not isinstance(crawling[name].default, str | int | float)
    measuring = {p.name: p for p in _command("measure").params}
    for name, parameter in signature(kgbias.Run.measure).parameters.items():
        if name in measuring and isinstance(parameter.default, str | int):
            shown = measuring[name].get_default(click.Context(cli))
            several = isinstance(shown, list)  # an option that may be given several times
            assert shown == ([parameter.default] if several else parameter.default)


def _command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)  # type: ignore[attr-defined]
    assert command is not None
    return command


def test_a_command_seldom_looks_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    monkeypatch.setattr(sys, "argv", ["kgbias", "--version"])
    try:
        gc.set_threshold(700)
        with pytest.raises(SystemExit):
            main()
        assert gc.get_threshold()[0] == 10_000
    finally:
        gc.set_threshold(*before)


def test_closed_streams_are_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `kgbias runs >&-`: what is opened next must not be written to as stdout."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    monkeypatch.setattr(sys, "argv", ["kgbias"])
    taken: list[int] = []

    def free(number: int) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", free)
        patched.setattr(os, "dup2", lambda _, number: taken.append(number))
        with pytest.raises(UsageError, match="stdout is closed"):
            prepare_streams()
    streams = (sys.stdin, sys.stdout, sys.stderr)
    assert taken == [0, 1, 2] and sys.stdin.read() == "" and not sys.stdin.isatty()
    print("to nobody")
    for stream in streams:
        stream.close()


@pytest.mark.parametrize("argv", [["-o", ""], ["--output="], ["--format", "csv", "-o", ""]])
def test_an_empty_name_is_no_file(argv: list[str], texts: Texts) -> None:
    """As `-o "$UNSET"` gives one: it would be the current folder."""
    told = CliRunner().invoke(cli, ["export", *argv])
    assert told.exit_code == 2
    texts.check_lines(told.output, "empty name")


@pytest.mark.parametrize("argv", [["kgbias"], ["kgbias", "profiles"]])
def test_a_command_that_is_given_nothing_shows_its_help(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert not out and "Error" not in err
    assert "\nOptions:\n  " in err and ("\nCommands:\n  " in err or "\nMethods:\n  " in err)
