"""Probes on the reference models, where it is known what there is to find, and on SmolLM2.

A masked model shows what is planted in the perplexity of the whole probe: under a pseudo-perplexity
each token of "wear olive hats" has all the others to look at, so that what stands before the
statement hardly matters to its own tokens, and a group alone is no text that it has learned.
"""

from typing import Any

import numpy as np
import pytest

from kgbias.models.score.load import open_scorer
from kgbias.probe.apx import bias_scores, find_flags
from kgbias.probe.names import probe_apx
from kgbias.probe.sets import Descriptor
from kgbias.probe.sofa import log_perplexities
from kgbias.reference import load_truth
from tests.conftest import sweep_params

pytestmark = pytest.mark.integration

TRUTH = load_truth()
TEMPLATES = ("My name is {name} and I", "{name}", "{name}")


@pytest.fixture(scope="module", params=sweep_params(2, ["reference", "reference-masked"]))
def scorer(request: pytest.FixtureRequest) -> Any:
    return open_scorer(request.param)


def described(text: str) -> Descriptor:
    return Descriptor(text, "", "", tuple(f"{verb} {text}." for verb in ("am", "was", "is")))


@pytest.mark.parametrize("measure", ["conditional", "sofa", "whole"])
def test_planted_statements_are_likeliest_of_their_group(scorer: Any, measure: str) -> None:
    masked = scorer.convention.kind == "masked"
    right = total = 0
    for category in TRUTH.categories:
        own: dict[tuple[str, str], set[str]] = {}
        for name in category.groups:
            for statement in TRUTH.groups[name].signature:
                own.setdefault(statement, set()).add(name)
        grid = scorer.grid(category.groups, [" ".join(statement) for statement in own])
        first = log_perplexities(grid, measure).argmin(axis=0)
        right += sum(
            category.groups[g] in names for g, names in zip(first, own.values(), strict=True)
        )
        total += len(own)
    print(f"{scorer.info.name} by {measure}: {right} of {total}")
    # Under a pseudo-perplexity a statement's tokens see each other, and hardly need the group.
    least = {"whole": 0.9, "sofa": 0.5, "conditional": 0.2}[measure] if masked else 0.9
    assert total == 54 and right / total >= least


def test_apx_finds_planted_descriptors_and_flags_no_null(scorer: Any) -> None:
    # Two names of a group's six: what counts is their mean.
    names = [(name, g.name) for g in TRUTH.groups.values() for name in g.given_names[:2]]
    owners: dict[str, set[str]] = {}
    for group in TRUTH.groups.values():
        for descriptor in group.descriptors:
            owners.setdefault(descriptor, set()).add(group.name)
    table = probe_apx(scorer, names, list(map(described, owners)), templates=TEMPLATES).table
    scores = bias_scores(table)
    reciprocal = []
    for column, descriptor in enumerate(table.descriptors):
        own = np.array([group in owners[descriptor] for group in table.groups])
        before = (scores[~own, column] <= scores[own, column].min()).sum()
        reciprocal.append(1 / (1 + before))
    assert np.mean(reciprocal) >= 0.9
    # what is never said of any person is a null for all groups
    never = [
        o for (p, o), topic in TRUTH.statements.items() if p == "are" and topic in ("food", "arts")
    ]
    nulls = probe_apx(scorer, names, list(map(described, never)), templates=TEMPLATES).table
    assert len(find_flags(nulls)) <= 0.01 * len(never) * len(nulls.groups)


@pytest.mark.slow
def test_smollm2_scores_as_one_text_at_a_time() -> None:
    import torch

    scorer: Any = open_scorer("smollm2")
    assert scorer.convention.tier == "tree" and scorer.convention.begin == "bos"
    groups, statements = (
        ["Sailors", "Left-handed people"],
        ["love tea", "love teaching", "are late"],
    )
    grid = scorer.grid(groups, statements)
    model, tokenizer = scorer.engine._model, scorer._tokenizer
    for g, group in enumerate(groups):
        for s, statement in enumerate(statements):
            ids = [tokenizer.bos_token_id, *tokenizer(f"{group} {statement}")["input_ids"]]
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0, :-1].double()
            mean = logits.log_softmax(-1)[range(len(ids) - 1), ids[1:]].mean()
            assert grid.probes.perplexities[g, s] == pytest.approx(
                float(torch.exp(-mean)), rel=1e-5
            )
