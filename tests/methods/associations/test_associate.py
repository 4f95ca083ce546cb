"""Association tests end to end on static vectors, and their word sets."""

import gzip
import itertools
import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from kgbias.cli import cli
from kgbias.errors import DataError, KgbiasError, UsageError
from kgbias.methods.associations.contexts import CorpusContexts
from kgbias.methods.associations.result import Statistics, published_statistics
from kgbias.methods.associations.sets import (
    fill_slot,
    find_tests,
    published_tests,
    read_tests,
    slot_templates,
)
from kgbias.methods.associations.weat import weat
from kgbias.models.base import ModelInfo
from kgbias.models.vectors import load_static_vectors
from tests.conftest import ROOT, require_modules
from tests.texts import Texts

require_modules("gensim")

DATA = ROOT / "tests" / "data"
# d with ddof=1, partitions at least as extreme, all partitions, sizes of X and Y after losses
GOLDEN = {
    "weat1": (1.5393, 33_289, 126_410_606_437_752, 25, 25),
    "weat2": (1.6279, 88, 63_205_303_218_876, 25, 24),
    "weat3": (-0.8244, 345_524_942, 350_343_565, 32, 9),
    "weat4": (-0.5259, 86_839, 100_947, 17, 6),
    "weat5": (-0.1319, 60_947, 100_947, 17, 6),
    "weat6": (1.8899, 1, 12_870, 8, 8),
    "weat7": (0.9664, 292, 12_870, 8, 8),
    "weat8": (1.2439, 52, 12_870, 8, 8),
    "weat9": (1.2967, 7, 924, 6, 6),
    "weat10": (-0.1982, 8_371, 12_870, 8, 8),
}
LONG = ("weat1", "weat2")  # seconds each: integration/test_associate_exact.py


@pytest.fixture(scope="session")
def word2vec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "word2vec_347x300.txt"
    path.write_bytes(gzip.decompress((DATA / "word2vec_347x300.txt.gz").read_bytes()))
    return path


def plain(path: Path) -> dict[str, np.ndarray]:
    """The vectors as float32, read without any library."""
    rows = [line.split(" ") for line in path.read_text("utf-8").splitlines()[1:]]
    return {row[0]: np.array(row[1:301], dtype=np.float32).astype(float) for row in rows}


def by_hand(path: Path, name: str) -> tuple[float, int, int]:
    """WEAT written out as it is defined, with every partition listed."""
    words, lists = plain(path), published_tests()[name].sets

    def row(word: str) -> np.ndarray | None:
        vector = next((words[f] for f in (word, word.lower()) if f in words), None)
        return None if vector is None else vector / math.sqrt(float(vector @ vector))

    x, y, a, b = ([v for w in lists[role].words if (v := row(w)) is not None] for role in "xyab")
    s = [sum(w @ v for v in a) / len(a) - sum(w @ v for v in b) / len(b) for w in x + y]
    mean = sum(s) / len(s)
    std = math.sqrt(sum((value - mean) ** 2 for value in s) / (len(s) - 1))
    d = (sum(s[: len(x)]) / len(x) - sum(s[len(x) :]) / len(y)) / std
    observed = sum(s[: len(x)])
    sums = [sum(chosen) for chosen in itertools.combinations(s, len(x))]
    return d, sum(value >= observed - 1e-9 for value in sums), len(sums)


def check_against_golden(word2vec: Path, name: str) -> None:
    result = weat(published_tests()[name], load_static_vectors(word2vec))
    d, count, everything, n_x, n_y = GOLDEN[name]
    assert result.effect_size == pytest.approx(d, abs=5e-5)
    assert (result.p_value.at_least, result.p_value.partitions) == (count, everything)
    assert (len(result.sets["x"].known), len(result.sets["y"].known)) == (n_x, n_y)
    assert result.effect.low < result.effect_size < result.effect.high


@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in LONG])
def test_classic_tests_on_word2vec(word2vec: Path, name: str) -> None:
    check_against_golden(word2vec, name)


@pytest.mark.parametrize("name", ["weat4", "weat6", "weat7", "weat8", "weat9", "weat10"])
def test_classic_tests_are_what_exact_enumeration_gives(word2vec: Path, name: str) -> None:
    result = weat(published_tests()[name], load_static_vectors(word2vec))
    d, count, everything = by_hand(word2vec, name)
    print(f"{name}: d {d:.4f}, p {count}/{everything}; kgbias {result.effect_size:.4f}")
    assert result.effect_size == pytest.approx(d, abs=1e-12)
    assert (result.p_value.at_least, result.p_value.partitions) == (count, everything)


