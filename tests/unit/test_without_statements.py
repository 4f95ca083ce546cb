"""A crawl that yielded nothing: commands that need its statements say so, and write nothing."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.errors import DataError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.models.base import ModelInfo
from tests.texts import Texts

GROUPS = (Group("Elves", "peoples"), Group("Orcs", "peoples"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "k.db"
    store = SQLiteStore(str(path))
    run = store.begin_run(Run("empty", ModelInfo("m"), {}, GROUPS))
    store.set_status(run.id, "stopped")  # a running one is served: its statements may come
    store.close()
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        ("report", "-o", "out"),
        ("figures", "-o", "out"),
        ("explore", "-o", "out"),
        ("export", "-o", "out.csv"),
        ("publish", "-o", "out"),
        ("measure",),
        ("evidence",),
        ("compare",),
        ("compare", "--by-prompt-type"),
        ("serve", "--port", "0"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("named", [True, False])
def test_is_refused(
    store: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    named: bool,
    texts: Texts,
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = command
    argv = [name, *(["empty"] if named else []), *rest, "--store", store]
    ended = CliRunner().invoke(cli, argv)
    assert isinstance(ended.exception, DataError), ended.output
    texts.check_lines(str(ended.exception), "'empty' (stopped)")
    assert [p.name for p in tmp_path.iterdir() if p.name[:3] == "out"] == []


def test_one_of_several_is_refused(store: str, tmp_path: Path) -> None:
    opened = SQLiteStore(store)
    other = opened.begin_run(Run("other", ModelInfo("m"), {"n": 1}, GROUPS))
    said = Generation(
        other.id,
        "none/x#0",
        GROUPS[0].id,
        "none",
        "initialise",
        0,
        0,
        "ok",
        triple=Triple("Elves", "love", "trees"),
    )
    opened.record_round(other.id, "none", 0, [said])
    opened.close()
    ended = CliRunner().invoke(
        cli, ["report", "other", "empty", "-o", str(tmp_path / "out"), "--store", store]
    )
    assert isinstance(ended.exception, DataError) and "'empty'" in str(ended.exception)
    assert not (tmp_path / "out").exists()
    compared = CliRunner().invoke(cli, ["compare", "other", "empty", "--store", store])
    assert isinstance(compared.exception, DataError) and "'empty'" in str(compared.exception)
