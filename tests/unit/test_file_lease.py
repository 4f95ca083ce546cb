"""The lease of a run as a file: what two processes do at one moment."""

from pathlib import Path

import pytest

from kgbias.graph.leases import Holder
from kgbias.graph.sqlite import leases


def test_a_renewal_does_not_take_back_what_was_taken_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Holder("here", 1, "a machine", "1", "mine")
    theirs = Holder("far", 7, "another", "1", "theirs")
    lease = leases.FileLease(tmp_path / "lease")
    assert lease.take(mine, None)
    read_holder = leases._read_holder

    def read_and_lose(text: bytes) -> Holder:
        """The lease changes hands after it was read, and before it is written."""
        holder = read_holder(text)
        monkeypatch.setattr(leases, "_read_holder", read_holder)
        assert lease.take(theirs, mine)
        return holder

    monkeypatch.setattr(leases, "_read_holder", read_and_lose)
    lease.renew(mine)
    assert lease.holder() == theirs and not lease.renew(mine)
    assert lease.renew(theirs) and lease.holder() == theirs
