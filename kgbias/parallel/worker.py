"""A worker of a cluster: it opens work once, then does piece after piece. Nothing is raised there:
an error comes back as the outcome of its piece, and the others go on."""

import pickle
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgbias import errors
from kgbias.errors import KgbiasError, ModelError, first_line
from kgbias.io.resources import __version__
from kgbias.parallel import Work, wait_passively

ATTEMPTS = 3  # at a piece, of one worker
_PAUSE = 0.5  # seconds before the next attempt


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a piece was not done, as text, since an error may not survive being pickled. `final`: no
    other piece can be done either."""

    kind: str
    message: str
    final: bool

    @classmethod
    def of(cls, error: Exception, final: bool = False) -> "Failure":
        if isinstance(error, KgbiasError):
            return cls(type(error).__name__, str(error), final)
        return cls("", f"{type(error).__name__}: {first_line(error)}", final)

    def error(self) -> KgbiasError:
        kind = {"DataError": errors.DataError, "UsageError": errors.UsageError}
        return kind.get(self.kind, ModelError)(self.message)


Outcome = tuple[int, Any, Failure | None]  # the number of the piece, and its result


def packed(work: Work[Any, Any]) -> bytes:
    """Work as it is sent, and what it must be when opened."""
    return pickle.dumps((__version__, work.version, work))


class Worker:
    """Does pieces of work. The packed work is sent with each piece, and opened when it is new."""

    def __init__(self) -> None:
        self._packed = b""
        self._work: Any = None
        self._failure: Failure | None = None

    def failure(self, work: bytes) -> Failure | None:
        """Why no piece of the work can be done; None if it is open."""
        if work != self._packed:
            self._failure = None
            try:
                self._work = _opened(work)
            except Exception as error:
                self._failure = Failure.of(error, final=True)
            self._packed = work
        return self._failure

    def do(self, number: int, piece: bytes, work: bytes) -> bytes:
        """The pickled outcome of a pickled piece."""
        return pickle.dumps(self._done(number, piece, work))

    def _done(self, number: int, piece: bytes, work: bytes) -> Outcome:
        if failure := self.failure(work):
            return number, None, failure
        for left in reversed(range(ATTEMPTS)):
            try:
                return number, self._work(pickle.loads(piece)), None
            except Exception as error:
                if not left or isinstance(error, KgbiasError):  # it would fail the same way again
                    return number, None, Failure.of(error)
                time.sleep(_PAUSE)
        raise AssertionError("there is at least one attempt")


def _opened(work: bytes) -> Work[Any, Any]:
    wait_passively()  # before anything imports torch
    opened: Work[Any, Any]
    version, wanted, opened = _read(work)
    found = opened.open()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(opened.threads)
    if (version, wanted) != (__version__, found):
        raise ModelError(
            f"a worker has kgbias {__version__} and {found}, not kgbias {version} and "
            f"{wanted}: install the same on all nodes"
        )
    return opened


def _read(work: bytes) -> Sequence[Any]:
    try:
        found: Sequence[Any] = pickle.loads(work)
        return found
    except (AttributeError, ImportError) as error:
        raise ModelError(
            f"a worker cannot open the work ({error}): install the same kgbias, with its extras, "
            "on all nodes"
        ) from error
