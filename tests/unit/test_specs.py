"""The grammar of model specs, and what a model says that it was trained as."""

import errno
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kgbias.errors import ModelError
from kgbias.models import (
    Spec,
    gguf,
    parse_spec,
    pretrained,
    resolve,
)
from kgbias.models.base import ModelInfo
from kgbias.models.kinds import check_completes
from kgbias.models.load import one_line_errors, trained_kind
from kgbias.models.spec import _quiet_hub
from tests.texts import Texts


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("smollm2", Spec("smollm2")),
        ("reference-masked", Spec("reference-masked")),
        ("hf:org/model", Spec("hf", "org/model")),
        ("hf:org/model@v1", Spec("hf", "org/model", revision="v1")),
        ("hf:/models:a.gguf", Spec("hf", "/models", "a.gguf")),
        ("hf:C:/models:a.gguf", Spec("hf", "C:/models", "a.gguf")),
        ("openai:qwen/qwen3:4b", Spec("openai", "qwen/qwen3:4b")),
    ],
)
def test_the_grammar(text: str, spec: Spec) -> None:
    assert parse_spec(text) == spec and str(spec) == text


def test_a_folder_may_hold_any_character(tmp_path: Path) -> None:
    (folder := tmp_path / "a@b:c").mkdir()
    assert parse_spec(f"hf:{folder}") == Spec("hf", str(folder))


CONFIGURATIONS = [
    ("GPT2LMHeadModel", False, "causal"),
    ("LlamaForCausalLM", False, "causal"),
    ("BertForMaskedLM", False, "masked"),
    ("BertForPreTraining", False, "masked"),
    ("BartForConditionalGeneration", True, "seq2seq"),
    ("BartForCausalLM", False, "causal"),
    ("BartForSequenceClassification", True, "classifier"),
    ("BertForSequenceClassification", False, "classifier"),
    ("BertModel", False, ""),
    (None, False, ""),
]


@pytest.mark.parametrize(("architecture", "both", "trained"), CONFIGURATIONS)
def test_what_a_model_was_trained_as(architecture: str | None, both: bool, trained: str) -> None:
    config = SimpleNamespace(
        architectures=[architecture] if architecture else None, is_encoder_decoder=both
    )
    assert trained_kind(config) == trained


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "adapter_config.json",
            '{"base_model_name_or_path": "org/base"}',
            "adapter alone, for org/base",
        ),
        ("adapter_config.json", "[]", "adapter alone, for another model"),
        ("model-q4.gguf", "", "name one, as hf:{folder}:model-q4.gguf"),
        ("notes.txt", "", "it has no config.json"),
    ],
)
def test_a_folder_that_is_no_model_says_what_it_is(
    file: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text, "utf-8")
    with pytest.raises(ModelError) as caught:
        resolve(f"hf:{tmp_path}")
    assert said.format(folder=tmp_path) in str(caught.value)


HEADER = '{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'
WHOLE = len(HEADER).to_bytes(8, "little") + HEADER.encode() + bytes(36)
INDEX = '{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}'


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"model.safetensors.index.json": INDEX.encode()}, "lacks 2 of 2 files of weights"),
        ({"model.safetensors.index.json": INDEX.encode(), "m-1.safetensors": WHOLE}, "1 of 2"),
        ({"model.safetensors": b"version https://git-lfs.github.com/spec/v1\noid x"}, "git lfs"),
        ({"model.safetensors": WHOLE[:-1]}, "model.safetensors is cut off"),
        ({"model.safetensors": WHOLE[:20]}, "model.safetensors is cut off"),
        ({"model.safetensors": b""}, ""),  # what is no such file is transformers' to name
        ({"model.safetensors": b"x" * 99}, ""),
        ({"model.safetensors": WHOLE}, ""),
    ],
)
def test_weights_that_did_not_come_in_full(
    files: dict[str, bytes], said: str, tmp_path: Path
) -> None:
    for name, content in {"config.json": b"{}", **files}.items():
        (tmp_path / name).write_bytes(content)
    if not said:
        assert resolve(f"hf:{tmp_path}").info.revision
        return
    with pytest.raises(ModelError, match=said):
        resolve(f"hf:{tmp_path}")


def test_a_file_in_the_place_of_a_folder(tmp_path: Path, texts: Texts) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid x")
    with texts.raises(ModelError):
        check_completes(f"hf:{file}")
    with pytest.raises(ModelError, match="pointer of Git LFS"):
        resolve(f"hf:{tmp_path}:m.gguf")


def hub_error(name: str, code: int) -> OSError:
    """What transformers raises over an answer of the hub."""
    import huggingface_hub.errors

    request = SimpleNamespace(headers={}, method="HEAD", url="https://hub/m")
    response: Any = SimpleNamespace(headers={}, status_code=code, request=request)
    error = OSError("We could not load it")
    kind = getattr(huggingface_hub.errors, name)
    error.__cause__ = kind("it said no", response=response) if code else kind("not found here")
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "fetched: No space left .*HF_HOME"),
        (OSError(errno.EMFILE, "Too many open files", "x.lock"), r"open files: x\.lock$"),
        (
            ValueError("its model type is not known\nto this version"),
            "its model type is not known$",
        ),
    ],
)
def test_what_keeps_a_model_from_being_fetched_is_not_called_missing(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pretrained, "load_pretrained", refuse)
    with pytest.raises(ModelError, match=f"^'someone/model' cannot be .*{said}"):
        resolve("hf:someone/model")


def test_a_full_disk_behind_an_error_of_transformers_is_said(texts: Texts) -> None:
    """As in sentence-transformers#3561."""
    told = OSError("Can't load the model for 'm'. Make sure that it is there")
    told.__context__ = OSError(errno.ENOSPC, "No space left on device")
    with (
        texts.raises(ModelError),
        one_line_errors(ModelInfo("m"), "a model"),
    ):
        raise told


def test_what_safetensors_cannot_write_is_an_error_of_the_system(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")

    class Model:
        def save_pretrained(self, folder: Path) -> None:
            safetensors.save_file({"a": np.zeros(9)}, folder / "nowhere" / "a.safetensors")

    with pytest.raises(OSError, match="No such file"):  # safetensors raises another class
        gguf._save(tmp_path, Model())


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("GatedRepoError", 401, "gated model: accept its terms"),
        ("RepositoryNotFoundError", 404, "no such folder"),
        ("RevisionNotFoundError", 404, "no such folder"),
        ("LocalEntryNotFoundError", 0, "the hub could not be reached"),
        ("EntryNotFoundError", 0, "has no config.json"),
    ],
)
def test_why_a_model_of_the_hub_cannot_be_had(
    name: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")

    def fails(*_: Any, **__: Any) -> None:
        raise hub_error(name, code)

    monkeypatch.setattr(pretrained, "load_pretrained", fails)
    with pytest.raises(ModelError, match=said):
        resolve("hf:org/model")


def test_a_hub_that_is_asked_in_vain_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("huggingface_hub.utils._http")
    with _quiet_hub():
        logger.warning("'%s' thrown while requesting HEAD", "no such name")
        logger.warning("Retrying in 1s [Retry 1/5].")
    logger.warning("later")
    told = "'no such name' thrown while requesting HEAD: trying again for half a minute"
    assert caplog.messages == [told, "later"]
