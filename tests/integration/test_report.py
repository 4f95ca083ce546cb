import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kgbias.errors import DataError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    CONTENT_WARNING,
    SAMPLE_CAVEAT,
    Group,
    GroupScore,
    Metric,
    Run,
    Score,
)
from kgbias.measure.figures import group_figures
from kgbias.measures import MEASURES, Figure, Measure
from kgbias.models.base import ModelInfo
from kgbias.report import Section, write_report
from kgbias.report import page as page_module
from tests.conftest import require_modules
from tests.hostile import HOSTILE_TEXTS
from tests.report_data import measured_run

pytestmark = pytest.mark.integration

require_modules("matplotlib")

TWO = (Group("Women", "gender"), Group("Men", "gender"))


class Page(HTMLParser):
    """Tags with their attributes, the words a reader sees, and the text of the data element."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.words = ""
        self._inside = ""
        self.text = path.read_text("utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = "data" if dict(attrs).get("id") == "data" else tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data += data
        elif self._inside not in ("script", "style"):
            self.words += data


def report(store: SQLiteStore, run: Run, tmp_path: Path, **more: object) -> Page:
    path = tmp_path / "report.html"
    write_report(StoredRun(store, run), path, **more)  # type: ignore[arg-type]
    return Page(path)


class Counting:
    """A store that counts what is asked of it."""

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> object:
        found = getattr(self._store, name)
        if name == "find_all":
            return self._find_all
        self.asked[name] += 1
        return found

    def _find_all(self, run_id: str, record: type[Any], **filters: Any) -> object:
        self.asked[record.__name__] += 1
        return self._store.find_all(run_id, record, **filters)


@dataclass(frozen=True)
class Drawn:
    """A report that many tests look at, and how its store was asked for it."""

    page: Page
    asked: Counter[str]
    again: Callable[[Path], str]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawn]:
    folder = tmp_path_factory.mktemp("drawn")
    section = Section("Extra <part>", "<p id='here'>own html</p>", "extra")
    with SQLiteStore(str(folder / "kgbias.db")) as store:
        run = measured_run(store, TWO, ["food", "rain", "music"])
        counting = Counting(store)
        counted: Any = StoredRun(counting, run)  # type: ignore[arg-type]
        write_report(counted, folder / "report.html", extra_sections=[section])

        def again(path: Path) -> str:
            write_report(StoredRun(store, run), path, extra_sections=[section])
            return path.read_text("utf-8")

        yield Drawn(Page(folder / "report.html"), counting.asked, again)


def test_a_page_has_what_the_reader_needs(drawn: Drawn) -> None:
    page = drawn.page
    words = " ".join(page.words.split())
    assert CONTENT_WARNING in words and SAMPLE_CAVEAT in words
    assert "What test <model> says about gender" in words
    assert [tag for tag, _ in page.tags].count("svg") == 4
    assert "each group has at most one there, and none that names a group" in words
    assert "Intervals are at 95%. Of" in words and "similar to them" not in words  # no vectors
    data = json.loads(page.data)
    assert [g["name"] for g in data["groups"]] == ["Women", "Men"]
    origin = data["triples"][0]["from"][0]
    assert origin["prompt"].startswith("Q: ") and origin["answer"] and origin["template"]
    assert sum(t["count"] for t in data["triples"]) == 40


def test_a_page_asks_no_one_for_anything(drawn: Drawn) -> None:
    page = drawn.page
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base"), tag
        for name in ("src", "action", "data", "poster", "srcset"):
            assert name not in attributes, (tag, attributes)
        if tag != "svg" and (href := attributes.get("href") or attributes.get("xlink:href")):
            assert href.startswith("#"), href
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.split("script-src")[1]


def test_a_run_is_read_once(drawn: Drawn) -> None:
    assert set(drawn.asked) >= {"triples", "generations", "GroupScore", "metrics", "topics"}
    # Labels are the store's, not the run's: the figures read them, and so do the tests. What people
    # recorded is read by a method's columns, and by its section.
    twice = ("labels", "stereotype_matches")
    assert max(n for name, n in drawn.asked.items() if name not in twice) == 1, drawn.asked


def test_a_new_measure_is_in_the_page(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry of the table and its scores: figures, columns, an exhibit."""
    figure = Figure("sense_mean", "mean sense", ".3f", "higher makes more sense", "mean")
    entry = Measure("sense", (0.0, 1.0), "higher makes more sense", {}, ".2f", (figure,), "lowest")
    monkeypatch.setitem(MEASURES, "sense", entry)
    run = measured_run(store, TWO, ["food", "rain"])
    triples = store.triples(run.id)
    scores = [Score(t.id, 0.25) for t in triples]
    store.save_scores(run.id, Metric("sense", "rule", "1"), scores)
    store.put(run.id, GroupScore, group_figures(run, store.triples(run.id)))
    page = report(store, run, tmp_path)
    data = json.loads(page.data)
    assert [m["name"] for m in data["measures"]] == ["regard", "toxicity", "sense"]
    assert {t["sense"] for t in data["triples"]} == {0.25}
    words = " ".join(page.words.split())
    assert "mean toxicity 95% interval median mean sense 95% interval" in words
    assert "Mean sense per group, 95% intervals" in words and "0.250" in words


