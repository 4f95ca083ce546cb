"""Figures that were wrong on what other people bring: each holds the right one."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from kgbias.compare.families import run_family
from kgbias.errors import ModelError
from kgbias.evidence.evidence_table import EvidenceInputs, _estimate_refusals
from kgbias.evidence.replication import _CategoryBits
from kgbias.graph.types import Generation, Group, GroupName
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Convention, TextScorer, TokenisedText
from kgbias.stats.designs import Design
from kgbias.stats.inference import Sample
from kgbias.stats.poststratification import StratifiedSample


def generation(group: Group, prompt: str, attempt: int, outcome: Any) -> Generation:
    path = f"none/x/{group.id}/{prompt}#{attempt}"
    return Generation("r", path, group.id, "none", "object", 0, attempt, outcome, prompt=prompt)


def test_refusals_are_counted_by_prompt() -> None:
    """A prompt that is refused is asked again, and refused again: that is one prompt."""
    group = Group("Bakers", "trades")
    said = []
    for n in range(10):
        if n < 3:
            said += [generation(group, f"p{n}", attempt, "refused") for attempt in range(3)]
        else:
            said.append(generation(group, f"p{n}", 0, "ok"))
    run: Any = SimpleNamespace(groups=(group,))
    parts: Any = SimpleNamespace(
        run=run, generations=said, statements=SimpleNamespace(arms=("none",))
    )
    share = _estimate_refusals(cast(EvidenceInputs, parts))[group.id]
    assert (share.value, share.n) == (pytest.approx(0.3), 10)
    assert share.low < 1 / 3 < share.high


class Letters:
    """A tokenizer of letters, which takes the end of "az" and the beginning of "za" for one."""

    def __call__(self, text: str | list[str], **_: Any) -> dict[str, Any]:
        if isinstance(text, list):
            return {"input_ids": [self(each)["input_ids"] for each in text]}
        joined = text.replace("z z", "Z")
        ends = np.cumsum([3 if c == "Z" else 1 for c in joined]).tolist()
        return {"input_ids": [ord(c) for c in joined], "offset_mapping": [(0, e) for e in ends]}


class Scorer(TextScorer):
    def __init__(self, value: float) -> None:
        super().__init__(ModelInfo("m"), Letters(), Convention("causal", "bos"), 100, 0)
        self._value = value

    def _frame_tokens(self, ids: tuple[int, ...], statement_tokens: int) -> TokenisedText:
        return TokenisedText(ids, tuple(range(len(ids))), statement_tokens)

    def _log_probabilities(self, tokenised: Any, stems: Any, advance: Any) -> list[Any]:
        return [np.full(len(one.scored), self._value) for one in tokenised]


def test_probabilities_that_are_no_numbers_are_refused() -> None:
    assert Scorer(-1.0).score(["ab"]).log_likelihoods.tolist() == [-2.0]
    for value in (np.nan, np.inf):
        with pytest.raises(ModelError, match="not numbers"):
            Scorer(value).score(["ab"])


def test_one_probe_that_merges_over_the_boundary_is_found_among_all() -> None:
    groups = [f"a{c}" for c in "bcdefghijklmnopqrstuvwxyz"]
    statements = [f"{c}a b" for c in "bcdefghijklmnopqrstuvwxyz"]
    found = Scorer(-1.0).grid(groups, statements).probes.tokens
    assert found[-1, -1] == found[0, 0] - 2  # "z z" is one token of three letters
    assert (found.sum() - found[-1, -1]) == found[0, 0] * (found.size - 1)


def test_names_that_leave_no_freedom_are_not_tested() -> None:
    names = tuple(
        GroupName(f"{g}{n}", g, "plural", root=f"{g}{n}")
        for g in ("bakers", "millers")
        for n in range(5)
    )
    table = _CategoryBits(("bakers", "millers"), names, ("s",), np.zeros((1, 10, 1)))
    assert table.can_test([0, 1, 5, 6]) and not table.can_test([0, 5])


def test_an_import_is_compared_with_a_crawl() -> None:
    """Of the one nobody knows what was asked; the other was asked in two ways."""
    values = np.array([0.0, 0.2, 0.4, 0.6, 0.5, 0.1])
    forms = np.array(["given love", "given love", "given hate"] * 2, dtype=object)
    design = Design(np.arange(6), np.zeros(6, dtype=np.int64))
    ones = np.ones(6, dtype=np.int64)
    crawl = StratifiedSample(Sample(values, ones, design, np.arange(6)), forms, forms)
    imported = StratifiedSample(Sample(values + 1.0, ones))
    (test,) = run_family("regard", "x", {"a": imported, "b": crawl}, [("a", "b")]).tests
    assert test.difference.value == pytest.approx(1.0) and test.p < 0.05
    assert test.difference.low < 1.0 < test.difference.high
