"""What is shown of profiles: exhibits, the page of two names, and agreement with other views."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import kgbias
from kgbias.errors import UsageError
from kgbias.graph.types import TripleView
from kgbias.methods import profiles as profile_calls
from kgbias.methods.profiles.agreement import (
    compare_with_apx,
    compare_with_crawl,
    find_group_labels,
)
from kgbias.methods.profiles.report_part import (
    agreement_exhibits,
    profile_exhibits,
    write_agreement,
    write_profile_page,
)
from kgbias.methods.profiles.words import word_shifts
from kgbias.probe.apx import ApxTable
from kgbias.report.run_data import RunData
from tests.methods.profiles.test_profiles import people
from tests.report_data import shown_rows
from tests.texts import Texts

pytestmark = pytest.mark.integration

HOSTILE = "</script><script>window.pwned=1</script>"


@pytest.fixture
def run(tmp_path: Path) -> kgbias.Run:
    path = tmp_path / "p.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "religion", "odd{}&", "Group"])
        for group, faith in (("('ELF', 'F')", "light"), ("('ORC', 'M')", "Smoke")):
            for n in range(10):
                rows.writerow([f"{faith}{n}", faith, HOSTILE if n else "x", group])
    study = kgbias.open(tmp_path / "k.db", progress=False)
    return study.import_file(path, format="profiles", group="Group", name="a")


def test_the_exhibits_of_profiles(run: kgbias.Run, tmp_path: Path) -> None:
    found = {e.key: e for e in profile_exhibits(RunData(run.stored), "03")}
    assert list(found) == [
        "03-profile-accuracy",
        "03-profile-without-group",
        "03-profile-without-ethnicity",
        "03-profile-without-gender",
        "03-profile-words",
        "03-profile-religion",
        "03-profile-shift-religion",
    ]
    rows = shown_rows(found["03-profile-accuracy"].table)
    assert [row[:3] for row in rows] == [
        [k, "2", "1.000"] for k in ("group", "ethnicity", "gender")
    ]
    assert shown_rows(found["03-profile-words"].table) == [
        ["religion", "light", "ELF F"],
        ["religion", "smoke", "ORC M"],
    ]
    assert [e.paper for e in found.values()][:4] == ["Table 6", "Table 9", "Table 10", "Table 11"]
    for exhibit in found.values():
        if exhibit.draw is not None:
            assert exhibit.draw()


def test_a_run_without_profiles_has_no_such_exhibits(tmp_path: Path, texts: Texts) -> None:
    (tmp_path / "t.csv").write_text("group,predicate,object\nElves,love,songs\n")
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(tmp_path / "t.csv")
        assert list(profile_exhibits(RunData(run.stored), "03")) == []
        with texts.raises(UsageError):
            profile_calls.analyse_profiles(run)
        with texts.raises(UsageError):
            profile_calls.compare_words(run)


def test_the_page_of_two_names(run: kgbias.Run, tmp_path: Path, texts: Texts) -> None:
    page = profile_calls.write_page(run, tmp_path / "p.html", name=("Smoke3",)).read_text("utf-8")
    assert HOSTILE not in page and "Content warning" in page
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["begin"] == ["Smoke3", "light0"]
    assert HOSTILE in str(data["profiles"])
    with texts.raises(UsageError):
        profile_calls.write_page(run, tmp_path / "q.html", name="Bob")
    with pytest.raises(UsageError, match="two names"):
        write_profile_page(
            run.stored,
            list(profile_calls.list_profiles(run)),
            tmp_path / "q.html",
            names=("light0", "light1", "light2"),
        )


def test_agreement_with_apx_and_a_crawl(tmp_path: Path, texts: Texts) -> None:
    """Two groups, two words: the group of a word is first in both views, or last."""
    profiles = people(True)
    words = word_shifts(profiles, [p.labels["group"] for p in profiles], ["faith"], draws=0)
    table = ApxTable(
        ("elves", "orcs"),
        ("Elves", "an orcs", "tall"),
        ("", "", ""),
        np.array([[[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]]]),
    )
    found = compare_with_apx(words, table)
    assert [(r.word, r.known_as, r.rank, r.other[0]) for r in found.rows] == [
        ("elves", "Elves", 1, "elves"),
        ("orcs", "an orcs", 1, "orcs"),
    ]
    assert found.mrr.value == 1 and 0.7 < found.expected < 0.8 and found.p_value > 0.4
    (exhibit,) = agreement_exhibits([found])
    (axes,) = exhibit.draw().axes
    assert {line[0][0] for line in axes.collections[0].get_segments()} == {1}  # the first rank
    written = write_agreement([found, found], tmp_path / "agreed", "r")
    assert [path.name for path in written if path.suffix in (".tex", ".svg")] == [
        "agreement-apx-2.svg",
        "agreement-apx-2.tex",
        "agreement-apx.svg",
        "agreement-apx.tex",
    ]
    latex = (tmp_path / "agreed" / "agreement-apx.tex").read_text()
    assert "an orcs" not in latex
    texts.check_lines(latex, "faith &")
    said = [
        TripleView(f"{n}", g, g, "are", o, 2, {})
        for n, (g, o) in enumerate([("1", "Orcs"), ("2", "elves"), ("2", "x"), ("3", "elves")])
    ]
    labels = find_group_labels(profiles, {"1": ("Elves",), "2": ("ORCS", "o"), "3": ("Dwarves",)})
    assert labels == {"1": "elves", "2": "orcs"}
    other = compare_with_crawl(words, said, labels, source="rc")
    assert other.mrr.value == 0.5 and other.as_dict()["rows"][0]["rank"] == 2
    with texts.raises(UsageError):
        compare_with_crawl(words, said[:1], labels, source="rc")
    with pytest.raises(UsageError, match="share no word"):
        compare_with_crawl([w for w in words if w.word == "elves"], said[:1] + said[2:3], labels)
