"""Tiny random language models, made on the spot: any architecture, with no download."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = ["men", "women", "love", "hate", "food", "rain", "are", "kind", "tall", ".", "#", "Q", "A"]


def build_tokenizer() -> Any:
    """A byte-level tokenizer that can say anything, with <|end|> as its end of text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: n for n, token in enumerate(["<|end|>", *alphabet])}
    merges: list[tuple[str, str]] = []
    for word in WORDS:
        for start in ("", "Ġ"):
            piece = start + word[0] if start else word[0]
            if start:
                merges.append((start, word[0]))
                vocabulary.setdefault(piece, len(vocabulary))
            for letter in word[1:]:
                merges.append((piece, letter))
                piece += letter
                vocabulary.setdefault(piece, len(vocabulary))
    inner = Tokenizer(models.BPE(vocabulary, list(dict.fromkeys(merges))))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>")


def build_model(architecture: str = "gpt2", seed: int = 0, **changes: Any) -> Any:
    """A random model of that architecture in evaluation mode; weights large enough to have
    opinions."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    size = {
        "vocab_size": len(build_tokenizer()),
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
    network = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return network.eval()


def save_model(folder: Path, architecture: str = "gpt2") -> Path:
    """The folder of a saved model and tokenizer."""
    build_model(architecture).save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
    return folder


def save_gguf(file: Path, architecture: str = "llama") -> Path:
    """A GGUF file of a random model of Llama's kind, with the tokenizer inside."""
    import json

    import gguf

    source, tokens = (
        build_model(architecture),
        json.loads(build_tokenizer().backend_tokenizer.to_str()),
    )
    config, weights = source.config, source.state_dict()
    writer = gguf.GGUFWriter(str(file), architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    vocabulary = tokens["model"]["vocab"]
    writer.add_token_list(sorted(vocabulary, key=vocabulary.__getitem__))
    writer.add_token_merges([" ".join(pair) for pair in tokens["model"]["merges"]])
    writer.add_eos_token_id(0)
    writer.add_bos_token_id(0)
    names = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    layers = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    for n in range(config.num_hidden_layers):
        names |= {f"model.layers.{n}.{a}.weight": f"blk.{n}.{b}.weight" for a, b in layers.items()}
    for name, gguf_name in names.items():
        writer.add_tensor(gguf_name, weights[name].numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def save_bert(folder: Path, words: Sequence[str]) -> Path:
    """The folder of a saved masked model with opinions about `words`, each a token, or part of a
    word where it begins with ##."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    BertTokenizerFast(vocab={token: n for n, token in enumerate(tokens)}).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
    )
    torch.manual_seed(0)
    network = BertForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(8)
    network.save_pretrained(folder)
    return folder


def save_classifier(folder: Path, labels: Sequence[str], problem: str | None = None) -> Path:
    """A tiny random classifier in `folder`."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    tokens = build_tokenizer()
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=66,
        id2label=dict(enumerate(labels)),
        label2id={label: n for n, label in enumerate(labels)},
        problem_type=problem,
        initializer_range=0.5,
    )
    network = BertForSequenceClassification(config)
    network.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder
