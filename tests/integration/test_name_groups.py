"""Name groups from guesses: the names that are read, the clusters that pass, and who is taken."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from kgbias.errors import DataError, UsageError
from kgbias.probe.name_groups import Guess, Guesses, choose_name_groups, read_guesses
from kgbias.probe.sets import read_names
from tests.conftest import require_modules
from tests.texts import Texts

pytestmark = pytest.mark.integration

require_modules("sklearn")

ROOT = Path(__file__).parent.parent.parent


def table(counts: dict[tuple[str, str, int], int]) -> tuple[Guesses, np.ndarray]:
    """Names of groups in directions far apart: (origin, gender, place) to how many there are."""
    names, rows = [], []
    for (origin, gender, place), n in counts.items():
        for k in range(n):
            names.append(Guess(f"{origin}{gender}{place}x{k}", gender, origin, 10.0 * k))
            rows.append([np.cos(2.0 * place), np.sin(2.0 * place), k * 0.001])
    return Guesses(tuple(names), {}, "test"), np.array(rows)


def test_groups_come_from_clusters_of_one_group(texts: Texts) -> None:
    """Place 0 is of Thai women. Place 1 is mixed half and half: more than half is asked for. Place
    2 is of Dutch men, with two Thai men among them. Thai men get names by probability alone."""
    guesses, vectors = table(
        {
            ("THAI", "F", 0): 8,
            ("DUTCH", "F", 1): 5,
            ("GREEK", "F", 1): 5,
            ("DUTCH", "M", 2): 6,
            ("THAI", "M", 2): 2,
            ("THAI", "M", 1): 0,
        }
    )
    found = choose_name_groups(guesses, vectors, per_group=2, clusters=3)
    assert (found.clusters, found.pure_clusters) == (3, 2)
    assert found.purity == pytest.approx((8 + 5 + 6) / 26) and found.shuffled_purity < found.purity
    by_group: dict[tuple[str, str], list[str]] = {}
    for c in found.members:
        by_group.setdefault(c.guess.group, []).append(c.how)
    assert by_group == {
        ("DUTCH", "F"): ["probability"] * 2,
        ("DUTCH", "M"): ["cluster"] * 2,
        ("THAI", "F"): ["cluster"] * 2,
        ("THAI", "M"): ["probability"] * 2,
    }
    assert found.missing == {("GREEK", "F"): 0}
    dutch = [c.guess.name for c in found.members if c.guess.group == ("DUTCH", "F")]
    assert dutch == ["DUTCHF1x4", "DUTCHF1x3"]  # the most probable
    assert {c.purity for c in found.members if c.guess.group == ("DUTCH", "M")} == {6 / 8}
    assert found == choose_name_groups(guesses, vectors, per_group=2, clusters=3)
    with texts.raises(UsageError):
        choose_name_groups(guesses, vectors, per_group=9, clusters=3)
    with texts.raises(UsageError):
        choose_name_groups(guesses, vectors[1:], per_group=2)


def test_a_table_is_read_as_the_paper_says(tmp_path: Path) -> None:
    (path := tmp_path / "n.csv").write_text(
        "FirstName,Genni,Ethnea,Probability\nAnan,M,THAI,90\nAnan,F,THAI,80\nAnan,M,THAI,70\n"
        "X,F,THAI,1\nAveryveryverylong,F,THAI,1\nKim,-,KOREAN,1\nJan,male,DUTCH,\n"
    )
    found = read_guesses(path)
    assert found.names[0] == Guess("Anan", "M", "THAI", 90.0)
    assert [(g.name, g.group) for g in found.names[1:]] == [("Jan", ("DUTCH", "M"))]
    assert found.left_out == {
        "fewer than 2 or more than 14 characters": 2,
        "no guess of one gender and an origin": 1,
    }
    for text, why in (
        ("name,gender\nA,F\n", "no column of the origin"),
        ("name,gender,origin\nA,F,THAI\n", "no names"),
        ("name,gender,origin,probability\nAnn,F,THAI,much\n", "'much' is not a probability"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=why):
            read_guesses(path)


def test_the_script_writes_what_probe_apx_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guesses, vectors = table({("THAI", "F", 0): 8, ("DUTCH", "M", 2): 6})

    class Vectors:
        name, version = "made", "1"

        def embed(self, texts: list[str]) -> np.ndarray:
            place = {g.name: n for n, g in enumerate(guesses.names)}
            return vectors[[place[text] for text in texts]]

    (path := tmp_path / "n.csv").write_text(
        "name,gender,origin\n" + "".join(f"{g.name},{g.gender},{g.origin}\n" for g in guesses.names)
    )
    monkeypatch.setattr("kgbias.measure.embedding.load_vectors", lambda spec: Vectors())
    out = tmp_path / "out"
    given = ["x", str(path), "-o", str(out), "--per-group", "3", "--clusters", "2"]
    monkeypatch.setattr(sys, "argv", given)
    runpy.run_path(str(ROOT / "scripts" / "name_groups.py"), run_name="__main__")
    assert "2 groups of 3 names; 2 of 2 clusters are of one group" in capsys.readouterr().out
    names = read_names(str(out / "names.csv"))
    assert [group for _, group in names] == ["Dutch men"] * 3 + ["Thai women"] * 3
    told = (out / "data-statement.md").read_text("utf-8")
    assert "6 given names in 2 groups" in told and '"vectors": "made@1"' in told
    assert json.loads((out / "manifest.json").read_text("utf-8"))["pure"] == 2
