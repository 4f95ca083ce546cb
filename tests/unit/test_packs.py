"""Prompt packs: what a prompt holds, what a crawl of a pack asks, and what a faulty folder says."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.configure import configure
from kgbias.crawl.crawler import crawl
from kgbias.crawl.seeds import choose_seeds, published_seeds
from kgbias.errors import DataError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.ids import normalise
from kgbias.io.progress import SilentProgress
from kgbias.io.resources import resource_path
from kgbias.io.templates import render_template
from kgbias.language.words import REFUSAL_FILTERS
from kgbias.models.base import Request
from kgbias.models.truncate import Truncation
from kgbias.packs import load_pack, pack_names
from kgbias.reference.world import INITIAL_PREDICATES
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

GENDER = tuple(choose_seeds("any", ["gender"]))
SENTENCES = load_pack("sentences")


def config(**more: object) -> CrawlConfig:
    return configure(
        "any",
        **{
            "prompts": "sentences",
            "category": "gender",
            "samples": 3,
            "iterations": 2,
            "predicate_prompts": 3,
            "object_prompts": 3,
            "answers": 1,
            "redraw": False,
            **more,
        },  # type: ignore[arg-type]
    )


def chatter(request: Request) -> str:
    """An answer that no example has; where the prompt ends in a group's name, with a predicate."""
    last = str(request.prompt).rpartition("\n")[2]
    word = f"thing {request.seed % 997}"
    return f" enjoy {word}." if last in GENDER[0].groups else f" {word}."


def test_the_packs_of_kgbias_are_all_there() -> None:
    languages = "arabic dutch french german hindi italian mandarin polish portuguese".split()
    assert pack_names() == [*languages, "salinas-2023", "sentences", "spanish"]
    for name in pack_names():
        pack = load_pack(name)
        assert pack.name == name and {"initialise", "predicate", "object", "seeds"} <= set(
            pack.templates
        )
        for template in pack.templates.values():
            assert template.render("completion") and template.render("chat")


def test_the_published_prompts_are_those_of_the_paper(texts: Texts) -> None:
    pack = load_pack("salinas-2023")
    women = pack.example(_said("Women", "love", "music"))
    prompt = pack.template("object").render(
        group="Men", predicate="love", examples=[women], offensive=True
    )
    texts.check(prompt)
    first = pack.template("initialise").render(group="Men", predicate="are", prefix="Well,")
    assert first == "Well, Men are"


def test_a_prompt_of_sentences_to_the_letter(texts: Texts) -> None:
    examples = [SENTENCES.example(_said("Cooks", "love", "salt"))]
    prompt = SENTENCES.template("initialise").render(
        wording=1, group="Men", predicate="hate", examples=examples
    )
    texts.check(prompt)
    assert SENTENCES.template("initialise").wording_label(1) == "initialise@1.2"


def test_the_pool_holds_no_group_of_the_seeds_and_no_sentence_twice() -> None:
    for name in ("sentences", "german"):
        sentences = load_pack(name).pool.sentences
        assert len({s.sentence for s in sentences}) == len(sentences)
        assert len({normalise(s.object) for s in sentences}) == len(sentences)
    asked = {normalise(group) for seed in published_seeds().values() for group in seed.groups}
    assert len(SENTENCES.pool.sentences) >= 100
    assert not asked & {normalise(s.group) for s in SENTENCES.pool.sentences}


def test_what_is_drawn_from_the_pool() -> None:
    for seed in range(50):
        opening = SENTENCES.opening_examples("love", Random(seed))
        assert len(opening) == 4 and "love" not in {e.predicate for e in opening}
        assert len({e.group for e in opening}) == len({e.predicate for e in opening}) == 4
        shown = [_said("Men", "hate", "noise")]
        mixed = SENTENCES.mix_examples(shown, Random(seed))
        assert len(mixed) == 4 and [e.predicate for e in mixed].count("hate") == 1
    orders = {
        [e.group for e in SENTENCES.mix_examples(shown, Random(seed))].index("Men")
        for seed in range(50)
    }
    assert orders == {0, 1, 2, 3}
    assert load_pack("salinas-2023").mix_examples(shown, Random(0)) == [
        load_pack("salinas-2023").example(shown[0])
    ]


