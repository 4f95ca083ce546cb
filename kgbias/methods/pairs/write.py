"""Make the same requests about each person, and keep the answers.

Like a crawl, this is a pure function of its configuration and the model's answers: every answer is
kept whole in the answer log before it is read, and the same call again asks only for what is
missing. A request is made once in each round: a refusal is a result.
"""

from collections import Counter
from dataclasses import dataclass

from kgbias.graph.answers import LoggedModel
from kgbias.graph.generation_run import CostEstimate, GenerationSummary, classify_answer
from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Generation, Run, node_id
from kgbias.io.progress import Progress, SilentProgress
from kgbias.methods.pairs.config import GREETED, PairPlace, PairsConfig
from kgbias.models.base import Completer, Request
from kgbias.models.budget import Budget, estimate_tokens

ARM = "pairs"


class PairsSummary(GenerationSummary):
    """What a call did; an empty answer is "unparsable"."""


def write_pairs(
    config: PairsConfig,
    model: Completer,
    store: Store,
    *,
    name: str | None = None,
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> PairsSummary:
    """Make all requests, round by round, and write each round to the graph when it is complete.

    Raises Interrupted on Ctrl-C or when the budget is spent (the same call continues from there);
    RunConflict if the name belongs to a run with other settings.
    """
    reporter = progress or SilentProgress()
    asker = LoggedModel(model, store, reporter, budget=budget)
    run = config.begin(store, model, name)
    result = PairsSummary(run, outcomes={g.name: Counter() for g in config.groups})

    def write(number: int) -> int:
        round_places = config.places(number)
        reporter.stage(f"requests, {round_places[0].round_name}", len(round_places))
        requests = [_pair_request(config, place) for place in round_places]
        answers = asker.ask(requests)
        generations = [
            _build_generation(config, run, place, request, answer)
            for place, request, answer in zip(round_places, requests, answers, strict=True)
        ]
        store.record_round(run.id, ARM, number, generations)
        for place, generation in zip(round_places, generations, strict=True):
            result.count_outcome(place.person.group, generation)
        return result.outcome_totals.total()

    result.write_rounds(store, asker, config.rounds, write)
    return result


def pair_prompt(config: PairsConfig, place: PairPlace) -> str | tuple[tuple[str, str], ...]:
    """The prompt for a request about a person."""
    greeting = config.pack.greeting if place.round_name == GREETED else ""
    return config.pack.template.render(
        config.form, text=greeting + place.wording.about(place.person)
    )


def _pair_request(config: PairsConfig, place: PairPlace) -> Request:
    return config.request(
        pair_prompt(config, place), config.pack.template.answer_limits(config.form), place.path
    )


def _build_generation(
    config: PairsConfig, run: Run, place: PairPlace, request: Request, answer: Answer
) -> Generation:
    template = config.pack.template
    outcome, reason = classify_answer(answer)
    if outcome == "ok" and not answer.text.strip():
        outcome, reason = "unparsable", "empty"
    return Generation(
        run_id=run.id,
        path=f"{place.path}#0",
        group_id=node_id("group", place.person.group),
        arm=ARM,
        strategy="request",
        iteration=place.round,
        attempt=0,
        outcome=outcome,
        reason=reason,
        template=f"{template.label}:{config.form}",
        template_hash=template.hash,
        prompt=request.text,
        answer_key=answer.key,
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PairsPrice(CostEstimate):
    """What the answers cost, and how many requests there are, in how many wordings, about how many
    people in how many groups."""

    named: int
    wordings: int
    people: int
    groups: int
    samples: int


def pairs_price(config: PairsConfig) -> PairsPrice:
    """The price of this configuration. Asks nothing and opens nothing."""
    first_round = config.places(0)
    requests = len(first_round) * config.rounds
    tokens = [estimate_tokens(p.wording.about(p.person)) for p in first_round]
    fixed = estimate_tokens(pair_prompt(config, first_round[0])) - tokens[0]
    return PairsPrice(
        named=len({w.request for w in config.wordings}),
        wordings=len(config.wordings),
        people=len(config.people),
        groups=len(config.groups),
        samples=config.samples,
        form=config.form,
        requests=requests,
        answer_tokens_at_most=requests * config.pack.template.answer_limits(config.form).max_tokens,
        prompt_tokens=fixed + round(sum(tokens) / len(tokens)),
    )
