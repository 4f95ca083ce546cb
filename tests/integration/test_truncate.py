"""Truncated sampling: what transformers keeps is kept, whatever the rounding and the batch."""

import math
from collections import Counter
from itertools import product

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import GenerationConfig, LogitsProcessorList  # noqa: E402

from kgbias.errors import UsageError  # noqa: E402
from kgbias.models.base import ModelInfo, Request  # noqa: E402
from kgbias.models.generate import _MAX_TIE_GAP, Sampler, _Row  # noqa: E402
from kgbias.models.truncate import Truncation, score_bounds  # noqa: E402
from tests import tiny  # noqa: E402
from tests.conftest import sweep_params  # noqa: E402

pytestmark = pytest.mark.integration

RULES = [
    Truncation(*rule)
    for rule in product((None, 1, 7, 50), (None, 0.05, 0.3, 0.9, 0.999), (None, 0.02, 0.5, 1.0))
    if any(rule)
]


def scores(trial: int) -> "torch.Tensor":
    """200 scores, flat or peaked; of every third trial rounded, so that many are equal, and every
    fifth with tokens that cannot be said."""
    found = torch.randn(200, generator=torch.Generator().manual_seed(trial)) * (0.2 + trial % 5)
    if trial % 3 == 0:
        found = (found * 4).round() / 4
    if trial % 5 == 0:
        found[::7] = -torch.inf
    return found


def test_apply_is_what_generate_does() -> None:
    """The rules, and their order, of transformers' own generate()."""
    model = tiny.build_model("gpt2")
    for rule in RULES:
        config = GenerationConfig(
            do_sample=True, top_k=rule.top_k or 0, top_p=rule.top_p or 1.0, min_p=rule.min_p
        )
        theirs = model._get_logits_processor(config, input_ids_seq_length=1)
        assert isinstance(theirs, LogitsProcessorList) and len(theirs) == len(rule.as_dict())
        for trial in range(6):
            row = scores(trial)[None]
            assert torch.equal(rule.apply(row), theirs(None, row)), rule


@pytest.mark.slow
def test_bounds_hold_under_any_rounding() -> None:
    """Whatever moves scores by half of the slack, so differences by no more than all of it, what is
    certain is kept and what is impossible is cut; and it is rare that a token is neither."""
    undecided = []
    noise = torch.Generator().manual_seed(0)
    for trial, rule in product(range(6), RULES):
        row = scores(trial)
        low, high = score_bounds(row, rule, _MAX_TIE_GAP)
        assert low <= row.max()
        for size in (0.0, 1e-4, _MAX_TIE_GAP / 2):
            moves = torch.rand(200, generator=noise) * 2 - 1
            for move in (moves, moves.sign(), torch.where(row >= high, -1.0, 1.0)):
                kept = rule.apply((row + move * size)[None])[0] > -torch.inf
                assert kept[row >= high].all() and not kept[row < low].any(), (trial, rule)
        if trial % 3:  # no ties
            undecided.append(float(row.softmax(-1)[(row >= low) & (row < high)].sum()))
    assert sum(undecided) / len(undecided) < 0.01


def sorted_nucleus(row: "torch.Tensor", top_p: float) -> tuple[float, float]:
    """The bounds of top-p from all tokens, one after the other (as `_nucleus_bounds` states
    them)."""
    weights = [math.exp(s - float(row.max())) for s in row.tolist()]
    order = sorted(zip(row.tolist(), weights, strict=True), reverse=True)
    factor, total = math.exp(_MAX_TIE_GAP), math.fsum(weights)
    low, high = math.inf, math.inf
    for score, weight in order:
        near = math.fsum(w for s, w in order if s >= score - _MAX_TIE_GAP)
        far = math.fsum(w for s, w in order if s > score + _MAX_TIE_GAP)
        most, rest = (near - weight) * factor, (weight + total - near) / factor
        if far / factor < top_p * (far / factor + (total - far) * factor):
            low = min(low, score)
        if most < top_p * (most + rest):
            high = min(high, score)
    return low, high


