"""One grammar of specs, one loader: every spec in every place, each model loaded once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.texts import Texts

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from kgbias.errors import KgbiasError, ModelError, UsageError  # noqa: E402
from kgbias.methods.associations.family import associate  # noqa: E402
from kgbias.methods.associations.sets import AssociationTest, WordSet  # noqa: E402
from kgbias.models import (  # noqa: E402
    Span,
    open_encoder,
    open_model,
    open_predictor,
    open_scorer,
    resolve,
    unload,
)
from kgbias.models.base import Request  # noqa: E402
from kgbias.models.load import find_device, load, read_trained_kind  # noqa: E402
from kgbias.models.predict import FilledTemplate  # noqa: E402
from kgbias.reference import weights_path as reference  # noqa: E402
from tests import tiny  # noqa: E402
from tests.backends.vllm.test_vllm import installed  # noqa: E402, F401
from tests.unit.test_probe_commands import refusal  # noqa: E402

pytestmark = pytest.mark.integration


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_model(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(autouse=True)
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("kgbias.models.load._loaded_models", {})


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What transformers is asked to load, by class."""
    seen: list[str] = []
    for name in ("AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM"):
        auto = getattr(transformers, name)
        original = auto.from_pretrained

        def counted(*args: Any, _name: str = name, _original: Any = original, **rest: Any) -> Any:
            seen.append(_name)
            return _original(*args, **rest)

        monkeypatch.setattr(auto, "from_pretrained", counted)
    return seen


@pytest.mark.parametrize("text", ["", "hf", "hf:", "openai:", "smollm2:x", "minilm:", "gpt-2"])
@pytest.mark.parametrize("opens", [open_model, open_scorer, open_predictor, open_encoder, load])
def test_what_is_no_spec_is_one_line_that_lists_the_kinds(opens: Any, text: str) -> None:
    with pytest.raises(UsageError) as error:
        opens(text)
    message = str(error.value)
    assert message.startswith(f"no model {text!r}")
    assert "; choose from smollm2, reference, " in message
    assert (
        message.endswith("google:ID, vllm:ID-or-PATH, vllm:PATH:FILE.gguf") and "\n" not in message
    )


def test_a_revision_is_insisted_on(gpt2: Path, texts: Texts) -> None:
    files = resolve(f"hf:{gpt2}")
    assert resolve(f"hf:{gpt2}", files.info.revision) == files
    for opens in (resolve, open_model, open_scorer, open_encoder, open_predictor):
        with pytest.raises(ModelError, match="no longer sha256:other"):
            opens(f"hf:{gpt2}", revision="sha256:other")  # type: ignore[operator]
    with texts.raises(UsageError):
        open_model("openai:m", revision="1")


def test_a_hub_model_is_loaded_at_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None]] = []

    def commit(name: str, *, revision: str | None, trust_remote_code: bool) -> Any:
        assert not trust_remote_code
        asked.append((name, revision))
        return SimpleNamespace(_commit_hash=f"commit-of-{revision or 'main'}")

    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", commit)
    assert resolve("hf:org/m").commit == "commit-of-main"
    pinned = resolve("hf:org/m@v1")
    assert (pinned.info.name, pinned.info.revision) == ("hf:org/m", "commit-of-v1")
    assert resolve("hf:org/m", "commit-of-v1").commit == "commit-of-commit-of-v1"
    assert asked == [("org/m", None), ("org/m", "v1"), ("org/m", "commit-of-v1")]


def test_a_gguf_file_works_everywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = pytest.importorskip("gguf")
    tiny.save_gguf(tmp_path / "tiny.gguf")
    spec, notes, read = f"hf:{tmp_path}:tiny.gguf", [], []

    class Reader(gguf.GGUFReader):  # type: ignore[misc]
        def __init__(self, path: str) -> None:
            read.append(path)
            super().__init__(path)

    monkeypatch.setattr(gguf, "GGUFReader", Reader)
    scorer = open_scorer(spec, notify=notes.append)
    assert any("converting tiny.gguf" in note for note in notes)
    assert len(read) == 1 and gguf.GGUFReader is Reader
    encoder, predictor = open_encoder(spec), open_predictor(spec)
    sentence = FilledTemplate("men are kind", (0, 3), (8, 12))
    # What the scorer says of a text is what the predictor says of its words.
    joint = predictor.predict([sentence])[0].log_joint
    assert scorer.score([sentence.text]).log_likelihoods[0] == pytest.approx(joint, rel=1e-5)
    assert encoder.embed([Span("men love")], "mean").shape == (1, 32)  # as `merge` embeds
    (said,) = open_model(spec).complete([Request("men love", seed=1, max_tokens=2)])
    assert said[0][1].completion_tokens == 2
    assert scorer.info == encoder.info == predictor.info == open_model(spec).info
    words = {
        role: WordSet(role, pair)
        for role, pair in zip(
            "xyab",
            [("men", "tall"), ("women", "rain"), ("love", "kind"), ("hate", "food")],
            strict=True,
        )
    }
    test = AssociationTest("t", **words, frames=("{t} are {a}",))
    results = associate([test], ["weat", "s-seat", "ceat", "lpbs"], models=[spec])
    assert [result.model for result in results] == [scorer.info] * 4
    assert capfd.readouterr() == ("", "")  # a library does not print


