"""The one door to transformers' loaders: quiet, asking nobody, and without the code of a model.

A folder of a model can bring Python of its own. transformers asks on stdin whether to run it, where
nobody sees the question and `yes |` or the caller's loop answers. Here nothing of it is run.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from kgbias.errors import ModelError

_loading = RLock()


def pretrained(auto: str, location: str, **options: Any) -> Any:
    """What transformers' class of that name (`AutoConfig`, `AutoTokenizer` ...) loads from a folder
    or hub id, by its `from_pretrained` with these options.

    Raises ModelError for a model that needs code of its own, and what transformers raises."""
    import transformers

    with _codeless(location):
        return getattr(transformers, auto).from_pretrained(
            location, trust_remote_code=False, **options
        )


def untrained(auto: str, config: Any, **options: Any) -> Any:
    """A model of a loaded configuration, with random weights; otherwise as `pretrained`."""
    import transformers

    with _codeless(str(config.name_or_path)):
        return getattr(transformers, auto).from_config(config, trust_remote_code=False, **options)


@contextmanager
def unasked() -> Iterator[None]:
    """While it lasts, stdin is empty for whoever reads it in this process."""
    with _loading, Path(os.devnull).open(encoding="utf-8") as nothing:
        own, sys.stdin = sys.stdin, nothing
        try:
            yield
        finally:
            sys.stdin = own


@contextmanager
def quiet() -> Iterator[None]:
    """While it lasts, transformers shows no progress bars and logs nothing but errors."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def _codeless(location: str) -> Iterator[None]:
    try:
        with unasked():
            yield
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"{location} brings code of its own, and kgbias runs none: take a model that "
                "transformers knows"
            ) from error
        raise
