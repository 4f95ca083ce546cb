"""Tiny random language models, made on the spot: any architecture, with no download."""

from pathlib import Path
from typing import Any

WORDS = ["men", "women", "love", "hate", "food", "rain", "are", "kind", "tall", ".", "#", "Q", "A"]


def tokenizer() -> Any:
    """A byte-level tokenizer that can say anything, with <|end|> as its end of text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: n for n, token in enumerate(["<|end|>", *alphabet])}
    merges: list[tuple[str, str]] = []
    for word in WORDS:
        for start in ("", "Ġ"):
            left = start + word[0] if start else word[0]
            if start:
                merges.append((start, word[0]))
                vocabulary.setdefault(left, len(vocabulary))
            for letter in word[1:]:
                merges.append((left, letter))
                left += letter
                vocabulary.setdefault(left, len(vocabulary))
    inner = Tokenizer(models.BPE(vocabulary, list(dict.fromkeys(merges))))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>")


def model(architecture: str = "gpt2", seed: int = 0, **changes: Any) -> Any:
    """A random model of that architecture in evaluation mode; weights large enough to have
    opinions."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    size = {
        "vocab_size": len(tokenizer()),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 96,
        "eos_token_id": 0,
        "bos_token_id": 0,
        "pad_token_id": 0,
    }
    if architecture == "gpt2":
        size["n_positions"] = 96
    if architecture == "mamba":
        size = {k: size[k] for k in ("vocab_size", "hidden_size", "num_hidden_layers")}
        size |= {"eos_token_id": 0, "bos_token_id": 0, "pad_token_id": 0}
    config = AutoConfig.for_model(architecture, **(size | changes))
    torch.manual_seed(seed)
    made = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return made.eval()


def saved(folder: Path, architecture: str = "gpt2") -> Path:
    """The folder of a saved model and tokenizer."""
    model(architecture).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
