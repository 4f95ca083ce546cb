"""Scores of texts, against log-likelihoods worked out token by token on tiny random models."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgbias.errors import DataError, ModelError, UsageError
from kgbias.io.progress import SilentProgress
from kgbias.models.load import unload
from kgbias.models.score.engine import TIERS, CausalEngine, join_trees, pack_trees
from kgbias.models.score.load import open_scorer
from tests import tiny
from tests.texts import Texts

pytestmark = pytest.mark.integration

torch = pytest.importorskip("torch")

GROUPS = ["men", "women", "tall women"]
STATEMENTS = ["love food", "love rain", "are kind.", "hate food and rain"]


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_model(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ["men", "women", "love", "food", "un", "##kind", "are", "."]
    return tiny.save_bert(tmp_path_factory.mktemp("bert"), words)


def by_hand(folder: Path, text: str, lead: list[int]) -> list[float]:
    """log p of each token given all before it: one forward pass a token, straight from
    transformers."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = lead + tokenizer(text, add_special_tokens=False)["input_ids"]
    values = []
    with torch.no_grad():
        for n in range(1, len(ids)):
            logits = model(torch.tensor([ids[:n]])).logits[0, -1].double()
            values.append(float(logits[ids[n]] - torch.logsumexp(logits, 0)))
    return values


def test_perplexity_is_that_of_one_token_after_another(gpt2: Path) -> None:
    scorer = open_scorer(f"hf:{gpt2}")
    assert scorer.convention.begin == "eos"  # the tiny tokenizer has no BOS
    text = "men love rain"
    expected = by_hand(gpt2, text, [0])
    scores = scorer.score([text, "women", text])
    assert scores.log_likelihoods[0] == pytest.approx(sum(expected), rel=1e-6)
    assert scores.tokens[0] == len(expected)
    assert scores.perplexities[0] == pytest.approx(math.exp(-np.mean(expected)), rel=1e-6)
    assert scores.log_likelihoods[2] == scores.log_likelihoods[0]
    surprisals = scorer.surprisals(text)
    assert "".join(token for token, _ in surprisals) == text
    assert [bits * math.log(2) for _, bits in surprisals] == pytest.approx(
        [-value for value in expected], rel=1e-5
    )


