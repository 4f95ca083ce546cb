"""The reference models' tokenizer: a word of the world is one token, anything else is bytes.

A unigram model with byte fallback. Every name of a group or person is a token of its own, with and
without a space before it, so that no part of a name can leak from one group to another.
"""

from collections.abc import Sequence
from typing import Any

BOS, EOS, PAD, MASK = "<s>", "</s>", "<pad>", "<mask>"
_SPACE = "▁"


def build_tokenizer(words: Sequence[str], *, masked: bool) -> Any:
    """A PreTrainedTokenizerFast over these words, single characters and bytes. The causal one puts
    BOS before a text; the masked one puts BOS and EOS around it, as BERT does."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = [PAD, BOS, EOS, MASK, "<unk>"]
    characters = [chr(code) for code in range(33, 127)]
    vocabulary = [(token, 0.0) for token in special]
    vocabulary += [(f"<0x{byte:02X}>", -30.0) for byte in range(256)]
    vocabulary += [(token, -10.0) for token in (_SPACE, "\n", *characters)]
    vocabulary += [(_SPACE + character, -10.5) for character in characters]
    # A whole word costs less than any way to spell it.
    vocabulary += [(start + word, -1.0) for word in words for start in ("", _SPACE)]
    inner = Tokenizer(models.Unigram(vocabulary, special.index("<unk>"), byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="never", split=False)
    inner.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    ids = [(BOS, special.index(BOS)), (EOS, special.index(EOS))]
    single = f"{BOS} $A {EOS}" if masked else f"{BOS} $A"
    inner.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=inner,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
        **({"mask_token": MASK, "cls_token": BOS, "sep_token": EOS} if masked else {}),
    )
