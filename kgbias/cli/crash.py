"""What becomes of an error that nobody foresaw: one line for the user, and the traceback in a file
that can be sent along, without secrets."""

import os
import re
import tempfile
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

CODE = 70  # of the exit: an error inside the program (sysexits.h)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_MIN_SECRET = 8  # characters; shorter values occur in any text
_URL_PASSWORD = re.compile(r"//[^/@\s]+@")


def report(error: BaseException) -> str:
    """Keep the traceback of an error, and say in one line what happened and where it is."""
    text = without_secrets("".join(traceback.format_exception(error)))
    said = " ".join(without_secrets(str(error)).split())[:300]
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    where = _kept(text)
    kept = f"; the details are in {where}, without keys and passwords" if where else ""
    return f"an error that was not foreseen: {what}{kept}; nothing that was stored is lost"


def without_secrets(text: str) -> str:
    """The text without the values of environment variables that hold secrets, and without
    passwords in addresses."""
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) >= _MIN_SECRET:
            text = text.replace(value, f"[{name}]")
    return _URL_PASSWORD.sub("//[user]@", text)


def _kept(text: str) -> str:
    """The file with the traceback; "" if none can be written anywhere."""
    name = f"error-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / name
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
            return str(path)
    return ""


def _folders() -> list[Path]:
    found = []
    with suppress(RuntimeError):  # a user without a home
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        found.append(Path(state) / "kgbias")
    return [*found, Path(tempfile.gettempdir()) / "kgbias"]
