"""The one door to transformers' loaders: quiet, without questions, and without a model's own code.

A model folder can contain Python code. transformers asks on stdin whether to run it, where nobody
sees the question and `yes |` or the caller's loop answers. Here none of it is run.
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
    """The result of `from_pretrained`, with these options, of transformers' class of that name
    (`AutoConfig`, `AutoTokenizer` ...) for a folder or hub id.

    Raises ModelError for a model that needs its own code, and whatever transformers raises."""
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
    """Inside this context, stdin is empty for everything in this process."""
    with _loading, Path(os.devnull).open(encoding="utf-8") as nothing:
        own, sys.stdin = sys.stdin, nothing
        try:
            yield
        finally:
            sys.stdin = own


@contextmanager
def quiet() -> Iterator[None]:
    """Inside this context, transformers shows no progress bars and logs only errors."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _codeless(location: str) -> Iterator[None]:
    try:
        with unasked():
            yield
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"{location} needs its own code, which kgbias does not run: choose a model that "
                "transformers knows"
            ) from error
        raise


def is_token(tokenizer: Any, word: str) -> bool:
    """Whether the word, after a space, is one token of the tokenizer's vocabulary."""
    ids = tokenizer(" " + word, add_special_tokens=False)["input_ids"]
    return len(ids) == 1 and ids[0] != tokenizer.unk_token_id