def test_a_crawl_of_sentences(store: SQLiteStore) -> None:
    model = ScriptedModel(chatter)
    result = crawl(config(), model, store)
    assert result.unfilled_count == 0 and result.outcomes["ok"] == config().place_count
    assert result.run.config["pack"] == {
        "name": "sentences",
        "version": 2,
        "language": "en",
        "hash": SENTENCES.hash,
        "reader": "english@3",
    }
    assert {r.truncation for r in model.requests} == {Truncation(min_p=0.1)}
    for generation in store.generations(result.run.id):
        *_, last = lines = generation.prompt.split("\n")
        assert len(lines) >= 7 and last.startswith(("Women", "Men", "Non-binary people"))
        assert len(generation.shown) == (0 if generation.strategy == "initialise" else 2)


def test_the_wordings_are_drawn_evenly_and_kept(store: SQLiteStore) -> None:
    result = crawl(config(samples=6), ScriptedModel(chatter), store)
    used = Counter(
        (g.group_id, g.template)
        for g in store.generations(result.run.id)
        if g.strategy == "initialise"
    )
    predicates = len(config().initial_predicates)
    assert set(used.values()) == {predicates * 2}  # 6 samples of each in 3 wordings
    assert {t for _, t in used} == {f"initialise@1.{n}:completion" for n in (1, 2, 3)}


def test_an_echo_is_asked_again_with_other_examples(store: SQLiteStore) -> None:
    """A model that copies the object of the last example half of the time."""

    def copycat(request: Request) -> str:
        *_, example, last = str(request.prompt).split("\n")
        if request.seed % 2:
            return chatter(request)
        words = example.rstrip(".").split()
        return f" adore {words[-1]}." if last in GENDER[0].groups else f" {' '.join(words[2:])}."

    result = crawl(config(), ScriptedModel(copycat), store)
    by_place: dict[str, list[str]] = {}
    for g in store.generations(result.run.id):
        by_place.setdefault(g.path.partition("#")[0], []).append(g.prompt)
        assert (g.outcome == "echo") == (g.reason == "repeats an example")
        assert g.outcome != "echo" or g.triple is None
    repeated = [prompts for prompts in by_place.values() if len(prompts) > 1]
    assert result.outcomes["echo"] > 20 and result.well_formed_share > 0.95
    assert repeated and all(len(set(prompts)) == len(prompts) for prompts in repeated)
    for prompts in repeated:  # what is asked stays: the group and, where it is named, the predicate
        assert len({prompt.rpartition("\n")[2] for prompt in prompts}) == 1

    kept = crawl(config(filters="refusal"), ScriptedModel(copycat), store)
    assert kept.outcomes["echo"] == 0 and kept.outcomes.total() < result.outcomes.total()


def test_a_rejected_answer_is_drawn_again_from_the_prompt(store: SQLiteStore) -> None:
    def copycat(request: Request) -> str:
        *_, example, last = str(request.prompt).split("\n")
        words = example.rstrip(".").split()
        if request.seed % 2 or last in GENDER[0].groups:
            return chatter(request)
        return f" {' '.join(words[2:])}."

    asked = config(answers=3, redraw=True)
    model = ScriptedModel(copycat)
    result = crawl(asked, model, store)
    prompts: dict[str, set[str]] = {}
    for g in store.generations(result.run.id):
        prompts.setdefault(g.path.rpartition(".")[0], set()).add(g.prompt)
    assert result.outcomes["echo"] > 20
    assert {len(own) for own in prompts.values()} == {1}
    assert len(prompts) * 3 == asked.place_count == result.outcomes["ok"] + result.unfilled_count
    assert len({r.seed for r in model.requests}) == len(model.requests) == result.asked_count


