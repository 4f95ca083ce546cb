"""What a program holds is read as what is on disk: tables, texts, groups, word sets, vectors and
scorers, each in every form at every door, and refused in one line that says which forms are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kgbias
from kgbias.crawl.seeds import seeds_in_memory
from kgbias.errors import DataError, KgbiasError, UsageError
from kgbias.methods import associations
from kgbias.methods.associations.sets import parse_tests as word_sets
from kgbias.models.vectors import vectors_in_memory
from kgbias.probe.sets import read_descriptors, read_identities, read_names, read_statements
from tests.rooms import list_readers
from tests.texts import Texts

pd = pytest.importorskip("pandas")

SAID = [
    {"group": "Men", "predicate": "love", "object": "rain", "count": 2},
    {"group": "Women", "predicate": "are", "object": "kind", "count": None},
]


def arrow(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pylist(rows)


def polars(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


FORMS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "list": list,
    "generator": iter,
    "pandas": pd.DataFrame,
    "arrow": arrow,
    "polars": polars,
    "rows": kgbias.Rows,
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
}
# The reader of a door, and rows for it.
DOORS: dict[str, tuple[Callable[[Any], Any], list[dict[str, Any]]]] = {
    "identities": (read_identities, [{"group": "Men", "category": "gender"}]),
    "statements": (read_statements, [{"statement": "love rain", "category": "gender"}]),
    "names": (read_names, [{"name": "Ann", "group": "Women"}]),
    "descriptors": (read_descriptors, [{"descriptor": "kind", "axis": "traits"}]),
    "groups": (seeds_in_memory, [{"group": "Bakers", "category": "trade", "variants": "Cooks"}]),
    **{name: (read, rows) for name, read, rows in list_readers("HELD_TABLES")},
}


@pytest.mark.parametrize("door", DOORS)
def test_a_table_in_memory_is_read_as_its_file(door: str, tmp_path: Path) -> None:
    read, rows = DOORS[door]
    (tmp_path / "table.json").write_text(json.dumps(rows))
    if door == "groups":
        from kgbias.crawl.seeds import read_seeds

        (tmp_path / "groups").write_text(json.dumps(rows))
        expected: Any = read_seeds(str(tmp_path / "groups"))
    else:
        expected = read(str(tmp_path / "table.json"))
    for form, made in FORMS.items():
        if form == "polars" and not _there("polars"):
            continue
        if door == "groups" and form == "generator":
            continue  # a generator is of names
        assert read(made(rows)) == expected, form
    for wrong in (3, pd.DataFrame({"odd": ["x"]}), [["a"]], object()):
        with pytest.raises(KgbiasError) as error:
            read(wrong)
        assert "\n" not in str(error.value) and "kgbias-" not in str(error.value)


def _there(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


def test_statements_in_every_form_are_one_run(texts: Texts) -> None:
    with kgbias.open(None, progress=False) as study:
        runs = {
            form: study.import_file(made(SAID))
            for form, made in FORMS.items()
            if form not in ("columns",) and (form != "polars" or _there("polars"))
        }
        assert len({run.id for run in runs.values()}) == 1
        assert runs["list"].import_result.statements == 3
        with texts.raises(DataError):
            study.import_file(pd.DataFrame({"who": ["Men"]}))
        with texts.raises(DataError):
            study.import_file(3)  # type: ignore[arg-type]


def test_the_index_of_a_frame_is_a_column_if_it_has_a_name() -> None:
    frame = pd.DataFrame(SAID)
    with kgbias.open(None, progress=False) as study:
        plain = study.import_file(frame)
        assert study.import_file(frame.set_index(["group", "predicate"])).id == plain.id
        counted = frame.groupby(["group", "predicate", "object"]).size()
        assert study.import_file(counted.to_frame("count")).import_result.statements == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["Bakers", float("nan")], "nan in a list of names is no text, but a float"),
        ([["Bakers"]], "no text, but a list"),
        (3, "3 is no name"),
        ([], "`group` is an empty list"),
        (pd.Series([], dtype=str), "`group` is an empty list"),
        (pd.DataFrame({"group": []}), "the table has no rows"),
        ({"Bakers": [float("nan")]}, "a name in variants is empty"),
        ({"Bakers": [["x"]]}, "a name in variants is no text"),
        ({"trade": {"Bakers": []}, "Men": ["Boys"]}, "trade is a dict and another value is none"),
        (pd.DataFrame({"group": ["a", ["b"]]}), "row 2: the group is no text"),
        (pd.DataFrame({"group": [float("nan"), "b"]}), "row 1: the group is empty"),
    ],
)
def test_groups_that_are_none_are_refused_in_a_line(given: Any, message: str) -> None:
    with pytest.raises(KgbiasError, match=message):
        kgbias.price("smollm2", group=given)


def test_names_with_variants_and_categories(texts: Texts) -> None:
    (trade,) = seeds_in_memory({"trade": {"Bakers": ["Bread makers"], "Nurses": []}})
    assert (trade.category.name, trade.groups) == ("trade", ("Bakers", "Nurses"))
    assert trade.variants == {"Bakers": ("Bread makers",)}
    series = kgbias.price("smollm2", group=pd.Series(["Bakers", "Nurses"]))
    assert series.groups_by_category == {"custom": ("Bakers", "Nurses")}
    with texts.raises(DataError):
        kgbias.price("smollm2", seeds=["Bakers"])


WORDS = [f"w{n}" for n in range(12)]
MATRIX = np.random.default_rng(1).normal(size=(12, 4))
SETS = {"men": WORDS[:3], "women": WORDS[3:6], "career": WORDS[6:9], "family": WORDS[9:]}


def test_vectors_in_every_form_are_one_model(texts: Texts) -> None:
    forms: list[Any] = [
        dict(zip(WORDS, MATRIX, strict=True)),
        dict(zip(WORDS, MATRIX.tolist(), strict=True)),
        (WORDS, MATRIX),
        (MATRIX, WORDS),
        pd.DataFrame(MATRIX, index=WORDS),
    ]
    if _there("gensim"):
        from gensim.models import KeyedVectors

        keyed = KeyedVectors(4)
        keyed.add_vectors(WORDS, MATRIX.astype(np.float64))
        forms.append(keyed)
    read = [vectors_in_memory(form) for form in forms]
    for one in read[:5]:
        assert one.info == read[0].info
    for one in read:
        assert one.find(["w2", "W2", "none"]).vectors == pytest.approx(
            np.stack([MATRIX[2], MATRIX[2]]), abs=1e-6
        )
    other = vectors_in_memory((WORDS, MATRIX + 1e-3))
    assert other.info != read[0].info
    with kgbias.open(None, progress=False) as study:
        (found,) = associations.associate(study, tests=SETS, vectors=forms[0])
        (same,) = associations.associate(study, tests={"own": SETS}, vectors=(WORDS, MATRIX))
    assert found.effect == same.effect
    texts.check(found.test.name)
    a, b = (MATRIX[n : n + 3] / np.linalg.norm(MATRIX[n : n + 3], axis=1)[:, None] for n in (6, 9))
    unit = MATRIX / np.linalg.norm(MATRIX, axis=1)[:, None]
    s = (unit @ a.T).mean(axis=1) - (unit @ b.T).mean(axis=1)
    own = (s[:3].mean() - s[3:6].mean()) / s[:6].std(ddof=1)
    assert found.effect_size == pytest.approx(own)


@pytest.mark.parametrize(
    "given",
    [{}, 3, "no-such-file.txt", {"a": [1, 2], "b": [1]}, (WORDS, MATRIX[:3]), ([1, 2], MATRIX[:2])],
)
def test_what_is_no_vectors_is_refused_in_a_line(given: Any) -> None:
    with kgbias.open(None, progress=False) as study, pytest.raises(DataError) as error:
        associations.associate(study, tests=SETS, vectors=given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "made",
    [pd.DataFrame({name: words for name, words in SETS.items()}), 3],
    ids=["frame", "number"],
)
def test_what_is_no_test_is_told_which_forms_are(made: Any, texts: Texts) -> None:
    with texts.raises(DataError):
        word_sets(made)


def test_a_series_of_counts_is_told_how_to_become_a_table() -> None:
    counts = pd.DataFrame(SAID).groupby(["group", "predicate", "object"]).size()
    message = r"a Series of numbers is no table: .* \.reset_index\(name=\"count\"\) makes"
    with kgbias.open(None, progress=False) as study:
        with pytest.raises(DataError, match=message):
            study.import_file(counts)
        run = study.import_file(counts.reset_index(name="count"))
        assert run.import_result.statements == 2
    with pytest.raises(DataError, match=message):
        kgbias.price("smollm2", group=counts)


def test_word_sets_that_are_none_are_refused_in_a_line() -> None:
    for wrong in (
        {"x": ["a"], "y": ["b"]},
        {**SETS, "men": 3},
        {**SETS, "men": ["he", float("nan")]},
        {**SETS, "men": "he"},
        [3],
    ):
        with pytest.raises(DataError):
            word_sets(wrong)  # type: ignore[arg-type]
    with kgbias.open(None) as study, pytest.raises(UsageError, match="sampels"):
        associations.associate(study, tests=SETS, vectors={"a": [1.0]}, sampels=3)  # type: ignore[call-arg]


OTHERS: dict[str, Any] = {"toxicity": None, "identity_attack": None, "acceptability": None}


@pytest.fixture
def said() -> Any:
    with kgbias.open(None, progress=False) as study:
        yield study.import_file(SAID)


def measured(run: Any, scorer: Any) -> dict[str, tuple[float, str]]:
    run.measure(scorers={"regard": scorer, **OTHERS}, axes=False)
    return {
        t.group: (t.scores["regard"].value, t.scores["regard"].label)
        for t in run.triples()
        if "regard" in t.scores
    }


@pytest.mark.parametrize(
    ("said_of_men", "expected"),
    [
        (0.5, (0.5, "positive")),
        (-1, (-1.0, "negative")),
        (np.float32(0), (0.0, "neutral")),
        ("negative", (-1.0, "negative")),
        ({"positive": 0.7, "neutral": 0.2, "negative": 0.1}, (pytest.approx(0.6), "positive")),
        ({"label": "Negative", "score": 0.9}, (-1.0, "negative")),  # as a pipeline gives one
        (
            [
                {"label": "positive", "score": 0.7},
                {"label": "neutral", "score": 0.2},
                {"label": "negative", "score": 0.1},
            ],
            (pytest.approx(0.6), "positive"),
        ),
        (kgbias.Judgement(0.25, "other", {}), (0.25, "other")),
        (None, None),
        (float("nan"), None),
    ],
)
def test_a_function_scores_statements(said: Any, said_of_men: Any, expected: Any) -> None:
    def scorer(texts: list[str]) -> list[Any]:
        return [said_of_men if text.startswith("Men ") else 0.0 for text in texts]

    found = measured(said, scorer)
    assert found.get("Men") == expected
    assert found["Women"] == (0.0, "neutral")


def test_another_function_of_the_same_name_is_another_scorer(said: Any) -> None:
    read: list[int] = []

    def of(value: float) -> Any:
        def scorer(texts: list[str]) -> list[float]:
            read.append(len(texts))
            return [value for _ in texts]

        return scorer

    assert measured(said, of(0.5))["Men"][0] == 0.5
    first = len(read)
    assert measured(said, of(0.5))["Men"][0] == 0.5
    assert len(read) == first  # the same code and value: kept, though it counts its calls
    assert measured(said, of(-0.5))["Men"][0] == -0.5
    assert len(read) > first


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (lambda texts: [], "was given .* and returned 0 values"),
        (lambda texts: 0.5, "returned a float: it has to be a function from a list"),
        (lambda texts: "positive", "returned a str"),
        (lambda texts: [{"positive": "much"} for _ in texts], "a number from -1 to 1"),
        (lambda texts: [7 for _ in texts], "a number from -1 to 1"),
        (lambda texts: [[1] for _ in texts], "a number from -1 to 1"),
        (lambda texts: ["odd" for _ in texts], "positive, neutral, negative"),
        (lambda texts: [kgbias.Judgement(0, "odd", {}) for _ in texts], "'odd': .*neutral"),
        (lambda texts: [1 / 0 for _ in texts], "failed: .*division"),
        (3, "a scorer of regard is no int: give a spec, or a function"),
    ],
)
def test_scorers_that_are_none_are_refused_in_a_line(said: Any, scorer: Any, message: str) -> None:
    with pytest.raises(KgbiasError, match=message) as error:
        measured(said, scorer)
    assert "\n" not in str(error.value)