def test_ids_are_unique(store: SQLiteStore, tmp_path: Path) -> None:
    groups = (*TWO, Group("Sikhs", "religion"), Group("Jains", "religion"))
    page = report(store, measured_run(store, groups, ["food", "rain"]), tmp_path)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    references = set(re.findall(r'(?:url\(#|href="#)([^")?]+)', page.text))
    assert references <= set(ids)


def test_hostile_text_stays_text(store: SQLiteStore, tmp_path: Path) -> None:
    groups = (
        Group("</title><script>window.pwned=1</script>", "<b>c</b>"),
        Group("$x$_", "<b>c</b>"),
    )
    page = report(
        store, measured_run(store, groups, HOSTILE_TEXTS, per_group=len(HOSTILE_TEXTS)), tmp_path
    )
    assert [tag for tag, _ in page.tags].count("script") == 4
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert tag not in ("img", "style") or tag == "style"
    objects = {t["object"] for t in json.loads(page.data)["triples"]}
    assert "</script><script>window.pwned=1</script>" in objects
    assert [tag for tag, _ in page.tags].count("style") <= 1 + 4  # ours, and one in each figure


@pytest.mark.parametrize(
    "groups",
    [
        (Group("Alone", "one"),),
        tuple(Group(f"Group {n} {'with a long name ' * 5}", "many") for n in range(60)),
    ],
    ids=["one group", "sixty groups with long names"],
)
def test_few_and_many_groups(store: SQLiteStore, tmp_path: Path, groups: tuple[Group, ...]) -> None:
    page = report(store, measured_run(store, groups, ["food", "rain"], per_group=3), tmp_path)
    # Of each group, and of two groups side by side.
    assert [tag for tag, _ in page.tags].count("svg") == 3 + (len(groups) > 1)


def test_one_triple_a_group(store: SQLiteStore, tmp_path: Path) -> None:
    page = report(store, measured_run(store, TWO, ["food"], per_group=1), tmp_path)
    assert not re.search(r"\bnan\b", page.words.lower())


def test_a_run_without_measures_or_triples(store: SQLiteStore, tmp_path: Path) -> None:
    page = report(store, measured_run(store, TWO, ["food"], with_scores=False), tmp_path)
    assert "This run has not been measured" in page.words
    empty = Run("empty", ModelInfo("m"), {}, TWO)
    store.begin_run(empty)
    page = report(store, store.find_run("empty"), tmp_path)
    assert (
        "the crawl was still running" in " ".join(page.words.split())
        and json.loads(page.data)["triples"] == []
    )


def test_a_large_run_is_cut_and_says_so(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "MAX_TRIPLES", 5)
    run = measured_run(store, TWO, [f"thing {n}" for n in range(30)])
    page = report(store, run, tmp_path)
    assert len(json.loads(page.data)["triples"]) == 5
    words = " ".join(page.words.split())
    assert "The 5 most frequent of" in words
    assert "Figures cover all statements; the lists, the graph of a group" in words
    assert "Drawn from the 5 statements said most often." in words


def test_other_parts_add_their_sections(drawn: Drawn) -> None:
    assert ("p", {"id": "here"}) in drawn.page.tags
    assert "Extra <part>" in drawn.page.words


def test_the_same_run_gives_the_same_page(drawn: Drawn, tmp_path: Path) -> None:
    assert drawn.again(tmp_path / "again.html") == drawn.page.text


def test_a_report_that_cannot_be_written_is_not_drawn_and_leaves_nothing(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "render_report", lambda *_: pytest.fail("it was drawn"))
    run = measured_run(store, TWO, ["food"])
    with pytest.raises(DataError, match="cannot write"):
        write_report(StoredRun(store, run), tmp_path / "none" / "report.html")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError, match="cannot write"):
        write_report(StoredRun(store, run), tmp_path)
    assert sorted(tmp_path.iterdir()) == before
