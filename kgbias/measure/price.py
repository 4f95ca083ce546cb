"""What measuring a run will take, before anything is opened."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgbias.errors import UsageError
from kgbias.graph.cross_mentions import is_swapped
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Metric
from kgbias.measure.counterfactual import max_texts_with_names
from kgbias.measure.embedding import MiniLM
from kgbias.measure.labelled_sets import read_shipped_set
from kgbias.measure.scorers import GENERAL_PREFIXES, OFFLINE_SPEC, check_spec, wrap_scorer
from kgbias.measure.scorers._offline import offline_metric
from kgbias.measure.semantic_search import SHIPPED_ENCODER, statement_texts
from kgbias.measures import MEASURES

if TYPE_CHECKING:
    from kgbias.measure.scorers import ScorerLike

    ScorersLike = ScorerLike | Iterable[ScorerLike]


@dataclass(frozen=True, slots=True)
class ScoringPrice:
    """What one scorer will do.

    Attributes:
        measure: what is scored; "topics" if topics are found, "vectors" if vectors of statements
            are kept, by which they are found by what they mean.
        scorer: its spec; for topics, axes and vectors, what they are computed in.
        statements: how many it will read; for vectors, each once, whichever groups it is about.
        scored: how many already have a score, or a vector, and are not read again. Only the name of
            an external scorer is known before it is opened: if its version has changed, these are
            read again too.
        requests: to a server or a language model if every answer can be read at the first attempt,
            including the labelled statements that a judge is first checked against; answers in the
            log are not asked for again. 0 without a server.
        requests_at_most: if every attempt is used.
        answer_tokens_at_most: what the answers may then hold.
        texts_with_names_at_most: neutral texts and statements that it also reads, with every name
            of a category in place of the group's own, if it may react to names
            (`kgbias.measure.counterfactual`).
    """

    measure: str
    scorer: str
    statements: int
    scored: int = 0
    requests: int = 0
    requests_at_most: int = 0
    answer_tokens_at_most: int = 0
    texts_with_names_at_most: int = 0


def list_specs(
    scorers_by_measure: Mapping[str, "ScorersLike | None"],
) -> "dict[str, list[ScorerLike]]":
    """The requested scorers, by measure: specs, or a person's own. Raises UsageError for one given
    twice, and for what is none."""
    specs_by_measure: dict[str, list[ScorerLike]] = {}
    for measure, given_scorers in scorers_by_measure.items():
        given_specs: Any = (
            given_scorers if isinstance(given_scorers, list | tuple | set) else [given_scorers]
        )
        specs: list[Any] = [spec for spec in given_specs if spec is not None]
        specs = [wrap_scorer(measure, s) if not isinstance(s, str) else s for s in specs]
        specs = [spec for spec in specs if not isinstance(spec, str) or spec not in ("none", "")]
        if len({spec if isinstance(spec, str) else spec.name for spec in specs}) < len(specs):
            raise UsageError(f"`scorers` names one of {measure} twice")
        specs_by_measure[measure] = specs
    return specs_by_measure


def price_measurement(
    run: StoredRun, scorers_by_measure: Mapping[str, "ScorersLike | None"]
) -> list[ScoringPrice]:
    """What each scorer will do, and the vectors that are kept beside. Raises UsageError for an
    unknown spec."""
    ids = [triple.id for triple in run.triples()]
    measures_and_specs = [
        (measure, spec)
        for measure, specs in list_specs(scorers_by_measure).items()
        for spec in specs
    ]
    prices = [_price_scorer(run, measure, spec, ids) for measure, spec in measures_and_specs]
    if any(_reads_minilm(measure, spec) for measure, spec in measures_and_specs):
        stored_count = len(run.vectors(SHIPPED_ENCODER).statements)
        prices.append(
            ScoringPrice(
                "vectors", "minilm", len(statement_texts(run)) - stored_count, stored_count
            )
        )
    return prices


def _reads_minilm(measure: str, spec: "ScorerLike") -> bool:
    """Whether the encoder that ships reads for this scorer."""
    entry = MEASURES[measure]
    return spec == "minilm" if entry.in_vectors else spec == OFFLINE_SPEC and bool(entry.heads)


def _price_scorer(
    run: StoredRun, measure: str, spec: "ScorerLike", ids: Sequence[str]
) -> ScoringPrice:
    if not isinstance(spec, str):
        custom_scorer = wrap_scorer(measure, spec)
        scored_ids = run.store.scored_triples(
            Metric(measure, custom_scorer.name, custom_scorer.version), ids
        )
        return ScoringPrice(
            measure, custom_scorer.name, len(ids) - len(scored_ids), len(scored_ids)
        )
    check_spec(measure, spec)
    possible_metrics = _possible_metrics(run, measure, spec)
    # Of several versions, the one that has read most: which one will be opened is not known yet.
    scored_count = max(
        (len(run.store.scored_triples(metric, ids)) for metric in possible_metrics), default=0
    )
    shipped_set = read_shipped_set(measure) if spec.startswith("llm:") else None
    check_count = len(shipped_set.statements) if shipped_set else 0
    name_texts = max_texts_with_names(run, measure, spec, possible_metrics)
    return estimate_scoring(
        measure, spec, len(ids) - scored_count, scored_count, check_count, name_texts
    )


def estimate_scoring(
    measure: str,
    spec: str,
    remaining: int,
    scored_count: int = 0,
    check_count: int = 0,
    name_texts: int = 0,
) -> ScoringPrice:
    """What a scorer will do that has so many texts left to read, is first checked against labelled
    ones, and reads at most `name_texts` with other names in them."""
    if spec.startswith("llm:"):
        from kgbias.measure.scorers._llm import MAX_ATTEMPTS, read_rubric

        template = read_rubric(measure).template
        tokens = max(template.max_tokens, template.chat_max_tokens)
        request_count = remaining + check_count
        return ScoringPrice(
            measure,
            spec,
            remaining,
            scored_count,
            request_count,
            max_requests := request_count * MAX_ATTEMPTS,
            max_requests * tokens,
        )
    if spec.startswith("openai-moderation"):
        from kgbias.measure.scorers._moderation import BATCH_TEXTS

        request_count = 1 + math.ceil(remaining / BATCH_TEXTS)  # the first says which model answers
        return ScoringPrice(measure, spec, remaining, scored_count, request_count, request_count)
    return ScoringPrice(measure, spec, remaining, scored_count, texts_with_names_at_most=name_texts)


def _possible_metrics(run: StoredRun, measure: str, spec: str) -> list[Metric]:
    """The metrics of the run that this spec may stand for; for an offline scorer, its own."""
    entry = MEASURES[measure]
    if entry.in_vectors:
        name = f"axis:{MiniLM.name if spec == 'minilm' else spec}"
    elif spec == OFFLINE_SPEC and entry.heads:
        return [offline_metric(measure)]
    elif spec == OFFLINE_SPEC:  # of another package, which is not opened just for its name
        return [
            metric
            for metric in run.scorers()
            if metric.measure == measure
            and not is_swapped(metric)
            and metric.scorer.partition(":")[0] not in GENERAL_PREFIXES
        ]
    elif spec.startswith("scores:"):
        name = "scores:" + Path(spec.removeprefix("scores:").partition("::")[0]).name
    else:
        name = spec  # which may name a revision and a label too
    return [
        metric
        for metric in run.scorers()
        if metric.measure == measure
        and not is_swapped(metric)
        and (name == metric.scorer or name.startswith((f"{metric.scorer}:", f"{metric.scorer}@")))
    ]
