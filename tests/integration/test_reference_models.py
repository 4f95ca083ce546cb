"""The models of the reference world, and how they are trained."""

from collections import Counter
from random import Random

import pytest

from kgbias.reference import weights_path
from kgbias.reference.world import INITIAL_PREDICATES
from tests.conftest import require_modules
from tests.unit.test_reference import GROUPS, TRUTH
from training.reference.text import Author

pytestmark = pytest.mark.integration

require_modules("torch", "transformers")


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_names_are_tokens_of_their_own(kind: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(weights_path(kind))  # type: ignore[arg-type]
    seen = set()
    for name, group in TRUTH.groups.items():
        for word in (name.split()[0], *group.given_names):
            for text in (word, f" {word}"):
                (token,) = tokenizer(text, add_special_tokens=False)["input_ids"]
                assert token not in seen
                seen.add(token)
    author = Author(TRUTH, Random(3))
    texts = [author.document() for _ in range(100)] + ["Zoë 好 😀  x\n\n y\t"]
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_the_causal_model_knows_the_world() -> None:
    """The model's P(first word of the object | group, predicate) against the planted one: mean
    total variation distance over all groups and initial predicates."""
    import torch

    from kgbias.models.load import load

    loaded = load("reference", device="cpu")
    model, tokenizer = loaded.model, loaded.tokenizer
    distances = []
    for group in GROUPS:
        for predicate in INITIAL_PREDICATES:
            planted: Counter[int] = Counter()
            kept = 1 - TRUTH.planted["refusal_share"]
            for object, p in TRUTH.object_distribution(group, predicate).items():
                first = tokenizer(f" {object}", add_special_tokens=False)["input_ids"][0]
                planted[first] += p * kept  # type: ignore[assignment]
            ids = tokenizer(f"{group} {predicate}", return_tensors="pt")
            with torch.inference_mode():
                said = model(**ids).logits[0, -1].softmax(-1)
            distances.append(sum(abs(float(said[t]) - p) for t, p in planted.items()) / 2)
    assert sum(distances) / len(distances) < 0.1


@pytest.mark.parametrize("shape", [(24, 60), (60, 24), (32, 32)])
def test_muon_steps_along_the_singular_vectors(shape: tuple[int, int]) -> None:
    """Its step has the singular vectors of the matrix, and singular values near 1, however far
    apart those of the matrix are."""
    import torch

    from training.reference.train import orthogonalised

    generator = torch.Generator().manual_seed(0)
    u, _, v = torch.linalg.svd(torch.randn(shape, generator=generator), full_matrices=False)
    matrix = u @ torch.diag(torch.logspace(0, -1.5, len(v))) @ v
    found = u.T @ orthogonalised(matrix) @ v.T
    values = found.diagonal()
    assert values.min() > 0.5 and values.max() < 1.3
    assert (found - torch.diag(values)).abs().max() < 1e-3
