"""What keeps the unit tests fast: CONTRIBUTING.md has the rule."""

import subprocess
import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest

INTEGRATION_NOTE = "such a test belongs in tests/integration (CONTRIBUTING.md says why)"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fails a file that is the first to import PyTorch as it is read."""
    there = "torch" in sys.modules or "integration" in collector.path.parts
    report = yield
    if not there and "torch" in sys.modules:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} imports PyTorch: {INTEGRATION_NOTE}"
    return report


@pytest.fixture(autouse=True)
def light(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test that starts another Python (a command, the Cypher engine) or is the first to
    import PyTorch: either takes longer than a hundred unit tests. The process that renders
    templates is allowed: it is small, and all tests share one. Integration tests of a
    method, in a folder beside the others, may do all this."""
    if "integration" in request.path.parts:
        yield
        return
    start = subprocess.Popen.__init__

    def check_command(self: Any, args: Any, *more: Any, **named: Any) -> None:
        if sys.executable in str(args) and "kgbias.io.template_process" not in args:
            pytest.fail(f"a unit test started {args}: {INTEGRATION_NOTE}")
        start(self, args, *more, **named)

    monkeypatch.setattr(subprocess.Popen, "__init__", check_command)
    was_imported = "torch" in sys.modules
    yield
    if not was_imported and "torch" in sys.modules:
        pytest.fail(f"a unit test imported PyTorch: {INTEGRATION_NOTE}")
