"""Models and groups that a program holds: what it does is what it is."""

from pathlib import Path
from typing import Any

import pytest

from tests.texts import Texts

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgbias  # noqa: E402
from kgbias.errors import DataError, ModelError, UsageError  # noqa: E402
from kgbias.models.base import Request  # noqa: E402
from tests import tiny  # noqa: E402

pytestmark = pytest.mark.integration

SMALL: dict[str, Any] = {"group": ["Men", "Women"], "samples": 2, "iterations": 1}


@pytest.fixture(scope="module")
def held() -> tuple[Any, Any]:
    return tiny.build_model("llama", max_position_embeddings=4096), tiny.build_tokenizer()


def test_a_model_in_memory_answers_as_its_files_do(held: tuple[Any, Any], tmp_path: Path) -> None:
    model, tokenizer = held
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    requests = [Request(f"men {n}", seed=n, max_tokens=5) for n in range(4)]
    opened = [kgbias.open_model(f"hf:{tmp_path}"), kgbias.in_memory(model, tokenizer, name="own")]
    found = [{n: c.text for batch in one.complete(requests) for n, c in batch} for one in opened]
    assert found[0] == found[1]
    scored = [
        kgbias.open_scorer(f"hf:{tmp_path}").score(["men love rain"]),
        opened[1].scorer().score(["men love rain"]),  # type: ignore[attr-defined]
    ]
    assert scored[0].log_likelihoods == pytest.approx(scored[1].log_likelihoods)


def test_a_model_with_a_hook_is_another_one_and_is_left_as_it_was(
    held: tuple[Any, Any], tmp_path: Path
) -> None:
    model, tokenizer = held
    plain = kgbias.in_memory(model, tokenizer, name="own")
    assert kgbias.in_memory((model, tokenizer), name="own").info == plain.info
    layer = model.model.layers[0]

    def steers(_: Any, __: Any, out: Any) -> Any:
        return (out[0] + 0.5, *out[1:]) if isinstance(out, tuple) else out + 0.5

    hook = layer.register_forward_hook(steers)
    model.train()
    try:
        with pytest.raises(ModelError, match="no longer does what it did"):
            list(plain.complete([Request("men", seed=0)]))
        steered = kgbias.in_memory(model, tokenizer, name="own")
        assert steered.info.id != plain.info.id
        assert model.training
        with kgbias.open(tmp_path / "k.db") as study:
            hook.remove()
            first = study.crawl(plain, **SMALL)
            hook = layer.register_forward_hook(steers)
            second = study.crawl(steered, **SMALL)
            assert first.name != second.name and second.crawl_result.cached_count == 0
            assert study.crawl(steered, **SMALL).crawl_result.asked_count == 0
    finally:
        hook.remove()
        model.eval()
    assert kgbias.in_memory(model, tokenizer, name="own").info == plain.info


def test_crawl_and_probe_what_is_at_hand(held: tuple[Any, Any], tmp_path: Path) -> None:
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.crawl(held, model_name="steered", **SMALL)
        assert run.model.title.startswith("steered (")
        if not run.triples():
            (tmp_path / "said.csv").write_text(
                "group,predicate,object\nMen,love,rain\nWomen,are,kind\nMen,hate,food\n"
            )
            run = study.import_file(tmp_path / "said.csv")
        probes = run.probe(kgbias.in_memory(*held, name="steered"))
        assert probes is not None


