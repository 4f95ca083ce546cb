"""A package that adds to kgbias (tests/plugin) is installed, used, and gone again."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attack.commands import CommandResult, Commands

pytestmark = pytest.mark.integration
PLUGIN = Path(__file__).parent.parent / "plugin"
NOTHING = [
    word
    for name in ("regard", "toxicity", "identity_attack", "acceptability")
    for word in ("--scorer", f"{name}=none")
]
MEASURE = ("measure", "said", *NOTHING, "--no-axes")
Kgbias = Callable[..., CommandResult]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed in."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PLUGIN, folder / "source")  # building leaves files beside it
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install += ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder / "site")]
    subprocess.run([*install, str(folder / "source")], check=True)
    return folder / "site"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


def calls(commands: Commands) -> Kgbias:
    """Runs a command and checks how it ended: an error is one line."""

    def kgbias(*arguments: str, code: int = 0) -> CommandResult:
        done = commands.run(*arguments)
        assert done.code == code, done.err
        assert code == 0 or len(done.err.strip().splitlines()) == 1, done.err
        return done

    return kgbias


@pytest.fixture(scope="module")
def kgbias(site: Path, folder: Path) -> Iterator[Kgbias]:
    """Runs a command where the package is, beside a run that its model was crawled for with its
    prompts, and that is measured by its scorer."""
    with Commands(folder, site=site) as commands:
        run = calls(commands)
        spec = ("--model", "parrot:tea,please", "--prompts", "plain", "--category", "gender")
        said = run("crawl", *spec, "--run", "said")
        assert "24 statements from 24 answers" in said.out
        measured = run(*MEASURE, "--scorer", "politeness")
        assert "politeness" in measured.out and "regard" not in measured.out
        yield run


def test_what_it_adds_is_listed(kgbias: Kgbias) -> None:
    found = json.loads(kgbias("plugins", "--json").out)
    assert [(row["adds"], row["name"]) for row in found] == [
        ("measure", "politeness"),
        ("model", "parrot"),
        ("import", "letters"),
        ("export", "markdown"),
        ("pack", "plain"),
        ("command", "manners"),
    ]
    assert {(row["package"], row["problem"]) for row in found} == {("kgbias-manners 1.0", "")}
    assert "parrot:WORDS" in kgbias("models").out
    assert "Added by kgbias-manners 1.0." in kgbias("--help").out
    assert "politeness" in kgbias(*MEASURE, "--scorer", "manners", code=2).err
    asked = ("crawl", "--category", "gender", "--model")
    assert "parrot:WORDS" in kgbias(*asked, "crow:x", code=2).err
    assert "plain" in kgbias(*asked, "parrot:x", "--prompts", "x", code=2).err
    assert "markdown" in kgbias("export", "said", "-o", "said.xyz", code=2).err


def test_its_scores_are_tested_drawn_and_exported(kgbias: Kgbias, folder: Path) -> None:
    assert "mean politeness" in kgbias("compare", "said").out
    assert "politeness" in kgbias("attribute", "said", "--measure", "politeness").out
    kgbias("figures", "said", "-o", "figures")
    assert {p.suffix for p in (folder / "figures").glob("01-mean-politeness-mean.*")} == {
        ".svg",
        ".pdf",
        ".png",
        ".tex",
    }
    kgbias("report", "said", "-o", "said.html")
    page = (folder / "said.html").read_text("utf-8")
    assert "Mean politeness per group" in page and "Scored least polite" in page
    kgbias("explore", "said", "-o", "map.html")
    assert '"politeness"' in (folder / "map.html").read_text("utf-8")
    rows = list(csv.DictReader(kgbias("export", "said", "--format", "csv").out.splitlines()))
    assert {
        (r["politeness"], r["politeness_label"]) for r in rows if "please" in r["sentence"]
    } == {("0.5", "polite")}
    kgbias("export", "said", "-o", "said.md")
    lines = (folder / "said.md").read_text("utf-8").splitlines()
    assert "| statement | said |" in lines and len(lines) == 5 + len(rows)


def test_its_format_is_read_and_its_command_called(kgbias: Kgbias, folder: Path) -> None:
    (folder / "letter.txt").write_text("Women say please now\nMen like tea\n", "utf-8")
    kgbias("import", "letter.txt", "--format", "letters", "--run", "letter")
    assert kgbias("manners", "letter").out == "1 of 2 statements are polite\n"


def test_other_scorers_of_its_measure_follow_from_its_entry(kgbias: Kgbias, folder: Path) -> None:
    judged = kgbias(*MEASURE, "--scorer", "politeness", "--scorer", "politeness=llm:parrot:polite")
    assert "the labels of 2 statements for politeness, by whoever made the measure" in judged.err
    assert "politeness by manners@1 and by llm:parrot:polite@" in judged.out
    kgbias("export", "said", "-o", "said.csv")  # whose scores are scores made elsewhere
    both = ("--scorer", "politeness", "--scorer", "politeness=scores:said.csv")
    assert "100% of 11 labels the same" in kgbias(*MEASURE, *both).out
    wrong = kgbias(*MEASURE, "--scorer", "politeness=openai-moderation", code=2)
    assert "openai-moderation scores toxicity and identity_attack, not politeness" in wrong.err
    shown = kgbias(*MEASURE, "--scorer", "politeness", "--dry-run").out
    assert "0 to read" in shown and "already scored" in shown


def test_a_study_in_a_file_can_use_it(kgbias: Kgbias, folder: Path) -> None:
    (folder / "study.toml").write_text(
        'store = "study.db"\n[crawl]\nmodels = ["parrot:tea,thanks"]\nprompts = "plain"\n'
        'category = "gender"\n[measure]\naxes = false\n[measure.scorers]\npoliteness = "offline"\n'
        'regard = "none"\ntoxicity = "none"\nidentity_attack = "none"\nacceptability = "none"\n'
        '[[export]]\nformat = "markdown"\n'
    )
    kgbias("run", "study.toml")
    assert list((folder / "results").rglob("triples.markdown"))


@pytest.fixture
def without(folder: Path) -> Iterator[Kgbias]:
    """Runs a command where the package is not."""
    with Commands(folder) as commands:
        yield calls(commands)


@pytest.mark.slow
def test_a_graph_outlives_the_package(kgbias: Kgbias, without: Kgbias) -> None:
    assert without("plugins").out == "no installed package adds anything to kgbias\n"
    assert "said" in without("runs").out
    rows = list(csv.DictReader(without("export", "said", "--format", "csv").out.splitlines()))
    assert {row["politeness"] for row in rows} <= {"0.0", "0.5"}
    without("report", "said", "-o", "without.html")
    without("compare", "said")
    without("figures", "said", "-o", "without")
    without("verify")
    again = without(*MEASURE)
    assert "group" in again.out
    gone = without(*MEASURE, "--scorer", "politeness", code=2)
    assert "no measure 'politeness'" in gone.err
    assert (
        "no model 'parrot:x'"
        in without("crawl", "--category", "gender", "--model", "parrot:x", code=2).err
    )
