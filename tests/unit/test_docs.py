"""The documentation says what is so: its commands and Python calls exist, its links lead somewhere,
it names every extra, and the site has every page."""

import ast
import inspect
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, get_args

import click
import pytest

import kgbias
from kgbias.cli import cli
from kgbias.cli.settings import SHARED_SETTINGS, command_settings, move_settings_first
from kgbias.crawl.config import MAX_FAILED_SHARE
from kgbias.models.local import LocalModel
from kgbias.models.server import ServerModel
from kgbias.report.exhibits import SECTIONS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "benchmarks" / "published.md",
    ROOT / "tests" / "attack" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_STUDIES, _RUNS = {"study"}, {"run", "small", "large"}  # what the pages call them


def _blocks(text: str, *languages: str) -> Iterator[str]:
    for _, language, body in _BLOCK.findall(text):
        if language in languages:
            yield body


def _commands(text: str) -> Iterator[str]:
    """The kgbias command lines of the console blocks, after a prompt, of the shell blocks, and of
    inline code with an argument."""
    for language, prompt in (("console", "$ "), ("sh", "")):
        for block in _blocks(text, language):
            for line in block.replace("\\\n", " ").splitlines():
                if line.strip().startswith(f"{prompt}kgbias "):
                    yield line.strip().removeprefix(prompt)
    plain = _BLOCK.sub("", text)
    for code in re.findall(r"`(kgbias [^`]+)`", plain):
        yield " ".join(code.split())