def test_population_spread_is_what_wefe_reports(word2vec: Path) -> None:
    result = weat(
        published_tests()["weat6"], load_static_vectors(word2vec), Statistics(spread="population")
    )
    assert result.effect_size == pytest.approx(1.8899 * math.sqrt(16 / 15), abs=5e-5)
    assert result.settings["ddof"] == 0


def test_as_published_is_the_normal_shortcut(word2vec: Path) -> None:
    result = weat(
        published_tests()["weat6"], load_static_vectors(word2vec), published_statistics("weat")
    )
    assert (result.p_value.method, result.settings["comparison"]) == ("normal", ">")
    assert 0 < result.p_value.value < 1e-3
    with pytest.raises(UsageError, match="no method"):
        published_statistics("seat")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["associate", *map(str, arguments)], catch_exceptions=True)


def message(result: Result) -> str:
    assert isinstance(result.exception, KgbiasError), result.exception
    assert result.exception.exit_code == 2 and "\n" not in str(result.exception)
    return str(result.exception)


def test_command_prints_json(word2vec: Path) -> None:
    result = run("--vectors", word2vec, "--test", "weat6,weat7", "--json")
    rows = json.loads(result.stdout)["results"]
    assert [row["test"] for row in rows] == ["weat6", "weat7"]
    first = rows[0]
    assert first["effect_size"] == pytest.approx(1.8899, abs=5e-5)
    assert first["p_value"] == pytest.approx(1 / 12870)
    assert (first["method"], first["model"]) == ("weat", "vectors:word2vec_347x300.txt")
    assert first["p_holm"] == pytest.approx(2 / 12870)
    assert first["settings"]["ddof"] == 1 and first["tails"] == "one"
    assert len({row["id"] for row in rows}) == 2


def test_command_prints_a_table_with_what_it_rests_on(word2vec: Path) -> None:
    result = run("--vectors", word2vec, "--test", "weat5")
    assert "weat5" in result.stdout and "-0.1319" in result.stdout
    for note in (
        "lacks Geoffrey",
        "unequal sets, 17 and 6",
        "Brett as brett",
        "fewer than 8",
        "100,947 partitions, one-tailed, ddof 1",
    ):
        assert note in result.stdout


def test_bad_input_is_one_line(word2vec: Path, tmp_path: Path) -> None:
    assert "no association test 'weat11'" in message(run("--vectors", word2vec, "--test", "weat11"))
    assert "say what to test" in message(run("--test", "weat6"))
    assert "name at least one" in message(run("--vectors", word2vec))
    assert "no method 'seat'" in message(
        run("--vectors", word2vec, "--test", "weat6", "--method", "seat")
    )
    assert "need" in message(run("--vectors", word2vec, "--test", "weat6", "--method", "ceat"))
    assert "cannot read" in message(run("--vectors", tmp_path / "no.txt", "--test", "weat6"))
    assert "no model 'gpt'" in message(run("--model", "gpt", "--test", "weat6"))


def small(path: Path, **rows: list[float]) -> Path:
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in rows.items()]
    path.write_text(f"{len(rows)} 2\n" + "\n".join(lines) + "\n")
    return path


OWN = """
source = "me"
[[test]]
name = "Own"
x = {words = ["m", "n"]}
y = {words = ["p", "q", "gone"], concept = "others"}
a = {words = ["u"]}
b = {words = ["v"]}
"""
GOOD = {"m": [1.0, 0.0], "n": [2.0, 0.0], "p": [0.0, 1.0], "q": [1.0, 1.0], "u": [1.0, 0.0]}


def test_own_tests_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    vectors = small(tmp_path / "v.txt", **GOOD, v=[0.0, 1.0])
    result = run("--vectors", vectors, "--tests-file", file, "--json")
    (row,) = json.loads(result.stdout)["results"]
    # s: 1, 1 against -1, 0; mean 0.25, squares 0.5625 x 2 + 1.5625 + 0.0625 over 3
    assert row["effect_size"] == pytest.approx(1.5 / math.sqrt(2.75 / 3))
    assert row["p_value"] == 1 / 6 and row["missing"]["y"] == ["gone"] and row["source"] == "me"
    bad = tmp_path / "bad.toml"
    for text, expected in (
        ("[[test]]\nname = 3", "needs a name"),
        ("x = [", "not TOML"),
        ("y = 1", "has no"),
        (OWN.replace('["u"]', "[]"), "a.words must be a list of words"),
        (OWN.replace('name = "Own"', 'name = "Own"\nframes = ["{t}"]'), "one {t} and one {a}"),
    ):
        bad.write_text(text)
        with pytest.raises(DataError, match=expected.replace("{", r"\{")):
            read_tests(bad)