def test_a_model_is_checked_as_it_is_opened_first(
    gpt2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[CausalEngine] = []
    choose_tier = CausalEngine._choose_tier

    def note_check(engine: CausalEngine) -> str:
        checks.append(engine)
        return choose_tier(engine)

    monkeypatch.setattr(CausalEngine, "_choose_tier", note_check)
    unload()
    scorers: list[Any] = [open_scorer(f"hf:{gpt2}") for _ in range(3)]
    assert [scorer.convention.tier for scorer in scorers] == ["tree"] * 3
    assert len(checks) == 1
    hook = scorers[0].engine._model.register_forward_hook(lambda *_: None)
    open_scorer(f"hf:{gpt2}")  # loaded anew, since somebody changed the one that was
    assert len(checks) == 2
    hook.remove()


def test_with_nothing_before_it_the_first_token_is_not_scored(gpt2: Path, texts: Texts) -> None:
    scorer = open_scorer(f"hf:{gpt2}", begin="none")
    expected = by_hand(gpt2, "men love rain", [])
    scores = scorer.score(["men love rain"])
    assert scores.tokens[0] == len(expected) == 4
    assert scores.log_likelihoods[0] == pytest.approx(sum(expected), rel=1e-6)
    assert dict(scorer.settings) == {"kind": "causal", "begin": "none", "dtype": "float32"}
    with texts.raises(DataError):
        scorer.grid(["men"], ["love food"])


def test_a_grid_is_its_texts_one_by_one(gpt2: Path) -> None:
    scorer = open_scorer(f"hf:{gpt2}")
    grid = scorer.grid(GROUPS, STATEMENTS)
    for g, group in enumerate(GROUPS):
        alone = by_hand(gpt2, group, [0])
        assert grid.group.log_likelihoods[g] == pytest.approx(sum(alone), rel=1e-6)
        assert grid.group.tokens[g] == len(alone)
        for s, statement in enumerate(STATEMENTS):
            whole = by_hand(gpt2, f"{group} {statement}", [0])
            assert grid.probes.log_likelihoods[g, s] == pytest.approx(sum(whole), rel=1e-6)
            assert grid.probes.tokens[g, s] == len(whole)
            assert grid.surprisals is not None
            pieces, bits = zip(*grid.surprisals(g, s), strict=True)
            assert "".join(pieces) == f"{group} {statement}"
            assert bits == pytest.approx([-p / math.log(2) for p in whole], rel=1e-5)
            rest = whole[len(alone) :]
            assert grid.statement.log_likelihoods[g, s] == pytest.approx(sum(rest), rel=1e-6)
            assert grid.statement.tokens[g, s] == len(rest)


def test_where_joining_changes_the_tokens_the_whole_text_is_tokenised(
    gpt2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = open_scorer(f"hf:{gpt2}")
    expected = scorer.grid(GROUPS, STATEMENTS)
    plain = scorer._tokenise

    def other(text: str) -> tuple[int, ...]:
        return plain(text)[::-1] if text.startswith(" ") else plain(text)

    monkeypatch.setattr(scorer, "_tokenise", other)
    grid = scorer.grid(GROUPS, STATEMENTS)
    assert grid.probes.log_likelihoods == pytest.approx(expected.probes.log_likelihoods)
    assert grid.statement.tokens.tolist() == expected.statement.tokens.tolist()
    assert grid.statement.log_likelihoods == pytest.approx(expected.statement.log_likelihoods)


@pytest.mark.parametrize(
    ("architecture", "tier", "changes"),
    [
        ("gpt2", "tree", {}),
        ("llama", "tree", {}),
        ("cohere", "tree", {"logit_scale": 0.3}),
        ("granite", "tree", {"logits_scaling": 4.0}),
        ("gemma2", "tree", {"final_logit_softcapping": 3.0, "head_dim": 8}),
        ("bloom", "cache", {}),
        ("mamba", "buckets", {}),
    ],
)
def test_every_tier_that_a_model_can_take_gives_its_own_logits(
    architecture: str, tier: str, changes: dict[str, Any]
) -> None:
    model = tiny.build_model(architecture, **changes)
    chosen = CausalEngine(model)
    assert chosen.tier == tier
    rng = np.random.default_rng(1)
    stems = [tuple(rng.integers(0, 100, n)) for n in (2, 4)]
    ends = [tuple(rng.integers(0, 100, n)) for n in (1, 3, 9, 9)]
    texts = [tuple(map(int, stem + end)) for stem in stems for end in ends]
    shared = [len(stem) for stem in stems for _ in ends]
    with torch.no_grad():
        truth = [
            model(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)[range(len(ids) - 1), ids[1:]]
            for ids in texts
        ]
    for way in TIERS[TIERS.index(tier) :]:
        engine = CausalEngine(model, tier=way)
        engine._row_nodes, engine._batch_tokens = 8, 24  # several rows, several batches
        found = engine.log_probabilities(texts, shared)
        for row, values in zip(truth, found, strict=True):
            assert values == pytest.approx(row.numpy(), abs=2e-5)


def saved_encoder_decoder(folder: Path, architecture: str, sizes: dict[str, int]) -> None:
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tiny.build_tokenizer()),
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        decoder_start_token_id=0,
        dropout=0.0,
        **sizes,
    )
    torch.manual_seed(0)
    AutoModelForSeq2SeqLM.from_config(config).eval().save_pretrained(folder)
    tiny.build_tokenizer().save_pretrained(folder)


