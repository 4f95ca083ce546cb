"""The errors that a user may see. Each message is one line that says what to do; the command line
prints it without a traceback and exits with 2. Messages name parameters of the library in
backquotes, which the command line replaces with its options.

    KgbiasError
      UsageError        a wrong name, value or combination of parameters
      DataError         a file or an answer that cannot be read
      MissingExtra      a package of an optional extra is not installed
      PluginError       what another package adds to kgbias cannot be used
      StoreError        the graph store cannot be opened, read or written
        RunNotFound     no run of that name
        RunConflict     a run of that name exists with other settings
      ModelError        a language model cannot be loaded or reached
      Interrupted       stopped by Ctrl-C or a budget; nothing is lost (exit code 130)

When something goes wrong, there is one line with the cause and a non-zero exit, and nothing false
is stored. A module says what it promises beyond that. What the system lacks is said, with what to
do: open files, threads, a home folder, certificates. UTF-8 is taken under any locale, and so are
joiners in names. A kill, a full disk, a hostile page, file or answer loses nothing and runs
nothing. tests/unit/test_when_it_goes_wrong.py, tests/integration/test_kill.py and tests/attack hold
this.
"""

from collections.abc import Iterable

_MAX_MESSAGE_CHARS = 2_000  # characters of a message: a screen, whatever a file holds
_MAX_LISTED_NAMES = 40  # names that a message lists


class KgbiasError(Exception):
    """Base of all errors that the user can do something about. The message is one line."""

    exit_code = 2

    def __init__(self, message: str = "") -> None:
        message = message.encode("utf-8", "replace").decode("utf-8")  # it may quote any text
        super().__init__(
            message if len(message) <= _MAX_MESSAGE_CHARS else message[:_MAX_MESSAGE_CHARS] + "…"
        )


class UsageError(KgbiasError):
    """A wrong name, value or combination of parameters."""


class DataError(KgbiasError):
    """A file or an answer that cannot be read as what it should be."""


class MissingExtra(KgbiasError):
    """A package of an optional extra is not installed; the message says how to install it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'kgbias[{extra}]'")
        self.package = package
        self.extra = extra


class PluginError(KgbiasError):
    """What another package adds to kgbias cannot be used; the message names the package."""


class StoreError(KgbiasError):
    """The graph store cannot be opened, read or written."""


class RunNotFound(StoreError):
    """No run of that name is in the store."""


class RunConflict(StoreError):
    """A run of that name exists with other settings."""


class ModelError(KgbiasError):
    """A language model cannot be found, loaded or reached."""


class Interrupted(KgbiasError):
    """Stopped by Ctrl-C or a budget. What was finished is kept; run it again to continue."""

    exit_code = 130


def no_such(what: str, name: object, known_names: Iterable[object], where: str = "") -> str:
    """The line for a name that is not there: "no run 'demoo' in demo.db (did you mean demo?);
    choose from demo, other". `what` is the kind of thing that the name is of, `where` follows it.

    The nearest name is one that differs in case, number or a few letters. A list too long for a
    line is cut, and left out beside the nearest name."""
    names = list(dict.fromkeys(str(each) for each in known_names))
    quoted_name = repr(name if len(str(name)) <= 80 else f"{str(name)[:79]}…")
    near_name = nearest(str(name), names)
    hint = f" (did you mean {near_name}?)" if near_name else ""
    if near_name and len(names) > _MAX_LISTED_NAMES:
        return f"no {what} {quoted_name}{where}{hint}"
    more = f" and {len(names) - _MAX_LISTED_NAMES} more" if len(names) > _MAX_LISTED_NAMES else ""
    choices = (
        f"choose from {', '.join(names[:_MAX_LISTED_NAMES])}{more}" if names else "there are none"
    )
    return f"no {what} {quoted_name}{where}{hint}; {choices}"


def list_columns(names: Iterable[str]) -> str:
    """The names of a table's columns for a line, in quotation marks; the first twenty of many."""
    quoted_names = [repr(name) if name else "one without a name" for name in names]
    more_count = len(quoted_names) - _MAX_LISTED_COLUMNS
    more = f" and {more_count} more" if more_count > 0 else ""
    return (", ".join(quoted_names[:_MAX_LISTED_COLUMNS]) or "none") + more


_MAX_LISTED_COLUMNS = 20


def nearest(name: str, known_names: Iterable[str], min_ratio: float = 0.6) -> str:
    """The name among these that somebody who wrote `name` most probably meant, "" if none is like
    it: if all differ more than by `min_ratio`, in [0, 1] (difflib's ratio of letters in common,
        after
    case-folding)."""
    from difflib import get_close_matches

    folded = {each.casefold(): each for each in reversed(list(known_names))}
    matches = get_close_matches(name.casefold()[:100], list(folded), 1, min_ratio)
    return folded[matches[0]] if matches else ""


def first_line(error: BaseException) -> str:
    """The first line of an error, with the next one if it only leads up to it; the error's type if
    it has no text."""
    lines = [line for line in map(str.strip, str(error).splitlines()) if line]
    first = (lines or [type(error).__name__])[0]
    return f"{first} {lines[1]}" if first.endswith(":") and len(lines) > 1 else first


def other_thread_error(path: str) -> StoreError:
    """The error for use from another thread than the one that opened the store."""
    return StoreError(
        f"the study {path} was opened in another thread: open it in this one too, with "
        f"kgbias.open({path!r})"
    )
