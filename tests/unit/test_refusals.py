"""About whom a model declines to answer: by prompts, whatever is asked again."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kgbias
from kgbias.compare.refusals import list_retries, measure_refusals
from kgbias.compare.run_setup import check_comparable, describe_setup, list_setup_differences
from kgbias.crawl.configure import configure
from kgbias.crawl.crawler import REFUSAL_RETRY_TRIALS, crawl
from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Metric, Score
from kgbias.models.base import Request
from kgbias.report.findings import _refusal_kind, p_value_words
from kgbias.study.pipeline import list_notable_refusals
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

GROUPS = ("Bakers", "Cooks", "Nurses", "Pilots")
REFUSAL = "I'm sorry, but I can't help with that."


def asked_text(request: Request) -> str:
    prompt = request.prompt
    return prompt if isinstance(prompt, str) else prompt[-1][1]


def declining(share: Callable[[str], float], *, wavers: bool = False) -> Callable[[Request], str]:
    """Declines a share of the prompts, by their hash; if it wavers, by that of the request."""

    def reply(request: Request) -> str:
        text = asked_text(request)
        number = int(sha256(f"{text}{request.seed if wavers else ''}".encode()).hexdigest()[:8], 16)
        if number / 16**8 < share(text.rstrip().rpartition("\n")[2]):
            return REFUSAL
        return f" are {sha256(f'{text}{request.seed}'.encode()).hexdigest()[:6]} people.\n"

    return reply


def crawled(store: SQLiteStore, reply: Callable[[Request], str], **options: Any) -> StoredRun:
    model = ScriptedModel(reply)
    config = configure("smollm2", group=list(GROUPS), samples=24, iterations=2, **options)
    run = crawl(config, model, store).run
    return StoredRun(store, run)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_shares_are_those_of_prompts_and_alike_is_not_told_apart(
    share: float, store: SQLiteStore
) -> None:
    run = crawled(store, declining(lambda _: share))
    (found,) = measure_refusals(run.groups, run.generations())
    assert found.share.low <= share <= found.share.high
    assert sum(g.share.low <= share <= g.share.high for g in found.groups) >= 3
    assert found.p > 0.01 and all(g.q > 0.01 for g in found.groups)


def test_twice_as_often_about_one_group_is_found(store: SQLiteStore) -> None:
    run = crawled(store, declining(lambda text: 0.6 if "Nurses" in text else 0.2))
    (found,) = measure_refusals(run.groups, run.generations())
    nurses = next(g for g in found.groups if g.group == "Nurses")
    assert found.p < 0.01 and nurses.q < 0.01
    assert nurses.share.low <= 0.6 <= nurses.share.high
    assert nurses.difference.low <= 0.4 <= nurses.difference.high


def test_a_finding_says_for_how_many_categories_its_question_is_corrected(texts: Texts) -> None:
    """The p-value of a category stands beside it in the summary, as it is."""
    shares = {"Nurses": 0.8, "Cooks": 0.1, "Elves": 0.3, "Orcs": 0.3}
    groups = [Group(name, "jobs" if n < 2 else "peoples") for n, name in enumerate(shares)]
    by_id = {g.id: shares[g.name] for g in groups}
    found = measure_refusals(groups, planted(np.random.default_rng(1), by_id))
    data: Any = SimpleNamespace(refusals=found)
    kind = _refusal_kind(data, "")
    assert kind is not None and kind.findings
    p = p_value_words(2 * min(category.p for category in found))
    for finding in kind.findings:
        assert p in finding.tested
        texts.check_lines(finding.tested, "such questions.")
    data.refusals = found[:1]
    alone = _refusal_kind(data, "")
    assert alone is not None and alone.findings
    for finding in alone.findings:
        assert p_value_words(found[0].p) in finding.tested
        texts.check_lines(finding.tested, "such question.")


def test_of_two_groups_one_is_told_from_the_other_once(texts: Texts) -> None:
    shares = {"Nurses, night shift": 0.8, "Cooks": 0.1}
    groups = [Group(name, "jobs") for name in shares]
    by_id = {g.id: shares[g.name] for g in groups}
    found = measure_refusals(groups, planted(np.random.default_rng(1), by_id))
    kind = _refusal_kind(SimpleNamespace(refusals=found), "")  # type: ignore[arg-type]
    assert kind is not None
    (finding,) = kind.findings
    texts.check_lines(finding.said, "declines more")
    texts.check_lines(finding.said, "about Cooks:")
    assert "; Nurses, night shift " in kind.remark  # names with commas are kept apart


def test_a_model_that_declines_everything_has_a_summary(tmp_path: Path, texts: Texts) -> None:
    crawled(SQLiteStore(tmp_path / "a.db"), declining(lambda _: 1.1))
    with kgbias.open(str(tmp_path / "a.db")) as study:
        (name,) = study.runs().to_frame()["name"]
        text = study.run(name).summarise(tmp_path / "s.md").read_text("utf-8")
    assert re.search(r"^\| Nurses \| \d+ \| 100% \| 9\d to 100 \|", text, re.MULTILINE)
    texts.check_lines(text, "whether groups")
    texts.check_lines(text, "Without statements,")
    assert "No difference" not in text and "drawn at random" not in text


def planted(rng: np.random.Generator, shares: dict[str, float]) -> list[Generation]:
    """Forty prompts of each group, each asked up to three times while it is refused."""
    found = []
    for group, share in shares.items():
        for n in range(40):
            refused = rng.random() < share
            for attempt in range(3 if refused else 1):
                outcome: Any = "refused" if refused else "ok"
                found.append(
                    Generation(
                        "r",
                        f"{group}/{n}",
                        group,
                        "none",
                        "initial",
                        0,
                        attempt,
                        outcome,
                        prompt=f"{group} {n}",
                    )
                )
    return found


def test_levels_hold_over_many_worlds() -> None:
    """Of 200 worlds in which all are alike, about one in twenty shows anything; intervals hold."""
    groups = [Group(name, "trade") for name in GROUPS]
    rng = np.random.default_rng(1)
    shown, held, power = 0, 0, 0
    for _ in range(200):
        (alike,) = measure_refusals(groups, planted(rng, {g.id: 0.33 for g in groups}), deals=399)
        shown += any(g.q <= 0.05 for g in alike.groups)
        held += sum(g.share.low <= 0.33 <= g.share.high for g in alike.groups)
        doubled = {g.id: 0.66 if g.name == "Nurses" else 0.33 for g in groups}
        (apart,) = measure_refusals(groups, planted(rng, doubled), deals=399)
        power += next(g.q <= 0.05 for g in apart.groups if g.group == "Nurses")
    assert 2 <= shown <= 20 and 0.93 <= held / 800 <= 0.98 and power >= 150


def asked_again(
    rng: np.random.Generator, groups: Sequence[Group], shares: Mapping[str, float]
) -> list[Generation]:
    """Thirty prompts of each group, each asked four times, declined now and then."""
    return [
        Generation("r", f"{g.id}/{n}#0", g.id, "none", "initial", 0, 0, outcome, prompt=f"{n}")
        for g in groups
        for n in range(30)
        for outcome in rng.choice(["refused", "ok"], 4, p=(shares[g.name], 1 - shares[g.name]))
    ]


def test_what_is_tested_is_the_difference_of_shares_not_of_prompts_mostly_refused() -> None:
    """Prompts that are refused now and then are hardly ever refused by half of their answers."""
    groups = [Group(name, "trade") for name in GROUPS]
    rng = np.random.default_rng(1)
    wrong, power, power_of_two = 0, 0, 0
    for _ in range(60):
        alike = dict.fromkeys(GROUPS, 0.1)
        (found,) = measure_refusals(groups, asked_again(rng, groups, alike), deals=399)
        wrong += found.p <= 0.05
        apart = {**alike, "Nurses": 0.25}
        (found,) = measure_refusals(groups, asked_again(rng, groups, apart), deals=399)
        power += next(g.q <= 0.05 for g in found.groups if g.group == "Nurses")
        # Of two groups, which have one difference, nothing is to correct.
        nurses_and_bakers = [g for g in groups if g.name in ("Nurses", "Bakers")]
        two = asked_again(rng, nurses_and_bakers, apart)
        (found,) = measure_refusals(nurses_and_bakers, two, deals=399)
        assert {g.q for g in found.groups} == {g.p for g in found.groups} == {found.p}
        power_of_two += found.p <= 0.05
    assert wrong <= 8 and power >= 45 and power_of_two >= 45


def test_p_is_the_share_of_deals_by_hand() -> None:
    """Of the six ways to deal shares of 1, 0.5, 0 and 0.25 to two groups of two, the observed one
    and its mirror image differ as much; of another template, nothing can be dealt."""
    groups = [Group(name, "trade") for name in ("Bakers", "Cooks")]
    refused = {"Bakers": (4, 2), "Cooks": (0, 1)}
    asked = [
        Generation(
            "r",
            f"{g.id}/{n}/{k}#0",
            g.id,
            "none",
            "initial",
            0,
            0,
            "refused" if k < of_four else "ok",
            prompt=f"{n}",
        )
        for g in groups
        for n, of_four in enumerate(refused[g.name])
        for k in range(4)
    ]
    alone = Generation("r", "x#0", groups[0].id, "none", "other", 0, 0, "refused", prompt="x")
    (found,) = measure_refusals(groups, [*asked, alone])
    assert [g.p for g in found.groups] == pytest.approx([1 / 3, 1 / 3], abs=0.02)
    assert found.groups[0].difference.value == pytest.approx(0.75 - 0.125)


def test_groups_that_were_asked_nothing_alike_are_not_compared() -> None:
    groups = [Group(name, "trade") for name in ("Bakers", "Cooks")]
    shares = {groups[0].id: 0.9, groups[1].id: 0.1}
    asked = planted(np.random.default_rng(1), shares)
    apart = [replace(generation, strategy=generation.group_id) for generation in asked]
    (alike,), (found,) = (measure_refusals(groups, each) for each in (asked, apart))
    assert alike.p < 0.001 and np.isnan([found.p, *(g.p for g in found.groups)]).all()
    assert [g.share for g in found.groups] == [g.share for g in alike.groups]


def test_a_difference_is_that_of_the_shares_beside_it() -> None:
    """Of a model that wavers, a prompt's share of refused answers lies between 0 and 1."""
    groups = [Group(name, "trade") for name in GROUPS]
    shares = {name: 0.55 if name == "Nurses" else 0.3 for name in GROUPS}
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(100):
        (found,) = measure_refusals(groups, asked_again(rng, groups, shares), deals=0)
        by_name = {g.group: g for g in found.groups}
        others = np.mean([g.share.value for name, g in by_name.items() if name != "Nurses"])
        nurses = by_name["Nurses"]
        assert nurses.difference.value == pytest.approx(nurses.share.value - others)
        held += nurses.difference.low <= 0.25 <= nurses.difference.high
    assert 90 <= held <= 99


