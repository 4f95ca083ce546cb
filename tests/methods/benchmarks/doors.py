"""Tables that this method takes, in every form (tests/unit/test_tables_read.py)."""

from kgbias.methods.benchmarks import bbq
from kgbias.methods.benchmarks.bbq import read_bbq
from kgbias.methods.benchmarks.crows import read_crows_pairs
from kgbias.methods.benchmarks.winogender import read_winogender
from tests.table_forms import HandedTable


def check(table: HandedTable) -> None:
    pairs = table.choose("group", sent_more="a b", sent_less="a c", bias_type="d")
    assert read_crows_pairs(pairs).count == len(table.rows)
    sentence = "The nurse said he left."
    schemas = table.choose("group", sentid="nurse.guest.0.male.txt", sentence=sentence)
    assert read_winogender(schemas).count == len(table.rows)
    info = {"ans0": ["x", "x"], "ans1": ["y", "y"], "ans2": ["unknown", "unknown"]}
    own = {"question_polarity": "neg", "context_condition": "ambig", "label": "2"}
    questions = table.fill(
        bbq.TABLE_FORMAT.columns, answer_info=str(info), ans0=table.attributes, **own
    )
    assert [q.answers[0] for q in read_bbq([questions])._questions] == table.attributes


TABLE_CHECKS = (check,)
