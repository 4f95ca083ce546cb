"""The sampling engine, on tiny random models of several architectures."""

import json
import struct
from collections import Counter
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.texts import Texts

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgbias.errors import ModelError  # noqa: E402
from kgbias.models import open_encoder, open_model, open_scorer  # noqa: E402
from kgbias.models.base import Completion, Request  # noqa: E402
from kgbias.models.embed import Span  # noqa: E402
from kgbias.models.generate import Sampler, _find_beginnings  # noqa: E402
from kgbias.models.local import tokenise_prompt  # noqa: E402
from tests import tiny  # noqa: E402
from tests.conftest import sweep_params  # noqa: E402

pytestmark = pytest.mark.integration

PROMPTS = ["men love", "women", "men are kind # Q", "rain", "men love", "tall women hate rain ."]


def requests(count: int, **changes: object) -> list[Request]:
    values: dict[str, object] = {"max_tokens": 12, "temperature": 0.8} | changes
    return [
        Request(PROMPTS[n % len(PROMPTS)], seed=1000 + n, **values)  # type: ignore[arg-type]
        for n in range(count)
    ]


def answers(sampler: Sampler, asked: list[Request]) -> list[Completion]:
    tokenizer = tiny.build_tokenizer()
    found: dict[int, Completion] = {}
    for batch in sampler.complete(asked, [tokenizer(r.prompt)["input_ids"] for r in asked]):
        for index, completion in batch:
            assert index not in found
            found[index] = completion
    return [found[n] for n in range(len(asked))]


def texts(sampler: Sampler, asked: list[Request]) -> list[tuple[str, str, int]]:
    return [(c.text, c.finish, c.completion_tokens) for c in answers(sampler, asked)]


@pytest.mark.parametrize(
    "architecture", sweep_params(3, ["gpt2", "llama", "qwen2", "gpt_neox", "gemma2", "opt"])
)
def test_company_changes_nothing(architecture: str) -> None:
    model, tokenizer = tiny.build_model(architecture), tiny.build_tokenizer()
    asked = requests(36, max_tokens=8)
    alone = texts(Sampler(model, tokenizer, 1), asked)
    together = Sampler(model, tokenizer, 32)
    assert together._batch_size == 32  # no fallback: batches of this architecture are exact
    assert texts(together, asked) == alone
    assert texts(Sampler(model, tokenizer, 3), asked[:12]) == alone[:12]
    backwards = texts(together, asked[::-1])[::-1]
    assert backwards == alone