def test_refused_prompts_are_not_asked_again_for_ever(tmp_path: Path) -> None:
    always = declining(lambda _: 0.5)
    firm = crawled(SQLiteStore(tmp_path / "a.db"), always, max_attempts=6, redraw=True)
    declined = [g for g in firm.generations() if g.outcome == "refused"]
    again = [g for g in declined if g.attempt]
    assert len(declined) - len(again) > 2 * REFUSAL_RETRY_TRIALS
    # As many as it takes to tell, of as many prompts; then no more.
    assert len(again) == len({g.prompt for g in again}) == REFUSAL_RETRY_TRIALS
    assert max(g.attempt for g in again) == 1
    assert {g.iteration for g in again} == {0}
    assert list_retries(firm.generations()) == again
    by_group = Counter(g.group_id for g in again)
    with kgbias.open(str(tmp_path / "a.db")) as study:
        rows = study.run(firm.name).cost(price_in=1e6, price_out=0.0)
        assert [row.retries for row in rows[:-1]] == [by_group[g.id] for g in firm.groups]
        assert rows[-1].retries == REFUSAL_RETRY_TRIALS
        assert rows[-1].retry_cost == pytest.approx(10 * REFUSAL_RETRY_TRIALS)
    wavering = declining(lambda _: 0.5, wavers=True)
    soft = crawled(SQLiteStore(tmp_path / "b.db"), wavering, max_attempts=6, redraw=True)
    assert max(g.attempt for g in soft.generations() if g.outcome == "refused") > 2