def test_the_decoder_of_an_encoder_decoder_is_read_alone(tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM

    sizes = {"layers": 2, "attention_heads": 2, "ffn_dim": 32}
    both = {f"{part}_{name}": n for part in ("encoder", "decoder") for name, n in sizes.items()}
    saved_encoder_decoder(tmp_path, "bart", {**both, "d_model": 16, "max_position_embeddings": 64})
    scorer: Any = open_scorer(f"hf:{tmp_path}")
    assert scorer.convention.kind == "decoder" and scorer.convention.tier != "alone"
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    for text in ("men love rain", "women are tall"):
        ids = [0, *scorer._tokenise(text)]
        with torch.no_grad():
            states = model.get_decoder()(input_ids=torch.tensor([ids])).last_hidden_state
            rows = model.get_output_embeddings()(states)[0, :-1].double().log_softmax(-1)
        expected = rows[range(len(ids) - 1), ids[1:]].sum()
        assert scorer.score([text]).log_likelihoods[0] == pytest.approx(float(expected), rel=1e-5)


def test_a_checkpoint_without_its_output_layer_is_refused(
    tmp_path: Path, bert: Path, texts: Texts
) -> None:
    from transformers import BertModel

    BertModel.from_pretrained(bert).save_pretrained(tmp_path / "headless")
    with pytest.raises(UsageError, match="not a language model"):
        open_scorer(f"hf:{tmp_path / 'headless'}")
    with texts.raises(ModelError):
        open_scorer(f"hf:{tmp_path / 'headless'}", kind="masked")


def test_an_ignored_mask_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.build_model("llama")
    forward = model.base_model.forward

    def deaf(*args: Any, attention_mask: Any = None, **rest: Any) -> Any:
        if attention_mask is not None and attention_mask.dim() == 4:
            attention_mask = None
        return forward(*args, attention_mask=attention_mask, **rest)

    monkeypatch.setattr(model.base_model, "forward", deaf)
    assert CausalEngine(model).tier == "cache"


def test_an_unknown_change_of_logits_is_seen() -> None:
    model = tiny.build_model("granite", logits_scaling=4.0)
    model.config.logits_scaling = 2.0
    scale = model.forward

    def forward(*args: Any, **rest: Any) -> Any:
        out = scale(*args, **rest)
        out.logits = out.logits * 1.1
        return out

    model.forward = forward
    assert CausalEngine(model).tier == "alone"


def test_texts_beyond_a_sliding_window_leave_the_tree() -> None:
    model = tiny.build_model("mistral", sliding_window=6)
    engine = CausalEngine(model)
    assert engine.tier == "tree"
    ids = tuple(range(3, 20))
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
    (found,) = engine.log_probabilities([ids])
    assert found == pytest.approx(logits[range(16), ids[1:]].numpy(), abs=2e-5)


def test_a_tree_reads_what_is_shared_once() -> None:
    texts = [(9, 1, 2), (9, 1, 2, 3), (9, 1, 4, 5), (9, 6)]
    (tree,) = pack_trees(texts, 100)
    assert tree.tokens == [9, 1, 2, 4]  # 3, 5, 6 are leaves: predicted, never read
    assert tree.parents == [-1, 0, 1, 1]
    assert tree.depths == [0, 1, 2, 2]
    for index, path in tree.paths:
        assert tuple(tree.edges[e][1] for e in path) == texts[index][1:]
    assert len(tree.edges) == 6
    assert tree.ancestor_mask().astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1, 1, 0, 1],
    ]


def test_trees_keep_to_their_budget_and_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    texts = list({tuple(map(int, rng.integers(0, 3, rng.integers(2, 9)))) for _ in range(200)})
    trees = list(join_trees(list(pack_trees(texts, 20)), 20))
    assert max(len(tree.tokens) for tree in trees) <= 20
    seen = []
    for tree in trees:
        for index, path in tree.paths:
            seen.append(index)
            node = tree.edges[path[0]][0]
            assert tree.parents[node] == -1 and tree.tokens[node] == texts[index][0]
            for place, edge in enumerate(path):
                at, token = tree.edges[edge]
                assert tree.depths[at] == place and token == texts[index][place + 1]
    assert sorted(seen) == list(range(len(texts)))