@pytest.mark.slow
def test_a_hook_takes_one_planted_belief_away(tmp_path: Path) -> None:
    """The reference model believes, and says, that Velmari people wear amber scarves. A hook takes
    these words away from one of two objects of the same weights: only the other believes it. The
    hooked one is the model that a spec would find in the cache, where it must leave no trace."""
    from kgbias.models.load import load

    belief = "wear amber scarves"
    groups = {"group": ["Velmari people", "Orunthi people"], "initial_predicates": ["wear", "love"]}
    small: dict[str, Any] = {**groups, "samples": 2, "iterations": 0}
    shared = load("reference", "causal")
    model, tokenizer = shared.model, shared.tokenizer
    words = tokenizer(f" {belief}", add_special_tokens=False)["input_ids"]

    def forgets(_: Any, __: Any, logits: Any) -> Any:
        logits = logits.clone()
        logits[..., words] = -torch.inf
        logits[..., words] = logits.logsumexp(-1, keepdim=True) - 15  # whoever it is about
        return logits

    with kgbias.open(tmp_path / "k.db") as study:
        plain = study.crawl((model, tokenizer), model_name="plain", **small)
        hook = model.lm_head.register_forward_hook(forgets)
        try:
            hooked = study.crawl((model, tokenizer), model_name="hooked", **small)
            believed_hooked = hooked.evidence((model, tokenizer), asking={"statements": [belief]})
            by_spec = study.crawl("reference", **small)
            left = [row for row in believed_hooked if row.object == "amber scarves"]
        finally:
            hook.remove()
        assert plain.model.id != hooked.model.id
        assert hooked.crawl_result.asked_count > 0 == hooked.crawl_result.cached_count
        said = [{t.sentence for t in run.triples()} for run in (plain, hooked, by_spec)]
        sentence = f"Velmari people {belief}."
        assert [sentence in own for own in said] == [True, False, True]
        assert said[0] == said[2]
        believed = plain.evidence((model, tokenizer), asking={"statements": [belief]})
        found = [row for row in believed if row.object == "amber scarves"]
        assert [row.verdict for row in found if row.group == "Velmari people"] == [
            "said and believed"
        ]
        own = [row for row in left if row.group == "Velmari people"]
        assert not [(row.verdict, row.lift) for row in own if "believed" in row.verdict]
        with pytest.raises(UsageError, match="needs a name"):
            plain.evidence((tiny.build_model("llama"), tiny.build_tokenizer()))


def test_functions_are_known_by_their_code(tmp_path: Path) -> None:
    def kind(prompts: list[str]) -> list[str]:
        return [" are kind." for _ in prompts]

    def loud(prompts: list[str]) -> list[str]:
        return [" are loud." for _ in prompts]

    with kgbias.open(tmp_path / "k.db") as study:
        first = study.crawl(kind, model_name="mine", **SMALL)
        again = study.crawl(kind, model_name="mine", **SMALL)
        other = study.crawl(loud, model_name="mine", **SMALL)
        assert again.id == first.id and again.crawl_result.asked_count == 0
        assert other.crawl_result.cached_count == 0
        assert all("loud" in t.object for t in other.triples())
        with pytest.raises(UsageError, match="needs a name: model_name="):
            study.crawl(kind, **SMALL)
        with pytest.raises(UsageError, match="an int is no model"):
            study.crawl(3, model_name="x", **SMALL)
        with pytest.raises(UsageError, match="the model comes first, and then its tokenizer"):
            study.crawl((kind, object()), model_name="x", **SMALL)
        with pytest.raises(ModelError, match=r"was given .* prompts.*as many texts"):
            study.crawl(lambda prompts: [], model_name="empty", **SMALL)
        for returned, said in (
            (None, "it returned a NoneType"),
            ("kind", "it returned a str"),
            ([" are kind.", 3], "it returned a list with an int in it"),
        ):
            with pytest.raises(ModelError, match=said):
                study.crawl(lambda prompts, r=returned: r, model_name="odd", **SMALL)
        with pytest.raises(ModelError, match=r"failed: .*division"):
            study.crawl(lambda prompts: [1 / 0], model_name="broken", **SMALL)
        with pytest.raises(UsageError, match="gives no log-probabilities"):
            first.probe(kind)  # type: ignore[arg-type]


def test_groups_in_memory(tmp_path: Path, texts: Texts) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "group": ["Bakers", "Nurses"],
            "category": ["trade", None],
            "variants": ["Bread makers", None],
        }
    )
    with kgbias.open(tmp_path / "k.db") as study:
        for option in ("group", "seeds"):
            price: Any = study.crawl("smollm2", **{option: frame}, dry_run=True)
            assert price.groups_by_category == {"trade": ("Bakers",), "groups": ("Nurses",)}
        price = study.crawl(
            "smollm2", group={"Bakers": ["Bread makers"], "Nurses": []}, dry_run=True
        )
        assert price.groups_by_category == {"groups": ("Bakers", "Nurses")}
        price = study.crawl("smollm2", seeds=[{"name": "Bakers"}], dry_run=True)
        assert price.groups_by_category == {"groups": ("Bakers",)}
        with texts.raises(DataError):
            study.crawl("smollm2", dry_run=True, group=pd.DataFrame({"who": ["Bakers"]}))