def test_the_published_prompts_repeat_a_prompt_as_it_was(store: SQLiteStore) -> None:
    def refusing(request: Request) -> str:
        return " noise" if request.seed % 2 else " This is offensive"

    result = crawl(config(prompts="salinas-2023"), ScriptedModel(refusing), store)
    places: dict[str, set[str]] = {}
    for g in store.generations(result.run.id):
        places.setdefault(g.path.partition("#")[0], set()).add(g.prompt)
    assert all(len(prompts) == 1 for prompts in places.values())


def test_what_a_pack_sets_and_what_it_does_not(texts: Texts) -> None:
    assert config().min_p == 0.1 and config().filters == ("refusal", "echo")
    assert config(min_p=0).min_p == 0 and not config(min_p=0).truncation
    assert config(top_p=0.9).truncation == Truncation(top_p=0.9)
    assert not config(temperature=0, answers=None, redraw=None).truncation
    assert config(answers=None, redraw=None).answers > 1 and config(redraw=None).redraw
    published = config(prompts="salinas-2023")
    assert not published.truncation and published.filters == ("salinas-2023", "refusal")
    assert published.arms == ("none",) and "pack" not in published.as_dict()
    assert config(preset="salinas-2023", prompts=None).arms == ("both",)
    assert config(preset="salinas-2023", prompts=None, arms="none").arms == ("none",)
    with pytest.raises(UsageError, match="leave out `prompts`"):
        config(preset="salinas-2023")
    with pytest.raises(UsageError, match="'sentences' have no preset"):
        config(preset="sentences", prompts=None)
    with texts.raises(UsageError):
        config(prompts="sentence")


def test_the_reference_model_is_asked_in_its_own_predicates() -> None:
    assert configure("reference").initial_predicates == INITIAL_PREDICATES
    assert configure("reference", initial_predicates="are").initial_predicates == ("are",)
    assert not {"love", "hate", "can't"} & set(config().initial_predicates)


def test_the_hash_of_a_pack_is_that_of_its_files(tmp_path: Path) -> None:
    shutil.copytree(resource_path("prompts", "sentences"), tmp_path / "own")
    same = load_pack(tmp_path / "own")
    assert same.hash == SENTENCES.hash
    shutil.copytree(tmp_path / "own", tmp_path / "other")
    pool = tmp_path / "other" / "pool.toml"
    pool.write_text(pool.read_text("utf-8").replace("cheap noodles", "dear noodles"), "utf-8")
    assert load_pack(tmp_path / "other").hash != SENTENCES.hash


Fault = Callable[[Path], object]


def _replaced(name: str, old: str, new: str) -> Fault:
    def fault(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), "utf-8")

    return fault


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (_replaced("pack.toml", 'name = "sentences"', ""), "a pack needs 'name', a text"),
        (_replaced("pack.toml", "version = 2", 'version = "x"'), "needs 'version', a whole number"),
        (_replaced("pack.toml", "pool.toml", "../pool.toml"), "the name of a file beside it"),
        (_replaced("pack.toml", "pool.toml", "lake.toml"), "has no lake.toml"),
        (_replaced("pack.toml", "initialise = 4", "initialise = -1"), "a number from 0 to 50"),
        (_replaced("pack.toml", "min_p = 0.1", 'min_p = "x"'), "'min_p' of \\[crawl\\]"),
        (_replaced("pack.toml", "min_p", "seed"), "\\[crawl\\] cannot set 'seed'"),
        (_replaced("pack.toml", "redraw = true", "redraw = 1"), "'redraw' of \\[crawl\\] has"),
        (_replaced("pack.toml", "samples = 3", "samples = true"), "'samples' of \\[crawl\\] has"),
        (_replaced("pack.toml", "{{ object }}", "{{ objekt }}"), "'objekt' is undefined"),
        (_replaced("object.toml", "{{ header }}", "{{ heading }}"), "'heading' is undefined"),
        (
            _replaced("object.toml", "{% endfor -%}", ""),
            "object.toml: .*Unexpected end of template",
        ),
        (_replaced("object.toml", "max_tokens = 20", ""), "needs 'max_tokens', a whole number"),
        (_replaced("object.toml", "max_tokens = 20", "max_tokens = 0"), "at least 1"),
        (
            _replaced("object.toml", 'stop = ["\\n"]', "stop = [1]"),
            "'stop' must be a list of texts",
        ),
        (_replaced("pool.toml", "Gamers | love | staying up late", "Gamers love"), "is not GROUP"),
        (lambda folder: (folder / "object.toml").unlink(), "has no object.toml"),
    ],
)
def test_a_faulty_folder_is_one_line(tmp_path: Path, fault: Fault, says: str) -> None:
    folder = tmp_path / "own"
    shutil.copytree(resource_path("prompts", "sentences"), folder)
    fault(folder)
    with pytest.raises(DataError, match=says) as error:
        load_pack(folder)
    assert "\n" not in str(error.value)