@pytest.mark.parametrize("head", [1, 3, 16, 512])
def test_a_part_of_the_vocabulary_decides_as_all_of_it(
    head: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgbias.models.truncate._HEAD_TOKENS", head)
    for trial, top_p in product(range(8), (0.05, 0.5, 0.9, 0.999)):
        row = scores(trial).double()
        assert score_bounds(row, Truncation(top_p=top_p), _MAX_TIE_GAP) == sorted_nucleus(
            row, top_p
        )


def test_top_p_of_a_large_vocabulary() -> None:
    """What is kept of 49,152 tokens is what transformers keeps, from peaked to flat."""
    for trial, top_p in product(range(12), (0.1, 0.9, 0.99)):
        row = torch.randn(49_152, generator=torch.Generator().manual_seed(trial)) * (0.1 + trial)
        low, high = score_bounds(row, Truncation(top_p=top_p), _MAX_TIE_GAP)
        kept = Truncation(top_p=top_p).apply(row[None])[0] > -torch.inf
        assert kept[row >= high].all() and not kept[row < low].any()


@pytest.mark.parametrize(
    "rule",
    sweep_params(
        4,
        [
            Truncation(30, 0.9, 0.05),
            Truncation(5),
            Truncation(None, 0.7),
            Truncation(None, None, 0.1),
        ],
    ),
    ids=str,
)
def test_company_changes_nothing(rule: Truncation) -> None:
    """The reference for each token: the argmax over what transformers keeps of the logits of a row
    alone, plus the noise."""
    model, tokenizer = tiny.build_model("llama"), tiny.build_tokenizer()
    prompts = ["men love", "women", "rain", "men are kind # Q"]
    asked = [Request(prompts[n % 4], n, 0.8, 6, truncation=rule) for n in range(16)]
    tokens = [tokenizer(r.prompt)["input_ids"] for r in asked]

    def answers(batch_size: int) -> dict[int, str]:
        sampler = Sampler(model, tokenizer, batch_size)
        return {i: c.text for batch in sampler.complete(asked, tokens) for i, c in batch}

    together = answers(32)
    assert together == answers(1) == answers(5)
    sampler = Sampler(model, tokenizer)
    for index, request in enumerate(asked[:6]):
        row = _Row(index, request, tokens[index], 0.0)
        with torch.inference_mode():
            while not sampler._extend_answer(row, sampler._decide_alone(row)):
                pass
        assert row.text == together[index]


def test_a_cut_within_rounding_is_decided_alone() -> None:
    """Two copies of each token, equal but for rounding, with room for an odd number of tokens: the
    last one is a matter of rounding, and never of the batch."""
    model, tokenizer = tiny.build_model("llama"), tiny.build_tokenizer()
    half = model.config.vocab_size // 2
    with torch.no_grad():
        model.lm_head.weight[half : 2 * half] = model.lm_head.weight[:half] * (1 + 1e-7)
    sampler = Sampler(model, tokenizer, 16)
    rows = [
        _Row(
            n, Request("men", n, 1.0, truncation=Truncation(3)), tokenizer("men")["input_ids"], 0.0
        )
        for n in range(200)
    ]
    with torch.inference_mode():
        logits = model(torch.tensor([rows[0].prompt])).logits[:, -1]
        alone = [sampler._decide_alone(row) for row in rows]
        moved = logits + (torch.rand(200, logits.shape[1]) - 0.5) * 1e-4
        assert sampler._draw_tokens(rows, moved) == alone
    assert len(set(alone)) <= 4


@pytest.mark.parametrize(
    "rule", sweep_params(3, [Truncation(4), Truncation(top_p=0.6), Truncation(min_p=0.2)]), ids=str
)
def test_draws_follow_the_truncated_softmax(rule: Truncation) -> None:
    """2,000 streams against the probabilities that transformers leaves: a chi-square that a right
    sampler stays below in 99.9% of the cases."""
    from scipy.stats import chi2

    model, tokenizer = tiny.build_model("gpt2"), tiny.build_tokenizer()
    ids = tokenizer("men love")["input_ids"]
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[:, -1]
    expected = 2000 * rule.apply(logits / 0.8)[0].softmax(-1)
    rows = [_Row(n, Request("men love", n, 0.8, truncation=rule), ids, 0.0) for n in range(2000)]
    drawn = Counter(Sampler(model, tokenizer)._draw_tokens(rows, logits.repeat(2000, 1)))
    kept = expected.nonzero().flatten().tolist()
    assert 1 < len(kept) < len(expected) and set(drawn) <= set(kept)
    often = [t for t in kept if expected[t] > 5]
    pairs = [(drawn[t], float(expected[t])) for t in often]
    statistic = sum((o - e) ** 2 / e for o, e in pairs)
    assert statistic < chi2.ppf(0.999, len(pairs) - 1)


def test_the_key_knows_what_cuts_and_nothing_else() -> None:
    """The first key is of a request before there was truncation."""
    model, settings = ModelInfo("m", "r"), (("dtype", "float32"),)

    def key(**rules: float) -> str:
        truncation = Truncation(**rules)  # type: ignore[arg-type]
        return Request("Men love", 7, stop=("\n",), truncation=truncation).key(model, settings)

    assert key() == "a9eaed6b297d58d5ab6f"
    assert key(top_p=1.0) == key(min_p=0.0) == key()
    assert key(min_p=1) == key(min_p=1.0)
    assert len({key(), key(top_p=0.9), key(min_p=0.9), key(top_k=1), key(top_k=2)}) == 5


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"top_k": 0}, "`top_k` must be a whole number"),
        ({"top_k": 2.5}, "`top_k` must be a whole number"),
        ({"top_p": 0}, "`top_p` is a share: above 0"),
        ({"top_p": float("nan")}, "`top_p` is a share"),
        ({"min_p": 1.1}, "`min_p` is a share: from 0 to 1"),
    ],
)
def test_out_of_range(rule: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Truncation(**rule)  # type: ignore[arg-type]
