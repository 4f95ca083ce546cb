"""Opening a model that scores texts, by its spec."""

from collections.abc import Callable
from typing import Any

from kgbias.errors import MissingExtra, ModelError, UsageError
from kgbias.models.embed import resolve
from kgbias.models.local import DTYPES
from kgbias.models.score.base import CausalScorer, TextScorer
from kgbias.models.weights import load_weights

_KINDS = {
    "MaskedLM": "masked",
    "ForPreTraining": "masked",
    "CausalLM": "causal",
    "LMHeadModel": "causal",
}


def open_scorer(
    spec: str,
    *,
    begin: str = "auto",
    dtype: str = "float32",
    kind: str = "auto",
    tier: str = "auto",
    base_url: str | None = None,
    notify: Callable[[str], None] | None = None,
) -> TextScorer:
    """The model of a spec as one that scores texts: smollm2, reference, reference-masked,
    hf:ID-or-PATH, or openai:ID for a completions server that returns prompt log-probabilities.

    `begin` is what stands before a text (see `Convention`); `kind` is what the model was trained
    as where it is auto. Of an encoder-decoder the decoder is read alone, as a causal model: so does
    the published SoFa with BART. `notify` is told what the user should know. Raises UsageError or
    ModelError in one line for what is no language model.
    """
    tell = notify or (lambda _: None)
    if dtype not in DTYPES:
        raise UsageError(f"no dtype {dtype!r}; there is {', '.join(DTYPES)}")
    if spec.startswith("openai:") and spec != "openai:":
        from kgbias.models.score.server import ServerScorer

        return ServerScorer(spec.removeprefix("openai:"), base_url)
    info, source = resolve(spec, tell)
    try:
        import torch
        from transformers import (
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForMaskedLM,
            AutoModelForSeq2SeqLM,
            AutoTokenizer,
        )
        from transformers.utils import logging
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "torch", extra="local") from error
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    classes: dict[str, Any] = {
        "masked": AutoModelForMaskedLM,
        "causal": AutoModelForCausalLM,
        "decoder": AutoModelForSeq2SeqLM,
    }
    if kind not in ("auto", *classes):
        raise UsageError(f"no kind {kind!r}; there is auto, {', '.join(classes)}")
    name, revision = source()
    try:
        config = AutoConfig.from_pretrained(name, revision=revision)
        found = _trained_as(config) if kind == "auto" else kind
        if found not in classes:
            raise UsageError(
                f"{info.name} is not a language model that scores text: it was trained as "
                f"{(config.architectures or ['nothing it names'])[0]}"
            )
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
        model = load_weights(
            classes[found],
            name,
            f"{found} language model",
            revision=revision,
            dtype=getattr(torch, dtype),
        )
        if found == "decoder":
            model = _decoder_of(model, AutoModelForCausalLM)
    except (UsageError, ModelError):
        raise
    except Exception as error:  # transformers raises whatever a broken file makes its parts raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{info.name} cannot be loaded as a language model: {first}") from error
    if not tokenizer.is_fast:
        raise ModelError(f"{info.name} has no fast tokenizer")
    model = model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    if found == "masked":
        from kgbias.models.score.masked import MaskedScorer

        return MaskedScorer(info, tokenizer, model)
    scorer = CausalScorer(info, tokenizer, model, begin, tier, kind=found)
    if begin == "auto" and scorer.convention.begin != "bos":
        tell(
            f"{info.name} has no BOS token: texts begin with "
            f"{'its end of text' if scorer.convention.begin == 'eos' else 'nothing'} "
            "(--bos chooses)"
        )
    return scorer


def _trained_as(config: Any) -> str:
    if getattr(config, "is_encoder_decoder", False):
        return "decoder"
    architecture = (getattr(config, "architectures", None) or [""])[0]
    return next((kind for name, kind in _KINDS.items() if name in architecture), "")


def _decoder_of(model: Any, causal: Any) -> Any:
    """The decoder of an encoder-decoder as a causal model, with the weights that it has there.

    Loading the checkpoint as a causal model would leave out the embeddings that both halves share.
    """
    alone = causal.from_config(model.config, dtype=model.dtype)
    alone.set_decoder(model.get_decoder())
    alone.set_output_embeddings(model.get_output_embeddings())
    return alone
