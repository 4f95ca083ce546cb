"""What strangers hand over, a few of each kind, and the power cut: `scripts/attack` does more."""

from pathlib import Path

import pytest

from tests.attack.commands import Commands
from tests.attack.disturbing import WRITERS, Disturber
from tests.attack.strangers import STRANGER_KINDS, attack_kind
from tests.attack.worlds import AttackWorld

pytestmark = pytest.mark.attack


@pytest.mark.parametrize("kind", STRANGER_KINDS)
def test_what_strangers_hand_over(
    commands: Commands, whole_world: AttackWorld, tmp_path: Path, kind: str
) -> None:
    if kind == "models":
        pytest.importorskip("gguf")
    count = 1 if kind == "visitors" else 3
    tally = attack_kind(commands, whole_world, tmp_path, 16, kind, count)
    assert tally.rounds == count and not tally.faults, "\n".join(tally.faults)


@pytest.mark.parametrize("name", ["import", "measure", "compact", "delete", "migrate"])
def test_a_power_cut(
    commands: Commands, whole_world: AttackWorld, tmp_path: Path, name: str
) -> None:
    tally = Disturber(commands, whole_world, tmp_path, 16).power(name, WRITERS[name], 2)
    assert not tally.faults, "\n".join(tally.faults)
