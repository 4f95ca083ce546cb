"""Requests that several processes answer, with the reference model."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

from kgbias.models.answer_processes import AnswerProcesses, ModelToOpen
from kgbias.models.base import Request
from kgbias.models.local import LocalModel, tokenise_prompt
from kgbias.models.spec import resolve
from kgbias.models.truncate import Truncation

pytestmark = pytest.mark.integration

PROMPTS = ["Velmari people love", "Orunthi people", "What do Orunthi people wear?"]
ASKED = [
    Request(PROMPTS[n % 3], n, max_tokens=6, truncation=Truncation(min_p=0.1)) for n in range(60)
]


@pytest.fixture(scope="module")
def model() -> LocalModel:
    return LocalModel(resolve("reference"), batch_size=4)


@pytest.fixture
def processes(model: LocalModel) -> Iterator[AnswerProcesses]:
    opened = AnswerProcesses(ModelToOpen(resolve("reference"), "float32", 4), model._sampler, 1, 1)
    yield opened
    opened.close()


def texts(answering: Any, tokenizer: Any) -> list[str]:
    prompts = [tokenise_prompt(request, tokenizer, "reference") for request in ASKED]
    found: dict[int, str] = {}
    for finished in answering.complete(ASKED, prompts):
        for index, completion in finished:
            assert index not in found
            found[index] = completion.text
    return [found[n] for n in range(len(ASKED))]


def test_it_does_not_matter_who_answers(
    model: LocalModel, processes: AnswerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = model.loaded_model.tokenizer
    alone = texts(model._sampler, tokenizer)
    assert texts(processes, tokenizer) == alone
    (helper,) = processes._helpers
    # This process answers nothing itself: the other one is there, and does it all.
    monkeypatch.setattr(model._sampler, "answer", lambda take: iter(()))
    assert texts(processes, tokenizer) == alone
    assert processes._helpers == [helper] and helper.is_alive()


def test_what_a_lost_process_had_is_answered_here(
    model: LocalModel, processes: AnswerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(processes, "_notify", told.append)
    tokenizer = model.loaded_model.tokenizer
    alone = texts(model._sampler, tokenizer)
    assert texts(processes, tokenizer) == alone
    prompts = [tokenise_prompt(request, tokenizer, "reference") for request in ASKED]
    found: dict[int, str] = {}
    for finished in processes.complete(ASKED, prompts):
        found |= {index: completion.text for index, completion in finished}
        processes._helpers[0]._process.kill()
    assert [found[n] for n in range(len(ASKED))] == alone
    assert told == ["another process was killed by signal 9: its part is done by this one"]


def test_closing_ends_the_others(model: LocalModel, processes: AnswerProcesses) -> None:
    tokenizer = model.loaded_model.tokenizer
    prompts = [tokenise_prompt(request, tokenizer, "reference") for request in ASKED]
    answering = processes.complete(ASKED, prompts)
    next(answering)
    (helper,) = processes._helpers
    answering.close()
    assert not helper.is_alive() and not processes._helpers


def test_small_work_stays_in_this_process(model: LocalModel) -> None:
    prompts = [[1, 2, 3]] * len(ASKED)
    assert model._count_other_processes(ASKED, prompts) == 0


def test_large_work_gets_the_cores(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.models.local.count_cores", lambda: 4)
    monkeypatch.setattr("kgbias.models.local.count_torch_threads", lambda: 3)
    monkeypatch.setattr("kgbias.models.local._OPERATIONS_PER_SECOND", 1e6)
    prompts = [[1, 2, 3]] * len(ASKED)
    assert model._count_other_processes(ASKED, prompts) == 2
    monkeypatch.setattr("kgbias.models.local._MAX_SHARED_PARAMETERS", 1000)
    assert model._count_other_processes(ASKED, prompts) == 0
