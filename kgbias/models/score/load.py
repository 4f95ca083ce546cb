"""Opening a model that scores texts, by its spec."""

from inspect import signature
from typing import cast

from kgbias.errors import ModelError, UsageError, no_such
from kgbias.io.traces import restore_state
from kgbias.io.wording import how
from kgbias.models.base import Notify
from kgbias.models.load import As, called, decodes_alone, load, trained_for
from kgbias.models.score.base import CausalScorer, TextScorer
from kgbias.models.spec import KINDS, Spec, forms, parse, resolve
from kgbias.parameters import NotFor

_SCORED = ("causal", "masked", "decoder", "seq2seq")


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
        begin: the token before a text (see `Convention`): "auto", "bos", "eos" or "none".
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
    parsed = parse(spec)
    if not KINDS[parsed.kind].scorer:
        raise UsageError(
            f"{parsed} gives no log-probabilities; {forms(lambda other: other.scores)} can"
        )
    opened = KINDS.import_part(parsed.kind, KINDS[parsed.kind].scorer)
    given = {
        "begin": (begin, "auto"),
        "dtype": (dtype, "float32"),
        "kind": (kind, "auto"),
        "tier": (tier, "auto"),
        "device": (device, "auto"),
        "instruction": (instruction, None),
        "words": (words, None),
        "base_url": (base_url, None),
    }
    takes = signature(opened).parameters
    for name, (value, default) in given.items():
        if value != default and name not in takes:
            raise NotFor(name, spec)
    options = {name: value for name, (value, _) in given.items() if name in takes}
    scorer: TextScorer = opened(
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
    if kind not in ("auto", *_SCORED):
        raise UsageError(no_such("kind", kind, ("auto", *_SCORED)))
    files = resolve(spec, revision)
    if kind == "auto":
        trained = KINDS[spec.kind].trained_as or trained_for(files, notify)
        if trained not in ("causal", "masked", "seq2seq"):
            raise UsageError(
                f"{spec} is {called(trained)} and cannot score text; language models can: "
                f"{forms(lambda other: other.scores)}"
            )
        alone = trained == "seq2seq" and instruction is None and decodes_alone(files, notify)
        kind = "decoder" if alone else trained
    loaded = load(files, cast(As, kind), dtype=dtype, device=device, notify=notify)
    if dtype != "float32":
        shows = how("kgbias.probe.precision.check_precision", "kgbias probe precision")
        notify(f"{dtype} may change the order of groups: {shows} shows whether it does for {spec}")
    info, tokenizer, model = loaded.info, loaded.tokenizer, loaded.model
    if not tokenizer.is_fast:
        raise ModelError(f"{info.name} has no fast tokenizer")
    if instruction is not None and kind != "seq2seq":
        raise NotFor("instruction", f"{info.name}, which has no encoder")
    if words and kind != "masked":
        raise NotFor("words", f"{info.name}, which is no masked language model")
    if kind == "seq2seq":
        from kgbias.models.score.conditioned import GROUP, ConditionedScorer

        for name, value in (("begin", begin), ("tier", tier)):
            if value != "auto":
                raise NotFor(name, f"{info.name}, an encoder-decoder")
        asked = GROUP if instruction is None else instruction
        conditioned = ConditionedScorer(info, tokenizer, model, asked, dtype)
        conditioned.parameters = int(model.num_parameters())
        return conditioned
    if kind == "masked":
        from kgbias.models.score.masked import MaskedScorer

        for name, value in (("begin", begin), ("tier", tier)):
            if value != "auto":
                raise NotFor(name, f"{info.name}, a masked language model")
        masked = MaskedScorer(info, tokenizer, model, dtype, words=bool(words))
        masked.parameters = int(model.num_parameters())
        return masked
    scorer = CausalScorer(
        info, tokenizer, model, begin, tier, kind=kind, dtype=dtype, notify=notify
    )
    scorer.parameters = int(model.num_parameters())
    return scorer
