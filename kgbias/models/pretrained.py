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

_loading_lock = RLock()


def load_pretrained(auto: str, location: str, **options: Any) -> Any:
    """The result of `from_pretrained`, with these options, of transformers' class of that name
    (`AutoConfig`, `AutoTokenizer` ...) for a folder or hub id.

    Raises ModelError for a model that needs its own code, and whatever transformers raises."""
    import transformers

    with _refuse_own_code(location):
        return getattr(transformers, auto).from_pretrained(
            location, trust_remote_code=False, **options
        )


def create_untrained(auto: str, config: Any, **options: Any) -> Any:
    """A model of a loaded configuration, with random weights; otherwise as `load_pretrained`."""
    import transformers

    with _refuse_own_code(str(config.name_or_path)):
        return getattr(transformers, auto).from_config(config, trust_remote_code=False, **options)


@contextmanager
def empty_stdin() -> Iterator[None]:
    """Inside this context, stdin is empty for everything in this process."""
    with _loading_lock, Path(os.devnull).open(encoding="utf-8") as empty_file:
        original_stdin, sys.stdin = sys.stdin, empty_file
        try:
            yield
        finally:
            sys.stdin = original_stdin


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Inside this context, transformers shows no progress bars and logs only errors."""
    from transformers.utils import logging

    verbosity, shows_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shows_bars:
            logging.enable_progress_bar()


@contextmanager
def _refuse_own_code(location: str) -> Iterator[None]:
    try:
        with empty_stdin():
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
    # In the middle of a text a word has a space before it, which many vocabularies count in.
    ids = tokenizer(" " + word, add_special_tokens=False)["input_ids"]
    return len(ids) == 1 and ids[0] != tokenizer.unk_token_id
