"""One model in two languages: the same groups and statements, found and compared."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias import Study
from kgbias.cli import cli
from kgbias.crawl.seeds import known_seeds
from kgbias.errors import DataError, UsageError
from kgbias.evidence.language_pairs import (
    LanguageSide,
    compare_languages,
    pair_by_meaning,
    pair_by_table,
    pair_groups,
    read_parallel,
)
from kgbias.evidence.probe_tables import build_name_tables
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BeliefRun, Generation, Group, Run, Triple
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import ProbeGrid, Scores
from kgbias.packs import load_pack
from tests.texts import Texts
from tests.unit.test_evidence import Believer
from tests.unit.test_languages import LANGUAGES

GROUPS = {
    "de": ("Deutsche", "Franzosen", "Japaner", "Russen"),
    "en": ("German people", "French people", "Japanese people", "Russian people"),
}
ROOTS = {
    "de": ("deutsch", "fran", "japan", "russ"),
    "en": ("german", "fr", "japan", "russia"),
}
PACKS = {"de": ("german", "nationalitaet"), "en": ("sentences", "nationality")}
CATEGORIES = ("gender", "nationality", "religion")
PARALLEL = [(f"lieben ding{n}", f"love thing{n}") for n in range(40)]


class Bilingual(Believer):
    """Of thing n each language believes that it is that of group n % 4, but for what German turns:
    the things up to `turned` are there those of the next group."""

    info = ModelInfo("bilingual", "1")

    def __init__(self, turned: int = 0) -> None:
        super().__init__()
        self.turned = turned

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Any = None
    ) -> ProbeGrid:
        language = "de" if "ding" in statements[0] else "en"
        numbers = [int(text.rpartition("ing")[2]) for text in statements]
        belongs = [(n + (language == "de" and n < self.turned)) % len(ROOTS["de"]) for n in numbers]
        roots = ROOTS[language]
        places = [next((p for p, r in enumerate(roots) if r in g.lower()), 9) for g in groups]
        rng = np.random.default_rng(len(groups) * 1000 + len(statements) + self.turned)
        values = (
            -25.0
            + 6.0 * np.equal.outer(places, belongs)
            + rng.normal(0, 0.4, (len(groups), len(statements)))
        )
        two = np.full(values.shape, 2)
        alone = Scores(np.full(len(groups), -2.0), np.ones(len(groups), dtype=np.int64))
        return ProbeGrid(Scores(values - 2, two + 1), Scores(values, two), alone)


def crawl(store: SQLiteStore, language: str) -> StoredRun:
    """A run with a pack of the language in which the groups say the things in turn."""
    pack, category = PACKS[language]
    groups = tuple(Group(name, category) for name in GROUPS[language])
    words = {"name": pack, "version": 1, "language": language, "hash": load_pack(pack).hash}
    run = Run(f"in {language}", ModelInfo("bilingual", "1"), {"seed": 0, "pack": words}, groups)
    store.begin_run(run)
    generations = []
    for n, pair in enumerate(PARALLEL):
        group = groups[n % len(groups)]
        predicate, object = pair[language == "en"].split()
        generations.append(
            Generation(
                run.id, str(n), group.id, "none", "object", 0, 0, "ok",
                triple=Triple(group.name, predicate, object),
            )
        )  # fmt: skip
    store.record_round(run.id, "none", 0, generations)
    store.set_status(run.id, "complete")
    return StoredRun(store, run)


@pytest.fixture
def study(store: SQLiteStore) -> Study:
    """Crawls in German and English, both asked; in German 8 of 40 things are another group's."""
    for language in GROUPS:
        crawl(store, language)
    opened = kgbias.open(store.url)
    for language in GROUPS:
        scorer: Any = Bilingual(turned=8)
        opened.run(f"in {language}").evidence(scorer)
    return opened


def test_what_was_planted_in_two_languages_is_found(study: Study, texts: Texts) -> None:
    both = study.compare_languages("in de", "in en", parallel=parallel_table())
    rows = both.records()
    assert len(rows) == 160 and both.languages == ("de", "en")
    for row in rows:
        n = int(row["statement"].rpartition("ding")[2])
        assert row["other_statement"] == f"love thing{n}"
        place = GROUPS["de"].index(row["group"])
        assert row["other_group"] == GROUPS["en"][place]
        shown = [
            language for language, own in (("de", (n + (n < 8)) % 4), ("en", n % 4)) if own == place
        ]
        assert row["shown_in"] == ", ".join(shown), row
        # Of the turned things two groups each differ, and nothing else.
        assert (row["q_value"] < 0.05) == (len(shown) == 1), row
    (comparison,) = both.comparisons
    assert (
        comparison.dealt_correlation.p_value < 0.1 and abs(comparison.dealt_correlation.mean) < 0.4
    )
    texts.check_lines(both.heading(), "de alone,")
    # Turned round, every difference changes its sign alone: nothing is paired by name.
    turned = study.compare_languages("in en", "in de", parallel=parallel_table()).records()
    by_place = {(row["other_group"], row["other_statement"]): row for row in turned}
    for row in rows:
        other = by_place[row["group"], row["statement"]]
        assert other["difference"] == pytest.approx(-row["difference"])
        assert other["q_value"] == pytest.approx(row["q_value"])
    axes = both.draw()
    assert axes.get_xlabel() == "lift in de (bits)"


