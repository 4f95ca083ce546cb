"""Whether kgbias works with the lowest and with the newest versions that pyproject.toml allows.

    python scripts/versions.py [lowest] [newest]

Each set of versions is installed into an environment of its own, which is thrown away. There the
reference model is crawled, measured, probed and reported on, the clients of three providers each
ask a local server, and every module of kgbias is imported. What is deprecated in a call of ours is
a failure, since versions to come will refuse that call.
"""

import importlib
import logging
import os
import pkgutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
SHOWN = (
    "torch",
    "transformers",
    "numpy",
    "scipy",
    "networkx",
    "click",
    "rich",
    "matplotlib",
    "pandas",
    "openai",
    "bertopic",
    "spacy",
)
DEPRECATIONS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
# What stands between a call and the code that it reaches: torch calls every model's `forward`.
BETWEEN = ("torch", "typing_extensions.py")
# No hub, as in the tests. And room for the libraries of all extras in one process, which glibc
# otherwise has not (scikit-learn's OpenMP and kglite beside an old torch).
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(ROOT),
    "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=65536",
}


def main() -> int:
    if sys.argv[1:] == ["--here"]:
        return try_here()
    names = sys.argv[1:] or list(RESOLUTIONS)
    return max([try_versions(name) for name in names])


def try_versions(name: str) -> int:
    """Try this set of versions in an environment of its own: the exit status."""
    uv = str(Path(sys.executable).parent / "uv")
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", python]
        install += ["--resolution", RESOLUTIONS[name], "--editable", f"{ROOT}[all]"]
        subprocess.run(install, check=True)
        print(f"{name} versions", flush=True)
        tried = [python, __file__, "--here"]
        return subprocess.run(tried, env=os.environ | ENVIRONMENT).returncode


def try_here() -> int:
    """Every door in this environment: 1 where one fails, or a call of ours is deprecated."""
    print("  " + ", ".join(f"{package} {version(package)}" for package in SHOWN), flush=True)
    faults: list[str] = []
    with noting(faults), tempfile.TemporaryDirectory() as folder:
        for attempt in (map_reference, ask_providers, import_modules):
            try:
                attempt(Path(folder))
            except Exception:
                faults.append(traceback.format_exc())
    faults = list(dict.fromkeys(faults))
    for fault in faults:
        print(f"  {fault}", flush=True)
    print(f"  {len(faults)} faults", flush=True)
    return bool(faults)


@contextmanager
def noting(faults: list[str]) -> Iterator[None]:
    """Note what is deprecated in a call of kgbias, in a warning or in a log."""

    def note(message: str) -> None:
        if place := calling_line():
            faults.append(f"{place}: {message}")

    class Deprecations(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "deprecat" in record.getMessage():
                note(record.getMessage())

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, DEPRECATIONS):
            note(f"{category.__name__}: {message}")

    warnings.showwarning = show
    for category in DEPRECATIONS:
        warnings.simplefilter("always", category)
    warnings.filterwarnings("ignore", "invalid escape sequence")  # in a module as it is compiled
    logging.getLogger("transformers").addHandler(Deprecations())  # which logs some of its own
    with warnings.catch_warnings():
        yield


def calling_line() -> str:
    """The line of kgbias that calls the package which warns now; nothing where another package
    calls it."""
    warning = ""
    for frame in reversed(traceback.extract_stack()):
        package = package_of(frame.filename)
        warning = warning or package
        if package and package not in (warning, *BETWEEN):
            is_ours = package == "kgbias"
            return f"{frame.filename}:{frame.lineno}" if is_ours else ""
    return ""


def package_of(file: str) -> str:
    """The package that a file belongs to; "" for Python's own, and for this script."""
    if file.startswith(str(ROOT / "kgbias")):
        return "kgbias"
    _, installed, rest = file.partition("site-packages/")
    return rest.partition("/")[0] if installed else ""


def map_reference(folder: Path) -> None:
    """The reference model from the crawl to the pages."""
    import kgbias
    from kgbias.methods import associations, attribution

    with kgbias.open(folder / "kgbias.db") as study:
        run = study.crawl("reference", category="faiths", samples=1, iterations=1)
        run.measure()
        run.evidence("reference")
        attribution.attribute(run, top=2)
        associations.associate(run, "reference", tests=["C6"])
        run.to_networkx()
        run.triples().to_frame()
        run.report(folder / "report.html")
        run.explore(folder / "explorer.html")
        run.summarise(folder / "summary.pdf")
        for name in ("run.csv", "run.jsonl", "run.parquet", "run.graphml", "run.svg"):
            run.export(folder / name)
        study.cypher("MATCH (g:SocialGroup) RETURN g.name LIMIT 1")


def ask_providers(folder: Path) -> None:
    """Their clients, each of a local server that speaks as the provider's does."""
    import kgbias
    from tests.fault_server import AnthropicServer, FaultServer, GoogleServer

    servers = {"openai": FaultServer, "anthropic": AnthropicServer, "google": GoogleServer}
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}
    os.environ.update(keys)
    for kind, server in servers.items():
        with server(lambda *_: "love cake") as served, kgbias.open(folder / f"{kind}.db") as study:
            study.crawl(
                f"{kind}:m", base_url=served.url, category="gender", samples=1, iterations=1
            )


def import_modules(_: Path) -> None:
    import kgbias

    for module in pkgutil.walk_packages(kgbias.__path__, "kgbias."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


if __name__ == "__main__":
    sys.exit(main())
