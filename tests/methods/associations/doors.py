"""What reads files of this method, beside other readers (tests/unit/test_tables_read.py)."""

from kgbias.methods.associations.sets import read_tests

FILE_READERS = (read_tests,)