def _check(line: str) -> None:
    """Raise where a command, an option or a choice does not exist."""
    words = move_settings_first(shlex.split(line, comments=True)[1:])
    given = []
    while words[:1] == ["--set"]:
        given.append(words[1].partition("=")[0])
        words = words[2:]
    command: click.Command = cli
    context = click.Context(cli, info_name="kgbias")
    while isinstance(command, click.Group) and words:
        if words[0].isupper() or words[0] == "--help":  # `kgbias COMMAND --help`
            return
        found = command.get_command(context, words[0])
        if found is None:
            # A group may take its default command's arguments: `probe RUN`.
            assert command is not cli, f"no command {words[0]!r}: {line}"
            found = command.get_command(context, "run")
            assert found is not None, line
        else:
            words = words[1:]
        command, context = found, click.Context(found, info_name=words[0] if words else "")
    for name in given:
        assert name in {*command_settings(command), *SHARED_SETTINGS}, f"no setting {name}: {line}"
    options = {
        name: parameter
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    arguments = sum(
        100 if p.nargs == -1 else p.nargs
        for p in command.get_params(context)
        if isinstance(p, click.Argument)
    )
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            arguments -= 1
            assert arguments >= 0, f"an argument too many, {word!r}: {line}"
            continue
        name, equals, value = word.partition("=")
        assert name in options, f"no option {name}: {line}"
        option = options[name]
        if option.is_flag or option.count:
            continue
        if not equals:
            assert len(words) >= option.nargs, f"{name} needs a value: {line}"
            value, *words = words[option.nargs - 1 :]
        if isinstance(option.type, click.Choice):
            assert value in option.type.choices, f"no {value!r} for {name}: {line}"


def test_commands_of_the_pages_exist() -> None:
    lines = [(page.name, line) for page in PAGES for line in _commands(page.read_text("utf-8"))]
    assert len(lines) > 60
    wrong = []
    for page, line in lines:
        try:
            _check(line)
        except AssertionError as error:
            wrong.append(f"{page}: {error}")
    assert not wrong, "\n".join(wrong)


def _help(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below
            yield from _help(below, click.Context(below, info_name=name, parent=context))


def test_the_help_of_each_command_has_an_example_of_it() -> None:
    found = list(_help(cli, click.Context(cli, info_name="kgbias")))[1:]
    assert len(found) > 40
    for path, command in found:
        examples: tuple[str, ...] = getattr(command, "examples", ())
        assert examples, path
        for line in examples:
            assert line.startswith(path.removesuffix(" run")) or path == "kgbias run", path
            assert len(line) < 78, line
            _check(line)


def test_queries_of_the_pages_and_of_the_help_exist() -> None:
    help_of = cli.get_command(click.Context(cli), "query")
    examples: tuple[str, ...] = getattr(help_of, "examples", ())
    lines = [*examples, *(line for page in PAGES for line in _commands(page.read_text("utf-8")))]
    asked = [m for line in lines if (m := re.match(r"kgbias query ([a-z]\w*)(.*)", line))]
    assert len(asked) > 3
    takes = {q.name: {p.name for p in q.parameters} for q in kgbias.queries()}
    for one in asked:
        assert set(re.findall(r"--param (\w+)=", one[2])) <= takes[one[1]], one[0]


def test_the_help_says_the_default_of_each_shared_setting() -> None:
    opened = [inspect.signature(kind.open).parameters for kind in (LocalModel, ServerModel)]
    taken: dict[str, Any] = {name: p.default for found in opened for name, p in found.items()}
    correction = inspect.signature(kgbias.Run.compare_groups).parameters["correction"].default
    taken |= {"max_failed": MAX_FAILED_SHARE, "correction": correction}
    for name in ("batch-size", "concurrency", "timeout", "max-failed", "correction"):
        default = taken[name.replace("-", "_")]
        said = f"{default:g}" if isinstance(default, float) else str(default)
        assert said in SHARED_SETTINGS[name].help, name


def test_the_page_names_every_setting_that_commands_share() -> None:
    page = (ROOT / "docs/how-to/study.md").read_text("utf-8")
    table = page.partition("| for | settings |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([\w-]+)`", table)) == SHARED_SETTINGS.keys()


@pytest.mark.parametrize(
    "line",
    [
        "kgbias crwal",
        "kgbias crawl --modle x",
        "kgbias measure a b",
        "kgbias probe run --by nothing",
        "kgbias probe apx --nothing",
        "kgbias --set tpo-k=3 crawl",
        "kgbias structure --set top-k=3",
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises(AssertionError):
        _check(line)


def _calls(block: str) -> Iterator[tuple[str, ast.Attribute, ast.Call | None]]:
    tree = ast.parse(block)
    called = {id(n.func): n for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node, called.get(id(node))


def _unpacked(signature: inspect.Signature) -> set[str]:
    """The names that `**options: Unpack[...]` stands for."""
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (typed,) = get_args(parameter.annotation) or (None,)
            return set(getattr(typed, "__annotations__", {}))
    return set()


def _wrong_call(block: str) -> list[str]:
    wrong = []
    for owner, node, call in _calls(block):
        home: Any = (
            kgbias
            if owner == "kgbias"
            else kgbias.Study
            if owner in _STUDIES
            else kgbias.Run
            if owner in _RUNS
            else None
        )
        if home is None:
            continue
        found = getattr(home, node.attr, None)
        if found is None and node.attr not in getattr(home, "__annotations__", {}):
            wrong.append(f"{owner}.{node.attr} does not exist")
            continue
        if call is None:
            continue
        signature = inspect.signature(found)
        first = [] if home is kgbias else [None]
        named = {k.arg: None for k in call.keywords if k.arg}
        try:
            signature.bind(*first, *call.args, **named)
        except TypeError as error:
            wrong.append(f"{owner}.{node.attr}: {error}")
        taken = set(signature.parameters) | _unpacked(signature)
        if "parameters" not in taken and (unknown := set(named) - taken):
            wrong.append(f"{owner}.{node.attr} takes no {', '.join(unknown)}")
    return wrong


def test_python_of_the_pages_calls_what_there_is() -> None:
    blocks = [
        (page.name, block)
        for page in PAGES
        for block in _blocks(page.read_text("utf-8"), "python", "py")
    ]
    assert len(blocks) > 10
    wrong = [f"{page}: {line}" for page, block in blocks for line in _wrong_call(block)]
    assert not wrong, "\n".join(wrong)


def test_python_that_calls_what_there_is_not_is_found() -> None:
    assert _wrong_call("study.crwal('x')")
    assert _wrong_call("run.figure()")
    assert _wrong_call("run.export('x.csv', nothing=1)")
    assert _wrong_call("study.crawl('smollm2', nothing=1)")


@cache
def _sources() -> tuple[str, ...]:
    return tuple(path.read_text("utf-8") for path in (ROOT / "kgbias").rglob("*.py"))


@cache
def _members(name: str) -> frozenset[str]:
    """What the classes of the package with this name define or inherit from others of it."""
    found: set[str] = set()
    for source in _sources():
        if f"class {name}" not in source:
            continue
        for node in ast.parse(source).body:
            if not isinstance(node, ast.ClassDef) or node.name != name:
                continue
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    found.add(part.name)
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    found.add(part.target.id)
            for base in node.bases:
                if isinstance(base, ast.Name):
                    found |= _members(base.id)
    return frozenset(found)


def _wrong_members(text: str) -> list[str]:
    found = re.findall(r"`([A-Z][a-z]\w*)\.(?!jsonl`)([a-z]\w*)[`(]", _BLOCK.sub("", text))
    return [f"{o}.{m}" for o, m in found if m not in _members(o)]


# Of other people's libraries.
_ELSEWHERE = {"KnowledgeGraph.load"}


def test_members_of_classes_that_the_pages_name_exist() -> None:
    wrong = {
        f"{page.name}: {name}"
        for page in PAGES
        for name in _wrong_members(page.read_text("utf-8"))
        if name not in _ELSEWHERE
    }
    assert not wrong


def test_a_member_that_does_not_exist_is_found() -> None:
    assert not _wrong_members("`ChosenEdge.is_chosen_more`, `GroupTest.verdict`, `Run.measure`")
    assert _wrong_members("`ChosenEdge.nothing`, `Nobody.verdict`") == [
        "ChosenEdge.nothing",
        "Nobody.verdict",
    ]


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text("utf-8")), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {re.sub(r"\s+", "-", heading) for heading in plain}


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in _LINK.findall(_BLOCK.sub("", page.read_text("utf-8"))):
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                broken.append(f"{page.relative_to(ROOT)}: {link}")
            elif anchor and target.suffix == ".md" and anchor not in _anchors(target):
                broken.append(f"{page.relative_to(ROOT)}: no heading {link}")
    assert not broken, "\n".join(broken)


_PIPE = re.compile(r"(?<!\\)\|")


def _broken_rows(text: str) -> Iterator[str]:
    """Rows of tables with more or fewer cells than the heading of their table."""
    cells = 0
    for line in _BLOCK.sub("", text).splitlines():
        if not line.lstrip().startswith("|"):
            cells = 0
            continue
        here = len(_PIPE.findall(line))
        cells = cells or here
        if here != cells:
            yield line


def test_the_rows_of_a_table_have_its_columns() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in PAGES
        for line in _broken_rows(page.read_text("utf-8"))
    ]
    assert not broken, "\n".join(broken)


def test_two_rows_on_one_line_are_found() -> None:
    table = "| a | b |\n|---|---|\n| 1 \\| 2 | 3 |\n"
    assert not list(_broken_rows(table))
    assert list(_broken_rows(table + "| 1 | 2 || 3 | 4 |")) == ["| 1 | 2 || 3 | 4 |"]


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api" / "index.md").read_text("utf-8")
    shown = set(re.findall(r"^::: kgbias\.(\w+)$", text, re.MULTILINE))
    errors = {name for name in kgbias.__all__ if name in vars(kgbias.errors)}
    assert shown >= set(kgbias.__all__) - errors - {"__version__"}


def test_the_documentation_names_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    assert set(extras) <= set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE))


