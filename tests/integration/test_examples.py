"""The examples in the docstrings of the calls that everybody uses, on the reference model."""

import doctest
import inspect
from pathlib import Path
from typing import Any

import pytest

import kgbias

pytestmark = pytest.mark.integration

# In the order in which a person calls them: each finds what those before it made.
EVERYBODYS = (
    kgbias.open,
    kgbias.Study.crawl,
    kgbias.Study.import_file,
    kgbias.Study.runs,
    kgbias.Run.triples,
    kgbias.Run.measure,
    kgbias.Run.figure,
    kgbias.Run.compare_groups,
    kgbias.Run.evidence,
    kgbias.Study.compare_runs,
    kgbias.Run.export,
)


def test_examples_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {"kgbias": kgbias}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for call in EVERYBODYS:
        name = call.__qualname__
        text = inspect.getdoc(call) or ""
        examples = doctest.DocTestParser().get_doctest(text, known, name, None, None)
        assert examples.examples, f"{name} has no example"
        runner.run(examples, clear_globs=False)
        known = examples.globs
    known["study"].close()
    assert runner.summarize(verbose=False).failed == 0, capsys.readouterr().out
