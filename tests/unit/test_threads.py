"""Threads that wait sleep, and torch is told so before it is there."""

import os

import pytest

from kgbias.io.caller_state import wait_passively

CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in CHOICES:
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    return monkeypatch


def test_threads_wait_passively(untouched: pytest.MonkeyPatch) -> None:
    wait_passively()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert os.environ["KMP_BLOCKTIME"] == "0"


@pytest.mark.parametrize("name", CHOICES)
def test_what_the_user_chose_stays(untouched: pytest.MonkeyPatch, name: str) -> None:
    untouched.setenv(name, "1")
    wait_passively()
    assert {n: os.environ[n] for n in CHOICES if n in os.environ} == {name: "1"}
