"""What a new Python sees of kgbias: light imports, settings for torch, completion of commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kgbias
from tests.unit.test_threads import untouched  # noqa: F401

pytestmark = pytest.mark.integration

HEAVY = (
    "torch",
    "transformers",
    "bertopic",
    "spacy",
    "neo4j",
    "openai",
    "matplotlib",
    "sentence_transformers",
    "scipy",
    "networkx",
    "numpy",
)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['kgbias', '--help']\n"
        "from kgbias.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([m for m in {(*HEAVY, 'kgbias.graph.store')!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_completion_knows_commands_and_options() -> None:
    code = "from kgbias.cli import main; main()"
    environment = os.environ | {"_KGBIAS_COMPLETE": "bash_complete", "COMP_WORDS": "kgbias mea"}
    call = [sys.executable, "-c", f"import sys; sys.argv[0] = 'kgbias'; {code}"]
    done = subprocess.run(
        call, env=environment | {"COMP_CWORD": "1"}, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["plain,measure"]
    environment["COMP_WORDS"] = "kgbias crawl --se"
    done = subprocess.run(
        call, env=environment | {"COMP_CWORD": "2"}, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "plain,--seeds",
        "plain,--seed",
    ]


def test_importing_kgbias_is_light() -> None:
    names = (*HEAVY, "pandas", "rich", "click", "sqlite3")
    code = f"import sys, kgbias; print([m for m in {names!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_front_door_is_light(tmp_path: Path) -> None:
    code = (
        f"import sys, kgbias; s = kgbias.open({str(tmp_path / 'a.db')!r})\n"
        "own = [m.split('.') for m in sys.modules if m.split('.')[0] == 'kgbias']\n"
        "print(len(own) <= 60, any(m[1:2] in (['methods'], ['backends']) for m in own))\n"
        "price = s.crawl('smollm2', category='gender', dry_run=True)\n"
        "print(price.requests, kgbias.queries()[0].name != '')\n"
        "print([m for m in ('torch', 'pandas', 'networkx', 'rich', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True False", "708 True", "[]"]  # 60 and 4 times 44 a group


def test_a_query_of_the_library_is_light(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with kgbias.open(path) as study:
        study.import_file([{"group": "Men", "predicate": "love", "object": "rain"}])
    code = (
        f"import sys, kgbias; s = kgbias.open({path!r})\n"
        "print(len(s.query('predicates', min_count=1)))\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["1", "[]"]


def test_the_first_sign_of_a_crawl_comes_before_what_takes_long(tmp_path: Path) -> None:
    code = (
        "import sys, kgbias; from kgbias.io.progress import SilentProgress\n"
        "class First(SilentProgress):\n"
        "    def note(self, text):\n"
        "        print(text, 'torch' in sys.modules, 'transformers' in sys.modules)\n"
        "        raise SystemExit\n"
        f"study = kgbias.open({str(tmp_path / 'k.db')!r}, progress=First())\n"
        "study.crawl('reference', category='faiths')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["opening", "reference", "False", "False"]


def test_it_is_set_while_torch_is_imported_and_then_as_it_was(
    untouched: pytest.MonkeyPatch,  # noqa: F811
) -> None:
    said = (
        "import os, sys, importlib.abc, kgbias\n"
        "class Sees(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch': print(os.environ.get('OMP_WAIT_POLICY'))\n"
        "before = dict(os.environ)\n"
        "sys.meta_path.insert(0, Sees())\n"
        "kgbias.open(None).import_file([{'group': 'Men', 'predicate': 'love', 'object': 'rain'}])"
        ".measure()\n"
        "print('torch' in sys.modules, before == dict(os.environ))"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-3:] == ["PASSIVE", "True", "True"]