def test_the_german_pack_asks_in_german(store: SQLiteStore) -> None:
    asks = config(prompts="german", iterations=1)
    assert [group.name for group in asks.groups][:2] == ["Frauen", "Männer"]
    model = ScriptedModel(
        lambda request: (
            " lieben das Meer."
            if str(request.prompt).endswith(("Frauen", "Männer", "Menschen", "Personen"))
            else f" Ding {request.seed % 997}."
        )
    )
    result = crawl(asks, model, store)
    assert result.run.config["pack"]["language"] == "de"
    assert result.outcomes["ok"] > 0.9 * result.outcomes.total()
    prompts = " ".join(str(request.prompt) for request in model.requests)
    assert "Was Leute übereinander sagen:" in prompts and "people" not in prompts.casefold()


def test_refusals_in_german() -> None:
    refuses = REFUSAL_FILTERS["refusal-german"]
    assert refuses(" Es tut mir leid, das kann ich nicht sagen.")
    assert refuses("Ich kann dabei leider nicht helfen.") and refuses(
        "Als KI habe ich keine Meinung"
    )
    assert not refuses(" können nicht gut kochen.") and not refuses(" lieben Entschuldigungen.")


def test_a_template_cannot_reach_out(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(resource_path("prompts", "sentences"), folder)
    reach = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    _replaced("object.toml", "{{ header }}", reach)(folder)
    with pytest.raises(DataError, match="may not use calls"):
        load_pack(folder)


def _said(group: str, predicate: str, object: str) -> object:
    return SENTENCES.example(
        type("Said", (), dict(group=group, predicate=predicate, object=object))
    )


def test_a_crawl_of_few_well_formed_answers_says_what_to_try(store: SQLiteStore) -> None:
    class Notes(SilentProgress):
        def __init__(self) -> None:
            self.lines: list[str] = []

        def note(self, text: str) -> None:
            self.lines.append(text)

    notes = Notes()
    crawl(
        config(prompts="salinas-2023", max_attempts=2),
        ScriptedModel(lambda request: ""),
        store,
        progress=notes,
    )
    (said,) = [line for line in notes.lines if "well-formed" in line]
    assert said.endswith('or prompts="sentences"')


def test_what_a_template_may_say() -> None:
    values = {"group": "Women", "examples": [{"said": ["a", "b"]}, {"said": []}], "n": 2}
    for text, said in (
        (
            "{% for e in examples %}{{ loop.index + 1 }}{% for s in e.said %}{{ s }}{% endfor %}"
            "{% endfor %}",
            "2ab3",
        ),
        ("{{ 'no' if n > 1 and group is string else group }} {{ group | upper }}", "no WOMEN"),
        ("{{ examples[0].said | join(', ') }} {{ group[:2] ~ n }} {{ n - 1 }}", "a, b Wo2 1"),
        ("{% if 'Wo' in group and not none %}{{ group | default('x') }}{% endif %}", "Women"),
    ):
        assert render_template(text, values) == said


def test_a_pipe_in_a_pack_is_not_waited_for(tmp_path: Path, texts: Texts) -> None:
    folder = tmp_path / "own"
    shutil.copytree(resource_path("prompts", "sentences"), folder)
    (folder / "object.toml").unlink()
    os.mkfifo(folder / "object.toml")
    with texts.raises(DataError):
        load_pack(folder)
