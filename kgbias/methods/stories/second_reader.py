"""A second model that reads the stories of the first."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kgbias.errors import UsageError
from kgbias.io.progress import Progress
from kgbias.models.base import Completer
from kgbias.models.spec import KINDS, parse_spec
from kgbias.study.opening import open_completer, split_model_options

BUILT_IN_READERS = ("rules", "model")  # no second model


def check_reader_prices(reader: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for prices, if a second model reads stories: its own are not known."""
    money = [n for n in ("max_cost", "price_in", "price_out", "prices") if options.get(n)]
    if reader not in BUILT_IN_READERS and money:
        raise UsageError(
            f"`{money[0]}` counts one model's prices, and {reader} would read the stories of "
            "another: limit `max_requests` or `max_tokens` instead"
        )


@contextmanager
def open_second_reader(
    reader: str, teller: Completer, options: Mapping[str, Any], progress: Progress
) -> Iterator[Completer | None]:
    """The second model that reads another's stories, opened with the same options if both are on
    this machine or behind the same kind of server; None if rules or the teller itself read them.
    Raises UsageError as `check_reader_prices`."""
    check_reader_prices(reader, options)
    if reader in BUILT_IN_READERS:
        yield None
        return
    teller_kind = teller.info.name.partition(":")[0]
    same_kind = (
        teller_kind in KINDS
        and KINDS[teller_kind].completer == KINDS[parse_spec(reader).kind].completer
    )
    with open_completer(
        reader, split_model_options(options)[0] if same_kind else {}, progress
    ) as opened:
        yield opened
