"""What other packages add: found by name, imported when it is used, and one line where it is
broken. tests/integration/test_plugin.py installs a real one."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias import measures
from kgbias.cli import cli
from kgbias.cli.commands import COMMAND_PARTS
from kgbias.errors import DataError, PluginError, UsageError
from kgbias.export import FORMATS, choose_format_name
from kgbias.graph.stores import STORES
from kgbias.io.plugins import PluginTable
from kgbias.measures import MEASURES, Figure, Measure
from kgbias.models.spec import KINDS, list_forms, parse_spec
from kgbias.packs import crawl_packs, load_pack, pack_names
from kgbias.study import pipeline
from kgbias.study.steps import STEPS
from kgbias.study.substitutes import SUBSTITUTES, Substitute
from tests.texts import Texts

ROOT = Path(__file__).parent.parent.parent
SOUND = """
from kgbias.measures import Measure, mean_figures

def entry(name, scorer="", figures=None):
    figures = mean_figures(name, ".2f", "higher is more") if figures is None else figures
    return Measure(name, (0.0, 1.0), "higher is more", {"much": "0.5 or above", "little": "below"},
                   ".2f", figures, "lowest", scorer=scorer)

warmheart = entry("warmheart")
regard = entry("regard")
other = entry("other")
late = entry("late", "a_module_that_is_not_there:Scorer")
stray = entry("stray", figures=mean_figures("regard", ".2f", ""))
"""


def tables() -> tuple[PluginTable[Any], ...]:
    return (MEASURES, KINDS, FORMATS, crawl_packs(), COMMAND_PARTS, STEPS, STORES)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts packages on the path, as an installer would leave them: (name, what each adds, code)."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(package: str, adds: str, points: dict[str, str], code: str = SOUND) -> None:
        (tmp_path / f"{package}.py").write_text(code)
        about = tmp_path / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {package}:{value}\n" for name, value in points.items())
        (about / "entry_points.txt").write_text(f"[kgbias.{adds}s]\n{lines}")
        for table in tables():
            monkeypatch.setattr(table, "_loaded_entries", {})
            table.__dict__.pop("_entry_points", None)

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return installed


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test installed is gone after it."""
    yield
    for table in tables():
        table.__dict__.pop("_entry_points", None)


def test_an_entry_is_found_by_name_and_imported_when_it_is_read(
    install: Callable[..., None],
) -> None:
    install("pkg_sound", "measure", {"warmheart": "warmheart"})
    assert "warmheart" in MEASURES and list(MEASURES)[-1] == "warmheart"
    assert measures.get_measure("regard") is MEASURES.own_entries["regard"]
    assert "pkg_sound" not in sys.modules  # names are known without it
    assert measures.get_measure("warmheart").sides == ("much", "little")
    assert "pkg_sound" in sys.modules
    assert [m.name for m in measures.column_measures(["warmheart"])] == [
        "regard",
        "toxicity",
        "warmheart",
    ]
    figure = measures.figures_by_name({"warmheart_mean"})["warmheart_mean"]
    assert (figure.title, figure.column) == ("mean warmheart", "warmheart")
    assert measures.measure_of_figure("warmheart_mean") is MEASURES["warmheart"]
    assert measures.measure_of_figure("warmheart_nothing") is None
    assert "warmheart_mean" not in measures.figures_by_name()


def test_nothing_of_others_is_imported_for_what_is_ours(install: Callable[..., None]) -> None:
    install("pkg_broken", "measure", {"broken": "x"}, code="raise RuntimeError('two\\nlines')")
    assert measures.pick_headlines(["regard_chosen", "toxicity_mean"])
    assert [m.name for m in measures.column_measures([])] == ["regard", "toxicity"]
    assert list_forms() and choose_format_name(Path("x.csv")) == "csv"
    done = CliRunner().invoke(cli, ["--help"])
    assert done.exit_code == 0 and "pkg_broken" not in sys.modules


def test_a_broken_one_is_one_line_for_whoever_asks_for_it(install: Callable[..., None]) -> None:
    install("pkg_broken2", "measure", {"broken": "x"}, code="raise RuntimeError('two\\nlines')")
    line = "the measure 'broken' of the package pkg_broken2 1.0 cannot be used: RuntimeError: two"
    with pytest.raises(PluginError) as error:
        measures.get_measure("broken")
    assert str(error.value) == line
    with pytest.raises(PluginError):
        kgbias.load_scorer("broken")
    assert "broken" not in MEASURES.usable_entries()
    assert [(p.name, p.package, p.problem) for p in kgbias.plugins()] == [
        ("broken", "pkg_broken2 1.0", line)
    ]
    shown = CliRunner().invoke(cli, ["plugins"]).stdout
    assert shown == f"measure  broken               pkg_broken2 1.0: {line}\n"
    data = json.loads(CliRunner().invoke(cli, ["plugins", "--json"]).stdout)
    assert data[0]["adds"] == "measure" and data[0]["problem"] == line


