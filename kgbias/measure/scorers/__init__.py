"""Scorers of statements: a sentence in, a number and a label out.

    >>> scorer = load_scorer("regard")
    >>> scorer.score(["Nurses love caring for people."])[0].label
    'positive'

The default works offline: the genuine all-MiniLM-L6-v2 with small trained heads (MODEL_CARD.md,
ATTACK_CARD.md and ACCEPTABILITY_CARD.md in this folder say how good they are, and where they fail).
Any Hugging Face text classifier can take its place through the same interface. Importing this
module imports none of the heavy packages.

The weights and cards here are made elsewhere: `python -m training.scorers regard` trains, measures
and describes a scorer from the tables in `training/scorers`, which do not ship. The labelled
statements to check judges with (`labelled.tsv`) have their annotator in the card beside them;
`precision.tsv` says how often flags were right (`kgbias.measure.precision`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgbias.errors import UsageError, no_such
from kgbias.io.caller_state import restore_state
from kgbias.measure.scorers._base import (
    Judgement,
    Scorer,
    class_judgement,
    probability_judgement,
)
from kgbias.measures import MEASURES

if TYPE_CHECKING:
    from kgbias.graph.store import Store, StoredRun
    from kgbias.measure.scorers._custom import ScoreFunction

    ScorerLike = str | Scorer | ScoreFunction

OFFLINE_SPEC = "offline"
"""The spec of a measure's own scorer."""
GENERAL_PREFIXES = ("hf", "llm", "scores", "openai-moderation", "multilingual")
"""The prefixes of the specs of scorers that serve more than one measure."""
ENGLISH = "en"
_LANGUAGES = {ENGLISH: "English"}

__all__ = ["Judgement", "Scorer", "class_judgement", "load_scorer", "probability_judgement"]


@restore_state()
def load_scorer(
    measure: str,
    spec: "ScorerLike | None" = None,
    *,
    device: str = "auto",
    labels: Mapping[str, str] | None = None,
    log: "Store | None" = None,
) -> Scorer:
    """Load a scorer.

    Args:
        measure: a name of `kgbias.MEASURES`, such as "regard".
        spec: None or "offline" for the measure's own scorer, of ours the shipped heads;
            "multilingual:LANGUAGE" for other languages (the extra `languages`);
            "scores:FILE[::COLUMN]" for scores made elsewhere; "openai-moderation[:CATEGORY]" for
            toxicity or identity attack from OpenAI's endpoint; "llm:SPEC" for any language model,
            asked by the measure's rubric (ours are in `prompts/judges`; an axis has none); for
            an axis, the vectors it lies in (None: all-MiniLM-L6-v2); or a Hugging Face classifier,
            `hf:ID-or-PATH[@REVISION][:LABEL]`. For regard its labels must be positive, negative
            and, if it has them, neutral and other, in upper or lower case. For a probability, LABEL
            names the label to use; without it, the first of the measure's `classes` that the model
            has: for toxicity identity_attack, toxic, toxicity, hate and hateful. Or your own: a
            function from texts to numbers, labels or judgements, or a `Scorer`.
        labels: what the labels of a regard classifier mean, for one that calls them LABEL_0,
            LABEL_1 ...: a mapping to positive, neutral, negative and other.
        log: the store whose answer log keeps what an "llm:" scorer asks (None: a temporary one).
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device; scorers without
            a local model (scores:FILE, openai-moderation) take none.

    Raises:
        UsageError: no such measure, specification or label.
        MissingExtra: a package of the extra `scorers` is not installed.
        PluginError: the measure comes from another package, which is broken.
        ModelError: the classifier cannot be loaded.
        DataError: the encoder and the heads do not belong together.
    """
    check_measure(measure)
    entry, spec = MEASURES[measure], spec or OFFLINE_SPEC
    if not isinstance(spec, str):
        return wrap_scorer(measure, spec, labels)
    if labels and not takes_labels(measure, spec):
        raise labels_error()
    if entry.in_vectors:
        from kgbias.measure.scorers._axes import AxisScorer

        return AxisScorer(measure, "minilm" if spec == OFFLINE_SPEC else spec, device)
    if spec == OFFLINE_SPEC and entry.scorer:
        return wrap_scorer(
            measure, MEASURES.import_part(measure, entry.scorer)(measure, device=device)
        )
    if spec.startswith("hf:") and len(spec) > 3:
        from kgbias.measure.scorers._huggingface import HuggingFaceScorer

        return HuggingFaceScorer(measure, spec.removeprefix("hf:"), device, labels)
    if spec.startswith("llm:") and len(spec) > 4:
        from kgbias.measure.scorers._llm import LlmScorer

        return LlmScorer(measure, spec.removeprefix("llm:"), log, device)
    if spec.startswith("multilingual:"):
        from kgbias.measure.scorers._multilingual import MultilingualScorer

        return MultilingualScorer(measure, spec.partition(":")[2], device=device)
    if device != "auto":
        raise UsageError(f"`device` does not apply to {spec}: leave it out")
    if spec.startswith("scores:"):
        from kgbias.measure.scorers._scores_file import FileScorer

        return FileScorer(measure, spec.removeprefix("scores:"))
    if spec.partition(":")[0] == "openai-moderation":
        from kgbias.measure.scorers._moderation import ModerationScorer

        return ModerationScorer(measure, spec.partition(":")[2])
    raise _unknown_spec_error(measure, spec)


