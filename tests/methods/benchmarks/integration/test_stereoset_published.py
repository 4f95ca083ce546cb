"""StereoSet of a causal model, as the published codes score it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import kgbias
from kgbias.errors import UsageError
from kgbias.methods import benchmarks
from kgbias.methods.benchmarks import score_stereoset
from kgbias.methods.benchmarks.stereoset import read_stereoset
from kgbias.models.score.load import open_scorer
from tests import tiny
from tests.methods.benchmarks.test_benchmarks import Liking, stereo_file


def test_stereoset_as_published_gives_the_first_token_alone_what_is_before(tmp_path: Path) -> None:
    """Against a plain loop: the first token after BOS, the others without it."""
    folder = tiny.save_model(tmp_path / "model")
    file = stereo_file(tmp_path / "dev.json")
    scorer = open_scorer(f"hf:{folder}")
    read = read_stereoset(file, as_published=True)
    (ours, _), (plain, _) = (x.ask(scorer, [0])[0] for x in (read, read_stereoset(file)))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for sentence, value, other in zip(read._examples[0].sentences, ours, plain, strict=True):
        ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            before = tokenizer.eos_token_id  # it has no BOS
            start = model(torch.tensor([[before]])).logits[0, -1].log_softmax(-1)
            rest = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        found = [float(start[ids[0]]), *(float(rest[n, t]) for n, t in enumerate(ids[1:]))]
        assert value == pytest.approx(float(np.exp(np.mean(found))), rel=1e-4)
        assert value != pytest.approx(other, rel=1e-3)
    assert {i.id for i in read.items}.isdisjoint(i.id for i in read_stereoset(file).items)
    figures = score_stereoset(scorer, file, as_published=True)
    assert figures.figures
    with kgbias.open(None, progress=False) as study:
        benchmarks.run_benchmarks(study, f"hf:{folder}", stereoset=file, as_published=True)
        left = benchmarks.estimate_cost(study, f"hf:{folder}", stereoset=file, as_published=True)
        assert [cost.kept for cost in left] == [len(read.items)]
        assert [
            cost.kept for cost in benchmarks.estimate_cost(study, f"hf:{folder}", stereoset=file)
        ] == [0]
        with pytest.raises(UsageError, match="`as_published` needs `stereoset`"):
            benchmarks.run_benchmarks(study, f"hf:{folder}", as_published=True, apx=True)


def test_stereoset_as_published_is_about_causal_models(tmp_path: Path) -> None:
    file = stereo_file(tmp_path / "dev.json")
    masked = Liking({}, kind="masked")
    with pytest.raises(UsageError, match="causal models on this machine"):
        score_stereoset(masked, file, as_published=True)  # type: ignore[arg-type]