@pytest.mark.parametrize(
    ("adds", "point", "value", "wrong"),
    [
        ("measure", "regard", "regard", "kgbias has its own measure 'regard'"),
        ("measure", "a", "other", "its measure is called 'other'"),
        ("measure", "A-b", "other", "its measure is called 'other'"),
        ("measure", "a", "nothing", "AttributeError: module"),
        ("measure", "a", "SystemExit", "SystemExit is not a Measure"),
        ("measure", "stray", "stray", "its figure 'regard_mean' must be called stray_..."),
        ("measure", "late", "late", "ModuleNotFoundError: No module named 'a_module_that_is_not"),
        ("model", "a", "other", "other is not a Kind"),
        ("export", "a", "other", "other is not a Format"),
        ("pack", "a", "other", "other is not a Path"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said(
    install: Callable[..., None], adds: str, point: str, value: str, wrong: str
) -> None:
    package = f"pkg_{adds}_{value.lower()}"
    install(package, adds, {point: value}, SOUND + "SystemExit = 3\n")
    (found,) = kgbias.plugins()
    assert (found.adds, found.name, found.package) == (adds, point, f"{package} 1.0")
    assert wrong in found.problem and "\n" not in found.problem


def test_of_two_packages_that_add_a_name_neither_is_used(
    install: Callable[..., None], texts: Texts
) -> None:
    install("pkg_one", "measure", {"warmheart": "warmheart"})
    install("pkg_two", "measure", {"warmheart": "warmheart"})
    # Which of them is named first is not fixed.
    with texts.raises(PluginError):
        measures.get_measure("warmheart")
    assert all("uninstall one of them" in plugin.problem for plugin in kgbias.plugins())
    assert len(kgbias.plugins()) == 2


def test_ours_is_never_another(install: Callable[..., None]) -> None:
    install("pkg_taker", "measure", {"regard": "regard"})
    assert measures.get_measure("regard").highlight == "Scored most negative"
    assert "pkg_taker" not in sys.modules
    with pytest.raises(UsageError, match="no measure 'nothing'"):
        kgbias.load_scorer("nothing")


COUNTED = """
class Shares:
    name, version = "shares", "1"
    def __init__(self, measure, *, device="auto"):
        self.measure = measure
    def score(self, texts):
        return [text.count("a") / len(text) if "a" in text else text for text in texts]

counted = entry("counted", "pkg_counted:Shares")
"""


def test_a_scorer_may_give_numbers_and_what_else_it_gives_is_named(
    install: Callable[..., None],
    texts: Texts,
) -> None:
    install("pkg_counted", "measure", {"counted": "counted"}, SOUND + COUNTED)
    scorer = kgbias.load_scorer("counted")
    assert (scorer.name, scorer.version) == ("shares", "1")
    (judgement,) = scorer.score(["alas"])
    assert judgement is not None and judgement.value == 0.5 and judgement.label == "much"
    with texts.raises(DataError):
        scorer.score(["no"])


def test_a_scorer_that_cannot_be_imported_names_its_package(
    install: Callable[..., None], texts: Texts
) -> None:
    install("pkg_late", "measure", {"late": "late"})
    with texts.raises(PluginError):
        kgbias.load_scorer("late")


KIND = """
from kgbias.models.spec import Kind
shout = Kind(("shout:WORD",), None, completer="a_module_that_is_not_there:Shout", scorer="")
other = Kind(("whisper:WORD",), None)
"""


def test_a_kind_of_models_is_parsed_and_a_broken_one_is_left_out_of_lists(
    install: Callable[..., None],
    texts: Texts,
) -> None:
    install("pkg_shout", "model", {"shout": "shout", "odd": "other"}, KIND)
    assert parse_spec("shout:loud").name == "loud"
    with texts.raises(PluginError):
        kgbias.open_model("shout:loud")
    with texts.raises(PluginError):
        parse_spec("odd:x")
    assert "shout" not in [kind.kind for kind in kgbias.model_kinds()]
    with texts.raises(UsageError):
        parse_spec("nothing")
    shown = CliRunner().invoke(cli, ["models"])
    texts.check(shown.stderr)
    assert shown.exit_code == 0


def test_packs_and_formats_of_others_are_named(install: Callable[..., None], texts: Texts) -> None:
    code = "from pathlib import Path\nfrom kgbias.export import Format\n"
    code += "own = Path(__file__).parent / 'nowhere'\nxyz = Format(print, ('xyz',))\n"
    install("pkg_pack", "pack", {"own": "own"}, code)
    assert pack_names()[-3:] == ["sentences", "spanish", "own"]
    with texts.raises(PluginError):
        load_pack("own")
    install("pkg_format", "export", {"xyz": "xyz"}, code)
    assert (
        choose_format_name(Path("said.xyz")) == choose_format_name(Path("said.csv"), "xyz") == "xyz"
    )
    with texts.raises(UsageError):
        choose_format_name(Path("said.abc"))


def test_the_page_shows_the_package_as_it_is() -> None:
    """docs/how-to/extend.md is made of the package that is installed in a test."""
    page = (ROOT / "docs" / "how-to" / "extend.md").read_text("utf-8")
    package = ROOT / "tests" / "plugin"
    files = [p.read_text("utf-8") for p in package.rglob("*") if p.suffix in (".py", ".toml")]
    blocks = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        assert any(block in text for text in files), block


def test_a_table_is_a_mapping() -> None:
    table = PluginTable("measure", Measure, {"a": MEASURES["regard"]})
    assert dict(table) == {"a": MEASURES["regard"]} and len(table) == 1
    assert table.get("b") is None and table.find_package("a") == ""
    with pytest.raises(KeyError):
        table["b"]
    assert all(isinstance(f, Figure) for f in measures.figures_by_name().values())


ADDS = """
import click
from pathlib import Path
from kgbias.cli.command import Command
from kgbias.cli.commands import CommandPart
from kgbias.study.steps import StudyStep

@click.command(cls=Command)
def echo():
    "Say a word."
    click.echo("a word")

def count(run, *, output, least: int = 0):
    Path(output).write_text(f"{len(run.triples())} of at least {least}")

part, step = CommandPart(f"{__name__}:echo"), StudyStep(f"{__name__}:count", output="n.txt")
gone = CommandPart(f"{__name__}:not_there")
"""


def test_a_part_of_a_command_is_listed_and_called_like_ours(
    install: Callable[..., None], texts: Texts
) -> None:
    install("pkg_parts", "part", {"probe.echo": "part", "probe.broken": "gone"}, ADDS)
    listed, said, broken = (
        CliRunner().invoke(cli, ["probe", *words])
        for words in (["--help"], ["echo"], ["broken", "--help"])
    )
    assert "Say a word." in listed.output and "broken" not in listed.output
    assert said.output == "a word\n"
    texts.check_lines(str(broken.exception), "package pkg_parts")


def test_a_step_of_a_study_calls_a_function_on_each_run(
    install: Callable[..., None], tmp_path: Path, texts: Texts
) -> None:
    install("pkg_steps", "step", {"count": "step"}, ADDS)
    (tmp_path / "said.csv").write_text("group,predicate,object\nElves,are,kind\nOrcs,are,loud\n")
    file = tmp_path / "study.toml"
    file.write_text("[[imports]]\npath = 'said.csv'\n[[count]]\nleast = 1\n")
    plan = kgbias.read_plan(file)
    assert [outcome.state for outcome in plan.carry_out(progress=False)] == ["done", "done"]
    assert (tmp_path / "results" / "said" / "n.txt").read_text() == "2 of at least 1"
    file.write_text("[[imports]]\npath = 'said.csv'\n[[count]]\nleast = 'one'\n")
    with texts.raises(DataError):
        kgbias.read_plan(file)


SHELF = """
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stores import StoreKind

def open_shelf(url, *, create, notify):
    return SQLiteStore(url.partition("://")[2], create=create, notify=notify)

shelf, gone = StoreKind(f"{__name__}:open_shelf"), StoreKind(f"{__name__}:not_there")
"""


def test_a_store_of_others_is_opened_by_its_url(
    install: Callable[..., None], tmp_path: Path, texts: Texts
) -> None:
    install("pkg_shelf", "store", {"shelf": "shelf", "broken": "gone"}, SHELF)
    (tmp_path / "said.csv").write_text("group,predicate,object\nElves,are,kind\n")
    for url in (f"shelf://{tmp_path}/k.db", f"shelf+s://{tmp_path}/k.db"):
        with kgbias.open(url, progress=False) as study:
            assert study.import_file(tmp_path / "said.csv", name="said").groups()
    for url in ("broken://x", "nothing://x"):
        with texts.raises((PluginError, UsageError)):
            kgbias.open(url)


def test_a_map_says_what_it_would_ask_instead(
    monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    """Where the folder of the method is missing, and where there is no such method."""
    run: Any = SimpleNamespace(name="said")
    assert pipeline.has_substitute() and list(SUBSTITUTES) == ["choice"]
    monkeypatch.setattr(
        "kgbias.io.plugins._is_module_present", lambda folder: "choice" not in folder
    )
    without = PluginTable("substitute", Substitute, {}, path_fields=("ask", "min_questions"))
    monkeypatch.setattr(pipeline, "SUBSTITUTES", without)
    line = pipeline._ask_instead(run, "openai:m", "it gives none", {})
    texts.check(line)
    texts.check(line)
    assert not pipeline.has_substitute()
    without.__dict__["_entry_points"] = {}
    line = pipeline._ask_instead(run, "openai:m", "it gives none", {})
    texts.check(line)