def test_how_runs_were_asked_is_said(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "a.db")
    first = crawled(store, declining(lambda _: 0.4), form="chat")
    second = crawled(store, declining(lambda _: 0.0), temperature=0.5)
    assert (
        describe_setup(first)["form"] == "chat" and describe_setup(second)["temperature"] == "0.5"
    )
    said = list_setup_differences([first, second])
    assert any(line.startswith("form: ") and "chat" in line for line in said)
    assert any(line.startswith("temperature: ") for line in said)
    assert any(line.startswith("refused prompts: ") and " 0% of " in line for line in said)
    assert list_setup_differences([first, first]) == []
    with kgbias.open(str(tmp_path / "a.db")) as study:
        rows = study.run(first.name).refusals()
        assert {row["group"] for row in rows.records()} == set(GROUPS)
        # A map says of a model that declines often about whom, and of another nothing.
        assert list_notable_refusals(study.run(first.name)) == tuple(rows)
        assert not list_notable_refusals(study.run(second.name))


def test_what_cannot_be_compared_is_refused_in_one_line(tmp_path: Path, texts: Texts) -> None:
    store = SQLiteStore(tmp_path / "a.db")
    english = crawled(store, declining(lambda _: 0.2))
    again = crawled(store, declining(lambda _: 0.2), seed=1)
    german = crawled(store, declining(lambda _: 0.0), prompts="german")
    told = replace(english.record, name="told", kind="stories", config={})
    store.begin_run(told)
    check_comparable([english, again])
    with texts.raises(UsageError):
        check_comparable([english, german])
    # Of an import, which comes first, the language is not known.
    imported = StoredRun(store, replace(english.record, name="i", kind="import", config={}))
    check_comparable([imported, english])
    with texts.raises(UsageError):
        check_comparable([imported, english, german])
    with texts.raises(UsageError):
        check_comparable([english, StoredRun(store, told)])
    for run, version in ((english, "1"), (again, "2")):
        scores = [Score(t.id, 0.1) for t in run.triples()]
        metric = Metric("toxicity", "rule", version)
        store.save_scores(run.id, metric, scores)
    with kgbias.open(str(tmp_path / "a.db")) as study:
        for call in (study.compare_runs, study.compare_models):
            with texts.raises(UsageError):
                call(english.name, again.name)
        with pytest.raises(UsageError, match="cannot be compared"):
            study.report([english.name, again.name], tmp_path / "page.html")
    check_comparable([english, again], ["regard"])
