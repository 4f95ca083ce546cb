"""What a message says is to be done: a call in Python, a command on the command line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import kgbias
from kgbias.cli import cli
from kgbias.io.wording import how, in_commands

FOLDER = Path(kgbias.__file__).parent
COMMANDS = set(cli.list_commands(click.Context(cli)))
# Pages and files, which are read after both; and what runs other programs or makes their commands.
APART = (
    "cli",
    "report",
    "publish",
    "explore",
    "export",
    "backends/vllm/engine.py",
    "study/pipeline.py",
    "methods/attribution/word_maps.py",
    "methods/benchmarks/records.py",
)
APART_IN_METHODS = ("command.py", "entries.py", "report_part.py")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+\b")
OTHERS = re.compile(r"\bneo4j-admin |\bpip install ")  # whose options these are
COMMAND = re.compile(r"\bkgbias (?:--set )?([a-z]+)\b")


def test_messages_name_calls_and_on_the_command_line_commands() -> None:
    assert how("run.measure()", "kgbias measure") == "run.measure()"
    with in_commands():
        assert how("run.measure()", "kgbias measure") == "kgbias measure"
    assert how("run.measure()", "kgbias measure") == "run.measure()"


def test_no_message_of_the_library_names_a_command_or_an_option() -> None:
    wrong = [
        f"{path.relative_to(FOLDER)}:{line}: {text}"
        for path in sorted(FOLDER.rglob("*.py"))
        if not str(path.relative_to(FOLDER)).startswith(APART)
        and not ("methods" in path.parts and path.name in APART_IN_METHODS)
        for line, text in _texts(ast.parse(path.read_text("utf-8")))
        if (FLAG.search(text) and not OTHERS.search(text))
        or any(name in COMMANDS for name in COMMAND.findall(text))
    ]
    assert not wrong, "\n".join(wrong)


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The strings in what is raised, remarked or noted, but for those that are given to `how`."""
    for node in ast.walk(tree):
        told = isinstance(node, ast.Raise) or (
            isinstance(node, ast.Call) and _name(node.func) in ("remark", "note", "notify", "tell")
        )
        returns = isinstance(node, ast.Return | ast.Assign)
        if told or returns or (isinstance(node, ast.Call) and _name(node.func) == "append"):
            yield from _strings(node)


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Call) and _name(node.func) in ("how", "TableFormat", "compile"):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    for child in ast.iter_child_nodes(node):
        yield from _strings(child)


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


@pytest.mark.parametrize("text", ["kgbias measure x", "try --form chat"])
def test_such_a_message_would_be_found(text: str) -> None:
    (found,) = _texts(ast.parse(f"raise UsageError(f'{text}')"))
    assert FLAG.search(found[1]) or COMMAND.findall(found[1])[0] in COMMANDS
