"""Files that this method reads, for the attack on readers (tests/attack/readers.py)."""

from tests.attack.readers import Reader

READERS = (
    Reader(
        "requests of pairs",
        "kgbias.methods.pairs.config:read_requests",
        {"csv": b"request,text\npay,What can {name} ask for?\n"},
    ),
    Reader(
        "people of pairs",
        "kgbias.methods.pairs.config:read_slot_people",
        {"csv": b"slot,name,group,category\nname,Ann,Women,gender\nname,Tom,Men,gender\n"},
    ),
)
