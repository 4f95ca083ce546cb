"""What becomes of an error that nobody foresaw: one line for the user, and the traceback in a file
that can be sent along, without secrets.

The exit is 70 (tests/integration/test_crash.py).
"""

import os
import re
import tempfile
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

EXIT_CODE = 70  # of the exit: an error inside the program (sysexits.h)
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_MIN_SECRET_CHARACTERS = 8  # characters; shorter values occur in any text
_URL_PASSWORD = re.compile(r"//[^/@\s]+@")


def save_crash(error: BaseException) -> str:
    """Keep the traceback of an error; returns a line that says what happened and where it is."""
    text = mask_secrets("".join(traceback.format_exception(error)))
    message = " ".join(mask_secrets(str(error)).split())[:300]
    description = f"{type(error).__name__}: {message}" if message else type(error).__name__
    file = _write_traceback(text)
    details_note = f"; the details are in {file}, without keys and passwords" if file else ""
    return (
        f"an error that was not foreseen: {description}{details_note}; nothing that was stored "
        f"is lost"
    )


def print_crash(error: BaseException) -> None:
    """Keep the traceback of an error, and print that line, whatever has become of the streams."""
    with suppress(OSError):
        os.write(2, f"kgbias: {save_crash(error)}\n".encode("utf-8", "backslashreplace"))


def mask_secrets(text: str) -> str:
    """The text without the values of environment variables that hold secrets, and without
    passwords in addresses."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= _MIN_SECRET_CHARACTERS:
            text = text.replace(value, f"[{name}]")
    return _URL_PASSWORD.sub("//[user]@", text)


def _write_traceback(text: str) -> str:
    """The file with the traceback; "" if none can be written anywhere."""
    name = f"error-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in _log_folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / name
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
            return str(path)
    return ""


def _log_folders() -> list[Path]:
    folders = []
    with suppress(RuntimeError):  # a user without a home
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        folders.append(Path(state) / "kgbias")
    return [*folders, Path(tempfile.gettempdir()) / "kgbias"]