def test_one_process_loads_a_model_once(gpt2: Path, loads: list[str]) -> None:
    spec = f"hf:{gpt2}"
    model = open_model(spec)
    list(model.complete([Request("men", seed=1, max_tokens=1)]))
    model.close()
    scorer: Any = open_scorer(spec)
    assert open_predictor(spec)._model is scorer.engine._model
    assert loads == ["AutoModelForCausalLM"]
    for _ in range(2):
        open_encoder(spec, cache=False).embed([Span("men")], "last")
    open_scorer(spec)
    assert loads == ["AutoModelForCausalLM"]
    open_scorer(spec, dtype="bfloat16")
    assert len(loads) == 2
    assert load(spec, "causal", use_cache=False).model is not load(spec, "causal").model
    unload()
    before = len(loads)
    open_scorer(spec)
    assert len(loads) == before + 1


def test_an_encoder_is_taken_from_the_language_model_that_is_loaded(gpt2: Path) -> None:
    for spec, as_ in ((f"hf:{gpt2}", "causal"), ("reference-masked", "masked")):
        unload()
        alone = load(spec, "encoder", use_cache=False)
        whole, inside = load(spec, as_), load(spec, "encoder")  # type: ignore[arg-type]
        assert inside.model is whole.model.base_model and inside.info == alone.info
        ids = torch.tensor([[1, 2, 3, 4]])
        with torch.inference_mode():
            found, expected = (m.model(ids).last_hidden_state for m in (inside, alone))
        assert torch.equal(found, expected)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_what_texts_begin_with_alike_is_read_once_for_their_vectors(
    tmp_path: Path, architecture: str
) -> None:
    spec = f"hf:{tiny.save_model(tmp_path / 'model', architecture)}"
    texts = ["women love food", "women love food and rain", "women love men", "are kind", "women"]
    spans = [*map(Span, texts), Span("women love food", 0, 5)]
    places: list[Any] = [("mean", -1), ("last", -1), ("mean", 1), ("last", 0)]
    encoder = open_encoder(spec, cache=False)
    assert encoder._tree_window > 0
    read: list[int] = []
    body = encoder._model.forward

    def counted(*args: Any, **kwargs: Any) -> Any:
        read.append(int((kwargs["attention_mask"] == 0).diagonal(dim1=-2, dim2=-1).sum()))
        return body(*args, **kwargs)

    encoder._model.forward = counted
    found = encoder.embed_many(spans, places)
    del encoder._model.forward
    tokens = [encoder._tokenizer(text)["input_ids"] for text in texts]
    beginnings = {tuple(ids[:end]) for ids in tokens for end in range(1, len(ids) + 1)}
    assert read == [len(beginnings)] and len(beginnings) < sum(map(len, tokens))
    alone = open_encoder(spec, cache=False)
    vars(alone)["_tree_window"] = 0
    for place, rows in alone.embed_many(spans, places).items():
        assert found[place] == pytest.approx(rows, rel=1e-4, abs=1e-5)


def test_a_folder_that_changes_is_loaded_again(tmp_path: Path) -> None:
    tiny.save_model(tmp_path)
    first = load(f"hf:{tmp_path}", "causal")
    tiny.build_model("gpt2", seed=1).save_pretrained(tmp_path)
    assert load(f"hf:{tmp_path}", "causal").info.revision != first.info.revision


def test_a_probe_leaves_the_model_as_it_was(gpt2: Path) -> None:
    """GPT-2's activation is exchanged while its texts are scored, and put back."""
    model = load(f"hf:{gpt2}", "causal").model
    before = [type(module) for module in model.modules()]
    scorer: Any = open_scorer(f"hf:{gpt2}")
    scorer.score(["men love rain"])
    assert scorer.engine._model is model
    assert [type(module) for module in model.modules()] == before


