"""What servers say, in one form for all providers: answers, failures, and how long to wait."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

from kgbias.errors import KgbiasError
from kgbias.models.base import Request
from kgbias.models.wire import message

_LONGEST_WAIT = 120.0


class Failure(NamedTuple):
    """Why a server gave no answer: its own message with the status, and the seconds that it wants
    us to wait; without a status it was `late`, or out of reach. It may have `withheld` the answer
    because of what was asked, or `dropped` a request of a batch before its turn came."""

    message: str
    code: int = 0
    wait: float = 0.0
    late: bool = False
    withheld: bool = False
    dropped: bool = False


def unforeseen(error: Exception) -> Failure:
    """What an error means that the client of a provider does not know: a redirect to a port that
    there is not, a proxy that speaks another protocol. Raises an error of kgbias's own."""
    if isinstance(error, KgbiasError):
        raise error
    return Failure(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Said:
    """What a server's answer holds, as it came. `ended` is as in `Completion.finish`; an "error" is
    an answer that is none, and `details` says why. `thought` are the tokens that the model spent on
    thinking, which count among those of the completion."""

    text: str
    ended: Literal["stop", "length", "refused", "error"]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


def messages(request: Request) -> tuple[str, list[tuple[str, str]]]:
    """The instruction of a request in the chat form, and the other messages, each with its role."""
    said = [] if isinstance(request.prompt, str) else request.prompt
    system = "\n\n".join(text for role, text in said if role == "system")
    return system, [(role, text) for role, text in said if role != "system"]


def client_failure(client: Any, error: Exception) -> Failure | None:
    """What an error means of a client that is made as OpenAI's and Anthropic's are: `client` is its
    module."""
    if isinstance(error, client.APIStatusError):
        status: Any = error
        return Failure(message(error), status.status_code, retry_after(status.response.headers))
    if isinstance(error, client.APITimeoutError):
        return Failure("", late=True)
    if isinstance(error, client.APIConnectionError):
        return Failure(str(error.__cause__ or error))
    return None


def retry_after(headers: Any) -> float:
    """Seconds that a Retry-After header asks for, as a number or a date, within bounds; else 0."""
    value = headers.get("retry-after") or ""
    try:
        return bounded_wait(float(value))
    except ValueError:
        try:
            return bounded_wait(parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            return 0.0


def bounded_wait(seconds: float) -> float:
    return min(max(0.0, seconds), _LONGEST_WAIT) if seconds == seconds else 0.0


def count(value: Any) -> int:
    """A number of tokens as a server gives it; 0 for anything else."""
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    return int(value) if sound else 0


def table(value: Any) -> Mapping[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
