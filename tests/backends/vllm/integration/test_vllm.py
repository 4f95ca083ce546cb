"""A model in vLLM against the same model without it: the real engine, on a CPU or a GPU."""

import inspect
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kgbias
from kgbias.errors import ModelError
from kgbias.graph.types import ProbeRun
from kgbias.models import open_model, open_scorer
from kgbias.models.base import Request
from kgbias.models.truncate import Truncation
from kgbias.reference import weights_path
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not find_spec("vllm"),
        reason="vLLM needs an environment of its own (docs/how-to/models.md)",
    ),
]
SPEC = f"vllm:{weights_path('causal')}"
SAME = f"hf:{weights_path('causal')}"
CRAWL = {"samples": 3, "iterations": 1, "predicate_prompts": 2, "object_prompts": 2}
# vLLM ends at 0 what it gives a GPU; here a tiny model leaves most of a CPU's memory unused.
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")


def asked(spec: str, requests: list[Request]) -> list[Any]:
    found: dict[int, Any] = {}
    for batch in open_model(spec).complete(requests):
        found |= dict(batch)
    return [found[n] for n in range(len(requests))]


PROMPTS = ["Velmari people", "Velmari people are", "Velmari people love"]


def test_the_most_probable_answer_is_the_same() -> None:
    requests = [Request(prompt, 7, temperature=0, max_tokens=12, stop=(".",)) for prompt in PROMPTS]
    here, there = asked(SPEC, requests), asked(SAME, requests)
    assert [(c.text, c.finish) for c in here] == [(c.text, c.finish) for c in there]
    assert [c.prompt_tokens for c in here] == [c.prompt_tokens for c in there]
    assert all(c.completion_tokens > 0 for c in here)


def test_a_seed_decides_and_the_rest_is_obeyed() -> None:
    rule = Truncation(top_k=40, top_p=0.95, min_p=0.02)
    requests = [
        Request(PROMPTS[0], n, temperature=1.0, max_tokens=6, truncation=rule) for n in range(12)
    ]
    texts = [c.text for c in asked(SPEC, requests)]
    assert texts == [c.text for c in asked(SPEC, requests)] and len(set(texts)) > 1
    one = [
        Request(PROMPTS[0], n, temperature=1.0, max_tokens=6, truncation=Truncation(top_k=1))
        for n in range(4)
    ]
    assert len({c.text for c in asked(SPEC, one)}) == 1
    long = asked(SPEC, [Request("men " * 300, 0), Request("men", 0, max_tokens=0)])
    assert [c.finish for c in long] == ["error", "length"]
    assert "longer than the model's context of 256 tokens" in long[0].error


def test_an_answer_is_held_to_a_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"object": {"enum": ["tea"]}},
        "required": ["object"],
        "additionalProperties": False,
    }
    (found,) = asked(SPEC, [Request(PROMPTS[2], 0, max_tokens=80, schema=json.dumps(schema))])
    assert found.finish == "stop" and json.loads(found.text) == {"object": "tea"}
    assert found.details["response_format"] == "json_schema"


def test_what_it_does_not_know_is_one_line(tmp_path: Path) -> None:
    for file in weights_path("causal").glob("*.json"):
        text = file.read_text().replace("GPT2LMHeadModel", "NobodyForCausalLM")
        (tmp_path / file.name).write_text(text)
    with pytest.raises(ModelError, match=r"as a model of vLLM: .*Nobody") as error:
        open_scorer(f"vllm:{tmp_path}")
    assert "\n" not in str(error.value)


def test_perplexities_are_those_of_transformers() -> None:
    groups = ["Velmari people", "Ordish people", "men"]
    statements = ["love tea", "are said to be lazy and loud", "drive"]
    here, there = open_scorer(SPEC), open_scorer(SAME)
    assert here.info == there.info and here.settings != there.settings
    assert dict(here.settings) | dict(there.settings) == dict(here.settings)
    ours, theirs = here.grid(groups, statements), there.grid(groups, statements)
    for name in ("whole", "statement", "group"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert np.array_equal(mine.tokens, other.tokens)
        np.testing.assert_allclose(mine.perplexities, other.perplexities, rtol=1e-4)
    assert ours.surprisals and theirs.surprisals
    (mine, other) = ours.surprisals(0, 1), theirs.surprisals(0, 1)
    assert [token for token, _ in mine] == [token for token, _ in other]
    np.testing.assert_allclose([b for _, b in mine], [b for _, b in other], atol=1e-3)


def test_said_and_believed_meet_in_one_model(tmp_path: Path) -> None:
    with kgbias.open(tmp_path / "kgbias.db") as study:
        asked = {"group": ["Velmari people", "Ordelian people"], **CRAWL}
        run = study.crawl(SPEC, **asked)
        record = run.stored.record
        assert record.model.name == SAME and dict(record.settings)["engine"].startswith("vLLM ")
        assert study.crawl(SPEC, **asked).crawl_result.asked_count == 0
        run.probe(SPEC)
        run.probe(SAME)
        assert [p.model for p in run.stored.find_all(ProbeRun)] == [record.model] * 2


def test_killed_and_continued(tmp_path: Path) -> None:
    """What was answered when it was killed is not asked again."""
    store = tmp_path / "kgbias.db"
    command = [
        sys.executable,
        "-m",
        "kgbias",
        "crawl",
        "--model",
        SPEC,
        "--category",
        "gender",
        "--samples",
        "40",
        "--iterations",
        "2",
        "--store",
        str(store),
        "--json",
    ]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: answers(store) >= 40 or first.poll() is not None)
    assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.wait()
    kept = answers(store)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    told = json.loads(done.stdout)
    assert told["cached"] == kept > 0


def answers(store: Path) -> int:
    import sqlite3

    if not store.exists():
        return 0
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        try:
            (count,) = database.execute("SELECT count(*) FROM answer").fetchone()
        except sqlite3.OperationalError:  # not made yet
            return 0
    return int(count)


def test_the_stub_of_the_unit_tests_is_like_the_engine() -> None:
    from vllm import LLMEngine

    from tests.backends.vllm.test_vllm import Stub

    for name in ("add_request", "step", "abort_request"):
        real = list(inspect.signature(getattr(LLMEngine, name)).parameters)
        assert real[: len(inspect.signature(getattr(Stub, name)).parameters)] == list(
            inspect.signature(getattr(Stub, name)).parameters
        )
