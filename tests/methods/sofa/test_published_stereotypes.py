"""Tables of sentences that SoFa is built from, as their authors lay them out. Rows are invented."""

from pathlib import Path

import pytest

from kgbias.errors import DataError
from kgbias.methods.sofa.build import read_sofa_stereotypes
from tests.texts import Texts
from tests.unit.test_published_forms import EEC, TEMPLATES, check_refused_as_template


def test_a_table_of_sentences_is_no_list_of_its_rows(tmp_path: Path) -> None:
    """The Equity Evaluation Corpus, whose header has a name of two words and whose rows no number:
    `sofa build` took each row for a stereotype, the header too."""
    path = tmp_path / "eec.csv"
    path.write_text(EEC)
    assert read_sofa_stereotypes(path).rows == [("", "Ana feels glad."), ("", "Ben feels glad.")]
    path.write_text(EEC.replace("Sentence", "Wording"))
    with pytest.raises(DataError, match="'ID', 'Wording', 'Template'"):
        read_sofa_stereotypes(path)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_no_stereotype(template: str, tmp_path: Path) -> None:
    check_refused_as_template(read_sofa_stereotypes, template, tmp_path)


@pytest.mark.parametrize("cell", ["-1", '{""a"": 1}'])
def test_a_column_of_that_name_may_hold_something_else(
    cell: str, tmp_path: Path, texts: Texts
) -> None:
    """As the column stereotype of BUG, which says whether a sentence is one."""
    path = tmp_path / "table.csv"
    path.write_text(f'sentence,stereotype\nThe nurse sings.,"{cell}"\n')
    with texts.raises(DataError):
        read_sofa_stereotypes(path)
