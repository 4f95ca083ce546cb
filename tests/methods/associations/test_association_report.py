"""What the report shows of association tests, and which statements their words are from."""

import pytest

import kgbias
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import AssociationNode, GroupScore
from kgbias.methods.associations.family import GroupTestSets
from kgbias.models.base import ModelInfo
from kgbias.report.exhibits import run_exhibits
from kgbias.report.findings import build_screen
from kgbias.report.page import standard_sections
from kgbias.report.run_data import RunData
from tests.report_data import shown_rows
from tests.texts import Texts
from tests.unit.test_arms import run  # noqa: F401
from tests.unit.test_findings import run_of


def test_a_report_shows_tests_and_finds_among_them(store: SQLiteStore, texts: Texts) -> None:
    data = run_of(store, {"Women": (5, 5, 5), "Men": (5, 5, 5)}, category="gender")
    stored, model = data.run, ModelInfo("<i>tiny</i>")
    score = GroupScore(0.5, -0.25, 1.0, 9, stored.groups[0].id, "sc_weat", "SC-WEAT on tiny")
    store.put(stored.id, GroupScore, [score])
    n = dict.fromkeys("xyab", 8)
    node = AssociationNode("t", "weat6", "w-seat", model, 1.5, 0.01, 1, 2, {"n": n, "p_holm": 0.02})
    store.save_associations(stored.id, [node])
    data = RunData(StoredRun(store, stored))
    found = {e.key: e for e in run_exhibits(data)}
    (row,) = shown_rows(found["01-sc-weat"].table)
    assert row[:3] == ["Women", "+0.500", "-0.250 to +1.000"]
    (row,) = shown_rows(found["02-association-tests"].table)
    assert row[3:] == ["8+8+8+8", "+1.500", "+1.000 to +2.000", "0.0100", "0.0200"]
    *_, last = standard_sections(data)
    assert last.anchor == "associations" and "<i>tiny" not in last.html
    said = [f.said.striptags() for f in build_screen(data).findings]
    texts.check(said[-1])


def test_association_tests_of_groups_are_of_one_arm(
    run: StoredRun,  # noqa: F811
) -> None:
    with pytest.raises(kgbias.UsageError, match="arms none, prefix"):
        _ = GroupTestSets(run, attributes="regard").attribute_pair
    with pytest.raises(kgbias.UsageError, match="no arm 'both'"):
        _ = GroupTestSets(run, attributes="regard", arm="both").attribute_pair
