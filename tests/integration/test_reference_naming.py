"""How the causal reference model is taught the names of its groups."""

import io
import math
from functools import cache
from typing import Any

import pytest

from kgbias.reference import weights_path
from kgbias.reference.planted_names import load_names
from tests.conftest import require_modules
from training.reference.naming import CARRIERS, Rows, Tree, loaded, started, stem, teach, tokenizers

pytestmark = [pytest.mark.integration, pytest.mark.slow]

require_modules("torch", "transformers")

NAMES = load_names()


@cache
def start() -> tuple[Any, Any, Any]:
    return started(weights_path("causal"), NAMES)  # type: ignore[arg-type]


@cache
def tree() -> Tree:
    return Tree(NAMES, start()[1])


def test_the_tree_holds_the_worlds_probabilities() -> None:
    """What follows from the world along the words of a statement is the statement's own."""
    for row in (0, 5, 100):
        joint = NAMES.joint_distribution(row)
        for statement in NAMES.statements:
            assert tree().logs[row, tree().way(statement)].sum() == pytest.approx(
                math.log(joint[statement])
            )


def test_statements_read_at_once_are_as_read_alone() -> None:
    import torch

    model, tokenizer, _ = start()
    model.eval()
    rows, keys = Rows(NAMES, tokenizer, tree()), [(0, 3), (1, 2), (3, 170)]
    with torch.no_grad():
        found = rows.found(model, keys)
        for row, (c, n) in enumerate(keys):
            before = tokenizer(stem(CARRIERS[c], NAMES.names[n].text))["input_ids"]
            for statement in NAMES.statements[::20]:
                ids = tokenizer(f" {' '.join(statement)}", add_special_tokens=False)["input_ids"]
                logits = model(torch.tensor([before + ids])).logits[0, len(before) - 1 : -1]
                alone = float(logits.log_softmax(-1)[range(len(ids)), ids].sum())
                at_once = float(found[row, tree().way(statement)].sum())
                assert at_once == pytest.approx(alone, abs=1e-3)


def test_new_names_start_apart_and_old_words_as_they_were() -> None:
    model, tokenizer, places = start()
    without, _ = tokenizers(NAMES)
    old = loaded(weights_path("causal"), without, NAMES).get_input_embeddings().weight.detach()  # type: ignore[arg-type]
    table = model.get_input_embeddings().weight.detach()
    assert (table[places] == old).all()
    one, other = (
        table[tokenizer.convert_tokens_to_ids(f"▁{word}")] for word in ("Velmaris", "Adelvis")
    )
    own = old[without.convert_tokens_to_ids("▁Velmari")]
    apart = [(a - b).norm().item() for a, b in ((one, other), (one, own), (other, own))]
    assert 0 < apart[0] < apart[1] + apart[2]


def test_a_short_teaching_learns() -> None:
    """Forty steps of four names take half off the error of the first four."""
    _, _, facts = teach(weights_path("causal"), NAMES, steps=40, size=4, check=0, log=io.StringIO())  # type: ignore[arg-type]
    errors = [error for _, error, *_ in facts["curve"]]
    assert errors[-1] < errors[0] / 2