def test_the_scorer_and_the_predictor_agree_on_a_pretrained_bert(
    tmp_path: Path, texts: Texts
) -> None:
    """BertForPreTraining was masked to one of them and nothing to the other."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "men", "women", "love", "food"]
    vocabulary = {word: n for n, word in enumerate(words)}
    transformers.BertTokenizerFast(vocab=vocabulary).save_pretrained(tmp_path)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    transformers.BertForPreTraining(config).save_pretrained(tmp_path)
    spec = f"hf:{tmp_path}"
    assert read_trained_kind(spec) == "masked"
    assert open_scorer(spec).convention.kind == open_predictor(spec).kind == "masked"
    with texts.raises(ModelError):
        list(open_model(spec).complete([Request("men", seed=1)]))
    with pytest.raises(UsageError, match="begin does not apply"):
        open_scorer(spec, begin="eos")


@pytest.mark.parametrize(
    ("opens", "spec", "why"),
    [
        (open_model, "reference-masked", "a masked language model and cannot complete text; smol"),
        (open_model, "minilm", "an encoder and cannot complete text; smollm2, reference, hf:"),
        (open_scorer, "minilm", "an encoder and cannot score text; language models can: smol"),
        (open_predictor, "minilm", "an encoder: predicting words needs a masked or causal"),
        (open_predictor, "openai:m", "on a server and cannot be loaded here; smollm2, "),
        (open_encoder, "openai:m", "on a server and cannot be loaded here; smollm2, "),
    ],
)
def test_what_a_spec_cannot_serve_is_one_line(opens: Any, spec: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        opens(spec)
    assert why in str(error.value) and "\n" not in str(error.value)


def test_the_masked_reference_scores_predicts_and_embeds() -> None:
    scorer, predictor = open_scorer("reference-masked"), open_predictor("reference-masked")
    assert scorer.convention.kind == predictor.kind == "masked"
    assert open_encoder("reference-masked", cache=False).embed([Span("people")], "mean").any()


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "meta", ""])
def test_a_device_that_is_not_there_is_one_line(gpt2: Path, device: str) -> None:
    calls = [
        lambda: find_device(device),
        lambda: open_scorer(f"hf:{gpt2}", device=device),
        lambda: open_predictor(f"hf:{gpt2}", device=device),
        lambda: open_encoder(f"hf:{gpt2}", device=device).embed([Span("new")], "last"),
        lambda: list(open_model(f"hf:{gpt2}", device=device).complete([Request("men", seed=1)])),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="on this machine; choose from auto, cpu") as error:
            call()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("cuda", "mps", "device"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_a_gpu_is_found(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, device: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert find_device() == device


def test_options_that_do_not_apply_are_errors(gpt2: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no option 'batch_size' for .*; choose from base_url, concurr"
    ):
        open_model("openai:m", batch_size=4)
    with pytest.raises(
        UsageError, match=r"no option 'base_url' for .*; choose from batch_size, device"
    ):
        open_model(f"hf:{gpt2}", base_url="http://localhost")
    assert open_model(f"hf:{gpt2}", base_url=None).info.name == f"hf:{gpt2}"
    with pytest.raises(UsageError, match="base_url does not apply to hf:"):
        open_scorer(f"hf:{gpt2}", base_url="http://localhost")
    with pytest.raises(UsageError, match="begin does not apply to openai:m"):
        open_scorer("openai:m", begin="eos")


def test_weights_that_an_encoder_lacks_are_refused(tmp_path: Path, texts: Texts) -> None:
    from safetensors.torch import load_file, save_file

    tiny.save_model(tmp_path, "llama")
    weights = load_file(tmp_path / "model.safetensors")
    lost = {k: v for k, v in weights.items() if "layers.1.mlp.up_proj" not in k}
    save_file(lost, tmp_path / "model.safetensors", metadata={"format": "pt"})
    for as_ in ("encoder", "causal"):
        with texts.raises(KgbiasError):
            load(f"hf:{tmp_path}", as_)  # type: ignore[arg-type]


def test_an_encoder_decoder_that_gives_no_vectors_is_one_line(tmp_path: Path) -> None:
    config = transformers.T5Config(
        vocab_size=len(tiny.build_tokenizer()),
        d_model=16,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        d_kv=8,
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    tiny.build_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="gives no vectors for a text by itself") as error:
        open_encoder(f"hf:{tmp_path}", cache=False).embed([Span("men")], "last")
    assert "\n" not in str(error.value)
    with pytest.raises(ModelError, match="is an encoder-decoder, not a causal language model"):
        list(open_model(f"hf:{tmp_path}").complete([Request("men", seed=1)]))


def asked(spec: str) -> list[Any]:
    return list(open_model(spec).complete([Request("men love", 0)]))


@pytest.mark.parametrize("opens", [open_scorer, asked])
@pytest.mark.usefixtures("installed")
def test_vllm_is_asked_for_causal_models_only(opens: Any, texts: Texts) -> None:
    with texts.raises(ModelError):
        opens(f"vllm:{reference('masked')}")


def test_a_command_says_that_a_device_is_not_there() -> None:
    said = refusal("surprisal", "x", "--model", "reference", "--set", "device=none")
    assert "no device 'none'" in said
