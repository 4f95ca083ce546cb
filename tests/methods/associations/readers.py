"""Files that this method reads, for the attack on readers (tests/attack/readers.py)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.attack.readers import INDICATORS, TOML_TESTS, Reader, _read_all


def _read_contexts(make: Callable[..., Any], path: Path) -> Any:
    return _read_all(make(path))


READERS = (
    Reader("tests", "kgbias.methods.associations.sets:read_tests", {"toml": TOML_TESTS.encode()}),
    Reader(
        "contexts",
        "kgbias.methods.associations.contexts:iter_corpus_texts",
        {"txt": b"a man is kind\nwomen sing\n", "jsonl": b'{"text": "a man is kind"}\n'},
        _read_contexts,
    ),
    Reader(
        "attributes",
        "kgbias.methods.associations.attributes:read_attributes",
        {"toml": INDICATORS.encode()},
    ),
)