def wrap_scorer(
    measure: str,
    scorer_or_function: "Scorer | ScoreFunction",
    labels: Mapping[str, str] | None = None,
) -> Scorer:
    """A scorer that the program holds: a `Scorer`, or a function from texts to scores."""
    if labels:
        raise labels_error()
    from kgbias.measure.scorers._custom import CustomScorer

    # Ours keep to the interface; a person's own is checked at every answer.
    is_from_kgbias = type(scorer_or_function).__module__.partition(".")[0] == "kgbias"
    scorer: Any = scorer_or_function
    return scorer if is_from_kgbias else CustomScorer(measure, scorer_or_function)


def check_measure(measure: str) -> None:
    """Raise UsageError unless there is such a measure."""
    if measure not in MEASURES:
        raise UsageError(no_such("measure", measure, MEASURES))


def check_spec(measure: str, spec: str) -> None:
    """Raise UsageError unless there is such a kind of scorer; does not try to load it."""
    kind, _, spec_value = spec.partition(":")
    has_own_scorer = MEASURES[measure].in_vectors or (
        spec == OFFLINE_SPEC and MEASURES[measure].scorer
    )
    if (
        not has_own_scorer
        and spec != "openai-moderation"
        and not (kind in GENERAL_PREFIXES and spec_value)
    ):
        raise _unknown_spec_error(measure, spec)


def takes_labels(measure: str, spec: str) -> bool:
    """Whether a scorer can be told what its labels mean: a classifier for a measure of classes."""
    return MEASURES[measure].ends is not None and spec.startswith("hf:")


def labels_error() -> UsageError:
    """The error for labels given without a classifier that takes them."""
    measure_names = " or ".join(
        measure.name for measure in MEASURES.own_entries.values() if measure.ends
    )
    return UsageError(f"`labels` are for a {measure_names} classifier (hf:ID-or-PATH)")


def _unknown_spec_error(measure: str, spec: str) -> UsageError:
    own_choice = "offline, " if MEASURES[measure].scorer else ""
    return UsageError(
        f"no {measure} scorer {spec!r}; choose from {own_choice}hf:ID-or-PATH[@REV][:LABEL], "
        "llm:SPEC, multilingual:LANGUAGE, scores:FILE[::COLUMN] or openai-moderation[:CATEGORY]"
    )


def require_language(run: "StoredRun", scorers: Sequence[Scorer]) -> None:
    """Raise UsageError if a scorer is known to read a language other than the run's."""
    from kgbias.graph.selection import run_language

    language = run_language(run.config)
    language_by_measure = {s.measure: getattr(s, "language", None) for s in scorers}
    if other_languages := {
        m: scorer_language
        for m, scorer_language in language_by_measure.items()
        if scorer_language not in (None, language)
    }:
        from kgbias.measure.scorers._multilingual import LANGUAGES, SPEC

        language_names = " and ".join(
            sorted({_LANGUAGES.get(str(r), repr(r)) for r in other_languages.values()})
        )
        able = [measure for measure, languages in LANGUAGES.items() if language in languages]
        ours = f"{SPEC}:{language} for {', '.join(able)}, or " if able else ""
        raise UsageError(
            f"{run.name} is in the language {language!r}, and the scorers of "
            f"{', '.join(other_languages)} "
            f"read {language_names} only: name scorers that know it ({ours}hf:ID-or-PATH), or "
            "none, in `scorers`, and leave out `axes`"
        )


def require_english(run: "StoredRun", subject: str) -> None:
    """Raise UsageError unless the run is in English, which `subject` needs."""
    from kgbias.graph.selection import run_language

    if (language := run_language(run.config)) != ENGLISH:
        raise UsageError(
            f"{run.name} is in the language {language!r}: {subject} are made for English"
        )
