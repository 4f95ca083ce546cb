"""Settings: what kgbias.toml and --set give a command, and what neither may."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.cli.settings import (
    SHARED_SETTINGS,
    TOP_LEVEL_OPTIONS,
    Setting,
    command_settings,
    move_settings_first,
    read_settings_file,
)
from kgbias.errors import DataError, KgbiasError, UsageError
from kgbias.models.http import read_secrets
from kgbias.study.beliefs import RunBeliefs
from tests.texts import Texts


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `kgbias crawl` asks of the library, call by call."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KGBIAS_CONFIG", raising=False)
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(kgbias.Study, "crawl", lambda *_, **given: calls.append(given))
    return calls


def crawl(*arguments: str) -> None:
    CliRunner().invoke(cli, ["crawl", "--model", "reference", "--group", "a", *arguments])


def refusal(*arguments: str) -> str:
    ended = CliRunner().invoke(cli, arguments, standalone_mode=False).exception
    assert isinstance(ended, KgbiasError | click.ClickException)
    message = ended.format_message() if isinstance(ended, click.ClickException) else str(ended)
    assert "\n" not in message
    return message


def test_a_setting_is_for_one_call_or_for_a_folder(asked: list[dict[str, Any]]) -> None:
    crawl()
    crawl("--set", "top-p=0.9", "--set=filters=none", "--set", "structured=yes")
    Path("kgbias.toml").write_text("device = 'cpu'\n[crawl]\ntop_p = 0.5\nfilters = ['refusal']")
    crawl()
    crawl("--set", "top_p=0.9")
    assert [call["top_p"] for call in asked] == [None, 0.9, 0.5, 0.9]
    assert [call["filters"] for call in asked] == [None, (), ("refusal",), ("refusal",)]
    assert [call["structured"] for call in asked] == [None, True, None, None]
    assert [call["device"] for call in asked] == [None, None, "cpu", "cpu"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link"])
def test_a_settings_file_that_is_no_file_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "folder":
        Path("kgbias.toml").mkdir()
    elif kind == "pipe":
        os.mkfifo("kgbias.toml")
    else:
        Path("kgbias.toml").symlink_to("nowhere.toml")
    with texts.raises(DataError):
        read_settings_file()


def test_it_may_stand_anywhere_in_the_line() -> None:
    given = ["crawl", "--set", "a=1", "--model", "m", "--set=b=2", "--", "--set", "c=3"]
    first = ["--set", "a=1", "--set=b=2", "crawl", "--model", "m", "--", "--set", "c=3"]
    assert move_settings_first(given) == first and move_settings_first(["runs", "--set"]) == [
        "--set",
        "runs",
    ]


def test_several_values_of_one_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    monkeypatch.setattr(RunBeliefs, "replicate", lambda _, **given: found.update(given))
    monkeypatch.setattr(kgbias.Study, "run", lambda *_: object.__new__(kgbias.Run))
    db = str(tmp_path / "k.db")
    CliRunner().invoke(cli, ["replicate", "--store", db, *("--set", "carrier=I say") * 2])
    assert found["carriers"] == ("I say", "I say")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("--set", "tpo-p=1", "crawl", "--model", "m"),
            "no setting 'tpo-p' of crawl (did you mean top-p?)",
        ),
        (("--set", "top-p=much", "crawl", "--model", "m"), "'much' is not a valid float"),
        (("--set", "seed=x", "runs"), "'x' is not a valid integer"),
        (("--set", "correction=x", "runs"), "'x' is not one of 'holm', 'bh'"),
        (("--set", "top-p", "runs"), "--set takes NAME=VALUE, not 'top-p'"),
        (("crawl", "--set", "seed=3", "--model", "m"), "seed is an option of crawl: --seed"),
        (("crawl", "--set", "model=m"), "model is an option of crawl: --model"),
        (("runs", "--set", "store=x.db"), "store is an option of runs: --store"),
        (("crawl", "--top-p", "1"), "top-p is a setting: kgbias --set top-p=VALUE crawl"),
        (("figures", "--device", "cpu"), "No such option '--device'"),
        (("run", "--set", "device=cpu", "study.toml"), "kgbias run takes no --set"),
        (("figures", "--set", "kernel=radial"), "no setting 'kernel' of figures"),
    ],
)
def test_what_cannot_be_set_is_one_line(arguments: tuple[str, ...], why: str) -> None:
    assert why in refusal(*arguments)


def test_shared_settings_that_say_nothing_to_a_model_are_passed_over(
    asked: list[dict[str, Any]],
) -> None:
    """One kgbias.toml serves a local model and a server."""
    lines = ["concurrency = 3", "batch-size = 4", "base-url = 'http://127.0.0.1:9/v1'"]
    Path("kgbias.toml").write_text("\n".join(lines))
    crawl()
    crawl("--model", "openai:m")
    named = ("concurrency", "batch_size", "base_url")
    assert [[call[name] for name in named] for call in asked] == [
        [None, 4, None],
        [3, None, "http://127.0.0.1:9/v1"],
    ]
    crawl("--base-url", "http://127.0.0.1:9/v1")  # typed: the library says that it is not read
    assert asked[-1]["base_url"] == "http://127.0.0.1:9/v1"


def test_an_address_gets_a_key_if_it_was_set_by_hand_alone(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user-1234")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    their = "http://their.example:8000/v1"
    Path("kgbias.toml").write_text(f"[crawl]\nbase-url = '{their}'\nprompts = '{their}'")
    sent: list[str] = []
    monkeypatch.setattr(
        kgbias.Study, "crawl", lambda *_, base_url, **__: sent.append(read_secrets(base_url).key)
    )
    for extra in ((), ("--set", "filters=none"), ("--set", f"filters={their}")):
        crawl("--model", "openai:m", *extra)
    assert sent == ["", "", "sk-of-the-user-1234"]


@pytest.mark.parametrize(
    "text",
    [
        "executor = 'ray://their.example:10001'",
        "[report]\nexplorer = '../x.html'",
        "[benchmark]\ntables = '/etc'",
        "[probe.apx]\nperplexities = '../x.jsonl'",
        "[query]\nfavourites = '.bashrc'",
    ],
)
def test_what_a_strangers_folder_may_not_set_one_may_oneself(
    asked: list[dict[str, Any]], text: str
) -> None:
    Path("kgbias.toml").write_text(text)
    assert "reaches outside this folder" in refusal("runs")
    Path("kgbias.toml").unlink()
    assert "no store at" in refusal("measure", "--set", "executor=ray://mine.example:10001")


def test_what_is_typed_for_a_command_that_does_not_take_it_is_refused(
    asked: list[dict[str, Any]],
    texts: Texts,
) -> None:
    """A line of the file may be meant for other commands; --set is meant for this one."""
    Path("kgbias.toml").write_text("device = 'cpu'")
    assert "no store at" in refusal("runs")
    assert "leave out --set device" in refusal("runs", "--set", "device=cpu")
    said = refusal("probe", "surprisal", "x", "--set", "executor=ray")
    texts.check_lines(said, "probe sets,")


def _commands(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        if isinstance(command, click.Group):
            yield from _commands(command, click.Context(command, parent=context))
        else:
            yield command


def test_every_shared_setting_is_read_by_commands_and_no_name_means_two_things() -> None:
    commands = list(_commands(cli, click.Context(cli)))  # type: ignore[arg-type]
    read = {name for c in commands for name, s in command_settings(c).items() if s.is_shared}
    assert read == SHARED_SETTINGS.keys()
    for command in commands:
        flags = {flag for p in command.params if isinstance(p, click.Option) for flag in p.opts}
        settings = [p.opts[0] for p in command.params if isinstance(p, Setting)]
        assert len(settings) == len(set(settings))
        assert not flags & {f"--{name}" for name in settings}, command.name
        for name, one in command_settings(command).items():
            assert one.is_shared == (name in SHARED_SETTINGS), (command.name, name)
    every = {flag for c in commands for p in c.params for flag in p.opts}
    assert {f"--{name}" for name in TOP_LEVEL_OPTIONS} <= every


def test_a_setting_at_the_top_reaches_no_option_but_those_three(
    asked: list[dict[str, Any]],
) -> None:
    """min-acceptability, which statements count, is not --min-acceptability of a crawl, which asks
    again."""
    Path("kgbias.toml").write_text("min-acceptability = 0.9\nseed = 7")
    crawl()
    assert asked[0]["seed"] == 7 and asked[0]["min_acceptability"] is None
    Path("kgbias.toml").write_text("sed = 7")
    ended = CliRunner().invoke(cli, ["runs"]).exception
    assert isinstance(ended, DataError) and "did you mean seed?" in str(ended)
    assert issubclass(DataError, KgbiasError) and issubclass(UsageError, KgbiasError)
