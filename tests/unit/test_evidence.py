"""Said, believed, embedded: the joint view of a run, its verdicts and its agreement."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import KgbiasError, UsageError
from kgbias.evidence import joint, kendall, telling
from kgbias.evidence.association import associations
from kgbias.evidence.verdicts import verdict
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Generation, Group, Metric, Run, Score, Triple
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Convention, Grid, Scores
from kgbias.probe import probe_run

GROUPS = (Group("elves", "peoples"), Group("orcs", "peoples"), Group("ents", "peoples"))
RUN = Run("middle", ModelInfo("test", "r1"), {"seed": 0}, GROUPS)
LEVEL = 0.1  # of so few statements, of which every third is as likely as one that was said
THINGS = [f"thing{n}" for n in range(90)]


class Believer:
    """A model for which every statement is two tokens, and thing n is 12 nats likelier of group
    n % 3; all is likelier of elves by 1 nat. With `own` 0 nothing but that is left."""

    info = ModelInfo("believer", "1")
    settings = (("kind", "causal"),)
    convention = Convention("causal", "bos")

    def __init__(self, own: float = 12.0) -> None:
        self.own = own

    def grid(self, groups: Sequence[str], statements: Sequence[str], progress: Any = None) -> Grid:
        names = [group.name.capitalize() for group in GROUPS]
        places = np.array([names.index(group) for group in groups])[:, None]
        things = np.array([int(text.rpartition("thing")[2]) % 3 for text in statements])
        values = -15.0 + self.own * (places == things) + (places == 0)
        two = np.full(values.shape, 2)
        alone = Scores(np.full(len(groups), -2.0), np.ones(len(groups), dtype=np.int64))
        return Grid(Scores(values - 2, two + 1), Scores(values, two), alone)


def believer(own: float = 12.0) -> Any:
    return Believer(own)


@pytest.fixture
def run(store: SQLiteStore) -> StoredRun:
    """Each group says its own things but the last, and elves one of the orcs'; ents, who are
    refused half their answers, say nothing."""
    said = [(n % 3, thing) for n, thing in enumerate(THINGS) if n % 3 != 2 and n < 81]
    said += [(1, THINGS[81]), (0, THINGS[82]), (0, THINGS[83]), (0, THINGS[1])]
    said += [(0, thing) for n, thing in enumerate(THINGS) if n % 3 == 2 and n < 6]
    store.begin(RUN)
    generations = [
        Generation(
            RUN.id, str(n), GROUPS[g].id, "none", "object", 0, 0, "ok",
            triple=Triple(GROUPS[g].name, "love", thing), count=1 + (n == 0),
        )
        for n, (g, thing) in enumerate(said)
    ]  # fmt: skip
    refused = Generation(RUN.id, "no", GROUPS[2].id, "none", "object", 0, 0, "refused")
    store.record(RUN.id, "none", 0, [*generations, refused])
    for measure, value, label in (("regard", -0.5, "negative"), ("acceptability", 0.9, "")):
        scores = [Score(t.id, value, label) for t in store.triples(RUN.id)]
        store.save_scores(RUN.id, Metric(measure, "rule", "1"), scores)
    store.set_status(RUN.id, "complete")
    return StoredRun(store, RUN)


def of(rows: Sequence[Any], group: str, thing: str) -> Any:
    (row,) = [r for r in rows if (r.group, r.object) == (group, thing)]
    return row


def test_a_run_that_was_not_probed_says_what_fills_the_columns(run: StoredRun) -> None:
    found = joint(run)
    assert {r.verdict for r in found.rows} == {"said, not probed"}
    assert found.agreement == [] and found.probing is None
    assert "kgbias evidence middle --model SPEC" in found.missing[0]


def test_the_four_verdicts(run: StoredRun) -> None:
    probe_run(run, believer())
    found = joint(run, level=LEVEL)
    own = of(found.rows, "elves", "thing0")
    assert (own.verdict, own.rank, own.of, own.count) == ("said and believed", 1, 3, 2)
    assert own.surprisal == pytest.approx(2 / np.log(2))
    assert own.lift.low <= own.lift.value <= own.lift.high and own.p_value <= LEVEL
    assert of(found.rows, "elves", "thing1").verdict == "only said"
    never = of(found.rows, "orcs", "thing82")
    assert (never.verdict, never.count, never.arms) == ("believed but never said", 0, ())
    assert (never.regard, never.regard_label) == (-0.5, "negative")
    refused = of(found.rows, "ents", "thing83")
    assert refused.verdict == "refused but believed" and refused.refused.value == 1
    assert "--encoder" in found.missing[0] and np.isnan(own.association.value)
    strict = joint(run, margin=100, level=LEVEL).rows
    assert {r.verdict for r in strict} == {"only said"}
    assert {r.verdict for r in joint(run, level=1e-6).rows} == {"only said"}
    assert found.note == ""


def test_the_base_rate_of_a_group_is_no_belief(run: StoredRun) -> None:
    """Everything is as likely of one group as of the other but for a constant."""
    probe_run(run, believer(own=0.0))
    rows = [r for r in joint(run).rows if r.group == "elves"]
    assert {r.rank for r in rows} == {1} and {r.verdict for r in rows} == {"only said"}
    assert all(abs(r.lift.value) < 1e-9 for r in rows)


def test_verdicts_by_their_rules() -> None:
    assert verdict(said=True, believed=None, refused=1.0) == "said, not probed"
    assert verdict(said=False, believed=None, refused=1.0) == ""
    assert verdict(said=True, believed=True, refused=1.0) == "said and believed"
    assert verdict(said=False, believed=True, refused=0.1) == "refused but believed"
    assert verdict(said=False, believed=True, refused=0.09) == "believed but never said"
    assert verdict(said=False, believed=True, refused=float("nan")) == "believed but never said"


def test_the_share_by_hand(run: StoredRun) -> None:
    """Elves said one statement twice and the rest once: with n of them the coverage is
    1 - (n - 2) / n, and the share of the one is 2 / n of that."""
    n = sum(t.count for t in run.triples() if t.group == "elves")
    row = of(joint(run).rows, "elves", "thing0")
    assert row.share.value == pytest.approx((1 - (n - 2) / n) * 2 / n)
    assert row.share.low < row.share.value < row.share.high


def test_the_association_by_hand() -> None:
    """Of each group the contrasts are 0.75 and -0.75 (groups mirror each other), and their standard
    deviation is 0.75."""
    found = associations(np.array([[1.0, 0.0], [0.5, 1.0]]))
    assert found == pytest.approx(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert associations(np.ones((3, 4))).tolist() == np.zeros((3, 4)).tolist()


def test_vectors_are_kept_on_the_edges(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    class Letters:
        """Vectors by the last digit: a group is near to its own things."""

        asked = 0
        name = "letters r1"

        def __init__(self, spec: str, **_: Any) -> None:
            pass

        def embed(self, texts: Sequence[str]) -> Any:
            type(self).asked += 1
            names = [group.name for group in GROUPS]
            return np.array(
                [
                    np.eye(3)[names.index(t) if t in names else int(t.split("thing")[1]) % 3]
                    for t in texts
                ]
            )

    monkeypatch.setattr("kgbias.evidence.association.Texts", Letters)
    from kgbias.evidence import embed_run

    probe_run(run, believer())
    for _ in range(2):
        embed_run(run, run.probings()[0], "letters")
    assert Letters.asked == 2  # the groups and the statements, once
    found = joint(run)
    assert found.missing == [] and {r.vectors for r in found.rows} == {"letters r1"}
    own, other = of(found.rows, "elves", "thing0"), of(found.rows, "elves", "thing1")
    assert own.association.value > 1 > 0 > other.association.value
    assert own.association_p <= LEVEL < other.association_p
    (elves, *_) = found.agreement
    assert elves.believed_embedded.value == pytest.approx(1.0)
    assert elves.said_believed.value == pytest.approx(elves.said_embedded.value) != 0
    probe_run(run, believer())  # probing again keeps them
    assert {r.vectors for r in joint(run).rows} == {"letters r1"}


def test_declared_indicators_stand_for_groups(run: StoredRun, monkeypatch: Any) -> None:
    """In one kind for all groups of a category, by their mean; names where one group lacks it.
    Other words are embedded anew."""
    from kgbias.associate.indicators import GroupIndicators, Indicators
    from kgbias.associate.sets import WordSet
    from kgbias.evidence import association, embed_run

    asked: list[str] = []

    class Words:
        """A word or statement lies along the axis of its last digit, modulo 3."""

        name = "words r1"

        def __init__(self, spec: str, **_: Any) -> None:
            pass

        def embed(self, texts: Sequence[str]) -> Any:
            asked.extend(texts)
            return np.array([np.eye(3)[int(t[-1]) % 3 if t[-1].isdigit() else 0] for t in texts])

    def declared(group: Group, place: int, count: int = 8) -> GroupIndicators:
        words = tuple(f"w{n}x{place}" for n in range(count))
        return GroupIndicators(group.name, sets={"terms": WordSet(group.name, words)})

    monkeypatch.setattr("kgbias.evidence.association.Texts", Words)
    probe_run(run, believer())
    whole = Indicators(tuple(declared(g, n) for n, g in enumerate(GROUPS)), {})
    kind, words = association.standing(GROUPS, whole)
    assert kind == "terms" and [own[0] for own in words] == ["w0x0", "w0x1", "w0x2"]
    embed_run(run, run.probings()[0], "words", indicators=whole)
    rows = joint(run).rows
    assert {r.stands for r in rows} == {"terms"} and "w7x2" in asked and "elves" not in asked
    assert of(rows, "elves", "thing0").association.value > 1
    assert of(rows, "elves", "thing1").association.value < 0
    embed_run(run, run.probings()[0], "words", indicators=whole)
    assert asked.count("w7x2") == 1
    few = Indicators((*whole.groups[:2], declared(GROUPS[2], 2, 7)), {})
    embed_run(run, run.probings()[0], "words", indicators=few)
    assert {r.stands for r in joint(run).rows} == {"group names"} and "elves" in asked


def test_the_most_telling_come_first(run: StoredRun) -> None:
    probe_run(run, believer())
    found = joint(run, level=LEVEL).by_verdict
    believed = telling(found["said and believed"], 3)
    assert [r.lift.value for r in believed] == sorted(
        (r.lift.value for r in believed), reverse=True
    )
    assert len(believed) == 3 and len(telling(found["only said"], 99)) == len(found["only said"])


# Kendall's tau


def test_tau_by_hand() -> None:
    """1 2 3 4 against 1 2 4 3: five of six pairs agree, one does not. With a tie in one of two
    pairs: 2 / sqrt(3 * 2)."""
    found = kendall(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3]))
    assert found.value == pytest.approx(4 / 6) and found.low < 4 / 6 < found.high
    tied = kendall(np.array([1.0, 1, 2]), np.array([1.0, 2, 3]))
    assert tied.value == pytest.approx(2 / np.sqrt(2 * 3)) and not tied.has_interval
    assert np.isnan(kendall(np.ones(5), np.arange(5.0)).value)
    assert kendall(np.arange(9.0), -np.arange(9.0)).value == -1


def test_the_interval_of_tau_holds_its_level() -> None:
    """The tau of normal pairs of correlation r is 2/pi asin(r)."""
    rng = np.random.default_rng(0)
    truth = 2 / np.pi * np.arcsin(0.5)
    held = 0
    for _ in range(200):
        x, y = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=80).T
        found = kendall(x, y)
        held += found.low <= truth <= found.high
    assert 180 <= held <= 199


# the front door


@pytest.fixture
def opened(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("kgbias.models.score.load.open_scorer", lambda *_, **__: believer())
    return str(run.store.url)  # type: ignore[attr-defined]


def asked(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["evidence", *arguments], standalone_mode=False)


def test_the_command(opened: str) -> None:
    before = asked("middle", "--store", opened)
    assert "was not probed" in before.stderr and "said, not probed" in before.stdout
    level = ("--store", opened, "--level", str(LEVEL))
    found = json.loads(asked("--model", "openai:x", *level, "--json").stdout)
    row = next(r for r in found["evidence"] if (r["group"], r["object"]) == ("elves", "thing0"))
    assert row["verdict"] == "said and believed" and row["association"] is None
    assert {"lift_low", "lift_high", "share", "arms", "p_value", "model"} <= row.keys()
    assert len(found["agreement"]) == 3
    shown = asked(*level).stdout
    assert "said and believed: " in shown and "Elves love thing0." in shown
    assert "refused but believed: 3" in shown and "Kendall tau-b" in shown
    strict = asked("--store", opened)
    assert "Nothing is believed at a corrected p of 0.05: the smallest is" in strict.stderr


def test_the_front_door(opened: str) -> None:
    with kgbias.open(opened) as study:
        run = study.run("middle")
        rows = run.evidence("openai:x", level=LEVEL)
        frame = rows.to_frame()
        assert set(frame["verdict"]) == set(kgbias_verdicts())
        assert len(frame) == len(rows) and frame["lift"].notna().all()
        assert run.evidence_agreement()[0].said_believed.value > 0
        with pytest.raises(UsageError, match="device has no effect"):
            run.evidence(device="cpu")
        with pytest.raises(UsageError, match="indicators has no effect"):
            run.evidence(indicators="words.toml")
        with pytest.raises(UsageError, match="`margin` must be"):
            run.evidence(margin=float("nan"))


def kgbias_verdicts() -> list[str]:
    from kgbias.evidence import VERDICTS

    return list(VERDICTS)


def test_vectors_need_probes(run: StoredRun) -> None:
    error = asked("--encoder", "minilm", "--store", str(run.store.url)).exception  # type: ignore[attr-defined]
    assert isinstance(error, KgbiasError) and "--model" in str(error)
