"""CrowS-Pairs and StereoSet of small models against plain loops."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from kgbias.errors import DataError
from kgbias.methods.benchmarks import score_crows_pairs, score_stereoset
from kgbias.models.score.load import open_scorer
from tests import tiny
from tests.integration.test_probe_engine import by_hand

pytestmark = pytest.mark.integration

PAIRS = """,sent_more,sent_less,stereo_antistereo,bias_type
0,men love food,women love food,stereo,gender
1,women hate rain,men hate rain,antistereo,gender
2,tall men,tall men,stereo,size
"""


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_model(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ["men", "women", "love", "food", "un", "##kind", "are", "."]
    return tiny.save_bert(tmp_path_factory.mktemp("bert"), words)


def test_crows_pairs_by_hand(gpt2: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    scorer = open_scorer(f"hf:{gpt2}")
    sentences = [line.split(",")[1:3] for line in PAIRS.splitlines()[1:]]
    values = [[by_hand(gpt2, text, [0]) for text in pair] for pair in sentences]
    means = [[float(np.mean(row)) for row in pair] for pair in values]
    figures = {
        (f.domain): f.estimate for f in score_crows_pairs(scorer, path, "bias-bench").figures
    }
    wins = [more > less for more, less in means]
    assert figures["overall"].n == 3 and wins[2] is False
    assert figures["overall"].value == pytest.approx(100 * sum(wins) / 3)
    assert figures["size"].value == 0
    # the shared tokens are all but the first one
    shared = [[sum(row[1:]) for row in pair] for pair in values[:2]]
    original = {f.domain: f.estimate for f in score_crows_pairs(scorer, path).figures}
    assert original["gender"].value == pytest.approx(50 * sum(more > less for more, less in shared))


def test_crows_pairs_of_a_masked_model(bert: Path, tmp_path: Path) -> None:

    path = tmp_path / "pairs.csv"
    rows = "0,men love food,women love food,stereo,gender\n1,men,men,stereo,gender\n"
    path.write_text(PAIRS.splitlines()[0] + "\n" + rows)
    model = AutoModelForMaskedLM.from_pretrained(bert).eval()

    def at(ids: list[int], place: int) -> float:
        masked = list(ids)
        masked[place] = 4
        with torch.no_grad():
            row = model(torch.tensor([masked])).logits[0, place].log_softmax(-1)
        return float(row[ids[place]])

    more, less = [2, 5, 7, 8, 3], [2, 6, 7, 8, 3]
    scorer = open_scorer(f"hf:{bert}")
    figures = {f.domain: f.estimate for f in score_crows_pairs(scorer, path, "bias-bench").figures}
    assert figures["overall"].n == 1  # the second pair does not differ
    assert figures["overall"].value == 100 * (at(more, 1) > at(less, 1))
    shared = [at(ids, 2) + at(ids, 3) for ids in (more, less)]
    original = {f.domain: f.estimate for f in score_crows_pairs(scorer, path).figures}
    assert original["overall"].n == 2
    assert original["overall"].value == 50 * (shared[0] > shared[1])


def test_stereoset_by_hand(bert: Path, gpt2: Path, tmp_path: Path) -> None:

    words = {"stereotype": "unkind", "anti-stereotype": "men", "unrelated": "food"}
    sentences = [{"gold_label": g, "sentence": f"women are {w}."} for g, w in words.items()]
    entry = {"target": "women", "bias_type": "gender", "context": "women are BLANK."}
    path = tmp_path / "stereoset.json"
    data = {"data": {"intrasentence": [entry | {"sentences": sentences}]}}
    path.write_text(json.dumps(data))
    model = AutoModelForMaskedLM.from_pretrained(bert).eval()

    def at(ids: list[int], place: int, token: int) -> float:
        with torch.no_grad():
            return float(model(torch.tensor([ids])).logits[0, place].softmax(-1)[token])

    one = [2, 6, 11, 4, 12, 3]  # [CLS] women are [MASK] . [SEP]
    two = [2, 6, 11, 9, 4, 12, 3]  # un is in place for ##kind
    stereotype = (at(one, 3, 9) + at(two, 4, 10)) / 2
    other, unrelated = at(one, 3, 5), at(one, 3, 8)
    figures = {
        f.figure: f.estimate.value for f in score_stereoset(open_scorer(f"hf:{bert}"), path).figures
    }
    assert figures["SS"] == 100 * (stereotype > other)
    assert figures["LMS"] == 50 * ((stereotype > unrelated) + (other > unrelated))
    assert figures["ICAT"] == 0
    causal = [np.mean(by_hand(gpt2, s["sentence"], [0])) for s in sentences]
    found = {
        f.figure: f.estimate.value for f in score_stereoset(open_scorer(f"hf:{gpt2}"), path).figures
    }
    assert found["SS"] == 100 * (causal[0] > causal[1])
    path.write_text('{"data": {}}')
    with pytest.raises(DataError, match="neither intrasentence nor intersentence"):
        score_stereoset(open_scorer(f"hf:{gpt2}"), path)
