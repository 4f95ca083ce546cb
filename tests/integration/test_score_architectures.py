"""Architectures that are no plain causal model: what looks ahead, and encoder-decoders."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.texts import Texts

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgbias.errors import DataError, MissingExtra, ModelError, UsageError  # noqa: E402
from kgbias.models.score.load import open_scorer  # noqa: E402
from kgbias.probe.names import probe_apx  # noqa: E402
from kgbias.probe.sets import Descriptor  # noqa: E402
from kgbias.stats.estimate import Estimate  # noqa: E402
from tests import tiny  # noqa: E402
from tests.integration.test_probe_engine import saved_encoder_decoder  # noqa: E402

pytestmark = pytest.mark.integration

GROUPS, STATEMENTS = ["men", "women are"], ["love rain", "are kind .", "hate"]


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("t5")
    sizes = {"d_model": 16, "d_ff": 32, "num_layers": 2, "num_heads": 2, "d_kv": 8}
    saved_encoder_decoder(folder, "t5", sizes)
    return folder


@cache
def plain(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    return model, AutoTokenizer.from_pretrained(folder)


def by_hand(folder: Path, source: str, text: str) -> list[float]:
    """log p of each token of a text, one at a time: the encoder reads the source, the decoder its
    start token and what came before."""
    model, tokenizer = plain(folder)
    read = torch.tensor([tokenizer(source)["input_ids"] or [0]])
    ids, found = [0], []
    for token in tokenizer(text)["input_ids"]:
        with torch.no_grad():
            logits = model(input_ids=read, decoder_input_ids=torch.tensor([ids])).logits
        found.append(float(logits[0, -1].double().log_softmax(-1)[token]))
        ids.append(token)
    return found


def test_a_model_that_looks_ahead_is_refused(tmp_path: Path, texts: Texts) -> None:
    """XLNet attends to both sides; loaded as a causal model it would see what it must predict."""
    from transformers import XLNetConfig, XLNetLMHeadModel

    torch.manual_seed(0)
    size = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}
    config = XLNetConfig(vocab_size=len(tiny.build_tokenizer()), **size)
    XLNetLMHeadModel(config).save_pretrained(tmp_path)
    tiny.build_tokenizer().save_pretrained(tmp_path)
    with texts.raises(ModelError) as caught:
        open_scorer(f"hf:{tmp_path}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("architecture", ["llama", "mamba"])
def test_what_reads_from_left_to_right_is_not(architecture: str) -> None:
    from kgbias.models.score.base import looks_ahead

    model = tiny.build_model(architecture)
    assert not looks_ahead(lambda ids: model(input_ids=ids).logits, 100, "cpu", "float32")
    assert looks_ahead(lambda ids: model(input_ids=ids.flip(1)).logits, 100, "cpu", "float32")


def test_the_encoder_reads_the_group_and_the_decoder_is_scored(t5: Path) -> None:
    scorer = open_scorer(f"hf:{t5}")
    settings = {"kind": "seq2seq", "begin": "start", "dtype": "float32", "instruction": "{group}"}
    assert dict(scorer.settings) == settings
    grid = scorer.grid(GROUPS, STATEMENTS)
    for g, group in enumerate(GROUPS):
        alone = by_hand(t5, "", group)
        assert grid.group.log_likelihoods[g] == pytest.approx(sum(alone), rel=1e-6)
        for s, statement in enumerate(STATEMENTS):
            own = by_hand(t5, group, statement)
            assert grid.statement.log_likelihoods[g, s] == pytest.approx(sum(own), rel=1e-6)
            assert grid.statement.tokens[g, s] == len(own)
            whole = sum(alone) + sum(own)
            assert grid.probes.log_likelihoods[g, s] == pytest.approx(whole, rel=1e-6)
            assert grid.probes.tokens[g, s] == len(alone) + len(own)
    assert grid.surprisals is not None
    bits = [b for _, b in grid.surprisals(1, 0)]
    hand = np.array([*by_hand(t5, "", GROUPS[1]), *by_hand(t5, GROUPS[1], STATEMENTS[0])])
    assert bits == pytest.approx(-hand / np.log(2), rel=1e-6)


def test_an_instruction_without_a_group(t5: Path) -> None:
    """The encoder reads it, the decoder the whole probe."""
    scorer = open_scorer(f"hf:{t5}", instruction="A kind Q .")
    grid = scorer.grid(GROUPS, STATEMENTS)
    own = by_hand(t5, "A kind Q .", "women are love rain")
    assert grid.probes.log_likelihoods[1, 0] == pytest.approx(sum(own), rel=1e-6)
    tail = len(tiny.build_tokenizer()(" love rain")["input_ids"])
    assert grid.statement.tokens[1, 0] == tail
    assert grid.statement.log_likelihoods[1, 0] == pytest.approx(sum(own[-tail:]), rel=1e-6)
    score = scorer.score(["men hate"]).log_likelihoods[0]
    assert score == pytest.approx(sum(by_hand(t5, "A kind Q .", "men hate")), rel=1e-6)
    assert [bits for _, bits in scorer.surprisals("men hate")] == pytest.approx(
        -np.array(by_hand(t5, "A kind Q .", "men hate")) / np.log(2), rel=1e-6
    )
    with pytest.raises(DataError, match="empty"):
        scorer.score([" "])


def test_apx_scores_what_the_decoder_says(t5: Path) -> None:
    words = [Descriptor(w, "", "", (f"are {w}.",)) for w in ("kind", "tall")]
    names = [("men", "A"), ("women", "B")]
    means = probe_apx(open_scorer(f"hf:{t5}"), names, words, templates=["Q {name}"])
    perplexity = np.array(
        [[np.exp(-np.mean(by_hand(t5, f"Q {n}", w.endings[0]))) for w in words] for n, _ in names]
    )
    ratio = perplexity.mean(axis=1) / perplexity.mean()
    assert means.table.values[0] == pytest.approx(perplexity / ratio[:, None], rel=1e-6)


def test_what_an_encoder_decoder_is_read_as(tmp_path: Path, t5: Path) -> None:
    """A decoder that can stand alone does, unless its encoder is to read something."""
    sizes = {"layers": 1, "attention_heads": 2, "ffn_dim": 32}
    both = {f"{part}_{name}": n for part in ("encoder", "decoder") for name, n in sizes.items()}
    saved_encoder_decoder(tmp_path, "bart", {**both, "d_model": 16, "max_position_embeddings": 64})
    bart = f"hf:{tmp_path}"
    assert open_scorer(bart).convention.kind == "decoder"
    assert open_scorer(bart, instruction="{group}").convention.kind == "seq2seq"
    with pytest.raises(UsageError, match=r"begin does not apply to .*, an encoder-decoder"):
        open_scorer(f"hf:{t5}", begin="eos")
    with pytest.raises(ModelError, match="cannot be loaded as the decoder of an encoder-decoder"):
        open_scorer(f"hf:{t5}", kind="decoder")
    with pytest.raises(UsageError, match=r"instruction does not apply to .* has no encoder"):
        open_scorer(bart, kind="decoder", instruction="x")


# fewer bits


def test_bits_that_this_machine_does_not_have_are_one_line(
    monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    with texts.raises(UsageError):
        open_scorer("smollm2", dtype="8bit", device="cpu")
    monkeypatch.setattr("kgbias.models.load.find_device", lambda _: "cuda")
    monkeypatch.setattr("kgbias.models.load.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"kgbias\[quantised\]"):
        open_scorer("smollm2", dtype="4bit")


def test_what_transformers_is_told_of_bits() -> None:
    from kgbias.models.load import quantisation_config

    told = quantisation_config("8bit", "cuda:1")
    assert told["device_map"] == {"": "cuda:1"} and told["dtype"] is torch.bfloat16
    assert told["quantization_config"].load_in_8bit
    assert quantisation_config("4bit", "cuda")["quantization_config"].load_in_4bit


def test_a_coarser_type_is_held_against_float32(tmp_path: Path) -> None:
    """A random model: bfloat16 moves its perplexities a little, float16 less."""
    from kgbias.probe.precision import MIN_TAU, check_precision

    folder = f"hf:{tiny.save_model(tmp_path)}"
    rough, fine = check_precision(folder, "bfloat16"), check_precision(folder, "float16")
    assert 0 < fine.median < rough.median < 0.1 and rough.largest >= rough.median
    assert fine.tau.value > rough.tau.value and fine.tau.n == 10
    assert fine.keeps_order == (fine.tau.low >= MIN_TAU)
    told = f"tau {rough.tau.value:.3f} ({rough.tau.low:.3f} to {rough.tau.high:.3f}), "
    assert told + ("kept" if rough.keeps_order else "not kept") in str(rough)
    assert rough.as_dict()["tau_low"] == rough.tau.low <= rough.as_dict()["tau"]
    close = replace(rough, tau=Estimate(0.992, 0.986, 0.997, 10))
    assert not close.keeps_order  # other statements might say something else
    assert replace(close, tau=Estimate(0.995, 0.991, 0.999, 10)).keeps_order
    notes: list[str] = []
    open_scorer(folder, dtype="bfloat16", notify=notes.append)
    assert any("kgbias.probe.precision.check_precision" in note for note in notes)
    notes.clear()
    open_scorer(folder, notify=notes.append)
    assert not any("precision" in note for note in notes)
    assert rough.as_dict()["error"] == {"median": rough.median, "largest": rough.largest}
    with pytest.raises(UsageError, match="name another"):
        check_precision(folder, "float32")


def test_a_model_that_also_sees_is_scored_by_what_it_predicts_of_text(tmp_path: Path) -> None:
    from transformers import BlipConfig, Gemma3Config, Gemma3ForConditionalGeneration

    from kgbias.models.load import trained_kind

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    sees = {"num_attention_heads": 2, "image_size": 28, "patch_size": 14}
    config = Gemma3Config(
        text_config={"vocab_size": len(tiny.build_tokenizer()) + 8, **sizes, **heads},
        vision_config=sizes | sees,
        mm_tokens_per_image=4,
    )
    model = Gemma3ForConditionalGeneration(config).eval()
    model.save_pretrained(tmp_path)
    (tokenizer := tiny.build_tokenizer()).save_pretrained(tmp_path)
    scorer = open_scorer(f"hf:{tmp_path}", begin="eos")
    text = "men love rain"
    ids = [tokenizer.eos_token_id, *tokenizer(text)["input_ids"]]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
    own = sum(float(logits[n, token]) for n, token in enumerate(ids[1:]))
    assert scorer.score([text]).log_likelihoods[0] == pytest.approx(own, rel=1e-5)
    assert trained_kind(BlipConfig(architectures=["BlipForConditionalGeneration"])) == ""


def test_a_word_is_masked_to_its_end_if_asked_for(tmp_path: Path) -> None:
    """Kauf and Ivanova (2023), PLL-word-l2r: against a plain loop."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tiny.save_bert(tmp_path, ["the", "sou", "##ven", "##ir", "is", "old", "."])
    model = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    text = "the souvenir is old ."
    ids = tokenizer(text)["input_ids"]
    pieces = tokenizer.convert_ids_to_tokens(ids)

    def summed(words: bool) -> float:
        total = 0.0
        for place in range(1, len(ids) - 1):
            hidden = list(ids)
            hidden[place] = tokenizer.mask_token_id
            later = place + 1
            while words and pieces[later].startswith("##"):
                hidden[later] = tokenizer.mask_token_id
                later += 1
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([hidden])).logits[0, place].double()
            total += float(logits.log_softmax(-1)[ids[place]])
        return total

    one = open_scorer(f"hf:{tmp_path}")
    whole = open_scorer(f"hf:{tmp_path}", words=True)
    assert one.score([text]).log_likelihoods[0] == pytest.approx(summed(False), rel=1e-5)
    assert whole.score([text]).log_likelihoods[0] == pytest.approx(summed(True), rel=1e-5)
    assert summed(False) != pytest.approx(summed(True), rel=1e-3)
    assert dict(whole.settings)["masked"] == "word" and "masked" not in dict(one.settings)
    with pytest.raises(UsageError, match="words"):
        open_scorer("reference", words=True)
