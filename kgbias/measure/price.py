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
from kgbias.measure.embedding import MiniLM
from kgbias.measure.labelled import shipped
from kgbias.measure.meaning import SHIPPED, texts_of
from kgbias.measure.scorers import GENERAL, OWN, check_spec, own_scorer
from kgbias.measure.scorers._offline import offline_metric
from kgbias.measure.swapped import texts_to_read
from kgbias.measures import MEASURES

if TYPE_CHECKING:
    from kgbias.measure.scorers import ScorerLike

    ScorersLike = ScorerLike | Iterable[ScorerLike]


@dataclass(frozen=True, slots=True)
class Scoring:
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
            (`kgbias.measure.swapped`).
    """

    measure: str
    scorer: str
    statements: int
    scored: int = 0
    requests: int = 0
    requests_at_most: int = 0
    answer_tokens_at_most: int = 0
    texts_with_names_at_most: int = 0


def specs_of(wanted: Mapping[str, "ScorersLike | None"]) -> "dict[str, list[ScorerLike]]":
    """The requested scorers, by measure: specs, or a person's own. Raises UsageError for one given
    twice, and for what is none."""
    found: dict[str, list[ScorerLike]] = {}
    for measure, given in wanted.items():
        several: Any = given if isinstance(given, list | tuple | set) else [given]
        specs: list[Any] = [spec for spec in several if spec is not None]
        specs = [own_scorer(measure, s) if not isinstance(s, str) else s for s in specs]
        specs = [spec for spec in specs if not isinstance(spec, str) or spec not in ("none", "")]
        if len({spec if isinstance(spec, str) else spec.name for spec in specs}) < len(specs):
            raise UsageError(f"`scorers` names one of {measure} twice")
        found[measure] = specs
    return found


def price(run: StoredRun, wanted: Mapping[str, "ScorersLike | None"]) -> list[Scoring]:
    """What each scorer will do, and the vectors that are kept beside. Raises UsageError for an
    unknown spec."""
    ids = [triple.id for triple in run.triples()]
    asked = [(measure, spec) for measure, specs in specs_of(wanted).items() for spec in specs]
    found = [_price(run, measure, spec, ids) for measure, spec in asked]
    if any(_in_minilm(measure, spec) for measure, spec in asked):
        there = len(run.vectors(SHIPPED).statements)
        found.append(Scoring("vectors", "minilm", len(texts_of(run)) - there, there))
    return found


def _in_minilm(measure: str, spec: "ScorerLike") -> bool:
    """Whether the encoder that ships reads for this scorer."""
    entry = MEASURES[measure]
    return spec == "minilm" if entry.in_vectors else spec == OWN and bool(entry.heads)


def _price(run: StoredRun, measure: str, spec: "ScorerLike", ids: Sequence[str]) -> Scoring:
    if not isinstance(spec, str):
        own = own_scorer(measure, spec)
        done = run.store.scored_triples(Metric(measure, own.name, own.version), ids)
        return Scoring(measure, own.name, len(ids) - len(done), len(done))
    check_spec(measure, spec)
    known = _known(run, measure, spec)
    scored = max((len(run.store.scored_triples(metric, ids)) for metric in known), default=0)
    checks = shipped(measure) if spec.startswith("llm:") else None
    asked = len(checks.statements) if checks else 0
    named = texts_to_read(run, measure, spec, known)
    return scoring(measure, spec, len(ids) - scored, scored, asked, named)


def scoring(
    measure: str, spec: str, left: int, scored: int = 0, checked: int = 0, named: int = 0
) -> Scoring:
    """What a scorer will do that has so many texts left to read, is first checked against labelled
    ones, and reads at most `named` with other names in them."""
    if spec.startswith("llm:"):
        from kgbias.measure.scorers._llm import ATTEMPTS, read_rubric

        template = read_rubric(measure).template
        tokens = max(template.max_tokens, template.chat_max_tokens)
        asked = left + checked
        return Scoring(measure, spec, left, scored, asked, most := asked * ATTEMPTS, most * tokens)
    if spec.startswith("openai-moderation"):
        from kgbias.measure.scorers._moderation import BATCH

        asked = 1 + math.ceil(left / BATCH)  # the first says which model answers
        return Scoring(measure, spec, left, scored, asked, asked)
    return Scoring(measure, spec, left, scored, texts_with_names_at_most=named)


def _known(run: StoredRun, measure: str, spec: str) -> list[Metric]:
    """The metrics of the run that this spec may stand for; for an offline scorer, its own."""
    entry = MEASURES[measure]
    if entry.in_vectors:
        name = f"axis:{MiniLM.name if spec == 'minilm' else spec}"
    elif spec == OWN and entry.heads:
        return [offline_metric(measure)]
    elif spec == OWN:  # of another package, which is not opened just for its name
        return [
            metric
            for metric in run.scorers()
            if metric.measure == measure
            and not is_swapped(metric)
            and metric.scorer.partition(":")[0] not in GENERAL
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
