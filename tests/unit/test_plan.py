"""A study in a file, and the defaults of a folder."""

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.cli.commands import COMMANDS
from kgbias.cli.settings import file_defaults
from kgbias.errors import DataError, UsageError
from kgbias.models.http import OPENAI_API, read_secrets
from kgbias.study import plan as plans
from kgbias.study.plan import Step
from tests.texts import Texts

SAID = "group,predicate,object,count\nWomen,love,tea,3\nMen,hate,tea,1\n"


def declared(folder: Path, text: str) -> kgbias.Plan:
    (folder / "said.csv").write_text(SAID)
    (folder / "study.toml").write_text(text)
    return kgbias.read_plan(folder / "study.toml")


WHOLE = """
store = "study.db"
output = "out"

[crawl]
models = ["smollm2", "openai:some/model"]
category = ["gender"]
samples = 2
iterations = 0

[[crawls]]
model = "reference"
name = "own"
category = ["peoples"]
repeat = 3
max_requests = 9

[[imports]]
path = "said.csv"

[measure]
axes = false

[[probe]]
model = "same"

[[probe]]
model = "minilm"
runs = ["said"]

[report]

[[export]]
format = "graphml"
path = "graph.graphml"
"""


def test_a_plan_is_all_that_follows_from_its_file(tmp_path: Path) -> None:
    plan = declared(tmp_path, WHOLE)
    assert plan.store == str(tmp_path / "study.db")
    assert [str(step) for step in plan.steps] == [
        "crawl smollm2",
        "crawl openai-some-model",
        "crawl own",
        "import said",
        "measure smollm2",
        "probe smollm2 of smollm2",
        "report smollm2",
        "export smollm2",
        "measure openai-some-model",
        "probe openai-some-model of openai:some/model",
        "report openai-some-model",
        "export openai-some-model",
        "measure own",
        "probe own of reference",
        "report own",
        "export own",
        "measure said",
        "probe said of minilm",
        "report said",
        "export said",
    ]
    own = plan.steps[2].options
    assert (own["samples"], own["category"], own["repeat"]) == (2, ["peoples"], 3)
    assert plan.steps[7].output == tmp_path / "out" / "smollm2" / "graph.graphml"
    prices = plan.prices()
    assert prices["smollm2"] == kgbias.price("smollm2", category="gender", samples=2, iterations=0)
    assert prices["own"].crawls == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "declares no crawl"),
        ("[crawls]\nmodel = 'x'", r"'crawls' must be tables, \[\[crawls\]\]"),
        ("[[crawl]]\nmodel = 'x'", r"'crawl' must be a table, \[crawl\]"),
        ("store = 3", "'store' must be a text"),
        ("[mesure]", "no entry 'mesure' .did you mean measure"),
        ("[crawl]\nmodels = 'smollm2'", "must be a list of specs"),
        ("[crawl]\nmodels = ['smollm2']\nsample = 2", r"\[crawl\] cannot set 'sample'"),
        ("[[crawls]]\nsamples = 2", "needs a `model`"),
        ("[[imports]]\nname = 'x'", "needs a `path`"),
        ("[crawl]\nmodels = ['smollm2', 'smollm2']", "two runs are called 'smollm2'"),
        ("[crawl]\nmodels = ['smollm2']\n[measure]\nregards = 1", "cannot set 'regards'"),
        ("[crawl]\nmodels = ['smollm2']\n[measure]\nscorers = 1", "'scorers' .* must be a table"),
        ("[crawl]\nmodels = ['smollm2']\n[measure.scorers]\nregards = 'x'", "no measure 'regards'"),
        ("[crawl]\nmodels = ['smollm2']\n[measure]\npreset = 'x'", "no preset 'x'"),
        ("[crawl]\nmodels = ['smollm2']\n[[probe]]\nby = 'whole'", "needs a `model`"),
        ("[crawl]\nmodels = ['smollm2']\n[[associate]]\nmethod = 'weat'", "cannot set 'method'"),
        ("[crawl]\nmodels = ['smollm2']\n[[export]]\nformat = 'x'", "no export format 'x'"),
        ("[crawl]\nmodels = ['smollm2']\n[report]\npath = 'x'", "cannot set 'path'"),
        ("[crawl]\nmodels = ['smollm2']\nsamples = 'x'", "'samples' .* must be a whole number"),
        ("[crawl]\nmodels = ['smollm2']\nsamples = true", "must be a whole number"),
        ("[crawl]\nmodels = ['smollm2']\ncategory = 3", "must be a text or a list of texts"),
        ("[crawl]\nmodels = ['smollm2']\nform = 'x'", 'must be "completion" or "chat"'),
        ("[crawl]\nmodels = 3", "must be a list of specs"),
        ("[crawl]\nmodels = ['smollm2']\n[[probe]]\nmodel = 'x'\nruns = 3", "`runs` of"),
        ("[crawl]\nmodels = ['smollm2']\n[[export]]\nformat = ['x']", "'format' .* a text"),
    ],
)
def test_what_a_plan_cannot_say(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        declared(tmp_path, text)


def test_a_name_that_no_file_can_have_is_a_name(tmp_path: Path) -> None:
    name = "x" * 5000
    plan = declared(tmp_path, f"[crawl]\nmodels = ['smollm2']\nprompts = '{name}'")
    assert plan.steps[0].options["prompts"] == name


def test_carrying_out_a_plan_and_doing_it_again(tmp_path: Path) -> None:
    text = """
        [[imports]]
        path = "said.csv"
        [[imports]]
        path = "gone.csv"
        [[export]]
        [[export]]
        group = "Women"
        path = "women.jsonl"
        runs = ["said"]
        [[associate]]
        vectors = "gone.txt"
        runs = ["said"]
        """
    plan = declared(tmp_path, text)
    assert {o.state for o in plan.state()} == {"left"}
    outcomes = plan.carry_out(progress=False)
    assert [(o.step.kind, o.step.run, o.state) for o in outcomes] == [
        ("import", "said", "done"),
        ("import", "gone", "failed"),
        ("associate", "said", "failed"),
        ("export", "said", "done"),
        ("export", "said", "done"),
        ("export", "gone", "left"),
    ]
    assert "gone.csv" in outcomes[1].error
    assert "Women,love,tea" in (tmp_path / "results" / "said" / "triples.csv").read_text("utf-8")
    (line,) = (tmp_path / "results" / "said" / "women.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["group"] == "Women"
    assert [o.state for o in plan.state()] == ["done", "left", "left", "done", "done", "left"]
    again = plan.carry_out(progress=False)
    assert [o.state for o in again] == [o.state for o in outcomes]
    with kgbias.open(plan.store) as study:
        assert len(study.runs()) == 1
    frame = again.to_frame()
    assert list(frame.columns) == ["step", "run", "state", "error", "output"]
    with pytest.raises(DataError, match=r"gone\.csv"):
        plan.carry_out(progress=False, keep_going=False)


def given(text: str, tmp_path: Path, name: str = "crawl") -> dict[str, Any]:
    (path := tmp_path / "kgbias.toml").write_text(text)
    from kgbias.io.reading import read_toml

    command = cli.get_command(click.Context(cli), name)
    assert command
    return file_defaults(path, read_toml(path), COMMANDS, name, command)


def test_a_folder_has_defaults(tmp_path: Path) -> None:
    text = """
        store = "study.db"
        [crawl]
        model = "smollm2"
        category = "gender"
        top-k = 5
        [measure]
        scorer = ["regard=offline", "toxicity=none"]
        [probe.run]
        model = "smollm2"
        """
    assert given(text, tmp_path) == {
        "store_url": "study.db",
        "model": "smollm2",
        "category": ["gender"],
        "top_k": 5,
    }
    assert given(text, tmp_path, "measure")["scorers"] == ["regard=offline", "toxicity=none"]
    assert given(text, tmp_path, "probe")["run"] == {
        "store_url": "study.db",
        "specs": ["smollm2"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stores = 'x'", "no setting for all commands 'stores'"),
        ("[crwal]", "no command 'crwal'"),
        ("[crawl]\nmodle = 'x'", r"\[crawl\] no option or setting 'modle' .did you mean model"),
        ("[crawl]\nmodel = {a = 1}", "'model' must be a value"),
        ("[probe.rnu]\nmodel = 'x'", "no option or setting 'rnu' .did you mean run"),
    ],
)
def test_what_a_folder_cannot_set(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        given(text, tmp_path, "probe" if "probe" in text else "crawl")


def test_flag_then_environment_then_file_then_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("flag", "environment", "file"):
        with kgbias.open(f"{name}.db") as study:
            (tmp_path / "said.csv").write_text(SAID)
            study.import_file("said.csv", name=name)
    (tmp_path / "kgbias.toml").write_text('store = "file.db"\n[runs]\njson = true')

    def name_of(*arguments: str) -> str:
        cli.main(["runs", *arguments], standalone_mode=False)
        return str(json.loads(capsys.readouterr().out)[0]["name"])

    assert name_of() == "file"
    monkeypatch.setenv("KGBIAS_STORE", "environment.db")
    assert name_of() == "environment"
    assert name_of("--store", "flag.db") == "flag"
    monkeypatch.setenv("KGBIAS_CONFIG", str(tmp_path / "elsewhere.toml"))
    with pytest.raises(DataError, match=r"elsewhere\.toml"):
        name_of()


ACROSS = """
output = "out"

[crawl]
models = ["reference"]
category = ["peoples"]
samples = 1
iterations = 0

[[imports]]
path = "said.csv"

[[imports]]
path = "said.csv"
name = "again"
model = "other"

[[profiles]]
model = "reference"
names = "names.csv"
samples = 1

[[choose]]
model = "openai:chooser"
runs = "said"

[[evidence]]
runs = ["said"]

[[compare]]
runs = ["said", "again"]
measures = ["regard"]
examples = 1

[[benchmark]]
models = ["reference"]
statements = "statements.txt"
identities = "sofa"
device = "cpu"
tables = "tables"

[[query]]
name = "shared"
parameters = {group = "Women", other = "Men"}

[[query]]
cypher = "MATCH (g:SocialGroup) RETURN g.name AS name ORDER BY name"
path = "groups.json"
"""


def test_steps_across_runs(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("name,group\nAna,Women\n")
    plan = declared(tmp_path, ACROSS)
    assert [str(step) for step in plan.steps] == [
        "crawl reference",
        "import said",
        "import again",
        "profiles reference-profiles of reference",
        "choose said of openai:chooser",
        "evidence said",
        "compare said, again",
        "benchmark of reference",
        "query shared",
        "query",
    ]
    steps = {step.kind: step for step in plan.steps}
    assert steps["profiles"].options["names"] == str(tmp_path / "names.csv")
    assert steps["benchmark"].options["statements"] == str(tmp_path / "statements.txt")
    assert steps["benchmark"].options["identities"] == "sofa"
    assert steps["benchmark"].options["device"] == "cpu"
    assert steps["benchmark"].output == tmp_path / "out" / "benchmark.html"
    assert steps["compare"].runs == ("said", "again") and steps["query"].runs == ()
    assert set(plan.prices()) == {"reference", "reference-profiles"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[compare]]\nruns = ['said']", "needs two or more"),
        ("[[compare]]\nruns = ['said', 'no']", "no run 'no'; choose from said"),
        ("[[compare]]\nprobes = true", "cannot set 'probes'"),
        ("[[compare]]\nruns = ['said', 'said']\npath = 'a.csv'", "must end in .json"),
        ("[[query]]\nname = 'no'", "no query 'no'"),
        ("[[query]]\nname = 'shared'\nparameters = {no = 1}", "no parameter 'no'"),
        ("[[query]]", "needs a library query's `name`"),
        ("[[query]]\ncypher = 'RETURN 1'\npath = 'a.txt'", "must end in .csv or .json"),
        ("[[query]]\ncypher = 'RETURN 1'\n[[query]]\ncypher = 'RETURN 2'", "two steps write"),
        ("[[benchmark]]\nstatements = 'a.txt'", "needs `models`"),
        ("[[benchmark]]\nmodels = ['a']\nno = 1", "cannot set 'no'"),
        ("[[benchmark]]\nmodels = ['a']\napx = 'yes'", "must be true or false"),
        ("[[evidence]]\npath = 'a.html'", "must end in .csv or .json"),
        ("[[choose]]\nsample = 3", "needs a `model`"),
        ("[[profiles]]\nsamples = 3", "needs a `model`"),
        ("[[profiles]]\nmodel = 'a'\nform = 'long'", '"json" or "attributes"'),
    ],
)
def test_what_steps_across_runs_cannot_say(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        declared(tmp_path, f"[[imports]]\npath = 'said.csv'\n{text}\n")


TOLD = """
output = "out"

[[stories]]
model = "openai:m"
category = ["gender"]
people = "people.csv"
samples = 2
reader = "model"
base_url = "http://localhost:9/v1"

[[pairs]]
model = "openai:m"
name = "asked"
requests = "requests.csv"

[links]
attribute = ["occupation"]

[results]
measure = ["words"]

[measure]

[[evidence]]
"""


def test_stories_and_pairs_are_runs_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,group,category\na woman,Women,gender\n")
    (tmp_path / "requests.csv").write_text("request,text\npay,What should {name} ask for?\n")
    plan = declared(tmp_path, TOLD)
    assert [str(step) for step in plan.steps] == [
        "pairs asked of openai:m",
        "stories openai-m-stories of openai:m",
        "results asked",
        "links openai-m-stories",
        "measure openai-m-stories",
        "evidence openai-m-stories",
    ]
    steps = {step.kind: step for step in plan.steps}
    assert steps["stories"].options["people"] == str(tmp_path / "people.csv")
    assert steps["links"].output == tmp_path / "out" / "openai-m-stories" / "links.json"
    assert steps["results"].output == tmp_path / "out" / "asked" / "results.json"
    assert plan.addresses == ("http://localhost:9/v1",) and not plan.outside
    prices = plan.prices()
    assert prices["openai-m-stories"].requests == 4  # two stories about one person, each read
    assert prices["asked"].requests_at_most == prices["asked"].requests
    outside = declared(tmp_path, TOLD.replace("people.csv", "../people.csv")).outside
    assert [Path(file).name for file in outside] == ["people.csv"]


def test_stories_are_exported_of_runs_of_stories(tmp_path: Path, texts: Texts) -> None:
    (tmp_path / "people.csv").write_text("name,group,category\na woman,Women,gender\n")
    told = "[[stories]]\nmodel = 'a'\ncategory = 'gender'\npeople = 'people.csv'\n"
    export = "[[export]]\nformat = 'stereotales'\npath = 's.csv'\n"
    both = f"{told}[[imports]]\npath = 'said.csv'\n{export}"
    assert [str(s) for s in declared(tmp_path, both).steps if s.kind == "export"] == [
        "export a-stories"
    ]
    with texts.raises(DataError):
        declared(tmp_path, f"{both}runs = 'said'\n")


def test_links_of_a_table_of_stories(tmp_path: Path) -> None:
    plan = declared(
        tmp_path, "[[imports]]\npath = 'theirs.jsonl'\nformat = 'stereotales'\n[links]\n"
    )
    assert [str(step) for step in plan.steps] == ["import theirs", "links theirs"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[stories]]\nsamples = 3", "each [[stories]] needs a `model`"),
        ("[[stories]]\nmodel = 'a'\nreaders = 'model'", "did you mean reader?"),
        ("[[pairs]]\nmodel = 'a'\nsamples = 'b'", "'samples' of [[pairs]] must be"),
        ("[[pairs]]\nmodel = 'a'\n[links]", "[links] is about [[stories]], and there are none"),
        ("[[stories]]\nmodel = 'a'\n[links]\nmeasure = 'b'", "[links] cannot set 'measure'"),
        (
            "[[imports]]\npath = 'said.csv'\n[[pairs]]\nmodel = 'a'\nname = 'p'\n"
            "[[export]]\nruns = 'p'",
            "[[export]] needs statements: 'p' is a run of pairs",
        ),
        ("[[pairs]]\nmodel = 'a'\n[measure]", "'measure' needs statements, and [[pairs]] have"),
        ("[[pairs]]\nmodel = 'a'\n[[probe]]\nx = 1", "'probe' needs statements, and [[pairs]]"),
        (
            "[[imports]]\npath = 'said.csv'\n[[export]]\nformat = 'stereotales'\npath = 's.csv'",
            "stereotales is of stories: 'said' has none",
        ),
    ],
)
def test_what_stories_and_pairs_of_a_study_cannot_say(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        declared(tmp_path, text)


def test_a_plan_stays_in_its_folder_unless_it_is_trusted(tmp_path: Path, texts: Texts) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (tmp_path / "precious.json").write_text("mine")
    (tmp_path / "secret.csv").write_text(SAID)
    (folder / "link.csv").symlink_to(tmp_path / "precious.json")
    outside = str(tmp_path / "precious.json")
    for text in (
        f"[[query]]\nname = 'shared'\npath = '{outside}'",
        "[[query]]\nname = 'shared'\npath = '../../precious.json'",
        "[[query]]\nname = 'shared'\npath = '../link.csv'",
        "[[query]]\nname = 'shared'\npath = '../.hidden.csv'",
        "[[export]]\npath = '../../../precious.csv'",
        "[[evidence]]\npath = '../../../precious.csv'",
        "[[imports]]\npath = '../secret.csv'\nname = 'x'",
        "[[benchmark]]\nmodels = 'smollm2'\ntables = '../../tables'",
        "[[probe]]\nmodel = 'smollm2'\noutput = '../probed.csv'",
    ):
        plan = declared(folder, f"[[imports]]\npath = 'said.csv'\n{text}")
        assert len(plan.outside) == 1, text
        with texts.raises(UsageError):
            plan.carry_out(progress=False)
        with texts.raises(UsageError):
            plan.state()
        dry = CliRunner().invoke(cli, ["run", str(plan.path), "--dry-run"])
        assert str(plan.outside[0]) in dry.output
        texts.check_lines(dry.output, "study's folder")
    for line in ("store = '../other.db'", "output = '/results'", "output = '..'"):
        plan = declared(folder, f"{line}\n[[imports]]\npath = 'said.csv'\n[report]")
        assert len(plan.outside) == 1, line
    assert (tmp_path / "precious.json").read_text() == "mine"
    text = "[[imports]]\npath = 'said.csv'\n[[export]]\npath = '../../../out.csv'"
    outcomes = declared(folder, text).carry_out(progress=False, trust=True)
    assert [o.state for o in outcomes] == ["done", "done"] and (tmp_path / "out.csv").exists()


def test_no_address_in_a_file_gets_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user-1234")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    their = "http://their.example:8000/v1"
    crawl = f"[[crawls]]\nmodel = 'openai:m'\nbase_url = '{their}'\ncategory = 'gender'"
    sent: list[str] = []

    def ask(study: Any, step: Any) -> None:
        sent.append(read_secrets(step.options["base_url"]).key)

    monkeypatch.setitem(plans._ACTIONS, "crawl", ask)
    plan = declared(tmp_path, crawl)
    assert plan.addresses == (their,)
    plan.carry_out(progress=False)
    plan.carry_out(progress=False, trust=True)
    declared(tmp_path, crawl.replace(their, OPENAI_API.url)).carry_out(progress=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://their.example:8000/elsewhere")
    plan.carry_out(progress=False)
    key = "sk-of-the-user-1234"
    assert sent == ["", key, key, key]
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert read_secrets(their).key == key  # once the plan is over
    plan = declared(tmp_path, crawl)
    dry = CliRunner().invoke(cli, ["run", str(plan.path), "--dry-run"]).output
    assert str(their) in dry
    texts.check_lines(dry, "without --trust")
    text = (
        f"[[imports]]\npath = 'said.csv'\n[[benchmark]]\nmodels = 'openai:m'\nbase_url = '{their}'"
    )
    assert declared(tmp_path, text).addresses == (their,)
    cluster = declared(tmp_path, f"{crawl}\n[measure]\nexecutor = 'ray://their.example:10001'")
    with texts.raises(UsageError):
        cluster.carry_out(progress=False)
    stored = declared(tmp_path, f"store = 'bolt://u@their.example:7687'\n{crawl}")
    assert stored.addresses == ("bolt://u@their.example:7687", their)


def test_no_address_in_a_folders_defaults_gets_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user-1234")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("KGBIAS_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    their = "http://their.example:8000/v1"
    Path("kgbias.toml").write_text(f"base-url = '{their}'\n[crawl]\nmodel = 'openai:m'")
    sent: list[str] = []
    monkeypatch.setattr(
        kgbias.Study, "crawl", lambda *_, base_url, **__: sent.append(read_secrets(base_url).key)
    )
    nothing: list[str] = []
    for extra in (nothing, ["--base-url", their], [f"--base-url={their}"]):
        CliRunner().invoke(cli, ["crawl", *extra])
    monkeypatch.setenv("KGBIAS_CONFIG", "kgbias.toml")
    CliRunner().invoke(cli, ["crawl"])
    key = "sk-of-the-user-1234"
    assert sent == ["", key, key, key]


def test_a_comparison_hands_each_parameter_to_what_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, dict[str, object]] = {}

    class Two:
        def compare_runs(self, *runs: str, **options: object) -> list[object]:
            asked["compare"] = options
            return []

        def compare_models(self, *runs: str, **options: object) -> None:
            asked["contrast"] = options

    monkeypatch.setattr("kgbias.study.plan.comparison_records", lambda found, models: [])
    options = {"runs": ["a", "b"], "examples": 2, "margin": 0.1, "correction": "bh", "arm": "none"}
    step = Step("compare", "", options, tmp_path / "compare.json")
    plans._run_compare(Two(), step)  # type: ignore[arg-type]
    assert asked == {
        "compare": {"examples": 2, "arm": "none"},
        "contrast": {"margin": 0.1, "correction": "bh", "arm": "none"},
    }


@pytest.mark.parametrize(
    "text",
    [
        "[measure]\nexecutor = 'ray://their.example:10001'",
        "[export]\noutput = '/etc/cron.d/x'",
        "[export]\noutput = '../x.csv'",
        "[report]\noutput = '.bashrc'",
        "[review]\ncsv = '../x.csv'",
    ],
)
def test_a_folders_defaults_do_not_reach_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KGBIAS_CONFIG", raising=False)
    Path("kgbias.toml").write_text(text)
    refused = CliRunner().invoke(cli, ["runs"])
    assert isinstance(refused.exception, DataError)
    assert "reaches outside this folder" in str(refused.exception)
    Path("kgbias.toml").write_text("[export]\noutput = 'out/x.csv'\n[measure]\nexecutor = 'ray'")
    assert not isinstance(CliRunner().invoke(cli, ["runs"]).exception, DataError)