@pytest.mark.parametrize(
    ("row", "expected"),
    [("nan 1", "NaN"), ("0 0", "zero"), ("inf 0", "infinity"), ("1 2 3", "cannot be read")],
)
def test_vectors_that_cannot_be_used(tmp_path: Path, row: str, expected: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    vectors = small(tmp_path / "v.txt", **GOOD, v=[0.0, 1.0])
    vectors.write_text(vectors.read_text().replace("v 0.0 1.0", f"v {row}"))
    assert expected in message(run("--vectors", vectors, "--tests-file", file))


def test_no_overlap_is_an_error_that_names_the_set(tmp_path: Path, texts: Texts) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    vectors = small(tmp_path / "v.txt", m=[1.0, 0.0], u=[1.0, 0.0], v=[0.0, 1.0])
    texts.check_lines(message(run("--vectors", vectors, "--tests-file", file)), "knows none")


def test_every_format_gives_the_same_vectors(tmp_path: Path) -> None:
    rows = {"Amy": [1.5, -2.0], "New_York": [0.25, 3.0]}
    text = small(tmp_path / "w.txt", **rows)
    glove = tmp_path / "glove.txt"
    glove.write_text(text.read_text().split("\n", 1)[1])
    binary = tmp_path / "w.bin"
    with binary.open("wb") as file:
        file.write(b"2 2\n")
        for word, row in rows.items():
            file.write(word.encode() + b" " + struct.pack("<2f", *row) + b"\n")
    for path in (text, glove, binary):
        found = load_static_vectors(path).find(["Amy", "new york", "New York", "Bob"])
        assert found.missing == ("new york", "Bob")
        assert found.vectors.tolist() == [[1.5, -2.0], [0.25, 3.0]]
        assert found.other_forms == {"New York": "New_York"}
    assert load_static_vectors(text).find(["AMY", "amy"]).forms == {"AMY": "Amy", "amy": "Amy"}
    assert load_static_vectors(text, fold=False).find(["amy"]).missing == ("amy",)
    with pytest.raises(UsageError, match="no vector format"):
        load_static_vectors(text, "pickle")


def test_fasttext_binary(tmp_path: Path, texts: Texts) -> None:
    from gensim.models.fasttext import FastText, save_facebook_model

    model = FastText([["amy", "bob"]] * 9, vector_size=4, min_count=1, bucket=10, epochs=1)
    path = tmp_path / "f.bin"
    save_facebook_model(model, str(path))
    found = load_static_vectors(path).find(["amy", "zed"])
    assert found.missing == ("zed",)
    assert found.vectors[0] == pytest.approx(model.wv["amy"], abs=1e-6)
    whole = path.read_bytes()
    for size in (92, 95, 96, 100, 110, 120):  # words are at 92 to 118
        path.write_bytes(whole[:size])
        with texts.raises(DataError):
            load_static_vectors(path)


def test_published_sets() -> None:
    sizes = {
        name: tuple(len(words.words) for words in test.sets.values())
        for name, test in published_tests().items()
    }
    assert sizes["c1"] == (25, 25, 25, 25) and sizes["c3-name"] == (32, 32, 25, 25)
    assert sizes["c3-term"] == (15, 15, 25, 25) and sizes["c9-name"] == (14, 14, 8, 8)
    assert sizes["dis"] == (23, 23, 225, 225) and sizes["occ-name"] == (26, 26, 20, 20)
    assert sizes["i1-term"] == (45, 45, 13, 13) and sizes["i2-name"] == (12, 12, 8, 8)
    assert len(published_tests()) == 25
    for test in published_tests().values():
        assert test.source and test.title
        for words in test.sets.values():
            assert slot_templates(words.slot)
    assert [t.name for t in find_tests(["c3", "C6 (term)", "WEAT1"])] == [
        "C3-name",
        "C6-term",
        "weat1",
    ]


def test_classic_sets_are_those_of_wefe() -> None:
    path = DATA / "wefe_word_sets.json"
    lists = {tuple(words) for words in json.loads(path.read_text()).values()}
    for number in range(1, 11):
        for words in published_tests()[f"weat{number}"].sets.values():
            assert words.words in lists


def test_ids_follow_from_the_words() -> None:
    first, second = find_tests(["weat6", "weat7"])
    assert first.id == published_tests()["weat6"].id != second.id


def test_words_in_sentences() -> None:
    assert fill_slot("This is a {}.", "nurse") == ("This is a nurse.", 10)
    assert fill_slot("This is a {}.", "editor") == ("This is an editor.", 11)
    assert fill_slot("{} is here.", "Amy") == ("Amy is here.", 0)
    assert fill_slot("Sofia {}.", "ant") == ("Sofia ant.", 6)


def test_contexts_from_a_corpus(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN.replace('"m", "n"', '"Bill", "South Bill"').replace('"u"', '"pay"'))
    (test,) = read_tests(file)
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("one two Bill will pay\nPay the bill\nSouth Bill repays P and Q\n\n" * 2)
    spans = CorpusContexts(corpus, window=1).find_spans(test, ModelInfo("none"))
    said = {
        word: [(s.text, s.text[s.start : s.end]) for s in row]
        for role in spans.values()
        for word, row in role.items()
    }
    assert said["Bill"] == [("two Bill will", "Bill")] * 2  # not "bill", not within "South Bill"
    assert said["pay"] == [("will pay", "pay"), ("Pay the", "Pay")] * 2  # not "repays"
    assert said["South Bill"] == [("South Bill repays", "South Bill")] * 2
    assert said["p"] == [("repays P and", "P")] * 2 and said["gone"] == []
    assert len(CorpusContexts(corpus, most=1).find_spans(test, ModelInfo("none"))["a"]["pay"]) == 1
    lines = tmp_path / "corpus.jsonl"
    lines.write_text('{"text": "I pay"}\n{"no": 1}\n')
    with pytest.raises(DataError, match="line 2"):
        CorpusContexts(lines).find_spans(test, ModelInfo("none"))


def fasttext(path: Path, words: int = 2, length: int = 3, rows: int = 4) -> Path:
    """A file of fastText's: two words of three numbers, and two buckets, as far as it says so."""
    head = struct.pack("<14id", 793712314, 12, 3, 5, 1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 0.1)
    entries = b"".join(word + b"\0" + struct.pack("<qb", 1, 0) for word in (b"men", b"tea"))
    vocabulary = struct.pack("<3iqq", words, words, 0, 2, 0) + entries
    matrix = struct.pack("<?qq", False, rows, length) + np.ones(12, np.float32).tobytes()
    path.write_bytes(head + vocabulary + matrix)
    return path


def test_a_header_may_not_claim_more_than_the_file_holds(tmp_path: Path, texts: Texts) -> None:
    """Of 80 bytes that claimed a billion numbers, gensim made room for gigabytes."""
    sound = tmp_path / "sound.bin"
    sound.write_bytes(b"2 2\nmen " + np.ones(2, np.float32).tobytes() + b"tea " + bytes(8))
    assert load_static_vectors(sound).find(["men", "tea"]).vectors.shape == (2, 2)
    assert load_static_vectors(fasttext(tmp_path / "fast.bin")).find(["men"]).vectors.shape == (
        1,
        3,
    )
    for name, text in (
        ("claim.bin", b"1000000 2000\nmen " + bytes(60)),
        ("claim.txt", b"1000000 2000\nmen 1 2 3"),
        ("long.txt", b"1 2000000000\nmen 1 2 3"),
        ("minus.bin", b"-1 -2000000000\nmen 1 2 3"),
        ("packed.txt.gz", gzip.compress(b"1000000 2000\nmen 1 2 3", mtime=0)),
    ):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(DataError, match=r"claims|cannot be read"):
            load_static_vectors(tmp_path / name, "word2vec-binary" if "minus" in name else "auto")
    for claim in ({"rows": 10**9}, {"length": 2**40}, {"rows": -4, "length": -3}):
        with texts.raises(DataError):
            load_static_vectors(fasttext(tmp_path / "fast.bin", **claim))


def test_a_test_of_sent_bias(tmp_path: Path, texts: Texts) -> None:
    sets = {
        k: {"category": k.upper(), "examples": [f"{k}1", f"{k}2"]}
        for k in ("targ1", "targ2", "attr1", "attr2")
    }
    (tmp_path / "weat1.jsonl").write_text(json.dumps(sets, indent=2))
    (test,) = read_tests(tmp_path / "weat1.jsonl")
    assert (test.name, test.x.words, test.b.concept) == ("weat1", ("targ11", "targ12"), "ATTR2")
    (tmp_path / "weat2.jsonl").write_text(json.dumps({"targ1": {}}))
    with texts.raises(DataError):
        read_tests(tmp_path / "weat2.jsonl")
