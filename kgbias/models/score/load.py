"""Opening a model that scores texts, by its spec."""

from inspect import signature
from typing import Any, cast
from weakref import WeakKeyDictionary

from kgbias.errors import ModelError, UsageError, no_such
from kgbias.io.caller_state import restore_state
from kgbias.io.wording import how
from kgbias.models.base import Notify
from kgbias.models.load import (
    ModelRole,
    describe_trained_kind,
    has_causal_decoder,
    load,
    read_trained_kind,
)
from kgbias.models.score.base import CausalScorer, TextScorer
from kgbias.models.spec import KINDS, Spec, list_forms, parse_spec, resolve
from kgbias.parameters import NotApplicable

_SCORED_KINDS = ("causal", "masked", "decoder", "seq2seq")
# Of the causal models that were opened before: `load` gives the same one again only as long as
# nobody has changed it.
_checked_tiers: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


@restore_state()
def open_scorer(
    spec: str,
    *,
    begin: str = "auto",
    dtype: str = "float32",
    kind: str = "auto",
    tier: str = "auto",
    device: str = "auto",
    instruction: str | None = None,
    words: bool | None = None,
    base_url: str | None = None,
    revision: str | None = None,
    notify: Notify | None = None,
) -> TextScorer:
    """The model of a spec, to score texts.

    Args:
        spec: a model spec. A server (openai:ID) must return the log-probabilities of a prompt.
        begin: the token before a text: "auto", "bos", "eos" or "none" (see
            `kgbias.models.score.base.Convention`).
        dtype: "float32", "bfloat16", "float16", "8bit" or "4bit" (see `kgbias.models.load.load`).
        kind: "causal", "masked", "decoder" or "seq2seq"; "auto" is what the model was trained as.
            For an encoder-decoder whose decoder is a model in itself (BART), the decoder is read
            alone, as in the published SoFa; for others (T5, Flan), and for all with an
            `instruction`, the decoder is scored after what the encoder read.
        tier: how the scores are computed (see `kgbias.models.score.engine`); changes no score.
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device.
        instruction: what the encoder of an encoder-decoder reads; "{group}" in it stands for the
            group of a probe, and the decoder then begins with the statement (None: "{group}").
        words: under a masked model, mask the rest of a word with each of its pieces (Kauf and
            Ivanova 2023); None: mask one piece at a time (Salazar et al. 2020).
        base_url: a server's address; default OPENAI_BASE_URL, else OpenAI's own.
        revision: require this revision (see `kgbias.models.spec.resolve`).
        notify: called with one line for each thing that takes long or that the user should know.

    Raises:
        UsageError: an unknown spec or option, or a model that does not predict words.
        ModelError: the model cannot be loaded.
    """
    parsed = parse_spec(spec)
    if not KINDS[parsed.kind].scorer:
        raise UsageError(
            f"{parsed} gives no log-probabilities; {list_forms(lambda other: other.scores)} can"
        )
    opener = KINDS.import_part(parsed.kind, KINDS[parsed.kind].scorer)
    options_given = {
        "begin": (begin, "auto"),
        "dtype": (dtype, "float32"),
        "kind": (kind, "auto"),
        "tier": (tier, "auto"),
        "device": (device, "auto"),
        "instruction": (instruction, None),
        "words": (words, None),
        "base_url": (base_url, None),
    }
    accepted_parameters = signature(opener).parameters
    for name, (value, default) in options_given.items():
        if value != default and name not in accepted_parameters:
            raise NotApplicable(name, spec)
    options = {
        name: value for name, (value, _) in options_given.items() if name in accepted_parameters
    }
    scorer: TextScorer = opener(
        parsed, revision=revision, notify=notify or (lambda _: None), **options
    )
    return scorer


def open_local_scorer(
    spec: Spec,
    *,
    revision: str | None,
    notify: Notify,
    begin: str,
    dtype: str,
    kind: str,
    tier: str,
    device: str,
    instruction: str | None = None,
    words: bool | None = None,
) -> TextScorer:
    """The scorer of a model on this machine; see `open_scorer`."""
    if kind not in ("auto", *_SCORED_KINDS):
        raise UsageError(no_such("kind", kind, ("auto", *_SCORED_KINDS)))
    files = resolve(spec, revision)
    if kind == "auto":
        trained_role = KINDS[spec.kind].trained_as or read_trained_kind(files, notify)
        if trained_role not in ("causal", "masked", "seq2seq"):
            raise UsageError(
                f"{spec} is {describe_trained_kind(trained_role)} and cannot score text; language "
                f"models can: "
                f"{list_forms(lambda other: other.scores)}"
            )
        is_decoder_alone = (
            trained_role == "seq2seq" and instruction is None and has_causal_decoder(files, notify)
        )
        kind = "decoder" if is_decoder_alone else trained_role
    loaded_model = load(files, cast(ModelRole, kind), dtype=dtype, device=device, notify=notify)
    if dtype != "float32":
        shows = how("kgbias.probe.precision.check_precision", "kgbias probe precision")
        notify(f"{dtype} may change the order of groups: {shows} shows whether it does for {spec}")
    info, tokenizer, model = loaded_model.info, loaded_model.tokenizer, loaded_model.model
    if not tokenizer.is_fast:
        raise ModelError(f"{info.name} has no fast tokenizer")
    if instruction is not None and kind != "seq2seq":
        raise NotApplicable("instruction", f"{info.name}, which has no encoder")
    if words and kind != "masked":
        raise NotApplicable("words", f"{info.name}, which is no masked language model")
    if kind == "seq2seq":
        from kgbias.models.score.conditioned import GROUP_PLACEHOLDER, EncoderDecoderScorer

        for name, value in (("begin", begin), ("tier", tier)):
            if value != "auto":
                raise NotApplicable(name, f"{info.name}, an encoder-decoder")
        encoder_instruction = GROUP_PLACEHOLDER if instruction is None else instruction
        conditioned_scorer = EncoderDecoderScorer(
            info, tokenizer, model, encoder_instruction, dtype
        )
        conditioned_scorer.parameters = int(model.num_parameters())
        return conditioned_scorer
    if kind == "masked":
        from kgbias.models.score.masked import MaskedScorer

        for name, value in (("begin", begin), ("tier", tier)):
            if value != "auto":
                raise NotApplicable(name, f"{info.name}, a masked language model")
        masked_scorer = MaskedScorer(info, tokenizer, model, dtype, words=bool(words))
        masked_scorer.parameters = int(model.num_parameters())
        return masked_scorer
    checked_tier = _checked_tiers.get(model) if tier == "auto" else None
    scorer = CausalScorer(
        info,
        tokenizer,
        model,
        begin,
        checked_tier or tier,
        kind=kind,
        dtype=dtype,
        is_checked=checked_tier is not None,
        notify=notify,
    )
    if tier == "auto":
        _checked_tiers[model] = scorer.engine.tier
    scorer.parameters = int(model.num_parameters())
    return scorer