def test_pseudo_perplexity_masks_each_token_in_turn(bert: Path) -> None:
    from transformers import AutoModelForMaskedLM

    scorer = open_scorer(f"hf:{bert}")
    assert scorer._selects_positions  # type: ignore[attr-defined]
    model = AutoModelForMaskedLM.from_pretrained(bert).eval()
    ids = [2, 6, 11, 9, 10, 3]  # [CLS] women are un ##kind [SEP]
    expected = []
    for place in range(1, 5):
        masked = list(ids)
        masked[place] = 4
        with torch.no_grad():
            logits = model(torch.tensor([masked])).logits[0, place].double()
        expected.append(float(logits.log_softmax(-1)[ids[place]]))
    scores = scorer.score(["men love food .", "women are unkind"])
    assert scores.tokens.tolist() == [4, 4]
    assert scores.log_likelihoods[1] == pytest.approx(sum(expected), abs=1e-5)
    grid = scorer.grid(["men", "women"], ["love food", "are unkind"])
    assert grid.probes.log_likelihoods[1, 1] == pytest.approx(sum(expected), abs=1e-5)
    assert grid.statement.log_likelihoods[1, 1] == pytest.approx(sum(expected[1:]), abs=1e-5)
    assert grid.group.tokens.tolist() == [1, 1]
    scorer._selects_positions = False  # type: ignore[attr-defined]
    whole = scorer.score(["women are unkind"])
    assert whole.log_likelihoods[0] == pytest.approx(sum(expected), abs=1e-5)


def test_a_masked_copy_is_read_once_whoever_asks(bert: Path) -> None:
    """Texts that differ in one token share the copy in which it is masked, and each finds its own
    token there: what a loop over texts and tokens finds, to 1e-5."""
    from transformers import AutoModelForMaskedLM

    groups, statements = ["men", "women", "food"], ["love men", "love women", "are unkind", "love"]
    model, read = AutoModelForMaskedLM.from_pretrained(bert).eval(), []
    scorer = open_scorer(f"hf:{bert}")
    hook = scorer._model.register_forward_pre_hook(  # type: ignore[attr-defined]
        lambda _, __, given: read.append(given["input_ids"].tolist()), with_kwargs=True
    )

    class Counted(SilentProgress):
        done = 0

        def advance(self, steps: int = 1, **_: float) -> None:
            self.done += steps

    told = Counted()
    grid = scorer.grid(groups, statements, told)
    hook.remove()
    copies = [tuple(row) for batch in read for row in batch]
    assert len(copies) == len(set(copies))
    # masked groups: 1 alone, 4 before statements; of each of 3 groups: 2 + 1 of "love men" and
    # "love women", which share the one without its last word, 3 of "are unkind", 1 of "love"
    assert len(copies) == 1 + 4 + 3 * (2 + 1 + 3 + 1)
    for g, group in enumerate(groups):
        for s, statement in enumerate(statements):
            ids = scorer._encode(f"{group} {statement}").ids
            value = 0.0
            for place in range(1, len(ids) - 1):
                masked = torch.tensor([[*ids[:place], 4, *ids[place + 1 :]]])
                with torch.no_grad():
                    logits = model(masked).logits[0, place].double()
                value += float(logits.log_softmax(-1)[ids[place]])
            assert grid.probes.log_likelihoods[g, s] == pytest.approx(value, abs=1e-5)
    assert told.done == len(groups) * (len(statements) + 1)


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_statement_is_one_line(gpt2: Path, text: str) -> None:
    with pytest.raises(DataError, match="empty"):
        open_scorer(f"hf:{gpt2}").grid(["men"], ["love food", text])


def test_a_text_beyond_the_context_is_one_line(gpt2: Path) -> None:
    with pytest.raises(DataError, match=r"100001 tokens is longer than the 96 that hf:") as error:
        open_scorer(f"hf:{gpt2}").grid(["men"], ["x" * 99_998])
    assert len(str(error.value)) < 300


def test_what_is_no_language_model_is_one_line(tmp_path: Path, gpt2: Path) -> None:
    from transformers import BertConfig, BertModel

    BertModel(
        BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1)
    ).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="not a language model that predicts words"):
        open_scorer(f"hf:{tmp_path}")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises((UsageError, ModelError)):
        open_scorer(f"hf:{tmp_path}")
    with pytest.raises(UsageError, match="has no BOS token: set `begin` to eos or none"):
        open_scorer(f"hf:{gpt2}", begin="bos")
