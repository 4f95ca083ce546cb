"""Files that this method reads, for the attack on readers (tests/attack/readers.py)."""

from tests.attack.readers import Reader

SBIC = (
    "targetCategory,targetStereotype\nrace,they are loud\n"
    '"[""gender""]","[""women are kind"", ""are bad""]"\n'
)


READERS = (
    Reader(
        "stereotypes",
        "kgbias.methods.sofa.build:read_sofa_stereotypes",
        {
            "csv": SBIC.encode(),
            "tsv": b"statement\tcategory\nare kind\tgender\n",
            "txt": b"women are kind\n",
        },
    ),
)