class Renamed:
    """A model as transformers 5.24 has it: what it has read is its `cache`."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def forward(self, cache: Any = None, position_ids: Any = None, **named: Any) -> Any:
        found = self._model(past_key_values=cache, position_ids=position_ids, **named)
        return SimpleNamespace(logits=found.logits, cache=found.past_key_values)

    __call__ = forward


def test_what_was_read_goes_by_either_name() -> None:
    model, tokenizer = tiny.build_model("gpt2"), tiny.build_tokenizer()
    if "cache" in signature(model.forward).parameters:
        pytest.skip("it is called so by these transformers")
    asked = requests(8, max_tokens=8)
    renamed = Sampler(Renamed(model), tokenizer, 4)
    assert renamed._batch_size == 4  # it is passed on from token to token
    assert texts(renamed, asked) == texts(Sampler(model, tokenizer, 4), asked)


def test_a_recurrent_model_falls_back_to_rows_of_their_own() -> None:
    sampler = Sampler(tiny.build_model("mamba"), tiny.build_tokenizer(), 32)
    assert sampler._batch_size == 1
    asked = requests(6)
    assert texts(sampler, asked) == texts(sampler, asked)


def test_near_ties_are_decided_alone() -> None:
    """Two halves of the vocabulary with the same logits but for rounding: without the rule, the
    shape of the batch would decide."""
    model, tokenizer = tiny.build_model("llama"), tiny.build_tokenizer()
    half = model.config.vocab_size // 2
    with torch.no_grad():
        head = model.lm_head.weight
        head[half : 2 * half] = head[:half] * (1 + 1e-7)
    asked = requests(12, temperature=0.0)
    alone = texts(Sampler(model, tokenizer, 1), asked)
    sampler = Sampler(model, tokenizer, 32)
    decided = []
    original = sampler._decide_alone
    sampler._decide_alone = lambda row: decided.append(row) or original(row)  # type: ignore[func-returns-value,method-assign]
    assert texts(sampler, asked) == alone
    assert len(decided) > 40


def test_draws_follow_the_softmax() -> None:
    """The first tokens of 4,000 streams against the model's probabilities: a chi-square of the ten
    likeliest tokens and the rest, whose 99.9% quantile at 10 degrees of freedom is 29.6."""
    model, tokenizer = tiny.build_model("gpt2"), tiny.build_tokenizer()
    ids = tokenizer("men love")["input_ids"]
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0, -1]
    probabilities = (logits / 0.8).softmax(-1)
    sampler = Sampler(model, tokenizer, 500)
    drawn: Counter[int] = Counter()
    rows = [Request("men love", seed=n, max_tokens=1) for n in range(4000)]
    from kgbias.models.generate import _Row

    fake = [_Row(n, r, ids, 0.0) for n, r in enumerate(rows)]
    for start in range(0, 4000, 500):
        block = fake[start : start + 500]
        drawn.update(sampler._draw_tokens(block, logits.repeat(len(block), 1)))
    top = probabilities.topk(10).indices.tolist()
    expected = [4000 * float(probabilities[t]) for t in top]
    observed = [drawn[t] for t in top]
    expected.append(4000 - sum(expected))
    observed.append(4000 - sum(observed))
    assert min(expected) > 5
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    assert statistic < 29.6


def test_equal_prompts_are_read_once() -> None:
    model, tokenizer = tiny.build_model("llama"), tiny.build_tokenizer()
    sampler = Sampler(model, tokenizer, 8)
    read = []
    original = model.forward

    def counted(*args: object, **kwargs: object) -> object:
        if not kwargs["past_key_values"].get_seq_length():  # type: ignore[attr-defined]
            read.append(kwargs["input_ids"].shape[0])  # type: ignore[attr-defined]
        return original(*args, **kwargs)

    model.forward = counted
    answers(sampler, [Request("men love", seed=n, max_tokens=3) for n in range(8)])
    assert read == [1]


@pytest.mark.parametrize("architecture", sweep_params(3, ["gpt2", "llama", "gemma2"]))
def test_a_prompt_that_was_read_is_not_read_again(architecture: str) -> None:
    model, tokenizer = tiny.build_model(architecture), tiny.build_tokenizer()
    asked = requests(36, max_tokens=8)
    alone = texts(Sampler(model, tokenizer, 1), asked)
    sampler = Sampler(model, tokenizer, 8)
    assert texts(sampler, asked[:24]) == alone[:24]
    read = []
    original = sampler._model.forward

    def counted(*args: object, **kwargs: object) -> object:
        if not kwargs["past_key_values"].get_seq_length():  # type: ignore[attr-defined]
            read.append(kwargs["input_ids"].shape)  # type: ignore[attr-defined]
        return original(*args, **kwargs)

    model.forward = counted
    assert texts(sampler, asked[24:]) == alone[24:]
    assert read == []
    assert texts(sampler, [Request("other words", seed=1, max_tokens=3)] * 2) and read
    assert {tuple(p) for p in sampler._prefixes} == {tuple(tokenizer("other words")["input_ids"])}
    model.forward = original


@pytest.mark.parametrize(
    "architecture", sweep_params(3, ["gpt2", "llama", "qwen2", "gemma2", "opt"])
)
def test_what_prompts_begin_with_alike_is_read_once(architecture: str) -> None:
    model, tokenizer = tiny.build_model(architecture), tiny.build_tokenizer()
    begin = "tall women hate rain and food # "
    shared = len(tokenizer(begin)["input_ids"])
    ends = ["men love", "women are kind", "rain .", "rain # Q"]
    first, second = (
        [Request(f"{begin}{number} {end}", seed=n, max_tokens=5) for n, end in enumerate(ends)]
        for number in "12"
    )
    second.append(Request("women love", seed=9, max_tokens=5))  # begins otherwise
    alone = texts(Sampler(model, tokenizer, 1), [*first, *second])
    sampler = Sampler(model, tokenizer, 8)
    assert texts(sampler, first) == alone[:4]
    ((beginning, _),) = sampler._beginnings.items()
    assert len(beginning) >= shared
    read = []
    original = sampler.run_model

    def counted(ids: Any, mask: Any, cache: Any) -> Any:
        if ids.shape[1] > 1:
            read.append(int(mask[:, -ids.shape[1] :].sum()))
        return original(ids, mask, cache)

    sampler.run_model = counted  # type: ignore[method-assign]
    assert texts(sampler, second) == alone[4:]
    lengths = [len(tokenizer(request.prompt)["input_ids"]) for request in second]
    assert read == [sum(lengths) - 4 * shared]


def test_beginnings_are_those_of_several_prompts() -> None:
    head, other = tuple(range(10)), tuple(range(20, 30))
    alike = [(*head, 40, 41), (*head, 50), (*head, 50, 51)]
    assert _find_beginnings([*alike, (*other, 1), (1, 2, 3)]) == [head]
    assert _find_beginnings([*alike, (*other, 1), (*other, 2)]) == [head, other]
    assert _find_beginnings([head, (*head, 1)]) == [head[:-1]]  # each has a token of its own
    assert _find_beginnings([(*head[:7], 1), (*head[:7], 2)]) == []  # too little


def test_prompts_are_kept_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny.build_model("llama"), tiny.build_tokenizer()
    asked = requests(12, max_tokens=4)
    sampler = Sampler(model, tokenizer, 4)
    whole = texts(sampler, asked)
    sizes = [prefix.size for prefix in sampler._prefixes.values()]
    assert len(sizes) == len(set(PROMPTS))
    monkeypatch.setattr("kgbias.models.generate._MAX_PREFIX_BYTES", sum(sizes) - 1)
    sampler = Sampler(model, tokenizer, 4)
    assert texts(sampler, asked) == whole == texts(sampler, asked)
    assert 0 < sum(p.size for p in sampler._prefixes.values()) < sum(sizes)


def test_stops_limits_and_ends() -> None:
    sampler = Sampler(tiny.build_model("gpt2"), tiny.build_tokenizer(), 4)
    free = answers(sampler, requests(24, max_tokens=20))
    assert all(c.completion_tokens <= 20 for c in free)
    assert all((c.finish == "length") == (c.completion_tokens == 20) for c in free)
    letters = Counter("".join(c.text for c in free).replace("\ufffd", ""))
    stop = letters.most_common(1)[0][0]
    stopped = answers(sampler, requests(24, max_tokens=20, stop=(stop,)))
    assert any(c.finish == "stop" for c in stopped)
    for whole, cut in zip(free, stopped, strict=True):
        assert stop not in cut.text
        assert cut.text.rstrip("\ufffd") == whole.text.split(stop)[0].rstrip("\ufffd")


def test_end_of_text_is_no_text() -> None:
    model, tokenizer = tiny.build_model("gpt2"), tiny.build_tokenizer()
    with torch.no_grad():
        model.transformer.ln_f.weight.zero_()
        model.transformer.ln_f.bias.fill_(1.0)
        model.lm_head.weight.zero_()
        model.lm_head.weight[0].fill_(10.0)  # only <|end|> is ever likely
    (answer,) = answers(Sampler(model, tokenizer), [Request("men", seed=1)])
    assert (answer.text, answer.finish, answer.completion_tokens) == ("", "stop", 0)


def test_a_prompt_beyond_the_context_is_an_error_of_that_request_only() -> None:
    sampler = Sampler(tiny.build_model("gpt2"), tiny.build_tokenizer(), 4)
    long = Request("men love " * 60, seed=1, max_tokens=4)
    found = answers(sampler, [*requests(2), long])
    assert [c.finish == "error" for c in found] == [False, False, True]
    assert "context of 96 tokens" in found[2].error


def test_closing_stops_the_work() -> None:
    sampler = Sampler(tiny.build_model("gpt2"), tiny.build_tokenizer(), 2)
    asked = requests(10)
    tokenizer = tiny.build_tokenizer()
    stream = sampler.complete(asked, [tokenizer(r.prompt)["input_ids"] for r in asked])
    assert len(next(stream)) >= 1
    stream.close()
    with pytest.raises(StopIteration):
        next(stream)


def test_a_folder_as_a_model(tmp_path: Path) -> None:
    folder = tiny.save_model(tmp_path / "model", "llama")
    model = open_model(f"hf:{folder}", batch_size=4)
    info = model.info
    assert info.name == f"hf:{folder}" and info.revision.startswith("sha256:")
    (batch,) = model.complete([Request("men love", seed=1, max_tokens=2, stop=())])
    assert batch[0][1].prompt_tokens == len(tiny.build_tokenizer()("men love")["input_ids"])
    model.close()
    weights = folder / "model.safetensors"
    weights.write_bytes(b"x" * weights.stat().st_size)
    assert open_model(f"hf:{folder}").info.revision != info.revision
    with pytest.raises(ModelError, match="cannot be loaded as a causal language model"):
        list(open_model(f"hf:{folder}").complete([Request("men", seed=1)]))


def test_chat_needs_a_template(tmp_path: Path) -> None:
    folder = tiny.save_model(tmp_path / "model")
    chat = Request((("user", "men love"),), seed=1, max_tokens=2)
    with pytest.raises(ModelError, match="no chat template"):
        list(open_model(f"hf:{folder}").complete([chat]))
    tokenizer = tiny.build_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }} #{% endfor %}"
    tokenizer.save_pretrained(folder)
    plain = Request("men love #", seed=1, max_tokens=2)
    (chatted,) = open_model(f"hf:{folder}").complete([chat])
    (plainly,) = open_model(f"hf:{folder}").complete([plain])
    assert chatted[0][1].text == plainly[0][1].text


CHATML = (
    "{% set ns = namespace(system='') %}{% for m in messages if m.role == 'system' %}"
    "{% set ns.system = m.content | trim %}{% endfor %}{{ bos_token or '' }}{{ ns.system }}"
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GREEDY = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "doublings": "{% set ns = namespace(a='ab') %}{% for c in range(33) %}"
    "{% set ns.a = ns.a ~ ns.a %}{% endfor %}{{ ns.a }}",
    "a product": "{{ 'a' * 3000000000 }}",
    "a long prompt": "{{ 'a' * 5000000 }}",
    "an error of its own": "{{ raise_exception('no\nsystem messages') }}",
    "nothing": "",
}


def test_a_chat_template_is_rendered_elsewhere_as_here(tmp_path: Path) -> None:
    tokenizer = tiny.build_tokenizer()
    tokenizer.chat_template = CHATML
    messages = [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "é\n<"}]
    here = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert here.endswith("assistant\n")
    request = Request((("system", " Be brief. "), ("user", "é\n<")), seed=1)
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert tokenise_prompt(request, tokenizer, "m") == ids


@pytest.mark.parametrize("name", sweep_params(3, [*reversed(GREEDY)]))
def test_a_chat_template_takes_no_more_than_it_may(
    name: str, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    tokenizer = tiny.build_tokenizer()
    tokenizer.chat_template = GREEDY[name] or "{# #}"
    request = Request((("user", "men love"),), seed=1)
    with texts.raises(ModelError) as e:
        tokenise_prompt(request, tokenizer, "m")
    assert "\n" not in str(e.value)


def test_what_is_no_language_model(tmp_path: Path, texts: Texts) -> None:
    from transformers import BertConfig, BertForMaskedLM

    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 99}
    BertForMaskedLM(BertConfig(**small, intermediate_size=16)).save_pretrained(tmp_path)
    tiny.build_tokenizer().save_pretrained(tmp_path)
    with texts.raises(ModelError):
        list(open_model(f"hf:{tmp_path}").complete([Request("men", seed=1)]))
    with texts.raises(ModelError):
        open_model("hf:no/such-model")
    with pytest.raises(ModelError, match="there is no file"):
        open_model(f"hf:{tmp_path}:none.gguf")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\0" * 64)
    with pytest.raises(ModelError, match="GGUF"):
        list(open_model(f"hf:{tmp_path}:broken.gguf").complete([Request("men", seed=1)]))


def test_a_prompt_does_not_end_in_the_token_that_ends_a_text() -> None:
    from tokenizers.processors import TemplateProcessing

    tokenizer = tiny.build_tokenizer()
    plain = tokenizer("men love")["input_ids"]
    ends = [("<|end|>", tokenizer.eos_token_id)]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing("$A <|end|>", None, ends)
    assert tokenizer("men love")["input_ids"] == [*plain, tokenizer.eos_token_id]
    assert tokenise_prompt(Request("men love", seed=0), tokenizer, "m") == plain


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, texts: Texts) -> None:
    model = tiny.build_model()
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    model.save_pretrained(tmp_path)
    tiny.build_tokenizer().save_pretrained(tmp_path)
    for open_it in (open_model, open_scorer):  # by the one that loads what all others read
        with texts.raises(ModelError):
            opened: Any = open_it(f"hf:{tmp_path}")
            list(opened.complete([Request("men", seed=1)]))
    with texts.raises(ModelError):
        open_encoder(f"hf:{tmp_path}", cache=False).embed([Span("men", 0, 3)], "mean")


def test_what_reads_no_text_is_refused(tmp_path: Path) -> None:
    """A tokenizer of another model, and none at all."""
    tiny.build_model(vocab_size=20).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="has no tokenizer"):
        open_scorer(f"hf:{tmp_path}")
    tiny.build_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="index out of range"):
        open_scorer(f"hf:{tmp_path}")


def test_weights_that_are_all_zero_are_refused(tmp_path: Path, texts: Texts) -> None:
    model = tiny.build_model()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    model.save_pretrained(tmp_path)
    tiny.build_tokenizer().save_pretrained(tmp_path)
    with texts.raises(ModelError):
        list(open_model(f"hf:{tmp_path}").complete([Request("men", seed=1)]))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"n_embd": 64}, r"by its config.json, .*h\.0\..* has another size than in the file"),
        ({"n_layer": 0}, "config.json says num_hidden_layers 0"),
        ({"n_inner": 10**7}, "config.json says n_inner 10,000,000, more than the files of its"),
        ({"n_head": 5}, r"divisible by num_heads"),  # what the system said, to its end
    ],
)
def test_a_configuration_of_other_weights_is_refused(
    said: dict[str, Any], told: str, tmp_path: Path
) -> None:
    tiny.save_model(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | said))
    with pytest.raises(ModelError, match=told):
        list(open_model(f"hf:{tmp_path}").complete([Request("men", seed=1)]))


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (3, r"lacks weights of its model: model\.layers\.2"),
        (10**9, "block_count 1,000,000,000, and"),
    ],
)
def test_a_gguf_file_of_other_layers_is_refused(layers: int, told: str, tmp_path: Path) -> None:
    """What it lacks would be random numbers, a billion layers would have no end."""
    pytest.importorskip("gguf")
    tiny.save_gguf(file := tmp_path / "m.gguf")
    before, after = (b"llama.block_count" + struct.pack("<II", 4, count) for count in (2, layers))
    data = file.read_bytes()
    assert before in data
    file.write_bytes(data.replace(before, after))
    with pytest.raises(ModelError, match=told):
        list(open_model(f"hf:{tmp_path}:m.gguf").complete([Request("men", seed=1)]))


def test_layers_that_are_not_used_are_said(tmp_path: Path, texts: Texts) -> None:
    tiny.save_model(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"n_layer": 1}))
    notes: list[str] = []
    list(open_model(f"hf:{tmp_path}", notify=notes.append).complete([Request("men", seed=1)]))
    (note,) = notes
    texts.check_lines(note, "used: transformer.h.1")


def test_a_size_that_no_model_has_is_refused(tmp_path: Path) -> None:
    tiny.save_model(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"n_layer": 10**9}))
    with pytest.raises(ModelError, match=r"config.json says num_hidden_layers 1,000,000,000"):
        list(open_model(f"hf:{tmp_path}").complete([Request("men", seed=1)]))