def parallel_table() -> list[dict[str, str]]:
    return [dict(zip(("de", "en"), pair, strict=True)) for pair in PARALLEL]


def test_the_command_compares_two_languages(study: Study, tmp_path: Path, texts: Texts) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("de,en\n" + "".join(f"{a},{b}\n" for a, b in PARALLEL), "utf-8")
    options = ["in de", "in en", "--store", study.url, "--parallel", str(table)]
    shown = CliRunner().invoke(cli, ["compare", *options])
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    texts.check("\n".join(lines[:4]))
    assert "love thing" in shown.stdout and "128 more with" in lines[-1]
    data = json.loads(CliRunner().invoke(cli, ["compare", *options, "--json"]).stdout)
    assert data["paired_by"] == "table" and data["categories"][0]["both"] == 32
    refused = CliRunner().invoke(cli, ["compare", *options[1:]], standalone_mode=False)
    page = tmp_path / "page.html"
    written = CliRunner().invoke(cli, ["report", *options, "-o", str(page)])
    assert written.exit_code == 0, written.output
    text = page.read_text("utf-8")
    texts.check_lines(text, "bilingual believes")
    assert "love thing9" in text
    assert isinstance(refused.exception, UsageError)
    texts.check(refused.exception)
    # The list of runs says in which language each is.
    assert [row["language"] for row in study.runs().records()] == ["de", "en"]
    first, second = CliRunner().invoke(cli, ["runs", "--store", study.url]).stdout.splitlines()
    assert " in de  complete" in first
    assert " in en  complete" not in second and "complete" in second


def test_what_cannot_be_compared_says_what_to_do(store: SQLiteStore, texts: Texts) -> None:
    for language in GROUPS:
        crawl(store, language)
    with kgbias.open(store.url) as study:
        with texts.raises(UsageError):
            study.compare_languages("in de", "in en")
        with texts.raises(UsageError):
            study.compare_languages("in de", "in de")


def test_one_language_with_itself_differs_in_nothing(store: SQLiteStore) -> None:
    """Two samples of noise of one size: no difference, and dealt groups reach what was found only
    where the same groups believe the same."""
    runs = [crawl(store, language) for language in GROUPS]
    sides = []
    for run, language in zip(runs, GROUPS, strict=True):
        scorer: Any = Bilingual()
        with kgbias.open(store.url) as study:
            study.run(run.name).evidence(scorer)
        (belief_run,) = run.find_all(BeliefRun)
        (table,) = build_name_tables(run, belief_run, run.triples()).values()
        sides.append(LanguageSide(run, language, belief_run, table))
    pairs = pair_by_table(sides[0].texts, sides[1].texts, PARALLEL)
    found = compare_languages(sides[0], sides[1], pairs)
    assert found is not None and found.dealt_correlation.p_value < 0.1
    assert min(d.q_value for d in found.differences.values()) > 0.05
    assert pair_groups(*runs) == {
        group.id: other for group, other in zip(runs[1].groups, runs[0].groups, strict=True)
    }
    assert compare_languages(sides[0], sides[1], pairs[:1]) is None


def test_the_groups_of_every_two_languages_are_paired(store: SQLiteStore) -> None:
    """By their English names, which each pack gives: with English, and German with all others."""
    runs = {}
    for pack in ("sentences", *LANGUAGES):
        seeds = known_seeds("m", load_pack(pack).groups)
        groups = tuple(g for name in CATEGORIES for g in seeds[name].as_groups())
        run = Run(pack, ModelInfo("m", "1"), {"pack": {"name": pack}}, groups)
        store.begin_run(run)
        runs[pack] = StoredRun(store, run)
    for pack in LANGUAGES:
        pairs = pair_groups(runs["sentences"], runs[pack])
        assert [group.id for group in runs[pack].groups] == list(pairs), pack
        assert len({group.id for group in pairs.values()}) == 35, pack
        assert len(pair_groups(runs["german"], runs[pack])) == 35, pack


def test_statements_are_paired_by_meaning() -> None:
    """Each other's nearest, from the cosine on; what is nearest to a taken one stays alone."""
    vectors = {
        "a": (1.0, 0.0, 0.0), "b": (0.0, 1.0, 0.0), "c": (0.6, 0.8, 0.0),
        "A": (0.99, 0.1, 0.0), "B": (0.05, 1.0, 0.0), "C": (0.0, 0.1, 1.0),
    }  # fmt: skip

    def encode(texts: Sequence[str]) -> Any:
        return np.array([vectors[text] for text in texts])

    pairs = pair_by_meaning("abc", "ABC", encode)
    assert [("abc"[p.first], "ABC"[p.second]) for p in pairs] == [("b", "B"), ("a", "A")]
    assert pairs[0].cosine >= pairs[1].cosine > 0.9
    assert pair_by_meaning("", "ABC", encode) == []
    assert pair_by_meaning("abc", "ABC", encode, min_cosine=1.01) == []


def test_parallel_statements_are_read(tmp_path: Path, texts: Texts) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("EN,de,fr\nare kind,sind nett,\nare shy,,sont timides\n", "utf-8")
    assert read_parallel(path, ("de", "en")) == [("sind nett", "are kind")]
    with texts.raises(DataError):
        read_parallel(path, ("de", "es"))
    with texts.raises(DataError):
        read_parallel(path, ("de", "fr"))
    with texts.raises(DataError):
        pair_by_table(["a", "b"], ["c"], [("a", "c"), ("b", "c")])