def test_the_site_has_every_page() -> None:
    """Those of methods without being named (scripts/docs_hooks.py)."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    named = re.findall(r"([\w/-]+\.md)$", text[text.index("\nnav:") :], re.MULTILINE)
    there = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert set(named) <= there and len(named) == len(set(named))
    assert {page.partition("/")[0] for page in there - set(named)} <= {"methods"}


def test_the_command_line_prints_the_documented_completion() -> None:
    from click.shell_completion import get_completion_class

    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    for shell in ("bash", "zsh", "fish"):
        assert f"_KGBIAS_COMPLETE={shell}_source" in text
        completion = get_completion_class(shell)
        assert completion is not None
        names = [c.value for c in completion(cli, {}, "kgbias", "x").get_completions([], "mea")]
        assert names == ["measure"]


def test_nothing_of_a_machine_is_in_the_documents() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*.md", "*.yml", "*.yaml", "*.toml", "*.cff"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    for name in tracked:
        assert not re.search(r"/(home|root|work|Users)/\w", (ROOT / name).read_text("utf-8")), name


def test_the_table_of_doors_has_all_columns_that_the_readers_declare() -> None:
    spec = spec_from_file_location("doors", ROOT / "scripts" / "doors.py")
    assert spec and spec.loader
    spec.loader.exec_module(doors := module_from_spec(spec))
    rows = list(doors.table_rows())
    declared = sum(
        len(re.findall(r"= TableFormat\(", path.read_text("utf-8")))
        for path in (ROOT / "kgbias").rglob("*.py")
    )
    assert len(doors.DOORS) == declared + 1  # word sets have no columns to declare
    for door in doors.DOORS:
        (row,) = (row for row in rows if row.startswith(f"| {door.subject} |"))
        columns = [*(n for names in door.needed_columns for n in names), *door.optional_columns]
        assert all(f"`{name}`" in row for name in columns), row
    assert sum("study.crawl" in row for row in doors.in_python()) > 1


def test_each_promise_for_faults_names_a_test_that_is_there() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("| held by |")[2]
    rows = [line for line in table.partition("\n\n")[0].splitlines() if "`tests/" in line]
    assert len(rows) > 20
    for row in rows:
        for file, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row.rpartition(" | ")[2]):
            text = (ROOT / file).read_text("utf-8")
            assert f"def {test or 'test_'}" in text or "attack" in file, f"{file} has no {test}"


def _exhibit_keys(*patterns: str) -> set[str]:
    """The keys of exhibits after the place of their category. What is filled in is an asterisk
    (`topic-*`), unless it ends a word."""
    keys = {
        re.sub(r"\{[^{}]*\}", "*", key)
        for pattern in patterns
        for source in ROOT.glob(pattern)
        if source.parent.name != "sofa"  # one row stands for its own
        for key in re.findall(r'f"\{place\}-([^"]+)"', source.read_text("utf-8"))
    }
    return {re.sub(r"(?<=[a-z])\*$", "", key) for key in keys}


def test_the_page_names_every_exhibit() -> None:
    """And none that is not made."""
    made = _exhibit_keys("kgbias/report/*.py", "kgbias/methods/*/*.py")
    page = (ROOT / "docs" / "methods" / "measure.md").read_text("utf-8")
    section = page.partition("\n## Exhibits\n")[2]
    named = {
        re.sub(r"\b[A-Z]{2,}\b", "*", key)
        for row in re.findall(r"^\|([^|]+)\|", section, re.MULTILINE)
        for key in re.findall(r"`NN-([^`]+)`", row)
    }
    begun = tuple(key.removesuffix("...") for key in named if key.endswith("..."))
    assert len(made) > 30
    assert {key for key in made if not key.startswith(begun)} == {
        key for key in named if not key.endswith("...")
    }


def test_every_exhibit_of_a_run_has_a_section() -> None:
    own = ("exhibits", "beliefs", "evidence", "refusals", "said_more", "stereotypes")
    kinds = tuple(kind for section in SECTIONS for kind in section.key_prefixes)
    made = _exhibit_keys(*(f"kgbias/report/{name}.py" for name in own))
    apart = {"pair", "agreement"}  # beside the findings; in the first section
    assert {key for key in made if not key.startswith(kinds)} == apart
