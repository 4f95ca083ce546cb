"""The grammar of model specs, and what a model says that it was trained as."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from kgbias.models import (
    Spec,
    parse,
)
from kgbias.models.load import trained_as


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("smollm2", Spec("smollm2")),
        ("reference-masked", Spec("reference-masked")),
        ("hf:org/model", Spec("hf", "org/model")),
        ("hf:org/model@v1", Spec("hf", "org/model", revision="v1")),
        ("hf:/models:a.gguf", Spec("hf", "/models", "a.gguf")),
        ("hf:C:/models:a.gguf", Spec("hf", "C:/models", "a.gguf")),
        ("openai:qwen/qwen3:4b", Spec("openai", "qwen/qwen3:4b")),
    ],
)
def test_the_grammar(text: str, spec: Spec) -> None:
    assert parse(text) == spec and str(spec) == text


def test_a_folder_may_hold_any_character(tmp_path: Path) -> None:
    (folder := tmp_path / "a@b:c").mkdir()
    assert parse(f"hf:{folder}") == Spec("hf", str(folder))


CONFIGURATIONS = [
    ("GPT2LMHeadModel", False, "causal"),
    ("LlamaForCausalLM", False, "causal"),
    ("BertForMaskedLM", False, "masked"),
    ("BertForPreTraining", False, "masked"),
    ("BartForConditionalGeneration", True, "seq2seq"),
    ("BartForCausalLM", False, "causal"),
    ("BartForSequenceClassification", True, "classifier"),
    ("BertForSequenceClassification", False, "classifier"),
    ("BertModel", False, ""),
    (None, False, ""),
]


@pytest.mark.parametrize(("architecture", "both", "trained"), CONFIGURATIONS)
def test_what_a_model_was_trained_as(architecture: str | None, both: bool, trained: str) -> None:
    config = SimpleNamespace(
        architectures=[architecture] if architecture else None, is_encoder_decoder=both
    )
    assert trained_as(config) == trained
