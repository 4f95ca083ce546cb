"""Products by oneDNN, on a tiny random model."""

from typing import Any

import pytest

from kgbias.models import products
from kgbias.models.base import Request
from kgbias.models.generate import Sampler
from kgbias.models.identity import sample_state
from kgbias.models.score.engine import CausalEngine
from tests import tiny

pytestmark = pytest.mark.integration

torch = pytest.importorskip("torch")

SEQUENCES = [(0, 4, 8, 3), (0, 4, 8, 6, 9, 1), (0, 7)]


@pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no oneDNN"
)
def test_products_by_onednn_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny.build_model("llama"), tiny.build_tokenizer()
    requests = [Request("", seed=seed, max_tokens=8) for seed in range(6)]
    prompts = [[4, 8, 3], [4, 8, 3], [5], [6, 9, 10, 11], [7], [2, 3]]
    answers, tiers, values = [], [], []
    multiplied: list[object] = []
    multiply = products.multiply

    def note(*parts: Any) -> torch.Tensor:
        multiplied.append(parts)
        return multiply(*parts)

    monkeypatch.setattr(products, "multiply", note)
    for is_fast in (False, True):
        monkeypatch.setattr(products, "prefers_onednn", lambda fast=is_fast: fast)
        sampler, engine = Sampler(model, tokenizer, 4), CausalEngine(model)
        multiplied.clear()
        finished = [pair for some in sampler.complete(requests, prompts) for pair in some]
        assert bool(multiplied) == is_fast
        answers.append({number: answer.text for number, answer in finished})
        tiers.append(engine.tier)
        rows = engine.log_probabilities(SEQUENCES)
        values.append([value for row in rows for value in row.tolist()])
    assert answers[0] == answers[1]
    assert tiers == ["tree", "tree"]
    assert values[1] == pytest.approx(values[0], rel=1e-5)


def test_layers_that_are_another_s_business_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(products, "prefers_onednn", lambda: True)
    other_class = type("Other", (torch.nn.Linear,), {})
    plain, replaced, half = (torch.nn.Linear(3, 2) for _ in range(3))
    replaced.forward = lambda states: states
    model = torch.nn.ModuleList([plain, other_class(3, 2), replaced, half.half()])
    others = [vars(layer).get("forward") for layer in model[1:]]
    called: list[object] = []
    plain.register_forward_hook(lambda *parts: called.append(parts))
    state = sample_state(model)
    states = torch.rand(4, 3)
    with torch.inference_mode(), products.fast_products(model):
        assert sample_state(model) == state  # it does not count as changed meanwhile
        assert [vars(layer).get("forward") for layer in model[1:]] == others
        inside = plain(states)
    assert called
    assert "forward" not in vars(plain)
    assert torch.allclose(inside, plain(states))
    # Nor one that became so since the model was opened.
    plain.forward = replaced.forward
    with torch.inference_mode(), products.fast_products(model):
        assert plain(states) is states
    assert plain(states) is states
