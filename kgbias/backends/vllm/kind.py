"""The kind of models that vLLM reads."""

from dataclasses import replace

from kgbias.models.spec import Kind, ModelFiles, Spec, find_hugging_face


def _find_files(spec: Spec) -> ModelFiles:
    """A model is its weights, whoever reads them."""
    return find_hugging_face(replace(spec, kind="hf"))


VLLM = Kind(
    ("vllm:ID-or-PATH", "vllm:PATH:FILE.gguf"),
    _find_files,
    completer="kgbias.backends.vllm.completer:VLLMModel",
    scorer="kgbias.backends.vllm.scorer:open_vllm_scorer",
    extra="vllm",
    package="vllm",
    engine="vLLM",
    has_hub_names=True,
)
